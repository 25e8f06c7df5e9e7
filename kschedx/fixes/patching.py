"""JSON patches (RFC 6902) on manifests: add, remove and replace."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import TypeVar

from kschedx.fixes.changes import Json

Document = TypeVar("Document", bound=object)


class PatchError(Exception):
    """An operation that does not go with the document."""


def patched(document: Document, operations: Iterable[Mapping[str, object]]) -> Document:
    """A copy with all operations done. Raises `PatchError`."""
    made = copy.deepcopy(document)
    for one in operations:
        _apply(made, str(one.get("op")), str(one.get("path")), one.get("value"))
    return made


def _apply(document: object, op: str, path: str, value: object) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]] or [""]
    at = document
    for part in parents:
        at = _child(at, part, path)
    match at:
        case dict():
            _in_map(at, op, last, value, path)
        case list():
            _in_list(at, op, last, value, path)
        case _:
            raise PatchError(f"there is nothing at {path}")


def _child(at: object, part: str, path: str) -> object:
    if isinstance(at, dict) and part in at:
        return at[part]
    if isinstance(at, list) and part.isdigit() and int(part) < len(at):
        return at[int(part)]
    raise PatchError(f"there is nothing at {path}")


def _in_map(at: Json, op: str, key: str, value: object, path: str) -> None:
    if op in ("replace", "remove") and key not in at:
        raise PatchError(f"there is nothing at {path}")
    match op:
        case "add" | "replace":
            at[key] = copy.deepcopy(value)
        case "remove":
            del at[key]
        case _:
            raise PatchError(f'found the operation "{op}", allowed are add, remove and replace')


def _in_list(at: list[object], op: str, key: str, value: object, path: str) -> None:
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
