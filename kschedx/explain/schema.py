"""The Explanation document as a JSON schema: what a reader of `-o json` may rely on."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.errors import InputError, Place

Json = dict[str, object]

CODES = ("Success", "Error", "Unschedulable", "UnschedulableAndUnresolvable", "Wait", "Skip", "Pending")

_STRINGS: Json = {"type": "array", "items": {"type": "string"}}
_COUNTS: Json = {"type": "object", "additionalProperties": {"type": "integer"}}


def _object(required: Mapping[str, Json], *, optional: Mapping[str, Json] | None = None, closed: bool = True) -> Json:
    """An object with exactly these keys, or with others too where not `closed`."""
    return {
        "type": "object",
        "required": list(required),
        "properties": {**required, **(optional or {})},
        "additionalProperties": not closed,
    }


def _nullable(schema: Json) -> Json:
    return {"oneOf": [{"type": "null"}, schema]}


def _by_name(schema: Json) -> Json:
    return {"type": "object", "additionalProperties": schema}


_FINDING = _object({"reason": {"type": "string"}}, closed=False)
_STATUS: Mapping[str, Json] = {
    "code": {"enum": list(CODES)},
    "reasons": _STRINGS,
    "findings": {"type": "array", "items": _FINDING},
}
_STEP: Mapping[str, Json] = {"plugin": {"type": "string"}, **_STATUS}
_VERDICT = _object({"code": {"enum": list(CODES)}, "plugin": _nullable({"type": "string"}), "reasons": _STRINGS})
_UNHEARD = _object(
    {"where": _STRINGS, "leavesOpen": {"enum": ["node", "fit", None]}},
    optional={
        "plugin": {"type": "string"},
        "extender": {"type": "string"},
        "kind": {"type": "string"},
        "objects": _STRINGS,
        "completedBy": {"type": "string"},
        "waived": {"const": True},
    },
)
_TARGET = _object(
    {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}},
    optional={"namespace": {"type": "string"}},
)
_CHANGE: Json = {
    "oneOf": [
        _object({"target": _TARGET, "patch": {"type": "array", "items": {"type": "object"}}}),
        _object({"target": _TARGET, "delete": {"const": True}}),
        _object({"target": _TARGET, "create": {"type": "object"}}),
    ]
}

SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Explanation",
    **_object(
        {
            "apiVersion": {"const": "kschedx/v1"},
            "kind": {"const": "Explanation"},
            "kubernetesVersion": {"type": "string"},
            "source": _object(
                {"text": {"type": "string"}, "kinds": _COUNTS},
                optional={
                    "serverVersion": {"type": "string"},
                    "missing": {"type": "object", "additionalProperties": {"enum": ["forbidden", "absent"]}},
                    "namespaces": _STRINGS,
                    "anonymized": {"const": True},
                },
                closed=False,
            ),
            "pod": _object(
                {
                    "namespace": {"type": "string"},
                    "name": {"type": "string"},
                    "schedulerName": {"type": "string"},
                    "priority": {"type": "integer"},
                }
            ),
            "profile": _object(
                {
                    "schedulerName": {"type": "string"},
                    "extensionPoints": _by_name(
                        {
                            "type": "array",
                            "items": {
                                "oneOf": [
                                    {"type": "string"},
                                    _object({"name": {"type": "string"}, "weight": {"type": "integer"}}),
                                ]
                            },
                        }
                    ),
                }
            ),
            "outcome": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]},
            "bestNodes": _STRINGS,
            "message": {"type": "string"},
            "preEnqueue": {"type": "array", "items": _object(_STEP)},
            "preFilter": {"type": "array", "items": _object({**_STEP, "nodes": _nullable(_STRINGS)})},
            "filter": _nullable(
                _object(
                    {
                        "skipped": _STRINGS,
                        "nodes": _by_name(_object({"verdict": _VERDICT, "rejectedBy": _by_name(_object(_STATUS))})),
                    }
                )
            ),
            "score": _nullable(
                _object(
                    {
                        "skipped": _STRINGS,
                        "weights": _COUNTS,
                        "nodes": _by_name(
                            _object(
                                {
                                    "raw": _COUNTS,
                                    "normalized": _COUNTS,
                                    "weighted": _COUNTS,
                                    "total": {"type": "integer"},
                                }
                            )
                        ),
                    }
                )
            ),
            "postFilter": _nullable(
                _object(
                    {
                        "code": {"enum": list(CODES)},
                        "reasons": _STRINGS,
                        "nominatedNode": _nullable({"type": "string"}),
                        "bestCandidates": _STRINGS,
                        "candidates": {
                            "type": "array",
                            "items": _object(
                                {"node": {"type": "string"}, "victims": _STRINGS, "pdbViolations": {"type": "integer"}}
                            ),
                        },
                    }
                )
            ),
            "fixes": {
                "type": "array",
                "items": _object(
                    {
                        "title": {"type": "string"},
                        "certainty": {"enum": ["verified", "partial"]},
                        "changes": {"type": "array", "items": _CHANGE},
                        "feasibleNodes": _STRINGS,
                    }
                ),
            },
            "notes": {
                "type": "array",
                "items": _object({"id": {"type": "string"}, "text": {"type": "string"}}, closed=False),
            },
        },
        optional={"unheard": {"type": "array", "items": _UNHEARD}},
        closed=False,
    ),
}
"""JSON schema (2020-12) of the document. Keys are added, never changed, so a reader must put up with new ones."""


def check_document(document: Mapping[str, object], *, source: str = "") -> None:
    """Raises `InputError` with the place of the first thing by which a document is no Explanation."""
    import jsonschema

    error = next(
        iter(sorted(jsonschema.Draft202012Validator(SCHEMA).iter_errors(document), key=lambda e: e.json_path)), None
    )
    if error is not None:
        field = error.json_path.removeprefix("$").removeprefix(".")
        raise InputError(error.message, place=Place(source=source, field=field))
