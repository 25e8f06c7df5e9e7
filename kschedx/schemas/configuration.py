"""What a scheduler is configured with: KubeSchedulerConfiguration, and Policy before it.

Both schemas are made of the records that such a file is decoded into, strictly, so an editor that uses them and kschedx
refuse the same fields. Go takes null for an absent field. Values that only kube-scheduler's validation refuses (a
range, a plugin that does not exist) are not in them.
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
from kschedx.releases.configuration import CONFIG_VERSIONS, last_to_read
from kschedx.schemas.parts import DIALECT, json_object

_DURATION = r"^[+-]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"


def configuration_schema() -> Json:
    fields = _fields(ConfigurationDocument)
    fields |= {"apiVersion": {"enum": list(CONFIG_VERSIONS)}, "kind": {"const": KIND}}
    made = {"$schema": DIALECT, "title": KIND, **json_object(fields), "required": ["apiVersion", "kind"]}
    return made | {"allOf": [_of_version(version) for version in CONFIG_VERSIONS]}


def policy_schema() -> Json:
    fields = _fields(PolicyDocument)
    fields |= {"apiVersion": {"enum": [VERSION, None]}, "kind": {"const": POLICY_KIND}}
    return {"$schema": DIALECT, "title": POLICY_KIND, **json_object(fields), "required": ["kind"]}


def _of_version(version: str) -> Json:
    """Without the fields that the last release that reads this version does not have in it."""
    release = resolve(last_to_read(version) or VERSIONS[0], None)
    lacking = [_without(path.split(".")) for path in release.missing_fields[version]]
    then: Json = {"allOf": lacking} if lacking else {}
    return {"if": {"properties": {"apiVersion": {"const": version}}}, "then": then}


def _without(steps: Sequence[str]) -> Json:
    """The field that the steps lead to is null or not there; steps as in `Release.missing_fields`."""
    key, is_list, plugin = steps[0].partition("[]")
    inner: Json = _without(steps[1:]) if len(steps) > 1 else {"type": "null"}
    if plugin:
        inner = {"if": _is_of(plugin.strip("{}")), "then": inner}
    return {"properties": {key: {"items": inner} if is_list else inner}}


def _fields(record: type[Struct]) -> dict[str, Json]:
    """Each field of a record, which may be null."""
    info = inspect.type_info(record)
    assert isinstance(info, inspect.StructType)
    fields = {field.encode_name: _of(field.type) for field in info.fields}
    return fields | {"tlsConfig": _policy_tls()} if record is PolicyExtender else fields


def _policy_tls() -> Json:
    """Under Go's names, or under those of later releases."""
    later = _fields(ExtenderTLSConfig)
    return _record(later | {name: later[own] for name, own in TLS_FIELDS.items()})


def _record(fields: Mapping[str, Json]) -> Json:
    return {"type": ["object", "null"], "properties": fields, "additionalProperties": False}


def _of(kind: inspect.Type) -> Json:
    match kind:
        case inspect.UnionType(types=types):
            return _of(next(one for one in types if not isinstance(one, inspect.NoneType)))
        case inspect.StructType(cls=cls):
            made = _record(_fields(cls))
            return made | {"allOf": _arguments()} if cls is PluginConfig else made
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
    """What the arguments of each plugin of Kubernetes' own may be; of others nothing is known here."""
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
