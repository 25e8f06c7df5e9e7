"""cluster-autoscaler on the command line: options, bad input, all pods, and the cluster after a scale-up."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.autoscaler import single_group
from tests.builders import at, autoscaler_status, node, pod, reported
from tests.command import ROOT, kschedx
from tests.simulate.clusters import deployment

GROWS = str(ROOT / "fixtures/autoscaler-grows/cluster.yaml")
MAXIMUM = str(ROOT / "fixtures/autoscaler-at-maximum/cluster.yaml")
ZONAL = "eks-general-a-62c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6"
NAME = "eks-general-62c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6"


def scaling(*options: str, cluster: str = GROWS, pod: str = "search-0") -> dict[str, object]:
    outcome = kschedx("why", f"pod/{pod}", "-n", "shop", "-s", cluster, "-o", "json", *options)
    result: dict[str, object] = json.loads(outcome.out)["autoscaler"]
    return result


def test_the_document_has_the_added_nodes() -> None:
    scaled = scaling()
    assert scaled["result"] == "ScaleUpSuccessful"
    assert scaled["scaleUps"] == [{"group": NAME, "from": 2, "to": 5, "max": 10}]
    assert scaled["event"] == f"pod triggered scale-up: [{{{NAME} 2->5 (max: 10)}}]"


def test_a_table_of_all_nodes_runs_no_autoscaler() -> None:
    result = kschedx("why", ROOT / "fixtures/autoscaler-at-maximum/pod.yaml", "-s", MAXIMUM, "--nodes", "all")
    assert (result.code, result.err, "adds no node" in result.out) == (1, "", False)


def test_a_flag_changes_the_answer() -> None:
    assert scaling("--autoscaler-flag", "max-nodes-per-scaleup=1")["scaleUps"] == [
        {"group": NAME, "from": 2, "to": 3, "max": 10}
    ]
    limited = scaling("--autoscaler-flag", "max-nodes-total=3")
    assert limited["result"] == "ScaleUpLimitedByMaxNodesTotal"
    assert at(limited, "fixes")[0]["title"] == "raise --max-nodes-total of cluster-autoscaler above 3"
    limited = scaling("--autoscaler-flag", "cores-total=0:4")
    assert at(limited, "fixes")[0]["title"] == "raise --cores-total above 4 for cluster-autoscaler"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--autoscaler-flag", "max-node-total=3"), "max-nodes-total"),
        (("--autoscaler-flag", "max-nodes-total=many"), "max-nodes-total"),
        (("--node-groups", "missing.yaml"), "missing.yaml"),
    ],
)
def test_an_invalid_option_is_an_error(options: tuple[str, ...], expected: str) -> None:
    result = kschedx("why", "pod/search-0", "-n", "shop", "-s", GROWS, *options)
    assert (result.code, expected in result.err) == (2, True)


def test_a_label_that_names_no_group_leaves_templates_unknown() -> None:
    scaled = scaling("--node-group-label", "nobody")
    groups = scaled["groups"]
    assert isinstance(groups, dict)
    assert {group["template"] for group in groups.values()} == {None}


def test_a_status_that_cannot_be_read_is_a_note(tmp_path: Path) -> None:
    text = Path(GROWS).read_text(encoding="utf-8").replace("nodeGroups:", "nodeGroups: 3 #")
    (tmp_path / "cluster.yaml").write_text(text, encoding="utf-8")
    result = kschedx("why", "pod/search-0", "-n", "shop", "-s", str(tmp_path / "cluster.yaml"), "-o", "json")
    document = json.loads(result.out)
    assert result.code == 1
    assert "autoscaler" not in document
    assert "autoscaler-unreadable" in [note["id"] for note in document["notes"]]


def test_an_unknown_status_is_quoted(tmp_path: Path) -> None:
    text = Path(GROWS).read_text(encoding="utf-8").replace("status: NoActivity", "status: Resting")
    (tmp_path / "cluster.yaml").write_text(text, encoding="utf-8")
    cluster = str(tmp_path / "cluster.yaml")
    assert scaling(cluster=cluster)["unknownStatus"] == ["Resting"]
    result = kschedx("why", "pod/search-0", "-n", "shop", "-s", cluster).out
    assert "its status has unknown values Resting" in " ".join(result.split())


def test_a_list_of_pods_ends_with_the_nodes_added_for_all() -> None:
    result = kschedx("why", "--all-pending", "-s", GROWS)
    assert "cluster-autoscaler adds 3 nodes to" in result.out
    assert "for 5 pods" in result.out
    text = " ".join(kschedx("why", "--all-pending", "-s", MAXIMUM).out.split())
    general = "eks-general-62c4f0aa-11d2-4c0e-9f7e-30b1c2d4e5f6"
    assert f"adds no node; no node group helps 1 pod. {general}: max node group size reached; eks-memory-" in text


@pytest.mark.parametrize("reason", ["NotTriggerScaleUp", "TriggeredScaleUp"])
def test_a_list_of_pods_has_what_the_autoscaler_reports_instead(tmp_path: Path, reason: str) -> None:
    message, time = "pod didn't trigger scale-up: 1 max node group size reached", "2026-07-01T03:41:00Z"
    event = reported("cluster-autoscaler", reason, message, pod="shop/search-0", lastTimestamp=time)
    (tmp_path / "event.json").write_text(json.dumps(event))
    out = kschedx("why", "--all-pending", "-s", GROWS, "-s", tmp_path / "event.json", columns=200).out
    is_denied = reason == "NotTriggerScaleUp"
    assert ("cluster-autoscaler reports that it adds no node for 5 pods" in out) is is_denied
    assert ("by the cluster's objects, cluster-autoscaler adds 3 nodes" in out) is is_denied


def test_an_autoscaler_without_node_groups_says_so(tmp_path: Path) -> None:
    status = "autoscalerStatus: Running\nclusterWide: {}\nnodeGroups: []\n"
    cluster = _written(tmp_path, [node("n"), pod("web", nodeSelector={"a": "b"}), autoscaler_status(status)])
    result = kschedx("simulate", "--autoscale", "-s", cluster)
    assert "cluster-autoscaler adds no node; it has no node groups for 1 pod." in result.out


def test_the_queue_runs_with_the_added_nodes() -> None:
    result = kschedx("simulate", "--autoscale", "-s", GROWS, "-o", "json")
    document = json.loads(result.out)
    assert (result.code, document["pending"]) == (0, [])
    assert document["autoscaler"]["groups"] == {NAME: {"from": 2, "to": 5, "max": 10}}
    without = str(ROOT / "fixtures/fragmentation")
    refused = kschedx("simulate", "--autoscale", "-s", without)
    assert (refused.code, "cluster-autoscaler-status" in refused.err) == (2, True)


def test_new_nodes_have_devices_in_a_simulation(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": single_group.device_cluster()}))
    result = kschedx("simulate", "--autoscale", "-s", path, "--node-group-label", "group")
    assert (result.code, "all 5 pods are scheduled" in result.out) == (0, True)


def test_a_snapshot_and_an_anonymized_one_say_the_same(tmp_path: Path) -> None:
    kept = str(tmp_path / "kept.json")
    assert kschedx("snapshot", "-s", GROWS, "-o", kept).code == 0
    ours, theirs = scaling(), scaling(cluster=kept)
    assert ours == theirs
    hidden = str(tmp_path / "hidden.json")
    assert kschedx("snapshot", "--anonymize", "-s", GROWS, "-o", hidden).code == 0
    assert "cluster-autoscaler adds 3 nodes to" in kschedx("why", "--all-pending", "-s", hidden).out


@pytest.mark.parametrize(
    ("story", "pod", "title"),
    [
        ("autoscaler-at-maximum", "checkout-7c9d", f"raise the maximum of node group {NAME} from 3 to 4"),
        (
            "autoscaler-daemonsets-fill-template",
            "report-5f4b",
            "lower requests.cpu of container main from 1000m to 830m",
        ),
        ("autoscaler-below-cutoff", "placeholder-3a7f", "remove priorityClassName filler: priority 0"),
        (
            "autoscaler-zone-without-group",
            "ledger-0",
            f"add a node group like {ZONAL} with label topology.ebs.csi.aws.com/zone=eu-west-1c",
        ),
    ],
)
def test_fixes_were_tried(story: str, pod: str, title: str) -> None:
    fixes = scaling(cluster=str(ROOT / f"fixtures/{story}/cluster.yaml"), pod=pod)["fixes"]
    assert isinstance(fixes, list)
    assert [(fix["title"], fix["nodes"]) for fix in fixes] == [(title, 1)]


def test_a_pod_that_preempts_needs_no_node(tmp_path: Path) -> None:
    full = [single_group.pod(f"low-{number}", nodeName="workers-0", priority=0) for number in range(2)]
    others = [single_group.pod(f"other-{number}", priority=0) for number in range(2)]
    objects = [single_group.status(single_group.group()), single_group.node(), *full]
    options = ("--node-group-label", "group", "-s")
    alone = _written(tmp_path, [*objects, single_group.pod("web", priority=5)])
    assert scaling(*options[:2], cluster=alone, pod="web")["outcome"] == "nominated"
    text = " ".join(kschedx("why", "pod/web", "-n", "shop", *options, alone).out.split())
    assert "adds a node" not in text
    assert "fix 1 wait for preemption to evict shop/low-0 (priority 0)" in text
    nominated = {**single_group.pod("web", priority=0), "status": {"nominatedNodeName": "workers-0"}}
    assert scaling(*options[:2], cluster=_written(tmp_path, [*objects, nominated]), pod="web")["outcome"] != "nominated"
    both = _written(tmp_path, [*objects, single_group.pod("web", priority=5), *others])
    text = kschedx("why", "--all-pending", *options, both).out
    assert "cluster-autoscaler adds 1 node to workers (1 → 2, maximum 5) for 2 pods" in text


def test_a_file_describes_a_group_without_nodes(tmp_path: Path) -> None:
    groups = {"groups": {NAME: {"nodes": [], "capacity": {"cpu": "4", "memory": "14Gi"}, "labels": {"pool": "x"}}}}
    (tmp_path / "groups.yaml").write_text(json.dumps(groups), encoding="utf-8")
    scaled = scaling("--node-group-label", "nobody", "--node-groups", str(tmp_path / "groups.yaml"))
    assert scaled["scaleUps"] == [{"group": NAME, "from": 2, "to": 5, "max": 10}]


def test_a_group_that_the_status_lacks_is_named(tmp_path: Path) -> None:
    groups = {"groups": {f"{NAME}x": {"nodes": [], "capacity": {"cpu": "4", "memory": "8Gi"}}}}
    (tmp_path / "groups.yaml").write_text(json.dumps(groups), encoding="utf-8")
    text = f"--node-groups: the autoscaler's status has no node group {NAME}x"
    options = ("-n", "shop", "-s", GROWS, "--node-groups", str(tmp_path / "groups.yaml"))
    result = kschedx("why", "pod/search-0", *options, "-o", "json")
    assert any(note["text"].startswith(text) for note in json.loads(result.out)["notes"])
    assert text in kschedx("simulate", *options).err


def _affinity(key: str, operator: str) -> Mapping[str, object]:
    terms = [{"matchExpressions": [{"key": key, "operator": operator}]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize(
    ("spec", "node", "title"),
    [
        ({"nodeSelector": {"disk": "nvme"}}, {}, "add a node group like workers with label disk=nvme"),
        (
            {"nodeSelector": {"disk": "nvme"}},
            {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
            "add a node group like workers with label disk=nvme and without taint dedicated=db:NoSchedule",
        ),
        (
            {"affinity": _affinity("group", "DoesNotExist")},
            {},
            "add a node group like workers without label group",
        ),
    ],
)
def test_a_new_group_was_tried(tmp_path: Path, spec: Mapping[str, Any], node: Mapping[str, object], title: str) -> None:
    objects = [
        single_group.status(single_group.group()),
        {**single_group.node(), "spec": node},
        single_group.pod("web", **spec),
    ]
    scaled = scaling("--node-group-label", "group", cluster=_written(tmp_path, objects), pod="web")
    assert scaled["fixes"] == [{"title": title, "group": "workers-new", "nodes": 1}]


def test_no_new_group_is_proposed_if_only_room_is_lacking(tmp_path: Path) -> None:
    objects = [
        single_group.status(single_group.group()),
        single_group.node(),
        single_group.pod("web", cpu="64", nodeSelector={"disk": "nvme"}),
    ]
    assert "fixes" not in scaling("--node-group-label", "group", cluster=_written(tmp_path, objects), pod="web")


def test_a_fix_counts_pods_that_come_first(tmp_path: Path) -> None:
    tainted = {**single_group.node(), "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]}}
    others = [single_group.pod(f"other-{number}", cpu="1500m") for number in range(3)]
    spare = single_group.node("spare-0", group="spare")
    full = [single_group.pod(f"full-{node}", cpu="1500m", nodeName=node) for node in ("spare-0", "workers-0")]
    web = single_group.pod("web", nodeSelector={"group": "workers"})
    groups = single_group.status(single_group.group(), single_group.group("spare"))
    cluster = _written(tmp_path, [groups, tainted, spare, *full, *others, web])
    scaled = scaling(
        "--node-group-label", "group", "--autoscaler-flag", "expander=most-pods", cluster=cluster, pod="web"
    )
    assert scaled["fixes"] == [{"title": "tolerate dedicated=db:NoSchedule", "group": "workers", "nodes": 0}]


def test_the_autoscaler_has_its_own_scheduler_configuration(tmp_path: Path) -> None:
    command = ["cluster-autoscaler", "--cloud-provider=aws", "--scheduler-config-file=/etc/ca/scheduler.yaml"]
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"namespace": "kube-system", "name": "cluster-autoscaler"},
        "spec": {"template": {"spec": {"containers": [{"name": "ca", "command": command}]}}},
    }
    unwilling = {
        **single_group.node(),
        "spec": {"taints": [{"key": "dedicated", "value": "db", "effect": "NoSchedule"}]},
    }
    full = single_group.pod("full", cpu="1500m", nodeName="workers-0")
    cluster = _written(
        tmp_path, [single_group.status(single_group.group()), unwilling, full, single_group.pod("web"), deployment]
    )
    label = ("--node-group-label", "group")
    without = scaling(*label, cluster=cluster, pod="web")
    assert (without["scaleUps"], without["schedulerConfigFile"]) == ([], "/etc/ca/scheduler.yaml")
    config = tmp_path / "scheduler.yaml"
    config.write_text(json.dumps(_profiles({"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}})))
    given = scaling(*label, "--autoscaler-flag", f"scheduler-config-file={config}", cluster=cluster, pod="web")
    assert given["scaleUps"] == [{"group": "workers", "from": 1, "to": 2, "max": 5}]
    assert "schedulerConfigFile" not in given
    config.write_text(json.dumps(_profiles({"schedulerName": "a"}, {"schedulerName": "b"})))
    options = (*label, "--autoscaler-flag", f"scheduler-config-file={config}")
    result = kschedx("why", "pod/web", "-n", "shop", "-s", cluster, *options)
    assert (result.code, "supports one profile, and the configuration has 2" in result.err) == (2, True)


def _profiles(*profiles: Mapping[str, object]) -> Mapping[str, object]:
    kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    return {**kind, "profiles": list(profiles)}


def _written(folder: Path, objects: Sequence[Mapping[str, object]]) -> str:
    path = folder / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}), encoding="utf-8")
    return str(path)


def test_a_group_whose_template_only_the_autoscaler_knows_may_help(tmp_path: Path) -> None:
    """The autoscaler's own event decides if there is one."""
    empty = single_group.group("empty", target=0)
    objects = [
        single_group.node(cpu="1"),
        single_group.status(single_group.group(maximum=1), empty),
        single_group.pod("web", cpu="2"),
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    question = ("why", "pod/web", "-n", "shop", "-s", path, "--node-group-label", "group")
    result = kschedx(*question, columns=200)
    assert (
        "may add a node of group empty, whose template is not in the cluster; workers: max node group size"
        in result.out
    )
    assert "not ready for scale-up" not in result.out
    assert json.loads(kschedx(*question, "-o", "json").out)["autoscaler"]["event"] == ""
    reason = {
        "type": "Normal",
        "reason": "NotTriggerScaleUp",
        "message": "pod didn't trigger scale-up: 2 Insufficient cpu",
    }
    about = {"kind": "Pod", "namespace": "shop", "name": "web"}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "shop"},
        "involvedObject": about,
    }
    objects.append({**event, **reason, "source": {"component": "cluster-autoscaler"}})
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    assert (
        "cluster-autoscaler adds no node: workers: max node group size reached" in kschedx(*question, columns=200).out
    )


