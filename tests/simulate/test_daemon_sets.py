"""Applied DaemonSets, and DaemonSets whose pods run on new nodes."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kschedx.explain.setup import Setup
from kschedx.inquiry.fit import fit
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.what_if import simulate
from kschedx.simulate.changes import parse_changes
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod


def daemon_set(spec: Mapping[str, object] | None = None, *, cpu: str = "1") -> Manifest:
    containers = [{"name": "main", "image": "agent:1", "resources": {"requests": {"cpu": cpu}}}]
    template = {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": containers, **(spec or {})}}
    selector = {"matchLabels": {"app": "agent"}}
    metadata = {"name": "agent", "namespace": "infra"}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": metadata,
        "spec": {"selector": selector, "template": template},
    }


def its_pod(on: str, cpu: str = "1", name: str = "agent-a") -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    metadata = {"namespace": "infra", "ownerReferences": [owner], "labels": {"app": "agent"}}
    field = {"key": "metadata.name", "operator": "In", "values": [on]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec = {"affinity": {"nodeAffinity": required}}
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]
    return pod(name, on=on, metadata=metadata, spec={**spec, "containers": containers})


def machine(name: str, *, disk: str = "ssd", taints: tuple[str, ...] = ()) -> Manifest:
    labels = {"kubernetes.io/hostname": name, "disk": disk}
    allocatable = {"cpu": "2", "memory": "8Gi", "pods": "110"}
    return node(name, labels=labels, allocatable=allocatable, taints=list(taints))


def simulated(objects: list[Manifest], *written: Mapping[str, object]) -> Simulation:
    snapshot = Snapshot.from_objects(objects)
    return simulate(snapshot, Setup.of_cluster(snapshot), parse_changes(written, lambda path: []))


def on_nodes(simulation: Simulation) -> list[str]:
    pods = simulation.after.pods
    return sorted(pods.node_names[row] for row in range(len(pods)) if pods.namespaces[row] == "infra")


NODES = [machine("a"), machine("b", disk="hdd"), machine("c", taints=("gpu=a:NoSchedule",))]
NODES.append(machine("d", taints=("node.kubernetes.io/unschedulable=:NoSchedule",)))
SSD = {"nodeSelector": {"disk": "ssd"}}
BY_AFFINITY = {
    "affinity": {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}]
            }
        }
    }
}
ALL = {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, ["a", "b", "d"]),
        (SSD, ["a", "d"]),
        (BY_AFFINITY, ["a", "d"]),
        (ALL, ["a", "b", "c", "d"]),
        ({"nodeName": "b"}, ["b"]),
        ({"nodeSelector": {"disk": "tape"}}, []),
    ],
    ids=["no rule", "selector", "affinity", "tolerations", "name", "none"],
)
def test_a_pod_for_each_node_that_the_template_allows(spec: Mapping[str, object], expected: list[str]) -> None:
    simulation = simulated(NODES, {"apply": [daemon_set(spec)]})
    assert on_nodes(simulation) == expected
    assert simulation.pending == ()


def test_its_pod_is_pending_for_its_own_node_only() -> None:
    busy = pod("busy", on="a", containers=[{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}])
    simulation = simulated([*NODES, busy], {"apply": [daemon_set()]})
    assert on_nodes(simulation) == ["", "b", "d"]
    [message] = simulation.messages.values()
    assert message.startswith("0/4 nodes are available: 1 Insufficient cpu, 3 node(s) didn't satisfy plugin(s)")


def test_nodes_that_have_its_pod_get_no_other() -> None:
    simulation = simulated([*NODES, daemon_set(), its_pod("a")], {"apply": [daemon_set()]})
    assert on_nodes(simulation) == ["a", "b", "d"]
    assert len(simulation.placed) == 2


def test_a_new_template_recreates_its_pods() -> None:
    simulation = simulated(
        [*NODES, daemon_set(), its_pod("a"), its_pod("b", name="agent-b")], {"apply": [daemon_set(cpu="2")]}
    )
    assert on_nodes(simulation) == ["a", "b", "d"]
    assert len(simulation.placed) == 3


@pytest.mark.parametrize(("hard", "refused"), [("3", 0), ("2", 1)], ids=["room", "too little"])
def test_quotas_count_pods_on_new_nodes(hard: str, refused: int) -> None:
    """A pod runs on node a, and two nodes are added."""
    quota: Manifest = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "q", "namespace": "infra"},
        "spec": {"hard": {"pods": hard}},
    }
    simulation = simulated([*NODES, daemon_set(), its_pod("a"), quota], {"add-nodes": "2=b"})
    assert len(on_nodes(simulation)) == 3 - refused
    assert [workload.refused for workload in simulation.workloads] == [refused] * bool(refused)
    assert simulation.is_done is not bool(refused)


@pytest.mark.parametrize(
    "there",
    [[daemon_set()], [its_pod("a")], [daemon_set(BY_AFFINITY), its_pod("a")]],
    ids=["template", "running", "both"],
)
def test_new_nodes_run_pods_of_daemon_sets(there: list[Manifest]) -> None:
    simulation = simulated([*NODES, *there], {"add-nodes": "2=a"})
    assert [name for name in on_nodes(simulation) if "new" in name] == ["a-new1", "a-new2"]
    cut = simulated([*NODES, daemon_set(BY_AFFINITY), its_pod("a")], {"add-nodes": "2=b"})
    assert on_nodes(cut) == ["a"], "what the template requires holds for new nodes"


def test_new_nodes_run_pods_of_applied_daemon_sets() -> None:
    simulation = simulated([machine("a")], {"apply": [daemon_set()]}, {"add-nodes": "1=a"})
    assert on_nodes(simulation) == ["a", "a-new1"]


@pytest.mark.parametrize(("there", "nodes"), [([], 1), ([its_pod("a")], 2)], ids=["alone", "beside an agent"])
def test_proposed_nodes_run_pods_of_daemon_sets(there: list[Manifest], nodes: int) -> None:
    """A node of 2 cpu has room for two pods of 1 cpu, or for one beside the pod of the DaemonSet."""
    result = pod("me", containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}])
    filled = pod("full", on="a", containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}])
    more = (
        [] if there else [pod("full2", on="a", containers=[{"name": "main", "resources": {"requests": {"cpu": "1"}}}])]
    )
    snapshot = Snapshot.from_objects([machine("a"), filled, *more, *there, result])
    me = snapshot.pods[snapshot.pods.rows["default/me"]]
    result_result = fit(snapshot, Setup.of_cluster(snapshot), me, wanted=2)
    assert [(item.like, item.nodes) for item in result_result.missing] == [("a", nodes)]


GPU: Manifest = {"tolerations": [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]}


@pytest.mark.parametrize(
    ("spec", "there", "change", "expected"),
    [
        (SSD, ["a"], {"label": "b:disk=ssd"}, ["a", "b"]),
        (SSD, ["a"], {"label": "a:disk=hdd"}, []),
        (SSD, ["a"], {"label": "a:rack=7"}, ["a"]),
        ({}, ["a"], {"taint": "a:gpu=b:NoSchedule"}, ["a"]),
        ({}, ["a"], {"taint": "a:gpu=b:NoExecute"}, []),
        (ALL, ["a"], {"taint": "a:gpu=b:NoExecute"}, ["a"]),
        ({}, ["a", "b"], {"taint": "c:gpu-"}, ["a", "b", "c"]),
        (GPU, ["a"], {"taint": "a:gpu=b:NoSchedule"}, ["a"]),
        ({}, ["a", "b", "d"], {"uncordon": "d"}, ["a", "b", "d"]),
        ({}, ["a"], {"taint": "a:node.kubernetes.io/unreachable:NoExecute"}, ["a"]),
        (SSD, ["a"], {"set": "node/b:metadata.labels.disk=ssd"}, ["a", "b"]),
        (SSD, ["a"], {"apply": [machine("b")]}, ["a", "b"]),
        (SSD, ["a"], {"apply": [machine("e")]}, ["a", "e"]),
    ],
    ids=[
        *("a node becomes its", "a node is its no longer", "another label", "a taint keeps none away that is there"),
        *("a taint drives it off", "it tolerates that", "a taint goes", "a taint that it tolerates", "uncordon"),
        *("a missing node lost", "by field", "by manifest", "a new node"),
    ],
)
def test_its_pods_follow_labels_and_taints(
    spec: Mapping[str, object], there: list[str], change: Mapping[str, object], expected: list[str]
) -> None:
    tolerations = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        for key, effect in (("unreachable", "NoExecute"), ("unschedulable", "NoSchedule"))
    ]
    own = spec.get("tolerations")
    objects = [*NODES, daemon_set(spec)]
    for name in there:
        result = its_pod(name, name=f"agent-{name}")
        every = [*tolerations, *(own if isinstance(own, list) else [])]
        result["spec"] = {**at(result, "spec"), **spec, "tolerations": every}
        objects.append(result)
    simulation = simulated(objects, change)
    assert [name for name in on_nodes(simulation) if name] == expected
    assert not simulation.pending
