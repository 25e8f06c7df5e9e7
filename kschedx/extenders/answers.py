"""The content of an extender's reply, or the error with which kube-scheduler refuses it.

Upstream: send, Filter, Prioritize, and ProcessPreemption in pkg/scheduler/extender.go; the types of
k8s.io/kube-scheduler/extender/v1.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Never, assert_never, cast

import msgspec
from msgspec import Struct

from kschedx.errors import InputError
from kschedx.framework.extenders import ExtenderAnswer, ExtenderFailure, ExtenderRequest, HostScore, Reply, path_of
from kschedx.kube.field_errors import quote_go
from kschedx.kube.quantity import parse_quantity
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.types import Node
from kschedx.patterns import lazy_pattern

_OK = 200


class ExtenderError(Exception):
    """A failed call; `str()` is kube-scheduler's error."""


class CrashError(Exception):
    """An answer that makes kube-scheduler crash, because it reads a null."""


class AnsweredNode(Struct, frozen=True, kw_only=True):
    """A whole node in an answer, without defaults filled in."""

    manifest: Mapping[str, object]
    node: Node


class AnsweredVictims(Struct, frozen=True, kw_only=True):
    uids: tuple[str, ...]
    pdb_violations: int


class _Nodes(Struct, frozen=True):
    items: tuple[dict[str, object] | None, ...] = ()


class _FilterResult(Struct, frozen=True, rename="pascal"):
    """v1.ExtenderFilterResult; an absent list is None."""

    nodes: _Nodes | None = None
    node_names: tuple[str, ...] | None = None
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""

    def whole_nodes(self) -> tuple[AnsweredNode, ...]:
        """Return the nodes that are whole objects. Raises `ExtenderError` for an invalid one."""
        return tuple(_node(item or {}) for item in self.nodes.items) if self.nodes is not None else ()


class _HostPriority(Struct, frozen=True, rename="pascal"):
    host: str = ""
    score: int = 0


class _MetaPod(Struct, frozen=True):
    uid: str = msgspec.field(default="", name="UID")


class _MetaVictims(Struct, frozen=True):
    pods: tuple[_MetaPod | None, ...] = msgspec.field(default=(), name="Pods")
    pdb_violations: int = msgspec.field(default=0, name="NumPDBViolations")


class _PreemptionResult(Struct, frozen=True):
    victims: dict[str, _MetaVictims | None] = msgspec.field(default_factory=dict, name="NodeNameToMetaVictims")


def filter_answer(question: ExtenderRequest, reply: Reply) -> _FilterResult:
    """Return the answer to a filter request. Raises `ExtenderError`."""
    result = msgspec.convert(_decode(question, reply, _FILTER_RESULT), _FilterResult)
    if result.error:
        raise ExtenderError(result.error)
    return result


def priorities(question: ExtenderRequest, reply: Reply) -> tuple[HostScore, ...]:
    """Return the scores in the order of the answer. Raises `ExtenderError`."""
    result = msgspec.convert(_decode(question, reply, _HOST_PRIORITIES) or (), tuple[_HostPriority, ...])
    return tuple(HostScore(priority.host, priority.score) for priority in result)


def preemption_answer(question: ExtenderRequest, reply: Reply) -> Mapping[str, AnsweredVictims]:
    """Return node to victims. Raises `ExtenderError`, and `CrashError` if a node's victims are null."""
    result = msgspec.convert(_decode(question, reply, _PREEMPTION_RESULT), _PreemptionResult)
    return {node: _victims(victims) for node, victims in result.victims.items()}


def _victims(victims: _MetaVictims | None) -> AnsweredVictims:
    if victims is None:
        raise CrashError
    uids: list[str] = []
    for pod in victims.pods:
        if pod is None:
            raise CrashError
        uids.append(pod.uid)
    return AnsweredVictims(uids=tuple(uids), pdb_violations=victims.pdb_violations)


