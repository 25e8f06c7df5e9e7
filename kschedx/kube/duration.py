"""Durations in Go's format: `1h15m30.5s` (metav1.Duration, time.ParseDuration)."""

from __future__ import annotations

import re

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

_PART = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)")


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
