"""NoExecute taints: evicted, recreated, and remaining pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import kschedx
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod
from tests.command import kschedx as run_kschedx
from tests.simulate.clusters import deployment, nodes

NO_EXECUTE = {"taint": "node-1:maintenance=now:NoExecute"}
TOLERATED: Manifest = {"key": "maintenance", "operator": "Exists", "effect": "NoExecute"}


def named(name: str, *tolerations: Mapping[str, object], kind: str = "", on: str = "node-1") -> Manifest:
    """Return a pod on node-1 of a controller of this kind."""
    owner = {"apiVersion": "v1", "kind": kind, "name": "it", "uid": "it", "controller": True}
    metadata: Manifest = {"namespace": "shop", "ownerReferences": [owner] if kind else []}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    return pod(name, on=on, metadata=metadata, spec={"tolerations": [*tolerations], "containers": containers})


@pytest.mark.parametrize(
    ("manifest", "evicted", "gone"),
    [
        (named("web", kind="ReplicaSet"), True, False),
        (named("alone"), False, True),
        (named("static", kind="Node"), False, False),
        (named("web", TOLERATED, kind="ReplicaSet"), False, False),
        (named("web", {"operator": "Exists"}, kind="ReplicaSet"), False, False),
        (named("web", {**TOLERATED, "tolerationSeconds": 300}, kind="ReplicaSet"), True, False),
        (named("web", {**TOLERATED, "effect": "NoSchedule"}, kind="ReplicaSet"), True, False),
        (named("web", kind="ReplicaSet", on="node-2"), False, False),
    ],
    ids=["comes back", "for good", "static", "tolerates", "tolerates all", "for a while", "not this", "elsewhere"],
)
def test_evicted_pods(manifest: Manifest, evicted: bool, gone: bool) -> None:
    simulation = kschedx.simulate(Snapshot.from_objects([*nodes(), manifest]), changes=[NO_EXECUTE])
    [effect] = simulation.effects
    assert (bool(effect.evicted), bool(effect.gone)) == (evicted, gone)
    assert len(simulation.placed) == int(evicted)
    assert len(simulation.after.pods) == int(not gone)


def test_an_existing_taint_evicts_no_pod() -> None:
    old = node("node-1", allocatable={"cpu": "4"}, taints=["old=a:NoExecute"])
    snapshot = Snapshot.from_objects([old, named("web", kind="ReplicaSet")])
    assert not kschedx.simulate(snapshot, changes=[{"label": "node-1:rack=7"}]).effects[0].evicted
    assert not kschedx.simulate(snapshot, changes=[{"taint": "node-1:new=a:NoSchedule"}]).effects[0].evicted
    assert kschedx.simulate(snapshot, changes=[{"taint": "node-1:new=a:NoExecute"}]).effects[0].evicted


def test_a_lost_node_accepts_no_pods() -> None:
    """Every pod tolerates the taint for five minutes, and the node controller also adds NoSchedule."""
    lost = "node.kubernetes.io/unreachable"
    waits = {"key": lost, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    snapshot = Snapshot.from_objects([*nodes(("8", "1")), named("web", waits, kind="ReplicaSet")])
    simulation = kschedx.simulate(snapshot, changes=[{"taint": f"node-1:{lost}:NoExecute"}])
    assert simulation.placed == {"shop/web": "node-2"}
    assert [str(taint) for taint in simulation.after.cluster.nodes[0].spec.taints] == [
        f"{lost}:NoExecute",
        f"{lost}:NoSchedule",
    ]


@pytest.mark.parametrize(
    ("kind", "taint", "placed"),
    [
        ("StatefulSet", "unreachable", []),
        ("StatefulSet", "not-ready", ["shop/web-0"]),
        ("StatefulSet", "out-of-service", ["shop/web-0"]),
        ("ReplicaSet", "unreachable", ["shop/web-0"]),
    ],
)
def test_a_deletion_that_no_kubelet_confirms_delays_the_next_pod(kind: str, taint: str, placed: list[str]) -> None:
    first = node("node-1", taints=[f"node.kubernetes.io/{taint}:NoSchedule", "node.kubernetes.io/not-ready:NoSchedule"])
    snapshot = Snapshot.from_objects([first, *nodes()[1:], named("web-0", kind=kind)])
    simulation = kschedx.simulate(snapshot, changes=[{"delete": "pod/web-0"}], namespace="shop")
    assert [*simulation.placed] == placed
    [effect] = simulation.effects
    assert effect.terminating == (() if placed else ("shop/web-0",))
    assert ("shop/web-0 stays Terminating" in str(simulation)) != bool(placed)


@pytest.mark.parametrize("is_deleted", [False, True])
@pytest.mark.parametrize(
    "change", [{"remove-node": "node-1"}, {"taint": "node-1:node.kubernetes.io/out-of-service=a:NoExecute"}], ids=str
)
def test_the_pods_of_a_node_that_is_gone_are_recreated(change: Mapping[str, str], *, is_deleted: bool) -> None:
    first = node("node-1", taints=["node.kubernetes.io/unreachable:NoSchedule"])
    snapshot = Snapshot.from_objects([first, *nodes()[1:], named("web-0", kind="StatefulSet")])
    changes = [*([{"delete": "pod/web-0"}] if is_deleted else []), change]
    simulation = kschedx.simulate(snapshot, changes=changes, namespace="shop")
    assert simulation.placed == {"shop/web-0": "node-2"}
    assert (simulation.effects[-1].evicted, simulation.effects[-1].terminating) == (("shop/web-0",), ())


def test_pods_without_a_controller_are_not_recreated() -> None:
    snapshot = Snapshot.from_objects([*nodes(), named("web", kind="ReplicaSet")])
    for change in (NO_EXECUTE, {"remove-node": "node-1"}):
        simulation = kschedx.simulate(snapshot, changes=[change], recreate=False)
        assert ([*simulation.placed], simulation.effects[0].gone, len(simulation.after.pods)) == ([], ("shop/web",), 0)


def test_the_screen_names_pods_that_lost_their_node(tmp_path: Path) -> None:
    objects = [*nodes(("8", "1")), *deployment("web", "1", ["node-1"] * 3), named("alone")]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = run_kschedx("simulate", "--taint", "node-1:a=b:NoExecute", "-s", path)
    assert "shop/alone will not be recreated" in " ".join(result.out.split())
    assert result.code == 1
