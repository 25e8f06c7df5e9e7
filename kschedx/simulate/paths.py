"""A single field of a manifest, by its path: `spec.template.spec.containers[web].resources.requests.cpu`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar, cast

import msgspec

from kschedx.api.decode import decode
from kschedx.errors import InputError, nearest

T = TypeVar("T")

_PART = re.compile(r"""\.?([^.\[\]]+)|\[([^\]]*)\]""")


def with_value(manifest: Mapping[str, object], path: str, value: object) -> dict[str, object]:
    """The manifest with a field set; `[0]` is an item by its number, `[web]` by its name or, in a map, by its key.

    What the path leads through has to be there, the last part need not. Raises `InputError` with what is there.
    """
    changed = _with(manifest, _parts(path), value, path)
    assert isinstance(changed, dict), "a manifest is a map"
    return changed


def _parts(path: str) -> list[str]:
    parts = [found.group(1) or found.group(2) or "" for found in _PART.finditer(path)]
    if not parts or "".join(found.group(0) for found in _PART.finditer(path)) != path:
        raise InputError(f'"{path}" is no path', hint="such as spec.replicas or spec.template.spec.containers[0].image")
    return parts


def _with(inside: object, parts: list[str], value: object, path: str) -> object:
    if not parts:
        return value
    part, rest = parts[0], parts[1:]
    if isinstance(inside, Mapping):
        if rest and part not in inside and _needs_to_be_there(rest):
            raise _lost(part, path, [str(key) for key in inside])
        return {**inside, part: _with(inside.get(part, {}), rest, value, path)}
    if isinstance(inside, list | tuple):
        names = [str(item.get("name", "")) if isinstance(item, Mapping) else "" for item in inside]
        number = int(part) if part.isascii() and part.isdigit() else names.index(part) if part in names else -1
        if not 0 <= number < len(inside):
            raise _lost(part, path, [name for name in names if name] or [f"0 to {len(inside) - 1}"])
        return [_with(item, rest, value, path) if index == number else item for index, item in enumerate(inside)]
    raise _lost(part, path, [])


def _needs_to_be_there(rest: list[str]) -> bool:
    """A missing map can be made on the way to its first key, but a list cannot."""
    return any(part.isdigit() for part in rest)


def _lost(part: str, path: str, known: list[str]) -> InputError:
    hint = nearest(part, known) or (f"there are {', '.join(sorted(known)[:6])}" if known else "")
    return InputError(f'{path}: there is no "{part}"', hint=hint)


def scalar(text: str) -> object:
    """As YAML reads it: a number, true, false, null, or JSON; anything else is a text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def with_field(record: T, path: str, value: object) -> T:
    """A node or a pod with one field set. Raises `InputError` for a field that scheduling does not read."""
    written = cast("dict[str, object]", msgspec.to_builtins(record))
    wanted = with_value(written, path, value)
    changed = decode(msgspec.json.encode(wanted), type(record))
    if changed == record and wanted != written:
        raise InputError(f'"{path}" is no field that scheduling reads', hint=_meant(written, path))
    return changed


def _meant(written: object, path: str) -> str:
    """The nearest field that is known where the path leaves those that are."""
    for part in _parts(path):
        if not isinstance(written, Mapping):
            break
        if part not in written:
            return nearest(part, written)
        written = written[part]
    return ""
