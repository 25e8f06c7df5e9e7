"""The output of every source: a JSON array of Kubernetes objects, the place of each, and errors in one."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, Place, join_fields
from kschedx.kube.snapshot_header import SnapshotHeader
from kschedx.sources.lists import Flat

# Errors in a JSON text, in words that a reader of the file understands.

_BYTE = re.compile(r" \(byte (\d+)\)$")
_LONGEST_TOKEN = len(r"\ud83d\ude00")
_PATH = re.compile(r"^(?P<problem>.*) - at `\$(?:\[(?P<index>\d+)\])?\.?(?P<field>.*)`$")


def byte_of(error: Exception) -> int | None:
    """Return the offset that msgspec names in a syntax error."""
    match = _BYTE.search(str(error))
    return int(match.group(1)) if match else None


def is_truncated(error: Exception, text: bytes | memoryview) -> bool:
    """Return whether the text may end before its value does: a word, a number, or an escape sequence may continue."""
    byte = byte_of(error)
    return "truncated" in str(error) or (byte is not None and byte >= len(text) - _LONGEST_TOKEN)


def trailing_at(error: Exception) -> int | None:
    """Return the offset of the text after the end of the value, if that is the error."""
    byte = byte_of(error)
    # msgspec reads this one byte before it raises the error
    return byte - 1 if byte is not None and "trailing characters" in str(error) else None


def what_is_wrong(error: Exception, text: bytes | memoryview) -> str:
    """Return the error in words; `text` is what was decoded."""
    byte = byte_of(error)
    if "truncated" in str(error) or (byte is not None and byte >= len(text)):
        return "it ends in the middle of a value"
    problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
    if byte is None:
        return problem
    excerpt = bytes(text[byte : byte + 20])
    if re.match(rb"-?(NaN|Infinity)", excerpt):
        return "JSON has no NaN and no Infinity"
    if excerpt[:1] == b"'":
        return "strings are written in double quotes"
    if excerpt[:1] < b" " and problem == "invalid character":
        return "a string holds a raw control character or line end"
    return f"{problem} {_shown(excerpt)}" if problem == "invalid character" else problem


def _shown(excerpt: bytes) -> str:
    return ascii(excerpt.decode(errors="replace")[:1])


def explain_malformed(error: Exception, items: bytes | memoryview, *, place: Place) -> InputError:
    """Return the error for a batch that no decoder can read; `place` is that of its first object."""
    text = bytes(items)
    if isinstance(error, UnicodeDecodeError):
        offset, problem = invalid_utf8_at(text) or 0, "not valid UTF-8"
    else:
        offset, problem = byte_of(error) or 0, f"not valid JSON: {what_is_wrong(error, text)}"
    if place.line is None:
        return InputError(problem, place=place)
    first = text.find(b"{")
    line = place.line + text.count(b"\n", max(first, 0), offset)
    return InputError(problem, place=Place(source=place.source, document=place.document, line=line))


def invalid_utf8_at(text: bytes | memoryview) -> int | None:
    """Return the offset of the first byte that is not UTF-8."""
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        return error.start
    return None


class _Named(msgspec.Struct):
    name: str = ""
    namespace: str = ""


class _NamedObject(msgspec.Struct):
    kind: str = ""
    metadata: _Named = msgspec.field(default_factory=_Named)


def _explain_invalid(error: msgspec.ValidationError, items: list[msgspec.Raw]) -> tuple[int | None, InputError]:
    """Return the index of the invalid object, if known, and the error with the object's name and field."""
    match = _PATH.match(str(error))
    if match is None or match["index"] is None:
        return None, InputError(str(error))
    index = int(match["index"])
    problem = match["problem"].replace("`", "").replace("Expected", "expected")
    hint = "quote the value to make it a string" if re.search(r"expected str.*got (int|float|bool)", problem) else ""
    field = match["field"]
    if "[...]" in field:  # msgspec does not name the keys of untyped values, in which only numbers can be wrong
        field = _endless_number(json.loads(bytes(items[index]), parse_int=float)) or field
    place = Place(object=_name_of(items[index]), field=field)
    return index, InputError(problem, place=place, hint=hint)


