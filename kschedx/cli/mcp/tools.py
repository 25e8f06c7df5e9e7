"""A document cut down to what an assistant can read, with what was left out named. Its shape stays valid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from kschedx.errors import InputError, nearest
from kschedx.inquiry.target import FILE_ENDINGS

FEWEST = 3
"""Entries that stay of anything that is cut."""


class LeftOut(Struct, frozen=True, kw_only=True):
    """A map or list of which only the first entries are there."""

    path: str
    """JSON Pointer into the document."""
    kept: int
    of: int


def bounded(document: Mapping[str, object], limit: int) -> tuple[dict[str, Any], tuple[LeftOut, ...]]:
    """The document in at most `limit` bytes of JSON, as far as cutting maps and lists of many entries goes.

    The largest is halved first, so that what is short stays whole.
    """
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    whole: dict[str, int] = {}
    while _size(made) > limit:
        containers = [(path, entries) for path, entries in _containers(made, "") if len(entries) > FEWEST]
        if not containers:
            break
        path, largest = max(containers, key=lambda one: (_spare(one[1]), one[0]))
        whole.setdefault(path, len(largest))
        _cut(largest, max(len(largest) // 2, FEWEST))
    return made, tuple(_left_out(made, whole))


def _left_out(made: dict[str, Any], whole: Mapping[str, int]) -> Iterator[LeftOut]:
    now = dict(_containers(made, ""))
    for path, count in whole.items():
        if path in now:  # what it stands in may have been cut itself
            yield LeftOut(path=path, kept=len(now[path]), of=count)


def _containers(value: object, path: str) -> Iterator[tuple[str, dict[str, Any] | list[Any]]]:
    """Everything that can lose entries: lists, and maps by name, whose values are alike."""
    if isinstance(value, list):
        yield path, value
        for number, item in enumerate(value):
            yield from _containers(item, f"{path}/{number}")
    elif isinstance(value, dict):
        if _is_map(value):
            yield path, value
        for key, item in value.items():
            yield from _containers(item, f"{path}/{key.replace('~', '~0').replace('/', '~1')}")


def _is_map(value: Mapping[str, object]) -> bool:
    """A map by node or pod, rather than an object with fields: its values are objects of the same fields."""
    shapes = {tuple(item) if isinstance(item, dict) else None for item in value.values()}
    return len(value) > FEWEST and len(shapes) <= 2 and None not in shapes


def _spare(entries: dict[str, Any] | list[Any]) -> int:
    """What halving saves."""
    items = list(entries.items()) if isinstance(entries, dict) else entries
    return _size(items[max(len(items) // 2, FEWEST) :])


def _cut(entries: dict[str, Any] | list[Any], count: int) -> None:
    if isinstance(entries, list):
        del entries[count:]
    else:
        for key in list(entries)[count:]:
            del entries[key]


def _size(value: object) -> int:
    return len(msgspec.json.encode(value))


# What an assistant may ask: for each tool its arguments and the command line that answers it.
#
# Arguments become options and names, never files: a manifest is given as text, and a snapshot or context only where the
# server was started with it.

Arguments = Mapping[str, Any]

TEXT: dict[str, object] = {"type": "string", "maxLength": 4096}
NAMES: dict[str, object] = {"type": "array", "items": TEXT, "maxItems": 100}

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?")
_REFERENCE = re.compile(r"[A-Za-z.]+/[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?")


class Tool(Struct, frozen=True, kw_only=True):
    """One question."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Mapping[str, object]]
    """JSON Schema of each argument, beside those that say which cluster is meant."""
    required: tuple[str, ...] = ()
    document: str | None = None
    """Kind of the document that it answers with; None for text alone."""
    reads_cluster: bool = True
    command: Callable[[Arguments, Path], list[str]] | None
    """The command line without the cluster's options; the folder is for files that it needs. Raises `InputError`. None
    where the server answers by itself."""


def name(arguments: Arguments, key: str) -> str:
    """A plain name of an argument. Raises `InputError`."""
    value = arguments.get(key)
    if not isinstance(value, str) or not _NAME.fullmatch(value):
        raise InputError(f"{key}: found {value!r}, allowed is a name")
    return value


