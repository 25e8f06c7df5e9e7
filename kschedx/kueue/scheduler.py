"""One cycle: heads are nominated, ordered, and checked again one after the other.

Upstream: pkg/scheduler/scheduler.go, pkg/scheduler/fair_sharing_iterator.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec.structs import replace

from kschedx.errors import UndecidableError
from kschedx.kube.kueue import ClusterQueue, PodSet, Workload
from kschedx.kube.types import PodSpec
from kschedx.kueue.flavors import Assigner, Assignment, FlavorAssignmentMode, placement_requests
from kschedx.kueue.preemption import PreemptionReason, PreemptionTarget, UsageShare, WorkloadPreemptor
from kschedx.kueue.queues import Cache, Requeue
from kschedx.kueue.quota import CohortNode, QueueNode, Share, Usage, minus
from kschedx.kueue.settings import PODS_NOT_READY
from kschedx.kueue.workloads import REJECTED, RETRY, Job, ScanProgress

NAMESPACE_MISMATCH = "workload namespace doesn't match ClusterQueue selector"
_NO_LONGER_FITS = "Workload no longer fits after processing another workload"
_OVERLAPPING_TARGETS = "Workload has overlapping preemption targets with another workload"
_SLICE_REPLACEMENT_FOR = "kueue.x-k8s.io/workload-slice-replacement-for"
_FITS_AFTER_PREEMPTIONS = f"{_OVERLAPPING_TARGETS}, but will fit after these preemptions complete"


@dataclass(eq=False, slots=True, kw_only=True)
class Entry:
    """A head in its cycle."""

    job: Job
    node: QueueNode
    is_preemptor: bool
    assignment: Assignment = field(default_factory=Assignment)
    targets: list[PreemptionTarget] = field(default_factory=list)
    message: str = ""
    why: Requeue = Requeue.GENERIC
    cause: str = ""
    progress: ScanProgress | None = None
    is_nominated: bool = False  # whether its flavors were evaluated
    is_skipped: bool = False
    is_admitted: bool = False
    is_untouched: bool = False  # whether the scheduler stopped before it, or at it if it has a message
    issues_preemption: bool = False

    @property
    def usage(self) -> Usage:
        return self.assignment.usage


class _Nomination(NamedTuple):
    """The result of an evaluation, independent of its run."""

    assignment: Assignment
    targets: tuple[tuple[str, str, PreemptionReason], ...]  # ClusterQueue, Workload, and reason


Nominations = dict[tuple[object, ...], _Nomination]
"""By everything that an evaluation depends on, so that runs on similar clusters evaluate only the differences."""


class CycleScheduler:
    """Decides about the heads of one cycle, without changing any Workload."""

    def __init__(
        self,
        cache: Cache,
        *,
        cycle: int,
        now: int,
        usage_share: UsageShare,
        inadmissibility: Callable[[Workload, ClusterQueue], str],
        is_blocked: bool = False,
        known: Nominations | None = None,
    ) -> None:
        """`inadmissibility`: why a Workload is refused before flavors are evaluated. `is_blocked`: pods of an admitted
        Workload are not ready, so the scheduler stops at the first Workload that it would admit."""
        self.cache = cache
        self.settings = cache.settings
        self._cycle = cycle
        self._preemptor = WorkloadPreemptor(cache, now, usage_share)
        self._inadmissibility = inadmissibility
        self._is_blocked = is_blocked
        self._known = known if cache.settings.usage_based is None else None
        self.has_stopped = False

    def decide(self, heads: Iterable[tuple[Job, str, bool]]) -> list[Entry]:
        """`heads`: Workload, ClusterQueue, and whether it already waited for victims."""
        with self.cache.cycle():
            entries = [self._nominate(job, name, is_preemptor=is_preemptor) for job, name, is_preemptor in heads]
            victims: dict[str, PreemptionTarget] = {}
            for entry in self._sort_entries([entry for entry in entries if entry.is_nominated]):
                if self.has_stopped:
                    entry.is_untouched, entry.message = True, ""
                else:
                    self._process(entry, victims)
        return entries

    def _nominate(self, job: Job, name: str, *, is_preemptor: bool) -> Entry:
        node = self.cache.tree.queues[name]
        entry = Entry(job=job, node=node, is_preemptor=is_preemptor, progress=job.progress)
        if job.has_check_in(RETRY) or job.has_check_in(REJECTED):
            entry.message, entry.cause = "The workload has failed admission checks", "PendingEvaluation"
        elif node.has_cycle:
            entry.message, entry.cause = f"ClusterQueue {name} is inactive", "Suspended"
        elif error := self._inadmissibility(job.workload, node.queue):
            entry.message, entry.cause = error, "Misconfigured"
            if error == NAMESPACE_MISMATCH:
                entry.why = Requeue.NAMESPACE_MISMATCH
        else:
            if unknown := self._unknown(job, node):
                raise UndecidableError(f"Workload {job.key}: kschedx does not evaluate {unknown}")
            entry.is_nominated = True
            self._evaluate(entry)
        return entry

    def _unknown(self, job: Job, node: QueueNode) -> str:
        """A feature of Kueue that would affect the decision and is not supported; empty for almost all Workloads."""
        is_on = self.settings.enabled
        specs = [pod_set.template.spec for pod_set in job.workload.spec.pod_sets]
        if any(spec.resource_claims for spec in specs):
            return "devices of Dynamic Resource Allocation in quotas"
        if is_on("ConcurrentAdmission") and node.queue.spec.concurrent_admission_policy is not None:
            return "the feature gate ConcurrentAdmission"
        replaced = job.workload.metadata.annotations.get(_SLICE_REPLACEMENT_FOR)
        has_quota = replaced and any(replaced in jobs for jobs in self.cache.jobs.values())
        if has_quota and is_on("ElasticJobsViaWorkloadSlices"):
            return f"elastic Jobs (it replaces {replaced}, which has quota)"
        if not self.cache.topologies_of(node.queue):
            return ""
        requests = [pod_set.topology_request for pod_set in job.workload.spec.pod_sets]
        if is_on("TASBalancedPlacement") and any(request is not None and request.preferred for request in requests):
            return "the feature gate TASBalancedPlacement"
        if is_on("TASRespectNodeAffinityPreferred") and any(map(_prefers_nodes, specs)):
            return "the feature gate TASRespectNodeAffinityPreferred"
        return ""

    def _evaluate(self, entry: Entry) -> None:
        """Assign flavors at the start of a cycle, or reuse an evaluation in the same state."""
        job, name = entry.job, entry.node.name
        if entry.progress is not None and self._is_outdated(entry.progress, entry):
            entry.progress = None
        if self._known is None or job.shape is None:
            self._assign(entry)
            return
        begun = None if entry.progress is None else repr(entry.progress.tried)
        states = tuple((check.name, check.state) for check in job.checks)
        key = (self.cache.mark, name, job.key, job.shape, job.queued_since, states, begun)
        known = self._known.get(key)
        if known is None:
            self._assign(entry)
            targets = tuple((self.cache.queue_of(it.job).name, it.job.key, it.reason) for it in entry.targets)
            self._known[key] = _Nomination(entry.assignment, targets)
            return
        entry.assignment = known.assignment
        entry.targets = [
            PreemptionTarget(job=self.cache.jobs[queue][key], reason=reason) for queue, key, reason in known.targets
        ]
        entry.message = known.assignment.message
        if known.assignment.progress is not None:
            generation = self.cache.generations[name]
            entry.progress = replace(known.assignment.progress, cycle=self._cycle, generation=generation)

    def _assign(self, entry: Entry, nominated: Mapping[str, Mapping[str, str]] | None = None) -> None:
        assigner = Assigner(
            entry.job,
            entry.node,
            self.cache,
            lambda job, fr, amount: self._preemptor.simulate(job, entry.node, fr, amount),
            cycle=self._cycle,
            progress=entry.progress,
            nominated=nominated,
        )
        assignment, targets = self._best(entry, assigner)
        self._place_pending(entry, assignment, targets)
        entry.assignment, entry.targets = assignment, targets
        entry.message = assignment.message
        entry.progress = assignment.progress

    def _is_outdated(self, progress: ScanProgress, entry: Entry) -> bool:
        if self.settings.enabled("FlavorFungibilityPreserveScanProgress"):
            if not progress.matches(entry.job.shape):
                return True
            if self._cycle - progress.cycle <= 1:
                return False
        return self.cache.generations[entry.node.name] > progress.generation

    def _best(self, entry: Entry, assigner: Assigner) -> tuple[Assignment, list[PreemptionTarget]]:
        """Return the assignment of all pods, or of as many as fit if the Workload accepts fewer."""
        full = assigner.assign()
        if full.mode is FlavorAssignmentMode.FIT:
            return full, []
        if full.mode is FlavorAssignmentMode.PREEMPT:
            targets = self._preemptor.targets(entry.job, entry.node, full)
            if targets:
                return full, targets
        if not self.settings.enabled("PartialAdmission") or not entry.job.may_be_partial:
            return full, []
        sets = entry.job.workload.spec.pod_sets
        total = sum(map(_most_given_up, sets))
        best: tuple[Assignment, list[PreemptionTarget]] | None = None
        low, high, last = 0, total + 1 if total > 0 else 0, -1
        while low < high:
            middle = (low + high) // 2
            counts = [pod_set.count - _most_given_up(pod_set) * middle // total for pod_set in sets]
            assignment = assigner.assign(counts)
            targets = (
                self._preemptor.targets(entry.job, entry.node, assignment)
                if assignment.mode is FlavorAssignmentMode.PREEMPT
                else []
            )
            if assignment.mode is FlavorAssignmentMode.FIT or targets:
                best, last, high = (assignment, targets), middle, middle
            else:
                low = middle + 1
        return best if best is not None and last == low else (full, [])

    def _place_pending(self, entry: Entry, assignment: Assignment, targets: Sequence[PreemptionTarget]) -> None:
        """Find the placement of a Workload that waits for victims or reserves capacity in an empty cluster."""
        queue = entry.node.queue
        wants_topology = entry.job.requests_topology or self.cache.is_topology_only(queue)
        is_on = self.settings.enabled("TopologyAwareScheduling")
        if not is_on or assignment.mode is not FlavorAssignmentMode.PREEMPT or not wants_topology:
            return
        requests = placement_requests(assignment, entry.job, queue, self.cache)
        if targets:
            with self.cache.without(target.job for target in targets):
                placements = self.cache.place(requests)
        else:
            placements = self.cache.place(requests, is_empty=True)
        assignment.take_places(placements)

    # --- the order

    def _sort_entries(self, entries: list[Entry]) -> Iterator[Entry]:
        if self.settings.fair_sharing is not None:
            return self._tournaments(entries)

        def order(entry: Entry) -> tuple[object, ...]:
            return self._is_late(entry), entry.assignment.borrowing, *self._last_order(entry)

        return iter(sorted(entries, key=order))

    def _is_late(self, entry: Entry) -> bool:
        return self.settings.enabled("PrioritizePreemptorWorkloads") and not entry.is_preemptor

    def _last_order(self, entry: Entry) -> tuple[object, ...]:
        priority = -entry.job.priority if self.settings.enabled("PrioritySortingWithinCohort") else 0
        return priority, entry.job.queued_since

    def _tournaments(self, entries: list[Entry]) -> Iterator[Entry]:
        """Fair sharing: repeatedly yield the entry whose admission gives the lowest share at every level."""
        left = {entry.node.name: entry for entry in entries}
        while left:
            name = next(iter(left))
            node = left[name].node
            if node.parent is None:
                yield left.pop(name)
                continue
            root = node.parent.root
            shares = self._shares(root, left)
            winner = self._winner(root, left, shares)
            assert winner is not None
            yield left.pop(winner.node.name)

    def _shares(self, root: CohortNode, left: Mapping[str, Entry]) -> dict[tuple[str, str], Share]:
        """Cohort and Workload to the share of the cohort's child above the Workload after its admission."""
        shares = {}
        for node in root.all_queues():
            entry = left.get(node.name)
            if entry is None:
                continue
            places = entry.assignment.topology_usage(entry.job, self.cache)
            self.cache.add_usage(node, entry.usage, places)
            share = node.share()
            for cohort in node.ancestors():
                shares[cohort.name, entry.job.key] = share
                share = cohort.share()
            self.cache.remove_usage(node, entry.usage, places)
        return shares

    def _winner(
        self, cohort: CohortNode, left: Mapping[str, Entry], shares: Mapping[tuple[str, str], Share]
    ) -> Entry | None:
        candidates = [self._winner(child, left, shares) for child in cohort.cohorts]
        candidates += [left.get(queue.name) for queue in cohort.queues]

        def order(entry: Entry) -> tuple[object, ...]:
            share = shares[cohort.name, entry.job.key]
            prefers_own = self.settings.enabled("FairSharingPrioritizeNonBorrowing")
            is_borrowing = prefers_own and share.borrows_any(entry.usage)
            return self._is_late(entry), is_borrowing, share.order, *self._last_order(entry)

        return min((candidate for candidate in candidates if candidate is not None), key=order, default=None)

    # --- one entry

    def _process(self, entry: Entry, victims: dict[str, PreemptionTarget]) -> None:
        fits = self._refresh(entry, victims)
        mode = entry.assignment.mode
        places = entry.assignment.topology_usage(entry.job, self.cache)
        if mode is FlavorAssignmentMode.NO_FIT:
            entry.why, entry.cause = Requeue.NO_FIT, entry.assignment.cause
        elif mode is FlavorAssignmentMode.PREEMPT and not entry.targets:
            entry.why, entry.cause = Requeue.NO_CANDIDATES, "WaitingForQuota"
            is_urgent = self.settings.enabled("PrioritizePreemptorWorkloads") and entry.is_preemptor
            if entry.node.queue.preemption.reclaim_within_cohort != "Any" or is_urgent:
                self.cache.add_usage(entry.node, self._reserved_usage(entry), places)
        elif mode is FlavorAssignmentMode.DEFERRED_FIT:
            entry.message, entry.cause = _FITS_AFTER_PREEMPTIONS, "WaitingForPreemptedWorkloads"
            entry.why, entry.progress = Requeue.PENDING_PREEMPTION, None
            self.cache.add_usage(entry.node, entry.usage, places)
        elif any(target.job.key in victims for target in entry.targets):
            self._skip(entry, _OVERLAPPING_TARGETS)
        elif not fits:
            self._skip(entry, _NO_LONGER_FITS)
        else:
            victims.update({target.job.key: target for target in entry.targets})
            self.cache.add_usage(entry.node, entry.usage, places)
            if mode is FlavorAssignmentMode.PREEMPT:
                entry.issues_preemption = True
                entry.cause, entry.why = "WaitingForPreemptedWorkloads", Requeue.PENDING_PREEMPTION
                entry.progress = None
                entry.message += f". Pending the preemption of {len(entry.targets)} workload(s)"
            elif self._is_blocked:
                self.has_stopped = entry.is_untouched = True
                entry.message, entry.cause = PODS_NOT_READY, "WaitingForPodsReady"
            else:
                entry.is_admitted = True

    def _skip(self, entry: Entry, message: str) -> None:
        entry.is_skipped, entry.message, entry.cause = True, message, "WaitingForQuota"
        if not self.settings.enabled("FlavorFungibilityPreserveScanProgress"):
            entry.progress = None

    def _refresh(self, entry: Entry, victims: Mapping[str, PreemptionTarget]) -> bool:
        """Return whether the entry still fits. It is assigned again if other entries used its quota or its victims."""
        fits, fits_topology = self._still_fits(entry, victims)
        overlaps = any(target.job.key in victims for target in entry.targets)
        is_deferred = overlaps and self.settings.enabled("RecomputeAssignmentUponPreemptionTargetsOverlap")
        is_moved = fits and not fits_topology and self.settings.enabled("TASRecomputeAssignmentWithinSchedulingCycle")
        if not is_deferred and not is_moved:
            return fits and fits_topology
        nominated = {
            pod_set.name: {name: choice.flavor for name, choice in pod_set.flavors.items()}
            for pod_set in entry.assignment.pod_sets
        }
        entry.progress = None
        if is_deferred:
            with self._preemptor.without(victim.job for victim in victims.values()):
                self._assign(entry, nominated)
            if entry.assignment.mode is FlavorAssignmentMode.FIT:
                entry.assignment.set_mode(FlavorAssignmentMode.DEFERRED_FIT)
        else:
            self._assign(entry, nominated)
        return all(self._still_fits(entry, victims))

    def _still_fits(self, entry: Entry, victims: Mapping[str, PreemptionTarget]) -> tuple[bool, bool]:
        """Return whether quota and topology suffice after all victims so far and its own."""
        gone = {**victims, **{target.job.key: target for target in entry.targets}}
        with self.cache.without(target.job for target in gone.values()):
            if not self.cache.fits(entry.node, entry.usage):
                return False, False
            return True, self.cache.fits_topology(entry.assignment.topology_usage(entry.job, self.cache))

    def _reserved_usage(self, entry: Entry) -> Usage:
        """Return what a Workload without victims reserves against others in the cycle."""
        usage: Usage = {}
        for fr, amount in entry.usage.items():
            quota = entry.node.quota(fr)
            if entry.assignment.borrowing == 0:
                usage[fr] = max(0, min(amount, minus(quota.nominal, entry.node.used_amount(fr))))
            elif quota.borrowing_limit is None:
                usage[fr] = amount
            else:
                usage[fr] = min(amount, minus(quota.nominal + quota.borrowing_limit, entry.node.used_amount(fr)))
        return usage


def _most_given_up(pod_set: PodSet) -> int:
    """Return how many of its pods a Workload can go without; 0 for a pod set without `minCount`."""
    return 0 if pod_set.min_count is None else pod_set.count - pod_set.min_count


def _prefers_nodes(spec: PodSpec) -> bool:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return affinity is not None and bool(affinity.preferred_during_scheduling_ignored_during_execution)
