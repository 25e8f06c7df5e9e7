"""What each field holds: a name, an amount, a time, ... Made from the records of `api`, so that no field is forgotten.

A field that no table here names is a name, and is replaced; one that no record has is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeGuard

import msgspec
from msgspec import Struct, inspect

from kschedx.api import optional_admission, selectors, storage, types
from kschedx.api.timestamps import nanoseconds
from kschedx.api.workloads import REVISION, TEMPLATE_PATHS
from kschedx.errors import InputError
from kschedx.snapshot import events
from kschedx.snapshot.build import TYPED
from kschedx.snapshot.kinds import GROUPS

DNS_SUBDOMAIN = 253
DNS_LABEL = 63
LABEL_VALUE = 63
PORT_NAME = 15
"""Bytes that a name may have."""
ANY = 2**31


class Names(Protocol):
    """Collects names, or replaces them."""

    def name(self, text: str, limit: int = DNS_SUBDOMAIN) -> str:
        """What is compared with other names, whole or as the part of one, and may be `limit` bytes long."""
        ...

    def value(self, key: str, text: str) -> str:
        """The value of a label or taint of this key."""
        ...

    def compared(self, key: str) -> None:
        """The values of labels or taints of this key are compared as numbers."""
        ...

    def ordinal(self, number: int) -> None:
        """A name with this number behind it will be made from another one."""
        ...

    def uid(self, text: str) -> str: ...

    def ip(self, text: str) -> str: ...

    def message(self, text: str) -> str:
        """A text of kube-scheduler's, with names in it."""
        ...


Json = dict[str, object]
Change = Callable[[object, Names], object]
"""A field's value with its names replaced; None where there is nothing to keep."""


# --- values


def _text(change: Callable[[str, Names], str | None]) -> Change:
    """For strings; what is of another type is left out. An empty one may say something: no storage class at all."""

    def changed(value: object, names: Names) -> object:
        if not isinstance(value, str):
            return None
        return change(value, names) if value else value

    return changed


def _named(limit: int) -> Change:
    return _text(lambda text, names: names.name(text, limit))


_name = _named(DNS_SUBDOMAIN)
_kept = _text(lambda text, _: text)


def _number(value: object, _: Names) -> object:
    return value if isinstance(value, bool | int | float) else None


def _ordinal(value: object, names: Names) -> object:
    if isinstance(value, int):
        names.ordinal(value)
    return _number(value, names)


_QUANTITY = re.compile(r"[+-]?[0-9.]+(?:[eE][+-]?[0-9]+|[numkKMGTPE]?i?)")


def _quantity(value: object, names: Names) -> object:
    if isinstance(value, str) and _QUANTITY.fullmatch(value) is None:
        return names.name(value)
    return value if isinstance(value, str | int | float) else None


def _time(text: str, _: Names) -> str | None:
    """Times stay: which pod started first decides about victims, and which event is the last about notes."""
    try:
        nanoseconds(text)
    except InputError:
        return None
    return text


_VERSION = re.compile(r"v?[0-9]+\.[0-9]+(?:\.[0-9]+)?(?![0-9])", re.ASCII)


def _version(text: str, _: Names) -> str | None:
    """`v1.36.2` of `v1.36.2-gke.1282001`: the release, without who built it."""
    found = _VERSION.match(text)
    return found[0] if found else None


def _list(change: Change) -> Change:
    def changed(value: object, names: Names) -> object:
        return [change(item, names) for item in value] if isinstance(value, list) else None

    return changed


def _is_map(value: object) -> TypeGuard[Mapping[str, object]]:
    return isinstance(value, dict)


# --- maps


def key(text: str, names: Names) -> str:
    """A label's or taint's key, or the name of a resource: `name` or `example.com/name`."""
    return names.name(text, DNS_LABEL)


def _labels(value: object, names: Names) -> object:
    if not _is_map(value):
        return None
    return {key(name, names): names.value(name, text) for name, text in value.items() if isinstance(text, str)}


_HUGEPAGES = re.compile(r"(?:requests\.)?hugepages-[0-9.]+[a-zA-Z]{0,2}")


def _resource(name: str, names: Names) -> str:
    return name if _HUGEPAGES.fullmatch(name) else key(name, names)


def _resources(value: object, names: Names) -> object:
    if not _is_map(value):
        return None
    return {_resource(name, names): _quantity(amount, names) for name, amount in value.items()}


def _disrupted(value: object, names: Names) -> object:
    """Pods to the time of their eviction."""
    if not _is_map(value):
        return None
    return {names.name(pod): _time(time, names) or "" for pod, time in value.items() if isinstance(time, str)}


# --- annotations


