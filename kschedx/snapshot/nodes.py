"""The nodes as columns, with their images and pods."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import TypeVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.kube.decoding import decode
from kschedx.kube.names import HOSTNAME, REGION_LABELS, ZONE_LABELS, short_names
from kschedx.kube.resources import RequestOptions, node_allocatable
from kschedx.kube.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    CompiledTerm,
    NodeSelector,
    Operator,
    PreferredSchedulingTerms,
    RequiredNodeAffinity,
    Requirement,
    compile_node_selector,
)
from kschedx.kube.types import ContainerImage, Node, Taint
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRow,
    ClusterRows,
    Column,
    Derived,
    IntArray,
    Memo,
    TableRow,
    TableRows,
    cluster_rows,
    distinct,
    each_cluster_row,
    each_row,
    rows_by_group,
    rows_where,
)
from kschedx.snapshot.pods import Amounts, NodeRule, PodTable, RequestTable, ResourceNames

_ArrayOfNodes = TypeVar("_ArrayOfNodes", BoolArray, IntArray)


class _ImageState(Struct, frozen=True, kw_only=True):
    size_bytes: int
    nodes: ClusterRows  # (holder,) the nodes that have it
    sizes: IntArray  # (holder,) its size on each of them


class NodeImages:
    """The images of nodes by name, filled while a cluster is loaded. kube-scheduler uses one size for all nodes, that
    of the first node with the image. Upstream: addNodeImageStates in pkg/scheduler/backend/cache/cache.go."""

    def __init__(self) -> None:
        self._count = 0
        self._sizes: dict[str, array[int]] = {}
        self._holders: dict[str, array[int]] = {}

    def add(self, images: bytes) -> None:
        """Add the next node's `status.images` as JSON, or empty. Raises `InputError` with the field."""
        for image in _decode_images(images):
            for name in image.names:
                holders = self._holders.get(name)
                if holders is None:
                    self._sizes[name] = array("q", (image.size_bytes,))
                    self._holders[name] = array("q", (self._count,))
                elif holders[-1] != self._count:
                    self._sizes[name].append(image.size_bytes)
                    holders.append(self._count)
        self._count += 1

    def of(self, nodes: Sequence[ClusterRow]) -> NodeImages:
        """Return the images of some nodes in another order. Nodes added later have none."""
        new_row = np.full(max(self._count, max(nodes, default=-1) + 1), -1, dtype=np.int64)
        new_row[[*nodes]] = np.arange(len(nodes))
        kept = NodeImages()
        kept._count = len(nodes)
        for name, holders in sorted(self._holders.items()):
            rows = new_row[np.array(holders)]
            order = np.argsort(rows)[np.count_nonzero(rows < 0) :]
            if len(order):
                kept._holders[name] = array("q", rows[order].tobytes())
                kept._sizes[name] = array("q", np.array(self._sizes[name])[order].tobytes())
        return kept

    def images_by_node(self) -> dict[int, list[tuple[str, int]]]:
        """Return the images and sizes of each node that has any, by row."""
        images: dict[int, list[tuple[str, int]]] = {}
        for name, holders in self._holders.items():
            for row, size in zip(holders, self._sizes[name], strict=True):
                images.setdefault(row, []).append((name, size))
        return images

    def is_held(self, name: str) -> bool:
        """Return whether a node has an image with exactly this name."""
        return name in self._holders

    def state(self, name: str) -> _ImageState | None:
        """Return the image with exactly this name, or None."""
        holders = self._holders.get(name)
        if holders is None:
            return None
        sizes = np.array(self._sizes[name], dtype=np.int64)
        nodes = ClusterRows(np.array(holders, dtype=np.int64))
        return _ImageState(size_bytes=int(sizes[0]), nodes=nodes, sizes=sizes)


def _decode_images(images: bytes) -> tuple[ContainerImage, ...]:
    with Place(field="status.images"):
        return decode(images, tuple[ContainerImage, ...]) if images else ()


_LABEL_KEYS = Memo[frozenset[str]]()


