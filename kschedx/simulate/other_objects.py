"""Changes of single objects that are neither pods nor nodes nor make pods: claims, classes, budgets, quotas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
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
    "PersistentVolume": ("spec.nodeAffinity",),
    "PersistentVolumeClaim": ("spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeName"),
    "PriorityClass": ("value", "preemptionPolicy"),
    "ResourceClaim": ("spec",),
    "ResourceClaimTemplate": ("spec",),
    "RuntimeClass": ("handler",),
    "StorageClass": ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode"),
}
"""Fields that the API server lets nobody change once they have a value."""


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
    """Raises `InputError` for an object that is not there, or that the API server keeps while it is used."""
    found = _found(snapshot, one)
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
    for field in _FIXED.get(one.kind.key, ()):
        if path == field or path.startswith((f"{field}.", f"{field}[")):
            hint = "delete it, and apply another one with -f"
            raise InputError(f"{field} of a {one.kind.name} cannot be changed", hint=hint)
    if isinstance(after, PodDisruptionBudget) and after.spec != before.spec:
        after = replace(after, status=PodDisruptionBudgetStatus())  # its controller counts anew
    return with_object(snapshot, one.kind, after)


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
            users = [row for row in pods.claiming(found.key) if pods.phases[row] not in ("Succeeded", "Failed")]
            return f"by pod {pods.key(users[0])}" if users else ""
        case PersistentVolume():
            claim = found.spec.claim_ref
            is_bound = claim is not None and f"{claim.namespace}/{claim.name}" in snapshot.storage.claims
            return f"by claim {claim.namespace}/{claim.name}" if claim is not None and is_bound else ""
        case ResourceClaim():
            users_of = found.status.reserved_for
            return f"by {users_of[0].resource}/{users_of[0].name}" if users_of else ""
        case Namespace():
            is_here = pods.namespaces.where(lambda name: name == found.metadata.name)
            return f"by pod {pods.key(int(np.flatnonzero(is_here)[0]))}" if is_here.any() else ""
        case _:
            return ""
