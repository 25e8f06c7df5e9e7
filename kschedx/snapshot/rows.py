"""Which node a number means.

A node has a row in the whole cluster, and another in each `NodeTable` that holds it, which may be a part of the
cluster. Both are numbers, and one in place of the other is an answer about the wrong node: so they are different types,
made where rows come from. `NodeTable.cluster_row` and `NodeTable.row_of` lead from one to the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NewType

import numpy as np

from kschedx.snapshot.columns import BoolArray, IntArray

ClusterRow = NewType("ClusterRow", int)
"""A node's row among all nodes of the cluster."""

ClusterRows = NewType("ClusterRows", IntArray)
"""(n,) rows among all nodes of the cluster."""

TableRow = NewType("TableRow", int)
"""A node's row in a `NodeTable` and in what was worked out from it: verdicts, scores, masks."""

TableRows = NewType("TableRows", IntArray)
"""(n,) rows of a `NodeTable`."""


def of_whole(row: TableRow) -> ClusterRow:
    """The node in a row of a table of the whole cluster."""
    return ClusterRow(row)


def cluster_rows(rows: Sequence[ClusterRow]) -> ClusterRows:
    return ClusterRows(np.array(rows, dtype=np.int64))


def rows_where(mask: BoolArray) -> TableRows:
    """The rows of a table at which `mask` (node,) holds, ascending."""
    return TableRows(np.flatnonzero(mask))


def each_cluster_row(rows: ClusterRows) -> Iterator[ClusterRow]:
    return map(ClusterRow, rows.tolist())


def each_row(rows: TableRows) -> Iterator[TableRow]:
    return map(TableRow, rows.tolist())
