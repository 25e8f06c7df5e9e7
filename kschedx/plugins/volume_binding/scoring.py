"""The score of a node from how much of its storage the pod's claims take (scorer.go)."""

from __future__ import annotations

import math
from collections.abc import Sequence

from kschedx.api.integers import truncated_quotient
from kschedx.framework.args import UtilizationShapePoint
from kschedx.plugins.shape_score import shape_score
from kschedx.plugins.volume_binding.binding import Binding
from kschedx.snapshot.rows import ClusterRow

_FULL = 100


def score(binding: Binding, node: ClusterRow, shape: Sequence[UtilizationShapePoint], *, with_provisions: bool) -> int:
    """0..100, the mean over storage classes: of the volumes to bind, or `with_provisions` of those to make where there
    are none to bind."""
    classes: dict[str, tuple[int, int]] = {}
    bindings = binding.bindings(node)
    for claim, volume in bindings:
        requested, capacity = classes.get(volume.spec.storage_class_name, (0, 0))
        total = requested + claim.size_in_bytes, capacity + volume.size_in_bytes
        classes[volume.spec.storage_class_name] = total
    for one in binding.provisions(node) if with_provisions and not bindings else ():
        position = int(one.capacity[node])
        if position < 0:
            continue
        name = one.claim.spec.storage_class_name or ""
        # the claims of a class share what the node has, so the capacity is not added up
        requested = classes.get(name, (0, 0))[0]
        classes[name] = requested + one.claim.size_in_bytes, one.capacities[position].free
    if not classes:
        return 0
    scores = [shape_score(shape, _utilization(*amounts)) for amounts in classes.values()]
    return math.floor(sum(scores) / len(scores) + 0.5)


def _utilization(requested: int, capacity: int) -> int:
    """Percent; full where there is no capacity or not enough of it."""
    if capacity == 0 or requested > capacity:
        return _FULL
    return truncated_quotient(requested * _FULL, capacity)
