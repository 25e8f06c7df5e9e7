"""The FleetAnswer document: the answers of several clusters."""

from __future__ import annotations

from kschedx.autoscaler.scale_down import RemovalBlocker, RemovalFate, Unremovable
from kschedx.schemas.explanation import STATE
from kschedx.schemas.parts import (
    BOOLEAN,
    COUNTS,
    DIALECT,
    FINDING,
    INTEGER,
    STRING,
    STRINGS,
    Json,
    array,
    by_name,
    document,
    json_object,
    nullable,
)

FLEET_ANSWER: Json = document(
    "FleetAnswer",
    {
        "clusters": array(
            json_object(
                {
                    "cluster": STRING,
                    "question": STRINGS,
                    "exitCode": INTEGER,
                    "seconds": {"type": "number"},
                    "summary": STRING,
                    "errors": STRING,
                    "document": nullable({"type": "object"}),
                }
            )
        )
    },
)
"""`document` is what the question answers with for one cluster."""


# The NodeReport document: of `kschedx why node/NAME`.

_HOLDER = json_object({"pod": STRING, "priority": INTEGER, "amount": INTEGER})
_RESOURCE = json_object(
    {
        "allocatable": INTEGER,
        "requested": INTEGER,
        "free": INTEGER,
        "unit": {"enum": ["m", "bytes", ""]},
        "holders": array(_HOLDER),
    }
)
_VERDICT = json_object(
    {"pod": STRING, "fits": BOOLEAN, "rejectedBy": STRINGS, "findings": array(FINDING)},
    optional={"undecided": STRING},
)

NODE_REPORT: Json = document(
    "NodeReport",
    {
        "name": STRING,
        "pods": json_object({"running": INTEGER, "allowed": INTEGER}),
        "resources": by_name(_RESOURCE),
        "pending": array(_VERDICT),
    },
    optional={"states": array(STATE)},
)


# The Story document: what `expect_scheduling` of the pytest plugin compares with.

_REJECTION = {"plugin": STRING, "code": STRING, "reasons": STRINGS}

STORY: Json = document(
    "Story",
    {
        "kubernetesVersion": STRING,
        "pod": STRING,
        "profile": STRING,
        "outcome": STRING,
        "nodes": STRINGS,
        "message": STRING,
        "rejectedBefore": array(json_object(_REJECTION)),
        "rejected": array(json_object({**_REJECTION, "nodes": STRINGS})),
        "notEvaluated": STRINGS,
        "fits": STRINGS,
        "weights": COUNTS,
        "scores": by_name(COUNTS),
        "preemption": json_object(
            {
                "candidates": INTEGER,
                "best": array(json_object({"node": STRING, "victims": STRINGS, "pdbViolations": INTEGER})),
            }
        ),
    },
)


# The documents about configurations and plugins: Profile, ProfileCheck and PluginList.

_POINT = array({"oneOf": [STRING, json_object({"name": STRING, "weight": INTEGER})]})

PROFILE: Json = document(
    "Profile",
    {"name": STRING, "kubernetesVersion": STRING},
    optional={
        "configuration": {"type": "object"},
        "origins": by_name(STRING),
        "extensionPoints": by_name(_POINT),
    },
) | {"oneOf": [{"required": ["configuration", "origins"]}, {"required": ["extensionPoints"]}]}
"""Of a Policy the predicates and priorities, since nothing else of it is expanded."""

PROFILE_CHECK: Json = document(
    "ProfileCheck",
    {
        "name": STRING,
        "kubernetesVersion": STRING,
        "advice": array(json_object({"id": STRING, "path": STRING, "text": STRING, "needs": STRING})),
    },
)

PLUGIN_LIST: Json = document(
    "PluginList",
    {
        "kubernetesVersion": STRING,
        "items": array(
            json_object(
                {"name": STRING, "origin": STRING, "points": STRINGS, "default": BOOLEAN},
                optional={"defect": STRING},
            )
        ),
    },
)


# The ScaleDown document, of `kschedx scale-down`.

