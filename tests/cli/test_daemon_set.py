"""`kschedx why ds/NAME`: the nodes of a DaemonSet."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path

import pytest

from tests.builders import Manifest, at, node
from tests.cli.manifests import changed, small_pod, write
from tests.command import kschedx
from tests.device_builders import allocated, device, device_class, request, resource_slice

AGENT: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent", "namespace": "infra"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {**at(small_pod("agent", "2"), "spec"), "nodeSelector": {"disk": "ssd"}},
        },
    },
}
OWNER = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
OWN = changed(changed(small_pod("agent-1", "2", namespace="infra"), "spec.nodeName", "runs"), "metadata.uid", "2")


def machine(name: str, cpu: str = "3", *, disk: str = "ssd", taints: tuple[str, ...] = ()) -> Manifest:
    labels = {"kubernetes.io/hostname": name, "disk": disk}
    return node(name, labels=labels, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "110"}, taints=list(taints))


CLUSTER = (
    machine("runs"),
    changed(OWN, "metadata.ownerReferences", [OWNER]),
    machine("small", "1"),
    machine("other", disk="hdd"),
    machine("tainted", taints=("gpu=a:NoSchedule",)),
    machine("tainted-and-small", "1", taints=("gpu=a:NoSchedule",)),
    machine("cordoned", taints=("node.kubernetes.io/unschedulable=:NoSchedule",)),
    AGENT,
)


@pytest.mark.parametrize("question", ["ds/agent", "agent.yaml"])
def test_nodes_are_grouped_by_the_outcome_of_their_pod(question: str, tmp_path: Path) -> None:
    write(tmp_path, AGENT, name="agent.yaml")
    cluster = write(tmp_path, *CLUSTER)
    target = tmp_path / question if question.endswith("yaml") else question
    result = kschedx("why", target, "-n", "infra", "-s", cluster)
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    assert (
        lines[0] == "✗ DaemonSet infra/agent fits 2 of 3 eligible nodes; 1 pod stays pending; 3 nodes are not eligible"
    )
    assert "✗ 1 node: pod pending, insufficient cpu, short by 1 CPU" in result.out
    assert lines[1:4] == [
        "  because   1 node lacks 1 CPU",
        "  fix 1     lower requests.cpu of container main from 2 to 1 · tried on small",
        # to tolerate it would create another pod that stays pending on tainted-and-small
        "      2     remove taint gpu=a:NoSchedule from tainted",
    ]
    assert "  event     0/6 nodes are available: 1 Insufficient cpu, 5 node(s) didn't satisfy" in result.out
    assert "  requests  2 = main\n  free      1 = 1 allocatable - 0 requested by 0 pods\n" in result.out
    assert "✓ 2 nodes: pod fits\n  cordoned, runs\n" in result.out
    assert "· 2 nodes: not eligible, untolerated taint gpu=a:NoSchedule\n  tainted, tainted-and-small\n" in result.out
    assert lines[-2:] == [
        "kube-scheduler 1.36, profile default-scheduler, 6 nodes",
        "more: --node NAME, -o wide · kschedx reason insufficient-resource",
    ]


@pytest.mark.parametrize(
    ("on", "extra", "misscheduled"),
    [
        ("other", [], ["other"]),
        ("tainted", [], []),
        ("evicting", [machine("evicting", taints=("gone=:NoExecute",))], ["evicting"]),
        ("runs", [], []),
    ],
    ids=["another label", "another taint", "a NoExecute taint", "eligible"],
)
def test_a_pod_on_a_node_that_is_not_eligible_is_deleted(
    on: str, extra: list[Manifest], misscheduled: list[str], tmp_path: Path
) -> None:
    stray: Manifest = json.loads(json.dumps(OWN))
    at(stray, "metadata").update({"name": "agent-2", "uid": "3", "ownerReferences": [OWNER]})
    at(stray, "spec").update({"nodeName": on, "nodeSelector": {"disk": "ssd"}})
    cluster = write(tmp_path, *CLUSTER, stray, *extra)
    document = json.loads(kschedx("why", "ds/agent", "-n", "infra", "-s", cluster, "-o", "json").out)["daemonSet"]
    assert document.get("misscheduled", []) == misscheduled
    screen = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster).out
    assert ("1 node that is not eligible runs a pod" in screen) is bool(misscheduled)
    alone = kschedx("why", "agent-2", "-n", "infra", "-s", cluster).out
    assert ("its DaemonSet's controller deletes a pod" in " ".join(alone.split())) is (on == "other")


def test_all_nodes_are_those_of_its_own_pods(tmp_path: Path) -> None:
    """Its pod on `runs` does not count there, as on the first screen."""
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, *CLUSTER), "--nodes", "all")
    assert result.code == 1
    assert "✓ 2 nodes: pod fits\n  cordoned, runs\n" in result.out
    assert '  selector  disk=ssd ✗ the node has "hdd"' in result.out


def test_the_document_has_nodes_and_fixes(tmp_path: Path) -> None:
    result = kschedx("why", "ds", "agent", "-n", "infra", "-s", write(tmp_path, *CLUSTER), "-o", "json")
    document = json.loads(result.out)
    assert (result.code, document["outcome"], document["overall"]) == (1, "Scheduled", "Unschedulable")
    assert [fix["title"] for fix in document["fixes"]] == [
        "lower requests.cpu of container main from 2 to 1",
        "remove taint gpu=a:NoSchedule from tainted",
    ]
    assert document["daemonSet"] == {
        "name": "infra/agent",
        "runs": ["cordoned", "runs"],
        "waits": [["small"]],
        "leftOut": [["other"], ["tainted", "tainted-and-small"]],
    }


@pytest.mark.parametrize(("disk", "fixes"), [("ssd", 2), ("hdd", 1)])
def test_only_the_taint_of_a_selected_node_has_a_fix(disk: str, fixes: int, tmp_path: Path) -> None:
    items = (machine("runs"), AGENT, machine("small", "1"), machine("g", disk=disk, taints=("gpu=a:NoSchedule",)))
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, *items), "-o", "json")
    titles = [fix["title"] for fix in json.loads(result.out)["fixes"]]
    all_fixes = ["lower requests.cpu of container main from 2 to 1", "remove taint gpu=a:NoSchedule from g"]
    assert titles == all_fixes[:fixes]


def test_a_node_without_its_pod_is_tried_beside_its_pods_on_other_nodes(tmp_path: Path) -> None:
    """Only the first of all pods with an affinity to themselves needs no other."""
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "agent"}}}
    rules = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    own = changed(changed(OWN, "metadata.ownerReferences", [OWNER]), "metadata.labels", {"app": "agent"})
    agent = changed(AGENT, "spec.template.spec.affinity", rules)
    items = (machine("runs"), own, machine("g", taints=("gpu=a:NoSchedule",)), changed(agent, "metadata.uid", "1"))
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, *items), "-o", "json")
    preferred = "make podAffinity term 1 (app=agent) preferred instead of required"
    titles = [fix["title"] for fix in json.loads(result.out)["fixes"]]
    assert titles
    assert all(preferred in title for title in titles)


@pytest.mark.parametrize("options", [(), ("--node", "small")])
def test_its_fixes_are_printed_as_patches_of_its_template(options: tuple[str, ...], tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster, *options, "--fix", "1", "-o", "patch")
    assert (result.code, result.err) == (1, "")
    assert result.out.startswith("kubectl patch daemonset.apps agent -n infra --type=json")
    assert '"/spec/template/spec/containers/0/resources", "value": {"requests": {"cpu": "1"}}' in result.out


@pytest.mark.parametrize(
    ("name", "message", "fix"),
    [
        ("runs", "✓ DaemonSet infra/agent: its pod fits runs", None),
        ("small", "✗ DaemonSet infra/agent: its pod stays pending on small: insufficient cpu", "lower requests.cpu"),
        (
            "tainted",
            "✗ DaemonSet infra/agent: its controller creates no pod for tainted: untolerated taint gpu=a:NoSchedule",
            "tolerate gpu=a:NoSchedule",
        ),
    ],
)
def test_a_node_has_its_own_fix(name: str, message: str, fix: str | None, tmp_path: Path) -> None:
    """The verdict of each plugin follows."""
    cluster = write(tmp_path, *(item for item in CLUSTER if at(item, "metadata.name") != "tainted-and-small"))
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster, "--node", name, columns=120)
    assert result.out.startswith(message)
    assert re.search(rf"^[✓✗] {name}: infra/agent", result.out, re.MULTILINE)
    assert result.code == (1 if fix else 0)
    assert re.search(rf"^  fix( 1)? +{fix}", result.out, re.MULTILINE) if fix else "fix" not in result.out


def tied_to(name: str) -> Manifest:
    """Return the pod of the DaemonSet that is pending for a node."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
    required = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    waits = changed(changed(OWN, "spec.nodeName", ""), "spec.affinity", required)
    return changed(waits, "metadata.ownerReferences", [OWNER])