def options(arguments: Arguments, **flags: str) -> list[str]:
    """Arguments that are names, as options: those that are given."""
    return [f"{flag}={name(arguments, key)}" for key, flag in flags.items() if arguments.get(key) is not None]


def _target(arguments: Arguments, folder: Path) -> list[str]:
    target, manifest = arguments.get("target"), arguments.get("manifest")
    if (target is None) == (manifest is None):
        raise InputError("pass either target, as pod/NAME or deploy/NAME, or manifest, as YAML")
    if manifest is not None:
        path = folder / "manifest.yaml"
        path.write_text(str(manifest), encoding="utf-8")
        return [str(path)]
    if not isinstance(target, str) or not _REFERENCE.fullmatch(target) or target.endswith(FILE_ENDINGS):
        raise InputError(f"target: found {target!r}, allowed are pod/NAME, deploy/NAME, sts/NAME and the like")
    return [target]


_POD = {
    "target": {
        **TEXT,
        "description": "pod/NAME, or a workload: deploy/NAME, sts/NAME, job/NAME",
        "examples": ["deploy/web"],
    },
    "manifest": {
        "type": "string",
        "maxLength": 1_000_000,
        "description": "YAML of a pod or workload, instead of target",
    },
    "namespace": {**TEXT, "description": "the target's namespace"},
}
_SCHEDULER = {
    "profile": {
        **TEXT,
        "description": "a profile that comes with kschedx, such as binpack; the default is the version's",
    },
    "kube_version": {
        **TEXT,
        "description": "the Kubernetes version to emulate, such as 1.35; the default is the cluster's",
    },
}


def _why(arguments: Arguments, folder: Path) -> list[str]:
    more = options(arguments, namespace="--namespace", node="--node", profile="--config", kube_version="--kube-version")
    return ["why", *more, *_target(arguments, folder)]


def _why_pending(arguments: Arguments, folder: Path) -> list[str]:
    more = options(arguments, namespace="--namespace", profile="--config", kube_version="--kube-version")
    return ["why", "--all-pending", *more]


def _diff_profiles(arguments: Arguments, folder: Path) -> list[str]:
    pods = {"running": "--all", "pending": "--all-pending"}
    which = arguments.get("pods")
    if which is not None and which not in pods:
        raise InputError(f"pods: found {which!r}, allowed are running and pending", hint=nearest(str(which), pods))
    sides = [name(arguments, "before"), name(arguments, "after")]
    more = options(arguments, kube_version="--kube-version")
    return ["diff-profiles", *more, *([pods[which]] if which else []), *sides]


def _simulate(arguments: Arguments, folder: Path) -> list[str]:
    more = options(arguments, namespace="--namespace", profile="--config", kube_version="--kube-version")
    if arguments.get("manifest") is not None:
        path = folder / "manifest.yaml"
        path.write_text(str(arguments["manifest"]), encoding="utf-8")
        more.append(f"--filename={path}")
    for key, change in _CHANGES.items():
        for value in arguments.get(key) or ():
            if not re.fullmatch(change.pattern, value):
                raise InputError(f"{key}: found {value!r}, allowed is {change.told}")
            more.append(f"--{key.replace('_', '-')}={value}")
    return ["simulate", *more]


class _Change(Struct, frozen=True):
    """What the words of a change look like."""

    pattern: str
    told: str


_ONE_NAME = r"[A-Za-z0-9][-A-Za-z0-9_.]*"
_ONE_LABEL = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_NODE = _Change(_ONE_NAME, "a node's name")
_CHANGES = {
    "scale": _Change(rf"[A-Za-z.]+/{_ONE_NAME}=\d{{1,6}}", "KIND/NAME=REPLICAS"),
    "drain": _NODE,
    "cordon": _NODE,
    "uncordon": _NODE,
    "delete": _Change(rf"[A-Za-z.]+/{_ONE_NAME}", "KIND/NAME"),
    "add_nodes": _Change(rf"\d{{1,5}}={_ONE_NAME}", "NUMBER=NODE: this many nodes like NODE"),
    "remove_node": _NODE,
}


