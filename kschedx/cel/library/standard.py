"""The standard library: operators, conversions, sizes and texts.

Upstream: cel-go's common/stdlib/standard.go.
"""

from __future__ import annotations

from collections.abc import Callable

from kschedx.cel import regex
from kschedx.cel.comparison import COMPARABLE, compare, equal
from kschedx.cel.functions import Function, Overload, Run
from kschedx.cel.library.arithmetic import add, divide, modulo, multiply, negate, subtract
from kschedx.cel.library.conversions import (
    to_bool,
    to_bytes,
    to_double,
    to_duration,
    to_int,
    to_string,
    to_timestamp,
    to_uint,
)
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
    NO_OVERLOAD,
    Budget,
    Duration,
    Fault,
    Growing,
    Joined,
    ListValue,
    MapValue,
    Timestamp,
    Uint,
    Value,
    is_list,
    size,
    type_value,
)

_A, _B = parameter("A"), parameter("B")
_LIST, _MAP = list_of(_A), map_of(_A, _B)


def _not(_: Budget, one: Value) -> Value:
    return (not one) if isinstance(one, bool) else NO_OVERLOAD


def _ordered(holds: Callable[[int], bool]) -> Run:
    def run(_: Budget, one: Value, other: Value) -> Value:
        order = compare(one, other)
        return order if isinstance(order, Fault) else holds(order)

    return run


def contains(budget: Budget, item: Value, within: ListValue) -> Value:
    """Whether a list has an item."""
    for each in within:
        budget.spend(1)
        if equal(item, each, budget) is True:
            return True
    return False


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
    _arithmetic("_/_", "divide", "diu", divide),
    _arithmetic("_%_", "modulo", "iu", modulo, (int, Uint)),
    _arithmetic("_*_", "multiply", "diu", multiply),
    Function(
        name="-_",
        overloads=(_of("negate_double", "d", DOUBLE), _of("negate_int64", "i", INT)),
        run=negate,
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
        run=subtract,
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
    _conversion("bool", BOOL, to_bool, "bs"),
    _conversion("bytes", BYTES, to_bytes, "ys"),
    _conversion("double", DOUBLE, to_double, "disu"),
    _conversion("duration", DURATION, to_duration, "nis"),
    Function(name="dyn", overloads=(_of("to_dyn", "A", DYN),), run=_same),
    _conversion("int", INT, to_int, "idnstu"),
    _conversion("string", STRING, to_string, "sbydnitu"),
    _conversion("timestamp", TIMESTAMP, to_timestamp, "tis"),
    _conversion("uint", UINT, to_uint, "udis"),
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
