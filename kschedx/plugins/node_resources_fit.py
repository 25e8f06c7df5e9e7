"""NodeResourcesFit (pkg/scheduler/framework/plugins/noderesources/fit.go)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import partial
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.findings import InsufficientResource, PluginMessage, TooManyPods
from kschedx.framework.args import LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO, NodeResourcesFitArgs
from kschedx.framework.interface import (
    WHOLE,
    CycleState,
    FilterPlugin,
    Handle,
    PlacementScorePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    Room,
    ScorePlugin,
    StateKey,
    Texts,
    Touch,
)
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts, unresolvable
from kschedx.kube.names import CPU, is_extended_resource, is_scalar_resource
from kschedx.kube.resources import pod_request
from kschedx.kube.types import Pod
from kschedx.plugins.resource_allocation import (
    Allocation,
    Offer,
    amounts,
    least_allocated,
    most_allocated,
    read_requests,
    requested_to_capacity_ratio,
    scored_devices,
    scored_options,
    scored_request,
    touches_through_requests,
)
from kschedx.snapshot.columns import BoolArray, Column, IntArray, TableRow
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import NATIVE

_REASON_SIDECAR = "Pod has a restartable init container and the SidecarContainers feature is disabled"
_REFUSED_SIDECAR = unresolvable(_REASON_SIDECAR, PluginMessage(text=_REASON_SIDECAR))
_REASON_PODS = "Too many pods"

_NEVER, _FULL = int(Code.UNSCHEDULABLE_AND_UNRESOLVABLE), int(Code.UNSCHEDULABLE)  # numpy is slow with enum members

_REQUEST: StateKey[Mapping[str, int]] = StateKey(
    "PreFilterNodeResourcesFit", 'error reading "{}" from cycleState: not found'
)


_SCORED: StateKey[tuple[int, ...]] = StateKey("NodeResourcesFit/scored")
"""The pod's request of each scored resource, counted once for an equivalence class."""


