"""Schedules in cron's form, of CronJobs and of the disruption budgets of NodePools. Upstream: ParseStandard of
robfig/cron."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count

_SHORT = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_MONTHS = dict(zip(("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), count(1)))
_WEEKDAYS = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_FIELDS: tuple[tuple[int, int, Mapping[str, int]], ...] = (
    (0, 59, {}),
    (0, 23, {}),
    (1, 31, {}),
    (1, 12, _MONTHS),
    (0, 6, _WEEKDAYS),
)


def read_schedule(written: str) -> list[frozenset[int]]:
    """Parse minutes, hours, days, months, and weekdays. Raises `ValueError`."""
    fields = _SHORT.get(written, written).split()
    if len(fields) != len(_FIELDS):
        raise ValueError(written)
    return [
        frozenset(value for part in field.lower().split(",") for value in _read_field(part, *bounds))
        for field, bounds in zip(fields, _FIELDS, strict=True)
    ]


def _read_field(part: str, low: int, high: int, names: Mapping[str, int]) -> range:
    """Parse `*`, `5`, `1-5`, `mon-fri`, each with an optional `/2`."""

    def number(text: str) -> int:
        return names[text] if text in names else int(text)

    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span in ("*", "?"):
        start, end = low, high
    else:
        start = number(first)
        end = number(last) if dash else high if slash else start
    if not low <= start <= end <= high:
        raise ValueError(part)
    return range(start, end + 1, int(step) if slash else 1)


_EVERY_DAY = frozenset({"*", "?", "*/1", "?/1"})
_MOST_DAYS = {month: 29 if month == 2 else 30 if month in (4, 6, 9, 11) else 31 for month in range(1, 13)}


def is_never_due(written: str) -> bool:
    """Return whether no month of a schedule has one of its days, as in `0 0 31 2 *`. A schedule that lists weekdays as
    well, even all of them, is due on them too."""
    if written.startswith(("TZ=", "CRON_TZ=")):
        written = written.partition(" ")[2]
    try:
        _, _, days, months, _ = read_schedule(written)
    except ValueError:
        return False
    weekdays = written.split()[-1].split(",")
    lists_weekdays = _EVERY_DAY.isdisjoint(weekdays) and not written.startswith("@")
    return not lists_weekdays and min(days) > max(_MOST_DAYS[month] for month in months)
