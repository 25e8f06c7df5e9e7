"""Preemption in 1.13 (Preempt, selectVictimsOnNode and pickOneNodeForPreemption in generic_runner.go).

As in `framework.preemption`, a wave over all nodes costs what a single run of the predicates costs: one evicts every
pod of lower priority, then the n-th asks each node whether its n-th pod may stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from kschedx.api.policy import PodDisruptionBudget
from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.framework.interface import PostFilterResult
from kschedx.framework.outcome import Candidate, FilterOutcome
from kschedx.framework.preemption import NOT_HELPFUL, best_candidates
from kschedx.framework.preemption.dry_run import NO_VICTIMS, Trial
from kschedx.framework.preemption.selection import RULES_WITHOUT_START
from kschedx.framework.preemption.victims import budget_selector, covers, potential_victims
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.legacy.runner import PredicateRunner
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow, each_cluster_row, each_row, rows_where

NOT_ELIGIBLE = Status(code=Code.UNSCHEDULABLE, reasons=("a pod on the nominated node is terminating",))
UNSCHEDULABLE = Status(code=Code.UNSCHEDULABLE)


def preempt(
    runner: PredicateRunner, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome
) -> PostFilterResult:
    """The node on which it hurts least to make room. Nothing of it shows in the event's text."""
    if _awaits_victims(runner, pod):
        return PostFilterResult(status=NOT_ELIGIBLE)
    able = nodes.take(rows_where(outcome.codes == Code.UNSCHEDULABLE))
    candidates, statuses = _dry_run(runner, state, pod, able)
    if candidates:
        _refuse_to_guess(runner, pod)
    best = _best(candidates, nodes.pods)
    every = [statuses.get(node, NOT_HELPFUL) for node in each_cluster_row(runner.nodes.rows)]
    return PostFilterResult(
        status=SUCCESS if best else UNSCHEDULABLE,
        candidates=tuple(candidates),
        best=tuple(candidate.node for candidate in best),
        nominated_node=best[0].node if len(best) == 1 else None,
        dry_run=Verdicts.of_rows(every),
    )


def _awaits_victims(runner: PredicateRunner, pod: Pod) -> bool:
    """A less important pod on the nominated node is being deleted already."""
    node = runner.snapshot.cluster.index.get(pod.status.nominated_node_name)
    if node is None:
        return False
    pods = runner.nodes.pods
    rows = pods.on_node(node)
    return bool((pods.terminating[rows] & (pods.priorities[rows] < pod.priority)).any())


def _refuse_to_guess(runner: PredicateRunner, pod: Pod) -> None:
    for extender in runner.policy.extenders:
        if extender.preempt_verb and extender.is_interested(pod):
            raise UndecidableError(f"the extender at {extender.url_prefix} chooses victims too: kschedx cannot ask it")


# --- victims


def _dry_run(
    runner: PredicateRunner, state: CycleState, pod: Pod, nodes: NodeTable
) -> tuple[list[Candidate], dict[ClusterRow, Status]]:
    """The nodes of the table on which evicting pods makes room, and the status of each node of it."""
    state = state.clone()
    protected = partial(_protected, runner.snapshot.disruption_budgets)
    potential = potential_victims(nodes, pod.priority, protected, ranked_by_start=False)
    trial = Trial(handle=runner, state=state, pod=pod, nodes=nodes, potential=potential)
    world = trial.without_anybody(nodes)
    outcome = runner.passes_filters(state, pod, world)
    statuses = {nodes.cluster_row(row): outcome.status(row) for row in each_row(rows_where(~outcome.passed))}
    alone = rows_where(~outcome.passed & (potential.count == 0))
    statuses |= {nodes.cluster_row(row): NO_VICTIMS for row in each_row(alone)}
    fits = rows_where(outcome.passed)
    evicted = trial.reprieve(world.take(fits), fits)
    candidates = [trial.candidate(row, evicted, by_rank=False) for row in each_row(fits)]
    return candidates, statuses | {found.node: SUCCESS for found in candidates}


def _protected(budgets: Sequence[PodDisruptionBudget], pods: PodTable, rows: IntArray, index: IntArray) -> BoolArray:
    """`Violating`: whether a budget that allows no disruption at all covers the pod."""
    protected = np.zeros(len(rows), dtype=np.bool_)
    labels, namespaces = pods.labels.take(rows), pods.namespaces.take(rows)
    for budget in budgets:
        selector = budget_selector(budget)
        if selector is not None and (budget.status.disruptions_allowed or 0) <= 0:
            is_here = namespaces.where(budget.metadata.namespace.__eq__)
            protected |= is_here & labels.where(partial(covers, selector))
    return protected


def _best(candidates: Sequence[Candidate], pods: PodTable) -> Sequence[Candidate]:
    """The candidates among which kube-scheduler takes any: nobody has to go, or the least harm rule by rule."""
    unharmed = [candidate for candidate in candidates if not candidate.victims]
    return unharmed or best_candidates(candidates, pods, RULES_WITHOUT_START)
