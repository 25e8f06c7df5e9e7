"""The texts of the autoscaler's events.

Upstream: processors/status/eventing_scale_up_processor.go, core/static_autoscaler.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kschedx.autoscaler.sizes import Resize

AT_MAX_NODES_TOTAL = "max total nodes in cluster reached"
CLUSTER_UNHEALTHY = "Warning ClusterUnhealthy: Cluster is unhealthy"
FILTERED_OUT = "expansion options filtered out and no longer considered"


def parts_of(reasons: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """What follows `pod didn't trigger scale-up: `, sorted; one entry of `reasons` for each group."""
    counts = Counter(reason for one in reasons for reason in one)
    return tuple(sorted(f"{count} {reason}" for reason, count in counts.items()))


def not_triggered(parts: Sequence[str]) -> str:
    return f"pod didn't trigger scale-up: {', '.join(parts)}"


def triggered(resizes: Sequence[Resize]) -> str:
    return f"pod triggered scale-up: [{' '.join(map(str, resizes))}]"


def max_nodes_total_reached(maximum: int) -> str:
    return f"Warning MaxNodesTotalReached: Max total nodes in cluster reached: {maximum}"


def is_same_event(theirs: str, ours: str) -> bool:
    """The parts of the text come in any order."""
    if theirs == ours:
        return True
    head, colon, rest = theirs.partition(": ")
    our_head, _, our_rest = ours.partition(": ")
    return bool(colon) and head == our_head and sorted(rest.split(", ")) == sorted(our_rest.split(", "))
