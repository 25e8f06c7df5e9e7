"""Devices that a round of Karpenter allocates for pods with ResourceClaims, with `--ignore-dra-requests=false`.

Nodes have what their ResourceSlices publish. A new node has the network-attached devices that its labels reach, and
what the cloud says about its instance type, which is in no cluster: a file of instance types can say it.

Upstream: pkg/scheduling/dynamicresources, controllers/provisioning/dra.go of 1.14.1. The search is kube-scheduler's,
with Karpenter's differences: taints, admin access, and node selectors of single devices are ignored, alternatives and
distinctAttribute are errors, and a selector that fails does not match.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.karpenter.instance_types import InstanceType
from kschedx.karpenter.nodes import StateNode
from kschedx.karpenter.requirements import Requirements
from kschedx.kube.devices import (
    MAX_DEVICES_OF_CLAIM,
    AllocationMode,
    CompileError,
    DeviceClass,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    EvaluationError,
    ResourceClaim,
    ResourceSlice,
    ResourceSliceSpec,
    language,
)
from kschedx.kube.resources import nano_units
from kschedx.kube.selectors import NodeSelector, terms_of
from kschedx.kube.types import Node, ObjectMeta, Pod
from kschedx.plugins.dynamic_resources.allocator import (
    AllocationSearch,
    Allocator,
    CheckedRequest,
    RequestAlternative,
    SearchOutcome,
    Solutions,
    alternatives,
)
from kschedx.plugins.dynamic_resources.decision import allocation_result
from kschedx.plugins.dynamic_resources.pools import (
    AllocatedState,
    DeviceFeatures,
    FailureError,
    PooledDevice,
    Result,
    Slices,
)
from kschedx.snapshot.devices import ClaimChange
from kschedx.snapshot.snapshot import Snapshot

_FEATURES = DeviceFeatures(
    admin_access=True,
    prioritized_list=True,
    partitionable=True,
    taints=False,
    taint_rules=False,
    binding_conditions=True,
    consumable_capacity=True,
    knows_consumable_capacity=True,
    list_attributes=False,
    knows_list_attributes=False,
)
OF_DEVICES = "allocating dynamic resources, "  # how messages about claims begin
_OF_TYPE = "~"  # the prefix of an instance type's pools, so that they are tried after those of the cluster
_ELSEWHERE = "~"  # a name that no node has


class NoDevices(Struct, frozen=True, kw_only=True):
    """A node cannot allocate the pod's claims."""

    text: str
    is_known: bool = True  # False if the devices of the instance types are unknown


class ClaimAllocation(Struct, frozen=True, kw_only=True):
    """The devices for a pod's claims on a node."""

    node: str
    requirements: Requirements  # the devices' requirements on the node
    claims_by_type: Mapping[str, tuple[ResourceClaim, ...]]
    """The claims allocated for the pod by instance type; no type for an existing node."""


class _AllocatedClaim(Struct, frozen=True, kw_only=True):
    node: str
    requirements: Requirements
    by_type: Mapping[str, ResourceClaim]
    counted: ResourceClaim  # the maximum that any type uses of the cluster's devices

    @property
    def is_bound_to_node(self) -> bool:
        """Whether it has devices of an instance type, which no other node reaches."""
        return any(result.pool.startswith(_OF_TYPE) for claim in self.by_type.values() for result in _results(claim))


