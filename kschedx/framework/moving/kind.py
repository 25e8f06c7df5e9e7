"""The columns of one kind of pod: pods that are equal in everything that scheduling reads, name and uid aside.

What `schedule` works out for a pod is kept per plugin, and after a move only what the plugin says that the move touches
is evaluated anew (`Plugin.touches`). `None` in place of a decision means that the case is one of the rare ones which
only `schedule` itself tells right: an internal error, a PreFilter that rejects.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy

import numpy as np
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import Plugin, PreEnqueuePlugin, Touch
from kschedx.framework.moving.decision import Decision
from kschedx.framework.moving.filtering import Filtering
from kschedx.framework.moving.scoring import Scoring
from kschedx.framework.preemption.kept import KEPT, KeptDryRuns
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import nothing_fits
from kschedx.framework.state import CycleState
from kschedx.snapshot.columns import distinct
from kschedx.snapshot.moving_pods import Steps
from kschedx.snapshot.nodes import PodRows
from kschedx.snapshot.rows import ClusterRows, cluster_rows, each_cluster_row

_Counted = tuple[tuple[int, ...], tuple[int, ...]]
"""Nominated pods that count, and their nodes."""

_POINTS = ("preFilter", "filter", "postFilter", "preScore", "score")


class Kind:
    """One kind of pod under one profile."""

    def __init__(self, framework: Framework, pod: Pod, steps: Steps) -> None:
        self._framework = framework
        self._steps = steps
        self._seen = -1
        self._pre_enqueue = framework.plugins("preEnqueue", PreEnqueuePlugin)
        self._pre_enqueue_touched = [p for p in self._pre_enqueue if p.touches(pod) is Touch.CLUSTER]
        self._entered = True
        self._state = CycleState()
        self._filtering = Filtering(framework, pod)
        self._scoring = Scoring(framework, pod)
        self._counted: _Counted = ((), ())
        self._decision: Decision | None = None
        self._decided_for = ""
        """The nominated node of the pod that `_decision` is about."""

    def like(self, pod: Pod, plugins: Collection[str]) -> Kind | None:
        """A kind that differs from this one in what these plugins say; None where it has to be looked at by itself."""
        if self._seen < 0 or self._is_rare:
            return None
        other = copy(self)
        other._filtering, other._scoring = self._filtering.copy(), self._scoring.copy()
        other._state = self._state.clone()
        other._state.discard(KEPT)
        other._decision = None
        other._counted = ((), ())
        other._filtering.evaluate_plugins(other._state, pod, plugins)
        if not other._is_rare:
            other._scoring.evaluate_plugins(other._state, pod, plugins)
        return other

    def decide(self, pod: Pod) -> Decision | None:
        """What becomes of a pod of this kind now."""
        if not len(self._framework.nodes) or not self._may_enter(pod) or not self._is_ready(pod):
            return None
        if self._decision is None or self._decided_for != pod.status.nominated_node_name:
            self._decision = self._decide(pod)
            self._decided_for = pod.status.nominated_node_name
        return self._decision

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
            nodes=self._filtering.nodes,
            filter=self._filtering.outcome(),
            post_filter=decision.post_filter,
        )
        return cycle if not len(self._filtering.feasible) else replace(cycle, scores=self._scoring.scores())

    @property
    def _is_rare(self) -> bool:
        return self._filtering.is_rare or self._scoring.is_rare

    def _may_enter(self, pod: Pod) -> bool:
        asked = self._pre_enqueue if self._seen < 0 else self._pre_enqueue_touched
        entered = self._entered and all(plugin.pre_enqueue(pod).is_success for plugin in asked)
        if self._seen < 0:
            self._entered = entered
        return entered

    def _is_ready(self, pod: Pod) -> bool:
        """Whether the columns, which are brought up to date, say it all."""
        self._catch_up(pod)
        return not self._is_rare and self._count_nominated(pod)

    def _count_nominated(self, pod: Pod) -> bool:
        """Let the pods count that are nominated now. False where only `schedule` tells what that comes to."""
        framework = self._framework
        nobody = PodRows(pods=np.zeros(0, dtype=np.int64), nodes=cluster_rows([]))
        counted = framework.nominated_change(pod, framework.nodes) if framework.nominated else nobody
        if len(counted) and any(_may_read_nominations(plugin) for plugin in self._plugins()):
            return False
        now = tuple(counted.pods.tolist()), tuple(counted.nodes.tolist())
        if now != self._counted:
            self._decision = None
            if KEPT in self._state:
                self._state[KEPT].forget(ClusterRows(np.array([*self._counted[1], *now[1]], dtype=np.int64)))
            self._counted = now
        return self._decision is not None or self._filtering.count_nominated(self._state, pod, counted)

    def _plugins(self) -> Collection[Plugin]:
        framework = self._framework
        return {plugin for point in _POINTS for plugin in framework.plugins(point, Plugin)}

    def _decide(self, pod: Pod) -> Decision | None:
        nominated = None
        name = pod.status.nominated_node_name
        if name:
            row = self._framework.snapshot.cluster.index.get(name)
            if row is not None and not self._filtering.is_left(row):
                return None
            if row is not None and self._filtering.passes(row):
                nominated = row
        feasible = self._filtering.feasible
        if not len(feasible):
            return self._nothing_fits(pod)
        totals = self._scoring.totals(self._state, pod, feasible)
        if self._is_rare:
            return None
        best = ClusterRows(feasible[np.flatnonzero(totals == totals.max())])
        return Decision(outcome=Outcome.SCHEDULED, best=best, nominated=nominated)

    # --- what has moved

    def _catch_up(self, pod: Pod) -> None:
        if self._seen == len(self._steps):
            return
        self._decision = None
        if self._seen < 0 or self._is_rare:
            self._evaluate(pod)
        else:
            _, touched, signs = self._steps.since(self._seen)
            rows = distinct(touched)
            rows = rows[rows < len(self._framework.nodes)]  # others were of nodes that came and are no more
            self._evaluate_touched(pod, ClusterRows(rows), nodes_too=not signs.all())
        self._seen = len(self._steps)

    def _evaluate(self, pod: Pod) -> None:
        """Everything, for the first time."""
        self._state = CycleState()
        self._scoring.is_rare = False
        self._filtering.evaluate(self._state, pod)
        if not self._filtering.is_rare:
            self._scoring.evaluate(self._state, pod)

    def _evaluate_touched(self, pod: Pod, rows: ClusterRows, *, nodes_too: bool) -> None:
        """What pods that came to these nodes or left them can have changed. `nodes_too`: so have the nodes."""
        if nodes_too and pod.spec.mounts_storage:
            self._evaluate(pod)  # where volumes can be reached is worked out ahead, for all nodes
            return
        part = self._framework.nodes.at(rows)
        self._filtering.evaluate_touched(self._state, pod, part, nodes_too=nodes_too)
        self._scoring.touch(rows, nodes_too=nodes_too)
        if KEPT in self._state:
            self._state[KEPT].forget(rows)

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
        filtering = self._filtering
        if filtering.reads_only_own_pods and KEPT not in self._state:
            # what a node would have to give up is its own affair; most kinds never need to know
            self._state[KEPT] = KeptDryRuns(len(everything))
        outcome, naming = filtering.outcome(), filtering.naming
        return Decision.of(nothing_fits(framework, self._state, cycle, filtering.nodes, outcome, naming))


def _may_read_nominations(plugin: Plugin) -> bool:
    """A plugin that says nothing of what it reads may read who is nominated, in whichever way it likes."""
    return type(plugin).touches is Plugin.touches
