"""What one plugin says of every node about pods of one kind that run, each in the cluster without itself.

A *spot* is a node that holds pods of the kind. `base` is a column of the cluster as it stands, with all of them; `own`
is (spot,), what becomes of the spot's row without a pod of it. Where a plugin looks at more than a node's own pods
(`Touch.CLUSTER`), the column is worked out anew for each pod. All other arrays are (node,) over the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.framework.interface import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.outcome import MAX_NODE_SCORE, MIN_NODE_SCORE
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Verdicts
from kschedx.snapshot.columns import IntArray, distinct
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import rows_where

FITS = -1
_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class RareError(Exception):
    """Only `schedule` itself tells this case right."""


class Rejected(Struct, frozen=True):
    """Why the first plugin that rejects a node does so."""

    plugin: str
    code: Code
    reasons: tuple[str, ...]


class Rejections:
    """All that was found, numbered."""

    def __init__(self) -> None:
        self.found: list[Rejected] = []
        self._number: dict[Rejected, int] = {}

    def numbers(self, plugin: str, verdicts: Verdicts) -> IntArray:
        """(row,) 0 where a node passes, otherwise 1 + the index of why not. Raises `RareError` for internal errors."""
        numbers = np.zeros(len(verdicts), dtype=np.int64)
        rows = np.flatnonzero(verdicts.codes)
        if len(rows):
            pairs = verdicts.reasons.codes[rows] << 8 | verdicts.codes[rows]
            different = distinct(pairs)
            known = [
                self._of(Rejected(plugin, Code(pair & 0xFF), verdicts.reasons.values[pair >> 8]))
                for pair in different.tolist()
            ]
            numbers[rows] = np.array(known, dtype=np.int64)[np.searchsorted(different, pairs)]
        return numbers

    def _of(self, rejected: Rejected) -> int:
        if rejected.code is Code.ERROR:
            raise RareError
        number = self._number.setdefault(rejected, len(self.found))
        if number == len(self.found):
            self.found.append(rejected)
        return number + 1


class Asked:
    """A plugin at work, for all profiles that configure it alike."""

    def __init__(self, framework: Framework, plugin: Plugin, pod: Pod, state: CycleState) -> None:
        self.framework = framework
        self.plugin = plugin
        self.touch = plugin.touches(pod)
        self.state = state
        self.filters = True
        """Whether PreFilter has not returned Skip."""
        is_at = {at: plugin.name in framework.profile.points[at] for at in ("preFilter", "preScore")}
        self._never_skips_filter = plugin.name in framework.release.never_skips_filter
        self._never_skips_score = plugin.name in framework.release.never_skips_score
        self._pre_filter = plugin if isinstance(plugin, PreFilterPlugin) and is_at["preFilter"] else None
        self._pre_score = plugin if isinstance(plugin, PreScorePlugin) and is_at["preScore"] else None

    @property
    def moves(self) -> bool:
        """Whether it has to be asked about every pod."""
        return self.touch is Touch.CLUSTER

    def prepare_filter(self, pod: Pod, nodes: NodeTable) -> None:
        """PreFilter. Raises `RareError` where it decides about the pod, or which nodes are looked at."""
        if self._pre_filter is None:
            return
        result = self._pre_filter.pre_filter(self.state, pod, nodes)
        if result.nodes is not None or not (result.status.is_success or result.status.is_skip):
            raise RareError
        self.filters = not result.status.is_skip or self._never_skips_filter

    def prepare_score(self, pod: Pod, nodes: NodeTable) -> bool:
        """PreScore. Whether the plugin scores."""
        if self._pre_score is None:
            return True
        status = self._pre_score.pre_score(self.state, pod, nodes)
        if not (status.is_success or status.is_skip):
            raise RareError
        return status.is_success or self._never_skips_score


class FilterColumn:
    """A Filter plugin's verdicts, as numbers of `Rejections`."""

    def __init__(self, asked: Asked, rejections: Rejections, pod: Pod, nodes: NodeTable) -> None:
        assert isinstance(asked.plugin, FilterPlugin)
        self.asked = asked
        self._plugin = asked.plugin
        self._rejections = rejections
        asked.prepare_filter(pod, nodes)
        self.base = self._evaluate(pod, nodes)
        self.own = _NOTHING

    def _evaluate(self, pod: Pod, nodes: NodeTable) -> IntArray:
        if not self.asked.filters:
            return np.zeros(len(nodes), dtype=np.int64)
        return self._rejections.numbers(self._plugin.name, self._plugin.filter(self.asked.state, pod, nodes))

    def evaluate_own(self, pod: Pod, spots: NodeTable) -> None:
        """`spots` is the table of the spots with one pod less on each."""
        self.own = self._evaluate(pod, spots) if self.asked.touch is Touch.NODE else self.base[spots.rows]

    def is_like(self, other: FilterColumn) -> bool:
        """Whether both say the same of every pod of the kind."""
        return self is other or (
            self._plugin.name == other._plugin.name
            and not (self.asked.moves or other.asked.moves)
            and np.array_equal(self.base, other.base)
            and np.array_equal(self.own, other.own)
        )

    def without(self, pod: Pod, nodes: NodeTable) -> IntArray:
        """The cluster, in which the pod does not run now, for a plugin that `moves`."""
        self.asked.prepare_filter(pod, nodes)
        return self._evaluate(pod, nodes)


