"""Numbers as a reader wants them: quantities in one unit, thousands separated, singular and plural."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kschedx.api.quantity import Unit, format_quantities

_MEBI = 2**20
_LONGEST = 5
"""Digits that a number may have in its exact unit; 15075324Ki helps nobody at night."""


class Balance(Struct, frozen=True, kw_only=True):
    """One resource on one node, all amounts in one unit, so that the sums can be checked by eye."""

    asks: str
    offers: str
    allocatable: str
    used: str
    short_by: str
    rounded: bool
    """To Mi: what is asked upwards, what is left downwards, so that nothing looks as if it fitted."""

    numbers: tuple[int, ...]

    def alike(self, resource: str, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """Further amounts of the resource, in the same unit where they are whole in it."""
        if self.rounded:
            return tuple(_mebi(-(-number // _MEBI)) for number in numbers)
        unit = Unit.of(resource)
        return tuple(format_quantities((number, *self.numbers), unit)[0] for number in numbers)


def balance(resource: str, *, asks: int, allocatable: int, used: int) -> Balance:
    """What a pod asks of a node against what it has left."""
    free = allocatable - used
    unit = Unit.of(resource)
    numbers = (asks, free, allocatable, used, asks - free)
    texts = format_quantities(numbers, unit)
    rounded = unit is Unit.BYTE and any(len(text.strip("-KMGTPEikm")) > _LONGEST for text in texts)
    if rounded:
        asked, left, offered = -(-asks // _MEBI), free // _MEBI, allocatable // _MEBI
        texts = tuple(_mebi(number) for number in (asked, left, offered, offered - left, asked - left))
    return Balance(
        asks=texts[0],
        offers=texts[1],
        allocatable=texts[2],
        used=texts[3],
        short_by=texts[4],
        rounded=rounded,
        numbers=numbers,
    )


def amount(resource: str, number: int) -> str:
    """One amount of a resource, memory rounded to Mi where its exact text is long."""
    return amounts(resource, (number,))[0]


def amounts(resource: str, numbers: Iterable[int]) -> tuple[str, ...]:
    """Several amounts, each in the unit that suits it."""
    return tuple(_amount(Unit.of(resource), number) for number in numbers)


def _amount(unit: Unit, number: int) -> str:
    text = format_quantities((number,), unit)[0]
    if unit is Unit.BYTE and len(text.strip("-KMGTPEikm")) > _LONGEST:
        return _mebi(round(number / _MEBI))
    return text


def _mebi(number: int) -> str:
    return f"{number}Mi" if number else "0"


def count(number: int, noun: str, plural: str = "") -> str:
    """`1 node`, `1,640 nodes`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def listed(names: Iterable[str], limit: int, total: int | None = None, *, conjunction: str = "") -> str:
    """`a, b, c and 4 more`: the first `limit` names; `total` counts them where `names` is already cut short."""
    known = list(names)
    total = len(known) if total is None else total
    shown = known[:limit]
    if total > len(shown):
        return f"{', '.join(shown)} and {total - len(shown):,} more" if shown else f"{total:,} more"
    if conjunction and len(shown) > 1:
        return f"{', '.join(shown[:-1])} {conjunction} {shown[-1]}"
    return ", ".join(shown)