def test_a_pending_pod_without_a_trace_of_kube_scheduler(tmp_path: Path) -> None:
    waits = changed(tied_to("free"), "metadata.creationTimestamp", "2026-01-01T08:00:00Z")
    late = changed(small_pod("late", "1"), "metadata.creationTimestamp", "2026-01-01T09:00:00Z")
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, machine("free"), waits, late, AGENT))
    assert result.code == 0
    assert "no condition or event shows that kube-scheduler has tried 1 pod in 60 minutes" in " ".join(
        result.out.split()
    )


@pytest.mark.parametrize(("effect", "pending"), [("NoSchedule", 1), ("NoExecute", 0)])
def test_a_pending_pod_on_a_node_that_is_tainted_since(effect: str, pending: int, tmp_path: Path) -> None:
    """The controller creates no pod there, and keeps one that exists unless the taint has the effect NoExecute."""
    nodes = machine("free"), machine("new", taints=(f"init=a:{effect}",))
    cluster = write(tmp_path, *nodes, tied_to("new"), AGENT)
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster)
    assert result.code == pending
    assert ("1 pod stays pending" in result.out) is bool(pending)


def test_a_pending_pod_keeps_its_template_until_it_is_deleted(tmp_path: Path) -> None:
    on_delete = changed(AGENT, "spec.updateStrategy", {"type": "OnDelete"})
    waits = changed(tied_to("small"), "metadata.name", "agent-1")
    cluster = write(tmp_path, machine("runs"), machine("small", "1"), waits, on_delete)
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster, "--fix", "1", "-o", "patch")
    patch, *rest = result.out.splitlines()
    assert patch.startswith("kubectl patch daemonset.apps agent -n infra --type=json")
    assert rest == ["kubectl delete pod agent-1 -n infra"]


