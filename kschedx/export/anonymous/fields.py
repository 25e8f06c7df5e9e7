"""What each field holds: a name, an amount, a time, and so on.

The tables derive from the records of `kube`, so no field is forgotten. A field in none of the tables is a name, and is
replaced; a field in no record is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import cast

from msgspec import Struct, inspect

from kschedx import satellites
from kschedx.apiserver import admission
from kschedx.export.anonymous import values
from kschedx.export.anonymous.values import Names, Record, Replacement, keep_flags
from kschedx.findings.constraints import MAINTENANCE_ANNOTATIONS
from kschedx.kube import autoscalers, descheduling, devices, kueue, other_schedulers, selectors, storage, types
from kschedx.kube.conditions import TimedCondition
from kschedx.kube.documents import Json
from kschedx.kube.kinds import KINDS, kind_of
from kschedx.kube.names import ZONE
from kschedx.kube.workloads import REVISION, SYNC_MARKS
from kschedx.patterns import lazy_pattern
from kschedx.snapshot import events


def _annotations(value: object, names: Names) -> object:
    if not values.is_map(value):
        return None
    changed = {key: ANNOTATIONS[key](item, names) for key, item in value.items() if key in ANNOTATIONS}
    return {key: item for key, item in changed.items() if item is not None}


_key = values.text(values.label_key)
_time = values.text(values.time)
_uid = values.text(lambda text, names: names.uid(text))
_ip = values.text(lambda text, names: names.ip(text))
_message = values.text(lambda text, names: names.message(text))
_statement = values.text(lambda text, names: names.statement(text))
_image = values.name(values.ANY_LENGTH)
_number = values.text(lambda text, _: text if re.fullmatch(r"[+-]?[0-9]{1,19}", text) else "")
_quantity = values.text(lambda text, _: text if re.fullmatch(r"[0-9.]{1,19}[a-zA-Z]{0,2}", text) else "")
_dns_label = values.name(values.DNS_LABEL)

_TOPOLOGY = frozenset({
    other_schedulers.SCOPE_ATTRIBUTE, other_schedulers.POLICY_ATTRIBUTE, other_schedulers.MAX_NUMA_NODES_ATTRIBUTE,
    other_schedulers.NUMA_ZONE, *other_schedulers.SCOPES, *other_schedulers.POLICIES,
    *other_schedulers.TOPOLOGY_POLICIES,
})  # fmt: skip
_setting = values.text(lambda text, _: text if text in _TOPOLOGY or re.fullmatch(r"[0-9]{1,4}", text) else "")


_DURATION = lazy_pattern(r"(?:[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ns|us|ms|s|m|h))+")
_lasting = values.text(lambda text, _: text if text == "Never" or _DURATION.fullmatch(text) else "")
_schedule = values.text(lambda text, _: text if re.fullmatch(r"@[a-z]{4,8}|[0-9*/, -]{1,40}", text) else "")

_PLATFORMS = ("linux", "windows", "amd64", "arm64", "arm", "s390x", "ppc64le", "riscv64")
_platform = values.text(lambda text, _: text if text in _PLATFORMS else "")
_policy = values.text(lambda text, _: text if text in ("AlwaysAllow", "IfHealthyBudget") else "")


def _expression(written: str, names: Names) -> str:
    replaced = cast(Callable[[str, Names], str], satellites.provider(satellites.ANONYMOUS_EXPRESSIONS))
    return replaced(written, names)


def _share(value: object, _: Names) -> object:
    """Keep a number or a percentage."""
    is_share = isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}%", value) is not None
    return value if is_share or (isinstance(value, int) and not isinstance(value, bool)) else None


def _value_of(label: str) -> Replacement:
    return values.text(lambda text, names: names.value(label, text))


_BY_FIELD: Mapping[str, Replacement] = {
    "numa": values.text(lambda text, _: text if re.fullmatch(r"node-[0-9]{1,3}", text) else ""),
    "setting": _setting,
    "choice": _setting,
    "zone_type": _setting,
    "topology_policies": values.list_of(_setting),
    "namespace": _dns_label,
    "uid": _uid,
    "annotations": _annotations,
    "host_ip": _ip,
    "unhealthy_pod_eviction_policy": _policy,
    "start": values.ordinal,
    "disrupted_pods": values.times,
    # numbers of pods, or percentages of them
    "min_available": _share,
    "max_unavailable": _share,
    "max_surge": _share,
    "extended_resource_name": values.text(values.resource),
    "kubelet_version": values.text(values.version),
    "operating_system": _platform,
    "architecture": _platform,
    "attributes": values.attributes,
    "expression": values.text(_expression),
    "match_attribute": _key,
    "distinct_attribute": _key,
    "capacity_key": _key,
    "share_id": _uid,
    # durations, or `Never`
    "expire_after": _lasting,
    "consolidate_after": _lasting,
    "termination_grace_period": _lasting,
    # times
    "creation_timestamp": _time,
    "deletion_timestamp": _time,
    "allocation_timestamp": _time,
    "start_time": _time,
    "event_time": _time,
    "last_timestamp": _time,
    "deprecated_last_timestamp": _time,
    "last_observed_time": _time,
    "last_transition_time": _time,
    "last_heartbeat_time": _time,
    "completion_time": _time,
    "renew_time": _time,
    "requeue_at": _time,
    # images
    "image": _image,
    "names": values.list_of(_image),
    "reference": _image,
    # keys of labels and taints
    "key": _key,
    "topology_key": _key,
    "topology_keys": values.list_of(_key),
    "levels": values.list_of(_key),
    "match_label_keys": values.list_of(_key),
    "mismatch_label_keys": values.list_of(_key),
    # a scheduler's messages
    "message": _message,
    # the data of a ConfigMap
    "data": values.config_map,
    # a path of names
    "provider_id": _message,
    "note": _message,
}
"""Fields that hold no plain name, in any record."""

_NAMES: Mapping[type[Struct], Replacement] = {
    types.Container: _dns_label,
    types.ContainerStatus: _dns_label,
    descheduling.ContainerFacts: _dns_label,
    types.ContainerPort: values.name(values.PORT_NAME),
    types.Volume: _dns_label,
}
"""Records whose `name` has a shorter maximum length than other names."""

_OF_RECORD: Mapping[tuple[type[Struct], str], Replacement] = {
    (TimedCondition, "message"): _statement,
    (kueue.AdmissionCheckState, "message"): _statement,
    (types.ContainerStateWaiting, "message"): _statement,
    (types.ContainerStateTerminated, "message"): _statement,
    (types.PodStatus, "message"): _statement,
    (types.NamespaceCondition, "message"): _statement,
    # no scheduling decision reads what a claim's volume is filled with
    (types.PersistentVolumeClaimSpec, "data_source"): lambda _value, _names: None,
    (types.PersistentVolumeClaimSpec, "data_source_ref"): lambda _value, _names: None,
    (autoscalers.DisruptionBudget, "nodes"): _share,
    (autoscalers.DisruptionBudget, "duration"): _lasting,
    (autoscalers.DisruptionBudget, "schedule"): _schedule,
    (autoscalers.Subnet, "zone"): _value_of(ZONE),
    (autoscalers.CapacityReservation, "id"): _value_of(f"{autoscalers.AWS}/capacity-reservation-id"),
    (autoscalers.CapacityReservation, "reservation_type"): _value_of(f"{autoscalers.AWS}/capacity-reservation-type"),
    (autoscalers.CapacityReservation, "instance_type"): _value_of("node.kubernetes.io/instance-type"),
    (autoscalers.CapacityReservation, "availability_zone"): _value_of(ZONE),
    # prices are confidential, and decide only the order of instance types
    (autoscalers.NodeOverlaySpec, "price"): lambda _value, _names: None,
    (autoscalers.NodeOverlaySpec, "price_adjustment"): lambda _value, _names: None,
    (other_schedulers.SchedulerConfigSpec, "default_node_selector"): values.text(values.label_pairs),
    (other_schedulers.PodExplanation, "message"): _statement,
    (other_schedulers.SchedulingCondition, "message"): _statement,
    (other_schedulers.MigrationStatus, "message"): _statement,
    (kueue.TopologySpec, "levels"): values.list_of(Record({"nodeLabel": _key})),
    (kueue.QueueResourceQuota, "name"): values.text(values.resource),
    (kueue.ResourceGroup, "covered_resources"): values.list_of(values.text(values.resource)),
}
"""Fields that have another meaning in one record than elsewhere."""

_WRAPPED: Mapping[type[Struct], Callable[[Mapping[str, Replacement]], Replacement]] = {
    types.Taint: values.requirement,
    types.Toleration: values.requirement,
    selectors.SelectorRequirement: values.requirement,
    storage.TopologySelectorLabelRequirement: values.requirement,
    autoscalers.NodeSelectorRequirementWithMinValues: values.requirement,
    types.PodCondition: values.condition,
    descheduling.ConditionFacts: values.condition,
}
"""Records in which one field decides how another is read."""


@cache
def _record_replacements(kind: type[Struct]) -> Mapping[str, Replacement]:
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    replacements: dict[str, Replacement] = {}
    for field in info.fields:
        special = _NAMES.get(kind) if field.name == "name" else _BY_FIELD.get(field.name)
        special = _OF_RECORD.get((kind, field.name), special)
        replacements[field.encode_name] = special or _type_replacement(field.type)
    return replacements


def _type_replacement(kind: inspect.Type) -> Replacement:
    match kind:
        case inspect.StructType(cls=cls):
            return _WRAPPED.get(cls, Record)(_record_replacements(cls))
        case inspect.VarTupleType(item_type=item):
            return values.list_of(_type_replacement(item))
        case inspect.DictType(value_type=inspect.StrType()):
            return values.labels
        case inspect.DictType(value_type=inspect.UnionType()):
            return values.amounts
        case inspect.DictType(value_type=inspect.StructType() as item):
            return values.map_by_name(_type_replacement(item))
        case inspect.StrType():
            return values.name()
        case inspect.UnionType(types=parts):
            known = [part for part in parts if not isinstance(part, inspect.NoneType)]
            return _type_replacement(known[0]) if len(known) == 1 else values.quantity
        case inspect.BoolType() | inspect.IntType():
            return values.number
        case _:
            raise TypeError(f"no rule for {kind}")


# --- annotations


def _topology_level(written: str, names: Names) -> str:
    """Return the level of a topology, or `true` for an unconstrained one."""
    return written if written in ("true", "false") else values.label_key(written, names)


def _machine(written: str, names: Names) -> str:
    """Return the namespace and name of a Machine, whose name begins with that of its MachineSet."""
    namespace, _, machine = written.rpartition("/")
    machine_set = machine.rpartition("-")[0]
    return f"{names.name(namespace)}/{names.name(machine_set)}-x" if namespace and machine_set else ""


_TOLERATIONS = values.json_text(values.list_of(_type_replacement(inspect.type_info(types.Toleration))))

ANNOTATIONS: Mapping[str, Replacement] = {
    types.AVOID_PODS: values.json_text(Record(_record_replacements(types.AvoidPods))),
    REVISION: values.text(values.revision),
    devices.EXTENDED_RESOURCE_CLAIM: values.name(),
    storage.BETA_STORAGE_CLASS: values.name(),
    storage.BIND_COMPLETED: values.name(),
    storage.PROVISIONED_BY: values.name(),
    storage.SELECTED_NODE: values.name(),
    storage.MIGRATED_PLUGINS: values.name(),
    **dict.fromkeys(storage.DEFAULT_CLASS, values.name()),
    **dict.fromkeys(admission.SELECTOR_ANNOTATIONS, values.text(values.label_pairs)),
    admission.DEFAULT_TOLERATIONS: _TOLERATIONS,
    admission.TOLERATIONS_WHITELIST: _TOLERATIONS,
    **dict.fromkeys(
        (autoscalers.CPU, autoscalers.MEMORY, autoscalers.DISK, autoscalers.GPU_COUNT, autoscalers.MAX_PODS), _quantity
    ),
    autoscalers.GROUP_SIZE: _number,
    **dict.fromkeys(autoscalers.CONSUMED_REQUESTS, values.name()),
    **dict.fromkeys(autoscalers.EXCLUSIVE_TOPOLOGY, _key),
    autoscalers.GPU_TYPE: values.text(values.resource),
    autoscalers.LABELS: values.text(values.label_pairs),
    autoscalers.TAINTS: values.text(values.taint_list),
    **dict.fromkeys((autoscalers.OWNER_NAME, autoscalers.OWNER_NAMESPACE), values.name()),
    autoscalers.OWNER_KIND: values.text(lambda text, _: text if text in ("MachineSet", "MachineDeployment") else ""),
    autoscalers.MACHINE: values.text(_machine),
    autoscalers.NODE_POOL_ID: values.name(),
    **dict.fromkeys(autoscalers.GROUP_NAMES, values.name()),
    **dict.fromkeys(
        (autoscalers.YUNIKORN_QUEUE, autoscalers.YUNIKORN_APPLICATION, autoscalers.TASK_GROUP), values.name()
    ),
    autoscalers.TASK_GROUPS: values.json_text(values.list_of(Record(_record_replacements(other_schedulers.TaskGroup)))),
    autoscalers.GANG_LEAST: _number,
    autoscalers.HAMI_DEVICES: values.text(lambda _, __: ""),
    autoscalers.HAMI_PHASE: values.text(lambda text, _: text if text in ("allocating", "success", "failed") else ""),
    kueue.WORKLOAD_ANNOTATION: values.name(),
    kueue.GROUP_TOTAL: _number,
    **dict.fromkeys(kueue.PLACED_ANNOTATIONS, values.text(_topology_level)),
    **dict.fromkeys((descheduling.EVICT, descheduling.PREFER_NO_EVICTION), values.text(lambda _, __: "true")),
    descheduling.CONFIG_SOURCE: values.text(lambda text, _: text if text in ("api", "file", "http") else "file"),
    **dict.fromkeys(SYNC_MARKS, values.text(lambda _, __: "synced")),
    autoscalers.MIRROR: values.text(lambda _, __: "mirror"),
    autoscalers.DELETION_COST: _number,
    **dict.fromkeys(autoscalers.MAX_SIZES, _number),
    autoscalers.PAUSED_REPLICAS: _number,
    **dict.fromkeys(
        (autoscalers.PAUSED, autoscalers.PAUSED_MACHINES),
        values.text(lambda text, _: text if text in ("true", "false") else ""),
    ),
    **dict.fromkeys((autoscalers.LIMIT_RANGER, autoscalers.VERTICAL_UPDATES), _message),
    other_schedulers.QUOTA_NAMESPACES: values.json_text(values.list_of(values.name())),
    **dict.fromkeys((other_schedulers.QUOTA_RUNTIME, other_schedulers.QUOTA_REQUEST), values.json_text(values.amounts)),
    **dict.fromkeys(
        (
            *(autoscalers.SCALE_DOWN_DISABLED, autoscalers.DO_NOT_DISRUPT),
            *(autoscalers.SAFE_TO_EVICT, autoscalers.DAEMON_SET_POD),
        ),
        values.text(lambda text, _: text if text in ("true", "false", "on-completion") else ""),
    ),
    autoscalers.SAFE_TO_EVICT_LOCAL_VOLUMES: values.text(
        lambda text, names: ",".join(map(names.name, text.split(",")))
    ),
    autoscalers.SCALE_UP_DELAY: values.text(lambda text, _: text if re.fullmatch(r"[0-9.hmsnuµ]{1,19}", text) else ""),
    autoscalers.COMPUTE_TYPE: values.text(lambda text, _: text if text in ("ec2", "fargate") else ""),
    **dict.fromkeys(MAINTENANCE_ANNOTATIONS, _message),
    **dict.fromkeys((other_schedulers.MINIMUM_PREEMPTABLE_PRIORITY, other_schedulers.TOLERATION_SECONDS), _number),
}
"""All others are omitted."""


# --- kinds


_CLUSTER_API = frozenset(key for key, kind in KINDS.items() if kind.addon == "Cluster API")
"""Kinds whose templates are a provider's own."""


