"""The library of texts.

Upstream: cel-go's ext/strings.go, version 2.
"""

from __future__ import annotations

from kschedx.cel.functions import Function, Overload, Run, overload, single
from kschedx.cel.library.arithmetic import text_built
from kschedx.cel.library.formatting import formatted
from kschedx.cel.printing import printed_key
from kschedx.cel.types import DYN, INT, STRING, list_of
from kschedx.cel.values import Budget, Fault, Value, is_list

_BLANKS = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_TO_UPPER = {code: code - 32 for code in range(ord("a"), ord("z") + 1)}


def _out_of_range(index: int) -> Fault:
    return Fault(f"index out of range: {index}")


def _char_at(_: Budget, text: str, index: int) -> Value:
    return text[index : index + 1] if 0 <= index <= len(text) else _out_of_range(index)


def index_of(_: Budget, text: str, part: str, offset: int = 0) -> Value:
    if not part:
        return offset
    if offset < 0:
        return _out_of_range(offset)
    return text.find(part, offset)


def last_index_of(_: Budget, text: str, part: str, offset: int | None = None) -> Value:
    if not part:
        return len(text) if offset is None else offset
    if offset is None:
        return text.rfind(part)
    if offset < 0:
        return _out_of_range(offset)
    return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))


def _translated(table: dict[int, int]) -> Run:
    def run(budget: Budget, text: str) -> Value:
        text_built(budget, len(text))
        return text.translate(table)

    return run


def _replace(budget: Budget, text: str, old: str, new: str, count: int = -1) -> Value:
    found = len(text) + 1 if not old else text.count(old)
    times = found if count < 0 else min(count, found)
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
    if 0 < limit < len(single):
        return [*single[: limit - 1], text[limit - 1 :]]
    return list(single)


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
    return text.strip(_BLANKS)


_ESCAPED = {ord(letter): f"\\{name}" for letter, name in zip('\a\b\f\n\r\t\v\\"', 'abfnrtv\\"', strict=True)}


def _quote(budget: Budget, text: str) -> Value:
    text_built(budget, 2 * len(text))
    return f'"{text.translate(_ESCAPED)}"'


def _join(budget: Budget, items: Value, separator: str = "") -> Value:
    assert is_list(items)
    texts = []
    length = 0
    for one in items:
        if not isinstance(one, str):
            return Fault(f"join: invalid input: {printed_key(one)}")
        length += len(one) + len(separator)
        budget.spend(1)
        texts.append(one)
    text_built(budget, length)
    return separator.join(texts)


_S, _I = STRING, INT

FUNCTIONS = (
    single("charAt", "string_char_at_int", (_S, _I), _S, _char_at),
    Function(
        name="indexOf",
        overloads=(
            overload("string_index_of_string", (_S, _S), _I, index_of),
            overload("string_index_of_string_int", (_S, _S, _I), _I, index_of),
        ),
    ),
    Function(
        name="lastIndexOf",
        overloads=(
            overload("string_last_index_of_string", (_S, _S), _I, last_index_of),
            overload("string_last_index_of_string_int", (_S, _S, _I), _I, last_index_of),
        ),
    ),
    single("lowerAscii", "string_lower_ascii", (_S,), _S, _translated(_TO_LOWER)),
    single("upperAscii", "string_upper_ascii", (_S,), _S, _translated(_TO_UPPER)),
    Function(
        name="replace",
        overloads=(
            overload("string_replace_string_string", (_S, _S, _S), _S, _replace),
            overload("string_replace_string_string_int", (_S, _S, _S, _I), _S, _replace),
        ),
    ),
    Function(
        name="split",
        overloads=(
            overload("string_split_string", (_S, _S), list_of(_S), _split),
            overload("string_split_string_int", (_S, _S, _I), list_of(_S), _split),
        ),
    ),
    Function(
        name="substring",
        overloads=(
            overload("string_substring_int", (_S, _I), _S, _substring),
            overload("string_substring_int_int", (_S, _I, _I), _S, _substring),
        ),
    ),
    single("trim", "string_trim", (_S,), _S, _trim),
    single("format", "string_format", (_S, list_of(DYN)), _S, formatted),
    Function(
        name="strings.quote",
        overloads=(Overload(id="strings_quote", arguments=(_S,), result=_S, run=_quote),),
    ),
    Function(
        name="join",
        overloads=(
            overload("list_join", (list_of(_S),), _S, _join),
            overload("list_join_string", (list_of(_S), _S), _S, _join),
        ),
    ),
)
