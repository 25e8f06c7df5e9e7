"""The libraries of lists, sets, optional values, and two-variable comprehensions."""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key

from kschedx.cel.functions import Function, Run, overload, several, single
from kschedx.cel.library.standard import add, contains
from kschedx.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    list_of,
    map_of,
    optional_of,
    parameter,
)
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

_SUMMED = (("int", INT, 0), ("uint", UINT, Uint(0)), ("double", DOUBLE, 0.0), ("duration", DURATION, CelDuration(0)))
_ORDERED = (
    ("int", INT),
    ("uint", UINT),
    ("double", DOUBLE),
    ("bool", BOOL),
    ("duration", DURATION),
    ("timestamp", TIMESTAMP),
    ("string", STRING),
    ("bytes", BYTES),
)

ListOperation = Callable[[Budget, ListValue], Value]


def _list_function(does: ListOperation) -> Run:
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


def _sum(zero: Value) -> ListOperation:
    def run(budget: Budget, items: ListValue) -> Value:
        total = zero
        for item in items:
            total = add(budget, total, item)
            if isinstance(total, Fault):
                return NO_OVERLOAD if total is NO_OVERLOAD else total
        return total

    return run


def _extreme(name: str, replaced_by: int) -> ListOperation:
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
        whole = items if isinstance(items, list) else copy_list(budget, items)
        for index in places:
            budget.spend(1)
            if equal(whole[index], item, budget) is True:
                return index
        return -1

    return run


def copy_list(budget: Budget, items: ListValue) -> list[Value]:
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
    return copy_list(budget, items)[start:end]


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
    own, own_keys = copy_list(budget, items), copy_list(budget, keys)
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
    return copy_list(budget, items)[::-1]


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


def _end(*, is_last: bool) -> ListOperation:
    def run(_: Budget, items: ListValue) -> Value:
        return Optional(items[len(items) - 1 if is_last else 0]) if items else NONE

    return run


# --- the table

_T, _A, _V = parameter("T"), parameter("A"), parameter("V")
_LIST = list_of(_T)


def _extreme_function(name: str, replaced_by: int) -> Function:
    run = _list_function(_extreme(name, replaced_by))
    return Function(
        name=name,
        overloads=tuple(
            overload(f"list_{word}_{name}_{word}", (list_of(element_type),), element_type, run)
            for word, element_type in _ORDERED
        ),
    )


LIST_FUNCTIONS = (
    Function(
        name="isSorted",
        overloads=tuple(
            overload(f"list_{word}_is_sorted_bool", (list_of(element_type),), BOOL, _list_function(_is_sorted))
            for word, element_type in _ORDERED
        ),
    ),
    Function(
        name="sum",
        overloads=tuple(
            overload(f"list_{word}_sum_{word}", (list_of(element_type),), element_type, _list_function(_sum(zero)))
            for word, element_type, zero in _SUMMED
        ),
    ),
    _extreme_function("max", -1),
    _extreme_function("min", 1),
    single("indexOf", "list_a_index_of_int", (list_of(_A), _A), INT, _index_of(from_the_end=False)),
    single("lastIndexOf", "list_a_last_index_of_int", (list_of(_A), _A), INT, _index_of(from_the_end=True)),
    single("sets.contains", "list_sets_contains_list", (_LIST, _LIST), BOOL, _set_contains, is_member=False),
    single("sets.equivalent", "list_sets_equivalent_list", (_LIST, _LIST), BOOL, _set_equivalent, is_member=False),
    single("sets.intersects", "list_sets_intersects_list", (_LIST, _LIST), BOOL, _set_intersects, is_member=False),
    single("last", "list_last", (list_of(_V),), optional_of(_V), _list_function(_end(is_last=True))),
    single("first", "list_first", (list_of(_V),), optional_of(_V), _list_function(_end(is_last=False))),
    single("slice", "list_slice", (_LIST, INT, INT), _LIST, _slice),
    Function(
        name="flatten",
        overloads=(
            overload("list_flatten", (list_of(_LIST),), _LIST, _flatten),
            overload("list_flatten_int", (list_of(DYN), INT), list_of(DYN), _flatten),
        ),
        checks_its_arguments=True,
    ),
    Function(
        name="sort",
        overloads=tuple(
            overload(f"list_{element_type.name}_sort", (list_of(element_type),), list_of(element_type))
            for _, element_type in _ORDERED
        ),
        run=_sort,
        takes=(list, GrowingList, ConcatenatedList),
    ),
    Function(
        name="@sortByAssociatedKeys",
        overloads=tuple(
            overload(f"list_{element_type.name}_sortByAssociatedKeys", (_LIST, list_of(element_type)), _LIST)
            for _, element_type in _ORDERED
        ),
        run=_sorted_by,
        takes=(list, GrowingList, ConcatenatedList),
    ),
    single("lists.range", "lists_range", (INT,), list_of(INT), _range, is_member=False),
    single("reverse", "list_reverse", (_LIST,), _LIST, _reverse),
    single("distinct", "list_distinct", (_LIST,), _LIST, _distinct),
)


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
    for item in copy_list(budget, items):
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


