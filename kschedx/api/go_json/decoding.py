"""A JSON value into a Go type.

What cannot be read is passed over and remembered: the first such error is the answer, unless a type with a reader of
its own refuses, which ends it at once.
"""

from __future__ import annotations

import base64
import binascii

from kschedx.api.go_json.syntax import GoJSONError, Members, Number, Parsed, first_value
from kschedx.api.go_json.types import Custom, Flag, Go, Integer, Map, Record, Slice, Text


def decode_first(text: bytes, kind: Go, *, ended: str = "EOF") -> object:
    """The first value of `text` as dicts, lists, strings, ints and bools; a field that is not there, or null, is not in
    its dict, and names of fields are as `kind` writes them. `ended` is the error with which the text ended.

    Raises `GoJSONError` with Go's words.
    """
    value = first_value(text, ended)
    reader = _Reader()
    read = reader.read(value, kind, None)
    if reader.error:
        raise GoJSONError(reader.error)
    return read


class _Reader:
    def __init__(self) -> None:
        self.error = ""
        self._struct = ""
        self._path: tuple[str, ...] = ()

    def _refuse(self, value: str, kind: Go) -> None:
        if not self.error:
            into = f"struct field {self._struct}.{'.'.join(self._path)}" if self._struct else "value"
            self.error = f"json: cannot unmarshal {value} into Go {into} of type {kind.name}"

    def read(self, value: Parsed, kind: Go, before: object) -> object:
        """`before` is what an earlier member of the same name has left there. None stands for Go's zero value."""
        if isinstance(kind, Custom):
            try:
                return kind.read(value)
            except GoJSONError as error:
                raise self._in_context(error) from None
        match value:
            case None:
                return (
                    None if isinstance(kind, Slice | Map) or (isinstance(kind, Record) and kind.is_pointer) else before
                )
            case bool():
                if isinstance(kind, Flag):
                    return value
                self._refuse("bool", kind)
            case Number():
                return self._number(value, kind, before)
            case str():
                return self._text(value, kind, before)
            case Members():
                return self._object(value, kind, before)
            case _:
                return self._array(value, kind, before)
        return before

    def _in_context(self, error: GoJSONError) -> GoJSONError:
        """A reader of its own that speaks of Go's types is told where it stands."""
        start, into, rest = str(error).partition(" into Go value of type ")
        if not into or not self._struct:
            return error
        return GoJSONError(f"{start} into Go struct field {self._struct}.{'.'.join(self._path)} of type {rest}")

    def _number(self, value: Number, kind: Go, before: object) -> object:
        if not isinstance(kind, Integer):
            self._refuse("number", kind)
            return before
        # Go reads no fraction and no exponent into an integer, not even of a whole number
        digits = value.removeprefix("-")
        limit = 1 << (kind.bits - 1)
        if not digits.isdigit() or len(digits) > 20 or not -limit <= int(value) < limit:
            self._refuse(f"number {value}", kind)
            return before
        return int(value)

    def _text(self, value: str, kind: Go, before: object) -> object:
        if isinstance(kind, Text):
            return value
        if isinstance(kind, Slice) and kind.item.name == "uint8":
            try:
                return base64.b64decode(value, validate=True)
            except binascii.Error:
                self._refuse("string", kind)
                return before
        self._refuse("string", kind)
        return before

    def _array(self, value: list[Parsed], kind: Go, before: object) -> object:
        if not isinstance(kind, Slice):
            self._refuse("array", kind)
            return before
        # Go reuses the elements that an earlier array has left there
        left = before if isinstance(before, list) else []
        return [self.read(item, kind.item, left[at] if at < len(left) else None) for at, item in enumerate(value)]

    def _object(self, value: Members, kind: Go, before: object) -> object:
        match kind:
            case Map():
                into = dict(before) if isinstance(before, dict) else {}
                for key, item in value:
                    into[key] = self.read(item, kind.item, None)
                return into
            case Record():
                into = dict(before) if isinstance(before, dict) else {}
                context = self._struct, self._path
                for key, item in value:
                    name = _field(kind, key)
                    if name is not None:
                        within = (kind.embedded[name],) if name in kind.embedded else ()
                        self._struct, self._path = kind.short, (*context[1], *within, name)
                        into[name] = self.read(item, kind.fields[name], into.get(name))
                        self._struct, self._path = context
                return into
            case _:
                self._refuse("object", kind)
                return before


def _field(kind: Record, key: str) -> str | None:
    """The field that a key names: exactly, else without regard to case."""
    if key in kind.fields:
        return key
    folded = _folded(kind)
    return folded.get(_fold(key))


def _folded(kind: Record) -> dict[str, str]:
    found: dict[str, str] | None = kind.__dict__.get("folded")
    if found is None:
        found = kind.__dict__["folded"] = {}
        for name in kind.fields:
            found.setdefault(_fold(name), name)
    return found


def _fold(key: str) -> str:
    """Equal for texts that differ in case only, each character for itself."""
    return "".join(char.casefold() if len(char.casefold()) == 1 else char for char in key)
