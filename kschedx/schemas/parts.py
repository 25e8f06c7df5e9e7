"""Parts from which the schemas of documents are built."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import cast, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, inspect

from kschedx.framework.args import ARGS_TYPES
from kschedx.framework.config.decoding import KIND, ConfigurationDocument, ExtenderTLSConfig, PluginConfig
from kschedx.kube.documents import API_VERSION, Json, camel
from kschedx.kube.scalars import Duration
from kschedx.legacy.policy import KIND as POLICY_KIND
from kschedx.legacy.policy import TLS_FIELDS, VERSION, PolicyDocument, PolicyExtender
from kschedx.releases import VERSIONS, resolve
from kschedx.releases.release import CONFIG_VERSIONS, last_to_read

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_STRINGS: Json = {"type": "array", "items": {"type": "string"}}


def _json_object(properties: Mapping[str, Json], required: Iterable[str] = (), *, closed: bool = True) -> Json:
    """Return the schema of an object with these keys. Unless it is `closed`, readers must accept further keys."""
    head: Json = {"type": "object", "required": list(required)}
    return head | {"properties": dict(properties), "additionalProperties": not closed}


def facts_schema(record: type[Struct], names: Mapping[str, object]) -> Json:
    """Return the schema of a record whose fields are written unchanged, with keys in camel case. Functions and empty
    values are omitted. A text without a default is never empty. `names` are types that the record's annotations name
    and its module does not import."""
    properties: dict[str, Json] = {}
    required: list[str] = []
    hints = get_type_hints(record, localns=dict(names))
    without_default = len(record.__struct_fields__) - len(record.__struct_defaults__)
    defaults = (NODEFAULT,) * without_default + record.__struct_defaults__
    for name, default in zip(record.__struct_fields__, defaults, strict=True):
        schema, is_left_out = _hint_schema(hints[name], names)
        if schema is not None:
            may_lack = is_left_out or (hints[name] is str and default is not NODEFAULT)
            properties[camel(name)] = schema
            required += [] if may_lack else [camel(name)]
    return _json_object(properties, required, closed=False)


def _hint_schema(hint: object, names: Mapping[str, object]) -> tuple[Json | None, bool]:
    """Return the schema of a field, None for a function, and whether the field is omitted if it is empty."""
    arguments = get_args(hint)
    if type(None) in arguments:
        return _hint_schema(arguments[0], names)[0], True
    if get_origin(hint) is tuple:
        return {"type": "array", "items": _hint_schema(arguments[0], names)[0] or {}}, True
    if isinstance(hint, type) and issubclass(hint, Struct):
        return facts_schema(hint, names), False
    if isinstance(hint, type) and issubclass(hint, Enum):
        return {"enum": [member.value for member in hint]}, False
    plain = {str: "string", int: "integer", bool: "boolean"}.get(cast("type", hint))
    return None if plain is None else {"type": plain}, False


def document(kind: str, properties: Mapping[str, Json], required: Iterable[str]) -> Json:
    """Return the schema of a document. Keys are added, never changed, so a reader must accept new ones."""
    head: dict[str, Json] = {"apiVersion": {"const": API_VERSION}, "kind": {"const": kind}}
    fields = _json_object(head | dict(properties), (*head, *required), closed=False)
    return {"$schema": _DIALECT, "title": kind, **fields}


_TEXTS: Json = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
NODE_GROUPS: Json = {
    "$schema": _DIALECT,
    "title": "NodeGroups",
    "description": "The node groups of a cluster-autoscaler, for --node-groups. The output of /snapshotz works too.",
    "type": "object",
    "required": ["groups"],
    "properties": {
        "groups": {
            "type": "object",
            "description": "Node groups by name.",
            "additionalProperties": {
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    "nodes": _STRINGS | {"description": "The nodes of the group in the snapshot."},
                    "template": {"type": "object", "description": "A node of the group: {Node: manifest, Pods: []}."},
                    "capacity": _TEXTS | {"description": "What a new node has: cpu, memory, pods (110), others."},
                    "labels": _TEXTS | {"description": "Labels of a new node."},
                    "taints": {
                        "type": "array",
                        "items": {"type": ["string", "object"]},
                        "description": "Taints of a new node: KEY=VALUE:EFFECT.",
                    },
                    "tags": _TEXTS | {"description": "Tags k8s.io/cluster-autoscaler/node-template/... of AWS."},
                },
            },
        }
    },
}
"""The schema of a file that users write."""


_MEANINGS: Mapping[str, str] = {
    "apiVersion": "The version of the document's form.",
    "kind": "The kind of the document.",
    "advice": "Errors and warnings, each with the field that it is about.",
    "again": "Pods that one round evicts and a later round evicts again.",
    "alwaysCheckAllPredicates": "Whether every predicate runs after one has rejected the node.",
    "autoscaler": "The verdict of cluster-autoscaler.",
    "ScaleDown.autoscaler": "Which autoscaler: cluster-autoscaler or karpenter.",
    "begin": "What happened before the first cycle.",
    "bestNodes": "The nodes with the highest score; kube-scheduler picks one of several at random.",
    "budgetFixes": "Changes of PodDisruptionBudgets that let the drain finish.",
    "chance": "How far the first round depends on the random order of nodes and pods in the descheduler: none, "
    "which (the number of each plugin is certain), count (even that is not), or unknown (not tried).",
    "changes": "The changes that were applied first.",
    "clusterQueues": "ClusterQueues with quota, usage, and pending Workloads, by name.",
    "clusters": "An entry per cluster: its answer, or why it gave none.",
    "completion": "How to get what the dump lacks.",
    "configuration": "The scheduler's configuration.",
    "ProfileDifference.configuration": "The settings that differ.",
    "consolidation": "What Karpenter's consolidation does.",
    "cycles": "Kueue's cycles in order, with the Workloads that each considers.",
    "daemonSet": "For a DaemonSet: the nodes where its pod fits, is pending, or is not eligible.",
    "drains": "Each drained node with its evicted pods and what stops the drain.",
    "effects": "What each change did.",
    "error": "Why the descheduler refuses the policy; then nothing runs.",
    "errorField": "The field of the policy that the error is about.",
    "errors": "Errors that a plugin reports while it runs.",
    "evicted": "Pods that preemption or a drain evicts, in order.",
    "Descheduling.evicted": "Pods that the first round evicts, in order, with the nodes where they land.",
    "evictions": "The number of pods that the policy evicts.",
    "extenders": "The answers of HTTP extenders.",
    "Policy.extenders": "HTTP extenders.",
    "extensionPoints": "The plugins of each extension point, in order, with weights.",
    "failures": "An entry per outage: the lost nodes, and the state of each workload after it.",
    "filter": "The status of every node, per plugin.",
    "findings": "What is missing, contradictory, or unreadable, and which answers it makes less reliable.",
    "fits": "The number of further pods that fit.",
    "Story.fits": "The nodes that fit.",
    "fixes": "Changes that were tried and help, the best first.",
    "flagsAreKnown": "Whether cluster-autoscaler's flags were read from the cluster; otherwise its defaults count.",
    "gated": "Pods with scheduling gates.",
    "goal": "The goal, and whether it is reached.",
    "DeschedulerAdvice.goal": "The goal: balance or compaction.",
    "gracePeriodSeconds": "The grace period of the evictions.",
    "groupsToldBy": "The labels or files that node groups are known from.",
    "holding": "What Kueue, or another scheduler, reports about the pod.",
    "ignored": "Fields of the policy that the descheduler does not know, and ignores.",
    "instanceTypes": "The instance types.",
    "inventory": "How many objects of each kind the dump holds, and when they were read.",
    "isSettled": "Whether the run ended because nothing changed any more.",
    "items": "The entries, one per pod or plugin.",
    "karpenter": "Karpenter's disruption: what blocks it, by node.",
    "kubelet": "What the kubelet or the attach controller reports after the pod has its node.",
    "kubernetesVersion": "The Kubernetes version that is emulated.",
    "kueue": "What Kueue admits and evicts meanwhile.",
    "kueueVersion": "The version of Kueue that is emulated.",
    "message": "kube-scheduler's event text.",
    "missing": "How many nodes are missing, per kind of node.",
    "mode": "outage (pods are lost at once) or drain (pods are evicted within budgets).",
    "name": "The name.",
    "newlyPlaced": "Pods that were pending before and find a node now.",
    "nodes": "The nodes.",
    "Simulation.nodes": "Requests on each node, before and after.",
    "Descheduling.nodes": "Requests on each node in percent, before and after, where they differ.",
    "Story.nodes": "The best nodes.",
    "notes": "What you need to know to trust the answer.",
    "notEvaluated": "Nodes that were not evaluated.",
    "now": "When the run starts.",
    "ofOtherSchedulers": "Pending pods whose schedulerName is another scheduler's.",
    "origins": "Where each setting comes from.",
    "outcome": "Whether the pod can be scheduled.",
    "overall": "The outcome for all replicas together.",
    "pending": "Pods that stay pending, with kube-scheduler's event text.",
    "NodeReport.pending": "Pods on the node that do not run, with what they wait for.",
    "perNode": "Evictions per node.",
    "placed": "Pods that are assigned, with their nodes.",
    "plugins": "What each plugin evicts by itself.",
    "pod": "The pod.",
    "pods": "The pods.",
    "ProfileDifference.pods": "How many pods differ, how, and where each goes.",
    "Descheduling.pods": "Why a profile may not evict a pod; pods that may be evicted are absent.",
    "policy": "The DeschedulerPolicy that reaches the goal; absent if none improves anything.",
    "postFilter": "Preemption: the candidates, their victims, and the nominated node.",
    "preEnqueue": "What keeps the pod out of the scheduling queue.",
    "preFilter": "The status of each PreFilter plugin.",
    "preempted": "Pods that kube-scheduler preempts for recreated pods.",
    "preemption": "The nominated node and the victims.",
    "profile": "The profile that decides.",
    "reached": "Whether the policy reaches the target.",
    "refusal": "The API server's error about pods that it refuses.",
    "refused": "Pods that the API server refuses, with its error and fixes.",
    "Descheduling.refused": "Evictions that a plugin requests and that are refused.",
    "rejected": "The nodes that each reason rejects.",
    "rejectedBefore": "Why the pod is rejected before any node is evaluated.",
    "replicas": "For a workload: the placed, pending, and refused replicas.",
    "resources": "Requested and allocatable amounts, per resource.",
    "rollouts": "Rollouts that stall, with the replaced and remaining pods.",
    "rounds": "The rounds after the first.",
    "said": "Why the descheduler passes over pods, as in its log.",
    "score": "The scores of each plugin: raw, normalized, and weighted.",
    "scores": "The total score of each node.",
    "settled": "Whether the last round evicts nothing.",
    "shard": "Which part of the answer this is.",
    "skipped": "Why the first round ends before any plugin runs.",
    "source": "Where the cluster was read from, when, and which kinds are missing.",
    "state": "The state of the pod or workload, and its headline.",
    "states": "Pods and workloads that kube-scheduler does not decide about, such as suspended ones.",
    "steps": "Every decision, in order.",
    "survives": "Whether every workload survives every outage.",
    "target": "The target of the goal.",
    "ties": "How nodes with the same score are chosen between, and what other choices give.",
    "together": "Nodes that can be removed together.",
    "total": "The sum over all nodes.",
    "Descheduling.total": "The number of evictions.",
    "tried": "The policies that were tried, the best first.",
    "undecided": "What the answer depends on and kschedx does not know.",
    "ExplanationList.undecided": "Pods whose answer is undecided, with the cause.",
    "Descheduling.undecided": "Whether kschedx cannot decide where each pod lands.",
    "unheard": "What was not evaluated and could change the answer: plugins, extenders, objects that a dump lacks, "
    "other schedulers, and volumes whose place is not known.",
    "unknownPlugins": "Plugins of the configuration that are not available to kschedx.",
    "utilization": "The runs of LowNodeUtilization and HighNodeUtilization.",
    "wanted": "The number of pods of --replicas.",
    "weights": "The weight of each score plugin.",
    "workloads": "Each workload with its assigned, evicted, and pending pods.",
    "Admissions.workloads": "Each Workload with its state and conditions.",
    "before": "The first of the two profiles.",
    "DeschedulerAdvice.before": "The measure as it is: for balance the percentage points between the fullest and the "
    "emptiest node, for compaction the number of empty nodes.",
    "after": "The second of the two profiles.",
    "DeschedulerAdvice.after": "The measure with the policy.",
    "clientConnection": "How kube-scheduler connects to the API server.",
    "delayCacheUntilActive": "Whether an inactive kube-scheduler fills its cache late.",
    "enableContentionProfiling": "Whether lock contention is profiled.",
    "enableProfiling": "Whether kube-scheduler serves profiling data.",
    "healthzBindAddress": "The address of the health check.",
    "leaderElection": "How one of several kube-schedulers becomes active.",
    "metricsBindAddress": "The address of the metrics.",
    "parallelism": "The number of nodes that are evaluated at the same time.",
    "percentageOfNodesToScore": "How many fitting nodes are enough to stop the search.",
    "podInitialBackoffSeconds": "The backoff of a pod after its first failed attempt.",
    "podMaxBackoffSeconds": "The longest backoff of a pod.",
    "profiles": "The profiles: a schedulerName with its plugins and their arguments.",
    "KubeSchedulerConfiguration.extenders": "HTTP extenders.",
    "hardPodAffinitySymmetricWeight": "The weight of required pod affinity in the other direction.",
    "predicates": "The rules that a node has to meet.",
    "priorities": "The rules that score nodes.",
}
"""Descriptions of top-level keys; `Kind.key` if a kind's meaning differs."""


