"""The utilization of nodes and its scores (pkg/scheduler/framework/plugins/noderesources, resource_allocation.go and
one file per strategy)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.args import ResourceSpec, UtilizationShapePoint
from kschedx.framework.interface import WHOLE, Handle, Touch
from kschedx.framework.status import MAX_NODE_SCORE
from kschedx.kube.names import CPU, MEMORY, is_extended_resource, is_scalar_resource
from kschedx.kube.resources import PodRequest, RequestOptions, pod_request
from kschedx.kube.scalars import truncated_quotient
from kschedx.kube.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.columns import BoolArray, IntArray, Memo
from kschedx.snapshot.devices import IMPLICIT_PREFIX
from kschedx.snapshot.nodes import NodeTable

# The score of a utilization on a configured shape (pkg/scheduler/framework/plugins/helper/shape_score.go).

_MAX_SHAPE_SCORE = 10  # it corresponds to `MAX_NODE_SCORE`


def shape_score(shape: Sequence[UtilizationShapePoint], utilization: int) -> int:
    """Return 0 to 100 for a utilization in percent: constant outside the shape, linear between two of its points."""
    scale = MAX_NODE_SCORE // _MAX_SHAPE_SCORE
    before: UtilizationShapePoint | None = None
    for point in shape:
        if utilization <= point.utilization:
            if before is None:
                return point.score * scale
            rise, run = (point.score - before.score) * scale, point.utilization - before.utilization
            return before.score * scale + truncated_quotient(rise * (utilization - before.utilization), run)
        before = point
    return shape[-1].score * scale


# Normalization that several plugins share (pkg/scheduler/framework/plugins/helper/normalize_score.go).


def default_normalize(scores: IntArray, *, reverse: bool = False, most: int = MAX_NODE_SCORE) -> IntArray:
    """Scale so that the highest score becomes `most`; with `reverse`, it becomes 0 and zero becomes `most`."""
    highest = max(int(scores.max(initial=0)), 0)
    if highest == 0:
        return np.full_like(scores, most) if reverse else scores
    scaled = most * scores // highest
    return most - scaled if reverse else scaled


def amounts(nodes: NodeTable, matrix: IntArray, resource: str) -> IntArray:
    """(node,) a resource's column of `nodes.allocatable` or `nodes.requested`; zeros if no node has it."""
    column = nodes.resources.index.get(resource)
    return np.zeros(len(nodes), dtype=np.int64) if column is None else matrix[:, column]


def truncating_divide(dividend: IntArray, divisor: IntArray | int) -> IntArray:
    """Go's `/` on int64 arrays: rounds towards zero, while numpy's `//` rounds down."""
    quotient: IntArray = dividend // divisor
    if quotient.min(initial=0) < 0:
        quotient[(quotient < 0) & (quotient * divisor != dividend)] += 1
    return quotient


_DeviceTotals = Callable[[NodeTable, str], tuple[IntArray, IntArray] | None]
"""(node,) the devices that provide an extended resource, and how many of them are allocated; None if no devices provide
it."""


def scored_devices(handle: Handle, nodes: NodeTable, resource: str) -> tuple[IntArray, IntArray] | None:
    """`_DeviceTotals` of a handle's cluster."""
    release, devices = handle.release, handle.snapshot.devices
    if not release.enabled("DRAExtendedResource") or not release.behavior.devices_are_scored:
        return None
    name = devices.class_of_resource.get(resource)
    if name is None or not (is_extended_resource(resource) or resource.startswith(IMPLICIT_PREFIX)):
        return None
    # few configurations score such a resource, and the module is large
    from kschedx.plugins.dynamic_resources.totals import device_totals

    return device_totals(handle, nodes, devices.classes[name])


def touches_through_requests(handle: Handle, pod: Pod) -> Touch:
    """A pod's requests change its own node; devices behind extended resources are allocated cluster-wide."""
    return Touch.CLUSTER if handle.snapshot.devices.provides_request(pod.spec) else Touch.NODE


def read_requests(handle: Handle, pod: Pod) -> Hashable:
    """`Plugin.reads` of a pod's requests, as they count on a node, for a pending pod, and for scores."""
    if touches_through_requests(handle, pod) is Touch.CLUSTER:
        return WHOLE
    spec, status, options = pod.spec, pod.status, handle.nodes.options
    if status.container_statuses or status.init_container_statuses:
        return _read(handle.release, options, pod)
    # many apps differ in other respects, and not in what their containers request
    running = [container.resources for container in spec.containers]
    starting = [(container.resources, container.restart_policy) for container in spec.init_containers]
    parts = _ENCODER.encode((running, starting, spec.overhead, spec.resources, status))
    return _READ.of(handle.nodes.cluster.derived, lambda: _read(handle.release, options, pod), options, parts)


