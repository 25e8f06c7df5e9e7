"""JSON bytes to typed records. A null is as good as a missing field, as it is for Go."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from kschedx.errors import InputError, Place

T = TypeVar("T")


_DECODERS: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Making a decoder costs more than using one."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return decoder


def decode(data: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    """Decode one JSON value; fields that `kind` does not have are skipped unread.

    Raises `InputError` that names the field's path, what was found and what is expected.
    """
    try:
        return _decode(data, kind)
    except msgspec.ValidationError as error:
        raise input_error(error) from None
    except msgspec.DecodeError as error:
        raise InputError(f"not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise InputError("not valid UTF-8") from None
    except RecursionError:
        raise InputError("nested too deeply") from None


def _decode(data: bytes | bytearray | memoryview | msgspec.Raw, kind: type[T]) -> T:
    try:
        return _decoder(kind).decode(data)
    except msgspec.ValidationError:
        # nulls are rare enough in bulk data that only what failed is looked at again; as JSON, for fields that stay raw
        return _decoder(kind).decode(msgspec.json.encode(without_nulls(msgspec.json.decode(data))))


def without_nulls(value: object) -> object:
    """The value with every null map entry left out, and nulls in lists as empty maps, as Go reads them."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [{} if item is None else without_nulls(item) for item in value]
    return value


_PATH = re.compile(r"^(?P<message>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)


def input_error(error: msgspec.ValidationError) -> InputError:
    """msgspec's `Expected int, got str - at $.spec.priority` as an error with a field path."""
    match = _PATH.match(str(error))
    message, path = (match["message"], match["path"] or "") if match else (str(error), "")
    message = message.replace("`", "").replace("Expected", "expected", 1)
    field = path.removeprefix("key in ").removeprefix("$").removeprefix(".").replace("[...]", "[*]")
    return InputError(message, place=Place(field=field))
