"""The order of Workloads: a queue per ClusterQueue, with inadmissible Workloads aside.

Upstream: pkg/cache/queue (cluster_queue.go, manager.go, inadmissible_workloads.go, afs), pkg/util/admissionfairsharing.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum, unique
from fractions import Fraction

from kschedx.kube.kueue import MULTIKUEUE, AdmissionCheck, ClusterQueue, LocalQueue, ResourceFlavor
from kschedx.kube.names import CPU
from kschedx.kube.scalars import Duration
from kschedx.kueue.quota import QueueNode, QuotaTree, Requests, Usage, add_requests, exact, weight_of
from kschedx.kueue.settings import AdmissionFairSharing, KueueSettings
from kschedx.kueue.topology import DomainUsage, FlavorTopology, Request, TopologyPlacement, TopologyUsage, Values
from kschedx.kueue.workloads import Job, checks_of

_STRICT = "StrictFIFO"

LocalQueueKey = tuple[str, str]  # namespace and name


@unique
class Requeue(StrEnum):
    """Why a head is requeued."""

    GENERIC = ""
    FAILED_AFTER_NOMINATION = "FailedAfterNomination"
    NAMESPACE_MISMATCH = "NamespaceMismatch"
    PENDING_PREEMPTION = "PendingPreemption"
    NO_FIT = "NoFit"
    NO_CANDIDATES = "PreemptionNoCandidates"


_AT_ONCE = (Requeue.FAILED_AFTER_NOMINATION, Requeue.PENDING_PREEMPTION)
_BUNDLED = (Requeue.NO_FIT, Requeue.NO_CANDIDATES)


_Place = tuple[int, int, str, str]


def _place(job: Job) -> _Place:
    """Return the sort key among Workloads with equal usage."""
    return -job.priority, job.queued_since, job.uid, job.key


class _Heap:
    """A heap of Workloads with the order of `container/heap`. Sort keys change without an update: an old position stays
    until a Workload moves."""

    def __init__(self, order: Callable[[Job], tuple[object, ...]]) -> None:
        self._order = order
        self._jobs: list[Job] = []
        self._places: dict[str, int] = {}

    def push(self, job: Job) -> None:
        """Add a Workload, or update its position."""
        if job.key in self._places:
            self._fix(self._places[job.key])
            return
        self._jobs.append(job)
        self._places[job.key] = len(self._jobs) - 1
        self._sift_up(len(self._jobs) - 1)

    def pop(self) -> Job:
        first = self._jobs[0]
        self.remove(first.key)
        return first

    def remove(self, key: str) -> None:
        index, last = self._places[key], len(self._jobs) - 1
        self._swap(index, last)
        del self._jobs[last], self._places[key]
        if index < last:
            self._fix(index)

    def rebuild(self) -> None:
        """Update all positions."""
        for job in [*self._jobs]:
            self._fix(self._places[job.key])

    def _fix(self, index: int) -> None:
        if not self._sift_down(index):
            self._sift_up(index)

    def _less(self, first: int, other: int) -> bool:
        return self._order(self._jobs[first]) < self._order(self._jobs[other])

    def _swap(self, first: int, other: int) -> None:
        jobs = self._jobs
        jobs[first], jobs[other] = jobs[other], jobs[first]
        self._places[jobs[first].key], self._places[jobs[other].key] = first, other

    def _sift_up(self, index: int) -> None:
        while index > 0 and self._less(index, above := (index - 1) // 2):
            self._swap(index, above)
            index = above

    def _sift_down(self, start: int) -> bool:
        index = start
        while (below := 2 * index + 1) < len(self._jobs):
            if below + 1 < len(self._jobs) and self._less(below + 1, below):
                below += 1
            if not self._less(below, index):
                break
            self._swap(index, below)
            index = below
        return index > start


@dataclass(eq=False, slots=True, kw_only=True)
class WorkloadQueue:
    """The pending Workloads of a ClusterQueue."""

    queue: ClusterQueue
    ledger: Ledger | None  # set if LocalQueues with lower usage come first
    waiting: dict[str, Job] = field(default_factory=dict)
    parked: dict[str, Job] = field(default_factory=dict)
    bypassed: dict[bytes, str] = field(default_factory=dict)  # shapes that are inadmissible together, with the reason
    preemptor: str | None = None  # the Workload that waits for its victims
    in_flight: str | None = None
    _line: list[_Place] = field(default_factory=list)
    """The sort keys of all Workloads ever queued, in order; some are no longer queued."""
    _places: dict[str, _Place] = field(default_factory=dict)  # by key, the entry in `_line`
    _first_place: int = 0  # the first index in `_line` that may be queued
    _equals: dict[bytes | None, dict[str, Job]] = field(default_factory=dict)  # Workloads ever queued, by shape and key
    _heap: _Heap | None = None  # the queued Workloads, if the usage of LocalQueues orders them

    def __post_init__(self) -> None:
        if self.ledger is not None:
            self._heap = _Heap(self.order)

    @property
    def is_strict(self) -> bool:
        return self.queue.spec.queueing_strategy == _STRICT

    def order(self, job: Job) -> tuple[object, ...]:
        is_sticky = not self.is_strict and self.preemptor == job.key
        used = self.ledger.share(job.local_queue) if self.ledger is not None else 0.0
        return used, not is_sticky, *_place(job)

    @property
    def sorted_jobs(self) -> list[Job]:
        """The queued Workloads, without inadmissible ones."""
        return sorted(self.waiting.values(), key=self.order)

    @property
    def waiting_state(self) -> Collection[str]:
        """The queued Workloads, in order if it may change without them."""
        return frozenset(self.waiting) if self.ledger is None else tuple(job.key for job in self.sorted_jobs)

    @property
    def everyone(self) -> list[Job]:
        """The queued and the inadmissible Workloads."""
        return sorted((*self.waiting.values(), *self.parked.values()), key=self.order)

    def pop(self) -> Job | None:
        if not self.waiting:
            self.in_flight = None
            return None
        job = self._first()
        del self.waiting[job.key]
        self.in_flight = job.key
        return job

    def _first(self) -> Job:
        if self._heap is not None and self.ledger is not None:
            if self.ledger.has_penalties(self.queue.metadata.name):
                self._heap.rebuild()
            return self._heap.pop()
        sticky = self.waiting.get(self.preemptor or "") if not self.is_strict else None
        if sticky is not None:
            return sticky
        while (key := self._line[self._first_place][-1]) not in self.waiting:
            self._first_place += 1
        return self.waiting[key]

    def add(self, job: Job) -> None:
        """Queue a Workload, ignoring its backoff."""
        if self._heap is not None:
            self._heap.push(job)
        self.waiting[job.key] = job
        self._equals.setdefault(job.shape, {})[job.key] = job
        self._first_place = 0
        place = _place(job)
        before = self._places.get(job.key)
        if before == place:
            return
        if before is not None:
            del self._line[bisect_left(self._line, before)]
        insort(self._line, place)
        self._places[job.key] = place

    def _identical_jobs(self, shape: bytes) -> Iterator[Job]:
        equals = self._equals.get(shape, {}).values()
        return (job for job in equals if job.shape == shape and self.waiting.get(job.key) is job)

    def push(self, job: Job, now: int, shapes: Set[bytes | None], *, is_reordered: bool = True) -> None:
        """Add a pending Workload. An inadmissible one stays so unless a change of its conditions reorders it. `shapes`:
        the shapes with which Kueue queues it, one after the other."""
        if self.in_flight == job.key or (job.key in self.parked and not is_reordered):
            return
        self.parked.pop(job.key, None)
        if job.key not in self.waiting:
            is_bypassed = not self.is_strict and shapes <= self.bypassed.keys()
            if is_bypassed or not job.backoff_is_over(now):
                self.parked[job.key] = job
                return
        self.add(job)

    def rebuild(self) -> None:
        """Update the order after the usage of a LocalQueue was sampled."""
        if self._heap is not None:
            self._heap.rebuild()

    def _unqueue(self, key: str) -> None:
        if self.waiting.pop(key, None) is not None and self._heap is not None:
            self._heap.remove(key)

    def remove(self, key: str) -> None:
        self._unqueue(key)
        self.parked.pop(key, None)
        if self.in_flight == key:
            self.in_flight = None
        if self.preemptor == key:
            self.preemptor = None

    def put_back(self, job: Job, why: Requeue, reason: str, now: int) -> None:
        """Requeue a head that was not admitted: at the front, or as inadmissible together with its equals."""
        if why is Requeue.PENDING_PREEMPTION:
            self.preemptor = job.key
        self.in_flight = None
        is_at_once = why is not Requeue.NAMESPACE_MISMATCH if self.is_strict else why in _AT_ONCE
        has_flavors_left = job.progress is not None and job.progress.is_pending
        if job.backoff_is_over(now) and (is_at_once or has_flavors_left):
            self.parked.pop(job.key, None)
            self.add(job)
            return
        self.parked[job.key] = job
        if job.shape is None or why not in _BUNDLED or self.is_strict:
            return
        self.bypassed[job.shape] = reason or "PendingEvaluation"
        for other in [*self._identical_jobs(job.shape)]:
            self._unqueue(other.key)
            self.parked[other.key] = other

    def retry(self, is_selected: Callable[[str], bool], now: int) -> None:
        """Requeue inadmissible Workloads whose namespace is selected and whose backoff is over."""
        self.bypassed.clear()
        for job in list(self.parked.values()):
            if is_selected(job.namespace) and job.backoff_is_over(now):
                self.add(self.parked.pop(job.key))


# --- usage of LocalQueues


@dataclass(eq=False, slots=True)
class _Entry:
    consumed: dict[str, Fraction]
    since: int
    penalties: dict[str, dict[str, Fraction]] = field(default_factory=dict)

    @property
    def is_pending(self) -> bool:
        return any(any(penalty.values()) for penalty in self.penalties.values())


class Ledger:
    """The decayed usage of LocalQueues, with the entry penalties of Workloads that just got quota."""

    def __init__(
        self, settings: AdmissionFairSharing, queues: Iterable[LocalQueue], active: Container[str], now: int
    ) -> None:
        """`active`: the ClusterQueues that admit Workloads. The usage of stopped LocalQueues is not read."""
        self._settings = settings
        self._half_life = _seconds(settings.usage_half_life_time)
        self._sampling = _seconds(settings.usage_sampling_interval)
        self._entries: dict[LocalQueueKey, _Entry] = {}
        self._weights: dict[LocalQueueKey, float] = {}
        self._of_cluster_queue: dict[str, list[LocalQueueKey]] = {}
        for queue in queues:
            key = (queue.metadata.namespace, queue.metadata.name)
            self._of_cluster_queue.setdefault(queue.spec.cluster_queue, []).append(key)
            self._weights[key] = weight_of(queue.spec.fair_sharing)
            sharing = queue.status.fair_sharing
            status = sharing.admission_fair_sharing_status if sharing is not None else None
            is_running = queue.spec.cluster_queue in active and not queue.spec.is_stopped
            consumed = status.consumed_resources if status is not None and self._half_life and is_running else {}
            self._entries[key] = _Entry({name: exact(written) for name, written in consumed.items()}, now)

    def share(self, key: LocalQueueKey) -> float:
        """Return the weighted usage that orders LocalQueues."""
        entry = self._entries.get(key)
        total = 0.0
        if entry is not None:
            for name, amount in sorted(_sum(entry.consumed, *entry.penalties.values()).items()):
                total += self._settings.resource_weights.get(name, 1.0) * float(amount)
        weight = self._weights.get(key, 1.0)
        return math.inf if weight <= 0 else total / weight

    def charge(self, key: LocalQueueKey, workload: str, requests: Requests, now: int) -> None:
        """Add the entry penalty of a Workload with quota."""
        entry = self._entries.setdefault(key, _Entry({}, now))
        exact_requests = {name: amount * _quota_unit(name) for name, amount in requests.items()}
        entry.penalties[workload] = _scale(exact_requests, self._alpha(self._sampling))

    def settle(self, key: LocalQueueKey, workload: str, admitted: Requests, now: int) -> None:
        """Convert the penalty of an admitted Workload to usage."""
        self.sample(key, admitted, now)
        entry = self._entries[key]
        entry.consumed = _sum(entry.consumed, entry.penalties.pop(workload, {}))

    def sample(self, key: LocalQueueKey, admitted: Requests, now: int) -> None:
        entry = self._entries.setdefault(key, _Entry({}, now))
        alpha = self._alpha(max(0, now - entry.since))
        used = {name: amount * _quota_unit(name) for name, amount in admitted.items()}
        entry.consumed = _sum(_scale(entry.consumed, 1 - alpha), _scale(used, alpha))
        entry.since = now

    def is_due(self, key: LocalQueueKey, now: int) -> bool:
        """Return whether the controller samples its usage now."""
        entry = self._entries.get(key)
        return entry is not None and (entry.is_pending or now - entry.since >= self._sampling)

    def has_penalties(self, cluster_queue: str) -> bool:
        return any(self._entries[key].is_pending for key in self._of_cluster_queue.get(cluster_queue, ()))

    def _alpha(self, elapsed: float) -> float:
        return 0.0 if self._half_life == 0 else 1.0 - math.pow(0.5, elapsed / self._half_life)


def _seconds(duration: str) -> float:
    return Duration.parse(duration) / 1e9


def _quota_unit(resource: str) -> Fraction:
    """Return the amount of one integer in the resource's unit."""
    return Fraction(1, 1000) if resource == CPU else Fraction(1)


