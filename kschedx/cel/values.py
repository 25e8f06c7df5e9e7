"""Values as an expression has them.

An int is Python's `int`, a string `str`, a double `float`, a list a Python list or a `Joined` one; the rest is here. An
error is a value too (`Fault`): logical operators pass over it.

Upstream: cel-go's common/types, and apiserver/pkg/cel for Kubernetes' own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv4Interface, IPv6Address, IPv6Interface
from typing import Final, TypeGuard

from kschedx.cel import types
from kschedx.cel.types import Type

Value = object


class Uint(int):
    """An unsigned integer: equal to an int of the same value, and another type."""

    __slots__ = ()


class Null:
    __slots__ = ()

    def __repr__(self) -> str:
        return "null"


NULL: Final = Null()


class Fault:
    """What went wrong, in cel-go's words."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message


NO_OVERLOAD = Fault("no such overload")


class UndecidedError(Exception):
    """What Kubernetes does is not known, or takes more work or memory than is given to it, where no cost is counted."""


class Budget:
    """What is left of the work that no cost stands for: comparing, joining and copying what is large."""

    __slots__ = ("left",)

    def __init__(self, steps: int) -> None:
        self.left = steps

    def spend(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise UndecidedError("it takes too much work")


class Growing(list[Value]):
    """The list that a comprehension collects in: adding to it changes it."""

    __slots__ = ()


class Joined:
    """Two lists as one, without a copy."""

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
            one = waiting.pop()
            if isinstance(one, Joined):
                waiting += (one.second, one.first)
            else:
                yield from one

    def __getitem__(self, index: int) -> Value:
        one: ListValue = self
        while isinstance(one, Joined):
            if index < len(one.first):
                one = one.first
            else:
                index -= len(one.first)
                one = one.second
        return one[index]


ListValue = list[Value] | Joined
_SHORT = 256
"""Items up to which a copy is cheaper than a `Joined`."""
_LONGEST = 2**40
"""Items of a list that is joined with itself again and again, before its size stops being a number to reckon with."""


def joined(first: ListValue, second: ListValue) -> ListValue:
    if isinstance(first, Growing):
        first.extend(second)
        return first
    if not first:
        return second
    if not second:
        return first
    if len(first) + len(second) <= _SHORT:
        return [*first, *second]
    if len(first) + len(second) > _LONGEST:
        raise UndecidedError("a list grows beyond all bounds")
    return Joined(first, second)


class MapValue:
    """`default`: what a key that is not there reads as; `entries` are by `map_key`."""

    __slots__ = ("default", "entries")

    def __init__(self, entries: dict[object, Value], default: Value = None) -> None:
        self.entries = entries
        self.default = default

    def __len__(self) -> int:
        return len(self.entries)

    def find(self, key: Value) -> Value:
        """None where it is not there."""
        try:
            return self.entries.get(map_key(key), self.default)
        except TypeError:
            return self.default

    def own_keys(self) -> list[Value]:
        return [key[0] if isinstance(key, tuple) else key for key in self.entries]


def map_key(key: Value) -> object:
    """Numbers that are equal are one key, and true is not 1."""
    return (key,) if key is True or key is False else key


class Optional:
    __slots__ = ("value",)

    def __init__(self, value: Value = None) -> None:
        """None for one that holds nothing."""
        self.value = value


NONE: Final = Optional()


class Duration(int):
    """Nanoseconds."""

    __slots__ = ()


class Timestamp(int):
    """Nanoseconds since 1970."""

    __slots__ = ()


class Quantity:
    __slots__ = ("nano",)

    def __init__(self, nano: int) -> None:
        self.nano = nano


Prerelease = tuple[tuple[bool, int, str], ...]


class Semver:
    """`build` is no part of the order."""

    __slots__ = ("numbers", "pre")

    def __init__(self, numbers: tuple[int, int, int], pre: Prerelease) -> None:
        self.numbers = numbers
        self.pre = pre

    @property
    def order(self) -> tuple[tuple[int, int, int], bool, Prerelease]:
        """Numbers, then a release after what precedes it."""
        return self.numbers, not self.pre, self.pre


class Ip:
    __slots__ = ("address",)

    def __init__(self, address: IPv4Address | IPv6Address) -> None:
        self.address = address


class Cidr:
    __slots__ = ("prefix",)

    def __init__(self, prefix: IPv4Interface | IPv6Interface) -> None:
        self.prefix = prefix


class Url:
    __slots__ = ("escaped_path", "host", "hostname", "port", "query", "scheme", "text")

    def __init__(
        self, *, text: str, scheme: str, host: str, hostname: str, port: str, escaped_path: str, query: str
    ) -> None:
        self.text = text
        self.scheme = scheme
        self.host = host
        self.hostname = hostname
        self.port = port
        self.escaped_path = escaped_path
        self.query = query


class Format:
    __slots__ = ("longest_pattern", "name", "validate")

    def __init__(self, name: str, longest_pattern: int, validate: Callable[[str], list[str]]) -> None:
        self.name = name
        self.longest_pattern = longest_pattern
        self.validate = validate


_TYPES: dict[type, Type] = {
    bool: types.BOOL,
    int: types.INT,
    Uint: types.UINT,
    float: types.DOUBLE,
    str: types.STRING,
    bytes: types.BYTES,
    Null: types.NULL,
    list: Type(types.Kind.LIST, "list"),
    Growing: Type(types.Kind.LIST, "list"),
    Joined: Type(types.Kind.LIST, "list"),
    MapValue: Type(types.Kind.MAP, "map"),
    Optional: Type(types.Kind.OPAQUE, "optional_type"),
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Quantity: types.QUANTITY,
    Semver: types.SEMVER,
    Ip: types.IP,
    Cidr: types.CIDR,
    Url: types.URL,
    Format: types.FORMAT,
    Fault: types.ERROR,
    Type: types.TYPE,
}


def type_value(value: Value) -> Type:
    """What `type()` gives."""
    return _TYPES[type(value)]


def is_list(value: Value) -> TypeGuard[ListValue]:
    return isinstance(value, list | Joined)


def is_number(value: Value) -> TypeGuard[int | float]:
    return type(value) in (int, Uint, float)


def size(value: Value) -> int | None:
    """Characters, bytes, items or entries; None of what has no size."""
    if isinstance(value, str | bytes | list | MapValue | Joined):
        return len(value)
    if isinstance(value, Ip):
        return value.address.max_prefixlen // 8
    if isinstance(value, Cidr):
        return math.ceil(value.prefix.network.prefixlen / 8)
    return None
