"""The lines of a JSON list's items, looked for when somebody asks."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from kschedx.sources.json_errors import trailing_at
from kschedx.sources.lists import Flat

_NEAR = 16 << 20
"""Bytes; an item of a chunk is looked for so far behind its beginning."""
_BLOCK = 1 << 20
_BETWEEN_ITEMS = re.compile(rb"[\s,]*")
_RAW = msgspec.json.Decoder(msgspec.Raw)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


def line_of_item(path: Path, start: int, index: int) -> int | None:
    """The line of the item number `index` of those that begin at offset `start`; None if that is not to be found."""
    try:
        with path.open("rb") as file:
            file.seek(start)
            text = memoryview(file.read(_NEAR))
        at = 0
        for number in range(index + 1):
            match = _BETWEEN_ITEMS.match(text, at)
            at = match.end() if match else at
            if number < index:
                at += length_of_first(text[at:])
        return count_lines(path, start) + bytes(text[:at]).count(b"\n") + 1
    except (OSError, ValueError):
        return None


def length_of_first(text: memoryview) -> int:
    """The length of the JSON value that `text` begins with; something follows it. Otherwise raises ValueError."""
    try:
        _RAW.decode(text)
    except msgspec.DecodeError as error:
        trailing = trailing_at(error)
        if trailing is not None:
            return trailing
    raise ValueError("one value and something else are expected")


def lines_of_items(flat: Flat, document: memoryview, first: int) -> dict[int, int]:
    """The line of each item of the outermost list."""
    if flat.indexes in ((), (None,)):
        return {}
    text = bytes(document)
    listed = msgspec.json.decode(text, type=_Items) if text[:1] == b"{" else None
    raws = _RAWS.decode(text if listed is None else listed.items or listed.Items)
    lines, end, counted, line = {}, 0, 0, first
    for index, raw in enumerate(raws):
        item = bytes(raw)
        found = text.find(item, end)
        line += text.count(b"\n", counted, found)
        lines[index], counted, end = line, found, found + len(item)
    return lines


class _Items(msgspec.Struct):
    items: msgspec.Raw = msgspec.Raw(b"")
    Items: msgspec.Raw = msgspec.Raw(b"[]")
    """Of kubectl's own types (`internal_types`)."""


def count_lines(path: Path, end: int) -> int:
    """The line ends before offset `end`."""
    lines = 0
    with path.open("rb") as file:
        while end > 0 and (block := file.read(min(end, _BLOCK))):
            lines += block.count(b"\n")
            end -= len(block)
    return lines
