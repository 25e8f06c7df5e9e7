"""Cuts a document down to what an assistant can read, and names what was left out. The document stays valid."""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from typer.models import ParameterInfo

from kschedx.cli.diff_profiles import diff_profiles
from kschedx.cli.doctor import doctor
from kschedx.cli.drain import drain
from kschedx.cli.fit import fit
from kschedx.cli.nodes import nodes
from kschedx.cli.output import Answer
from kschedx.cli.question import Question
from kschedx.cli.reason import explain_reason
from kschedx.cli.scale_down import scale_down
from kschedx.cli.simulate import simulate
from kschedx.cli.survive import survive
from kschedx.cli.why import why
from kschedx.cli.why_pod import WhyArguments
from kschedx.errors import InputError, nearest
from kschedx.sources.tree import SUFFIXES

_FEWEST = 3  # entries left in a map or list that is cut
_MOST_FIELDS = 40  # the most fields that an object has
_LEAST = 100  # bytes of an entry, assumed for a document that is too large
MOST = 60_000  # bytes of a document in any answer


class Detail(StrEnum):
    """How much of an answer an assistant gets."""

    SUMMARY = "summary"  # no document
    NODES = "nodes"
    FULL = "full"  # the screen of `-o wide`


class Truncation(Struct, frozen=True, kw_only=True):
    """A map or list of which only the first entries are kept."""

    path: str  # the JSON Pointer into the document
    kept: int
    of: int


