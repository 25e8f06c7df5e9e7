"""What the schemas of documents are made of."""

from __future__ import annotations

from collections.abc import Mapping

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
