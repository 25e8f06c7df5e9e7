"""What JSON is read into: Go's types, as far as their names and their ways of refusing go."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field

from kschedx.api.go_json.syntax import Parsed


class Text(Struct, frozen=True):
    """A string, or a type of its own that is one."""

    name: str


class Flag(Struct, frozen=True):
    """bool."""

    name: str = "bool"


class Integer(Struct, frozen=True):
    name: str
    bits: int


class Slice(Struct, frozen=True):
    item: Go
    named: str = ""

    @property
    def name(self) -> str:
        return self.named or f"[]{_of_pointer(self.item)}"


class Map(Struct, frozen=True):
    """Keys are strings."""

    item: Go
    named: str = ""
    key: str = "string"

    @property
    def name(self) -> str:
        return self.named or f"map[{self.key}]{_of_pointer(self.item)}"


class Record(Struct, frozen=True, dict=True):
    """A struct: JSON names in the order of the fields."""

    name: str
    """With its package: `v1.Node`."""
    fields: Mapping[str, Go] = field(default_factory=dict)
    is_pointer: bool = False
    """A null there is nil, and not a struct without anything in it."""
    embedded: Mapping[str, str] = field(default_factory=dict)
    """Fields of a struct within this one, to that struct's name: errors tell it, JSON does not."""

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


class Custom(Struct, frozen=True):
    """A type with an UnmarshalJSON of its own."""

    name: str
    read: Callable[[Parsed], object]
    """Raises `GoJSONError`."""


Go = Text | Flag | Integer | Slice | Map | Record | Custom


def _of_pointer(item: Go) -> str:
    return f"*{item.name}" if isinstance(item, Record) and item.is_pointer else item.name


STRING = Text("string")
BOOL = Flag()
INT32 = Integer("int32", 32)
INT64 = Integer("int64", 64)