def test_devices_of_its_own_pods_are_free_for_them(tmp_path: Path) -> None:
    gpus = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    agent = changed(AGENT, "spec.template.spec.resourceClaims", gpus)
    template: Manifest = {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpu", "namespace": "infra"}, "spec": {"spec": {"devices": {"requests": [request()]}}},
    }  # fmt: skip
    of_pod = changed(allocated("mine", "runs", "gpu-0", reserved_for=["agent-1"]), "metadata.namespace", "infra")
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "agent-1", "uid": "2", "controller": True}
    own = changed(changed(OWN, "metadata.ownerReferences", [OWNER]), "spec.resourceClaims", gpus)
    statuses = [{"name": "gpu", "resourceClaimName": "mine"}]
    own = changed(own, "status", {"phase": "Running", "resourceClaimStatuses": statuses})
    devices: list[Manifest] = [resource_slice("runs", device("gpu-0")), device_class(), template]
    claim = changed(of_pod, "metadata.ownerReferences", [owner])
    result = kschedx(
        "why", "ds/agent", "-n", "infra", "-s", write(tmp_path, machine("runs"), *devices, agent, own, claim)
    )
    assert result.out.startswith("✓ DaemonSet infra/agent fits 1 eligible node\n")
    assert result.code == 0


def test_a_daemon_set_that_fits_on_all_its_nodes(tmp_path: Path) -> None:
    result = kschedx(
        "why", "ds/agent", "-n", "infra", "-s", write(tmp_path, machine("runs"), machine("x", disk="h"), AGENT)
    )
    assert result.code == 0
    assert result.out.startswith("✓ DaemonSet infra/agent fits 1 eligible node; 1 node is not eligible")
    assert 'nodeSelector does not match\n  x\n  selector  disk=ssd ✗ the node has "h"\n' in result.out


