"""Ranges (least, most) of sizes and costs: of uint64, that stop at the largest one.

Upstream: cel-go's checker/cost.go (SizeEstimate, CostEstimate).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never

from kschedx.cel.costs import LIST, MAP, PATTERN, TRAVERSAL
from kschedx.cel.environment import LONGEST_LIST
from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, ListNode, Literal, MapNode, Select, StructNode
from kschedx.cel.types import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL, Type, TypeKind
from kschedx.cel.values import Uint

MOST = 2**64 - 1


def _factored(number: int, factor: float) -> int:
    product = float(number) * factor
    return MOST if product >= 2.0**64 else min(math.ceil(product), MOST)


class Range(NamedTuple):
    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def by(self, factor: float) -> Range:
        return Range(_factored(self.least, factor), _factored(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def exactly(number: int) -> Range:
    return Range(number, number)


UNKNOWN = Range(0, MOST)
ZERO, ONE = exactly(0), exactly(1)


# How large the parts of a device are at most.
#
# Upstream: dynamic-resource-allocation/cel/compile.go (sizeEstimator).

Path = tuple[str, ...]
"""Steps from a variable into it; `@keys`, `@values`, `@items` and `@indices` are all that a list or a map holds."""

_MOST_ATTRIBUTES = 32
_LONGEST_VALUE = 64
_LONGEST_DRIVER = _LONGEST_DOMAIN = 63
_LONGEST_ID = 32

_DEVICE_SIZES: dict[Path, int] = {
    (): 0,
    ("driver",): _LONGEST_DRIVER,
    ("allowMultipleAllocations",): 1,
    ("attributes",): _MOST_ATTRIBUTES,
    ("attributes", "@keys"): _LONGEST_DOMAIN,
    ("attributes", "@values"): _MOST_ATTRIBUTES,
    ("attributes", "@values", "@keys"): _LONGEST_ID,
    ("attributes", "@values", "@values"): _LONGEST_VALUE,
    ("capacity",): _MOST_ATTRIBUTES,
    ("capacity", "@keys"): _LONGEST_DOMAIN,
    ("capacity", "@values"): _MOST_ATTRIBUTES,
    ("capacity", "@values", "@keys"): _LONGEST_ID,
    ("capacity", "@values", "@values"): 0,
}


def device_size(path: Path) -> Range | None:
    """None of what is no part of a device."""
    if path[:1] != ("device",):
        return None
    own = tuple("@values" if part == "@items" else part for part in path[1:])
    if len(own) == 3 and own[:2] == ("attributes", "@values") and not own[2].startswith("@"):
        own = ("attributes", "@values", "@values")
    most = _DEVICE_SIZES.get(own)
    return None if most is None else Range(0, most)


# What a call of a library's function may cost at most, and how large its result is.
#
# Upstream: apiserver/pkg/cel/library/cost.go, and the estimators in cel-go's ext/lists.go and ext/sets.go.

_LONGEST_FORMAT_PATTERN = 128
_LONGEST_FORMAT_NAME = 64


class Part(NamedTuple):
    """An argument as the cost of a call sees it."""

    path: Path
    type: Type
    size: Range | None
    expression: Expr | None = None


class EstimatedCost(NamedTuple):
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


def _allocating(factor: float, size: Range) -> EstimatedCost:
    return EstimatedCost(size.by(factor).plus(exactly(1 + LIST)), size)


def _whole_number(part: Part, otherwise: int) -> int:
    one = part.expression
    if not isinstance(one, Literal) or type(one.value) is not int or isinstance(one.value, Uint):
        return otherwise
    return max(one.value, 0)


def _ext_list_cost(overload: str, target: Part | None, parts: Sequence[Part]) -> EstimatedCost | None:
    if overload == "lists_range":
        return _allocating(1, exactly(_whole_number(parts[0], MOST)))
    if overload.startswith("list_sets_"):
        factor = 2.0 if overload == "list_sets_equivalent_list" else 1.0
        return EstimatedCost(_sized(parts[0]).times(_sized(parts[1])).by(factor).plus(ONE))
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


def library_cost(function: str, overload: str, target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    """None where Kubernetes has no estimate of its own."""
    own = _ext_list_cost(overload, target, parts)
    if own is not None:
        return own
    if overload == "dra_includes_dyn_dyn":
        return EstimatedCost(Range(0, LONGEST_LIST))
    if function in _CONSTANT:
        return EstimatedCost(ONE)
    if function in _OF_FIRST:
        return EstimatedCost(_traversed(parts[0]))
    cost = _BY_FUNCTION.get(function)
    return None if cost is None else cost(overload, target, parts)


_Estimator = Callable[[str, Part | None, list[Part]], EstimatedCost | None]


def _check(_overload: str, _target: Part | None, _parts: list[Part]) -> EstimatedCost:
    return EstimatedCost(exactly(350000))


def _of_list(_overload: str, target: Part | None, _parts: list[Part]) -> EstimatedCost | None:
    if target is None:
        return None
    element = _element(target)
    if element is None:
        return EstimatedCost(_traversed(target))
    each = ONE
    if element.type.kind in (TypeKind.STRING, TypeKind.BYTES):
        each = each.plus(_traversed(element))
    return EstimatedCost(_sized(target).times(each))


def _url(_overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    return EstimatedCost(_traversed(parts[0]), _sized(parts[0])) if len(parts) == 1 else None


def _of_text(_overload: str, target: Part | None, _parts: list[Part]) -> EstimatedCost | None:
    return None if target is None else EstimatedCost(_traversed(target), _sized(target))


def _replace(_overload: str, target: Part | None, parts: list[Part]) -> EstimatedCost | None:
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
    return EstimatedCost(whole.by(2 * TRAVERSAL), size)


def _split(_overload: str, target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    if target is None:
        return None
    most = _sized(target).most
    if len(parts) > 1:
        limit = parts[1].expression
        if isinstance(limit, Literal) and type(limit.value) is int:
            most = limit.value & MOST
    return EstimatedCost(_sized(target).by(2 * TRAVERSAL), Range(0, most))


def _join(_overload: str, target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    if target is None:
        return None
    items = _sized(target)
    element = _element(target)
    size = ZERO if element is None else items.times(_sized(element))
    if parts:
        between = Range(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(_sized(parts[0]).times(between))
    return EstimatedCost(size.by(TRAVERSAL), size)


def _find(_overload: str, target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    if target is None or not parts:
        return None
    size = _sized(target)
    cost = size.plus(ONE).by(TRAVERSAL).times(_sized(parts[0]).by(PATTERN))
    return EstimatedCost(cost, Range(0, size.most))


def _ip(overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    if overload == "cidr_ip":
        return EstimatedCost(ONE)
    return EstimatedCost(_traversed(parts[0])) if parts else None


def _is_canonical(_overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost:
    return EstimatedCost(_traversed(parts[0], 2))


def _contains_ip(overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost:
    cost = _ADDRESS.plus(_ADDRESS).by(TRAVERSAL)
    if overload.endswith("_string"):
        cost = cost.plus(_traversed(parts[0]))
    return EstimatedCost(cost)


def _contains_cidr(overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost:
    cost = _ADDRESS.plus(_ADDRESS).by(TRAVERSAL).plus(_ADDRESS.by(TRAVERSAL)).plus(ONE)
    if overload.endswith("_string"):
        cost = cost.plus(_traversed(parts[0]))
    return EstimatedCost(cost)


def _validate(_overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost:
    return EstimatedCost(_traversed(parts[0]).by(_LONGEST_FORMAT_PATTERN * PATTERN))


def _equals(_overload: str, _target: Part | None, parts: list[Part]) -> EstimatedCost | None:
    one, other = parts
    if one.type != other.type:
        return None
    if one.type in (IP, CIDR, QUANTITY, SEMVER):
        return EstimatedCost(ONE)
    if one.type == FORMAT:
        return EstimatedCost(Range(1, _LONGEST_FORMAT_NAME).by(TRAVERSAL))
    if one.type == URL:
        size = ONE if other.size is None else other.size
        return EstimatedCost(Range(1, size.most).by(TRAVERSAL))
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


# What an expression may cost at most: above a limit the API server does not store it.
#
# Upstream: cel-go's checker/cost.go.

_STRUCT = 40
"""To make a message."""


class _Entries(NamedTuple):
    """Sizes of what a list or a map holds."""

    is_list: bool
    key: Range
    value: Range

    def union(self, other: _Entries | None) -> _Entries | None:
        return other and _Entries(self.is_list, self.key.union(other.key), self.value.union(other.value))


class _Local(NamedTuple):
    path: Path
    size: Range | None
    entries: _Entries | None


def most_expensive(root: Expr) -> int:
    """The most that a checked expression may cost."""
    return _Estimate().cost(root).most


class _Estimate:
    def __init__(self) -> None:
        self._paths: dict[Expr, Path] = {}
        self._locals: dict[str, list[_Local]] = {}
        self._sizes: dict[Expr, Range] = {}
        self._entries: dict[Expr, _Entries] = {}

    def cost(self, one: Expr) -> Range:
        match one:
            case Literal():
                return ZERO
            case Ident():
                local = self._local(one.name)
                self._paths[one] = (one.name,) if local is None else local.path
                return ONE
            case Select():
                return self._select(one)
            case Call():
                return self._call(one)
            case ListNode():
                return self._list(one)
            case MapNode():
                return self._map(one)
            case StructNode():
                return exactly(_STRUCT)
            case Comprehension():
                return self._bind(one) if _is_bind(one) else self._comprehension(one)
        assert_never(one)

    # --- sizes

    def _local(self, name: str) -> _Local | None:
        known = self._locals.get(name)
        return known[-1] if known else None

    def _path(self, one: Expr) -> Path:
        local = self._local(one.name) if isinstance(one, Ident) else None
        return self._paths.get(one, ()) if local is None else local.path

    def _size(self, one: Expr) -> Range | None:
        known = self._sizes.get(one)
        if known is not None:
            return known
        written = _written_size(one)
        if written is not None:
            return written
        of_device = device_size(self._path(one))
        if of_device is not None:
            self._sizes[one] = of_device
            return of_device
        if _is_scalar(one.type):
            return ONE
        local = self._local(one.name) if isinstance(one, Ident) else None
        return None if local is None else local.size

    def _size_or_unknown(self, one: Expr) -> Range:
        size = self._size(one)
        return UNKNOWN if size is None else size

    def _set_size(self, one: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[one] = size

    def _entry_sizes(self, one: Expr) -> _Entries | None:
        known = self._entries.get(one)
        if known is not None:
            return known
        local = self._local(one.name) if isinstance(one, Ident) else None
        return None if local is None else local.entries

    def _part(self, one: Expr) -> Part:
        path = self._path(one)
        return Part(() if path[:1] == ("@result",) else path, one.type, self._size(one), one)

    # --- what is put together

    def _select(self, one: Select) -> Range:
        if one.stands_for is not None:
            return ONE
        total = self.cost(one.operand)
        if one.is_test:
            return total
        if one.operand.type.kind in (TypeKind.MAP, TypeKind.STRUCT, TypeKind.TYPE_PARAM):
            total = total.plus(ONE)
        self._paths[one] = (*self._path(one.operand), one.field)
        return total

    def _list(self, one: ListNode) -> Range:
        total = ZERO
        items = Range(MOST if one.elements else 0, 0)
        for element in one.elements:
            total = total.plus(self.cost(element))
            items = items.union(self._size_or_unknown(element))
        self._entries[one] = _Entries(True, ONE, items)
        return total.plus(exactly(LIST))

    def _map(self, one: MapNode) -> Range:
        total = ZERO
        keys = values = Range(MOST if one.entries else 0, 0)
        for key, value, _ in one.entries:
            total = total.plus(self.cost(key)).plus(self.cost(value))
            keys = keys.union(self._size_or_unknown(key))
            values = values.union(self._size_or_unknown(value))
        self._entries[one] = _Entries(False, keys, values)
        return total.plus(exactly(MAP))

    # --- comprehensions

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_value(self, name: str, one: Expr) -> None:
        self._push(name, _Local(self._path(one), self._size(one), self._entry_sizes(one)))

    def _push_variables(self, one: Comprehension) -> None:
        entries = self._entry_sizes(one.over)
        over_list = entries.is_list if entries is not None else one.over.type.kind is TypeKind.LIST
        path = self._path(one.over)
        key = _Local((*path, "@indices" if over_list else "@keys"), entries and entries.key, None)
        value = _Local((*path, "@items" if over_list else "@values"), entries and entries.value, None)
        if one.variable2:
            self._push(one.variable, key)
            self._push(one.variable2, value)
        else:
            self._push(one.variable, value if over_list else key)

    def _comprehension(self, one: Comprehension) -> Range:
        total = self.cost(one.over).plus(self.cost(one.initial))
        self._push_value(one.accumulator, one.initial)
        self._push_variables(one)
        each = self.cost(one.condition)
        each = self.cost(one.step).plus(each)
        self._locals[one.variable].pop()
        if one.variable2:
            self._locals[one.variable2].pop()
        total = total.plus(self.cost(one.result))
        self._locals[one.accumulator].pop()
        count = self._size_or_unknown(one.over)
        total = total.plus(count.times(each))
        if isinstance(one.initial, Literal):
            self._set_size(one, self._size(one.initial))
        elif isinstance(one.initial, ListNode | MapNode):
            self._sizes[one] = count
            entries = self._entry_sizes(one.step)
            if entries is not None:
                self._entries[one] = entries
        return total

    def _bind(self, one: Comprehension) -> Range:
        total = self.cost(one.over).plus(self.cost(one.initial))
        self._push_value(one.accumulator, one.initial)
        total = total.plus(self.cost(one.result))
        self._locals[one.accumulator].pop()
        self._copy_sizes(one, one.result)
        return total

    def _copy_sizes(self, to: Expr, source: Expr) -> None:
        self._set_size(to, self._size(source))
        entries = self._entry_sizes(source)
        if entries is not None:
            self._entries[to] = entries

    # --- calls

    def _call(self, one: Call) -> Range:
        if one.function == "dyn":
            total = self.cost(one.arguments[0]).plus(ONE)
            self._copy_sizes(one, one.arguments[0])
            return total
        costs = []
        parts = []
        for argument in one.arguments:
            costs.append(self.cost(argument))
            parts.append(self._part(argument))
        if not one.overloads:
            return ZERO
        total = ZERO
        target = None
        if one.target is not None:
            total = self.cost(one.target)
            target = self._part(one.target)
        call = Range(MOST, 0)
        size: Range | None = None
        for overload in one.overloads:
            found = self._overload(one, overload, target, parts, costs)
            call = call.union(found.cost)
            if found.size is not None:
                size = found.size if size is None else size.union(found.size)
            if overload in ("index_list", "index_map"):
                entries = self._entry_sizes(one.arguments[0])
                size = entries and entries.value
                step = "@items" if overload == "index_list" else "@values"
                self._paths[one] = (*self._path(one.arguments[0]), step)
            if size is None:
                size = self._size(one)
        self._set_size(one, size)
        return total.plus(call)

    def _overload(
        self, one: Call, overload: str, target: Part | None, parts: list[Part], costs: list[Range]
    ) -> EstimatedCost:
        own = library_cost(one.function, overload, target, parts)
        if own is None:
            own = self._standard_cost(one, overload, target, parts, costs)
            if own is None:
                own = EstimatedCost(ONE)
            elif overload in ("logical_or", "logical_and", "conditional"):
                return own
        total = own.cost
        for cost in costs:
            total = total.plus(cost)
        return EstimatedCost(total, own.size)

    def _standard_cost(
        self, one: Call, overload: str, target: Part | None, parts: list[Part], costs: list[Range]
    ) -> EstimatedCost | None:
        """Without the arguments' own, where it is no branch."""
        sizes = [UNKNOWN if part.size is None else part.size for part in parts]
        of_target = UNKNOWN if target is None or target.size is None else target.size
        if overload == "string_format":
            return EstimatedCost(of_target.by(TRAVERSAL))
        if overload == "string_to_bytes":
            return EstimatedCost(sizes[0].by(TRAVERSAL), Range(sizes[0].least, sizes[0].most * 4 & MOST))
        if overload == "bytes_to_string":
            return EstimatedCost(sizes[0].by(TRAVERSAL), Range(sizes[0].least // 4, sizes[0].most))
        if overload == "strings_quote":
            quoted = Range(sizes[0].least + 2, sizes[0].most * 2 + 2 & MOST)
            return EstimatedCost(sizes[0].by(TRAVERSAL), quoted)
        if overload in ("starts_with_string", "ends_with_string"):
            return EstimatedCost(sizes[0].by(TRAVERSAL))
        if overload == "in_list":
            return EstimatedCost(sizes[1].by(1))
        if overload == "matches_string" and target is not None:
            return EstimatedCost(of_target.plus(ONE).by(TRAVERSAL).times(sizes[0].by(PATTERN)))
        if overload == "contains_string":
            return EstimatedCost(of_target.by(TRAVERSAL).times(sizes[0].by(TRAVERSAL)))
        if overload in ("logical_or", "logical_and"):
            return EstimatedCost(Range(costs[0].least, costs[0].plus(costs[1]).most))
        if overload == "conditional":
            entries = self._entry_sizes(one.arguments[1])
            joined = entries and entries.union(self._entry_sizes(one.arguments[2]))
            if joined is not None:
                self._entries[one] = joined
            return EstimatedCost(costs[0].plus(costs[1].union(costs[2])), sizes[1].union(sizes[2]))
        if overload in ("add_string", "add_bytes", "add_list"):
            whole = sizes[0].plus(sizes[1])
            entries = self._entry_sizes(one.arguments[0])
            joined = entries and entries.union(self._entry_sizes(one.arguments[1]))
            if joined is not None:
                self._entries[one] = joined
            return EstimatedCost(ONE if overload == "add_list" else whole.by(TRAVERSAL), whole)
        if overload in _COMPARED:
            most = min(sizes[0].most, sizes[1].most)
            return EstimatedCost(Range(1 if most else 0, most).by(TRAVERSAL))
        return None


_COMPARED = frozenset(
    f"{word}_{kind}" for word in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
) | {"equals", "not_equals"}


def _is_bind(one: Comprehension) -> bool:
    is_never = isinstance(one.condition, Literal) and one.condition.value is False
    return isinstance(one.over, ListNode) and not one.over.elements and is_never and one.accumulator != "__result__"


def _written_size(one: Expr) -> Range | None:
    if isinstance(one, Literal):
        return exactly(len(one.value) if isinstance(one.value, str | bytes) else 1)
    if isinstance(one, ListNode):
        return exactly(len(one.elements))
    return exactly(len(one.entries)) if isinstance(one, MapNode) else None


_SCALARS = (TypeKind.BOOL, TypeKind.DOUBLE, TypeKind.DURATION, TypeKind.INT, TypeKind.TIMESTAMP, TypeKind.UINT)


def _is_scalar(one: Type) -> bool:
    if one.kind is TypeKind.OPAQUE and one.name == "optional_type":
        return _is_scalar(one.parameters[0])
    return one.kind in _SCALARS
