"""What is kept of a plugin's answers for all nodes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy

import numpy as np

from kschedx.framework.cycle import Scores
from kschedx.framework.interface import (
    CycleState,
    FilterPlugin,
    NotPreparedError,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.runtime import Framework, verdicts_of
from kschedx.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, Code, FilterOutcome, Status, Verdicts
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRow,
    ClusterRows,
    Column,
    IntArray,
    TableRow,
    cluster_rows,
    distinct,
)
from kschedx.snapshot.nodes import NodeTable, PodRows


class FilterColumn:
    """A Filter plugin's verdicts, in a few bytes per node."""

    def __init__(self, plugin: FilterPlugin, touch: Touch) -> None:
        self.plugin = plugin
        self.touch = touch
        self.runs = True
        self.codes = np.zeros(0, dtype=np.int8)
        self.reason = np.zeros(0, dtype=np.int32)
        self.reasons: list[tuple[str, ...]] = []
        self._number: dict[tuple[str, ...], int] = {}
        self._told: tuple[ClusterRows, Verdicts] | None = None

    def copy(self) -> FilterColumn:
        """The same, to be changed by itself."""
        other = copy(self)
        other.codes, other.reason = self.codes.copy(), self.reason.copy()
        other.reasons, other._number = list(self.reasons), dict(self._number)
        return other

    def put(self, verdicts: Verdicts) -> None:
        """The verdicts of all nodes."""
        self._told = None
        self.codes = verdicts.codes.astype(np.int8)
        self.reasons = list(verdicts.reasons.values)
        self.reason = verdicts.reasons.codes.astype(np.int32)
        self._number = {}

    def put_success(self, count: int) -> None:
        """No node is rejected, since the plugin is not asked."""
        self._told = None
        self.codes = np.broadcast_to(np.int8(Code.SUCCESS), count)
        self.reason = np.broadcast_to(np.int32(0), count)
        self.reasons, self._number = [()], {}

    def put_rows(self, rows: ClusterRows, verdicts: Verdicts) -> bool:
        """The verdicts of some nodes. Whether any of them changes."""
        if not self._number:
            self._number = {reasons: number for number, reasons in enumerate(self.reasons)}
        reason = [self._code(reasons) for reasons in map(verdicts.reasons.__getitem__, range(len(rows)))]
        if np.array_equal(self.codes[rows], verdicts.codes) and np.array_equal(self.reason[rows], reason):
            return False
        self._told = None
        self.codes[rows] = verdicts.codes
        self.reason[rows] = reason
        return True

    def _code(self, reasons: tuple[str, ...]) -> int:
        number = self._number.setdefault(reasons, len(self.reasons))
        if number == len(self.reasons):
            self.reasons.append(reasons)
        return number

    def verdicts(self, rows: ClusterRows) -> Verdicts:
        """As the plugin gave them for these nodes, without its explanations; the same object while nothing changes."""
        if self._told is None or not np.array_equal(self._told[0], rows):
            codes, reason = self.codes[rows].astype(np.int64), self.reason[rows].astype(np.int64)
            self._told = rows, Verdicts(codes=codes, reasons=Column(reason, list(self.reasons)))
        return self._told[1]


class ScoreColumn:
    """A Score plugin's part of the totals."""

    def __init__(self, plugin: ScorePlugin, touch: Touch, weight: int) -> None:
        self.plugin = plugin
        self.touch = touch
        self.weight = weight
        self.skipped = False
        normalizes = type(plugin).normalize_score is not ScorePlugin.normalize_score
        self.is_sum = not normalizes and touch is not Touch.CLUSTER
        """A node's part is its raw score times the weight, whatever other nodes have."""
        self.raw: IntArray = np.zeros(0, dtype=np.int64)
        self.weighted: IntArray | None = None
        """(feasible node,); None where it has to be worked out."""

    def copy(self) -> ScoreColumn:
        """The same, to be changed by itself; `weighted` is never changed in place."""
        other = copy(self)
        other.raw = self.raw.copy()
        return other


