"""The flavor of each resource of a Workload: the search through a queue's resource groups, with Kueue's messages.

Upstream: pkg/scheduler/flavorassigner.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, unique
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube.kueue import (
    ClusterQueue,
    FlavorFungibility,
    PodSet,
    ResourceFlavor,
    ResourceGroup,
    TopologyAssignment,
)
from kschedx.kube.names import PODS
from kschedx.kube.selectors import NodeSelector, NodeSelectorTerm, compile_node_selector
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, find_untolerated
from kschedx.kube.types import PodSpec, Taint
from kschedx.kueue.queues import Cache, failure
from kschedx.kueue.quota import (
    FlavorResource,
    QueueNode,
    Requests,
    Usage,
    add_requests,
    minus,
    plus,
    pod_requests,
    shown,
)
from kschedx.kueue.topology import DomainUsage, Request, TopologyPlacement, TopologyUsage, taint_text
from kschedx.kueue.workloads import READY, Job, PodSetRequests, ScanProgress

_MAY_STOP = ("MayStopSearch", "Borrow", "Preempt")  # `flavorFungibility`: the value of v1beta2, and those of v1beta1
_NO_TOPOLOGY_CACHE = "workload requires Topology, but there is no TAS cache information"

_NO_MATCHING_FLAVOR = "NoMatchingFlavor"
_EXCEEDS_MAXIMUM = "ExceedsMaxQuota"
_WAITING_FOR_QUOTA = "WaitingForQuota"
_NO_PLACE = "TopologyPlacementFailed"
_SEVERITY = {_NO_PLACE: 1, _WAITING_FOR_QUOTA: 2, _EXCEEDS_MAXIMUM: 3, _NO_MATCHING_FLAVOR: 4}


def _most_severe(left: str, right: str) -> str:
    return left if _SEVERITY.get(left, 0) >= _SEVERITY.get(right, 0) else right


@unique
class FlavorAssignmentMode(IntEnum):
    """The mode of an assignment, best last."""

    NO_FIT = 0
    PREEMPT = 1
    DEFERRED_FIT = 2
    FIT = 3

    def __str__(self) -> str:
        return ("NoFit", "Preempt", "DeferredFit", "Fit")[self]


@unique
class GranularMode(IntEnum):
    """A mode combined with the result of a simulated preemption, best last."""

    NO_FIT = 0
    NO_CANDIDATES = 1
    PREEMPT = 2
    RECLAIM = 3
    FIT = 4

    @property
    def mode(self) -> FlavorAssignmentMode:
        if self in (GranularMode.NO_FIT, GranularMode.FIT):
            return FlavorAssignmentMode.FIT if self is GranularMode.FIT else FlavorAssignmentMode.NO_FIT
        return FlavorAssignmentMode.PREEMPT

    @property
    def preemption(self) -> str:
        return {
            GranularMode.NO_CANDIDATES: "NoCandidates",
            GranularMode.PREEMPT: "Preempt",
            GranularMode.RECLAIM: "Reclaim",
        }.get(self, "")


_Simulate = Callable[[Job, FlavorResource, int], tuple[GranularMode, int]]
"""Returns whether preemption frees an amount, and the borrowing height then."""


class Shortage(Struct, frozen=True, kw_only=True, rename="camel"):
    """A resource of a flavor that is insufficient for a pod set; amounts as Kueue counts them."""

    pod_set: str
    flavor: str
    resource: str
    requested: int  # including earlier pod sets of the Workload
    available: int
    maximum: int  # the maximum for the queue, with borrowing

    @property
    def exceeds_maximum(self) -> bool:
        return self.requested > self.maximum

    @property
    def missing_amount(self) -> int:
        return minus(self.requested, self.maximum if self.exceeds_maximum else self.available)


@dataclass(slots=True)
class _Choice:
    """The flavor of one resource."""

    flavor: str
    mode: FlavorAssignmentMode
    borrowing: int = 0
    tried: int = 0


@dataclass(slots=True)
class _Attempt:
    """A flavor that was evaluated for a pod set."""

    flavor: str
    mode: FlavorAssignmentMode
    borrowing: int = 0
    chance: GranularMode | None = None
    reasons: tuple[str, ...] = ()
    cause: str = ""

    def __str__(self) -> str:
        head = f"preemptionMode={self.chance.preemption}" if self.chance is not None else str(self.mode)
        borrow = f";borrow={self.borrowing}" if self.borrowing else ""
        return f"{self.flavor}({head}{borrow}{''.join(f';{reason}' for reason in self.reasons)})"


@dataclass(slots=True, kw_only=True)
class FlavorAssignment:
    name: str
    count: int
    requests: Requests
    flavors: dict[str, _Choice] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    error: str = ""
    attempts: list[_Attempt] = field(default_factory=list)
    topology: TopologyAssignment | None = None
    delayed_topology: str | None = None

    @property
    def mode(self) -> FlavorAssignmentMode:
        if not self.error and not self.reasons:
            return FlavorAssignmentMode.FIT
        if self.error or not self.flavors:
            return FlavorAssignmentMode.NO_FIT
        return min(flavor.mode for flavor in self.flavors.values())


@dataclass(slots=True, kw_only=True)
class Assignment:
    pod_sets: list[FlavorAssignment] = field(default_factory=list)
    usage: Usage = field(default_factory=dict)
    borrowing: int = 0  # the height of the lowest cohort with enough quota; 0 within the queue's own quota
    progress: ScanProgress | None = None
    shortages: list[Shortage] = field(default_factory=list)
    cause: str = ""  # why nothing fits, as a reason of the QuotaReserved condition
    _mode: FlavorAssignmentMode | None = None

    @property
    def mode(self) -> FlavorAssignmentMode:
        if self._mode is None:
            self._mode = min((pod_set.mode for pod_set in self.pod_sets), default=FlavorAssignmentMode.NO_FIT)
        return self._mode

    def set_mode(self, mode: FlavorAssignmentMode, names: Iterable[str] | None = None) -> None:
        """Set the mode of some pod sets or of all, and of the whole assignment."""
        wanted = None if names is None else frozenset(names)
        for pod_set in self.pod_sets:
            if wanted is None or pod_set.name in wanted:
                for choice in pod_set.flavors.values():
                    choice.mode = mode
                self._mode = mode
        if wanted is None:
            self._mode = mode

    def of(self, name: str) -> FlavorAssignment:
        return next(pod_set for pod_set in self.pod_sets if pod_set.name == name)

    @property
    def has_unassigned(self) -> bool:
        """Whether a pod set with requests has no flavor, which ends the search."""
        return any(pod_set.requests and not pod_set.flavors for pod_set in self.pod_sets)

    @property
    def message(self) -> str:
        parts = []
        for pod_set in self.pod_sets:
            if pod_set.error:
                return f"failed to assign flavors to pod set {pod_set.name}: {pod_set.error}"
            if pod_set.reasons:
                parts.append(f"couldn't assign flavors to pod set {pod_set.name}: {', '.join(sorted(pod_set.reasons))}")
        return "; ".join(parts)

    @property
    def considered_flavors(self) -> str:
        """The flavors that were skipped or need borrowing."""
        parts = []
        for pod_set in self.pod_sets:
            phrases = [str(it) for it in pod_set.attempts if it.mode is not FlavorAssignmentMode.FIT or it.borrowing]
            if phrases:
                parts.append(f"{pod_set.name}: {', '.join(phrases)}")
        return " | ".join(parts)

    @property
    def short(self) -> frozenset[FlavorResource]:
        """The resources that preemption has to free."""
        return frozenset(
            FlavorResource(choice.flavor, name)
            for pod_set in self.pod_sets
            for name, choice in pod_set.flavors.items()
            if choice.mode is FlavorAssignmentMode.PREEMPT
        )

    def requested_usage(self, job: Job) -> Usage:
        """Return the Workload's quota usage without the number of its pods."""
        usage: Usage = {}
        for counted, assignment in zip(job.counted_pod_sets, self.pod_sets, strict=False):
            for name, amount in counted.scale(assignment.count).requests.items():
                if amount and name in assignment.flavors:
                    fr = FlavorResource(assignment.flavors[name].flavor, name)
                    usage[fr] = plus(usage.get(fr, 0), amount)
        return usage

    def topology_usage(self, job: Job, cache: Cache) -> TopologyUsage:
        usage: TopologyUsage = {}
        specs = {pod_set.name: pod_set.template.spec for pod_set in job.workload.spec.pod_sets}
        for assignment in self.pod_sets:
            flavor = _topology_flavor(assignment.flavors, cache)
            if assignment.topology is None or assignment.name not in specs or isinstance(flavor, list):
                continue
            single = pod_requests(specs[assignment.name])
            usage.setdefault(flavor, []).extend(
                DomainUsage(values=domain.values, single=single, count=domain.count)
                for domain in assignment.topology.domains
            )
        return usage

    def take_places(self, placements: Mapping[str, TopologyPlacement]) -> None:
        for name, placement in placements.items():
            assignment = self.of(name)
            assignment.topology = placement.assignment
            if placement.assignment is not None and assignment.delayed_topology is not None:
                assignment.delayed_topology = "Ready"

    def resolve_cause(self, queue: ClusterQueue) -> None:
        """Set the reason of the condition, for the gate UnadmittedWorkloadsObservability."""
        if self.mode is not FlavorAssignmentMode.NO_FIT:
            return
        for pod_set in self.pod_sets:
            if pod_set.mode is FlavorAssignmentMode.NO_FIT:
                self.cause = _most_severe(self.cause, _cause_of(pod_set, queue))


