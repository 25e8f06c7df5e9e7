"""Changes of fields and objects, as `kubectl apply` and the API server would accept them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, cast

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.placement_validation import validate_labels
from kschedx.apiserver.unknown_fields import unknown_fields
from kschedx.apiserver.validation import validate_written_node, validate_written_pod_spec
from kschedx.apiserver.workload_validation import (
    field_at,
    fixed_fields,
    fixed_kind,
    require_same_fields,
    validate_claims,
    validate_workload,
)
from kschedx.errors import FIELD_PART, InputError, NotChangedError, nearest
from kschedx.explain.known_part import is_unread
from kschedx.explain.setup import with_claims_of_templates
from kschedx.kube.decoding import Manifest, decode, manifest, map_at, new_manifest
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.kinds import KINDS, ResourceKind, name_of
from kschedx.kube.kubectl import add_to_dump
from kschedx.kube.quantity import value
from kschedx.kube.resources import ClusterResourceQuota, ResourceQuota
from kschedx.kube.scalars import json_number
from kschedx.kube.storage import (
    STORAGE,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeStatus,
    bound_claim,
    bound_volume,
)
from kschedx.kube.types import Node, Pod, PodDisruptionBudget, PodDisruptionBudgetStatus
from kschedx.plugins.volume_binding.matching import volume_to_bind
from kschedx.snapshot.edits import with_applied, with_changed_nodes, with_changed_pods, with_object, without_object
from kschedx.snapshot.snapshot import Snapshot

# A single field of a manifest, by its path: `spec.template.spec.containers[web].resources.requests.cpu`.

_T = TypeVar("_T")
Fields = Sequence[tuple[str, object]]  # paths with their new values


_MAPS = frozenset({
    "labels", "annotations", "matchLabels", "nodeSelector", "nodeLabels", "requests", "limits", "hard", "capacity",
    "allocatable",
})  # fmt: skip
"""Maps whose keys may contain dots and slashes: the rest of a path is one key."""

REMOVED = object()  # instead of a value: the field is removed


def with_value(manifest: Mapping[str, object], path: str, value: object) -> dict[str, object]:
    """Return the manifest with a field set. `[0]` is an item by its number; `[web]` is an item by its name or, in a
    map, by its key. A missing part of the path is created as a map, or as a list if an item number follows.

    Raises `InputError` with what exists.
    """
    changed = _replace_at(manifest, field_parts(path), value, path)
    assert isinstance(changed, dict), "a manifest is a map"
    return changed


def field_parts(path: str) -> list[str]:
    """Return the names, item numbers, and keys of a path. Raises `InputError`."""
    parts: list[str] = []
    position = 0
    while match := FIELD_PART.match(path, position):
        position = match.end()
        part = match[1] or match[2].strip("'\"")
        if parts and parts[-1] in _MAPS and match[1] and not part.isdigit():
            return [*parts, path[match.start(1) :]]
        parts.append(part)
    if not parts or position != len(path):
        raise InputError(
            f'"{path}" is not a path', hint="such as spec.replicas or spec.template.spec.containers[0].image"
        )
    return parts


def _replace_at(inside: object, parts: list[str], value: object, path: str) -> object:
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    is_removed = value is REMOVED and not rest
    if inside is None or inside == {}:
        inside = [] if part.isdigit() else {}
    if isinstance(inside, Mapping):
        if is_removed and part not in inside:
            raise InputError(f'{path}: there is no "{part}"', hint=nearest(part, inside))
        others = {key: item for key, item in inside.items() if key != part or not is_removed}
        return others if is_removed else {**others, part: _replace_at(inside.get(part), rest, value, path)}
    if isinstance(inside, list | tuple):
        names = [str(item.get("name", "")) if isinstance(item, Mapping) else "" for item in inside]
        number = int(part) if part.isascii() and part.isdigit() else names.index(part) if part in names else -1
        if not 0 <= number < len(inside) + (value is not REMOVED):
            raise _lost(part, path, [name for name in names if name] or [f"0 to {len(inside)}"])
        item = inside[number] if number < len(inside) else None
        changed = () if is_removed else (_replace_at(item, rest, value, path),)
        return [*inside[:number], *changed, *inside[number + 1 :]]
    raise _lost(part, path, [])


def _lost(part: str, path: str, known: list[str]) -> InputError:
    hint = nearest(part, known) or (f"there are {', '.join(sorted(known)[:6])}" if known else "")
    return InputError(f'{path}: there is no "{part}"', hint=hint)


def scalar(text: str) -> object:
    """Return the value as YAML reads it: a number, true, false, null, or JSON; anything else is a string."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return text
    return json_number(value) if isinstance(value, float) else value