class Verdict(Struct):
    """Which nodes one pod fits on."""

    first: IntArray
    """The first plugin's rejection, an index into what `Rejections` found; `FITS` where there is none."""
    node: int
    """The pod's own node."""
    spot: int
    fitted: bool
    """Whether the pod would fit on its node beside itself."""
    fits: bool
    """Whether it fits there."""
    is_whole: bool
    """Whether it fits elsewhere than another of its kind does."""
    table: NodeTable
    """All nodes."""
    feasible_table: NodeTable | None = None

    @property
    def feasible(self) -> NodeTable:
        """The nodes that it fits on."""
        if self.feasible_table is None:
            self.feasible_table = self.table.take(rows_where(self.first == FITS))
        return self.feasible_table


class Filters:
    """The Filter plugins of a profile."""

    def __init__(self, columns: Sequence[FilterColumn], nodes: NodeTable, own_count: int) -> None:
        """`own_count` is the number of spots."""
        self.columns = columns
        self.base = _first((column.base for column in columns), len(nodes))
        self._nodes = nodes
        self._own = _first((column.own for column in columns), own_count)
        self._rejecting = [column for column in columns if column.asked.moves or column.base.any() or column.own.any()]
        """Those that reject a pod of the kind anywhere, as far as that is known."""

    @property
    def moves(self) -> bool:
        return any(column.asked.moves for column in self.columns)

    @cached_property
    def fitting(self) -> NodeTable:
        """The nodes that a pod fits on beside all of its kind."""
        rows = rows_where(self.base == FITS)
        return self._nodes if len(rows) == len(self._nodes) else self._nodes.take(rows)

    def say(self, columns: Sequence[FilterColumn]) -> bool:
        """Whether these columns come to the same for every pod of the kind."""
        return len(columns) == len(self.columns) and all(map(FilterColumn.is_like, columns, self.columns))

    def without(self, spot: int, node: int, pod: Pod | None, anew: dict[FilterColumn, IntArray]) -> Verdict:
        """Without a pod of a spot; `pod` is given where some column is evaluated anew, once in `anew` for all."""
        first = self.base.copy()
        is_whole = False
        if pod is not None and self.moves:
            columns = []
            for column in self._rejecting:
                if column.asked.moves:
                    if column not in anew:
                        anew[column] = column.without(pod, self._nodes)
                    columns.append(anew[column])
                else:
                    columns.append(column.base)
            first = _first(columns, len(first))
            own = [
                column.own[spot] if column.asked.touch is Touch.NODE else numbers[node]
                for column, numbers in zip(self._rejecting, columns, strict=True)
            ]
            first[node] = next((number for number in own if number), 0) - 1
            changed = np.flatnonzero((first == FITS) != (self.base == FITS))
            is_whole = bool((changed != node).any())
        else:
            first[node] = self._own[spot]
        return Verdict(
            first=first,
            node=node,
            spot=spot,
            fitted=bool(self.base[node] == FITS),
            fits=bool(first[node] == FITS),
            is_whole=is_whole,
            table=self._nodes,
        )