def _records() -> dict[str, Record]:
    deletion = {"finalizers": values.list_of(values.name()), "deletionGracePeriodSeconds": values.number}
    head = {"metadata": Record({**_record_replacements(types.ObjectMeta), **deletion})}
    records = {events.KIND: Record(head).both(_record_replacements(events.EventItem))}
    for key, kind in KINDS.items():
        if kind.key in _CLUSTER_API:
            continue
        record_change = Record(head)
        for record in filter(None, (kind.record, kind.kept)):
            record_change = record_change.both(_record_replacements(record))
        fields = _record_replacements(types.PodTemplateSpec)
        for part in reversed(kind.template):
            fields = {part: Record(fields)}
        records[key] = record_change.both(fields) if kind.template else record_change
    return records


RECORDS: Mapping[str, Record] = _records()  # the record of each kind
POD: Mapping[str, Record] = {key: part for key, part in RECORDS["Pod"].fields.items() if isinstance(part, Record)}

_API_VERSION = lazy_pattern(r"|v[0-9]+(?:(?:alpha|beta)[0-9]+)?")


def change_object(item: Mapping[str, object], names: Names) -> Json | None:
    """Return the object with its names replaced; None for one that scheduling does not read."""
    kind, written = item.get("kind"), item.get("apiVersion") or ""
    if not isinstance(kind, str) or not isinstance(written, str):
        return None
    group, _, version = written.rpartition("/")
    known = kind_of(kind, group)
    key = known.key if known else kind
    is_known = known is not None or (kind == events.KIND and _is_read(item, group))
    if not is_known or not _API_VERSION.fullmatch(version) or key not in RECORDS:
        return None
    metadata = item.get("metadata")
    names.begin(f"{kind} {metadata.get('name', '')}" if isinstance(metadata, Mapping) else kind)
    changed = RECORDS[key](item, names)
    if key == "Deployment" and changed is not None:
        keep_flags(item, changed, names)
    return None if changed is None else {"apiVersion": written, "kind": kind, **changed}


def _is_read(event: Mapping[str, object], group: str) -> bool:
    """Return whether an event is kept. A truncated message is omitted: its last name may be incomplete, and cannot be
    found again."""
    of_clouds = {events.PROVISIONING_FAILED, events.EXTERNAL_PROVISIONING, *events.OF_NODE_GROUPS}
    left_out = {*of_clouds, *events.OF_EVICTION}
    if group not in events.GROUPS or event.get("reason") not in events.REASONS - left_out:
        return False
    texts = (event.get("message"), event.get("note"))
    return not any(isinstance(text, str) and events.is_cut(text) for text in texts)
