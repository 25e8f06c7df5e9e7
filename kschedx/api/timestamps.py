"""Times as the API writes them: RFC 3339, with or without a fraction of a second."""

from __future__ import annotations

import re
from datetime import datetime

from kschedx.errors import InputError

_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:[.,](\d+))?(Z|[+-]\d\d:\d\d)", re.ASCII)
_SECOND = 1_000_000_000

LATEST = 2**63 - 1
"""Later than every time that is written."""


def nanoseconds(text: str) -> int:
    """Nanoseconds since 1970, within int64 and before `LATEST`. Raises `InputError` for anything but RFC 3339."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        raise InputError(f'"{text}" is not a time such as 2026-01-31T12:00:00Z')
    whole, fraction, zone = match.groups()
    try:
        # whole seconds of the years 1 to 9999 are exact as floats
        seconds = int(datetime.fromisoformat(whole + zone).timestamp())
    except (ValueError, OverflowError):
        raise InputError(f'"{text}" is not a time of the calendar') from None
    return max(-LATEST, min(seconds * _SECOND + int((fraction or "0")[:9].ljust(9, "0")), LATEST - 1))
