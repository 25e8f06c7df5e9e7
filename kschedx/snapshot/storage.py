"""Volumes, claims, classes and drivers of a cluster, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

from msgspec import Struct, field

from kschedx.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    default_class,
    with_default_class,
)

T = TypeVar("T")


class Storage(Struct, frozen=True, kw_only=True, dict=True):
    """What scheduling reads about storage. Mappings keep the order in which the objects were loaded."""

    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    """By `namespace/name`; those that name no class have the default one."""
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[str, CSINode] = field(default_factory=dict)
    """By the name of the node, which need not exist."""
    csi_drivers: Mapping[str, CSIDriver] = field(default_factory=dict)
    capacities: Sequence[CSIStorageCapacity] = ()
    attachments: Sequence[VolumeAttachment] = ()

    @classmethod
    def of(cls, objects: Mapping[str, Sequence[Any]]) -> Storage:
        """From records by kind."""
        classes: dict[str, StorageClass] = _by_name(objects["StorageClass"])
        default = default_class(classes.values())
        return cls(
            volumes=_by_name(objects["PersistentVolume"]),
            claims={claim.key: with_default_class(claim, default) for claim in objects["PersistentVolumeClaim"]},
            classes=classes,
            csi_nodes=_by_name(objects["CSINode"]),
            csi_drivers=_by_name(objects["CSIDriver"]),
            capacities=tuple(objects["CSIStorageCapacity"]),
            attachments=tuple(objects["VolumeAttachment"]),
        )

    def with_default(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """A new claim; one that names no class gets the default one."""
        return with_default_class(claim, default_class(self.classes.values()))

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self.claims.get(f"{namespace}/{name}")

    @cached_property
    def derived(self) -> dict[object, object]:
        """What others worked out from this storage and want to keep as long as it lasts."""
        return {}

    @cached_property
    def volumes_of_class(self) -> Mapping[str, tuple[PersistentVolume, ...]]:
        """Storage class to its volumes, in load order; the class need not exist, and may be the empty name."""
        return _grouped((volume.storage_class, volume) for volume in self.volumes.values())

    @cached_property
    def capacities_of_class(self) -> Mapping[str, tuple[CSIStorageCapacity, ...]]:
        return _grouped((capacity.storage_class_name, capacity) for capacity in self.capacities)


def _by_name(objects: Iterable[Any]) -> dict[str, Any]:
    return {item.metadata.name: item for item in objects}


def _grouped(pairs: Iterable[tuple[str, T]]) -> Mapping[str, tuple[T, ...]]:
    groups: dict[str, list[T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return {key: tuple(items) for key, items in groups.items()}
