"""Amounts as Kueue counts them: cpu in milli, everything else in units, all int64; `UNLIMITED` stays unlimited.

Upstream: pkg/resources (amount.go, requests.go, slice_requests.go, resource_formatter.go).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from kschedx.kube.names import CPU
from kschedx.kube.quantity import Unit, Written, format_quantity, parse_quantity
from kschedx.kube.resources import exact_nano_units
from kschedx.kube.scalars import MAX_INT64, MIN_INT64

UNLIMITED = MAX_INT64

Requests = dict[str, int]
"""Resource name to amount."""


class FlavorResource(NamedTuple):
    flavor: str
    resource: str


Usage = dict[FlavorResource, int]


def plus(left: int, right: int) -> int:
    if UNLIMITED in (left, right):
        return UNLIMITED
    return _saturated(left + right)


def minus(left: int, right: int) -> int:
    """Subtract; unlimited minus unlimited is 0."""
    if left == UNLIMITED:
        return 0 if right == UNLIMITED else UNLIMITED
    return MIN_INT64 if right == UNLIMITED else _saturated(left - right)


def _saturated(amount: int) -> int:
    return max(MIN_INT64, min(amount, MAX_INT64))


def divided(amount: int, by: int) -> int:
    """Divide as Go does; 0 divided by 0 is 0."""
    if by == 0:
        return 0
    return math.trunc(Fraction(amount, by))


def times(requests: Mapping[str, int], factor: int) -> Requests:
    return {name: _saturated(amount * factor) for name, amount in requests.items()}


def added(left: Mapping[str, int], right: Mapping[str, int]) -> Requests:
    total = dict(left)
    for name, amount in right.items():
        total[name] = _saturated(total.get(name, 0) + amount)
    return total


def amount_of(resource: str, exact: Fraction) -> int:
    """Return the int64 of an exact amount in units, rounded away from zero."""
    scaled = exact * 1000 if resource == CPU else exact
    return _saturated(math.ceil(scaled) if scaled >= 0 else math.floor(scaled))


def exact(written: Written) -> Fraction:
    return Fraction(exact_nano_units(parse_quantity(written)), 10**9)


def quota_amount(resource: str, written: Written) -> int:
    """Return a quota; values beyond int64 are unlimited."""
    scaled = exact(written) * (1000 if resource == CPU else 1)
    return UNLIMITED if scaled >= UNLIMITED else amount_of(resource, exact(written))


def shown(resource: str, amount: int) -> str:
    """Format as Kueue does: `500m`, `2Gi`, `<unlimited>`."""
    if amount == UNLIMITED:
        return "<unlimited>"
    if resource == CPU:
        return f"{amount // 1000}" if amount % 1000 == 0 else f"{amount}m"
    if Unit.of(resource) is Unit.BYTE and resource != "storage":
        return _in_binary(amount)
    return str(amount)


def _in_binary(amount: int) -> str:
    """Format bytes in the largest binary unit that keeps a whole number; below 1024 without a unit."""
    if abs(amount) < 1024:
        return str(amount)
    for power, suffix in ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if amount % 2**power == 0:
            return f"{amount >> power}{suffix}"
    return str(amount)


def displayed(resource: str, amount: int) -> str:
    """Format for screens, as kubectl prints it."""
    return "unlimited" if amount == UNLIMITED else format_quantity(amount, Unit.of(resource))


@lru_cache(maxsize=1024)
def _hash(name: str) -> int:
    """FNV-1a of 64 bits."""
    digest = 0xCBF29CE484222325
    for byte in name.encode():
        digest = ((digest ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return digest


def in_order(names: Iterable[str]) -> list[str]:
    """Sort resources as Kueue iterates them: by the hash of their names."""
    return sorted(names, key=lambda name: (_hash(name), name))


def count_in(requests: Mapping[str, int], capacity: Mapping[str, int]) -> tuple[int, str]:
    """Return how many pods with these requests fit, and the resource that limits them."""
    most = 2**31 - 1
    counts = [
        (most if amount == 0 else max(0, min(divided(capacity.get(name, 0), amount), most)), name)
        for name, amount in requests.items()
    ]
    return min(counts, default=(0, ""))
