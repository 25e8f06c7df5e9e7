"""An edited snapshot equals one that was loaded with the edits."""

from __future__ import annotations

import numpy as np
import pytest

from kschedx.framework.runtime import request_options
from kschedx.releases import resolve
from kschedx.snapshot.columns import Column, cluster_rows
from kschedx.snapshot.edits import with_changed_nodes, with_only_pods, with_pods, without_nodes
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

OPTIONS = request_options(resolve())
NODES = [node("a", labels={"zone": "1"}), node("b"), node("c", taints=["x=y:NoSchedule"])]
ASKS = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
PODS = [
    pod("first", on="a", labels={"app": "web"}, containers=ASKS),
    pod("second", on="b", namespace="shop", status={"startTime": "2026-01-01T00:00:00Z"}),
    pod("waits", priority=7, labels={"app": "web"}),
    pod("done", on="c", status={"phase": "Succeeded"}),
]


def loaded(*objects: Manifest) -> Snapshot:
    return Snapshot.from_objects(objects)


def same(snapshot: Snapshot, other: Snapshot) -> None:
    for name in PodTable.__struct_fields__:
        if name in ("grouped", "derived", "_requests", "without_priority"):
            continue
        first, second = getattr(snapshot.pods, name), getattr(other.pods, name)
        if isinstance(first, Column):
            first, second = (
                list(map(first.__getitem__, range(len(first)))),
                list(map(second.__getitem__, range(len(second)))),
            )
        np.testing.assert_equal(first, second, err_msg=name)
    assert [snapshot.pods[row] for row in range(len(snapshot.pods))] == [
        other.pods[row] for row in range(len(other.pods))
    ]
    assert snapshot.cluster.nodes == other.cluster.nodes
    mine, theirs = snapshot.nodes(OPTIONS), other.nodes(OPTIONS)
    np.testing.assert_array_equal(mine.requested, theirs.requested)
    np.testing.assert_array_equal(mine.pod_count, theirs.pod_count)
    assert snapshot.pods.pending == other.pods.pending


@pytest.mark.parametrize("known", range(len(PODS) + 1))
def test_added_pods(known: int) -> None:
    every = loaded(*NODES, *PODS)
    new = [every.pods[row] for row in range(known, len(PODS))]
    same(with_pods(loaded(*NODES, *PODS[:known]), new), every)


def test_a_node_without_pods_copies_no_column() -> None:
    pods = loaded(*NODES, *PODS).pods
    none = np.empty(0, dtype=np.int64)
    grown = pods.with_copies(none, cluster_rows([]), pods.node_count + 1)
    assert grown.node_count == pods.node_count + 1
    assert grown.names is pods.names
    assert grown.specs is pods.specs


def test_removed_pods() -> None:
    rows = np.array([1, 2])
    same(with_only_pods(loaded(*NODES, *PODS), rows), loaded(*NODES, PODS[1], PODS[2]))


def test_a_removed_node_takes_its_pods() -> None:
    same(without_nodes(loaded(*NODES, *PODS), {0}), loaded(NODES[1], NODES[2], *PODS[1:]))


def test_changed_and_added_nodes() -> None:
    changed, new = node("b", labels={"zone": "2"}), node("d")
    wanted = loaded(NODES[0], changed, NODES[2], new, *PODS)
    same(with_changed_nodes(loaded(*NODES, *PODS), loaded(changed, new).cluster.nodes), wanted)
