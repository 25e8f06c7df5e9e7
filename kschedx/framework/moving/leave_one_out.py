"""Leave-one-out: running pods of one equivalence class, each evaluated in the cluster without itself.

The simple way is a `Run` that removes a pod, decides about it, and puts it back; it takes four times as long.

A *spot* is a node with pods of the class. `base` is a column of the current cluster, with all of these pods; `own` is
(spot,), the spot's row without one of them. If a plugin reads more than a node's own pods (`Touch.CLUSTER`), the column
is evaluated again for each pod. All other arrays are (node,) over the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.framework.interface import (
    CycleState,
    FilterPlugin,
    NotPreparedError,
    Plugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.runtime import Framework, is_out_of_bounds, score_error
from kschedx.framework.status import Code, FirstRejection, Verdicts
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import ClusterRows, IntArray, TableRows, distinct, rows_where
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.nodes import NodeTable, PodRows

_FITS = -1
_NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class _RareError(Exception):
    """Only `schedule` itself can decide this case."""


class _Rejections:
    """The distinct rejections so far, numbered."""

    def __init__(self) -> None:
        self.rejected: list[FirstRejection] = []
        self._number: dict[FirstRejection, int] = {}

    def numbers(self, plugin: str, verdicts: Verdicts) -> IntArray:
        """Return (row,) 0 if a node passes, otherwise 1 + the index of the rejection. Raises `_RareError` for internal
        errors."""
        numbers = np.zeros(len(verdicts), dtype=np.int64)
        rows = np.flatnonzero(verdicts.codes)
        if len(rows):
            pairs = verdicts.reasons.codes[rows] << 8 | verdicts.codes[rows]
            different = distinct(pairs)
            known = [
                self._of(FirstRejection(plugin, Code(pair & 0xFF), verdicts.reasons.values[pair >> 8]))
                for pair in different.tolist()
            ]
            numbers[rows] = np.array(known, dtype=np.int64)[np.searchsorted(different, pairs)]
        return numbers

    def _of(self, rejected: FirstRejection) -> int:
        if rejected.code is Code.ERROR:
            raise _RareError
        number = self._number.setdefault(rejected, len(self.rejected))
        if number == len(self.rejected):
            self.rejected.append(rejected)
        return number + 1


class _SharedPlugin:
    """A plugin and its state, for all profiles that configure it in the same way."""

    def __init__(self, framework: Framework, plugin: Plugin, pod: Pod, state: CycleState) -> None:
        self.framework = framework
        self.plugin = plugin
        self.touch = plugin.touches(pod)
        self.state = state
        self.filters = True  # whether its Filter runs: PreFilter has not returned Skip
        is_at = {at: plugin.name in framework.profile.points[at] for at in ("preFilter", "preScore")}
        self._pre_filter = plugin if isinstance(plugin, PreFilterPlugin) and is_at["preFilter"] else None
        self._pre_score = plugin if isinstance(plugin, PreScorePlugin) and is_at["preScore"] else None

    @property
    def moves(self) -> bool:
        """Whether it must be evaluated for every pod."""
        return self.touch is Touch.CLUSTER

    def prepare_filter(self, pod: Pod, nodes: NodeTable) -> None:
        """Run PreFilter. Raises `_RareError` if it rejects the pod, or restricts the nodes to evaluate."""
        if self._pre_filter is None:
            return
        step = self.framework.pre_filter(self._pre_filter, self.state, pod)
        if step.nodes is not None or not (step.status.is_success or step.status.is_skip):
            raise _RareError
        self.filters = not step.status.is_skip

    def prepare_score(self, pod: Pod, nodes: NodeTable) -> bool:
        """Run PreScore, and return whether the plugin scores."""
        if self._pre_score is None:
            return True
        status = self.framework.pre_score(self._pre_score, self.state, pod, nodes)
        if not (status.is_success or status.is_skip):
            raise _RareError
        return status.is_success


class _FilterWithout:
    """A Filter plugin's verdicts, as numbers of `_Rejections`."""

    def __init__(self, plugin: _SharedPlugin, rejections: _Rejections, pod: Pod, nodes: NodeTable) -> None:
        assert isinstance(plugin.plugin, FilterPlugin)
        self.shared = plugin
        self._plugin = plugin.plugin
        self._rejections = rejections
        plugin.prepare_filter(pod, nodes)
        self.base = self._evaluate(pod, nodes)
        self.own = _NOTHING

    def _evaluate(self, pod: Pod, nodes: NodeTable) -> IntArray:
        if not self.shared.filters:
            return np.zeros(len(nodes), dtype=np.int64)
        return self._rejections.numbers(self._plugin.name, self._plugin.filter(self.shared.state, pod, nodes))

    def evaluate_own(self, pod: Pod, spots: NodeTable) -> None:
        """Evaluate `spots`, the table of the spots with one pod less on each."""
        self.own = self._evaluate(pod, spots) if self.shared.touch is Touch.NODE else self.base[spots.rows]

    def is_like(self, other: _FilterWithout) -> bool:
        """Return whether both have the same verdicts for every pod of the class."""
        return self is other or (
            self._plugin.name == other._plugin.name
            and not (self.shared.moves or other.shared.moves)
            and np.array_equal(self.base, other.base)
            and np.array_equal(self.own, other.own)
        )

    def without(self, pod: Pod, nodes: NodeTable) -> IntArray:
        """Return the column of a plugin that `moves`, in the cluster from which the pod has been removed."""
        self.shared.prepare_filter(pod, nodes)
        return self._evaluate(pod, nodes)


