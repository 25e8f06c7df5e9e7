"""The search for fixes: which nodes to look at, which remedies to combine, and which of those that helped to tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from msgspec.structs import replace

from kschedx.explain.grouping import node_groups
from kschedx.findings import Finding
from kschedx.fixes.model import Certainty, Fix, Proposal
from kschedx.fixes.remedies import remedies
from kschedx.fixes.remedy import Cost, Place, Remedy, delete_pods
from kschedx.fixes.trial import Result, attempt
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.scheduler import Scheduler
from kschedx.framework.unheard import Stake, open_stake

MOST_PLACES = 16
"""Groups of nodes in which a fix is looked for, the nearest first."""
MOST_TRIALS = 32
FEWER_TRIALS = 12
"""In a cluster of a thousand nodes or more, where each takes longer."""
MOST_FIXES = 6
MOST_OF_A_COST = 2
"""Fixes of the same cost that are told: a reader wants alternatives, not variations."""
MOST_PARTIAL = 2
MOST_WRONG = 50
"""What is wrong with a node that is still worth mending."""


NOTHING_TO_FIX = (Outcome.SCHEDULED, Outcome.UNDECIDED, Outcome.ERROR)


def find_fixes(scheduler: Scheduler, cycle: Cycle) -> tuple[Fix, ...]:
    """Cheapest first: changes to the pod, then to what is around it, then to nodes. Nothing that was not tried."""
    if cycle.outcome in NOTHING_TO_FIX or not len(scheduler.nodes):
        return ()
    base = Proposal(pod=cycle.pod)
    if cycle.outcome is Outcome.GATED:
        names = ", ".join(gate.name for gate in cycle.pod.spec.scheduling_gates)
        if not names:
            return ()
        pod = replace(cycle.pod, spec=replace(cycle.pod.spec, scheduling_gates=()))
        base = Proposal(steps=(f"remove scheduling gate {names}",), pod=pod)
        lifted = attempt(scheduler, cycle, base)
        if lifted.feasible:
            return (_fix(base, lifted, cycle),)
    tried = [
        (proposal, attempt(scheduler, cycle, proposal))
        for proposal in islice(_distinct(_proposals(cycle, base)), _trials(scheduler))
    ]
    return tuple(_best(tried, cycle))


def _trials(scheduler: Scheduler) -> int:
    return MOST_TRIALS if len(scheduler.nodes) < 1000 else FEWER_TRIALS


# --- what to try


def _proposals(cycle: Cycle, base: Proposal) -> Iterator[Proposal]:
    """Every way to mend all that is wrong with one node, cheapest first; single steps where no node can be mended
    whole."""
    whole = [((preempting.cost, 1, -1), preempting) for preempting in _preemption(cycle, base)]
    single: list[Proposal] = []
    for number, (place, findings) in enumerate(_places(cycle)):
        if len(findings) > MOST_WRONG:
            continue
        groups = remedies(findings, place)
        for steps in islice(product(*groups), 24) if all(groups) else ():
            proposal = _combined(base, steps)
            whole.append(((proposal.cost, len(proposal.steps), number), proposal))
        single.extend(remedy.on(base) for group in groups for remedy in group if len(groups) > 1)
    yield from (proposal for _, proposal in sorted(whole, key=lambda item: item[0]))
    yield from single


def _preemption(cycle: Cycle, base: Proposal) -> Iterator[Proposal]:
    """What kube-scheduler is about to do by itself, where it is not a matter of chance."""
    result = cycle.post_filter
    if result is None:
        return
    for candidate in result.candidates:
        if candidate.node == result.nominated_node:
            pods = cycle.snapshot.pods
            named = " and ".join(pods.key(row) for row in candidate.victims)
            remedy = Remedy(
                title=f"delete {named}, as preemption will", cost=Cost.OTHER_PODS, step=delete_pods(candidate.victims)
            )
            yield remedy.on(base)


def _places(cycle: Cycle) -> Iterator[tuple[Place, tuple[Finding, ...]]]:
    """The nearest node of each group, with all its findings, nearest group first."""
    if cycle.nodes is not None:
        for group in node_groups(cycle)[:MOST_PLACES]:
            yield Place(cycle, cycle.nodes, group.exemplar.row), group.exemplar.findings
    elif cycle.pre_filter_status.findings:
        # rejected before any node was looked at: what is said about the pod can be mended wherever one looks
        yield Place(cycle, cycle.all_nodes, 0), cycle.pre_filter_status.findings


def _combined(base: Proposal, steps: Sequence[Remedy]) -> Proposal:
    proposal = base
    for step in steps:
        proposal = step.on(proposal)
    return proposal


def _distinct(proposals: Iterator[Proposal]) -> Iterator[Proposal]:
    seen: set[str] = set()
    for proposal in proposals:
        if proposal.title not in seen:
            seen.add(proposal.title)
            yield proposal


# --- what to tell


def _best(tried: Sequence[tuple[Proposal, Result]], cycle: Cycle) -> Iterator[Fix]:
    """The verified fixes, a few of each cost, those that open the most nodes first; failing any, the partial ones."""
    verified = sorted(
        ((proposal, result) for proposal, result in tried if result.feasible),
        key=lambda item: (item[0].cost, -len(item[1].feasible)),
    )
    fewest = min((len(proposal.steps) for proposal, _ in verified), default=0)
    told: list[int] = []
    for proposal, result in verified:
        if len(proposal.steps) > fewest:
            continue  # nobody does two things where one is enough
        if len(told) < MOST_FIXES and told.count(proposal.cost) < MOST_OF_A_COST:
            told.append(proposal.cost)
            yield _fix(proposal, result, cycle)
    if not verified:
        yield from islice(_partial(tried, cycle), MOST_PARTIAL)


def _partial(tried: Sequence[tuple[Proposal, Result]], cycle: Cycle) -> Iterator[Fix]:
    """Proposals after which a plugin that rejected nodes rejects none."""
    if cycle.filter is None:
        return
    before = {
        name
        for name, verdicts in zip(cycle.filter.plugins, cycle.filter.verdicts, strict=True)
        if verdicts.rejected.any()
    }
    for proposal, result in tried:
        gone = before - set(result.remaining)
        if gone and result.remaining:
            left = ", ".join(
                f"{name} on {count:,} {'node' if count == 1 else 'nodes'}" for name, count in result.remaining.items()
            )
            last = f"{proposal.steps[-1]} (then still {left})"
            yield _fix(replace(proposal, steps=(*proposal.steps[:-1], last)), result, cycle)


def _fix(proposal: Proposal, result: Result, cycle: Cycle) -> Fix:
    is_open = open_stake(cycle.unheard) is Stake.FIT or cycle.is_extended
    is_certain = bool(result.feasible) and not is_open
    return Fix(
        title=proposal.title,
        certainty=Certainty.VERIFIED if is_certain else Certainty.PARTIAL,
        changes=tuple(proposal.changes(cycle.pod, cycle.snapshot)),
        feasible_nodes=result.feasible,
    )
