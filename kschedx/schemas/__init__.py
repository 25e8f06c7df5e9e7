"""JSON Schemas: what a reader of `-o json` documents may rely on, and a scheduler's configuration. Manifests are
validated against Kubernetes' own OpenAPI instead (`apiserver/strict.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import msgspec

from kschedx.errors import InputError, nearest
from kschedx.kube.documents import Json


def _attribute(name: str) -> Any:
    """Return an attribute of a module of the package: `inquiry.fit.FitDocument`."""
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"kschedx.{module}"), attribute)


def _schema_of(kind: str, named: Any) -> Json:
    """Return the schema of a record, or one that is a constant, or that a function returns."""
    from kschedx.kube.documents import Document
    from kschedx.schemas.parts import document

    if not isinstance(named, type):
        plain: Json = named() if callable(named) else named
        return plain
    record_schema = msgspec.json.schema(named, schema_hook=_any_schema)
    definitions: dict[str, Any] = record_schema.pop("$defs")
    for own in definitions.values() if issubclass(named, Document) else ():
        fields = own.get("properties", {})
        fields.update({key: _never_null(schema) for key, schema in fields.items()})
    fields = definitions.pop(record_schema["$ref"].rpartition("/")[2])
    head = ("apiVersion", "kind")
    properties = {key: own for key, own in fields["properties"].items() if key not in head}
    required = [key for key in fields["required"] if key not in head]
    return document(kind, properties, required) | ({"$defs": definitions} if definitions else {})


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


_SCHEMAS: Mapping[str, tuple[str, str]] = {
    "Explanation": ("kschedx why POD -o json", "schemas.commands.ExplanationOutput"),
    "ExplanationList": ("kschedx why --all-pending -o json", "schemas.commands.ExplanationListDocument"),
    "NodeReport": ("kschedx why node/NAME -o json", "inquiry.node.NodeReportDocument"),
    "Nodes": ("kschedx nodes -o json", "inquiry.node.NodesDocument"),
    "ProfileDifference": ("kschedx diff-profiles -o json", "schemas.commands.DifferenceOutput"),
    "Simulation": ("kschedx simulate -o json", "schemas.commands.SimulationOutput"),
    "Fit": ("kschedx fit TARGET -o json", "inquiry.fit.FitDocument"),
    "FitList": ("kschedx fit FILE -o json, with several workloads", "schemas.commands.FitListDocument"),
    "Survival": ("kschedx survive -o json", "inquiry.survive.SurvivalDocument"),
    "ScaleDown": ("kschedx scale-down -o json", "schemas.commands.ScaleDownOutput"),
    "Descheduling": ("kschedx deschedule --policy FILE -o json", "descheduler.descheduling.DeschedulingDocument"),
    "DeschedulerAdvice": ("kschedx descheduler-policy advise -o json", "descheduler.advice.DeschedulerAdviceDocument"),
    "Admissions": ("kschedx kueue -o json", "kueue.document.Admissions"),
    "Diagnosis": ("kschedx doctor -o json", "doctor.diagnosis.DumpDiagnosis"),
    "FleetAnswer": ("kschedx fleet COMMAND -o json", "inquiry.document.FleetDocument"),
    "Profile": ("kschedx profiles show NAME -o json", "schemas.commands.ProfileListing"),
    "ProfileCheck": ("kschedx profiles check FILE -o json", "schemas.commands.ProfileCheckDocument"),
    "ProfileTuning": ("kschedx profiles tune -o json", "simulate.tuning.TuningDocument"),
    "PluginList": ("kschedx plugins -o json", "schemas.commands.PluginListDocument"),
    "Story": ("pytest --kschedx-update", "explain.difference.StoryDocument"),
    "KubeSchedulerConfiguration": ("kschedx why POD --config FILE", "schemas.parts.configuration_schema"),
    "InstanceTypes": ("kschedx instance-types FILE -o json", "karpenter.catalogue.InstanceTypes"),
    "NodeGroups": ("kschedx why POD --node-groups FILE", "schemas.parts.NODE_GROUPS"),
    "Policy": ("kschedx why POD --config FILE --kube-version 1.13", "schemas.parts.policy_schema"),
}
"""The kind of each document: the command that prints or reads it, and its record or schema in the package."""
NAMES: Mapping[str, str] = {name: of for name, (of, _) in _SCHEMAS.items()}


def schema(name: str) -> Json:
    """Return the JSON Schema (2020-12) of a kind of document; case is ignored. Raises `InputError`."""
    known = next((kind for kind in _SCHEMAS if kind.lower() == name.lower()), None)
    if known is None:
        hint = nearest(name, _SCHEMAS) or f"known: {', '.join(_SCHEMAS)}"
        raise InputError(f'no document is called "{name}"', hint=hint)
    from kschedx.schemas.parts import with_meanings

    return with_meanings(known, _schema_of(known, _attribute(_SCHEMAS[known][1])))