class RoundDevices:
    """The devices of a round. Node-local slices count if the node is initialized and stays. `leaving`: uids of the pods
    on nodes that are being disrupted, whose devices are free."""

    def __init__(self, snapshot: Snapshot, nodes: Sequence[StateNode], leaving: Collection[str]) -> None:
        devices = snapshot.devices
        initialized = {node.name for node in nodes if node.is_initialized}
        self._devices, self._leaving = devices, leaving
        self._solutions = Solutions(devices.classes, _FEATURES)
        counted = [claim for claim in devices.claims.values() if not self._is_leaving(claim)]
        self._allocated = AllocatedState(counted, shares=True)
        self._changes: list[ClaimChange] = []
        self._placed: dict[str, _AllocatedClaim] = {}
        self._of_node: dict[str, list[ResourceSlice]] = defaultdict(list)
        self._shared: list[ResourceSlice] = []
        self._of_pool: dict[tuple[str, str], list[ResourceSlice]] = defaultdict(list)
        self._reached: dict[tuple[str, tuple[int, ...]], tuple[Slices, Node]] = {}
        for published in devices.slices:
            owner = next((it.name for it in published.metadata.owner_references if it.kind == "Node"), "")
            if owner and owner not in initialized:
                continue
            spec = published.spec
            self._of_pool[spec.driver, spec.pool.name].append(published)
            if spec.node_name and not spec.shared_counters:
                self._of_node[spec.node_name].append(published)
            else:
                self._shared.append(published)

    def claims_of(self, pod: Pod) -> tuple[ResourceClaim, ...] | NoDevices:
        """Return the pod's claims. A claim that will be generated from a template counts as if it existed."""
        claims: list[ResourceClaim] = []
        names = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
        namespace = pod.metadata.namespace
        for reference in pod.spec.resource_claims:
            name = reference.resource_claim_name
            if name is None and reference.name in names:
                name = names[reference.name]
                if name is None:
                    continue
            if name is None:
                spec = self._devices.templates.get(f"{namespace}/{reference.resource_claim_template_name}")
                if spec is not None:
                    metadata = ObjectMeta(name=f"{pod.metadata.name}-{reference.name}", namespace=namespace)
                    claims.append(_without_admin_access(ResourceClaim(metadata=metadata, spec=spec)))
                continue
            key = f"{namespace}/{name}"
            claim = self._devices.claims.get(key)
            if claim is None:
                return NoDevices(text=f"resourceclaim {json.dumps(key)} not found")
            claims.append(_without_admin_access(claim))
        return tuple(claims)

    def commit(self, allocation: ClaimAllocation, types: Iterable[str]) -> None:
        """Allocate the devices for the possible types of the node."""
        kept = set(types)
        by_claim: dict[str, dict[str, ResourceClaim]] = defaultdict(dict)
        for name, claims in allocation.claims_by_type.items():
            for claim in claims:
                if not name or name in kept:
                    by_claim[claim.key][name] = claim
        self._give_back(allocation.node, allocation.claims_by_type.keys() - kept - {""})
        for key, by_type in by_claim.items():
            counted = _most(by_type.values())
            self._placed[key] = _AllocatedClaim(
                node=allocation.node, requirements=allocation.requirements, by_type=by_type, counted=counted
            )
            self._change(None, counted)

    def _give_back(self, node: str, types: Collection[str]) -> None:
        """Release what was allocated on a new node for types that it can no longer have."""
        for key, placed in self._placed.items():
            if placed.node == node and not placed.by_type.keys().isdisjoint(types):
                by_type = {name: claim for name, claim in placed.by_type.items() if name not in types}
                counted = _most(by_type.values())
                self._change(placed.counted, counted)
                self._placed[key] = replace(placed, by_type=by_type, counted=counted)

    def _change(self, before: ResourceClaim | None, after: ResourceClaim | None) -> None:
        self._changes.append((before, after))
        self._allocated.follow(self._changes)

    def _is_leaving(self, claim: ResourceClaim) -> bool:
        """Return whether all consumers are on nodes that are being disrupted."""
        consumers = claim.status.reserved_for
        return bool(consumers) and all(
            consumer.resource == "pods" and not consumer.api_group and consumer.uid in self._leaving
            for consumer in consumers
        )

    def allocate(
        self,
        host_name: str,
        node_name: str,
        requirements: Requirements,
        claims: Sequence[ResourceClaim],
        types: Sequence[InstanceType],
        allowed: frozenset[str],
    ) -> ClaimAllocation | NoDevices:
        """Allocate for an existing node, which has a `node_name`, or for a new one. `types`: its possible types, unless
        it publishes its devices itself."""
        new: list[ResourceClaim] = []
        for claim in claims:
            known = self._allocated_requirements(claim, host_name, requirements, allowed)
            if known is None:
                new.append(claim)
            elif isinstance(known, NoDevices):
                return known
            else:
                requirements = requirements.together(known.values())
        if not new:
            names = [instance_type.name for instance_type in types] or [""]
            return ClaimAllocation(node=host_name, requirements=requirements, claims_by_type=dict.fromkeys(names, ()))
        return self._allocate_new(host_name, node_name, requirements, new, types, allowed)

    def _allocate_new(
        self,
        host_name: str,
        node_name: str,
        requirements: Requirements,
        new: Sequence[ResourceClaim],
        types: Sequence[InstanceType],
        allowed: frozenset[str],
    ) -> ClaimAllocation | NoDevices:
        """Allocate claims that have no devices yet, for each type by itself."""
        allocated: dict[str, tuple[ResourceClaim, ...]] = {}
        contributed, is_unknown = Requirements(), False
        answers: dict[tuple[int, ...], tuple[ResourceClaim, ...] | None] = {}
        pruned: dict[int, bool] = {}
        of_types = [(instance_type.name, instance_type.resource_slices) for instance_type in types]
        for name, slices in of_types or [("", ())]:
            mine = [it.by_type[name] for it in self._placed.values() if it.node == host_name and name in it.by_type]
            key = (id(slices), *map(id, mine))
            if key not in answers:
                search = self._search(host_name, node_name, requirements, new, slices or (), mine, allowed, pruned)
                if isinstance(search, NoDevices):
                    return search
                answers[key] = None
                if search is not None:
                    answers[key], needed = search
                    requirements = requirements.together(needed.values())
                    contributed = contributed.together(needed.values())
            answer = answers[key]
            if slices is None and (answer is None or _requests_all(new)):
                is_unknown = True
            elif answer is not None:
                allocated[name] = answer
        if True in pruned.values():
            name = json.dumps(new[min(at for at, is_pruned in pruned.items() if is_pruned)].metadata.name)
            why = "all instance types pruned, no instance type can satisfy this claim without exceeding the maximum of"
            text = f"{OF_DEVICES}validating claim {name}: claim {name}: {why} {MAX_DEVICES_OF_CLAIM} devices"
            return NoDevices(text=text, is_known=not is_unknown)
        if not allocated:
            return NoDevices(text=f"{OF_DEVICES}no instance type can satisfy the allocation", is_known=not is_unknown)
        return ClaimAllocation(node=host_name, requirements=contributed, claims_by_type=allocated)

    def _allocated_requirements(
        self, claim: ResourceClaim, host_name: str, requirements: Requirements, allowed: frozenset[str]
    ) -> Requirements | NoDevices | None:
        """Return the requirements of an allocated claim on the node; None if it is not allocated."""
        allocation, placed = claim.status.allocation, self._placed.get(claim.key)
        if allocation is not None and not self._is_leaving(claim):
            own = _all_terms(allocation.node_selector)
        elif placed is None:
            return None
        elif placed.is_bound_to_node and placed.node != host_name:
            bound = "claim is bound to a different in-flight NodeClaim"
            return NoDevices(text=f"{OF_DEVICES}{bound} (ResourceClaim={claim.key})")
        else:
            own = Requirements() if placed.is_bound_to_node else placed.requirements
        if requirements.is_compatible(own, allowed):
            return own
        place = "in-memory" if placed is not None else "in-cluster"
        wrong = f"{place} allocation topology is incompatible with NodeClaim requirements"
        return NoDevices(text=f"{OF_DEVICES}{wrong} (ResourceClaim={claim.key})")

    def _search(
        self,
        host_name: str,
        node_name: str,
        requirements: Requirements,
        claims: Sequence[ResourceClaim],
        own: Sequence[ResourceSlice],
        mine: Sequence[ResourceClaim],
        allowed: frozenset[str],
        pruned: dict[int, bool],
    ) -> tuple[tuple[ResourceClaim, ...], Requirements] | NoDevices | None:
        """Return the allocated claims and the devices' requirements on the node; None if there are no devices. `pruned`
        records for claims, by number, whether every type so far would publish too many devices."""
        slices, node = self._slices(node_name, requirements, own, allowed)
        others = [placed.counted for placed in self._placed.values() if placed.node == host_name]
        swaps = [(claim, None) for claim in others] + [(None, claim) for claim in mine]
        for before, after in swaps:
            self._change(before, after)
        allocator = Allocator(_FEATURES, self._allocated, self._devices.classes, slices, self._solutions)
        search = _Search(allocator, node, claims, requirements, allowed)
        try:
            result = search.run()
        except FailureError as error:
            return NoDevices(text=f"{OF_DEVICES}{error}")
        finally:
            for before, after in reversed(swaps):
                self._change(after, before)
        for at in search.with_own:
            pruned[at] = pruned.get(at, True) and at in search.pruned
        if result is None:
            return None
        allocated = tuple(
            replace(claim, status=replace(claim.status, allocation=allocation_result(node, claim, picks)))
            for claim, picks in zip(claims, result, strict=True)
        )
        return allocated, search.needed

    def _slices(
        self, node_name: str, requirements: Requirements, own: Sequence[ResourceSlice], allowed: frozenset[str]
    ) -> tuple[Slices, Node]:
        matched = [*self._of_node.get(node_name, ()), *own]
        for resource_slice in self._shared:
            selector = resource_slice.spec.node_selector
            terms = terms_of(selector)
            if resource_slice.spec.all_nodes or any(
                requirements.is_compatible(Requirements.of_expressions(term.match_expressions), allowed)
                for term in terms
            ):
                matched.append(resource_slice)
        key = node_name, tuple(map(id, matched))
        if key not in self._reached:
            reached = {id(item) for item in matched}
            pools = {(item.spec.driver, item.spec.pool.name) for item in matched if not _is_of_type(item)}
            every = [resource_slice for pool in sorted(pools) for resource_slice in self._of_pool[pool]]
            resource_slices = [_with_reach(it, is_reached=id(it) in reached) for it in every] + list(own)
            self._reached[key] = Slices(resource_slices, partitionable=True), Node(metadata=ObjectMeta(name=node_name))
        return self._reached[key]


