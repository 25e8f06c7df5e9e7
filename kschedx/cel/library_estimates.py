"""What a call of a library's function may cost at most, and how large its result is.

Upstream: apiserver/pkg/cel/library/cost.go, and the estimators in cel-go's ext/lists.go and ext/sets.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from kschedx.cel.costs import LIST, PATTERN, TRAVERSAL
from kschedx.cel.device_sizes import Path, device_size
from kschedx.cel.environment import LONGEST_LIST
from kschedx.cel.ranges import MOST, ONE, UNKNOWN, ZERO, Range, exactly
from kschedx.cel.syntax import Expr, Literal
from kschedx.cel.types import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL, Kind, Type
from kschedx.cel.values import Uint

_LONGEST_FORMAT_PATTERN = 128
_LONGEST_FORMAT_NAME = 64


class Part(NamedTuple):
    """An argument as the cost of a call sees it."""

    path: Path
    type: Type
    size: Range | None
    expression: Expr | None = None


class Cost(NamedTuple):
    """Of a call, and the size of its result where that is known."""

    cost: Range
    size: Range | None = None


def _sized(part: Part) -> Range:
    if part.size is not None:
        return part.size
    of_device = device_size(part.path)
    return UNKNOWN if of_device is None else of_device


def _element(part: Part) -> Part | None:
    if not part.type.parameters:
        return None
    return Part((*part.path, "@items") if part.path else (), part.type.parameters[0], None)


def _allocating(factor: float, size: Range) -> Cost:
    return Cost(size.by(factor).plus(exactly(1 + LIST)), size)


def _whole_number(part: Part, otherwise: int) -> int:
    one = part.expression
    if not isinstance(one, Literal) or type(one.value) is not int or isinstance(one.value, Uint):
        return otherwise
    return max(one.value, 0)


def _ext_list_cost(overload: str, target: Part | None, parts: Sequence[Part]) -> Cost | None:
    if overload == "lists_range":
        return _allocating(1, exactly(_whole_number(parts[0], MOST)))
    if overload.startswith("list_sets_"):
        factor = 2.0 if overload == "list_sets_equivalent_list" else 1.0
        return Cost(_sized(parts[0]).times(_sized(parts[1])).by(factor).plus(ONE))
    if target is None:
        return None
    if overload == "list_slice":
        start, end = _whole_number(parts[0], 0), _whole_number(parts[1], _sized(target).most)
        return _allocating(1, exactly(end - start & MOST))
    if overload == "list_reverse":
        return _allocating(1, _sized(target))
    if overload in ("list_flatten", "list_flatten_int"):
        return _allocating(float(_whole_number(parts[0], MOST) if parts else 1), _sized(target))
    if overload == "list_distinct":
        return _allocating(2.0, _sized(target).times(_sized(target)))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")) and overload.startswith("list_"):
        size = _sized(parts[0] if parts else target)
        is_text = overload.split("_")[1] in ("string", "bytes")
        return _allocating(2.0 + TRAVERSAL if is_text else 2.0, size.times(size))
    return None


def _traversed(part: Part, factor: float = 1) -> Range:
    return _sized(part).by(factor * TRAVERSAL)


_ADDRESS = Range(4, 16)

_CONSTANT = frozenset(
    {
        "masked",
        "prefixLength",
        "family",
        "format.named",
        "getScheme",
        "getHostname",
        "getHost",
        "getPort",
        "isUnspecified",
        "isLoopback",
        "isLinkLocalMulticast",
        "isLinkLocalUnicast",
        "isGlobalUnicast",
        "sign",
        "asInteger",
        "isInteger",
        "asApproximateFloat",
        "isGreaterThan",
        "isLessThan",
        "compareTo",
        "add",
        "sub",
        "major",
        "minor",
        "patch",
        "getEscapedPath",
        "getQuery",
        "path",
        "group",
        "serviceAccount",
        "resource",
        "subresource",
        "namespace",
        "name",
        "allowed",
        "reason",
        "error",
        "errored",
    }
)

_OF_FIRST = frozenset(["cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"])


def library_cost(function: str, overload: str, target: Part | None, parts: list[Part]) -> Cost | None:
    """None where Kubernetes has no estimate of its own."""
    own = _ext_list_cost(overload, target, parts)
    if own is not None:
        return own
    if overload == "dra_includes_dyn_dyn":
        return Cost(Range(0, LONGEST_LIST))
    if function in _CONSTANT:
        return Cost(ONE)
    if function in _OF_FIRST:
        return Cost(_traversed(parts[0]))
    cost = _BY_FUNCTION.get(function)
    return None if cost is None else cost(overload, target, parts)


_Estimator = Callable[[str, Part | None, list[Part]], Cost | None]


def _check(_overload: str, _target: Part | None, _parts: list[Part]) -> Cost:
    return Cost(exactly(350000))


def _of_list(_overload: str, target: Part | None, _parts: list[Part]) -> Cost | None:
    if target is None:
        return None
    element = _element(target)
    if element is None:
        return Cost(_traversed(target))
    each = ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(_traversed(element))
    return Cost(_sized(target).times(each))


def _url(_overload: str, _target: Part | None, parts: list[Part]) -> Cost | None:
    return Cost(_traversed(parts[0]), _sized(parts[0])) if len(parts) == 1 else None


def _of_text(_overload: str, target: Part | None, _parts: list[Part]) -> Cost | None:
    return None if target is None else Cost(_traversed(target), _sized(target))


def _replace(_overload: str, target: Part | None, parts: list[Part]) -> Cost | None:
    if target is None or len(parts) < 2:
        return None
    whole, old, new = _sized(target), _sized(parts[0]), _sized(parts[1])
    if old.least == 0:
        most, kept_most = min(whole.most + 1, MOST), whole.most
    elif new.most <= old.least:
        most, kept_most = 0, whole.most
    else:
        most, kept_most = min(math.ceil(float(whole.most) / float(old.least)), MOST), 0
    if old.most == 0:
        least, kept_least = min(whole.least + 1, MOST), whole.least
    elif old.most <= new.least:
        least, kept_least = 0, whole.least
    else:
        least, kept_least = min(math.ceil(float(whole.least) / float(old.most)), MOST), 0
    size = Range(least, most).times(new).plus(Range(kept_least, kept_most))
    return Cost(whole.by(2 * TRAVERSAL), size)


def _split(_overload: str, target: Part | None, parts: list[Part]) -> Cost | None:
    if target is None:
        return None
    most = _sized(target).most
    if len(parts) > 1:
        limit = parts[1].expression
        if isinstance(limit, Literal) and type(limit.value) is int:
            most = limit.value & MOST
    return Cost(_sized(target).by(2 * TRAVERSAL), Range(0, most))


def _join(_overload: str, target: Part | None, parts: list[Part]) -> Cost | None:
    if target is None:
        return None
    items = _sized(target)
    element = _element(target)
    size = ZERO if element is None else items.times(_sized(element))
    if parts:
        between = Range(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(_sized(parts[0]).times(between))
    return Cost(size.by(TRAVERSAL), size)


def _find(_overload: str, target: Part | None, parts: list[Part]) -> Cost | None:
    if target is None or not parts:
        return None
    size = _sized(target)
    cost = size.plus(ONE).by(TRAVERSAL).times(_sized(parts[0]).by(PATTERN))
    return Cost(cost, Range(0, size.most))


def _ip(overload: str, _target: Part | None, parts: list[Part]) -> Cost | None:
    if overload == "cidr_ip":
        return Cost(ONE)
    return Cost(_traversed(parts[0])) if parts else None


def _is_canonical(_overload: str, _target: Part | None, parts: list[Part]) -> Cost:
    return Cost(_traversed(parts[0], 2))


def _contains_ip(overload: str, _target: Part | None, parts: list[Part]) -> Cost:
    cost = _ADDRESS.plus(_ADDRESS).by(TRAVERSAL)
    if overload.endswith("_string"):
        cost = cost.plus(_traversed(parts[0]))
    return Cost(cost)


def _contains_cidr(overload: str, _target: Part | None, parts: list[Part]) -> Cost:
    cost = _ADDRESS.plus(_ADDRESS).by(TRAVERSAL).plus(_ADDRESS.by(TRAVERSAL)).plus(ONE)
    if overload.endswith("_string"):
        cost = cost.plus(_traversed(parts[0]))
    return Cost(cost)


def _validate(_overload: str, _target: Part | None, parts: list[Part]) -> Cost:
    return Cost(_traversed(parts[0]).by(_LONGEST_FORMAT_PATTERN * PATTERN))


def _equals(_overload: str, _target: Part | None, parts: list[Part]) -> Cost | None:
    one, other = parts
    if one.type != other.type:
        return None
    if one.type in (IP, CIDR, QUANTITY, SEMVER):
        return Cost(ONE)
    if one.type == FORMAT:
        return Cost(Range(1, _LONGEST_FORMAT_NAME).by(TRAVERSAL))
    if one.type == URL:
        size = ONE if other.size is None else other.size
        return Cost(Range(1, size.most).by(TRAVERSAL))
    return None


_BY_FUNCTION: dict[str, _Estimator] = {
    "check": _check,
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _of_list),
    "url": _url,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _of_text),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    "ip": _ip,
    "ip.isCanonical": _is_canonical,
    "containsIP": _contains_ip,
    "containsCIDR": _contains_cidr,
    "validate": _validate,
    "_==_": _equals,
}
