"""The cost of calls during evaluation.

Upstream: cel-go's interpreter/runtimecost.go, apiserver/pkg/cel/library/cost.go, and the trackers in ext/lists.go and
ext/sets.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from kschedx.cel.values import (
    CelFormat,
    CelQuantity,
    CelUrl,
    Cidr,
    Fault,
    Ip,
    MapValue,
    Optional,
    Semver,
    Value,
    is_list,
    size,
)
from kschedx.kube.devices import EvaluationError

LIST, MAP = 10, 30

_TRAVERSAL = 0.1  # per character of a text
_PATTERN = 0.25  # per character of a regular expression, multiplied with the text's

CallCost = Callable[[Sequence[Value], Value], int]
"""Takes the arguments, including the receiver of a member, and the result."""


def _size(value: Value) -> int:
    return _size(value.value) if isinstance(value, Optional) and value.value is not None else _library_size(value)


def _library_size(value: Value) -> int:
    measured = size(value)
    return 1 if measured is None else measured


def _traversal_cost(value: Value, factor: float = 1) -> int:
    return math.ceil(float(_library_size(value)) * factor * _TRAVERSAL)


def _first_argument_cost(factor: float = 1) -> CallCost:
    return lambda arguments, _: _traversal_cost(arguments[0], factor)


def _pattern(arguments: Sequence[Value], _: Value) -> int:
    text = math.ceil((1.0 + float(_library_size(arguments[0]))) * _TRAVERSAL)
    return text * math.ceil(float(_library_size(arguments[1])) * _PATTERN)


def _full_traversal_cost(value: Value) -> int:
    """Return the cost of a value with everything in it; texts count in bytes."""
    if isinstance(value, str):
        return int(len(value.encode(errors="surrogatepass")) * _TRAVERSAL)
    if isinstance(value, bytes):
        return int(len(value) * _TRAVERSAL)
    if is_list(value):
        return sum(1 if type(item) is int else _full_traversal_cost(item) for item in value)
    if isinstance(value, MapValue):
        return sum(_full_traversal_cost(key) + _full_traversal_cost(value.find(key)) for key in value.own_keys())
    return 1


def _contains_ip(is_text: bool) -> CallCost:
    def cost(arguments: Sequence[Value], _: Value) -> int:
        prefix = _library_size(arguments[0])
        text = math.ceil(float(_library_size(arguments[1])) * _TRAVERSAL) if is_text else 0
        return math.ceil(float(2 * prefix) * _TRAVERSAL) + text

    return cost


def _contains_cidr(is_text: bool) -> CallCost:
    of_address = _contains_ip(is_text)
    return lambda arguments, result: of_address(arguments, result) + _traversal_cost(arguments[0]) + 1


def _validate(arguments: Sequence[Value], _: Value) -> int:
    item, text = arguments
    if not isinstance(item, CelFormat):
        return 1
    return math.ceil((1.0 + float(_library_size(text))) * _TRAVERSAL) * math.ceil(
        float(item.longest_pattern) * _PATTERN
    )


def shorter_traversal(arguments: Sequence[Value], _: Value) -> int:
    return math.ceil(float(min(_size(arguments[0]), _size(arguments[1]))) * _TRAVERSAL)


_OPAQUE = (CelQuantity, Ip, Cidr, CelFormat, CelUrl, Semver)


def equality(arguments: Sequence[Value], result: Value) -> int:
    return 1 if isinstance(arguments[0], _OPAQUE) else shorter_traversal(arguments, result)


def _sum_cost(arguments: Sequence[Value], _: Value) -> int:
    return math.ceil(float(_size(arguments[0]) + _size(arguments[1])) * _TRAVERSAL)


def _product_cost(arguments: Sequence[Value], _: Value) -> int:
    return math.ceil(float(_size(arguments[0])) * _TRAVERSAL) * math.ceil(float(_size(arguments[1])) * _TRAVERSAL)


def _allocation_cost(factor: float, items: int) -> int:
    return int(float(items) * factor) + 1 + LIST


def _result_cost(_: Sequence[Value], result: Value) -> int:
    return _allocation_cost(1, _library_size(result))


def _flatten_cost(arguments: Sequence[Value], _: Value) -> int:
    depth = arguments[1] if len(arguments) == 2 else 1
    assert isinstance(depth, int)
    return max(_allocation_cost(float(depth), _library_size(arguments[0])), 0)


_NOT_A_LIST = "internal error: interface conversion: *types.Err is not traits.Lister: missing method Add"
"""cel-go panics while it counts the cost of a list that could not be evaluated."""


def _self_compared(index: int) -> CallCost:
    def cost(arguments: Sequence[Value], _: Value) -> int:
        items = arguments[index]
        if isinstance(items, Fault):
            raise EvaluationError(_NOT_A_LIST)
        if not is_list(items) or not items:
            return _allocation_cost(2.0, 0)
        factor = 2.0 + _TRAVERSAL if isinstance(items[0], str | bytes) else 2.0
        return _allocation_cost(factor, len(items) ** 2)

    return cost


def _sets(factor: float) -> CallCost:
    return lambda arguments, _: 1 + int(float(_library_size(arguments[0]) * _library_size(arguments[1])) * factor)


_BY_OVERLOAD: dict[str, CallCost] = {
    **dict.fromkeys(("list_slice", "lists_range", "list_reverse"), _result_cost),
    **dict.fromkeys(("list_flatten", "list_flatten_int"), _flatten_cost),
    "list_distinct": _self_compared(0),
    "list_sets_contains_list": _sets(1),
    "list_sets_intersects_list": _sets(1),
    "list_sets_equivalent_list": _sets(2),
}
"""Costs by overload, which precede a function's own."""

