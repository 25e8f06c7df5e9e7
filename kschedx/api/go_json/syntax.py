"""The first JSON value of a text, or what Go says is wrong with it.

The value is read by Python's parser, which takes what Go takes but for a few words and limits; where it refuses, the
text is looked at again, token by token, for the words of Go's scanner.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import NoReturn

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
