"""Sums over the pods of a topology domain, as every node sees them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from kschedx.snapshot.columns import BoolArray, Column, IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import Tally


def present(column: Column[str | None]) -> BoolArray:
    """(node,) whether a node has the label."""
    # a search by equality alone: for host names a rule per value would cost more than everything else here
    absent = column.values.index(None) if None in column.values else -1
    has_label: BoolArray = column.codes != absent
    return has_label


class DomainSums(Struct, frozen=True, kw_only=True):
    """What pods weigh in the domains of some topology keys.

    Each node stands in its own world, so a sum is kept per node, not per domain: two nodes of one domain can differ
    by the pods that were added or removed on one of them.
    """

    weights: Mapping[str, Tally]
    """Topology key to what a pod adds to the domain that it runs in."""
    sums: Mapping[str, IntArray]
    """Topology key to (node,) int64 of the whole cluster: the sum in the node's domain, 0 where it has none."""
    everywhere: IntArray
    """(node,) the sum over all keys and domains."""

    @classmethod
    def of(cls, nodes: NodeTable, weights: Mapping[str, Tally]) -> DomainSums:
        """The sums over all pods that run in the cluster, be their nodes in this table or not."""
        count = len(nodes.cluster.nodes)
        sums: dict[str, IntArray] = {}
        total = 0
        for key, weight in weights.items():
            column = nodes.cluster.label(key)
            here = nodes.pods.tally(weight) * present(column)
            domains = _sum(column.codes, here, len(column.values))
            sums[key] = domains[column.codes]
            total += int(here.sum())
        return cls(weights=weights, sums=sums, everywhere=np.full(count, total, dtype=np.int64))

    def after(self, nodes: NodeTable, change: PodRows, sign: int) -> DomainSums:
        """The sums after pods were added (sign +1) or removed (-1), each seen by its own node alone."""
        sums = dict(self.sums)
        everywhere = self.everywhere
        for key, weight in self.weights.items():
            moved = weight.weights(nodes.pods, change.pods)
            if moved.any():
                here = sign * _sum(change.nodes, moved, len(everywhere)) * present(nodes.cluster.label(key))
                sums[key] = sums[key] + here
                everywhere = everywhere + here
        return DomainSums(weights=self.weights, sums=sums, everywhere=everywhere)

    def any_positive(self, rows: IntArray) -> BoolArray:
        """(row,) whether the node's domain has something under any of the keys."""
        positive = np.zeros(len(rows), dtype=np.bool_)
        for numbers in self.sums.values():
            positive |= numbers[rows] > 0
        return positive


def _sum(group: IntArray, numbers: IntArray, count: int) -> IntArray:
    """(count,) int64 the numbers of each group added up; exact below 2**53."""
    return np.bincount(group, weights=numbers, minlength=count).astype(np.int64)