_COUNT: Json = {"type": "integer", "minimum": 0}
_POD = json_object(
    {"pod": STRING, "fate": {"enum": [one.value for one in RemovalFate]}},
    optional={
        "blocker": {"enum": [one.value for one in RemovalBlocker]},
        "controller": STRING,
        "volumes": STRINGS,
        "budgets": STRINGS,
        "replicas": _COUNT,
    },
)


_NODE = json_object(
    {
        "removable": BOOLEAN,
        "reasons": array({"enum": [one.value for one in Unremovable]}),
        "group": nullable(json_object({"name": STRING, "target": INTEGER, "minSize": INTEGER, "maxSize": INTEGER})),
        "utilization": nullable(
            json_object(
                {
                    "resource": STRING,
                    "requested": INTEGER,
                    "offered": INTEGER,
                    "percent": INTEGER,
                    "thresholdPercent": INTEGER,
                }
            )
        ),
        "pods": array(_POD),
        "places": by_name(STRING),
        "stranded": nullable(json_object({"pod": STRING, "refusals": by_name(_COUNT)})),
        "unneededSeconds": nullable(_COUNT),
        "neededSeconds": _COUNT,
    },
    optional={"minimum": json_object({"resource": STRING, "left": INTEGER, "least": INTEGER})},
)

_OF_KARPENTER = json_object(
    {
        "pool": STRING,
        "mayGo": BOOLEAN,
        "obstacles": array(json_object({"reason": STRING, "text": STRING})),
        "consolidatable": BOOLEAN,
        "drifted": BOOLEAN,
        "empty": BOOLEAN,
    },
    optional={
        "balance": json_object(
            {"disruption": {"type": "number"}, "savingsNeeded": {"type": "number"}},
            optional={"savings": {"type": "number"}},
        )
    },
)

_COMMAND = json_object(
    {
        "method": {"enum": ["emptiness", "drift", "multi-node", "single-node"]},
        "action": {"enum": ["delete", "replace"]},
        "nodes": STRINGS,
        "replacements": _COUNT,
        "instanceTypes": STRINGS,
        "price": nullable(STRING),
        "newPrice": nullable(STRING),
        "savings": nullable(STRING),
        "scores": by_name(STRING),
    }
)
"""Prices are of an hour, as texts; null where they are not known."""

SCALE_DOWN: Json = document(
    "ScaleDown",
    {
        "autoscaler": {"enum": ["cluster-autoscaler", "karpenter"]},
        "kubernetesVersion": STRING,
        "flagsAreKnown": BOOLEAN,
        "groupsToldBy": STRINGS,
        "nodes": by_name(_NODE),
    },
    optional={
        "karpenter": by_name(_OF_KARPENTER),
        "consolidation": json_object(
            {
                "follows": STRING,
                "commands": array(_COMMAND),
                "kept": by_name(STRING),
                "prices": by_name(nullable(STRING)),
                "byChance": BOOLEAN,
            }
        ),
        "together": json_object(
            {
                "nodes": STRINGS,
                "moves": array(json_object({"pod": STRING, "from": STRING, "to": STRING})),
                "blocked": by_name(STRING),
                "notTried": _COUNT,
                "price": nullable(STRING),
            }
        ),
    },
)


_TEXTS: Json = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
NODE_GROUPS: Json = {
    "$schema": DIALECT,
    "title": "NodeGroups",
    "description": "The node groups of a cluster-autoscaler, for --node-groups. The output of /snapshotz works too.",
    "type": "object",
    "required": ["groups"],
    "properties": {
        "groups": {
            "type": "object",
            "description": "Node groups by name.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "nodes": STRINGS | {"description": "The nodes of the group in the snapshot."},
                    "template": {"type": "object", "description": "A node of the group: {Node: manifest, Pods: []}."},
                    "capacity": _TEXTS | {"description": "What a new node has: cpu, memory, pods (110), others."},
                    "labels": _TEXTS | {"description": "Labels of a new node."},
                    "taints": {
                        "type": "array",
                        "items": {"type": ["string", "object"]},
                        "description": "Taints of a new node: KEY=VALUE:EFFECT.",
                    },
                    "tags": _TEXTS | {"description": "Tags k8s.io/cluster-autoscaler/node-template/... of AWS."},
                },
            },
        }
    },
}
"""Of a file that people write."""
