"""The parts of an Explanation that are not kube-scheduler's: autoscaler, extenders, what holds the pod, a DaemonSet."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.render.states import STATES
from kschedx.schemas.parts import (
    BOOLEAN,
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
    open_object,
)

_RANGE = {"from": INTEGER, "to": INTEGER, "max": INTEGER}
_REASONS: Mapping[str, Json] = {"code": {"enum": list(CODES)}, "reasons": STRINGS}

_KARPENTER = open_object(
    {
        "kind": {"const": "karpenter"},
        "follows": STRING,
        "outcome": STRING,
        "pools": by_name(open_object({"certainty": STRING}, {"reason": STRING, "text": STRING})),
        "skippedPools": by_name(STRING),
        "event": STRING,
        "typesAreKnown": BOOLEAN,
        "byChance": BOOLEAN,
    },
    {
        "adds": open_object({"pool": STRING, "instanceTypes": STRINGS}),
        "expectedOn": STRING,
        "gaveUpPreference": BOOLEAN,
        "fixes": array(open_object({"title": STRING, "pool": STRING, "instanceTypes": STRINGS})),
    },
)

_CLUSTER_AUTOSCALER = open_object(
    {
        "kind": {"const": "cluster-autoscaler"},
        "outcome": STRING,
        "result": STRING,
        "groups": by_name(
            open_object(
                {"target": INTEGER, "minSize": INTEGER, "maxSize": INTEGER, "fits": BOOLEAN},
                {
                    "skipped": STRINGS,
                    "detail": STRING,
                    "template": {"type": "null"},
                    "rejectedBy": by_name(open_object(STATUS)),
                },
            )
        ),
        "scaleUps": array(open_object({"group": STRING, **_RANGE})),
        "event": STRING,
        "isTold": BOOLEAN,
        "groupsToldBy": STRINGS,
        "flagsAreKnown": BOOLEAN,
        "isMeasured": BOOLEAN,
    },
    {
        "node": STRING,
        "isUpcoming": BOOLEAN,
        "error": STRING,
        "alternatives": STRINGS,
        "isWaiting": BOOLEAN,
        "schedulerConfigFile": STRING,
        "unknownStatus": STRINGS,
        "fixes": array(open_object({"title": STRING, "group": STRING, "nodes": INTEGER})),
        "karpenter": _KARPENTER,
    },
)

AUTOSCALER: Json = {"oneOf": [_CLUSTER_AUTOSCALER, _KARPENTER]}

_GROWTH_OF_POOLS = open_object(
    {
        "kind": {"const": "karpenter"},
        "follows": STRING,
        "nodes": array(open_object({"pool": STRING, "instanceType": STRING, "nodes": INTEGER, "choices": INTEGER})),
        "helped": INTEGER,
        "expected": INTEGER,
        "left": INTEGER,
        "typesAreKnown": BOOLEAN,
        "byChance": BOOLEAN,
    }
)

_GROWTH_OF_GROUPS = open_object(
    {
        "kind": {"const": "cluster-autoscaler"},
        "loops": INTEGER,
        "groups": by_name(open_object(_RANGE)),
        "helped": INTEGER,
        "result": STRING,
        "byChance": BOOLEAN,
    },
    {"karpenter": _GROWTH_OF_POOLS},
)
GROWTH: Json = {"oneOf": [_GROWTH_OF_GROUPS, _GROWTH_OF_POOLS]}
"""What the autoscaler adds in the end, of a Simulation."""


def holding() -> Json:
    from kschedx.holding.model import Holding
    from kschedx.kueue.verdict import Verdict

    return of_facts(Holding, {"Verdict": Verdict})


DAEMON_SET = open_object(
    {"name": STRING, "runs": STRINGS, "waits": array(STRINGS), "leftOut": array(STRINGS)},
    {
        "refused": INTEGER,
        "refusal": STRING,
        "rollout": open_object(
            {"workload": STRING, "old": INTEGER, "replaced": INTEGER, "waiting": INTEGER, "done": BOOLEAN},
            {"refusal": STRING},
        ),
    },
)

_FAILED: Mapping[str, Json] = {"error": STRING, "ignored": {"const": True}}
_VICTIMS = by_name(open_object({"pods": STRINGS, "numPDBViolations": INTEGER}))

EXTENDERS = open_object(
    {"interested": array(BOOLEAN), "called": BOOLEAN},
    {
        "order": array(INTEGER),
        "passedPlugins": STRINGS,
        "filter": array(
            open_object(
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
        "statuses": by_name(open_object(_REASONS)),
        "silent": STRINGS,
        "scores": array(
            open_object(
                {
                    "extender": INTEGER,
                    "raw": array(open_object({"host": STRING, "score": INTEGER})),
                    "weight": INTEGER,
                    "added": COUNTS,
                },
                _FAILED,
            )
        ),
        "preempt": array(open_object({"extender": INTEGER, "in": _VICTIMS, "out": nullable(_VICTIMS)}, _FAILED)),
        "candidates": array(open_object({"node": STRING, "victims": STRINGS, "pdbViolations": INTEGER})),
        "candidatesStatus": open_object(_REASONS),
    },
)

SHARD = open_object({"index": INTEGER, "of": INTEGER})
"""Which part of an answer that several processes work out."""


# The Explanation document (`why -o json`), and the list of them.

_STEP: Mapping[str, Json] = {"plugin": STRING, **STATUS}
_VERDICT = json_object({"code": {"enum": list(CODES)}, "plugin": nullable(STRING), "reasons": STRINGS})
_NODE = json_object({"verdict": _VERDICT, "rejectedBy": by_name(json_object(STATUS))})
_TARGET = json_object(
    {"apiVersion": STRING, "kind": STRING, "name": STRING},
    optional={"namespace": STRING},
)
_BY: Mapping[str, Json] = {"by": STRING}
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
        "workload": STRING,
        "wanted": {"type": "integer", "minimum": 0},
        "running": {"type": "integer", "minimum": 0},
        "placed": by_name(STRING),
        "pending": STRINGS,
        "evicted": STRINGS,
        "replaced": {"type": "integer", "minimum": 0},
    },
    optional={
        "refused": STRINGS,
        "refusal": STRING,
        "kubelet": STRING,
        "undecided": STRING,
    },
)
"""Of a workload that lacks several: the outcome of each. The explanation is that of the first without a node."""

_FIX: Mapping[str, Json] = {
    "title": STRING,
    "certainty": {"enum": ["verified", "partial", "untried"]},
    "group": {"enum": ["capacity", "workload", "cluster"]},
    "changes": {"type": "array", "items": _CHANGE},
    "feasibleNodes": STRINGS,
}
_COVERED: Json = json_object({"title": STRING, "pods": INTEGER, "of": INTEGER})
_OF_FIX: Mapping[str, Json] = {"costs": STRINGS, "apply": {"type": "array", "items": _CHANGE}, "replicas": _COVERED}

STATE: Json = json_object(
    {"name": {"enum": [row.name for row in STATES]}},
    optional={"subject": STRING, "headline": STRING},
    closed=False,
)

EXPLANATION: Json = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Explanation",
    **json_object(
        {
            "apiVersion": {"const": "kschedx/v1"},
            "kind": {"const": "Explanation"},
            "kubernetesVersion": STRING,
            "source": json_object(
                {"text": STRING, "kinds": COUNTS},
                optional={
                    "serverVersion": STRING,
                    "missing": {"type": "object", "additionalProperties": {"enum": ["forbidden", "absent"]}},
                    "namespaces": STRINGS,
                    "anonymized": {"const": True},
                },
                closed=False,
            ),
            "pod": json_object(
                {
                    "namespace": STRING,
                    "name": STRING,
                    "schedulerName": STRING,
                    "priority": INTEGER,
                }
            ),
            "profile": json_object(
                {
                    "schedulerName": STRING,
                    "extensionPoints": by_name(
                        {
                            "type": "array",
                            "items": {
                                "oneOf": [
                                    STRING,
                                    json_object({"name": STRING, "weight": INTEGER}),
                                ]
                            },
                        }
                    ),
                }
            ),
            "outcome": {"enum": ["Scheduled", "Unschedulable", "Gated", "Error", "Undecided"]},
            "bestNodes": STRINGS,
            "message": STRING,
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
                                    "total": INTEGER,
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
                        "nominatedNode": nullable(STRING),
                        "bestCandidates": STRINGS,
                        "candidates": {
                            "type": "array",
                            "items": json_object({"node": STRING, "victims": STRINGS, "pdbViolations": INTEGER}),
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
                "items": json_object({"id": STRING, "text": STRING}, closed=False),
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
                    "node": STRING,
                    "exists": BOOLEAN,
                    "takes": BOOLEAN,
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

_PODS_WITH_REASON = array(json_object({"pod": STRING, "reason": STRING}))

EXPLANATION_LIST: Json = document(
    "ExplanationList",
    {
        "items": array({"$ref": "#/$defs/Explanation"}),
        "undecided": _PODS_WITH_REASON,
    },
    optional={"shard": SHARD, "refused": _PODS_WITH_REASON},
) | {"$defs": {"Explanation": EXPLANATION}}
"""Of `why` for many pods."""
