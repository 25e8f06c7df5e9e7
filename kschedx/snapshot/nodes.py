"""The nodes as columns, each with the pods that run on it.

A `NodeTable` can be a part of the cluster (`take`) and can differ from it by pods that were added or removed for a
dry run (`add_pods`, `remove_pods`). Such changes are seen by the node they happen on and by no other: every node
stands in a world of its own, so one evaluation answers "what if" for all nodes at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.resources import RequestOptions
from kschedx.api.types import Node, Taint
from kschedx.snapshot.cluster_nodes import ClusterNodes
from kschedx.snapshot.columns import BoolArray, Column, IntArray
from kschedx.snapshot.pods import PodTable, RequestTable
from kschedx.snapshot.resources import ResourceNames
from kschedx.snapshot.rows import (
    ClusterRow,
    ClusterRows,
    TableRow,
    TableRows,
    cluster_rows,
    each_cluster_row,
    each_row,
    rows_where,
)


class PodRows(Struct, frozen=True, kw_only=True):
    """Pods placed on nodes: `pods[i]` is a row of the PodTable, `nodes[i]` that of its node."""

    pods: IntArray
    nodes: ClusterRows

    def __len__(self) -> int:
        return len(self.pods)


class NodeTable(Struct, frozen=True, kw_only=True, dict=True):
    """Nodes as the plugins see them. All arrays have a row for each node in `rows`."""

    cluster: ClusterNodes
    pods: PodTable
    requests: RequestTable
    options: RequestOptions
    rows: ClusterRows
    """(node,) the nodes that this table holds."""
    requested: IntArray
    """(node, resource) sum of what the pods ask for."""
    nonzero_requested: IntArray
    """(node, 2) cpu and memory with the defaults for pods that ask for none; scores read these."""
    pod_count: IntArray
    """(node,) number of pods."""
    gone: BoolArray | None = None
    """(pod,) the pods that were removed from the node they run on; None where none was."""
    added: PodRows | None = None

    @classmethod
    def of(cls, cluster: ClusterNodes, pods: PodTable, options: RequestOptions) -> NodeTable:
        """The whole cluster with the pods that run in it."""
        requests = RequestTable.of(pods.requests(options), cluster.resources)
        count = len(cluster.nodes)
        running = np.flatnonzero(pods.node >= 0)
        place = pods.node[running]
        requested = np.zeros((count, len(cluster.resources)), dtype=np.int64)
        nonzero = np.zeros((count, 2), dtype=np.int64)
        np.add.at(requested, place, requests.matrix[running])
        np.add.at(nonzero, place, requests.nonzero[running])
        return cls(
            cluster=cluster,
            pods=pods,
            requests=requests,
            options=options,
            rows=ClusterRows(np.arange(count, dtype=np.int64)),
            requested=requested,
            nonzero_requested=nonzero,
            pod_count=np.bincount(place, minlength=count).astype(np.int64),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def over(self, cluster: ClusterNodes, pods: PodTable) -> NodeTable:
        """The table of the whole `cluster`, in which nodes of this one's were replaced or others added at the end, with
        pods that run where these do. Its sums are its own where nodes were added."""
        if cluster.resources.names != self.resources.names:
            return NodeTable.of(cluster, pods, self.options)
        count = len(cluster.nodes)
        more = count - len(self)

        def grown(sums: IntArray) -> IntArray:
            return np.concatenate([sums, np.zeros((more, *sums.shape[1:]), dtype=np.int64)]) if more else sums

        return replace(
            self,
            cluster=cluster,
            pods=pods,
            rows=ClusterRows(np.arange(count, dtype=np.int64)),
            requested=grown(self.requested),
            nonzero_requested=grown(self.nonzero_requested),
            pod_count=grown(self.pod_count),
        )

    def forget(self) -> None:
        """Read what is fixed about the nodes anew: one of them was replaced in place."""
        self.__dict__.clear()

    # --- what is fixed about the nodes, for this table's rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.cluster.names[row] for row in each_cluster_row(self.rows))

    @property
    def resources(self) -> ResourceNames:
        return self.cluster.resources

    def cluster_row(self, row: TableRow) -> ClusterRow:
        return ClusterRow(int(self.rows[row]))

    def row_of(self, node: ClusterRow) -> TableRow | None:
        """A node's row in this table, None where it is not in it."""
        return next(each_row(rows_where(self.rows == node)), None)

    def row_named(self, name: str) -> TableRow | None:
        """The row of the node of this name, None where it is not in this table."""
        return next((row for row in self.each() if self.name(row) == name), None)

    def node(self, row: TableRow) -> Node:
        return self.cluster.nodes[self.cluster_row(row)]

    def name(self, row: TableRow) -> str:
        return self.cluster.names[self.cluster_row(row)]

    @cached_property
    def allocatable(self) -> IntArray:
        """(node, resource) what the nodes offer."""
        return self.cluster.allocatable[self.rows]

    @cached_property
    def offers(self) -> BoolArray:
        """(node, resource) whether a node's allocatable names the resource."""
        return self.cluster.offers[self.rows]

    @cached_property
    def allowed_pods(self) -> IntArray:
        return self.cluster.allowed_pods[self.rows]

    @cached_property
    def unschedulable(self) -> BoolArray:
        return self.cluster.unschedulable[self.rows]

    @cached_property
    def taints(self) -> Column[tuple[Taint, ...]]:
        return self.cluster.taints.take(self.rows)

    @cached_property
    def declared_features(self) -> Column[tuple[str, ...]]:
        return self.cluster.declared_features.take(self.rows)

    def label(self, key: str) -> Column[str | None]:
        """(node,) the value of a label, None where a node lacks it."""
        return self.cluster.label(key).take(self.rows)

    @cached_property
    def home_rows(self) -> ClusterRows:
        """(node,) the rows that the nodes have in the cluster: others than `rows` for those that stand for a node."""
        if not len(self.rows) or int(self.rows.max()) < self.cluster.count:
            return self.rows
        return cluster_rows([self.cluster.index[name] for name in self.names])

    # --- the pods on them

    def pods_on(self, row: TableRow) -> IntArray:
        """Rows of the pods on a node of this table, its own additions and removals included."""
        node = self.cluster_row(row)
        pods = self.pods.on_node(node)
        if self.gone is not None:
            pods = pods[~self.gone[pods]]
        if self.added is not None:
            pods = np.concatenate([pods, self.added.pods[self.added.nodes == node]])
        return pods

    def count_where(self, mask: BoolArray) -> IntArray:
        """(node,) how many of the pods for which `mask` (pod,) holds are on each node, additions and removals
        included."""
        running = self.pods.node[mask & (self.pods.node >= 0)]
        counts = np.bincount(running, minlength=len(self.cluster.nodes)).astype(np.int64)
        for change, sign in ((self.removed, -1), (self.added, +1)):
            if change is not None:
                np.add.at(counts, change.nodes, sign * mask[change.pods].astype(np.int64))
        return counts[self.rows]

    # --- parts and what-ifs

    def each(self) -> Iterator[TableRow]:
        """Every row of this table."""
        return map(TableRow, range(len(self.rows)))

    def names_where(self, mask: BoolArray) -> tuple[str, ...]:
        """The names of the nodes for which `mask` (node,) holds."""
        return tuple(map(self.name, each_row(rows_where(mask))))

    def at(self, nodes: ClusterRows) -> NodeTable:
        """The table of these nodes, in this order, of a table of the whole cluster."""
        assert len(self.rows) == len(self.cluster.nodes), "only in a table of the whole cluster rows are the cluster's"
        return self.take(TableRows(nodes))

    def take(self, rows: TableRows) -> NodeTable:
        """The table of some of this table's nodes."""
        return replace(
            self,
            rows=ClusterRows(self.rows[rows]),
            # as by indexing, in a third of the time
            requested=self.requested.take(rows, axis=0),
            nonzero_requested=self.nonzero_requested.take(rows, axis=0),
            pod_count=self.pod_count[rows],
        )

    def only(self, names: Iterable[str]) -> NodeTable:
        """The nodes of these names, of a table of the whole cluster; names without a node are ignored."""
        return self.at(cluster_rows(sorted(row for name in names if (row := self.cluster.index.get(name)) is not None)))

    def without(self, pods: PodTable, gone: IntArray) -> NodeTable:
        """The same nodes after pods have been deleted, which every node sees; `pods` is the table without them."""
        running = gone[self.pods.node[gone] >= 0]
        change = PodRows(pods=running, nodes=ClusterRows(self.pods.node[running]))
        return replace(self._counted(change, -1), pods=pods)

    @property
    def removed(self) -> PodRows | None:
        """The pods that were removed from the node they run on, in load order."""
        if self.gone is None:
            return None
        pods = np.flatnonzero(self.gone)
        return PodRows(pods=pods, nodes=ClusterRows(self.pods.node[pods]))

    def remove_pods(self, change: PodRows) -> NodeTable:
        """The same nodes without these pods, which run on them or were added; each node forgets only its own."""
        added = self.added
        running = change.pods
        if added is not None:
            # a pod that was added and is now removed was never there
            running = change.pods[~np.isin(_pairs(change), _pairs(added))]
            added = _where(added, ~np.isin(_pairs(added), _pairs(change)))
        gone = np.zeros(len(self.pods), dtype=np.bool_) if self.gone is None else self.gone.copy()
        gone[running] = True
        return replace(self._counted(change, -1), gone=gone, added=added)

    def add_pods(self, change: PodRows) -> NodeTable:
        """The same nodes with these pods on them as well; each node sees only its own."""
        gone = self.gone
        new = change
        if gone is not None:
            back = gone[change.pods] & (self.pods.node[change.pods] == change.nodes)
            gone = gone.copy()
            gone[change.pods[back]] = False
            new = _where(change, ~back)
        return replace(self._counted(change, +1), gone=gone, added=_join(self.added, new))

    def _counted(self, change: PodRows, sign: int) -> NodeTable:
        position = np.full(len(self.cluster.nodes), -1, dtype=np.int64)
        position[self.rows] = np.arange(len(self.rows))
        place = position[change.nodes]
        mine = place >= 0
        place, pods = place[mine], change.pods[mine]
        requested, nonzero, count = self.requested.copy(), self.nonzero_requested.copy(), self.pod_count.copy()
        np.add.at(requested, place, sign * self.requests.matrix[pods])
        np.add.at(nonzero, place, sign * self.requests.nonzero[pods])
        np.add.at(count, place, sign)
        return replace(self, requested=requested, nonzero_requested=nonzero, pod_count=count)


def _pairs(change: PodRows) -> IntArray:
    """Pod and node as one number, to compare placements."""
    return change.pods << 32 | change.nodes


def _where(change: PodRows, mask: BoolArray) -> PodRows:
    return PodRows(pods=change.pods[mask], nodes=ClusterRows(change.nodes[mask]))


def _join(first: PodRows | None, second: PodRows) -> PodRows | None:
    if not len(second):
        return first
    if first is None:
        return second
    nodes = ClusterRows(np.concatenate([first.nodes, second.nodes]))
    return PodRows(pods=np.concatenate([first.pods, second.pods]), nodes=nodes)