def bound(
    document: Mapping[str, object], limit: int, before: Sequence[Truncation] = ()
) -> tuple[dict[str, Any], tuple[Truncation, ...]]:
    """Return the document in at most `limit` bytes of JSON, as far as cutting maps and lists of many entries allows.
    `before` is what was cut from it before.

    The largest map or list is halved first, so that short ones stay complete.
    """
    whole = {out.path: out.of for out in before}
    short: dict[str, Any] = _cut_copy(document, "", limit // _LEAST if size(document) > limit else sys.maxsize, whole)
    while size(short) > limit:
        _, path, largest = _largest(short, "", (0, "", {}))
        if not largest:
            break
        whole.setdefault(path, len(largest))
        _cut(largest, max(len(largest) // 2, _FEWEST))
    return short, tuple(_left_out(short, whole))


def _cut_copy(value: Any, path: str, most: int, whole: dict[str, int]) -> Any:
    """Return a copy in which maps and lists have at most `most` entries. `whole` gets the original length of each one
    that is cut."""
    if isinstance(value, list | tuple):
        if len(value) > most:
            whole.setdefault(path, len(value))
        return [_cut_copy(item, f"{path}/{number}", most, whole) for number, item in enumerate(value[:most])]
    if not isinstance(value, Mapping):
        return value
    keys = list(value)
    if len(keys) > most and _is_map(value):
        whole.setdefault(path, len(keys))
        del keys[most:]
    return {key: _cut_copy(value[key], _below(path, key), most, whole) for key in keys}


def _below(path: str, key: str) -> str:
    return f"{path}/{key.replace('~', '~0').replace('/', '~1')}"


def _left_out(short: dict[str, Any], whole: Mapping[str, int]) -> Iterator[Truncation]:
    for path, count in whole.items():
        part: Any = short
        for key in path.split("/")[1:]:
            if isinstance(part, list):
                part = dict(enumerate(part)).get(int(key))
            elif isinstance(part, dict):
                part = part.get(key.replace("~1", "/").replace("~0", "~"))
        if isinstance(part, dict | list) and len(part) < count:  # what contains it may have been cut too
            yield Truncation(path=path, kept=len(part), of=count)


_Found = tuple[int, str, dict[str, Any] | list[Any]]  # how many bytes halving saves, the path, and the map or list


def _largest(value: dict[str, Any] | list[Any], path: str, largest: _Found) -> _Found:
    """Return the map or list for which halving saves most, among these and `largest`."""
    if len(value) > _FEWEST and (isinstance(value, list) or _is_map(value)):
        items = list(value.items()) if isinstance(value, dict) else value
        saved = size(items[max(len(items) // 2, _FEWEST) :])
        largest = max(largest, (saved, path, value), key=lambda item: item[:2])
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in entries:
        if isinstance(item, dict | list) and size(item) > largest[0]:
            largest = _largest(item, _below(path, str(key)), largest)
    return largest


def _is_map(value: Mapping[str, object]) -> bool:
    """Return whether this is a map by node or pod, not an object with fields. Its values are objects with the same
    fields, or it has more entries than an object has fields, all of the same type."""
    shapes = {tuple(item) if isinstance(item, dict) else type(item) for item in value.values()}
    if all(isinstance(shape, tuple) for shape in shapes):
        return len(value) > _FEWEST and len(shapes) <= 2
    return len(value) > _MOST_FIELDS and len(shapes) == 1


def _cut(entries: dict[str, Any] | list[Any], count: int) -> None:
    if isinstance(entries, list):
        del entries[count:]
    else:
        for key in list(entries)[count:]:
            del entries[key]


def size(value: object) -> int:
    """Return the bytes of the value as JSON."""
    return len(msgspec.json.encode(value))


# What an assistant may ask: for each tool its arguments, and the command that answers it.
#
# Arguments become options and names, never files: a manifest is given as text, and a snapshot or context only where the
# server was started with it.

_Arguments = Mapping[str, Any]

_TEXT: dict[str, object] = {"type": "string", "maxLength": 4096}
_NAMES: dict[str, object] = {"type": "array", "items": _TEXT, "maxItems": 100}

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.:]*[A-Za-z0-9])?"
_REFERENCE = rf"[A-Za-z.]+/{_NAME}"


class Tool(Struct, frozen=True, kw_only=True):
    """One question that an assistant may ask."""

    name: str
    title: str
    description: str
    properties: Mapping[str, Mapping[str, object]]
    """The JSON Schema of each argument, besides those that choose the cluster."""
    required: tuple[str, ...] = ()
    document: str | None = None  # the kind of the answer's document; None for text alone
    reads_cluster: bool = True
    answer: Callable[[Question, _Arguments, Path], Answer | int] | None
    """Returns the answer about the question's cluster; the folder is for files that it needs. Raises `InputError`. None
    if the server answers by itself."""


def _checked(key: str, value: object, pattern: str, allowed: str) -> str:
    """Return the value of an argument. Raises `InputError` for one of another form."""
    if not isinstance(value, str) or not re.fullmatch(pattern, value):
        raise InputError(f"{key}: found {value!r}, allowed {allowed}")
    return value


def _name(arguments: _Arguments, key: str) -> str:
    """Return an argument that is a plain name. Raises `InputError`."""
    return _checked(key, arguments.get(key), _NAME, "is a name")


def _apply_arguments(question: Question, arguments: _Arguments) -> Question:
    """Return the question with the namespace, profile, and version of the arguments. Raises `InputError`."""
    fields = {"namespace": "namespace", "config": "profile", "kube_version": "kube_version"}
    return replace(
        question, **{field: _name(arguments, key) for field, key in fields.items() if arguments.get(key) is not None}
    )


def manifest_path(folder: Path) -> Path:
    return folder / "manifest.yaml"


def _manifest(arguments: _Arguments, folder: Path) -> str:
    path = manifest_path(folder)
    path.write_text(str(arguments["manifest"]), encoding="utf-8")
    return str(path)


def _target(arguments: _Arguments, folder: Path) -> str:
    target, manifest = arguments.get("target"), arguments.get("manifest")
    if (target is None) == (manifest is None):
        raise InputError("pass either target, as pod/NAME or deploy/NAME, or manifest, as YAML")
    if manifest is not None:
        return _manifest(arguments, folder)
    if not isinstance(target, str) or not re.fullmatch(_REFERENCE, target) or target.endswith(SUFFIXES):
        raise InputError(f"target: found {target!r}, allowed are pod/NAME, deploy/NAME, sts/NAME and the like")
    return target


def _nodes_in(arguments: _Arguments) -> list[str]:
    return [_checked("nodes", node, _NODE.pattern, f"is {_NODE.allowed}") for node in arguments.get("nodes") or []]


_POD = {
    "target": {
        **_TEXT,
        "description": "pod/NAME, or a workload: deploy/NAME, sts/NAME, job/NAME",
        "examples": ["deploy/web"],
    },
    "manifest": {
        "type": "string",
        "maxLength": 1_000_000,
        "description": "YAML of a pod or workload, instead of target",
    },
    "namespace": {**_TEXT, "description": "the target's namespace"},
}
_SCHEDULER = {
    "profile": {
        **_TEXT,
        "description": "a profile that comes with kschedx, such as binpack; the default is the version's",
    },
    "kube_version": {
        **_TEXT,
        "description": "the Kubernetes version to emulate, such as 1.35; the default is the cluster's",
    },
}


def _why(question: Question, arguments: _Arguments, folder: Path) -> Answer | int:
    node = [] if arguments.get("node") is None else [_name(arguments, "node")]
    asked = WhyArguments(target=[_target(arguments, folder)], node=node)
    return why(asked, question=_apply_arguments(question, arguments))


_P = ParamSpec("_P")


_T = TypeVar("_T")


def _with_defaults(command: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a command to call without its options: each that is left out has its default."""
    signature = inspect.signature(command)
    declared = {name: it.default for name, it in signature.parameters.items() if isinstance(it.default, ParameterInfo)}

    @functools.wraps(command)
    def called(*args: _P.args, **options: _P.kwargs) -> _T:
        typed = signature.bind(*args, **options)
        typed.arguments = {**{name: it.default for name, it in declared.items()}, **typed.arguments}
        return command(*typed.args, **typed.kwargs)

    return called


def _diff_profiles(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    pods = arguments.get("pods")
    return _with_defaults(diff_profiles)(
        [_name(arguments, "before"), _name(arguments, "after")],
        all_running=pods == "running",
        all_pending=pods == "pending",
        kube_version=None if arguments.get("kube_version") is None else _name(arguments, "kube_version"),
        question=question,
    )


def _simulate(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    what_if = [] if arguments.get("manifest") is None else [("apply", _manifest(arguments, folder))]
    for key, change in _CHANGES.items():
        values = arguments.get(key) or ()
        what_if += [(key, _checked(key, value, change.pattern, f"is {change.allowed}")) for value in values]
    return _with_defaults(simulate)(question=replace(_apply_arguments(question, arguments), what_if=what_if))


class _Change(Struct, frozen=True):
    """The form of a change's value."""

    pattern: str
    allowed: str


_ONE_NAME = r"[A-Za-z0-9][-A-Za-z0-9_.]*"
_ONE_LABEL = r"[A-Za-z0-9][-A-Za-z0-9_./]*"
_NODE = _Change(_ONE_NAME, "a node's name")
_CHANGES = {
    "scale": _Change(rf"[A-Za-z.]+/{_ONE_NAME}=\d{{1,6}}", "KIND/NAME=REPLICAS"),
    "restart": _Change(rf"[A-Za-z.]+/{_ONE_NAME}", "KIND/NAME"),
    "drain": _NODE,
    "cordon": _NODE,
    "uncordon": _NODE,
    "delete": _Change(rf"[A-Za-z.]+/{_ONE_NAME}", "KIND/NAME"),
    "add_nodes": _Change(rf"\d{{1,5}}={_ONE_NAME}", "NUMBER=NODE: this many nodes like NODE"),
    "remove_node": _NODE,
}


def _drain(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    nodes, each = _nodes_in(arguments), bool(arguments.get("each"))
    if bool(nodes) == each:
        raise InputError("pass either nodes or each")
    return _with_defaults(drain)(nodes, each=each, question=question)


def _fit(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    return _with_defaults(fit)(
        _target(arguments, folder), arguments.get("replicas"), question=_apply_arguments(question, arguments)
    )


def _scale_down(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    return _with_defaults(scale_down)(_nodes_in(arguments), question=question)


def _survive(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    targets, each = arguments.get("targets") or [], arguments.get("each")
    for target in targets:
        pattern = rf"{_ONE_LABEL}(={_ONE_NAME})?"
        _checked("targets", target, pattern, "are a node's name, zone=NAME, and LABEL=VALUE")
    if each is not None:
        _checked("each", each, _ONE_LABEL, "are zone, nodepool, node, and a label")
    return _with_defaults(survive)(
        targets, each, arguments.get("busiest"), not arguments.get("drain"), question=question
    )


def _nodes(question: Question, arguments: _Arguments, folder: Path) -> Answer | int:
    allowed = "are free, pods, zone, and a resource"
    return _with_defaults(nodes)(
        sort=_checked("sort", arguments.get("sort", "name"), _ONE_LABEL, allowed), question=question
    )


def _reason(question: Question, arguments: _Arguments, folder: Path) -> Answer:
    return explain_reason(str(arguments.get("text", "")))


_REPLICAS = {"type": "integer", "minimum": 1, "maximum": 1_000_000, "description": "report whether this many more fit"}

TOOLS: tuple[Tool, ...] = (
    Tool(
        name="clusters_list",
        title="The clusters that can be asked about",
        description="Use this first when it is not clear which cluster a question is about: the snapshots and contexts "
        "that this server was started with. Changes nothing.",
        properties={},
        reads_cluster=False,
        answer=None,
    ),
    Tool(
        name="nodes_list",
        title="Requests and free resources of nodes",
        description="Use this to see how full nodes are, and the largest pod that still fits on each. Changes nothing.",
        properties={
            "sort": {**_TEXT, "description": "free, pods, zone, price, or a resource", "examples": ["nvidia.com/gpu"]}
        },
        document="Nodes",
        answer=_nodes,
    ),
    Tool(
        name="pod_explain",
        title="Why a pod is Pending, or on its node",
        description="Use this when a pod is Pending, or runs on an unexpected node. Shows the causes, verified "
        "fixes, the event, and each node's verdict, for a pod, the next pod of a workload, or a "
        "manifest. Changes nothing.",
        properties={**_POD, "node": {**_TEXT, "description": "show everything about this node"}, **_SCHEDULER},
        document="Explanation",
        answer=_why,
    ),
    Tool(
        name="pending_explain",
        title="Why pods are pending",
        description="Use this to see why pods are Pending, grouped by cause, with a fix for each group and "
        "the first pod of each in detail. Changes nothing.",
        properties={"namespace": {**_TEXT, "description": "only pods of this namespace"}, **_SCHEDULER},
        document="ExplanationList",
        answer=lambda question, arguments, _: why(
            WhyArguments(all_pending=True), question=_apply_arguments(question, arguments)
        ),
    ),
    Tool(
        name="changes_simulate",
        title="What happens next",
        description="Use this before you scale, drain, cordon, delete, or apply something, or to see what happens to"
        " the pending pods next. Changes nothing.",
        properties={
            "manifest": {"type": "string", "maxLength": 1_000_000, "description": "YAML that counts as applied"},
            "namespace": {**_TEXT, "description": "the namespace of the named objects"},
            **{key: {**_NAMES, "description": change.allowed} for key, change in _CHANGES.items()},
            **_SCHEDULER,
        },
        document="Simulation",
        answer=_simulate,
    ),
    Tool(
        name="node_drain_preview",
        title="What happens when nodes are drained",
        description="Use this before `kubectl drain`: which pods are evicted, which PodDisruptionBudget blocks, and "
        "where each pod is rescheduled. Changes nothing.",
        properties={
            "nodes": {**_NAMES, "description": "the nodes, drained one after the other"},
            "each": {"type": "boolean", "description": "drain every node by itself, to see which can be drained today"},
        },
        document="Simulation",
        answer=_drain,
    ),
    Tool(
        name="failure_simulate",
        title="What survives when a zone or nodes are gone",
        description="Use this to learn which workloads are down, short of replicas, or restarted when a zone, a node "
        "pool, or some nodes fail or are drained, and which nodes would have to be added. Changes nothing.",
        properties={
            "each": {
                **_TEXT,
                "description": "zone, nodepool, node, or a label: each value by itself",
                "examples": ["zone"],
            },
            "targets": {
                **_NAMES,
                "description": "what is gone together: node names, zone=NAME, nodepool=NAME, LABEL=VALUE",
            },
            "busiest": {"type": "integer", "minimum": 1, "description": "how many of the fullest nodes are gone"},
            "drain": {"type": "boolean", "description": "evict pods within budgets instead of losing them at once"},
        },
        document="Survival",
        answer=_survive,
    ),
    Tool(
        name="capacity_check",
        title="How many more fit",
        description="Use this to learn how many more replicas fit, where, and what stops the next one. Changes "
        "nothing.",
        properties={**_POD, "replicas": _REPLICAS, **_SCHEDULER},
        document="Fit",
        answer=_fit,
    ),
    Tool(
        name="profiles_compare",
        title="What another scheduler profile would change",
        description="Use this before you change the scheduler profile or version: which pods are scheduled "
        "differently, and which plugin decides. Changes nothing.",
        properties={
            "before": {**_TEXT, "description": "a profile's name; `default` is that of the Kubernetes version"},
            "after": {**_TEXT, "description": "a profile's name"},
            "pods": {**_TEXT, "enum": ["running", "pending"], "description": "which pods to compare"},
            "kube_version": _SCHEDULER["kube_version"],
        },
        required=("before", "after"),
        document="ProfileDifference",
        answer=_diff_profiles,
    ),
    Tool(
        name="event_decode",
        title="What a scheduling reason means",
        description="Use this to understand a FailedScheduling event or a reason ID. Reads no cluster. Changes "
        "nothing.",
        properties={"text": {**_TEXT, "description": "an ID such as insufficient-resource, or an event's text"}},
        required=("text",),
        reads_cluster=False,
        answer=_reason,
    ),
    Tool(
        name="dump_check",
        title="What is in a cluster's dump",
        description="Use this when an answer is undecided or surprising: what a dump lacks or mixes, and how to "
        "complete it. Changes nothing.",
        properties={},
        document="Diagnosis",
        answer=lambda question, arguments, _: _with_defaults(doctor)(question=question),
    ),
    Tool(
        name="scale_down_explain",
        title="Why an autoscaler keeps a node",
        description="Use this when cluster-autoscaler or Karpenter does not remove a node: the blocking "
        "pods, budgets, and limits. Changes nothing.",
        properties={"nodes": {**_NAMES, "description": "node names; default: every node", "examples": [["node-7"]]}},
        document="ScaleDown",
        answer=_scale_down,
    ),
)


def tool(wanted: str) -> Tool:
    """Return the tool of this name. Raises `InputError` if there is none."""
    match = next((candidate for candidate in TOOLS if candidate.name == wanted), None)
    if match is None:
        raise InputError(f'no tool "{wanted}"', hint=nearest(wanted, [known_tool.name for known_tool in TOOLS]))
    return match


class ToolCall(Struct, frozen=True):
    """A call of a tool, for the process that answers it."""

    tool: str
    question: Question
    arguments: _Arguments
    folder: Path


def answer(question: ToolCall) -> Answer | int:
    """Return the answer with this much detail. Raises `KschedxError`."""
    answers = tool(question.tool).answer
    assert answers is not None, "the server answers by itself"
    result = answers(question.question, question.arguments, question.folder)
    return result if isinstance(result, int) else apply_detail(result, question.arguments.get("detail", Detail.SUMMARY))


def apply_detail(result: Answer, detail: str) -> Answer:
    """Return the answer with a bounded document and what was cut from it; without a document for a summary. If it is
    full, its screen shows everything."""
    report = result.report

    def shown() -> Mapping[str, object]:
        if detail == Detail.SUMMARY:
            return {"document": {}, "leftOut": ()}
        if report.sample is None:
            document, left_out = bound(report.document(), MOST)
        else:
            part, count = report.sample()
            document, left_out = bound(part, MOST, (Truncation(path="/items", kept=0, of=count),))
        return {"document": document, "leftOut": left_out}

    is_full = detail == Detail.FULL
    return replace(
        result, report=replace(report, document=shown, screen=lambda width, _: report.screen(width, is_full))
    )
