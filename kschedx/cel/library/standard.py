"""The standard library: operators, conversions, sizes, strings, durations, and timestamps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from kschedx.cel import regex
from kschedx.cel.functions import Function, Overload, Run
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
    Type,
    list_of,
    map_of,
    parameter,
    type_of,
)
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
    Value,
    compare,
    concatenate,
    double_text,
    equal,
    is_list,
    size,
    type_value,
)
from kschedx.kube.scalars import Duration as Nanoseconds
from kschedx.patterns import lazy_pattern

# Arithmetic, also on times, and concatenation of strings and lists; a result out of range is a fault. Upstream: the
# operations of cel-go's common/types, and common/types/overflow.go.

MIN_INT, MAX_INT, MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1
_CHARACTERS_A_STEP = 16
"""For a string that is built or copied."""


def check_range(value: int, kind: type) -> Value:
    """Return the result of arithmetic, or the overflow."""
    if kind is Uint:
        return Uint(value) if 0 <= value <= MAX_UINT else Fault("unsigned integer overflow")
    if MIN_INT <= value <= MAX_INT:
        return kind(value)
    return Fault({CelDuration: "duration overflow", Timestamp: "timestamp overflow"}.get(kind, "integer overflow"))


def text_built(budget: Budget, length: int) -> None:
    budget.spend(length // _CHARACTERS_A_STEP)


def add(budget: Budget, value: Value, other: Value) -> Value:
    kind, other_kind = type(value), type(other)
    if is_list(value):
        if not is_list(other):
            return NO_OVERLOAD
        if isinstance(value, GrowingList):
            budget.spend(len(other))
        return concatenate(value, other)
    if isinstance(value, Timestamp | CelDuration) and isinstance(other, Timestamp | CelDuration):
        if isinstance(value, Timestamp) and isinstance(other, Timestamp):
            return NO_OVERLOAD
        both_durations = isinstance(value, CelDuration) and isinstance(other, CelDuration)
        return check_range(int(value) + int(other), CelDuration if both_durations else Timestamp)
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
        return check_range(int(value) + int(other), kind)
    return NO_OVERLOAD


def subtract(_: Budget, value: Value, other: Value) -> Value:
    if isinstance(value, Timestamp) and isinstance(other, Timestamp):
        return check_range(int(value) - int(other), CelDuration)
    if isinstance(value, Timestamp) and isinstance(other, CelDuration):
        return check_range(int(value) - int(other), Timestamp)
    if type(value) is not type(other):
        return NO_OVERLOAD
    if isinstance(value, float) and isinstance(other, float):
        return value - other
    if isinstance(value, int) and isinstance(other, int):
        return check_range(int(value) - int(other), type(value))
    return NO_OVERLOAD


def multiply(_: Budget, value: Value, other: Value) -> Value:
    if isinstance(value, float) and isinstance(other, float):
        return value * other
    if type(value) is type(other) and isinstance(value, int) and isinstance(other, int):
        return check_range(int(value) * int(other), type(value))
    return NO_OVERLOAD


def divide(_: Budget, value: Value, other: Value) -> Value:
    if isinstance(value, float) and isinstance(other, float):
        if other:
            return value / other
        return math.nan if value != value or not value else math.copysign(math.inf, value) * math.copysign(1, other)
    if type(value) is type(other) and isinstance(value, int) and isinstance(other, int):
        if not other:
            return Fault("division by zero")
        quotient = abs(int(value)) // abs(int(other))
        return check_range(quotient if (value < 0) == (other < 0) else -quotient, type(value))
    return NO_OVERLOAD


def modulo(_: Budget, value: Value, other: Value) -> Value:
    if type(value) is type(other) and isinstance(value, int) and isinstance(other, int):
        if not other:
            return Fault("modulus by zero")
        if value == MIN_INT and other == -1:
            return Fault("integer overflow")
        rest = abs(int(value)) % abs(int(other))
        return check_range(rest if value >= 0 else -rest, type(value))
    return NO_OVERLOAD


def _negate(_: Budget, value: Value) -> Value:
    if isinstance(value, float):
        return -value
    if type(value) is int or isinstance(value, CelDuration):
        return check_range(-value, type(value))
    return NO_OVERLOAD


# Durations and timestamps. Upstream: cel-go's common/types/duration.go and timestamp.go, Go's time.ParseDuration and
# RFC 3339.

_RFC_3339 = lazy_pattern(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII)


def _duration_from_text(text: str) -> CelDuration | None:
    """Parse a duration, or return None if it is invalid or too long."""
    try:
        return CelDuration(Nanoseconds.parse(text))
    except ValueError:
        return None


def duration_text(duration: CelDuration) -> str:
    seconds, rest = divmod(abs(duration), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if duration < 0 else ''}{seconds}{fraction}s"


def timestamp_from_text(text: str) -> Timestamp | None:
    """Parse a timestamp, or return None if Go does not accept it."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        return None
    try:
        whole = datetime.fromisoformat(f"{match[1]}T{match[2]}{match[4]}")
    except ValueError:
        return None
    nanoseconds = int((match[3] or "0")[:9].ljust(9, "0"))
    seconds = (whole - _EPOCH) // timedelta(seconds=1)
    return Timestamp(seconds * 10**9 + nanoseconds)


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
        Overload(id=f"timestamp_to_{word}", arguments=(TIMESTAMP,), result=INT, is_member=True, run=run),
        Overload(id=f"timestamp_to_{word}{tz}", arguments=(TIMESTAMP, STRING), result=INT, is_member=True, run=run),
    ]
    if unit:
        of_duration = _whole_units(unit)
        overloads.append(
            Overload(id=f"duration_to_{word}", arguments=(DURATION,), result=INT, is_member=True, run=of_duration)
        )
    return Function(name=name, overloads=tuple(overloads))


