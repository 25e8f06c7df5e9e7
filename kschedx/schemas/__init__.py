"""The documents of `-o json` as JSON Schemas: what a reader of them may rely on.

A document that is not here is no contract yet.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kschedx.errors import InputError, Place, nearest

Json = dict[str, object]


def _explanation() -> Json:
    from kschedx.schemas.explanation import SCHEMA

    return SCHEMA


def _explanations() -> Json:
    from kschedx.schemas.explanation import LIST

    return LIST


def _difference() -> Json:
    from kschedx.schemas.difference import SCHEMA

    return SCHEMA


def _diagnosis() -> Json:
    """Of the records themselves, which are written as they are."""
    import msgspec

    from kschedx.doctor.diagnosis import Diagnosis
    from kschedx.schemas.parts import document

    made = msgspec.json.schema(Diagnosis)
    definitions = {name: own for name, own in made["$defs"].items() if name != "Diagnosis"}
    properties = made["$defs"]["Diagnosis"]["properties"]
    return document("Diagnosis", properties) | {"$defs": definitions}


def _simulation() -> Json:
    from kschedx.schemas.simulation import SIMULATION

    return SIMULATION


def _fit() -> Json:
    from kschedx.schemas.simulation import FIT

    return FIT


def _scale_down() -> Json:
    from kschedx.schemas.scale_down import SCHEMA

    return SCHEMA


_SCHEMAS: Mapping[str, tuple[str, Callable[[], Json]]] = {
    "Explanation": ("why POD -o json", _explanation),
    "ExplanationList": ("why --all-pending -o json", _explanations),
    "ProfileDifference": ("diff-profiles -o json", _difference),
    "Simulation": ("simulate -o json", _simulation),
    "Fit": ("fit TARGET -o json", _fit),
    "ScaleDown": ("scale-down -o json", _scale_down),
    "Diagnosis": ("doctor -o json", _diagnosis),
}
NAMES: Mapping[str, str] = {name: of for name, (of, _) in _SCHEMAS.items()}
"""The kind of each document, and what prints it."""


def schema(name: str) -> Json:
    """The JSON Schema (2020-12) of a kind of document, in whatever letters it is written. Raises `InputError`."""
    known = next((kind for kind in _SCHEMAS if kind.lower() == name.lower()), None)
    if known is None:
        hint = nearest(name, _SCHEMAS) or f"known: {', '.join(_SCHEMAS)}"
        raise InputError(f'no document is called "{name}"', hint=hint)
    return _SCHEMAS[known][1]()


def check_document(document: Mapping[str, object], *, source: str = "") -> None:
    """Raises `InputError` with the place of the first thing by which a document is not what its kind promises."""
    import jsonschema

    errors = jsonschema.Draft202012Validator(schema(str(document.get("kind")))).iter_errors(document)
    first = next(iter(sorted(errors, key=lambda error: error.json_path)), None)
    if first is not None:
        place = Place(source=source, field=first.json_path.removeprefix("$").removeprefix("."))
        raise InputError(first.message, place=place)
