"""Which pods a constraint counts."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kschedx.api.selectors import Selector
from kschedx.snapshot.columns import BoolArray, Column, IntArray
from kschedx.snapshot.pods import PodTable


class MatchingPods:
    """The pods of one namespace, held against selectors; constraints never look into another one."""

    def __init__(self, pods: PodTable, namespace: str, *, empty_counts_all: bool) -> None:
        """`empty_counts_all`: whether an empty selector, which matches every pod, also counts them."""
        self._pods = pods
        self._rows: IntArray = np.flatnonzero(pods.namespaces.where(lambda name: name == namespace))
        self._empty_counts_all = empty_counts_all
        self._matches: dict[Selector, BoolArray] = {}  # constraints of a pod mostly share their selector

    @cached_property
    def _labels(self) -> Column[dict[str, str]]:
        return self._pods.labels.take(self._rows)

    def where(self, selector: Selector) -> BoolArray:
        """(pod,) whether a pod is in the namespace and matches, be it running or not."""
        matches = self._matches.get(selector)
        if matches is None:
            matches = self._matches[selector] = np.zeros(len(self._pods), dtype=np.bool_)
            matches[self._rows] = self._labels.where(selector.matches)
        return matches

    def places(self, selector: Selector) -> IntArray:
        """(matching pod,) cluster rows of the nodes on which the pods that count run.

        Terminating pods do not count, and an empty selector may count none though it matches all.
        """
        if selector.empty and not self._empty_counts_all:
            return np.empty(0, dtype=np.int64)
        running = self.where(selector) & (self._pods.node >= 0) & ~self._pods.terminating
        return self._pods.node[running]
