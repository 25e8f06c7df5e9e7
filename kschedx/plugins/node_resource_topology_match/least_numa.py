"""The strategy LeastNUMANodes: the fewer NUMA nodes a pod is spread over, and the closer they are, the better
(least_numa.go)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from kschedx.errors import UndecidableError
from kschedx.framework.outcome import MAX_NODE_SCORE, MIN_NODE_SCORE
from kschedx.plugins.node_resource_topology_match.numa import Amounts, Numa

LARGEST = 16
"""Of so many NUMA nodes all sets can be tried."""
FARTHEST = 255
"""Unknown distances count as this."""

Chosen = tuple[int, ...]
"""Places in the list of NUMA nodes."""


def least_numa(asked: Sequence[Amounts], numas: Sequence[Numa], max_numa_nodes: int) -> int:
    """Requests are served one after the other; the one that is spread most counts."""
    if len(numas) > LARGEST:
        raise UndecidableError(f"a node has {len(numas)} NUMA nodes: LeastNUMANodes tries each set of them")
    most, are_close = 0, True
    for request in asked:
        if not any(name in numa.available for name in request for numa in numas):
            continue
        chosen, is_close = _required(numas, request)
        if chosen is None:
            return MIN_NODE_SCORE
        most, are_close = max(most, len({numas[place].id for place in chosen})), are_close and is_close
        if len(asked) > 1:
            _take(numas, chosen, request)
    if not most:
        return MAX_NODE_SCORE
    step = MAX_NODE_SCORE // max_numa_nodes
    return MAX_NODE_SCORE - most * step + (step // 2 if are_close else 0)


def _required(numas: Sequence[Numa], request: Amounts) -> tuple[Chosen | None, bool]:
    """The fewest NUMA nodes that hold a request together, and whether none of so many are closer to each other."""
    for count in range(1, len(numas) + 1):
        every = list(combinations(range(len(numas)), count))
        distances = [_distance(numas, chosen) for chosen in every]
        closest = min([np.float32(FARTHEST), *distances])
        fitting = [
            (far, chosen) for far, chosen in zip(distances, every, strict=True) if _holds(numas, chosen, request)
        ]
        if fitting:
            far, chosen = min(fitting, key=lambda found: found[0])
            return chosen, bool(far == closest)
    return None, False


def _distance(numas: Sequence[Numa], chosen: Chosen) -> np.float32:
    """On average, to each other and themselves."""
    total = sum(numas[one].distances.get(numas[other].id, FARTHEST) for one in chosen for other in chosen)
    return np.float32(total) / np.float32(len(chosen) * len(chosen))


def _holds(numas: Sequence[Numa], chosen: Chosen, request: Amounts) -> bool:
    return all(
        all(name in numas[place].available for place in chosen)
        and (not amount or sum(numas[place].available[name] for place in chosen) >= amount)
        for name, amount in request.items()
    )


def _take(numas: Sequence[Numa], chosen: Chosen, request: Amounts) -> None:
    """What one container gets is not there for the next. The NUMA node of id n is taken to be the n-th in the list."""
    for name, amount in request.items():
        missing = amount
        for place in sorted({numas[place].id for place in chosen}):
            if place >= len(numas):
                raise UndecidableError(
                    f"kube-scheduler panics in NodeResourceTopologyMatch, which looks for NUMA node {place} among "
                    f"{len(numas)}"
                )
            available = numas[place].available
            if name in available and missing:
                taken = min(missing, available[name])
                missing -= taken
                available[name] -= taken
