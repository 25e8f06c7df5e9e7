"""CEL selectors of devices, with their names replaced.

An expression that compares whole texts holds for the same devices once both sides are replaced. One that looks into a
text, for its beginning or with a pattern, does not: it is refused, unless it is to be kept as it is, with every word in
it and the attributes that it reads. Comments are left out.
"""

from __future__ import annotations

import json
from functools import cache

from kschedx.cel import Call, Expr, Literal, compile_program, descendants
from kschedx.cel.environment import TYPES, environment
from kschedx.cel.library.kubernetes import quantity_from_text, semver_from_text
from kschedx.cel.parser import MACROS, NoExpressionError, Token, string_value, tokens
from kschedx.cel.values import Fault
from kschedx.errors import UndecidableError
from kschedx.export.anonymous.values import ANY_LENGTH, Names, semver
from kschedx.kube.devices import EVERY_FEATURE, CompileError
from kschedx.patterns import lazy_pattern

_REFUSED_TEXT = lazy_pattern(r"ERROR: \S+ invalid \w+ argument")
"""An error in an expression that other text could cause: an invalid pattern."""
_COMMENT = lazy_pattern(r"//[^\n]*")
_OF_AMOUNTS = frozenset({"quantity", "isQuantity", "semver", "isSemver", "duration", "timestamp"})
"""Functions whose argument is not a name; an argument that is not even an amount is refused."""
_OF_DEVICE = frozenset({"attributes", "capacity", "driver", "allowMultipleAllocations"})
_COMPARING = frozenset({
    "_&&_", "_||_", "!_", "_?_:_", "@not_strictly_false", "_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_", "@in",
    "_[_]", "_[?_]", "_?._", "optional.of", "optional.none", "value", "hasValue", "or", "orValue", "includes",
    "dyn", "first", "last", "optional.unwrap", "unwrapOpt", "sets.contains", "sets.equivalent", "lists.range",
    "sets.intersects", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "asInteger", "isInteger", "sign",
    "major", "minor", "patch", "distinct", "slice", "flatten", "cel.@mapInsert", "_-_", "_*_", "_/_", "_%_", "-_",
})  # fmt: skip
"""Functions that only compare texts, so that names may be replaced."""


def expression(written: str, names: Names) -> str:
    """Anonymize a device selector."""
    amounts = _OF_AMOUNTS
    try:
        why = _looks_into_text(compile_program(written, EVERY_FEATURE).root)
    except UndecidableError:
        why = "it cannot be read"
    except CompileError as error:  # it stays invalid, whatever its names and amounts are
        amounts = frozenset()
        why = "" if _has_tokens(written) else "it is not an expression"
        if _REFUSED_TEXT.search(str(error)):
            why = "it has a string that its function refuses"
    if why:
        names.note_text_operation(why)
        names.keep(written)
        return written
    return _replace_names(written, names, amounts)


def _looks_into_text(root: Expr) -> str:
    """Return the operation of an expression that depends on a text's content, or an empty string."""
    for descendant in descendants(root):
        if isinstance(descendant, Literal) and isinstance(descendant.value, bytes) and descendant.value:
            return "it has a bytes literal"
        if isinstance(descendant, Call) and not _compares(descendant):
            return f"{descendant.function.strip('_')}() reads parts of a string"
    return ""


def _has_tokens(written: str) -> bool:
    try:
        return bool(tokens(written))
    except NoExpressionError:
        return False


def _compares(call: Call) -> bool:
    if call.function in _COMPARING:
        return True
    if call.function in _OF_AMOUNTS:
        return all(isinstance(each, Literal) and _is_amount(call.function, each) for each in call.arguments)
    # operations on lists and numbers only
    return all(each.startswith(_HARMLESS) and not each.startswith("list_join") for each in call.overloads)


_HARMLESS = ("list_", "size_list", "size_map", "map_size", "add_list", "add_int", "add_uint", "add_double", "int64_to")


def _is_amount(function: str, literal: Literal) -> bool:
    if not isinstance(literal.value, str):
        return True
    if function in ("duration", "timestamp"):
        return True  # anything else does not compile

    read = quantity_from_text if "uantity" in function else semver_from_text
    return not isinstance(read(literal.value), Fault)


def _replace_names(written: str, names: Names, amounts: frozenset[str]) -> str:
    """Replace names token by token, but not the arguments of `amounts`, and keep the whitespace."""
    located = tokens(written)
    parts: list[str] = []
    for index, token in enumerate(located[:-1]):
        before, after = located[index - 1] if index else None, located[index + 1]
        parts.append(_token(token, before, located[index - 2] if index > 1 else None, after, names, amounts))
        if after.kind != "end":
            parts.append(_COMMENT.sub("", written[token.position + len(token.text) : after.position]))
    return "".join(parts)


def _token(
    token: Token,
    before: Token | None,
    earlier: Token | None,
    after: Token,
    names: Names,
    amounts: frozenset[str],
) -> str:
    if token.kind == "string":
        value = _text_of(token)
        is_amount = before is not None and before.text == "(" and earlier is not None and earlier.text in amounts
        if is_amount and earlier is not None and earlier.text in ("semver", "isSemver"):
            return _quote(semver(value, names), token.text[0])
        return _quote(value if is_amount or not value else names.name(value, ANY_LENGTH), token.text[0])
    if token.kind == "bytes":  # where they are valid, they are empty
        return 'b""'
    if token.kind != "ident" or _is_of_cel(token, before, after):
        return token.text
    return names.name(token.text, ANY_LENGTH)


def _text_of(token: Token) -> str:
    try:
        return string_value(token.text)
    except ValueError:
        return ""


def _quote(text: str, quote: str) -> str:
    """Quote with the original quotes, if that needs no escapes."""
    is_plain = quote in "\"'" and text.isprintable() and not set(text) & {"'", '"', "\\"}
    return f"{quote}{text}{quote}" if is_plain else json.dumps(text, ensure_ascii=False)


def _is_of_cel(token: Token, before: Token | None, after: Token) -> bool:
    """Return whether the token is a word of CEL: the device and its fields, types, and namespaces of functions."""
    is_member = before is not None and before.text in (".", "?")
    if after.text == "(":
        return token.text in _function_words()
    if is_member:
        return token.text in _OF_DEVICE
    if token.text == "device" or token.text in TYPES:
        return True
    return after.text == "." and token.text in _prefixes()


@cache
def _function_words() -> frozenset[str]:
    names = (*environment(EVERY_FEATURE).functions, *MACROS)
    return frozenset(name.rpartition(".")[2] for name in names)


@cache
def _prefixes() -> frozenset[str]:
    """The namespaces of functions: `lists` in `lists.range`."""
    return frozenset(name.partition(".")[0] for name in environment(EVERY_FEATURE).functions if "." in name)
