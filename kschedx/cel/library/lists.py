"""The libraries of lists, sets, optional values, and two-variable comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key

from kschedx.cel.functions import Function, Run, overload, several, single
from kschedx.cel.library.standard import add, contains
from kschedx.cel.types import read_types
from kschedx.cel.values import (
    COMPARABLE,
    NO_OVERLOAD,
    NONE,
    NULL,
    Budget,
    CelDuration,
    ConcatenatedList,
    Fault,
    GrowingList,
    ListValue,
    MapValue,
    Optional,
    Uint,
    Value,
    compare,
    equal,
    is_list,
    map_key,
    printed_key,
    type_value,
)

# The libraries of lists and sets.
#
# Upstream: apiserver/pkg/cel/library/lists.go; cel-go's ext/lists.go, version 3, and ext/sets.go.

_SUMMED = (("int", 0), ("uint", Uint(0)), ("double", 0.0), ("duration", CelDuration(0)))
_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")

_ListOperation = Callable[[Budget, ListValue], Value]


def _list_function(does: _ListOperation) -> Run:
    def run(budget: Budget, items: Value) -> Value:
        if not is_list(items):
            return NO_OVERLOAD
        budget.spend(len(items))
        return does(budget, items)

    return run


def _is_sorted(_: Budget, items: ListValue) -> Value:
    previous: Value = None
    for item in items:
        if type(item) not in COMPARABLE:
            return NO_OVERLOAD
        if previous is not None and compare(previous, item) == 1:
            return False
        previous = item
    return True


def _sum(zero: Value) -> _ListOperation:
    def run(budget: Budget, items: ListValue) -> Value:
        total = zero
        for item in items:
            total = add(budget, total, item)
            if isinstance(total, Fault):
                return NO_OVERLOAD if total is NO_OVERLOAD else total
        return total

    return run


def _extreme(name: str, replaced_by: int) -> _ListOperation:
    def run(_: Budget, items: ListValue) -> Value:
        extreme: Value = None
        for item in items:
            if type(item) not in COMPARABLE:
                return NO_OVERLOAD
            if extreme is None or compare(extreme, item) == replaced_by:
                extreme = item
        return Fault(f"{name} called on empty list") if extreme is None else extreme

    return run


def _index_of(*, from_the_end: bool) -> Run:
    def run(budget: Budget, items: Value, item: Value) -> Value:
        if not is_list(items):
            return NO_OVERLOAD
        places = range(len(items) - 1, -1, -1) if from_the_end else range(len(items))
        whole = items if isinstance(items, list) else _copy_list(budget, items)
        for index in places:
            budget.spend(1)
            if equal(whole[index], item, budget) is True:
                return index
        return -1

    return run


def _copy_list(budget: Budget, items: ListValue) -> list[Value]:
    budget.spend(len(items))
    return list(items)


# --- ext/lists.go


def _slice(budget: Budget, items: ListValue, start: int, end: int) -> Value:
    text = f"cannot slice({start}, {end}), "
    if start < 0 or end < 0:
        return Fault(f"{text}negative indexes not supported")
    if start > end:
        return Fault(f"{text}start index must be less than or equal to end index")
    if len(items) < end:
        return Fault(f"{text}list is length {len(items)}")
    return _copy_list(budget, items)[start:end]


def _flatten(budget: Budget, items: ListValue, depth: int = 1) -> Value:
    if depth < 0:
        return Fault("level must be non-negative")
    flat: list[Value] = []
    # a stack with the rest of each list, so that nesting needs no recursion
    waiting = [(iter(items), depth)]
    while waiting:
        rest, deeper = waiting[-1]
        item = next(rest, None)
        if item is None:
            waiting.pop()
            continue
        budget.spend(1)
        if is_list(item) and deeper:
            waiting.append((iter(item), deeper - 1))
        else:
            flat.append(item)
    return flat


def _sorted_by(budget: Budget, items: ListValue, keys: ListValue) -> Value:
    if len(items) != len(keys):
        return Fault(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got "
            f"{len(items)} and {len(keys)} elements respectively"
        )
    if not items:
        return items
    first = keys[0]
    if type(first) not in COMPARABLE:
        return Fault("list elements must be comparable")
    own, own_keys = _copy_list(budget, items), _copy_list(budget, keys)
    if len(own) > 1 and any(type_value(key) != type_value(first) for key in own_keys):
        return Fault("list elements must have the same type")

    def order(index: int, other: int) -> int:
        budget.spend(1)
        comparison = compare(own_keys[index], own_keys[other])
        return 0 if isinstance(comparison, Fault) else comparison

    return [own[index] for index in sorted(range(len(own)), key=cmp_to_key(order))]


def _sort(budget: Budget, items: ListValue) -> Value:
    return _sorted_by(budget, items, items)


def _range(budget: Budget, count: int) -> Value:
    budget.spend(max(count, 0))
    return list(range(count))


def _reverse(budget: Budget, items: ListValue) -> Value:
    return _copy_list(budget, items)[::-1]


def _distinct(budget: Budget, items: ListValue) -> Value:
    distinct: list[Value] = []
    for item in items:
        if not contains(budget, item, distinct):
            distinct.append(item)
    return distinct


# --- ext/sets.go


def _set_contains(budget: Budget, items: ListValue, within: ListValue) -> Value:
    return all(contains(budget, item, items) for item in within)


def _set_equivalent(budget: Budget, items: ListValue, others: ListValue) -> Value:
    return bool(_set_contains(budget, items, others) and _set_contains(budget, others, items))


def _set_intersects(budget: Budget, items: ListValue, others: ListValue) -> Value:
    return any(contains(budget, item, others) for item in items)


# --- first() and last()


def _end(*, is_last: bool) -> _ListOperation:
    def run(_: Budget, items: ListValue) -> Value:
        return Optional(items[len(items) - 1 if is_last else 0]) if items else NONE

    return run


# The libraries of optional values and two-variable comprehensions, and indexing of lists and maps. Upstream: cel-go's
# cel/library.go and ext/comprehensions.go.


def _is_zero(value: Value) -> bool:
    """Return whether optional.ofNonZeroValue leaves the value out."""
    if value is NULL:
        return True
    if isinstance(value, bool | int | float | str | bytes):
        return not value
    if is_list(value) or isinstance(value, MapValue):
        return not len(value)
    if isinstance(value, Optional):
        return value.value is None
    return False


def _optional_of_non_zero(_: Budget, value: Value) -> Value:
    return NONE if _is_zero(value) else Optional(value)


def _value(_: Budget, optional: Optional) -> Value:
    return Fault("optional.none() dereference") if optional.value is None else optional.value


def _unwrap(budget: Budget, items: ListValue) -> Value:
    unwrapped: list[Value] = []
    for item in _copy_list(budget, items):
        if not isinstance(item, Optional):
            return Fault(f"value {printed_key(item)} is not optional")
        if item.value is not None:
            unwrapped.append(item.value)
    return unwrapped


def _insert(_: Budget, into: MapValue, key: Value, value: Value) -> Value:
    own = map_key(key)
    if own in into.entries:
        return Fault(f"insert failed: key {printed_key(key)} already exists")
    into.entries[own] = value
    return into


def _insert_all(budget: Budget, into: MapValue, other: MapValue) -> Value:
    for key in other.own_keys():
        budget.spend(1)
        inserted = _insert(budget, into, key, other.find(key))
        if isinstance(inserted, Fault):
            return inserted
    return into


# --- the table

LIST_FUNCTIONS = (
    several(
        "isSorted",
        *(
            overload(f"list_{word}_is_sorted_bool", f"list({word}).() -> bool", _list_function(_is_sorted))
            for word in _ORDERED
        ),
    ),
    several(
        "sum",
        *(
            overload(f"list_{word}_sum_{word}", f"list({word}).() -> {word}", _list_function(_sum(zero)))
            for word, zero in _SUMMED
        ),
    ),
    *(
        several(name, *(overload(f"list_{word}_{name}_{word}", f"list({word}).() -> {word}", run) for word in _ORDERED))
        for name, run in ((name, _list_function(_extreme(name, sign))) for name, sign in (("max", -1), ("min", 1)))
    ),
    single("indexOf", "list_a_index_of_int", "list(A).(A) -> int", _index_of(from_the_end=False)),
    single("lastIndexOf", "list_a_last_index_of_int", "list(A).(A) -> int", _index_of(from_the_end=True)),
    single("sets.contains", "list_sets_contains_list", "(list(T), list(T)) -> bool", _set_contains),
    single("sets.equivalent", "list_sets_equivalent_list", "(list(T), list(T)) -> bool", _set_equivalent),
    single("sets.intersects", "list_sets_intersects_list", "(list(T), list(T)) -> bool", _set_intersects),
    single("last", "list_last", "list(V).() -> optional(V)", _list_function(_end(is_last=True))),
    single("first", "list_first", "list(V).() -> optional(V)", _list_function(_end(is_last=False))),
    single("slice", "list_slice", "list(T).(int, int) -> list(T)", _slice),
    Function(
        name="flatten",
        overloads=(
            overload("list_flatten", "list(list(T)).() -> list(T)", _flatten),
            overload("list_flatten_int", "list(dyn).(int) -> list(dyn)", _flatten),
        ),
        checks_its_arguments=True,
    ),
    Function(
        name="sort",
        overloads=tuple(
            overload(f"list_{read_types(word)[0].name}_sort", f"list({word}).() -> list({word})") for word in _ORDERED
        ),
        run=_sort,
        takes=(list, GrowingList, ConcatenatedList),
    ),
    Function(
        name="@sortByAssociatedKeys",
        overloads=tuple(
            overload(f"list_{read_types(word)[0].name}_sortByAssociatedKeys", f"list(T).(list({word})) -> list(T)")
            for word in _ORDERED
        ),
        run=_sorted_by,
        takes=(list, GrowingList, ConcatenatedList),
    ),
    single("lists.range", "lists_range", "(int) -> list(int)", _range),
    single("reverse", "list_reverse", "list(T).() -> list(T)", _reverse),
    single("distinct", "list_distinct", "list(T).() -> list(T)", _distinct),
    single("optional.of", "optional_of", "(V) -> optional(V)", lambda _, item: Optional(item)),
    single("optional.ofNonZeroValue", "optional_ofNonZeroValue", "(V) -> optional(V)", _optional_of_non_zero),
    single("optional.none", "optional_none", "() -> optional(V)", lambda _: NONE),
    single("value", "optional_value", "optional(V).() -> V", _value),
    single("hasValue", "optional_hasValue", "optional(V).() -> bool", lambda _, item: item.value is not None),
    single("or", "optional_or_optional", "optional(V).(optional(V)) -> optional(V)"),
    single("orValue", "optional_orValue_value", "optional(V).(V) -> V"),
    single("_?._", "select_optional_field", "(dyn, string) -> optional(V)"),
    several(
        "_[?_]",
        overload("list_optindex_optional_int", "(list(V), int) -> optional(V)"),
        overload("optional_list_optindex_optional_int", "(optional(list(V)), int) -> optional(V)"),
        overload("map_optindex_optional_value", "(map(K, V), K) -> optional(V)"),
        overload("optional_map_optindex_optional_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    several(
        "_[_]",
        overload("index_list", "(list(A), int) -> A"),
        overload("index_map", "(map(A, B), A) -> B"),
        overload("optional_list_index_int", "(optional(list(V)), int) -> optional(V)"),
        overload("optional_map_index_value", "(optional(map(K, V)), K) -> optional(V)"),
    ),
    single("optional.unwrap", "optional_unwrap", "(list(optional(V))) -> list(V)", _unwrap),
    single("unwrapOpt", "optional_unwrapOpt", "list(optional(V)).() -> list(V)", _unwrap),
    several(
        "cel.@mapInsert",
        overload("@mapInsert_map_key_value", "(map(K, V), K, V) -> map(K, V)", _insert),
        overload("@mapInsert_map_map", "(map(K, V), map(K, V)) -> map(K, V)", _insert_all),
    ),
)
