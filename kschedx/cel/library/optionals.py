"""The libraries of optional values and of comprehensions of two variables, and steps into lists and maps.

Upstream: cel-go's cel/library.go and ext/comprehensions.go.
"""

from __future__ import annotations

from kschedx.cel.functions import Function, overload, single
from kschedx.cel.library.lists import copied
from kschedx.cel.printing import printed_key
from kschedx.cel.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, parameter
from kschedx.cel.values import NONE, NULL, Budget, Fault, ListValue, MapValue, Optional, Value, is_list, map_key


def _is_zero(value: Value) -> bool:
    """A value that optional.ofNonZeroValue leaves out."""
    if value is NULL:
        return True
    if isinstance(value, bool | int | float | str | bytes):
        return not value
    if is_list(value) or isinstance(value, MapValue):
        return not len(value)
    if isinstance(value, Optional):
        return value.value is None
    return False


def _of_non_zero(_: Budget, value: Value) -> Value:
    return NONE if _is_zero(value) else Optional(value)


def _value(_: Budget, one: Optional) -> Value:
    return Fault("optional.none() dereference") if one.value is None else one.value


def _unwrapped(budget: Budget, items: ListValue) -> Value:
    found: list[Value] = []
    for one in copied(budget, items):
        if not isinstance(one, Optional):
            return Fault(f"value {printed_key(one)} is not optional")
        if one.value is not None:
            found.append(one.value)
    return found


def _insert(_: Budget, into: MapValue, key: Value, value: Value) -> Value:
    own = map_key(key)
    if own in into.entries:
        return Fault(f"insert failed: key {printed_key(key)} already exists")
    into.entries[own] = value
    return into


def _insert_all(budget: Budget, into: MapValue, other: MapValue) -> Value:
    for key in other.own_keys():
        budget.spend(1)
        found = _insert(budget, into, key, other.find(key))
        if isinstance(found, Fault):
            return found
    return into


_A, _B, _K, _V = parameter("A"), parameter("B"), parameter("K"), parameter("V")
_OPTIONAL = optional_of(_V)

FUNCTIONS = (
    single("optional.of", "optional_of", (_V,), _OPTIONAL, lambda _, one: Optional(one), is_member=False),
    single("optional.ofNonZeroValue", "optional_ofNonZeroValue", (_V,), _OPTIONAL, _of_non_zero, is_member=False),
    single("optional.none", "optional_none", (), _OPTIONAL, lambda _: NONE, is_member=False),
    single("value", "optional_value", (_OPTIONAL,), _V, _value),
    single("hasValue", "optional_hasValue", (_OPTIONAL,), BOOL, lambda _, one: one.value is not None),
    single("or", "optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL),
    single("orValue", "optional_orValue_value", (_OPTIONAL, _V), _V),
    single("_?._", "select_optional_field", (DYN, STRING), _OPTIONAL, is_member=False),
    Function(
        name="_[?_]",
        overloads=(
            overload("list_optindex_optional_int", (list_of(_V), INT), _OPTIONAL, is_member=False),
            overload(
                "optional_list_optindex_optional_int", (optional_of(list_of(_V)), INT), _OPTIONAL, is_member=False
            ),
            overload("map_optindex_optional_value", (map_of(_K, _V), _K), _OPTIONAL, is_member=False),
            overload(
                "optional_map_optindex_optional_value", (optional_of(map_of(_K, _V)), _K), _OPTIONAL, is_member=False
            ),
        ),
    ),
    Function(
        name="_[_]",
        overloads=(
            overload("index_list", (list_of(_A), INT), _A, is_member=False),
            overload("index_map", (map_of(_A, _B), _A), _B, is_member=False),
            overload("optional_list_index_int", (optional_of(list_of(_V)), INT), _OPTIONAL, is_member=False),
            overload("optional_map_index_value", (optional_of(map_of(_K, _V)), _K), _OPTIONAL, is_member=False),
        ),
    ),
    single("optional.unwrap", "optional_unwrap", (list_of(_OPTIONAL),), list_of(_V), _unwrapped, is_member=False),
    single("unwrapOpt", "optional_unwrapOpt", (list_of(_OPTIONAL),), list_of(_V), _unwrapped),
    Function(
        name="cel.@mapInsert",
        overloads=(
            overload("@mapInsert_map_key_value", (map_of(_K, _V), _K, _V), map_of(_K, _V), _insert, is_member=False),
            overload(
                "@mapInsert_map_map", (map_of(_K, _V), map_of(_K, _V)), map_of(_K, _V), _insert_all, is_member=False
            ),
        ),
    ),
)