def with_values(manifest: Mapping[str, object], fields: Fields) -> dict[str, object]:
    for path, setting in fields:
        manifest = with_value(manifest, path, setting)
    return dict(manifest)


def with_fields(record: _T, fields: Fields) -> _T:
    """Return an object with these fields set. Raises `InputError` for a field that scheduling does not read."""
    for path, setting in fields:
        written = cast("dict[str, object]", msgspec.to_builtins(record))
        wanted = with_value(written, path, setting)
        changed = decode(msgspec.json.encode(wanted), type(record))
        if changed == record and wanted != written:
            raise InputError(f'"{path}" is not a field that scheduling reads', hint=_nearest_field(written, path))
        record = changed
    return record


def _nearest_field(written: object, path: str) -> str:
    """Return the nearest known field at the point where the path becomes unknown."""
    for part in field_parts(path):
        if not isinstance(written, Mapping):
            break
        if part not in written:
            return nearest(part, written)
        written = written[part]
    return ""


# Changed objects that the API server would refuse.


def require_node(before: Node, after: Node) -> None:
    """Raise `InputError` for an error that the node did not have before."""
    _require(_node_errors(before), _node_errors(after))


def require_pod(before: Pod, after: Pod) -> None:
    """Raise `InputError` for an error that the pod did not have before."""
    if before.spec.node_name != after.spec.node_name:
        raise InputError("spec.nodeName cannot be changed", hint="delete the pod: its controller recreates it")
    _require(_pod_errors(before), _pod_errors(after))


def require_workload(before: Manifest, after: Manifest) -> None:
    """Raise `InputError`, with the nearest field, for an error that the workload did not have before."""
    for name in ("apiVersion", "kind"):
        if before.get(name) != after.get(name):
            raise InputError(f"{name} cannot be changed")
    named = [item.get("metadata") for item in (before, after)]
    if not isinstance(named[1], dict) or not isinstance(named[0], dict):
        raise InputError("metadata is a map")
    for name in ("name", "namespace"):
        if named[0].get(name) != named[1].get(name):
            raise InputError(f"metadata.{name} cannot be changed")
    _require(_workload_errors(before), _workload_errors(after))


def _require(before: Iterable[InputError], after: Iterable[InputError]) -> None:
    known = {str(error) for error in before}
    for error in after:
        if str(error) not in known:
            raise error


def _node_errors(node: Node) -> Iterator[InputError]:
    yield from validate_labels(node.metadata.labels, "metadata.labels")
    for index, taint in enumerate(node.spec.taints):
        yield from validate_labels({taint.key: taint.value}, f"spec.taints[{index}]")
    yield from validate_written_node(node)


def _pod_errors(pod: Pod) -> Iterator[InputError]:
    yield from validate_labels(pod.metadata.labels, "metadata.labels")
    yield from validate_written_pod_spec(pod.spec)


def _workload_errors(manifest: Manifest) -> Iterator[InputError]:
    yield from unknown_fields(_written_fields(manifest))
    yield from validate_workload(new_manifest(manifest))


