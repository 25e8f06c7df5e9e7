"""The parts of an Explanation that are not kube-scheduler's: autoscaler, extenders, what holds the pod, a DaemonSet."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.render.states import STATES
from kschedx.schemas.parts import (
    CODES,
    COUNTS,
    INTEGER,
    STATUS,
    STRING,
    STRINGS,
    UNHEARD,
    Json,
    array,
    by_name,
    document,
    json_object,
    nullable,
    of_facts,
)

_BOOLEAN: Json = {"type": "boolean"}


def _object(required: Mapping[str, Json], optional: Mapping[str, Json] | None = None) -> Json:
    """A reader has to put up with new keys."""
    return json_object(required, optional=optional, closed=False)


_RANGE = {"from": INTEGER, "to": INTEGER, "max": INTEGER}
_REASONS: Mapping[str, Json] = {"code": {"enum": list(CODES)}, "reasons": STRINGS}

_KARPENTER = _object(
    {
        "kind": {"const": "karpenter"},
        "follows": STRING,
        "outcome": STRING,
        "pools": by_name(_object({"certainty": STRING}, {"reason": STRING, "text": STRING})),
        "skippedPools": by_name(STRING),
        "event": STRING,
        "typesAreKnown": _BOOLEAN,
        "byChance": _BOOLEAN,
    },
    {
        "adds": _object({"pool": STRING, "instanceTypes": STRINGS}),
        "expectedOn": STRING,
        "gaveUpPreference": _BOOLEAN,
        "fixes": array(_object({"title": STRING, "pool": STRING, "instanceTypes": STRINGS})),
    },
)

_CLUSTER_AUTOSCALER = _object(
    {
        "kind": {"const": "cluster-autoscaler"},
        "outcome": STRING,
        "result": STRING,
        "groups": by_name(
            _object(
                {"target": INTEGER, "minSize": INTEGER, "maxSize": INTEGER, "fits": _BOOLEAN},
                {
                    "skipped": STRINGS,
                    "detail": STRING,
                    "template": {"type": "null"},
                    "rejectedBy": by_name(_object(STATUS)),
                },
            )
        ),
        "scaleUps": array(_object({"group": STRING, **_RANGE})),
        "event": STRING,
        "isTold": _BOOLEAN,
        "groupsToldBy": STRINGS,
        "flagsAreKnown": _BOOLEAN,
        "isMeasured": _BOOLEAN,
    },
    {
        "node": STRING,
        "isUpcoming": _BOOLEAN,
        "error": STRING,
        "alternatives": STRINGS,
        "isWaiting": _BOOLEAN,
        "schedulerConfigFile": STRING,
        "unknownStatus": STRINGS,
        "fixes": array(_object({"title": STRING, "group": STRING, "nodes": INTEGER})),
        "karpenter": _KARPENTER,
    },
)

AUTOSCALER: Json = {"oneOf": [_CLUSTER_AUTOSCALER, _KARPENTER]}

_GROWTH_OF_POOLS = _object(
    {
        "kind": {"const": "karpenter"},
        "follows": STRING,
        "nodes": array(_object({"pool": STRING, "instanceType": STRING, "nodes": INTEGER, "choices": INTEGER})),
        "helped": INTEGER,
        "expected": INTEGER,
        "left": INTEGER,
        "typesAreKnown": _BOOLEAN,
        "byChance": _BOOLEAN,
    }
)

_GROWTH_OF_GROUPS = _object(
    {
        "kind": {"const": "cluster-autoscaler"},
        "loops": INTEGER,
        "groups": by_name(_object(_RANGE)),
        "helped": INTEGER,
        "result": STRING,
        "byChance": _BOOLEAN,
    },
    {"karpenter": _GROWTH_OF_POOLS},
)
GROWTH: Json = {"oneOf": [_GROWTH_OF_GROUPS, _GROWTH_OF_POOLS]}
"""What the autoscaler adds in the end, of a Simulation."""


def holding() -> Json:
    from kschedx.holding.model import Holding
    from kschedx.kueue.verdict import Verdict

    return of_facts(Holding, {"Verdict": Verdict})


DAEMON_SET = _object(
    {"name": STRING, "runs": STRINGS, "waits": array(STRINGS), "leftOut": array(STRINGS)},
    {
        "refused": INTEGER,
        "refusal": STRING,
        "rollout": _object(
            {"workload": STRING, "old": INTEGER, "replaced": INTEGER, "waiting": INTEGER, "done": {"type": "boolean"}},
            {"refusal": STRING},
        ),
    },
)

_FAILED: Mapping[str, Json] = {"error": STRING, "ignored": {"const": True}}
_VICTIMS = by_name(_object({"pods": STRINGS, "numPDBViolations": INTEGER}))

EXTENDERS = _object(
    {"interested": array(_BOOLEAN), "called": _BOOLEAN},
    {
        "order": array(INTEGER),
        "passedPlugins": STRINGS,
        "filter": array(
            _object(
                {
                    "extender": INTEGER,
                    "in": STRINGS,
                    "out": STRINGS,
                    "failed": by_name(STRING),
                    "failedAndUnresolvable": by_name(STRING),
                },
                _FAILED,
            )
        ),
        "statuses": by_name(_object(_REASONS)),
        "silent": STRINGS,
        "scores": array(
            _object(
                {
                    "extender": INTEGER,
                    "raw": array(_object({"host": STRING, "score": INTEGER})),
                    "weight": INTEGER,
                    "added": COUNTS,
                },
                _FAILED,
            )
        ),
        "preempt": array(_object({"extender": INTEGER, "in": _VICTIMS, "out": nullable(_VICTIMS)}, _FAILED)),
        "candidates": array(_object({"node": STRING, "victims": STRINGS, "pdbViolations": INTEGER})),
        "candidatesStatus": _object(_REASONS),
    },
)

SHARD = _object({"index": INTEGER, "of": INTEGER})
"""Which part of an answer that several processes work out."""


# The Explanation document (`why -o json`), and the list of them.

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
        json_object(
            {"target": _TARGET, "patch": {"type": "array", "items": {"type": "object"}}},
            optional={**_BY, "subresource": {"const": "resize"}},
        ),
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
    optional={
        "refused": STRINGS,
        "refusal": {"type": "string"},
        "kubelet": {"type": "string"},
        "undecided": {"type": "string"},
    },
)
"""Of a workload that lacks several: the outcome of each. The explanation is that of the first without a node."""

_FIX: Mapping[str, Json] = {
    "title": {"type": "string"},
    "certainty": {"enum": ["verified", "partial", "untried"]},
    "group": {"enum": ["capacity", "workload", "cluster"]},
    "changes": {"type": "array", "items": _CHANGE},
    "feasibleNodes": STRINGS,
}
_COVERED: Json = json_object({"title": {"type": "string"}, "pods": {"type": "integer"}, "of": {"type": "integer"}})
_OF_FIX: Mapping[str, Json] = {"costs": STRINGS, "apply": {"type": "array", "items": _CHANGE}, "replicas": _COVERED}

STATE: Json = json_object(
    {"name": {"enum": [row.name for row in STATES]}},
    optional={"subject": {"type": "string"}, "headline": {"type": "string"}},
    closed=False,
)

EXPLANATION: Json = {
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
            "autoscaler": AUTOSCALER,
            "holding": holding(),
            "extenders": EXTENDERS,
            "daemonSet": DAEMON_SET,
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
            "state": STATE,
        },
        closed=False,
    ),
}
"""JSON schema (2020-12) of the document. Keys are added, never changed, so a reader must put up with new ones."""

_PODS_WITH_REASON = array(json_object({"pod": {"type": "string"}, "reason": {"type": "string"}}))

EXPLANATION_LIST: Json = document(
    "ExplanationList",
    {
        "items": array({"$ref": "#/$defs/Explanation"}),
        "undecided": _PODS_WITH_REASON,
    },
    optional={"shard": SHARD, "refused": _PODS_WITH_REASON},
) | {"$defs": {"Explanation": EXPLANATION}}
"""Of `why` for many pods."""
