"""What keeps the pod from kube-scheduler's queue, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from kschedx.framework.cycle import Cycle
from kschedx.grouping import group_pairs
from kschedx.holding import model
from kschedx.kube.conditions import Condition
from kschedx.kube.kueue import RESOURCE_FLAVOR
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.wording import Fact, count, list_names

if TYPE_CHECKING:
    from kschedx.kueue.verdict import Verdict

_SHOWN = 3
_MOST_QUOTAS = 4
_MOST_MEMBERS = 4


def kueue_reason(holding: model.Holding) -> Iterator[str]:
    """Yield why Kueue does not admit the Workload, if its rules say so."""
    verdict = None if holding.kueue is None else holding.kueue.verdict
    if verdict is not None and not verdict.has_quota_now and (message := _message(verdict)):
        yield message


def holding_facts(
    holding: model.Holding, cycle: Cycle, *, wide: bool = False, known: Collection[str] = ()
) -> Iterator[Fact]:
    """Yield the facts below the sentence. Only quotas that are short are included, unless `wide`. `known` are messages
    that are already on the screen."""
    if holding.kueue is not None:
        yield from _kueue(holding.kueue, known, wide=wide)
        if holding.kueue.quotas and cycle.snapshot.source.may_lack(RESOURCE_FLAVOR):
            text = "the dump has no ResourceFlavors: node labels and taints of the flavors are not known"
            yield Fact.of("note", text)
    for gate in (gate for gate in holding.gates if gate.owner):
        yield Fact.of("gate", f"{gate.name} belongs to {gate.owner}: {gate.look_at}")
    if holding.scheduler is not None:
        yield from _scheduler(holding.scheduler, cycle)
    if holding.group is not None:
        yield from _group(holding.group)
    ordered = sorted(holding.pools, key=lambda pool: (not pool.error, pool.available or 0))
    for pool in ordered if wide else ordered[:_SHOWN]:
        yield Fact.of("pool", _pool(pool))


# --- Kueue


def _kueue(kueue: model.Kueue, known: Collection[str], *, wide: bool) -> Iterator[Fact]:
    parts = [f"Workload {kueue.workload} {_STANDS[kueue.state]}"] if kueue.workload else []
    parts += [f"ClusterQueue {kueue.cluster_queue}"] if kueue.cluster_queue else []
    parts += [f"cohort {' below '.join(kueue.cohorts)}"] if kueue.cohorts else []
    if parts:
        yield Fact.of("kueue", *parts, f"priority {kueue.priority:,}")
    if kueue.circle:
        yield Fact.of("cohorts", "they form a cycle: Kueue admits nothing below them")
    if kueue.cluster:
        yield Fact.of("runs in", f"the cluster {kueue.cluster}, where MultiKueue sent it")
    for worker in kueue.workers[:_SHOWN]:
        yield Fact.of("worker", worker)
    reported = (*kueue.said, *kueue.checks)
    conditions = group_pairs((condition.message, _condition_name(condition)) for condition in reported)
    for message, names in conditions.items():
        shown = "" if message in known else message
        yield Fact.of("status", ": ".join(filter(None, (", ".join(names), shown))))
    flavors = [quota.flavor for quota in kueue.quotas]
    ordered = sorted(kueue.quotas, key=lambda quota: (flavors.index(quota.flavor), not quota.short))
    short = [quota for quota in ordered if quota.short]
    for quota in ordered if wide else (short or ordered)[:_MOST_QUOTAS]:
        yield Fact.of("quota", _quota(quota), whole=True)
        if quota.short and quota.users:
            unit = Unit.of(quota.resource)
            used = [
                f"{format_quantity(user.amount, unit)} {user.workload} (priority {user.priority:,})"
                for user in quota.users
            ]
            rest = tuple(f"{len(used) - number:,} others" for number in range(len(used)))
            yield Fact.of("used by", *used[:_SHOWN], rest=rest)
    if kueue.verdict is not None:
        yield from _decision(kueue.verdict, (*known, *(condition.message for condition in kueue.said)))
    if kueue.is_by_usage and kueue.waiting:
        turn = f"{kueue.waiting:,} pending; order: LocalQueue with the least usage, then priority, then age"
        yield Fact.of("turn", turn)
    if kueue.weighted_share is not None and kueue.cohort:
        share = (
            f"share {kueue.weighted_share:,} with weight {kueue.fair_weight}; the lowest share in the cohort is first"
        )
        yield Fact.of("fair", share)
    if kueue.state is model.WorkloadState.WAITING and (taking := _preemptable_text(kueue)):
        yield Fact.of("preempts", *taking)
    if kueue.requeue_at:
        yield Fact.of("requeued", f"at {kueue.requeue_at}")
    if kueue.ahead:
        more = len(kueue.ahead) - _SHOWN
        yield Fact.of("ahead", *kueue.ahead[:_SHOWN], *([f"{more:,} more"] if more > 0 else []))
    for fit in kueue.fits:
        yield Fact.of("admitted", _fit(fit))


_NO_FLAVOR = "couldn't assign flavors to pod set"


def _decision(verdict: Verdict, known: Iterable[str]) -> Iterator[Fact]:
    """Yield the decision by Kueue's own rules, and what would change it. `known` are messages that are already on the
    screen."""
    message = _message(verdict)
    is_known = any(
        message == known_text or {message[:15], known_text[:15]} == {_NO_FLAVOR[:15]} for known_text in known
    )
    if verdict.has_quota_now:
        yield Fact.of("decision", f"Kueue admits it as the cluster stands{verdict.partial_text}")
    elif message and not is_known:
        yield Fact.of("decision", message)
    if verdict.equal_to:
        yield Fact.of("", f"decided for {verdict.equal_to}, which is equal")
    for fr, amount in verdict.unseen:
        from kschedx.kueue.quota import display_amount

        text = f"{display_amount(fr.resource, amount)} {fr.resource} in {fr.flavor}"
        yield Fact.of("note", f"{text} reserved by Workloads that are not in the snapshot")
    if verdict.victims:
        names = [f"{victim.workload} ({victim.reason})" for victim in verdict.victims]
        rest = tuple(f"{len(names) - number:,} others" for number in range(len(names)))
        yield Fact.of("victims", *names[:_SHOWN], rest=rest)


def _message(verdict: Verdict) -> str:
    return verdict.head.message if verdict.head is not None else verdict.blocked


def _preemptable_text(kueue: model.Kueue) -> tuple[str, ...]:
    """Return from which Workloads Kueue may take quota for it by evicting them."""
    whose = {
        "LowerPriority": "lower priority",
        "LowerOrNewerEqualPriority": "lower or newer",
        "Any": "any",
    }
    phrases = []
    if kueue.within_queue in whose:
        phrases.append(f"{whose[kueue.within_queue]} in its queue")
    if kueue.within_cohort in whose:
        phrases.append(f"{whose[kueue.within_cohort]} in the cohort that borrows")
    return tuple(phrases)


_STANDS = {
    model.WorkloadState.NO_WORKLOAD: "",
    model.WorkloadState.NO_QUEUE: "has no queue here",
    model.WorkloadState.DEACTIVATED: "is deactivated",
    model.WorkloadState.STOPPED: "is stopped",
    model.WorkloadState.WAITING: "is pending",
    model.WorkloadState.CHECKING: "has quota reserved",
    model.WorkloadState.ADMITTED: "is admitted",
    model.WorkloadState.FINISHED: "has finished",
}


def _condition_text(condition: Condition) -> str:
    return ": ".join(filter(None, (_condition_name(condition), condition.message)))


def _condition_name(condition: Condition) -> str:
    state = condition.type if condition.status in ("False", "True", "") else f"{condition.type} is {condition.status}"
    reason = f" ({condition.reason})" if condition.reason and condition.reason != condition.type else ""
    return f"{state}{reason}"


def _quota(quota: model.FlavorQuota) -> str:
    unit = Unit.of(quota.resource)

    def shown(amount: int) -> str:
        return format_quantity(amount, unit)

    text = (
        f"{quota.resource} in {quota.flavor}: requests {shown(quota.asked)}, {shown(quota.free)} free = "
        f"{shown(quota.nominal)} nominal - {shown(min(quota.used, quota.nominal))} used"
    )
    if quota.borrowed:
        text += f", {shown(quota.borrowed)} borrowed"
    if quota.lent:
        text += f", {shown(quota.lent)} lent to {list_names(quota.borrowers, 3) or 'the cohort'}"
    elif quota.pools:
        text += f"; {shown(quota.to_borrow)} can be borrowed in the cohort"
        if quota.borrowing_limit is not None:
            text += f" (limit {shown(quota.borrowing_limit)})"
    if not quota.short:
        return text
    from kschedx.fixes.phrases import amount_text  # a pod that fits needs no fixes

    return f"{text}; short by {amount_text(quota.resource, quota.short)}"


def _fit(fit: model.FlavorFit) -> str:
    if not fit.exists:
        return f"with flavor {fit.flavor}, which does not exist"
    by = f", selected by topology {fit.topology}" if fit.topology else ""
    of = f"with flavor {fit.flavor} ({count(fit.nodes, 'node')}{by})"
    if fit.refused:
        return f"{of}: not for this pod, {fit.refused}"
    if fit.feasible:
        return f"{of}: fits {list_names(list(fit.feasible), _SHOWN)}"
    return f"{of}: fits no node, {', '.join(fit.reasons)}" if fit.reasons else f"{of}: fits no node"


# --- others


def _pool(pool: model.ReportedPool) -> str:
    name = f"{pool.driver}/{pool.pool}{f' on {pool.node}' if pool.node else ''}"
    by = f"ResourcePoolStatusRequest {pool.request}"
    if pool.error or pool.total is None:
        return f"{name} is invalid: {pool.error or 'no count'} ({by})"
    sick = f", {pool.unavailable:,} unavailable" if pool.unavailable else ""
    free = f"{pool.available or 0:,} of {count(pool.total, 'device')} available"
    return f"{name}: {free}, {pool.allocated or 0:,} allocated{sick} ({by})"


def _scheduler(scheduler: model.OtherScheduler, cycle: Cycle) -> Iterator[Fact]:
    if scheduler.group or scheduler.task_group:
        parts = [f"{scheduler.group} {scheduler.phase}".rstrip() or f"task group {scheduler.task_group}"]
        least = f", needs {scheduler.min_member:,}" if scheduler.min_member is not None else ""
        if scheduler.members:
            parts.append(f"{scheduler.running:,} of {count(scheduler.members, 'pod')} assigned{least}")
        yield Fact.of("group", *parts)
    if scheduler.application:
        yield Fact.of("app", scheduler.application)
    for condition in scheduler.said:
        yield Fact.of("status", _condition_text(condition))
    if scheduler.queue:
        yield _queue("queue", scheduler.queue, scheduler.queue_state, scheduler.queue_shares, scheduler.title)
    for queue in scheduler.queues_above:
        if queue.shares:
            yield _queue("below", queue.name, queue.state, queue.shares, scheduler.title)
    for room in scheduler.rooms:
        where = f" on {room.node}" if room.node else ""
        wrong = (_condition_text(condition) for condition in room.said)
        yield Fact.of("reserved", f"Reservation {room.name} is {room.phase or 'not scheduled yet'}{where}", *wrong)
    for devices in scheduler.shared[:_SHOWN]:
        sick = f", {devices.healthy:,} healthy" if devices.healthy < devices.devices else ""
        text = (
            f"{devices.node}: {count(devices.devices, 'device')} ({devices.kind}){sick}, up to {devices.memory:,} MiB"
        )
        short = devices.requested - devices.memory
        wanted = f"{devices.requested:,} MiB free" if devices.requested else "all memory free"
        lacks = f"short by {short:,} MiB" if short > 0 else f"{devices.fitting:,} with {wanted}"
        yield Fact.of("devices", text, lacks)
    if scheduler.is_absent:
        yield Fact.of("absent", f"no pod of {scheduler.title} is known: without it, nothing schedules the pod")
    yield Fact.of("look at", scheduler.look_at)
    if cycle.profile.scheduler_name == scheduler.name:
        yield Fact.of("note", "kube-scheduler's own answer: --profile default-scheduler")
    else:
        yield Fact.of("note", "this is kube-scheduler's answer; it does not schedule this pod")


def _queue(label: str, name: str, state: str, shares: Sequence[model.QueueShare], title: str) -> Fact:
    return Fact.of(label, f"{name} {state}".rstrip(), *(_share(share, title) for share in shares))


_SURE = {"Volcano": "deserved", "KAI": "quota", "Run:ai": "quota", "Koordinator": "runtime"}
"""Schedulers to their word for a queue's guaranteed share."""