class _Check(Struct, frozen=True, kw_only=True):
    """One resource that the pod requests, on every node."""

    resource: str
    request: int
    allocatable: IntArray
    short: BoolArray  # (node,) whether the free amount is too small

    @property
    def never_fits(self) -> BoolArray:
        """(node,) whether even the empty node is too small, so that no eviction helps."""
        return self.short & (self.request > self.allocatable)


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, PlacementScorePlugin):
    """Rejects nodes whose free resources are below the pod's requests, and scores nodes by their utilization. Of the
    placements of a pod group, the one with the highest utilization wins."""

    name = "NodeResourcesFit"
    reads_sums = True
    texts: ClassVar[Texts] = {
        "too-many-pods": (_REASON_PODS,),
        "insufficient-resource": ("Insufficient {subject}",),
        "plugin-message": (_REASON_SIDECAR,),
    }

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        assert isinstance(args, NodeResourcesFitArgs)
        self._ignored = frozenset(args.ignored_resources)
        self._ignored_groups = frozenset(args.ignored_resource_groups)
        self._strategy = args.scoring_strategy
        self._behavior = handle.release.behavior

    def reads(self, pod: Pod) -> Hashable:
        requests = read_requests(self.handle, pod)
        return WHOLE if requests is WHOLE else (self._refuses_sidecars(pod), requests)

    def touches(self, pod: Pod) -> Touch:
        return touches_through_requests(self.handle, pod)

    # --- filter

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        if self._refuses_sidecars(pod) and not self._behavior.sidecars_are_refused_node_by_node:
            return PreFilterResult(status=_REFUSED_SIDECAR)
        # a pod without a node is not being resized; DynamicResources counts what its devices use
        options = replace(nodes.options, use_status_resources=False, node_allocatable_claims=False)
        state[_REQUEST] = pod_request(pod.spec, pod.status, options).amounts
        return PreFilterResult()

    def _refuses_sidecars(self, pod: Pod) -> bool:
        if self.handle.release.enabled("SidecarContainers") or not self._behavior.sidecars_are_known:
            return False
        return any(container.is_restartable_init for container in pod.spec.init_containers)

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        if self._refuses_sidecars(pod):
            return Verdicts.everywhere(len(nodes), _REFUSED_SIDECAR)
        checks = [self._check(nodes, resource, amount) for resource, amount in self._checked_resources(state[_REQUEST])]
        crowded = nodes.pod_count + 1 > nodes.allowed_pods

        def explain(row: TableRow) -> tuple[TooManyPods | InsufficientResource, ...]:
            pods = (TooManyPods(pods=int(nodes.pod_count[row]), allowed=int(nodes.allowed_pods[row])),)
            short = tuple(_insufficient(check, nodes, row) for check in checks if check.short[row])
            return pods + short if crowded[row] else short

        failed = np.stack([crowded, *(check.short for check in checks)]).T
        some = failed.any(axis=1)
        if not some.any():
            return Verdicts.success(len(nodes))
        never = np.zeros(len(nodes), dtype=np.bool_)
        if self._behavior.oversized_requests_are_unresolvable:
            for check in checks:
                never |= check.never_fits
        reasons = (_REASON_PODS, *(f"Insufficient {check.resource}" for check in checks))
        return Verdicts(
            codes=np.where(never, _NEVER, np.where(some, _FULL, 0)), reasons=_reasons(failed, reasons), explain=explain
        )

    def room(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Room | None:
        """`filter` as an inequality, with all terms that depend on the node's pods on one side."""
        checked = list(self._checked_resources(state[_REQUEST]))
        known = nodes.resources.index
        is_bounded = all(resource in known and not self._has_device_class(resource) for resource, _ in checked)
        # sums that wrap around do not grow with every pod
        if self._refuses_sidecars(pod) or not is_bounded or nodes.requests.matrix.may_overflow:
            return None
        places = [known[resource] for resource, _ in checked]
        requested = np.array([amount for _, amount in checked], dtype=np.int64)
        # the number of pods is checked first
        limit = np.empty((len(nodes), 1 + len(places)), dtype=np.int64)  # by rows: parts are taken often
        limit[:, 0], limit[:, 1:] = nodes.allowed_pods - 1, nodes.allocatable[:, places] - requested

        def sums(some: NodeTable) -> IntArray:
            used = np.empty((len(some), 1 + len(places)), dtype=np.int64)
            used[:, 0] = some.pod_count
            used[:, 1:] = some.requested.take(places, axis=1)
            return used

        def weights(rows: IntArray) -> IntArray:
            return np.column_stack([np.ones(len(rows), dtype=np.int64), nodes.requests.matrix[rows][:, places]])

        return Room(limit=limit, used=sums(nodes), sums=sums, weights=weights)

    def _checked_resources(self, request: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        """Yield the checked resources with their amounts: cpu, memory, ephemeral-storage, then the others by name."""
        others = sorted(request.keys() - set(NATIVE))
        asks_for_nothing = not others and not any(request.values())
        for resource in (*NATIVE, *others):
            amount = request.get(resource, 0)
            compares_zero = self._behavior.zero_requests_can_be_short and resource in NATIVE and not asks_for_nothing
            if (amount > 0 or compares_zero) and not self._is_ignored(resource):
                yield resource, amount

    def _is_ignored(self, resource: str) -> bool:
        """Return whether the configuration ignores an extended resource, by name or by prefix."""
        group = resource.partition("/")[0]
        return is_extended_resource(resource) and (resource in self._ignored or group in self._ignored_groups)

    def _check(self, nodes: NodeTable, resource: str, request: int) -> _Check:
        allocatable = amounts(nodes, nodes.allocatable, resource)
        short = request > allocatable - amounts(nodes, nodes.requested, resource)
        if self._has_device_class(resource):
            also_zero = self._behavior.devices_replace_resources_offered_as_zero
            short &= allocatable > 0 if also_zero else _offers(nodes, resource)
        return _Check(resource=resource, request=request, allocatable=allocatable, short=short)

    def _has_device_class(self, resource: str) -> bool:
        """Return whether a DeviceClass provides the resource. On nodes that do not offer it, DynamicResources looks for
        devices."""
        return (
            is_scalar_resource(resource)
            and self.handle.release.enabled("DRAExtendedResource")
            and resource in self.handle.snapshot.devices.class_of_resource
        )

    # --- score

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        return self._score(self.allocation(state, pod, nodes))

    def allocation(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Allocation:
        return self._offer(state, pod, nodes).allocation(nodes)

    def scorer(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Callable[[NodeTable], IntArray]:
        offered = self._offer(state, pod, nodes)
        return lambda part: self._score(offered.at(part.rows).allocation(part))

    def _offer(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Offer:
        if _SCORED not in state:
            state[_SCORED] = self._scored_request(pod, nodes)
        requested, devices = state[_SCORED], partial(scored_devices, self.handle)
        return Offer.of(nodes, self._strategy.resources, requested, with_defaults=True, devices=devices)

    def _score(self, allocation: Allocation) -> IntArray:
        strategy = self._strategy
        if strategy.type == REQUESTED_TO_CAPACITY_RATIO and strategy.requested_to_capacity_ratio is not None:
            shape = strategy.requested_to_capacity_ratio.shape
            return requested_to_capacity_ratio(allocation, strategy.resources, shape)
        mean = {LEAST_ALLOCATED: least_allocated, MOST_ALLOCATED: most_allocated}[strategy.type]
        return mean(allocation, strategy.resources)

    def score_placement(self, pods: Sequence[Pod], nodes: NodeTable) -> int:
        resources = self._strategy.resources
        requested = np.array([self._scored_request(pod, nodes) for pod in pods], dtype=np.int64).sum(axis=0)
        offered = Offer.of(nodes, resources, requested.tolist(), with_defaults=True, devices=lambda nodes, name: None)
        each = offered.allocation(nodes)
        allocatable, allocated = each.allocatable.sum(axis=0), each.allocated.sum(axis=0)
        whole = Allocation(
            counts=allocatable[np.newaxis] != 0,
            allocatable=allocatable[np.newaxis],
            allocated=allocated[np.newaxis],
            requested=(allocated + requested)[np.newaxis],
            counts_everywhere=bool(allocatable.all()),
        )
        return int(most_allocated(whole, resources)[0])

    def _scored_request(self, pod: Pod, nodes: NodeTable) -> tuple[int, ...]:
        options = scored_options(nodes.options, self.handle.release)
        if not self._behavior.fit_scores_honor_gates:
            # unlike the filter, scores ignore pod-level requests: the scorers get no feature gates
            options = replace(options, use_status_resources=False, pod_level_resources=False, pod_level_in_place=False)
        request = pod_request(pod.spec, pod.status, options)
        return scored_request(request, self._strategy.resources, with_defaults=True)


def _offers(nodes: NodeTable, resource: str) -> BoolArray:
    """(node,) whether the node's allocatable names the resource, even with 0."""
    column = nodes.resources.index.get(resource)
    return np.zeros(len(nodes), dtype=np.bool_) if column is None else nodes.offers[:, column]


def _reasons(failed: BoolArray, reasons: tuple[str, ...]) -> Column[tuple[str, ...]]:
    """(node,) the reasons of the failed (node, reason) checks, built once for each combination."""
    codes = np.zeros(len(failed), dtype=np.int64)
    for column in failed.T:
        if column.any():
            # the checks as a binary number, compacted after each digit so that any number of checks fits
            codes = 2 * codes + column
            codes = (np.cumsum(np.bincount(codes) > 0) - 1)[codes]
    examples = np.zeros(int(codes.max(initial=0)) + 1, dtype=np.int64)
    examples[codes] = np.arange(len(codes))
    return Column(codes, [tuple(reasons[i] for i in np.flatnonzero(failed[row])) for row in examples])


def _insufficient(check: _Check, nodes: NodeTable, row: TableRow) -> InsufficientResource:
    return InsufficientResource(
        resource=check.resource,
        requested=check.request,
        used=_used_amount(nodes, row, check.resource),
        allocatable=int(check.allocatable[row]),
        unit="m" if check.resource == CPU else "",
        offered_nowhere=not check.allocatable.any() and not _is_offered(nodes, check.resource),
    )


def _is_offered(nodes: NodeTable, resource: str) -> bool:
    column = nodes.cluster.resources.index.get(resource)
    return column is not None and bool(nodes.cluster.allocatable[:, column].any())


def _used_amount(nodes: NodeTable, row: TableRow, resource: str) -> int:
    """Return what the pods on a node request, even of a resource that no node offers any more."""
    if resource in nodes.resources.index:
        return int(amounts(nodes, nodes.requested, resource)[row])
    requests = nodes.pods.requests(nodes.options)
    return sum(requests[int(pod)].amounts.get(resource, 0) for pod in nodes.pods_on(row))
