"""What a YAML scalar means to Kubernetes: the reading of go-yaml v2, which kubectl uses.

Neither pyyaml's reading (`12:30` is not 750, a date stays text, `1e3` and `0o17` are numbers) nor YAML 1.2's (`yes`,
`on` and `y` are true, `0777` is 511). kubectl makes JSON of it without knowing the fields' types, so that a label's
value `yes` arrives as true and is refused; a string must be quoted. Upstream: `resolve` in go.yaml.in/yaml/v2,
resolve.go; and sigs.k8s.io/yaml, yaml.go.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct

Scalar = str | int | float | bool | None

_TRUE = frozenset(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"))
_FALSE = frozenset(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"))
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_NOT_FINITE = frozenset(sign + name for sign in ("", "+", "-") for name in (".inf", ".Inf", ".INF")) | frozenset(
    (".nan", ".NaN", ".NAN")
)
_INTEGER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

_TAG = "tag:yaml.org,2002:"
_TYPES: dict[str, tuple[type, ...]] = {  # by the tag's short name
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "null": (type(None),),
    "timestamp": (),
}


def resolve(text: str, tag: str | None = None) -> Scalar:
    """The value of an unquoted scalar, or of any scalar with an explicit tag.

    Raises ValueError for a tag that does not fit the text, and for what JSON has no number for.
    """
    kind = (tag or "").removeprefix(_TAG)
    if tag and kind == "binary":
        return _binary(text)
    if tag and kind not in _TYPES:
        return text
    value = _plain(text)
    if kind and kind != "timestamp" and type(value) not in _TYPES[kind]:
        raise ValueError(f'"{text}" is no !!{kind}')
    return value


def key(value: Scalar) -> str:
    """A mapping's key as JSON has it. Raises ValueError for null."""
    match value:
        case None:
            raise ValueError("null cannot be a key")
        case bool():
            return "true" if value else "false"
        case float():
            return _short_float(value)
        case _:
            return str(value)


def _plain(text: str) -> Scalar:
    if text in _NULL:
        return None
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    if text in _NOT_FINITE:
        raise ValueError(f"{text} cannot be used: JSON has no such number")
    if text[0] in "+-0123456789":
        bare = text.replace("_", "")
        integer = _integer(bare)
        return integer if integer is not None else _float(bare, text)
    return _float(text, text) if text[0] == "." else text


def _integer(text: str) -> int | None:
    """As Go's ParseInt with base 0, or ParseUint: None for what 64 bits cannot hold."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, digits = match.groups()
    if digits[:2].lower() in ("0x", "0o", "0b"):
        value = int(digits, 0)
    elif digits.startswith("0"):
        value = int(digits, 8)
    elif len(digits) > 20:
        return None
    else:
        value = int(digits)
    if sign == "-":
        return -value if value <= 1 << 63 else None
    return value if value < 1 << (63 if sign else 64) else None


def _float(text: str, otherwise: str) -> int | float | str:
    if not _FLOAT.fullmatch(text):
        return otherwise
    value = float(text)
    return as_number(value) if math.isfinite(value) else otherwise


def as_number(value: float) -> int | float:
    """A float as it comes out of Go's JSON: without a fraction it is an integer."""
    return int(value) if value.is_integer() and abs(value) < 1 << 63 else value


def _binary(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode(errors="replace")
    except binascii.Error:
        raise ValueError("!!binary is not valid base64") from None


def _short_float(value: float) -> str:
    """The shortest text that reads back as the same 32-bit float: Go's FormatFloat(value, 'g', -1, 32)."""
    narrow = struct.pack("f", value)
    (value,) = struct.unpack("f", narrow)
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    precision = next(digits for digits in range(9) if struct.pack("f", float(f"{value:.{digits}e}")) == narrow)
    text = f"{value:.{precision}e}"
    power = int(text.partition("e")[2])
    return f"{float(text):.{max(precision - power, 0)}f}" if -4 <= power < 6 else text
