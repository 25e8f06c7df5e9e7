"""Decisions about a pod that uses devices: whether a node can allocate them, why not, and the node's score."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from heapq import nlargest
from operator import itemgetter

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, UndecidableError
from kschedx.findings import (
    CapacityShortage,
    CounterShortage,
    DeviceClassNotFound,
    DeviceHolder,
    DeviceShortage,
    DevicesToAllocate,
    Finding,
    InsufficientDevices,
    PluginMessage,
)
from kschedx.framework.interface import Handle, NotPreparedError, PostFilterResult
from kschedx.framework.status import SUCCESS, Code, FilterOutcome, Status, Verdicts, unresolvable
from kschedx.kube.devices import (
    IN_MEMORY,
    MAX_ALTERNATIVES,
    AllocationMode,
    AllocationResult,
    Device,
    DeviceAllocationResult,
    DeviceAttribute,
    DeviceRequestAllocationResult,
    DeviceSelector,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
    language,
)
from kschedx.kube.documents import with_spec
from kschedx.kube.names import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages
from kschedx.kube.quantity import Unit, format_quantity, parse_quantity
from kschedx.kube.resources import nano_units, pod_request
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import CompiledNodeSelector, compile_node_selector
from kschedx.kube.types import Node, NodeAllocatableResourceClaimStatus, Pod
from kschedx.plugins.dynamic_resources import claims as extended_resources
from kschedx.plugins.dynamic_resources.allocator import AllocationSearch, Allocator, CheckedRequest
from kschedx.plugins.dynamic_resources.claims import (
    REASON_ALL_CLAIMS,
    REASON_DEALLOCATED,
    REASON_DELETED,
    REASON_NO_RESOURCE,
    REASON_STALE,
    REASON_STILL,
    REASON_UNAVAILABLE,
    REASON_UNRESERVED,
    PodClaim,
    RefusalError,
    check_bindings,
    consumers,
    extended_resource_claim,
    is_late,
    is_ready,
    out_of_reach,
    pod_claims,
    unreserved_by_group,
)
from kschedx.plugins.dynamic_resources.pools import (
    DeviceFeatures,
    DeviceID,
    FailureError,
    Pick,
    PooledDevice,
    Result,
    UnavailableError,
    allocated_state,
    allocation_reach,
    drawn,
    published_slices,
)
from kschedx.plugins.resource_allocation import amounts
from kschedx.snapshot.columns import IntArray, Memo, TableRow, TableRows
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.nodes import NodeTable

# Devices that use a node's allocatable resources, behind the gate DRANodeAllocatableResources. The cpu and memory that
# such devices use are added to the requests of the pod's containers and must fit on the node. Upstream:
# pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go.

_NANO = 10**9


def _refuses_sharing(claim: ResourceClaim, pod: Pod, nodes: NodeTable, row: TableRow) -> Status:
    """Return a failure if another pod on the node uses the claim, according to the pods' statuses."""
    name = claim.metadata.name
    users = set()
    for other in nodes.pods_on(row):
        if nodes.pods.namespaces[int(other)] != pod.metadata.namespace:
            continue
        statuses = nodes.pods.statuses[int(other)].node_allocatable_resource_claim_statuses
        if any(status.resource_claim_name == name for status in statuses):
            users.add(nodes.pods.uids[int(other)])
    if len(users) > 1:
        return _unschedulable(f"node allocatable resource claim {name} shared by multiple pods")
    if users and pod.metadata.uid not in users:
        return _unschedulable(f"node allocatable resource claim {name} is already used by another pod")
    return SUCCESS


