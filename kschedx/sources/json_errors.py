"""What is wrong with a JSON text, in words that a reader of the file can use."""

from __future__ import annotations

import json
import math
import re

import msgspec

from kschedx.errors import InputError, Place, join_fields

_BYTE = re.compile(r" \(byte (\d+)\)$")
_LONGEST_TOKEN = len(r"\ud83d\ude00")
_PATH = re.compile(r"^(?P<problem>.*) - at `\$(?:\[(?P<index>\d+)\])?\.?(?P<field>.*)`$")


def byte_of(error: Exception) -> int | None:
    """The offset that msgspec names in a syntax error."""
    match = _BYTE.search(str(error))
    return int(match.group(1)) if match else None


def is_truncated(error: Exception, text: bytes | memoryview) -> bool:
    """The text ended before its value did, or may have: a word, a number or an escape sequence may go on."""
    byte = byte_of(error)
    return "truncated" in str(error) or (byte is not None and byte >= len(text) - _LONGEST_TOKEN)


def trailing_at(error: Exception) -> int | None:
    """The offset of what follows the end of the value, if that is the complaint."""
    byte = byte_of(error)
    # msgspec reads this one byte before it complains
    return byte - 1 if byte is not None and "trailing characters" in str(error) else None


def what_is_wrong(error: Exception, text: bytes | memoryview) -> str:
    """The complaint in words; `text` is what was decoded."""
    byte = byte_of(error)
    if "truncated" in str(error) or (byte is not None and byte >= len(text)):
        return "it ends in the middle of a value"
    problem = _BYTE.sub("", str(error)).removeprefix("JSON is malformed: ")
    if byte is None:
        return problem
    found = bytes(text[byte : byte + 20])
    if re.match(rb"-?(NaN|Infinity)", found):
        return "JSON has no NaN and no Infinity"
    if found[:1] == b"'":
        return "strings are written in double quotes"
    if found[:1] < b" " and problem == "invalid character":
        return "a string holds a raw control character or line end"
    return f"{problem} {_shown(found)}" if problem == "invalid character" else problem


def _shown(found: bytes) -> str:
    return ascii(found.decode(errors="replace")[:1])


def explain_malformed(error: Exception, items: bytes | memoryview, *, place: Place) -> InputError:
    """The error for a batch that no decoder can read; `place` is that of its first object."""
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
    """The offset of the first byte that is not UTF-8."""
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


def explain_invalid(error: msgspec.ValidationError, items: list[msgspec.Raw]) -> tuple[int | None, InputError]:
    """Which object of the batch has the wrong shape, if known, and the error with its name and field."""
    match = _PATH.match(str(error))
    if match is None or match["index"] is None:
        return None, InputError(str(error))
    index = int(match["index"])
    problem = match["problem"].replace("`", "").replace("Expected", "expected")
    hint = "quote the value to make it a string" if re.search(r"expected str.*got (int|float|bool)", problem) else ""
    field = match["field"]
    if (
        "[...]" in field
    ):  # msgspec does not name keys where it reads whatever there is, and numbers alone are wrong there
        field = _endless_number(json.loads(bytes(items[index]), parse_int=float)) or field
    place = Place(object=_name_of(items[index]), field=field)
    return index, InputError(problem, place=place, hint=hint)


def _endless_number(whole: object) -> str:
    """The field of the first number that is more than a float holds; empty where there is none."""
    left = [("", whole)]
    while left:
        field, value = left.pop()
        match value:
            case float() if math.isinf(value):
                return field
            case dict():
                left += [(join_fields(field, key), one) for key, one in reversed(value.items())]
            case list():
                left += [(f"{field}[{number}]", one) for number, one in reversed([*enumerate(value)])]
            case _:
                pass
    return ""


def _name_of(raw: msgspec.Raw) -> str:
    """`Kind namespace/name`, as far as the object says it readably."""
    try:
        named = msgspec.json.decode(raw, type=_NamedObject)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ""
    name = f"{named.metadata.namespace}/{named.metadata.name}".lstrip("/")
    return f"{named.kind} {name}".strip()
