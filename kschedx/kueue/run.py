"""Kueue on a snapshot, cycle after cycle, until nothing changes.

Upstream: pkg/scheduler/scheduler.go, pkg/scheduler/fair_sharing_iterator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import numpy as np
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.kube.conditions import TimedCondition, condition_of
from kschedx.kube.kueue import (
    KUEUE_GROUP,
    PLACED_ANNOTATIONS,
    RESOURCE_FLAVOR,
    Admission,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    PodSetAssignment,
    ResourceFlavor,
    Topology,
    Workload,
)
from kschedx.kube.selectors import compile_selector
from kschedx.kube.types import ObjectMeta
from kschedx.kueue.controllers import PREEMPTED, Controllers, readiness
from kschedx.kueue.document import (
    AdmissionCycle,
    ClusterQueueDocument,
    ConditionDocument,
    Eviction,
    PlacedTopology,
    PodSetDocument,
    PreemptedWorkload,
    QueueHead,
    UsedAmount,
    WorkloadDocument,
)
from kschedx.kueue.flavors import FlavorAssignment as Assigned
from kschedx.kueue.flavors import FlavorAssignmentMode
from kschedx.kueue.queues import Cache, Ledger, LocalQueueKey, Requeue, WorkloadQueue
from kschedx.kueue.quota import (
    FlavorResource,
    QueueNode,
    QuotaTree,
    Requests,
    Usage,
    add_requests,
    invalid_resources,
    minus,
    outside_limit_ranges,
    pod_requests,
    quota_amount,
    shown,
)
from kschedx.kueue.scheduler import NAMESPACE_MISMATCH, CycleScheduler, Entry, Nominations
from kschedx.kueue.settings import KueueSettings
from kschedx.kueue.topology import FlavorTopology
from kschedx.kueue.workloads import Job, TimedStatus, checks_for_admission, checks_of, timestamp
from kschedx.progress import Phase, report_progress
from kschedx.snapshot.snapshot import Snapshot

_MOST_CYCLES = 100_000
_ADMISSION_CHECK = f"AdmissionCheck.{KUEUE_GROUP}"


class Memory:
    """What runs on similar clusters share, so that a trial costs only its difference. These runs may differ only in
    Workloads, ClusterQueues, Cohorts, and LocalQueues."""

    def __init__(self) -> None:
        self._jobs: dict[int, tuple[Workload, Job]] = {}
        self._nominations: dict[tuple[int, ...], tuple[object, Nominations]] = {}
        self.other_pods: dict[str, Requests] | None = None
        self.unseen: dict[str, Usage] | None = None

    def job(self, workload: Workload, snapshot: Snapshot, settings: KueueSettings) -> Job:
        known = self._jobs.get(id(workload))
        if known is None:
            limits = snapshot.limit_ranges.get(workload.metadata.namespace, ())
            new_job = Job.of(workload, settings, limits, snapshot.runtime_classes)
            _ = new_job.counted_pod_sets, new_job.usage, new_job.shape
            known = self._jobs[id(workload)] = (workload, new_job)
        return known[1].copy_state()

    def nominations(self, objects: Sequence[object]) -> Nominations:
        """`objects`: everything but Workloads that affects decisions."""
        key = tuple(id(each) for each in objects)
        return self._nominations.setdefault(key, (objects, {}))[1]


class AdmissionRun:
    """The state of Kueue, moved cycle by cycle."""

    def __init__(self, snapshot: Snapshot, settings: KueueSettings, now: int, memory: Memory | None = None) -> None:
        self.settings = settings
        self.now = now
        self.is_settled = False  # whether no queue has a head, the cycles repeat, or the scheduler stopped
        self.has_stopped = False
        """Whether it waits for the pods of admitted Workloads to be ready, and evaluates nothing else."""
        self.snapshot = snapshot
        self._memory = memory or Memory()
        queues = {queue.metadata.name: queue for queue in snapshot.of(ClusterQueue)}
        self._local_queues = {(it.metadata.namespace, it.metadata.name): it for it in snapshot.of(LocalQueue)}
        flavors = {flavor.metadata.name: flavor for flavor in snapshot.of(ResourceFlavor)}
        checks = {check.metadata.name: check for check in snapshot.of(AdmissionCheck)}
        conditions = {name: queue.status.conditions for name, queue in queues.items()}
        unread = [queue for name, queue in queues.items() if condition_of(conditions[name], "Active", "False") is None]
        if snapshot.source.may_lack(RESOURCE_FLAVOR):  # a flavor that a ClusterQueue names is taken to be plain
            names = dict.fromkeys(name for queue in unread for name in queue.flavors)
            flavors = {name: ResourceFlavor(metadata=ObjectMeta(name=name)) for name in names} | flavors
        if snapshot.source.may_lack(_ADMISSION_CHECK):
            names = dict.fromkeys(name for queue in unread for name in checks_of(queue))
            status = replace(AdmissionCheck().status, conditions=(TimedCondition(type="Active", status="True"),))
            checks = {name: AdmissionCheck(metadata=ObjectMeta(name=name), status=status) for name in names} | checks
        topologies = self._topologies(flavors)
        self.readiness = {
            name: readiness(snapshot, queue, flavors, checks, topologies, settings) for name, queue in queues.items()
        }
        active = [name for name, ready in self.readiness.items() if ready.is_active]
        tree = QuotaTree.of(list(queues.values()), snapshot.of(Cohort), active)
        self.cache = Cache(tree, flavors, topologies, checks, settings)
        deciding = (ClusterQueue, Cohort, ResourceFlavor, AdmissionCheck, Topology)
        self._known = self._memory.nominations([each for kind in deciding for each in snapshot.of(kind)])
        self._selectors = {name: compile_selector(queue.spec.namespace_selector) for name, queue in queues.items()}
        usage_based = settings.usage_based
        self._ledger = None if usage_based is None else Ledger(usage_based, self._local_queues.values(), active, now)
        self.queues = {
            name: WorkloadQueue(queue=queue, ledger=self._ledger if queue.is_usage_based else None)
            for name, queue in sorted(queues.items())
        }
        self.watched: Collection[str] = self.queues  # the ClusterQueues whose heads are evaluated
        self._trees: dict[str, list[str]] = {}
        for name, node in tree.queues.items():
            self._trees.setdefault(self._root(node), []).append(name)
        self._freed: dict[str, None] = {}  # the roots of the trees with quota released since the last cycle
        self._evicted: dict[str, str] = {}
        self._controllers = Controllers(self, settings, self._evicted)
        self._cycle = 0
        self.presumed_ready: set[str] = set()  # Workloads whose pods become ready as soon as Kueue admits them
        self.jobs = {workload.key: self._memory.job(workload, snapshot, settings) for workload in snapshot.of(Workload)}
        self.unseen = self._count_workloads()  # by ClusterQueue, what is reserved beyond the Workloads of the snapshot
        for job in list(self.jobs.values()):
            self._controllers.settle(job, self.now)
        self._retry_parked()
        self.begin = self._evictions()

    def _count_workloads(self) -> Mapping[str, Usage]:
        """Queue the Workloads, or count their quota. Return what the queues' status reports beyond that."""
        for job in self.jobs.values():
            queue = self.queue_of(job)
            if job.is_admissible:
                if queue is not None:
                    queue.add(job)  # the backoff does not count: a starting queue evaluates everything once
            elif self._holds_quota(job):
                self.cache.hold(job)
        nodes = self.cache.tree.queues
        if self._memory.unseen is None:
            self._memory.unseen = {name: dict(self._unseen_usage(nodes[name])) for name in self.readiness}
        for name, usage in self._memory.unseen.items():
            self.cache.add_usage(nodes[name], usage, {})
        return self._memory.unseen

    def _unseen_usage(self, node: QueueNode) -> Iterator[tuple[FlavorResource, int]]:
        for flavor in node.queue.status.flavors_reservation:
            for resource in flavor.resources:
                fr = FlavorResource(flavor.name, resource.name)
                missing = minus(quota_amount(resource.name, resource.total), node.used_amount(fr))
                if missing > 0:
                    yield fr, missing

    def _topologies(self, flavors: Mapping[str, ResourceFlavor]) -> dict[str, FlavorTopology]:
        if not self.settings.enabled("TopologyAwareScheduling"):
            return {}
        known = {topology.metadata.name: topology for topology in self.snapshot.of(Topology)}
        used = {name: known.get(flavor.spec.topology_name or "") for name, flavor in flavors.items()}
        if not any(used.values()):
            return {}
        nodes = self.snapshot.cluster.nodes
        other_pods = self._other_pods()
        return {
            name: FlavorTopology(
                flavors[name], topology, nodes, other_pods, uses_least_free=self.settings.enabled("TASProfileMixed")
            )
            for name, topology in used.items()
            if topology is not None and topology.spec.levels
        }

    def _other_pods(self) -> dict[str, Requests]:
        """Node to the requests of pods that Kueue has not placed."""
        if self._memory.other_pods is not None:
            return self._memory.other_pods
        taken = self._memory.other_pods = {}
        pods = self.snapshot.pods
        running = ~pods.finished
        named = pods.node_names.where(bool)
        for row in np.flatnonzero(running & named):
            pod = pods[int(row)]
            if any(name in pod.metadata.annotations for name in PLACED_ANNOTATIONS):
                continue
            node = pods.node_names[int(row)]
            taken[node] = add_requests(taken.get(node, {}), {**pod_requests(pod.spec), "pods": 1})
        return taken

    def _root(self, node: QueueNode) -> str:
        return f"queue {node.name}" if node.parent is None else f"cohort {node.parent.root.name}"

    # --- called by the controllers

    @property
    def has_local_queues(self) -> bool:
        return bool(self._local_queues)

    def local_queue(self, job: Job) -> LocalQueue | None:
        return self._local_queues.get(job.local_queue)

    def cluster_queue(self, job: Job) -> ClusterQueue | None:
        """Return the ClusterQueue of its LocalQueue, if both exist and the LocalQueue accepts Workloads."""
        queue = self.queue_of(job)
        return None if queue is None else queue.queue

    def queue_of(self, job: Job) -> WorkloadQueue | None:
        local = self.local_queue(job)
        if local is None or local.spec.is_stopped:
            return None
        return self.queues.get(local.spec.cluster_queue)

    def is_active(self, name: str) -> bool:
        return self.readiness[name].is_active

    def related_queues(self, job: Job) -> Collection[str]:
        """Return the queues that lend to or borrow from a Workload's queue, whose heads alone affect it; every queue if
        topology usage or pods that are not ready do as well."""
        queue = self.queue_of(job)
        if queue is None or self.cache.topologies or self.unready_workloads:
            return self.queues
        return self._trees[self._root(self.cache.tree.queues[queue.queue.metadata.name])]

    def inadmissibility(self, workload: Workload, queue: ClusterQueue) -> str:
        """Return why a Workload is refused before flavors are evaluated: by the scheduler in its adjusted form, by the
        controller in its submitted form."""
        namespace = workload.metadata.namespace
        if not self._is_selected(queue.metadata.name, namespace):
            return NAMESPACE_MISMATCH
        if error := invalid_resources(workload):
            return f"resources validation failed: {error}"
        if error := outside_limit_ranges(workload, self.snapshot.limit_ranges.get(namespace, ())):
            return f"resources didn't satisfy LimitRange constraints: {error}"
        return ""

    def _is_selected(self, queue: str, namespace: str) -> bool:
        labels = self.snapshot.namespaces.get(namespace, {"kubernetes.io/metadata.name": namespace})
        return self._selectors[queue].matches(labels)

    def bypass_reason(self, job: Job) -> str | None:
        queue = self.queue_of(job)
        if queue is None or job.key not in queue.parked or job.shape is None:
            return None
        return queue.bypassed.get(job.shape)

    def update(
        self, job: Job, change: Callable[[], bool], *, reorders: bool = False, is_as_submitted: bool = False
    ) -> bool:
        """Change a Workload, move it between queue and quota according to its state, and return whether it changed.
        `is_as_submitted`: Kueue queues it without adjusting its requests first."""
        before, was_active, was_admitted = job.state, job.is_active, job.is_admitted
        name = job.admission.cluster_queue if job.admission is not None else ""
        is_held = job.key in self.cache.jobs.get(name, {})
        if is_held:
            self.cache.release(job, name)
        is_changed = change()
        if self._holds_quota(job):
            self.cache.hold(job)
        if not is_changed:
            return False
        if is_held:
            self.cache.generations[name] += 1
        queue = self.queue_of(job)
        if job.is_finished or not job.is_active:
            if queue is not None:
                queue.remove(job.key)
            if is_held or was_active:
                self._free(job)
        elif before == "Pending" and job.state == "Pending":
            self._enqueue(job, is_reordered=reorders, is_as_submitted=is_as_submitted)
        elif before == "Pending":
            if queue is not None:
                queue.remove(job.key)
        elif job.state == "Pending":
            if job.requeue_at is None or job.requeue_at <= self.now:
                self._enqueue(job)
            self._free(job)
        if job.is_admitted and not was_admitted:
            self._settle_usage(job)
        return True

    def _holds_quota(self, job: Job) -> bool:
        return job.has_quota and job.admission is not None and not job.is_finished and job.is_active

    def _enqueue(self, job: Job, *, is_reordered: bool = True, is_as_submitted: bool = False) -> None:
        queue = self.queue_of(job)
        if queue is not None and job.is_admissible:
            shapes = {job.shape}
            if is_as_submitted:
                shapes.add(job.submitted_shape)
                is_kept = self.settings.enabled("FlavorFungibilityPreserveScanProgress")
                if job.progress is not None and not (is_kept and job.progress.matches(job.submitted_shape)):
                    job.progress = None
            queue.push(job, self.now, shapes, is_reordered=is_reordered)

    def _free(self, job: Job) -> None:
        """Release quota: inadmissible Workloads of the whole tree are requeued before the next cycle."""
        queue = self.queue_of(job)
        if queue is None:
            return
        node = self.cache.tree.queues[queue.queue.metadata.name]
        if not node.has_cycle:
            self._freed[self._root(node)] = None

    def _retry_parked(self) -> None:
        for root in self._freed:
            for name in self._trees[root]:
                self.queues[name].retry(partial(self._is_selected, name), self.now)
        self._freed.clear()

    def _settle_usage(self, job: Job) -> None:
        if self._ledger is None or job.admission is None:
            return
        node = self.cache.tree.queues.get(job.admission.cluster_queue)
        if node is not None and node.queue.is_usage_based:
            self._ledger.settle(job.local_queue, job.key, self._used_by(job.local_queue), self.now)

    def _used_by(self, key: LocalQueueKey) -> Requests:
        """Return the usage of a LocalQueue's admitted Workloads."""
        local = self._local_queues.get(key)
        total: Requests = {}
        for job in self.cache.jobs.get(local.spec.cluster_queue if local else "", {}).values():
            if job.local_queue == key and job.is_admitted:
                for fr, amount in job.usage.items():
                    total = add_requests(total, {fr.resource: amount})
        return total

    def _evictions(self) -> dict[str, Eviction]:
        evictions = {}
        for key, preemption in self._evicted.items():
            condition = self.jobs[key].conditions["Evicted"]
            evictions[key] = Eviction(reason=condition.reason, message=condition.message, preemption=preemption)
        self._evicted.clear()
        return evictions

    # --- a cycle

    def _scheduler(self, *, is_known: bool = True) -> CycleScheduler:
        return CycleScheduler(
            self.cache,
            cycle=self._cycle,
            now=self.now,
            usage_share=self._usage_share,
            inadmissibility=self.inadmissibility,
            is_blocked=bool(self.unready_workloads),
            known=self._known if is_known else None,
        )

    def evaluate(self, job: Job, *, is_known: bool = True) -> Entry | None:
        """Return the decision about a Workload at the head, without a change. None if its queue is inactive.
        `is_known`: no Workload was removed, so that earlier evaluations are valid."""
        queue = self.queue_of(job)
        if queue is None or not self.is_active(queue.queue.metadata.name):
            return None
        return self._scheduler(is_known=is_known).decide([(job, queue.queue.metadata.name, False)])[0]

    def cycle(self) -> AdmissionCycle | None:
        """Evaluate the head of every active queue; None without heads."""
        if self.has_stopped:
            return None
        self._end_backoffs()
        heads = [
            (job, name, queue.preemptor == job.key)
            for name, queue in self.queues.items()
            if name in self.watched and self.is_active(name) and (job := queue.pop()) is not None
        ]
        if not heads:
            return None
        self._cycle += 1
        scheduler = self._scheduler()
        entries = scheduler.decide(heads)
        self.has_stopped = scheduler.has_stopped
        heads_by_key = {entry.job.key: self._head(entry) for entry in entries if entry.message or entry.is_admitted}
        for entry in entries:
            if entry.is_admitted:
                self._admit(entry)
                key = entry.job.key
                heads_by_key[key] = replace(heads_by_key[key], outcome=entry.job.state, message="")
        for entry in entries:
            if entry.is_untouched:
                self._leave(entry)
            elif not entry.is_admitted:
                self._put_back(entry)
        for entry in entries:
            if entry.issues_preemption:
                self._preempt(entry)
        for entry in entries:
            self._controllers.settle(entry.job, self.now)
        for key in list(self._evicted):
            self._controllers.settle(self.jobs[key], self.now)
        if self._ledger is not None:
            for local_key, local in self._local_queues.items():
                name = local.spec.cluster_queue
                is_running = name in self.queues and self.is_active(name) and not local.spec.is_stopped
                if is_running and self._ledger.is_due(local_key, self.now):
                    self._ledger.sample(local_key, self._used_by(local_key), self.now)
                    self.queues[name].rebuild()
        self._retry_parked()
        evicted = self._evictions()
        self.now += 1
        return AdmissionCycle(heads=heads_by_key, evicted=evicted)

    def _end_backoffs(self) -> None:
        for job in self.jobs.values():
            if job.requeue_at is not None and job.requeue_at <= self.now:
                self._controllers.settle(job, self.now)
        self._retry_parked()

    @property
    def unready_workloads(self) -> list[str]:
        """Workloads with quota whose pods are not ready and block further admissions."""
        if not self.settings.blocks_admission:
            return []
        held = (job for jobs in self.cache.jobs.values() for job in jobs.values())
        return sorted(job.key for job in held if not job.has("PodsReady") and job.key not in self.presumed_ready)

    def _usage_share(self, job: Job) -> float | None:
        queue = self.queues.get(job.admission.cluster_queue) if job.admission is not None else None
        return queue.ledger.share(job.local_queue) if queue is not None and queue.ledger is not None else None

    # --- after the cycle

    def _admit(self, entry: Entry) -> None:
        job = entry.job
        admission = Admission(
            cluster_queue=entry.node.name,
            pod_set_assignments=tuple(_pod_set_assignment(pod_set) for pod_set in entry.assignment.pod_sets),
        )
        if self._ledger is not None and entry.node.queue.is_usage_based:
            total: Requests = {}
            covered = {name for group in entry.node.queue.spec.resource_groups for name in group.covered_resources}
            for requests in job.counted_pod_sets:
                total = add_requests(total, requests.requests)
            if self.settings.ignores_undeclared:
                total = {name: amount for name, amount in total.items() if name in covered}
            self._ledger.charge(job.local_queue, job.key, total, self.now)
        job.progress = None
        self.presumed_ready.add(job.key)

        def change() -> bool:
            job.reserve(admission, self.now)
            if checks_for_admission(checks_of(entry.node.queue), admission) <= {check.name for check in job.checks}:
                job.sync_admitted(self.now)
            return True

        self.update(job, change)
        self.cache.generations[entry.node.name] += 1

    def _put_back(self, entry: Entry) -> None:
        why = entry.why
        if why is Requeue.GENERIC and entry.is_skipped:
            why = Requeue.FAILED_AFTER_NOMINATION
        job = entry.job
        job.progress = entry.progress
        self.queues[entry.node.name].put_back(job, why, entry.cause, self.now)
        reason = self.settings.pending_reason(entry.cause, "Pending")
        is_written = job.release(reason, entry.message, self.now) or not job.has_requested
        job.has_requested = True
        if is_written and not self.settings.enabled("FlavorFungibilityPreserveScanProgress"):
            job.progress = None

    def _leave(self, entry: Entry) -> None:
        """Return a Workload to its position; the one at which the scheduler stopped gets its condition."""
        self.queues[entry.node.name].add(entry.job)
        if entry.message:
            reason = self.settings.pending_reason(entry.cause, "Waiting")
            entry.job.release(reason, entry.message, self.now)

    def _preempt(self, entry: Entry) -> None:
        uid = entry.job.uid or "UNKNOWN"
        job_uid = entry.job.workload.metadata.labels.get("kueue.x-k8s.io/job-uid") or "UNKNOWN"
        for target in entry.targets:
            victim = self.cache.queue_of(target.job) if target.job.admission is not None else None
            message = (
                f"Preempted to accommodate a workload (UID: {uid}, JobUID: {job_uid}) due to {target.reason.words}; "
                f"preemptor path: {entry.node.path}; preemptee path: {victim.path if victim else 'UNKNOWN'}"
            )
            self._controllers.evict(target.job, PREEMPTED, message, self.now, preemption=target.reason)

    # --- documents

    def _head(self, entry: Entry) -> QueueHead:
        """Return the decision about a head, before anything changes."""
        outcome = "Preempting" if entry.why is Requeue.PENDING_PREEMPTION else "Waiting"
        if not entry.is_nominated:
            outcome = "Inadmissible"
        assignment = entry.assignment
        has_place = assignment.mode is not FlavorAssignmentMode.NO_FIT
        sets = (_document_of(_pod_set_assignment(each), each.count) for each in assignment.pod_sets if has_place)
        targets = (
            PreemptedWorkload(
                workload=target.job.key, cluster_queue=self.cache.queue_of(target.job).name, reason=target.reason
            )
            for target in entry.targets
        )
        return QueueHead(
            cluster_queue=entry.node.name,
            outcome="Skipped" if entry.is_skipped else outcome,
            mode=str(assignment.mode) if entry.is_nominated else "",
            borrowing=assignment.borrowing,
            pod_sets=tuple(sets),
            targets=tuple(targets),
            message=entry.message,
            considered=assignment.considered_flavors,
            more_flavors=not entry.is_admitted and entry.progress is not None and entry.progress.is_pending,
            shortages=tuple(assignment.shortages),
        )

    def state(self) -> object:
        """Return everything that affects the next cycles, except the time."""
        return (
            tuple(
                (name, queue.waiting_state, frozenset(queue.parked), queue.preemptor, frozenset(queue.bypassed))
                for name, queue in self.queues.items()
            ),
            tuple(
                (
                    job.key,
                    job.is_active,
                    tuple(
                        (kind, stamped.status, stamped.reason, stamped.message)
                        for kind, stamped in job.conditions.items()
                    ),
                    repr(job.admission),
                    repr(job.progress.tried) if job.progress is not None else "",
                )
                for job in self.jobs.values()
            ),
        )

    def cluster_queue_document(self, name: str) -> ClusterQueueDocument:
        node, ready = self.cache.tree.queues[name], self.readiness[name]
        usage: dict[str, dict[str, UsedAmount]] = {}
        for group in node.queue.spec.resource_groups:
            for flavor in group.flavors:
                for resource in group.covered_resources:
                    fr = FlavorResource(flavor.name, resource)
                    borrowed = max(0, minus(node.used_amount(fr), node.quota(fr).nominal)) if node.queue.cohort else 0
                    usage.setdefault(flavor.name, {})[resource] = UsedAmount(
                        total=shown(resource, node.used_amount(fr)),
                        borrowed=shown(resource, borrowed) if borrowed else "",
                    )
        has_share = self.settings.fair_sharing is not None and node.parent is not None
        return ClusterQueueDocument(
            active=ready.is_active,
            reason="" if ready.is_active else ready.reason,
            message="" if ready.is_active else ready.message,
            usage=usage,
            weighted_share=node.share().rounded if has_share else None,
            queue=tuple(job.key for job in self.queues[name].sorted_jobs),
        )

    def workload_document(self, job: Job) -> WorkloadDocument:
        queue = self.queue_of(job)
        place = "none"
        if queue is not None and job.key in queue.waiting:
            place = "queued"
        elif queue is not None and job.key in queue.parked:
            place = "parked"
        reserved = job.conditions.get("QuotaReserved")
        requeued = job.conditions.get("Requeued")
        has_quota = job.has_quota
        return WorkloadDocument(
            state=job.state,
            active=job.is_active,
            place=place if job.state == "Pending" else "",
            quota_reserved=None if reserved is None or reserved.status != "False" else _condition(reserved),
            requeued=None if requeued is None or has_quota else _condition(requeued, requeued.status),
            evicted=_condition(job.conditions["Evicted"]) if job.is_evicted else None,
            cluster_queue=job.admission.cluster_queue if has_quota and job.admission is not None else "",
            pod_sets=_admission_documents(job) if has_quota else (),
            checks={check.name: check.state for check in job.checks},
        )


