"""The Simulation and Fit documents: of `kschedx simulate` and `kschedx drain`, and of `kschedx fit`."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.schemas.explanation import GROWTH, STATE
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

SimulationJson = dict[str, object]

_TEXT: SimulationJson = {"type": "string"}
_COUNT: SimulationJson = {"type": "integer", "minimum": 0}
_TEXTS: SimulationJson = {"type": "array", "items": _TEXT}
_TEXT_BY_NAME: SimulationJson = {"type": "object", "additionalProperties": _TEXT}
_COUNT_BY_NAME: SimulationJson = {"type": "object", "additionalProperties": {"type": "integer"}}


def _object(
    required: Mapping[str, SimulationJson], optional: Mapping[str, SimulationJson] | None = None
) -> SimulationJson:
    """An object with these keys; a reader has to put up with new ones."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _list(items: SimulationJson) -> SimulationJson:
    return {"type": "array", "items": items}


_USE: SimulationJson = {
    "oneOf": [{"type": "null"}, _object({"requested": _COUNT_BY_NAME, "allocatable": _COUNT_BY_NAME})],
}
_STEP = _object(
    {"pod": _TEXT, "outcome": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]}},
    {
        "bestNodes": _TEXTS,
        "node": _TEXT,
        "message": _TEXT,
        "nominatedNode": _TEXT,
        "tiedCandidates": _TEXTS,
        "victims": _TEXTS,
    },
)
_DRAIN = _object(
    {
        "node": _TEXT,
        "done": {"type": "boolean"},
        "waves": _COUNT,
        "budgets": _COUNT_BY_NAME,
        "pods": _list(_object({"pod": _TEXT, "fate": _TEXT, "budget": _TEXT, "node": _TEXT, "message": _TEXT})),
    }
)
_WORKLOAD = _object(
    {
        "kind": _TEXT,
        "namespace": _TEXT,
        "name": _TEXT,
        "pods": _COUNT,
        "placed": _TEXTS,
        "nodes": _COUNT_BY_NAME,
        "pending": _TEXTS,
        "evicted": _TEXTS,
        "message": _TEXT,
    },
    {"refused": _COUNT, "refusal": _TEXT},
)
_EFFECT = _object({"change": _TEXT, "made": _TEXTS, "evicted": _TEXTS, "gone": _TEXTS})
_ROLLOUT = _object(
    {"workload": _TEXT, "old": _COUNT, "replaced": _COUNT, "waiting": _COUNT, "done": {"type": "boolean"}},
    {"refusal": _TEXT},
)
_FIX = _object({"workload": _TEXT, "title": _TEXT, "certainty": _TEXT, "pods": _COUNT, "of": _COUNT})
"""`pods` of the `of` that wait have a node with it."""

SIMULATION: SimulationJson = document(
    "Simulation",
    {
        "kubernetesVersion": _TEXT,
        "unknownPlugins": _list(UNHEARD),
        "source": {"type": "object"},
        "changes": _TEXTS,
        "steps": _list(_STEP),
        "placed": _TEXT_BY_NAME,
        "pending": _TEXTS,
        "gated": _TEXTS,
        "ofOtherSchedulers": _TEXTS,
        "evicted": _TEXT_BY_NAME,
        "drains": _list(_DRAIN),
        "workloads": _list(_WORKLOAD),
        "nodes": {"type": "object", "additionalProperties": _object({"before": _USE, "after": _USE})},
    },
    optional={
        "kueue": _object(
            {"admitted": _TEXTS, "evicted": _TEXT_BY_NAME, "pending": _TEXT_BY_NAME, "refused": _TEXT_BY_NAME}
        ),
        "ties": _TEXT,
        "autoscaler": GROWTH,
        "fixes": _list(_FIX),
        "budgetFixes": _list(_object({"title": _TEXT, "commands": _TEXTS, "drained": _COUNT, "of": _COUNT})),
        "effects": _list(_EFFECT),
        "rollouts": _list(_ROLLOUT),
        "states": _list(dict(STATE)),
        "goal": _object(
            {
                "text": _TEXT,
                "reached": {"type": "boolean"},
                "moves": _list(_object({"pod": _TEXT, "from": _TEXT, "to": _TEXT, "for": _TEXT})),
                "placed": _TEXTS,
                "pending": _TEXTS,
            }
        ),
    },
)
"""Of `kschedx simulate` and `kschedx drain`."""

