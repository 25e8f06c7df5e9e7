"""A Workload in a run: its conditions, quota, requests, and order.

Upstream: pkg/workload/workload.go, pkg/workload/admissionchecks.go, pkg/util/priority.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError
from kschedx.kube.conditions import TimedCondition
from kschedx.kube.kueue import TIMED_EVICTIONS, Admission, AdmissionCheckState, ClusterQueue, PodSetAssignment, Workload
from kschedx.kube.resources import exact_request
from kschedx.kube.scalars import nanoseconds, parse_int64
from kschedx.kube.types import LimitRange, PodSpec, RuntimeClass
from kschedx.kueue.quota import (
    FlavorResource,
    Requests,
    Usage,
    adjust_workload,
    amount_of,
    divide,
    exact,
    plus,
    pod_requests,
    shape,
    times,
)
from kschedx.kueue.settings import KueueSettings, Transformation
from kschedx.kueue.topology import DomainUsage, TopologyUsage

_PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
_ADMISSION_GATED_BY = "kueue.x-k8s.io/admission-gated-by"

_MOST_CONDITION_TEXT = 32 * 1024

READY, PENDING, RETRY, REJECTED = "Ready", "Pending", "Retry", "Rejected"  # states of an admission check


def timestamp(written: str | None) -> int:
    """Return seconds since 1970; 0 for an invalid time."""
    try:
        return nanoseconds(written or "") // 10**9
    except InputError:
        return 0


class PodSetRequests(Struct, frozen=True, kw_only=True):
    """The total quota requests of a pod set, and its assignment."""

    name: str
    count: int
    requests: Requests
    flavors: Mapping[str, str] = {}
    domains: tuple[DomainUsage, ...] | None = None
    delayed_topology: str | None = None

    def scale(self, count: int) -> PodSetRequests:
        if self.domains is not None or self.count in (0, count):
            return self
        single = {name: divide(amount, self.count) for name, amount in self.requests.items()}
        return replace(self, count=count, requests=times(single, count))


class ScanProgress(Struct, frozen=True, kw_only=True):
    """Where the search for flavors stopped: by pod set, resource to the index of the last flavor tried, -1 for all."""

    tried: tuple[Mapping[str, int], ...]
    generation: int
    cycle: int
    shape: bytes | None

    @property
    def is_pending(self) -> bool:
        return any(index != -1 for item in self.tried for index in item.values())

    def matches(self, shape: bytes | None) -> bool:
        return self.shape is None or shape is None or self.shape == shape

    def next_flavor(self, pod_set: int, resource: str) -> int:
        return self.tried[pod_set].get(resource, -1) + 1 if pod_set < len(self.tried) else 0


class TimedStatus(Struct, frozen=True):
    status: str
    reason: str
    message: str
    since: int


def _quota_requests(spec: PodSpec, count: int, settings: KueueSettings) -> Requests:
    resources = settings.configuration.resources
    nano = exact_request(spec)
    kept = {
        name: Fraction(amount, 10**9)
        for name, amount in nano.items()
        if not name.startswith(resources.exclude_resource_prefixes or ("\0",))
    }
    transformed = _transform(kept, resources.transformations)
    return times({name: max(amount_of(name, amount), 0) for name, amount in transformed.items()}, count)


def _transform(requests: Mapping[str, Fraction], transformations: Iterable[Transformation]) -> Mapping[str, Fraction]:
    by_input = {transformation.input: transformation for transformation in transformations}
    if not any(name in by_input for name in requests):
        return requests
    retained: dict[str, Fraction] = {}
    generated: dict[str, Fraction] = {}
    for name, amount in requests.items():
        mapping = by_input.get(name)
        if mapping is None or mapping.strategy == "Retain":
            retained[name] = amount
        if mapping is None:
            continue
        scaled = amount * requests.get(mapping.multiply_by, Fraction(1)) if mapping.multiply_by else amount
        for output, factor in mapping.factors.items():
            generated[output] = generated.get(output, Fraction(0)) + scaled * factor
    for name, amount in generated.items():
        retained[name] = retained.get(name, Fraction(0)) + max(amount, Fraction(0))
    return retained


@dataclass(eq=False, slots=True, kw_only=True)
class Job:
    """A Workload and its state in the run."""

    key: str  # `namespace/name`
    workload: Workload  # with adjusted requests
    submitted: Workload  # the unchanged object
    settings: KueueSettings
    priority: int
    conditions: dict[str, TimedStatus]
    checks: tuple[AdmissionCheckState, ...]
    admission: Admission | None
    is_active: bool
    requeue_at: int | None
    created: int
    progress: ScanProgress | None = None
    has_requested: bool = False  # whether its status has requests (`status.resourceRequests`)
    _counted: tuple[PodSetRequests, ...] | None = None
    _shape: bytes | None = None
    _usage: Usage | None = None

    @classmethod
    def of(
        cls,
        workload: Workload,
        settings: KueueSettings,
        limit_ranges: Iterable[LimitRange],
        runtime_classes: Mapping[str, RuntimeClass],
    ) -> Job:
        priority = workload.priority
        if settings.enabled("PriorityBoost"):
            priority += parse_int64(workload.metadata.annotations.get(_PRIORITY_BOOST, "")) or 0
        state = workload.status.requeue_state
        return cls(
            key=workload.key,
            workload=adjust_workload(workload, tuple(limit_ranges), runtime_classes),
            submitted=workload,
            settings=settings,
            priority=priority,
            conditions={
                it.type: TimedStatus(it.status, it.reason, it.message, timestamp(it.last_transition_time))
                for it in workload.status.conditions
            },
            checks=workload.status.admission_checks,
            admission=workload.status.admission,
            is_active=workload.spec.active is not False,
            requeue_at=timestamp(state.requeue_at) if state is not None and state.requeue_at else None,
            created=timestamp(workload.metadata.creation_timestamp) * 1000,
        )

    def copy_state(self) -> Job:
        """Copy the current state; cached counts are kept."""
        other = copy(self)
        other.conditions = dict(self.conditions)
        return other

    @property
    def uid(self) -> str:
        return self.workload.metadata.uid

    @property
    def namespace(self) -> str:
        return self.workload.metadata.namespace

    @property
    def local_queue(self) -> tuple[str, str]:
        return self.namespace, self.workload.spec.queue_name

    # --- conditions

    def has(self, kind: str) -> bool:
        stamped = self.conditions.get(kind)
        return stamped is not None and stamped.status == "True"

    def set(self, kind: str, status: bool, reason: str, message: str, now: int) -> bool:
        """Set a condition, and return whether it changed."""
        if len(message) > _MOST_CONDITION_TEXT:
            message = message[: _MOST_CONDITION_TEXT - 4] + " ..."
        known = self.conditions.get(kind)
        written = "True" if status else "False"
        since = known.since if known is not None and known.status == written else now
        new = self.conditions[kind] = TimedStatus(written, reason, message, since)
        return known != new

    @property
    def is_finished(self) -> bool:
        return self.has("Finished")

    @property
    def is_admitted(self) -> bool:
        return self.has("Admitted")

    @property
    def has_quota(self) -> bool:
        return self.has("QuotaReserved")

    @property
    def is_evicted(self) -> bool:
        return self.has("Evicted")

    @property
    def gated_by(self) -> str:
        if not self.settings.enabled("AdmissionGatedBy"):
            return ""
        return self.workload.metadata.annotations.get(_ADMISSION_GATED_BY, "")

    @property
    def is_on_hold(self) -> bool:
        stamped = self.conditions.get("QuotaReserved")
        return stamped is not None and stamped.status == "False" and stamped.reason == "OnHold"

    @property
    def is_admissible(self) -> bool:
        return (
            not self.gated_by
            and not self.is_finished
            and self.is_active
            and not self.has_quota
            and not self.is_on_hold
            and not self.has("WaitingForReplacementPods")
        )

    @property
    def state(self) -> str:
        if self.is_finished:
            return "Finished"
        return "Admitted" if self.is_admitted else "QuotaReserved" if self.has_quota else "Pending"

    @property
    def pending_message(self) -> str:
        """Kueue's message why it has no quota, or that of its open admission checks; otherwise an empty string."""
        if self.has_quota:
            open_checks = [check for check in self.checks if check.state != READY]
            messages = (f"{check.name} is {check.state}" + f": {check.message}".rstrip(": ") for check in open_checks)
            return f"admission check {'; '.join(messages)}" if open_checks else ""
        stamped = self.conditions.get("QuotaReserved")
        return stamped.message if stamped is not None and stamped.status == "False" else ""

    def record(self, workload: Workload) -> Workload:
        """Return the Workload object in the current state."""
        conditions = tuple(
            TimedCondition(
                type=kind,
                status=stamped.status,
                reason=stamped.reason,
                message=stamped.message,
                last_transition_time=datetime.fromtimestamp(stamped.since, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            )
            for kind, stamped in self.conditions.items()
        )
        status = replace(workload.status, conditions=conditions, admission=self.admission, admission_checks=self.checks)
        spec = replace(workload.spec, active=None if self.is_active else False)
        return replace(workload, spec=spec, status=status)

    @property
    def is_in_backoff(self) -> bool:
        """Whether Kueue requeues it only after `requeue_at`."""
        requeued = self.conditions.get("Requeued")
        is_held = requeued is not None and requeued.status == "False" and requeued.reason in TIMED_EVICTIONS
        return is_held and self.requeue_at is not None

    def backoff_is_over(self, now: int) -> bool:
        requeued = self.conditions.get("Requeued")
        if requeued is not None and requeued.status == "False":
            return False
        return self.requeue_at is None or now >= self.requeue_at

    @property
    def queued_since(self) -> int:
        """The time that orders Workloads of equal priority."""
        timed_evictions = TIMED_EVICTIONS[self.settings.keeps_place_of_creation :]
        if self.is_evicted and self.conditions["Evicted"].reason in timed_evictions:
            return self.conditions["Evicted"].since * 1000
        if not self.settings.enabled("PrioritySortingWithinCohort") and self.has("Preempted"):
            preempted = self.conditions["Preempted"]
            if preempted.reason == _WHILE_BORROWING:
                return preempted.since * 1000 + 1
        return self.created

    def quota_since(self, now: int) -> int:
        return self.conditions["QuotaReserved"].since if self.has_quota else now

    # --- admission

    def reserve(self, admission: Admission, now: int) -> None:
        self.admission = admission
        self.clear_counts()
        message = f"Quota reserved in ClusterQueue {admission.cluster_queue}"
        self.set("QuotaReserved", True, "QuotaReserved", message, now)
        for kind in ("Evicted", "Preempted"):
            if self.has(kind):
                self.set(kind, False, "QuotaReserved", f"Previously: {self.conditions[kind].message}", now)

    def release(self, reason: str, message: str, now: int) -> bool:
        """UnsetQuotaReservationWithCondition."""
        is_changed = self.set("QuotaReserved", False, reason, message, now) or self.admission is not None
        if self.admission is not None:
            self.admission = None
            self.clear_counts()
        return self.sync_admitted(now) or is_changed

    def evict(self, reason: str, message: str, now: int) -> None:
        self.set("Evicted", True, reason, message, now)
        self.checks = tuple(
            check
            if check.state == PENDING
            else AdmissionCheckState(
                name=check.name,
                state=PENDING,
                message=f"Reset to Pending after eviction. Previously: {check.state}",
                requeue_after_seconds=check.requeue_after_seconds,
                retry_count=(check.retry_count or 0) + 1 if check.state == RETRY else None,
            )
            for check in self.checks
        )

    def has_check_in(self, state: str) -> bool:
        return any(check.state == state for check in self.checks)

    @property
    def is_topology_pending(self) -> bool:
        assigned = self.admission.pod_set_assignments if self.admission is not None else ()
        return any(it.topology_assignment is None and it.delayed_topology_request == "Pending" for it in assigned)

    def sync_admitted(self, now: int) -> bool:
        """Update the condition Admitted from quota, checks, and topology. Return whether it changed."""
        are_checks_ready = all(check.state == READY for check in self.checks)
        is_ready = self.has_quota and are_checks_ready and not self.is_topology_pending
        if self.is_admitted == is_ready:
            return False
        if is_ready:
            return self.set("Admitted", True, "Admitted", "The workload is admitted", now)
        if not self.has_quota:
            return self.set("Admitted", False, "NoReservation", "The workload has no reservation", now)
        return self.set("Admitted", False, "UnsatisfiedChecks", "The workload has not all checks ready", now)

    # --- requests

    def clear_counts(self) -> None:
        self._counted = self._shape = self._usage = None

    @property
    def counted_pod_sets(self) -> tuple[PodSetRequests, ...]:
        """Its pod sets with their requests, or with their assignment."""
        if self._counted is None:
            self._counted = tuple(
                self._admitted_pod_sets() if self.admission is not None else self._requested_pod_sets()
            )
        return self._counted

    def _remaining_counts(self) -> dict[str, int]:
        counts = {pod_set.name: pod_set.count for pod_set in self.workload.spec.pod_sets}
        if self.settings.enabled("ReclaimablePods"):
            for reclaimable_pod in self.workload.status.reclaimable_pods:
                if reclaimable_pod.name in counts:
                    counts[reclaimable_pod.name] -= min(reclaimable_pod.count, counts[reclaimable_pod.name])
        return counts

    def _requested_pod_sets(self) -> list[PodSetRequests]:
        counts = self._remaining_counts()
        return [
            PodSetRequests(
                name=pod_set.name,
                count=counts[pod_set.name],
                requests=_quota_requests(pod_set.template.spec, counts[pod_set.name], self.settings),
            )
            for pod_set in self.workload.spec.pod_sets
        ]

    def _admitted_pod_sets(self) -> list[PodSetRequests]:
        left = self._remaining_counts()
        full = {pod_set.name: pod_set.count for pod_set in self.workload.spec.pod_sets}
        assigned = self.admission.pod_set_assignments if self.admission is not None else ()
        return [self._assigned_requests(it, full.get(it.name, 0), left.get(it.name, 0)) for it in assigned]

    def _assigned_requests(self, assignment: PodSetAssignment, full: int, left: int) -> PodSetRequests:
        requests = {name: amount_of(name, exact(written)) for name, written in assignment.resource_usage.items()}
        count = full if assignment.count is None else assignment.count
        domains = None
        if assignment.topology_assignment is not None and self.settings.enabled("TopologyAwareScheduling"):
            spec = next((ps.template.spec for ps in self.workload.spec.pod_sets if ps.name == assignment.name), None)
            single = (
                {name: divide(amount, count) for name, amount in requests.items()}
                if spec is None
                else pod_requests(spec)
            )
            domains = tuple(
                DomainUsage(values=domain.values, single=single, count=domain.count)
                for domain in assignment.topology_assignment.counted_domains()
            )
        if left < count:
            requests = times({name: divide(amount, count) for name, amount in requests.items()}, left)
            count = left
        return PodSetRequests(
            name=assignment.name,
            count=count,
            requests=requests,
            flavors=assignment.flavors,
            domains=domains,
            delayed_topology=assignment.delayed_topology_request,
        )

    @property
    def usage(self) -> Usage:
        if self._usage is None:
            total: Usage = {}
            for requests in self.counted_pod_sets:
                for name, amount in requests.requests.items():
                    fr = FlavorResource(requests.flavors.get(name, ""), name)
                    total[fr] = plus(total.get(fr, 0), amount)
            self._usage = total
        return self._usage

    @property
    def topology_usage(self) -> TopologyUsage:
        usage: TopologyUsage = {}
        for requests in self.counted_pod_sets:
            if requests.domains is not None:
                for flavor in dict.fromkeys(requests.flavors.values()):
                    usage.setdefault(flavor, []).extend(requests.domains)
        return usage

    @property
    def mark(self) -> int:
        """Equal for Workloads with quota that are equivalent as victims."""
        stamps = [
            (kind, stamped.status, stamped.reason, stamped.since) for kind, stamped in sorted(self.conditions.items())
        ]
        return hash((self.key, self.priority, repr(self.admission), repr(self.counted_pod_sets), tuple(stamps)))

    @property
    def flavor_resources(self) -> frozenset[FlavorResource]:
        return frozenset(
            FlavorResource(flavor, name)
            for requests in self.counted_pod_sets
            for name, flavor in requests.flavors.items()
        )

    def uses_any(self, frs: Iterable[FlavorResource]) -> bool:
        return not self.flavor_resources.isdisjoint(frs)

    @property
    def never_finishes(self) -> bool:
        """Whether it is of a workload that runs until it is deleted, such as a pod of a Deployment."""
        kinds = {owner.kind for owner in self.workload.metadata.owner_references}
        restarts = {pod_set.template.spec.restart_policy for pod_set in self.workload.spec.pod_sets}
        return bool(kinds & _SERVING) or (kinds == {"Pod"} and "Always" in restarts)

    @property
    def shape(self) -> bytes | None:
        """The equivalence class of equal Workloads; None if they are not grouped."""
        if self._shape is None and self.settings.enabled("SchedulingEquivalenceHashing"):
            sets = self.workload.spec.pod_sets
            known = dict(enumerate(self.counted_pod_sets))
            counts = [
                (known[i].count, known[i].requests) if i in known else (pod_set.count, {})
                for i, pod_set in enumerate(sets)
            ]
            self._shape = shape(self.priority, sets, counts)
        return self._shape

    @property
    def submitted_shape(self) -> bytes | None:
        """The shape before its requests are adjusted."""
        if self.workload == self.submitted:
            return self.shape
        unadjusted = copy(self)
        unadjusted.workload = self.submitted
        unadjusted.clear_counts()
        return unadjusted.shape

    @property
    def may_be_partial(self) -> bool:
        sets = self.workload.spec.pod_sets
        return any(pod_set.min_count is not None and pod_set.count > pod_set.min_count for pod_set in sets)

    @property
    def requests_topology(self) -> bool:
        return any(pod_set.requests_topology for pod_set in self.workload.spec.pod_sets)


_SERVING = frozenset({"Deployment", "StatefulSet", "LeaderWorkerSet", "RayCluster", "RayService"})
_WHILE_BORROWING = "InCohortReclaimWhileBorrowing"


# --- admission checks


def checks_of(queue: ClusterQueue) -> dict[str, frozenset[str]]:
    """Admission check to the flavors that need it."""
    strategy, every = queue.spec.admission_checks_strategy, frozenset(queue.flavors)
    if queue.spec.admission_checks:
        return dict.fromkeys(queue.spec.admission_checks, every)
    rules = strategy.admission_checks if strategy is not None else ()
    return {rule.name: frozenset(rule.on_flavors) or every for rule in rules}


def checks_for_admission(checks: Mapping[str, frozenset[str]], admission: Admission) -> set[str]:
    assigned = {flavor for assignment in admission.pod_set_assignments for flavor in assignment.flavors.values()}
    return {name for name, flavors in checks.items() if flavors & assigned}
