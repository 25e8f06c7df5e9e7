"""What is fixed about the nodes of a cluster, as columns."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain

import numpy as np

from kschedx.api.resources import node_allocatable
from kschedx.api.types import Node, Taint
from kschedx.snapshot.columns import BoolArray, Column, IntArray
from kschedx.snapshot.images import NodeImages
from kschedx.snapshot.resources import ResourceNames
from kschedx.snapshot.rows import ClusterRow


class ClusterNodes:
    """What is fixed about the nodes of a cluster: objects, labels, taints, capacity, images."""

    def __init__(
        self,
        nodes: Sequence[Node],
        images: NodeImages,
        scalars: frozenset[str] = frozenset(),
        answered: Sequence[Node] = (),
    ) -> None:
        """`images` are those of the same nodes; `scalars` are resource names that pods ask for. `answered` are nodes
        of the same names that stand for some of them: rows behind those of the cluster."""
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
        """(node, resource) whether the node's allocatable names the resource at all, be it as 0."""
        self.allowed_pods: IntArray = np.array([pods for _, pods in offers], dtype=np.int64)
        self._labels: dict[str, Column[str | None]] = {}

    def with_nodes(self, changed: Mapping[ClusterRow, Node]) -> ClusterNodes:
        """The same nodes with some objects replaced, by row; names stay. A row that is still to come is left out."""
        own = self.moving()
        if all(own.put(row, node) for row, node in changed.items() if row < len(self.nodes)):
            return own
        nodes = [changed.get(ClusterRow(row), node) for row, node in enumerate(self.nodes)]
        return ClusterNodes(nodes, self.images, frozenset(self.resources.names))

    def with_added(self, node: Node) -> ClusterNodes:
        """The same nodes and one more, at the end."""
        made = ClusterNodes([node], self.images, frozenset(self.resources.names))
        if made.resources.names != self.resources.names:
            return ClusterNodes([*self.nodes, node], self.images, frozenset(made.resources.names))
        both = ClusterNodes.__new__(ClusterNodes)
        both.nodes, both.images, both.resources = [*self.nodes, node], self.images, self.resources
        both.names = (*self.names, *made.names)
        both.index = {**self.index, node.metadata.name: ClusterRow(len(self.nodes))}
        both.taints = self.taints.with_row(node.spec.taints)
        both.unschedulable = np.concatenate([self.unschedulable, made.unschedulable])
        both.declared_features = self.declared_features.with_row(node.status.declared_features)
        both.allocatable = np.concatenate([self.allocatable, made.allocatable])
        both.offers = np.concatenate([self.offers, made.offers])
        both.allowed_pods = np.concatenate([self.allowed_pods, made.allowed_pods])
        both._labels = {key: column.with_row(node.metadata.labels.get(key)) for key, column in self._labels.items()}
        return both

    def without(self, gone: Collection[int]) -> ClusterNodes:
        """The nodes but for these rows."""
        kept = [row for row in map(ClusterRow, range(len(self.nodes))) if row not in gone]
        nodes = [self.nodes[row] for row in kept]
        return ClusterNodes(nodes, self.images.of(kept), frozenset(self.resources.names))

    def with_answered(self, answered: Sequence[Node]) -> ClusterNodes:
        """The same nodes, and in rows behind them others that stand for some of them."""
        return ClusterNodes(self.nodes, self.images, frozenset(self.resources.names), answered)

    @property
    def count(self) -> int:
        """How many nodes the cluster has."""
        return len(self.index)

    def moving(self) -> ClusterNodes:
        """The same nodes with columns of their own, for `put`."""
        own = ClusterNodes.__new__(ClusterNodes)
        own.nodes, own.images, own.resources = list(self.nodes), self.images, self.resources
        own.names, own.index = self.names, self.index
        own.taints, own.declared_features = self.taints.copy(), self.declared_features.copy()
        own.unschedulable, own.allocatable = self.unschedulable.copy(), self.allocatable.copy()
        own.offers, own.allowed_pods = self.offers.copy(), self.allowed_pods.copy()
        own._labels = {key: column.copy() for key, column in self._labels.items()}
        return own

    def put(self, row: ClusterRow, node: Node) -> bool:
        """Replace a node, whose name stays, in place; False, and nothing is done, where it offers other resources than
        any node so far."""
        made = ClusterNodes([node], self.images, frozenset(self.resources.names))
        if made.resources.names != self.resources.names:
            return False
        assert isinstance(self.nodes, list), "only columns of their own are written to"
        self.nodes[row] = node
        self.taints.put(row, node.spec.taints)
        self.declared_features.put(row, node.status.declared_features)
        self.unschedulable[row], self.allocatable[row] = made.unschedulable[0], made.allocatable[0]
        self.offers[row], self.allowed_pods[row] = made.offers[0], made.allowed_pods[0]
        for key, column in self._labels.items():
            column.put(row, node.metadata.labels.get(key))
        self.__dict__.pop("label_keys", None)
        return True

    @cached_property
    def label_keys(self) -> frozenset[str]:
        """Every label key that some node has."""
        return frozenset().union(*(node.metadata.labels for node in self.nodes))

    def label(self, key: str) -> Column[str | None]:
        """(node,) the value of a label, None where a node lacks it."""
        column = self._labels.get(key)
        if column is None:
            # None is the first value, be there a node without the label or not: it is looked for often
            found = Column.of(chain((None,), (node.metadata.labels.get(key) for node in self.nodes)))
            column = self._labels[key] = Column(found.codes[1:], found.values)
        return column
