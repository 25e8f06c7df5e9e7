"""The extenders' part of one scheduling cycle, between the plugins' filters and PostFilter.

Upstream: findNodesThatFitPod, evaluateNominatedNode and prioritizeNodes in pkg/scheduler/schedule_one.go.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.framework.binding import run_dry_steps
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.extenders.calls import FilterCall, ScoreCall, Trace
from kschedx.framework.extenders.refusals import with_refusals
from kschedx.framework.extenders.run import Extenders, Feasible, as_victims
from kschedx.framework.extenders.scoring import as_scored, with_extenders
from kschedx.framework.outcome import ByExtenders, FilterOutcome
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState
from kschedx.framework.status import Status
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow, cluster_rows, each_row, rows_where


class Extended:
    """Filled step by step as the cycle goes on; `judged` puts it into the finished cycle."""

    def __init__(self, framework: Framework, extenders: Extenders, pod: Pod) -> None:
        self._framework = framework
        self._extenders = extenders
        self._pod = pod
        self._trace = extenders.trace(pod)
        self._calls: tuple[FilterCall, ...] = ()
        self._scores: tuple[ScoreCall, ...] = ()
        self._of_nominated: dict[str, Status] = {}
        """Statuses from when the nominated node was tried; the plugins have the last word on them."""
        self._statuses: dict[str, Status] = {}
        self._passed: tuple[str, ...] = ()
        self.left: tuple[Feasible, ...] | None = None
        """What the extenders left of the nodes that passed the plugins; None where nobody was asked."""
        self.error = ""

    def pass_nominated(self, node: ClusterRow) -> bool:
        """Whether the extenders leave the nominated node, which is tried alone, before all others.

        A failure there is logged, and all nodes are looked at.
        """
        if not self._extenders.are_asked:
            return True
        alone = self._framework.nodes.at(cluster_rows([node]))
        tried = self._extenders.filter(self._pod, alone)
        self._calls += tried.calls
        self._of_nominated = dict(tried.statuses)
        return not tried.error and bool(tried.left)

    def filter(self, feasible: NodeTable) -> None:
        """Ask about the nodes that passed the plugins, if there is anybody to ask and anything to ask about."""
        self._passed = feasible.names
        if not self._extenders.are_asked or not len(feasible):
            return
        filtered = self._extenders.filter(self._pod, feasible)
        self._calls += filtered.calls
        self._statuses = dict(filtered.statuses)
        self.error = filtered.error
        self.left = filtered.left

    def score(self, state: CycleState, cycle: Cycle) -> Cycle:
        """The cycle's end where nodes are left: scores on what the extenders answered, and theirs on top."""
        assert self.left
        framework, left = self._framework, self.left
        scoring, nodes = as_scored(framework, left)
        scores = scoring.run_scores(state, self._pod, nodes)
        if isinstance(scores, Status):
            if len(left) > 1:
                return replace(cycle, outcome=Outcome.ERROR, message=scores.message)
            return replace(cycle, outcome=Outcome.SCHEDULED, best=(left[0].row,))
        if len(left) > 1:
            self._scores = self._extenders.prioritize(self._pod, left, framework.nodes)
            scores = with_extenders(scores, self._scores, self._extenders.urls)
        best = [left[index].row for index in np.flatnonzero(scores.totals == scores.totals.max()).tolist()]
        cycle = replace(cycle, outcome=Outcome.SCHEDULED, scores=scores, best=tuple(dict.fromkeys(best)))
        if len(cycle.choice) != 1:
            return cycle
        return replace(cycle, dry_steps=run_dry_steps(framework, state, self._pod, cycle.choice[0]))

    def diagnosed(self, nodes: NodeTable, outcome: FilterOutcome) -> tuple[FilterOutcome, Counter[str], int]:
        """The outcome as PostFilter is told of it, how many nodes each reason was given for, and how many names have a
        status at all. `outcome` is the plugins' on `nodes`."""
        rejected = dict.fromkeys(nodes.names[index] for index in np.flatnonzero(~outcome.passed).tolist())
        statuses = {
            **{name: status for name, status in self._of_nominated.items() if name not in rejected},
            **self._statuses,
        }
        index = self._framework.snapshot.cluster.index
        by_row = {index[name]: status for name, status in statuses.items() if name in index}
        told = outcome.count_reasons(np.array([name not in statuses for name in nodes.names], dtype=np.bool_))
        for status in statuses.values():
            told.update(status.reasons)
        silent = tuple(
            nodes.cluster_row(row) for row in each_row(rows_where(outcome.passed)) if nodes.name(row) not in statuses
        )
        outcome = replace(outcome, by_extenders=ByExtenders(statuses=by_row, silent=silent))
        return outcome, told, len({*rejected, *statuses})

    def judged(self, cycle: Cycle) -> Cycle:
        """The finished cycle with the extenders' part."""
        trace = self._trace
        if not trace.called:
            return replace(cycle, extenders=trace)
        left = None if self.left is None or self.error else tuple(node.name for node in self.left)
        silent = [name for name in self._passed if left is not None and name not in {*left, *self._statuses}]
        trace = replace(
            trace,
            passed_plugins=self._passed,
            filter=self._calls,
            left=left,
            statuses={} if self.error else self._of_nominated | self._statuses,
            silent=tuple(silent),
            scores=self._scores,
        )
        if left is not None and cycle.filter is not None and cycle.nodes is not None:
            told = with_refusals(cycle.filter, cycle.nodes, trace)
            cycle = replace(cycle, filter=told, filter_plugins=cycle.filter)
        return replace(cycle, extenders=self._with_preemption(trace, cycle))

    def _with_preemption(self, trace: Trace, cycle: Cycle) -> Trace:
        preempted = None if cycle.post_filter is None else cycle.post_filter.preempted
        if preempted is None:
            return trace
        return replace(
            trace,
            preempt=preempted.calls,
            candidates=as_victims(preempted.candidates, self._framework.nodes),
            candidates_error=preempted.error,
        )
