"""What an extender's answers are read into: the types of k8s.io/kube-scheduler/extender/v1.

The whole Node of core/v1 is among them, since an extender that keeps no cache of nodes answers with those.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
from msgspec import NODEFAULT, Struct

from kschedx.errors import InputError, UndecidableError
from kschedx.extenders.calls import ExtenderAnswer, ExtenderFailure, ExtenderRequest, Reply, Victims, path_of
from kschedx.kube.go_json import (
    BOOL,
    INT32,
    INT64,
    STRING,
    Custom,
    Go,
    GoJSONError,
    Map,
    Members,
    Number,
    Parsed,
    Record,
    Slice,
    Text,
    decode_first,
)
from kschedx.kube.quantity import parse_quantity
from kschedx.kube.types import Node, Pod
from kschedx.snapshot.snapshot import Manifests

# --- types that read themselves

_LAYOUT = "2006-01-02T15:04:05Z07:00"


def _time(value: Parsed) -> str | None:
    """metav1.Time."""
    if value is None:
        return None
    if isinstance(value, bool | Number) or not isinstance(value, str):
        found = "bool" if isinstance(value, bool) else "number" if isinstance(value, Number) else "object"
        found = found if isinstance(value, bool | Number | Members) else "array"
        raise GoJSONError(f"json: cannot unmarshal {found} into Go value of type string")
    complaint = _time_complaint(value)
    if complaint:
        raise GoJSONError(f"parsing time {_quote(value)}{complaint}")
    return value


_PIECES = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d{2}", "01"),
    ("-", "-"),
    (r"\d{2}", "02"),
    ("T", "T"),
    (r"\d{1,2}", "15"),
    (":", ":"),
    (r"\d{2}", "04"),
    (":", ":"),
    (r"\d{2}(?:[.,]\d+)?", "05"),
    (r"Z|[+-]\d{2}:\d{2}", "Z07:00"),
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def _time_complaint(text: str) -> str:
    """What time.Parse of RFC 3339 says of a text, after naming it; empty where it takes it."""
    left, found = text, []
    for pattern, element in _PIECES:
        match = re.compile(pattern, re.ASCII).match(left)
        if match is None:
            return f" as {_quote(_LAYOUT)}: cannot parse {_quote(left)} as {_quote(element)}"
        found.append(match[0])
        left = left[match.end() :]
        outside = _outside(element, match[0])
        if outside:
            return f": {outside} out of range"
    if left:
        return f": extra text: {_quote(left)}"
    year, month, day = int(found[0]), int(found[2]), int(found[4])
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return "" if 1 <= day <= _DAYS[month - 1] + leap else ": day out of range"


def _outside(element: str, digits: str) -> str:
    limits = {"01": ("month", 1, 12), "15": ("hour", 0, 23), "04": ("minute", 0, 59), "05": ("second", 0, 59)}
    if element not in limits:
        return ""
    name, low, high = limits[element]
    return "" if low <= int(digits[:2]) <= high else name


def _quote(text: str) -> str:
    """As package time quotes: what is not plain ASCII byte by byte."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    plain = "".join(
        char if " " <= char <= "~" else "".join(f"\\x{byte:02x}" for byte in char.encode()) for char in escaped
    )
    return f'"{plain}"'


def _quantity(value: Parsed) -> str | None:
    """resource.Quantity: a string or whatever else stands there, by its letters."""
    match value:
        case None:
            return None
        case bool():
            text = "true" if value else "false"
        case str():
            text = str(value)
        case _:
            text = "{}" if isinstance(value, Members) else "[]"
    text = text.strip()
    try:
        parse_quantity(text)
    except InputError as error:
        raise GoJSONError(error.message) from None
    return text


def _anything(_: Parsed) -> None:
    """metav1.FieldsV1 is kept as it is, and nobody reads it."""
    return


TIME = Custom("v1.Time", _time)
QUANTITY = Custom("resource.Quantity", _quantity)