class PodDevices:
    """The claims of one pod in a round."""

    def __init__(self, devices: RoundDevices, claims: Sequence[ResourceClaim], allowed: frozenset[str]) -> None:
        self._devices, self._claims, self._allowed = devices, claims, allowed
        self._allocation: ClaimAllocation | None = None

    def allocate_on_node(
        self, state: StateNode, requirements: Requirements, instance_type: InstanceType | None
    ) -> ClaimAllocation | NoDevices:
        """Allocate on an existing node. Before it is initialized, it has the devices of its instance type."""
        name = state.node.name if state.node is not None else ""
        types = (instance_type,) if instance_type is not None and not state.is_initialized else ()
        return self._kept(self._devices.allocate(state.name, name, requirements, self._claims, types, self._allowed))

    def allocate_on_types(
        self, host_name: str, requirements: Requirements, types: Sequence[InstanceType]
    ) -> ClaimAllocation | NoDevices:
        """Allocate on a new node."""
        return self._kept(self._devices.allocate(host_name, "", requirements, self._claims, types, self._allowed))

    def commit(self, types: Iterable[InstanceType]) -> None:
        """Commit the last allocation for the possible types of the node."""
        if self._allocation is not None:
            self._devices.commit(self._allocation, [instance_type.name for instance_type in types])

    def _kept(self, answer: ClaimAllocation | NoDevices) -> ClaimAllocation | NoDevices:
        self._allocation = answer if isinstance(answer, ClaimAllocation) else None
        return answer


