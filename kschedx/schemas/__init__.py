"""JSON Schemas: of the documents of `-o json`, what a reader of them may rely on; of a scheduler's configuration.

Manifests are held against Kubernetes' own description of their fields (`apiserver/strict.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kschedx.errors import InputError, Place, nearest

Json = dict[str, object]


def _explanation() -> Json:
    from kschedx.schemas.explanation import EXPLANATION

    return EXPLANATION


def _explanations() -> Json:
    from kschedx.schemas.explanation import EXPLANATION_LIST

    return EXPLANATION_LIST


def _difference() -> Json:
    from kschedx.schemas.simulation import PROFILE_DIFFERENCE

    return PROFILE_DIFFERENCE


def _diagnosis() -> Json:
    """Of the records themselves, which are written as they are."""
    import msgspec

    from kschedx.doctor.diagnosis import Diagnosis
    from kschedx.schemas.parts import document

    made = msgspec.json.schema(Diagnosis)
    definitions = {name: own for name, own in made["$defs"].items() if name != "Diagnosis"}
    properties = made["$defs"]["Diagnosis"]["properties"]
    return document("Diagnosis", properties) | {"$defs": definitions}


def _admissions() -> Json:
    """Of the records themselves, which are written as they are."""
    import msgspec

    from kschedx.kueue.document import Admissions
    from kschedx.schemas.parts import document

    made = msgspec.json.schema(Admissions)
    definitions = {name: own for name, own in made["$defs"].items() if name != "Admissions"}
    properties = made["$defs"]["Admissions"]["properties"]
    now_and_then = {name: properties.pop(name) for name in ("begin", "isSettled")}
    return document("Admissions", properties, optional=now_and_then) | {"$defs": definitions}


def _nodes() -> Json:
    """Of the records themselves, which are written as they are."""
    import msgspec

    from kschedx.inquiry.nodes import NodesDocument
    from kschedx.schemas.parts import document

    made = msgspec.json.schema(NodesDocument)
    definitions = {name: own for name, own in made["$defs"].items() if name != "NodesDocument"}
    properties = made["$defs"]["NodesDocument"]["properties"]
    return document("Nodes", {name: properties[name] for name in ("nodes", "total")}) | {"$defs": definitions}


def _simulation() -> Json:
    from kschedx.schemas.simulation import SIMULATION

    return SIMULATION


def _fit() -> Json:
    from kschedx.schemas.simulation import FIT

    return FIT


def _survival() -> Json:
    from kschedx.schemas.simulation import SURVIVAL

    return SURVIVAL


def _scale_down() -> Json:
    from kschedx.schemas.reports import SCALE_DOWN

    return SCALE_DOWN


def _node() -> Json:
    from kschedx.schemas.reports import NODE_REPORT

    return NODE_REPORT


def _fleet() -> Json:
    from kschedx.schemas.reports import FLEET_ANSWER

    return FLEET_ANSWER


def _story() -> Json:
    from kschedx.schemas.reports import STORY

    return STORY


def _profile() -> Json:
    from kschedx.schemas.reports import PROFILE

    return PROFILE


def _profile_check() -> Json:
    from kschedx.schemas.reports import PROFILE_CHECK

    return PROFILE_CHECK


def _plugins() -> Json:
    from kschedx.schemas.reports import PLUGIN_LIST

    return PLUGIN_LIST


def _configuration() -> Json:
    from kschedx.schemas.configuration import configuration_schema

    return configuration_schema()


def _policy() -> Json:
    from kschedx.schemas.configuration import policy_schema

    return policy_schema()


def _instance_types() -> Json:
    """Of a file that people write."""
    import msgspec

    from kschedx.karpenter.catalogue import InstanceTypes
    from kschedx.schemas.parts import document

    made = msgspec.json.schema(InstanceTypes)
    definitions = {name: own for name, own in made["$defs"].items() if name != "InstanceTypes"}
    types = made["$defs"]["InstanceTypes"]["properties"]["instanceTypes"]
    return document("InstanceTypes", {"instanceTypes": types}) | {"$defs": definitions}


def _node_groups() -> Json:
    """Of a file that people write for `--node-groups`."""
    from kschedx.schemas.reports import NODE_GROUPS

    return NODE_GROUPS


def _descheduling() -> Json:
    from kschedx.descheduler.document import DeschedulingDocument

    return _of_record(DeschedulingDocument, "Descheduling")


def _descheduler_advice() -> Json:
    from kschedx.descheduler.advice import ADVICE, DeschedulerAdviceDocument

    return _of_record(DeschedulerAdviceDocument, ADVICE)


def _of_record(record: type, kind: str) -> Json:
    """Of records that are written as they are."""
    import msgspec

    from kschedx.schemas.parts import document

    made = msgspec.json.schema(record, schema_hook=_of_any)
    definitions = {name: own for name, own in made["$defs"].items() if name != record.__name__}
    written = made["$defs"][record.__name__]
    properties = {name: own for name, own in written["properties"].items() if name not in ("apiVersion", "kind")}
    always = {name: own for name, own in properties.items() if name in written["required"]}
    optional = {name: own for name, own in properties.items() if name not in always}
    return document(kind, always, optional=optional) | {"$defs": definitions}


def _of_any(kind: type) -> dict[str, object]:
    """What is written as it was given, such as the args of a plugin."""
    if kind is object:
        return {"description": "any value"}
    raise NotImplementedError


_SCHEMAS: Mapping[str, tuple[str, Callable[[], Json]]] = {
    "Explanation": ("kschedx why POD -o json", _explanation),
    "ExplanationList": ("kschedx why --all-pending -o json", _explanations),
    "NodeReport": ("kschedx why node/NAME -o json", _node),
    "Nodes": ("kschedx nodes -o json", _nodes),
    "ProfileDifference": ("kschedx diff-profiles -o json", _difference),
    "Simulation": ("kschedx simulate -o json", _simulation),
    "Fit": ("kschedx fit TARGET -o json", _fit),
    "Survival": ("kschedx survive -o json", _survival),
    "ScaleDown": ("kschedx scale-down -o json", _scale_down),
    "Descheduling": ("kschedx deschedule --policy FILE -o json", _descheduling),
    "DeschedulerAdvice": ("kschedx descheduler-policy advise -o json", _descheduler_advice),
    "Admissions": ("kschedx kueue -o json", _admissions),
    "Diagnosis": ("kschedx doctor -o json", _diagnosis),
    "FleetAnswer": ("kschedx fleet COMMAND -o json", _fleet),
    "Profile": ("kschedx profiles show NAME -o json", _profile),
    "ProfileCheck": ("kschedx profiles check FILE -o json", _profile_check),
    "PluginList": ("kschedx plugins -o json", _plugins),
    "Story": ("pytest --kschedx-update", _story),
    "KubeSchedulerConfiguration": ("kschedx why POD --config FILE", _configuration),
    "InstanceTypes": ("kschedx instance-types FILE -o json", _instance_types),
    "NodeGroups": ("kschedx why POD --node-groups FILE", _node_groups),
    "Policy": ("kschedx why POD --config FILE --kube-version 1.13", _policy),
}
NAMES: Mapping[str, str] = {name: of for name, (of, _) in _SCHEMAS.items()}
"""The kind of each document, and what prints it, or reads it."""


def schema(name: str) -> Json:
    """The JSON Schema (2020-12) of a kind of document, in whatever letters it is written. Raises `InputError`."""
    known = next((kind for kind in _SCHEMAS if kind.lower() == name.lower()), None)
    if known is None:
        hint = nearest(name, _SCHEMAS) or f"known: {', '.join(_SCHEMAS)}"
        raise InputError(f'no document is called "{name}"', hint=hint)
    return _SCHEMAS[known][1]()


def check_document(document: Mapping[str, object], *, source: str = "") -> None:
    """Raises `InputError` with the place of the first thing by which a document is not what its kind promises."""
    import jsonschema

    errors = jsonschema.Draft202012Validator(schema(str(document.get("kind")))).iter_errors(document)
    first = next(iter(sorted(errors, key=lambda error: error.json_path)), None)
    if first is not None:
        place = Place(source=source, field=first.json_path.removeprefix("$").removeprefix("."))
        raise InputError(first.message, place=place)