def _node(written: Mapping[str, object]) -> AnsweredNode:
    manifest = cast("dict[str, object]", _without_nulls(written))
    status = manifest.get("status")
    # images are most of a node's size, and kube-scheduler does not take them from an answer
    slim = {key: item for key, item in status.items() if key != "images"} if isinstance(status, dict) else {}
    try:
        node = msgspec.convert({**manifest, "status": slim}, Node)
        for amount in (*node.status.capacity.values(), *node.status.allocatable.values()):
            parse_quantity(amount)
        if node.metadata.creation_timestamp:
            nanoseconds(node.metadata.creation_timestamp)
    except msgspec.ValidationError as error:
        raise ExtenderError(f"json: a node of the answer is not a v1.Node: {error}") from None
    except InputError as error:
        raise ExtenderError(error.message) from None
    return AnsweredNode(manifest=manifest, node=node)


def _without_nulls(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _decode(question: ExtenderRequest, reply: Reply, shape: _Shape) -> object:
    match reply:
        case ExtenderFailure(text=text):
            raise ExtenderError(text)
        case ExtenderAnswer(status=status) if status != _OK:
            path = path_of(question.extender, question.verb)
            raise ExtenderError(f"failed {path} with extender at URL {question.url}, code {status}")
        case ExtenderAnswer(body=body, ended=ended):
            return _shape_value(_first_value(body, ended), shape, shape.name.removeprefix("v1."))
        case _:
            assert_never(reply)


# --- types as Go names them


class _Shape(Struct, frozen=True):
    """A type of extender/v1: its name in Go, and its contents."""

    name: str
    item: _Shape | None = None  # of a list or map
    fields: Mapping[str, _Shape] = {}
    kind: type = dict
    null: object = None


_STRING = _Shape("string", kind=str, null="")
_INT64 = _Shape("int64", kind=int, null=0)
_FAILED_NODES = _Shape("v1.FailedNodesMap", item=_STRING, null={})
_NODE = _Shape("v1.Node")
_FILTER_RESULT = _Shape(
    "v1.ExtenderFilterResult",
    fields={
        "Nodes": _Shape(
            "v1.NodeList",
            fields={
                "metadata": _Shape("v1.ListMeta"),
                "items": _Shape("[]v1.Node", kind=list, item=_NODE, null=[]),
            },
        ),
        "NodeNames": _Shape("[]string", kind=list, item=_STRING),
        "FailedNodes": _FAILED_NODES,
        "FailedAndUnresolvableNodes": _FAILED_NODES,
        "Error": _STRING,
    },
    null={},
)
_HOST_PRIORITY = _Shape("v1.HostPriority", fields={"Host": _STRING, "Score": _INT64}, null={})
_HOST_PRIORITIES = _Shape("v1.HostPriorityList", kind=list, item=_HOST_PRIORITY)
_META_PODS = _Shape("[]*v1.MetaPod", kind=list, item=_Shape("v1.MetaPod", fields={"UID": _STRING}), null=[])
_META_VICTIMS = _Shape("v1.MetaVictims", fields={"Pods": _META_PODS, "NumPDBViolations": _INT64})
_PREEMPTION_RESULT = _Shape(
    "v1.ExtenderPreemptionResult",
    fields={"NodeNameToMetaVictims": _Shape("map[string]*v1.MetaVictims", item=_META_VICTIMS, null={})},
    null={},
)


def _shape_value(value: object, shape: _Shape, path: str, *, is_element: bool = False) -> object:
    """Return the value with the fields of `shape`; keys are read without regard to case.

    Raises `ExtenderError` in the words of Go's UnmarshalTypeError; `path` leads from the outermost type to the value,
    which may be an element of a list.
    """
    if value is None:
        return shape.null
    match value:
        case dict() if shape.kind is dict and shape.fields:
            names = {name.casefold(): name for name in shape.fields}
            known = [(key, names[key.casefold()]) for key in value if key.casefold() in names]
            return {name: _shape_value(value[key], shape.fields[name], f"{path}.{key}") for key, name in known}
        case dict() if shape.kind is dict:
            item = shape.item
            if item is None:
                return value
            return {key: _shape_value(element, item, f"{path}.{key}") for key, element in value.items()}
        case list() if shape.kind is list and shape.item is not None:
            return [
                _shape_value(item, shape.item, f"{path}.{index}", is_element=True) for index, item in enumerate(value)
            ]
        case _Fraction() | bool():
            pass
        case int() if shape.kind is int and -(1 << 63) <= value < 1 << 63:
            return value
        case str() if shape.kind is str:
            return value
    kind = f"number {value}" if shape.kind is int and _go_kind(value) == "number" else _go_kind(value)
    into = path if is_element else f"Go struct field {path}" if "." in path else "Go value"
    raise ExtenderError(f"json: cannot unmarshal {kind} into {into} of type {shape.name}")


def _go_kind(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case int() | _Fraction():
            return "number"
        case str():
            return "string"
        case _:
            return "array" if isinstance(value, list) else "object"


# --- the text


class _Fraction(str):
    """A number with a fraction or an exponent, as written."""

    __slots__ = ()


def _integer(text: str) -> int | _Fraction:
    return int(text) if len(text) <= _LONGEST_INTEGER else _Fraction(text)


def _constant(text: str) -> Never:
    where = "in numeric literal" if text.startswith("-") else "looking for beginning of value"
    raise ExtenderError(f"invalid character '{text.removeprefix('-')[0]}' {where}")


_LONGEST_INTEGER = 20
_READER = json.JSONDecoder(parse_float=_Fraction, parse_int=_integer, parse_constant=_constant)
_BLANKS = " \t\n\r"
_LONE_SURROGATE = lazy_pattern(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2}"
)


def _first_value(body: bytes, ended: str) -> object:
    """Return the first JSON value of a body; the rest is not read. `ended` is the error with which the body ended.

    Raises `ExtenderError` in the words of Go's scanner.
    """
    text = _LONE_SURROGATE.sub(r"\\ufffd", body.decode("utf-8", "replace")).lstrip(_BLANKS)
    try:
        value: object = _READER.raw_decode(text)[0]
    except json.JSONDecodeError as error:
        raise ExtenderError(_complaint(text, error, ended)) from None
    except RecursionError:
        raise ExtenderError("exceeded max depth") from None
    return value


def _complaint(text: str, error: json.JSONDecodeError, ended: str) -> str:
    at = error.pos + error.msg.startswith("Illegal trailing comma")
    where = "looking for beginning of value"
    if error.msg.startswith("Invalid \\"):
        return _wrong_escape(text, text.rindex("\\", 0, at + 1), ended)
    if error.msg.startswith("Invalid"):
        where = "in string"
    else:
        at += len(text[at:]) - len(text[at:].lstrip(_BLANKS))
    if error.msg.startswith("Expecting ',"):
        where = "after object key:value pair" if _is_in_object(text[:at]) else "after array element"
    elif error.msg.startswith(("Expecting property", "Illegal trailing comma before end of object")):
        where = "looking for beginning of object key string"
    elif error.msg.startswith("Expecting ':"):
        where = "after object key"
    word = next((word for word in ("true", "false", "null") if text[at : at + 1] == word[0]), "")
    if word and error.msg.startswith("Expecting value"):
        same = next(n for n in range(len(word)) if text[at + n : at + n + 1] != word[n])
        at, where = at + same, f"in literal {word} (expecting '{word[same]}')"
    if text[at : at + 1] == "-" and error.msg.startswith("Expecting value"):
        at, where = at + 1, "in numeric literal"
    if at >= len(text) or error.msg.startswith("Unterminated"):
        return _end(text, ended)
    shown = r"'\''" if text[at] == "'" else repr(text[at])
    return f"invalid character {shown} {where}"


def _wrong_escape(text: str, start: int, ended: str) -> str:
    length = 6 if text[start + 1 : start + 2] == "u" else 2
    sequence = text[start : start + length]
    if len(sequence) < length:
        return _end(text, ended)
    is_plain = sequence.isprintable() and not {" ", "`"} & {*sequence}
    return f"invalid escape sequence {f'`{sequence}`' if is_plain else quote_go(sequence)} in string"


def _end(text: str, ended: str) -> str:
    return ended if ended != "EOF" else "unexpected EOF" if text else "EOF"


_STRING_OR_BRACKET = lazy_pattern(r'"(?:[^"\\]|\\.)*"|[][{}]')


def _is_in_object(text: str) -> bool:
    """Return whether the innermost open bracket at the end of a text is an object's."""
    opened: list[str] = []
    for token in _STRING_OR_BRACKET.findall(text):
        if token in "{[":
            opened.append(token)
        elif token in "}]" and opened:
            opened.pop()
    return opened[-1:] == ["{"]