def test_an_agent_may_tolerate_the_taint_of_gpus(tmp_path: Path) -> None:
    everywhere = changed(AGENT, "spec.template.spec.nodeSelector", {})
    gpu = changed(machine("gpu"), "spec.taints", [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}])
    gpu = changed(gpu, "status.allocatable", {"cpu": "4", "memory": "8Gi", "pods": "9", "nvidia.com/gpu": "8"})
    out = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, machine("runs"), gpu, everywhere)).out
    assert "fix       tolerate nvidia.com/gpu:NoSchedule" in out


@pytest.mark.parametrize("options", [(), ("--alone",)])
def test_a_manifest_among_others_has_a_pod_per_node(options: tuple[str, ...], tmp_path: Path) -> None:
    both = write(tmp_path, AGENT, small_pod("web", "1", namespace="infra"), name="both.yaml")
    cluster = write(tmp_path, *CLUSTER)
    result = kschedx("why", "-f", both, "-s", cluster, *options)
    assert result.code == 1
    assert result.out.startswith(
        "✗ 4 pods: 3 can be scheduled, 1 unschedulable\n\n✗ insufficient cpu, short by 1 CPU, more than"
    )
    assert re.search(r"infra/agent \(DaemonSet\) × 2 → (runs, cordoned|cordoned, runs) ", result.out)


@pytest.mark.parametrize("state", ["new", "stored", "started"])
def test_its_pods_reject_each_other(state: str, tmp_path: Path) -> None:
    """One pod per zone: the second one stays pending, as kube-scheduler reports, and no patch ties all to its node."""
    term = {"topologyKey": "topology.kubernetes.io/zone", "labelSelector": {"matchLabels": {"app": "agent"}}}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    agent = changed(AGENT, "spec.template.spec.affinity", rules)
    labels = {"topology.kubernetes.io/zone": "eu-1", "disk": "ssd"}
    nodes = [changed(machine(name), "metadata.labels", {"kubernetes.io/hostname": name, **labels}) for name in "ab"]
    pods = []
    for number, name in enumerate(("a", "b") if state == "started" else ()):
        names = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]
        tied = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": names}}}
        own = changed(changed(OWN, "metadata.name", f"agent-{name}"), "metadata.uid", f"p{number}")
        own = changed(changed(own, "metadata.ownerReferences", [OWNER]), "metadata.labels", {"app": "agent"})
        own = changed(changed(own, "spec.affinity", {**rules, **tied}), "spec.nodeName", "a" if name == "a" else "")
        pods.append(own)
    written = str(write(tmp_path, agent, name="agent.yaml"))
    cluster = write(tmp_path, *nodes, *pods, *([] if state == "new" else [changed(agent, "metadata.uid", "1")]))
    asked = ("why", written if state == "new" else "ds/agent", "-n", "infra", "-s", cluster)
    result = kschedx(*asked)
    assert (result.code, result.err) == (1, "")
    first = "DaemonSet infra/agent fits 1 of 2 eligible nodes; 1 pod stays pending"
    assert first in result.out
    assert "make podAntiAffinity term 1 (app=agent) preferred instead of required" in result.out
    assert kschedx(*asked, "--node", "b").code == 1
    patch = kschedx(*asked, "--fix", "1", "-o", "patch").out
    assert "podAntiAffinity" in patch
    assert "matchFields" not in patch


