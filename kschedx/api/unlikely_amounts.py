"""Amounts with a suffix that is hardly meant: `500M` of cpu are 500 million processors, `128m` of memory a tenth of a
byte. An API server takes them."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from kschedx.api.quantity import parse_quantity
from kschedx.api.types import PodSpec
from kschedx.errors import InputError

MOST_CPUS = 10_000
"""No machine has as many."""
LEAST_BYTES = 1_000_000
"""No container runs in less."""


FAR_TOO_MUCH = 10
"""Times what the largest node has, from which another suffix was probably meant."""
_ONE_LESS = {"Gi": "Mi", "Ti": "Gi", "G": "M", "T": "G"}


class UnlikelyQuantity(Struct, frozen=True, kw_only=True):
    container: str
    resource: str
    written: str
    is_really: int
    """Whole processors or bytes."""
    meant: str


def unlikely_quantities(spec: PodSpec) -> Iterator[UnlikelyQuantity]:
    """Each amount of a container, the same one for a request and its limit once."""
    told: set[tuple[str, str, str]] = set()
    for container in (*spec.init_containers, *spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            for resource, amount in amounts.items():
                written = str(amount)
                meant = likely_quantity(resource, written)
                if meant and (container.name, resource, written) not in told:
                    told.add((container.name, resource, written))
                    yield UnlikelyQuantity(
                        container=container.name,
                        resource=resource,
                        written=written,
                        is_really=parse_quantity(written).milli_value() // 1000,
                        meant=meant,
                    )


def far_too_much(spec: PodSpec, resource: str, largest: int) -> Iterator[UnlikelyQuantity]:
    """Amounts of cpu or memory that no node comes near, `512Gi` where the largest has 16Gi. `largest` is what one has,
    in milli-units of cpu and bytes."""
    told: set[tuple[str, str]] = set()
    for container in (*spec.init_containers, *spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            written = str(amounts.get(resource, ""))
            meant = _one_suffix_less(resource, written)
            if not meant or (container.name, written) in told:
                continue
            milli = parse_quantity(written).milli_value()
            if (milli if resource == "cpu" else milli // 1000) >= FAR_TOO_MUCH * largest > 0:
                told.add((container.name, written))
                yield UnlikelyQuantity(
                    container=container.name,
                    resource=resource,
                    written=written,
                    is_really=milli // 1000,
                    meant=meant,
                )


def _one_suffix_less(resource: str, written: str) -> str:
    """Empty where the amount is one that people do ask for."""
    number = written.rstrip("GTi")
    suffix = written[len(number) :]
    is_large = number.isascii() and number.isdigit() and int(number) >= 100
    if resource == "cpu":
        return f"{number}m" if is_large and not suffix else ""
    if resource != "memory" or not (is_large or suffix.startswith("T")):
        return ""
    return f"{number}{_ONE_LESS[suffix]}" if suffix in _ONE_LESS else ""


def likely_quantity(resource: str, written: str) -> str | None:
    """What was probably meant; None for an amount that is likely as it is."""
    number = written.rstrip("kKMGTPEmi")
    suffix = written[len(number) :]
    try:
        milli = parse_quantity(written).milli_value()
    except InputError:
        return None
    if resource == "cpu" and milli > MOST_CPUS * 1000 and suffix:
        return f"{number}m"
    if resource in ("memory", "ephemeral-storage") and 0 < milli < LEAST_BYTES * 1000:
        if suffix == "m":
            return f"{number}Mi"
        if not suffix and milli < 100_000 * 1000:
            return f"{number}Mi"
    return None
