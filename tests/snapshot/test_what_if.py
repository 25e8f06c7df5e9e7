"""Nodes with added and removed pods, each in its own variant of the cluster."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from kschedx.snapshot.columns import ClusterRow, TableRow, TableRows, cluster_rows
from kschedx.snapshot.nodes import ClusterNodes, NodeTable, PodRows
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, framework, node, pod

NODES = 3
REQUESTS = [100, 200, 400, 800, 1600]


def _objects() -> list[Manifest]:
    """Return three nodes, and pods with REQUESTS[i] milli-CPUs: the first three on their node, the others pending."""
    objects: list[Manifest] = [node(f"n{row}") for row in range(NODES)]
    for row, cpu in enumerate(REQUESTS):
        resources = {"requests": {"cpu": f"{cpu}m"}}
        spec = {"containers": [{"name": "main", "resources": resources}]}
        objects.append(pod(f"p{row}", on=f"n{row}" if row < NODES else None, spec=spec))
    return objects


TABLE = framework(_objects()).nodes


@given(
    moves=st.lists(
        st.lists(st.tuples(st.integers(0, len(REQUESTS) - 1), st.integers(0, NODES - 1)), min_size=1, unique=True),
        max_size=8,
    ),
    part=st.lists(st.integers(0, NODES - 1), unique=True, min_size=1),
)
def test_tables_follow_every_move(moves: list[list[tuple[int, int]]], part: list[int]) -> None:
    """A move adds each (pod, node) that is absent, and removes each one that is present."""
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


def test_a_change_and_its_reverse_restore_the_tables() -> None:
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


@given(
    labels=st.dictionaries(st.integers(0, NODES - 1), st.sampled_from(["a", "b"])),
    gpus=st.sampled_from([None, 0, NODES - 1]),
    added=st.sampled_from([{}, {"cpu": "8"}, {"example.com/gpu": "2"}]),
)
def test_sums_with_other_nodes_equal_those_of_a_loaded_cluster(
    labels: dict[int, str], gpus: int | None, added: dict[str, str]
) -> None:
    """Whether or not the cluster already has nodes with this allocatable."""

    def changed(row: int) -> Manifest:
        offered = {"allocatable": {"example.com/gpu": "1"}} if row == gpus else {}
        return node(f"n{row}", labels={"zone": labels[row]} if row in labels else {}, **offered)

    rows = {*labels, *(() if gpus is None else (gpus,))}
    before = framework(_objects()).snapshot
    before.nodes(TABLE.options)
    snapshot = Snapshot.from_objects([changed(row) for row in rows] + [node("new", allocatable=added)])
    nodes = {item.name: item for item in snapshot.cluster.nodes}
    result = before.with_nodes({ClusterRow(row): nodes[f"n{row}"] for row in rows}).with_added_node(nodes["new"])
    table = result.nodes(TABLE.options)
    fresh = NodeTable.of(
        ClusterNodes(result.cluster.nodes, result.cluster.images),
        result.pods,
        TABLE.options,
    )

    assert table.names == fresh.names
    for name in fresh.resources.names:
        mine, its = table.resources.index[name], fresh.resources.index[name]
        assert table.allocatable[:, mine].tolist() == fresh.allocatable[:, its].tolist()
        assert table.requested[:, mine].tolist() == fresh.requested[:, its].tolist()
    assert table.nonzero_requested.tolist() == fresh.nonzero_requested.tolist()
    assert table.pod_count.tolist() == fresh.pod_count.tolist()
    zones = [table.label("zone")[row] for row in range(len(table))]
    assert zones == [item.metadata.labels.get("zone") for item in result.cluster.nodes]


def test_a_node_is_changed_only_after_it_is_added() -> None:
    """Steps of a fix may change the node that it adds."""
    before = framework(_objects()).snapshot
    new = Snapshot.from_objects([node("new")]).cluster.nodes[0]
    assert before.with_nodes({ClusterRow(len(before.cluster.nodes)): new}).cluster.names == before.cluster.names