def _strings(*names: str) -> dict[str, Go]:
    return dict.fromkeys(names, STRING)


# --- core/v1

_UID = Text("types.UID")
_OWNER_REFERENCE = Record(
    "v1.OwnerReference",
    {**_strings("apiVersion", "kind", "name"), "uid": _UID, "controller": BOOL, "blockOwnerDeletion": BOOL},
)
_MANAGED_FIELDS = Record(
    "v1.ManagedFieldsEntry",
    {
        **_strings("manager"),
        "operation": Text("v1.ManagedFieldsOperationType"),
        **_strings("apiVersion"),
        "time": TIME,
        **_strings("fieldsType"),
        "fieldsV1": Custom("v1.FieldsV1", _anything),
        **_strings("subresource"),
    },
)
_OBJECT_META = Record(
    "v1.ObjectMeta",
    {
        **_strings("name", "generateName", "namespace", "selfLink"),
        "uid": _UID,
        "resourceVersion": STRING,
        "generation": INT64,
        "creationTimestamp": TIME,
        "deletionTimestamp": TIME,
        "deletionGracePeriodSeconds": INT64,
        "labels": Map(STRING),
        "annotations": Map(STRING),
        "ownerReferences": Slice(_OWNER_REFERENCE),
        "finalizers": Slice(STRING),
        "managedFields": Slice(_MANAGED_FIELDS),
    },
)
_RESOURCES = Map(QUANTITY, "v1.ResourceList")
_TAINT = Record("v1.Taint", {**_strings("key", "value"), "effect": Text("v1.TaintEffect"), "timeAdded": TIME})
_CONFIG_SOURCE = Record(
    "v1.NodeConfigSource",
    {
        "configMap": Record(
            "v1.ConfigMapNodeConfigSource",
            {
                **_strings("namespace", "name"),
                "uid": _UID,
                **_strings("resourceVersion", "kubeletConfigKey"),
            },
            is_pointer=True,
        )
    },
    is_pointer=True,
)
_NODE_SPEC = Record(
    "v1.NodeSpec",
    {
        "podCIDR": STRING,
        "podCIDRs": Slice(STRING),
        "providerID": STRING,
        "unschedulable": BOOL,
        "taints": Slice(_TAINT),
        "configSource": _CONFIG_SOURCE,
        "externalID": STRING,
    },
)
_CONDITION = Record(
    "v1.NodeCondition",
    {
        "type": Text("v1.NodeConditionType"),
        "status": Text("v1.ConditionStatus"),
        "lastHeartbeatTime": TIME,
        "lastTransitionTime": TIME,
        **_strings("reason", "message"),
    },
)
_SYSTEM_INFO = Record(
    "v1.NodeSystemInfo",
    {
        **_strings("machineID", "systemUUID", "bootID", "kernelVersion", "osImage", "containerRuntimeVersion"),
        **_strings("kubeletVersion", "kubeProxyVersion", "operatingSystem", "architecture"),
        "swap": Record("v1.NodeSwapStatus", {"capacity": INT64}, is_pointer=True),
    },
)
_RUNTIME_HANDLER = Record(
    "v1.NodeRuntimeHandler",
    {
        "name": STRING,
        "features": Record(
            "v1.NodeRuntimeHandlerFeatures",
            {"recursiveReadOnlyMounts": BOOL, "userNamespaces": BOOL},
            is_pointer=True,
        ),
    },
)
_VOLUME_NAME = Text("v1.UniqueVolumeName")
_NODE_STATUS = Record(
    "v1.NodeStatus",
    {
        "capacity": _RESOURCES,
        "allocatable": _RESOURCES,
        "phase": Text("v1.NodePhase"),
        "conditions": Slice(_CONDITION),
        "addresses": Slice(Record("v1.NodeAddress", {"type": Text("v1.NodeAddressType"), "address": STRING})),
        "daemonEndpoints": Record(
            "v1.NodeDaemonEndpoints", {"kubeletEndpoint": Record("v1.DaemonEndpoint", {"Port": INT32})}
        ),
        "nodeInfo": _SYSTEM_INFO,
        "images": Slice(Record("v1.ContainerImage", {"names": Slice(STRING), "sizeBytes": INT64})),
        "volumesInUse": Slice(_VOLUME_NAME),
        "volumesAttached": Slice(Record("v1.AttachedVolume", {"name": _VOLUME_NAME, "devicePath": STRING})),
        "config": Record(
            "v1.NodeConfigStatus",
            {"assigned": _CONFIG_SOURCE, "active": _CONFIG_SOURCE, "lastKnownGood": _CONFIG_SOURCE, "error": STRING},
            is_pointer=True,
        ),
        "runtimeHandlers": Slice(_RUNTIME_HANDLER),
        "features": Record("v1.NodeFeatures", {"supplementalGroupsPolicy": BOOL}, is_pointer=True),
        "declaredFeatures": Slice(STRING),
    },
)
_TYPE_META = _strings("kind", "apiVersion")
_EMBEDDED = dict.fromkeys(_TYPE_META, "TypeMeta")
NODE = Record(
    "v1.Node",
    {**_TYPE_META, "metadata": _OBJECT_META, "spec": _NODE_SPEC, "status": _NODE_STATUS},
    embedded=_EMBEDDED,
)
_LIST_META = Record("v1.ListMeta", {**_strings("selfLink", "resourceVersion", "continue"), "remainingItemCount": INT64})
_NODE_LIST = Record(
    "v1.NodeList",
    {**_TYPE_META, "metadata": _LIST_META, "items": Slice(NODE)},
    is_pointer=True,
    embedded=_EMBEDDED,
)

