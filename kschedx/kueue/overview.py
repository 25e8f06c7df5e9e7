"""The current queues of Kueue: usage by flavor, and every pending Workload with its position and cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kschedx.kueue.document import AdmissionCycle, Admissions, Begin, QueueHead
from kschedx.kueue.flavors import Shortage
from kschedx.kueue.quota import QueueNode, QuotaNode
from kschedx.kueue.run import AdmissionRun, cycles_of, start_of
from kschedx.kueue.settings import KueueSettings
from kschedx.kueue.workloads import Job, timestamp
from kschedx.snapshot.snapshot import Snapshot


class FlavorRow(Struct, frozen=True, kw_only=True):
    """A resource of a flavor; amounts as Kueue counts them."""

    flavor: str
    resource: str
    used: int
    nominal: int
    available: int  # with borrowing; negative if usage exceeds the quota

    @property
    def borrowed(self) -> int:
        return max(0, self.used - self.nominal)


class PendingWorkload(Struct, frozen=True, kw_only=True):
    workload: str
    priority: int
    outcome: str  # the result of its first evaluation; empty if Kueue does not evaluate it
    message: str
    victims: tuple[str, ...] = ()
    shortages: tuple[Shortage, ...] = ()


class QueueOverview(Struct, frozen=True, kw_only=True):
    name: str
    cohorts: tuple[str, ...]  # nearest first
    inactive: str  # why the queue is inactive; empty for an active one
    holding: int  # the number of Workloads with quota reserved
    rows: tuple[FlavorRow, ...]
    waiting: tuple[PendingWorkload, ...]  # in queue order
    checking: tuple[PendingWorkload, ...] = ()
    """Those with quota whose admission checks are not ready, each with their messages."""


class CohortOverview(Struct, frozen=True, kw_only=True):
    name: str
    parent: str
    rows: tuple[FlavorRow, ...]


class Overview(Admissions, frozen=True, kw_only=True):
    """A run with the state of the queues before it."""

    queues: tuple[QueueOverview, ...]
    cohorts: tuple[CohortOverview, ...]
    unqueued: tuple[PendingWorkload, ...]  # pending Workloads without a queue
    snapshot: Snapshot

    @property
    def checking(self) -> int:
        return sum(len(queue.checking) for queue in self.queues)

    @property
    def waiting(self) -> int:
        return sum(len(queue.waiting) for queue in self.queues) + len(self.unqueued)


_VERSION = "0.19.2"  # the version whose decisions were recorded and compared


def overview(
    snapshot: Snapshot, settings: KueueSettings, *, version: str = _VERSION, now: str | None = None
) -> Overview:
    started = start_of(snapshot, now)
    run = AdmissionRun(snapshot, settings, timestamp(started))
    order = {name: queue.everyone for name, queue in run.queues.items()}
    before = {name: (tuple(_rows(node)), len(run.cache.jobs[name])) for name, node in run.cache.tree.queues.items()}
    cohorts = tuple(
        CohortOverview(name=name, parent=node.parent.name if node.parent else "", rows=tuple(_rows(node)))
        for name, node in sorted(run.cache.tree.cohorts.items())
    )
    pending = [job for job in run.jobs.values() if job.state == "Pending"]
    queued = {job.key for jobs in order.values() for job in jobs}
    checking = {name: tuple(_workloads_in_checks(jobs.values())) for name, jobs in run.cache.jobs.items()}
    cycles = list(cycles_of(run))
    heads = _first_heads(cycles)
    queues = tuple(
        QueueOverview(
            name=name,
            cohorts=tuple(ancestor.name for ancestor in run.cache.tree.queues[name].ancestors()),
            inactive=_inactive(run, run.cache.tree.queues[name]),
            holding=before[name][1],
            rows=before[name][0],
            waiting=tuple(_pending_workload(run, job, heads, order[name]) for job in order[name]),
            checking=checking[name],
        )
        for name in run.queues
    )
    return Overview(
        kueue_version=version,
        now=started,
        begin=Begin(evicted=run.begin) if run.begin else None,
        cycles=tuple(cycles),
        cluster_queues={name: run.cluster_queue_document(name) for name in sorted(run.queues)},
        workloads={key: run.workload_document(job) for key, job in sorted(run.jobs.items())},
        is_settled=run.is_settled,
        snapshot=snapshot,
        queues=queues,
        cohorts=cohorts,
        unqueued=tuple(_pending_workload(run, job, heads, ()) for job in pending if job.key not in queued),
    )


def _workloads_in_checks(jobs: Iterable[Job]) -> Iterator[PendingWorkload]:
    for job in jobs:
        if job.state == "QuotaReserved" and job.pending_message:
            yield PendingWorkload(workload=job.key, priority=job.priority, outcome="", message=job.pending_message)


def _rows(node: QuotaNode) -> Iterator[FlavorRow]:
    for fr in node.subtree:
        yield FlavorRow(
            flavor=fr.flavor,
            resource=fr.resource,
            used=node.used_amount(fr),
            nominal=node.subtree_quota(fr),
            available=node.unbounded_available(fr),
        )


def _inactive(run: AdmissionRun, node: QueueNode) -> str:
    if node.has_cycle:
        return "its cohorts form a cycle"
    ready = run.readiness[node.name]
    return "" if ready.is_active else ready.message


def _first_heads(cycles: Sequence[AdmissionCycle]) -> dict[str, QueueHead]:
    heads: dict[str, QueueHead] = {}
    for cycle in cycles:
        for key, head in cycle.heads.items():
            if key not in heads or heads[key].outcome == "Skipped":
                heads[key] = head
    return heads


def _pending_workload(
    run: AdmissionRun, job: Job, heads: Mapping[str, QueueHead], among: Sequence[Job]
) -> PendingWorkload:
    head = heads.get(job.key)
    message = head.message if head is not None else ""
    if head is None:
        equal = next((other.key for other in among if other.key in heads and other.shape == job.shape), "")
        condition = job.conditions.get("QuotaReserved")
        message = condition.message if condition is not None and condition.status == "False" else ""
        queue = run.queue_of(job)
        if equal:
            message = f"equal to {equal}"
        elif not job.is_active:
            message = "it is deactivated (spec.active is false)"
        elif queue is not None and queue.is_strict:
            first = next((other.key for other in queue.everyone if other.key in heads), job.key)
            message = message if first == job.key else f"behind {first} (StrictFIFO)"
    return PendingWorkload(
        workload=job.key,
        priority=job.priority,
        outcome=head.outcome if head is not None else "",
        message=message,
        victims=tuple(target.workload for target in head.targets) if head is not None else (),
        shortages=head.shortages if head is not None else (),
    )
