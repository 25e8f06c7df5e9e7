"""One pod through predicates and priorities (pkg/scheduler/core/generic_runner.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.schedule import NO_NODES
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Status
from kschedx.legacy.preemption import preempt
from kschedx.legacy.runner import PredicateRunner
from kschedx.legacy.stored import stored_pod
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow, each_row, rows_where


def schedule_with_predicates(runner: PredicateRunner, pod: Pod) -> Cycle:
    """Run a pod through predicates, priorities and preemption. Several best nodes take turns, so none is chosen."""
    pod = stored_pod(pod, runner.era.schema)
    cycle = Cycle(
        pod=pod,
        snapshot=runner.snapshot,
        profile=runner.profile,
        release=runner.release,
        all_nodes=runner.nodes,
        outcome=Outcome.UNSCHEDULABLE,
    )
    state = CycleState()
    steps, wrong, names, _ = runner.run_pre_filter(state, pod)
    if not wrong.is_success:
        return replace(cycle, outcome=Outcome.ERROR, message=wrong.message, pre_filter_status=wrong)
    nodes = runner.nodes if names is None else runner.nodes.only(names)
    if not len(nodes):
        return replace(cycle, message=NO_NODES)
    outcome = runner.passes_filters(state, pod, nodes)
    cycle = replace(cycle, pre_filter=steps, nodes=nodes, filter=outcome)
    if np.any(outcome.codes == Code.ERROR):
        return replace(cycle, outcome=Outcome.ERROR, message=_errors(runner, outcome))
    if outcome.passed.any():
        return _prioritize(runner, state, pod, cycle, nodes.take(rows_where(outcome.passed)))
    cycle = replace(cycle, message=_message(runner, pod, outcome))
    if not runner.era.preempts:
        return cycle
    return replace(cycle, post_filter=preempt(runner, state, pod, nodes, outcome))


def _refuse_to_guess(runner: PredicateRunner, pod: Pod, feasible: NodeTable) -> None:
    """Raises `UndecidableError` where an extender has a say: about nodes that passed, or about several of them."""
    scored = len(feasible) > 1 or runner.release.behaviour.single_node_is_scored
    for extender in runner.policy.extenders:
        verbs = [extender.filter_verb, extender.prioritize_verb if scored else ""]
        told = " and ".join(verb for verb in verbs if verb)
        if told and (extender.is_interested(pod) or not runner.era.reads_policy_settings):
            raise UndecidableError(
                f"the extender at {extender.url_prefix} decides about {pod.key} too ({told}): kschedx cannot ask it"
            )


# --- what is told


def _errors(runner: PredicateRunner, outcome: FilterOutcome) -> str:
    """The predicates that failed, node by node: told once with a count in 1.13, each time in 1.5."""
    texts = [outcome.status(row).message for row in each_row(rows_where(outcome.codes == Code.ERROR))]
    if runner.era.order is None:
        texts = [f"SchedulerPredicates failed due to {text}, which is unexpected." for text in texts]
    else:
        counts = Counter(texts)
        texts = [f"{text} (repeated {count} times)" if count > 1 else text for text, count in counts.items()]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _message(runner: PredicateRunner, pod: Pod, outcome: FilterOutcome) -> str:
    counts = Counter(_reasons(outcome))
    if runner.era.order is None:
        told = ", ".join(sorted(f"{reason} ({count})" for reason, count in counts.items()))
        return f"pod ({pod.metadata.name}) failed to fit in any node\nfit failure summary on nodes : {told}"
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(runner.nodes)} nodes are available: {told}."


def _reasons(outcome: FilterOutcome) -> Iterator[str]:
    """Every reason as often as it is given; one node can give it several times."""
    for row in map(TableRow, range(len(outcome.codes))):
        yield from outcome.status(row).reasons


def _prioritize(runner: PredicateRunner, state: CycleState, pod: Pod, cycle: Cycle, feasible: NodeTable) -> Cycle:
    _refuse_to_guess(runner, pod, feasible)
    scores = runner.run_scores(state, pod, feasible)
    if isinstance(scores, Status):
        if len(feasible) > 1 or runner.release.behaviour.single_node_is_scored:
            return replace(cycle, outcome=Outcome.ERROR, message=scores.message)
        return replace(cycle, outcome=Outcome.SCHEDULED, best=(feasible.cluster_row(TableRow(0)),))
    best = tuple(map(feasible.cluster_row, each_row(rows_where(scores.totals == scores.totals.max()))))
    return replace(cycle, outcome=Outcome.SCHEDULED, scores=scores, best=best)