_BY_FUNCTION: dict[str, CallCost] = {
    **dict.fromkeys(
        ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"),
        lambda arguments, _: _full_traversal_cost(arguments[0]),
    ),
    **dict.fromkeys(("url", "lowerAscii", "upperAscii", "substring", "trim"), _first_argument_cost()),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _first_argument_cost()),
    **dict.fromkeys(("replace", "split", "ip.isCanonical"), _first_argument_cost(2)),
    "join": lambda _, result: _traversal_cost(result, 2),
    **dict.fromkeys(("find", "findAll"), _pattern),
    "validate": _validate,
}

_STANDARD: dict[str, CallCost] = {
    **dict.fromkeys(
        (
            *("starts_with_string", "ends_with_string", "string_to_bytes", "bytes_to_string"),
            *("strings_quote", "string_format"),
        ),
        lambda arguments, _: math.ceil(float(_size(arguments[0])) * _TRAVERSAL),
    ),
    "in_list": lambda arguments, _: _size(arguments[1]),
    **dict.fromkeys(
        (f"{w}_{kind}" for w in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")),
        shorter_traversal,
    ),
    "add_string": _sum_cost,
    "add_bytes": _sum_cost,
    "matches_string": _pattern,
    "contains_string": _product_cost,
}


def call_cost(function: str, overload: str) -> CallCost | None:
    """Return the cost function of a call, or None if the cost is 1. The overload is empty if several are possible."""
    own = _BY_OVERLOAD.get(overload)
    if own is not None:
        return own
    if overload.startswith("list_") and overload.endswith("_sort"):
        return _self_compared(0)
    if overload.endswith("_sortByAssociatedKeys"):
        return _self_compared(1)
    if function == "ip":
        return None if overload == "cidr_ip" else _first_argument_cost()
    if function == "containsIP":
        return _contains_ip(overload == "cidr_contains_ip_string")
    if function == "containsCIDR":
        return _contains_cidr(overload == "cidr_contains_cidr_string")
    if function in _BY_FUNCTION:
        return _BY_FUNCTION[function]
    return _STANDARD.get(overload)
