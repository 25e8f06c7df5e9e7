"""Replicas: identical pods that are assigned one after the other, while nothing else moves.

A `SharedResults` holds the results, on all nodes, of plugins that do not read pods on other nodes. Pods of many classes
share it, and updating it costs only what has moved since its last use. Plugins that read only sums
(`Plugin.reads_sums`) evaluate many nodes at once, each with one more replica, before the nodes get it. `ReplicaSeries`
adds what the other plugins count over the cluster; each of these follows its own results (`Following`). If a plugin
cannot be followed, the series ends, and `EquivalenceClass.decide` continues.

Arrays are (node,) over the whole cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np
from msgspec import Struct

from kschedx.framework.columns import Filtering, Scoring
from kschedx.framework.interface import (
    CycleState,
    FilterPlugin,
    Following,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    Room,
    ScorePlugin,
    Touch,
)
from kschedx.framework.runtime import Framework, is_out_of_bounds, verdicts_of
from kschedx.framework.status import MAX_NODE_SCORE, Code
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray, cluster_rows, distinct
from kschedx.snapshot.moving_cluster import Steps
from kschedx.snapshot.nodes import NodeTable

Pick = Callable[[ClusterRows], ClusterRow]  # picks one of several equally good nodes
_DEPTH = 32  # the maximum number of additional replicas with which a node is evaluated ahead
_FEW_MOVES = 500  # up to this number of moves, sorting their nodes costs less than counting over all nodes
_FEW_CHANGES = 10  # if more than this fraction of the nodes has changed, a decision from the start costs less
_EACH = 1_000  # the number of replicas between two updates of the progress
_ERROR = Code.ERROR  # looking up an enum member is slow
_INFEASIBLE = np.int64(-(2**40))  # below every total


class NotFollowedError(Exception):
    """The next replica must be decided by itself."""


class _NormalizedScores(Struct):
    """Scores, normalized over the feasible nodes, of a plugin whose raw scores no pod changes."""

    plugin: ScorePlugin
    weight: int
    raw: IntArray
    weighted: IntArray
    extremes: tuple[int, int] | None = None  # the lowest and the highest raw score of the feasible nodes


class _FixedScores(Struct):
    """The scores that do not change while pods are assigned to some feasible nodes."""

    passes: BoolArray
    feasible: ClusterRows
    total: IntArray  # the sum of the normalized scores; `INFEASIBLE` for nodes that are not feasible
    extremes: tuple[tuple[IntArray, tuple[int, int] | None], ...]  # `raw` and `extremes` of each `_NormalizedScores`

    def is_independent_of(self, rows: IntArray) -> bool:
        """Return whether the scores stay the same if these nodes are not feasible any more, but others still are."""
        for raw, extremes in self.extremes:
            if extremes is None:
                return False
            here = raw[rows]
            if extremes[0] != extremes[1] and ((here == extremes[0]) | (here == extremes[1])).any():
                return False
        return True


class _SumScore(Struct):
    """A plugin that scores a node by sums over its pods."""

    plugin: ScorePlugin
    weight: int
    scorer: Callable[[NodeTable], IntArray]


class _FollowingPlugin(Struct):
    """A plugin that follows its own results from replica to replica."""

    following: Following
    filters: bool = False
    weight: int = 0


class _Ahead:
    """The results of the plugins that read sums, for nodes with one more replica."""

    def __init__(self, count: int) -> None:
        self.is_known = np.zeros(count, dtype=np.bool_)
        self.is_full = np.zeros(count, dtype=np.bool_)
        self.score = np.zeros(count, dtype=np.int64)
        self.later: dict[ClusterRow, list[tuple[bool, int]]] = {}
        """The results with two more replicas, three, and so on; the highest number comes first."""
        self.depth: dict[ClusterRow, int] = {}


class SharedResults:
    """The results of plugins that do not read other nodes' pods, for all pods that these plugins do not distinguish."""

    def __init__(
        self,
        framework: Framework,
        pod: Pod,
        row: int,
        state: CycleState,
        filtering: Filtering,
        scoring: Scoring,
        seen: int,
    ) -> None:
        """`row` is the pod's row in the PodTable. The pod was decided after `seen` moves, fits, and is on no node yet.
        Raises `NotFollowedError`."""
        count = len(framework.nodes)
        self.framework, self._pod, self._row, self.state = framework, pod, row, state.clone()
        self._rows = filtering.nodes.rows
        self._filters: list[tuple[FilterPlugin, Room | None]] = []
        self._scores: list[_SumScore] = []  # Score plugins that read sums; `_filters` are the Filter plugins that do
        self._node_filters: list[FilterPlugin] = []
        self._node_scores: list[tuple[ScorePlugin, int]] = []
        """Score plugins that read only the node and do not normalize, with their weights; `_node_filters` are the
        Filter plugins that read only the node."""
        self.fixed: list[_NormalizedScores] = []
        self.is_refused = np.ones(count, dtype=np.bool_)  # whether a plugin rejects the node regardless of moves
        self.is_full = np.zeros(count, dtype=np.bool_)  # whether a plugin that reads sums rejects the node
        self._score = np.zeros(count, dtype=np.int64)  # the weighted scores of plugins that read sums
        self.sum = np.zeros(count, dtype=np.int64)
        """These scores and those of other plugins that do not depend on other nodes."""
        self.seen = seen  # the number of moves that are included
        self.taken = np.zeros(count, dtype=np.int64)
        """(node,) replicas that are counted and not yet in the table of nodes."""
        self._ranked: _FixedScores | None = None  # the last result of `rank`
        self._ahead = _Ahead(count)
        self._resized = framework.nodes.cluster.resized
        self._read_filters(filtering)
        self._read_scores(scoring)

    def _read_filters(self, filtering: Filtering) -> None:
        rejections = filtering.rejections.copy()
        for column in filtering.columns:
            if column.touch is Touch.CLUSTER:
                rejections -= column.codes != 0
            elif column.touch is Touch.NODE and column.runs:
                if not column.plugin.reads_sums:
                    raise NotFollowedError
                plugin = column.plugin
                self._filters.append((plugin, plugin.room(self.state, self._pod, self.framework.nodes)))
                self.is_full[self._rows] |= column.codes != 0
                rejections -= column.codes != 0
            elif column.runs:
                self._node_filters.append(column.plugin)
        self.is_refused[self._rows] = rejections != 0

    def _read_scores(self, scoring: Scoring) -> None:
        self.sum[self._rows] = scoring.sums
        for column in scoring.columns:
            if column.touch is Touch.CLUSTER or column.skipped:
                continue
            if column.touch is Touch.NODE:
                if not (column.is_sum and column.plugin.reads_sums):
                    raise NotFollowedError
                scorer = column.plugin.scorer(self.state, self._pod, self.framework.nodes)
                self._scores.append(_SumScore(column.plugin, column.weight, scorer))
                self._score[self._rows] += column.raw.astype(np.int64) * column.weight
            elif column.is_sum:
                self._node_scores.append((column.plugin, column.weight))
            else:
                raw = np.zeros(len(self.sum), dtype=np.int64)
                raw[self._rows] = column.raw
                self.fixed.append(_NormalizedScores(column.plugin, column.weight, raw, raw))

    @property
    def is_without_room(self) -> bool:
        """Whether no node passes these plugins."""
        return bool((self.is_refused | self.is_full).all())

    def catch_up(self, steps: Steps) -> None:
        """Include the moves since the last update. Raises `NotFollowedError` if a plugin fails on a changed node, if
        many nodes have changed, or more than nodes and pods."""
        if self.seen == len(steps):
            return
        _, nodes, signs = steps.since(self.seen)
        if not signs.all():
            is_many = np.count_nonzero(signs == 0) > len(self.sum) // _FEW_CHANGES
            if is_many or nodes.max() >= len(self.sum):
                raise NotFollowedError
            self._read_nodes(ClusterRows(distinct(nodes[signs == 0])))
        moved = ClusterRows(np.bincount(nodes).nonzero()[0] if len(nodes) > _FEW_MOVES else distinct(nodes))
        rows = ClusterRows(moved[~self.is_refused[moved]])
        if len(rows):
            ahead, count = self._ahead, len(rows)
            is_full, score = self._with_more(ClusterRows(np.concatenate((rows, rows))), np.arange(2).repeat(count))
            self.is_full[rows], ahead.is_full[rows] = is_full[:count], is_full[count:]
            self.sum[rows] += score[:count] - self._score[rows]
            self._score[rows], ahead.score[rows] = score[:count], score[count:]
            ahead.is_known[rows] = True
            if ahead.later:
                for row in ahead.later.keys() & rows.tolist():
                    del ahead.later[row]
        self.seen = len(steps)

    def _read_nodes(self, rows: ClusterRows) -> None:
        """Read changed nodes again, except for what depends on sums over their pods."""
        self._ranked = None
        part, state, pod = self.framework.nodes.at(rows), self.state, self._pod
        is_refused = ~np.isin(rows, self._rows)
        for plugin in self._node_filters:
            codes = verdicts_of(plugin, state, pod, part).codes
            if (codes == _ERROR).any():
                raise NotFollowedError
            is_refused |= codes != 0
        self.is_refused[rows] = is_refused
        self.sum[rows] = self._score[rows]
        for score_plugin, weight in self._node_scores:
            self.sum[rows] += _check_bounds(score_plugin.score(state, pod, part)) * weight
        for fixed in self.fixed:
            raw = fixed.plugin.score(state, pod, part)
            if not np.array_equal(fixed.raw[rows], raw):
                fixed.raw[rows], fixed.extremes = raw, None
        if self._resized == self.framework.nodes.cluster.resized:
            return
        self._resized = self.framework.nodes.cluster.resized
        for plugin, room in self._filters:
            if room is not None:
                again = plugin.room(state, pod, part)
                if again is None:
                    raise NotFollowedError
                room.limit[rows] = again.limit
        for score in self._scores:
            score.scorer = score.plugin.scorer(state, pod, self.framework.nodes)

    def place(self, node: ClusterRow) -> tuple[bool, int]:
        """Count a replica on the node. Return whether that changes if it is full, and the change of its score."""
        is_full, score = self._evaluate(node)
        changed, change = is_full != bool(self.is_full[node]), score - int(self._score[node])
        self.is_full[node], self._score[node] = is_full, score
        self.sum[node] += change
        self.seen += 1
        return changed, change

    def rank(self, passes: BoolArray) -> _FixedScores:
        """Return the scores with these feasible nodes. Raises `NotFollowedError` if one is out of bounds."""
        known = self._ranked
        if known is None or not np.array_equal(known.passes, passes):
            feasible, total = ClusterRows(passes.nonzero()[0]), np.where(passes, 0, _INFEASIBLE)
            for fixed in self.fixed:
                self._normalize(fixed, feasible)
                total += fixed.weighted
            extremes = tuple((fixed.raw, fixed.extremes) for fixed in self.fixed)
            known = self._ranked = _FixedScores(passes, feasible, total, extremes)
        return known

    def _normalize(self, fixed: _NormalizedScores, feasible: ClusterRows) -> None:
        plugin, raw = fixed.plugin, fixed.raw.take(feasible)
        if plugin.normalizes_by_extremes:
            extremes = int(raw.min()), int(raw.max())
            if extremes == fixed.extremes:
                return
            fixed.extremes = extremes
            scores = plugin.normalize_score(self.state, self._pod, self.framework.nodes, fixed.raw.clip(*extremes))
        else:
            scores = np.zeros(len(fixed.raw), dtype=np.int64)
            part = self.framework.nodes.at(feasible)
            scores[feasible] = plugin.normalize_score(self.state, self._pod, part, raw)
        if is_out_of_bounds(int(scores.min()), int(scores.max())):
            fixed.extremes = None
            raise NotFollowedError
        fixed.weighted = scores * fixed.weight

    # --- plugins that read sums

    def _evaluate(self, node: ClusterRow) -> tuple[bool, int]:
        """Return whether a node that has just got a replica is full, and its score."""
        ahead = self._ahead
        if not ahead.is_known[node]:
            self._look_ahead(node)
        result = bool(ahead.is_full[node]), int(ahead.score[node])
        later = ahead.later.get(node)
        if later:
            ahead.is_full[node], ahead.score[node] = later.pop()
        else:
            ahead.is_known[node] = False
        return result

    def _look_ahead(self, node: ClusterRow) -> None:
        """Evaluate the node as it is and with more replicas, and all other unknown nodes with one more."""
        ahead = self._ahead
        depth = ahead.depth[node] = min(2 * ahead.depth.get(node, 1), _DEPTH)
        ahead.is_known[node] = True
        others = (~(ahead.is_known | self.is_refused)).nonzero()[0]
        rows = np.concatenate([np.full(depth, node), others])
        more = np.concatenate([np.arange(depth), np.ones(len(others), dtype=np.int64)])
        is_full, score = self._with_more(ClusterRows(rows), more + self.taken[rows])
        ahead.is_known[others] = True
        ahead.is_full[node], ahead.score[node] = is_full[0], score[0]
        ahead.is_full[others], ahead.score[others] = is_full[depth:], score[depth:]
        ahead.later[node] = [(bool(is_full[at]), int(score[at])) for at in range(depth - 1, 0, -1)]

    def _with_more(self, rows: ClusterRows, more: IntArray | None = None) -> tuple[BoolArray, IntArray]:
        """Return (row,) whether these nodes are full with `more` additional replicas, and their scores."""
        nodes = self.framework.nodes.at(rows)
        if more is not None:
            requests = nodes.requests
            for sums, each in (
                (nodes.requested, requests.matrix[self._row]),
                (nodes.nonzero_requested, requests.nonzero[self._row]),
            ):
                sums += more[:, None] * each  # arrays of this part alone
            nodes.pod_count[...] += more
        is_full, score = np.zeros(len(rows), dtype=np.bool_), np.zeros(len(rows), dtype=np.int64)
        for plugin, room in self._filters:
            if room is not None:
                for column in (room.sums(nodes) > room.limit.take(rows, axis=0)).T:  # like `any`, in half the time
                    is_full |= column
                continue
            codes = verdicts_of(plugin, self.state, self._pod, nodes).codes
            if (codes == _ERROR).any():
                raise NotFollowedError
            is_full |= codes != 0
        for each_score in self._scores:
            score += _check_bounds(each_score.scorer(nodes)) * each_score.weight
        return is_full, score