class ClusterNodes:
    """The immutable part of a cluster's nodes: objects, labels, taints, allocatable, images."""

    def __init__(
        self,
        nodes: Sequence[Node],
        images: NodeImages,
        scalars: frozenset[str] = frozenset(),
        answered: Sequence[Node] = (),
    ) -> None:
        """`images` belong to the same nodes; `scalars` are resource names that pods request. `answered` are modified
        copies of some nodes with the same names, in rows after those of the cluster."""
        count = len(nodes)
        nodes = [*nodes, *answered] if answered else nodes
        self.nodes = nodes
        self.images = images
        self.names: tuple[str, ...] = tuple(node.metadata.name for node in nodes)
        self.index: Mapping[str, ClusterRow] = {name: ClusterRow(i) for i, name in enumerate(self.names[:count])}
        self.taints: Column[tuple[Taint, ...]] = Column.of(node.spec.taints for node in nodes)
        self.unschedulable: BoolArray = np.array([node.spec.unschedulable for node in nodes], dtype=np.bool_)
        self.declared_features: Column[tuple[str, ...]] = Column.of(node.status.declared_features for node in nodes)
        offers = [node_allocatable(node.status.allocatable) for node in nodes]
        self.resources = ResourceNames(scalars.union(*(amounts for amounts, _ in offers)))
        self.allocatable: IntArray = np.array(
            [self.resources.row(amounts) for amounts, _ in offers], dtype=np.int64
        ).reshape(len(nodes), len(self.resources))
        self.offers: BoolArray = np.array(
            [[name in amounts for name in self.resources.names] for amounts, _ in offers], dtype=np.bool_
        ).reshape(len(nodes), len(self.resources))
        """(node, resource) whether the node's allocatable names the resource, even with 0."""
        self.allowed_pods: IntArray = np.array([pods for _, pods in offers], dtype=np.int64)
        self.resized = 0  # a number that changes when a node is replaced that has other allocatable resources
        self._labels: dict[str, Column[str | None]] = {}
        self.derived: Derived = {}  # values computed from the nodes alone; cleared when a node is replaced

    def full_name(self, name: str) -> str:
        """Return the name of the node that screens show by this short name; the name itself if there is none."""
        if name in self.index:
            return name
        return next((full for full, short in short_names(self.names).items() if short == name), name)

    def known_name(self, name: str, hint: str = "") -> str:
        """Return the full name of a node. Raises `InputError` with the nearest name, or with the hint, if there is no
        such node."""
        full = self.full_name(name)
        if full not in self.index:
            raise InputError(f'no node "{full}" in the snapshot', hint=nearest(full, self.index) or hint)
        return full

    def with_nodes(self, changed: Mapping[ClusterRow, Node]) -> ClusterNodes:
        """Replace nodes by row; names stay. Rows beyond the end are ignored."""
        own = self.moving()
        if all(own.put(row, node) for row, node in changed.items() if row < len(self.nodes)):
            return own
        nodes = [changed.get(ClusterRow(row), node) for row, node in enumerate(self.nodes)]
        return ClusterNodes(nodes, self.images, frozenset(self.resources.names))

    def with_added(self, node: Node) -> ClusterNodes:
        nodes = ClusterNodes([node], self.images, frozenset(self.resources.names))
        if nodes.resources.names != self.resources.names:
            return ClusterNodes([*self.nodes, node], self.images, frozenset(nodes.resources.names))
        both = ClusterNodes.__new__(ClusterNodes)
        both.nodes, both.images, both.resources = [*self.nodes, node], self.images, self.resources
        both.names = (*self.names, *nodes.names)
        both.index = {**self.index, node.metadata.name: ClusterRow(len(self.nodes))}
        both.taints = self.taints.with_row(node.spec.taints)
        both.unschedulable = np.concatenate([self.unschedulable, nodes.unschedulable])
        both.declared_features = self.declared_features.with_row(node.status.declared_features)
        both.allocatable = np.concatenate([self.allocatable, nodes.allocatable])
        both.offers = np.concatenate([self.offers, nodes.offers])
        both.allowed_pods = np.concatenate([self.allowed_pods, nodes.allowed_pods])
        both.resized, both.derived = self.resized, {}
        both._labels = {key: column.with_row(node.metadata.labels.get(key)) for key, column in self._labels.items()}
        return both

    def without(self, removed: Collection[int]) -> ClusterNodes:
        """Remove these rows."""
        kept = [row for row in map(ClusterRow, range(len(self.nodes))) if row not in removed]
        nodes = [self.nodes[row] for row in kept]
        return ClusterNodes(nodes, self.images.of(kept), frozenset(self.resources.names))

    def with_answered(self, answered: Sequence[Node]) -> ClusterNodes:
        """Append modified copies of some nodes."""
        return ClusterNodes(self.nodes, self.images, frozenset(self.resources.names), answered)

    @property
    def count(self) -> int:
        return len(self.index)

    def moving(self) -> ClusterNodes:
        """Copy the nodes with their own columns, for `put`."""
        own = ClusterNodes.__new__(ClusterNodes)
        own.nodes, own.images, own.resources = list(self.nodes), self.images, self.resources
        own.names, own.index = self.names, self.index
        own.taints, own.declared_features = self.taints.copy(), self.declared_features.copy()
        own.unschedulable, own.allocatable = self.unschedulable.copy(), self.allocatable.copy()
        own.offers, own.allowed_pods = self.offers.copy(), self.allowed_pods.copy()
        own.resized, own.derived = self.resized, {}
        own._labels = {key: column.copy() for key, column in self._labels.items()}
        return own

    def put(self, row: ClusterRow, node: Node) -> bool:
        """Replace a node in place; its name stays. Returns False without a change if it offers a new resource."""
        nodes = ClusterNodes([node], self.images, frozenset(self.resources.names))
        if nodes.resources.names != self.resources.names:
            return False
        assert isinstance(self.nodes, list), "only columns of their own are written to"
        self.nodes[row] = node
        self.taints.put(row, node.spec.taints)
        self.declared_features.put(row, node.status.declared_features)
        if self.allowed_pods[row] != nodes.allowed_pods[0] or (self.allocatable[row] != nodes.allocatable[0]).any():
            self.resized += 1
        self.unschedulable[row], self.allocatable[row] = nodes.unschedulable[0], nodes.allocatable[0]
        self.offers[row], self.allowed_pods[row] = nodes.offers[0], nodes.allowed_pods[0]
        for key, column in self._labels.items():
            column.put(row, node.metadata.labels.get(key))
        self.derived.clear()
        return True

    @property
    def label_keys(self) -> frozenset[str]:
        return _LABEL_KEYS.of(self.derived, lambda: frozenset[str]().union(*(it.metadata.labels for it in self.nodes)))

    def is_named_by(self, key: str) -> bool:
        """Return whether a label names the node that has it, such as those of drivers for local disks."""
        if key == HOSTNAME or key in ZONE_LABELS or key in REGION_LABELS:
            return key == HOSTNAME
        labels = [node.metadata.labels for node in self.nodes if key in node.metadata.labels]
        return bool(labels) and all(own[key] == own.get(HOSTNAME) for own in labels)

    def label(self, key: str) -> Column[str | None]:
        """(node,) the value of a label; None without it."""
        column = self._labels.get(key)
        if column is None:
            # None is always the first value, because it is often looked up
            labels = Column.of(chain((None,), (node.metadata.labels.get(key) for node in self.nodes)))
            column = self._labels[key] = Column(labels.codes[1:], labels.values)
        return column

    def label_values(self, key: str) -> list[str]:
        """Return the different values of a label."""
        return [value for value in self.label(key).values if value is not None]


