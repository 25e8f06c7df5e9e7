"""The search for fixes: which nodes to look at, which remedies to combine, and which of those that helped to tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import numpy as np
from msgspec.structs import replace

from kschedx.findings import Finding
from kschedx.fixes.model import Certainty, Fix, Proposal
from kschedx.fixes.remedies import remedies
from kschedx.fixes.remedy import Cost, Place, Remedy, delete_pods
from kschedx.fixes.trial import Result, attempt
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import FilterOutcome
from kschedx.framework.scheduler import Scheduler
from kschedx.snapshot.columns import FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable

MOST_PLACES = 8
"""Groups of nodes with the same blockers in which a fix is looked for, fewest blockers first."""
MOST_TRIALS = 32
FEWER_TRIALS = 12
"""In a cluster of a thousand nodes or more, where each takes longer."""
MOST_FIXES = 6
MOST_OF_A_COST = 2
"""Fixes of the same cost that are told: a reader wants alternatives, not variations."""
MOST_PARTIAL = 2
MOST_WRONG = 50
"""What is wrong with a node that is still worth mending."""


def find_fixes(scheduler: Scheduler, cycle: Cycle) -> tuple[Fix, ...]:
    """Cheapest first: changes to the pod, then to what is around it, then to nodes. Nothing that was not tried."""
    if cycle.outcome is Outcome.SCHEDULED or cycle.outcome is Outcome.ERROR or not len(scheduler.nodes):
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


# --- where to look


def _places(nodes: NodeTable, outcome: FilterOutcome, cycle: Cycle) -> Iterator[tuple[Place, tuple[Finding, ...]]]:
    """For each set of plugins that reject some nodes together, the node that comes nearest, with all its findings."""
    if not outcome.verdicts or not len(nodes):
        return
    rejected = np.array([verdicts.rejected for verdicts in outcome.verdicts])  # (plugin, node)
    signatures, group = np.unique(rejected, axis=1, return_inverse=True)
    group = group.ravel()
    shortfall = _shortfall(nodes, cycle)
    ranked = sorted(
        range(signatures.shape[1]), key=lambda g: (int(signatures[:, g].sum()), -int(np.count_nonzero(group == g)))
    )
    for number in ranked[:MOST_PLACES]:
        if not signatures[:, number].any():
            continue
        rows = np.flatnonzero(group == number)
        for row in _nearest(rows, shortfall, outcome, signatures[:, number]):
            findings = tuple(
                finding
                for index in np.flatnonzero(signatures[:, number])
                for finding in outcome.verdicts[int(index)].explain(row)
            )
            yield Place(cycle, nodes, row), findings


def _nearest(rows: IntArray, shortfall: FloatArray, outcome: FilterOutcome, signature: IntArray) -> Iterator[int]:
    """The node that lacks least, and one of each other combination of codes, at most three: the same plugins may ask
    for
    different things of different nodes."""
    order = rows[np.argsort(shortfall[rows], kind="stable")]
    seen: set[tuple[object, ...]] = set()
    for row in order.tolist():
        key = tuple(
            (int(verdicts.codes[row]), verdicts.reasons[row])
            for verdicts, counts in zip(outcome.verdicts, signature, strict=True)
            if counts
        )
        if key not in seen:
            seen.add(key)
            yield row
        if len(seen) == 3 or row == order[min(len(order), 200) - 1]:
            return


def _shortfall(nodes: NodeTable, cycle: Cycle) -> FloatArray:
    """(node,) the largest share of a requested resource that the node lacks."""
    from kschedx.api.resources import pod_request

    request = nodes.resources.row(pod_request(cycle.pod.spec, cycle.pod.status, nodes.options).amounts)
    asked = np.flatnonzero(request > 0)
    if not len(asked):
        return np.zeros(len(nodes))
    free = nodes.allocatable[:, asked] - nodes.requested[:, asked]
    share: FloatArray = ((request[asked] - free) / request[asked]).max(axis=1)
    return share


# --- what to try


def _proposals(cycle: Cycle, base: Proposal) -> Iterator[Proposal]:
    """Every way to mend all that is wrong with one node, cheapest first; single steps where no node can be mended
    whole."""
    whole = [((preempting.cost, 1, -1), preempting) for preempting in _preemption(cycle, base)]
    single: list[Proposal] = []
    for number, (place, findings) in enumerate(_all_places(cycle)):
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


def _all_places(cycle: Cycle) -> Iterator[tuple[Place, tuple[Finding, ...]]]:
    if cycle.filter is not None and cycle.nodes is not None:
        yield from _places(cycle.nodes, cycle.filter, cycle)
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
    return Fix(
        title=proposal.title,
        certainty=Certainty.VERIFIED if result.feasible else Certainty.PARTIAL,
        changes=tuple(proposal.changes(cycle.pod, cycle.snapshot)),
        feasible_nodes=result.feasible,
    )
