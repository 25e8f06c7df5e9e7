"""The volumes that name no claim, by size, and what each node takes of them.

A volume that a claim got, and that it gave back, changes nothing about the others: a ranking stands as long as no other
volume comes, and what is free of it is a mask over its ranks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import NodeSelector
from kschedx.api.storage import PersistentVolume
from kschedx.snapshot.columns import BoolArray, IntArray, rows_by_group
from kschedx.snapshot.node_lookup import NodeLookup
from kschedx.snapshot.storage import VolumeCandidates

_NONE = np.zeros(0, dtype=np.int64)


class _Reached(Struct, frozen=True):
    """The nodes that volumes of one reach can be reached from: `rows[start[reach] : start[reach + 1]]`."""

    lookup: NodeLookup
    rows: IntArray
    start: IntArray


class Ranking:
    """Volumes that a claim of their class could be bound to as long as they name no claim, smallest first."""

    def __init__(self, volumes: Iterable[tuple[int, PersistentVolume]]) -> None:
        """With their places, as `VolumeCandidates` has them, in load order: of equal ones the first is taken."""
        ordered = sorted(volumes, key=lambda one: one[1].size)
        self.volumes = tuple(volume for _, volume in ordered)
        self.places: IntArray = np.array([place for place, _ in ordered], dtype=np.int64)
        """(rank,)"""
        reaches: dict[NodeSelector | None, int] = {}
        self.reach: IntArray = np.array(
            [reaches.setdefault(volume.required_node_affinity, len(reaches)) for volume in self.volumes], dtype=np.int64
        )
        """(rank,) equal for volumes with the same node affinity."""
        self._reaches = tuple(reaches)
        self.by_reach, start = rows_by_group(self.reach, len(reaches))
        """(rank,) ranks of one reach after each other, ascending."""
        self.first: IntArray = start[self.reach[self.by_reach]]
        """(rank,) where in `by_reach` those of the same reach start."""
        self._reached: _Reached | None = None
        self._fitting: tuple[int, Fitting] | None = None

    @cached_property
    def of_place(self) -> Mapping[int, PersistentVolume]:
        return dict(zip(self.places.tolist(), self.volumes, strict=True))

    def fitting(self, candidates: VolumeCandidates, storage_class: str) -> Fitting:
        """Those that are free now."""
        version = candidates.version(storage_class)
        if self._fitting is None or self._fitting[0] != version:
            self._fitting = version, Fitting(self, candidates.are_free(self.places))
        return self._fitting[1]

    def reached(self, lookup: NodeLookup) -> _Reached:
        if self._reached is None or self._reached.lookup is not lookup:
            rows = [lookup.selector(reach) for reach in self._reaches]
            start = np.cumsum([0, *map(len, rows)], dtype=np.int64)
            self._reached = _Reached(lookup, np.concatenate([_NONE, *rows]), start)
        return self._reached


class Fitting:
    """What is free of a ranking."""

    def __init__(self, ranking: Ranking, is_free: BoolArray) -> None:
        """`is_free` is (rank,)."""
        self.ranking = ranking
        self._is_free = is_free
        self._best: tuple[NodeLookup, IntArray] | None = None

    @cached_property
    def volumes(self) -> Sequence[PersistentVolume]:
        """Smallest first."""
        return tuple(self.ranking.volumes[rank] for rank in np.flatnonzero(self._is_free))

    def offered(self, lookup: NodeLookup, each: int) -> tuple[IntArray, IntArray]:
        """(pair,) nodes, and ranks of what they reach: of volumes with one reach the first `each` that are free."""
        ranking, reached = self.ranking, self.ranking.reached(lookup)
        free = self._is_free[ranking.by_reach]
        free_before = np.concatenate([[0], np.cumsum(free)])
        turn = free_before[1:] - free_before[ranking.first]
        ranks = ranking.by_reach[free & (turn <= each)]
        first = reached.start[ranking.reach[ranks]]
        counts = reached.start[ranking.reach[ranks] + 1] - first
        before = np.cumsum(counts) - counts
        pairs = np.arange(counts.sum()) + np.repeat(first - before, counts)
        return reached.rows[pairs], np.repeat(ranks, counts)

    def best(self, lookup: NodeLookup, count: int) -> IntArray:
        """(node,) the rank of what each of `count` nodes takes, if it can; the number of all ranks where not."""
        if self._best is None or self._best[0] is not lookup:
            self._best = lookup, self.least(*self.offered(lookup, 1), count)
        return self._best[1]

    def least(self, rows: IntArray, ranks: IntArray, count: int) -> IntArray:
        """As `best`, of pairs as `offered` gives them."""
        best = np.full(count, len(self.ranking.volumes), dtype=np.int64)
        np.minimum.at(best, rows, ranks)
        return best