# The nodes as columns, each with its pods. A `NodeTable` may be a part of the cluster (`take`) and may differ from it
# by pods that are added or removed in a dry run (`add_pods`, `remove_pods`). Such a change is visible only to its own
# node, so one evaluation answers a what-if for all nodes at once.


class PodRows(Struct, frozen=True, kw_only=True):
    """Pods on nodes: `pods[i]` is a row of the PodTable, `nodes[i]` the row of its node."""

    pods: IntArray
    nodes: ClusterRows

    def __len__(self) -> int:
        return len(self.pods)


class NodeTable(Struct, frozen=True, kw_only=True, dict=True):
    """Nodes as plugins read them. All arrays have one row for each node in `rows`."""

    cluster: ClusterNodes
    pods: PodTable
    requests: RequestTable
    options: RequestOptions
    rows: ClusterRows  # (node,) the nodes in this table
    requested: IntArray  # (node, resource) sum of the pods' requests
    nonzero_requested: IntArray  # (node, 2) cpu and memory with defaults for pods without requests; scores read these
    pod_count: IntArray  # (node,)
    is_whole: bool = False
    """Whether it has every node of the cluster and shares the cluster's columns, which are always current."""
    is_removed: BoolArray | None = None  # (pod,) the pods that were removed from their nodes, or None
    added: PodRows | None = None

    @classmethod
    def of(cls, cluster: ClusterNodes, pods: PodTable, options: RequestOptions) -> NodeTable:
        """Return the table of the whole cluster with its running pods."""
        requests = RequestTable.of(pods.requests(options), cluster.resources)
        count = len(cluster.nodes)
        running = np.flatnonzero(pods.node >= 0)
        place = pods.node[running]
        requested = np.zeros((count, len(cluster.resources)), dtype=np.int64)
        nonzero = np.zeros((count, 2), dtype=np.int64)
        _add(requested, place, requests.matrix, running)
        _add(nonzero, place, requests.nonzero, running)
        return cls(
            cluster=cluster,
            pods=pods,
            requests=requests,
            options=options,
            rows=ClusterRows(np.arange(count, dtype=np.int64)),
            requested=requested,
            nonzero_requested=nonzero,
            pod_count=np.bincount(place, minlength=count).astype(np.int64),
            is_whole=True,
        )

    def __len__(self) -> int:
        return len(self.rows)

    def over(self, cluster: ClusterNodes, pods: PodTable) -> NodeTable:
        """Return the table of the whole `cluster` after nodes of this table's were replaced or appended, with pods on
        the same nodes. If nodes were appended, it has its own sums."""
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

    def with_pods(self, pods: PodTable) -> NodeTable:
        """Return the table of the whole cluster with more, pending pods. It has its own sums."""
        return replace(
            self,
            pods=pods,
            requests=self.requests.with_more(pods.requests(self.options), self.cluster.resources),
            requested=self.requested.copy(),
            nonzero_requested=self.nonzero_requested.copy(),
            pod_count=self.pod_count.copy(),
        )

    # --- the immutable part, for this table's rows

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(self.cluster.names[row] for row in each_cluster_row(self.rows))

    @property
    def resources(self) -> ResourceNames:
        return self.cluster.resources

    def cluster_row(self, row: TableRow) -> ClusterRow:
        return ClusterRow(int(self.rows[row]))

    def row_of(self, node: ClusterRow) -> TableRow | None:
        return next(each_row(rows_where(self.rows == node)), None)

    def row_named(self, name: str) -> TableRow | None:
        return next((row for row in self.each() if self.name(row) == name), None)

    def node(self, row: TableRow) -> Node:
        return self.cluster.nodes[self.cluster_row(row)]

    def name(self, row: TableRow) -> str:
        return self.cluster.names[self.cluster_row(row)]

    def part(self, numbers: _ArrayOfNodes) -> _ArrayOfNodes:
        """Return the rows of this table's nodes of an array over the whole cluster."""
        return numbers if self.is_whole else numbers[self.rows]

    @property
    def allocatable(self) -> IntArray:
        """(node, resource) the nodes' allocatable."""
        return self.part(self.cluster.allocatable)

    @property
    def offers(self) -> BoolArray:
        """(node, resource) whether a node's allocatable names the resource."""
        return self.part(self.cluster.offers)

    @property
    def allowed_pods(self) -> IntArray:
        return self.part(self.cluster.allowed_pods)

    @property
    def unschedulable(self) -> BoolArray:
        return self.part(self.cluster.unschedulable)

    @property
    def taints(self) -> Column[tuple[Taint, ...]]:
        return self.cluster.taints if self.is_whole else self.cluster.taints.take(self.rows)

    @property
    def declared_features(self) -> Column[tuple[str, ...]]:
        return self.cluster.declared_features if self.is_whole else self.cluster.declared_features.take(self.rows)

    def label(self, key: str) -> Column[str | None]:
        """(node,) the value of a label; None without it."""
        column = self.cluster.label(key)
        return column if self.is_whole else column.take(self.rows)

    @cached_property
    def home_rows(self) -> ClusterRows:
        """(node,) the rows of the nodes in the cluster; they differ from `rows` for modified copies of nodes."""
        if not len(self.rows) or int(self.rows.max()) < self.cluster.count:
            return self.rows
        return cluster_rows([self.cluster.index[name] for name in self.names])

    # --- the pods on the nodes

    def pods_on(self, row: TableRow) -> IntArray:
        """Return rows of the pods on a node, with this table's additions and removals."""
        node = self.cluster_row(row)
        pods = self.pods.on_node(node)
        if self.is_removed is not None:
            pods = pods[~self.is_removed[pods]]
        if self.added is not None:
            pods = np.concatenate([pods, self.added.pods[self.added.nodes == node]])
        return pods

    def numbers(self, rule: NodeRule) -> IntArray:
        """(node,) the result of a rule for each node and its pods, with additions and removals. It is evaluated again
        only for changed nodes; the rule itself is the key."""
        cluster, pods = self.cluster, self.pods

        def number(row: ClusterRow) -> int:
            return rule(cluster.nodes[row], pods, pods.on_node(row))

        pod_numbers = pods.numbers(rule, number, self.home_rows)
        changed = [change.nodes for change in (self.removed, self.added) if change is not None]
        for row in each_row(rows_where(np.isin(self.rows, np.concatenate(changed)))) if changed else ():
            pod_numbers[row] = rule(self.node(row), pods, self.pods_on(row))
        return pod_numbers

    def count_where(self, mask: BoolArray) -> IntArray:
        """(node,) the number of pods on each node for which `mask` (pod,) holds, with additions and removals."""
        running = self.pods.node[mask & (self.pods.node >= 0)]
        counts = np.bincount(running, minlength=len(self.cluster.nodes)).astype(np.int64)
        for change, sign in ((self.removed, -1), (self.added, +1)):
            if change is not None:
                np.add.at(counts, change.nodes, sign * mask[change.pods].astype(np.int64))
        return counts[self.rows]

    # --- parts and what-ifs

    def each(self) -> Iterator[TableRow]:
        return map(TableRow, range(len(self.rows)))

    def names_where(self, mask: BoolArray) -> tuple[str, ...]:
        """Return the names of the nodes for which `mask` (node,) holds."""
        return tuple(map(self.name, each_row(rows_where(mask))))

    def at(self, nodes: ClusterRows) -> NodeTable:
        """Return the table of these nodes, in this order; this table must have the whole cluster."""
        assert self.is_whole, "only in a table of the whole cluster rows are the cluster's"
        return self.take(TableRows(nodes))

    def take(self, rows: TableRows) -> NodeTable:
        """Return the table of some of this table's nodes."""
        return replace(
            self,
            is_whole=False,
            rows=ClusterRows(self.rows[rows]),
            # three times faster than indexing
            requested=self.requested.take(rows, axis=0),
            nonzero_requested=self.nonzero_requested.take(rows, axis=0),
            pod_count=self.pod_count[rows],
        )

    def only(self, names: Iterable[str]) -> NodeTable:
        """Return the nodes with these names; this table must have the whole cluster. Unknown names are ignored."""
        return self.at(cluster_rows(sorted(row for name in names if (row := self.cluster.index.get(name)) is not None)))

    def without(self, pods: PodTable, removed: IntArray) -> NodeTable:
        """Return the same nodes after pods are deleted, visible to every node; `pods` is the table without them."""
        running = removed[self.pods.node[removed] >= 0]
        change = PodRows(pods=running, nodes=ClusterRows(self.pods.node[running]))
        return replace(self._count_change(change, -1), pods=pods)

    @property
    def removed(self) -> PodRows | None:
        """The pods that were removed from their nodes, in load order."""
        if self.is_removed is None:
            return None
        pods = np.flatnonzero(self.is_removed)
        return PodRows(pods=pods, nodes=ClusterRows(self.pods.node[pods]))

    def remove_pods(self, change: PodRows) -> NodeTable:
        """Remove pods that run on the nodes or were added; each node sees only its own removals."""
        added = self.added
        running = change.pods
        if added is not None:
            # removing an added pod undoes the addition
            running = change.pods[~np.isin(_pairs(change), _pairs(added))]
            added = _masked_rows(added, ~np.isin(_pairs(added), _pairs(change)))
        is_removed = np.zeros(len(self.pods), dtype=np.bool_) if self.is_removed is None else self.is_removed.copy()
        is_removed[running] = True
        return replace(self._count_change(change, -1), is_removed=is_removed, added=added)

    def add_pods(self, change: PodRows) -> NodeTable:
        """Add pods to the nodes; each node sees only its own additions."""
        is_removed = self.is_removed
        new = change
        if is_removed is not None:
            back = is_removed[change.pods] & (self.pods.node[change.pods] == change.nodes)
            is_removed = is_removed.copy()
            is_removed[change.pods[back]] = False
            new = _masked_rows(change, ~back)
        return replace(self._count_change(change, +1), is_removed=is_removed, added=_join(self.added, new))

    def _count_change(self, change: PodRows, sign: int) -> NodeTable:
        position = np.full(len(self.cluster.nodes), -1, dtype=np.int64)
        position[self.rows] = np.arange(len(self.rows))
        place = position[change.nodes]
        mine = place >= 0
        place, pods = place[mine], change.pods[mine]
        requested, nonzero, count = self.requested.copy(), self.nonzero_requested.copy(), self.pod_count.copy()
        _add(requested, place, self.requests.matrix, pods, sign)
        _add(nonzero, place, self.requests.nonzero, pods, sign)
        np.add.at(count, place, sign)
        return replace(self, requested=requested, nonzero_requested=nonzero, pod_count=count)


