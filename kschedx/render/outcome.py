"""The outcome of a pod, and of a workload's replicas above the explanation of one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.kubelet import bound_by_hand
from kschedx.explain.ranking import Ranking
from kschedx.explain.root_causes import root_causes
from kschedx.findings import VolumeNodeAffinityMismatch, VolumeZoneMismatch
from kschedx.framework.args import LEAST_ALLOCATED, NodeResourcesFitArgs
from kschedx.framework.config.decoding import Profile
from kschedx.framework.cycle import Cycle, Outcome, Stake, Unevaluated, UnevaluatedKind, open_stake
from kschedx.holding import Holding
from kschedx.holding.headlines import gang_cause, holder_text
from kschedx.inquiry.explanation import Replicas
from kschedx.kube.names import HOSTNAME
from kschedx.render.layout import COMMAND
from kschedx.render.view import Tone
from kschedx.wording import Fact, count, list_names
from kschedx.words.causes import NO_NODES, because
from kschedx.words.pod import could_prefer, could_reject, missing_from_dump

MOST_ROOT_CAUSES = 3


_REPLICATED = frozenset({"deploy", "rs", "sts", "rc", "rollout", "cloneset", "statefulset", "deploymentconfig"})
"""Kinds whose pods are called replicas, as `Replicas.workload` names them; those of a Job or a group are pods."""


def replicas_sentence(replicas: Replicas, overall: Outcome) -> str:
    """Return `shop/deploy/web: 6 of 20 replicas can be scheduled, 14 stay pending`. `overall` is the outcome of all of
    them; replicas that the API server refuses are counted separately."""
    if replicas.kubelet:
        return f"{replicas.workload}: {_kubelet_sentence(replicas)}"
    wanted, placed = replicas.total, len(replicas.placed)
    if not wanted:
        return f"{replicas.workload}: it needs no more pods, {replicas.running:,} of {replicas.wanted:,} exist"
    noun = "replicas" if replicas.workload.split("/")[1] in _REPLICATED else "pods"
    which = f"{wanted:,} missing {noun}" if replicas.running else f"{wanted:,} {noun}"
    if replicas.fits:
        single = "one pod" if replicas.undecided else "its only pod"
        every = {1: single, 2: "both"}.get(wanted, f"all {wanted:,}")
        verb = "can be scheduled after preemption" if replicas.evicted else "can be scheduled"
        if overall is not Outcome.SCHEDULED and not replicas.evicted and not replicas.undecided:
            verb = f"{'has' if wanted == 1 else 'have'} room, but {_unstarted_text(replicas, overall)}"
        phrase = f"{every}{which.partition(f'{wanted:,}')[2] if wanted > 1 else ''} {verb}"
        phrase += f"; {replicas.undecided}" if replicas.undecided else ""
    elif overall is Outcome.UNDECIDED:
        phrase = (
            f"{placed:,} of {which} can be scheduled, the others are undecided" if placed else f"{which} are undecided"
        )
    elif not placed:
        phrase = f"none of {which} can be scheduled"
    elif replicas.pending:
        left = len(replicas.pending)
        phrase = f"{placed:,} of {which} can be scheduled, {left:,} {'stays' if left == 1 else 'stay'} pending"
    else:
        phrase = f"{placed:,} of {which} can be scheduled"
    if replicas.refused:
        phrase += f"; the API server refuses {len(replicas.refused):,}"
    if replicas.replaced and replicas.fits:
        phrase += f", replacing {count(replicas.replaced, 'pod')} of the previous template"
    elif replicas.outdated:
        phrase += f"; the rollout stalls with {count(replicas.outdated, 'pod')} of the previous template left"
    return f"{replicas.workload}: {phrase}"


def _unstarted_text(replicas: Replicas, overall: Outcome) -> str:
    """Return `2 do not start`, without the number if it applies to all of them."""
    number = len(replicas.disputed) or replicas.total
    if overall is Outcome.UNDECIDED:
        verb = "is undecided" if number == 1 else "are undecided"
    else:
        verb = "does not start" if number == 1 else "do not start"
    return verb if number == replicas.total else f"{number:,} {verb}"


def _kubelet_sentence(replicas: Replicas) -> str:
    """Return `the kubelet of n1 runs 3 of 5 replicas and rejects 2`, as far as requests, ports, and affinity show
    it."""
    taken, wanted = len(replicas.placed), replicas.total
    kubelet = f"the kubelet of {replicas.kubelet}"
    if replicas.fits:
        return f"{kubelet} can run all {wanted:,} replicas, as far as requests, ports, and affinity tell"
    if not taken:
        return f"{kubelet} rejects all {wanted:,} replicas"
    return f"{kubelet} runs {taken:,} of {wanted:,} replicas and rejects {len(replicas.pending):,}"


# The outcome in one line, and kube-scheduler's own text.

_SHOWN_NODES = 4


def outcome_tone(outcome: Outcome) -> Tone:
    match outcome:
        case Outcome.SCHEDULED:
            return Tone.GOOD
        case Outcome.GATED:
            return Tone.HELD
        case Outcome.UNDECIDED:
            return Tone.OPEN
        case Outcome.UNSCHEDULABLE | Outcome.ERROR:
            return Tone.BAD
        case _:
            assert_never(outcome)


def _how_to_complete(plugins: Iterable[Unevaluated]) -> tuple[str, ...]:
    """Return the commands that complete a dump, one line each; empty if nothing is missing."""
    command = next((unevaluated.completed_by for unevaluated in plugins if unevaluated.completed_by), "")
    _, _, file = command.partition(" > ")
    return (command, f"kschedx why ... -s {file}   (with the other files)") if file else (command,) if command else ()


def outcome_details(cycle: Cycle, ranking: Ranking | None, holding: Holding | None) -> tuple[str, ...]:
    """Return sentences below the headline: the node's margin, and what is missing to decide."""
    is_chosen = cycle.nominated is None and not _lacks_room(cycle, holding)
    details = [_margin(ranking, cycle.profile)] if ranking and ranking.margin is not None and is_chosen else []
    if cycle.outcome is Outcome.SCHEDULED and open_stake(cycle.unevaluated) is Stake.NODE and not cycle.has_no_choice:
        details.append(could_prefer(cycle.unevaluated))
    if cycle.outcome is Outcome.UNDECIDED and (commands := _how_to_complete(cycle.unevaluated)):
        details += ["to decide, add to the dump:", *(f"{COMMAND}{command}" for command in commands)]
    return tuple(details)


