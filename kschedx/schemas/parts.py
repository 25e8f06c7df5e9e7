"""What the schemas of documents are made of."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct

from kschedx.kube.decoding import camel

Json = dict[str, object]

DIALECT = "https://json-schema.org/draft/2020-12/schema"
STRING: Json = {"type": "string"}
INTEGER: Json = {"type": "integer"}

CODES = ("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending")

STRINGS: Json = {"type": "array", "items": {"type": "string"}}
COUNTS: Json = {"type": "object", "additionalProperties": {"type": "integer"}}

FINDING: Json = {
    "type": "object",
    "required": ["reason"],
    "properties": {"reason": {"type": "string"}},
    "additionalProperties": True,
}
"""A reason as facts; which others it has depends on the reason."""
STATUS: Mapping[str, Json] = {
    "code": {"enum": list(CODES)},
    "reasons": STRINGS,
    "findings": {"type": "array", "items": FINDING},
}


def json_object(
    required: Mapping[str, Json], *, optional: Mapping[str, Json] | None = None, closed: bool = True
) -> Json:
    """An object with exactly these keys, or with others too where not `closed`."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": not closed,
    }


def nullable(schema: Json) -> Json:
    return {"oneOf": [{"type": "null"}, schema]}


def by_name(schema: Json) -> Json:
    return {"type": "object", "additionalProperties": schema}


def array(items: Json) -> Json:
    return {"type": "array", "items": items}


def of_facts(record: type[Struct], names: Mapping[str, object]) -> Json:
    """Of a record that is written as it is: keys in camel case; functions, and what is empty, are left out. A text
    without a default is never empty. `names` are types that its annotations name and its module does not have."""
    required: dict[str, Json] = {}
    optional: dict[str, Json] = {}
    hints = get_type_hints(record, localns=dict(names))
    without_default = len(record.__struct_fields__) - len(record.__struct_defaults__)
    defaults = (NODEFAULT,) * without_default + record.__struct_defaults__
    for name, default in zip(record.__struct_fields__, defaults, strict=True):
        schema, is_left_out = _of_hint(hints[name], names)
        if schema is not None:
            may_lack = is_left_out or (hints[name] is str and default is not NODEFAULT)
            (optional if may_lack else required)[camel(name)] = schema
    return json_object(required, optional=optional, closed=False)


def _of_hint(hint: object, names: Mapping[str, object]) -> tuple[Json | None, bool]:
    """What a field holds, None for a function; and whether it is left out where it is empty."""
    arguments = get_args(hint)
    if type(None) in arguments:
        return _of_hint(arguments[0], names)[0], True
    if get_origin(hint) is tuple:
        return array(_of_hint(arguments[0], names)[0] or {}), True
    if isinstance(hint, type) and issubclass(hint, Struct):
        return of_facts(hint, names), False
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [one.value for one in hint]}, False
    plain: dict[object, Json] = {str: STRING, int: INTEGER, bool: {"type": "boolean"}}
    return plain.get(hint), False


def document(kind: str, required: Mapping[str, Json], *, optional: Mapping[str, Json] | None = None) -> Json:
    """The schema of a document. Keys are added, never changed, so a reader must put up with new ones."""
    fields: Mapping[str, Json] = {"apiVersion": {"const": "kschedx/v1"}, "kind": {"const": kind}, **required}
    return {"$schema": DIALECT, "title": kind, **json_object(fields, optional=optional, closed=False)}


UNHEARD = json_object(
    {"where": STRINGS, "leavesOpen": {"enum": ["node", "fit", None]}},
    optional={
        "plugin": {"type": "string"},
        "extender": {"type": "string"},
        "scheduler": {"type": "string"},
        "kind": {"type": "string"},
        "objects": STRINGS,
        "completedBy": {"type": "string"},
        "waived": {"const": True},
    },
)
"""Who was not asked."""
