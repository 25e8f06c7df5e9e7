"""The string library, with `format()`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from kschedx.cel.functions import Run, overload, several, single
from kschedx.cel.library.standard import duration_text, text_built, timestamp_text
from kschedx.cel.syntax import Call, Expr, ListNode, Literal, MapNode
from kschedx.cel.types import Type, TypeKind
from kschedx.cel.values import (
    NULL,
    Budget,
    CelDuration,
    Fault,
    MapValue,
    Timestamp,
    UndecidedError,
    Value,
    double_text,
    is_list,
    printed_key,
    type_value,
)
from kschedx.kube.field_errors import quote_go
from kschedx.kube.quantity import GO_SPACE
from kschedx.patterns import lazy_pattern

# `format()`: the clauses of a string and their values, at run time and in the checker. Decimal numbers have English
# formatting, with commas and `×10`; inside lists and maps they have CEL's. Upstream: cel-go's ext/formatting.go;
# golang.org/x/text/message, as far as it is used there.

_DIGITS = 6  # the default number of decimals
_MOST_DIGITS = 1_000_000  # above it, Go's output differs and would be very long
_CLAUSE = lazy_pattern(r"%(?:(%)|(\.([0-9]*))?(.)?)", re.ASCII | re.DOTALL)
_SPECIAL = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")

_FOR_STRING = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, "
_REFUSALS = {
    "s": f"{_FOR_STRING}and timestamps, was given ",
    "d": "decimal clause can only be used on integers, was given ",
    "f": "fixed-point clause can only be used on doubles, was given ",
    "e": "scientific clause can only be used on doubles, was given ",
    "b": "only integers and bools can be formatted as binary, was given ",
    "x": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "X": "only integers, byte buffers, and strings can be formatted as hex, was given ",
    "o": "octal clause can only be used on integers, was given ",
}
_INTEGERS = frozenset({TypeKind.INT, TypeKind.UINT})
_TAKES = {
    "s": _INTEGERS
    | {
        TypeKind.LIST,
        TypeKind.MAP,
        TypeKind.DOUBLE,
        TypeKind.BOOL,
        TypeKind.STRING,
        TypeKind.TIMESTAMP,
        TypeKind.BYTES,
        TypeKind.DURATION,
        TypeKind.TYPE,
        TypeKind.NULL,
    },
    "d": _INTEGERS,
    "f": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),  # "NaN" is a number, too
    "e": frozenset({TypeKind.DOUBLE, TypeKind.STRING}),
    "b": _INTEGERS | {TypeKind.BOOL},
    "x": _INTEGERS | {TypeKind.STRING, TypeKind.BYTES},
    "X": _INTEGERS | {TypeKind.STRING, TypeKind.BYTES},
    "o": _INTEGERS,
}


class _Clause(NamedTuple):
    verb: str
    precision: int  # -1 for the default


_End = Fault("unexpected end of string")


def _pieces(text: str) -> Iterator[str | _Clause | Fault]:
    """Yield plain text, clauses, and the errors of clauses."""
    end = 0
    for match in _CLAUSE.finditer(text):
        yield text[end : match.start()]
        end = match.end()
        yield "%" if match[1] else _clause(match)
    yield text[end:]


def _clause(match: re.Match[str]) -> _Clause | Fault:
    verb, digits = match[4], match[3]
    text = "could not parse formatting clause: "
    if verb is None:
        missing = Fault(f"{text}error while parsing precision: could not find end of precision specifier")
        return _End if match[2] is None else missing
    if digits is not None and (not digits or int(digits) >= 2**63):
        why = "invalid syntax" if not digits else "value out of range"
        wrong = f'error while converting precision to integer: strconv.Atoi: parsing "{digits}": {why}'
        return Fault(f"{text}error while parsing precision: {wrong}")
    if verb not in _TAKES:
        # the first byte of a character
        return Fault(f'{text}unrecognized formatting clause "{chr(verb.encode()[0])}"')
    return _Clause(verb, -1 if digits is None else int(digits))


# --- at run time


def _format_text(budget: Budget, text: str, arguments: Value) -> Value:
    assert is_list(arguments)
    phrases: list[str] = []
    used = 0
    for piece in _pieces(text):
        if isinstance(piece, str):
            phrases.append(piece)
            continue
        if used >= len(arguments):
            return Fault(f"index {used} out of range")
        if isinstance(piece, Fault):
            return piece
        written = _format_value(piece, arguments[used])
        if isinstance(written, Fault):
            return Fault(f"error during formatting: {written.message}")
        used += 1
        phrases.append(written)
    text_built(budget, sum(map(len, phrases)))
    return "".join(phrases)


def _format_value(clause: _Clause, value: Value) -> str | Fault:
    verb = clause.verb
    refused = Fault(_REFUSALS[verb] + type_value(value).name)
    is_integer = isinstance(value, int) and not isinstance(value, bool | CelDuration | Timestamp)
    match verb:
        case "s":
            return _as_text(value)
        case "f" | "e":
            number = _SPECIAL.get(value) if isinstance(value, str) else value
            if not isinstance(number, float):
                return refused
            return _format_fixed(number, clause.precision) if verb == "f" else _scientific(number, clause.precision)
        case "b" if isinstance(value, bool):
            return "1" if value else "0"
        case "x" | "X" if isinstance(value, str | bytes):
            digits = (value.encode() if isinstance(value, str) else value).hex()
            return digits.upper() if verb == "X" else digits
        case _:
            assert is_integer is False or isinstance(value, int)
            return f"{int(value):{verb}}" if is_integer and isinstance(value, int) else refused


def _format_fixed(number: float, precision: int) -> str:
    digits = _DIGITS if precision < 0 else precision
    if digits > _MOST_DIGITS:
        raise UndecidedError(f"how format() writes {digits} digits is not known")
    return _format_special(number) or ("-" if number < 0 else "") + f"{abs(number):,.{digits}f}"


def _scientific(number: float, precision: int) -> str:
    """Upstream uses the precision as the width."""
    width = _DIGITS if precision < 0 else precision
    if width > _MOST_DIGITS:
        raise UndecidedError(f"how format() writes {width} digits is not known")
    phrase = _format_special(number)
    if not phrase:
        mantissa, _, exponent = f"{abs(number):.{_DIGITS}e}".partition("e")
        power = f"{'-' if int(exponent) < 0 else ''}{abs(int(exponent)):02}"
        phrase = ("-" if number < 0 else "") + f"{mantissa}×10{power.translate(_RAISED)}"
    return phrase.rjust(width)


def _format_special(number: float) -> str:
    if math.isnan(number):
        return "NaN"
    return ("-∞" if number < 0 else "∞") if math.isinf(number) else ""


def _as_text(value: Value) -> str | Fault:
    if isinstance(value, CelDuration):
        return duration_text(value)
    if isinstance(value, Timestamp):
        return timestamp_text(value)
    if isinstance(value, float):
        return double_text(value)
    if is_list(value) or isinstance(value, MapValue):
        return _inside(value)
    plain = _plain(value)
    return Fault(_REFUSALS["s"] + type_value(value).name) if plain is None else plain


def _plain(value: Value) -> str | Fault | None:
    """Format a value that looks the same inside a list; None for others."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return Fault('could not convert argument "invalid UTF-8 in bytes, cannot convert to string" to string')
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is NULL:
        return "null"
    if isinstance(value, Type):
        return value.name
    if isinstance(value, int) and not isinstance(value, CelDuration | Timestamp):
        return str(int(value))
    return None


