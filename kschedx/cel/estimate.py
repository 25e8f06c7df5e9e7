"""What an expression may cost at most: above a limit the API server does not store it.

Sizes and costs are ranges (least, most) of uint64, that stop at the largest one.

Upstream: cel-go's checker/cost.go, apiserver/pkg/cel/library/cost.go, and the sizes of a device in
dynamic-resource-allocation/cel/compile.go.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, assert_never

from kschedx.cel.environment import LONGEST_LIST
from kschedx.cel.syntax import (
    Call,
    Comprehension,
    Expr,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Select,
    StructNode,
)
from kschedx.cel.types import CIDR, FORMAT, IP, QUANTITY, SEMVER, URL, Kind, Type
from kschedx.cel.values import Uint

_MOST = 2**64 - 1
_TRAVERSAL = 0.1
"""Of a text, for each character."""
_PATTERN = 0.25
"""Of a regular expression, for each character of its text."""
_LIST, _MAP, _STRUCT = 10, 30, 40
"""To make one."""
_LONGEST_FORMAT_PATTERN = 128
_LONGEST_FORMAT_NAME = 64


def _factored(number: int, factor: float) -> int:
    product = float(number) * factor
    return _MOST if product >= 2.0**64 else min(math.ceil(product), _MOST)


class Range(NamedTuple):
    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, _MOST), min(self.most + other.most, _MOST))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, _MOST), min(self.most * other.most, _MOST))

    def by(self, factor: float) -> Range:
        return Range(_factored(self.least, factor), _factored(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def _exactly(number: int) -> Range:
    return Range(number, number)


_UNKNOWN = Range(0, _MOST)
_ZERO, _ONE = _exactly(0), _exactly(1)

Path = tuple[str, ...]


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


class _Part(NamedTuple):
    """An argument as the cost of a call sees it."""

    path: Path
    type: Type
    size: Range | None
    expression: Expr | None = None


class _Cost(NamedTuple):
    cost: Range
    size: Range | None = None


# --- how large the parts of a device are at most

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


def _device_size(path: Path) -> Range | None:
    if path[:1] != ("device",):
        return None
    own = tuple("@values" if part == "@items" else part for part in path[1:])
    if len(own) == 3 and own[:2] == ("attributes", "@values") and not own[2].startswith("@"):
        own = ("attributes", "@values", "@values")
    most = _DEVICE_SIZES.get(own)
    return None if most is None else Range(0, most)


# --- the estimate


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
                return _ZERO
            case Ident():
                local = self._local(one.name)
                self._paths[one] = (one.name,) if local is None else local.path
                return _ONE
            case Select():
                return self._select(one)
            case Call():
                return self._call(one)
            case ListNode():
                return self._list(one)
            case MapNode():
                return self._map(one)
            case StructNode():
                return _exactly(_STRUCT)
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
        of_device = _device_size(self._path(one))
        if of_device is not None:
            self._sizes[one] = of_device
            return of_device
        if _is_scalar(one.type):
            return _ONE
        local = self._local(one.name) if isinstance(one, Ident) else None
        return None if local is None else local.size

    def _size_or_unknown(self, one: Expr) -> Range:
        size = self._size(one)
        return _UNKNOWN if size is None else size

    def _set_size(self, one: Expr, size: Range | None) -> None:
        if size is not None:
            self._sizes[one] = size

    def _entry_sizes(self, one: Expr) -> _Entries | None:
        known = self._entries.get(one)
        if known is not None:
            return known
        local = self._local(one.name) if isinstance(one, Ident) else None
        return None if local is None else local.entries

    def _part(self, one: Expr) -> _Part:
        path = self._path(one)
        return _Part(() if path[:1] == ("@result",) else path, one.type, self._size(one), one)

    # --- what is put together

    def _select(self, one: Select) -> Range:
        if one.stands_for is not None:
            return _ONE
        total = self.cost(one.operand)
        if one.is_test:
            return total
        if one.operand.type.kind in (Kind.MAP, Kind.STRUCT, Kind.TYPE_PARAM):
            total = total.plus(_ONE)
        self._paths[one] = (*self._path(one.operand), one.field)
        return total

    def _list(self, one: ListNode) -> Range:
        total = _ZERO
        items = Range(_MOST if one.elements else 0, 0)
        for element in one.elements:
            total = total.plus(self.cost(element))
            items = items.union(self._size_or_unknown(element))
        self._entries[one] = _Entries(True, _ONE, items)
        return total.plus(_exactly(_LIST))

    def _map(self, one: MapNode) -> Range:
        total = _ZERO
        keys = values = Range(_MOST if one.entries else 0, 0)
        for key, value, _ in one.entries:
            total = total.plus(self.cost(key)).plus(self.cost(value))
            keys = keys.union(self._size_or_unknown(key))
            values = values.union(self._size_or_unknown(value))
        self._entries[one] = _Entries(False, keys, values)
        return total.plus(_exactly(_MAP))

    # --- comprehensions

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _push_value(self, name: str, one: Expr) -> None:
        self._push(name, _Local(self._path(one), self._size(one), self._entry_sizes(one)))

    def _push_variables(self, one: Comprehension) -> None:
        entries = self._entry_sizes(one.over)
        over_list = entries.is_list if entries is not None else one.over.type.kind is Kind.LIST
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
            total = self.cost(one.arguments[0]).plus(_ONE)
            self._copy_sizes(one, one.arguments[0])
            return total
        costs = []
        parts = []
        for argument in one.arguments:
            costs.append(self.cost(argument))
            parts.append(self._part(argument))
        if not one.overloads:
            return _ZERO
        total = _ZERO
        target = None
        if one.target is not None:
            total = self.cost(one.target)
            target = self._part(one.target)
        call = Range(_MOST, 0)
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
        self, one: Call, overload: str, target: _Part | None, parts: list[_Part], costs: list[Range]
    ) -> _Cost:
        own = _library_cost(one.function, overload, target, parts)
        if own is None:
            own = self._standard_cost(one, overload, target, parts, costs)
            if own is None:
                own = _Cost(_ONE)
            elif overload in ("logical_or", "logical_and", "conditional"):
                return own
        total = own.cost
        for cost in costs:
            total = total.plus(cost)
        return _Cost(total, own.size)

    def _standard_cost(
        self, one: Call, overload: str, target: _Part | None, parts: list[_Part], costs: list[Range]
    ) -> _Cost | None:
        """Without the arguments' own, where it is no branch."""
        sizes = [_UNKNOWN if part.size is None else part.size for part in parts]
        of_target = _UNKNOWN if target is None or target.size is None else target.size
        if overload == "string_format":
            return _Cost(of_target.by(_TRAVERSAL))
        if overload == "string_to_bytes":
            return _Cost(sizes[0].by(_TRAVERSAL), Range(sizes[0].least, sizes[0].most * 4 & _MOST))
        if overload == "bytes_to_string":
            return _Cost(sizes[0].by(_TRAVERSAL), Range(sizes[0].least // 4, sizes[0].most))
        if overload == "strings_quote":
            quoted = Range(sizes[0].least + 2, sizes[0].most * 2 + 2 & _MOST)
            return _Cost(sizes[0].by(_TRAVERSAL), quoted)
        if overload in ("starts_with_string", "ends_with_string"):
            return _Cost(sizes[0].by(_TRAVERSAL))
        if overload == "in_list":
            return _Cost(sizes[1].by(1))
        if overload == "matches_string" and target is not None:
            return _Cost(of_target.plus(_ONE).by(_TRAVERSAL).times(sizes[0].by(_PATTERN)))
        if overload == "contains_string":
            return _Cost(of_target.by(_TRAVERSAL).times(sizes[0].by(_TRAVERSAL)))
        if overload in ("logical_or", "logical_and"):
            return _Cost(Range(costs[0].least, costs[0].plus(costs[1]).most))
        if overload == "conditional":
            entries = self._entry_sizes(one.arguments[1])
            joined = entries and entries.union(self._entry_sizes(one.arguments[2]))
            if joined is not None:
                self._entries[one] = joined
            return _Cost(costs[0].plus(costs[1].union(costs[2])), sizes[1].union(sizes[2]))
        if overload in ("add_string", "add_bytes", "add_list"):
            whole = sizes[0].plus(sizes[1])
            entries = self._entry_sizes(one.arguments[0])
            joined = entries and entries.union(self._entry_sizes(one.arguments[1]))
            if joined is not None:
                self._entries[one] = joined
            return _Cost(_ONE if overload == "add_list" else whole.by(_TRAVERSAL), whole)
        if overload in _COMPARED:
            most = min(sizes[0].most, sizes[1].most)
            return _Cost(Range(1 if most else 0, most).by(_TRAVERSAL))
        return None


_COMPARED = frozenset(
    f"{word}_{kind}" for word in ("less", "greater", "less_equals", "greater_equals") for kind in ("string", "bytes")
) | {"equals", "not_equals"}


def _is_bind(one: Comprehension) -> bool:
    is_never = isinstance(one.condition, Literal) and one.condition.value is False
    return isinstance(one.over, ListNode) and not one.over.elements and is_never and one.accumulator != "__result__"


def _written_size(one: Expr) -> Range | None:
    if isinstance(one, Literal):
        return _exactly(len(one.value) if isinstance(one.value, str | bytes) else 1)
    if isinstance(one, ListNode):
        return _exactly(len(one.elements))
    return _exactly(len(one.entries)) if isinstance(one, MapNode) else None


_SCALARS = (Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT)


def _is_scalar(one: Type) -> bool:
    if one.kind is Kind.OPAQUE and one.name == "optional_type":
        return _is_scalar(one.parameters[0])
    return one.kind in _SCALARS


# --- the libraries


def _sized(part: _Part) -> Range:
    if part.size is not None:
        return part.size
    of_device = _device_size(part.path)
    return _UNKNOWN if of_device is None else of_device


def _element(part: _Part) -> _Part | None:
    if not part.type.parameters:
        return None
    return _Part((*part.path, "@items") if part.path else (), part.type.parameters[0], None)


def _allocating(factor: float, size: Range) -> _Cost:
    return _Cost(size.by(factor).plus(_exactly(1 + _LIST)), size)


def _whole_number(part: _Part, otherwise: int) -> int:
    one = part.expression
    if not isinstance(one, Literal) or type(one.value) is not int or isinstance(one.value, Uint):
        return otherwise
    return max(one.value, 0)


def _ext_list_cost(overload: str, target: _Part | None, parts: Sequence[_Part]) -> _Cost | None:
    if overload == "lists_range":
        return _allocating(1, _exactly(_whole_number(parts[0], _MOST)))
    if overload.startswith("list_sets_"):
        factor = 2.0 if overload == "list_sets_equivalent_list" else 1.0
        return _Cost(_sized(parts[0]).times(_sized(parts[1])).by(factor).plus(_ONE))
    if target is None:
        return None
    if overload == "list_slice":
        start, end = _whole_number(parts[0], 0), _whole_number(parts[1], _sized(target).most)
        return _allocating(1, _exactly(end - start & _MOST))
    if overload == "list_reverse":
        return _allocating(1, _sized(target))
    if overload in ("list_flatten", "list_flatten_int"):
        return _allocating(float(_whole_number(parts[0], _MOST) if parts else 1), _sized(target))
    if overload == "list_distinct":
        return _allocating(2.0, _sized(target).times(_sized(target)))
    if overload.endswith(("_sort", "_sortByAssociatedKeys")) and overload.startswith("list_"):
        size = _sized(parts[0] if parts else target)
        is_text = overload.split("_")[1] in ("string", "bytes")
        return _allocating(2.0 + _TRAVERSAL if is_text else 2.0, size.times(size))
    return None


def _traversed(part: _Part, factor: float = 1) -> Range:
    return _sized(part).by(factor * _TRAVERSAL)


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


def _library_cost(function: str, overload: str, target: _Part | None, parts: list[_Part]) -> _Cost | None:
    """None where Kubernetes has no estimate of its own."""
    own = _ext_list_cost(overload, target, parts)
    if own is not None:
        return own
    if overload == "dra_includes_dyn_dyn":
        return _Cost(Range(0, LONGEST_LIST))
    if function in _CONSTANT:
        return _Cost(_ONE)
    if function in _OF_FIRST:
        return _Cost(_traversed(parts[0]))
    cost = _BY_FUNCTION.get(function)
    return None if cost is None else cost(overload, target, parts)


_Estimator = Callable[[str, _Part | None, list[_Part]], _Cost | None]


def _check(_overload: str, _target: _Part | None, _parts: list[_Part]) -> _Cost:
    return _Cost(_exactly(350000))


def _of_list(_overload: str, target: _Part | None, _parts: list[_Part]) -> _Cost | None:
    if target is None:
        return None
    element = _element(target)
    if element is None:
        return _Cost(_traversed(target))
    each = _ONE
    if element.type.kind in (Kind.STRING, Kind.BYTES):
        each = each.plus(_traversed(element))
    return _Cost(_sized(target).times(each))


def _url(_overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost | None:
    return _Cost(_traversed(parts[0]), _sized(parts[0])) if len(parts) == 1 else None


def _of_text(_overload: str, target: _Part | None, _parts: list[_Part]) -> _Cost | None:
    return None if target is None else _Cost(_traversed(target), _sized(target))


def _replace(_overload: str, target: _Part | None, parts: list[_Part]) -> _Cost | None:
    if target is None or len(parts) < 2:
        return None
    whole, old, new = _sized(target), _sized(parts[0]), _sized(parts[1])
    if old.least == 0:
        most, kept_most = min(whole.most + 1, _MOST), whole.most
    elif new.most <= old.least:
        most, kept_most = 0, whole.most
    else:
        most, kept_most = min(math.ceil(float(whole.most) / float(old.least)), _MOST), 0
    if old.most == 0:
        least, kept_least = min(whole.least + 1, _MOST), whole.least
    elif old.most <= new.least:
        least, kept_least = 0, whole.least
    else:
        least, kept_least = min(math.ceil(float(whole.least) / float(old.most)), _MOST), 0
    size = Range(least, most).times(new).plus(Range(kept_least, kept_most))
    return _Cost(whole.by(2 * _TRAVERSAL), size)


def _split(_overload: str, target: _Part | None, parts: list[_Part]) -> _Cost | None:
    if target is None:
        return None
    most = _sized(target).most
    if len(parts) > 1:
        limit = parts[1].expression
        if isinstance(limit, Literal) and type(limit.value) is int:
            most = limit.value & _MOST
    return _Cost(_sized(target).by(2 * _TRAVERSAL), Range(0, most))


def _join(_overload: str, target: _Part | None, parts: list[_Part]) -> _Cost | None:
    if target is None:
        return None
    items = _sized(target)
    element = _element(target)
    size = _ZERO if element is None else items.times(_sized(element))
    if parts:
        between = Range(max(items.least - 1, 0), max(items.most - 1, 0))
        size = size.plus(_sized(parts[0]).times(between))
    return _Cost(size.by(_TRAVERSAL), size)


def _find(_overload: str, target: _Part | None, parts: list[_Part]) -> _Cost | None:
    if target is None or not parts:
        return None
    size = _sized(target)
    cost = size.plus(_ONE).by(_TRAVERSAL).times(_sized(parts[0]).by(_PATTERN))
    return _Cost(cost, Range(0, size.most))


def _ip(overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost | None:
    if overload == "cidr_ip":
        return _Cost(_ONE)
    return _Cost(_traversed(parts[0])) if parts else None


def _is_canonical(_overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost:
    return _Cost(_traversed(parts[0], 2))


def _contains_ip(overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost:
    cost = _ADDRESS.plus(_ADDRESS).by(_TRAVERSAL)
    if overload.endswith("_string"):
        cost = cost.plus(_traversed(parts[0]))
    return _Cost(cost)


def _contains_cidr(overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost:
    cost = _ADDRESS.plus(_ADDRESS).by(_TRAVERSAL).plus(_ADDRESS.by(_TRAVERSAL)).plus(_ONE)
    if overload.endswith("_string"):
        cost = cost.plus(_traversed(parts[0]))
    return _Cost(cost)


def _validate(_overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost:
    return _Cost(_traversed(parts[0]).by(_LONGEST_FORMAT_PATTERN * _PATTERN))


def _equals(_overload: str, _target: _Part | None, parts: list[_Part]) -> _Cost | None:
    one, other = parts
    if one.type != other.type:
        return None
    if one.type in (IP, CIDR, QUANTITY, SEMVER):
        return _Cost(_ONE)
    if one.type == FORMAT:
        return _Cost(Range(1, _LONGEST_FORMAT_NAME).by(_TRAVERSAL))
    if one.type == URL:
        size = _ONE if other.size is None else other.size
        return _Cost(Range(1, size.most).by(_TRAVERSAL))
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
