"""The plugin: a claim that is allocated must be in reach, one that is not must get devices."""

from __future__ import annotations

import time
from collections.abc import Mapping

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.devices import AllocationResult, ResourceClaim
from kschedx.api.resources import nano_units
from kschedx.api.selectors import CompiledNodeSelector, compile_node_selector
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import Node, Pod
from kschedx.errors import InputError, UndecidableError
from kschedx.findings import (
    DeviceClassNotFound,
    DevicesToAllocate,
    Finding,
    PluginMessage,
)
from kschedx.framework.args import DynamicResourcesArgs
from kschedx.framework.duration import Duration
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    FilterOutcome,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    ScorePlugin,
)
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, error
from kschedx.plugins.dynamic_resources import extended_resources, node_allocatable
from kschedx.plugins.dynamic_resources.allocated import allocated_state
from kschedx.plugins.dynamic_resources.allocator import Allocator, FailureError, Result, UnavailableError
from kschedx.plugins.dynamic_resources.claims import (
    GroupError,
    PodClaim,
    RefusalError,
    check_bindings,
    extended_resource_claim,
    has_groups_reservation,
    pod_claims,
    unschedulable,
)
from kschedx.plugins.dynamic_resources.features import Features, slices
from kschedx.plugins.dynamic_resources.readiness import is_late, is_ready, out_of_reach
from kschedx.plugins.dynamic_resources.scoring import score_of
from kschedx.plugins.dynamic_resources.shortage import shortage
from kschedx.plugins.normalize import default_normalize
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable

NO_CLAIMS = "no new claims to deallocate"
DISABLED = "plugin disabled"
NO_STATE = "not found"
"""What CycleState says about a key that nobody wrote: another plugin ended PreFilter before this one's turn."""

REASON_ALL_CLAIMS = "cannot allocate all claims"
REASON_UNAVAILABLE = "resourceclaim not available on the node"
REASON_STALE = "cannot schedule extended resource claim"
REASON_NO_RESOURCE = "cannot fit resource"
REASON_DEALLOCATED = "deallocation of ResourceClaim completed"
REASON_DELETED = "deletion of ResourceClaim completed"
REASON_UNRESERVED = "ResourceClaim unreserved for PodGroup"
REASON_STILL = "still not schedulable"

_DEFAULT_BINDING_TIMEOUT = Duration.seconds(600)


class _State(Struct, frozen=True, kw_only=True):
    """What PreFilter found out."""

    claims: tuple[PodClaim, ...] = ()
    """The pod's own; empty for a pod without devices, and where PreFilter rejected it."""
    extended: ResourceClaim | None = None
    """The one for extended resources."""
    resources: Mapping[str, int] = {}
    """Extended resources that may be devices."""
    available_on: tuple[CompiledNodeSelector | None, ...] = ()
    """By claim, where it is allocated and not everywhere."""
    allocator: Allocator | None = None
    """None where every claim is allocated."""
    answers: dict[str, _OnNode]
    """What Filter found out, by node."""

    @property
    def all(self) -> tuple[ResourceClaim, ...]:
        own = tuple(one.claim for one in self.claims)
        return own if self.extended is None else (*own, self.extended)


class _OnNode(Struct, frozen=True, kw_only=True):
    """Filter's answer for a node."""

    status: Status = SUCCESS
    result: Result | None = None
    """What the claims that need devices would get."""
    unavailable: tuple[int, ...] = ()
    """Indexes of allocated claims that the node does not reach, where that is what rejects it."""


_NO_ALLOCATION = unschedulable(REASON_ALL_CLAIMS)
_UNAVAILABLE = unschedulable(REASON_UNAVAILABLE)
"""Both are explained when somebody asks."""

STATE: StateKey[_State] = StateKey("DynamicResources", NO_STATE)