@pytest.mark.parametrize("change", [("--scale", "deploy/web=5"), ("--drain", "workers-0")])
def test_nodes_are_added_for_what_a_change_leaves_pending(change: tuple[str, str], tmp_path: Path) -> None:
    objects = [single_group.status(single_group.group()), single_group.node(), *deployment("web", "1", ["workers-0"])]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"kind": "List", "items": objects}), encoding="utf-8")
    given = ("simulate", *change, "-n", "shop", "-s", path, "--node-group-label", "group", "-o", "json")
    before, after = (json.loads(kschedx(*given, *more).out) for more in ((), ("--autoscale",)))
    assert (bool(before["pending"]), after["pending"]) == (True, [])
    assert after["autoscaler"]["groups"]["workers"]["from"] == 1


def test_nodes_that_are_there_count_for_the_maximum(tmp_path: Path) -> None:
    """The status is older than nodes that are added by hand, or by the simulation before."""
    objects = [single_group.status(single_group.group(maximum=2)), single_group.node()]
    cluster = _written(tmp_path, [*objects, *deployment("web", "2", ["workers-0"])])
    question = ("simulate", "--autoscale", "-n", "shop", "--node-group-label", "group", "-o", "json")

    def answer(*arguments: str) -> tuple[object, int]:
        document = json.loads(kschedx(*question, *arguments).out)
        return document["autoscaler"]["groups"], len(document["pending"])

    later = str(tmp_path / "later.json")
    grown = {"workers": {"from": 1, "to": 2, "max": 2}}
    assert answer("-s", cluster, "--scale", "deploy/web=2", "--out", later) == (grown, 0)
    assert answer("-s", later, "--scale", "deploy/web=3") == ({}, 1)
    assert answer("-s", cluster, "--add-nodes", "1=workers-0", "--scale", "deploy/web=3") == ({}, 1)


def test_pods_go_to_nodes_with_room_before_nodes_are_added(tmp_path: Path) -> None:
    first = single_group.node()
    second = {**first, "metadata": {**first["metadata"], "name": "workers-1"}}
    objects = [single_group.status(single_group.group(target=2)), first, second]
    cluster = _written(tmp_path, [*objects, *deployment("web", "1", ["workers-0", "workers-0", "workers-1"])])
    options = ("--autoscale", "--node-group-label", "group", "-n", "shop", "-s", cluster)
    result = kschedx("simulate", "--drain", "workers-0", *options, columns=200)
    assert result.code == 0, result.out
    assert "2 evicted pods fit on other nodes, 1 of them not at once" in result.out
    assert "shop/web-0 → workers-1, shop/web-1 → workers-new-3" in result.out
