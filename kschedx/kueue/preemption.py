"""The victims of a Workload: the classical search in the tree of cohorts, and fair sharing.

Upstream: pkg/scheduler/preemption (preemption.go, preemption_oracle.go, classical, fairsharing, common).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum, unique

from msgspec import Struct

from kschedx.kueue.flavors import Assignment, GranularMode, placement_requests
from kschedx.kueue.queues import Cache, PlacementRequests, failure
from kschedx.kueue.quota import CohortNode, FlavorResource, QueueNode, QuotaNode, Share, Usage, minus
from kschedx.kueue.workloads import Job

_BUFFER = 5 * 60 * 1000  # milliseconds, for the gate SchedulerTimestampPreemptionBuffer

UsageShare = Callable[[Job], float | None]
"""Returns the usage of a Workload's LocalQueue, if LocalQueues are ordered by usage."""
_NEGATIVE = Share(ratio=-1.0)


@unique
class PreemptionReason(StrEnum):
    IN_QUEUE = "InClusterQueue"
    RECLAMATION = "InCohortReclamation"
    FAIR_SHARING = "InCohortFairSharing"
    WHILE_BORROWING = "InCohortReclaimWhileBorrowing"

    @property
    def words(self) -> str:
        return {
            PreemptionReason.IN_QUEUE: "prioritization in the ClusterQueue",
            PreemptionReason.RECLAMATION: "reclamation within the cohort",
            PreemptionReason.FAIR_SHARING: "Fair Sharing within the cohort",
            PreemptionReason.WHILE_BORROWING: "reclamation within the cohort while borrowing",
        }[self]


class PreemptionTarget(Struct, frozen=True, kw_only=True):
    job: Job
    reason: PreemptionReason


@unique
class _Variant(StrEnum):
    IN_QUEUE = "in the queue"
    HIERARCHY = "the preemptor is nearer to the quota"
    WITHOUT_BORROWING = "only where the preemptor does not borrow"
    WHILE_BORROWING = "also where the preemptor borrows"

    @property
    def reason(self) -> PreemptionReason:
        if self is _Variant.IN_QUEUE:
            return PreemptionReason.IN_QUEUE
        return PreemptionReason.WHILE_BORROWING if self is _Variant.WHILE_BORROWING else PreemptionReason.RECLAMATION


_Place = tuple[bool, int, int, str]
"""Not evicted, priority, negative time of quota reservation, uid: the sort key of victims."""


@dataclass(slots=True)
class _Candidate:
    job: Job
    variant: _Variant
    common: CohortNode | None  # the lowest common cohort of both queues
    place: _Place  # the sort key among candidates of its kind, unless usage orders them


@dataclass(slots=True, kw_only=True)
class _Attempt:
    job: Job
    node: QueueNode
    usage: Usage
    short: frozenset[FlavorResource]
    places: PlacementRequests = field(default_factory=dict)


