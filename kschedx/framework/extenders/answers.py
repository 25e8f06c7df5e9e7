"""What an extender's reply says.

Upstream: send, Filter, Prioritize and ProcessPreemption in pkg/scheduler/extender.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import msgspec
from msgspec import Struct

from kschedx.api.go_json import Go, GoJSONError, decode_first
from kschedx.api.types import Node
from kschedx.framework.extenders.calls import Answer, Failure, Question, Reply, path_of
from kschedx.framework.extenders.wire import FILTER_RESULT, HOST_PRIORITIES, PREEMPTION_RESULT

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


def filter_answer(question: Question, reply: Reply) -> FilterAnswer:
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


def priorities(question: Question, reply: Reply) -> tuple[tuple[str, int], ...]:
    """Host and score in the order of the answer. Raises `ExtenderError`."""
    result = _items(_decoded(question, reply, HOST_PRIORITIES))
    hosts = [_fields(item) for item in result]
    return tuple((str(host.get("Host") or ""), cast("int | None", host.get("Score")) or 0) for host in hosts)


def preemption_answer(question: Question, reply: Reply) -> Mapping[str, AnsweredVictims]:
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


def _decoded(question: Question, reply: Reply, kind: Go) -> object:
    match reply:
        case Failure(text=text):
            raise ExtenderError(text)
        case Answer(status=status) if status != OK:
            raise ExtenderError(
                f"failed {path_of(question.extender, question.verb)} with extender at URL {question.url}, code {status}"
            )
        case Answer(body=body, ended=ended):
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