def _object_errors(manifest: Manifest) -> Iterator[InputError]:
    """Yield the errors of an object without pods, with the nearest field."""
    yield from unknown_fields(_written_fields(manifest))
    yield from validate_claims(manifest)


def _written_fields(manifest: Manifest) -> Manifest:
    """Return the manifest without the fields that an API server adds."""
    name = map_at(manifest, "metadata").get("name")
    return {**{key: value for key, value in manifest.items() if key != "status"}, "metadata": {"name": name}}


# The cluster with objects other than pods and workloads, as `kubectl apply` leaves it.


def merge_objects(snapshot: Snapshot, manifests: Sequence[Manifest]) -> Snapshot:
    """Return the cluster with these objects. A manifest replaces the object of its name, but bindings of claims and
    volumes are kept. Raises `InputError`."""
    nodes = [manifest for manifest in manifests if manifest.get("kind") == "Node"]
    others = [manifest for manifest in manifests if manifest.get("kind") != "Node"]
    if others:
        snapshot = _with_bound_claims(with_applied(snapshot, others), others)
    if any(manifest.get("kind") == "ResourceClaimTemplate" for manifest in others):
        snapshot = _with_device_claims(snapshot)
    if nodes:
        cluster = snapshot.cluster
        written = Snapshot.from_objects(nodes).cluster.nodes
        known = {node.name: cluster.nodes[cluster.index[node.name]] for node in written if node.name in cluster.index}
        snapshot = with_changed_nodes(snapshot, [_with_status_of(known.get(node.name), node) for node in written])
    return snapshot


def _with_bound_claims(snapshot: Snapshot, manifests: Sequence[Manifest]) -> Snapshot:
    """Bind pending claims as the volume controller does: to new volumes that name them, and written claims of classes
    that do not wait for a pod to the volumes that fit them."""
    written = {
        kind: {map_at(manifest, "metadata").get("name") for manifest in manifests if manifest.get("kind") == kind}
        for kind in ("PersistentVolume", "PersistentVolumeClaim")
    }
    for claim in (*snapshot.storage.claims.values(),) if any(written.values()) else ():
        storage = snapshot.storage
        if claim.spec.volume_name or claim.metadata.deletion_timestamp:
            continue
        volume = volume_to_bind(claim, storage)
        reference = None if volume is None else volume.spec.claim_ref
        is_named = reference is not None and volume is not None and volume.name in written["PersistentVolume"]
        if volume is not None and (
            is_named or (claim.name in written["PersistentVolumeClaim"] and not storage.waits(claim))
        ):
            claims = {**storage.claims, claim.key: bound_claim(claim, volume.name)}
            volumes = {**storage.volumes, volume.name: bound_volume(volume, claim)}
            snapshot = snapshot.with_storage(replace(storage, claims=claims, volumes=volumes))
    return snapshot


def _with_device_claims(snapshot: Snapshot) -> Snapshot:
    """Create the claims of pending pods whose templates exist, as the resource claim controller does."""
    for row in snapshot.pods.pending:
        if snapshot.pods.specs[row].resource_claims:
            before = snapshot.pods[row]
            snapshot, pod, _ = with_claims_of_templates(snapshot, before)
            if pod is not before:
                snapshot = with_changed_pods(snapshot, [(np.array([row], dtype=np.int64), pod)])
    return snapshot


def _with_status_of(known: Node | None, written: Node) -> Node:
    """Return the node with the known status: its kubelet reports allocatable, and a manifest of an existing node rarely
    has it."""
    if known is None or written.status.allocatable:
        return written
    return replace(written, status=known.status)


# Changes of single objects other than pods, nodes, and workloads: claims, classes, budgets, quotas.