def _endless_number(whole: object) -> str:
    """Return the field of the first number that exceeds a float; empty if there is none."""
    left = [("", whole)]
    while left:
        field, value = left.pop()
        match value:
            case float() if math.isinf(value):
                return field
            case dict():
                left += [(join_fields(field, key), item) for key, item in reversed(value.items())]
            case list():
                left += [(f"{field}[{number}]", item) for number, item in reversed([*enumerate(value)])]
            case _:
                pass
    return ""


def _name_of(raw: msgspec.Raw) -> str:
    """Return `Kind namespace/name`, as far as the object has them."""
    try:
        named = msgspec.json.decode(raw, type=_NamedObject)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    name = f"{named.metadata.namespace}/{named.metadata.name}".lstrip("/")
    return f"{named.kind} {name}".strip()


# Lines of a JSON list's items, computed on request.

_NEAR = 16 << 20
"""Bytes; an item of a chunk is searched this far from the chunk's beginning."""
_BLOCK = 1 << 20
_BETWEEN_ITEMS = re.compile(rb"[\s,]*")
_RAW = msgspec.json.Decoder(msgspec.Raw)
_RAWS = msgspec.json.Decoder(list[msgspec.Raw])


class LineCounter:
    """Counts the line ends of a file before an offset, from the last offset on if that is not later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known = (0, 0)

    def before(self, end: int) -> int:
        offset, lines = self._known if self._known[0] <= end else (0, 0)
        with self.path.open("rb") as file:
            file.seek(offset)
            while offset < end and (block := file.read(min(end - offset, _BLOCK))):
                lines += block.count(b"\n")
                offset += len(block)
        self._known = (offset, lines)
        return lines

    def of_items(self, start: int, count: int) -> Iterator[int]:
        """Yield the lines of the first `count` items of those that begin at offset `start`, as far as each is found."""
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                text = memoryview(file.read(_NEAR))
            line, at = self.before(start) + 1, 0
            for number in range(count):
                match = _BETWEEN_ITEMS.match(text, at)
                here = match.end() if match else at
                line += bytes(text[at:here]).count(b"\n")
                yield line
                if number < count - 1:
                    at = here + length_of_first(text[here:])
                    line += bytes(text[here:at]).count(b"\n")
        except (OSError, ValueError):
            return


def length_of_first(text: memoryview) -> int:
    """Return the length of the JSON value at the beginning of `text`. Raises ValueError unless something follows it."""
    try:
        _RAW.decode(text)
    except msgspec.DecodeError as error:
        trailing = trailing_at(error)
        if trailing is not None:
            return trailing
    raise ValueError("one value and something else are expected")


def lines_of_items(flat: Flat, document: memoryview, first: int) -> dict[int, int]:
    """Return the line of each item of the outermost list, by its index."""
    if flat.indexes in ((), (None,)):
        return {}
    text = bytes(document)
    listed = msgspec.json.decode(text, type=_Items) if text[:1] == b"{" else None
    raws = _RAWS.decode(text if listed is None else listed.items or listed.Items)
    lines, end, counted, line = {}, 0, 0, first
    for index, raw in enumerate(raws):
        item = bytes(raw)
        start = text.find(item, end)
        line += text.count(b"\n", counted, start)
        lines[index], counted, end = line, start, start + len(item)
    return lines


class _Items(msgspec.Struct):
    items: msgspec.Raw = msgspec.Raw(b"")
    Items: msgspec.Raw = msgspec.Raw(b"[]")
    """The items of a list in kubectl's internal types (`lists.versioned`)."""


T = TypeVar("T")

RAWS = msgspec.json.Decoder(list[msgspec.Raw])


