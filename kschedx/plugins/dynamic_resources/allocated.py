"""What claims have already (pkg/scheduler/framework/plugins/dynamicresources/allocateddevices.go)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.resources import nano_units
from kschedx.plugins.dynamic_resources.capacity import Amounts
from kschedx.plugins.dynamic_resources.pools import DeviceID
from kschedx.snapshot.devices import Devices


class AllocatedState(Struct, frozen=True, kw_only=True):
    devices: frozenset[DeviceID]
    """Those that nobody else can have."""
    shared: frozenset[DeviceID]
    """Those of which claims have shares."""
    capacity: Mapping[DeviceID, Amounts]
    """What these shares take."""

    def has(self, id_: DeviceID) -> bool:
        return id_ in self.devices or id_ in self.shared or id_ in self.capacity


def allocated_state(devices: Devices, *, shares: bool) -> AllocatedState:
    """What all claims have; devices with admin access are not taken. `shares`: devices can be shared."""
    key = ("allocated", shares)
    found = devices.derived.get(key)
    if not isinstance(found, AllocatedState):
        found = devices.derived[key] = _allocated(devices, shares=shares)
    return found


def _allocated(devices: Devices, *, shares: bool) -> AllocatedState:
    taken: set[DeviceID] = set()
    shared: set[DeviceID] = set()
    capacity: dict[DeviceID, dict[str, int]] = {}
    for claim in devices.claims.values():
        allocation = claim.status.allocation
        for result in allocation.devices.results if allocation is not None else ():
            id_ = (result.driver, result.pool, result.device)
            if result.admin_access:
                continue
            if not shares or result.share_id is None:
                taken.add(id_)
                continue
            shared.add(id_)
            if result.consumed_capacity is not None:
                amounts = capacity.setdefault(id_, {})
                for name, written in result.consumed_capacity.items():
                    amounts[name] = amounts.get(name, 0) + nano_units(written)
    return AllocatedState(devices=frozenset(taken), shared=frozenset(shared), capacity=capacity)