def require_updatable(snapshot: Snapshot, written: Manifest) -> None:
    """Raise `NotChangedError` if the manifest of an existing object changes an immutable field, or grows a claim whose
    class does not allow it."""
    kind, before = fixed_kind(written), stored_object(snapshot, written)
    if kind is None or before is None:
        return
    require_same_fields(kind, before, written)
    if isinstance(before, PersistentVolumeClaim):
        _require_expandable(snapshot, before, decode(msgspec.json.encode(written), PersistentVolumeClaim))


def _require_expandable(snapshot: Snapshot, before: PersistentVolumeClaim, after: PersistentVolumeClaim) -> None:
    """Apply the rule of the admission plugin PersistentVolumeClaimResize; without the class, nothing is known."""
    sizes = [claim.spec.resources.requests.get(STORAGE) for claim in (before, after)]
    storage_class = snapshot.storage.classes.get(before.storage_class)
    if sizes[0] is None or sizes[1] is None or value(sizes[1]) <= value(sizes[0]):
        return
    if storage_class.allow_volume_expansion if storage_class is not None else before.storage_class:
        return
    name = f"StorageClass {storage_class.name}" if storage_class is not None else f"claim {before.name}"
    why = "does not set allowVolumeExpansion" if storage_class is not None else "has no storage class"
    raise NotChangedError(
        f'persistentvolumeclaims "{before.name}" is forbidden: only dynamically provisioned pvc can be resized and the '
        "storageclass that provisions the pvc must support resize",
        hint=f"{name} {why}",
    )


def stored_object(snapshot: Snapshot, written: Manifest) -> Struct | None:
    """Return the cluster's object with the name of a manifest, if its kind has immutable fields and creates no pods."""
    kind = fixed_kind(written)
    if kind is None or kind.record is None:
        return None
    name = name_of(decode(msgspec.json.encode(written), kind.record))
    return next((record for record in objects_of(snapshot, kind) if name_of(record) == name), None)


class NamedObject(Struct, frozen=True, kw_only=True):
    """A reference to one object; without a namespace if its kind has none."""

    kind: ResourceKind
    namespace: str
    name: str

    def __str__(self) -> str:
        return f'{self.kind.name} "{self.name}"' + (f' in namespace "{self.namespace}"' if self.namespace else "")


def object_reference(target: str, namespace: str, snapshot: Snapshot | None = None) -> NamedObject | None:
    """Return the object `pdb/web`, in the namespace of the question, or `shop/pdb/web`; None if its kind is not one of
    these. If several groups have a kind of the name, it is the first that has the object in the snapshot, or else the
    first."""
    parts = target.split("/")
    within = parts.pop(0) if len(parts) == 3 else namespace
    kinds = _kinds(parts[0].lower()) if len(parts) == 2 else ()
    named = [NamedObject(kind=kind, namespace=within if kind.is_namespaced else "", name=parts[1]) for kind in kinds]
    stored = [it for it in named if snapshot is not None and _is_stored(snapshot, it)] if len(named) > 1 else ()
    return next(iter((*stored, *named)), None)


def _is_stored(snapshot: Snapshot, reference: NamedObject) -> bool:
    return any(name_of(it) == (reference.namespace, reference.name) for it in objects_of(snapshot, reference.kind))


def delete_object(snapshot: Snapshot, reference: NamedObject) -> Snapshot:
    """Return the cluster without the object. Raises `InputError` for an object that does not exist, and one that the
    API server keeps while it is used."""
    record = find_object(snapshot, reference)
    user = _user(snapshot, record)
    if user:
        raise InputError(f"{reference} stays as long as it is used: {user}")
    kind, after = reference.kind.key, without_object(snapshot, record)
    if is_unread(snapshot, kind):
        return after
    return replace(after, source=replace(after.source, complete=after.source.complete | {kind}))  # not left out


