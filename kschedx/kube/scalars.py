"""Go's fixed-width integers: bounds, wrap-around, truncating division, and `strconv.ParseInt`; and its durations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated

from msgspec import Meta

from kschedx.errors import InputError
from kschedx.patterns import lazy_pattern

MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=MIN_INT64, le=MAX_INT64)]  # types of fields for which Go refuses larger numbers

_INTEGER = lazy_pattern(r"([+-]?)(?=[0-9])0*+([0-9]*+)")


def wrap_int32(number: int) -> int:
    """Return the low 32 bits as an int32, as Go's conversion of a larger integer does."""
    return (number + 2**31) % 2**32 - 2**31


def wrap_int64(number: int) -> int:
    """Return the low 64 bits as an int64, as Go's arithmetic does on overflow."""
    return (number + 2**63) % 2**64 - 2**63


def truncated_quotient(dividend: int, divisor: int) -> int:
    """Divide as Go's `/`: rounds towards zero, while Python's `//` rounds down."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def json_number(number: float) -> float:
    """Return a whole number as an int, as Go writes 3.0 in JSON. Raises `ValueError` for one that is out of range."""
    if number in (math.inf, -math.inf):
        raise ValueError("Number out of range")
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def parse_int64(text: str) -> int | None:
    """Parse as `strconv.ParseInt(text, 10, 64)`, or return None for its errors. A sign and leading zeros are allowed;
    spaces, underscores, non-ASCII digits, and values out of range are not."""
    match = _INTEGER.fullmatch(text)
    if match is None or len(match[2]) > len(str(MAX_INT64)):
        return None
    number = int(match[1] + (match[2] or "0"))
    return number if MIN_INT64 <= number <= MAX_INT64 else None


_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True),
    **dict.fromkeys(("0", "f", "F", "false", "FALSE", "False"), False),
}


def parse_bool(text: str) -> bool:
    """Parse as `strconv.ParseBool`. Raises `ValueError`."""
    if text not in _BOOLEANS:
        raise ValueError(text)
    return _BOOLEANS[text]


# A number of pods or a percentage.


def scale_percent(value: int | str, whole: int, *, is_up: bool) -> int | None:
    """GetScaledValueFromIntOrPercent: rounded up or down; None for a text that is not a percentage."""
    if isinstance(value, int):
        return value
    digits = value.removesuffix("%")
    if digits == value or not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return None
    product = int(digits) * whole
    return -(-product // 100) if is_up else product // 100


# Times in the API: RFC 3339, with or without a fraction of a second.

_RFC3339 = lazy_pattern(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SECOND = 1_000_000_000

LATEST = 2**63 - 1  # later than every time in an object


def newest(times: Iterable[str | None]) -> str:
    """Return the newest time as it is written; empty if none is valid."""

    def is_valid(text: str) -> bool:
        try:
            return bool(nanoseconds(text))
        except InputError:
            return False

    return next(filter(is_valid, sorted({time for time in times if time}, reverse=True)), "")


def earlier(text: str, seconds: int) -> str:
    """Return the time so many seconds before one in RFC 3339; the text as it is, if it is no time."""
    try:
        return datetime.fromtimestamp(nanoseconds(text) // _SECOND - seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (InputError, OverflowError, ValueError):
        return text


def nanoseconds(text: str) -> int:
    """Return nanoseconds since 1970, within int64 and before `LATEST`. Raises `InputError` unless it is RFC 3339."""
    return max(-LATEST, min(exact_nanoseconds(text), LATEST - 1))


def elapsed(since: str | None, until: str | None) -> int | None:
    """Return the nanoseconds between two times, of which the second may end in ` or later`; None if one is missing or
    is no time."""
    try:
        return nanoseconds((until or "").removesuffix(" or later")) - nanoseconds(since or "")
    except InputError:
        return None


def exact_nanoseconds(text: str) -> int:
    """As `nanoseconds`, for all years from 1 to 9999."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InputError(f'"{text}" is not a time such as 2026-01-31T12:00:00Z')
    whole, fraction, zone = match.groups()
    try:
        # whole seconds of the years 1 to 9999 are exact as floats
        seconds = int(datetime.fromisoformat(whole + zone).timestamp())
    except (ValueError, OverflowError):
        raise InputError(f'"{text}" is not a time of the calendar') from None
    return seconds * _SECOND + int((fraction or "0")[:9].ljust(9, "0"))


# Durations in Go's format: `1h15m30.5s` (metav1.Duration, time.ParseDuration).

NANOSECONDS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}

_PART = lazy_pattern(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


class Duration(int):
    """Nanoseconds."""

    @classmethod
    def seconds(cls, seconds: int) -> Duration:
        return cls(seconds * NANOSECONDS["s"])

    @classmethod
    def parse(cls, text: str) -> Duration:
        """Raises ValueError for text that Go does not parse, and for values beyond int64 nanoseconds."""
        unsigned = text[1:] if text[:1] in ("+", "-") else text
        if unsigned == "0":
            return cls(0)
        parts = _PART.findall(unsigned)
        if not parts or "".join(number + unit for number, unit in parts) != unsigned:
            raise ValueError('expected a duration such as "10s" or "1m30s"')
        total = sum(map(_nanoseconds, *zip(*parts, strict=True)))
        signed = -total if text.startswith("-") else total
        if not -(2**63) <= signed < 2**63:
            raise ValueError("expected a duration of less than 292 years")
        return cls(signed)

    def __str__(self) -> str:
        """Format as Go does: `1m30s`, `500ms`, `0s`."""
        left = abs(int(self))
        sign = "-" if self < 0 else ""
        if left < NANOSECONDS["s"]:
            unit = next((unit for unit in ("ms", "µs", "ns") if left >= NANOSECONDS[unit]), "s")
            return f"{sign}{_decimal(left, NANOSECONDS[unit])}{unit}"
        hours, left = divmod(left, NANOSECONDS["h"])
        minutes, left = divmod(left, NANOSECONDS["m"])
        text = f"{_decimal(left, NANOSECONDS['s'])}s"
        if hours or minutes:
            text = f"{minutes}m{text}"
        return f"{sign}{hours}h{text}" if hours else sign + text


def _nanoseconds(number: str, unit: str) -> int:
    whole, _, digits = number.partition(".")
    scale: int = 10 ** len(digits)
    return int(whole + digits) * NANOSECONDS[unit] // scale


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0") if rest else ""
    return f"{whole}.{digits}" if digits else str(whole)
