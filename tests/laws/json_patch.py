"""The changes of a fix, applied to manifests: deletions, new objects, JSON patches (RFC 6902: add, remove, replace)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]


def changed(objects: Iterable[Mapping[str, object]], changes: Iterable[Json]) -> list[Json]:
    """The objects with all changes made. Raises where a target or a path does not exist."""
    result: list[Json] = [copy.deepcopy(dict(item)) for item in objects]
    for change in changes:
        if "create" in change:
            result.append(change["create"])
            continue
        (index,) = (index for index, item in enumerate(result) if _is(item, change["target"]))
        if change.get("delete"):
            del result[index]
        for operation in change.get("patch", ()):
            apply(result[index], operation)
    return result


def _is(manifest: Json, target: Json) -> bool:
    metadata = manifest["metadata"]
    named = (manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace"))
    return named == (target["apiVersion"], target["kind"], target["name"], target.get("namespace"))


def apply(document: Json, operation: Json) -> None:
    """One operation of a JSON patch, in place."""
    *parents, last = [_unescaped(part) for part in operation["path"].split("/")[1:]]
    at: Any = document
    for part in parents:
        at = at[int(part)] if isinstance(at, list) else at[part]
    match operation["op"], at:
        case "add", list():
            at.insert(len(at) if last == "-" else int(last), operation["value"])
        case "add", dict():
            at[last] = operation["value"]
        case "replace" | "remove" as op, list() | dict():
            key: Any = int(last) if isinstance(at, list) else last
            at[key]  # has to exist
            if op == "remove":
                del at[key]
            else:
                at[key] = operation["value"]
        case unknown:
            raise AssertionError(f"no operation that fixes use: {unknown}")


def _unescaped(part: str) -> str:
    """A part of a JSON pointer (RFC 6901)."""
    return part.replace("~1", "/").replace("~0", "~")
