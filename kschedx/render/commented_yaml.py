"""YAML with a comment beside each value that has one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import msgspec

from kschedx.api.hidden import yaml_escaped

_PLAIN = re.compile(r"[A-Za-z/][A-Za-z0-9._/-]*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def commented_yaml(document: Mapping[str, object], comments: Mapping[str, str]) -> str:
    """`comments` are keyed by field path: `profiles[0].schedulerName`."""
    return "\n".join(_mapping(document, comments, "", 0)) + "\n"


def _mapping(value: Mapping[str, object], comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    for key, item in value.items():
        yield from _entry(f"{'  ' * depth}{_scalar(key)}:", item, comments, f"{path}.{key}" if path else key, depth)


def _sequence(value: list[object], comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    for number, item in enumerate(value):
        where = f"{path}[{number}]"
        name = item.get("name") if isinstance(item, Mapping) else None
        if name and any(comment.startswith(f"{path}[{name}]") for comment in comments):
            where = f"{path}[{name}]"  # elements of arguments are known by their names
        if isinstance(item, Mapping) and item:
            first, *rest = _mapping(item, comments, where, depth + 1)
            yield f"{'  ' * depth}- {first.lstrip()}"
            yield from rest
        else:
            yield from _entry(f"{'  ' * depth}-", item, comments, where, depth)


def _entry(head: str, value: object, comments: Mapping[str, str], path: str, depth: int) -> Iterator[str]:
    match value:
        case Mapping() if value:
            yield head
            yield from _mapping(value, comments, path, depth + 1)
        case list() if value:
            yield head
            yield from _sequence(value, comments, path, depth)
        case _:
            comment = f"  # {comments[path]}" if path in comments else ""
            yield f"{head} {_scalar(value)}{comment}"


def _scalar(value: object) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS:
        return value
    return yaml_escaped(msgspec.json.encode(value).decode())  # JSON is YAML, but for what YAML has only as escapes