class _FittingNodes(Struct):
    first: IntArray  # the first plugin's rejection, an index into `Rejections.found`, or `FITS`
    node: int  # the pod's own node
    spot: int
    fitted: bool  # whether another identical pod would fit on its node
    fits: bool  # whether it fits on its node without itself
    is_whole: bool  # whether its removal changes the feasibility of nodes other than its own
    table: NodeTable
    feasible_table: NodeTable | None = None

    @property
    def feasible(self) -> NodeTable:
        """The nodes that the pod fits."""
        if self.feasible_table is None:
            self.feasible_table = self.table.take(rows_where(self.first == _FITS))
        return self.feasible_table


class _Filters:
    def __init__(self, columns: Sequence[_FilterWithout], nodes: NodeTable, own_count: int) -> None:
        """`own_count` is the number of spots."""
        self.columns = columns
        self.base = _first((column.base for column in columns), len(nodes))
        self._nodes = nodes
        self._own = _first((column.own for column in columns), own_count)
        self._rejecting = [column for column in columns if column.shared.moves or column.base.any() or column.own.any()]
        """The columns that reject a pod of the class on some node, as far as that is known."""

    @property
    def moves(self) -> bool:
        return any(column.shared.moves for column in self.columns)

    @cached_property
    def fitting_nodes(self) -> NodeTable:
        """The nodes that a pod fits in addition to all pods of its class."""
        rows = rows_where(self.base == _FITS)
        return self._nodes if len(rows) == len(self._nodes) else self._nodes.take(rows)

    def have_same_verdicts(self, columns: Sequence[_FilterWithout]) -> bool:
        """Return whether these columns have the same verdicts for every pod of the class."""
        return len(columns) == len(self.columns) and all(map(_FilterWithout.is_like, columns, self.columns))

    def without(self, spot: int, node: int, pod: Pod | None, anew: dict[_FilterWithout, IntArray]) -> _FittingNodes:
        """Return the verdict without a pod of a spot. `pod` is set if some column is evaluated again; `anew` keeps such
        columns for all profiles."""
        first = self.base.copy()
        is_whole = False
        if pod is not None and self.moves:
            columns = []
            for column in self._rejecting:
                if column.shared.moves:
                    if column not in anew:
                        anew[column] = column.without(pod, self._nodes)
                    columns.append(anew[column])
                else:
                    columns.append(column.base)
            first = _first(columns, len(first))
            own = [
                column.own[spot] if column.shared.touch is Touch.NODE else numbers[node]
                for column, numbers in zip(self._rejecting, columns, strict=True)
            ]
            first[node] = next((number for number in own if number), 0) - 1
            changed = np.flatnonzero((first == _FITS) != (self.base == _FITS))
            is_whole = bool((changed != node).any())
        else:
            first[node] = self._own[spot]
        return _FittingNodes(
            first=first,
            node=node,
            spot=spot,
            fitted=bool(self.base[node] == _FITS),
            fits=bool(first[node] == _FITS),
            is_whole=is_whole,
            table=self._nodes,
        )