def with_meanings(kind: str, schema: Json) -> Json:
    """Return the schema with a description of each top-level key."""
    properties = schema.get("properties")
    assert isinstance(properties, dict)
    described = {
        key: {"description": meaning, **own}
        if (meaning := _MEANINGS.get(f"{kind}.{key}", _MEANINGS.get(key, ""))) and "description" not in own
        else own
        for key, own in properties.items()
    }
    return {**schema, "properties": described}


# Schemas of a scheduler's configuration: KubeSchedulerConfiguration, and its predecessor Policy.
# Both are built from the records that decode such a file strictly, so an editor with these schemas and kschedx refuse
# the same fields. As in Go, null equals an absent field. The schemas omit what only kube-scheduler's validation
# refuses, such as a value out of range or an unknown plugin.

_DURATION = r"^[+-]?(0|(([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"


def configuration_schema() -> Json:
    fields = _fields(ConfigurationDocument)
    fields |= {"apiVersion": {"enum": list(CONFIG_VERSIONS)}, "kind": {"const": KIND}}
    schema = {"$schema": _DIALECT, "title": KIND, **_json_object(fields), "required": ["apiVersion", "kind"]}
    return schema | {"allOf": [_version_schema(version) for version in CONFIG_VERSIONS]}


def policy_schema() -> Json:
    fields = _fields(PolicyDocument)
    fields |= {"apiVersion": {"enum": [VERSION, None]}, "kind": {"const": POLICY_KIND}}
    return {"$schema": _DIALECT, "title": POLICY_KIND, **_json_object(fields), "required": ["kind"]}


def _version_schema(version: str) -> Json:
    """A schema without the fields that the last Kubernetes version that reads this API version does not have in it."""
    release = resolve(last_to_read(version) or VERSIONS[0], None)
    lacking = [_absence_schema(path.split(".")) for path in release.missing_fields[version]]
    then: Json = {"allOf": lacking} if lacking else {}
    return {"if": {"properties": {"apiVersion": {"const": version}}}, "then": then}


def _absence_schema(steps: Sequence[str]) -> Json:
    """Return a schema in which the field at the end of the steps is null or absent. Steps are those of
    `Release.missing_fields`."""
    key, is_list, plugin = steps[0].partition("[]")
    inner: Json = _absence_schema(steps[1:]) if len(steps) > 1 else {"type": "null"}
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
