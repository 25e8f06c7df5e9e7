"""The cluster as it would be after `kubectl apply`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from kschedx.api.kinds import KINDS, Kind
from kschedx.api.storage import PersistentVolume, PersistentVolumeStatus
from kschedx.snapshot.contents import of_objects
from kschedx.snapshot.snapshot import Snapshot

_Name = tuple[str, str]
"""Namespace and name."""
_KEPT = frozenset({"PersistentVolume", "PersistentVolumeClaim", "ResourceClaim", "Pod", "Node"})
"""What the cluster has of these stays as it is: what counts of them cannot be changed by whoever wrote them, and what
they are bound to is not in a manifest."""


def with_applied(snapshot: Snapshot, manifests: Sequence[Mapping[str, object]]) -> Snapshot:
    """The snapshot with these objects, in place of those of the same name; pods and nodes among them are left out.

    Each has its namespace. Raises `InputError` for an object that cannot be read.
    """
    given = Snapshot.from_objects([one for one in manifests if one.get("kind") not in ("Pod", "Node")])
    others = {
        key: _merged(key, snapshot.objects.get(kind.record, ()), map(_ready, given.objects.get(kind.record, ())))
        for key, kind in KINDS.items()
        if kind.record is not None
    }
    others |= {key: () for key in KINDS if key not in others}
    workloads = {**snapshot.workloads, **given.workloads}
    applied = replace(snapshot, workloads=workloads, **of_objects(others), _tables=dict(snapshot._tables))
    return _with_bound(applied, snapshot)


def with_object(snapshot: Snapshot, kind: Kind, changed: Any) -> Snapshot:
    """The snapshot in which one object of a kind, which it has, is as it is here."""
    return _with_objects(snapshot, kind, changed, [changed])


def without_object(snapshot: Snapshot, kind: Kind, gone: Any) -> Snapshot:
    """The snapshot without one object of a kind."""
    return _with_objects(snapshot, kind, gone, [])


def _with_objects(snapshot: Snapshot, kind: Kind, one: Any, instead: Sequence[Any]) -> Snapshot:
    name = _name(one)
    others = {key: snapshot.objects.get(row.record, ()) if row.record is not None else () for key, row in KINDS.items()}
    others[kind.key] = tuple(it for old in others[kind.key] for it in (instead if _name(old) == name else [old]))
    changed = replace(snapshot, **of_objects(others), _tables=dict(snapshot._tables))
    return _with_bound(changed, snapshot, (kind.key, name))


def _with_bound(applied: Snapshot, before: Snapshot, but: tuple[str, _Name] | None = None) -> Snapshot:
    """Claims and volumes as they stand, but one by its kind and name: since they were read, a run may have bound or
    allocated them."""

    def stand(kind: str, known: Mapping[str, Any]) -> dict[str, Any]:
        return {key: one for key, one in known.items() if but != (kind, _name(one))}

    storage, devices = applied.storage, applied.devices
    claims = stand("PersistentVolumeClaim", before.storage.claims)
    claims = {key: storage.with_default(claim) for key, claim in claims.items()}
    return replace(
        applied,
        storage=replace(
            storage,
            claims={**claims, **{key: claim for key, claim in storage.claims.items() if key not in claims}},
            volumes={**storage.volumes, **stand("PersistentVolume", before.storage.volumes)},
        ),
        devices=replace(
            devices,
            claims={**devices.claims, **stand("ResourceClaim", before.devices.claims)},
            derived_from_slices={},
        ),
    )


def _name(one: Any) -> _Name:
    return one.metadata.namespace, one.metadata.name


def _ready(item: Any) -> Any:
    """A new volume as its controller leaves it, which looks at it at once."""
    if isinstance(item, PersistentVolume) and item.status.phase == "Pending":
        return replace(item, status=PersistentVolumeStatus(phase="Available"))
    return item


def _merged(key: str, old: Iterable[Any], new: Iterable[Any]) -> Sequence[Any]:
    old, new = tuple(old), tuple(new)
    first, second = (new, old) if key in _KEPT else (old, new)
    found = {_name(one): one for one in (*old, *new)}
    winners = {_name(one): one for one in (*first, *second)}
    return [winners[name] for name in found]