FIT: SimulationJson = document(
    "Fit",
    {
        "kubernetesVersion": _TEXT,
        "unknownPlugins": _list(UNHEARD),
        "undecided": _list(UNHEARD),
        "pod": _object({"namespace": _TEXT, "name": _TEXT, "of": _TEXT}),
        "fits": _COUNT,
        "wanted": {"type": ["integer", "null"]},
        "nodes": _COUNT_BY_NAME,
        "message": _TEXT,
        "missing": _list(_object({"like": _TEXT, "nodes": _COUNT})),
    },
    optional={"refusal": _TEXT},
)
"""Of `kschedx fit`."""
FIT_LIST: SimulationJson = document(
    "FitList",
    {
        "items": _list(
            {"type": "object", "properties": {"kind": {"enum": ["Fit", "Explanation"]}}, "required": ["kind"]}
        )
    },
)
"""Of `kschedx fit` for a file with several workloads: a document for each."""

_COUNT_OR_NULL: SimulationJson = {"type": ["integer", "null"], "minimum": 0}
_LOST_POD = _object(
    {
        "pod": _TEXT,
        "node": _TEXT,
        "outcome": {"enum": ["rescheduled", "pending", "not created", "not recreated", "blocked", "undecided"]},
        "to": _TEXT,
        "message": _TEXT,
        "byPreemption": {"type": "boolean"},
    }
)
_LOSS = _object(
    {
        "kind": _TEXT,
        "namespace": _TEXT,
        "name": _TEXT,
        "state": {"enum": ["down", "pending", "blocked", "undecided", "interrupted", "rescheduled"]},
        "replicas": _COUNT,
        "ready": _COUNT,
        "lost": _COUNT,
        "left": {"type": "integer"},
        "after": {"type": "integer"},
        "pods": _list(_LOST_POD),
    }
)
_ADDED = _object(
    {
        "nodes": _list(_object({"like": _TEXT, "zone": _TEXT, "count": _COUNT})),
        "pods": _COUNT,
        "notHelped": _TEXTS,
    }
)
_ZONE = _object(
    {
        "zone": _TEXT,
        "nodes": _COUNT,
        "lost": _COUNT,
        "state": {"enum": ["Normal", "PartialDisruption", "FullDisruption"]},
        "secondsPerNode": _COUNT_OR_NULL,
        "firstTaintAfterSeconds": _COUNT_OR_NULL,
        "lastTaintAfterSeconds": _COUNT_OR_NULL,
    }
)
_EVICTION = _object(
    {
        "node": _TEXT,
        "taintAfterSeconds": _COUNT_OR_NULL,
        "pods": {"type": "object", "additionalProperties": _COUNT_OR_NULL},
    }
)
_FAILURE = _object(
    {
        "failure": _TEXT,
        "nodes": _TEXTS,
        "survives": {"type": "boolean"},
        "lost": _COUNT,
        "pods": _COUNT_BY_NAME,
        "workloads": _list(_LOSS),
        "volumes": _TEXTS,
        "freedByNodeDeletion": _COUNT,
        "needed": {"oneOf": [{"type": "null"}, _ADDED]},
        "zones": _list(_ZONE),
        "evictions": _list(_EVICTION),
        "drains": _list(_DRAIN),
    }
)

SURVIVAL: SimulationJson = document(
    "Survival",
    {
        "kubernetesVersion": _TEXT,
        "unknownPlugins": _list(UNHEARD),
        "source": {"type": "object"},
        "changes": _TEXTS,
        "mode": {"enum": ["outage", "drain"]},
        "survives": {"type": "boolean"},
        "failures": _list(_FAILURE),
    },
)
"""Of `kschedx survive`."""


# The ProfileDifference document (`diff-profiles -o json`).

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

PROFILE_DIFFERENCE: Json = document(
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
