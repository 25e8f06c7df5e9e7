"""Changes of objects in a cluster: JSON patches, deletions, and new objects."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kschedx.kube.autoscalers import NodePool
from kschedx.kube.decoding import to_plain
from kschedx.kube.documents import Json, pointer, remove_field, set_field
from kschedx.kube.types import Container, Node, Pod, PodSpec

# JSON patches (RFC 6902) on manifests: add, remove, and replace.

_PatchDocument = TypeVar("_PatchDocument", bound=object)


class PatchError(Exception):
    """An operation that cannot be applied to the document."""


def apply_patch(document: _PatchDocument, operations: Iterable[Mapping[str, object]]) -> _PatchDocument:
    """Return a copy with all operations applied. Raises `PatchError`."""
    patched = copy.deepcopy(document)
    for operation in operations:
        _apply(patched, str(operation.get("op")), str(operation.get("path")), operation.get("value"))
    return patched


def _apply(document: object, op: str, path: str, value: object) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]] or [""]
    at = document
    for part in parents:
        at = _child(at, part, path)
    match at:
        case dict():
            _apply_in_map(at, op, last, value, path)
        case list():
            _apply_in_list(at, op, last, value, path)
        case _:
            raise PatchError(f"there is nothing at {path}")


def _child(at: object, part: str, path: str) -> object:
    if isinstance(at, dict) and part in at:
        return at[part]
    if isinstance(at, list) and part.isdigit() and int(part) < len(at):
        return at[int(part)]
    raise PatchError(f"there is nothing at {path}")


def _apply_in_map(at: Json, op: str, key: str, value: object, path: str) -> None:
    if op in ("replace", "remove") and key not in at:
        raise PatchError(f"there is nothing at {path}")
    match op:
        case "add" | "replace":
            at[key] = copy.deepcopy(value)
        case "remove":
            del at[key]
        case _:
            raise PatchError(f'found the operation "{op}", allowed are add, remove and replace')


def _apply_in_list(at: list[object], op: str, key: str, value: object, path: str) -> None:
    index = len(at) if key == "-" else int(key) if key.isdigit() else -1
    if not 0 <= index < len(at) + (op == "add"):
        raise PatchError(f"there is nothing at {path}")
    match op:
        case "add":
            at.insert(index, copy.deepcopy(value))
        case "replace":
            at[index] = copy.deepcopy(value)
        case "remove":
            del at[index]
        case _:
            raise PatchError(f'found the operation "{op}", allowed are add, remove and replace')


# Records as JSON, and the operations that turn one record into another.


def pod_patch(before: Pod, after: Pod) -> Iterator[Json]:
    """Yield the operations that turn one pod into the other. Whole lists and maps are added, which replaces existing
    ones, so that the patch applies to a manifest with and without the API server's defaults."""
    for field, encoded in zip(PodSpec.__struct_fields__, PodSpec.__struct_encode_fields__, strict=True):
        old, new = getattr(before.spec, field), getattr(after.spec, field)
        if old == new:
            continue
        if field in ("containers", "init_containers"):
            for index, (was, now) in enumerate(zip(old, new, strict=True)):
                yield from _container_patch(was, now, f"/spec/{encoded}/{index}")
        elif field == "volumes":
            for index, (volume, other) in enumerate(zip(old, new, strict=True)):
                if volume != other:
                    # records hold only the fields of a volume that are read
                    source, path = other.persistent_volume_claim, f"/spec/volumes/{index}"
                    if source is not None:
                        yield add_operation(f"{path}/persistentVolumeClaim/claimName", source.claim_name)
                    else:
                        spec = other.ephemeral.volume_claim_template.spec
                        path = f"{path}/ephemeral/volumeClaimTemplate/spec/storageClassName"
                        yield add_operation(path, spec.storage_class_name)
        elif new in (None, "", (), {}):
            yield remove_field(f"/spec/{encoded}")
        elif field in ("affinity", "topology_spread_constraints"):
            yield add_operation(f"/spec/{encoded}", _remove_merged_keys(to_plain(new), before.metadata.labels))
        else:
            yield add_operation(f"/spec/{encoded}", new)


def _remove_merged_keys(value: object, labels: Mapping[str, str]) -> object:
    """Return rules without what the API server adds to their selectors for the label keys that they name. It adds that
    again to the recreated pod, and refuses a selector that has it twice."""
    if isinstance(value, list):
        return [_remove_merged_keys(item, labels) for item in value]
    if not isinstance(value, dict):
        return value
    value = {key: _remove_merged_keys(item, labels) for key, item in value.items()}
    selector = value.get("labelSelector")
    written = selector.get("matchExpressions") if isinstance(selector, dict) else None
    if not isinstance(selector, dict) or not isinstance(written, list):
        return value
    added = [
        {"key": key, "operator": operator, "values": [labels.get(key)]}
        for keys, operator in ((value.get("matchLabelKeys"), "In"), (value.get("mismatchLabelKeys"), "NotIn"))
        for key in (keys if isinstance(keys, list) else ())
    ]
    left = [item for item in written if item not in added]
    rest = {key: item for key, item in selector.items() if key != "matchExpressions"}
    return {**value, "labelSelector": {**rest, "matchExpressions": left} if left else rest}


def pod_status_patch(before: Pod, after: Pod) -> Iterator[Json]:
    """Yield operations on the status, which you cannot patch with the rest of the pod."""
    statuses = after.status.resource_claim_statuses
    if statuses != before.status.resource_claim_statuses:
        if before.status == type(before.status)():
            yield add_operation("/status", {"resourceClaimStatuses": to_plain(statuses)})
        else:
            yield add_operation("/status/resourceClaimStatuses", statuses)


def _container_patch(before: Container, after: Container, path: str) -> Iterator[Json]:
    if before.resources != after.resources:
        yield add_operation(f"{path}/resources", after.resources)
    if before.ports != after.ports:
        yield add_operation(f"{path}/ports", after.ports)


def node_patch(before: Node, after: Node) -> Iterator[Json]:
    """Yield the operations that turn one node into the other: cordon, taints, labels, and amounts."""
    if before.spec.unschedulable != after.spec.unschedulable:
        yield set_field("/spec/unschedulable", after.spec.unschedulable)
    if before.spec.taints != after.spec.taints:
        yield add_operation("/spec/taints", after.spec.taints)
    yield from map_patch(before.status.allocatable, after.status.allocatable, "/status/allocatable")
    yield from map_patch(before.metadata.labels, after.metadata.labels, "/metadata/labels")


def pool_patch(before: NodePool, after: NodePool) -> Iterator[Json]:
    """Yield the operations that turn one NodePool into the other: limits, labels of its nodes, and allowed values."""
    yield from map_patch(before.spec.limits, after.spec.limits, "/spec/limits")
    was, now = before.spec.template, after.spec.template
    yield from map_patch(was.metadata.labels, now.metadata.labels, "/spec/template/metadata/labels")
    for index, (old, new) in enumerate(zip(was.spec.requirements, now.spec.requirements, strict=True)):
        for value in new.values[len(old.values) :]:
            yield add_operation(f"/spec/template/spec/requirements/{index}/values/-", value)


def map_patch(before: Mapping[str, object], after: Mapping[str, object], path: str) -> Iterator[Json]:
    if not before and after:
        yield add_operation(path, after)
        return
    for key, value in after.items():
        if before.get(key) != value:
            yield add_operation(f"{path}/{pointer(key)}", value)
    for key in before:
        if key not in after:
            yield remove_field(f"{path}/{pointer(key)}")


def add_operation(path: str, value: object) -> Json:
    return set_field(path, to_plain(value))