def test_a_smaller_template_replaces_a_pending_pod_that_a_spread_constraint_counts(tmp_path: Path) -> None:
    """`why FILE` and `simulate --apply FILE` agree."""
    constraint = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule"}
    spread = [{**constraint, "labelSelector": {"matchLabels": {"app": "agent"}}}]
    agent = changed(AGENT, "spec.template.spec.topologySpreadConstraints", spread)
    waits = changed(tied_to("small"), "metadata.labels", {"app": "agent"})
    waits = changed(waits, "spec.topologySpreadConstraints", spread)
    cluster = write(tmp_path, machine("runs"), machine("small", "1"), waits, changed(agent, "metadata.uid", "1"))
    assert kschedx("why", "ds/agent", "-n", "infra", "-s", cluster).code == 1
    request = {"requests": {"cpu": "1"}}
    smaller = write(tmp_path, changed(agent, "spec.template.spec.containers.0.resources", request), name="agent.yaml")
    result = kschedx("why", smaller, "-n", "infra", "-s", cluster)
    assert result.out.startswith("✓ DaemonSet infra/agent fits 2 eligible nodes")
    assert (result.code, kschedx("simulate", "--apply", smaller, "-n", "infra", "-s", cluster).code) == (0, 0)


def test_a_restart_that_has_no_room_for_its_surge(tmp_path: Path) -> None:
    surge = {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    own = changed(changed(OWN, "metadata.ownerReferences", [OWNER]), "metadata.labels", {"app": "agent"})
    agent = changed(changed(AGENT, "spec.updateStrategy", surge), "metadata.uid", "1")
    cluster = write(tmp_path, machine("runs"), own, agent)
    result = kschedx("why", "ds/agent", "--restart", "ds/agent", "-n", "infra", "-s", cluster)
    assert (result.code, "its rollout stalls" in result.out) == (1, True)
    assert kschedx("simulate", "--restart", "ds/agent", "-n", "infra", "-s", cluster).code == 1


def test_a_daemon_set_without_matching_nodes(tmp_path: Path) -> None:
    cluster = write(tmp_path, machine("a", disk="hdd"), machine("b", disk="hdd"), AGENT)
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster)
    assert result.code == 1
    lines = result.out.splitlines()
    assert lines[0] == "✗ DaemonSet infra/agent selects none of 2 nodes"
    assert lines[1] == "  because   2 nodes do not match disk=ssd"
    assert lines[2] == "  fix 1     stop requiring disk=ssd · fits a, b"
    assert '  selector  disk=ssd ✗ the node has "hdd"' in lines


def test_a_rollout_names_the_lost_node_that_blocks_it(tmp_path: Path) -> None:
    lost = machine("gone", taints=("node.kubernetes.io/unreachable:NoSchedule",))
    pods = [changed(changed(OWN, "metadata.ownerReferences", [OWNER]), "metadata.name", name) for name in ("a", "b")]
    pods[1] = changed(pods[1], "spec.nodeName", "gone")
    agent = {**AGENT, "status": {"desiredNumberScheduled": 2, "updatedNumberScheduled": 1}}
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, machine("runs"), lost, *pods, agent))
    headline = "‖ infra/ds/agent stalls in its rollout (1 of 2 pods updated): gone is unreachable"
    assert (result.code, result.out.splitlines()[0]) == (0, headline)
    assert "fix       repair gone, or delete the node if its machine is gone" in result.out


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        (
            {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "missing"}}]},
            [
                "✗ DaemonSet infra/agent: its pods stay pending",
                "  because   claim infra/missing does not exist",
                '  event     0/1 nodes are available: persistentvolumeclaim "missing" not found. not found',
            ],
        ),
        ({"schedulingGates": [{"name": "a/b"}]}, ["‖ DaemonSet infra/agent: its pods are gated"]),
        ({"schedulerName": "volcano"}, ["? DaemonSet infra/agent: kschedx cannot decide about its pods"]),
    ],
)
def test_pods_that_are_pending_regardless_of_nodes(spec: Manifest, expected: list[str], tmp_path: Path) -> None:
    stopped = changed(AGENT, "spec.template.spec", {**at(AGENT, "spec.template.spec"), **spec})
    result = kschedx("why", "ds/agent", "-n", "infra", "-s", write(tmp_path, machine("a"), stopped))
    assert [line for line in result.out.splitlines() if line in expected] == expected


