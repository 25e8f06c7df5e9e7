"""Amounts with a suffix that is hardly meant: `500M` of cpu are 500 million processors, `128m` of memory a tenth of a
byte. An API server takes them."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.quantity import parse_quantity
from kschedx.api.types import Pod
from kschedx.errors import InputError
from kschedx.explain.notes.question import UnlikelyAmount

MOST_CPUS = 10_000
"""No machine has as many."""
LEAST_BYTES = 1_000_000
"""No container runs in less."""


def amount_notes(pod: Pod) -> Iterator[UnlikelyAmount]:
    """A note for each amount, the same one for a request and its limit once."""
    told: set[tuple[str, str, str]] = set()
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        for amounts in (container.resources.requests, container.resources.limits):
            for resource, written in amounts.items():
                amount = str(written)
                meant = _meant(resource, amount)
                if meant and (container.name, resource, amount) not in told:
                    told.add((container.name, resource, amount))
                    is_really, suggested = meant
                    yield UnlikelyAmount(
                        container=container.name,
                        resource=resource,
                        amount=amount,
                        is_really=is_really,
                        meant=suggested,
                    )


def _meant(resource: str, written: str) -> tuple[int, str] | None:
    """How many processors or bytes the amount is, and what was probably meant; None for a likely one."""
    number = written.rstrip("kKMGTPEmi")
    suffix = written[len(number) :]
    try:
        milli = parse_quantity(written).milli_value()
    except InputError:
        return None
    if resource == "cpu" and milli > MOST_CPUS * 1000 and suffix:
        return milli // 1000, f"{number}m"
    if resource in ("memory", "ephemeral-storage") and 0 < milli < LEAST_BYTES * 1000:
        if suffix == "m":
            return milli // 1000, f"{number}Mi"
        if not suffix and milli < 100_000 * 1000:
            return milli // 1000, f"{number}Mi"
    return None
