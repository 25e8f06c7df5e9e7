"""Plugin arguments as a configuration writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, structs

from kschedx.framework.args import PluginArgs
from kschedx.framework.duration import Duration


def written(args: PluginArgs) -> dict[str, object]:
    """Fields under their own names, those that hold nothing left out."""
    plain = _plain(args)
    assert isinstance(plain, dict)
    return plain


def _plain(value: object) -> object:
    match value:
        case Duration():
            return str(value)
        case Struct():
            fields = {field.encode_name: getattr(value, field.name) for field in structs.fields(value)}
            return {name: _plain(item) for name, item in fields.items() if item is not None and item != ()}
        case Mapping():
            return {str(name): _plain(item) for name, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case _:
            return value


def flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """The leaves of a document with their field paths; what is empty has none."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        named = all(isinstance(item, Mapping) and item.get("name") for item in value)
        for number, item in enumerate(value):
            key = item["name"] if named and isinstance(item, Mapping) else number
            yield from flat(item, f"{path}[{key}]")
    elif value is not None:
        yield path, value