class WorkloadPreemptor:
    def __init__(self, cache: Cache, now: int, usage_share: UsageShare) -> None:
        self._cache = cache
        self._settings = cache.settings
        self._now = now
        self._usage_share = usage_share
        self._is_usage_based = cache.settings.usage_based is not None
        self._held: dict[str, list[tuple[_Place, Job, frozenset[FlavorResource]]]] = {}
        """By ClusterQueue, the Workloads with quota in order, with their usage; constant within a cycle."""
        self._alike: dict[Hashable, list[_Candidate]] = {}  # the candidates of a queue, shared by equivalent preemptors

    # --- called by the scheduler

    @contextmanager
    def without(self, jobs: Iterable[Job]) -> Iterator[None]:
        """Simulate the absence of Workloads; they are not candidates either."""
        known = self._held, self._alike
        self._held, self._alike = {}, {}
        try:
            with self._cache.without(jobs):
                yield
        finally:
            self._held, self._alike = known

    def targets(self, job: Job, node: QueueNode, assignment: Assignment) -> list[PreemptionTarget]:
        """Return the victims for an assignment, or none if there is no sufficient set."""
        places: PlacementRequests = {}
        if self._settings.enabled("TopologyAwareScheduling"):
            places = placement_requests(assignment, job, node.queue, self._cache)
        usage = assignment.requested_usage(job)
        return self._search(_Attempt(job=job, node=node, usage=usage, short=assignment.short, places=places))

    def simulate(self, job: Job, node: QueueNode, fr: FlavorResource, amount: int) -> tuple[GranularMode, int]:
        """Return whether preemption frees one resource, and the borrowing height then."""
        targets = self._search(_Attempt(job=job, node=node, usage={fr: amount}, short=frozenset({fr})))
        with self._cache.without(target.job for target in targets):
            borrowing, _ = node.lowest_fit(fr, amount)
        if not targets:
            return GranularMode.NO_CANDIDATES, borrowing
        is_own = any(self._cache.queue_of(target.job) is node for target in targets)
        return (GranularMode.PREEMPT if is_own else GranularMode.RECLAIM), borrowing

    def _search(self, attempt: _Attempt) -> list[PreemptionTarget]:
        return self._fair(attempt) if self._settings.fair_sharing is not None else self._classical(attempt)

    # --- candidates

    def _satisfies(self, policy: str, job: Job, candidate: Job) -> bool:
        """Return whether a policy allows `job` to preempt `candidate`."""
        if policy == "Any":
            return True
        is_lower = job.priority > candidate.priority
        if policy == "LowerPriority":
            return is_lower
        if policy != "LowerOrNewerEqualPriority":
            return False
        younger_by = candidate.queued_since - job.queued_since
        buffer = _BUFFER if self._settings.enabled("SchedulerTimestampPreemptionBuffer") else 0
        return is_lower or (job.priority == candidate.priority and younger_by > buffer)

    # --- classical

    def _classical(self, attempt: _Attempt) -> list[PreemptionTarget]:
        groups = self._classical_candidates(attempt)
        if not self._may_suffice(attempt, (candidate for group in groups for candidate in group)):
            return []
        hierarchy, by_priority, _ = groups
        in_order = [self._sort_candidates(attempt.node, group) for group in groups]
        candidates = [
            candidate
            for is_evicted in (True, False)
            for group in in_order
            for candidate in group
            if candidate.place[0] is not is_evicted
        ]
        is_forbidden = not attempt.node.queue.preemption.is_while_borrowing
        is_under_nominal = all(attempt.node.quota(fr).nominal > attempt.node.used_amount(fr) for fr in attempt.short)
        if (not hierarchy and not by_priority) or (is_forbidden and not is_under_nominal):
            order = [True]
        elif is_forbidden and not hierarchy:
            order = [False, True]
        else:
            order = [True, False]
        for may_borrow in order:
            targets = self._remove_until_fit(attempt, candidates, may_borrow)
            if targets:
                return targets
        return []

    def _may_suffice(self, attempt: _Attempt, candidates: Iterable[_Candidate]) -> bool:
        """Return False if even all candidates together do not use what is missing."""
        missing = {fr: minus(amount, attempt.node.available(fr)) for fr, amount in attempt.usage.items()}
        missing = {fr: amount for fr, amount in missing.items() if amount > 0}
        for candidate in candidates if missing else ():
            for fr in missing:
                missing[fr] = minus(missing[fr], candidate.job.usage.get(fr, 0))
            if all(amount <= 0 for amount in missing.values()):
                return True
        return not missing

    def _classical_candidates(self, attempt: _Attempt) -> tuple[list[_Candidate], list[_Candidate], list[_Candidate]]:
        """Return the candidates over which the preemptor has a hierarchical advantage, those by priority, and those of
        its own queue."""
        node, policy = attempt.node, attempt.node.queue.preemption
        own = self._queue_candidates(attempt, node, None, has_advantage=False) if policy.is_in_queue else []
        hierarchy: list[_Candidate] = []
        by_priority: list[_Candidate] = []
        if policy.is_in_cohort:
            has_advantage, left = node.fits_in_quota(attempt.usage)
            below: CohortNode | None = None
            for cohort in node.ancestors():
                group = hierarchy if has_advantage else by_priority
                group += self._below(attempt, cohort, cohort, below, has_advantage=has_advantage)
                fits, left = cohort.fits_in_quota(left)
                has_advantage = has_advantage or fits
                below = cohort
        return hierarchy, by_priority, own

    def _sort_candidates(self, node: QueueNode, group: list[_Candidate]) -> list[_Candidate]:
        if self._is_usage_based:
            return sorted(group, key=lambda candidate: _Order(self, node, candidate.job, by_usage=True))
        return sorted(group, key=lambda candidate: candidate.place)

    def _jobs_in_queue(self, name: str) -> list[tuple[_Place, Job, frozenset[FlavorResource]]]:
        known = self._held.get(name)
        if known is None:
            jobs = self._cache.jobs[name].values()
            known = self._held[name] = sorted(
                ((self._place(job), job, job.flavor_resources) for job in jobs), key=lambda item: item[0]
            )
        return known

    def _place(self, job: Job) -> _Place:
        return not job.is_evicted, job.priority, -job.quota_since(self._now), job.uid

    def _below(
        self,
        attempt: _Attempt,
        cohort: CohortNode,
        common: CohortNode,
        seen: CohortNode | None,
        *,
        has_advantage: bool,
    ) -> Iterator[_Candidate]:
        """Yield the candidates below a cohort, from queues and subtrees above their quota."""
        for child in cohort.cohorts:
            if child is not seen and not child.is_within_quota(attempt.short):
                yield from self._below(attempt, child, common, seen, has_advantage=has_advantage)
        for queue in cohort.queues:
            if queue is not attempt.node and not queue.is_within_quota(attempt.short):
                yield from self._queue_candidates(attempt, queue, common, has_advantage=has_advantage)

    def _queue_candidates(
        self, attempt: _Attempt, queue: QueueNode, common: CohortNode | None, *, has_advantage: bool
    ) -> list[_Candidate]:
        policy = attempt.node.queue.preemption
        is_own, short, me = queue is attempt.node, attempt.short, attempt.job
        allowed = policy.within_cluster_queue if is_own else policy.reclaim_within_cohort
        since = me.queued_since if allowed == "LowerOrNewerEqualPriority" else 0
        likeness = queue.name, id(common), policy, short, is_own, has_advantage, me.priority, since
        if likeness in self._alike:
            return self._alike[likeness]
        candidates = []
        for place, job, used in self._jobs_in_queue(queue.name):
            if self._satisfies(allowed, attempt.job, job) and not short.isdisjoint(used):
                variant = self._variant(attempt, job, is_own=is_own, has_advantage=has_advantage)
                candidates.append(_Candidate(job, variant, common, place))
        self._alike[likeness] = candidates
        return candidates

    def _variant(self, attempt: _Attempt, job: Job, *, is_own: bool, has_advantage: bool) -> _Variant:
        if is_own:
            return _Variant.IN_QUEUE
        if has_advantage:
            return _Variant.HIERARCHY
        policy = attempt.node.queue.preemption
        limit = policy.borrow_within_cohort.max_priority_threshold if policy.borrow_within_cohort else None
        is_below = job.priority < attempt.job.priority and (limit is None or job.priority <= limit)
        return _Variant.WHILE_BORROWING if policy.is_while_borrowing and is_below else _Variant.WITHOUT_BORROWING

    def _remove_until_fit(
        self, attempt: _Attempt, candidates: Iterable[_Candidate], may_borrow: bool
    ) -> list[PreemptionTarget]:
        targets: list[PreemptionTarget] = []
        victims: list[PreemptionTarget] = []
        for candidate in candidates:
            if not self._is_valid(attempt, candidate, may_borrow):
                continue
            self._cache.remove(candidate.job)
            targets.append(PreemptionTarget(job=candidate.job, reason=candidate.variant.reason))
            if self._fits(attempt, may_borrow=may_borrow):
                targets = victims = self._fill_back(attempt, targets, may_borrow)
                break
        for target in targets:
            self._cache.restore(target.job)
        return victims

    def _is_valid(self, attempt: _Attempt, candidate: _Candidate, may_borrow: bool) -> bool:
        """Return whether a candidate is still valid after other victims."""
        queue = self._cache.queue_of(candidate.job)
        if queue is attempt.node:
            return True
        if may_borrow and candidate.variant is _Variant.WITHOUT_BORROWING:
            return False
        node: QuotaNode = queue
        while node is not candidate.common:
            if node.is_within_quota(attempt.short):
                return False
            assert node.parent is not None
            node = node.parent
        return True

    def _fits(self, attempt: _Attempt, *, may_borrow: bool) -> bool:
        node = attempt.node
        for fr, amount in attempt.usage.items():
            if (not may_borrow and node.borrows_with(fr, amount)) or amount > node.available(fr):
                return False
        return failure(self._cache.place(attempt.places)) is None

    def _fill_back(
        self, attempt: _Attempt, targets: list[PreemptionTarget], may_borrow: bool
    ) -> list[PreemptionTarget]:
        """Return the victims without those that turn out to be unnecessary."""
        for index in range(len(targets) - 2, -1, -1):
            self._cache.restore(targets[index].job)
            if self._fits(attempt, may_borrow=may_borrow):
                targets[index] = targets[-1]
                targets = targets[:-1]
            else:
                self._cache.remove(targets[index].job)
        return targets

    # --- fair sharing

    def _fair(self, attempt: _Attempt) -> list[PreemptionTarget]:
        candidates = sorted(
            self._fair_candidates(attempt),
            key=lambda candidate: _Order(self, attempt.node, candidate, by_usage=self._is_usage_based),
        )
        if not candidates:
            return []
        self._cache.add_usage(attempt.node, attempt.usage, attempt.job.topology_usage)
        targets: list[PreemptionTarget] = []
        fits, rest = self._first_strategy(attempt, candidates, targets)
        if not fits and len(self._settings.strategies) > 1:
            fits = self._second_strategy(attempt, rest, targets)
        self._cache.remove_usage(attempt.node, attempt.usage, attempt.job.topology_usage)
        if fits:
            targets = self._fill_back(attempt, targets, may_borrow=True)
        for target in targets:
            self._cache.restore(target.job)
        return targets if fits else []

    def _fair_candidates(self, attempt: _Attempt) -> Iterator[Job]:
        node, policy = attempt.node, attempt.node.queue.preemption
        if policy.is_in_queue:
            yield from self._allowed_jobs(attempt, node, policy.within_cluster_queue)
        if node.parent is None or not policy.is_in_cohort:
            return
        for queue in node.parent.root.all_queues():
            if queue is not node and not queue.is_within_quota(attempt.short):
                yield from self._allowed_jobs(attempt, queue, policy.reclaim_within_cohort)

    def _allowed_jobs(self, attempt: _Attempt, queue: QueueNode, policy: str) -> Iterator[Job]:
        for job in self._cache.jobs[queue.name].values():
            if self._satisfies(policy, attempt.job, job) and job.uses_any(attempt.short):
                yield job

    def _take(self, attempt: _Attempt, targets: list[PreemptionTarget], job: Job, reason: PreemptionReason) -> bool:
        """Add a victim, and return whether the Workload fits then."""
        self._cache.remove(job)
        targets.append(PreemptionTarget(job=job, reason=reason))
        self._cache.remove_usage(attempt.node, attempt.usage, attempt.job.topology_usage)
        fits = self._fits(attempt, may_borrow=True)
        self._cache.add_usage(attempt.node, attempt.usage, attempt.job.topology_usage)
        return fits

    def _first_strategy(
        self, attempt: _Attempt, candidates: Sequence[Job], targets: list[PreemptionTarget]
    ) -> tuple[bool, list[Job]]:
        """Add victims to `targets`. Return whether the Workload fits, and the candidates that were passed over."""
        order = _FairOrder(self, attempt.node, candidates)
        is_entitled = self._settings.enabled("FairSharingPreemptWithinNominal") and attempt.node.is_within_quota(
            attempt.short
        )
        is_final = self._settings.strategies[0] == "LessThanOrEqualToFinalShare"
        rest: list[Job] = []
        for queue in order.queues():
            if queue is attempt.node or is_entitled:
                reason = PreemptionReason.IN_QUEUE if queue is attempt.node else PreemptionReason.RECLAMATION
                if self._take(attempt, targets, order.pop(queue), reason):
                    return True, []
                continue
            own, theirs = order.below_common(queue)
            share, before = own.share(), theirs.share()
            while order.has(queue):
                job = order.pop(queue)
                after = self._share_without(theirs, queue, job) if is_final else before
                if share.order <= after.order if is_final else share.order < before.order:
                    if self._take(attempt, targets, job, PreemptionReason.FAIR_SHARING):
                        return True, []
                    break
                rest.append(job)
        return False, rest

    def _share_without(self, node: QuotaNode, queue: QueueNode, job: Job) -> Share:
        self._cache.remove_usage(queue, job.usage, job.topology_usage)
        share = node.share()
        self._cache.add_usage(queue, job.usage, job.topology_usage)
        return share

    def _second_strategy(self, attempt: _Attempt, candidates: Sequence[Job], targets: list[PreemptionTarget]) -> bool:
        """Add victims to `targets`, and return whether the Workload fits."""
        order = _FairOrder(self, attempt.node, candidates)
        for queue in order.queues():
            own, theirs = order.below_common(queue)
            is_less = own.share().order < theirs.share().order
            job = order.pop(queue)
            if is_less and self._take(attempt, targets, job, PreemptionReason.FAIR_SHARING):
                return True
            order.drop(queue)
        return False


