"""Kubernetes' own libraries: quantities, versions, URLs, named formats, and regular expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from urllib.parse import quote, unquote, unquote_plus

from kschedx.cel import regex
from kschedx.cel.functions import Function, Run, overload, several, single
from kschedx.cel.library.standard import timestamp_from_text
from kschedx.cel.values import (
    NONE,
    Budget,
    CelFormat,
    CelQuantity,
    CelUrl,
    Fault,
    MapValue,
    Optional,
    Prerelease,
    Semver,
    UndecidedError,
    Value,
)
from kschedx.errors import InputError
from kschedx.kube import names
from kschedx.kube.escaping import url_error
from kschedx.kube.field_errors import quote_go
from kschedx.kube.quantity import parse_quantity
from kschedx.patterns import lazy_pattern

# URLs with the syntax of Go's net/url.

_SCHEME = lazy_pattern(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL | re.ASCII)
_ESCAPE = lazy_pattern(r"%(?![0-9A-Fa-f]{2}).{0,2}", re.DOTALL)


def _parsed_url(text: str) -> CelUrl:
    whole = text.partition("#")[0]
    match = _SCHEME.fullmatch(whole)
    scheme, rest = (match[1].lower(), match[2]) if match else ("", whole)
    rest, _, query = rest.partition("?")
    is_opaque = bool(match) and not rest.startswith("/")
    authority, slash, path = rest[2:].partition("/") if rest.startswith("//") else ("", "", rest)
    host = unquote(authority.rpartition("@")[2])
    port = ""
    hostname = host
    if host.startswith("["):
        hostname, _, tail = host[1:].partition("]")
        port = tail[1:]
    elif ":" in host:
        hostname, _, port = host.rpartition(":")
    return CelUrl(
        text=text,
        scheme=scheme,
        host=host,
        hostname=hostname,
        port=port,
        escaped_path="" if is_opaque else _escape_path(slash + path),
        query=query,
    )


_PLAIN = "$&+,/:;=@!'()*[]-_.~"


def _escape_path(path: str) -> str:
    """Return the path as written if Go accepts that encoding; otherwise encode it again."""
    if re.fullmatch(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]]|%[0-9A-Fa-f]{2})*", path):
        return path
    return quote(unquote(path), safe=_PLAIN.replace("[]", ""))


def _query_of(query: str) -> dict[str, list[str]]:
    """Pairs with a semicolon or an invalid escape are left out."""
    values_by_key: dict[str, list[str]] = {}
    for pair in query.split("&"):
        if not pair or ";" in pair or _ESCAPE.search(pair):
            continue
        key, _, value = pair.partition("=")
        if "\ufffd" in unquote_plus(pair) and "%" in pair:
            raise UndecidedError("the query has bytes that are not valid UTF-8")
        values_by_key.setdefault(unquote_plus(key), []).append(unquote_plus(value))
    return values_by_key


# Named formats: validation of names, dates, and URIs. Upstream: apiserver/pkg/cel/library/format.go.

_DNS_1035 = lazy_pattern(r"[a-z](?:-*[a-z0-9]++)*+")
_UUID = lazy_pattern(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_DATE = lazy_pattern(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DNS_1035_ERROR = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def _dns_1035(value: str) -> Iterator[str]:
    if len(value.encode(errors="surrogatepass")) > 63:
        yield "must be no more than 63 characters"
    if not _DNS_1035.fullmatch(value):
        yield _DNS_1035_ERROR


def _allow_prefix(errors: Callable[[str], Iterator[str]]) -> Callable[[str], Iterator[str]]:
    """A prefix of a name may end with a dash."""
    return lambda value: errors(f"{value[:-1]}a" if len(value) > 1 and value.endswith("-") else value)


def _uri(value: str) -> Iterator[str]:
    if error := url_error(value, in_request=True):
        yield f"parse {quote_go(value)}: {error}"


def _uuid(value: str) -> Iterator[str]:
    if not _UUID.fullmatch(value):
        yield "does not match the UUID format"


def _byte(value: str) -> Iterator[str]:
    from base64 import b64decode

    try:
        if value == "":
            raise ValueError
        b64decode(value, validate=True)
    except ValueError:
        yield "invalid base64"


def _date(value: str) -> Iterator[str]:
    try:
        if not _DATE.fullmatch(value):
            raise ValueError
        date.fromisoformat(value)
    except ValueError:
        yield "invalid date"


def _datetime(value: str) -> Iterator[str]:
    if timestamp_from_text(value.upper()) is None:
        yield "invalid datetime"


_FORMATS = {
    "dns1123Label": CelFormat("DNS1123Label", 30, names.dns_label_errors),
    "dns1123Subdomain": CelFormat("DNS1123Subdomain", 60, names.dns_subdomain_errors),
    "dns1035Label": CelFormat("DNS1035Label", 30, _dns_1035),
    "qualifiedName": CelFormat("QualifiedName", 60, names.label_key_errors),
    "dns1123LabelPrefix": CelFormat("DNS1123LabelPrefix", 30, _allow_prefix(names.dns_label_errors)),
    "dns1123SubdomainPrefix": CelFormat("DNS1123SubdomainPrefix", 60, _allow_prefix(names.dns_subdomain_errors)),
    "dns1035LabelPrefix": CelFormat("DNS1035LabelPrefix", 30, _allow_prefix(_dns_1035)),
    "labelValue": CelFormat("LabelValue", 40, names.label_value_errors),
    "uri": CelFormat("URI", 1103, _uri),
    "uuid": CelFormat("uuid", 86, _uuid),
    "byte": CelFormat("byte", 84, _byte),
    "date": CelFormat("date", 137, _date),
    "datetime": CelFormat("datetime", 137, _datetime),
}


def _named_format(_: Budget, name: str) -> Value:
    return Optional(_FORMATS[name]) if name in _FORMATS else NONE


def _constant(of: CelFormat) -> Run:
    return lambda _: of


def _validate(_: Budget, wanted_format: CelFormat, text: str) -> Value:
    phrases: list[Value] = [*wanted_format.errors(text)]
    return Optional(phrases) if phrases else NONE


# Upstream: apiserver/pkg/cel/library.

_NANO = 10**9


# --- quantities


def quantity_from_text(text: str) -> CelQuantity | Fault:
    try:
        if text != text.strip():
            parse_quantity("x")
        quantity = parse_quantity(text)
        return CelQuantity(quantity.nano_value(), is_whole=quantity.is_whole)
    except InputError as error:
        return Fault(error.message)


def _is_integer(_: Budget, quantity: CelQuantity) -> bool:
    return quantity.is_whole and -(2**63) <= quantity.nano // _NANO < 2**63


def _as_integer(budget: Budget, quantity: CelQuantity) -> Value:
    return quantity.nano // _NANO if _is_integer(budget, quantity) else Fault("cannot convert value to integer")


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _sum(sign: int) -> Run:
    def run(_: Budget, quantity: CelQuantity, other: CelQuantity | int) -> Value:
        added = other if isinstance(other, CelQuantity) else CelQuantity(other * _NANO, is_whole=True)
        summands = [summand for summand in (quantity, added) if summand.nano] or [quantity]
        is_whole = all(summand.is_whole for summand in summands)
        return CelQuantity(quantity.nano + sign * added.nano, is_whole=is_whole, is_sum=True)

    return run


# --- versions

_NUMBER = lazy_pattern(r"[0-9]*")
_WORD = lazy_pattern(r"[0-9A-Za-z-]*")
_MAX_UINT = 2**64 - 1


def semver_from_text(text: str) -> Semver | Fault:
    """The error of a `Fault` is that of blang/semver, which Kubernetes uses."""
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
    identifiers = _prerelease(pre) if dash else ()
    if isinstance(identifiers, Fault):
        return identifiers
    for word in build.split(".") if plus else ():
        if not word:
            return Fault("Build meta data is empty")
        if not _WORD.fullmatch(word):
            return Fault(f"Invalid character(s) found in build meta data {quote_go(word)}")
    return Semver((numbers[0], numbers[1], numbers[2]), identifiers)


def _version_number(digits: str, word: str, place: str) -> int | Fault:
    if not _NUMBER.fullmatch(digits):
        return Fault(f"Invalid character(s) found in {place} {quote_go(digits)}")
    if len(digits) > 1 and digits.startswith("0"):
        end = "version" if word == "Numeric PreRelease" else "number"
        return Fault(f"{word} {end} must not contain leading zeroes {quote_go(digits)}")
    if not digits:
        return Fault('strconv.ParseUint: parsing "": invalid syntax')
    if len(digits) > 20 or int(digits) > _MAX_UINT:
        return Fault(f"strconv.ParseUint: parsing {quote_go(digits)}: value out of range")
    return int(digits)


def _prerelease(text: str) -> Prerelease | Fault:
    identifiers = []
    for word in text.split("."):
        if not word:
            return Fault("Prerelease is empty")
        if _NUMBER.fullmatch(word):
            number = _version_number(word, "Numeric PreRelease", "prerelease")
            if isinstance(number, Fault):
                return number
            identifiers.append((False, number, ""))
        elif _WORD.fullmatch(word):
            identifiers.append((True, 0, word))
        else:
            return Fault(f"Invalid character(s) found in prerelease {quote_go(word)}")
    return tuple(identifiers)


def _normalize(text: str) -> Semver | Fault:
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
    return _normalize(text) if normalize else semver_from_text(text)


def _is_semver(budget: Budget, text: str, normalize: bool = False) -> Value:
    return isinstance(_semver(budget, text, normalize), Semver)


def _version_part(index: int) -> Run:
    def run(_: Budget, semver: Semver) -> Value:
        number = semver.numbers[index]
        return number if number < 2**63 else number - 2**64

    return run


def _comparison(name: str, word: str, result: str, does: Callable[[int], Value]) -> Function:
    """Declare a comparison of two quantities or versions, which depends on the sign of their difference."""

    def of_quantities(_: Budget, quantity: CelQuantity, other: CelQuantity) -> Value:
        return does(_sign(quantity.nano - other.nano))

    def of_versions(_: Budget, semver: Semver, other: Semver) -> Value:
        return does((semver.order > other.order) - (semver.order < other.order))

    return several(
        name,
        overload(f"quantity_{word}", f"quantity.(quantity) -> {result}", of_quantities),
        overload(f"semver_{word}", f"semver.(semver) -> {result}", of_versions),
    )


# --- URLs


def _url(_: Budget, text: str) -> Value:
    if error := url_error(text, in_request=True):
        return Fault(f"URL parse error during conversion from string: parse {quote_go(text)}: {error}")
    return _parsed_url(text)


def _is_url(_: Budget, text: str) -> Value:
    return not url_error(text, in_request=True)


def _query(budget: Budget, url: CelUrl) -> Value:
    budget.spend(len(url.query))
    entries: dict[object, Value] = {key: list(values) for key, values in _query_of(url.query).items()}
    return MapValue(entries)


# --- regular expressions


def _illegal(fault: Fault) -> Fault:
    return Fault(f"Illegal regex: {fault.message}")


def _find(_: Budget, text: str, pattern: str) -> Value:
    compiled_pattern = regex.compile_pattern(pattern)
    return _illegal(compiled_pattern) if isinstance(compiled_pattern, Fault) else compiled_pattern.find(text)


def _find_all(budget: Budget, text: str, pattern: str, limit: int = -1) -> Value:
    compiled_pattern = regex.compile_pattern(pattern)
    if isinstance(compiled_pattern, Fault):
        return _illegal(compiled_pattern)
    budget.spend(len(text))
    return list(compiled_pattern.find_all(text, limit))


# --- the table


KUBERNETES_FUNCTIONS = (
    single("url", "string_to_url", "(string) -> url", _url),
    single("getScheme", "url_get_scheme", "url.() -> string", lambda _, item: item.scheme),
    single("getHost", "url_get_host", "url.() -> string", lambda _, item: item.host),
    single("getHostname", "url_get_hostname", "url.() -> string", lambda _, item: item.hostname),
    single("getPort", "url_get_port", "url.() -> string", lambda _, item: item.port),
    single("getEscapedPath", "url_get_escaped_path", "url.() -> string", lambda _, item: item.escaped_path),
    single("getQuery", "url_get_query", "url.() -> map(string, list(string))", _query),
    single("isURL", "is_url_string", "(string) -> bool", _is_url),
    single("find", "string_find_string", "string.(string) -> string", _find),
    several(
        "findAll",
        overload("string_find_all_string", "string.(string) -> list(string)", _find_all),
        overload("string_find_all_string_int", "string.(string, int) -> list(string)", _find_all),
    ),
    single("quantity", "string_to_quantity", "(string) -> quantity", lambda _, text: quantity_from_text(text)),
    single(
        "isQuantity",
        "is_quantity_string",
        "(string) -> bool",
        lambda _, text: isinstance(quantity_from_text(text), CelQuantity),
    ),
    single("sign", "quantity_sign", "(quantity) -> int", lambda _, item: _sign(item.nano)),
    _comparison("isGreaterThan", "is_greater_than", "bool", lambda order: order > 0),
    _comparison("isLessThan", "is_less_than", "bool", lambda order: order < 0),
    _comparison("compareTo", "compare_to", "int", lambda order: order),
    single("asApproximateFloat", "quantity_get_float", "quantity.() -> double", lambda _, item: item.nano / _NANO),
    single("asInteger", "quantity_get_int", "quantity.() -> int", _as_integer),
    single("isInteger", "quantity_is_integer", "quantity.() -> bool", _is_integer),
    several(
        "add",
        overload("quantity_add", "quantity.(quantity) -> quantity", _sum(1)),
        overload("quantity_add_int", "quantity.(int) -> quantity", _sum(1)),
    ),
    several(
        "sub",
        overload("quantity_sub", "quantity.(quantity) -> quantity", _sum(-1)),
        overload("quantity_sub_int", "quantity.(int) -> quantity", _sum(-1)),
    ),
    several(
        "semver",
        overload("string_to_semver", "(string) -> semver", _semver),
        overload("string_bool_to_semver", "(string, bool) -> semver", _semver),
    ),
    several(
        "isSemver",
        overload("is_semver_string", "(string) -> bool", _is_semver),
        overload("is_semver_string_bool", "(string, bool) -> bool", _is_semver),
    ),
    single("major", "semver_major", "semver.() -> int", _version_part(0)),
    single("minor", "semver_minor", "semver.() -> int", _version_part(1)),
    single("patch", "semver_patch", "semver.() -> int", _version_part(2)),
    single("validate", "format-validate", "format.(string) -> optional(list(string))", _validate),
    single("format.named", "format-named", "(string) -> optional(format)", _named_format),
    *(single(f"format.{name}", f"format.{name}", "() -> format", _constant(of)) for name, of in _FORMATS.items()),
)