# --- extender/v1

_FAILED_NODES = Map(STRING, "v1.FailedNodesMap")
FILTER_RESULT = Record(
    "v1.ExtenderFilterResult",
    {
        "Nodes": _NODE_LIST,
        "NodeNames": Slice(STRING),
        "FailedNodes": _FAILED_NODES,
        "FailedAndUnresolvableNodes": _FAILED_NODES,
        "Error": STRING,
    },
)
HOST_PRIORITIES = Slice(Record("v1.HostPriority", {"Host": STRING, "Score": INT64}), "v1.HostPriorityList")
_META_VICTIMS = Record(
    "v1.MetaVictims",
    {"Pods": Slice(Record("v1.MetaPod", {"UID": STRING}, is_pointer=True)), "NumPDBViolations": INT64},
    is_pointer=True,
)
PREEMPTION_RESULT = Record("v1.ExtenderPreemptionResult", {"NodeNameToMetaVictims": Map(_META_VICTIMS)})


# What an extender's reply says.
#
# Upstream: send, Filter, Prioritize and ProcessPreemption in pkg/scheduler/extender.go.

OK = 200


class ExtenderError(Exception):
    """The call failed; `str()` is kube-scheduler's error."""


class CrashError(Exception):
    """The answer makes kube-scheduler crash: it reads what is null."""


class AnsweredNode(Struct, frozen=True, kw_only=True):
    """A whole node of an answer; nothing is filled in."""

    manifest: Mapping[str, object]
    node: Node


class FilterAnswer(Struct, frozen=True, kw_only=True):
    names: tuple[str, ...] | None
    """NodeNames; None where they were not answered."""
    nodes: tuple[AnsweredNode, ...] | None
    """Nodes, whole; None where they were not answered."""
    failed: Mapping[str, str]
    failed_and_unresolvable: Mapping[str, str]


class AnsweredVictims(Struct, frozen=True, kw_only=True):
    uids: tuple[str, ...]
    pdb_violations: int


