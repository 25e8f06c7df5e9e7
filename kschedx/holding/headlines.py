"""The outcome of a pod that another component holds or schedules, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from kschedx.holding import model
from kschedx.wording import count, list_names

_SHOWN = 3
_CLOSED = ("Closed", "Closing")  # states in which a queue of Volcano admits no more PodGroups


def holder_text(holding: model.Holding, key: str) -> str:
    """Return the outcome of a pod that another controller holds or schedules; empty if only gates hold it."""
    if holding.scheduler is not None:
        scheduler = holding.scheduler
        by = f"{scheduler.title} (schedulerName {scheduler.name}), not by kube-scheduler"
        return f"{key} is scheduled by {by}{_phase(scheduler)}"
    return "" if holding.kueue is None or not holding.kueue.is_gated else _kueue_text(holding.kueue, holding.gates, key)


def gang_cause(group: model.GangStatus) -> str:
    """Return why a pod that fits alone is unschedulable with its group."""
    if group.preempted:
        victims = count(len(group.preempted), "pod")
        are = "is" if len(group.preempted) == 1 else "are"
        return f"until {victims} preempted for its group {group.name} {are} gone"
    placed = group.placed + (group.together or 0)
    room = f"room for only {placed:,} of {max(group.min_count, 1):,} pods at once"
    if group.topology_key:
        room = f"room in no domain of {group.topology_key}" if group.domains else "no placement"
    return f"group {group.name} has {room}"


def _kueue_text(kueue: model.Kueue, gates: Sequence[model.Gate], key: str) -> str:
    others = [gate.name for gate in gates]
    besides = f", and has the gate{'s' if len(others) > 1 else ''} {list_names(others, _SHOWN)}" if others else ""
    return f"{key} {kueue_state_text(kueue, _place(kueue))}{besides}{_even_then(kueue)}"


def kueue_state_text(kueue: model.Kueue, place: str = "") -> str:
    """Return the state of a gated pod in Kueue, as a predicate."""
    where = f"queue {kueue.queue}" if kueue.queue else "no queue"
    match kueue.state:
        case model.WorkloadState.NO_WORKLOAD if kueue.group:
            exist = f"{kueue.group_pods:,} of {count(kueue.group_total, 'pod')} exist"
            return f"is gated by Kueue ({where}), which waits for all pods of group {kueue.group}: {exist}"
        case model.WorkloadState.NO_WORKLOAD:
            return f"is gated by Kueue ({where}; its Workload is not in this snapshot)"
        case model.WorkloadState.NO_QUEUE:
            lacking = f"ClusterQueue {kueue.cluster_queue}" if kueue.cluster_queue else f"LocalQueue {kueue.queue}"
            if kueue.namespaces_of_queue and not kueue.cluster_queue:
                has = list_names(kueue.namespaces_of_queue, _SHOWN)
                return f"is gated by Kueue: {lacking} does not exist in its namespace, only in {has}"
            is_missing = kueue.decision is not None and bool(kueue.decision.inactive)
            is_gone = bool(kueue.known_queues) or kueue.reports_no_queue or is_missing
            return f"is gated by Kueue: {lacking} {'does not exist' if is_gone else 'is not in this snapshot'}"
        case model.WorkloadState.DEACTIVATED:
            return f"is gated by Kueue: its Workload is deactivated ({where})"
        case model.WorkloadState.STOPPED | model.WorkloadState.WAITING:
            waits = "waits for quota in Kueue" if kueue.decision is None else kueue.decision.state_text
            return f"{waits} ({where}{place})"
        case model.WorkloadState.CHECKING:
            return f"has quota reserved in Kueue ({where}) and waits for {_checks(kueue)}"
        case model.WorkloadState.ADMITTED if kueue.cluster:
            return f"runs in worker cluster {kueue.cluster}, to which MultiKueue dispatched its Workload"
        case model.WorkloadState.ADMITTED:
            return "is admitted by Kueue, but Kueue has not removed its gate"
        case model.WorkloadState.FINISHED:
            return "stays gated by Kueue: its Workload has finished"
        case _:
            assert_never(kueue.state)


def _place(kueue: model.Kueue) -> str:
    if kueue.position is None:
        return ""
    return f", number {kueue.position:,} of {kueue.waiting:,} by priority and age"


def _checks(kueue: model.Kueue) -> str:
    names = [check.type for check in kueue.checks]
    if names:
        return f"{'the admission check' if len(names) == 1 else 'admission checks'} {list_names(names, _SHOWN)}"
    return "admission"


def _even_then(kueue: model.Kueue) -> str:
    if kueue.is_dispatched:
        return "" if kueue.cluster else "; once admitted its pods run in a worker cluster"
    if kueue.fits_nowhere:
        return "; once admitted it fits no node"
    nodes = {node for fit in kueue.fits for node in fit.feasible}
    return f"; once admitted it fits {count(len(nodes), 'node')}" if nodes else ""


def _phase(scheduler: model.OtherScheduler) -> str:
    phase = f"its group {scheduler.group} is {scheduler.phase}" if scheduler.phase else ""
    queue = next(_queue_obstacles(scheduler), "")
    parts = ", and ".join(filter(None, (phase, queue)))
    return f"; {parts}" if parts else ""


def _queue_obstacles(scheduler: model.OtherScheduler) -> Iterator[str]:
    """Yield why a queue of the pod gives it nothing."""
    if scheduler.known_queues:
        yield f"queue {scheduler.queue} does not exist"
    own = model.SchedulerQueue(name=scheduler.queue, state=scheduler.queue_state, shares=scheduler.queue_shares)
    for queue in (own, *scheduler.queues_above):
        if queue.state in _CLOSED:
            yield f"queue {queue.name} is {queue.state}"
        for share in queue.shares:
            if share.capability and share.allocated is not None and share.allocated >= share.capability:
                yield f"queue {queue.name} has its limit of {share.resource} allocated"


def scheduler_report(holding: model.Holding) -> str:
    """Return `; its group default/train is Pending: ...` or `: Insufficient quotas ...`, as another scheduler reports
    it, or `, and no pod of Volcano is known`; empty if it reports nothing."""
    scheduler = holding.scheduler
    if scheduler is None:
        return ""
    if scheduler.is_absent:
        return f", and no pod of {scheduler.title} is known"
    is_about_group = bool(scheduler.phase)
    said = (each for each in scheduler.said if not (is_about_group and each.type == "PodScheduled"))
    messages = [each.message for each in said if each.message]
    phase = _phase(scheduler) if is_about_group else ""
    return f"{phase}: {messages[-1]}" if messages else phase
