"""Kubernetes' own libraries: quantities, versions, addresses, URLs, formats and regular expressions.

Upstream: apiserver/pkg/cel/library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from ipaddress import AddressValueError, IPv6Interface, NetmaskValueError, ip_address, ip_interface

from kschedx.api import names
from kschedx.api.quantity import parse_quantity
from kschedx.api.resources import exact_nano_units
from kschedx.cel import regex
from kschedx.cel.functions import Function, Overload, Run
from kschedx.cel.library.urls import parsed_url, query_of, request_uri_error
from kschedx.cel.types import (
    BOOL,
    CIDR,
    DOUBLE,
    FORMAT,
    INT,
    IP,
    QUANTITY,
    SEMVER,
    STRING,
    URL,
    Type,
    list_of,
    map_of,
    optional_of,
)
from kschedx.cel.values import (
    NONE,
    Budget,
    Cidr,
    Fault,
    Format,
    Ip,
    MapValue,
    Optional,
    Prerelease,
    Quantity,
    Semver,
    UndecidedError,
    Url,
    Value,
)
from kschedx.errors import InputError

_NANO = 10**9


def quoted(text: str) -> str:
    """As Go prints it with %q."""
    from json import dumps

    return dumps(text, ensure_ascii=False)


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


# --- addresses


def _address(text: str) -> Ip | Fault:
    told = f"IP Address {quoted(text)} parse error during conversion from string: "
    if "%" in text and ":" in text:
        return Fault(f"IP address {quoted(text)} with zone value is not allowed")
    try:
        found = ip_address(text)
    except ValueError:
        return Fault(f"{told}ParseAddr({quoted(text)}): {_address_fault(text)}")
    if found.version == 6 and found.ipv4_mapped is not None:
        return Fault(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Ip(found)


def _address_fault(text: str) -> str:
    """Go's words, of the few kinds that people run into."""
    if "." not in text and ":" not in text:
        return "unable to parse IP"
    parts = text.split(".")
    if ":" not in text and all(part.isdecimal() and part.isascii() for part in parts):
        for part in parts:
            if len(part) > 1 and part.startswith("0"):
                return "IPv4 field has octet with leading zero"
            if int(part[:9]) > 255:
                return "IPv4 field has value >255"
        return "IPv4 address too short" if len(parts) < 4 else "IPv4 address too long"
    raise UndecidedError(f"what Go says of the address {text!r} is not known")


def _ip(_: Budget, text: str) -> Value:
    return _address(text)


def _is_ip(_: Budget, text: str) -> Value:
    try:
        return isinstance(_address(text), Ip)
    except UndecidedError:
        return False


def _is_canonical(_: Budget, text: str) -> Value:
    found = _address(text)
    return found if isinstance(found, Fault) else str(found.address) == text


def _of_address(read: Callable[[Ip], Value]) -> Run:
    return lambda _, one: read(one)


def _is_global(one: Ip) -> bool:
    address = one.address
    is_broadcast = address.version == 4 and int(address) == 2**32 - 1
    return not (
        is_broadcast or address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    )


def _is_link_local_multicast(one: Ip) -> bool:
    address = one.address
    if address.version == 4:
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


_PREFIX = re.compile(r"(.*)/(0|[1-9][0-9]{0,2})", re.ASCII | re.DOTALL)


