"""Kueue's controllers between two cycles: conditions, checks, and evictions.

Upstream: pkg/controller/core (workload_controller.go, clusterqueue_controller.go), pkg/controller/jobframework,
pkg/cache/scheduler/clusterqueue.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct

from kschedx.kube.conditions import condition_of
from kschedx.kube.kueue import (
    MULTIKUEUE,
    TIMED_EVICTIONS,
    AdmissionCheck,
    AdmissionCheckState,
    ClusterQueue,
    LocalQueue,
    ResourceFlavor,
    Workload,
)
from kschedx.kueue.multikueue import repairs_of_workers
from kschedx.kueue.queues import PROVISIONING
from kschedx.kueue.settings import KueueSettings
from kschedx.kueue.workloads import PENDING, REJECTED, RETRY, Job, checks_for_admission, checks_of, timestamp
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_INADMISSIBLE = "Inadmissible"
PREEMPTED = "Preempted"
_ADMISSION_GATED = "AdmissionGated"
_EQUIVALENT_FAILED = "Bypassed scheduling evaluation because an equivalent workload recently failed"
_PENDING_EVALUATION = "Workload is pending evaluation in the scheduling queue"
_OF_SCHEDULER = frozenset(
    {
        "WaitingForQuota",
        "NoMatchingFlavor",
        "ExceedsMaxQuota",
        "TopologyPlacementFailed",
        "WaitingForPreemptedWorkloads",
        "WaitingForPodsReady",
        "PendingEvaluation",
    }
)
_STALE = frozenset({"Deactivated", "PendingEvaluation", "Suspended", "Pending", ""})


class _QueueReadiness(Struct, frozen=True, kw_only=True):
    """Whether a ClusterQueue admits Workloads (its condition Active)."""

    is_active: bool
    reason: str = "Ready"
    message: str = "Can admit new workloads"
    why: str = ""  # why it does not, as a predicate: `has stopPolicy Hold`
    repairs: tuple[str, ...] = ()


_NOT_FOUND = lazy_pattern(r'(?P<kind>[A-Z]\w+)(?:\.[\w.-]+)? "(?P<name>[^"]+)" not found')


def readiness(
    snapshot: Snapshot,
    queue: ClusterQueue,
    flavors: Mapping[str, ResourceFlavor],
    checks: Mapping[str, AdmissionCheck],
    topologies: Mapping[str, object],
    settings: KueueSettings,
) -> _QueueReadiness:
    """`topologies`: flavor to its topology, for flavors whose Topology exists."""
    if queue.metadata.deletion_timestamp:
        text = "Can't admit new workloads; clusterQueue is terminating"
        repair = f"create ClusterQueue {queue.metadata.name} again after its Workloads with quota have finished"
        return _QueueReadiness(
            is_active=False, reason="Terminating", message=text, why="is being deleted", repairs=(repair,)
        )
    used, wanted = queue.flavors, checks_of(queue)
    missing = [name for name in used if name not in flavors]
    known = {name: checks[name] for name in sorted(wanted) if name in checks}
    inactive = [name for name, check in known.items() if not check.is_active]
    multikueue = [name for name, check in known.items() if check.spec.controller_name == MULTIKUEUE]
    provisioning = [name for name, check in known.items() if check.spec.controller_name == PROVISIONING]
    per_flavor = [name for name in multikueue if wanted[name] != frozenset(used)]
    causes = []
    why, repairs = "", tuple(repair for name in inactive for repair in check_repairs(snapshot, known[name]))
    if queue.spec.is_stopped:
        causes.append(("Stopped", "is stopped"))
        why = f"has stopPolicy {queue.spec.stop_policy}"
    if missing:
        causes.append(("FlavorNotFound", f"references missing ResourceFlavor(s): {','.join(missing)}"))
        why = why or _names_missing("ResourceFlavor", missing)
    if absent := sorted(wanted.keys() - checks.keys()):
        why = why or _names_missing("AdmissionCheck", absent)
        named = list_names(absent, 3, conjunction="and")
        repairs = (*repairs, f"create AdmissionCheck {named}, or remove it from ClusterQueue {queue.metadata.name}")
        causes.append(("AdmissionCheckNotFound", f"references missing AdmissionCheck(s): {','.join(absent)}"))
    if inactive:
        causes.append(("AdmissionCheckInactive", f"references inactive AdmissionCheck(s): {','.join(inactive)}"))
    if len(multikueue) > 1:
        text = f"Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found: {','.join(multikueue)}"
        causes.append(("MultipleMultiKueueAdmissionChecks", text))
    if per_flavor:
        text = f"Cannot specify MultiKueue AdmissionCheck per flavor, found: {','.join(per_flavor)}"
        causes.append(("MultiKueueAdmissionCheckAppliedPerFlavor", text))
    if multikueue and provisioning:
        text = "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found: "
        causes.append(("MultiKueueWithProvisioningRequest", f"{text}{','.join(multikueue)}, {','.join(provisioning)}"))
    if settings.enabled("TopologyAwareScheduling") and not multikueue:
        for name in used:
            topology = flavors[name].spec.topology_name if name in flavors else None
            if topology is not None and name not in topologies:
                causes.append(("TopologyNotFound", f'there is no Topology "{topology}" for TAS flavor "{name}"'))
                why = why or f"has ResourceFlavor {name}, whose Topology {topology} does not exist"
                correct = f"create Topology {topology}, or correct topologyName of ResourceFlavor {name}"
                repairs = (*repairs, correct)
    if not causes:
        return _QueueReadiness(is_active=True)
    text = ", ".join(message for _, message in causes)
    if not why and causes[0][0] == "AdmissionCheckInactive":
        why = f"has the inactive AdmissionCheck {list_names(inactive, 3, conjunction='and')}"
    message = f"Can't admit new workloads: {text}."
    return _QueueReadiness(is_active=False, reason=causes[0][0], message=message, why=why, repairs=repairs)


def _names_missing(kind: str, names: Sequence[str]) -> str:
    does = "does" if len(names) == 1 else "do"
    return f"names {kind} {list_names(names, 3, conjunction='and')}, which {does} not exist"


def check_repairs(snapshot: Snapshot, check: AdmissionCheck) -> Iterator[str]:
    """Yield what makes an inactive AdmissionCheck active, as its worker clusters or its condition report it."""
    if workers := tuple(repairs_of_workers(snapshot, check)):
        yield from workers
        return
    condition, name = condition_of(check.status.conditions, "Active"), check.metadata.name
    if condition is None:
        yield f"run {check.spec.controller_name}, the controller of AdmissionCheck {name}"
    elif match := _NOT_FOUND.search(condition.message):
        yield f"create {match['kind']} {match['name']}, which AdmissionCheck {name} names"
    else:
        yield f"repair AdmissionCheck {name}: {condition.message or condition.reason}"


class _Surroundings(Protocol):
    """What the controllers read and change outside a Workload."""

    def local_queue(self, job: Job) -> LocalQueue | None: ...
    def cluster_queue(self, job: Job) -> ClusterQueue | None:
        """Return the ClusterQueue of its LocalQueue, if both exist and the LocalQueue is not stopped."""

    def is_active(self, name: str) -> bool: ...
    def inadmissibility(self, workload: Workload, queue: ClusterQueue) -> str: ...
    def bypass_reason(self, job: Job) -> str | None: ...
    def update(
        self, job: Job, change: Callable[[], bool], *, reorders: bool = False, is_as_submitted: bool = False
    ) -> bool:
        """Change a Workload, move it accordingly, and return whether it changed. `is_as_submitted`: Kueue queues it
        without adjusting its requests first."""


@dataclass(slots=True)
class Controllers:
    around: _Surroundings
    settings: KueueSettings
    evicted: dict[str, str]  # evicted Workloads to the reason of their Preempted condition, if any

    def settle(self, job: Job, now: int) -> None:
        """Run the controllers on a Workload until nothing changes."""
        for _ in range(20):
            if job.is_finished or not (self._reconcile(job, now) or self._stop_job(job, now)):
                return

    # --- the job

    def _stop_job(self, job: Job, now: int) -> bool:
        """The job of an evicted Workload stops immediately, and its quota is free."""
        evicted = job.conditions.get("Evicted")
        if evicted is None or evicted.status != "True" or not job.has_quota:
            return False
        is_requeued = evicted.reason in (PREEMPTED, "NodeFailures")

        def change() -> bool:
            job.set("Requeued", is_requeued, evicted.reason, evicted.message, now)
            job.release(self.settings.pending_reason("PendingEvaluation", "Pending"), evicted.message, now)
            return True

        return self.around.update(job, change, reorders=True)

    def evict(self, job: Job, reason: str, message: str, now: int, *, preemption: str = "") -> None:
        def change() -> bool:
            if preemption:
                job.set("Preempted", True, preemption, message, now)
            job.evict(reason, message, now)
            return True

        self.evicted[job.key] = preemption
        self.around.update(job, change, reorders=True)

    # --- the Workload

    def _reconcile(self, job: Job, now: int) -> bool:
        retry_at = self._retry_at(job)
        if retry_at > now and (job.requeue_at is None or job.requeue_at < retry_at):
            job.requeue_at = retry_at
            return True
        if job.is_active:
            if job.has("DeactivationTarget"):
                job.is_active = False
                return self.around.update(job, lambda: True, reorders=True)
            if job.requeue_at is not None:
                if job.requeue_at > now:
                    return False
                if job.state == "Pending":
                    job.requeue_at = None
                    is_adjusted = job.workload != job.submitted  # a change of its spec
                    return self.around.update(job, lambda: True, reorders=is_adjusted, is_as_submitted=True)
            if self._requeue(job, now):
                return True
        elif self._deactivate(job, now):
            return True
        local = self.around.local_queue(job)
        requeued = job.conditions.get("Requeued")
        held_by = requeued.reason if requeued is not None and requeued.status == "False" else ""
        if local is not None and not local.spec.is_stopped and held_by == "LocalQueueStopped":
            text = "The LocalQueue was restarted after being stopped"
            return self._set_requeued(job, "LocalQueueRestarted", text, now)
        if self._gate(job, now):
            return True
        queue = self.around.cluster_queue(job)
        if queue is not None:
            if not queue.spec.is_stopped and held_by == "ClusterQueueStopped":
                text = "The ClusterQueue was restarted after being stopped"
                return self._set_requeued(job, "ClusterQueueRestarted", text, now)
            if self._sync_checks(job, queue):
                return True
        if not job.is_admitted and self._sync_conditions(job, local, queue, now):
            return True
        return job.has_quota and self._check_quota(job, local, queue, now)

    def _retry_at(self, job: Job) -> int:
        return max(
            (
                timestamp(check.last_transition_time) + check.requeue_after_seconds
                for check in job.checks
                if check.state == RETRY and check.requeue_after_seconds is not None and check.last_transition_time
            ),
            default=0,
        )

    def _set_requeued(self, job: Job, reason: str, message: str, now: int) -> bool:
        return self.around.update(job, lambda: job.set("Requeued", True, reason, message, now), reorders=True)

    def _requeue(self, job: Job, now: int) -> bool:
        """Requeue an active Workload that was kept out of its queue."""
        stamped = job.conditions.get("Requeued")
        if stamped is None or stamped.status != "False":
            return False
        if stamped.reason == "Deactivated":
            return self._set_requeued(job, "Reactivated", "The workload was reactivated", now)
        if stamped.reason in TIMED_EVICTIONS:
            job.requeue_at = None
            return self._set_requeued(job, "BackoffFinished", "The workload backoff was finished", now)
        return False

    def _deactivate(self, job: Job, now: int) -> bool:
        target = job.conditions.get("DeactivationTarget")
        if job.is_evicted:
            if job.requeue_at is None:
                return False
            job.requeue_at = None
            return True
        reason, message = "Deactivated", "The workload is deactivated"
        if target is not None:
            reason, message = f"{reason}DueTo{target.reason}", f"{message} due to {target.message}"
            del job.conditions["DeactivationTarget"]
        job.requeue_at = None
        self.evict(job, reason, message, now)
        return True

    def _gate(self, job: Job, now: int) -> bool:
        if not self.settings.enabled("AdmissionGatedBy"):
            return False
        stamped = job.conditions.get("QuotaReserved")
        is_marked = stamped is not None and stamped.reason == _ADMISSION_GATED
        if job.gated_by and not is_marked:
            if self._blocker(job, self.around.local_queue(job), self.around.cluster_queue(job)) is not None:
                return False  # Kueue writes both alternately, without end
            text = f"Admission is gated by: {job.gated_by}"
            return self.around.update(job, lambda: job.release(_ADMISSION_GATED, text, now))
        if not job.gated_by and is_marked:
            text = "AdmissionGatedBy cleared, waiting for quota reservation"
            reason = self.settings.pending_reason("PendingEvaluation", "Pending")
            return self.around.update(job, lambda: job.release(reason, text, now))
        return False

    def _sync_checks(self, job: Job, queue: ClusterQueue) -> bool:
        wanted = _checks_for(job, queue)
        known = {check.name for check in job.checks}
        if wanted == known:
            return False
        kept = [check for check in job.checks if check.name in wanted]
        added = [AdmissionCheckState(name=name, state=PENDING) for name in wanted - known]
        checks = tuple(sorted((*kept, *added), key=lambda check_state: check_state.name))

        def change() -> bool:
            job.checks = checks
            return True

        return self.around.update(job, change)

    # --- conditions of Workloads without quota

    def _sync_conditions(self, job: Job, local: LocalQueue | None, queue: ClusterQueue | None, now: int) -> bool:
        def change() -> bool:
            is_changed = False
            if not job.has_quota:
                condition = self._condition(job, local, queue)
                is_changed = condition is not None and job.set("QuotaReserved", False, *condition, now)
            return job.sync_admitted(now) or is_changed

        return self.around.update(job, change)

    def _blocker(self, job: Job, local: LocalQueue | None, queue: ClusterQueue | None) -> tuple[str, str] | None:
        name = job.workload.spec.queue_name
        if local is None:
            return "Misconfigured", f"LocalQueue {name} doesn't exist"
        if local.spec.is_stopped:
            return "Suspended", f"LocalQueue {name} is inactive"
        if queue is None:
            return "Misconfigured", f"ClusterQueue {local.spec.cluster_queue} doesn't exist"
        if not self.around.is_active(queue.metadata.name):
            return "Suspended", f"ClusterQueue {queue.metadata.name} is inactive"
        return None

    def _condition(self, job: Job, local: LocalQueue | None, queue: ClusterQueue | None) -> tuple[str, str] | None:
        """Return reason and message of QuotaReserved=False."""
        blocker = self._blocker(job, local, queue)
        if not self.settings.enabled("UnadmittedWorkloadsObservability"):
            return None if blocker is None else (_INADMISSIBLE, blocker[1])
        known = job.conditions.get("QuotaReserved")
        if not job.is_active:
            return "Deactivated", "The workload is deactivated"
        if job.is_on_hold and known is not None:
            return known.reason, known.message
        if blocker is not None:
            return blocker
        if queue is not None and (error := self.around.inadmissibility(job.submitted, queue)):
            return "Misconfigured", error
        if job.gated_by:
            return _ADMISSION_GATED, f"Admission is gated by: {job.gated_by}"
        is_explicit = self.settings.enabled("UnadmittedWorkloadsExplicitStatus")
        if self.settings.enabled("SchedulingEquivalenceHashing") and (
            is_explicit if known is None else known.reason in _STALE
        ):
            reason = self.around.bypass_reason(job)
            if reason is not None:
                return reason, _EQUIVALENT_FAILED
        if known is not None and known.reason in _OF_SCHEDULER:
            return known.reason, known.message
        return ("PendingEvaluation", _PENDING_EVALUATION) if known is not None or is_explicit else None

    # --- Workloads with quota

    def _check_quota(self, job: Job, local: LocalQueue | None, queue: ClusterQueue | None, now: int) -> bool:
        if not job.is_evicted and (job.has_check_in(RETRY) or job.has_check_in(REJECTED)):
            return self._fail_checks(job, now)
        if self._leave_queue(job, "LocalQueue", job.workload.spec.queue_name, local, now):
            return True
        name = queue.metadata.name if queue is not None else ""
        return self._leave_queue(job, "ClusterQueue", name, queue, now)

    def _fail_checks(self, job: Job, now: int) -> bool:
        if job.has_check_in(REJECTED):
            text = _checks_message(job, REJECTED)
            return self.around.update(job, lambda: job.set("DeactivationTarget", True, "AdmissionCheck", text, now))
        self.evict(job, "AdmissionCheck", f"Evicted due to {_checks_message(job, RETRY)}", now)
        return True

    def _leave_queue(self, job: Job, kind: str, name: str, queue: LocalQueue | ClusterQueue | None, now: int) -> bool:
        """A stopped queue drains, or takes back quota that is not used yet."""
        if job.is_admitted:
            if queue is None or queue.spec.stop_policy != "HoldAndDrain" or job.is_evicted:
                return False
            self.evict(job, f"{kind}Stopped", f"The {kind} is stopped", now)
            return True
        if queue is None or queue.metadata.deletion_timestamp:
            granular, text = "Misconfigured", f"{kind} {name} is terminating or missing"
        elif queue.spec.is_stopped:
            granular, text = "Suspended", f"{kind} {name} is stopped"
        else:
            return False
        reason = self.settings.pending_reason(granular, _INADMISSIBLE)
        return self.around.update(job, lambda: job.release(reason, text, now), reorders=True)


def _checks_for(job: Job, queue: ClusterQueue) -> set[str]:
    """Return the checks that a Workload needs: those of its flavors, or of all flavors if it has none yet."""
    checks = checks_of(queue)
    if job.admission is None:
        return {name for name, flavors in checks.items() if flavors.issuperset(queue.flavors)}
    return checks_for_admission(checks, job.admission)


def _checks_message(job: Job, state: str) -> str:
    checks = sorted((check for check in job.checks if check.state == state), key=lambda check: check.name)
    parts = [f'"{check.name}" ({check.message})' if check.message else f'"{check.name}"' for check in checks]
    noun = "AdmissionCheck" if len(checks) == 1 else "AdmissionChecks"
    return f"{noun} in {state} state: {'; '.join(parts)}"
