"""Volumes, claims, classes and drivers of a cluster, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from msgspec import Struct, field

from kschedx.kube.kinds import Objects, of_record
from kschedx.kube.storage import (
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
from kschedx.snapshot.columns import BoolArray, Derived, IntArray

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
    changed: Sequence[str] = ()
    """Keys of the claims that changed while the cluster moved, in order: what others have to catch up with."""

    @classmethod
    def of(cls, objects: Objects) -> Storage:
        """From records by kind."""
        classes = {one.metadata.name: one for one in of_record(objects, StorageClass)}
        default = default_class(classes.values())
        return cls(
            volumes={one.metadata.name: one for one in of_record(objects, PersistentVolume)},
            claims={
                claim.key: with_default_class(claim, default) for claim in of_record(objects, PersistentVolumeClaim)
            },
            classes=classes,
            csi_nodes={one.metadata.name: one for one in of_record(objects, CSINode)},
            csi_drivers={one.metadata.name: one for one in of_record(objects, CSIDriver)},
            capacities=of_record(objects, CSIStorageCapacity),
            attachments=of_record(objects, VolumeAttachment),
        )

    def with_default(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """A new claim; one that names no class gets the default one."""
        return with_default_class(claim, default_class(self.classes.values()))

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self.claims.get(f"{namespace}/{name}")

    @cached_property
    def derived(self) -> Derived:
        """What others worked out from this storage and want to keep as long as it lasts."""
        return {}

    def volumes_of(self, storage_class: str) -> tuple[PersistentVolume, ...]:
        """In load order; the class need not exist, and may be the empty name."""
        return tuple(volume for volume in self.volumes.values() if volume.storage_class == storage_class)

    @cached_property
    def candidates(self) -> VolumeCandidates:
        return VolumeCandidates(self.volumes)

    @cached_property
    def capacities_of_class(self) -> Mapping[str, tuple[CSIStorageCapacity, ...]]:
        return _grouped((capacity.storage_class_name, capacity) for capacity in self.capacities)


class VolumeCandidates:
    """The volumes that an unbound claim could get: all others are another claim's.

    Every volume has a place, in load order, which it keeps when it goes and comes back.
    """

    def __init__(self, volumes: Mapping[str, PersistentVolume]) -> None:
        self._place: dict[str, int] = {}
        self._unclaimed: list[PersistentVolume | None] = []
        """By place, the volume as it was when it last named no claim."""
        self._unclaimed_of_class: Mapping[str, tuple[tuple[int, PersistentVolume], ...]] | None = None
        self._is_free = bytearray()
        """By place, whether it names no claim now."""
        self._free_count: Counter[str] = Counter()
        self._prebound: dict[str, dict[str, PersistentVolume]] = {}
        self._versions: dict[str, int] = {}
        self.derived: Derived = {}
        """What others worked out from the volumes `unclaimed`, and want to keep as long as they are the same."""
        for volume in volumes.values():
            self._come(volume)

    def of(self, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, ...]:
        """Those of the claim's class that name this one, and those that name no claim, in load order each."""
        free = (volume for place, volume in self.unclaimed(claim.storage_class) if self._is_free[place])
        return (*self.prebound(claim), *free)

    def place(self, volume: PersistentVolume) -> int:
        return self._place[volume.name]

    def unclaimed(self, storage_class: str) -> tuple[tuple[int, PersistentVolume], ...]:
        """The volumes of a class that name no claim, and those that named none until a claim got them or they went,
        which may come back; each with its place, in load order. `are_free` distinguishes them."""
        if self._unclaimed_of_class is None:
            self._unclaimed_of_class = _grouped(
                (volume.storage_class, (place, volume))
                for place, volume in enumerate(self._unclaimed)
                if volume is not None
            )
        return self._unclaimed_of_class.get(storage_class, ())

    def are_free(self, places: IntArray) -> BoolArray:
        """Whether the volumes with these places name no claim now."""
        return np.frombuffer(self._is_free, dtype=np.bool_)[places]

    def prebound(self, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, ...]:
        """The volumes of the claim's class that name it."""
        found = self._prebound.get(claim.key)
        if not found:
            return ()
        return tuple(volume for volume in found.values() if volume.storage_class == claim.storage_class)

    def version(self, storage_class: str) -> int:
        """Another number whenever the volumes of a class that name no claim are others; 0 as long as there is none."""
        return self._versions.get(storage_class, 1) if self._free_count[storage_class] else 0

    def put(self, before: PersistentVolume | None, after: PersistentVolume | None) -> None:
        """A volume has come, changed, or gone."""
        for volume in (before, after):
            if volume is not None and volume.spec.claim_ref is None:
                self._versions[volume.storage_class] = self._versions.get(volume.storage_class, 1) + 1
        if before is not None:
            self._go(before)
        if after is not None:
            self._come(after)

    def _go(self, volume: PersistentVolume) -> None:
        if volume.spec.claim_ref is None:
            self._is_free[self._place[volume.name]] = False
            self._free_count[volume.storage_class] -= 1
        else:
            self._prebound[volume.spec.claim_ref.key].pop(volume.name)

    def _come(self, volume: PersistentVolume) -> None:
        place = self._place.setdefault(volume.name, len(self._place))
        if place == len(self._unclaimed):
            self._unclaimed.append(None)
            self._is_free.append(False)
        if volume.spec.claim_ref is not None:
            group = self._prebound.setdefault(volume.spec.claim_ref.key, {})
            group[volume.name] = volume
            if len(group) > 1:
                ordered = sorted(group.values(), key=self.place)
                group.clear()
                group.update({volume.name: volume for volume in ordered})
            return
        if self._unclaimed[place] is not volume:
            self._unclaimed[place] = volume
            self._unclaimed_of_class = None
            self.derived.clear()
        self._is_free[place] = True
        self._free_count[volume.storage_class] += 1


