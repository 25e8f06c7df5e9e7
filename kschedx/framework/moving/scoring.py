"""Scores of one kind of pod that are kept.

Raw scores are (node,) over the whole cluster; normalized ones are kept as long as the raw scores and the set of
feasible nodes stay. Totals are always added up anew.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy

import numpy as np

from kschedx.api.types import Pod
from kschedx.framework.cycle import Scores
from kschedx.framework.interface import PreScorePlugin, ScorePlugin, Touch
from kschedx.framework.moving.columns import ScoreColumn
from kschedx.framework.outcome import MAX_NODE_SCORE, MIN_NODE_SCORE
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState, NotPreparedError
from kschedx.snapshot.columns import IntArray, distinct
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRows, cluster_rows


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
