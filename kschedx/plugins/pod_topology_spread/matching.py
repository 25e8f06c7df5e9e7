"""Which pods a constraint counts."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import Selector
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.pods import PodTable


class SelectedPods(Struct, frozen=True):
    """The pods of one namespace that a selector matches; constraints never look into another one.

    As a tally it counts those that are not terminating.
    """

    namespace: str
    selector: Selector

    def where(self, pods: PodTable, rows: IntArray) -> BoolArray:
        """(row,) whether these pods, rows of the table, are in the namespace and match, be they running or not."""
        matches = pods.namespaces.take(rows).where(lambda name: name == self.namespace)
        inside = np.flatnonzero(matches)
        if len(inside):
            matches[inside] = pods.labels.take(rows[inside]).where(self.selector.matches)
        return matches

    def weights(self, pods: PodTable, rows: IntArray) -> IntArray:
        counted = self.where(pods, rows) & ~pods.terminating[rows]
        return counted.astype(np.int64)


class MatchingPods:
    """The running pods of one namespace, held against selectors."""

    def __init__(self, pods: PodTable, namespace: str, *, empty_counts_all: bool) -> None:
        """`empty_counts_all`: whether an empty selector, which matches every pod, also counts them."""
        self._pods = pods
        self._namespace = namespace
        self._empty_counts_all = empty_counts_all

    def selected(self, selector: Selector) -> SelectedPods:
        return SelectedPods(self._namespace, selector)

    def per_node(self, selector: Selector) -> IntArray:
        """(node,) of the whole cluster: the pods that count.

        Terminating pods do not count, and an empty selector may count none though it matches all.
        """
        if selector.empty and not self._empty_counts_all:
            return np.zeros(self._pods.node_count, dtype=np.int64)
        return self._pods.tally(self.selected(selector))