def _add(sums: IntArray, place: IntArray, amounts: Amounts, pods: IntArray, sign: int = 1) -> None:
    """Add the amounts of pods to (node, resource) sums, each in its place."""
    for column in range(sums.shape[1]):  # five times faster than all columns at once
        np.add.at(sums[:, column], place, sign * amounts[pods, column])


def _pairs(change: PodRows) -> IntArray:
    """Return pod and node as one number, to compare placements."""
    return change.pods << 32 | change.nodes


def _masked_rows(change: PodRows, mask: BoolArray) -> PodRows:
    return PodRows(pods=change.pods[mask], nodes=ClusterRows(change.nodes[mask]))


def _join(first: PodRows | None, second: PodRows) -> PodRows | None:
    if not len(second):
        return first
    if first is None:
        return second
    nodes = ClusterRows(np.concatenate([first.nodes, second.nodes]))
    return PodRows(pods=np.concatenate([first.pods, second.pods]), nodes=nodes)


# Node selectors on columns: a requirement is evaluated once per distinct value of its label.


def _where_requirement(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """(node,) whether the labels meet a requirement."""
    key = requirement.key
    return nodes.label(key).where(lambda value: requirement.matches({} if value is None else {key: value}))


def _where_field(requirement: Requirement, nodes: NodeTable) -> BoolArray:
    """(node,) whether metadata.name meets a requirement; every other field is empty."""
    if requirement.key != NODE_NAME_FIELD:
        return np.full(len(nodes), requirement.matches({requirement.key: ""}), dtype=np.bool_)
    names = np.zeros(len(nodes.cluster.names), dtype=np.bool_)
    for value in requirement.values:
        row = nodes.cluster.index.get(value)
        if row is not None:
            names[row] = True
    wanted = requirement.matches({NODE_NAME_FIELD: requirement.values[0]})  # In selects these names, NotIn all others
    return names[nodes.home_rows] if wanted else ~names[nodes.home_rows]


def _where_term(term: CompiledTerm, nodes: NodeTable) -> BoolArray:
    """(node,) whether a term's expressions and fields all match; a term with errors matches nothing."""
    mask = np.full(len(nodes), not term.errors, dtype=np.bool_)
    for requirement in term.expressions:
        if not mask.any():
            break
        mask &= _where_requirement(requirement, nodes)
    for requirement in term.fields:
        mask &= _where_field(requirement, nodes)
    return mask


def where_selector(selector: CompiledNodeSelector, nodes: NodeTable) -> BoolArray:
    """(node,) whether any term matches."""
    mask = np.zeros(len(nodes), dtype=np.bool_)
    for term in selector.terms:
        mask |= _where_term(term, nodes)
    return mask


def where_required(affinity: RequiredNodeAffinity, nodes: NodeTable) -> BoolArray:
    """(node,) whether nodeSelector and required node affinity both match."""
    mask = np.ones(len(nodes), dtype=np.bool_)
    if affinity.label_selector is not None:
        for requirement in affinity.label_selector.requirements:
            if not mask.any():
                break
            mask &= _where_requirement(requirement, nodes)
    if affinity.node_selector is not None:
        mask &= where_selector(affinity.node_selector, nodes)
    return mask


def preferred_weights(terms: PreferredSchedulingTerms, nodes: NodeTable) -> IntArray:
    """(node,) int64 sum of the weights of matching terms."""
    total = np.zeros(len(nodes), dtype=np.int64)
    for weighted in terms.terms:
        total += weighted.weight * _where_term(weighted.term, nodes)
    return total


# Nodes by label value, for many selectors that each select few nodes. `where_selector` evaluates every distinct value
# of a label, which is right for one selector. Ten thousand local volumes with one node each would evaluate ten thousand
# times five thousand names; here, each is a lookup.

_NONE = np.zeros(0, dtype=np.int64)


class NodeLookup:
    """Rows of a table by label, with cached lookups."""

    def __init__(self, nodes: NodeTable) -> None:
        self._nodes = nodes
        self._all = np.arange(len(nodes), dtype=np.int64)
        self._by_label: dict[str, Mapping[str, IntArray]] = {}
        self._masks: dict[Requirement, BoolArray] = {}
        self._selectors: dict[NodeSelector, IntArray] = {}

    @classmethod
    def of(cls, nodes: NodeTable) -> NodeLookup:
        """Return the lookup of a table. That of the whole cluster is cached until a node is replaced."""
        return _LOOKUP.of(nodes.cluster.derived, lambda: cls(nodes)) if nodes.is_whole else cls(nodes)

    def selector(self, selector: NodeSelector | None) -> IntArray:
        """Return rows, ascending, whose labels match any term; None matches all. Fields are not evaluated, as for a
        node without a name (CheckNodeAffinity in component-helpers/storage/volume/helpers.go)."""
        if selector is None:
            return self._all
        rows = self._selectors.get(selector)
        if rows is None:
            terms = [self._term(term) for term in compile_node_selector(selector).terms]
            rows = terms[0] if len(terms) == 1 else distinct(np.concatenate([_NONE, *terms]))
            self._selectors[selector] = rows
        return rows

    def requirements(self, requirements: Iterable[Requirement]) -> IntArray:
        """Return rows, ascending, that meet all requirements."""
        looked_up: list[IntArray] = []
        masks: list[BoolArray] = []
        for requirement in requirements:
            if requirement.operator in (Operator.IN, Operator.EQUALS):
                looked_up.append(self._rows_with_value(requirement))
            else:
                masks.append(self._mask(requirement))
        rows = min(looked_up, key=len, default=self._all)
        for others in looked_up:
            if others is not rows:
                rows = rows[np.isin(rows, others, assume_unique=True)]
        for mask in masks:
            rows = rows[mask[rows]]
        return rows

    def _term(self, term: CompiledTerm) -> IntArray:
        return _NONE if term.errors else self.requirements(term.expressions)

    def _rows_with_value(self, requirement: Requirement) -> IntArray:
        """Return rows whose label has one of the requirement's values."""
        by_value = self._by_label.get(requirement.key)
        if by_value is None:
            column = self._nodes.label(requirement.key)
            order, start = rows_by_group(column.codes, len(column.values))
            by_value = self._by_label[requirement.key] = {
                value: order[start[code] : start[code + 1]]
                for code, value in enumerate(column.values)
                if value is not None
            }
        rows = [by_value[value] for value in set(requirement.values) if value in by_value]
        return rows[0] if len(rows) == 1 else np.sort(np.concatenate([_NONE, *rows]))

    def _mask(self, requirement: Requirement) -> BoolArray:
        mask = self._masks.get(requirement)
        if mask is None:
            mask = self._masks[requirement] = _where_requirement(requirement, self._nodes)
        return mask


_LOOKUP = Memo[NodeLookup]()
