"""`--fastpath-binpacking-enabled`: which kind of pods is packed by arithmetic.

Upstream: determineBestPEGToFastpath in estimator/binpacking_estimator.go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from kschedx.api.quantity import ResourceList, parse_quantity
from kschedx.api.selectors import compile_selector
from kschedx.api.types import Node, Pod, PodAffinityTerm

_HOSTNAME = "kubernetes.io/hostname"


def best_for_fast_path(kinds: Sequence[tuple[Pod, int]], node: Node) -> int:
    """The kind, a pod and how many there are, that saves the most; the last of equal ones. -1 for none."""
    best, saved_by_best = -1, 0
    for index, (pod, count) in enumerate(kinds):
        nodes = max(
            count if _keeps_away_from_itself(pod) else 0,
            _nodes_for(pod, count, node, "cpu"),
            _nodes_for(pod, count, node, "memory"),
        )
        saved = count - count // nodes if nodes > 0 else 0
        if saved >= saved_by_best and _is_simple(pod):
            best, saved_by_best = index, saved
    return best


def _nodes_for(pod: Pod, count: int, node: Node, resource: str) -> int:
    """By the first container's request and the node's capacity."""
    requests: ResourceList = pod.spec.containers[0].resources.requests if pod.spec.containers else {}
    asked = _amount(requests, resource)
    there = _amount(node.status.capacity, resource)
    if there == 0:
        return 0
    return math.ceil(float(count) * asked / there)


def _amount(resources: ResourceList, name: str) -> float:
    if name not in resources:
        return 0.0
    quantity = parse_quantity(resources[name])
    return float(quantity.mantissa) * 10.0**quantity.exponent


def _anti_affinity(pod: Pod) -> tuple[PodAffinityTerm, ...]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    return affinity.pod_anti_affinity.required_during_scheduling_ignored_during_execution


def _keeps_away_from_itself(pod: Pod) -> bool:
    return any(
        term.topology_key == _HOSTNAME
        and term.label_selector is not None
        and compile_selector(term.label_selector).matches(pod.metadata.labels)
        for term in _anti_affinity(pod)
    )


def _is_simple(pod: Pod) -> bool:
    """What holds for one new node holds for the next one too."""
    if pod.spec.topology_spread_constraints:
        return False
    return all(term.topology_key == _HOSTNAME for term in _anti_affinity(pod))
