"""The ScaleDown document, of `kschedx scale-down`."""

from __future__ import annotations

from kschedx.autoscaler.scale_down.decision import Unremovable
from kschedx.autoscaler.scale_down.pods import Blocker, Fate
from kschedx.schemas.parts import INTEGER, STRING, STRINGS, array, by_name, document, json_object, nullable

Json = dict[str, object]

_COUNT: Json = {"type": "integer", "minimum": 0}
_POD = json_object(
    {"pod": STRING, "fate": {"enum": [one.value for one in Fate]}},
    optional={
        "blocker": {"enum": [one.value for one in Blocker]},
        "controller": STRING,
        "volumes": STRINGS,
        "budgets": STRINGS,
        "replicas": _COUNT,
    },
)


_NODE = json_object(
    {
        "removable": {"type": "boolean"},
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
        "mayGo": {"type": "boolean"},
        "obstacles": array(json_object({"reason": STRING, "text": STRING})),
        "consolidatable": {"type": "boolean"},
        "drifted": {"type": "boolean"},
        "empty": {"type": "boolean"},
    }
)

SCHEMA: Json = document(
    "ScaleDown",
    {
        "autoscaler": {"enum": ["cluster-autoscaler", "karpenter"]},
        "kubernetesVersion": STRING,
        "flagsAreKnown": {"type": "boolean"},
        "groupsToldBy": STRINGS,
        "nodes": by_name(_NODE),
    },
    optional={"karpenter": by_name(_OF_KARPENTER)},
)
