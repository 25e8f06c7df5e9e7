"""Values as an expression has them.

An int is Python's `int`, a string `str`, a double `float`, a list a Python list or a `ConcatenatedList`; the rest is
here. An error is a value too (`Fault`): logical operators pass over it.

Upstream: cel-go's common/types, and apiserver/pkg/cel for Kubernetes' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from operator import attrgetter
from typing import Final, TypeGuard

from msgspec import Struct

from kschedx.cel import types
from kschedx.cel.types import Type

Value = object


class Uint(int):
    """An unsigned integer: equal to an int with the same value, but of another type."""

    __slots__ = ()


class _Null:
    __slots__ = ()

    def __repr__(self) -> str:
        return "null"


NULL: Final = _Null()


class Fault:
    """An error with cel-go's message."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


NO_OVERLOAD = Fault("no such overload")


class UndecidedError(Exception):
    """Kubernetes' result is unknown, or needs too much work or memory without a cost."""


class Budget:
    """The remaining budget for work without a cost: comparing, joining, and copying large values."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise UndecidedError("it is too expensive")


class GrowingList(list[Value]):
    """The list that a comprehension builds: appending changes it."""

    __slots__ = ()


class ConcatenatedList:
    """Two lists joined without a copy."""

    __slots__ = ("first", "second", "size")

    def __init__(self, first: ListValue, second: ListValue) -> None:
        self.first = first
        self.second = second
        self.size = len(first) + len(second)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Value]:
        waiting: list[ListValue] = [self]
        while waiting:
            item = waiting.pop()
            if isinstance(item, ConcatenatedList):
                waiting += (item.second, item.first)
            else:
                yield from item

    def __getitem__(self, index: int) -> Value:
        item: ListValue = self
        while isinstance(item, ConcatenatedList):
            if index < len(item.first):
                item = item.first
            else:
                index -= len(item.first)
                item = item.second
        return item[index]


ListValue = list[Value] | ConcatenatedList


class MapValue:
    """`default`: the value of a missing key; `entries` are by `map_key`."""

    __slots__ = ("default", "entries")

    def __init__(self, entries: dict[object, Value], default: Value = None) -> None:
        self.entries = entries
        self.default = default

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, key: Value) -> Value:
        """Return the value, or None if the key is missing."""
        try:
            return self.entries.get(map_key(key), self.default)
        except TypeError:
            return self.default

    def own_keys(self) -> list[Value]:
        return [key[0] if isinstance(key, tuple) else key for key in self.entries]


def map_key(key: Value) -> object:
    """Equal numbers are the same key, and true differs from 1."""
    return (key,) if key is True or key is False else key


class Optional:
    __slots__ = ("value",)

    def __init__(self, value: Value = None) -> None:
        """None for an empty optional."""
        self.value = value


NONE: Final = Optional()


class CelDuration(int):
    """Nanoseconds."""

    __slots__ = ()


class Timestamp(int):
    """Nanoseconds since 1970."""

    __slots__ = ()


class CelQuantity(Struct, eq=False):
    """`is_whole` is false if upstream counts in a unit that is smaller than one. With a sum or a difference on the
    right, upstream compares a value with a pointer, and fails."""

    nano: int
    is_whole: bool
    is_sum: bool = False


Prerelease = tuple[tuple[bool, int, str], ...]


class Semver(Struct, eq=False):
    numbers: tuple[int, int, int]
    pre: Prerelease

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, Prerelease]:
        """Numbers, then a release after its prereleases."""
        return self.numbers, not self.pre, self.pre


class Ip(Struct, eq=False):
    address: IPv4Address | IPv6Address


class Cidr(Struct, eq=False):
    prefix: IPv4Interface | IPv6Interface


class CelUrl(Struct, eq=False, kw_only=True):
    text: str
    scheme: str
    host: str
    hostname: str
    port: str
    escaped_path: str
    query: str


class CelFormat(Struct, eq=False):
    name: str  # what is printed
    longest_pattern: int  # the length of its pattern, on which the cost is based
    errors: Callable[[str], Iterable[str]]  # yields what is wrong with a text


_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    _Null: types.NULL,
    list: Type(types.TypeKind.LIST, "list"),
    GrowingList: Type(types.TypeKind.LIST, "list"),
    ConcatenatedList: Type(types.TypeKind.LIST, "list"),
    MapValue: Type(types.TypeKind.MAP, "map"),
    Optional: Type(types.TypeKind.OPAQUE, "optional_type"),
    CelDuration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    CelQuantity: types.QUANTITY,
    Semver: types.SEMVER,
    Ip: types.IP,
    Cidr: types.CIDR,
    CelUrl: types.URL,
    CelFormat: types.FORMAT,
    Fault: types.ERROR,
    Type: types.TYPE,
}


def type_value(value: Value) -> Type:
    return _TYPES[type(value)]


def is_list(value: Value) -> TypeGuard[ListValue]:
    return isinstance(value, list | ConcatenatedList)


def _is_number(value: Value) -> TypeGuard[int | float]:
    return type(value) in (int, Uint, float)


def size(value: Value) -> int | None:
    """Return characters, bytes, items, or entries; None for a value without a size."""
    if isinstance(value, str | bytes | list | MapValue | ConcatenatedList):
        return len(value)
    if isinstance(value, Ip):
        return value.address.max_prefixlen // 8
    if isinstance(value, Cidr):
        return math.ceil(value.prefix.network.prefixlen / 8)
    return None


# Values and types as in cel-go's errors.

_GO_TYPES: dict[type, str] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    _Null: "types.Null",
    Optional: "*types.Optional",
    CelDuration: "types.Duration",
    Timestamp: "types.Timestamp",
    CelQuantity: "cel.Quantity",
    Semver: "cel.Semver",
    Ip: "cel.IP",
    Cidr: "cel.CIDR",
    CelUrl: "cel.URL",
    CelFormat: "cel.Format",
    Type: "*types.Type",
}


def go_type(value: Value) -> str:
    """Format as Go's %T."""
    return _GO_TYPES[type(value)]