def _check_bounds(scores: IntArray) -> IntArray:
    """Return the scores. Raises `NotFollowedError` if one is outside 0..100."""
    if scores.view(np.uint64).max(initial=0) > MAX_NODE_SCORE:  # or below 0
        raise NotFollowedError
    return scores


class ReplicaSeries:
    """A series of identical pods."""

    def __init__(self, standing: SharedResults, pod: Pod, row: int, concerned: Collection[Plugin]) -> None:
        """`row` is the first pod's row in the PodTable; that pod is on no node yet. `concerned` are the plugins that
        every move affects. Raises `NotFollowedError`."""
        self._standing, self._framework = standing, standing.framework
        self._following: list[_FollowingPlugin] = []
        self._passes = np.zeros(len(standing.sum), dtype=np.bool_)
        self._feasible = ClusterRows(np.zeros(0, dtype=np.int64))
        self._base = standing.sum
        self._ranked: _FixedScores | None = None
        self._ties: ClusterRows | None = None  # None if unknown
        if concerned:
            self._follow(pod, row, [plugin.name for plugin in concerned if type(plugin).follow is not Plugin.follow])
            if len(self._following) < len(concerned):
                raise NotFollowedError
        self._find_feasible()

    def _follow(self, pod: Pod, row: int, names: Collection[str]) -> None:
        """Filter and score the first pod with these plugins, and follow their results from there."""
        framework, standing = self._framework, self._standing
        state = standing.state.clone()
        skipped = set(state.skip_filter.difference(names))
        for pre_filter in framework.plugins("preFilter", PreFilterPlugin):
            if pre_filter.name in names:
                step = framework.pre_filter(pre_filter, state, pod)
                if step.nodes is not None or not (step.status.is_success or step.status.is_skip):
                    raise NotFollowedError
                skipped |= {pre_filter.name} if step.status.is_skip else set()
        state.skip_filter = frozenset(skipped)
        passes = ~(standing.is_refused | standing.is_full)
        filtering = [plugin for plugin in framework.plugins("filter", FilterPlugin) if plugin.name in names]
        for filter_plugin in filtering:
            if filter_plugin.name not in skipped:
                codes = verdicts_of(filter_plugin, state, pod, framework.nodes).codes
                if (codes == _ERROR).any():
                    raise NotFollowedError
                passes &= codes == 0
        if not passes.any():
            raise NotFollowedError
        feasible = framework.nodes.at(ClusterRows(np.flatnonzero(passes)))
        for pre_score in framework.plugins("preScore", PreScorePlugin):
            if pre_score.name in names:
                status = framework.pre_score(pre_score, state, pod, feasible)
                if not (status.is_success or status.is_skip):
                    raise NotFollowedError
        scoring = {plugin.name: plugin for plugin in framework.plugins("score", ScorePlugin) if plugin.name in names}
        for plugin in dict.fromkeys((*filtering, *scoring.values())):
            following = plugin.follow(state, pod, row)
            if following is None:
                raise NotFollowedError
            filters = plugin in filtering and plugin.name not in skipped
            weight = framework.profile.weights[plugin.name] if plugin.name in scoring else 0
            self._following.append(_FollowingPlugin(following, filters, weight))

    # --- one replica after the other

    def best(self) -> ClusterRows | None:
        """Return the nodes that share the highest total; None if the next replica must be decided by itself."""
        if not len(self._feasible):
            return None
        if self._ties is not None:
            return self._ties
        totals = self._base
        for followed in self._following:
            raw = followed.following.raw
            if raw is None or not followed.weight:
                continue
            here = raw if len(self._feasible) == len(raw) else raw.take(self._feasible)
            lowest, highest = int(here.min()), int(here.max())
            is_short = highest - lowest < len(raw)
            scores = followed.following.normalized(
                np.arange(lowest, highest + 1) if is_short else raw.clip(lowest, highest)
            )
            if is_out_of_bounds(int(scores.min()), int(scores.max())):
                return None
            scores = scores * followed.weight
            totals = totals + (scores.take(raw - lowest, mode="clip") if is_short else scores)
        self._ties = ClusterRows((totals == totals.max()).nonzero()[0])
        return self._ties

    def place(self, node: ClusterRow) -> bool:
        """Count a replica on the node. Return False if the next one must be decided by itself."""
        try:
            changed, change = self._standing.place(node)
            self._base[node] += change
            if self._following or self._ties is None:
                self._ties = None
            elif change < 0 or changed:
                others = self._ties[self._ties != node]
                self._ties = ClusterRows(others) if len(others) else None
            elif change > 0:
                self._ties = cluster_rows([node])
            for followed in self._following:
                changed |= followed.following.place(node) and followed.filters
            if changed:
                self._find_feasible()
        except NotFollowedError:
            return False
        return True

    def place_many(
        self, count: int, pick: Pick, ties: list[ClusterRows] | None, seen: Callable[[int], None], *, ends: bool
    ) -> tuple[ClusterRows, bool]:
        """Place up to `count` replicas, which are in the table of nodes only after the last. Return their nodes, and
        False if the next one must be decided by itself. `ties` gets the nodes that share the highest total, of which
        `pick` picks one; `seen` gets the number of replicas so far. If the series `ends` with them, the last one is
        left to `Standing.catch_up`."""
        nodes, placed, goes_on = np.empty(count, dtype=np.int64), 0, True
        taken = self._standing.taken
        while goes_on and placed < count:
            best = self.best()
            if best is None:
                goes_on = False
                break
            node = pick(best)
            if ties is not None:
                ties.append(best)
            nodes[placed] = node
            placed += 1
            taken[node] += 1
            goes_on = not (ends and placed == count) and self.place(node)
            if placed % _EACH == 0:
                seen(placed)
        taken[:] = 0
        return ClusterRows(nodes[:placed].copy()), goes_on  # the copy frees the unused rest

    def _find_feasible(self) -> None:
        standing = self._standing
        passes = ~(standing.is_refused | standing.is_full)
        for followed in self._following:
            if followed.filters and followed.following.rejected is not None:
                passes &= ~followed.following.rejected
        changed = (passes != self._passes).nonzero()[0]
        if not len(changed):
            return
        before, self._passes, is_less = self._ranked, passes, not passes[changed].any()
        if not passes.any():
            self._feasible = ClusterRows(np.zeros(0, dtype=np.int64))
            return
        if before is not None and is_less and before.is_independent_of(changed):
            self._feasible = ClusterRows(passes.nonzero()[0])
            self._base[changed] = _INFEASIBLE  # other totals, and the remaining ties, stay
        else:
            self._ranked = ranked = standing.rank(passes)
            self._feasible, self._base, self._ties = ranked.feasible, standing.sum + ranked.total, None
        if not all(followed.following.fit(self._feasible) for followed in self._following):
            raise NotFollowedError