def _cause_of(pod_set_assignment: FlavorAssignment, queue: ClusterQueue) -> str:
    """The mildest cause of a group's flavors counts, and the severest of the groups."""
    if not pod_set_assignment.attempts:
        return _NO_MATCHING_FLAVOR
    by_group: dict[int, str] = {}
    for index, attempt in enumerate(pod_set_assignment.attempts):
        if attempt.mode is not FlavorAssignmentMode.NO_FIT:
            continue
        groups = [
            number
            for number, group in enumerate(queue.spec.resource_groups)
            if any(flavor.name == attempt.flavor for flavor in group.flavors)
        ] or [-1 - index]
        for number in groups:
            known = by_group.get(number)
            if known is None or _SEVERITY.get(attempt.cause, 0) < _SEVERITY.get(known, 0):
                by_group[number] = attempt.cause
    message = ""
    for cause in by_group.values():
        message = _most_severe(message, cause)
    return message


# --- the search


@dataclass(slots=True)
class _GroupSearch:
    """The result of a search through one resource group."""

    flavors: dict[str, _Choice]
    reasons: list[str]
    attempts: list[_Attempt]


@lru_cache(maxsize=1024)
def _hash(name: str) -> int:
    """FNV-1a of 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return digest


def _sort_resources(names: Iterable[str]) -> list[str]:
    """Sort resources as Kueue iterates them: by the hash of their names."""
    return sorted(names, key=lambda name: (_hash(name), name))


class Assigner:
    """Assigns flavors to one Workload in the current state."""

    def __init__(
        self,
        job: Job,
        node: QueueNode,
        cache: Cache,
        simulate: _Simulate,
        *,
        cycle: int,
        progress: ScanProgress | None,
        nominated: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """`nominated`: pod set to resource to the only flavor to evaluate again."""
        self._job = job
        self._node = node
        self._queue = node.queue
        self._cache = cache
        self._settings = cache.settings
        self._simulate = simulate
        self._cycle = cycle
        self._progress = progress
        self._nominated = nominated
        self._fungibility = node.queue.spec.flavor_fungibility or FlavorFungibility()
        self._topologies = cache.topologies_of(node.queue)
        self._is_topology_only = cache.is_topology_only(node.queue)
        self._shortages: list[Shortage] = []

    def assign(self, counts: Sequence[int] | None = None) -> Assignment:
        """`counts`: the numbers of pods, if fewer than requested."""
        self._shortages = []
        assignment = self._flavors(counts)
        assignment.shortages = self._shortages
        is_complete = len(assignment.pod_sets) == len(self._job.counted_pod_sets) and not assignment.has_unassigned
        if (
            is_complete
            and assignment.mode is not FlavorAssignmentMode.NO_FIT
            and self._settings.enabled("TopologyAwareScheduling")
        ):
            self._place(assignment)
        if self._settings.enabled("UnadmittedWorkloadsObservability"):
            assignment.resolve_cause(self._queue)
        return assignment

    def _flavors(self, counts: Sequence[int] | None) -> Assignment:
        sets: list[PodSetRequests] = [
            pod_set if counts is None else pod_set.scale(counts[index])
            for index, pod_set in enumerate(self._job.counted_pod_sets)
        ]
        if self._group(PODS) is not None:
            sets = [replace(pod_set, requests={**pod_set.requests, PODS: pod_set.count}) for pod_set in sets]
        assignment = Assignment()
        tried: list[dict[str, int]] = []
        for indices in self._pod_set_groups():
            choices, reasons, attempts = self._flavors_of_group(indices, sets, assignment.usage)
            has_failed = False
            for index in indices:
                requests = sets[index]
                flavors = self._own(index, requests, choices)
                assignment.pod_sets.append(
                    FlavorAssignment(
                        name=requests.name,
                        count=requests.count,
                        requests=requests.requests,
                        flavors=flavors,
                        reasons=list(reasons),
                        attempts=attempts,
                    )
                )
                for name, choice in flavors.items():
                    assignment.borrowing = max(assignment.borrowing, choice.borrowing)
                    fr = FlavorResource(choice.flavor, name)
                    assignment.usage[fr] = plus(assignment.usage.get(fr, 0), requests.requests.get(name, 0))
                tried.append({name: choice.tried for name, choice in flavors.items()})
                has_failed = has_failed or bool(requests.requests and not flavors)
            if has_failed:
                break
        assignment.progress = ScanProgress(
            tried=tuple(tried),
            generation=self._cache.generations[self._node.name],
            cycle=self._cycle,
            shape=self._job.shape,
        )
        return assignment

    def _pod_set_groups(self) -> list[list[int]]:
        """Group the pod sets that share flavors (`podSetGroupName`); most are alone."""
        groups: dict[str, list[int]] = {}
        for index, pod_set in enumerate(self._job.workload.spec.pod_sets):
            request = pod_set.topology_request
            name = request.pod_set_group_name if request is not None else None
            groups.setdefault(str(index) if name is None else f"group {name}", []).append(index)
        return list(groups.values())

    def _flavors_of_group(
        self, indices: Sequence[int], sets: Sequence[PodSetRequests], usage: Usage
    ) -> tuple[dict[str, _Choice], list[str], list[_Attempt]]:
        requests: Requests = {}
        for index in indices:
            requests = add_requests(requests, sets[index].requests)
        choices: dict[str, _Choice] = {}
        reasons: list[str] = []
        attempts: dict[str, _Attempt] = {}
        for resource in _sort_resources(requests):
            group = self._group(resource)
            if group is None and (requests[resource] == 0 or self._settings.ignores_undeclared):
                continue
            if resource in choices:
                continue
            if group is None:
                return {}, [f"resource {resource} unavailable in ClusterQueue"], _sort_attempts(attempts)
            result = self._search(indices, requests, resource, group, usage)
            self._merge(attempts, result.attempts, resource, group)
            if not result.flavors:
                return {}, result.reasons, _sort_attempts(attempts)
            choices.update(result.flavors)
            reasons += result.reasons
        return choices, reasons, _sort_attempts(attempts)

    def _own(self, index: int, requests: PodSetRequests, choices: Mapping[str, _Choice]) -> dict[str, _Choice]:
        if requests.requests:
            return {name: choice for name, choice in choices.items() if name in requests.requests}
        request = self._job.workload.spec.pod_sets[index].topology_request
        if request is None or request.pod_set_group_name is None:
            return {}
        return {name: choice for name, choice in choices.items() if choice.flavor in self._topologies}

    def _group(self, resource: str) -> ResourceGroup | None:
        groups = self._queue.spec.resource_groups
        return next((group for group in groups if resource in group.covered_resources), None)

    def _search(
        self, indices: Sequence[int], requests: Requests, resource: str, group: ResourceGroup, usage: Usage
    ) -> _GroupSearch:
        """Try the flavors of a group in order; all its resources get the same flavor."""
        covered = {name: requests[name] for name in _sort_resources(requests) if name in group.covered_resources}
        names = [flavor.name for flavor in group.flavors]
        has_fungibility = self._settings.enabled("FlavorFungibility")
        start = 0
        if has_fungibility and self._progress is not None:
            start = self._progress.next_flavor(indices[0], resource)
        best: dict[str, _Choice] = {}
        best_rank: tuple[GranularMode, int] | None = None
        reasons: list[str] = []
        attempts: list[_Attempt] = []
        last = -1
        for index in range(start, len(names)):
            last = index
            name = names[index]
            if self._nominated and not self._is_nominated(indices, resource, name):
                reasons.append(
                    f"skipping flavor {name} as it is not found in the nomination mapping for resource {resource}"
                )
                continue
            if refused := self._refusal(name, indices, group):
                reasons.append(refused)
                no_fit = FlavorAssignmentMode.NO_FIT
                attempts.append(_Attempt(name, no_fit, reasons=(refused,), cause=_NO_MATCHING_FLAVOR))
                continue
            choices, rank, attempt = self._try(name, covered, usage, indices)
            reasons += attempt.reasons
            attempt.reasons = tuple(sorted(attempt.reasons))
            attempts.append(attempt)
            if not has_fungibility:
                if rank[0] > (best_rank[0] if best_rank is not None else GranularMode.NO_FIT):
                    best, best_rank = choices, rank
                    if rank[0] is GranularMode.FIT:
                        return _GroupSearch(best, [], attempts)
            elif not self._goes_on(rank):
                best, best_rank = choices, rank
                break
            elif rank[0] is not GranularMode.NO_FIT and (best_rank is None or self._is_better(rank, best_rank)):
                best, best_rank = choices, rank
        if has_fungibility:
            for choice in best.values():
                choice.tried = -1 if last == len(names) - 1 else last
            if best_rank is not None and best_rank[0] is GranularMode.FIT:
                return _GroupSearch(best, [], attempts)
        return _GroupSearch(best, reasons, attempts)

    def _is_nominated(self, indices: Sequence[int], resource: str, flavor: str) -> bool:
        sets = self._job.workload.spec.pod_sets
        mapping = self._nominated or {}
        return any(mapping.get(sets[index].name, {}).get(resource) == flavor for index in indices)

    def _try(
        self, flavor: str, requests: Requests, usage: Usage, indices: Sequence[int]
    ) -> tuple[dict[str, _Choice], tuple[GranularMode, int], _Attempt]:
        """Check the amounts of all resources in one flavor; its rank is that of its worst resource."""
        choices: dict[str, _Choice] = {}
        rank = (GranularMode.FIT, 0)
        most = 0
        reasons: list[str] = []
        cause = ""
        for name, amount in requests.items():
            fr = FlavorResource(flavor, name)
            chance, borrowing, reason, why = self._check(fr, usage.get(fr, 0), amount, indices)
            if reason:
                reasons.append(reason)
                cause = _most_severe(cause, why)
            most = max(most, borrowing)
            if self._is_better(rank, (chance, borrowing)):
                rank = (chance, borrowing)
            if rank[0] is not GranularMode.NO_FIT:
                choices[name] = _Choice(flavor, chance.mode, borrowing)
        is_preemption = rank[0] not in (GranularMode.NO_FIT, GranularMode.FIT)
        attempt = _Attempt(flavor, rank[0].mode, most, rank[0] if is_preemption else None, tuple(reasons), cause)
        return choices, rank, attempt

    def _check(
        self, fr: FlavorResource, assumed: int, requested: int, indices: Sequence[int]
    ) -> tuple[GranularMode, int, str, str]:
        """Return the chance, the borrowing height, and the message and cause of a shortage."""
        node = self._node
        available, maximum = node.available(fr), node.potential(fr)
        amount = plus(assumed, requested)
        if amount > available:
            self._shortages.append(
                Shortage(
                    pod_set=self._job.workload.spec.pod_sets[indices[0]].name,
                    flavor=fr.flavor,
                    resource=fr.resource,
                    requested=amount,
                    available=available,
                    maximum=maximum,
                )
            )
        if amount > maximum:
            text = (
                f"insufficient quota for {fr.resource} in flavor {fr.flavor}, previously considered podsets requests "
                f"({shown(fr.resource, assumed)}) + current podset request "
                f"({shown(fr.resource, requested, is_quota=False)}) > maximum capacity ({shown(fr.resource, maximum)})"
            )
            return GranularMode.NO_FIT, 0, text, _EXCEEDS_MAXIMUM
        borrowing, may_reclaim = node.lowest_fit(fr, amount)
        if amount <= available:
            return GranularMode.FIT, borrowing, "", ""
        missing = shown(fr.resource, minus(amount, available))
        text = f"insufficient unused quota for {fr.resource} in flavor {fr.flavor}, {missing} more needed"
        policy, is_fair = self._queue.preemption, self._settings.fair_sharing is not None
        may_preempt = policy.is_while_borrowing or (is_fair and policy.is_in_cohort)
        if node.quota(fr).nominal >= amount or may_reclaim or may_preempt:
            chance, borrowing = self._simulate(self._job, fr, amount)
            return chance, borrowing, text, ""
        return GranularMode.NO_FIT, borrowing, text, _WAITING_FOR_QUOTA

    def _goes_on(self, rank: tuple[GranularMode, int]) -> bool:
        chance, borrowing = rank
        if chance in (GranularMode.NO_FIT, GranularMode.NO_CANDIDATES):
            return True
        if chance is not GranularMode.FIT and (self._fungibility.when_can_preempt or "TryNextFlavor") not in _MAY_STOP:
            return True
        return borrowing > 0 and (self._fungibility.when_can_borrow or "MayStopSearch") not in _MAY_STOP

    def _is_better(self, left: tuple[GranularMode, int], right: tuple[GranularMode, int]) -> bool:
        """Return whether one flavor is preferred to another."""
        if left[0] is GranularMode.NO_FIT:
            return False
        if right[0] is GranularMode.NO_FIT:
            return True
        if GranularMode.NO_CANDIDATES in (left[0], right[0]) and left[0] is not right[0]:
            return right[0] is GranularMode.NO_CANDIDATES
        by_chance, by_borrowing = left[0] - right[0], right[1] - left[1]
        if self._fungibility.preference == "PreemptionOverBorrowing":
            return (by_borrowing, by_chance) > (0, 0)
        return (by_chance, by_borrowing) > (0, 0)

    def _merge(
        self, known: dict[str, _Attempt], attempts: Iterable[_Attempt], resource: str, group: ResourceGroup
    ) -> None:
        seen = set()
        for attempt in attempts:
            seen.add(attempt.flavor)
            before = known.get(attempt.flavor)
            if before is None:
                known[attempt.flavor] = attempt
                continue
            chances = [each for each in (before.chance, attempt.chance) if each is not None]
            known[attempt.flavor] = _Attempt(
                attempt.flavor,
                min(before.mode, attempt.mode),
                max(before.borrowing, attempt.borrowing),
                min(chances, default=None),
                tuple(sorted({*before.reasons, *attempt.reasons})),
                _most_severe(before.cause, attempt.cause),
            )
        if not seen:
            return
        for name in {flavor.name for flavor in group.flavors} & known.keys() - seen:
            before = known[name]
            text = f"flavor {name} does not provide resource {resource}"
            reasons = tuple(sorted({*before.reasons, text}))
            known[name] = _Attempt(
                name, FlavorAssignmentMode.NO_FIT, before.borrowing, before.chance, reasons, _NO_MATCHING_FLAVOR
            )

    # --- whether a flavor is usable for these pods

    def _refusal(self, name: str, indices: Sequence[int], group: ResourceGroup) -> str:
        flavor = self._cache.flavors.get(name)
        if flavor is None:
            return f"flavor {name} not found"
        for index in indices:
            pod_set = self._job.workload.spec.pod_sets[index]
            if self._settings.enabled("TopologyAwareScheduling"):
                text = self._topology_mismatch(pod_set, flavor, group)
                if text:
                    return text
            spec = pod_set.template.spec
            taint = untolerated_taint(spec, flavor)
            if taint is not None:
                written = f"{{{taint.key} {taint.value} {taint.effect} <nil>}}"  # as Go prints the struct
                return f"untolerated taint {written} in flavor {name}"
            if not _matches(spec, flavor):
                return f"flavor {name} doesn't match node affinity"
        return ""

    def _topology_mismatch(self, pod_set: PodSet, flavor: ResourceFlavor, group: ResourceGroup) -> str:
        name = flavor.metadata.name
        has_topology = flavor.spec.topology_name is not None
        if not pod_set.requests_topology:
            if self._is_topology_only or not has_topology:
                return ""
            return f'Flavor "{name}" supports only TopologyAwareScheduling'
        if not has_topology:
            requested = pod_requests(pod_set.template.spec)
            if not any(resource in group.covered_resources for resource in requested):
                return ""
            return f'Flavor "{name}" does not support TopologyAwareScheduling'
        tree = self._topologies.get(name)
        if tree is None:
            return f'Flavor "{name}" information missing in TAS cache'
        if not tree.has_levels(pod_set.topology_request):
            return f'Flavor "{name}" does not contain the requested level'
        return ""

    # --- topology

    def _place(self, assignment: Assignment) -> None:
        requests = placement_requests(assignment, self._job, self._node.queue, self._cache)
        if assignment.mode is FlavorAssignmentMode.FIT:
            placements = self._cache.place(requests)
            failed = failure(placements)
            if failed is None:
                assignment.take_places(placements)
                return
            assignment.of(failed[0]).reasons.append(failed[1].failure)
            assignment.set_mode(FlavorAssignmentMode.PREEMPT, [failed[0]])
        if assignment.mode is not FlavorAssignmentMode.PREEMPT:
            return
        failed = failure(self._cache.place(requests, is_empty=True))
        if failed is None:
            assignment.set_mode(
                FlavorAssignmentMode.PREEMPT, [request.pod_set.name for each in requests.values() for request in each]
            )
            return
        if self._settings.enabled("UnadmittedWorkloadsObservability"):
            for attempt in assignment.of(failed[0]).attempts:
                if attempt.flavor == failed[1].flavor:
                    attempt.mode, attempt.cause = FlavorAssignmentMode.NO_FIT, _NO_PLACE
                    break
        assignment.set_mode(FlavorAssignmentMode.NO_FIT, [failed[0]])


def _sort_attempts(attempts: Mapping[str, _Attempt]) -> list[_Attempt]:
    return sorted(attempts.values(), key=lambda attempt: attempt.flavor)


def placement_requests(assignment: Assignment, job: Job, queue: ClusterQueue, cache: Cache) -> dict[str, list[Request]]:
    """Return the pod sets to place, by flavor. Pod sets that cannot be placed are marked in the assignment."""
    requests_by_flavor: dict[str, list[Request]] = {}
    is_topology_only = cache.is_topology_only(queue)
    topologies = cache.topologies_of(queue)
    for pod_set in job.workload.spec.pod_sets:
        if not pod_set.requests_topology and not is_topology_only:
            continue
        assigned = next((each for each in assignment.pod_sets if each.name == pod_set.name), None)
        if assigned is None or assigned.error or assigned.count == 0 or assigned.topology is not None:
            continue
        flavor = _topology_flavor(assigned.flavors, cache)
        if not topologies:
            assigned.error = _NO_TOPOLOGY_CACHE
        elif isinstance(flavor, list):
            assigned.error = (
                f"more than one TAS flavor assigned: {', '.join(flavor)}" if flavor else "no TAS flavor assigned"
            )
        elif cache.is_placement_delayed(queue, flavor, job):
            assigned.delayed_topology = "Pending"
        else:
            updates = tuple(
                update
                for check in job.checks
                for update in check.pod_set_updates
                if check.state == READY and update.name == pod_set.name
            )
            request = Request(
                pod_set=pod_set,
                single=pod_requests(pod_set.template.spec),
                count=assigned.count,
                is_implied=not pod_set.requests_topology,
                updates=updates,
            )
            requests_by_flavor.setdefault(flavor, []).append(request)
        if assigned.error:
            assignment._mode = None
    return requests_by_flavor


def _topology_flavor(flavors: Mapping[str, _Choice], cache: Cache) -> str | list[str]:
    """Return the only flavor with a topology, or all of them."""
    topologies = sorted({choice.flavor for choice in flavors.values() if choice.flavor in cache.topologies})
    return topologies[0] if len(topologies) == 1 else topologies


def untolerated_taint(spec: PodSpec, flavor: ResourceFlavor) -> Taint | None:
    tolerations = (*spec.tolerations, *flavor.spec.tolerations)
    return find_untolerated(flavor.spec.node_taints, tolerations, effects=DO_NOT_SCHEDULE, comparison=True)


def flavor_mismatch(spec: PodSpec, flavor: ResourceFlavor) -> str:
    """Return why a flavor's quota is not usable for pods with this spec, or an empty string."""
    taint = untolerated_taint(spec, flavor)
    if taint is not None:
        return f"untolerated taint {taint_text(taint)}"
    own, wanted = selector_conflict(spec, flavor)
    if wanted:
        return f"its nodes have {own}, and the pod selects {wanted}"
    return "" if _matches(spec, flavor) else "its labels do not match the pod's node affinity"