def filter_answer(question: ExtenderRequest, reply: Reply) -> FilterAnswer:
    """Raises `ExtenderError`."""
    result = _fields(_decoded(question, reply, FILTER_RESULT))
    error = result.get("Error")
    if error:
        raise ExtenderError(str(error))
    names, nodes = result.get("NodeNames"), result.get("Nodes")
    return FilterAnswer(
        names=None if names is None else tuple(name or "" for name in cast("list[str | None]", names)),
        nodes=None if nodes is None else tuple(_node(item) for item in _items(_fields(nodes).get("items"))),
        failed=_messages(result.get("FailedNodes")),
        failed_and_unresolvable=_messages(result.get("FailedAndUnresolvableNodes")),
    )


def priorities(question: ExtenderRequest, reply: Reply) -> tuple[tuple[str, int], ...]:
    """Host and score in the order of the answer. Raises `ExtenderError`."""
    result = _items(_decoded(question, reply, HOST_PRIORITIES))
    hosts = [_fields(item) for item in result]
    return tuple((str(host.get("Host") or ""), cast("int | None", host.get("Score")) or 0) for host in hosts)


def preemption_answer(question: ExtenderRequest, reply: Reply) -> Mapping[str, AnsweredVictims]:
    """Raises `ExtenderError`, and `CrashError` for a null where a node's victims should be."""
    result = _fields(_decoded(question, reply, PREEMPTION_RESULT))
    return {node: _victims(victims) for node, victims in _fields(result.get("NodeNameToMetaVictims")).items()}


def _victims(victims: object) -> AnsweredVictims:
    if victims is None:
        raise CrashError
    fields = _fields(victims)
    pods = _items(fields.get("Pods"))
    if None in pods:
        raise CrashError
    uids = tuple(str(_fields(pod).get("UID") or "") for pod in pods)
    return AnsweredVictims(uids=uids, pdb_violations=cast("int | None", fields.get("NumPDBViolations")) or 0)


def _decoded(question: ExtenderRequest, reply: Reply, kind: Go) -> object:
    match reply:
        case ExtenderFailure(text=text):
            raise ExtenderError(text)
        case ExtenderAnswer(status=status) if status != OK:
            raise ExtenderError(
                f"failed {path_of(question.extender, question.verb)} with extender at URL {question.url}, code {status}"
            )
        case ExtenderAnswer(body=body, ended=ended):
            try:
                return decode_first(body, kind, ended=ended)
            except GoJSONError as error:
                raise ExtenderError(str(error)) from None


def _fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _items(value: object) -> Sequence[object]:
    return cast("list[object]", value) if isinstance(value, list) else ()


def _messages(value: object) -> Mapping[str, str]:
    return {node: str(text or "") for node, text in _fields(value).items()}


def _node(value: object) -> AnsweredNode:
    manifest = _fields(_without_nulls(value))
    # images are the bulk of a node, and kube-scheduler does not take them from an answer
    status = {key: item for key, item in _fields(manifest.get("status")).items() if key != "images"}
    node = msgspec.convert({**manifest, "status": status}, Node)
    return AnsweredNode(manifest=manifest, node=node)


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


# What is sent: whole pods and nodes, as kube-scheduler holds them.
#
# They are the manifests as they were read, with what the API server would have filled in, and without what
# kube-scheduler's cache does not keep.

Json = dict[str, object]

_AS_ADMITTED = frozenset({"tolerations", "nodeSelector"})
"""Fields of a pod that scheduling reads whole: admission may have put anything there."""


class Objects:
    """A cluster's pods and nodes on the wire."""

    def __init__(self, manifests: Manifests | None) -> None:
        self._manifests = manifests

    def incoming(self, pod: Pod) -> Json:
        """The pod that is scheduled."""
        made = self.pod(pod)
        spec, status = _part(made, "spec"), _part(made, "status")
        if not pod.spec.node_name:
            spec.pop("nodeName", None)
        status.setdefault("phase", "Pending")
        return made | {"spec": spec, "status": status}

    def pod(self, pod: Pod) -> Json:
        return _merged(_kept(self._known("Pod", pod.key)), _plain(pod))

    def node(self, node: Node) -> Json:
        known = self._known("Node", node.name)
        made = _kept(known) if known else _merged({}, _plain(node))
        status = _part(made, "status")
        if not status.get("allocatable") and node.status.allocatable:
            status["allocatable"] = dict(node.status.allocatable)
        return made | {"status": status}

    def _known(self, kind: str, name: str) -> Mapping[str, object]:
        if self._manifests is None:
            raise UndecidableError(
                f"{kind} {name}: the extenders of the configuration get whole objects, and this snapshot keeps only "
                "what scheduling reads (load it with whole=True)"
            )
        return self._manifests.get(kind, name) or {}  # what is only simulated has no more than its record


