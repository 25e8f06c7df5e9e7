"""Decode JSON into typed records. As in Go, null equals a missing field."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, Place, join_fields
from kschedx.patterns import lazy_pattern

_T = TypeVar("_T")
Manifest = Mapping[str, object]  # an object as it is written


_DECODERS: dict[object, msgspec.json.Decoder[Any]] = {}


def _decoder(kind: type[_T]) -> msgspec.json.Decoder[_T]:
    """Cached, because creating a decoder costs more than using it."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind)
    return decoder


def decode(data: bytes | bytearray | memoryview | msgspec.Raw, kind: type[_T]) -> _T:
    """Decode one JSON value. Fields that `kind` does not have are skipped. Raises `InputError` with the field's path,
    the value's type, and the expected type."""
    try:
        return _decode(data, kind)
    except msgspec.ValidationError as error:
        raise _input_error(error, data) from None
    except msgspec.DecodeError as error:
        raise InputError(f"not valid JSON: {error}") from None
    except UnicodeDecodeError:
        raise InputError("not valid UTF-8") from None
    except RecursionError:
        raise InputError("nested too deeply") from None


def _decode(data: bytes | bytearray | memoryview | msgspec.Raw, kind: type[_T]) -> _T:
    try:
        return _decoder(kind).decode(data)
    except msgspec.ValidationError:
        # nulls are rare in large data, so only what failed is decoded again; as JSON, for fields that stay raw
        return _decoder(kind).decode(msgspec.json.encode(_without_nulls(msgspec.json.decode(data))))


def _without_nulls(value: object) -> object:
    """Remove every null map entry, and replace nulls in lists with empty maps, as Go reads them."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [{} if item is None else _without_nulls(item) for item in value]
    return value


_PATH = lazy_pattern(r"^(?P<message>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)


_TYPES = {
    "array": "a list", "bool": "true or false", "float": "a number", "int": "a whole number", "object": "a mapping",
    "str": "a string",
}  # fmt: skip
"""msgspec's names to those of errors."""
_TYPE = lazy_pattern(rf"\b(?:{'|'.join(_TYPES)})\b")


def mismatch_text(message: str) -> str:
    """Return msgspec's message in the words of other errors: `expected a whole number, found a string`."""
    message = message.replace("`", "")
    if not message.startswith("Expected"):
        return message
    plain = message.replace("Expected", "expected", 1).replace(", got ", ", found ").replace(" | null", "")
    return _TYPE.sub(lambda name: _TYPES[name[0]], plain)


def _input_error(error: msgspec.ValidationError, data: bytes | bytearray | memoryview | msgspec.Raw) -> InputError:
    """Convert msgspec's `Expected int, got str - at $.spec.priority` to an error with a field path."""
    match = _PATH.match(str(error))
    message, path = (match["message"], match["path"] or "") if match else (str(error), "")
    field = path.removeprefix("key in ").removeprefix("$").removeprefix(".")
    found = invalid_value(field, message, msgspec.json.decode(data)) if "[...]" in field else None
    return InputError(mismatch_text(message), place=Place(field=found[0] if found else field.replace("[...]", "[*]")))


_STEP = lazy_pattern(r"\[\.\.\.\]|\[\d+\]|[^.\[\]]+")
_GOT = lazy_pattern(r"got `(\w+)`")
_NAMES: Mapping[type, str] = {
    bool: "bool", int: "int", float: "float", str: "str", dict: "object", list: "array", type(None): "null",
}  # fmt: skip


def invalid_value(path: str, message: str, whole: object) -> tuple[str, object] | None:
    """Return the field and the value at a path of msgspec, in which the keys of maps are `[...]`: those of the first
    value with the type in its message. None if there is none."""
    got = _GOT.search(message)
    if "[...]" in path and got is None:
        return None

    def fields(value: object, steps: Sequence[str], field: str) -> Iterator[tuple[str, object]]:
        if not steps:
            if got is None or _NAMES.get(type(value)) == got[1]:
                yield field, value
            return
        first, *rest = steps
        if first == "[...]" and isinstance(value, dict):
            for key, item in value.items():
                is_plain = not {".", "/"} & {*key}
                yield from fields(item, rest, join_fields(field, key if is_plain else f"[{key}]"))
        elif first.startswith("[") and first != "[...]" and isinstance(value, list):
            for item in value[(index := int(first[1:-1])) : index + 1]:  # the list of another key may be shorter
                yield from fields(item, rest, f"{field}{first}")
        elif isinstance(value, dict) and first in value:
            yield from fields(value[first], rest, join_fields(field, first))

    return next(fields(whole, _STEP.findall(path), ""), None)


