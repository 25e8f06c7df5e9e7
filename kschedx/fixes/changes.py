"""Changes of objects in a cluster: JSON patches, deletions, and new objects."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from kschedx.kube.autoscalers import NodePool
from kschedx.kube.decoding import to_plain
from kschedx.kube.documents import Json, pointer, remove_field, set_field
from kschedx.kube.scalars import parse_int64

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
    if isinstance(at, list) and (index := parse_int64(part)) is not None and 0 <= index < len(at):
        return at[index]
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
    index = len(at) if key == "-" else parse_int64(key)
    if index is None or not 0 <= index < len(at) + (op == "add"):
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


def pool_patch(before: NodePool, after: NodePool) -> Iterator[Json]:
    """Yield the operations that turn one NodePool into the other: limits, labels and taints of its nodes, and allowed
    values."""
    yield from map_patch(before.spec.limits, after.spec.limits, "/spec/limits")
    was, now = before.spec.template, after.spec.template
    yield from map_patch(was.metadata.labels, now.metadata.labels, "/spec/template/metadata/labels")
    for index, (old, new) in enumerate(zip(was.spec.requirements, now.spec.requirements, strict=True)):
        for value in new.values[len(old.values) :]:
            yield add_operation(f"/spec/template/spec/requirements/{index}/values/-", value)
    for field, old_taints, new_taints in (
        ("taints", was.spec.taints, now.spec.taints),
        ("startupTaints", was.spec.startup_taints, now.spec.startup_taints),
    ):
        if old_taints != new_taints:
            plain = [
                {"key": it.key, **({"value": it.value} if it.value else {}), "effect": it.effect} for it in new_taints
            ]
            yield add_operation(f"/spec/template/spec/{field}", plain)


def map_patch(before: Mapping[str, object], after: Mapping[str, object], path: str) -> Iterator[Json]:
    if not before and after:
        yield add_operation(path, after)
        return
    for key, value in after.items():
        if before.get(key) != value:
            yield add_operation(f"{path}/{pointer(key)}", value)
    yield from (remove_field(f"{path}/{pointer(key)}") for key in before if key not in after)


def add_operation(path: str, value: object) -> Json:
    return set_field(path, to_plain(value))
