"""Which values are equal, and which one comes first.

Upstream: Equal and Compare in cel-go's common/types.
"""

from __future__ import annotations

from kschedx.cel.types import Type
from kschedx.cel.values import (
    NO_OVERLOAD,
    NULL,
    Budget,
    Cidr,
    Duration,
    Fault,
    Format,
    Ip,
    MapValue,
    Null,
    Optional,
    Quantity,
    Semver,
    Timestamp,
    Uint,
    Url,
    Value,
    is_list,
    is_number,
)

_SAME_KIND_EQUAL = (str, bytes, Duration, Timestamp, Null, Type)


def equal(one: Value, other: Value, budget: Budget) -> bool | Fault:
    """Numbers of different types are compared by value; values of other different types differ."""
    kind, other_kind = type(one), type(other)
    if is_number(one) and is_number(other):
        return one == other
    if kind is not other_kind and not (is_list(one) and is_list(other)):
        if NULL not in (one, other) and kind in (Ip, Cidr, Url, Format):
            return NO_OVERLOAD
        return False
    if kind is bool or kind in _SAME_KIND_EQUAL:
        return one == other
    if is_list(one) and is_list(other):
        if len(one) != len(other):
            return False
        for a, b in zip(one, other, strict=True):
            budget.spend(1)
            if equal(a, b, budget) is False:
                return False
        return True
    if isinstance(one, MapValue) and isinstance(other, MapValue):
        if len(one) != len(other):
            return False
        for key in one.own_keys():
            budget.spend(1)
            found = other.find(key)
            if found is None or equal(one.find(key), found, budget) is False:
                return False
        return True
    if isinstance(one, Optional) and isinstance(other, Optional):
        if one.value is None or other.value is None:
            return one.value is other.value
        return equal(one.value, other.value, budget)
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.nano == other.nano
    if isinstance(one, Semver) and isinstance(other, Semver):
        return one.order == other.order
    if isinstance(one, Ip) and isinstance(other, Ip):
        return one.address == other.address
    if isinstance(one, Cidr) and isinstance(other, Cidr):
        return one.prefix == other.prefix
    if isinstance(one, Url) and isinstance(other, Url):
        return one.text == other.text
    if isinstance(one, Format) and isinstance(other, Format):
        return one.name == other.name
    return False


COMPARABLE = (bool, int, Uint, float, str, bytes, Duration, Timestamp)


def compare(one: Value, other: Value) -> int | Fault:
    """-1, 0 or 1."""
    if is_number(one) and is_number(other):
        if one != one or other != other:
            return Fault("NaN values cannot be ordered")
        return (one > other) - (one < other)
    if type(one) is not type(other):
        return NO_OVERLOAD
    if isinstance(one, str) and isinstance(other, str):
        first, second = one.encode(errors="surrogatepass"), other.encode(errors="surrogatepass")
        return (first > second) - (first < second)
    if isinstance(one, bytes) and isinstance(other, bytes):
        return (one > other) - (one < other)
    if isinstance(one, int) and isinstance(other, int):
        return (one > other) - (one < other)
    return NO_OVERLOAD
