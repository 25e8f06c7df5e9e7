"""What a snapshot is built from: some objects as JSON, and where they come from."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec
from msgspec import Struct

from kschedx.api.snapshot_header import SnapshotHeader
from kschedx.errors import Place

T = TypeVar("T")


class Origin(Protocol):
    """Where the objects of a batch come from."""

    def place(self, index: int) -> Place: ...


class Batch(Protocol):
    """Some objects as a JSON array (sources.batch.Batch)."""

    @property
    def origin(self) -> Origin: ...

    @property
    def header(self) -> SnapshotHeader | None:
        """What the file says of itself, once for each."""

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Raises msgspec.ValidationError where an object has not the decoder's shape, `InputError` for no JSON."""
        ...


class Page(Protocol):
    """A part of an API server's list (sources.live.lists.ListPage)."""

    @property
    def kind(self) -> str: ...

    @property
    def origin(self) -> Origin: ...

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """As `Batch.decode`."""

    def with_kinds(self) -> Batch:
        """The same objects, each with its kind."""
        ...


class Dicts(Struct, frozen=True):
    """Manifests as dicts, as a batch that is its own origin."""

    items: bytes
    header: SnapshotHeader | None = None

    @property
    def origin(self) -> Origin:
        return self

    def place(self, index: int) -> Place:
        return Place(document=index + 1)

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        return decoder.decode(self.items)
