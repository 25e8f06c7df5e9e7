"""Requests for devices, in the one form that a request and an alternative of it have in common."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kschedx.api.devices import (
    CapacityRequirements,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
)

_PREVENTING = ("NoSchedule", "NoExecute")
"""Effects of taints that keep a device from being allocated; others are ignored."""


class Wanted(Struct, frozen=True, kw_only=True):
    """A request, or one alternative of a request with `firstAvailable`."""

    name: str
    """Its own, without that of the request that it is an alternative of."""
    parent: str = ""
    """The request that it is an alternative of."""
    class_name: str
    selectors: tuple[DeviceSelector, ...]
    mode: str
    count: int
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None

    @property
    def base(self) -> str:
        """The name of the request as a whole."""
        return self.parent or self.name

    @property
    def alternative(self) -> str:
        return self.name if self.parent else ""

    @property
    def full_name(self) -> str:
        """As results of an allocation name it: `request`, or `request/alternative`."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    def tolerates(self, taints: tuple[DeviceTaint, ...]) -> bool:
        """Whether no taint keeps the device from this request."""
        return not any(
            taint.effect in _PREVENTING and not any(one.tolerates(taint) for one in self.tolerations)
            for taint in taints
        )


class Checked(Struct, kw_only=True):
    """A request with its class, on one node."""

    wanted: Wanted
    device_class: DeviceClass
    count: int
    everything: tuple[int, ...] = ()
    """Positions of all devices that match, where all of them are asked for."""


def alternatives(request: DeviceRequest) -> Iterator[Wanted]:
    """The request itself, or what it would be content with, best first."""
    if request.first_available:
        yield from (_wanted(one, one.name, request.name) for one in request.first_available)
    elif request.exactly is not None:
        yield _wanted(request.exactly, request.name, "")


def _wanted(request: ExactDeviceRequest | DeviceSubRequest, name: str, parent: str) -> Wanted:
    return Wanted(
        name=name,
        parent=parent,
        class_name=request.device_class_name,
        selectors=request.selectors,
        mode=request.allocation_mode,
        count=request.count,
        admin_access=request.admin_access if isinstance(request, ExactDeviceRequest) else None,
        tolerations=request.tolerations,
        capacity=request.capacity,
    )
