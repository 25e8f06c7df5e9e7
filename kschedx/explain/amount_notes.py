"""Notes on amounts that are hardly meant."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.types import Pod
from kschedx.api.unlikely_amounts import unlikely_quantities
from kschedx.explain.notes.question import UnlikelyAmount


def amount_notes(pod: Pod) -> Iterator[UnlikelyAmount]:
    for one in unlikely_quantities(pod.spec):
        yield UnlikelyAmount(
            container=one.container,
            resource=one.resource,
            amount=one.written,
            is_really=one.is_really,
            meant=one.meant,
        )
