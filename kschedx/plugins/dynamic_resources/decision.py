"""What is decided about a pod that uses devices: prepared once, then asked node by node."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimConsumerReference,
    ResourceClaimStatus,
)
from kschedx.api.resources import nano_units
from kschedx.api.selectors import (
    NODE_NAME_FIELD,
    CompiledNodeSelector,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    compile_node_selector,
)
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import Node, Pod
from kschedx.errors import InputError, UndecidableError
from kschedx.findings import DeviceClassNotFound, DevicesToAllocate, Finding, PluginMessage
from kschedx.framework.interface import Handle, PostFilterResult
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.plugins.dynamic_resources import extended_resources, node_allocatable
from kschedx.plugins.dynamic_resources.allocated import allocated_state
from kschedx.plugins.dynamic_resources.allocator import Allocator
from kschedx.plugins.dynamic_resources.claims import (
    RefusalError,
    check_bindings,
    extended_resource_claim,
    pod_claims,
    unreserved_by_group,
    unschedulable,
)
from kschedx.plugins.dynamic_resources.features import Features, slices
from kschedx.plugins.dynamic_resources.picks import FailureError, Pick, Result, UnavailableError
from kschedx.plugins.dynamic_resources.readiness import is_late, is_ready, out_of_reach
from kschedx.plugins.dynamic_resources.scoring import score_of
from kschedx.plugins.dynamic_resources.shortage import shortage
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow

REASON_ALL_CLAIMS = "cannot allocate all claims"
REASON_UNAVAILABLE = "resourceclaim not available on the node"
REASON_STALE = "cannot schedule extended resource claim"
REASON_NO_RESOURCE = "cannot fit resource"
REASON_DEALLOCATED = "deallocation of ResourceClaim completed"
REASON_DELETED = "deletion of ResourceClaim completed"
REASON_UNRESERVED = "ResourceClaim unreserved for PodGroup"
REASON_STILL = "still not schedulable"

_NO_ALLOCATION = unschedulable(REASON_ALL_CLAIMS)
_UNAVAILABLE = unschedulable(REASON_UNAVAILABLE)
"""Both are explained when somebody asks."""


class Answer(Struct, frozen=True, kw_only=True):
    """What is said of a node."""

    status: Status = SUCCESS
    result: Result | None = None
    """What the claims that need devices would get."""
    unavailable: tuple[int, ...] = ()
    """Indexes of allocated claims that the node does not reach, where that is what rejects it."""


class Decision:
    """A pod with claims, its own or one for its extended resources. `claims` may be empty: then there is none."""

    def __init__(self, handle: Handle, pod: Pod, resources: Mapping[str, int], binding_timeout: int) -> None:
        """`resources` are extended ones that may be devices. Raises `RefusalError` and `FailureError`."""
        self._handle = handle
        self._pod = pod
        self._resources = resources
        self._binding_timeout = binding_timeout
        self._features = Features.of(handle.release)
        snapshot = handle.snapshot
        self._own = pod_claims(pod, snapshot, of_groups=self._of_groups)
        self._extended: ResourceClaim | None = None
        if any(name in snapshot.devices.class_of_resource for name in resources):
            self._extended = extended_resource_claim(pod, snapshot) or extended_resources.empty_claim(pod)
        if self._of_groups:
            check_bindings(pod, snapshot)
        own = tuple(one.claim for one in self._own)
        self.claims = own if self._extended is None else (*own, self._extended)
        self._available_on: list[CompiledNodeSelector | None] = []
        for claim in self.claims:
            self._available_on.append(_node_selector(claim.status.allocation))
            if claim.status.allocation is None and claim is not self._extended:
                self._check_classes(claim)
        self._allocator: Allocator | None = None
        if any(claim.status.allocation is None for claim in self.claims):
            devices = snapshot.devices
            allocated = allocated_state(devices, shares=self._features.consumable_capacity)
            self._allocator = Allocator(self._features, allocated, devices.classes, slices(devices, self._features))
        self._answers: dict[str, Answer] = {}

    @property
    def _of_groups(self) -> bool:
        return self._handle.release.enabled("DRAWorkloadResourceClaims")

    def _check_classes(self, claim: ResourceClaim) -> None:
        """Every request must be for a device class that exists."""
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                self._check_class(claim, request.exactly.device_class_name, request.name)
            elif request.first_available:
                if not self._features.prioritized_list:
                    gate = "has subrequests, but the DRAPrioritizedList feature is disabled"
                    raise RefusalError(f"resource claim {claim.key}, request {request.name}: {gate}")
                for one in request.first_available:
                    self._check_class(claim, one.device_class_name, f"{request.name}/{one.name}")
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
        statuses = [self._on_node(nodes, row).status for row in nodes.each()]
        return replace(Verdicts.of_rows(statuses), explain=lambda row: self._explained(nodes.node(row), statuses[row]))

    def _explained(self, node: Node, status: Status) -> tuple[Finding, ...]:
        if status is _NO_ALLOCATION and self._allocator is not None:
            return shortage(self._allocator, self._handle.snapshot.devices, node, self._wanted(node))
        if status is _UNAVAILABLE:
            indexes = [index for index in range(len(self.claims)) if not self._is_available(index, node)]
            return tuple(out_of_reach(self.claims[index], node, self._available_on[index]) for index in indexes)
        return status.findings

    def _on_node(self, nodes: NodeTable, row: TableRow) -> Answer:
        """Pods on the node make no difference, unless devices take what pods request, so one answer holds."""
        name = nodes.name(row)
        answer = self._answers.get(name)
        if answer is None or self._counts_node_allocatable:
            try:
                answer = self._asked(nodes, row)
            except FailureError as failure:
                answer = Answer(status=failed(failure))
            except UnavailableError as unavailable:
                answer = _rejected(str(unavailable))
            except UndecidableError as unknown:
                raise UndecidableError(f"Pod {self._pod.key} asks for devices: {unknown}") from None
            self._answers[name] = answer
        return answer

    @cached_property
    def _counts_node_allocatable(self) -> bool:
        return self._handle.release.enabled("DRANodeAllocatableResources")

    def _asked(self, nodes: NodeTable, row: TableRow) -> Answer:
        node, pod = nodes.node(row), self._pod
        if self._extended is not None:
            if self._extended.spec.devices.requests:
                return _rejected(REASON_STALE)
            class_of = self._devices_for(node)
            if class_of is None:
                return _rejected(REASON_NO_RESOURCE)
            if not self._own and (self._extended.status.allocation is not None or not class_of):
                return Answer()
        unavailable: list[int] = []
        for index, claim in enumerate(self.claims):
            if not self._is_available(index, node):
                unavailable.append(index)
            elif self._counts_node_allocatable and claim.status.allocation is not None:
                shared = node_allocatable.refuses_sharing(claim, pod, nodes, row)
                if not shared.is_success:
                    return Answer(status=shared)
        result: Result | None = None
        if self._allocator is not None:
            wanted = self._wanted(node)
            result = self._allocator.allocate(node, wanted)
            if result is None:
                return Answer(status=_NO_ALLOCATION)
            if self._counts_node_allocatable:
                picks = node_allocatable.by_claim(wanted, result)
                too_much = node_allocatable.fits(self._handle, pod, self._own, picks, nodes, row)
                if not too_much.is_success:
                    return Answer(status=too_much)
        if unavailable:
            return Answer(status=_UNAVAILABLE, unavailable=tuple(unavailable))
        return Answer(result=result)

    def _wanted(self, node: Node) -> list[ResourceClaim]:
        """The claims that need devices of the node."""
        wanted = [one.claim for one in self._own if one.claim.status.allocation is None]
        if self._extended is not None and self._extended.status.allocation is None:
            wanted.append(extended_resources.claim_for(self._extended, self._pod, self._devices_for(node) or {}))
        return wanted

    def _devices_for(self, node: Node) -> dict[str, str] | None:
        """The device class of each resource that the node does not offer itself; None where it has neither."""
        classes = self._handle.snapshot.devices.class_of_resource
        found: dict[str, str] = {}
        for resource in self._resources:
            offered = node.status.allocatable.get(resource)
            if resource in classes and (offered is None or nano_units(offered) == 0):
                found[resource] = classes[resource]
            elif offered is None:
                return None
        return found

    def _is_available(self, index: int, node: Node) -> bool:
        """False for an allocated claim that the node does not reach, or whose devices will not be ready."""
        claim, reachable = self.claims[index], self._available_on[index]
        if reachable is not None and not reachable.matches(node.metadata.labels, node.name):
            return False
        if claim.status.allocation is None or not self._features.binding_conditions:
            return True
        ready = is_ready(claim)
        return ready is not None and (ready or not is_late(claim, self._binding_timeout, self._now))

    @cached_property
    def _now(self) -> int:
        """When the cluster was as the snapshot shows it, as far as that is known."""
        try:
            return nanoseconds(self._handle.snapshot.source.taken)
        except InputError:
            return time.time_ns()

    # --- afterwards

    def help(self, plugin: str, nodes: NodeTable, outcome: FilterOutcome | Status) -> PostFilterResult:
        """Where no node fits: what kube-scheduler does so that a later try can succeed. Raises `GroupError` and
        `RefusalError`, whose texts are errors here."""
        for index in sorted(self._seen_unavailable(plugin, nodes, outcome)):
            claim = self.claims[index]
            consumers = claim.status.reserved_for
            is_free = not consumers or (len(consumers) == 1 and consumers[0].uid == self._pod.metadata.uid)
            if claim is not self._extended and is_free:
                return _helped(REASON_DEALLOCATED, {claim.key: replace(claim, status=ResourceClaimStatus())})
        if self._extended is not None and self._extended.metadata.name != extended_resources.IN_MEMORY:
            return _helped(REASON_DELETED, {self._extended.key: None})
        unreserved = unreserved_by_group(self._pod, self._handle.snapshot) if self._of_groups else None
        if unreserved is not None:
            return _helped(REASON_UNRESERVED, {unreserved.key: unreserved}, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        return _helped(REASON_STILL)

    def _seen_unavailable(self, plugin: str, nodes: NodeTable, outcome: FilterOutcome | Status) -> set[int]:
        """Claims that kept the pod from a node: only nodes that no plugin before this one rejects count."""
        if isinstance(outcome, Status) or plugin not in outcome.plugins:
            return set()
        mine = nodes.names_where(outcome.plugin == outcome.plugins.index(plugin))
        answers = map(self._answers.get, mine)
        return {index for answer in answers if answer is not None for index in answer.unavailable}

    def score(self, nodes: NodeTable) -> IntArray:
        """(node,) more where alternatives further in front are met."""
        scores = np.zeros(len(nodes), dtype=np.int64)
        if self._allocator is None:
            return scores
        for row in nodes.each():
            answer = self._on_node(nodes, row)
            if answer.result is not None:
                scores[row] = score_of(self.claims, answer.result)
        return scores

    def plan(self, node: str) -> tuple[Finding, ...]:
        """What the claims would get on a node that was asked."""
        answer = self._answers.get(node)
        if answer is None or not answer.result:
            return ()
        new = (claim for claim in self.claims if claim.status.allocation is None)
        return tuple(
            DevicesToAllocate(
                claim=claim.key,
                devices=tuple("/".join(pick.device.id) for pick in picks),
                requests=tuple(pick.request for pick in picks),
            )
            for claim, picks in zip(new, answer.result, strict=True)
        )

    def allocated(self, node: Node) -> dict[str, ResourceClaim]:
        """The pod's claims after it was bound to a node that was asked: allocated, and reserved for it; by
        `namespace/name`."""
        answer = self._answers.get(node.name)
        picks = iter(answer.result if answer is not None and answer.result is not None else ())
        consumer = ResourceClaimConsumerReference(
            resource="pods", name=self._pod.metadata.name, uid=self._pod.metadata.uid
        )
        changed: dict[str, ResourceClaim] = {}
        for claim in self.claims:
            one, status = claim, claim.status
            if claim is self._extended and status.allocation is None:
                one = extended_resources.written(claim, self._pod, self._devices_for(node) or {})
            if status.allocation is None:
                found = next(picks, None)
                if found is None:
                    continue  # of extended resources that the node offers itself
                status = replace(status, allocation=_allocation(node, found))
            one = replace(one, status=replace(status, reserved_for=(*status.reserved_for, consumer)))
            changed[one.key] = one
        return changed


def _allocation(node: Node, picks: Sequence[Pick]) -> AllocationResult:
    """Devices of the node's own slices are within its reach alone."""
    results = tuple(
        DeviceRequestAllocationResult(
            request=pick.request,
            driver=pick.device.id[0],
            pool=pick.device.id[1],
            device=pick.device.id[2],
            admin_access=pick.admin_access,
            consumed_capacity=None if pick.share is None else {name: str(n) for name, n in pick.share.items()},
        )
        for pick in picks
    )
    is_local = any(pick.device.slice.spec.node_name for pick in picks)
    here = NodeSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=(node.name,))
    reach = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_fields=(here,)),))
    return AllocationResult(devices=DeviceAllocationResult(results=results), node_selector=reach if is_local else None)


def _helped(
    text: str, released: Mapping[str, ResourceClaim | None] | None = None, code: Code = Code.UNSCHEDULABLE
) -> PostFilterResult:
    return PostFilterResult(status=Status(code=code, reasons=(text,)), released=released or {})


def failed(failure: FailureError) -> Status:
    return Status(code=Code.ERROR, reasons=(str(failure),), findings=(failure.finding,))


def _rejected(text: str) -> Answer:
    return Answer(status=unschedulable(text, PluginMessage(text=text)))


def _node_selector(allocation: AllocationResult | None) -> CompiledNodeSelector | None:
    if allocation is None or allocation.node_selector is None:
        return None
    try:
        return compile_node_selector(allocation.node_selector).checked()
    except InputError as wrong:
        raise FailureError(wrong.message) from None
