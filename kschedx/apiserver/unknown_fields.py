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

from kschedx.errors import InputError, Place, join_fields
from kschedx.kube.decoding import is_stored

FIELDS = Path(__file__).with_name("fields.json")

Json: TypeAlias = dict[str, Any]
_Steps: TypeAlias = tuple[str | int, ...]

_WORDS: Mapping[str, tuple[list[str], str]] = {
    "string": (["string"], "a string"),
    "integer": (["integer"], "a whole number"),
    "number": (["number"], "a number"),
    "boolean": (["boolean"], "true or false"),
    "quantity": (["string", "number"], "an amount"),
    "intOrString": (["string", "integer"], "a whole number or a string"),
}
"""The value types in fields.json: JSON's types, and their name in an error."""
_BITS: Mapping[str, int] = {"integer": 64, "intOrString": 32}
"""The size of an integer: many fields have 32 bits, which fields.json does not show."""
_NEAR = 0.8
"""The ratio from which two names differ by a typo."""
_ALIKE = 0.7
"""The ratio from which a name may be the intended one."""
_FEW = 4
"""The number of fields that an error lists if none is near."""


def unknown_fields(manifest: Mapping[str, object]) -> list[InputError]:
    """Return the errors of a manifest's fields, in their order; none for an unknown kind."""
    root = _kinds().get(f"{manifest.get('apiVersion')} {manifest.get('kind')}")
    if root is None or is_stored(manifest) or _has_fields_of(manifest, root):
        return []
    from jsonschema import Draft202012Validator

    errors = Draft202012Validator(_schema(root)).iter_errors(manifest)
    return [fault for error in errors for fault in _schema_errors(error, root)]


def _has_fields_of(value: object, kind: str) -> bool:
    """Return whether all fields are valid, the common case. Only otherwise is jsonschema loaded to find the errors."""
    if value is None:
        return True
    fields = _fields(kind)
    return isinstance(value, Mapping) and all(key in fields and _is_a(fields[key], item) for key, item in value.items())


def _is_a(kind: Any, value: object) -> bool:
    if value is None:
        return True
    match kind:
        case [item]:
            return isinstance(value, list) and all(_is_a(item, element) for element in value)
        case {"*": item}:
            return isinstance(value, dict) and all(_is_a(item, element) for element in value.values())
        case "boolean":
            return isinstance(value, bool)
        case "any":
            return True
        case str() if kind.startswith("#"):
            return _has_fields_of(value, kind[1:])
    numbers: tuple[type, ...] = (int,) if kind in ("integer", "intOrString") else (int, float)
    is_number = isinstance(value, numbers) and not isinstance(value, bool) and kind != "string"
    if isinstance(value, int) and kind in _BITS and not _lowest(kind) <= value <= -_lowest(kind) - 1:
        return False
    return is_number or (isinstance(value, str) and kind in ("string", "quantity", "intOrString"))


def _lowest(kind: str) -> int:
    return -(1 << _BITS[kind] - 1)


@cache
def _file() -> Json:
    loaded: Json = json.loads(FIELDS.read_text(encoding="utf-8"))
    return loaded


def _kinds() -> Mapping[str, str]:
    """`apps/v1 Deployment` to the name of its type."""
    kinds: Mapping[str, str] = _file()["kinds"]
    return kinds


def _fields(name: str) -> Mapping[str, Any]:
    fields: Mapping[str, Any] = _file()["types"][name]
    return fields


@cache
def _schema(root: str) -> Json:
    """Return a JSON Schema for a type and everything below it."""
    definitions: Json = {}
    waiting = [root]
    while waiting:
        name = waiting.pop()
        if name not in definitions:
            properties = {field: _map_or_empty(value) for field, value in _fields(name).items()}
            definitions[name] = {"type": ["object", "null"], "properties": properties, "additionalProperties": False}
            waiting += [_below(value) for value in _fields(name).values() if _below(value)]
    return {"$ref": f"#/$defs/{root}", "$defs": definitions}


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


def _map_or_empty(value: Any) -> Json:
    """For an API server, null is an absent value."""
    match value:
        case [item]:
            return {"type": ["array", "null"], "items": _map_or_empty(item)}
        case {"*": item}:
            return {"type": ["object", "null"], "additionalProperties": _map_or_empty(item)}
        case str() if value.startswith("#"):
            return {"$ref": f"#/$defs/{value[1:]}"}
        case str() if value in _WORDS:
            bounds = {"minimum": _lowest(value), "maximum": -_lowest(value) - 1} if value in _BITS else {}
            return {"type": [*_WORDS[value][0], "null"], "description": _WORDS[value][1], **bounds}
    return {}


def _schema_errors(error: Any, root: str) -> Iterator[InputError]:
    steps: _Steps = tuple(error.absolute_path)
    if error.validator == "additionalProperties":
        known = list(error.schema["properties"])
        for name in error.instance:
            if name not in error.schema["properties"]:
                yield _unknown(steps, str(name), known, root)
        return
    if error.validator in ("minimum", "maximum"):
        bounds = f"between {error.schema['minimum']} and {error.schema['maximum']}"
        field = _field_of(steps)
        yield InputError(f"expected a number {bounds}, found {_shown(error.instance)}", place=Place(field=field))
        return
    expected = error.schema.get("description") or ("a list" if "array" in error.schema["type"] else "a mapping")
    instance = error.instance
    hint = "quote it to make it a string" if expected == "a string" and isinstance(instance, int | float) else ""
    yield InputError(f"expected {expected}, found {_shown(instance)}", place=Place(field=_field_of(steps)), hint=hint)


def _unknown(steps: _Steps, name: str, known: Sequence[str], root: str) -> InputError:
    field = join_fields(_field_of(steps), _step(name))
    return InputError("unknown field", place=Place(field=field), hint=_hint(steps, name, known, root))


def _hint(steps: _Steps, name: str, known: Sequence[str], root: str) -> str:
    """Return the intended field: one that differs by a typo, else one with this name elsewhere, else the nearest
    name."""
    likely = max(known, key=lambda known_name: _likeness(known_name, name), default="")
    likeness = _likeness(likely, name)
    if likeness < _NEAR or abs(len(likely) - len(name)) > 2:
        places = [place for place in _places(root, name) if _is_related(place[0], steps)]
        if places:
            at, spelled = min(places, key=lambda place: (-_common_length(place[0], steps), len(place[0])))
            return f"{spelled} belongs in {_field_of(at)}"
    likely = next(
        (candidate for candidate in known if len(name) > 5 and candidate.startswith(name)),
        likely if likeness >= _ALIKE else "",
    )
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
        fields = _fields(kind)
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
