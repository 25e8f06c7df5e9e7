"""Values and their types as cel-go's errors and texts name them."""

from __future__ import annotations

import math

from kschedx.cel.types import Type
from kschedx.cel.values import Cidr, Duration, Format, Ip, Null, Optional, Quantity, Semver, Timestamp, Uint, Url, Value

_GO_TYPES: dict[type, str] = {
    bool: "types.Bool",
    int: "types.Int",
    Uint: "types.Uint",
    float: "types.Double",
    str: "types.String",
    bytes: "types.Bytes",
    Null: "types.Null",
    Optional: "*types.Optional",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Quantity: "cel.Quantity",
    Semver: "cel.Semver",
    Ip: "cel.IP",
    Cidr: "cel.CIDR",
    Url: "cel.URL",
    Format: "cel.Format",
    Type: "*types.Type",
}


def go_type(value: Value) -> str:
    """As Go prints it with %T."""
    return _GO_TYPES[type(value)]


def printed_key(value: Value) -> str:
    """As an error names a key or an index."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return double_text(value)
    return str(value)


def double_text(value: float) -> str:
    """As Go prints it with %g."""
    if value != value:
        return "NaN"
    if value in (math.inf, -math.inf):
        return "+Inf" if value > 0 else "-Inf"
    digits, _, exponent = f"{value!r}".partition("e")
    shortest = f"{value:e}" if not exponent else ""
    power = int((shortest or f"e{exponent}").rpartition("e")[2])
    if -4 <= power < 21:
        plain = digits if not exponent else f"{value:.0f}" if power > 0 else _expanded(digits, power)
        return plain.removesuffix(".0")
    if not exponent:
        mantissa = repr(value).replace(".", "").strip("0-") or "0"
        digits = ("-" if value < 0 else "") + mantissa[0] + (f".{mantissa[1:]}" if mantissa[1:] else "")
    return f"{digits.removesuffix('.0')}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _expanded(digits: str, power: int) -> str:
    sign = "-" if digits.startswith("-") else ""
    plain = digits.removeprefix("-").replace(".", "")
    return f"{sign}0.{'0' * (-power - 1)}{plain}"
