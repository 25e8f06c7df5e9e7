"""What an extender's answers are read into: the types of k8s.io/kube-scheduler/extender/v1.

The whole Node of core/v1 is among them, since an extender that keeps no cache of nodes answers with those.
"""

from __future__ import annotations

import re

from kschedx.api.go_json import (
    BOOL,
    INT32,
    INT64,
    STRING,
    Custom,
    Go,
    GoJSONError,
    Map,
    Record,
    Slice,
    Text,
)
from kschedx.api.go_json.syntax import Members, Number, Parsed
from kschedx.api.quantity import parse_quantity
from kschedx.errors import InputError

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