class MovingStorage(Storage, frozen=True, kw_only=True, dict=True):
    """The storage of a cluster that moves: claims and volumes change in place."""

    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)

    @classmethod
    def moving(cls, storage: Storage) -> MovingStorage:
        """The same storage with claims and volumes of its own."""
        shared = {name: getattr(storage, name) for name in Storage.__struct_fields__}
        own = {"claims": dict(storage.claims), "volumes": dict(storage.volumes), "changed": []}
        return cls(**(shared | own))

    def frozen(self) -> Storage:
        """The storage as it is now."""
        shared = {name: getattr(self, name) for name in Storage.__struct_fields__}
        own = {"claims": dict(self.claims), "volumes": dict(self.volumes), "changed": ()}
        return Storage(**(shared | own))

    def put(self, change: StorageChange) -> StorageChange:
        """Change claims and volumes. Returns what undoes it."""
        before = StorageChange(
            claims={key: self.claims.get(key) for key in change.claims},
            volumes={name: self.volumes.get(name) for name in change.volumes},
        )
        candidates = self.candidates
        for name, volume in change.volumes.items():
            candidates.put(before.volumes[name], volume)
            if volume is None:
                self.volumes.pop(name, None)
            else:
                self.volumes[name] = volume
        for key, claim in change.claims.items():
            if claim is None:
                self.claims.pop(key, None)
            else:
                self.claims[key] = claim
        self.changed.extend(change.claims)
        return before


class StorageChange(Struct, frozen=True, kw_only=True):
    """Claims by `namespace/name` and volumes by name that are other ones now; None where one is no more."""

    claims: Mapping[str, PersistentVolumeClaim | None] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.claims or self.volumes)


def _grouped(pairs: Iterable[tuple[str, T]]) -> Mapping[str, tuple[T, ...]]:
    groups: dict[str, list[T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return {key: tuple(items) for key, items in groups.items()}
