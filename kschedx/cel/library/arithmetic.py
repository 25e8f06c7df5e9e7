"""Arithmetic, also of times, and joining texts and lists; what leaves the range of its type is a fault.

Upstream: the operations of cel-go's common/types, and common/types/overflow.go.
"""

from __future__ import annotations

import math

from kschedx.cel.values import NO_OVERLOAD, Budget, Duration, Fault, Growing, Timestamp, Uint, Value, is_list, joined

MIN_INT, MAX_INT, MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1
_CHARACTERS_A_STEP = 16
"""Of a text that is built or copied."""


def in_range(value: int, kind: type) -> Value:
    """The result of arithmetic, or the overflow."""
    if kind is Uint:
        return Uint(value) if 0 <= value <= MAX_UINT else Fault("unsigned integer overflow")
    if MIN_INT <= value <= MAX_INT:
        return kind(value)
    return Fault({Duration: "duration overflow", Timestamp: "timestamp overflow"}.get(kind, "integer overflow"))


def text_built(budget: Budget, length: int) -> None:
    budget.spend(length // _CHARACTERS_A_STEP)


def add(budget: Budget, one: Value, other: Value) -> Value:
    kind, other_kind = type(one), type(other)
    if is_list(one):
        if not is_list(other):
            return NO_OVERLOAD
        if isinstance(one, Growing):
            budget.spend(len(other))
        return joined(one, other)
    if isinstance(one, Timestamp | Duration) and isinstance(other, Timestamp | Duration):
        if isinstance(one, Timestamp) and isinstance(other, Timestamp):
            return NO_OVERLOAD
        both_durations = isinstance(one, Duration) and isinstance(other, Duration)
        return in_range(int(one) + int(other), Duration if both_durations else Timestamp)
    if kind is not other_kind:
        return NO_OVERLOAD
    if isinstance(one, str) and isinstance(other, str):
        text_built(budget, len(one) + len(other))
        return one + other
    if isinstance(one, bytes) and isinstance(other, bytes):
        text_built(budget, len(one) + len(other))
        return one + other
    if isinstance(one, float) and isinstance(other, float):
        return one + other
    if isinstance(one, int) and isinstance(other, int):
        return in_range(int(one) + int(other), kind)
    return NO_OVERLOAD


def subtract(_: Budget, one: Value, other: Value) -> Value:
    if isinstance(one, Timestamp) and isinstance(other, Timestamp):
        return in_range(int(one) - int(other), Duration)
    if isinstance(one, Timestamp) and isinstance(other, Duration):
        return in_range(int(one) - int(other), Timestamp)
    if type(one) is not type(other):
        return NO_OVERLOAD
    if isinstance(one, float) and isinstance(other, float):
        return one - other
    if isinstance(one, int) and isinstance(other, int):
        return in_range(int(one) - int(other), type(one))
    return NO_OVERLOAD


def multiply(_: Budget, one: Value, other: Value) -> Value:
    if isinstance(one, float) and isinstance(other, float):
        return one * other
    if type(one) is type(other) and isinstance(one, int) and isinstance(other, int):
        return in_range(int(one) * int(other), type(one))
    return NO_OVERLOAD


def divide(_: Budget, one: Value, other: Value) -> Value:
    if isinstance(one, float) and isinstance(other, float):
        if other:
            return one / other
        return math.nan if one != one or not one else math.copysign(math.inf, one) * math.copysign(1, other)
    if type(one) is type(other) and isinstance(one, int) and isinstance(other, int):
        if not other:
            return Fault("division by zero")
        quotient = abs(int(one)) // abs(int(other))
        return in_range(quotient if (one < 0) == (other < 0) else -quotient, type(one))
    return NO_OVERLOAD


def modulo(_: Budget, one: Value, other: Value) -> Value:
    if type(one) is type(other) and isinstance(one, int) and isinstance(other, int):
        if not other:
            return Fault("modulus by zero")
        if one == MIN_INT and other == -1:
            return Fault("integer overflow")
        rest = abs(int(one)) % abs(int(other))
        return in_range(rest if one >= 0 else -rest, type(one))
    return NO_OVERLOAD


def negate(_: Budget, one: Value) -> Value:
    if isinstance(one, float):
        return -one
    if type(one) is int or isinstance(one, Duration):
        return in_range(-one, type(one))
    return NO_OVERLOAD
