"""The Simulation and Fit documents: of `kschedx simulate` and `kschedx drain`, and of `kschedx fit`."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.schemas.beside import GROWTH
from kschedx.schemas.parts import UNHEARD, document

Json = dict[str, object]

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_TEXTS: Json = {"type": "array", "items": _TEXT}
_TEXT_BY_NAME: Json = {"type": "object", "additionalProperties": _TEXT}
_COUNT_BY_NAME: Json = {"type": "object", "additionalProperties": {"type": "integer"}}


def _object(required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    """An object with these keys; a reader has to put up with new ones."""
    return {"type": "object", "required": list(required), "properties": {**required, **(optional or {})}}


def _list(items: Json) -> Json:
    return {"type": "array", "items": items}


_USE: Json = {
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

SIMULATION: Json = document(
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
        "ties": _TEXT,
        "autoscaler": GROWTH,
        "fixes": _list(_FIX),
        "budgetFixes": _list(_object({"title": _TEXT, "commands": _TEXTS, "drained": _COUNT, "of": _COUNT})),
        "effects": _list(_EFFECT),
        "rollouts": _list(_ROLLOUT),
    },
)
"""Of `kschedx simulate` and `kschedx drain`."""

FIT: Json = document(
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
