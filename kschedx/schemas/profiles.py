"""The documents about configurations and plugins: Profile, ProfileCheck and PluginList."""

from __future__ import annotations

from kschedx.schemas.parts import INTEGER, STRING, STRINGS, Json, array, by_name, document, json_object

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
                {"name": STRING, "origin": STRING, "points": STRINGS, "default": {"type": "boolean"}},
                optional={"defect": STRING},
            )
        ),
    },
)
