"""The standard library: operators, conversions, sizes and texts.

Upstream: cel-go's common/stdlib/standard.go and the operations of common/types.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from kschedx.cel import regex
from kschedx.cel.functions import Function, Overload, Run
from kschedx.cel.library.times import duration_from_text, duration_text, timestamp_from_text, timestamp_text
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
    Duration,
    Fault,
    Growing,
    Joined,
    MapValue,
    Timestamp,
    Uint,
    Value,
    compare,
    double_text,
    equal,
    is_list,
    joined,
    size,
    type_value,
)

_A, _B = parameter("A"), parameter("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)

_MIN_INT, _MAX_INT, _MAX_UINT = -(2**63), 2**63 - 1, 2**64 - 1
_CHARACTERS_A_STEP = 16
"""Of a text that is built or copied."""


def in_range(value: int, kind: type) -> Value:
    """The result of arithmetic, or the overflow."""
    if kind is Uint:
        return Uint(value) if 0 <= value <= _MAX_UINT else Fault("unsigned integer overflow")
    if _MIN_INT <= value <= _MAX_INT:
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


def _subtract(_: Budget, one: Value, other: Value) -> Value:
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


def _multiply(_: Budget, one: Value, other: Value) -> Value:
    if isinstance(one, float) and isinstance(other, float):
        return one * other
    if type(one) is type(other) and isinstance(one, int) and isinstance(other, int):
        return in_range(int(one) * int(other), type(one))
    return NO_OVERLOAD


def _divide(_: Budget, one: Value, other: Value) -> Value:
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


def _modulo(_: Budget, one: Value, other: Value) -> Value:
    if type(one) is type(other) and isinstance(one, int) and isinstance(other, int):
        if not other:
            return Fault("modulus by zero")
        if one == _MIN_INT and other == -1:
            return Fault("integer overflow")
        rest = abs(int(one)) % abs(int(other))
        return in_range(rest if one >= 0 else -rest, type(one))
    return NO_OVERLOAD


def _negate(_: Budget, one: Value) -> Value:
    if isinstance(one, float):
        return -one
    if type(one) is int or isinstance(one, Duration):
        return in_range(-one, type(one))
    return NO_OVERLOAD


def _not(_: Budget, one: Value) -> Value:
    return (not one) if isinstance(one, bool) else NO_OVERLOAD


def _ordered(holds: Callable[[int], bool]) -> Run:
    def run(_: Budget, one: Value, other: Value) -> Value:
        order = compare(one, other)
        return order if isinstance(order, Fault) else holds(order)

    return run


def contains(budget: Budget, item: Value, within: ListValue_) -> Value:
    """Whether a list has an item."""
    for each in within:
        budget.spend(1)
        if equal(item, each, budget) is True:
            return True
    return False


ListValue_ = list[Value] | Joined


def _in(budget: Budget, item: Value, within: Value) -> Value:
    if is_list(within):
        return contains(budget, item, within)
    if isinstance(within, MapValue):
        return MapValue(within.entries).find(item) is not None
    return NO_OVERLOAD


def _size(_: Budget, one: Value) -> Value:
    return size(one)


def _same(_: Budget, one: Value) -> Value:
    return one


# --- conversions

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_UNSIGNED = re.compile(r"[0-9]+", re.ASCII)
_DOUBLE = re.compile(
    r"[+-]?(?:inf|infinity|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)", re.ASCII | re.IGNORECASE
)


def _not_converted(one: Value, to: Type) -> Fault:
    return Fault(f"type conversion error from '{type_value(one)}' to '{to}'")


def _whole(one: float, low: float, high: float, overflow: str, kind: type) -> Value:
    if one != one or not low < one < high:
        return Fault(overflow)
    return kind(int(one))


def _to_int(_: Budget, one: Value) -> Value:
    if isinstance(one, Timestamp):
        return one // 10**9
    if isinstance(one, float):
        return _whole(one, -(2.0**63), 2.0**63, "integer overflow", int)
    if isinstance(one, str):
        digits = one if _INTEGER.fullmatch(one) and len(one) < 40 else ""
        value = int(digits) if digits else _MAX_INT + 1
        return value if _MIN_INT <= value <= _MAX_INT else _not_converted(one, INT)
    return in_range(int(one), int) if isinstance(one, int) else NO_OVERLOAD


def _to_uint(_: Budget, one: Value) -> Value:
    if isinstance(one, float):
        return _whole(one, -1.0, 2.0**64, "unsigned integer overflow", Uint) if one >= 0 else Fault(_UINT_OVERFLOW)
    if isinstance(one, str):
        value = int(one) if _UNSIGNED.fullmatch(one) and len(one) < 40 else _MAX_UINT + 1
        return Uint(value) if value <= _MAX_UINT else _not_converted(one, UINT)
    return in_range(int(one), Uint) if isinstance(one, int) else NO_OVERLOAD


_UINT_OVERFLOW = "unsigned integer overflow"


def _to_double(_: Budget, one: Value) -> Value:
    if isinstance(one, str):
        return float(one) if _DOUBLE.fullmatch(one) else _not_converted(one, DOUBLE)
    return float(one) if isinstance(one, int | float) else NO_OVERLOAD


def _to_bool(_: Budget, one: Value) -> Value:
    if one in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    return False if one in ("0", "f", "F", "FALSE", "false", "False") else _not_converted(one, BOOL)


def _to_bytes(budget: Budget, one: Value) -> Value:
    assert isinstance(one, str)
    text_built(budget, len(one))
    return one.encode(errors="surrogatepass")


def _to_string(budget: Budget, one: Value) -> Value:
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


def _to_duration(_: Budget, one: Value) -> Value:
    if isinstance(one, str):
        found = duration_from_text(one)
        return _not_converted(one, DURATION) if found is None else found
    # cel-go declares duration(int) and cannot do it
    return _not_converted(one, DURATION)


def _to_timestamp(_: Budget, one: Value) -> Value:
    if isinstance(one, str):
        found = timestamp_from_text(one)
        return _not_converted(one, TIMESTAMP) if found is None else found
    assert isinstance(one, int)
    return in_timestamp_range(one * 10**9)


def in_timestamp_range(nanoseconds: int) -> Value:
    if -62135596800 <= nanoseconds // 10**9 <= 253402300799:
        return Timestamp(nanoseconds)
    return Fault("timestamp overflow")


def _type(_: Budget, one: Value) -> Value:
    return type_value(one)


# --- texts


def _on_texts(does: Callable[[str, str], bool]) -> Run:
    def run(_: Budget, one: Value, other: Value) -> Value:
        return does(one, other) if isinstance(one, str) and isinstance(other, str) else NO_OVERLOAD

    return run


def _matches(_: Budget, text: Value, pattern: Value) -> Value:
    if not isinstance(text, str) or not isinstance(pattern, str):
        return NO_OVERLOAD
    compiled = regex.compiled(pattern)
    return compiled if isinstance(compiled, Fault) else compiled.matches(text)


# --- the table


def _of(overload: str, arguments: str, result: Type, run: Run | None = None, *, is_member: bool = False) -> Overload:
    return Overload(
        id=overload, arguments=tuple(_LETTERS[one] for one in arguments), result=result, run=run, is_member=is_member
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
_ADDERS = (int, Uint, float, str, bytes, list, Growing, Joined, Duration, Timestamp)
_NUMBERS = (int, Uint, float)


def _comparison(name: str, word: str, holds: Callable[[int], bool], *, has_uint64_double: bool = True) -> Function:
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
        run=_ordered(holds),
        takes=COMPARABLE,
    )


def _arithmetic(name: str, word: str, kinds: str, run: Run, takes: tuple[type, ...] = _NUMBERS) -> Function:
    overloads = tuple(_of(f"{word}_{_WORDS[one]}", one * 2, _LETTERS[one]) for one in kinds)
    return Function(name=name, overloads=overloads, run=run, takes=takes)


def _conversion(name: str, result: Type, run: Run, from_: str) -> Function:
    own = next(letter for letter, one in _LETTERS.items() if one == result)
    to = _WORDS[own]
    return Function(
        name=name,
        overloads=tuple(
            _of(f"{_WORDS[letter]}_to_{to}", letter, result, _same if letter == own else run) for letter in from_
        ),
    )


FUNCTIONS: tuple[Function, ...] = (
    Function(name="_&&_", overloads=(_of("logical_and", "bb", BOOL),)),
    Function(name="_||_", overloads=(_of("logical_or", "bb", BOOL),)),
    Function(
        name="_?_:_",
        overloads=(Overload(id="conditional", arguments=(BOOL, _A, _A), result=_A),),
    ),
    Function(name="!_", overloads=(_of("logical_not", "b", BOOL),), run=_not),
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
    _arithmetic("_/_", "divide", "diu", _divide),
    _arithmetic("_%_", "modulo", "iu", _modulo, (int, Uint)),
    _arithmetic("_*_", "multiply", "diu", _multiply),
    Function(
        name="-_",
        overloads=(_of("negate_double", "d", DOUBLE), _of("negate_int64", "i", INT)),
        run=_negate,
        takes=(bool, int, float, Duration),
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
        run=_subtract,
        takes=(*_NUMBERS, Duration, Timestamp),
    ),
    _comparison("_<_", "less", lambda order: order < 0),
    _comparison("_<=_", "less_equals", lambda order: order <= 0),
    _comparison("_>_", "greater", lambda order: order > 0),
    _comparison("_>=_", "greater_equals", lambda order: order >= 0),
    Function(
        name="@in",
        overloads=(_of("in_list", "AL", BOOL), _of("in_map", "AM", BOOL)),
        run=_in,
    ),
    Function(
        name="size",
        overloads=tuple(
            _of(*names, INT, is_member=is_member)
            for word, letter in (("bytes", "y"), ("list", "L"), ("map", "M"), ("string", "s"))
            for names, is_member in (((f"size_{word}", letter), False), ((f"{word}_size", letter), True))
        ),
        run=_size,
        takes=(str, bytes, list, Growing, Joined, MapValue),
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
    Function(
        name="contains",
        overloads=(_of("contains_string", "ss", BOOL, _on_texts(lambda one, other: other in one), is_member=True),),
        checks_its_arguments=True,
    ),
    Function(
        name="endsWith",
        overloads=(_of("ends_with_string", "ss", BOOL, _on_texts(str.endswith), is_member=True),),
        checks_its_arguments=True,
    ),
    Function(
        name="startsWith",
        overloads=(_of("starts_with_string", "ss", BOOL, _on_texts(str.startswith), is_member=True),),
        checks_its_arguments=True,
    ),
    Function(
        name="matches",
        overloads=(_of("matches", "ss", BOOL), _of("matches_string", "ss", BOOL, is_member=True)),
        run=_matches,
        takes=(str,),
    ),
)
