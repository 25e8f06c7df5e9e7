"""Node usage after a profile has placed every pod."""

from __future__ import annotations

import pickle

from kschedx.cli.files import configuration
from kschedx.explain.setup import Setup
from kschedx.releases import resolve
from kschedx.simulate.repack import RepackedNodes, compare_repacking, measure_filling, repack
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

OFFERED = {"cpu": "4", "memory": "8Gi", "pods": "110"}


def setup(profile: str) -> Setup:
    return Setup.of(profile, configuration(profile), resolve())


def cluster(*pods: Manifest) -> Snapshot:
    return Snapshot.from_objects([*(node(f"node-{number}", allocatable=OFFERED) for number in range(3)), *pods])


def asking(name: str, cpu: str, on: str) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": {"cpu": cpu}}}])


def test_packing_uses_fewer_nodes_than_spreading() -> None:
    snapshot = cluster(*(asking(f"web-{number}", "1", f"node-{number % 3}") for number in range(4)))
    rows = range(4)
    both = [repack(snapshot, setup(profile), rows) for profile in ("default", "binpack")]
    assert pickle.loads(pickle.dumps(both)) == both  # a worker process sends them
    spread, packed = (item.filling for item in both)
    assert spread.in_use == 3
    assert (packed.in_use, packed.unused, packed.percent("cpu")) == (1, ("node-1", "node-2"), 100)
    moves = compare_repacking(spread, *both).moves
    assert sum(moves.values()) == 4
    assert {new for _, new in moves} == {"node-0"}


def test_other_pods_stay() -> None:
    snapshot = cluster(asking("web-0", "1", "node-0"), asking("db-0", "3", "node-2"))
    result = repack(snapshot, setup("binpack"), [0]).filling
    assert result.unused == ("node-0", "node-1")


def test_a_node_with_only_daemon_set_pods_is_not_in_use() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1", "controller": True}
    daemon = pod("agent-0", on="node-0", metadata={"ownerReferences": [owner]})
    nodes = setup("default").scheduler.on_cluster(cluster(daemon, asking("web-0", "1", "node-1"))).nodes
    assert measure_filling(nodes).unused == ("node-0", "node-2")


def test_unplaced_pods_are_reported() -> None:
    result = repack(
        cluster(*(asking(f"web-{number}", "3", "node-0") for number in range(4))), setup("default"), range(4)
    ).filling
    assert (result.in_use, result.pending) == (3, ("default/web-3",))


def test_an_overcommitted_node_has_no_free_capacity() -> None:
    """Of 3 free CPUs, node-2 has the one on which no pod of 2 fits; node-0 has less than none."""
    running = [asking("huge", "6", "node-0"), asking("web", "2", "node-1"), asking("db", "3", "node-2")]
    snapshot = cluster(*running)
    now = RepackedNodes.of_now(snapshot, setup("default"), [snapshot.pods.rows["default/web"]])
    assert round(now.fragmentation, 1) == 33.3
