"""The standard library: operators, conversions, sizes, strings, durations, and timestamps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from kschedx.cel import regex
from kschedx.cel.functions import Function, Run, overload, several, single
from kschedx.cel.types import BOOL, DOUBLE, DURATION, INT, TIMESTAMP, UINT, Type
from kschedx.cel.values import (
    COMPARABLE,
    NO_OVERLOAD,
    Budget,
    CelDuration,
    ConcatenatedList,
    Fault,
    GrowingList,
    ListValue,
    MapValue,
    Timestamp,
    Uint,
    UndecidedError,
    Value,
    compare,
    double_text,
    equal,
    is_list,
    size,
    type_value,
)
from kschedx.errors import InputError
from kschedx.kube.scalars import Duration as Nanoseconds
from kschedx.kube.scalars import exact_nanoseconds, parse_bool
from kschedx.patterns import lazy_pattern

# Arithmetic, also on times, and concatenation of strings and lists; a result out of range is a fault. Upstream: the
# operations of cel-go's common/types, and common/types/overflow.go.

_MIN_INT, _MAX_INT, _MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1
_CHARACTERS_A_STEP = 16  # for a string that is built or copied


def _check_range(value: int, kind: type) -> Value:
    """Return the result of arithmetic, or the overflow."""
    if kind is Uint:
        return Uint(value) if 0 <= value <= _MAX_UINT else Fault("unsigned integer overflow")
    if _MIN_INT <= value <= _MAX_INT:
        return kind(value)
    return Fault({CelDuration: "duration overflow", Timestamp: "timestamp overflow"}.get(kind, "integer overflow"))


def text_built(budget: Budget, length: int) -> None:
    budget.spend(length // _CHARACTERS_A_STEP)


_SHORT = 256  # the number of items up to which a copy is cheaper than a `ConcatenatedList`


_LONGEST = 2**40  # the maximum number of items in a list that is repeatedly joined with itself


def _concatenate(first: ListValue, second: ListValue) -> ListValue:
    if isinstance(first, GrowingList):
        first.extend(second)
        return first
    if not first:
        return second
    if not second:
        return first
    if len(first) + len(second) <= _SHORT:
        return [*first, *second]
    if len(first) + len(second) > _LONGEST:
        raise UndecidedError("a list grows too large")
    return ConcatenatedList(first, second)


def add(budget: Budget, value: Value, other: Value) -> Value:
    kind, other_kind = type(value), type(other)
    if is_list(value):
        if not is_list(other):
            return NO_OVERLOAD
        if isinstance(value, GrowingList):
            budget.spend(len(other))
        return _concatenate(value, other)
    if isinstance(value, Timestamp | CelDuration) and isinstance(other, Timestamp | CelDuration):
        if isinstance(value, Timestamp) and isinstance(other, Timestamp):
            return NO_OVERLOAD
        both_durations = isinstance(value, CelDuration) and isinstance(other, CelDuration)
        return _check_range(int(value) + int(other), CelDuration if both_durations else Timestamp)
    if kind is not other_kind:
        return NO_OVERLOAD
    if isinstance(value, str) and isinstance(other, str):
        text_built(budget, len(value) + len(other))
        return value + other
    if isinstance(value, bytes) and isinstance(other, bytes):
        text_built(budget, len(value) + len(other))
        return value + other
    if isinstance(value, float) and isinstance(other, float):
        return value + other
    if isinstance(value, int) and isinstance(other, int):
        return _check_range(int(value) + int(other), kind)
    return NO_OVERLOAD


def _subtract(_: Budget, value: Value, other: Value) -> Value:
    if isinstance(value, Timestamp) and isinstance(other, Timestamp):
        return _check_range(int(value) - int(other), CelDuration)
    if isinstance(value, Timestamp) and isinstance(other, CelDuration):
        return _check_range(int(value) - int(other), Timestamp)
    if type(value) is not type(other):
        return NO_OVERLOAD
    if isinstance(value, float) and isinstance(other, float):
        return value - other
    if isinstance(value, int) and isinstance(other, int):
        return _check_range(int(value) - int(other), type(value))
    return NO_OVERLOAD


def _multiply(_: Budget, value: Value, other: Value) -> Value:
    if isinstance(value, float) and isinstance(other, float):
        return value * other
    if type(value) is type(other) and isinstance(value, int) and isinstance(other, int):
        return _check_range(int(value) * int(other), type(value))
    return NO_OVERLOAD


def _divide(_: Budget, value: Value, other: Value) -> Value:
    if isinstance(value, float) and isinstance(other, float):
        if other:
            return value / other
        return math.nan if value != value or not value else math.copysign(math.inf, value) * math.copysign(1, other)
    if type(value) is type(other) and isinstance(value, int) and isinstance(other, int):
        if not other:
            return Fault("division by zero")
        quotient = abs(int(value)) // abs(int(other))
        return _check_range(quotient if (value < 0) == (other < 0) else -quotient, type(value))
    return NO_OVERLOAD


def _modulo(_: Budget, value: Value, other: Value) -> Value:
    if type(value) is type(other) and isinstance(value, int) and isinstance(other, int):
        if not other:
            return Fault("modulus by zero")
        if value == _MIN_INT and other == -1:
            return Fault("integer overflow")
        rest = abs(int(value)) % abs(int(other))
        return _check_range(rest if value >= 0 else -rest, type(value))
    return NO_OVERLOAD


def _negate(_: Budget, value: Value) -> Value:
    if isinstance(value, float):
        return -value
    if type(value) is int or isinstance(value, CelDuration):
        return _check_range(-value, type(value))
    return NO_OVERLOAD


# Durations and timestamps. Upstream: cel-go's common/types/duration.go and timestamp.go, Go's time.ParseDuration and
# RFC 3339.


def duration_text(duration: CelDuration) -> str:
    seconds, rest = divmod(abs(duration), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if duration < 0 else ''}{seconds}{fraction}s"


def timestamp_from_text(text: str) -> Timestamp | None:
    """Parse a timestamp, or return None if Go does not accept it."""
    try:
        return Timestamp(exact_nanoseconds(text))
    except InputError:
        return None


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_text(timestamp: Timestamp) -> str:
    seconds, rest = divmod(int(timestamp), 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def _zone(name: str) -> tzinfo | Fault:
    if ":" in name:
        match = re.fullmatch(r"([+-]?)(\d+):(\d+)", name, re.ASCII)
        if match is None:
            return Fault(f'strconv.Atoi: parsing "{name}": invalid syntax')
        offset = timedelta(hours=int(match[2][:4]), minutes=int(match[3][:4]))
        return timezone(-offset if match[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError, KeyError):
        return Fault(f"unknown time zone {name}")


def _part_of(read: Callable[[datetime], int]) -> Run:
    def run(_: Budget, moment: Value, zone: Value = "UTC") -> Value:
        if not isinstance(moment, Timestamp) or not isinstance(zone, str):
            return NO_OVERLOAD
        own = UTC if zone == "UTC" else _zone(zone)
        if isinstance(own, Fault):
            return own
        whole = _EPOCH + timedelta(microseconds=int(moment) // 1000)
        return read(whole.astimezone(own))

    return run


def _whole_units(unit: int) -> Run:
    def run(_: Budget, value: Value) -> Value:
        assert isinstance(value, int)
        return abs(value) // unit * (-1 if value < 0 else 1)

    return run


def _getter(name: str, word: str, read: Callable[[datetime], int], *, unit: int = 0, tz: str = "_with_tz") -> Function:
    run = _part_of(read)
    overloads = [
        overload(f"timestamp_to_{word}", "timestamp.() -> int", run),
        overload(f"timestamp_to_{word}{tz}", "timestamp.(string) -> int", run),
    ]
    if unit:
        of_duration = _whole_units(unit)
        overloads.append(overload(f"duration_to_{word}", "duration.() -> int", of_duration))
    return Function(name=name, overloads=tuple(overloads))


# Type conversions. Upstream: ConvertToType in cel-go's common/types.

_INTEGER = lazy_pattern(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED = lazy_pattern(r"[0-9]+", re.ASCII)
_UINT_OVERFLOW = "unsigned integer overflow"
_DOUBLE = lazy_pattern(
    r"[+-]?(?:inf|infinity|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.ASCII | re.IGNORECASE
)


def _conversion_fault(value: Value, to: Type) -> Fault:
    return Fault(f"type conversion error from '{type_value(value)}' to '{to}'")


def _truncate_number(value: float, low: float, high: float, overflow: str, kind: type) -> Value:
    return Fault(overflow) if value != value or not low < value < high else kind(int(value))


def _to_int(_: Budget, operand: Value) -> Value:
    if isinstance(operand, Timestamp):
        return operand // 10**9
    if isinstance(operand, float):
        return _truncate_number(operand, -(2.0**63), 2.0**63, "integer overflow", int)
    if isinstance(operand, str):
        digits = operand if _INTEGER.fullmatch(operand) and len(operand) < 40 else ""
        value = int(digits) if digits else _MAX_INT + 1
        return value if _MIN_INT <= value <= _MAX_INT else _conversion_fault(operand, INT)
    return _check_range(int(operand), int) if isinstance(operand, int) else NO_OVERLOAD


def _to_uint(_: Budget, operand: Value) -> Value:
    if isinstance(operand, float):
        return _truncate_number(operand, -1.0, 2.0**64, _UINT_OVERFLOW, Uint) if operand >= 0 else Fault(_UINT_OVERFLOW)
    if isinstance(operand, str):
        value = int(operand) if _UNSIGNED.fullmatch(operand) and len(operand) < 40 else _MAX_UINT + 1
        return Uint(value) if value <= _MAX_UINT else _conversion_fault(operand, UINT)
    return _check_range(int(operand), Uint) if isinstance(operand, int) else NO_OVERLOAD


def _to_double(_: Budget, value: Value) -> Value:
    if isinstance(value, str):
        return float(value) if _DOUBLE.fullmatch(value) else _conversion_fault(value, DOUBLE)
    return float(value) if isinstance(value, int | float) else NO_OVERLOAD


def _to_bool(_: Budget, value: Value) -> Value:
    assert isinstance(value, str)
    try:
        return parse_bool(value)
    except ValueError:
        return _conversion_fault(value, BOOL)


def _to_bytes(budget: Budget, value: Value) -> Value:
    assert isinstance(value, str)
    text_built(budget, len(value))
    return value.encode(errors="surrogatepass")


def _to_string(budget: Budget, value: Value) -> Value:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        text_built(budget, len(value))
        try:
            return value.decode()
        except UnicodeDecodeError:
            return Fault("invalid UTF-8 in bytes, cannot convert to string")
    if isinstance(value, float):
        return double_text(value)
    if isinstance(value, CelDuration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    return str(int(value)) if isinstance(value, int) else NO_OVERLOAD


def _to_duration(_: Budget, value: Value) -> Value:
    if isinstance(value, str):
        with suppress(ValueError):
            return CelDuration(Nanoseconds.parse(value))
    # cel-go declares duration(int) but does not implement it
    return _conversion_fault(value, DURATION)


def _to_timestamp(_: Budget, value: Value) -> Value:
    if isinstance(value, str):
        timestamp = timestamp_from_text(value)
        return _conversion_fault(value, TIMESTAMP) if timestamp is None else timestamp
    assert isinstance(value, int)
    return _check_timestamp(value * 10**9)


def _check_timestamp(nanoseconds: int) -> Value:
    if -62135596800 <= nanoseconds // 10**9 <= 253402300799:
        return Timestamp(nanoseconds)
    return Fault("timestamp overflow")


# Upstream: cel-go's common/stdlib/standard.go.


def _logical_not(_: Budget, value: Value) -> Value:
    return (not value) if isinstance(value, bool) else NO_OVERLOAD


def _ordering(holds: Callable[[int], bool]) -> Run:
    def run(_: Budget, value: Value, other: Value) -> Value:
        order = compare(value, other)
        return order if isinstance(order, Fault) else holds(order)

    return run


def contains(budget: Budget, item: Value, within: ListValue) -> Value:
    for each in within:
        budget.spend(1)
        if equal(item, each, budget) is True:
            return True
    return False


def _contains(budget: Budget, item: Value, within: Value) -> Value:
    if is_list(within):
        return contains(budget, item, within)
    if isinstance(within, MapValue):
        return MapValue(within.entries).find(item) is not None
    return NO_OVERLOAD


def _size(_: Budget, value: Value) -> Value:
    return size(value)


def _same(_: Budget, value: Value) -> Value:
    return value


def _type(_: Budget, value: Value) -> Value:
    return type_value(value)


# --- strings


def _text_function(does: Callable[[str, str], bool]) -> Run:
    def run(_: Budget, value: Value, other: Value) -> Value:
        return does(value, other) if isinstance(value, str) and isinstance(other, str) else NO_OVERLOAD

    return run


def _matches(_: Budget, text: Value, pattern: Value) -> Value:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return NO_OVERLOAD
    compiled = regex.compile_pattern(pattern)
    return compiled if isinstance(compiled, Fault) else compiled.matches(text)


# --- the table


_ID_OF = {"int": "int64", "uint": "uint64"}
_ADDERS = (int, Uint, float, str, bytes, list, GrowingList, ConcatenatedList, CelDuration, Timestamp)
_NUMBERS = (int, Uint, float)


def _id(word: str) -> str:
    """Return the type in the names of overloads."""
    return _ID_OF.get(word, word)


def _comparison(name: str, word: str, holds: Callable[[int], bool]) -> Function:
    mixed = (
        *("bool", "int", "int double", "int uint", "uint", "uint double", "uint int"),
        *("double", "double int", "double uint", "string", "bytes", "timestamp", "duration"),
    )
    pairs = ((first, second or first) for first, _, second in (pair.partition(" ") for pair in mixed))
    return Function(
        name=name,
        overloads=tuple(
            overload("_".join(dict.fromkeys((word, _id(first), _id(second)))), f"({first}, {second}) -> bool")
            for first, second in pairs
        ),
        run=_ordering(holds),
        takes=COMPARABLE,
    )


def _arithmetic(name: str, word: str, kinds: Sequence[str], run: Run, takes: tuple[type, ...] = _NUMBERS) -> Function:
    overloads = tuple(overload(f"{word}_{_id(kind)}", f"({kind}, {kind}) -> {kind}") for kind in kinds)
    return Function(name=name, overloads=overloads, run=run, takes=takes)


def _conversion(to: str, run: Run, *kinds: str) -> Function:
    return several(
        to,
        *(overload(f"{_id(kind)}_to_{_id(to)}", f"({kind}) -> {to}", _same if kind == to else run) for kind in kinds),
    )


STANDARD_FUNCTIONS: tuple[Function, ...] = (
    single("_&&_", "logical_and", "(bool, bool) -> bool"),
    single("_||_", "logical_or", "(bool, bool) -> bool"),
    single("_?_:_", "conditional", "(bool, A, A) -> A"),
    Function(name="!_", overloads=(overload("logical_not", "(bool) -> bool"),), run=_logical_not),
    single("@not_strictly_false", "not_strictly_false", "(bool) -> bool"),
    single("_==_", "equals", "(A, A) -> bool"),
    single("_!=_", "not_equals", "(A, A) -> bool"),
    Function(
        name="_+_",
        overloads=(
            overload("add_bytes", "(bytes, bytes) -> bytes"),
            overload("add_double", "(double, double) -> double"),
            overload("add_duration_duration", "(duration, duration) -> duration"),
            overload("add_duration_timestamp", "(duration, timestamp) -> timestamp"),
            overload("add_timestamp_duration", "(timestamp, duration) -> timestamp"),
            overload("add_int64", "(int, int) -> int"),
            overload("add_list", "(list(A), list(A)) -> list(A)"),
            overload("add_string", "(string, string) -> string"),
            overload("add_uint64", "(uint, uint) -> uint"),
        ),
        run=add,
        takes=_ADDERS,
    ),
    _arithmetic("_/_", "divide", ("double", "int", "uint"), _divide),
    _arithmetic("_%_", "modulo", ("int", "uint"), _modulo, (int, Uint)),
    _arithmetic("_*_", "multiply", ("double", "int", "uint"), _multiply),
    Function(
        name="-_",
        overloads=(overload("negate_double", "(double) -> double"), overload("negate_int64", "(int) -> int")),
        run=_negate,
        takes=(bool, int, float, CelDuration),
    ),
    Function(
        name="_-_",
        overloads=(
            overload("subtract_double", "(double, double) -> double"),
            overload("subtract_duration_duration", "(duration, duration) -> duration"),
            overload("subtract_int64", "(int, int) -> int"),
            overload("subtract_timestamp_duration", "(timestamp, duration) -> timestamp"),
            overload("subtract_timestamp_timestamp", "(timestamp, timestamp) -> duration"),
            overload("subtract_uint64", "(uint, uint) -> uint"),
        ),
        run=_subtract,
        takes=(*_NUMBERS, CelDuration, Timestamp),
    ),
    _comparison("_<_", "less", lambda order: order < 0),
    _comparison("_<=_", "less_equals", lambda order: order <= 0),
    _comparison("_>_", "greater", lambda order: order > 0),
    _comparison("_>=_", "greater_equals", lambda order: order >= 0),
    Function(
        name="@in",
        overloads=(overload("in_list", "(A, list(A)) -> bool"), overload("in_map", "(A, map(A, B)) -> bool")),
        run=_contains,
    ),
    Function(
        name="size",
        overloads=tuple(
            declared
            for word, letter in (("bytes", "bytes"), ("list", "list(A)"), ("map", "map(A, B)"), ("string", "string"))
            for declared in (
                overload(f"size_{word}", f"({letter}) -> int"),
                overload(f"{word}_size", f"{letter}.() -> int"),
            )
        ),
        run=_size,
        takes=(str, bytes, list, GrowingList, ConcatenatedList, MapValue),
    ),
    Function(name="type", overloads=(overload("type", "(A) -> type(A)"),), run=_type),
    _conversion("bool", _to_bool, "bool", "string"),
    _conversion("bytes", _to_bytes, "bytes", "string"),
    _conversion("double", _to_double, "double", "int", "string", "uint"),
    _conversion("duration", _to_duration, "duration", "int", "string"),
    Function(name="dyn", overloads=(overload("to_dyn", "(A) -> dyn"),), run=_same),
    _conversion("int", _to_int, "int", "double", "duration", "string", "timestamp", "uint"),
    _conversion("string", _to_string, "string", "bool", "bytes", "double", "duration", "int", "timestamp", "uint"),
    _conversion("timestamp", _to_timestamp, "timestamp", "int", "string"),
    _conversion("uint", _to_uint, "uint", "double", "int", "string"),
    *(
        Function(
            name=name,
            overloads=(overload(identifier, "string.(string) -> bool", _text_function(does)),),
            checks_its_arguments=True,
        )
        for name, identifier, does in (
            ("contains", "contains_string", str.__contains__),
            ("endsWith", "ends_with_string", str.endswith),
            ("startsWith", "starts_with_string", str.startswith),
        )
    ),
    Function(
        name="matches",
        overloads=(
            overload("matches", "(string, string) -> bool"),
            overload("matches_string", "string.(string) -> bool"),
        ),
        run=_matches,
        takes=(str,),
    ),
    _getter("getFullYear", "year", lambda moment: moment.year),
    _getter("getMonth", "month", lambda moment: moment.month - 1),
    _getter("getDayOfYear", "day_of_year", lambda moment: moment.timetuple().tm_yday - 1),
    _getter("getDayOfMonth", "day_of_month", lambda moment: moment.day - 1),
    _getter("getDate", "day_of_month_1_based", lambda moment: moment.day),
    _getter("getDayOfWeek", "day_of_week", lambda moment: moment.isoweekday() % 7),
    _getter("getHours", "hours", lambda moment: moment.hour, unit=3600 * 10**9),
    _getter("getMinutes", "minutes", lambda moment: moment.minute, unit=60 * 10**9),
    _getter("getSeconds", "seconds", lambda moment: moment.second, unit=10**9, tz="_tz"),
    _getter("getMilliseconds", "milliseconds", lambda moment: moment.microsecond // 1000, unit=10**6),
)