def set_object_fields(snapshot: Snapshot, reference: NamedObject, fields: Fields) -> Snapshot:
    """Return the cluster with fields of the object set in one update. Raises `InputError`."""
    before = find_object(snapshot, reference)
    written = manifest(reference.kind.api_version, reference.kind.name, before)
    _require(_object_errors(written), _object_errors(with_values(written, fields)))
    after = with_fields(before, fields)
    if name_of(after) != name_of(before):
        raise InputError("metadata.name and metadata.namespace cannot be changed")
    for field in fixed_fields(before, reference.kind):
        if field_at(before, field) != field_at(after, field):
            hint = "delete it, and apply another one with -f"
            raise InputError(f"{field} of a {reference.kind.name} cannot be changed", hint=hint)
    if isinstance(before, PersistentVolumeClaim) and isinstance(after, PersistentVolumeClaim):
        _require_expandable(snapshot, before, after)
    if isinstance(before, PodDisruptionBudget) and isinstance(after, PodDisruptionBudget) and after.spec != before.spec:
        after = replace(after, status=PodDisruptionBudgetStatus())  # its controller counts again
    if isinstance(after, PersistentVolume) and (after.spec.claim_ref is None or not after.spec.claim_ref.uid):
        after = replace(after, status=PersistentVolumeStatus(phase="Available"))  # by the volume controller
    if isinstance(after, ResourceQuota) and after.status.hard:
        after = replace(after, status=replace(after.status, hard=after.spec.hard))
    if isinstance(after, ClusterResourceQuota) and (total := after.status.total).hard:
        after = replace(after, status=replace(after.status, total=replace(total, hard=after.spec.quota.hard)))
    return with_object(snapshot, after)


def _kinds(word: str) -> Iterator[ResourceKind]:
    """Yield the kinds with kubectl's name for them, which may have the group."""
    for kind in KINDS.values():
        if kind.record is None or kind.template or kind.key in ("Pod", "Node"):
            continue
        name = kind.name.lower()
        if word in (name, kind.plural, kind.resource, f"{name}.{kind.group}", *kind.short_names):
            yield kind


def objects_of(snapshot: Snapshot, kind: ResourceKind) -> Iterable[Struct]:
    """Return the current objects of a kind: claims and volumes may have been bound since they were read."""
    if kind.record is PersistentVolumeClaim:
        return snapshot.storage.claims.values()
    if kind.record is PersistentVolume:
        return snapshot.storage.volumes.values()
    if kind.record is ResourceClaim:
        return snapshot.devices.claims.values()
    return () if kind.record is None else snapshot.of(kind.record)


def find_object(snapshot: Snapshot, reference: NamedObject) -> Struct:
    """Return an object. Raises `InputError`, with the nearest name, if it does not exist."""
    known = {name_of(it): it for it in objects_of(snapshot, reference.kind)}
    if (reference.namespace, reference.name) in known:
        return known[reference.namespace, reference.name]
    here = [name for namespace, name in known if namespace == reference.namespace]
    elsewhere = sorted(namespace for namespace, name in known if name == reference.name)
    hint = f"there is one in namespace {elsewhere[0]}" if elsewhere else nearest(reference.name, here)
    if not known and snapshot.source.may_lack(reference.kind.key):
        hint = f"the dump holds none: {add_to_dump(reference.kind.key)}"
    raise InputError(f"there is no {reference}", hint=hint)


def _user(snapshot: Snapshot, record: object) -> str:
    """Return the user of an object, for which the API server keeps a deleted object."""
    pods = snapshot.pods
    match record:
        case PersistentVolumeClaim():
            users = [row for row in pods.rows_with_claim(record.key) if pods.node_names[row]]  # finished or not
            return f"by pod {pods.key(users[0])}" if users else ""
        case PersistentVolume():
            claim = record.spec.claim_ref
            is_bound = claim is not None and claim.key in snapshot.storage.claims
            return f"by claim {claim.key}" if claim is not None and is_bound else ""
        case ResourceClaim():
            users_of = record.status.reserved_for
            return f"by {users_of[0].resource}/{users_of[0].name}" if users_of else ""
        case _:
            return ""
