"""The Explanation document as JSON and YAML."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from kschedx.api.hidden import json_escaped


def to_json(document: Mapping[str, object]) -> str:
    """Indented by four, as kubectl prints it; characters that a terminal would obey or hide are escaped."""
    return _json(document)


def json_parts(entries: Iterable[tuple[str, object]]) -> Iterator[str]:
    """`to_json` of a document of these keys and values, in pieces: a list that is given as an iterator is never there
    as a whole."""
    opened = "{"
    for key, value in entries:
        yield f"{opened}\n    {_json(key)}: "
        yield from _listed(value) if isinstance(value, Iterator) else (_json(value, depth=1),)
        opened = ","
    yield "\n}"


def _listed(items: Iterator[object]) -> Iterator[str]:
    opened = "["
    for item in items:
        yield f"{opened}\n        {_json(item, depth=2)}"
        opened = ","
    yield "[]" if opened == "[" else "\n    ]"


def _json(value: object, *, depth: int = 0) -> str:
    text = json_escaped(msgspec.json.format(msgspec.json.encode(value), indent=4).decode())
    return text.replace("\n", "\n" + "    " * depth)


def to_yaml(document: Mapping[str, object]) -> str:
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(document, Dumper=dumper, sort_keys=False, default_flow_style=False, allow_unicode=False)
    return text
