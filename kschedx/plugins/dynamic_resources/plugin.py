"""The plugin: the node must reach the devices of allocated claims and have devices for the others."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from kschedx.errors import UndecidableError
from kschedx.framework.args import DynamicResourcesArgs
from kschedx.framework.interface import (
    NOTHING_BOUND,
    PRE_FILTER_SKIP,
    WHOLE,
    BindingEffect,
    CycleState,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import SUCCESS, FilterOutcome, Status, Verdicts, error, unschedulable
from kschedx.kube.names import is_extended_resource
from kschedx.kube.resources import SPEC_ALONE, pod_request
from kschedx.kube.scalars import Duration
from kschedx.kube.types import Pod
from kschedx.plugins.dynamic_resources.claims import (
    NOT_CREATED,
    REASON_ALL_CLAIMS,
    REASON_DEALLOCATED,
    REASON_DELETED,
    REASON_NO_RESOURCE,
    REASON_STALE,
    REASON_STILL,
    REASON_UNAVAILABLE,
    REASON_UNRESERVED,
    UNSUPPORTED,
    GroupError,
    RefusalError,
    pod_claims,
)
from kschedx.plugins.resource_allocation import default_normalize
from kschedx.snapshot.columns import ClusterRow, IntArray
from kschedx.snapshot.devices import IMPLICIT_PREFIX
from kschedx.snapshot.nodes import NodeTable

if TYPE_CHECKING:
    from kschedx.plugins.dynamic_resources.decision import DeviceDecision

_NO_CLAIMS = "no new claims to deallocate"
_DISABLED = "plugin disabled"
_NO_STATE = "not found"  # CycleState's error for a key that was not written, because an earlier plugin ended PreFilter

_DEFAULT_BINDING_TIMEOUT = Duration.seconds(600)

_STATE: StateKey[DeviceDecision | None] = StateKey("DynamicResources", _NO_STATE)
"""None for a pod that uses no devices or that PreFilter rejected."""


class DynamicResources(
    PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin
):
    """Allocates devices to pods with claims and skips all other pods."""

    name = "DynamicResources"
    normalizes_by_extremes = True
    scores_preferences = True
    texts: ClassVar[Texts] = {
        "": (_NO_CLAIMS, REASON_STILL, REASON_DEALLOCATED, REASON_DELETED, REASON_UNRESERVED),
        "preemption-not-tried": (_NO_STATE,),
        "insufficient-devices": (REASON_ALL_CLAIMS,),
        "device-claim-out-of-reach": (REASON_UNAVAILABLE,),
        "device-claim-not-found": ('could not find ResourceClaim "{subject}"',),
        "device-claim-being-deleted": ('resourceclaim "{subject}" is being deleted',),
        "device-claim-not-created": (
            f'pod "{{subject}}": {NOT_CREATED}',
            'waiting for dynamic resource controller to create the resourceclaim "{subject}"',
        ),
        "device-claim-not-owned": ("ResourceClaim {subject} was not created for Pod {pod} ({why})",),
        "device-class-not-found": ("request {request}: device class {subject} does not exist",),
        "device-selector-failed": (
            "class {subject}: selector #{number}: CEL {phase} error: {error}",
            "claim {subject}: selector #{number}: CEL {phase} error: {error}",
        ),
        "plugin-message": (
            REASON_STALE,
            REASON_NO_RESOURCE,
            _DISABLED,
            f"{{whose}} {{claim}}: {UNSUPPORTED}",
            f'pod "{{pod}}", spec.resourceClaim {{claim}}: {UNSUPPORTED}',
            "podgroup.{group} {name} not found",
            "resource claim {claim}, request {request}: {why}",
            "node allocatable resource claim {claim} shared by multiple pods",
            "node allocatable resource claim {claim} is already used by another pod",
            "claim {claim}: {why}",
            "pod level request for {resource} {why}",
        ),
    }

    @property
    def _is_enabled(self) -> bool:
        return self.handle.release.enabled("DynamicResourceAllocation")

    def pre_enqueue(self, pod: Pod) -> Status:
        if self._is_enabled:
            self._refuse_early_releases(pod)
            try:
                of_groups = self.handle.release.enabled("DRAWorkloadResourceClaims")
                pod_claims(pod, self.handle.snapshot, of_groups=of_groups)
            except RefusalError as refusal:
                return refusal.status
        return SUCCESS

    def reads(self, pod: Pod) -> Hashable:
        return WHOLE if self._is_concerned(pod) else None

    def touches(self, pod: Pod) -> Touch:
        if not self._is_concerned(pod):
            return Touch.NOTHING
        return Touch.CLUSTER if self._claim_class(pod) is None else Touch.NODE

    def distinguishes_by(self, pod: Pod) -> Hashable:
        """Return what the claims request, or the pod's name if more than that counts."""
        if not self._is_concerned(pod):
            return None
        claim_class = self._claim_class(pod)
        return pod.key if claim_class is None else claim_class

    def _is_concerned(self, pod: Pod) -> bool:
        return self._is_enabled and bool(pod.spec.resource_claims or self._extended_resources(pod))

    def _claim_class(self, pod: Pod) -> int | None:
        """Return a number for claims that need the same from a node and use node-local devices only. None if a claim is
        allocated or cannot be used, or if devices are not node-local."""
        release, snapshot = self.handle.release, self.handle.snapshot
        if pod.spec.scheduling_group is not None or release.enabled("DRANodeAllocatableResources"):
            return None
        if not release.behavior.devices_are_allocated_from_slices or snapshot.devices.node_by_pool is None:
            return None
        if self._extended_resources(pod):
            return None
        try:
            claims = [pod_claim.claim for pod_claim in pod_claims(pod, snapshot, of_groups=False)]
        except RefusalError:
            return None
        if not claims or any(claim.status.allocation is not None for claim in claims):
            return None
        from kschedx.plugins.dynamic_resources.allocator import solutions
        from kschedx.plugins.dynamic_resources.pools import DeviceFeatures

        return solutions(snapshot.devices, DeviceFeatures.of(release)).claim_class(claims).number

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if not self._is_enabled:
            return PRE_FILTER_SKIP
        self._refuse_early_releases(pod)
        state[_STATE] = None
        resources = self._extended_resources(pod)
        if not pod.spec.resource_claims and not resources:
            return PRE_FILTER_SKIP
        # few pods use devices, and the module is large
        from kschedx.plugins.dynamic_resources.decision import DeviceDecision, failure_status
        from kschedx.plugins.dynamic_resources.pools import FailureError

        try:
            decision = DeviceDecision(self.handle, pod, resources, self._binding_timeout)
        except RefusalError as refusal:
            return PreFilterResult(status=refusal.status)
        except FailureError as failure:
            return PreFilterResult(status=failure_status(failure))
        if not decision.claims:
            return PRE_FILTER_SKIP
        state[_STATE] = decision
        return PreFilterResult()

    def _refuse_early_releases(self, pod: Pod) -> None:
        release = self.handle.release
        if pod.spec.resource_claims and not release.behavior.devices_are_allocated_from_slices:
            claims = ", ".join(claim.name for claim in pod.spec.resource_claims)
            raise UndecidableError(
                f"Pod {pod.key} requests devices ({claims}): how kube-scheduler {release.version} allocated them, "
                "behind the gate DynamicResourceAllocation, is not known here; --kube-version 1.34 answers as 1.34 does"
            )

    def _extended_resources(self, pod: Pod) -> Mapping[str, int]:
        """Return the requested extended resources, if devices may provide any of them."""
        classes = self.handle.snapshot.devices.class_of_resource
        if not classes or not self.handle.release.enabled("DRAExtendedResource"):
            return {}
        resources = _requested_devices(pod)
        return resources if any(name in classes for name in resources) else {}

    @property
    def _binding_timeout(self) -> int:
        """Nanoseconds in which a driver has to make an allocated device ready."""
        timeout = self.args.binding_timeout if isinstance(self.args, DynamicResourcesArgs) else None
        return timeout or _DEFAULT_BINDING_TIMEOUT

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        decision = state[_STATE] if self._is_enabled else None
        return Verdicts.success(len(nodes)) if decision is None else decision.filter(nodes)

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        if not self._is_enabled:
            return PostFilterResult(status=unschedulable(_DISABLED))
        if _STATE not in state:
            return PostFilterResult(status=error(_NO_STATE))
        decision = state[_STATE]
        if decision is None:
            return PostFilterResult(status=unschedulable(_NO_CLAIMS))
        try:
            return decision.help(self.name, nodes, outcome)
        except (GroupError, RefusalError) as wrong:
            return PostFilterResult(status=error(str(wrong)))

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        scores = self._is_enabled and self.handle.release.enabled("DRAPrioritizedList")
        decision = state[_STATE] if scores else None
        return np.zeros(len(nodes), dtype=np.int64) if decision is None else decision.score(nodes)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return default_normalize(scores) if self._is_enabled else scores

    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Allocate devices in memory."""
        decision = state[_STATE] if self._is_enabled else None
        return SUCCESS if decision is None else Status(findings=decision.plan(self.handle.snapshot.cluster.names[node]))

    def bound(self, state: CycleState, pod: Pod, node: ClusterRow) -> BindingEffect:
        if _STATE not in state or (decision := state[_STATE]) is None:
            return NOTHING_BOUND
        return BindingEffect(devices=decision.allocated_claims(self.handle.snapshot.cluster.nodes[node]))

    def pre_bind(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        """Write the allocations to the claims."""
        return self.reserve(state, pod, node)


def _requested_devices(pod: Pod) -> Mapping[str, int]:
    """Return the requested extended resources, which devices may provide."""
    return {
        name: amount
        for name, amount in pod_request(pod.spec, pod.status, SPEC_ALONE).amounts.items()
        if amount and (is_extended_resource(name) or name.startswith(IMPLICIT_PREFIX))
    }
