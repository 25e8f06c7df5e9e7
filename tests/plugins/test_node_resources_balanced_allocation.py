"""NodeResourcesBalancedAllocation: figures, and columns against a reference for one node."""

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


def asking(name: str, requests: Mapping[str, str], on: str | None = None) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": dict(requests)}}])


def balanced(
    requests: Mapping[str, str],
    nodes: Sequence[tuple[Mapping[str, str], Mapping[str, str]]],
    resources: Sequence[str] = ("cpu", "memory"),
) -> tuple[bool, list[int]]:
    """Whether PreScore skips the pod, and the score of each node; a node is its allocatable and what it runs."""
    objects = [asking("new", requests)]
    for i, (offer, running) in enumerate(nodes):
        objects += [node(f"n{i}", allocatable=offer), asking(f"p{i}", running, on=f"n{i}")]
    args = {"resources": [{"name": name, "weight": 1} for name in resources]}
    work = framework(objects, only(NAME, args))
    plugin = work.plugins("score", NodeResourcesBalancedAllocation)[0]
    incoming = work.snapshot.pods[0]
    skipped = plugin.pre_score(CycleState(), incoming, work.nodes).is_skip
    return skipped, cast(list[int], plugin.score(CycleState(), incoming, work.nodes).tolist())


@pytest.mark.parametrize(
    ("requests", "running", "resources", "score"),
    [
        # from even to even, from even to a difference of 1/2, and back
        ({"cpu": "1", "memory": "2Gi"}, {}, ("cpu", "memory"), 75),
        ({"cpu": "2"}, {}, ("cpu", "memory"), 62),
        ({"memory": "4Gi"}, {"cpu": "2"}, ("cpu", "memory"), 87),
        # pods without requests count as nothing here
        ({"cpu": "1", "memory": "2Gi"}, {"cpu": "0"}, ("cpu", "memory"), 75),
        # more than all is all
        ({"cpu": "8", "memory": "8Gi"}, {}, ("cpu", "memory"), 75),
        # one resource alone is always balanced; an extended one counts where the pod asks for it
        ({"cpu": "2"}, {}, ("cpu",), 75),
        ({"cpu": "2"}, {}, ("cpu", GPU), 75),
        ({"cpu": "2", GPU: "4"}, {}, ("cpu", GPU), 62),
        # 0, 0 and 1: the deviation is the square root of 2/9
        ({GPU: "4"}, {}, ("cpu", "memory", GPU), 50 + (50 + int((1 - math.sqrt(2 / 9)) * 100) - 100) // 2),
    ],
)
def test_score(requests: Mapping[str, str], running: Mapping[str, str], resources: Sequence[str], score: int) -> None:
    assert balanced(requests, [(NODE, running)], resources) == (False, [score])


def test_a_capacity_that_overflows_is_rounded_towards_zero() -> None:
    # the capacity is -1000 milli-CPUs: the balance falls from 100 to 25
    offers = {"cpu": str(2**63 - 1), "memory": "8Gi", "pods": "10"}
    assert balanced({"cpu": "1500m"}, [(offers, {})]) == (False, [38])


@pytest.mark.parametrize("requests", [{}, {"cpu": "0"}, {"ephemeral-storage": "1Gi"}])
def test_a_pod_that_asks_for_none_of_the_resources_is_skipped(requests: Mapping[str, str]) -> None:
    assert balanced(requests, [(NODE, {"cpu": "2"})]) == (True, [0])


RESOURCES = ("cpu", "memory", "ephemeral-storage", GPU)
AMOUNT = st.integers(0, 40)


def written(amounts: Sequence[int]) -> dict[str, str]:
    return {name: f"{n}m" if name == "cpu" else str(n) for name, n in zip(RESOURCES, amounts, strict=True)}


def reference(offer: Sequence[int], running: Sequence[int], request: Sequence[int]) -> int:
    """The formula for one node, resource by resource."""
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
def test_every_node_is_scored_as_if_it_were_alone(
    request: tuple[int, ...], nodes: list[tuple[tuple[int, ...], tuple[int, ...]]]
) -> None:
    manifests = [(written(offer), written(running)) for offer, running in nodes]
    expected = [reference(offer, running, request) for offer, running in nodes]
    assert balanced(written(request), manifests, RESOURCES) == (False, expected)