def selector_conflict(spec: PodSpec, flavor: ResourceFlavor) -> tuple[str, str]:
    """The labels of a flavor that differ from the pod's node selector, and what it selects; both may be empty."""
    labels, selector = flavor.spec.node_labels, spec.node_selector
    other = [key for key, value in selector.items() if labels.get(key, value) != value]
    return ", ".join(f"{key}={labels[key]}" for key in other), ", ".join(f"{key}={selector[key]}" for key in other)


def _matches(spec: PodSpec, flavor: ResourceFlavor) -> bool:
    """Match node selector and required affinity on the flavor's own label keys."""
    labels = flavor.spec.node_labels
    if any(labels[key] != value for key, value in spec.node_selector.items() if key in labels):
        return False
    required = spec.required_node_affinity
    if required is None:
        return True
    terms = tuple(_reduce_terms(required.node_selector_terms, labels))
    if not terms or any(term.is_empty for term in terms):
        return True
    return compile_node_selector(NodeSelector(node_selector_terms=terms)).matches(labels, "")


def _reduce_terms(terms: Iterable[NodeSelectorTerm], keys: Mapping[str, str]) -> Iterator[NodeSelectorTerm]:
    for term in terms:
        kept = tuple(expression for expression in term.match_expressions if expression.key in keys)
        yield NodeSelectorTerm(match_expressions=kept)
