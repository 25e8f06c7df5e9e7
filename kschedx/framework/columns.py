"""Columns: the results of Filter and Score plugins on all nodes for a class of pods, kept as long as they are valid.

Unless stated otherwise, arrays are (node,) over the nodes that PreFilter returns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from kschedx.framework.cycle import PreFilterOutcome, PreFilterStep, Scores
from kschedx.framework.interface import (
    CycleState,
    FilterPlugin,
    NotPreparedError,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.runtime import Framework, score_error, verdicts_of
from kschedx.framework.status import Code, FilterOutcome, Status, Verdicts, error
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import (
    ClusterRow,
    ClusterRows,
    Column,
    IntArray,
    TableRow,
    TableRows,
    cluster_rows,
    distinct,
    each_row,
    rows_where,
)
from kschedx.snapshot.nodes import NodeTable, PodRows

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ERROR = int(Code.ERROR)  # numpy is slow with enum members


@lru_cache(maxsize=64)
def _success(count: int) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """Return the codes and reasons of nodes that all pass, read-only."""
    return np.broadcast_to(np.int8(Code.SUCCESS), count), np.broadcast_to(np.int32(0), count)


class _FilterColumn:
    """A Filter plugin's verdicts on the nodes that PreFilter returns, in a few bytes per node."""

    def __init__(self, plugin: FilterPlugin, touch: Touch, *, explains: bool) -> None:
        """If `explains`, the plugin's explanations are kept as long as its verdicts."""
        self.plugin = plugin
        self.touch = touch
        self.runs = True
        self.codes = np.zeros(0, dtype=np.int8)
        self.reason = np.zeros(0, dtype=np.int32)
        self.reasons: list[tuple[str, ...]] = []
        self._explains = explains
        self._number: dict[tuple[str, ...], int] = {}
        self._verdicts: Verdicts | None = None

    def copy(self) -> _FilterColumn:
        other = copy(self)
        other.codes, other.reason = self.codes.copy(), self.reason.copy()
        other.reasons, other._number = list(self.reasons), dict(self._number)
        return other

    def put(self, verdicts: Verdicts) -> None:
        self._verdicts = verdicts if self._explains else None
        self.codes = verdicts.codes.astype(np.int8)
        self.reasons = list(verdicts.reasons.values)
        self.reason = verdicts.reasons.codes.astype(np.int32)
        self._number = {}

    def put_success(self, count: int) -> None:
        """Pass all nodes, because the plugin does not run."""
        self._verdicts = None
        self.codes, self.reason = _success(count)
        self.reasons, self._number = [()], {}

    def put_rows(self, rows: TableRows, verdicts: Verdicts) -> bool:
        """Set the verdicts on some nodes, and return whether any of them changes."""
        if not self._number:
            self._number = {reasons: number for number, reasons in enumerate(self.reasons)}
        own = verdicts.reasons
        different = distinct(own.codes)
        numbers = np.array([self._code(own.values[code]) for code in different.tolist()], dtype=np.int64)
        reason = numbers[np.searchsorted(different, own.codes)]
        if np.array_equal(self.codes[rows], verdicts.codes) and np.array_equal(self.reason[rows], reason):
            return False
        self._verdicts = None
        self.codes[rows] = verdicts.codes
        self.reason[rows] = reason
        return True

    def _code(self, reasons: tuple[str, ...]) -> int:
        number = self._number.setdefault(reasons, len(self.reasons))
        if number == len(self.reasons):
            self.reasons.append(reasons)
        return number

    @property
    def verdicts(self) -> Verdicts:
        """The verdicts as the plugin returned them; the same object as long as nothing changes."""
        if self._verdicts is None:
            reasons = Column(self.reason.astype(np.int64), list(self.reasons))
            self._verdicts = Verdicts(codes=self.codes.astype(np.int64), reasons=reasons)
        return self._verdicts


class _ScoreColumn:
    """A Score plugin's part of the totals."""

    def __init__(self, plugin: ScorePlugin, touch: Touch, weight: int) -> None:
        self.plugin = plugin
        self.touch = touch
        self.weight = weight
        self.skipped = False
        normalizes = type(plugin).normalize_score is not ScorePlugin.normalize_score
        self.is_sum = not normalizes and touch is not Touch.CLUSTER
        """Whether a node's part is its raw score times the weight, independent of other nodes."""
        self.raw: IntArray = np.zeros(0, dtype=np.int64)
        """(node,) for the nodes that PreFilter returns; (feasible node,) for a plugin that every move affects."""
        self.weighted: IntArray | None = None  # (feasible node,); None if it has to be computed

    def copy(self) -> _ScoreColumn:
        """Return an independent copy; `weighted` is shared, since it never changes in place."""
        other = copy(self)
        other.raw = self.raw.copy()
        return other


