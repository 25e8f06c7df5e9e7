"""Scores of a NUMA node for what a pod or a container asks for (least_allocated.go, most_allocated.go,
balanced_allocation.go, scoreForEachNUMANode)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kschedx.api.integers import MIN_INT64
from kschedx.errors import UndecidableError
from kschedx.framework.outcome import MAX_NODE_SCORE
from kschedx.plugins.node_resource_topology_match.numa import Amounts, Numa

LEAST_ALLOCATED = "LeastAllocated"
NANO = 10**9

Weights = Mapping[str, int]
"""A resource that is not named weighs 1."""


def over_zones(strategy: str, asked: Amounts, numas: Sequence[Numa], weights: Weights, node: str) -> int:
    """The lowest score of a NUMA node that it fits at all (that has more than 0)."""
    if not asked and numas:
        raise _panics(node, "divides by the number of resources that a container requests, which is 0")
    wrong = next((numa.id for numa in numas if numa.id >= len(numas)), None)
    if wrong is not None:
        raise _panics(node, f"keeps {len(numas)} scores and looks for the one of NUMA node {wrong}")
    scores = [STRATEGIES[strategy](asked, numa.available, weights) for numa in numas]
    return min((score for score in scores if score), default=0)


def _panics(node: str, why: str) -> UndecidableError:
    return UndecidableError(f"node {node}: kube-scheduler panics in NodeResourceTopologyMatch, which {why}")


def mean(scores: Sequence[int]) -> int:
    return int(float(sum(scores)) / len(scores))


def _by_weight(share: Callable[[int, int], int]) -> Callable[[Amounts, Amounts, Weights], int]:
    def score(asked: Amounts, available: Amounts, weights: Weights) -> int:
        total = 0
        for name, amount in asked.items():
            there = available.get(name, 0)
            fits = there != 0 and amount <= there
            total += weights.get(name, 1) * (share(_units(amount), _units(there)) if fits else 0)
        return total // sum(weights.get(name, 1) for name in asked)

    return score


def _balanced(asked: Amounts, available: Amounts, weights: Weights) -> int:
    """The closer to each other the shares of all resources are, the better."""
    there = {name: _units(available.get(name, 0)) for name in asked}
    shares = [_units(asked[name]) / there[name] if there[name] else 1.0 for name in sorted(asked)]
    if max(shares) > 1:
        return 0
    if len(shares) == 1:
        return MIN_INT64  # the variance of one number is none, which Go makes this of
    middle = sum(shares) / len(shares)
    apart = [share - middle for share in shares]
    variance = (sum(one * one for one in apart) - sum(apart) * sum(apart) / len(shares)) / (len(shares) - 1)
    return int((1 - variance) * MAX_NODE_SCORE)


def _units(nano: int) -> int:
    """Rounded up, as Quantity.Value."""
    return -(-nano // NANO)


STRATEGIES: Mapping[str, Callable[[Amounts, Amounts, Weights], int]] = {
    LEAST_ALLOCATED: _by_weight(lambda asked, there: (there - asked) * MAX_NODE_SCORE // there),
    "MostAllocated": _by_weight(lambda asked, there: asked * MAX_NODE_SCORE // there),
    "BalancedAllocation": _balanced,
}
