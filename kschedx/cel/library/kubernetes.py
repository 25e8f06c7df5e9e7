"""Kubernetes' own libraries: quantities, versions, URLs and regular expressions.

Upstream: apiserver/pkg/cel/library.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from kschedx.api.field_errors import quoted
from kschedx.api.quantity import parse_quantity
from kschedx.api.resources import exact_nano_units
from kschedx.cel import regex
from kschedx.cel.functions import Function, Run, overload, single
from kschedx.cel.library.urls import parsed_url, query_of, request_uri_error
from kschedx.cel.types import (
    BOOL,
    DOUBLE,
    INT,
    QUANTITY,
    SEMVER,
    STRING,
    URL,
    list_of,
    map_of,
)
from kschedx.cel.values import (
    Budget,
    Fault,
    MapValue,
    Prerelease,
    Quantity,
    Semver,
    Url,
    Value,
)
from kschedx.errors import InputError

_NANO = 10**9


# --- quantities


def quantity_from_text(text: str) -> Quantity | Fault:
    try:
        if text != text.strip():
            parse_quantity("x")
        return Quantity(exact_nano_units(parse_quantity(text)))
    except InputError as error:
        return Fault(error.message)


def _quantity(_: Budget, text: str) -> Value:
    return quantity_from_text(text)


def _is_quantity(_: Budget, text: str) -> Value:
    return isinstance(quantity_from_text(text), Quantity)


def _is_integer(_: Budget, one: Quantity) -> bool:
    whole, rest = divmod(one.nano, _NANO)
    return not rest and -(2**63) <= whole < 2**63


def _as_integer(budget: Budget, one: Quantity) -> Value:
    return one.nano // _NANO if _is_integer(budget, one) else Fault("cannot convert value to integer")


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _of_quantities(does: Callable[[int, int], Value]) -> Run:
    def run(_: Budget, one: Quantity, other: Quantity | int) -> Value:
        return does(one.nano, other.nano if isinstance(other, Quantity) else other * _NANO)

    return run


# --- versions

_NUMBER = re.compile(r"[0-9]*")
_WORD = re.compile(r"[0-9A-Za-z-]*")
_MAX_UINT = 2**64 - 1


def semver_from_text(text: str) -> Semver | Fault:
    """A fault has the words of blang/semver, which Kubernetes reads versions with."""
    if not text:
        return Fault("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        return Fault("No Major.Minor.Patch elements found")
    patch, plus, build = parts[2].partition("+")
    patch, dash, pre = patch.partition("-")
    numbers = []
    for word, digits in (("major", parts[0]), ("minor", parts[1]), ("patch", patch)):
        number = _version_number(digits, word.capitalize(), f"{word} number")
        if isinstance(number, Fault):
            return number
        numbers.append(number)
    found = _prerelease(pre) if dash else ()
    if isinstance(found, Fault):
        return found
    for word in build.split(".") if plus else ():
        if not word:
            return Fault("Build meta data is empty")
        if not _WORD.fullmatch(word):
            return Fault(f"Invalid character(s) found in build meta data {quoted(word)}")
    return Semver((numbers[0], numbers[1], numbers[2]), found)


def _version_number(digits: str, word: str, place: str) -> int | Fault:
    if not _NUMBER.fullmatch(digits):
        return Fault(f"Invalid character(s) found in {place} {quoted(digits)}")
    if len(digits) > 1 and digits.startswith("0"):
        end = "version" if word == "Numeric PreRelease" else "number"
        return Fault(f"{word} {end} must not contain leading zeroes {quoted(digits)}")
    if not digits:
        return Fault('strconv.ParseUint: parsing "": invalid syntax')
    if len(digits) > 20 or int(digits) > _MAX_UINT:
        return Fault(f"strconv.ParseUint: parsing {quoted(digits)}: value out of range")
    return int(digits)


def _prerelease(text: str) -> Prerelease | Fault:
    found = []
    for word in text.split("."):
        if not word:
            return Fault("Prerelease is empty")
        if _NUMBER.fullmatch(word):
            number = _version_number(word, "Numeric PreRelease", "prerelease")
            if isinstance(number, Fault):
                return number
            found.append((False, number, ""))
        elif _WORD.fullmatch(word):
            found.append((True, 0, word))
        else:
            return Fault(f"Invalid character(s) found in prerelease {quoted(word)}")
    return tuple(found)


def _normalized(text: str) -> Semver | Fault:
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            bare = part.lstrip("0")
            parts[index] = bare if bare[:1].isdigit() and bare.isascii() else f"0{bare}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            return Fault("short version cannot contain PreRelease/Build meta data")
        parts += ["0"] * (3 - len(parts))
    return semver_from_text(".".join(parts))


def _semver(_: Budget, text: str, normalize: bool = False) -> Value:
    return _normalized(text) if normalize else semver_from_text(text)


def _is_semver(budget: Budget, text: str, normalize: bool = False) -> Value:
    return isinstance(_semver(budget, text, normalize), Semver)


def _version_part(index: int) -> Run:
    def run(_: Budget, one: Semver) -> Value:
        number = one.numbers[index]
        return number if number < 2**63 else number - 2**64

    return run


def _of_versions(does: Callable[[int], Value]) -> Run:
    def run(_: Budget, one: Semver, other: Semver) -> Value:
        return does((one.order > other.order) - (one.order < other.order))

    return run


# --- URLs


def _url(_: Budget, text: str) -> Value:
    told = request_uri_error(text)
    if told is not None:
        return Fault(f"URL parse error during conversion from string: {told}")
    return parsed_url(text)


def _is_url(_: Budget, text: str) -> Value:
    return request_uri_error(text) is None


def _query(budget: Budget, one: Url) -> Value:
    budget.spend(len(one.query))
    entries: dict[object, Value] = {key: list(values) for key, values in query_of(one.query).items()}
    return MapValue(entries)


# --- regular expressions


def _illegal(fault: Fault) -> Fault:
    return Fault(f"Illegal regex: {fault.message}")


def _find(_: Budget, text: str, pattern: str) -> Value:
    found = regex.compiled(pattern)
    return _illegal(found) if isinstance(found, Fault) else found.find(text)


def _find_all(budget: Budget, text: str, pattern: str, limit: int = -1) -> Value:
    found = regex.compiled(pattern)
    if isinstance(found, Fault):
        return _illegal(found)
    budget.spend(len(text))
    return list(found.find_all(text, limit))


# --- the table


_QQ, _VV = (QUANTITY, QUANTITY), (SEMVER, SEMVER)

FUNCTIONS = (
    single("url", "string_to_url", (STRING,), URL, _url, is_member=False),
    single("getScheme", "url_get_scheme", (URL,), STRING, lambda _, one: one.scheme),
    single("getHost", "url_get_host", (URL,), STRING, lambda _, one: one.host),
    single("getHostname", "url_get_hostname", (URL,), STRING, lambda _, one: one.hostname),
    single("getPort", "url_get_port", (URL,), STRING, lambda _, one: one.port),
    single("getEscapedPath", "url_get_escaped_path", (URL,), STRING, lambda _, one: one.escaped_path),
    single("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query),
    single("isURL", "is_url_string", (STRING,), BOOL, _is_url, is_member=False),
    single("find", "string_find_string", (STRING, STRING), STRING, _find),
    Function(
        name="findAll",
        overloads=(
            overload("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
            overload("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
        ),
    ),
    single("quantity", "string_to_quantity", (STRING,), QUANTITY, _quantity, is_member=False),
    single("isQuantity", "is_quantity_string", (STRING,), BOOL, _is_quantity, is_member=False),
    single("sign", "quantity_sign", (QUANTITY,), INT, lambda _, one: _sign(one.nano), is_member=False),
    Function(
        name="isGreaterThan",
        overloads=(
            overload("quantity_is_greater_than", _QQ, BOOL, _of_quantities(lambda one, other: one > other)),
            overload("semver_is_greater_than", _VV, BOOL, _of_versions(lambda order: order > 0)),
        ),
    ),
    Function(
        name="isLessThan",
        overloads=(
            overload("quantity_is_less_than", _QQ, BOOL, _of_quantities(lambda one, other: one < other)),
            overload("semver_is_less_than", _VV, BOOL, _of_versions(lambda order: order < 0)),
        ),
    ),
    Function(
        name="compareTo",
        overloads=(
            overload("quantity_compare_to", _QQ, INT, _of_quantities(lambda one, other: _sign(one - other))),
            overload("semver_compare_to", _VV, INT, _of_versions(lambda order: order)),
        ),
    ),
    single("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, lambda _, one: one.nano / _NANO),
    single("asInteger", "quantity_get_int", (QUANTITY,), INT, _as_integer),
    single("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, _is_integer),
    Function(
        name="add",
        overloads=(
            overload("quantity_add", _QQ, QUANTITY, _of_quantities(lambda one, other: Quantity(one + other))),
            overload(
                "quantity_add_int", (QUANTITY, INT), QUANTITY, _of_quantities(lambda one, other: Quantity(one + other))
            ),
        ),
    ),
    Function(
        name="sub",
        overloads=(
            overload("quantity_sub", _QQ, QUANTITY, _of_quantities(lambda one, other: Quantity(one - other))),
            overload(
                "quantity_sub_int", (QUANTITY, INT), QUANTITY, _of_quantities(lambda one, other: Quantity(one - other))
            ),
        ),
    ),
    Function(
        name="semver",
        overloads=(
            overload("string_to_semver", (STRING,), SEMVER, _semver, is_member=False),
            overload("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver, is_member=False),
        ),
    ),
    Function(
        name="isSemver",
        overloads=(
            overload("is_semver_string", (STRING,), BOOL, _is_semver, is_member=False),
            overload("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver, is_member=False),
        ),
    ),
    single("major", "semver_major", (SEMVER,), INT, _version_part(0)),
    single("minor", "semver_minor", (SEMVER,), INT, _version_part(1)),
    single("patch", "semver_patch", (SEMVER,), INT, _version_part(2)),
)
