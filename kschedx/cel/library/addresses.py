"""IP addresses and networks, with the syntax and errors of Go's net/netip.

Upstream: apiserver/pkg/cel/library/ip.go and cidr.go; net/netip.
"""

from __future__ import annotations

import re
from ipaddress import IPv6Interface, ip_address, ip_interface
from string import hexdigits

from kschedx.cel.functions import overload, several, single
from kschedx.cel.values import Budget, Cidr, Fault, Ip, UndecidedError, Value
from kschedx.kube.field_errors import quote_go
from kschedx.patterns import lazy_pattern

_LEADING = "parse error during conversion from string: "
_OCTETS, _BYTES = 4, 16
_LAST_FIELDS = _BYTES - _OCTETS  # the offset of an IPv4 address in an IPv6 address
_BITS = lazy_pattern(r"[1-9][0-9]*|[0-9]", re.ASCII)


# --- errors


def _position_text(what: str, rest: str) -> str:
    return f"{what} (at {quote_go(rest)})"


def _fault_of_address(text: str) -> str:
    """Return the error of an address, or an empty string."""
    for character in text:
        match character:
            case ".":
                return _fault_of_ipv4(text)
            case ":":
                return _fault_of_ipv6(text)
            case "%":
                return "missing IPv6 address"
    return "unable to parse IP"


def _fault_of_ipv4(text: str) -> str:
    field = digits = dots = 0
    for index, character in enumerate(text):
        rest = text[index:]
        if character.isascii() and character.isdigit():
            if digits and not field:
                return "IPv4 field has octet with leading zero"
            field, digits = field * 10 + int(character), digits + 1
            if field > 255:
                return "IPv4 field has value >255"
        elif character == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                return _position_text("IPv4 field must have at least one digit", rest)
            if dots == _OCTETS - 1:
                return "IPv4 address too long"
            field, digits, dots = 0, 0, dots + 1
        else:
            return _position_text("unexpected character", rest)
    return "IPv4 address too short" if dots < _OCTETS - 1 else ""


def _fault_of_ipv6(text: str) -> str:
    rest, percent, zone = text.partition("%")
    if percent and not zone:
        return "zone must be a non-empty string"
    has_gap = rest.startswith("::")
    if has_gap:
        rest = rest[2:]
    filled = 0
    while (rest and filled < _BYTES) or (not rest and not filled and not has_gap):
        size = len(rest) - len(rest.lstrip(hexdigits))
        if size > _OCTETS:
            return _position_text("each group must have 4 or less digits", rest)
        if not size:
            return _position_text("each colon-separated field must have at least one digit", rest)
        if rest[size : size + 1] == ".":
            wrong = _fault_of_embedded(rest, filled, has_gap=has_gap)
            if wrong:
                return wrong
            rest, filled = "", filled + _OCTETS
            break
        rest, filled = rest[size:], filled + 2
        if not rest:
            break
        if rest[0] != ":":
            return _position_text("unexpected character, want colon", rest)
        if len(rest) == 1:
            return _position_text("colon must be followed by more characters", rest)
        rest = rest[1:]
        if rest[0] == ":":
            if has_gap:
                return _position_text("multiple :: in address", rest)
            has_gap, rest = True, rest[1:]
    if rest:
        return _position_text("trailing garbage after address", rest)
    if filled < _BYTES:
        return "" if has_gap else "address string too short"
    return "the :: must expand to at least one field of zeros" if has_gap else ""


def _fault_of_embedded(rest: str, filled: int, *, has_gap: bool) -> str:
    if not has_gap and filled != _LAST_FIELDS:
        return _position_text("embedded IPv4 address must replace the final 2 fields of the address", rest)
    if filled + _OCTETS > _BYTES:
        return _position_text("too many hex fields to fit an embedded IPv4 at the end of the address", rest)
    return _fault_of_ipv4(rest)


def _fault_of_prefix(text: str) -> str:
    address, slash, bits = text.rpartition("/")
    if not slash:
        return "no '/'"
    wrong = _fault_of_address(address)
    if wrong:
        return f"ParseAddr({quote_go(address)}): {wrong}"
    if "%" in address:
        return "IPv6 zones cannot be present in a prefix"
    if not _BITS.fullmatch(bits) or int(bits) >= 2**63:
        return f"bad bits after slash: {quote_go(bits)}"
    return "prefix length out of range" if int(bits) > (128 if ":" in address else 32) else ""


# --- addresses


def _address(text: str) -> Ip | Fault:
    wrong = _fault_of_address(text)
    if wrong:
        return Fault(f"IP Address {quote_go(text)} {_LEADING}ParseAddr({quote_go(text)}): {wrong}")
    if "%" in text:
        return Fault(f"IP address {quote_go(text)} with zone value is not allowed")
    try:
        address = ip_address(text)
    except ValueError:
        raise UndecidedError(f"how Go parses the address {text!r} is not known") from None
    if address.version == 6 and address.ipv4_mapped is not None:
        return Fault(f"IPv4-mapped IPv6 address {quote_go(text)} is not allowed")
    return Ip(address)


