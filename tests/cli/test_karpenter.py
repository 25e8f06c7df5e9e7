"""Karpenter on the command line: its part of an answer, the catalog, and the cluster with its nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.autoscaler import single_group
from tests.command import ROOT, check_document, kschedx
from tests.karpenter.test_cluster import node, node_class, pod, pool

GROWS = str(ROOT / "fixtures/karpenter-grows/cluster.yaml")
LIMIT = str(ROOT / "fixtures/karpenter-limit-reached/cluster.yaml")
CATALOGUE = """apiVersion: kschedx/v1
kind: InstanceTypes
instanceTypes:
- name: r7i.large
  labels: {kubernetes.io/os: linux, kubernetes.io/arch: amd64, karpenter.k8s.aws/instance-family: m7i}
  capacity: {cpu: "8", memory: 32Gi, pods: "58"}
"""


def provisioning(*options: str, cluster: str, pod: str) -> dict[str, object]:
    outcome = kschedx("why", f"pod/{pod}", "-n", "shop", "-s", cluster, "-o", "json", *options)
    result: dict[str, object] = json.loads(outcome.out)["autoscaler"]
    return result


def test_the_document_has_the_added_nodes() -> None:
    provisioned = provisioning(cluster=GROWS, pod="search-0")
    assert provisioned["kind"] == "karpenter"
    assert provisioned["adds"] == {"pool": "general", "instanceTypes": ["c6i.2xlarge"]}
    assert provisioned["typesAreKnown"] is False


def test_the_document_has_the_reason_and_the_fixes_of_each_pool() -> None:
    provisioned = provisioning(cluster=LIMIT, pod="checkout-7c9d")
    assert provisioned["pools"] == {
        "system": {
            "certainty": "rejects",
            "reason": "untolerated-taint",
            "text": "did not tolerate taint (taint=CriticalAddonsOnly=true:NoSchedule)",
        },
        "general": {
            "certainty": "rejects",
            "reason": "limit-reached",
            "text": "all available instance types exceed limits for nodepool (NodePool=general)",
        },
    }
    assert provisioned["fixes"] == [
        {
            "title": "raise the limit of NodePool general from 32 to 40 cpu",
            "pool": "general",
            "instanceTypes": ["m6i.2xlarge"],
        }
    ]


NO_CAPACITY = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "type": "Warning",
    "involvedObject": {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": "general-x1"},
    "reason": "InsufficientCapacityError", "message": "NodeClaim general-x1 event: insufficient capacity",
    "source": {"component": "karpenter"},
}  # fmt: skip
EXCLUDED = {
    "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"}, "type": "Warning",
    "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": "web", "namespace": "default"},
    "reason": "FailedScheduling", "source": {"component": "karpenter"},
    "message": 'Failed to schedule pod, incompatible with nodepool "general", incompatible requirements, '
    "key example.com/disk, example.com/disk In [ssd] not in example.com/disk In [hdd]",
}  # fmt: skip

UNLABELED = {**EXCLUDED, "message": 'Failed to schedule pod, label "project" does not have known values'}


@pytest.mark.parametrize(
    ("event", "cpu", "fix"),
    [
        (UNLABELED, "64", "add label project to NodePool general: Karpenter reports that it sets none"),
        (NO_CAPACITY, "64", "let NodePool general use other instance types, zones, or capacity types"),
        (NO_CAPACITY, "1", "let NodePool general use other instance types, zones, or capacity types"),
        (EXCLUDED, "64", "allow example.com/disk ssd in NodePool general"),
    ],
)
def test_karpenters_event_counts_if_its_instance_types_are_unknown(
    tmp_path: Path, event: dict[str, object], cpu: str, fix: str
) -> None:
    objects = [node(), pool("general"), node_class("eu-1a"), pod(cpu), event]
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    text = " ".join(kschedx("why", "web", "-s", str(cluster)).out.split())
    assert f"Karpenter reports: {event['reason'] if event is NO_CAPACITY else 'Failed to schedule pod'}" in text
    assert fix in text


def test_a_catalog_has_all_types(tmp_path: Path) -> None:
    file = tmp_path / "types.yaml"
    file.write_text(CATALOGUE, encoding="utf-8")
    provisioned = provisioning("--instance-types", str(file), cluster=GROWS, pod="search-0")
    assert provisioned["adds"] == {"pool": "general", "instanceTypes": ["r7i.large"]}
    assert provisioned["typesAreKnown"] is True


def test_the_cheapest_type_that_fits_comes_first(tmp_path: Path) -> None:
    prices = {"a.large": (0.4, 0.1), "b.large": (0.3, 0.3), "c.large": (None, None)}
    types = [
        {
            "name": name,
            "labels": {"karpenter.k8s.aws/instance-family": "m7i"},
            "capacity": {"cpu": "8", "memory": "32Gi", "pods": "58"},
            "offerings": [
                {"zone": zone, "capacityType": "on-demand"} | ({} if price is None else {"price": price})
                for zone, price in zip(("eu-west-1a", "eu-west-1b"), of_zones, strict=True)
            ],
        }
        for name, of_zones in prices.items()
    ]
    file = tmp_path / "types.json"
    file.write_text(json.dumps({"apiVersion": "kschedx/v1", "kind": "InstanceTypes", "instanceTypes": types}))
    objects = list(yaml.safe_load_all(Path(GROWS).read_text(encoding="utf-8")))
    (pod,) = (item for item in objects if item["kind"] == "Pod" and item["metadata"]["name"] == "search-0")

    def added() -> list[str]:
        cluster = tmp_path / "cluster.yaml"
        cluster.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        adds: Any = provisioning("--instance-types", str(file), cluster=str(cluster), pod="search-0")["adds"]
        return list(adds["instanceTypes"])

    assert added() == ["a.large", "b.large", "c.large"]
    pod["spec"]["nodeSelector"] = {"topology.kubernetes.io/zone": "eu-west-1a"}
    assert added() == ["b.large", "a.large", "c.large"]


def test_an_invalid_field_has_its_line(tmp_path: Path) -> None:
    file = tmp_path / "types.yaml"
    file.write_text(CATALOGUE.replace("labels:", "label:"), encoding="utf-8")
    result = kschedx("instance-types", str(file))
    assert result.code == 2
    assert result.err == (f'error: {file}:5: instanceTypes[0].label: "label" is not a field (did you mean "labels"?)\n')


def test_a_catalog_is_shown_and_written(tmp_path: Path) -> None:
    file = tmp_path / "types.yaml"
    file.write_text(CATALOGUE, encoding="utf-8")
    assert (
        kschedx("instance-types", str(file)).out.splitlines()[1].split()
        == ("r7i.large 8 cpu, 32Gi memory, 58 pods 8 cpu, 32Gi memory, 58 pods every zone of its NodePool")
        .replace(", 58 pods", "")
        .split()
    )
    assert kschedx("instance-types", str(file), "-o", "name").out == "r7i.large\n"
    assert json.loads(kschedx("instance-types", str(file), "-o", "json").out)["kind"] == "InstanceTypes"


def test_added_nodes_run_the_pending_pods() -> None:
    result = kschedx("simulate", "--autoscale", "-s", GROWS, "-o", "json")
    document = json.loads(result.out)
    assert result.code == 0
    assert document["autoscaler"]["nodes"] == [
        {"pool": "general", "instanceType": "c6i.2xlarge", "nodes": 1, "choices": 1}
    ]
    assert document["placed"] == {"shop/search-0": "general-new-1", "shop/search-1": "general-new-1"}


def test_added_nodes_count_for_the_limit(tmp_path: Path) -> None:
    pods = [named(f"web-{number}", pod("3"), uid=f"web-{number}") for number in range(4)]
    cluster = written(tmp_path, pool(limits={"cpu": "12"}), node(), node_class("eu-1a"), *pods)
    later = tmp_path / "later.json"
    first = json.loads(kschedx("simulate", "--autoscale", "-s", cluster, "--out", later, "-o", "json").out)
    again = json.loads(kschedx("simulate", "--autoscale", "-s", later, "-o", "json").out)
    assert [(len(it["placed"]), it["autoscaler"]["nodes"] == []) for it in (first, again)] == [(2, False), (0, True)]
    assert again["fixes"] == first["fixes"]
    kschedx("simulate", "--autoscale", "--set", "nodepool/general:spec.limits.cpu=99", "-s", later, "--out", later)
    names = kschedx("nodes", "-s", later, "-o", "name").out.split()
    assert [name for name in names if "new" in name] == [f"node/general-new-{number}" for number in range(1, 5)]


def test_a_list_of_pending_pods_ends_with_karpenters_nodes() -> None:
    text = " ".join(kschedx("why", "--all-pending", "-s", GROWS).out.split())
    assert "Karpenter adds 1 node of NodePool general, c6i.2xlarge for 2 pods" in text


def test_every_pool_that_does_not_help_has_a_reason() -> None:
    text = " ".join(kschedx("why", "--all-pending", "-s", LIMIT).out.split())
    assert "no NodePool helps 1 pod. general: limit reached: 32 of 32 cpu in use; system: untolerated" in text


def test_a_cluster_with_both_autoscalers_has_both_answers(tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all(Path(LIMIT).read_text(encoding="utf-8")))
    both = [*objects, single_group.status(single_group.group(maximum=1)), single_group.node(cpu="1")]
    (tmp_path / "both.yaml").write_text(yaml.safe_dump_all(both), encoding="utf-8")
    options = ("-s", str(tmp_path / "both.yaml"), "--node-group-label", "group", "-o", "json")
    document = json.loads(kschedx("why", "pod/checkout-7c9d", "-n", "shop", *options).out)
    check_document(document)
    assert (document["autoscaler"]["kind"], document["autoscaler"]["karpenter"]["kind"]) == (
        "cluster-autoscaler",
        "karpenter",
    )
    result = json.loads(kschedx("simulate", "--autoscale", *options).out)
    check_document(result)
    assert result["autoscaler"]["groups"] == {}
    assert result["autoscaler"]["karpenter"]["nodes"] == []


def test_a_flag_of_karpenter_changes_the_answer(tmp_path: Path) -> None:
    objects = list(yaml.safe_load_all(Path(GROWS).read_text(encoding="utf-8")))
    (pool,) = (item for item in objects if item["kind"] == "NodePool")
    (family,) = (item for item in pool["spec"]["template"]["spec"]["requirements"] if "family" in item["key"])
    family["minValues"] = 4
    (tmp_path / "few.yaml").write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    cluster = str(tmp_path / "few.yaml")
    assert "adds" not in provisioning(cluster=cluster, pod="search-0")
    for flag in ("min-values-policy=BestEffort", "MIN_VALUES_POLICY=BestEffort"):
        assert "adds" in provisioning("--karpenter-flag", flag, cluster=cluster, pod="search-0")


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("min-value-policy=BestEffort", "min-values-policy"),
        ("preference-policy=Maybe", "Respect or Ignore"),
        ("preference-policy", "is not NAME=VALUE"),
    ],
)
def test_an_invalid_flag_is_an_error(flag: str, expected: str) -> None:
    result = kschedx("why", "pod/search-0", "-n", "shop", "-s", GROWS, "--karpenter-flag", flag)
    assert (result.code, expected in result.err) == (2, True)


@pytest.mark.parametrize(
    ("story", "pod"),
    [
        ("karpenter-grows", "search-0"),
        ("karpenter-limit-reached", "checkout-7c9d"),
        ("karpenter-taint-not-tolerated", "trainer-5f6d"),
        ("karpenter-volume-zone", "ledger-0"),
    ],
)
def test_an_anonymized_cluster_decides_the_same(tmp_path: Path, story: str, pod: str) -> None:
    cluster, hidden = str(ROOT / f"fixtures/{story}/cluster.yaml"), str(tmp_path / "hidden.json")
    assert kschedx("snapshot", "--anonymize", "-s", cluster, "-o", hidden).code == 0
    items = json.loads(Path(hidden).read_text(encoding="utf-8"))["items"]
    waiting = (item["metadata"] for item in items if item["kind"] == "Pod" and not item["spec"].get("nodeName"))
    metadata = next(waiting)
    result = kschedx("why", metadata["name"], "-n", metadata["namespace"], "-s", hidden, "-o", "json")
    assert _nameless(json.loads(result.out)["autoscaler"]) == _nameless(provisioning(cluster=cluster, pod=pod))


def _nameless(value: dict[str, Any]) -> object:
    """Return the parts of a document that do not depend on names."""
    pools = [(item["certainty"], item.get("reason"), bool(item.get("text"))) for item in value["pools"].values()]
    fixes = [item["instanceTypes"] for item in value.get("fixes", ())]
    return value["outcome"], pools, bool(value["event"]), value.get("adds", {}).get("instanceTypes"), fixes


def written(tmp_path: Path, *objects: Any) -> str:
    file = tmp_path / "cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
    return str(file)


def named(name: str, item: Any, **metadata: Any) -> Any:
    return {**item, "metadata": {**item["metadata"], "name": name, **metadata}}


def test_a_larger_limit_covers_all_identical_pods(tmp_path: Path) -> None:
    """Two pods of 3 CPU need two nodes of 4 CPU; a list, a workload, and a pod agree."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "u", "controller": True}
    pods = [named(name, pod("3"), uid=name, ownerReferences=[owner]) for name in ("web", "web-2")]
    cluster = written(tmp_path, pool(limits={"cpu": "4"}), node(), node_class("eu-1a"), *pods)
    title = "raise the limit of NodePool general from 4 to 12 cpu"
    assert f"fix       {title} · for all 2\n" in kschedx("why", "--all-pending", "-s", cluster).out
    assert title in kschedx("why", "web", "-s", cluster).out