def template_slices(written: Sequence[ResourceSliceSpec]) -> tuple[ResourceSlice, ...]:
    """Return an instance type's devices as slices that only its node reaches."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for resource_slice in written:
        counts[resource_slice.driver, resource_slice.pool.name] += 1
    resource_slices: list[ResourceSlice] = []
    for number, resource_slice in enumerate(written):
        wanted = counts[resource_slice.driver, resource_slice.pool.name]
        pool = replace(
            resource_slice.pool, name=_OF_TYPE + resource_slice.pool.name, generation=0, resource_slice_count=wanted
        )
        spec = replace(resource_slice, pool=pool, node_name=None, node_selector=None, all_nodes=True)
        resource_slices.append(ResourceSlice(metadata=ObjectMeta(name=f"{_OF_TYPE}{number:04d}"), spec=spec))
    return tuple(resource_slices)


def published_by(node: str, slices: Sequence[ResourceSlice]) -> Iterator[ResourceSlice]:
    """Yield the slices of an instance type after its node exists."""
    for number, resource_slice in enumerate(slices):
        pool = replace(resource_slice.spec.pool, name=f"{node}-{resource_slice.spec.pool.name.removeprefix(_OF_TYPE)}")
        spec = replace(resource_slice.spec, pool=pool, node_name=node, all_nodes=False)
        yield replace(resource_slice, metadata=ObjectMeta(name=f"{node}-{number}"), spec=spec)


def _is_of_type(resource_slice: ResourceSlice) -> bool:
    return resource_slice.spec.pool.name.startswith(_OF_TYPE)


def _with_reach(resource_slice: ResourceSlice, *, is_reached: bool) -> ResourceSlice:
    """Return the slice so that every node reaches it, or none. Its selector stays for its requirements."""
    if resource_slice.spec.shared_counters or (is_reached and resource_slice.spec.node_name):
        return resource_slice
    spec = replace(resource_slice.spec, per_device_node_selection=None)
    reach = replace(spec, all_nodes=True) if is_reached else replace(spec, all_nodes=False, node_name=_ELSEWHERE)
    return replace(resource_slice, spec=reach)


def _results(claim: ResourceClaim) -> tuple[DeviceRequestAllocationResult, ...]:
    allocation = claim.status.allocation
    return allocation.devices.results if allocation is not None else ()


def _most(claims: Iterable[ResourceClaim]) -> ResourceClaim:
    """Return one claim with all cluster devices that any type uses; for shared ones, the largest share."""
    every = tuple(claims)
    results: dict[tuple[str, str, str], DeviceRequestAllocationResult] = {}
    for device_result in (result for claim in every for result in _results(claim)):
        if device_result.pool.startswith(_OF_TYPE):
            continue
        key = (device_result.driver, device_result.pool, device_result.device)
        known = results.get(key)
        if known is None or _size(device_result) > _size(known):
            results[key] = device_result
    claim = every[0]
    assert claim.status.allocation is not None, "only allocated claims are committed"
    devices = replace(claim.status.allocation.devices, results=tuple(results.values()))
    return replace(claim, status=replace(claim.status, allocation=replace(claim.status.allocation, devices=devices)))


def _size(result: DeviceRequestAllocationResult) -> int:
    return sum(nano_units(amount) for amount in (result.consumed_capacity or {}).values())


def _requests_all(claims: Iterable[ResourceClaim]) -> bool:
    requests = (request for claim in claims for request in claim.spec.devices.requests)
    return any(alternative.allocation_mode == AllocationMode.ALL for it in requests for alternative in alternatives(it))


def _without_admin_access(claim: ResourceClaim) -> ResourceClaim:
    requests = claim.spec.devices.requests
    if not any(request.exactly is not None and request.exactly.admin_access for request in requests):
        return claim
    devices = replace(claim.spec.devices, requests=tuple(map(_exclusive, requests)))
    return replace(claim, spec=replace(claim.spec, devices=devices))


def _exclusive(request: DeviceRequest) -> DeviceRequest:
    return replace(request, exactly=replace(request.exactly, admin_access=None)) if request.exactly else request


class _Search(AllocationSearch):
    """Karpenter's search on a node or an instance type. `needed`: the devices' requirements on the node."""

    def __init__(
        self,
        allocator: Allocator,
        node: Node,
        claims: Sequence[ResourceClaim],
        requirements: Requirements,
        allowed: frozenset[str],
    ) -> None:
        super().__init__(allocator, node, claims)
        self._allowed = allowed
        self._required = [requirements]  # the requirements on the node before the first pick and after each
        self._wants_all = False
        self.with_own = set[int]()
        """Claims, by number, that request all matching devices, some of which the instance type would publish."""
        self.pruned = set[int]()  # claims in `with_own` that get none of these devices, because they would be too many

    @property
    def needed(self) -> Requirements:
        selectors = (pick.device.slice.spec.node_selector for picks in self._picks for pick in picks)
        return Requirements(need for selector in selectors for need in _all_terms(selector).values())

    def run(self) -> Result | None:
        self.check()
        return tuple(tuple(picks) for picks in self._picks) if self.finds_all() else None

    def _check(self, index: int, claim: ResourceClaim) -> None:
        name = json.dumps(claim.metadata.name)
        try:
            if any(constraint.distinct_attribute is not None for constraint in claim.spec.devices.constraints):
                raise FailureError(f"claim {name}: DistinctAttribute constraints not done yet")
            for request in claim.spec.devices.requests:
                if request.first_available:
                    phrase = f"claim {name} request {json.dumps(request.name)}: only Exactly requests are supported"
                    raise FailureError(phrase)
            super()._check(index, claim)
        except FailureError as error:
            raise FailureError(f"validating claim {name}: {error}") from None

    def too_many(self, claim: ResourceClaim, requests: Sequence[Sequence[CheckedRequest]], devices: int) -> None:
        """Leave out the instance type's devices if they make a claim request too many."""
        everything = [alternative for alternatives in requests for alternative in alternatives]
        devices -= sum(self._is_own(at) for chosen in everything for at in chosen.everything)
        name = json.dumps(claim.metadata.name)
        if devices > MAX_DEVICES_OF_CLAIM:
            phrase = f"requests {devices} total devices, exceeding maximum of {MAX_DEVICES_OF_CLAIM}"
            raise FailureError(f"claim {name} {phrase}")
        self.pruned.add(len(self.requests) - 1)
        for checked in everything:
            kept = tuple(at for at in checked.everything if not self._is_own(at))
            checked.count -= len(checked.everything) - len(kept)
            checked.everything = kept

    def _is_own(self, at: int) -> bool:
        return _is_of_type(self.devices[at].slice)

    def _devices_of(self, at: tuple[int, int, int], number: int, start: int) -> SearchOutcome:
        """A request for all matching devices succeeds if there are none."""
        claim, request, alternative = at
        checked = self.requests[claim][request][alternative]
        if checked.wanted.allocation_mode == AllocationMode.ALL and not checked.everything:
            return self._next(claim, request + 1)
        return super()._devices_of(at, number, start)

    def _check_request(
        self, claim: ResourceClaim, wanted: RequestAlternative, at: tuple[int, int, int]
    ) -> CheckedRequest:
        about = f"claim {json.dumps(claim.metadata.name)} request {json.dumps(wanted.name)}"
        device_class = self._allocator.classes.get(wanted.device_class_name)
        if device_class is None:
            name = json.dumps(wanted.device_class_name)
            raise FailureError(f"{about}: DeviceClass {name} not found: DeviceClass.resource.k8s.io {name} not found")
        for selector in (*device_class.spec.selectors, *wanted.selectors):
            expression = selector.cel.expression if selector.cel is not None else ""
            try:
                language().compile(expression, _FEATURES.cel)
            except CompileError as error:
                phrase = f"CEL expression {json.dumps(expression)} failed to compile: {error}"
                raise FailureError(f"{about}: {phrase}") from None
        return super()._check_request(claim, wanted, at)

    def _everything(
        self, named: str, wanted: RequestAlternative, device_class: DeviceClass, at: tuple[int, int, int]
    ) -> CheckedRequest:
        about = f"claim {json.dumps(self._claims[at[0]].metadata.name)} request {json.dumps(wanted.name)}"
        for pool in self.pools:
            if pool.invalid:
                raise FailureError(f"{about}: pool {'/'.join(pool.id)} is invalid (duplicate device names)")
            if pool.is_incomplete:
                raise FailureError(f"{about}: pool {'/'.join(pool.id)} is incomplete (missing slices)")
        self._wants_all = True
        try:
            checked = super()._everything(named, wanted, device_class, at)
            if any(map(self._is_own, checked.everything)):
                self.with_own.add(at[0])
            return checked
        except FailureError as error:
            raise FailureError(f"{about}: {error}") from None
        finally:
            self._wants_all = False

    def matches_all(self, whose: str, selectors: Sequence[DeviceSelector], device: PooledDevice) -> bool:
        for each in selectors:
            expression = each.cel.expression if each.cel is not None else ""
            known = self._allocator.solutions.matches(expression, device)
            if known is not None:
                if not known:
                    return False
                continue
            try:
                if not language().compile(expression, _FEATURES.cel).matches(device.device, device.id[0]):
                    return False
            except EvaluationError as error:
                if not self._wants_all:
                    return False
                phrase = f"CEL expression {json.dumps(expression)} evaluation failed: {error}"
                raise FailureError(phrase) from None
        return True

    def has_capacity(self, wanted: RequestAlternative, device: PooledDevice) -> bool:
        return not device.device.allow_multiple_allocations or super().has_capacity(wanted, device)

    def _pick(self, at: tuple[int, int, int], checked: CheckedRequest, device: PooledDevice, *, must: bool) -> bool:
        """A device that does not fit changes neither counters nor the node's requirements."""
        needs = _all_terms(device.slice.spec.node_selector)
        if not self._required[-1].is_compatible(needs, self._allowed):
            return False
        drawn, users = dict(self._drawn.get(device.pool.name, {})), set(self._in_use.get(device.id, ()))
        if not super()._pick(at, checked, device, must=False):
            self._drawn[device.pool.name], self._in_use[device.id] = drawn, users
            return False
        self._required.append(self._required[-1].together(needs.values()))
        return True

    def _take_back(self, at: tuple[int, int, int], checked: CheckedRequest, device: PooledDevice) -> None:
        super()._take_back(at, checked, device)
        self._required.pop()


def _all_terms(selector: NodeSelector | None) -> Requirements:
    """Return the requirements of all terms together, as upstream reads the selectors of devices."""
    terms = terms_of(selector)
    return Requirements.of_expressions(expression for term in terms for expression in term.match_expressions)