def _prefix(text: str) -> Cidr | Fault:
    found = _PREFIX.fullmatch(text)
    told = "network address parse error during conversion from string: "
    if found is None or "%" in text:
        if "/" not in text:
            return Fault(f"{told}{told}netip.ParsePrefix({quoted(text)}): no '/'")
        raise UndecidedError(f"what Go says of the network {text!r} is not known")
    try:
        prefix = ip_interface(text)
    except (AddressValueError, NetmaskValueError, ValueError):
        raise UndecidedError(f"what Go says of the network {text!r} is not known") from None
    if isinstance(prefix, IPv6Interface) and prefix.ip.ipv4_mapped is not None:
        return Fault(f"{told}IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return Cidr(prefix)


def _cidr(_: Budget, text: str) -> Value:
    return _prefix(text)


def _is_cidr(_: Budget, text: str) -> Value:
    try:
        return isinstance(_prefix(text), Cidr)
    except UndecidedError:
        return False


def _contains_ip(_: Budget, one: Cidr, other: Value) -> Value:
    address = _address(other) if isinstance(other, str) else other
    if not isinstance(address, Ip):
        return address if isinstance(address, Fault) else Fault("no such overload")
    return address.address.version == one.prefix.version and address.address in one.prefix.network


def _contains_cidr(_: Budget, one: Cidr, other: Value) -> Value:
    inner = _prefix(other) if isinstance(other, str) else other
    if not isinstance(inner, Cidr):
        return inner if isinstance(inner, Fault) else Fault("no such overload")
    if inner.prefix.version != one.prefix.version:
        return False
    return inner.prefix.network.network_address in one.prefix.network and (
        one.prefix.network.prefixlen <= inner.prefix.network.prefixlen
    )


def _masked(_: Budget, one: Cidr) -> Value:
    return Cidr(ip_interface(str(one.prefix.network)))


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


# --- formats

_DNS_1035 = re.compile(r"[a-z](?:-*[a-z0-9]++)*+")
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DNS_1035_TOLD = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def _dns_1035(value: str) -> Iterator[str]:
    if len(value.encode(errors="surrogatepass")) > 63:
        yield "must be no more than 63 characters"
    if not _DNS_1035.fullmatch(value):
        yield _DNS_1035_TOLD


def _of_prefix(errors: Callable[[str], Iterator[str]]) -> Callable[[str], Iterator[str]]:
    """A name that something follows may end in a dash."""
    return lambda value: errors(f"{value[:-1]}a" if len(value) > 1 and value.endswith("-") else value)


def _uri(value: str) -> Iterator[str]:
    told = request_uri_error(value)
    if told is not None:
        yield told


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
    from datetime import date

    try:
        if not _DATE.fullmatch(value):
            raise ValueError
        date.fromisoformat(value)
    except ValueError:
        yield "invalid date"


def _datetime(value: str) -> Iterator[str]:
    from kschedx.cel.library.times import timestamp_from_text

    if timestamp_from_text(value.upper()) is None:
        yield "invalid datetime"


_FORMATS: dict[str, tuple[str, int, Callable[[str], Iterator[str]]]] = {
    "dns1123Label": ("DNS1123Label", 30, names.dns_label_errors),
    "dns1123Subdomain": ("DNS1123Subdomain", 60, names.dns_subdomain_errors),
    "dns1035Label": ("DNS1035Label", 30, _dns_1035),
    "qualifiedName": ("QualifiedName", 60, names.label_key_errors),
    "dns1123LabelPrefix": ("DNS1123LabelPrefix", 30, _of_prefix(names.dns_label_errors)),
    "dns1123SubdomainPrefix": ("DNS1123SubdomainPrefix", 60, _of_prefix(names.dns_subdomain_errors)),
    "dns1035LabelPrefix": ("DNS1035LabelPrefix", 30, _of_prefix(_dns_1035)),
    "labelValue": ("LabelValue", 40, names.label_value_errors),
    "uri": ("URI", 1103, _uri),
    "uuid": ("uuid", 86, _uuid),
    "byte": ("byte", 84, _byte),
    "date": ("date", 137, _date),
    "datetime": ("datetime", 137, _datetime),
}
"""What a format is called inside, and how long a pattern its cost stands for."""


def _format(name: str) -> Format:
    inside, longest, errors = _FORMATS[name]
    return Format(inside, longest, lambda value: list(errors(value)))


def _named(_: Budget, name: str) -> Value:
    return Optional(_format(name)) if name in _FORMATS else NONE


def _constant(name: str) -> Run:
    return lambda _: _format(name)


def _validate(_: Budget, one: Format, text: str) -> Value:
    told = one.validate(text)
    return Optional(list(told)) if told else NONE


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


def _one(
    name: str, overload: str, arguments: tuple[Type, ...], result: Type, run: Run, *, is_member: bool = True
) -> Function:
    return Function(name=name, overloads=(_over(overload, arguments, result, run, is_member=is_member),))


def _over(
    overload: str, arguments: tuple[Type, ...], result: Type, run: Run | None, *, is_member: bool = True
) -> Overload:
    return Overload(id=overload, arguments=arguments, result=result, is_member=is_member, run=run)


_QQ, _VV = (QUANTITY, QUANTITY), (SEMVER, SEMVER)

FUNCTIONS = (
    _one("url", "string_to_url", (STRING,), URL, _url, is_member=False),
    _one("getScheme", "url_get_scheme", (URL,), STRING, lambda _, one: one.scheme),
    _one("getHost", "url_get_host", (URL,), STRING, lambda _, one: one.host),
    _one("getHostname", "url_get_hostname", (URL,), STRING, lambda _, one: one.hostname),
    _one("getPort", "url_get_port", (URL,), STRING, lambda _, one: one.port),
    _one("getEscapedPath", "url_get_escaped_path", (URL,), STRING, lambda _, one: one.escaped_path),
    _one("getQuery", "url_get_query", (URL,), map_of(STRING, list_of(STRING)), _query),
    _one("isURL", "is_url_string", (STRING,), BOOL, _is_url, is_member=False),
    _one("find", "string_find_string", (STRING, STRING), STRING, _find),
    Function(
        name="findAll",
        overloads=(
            _over("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
            _over("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
        ),
    ),
    _one("quantity", "string_to_quantity", (STRING,), QUANTITY, _quantity, is_member=False),
    _one("isQuantity", "is_quantity_string", (STRING,), BOOL, _is_quantity, is_member=False),
    _one("sign", "quantity_sign", (QUANTITY,), INT, lambda _, one: _sign(one.nano), is_member=False),
    Function(
        name="isGreaterThan",
        overloads=(
            _over("quantity_is_greater_than", _QQ, BOOL, _of_quantities(lambda one, other: one > other)),
            _over("semver_is_greater_than", _VV, BOOL, _of_versions(lambda order: order > 0)),
        ),
    ),
    Function(
        name="isLessThan",
        overloads=(
            _over("quantity_is_less_than", _QQ, BOOL, _of_quantities(lambda one, other: one < other)),
            _over("semver_is_less_than", _VV, BOOL, _of_versions(lambda order: order < 0)),
        ),
    ),
    Function(
        name="compareTo",
        overloads=(
            _over("quantity_compare_to", _QQ, INT, _of_quantities(lambda one, other: _sign(one - other))),
            _over("semver_compare_to", _VV, INT, _of_versions(lambda order: order)),
        ),
    ),
    _one("asApproximateFloat", "quantity_get_float", (QUANTITY,), DOUBLE, lambda _, one: one.nano / _NANO),
    _one("asInteger", "quantity_get_int", (QUANTITY,), INT, _as_integer),
    _one("isInteger", "quantity_is_integer", (QUANTITY,), BOOL, _is_integer),
    Function(
        name="add",
        overloads=(
            _over("quantity_add", _QQ, QUANTITY, _of_quantities(lambda one, other: Quantity(one + other))),
            _over(
                "quantity_add_int", (QUANTITY, INT), QUANTITY, _of_quantities(lambda one, other: Quantity(one + other))
            ),
        ),
    ),
    Function(
        name="sub",
        overloads=(
            _over("quantity_sub", _QQ, QUANTITY, _of_quantities(lambda one, other: Quantity(one - other))),
            _over(
                "quantity_sub_int", (QUANTITY, INT), QUANTITY, _of_quantities(lambda one, other: Quantity(one - other))
            ),
        ),
    ),
    _one("ip", "string_to_ip", (STRING,), IP, _ip, is_member=False),
    _one("family", "ip_family", (IP,), INT, lambda _, one: one.address.version),
    _one("ip.isCanonical", "ip_is_canonical", (STRING,), BOOL, _is_canonical, is_member=False),
    _one("isUnspecified", "ip_is_unspecified", (IP,), BOOL, _of_address(lambda one: one.address.is_unspecified)),
    _one("isLoopback", "ip_is_loopback", (IP,), BOOL, _of_address(lambda one: one.address.is_loopback)),
    _one("isLinkLocalMulticast", "ip_is_link_local_multicast", (IP,), BOOL, _of_address(_is_link_local_multicast)),
    _one(
        "isLinkLocalUnicast",
        "ip_is_link_local_unicast",
        (IP,),
        BOOL,
        _of_address(lambda one: one.address.is_link_local),
    ),
    _one("isGlobalUnicast", "ip_is_global_unicast", (IP,), BOOL, _of_address(_is_global)),
    _one("isIP", "is_ip", (STRING,), BOOL, _is_ip, is_member=False),
    _one("string", "ip_to_string", (IP,), STRING, lambda _, one: str(one.address), is_member=False),
    _one("cidr", "string_to_cidr", (STRING,), CIDR, _cidr, is_member=False),
    Function(
        name="containsIP",
        overloads=(
            _over("cidr_contains_ip_string", (CIDR, STRING), BOOL, _contains_ip),
            _over("cidr_contains_ip_ip", (CIDR, IP), BOOL, _contains_ip),
        ),
    ),
    Function(
        name="containsCIDR",
        overloads=(
            _over("cidr_contains_cidr_string", (CIDR, STRING), BOOL, _contains_cidr),
            _over("cidr_contains_cidr", (CIDR, CIDR), BOOL, _contains_cidr),
        ),
    ),
    _one("ip", "cidr_ip", (CIDR,), IP, lambda _, one: Ip(one.prefix.ip)),
    _one("prefixLength", "cidr_prefix_length", (CIDR,), INT, lambda _, one: one.prefix.network.prefixlen),
    _one("masked", "cidr_masked", (CIDR,), CIDR, _masked),
    _one("isCIDR", "is_cidr", (STRING,), BOOL, _is_cidr, is_member=False),
    _one("string", "cidr_to_string", (CIDR,), STRING, lambda _, one: str(one.prefix), is_member=False),
    _one("validate", "format-validate", (FORMAT, STRING), optional_of(list_of(STRING)), _validate),
    _one("format.named", "format-named", (STRING,), optional_of(FORMAT), _named, is_member=False),
    *(_one(f"format.{name}", f"format.{name}", (), FORMAT, _constant(name), is_member=False) for name in _FORMATS),
    Function(
        name="semver",
        overloads=(
            _over("string_to_semver", (STRING,), SEMVER, _semver, is_member=False),
            _over("string_bool_to_semver", (STRING, BOOL), SEMVER, _semver, is_member=False),
        ),
    ),
    Function(
        name="isSemver",
        overloads=(
            _over("is_semver_string", (STRING,), BOOL, _is_semver, is_member=False),
            _over("is_semver_string_bool", (STRING, BOOL), BOOL, _is_semver, is_member=False),
        ),
    ),
    _one("major", "semver_major", (SEMVER,), INT, _version_part(0)),
    _one("minor", "semver_minor", (SEMVER,), INT, _version_part(1)),
    _one("patch", "semver_patch", (SEMVER,), INT, _version_part(2)),
)