class Filtering:
    """The nodes that the pods of a class fit."""

    def __init__(
        self,
        framework: Framework,
        touch: Callable[[Plugin], Touch],
        *,
        explains: bool,
        placement: ClusterRows | None = None,
    ) -> None:
        """`placement` are the only nodes to evaluate, ascending; None for all."""
        self._framework = framework
        self._placement = placement
        self._pre_filters = {p.name: touch(p) for p in framework.plugins("preFilter", PreFilterPlugin)}
        self.columns = [
            _FilterColumn(p, touch(p), explains=explains) for p in framework.plugins("filter", FilterPlugin)
        ]
        self.pre_filter = PreFilterOutcome()
        self._left: ClusterRows | None = None  # the nodes that PreFilter returns, ascending; None for all
        self.rejections = np.zeros(0, dtype=np.int16)  # the number of plugins that reject a node
        self._outcome: FilterOutcome | None = None
        self._refused: dict[ClusterRow, Status] = {}
        """Nodes that pass only without the pods nominated for them, with the status."""
        self._may_fail = False  # whether a plugin fails on some node, or failed before it was evaluated again
        self.feasible = cluster_rows([])  # (feasible node,)

    def copy(self) -> Filtering:
        other = copy(self)
        other._pre_filters = dict(self._pre_filters)
        other.columns = [column.copy() for column in self.columns]
        other._refused = dict(self._refused)
        other.rejections = self.rejections.copy()
        return other

    @property
    def nodes(self) -> NodeTable:
        """The nodes that PreFilter returns."""
        return self._framework.nodes if self._left is None else self._framework.nodes.at(self._left)

    def positions(self, rows: ClusterRows) -> tuple[TableRows, ClusterRows]:
        """Return the rows that PreFilter returns: their positions in `nodes`, and the rows themselves."""
        if self._left is None:
            return TableRows(rows), rows
        place = np.searchsorted(self._left, rows)
        inside = place < len(self._left)
        inside[inside] = self._left[place[inside]] == rows[inside]
        return TableRows(place[inside]), ClusterRows(rows[inside])

    def is_left(self, node: ClusterRow) -> bool:
        return self._left is None or bool(len(self.positions(cluster_rows([node]))[0]))

    def passes(self, node: ClusterRow) -> bool:
        """Return whether every Filter plugin passes a node that PreFilter returns."""
        place, _ = self.positions(cluster_rows([node]))
        return not self.rejections[place[0]] and node not in self._refused

    @property
    def is_plain(self) -> bool:
        """Whether PreFilter returns nodes that all exist, and no plugin fails."""
        outcome = self.pre_filter
        named = outcome.nodes is None or (self._left is not None and len(self._left) == len(outcome.nodes))
        return outcome.status.is_success and named and not self._may_fail

    def outcome(self) -> FilterOutcome:
        """Return the outcome on `nodes`; without nominated pods, the same object as long as no verdict changes."""
        if self._outcome is None:
            verdicts = {column.plugin.name: column.verdicts for column in self.columns if column.runs}
            self._outcome = FilterOutcome.of(verdicts, len(self.rejections))
        if not self._refused:
            return self._outcome
        return self._outcome.overrule(dict(self._refused_rows()))

    def _refused_rows(self) -> list[tuple[TableRow, Status]]:
        places, _ = self.positions(cluster_rows(list(self._refused)))
        return list(zip(each_row(places), self._refused.values(), strict=True))

    def error(self) -> str:
        """Return the message of the first node on which a plugin fails; empty if there is none."""
        if not self._may_fail:
            return ""
        outcome = self.outcome()
        first = next(each_row(rows_where(outcome.codes == _ERROR)), None)
        if first is None:
            return ""
        status = outcome.status(first)
        return f'running "{status.plugin}" filter plugin: {status.message}'

    # --- evaluation after moves

    def evaluate(self, state: CycleState, pod: Pod) -> None:
        """Evaluate everything, for the first time."""
        framework = self._framework
        self.pre_filter = framework.run_pre_filter(state, pod)
        self._left = self._placement
        if self.pre_filter.nodes is not None:
            named = framework.nodes.only(self.pre_filter.nodes).rows
            self._left = named if self._placement is None else ClusterRows(np.intersect1d(named, self._placement))
        self._refused, self._outcome, self._may_fail = {}, None, False
        if not self.pre_filter.status.is_success:
            return
        nodes = self.nodes
        self.rejections = np.zeros(len(nodes), dtype=np.int16)
        for column in self.columns:
            self._filter(column, state, pod, nodes)
            if column.runs:
                self.rejections += column.codes != 0
        self._find_feasible()

    def evaluate_plugins(
        self, state: CycleState, pod: Pod, plugins: Collection[str], touch: Callable[[Plugin], Touch]
    ) -> bool:
        """Evaluate these plugins for a pod of another class. Return False if PreFilter returns other nodes."""
        for plugin in self._framework.plugins("preFilter", PreFilterPlugin):
            if plugin.name in plugins:
                self._pre_filters[plugin.name] = touch(plugin)
        if not self._pre_filter_again(state, pod, plugins):
            return False
        nodes = self.nodes
        for column in self.columns:
            if column.plugin.name in plugins:
                column.touch = touch(column.plugin)
                self._filter_again(column, state, pod, nodes)
        self._find_feasible()
        return True

    def evaluate_touched(self, state: CycleState, pod: Pod, rows: ClusterRows, *, nodes_too: bool) -> bool:
        """Evaluate again what may have changed because pods were added to these nodes or removed from them. Return
        False if PreFilter now returns other nodes; then everything must be evaluated.

        If `nodes_too`, the nodes themselves may have changed. Every plugin may read them, but each row depends only on
        its own node.
        """
        of_cluster = [name for name, touch in self._pre_filters.items() if touch is Touch.CLUSTER]
        if of_cluster and not self._pre_filter_again(state, pod, of_cluster):
            return False
        places, rows = self.positions(rows)
        part = self._framework.nodes.at(rows)
        whole: NodeTable | None = None
        passed_before = self.rejections[places] == 0
        anew = False
        for column in self.columns:
            if column.touch is Touch.CLUSTER:
                whole = whole or self.nodes
                self._filter_again(column, state, pod, whole)
                anew = True
            elif (column.touch is Touch.NODE or nodes_too) and column.runs and len(places):
                verdicts = verdicts_of(column.plugin, state, pod, part)
                self.rejections[places] -= column.codes[places] != 0
                if column.put_rows(places, verdicts):
                    self._outcome = None
                self.rejections[places] += verdicts.rejected
                self._may_fail |= bool((verdicts.codes == _ERROR).any())
        if anew or not np.array_equal(passed_before, self.rejections[places] == 0):
            self._find_feasible()
        return True

    def _pre_filter_again(self, state: CycleState, pod: Pod, plugins: Collection[str]) -> bool:
        """Run these plugins again, and return whether PreFilter returns the same nodes."""
        known: Mapping[str, PreFilterStep] = {
            step.status.plugin: step for step in self.pre_filter.steps if step.status.plugin not in plugins
        }
        before, self.pre_filter = self.pre_filter, self._framework.run_pre_filter(state, pod, known)
        return self.pre_filter.status.is_success and self.pre_filter.nodes == before.nodes

    def _filter_again(self, filter_column: _FilterColumn, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        self.rejections -= filter_column.codes != 0
        self._filter(filter_column, state, pod, nodes)
        self.rejections += filter_column.codes != 0

    def _filter(self, column: _FilterColumn, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        """Run the plugin on all nodes that PreFilter returns."""
        self._outcome = None
        column.runs = column.plugin.name not in state.skip_filter
        if not column.runs:
            column.put_success(len(nodes))
            return
        verdicts = verdicts_of(column.plugin, state, pod, nodes)
        self._may_fail |= bool((verdicts.codes == _ERROR).any())
        column.put(verdicts)

    def _find_feasible(self) -> None:
        passed = self.rejections == 0
        if self._refused:
            passed[[row for row, _ in self._refused_rows()]] = False
        rows = np.flatnonzero(passed)
        self.feasible = ClusterRows(rows if self._left is None else self._left[rows])

    # --- nominated pods

    def count_nominated(self, state: CycleState, pod: Pod, counted: PodRows) -> None:
        """Filter the nodes with nominated pods again: such a node must pass both with the `counted` pods and without
        them."""
        refused: Mapping[ClusterRow, Status] = {}
        _, named = self.positions(ClusterRows(distinct(counted.nodes)))
        if len(named):
            part = self._framework.nodes.at(named)
            refused_rows = self._framework.rejections_with_nominated(counted, state, pod, part)
            refused = {part.cluster_row(row): status for row, status in refused_rows.items()}
        changed = refused.keys() != self._refused.keys()
        self._refused = dict(refused)
        self._may_fail |= any(status.code is Code.ERROR for status in refused.values())
        if changed:
            self._find_feasible()


class ScoreFailedError(Exception):
    """A plugin fails; `status` ends the cycle."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class Scoring:
    """The scores of the nodes for the pods of a class."""

    def __init__(self, framework: Framework, touch: Callable[[Plugin], Touch]) -> None:
        self._framework = framework
        weights = framework.profile.weights
        self.columns = [_ScoreColumn(p, touch(p), weights[p.name]) for p in framework.plugins("score", ScorePlugin)]
        # kube-scheduler calls PreScore only if something scores
        pre_scores = framework.plugins("preScore", PreScorePlugin) if self.columns or framework.extenders else ()
        self._pre_scores = [(p, touch(p)) for p in pre_scores]
        self.sums: IntArray = np.zeros(0, dtype=np.int64)
        """(node,) the sum of the scores that are plain sums, for the nodes that PreFilter returns."""
        self._touched: list[tuple[TableRows, ClusterRows, bool]] = []
        """Nodes with pods that were added or removed since scores were last computed, and whether the nodes changed."""
        self._feasible = TableRows(np.zeros(0, dtype=np.int64))
        self._nodes: NodeTable | None = None  # the feasible nodes, possibly with outdated requests of their pods
        self._skipped: frozenset[str] = frozenset()  # plugins that do not score, independent of moves
        self._skipped_now: frozenset[str] | None = None
        """Plugins that every move affects and that did not score last time; None if the feasible nodes have changed."""

    def copy(self) -> Scoring:
        other = copy(self)
        other.columns = [column.copy() for column in self.columns]
        other.sums = self.sums.copy()
        other._touched = list(self._touched)
        return other

    def scores(self, nodes: Callable[[], NodeTable]) -> Scores:
        """Return the scores of which the last totals consist; `nodes` builds the table of the same nodes."""
        if self._nodes is None:
            self._nodes = nodes()
        skipped = self._skipped | (self._skipped_now or frozenset())
        raw: dict[str, IntArray] = {}
        normalized: dict[str, IntArray] = {}
        weights: dict[str, int] = {}
        totals = np.zeros(len(self._nodes), dtype=np.int64)
        for score in self.columns:
            name = score.plugin.name
            if name in skipped:
                continue
            weights[name] = score.weight
            raw[name] = score.raw if score.touch is Touch.CLUSTER else score.raw[self._feasible].astype(np.int64)
            normalized[name] = raw[name] if score.weighted is None else score.weighted // score.weight
            totals += normalized[name] * score.weight
        return Scores(
            nodes=self._nodes,
            skipped=tuple(sorted(skipped)),
            weights=weights,
            raw=raw,
            normalized=normalized,
            totals=totals,
        )

    def totals(self, state: CycleState, pod: Pod, nodes: Callable[[], NodeTable], feasible: TableRows) -> IntArray:
        """Return (feasible node,) totals. `feasible` are rows of the nodes that PreFilter returns.

        `nodes` builds the table of the feasible nodes. Raises `ScoreFailedError`.
        """
        if self._touched:
            self._evaluate_touched(state, pod)
        if feasible is not self._feasible and not np.array_equal(feasible, self._feasible):
            self._nodes = self._skipped_now = None
            for score in self.columns:
                score.weighted = None
        self._feasible = feasible
        totals = np.zeros(len(feasible), dtype=np.int64)
        if len(self.sums):
            totals += self.sums if len(feasible) == len(self.sums) else self.sums[feasible]
        stale = [it for it in self.columns if not it.is_sum and not it.skipped and it.weighted is None]
        touched = [plugin for plugin, touch in self._pre_scores if touch is Touch.CLUSTER]
        if stale or (touched and self._skipped_now is None):
            table = nodes()
            skipped = self._skipped_now = self._pre_score(state, pod, table, touched)
            for score in stale:
                if score.touch is Touch.CLUSTER:
                    if score.plugin.name in skipped:
                        score.weighted = np.zeros(len(feasible), dtype=np.int64)
                        continue
                    score.raw = self._raw(score, state, pod, table)
                    raw = score.raw
                else:
                    raw = score.raw[feasible]
                normalized = score.plugin.normalize_score(state, pod, table, raw)
                _check(score, normalized)
                score.weighted = normalized * score.weight
        for score in self.columns:
            if score.weighted is not None:
                totals += score.weighted
        return totals

    # --- evaluation after moves

    def evaluate(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        """Evaluate everything, for the first time; `nodes` are those that PreFilter returns. Raises
        `ScoreFailedError`."""
        self._touched = []
        self._nodes = None
        self.sums = np.zeros(len(nodes), dtype=np.int64)
        self._evaluate(state, pod, nodes, self.columns, [plugin for plugin, _ in self._pre_scores])

    def evaluate_plugins(
        self, state: CycleState, pod: Pod, nodes: NodeTable, plugins: Collection[str], touch: Callable[[Plugin], Touch]
    ) -> None:
        """Evaluate these plugins for a pod of another class. Raises `ScoreFailedError`."""
        anew = []
        for place, column in enumerate(self.columns):
            if column.plugin.name in plugins:
                if column.is_sum and not column.skipped:
                    self.sums -= column.raw.astype(np.int64) * column.weight
                self.columns[place] = _ScoreColumn(column.plugin, touch(column.plugin), column.weight)
                anew.append(self.columns[place])
        self._pre_scores = [
            (plugin, touch(plugin) if plugin.name in plugins else known) for plugin, known in self._pre_scores
        ]
        self._evaluate(state, pod, nodes, anew, [plugin for plugin, _ in self._pre_scores if plugin.name in plugins])

    def touch(self, places: TableRows, rows: ClusterRows, *, nodes_too: bool) -> None:
        """Note nodes to evaluate again, as in `Filtering.evaluate_touched`, when scores are next computed. `places` are
        the positions of the rows."""
        self._touched.append((places, rows, nodes_too))

    def _evaluate_touched(self, state: CycleState, pod: Pod) -> None:
        nodes_too = any(of_nodes for _, _, of_nodes in self._touched)
        places, rows, _ = self._touched[0]
        if len(self._touched) > 1:  # the positions are ascending, as the rows are
            places = TableRows(distinct(np.concatenate([places for places, _, _ in self._touched])))
            rows = ClusterRows(distinct(np.concatenate([rows for _, rows, _ in self._touched])))
        part = self._framework.nodes.at(rows)
        self._touched = []
        for score in self.columns:
            if score.touch is Touch.CLUSTER:
                score.weighted = None
            elif (score.touch is Touch.NODE or nodes_too) and not score.skipped and len(places):
                raw = self._raw(score, state, pod, part)
                if score.is_sum:
                    self.sums[places] += (raw - score.raw[places]) * score.weight
                    score.raw[places] = raw
                elif not np.array_equal(score.raw[places], raw):
                    score.raw[places] = raw
                    score.weighted = None

    def _evaluate(
        self,
        state: CycleState,
        pod: Pod,
        nodes: NodeTable,
        columns: Collection[_ScoreColumn],
        pre_scores: Collection[PreScorePlugin],
    ) -> None:
        """Evaluate all nodes again, except for plugins that every move affects."""
        plugins = [plugin for plugin, touch in self._pre_scores if plugin in pre_scores and touch is not Touch.CLUSTER]
        skipped = self._pre_score(state, pod, nodes, plugins)
        self._skipped = self._skipped.difference(plugin.name for plugin in pre_scores) | skipped
        for score in columns:
            score.weighted = None
            score.skipped = score.touch is not Touch.CLUSTER and score.plugin.name in skipped
            if score.skipped or score.touch is Touch.CLUSTER:
                continue
            raw = self._raw(score, state, pod, nodes)
            if score.is_sum:
                self.sums += raw * score.weight
                score.raw = raw.astype(np.int16)
            else:
                score.raw = raw

    def _pre_score(
        self, state: CycleState, pod: Pod, nodes: NodeTable, plugins: Collection[PreScorePlugin]
    ) -> frozenset[str]:
        skipped: set[str] = set()
        for plugin in plugins:
            status = self._framework.pre_score(plugin, state, pod, nodes)
            if status.is_skip:
                skipped.add(plugin.name)
            elif not status.is_success:
                raise ScoreFailedError(status)
        return frozenset(skipped)

    def _raw(self, score: _ScoreColumn, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        try:
            raw = score.plugin.score(state, pod, nodes)
        except NotPreparedError as missing:
            text = f'running Score plugins: plugin "{score.plugin.name}" failed with: {missing}'
            raise ScoreFailedError(error(text)) from None
        if score.is_sum:
            _check(score, raw)
        return raw


def _check(score: _ScoreColumn, scores: IntArray) -> None:
    failed = score_error(score.plugin.name, scores)
    if failed is not None:
        raise ScoreFailedError(failed)
