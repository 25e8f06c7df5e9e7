"""JSON Schemas: of the documents of `-o json`, what a reader of them may rely on; of a scheduler's configuration.

Manifests are held against Kubernetes' own description of their fields (`apiserver/strict.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from importlib import import_module

from kschedx.errors import InputError, Place, nearest

Json = dict[str, object]


def _written(name: str) -> Callable[[], Json]:
    """`explanation.EXPLANATION`: a schema of a module of this package, or the function that makes it."""
    module, _, constant = name.partition(".")

    def made() -> Json:
        found = getattr(import_module(f"kschedx.schemas.{module}"), constant)
        plain: Json = found() if callable(found) else found
        return plain

    return made


def _of_record(module: str, record: str, kind: str, *, always: Collection[str] = ()) -> Callable[[], Json]:
    """Of records that are written as they are; `always` are fields with a default that are never left out."""

    def made() -> Json:
        import msgspec

        from kschedx.schemas.parts import document

        found = msgspec.json.schema(getattr(import_module(f"kschedx.{module}"), record), schema_hook=_of_any)
        definitions = {name: own for name, own in found["$defs"].items() if name != record}
        fields = found["$defs"][record]
        properties = {name: own for name, own in fields["properties"].items() if name not in ("apiVersion", "kind")}
        required = {name: own for name, own in properties.items() if name in (*fields["required"], *always)}
        optional = {name: own for name, own in properties.items() if name not in required}
        return document(kind, required, optional=optional) | {"$defs": definitions}

    return made


def _of_any(kind: type) -> dict[str, object]:
    """What is written as it was given, such as the args of a plugin."""
    if kind is object:
        return {"description": "any value"}
    raise NotImplementedError


_SCHEMAS: Mapping[str, tuple[str, Callable[[], Json]]] = {
    "Explanation": ("kschedx why POD -o json", _written("explanation.EXPLANATION")),
    "ExplanationList": ("kschedx why --all-pending -o json", _written("explanation.EXPLANATION_LIST")),
    "NodeReport": ("kschedx why node/NAME -o json", _written("reports.NODE_REPORT")),
    "Nodes": ("kschedx nodes -o json", _of_record("inquiry.nodes", "NodesDocument", "Nodes")),
    "ProfileDifference": ("kschedx diff-profiles -o json", _written("simulation.PROFILE_DIFFERENCE")),
    "Simulation": ("kschedx simulate -o json", _written("simulation.SIMULATION")),
    "Fit": ("kschedx fit TARGET -o json", _written("simulation.FIT")),
    "FitList": ("kschedx fit FILE -o json, with several workloads", _written("simulation.FIT_LIST")),
    "Survival": ("kschedx survive -o json", _written("simulation.SURVIVAL")),
    "ScaleDown": ("kschedx scale-down -o json", _written("reports.SCALE_DOWN")),
    "Descheduling": (
        "kschedx deschedule --policy FILE -o json",
        _of_record("descheduler.document", "DeschedulingDocument", "Descheduling"),
    ),
    "DeschedulerAdvice": (
        "kschedx descheduler-policy advise -o json",
        _of_record("descheduler.advice", "DeschedulerAdviceDocument", "DeschedulerAdvice"),
    ),
    "Admissions": (
        "kschedx kueue -o json",
        _of_record("kueue.document", "Admissions", "Admissions", always=("cycles", "clusterQueues", "workloads")),
    ),
    "Diagnosis": ("kschedx doctor -o json", _of_record("doctor.diagnosis", "Diagnosis", "Diagnosis")),
    "FleetAnswer": ("kschedx fleet COMMAND -o json", _written("reports.FLEET_ANSWER")),
    "Profile": ("kschedx profiles show NAME -o json", _written("reports.PROFILE")),
    "ProfileCheck": ("kschedx profiles check FILE -o json", _written("reports.PROFILE_CHECK")),
    "ProfileTuning": (
        "kschedx profiles tune -o json",
        _of_record("simulate.tuning", "TuningDocument", "ProfileTuning"),
    ),
    "PluginList": ("kschedx plugins -o json", _written("reports.PLUGIN_LIST")),
    "Story": ("pytest --kschedx-update", _written("reports.STORY")),
    "KubeSchedulerConfiguration": ("kschedx why POD --config FILE", _written("configuration.configuration_schema")),
    "InstanceTypes": (
        "kschedx instance-types FILE -o json",
        _of_record("karpenter.catalogue", "InstanceTypes", "InstanceTypes", always=("instanceTypes",)),
    ),
    "NodeGroups": ("kschedx why POD --node-groups FILE", _written("reports.NODE_GROUPS")),
    "Policy": ("kschedx why POD --config FILE --kube-version 1.13", _written("configuration.policy_schema")),
}
NAMES: Mapping[str, str] = {name: of for name, (of, _) in _SCHEMAS.items()}
"""The kind of each document, and what prints it, or reads it."""


def schema(name: str) -> Json:
    """The JSON Schema (2020-12) of a kind of document, in whatever letters it is written. Raises `InputError`."""
    known = next((kind for kind in _SCHEMAS if kind.lower() == name.lower()), None)
    if known is None:
        hint = nearest(name, _SCHEMAS) or f"known: {', '.join(_SCHEMAS)}"
        raise InputError(f'no document is called "{name}"', hint=hint)
    from kschedx.schemas.parts import with_meanings

    return with_meanings(known, _SCHEMAS[known][1]())


def check_document(document: Mapping[str, object], *, source: str = "") -> None:
    """Raises `InputError` with the place of the first thing by which a document is not what its kind promises."""
    import jsonschema

    errors = jsonschema.Draft202012Validator(schema(str(document.get("kind")))).iter_errors(document)
    first = next(iter(sorted(errors, key=lambda error: error.json_path)), None)
    if first is not None:
        place = Place(source=source, field=first.json_path.removeprefix("$").removeprefix("."))
        raise InputError(first.message, place=place)
