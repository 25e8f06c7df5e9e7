"""Nodes with pods added and removed: each node stands in a world of its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.rows import ClusterRow, TableRow, TableRows, cluster_rows
from tests.builders import Manifest, framework, node, pod

NODES = 3
REQUESTS = [100, 200, 400, 800, 1600]


def _table() -> NodeTable:
    """Three nodes; pod i asks for REQUESTS[i] milli-CPUs and runs on node i, or nowhere from the fourth on."""
    objects: list[Manifest] = [node(f"n{row}") for row in range(NODES)]
    for row, cpu in enumerate(REQUESTS):
        resources = {"requests": {"cpu": f"{cpu}m"}}
        spec = {"containers": [{"name": "main", "resources": resources}]}
        objects.append(pod(f"p{row}", on=f"n{row}" if row < NODES else None, spec=spec))
    return framework(objects).nodes


TABLE = _table()


@given(
    moves=st.lists(
        st.lists(st.tuples(st.integers(0, len(REQUESTS) - 1), st.integers(0, NODES - 1)), min_size=1, unique=True),
        max_size=8,
    ),
    part=st.lists(st.integers(0, NODES - 1), unique=True, min_size=1),
)
def test_tables_follow_every_move(moves: list[list[tuple[int, int]]], part: list[int]) -> None:
    """A move puts each (pod, node) there if it is absent, and takes it away if it is present."""
    world = {(row, row) for row in range(NODES)}
    table = TABLE
    for move in moves:
        leaving = [pair for pair in move if pair in world]
        coming = [pair for pair in move if pair not in world]
        table = table.remove_pods(_rows(leaving)).add_pods(_rows(coming))
        world = (world | set(coming)) - set(leaving)
    table = table.take(TableRows(np.array(part, dtype=np.int64)))
    for index, row in enumerate(part):
        here = sorted(number for number, place in world if place == row)
        assert sorted(table.pods_on(TableRow(index)).tolist()) == here
        assert table.pod_count[index] == len(here)
        assert table.requested[index][0] == sum(REQUESTS[number] for number in here)


def test_a_change_and_its_reverse_leave_nothing_behind() -> None:
    change = _rows([(0, 0), (1, 1)])
    back = TABLE.remove_pods(change).add_pods(change)
    assert back.removed is not None
    assert (len(back.removed), back.added) == (0, None)
    assert (back.requested == TABLE.requested).all()


def _rows(pairs: list[tuple[int, int]]) -> PodRows:
    return PodRows(
        pods=np.array([number for number, _ in pairs], dtype=np.int64),
        nodes=cluster_rows([ClusterRow(place) for _, place in pairs]),
    )
