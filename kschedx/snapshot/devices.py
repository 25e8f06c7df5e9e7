"""Extended resources that devices stand for.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache/extendedresourcecache.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import DeviceClass

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With a DeviceClass's name it makes the resource that every class offers."""


def device_class_of_resource(classes: Iterable[DeviceClass]) -> dict[str, str]:
    """Extended resource to the DeviceClass that stands for it: of several the newest, then the first by name."""
    found: dict[str, str] = {}
    for device_class in sorted(classes, key=lambda own: (-_created(own), own.metadata.name)):
        name = device_class.metadata.name
        found[IMPLICIT_PREFIX + name] = name
        if device_class.spec.extended_resource_name is not None:
            found.setdefault(device_class.spec.extended_resource_name, name)
    return found


def _created(device_class: DeviceClass) -> int:
    stamp = device_class.metadata.creation_timestamp
    return nanoseconds(stamp) if stamp else 0
