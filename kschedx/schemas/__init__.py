"""JSON Schemas: what a reader of `-o json` documents may rely on, and a scheduler's configuration. Manifests are
validated against Kubernetes' own OpenAPI instead (`apiserver/strict.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import msgspec

from kschedx.errors import InputError, nearest
from kschedx.kube.documents import Json


def _attribute(name: str) -> Any:
    """Return an attribute of a module of the package: `inquiry.fit.FitDocument`."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"kschedx.{module}"), attribute)


def _schema_writer(name: str) -> Callable[[str], Json]:
    """Return the schema from a constant or function of this name."""

    def schema(_: str) -> Json:
        named_schema = _attribute(name)
        plain: Json = named_schema() if callable(named_schema) else named_schema
        return plain

    return schema


def _record_schema(name: str) -> Callable[[str], Json]:
    def schema(kind: str) -> Json:
        from kschedx.kube.documents import Document
        from kschedx.schemas.parts import document

        record_schema = msgspec.json.schema(_attribute(name), schema_hook=_any_schema)
        definitions: dict[str, Any] = record_schema.pop("$defs")
        if issubclass(_attribute(name), Document):
            for own in definitions.values():
                own.get("properties", {}).update(
                    {key: _never_null(schema) for key, schema in own.get("properties", {}).items()}
                )
        fields = definitions.pop(record_schema["$ref"].rpartition("/")[2])
        head = ("apiVersion", "kind")
        properties = {key: own for key, own in fields["properties"].items() if key not in head}
        required = [key for key in fields["required"] if key not in head]
        return document(kind, properties, required) | ({"$defs": definitions} if definitions else {})

    return schema


def _never_null(schema: Json) -> Json:
    """Return the schema of a key without null, if the key is omitted when it is null, its default."""
    choices = schema.get("anyOf")
    if not isinstance(choices, list) or schema.get("default", choices) is not None:
        return schema
    left: list[Json] = [choice for choice in choices if choice != {"type": "null"}]
    return left[0] if len(left) == 1 else {"anyOf": left}


def _any_schema(kind: type) -> dict[str, object]:
    """Return the schema of a value that is passed through, such as a plugin's args."""
    if kind is object:
        return {"description": "any value"}
    raise NotImplementedError


_SCHEMAS: Mapping[str, tuple[str, Callable[[str], Json]]] = {
    "Explanation": ("kschedx why POD -o json", _record_schema("schemas.commands.ExplanationOutput")),
    "ExplanationList": (
        "kschedx why --all-pending -o json",
        _record_schema("schemas.commands.ExplanationListDocument"),
    ),
    "NodeReport": ("kschedx why node/NAME -o json", _record_schema("inquiry.node.NodeReportDocument")),
    "Nodes": ("kschedx nodes -o json", _record_schema("inquiry.node.NodesDocument")),
    "ProfileDifference": ("kschedx diff-profiles -o json", _record_schema("schemas.commands.DifferenceOutput")),
    "Simulation": ("kschedx simulate -o json", _record_schema("schemas.commands.SimulationOutput")),
    "Fit": ("kschedx fit TARGET -o json", _record_schema("inquiry.fit.FitDocument")),
    "FitList": ("kschedx fit FILE -o json, with several workloads", _record_schema("schemas.commands.FitListDocument")),
    "Survival": ("kschedx survive -o json", _record_schema("inquiry.survive.SurvivalDocument")),
    "ScaleDown": ("kschedx scale-down -o json", _record_schema("schemas.commands.ScaleDownOutput")),
    "Descheduling": (
        "kschedx deschedule --policy FILE -o json",
        _record_schema("descheduler.descheduling.DeschedulingDocument"),
    ),
    "DeschedulerAdvice": (
        "kschedx descheduler-policy advise -o json",
        _record_schema("descheduler.advice.DeschedulerAdviceDocument"),
    ),
    "Admissions": ("kschedx kueue -o json", _record_schema("kueue.document.Admissions")),
    "Diagnosis": ("kschedx doctor -o json", _record_schema("doctor.diagnosis.DumpDiagnosis")),
    "FleetAnswer": ("kschedx fleet COMMAND -o json", _record_schema("inquiry.fleet.FleetDocument")),
    "Profile": ("kschedx profiles show NAME -o json", _record_schema("schemas.commands.ProfileListing")),
    "ProfileCheck": ("kschedx profiles check FILE -o json", _record_schema("schemas.commands.ProfileCheckDocument")),
    "ProfileTuning": ("kschedx profiles tune -o json", _record_schema("simulate.tuning.TuningDocument")),
    "PluginList": ("kschedx plugins -o json", _record_schema("schemas.commands.PluginListDocument")),
    "Story": ("pytest --kschedx-update", _record_schema("explain.difference.StoryDocument")),
    "KubeSchedulerConfiguration": (
        "kschedx why POD --config FILE",
        _schema_writer("schemas.parts.configuration_schema"),
    ),
    "InstanceTypes": ("kschedx instance-types FILE -o json", _record_schema("karpenter.catalogue.InstanceTypes")),
    "NodeGroups": ("kschedx why POD --node-groups FILE", _schema_writer("schemas.parts.NODE_GROUPS")),
    "Policy": ("kschedx why POD --config FILE --kube-version 1.13", _schema_writer("schemas.parts.policy_schema")),
}
NAMES: Mapping[str, str] = {name: of for name, (of, _) in _SCHEMAS.items()}
"""The kind of each document, and the command that prints or reads it."""


def schema(name: str) -> Json:
    """Return the JSON Schema (2020-12) of a kind of document; case is ignored. Raises `InputError`."""
    known = next((kind for kind in _SCHEMAS if kind.lower() == name.lower()), None)
    if known is None:
        hint = nearest(name, _SCHEMAS) or f"known: {', '.join(_SCHEMAS)}"
        raise InputError(f'no document is called "{name}"', hint=hint)
    from kschedx.schemas.parts import with_meanings

    return with_meanings(known, _SCHEMAS[known][1](known))