class DynamicResources(
    PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin
):
    """Allocates devices to pods that claim some, and has nothing to say about all others."""

    name = "DynamicResources"

    @property
    def _enabled(self) -> bool:
        return self.handle.release.enabled("DynamicResourceAllocation")

    @property
    def _of_groups(self) -> bool:
        return self.handle.release.enabled("DRAWorkloadResourceClaims")

    @property
    def _features(self) -> Features:
        return Features.of(self.handle.release)

    # --- the pod as a whole

    def pre_enqueue(self, pod: Pod) -> Status:
        if self._enabled:
            self._refuse_early_releases(pod)
            try:
                pod_claims(pod, self.handle.snapshot, of_groups=self._of_groups)
            except RefusalError as refusal:
                return refusal.status
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if not self._enabled:
            return PRE_FILTER_SKIP
        state[STATE] = _State(answers={})
        try:
            prepared = self._prepared(pod)
        except RefusalError as refusal:
            return PreFilterResult(status=refusal.status)
        except FailureError as failure:
            return PreFilterResult(status=_failed(failure))
        if not prepared.all:
            return PRE_FILTER_SKIP
        state[STATE] = prepared
        return PreFilterResult()

    def _prepared(self, pod: Pod) -> _State:
        """Raises `RefusalError` and `FailureError`."""
        self._refuse_early_releases(pod)
        snapshot = self.handle.snapshot
        claims = pod_claims(pod, snapshot, of_groups=self._of_groups)
        resources = self._extended_resources(pod)
        extended = None
        if any(name in snapshot.devices.class_of_resource for name in resources):
            extended = extended_resource_claim(pod, snapshot) or extended_resources.empty_claim(pod)
        if self._of_groups:
            check_bindings(pod, snapshot)
        found = _State(claims=claims, extended=extended, resources=resources, answers={})
        available_on: list[CompiledNodeSelector | None] = []
        for claim in found.all:
            available_on.append(_node_selector(claim.status.allocation))
            if claim.status.allocation is None and claim is not extended:
                self._check_classes(claim)
        needs_devices = any(claim.status.allocation is None for claim in found.all)
        return replace(found, available_on=tuple(available_on), allocator=self._allocator() if needs_devices else None)

    def _refuse_early_releases(self, pod: Pod) -> None:
        release = self.handle.release
        if pod.spec.resource_claims and not release.behaviour.devices_are_allocated_from_slices:
            claims = ", ".join(claim.name for claim in pod.spec.resource_claims)
            raise UndecidableError(
                f"Pod {pod.key} asks for devices ({claims}): how kube-scheduler {release.version} allocated them, "
                "behind the gate DynamicResourceAllocation, is not known here; from 1.34 on it is"
            )

    def _extended_resources(self, pod: Pod) -> Mapping[str, int]:
        return extended_resources.requested(pod) if self.handle.release.enabled("DRAExtendedResource") else {}

    def _check_classes(self, claim: ResourceClaim) -> None:
        """Every request must be for a device class that exists."""
        for request in claim.spec.devices.requests:
            if request.exactly is not None:
                self._check_class(claim, request.exactly.device_class_name, request.name)
            elif request.first_available:
                if not self.handle.release.enabled("DRAPrioritizedList"):
                    gate = "has subrequests, but the DRAPrioritizedList feature is disabled"
                    raise RefusalError(f"resource claim {claim.key}, request {request.name}: {gate}")
                for one in request.first_available:
                    self._check_class(claim, one.device_class_name, f"{request.name}/{one.name}")
            else:
                raise RefusalError(f"resource claim {claim.key}, request {request.name}: unknown request type")

    def _check_class(self, claim: ResourceClaim, name: str, request: str) -> None:
        if not name:
            raise FailureError(f"request {request}: unsupported request type")
        if name not in self.handle.snapshot.devices.classes:
            known = tuple(sorted(self.handle.snapshot.devices.classes))
            missing = DeviceClassNotFound(claim=claim.key, request=request, device_class=name, classes=known)
            raise RefusalError(f"request {request}: device class {name} does not exist", missing)

    def _allocator(self) -> Allocator:
        devices, features = self.handle.snapshot.devices, self._features
        allocated = allocated_state(devices, shares=features.consumable_capacity)
        return Allocator(features, allocated, devices.classes, slices(devices, features))

    # --- filter

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        if not self._enabled:
            return Verdicts.success(len(nodes))
        found = state[STATE]
        if not found.all:
            return Verdicts.success(len(nodes))
        statuses = [self._on_node(found, pod, nodes, row).status for row in range(len(nodes))]
        return replace(
            Verdicts.of_rows(statuses), explain=lambda row: self._explained(found, pod, nodes.node(row), statuses[row])
        )

    def _explained(self, state: _State, pod: Pod, node: Node, status: Status) -> tuple[Finding, ...]:
        if status is _NO_ALLOCATION and state.allocator is not None:
            wanted = self._wanted(state, pod, node)
            return shortage(state.allocator, self.handle.snapshot.devices, node, wanted)
        if status is _UNAVAILABLE:
            indexes = [index for index in range(len(state.all)) if not self._is_available(state, index, node)]
            return tuple(out_of_reach(state.all[index], node, state.available_on[index]) for index in indexes)
        return status.findings

    def _wanted(self, state: _State, pod: Pod, node: Node) -> list[ResourceClaim]:
        """The claims that need devices of the node."""
        wanted = [one.claim for one in state.claims if one.claim.status.allocation is None]
        if state.extended is not None and state.extended.status.allocation is None:
            class_of = self._devices_for(state, node) or {}
            wanted.append(extended_resources.claim_for(state.extended, pod, class_of))
        return wanted

    def _on_node(self, state: _State, pod: Pod, nodes: NodeTable, row: int) -> _OnNode:
        """Pods on the node make no difference, unless devices take what pods request, so one answer holds."""
        name = nodes.name(row)
        answer = state.answers.get(name)
        if answer is None or self._counts_node_allocatable:
            try:
                answer = self._asked(state, pod, nodes, row)
            except FailureError as failure:
                answer = _OnNode(status=_failed(failure))
            except UnavailableError as unavailable:
                answer = _OnNode(status=_told(str(unavailable)))
            except UndecidableError as unknown:
                raise UndecidableError(f"Pod {pod.key} asks for devices: {unknown}") from None
            state.answers[name] = answer
        return answer

    @property
    def _counts_node_allocatable(self) -> bool:
        return self.handle.release.enabled("DRANodeAllocatableResources")

    def _asked(self, state: _State, pod: Pod, nodes: NodeTable, row: int) -> _OnNode:
        node = nodes.node(row)
        has_devices_for_resources = False
        if state.extended is not None:
            if state.extended.spec.devices.requests:
                return _OnNode(status=_told(REASON_STALE))
            class_of = self._devices_for(state, node)
            if class_of is None:
                return _OnNode(status=_told(REASON_NO_RESOURCE))
            has_devices_for_resources = state.extended.status.allocation is None and bool(state.claims or class_of)
            if not has_devices_for_resources and not state.claims:
                return _OnNode()
        unavailable: list[int] = []
        for index, claim in enumerate(state.all):
            if not self._is_available(state, index, node):
                unavailable.append(index)
            elif self._counts_node_allocatable and claim.status.allocation is not None:
                shared = node_allocatable.refuses_sharing(claim, pod, nodes, row)
                if not shared.is_success:
                    return _OnNode(status=shared)
        result: Result | None = None
        if state.allocator is not None:
            wanted = self._wanted(state, pod, node)
            result = state.allocator.allocate(node, wanted)
            if result is None:
                return _OnNode(status=_NO_ALLOCATION)
            if self._counts_node_allocatable:
                picks = node_allocatable.by_claim(wanted, result)
                too_much = node_allocatable.fits(self.handle, pod, state.claims, picks, nodes, row)
                if not too_much.is_success:
                    return _OnNode(status=too_much)
        if unavailable:
            return _OnNode(status=_UNAVAILABLE, unavailable=tuple(unavailable))
        return _OnNode(result=result)

    def _devices_for(self, state: _State, node: Node) -> dict[str, str] | None:
        """The device class of each resource that the node does not offer itself; None where it has neither."""
        classes = self.handle.snapshot.devices.class_of_resource
        found: dict[str, str] = {}
        for resource in state.resources:
            offered = node.status.allocatable.get(resource)
            if resource in classes and (offered is None or nano_units(offered) == 0):
                found[resource] = classes[resource]
            elif offered is None:
                return None
        return found

    def _is_available(self, state: _State, index: int, node: Node) -> bool:
        """False for an allocated claim that the node does not reach, or whose devices will not be ready."""
        claim, reachable = state.all[index], state.available_on[index]
        if reachable is not None and not reachable.matches(node.metadata.labels, node.name):
            return False
        if claim.status.allocation is None or not self._features.binding_conditions:
            return True
        ready = is_ready(claim)
        return ready is not None and (ready or not is_late(claim, self._binding_timeout, self._now))

    @property
    def _binding_timeout(self) -> int:
        """Nanoseconds that the driver of a chosen device has to make it ready."""
        timeout = self.args.binding_timeout if isinstance(self.args, DynamicResourcesArgs) else None
        return timeout or _DEFAULT_BINDING_TIMEOUT

    @property
    def _now(self) -> int:
        """When the cluster was as the snapshot shows it, as far as that is known."""
        try:
            return nanoseconds(self.handle.snapshot.source.taken)
        except InputError:
            return time.time_ns()

    # --- where no node fits

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        if not self._enabled:
            return PostFilterResult(status=Status(code=Code.UNSCHEDULABLE, reasons=(DISABLED,)))
        if STATE not in state:
            return PostFilterResult(status=error(NO_STATE))
        try:
            text = self._helped(state[STATE], pod, nodes, outcome)
        except GroupError as wrong:
            return PostFilterResult(status=error(str(wrong)))
        except RefusalError as refusal:
            return PostFilterResult(status=error(str(refusal)))
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if text == REASON_UNRESERVED else Code.UNSCHEDULABLE
        return PostFilterResult(status=Status(code=code, reasons=(text,)))

    def _helped(self, state: _State, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status) -> str:
        """What kube-scheduler would do so that a later try can succeed."""
        if not state.all:
            return NO_CLAIMS
        for index in sorted(self._seen_unavailable(state, nodes, outcome)):
            claim = state.all[index]
            if claim is state.extended:
                continue
            consumers = claim.status.reserved_for
            if not consumers or (len(consumers) == 1 and consumers[0].uid == pod.metadata.uid):
                return REASON_DEALLOCATED
        if state.extended is not None and state.extended.metadata.name != extended_resources.IN_MEMORY:
            return REASON_DELETED
        if self._of_groups and has_groups_reservation(pod, self.handle.snapshot):
            return REASON_UNRESERVED
        return REASON_STILL

    def _seen_unavailable(self, state: _State, nodes: NodeTable, outcome: FilterOutcome | Status) -> set[int]:
        """Claims that kept the pod from a node: only nodes that no plugin before this one rejects count."""
        if isinstance(outcome, Status):
            return set()
        mine = outcome.plugins.index(self.name) if self.name in outcome.plugins else -1
        seen: set[int] = set()
        for row in np.flatnonzero((outcome.plugin == mine) & (mine >= 0)):
            answer = state.answers.get(nodes.name(int(row)))
            seen.update(answer.unavailable if answer is not None else ())
        return seen

    # --- score

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        scores = np.zeros(len(nodes), dtype=np.int64)
        if not self._enabled or not self.handle.release.enabled("DRAPrioritizedList"):
            return scores
        found = state[STATE]
        if not found.all or found.allocator is None:
            return scores
        for row in range(len(nodes)):
            answer = self._on_node(found, pod, nodes, row)
            if answer.result is not None:
                scores[row] = score_of(found.all, answer.result)
        return scores

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return default_normalize(scores) if self._enabled else scores

    # --- the chosen node

    def reserve(self, state: CycleState, pod: Pod, node: int) -> Status:
        """The devices that claims would get."""
        return self._planned(state, node)

    def pre_bind(self, state: CycleState, pod: Pod, node: int) -> Status:
        """The same, written to the claims."""
        return self._planned(state, node)

    def _planned(self, state: CycleState, node: int) -> Status:
        if not self._enabled:
            return SUCCESS
        if STATE not in state:
            return error(NO_STATE)
        found = state[STATE]
        answer = found.answers.get(self.handle.nodes.name(node))
        if answer is None or not answer.result:
            return SUCCESS
        new = (claim for claim in found.all if claim.status.allocation is None)
        return Status(
            findings=tuple(
                DevicesToAllocate(
                    claim=claim.key,
                    devices=tuple("/".join(pick.device.id) for pick in picks),
                    requests=tuple(pick.request for pick in picks),
                )
                for claim, picks in zip(new, answer.result, strict=True)
            )
        )


def _told(text: str) -> Status:
    return unschedulable(text, PluginMessage(text=text))


def _failed(failure: FailureError) -> Status:
    return Status(code=Code.ERROR, reasons=(str(failure),), findings=(failure.finding,))


def _node_selector(allocation: AllocationResult | None) -> CompiledNodeSelector | None:
    if allocation is None or allocation.node_selector is None:
        return None
    try:
        return compile_node_selector(allocation.node_selector).checked()
    except InputError as wrong:
        raise FailureError(wrong.message) from None