def _inside(value: Value) -> str | Fault:
    """Format a value as CEL."""
    if is_list(value):
        items = [_inside(item) for item in value]
        wrong = next((item for item in items if isinstance(item, Fault)), None)
        return wrong or f"[{', '.join(map(str, items))}]"
    if isinstance(value, MapValue):
        return _map(value)
    if isinstance(value, CelDuration):
        return f'duration("{duration_text(value)}")'
    if isinstance(value, Timestamp):
        return f'timestamp("{timestamp_text(value)}")'
    if isinstance(value, float):
        if math.isfinite(value):
            return f"{value:.{_DIGITS}f}"
        return '"NaN"' if math.isnan(value) else f'"{"+" if value > 0 else "-"}Inf"'
    plain = _plain(value)
    if plain is None:
        return Fault(f"no formatting function for {type_value(value).name}")
    if isinstance(plain, Fault) or not isinstance(value, str | bytes):
        return plain
    return ("b" if isinstance(value, bytes) else "") + quote_go(plain)


def _map(value: MapValue) -> str | Fault:
    pairs: list[tuple[str, str]] = []
    for key in value.own_keys():
        if isinstance(key, float):
            return Fault("no formatting function for map key of type double")
        inner, held = _inside(key), _inside(value.find(key))
        if isinstance(inner, Fault) or isinstance(held, Fault):
            return inner if isinstance(inner, Fault) else held
        pairs.append((inner, held))
    pairs.sort(key=lambda pair: pair[0].encode())
    return f"{{{', '.join(f'{phrase}:{held}' for phrase, held in pairs)}}}"


# --- in the checker, if text and arguments are literals


def format_error(call: Call) -> tuple[int, str] | None:
    """Return the position and message of an error in a call of format(), or None."""
    text, listed = call.target, call.arguments[0] if call.arguments else None
    if not isinstance(text, Literal) or not isinstance(text.value, str) or not isinstance(listed, ListNode):
        return None
    used = 0
    for piece in _pieces(text.value):
        if isinstance(piece, str):
            continue
        if piece is _End:
            return call.position, _End.message
        if used >= len(listed.elements):
            return call.position, f"index {used} out of range"
        if isinstance(piece, Fault):
            return call.position, piece.message
        wrong = _unformattable(piece.verb, listed.elements[used])
        if wrong is not None:
            return wrong.position, f"error during formatting: {_REFUSALS[piece.verb]}{wrong.type.name}"
        used += 1
    count = len(listed.elements)
    if count > used:
        return call.position, f"too many arguments supplied to string.format (expected {used}, got {count})"
    return None


