"""The first JSON value of a text, or what Go says is wrong with it.

The value is read by Python's parser, which takes what Go takes but for a few words and limits; where it refuses, the
text is looked at again, token by token, for the words of Go's scanner.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NoReturn

from msgspec import Struct, field

MAX_DEPTH = 10_000
"""Arrays and objects within one another."""


class GoJSONError(Exception):
    """`str()` is the text of Go's error."""


class Number(str):
    """A number as it is written."""

    __slots__ = ()


class Members(list[tuple[str, "Parsed"]]):
    """An object's members in order; a key can be there several times."""


Parsed = str | Number | bool | Members | list["Parsed"] | None


def _one_for_each_byte(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "\ufffd" * (error.end - error.start), error.end


ONE_FOR_EACH_BYTE = "kschedx.go"
"""How bytes that are no UTF-8 are decoded: each is U+FFFD, as it is for Go."""
codecs.register_error(ONE_FOR_EACH_BYTE, _one_for_each_byte)


def _constant(text: str) -> NoReturn:
    raise ValueError(text)


_READER = json.JSONDecoder(object_pairs_hook=Members, parse_float=Number, parse_int=Number, parse_constant=_constant)
_SPACE = re.compile(r"[ \t\n\r]*")


def first_value(text: bytes, ended: str = "EOF") -> Parsed:
    """What stands first in `text`; what follows is not looked at. `ended` is the error with which the text ended.

    Raises `GoJSONError`.
    """
    written = text.decode("utf-8", ONE_FOR_EACH_BYTE)
    start = _SPACE.match(written)
    assert start is not None
    try:
        value, end = _READER.raw_decode(written, start.end())
    except (ValueError, RecursionError):
        raise GoJSONError(_complaint(text, ended)) from None
    if isinstance(value, Number):
        if ended != "EOF" and end == len(written):
            raise GoJSONError(ended)  # it may go on
        if _goes_on(value, written[end : end + 1]):
            raise GoJSONError(_complaint(text, ended))
    if _has_lone_surrogates(written):
        value = _without_surrogates(value)
    parsed: Parsed = value
    return parsed


def _goes_on(number: Number, follows: str) -> bool:
    """What follows begins a fraction or an exponent: Python's parser ends before one that is none."""
    return (follows == "." and number.removeprefix("-").isdigit()) or (
        follows in ("e", "E") and "e" not in number.lower()
    )


def _has_lone_surrogates(written: str) -> bool:
    return "\\u" in written and ("\\ud" in written.lower())


def _without_surrogates(value: Parsed) -> Parsed:
    """Halves of surrogate pairs are no characters."""
    match value:
        case Number() | bool() | None:
            return value
        case str():
            return _whole(value)
        case Members():
            return Members((_whole(key), _without_surrogates(item)) for key, item in value)
        case _:
            return [_without_surrogates(item) for item in value]


def _whole(text: str) -> str:
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


# --- what is wrong

_TOKEN = re.compile(rb'[ \t\n\r]*(?:(?P<string>"(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")|'
                    rb"(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][-+]?[0-9]++)?)|"
                    rb"(?P<word>true|false|null)|(?P<mark>[][{},:]))")  # fmt: skip
_BLANK = re.compile(rb"[ \t\n\r]*")


def _complaint(text: bytes, ended: str) -> str:
    try:
        for _ in _walk(text):
            pass
    except _EndedError as end:
        return ended if ended != "EOF" else "unexpected EOF" if end.within else "EOF"
    except _RefusedError as refused:
        return str(refused)
    return "exceeded max depth"  # Python's parser ends some thousands of levels before Go's


class _EndedError(Exception):
    def __init__(self, *, within: bool) -> None:
        self.within = within


class _RefusedError(Exception):
    pass


def _refuse(text: bytes, at: int, where: str) -> NoReturn:
    if at >= len(text):
        raise _EndedError(within=bool(text.strip(b" \t\n\r")))
    raise _RefusedError(f"invalid character {_quoted(text[at])} {where}")


def _quoted(byte: int) -> str:
    """A byte as Go's scanner shows it: taken for a character of its own."""
    match chr(byte):
        case "'":
            return r"'\''"
        case '"':
            return "'\"'"
        case "\\":
            return r"'\\'"
        case character if character.isprintable():
            return f"'{character}'"
        case character:
            return f"'{_ESCAPES.get(character) or _hexadecimal(byte)}'"


_ESCAPES = {"\a": r"\a", "\b": r"\b", "\f": r"\f", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\v": r"\v"}


def _hexadecimal(byte: int) -> str:
    return rf"\x{byte:02x}" if byte < 0x80 else rf"\u{byte:04x}"


def _walk(text: bytes) -> Iterator[None]:
    """Token after token, until the first value ends."""
    at = 0
    open_: list[bytes] = []
    expects = "value"
    while True:
        yield
        blank = _BLANK.match(text, at)
        assert blank is not None
        at = blank.end()
        char = text[at : at + 1]
        match expects:
            case "value" | "value or ]" if char == b"]" and expects == "value or ]":
                open_.pop()
                at += 1
                expects = "end"
            case "value" | "value or ]":
                if char in (b"{", b"["):
                    open_.append(char)
                    if len(open_) > MAX_DEPTH:
                        raise _RefusedError("exceeded max depth")
                    at += 1
                    expects = "key or }" if char == b"{" else "value or ]"
                else:
                    at = _scalar(text, at, "looking for beginning of value")
                    expects = "end"
            case "key or }" if char == b"}":
                open_.pop()
                at += 1
                expects = "end"
            case "key" | "key or }":
                if char != b'"':
                    _refuse(text, at, "looking for beginning of object key string")
                at = _scalar(text, at, "")
                expects = "colon"
            case "colon":
                if char != b":":
                    _refuse(text, at, "after object key")
                at += 1
                expects = "value"
            case _:
                if not open_:
                    return
                in_object = open_[-1] == b"{"
                if char == b",":
                    expects = "key" if in_object else "value"
                elif char == (b"}" if in_object else b"]"):
                    open_.pop()
                else:
                    _refuse(text, at, "after object key:value pair" if in_object else "after array element")
                at += 1


def _scalar(text: bytes, at: int, where: str) -> int:
    """The end of the string, number or word that begins at `at`."""
    token = _TOKEN.match(text, at)
    char = text[at : at + 1]
    if token is not None and token["mark"] is None:
        if token["number"] is not None:
            _number(text, at, token.end())
        return token.end()
    if char == b'"':
        _string(text, at + 1)
    elif char == b"-":
        _refuse(text, at + 1, "in numeric literal")
    for word in (b"true", b"false", b"null"):
        if char == word[:1]:
            same = next(i for i in range(len(word)) if text[at + i : at + i + 1] != word[i : i + 1])
            _refuse(text, at + same, f"in literal {word.decode()} (expecting {_quoted(word[same])})")
    _refuse(text, at, where)


def _number(text: bytes, at: int, end: int) -> None:
    """A number that stops before its fraction or exponent does."""
    follows = text[end : end + 1]
    written = text[at:end]
    if follows == b"." and b"." not in written and b"e" not in written.lower():
        _refuse(text, end + 1, "after decimal point in numeric literal")
    if follows in (b"e", b"E") and b"e" not in written.lower():
        sign = text[end + 1 : end + 2] in (b"+", b"-")
        _refuse(text, end + (2 if sign else 1), "in exponent of numeric literal")


_PLAIN = re.compile(rb'(?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')


def _string(text: bytes, at: int) -> NoReturn:
    """What is wrong with a string whose first character is at `at`."""
    plain = _PLAIN.match(text, at)
    assert plain is not None
    end = plain.end()
    if text[end : end + 1] != b"\\":
        _refuse(text, end, "in string literal")
    if text[end + 1 : end + 2] != b"u":
        _refuse(text, end + 1, "in string escape code")
    digits = re.compile(rb"[0-9a-fA-F]*").match(text, end + 2)
    assert digits is not None
    _refuse(text, digits.end(), r"in \u hexadecimal character escape")


# What JSON is read into: Go's types, as far as their names and their ways of refusing go.


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


# A JSON value into a Go type.
#
# What cannot be read is passed over and remembered: the first such error is the answer, unless a type with a reader
# of
# its own refuses, which ends it at once.


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
