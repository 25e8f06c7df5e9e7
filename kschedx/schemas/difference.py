"""The ProfileDifference document (`diff-profiles -o json`)."""

from __future__ import annotations

from kschedx.schemas.parts import (
    COUNTS,
    INTEGER,
    STRING,
    STRINGS,
    UNHEARD,
    Json,
    array,
    by_name,
    document,
    json_object,
    nullable,
)

_SETUP = json_object(
    {"name": STRING, "kubernetesVersion": STRING, "profiles": STRINGS, "unknownPlugins": array(UNHEARD)}
)
_CHANGE = json_object(
    {
        "profile": STRING,
        "place": STRING,
        "subject": STRING,
        "setting": STRING,
        "before": nullable(STRING),
        "after": nullable(STRING),
    }
)
_SIDE = json_object(
    {
        "outcome": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]},
        "nodes": STRINGS,
        "nodeCount": INTEGER,
        "total": nullable(INTEGER),
        "margin": nullable(INTEGER),
        "runnerUp": nullable(STRING),
        "feasible": INTEGER,
        "message": STRING,
        "preemptions": array(json_object({"node": STRING, "victims": STRINGS, "pdbViolations": INTEGER})),
    }
)
_TURN = json_object({"plugin": STRING, "before": INTEGER, "after": INTEGER, "swing": INTEGER})
_POD = json_object(
    {
        "pod": STRING,
        "effects": STRINGS,
        "before": _SIDE,
        "after": _SIDE,
        "oldNode": nullable(STRING),
        "newNode": nullable(STRING),
        "turnedBy": array(_TURN),
        "filteredBy": nullable(STRING),
        "lost": COUNTS,
        "gained": COUNTS,
        "reworded": STRINGS,
        "scores": by_name(json_object({"nodes": INTEGER, "largest": INTEGER})),
    },
    closed=False,
)
_FILLING = json_object(
    {
        "nodes": INTEGER,
        "inUse": INTEGER,
        "unused": STRINGS,
        "requested": COUNTS,
        "allocatable": COUNTS,
        "fullestPercent": COUNTS,
        "pending": STRINGS,
    },
    closed=False,
)
_PLACED_ANEW = json_object({"placedAnew": INTEGER, "now": _FILLING, "before": _FILLING, "after": _FILLING})
_GROUP = json_object({"effect": STRING, "causes": STRINGS, "count": INTEGER, "pods": array(_POD)})

SCHEMA: Json = document(
    "ProfileDifference",
    {
        "before": _SETUP,
        "after": _SETUP,
        "configuration": array(_CHANGE),
        "pods": nullable(
            json_object(
                {
                    "compared": INTEGER,
                    "same": INTEGER,
                    "different": INTEGER,
                    "effects": COUNTS,
                    "undecided": by_name(STRING),
                    "leftOut": COUNTS,
                    "groups": array(_GROUP),
                    "nodes": nullable(_PLACED_ANEW),
                },
                closed=False,
            )
        ),
    },
)