def _unformattable(verb: str, expr: Expr) -> Expr | None:
    """Return the value that a clause cannot format, also inside a list or map."""
    if expr.type.kind is not TypeKind.DYN and expr.type.kind not in _TAKES[verb]:
        return expr
    inner: tuple[Expr, ...] = ()
    if verb == "s" and isinstance(expr, ListNode):
        inner = tuple(expr.elements)
    elif verb == "s" and isinstance(expr, MapNode):
        inner = tuple(part for key, value, _ in expr.entries for part in (key, value))
    return next((refused for each in inner if (refused := _unformattable(verb, each)) is not None), None)


# The string library. Upstream: cel-go's ext/strings.go, version 2.

_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TO_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _out_of_range(index: int) -> Fault:
    return Fault(f"index out of range: {index}")


def _char_at(_: Budget, text: str, index: int) -> Value:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def _index_of(_: Budget, text: str, part: str, offset: int = 0) -> Value:
    if not part:
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return text.find(part, offset)


def _last_index_of(_: Budget, text: str, part: str, offset: int | None = None) -> Value:
    if not part:
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        return _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _translation(table: dict[int, int]) -> Run:
    def run(budget: Budget, text: str) -> Value:
        text_built(budget, len(text))
        return text.translate(table)

    return run


def _replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> Value:
    number = len(text) + 1 if not old else text.count(old)
    times = number if count < 0 else min(count, number)
    text_built(budget, len(text) + times * max(len(new) - len(old), 0))
    return text.replace(old, new, count)


def _split(budget: Budget, text: str, separator: str, limit: int = -1) -> Value:
    if limit == 0:
        return []
    budget.spend(text.count(separator) if separator else len(text))
    text_built(budget, len(text))
    if separator:
        return list(text.split(separator, limit - 1 if limit > 0 else -1))
    single = list(text)
    return [*single[: limit - 1], text[limit - 1 :]] if 0 < limit < len(single) else list(single)


def _substring(budget: Budget, text: str, start: int, end: int | None = None) -> Value:
    if end is not None and start > end:
        return Fault(f"invalid substring range. start: {start}, end: {end}")
    for index in (start, len(text) if end is None else end):
        if not 0 <= index <= len(text):
            return _out_of_range(index)
    text_built(budget, len(text))
    return text[start:end]


def _trim(budget: Budget, text: str) -> Value:
    text_built(budget, len(text))
    return text.strip(GO_SPACE)


_ESCAPED = {ord(letter): f"\\{name}" for letter, name in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}


def _quote(budget: Budget, text: str) -> Value:
    text_built(budget, 2 * len(text))
    return f'"{text.translate(_ESCAPED)}"'


def _join(budget: Budget, items: Value, separator: str = "") -> Value:
    assert is_list(items)
    texts = []
    length = 0
    for item in items:
        if not isinstance(item, str):
            return Fault(f"join: invalid input: {printed_key(item)}")
        length += len(item) + len(separator)
        budget.spend(1)
        texts.append(item)
    text_built(budget, length)
    return separator.join(texts)


TEXT_FUNCTIONS = (
    single("charAt", "string_char_at_int", "string.(int) -> string", _char_at),
    several(
        "indexOf",
        overload("string_index_of_string", "string.(string) -> int", _index_of),
        overload("string_index_of_string_int", "string.(string, int) -> int", _index_of),
    ),
    several(
        "lastIndexOf",
        overload("string_last_index_of_string", "string.(string) -> int", _last_index_of),
        overload("string_last_index_of_string_int", "string.(string, int) -> int", _last_index_of),
    ),
    single("lowerAscii", "string_lower_ascii", "string.() -> string", _translation(_TO_LOWER)),
    single("upperAscii", "string_upper_ascii", "string.() -> string", _translation(_TO_UPPER)),
    several(
        "replace",
        overload("string_replace_string_string", "string.(string, string) -> string", _replace),
        overload("string_replace_string_string_int", "string.(string, string, int) -> string", _replace),
    ),
    several(
        "split",
        overload("string_split_string", "string.(string) -> list(string)", _split),
        overload("string_split_string_int", "string.(string, int) -> list(string)", _split),
    ),
    several(
        "substring",
        overload("string_substring_int", "string.(int) -> string", _substring),
        overload("string_substring_int_int", "string.(int, int) -> string", _substring),
    ),
    single("trim", "string_trim", "string.() -> string", _trim),
    single("format", "string_format", "string.(list(dyn)) -> string", _format_text),
    single("strings.quote", "strings_quote", "(string) -> string", _quote),
    several(
        "join",
        overload("list_join", "list(string).() -> string", _join),
        overload("list_join_string", "list(string).(string) -> string", _join),
    ),
)
