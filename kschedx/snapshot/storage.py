"""Volumes, claims, classes, and drivers of a cluster, by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TypeVar

import numpy as np
from msgspec import Struct, field

from kschedx.kube.kinds import Objects, objects_of
from kschedx.kube.storage import (
    PROVISIONED_BY,
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
    default_class,
    own_claims,
    with_default_class,
)
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import BoolArray, Derived, IntArray

_T = TypeVar("_T")


class Storage(Struct, frozen=True, kw_only=True, dict=True):
    """The storage objects that scheduling reads. Mappings keep the load order."""

    volumes: Mapping[str, PersistentVolume] = field(default_factory=dict)
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    """By `namespace/name`; claims without a class have the default class."""
    classes: Mapping[str, StorageClass] = field(default_factory=dict)
    csi_nodes: Mapping[str, CSINode] = field(default_factory=dict)  # by the name of the node, which may not exist
    csi_drivers: Mapping[str, CSIDriver] = field(default_factory=dict)
    capacities: Sequence[CSIStorageCapacity] = ()
    attachments: Sequence[VolumeAttachment] = ()
    changed: Sequence[str] = ()
    """Keys of the claims that changed in a moving cluster, in order. Values computed from claims apply them later."""

    @classmethod
    def of(cls, objects: Objects) -> Storage:
        """Build from records by kind."""
        classes = {storage_class.metadata.name: storage_class for storage_class in objects_of(objects, StorageClass)}
        default = default_class(classes.values())
        return cls(
            volumes={volume.metadata.name: volume for volume in objects_of(objects, PersistentVolume)},
            claims={it.key: with_default_class(it, default) for it in objects_of(objects, PersistentVolumeClaim)},
            classes=classes,
            csi_nodes={node.metadata.name: node for node in objects_of(objects, CSINode)},
            csi_drivers={driver.metadata.name: driver for driver in objects_of(objects, CSIDriver)},
            capacities=objects_of(objects, CSIStorageCapacity),
            attachments=objects_of(objects, VolumeAttachment),
        )

    def with_default(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Return a new claim with the default class if it has none."""
        return with_default_class(claim, default_class(self.classes.values()))

    def claim(self, namespace: str, name: str) -> PersistentVolumeClaim | None:
        return self.claims.get(f"{namespace}/{name}")

    def claims_of(self, pod: Pod) -> Iterator[PersistentVolumeClaim]:
        """Yield the claims of a pod's volumes that exist."""
        yield from filter(None, map(self.claims.get, own_claims(pod)))

    def waits(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether the claim's class binds it only after a node is chosen."""
        storage_class = self.classes.get(claim.storage_class)
        return storage_class is not None and storage_class.waits_for_first_consumer

    @cached_property
    def derived(self) -> Derived:
        """Values that others compute from this storage and keep with it."""
        return {}

    def volumes_of(self, storage_class: str) -> tuple[PersistentVolume, ...]:
        """Return the volumes of a class in load order; the class may be missing or empty."""
        return tuple(volume for volume in self.volumes.values() if volume.storage_class == storage_class)

    def is_static(self, storage_class: str) -> bool:
        """Return whether a class has volumes that were not provisioned, so that it needs no StorageClass."""
        return any(PROVISIONED_BY not in volume.metadata.annotations for volume in self.volumes_of(storage_class))

    @cached_property
    def candidates(self) -> VolumeCandidates:
        return VolumeCandidates(self.volumes)

    @cached_property
    def capacities_of_class(self) -> Mapping[str, tuple[CSIStorageCapacity, ...]]:
        return _group_pairs((capacity.storage_class_name, capacity) for capacity in self.capacities)


class VolumeCandidates:
    """The volumes that an unbound claim could get: those without a claimRef, and its own. Every volume has a place, in
    load order, which it keeps when it is removed and added again."""

    def __init__(self, volumes: Mapping[str, PersistentVolume]) -> None:
        self._place: dict[str, int] = {}
        self._unclaimed: list[PersistentVolume | None] = []  # by place, the volume when it last had no claimRef
        self._unclaimed_of_class: Mapping[str, tuple[tuple[int, PersistentVolume], ...]] | None = None
        self._is_free = bytearray()  # by place, whether it has no claimRef now
        self._free_count: Counter[str] = Counter()
        self._prebound: dict[str, dict[str, PersistentVolume]] = {}
        self._versions: dict[str, int] = {}
        self.derived: Derived = {}
        """Values that others compute from the `unclaimed` volumes and keep until these change."""
        for volume in volumes.values():
            self._add_volume(volume)

    def of(self, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, ...]:
        """The volumes of the claim's class that name the claim, then those without a claimRef, each in load order."""
        free = (volume for place, volume in self.unclaimed_volumes(claim.storage_class) if self._is_free[place])
        return (*self.prebound(claim), *free)

    def place(self, volume: PersistentVolume) -> int:
        return self._place[volume.name]

    def unclaimed_volumes(self, storage_class: str) -> tuple[tuple[int, PersistentVolume], ...]:
        """Return the volumes of a class that have no claimRef, or had none before they were bound or removed, each with
        its place, in load order. `are_free` distinguishes them."""
        if self._unclaimed_of_class is None:
            self._unclaimed_of_class = _group_pairs(
                (volume.storage_class, (place, volume))
                for place, volume in enumerate(self._unclaimed)
                if volume is not None
            )
        return self._unclaimed_of_class.get(storage_class, ())

    def are_free(self, places: IntArray) -> BoolArray:
        """Return whether the volumes at these places have no claimRef now."""
        return np.frombuffer(self._is_free, dtype=np.bool_)[places]

    def prebound(self, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, ...]:
        """Return the volumes of the claim's class that name the claim."""
        volumes = self._prebound.get(claim.key)
        if not volumes:
            return ()
        return tuple(volume for volume in volumes.values() if volume.storage_class == claim.storage_class)

    def version(self, storage_class: str) -> int:
        """Return a number that changes whenever the volumes without a claimRef in a class change; 0 as long as there
        are none."""
        return self._versions.get(storage_class, 1) if self._free_count[storage_class] else 0

    def put(self, before: PersistentVolume | None, after: PersistentVolume | None) -> None:
        """Add, change, or remove a volume."""
        for volume in (before, after):
            if volume is not None and volume.spec.claim_ref is None:
                self._versions[volume.storage_class] = self._versions.get(volume.storage_class, 1) + 1
        if before is not None:
            self._go(before)
        if after is not None:
            self._add_volume(after)

    def _go(self, volume: PersistentVolume) -> None:
        if volume.spec.claim_ref is None:
            self._is_free[self._place[volume.name]] = False
            self._free_count[volume.storage_class] -= 1
        else:
            self._prebound[volume.spec.claim_ref.key].pop(volume.name)

    def _add_volume(self, volume: PersistentVolume) -> None:
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
    """The storage of a moving cluster: claims and volumes change in place."""

    claims: dict[str, PersistentVolumeClaim] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)

    @classmethod
    def moving(cls, storage: Storage) -> MovingStorage:
        """Copy the storage with its own claims and volumes."""
        shared = {name: getattr(storage, name) for name in Storage.__struct_fields__}
        own = {"claims": dict(storage.claims), "volumes": dict(storage.volumes), "changed": []}
        return cls(**(shared | own))

    def frozen(self) -> Storage:
        """Return the current storage as a value."""
        shared = {name: getattr(self, name) for name in Storage.__struct_fields__}
        own = {"claims": dict(self.claims), "volumes": dict(self.volumes), "changed": ()}
        return Storage(**(shared | own))

    def put(self, change: StorageChange) -> StorageChange:
        """Change claims and volumes. Returns the change that undoes it."""
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
    """Changed claims by `namespace/name` and volumes by name; None removes one."""

    claims: Mapping[str, PersistentVolumeClaim | None] = field(default_factory=dict)
    volumes: Mapping[str, PersistentVolume | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.claims or self.volumes)


def _group_pairs(pairs: Iterable[tuple[str, _T]]) -> Mapping[str, tuple[_T, ...]]:
    groups: dict[str, list[_T]] = {}
    for key, item in pairs:
        groups.setdefault(key, []).append(item)
    return {key: tuple(items) for key, items in groups.items()}
