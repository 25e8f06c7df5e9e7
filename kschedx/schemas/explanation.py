"""The Explanation document (`why -o json`), and the list of them."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.schemas import beside
from kschedx.schemas.parts import (
    CODES,
    COUNTS,
    STATUS,
    STRINGS,
    UNHEARD,
    Json,
    array,
    by_name,
    document,
    json_object,
    nullable,
)

_STEP: Mapping[str, Json] = {"plugin": {"type": "string"}, **STATUS}
_VERDICT = json_object({"code": {"enum": list(CODES)}, "plugin": nullable({"type": "string"}), "reasons": STRINGS})
_NODE = json_object({"verdict": _VERDICT, "rejectedBy": by_name(json_object(STATUS))})
_TARGET = json_object(
    {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "name": {"type": "string"}},
    optional={"namespace": {"type": "string"}},
)
_BY: Mapping[str, Json] = {"by": {"type": "string"}}
_CHANGE: Json = {
    "oneOf": [
        json_object({"target": _TARGET, "patch": {"type": "array", "items": {"type": "object"}}}, optional=_BY),
        json_object({"target": _TARGET, "delete": {"const": True}}, optional=_BY),
        json_object({"target": _TARGET, "create": {"type": "object"}}, optional=_BY),
    ]
}

_REPLICAS: Json = json_object(
    {
        "workload": {"type": "string"},
        "wanted": {"type": "integer", "minimum": 0},
        "running": {"type": "integer", "minimum": 0},
        "placed": by_name({"type": "string"}),
        "pending": STRINGS,
        "evicted": STRINGS,
        "replaced": {"type": "integer", "minimum": 0},
    },
    optional={"refused": STRINGS, "refusal": {"type": "string"}, "kubelet": {"type": "string"}},
)
"""Of a workload that lacks several: what becomes of each. The explanation is that of the first without a node."""

_FIX: Mapping[str, Json] = {
    "title": {"type": "string"},
    "certainty": {"enum": ["verified", "partial"]},
    "changes": {"type": "array", "items": _CHANGE},
    "feasibleNodes": STRINGS,
}
_COVERED: Json = json_object({"title": {"type": "string"}, "pods": {"type": "integer"}, "of": {"type": "integer"}})
_OF_FIX: Mapping[str, Json] = {"apply": {"type": "array", "items": _CHANGE}, "replicas": _COVERED}

SCHEMA: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Explanation",
    **json_object(
        {
            "apiVersion": {"const": "kschedx/v1"},
            "kind": {"const": "Explanation"},
            "kubernetesVersion": {"type": "string"},
            "source": json_object(
                {"text": {"type": "string"}, "kinds": COUNTS},
                optional={
                    "serverVersion": {"type": "string"},
                    "missing": {"type": "object", "additionalProperties": {"enum": ["forbidden", "absent"]}},
                    "namespaces": STRINGS,
                    "anonymized": {"const": True},
                },
                closed=False,
            ),
            "pod": json_object(
                {
                    "namespace": {"type": "string"},
                    "name": {"type": "string"},
                    "schedulerName": {"type": "string"},
                    "priority": {"type": "integer"},
                }
            ),
            "profile": json_object(
                {
                    "schedulerName": {"type": "string"},
                    "extensionPoints": by_name(
                        {
                            "type": "array",
                            "items": {
                                "oneOf": [
                                    {"type": "string"},
                                    json_object({"name": {"type": "string"}, "weight": {"type": "integer"}}),
                                ]
                            },
                        }
                    ),
                }
            ),
            "outcome": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]},
            "bestNodes": STRINGS,
            "message": {"type": "string"},
            "preEnqueue": {"type": "array", "items": json_object(_STEP)},
            "preFilter": {"type": "array", "items": json_object({**_STEP, "nodes": nullable(STRINGS)})},
            "filter": nullable(
                json_object(
                    {
                        "skipped": STRINGS,
                        "nodes": by_name(
                            json_object({"verdict": _VERDICT, "rejectedBy": by_name(json_object(STATUS))})
                        ),
                    }
                )
            ),
            "score": nullable(
                json_object(
                    {
                        "skipped": STRINGS,
                        "weights": COUNTS,
                        "nodes": by_name(
                            json_object(
                                {
                                    "raw": COUNTS,
                                    "normalized": COUNTS,
                                    "weighted": COUNTS,
                                    "total": {"type": "integer"},
                                }
                            )
                        ),
                    }
                )
            ),
            "postFilter": nullable(
                json_object(
                    {
                        "code": {"enum": list(CODES)},
                        "reasons": STRINGS,
                        "nominatedNode": nullable({"type": "string"}),
                        "bestCandidates": STRINGS,
                        "candidates": {
                            "type": "array",
                            "items": json_object(
                                {"node": {"type": "string"}, "victims": STRINGS, "pdbViolations": {"type": "integer"}}
                            ),
                        },
                    }
                )
            ),
            "fixes": {
                "type": "array",
                "items": json_object(_FIX, optional=_OF_FIX),
            },
            "notes": {
                "type": "array",
                "items": json_object({"id": {"type": "string"}, "text": {"type": "string"}}, closed=False),
            },
        },
        optional={
            "unheard": {"type": "array", "items": UNHEARD},
            "autoscaler": beside.AUTOSCALER,
            "holding": beside.HOLDING,
            "extenders": beside.EXTENDERS,
            "daemonSet": beside.DAEMON_SET,
            "replicas": _REPLICAS,
            "kubelet": json_object(
                {
                    "node": {"type": "string"},
                    "exists": {"type": "boolean"},
                    "takes": {"type": "boolean"},
                    "refusals": STRINGS,
                }
            ),
            "overall": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]},
        },
        closed=False,
    ),
}
"""JSON schema (2020-12) of the document. Keys are added, never changed, so a reader must put up with new ones."""

_PODS_WITH_REASON = array(json_object({"pod": {"type": "string"}, "reason": {"type": "string"}}))

LIST: Json = document(
    "ExplanationList",
    {
        "items": array({"$ref": "#/$defs/Explanation"}),
        "undecided": _PODS_WITH_REASON,
    },
    optional={"shard": beside.SHARD, "refused": _PODS_WITH_REASON},
) | {"$defs": {"Explanation": SCHEMA}}
"""Of `why` for many pods."""