# PreFilter and Filter of one kind of pod: verdicts that are kept, and which nodes are left.
#
# All arrays are (node,) over the whole cluster unless they say otherwise.


class Filtering:
    """Which nodes one kind of pod fits on."""

    def __init__(self, framework: Framework, pod: Pod) -> None:
        self._framework = framework
        self._pre_filters = [(p, p.touches(pod)) for p in framework.plugins("preFilter", PreFilterPlugin)]
        self._columns = [FilterColumn(p, p.touches(pod)) for p in framework.plugins("filter", FilterPlugin)]
        self._results: dict[str, PreFilterResult] = {}
        self._left: BoolArray | None = None
        """The nodes that PreFilter plugins name; None for all."""
        self._rejections = np.zeros(0, dtype=np.int16)
        """How many plugins reject a node."""
        self._outcome: FilterOutcome | None = None
        self._refused: dict[ClusterRow, Status] = {}
        """The nodes that would do but for pods that are nominated for them, with why."""
        self.is_rare = False
        """Only `schedule` tells right what becomes of the pod."""
        self.feasible = cluster_rows([])
        """(feasible node,)"""

    def copy(self) -> Filtering:
        """The same, to be changed by itself."""
        other = copy(self)
        other._columns = [one.copy() for one in self._columns]
        other._results, other._refused = dict(self._results), dict(self._refused)
        other._rejections = self._rejections.copy()
        return other

    @property
    def reads_only_own_pods(self) -> bool:
        """What Filter says of a node has to do with no other node's pods."""
        return all(one.touch is not Touch.CLUSTER for one in self._columns)

    @property
    def naming(self) -> tuple[str, ...]:
        """The plugins that named the nodes to look at."""
        return tuple(name for name, result in self._results.items() if result.nodes is not None)

    @property
    def nodes(self) -> NodeTable:
        """Those that PreFilter leaves in."""
        nodes = self._framework.nodes
        return nodes if self._left is None else nodes.at(ClusterRows(np.flatnonzero(self._left)))

    def is_left(self, node: ClusterRow) -> bool:
        return self._left is None or bool(self._left[node])

    def passes(self, node: ClusterRow) -> bool:
        """Every Filter plugin lets the pod in, PreFilter's nodes aside."""
        return not self._rejections[node] and node not in self._refused

    def outcome(self) -> FilterOutcome:
        """On the nodes that are left in; the same object as long as no verdict changes."""
        rows = self.nodes.rows
        if self._outcome is None:
            verdicts = {one.plugin.name: one.verdicts(rows) for one in self._columns if one.runs}
            self._outcome = FilterOutcome.of(verdicts, len(rows))
        if not self._refused:
            return self._outcome
        refused = {node: status for node, status in self._refused.items() if self.is_left(node)}
        places = map(TableRow, np.searchsorted(rows, list(refused)).tolist())
        return self._outcome.overruled(dict(zip(places, refused.values(), strict=True)))

    # --- what has moved

    def evaluate(self, state: CycleState, pod: Pod) -> None:
        """Everything, for the first time."""
        nodes = self._framework.nodes
        self.is_rare = False
        self._pre_filter(state, pod, [plugin for plugin, _ in self._pre_filters])
        self._rejections = np.zeros(len(nodes), dtype=np.int16)
        if self.is_rare:
            return
        for one in self._columns:
            one.codes = np.zeros(0, dtype=np.int8)
            self._filter(one, state, pod)
        self._find_feasible()

    def evaluate_plugins(self, state: CycleState, pod: Pod, plugins: Collection[str]) -> None:
        """What these plugins say of a pod of another kind."""
        self._pre_filter(state, pod, [plugin for plugin, _ in self._pre_filters if plugin.name in plugins])
        for one in self._columns:
            if one.plugin.name in plugins:
                one.touch = one.plugin.touches(pod)
                self._filter(one, state, pod)
        self._pre_filters = [
            (plugin, plugin.touches(pod) if plugin.name in plugins else touch) for plugin, touch in self._pre_filters
        ]
        self._find_feasible()

    def evaluate_touched(self, state: CycleState, pod: Pod, part: NodeTable, *, nodes_too: bool) -> None:
        """What pods that came to the nodes of `part` or left them can have changed.

        `nodes_too`: the nodes themselves may have changed, which every plugin may read, each node's row its own node.
        """
        self._pre_filter(state, pod, [plugin for plugin, touch in self._pre_filters if touch is Touch.CLUSTER])
        if self.is_rare:
            return
        rows = part.rows
        passed_before = self._rejections[rows] == 0
        anew = False
        for one in self._columns:
            if one.touch is Touch.CLUSTER:
                self._filter(one, state, pod)
                anew = True
            elif (one.touch is Touch.NODE or nodes_too) and one.runs:
                verdicts = verdicts_of(one.plugin, state, pod, part)
                self._rejections[rows] -= one.codes[rows] != 0
                if one.put_rows(rows, verdicts):
                    self._outcome = None
                self._rejections[rows] += verdicts.rejected
                self.is_rare |= bool((verdicts.codes == Code.ERROR).any())
        if anew or not np.array_equal(passed_before, self._rejections[rows] == 0):
            self._find_feasible()

    def _pre_filter(self, state: CycleState, pod: Pod, asked: Collection[PreFilterPlugin]) -> None:
        framework = self._framework
        self._results |= {plugin.name: plugin.pre_filter(state, pod, framework.nodes) for plugin in asked}
        if not asked:
            return
        skipped: set[str] = set()
        left: frozenset[str] | None = None
        for name, result in self._results.items():
            if result.status.is_skip and name not in framework.release.never_skips_filter:
                skipped.add(name)
            elif not (result.status.is_success or result.status.is_skip):
                self.is_rare = True
            elif result.nodes is not None:
                left = result.nodes if left is None else left & result.nodes
        state.skip_filter = frozenset(skipped)
        before, self._left = self._left, None
        if left is not None:
            index = framework.snapshot.cluster.index
            self.is_rare |= not left or any(name not in index for name in left)
            self._left = np.zeros(len(framework.nodes), dtype=np.bool_)
            self._left[[index[name] for name in left if name in index]] = True
        if before is not None or left is not None:
            self._outcome = None

    def _filter(self, one: FilterColumn, state: CycleState, pod: Pod) -> None:
        """All nodes anew."""
        self._outcome = None
        if one.codes.size:
            self._rejections -= one.codes != 0
        one.runs = one.plugin.name not in state.skip_filter
        if not one.runs:
            one.put_success(len(self._framework.nodes))
            return
        verdicts = verdicts_of(one.plugin, state, pod, self._framework.nodes)
        self.is_rare |= bool((verdicts.codes == Code.ERROR).any())
        one.put(verdicts)
        self._rejections += one.codes != 0

    def _find_feasible(self) -> None:
        passed = self._rejections == 0
        if self._left is not None:
            passed &= self._left
        passed[list(self._refused)] = False
        self.feasible = ClusterRows(np.flatnonzero(passed))

    # --- nominated pods

    def count_nominated(self, state: CycleState, pod: Pod, counted: PodRows) -> bool:
        """A node that pods are nominated for, which count against this one, has to do with them and without. False
        where that is an error."""
        refused: Mapping[ClusterRow, Status] = {}
        if len(counted):
            part = self._framework.nodes.at(ClusterRows(distinct(counted.nodes)))
            found = self._framework.refused_beside(counted, state, pod, part)
            refused = {part.cluster_row(row): status for row, status in found.items()}
        if refused.keys() != self._refused.keys():
            self._refused = dict(refused)
            self._find_feasible()
        self._refused = dict(refused)
        return all(status.code is not Code.ERROR for status in refused.values())