class _Order:
    """Candidates in the order of preemption (`CandidatesOrdering`)."""

    def __init__(self, preemptor: WorkloadPreemptor, node: QueueNode, job: Job, by_usage: bool) -> None:
        self._queue = preemptor._cache.queue_of(job)
        self._job = job
        self._usage = preemptor._usage_share(job) if by_usage else None
        self._first = (not job.is_evicted, self._queue is node)
        self._last = (job.priority, -job.quota_since(preemptor._now), job.uid)

    def __lt__(self, other: _Order) -> bool:
        if self._first != other._first:
            return self._first < other._first
        if (
            self._usage is not None
            and other._usage is not None
            and self._queue is other._queue
            and self._job.local_queue[1] != other._job.local_queue[1]  # by name, ignoring the namespace
            and self._usage != other._usage
        ):
            return self._usage > other._usage
        return self._last < other._last


class _FairOrder:
    """The order of queues for victims: from the root, always the child with the highest share."""

    def __init__(self, preemptor: WorkloadPreemptor, node: QueueNode, candidates: Iterable[Job]) -> None:
        self._preemptor = preemptor
        self._node = node
        self._ancestors = list(node.ancestors())
        self._jobs: dict[str, list[Job]] = {}
        self._pruned: set[str] = set()
        self._pruned_cohorts: set[str] = set()
        for job in candidates:
            self._jobs.setdefault(preemptor._cache.queue_of(job).name, []).append(job)

    def has(self, queue: QueueNode) -> bool:
        return bool(self._jobs.get(queue.name))

    def pop(self, queue: QueueNode) -> Job:
        return self._jobs[queue.name].pop(0)

    def drop(self, queue: QueueNode) -> None:
        self._pruned.add(queue.name)

    def queues(self) -> Iterator[QueueNode]:
        if self._node.parent is None:
            while self._node.name not in self._pruned and self.has(self._node):
                yield self._node
            return
        root = self._node.parent.root
        while root.name not in self._pruned_cohorts:
            queue = self._next(root)
            if queue is not None:
                yield queue

    def below_common(self, queue: QueueNode) -> tuple[QuotaNode, QuotaNode]:
        """Return the ancestors of the preemptor's and a queue's nodes just below their lowest common cohort."""
        common = next(ancestor for ancestor in queue.ancestors() if ancestor in self._ancestors)

        def below(node: QuotaNode) -> QuotaNode:
            while node.parent is not common:
                assert node.parent is not None
                node = node.parent
            return node

        return below(self._node), below(queue)

    def _next(self, cohort: CohortNode) -> QueueNode | None:
        best, best_share = None, _NEGATIVE
        for queue in cohort.queues:
            if queue.name in self._pruned:
                continue
            share = queue.share()
            if (not share.is_borrowing and queue is not self._node) or not self.has(queue):
                self._pruned.add(queue.name)
            elif best is not None and share.order == best_share.order:
                if self._first(queue) < self._first(best):
                    best = queue
            elif share.order > best_share.order:
                best, best_share = queue, share
        best_cohort, cohort_share = None, _NEGATIVE
        for child in cohort.cohorts:
            if child.name in self._pruned_cohorts:
                continue
            share = child.share()
            if not share.is_borrowing and child not in self._ancestors:
                self._pruned_cohorts.add(child.name)
            elif share.order >= cohort_share.order:
                best_cohort, cohort_share = child, share
        if best is None and best_cohort is None:
            self._pruned_cohorts.add(cohort.name)
            return None
        if best_cohort is not None and cohort_share.order >= best_share.order:
            return self._next(best_cohort)
        return best

    def _first(self, queue: QueueNode) -> _Order:
        return _Order(self._preemptor, self._node, self._jobs[queue.name][0], by_usage=False)
