"""Go's fixed-width integers: bounds, wrap-around, truncating division and `strconv.ParseInt`."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1
MIN_INT64 = -(2**63)

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=MIN_INT64, le=MAX_INT64)]
"""The types of fields that Go would refuse a larger number for."""

_INTEGER = re.compile(r"([+-]?)(?=[0-9])0*+([0-9]*+)")


def wrap_int32(number: int) -> int:
    """The low 32 bits, read as an int32: what Go's conversion leaves of a larger integer."""
    return (number + 2**31) % 2**32 - 2**31


def wrap_int64(number: int) -> int:
    """The low 64 bits, read as an int64: what Go's arithmetic leaves of an overflow."""
    return (number + 2**63) % 2**64 - 2**63


def truncated_quotient(dividend: int, divisor: int) -> int:
    """Go's `/`: the quotient without its fraction, so towards zero, where Python's `//` goes towards minus infinity."""
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def parse_int64(text: str) -> int | None:
    """`strconv.ParseInt(text, 10, 64)`, or None where that is an error.

    A sign and leading zeros are allowed; spaces, underscores, digits beyond ASCII and what is out of range are not.
    """
    found = _INTEGER.fullmatch(text)
    if found is None or len(found[2]) > len(str(MAX_INT64)):
        return None
    number = int(found[1] + (found[2] or "0"))
    return number if MIN_INT64 <= number <= MAX_INT64 else None
