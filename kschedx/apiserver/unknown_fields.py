"""Fields that are misspelled, misplaced, or have the wrong type, as `kubectl apply` refuses them.

Only manifests that a user writes are compared with Kubernetes' fields (`fields.json`, which `.ci/derive-schemas`
generates from its published OpenAPI description). Objects from an API server may be of a newer version and are
accepted.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, Place, join_fields
from kschedx.kube.decoding import is_stored

FIELDS = Path(__file__).with_name("fields.json")

_Steps: TypeAlias = tuple[str | int, ...]

_WORDS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "a string"),
    "integer": ((int,), "a whole number"),
    "number": ((int, float), "a number"),
    "boolean": ((bool,), "true or false"),
    "quantity": ((str, int, float), "an amount"),
    "intOrString": ((int, str), "a whole number or a string"),
}
"""The value types in fields.json: Python's types, and their name in an error."""
_BITS: Mapping[str, int] = {"integer": 64, "intOrString": 32}
"""The size of an integer: many fields have 32 bits, which fields.json does not show."""
_NEAR = 0.8  # the ratio from which two names differ by a typo
_ALIKE = 0.7  # the ratio from which a name may be the intended one
_FEW = 4  # the number of fields that an error lists if none is near


def unknown_fields(manifest: Mapping[str, object]) -> list[InputError]:
    """Return the errors of a manifest's fields, in their order; for an unknown kind those of its metadata."""
    api = _api()
    root = api.kinds.get(f"{manifest.get('apiVersion')} {manifest.get('kind')}")
    if is_stored(manifest):
        return []
    if root is not None:
        return list(_faults(manifest, f"#{root}", (), root))
    root = api.kinds["v1 Pod"]
    return list(_faults(manifest.get("metadata"), api.types[root]["metadata"], ("metadata",), root))


def _faults(value: object, kind: Any, steps: _Steps, root: str) -> Iterator[InputError]:
    """Yield the errors of a value at `steps`. For an API server, null is an absent value."""
    if value is None:
        return
    match kind:
        case [item] if isinstance(value, list):
            for index, element in enumerate(value):
                yield from _faults(element, item, (*steps, index), root)
        case [_]:
            yield _mistyped("a list", value, steps)
        case {"*": item} if isinstance(value, dict):
            for key, element in value.items():
                yield from _faults(element, item, (*steps, key), root)
        case str() if kind.startswith("#") and isinstance(value, Mapping):
            fields = _api().types[kind[1:]]
            for name in fields:
                if name in value:
                    yield from _faults(value[name], fields[name], (*steps, name), root)
            yield from (_unknown(steps, str(name), list(fields), root) for name in value if name not in fields)
        case str() if kind in _WORDS:
            yield from _scalar_faults(value, kind, steps)
        case "any":
            return
        case _:
            yield _mistyped("a mapping", value, steps)


def _scalar_faults(value: object, kind: str, steps: _Steps) -> Iterator[InputError]:
    kinds, expected = _WORDS[kind]
    is_whole = isinstance(value, float) and value.is_integer() and int in kinds
    if not (isinstance(value, kinds) or is_whole) or (isinstance(value, bool) and kind != "boolean"):
        yield _mistyped(expected, value, steps)
    elif isinstance(value, int | float) and kind in _BITS:
        lowest = -(1 << _BITS[kind] - 1)
        if not lowest <= value < -lowest:
            yield _mistyped(f"a number between {lowest} and {-lowest - 1}", value, steps)


_MAY_BE_SECRET = frozenset({"annotations", "args", "binaryData", "command", "data", "env", "httpHeaders", "stringData"})
"""Fields whose values are not shown."""
_TYPES = {bool: "true or false", int: "a whole number", float: "a number", str: "a string", list: "a list"}


