"""The feature gates that change what is allocated, and from which slices."""

from __future__ import annotations

from msgspec import Struct

from kschedx import cel
from kschedx.api.devices import ResourceSlice
from kschedx.plugins.dynamic_resources.pools import Slices, tainted
from kschedx.releases import Release
from kschedx.snapshot.devices import Devices


class Features(Struct, frozen=True, kw_only=True):
    """Gates, each with what it is for."""

    admin_access: bool
    prioritized_list: bool
    partitionable: bool
    taints: bool
    taint_rules: bool
    binding_conditions: bool
    consumable_capacity: bool
    list_attributes: bool

    @classmethod
    def of(cls, release: Release) -> Features:
        taints = release.enabled("DRADeviceTaints")
        return cls(
            admin_access=release.enabled("DRAAdminAccess"),
            prioritized_list=release.enabled("DRAPrioritizedList"),
            partitionable=release.enabled("DRAPartitionableDevices"),
            taints=taints,
            # until 1.34 rules had no gate of their own
            taint_rules=taints and release.gates.get("DRADeviceTaintRules", True),
            binding_conditions=release.enabled("DRADeviceBindingConditions")
            and release.enabled("DRAResourceClaimDeviceStatus"),
            consumable_capacity=release.enabled("DRAConsumableCapacity"),
            list_attributes=release.enabled("DRAListTypeAttributes"),
        )

    @property
    def is_stable(self) -> bool:
        """Upstream's oldest allocator does it, which knows less."""
        return not self.binding_conditions and not self.consumable_capacity

    @property
    def cel(self) -> cel.Features:
        return cel.Features(consumable_capacity=self.consumable_capacity, list_attributes=self.list_attributes)


def published(devices: Devices, features: Features) -> tuple[ResourceSlice, ...]:
    """The slices with the taints of DeviceTaintRules, where those count."""
    key = ("published", features.taint_rules)
    found = devices.derived_from_slices.get(key)
    if not isinstance(found, tuple):
        found = devices.derived_from_slices[key] = tainted(
            devices.slices, devices.taint_rules if features.taint_rules else ()
        )
    return found


def slices(devices: Devices, features: Features) -> Slices:
    """The same by node."""
    key = ("slices", features.taint_rules, features.partitionable)
    found = devices.derived_from_slices.get(key)
    if not isinstance(found, Slices):
        found = Slices(published(devices, features), partitionable=features.partitionable)
        devices.derived_from_slices[key] = found
    return found