def filter_request(pod: Json, names: Sequence[str], nodes: Sequence[Mapping[str, object]] | None) -> bytes:
    """ExtenderArgs, of filter and prioritize; `nodes` is None for an extender that has nodes of its own."""
    whole = None if nodes is None else {"metadata": {}, "items": nodes}
    return msgspec.json.encode({"Pod": pod, "Nodes": whole, "NodeNames": list(names) if nodes is None else None})


def preempt_request(
    pod: Json, victims: Mapping[str, Victims], pods: Mapping[str, Json] | None, uids: Mapping[str, str]
) -> bytes:
    """ExtenderPreemptionArgs; `pods` is None for an extender that knows the pods by their UIDs."""

    def each(pods_of: object, violations: int) -> Json:
        return {"Pods": pods_of, "NumPDBViolations": violations}

    whole, meta = None, None
    if pods is None:
        meta = {n: each([{"UID": uids[key]} for key in v.pods], v.pdb_violations) for n, v in victims.items()}
    else:
        whole = {n: each([pods[key] for key in v.pods], v.pdb_violations) for n, v in victims.items()}
    return msgspec.json.encode({"Pod": pod, "NodeNameToVictims": whole, "NodeNameToMetaVictims": meta})


def _kept(manifest: Mapping[str, object]) -> Json:
    """Without its kind, which a typed client does not repeat, and without managers of fields, which its cache drops."""
    kept = {key: value for key, value in manifest.items() if key not in ("apiVersion", "kind")}
    metadata = kept.get("metadata")
    if isinstance(metadata, Mapping):
        kept["metadata"] = {key: value for key, value in metadata.items() if key != "managedFields"}
    return kept


def _part(manifest: Json, field: str) -> Json:
    part = manifest.get(field)
    return dict(part) if isinstance(part, Mapping) else {}


def _plain(value: object) -> object:
    """A typed record as JSON has it, without fields that hold their defaults."""
    match value:
        case Struct():
            made: Json = {}
            for info in msgspec.structs.fields(value):
                held = getattr(value, info.name)
                if held != _default(info):
                    made[info.encode_name] = _plain(held)
            return made
        case Mapping():
            return {str(key): _plain(item) for key, item in value.items()}
        case tuple() | list():
            return [_plain(item) for item in value]
        case _:
            return value


def _default(info: msgspec.structs.FieldInfo) -> object:
    return info.default if info.default_factory is NODEFAULT else info.default_factory()


def _merged(written: Mapping[str, object], typed: object) -> Json:
    """What was written, and what the typed record has beyond that."""
    made = dict(written)
    for key, value in typed.items() if isinstance(typed, Mapping) else ():
        before = made.get(key)
        if before is None or key in _AS_ADMITTED:
            made[key] = value
        elif isinstance(before, Mapping):
            made[key] = _merged(before, value)
        elif isinstance(before, list) and isinstance(value, list):
            made[key] = _side_by_side(before, value)
    return made


def _side_by_side(written: list[object], typed: list[object]) -> list[object]:
    """Lists of the same things in the same order; the typed one may have more at its end."""
    pairs = zip(written, typed, strict=False)
    both = [_merged(one, other) if isinstance(one, Mapping) else one for one, other in pairs]
    return [*both, *written[len(both) :], *typed[len(both) :]]