def printed_key(value: Value) -> str:
    """Format a key or index as in errors."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return str(value)


def double_text(value: float) -> str:
    """Format as Go's %g."""
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    power = len(digits) - 1 + int(exponent)
    if -4 <= power < 6:
        return repr(value).removesuffix(".0")
    first, *others = map(str, digits)
    return f"{'-' if sign else ''}{first}{'.' if others else ''}{''.join(others)}e{power:+03d}"


# Equality and order of values. Upstream: Equal and Compare in cel-go's common/types.

_SAME_KIND_EQUAL = (str, bytes, CelDuration, Timestamp, _Null, Type)
_IDENTITIES: Mapping[type, Callable[[object], object]] = {
    CelQuantity: attrgetter("nano"),
    Semver: attrgetter("order"),
    Ip: attrgetter("address"),
    Cidr: attrgetter("prefix"),
    CelUrl: attrgetter("text"),
    CelFormat: attrgetter("name"),
}
"""Type of Kubernetes' own to what two equal values share."""


def equal(value: Value, other: Value, budget: Budget) -> bool | Fault:
    """Numbers of different types are compared by value; values of other different types differ."""
    kind, other_kind = type(value), type(other)
    if _is_number(value) and _is_number(other):
        return value == other
    if kind is not other_kind and not (is_list(value) and is_list(other)):
        if NULL not in (value, other) and kind in _IDENTITIES:
            return NO_OVERLOAD
        return False
    if isinstance(other, CelQuantity) and other.is_sum:
        return NO_OVERLOAD
    if kind is bool or kind in _SAME_KIND_EQUAL:
        return value == other
    if is_list(value) and is_list(other):
        if len(value) != len(other):
            return False
        for a, b in zip(value, other, strict=True):
            budget.spend(1)
            if equal(a, b, budget) is False:
                return False
        return True
    if isinstance(value, MapValue) and isinstance(other, MapValue):
        if len(value) != len(other):
            return False
        for key in value.own_keys():
            budget.spend(1)
            counterpart = other.find(key)
            if counterpart is None or equal(value.find(key), counterpart, budget) is False:
                return False
        return True
    if isinstance(value, Optional) and isinstance(other, Optional):
        if value.value is None or other.value is None:
            return value.value is other.value
        return equal(value.value, other.value, budget)
    identity = _IDENTITIES.get(kind)
    return identity is not None and identity(value) == identity(other)


COMPARABLE = (bool, int, Uint, float, str, bytes, CelDuration, Timestamp)


def compare(value: Value, other: Value) -> int | Fault:
    """Return -1, 0, or 1."""
    if _is_number(value) and _is_number(other):
        if value != value or other != other:
            return Fault("NaN values cannot be ordered")
        return (value > other) - (value < other)
    if type(value) is not type(other):
        return NO_OVERLOAD
    if isinstance(value, str) and isinstance(other, str):
        first, second = value.encode(errors="surrogatepass"), other.encode(errors="surrogatepass")
        return (first > second) - (first < second)
    if isinstance(value, bytes) and isinstance(other, bytes):
        return (value > other) - (value < other)
    if isinstance(value, int) and isinstance(other, int):
        return (value > other) - (value < other)
    return NO_OVERLOAD