@pytest.mark.sample(2)
@pytest.mark.parametrize(("options", "code"), [((), 1), (("--node", "runs"), 0), (("--node", "small"), 1)])
def test_all_output_forms_have_the_same_outcome(options: tuple[str, ...], code: int, tmp_path: Path) -> None:
    cluster = write(tmp_path, *CLUSTER)
    heads = {}
    for form in ("wide", "json", "markdown", "html", "svg", "junit", "sarif", "name"):
        result = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster, *options, "-o", form, columns=200)
        assert result.code == code, form
        heads[form] = unescape(result.out)
    headline = heads["wide"].splitlines()[0].removeprefix("✗ ").removeprefix("✓ ")
    assert all(headline in heads[form] for form in ("markdown", "html", "svg"))
    assert all((headline in heads[form]) == bool(code) for form in ("junit", "sarif"))


@pytest.mark.parametrize(
    ("condition", "priority", "runs", "code"),
    [
        ("DiskPressure", 0, False, 1),
        ("PIDPressure", 0, False, 1),
        ("MemoryPressure", 0, False, 0),
        ("DiskPressure", 2_000_000_000, False, 0),
        ("DiskPressure", 0, True, 0),
    ],
    ids=["disk", "processes", "memory", "critical", "runs already"],
)
def test_a_kubelet_rejects_its_pod_while_the_node_has_pressure(
    tmp_path: Path, condition: str, priority: int, code: int, *, runs: bool
) -> None:
    """pkg/kubelet/eviction: a DaemonSet tolerates the taint, and the kubelet admits only critical pods."""
    pressed = machine("pressed", taints=(f"node.kubernetes.io/{condition[:-8].lower()}-pressure=:NoSchedule",))
    at(pressed, "status")["conditions"] = [{"type": condition, "status": "True"}]
    agent = changed(AGENT, "spec.template.spec.priority", priority)
    if priority:
        agent = changed(agent, "spec.template.spec.priorityClassName", "system-cluster-critical")
    own = changed(changed(OWN, "metadata.ownerReferences", [OWNER]), "spec.nodeName", "pressed")
    cluster = write(tmp_path, pressed, machine("free"), agent, *([own] if runs else []))
    every = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster)
    there = kschedx("why", "ds/agent", "-n", "infra", "-s", cluster, "--node", "pressed")
    assert (every.code, there.code) == (code, code)
    if code:
        assert f"pod cannot start, its kubelet rejects pods, because it has {condition}\n  pressed" in every.out
        assert "fix       free " in there.out


@pytest.mark.parametrize("node_of_pod", ["small", "runs"])
def test_old_pods_of_on_delete_stay_until_they_are_deleted(node_of_pod: str, tmp_path: Path) -> None:
    stored = changed(changed(AGENT, "spec.updateStrategy", {"type": "OnDelete"}), "metadata.uid", "1")
    old = changed(changed(OWN, "metadata.ownerReferences", [OWNER]), "spec.nodeName", node_of_pod)
    old = changed(old, "metadata.labels", {"app": "agent"})
    larger = {"requests": {"cpu": "2500m"}}
    container = {**at(small_pod("agent", "2"), "spec")["containers"][0], "resources": larger}
    new = changed(stored, "spec.template.spec.containers", [container])
    file = write(tmp_path, new, name="agent.yaml")
    cluster = write(tmp_path, machine("runs"), machine("small", "1"), stored, old)
    question = ("why", file, "-n", "infra", "-s", cluster)
    keeps = "DaemonSet infra/agent keeps 1 pod of the previous template"
    whole, one = kschedx(*question), kschedx(*question, "--node", node_of_pod)
    assert one.out.startswith(f"✓ DaemonSet infra/agent: its pod on {node_of_pod} keeps the previous template\n")
    assert one.code == 0
    if node_of_pod == "small":  # the new template does not fit there, and fits the other node
        assert whole.out.startswith("✓ DaemonSet infra/agent fits 1 of 2 eligible nodes; keeps 1 pod of the previous")
        assert "once it is gone, its pod stays pending on small: insufficient cpu" in one.out
    else:
        assert whole.out.startswith(f"✗ {keeps}; 1 pod stays pending\n")
        assert "once it is gone, its pod fits runs" in one.out
    assert whole.code == int(node_of_pod == "runs")
    simulated = kschedx("simulate", "-f", file, "-n", "infra", "-s", cluster)
    assert simulated.code == whole.code
