"""Schemas of a scheduler's configuration: KubeSchedulerConfiguration, and its predecessor Policy.

Both are built from the records that decode such a file strictly, so an editor with these schemas and kschedx refuse the
same fields. As in Go, null equals an absent field. The schemas omit what only kube-scheduler's validation refuses, such
as a value out of range or an unknown plugin.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct, inspect

from kschedx.framework.args import ARGS_TYPES
from kschedx.framework.config.document import KIND, ConfigurationDocument, ExtenderTLSConfig, PluginConfig
from kschedx.kube.documents import Json
from kschedx.kube.duration import Duration
from kschedx.legacy.policy import KIND as POLICY_KIND
from kschedx.legacy.policy import TLS_FIELDS, VERSION, PolicyDocument, PolicyExtender
from kschedx.releases import VERSIONS, resolve
from kschedx.releases.release import CONFIG_VERSIONS, last_to_read
from kschedx.schemas.parts import DIALECT, json_object

_DURATION = r"^[+-]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"


def configuration_schema() -> Json:
    fields = _fields(ConfigurationDocument)
    fields |= {"apiVersion": {"enum": list(CONFIG_VERSIONS)}, "kind": {"const": KIND}}
    schema = {"$schema": DIALECT, "title": KIND, **json_object(fields), "required": ["apiVersion", "kind"]}
    return schema | {"allOf": [_of_version(version) for version in CONFIG_VERSIONS]}


def policy_schema() -> Json:
    fields = _fields(PolicyDocument)
    fields |= {"apiVersion": {"enum": [VERSION, None]}, "kind": {"const": POLICY_KIND}}
    return {"$schema": DIALECT, "title": POLICY_KIND, **json_object(fields), "required": ["kind"]}


def _of_version(version: str) -> Json:
    """Return a schema without the fields that the last Kubernetes version that reads this API version does not have in
    it."""
    release = resolve(last_to_read(version) or VERSIONS[0], None)
    lacking = [_without(path.split(".")) for path in release.missing_fields[version]]
    then: Json = {"allOf": lacking} if lacking else {}
    return {"if": {"properties": {"apiVersion": {"const": version}}}, "then": then}


def _without(steps: Sequence[str]) -> Json:
    """Return a schema in which the field at the end of the steps is null or absent. Steps are those of
    `Release.missing_fields`."""
    key, is_list, plugin = steps[0].partition("[]")
    inner: Json = _without(steps[1:]) if len(steps) > 1 else {"type": "null"}
    if plugin:
        inner = {"if": _is_of(plugin.strip("{}")), "then": inner}
    return {"properties": {key: {"items": inner} if is_list else inner}}


def _fields(record: type[Struct]) -> dict[str, Json]:
    """Return the schema of each field of a record; every field may be null."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    fields = {field.encode_name: _of(field.type) for field in info.fields}
    return fields | {"tlsConfig": _policy_tls()} if record is PolicyExtender else fields


def _policy_tls() -> Json:
    """Return the schema of a TLS configuration, with Go's field names or those of later versions."""
    later = _fields(ExtenderTLSConfig)
    return _record(later | {name: later[own] for name, own in TLS_FIELDS.items()})


def _record(fields: Mapping[str, Json]) -> Json:
    return {"type": ["object", "null"], "properties": fields, "additionalProperties": False}


def _of(kind: inspect.Type) -> Json:
    match kind:
        case inspect.UnionType(types=types):
            return _of(next(item_type for item_type in types if not isinstance(item_type, inspect.NoneType)))
        case inspect.StructType(cls=cls):
            schema = _record(_fields(cls))
            return schema | {"allOf": _arguments()} if cls is PluginConfig else schema
        case inspect.VarTupleType(item_type=item):
            return {"type": ["array", "null"], "items": _of(item)}
        case inspect.DictType(value_type=value):
            return {"type": ["object", "null"], "additionalProperties": _of(value)}
        case inspect.IntType(ge=ge, le=le):
            bounds = {"minimum": ge, "maximum": le}
            known = {name: bound for name, bound in bounds.items() if bound is not None}
            return {"type": ["integer", "null"], **known}
        case inspect.FloatType():
            return {"type": ["number", "null"]}
        case inspect.BoolType():
            return {"type": ["boolean", "null"]}
        case inspect.StrType() | inspect.BytesType():
            return {"type": ["string", "null"]}
        case inspect.CustomType(cls=cls) if cls is Duration:
            return {"type": ["string", "null"], "pattern": _DURATION}
        case _:
            return {"type": ["object", "null"]}


def _arguments() -> list[Json]:
    """Return the schemas of the arguments of Kubernetes' own plugins; other plugins accept any arguments."""
    return [
        {"if": _is_of(plugin), "then": {"properties": {"args": _record(_head(plugin) | _fields(kind))}}}
        for plugin, kind in ARGS_TYPES.items()
    ]


def _head(plugin: str) -> dict[str, Json]:
    return {
        "apiVersion": {"enum": [*CONFIG_VERSIONS, "", None]},
        "kind": {"enum": [f"{plugin}Args", "", None]},
    }


def _is_of(plugin: str) -> Json:
    return {"required": ["name"], "properties": {"name": {"const": plugin}}}