def _drain(arguments: Arguments, folder: Path) -> list[str]:
    nodes = arguments.get("nodes") or []
    for node in nodes:
        if not re.fullmatch(_NODE.pattern, node):
            raise InputError(f"nodes: found {node!r}, allowed is {_NODE.told}")
    if bool(nodes) == bool(arguments.get("each")):
        raise InputError("pass either nodes or each")
    return ["drain", *(nodes or ["--each"])]


def _fit(arguments: Arguments, folder: Path) -> list[str]:
    more = options(arguments, namespace="--namespace", profile="--config", kube_version="--kube-version")
    replicas = arguments.get("replicas")
    more += [] if replicas is None else [f"--replicas={replicas}"]
    return ["fit", *more, *_target(arguments, folder)]


def _scale_down(arguments: Arguments, folder: Path) -> list[str]:
    nodes = arguments.get("nodes") or []
    for node in nodes:
        if not re.fullmatch(_NODE.pattern, node):
            raise InputError(f"nodes: found {node!r}, allowed is {_NODE.told}")
    return ["scale-down", *nodes]


def _survive(arguments: Arguments, folder: Path) -> list[str]:
    targets, each, busiest = arguments.get("targets") or [], arguments.get("each"), arguments.get("busiest")
    for target in targets:
        if not re.fullmatch(rf"{_ONE_LABEL}(={_ONE_NAME})?", target):
            raise InputError(f"targets: found {target!r}, allowed are a node's name, zone=NAME, and LABEL=VALUE")
    if each is not None and not re.fullmatch(_ONE_LABEL, each):
        raise InputError(f"each: found {each!r}, allowed are zone, nodepool, node, and a label")
    flags = [*([f"--each={each}"] if each else []), *([] if busiest is None else [f"--busiest={busiest}"])]
    flags += ["--drain"] if arguments.get("drain") else []
    return ["survive", *flags, *targets]


def _nodes(arguments: Arguments, folder: Path) -> list[str]:
    column = arguments.get("sort")
    if column is not None and not re.fullmatch(_ONE_LABEL, column):
        raise InputError(f"sort: found {column!r}, allowed are free, pods, zone, and a resource")
    return ["nodes", *([] if column is None else [f"--sort={column}"])]


def _reason(arguments: Arguments, folder: Path) -> list[str]:
    return ["reason", "--", str(arguments.get("text", ""))]


def _doctor(arguments: Arguments, folder: Path) -> list[str]:
    return ["doctor"]


