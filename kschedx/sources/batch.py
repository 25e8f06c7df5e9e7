"""What every source yields: a JSON array of Kubernetes objects, and where each of them came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from kschedx.api.snapshot_header import SnapshotHeader
from kschedx.errors import InputError, Place
from kschedx.sources.json_errors import explain_invalid, explain_malformed
from kschedx.sources.json_lines import line_of_item

T = TypeVar("T")

RAWS = msgspec.json.Decoder(list[msgspec.Raw])
"""Reads a batch without looking into its objects."""


class Origin(Protocol):
    """Where the objects of a batch come from. It holds none of their bytes, so it may be kept."""

    @property
    def source(self) -> str:
        """The file, or what else they come from; the same for all of them."""

    def place(self, index: int) -> Place:
        """The place of the batch's object number `index` (from 0)."""


class Spot(Struct, frozen=True, kw_only=True):
    """One object's place in a source."""

    document: int
    line: int | None = None
    index: int | None = None
    """Position in its List, where it was in one."""


class ListedOrigin(Struct, frozen=True, kw_only=True):
    """Every object's place is known beforehand: YAML, and small JSON."""

    source: str
    spots: tuple[Spot, ...]

    def place(self, index: int) -> Place:
        spot = self.spots[index]
        item = "" if spot.index is None or spot.line is not None else f"items[{spot.index}]"
        return Place(source=self.source, document=spot.document, line=spot.line, object=item)


class ChunkOrigin(Struct, frozen=True, kw_only=True):
    """A chunk of a large JSON list. Lines are counted when somebody asks, by reading the file again."""

    source: str
    document: int
    start: int
    """Offset of the first object's first byte."""
    file: Path | None = None
    """Where the chunk can be read again; None for what can be read once."""
    indexes: tuple[int | None, ...] = ()
    """For each object the item it came from, counted from the chunk's first, where those are not the same."""

    def place(self, index: int) -> Place:
        item = (self.indexes[index] if self.indexes else index) or 0
        line = None if self.file is None else line_of_item(self.file, self.start, item)
        return Place(source=self.source, document=self.document, line=line)


@dataclass(slots=True, kw_only=True)
class Batch:
    """Objects in JSON. Read them with `decode`, which also settles where a chunk of a large file ends.

    A large file is cut where an object seems to end. Should that be inside of an object, or beyond the list's end, then
    the piece is no JSON array: `decode` notices, and `items` is replaced by what `settle` makes of it.
    """

    items: bytes | memoryview
    origin: Origin
    settle: Callable[[Batch], None] | None = field(default=None, repr=False)
    header: SnapshotHeader | None = None
    """What the file says of itself, with the first objects of a snapshot."""

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """`items` read by a decoder of a list.

        Raises InputError for text that is not JSON. An object of the wrong shape is msgspec.ValidationError, so that
        the caller can try another decoder, or raise `invalid(error)`.
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

    def invalid(self, error: msgspec.ValidationError) -> InputError:
        """The error of an object with the wrong shape, with the place, the object's name and the field's path."""
        index, problem = explain_invalid(error, self.decode(RAWS))
        return problem if index is None else problem.at(self.origin.place(index))


def from_objects(objects: Sequence[Mapping[str, object]]) -> Batch:
    """Manifests as Python dicts, as a batch. Lists are not flattened here: that is `lists.flatten`'s."""
    spots = tuple(Spot(document=number) for number in range(1, len(objects) + 1))
    return Batch(items=msgspec.json.encode(objects), origin=ListedOrigin(source="", spots=spots))
