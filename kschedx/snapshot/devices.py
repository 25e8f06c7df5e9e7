"""Devices of a cluster, the classes they fall in, and who claims them.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field

from kschedx.api.devices import DeviceClass, DeviceTaintRule, ResourceClaim, ResourceSlice
from kschedx.api.timestamps import nanoseconds

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With a DeviceClass's name it makes the resource that every class offers."""


class Devices(Struct, frozen=True, kw_only=True, dict=True):
    """What scheduling reads of resource.k8s.io, as v1 with its defaults."""

    claims: Mapping[str, ResourceClaim] = field(default_factory=dict)
    """By `namespace/name`."""
    classes: Mapping[str, DeviceClass] = field(default_factory=dict)
    slices: Sequence[ResourceSlice] = ()
    taint_rules: Sequence[DeviceTaintRule] = ()

    @classmethod
    def of(cls, objects: Mapping[str, Sequence[Any]]) -> Devices:
        """From records by kind."""
        return cls(
            claims={claim.key: claim for claim in objects["ResourceClaim"]},
            classes={one.name: one for one in objects["DeviceClass"]},
            slices=tuple(objects["ResourceSlice"]),
            taint_rules=tuple(sorted(objects["DeviceTaintRule"], key=lambda rule: str(rule.metadata.name))),
        )

    @cached_property
    def derived(self) -> dict[object, object]:
        """What others worked out from these devices and want to keep as long as they last."""
        return {}

    @cached_property
    def class_of_resource(self) -> Mapping[str, str]:
        """Extended resource to the name of the DeviceClass that stands for it on nodes that do not offer it."""
        return _class_of_resource(self.classes.values())

    def claim(self, namespace: str, name: str) -> ResourceClaim | None:
        return self.claims.get(f"{namespace}/{name}")


def _class_of_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Of several classes that name one resource the newest, then the first by name."""
    found: dict[str, str] = {}
    for device_class in sorted(classes, key=lambda own: (-_created(own), own.name)):
        found[IMPLICIT_PREFIX + device_class.name] = device_class.name
        if device_class.spec.extended_resource_name is not None:
            found.setdefault(device_class.spec.extended_resource_name, device_class.name)
    return found


def _created(device_class: DeviceClass) -> int:
    stamp = device_class.metadata.creation_timestamp
    return nanoseconds(stamp) if stamp else 0
