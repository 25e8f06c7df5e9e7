"""Numbers of pods, and percentages of them.

Upstream: ValidatePositiveIntOrPercent and IsNotMoreThan100Percent in pkg/apis/apps/validation.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kschedx.api.field_errors import as_json, invalid
from kschedx.errors import InputError

NEGATIVE = "must be greater than or equal to 0"
_PERCENT = re.compile(r"[0-9]+%")
_NO_PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
    "validation is '[0-9]+%')"
)
_MORE_THAN_ALL = re.compile(r"0*+(?!100%)[1-9][0-9]{2,}+%")
_SOME = re.compile(r"0*+[1-9][0-9]*+%|[+-]?0*+[1-9][0-9]*+")


def validate_share(share: object, field: str) -> Iterator[InputError]:
    if isinstance(share, str) and not _PERCENT.fullmatch(share):
        yield invalid(field, as_json(share), _NO_PERCENT)
    elif isinstance(share, int) and share < 0:
        yield invalid(field, str(share), NEGATIVE)


def at_most_all(share: object, field: str) -> Iterator[InputError]:
    if isinstance(share, str) and _MORE_THAN_ALL.fullmatch(share):
        yield invalid(field, as_json(share), "must not be greater than 100%")


def is_zero(share: object) -> bool:
    """Go reads a text that is no number as 0."""
    return not share if isinstance(share, int) else not _SOME.fullmatch(str(share))
