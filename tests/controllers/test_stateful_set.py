"""Tables of what one sync of a StatefulSet's controller changes."""

from __future__ import annotations

import pytest

from kschedx.controllers.stateful_set import OrdinalPod, StatefulSetSpec, StatefulSetSync, blocking_ordinal, sync

READY, OLD = OrdinalPod(is_available=True), OrdinalPod(is_available=True, is_updated=False)
PENDING, BROKEN = OrdinalPod(is_available=False), OrdinalPod(is_available=False, is_updated=False)
GOING = OrdinalPod(is_available=True, is_terminating=True)


@pytest.mark.parametrize(
    ("spec", "pods", "step"),
    [
        (StatefulSetSpec(replicas=3), {}, StatefulSetSync(create=(0,))),
        (StatefulSetSpec(replicas=3), {0: PENDING}, StatefulSetSync()),
        (StatefulSetSpec(replicas=3), {0: READY}, StatefulSetSync(create=(1,))),
        (StatefulSetSpec(replicas=3, is_ordered=False), {1: PENDING}, StatefulSetSync(create=(0, 2))),
        (StatefulSetSpec(replicas=2, start=5), {5: READY}, StatefulSetSync(create=(6,))),
        (StatefulSetSpec(replicas=1), {0: READY, 1: READY, 2: READY}, StatefulSetSync(delete=(2,))),
        (StatefulSetSpec(replicas=1), {0: READY, 1: READY, 2: PENDING}, StatefulSetSync(delete=(2,))),
        (StatefulSetSpec(replicas=1), {0: READY, 1: PENDING, 2: PENDING}, StatefulSetSync()),
        (StatefulSetSpec(replicas=1), {0: PENDING, 1: READY}, StatefulSetSync()),
        (StatefulSetSpec(replicas=0, is_ordered=False), {0: READY, 1: PENDING}, StatefulSetSync(delete=(1, 0))),
        (StatefulSetSpec(replicas=3), {0: OLD, 1: OLD, 2: OLD}, StatefulSetSync(delete=(2,))),
        (StatefulSetSpec(replicas=3, partition=2), {0: OLD, 1: OLD, 2: READY}, StatefulSetSync()),
        (StatefulSetSpec(replicas=3, start=5, partition=2), {5: OLD, 6: OLD, 7: OLD}, StatefulSetSync(delete=(7,))),
        (StatefulSetSpec(replicas=3, is_on_delete=True), {0: OLD, 1: OLD, 2: OLD}, StatefulSetSync()),
        (StatefulSetSpec(replicas=2), {0: OLD, 1: BROKEN}, StatefulSetSync()),
        (StatefulSetSpec(replicas=2, is_ordered=False), {0: OLD, 1: BROKEN}, StatefulSetSync(delete=(1,))),
        (StatefulSetSpec(replicas=3, is_ordered=False), {0: OLD, 1: OLD, 2: PENDING}, StatefulSetSync()),
        (StatefulSetSpec(replicas=3, max_unavailable=2), {0: OLD, 1: OLD, 2: OLD}, StatefulSetSync(delete=(2, 1))),
        (StatefulSetSpec(replicas=3), {0: GOING, 1: OLD, 2: OLD}, StatefulSetSync()),
        (StatefulSetSpec(replicas=0), {0: GOING, 1: PENDING}, StatefulSetSync()),
        (StatefulSetSpec(replicas=3, is_ordered=False), {0: OLD, 2: OLD}, StatefulSetSync(create=(1,), delete=(2,))),
        (StatefulSetSpec(replicas=3, is_ordered=False), {0: OLD, 1: OLD}, StatefulSetSync(create=(2,))),
        (StatefulSetSpec(replicas=1, is_ordered=False), {0: OLD, 1: OLD}, StatefulSetSync(delete=(1, 0))),
        (
            StatefulSetSpec(replicas=3, is_ordered=False, max_unavailable=2),
            {0: OLD, 2: OLD},
            StatefulSetSync(create=(1,), delete=(2,)),
        ),
    ],
    ids=[
        "the first",
        "waits for it",
        "the second",
        "Parallel creates all",
        "another first ordinal",
        "scale down",
        "scale down past a pending pod",
        "scale down waits",
        "scale down waits for a lower ordinal",
        "Parallel deletes all",
        "update from the highest",
        "partition",
        "partition counts from 0",
        "OnDelete",
        "a broken pod blocks OrderedReady",
        "a broken pod is replaced in Parallel",
        "a pending new pod blocks",
        "maxUnavailable",
        "a terminating pod blocks",
        "scale down waits for a lower terminating pod",
        "Parallel creates and updates at once",
        "Parallel updates no pod below one that it creates",
        "Parallel deletes and updates at once",
        "a created pod is unavailable",
    ],
)
def test_one_sync(spec: StatefulSetSpec, pods: dict[int, OrdinalPod], step: StatefulSetSync) -> None:
    assert sync(spec, pods) == step


def test_the_ordinal_that_blocks_the_next() -> None:
    spec = StatefulSetSpec(replicas=4)
    assert blocking_ordinal(spec, {0: READY, 1: PENDING}, 3) == 1
    assert blocking_ordinal(spec, {0: READY}, 3) == 1
    assert blocking_ordinal(spec, {0: READY}, 1) is None
    assert blocking_ordinal(StatefulSetSpec(replicas=4, is_ordered=False), {}, 3) is None