def _share(share: model.QueueShare, title: str) -> str:
    unit = Unit.of(share.resource)

    def shown(amount: int) -> str:
        return f"{amount / 1000:g}" if share.is_in_thousandths else format_quantity(amount, unit)

    most = "" if share.capability is None else shown(share.capability)
    if share.allocated is None:
        return f"{share.resource} at most {most}"
    text = f"{share.resource} {shown(share.allocated)}{f' of {most}' if most else ''} allocated"
    beside = [f"{_SURE.get(title, 'deserved')} {shown(share.deserved)}"] if share.deserved is not None else []
    beside += [f"requested {shown(share.requested)}"] if share.requested is not None else []
    beside += [f"{shown(share.held)} for groups that are Inqueue"] if share.held else []
    return f"{text} ({', '.join(beside)})" if beside else text


def _few(names: Sequence[str]) -> tuple[str, ...]:
    return (*names[:_MOST_MEMBERS], *((f"{len(names) - _MOST_MEMBERS:,} more",) if len(names) > _MOST_MEMBERS else ()))


def _placement(group: model.GangStatus) -> Iterator[Fact]:
    """Yield the placement of a group whose pods must share a topology domain."""
    if not group.topology_key:
        return
    if not group.domains:
        yield Fact.of("topology", f"no placement: {group.message}")
    elif group.fitting_domains:
        text = f"all pods go to {group.topology_key}={group.domain}"
        yield Fact.of("topology", text, f"the group fits {group.fitting_domains:,} of {group.domains:,} domains")
    else:
        text = f"the group fits none of {count(group.domains, 'domain')} of {group.topology_key}"
        yield Fact.of("topology", text, f"most pods fit {group.topology_key}={group.domain}")


