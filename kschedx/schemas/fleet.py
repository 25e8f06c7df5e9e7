"""The FleetAnswer document: the answers of several clusters."""

from __future__ import annotations

from kschedx.schemas.parts import INTEGER, STRING, STRINGS, Json, array, document, json_object, nullable

SCHEMA: Json = document(
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