class RawScores:
    """A Score plugin's raw scores."""

    def __init__(self, asked: Asked, pod: Pod, nodes: NodeTable) -> None:
        assert isinstance(asked.plugin, ScorePlugin)
        self.asked = asked
        self.plugin = asked.plugin
        self.base = self.own = _NOTHING
        self.is_skipped = False
        """For every pod of the kind."""
        if not asked.moves:
            self.is_skipped = not asked.prepare_score(pod, nodes)
            self.base = _NOTHING if self.is_skipped else self._evaluate(pod, nodes)

    def _evaluate(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return self.plugin.score(self.asked.state, pod, nodes)

    def evaluate_own(self, pod: Pod, spots: NodeTable) -> None:
        """`spots` is the table of the spots with one pod less on each."""
        if not (self.is_skipped or self.asked.moves):
            self.own = self._evaluate(pod, spots) if self.asked.touch is Touch.NODE else self.base[spots.rows]

    def without(self, pod: Pod, feasible: NodeTable) -> IntArray | None:
        """(feasible node,) for a plugin that `moves`; None where it does not score."""
        return self._evaluate(pod, feasible) if self.asked.prepare_score(pod, feasible) else None


class ScoreColumn:
    """A Score plugin's normalized scores of the nodes that some Filter plugins let through; 0 for all others."""

    def __init__(self, raw: RawScores, filters: Filters, pod: Pod, nodes: NodeTable) -> None:
        self.asked = raw.asked
        self.base = np.zeros(len(nodes), dtype=np.int64)
        self._raw = raw
        self._plugin = raw.plugin
        self._nodes = nodes
        self._normalizes = type(raw.plugin).normalize_score is not ScorePlugin.normalize_score
        self._lowest = self._highest = 0
        self._weighted: dict[int, IntArray] = {}
        self._value_of: dict[int, int] = {}
        fitting = filters.fitting
        if not (raw.is_skipped or raw.asked.moves) and len(fitting):
            scores = raw.base[fitting.rows]
            self.base[fitting.rows] = self._normalized(pod, fitting, scores)
            self._lowest, self._highest = int(scores.min()), int(scores.max())

    def weighted(self, weight: int) -> IntArray:
        """`base` times a weight."""
        if weight not in self._weighted:
            self._weighted[weight] = self.base * weight
        return self._weighted[weight]

    def _normalized(self, pod: Pod, nodes: NodeTable, raw: IntArray) -> IntArray:
        scores = self._plugin.normalize_score(self.asked.state, pod, nodes, raw)
        if len(scores) and (int(scores.max()) > MAX_NODE_SCORE or int(scores.min()) < MIN_NODE_SCORE):
            raise RareError
        return scores

    def without(self, verdict: Verdict, pod: Pod) -> Scored | None:
        """What becomes of the column; None where the plugin does not score."""
        found = self._without(verdict, pod)
        return None if found is None else Scored(self, verdict.node, found)

    def _without(self, verdict: Verdict, pod: Pod) -> int | IntArray | None:
        """The score of the pod's own node, where all others are those of `base`; else the whole column."""
        if self.asked.moves:
            scores = self._raw.without(pod, verdict.feasible)
            return None if scores is None else self._spread(verdict, pod, scores)
        if self._raw.is_skipped:
            return None
        own = int(self._raw.own[verdict.spot])
        if not verdict.is_whole:
            if not (verdict.fits or verdict.fitted):
                return 0
            if not self._normalizes:
                if not MIN_NODE_SCORE <= own <= MAX_NODE_SCORE:
                    raise RareError
                return own if verdict.fits else 0
            if verdict.fits and verdict.fitted and own == self._raw.base[verdict.node]:
                return int(self.base[verdict.node])
            joins = verdict.fits and not verdict.fitted
            if joins and self._plugin.normalizes_by_extremes and self._lowest <= own <= self._highest:
                return self._between_extremes(pod, own)
        raw = self._raw.base[verdict.feasible.rows]
        if verdict.fits:
            raw[np.searchsorted(verdict.feasible.rows, verdict.node)] = own
        return self._spread(verdict, pod, raw)

    def _between_extremes(self, pod: Pod, raw: int) -> int:
        """The score of a node that is neither the lowest nor the highest; the plugin reads no nodes."""
        if raw not in self._value_of:
            three = np.array([raw, self._lowest, self._highest], dtype=np.int64)
            self._value_of[raw] = int(self._normalized(pod, self._nodes, three)[0])
        return self._value_of[raw]

    def _spread(self, verdict: Verdict, pod: Pod, raw: IntArray) -> IntArray:
        column = np.zeros(len(self.base), dtype=np.int64)
        column[verdict.feasible.rows] = self._normalized(pod, verdict.feasible, raw)
        return column


class Scored:
    """A score column of one pod."""

    def __init__(self, column: ScoreColumn, node: int, found: int | IntArray) -> None:
        """`found` is the score of the pod's own node where only that differs from the column's base; else all."""
        self.column = column
        self.found = found
        self._node = node
        self._weighted: dict[int, IntArray] = {}

    def weighted(self, weight: int) -> IntArray:
        """Times a weight; the same object as often as it is asked for, or as it is that of other pods."""
        made = self._weighted.get(weight)
        if made is None:
            if isinstance(self.found, int):
                made = self.column.weighted(weight)
                if made[self._node] != self.found * weight:
                    made = made.copy()
                    made[self._node] = self.found * weight
            else:
                made = self.found * weight
            self._weighted[weight] = made
        return made


def _first(columns: Iterable[IntArray], count: int) -> IntArray:
    """(row,) the number of the first column that has one, less 1."""
    first = np.zeros(count, dtype=np.int64)
    for column in reversed(list(columns)):
        if column.any():
            np.copyto(first, column, where=column != 0)
    return first - 1
