"""Conversions from one type to another.

Upstream: ConvertToType in cel-go's common/types.
"""

from __future__ import annotations

import re

from kschedx.cel.library.arithmetic import MAX_INT, MAX_UINT, MIN_INT, in_range, text_built
from kschedx.cel.library.times import duration_from_text, duration_text, timestamp_from_text, timestamp_text
from kschedx.cel.printing import double_text
from kschedx.cel.types import BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT, Type
from kschedx.cel.values import NO_OVERLOAD, Budget, Duration, Fault, Timestamp, Uint, Value, type_value

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_UINT_OVERFLOW = "unsigned integer overflow"
_DOUBLE = re.compile(
    r"[+-]?(?:inf|infinity|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.ASCII | re.IGNORECASE
)


def _not_converted(one: Value, to: Type) -> Fault:
    return Fault(f"type conversion error from '{type_value(one)}' to '{to}'")


def _whole(one: float, low: float, high: float, overflow: str, kind: type) -> Value:
    if one != one or not low < one < high:
        return Fault(overflow)
    return kind(int(one))


def to_int(_: Budget, one: Value) -> Value:
    if isinstance(one, Timestamp):
        return one // 10**9
    if isinstance(one, float):
        return _whole(one, -(2.0**63), 2.0**63, "integer overflow", int)
    if isinstance(one, str):
        digits = one if _INTEGER.fullmatch(one) and len(one) < 40 else ""
        value = int(digits) if digits else MAX_INT + 1
        return value if MIN_INT <= value <= MAX_INT else _not_converted(one, INT)
    return in_range(int(one), int) if isinstance(one, int) else NO_OVERLOAD


def to_uint(_: Budget, one: Value) -> Value:
    if isinstance(one, float):
        return _whole(one, -1.0, 2.0**64, _UINT_OVERFLOW, Uint) if one >= 0 else Fault(_UINT_OVERFLOW)
    if isinstance(one, str):
        value = int(one) if _UNSIGNED.fullmatch(one) and len(one) < 40 else MAX_UINT + 1
        return Uint(value) if value <= MAX_UINT else _not_converted(one, UINT)
    return in_range(int(one), Uint) if isinstance(one, int) else NO_OVERLOAD


def to_double(_: Budget, one: Value) -> Value:
    if isinstance(one, str):
        return float(one) if _DOUBLE.fullmatch(one) else _not_converted(one, DOUBLE)
    return float(one) if isinstance(one, int | float) else NO_OVERLOAD


def to_bool(_: Budget, one: Value) -> Value:
    if one in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    return False if one in ("0", "f", "F", "FALSE", "false", "False") else _not_converted(one, BOOL)


def to_bytes(budget: Budget, one: Value) -> Value:
    assert isinstance(one, str)
    text_built(budget, len(one))
    return one.encode(errors="surrogatepass")


def to_string(budget: Budget, one: Value) -> Value:
    if isinstance(one, bool):
        return "true" if one else "false"
    if isinstance(one, bytes):
        text_built(budget, len(one))
        try:
            return one.decode()
        except UnicodeDecodeError:
            return Fault("invalid UTF-8 in bytes, cannot convert to string")
    if isinstance(one, float):
        return double_text(one)
    if isinstance(one, Duration):
        return duration_text(one)
    if isinstance(one, Timestamp):
        return timestamp_text(one)
    return str(int(one)) if isinstance(one, int) else NO_OVERLOAD


def to_duration(_: Budget, one: Value) -> Value:
    if isinstance(one, str):
        found = duration_from_text(one)
        return _not_converted(one, DURATION) if found is None else found
    # cel-go declares duration(int) and cannot do it
    return _not_converted(one, DURATION)


def to_timestamp(_: Budget, one: Value) -> Value:
    if isinstance(one, str):
        found = timestamp_from_text(one)
        return _not_converted(one, TIMESTAMP) if found is None else found
    assert isinstance(one, int)
    return in_timestamp_range(one * 10**9)


def in_timestamp_range(nanoseconds: int) -> Value:
    if -62135596800 <= nanoseconds // 10**9 <= 253402300799:
        return Timestamp(nanoseconds)
    return Fault("timestamp overflow")