TIME_FUNCTIONS = (
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
    if value != value or not low < value < high:
        return Fault(overflow)
    return kind(int(value))


def _to_int(_: Budget, operand: Value) -> Value:
    if isinstance(operand, Timestamp):
        return operand // 10**9
    if isinstance(operand, float):
        return _truncate_number(operand, -(2.0**63), 2.0**63, "integer overflow", int)
    if isinstance(operand, str):
        digits = operand if _INTEGER.fullmatch(operand) and len(operand) < 40 else ""
        value = int(digits) if digits else MAX_INT + 1
        return value if MIN_INT <= value <= MAX_INT else _conversion_fault(operand, INT)
    return check_range(int(operand), int) if isinstance(operand, int) else NO_OVERLOAD


def _to_uint(_: Budget, operand: Value) -> Value:
    if isinstance(operand, float):
        return _truncate_number(operand, -1.0, 2.0**64, _UINT_OVERFLOW, Uint) if operand >= 0 else Fault(_UINT_OVERFLOW)
    if isinstance(operand, str):
        value = int(operand) if _UNSIGNED.fullmatch(operand) and len(operand) < 40 else MAX_UINT + 1
        return Uint(value) if value <= MAX_UINT else _conversion_fault(operand, UINT)
    return check_range(int(operand), Uint) if isinstance(operand, int) else NO_OVERLOAD


def _to_double(_: Budget, value: Value) -> Value:
    if isinstance(value, str):
        return float(value) if _DOUBLE.fullmatch(value) else _conversion_fault(value, DOUBLE)
    return float(value) if isinstance(value, int | float) else NO_OVERLOAD


def _to_bool(_: Budget, value: Value) -> Value:
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    return False if value in ("0", "f", "F", "FALSE", "false", "False") else _conversion_fault(value, BOOL)


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
        duration = _duration_from_text(value)
        return _conversion_fault(value, DURATION) if duration is None else duration
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

_A, _B = parameter("A"), parameter("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)


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


def _of(overload: str, arguments: str, result: Type, run: Run | None = None, *, is_member: bool = False) -> Overload:
    return Overload(
        id=overload,
        arguments=tuple(_LETTERS[argument] for argument in arguments),
        result=result,
        run=run,
        is_member=is_member,
    )


_LETTERS = {
    "b": BOOL,
    "y": BYTES,
    "d": DOUBLE,
    "n": DURATION,
    "i": INT,
    "s": STRING,
    "t": TIMESTAMP,
    "u": UINT,
    "L": _LIST,
    "M": _MAP,
    "A": _A,
}
_WORDS = {"i": "int64", "u": "uint64", "d": "double", "s": "string", "y": "bytes", "b": "bool"}
_WORDS |= {"t": "timestamp", "n": "duration"}
_ADDERS = (int, Uint, float, str, bytes, list, GrowingList, ConcatenatedList, CelDuration, Timestamp)
_NUMBERS = (int, Uint, float)


def _comparison(name: str, word: str, holds: Callable[[int], bool]) -> Function:
    mixed = ("bb", "ii", "id", "iu", "uu", "ud", "ui", "dd", "di", "du", "ss", "yy", "tt", "nn")
    return Function(
        name=name,
        overloads=tuple(
            _of(
                f"{word}_{_WORDS[pair[0]]}" + ("" if pair[0] == pair[1] else f"_{_WORDS[pair[1]]}"),
                pair,
                BOOL,
            )
            for pair in mixed
        ),
        run=_ordering(holds),
        takes=COMPARABLE,
    )


def _arithmetic(name: str, word: str, kinds: str, run: Run, takes: tuple[type, ...] = _NUMBERS) -> Function:
    overloads = tuple(_of(f"{word}_{_WORDS[kind]}", kind * 2, _LETTERS[kind]) for kind in kinds)
    return Function(name=name, overloads=overloads, run=run, takes=takes)


def _conversion(name: str, result: Type, run: Run, from_: str) -> Function:
    own = next(letter for letter, letter_type in _LETTERS.items() if letter_type == result)
    to = _WORDS[own]
    return Function(
        name=name,
        overloads=tuple(
            _of(f"{_WORDS[letter]}_to_{to}", letter, result, _same if letter == own else run) for letter in from_
        ),
    )


STANDARD_FUNCTIONS: tuple[Function, ...] = (
    Function(name="_&&_", overloads=(_of("logical_and", "bb", BOOL),)),
    Function(name="_||_", overloads=(_of("logical_or", "bb", BOOL),)),
    Function(
        name="_?_:_",
        overloads=(Overload(id="conditional", arguments=(BOOL, _A, _A), result=_A),),
    ),
    Function(name="!_", overloads=(_of("logical_not", "b", BOOL),), run=_logical_not),
    Function(name="@not_strictly_false", overloads=(_of("not_strictly_false", "b", BOOL),)),
    Function(name="_==_", overloads=(_of("equals", "AA", BOOL),)),
    Function(name="_!=_", overloads=(_of("not_equals", "AA", BOOL),)),
    Function(
        name="_+_",
        overloads=(
            _of("add_bytes", "yy", BYTES),
            _of("add_double", "dd", DOUBLE),
            _of("add_duration_duration", "nn", DURATION),
            _of("add_duration_timestamp", "nt", TIMESTAMP),
            _of("add_timestamp_duration", "tn", TIMESTAMP),
            _of("add_int64", "ii", INT),
            _of("add_list", "LL", _LIST),
            _of("add_string", "ss", STRING),
            _of("add_uint64", "uu", UINT),
        ),
        run=add,
        takes=_ADDERS,
    ),
    _arithmetic("_/_", "divide", "diu", divide),
    _arithmetic("_%_", "modulo", "iu", modulo, (int, Uint)),
    _arithmetic("_*_", "multiply", "diu", multiply),
    Function(
        name="-_",
        overloads=(_of("negate_double", "d", DOUBLE), _of("negate_int64", "i", INT)),
        run=_negate,
        takes=(bool, int, float, CelDuration),
    ),
    Function(
        name="_-_",
        overloads=(
            _of("subtract_double", "dd", DOUBLE),
            _of("subtract_duration_duration", "nn", DURATION),
            _of("subtract_int64", "ii", INT),
            _of("subtract_timestamp_duration", "tn", TIMESTAMP),
            _of("subtract_timestamp_timestamp", "tt", DURATION),
            _of("subtract_uint64", "uu", UINT),
        ),
        run=subtract,
        takes=(*_NUMBERS, CelDuration, Timestamp),
    ),
    _comparison("_<_", "less", lambda order: order < 0),
    _comparison("_<=_", "less_equals", lambda order: order <= 0),
    _comparison("_>_", "greater", lambda order: order > 0),
    _comparison("_>=_", "greater_equals", lambda order: order >= 0),
    Function(
        name="@in",
        overloads=(_of("in_list", "AL", BOOL), _of("in_map", "AM", BOOL)),
        run=_contains,
    ),
    Function(
        name="size",
        overloads=tuple(
            _of(*names, INT, is_member=is_member)
            for word, letter in (("bytes", "y"), ("list", "L"), ("map", "M"), ("string", "s"))
            for names, is_member in (((f"size_{word}", letter), False), ((f"{word}_size", letter), True))
        ),
        run=_size,
        takes=(str, bytes, list, GrowingList, ConcatenatedList, MapValue),
    ),
    Function(name="type", overloads=(_of("type", "A", type_of(_A)),), run=_type),
    _conversion("bool", BOOL, _to_bool, "bs"),
    _conversion("bytes", BYTES, _to_bytes, "ys"),
    _conversion("double", DOUBLE, _to_double, "disu"),
    _conversion("duration", DURATION, _to_duration, "nis"),
    Function(name="dyn", overloads=(_of("to_dyn", "A", DYN),), run=_same),
    _conversion("int", INT, _to_int, "idnstu"),
    _conversion("string", STRING, _to_string, "sbydnitu"),
    _conversion("timestamp", TIMESTAMP, _to_timestamp, "tis"),
    _conversion("uint", UINT, _to_uint, "udis"),
    *(
        Function(
            name=name,
            overloads=(_of(overload, "ss", BOOL, _text_function(does), is_member=True),),
            checks_its_arguments=True,
        )
        for name, overload, does in (
            ("contains", "contains_string", str.__contains__),
            ("endsWith", "ends_with_string", str.endswith),
            ("startsWith", "starts_with_string", str.startswith),
        )
    ),
    Function(
        name="matches",
        overloads=(_of("matches", "ss", BOOL), _of("matches_string", "ss", BOOL, is_member=True)),
        run=_matches,
        takes=(str,),
    ),
)