class _PodSignature(Struct, frozen=True, rename="camel"):
    pod_controller: types.OwnerReference = types.OwnerReference()


class _AvoidedPods(Struct, frozen=True, rename="camel"):
    pod_signature: _PodSignature = _PodSignature()


class _Avoided(Struct, frozen=True, rename="camel"):
    prefer_avoid_pods: tuple[_AvoidedPods, ...] = ()


def _encoded(change: Change) -> Change:
    """For JSON in a string; what is none is left out."""

    def changed(text: str, names: Names) -> str | None:
        try:
            value: object = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):
            return None
        return msgspec.json.encode(change(value, names)).decode()

    return _text(changed)


def _label_pairs(text: str, names: Names) -> str:
    """`key=value,other=value`"""
    pairs = [[part.strip() for part in pair.split("=")] for pair in text.split(",")]
    return ",".join(
        f"{key(pair[0], names)}={names.value(pair[0], pair[1])}" if len(pair) == 2 else names.name("=".join(pair))
        for pair in pairs
    )


def _digits(text: str, _: Names) -> str | None:
    return text if text.isascii() and text.isdigit() else None


def _annotations(value: object, names: Names) -> object:
    if not _is_map(value):
        return None
    return _some({name: ANNOTATIONS[name](text, names) for name, text in value.items() if name in ANNOTATIONS})


def _some(fields: Json) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


# --- records


class Record:
    """A map with known fields."""

    def __init__(self, fields: Mapping[str, Change]) -> None:
        self.fields = dict(fields)

    def __call__(self, value: object, names: Names) -> object:
        if not _is_map(value):
            return None
        found: Json = {}
        for name, item in value.items():
            change = self.fields.get(name)
            if change is not None and (changed := change(item, names)) is not None:
                found[name] = changed
        return found

    def both(self, other: Mapping[str, Change]) -> Record:
        """With the fields of another one too."""
        fields = dict(self.fields)
        for name, change in other.items():
            own = fields.get(name)
            both = own.both(change.fields) if isinstance(own, Record) and isinstance(change, Record) else change
            fields[name] = both
        return Record(fields)


def _requirement(fields: Mapping[str, Change]) -> Change:
    """A condition on a label, a taint or a toleration: what its value is like depends on its key."""
    record = Record({name: change for name, change in fields.items() if name not in ("value", "values")})

    def changed(value: object, names: Names) -> object:
        if not _is_map(value):
            return None
        found = record(value, names)
        label = value.get("key")
        if not isinstance(label, str) or not isinstance(found, dict):
            return found
        if value.get("operator") in (selectors.Operator.GT, selectors.Operator.LT):
            names.compared(label)
        text, texts = value.get("value"), value.get("values")
        if isinstance(text, str) and text:
            found["value"] = names.value(label, text)
        if isinstance(texts, list):
            found["values"] = [names.value(label, one) for one in texts if isinstance(one, str)]
        return found

    return changed


def _condition(fields: Mapping[str, Change]) -> Change:
    """A pod's condition. Only what kube-scheduler says of it is read; others' texts may hold anything."""
    record = Record(fields)
    silent = Record({name: change for name, change in fields.items() if name != "message"})

    def changed(value: object, names: Names) -> object:
        by_scheduler = _is_map(value) and value.get("type") == "PodScheduled"
        return (record if by_scheduler else silent)(value, names)

    return changed


_uid, _ip, _message = (
    _text(lambda text, names: names.uid(text)),
    _text(lambda text, names: names.ip(text)),
    _text(lambda text, names: names.message(text)),
)
_any_name, _label_key, _when = _named(ANY), _text(key), _text(_time)

BY_FIELD: Mapping[str, Change] = {
    "namespace": _named(DNS_LABEL),
    "uid": _uid,
    "annotations": _annotations,
    "host_ip": _ip,
    "scheduler_name": _kept,
    "start": _ordinal,
    "disrupted_pods": _disrupted,
    "extended_resource_name": _text(_resource),
    "kubelet_version": _text(_version),
    # times
    "creation_timestamp": _when,
    "deletion_timestamp": _when,
    "start_time": _when,
    "event_time": _when,
    "last_timestamp": _when,
    "deprecated_last_timestamp": _when,
    "last_observed_time": _when,
    # images
    "image": _any_name,
    "names": _list(_any_name),
    "reference": _any_name,
    # keys of labels and taints
    "key": _label_key,
    "topology_key": _label_key,
    "topology_keys": _list(_label_key),
    "match_label_keys": _list(_label_key),
    "mismatch_label_keys": _list(_label_key),
    # what a scheduler said, and under which name
    "message": _message,
    "note": _message,
    "reporting_component": _kept,
    "reporting_controller": _kept,
    "component": _kept,
}
"""The fields that hold no plain name, whichever record they are in. A scheduler's name stays: a configuration that is
not in the snapshot has it too."""