def _mistyped(expected: str, value: object, steps: _Steps) -> InputError:
    hint = "quote it to make it a string" if expected == "a string" and isinstance(value, int | float) else ""
    is_secret = not _MAY_BE_SECRET.isdisjoint(steps)
    found = _TYPES.get(type(value), "a mapping") if is_secret else _shown(value)
    return InputError(f"expected {expected}, found {found}", place=Place(field=_field_of(steps)), hint=hint)


class _ApiFields(Struct):
    """The content of fields.json."""

    kinds: dict[str, str]  # `apps/v1 Deployment` to the name of its type
    types: dict[str, dict[str, Any]]  # the fields of each type


@cache
def _api() -> _ApiFields:
    return msgspec.json.decode(FIELDS.read_bytes(), type=_ApiFields)


def _below(value: Any) -> str:
    """Return the type of a value, of its items, or of its map values."""
    match value:
        case [item]:
            return _below(item)
        case {"*": item}:
            return _below(item)
        case str() if value.startswith("#"):
            return value[1:]
    return ""


def _unknown(steps: _Steps, name: str, known: Sequence[str], root: str) -> InputError:
    field = join_fields(_field_of(steps), _step(name))
    return InputError("unknown field", place=Place(field=field), hint=_hint(steps, name, known, root))


def _hint(steps: _Steps, name: str, known: Sequence[str], root: str) -> str:
    """The intended field: one that differs by a typo, else one with this name elsewhere, else the nearest name."""
    likely = max(known, key=lambda known_name: _likeness(known_name, name), default="")
    likeness = _likeness(likely, name)
    if likeness < _NEAR or abs(len(likely) - len(name)) > 2:
        places = [place for place in _places(root, name) if _is_related(place[0], steps)]
        if places:
            at, spelled = min(places, key=lambda place: (-_common_length(place[0], steps), len(place[0])))
            return f"{spelled} belongs in {_field_of(at)}"
    likely = next((it for it in known if len(name) > 5 and it.startswith(name)), likely if likeness >= _ALIKE else "")
    if likely:
        return f'did you mean "{likely}"?'
    return f"allowed are {', '.join(sorted(known))}" if len(known) <= _FEW else ""


def _likeness(text: str, other: str) -> float:
    return difflib.SequenceMatcher(None, text.lower(), other.lower()).ratio()


def _places(root: str, name: str) -> Iterator[tuple[_Steps, str]]:
    """Yield where a field with this name exists, as the path of its parent, and its exact spelling; for lists, the
    first element."""
    seen: set[str] = set()
    waiting: list[tuple[_Steps, str]] = [((), root)]
    while waiting:
        at, kind = waiting.pop(0)
        fields = _api().types[kind]
        spelled = next((field for field in fields if field.lower() == name.lower()), "")
        if spelled:
            yield at, spelled
        if kind in seen:
            continue
        seen.add(kind)
        for field, value in fields.items():
            below = _below(value)
            if below and len(at) < 12:
                waiting.append(((*at, field, 0) if isinstance(value, list) else (*at, field), below))


def _is_related(place: _Steps, steps: _Steps) -> bool:
    """Return whether the field's parent is an ancestor, a descendant, or a sibling that is not a list element."""
    ours, theirs = _names(steps), _names(place)
    is_aside = len(theirs) - _common_length(place, steps) <= 1 and len(theirs) == len(place)
    return ours[: len(theirs)] == theirs or theirs[: len(ours)] == ours or is_aside


def _names(steps: _Steps) -> tuple[str, ...]:
    return tuple(step for step in steps if isinstance(step, str))


def _common_length(place: _Steps, steps: _Steps) -> int:
    """Return the length of the common prefix of two paths."""
    count = 0
    for step, other in zip(_names(place), _names(steps), strict=False):
        if step != other:
            break
        count += 1
    return count


def _field_of(steps: Sequence[str | int]) -> str:
    """Format as `spec.containers[0].image`; a key that is not a plain name is in brackets."""
    field = ""
    for step in steps:
        field = f"{field}[{step}]" if isinstance(step, int) else join_fields(field, _step(step))
    return field


def _step(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f"[{name}]"


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else text[:39] + "…"
