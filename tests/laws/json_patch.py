"""The changes of a fix, applied to manifests: deletions, new objects, JSON patches (RFC 6902: add, remove, replace)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

Json = dict[str, Any]


def apply_changes(objects: Iterable[Mapping[str, object]], changes: Iterable[Json]) -> list[Json]:
    """Return copies of the objects with all changes. Raises where a target or a path does not exist."""
    result: list[Json] = [copy.deepcopy(dict(item)) for item in objects]
    for change in changes:
        if "create" in change:
            result.append(change["create"])
            continue
        (index,) = (index for index, item in enumerate(result) if _is_target(item, change["target"]))
        if change.get("delete"):
            del result[index]
        for operation in change.get("patch", ()):
            apply(result[index], operation)
    return result


def _is_target(manifest: Json, target: Json) -> bool:
    metadata = manifest["metadata"]
    named = (manifest["apiVersion"], manifest["kind"], metadata["name"], metadata.get("namespace"))
    return named == (target["apiVersion"], target["kind"], target["name"], target.get("namespace"))


def apply(document: Json, operation: Json) -> None:
    """Apply one operation of a JSON patch in place."""
    *parents, last = [_unescaped(part) for part in operation["path"].split("/")[1:]]
    container: Any = document
    for part in parents:
        container = container[int(part)] if isinstance(container, list) else container[part]
    match operation["op"], container:
        case "add", list():
            container.insert(len(container) if last == "-" else int(last), operation["value"])
        case "add", dict():
            container[last] = operation["value"]
        case "replace" | "remove" as op, list() | dict():
            key: Any = int(last) if isinstance(container, list) else last
            container[key]  # raises if the key does not exist
            if op == "remove":
                del container[key]
            else:
                container[key] = operation["value"]
        case unknown:
            raise AssertionError(f"fixes do not use this operation: {unknown}")


def _unescaped(part: str) -> str:
    """Return the text of one part of a JSON pointer (RFC 6901)."""
    return part.replace("~1", "/").replace("~0", "~")