# Scores of one kind of pod that are kept.
#
# Raw scores are (node,) over the whole cluster; normalized ones are kept as long as the raw scores and the set of
# feasible nodes stay. Totals are always added up anew.


class Scoring:
    """What the plugins make of the nodes for one kind of pod."""

    def __init__(self, framework: Framework, pod: Pod) -> None:
        self._framework = framework
        weights = framework.profile.weights
        self._pre_scores = [(p, p.touches(pod)) for p in framework.plugins("preScore", PreScorePlugin)]
        self._columns = [
            ScoreColumn(p, p.touches(pod), weights[p.name]) for p in framework.plugins("score", ScorePlugin)
        ]
        self._feasible = cluster_rows([])
        self._sum: IntArray = np.zeros(0, dtype=np.int64)
        """What the scores that are plain sums come to."""
        self._touched: list[tuple[ClusterRows, bool]] = []
        """Nodes to which pods came, or that pods left, since the scores were asked for, and whether nodes changed."""
        self._nodes: NodeTable | None = None
        """The feasible nodes by their rows, with what their pods request at some time."""
        self._not_scored: frozenset[str] = frozenset()
        """Plugins that a move can touch and that do not score now."""
        self.is_rare = False
        """Only `schedule` tells right what becomes of the pod."""

    def copy(self) -> Scoring:
        """The same, to be changed by itself."""
        other = copy(self)
        other._columns = [one.copy() for one in self._columns]
        other._sum = self._sum.copy()
        other._touched = list(self._touched)
        return other

    def scores(self) -> Scores:
        """What the totals are made of."""
        feasible = self._feasible
        everywhere = len(feasible) == len(self._sum)
        if self._nodes is None:
            self._nodes = self._framework.nodes if everywhere else self._framework.nodes.at(feasible)
        raw: dict[str, IntArray] = {}
        normalized: dict[str, IntArray] = {}
        weights: dict[str, int] = {}
        totals = np.zeros(len(feasible), dtype=np.int64)
        for score in self._columns:
            name = score.plugin.name
            if score.skipped or name in self._not_scored:
                continue
            weights[name] = score.weight
            if score.is_sum:
                normalized[name] = raw[name] = score.raw[feasible].astype(np.int64)
            else:
                assert score.weighted is not None, "totals have been worked out"
                normalized[name] = score.weighted // score.weight
                raw[name] = normalized[name] if score.touch is Touch.CLUSTER else score.raw[feasible]
            totals += normalized[name] * score.weight
        skipped = tuple(sorted({score.plugin.name for score in self._columns} - weights.keys()))
        return Scores(
            nodes=self._nodes, skipped=skipped, weights=weights, raw=raw, normalized=normalized, totals=totals
        )

    def totals(self, state: CycleState, pod: Pod, feasible: ClusterRows) -> IntArray:
        """(feasible node,)"""
        if self._touched:
            self._evaluate_touched(state, pod)
        if feasible is not self._feasible and not np.array_equal(feasible, self._feasible):
            self._nodes = None
            for score in self._columns:
                score.weighted = None
        self._feasible = feasible
        everywhere = len(feasible) == len(self._sum)
        totals = self._sum.copy() if everywhere else self._sum[feasible]
        stale = [one for one in self._columns if not one.is_sum and not one.skipped and one.weighted is None]
        if stale:
            nodes = self._framework.nodes if everywhere else self._framework.nodes.at(feasible)
            touched = [plugin for plugin, touch in self._pre_scores if touch is Touch.CLUSTER]
            skipped = self._not_scored = self._pre_score(state, pod, nodes, touched)
            for score in stale:
                if score.touch is not Touch.CLUSTER:
                    raw = score.raw if everywhere else score.raw[feasible]
                elif score.plugin.name in skipped:
                    score.weighted = np.zeros(len(feasible), dtype=np.int64)
                    continue
                else:
                    raw = self._raw(score, state, pod, nodes)
                normalized = score.plugin.normalize_score(state, pod, nodes, raw)
                self._check(normalized)
                score.weighted = normalized * score.weight
        for score in self._columns:
            if score.weighted is not None:
                totals += score.weighted
        return totals

    # --- what has moved

    def evaluate(self, state: CycleState, pod: Pod) -> None:
        """Everything, for the first time."""
        self.is_rare = False
        self._touched = []
        self._sum = np.zeros(len(self._framework.nodes), dtype=np.int64)
        self._evaluate(state, pod, self._columns, [plugin for plugin, _ in self._pre_scores])

    def evaluate_plugins(self, state: CycleState, pod: Pod, plugins: Collection[str]) -> None:
        """What these plugins say of a pod of another kind."""
        columns = [one for one in self._columns if one.plugin.name in plugins]
        for one in columns:
            if one.is_sum and not one.skipped:
                self._sum -= one.raw.astype(np.int64) * one.weight
        place = {id(one): number for number, one in enumerate(self._columns)}
        anew = [ScoreColumn(one.plugin, one.plugin.touches(pod), one.weight) for one in columns]
        for old, new in zip(columns, anew, strict=True):
            self._columns[place[id(old)]] = new
        self._pre_scores = [
            (plugin, plugin.touches(pod) if plugin.name in plugins else touch) for plugin, touch in self._pre_scores
        ]
        self._evaluate(state, pod, anew, [plugin for plugin, _ in self._pre_scores if plugin.name in plugins])

    def touch(self, rows: ClusterRows, *, nodes_too: bool) -> None:
        """As `evaluate_touched` of `Filtering`, when the scores are asked for."""
        self._touched.append((rows, nodes_too))

    def _evaluate_touched(self, state: CycleState, pod: Pod) -> None:
        nodes_too = any(of_nodes for _, of_nodes in self._touched)
        rows = ClusterRows(distinct(np.concatenate([rows for rows, _ in self._touched])))
        self._touched = []
        part = self._framework.nodes.at(rows)
        for score in self._columns:
            if score.touch is Touch.CLUSTER:
                score.weighted = None
            elif (score.touch is Touch.NODE or nodes_too) and not score.skipped:
                raw = self._raw(score, state, pod, part)
                if score.is_sum:
                    self._sum[rows] += (raw - score.raw[rows]) * score.weight
                    score.raw[rows] = raw
                elif not np.array_equal(score.raw[rows], raw):
                    score.raw[rows] = raw
                    score.weighted = None

    def _evaluate(
        self, state: CycleState, pod: Pod, columns: Collection[ScoreColumn], pre_scores: Collection[PreScorePlugin]
    ) -> None:
        """All nodes anew, but for plugins of which every move touches all."""
        nodes = self._framework.nodes
        asked = [plugin for plugin, touch in self._pre_scores if plugin in pre_scores and touch is not Touch.CLUSTER]
        skipped = self._pre_score(state, pod, nodes, asked)
        for score in columns:
            score.weighted = None
            if score.touch is Touch.CLUSTER:
                continue
            score.skipped = score.plugin.name in skipped
            if score.skipped or self.is_rare:
                continue
            raw = self._raw(score, state, pod, nodes)
            if score.is_sum:
                self._sum += raw * score.weight
                score.raw = raw.astype(np.int16)
            else:
                score.raw = raw

    def _pre_score(
        self, state: CycleState, pod: Pod, nodes: NodeTable, asked: Collection[PreScorePlugin]
    ) -> frozenset[str]:
        """Those of the plugins that do not score."""
        skipped: set[str] = set()
        for plugin in asked:
            try:
                status = plugin.pre_score(state, pod, nodes)
            except NotPreparedError:
                self.is_rare = True
                continue
            if status.is_skip:
                if plugin.name not in self._framework.release.never_skips_score:
                    skipped.add(plugin.name)
            elif not status.is_success:
                self.is_rare = True
        return frozenset(skipped)

    def _raw(self, score: ScoreColumn, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        try:
            raw = score.plugin.score(state, pod, nodes)
        except NotPreparedError:
            self.is_rare = True
            return np.zeros(len(nodes), dtype=np.int64)
        if score.is_sum:
            self._check(raw)
        return raw

    def _check(self, scores: IntArray) -> None:
        """A score out of bounds is an internal error."""
        if len(scores) and (int(scores.max()) > MAX_NODE_SCORE or int(scores.min()) < MIN_NODE_SCORE):
            self.is_rare = True