NAMES: Mapping[type[Struct], Change] = {
    types.Container: _named(DNS_LABEL),
    types.ContainerStatus: _named(DNS_LABEL),
    types.ContainerPort: _named(PORT_NAME),
    types.Volume: _named(DNS_LABEL),
}
"""The records whose `name` has to be shorter than others."""

_WRAPPED: Mapping[type[Struct], Callable[[Mapping[str, Change]], Change]] = {
    types.Taint: _requirement,
    types.Toleration: _requirement,
    selectors.LabelSelectorRequirement: _requirement,
    selectors.NodeSelectorRequirement: _requirement,
    storage.TopologySelectorLabelRequirement: _requirement,
    types.PodCondition: _condition,
}


def _of_record(kind: type[Struct]) -> dict[str, Change]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    return {
        field.encode_name: (NAMES.get(kind) if field.name == "name" else BY_FIELD.get(field.name))
        or _of_type(field.type)
        for field in info.fields
    }


def _of_type(kind: inspect.Type) -> Change:
    match kind:
        case inspect.StructType(cls=cls):
            return _WRAPPED.get(cls, Record)(_of_record(cls))
        case inspect.VarTupleType(item_type=item):
            return _list(_of_type(item))
        case inspect.DictType(value_type=inspect.StrType()):
            return _labels
        case inspect.DictType():
            return _resources
        case inspect.StrType():
            return _name
        case inspect.UnionType(types=parts):
            parts = tuple(part for part in parts if not isinstance(part, inspect.NoneType))
            return _of_type(parts[0]) if len(parts) == 1 else _quantity
        case inspect.BoolType() | inspect.IntType():
            return _number
        case _:
            raise TypeError(f"no rule for {kind}")


_TOLERATIONS = _encoded(_list(_requirement(_of_record(types.Toleration))))
ANNOTATIONS: Mapping[str, Change] = {
    types.AVOID_PODS: _encoded(Record(_of_record(_Avoided))),
    REVISION: _text(_digits),
    storage.BETA_STORAGE_CLASS: _name,
    storage.BIND_COMPLETED: _name,
    storage.SELECTED_NODE: _name,
    storage.MIGRATED_PLUGINS: _name,
    **dict.fromkeys(storage.DEFAULT_CLASS, _name),
    optional_admission.NODE_SELECTOR: _text(_label_pairs),
    optional_admission.DEFAULT_TOLERATIONS: _TOLERATIONS,
    optional_admission.TOLERATIONS_WHITELIST: _TOLERATIONS,
}
"""The annotations that are read; no other is kept."""


# --- kinds


class _Ordinals(Struct, frozen=True):
    start: int = 0


class _StatefulSetSpec(Struct, frozen=True, rename="camel"):
    ordinals: _Ordinals | None = None
    volume_claim_templates: tuple[storage.PersistentVolumeClaim, ...] = ()


def _records() -> dict[str, Record]:
    head = {"metadata": _of_type(inspect.type_info(types.ObjectMeta))}
    kinds: dict[str, type[Any]] = {**TYPED, "Pod": types.Pod, "Node": types.Node, events.KIND: events.EventItem}
    records = {kind: Record(head).both(_of_record(record)) for kind, record in kinds.items()}
    for kind, path in TEMPLATE_PATHS.items():
        fields = _of_record(types.PodTemplateSpec)
        for part in reversed(path):
            fields = {part: Record(fields)}
        records[kind] = records.get(kind, Record(head)).both(fields)
    records["StatefulSet"] = records["StatefulSet"].both({"spec": Record(_of_record(_StatefulSetSpec))})
    return records


RECORDS: Mapping[str, Record] = _records()
"""Kind to what its objects hold."""
POD: Mapping[str, Record] = {name: part for name, part in RECORDS["Pod"].fields.items() if isinstance(part, Record)}
"""The parts of a pod."""

_API_VERSION = re.compile(r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?")


def change_object(item: Mapping[str, object], names: Names) -> Json | None:
    """The object, or None for one of a kind that scheduling does not read."""
    kind, written = item.get("kind"), item.get("apiVersion")
    if not isinstance(kind, str) or not isinstance(written, str):
        return None
    group, _, version = written.rpartition("/")
    is_known = group in events.GROUPS if kind == events.KIND else GROUPS.get(kind) == group
    if not is_known or not _API_VERSION.fullmatch(version):
        return None
    changed = RECORDS[kind](item, names)
    return {"apiVersion": written, "kind": kind, **changed} if isinstance(changed, dict) else None