_ENCODER = msgspec.json.Encoder()
_READ = Memo[Hashable]()


def _read(release: Release, options: RequestOptions, pod: Pod) -> Hashable:
    waiting = replace(options, use_status_resources=False, node_allocatable_claims=False)
    scored = scored_options(options, release)
    without_gates = replace(scored, use_status_resources=False, pod_level_resources=False, pod_level_in_place=False)
    requests = (
        pod_request(pod.spec, pod.status, request_options)
        for request_options in dict.fromkeys((options, waiting, scored, without_gates))
    )
    return tuple((frozenset(it.amounts.items()), it.nonzero_cpu, it.nonzero_memory) for it in requests)


class Allocation(Struct, frozen=True, kw_only=True):
    """The scored resources of every node. All arrays are (node, resource), and 0 where `counts` is false."""

    counts: BoolArray  # whether the node offers the resource, and the resource is native or requested by the pod
    allocatable: IntArray
    allocated: IntArray  # requested by the pods on the node
    requested: IntArray  # `allocated` plus the incoming pod
    counts_everywhere: bool

    @property
    def capacity(self) -> IntArray:
        """`allocatable` with 1 instead of 0, as a divisor for entries that do not count."""
        return self.allocatable if self.counts_everywhere else np.where(self.counts, self.allocatable, 1)


class Offer(Struct, frozen=True, kw_only=True):
    """What nodes offer of the scored resources, apart from their pods. Arrays are (resource, node): the values of one
    resource are adjacent, which makes sums over few resources and many nodes fast."""

    counts: BoolArray  # as in `Allocation`, transposed
    allocatable: IntArray
    request: IntArray  # (resource, 1)
    columns: tuple[tuple[int, bool, int], ...]
    """Resources that are counted by requests: index, whether `nonzero_requested` applies, and the column there or in
    `requested`."""
    devices: tuple[tuple[int, BoolArray, IntArray], ...]
    """Resources that devices provide on some nodes: index, (node,) where they do, (node,) how many are allocated."""
    counts_everywhere: bool

    @classmethod
    def of(
        cls,
        nodes: NodeTable,
        resources: Sequence[ResourceSpec],
        request: Sequence[int],
        *,
        with_defaults: bool,
        devices: _DeviceTotals,
    ) -> Offer:
        """`request[i]` is the pod's request of `resources[i]`. `with_defaults` adds the assumed requests of pods
        without cpu or memory requests. `devices` count on nodes that do not offer the resource themselves."""
        counted = tuple(
            resource.name if amount or not is_scalar_resource(resource.name) else ""
            for resource, amount in zip(resources, request, strict=True)
        )
        if nodes.is_whole:
            offered = _OFFERED.of(
                nodes.cluster.derived,
                lambda: _offer(nodes, counted, with_defaults=with_defaults),
                counted,
                with_defaults,
            )
        else:
            offered = _offer(nodes, counted, with_defaults=with_defaults)
        taken: list[tuple[int, BoolArray, IntArray]] = []
        allocatable = offered.allocatable
        for i, name in enumerate(counted):
            devices_of_nodes = devices(nodes, name) if name and not allocatable[i].all() else None
            if devices_of_nodes is not None:
                instead = (allocatable[i] == 0) & (devices_of_nodes[0] > 0)
                allocatable = allocatable.copy() if allocatable is offered.allocatable else allocatable
                allocatable[i, instead] = devices_of_nodes[0][instead]
                taken.append((i, instead, devices_of_nodes[1]))
        counts = allocatable != 0 if taken else offered.counts
        return replace(
            offered,
            counts=counts,
            allocatable=allocatable,
            request=np.array(request, dtype=np.int64)[:, None],
            devices=tuple(taken),
            counts_everywhere=bool(counts.all()) if taken else offered.counts_everywhere,
        )

    def at(self, rows: IntArray) -> Offer:
        return Offer(
            counts=self.counts.take(rows, axis=1),
            allocatable=self.allocatable.take(rows, axis=1),
            request=self.request,
            columns=self.columns,
            devices=tuple((resource, instead[rows], taken[rows]) for resource, instead, taken in self.devices),
            counts_everywhere=self.counts_everywhere,
        )

    def allocation(self, nodes: NodeTable) -> Allocation:
        """Add the requests of the nodes' pods and of the incoming pod."""
        allocated = np.zeros(self.allocatable.shape, dtype=np.int64)
        for resource, is_nonzero, column in self.columns:
            allocated[resource] = (nodes.nonzero_requested if is_nonzero else nodes.requested)[:, column]
        for resource, instead, taken in self.devices:
            allocated[resource, instead] = taken[instead]
        requested = allocated + self.request
        if not self.counts_everywhere:
            allocated, requested = np.where(self.counts, allocated, 0), np.where(self.counts, requested, 0)
        return Allocation(
            counts=self.counts.T,
            allocatable=self.allocatable.T,
            allocated=allocated.T,
            requested=requested.T,
            counts_everywhere=self.counts_everywhere,
        )