def _pod_set_assignment(assignment: Assigned) -> PodSetAssignment:
    return PodSetAssignment(
        name=assignment.name,
        count=assignment.count,
        flavors={name: choice.flavor for name, choice in assignment.flavors.items()},
        resource_usage={name: shown(name, assignment.requests.get(name, 0)) for name in assignment.flavors},
        topology_assignment=assignment.topology,
        delayed_topology_request=assignment.delayed_topology,
    )


def _admission_documents(job: Job) -> tuple[PodSetDocument, ...]:
    counts = {pod_set.name: pod_set.count for pod_set in job.workload.spec.pod_sets}
    assigned = job.admission.pod_set_assignments if job.admission is not None else ()
    return tuple(_document_of(it, counts.get(it.name, 0) if it.count is None else it.count) for it in assigned)


def _condition(stamped: TimedStatus, status: str = "") -> ConditionDocument:
    return ConditionDocument(status=status, reason=stamped.reason, message=stamped.message)


def _document_of(assignment: PodSetAssignment, count: int) -> PodSetDocument:
    topology = None
    if assignment.topology_assignment is not None:
        domains = assignment.topology_assignment.counted_domains()
        topology = PlacedTopology(levels=assignment.topology_assignment.levels, domains=domains)
    return PodSetDocument(
        name=assignment.name,
        count=count,
        flavors=assignment.flavors,
        usage={name: str(written) for name, written in assignment.resource_usage.items()},
        topology=topology,
        delayed_topology=assignment.delayed_topology_request,
    )


# --- whole runs


def cycles_of(run: AdmissionRun) -> Iterator[AdmissionCycle]:
    """Yield cycles until no queue has a head or a state repeats; a repetition of the last cycle is left out."""
    seen = {run.state()}
    last: AdmissionCycle | None = None
    for number in range(_MOST_CYCLES):
        report_progress(Phase.ADMITTING, number, noun="cycles")
        cycle = run.cycle()
        if cycle is None:
            run.is_settled = True
            return
        state = run.state()
        if state not in seen or cycle != last:
            yield cycle
        if state in seen:
            run.is_settled = True
            return
        seen.add(state)
        last = cycle


def start_of(snapshot: Snapshot, now: str | None) -> str:
    """Return the start of the run: the given time (RFC 3339), the time of the snapshot, or the current time."""
    started = now or snapshot.source.taken or datetime.now(UTC).isoformat(timespec="seconds")
    if not timestamp(started):
        raise InputError(f'now: found "{started}", allowed are times such as 2026-06-01T12:00:00Z')
    return started