def test_a_change_of_a_pool_is_a_patch(tmp_path: Path) -> None:
    def patch(*objects: Any) -> str:
        cluster = written(tmp_path, *objects)
        return kschedx("why", "web", "-s", cluster, "--fix", "1", "-o", "patch").out.splitlines()[0]

    start = "kubectl patch nodepool.karpenter.sh general --type="
    seen = node(), node_class("eu-1a")
    assert (
        patch(pool(limits={"cpu": "4"}), *seen, pod()) == start + """merge --patch='{"spec":{"limits":{"cpu":"8"}}}'"""
    )
    labels = """{"spec":{"template":{"metadata":{"labels":{"team":"a"}}}}}"""
    assert patch(pool(), *seen, pod(nodeSelector={"team": "a"})) == f"{start}merge --patch='{labels}'"
    arch = {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}
    added = """[{"op": "add", "path": "/spec/template/spec/requirements/0/values/-", "value": "arm64"}]"""
    wanting = pod(nodeSelector={"kubernetes.io/arch": "arm64"})
    assert patch(pool("general", arch), *seen, wanting) == f"{start}json --patch='{added}'"


def test_more_nodes_of_a_group_with_the_label_come_before_a_label_of_a_pool(tmp_path: Path) -> None:
    managed = named("managed", node("1"), labels={"team": "a", "eks.amazonaws.com/nodegroup": "workers"})
    managed["spec"] = {"providerID": "aws:///two"}
    full = named("full", pod("1"))
    full["spec"]["nodeName"] = "managed"
    cluster = written(tmp_path, pool(), node(), node_class("eu-1a"), managed, full, pod(nodeSelector={"team": "a"}))
    out = " ".join(kschedx("why", "web", "-s", cluster).out.split())
    label = "add the label team=a to NodePool general · 1 existing node of the NodePool drifts: Karpenter replaces it"
    assert f"fix 1 add a node like managed 2 {label}" in out


@pytest.mark.parametrize(
    ("message", "title"),
    [
        ('all available instance types exceed limits for nodepool: "gpu"', "raise the limits of NodePool gpu"),
        (
            'incompatible with nodepool "gpu", no instance type satisfied resources',
            "other instance types in NodePool gpu",
        ),
    ],
)
def test_the_event_of_karpenter_gives_the_fix_if_the_dump_lacks_its_pools(
    tmp_path: Path, message: str, title: str
) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web"},
        "reason": "FailedScheduling",
        "message": f"Failed to schedule pod, {message}",
        "source": {"component": "karpenter"},
    }
    assert title in kschedx("why", "web", "-s", written(tmp_path, node(), pod(), event)).out
    large = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["r6a.8xlarge"]}
    limited = pool("gpu", large, limits={"cpu": "35"})
    known = kschedx("why", "web", "-s", written(tmp_path, node(), pod(), event, limited, node_class("eu-1a"))).out
    assert ("NodePool gpu (cpu 35)" in known) is ("limits" in message)
