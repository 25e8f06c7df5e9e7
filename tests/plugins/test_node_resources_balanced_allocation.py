"""NodeResourcesBalancedAllocation: scores, and columns compared with a reference for one node."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.framework.interface import CycleState
from kschedx.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tests.builders import Manifest, framework, node, only, pod

NAME = "NodeResourcesBalancedAllocation"
GPU = "example.com/gpu"
NODE = {"cpu": "4", "memory": "8Gi", GPU: "4", "pods": "10"}


def requesting(name: str, requests: Mapping[str, str], on: str | None = None) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": dict(requests)}}])


def skip_and_scores(
    requests: Mapping[str, str],
    nodes: Sequence[tuple[Mapping[str, str], Mapping[str, str]]],
    resources: Sequence[str] = ("cpu", "memory"),
) -> tuple[bool, list[int]]:
    """Return whether PreScore skips the pod, and the scores of nodes with this allocatable and these requests."""
    objects = [requesting("new", requests)]
    for i, (offer, running) in enumerate(nodes):
        objects += [node(f"n{i}", allocatable=offer), requesting(f"p{i}", running, on=f"n{i}")]
    args = {"resources": [{"name": name, "weight": 1} for name in resources]}
    work = framework(objects, only(NAME, args))
    plugin = work.plugins("score", NodeResourcesBalancedAllocation)[0]
    incoming = work.snapshot.pods[0]
    skipped = plugin.pre_score(CycleState(), incoming, work.nodes).is_skip
    return skipped, cast(list[int], plugin.score(CycleState(), incoming, work.nodes).tolist())


@pytest.mark.parametrize(
    ("requests", "running", "resources", "score"),
    [
        # balanced before and after, a difference of 1/2 after, a difference of 1/2 before
        ({"cpu": "1", "memory": "2Gi"}, {}, ("cpu", "memory"), 75),
        ({"cpu": "2"}, {}, ("cpu", "memory"), 62),
        ({"memory": "4Gi"}, {"cpu": "2"}, ("cpu", "memory"), 87),
        # pods without requests count as 0
        ({"cpu": "1", "memory": "2Gi"}, {"cpu": "0"}, ("cpu", "memory"), 75),
        # requests above allocatable count as all
        ({"cpu": "8", "memory": "8Gi"}, {}, ("cpu", "memory"), 75),
        # a single resource is always balanced; an extended resource counts if requested
        ({"cpu": "2"}, {}, ("cpu",), 75),
        ({"cpu": "2"}, {}, ("cpu", GPU), 75),
        ({"cpu": "2", GPU: "4"}, {}, ("cpu", GPU), 62),
        # 0, 0 and 1: the deviation is the square root of 2/9
        ({GPU: "4"}, {}, ("cpu", "memory", GPU), 50 + (50 + int((1 - math.sqrt(2 / 9)) * 100) - 100) // 2),
    ],
)
def test_scores(requests: Mapping[str, str], running: Mapping[str, str], resources: Sequence[str], score: int) -> None:
    assert skip_and_scores(requests, [(NODE, running)], resources) == (False, [score])


def test_an_overflowing_capacity_rounds_towards_zero() -> None:
    # the capacity is -1000 milli-CPUs: the balance falls from 100 to 25
    offers = {"cpu": str(2**63 - 1), "memory": "8Gi", "pods": "10"}
    assert skip_and_scores({"cpu": "1500m"}, [(offers, {})]) == (False, [38])


@pytest.mark.parametrize("requests", [{}, {"cpu": "0"}, {"ephemeral-storage": "1Gi"}])
def test_a_pod_without_requests_of_the_resources_is_skipped(requests: Mapping[str, str]) -> None:
    assert skip_and_scores(requests, [(NODE, {"cpu": "2"})]) == (True, [0])


RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU)
AMOUNT = st.integers(0, 40)


def quantities(amounts: Sequence[int]) -> dict[str, str]:
    return {name: f"{n}m" if name == "cpu" else str(n) for name, n in zip(RESOURCES, amounts, strict=True)}


def reference(offer: Sequence[int], running: Sequence[int], request: Sequence[int]) -> int:
    """Return the score by the formula for one node, resource by resource."""
    counted = [i for i in range(len(RESOURCES)) if offer[i] and (RESOURCES[i] != GPU or request[i])]

    def balance(used: Sequence[int]) -> int:
        fractions = [min(used[i] / offer[i], 1.0) for i in counted]
        if len(fractions) < 2:
            return 100
        if len(fractions) == 2:
            return int((1 - abs((fractions[0] - fractions[1]) / 2)) * 100)
        total = squares = 0.0
        for fraction in fractions:
            total += fraction
        for fraction in fractions:
            squares += (fraction - total / len(fractions)) ** 2
        return int((1 - math.sqrt(squares / len(fractions))) * 100)

    after = balance([a + b for a, b in zip(running, request, strict=True)])
    return 50 + (50 + after - balance(running)) // 2


AMOUNTS = st.tuples(AMOUNT, AMOUNT, AMOUNT, AMOUNT)


@given(request=AMOUNTS.filter(any), nodes=st.lists(st.tuples(AMOUNTS, AMOUNTS), min_size=1, max_size=4))
def test_scores_equal_the_reference_of_each_node(
    request: tuple[int, ...], nodes: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    manifests = [(quantities(offer), quantities(running)) for offer, running in nodes]
    expected = [reference(offer, running, request) for offer, running in nodes]
    assert skip_and_scores(quantities(request), manifests, RESOURCES) == (False, expected)