_REPLICAS = {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "report whether this many more fit"}

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="clusters_list",
        title="The clusters that can be asked about",
        description="Use this first when it is not clear which cluster a question is about: the snapshots and contexts "
        "that this server was started with. Changes nothing.",
        properties={},
        reads_cluster=False,
        command=None,
    ),
    Tool(
        name="nodes_list",
        title="Requests and free resources of nodes",
        description="Use this to see how full nodes are, and the largest pod that still fits on each. Changes nothing.",
        properties={
            "sort": {**TEXT, "description": "free, pods, zone, price, or a resource", "examples": ["nvidia.com/gpu"]}
        },
        document="Nodes",
        command=_nodes,
    ),
    Tool(
        name="pod_explain",
        title="Why a pod is Pending, or on its node",
        description="Use this when a pod is Pending, or runs on an unexpected node. Shows the causes, verified "
        "fixes, the event, and each node's verdict, for a pod, the next pod of a workload, or a "
        "manifest. Changes nothing.",
        properties={**_POD, "node": {**TEXT, "description": "show everything about this node"}, **_SCHEDULER},
        document="Explanation",
        command=_why,
    ),
    Tool(
        name="pending_explain",
        title="Why pods are pending",
        description="Use this to see why pods are Pending, grouped by cause, with a fix for each group. Changes "
        "nothing.",
        properties={"namespace": {**TEXT, "description": "only pods of this namespace"}, **_SCHEDULER},
        document="ExplanationList",
        command=_why_pending,
    ),
    Tool(
        name="changes_simulate",
        title="What happens next",
        description="Use this before you scale, drain, cordon, delete, or apply something, or to see what happens to"
        " the pending pods next. Changes nothing.",
        properties={
            "manifest": {"type": "string", "maxLength": 1_000_000, "description": "YAML that counts as applied"},
            "namespace": {**TEXT, "description": "the namespace of the named objects"},
            **{key: {**NAMES, "description": change.told} for key, change in _CHANGES.items()},
            **_SCHEDULER,
        },
        document="Simulation",
        command=_simulate,
    ),
    Tool(
        name="node_drain_preview",
        title="What happens when nodes are drained",
        description="Use this before `kubectl drain`: which pods are evicted, which PodDisruptionBudget blocks, and "
        "where each pod is rescheduled. Changes nothing.",
        properties={
            "nodes": {**NAMES, "description": "the nodes, drained one after the other"},
            "each": {"type": "boolean", "description": "drain every node by itself, to see which can be drained today"},
        },
        document="Simulation",
        command=_drain,
    ),
    Tool(
        name="failure_simulate",
        title="What survives when a zone or nodes are gone",
        description="Use this to learn which workloads are down, short of replicas, or restarted when a zone, a node "
        "pool, or some nodes fail or are drained, and which nodes would have to be added. Changes nothing.",
        properties={
            "each": {
                **TEXT,
                "description": "zone, nodepool, node, or a label: each value by itself",
                "examples": ["zone"],
            },
            "targets": {
                **NAMES,
                "description": "what is gone together: node names, zone=NAME, nodepool=NAME, LABEL=VALUE",
            },
            "busiest": {"type": "integer", "minimum": 1, "description": "how many of the fullest nodes are gone"},
            "drain": {"type": "boolean", "description": "evict pods within budgets instead of losing them at once"},
        },
        document="Survival",
        command=_survive,
    ),
    Tool(
        name="capacity_check",
        title="How many more fit",
        description="Use this to learn how many more replicas fit, where, and what stops the next one. Changes "
        "nothing.",
        properties={**_POD, "replicas": _REPLICAS, **_SCHEDULER},
        document="Fit",
        command=_fit,
    ),
    Tool(
        name="profiles_compare",
        title="What another scheduler profile would change",
        description="Use this before you change the scheduler profile or version: which pods are scheduled "
        "differently, and which plugin decides. Changes nothing.",
        properties={
            "before": {**TEXT, "description": "a profile's name; default is that of the Kubernetes version"},
            "after": {**TEXT, "description": "a profile's name"},
            "pods": {**TEXT, "enum": ["running", "pending"], "description": "which pods to compare"},
            "kube_version": _SCHEDULER["kube_version"],
        },
        required=("before", "after"),
        document="ProfileDifference",
        command=_diff_profiles,
    ),
    Tool(
        name="event_decode",
        title="What a scheduling reason means",
        description="Use this to understand a FailedScheduling event or a reason ID. Reads no cluster. Changes "
        "nothing.",
        properties={"text": {**TEXT, "description": "an ID such as insufficient-resource, or an event's text"}},
        required=("text",),
        reads_cluster=False,
        command=_reason,
    ),
    Tool(
        name="dump_check",
        title="What is in a cluster's dump",
        description="Use this when an answer is undecided or surprising: what a dump lacks or mixes, and how to "
        "complete it. Changes nothing.",
        properties={},
        document="Diagnosis",
        command=_doctor,
    ),
    Tool(
        name="scale_down_explain",
        title="Why an autoscaler keeps a node",
        description="Use this when cluster-autoscaler or Karpenter does not remove a node: the blocking "
        "pods, budgets, and limits. Changes nothing.",
        properties={"nodes": {**NAMES, "description": "node names; default: every node", "examples": [["node-7"]]}},
        document="ScaleDown",
        command=_scale_down,
    ),
)


def tool(wanted: str, known: Sequence[Tool] = TOOLS) -> Tool:
    """Raises `InputError`."""
    found = next((one for one in known if one.name == wanted), None)
    if found is None:
        raise InputError(f'no tool "{wanted}"', hint=nearest(wanted, [one.name for one in known]))
    return found
