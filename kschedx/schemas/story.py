"""The Story document: what `expect_scheduling` of the pytest plugin compares with."""

from __future__ import annotations

from kschedx.schemas.parts import COUNTS, INTEGER, STRING, STRINGS, Json, array, by_name, document, json_object

_REJECTION = {"plugin": STRING, "code": STRING, "reasons": STRINGS}

SCHEMA: Json = document(
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
