"""A moving cluster equals one that was built with the moves."""

from __future__ import annotations

import random

import numpy as np
import pytest

from kschedx.framework.runtime import request_options
from kschedx.releases import resolve
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import node, pod

OPTIONS = request_options(resolve(None, None))


def cluster() -> Snapshot:
    nodes = [node(f"node-{i}") for i in range(4)]
    running = [pod(f"running-{i}", on=f"node-{i % 4}", containers=asking("500m")) for i in range(8)]
    waiting = [pod(f"waits-{i}", containers=asking("300m")) for i in range(4)]
    return Snapshot.from_objects([*nodes, *running, *waiting])


def asking(cpu: str) -> list[dict[str, object]]:
    return [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]


def same_as_built(moving: MovingCluster) -> None:
    here, built = moving.snapshot, moving.frozen()
    table, anew = here.nodes(OPTIONS), NodeTable.of(built.cluster, built.pods, OPTIONS)
    np.testing.assert_array_equal(table.requested, anew.requested)
    np.testing.assert_array_equal(table.nonzero_requested, anew.nonzero_requested)
    np.testing.assert_array_equal(table.pod_count, anew.pod_count)
    for row in table.each():
        np.testing.assert_array_equal(table.pods_on(row), anew.pods_on(row))
    assert here.pods.pending == built.pods.pending
    assert here.pods.nominated == built.pods.nominated


@pytest.mark.parametrize("seed", range(5))
def test_moves_add_up_and_can_be_undone(seed: int) -> None:
    dice = random.Random(seed)
    moving = MovingCluster(cluster())
    moving.snapshot.nodes(OPTIONS)
    before = moving.frozen()
    for _ in range(30):
        row = dice.randrange(len(moving.pods))
        some = dice.sample(range(len(moving.pods)), k=5)
        if dice.random() < 0.3:
            moving.remove_many([item for item in some if moving.pods.node[item] >= 0])
            some = [item for item in some if moving.pods.node[item] < 0]
            moving.place_many(
                np.array(some, dtype=np.int64), np.array([dice.randrange(4) for _ in some], dtype=np.int64)
            )
        elif moving.pods.node[row] < 0:
            moving.place(row, ClusterRow(dice.randrange(4)))
        else:
            moving.remove(row, waits=dice.random() < 0.5)
        same_as_built(moving)
    moving.revert(0)
    same_as_built(moving)
    after = moving.frozen()
    np.testing.assert_array_equal(after.pods.node, before.pods.node)
    assert [after.pods.node_names[row] for row in range(len(after.pods))] == [
        before.pods.node_names[row] for row in range(len(before.pods))
    ]
    assert after.pods.pending == before.pods.pending


@pytest.mark.parametrize("seed", range(5))
def test_creations_can_be_undone_to_any_mark(seed: int) -> None:
    """For any number of values, although only a few tables are kept."""
    dice = random.Random(seed)
    moving = MovingCluster(cluster())
    moving.snapshot.nodes(OPTIONS)
    marks = [(moving.mark(), moving.frozen())]
    for number in range(40):
        rows = [row for row in range(len(moving.pods)) if row not in moving.deleted]
        row = dice.choice(rows)
        match dice.randrange(6):
            case 0 | 1 | 2:
                name = dice.choice([f"new-{number}", "again"])  # a second pod of a name replaces it
                moving.add_pods([Snapshot.from_objects([pod(name, containers=asking("200m"))]).pods[0]])
            case 3:
                moving.delete(row)
            case 4:
                moving.set_contents({"limit_ranges": {f"team-{number}": ()}})
            case _ if moving.pods.node[row] < 0:
                moving.place(row, ClusterRow(dice.randrange(4)))
            case _:
                moving.remove(row, waits=True)
        marks.append((moving.mark(), moving.frozen()))
    while marks:
        mark, then = marks.pop()
        if dice.random() < 0.2 or not marks:
            moving.revert(mark)
            same_as_built(moving)
            assert same_pods(moving.frozen(), then)
            assert moving.snapshot.limit_ranges == then.limit_ranges


def same_pods(now: Snapshot, then: Snapshot) -> bool:
    rows = range(len(then.pods))
    is_same = [now.pods[row] for row in rows] == [then.pods[row] for row in rows]
    return is_same and dict(now.pods.rows) == dict(then.pods.rows)
