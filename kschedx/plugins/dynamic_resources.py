"""DynamicResources (pkg/scheduler/framework/plugins/dynamicresources), as far as pods without devices go.

A pod that asks for devices, by a claim or by an extended resource that a DeviceClass stands for, is one that kschedx
cannot decide yet: `UndecidableError`.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kschedx.api.resources import RequestOptions, is_extended_resource, pod_request
from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
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
from kschedx.framework.state import CycleState, NotPreparedError, StateKey
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, error
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.devices import IMPLICIT_PREFIX
from kschedx.snapshot.nodes import NodeTable

NO_CLAIMS = "no new claims to deallocate"
DISABLED = "plugin disabled"
NO_STATE = "not found"
"""What CycleState says about a key that nobody wrote: another plugin ended PreFilter before this one's turn."""

_SPEC_ALONE = RequestOptions(use_status_resources=False, pod_level_resources=True, pod_level_in_place=False)


class _State(Struct, frozen=True, kw_only=True):
    """PreFilter saw a pod without devices."""


STATE: StateKey[_State] = StateKey("DynamicResources")


class DynamicResources(
    PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, ScorePlugin, ReservePlugin, PreBindPlugin
):
    """Allocates devices to pods that claim some, and has nothing to say about all others."""

    name = "DynamicResources"

    @property
    def _enabled(self) -> bool:
        return self.handle.release.enabled("DynamicResourceAllocation")

    def pre_enqueue(self, pod: Pod) -> Status:
        if self._enabled:
            _refuse_claims(pod)
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if self._enabled:
            _refuse_claims(pod)
            self._refuse_extended_resources(pod)
            state[STATE] = _State()
        return PRE_FILTER_SKIP

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        """Reached only where PreFilter did not run for this plugin."""
        failed = np.full(len(nodes), not self._lookup(state).is_success)
        return Verdicts.first_of((failed, Code.ERROR, NO_STATE))

    def post_filter(
        self, state: CycleState, pod: Pod, nodes: NodeTable, outcome: FilterOutcome | Status
    ) -> PostFilterResult:
        if not self._enabled:
            return PostFilterResult(status=Status(code=Code.UNSCHEDULABLE, reasons=(DISABLED,)))
        missing = self._lookup(state)
        if not missing.is_success:
            return PostFilterResult(status=missing)
        return PostFilterResult(status=Status(code=Code.UNSCHEDULABLE, reasons=(NO_CLAIMS,)))

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        if self.handle.release.enabled("DRAPrioritizedList") and not self._lookup(state).is_success:
            raise NotPreparedError(NO_STATE)
        return np.zeros(len(nodes), dtype=np.int64)

    def reserve(self, state: CycleState, pod: Pod, node: int) -> Status:
        return self._lookup(state)

    def pre_bind(self, state: CycleState, pod: Pod, node: int) -> Status:
        return self._lookup(state)

    def _lookup(self, state: CycleState) -> Status:
        """Success where PreFilter ran, which settles that the pod has no devices, or where the plugin is off."""
        return SUCCESS if STATE in state or not self._enabled else error(NO_STATE)

    def _refuse_extended_resources(self, pod: Pod) -> None:
        if not self.handle.release.enabled("DRAExtendedResource"):
            return
        classes = self.handle.snapshot.device_class_of_resource
        for resource, amount in pod_request(pod.spec, pod.status, _SPEC_ALONE).amounts.items():
            named = is_extended_resource(resource) or resource.startswith(IMPLICIT_PREFIX)
            if amount and named and resource in classes:
                raise _undecidable(pod, f"{resource}, for which DeviceClass {classes[resource]} allocates devices")


def _refuse_claims(pod: Pod) -> None:
    if pod.spec.resource_claims:
        names = ", ".join(claim.name for claim in pod.spec.resource_claims)
        raise _undecidable(pod, f"devices by spec.resourceClaims ({names})")


def _undecidable(pod: Pod, asked: str) -> UndecidableError:
    return UndecidableError(
        f"Pod {pod.key} asks for {asked}: allocating devices (DynamicResources) is not supported yet, so no verdict"
    )
