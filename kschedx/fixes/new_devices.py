"""The devices of a node that would do: copies of those that the cluster has, as few as do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec.structs import replace

from kschedx.api.devices import Device, DeviceRequest, ResourcePool, ResourceSlice, ResourceSliceSpec
from kschedx.api.types import ObjectMeta
from kschedx.fixes.situation import Situation

MOST_KINDS = 6
MOST_OF_A_KIND = 8


class DeviceKind:
    """Devices that differ in nothing but their name."""

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device

    @property
    def key(self) -> str:
        return repr((self.driver, self.device))


def device_kinds(situation: Situation) -> tuple[DeviceKind, ...]:
    """What the cluster has, those that stand alone: no partitions, nothing that is shared or tainted."""
    found: dict[str, DeviceKind] = {}
    for one in situation.snapshot.devices.slices:
        for device in one.spec.devices:
            plain = replace(
                device,
                name="",
                node_name=None,
                node_selector=None,
                all_nodes=False,
                taints=(),
                consumes_counters=(),
                binds_to_node=False,
                binding_conditions=(),
                binding_failure_conditions=(),
            )
            kind = DeviceKind(one.spec.driver, plain)
            found.setdefault(kind.key, kind)
    return tuple(found.values())[:MOST_KINDS]


def wanted_devices(situation: Situation) -> int:
    """How many devices the pod's claims ask for, at most; one where they ask for all that match."""
    pod, claims = situation.pod, situation.snapshot.devices.claims
    generated = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    total = 0
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name or generated.get(reference.name)
        claim = claims.get(f"{pod.metadata.namespace}/{name}")
        total += sum(map(_count, claim.spec.devices.requests)) if claim is not None else 0
    return max(1, min(total, MOST_OF_A_KIND))


def _count(request: DeviceRequest) -> int:
    if request.exactly is not None:
        return max(int(request.exactly.count), 1)
    return max((max(int(one.count), 1) for one in request.first_available), default=1)


def slices_with(kinds: Mapping[DeviceKind, int], node: str) -> Iterator[ResourceSlice]:
    """What the drivers of a node would publish: so many of each kind."""
    by_driver: dict[str, list[Device]] = {}
    for kind, count in kinds.items():
        devices = by_driver.setdefault(kind.driver, [])
        devices += [replace(kind.device, name=f"device-{len(devices) + at}") for at in range(count)]
    for driver, devices in by_driver.items():
        if devices:
            yield ResourceSlice(
                metadata=ObjectMeta(name=f"{node}-{driver}"),
                spec=ResourceSliceSpec(
                    driver=driver,
                    pool=ResourcePool(name=node, generation=1, resource_slice_count=1),
                    node_name=node,
                    devices=tuple(devices),
                ),
            )