def _fits_node_allocatable(
    handle: Handle,
    pod: Pod,
    claims: Sequence[PodClaim],
    result: Mapping[str, Sequence[Pick]],
    nodes: NodeTable,
    row: TableRow,
) -> Status:
    """Check that the pod fits with the resources that its new devices use. `result` is by claim name. Raises
    `FailureError`."""
    # upstream ignores the driver
    published = published_slices(handle.snapshot.devices, DeviceFeatures.of(handle.release))
    devices: _Devices = {}
    for resource_slice in published:
        for device in resource_slice.spec.devices:
            devices.setdefault((resource_slice.spec.pool.name, device.name), device)
    statuses = []
    are_mapped = False
    for name in sorted(result):
        if any(devices[pick.device.id[1:]].node_allocatable_resource_mappings for pick in result[name]):
            are_mapped = True
            status = _status(pod, claims, name, result[name], devices)
            if status is not None:
                statuses.append(status)
    if not are_mapped:
        return SUCCESS
    for status in statuses:
        if not status.containers:
            unused = "node-allocatable resource claim not referenced by any container within the pod"
            return _unschedulable(f"claim {status.resource_claim_name}: {unused}")
    return _demand_fits(pod, tuple(statuses), nodes, row)


_Devices = dict[tuple[str, str], Device]  # by pool and name


def _status(
    pod: Pod, claims: Sequence[PodClaim], claim: str, picks: Sequence[Pick], devices: _Devices
) -> NodeAllocatableResourceClaimStatus | None:
    """Return what a claim uses of the node and which containers use it, or None if it uses nothing."""
    total: dict[str, int] = {}
    for pick in picks:
        for resource, amount in _device_usage(pod, claim, pick, devices[pick.device.id[1:]]):
            total[resource] = total.get(resource, 0) + amount
    if not total:
        return None
    names = {pod_claim.name for pod_claim in claims if pod_claim.claim.metadata.name == claim}
    containers = [
        container.name
        for container in (*pod.spec.init_containers, *pod.spec.containers)
        for used in container.resources.claims
        if used.name in names
    ]
    return NodeAllocatableResourceClaimStatus(
        resource_claim_name=claim,
        containers=tuple(containers),
        resources={resource: f"{amount}n" for resource, amount in total.items()},
    )