class Origin(Protocol):
    """The places of a batch's objects. It holds none of their bytes, so it may be kept."""

    @property
    def source(self) -> str:
        """The file or other source, which is the same for all objects."""

    def place(self, index: int) -> Place:
        """Return the place of the object with this index in the batch (from 0)."""


class Spot(Struct, frozen=True, kw_only=True):
    """One object's place in a source."""

    document: int
    line: int | None = None
    index: int | None = None
    """The position in the object's List, if it was in one."""


class ListedOrigin(Struct, frozen=True, kw_only=True):
    """Places that are known in advance: those of YAML and of small JSON."""

    source: str
    spots: tuple[Spot, ...]

    def place(self, index: int) -> Place:
        spot = self.spots[index]
        item = "" if spot.index is None or spot.line is not None else f"items[{spot.index}]"
        return Place(source=self.source, document=spot.document, line=spot.line, object=item)


class ChunkOrigin(Struct, frozen=True, kw_only=True):
    """Places in a chunk of a large JSON list. Lines are counted on request, by reading the file again."""

    source: str
    document: int
    start: int
    """The offset of the first object's first byte."""
    lines: LineCounter | None = None
    """Reads the chunk again; None for input that can be read only once."""
    indexes: tuple[int | None, ...] = ()
    """The item of each object, counted from the chunk's first one; empty if items and objects are the same."""

    def place(self, index: int) -> Place:
        *_, place = self.places((index,))
        return place

    def places(self, objects: Sequence[int]) -> list[Place]:
        items = [(self.indexes[index] if self.indexes else index) or 0 for index in objects]
        lines = [] if self.lines is None else [*self.lines.of_items(self.start, max(items, default=-1) + 1)]
        return [
            Place(source=self.source, document=self.document, line=lines[item] if item < len(lines) else None)
            for item in items
        ]


@dataclass(slots=True, kw_only=True)
class Batch:
    """Objects in JSON. Read them with `decode`, which also determines where a chunk of a large file ends.

    A large file is cut at an apparent end of an object. If that is inside an object or beyond the list's end, the piece
    is no JSON array. `decode` notices this and calls `settle`, which replaces `items`.
    """

    items: bytes | memoryview
    origin: Origin
    settle: Callable[[Batch], None] | None = field(default=None, repr=False)
    header: SnapshotHeader | None = None
    """The header of a snapshot, in the batch with its first objects."""

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Decode `items` with a decoder of a list. Raises InputError for text that is not JSON.

        An invalid object raises msgspec.ValidationError, so that the caller can try another decoder, or raise
        `invalid(error)`.
        """
        try:
            return self._decode(decoder)
        except RecursionError:
            raise InputError("nested too deeply", place=self.origin.place(0)) from None

    def _decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        try:
            decoded = decoder.decode(self.items)
        except msgspec.ValidationError:
            raise
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            if self.settle is None or isinstance(error, UnicodeDecodeError):
                raise explain_malformed(error, self.items, place=self.origin.place(0)) from None
            settle, self.settle = self.settle, None
            settle(self)
            return self._decode(decoder)
        self.settle = None
        return decoded

    def places(self, count: int) -> list[Place]:
        """Return the places of the first `count` objects. A file is read again once for all of them."""
        if isinstance(self.origin, ChunkOrigin):
            return self.origin.places(range(count))
        return [self.origin.place(index) for index in range(count)]

    def invalid(self, error: msgspec.ValidationError) -> InputError:
        """Return the error of an invalid object, with its place, its name, and the field's path."""
        index, problem = _explain_invalid(error, self.decode(RAWS))
        return problem if index is None else problem.at(self.origin.place(index))


def from_objects(objects: Sequence[Mapping[str, object]]) -> Batch:
    """Return a batch of manifests, given as Python dicts. Lists are not flattened here, but by `lists.flatten`."""
    spots = tuple(Spot(document=number) for number in range(1, len(objects) + 1))
    return Batch(items=msgspec.json.encode(objects), origin=ListedOrigin(source="", spots=spots))