# Arguments of the library: manifests as dicts, or other types in their place. Anything else is an `InputError` with the
# argument's name and type.


def encode(given: object, what: str) -> bytes:
    """Encode as JSON. Mappings and sequences of other types count as dicts and lists."""
    place = Place(object=what)

    def plain(value: object) -> object:
        if isinstance(value, dict | list | tuple):  # these need no conversion, except as a key
            raise InputError("a key is not a string", place=place)
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, Sequence):
            return list(value)
        raise InputError(f"{_a(value)} cannot be part of a manifest", place=place)

    try:
        return msgspec.json.encode(given, enc_hook=plain)
    except RecursionError:
        raise InputError("nested too deeply", place=place) from None
    except UnicodeEncodeError:
        raise InputError("holds text that is not valid Unicode", place=place) from None
    except TypeError:
        raise InputError("a key is not a string", place=place) from None
    except (ValueError, OverflowError):
        raise InputError("holds a number that is too long", place=place) from None


def value_at(value: object, *path: str | int) -> object:
    """Return the value at a path of keys and indices of an unchecked manifest; None if there is none."""
    for part in path:
        if isinstance(part, int):
            value = value[part] if isinstance(value, list) and part < len(value) else None
        else:
            value = value.get(part) if isinstance(value, Mapping) else None
    return value


def map_at(value: object, *path: str | int) -> Mapping[str, object]:
    """Return the map at a path of an unchecked manifest, or an empty map."""
    there = value_at(value, *path)
    return there if isinstance(there, Mapping) else {}


def list_at(value: object, *path: str | int) -> Sequence[object]:
    """Return the list at a path of an unchecked manifest, or an empty list."""
    items = value_at(value, *path)
    return items if isinstance(items, list) else ()


def maps_at(value: object, *path: str | int) -> list[dict[str, object]]:
    """Return the maps in the list at a path of an unchecked manifest."""
    return [item for item in list_at(value, *path) if isinstance(item, dict)]


def mapping(given: object, what: str) -> dict[str, Any]:
    """Return a dict of plain types."""
    if not isinstance(given, Mapping):
        is_file = isinstance(given, str | bytes | os.PathLike)
        hint = "parse YAML first: yaml.safe_load returns mappings" if is_file else ""
        raise InputError(f"expected a mapping, found {_a(given)}", place=Place(object=what), hint=hint)
    try:
        document: dict[str, Any] = msgspec.json.decode(encode(given, what))
    except (msgspec.DecodeError, RecursionError):
        raise InputError("nested too deeply", place=Place(object=what)) from None
    return document


def mappings(given: object, what: str) -> list[Mapping[str, object]]:
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Iterable):
        hint = "pass it in a list" if isinstance(given, Mapping) else ""
        raise InputError(f"expected a list of mappings, found {_a(given)}", place=Place(object=what), hint=hint)
    items = list(given)
    for index, item in enumerate(items):
        if not isinstance(item, Mapping):
            raise InputError(f"expected a mapping, found {_a(item)}", place=Place(object=f"{what}[{index}]"))
    return items


def text(given: object, what: str) -> str:
    if not isinstance(given, str):
        raise InputError(f"expected a string, found {_a(given)}", place=Place(object=what))
    try:
        given.encode()
    except UnicodeEncodeError:
        raise InputError("is not valid Unicode", place=Place(object=what)) from None
    return given


def texts(given: object, what: str) -> list[str]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InputError(f"expected a list of strings, found {_a(given)}", place=Place(object=what))
    return [text(item, what) for item in given]


def whole_number(given: object, what: str) -> int:
    """Return a non-negative integer that fits into 64 bits."""
    if not isinstance(given, int) or isinstance(given, bool):
        raise InputError(f"expected a whole number, found {_a(given)}", place=Place(object=what))
    if not 0 <= given < 2**63:
        raise InputError("expected a number of at least 0 that fits into 64 bits", place=Place(object=what))
    return given