def _sum(*parts: Mapping[str, Fraction]) -> dict[str, Fraction]:
    total: dict[str, Fraction] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def _scale(amounts: Mapping[str, Fraction], factor: float) -> dict[str, Fraction]:
    """Multiply and round down to nine digits."""
    exact_factor = Fraction(Decimal(repr(factor)))
    return {name: Fraction(math.floor(amount * exact_factor * 10**9), 10**9) for name, amount in amounts.items()}


# The quota and topology usage of Workloads during a cycle, with trial changes.
# Upstream: pkg/cache/scheduler (cache.go, snapshot.go, clusterqueue.go).

PROVISIONING = "kueue.x-k8s.io/provisioning-request"

PlacementRequests = Mapping[str, Sequence[Request]]  # flavor to the pod sets to place with it


class Cache:
    def __init__(
        self,
        tree: QuotaTree,
        flavors: Mapping[str, ResourceFlavor],
        topologies: Mapping[str, FlavorTopology],
        checks: Mapping[str, AdmissionCheck],
        settings: KueueSettings,
    ) -> None:
        self.tree = tree
        self.flavors = flavors
        self.topologies = topologies  # flavor to its topology tree, for flavors whose Topology exists
        self.checks = checks
        self.settings = settings
        self.jobs: dict[str, dict[str, Job]] = {name: {} for name in tree.queues}
        """ClusterQueue to the Workloads with quota reserved in it, by key."""
        self.generations: dict[str, int] = dict.fromkeys(tree.queues, 1)
        """Per ClusterQueue, how often a Workload with quota in it was updated, including its admission."""
        self._marks: dict[str, int] = {}
        self.mark = 0  # equal if the same Workloads have the same quota, apart from changes within a cycle

    # --- usage

    def hold(self, job: Job) -> None:
        """Count the quota of a Workload."""
        name = job.admission.cluster_queue if job.admission is not None else ""
        node = self.tree.queues.get(name)
        if node is None:
            return
        self.jobs[name][job.key] = job
        self._marks[job.key] = job.mark
        self.mark ^= job.mark
        _add(node, job.usage)
        self._use(job.topology_usage, 1)

    def release(self, job: Job, name: str) -> None:
        """Release the quota of a Workload, before its admission is cleared."""
        if self.jobs.get(name, {}).pop(job.key, None) is None:
            return
        self.mark ^= self._marks.pop(job.key)
        _remove(self.tree.queues[name], job.usage)
        self._use(job.topology_usage, -1)

    def _use(self, usage: TopologyUsage, sign: int, *, trial: QueueNode | None = None) -> None:
        """All flavors whose topology ends with hosts share them; a trial changes only the queue's own flavors."""
        for flavor, domains in usage.items():
            own = self.topologies.get(flavor)
            if own is None or (trial is not None and flavor not in trial.queue.flavors):
                continue
            touched = [own]
            if trial is None and own.is_by_host and self.settings.enabled("TASHandleOverlappingFlavors"):
                touched = [topology for topology in self.topologies.values() if topology.is_by_host]
            for tree in touched:
                for domain in domains:
                    tree.use(domain, sign=sign)

    @contextmanager
    def cycle(self) -> Iterator[None]:
        """Undo all changes in the block at its end."""
        nodes = (*self.tree.queues.values(), *self.tree.cohorts.values())
        saved = [dict(node.usage) for node in nodes]
        places = [(leaf, leaf.used) for tree in self.topologies.values() for leaf in tree.leaves]
        try:
            yield
        finally:
            for node, usage in zip(nodes, saved, strict=True):
                node.usage = usage
            for leaf, used in places:
                leaf.used = used

    # --- trials

    def add_usage(self, node: QueueNode, usage: Usage, topology: TopologyUsage) -> None:
        _add(node, usage)
        self._use(topology, 1, trial=node)

    def remove_usage(self, node: QueueNode, usage: Usage, topology: TopologyUsage) -> None:
        _remove(node, usage)
        self._use(topology, -1, trial=node)

    def queue_of(self, job: Job) -> QueueNode:
        assert job.admission is not None
        return self.tree.queues[job.admission.cluster_queue]

    def remove(self, job: Job) -> None:
        node = self.queue_of(job)
        self.jobs[node.name].pop(job.key, None)
        self.remove_usage(node, job.usage, job.topology_usage)

    def restore(self, job: Job) -> None:
        node = self.queue_of(job)
        self.jobs[node.name][job.key] = job
        self.add_usage(node, job.usage, job.topology_usage)

    @contextmanager
    def without(self, jobs: Iterable[Job]) -> Iterator[None]:
        gone = list(jobs)
        for job in gone:
            self.remove(job)
        try:
            yield
        finally:
            for job in gone:
                self.restore(job)

    def fits(self, node: QueueNode, usage: Usage) -> bool:
        return all(node.available(fr) >= amount for fr, amount in usage.items())

    def fits_topology(self, topology: TopologyUsage) -> bool:
        return all(self.topologies[flavor].holds(domains) for flavor, domains in topology.items())

    # --- topology

    def topologies_of(self, queue: ClusterQueue) -> dict[str, FlavorTopology]:
        return {name: self.topologies[name] for name in queue.flavors if name in self.topologies}

    def is_topology_only(self, queue: ClusterQueue) -> bool:
        """Return whether all its flavors have a topology; True without flavors."""
        flavors = map(self.flavors.get, queue.flavors)
        return all(flavor is not None and flavor.spec.topology_name is not None for flavor in flavors)

    def is_placement_delayed(self, queue: ClusterQueue, flavor: str, job: Job) -> bool:
        """Return whether topology is assigned after an admission check or in another cluster."""
        for name, flavors in checks_of(queue).items():
            check = self.checks.get(name)
            if check is None:
                continue
            if check.spec.controller_name == MULTIKUEUE:
                return True
            if check.spec.controller_name == PROVISIONING and flavor in flavors and not job.has_quota:
                return True
        return False

    def place(self, requests: PlacementRequests, *, is_empty: bool = False) -> dict[str, TopologyPlacement]:
        """Return the placement of each pod set, or why it has none, which ends the search of its flavor."""
        placements: dict[str, TopologyPlacement] = {}
        shared: dict[Values, Requests] = {}
        is_shared = self.settings.enabled("TASHandleOverlappingFlavors")
        for flavor in sorted(requests):
            tree = self.topologies[flavor]
            assumed = shared if is_shared and tree.is_by_host else {}
            groups: dict[object, list[Request]] = {}
            for request in requests[flavor]:
                key = request.pod_set.name if request.group is None else (request.group,)
                groups.setdefault(key, []).append(request)
            for group in groups.values():
                result = tree.place(group, assumed, is_empty=is_empty)
                if isinstance(result, str):
                    failed = TopologyPlacement(flavor=flavor, failure=result)
                    placements |= {request.pod_set.name: failed for request in group}
                    break
                for request in group:
                    assignment = result[request.pod_set.name]
                    placements[request.pod_set.name] = TopologyPlacement(flavor=flavor, assignment=assignment)
                    for domain in assignment.domains:
                        use = DomainUsage(values=domain.values, single=request.single, count=domain.count)
                        assumed[domain.values] = add_requests(assumed.get(domain.values, {}), use.total)
        return placements


def failure(placements: Mapping[str, TopologyPlacement]) -> tuple[str, TopologyPlacement] | None:
    return next(((name, placement) for name, placement in placements.items() if placement.failure), None)


def _add(node: QueueNode, usage: Usage) -> None:
    for fr, amount in usage.items():
        node.add(fr, amount)


def _remove(node: QueueNode, usage: Usage) -> None:
    for fr, amount in usage.items():
        node.remove(fr, amount)
