"""Changes of single objects that are neither pods nor nodes nor make pods: claims, classes, budgets, quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.devices import ResourceClaim
from kschedx.api.kinds import KINDS, Kind
from kschedx.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedx.api.types import Namespace
from kschedx.errors import InputError, nearest
from kschedx.fixes.manifests import manifest
from kschedx.simulate.paths import with_field, with_value
from kschedx.simulate.valid import require_object
from kschedx.snapshot.applied import with_object, without_object
from kschedx.snapshot.snapshot import Snapshot

_FIXED: Mapping[str, tuple[str, ...]] = {
    "PersistentVolume": ("spec.csi", "spec.hostPath", "spec.local", "spec.volumeMode"),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.volumeMode"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "RuntimeClass": ("handler",),
    "StorageClass": ("provisioner", "volumeBindingMode"),
}
"""Fields that the API server lets nobody change."""
_FIXED_ONCE_SET: Mapping[str, tuple[str, ...]] = {
    "PersistentVolume": ("spec.nodeAffinity",),
    "PersistentVolumeClaim": ("spec.storageClassName", "spec.volumeName"),
}
"""Fields that may be given a value, but no other one."""


class Named(Struct, frozen=True, kw_only=True):
    """One object of a kind; without a namespace where the kind has none."""

    kind: Kind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f'{self.kind.name} "{self.name}"' + (f' in namespace "{self.namespace}"' if self.namespace else "")


def named(target: str, namespace: str) -> Named | None:
    """`pdb/web`, in the namespace of the question, or `shop/pdb/web`; None where that is no kind that is kept so."""
    parts = target.split("/")
    within = parts.pop(0) if len(parts) == 3 else namespace
    kind = _kind(parts[0].lower()) if len(parts) == 2 else None
    if kind is None:
        return None
    return Named(kind=kind, namespace=within if kind.is_namespaced else "", name=parts[1])


def deleted(snapshot: Snapshot, one: Named) -> Snapshot:
    """Raises `InputError` for an object that is not there, or that the API server keeps while it is used, and for a
    namespace with pods."""
    found = _found(snapshot, one)
    if isinstance(found, Namespace) and snapshot.pods.namespaces.where(lambda name: name == one.name).any():
        raise InputError(f"the pods of {one} would go with it, which is not worked out", hint="delete what makes them")
    user = _user(snapshot, found)
    if user:
        raise InputError(f"{one} stays as long as it is used: {user}")
    return without_object(snapshot, one.kind, found)


def changed(snapshot: Snapshot, one: Named, path: str, value: object) -> Snapshot:
    """With one field set. Raises `InputError`."""
    before = _found(snapshot, one)
    written = manifest(one.kind.api_version, one.kind.name, before)
    require_object(written, with_value(written, path, value))
    after = with_field(before, path, value)
    if (after.metadata.name, after.metadata.namespace) != (before.metadata.name, before.metadata.namespace):
        raise InputError("metadata.name and metadata.namespace cannot be changed")
    for field in _fixed(before, one.kind):
        if _at(before, field) != _at(after, field):
            hint = "delete it, and apply another one with -f"
            raise InputError(f"{field} of a {one.kind.name} cannot be changed", hint=hint)
    if isinstance(after, PodDisruptionBudget) and after.spec != before.spec:
        after = replace(after, status=PodDisruptionBudgetStatus())  # its controller counts anew
    return with_object(snapshot, one.kind, after)


def _fixed(before: object, kind: Kind) -> Iterator[str]:
    """Paths of the fields that nobody changes, of the object as it is."""
    yield from _FIXED.get(kind.key, ())
    if isinstance(before, PersistentVolumeClaim) and before.status.phase != "Bound":
        yield "spec.resources"  # only a volume that is there can grow
    empty = kind.record() if kind.record is not None else None
    yield from (field for field in _FIXED_ONCE_SET.get(kind.key, ()) if _at(before, field) != _at(empty, field))


def _at(record: object, path: str) -> object:
    """The field of a record."""
    found = msgspec.to_builtins(record)
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _kind(word: str) -> Kind | None:
    """What kubectl calls a kind; with its group where several have the name."""
    for kind in KINDS.values():
        if kind.record is None or kind.template or kind.key in ("Pod", "Node"):
            continue
        name = kind.name.lower()
        if word in (name, kind.plural, kind.resource, f"{name}.{kind.group}", *kind.short_names):
            return kind
    return None


def _all(snapshot: Snapshot, kind: Kind) -> Iterable[Any]:
    """As they stand: claims and volumes may have been bound since they were read."""
    if kind.record is PersistentVolumeClaim:
        return snapshot.storage.claims.values()
    if kind.record is PersistentVolume:
        return snapshot.storage.volumes.values()
    if kind.record is ResourceClaim:
        return snapshot.devices.claims.values()
    return () if kind.record is None else snapshot.of(kind.record)


def _found(snapshot: Snapshot, one: Named) -> Any:
    known = {(it.metadata.namespace, it.metadata.name): it for it in _all(snapshot, one.kind)}
    if (one.namespace, one.name) in known:
        return known[one.namespace, one.name]
    here = [name for namespace, name in known if namespace == one.namespace]
    elsewhere = sorted(namespace for namespace, name in known if name == one.name)
    hint = f"there is one in namespace {elsewhere[0]}" if elsewhere else nearest(one.name, here)
    raise InputError(f"no {one}", hint=hint)


def _user(snapshot: Snapshot, found: object) -> str:
    """Who makes the API server keep an object that is deleted."""
    pods = snapshot.pods
    match found:
        case PersistentVolumeClaim():
            users = [row for row in pods.claiming(found.key) if pods.node_names[row]]  # finished or not
            return f"by pod {pods.key(users[0])}" if users else ""
        case PersistentVolume():
            claim = found.spec.claim_ref
            is_bound = claim is not None and f"{claim.namespace}/{claim.name}" in snapshot.storage.claims
            return f"by claim {claim.namespace}/{claim.name}" if claim is not None and is_bound else ""
        case ResourceClaim():
            users_of = found.status.reserved_for
            return f"by {users_of[0].resource}/{users_of[0].name}" if users_of else ""
        case _:
            return ""
