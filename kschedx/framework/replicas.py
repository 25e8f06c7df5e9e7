"""Replicas: identical pods placed one after the other, while nothing else moves.

Between two of them little changes: the sums of the node that took the last one, and what plugins count over the
cluster, which each of those follows by itself (`Following`). Plugins that read nothing but sums (`Plugin.reads_sums`)
are asked about many nodes at once, each with one replica more, before the nodes take it. Whatever cannot be followed
ends the series, and `EquivalenceClass.decide` goes on.

Arrays are (node,) over the whole cluster.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.columns import FilterColumn, Filtering, ScoreColumn, Scoring
from kschedx.framework.interface import CycleState, Following, Plugin, ScorePlugin, Touch
from kschedx.framework.runtime import Framework, is_out_of_bounds, verdicts_of
from kschedx.framework.status import Code
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray

WIDTH, DEPTH = 64, 32
"""How many nodes are evaluated ahead, and a node with how many replicas more."""
INFEASIBLE = np.int64(-(2**40))
"""Below every total."""


class NotFollowedError(Exception):
    """The next replica has to be decided by itself."""


class _Normalized(Struct):
    """Scores of a plugin that no pod changes, normalized over the feasible nodes."""

    plugin: ScorePlugin
    weight: int
    raw: IntArray
    weighted: IntArray
    extremes: tuple[int, int] | None = None
    """The lowest and the highest raw score of the feasible nodes."""


class _Followed(Struct):
    """A plugin that says what each replica changes."""

    following: Following
    filters: bool = False
    weight: int = 0


class _Ahead:
    """What the plugins that read sums say of nodes with one replica more."""

    def __init__(self, count: int) -> None:
        self.is_known = np.zeros(count, dtype=np.bool_)
        self.is_full = np.zeros(count, dtype=np.bool_)
        self.score = np.zeros(count, dtype=np.int64)
        self.later: dict[ClusterRow, list[tuple[bool, int]]] = {}
        """The same with two replicas more, and three; the last one first."""
        self.depth: dict[ClusterRow, int] = {}


class Replicas:
    """The pods of a class after one that is about to be placed."""

    def __init__(
        self, framework: Framework, pod: Pod, row: int, state: CycleState, filtering: Filtering, scoring: Scoring
    ) -> None:
        """`row` is the pod's in the PodTable; it was decided last, fits, and is on no node yet. Raises
        `NotFollowedError`."""
        count = len(framework.nodes)
        self._framework, self._pod, self._row, self._state = framework, pod, row, state
        self._rows = filtering.nodes.rows
        self._following: dict[str, _Followed] = {}
        self._filters: list[FilterColumn] = []
        self._scores: list[ScoreColumn] = []
        """Filter and Score plugins that read sums."""
        self._fixed: list[_Normalized] = []
        self._is_refused = np.ones(count, dtype=np.bool_)
        """A plugin rejects the node, whatever comes."""
        self._is_full = np.zeros(count, dtype=np.bool_)
        """A plugin that reads sums rejects the node."""
        self._score = np.zeros(count, dtype=np.int64)
        """What plugins score that read sums."""
        self._sum = np.zeros(count, dtype=np.int64)
        """The same with what other plugins score that does not depend on other nodes."""
        self._ahead = _Ahead(count)
        self._read_filters(filtering)
        self._read_scores(scoring)
        self._feasible = ClusterRows(np.zeros(0, dtype=np.int64))
        self._base = self._totals = self._sum
        self._find_feasible()
        self.best()

    def _read_filters(self, filtering: Filtering) -> None:
        rejections = filtering.rejections.copy()
        for column in filtering.columns:
            if column.touch is Touch.CLUSTER:
                self._follow(column.plugin).filters = column.runs
                rejections -= column.codes != 0
            elif column.touch is Touch.NODE and column.runs:
                if not column.plugin.reads_sums:
                    raise NotFollowedError
                self._filters.append(column)
                self._is_full[self._rows] |= column.codes != 0
                rejections -= column.codes != 0
        self._is_refused[self._rows] = rejections != 0

    def _read_scores(self, scoring: Scoring) -> None:
        self._sum[self._rows] = scoring.sums
        for column in scoring.columns:
            if column.touch is Touch.CLUSTER:
                self._follow(column.plugin).weight = column.weight
            elif column.skipped:
                continue
            elif column.touch is Touch.NODE:
                if not (column.is_sum and column.plugin.reads_sums):
                    raise NotFollowedError
                self._scores.append(column)
                self._score[self._rows] += column.raw.astype(np.int64) * column.weight
            elif not column.is_sum:
                raw = np.zeros(len(self._sum), dtype=np.int64)
                raw[self._rows] = column.raw
                self._fixed.append(_Normalized(column.plugin, column.weight, raw, raw))

    def _follow(self, plugin: Plugin) -> _Followed:
        known = self._following.get(plugin.name)
        if known is None:
            following = plugin.follow(self._state, self._pod, self._row)
            if following is None:
                raise NotFollowedError
            known = self._following[plugin.name] = _Followed(following)
        return known

    # --- one replica after the other

    def best(self) -> ClusterRows | None:
        """The nodes that share the highest total; None where the next replica has to be decided by itself."""
        if not len(self._feasible):
            return None
        totals = self._base
        for one in self._following.values():
            raw = one.following.raw
            if raw is None or not one.weight:
                continue
            here = raw if len(self._feasible) == len(raw) else raw[self._feasible]
            lowest, highest = int(here.min()), int(here.max())
            is_short = highest - lowest < len(raw)
            scores = one.following.normalized(np.arange(lowest, highest + 1) if is_short else raw.clip(lowest, highest))
            if is_out_of_bounds(int(scores.min()), int(scores.max())):
                return None
            scores = scores * one.weight
            totals = totals + (scores.take(raw - lowest, mode="clip") if is_short else scores)
        self._totals = totals
        return ClusterRows(np.flatnonzero(totals == totals.max()))

    def place(self, node: ClusterRow) -> bool:
        """A replica is on the node now. False where the next one has to be decided by itself."""
        try:
            is_full, score = self._evaluated(node)
            changed = is_full != bool(self._is_full[node])
            change = score - int(self._score[node])
            self._is_full[node], self._score[node] = is_full, score
            self._sum[node] += change
            self._base[node] += change
            for one in self._following.values():
                changed |= one.following.place(node) and one.filters
            if changed:
                self._find_feasible()
        except NotFollowedError:
            return False
        return True

    def _find_feasible(self) -> None:
        passes = ~(self._is_refused | self._is_full)
        for one in self._following.values():
            if one.filters and one.following.rejected is not None:
                passes &= ~one.following.rejected
        feasible = ClusterRows(np.flatnonzero(passes))
        if np.array_equal(feasible, self._feasible):
            return
        self._feasible = feasible
        if not len(feasible):
            return
        if not all(one.following.fit(feasible) for one in self._following.values()):
            raise NotFollowedError
        total = self._sum
        for fixed in self._fixed:
            self._normalize(fixed, feasible)
            total = total + fixed.weighted
        self._base = np.where(passes, total, INFEASIBLE)

    def _normalize(self, fixed: _Normalized, feasible: ClusterRows) -> None:
        plugin, raw = fixed.plugin, fixed.raw[feasible]
        if plugin.normalizes_by_extremes:
            extremes = int(raw.min()), int(raw.max())
            if extremes == fixed.extremes:
                return
            fixed.extremes = extremes
            scores = plugin.normalize_score(self._state, self._pod, self._framework.nodes, fixed.raw.clip(*extremes))
        else:
            scores = np.zeros(len(fixed.raw), dtype=np.int64)
            part = self._framework.nodes.at(feasible)
            scores[feasible] = plugin.normalize_score(self._state, self._pod, part, raw)
        if is_out_of_bounds(int(scores.min()), int(scores.max())):
            raise NotFollowedError
        fixed.weighted = scores * fixed.weight

    # --- plugins that read sums

    def _evaluated(self, node: ClusterRow) -> tuple[bool, int]:
        """Whether a node is full that has just taken a replica, and what it scores."""
        ahead = self._ahead
        if not ahead.is_known[node]:
            self._look_ahead(node)
        found = bool(ahead.is_full[node]), int(ahead.score[node])
        later = ahead.later.get(node)
        if later:
            ahead.is_full[node], ahead.score[node] = later.pop()
        else:
            ahead.is_known[node] = False
        return found

    def _look_ahead(self, node: ClusterRow) -> None:
        """Evaluate the node as it is and with more replicas, and with one more those that may take the next ones."""
        ahead, totals = self._ahead, self._totals
        depth = ahead.depth[node] = min(2 * ahead.depth.get(node, 1), DEPTH)
        likely = np.flatnonzero(totals == totals.max())
        if len(likely) < WIDTH < len(totals):
            likely = np.argpartition(totals, -WIDTH)[-WIDTH:]
        likely = likely[~ahead.is_known[likely] & (likely != node)]
        rows = np.concatenate([np.full(depth, node), likely])
        more = np.concatenate([np.arange(depth), np.ones(len(likely), dtype=np.int64)])
        is_full, score = self._with_more(ClusterRows(rows), more)
        ahead.is_known[rows] = True
        ahead.is_full[node], ahead.score[node] = is_full[0], score[0]
        ahead.is_full[likely], ahead.score[likely] = is_full[depth:], score[depth:]
        ahead.later[node] = [(bool(is_full[at]), int(score[at])) for at in range(depth - 1, 0, -1)]

    def _with_more(self, rows: ClusterRows, more: IntArray) -> tuple[BoolArray, IntArray]:
        """(row,) whether these nodes are full with so many replicas more than they have, and what they score."""
        part = self._framework.nodes.at(rows)
        requests = part.requests
        nodes = replace(
            part,
            requested=part.requested + more[:, None] * requests.matrix[self._row],
            nonzero_requested=part.nonzero_requested + more[:, None] * requests.nonzero[self._row],
            pod_count=part.pod_count + more,
        )
        is_full, score = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.int64)
        for filtering in self._filters:
            codes = verdicts_of(filtering.plugin, self._state, self._pod, nodes).codes
            if (codes == Code.ERROR).any():
                raise NotFollowedError
            is_full |= codes != 0
        for scoring in self._scores:
            raw = scoring.plugin.score(self._state, self._pod, nodes)
            if is_out_of_bounds(int(raw.min()), int(raw.max())):
                raise NotFollowedError
            score += raw * scoring.weight
        return is_full, score
