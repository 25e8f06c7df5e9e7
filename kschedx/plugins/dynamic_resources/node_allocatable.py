"""Devices that are made of a node's allocatable resources, behind the gate DRANodeAllocatableResources.

What such devices take of cpu and memory counts with what the pod's containers request, and must fit on the node.
Upstream: pkg/scheduler/framework/plugins/dynamicresources/nodeallocatabledynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kschedx.api.devices import Device, ResourceClaim
from kschedx.api.quantity import parse_quantity
from kschedx.api.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_hugepages
from kschedx.api.resources import exact_nano_units, pod_request
from kschedx.api.types import NodeAllocatableResourceClaimStatus, Pod
from kschedx.findings import PluginMessage
from kschedx.framework.interface import Handle
from kschedx.framework.status import SUCCESS, Code, Status
from kschedx.plugins.dynamic_resources.claims import PodClaim, unschedulable
from kschedx.plugins.dynamic_resources.features import Features, published
from kschedx.plugins.dynamic_resources.picks import FailureError, Pick, Result
from kschedx.plugins.resource_allocation import amounts
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow, TableRows

_NANO = 10**9


def refuses_sharing(claim: ResourceClaim, pod: Pod, nodes: NodeTable, row: TableRow) -> Status:
    """Not Success where other pods on the node use the claim, as their status says."""
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


def fits(
    handle: Handle,
    pod: Pod,
    claims: Sequence[PodClaim],
    result: Mapping[str, Sequence[Pick]],
    nodes: NodeTable,
    row: TableRow,
) -> Status:
    """Whether the pod fits with what its new devices take. `result` is by name of the claim. Raises `FailureError`."""
    known = _known_devices(handle)
    statuses = []
    for name in sorted(result):
        if any(known(pick).node_allocatable_resource_mappings for pick in result[name]):
            status = _status(pod, claims, name, result[name], known)
            if status is not None:
                statuses.append(status)
    if not any(known(pick).node_allocatable_resource_mappings for picks in result.values() for pick in picks):
        return SUCCESS
    for status in statuses:
        if not status.containers:
            unused = "node-allocatable resource claim not referenced by any container within the pod"
            return _unschedulable(f"claim {status.resource_claim_name}: {unused}")
    return _demand_fits(pod, tuple(statuses), nodes, row)


def by_claim(claims: Sequence[ResourceClaim], result: Result) -> Mapping[str, Sequence[Pick]]:
    return {claim.metadata.name: picks for claim, picks in zip(claims, result, strict=True)}


class _Known:
    """Devices by pool and name; upstream does not look at the driver."""

    def __init__(self, devices: Iterator[tuple[tuple[str, str], Device]]) -> None:
        self._devices: dict[tuple[str, str], Device] = {}
        for key, device in devices:
            self._devices.setdefault(key, device)

    def __call__(self, pick: Pick) -> Device:
        return self._devices[pick.device.id[1:]]


def _known_devices(handle: Handle) -> _Known:
    slices = published(handle.snapshot.devices, Features.of(handle.release))
    return _Known(((one.spec.pool.name, device.name), device) for one in slices for device in one.spec.devices)


def _status(
    pod: Pod, claims: Sequence[PodClaim], claim: str, picks: Sequence[Pick], known: _Known
) -> NodeAllocatableResourceClaimStatus | None:
    """What a claim takes of the node, and which containers use it; None where it takes nothing."""
    total: dict[str, int] = {}
    for pick in picks:
        for resource, amount in _taken(pod, claim, pick, known(pick)):
            total[resource] = total.get(resource, 0) + amount
    if not total:
        return None
    names = {one.name for one in claims if one.claim.metadata.name == claim}
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


def _taken(pod: Pod, claim: str, pick: Pick, device: Device) -> Iterator[tuple[str, int]]:
    """In nano-units, what a device takes of each resource: a capacity, a constant, or a multiple of the capacity."""
    for resource, mapping in device.node_allocatable_resource_mappings.items():
        factor = None
        if mapping.allocation_multiplier is not None:
            factor = exact_nano_units(parse_quantity(mapping.allocation_multiplier))
        if not mapping.capacity_key:
            yield resource, factor or 0
            continue
        if not pick.share:
            key = f"Capacity key '{mapping.capacity_key}' is set in NodeAllocatableResourceMappings"
            whose = f"claim {pod.metadata.namespace}/{claim}, device {device.name}"
            raise FailureError(f"{whose}: ConsumedCapacity is nil, but {key} for resource {resource}")
        consumed = pick.share.get(mapping.capacity_key)
        if consumed is not None:
            # nothing finer than a nano-unit is kept, rounded up
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
    findings = tuple(PluginMessage(text=f"{reason}, with what the pod's devices take") for reason in reasons)
    return Status(code=code, reasons=tuple(reasons), findings=findings)


def _unschedulable(text: str) -> Status:
    return unschedulable(text, PluginMessage(text=text))
