"""The Simulation and Fit documents: of `kschedx simulate` and `kschedx drain`, and of `kschedx fit`."""

from __future__ import annotations

from kschedx.schemas.explanation import GROWTH, STATE
from kschedx.schemas.parts import (
    BOOLEAN,
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
    open_object,
)

_COUNT: Json = {"type": "integer", "minimum": 0}
_USE = nullable(open_object({"requested": COUNTS, "allocatable": COUNTS}))
_STEP = open_object(
    {"pod": STRING, "outcome": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]}},
    {
        "bestNodes": STRINGS,
        "node": STRING,
        "message": STRING,
        "nominatedNode": STRING,
        "tiedCandidates": STRINGS,
        "victims": STRINGS,
    },
)
_DRAIN = open_object(
    {
        "node": STRING,
        "done": BOOLEAN,
        "waves": _COUNT,
        "budgets": COUNTS,
        "pods": array(
            open_object({"pod": STRING, "fate": STRING, "budget": STRING, "node": STRING, "message": STRING})
        ),
    }
)
_WORKLOAD = open_object(
    {
        "kind": STRING,
        "namespace": STRING,
        "name": STRING,
        "pods": _COUNT,
        "placed": STRINGS,
        "nodes": COUNTS,
        "pending": STRINGS,
        "evicted": STRINGS,
        "message": STRING,
    },
    {"refused": _COUNT, "refusal": STRING},
)
_EFFECT = open_object({"change": STRING, "made": STRINGS, "evicted": STRINGS, "gone": STRINGS})
_ROLLOUT = open_object(
    {"workload": STRING, "old": _COUNT, "replaced": _COUNT, "waiting": _COUNT, "done": BOOLEAN},
    {"refusal": STRING},
)
_FIX = open_object({"workload": STRING, "title": STRING, "certainty": STRING, "pods": _COUNT, "of": _COUNT})
"""`pods` of the `of` that wait have a node with it."""

SIMULATION: Json = document(
    "Simulation",
    {
        "kubernetesVersion": STRING,
        "unknownPlugins": array(UNHEARD),
        "source": {"type": "object"},
        "changes": STRINGS,
        "steps": array(_STEP),
        "placed": by_name(STRING),
        "pending": STRINGS,
        "gated": STRINGS,
        "ofOtherSchedulers": STRINGS,
        "evicted": by_name(STRING),
        "drains": array(_DRAIN),
        "workloads": array(_WORKLOAD),
        "nodes": by_name(open_object({"before": _USE, "after": _USE})),
    },
    optional={
        "kueue": open_object(
            {"admitted": STRINGS, "evicted": by_name(STRING), "pending": by_name(STRING), "refused": by_name(STRING)}
        ),
        "ties": STRING,
        "autoscaler": GROWTH,
        "fixes": array(_FIX),
        "budgetFixes": array(open_object({"title": STRING, "commands": STRINGS, "drained": _COUNT, "of": _COUNT})),
        "effects": array(_EFFECT),
        "rollouts": array(_ROLLOUT),
        "states": array(STATE),
        "goal": open_object(
            {
                "text": STRING,
                "reached": BOOLEAN,
                "moves": array(open_object({"pod": STRING, "from": STRING, "to": STRING, "for": STRING})),
                "placed": STRINGS,
                "pending": STRINGS,
            }
        ),
    },
)
"""Of `kschedx simulate` and `kschedx drain`."""

FIT: Json = document(
    "Fit",
    {
        "kubernetesVersion": STRING,
        "unknownPlugins": array(UNHEARD),
        "undecided": array(UNHEARD),
        "pod": open_object({"namespace": STRING, "name": STRING, "of": STRING}),
        "fits": _COUNT,
        "wanted": {"type": ["integer", "null"]},
        "nodes": COUNTS,
        "message": STRING,
        "missing": array(open_object({"like": STRING, "nodes": _COUNT})),
    },
    optional={"refusal": STRING},
)
"""Of `kschedx fit`."""
FIT_LIST: Json = document(
    "FitList",
    {
        "items": array(
            {"type": "object", "properties": {"kind": {"enum": ["Fit", "Explanation"]}}, "required": ["kind"]}
        )
    },
)
"""Of `kschedx fit` for a file with several workloads: a document for each."""

_COUNT_OR_NULL: Json = {"type": ["integer", "null"], "minimum": 0}
_LOST_POD = open_object(
    {
        "pod": STRING,
        "node": STRING,
        "outcome": {"enum": ["rescheduled", "pending", "not created", "not recreated", "blocked", "undecided"]},
        "to": STRING,
        "message": STRING,
        "byPreemption": BOOLEAN,
    }
)
_LOSS = open_object(
    {
        "kind": STRING,
        "namespace": STRING,
        "name": STRING,
        "state": {"enum": ["down", "pending", "blocked", "undecided", "interrupted", "rescheduled"]},
        "replicas": _COUNT,
        "ready": _COUNT,
        "lost": _COUNT,
        "left": {"type": "integer"},
        "after": {"type": "integer"},
        "pods": array(_LOST_POD),
    }
)
_ADDED = open_object(
    {
        "nodes": array(open_object({"like": STRING, "zone": STRING, "count": _COUNT})),
        "pods": _COUNT,
        "notHelped": STRINGS,
    }
)
_ZONE = open_object(
    {
        "zone": STRING,
        "nodes": _COUNT,
        "lost": _COUNT,
        "state": {"enum": ["Normal", "PartialDisruption", "FullDisruption"]},
        "secondsPerNode": _COUNT_OR_NULL,
        "firstTaintAfterSeconds": _COUNT_OR_NULL,
        "lastTaintAfterSeconds": _COUNT_OR_NULL,
    }
)
_EVICTION = open_object(
    {
        "node": STRING,
        "taintAfterSeconds": _COUNT_OR_NULL,
        "pods": by_name(_COUNT_OR_NULL),
    }
)
_FAILURE = open_object(
    {
        "failure": STRING,
        "nodes": STRINGS,
        "survives": BOOLEAN,
        "lost": _COUNT,
        "pods": COUNTS,
        "workloads": array(_LOSS),
        "volumes": STRINGS,
        "freedByNodeDeletion": _COUNT,
        "needed": nullable(_ADDED),
        "zones": array(_ZONE),
        "evictions": array(_EVICTION),
        "drains": array(_DRAIN),
    }
)

SURVIVAL: Json = document(
    "Survival",
    {
        "kubernetesVersion": STRING,
        "unknownPlugins": array(UNHEARD),
        "source": {"type": "object"},
        "changes": STRINGS,
        "mode": {"enum": ["outage", "drain"]},
        "survives": BOOLEAN,
        "failures": array(_FAILURE),
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
_REPACKING = json_object({"placedAnew": INTEGER, "now": _FILLING, "before": _FILLING, "after": _FILLING})
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
                    "nodes": nullable(_REPACKING),
                },
                closed=False,
            )
        ),
    },
)
