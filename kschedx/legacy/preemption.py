"""Preemption in 1.13 (Preempt, selectVictimsOnNode and pickOneNodeForPreemption in generic_runner.go).

As in `framework.preemption`, a wave over all nodes costs what a single run of the predicates costs: one evicts every
pod of lower priority, then the n-th asks each node whether its n-th pod may stay.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kschedx.api.selectors import Selector, compile_selector
from kschedx.api.types import Labels, Pod, PodDisruptionBudget
from kschedx.errors import InputError, UndecidableError
from kschedx.framework.interface import Candidate, FilterOutcome, PostFilterResult
from kschedx.framework.preemption.dry_run import NO_VICTIMS, NOT_HELPFUL
from kschedx.framework.preemption.victims import PotentialVictims
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.legacy.runner import PredicateRunner
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable

NOT_ELIGIBLE = Status(code=Code.UNSCHEDULABLE, reasons=("a pod on the nominated node is terminating",))
UNSCHEDULABLE = Status(code=Code.UNSCHEDULABLE)

_NO_NEGATIVE = 2**31
"""Added to a priority, an int32, before it is summed: more victims never sum up to less."""


def preempt(
    runner: PredicateRunner, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome
) -> PostFilterResult:
    """The node on which it hurts least to make room. Nothing of it shows in the event's text."""
    if _awaits_victims(runner, pod):
        return PostFilterResult(status=NOT_ELIGIBLE)
    able = nodes.take(np.flatnonzero(outcome.codes == Code.UNSCHEDULABLE))
    candidates, statuses = _dry_run(runner, state, pod, able)
    if candidates:
        _refuse_to_guess(runner, pod)
    best = _best(candidates, nodes.pods)
    every = [statuses.get(row, NOT_HELPFUL) for row in range(len(runner.nodes))]
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
) -> tuple[list[Candidate], dict[int, Status]]:
    """The nodes of the table on which evicting pods makes room, and the status of each node of it."""
    state = state.clone()
    potential = _potential_victims(nodes, pod.priority, runner.snapshot.disruption_budgets)
    everyone = potential.placed(np.arange(len(potential.pods)), nodes)
    world = runner.remove_pods(state, pod, nodes, everyone)
    outcome = runner.passes_filters(state, pod, world)
    statuses = {int(nodes.rows[row]): outcome.status(int(row)) for row in np.flatnonzero(~outcome.passed)}
    statuses |= {int(row): NO_VICTIMS for row in nodes.rows[~outcome.passed & (potential.count == 0)]}
    fits = np.flatnonzero(outcome.passed)
    evicted = _reprieve(runner, state, pod, nodes, world.take(fits), fits, potential)
    candidates = [_candidate(nodes, int(index), potential, evicted) for index in fits]
    return candidates, statuses | {candidate.node: SUCCESS for candidate in candidates}


def _reprieve(
    runner: PredicateRunner,
    state: CycleState,
    pod: Pod,
    nodes: NodeTable,
    world: NodeTable,
    fits: IntArray,
    potential: PotentialVictims,
) -> BoolArray:
    """(victim,) which pods must go from the nodes `fits`, rows of `nodes`; `world` has these nodes without them."""
    evicted = np.zeros(len(potential.pods), dtype=np.bool_)
    turn = 0
    while len(fits):
        more = potential.count[fits] > turn
        fits, world = fits[more], world.take(np.flatnonzero(more))
        asked = potential.at(fits, turn)
        world = runner.add_pods(state, pod, world, potential.placed(asked, nodes))
        evicted[asked] = ~runner.passes_filters(state, pod, world).passed
        gone: PodRows = potential.placed(asked[evicted[asked]], nodes)
        world = runner.remove_pods(state, pod, world, gone)
        turn += 1
    return evicted


def _candidate(nodes: NodeTable, index: int, potential: PotentialVictims, evicted: BoolArray) -> Candidate:
    own = slice(int(potential.start[index]), int(potential.start[index + 1]))
    gone = evicted[own]
    return Candidate(
        node=int(nodes.rows[index]),
        victims=tuple(int(victim) for victim in potential.pods[own][gone]),
        pdb_violations=int(np.count_nonzero(potential.violating[own] & gone)),
    )


def _potential_victims(nodes: NodeTable, priority: int, budgets: Sequence[PodDisruptionBudget]) -> PotentialVictims:
    """The pods of lower priority: first those with a budget that is used up, in each part the most important first."""
    pods = nodes.pods
    table_row = np.full(len(nodes.cluster.nodes), -1, dtype=np.int64)
    table_row[nodes.rows] = np.arange(len(nodes))
    lower = np.flatnonzero((pods.node >= 0) & (pods.priorities < priority))
    lower = lower[table_row[pods.node[lower]] >= 0]
    index = table_row[pods.node[lower]]
    violating = _protected(pods, lower, budgets)
    order = np.lexsort((-pods.priorities[lower], ~violating, index))
    return PotentialVictims(
        pods=lower[order],
        index=index[order],
        violating=violating[order],
        start=np.searchsorted(index[order], np.arange(len(nodes) + 1)).astype(np.int64),
    )


def _protected(pods: PodTable, rows: IntArray, budgets: Sequence[PodDisruptionBudget]) -> BoolArray:
    """(row,) whether a budget that allows no disruption covers the pod. A pod without labels has none."""
    protected = np.zeros(len(rows), dtype=np.bool_)
    labels, namespaces = pods.labels.take(rows), pods.namespaces.take(rows)
    for budget in budgets:
        selector = _selector(budget)
        if selector is None or budget.status.disruptions_allowed > 0:
            continue

        def covers(own: Labels, selector: Selector = selector) -> bool:
            return bool(own) and selector.matches(own)

        def is_here(name: str, namespace: str = budget.metadata.namespace) -> bool:
            return name == namespace

        protected |= namespaces.where(is_here) & labels.where(covers)
    return protected


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """None for a budget that covers nothing."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InputError:
        return None
    return selector if selector.requirements else None


# --- the node


def _best(candidates: Sequence[Candidate], pods: PodTable) -> list[Candidate]:
    """The candidates among which kube-scheduler takes any: nobody has to go, or the least harm rule by rule."""
    unharmed = [candidate for candidate in candidates if not candidate.victims]
    if unharmed or not candidates:
        return unharmed
    harm = {candidate.node: _harm(candidate, pods) for candidate in candidates}
    least = min(harm.values())
    return [candidate for candidate in candidates if harm[candidate.node] == least]


def _harm(candidate: Candidate, pods: PodTable) -> tuple[int, ...]:
    """Violated budgets, priority of the first victim, sum of the priorities, number of victims: the less the better."""
    priorities = [int(pods.priorities[victim]) for victim in candidate.victims]
    total = sum(priority + _NO_NEGATIVE for priority in priorities)
    return candidate.pdb_violations, priorities[0], total, len(priorities)