def boolean(given: object, what: str) -> bool:
    if not isinstance(given, bool):
        raise InputError(f"expected true or false, found {_a(given)}", place=Place(object=what))
    return given


def flags(given: object, what: str) -> dict[str, str | int | float | bool | list[str | int]]:
    """Return a command line: flag names without dashes to a value, or to all values of a repeated flag."""
    for name, value in mapping(given, what).items():
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, str | int | float | bool):
                place = Place(object=what, field=name)
                raise InputError(f"expected a text, a number or a boolean, found {_a(item)}", place=place)
    return mapping(given, what)


def path(given: object, what: str) -> str:
    """Return the path of a file or folder as text."""
    if isinstance(given, list | tuple):
        hint = "each path is an argument of its own"
        raise InputError(f"expected a path, found {_a(given)}", place=Place(object=what), hint=hint)
    file_path = text(os.fspath(given) if isinstance(given, os.PathLike) else given, what)
    if "\n" in file_path:
        hint = "kschedx.Snapshot.from_objects accepts the output of yaml.safe_load_all"
        raise InputError("expected a path, found several lines", place=Place(object=what), hint=hint)
    if not file_path or "\0" in file_path:
        raise InputError("is not the path of a file" if file_path else "is empty", place=Place(object=what))
    return file_path


def gates(given: object) -> dict[str, bool]:
    """Return a Python argument `feature_gates`. Raises `InputError` for other types."""
    what = "feature_gates"
    if not isinstance(given, Mapping):
        raise InputError(f"expected a mapping of names to booleans, found {_a(given)}", place=Place(object=what))
    for name, is_on in given.items():
        if not isinstance(is_on, bool):
            place = Place(object=what, field=text(name, what))
            raise InputError(f"expected True or False, found {_a(is_on)}", place=place)
        text(name, what)
    return dict(given)


def _a(value: object) -> str:
    """Name the type without showing the value."""
    return "None" if value is None else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'aeiou' else 'a'} {name}"


def no_pod(manifest: Mapping[str, object], templates: Sequence[str]) -> InputError:
    """Return the error for a manifest without pods, or with several kinds of pods in `templates`."""
    kind, place = str(manifest.get("kind")), Place(object="pod")
    if templates:
        text = f"{_article(kind)} has several pod templates: {', '.join(templates)}"
        return InputError(text, place=place, hint="pass one of them as a Pod")
    text = f"expected a pod or a workload, found {_article(kind)}"
    if kind.endswith("List") and "items" in manifest:
        return InputError(text, place=place, hint="pass one of its items")
    return InputError(f"{text}, which creates no pods", place=place)


# Whether an object is stored in an API server, according to the fields that the server sets.

_GIVEN = ("uid", "creationTimestamp")


def is_stored(manifest: Mapping[str, object]) -> bool:
    return any(map_at(manifest, "metadata").get(key) for key in _GIVEN)


def new_manifest(manifest: Mapping[str, object]) -> dict[str, object]:
    """Return the object as a client would send it, so that all of it is validated."""
    metadata = manifest.get("metadata")
    if not isinstance(metadata, dict):
        return dict(manifest)
    return {**manifest, "metadata": {key: value for key, value in metadata.items() if key not in _GIVEN}}


def manifest(api_version: str, kind: str, record: Struct) -> dict[str, object]:
    """Return the manifest that would create the object."""
    fields = to_plain(record)
    head: dict[str, object] = {"apiVersion": api_version, "kind": kind}
    return head | fields | head if isinstance(fields, dict) else head


def to_plain(value: object) -> object:
    """Return a record as the API server would write it, with sorted maps and without default values."""
    if isinstance(value, Struct):
        fields = _fields(type(value))
        values = {info.encode_name: (getattr(value, info.name), _default(info)) for info in fields}
        return {name: to_plain(item) for name, (item, default) in values.items() if item != default}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in sorted(value.items())}
    return value


_fields = cache(msgspec.structs.fields)  # of a record's type: to evaluate its annotations takes time


def _default(info: msgspec.structs.FieldInfo) -> object:
    return info.default_factory() if callable(info.default_factory) else info.default