def _device_usage(pod: Pod, claim: str, pick: Pick, device: Device) -> Iterator[tuple[str, int]]:
    """Yield what a device uses of each resource, in nano-units: a capacity, a constant, or a multiple of the
    capacity."""
    for resource, mapping in device.node_allocatable_resource_mappings.items():
        factor = None
        if mapping.allocation_multiplier is not None:
            factor = nano_units(mapping.allocation_multiplier)
        if not mapping.capacity_key:
            yield resource, factor or 0
            continue
        if not pick.share:
            key = f"Capacity key '{mapping.capacity_key}' is set in NodeAllocatableResourceMappings"
            whose = f"claim {pod.metadata.namespace}/{claim}, device {device.name}"
            raise FailureError(f"{whose}: ConsumedCapacity is nil, but {key} for resource {resource}")
        consumed = pick.share.get(mapping.capacity_key)
        if consumed is not None:
            # amounts are rounded up to nano-units
            yield resource, consumed if factor is None else -(-consumed * factor // _NANO)


def _demand_fits(
    pod: Pod, statuses: tuple[NodeAllocatableResourceClaimStatus, ...], nodes: NodeTable, row: TableRow
) -> Status:
    options = replace(nodes.options, use_status_resources=False, node_allocatable_claims=True)
    with_devices = replace(pod.status, node_allocatable_resource_claim_statuses=statuses)
    demand = pod_request(pod.spec, with_devices, options).amounts
    if nodes.options.pod_level_resources and pod.spec.resources is not None and pod.spec.resources.requests:
        parts = pod_request(pod.spec, with_devices, replace(options, pod_level_resources=False)).amounts
        for resource in sorted(demand):
            if parts.get(resource, 0) > demand[resource]:
                short = "is insufficient to cover the aggregated container and node-allocatable DRA requests"
                return _unschedulable(f"pod level request for {resource} {short}")
    reasons: list[str] = []
    never = False
    here = nodes.take(TableRows(np.array([row], dtype=np.int64)))
    for resource in (CPU, MEMORY, EPHEMERAL_STORAGE, *sorted(filter(is_hugepages, demand))):
        wanted = demand.get(resource, 0)
        allocatable = int(amounts(here, here.allocatable, resource)[0])
        free = allocatable - int(amounts(here, here.requested, resource)[0])
        if wanted > free and (wanted > 0 or is_hugepages(resource)):
            reasons.append(f"Insufficient {resource}")
            never |= wanted > allocatable
    if not reasons:
        return SUCCESS
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if never else Code.UNSCHEDULABLE
    findings = tuple(PluginMessage(text=f"{reason}, including the pod's devices") for reason in reasons)
    return Status(code=code, reasons=tuple(reasons), findings=findings)


def _unschedulable(text: str) -> Status:
    return unresolvable(text, PluginMessage(text=text))


# The score of a node: higher if claims get their preferred alternatives (computeScore).


def _score_of(claims: Sequence[ResourceClaim], result: Result) -> int:
    """Score earlier alternatives higher."""
    new = iter(result)
    score = 0
    for claim in claims:
        if claim.status.allocation is not None:
            names = {result.request for result in claim.status.allocation.devices.results}
        else:
            picks = next(new, None)
            if picks is None:
                had = f"number of allocations {len(result)} is smaller than number of claims needing allocation"
                raise NotPreparedError(had)
            names = {pick.request for pick in picks}
        for request in claim.spec.devices.requests:
            for position, subrequest in enumerate(request.first_available):
                if request.exactly is None and f"{request.name}/{subrequest.name}" in names:
                    score += MAX_ALTERNATIVES - position
    return score


# Why a node cannot allocate devices for a pod's claims: for each request, the devices and who uses them.

_SHOWN = 8  # the maximum number of reported counters


def _shortage(
    allocator: Allocator, devices: Devices, node: Node, claims: Sequence[ResourceClaim]
) -> tuple[Finding, ...]:
    """Explain why the node cannot allocate the claims."""
    search = AllocationSearch(allocator, node, claims)
    try:
        search.check()
        findings = [
            finding
            for index, claim in enumerate(claims)
            for position, options in enumerate(search.requests[index])
            for finding in _request_shortages(search, allocator, devices, claim, (index, position), options)
        ]
    except FailureError as failure:
        return (failure.finding,)
    rules = () if findings else tuple(text for claim in claims for text in _constraints(claim))
    return (
        InsufficientDevices(
            shortages=tuple(findings),
            claims=tuple(claim.key for claim in claims),
            constraints=rules if rules and _fits_unconstrained(allocator, node, claims) else (),
        ),
    )


def _fits_unconstrained(allocator: Allocator, node: Node, claims: Sequence[ResourceClaim]) -> bool:
    """Return whether the node can allocate the claims without their constraints; False if the search takes too long,
    or fails at a device that the constraints kept it from."""
    without = [with_spec(claim, devices=replace(claim.spec.devices, constraints=())) for claim in claims]
    try:
        return allocator.search(node, without) is not None
    except (FailureError, UnavailableError, UndecidableError):
        return False


_HOLDERS = Memo[Mapping[DeviceID, tuple[ResourceClaim, ...]]]()


def _holders(devices: Devices) -> Mapping[DeviceID, tuple[ResourceClaim, ...]]:
    """Return the claims that use each device, without admin access."""
    known: dict[DeviceID, tuple[ResourceClaim, ...]] = {}
    for claim in devices.claims.values():
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            if not result.admin_access:
                id_ = (result.driver, result.pool, result.device)
                known[id_] = (*known.get(id_, ()), claim)
    return known


def _request_shortages(
    search: AllocationSearch,
    allocator: Allocator,
    devices: Devices,
    claim: ResourceClaim,
    at: tuple[int, int],
    options: Sequence[CheckedRequest],
) -> list[DeviceShortage]:
    """Return the shortage of each alternative, or nothing if one of them could be allocated on its own."""
    accounts = [_Account(search, allocator, devices, (*at, number), checked) for number, checked in enumerate(options)]
    return [] if any(account.suffices for account in accounts) else [account.shortage(claim) for account in accounts]


class _Account:
    """One request, and the result of every device that the node can reach."""

    def __init__(
        self,
        search: AllocationSearch,
        allocator: Allocator,
        devices: Devices,
        at: tuple[int, int, int],
        checked: CheckedRequest,
    ) -> None:
        self._search, self._allocator, self._devices, self._checked = search, allocator, devices, checked
        self._of_class: list[PooledDevice] = []
        self._matching: list[PooledDevice] = []
        self._free: list[PooledDevice] = []
        self._holders: list[DeviceHolder] = []
        self._taints: Counter[str] = Counter()
        self._counters: dict[tuple[str, str], CounterShortage] = {}
        self._capacity: list[str] = []
        self._capacities: list[tuple[float, CapacityShortage]] = []  # with the part that is left of what is needed
        for device in search.devices:
            if self._matches(checked.device_class.spec.selectors, device):
                self._of_class.append(device)
                if self._matches(checked.wanted.selectors, device) and search.is_selectable(at, checked, device):
                    self._matching.append(device)
                    self._count_device(device)

    def _matches(self, selectors: Sequence[DeviceSelector], pooled_device: PooledDevice) -> bool:
        """An expression that fails on a device counts as false, if the search did not reach the device."""
        try:
            return self._search.matches_all("", selectors, pooled_device)
        except FailureError:
            return False

    @property
    def suffices(self) -> bool:
        if self._checked.wanted.allocation_mode == AllocationMode.ALL:
            return bool(self._matching) and len(self._free) == len(self._matching)
        return len(self._free) >= self._checked.wanted.count

    def _count_device(self, device: PooledDevice) -> None:
        wanted, features = self._checked.wanted, self._allocator.features
        name = f"{device.id[1]}/{device.id[2]}"
        if device.id in self._allocator.allocated.devices and not wanted.admin_access:
            devices = self._devices
            holders = _HOLDERS.of(devices.derived, lambda: _holders(devices))
            for claim in holders.get(device.id, ()):
                self._holders.append(DeviceHolder(device=name, claim=claim.key, consumers=consumers(claim)))
        elif features.taints and not wanted.tolerates(device.device.taints):
            self._taints.update(str(taint) for taint in device.device.taints if not wanted.tolerates((taint,)))
        elif not self._search.has_capacity(wanted, device):
            self._capacity.append(name)
            self._capacities += (
                (
                    left / needed,
                    CapacityShortage(device=name, capacity=short, needed=_quantity(needed), left=_quantity(left)),
                )
                for short, needed, left in self._search.short_capacities(wanted, device)
            )
        elif not self._has_counters(device):
            pass
        else:
            self._free.append(device)

    def _has_counters(self, device: PooledDevice) -> bool:
        left = self._allocator.available.of(device.pool)
        short = {
            counter: (amount, left[counter])
            for counter, amount in drawn(device.device)
            if counter in left and amount > left[counter]
        }
        for counter, (needed, rest) in short.items():
            self._counters.setdefault(
                (device.pool.name, "/".join(counter)),
                CounterShortage(
                    pool=device.pool.name, counter="/".join(counter), needed=_quantity(needed), left=_quantity(rest)
                ),
            )
        return not short and all(amount >= 0 for amount in left.values() if device.device.consumes_counters)

    def shortage(self, claim: ResourceClaim) -> DeviceShortage:
        wanted, failing = self._checked.wanted, self._failing_selectors()
        return DeviceShortage(
            claim=claim.key,
            request=wanted.full_name,
            device_class=wanted.device_class_name,
            wanted=None if wanted.allocation_mode == AllocationMode.ALL else wanted.count,
            in_reach=len(self._search.devices),
            of_class=len(self._of_class),
            matching=len(self._matching),
            free=len(self._free),
            selectors=failing,
            values=self._values(failing),
            holders=tuple(self._holders),
            taints=tuple(f"{taint} on {number}" for taint, number in sorted(self._taints.items())),
            counters=tuple(self._counters.values())[:_SHOWN],
            capacity=tuple(self._capacity),
            capacities=tuple(short for _, short in nlargest(_SHOWN, self._capacities, key=itemgetter(0))),
            updating=tuple("/".join(pool.id) for pool in self._search.pools if pool.is_incomplete),
        )

    def _values(self, expressions: Sequence[str]) -> tuple[str, ...]:
        names = {name for expression in expressions for name in language().names_in(expression)}
        counted: Counter[str] = Counter()
        for device in self._of_class or self._search.devices:
            for name, attribute in device.device.attributes.items():
                if name.rpartition("/")[2] in names:
                    counted[f"{name}={_text(attribute)}"] += 1
            for name, capacity in device.device.capacity.items():
                if name.rpartition("/")[2] in names:
                    counted[f"{name}={capacity.value}"] += 1
        return tuple(f"{text} on {number}" for text, number in sorted(counted.items()))

    def _failing_selectors(self) -> tuple[str, ...]:
        """Return the class's selectors if no device matches the class, otherwise the request's selectors that some
        device fails."""
        if not self._of_class:
            expressions = [it for it in self._checked.device_class.spec.selectors if it.cel is not None]
            candidates: Sequence[PooledDevice] = self._search.devices
        else:
            expressions = [selector for selector in self._checked.wanted.selectors if selector.cel is not None]
            candidates = self._of_class
        return tuple(
            each.cel.expression
            for each in expressions
            if each.cel is not None and not all(self._matches((each,), candidate) for candidate in candidates)
        )


def _constraints(claim: ResourceClaim) -> list[str]:
    texts = []
    for constraint in claim.spec.devices.constraints:
        whose = f" of {', '.join(constraint.requests)}" if constraint.requests else ""
        if constraint.match_attribute is not None:
            texts.append(f"all devices{whose} must have the same {constraint.match_attribute}")
        elif constraint.distinct_attribute is not None:
            texts.append(f"no two devices{whose} may have the same {constraint.distinct_attribute}")
    return texts


def _text(attribute: DeviceAttribute) -> str:
    values = (getattr(attribute, name) for name in attribute.__struct_fields__)
    value = next((value for value in values if value is not None), "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _format_amount(nano: int) -> str:
    """Format as a plain number if it is whole."""
    whole, rest = divmod(nano, _NANO)
    return f"{nano}n" if rest else str(whole)


def _quantity(nano: int) -> str:
    """Format as a quantity, because a counter may count bytes."""
    whole, rest = divmod(nano, _NANO)
    return str(parse_quantity(f"{nano}n")) if rest else format_quantity(whole, Unit.BYTE)


# The decision about a pod that uses devices: prepared once, then made for each node.

_NO_ALLOCATION = unresolvable(REASON_ALL_CLAIMS)
_UNAVAILABLE = unresolvable(REASON_UNAVAILABLE)  # a status whose details are computed on request


class _ClaimAnswer(Struct, frozen=True, kw_only=True):
    status: Status = SUCCESS
    result: Result | None = None  # for the claims that need devices
    unavailable: tuple[int, ...] = ()
    """Indexes of the allocated claims that reject the node, because it cannot use their devices."""


class DeviceDecision:
    """A pod with claims, its own or one for its extended resources. Without `claims`, there is nothing to decide."""

    def __init__(self, handle: Handle, pod: Pod, resources: Mapping[str, int], binding_timeout: int) -> None:
        """`resources` are extended resources that devices may provide. Raises `RefusalError` and `FailureError`."""
        self._handle = handle
        self._pod = pod
        self._resources = resources
        self._binding_timeout = binding_timeout
        self._features = DeviceFeatures.of(handle.release)
        snapshot = handle.snapshot
        self._own = pod_claims(pod, snapshot, of_groups=self._has_group_claims)
        self._extended: ResourceClaim | None = None
        if any(name in snapshot.devices.class_of_resource for name in resources):
            self._extended = extended_resource_claim(pod, snapshot) or extended_resources.empty_claim(pod)
        if self._has_group_claims:
            check_bindings(pod, snapshot)
        own = tuple(claim.claim for claim in self._own)
        self.claims = own if self._extended is None else (*own, self._extended)
        self._available_on: list[CompiledNodeSelector | None] = []
        for claim in self.claims:
            self._available_on.append(_node_selector(claim.status.allocation))
            if claim.status.allocation is None and claim is not self._extended:
                self._check_classes(claim)
        self._allocator: Allocator | None = None
        if any(claim.status.allocation is None for claim in self.claims):
            self._allocator = Allocator.of(snapshot.devices, self._features)
        self._answers: dict[str, tuple[int, _ClaimAnswer]] = {}
        """Results by node name, with the version of the allocations from the node's pools."""

    @property
    def _has_group_claims(self) -> bool:
        return self._handle.release.enabled("DRAWorkloadResourceClaims")

    def _check_classes(self, claim: ResourceClaim) -> None:
        """Check that the device class of every request exists."""
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                self._check_class(claim, request.exactly.device_class_name, request.name)
            elif request.first_available:
                if not self._features.prioritized_list:
                    gate = "has subrequests, but the DRAPrioritizedList feature is disabled"
                    raise RefusalError(f"resource claim {claim.key}, request {request.name}: {gate}")
                for subrequest in request.first_available:
                    self._check_class(claim, subrequest.device_class_name, f"{request.name}/{subrequest.name}")
            else:
                raise RefusalError(f"resource claim {claim.key}, request {request.name}: unknown request type")

    def _check_class(self, claim: ResourceClaim, name: str, request: str) -> None:
        if not name:
            raise FailureError(f"request {request}: unsupported request type")
        classes = self._handle.snapshot.devices.classes
        if name not in classes:
            known = tuple(sorted(classes))
            missing = DeviceClassNotFound(claim=claim.key, request=request, device_class=name, classes=known)
            raise RefusalError(f"request {request}: device class {name} does not exist", missing)

    # --- nodes

    def filter(self, nodes: NodeTable) -> Verdicts:
        if self._allocator is not None:
            self._allocator.steps = 0
            allocated_state(self._handle.snapshot.devices, shares=self._features.consumable_capacity)
        statuses = [self._answer_for_node(nodes, row).status for row in nodes.each()]
        return replace(Verdicts.of_rows(statuses), explain=lambda row: self._explain(nodes.node(row), statuses[row]))

    def _explain(self, node: Node, status: Status) -> tuple[Finding, ...]:
        if status is _NO_ALLOCATION and self._allocator is not None:
            return _shortage(self._allocator, self._handle.snapshot.devices, node, self._wanted_claims(node))
        if status is _UNAVAILABLE:
            indexes = [index for index in range(len(self.claims)) if not self._is_available(index, node)]
            return tuple(out_of_reach(self.claims[index], node, self._available_on[index]) for index in indexes)
        return status.findings

    def _answer_for_node(self, nodes: NodeTable, row: TableRow) -> _ClaimAnswer:
        """Return the result for a node. It does not depend on the node's pods, unless devices use what pods request."""
        name = nodes.name(row)
        version = 0 if self._allocator is None else self._allocator.version(nodes.node(row))
        known, answer = self._answers.get(name, (-1, None))
        if answer is None or known != version or self._counts_node_allocatable:
            try:
                answer = self._ask(nodes, row)
            except FailureError as failure:
                answer = _ClaimAnswer(status=failure_status(failure))
            except UnavailableError as unavailable:
                answer = _ClaimAnswer(status=_unschedulable(str(unavailable)))
            except UndecidableError as unknown:
                raise UndecidableError(f"Pod {self._pod.key} requests devices: {unknown}") from None
            self._answers[name] = version, answer
        return answer

    @cached_property
    def _counts_node_allocatable(self) -> bool:
        return self._handle.release.enabled("DRANodeAllocatableResources")

    def _ask(self, nodes: NodeTable, row: TableRow) -> _ClaimAnswer:
        node, pod = nodes.node(row), self._pod
        if self._extended is not None:
            if self._extended.spec.devices.requests:
                return _ClaimAnswer(status=_unschedulable(REASON_STALE))
            class_of = self._devices_for(node)
            if class_of is None:
                return _ClaimAnswer(status=_unschedulable(REASON_NO_RESOURCE))
            if not self._own and (self._extended.status.allocation is not None or not class_of):
                return _ClaimAnswer()
        unavailable: list[int] = []
        for index, claim in enumerate(self.claims):
            if not self._is_available(index, node):
                unavailable.append(index)
            elif self._counts_node_allocatable and claim.status.allocation is not None:
                shared = _refuses_sharing(claim, pod, nodes, row)
                if not shared.is_success:
                    return _ClaimAnswer(status=shared)
        result: Result | None = None
        if self._allocator is not None:
            wanted = self._wanted_claims(node)
            result = self._allocator.allocate(node, wanted)
            if result is None:
                return _ClaimAnswer(status=_NO_ALLOCATION)
            if self._counts_node_allocatable:
                picks = {claim.metadata.name: picks for claim, picks in zip(wanted, result, strict=True)}
                too_much = _fits_node_allocatable(self._handle, pod, self._own, picks, nodes, row)
                if not too_much.is_success:
                    return _ClaimAnswer(status=too_much)
        if unavailable:
            return _ClaimAnswer(status=_UNAVAILABLE, unavailable=tuple(unavailable))
        return _ClaimAnswer(result=result)

    def _wanted_claims(self, node: Node) -> list[ResourceClaim]:
        wanted = [claim.claim for claim in self._own if claim.claim.status.allocation is None]
        if self._extended is not None and self._extended.status.allocation is None:
            wanted.append(extended_resources.claim_for(self._extended, self._pod, self._devices_for(node) or {}))
        return wanted

    def _devices_for(self, node: Node) -> dict[str, str] | None:
        """The device class of each resource that the node does not offer itself; None if a resource has neither."""
        classes = self._handle.snapshot.devices.class_of_resource
        devices: dict[str, str] = {}
        for resource in self._resources:
            offered = node.status.allocatable.get(resource)
            if resource in classes and (offered is None or nano_units(offered) == 0):
                devices[resource] = classes[resource]
            elif offered is None:
                return None
        return devices

    def _is_available(self, index: int, node: Node) -> bool:
        """Return False for an allocated claim if the node cannot use its devices, or if they will not become ready."""
        claim, reachable = self.claims[index], self._available_on[index]
        if reachable is not None and not reachable.matches(node.metadata.labels, node.name):
            return False
        if claim.status.allocation is None or not self._features.binding_conditions:
            return True
        ready = is_ready(claim)
        return ready is not None and (ready or not is_late(claim, self._binding_timeout, self._now))

    @cached_property
    def _now(self) -> int:
        """The time of the snapshot, as far as it is known."""
        try:
            return nanoseconds(self._handle.snapshot.taken.removesuffix(" or later"))
        except InputError:
            return time.time_ns()

    # --- after Filter

    def help(self, plugin: str, nodes: NodeTable, outcome: FilterOutcome | Status) -> PostFilterResult:
        """Decide what kube-scheduler changes if no node is feasible, so that a later attempt can succeed. `GroupError`
        and `RefusalError` become error statuses."""
        for index in sorted(self._unavailable_claims(plugin, nodes, outcome)):
            claim = self.claims[index]
            consumers = claim.status.reserved_for
            is_free = not consumers or (len(consumers) == 1 and consumers[0].uid == self._pod.metadata.uid)
            if claim is not self._extended and is_free:
                return _post_filter_result(
                    REASON_DEALLOCATED, {claim.key: replace(claim, status=ResourceClaimStatus())}
                )
        if self._extended is not None and self._extended.metadata.name != IN_MEMORY:
            return _post_filter_result(REASON_DELETED, {self._extended.key: None})
        unreserved = unreserved_by_group(self._pod, self._handle.snapshot) if self._has_group_claims else None
        if unreserved is not None:
            return _post_filter_result(
                REASON_UNRESERVED, {unreserved.key: unreserved}, Code.UNSCHEDULABLE_AND_UNRESOLVABLE
            )
        return _post_filter_result(REASON_STILL)

    def _unavailable_claims(self, plugin: str, nodes: NodeTable, outcome: FilterOutcome | Status) -> set[int]:
        """Return the claims that rejected a node, among the nodes that no earlier plugin rejected."""
        if isinstance(outcome, Status) or plugin not in outcome.plugins:
            return set()
        mine = nodes.names_where(outcome.plugin == outcome.plugins.index(plugin))
        answers = (self._answers[name][1] for name in mine if name in self._answers)
        return {index for answer in answers for index in answer.unavailable}

    def score(self, nodes: NodeTable) -> IntArray:
        """(node,) higher if earlier alternatives are allocated."""
        scores = np.zeros(len(nodes), dtype=np.int64)
        if self._allocator is None or not self._has_alternatives:
            return scores
        for row in nodes.each():
            answer = self._answer_for_node(nodes, row)
            if answer.result is not None:
                scores[row] = _score_of(self.claims, answer.result)
        return scores

    @property
    def _has_alternatives(self) -> bool:
        if self._extended is not None:
            return True  # a claim may be missing in the result, which is an error
        return any(request.first_available for claim in self.claims for request in claim.spec.devices.requests)

    def plan(self, node: str) -> tuple[Finding, ...]:
        """Return the devices that the claims would get on a node that Filter has evaluated."""
        _, answer = self._answers.get(node, (0, _ClaimAnswer()))
        if not answer.result:
            return ()
        new = (claim for claim in self.claims if claim.status.allocation is None)
        return tuple(self._to_allocate(claim, picks) for claim, picks in zip(new, answer.result, strict=True))

    def _to_allocate(self, claim: ResourceClaim, picks: Sequence[Pick]) -> DevicesToAllocate:
        conditions = dict.fromkeys(name for pick in picks for name in pick.device.device.binding_conditions)
        waits_for = tuple(conditions) if self._features.binding_conditions else ()
        return DevicesToAllocate(
            claim=claim.key,
            devices=tuple("/".join(pick.device.id) for pick in picks),
            requests=tuple(pick.request for pick in picks),
            binding_conditions=waits_for,
            binding_timeout=self._binding_timeout // 10**9 if waits_for else 0,
        )

    def allocated_claims(self, node: Node) -> dict[str, ResourceClaim]:
        """Return the pod's claims after it is bound to a node that Filter has evaluated: allocated and reserved for it,
        by `namespace/name`."""
        _, answer = self._answers.get(node.name, (0, _ClaimAnswer()))
        picks = iter(answer.result or ())
        consumer = ResourceClaimConsumerReference(
            resource="pods", name=self._pod.metadata.name, uid=self._pod.metadata.uid
        )
        changed: dict[str, ResourceClaim] = {}
        for claim in self.claims:
            new_claim, status = claim, claim.status
            if claim is self._extended and status.allocation is None:
                new_claim = extended_resources.written_claim(claim, self._pod, self._devices_for(node) or {})
            if status.allocation is None:
                picked = next(picks, None)
                if picked is None:
                    continue  # for extended resources that the node offers itself
                status = replace(status, allocation=allocation_result(node, new_claim, picked))
            new_claim = replace(new_claim, status=replace(status, reserved_for=(*status.reserved_for, consumer)))
            changed[new_claim.key] = new_claim
        return changed


def allocation_result(node: Node, claim: ResourceClaim, picks: Sequence[Pick]) -> AllocationResult:
    """Build the allocation. kube-scheduler gives a share a random id."""
    results = tuple(
        DeviceRequestAllocationResult(
            request=pick.request,
            driver=pick.device.id[0],
            pool=pick.device.id[1],
            device=pick.device.id[2],
            admin_access=pick.admin_access,
            share_id=None if pick.share is None else f"{claim.key}/{number}",
            consumed_capacity=None
            if pick.share is None
            else {name: _format_amount(n) for name, n in pick.share.items()},
        )
        for number, pick in enumerate(picks)
    )
    reach = allocation_reach(node.name, claim, picks)
    return AllocationResult(devices=DeviceAllocationResult(results=results), node_selector=reach)


def _post_filter_result(
    text: str, released: Mapping[str, ResourceClaim | None] | None = None, code: Code = Code.UNSCHEDULABLE
) -> PostFilterResult:
    return PostFilterResult(status=Status(code=code, reasons=(text,)), released=released or {})


def failure_status(failure: FailureError) -> Status:
    return Status(code=Code.ERROR, reasons=(str(failure),), findings=(failure.finding,))


def _node_selector(allocation: AllocationResult | None) -> CompiledNodeSelector | None:
    if allocation is None or allocation.node_selector is None:
        return None
    try:
        return compile_node_selector(allocation.node_selector).check()
    except InputError as wrong:
        raise FailureError(str(wrong)) from None
