"""Durations and points in time.

Upstream: cel-go's common/types/duration.go and timestamp.go, Go's time.ParseDuration and RFC 3339.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo

from kschedx.cel.functions import Function, Overload, Run
from kschedx.cel.types import DURATION, INT, STRING, TIMESTAMP
from kschedx.cel.values import NO_OVERLOAD, Budget, Duration, Fault, Timestamp, Value

_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3600 * 10**9}
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_RFC_3339 = re.compile(r"(\d{4}-\d{2}-\d{2})T(\d{2}:\d{2}:\d{2})(?:[.,](\d+))?(Z|[+-]\d{2}:\d{2})", re.ASCII)
_LONGEST_NUMBER = 30
"""Digits, above which it is no duration that Go can hold."""


def duration_from_text(text: str) -> Duration | None:
    """None where it is none, or one that is too long."""
    sign, rest = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if rest == "0":
        return Duration(0)
    total, end = 0, 0
    while end < len(rest):
        part = _PART.match(rest, end)
        if part is None or not (part[1] or part[2]) or len(part[1]) > _LONGEST_NUMBER:
            return None
        unit = _UNITS[part[3]]
        fraction = (part[2] or "")[:_LONGEST_NUMBER]
        total += int(part[1] or 0) * unit
        total += int(fraction) * unit // 10 ** len(fraction) if fraction else 0
        end = part.end()
    total = -total if sign == "-" else total
    return Duration(total) if end and -(2**63) <= total < 2**63 else None


def duration_text(one: Duration) -> str:
    seconds, rest = divmod(abs(one), 10**9)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{'-' if one < 0 else ''}{seconds}{fraction}s"


def timestamp_from_text(text: str) -> Timestamp | None:
    """None where it is none that Go reads."""
    found = _RFC_3339.fullmatch(text)
    if found is None:
        return None
    try:
        whole = datetime.fromisoformat(f"{found[1]}T{found[2]}{found[4]}")
    except ValueError:
        return None
    nanoseconds = int((found[3] or "0")[:9].ljust(9, "0"))
    seconds = (whole - _EPOCH) // timedelta(seconds=1)
    return Timestamp(seconds * 10**9 + nanoseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def timestamp_text(one: Timestamp) -> str:
    seconds, rest = divmod(int(one), 10**9)
    moment = _EPOCH + timedelta(seconds=seconds)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}Z"


def _zone(name: str) -> tzinfo | Fault:
    if ":" in name:
        found = re.fullmatch(r"([+-]?)(\d+):(\d+)", name, re.ASCII)
        if found is None:
            return Fault(f'strconv.Atoi: parsing "{name}": invalid syntax')
        offset = timedelta(hours=int(found[2][:4]), minutes=int(found[3][:4]))
        return timezone(-offset if found[1] == "-" else offset)
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name or "UTC")
    except (ValueError, OSError, KeyError):
        return Fault(f"unknown time zone {name}")


def _part_of(read: Callable[[datetime], int]) -> Run:
    def run(_: Budget, moment: Value, zone: Value = "UTC") -> Value:
        if not isinstance(moment, Timestamp) or not isinstance(zone, str):
            return NO_OVERLOAD
        own = UTC if zone == "UTC" else _zone(zone)
        if isinstance(own, Fault):
            return own
        whole = _EPOCH + timedelta(microseconds=int(moment) // 1000)
        return read(whole.astimezone(own))

    return run


def _whole_units(unit: int) -> Run:
    def run(_: Budget, one: Value) -> Value:
        assert isinstance(one, int)
        return abs(one) // unit * (-1 if one < 0 else 1)

    return run


def _getter(name: str, word: str, read: Callable[[datetime], int], *, unit: int = 0, tz: str = "_with_tz") -> Function:
    run = _part_of(read)
    overloads = [
        Overload(id=f"timestamp_to_{word}", arguments=(TIMESTAMP,), result=INT, is_member=True, run=run),
        Overload(id=f"timestamp_to_{word}{tz}", arguments=(TIMESTAMP, STRING), result=INT, is_member=True, run=run),
    ]
    if unit:
        of_duration = _whole_units(unit)
        overloads.append(
            Overload(id=f"duration_to_{word}", arguments=(DURATION,), result=INT, is_member=True, run=of_duration)
        )
    return Function(name=name, overloads=tuple(overloads))


FUNCTIONS = (
    _getter("getFullYear", "year", lambda moment: moment.year),
    _getter("getMonth", "month", lambda moment: moment.month - 1),
    _getter("getDayOfYear", "day_of_year", lambda moment: moment.timetuple().tm_yday - 1),
    _getter("getDayOfMonth", "day_of_month", lambda moment: moment.day - 1),
    _getter("getDate", "day_of_month_1_based", lambda moment: moment.day),
    _getter("getDayOfWeek", "day_of_week", lambda moment: moment.isoweekday() % 7),
    _getter("getHours", "hours", lambda moment: moment.hour, unit=3600 * 10**9),
    _getter("getMinutes", "minutes", lambda moment: moment.minute, unit=60 * 10**9),
    _getter("getSeconds", "seconds", lambda moment: moment.second, unit=10**9, tz="_tz"),
    _getter("getMilliseconds", "milliseconds", lambda moment: moment.microsecond // 1000, unit=10**6),
)
