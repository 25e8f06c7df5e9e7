"""The line on which a field of an object stands, looked up when an error needs it."""

from __future__ import annotations

import re
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.sources.yaml_text import split

if TYPE_CHECKING:
    from yaml import Node

_STEP = re.compile(r"\.?([^.\[\]]+)|\[([^\]]*)\]")
MAX_TEXT = 8 << 20
"""Bytes of a text that is worth reading again for a line."""


def with_line(error: InputError, place: Place, text: bytes | None = None, *, below: str = "") -> InputError:
    """The error at `place`, which is an object's, with the line of its field where that can be found.

    `text` is what the object was read from; without it, the place's file is read. `below` is where in the object the
    template of a pod is, for errors about the pod: they are told with the field of the object.
    """
    found = error
    if error.place.field and error.place.line is None:
        line = line_of(error.place.field, place, text, below=below)
        if line is not None:
            found = error.at(Place(line=line))
            found.others = error.others
    if error.place.field.startswith("spec") and not error.place.source:
        found = found.at(Place(field=below))
    others = tuple(with_line(other, place, text, below=below) for other in error.others)
    parts = tuple(with_line(part, place, text, below=below) for part in error.parts)
    found = found.at(place)
    found.others, found.parts = others, parts
    return found


def located(error: InputError) -> InputError:
    """The same error with the line of its field in place of its object's, where a file has both."""
    place = error.place
    if not place.field or place.line is None:
        return error
    line = line_of(place.field, place, is_sure=True)
    found = copy(error)
    found.place = place if line is None else replace(place, line=line)
    return found


def line_of(
    field: str, place: Place, text: bytes | None = None, *, below: str = "", is_sure: bool = False
) -> int | None:
    """The line of the deepest part of the field's path that is written.

    With `is_sure`, None where no object begins on the place's line.
    """
    import yaml

    if place.document is None:
        return None
    try:
        whole = _text(place.source) if text is None else text
        document = next((one for one in split(whole, source=place.source) if one.number == place.document), None)
        if document is None:
            return None
        loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
        root: Node | None = yaml.compose(document.text.decode(), Loader=loader)
    except (OSError, UnicodeDecodeError, InputError, yaml.YAMLError, RecursionError):
        return None
    steps = [name or index for name, index in _STEP.findall(f"{below}.{field}" if below else field)]
    found = _object(root, place, document.line, is_sure=is_sure)
    line = None
    for step in steps:
        key, found = _below(found, step)
        if found is None:
            break
        line = document.line + key
    return line


def _text(source: str) -> bytes:
    path = Path(source)
    return path.read_bytes() if path.is_file() and path.stat().st_size <= MAX_TEXT else b""


def _object(root: Node | None, place: Place, first_line: int, *, is_sure: bool) -> Node | None:
    """The document, or the item of a list that begins on the place's line."""
    from yaml import MappingNode, SequenceNode

    waiting = [root]
    while waiting:
        node = waiting.pop(0)
        if node is None or (isinstance(node, MappingNode) and node.start_mark.line + first_line == place.line):
            return node
        if isinstance(node, SequenceNode):
            waiting += node.value
        elif isinstance(node, MappingNode):
            waiting += [value for key, value in node.value if key.value == "items"]
    return None if is_sure else root


def _below(node: Node | None, step: str) -> tuple[int, Node | None]:
    """The line of what is under a key or index, and it."""
    from yaml import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark.line, value
    elif isinstance(node, SequenceNode) and step.isdecimal() and int(step) < len(node.value):
        value = node.value[int(step)]
        return value.start_mark.line, value
    return 0, None
