"""Rows of the whole cluster and rows of a part of it have different types."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from kschedx import Snapshot
from kschedx.framework.runtime import request_options
from kschedx.releases import resolve
from kschedx.snapshot.columns import (
    ClusterRow,
    TableRow,
    as_cluster_row,
    cluster_rows,
    each_cluster_row,
    each_row,
    rows_where,
)
from kschedx.snapshot.nodes import NodeTable, PodRows
from tests.builders import node, pod

if TYPE_CHECKING:
    from kschedx.framework.status import FilterOutcome
    from kschedx.snapshot.columns import ClusterRows, TableRows
    from kschedx.snapshot.moving_cluster import MovingCluster

    def mixed_up(
        table: NodeTable,
        outcome: FilterOutcome,
        moving: MovingCluster,
        number: int,
        of_cluster: ClusterRow,
        of_table: TableRow,
        all_of_cluster: ClusterRows,
        all_of_table: TableRows,
    ) -> None:
        """mypy refuses each of these lines. If it accepted one, it would report an unused comment."""
        table.node(of_cluster)  # type: ignore[arg-type]
        table.node(number)  # type: ignore[arg-type]
        table.pods_on(of_cluster)  # type: ignore[arg-type]
        table.take(all_of_cluster)  # type: ignore[arg-type]
        table.take(np.arange(3))  # type: ignore[arg-type]
        table.at(all_of_table)  # type: ignore[arg-type]
        table.cluster_row(of_cluster)  # type: ignore[arg-type]
        table.row_of(of_table)  # type: ignore[arg-type]
        outcome.status(of_cluster)  # type: ignore[arg-type]
        outcome.verdicts[0].explain(of_cluster)  # type: ignore[arg-type]
        table.pods.on_node(of_table)  # type: ignore[arg-type]
        PodRows(pods=np.arange(1), nodes=all_of_table)  # type: ignore[arg-type]
        moving.place(0, of_table)  # type: ignore[arg-type]


@pytest.fixture
def whole() -> NodeTable:
    objects = [node(name) for name in "abcd"] + [pod("p", on="c")]
    return Snapshot.from_objects(objects).nodes(request_options(resolve()))


@pytest.fixture
def part(whole: NodeTable) -> NodeTable:
    """Return the rows of nodes d and c."""
    return whole.at(cluster_rows([ClusterRow(3), ClusterRow(2)]))


def test_rows_convert_between_tables_and_back(part: NodeTable) -> None:
    assert [part.cluster_row(row) for row in part.each()] == [3, 2]
    assert [part.row_of(node) for node in each_cluster_row(part.rows)] == list(part.each()) == [0, 1]
    assert part.row_of(ClusterRow(0)) is None
    assert (part.row_named("c"), part.row_named("a")) == (1, None)


def test_a_row_of_a_part_refers_to_the_part(whole: NodeTable, part: NodeTable) -> None:
    assert (part.name(TableRow(1)), whole.name(TableRow(1))) == ("c", "b")
    assert part.node(TableRow(0)).metadata.name == "d"
    assert [len(part.pods_on(row)) for row in part.each()] == [0, 1]
    assert part.names_where(part.pod_count > 0) == ("c",)
    assert list(each_row(rows_where(part.pod_count > 0))) == [1]


def test_a_whole_table_has_the_order_of_the_cluster(whole: NodeTable) -> None:
    assert all(whole.cluster_row(row) == as_cluster_row(row) for row in whole.each())


def test_rows_of_the_cluster_select_nothing_of_a_part(part: NodeTable) -> None:
    with pytest.raises(AssertionError, match="a table of the whole cluster"):
        part.at(cluster_rows([ClusterRow(0)]))
    with pytest.raises(AssertionError, match="a table of the whole cluster"):
        part.only(["a"])