_OFFERED = Memo[Offer]()


def _offer(nodes: NodeTable, counted: Sequence[str], *, with_defaults: bool) -> Offer:
    """Return what nodes offer without devices, for a request of 0. Empty names in `counted` do not count."""
    nonzero = {CPU: 0, MEMORY: 1} if with_defaults else {}
    allocatable, offered = np.zeros((len(counted), len(nodes)), dtype=np.int64), nodes.allocatable
    columns: list[tuple[int, bool, int]] = []
    for i, name in enumerate(counted):
        if not name:
            continue
        allocatable[i] = amounts(nodes, offered, name)
        column = nonzero.get(name, nodes.resources.index.get(name))
        if column is not None:
            columns.append((i, name in nonzero, column))
    counts = allocatable != 0
    return Offer(
        counts=counts,
        allocatable=allocatable,
        request=np.zeros((len(counted), 1), dtype=np.int64),
        columns=tuple(columns),
        devices=(),
        counts_everywhere=bool(counts.all()),
    )


def scored_options(options: RequestOptions, release: Release) -> RequestOptions:
    """Return how the scorers count the incoming pod, given how pods on nodes are counted."""
    whole_cpus = release.behavior.scores_round_overhead_to_units
    return replace(options, assumed_by_kind=False, overhead_in_whole_cpus=whole_cpus, node_allocatable_claims=False)


def scored_request(request: PodRequest, resources: Sequence[ResourceSpec], *, with_defaults: bool) -> tuple[int, ...]:
    """Return the incoming pod's request of each resource."""
    amounts = dict(request.amounts)
    if with_defaults:
        amounts |= {CPU: request.nonzero_cpu, MEMORY: request.nonzero_memory}
    return tuple(amounts.get(resource.name, 0) for resource in resources)


# --- strategies: (node,) scores of 0..100


def least_allocated(allocation: Allocation, resources: Sequence[ResourceSpec]) -> IntArray:
    """Return the weighted mean of the free fractions."""
    capacity = allocation.capacity
    # not `maximum`: requests that overflowed in kube-scheduler are negative, and the difference wraps around
    free = np.where(allocation.requested > capacity, 0, capacity - allocation.requested)
    return _weighted_mean(truncating_divide(free * MAX_NODE_SCORE, capacity), allocation, resources)


def most_allocated(allocation: Allocation, resources: Sequence[ResourceSpec]) -> IntArray:
    """Return the weighted mean of the requested fractions."""
    capacity = allocation.capacity
    taken = np.minimum(allocation.requested, capacity)
    return _weighted_mean(truncating_divide(taken * MAX_NODE_SCORE, capacity), allocation, resources)


def requested_to_capacity_ratio(
    allocation: Allocation, resources: Sequence[ResourceSpec], shape: Sequence[UtilizationShapePoint]
) -> IntArray:
    """The rounded weighted mean of the utilizations' scores on the shape. A resource that scores 0 does not count."""
    capacity = allocation.capacity
    taken = np.minimum(allocation.requested, capacity)
    utilization = truncating_divide(taken * 100, capacity).clip(0, 100)
    on_shape = np.array([shape_score(shape, percent) for percent in range(101)], dtype=np.int64)
    scores = on_shape[utilization]
    total, weight = _weighted_sums(scores, allocation.counts & (scores > 0), resources)
    return np.floor(total / np.maximum(weight, 1) + 0.5).astype(np.int64)


def _weighted_mean(scores: IntArray, allocation: Allocation, resources: Sequence[ResourceSpec]) -> IntArray:
    """(node,) the mean of the (node, resource) scores that count, 0 where none does."""
    if allocation.counts_everywhere:
        weights = [resource.weight for resource in resources]
        return truncating_divide(scores @ np.array(weights, dtype=np.int64), max(sum(weights), 1))
    total, weight = _weighted_sums(scores, allocation.counts, resources)
    return truncating_divide(total, np.maximum(weight, 1))


def _weighted_sums(scores: IntArray, counts: BoolArray, resources: Sequence[ResourceSpec]) -> tuple[IntArray, IntArray]:
    """(node,) the weighted sum of the scores that count, and the sum of their weights."""
    weights = np.array([resource.weight for resource in resources], dtype=np.int64) * counts
    return (scores * weights).sum(axis=1), weights.sum(axis=1)
