"""The NodeReport document: of `kschedx why node/NAME`."""

from __future__ import annotations

from kschedx.schemas.parts import FINDING, INTEGER, STRING, STRINGS, Json, array, by_name, document, json_object

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
    {"pod": STRING, "fits": {"type": "boolean"}, "rejectedBy": STRINGS, "findings": array(FINDING)},
    optional={"undecided": STRING},
)

SCHEMA: Json = document(
    "NodeReport",
    {
        "name": STRING,
        "pods": json_object({"running": INTEGER, "allowed": INTEGER}),
        "resources": by_name(_RESOURCE),
        "pending": array(_VERDICT),
    },
)