_OPTIONALS_A, _B, _K, _OPTIONALS_V = parameter("A"), parameter("B"), parameter("K"), parameter("V")
_OPTIONAL = optional_of(_OPTIONALS_V)

OPTIONAL_FUNCTIONS = (
    single("optional.of", "optional_of", (_OPTIONALS_V,), _OPTIONAL, lambda _, item: Optional(item), is_member=False),
    single(
        "optional.ofNonZeroValue",
        "optional_ofNonZeroValue",
        (_OPTIONALS_V,),
        _OPTIONAL,
        _optional_of_non_zero,
        is_member=False,
    ),
    single("optional.none", "optional_none", (), _OPTIONAL, lambda _: NONE, is_member=False),
    single("value", "optional_value", (_OPTIONAL,), _OPTIONALS_V, _value),
    single("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda _, item: item.value is not None),
    single("or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL),
    single("orValue", "optional_orValue_value", (_OPTIONAL, _OPTIONALS_V), _OPTIONALS_V),
    single("_?._", "select_optional_field", (DYN, STRING), _OPTIONAL, is_member=False),
    several(
        "_[?_]",
        overload("list_optindex_optional_int", (list_of(_OPTIONALS_V), INT), _OPTIONAL, is_member=False),
        overload(
            "optional_list_optindex_optional_int",
            (optional_of(list_of(_OPTIONALS_V)), INT),
            _OPTIONAL,
            is_member=False,
        ),
        overload("map_optindex_optional_value", (map_of(_K, _OPTIONALS_V), _K), _OPTIONAL, is_member=False),
        overload(
            "optional_map_optindex_optional_value",
            (optional_of(map_of(_K, _OPTIONALS_V)), _K),
            _OPTIONAL,
            is_member=False,
        ),
    ),
    several(
        "_[_]",
        overload("index_list", (list_of(_OPTIONALS_A), INT), _OPTIONALS_A, is_member=False),
        overload("index_map", (map_of(_OPTIONALS_A, _B), _OPTIONALS_A), _B, is_member=False),
        overload("optional_list_index_int", (optional_of(list_of(_OPTIONALS_V)), INT), _OPTIONAL, is_member=False),
        overload("optional_map_index_value", (optional_of(map_of(_K, _OPTIONALS_V)), _K), _OPTIONAL, is_member=False),
    ),
    single(
        "optional.unwrap", "optional_unwrap", (list_of(_OPTIONAL),), list_of(_OPTIONALS_V), _unwrap, is_member=False
    ),
    single("unwrapOpt", "optional_unwrapOpt", (list_of(_OPTIONAL),), list_of(_OPTIONALS_V), _unwrap),
    several(
        "cel.@mapInsert",
        overload(
            "@mapInsert_map_key_value",
            (map_of(_K, _OPTIONALS_V), _K, _OPTIONALS_V),
            map_of(_K, _OPTIONALS_V),
            _insert,
            is_member=False,
        ),
        overload(
            "@mapInsert_map_map",
            (map_of(_K, _OPTIONALS_V), map_of(_K, _OPTIONALS_V)),
            map_of(_K, _OPTIONALS_V),
            _insert_all,
            is_member=False,
        ),
    ),
)
