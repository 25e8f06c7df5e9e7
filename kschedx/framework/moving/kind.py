"""The columns of one kind of pod: pods that are equal in everything that scheduling reads, name and uid aside.

What `schedule` works out for a pod is kept per plugin, and after a move only what the plugin says that the move touches
is evaluated anew (`Plugin.touches`). Normalized scores are kept as long as the raw scores and the set of feasible
nodes stay; totals are always added up anew. `None` in place of a decision means that the case is one of the rare ones
which only `schedule` itself tells right: an internal error, nominated pods, a PreFilter that rejects.

All arrays are (node,) over the whole cluster unless they say otherwise.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.framework.cycle import Cycle, Outcome, Scores
from kschedx.framework.interface import (
    FilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Touch,
)
from kschedx.framework.moving.columns import FilterColumn, ScoreColumn
from kschedx.framework.moving.decision import Decision
from kschedx.framework.outcome import MAX_NODE_SCORE, MIN_NODE_SCORE, FilterOutcome
from kschedx.framework.preemption.kept import KEPT, KeptDryRuns
from kschedx.framework.runtime import Framework, verdicts_of
from kschedx.framework.schedule import nothing_fits
from kschedx.framework.state import CycleState, NotPreparedError
from kschedx.framework.status import Code, Verdicts
from kschedx.snapshot.columns import BoolArray, IntArray, distinct
from kschedx.snapshot.moving import Steps
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRows, cluster_rows, each_cluster_row


class Kind:
    """One kind of pod under one profile."""

    def __init__(self, framework: Framework, pod: Pod, steps: Steps) -> None:
        self._framework = framework
        self._steps = steps
        self._seen = -1
        filters = framework.plugins("filter", FilterPlugin)
        scores = framework.plugins("score", ScorePlugin)
        self._pre_filters = [(p, p.touches(pod)) for p in framework.plugins("preFilter", PreFilterPlugin)]
        self._pre_scores = [(p, p.touches(pod)) for p in framework.plugins("preScore", PreScorePlugin)]
        self._filters = [FilterColumn(plugin, plugin.touches(pod)) for plugin in filters]
        self._scores = [
            ScoreColumn(plugin, plugin.touches(pod), framework.profile.weights[plugin.name]) for plugin in scores
        ]
        self._pre_enqueue = framework.plugins("preEnqueue", PreEnqueuePlugin)
        self._pre_enqueue_touched = [p for p in self._pre_enqueue if p.touches(pod) is Touch.CLUSTER]
        self._entered = True
        self._state = CycleState()
        self._pre_filtered: dict[str, PreFilterResult] = {}
        self._left: BoolArray | None = None
        """The nodes that PreFilter plugins name; None for all."""
        self._is_rare = False
        self._rejections = np.zeros(0, dtype=np.int16)
        """How many plugins reject a node."""
        self._feasible = cluster_rows([])
        """(feasible node,)"""
        self._sum: IntArray = np.zeros(0, dtype=np.int64)
        """What the scores that are plain sums come to."""
        self._keeps_dry_runs = False
        self._outcome_kept: FilterOutcome | None = None
        self._scored_nodes: NodeTable | None = None
        """The feasible nodes by their rows, with what their pods request at some time."""
        self._not_scored: frozenset[str] = frozenset()
        """Plugins that a move can touch and that do not score now."""
        self._decision: Decision | None = None
        self._decided_for = ""
        """The nominated node of the pod that `_decision` is about."""

    def decide(self, pod: Pod) -> Decision | None:
        """What becomes of a pod of this kind now."""
        framework = self._framework
        if not len(framework.nodes) or not self._may_enter(pod):
            return None
        moved = self._seen != len(self._steps)
        if not self._is_ready(pod):
            return None
        if moved or self._decision is None or self._decided_for != pod.status.nominated_node_name:
            self._decision = self._decide(pod)
            self._decided_for = pod.status.nominated_node_name
        return self._decision

    def _is_ready(self, pod: Pod) -> bool:
        """Whether the columns, which are brought up to date, say it all."""
        framework = self._framework
        self._catch_up(pod)
        counted = framework.nominated and len(framework.nominated_change(pod, framework.nodes))
        return not self._is_rare and not counted

    def cycle(self, pod: Pod) -> Cycle | None:
        """The decision about a pod of this kind with verdicts and scores; findings, and steps after the choice, are
        left out. None as for `decide`."""
        framework = self._framework
        if not len(framework.nodes) or not self._may_enter(pod) or not self._is_ready(pod):
            return None
        decision = self._decide(pod)
        if decision is None or decision.nominated is not None:
            return None
        cycle = Cycle(
            pod=pod,
            snapshot=framework.snapshot,
            profile=framework.profile,
            release=framework.release,
            all_nodes=framework.nodes,
            outcome=decision.outcome,
            message=decision.message,
            best=tuple(each_cluster_row(decision.best)),
            nodes=self._nodes,
            filter=self._outcome_now(),
            post_filter=decision.post_filter,
        )
        return cycle if not len(self._feasible) else replace(cycle, scores=self._scored())

    @property
    def _nodes(self) -> NodeTable:
        """Those that PreFilter leaves in."""
        nodes = self._framework.nodes
        return nodes if self._left is None else nodes.at(ClusterRows(np.flatnonzero(self._left)))

    def _outcome_now(self) -> FilterOutcome:
        """The same object as long as no verdict changes."""
        if self._outcome_kept is None:
            rows = self._nodes.rows
            verdicts = {one.plugin.name: one.verdicts(rows) for one in self._filters if one.runs}
            self._outcome_kept = FilterOutcome.of(verdicts, len(rows))
        return self._outcome_kept

    def _scored(self) -> Scores:
        """What the totals are made of."""
        feasible = self._feasible
        if self._scored_nodes is None:
            everywhere = len(feasible) == len(self._sum)
            self._scored_nodes = self._framework.nodes if everywhere else self._framework.nodes.at(feasible)
        raw: dict[str, IntArray] = {}
        normalized: dict[str, IntArray] = {}
        weights: dict[str, int] = {}
        totals = np.zeros(len(feasible), dtype=np.int64)
        for score in self._scores:
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
        skipped = tuple(sorted({score.plugin.name for score in self._scores} - weights.keys()))
        return Scores(
            nodes=self._scored_nodes, skipped=skipped, weights=weights, raw=raw, normalized=normalized, totals=totals
        )

    def _may_enter(self, pod: Pod) -> bool:
        asked = self._pre_enqueue if self._seen < 0 else self._pre_enqueue_touched
        entered = self._entered and all(plugin.pre_enqueue(pod).is_success for plugin in asked)
        if self._seen < 0:
            self._entered = entered
        return entered

    def _decide(self, pod: Pod) -> Decision | None:
        nominated = None
        name = pod.status.nominated_node_name
        if name:
            row = self._framework.snapshot.cluster.index.get(name)
            if row is not None and self._left is not None and not self._left[row]:
                return None
            if row is not None and not self._rejections[row]:
                nominated = row
        if not len(self._feasible):
            return self._nothing_fits(pod)
        totals = self._totals(pod)
        if totals is None:
            return None
        best = ClusterRows(self._feasible[np.flatnonzero(totals == totals.max())])
        return Decision(outcome=Outcome.SCHEDULED, best=best, nominated=nominated)

    # --- what has moved

    def _catch_up(self, pod: Pod) -> None:
        if self._seen == len(self._steps):
            return
        nodes = self._framework.nodes
        if self._seen < 0 or self._is_rare:
            self._evaluate(pod)
        else:
            _, touched, signs = self._steps.since(self._seen)
            rows = ClusterRows(distinct(touched))
            self._evaluate_touched(pod, rows, nodes.at(rows), nodes_too=not signs.all())
            if KEPT in self._state:
                self._state[KEPT].forget(rows)
        self._seen = len(self._steps)

    def _evaluate(self, pod: Pod) -> None:
        """Everything, for the first time."""
        nodes = self._framework.nodes
        self._state = CycleState()
        self._is_rare = False
        self._pre_filter(pod, every=True)
        self._rejections = np.zeros(len(nodes), dtype=np.int16)
        self._sum = np.zeros(len(nodes), dtype=np.int64)
        if self._is_rare:
            return
        for one in self._filters:
            one.codes = np.zeros(0, dtype=np.int8)
            self._filter(one, pod)
        if all(one.touch is not Touch.CLUSTER for one in self._filters):
            # what a node would have to give up is its own affair
            self._keeps_dry_runs = True
        self._find_feasible()
        skipped = self._pre_score(pod, nodes, touched=False)
        for score in self._scores:
            score.weighted = None
            if score.touch is Touch.CLUSTER:
                continue
            score.skipped = score.plugin.name in skipped
            if score.skipped or self._is_rare:
                continue
            raw = self._raw(score, pod, nodes)
            if score.is_sum:
                self._sum += raw * score.weight
                score.raw = raw.astype(np.int16)
            else:
                score.raw = raw

    def _evaluate_touched(self, pod: Pod, rows: ClusterRows, part: NodeTable, *, nodes_too: bool) -> None:
        """What pods that came to these nodes or left them can have changed; `part` is the table of the nodes.

        `nodes_too`: the nodes themselves may have changed, which every plugin may read, each node's row its own node.
        """
        self._pre_filter(pod, every=False)
        if self._is_rare:
            return
        feasible_before = self._rejections[rows] == 0
        anew = False
        for one in self._filters:
            if one.touch is Touch.CLUSTER:
                self._filter(one, pod)
                anew = True
            elif (one.touch is Touch.NODE or nodes_too) and one.runs:
                verdicts = verdicts_of(one.plugin, self._state, pod, part)
                self._rejections[rows] -= one.codes[rows] != 0
                if one.put_rows(rows, verdicts):
                    self._outcome_kept = None
                self._rejections[rows] += verdicts.rejected
                self._is_rare |= bool((verdicts.codes == Code.ERROR).any())
        if anew or not np.array_equal(feasible_before, self._rejections[rows] == 0):
            self._find_feasible()
        for score in self._scores:
            if score.touch is Touch.CLUSTER:
                score.weighted = None
            elif (score.touch is Touch.NODE or nodes_too) and not score.skipped:
                raw = self._raw(score, pod, part)
                if score.is_sum:
                    self._sum[rows] += (raw - score.raw[rows]) * score.weight
                    score.raw[rows] = raw
                elif not np.array_equal(score.raw[rows], raw):
                    score.raw[rows] = raw
                    score.weighted = None

    # --- filters

    def _pre_filter(self, pod: Pod, *, every: bool) -> None:
        """PreFilter of every plugin, or of those that a move can touch."""
        framework, state = self._framework, self._state
        asked = [plugin for plugin, touch in self._pre_filters if every or touch is Touch.CLUSTER]
        self._pre_filtered |= {plugin.name: plugin.pre_filter(state, pod, framework.nodes) for plugin in asked}
        if not asked:
            return
        skipped: set[str] = set()
        left: frozenset[str] | None = None
        for name, result in self._pre_filtered.items():
            if result.status.is_skip and name not in framework.release.never_skips_filter:
                skipped.add(name)
            elif not (result.status.is_success or result.status.is_skip):
                self._is_rare = True
            elif result.nodes is not None:
                left = result.nodes if left is None else left & result.nodes
        state.skip_filter = frozenset(skipped)
        self._left = None
        if left is not None:
            index = framework.snapshot.cluster.index
            self._is_rare |= not left or any(name not in index for name in left)
            self._left = np.zeros(len(framework.nodes), dtype=np.bool_)
            self._left[[index[name] for name in left if name in index]] = True

    def _filter(self, one: FilterColumn, pod: Pod) -> None:
        """All nodes anew."""
        self._outcome_kept = None
        if one.codes.size:
            self._rejections -= one.codes != 0
        one.runs = one.plugin.name not in self._state.skip_filter
        if one.runs:
            verdicts = verdicts_of(one.plugin, self._state, pod, self._framework.nodes)
            self._is_rare |= bool((verdicts.codes == Code.ERROR).any())
        else:
            verdicts = Verdicts.success(len(self._framework.nodes))
        one.put(verdicts)
        self._rejections += one.codes != 0

    def _find_feasible(self) -> None:
        passed = self._rejections == 0
        if self._left is not None:
            passed &= self._left
        feasible = ClusterRows(np.flatnonzero(passed))
        if not np.array_equal(feasible, self._feasible):
            self._feasible = feasible
            self._scored_nodes = None
            for score in self._scores:
                score.weighted = None

    # --- scores

    def _pre_score(self, pod: Pod, nodes: NodeTable, *, touched: bool) -> frozenset[str]:
        """The plugins that do not score, of those that any move touches, or of the others."""
        skipped: set[str] = set()
        for plugin, touch in self._pre_scores:
            if touched is not (touch is Touch.CLUSTER):
                continue
            try:
                status = plugin.pre_score(self._state, pod, nodes)
            except NotPreparedError:
                self._is_rare = True
                continue
            if status.is_skip:
                if plugin.name not in self._framework.release.never_skips_score:
                    skipped.add(plugin.name)
            elif not status.is_success:
                self._is_rare = True
        return frozenset(skipped)

    def _raw(self, score: ScoreColumn, pod: Pod, nodes: NodeTable) -> IntArray:
        try:
            raw = score.plugin.score(self._state, pod, nodes)
        except NotPreparedError:
            self._is_rare = True
            return np.zeros(len(nodes), dtype=np.int64)
        if score.is_sum:
            self._check(raw)
        return raw

    def _check(self, scores: IntArray) -> None:
        """A score out of bounds is an internal error."""
        if len(scores) and (int(scores.max()) > MAX_NODE_SCORE or int(scores.min()) < MIN_NODE_SCORE):
            self._is_rare = True

    def _totals(self, pod: Pod) -> IntArray | None:
        """(feasible node,)"""
        feasible = self._feasible
        everywhere = len(feasible) == len(self._sum)
        totals = self._sum.copy() if everywhere else self._sum[feasible]
        stale = [score for score in self._scores if not score.is_sum and not score.skipped and score.weighted is None]
        if stale:
            nodes = self._framework.nodes if everywhere else self._framework.nodes.at(feasible)
            skipped = self._not_scored = self._pre_score(pod, nodes, touched=True)
            for score in stale:
                if score.touch is not Touch.CLUSTER:
                    raw = score.raw if everywhere else score.raw[feasible]
                elif score.plugin.name in skipped:
                    score.weighted = np.zeros(len(feasible), dtype=np.int64)
                    continue
                else:
                    raw = self._raw(score, pod, nodes)
                normalized = score.plugin.normalize_score(self._state, pod, nodes, raw)
                self._check(normalized)
                score.weighted = normalized * score.weight
        for score in self._scores:
            if score.weighted is not None:
                totals += score.weighted
        return None if self._is_rare else totals

    # --- where no node is feasible

    def _nothing_fits(self, pod: Pod) -> Decision:
        framework = self._framework
        everything = framework.nodes
        cycle = Cycle(
            pod=pod,
            snapshot=framework.snapshot,
            profile=framework.profile,
            release=framework.release,
            all_nodes=everything,
            outcome=Outcome.UNSCHEDULABLE,
        )
        naming = tuple(name for name, result in self._pre_filtered.items() if result.nodes is not None)
        outcome = self._outcome_now()
        if self._keeps_dry_runs and KEPT not in self._state:
            self._state[KEPT] = KeptDryRuns(len(everything))  # most kinds never need them
        return Decision.of(nothing_fits(framework, self._state, pod, cycle, self._nodes, outcome, naming))
