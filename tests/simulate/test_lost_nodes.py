"""Rollouts with pods on a lost node: nothing confirms that a deleted pod has stopped, so one with a name or node of its
own stays terminating and is not replaced, and strategy Recreate waits for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import kschedx
from kschedx.inquiry.simulation import Simulation
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx as command

TAINTS = [f"node.kubernetes.io/unreachable:{effect}" for effect in ("NoSchedule", "NoExecute")]


def machine(name: str, *, is_lost: bool = False) -> Manifest:
    taints = TAINTS if is_lost else []
    allocatable = {"cpu": "8", "memory": "8Gi", "pods": "20"}
    built = node(name, labels={"kubernetes.io/hostname": name}, allocatable=allocatable, taints=taints)
    at(built, "status")["conditions"] = [{"type": "Ready", "status": "Unknown" if is_lost else "True"}]
    return built


def workload(kind: str, image: str, spec: Mapping[str, object]) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, **spec},
    }


def member(name: str, kind: str, on: str, owner: str = "web", **metadata: object) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": "u", "controller": True}
    spec = {"containers": [{"name": "c", "image": "x:1"}]}
    ready = "False" if on == "a" else "True"
    status = {"phase": "Running", "conditions": [{"type": "Ready", "status": ready}]}
    built = pod(name, on=on, labels={"app": "web"}, spec=spec, status=status)
    at(built, "metadata").update({"ownerReferences": [reference], **metadata})
    return built


MACHINES = [machine("a", is_lost=True), machine("b"), machine("c")]
IN_PARALLEL = {"replicas": 3, "serviceName": "web", "podManagementPolicy": "Parallel"}


def rolled_out(kind: str, names: dict[str, str], **spec: object) -> Simulation:
    pods = [member(name, kind, on) for name, on in names.items()]
    snapshot = Snapshot.from_objects([*MACHINES, workload(kind, "x:1", spec), *pods])
    return kschedx.simulate(snapshot, changes=[{"apply": workload(kind, "x:2", spec)}])


@pytest.mark.parametrize(
    ("kind", "names", "spec", "replaced"),
    [
        ("DaemonSet", {"web-a": "a", "web-b": "b", "web-c": "c"}, {}, 0),
        (
            "DaemonSet",
            {"web-a": "a", "web-b": "b", "web-c": "c"},
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            2,
        ),
        ("StatefulSet", {"web-0": "b", "web-1": "a", "web-2": "c"}, IN_PARALLEL, 1),
        ("StatefulSet", {"web-0": "b", "web-1": "c", "web-2": "a"}, IN_PARALLEL, 0),
    ],
    ids=["a DaemonSet", "a DaemonSet, 2 at a time", "a middle ordinal", "the last ordinal"],
)
def test_a_pod_on_a_lost_node_is_not_replaced(
    kind: str, names: dict[str, str], spec: dict[str, object], replaced: int
) -> None:
    [rollout] = rolled_out(kind, names, **spec).rolled_out
    lost = next(name for name, on in names.items() if on == "a")
    assert (rollout.replaced, rollout.kept, rollout.stalls) == (replaced, (f"default/{lost}",), True)


def replica_set(name: str, image: str, revision: str) -> Manifest:
    built = workload("ReplicaSet", image, {"replicas": 0})
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    annotations = {"deployment.kubernetes.io/revision": revision}
    return built | {
        "metadata": {"name": name, "namespace": "default", "annotations": annotations, "ownerReferences": [owner]}
    }


RECREATED = [
    workload("Deployment", "x:2", {"replicas": 2, "strategy": {"type": "Recreate"}}),
    replica_set("web-1", "x:1", "1"),
    member("web-1-x", "ReplicaSet", "a", "web-1", deletionTimestamp="2026-05-02T00:00:00Z"),
]


@pytest.mark.parametrize(
    "change",
    [{"remove-node": "a"}, {"taint": "a:node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"}],
    ids=["the node is removed", "the node is out of service"],
)
def test_a_recreate_rollout_goes_on_once_the_lost_node_is_gone(change: dict[str, object]) -> None:
    simulation = kschedx.simulate(Snapshot.from_objects([*MACHINES, *RECREATED]), changes=[change])
    assert {*simulation.placed.values()} == {"b", "c"}
    assert not any(effect.evicted for effect in simulation.effects)


def test_a_recreate_rollout_waits_for_a_second_lost_node() -> None:
    second = member("web-1-y", "ReplicaSet", "d", "web-1", deletionTimestamp="2026-05-02T00:00:00Z")
    objects = [*MACHINES, machine("d", is_lost=True), *RECREATED, second]
    simulation = kschedx.simulate(Snapshot.from_objects(objects), changes=[{"remove-node": "a"}])
    assert not simulation.placed
    assert [rollout.kept for rollout in simulation.rolled_out] == [("default/web-1-y",)]


def test_the_missing_pods_of_several_replicas_are_not_created(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*MACHINES, *RECREATED]}))
    out = command("why", "--all-pending", "-s", str(path)).out
    assert "✗ 2 pods: not created: its rollout waits for web-1-x on unreachable a" in out


@pytest.mark.parametrize(
    ("kind", "on", "finalizers", "cause"),
    [
        ("StatefulSet", "a", [], "no kubelet answers for node a"),
        ("StatefulSet", "b", ["example.com/hold"], "finalizer example.com/hold"),
        ("StatefulSet", "b", [], ""),
        ("ReplicaSet", "a", [], ""),
    ],
)
def test_a_pod_for_whose_end_its_controller_waits_is_named(
    kind: str, on: str, finalizers: list[str], cause: str, tmp_path: Path
) -> None:
    going = member("web-0", kind, on, deletionTimestamp="2026-06-01T08:00:00Z", finalizers=finalizers)
    others = [] if kind == "StatefulSet" else [member("web-1", kind, "b")]
    objects = [*MACHINES, workload(kind, "x:1", {"replicas": 1, "serviceName": "web"}), going, *others]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    for question in (("simulate",), ("why", "--all-pending")):
        result = command(*question, "-s", "cluster.json", cwd=tmp_path)
        assert (result.code, "1 pod" in result.out, cause in result.out) == (bool(cause), bool(cause), True)
