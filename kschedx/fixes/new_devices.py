"""The devices of a node that would do: copies of those that the cluster has and those that claims describe, as few as
do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.devices import (
    MAX_DEVICES_OF_CLAIM,
    AllocationMode,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceRequest,
    DeviceSelector,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from kschedx.api.types import ObjectMeta
from kschedx.findings import InsufficientDevices
from kschedx.fixes.situation import Situation

MOST_KINDS = 6
MOST_OF_A_KIND = 2 * MAX_DEVICES_OF_CLAIM
MOST_OF_A_SLICE = 128
"""What an API server takes in one ResourceSlice."""


class DeviceKind:
    """Devices that differ in nothing but their name."""

    def __init__(self, driver: str, device: Device) -> None:
        self.driver = driver
        self.device = device

    @property
    def key(self) -> str:
        return repr((self.driver, self.device))


def needs_devices(situation: Situation) -> bool:
    """Whether the pod has claims, or asks for extended resources that devices stand for."""
    lacking = (one for group in situation.groups for one in group.exemplar.findings)
    return bool(situation.pod.spec.resource_claims) or any(isinstance(one, InsufficientDevices) for one in lacking)


def device_kinds(situation: Situation) -> tuple[DeviceKind, ...]:
    """What the cluster has, those that stand alone: no partitions, nothing that is shared or tainted."""
    found = {kind.key: kind for kind in _known(situation)}
    return tuple(found.values())[:MOST_KINDS]


def _known(situation: Situation) -> Iterator[DeviceKind]:
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
            yield DeviceKind(one.spec.driver, plain)


def wanted_devices(situation: Situation) -> int:
    """How many devices the pod's claims ask for, at most; one where they ask for all that match."""
    total = sum(_count(request) for claim in _claims(situation) for request in claim.spec.devices.requests)
    return max(1, min(total, MOST_OF_A_KIND))


def _claims(situation: Situation) -> Iterator[ResourceClaim]:
    pod, claims = situation.pod, situation.snapshot.devices.claims
    generated = {one.name: one.resource_claim_name for one in pod.status.resource_claim_statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_name or generated.get(reference.name)
        claim = claims.get(f"{pod.metadata.namespace}/{name}")
        if claim is not None:
            yield claim


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


# --- what claims describe

_STRING = r"""["']([^"']*)["']"""
_DRIVER = re.compile(rf"device\.driver\s*==\s*{_STRING}")
_MEMBER = rf"\[{_STRING}\]\s*(?:\.\s*(\w+)|\[{_STRING}\])"
_ATTRIBUTE = re.compile(rf"device\.attributes{_MEMBER}\s*(?:==|in)\s*\[?\s*(?:{_STRING}|(-?\d+)|(true|false))")
_SHARED = re.compile(r"device\.allowMultipleAllocations(?!\s*==\s*false)")
_CAPACITY = re.compile(rf"device\.capacity{_MEMBER}\s*\.\s*(?:compareTo|isGreaterThan)\(\s*quantity\({_STRING}\)")


class _Asked(Struct, frozen=True, kw_only=True):
    """What a request compares devices to, and how many it is for."""

    driver: str
    device: Device
    count: int
    takes_all: bool
    """Devices of others must not be among those."""


def described_devices(situation: Situation) -> dict[DeviceKind, int]:
    """A device as each request and its class compare devices to, as often as it is asked for. It is a guess: the trial
    says whether it is one of those that are asked for."""
    asked = tuple(_asked(situation))
    found: dict[str, tuple[DeviceKind, int]] = {}
    for one in asked:
        base = _base(one.driver, asked, situation)
        apart = {
            key: _other(value)
            for rival in asked
            if rival.takes_all and rival is not one
            for key, value in rival.device.attributes.items()
        }
        device = replace(
            base,
            attributes=base.attributes | apart | one.device.attributes,
            capacity=base.capacity | one.device.capacity,
            allow_multiple_allocations=base.allow_multiple_allocations or one.device.allow_multiple_allocations,
        )
        kind = DeviceKind(one.driver, device)
        found[kind.key] = (kind, found.get(kind.key, (kind, 0))[1] + one.count)
    return dict(found.values())


def _other(value: DeviceAttribute) -> DeviceAttribute:
    if value.string is not None:
        return DeviceAttribute(string="other")
    if value.int_value is not None:
        return DeviceAttribute(int_value=value.int_value + 1)
    return DeviceAttribute(bool_value=not value.bool_value)


def _asked(situation: Situation) -> Iterator[_Asked]:
    for claim in _claims(situation):
        for request in claim.spec.devices.requests:
            one = request.exactly or next(iter(request.first_available), None)
            if one is not None:
                driver, device = _compared(one.device_class_name, one.selectors, situation)
                takes_all = one.allocation_mode == AllocationMode.ALL
                yield _Asked(driver=driver, device=device, count=max(int(one.count), 1), takes_all=takes_all)
    if not situation.pod.spec.resource_claims:
        for name in situation.snapshot.devices.class_of_resource.values():
            driver, device = _compared(name, (), situation)
            yield _Asked(driver=driver, device=device, count=1, takes_all=False)


def _compared(device_class: str, selectors: tuple[DeviceSelector, ...], situation: Situation) -> tuple[str, Device]:
    of_class = situation.snapshot.devices.classes.get(device_class)
    every = (*(of_class.spec.selectors if of_class else ()), *selectors)
    text = " && ".join(one.cel.expression for one in every if one.cel is not None)
    driver = _DRIVER.search(text)
    domains = [found[0] for pattern in (_ATTRIBUTE, _CAPACITY) for found in pattern.findall(text)]
    name = driver.group(1) if driver else next(iter(domains), device_class)
    attributes = {
        _qualified(domain, one or other, name): DeviceAttribute(
            string=string or None,
            int_value=int(number) if number else None,
            bool_value=truth == "true" if truth else None,
        )
        for domain, one, other, string, number, truth in _ATTRIBUTE.findall(text)
    }
    capacity = {
        _qualified(domain, one or other, name): DeviceCapacity(value=amount)
        for domain, one, other, amount in _CAPACITY.findall(text)
    }
    shared = _SHARED.search(text) is not None
    return name, Device(attributes=attributes, capacity=capacity, allow_multiple_allocations=shared)


def _qualified(domain: str, name: str, driver: str) -> str:
    return name if domain == driver else f"{domain}/{name}"


def _base(driver: str, asked: Sequence[_Asked], situation: Situation) -> Device:
    """What a driver's devices have, so that every expression can be worked out: of one that there is, or all that is
    compared."""
    for known in _known(situation):
        if known.driver == driver:
            return known.device
    of_driver = [one.device for one in asked if one.driver == driver]
    return Device(
        attributes={key: value for one in of_driver for key, value in one.attributes.items()},
        capacity={key: value for one in of_driver for key, value in one.capacity.items()},
    )
