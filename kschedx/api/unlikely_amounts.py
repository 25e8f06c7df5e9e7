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