def _is_canonical(_: Budget, text: str) -> Value:
    address = _address(text)
    return address if isinstance(address, Fault) else str(address.address) == text


def _is_global(_: Budget, ip: Ip) -> bool:
    address = ip.address
    is_broadcast = address.version == 4 and int(address) == 2**32 - 1
    return not (
        is_broadcast or address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    )


def _is_link_local_multicast(_: Budget, ip: Ip) -> bool:
    address = ip.address
    if address.version == 4:
        return int(address) >> 8 == 0xE00000
    return int(address) >> 112 & 0xFF0F == 0xFF02


# --- networks


def _prefix(text: str) -> Cidr | Fault:
    phrase = f"network address {_LEADING}"
    wrong = _fault_of_prefix(text)
    if wrong:
        return Fault(f"{phrase}{phrase}netip.ParsePrefix({quote_go(text)}): {wrong}")
    try:
        prefix = ip_interface(text)
    except ValueError:
        raise UndecidedError(f"how Go parses the network {text!r} is not known") from None
    if isinstance(prefix, IPv6Interface) and prefix.ip.ipv4_mapped is not None:
        return Fault(f"{phrase}IPv4-mapped IPv6 address {quote_go(text)} is not allowed")
    return Cidr(prefix)


def _contains_ip(_: Budget, cidr: Cidr, other: Value) -> Value:
    address = _address(other) if isinstance(other, str) else other
    if not isinstance(address, Ip):
        return Fault("no such overload")  # for any error of the text
    return address.address.version == cidr.prefix.version and address.address in cidr.prefix.network


def _contains_cidr(_: Budget, cidr: Cidr, other: Value) -> Value:
    inner = _prefix(other) if isinstance(other, str) else other
    if not isinstance(inner, Cidr):
        return inner if isinstance(inner, Fault) else Fault("no such overload")
    if inner.prefix.version != cidr.prefix.version:
        return False
    return inner.prefix.network.network_address in cidr.prefix.network and (
        cidr.prefix.network.prefixlen <= inner.prefix.network.prefixlen
    )


def _mask(_: Budget, cidr: Cidr) -> Value:
    return Cidr(ip_interface(str(cidr.prefix.network)))


ADDRESS_FUNCTIONS = (
    single("ip", "string_to_ip", "(string) -> ip", lambda _, text: _address(text)),
    single("family", "ip_family", "ip.() -> int", lambda _, item: item.address.version),
    single("ip.isCanonical", "ip_is_canonical", "(string) -> bool", _is_canonical),
    single("isUnspecified", "ip_is_unspecified", "ip.() -> bool", lambda _, item: item.address.is_unspecified),
    single("isLoopback", "ip_is_loopback", "ip.() -> bool", lambda _, item: item.address.is_loopback),
    single("isLinkLocalMulticast", "ip_is_link_local_multicast", "ip.() -> bool", _is_link_local_multicast),
    single(
        "isLinkLocalUnicast", "ip_is_link_local_unicast", "ip.() -> bool", lambda _, item: item.address.is_link_local
    ),
    single("isGlobalUnicast", "ip_is_global_unicast", "ip.() -> bool", _is_global),
    single("isIP", "is_ip", "(string) -> bool", lambda _, text: isinstance(_address(text), Ip)),
    single("string", "ip_to_string", "(ip) -> string", lambda _, item: str(item.address)),
    single("cidr", "string_to_cidr", "(string) -> cidr", lambda _, text: _prefix(text)),
    several(
        "containsIP",
        overload("cidr_contains_ip_string", "cidr.(string) -> bool", _contains_ip),
        overload("cidr_contains_ip_ip", "cidr.(ip) -> bool", _contains_ip),
    ),
    several(
        "containsCIDR",
        overload("cidr_contains_cidr_string", "cidr.(string) -> bool", _contains_cidr),
        overload("cidr_contains_cidr", "cidr.(cidr) -> bool", _contains_cidr),
    ),
    single("ip", "cidr_ip", "cidr.() -> ip", lambda _, item: Ip(item.prefix.ip)),
    single("prefixLength", "cidr_prefix_length", "cidr.() -> int", lambda _, item: item.prefix.network.prefixlen),
    single("masked", "cidr_masked", "cidr.() -> cidr", _mask),
    single("isCIDR", "is_cidr", "(string) -> bool", lambda _, text: isinstance(_prefix(text), Cidr)),
    single("string", "cidr_to_string", "(cidr) -> string", lambda _, item: str(item.prefix)),
)
