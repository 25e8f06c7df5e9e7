"""What an expression may cost at most: above a limit the API server does not store it.

Upstream: cel-go's checker/cost.go.
"""

from __future__ import annotations

from typing import NamedTuple, assert_never

from kschedx.cel.costs import LIST, MAP, PATTERN, TRAVERSAL
from kschedx.cel.device_sizes import Path, device_size
from kschedx.cel.library_estimates import Cost, Part, library_cost
from kschedx.cel.ranges import MOST, ONE, UNKNOWN, ZERO, Range, exactly
from kschedx.cel.syntax import Call, Comprehension, Expr, Ident, ListNode, Literal, MapNode, Select, StructNode
from kschedx.cel.types import Kind, Type

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
        if one.operand.type.kind in (Kind.MAP, Kind.STRUCT, Kind.TYPE_PARAM):
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

    def _overload(self, one: Call, overload: str, target: Part | None, parts: list[Part], costs: list[Range]) -> Cost:
        own = library_cost(one.function, overload, target, parts)
        if own is None:
            own = self._standard_cost(one, overload, target, parts, costs)
            if own is None:
                own = Cost(ONE)
            elif overload in ("logical_or", "logical_and", "conditional"):
                return own
        total = own.cost
        for cost in costs:
            total = total.plus(cost)
        return Cost(total, own.size)

    def _standard_cost(
        self, one: Call, overload: str, target: Part | None, parts: list[Part], costs: list[Range]
    ) -> Cost | None:
        """Without the arguments' own, where it is no branch."""
        sizes = [UNKNOWN if part.size is None else part.size for part in parts]
        of_target = UNKNOWN if target is None or target.size is None else target.size
        if overload == "string_format":
            return Cost(of_target.by(TRAVERSAL))
        if overload == "string_to_bytes":
            return Cost(sizes[0].by(TRAVERSAL), Range(sizes[0].least, sizes[0].most * 4 & MOST))
        if overload == "bytes_to_string":
            return Cost(sizes[0].by(TRAVERSAL), Range(sizes[0].least // 4, sizes[0].most))
        if overload == "strings_quote":
            quoted = Range(sizes[0].least + 2, sizes[0].most * 2 + 2 & MOST)
            return Cost(sizes[0].by(TRAVERSAL), quoted)
        if overload in ("starts_with_string", "ends_with_string"):
            return Cost(sizes[0].by(TRAVERSAL))
        if overload == "in_list":
            return Cost(sizes[1].by(1))
        if overload == "matches_string" and target is not None:
            return Cost(of_target.plus(ONE).by(TRAVERSAL).times(sizes[0].by(PATTERN)))
        if overload == "contains_string":
            return Cost(of_target.by(TRAVERSAL).times(sizes[0].by(TRAVERSAL)))
        if overload in ("logical_or", "logical_and"):
            return Cost(Range(costs[0].least, costs[0].plus(costs[1]).most))
        if overload == "conditional":
            entries = self._entry_sizes(one.arguments[1])
            joined = entries and entries.union(self._entry_sizes(one.arguments[2]))
            if joined is not None:
                self._entries[one] = joined
            return Cost(costs[0].plus(costs[1].union(costs[2])), sizes[1].union(sizes[2]))
        if overload in ("add_string", "add_bytes", "add_list"):
            whole = sizes[0].plus(sizes[1])
            entries = self._entry_sizes(one.arguments[0])
            joined = entries and entries.union(self._entry_sizes(one.arguments[1]))
            if joined is not None:
                self._entries[one] = joined
            return Cost(ONE if overload == "add_list" else whole.by(TRAVERSAL), whole)
        if overload in _COMPARED:
            most = min(sizes[0].most, sizes[1].most)
            return Cost(Range(1 if most else 0, most).by(TRAVERSAL))
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


_SCALARS = (Kind.BOOL, Kind.DOUBLE, Kind.DURATION, Kind.INT, Kind.TIMESTAMP, Kind.UINT)


def _is_scalar(one: Type) -> bool:
    if one.kind is Kind.OPAQUE and one.name == "optional_type":
        return _is_scalar(one.parameters[0])
    return one.kind in _SCALARS