class _RawScores:
    def __init__(self, plugin: _SharedPlugin, pod: Pod, nodes: NodeTable) -> None:
        assert isinstance(plugin.plugin, ScorePlugin)
        self.shared = plugin
        self.plugin = plugin.plugin
        self.base = self.own = _NOTHING
        self.is_skipped = False  # whether the plugin scores no pod of the class
        if not plugin.moves:
            self.is_skipped = not plugin.prepare_score(pod, nodes)
            self.base = _NOTHING if self.is_skipped else self._evaluate(pod, nodes)

    def _evaluate(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return self.plugin.score(self.shared.state, pod, nodes)

    def evaluate_own(self, pod: Pod, spots: NodeTable) -> None:
        """Evaluate `spots`, the table of the spots with one pod less on each."""
        if not (self.is_skipped or self.shared.moves):
            self.own = self._evaluate(pod, spots) if self.shared.touch is Touch.NODE else self.base[spots.rows]

    def without(self, pod: Pod, feasible: NodeTable) -> IntArray | None:
        """Return (feasible node,) scores of a plugin that `moves`; None if it does not score."""
        return self._evaluate(pod, feasible) if self.shared.prepare_score(pod, feasible) else None


class _ScoreWithout:
    """A Score plugin's normalized scores of the nodes that certain Filter plugins pass; 0 for all others."""

    def __init__(self, raw: _RawScores, filters: _Filters, pod: Pod, nodes: NodeTable) -> None:
        self.shared = raw.shared
        self.base = np.zeros(len(nodes), dtype=np.int64)
        self._raw = raw
        self._plugin = raw.plugin
        self._nodes = nodes
        self._normalizes = type(raw.plugin).normalize_score is not ScorePlugin.normalize_score
        self._lowest = self._highest = 0
        self._weighted: dict[int, IntArray] = {}
        self._value_of: dict[int, int] = {}
        fitting = filters.fitting_nodes
        if not (raw.is_skipped or raw.shared.moves) and len(fitting):
            scores = raw.base[fitting.rows]
            self.base[fitting.rows] = self._normalize(pod, fitting, scores)
            self._lowest, self._highest = int(scores.min()), int(scores.max())

    def weighted(self, weight: int) -> IntArray:
        """Return `base` times a weight."""
        if weight not in self._weighted:
            self._weighted[weight] = self.base * weight
        return self._weighted[weight]

    def _normalize(self, pod: Pod, nodes: NodeTable, raw: IntArray) -> IntArray:
        scores = self._plugin.normalize_score(self.shared.state, pod, nodes, raw)
        if score_error(self._plugin.name, scores) is not None:
            raise _RareError
        return scores

    def without(self, verdict: _FittingNodes, pod: Pod) -> _ScoredColumn | None:
        """Return the column without the pod; None if the plugin does not score."""
        scores = self._without(verdict, pod)
        return None if scores is None else _ScoredColumn(self, verdict.node, scores)

    def _without(self, verdict: _FittingNodes, pod: Pod) -> int | IntArray | None:
        """Return the score of the pod's own node if all others are those of `base`; otherwise the whole column."""
        if self.shared.moves:
            scores = self._raw.without(pod, verdict.feasible)
            return None if scores is None else self._spread(verdict, pod, scores)
        if self._raw.is_skipped:
            return None
        own = int(self._raw.own[verdict.spot])
        if not verdict.is_whole:
            if not (verdict.fits or verdict.fitted):
                return 0
            if not self._normalizes:
                if is_out_of_bounds(own, own):
                    raise _RareError
                return own if verdict.fits else 0
            if verdict.fits and verdict.fitted and own == self._raw.base[verdict.node]:
                return int(self.base[verdict.node])
            joins = verdict.fits and not verdict.fitted
            if joins and self._plugin.normalizes_by_extremes and self._lowest <= own <= self._highest:
                return self._score_between(pod, own)
        raw = self._raw.base[verdict.feasible.rows]
        if verdict.fits:
            raw[np.searchsorted(verdict.feasible.rows, verdict.node)] = own
        return self._spread(verdict, pod, raw)

    def _score_between(self, pod: Pod, raw: int) -> int:
        """Return the score for a raw score between the lowest and the highest one; the plugin's normalization reads no
        nodes."""
        if raw not in self._value_of:
            three = np.array([raw, self._lowest, self._highest], dtype=np.int64)
            self._value_of[raw] = int(self._normalize(pod, self._nodes, three)[0])
        return self._value_of[raw]

    def _spread(self, verdict: _FittingNodes, pod: Pod, raw: IntArray) -> IntArray:
        column = np.zeros(len(self.base), dtype=np.int64)
        column[verdict.feasible.rows] = self._normalize(pod, verdict.feasible, raw)
        return column


class _ScoredColumn:
    def __init__(self, column: _ScoreWithout, node: int, points: int | IntArray) -> None:
        """`points` is the score of the pod's own node if only that differs from the column's base; otherwise the whole
        column."""
        self.column = column
        self.points = points
        self._node = node
        self._weighted: dict[int, IntArray] = {}

    def weighted(self, weight: int) -> IntArray:
        """The column times a weight: the same object on every call, shared with other pods if it is that of `base`."""
        scores = self._weighted.get(weight)
        if scores is None:
            if isinstance(self.points, int):
                scores = self.column.weighted(weight)
                if scores[self._node] != self.points * weight:
                    scores = scores.copy()
                    scores[self._node] = self.points * weight
            else:
                scores = self.points * weight
            self._weighted[weight] = scores
        return scores


def _first(columns: Iterable[IntArray], count: int) -> IntArray:
    """Return (row,) the first number in the columns that is not 0, less 1."""
    first = np.zeros(count, dtype=np.int64)
    for column in reversed(list(columns)):
        if column.any():
            np.copyto(first, column, where=column != 0)
    return first - 1


# The results of profiles for running pods, each as if it were new, in the cluster without itself.
#
# Pods of one class share the columns of the current cluster. For most plugins, the removal of one of them changes one
# row, and these rows are evaluated for all pods of the class together. Plugins that two profiles configure in the same
# way are evaluated once for both.

_POINTS = ("preFilter", "filter", "preScore", "score")


class Outlook(Struct, frozen=True, kw_only=True):
    """One profile's result for a pod that fits some node. All arrays are (node,); several outlooks may share them."""

    verdicts: IntArray  # indexes into `rejections`, or `FITS`
    rejections: Sequence[FirstRejection]  # all rejections of pods of this class; it only grows
    scores: dict[str, IntArray]  # plugin to what it adds to the totals, weight included; 0 if the pod does not fit
    weights: dict[str, int]
    totals: IntArray  # -1 if the pod does not fit


class Profiles:
    """Several profiles on one moving cluster."""

    def __init__(self, cluster: MovingCluster, frameworks: Sequence[Framework]) -> None:
        """The frameworks use the snapshot of `cluster`."""
        self.cluster = cluster
        self.frameworks = frameworks
        self._plugins = [(framework, _node_plugins(framework)) for framework in frameworks]
        self._same_as: dict[Plugin, list[Plugin]] = {}
        """Plugin to those of other profiles that are the same except for their arguments."""
        every = [(framework, plugin) for framework, plugins in self._plugins for plugin in plugins]
        for number, (framework, plugin) in enumerate(every):
            others = (its for other, its in every[:number] if _is_same(other, its, framework, plugin))
            self._same_as[plugin] = list(others)

    def plugins_for(self, pod: Pod) -> list[dict[str, _SharedPlugin]]:
        """Return, for each profile, its plugins that read nodes, by name; those that are configured in the same way are
        one."""
        known: dict[Plugin, _SharedPlugin] = {}
        sides = []
        for framework, plugins in self._plugins:
            state = CycleState()
            for plugin in plugins:
                about = plugin.args_about(pod)
                equals = (other for other in self._same_as[plugin] if other.args_about(pod) == about)
                other = next(equals, None)
                known[plugin] = _SharedPlugin(framework, plugin, pod, state) if other is None else known[other]
            sides.append({plugin.name: known[plugin] for plugin in plugins})
        return sides


class LeaveOneOut:
    """The pods of one class under several profiles."""

    def __init__(self, profiles: Profiles, rows: Sequence[int]) -> None:
        """`rows` are running pods of one class, neither terminating nor nominated. The cluster of the profiles changes
        and is reverted."""
        self._cluster = cluster = profiles.cluster
        self._rows = rows
        self._profiles = profiles
        at: dict[int, list[int]] = {}
        for row in rows:
            at.setdefault(int(cluster.pods.node[row]), []).append(row)
        self._at = list(at.items())

    def __iter__(self) -> Iterator[tuple[list[int], tuple[Outlook, ...] | None]]:
        """Yield the pods of each node with their outcomes; None if only `schedule` can decide these."""
        try:
            sides, pod = self._sides()
        except (_RareError, NotPreparedError):
            yield list(self._rows), None
            return
        moves = any(side.moves for side in sides)
        for spot, (node, rows) in enumerate(self._at):
            mark = self._cluster.mark()
            if moves:
                self._cluster.remove(rows[0], waits=True)
                pod = self._cluster.pods[rows[0]]
            try:
                outlooks = _outlooks(sides, spot, node, pod)
            except (_RareError, NotPreparedError):
                outlooks = None
            finally:
                self._cluster.revert(mark)
            yield rows, outlooks

    def _sides(self) -> tuple[list[_Side], Pod]:
        """Return what all pods of the class share, and one of them as if it were new."""
        cluster = self._cluster
        mark = cluster.mark()
        cluster.remove(self._at[0][1][0], waits=True)
        pod = cluster.pods[self._at[0][1][0]]
        cluster.revert(mark)
        plugins = self._profiles.plugins_for(pod)
        verdicts: dict[_SharedPlugin, _FilterWithout] = {}
        raw: dict[_SharedPlugin, _RawScores] = {}
        rejections = _Rejections()
        used: list[tuple[list[_FilterWithout], list[_RawScores]]] = []
        for framework, its in zip(self._profiles.frameworks, plugins, strict=True):
            _check_enters(framework, pod)
            nodes = framework.nodes
            filtering = [its[plugin.name] for plugin in framework.plugins("filter", FilterPlugin)]
            scoring = [its[plugin.name] for plugin in framework.plugins("score", ScorePlugin)]
            for plugin in its.values():
                if plugin not in filtering:
                    _prepare_alone(plugin, pod, nodes, scores=plugin in scoring)
            for plugin in filtering:
                if plugin not in verdicts:
                    verdicts[plugin] = _FilterWithout(plugin, rejections, pod, nodes)
            for plugin in scoring:
                if plugin not in raw:
                    raw[plugin] = _RawScores(plugin, pod, nodes)
            used.append(([verdicts[plugin] for plugin in filtering], [raw[plugin] for plugin in scoring]))
        spots = np.array([node for node, _ in self._at], dtype=np.int64)
        away = PodRows(pods=np.array([rows[0] for _, rows in self._at], dtype=np.int64), nodes=ClusterRows(spots))
        parts = {it: it.nodes.take(TableRows(spots)).remove_pods(away) for it in self._profiles.frameworks}
        columns: list[_FilterWithout | _RawScores] = [*verdicts.values(), *raw.values()]
        for column in columns:
            column.evaluate_own(pod, parts[column.shared.framework])
        return [*self._combine(used, rejections, pod)], pod

    def _combine(
        self, used: list[tuple[list[_FilterWithout], list[_RawScores]]], rejections: _Rejections, pod: Pod
    ) -> Iterator[_Side]:
        """Yield a side for each profile. Profiles whose Filter plugins have the same verdicts share these results."""
        filters: list[_Filters] = []
        scores: dict[tuple[_RawScores, _Filters], _ScoreWithout] = {}
        for framework, (verdicts, raw) in zip(self._profiles.frameworks, used, strict=True):
            nodes = framework.nodes
            passed = next((known for known in filters if known.have_same_verdicts(verdicts)), None)
            if passed is None:
                passed = _Filters(verdicts, nodes, len(self._at))
                filters.append(passed)
            parts = []
            for raw_scores in raw:
                if (raw_scores, passed) not in scores:
                    scores[raw_scores, passed] = _ScoreWithout(raw_scores, passed, pod, nodes)
                parts.append((scores[raw_scores, passed], framework.profile.weights[raw_scores.plugin.name]))
            yield _Side(passed, parts, rejections)


class _Side:
    def __init__(self, filters: _Filters, parts: list[tuple[_ScoreWithout, int]], rejections: _Rejections) -> None:
        self.filters = filters
        self.parts = parts
        self.rejections = rejections
        self.moves = filters.moves or any(column.shared.moves for column, _ in parts)
        self._totals: IntArray = np.zeros_like(filters.base)
        for column, weight in parts:
            self._totals += column.weighted(weight)
        self._totals[filters.base != _FITS] = -1

    def outlook(self, verdict: _FittingNodes, scored: dict[_ScoreWithout, _ScoredColumn | None]) -> Outlook:
        """Return the outlook; `scored` has the scores of every column."""
        node = verdict.node
        scores: dict[str, IntArray] = {}
        weights: dict[str, int] = {}
        is_whole = verdict.is_whole or self.moves
        total = 0
        for column, weight in self.parts:
            known = scored[column]
            if known is None:
                continue
            name = column.shared.plugin.name
            weights[name] = weight
            scores[name] = known.weighted(weight)
            if isinstance(known.points, int):
                total += known.points * weight
            else:
                is_whole = True
        if is_whole:
            totals = np.zeros_like(verdict.first)
            for numbers in scores.values():
                totals += numbers
            totals[verdict.first != _FITS] = -1
        else:
            totals = self._totals.copy()
            totals[node] = total if verdict.fits else -1
        return Outlook(
            verdicts=verdict.first, rejections=self.rejections.rejected, scores=scores, weights=weights, totals=totals
        )


def _outlooks(sides: list[_Side], spot: int, node: int, pod: Pod) -> tuple[Outlook, ...]:
    anew: dict[_FilterWithout, IntArray] = {}
    verdicts: dict[_Filters, _FittingNodes] = {}
    scored: dict[_ScoreWithout, _ScoredColumn | None] = {}
    for side in sides:
        if side.filters not in verdicts:
            verdicts[side.filters] = side.filters.without(spot, node, pod, anew)
            if not (verdicts[side.filters].first == _FITS).any():
                raise _RareError
        verdict = verdicts[side.filters]
        for column, _ in side.parts:
            if column not in scored:
                scored[column] = column.without(verdict, pod)
    return tuple(side.outlook(verdicts[side.filters], scored) for side in sides)


def _check_enters(framework: Framework, pod: Pod) -> None:
    """Raise `_RareError` if the pod would not enter the queue, or if nominated pods count against it."""
    for plugin in framework.plugins("preEnqueue", PreEnqueuePlugin):
        if plugin.touches(pod) is Touch.CLUSTER or not plugin.pre_enqueue(pod).is_success:
            raise _RareError
    if framework.nominated and len(framework.nominated_change(pod, framework.nodes)):
        raise _RareError


def _prepare_alone(shared_plugin: _SharedPlugin, pod: Pod, nodes: NodeTable, *, scores: bool) -> None:
    """Run PreFilter of a plugin without Filter, PreScore of one without Score: they may still decide about the pod."""
    if shared_plugin.moves and not scores:
        raise _RareError
    shared_plugin.prepare_filter(pod, nodes)
    if not scores:
        shared_plugin.prepare_score(pod, nodes)


def _node_plugins(framework: Framework) -> list[Plugin]:
    return list(dict.fromkeys(plugin for point in _POINTS for plugin in framework.plugins(point, Plugin)))


def _is_same(framework: Framework, plugin: Plugin, other: Framework, its: Plugin) -> bool:
    return (
        type(plugin) is type(its)
        and (framework.release.version, framework.release.gates) == (other.release.version, other.release.gates)
        and all(
            (plugin.name in framework.profile.points[at]) is (its.name in other.profile.points[at]) for at in _POINTS
        )
    )