def lacking_notes(cycle: Cycle) -> Iterator[str]:
    """Yield what the dump lacks, if it would only add reasons."""
    lacking = [unevaluated for unevaluated in cycle.unevaluated if unevaluated.kind is UnevaluatedKind.OBJECTS]
    if lacking and cycle.outcome is not Outcome.UNDECIDED:
        yield f"{'; '.join(map(missing_from_dump, lacking))}; no node fits either way"
        yield from (f"to see all reasons: {command}" for command in _how_to_complete(cycle.unevaluated)[:1])


def causes(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return why no node fits, or why no other one does; empty if several do."""
    is_only = diagnosis.feasible == 1 and diagnosis.cycle.outcome is Outcome.SCHEDULED
    return because(diagnosis) if is_only or not diagnosis.feasible else ()


def roots(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the root causes, such as a driver that does not run or a controller that fails."""
    return tuple(root.text for root in root_causes(diagnosis)[:MOST_ROOT_CAUSES])


def volume_facts(diagnosis: Diagnosis) -> Iterator[Fact]:
    """Yield the location of bound volumes that exclude nodes, if the pod fits other nodes."""
    facts_by_text: dict[str, None] = {}
    for finding in diagnosis.findings if diagnosis.feasible else ():
        if isinstance(finding, VolumeZoneMismatch):
            facts_by_text[
                f"{finding.persistent_volume} is in {list_names(finding.zones, _SHOWN_NODES, conjunction='or')}"
            ] = None
        elif isinstance(finding, VolumeNodeAffinityMismatch) and len(finding.terms) == 1:
            for unmet in finding.terms[0].requirements:
                if not unmet.matched and unmet.operator == "In":
                    places = list_names(unmet.values, _SHOWN_NODES, conjunction="or")
                    where = places if unmet.key == HOSTNAME else f"{unmet.key.rpartition('/')[2]} {places}"
                    facts_by_text[f"{finding.persistent_volume} is accessible only from {where}"] = None
    if facts_by_text:
        yield Fact.of("volume", *facts_by_text)


def event_text(cycle: Cycle, holding: Holding | None) -> str:
    """Return the event's text as kube-scheduler writes it, whole, so that a search finds it. Empty for a pod that does
    not enter the queue, because kube-scheduler writes no event for it."""
    if _lacks_room(cycle, holding) and holding is not None and holding.group is not None:
        return holding.group.message
    return "" if cycle.outcome is Outcome.GATED or cycle.pod.spec.node_name else cycle.message


def outcome_sentence(diagnosis: Diagnosis, ranking: Ranking | None, holding: Holding | None = None) -> str:
    """Return `shop/web-0 is unschedulable: 0 of 5 nodes fit`."""
    cycle = diagnosis.cycle
    key = cycle.pod.key
    taken = cycle.outcome is Outcome.GATED or any(it.kind is UnevaluatedKind.SCHEDULER for it in cycle.unevaluated)
    if holding is not None and taken and (phrase := holder_text(holding, key)):
        kueue = holding.kueue
        is_open = cycle.outcome is Outcome.GATED and kueue is not None and not (kueue.fits or kueue.is_dispatched)
        return f"{phrase}; once admitted {then_text(diagnosis, ranking)}" if is_open else phrase
    if holding is not None and holding.scheduler is not None:
        key = f"if kube-scheduler decided instead of {holding.scheduler.title}, {key}"
    if (bound := bound_by_hand(cycle)) is not None:
        return f"{key}: {bound.text}"
    match cycle.outcome:
        case Outcome.SCHEDULED:
            if holding is not None and holding.group is not None and _lacks_room(cycle, holding):
                return f"{key} is unschedulable{' ' if holding.group.preempted else ': '}{gang_cause(holding.group)}"
            return f"{key} {_goes(cycle, ranking)}"
        case Outcome.UNSCHEDULABLE:
            return f"{key} is unschedulable: {_why_not(diagnosis)}"
        case Outcome.GATED:
            gates = [gate.name for gate in cycle.pod.spec.scheduling_gates]
            noun = "gate" if len(gates) == 1 else "gates"
            if not gates:
                held = f"{key} is not in the queue, {_held(diagnosis)}"
                return held if cycle.nodes is None else f"{held}; otherwise {then_text(diagnosis, ranking)}"
            held = f"scheduling {noun} {list_names(gates, _SHOWN_NODES)}"
            return f"{key} is gated by {held}; without the {noun} {then_text(diagnosis, ranking)}"
        case Outcome.UNDECIDED:
            phrase = f"{key} is undecided: {could_reject(cycle.unevaluated)}"
            return f"{phrase}; otherwise it {_goes(cycle, ranking)}" if cycle.choice else phrase
        case Outcome.ERROR:
            return f"{key}: kube-scheduler fails with an internal error and makes no decision"
        case _:
            assert_never(cycle.outcome)


def _lacks_room(cycle: Cycle, holding: Holding | None) -> bool:
    """Whether the pod fits alone, but its group does not."""
    group = None if holding is None else holding.group
    return group is not None and group.lacks_room and cycle.outcome is Outcome.SCHEDULED


def then_text(diagnosis: Diagnosis, ranking: Ranking | None, subject: str = "it") -> str:
    """Return the outcome of a pod that is held back, if it were released."""
    cycle = diagnosis.cycle
    outcome = _goes(cycle, ranking) if cycle.choice else f"is unschedulable: {_why_not(diagnosis)}"
    return f"{subject} {outcome}"


def _held(diagnosis: Diagnosis) -> str:
    return next((f"held back by {stop.status.plugin}" for stop in diagnosis.stops), "held back")


def _goes(cycle: Cycle, ranking: Ranking | None) -> str:
    names = [cycle.all_nodes.cluster.names[row] for row in cycle.choice]
    claims = cycle.snapshot.storage.claims_of(cycle.pod)
    awaited = [claim.key for claim in claims if claim.selected_node == names[0] and not claim.spec.volume_name]
    if awaited:  # kube-scheduler has chosen the node and requested the volumes there
        has = "claim {} has its volume" if len(awaited) == 1 else "claims {} have their volumes"
        return f"is assigned to {names[0]} as soon as {has.format(list_names(awaited, 3))}"
    if cycle.nominated is not None:
        return f"would be assigned to {names[0]}, its nominated node; kube-scheduler tries no other while it fits there"
    if len(names) > 1:
        tied = list_names(names, _SHOWN_NODES)
        return f"would be assigned to one of {count(len(names), 'node')} with equal scores, at random: {tied}"
    only = ", the only node that fits" if ranking is None or ranking.count == 1 else ""
    return f"would be assigned to {names[0]}{only}"


def _margin(ranking: Ranking, profile: Profile) -> str:
    assert ranking.runner_up is not None
    winner = "they lead" if ranking.winners > 1 else f"total {ranking.nodes[0].total:,} leads"
    points = count(ranking.margin or 0, "point")
    args = profile.args.get("NodeResourcesFit")
    strategy = args.scoring_strategy.type if isinstance(args, NodeResourcesFitArgs) else LEAST_ALLOCATED
    unusual = {} if strategy == LEAST_ALLOCATED else {"NodeResourcesFit": f" ({strategy})"}
    leads = list_names([f"{it.plugin}{unusual.get(it.plugin, '')} {it.difference:+,}" for it in ranking.leads], 4)
    return f"{winner} {ranking.runner_up.name} by {points}: {leads}"


def _why_not(diagnosis: Diagnosis) -> str:
    cycle = diagnosis.cycle
    if not diagnosis.total:
        return NO_NODES
    if cycle.nodes is None:
        return f"rejected before kube-scheduler evaluates any of {count(diagnosis.total, 'node')}"
    fit = f"0 of {count(diagnosis.total, 'node')} {'fits' if diagnosis.total == 1 else 'fit'}"
    result = cycle.post_filter
    if result is None or not result.candidates:
        return fit
    names = [cycle.all_nodes.cluster.names[row] for row in result.best]
    where = names[0] if len(names) == 1 else f"one of {list_names(names, 3)}"
    return f"{fit}; preemption makes room on {where}"