def _group(group: model.GangStatus) -> Iterator[Fact]:
    needs = f", needs {group.min_count:,} at once" if group.min_count else ""
    text = f"{group.name}: {group.placed:,} of {count(group.pods, 'pod')} assigned{needs}"
    where = f" in {group.topology_key}={group.domain}" if group.domain else ""
    is_complete = group.pods >= group.min_count
    is_said = group.lacks_room and not (group.topology_key or group.preempted)  # by the headline
    is_counted = group.together is not None and is_complete and not is_said
    room = (f"room for {group.together:,} more at once{where}",) if is_counted else ()
    yield Fact.of("group", text, *room)
    if not group.is_heeded:
        needed = "these gates are on: GenericWorkload and, up to Kubernetes 1.36, GangScheduling"
        if group.plugin != "GangScheduling":
            needed = f"the scheduler's configuration (--config) enables plugin {group.plugin}"
        yield Fact.of("", f"ignored unless {needed}; each pod is scheduled alone")
    # members that lack something come first
    shown = sorted(group.waiting, key=lambda member: bool(member.node) or not (member.reasons or member.gates))
    for member in shown[:_MOST_MEMBERS]:
        yield Fact.of("", f"{member.pod} {_member(member, is_tried=group.together is not None)}")
    left = len(group.waiting) + group.more - _MOST_MEMBERS
    if left > 0:
        yield Fact.of("", f"{left:,} more pending")
    if group.has_ties and group.lacks_room and not group.preempted:
        yield Fact.of("", "nodes are tied; no choice that was tried fits the group")
    yield from _placement(group)
    if group.preempted:
        yield Fact.of("preempts", f"{count(len(group.preempted), 'pod')} for the whole group", *_few(group.preempted))
    elif group.preemption and group.lacks_room:
        yield Fact.of("preemption", f"not possible for the whole group: {group.preemption}")
    if group.undecided:
        yield Fact.of("undecided", group.undecided)
    if group.is_by_draw:
        yield Fact.of("", "nodes tied; with another random choice the gang does not fit")


def _member(member: model.GangMember, *, is_tried: bool) -> str:
    if member.gates:
        return f"is gated by {list_names(list(member.gates), _SHOWN)}"
    if member.node:
        return f"→ {member.node}" + (f", evicting {count(member.evicts, 'pod')}" if member.evicts else "")
    alone = f"fits {count(member.feasible, 'node')} alone" if member.feasible else "fits no node"
    if is_tried and member.feasible:
        alone = f"{alone}, no node with the rest of its group"
    return f"{alone}: {', '.join(member.reasons)}" if member.reasons else alone
