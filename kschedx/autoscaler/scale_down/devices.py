"""How much of a node's own devices is allocated, as cluster-autoscaler counts it.

Upstream: simulator/dynamicresources/utils/utilization.go.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence

from msgspec import Struct

from kschedx.api.devices import Device, DeviceRequestAllocationResult, ResourceSlice
from kschedx.api.quantity import milli_value
from kschedx.snapshot.devices import Devices

Pool = tuple[str, str]
"""Driver and name."""


class DeviceUse(Struct, frozen=True, kw_only=True):
    """Of the pool that is used most."""

    pool: str
    """`driver/pool`."""
    allocated: int
    devices: int
    share: float


def has_devices(node: str, devices: Devices) -> bool:
    """Of its own: those that several nodes can reach do not count."""
    return any(one.spec.node_name == node for one in devices.slices)


def device_use(node: str, pods: Collection[str], devices: Devices) -> DeviceUse | None:
    """`pods` are those on the node, as `namespace/name`. None where a pool is not whole, and so cannot be counted."""
    taken: dict[Pool, set[str]] = defaultdict(set)
    for one in _allocations(pods, devices):
        if not one.admin_access:
            taken[one.driver, one.pool].add(one.device)
    of_pools: dict[Pool, list[ResourceSlice]] = defaultdict(list)
    for one_slice in devices.slices:
        if one_slice.spec.node_name == node:
            of_pools[one_slice.spec.driver, one_slice.spec.pool.name].append(one_slice)
    most: DeviceUse | None = None
    for (driver, name), published in of_pools.items():
        newest = max(one.spec.pool.generation for one in published)
        current = [one for one in published if one.spec.pool.generation == newest]
        if len(current) != current[0].spec.pool.resource_slice_count:
            return None
        made = _use(f"{driver}/{name}", current, taken[driver, name])
        most = made if most is None or made.share >= most.share else most
    return most


def _allocations(pods: Collection[str], devices: Devices) -> Iterator[DeviceRequestAllocationResult]:
    """What claims of these pods have got."""
    for claim in devices.claims.values():
        namespace = claim.metadata.namespace
        users = (f"{namespace}/{one.name}" for one in claim.status.reserved_for if one.resource == "pods")
        if claim.status.allocation is not None and any(user in pods for user in users):
            yield from claim.status.allocation.devices.results


def _use(name: str, slices: Sequence[ResourceSlice], taken: Collection[str]) -> DeviceUse:
    every = [device for one in slices for device in one.spec.devices]
    allocated = [device for device in every if device.name in taken]
    if any(one.spec.shared_counters for one in slices):
        share = _of_counters(slices, every, allocated)
    else:
        share = len(allocated) / len(every) if every else 0.0
    return DeviceUse(pool=name, allocated=len(allocated), devices=len(every), share=share)


def _of_counters(slices: Sequence[ResourceSlice], every: Sequence[Device], allocated: Sequence[Device]) -> float:
    """A set of counters stands for a machine that is divided: its scarcest counter counts, and the mean of all sets."""
    machines = {consumed.counter_set for device in every for consumed in _parts(device).consumes_counters}
    used: Counter[tuple[str, str]] = Counter()
    for device in allocated:
        for consumed in _parts(device).consumes_counters:
            used.update({(consumed.counter_set, key): milli_value(one.value) for key, one in consumed.counters.items()})
    total = 0.0
    for one in slices:
        for counters in one.spec.shared_counters:
            offered = {key: milli_value(counter.value) for key, counter in counters.counters.items()}
            shares = [used[counters.name, key] / amount for key, amount in offered.items() if amount]
            total += max(shares, default=0.0) / len(machines) if machines else 0.0
    return total


def _parts(device: Device) -> Device:
    """v1beta1 has them one level down."""
    if device.basic is None:
        return device
    return Device(name=device.name, consumes_counters=device.basic.consumes_counters)
