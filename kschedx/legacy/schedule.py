"""One pod through predicates and priorities (pkg/scheduler/core/generic_scheduler.go)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import FilterOutcome
from kschedx.framework.schedule import NO_NODES, only
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Status
from kschedx.legacy.preemption import preempt
from kschedx.legacy.scheduler import PredicateScheduler
from kschedx.legacy.stored import stored_pod
from kschedx.snapshot.nodes import NodeTable


def schedule_with_predicates(scheduler: PredicateScheduler, pod: Pod) -> Cycle:
    """Run a pod through predicates, priorities and preemption. Several best nodes take turns, so none is chosen."""
    pod = stored_pod(pod, scheduler.era.schema)
    cycle = Cycle(
        pod=pod,
        snapshot=scheduler.snapshot,
        profile=scheduler.profile,
        release=scheduler.release,
        all_nodes=scheduler.nodes,
        outcome=Outcome.UNSCHEDULABLE,
    )
    state = CycleState()
    steps, wrong, names, _ = scheduler.run_pre_filter(state, pod)
    if not wrong.is_success:
        return replace(cycle, outcome=Outcome.ERROR, message=wrong.message, pre_filter_status=wrong)
    nodes = scheduler.nodes if names is None else only(scheduler.nodes, names)
    if not len(nodes):
        return replace(cycle, message=NO_NODES)
    outcome = scheduler.passes_filters(state, pod, nodes)
    cycle = replace(cycle, pre_filter=steps, nodes=nodes, filter=outcome)
    if np.any(outcome.codes == Code.ERROR):
        return replace(cycle, outcome=Outcome.ERROR, message=_errors(scheduler, outcome))
    if outcome.passed.any():
        return _prioritize(scheduler, state, pod, cycle, nodes.take(np.flatnonzero(outcome.passed)))
    cycle = replace(cycle, message=_message(scheduler, pod, outcome))
    if not scheduler.era.preempts:
        return cycle
    return replace(cycle, post_filter=preempt(scheduler, state, pod, nodes, outcome))


def _refuse_to_guess(scheduler: PredicateScheduler, pod: Pod, feasible: NodeTable) -> None:
    """Raises `UndecidableError` where an extender has a say: about nodes that passed, or about several of them."""
    scored = len(feasible) > 1 or scheduler.release.behaviour.single_node_is_scored
    for extender in scheduler.policy.extenders:
        verbs = [extender.filter_verb, extender.prioritize_verb if scored else ""]
        told = " and ".join(verb for verb in verbs if verb)
        if told and (extender.is_interested(pod) or not scheduler.era.reads_policy_settings):
            raise UndecidableError(
                f"the extender at {extender.url_prefix} decides about {pod.key} too ({told}): kschedx cannot ask it"
            )


# --- what is told


def _errors(scheduler: PredicateScheduler, outcome: FilterOutcome) -> str:
    """The predicates that failed, node by node: told once with a count in 1.13, each time in 1.5."""
    texts = [outcome.status(int(row)).message for row in np.flatnonzero(outcome.codes == Code.ERROR)]
    if scheduler.era.order is None:
        texts = [f"SchedulerPredicates failed due to {text}, which is unexpected." for text in texts]
    else:
        counts = Counter(texts)
        texts = [f"{text} (repeated {count} times)" if count > 1 else text for text, count in counts.items()]
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _message(scheduler: PredicateScheduler, pod: Pod, outcome: FilterOutcome) -> str:
    counts = Counter(_reasons(outcome))
    if scheduler.era.order is None:
        told = ", ".join(sorted(f"{reason} ({count})" for reason, count in counts.items()))
        return f"pod ({pod.metadata.name}) failed to fit in any node\nfit failure summary on nodes : {told}"
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{len(scheduler.nodes)} nodes are available: {told}."


def _reasons(outcome: FilterOutcome) -> Iterator[str]:
    """Every reason as often as it is given; one node can give it several times."""
    for row in range(len(outcome.codes)):
        yield from outcome.status(row).reasons


def _prioritize(scheduler: PredicateScheduler, state: CycleState, pod: Pod, cycle: Cycle, feasible: NodeTable) -> Cycle:
    _refuse_to_guess(scheduler, pod, feasible)
    scores = scheduler.run_scores(state, pod, feasible)
    if isinstance(scores, Status):
        if len(feasible) > 1 or scheduler.release.behaviour.single_node_is_scored:
            return replace(cycle, outcome=Outcome.ERROR, message=scores.message)
        return replace(cycle, outcome=Outcome.SCHEDULED, best=(int(feasible.rows[0]),))
    best = tuple(int(row) for row in feasible.rows[scores.totals == scores.totals.max()])
    return replace(cycle, outcome=Outcome.SCHEDULED, scores=scores, best=best)
