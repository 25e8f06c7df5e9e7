"""A document cut down to what an assistant can read, with what was left out named. Its shape stays valid."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

FEWEST = 3
"""Entries that stay of anything that is cut."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """A map or list of which only the first entries are there."""

    path: str
    """JSON Pointer into the document."""
    kept: int
    of: int


def bounded(document: Mapping[str, object], limit: int) -> tuple[dict[str, Any], tuple[LeftOut, ...]]:
    """The document in at most `limit` bytes of JSON, as far as cutting maps and lists of many entries goes.

    The largest is halved first, so that what is short stays whole.
    """
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    whole: dict[str, int] = {}
    while _size(made) > limit:
        containers = [(path, entries) for path, entries in _containers(made, "") if len(entries) > FEWEST]
        if not containers:
            break
        path, largest = max(containers, key=lambda one: (_spare(one[1]), one[0]))
        whole.setdefault(path, len(largest))
        _cut(largest, max(len(largest) // 2, FEWEST))
    return made, tuple(_left_out(made, whole))


def _left_out(made: dict[str, Any], whole: Mapping[str, int]) -> Iterator[LeftOut]:
    now = dict(_containers(made, ""))
    for path, count in whole.items():
        if path in now:  # what it stands in may have been cut itself
            yield LeftOut(path=path, kept=len(now[path]), of=count)


def _containers(value: object, path: str) -> Iterator[tuple[str, dict[str, Any] | list[Any]]]:
    """Everything that can lose entries: lists, and maps by name, whose values are alike."""
    if isinstance(value, list):
        yield path, value
        for number, item in enumerate(value):
            yield from _containers(item, f"{path}/{number}")
    elif isinstance(value, dict):
        if _is_map(value):
            yield path, value
        for key, item in value.items():
            yield from _containers(item, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")


def _is_map(value: Mapping[str, object]) -> bool:
    """A map by node or pod, rather than an object with fields: its values are objects of the same fields."""
    shapes = {tuple(item) if isinstance(item, dict) else None for item in value.values()}
    return len(value) > FEWEST and len(shapes) <= 2 and None not in shapes


def _spare(entries: dict[str, Any] | list[Any]) -> int:
    """What halving saves."""
    items = list(entries.items()) if isinstance(entries, dict) else entries
    return _size(items[max(len(items) // 2, FEWEST) :])


def _cut(entries: dict[str, Any] | list[Any], count: int) -> None:
    if isinstance(entries, list):
        del entries[count:]
    else:
        for key in list(entries)[count:]:
            del entries[key]


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))
