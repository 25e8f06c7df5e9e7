"""Constraints of a claim on all its devices together: an attribute that they share, or in which they differ.

Upstream: structured/internal/incubating/constraint.go, allocator_incubating.go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from kschedx.api.devices import DeviceAttribute
from kschedx.plugins.dynamic_resources.pools import PooledDevice


class Constraint(ABC):
    """Devices are added as they are picked and removed in reverse; a device that does not fit is not added."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        self.attribute = attribute
        self._requests = frozenset(requests)
        """Names of requests, or `request/alternative`; none for all."""

    def add(self, request: str, alternative: str, picked: PooledDevice) -> bool:
        """Whether the device can join those that were picked."""
        if not self._applies(request, alternative):
            return True
        value = attribute_of(picked, self.attribute)
        return value is not None and self._add(request, value)

    def remove(self, request: str, alternative: str) -> None:
        if self._applies(request, alternative):
            self._remove(request)

    def _applies(self, request: str, alternative: str) -> bool:
        named = request in self._requests or (bool(alternative) and f"{request}/{alternative}" in self._requests)
        return named or not self._requests

    @abstractmethod
    def _add(self, request: str, value: DeviceAttribute) -> bool: ...

    @abstractmethod
    def _remove(self, request: str) -> None: ...


class MatchAttribute(Constraint):
    """Every device has the value of the first."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._value: DeviceAttribute | None = None
        self._count = 0

    def _add(self, request: str, value: DeviceAttribute) -> bool:
        if self._count == 0:
            self._value = value
        elif self._value is None or not equal(value, self._value):
            return False
        self._count += 1
        return True

    def _remove(self, request: str) -> None:
        self._count -= 1


class DistinctAttribute(Constraint):
    """No device has the value of another. Upstream remembers one value a request, that of its last device."""

    def __init__(self, attribute: str, requests: tuple[str, ...]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, DeviceAttribute] = {}
        self._count = 0

    def _add(self, request: str, value: DeviceAttribute) -> bool:
        if self._count > 0 and any(_clashes(value, other) for other in self._values.values()):
            return False
        self._values[request] = value
        self._count += 1
        return True

    def _remove(self, request: str) -> None:
        self._values.pop(request, None)
        self._count -= 1


def attribute_of(picked: PooledDevice, name: str) -> DeviceAttribute | None:
    """By its full name, or without the domain where that is the driver's."""
    found = picked.device.attributes.get(name)
    domain, slash, own = name.partition("/")
    if found is not None or not slash or domain != picked.id[0]:
        return found
    return picked.device.attributes.get(own)


_SCALARS = ("string", "int_value", "bool_value", "version")


def equal(one: DeviceAttribute, other: DeviceAttribute) -> bool:
    """The same value of the same type; one of no known type equals none."""
    for name in _SCALARS:
        if getattr(one, name) is not None:
            return bool(getattr(one, name) == getattr(other, name))
    return False


def _clashes(one: DeviceAttribute, other: DeviceAttribute) -> bool:
    return equal(one, other) or all(getattr(one, name) is None for name in _SCALARS)
