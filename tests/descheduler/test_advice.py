"""The advised policy reaches its goal, and no other tried policy does with fewer evictions."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.descheduler.advice import PolicyAdvice, PolicyGoal, advise
from kschedx.descheduler.descheduling import deschedule
from kschedx.explain.setup import Setup
from tests.builders import Manifest
from tests.command import check_document
from tests.descheduler.clusters import NOW, budget, node, pod

NODES = [node(name) for name in ("a", "b", "c")]
UNBALANCED = [pod(f"p{number}", "a", owner=f"app-{number}", cpu="600m") for number in range(6)]
SPARSE = [pod(f"p{number}", name, owner=f"app-{number}", cpu="600m") for number, name in enumerate("aabbc")]


def advice_for(
    objects: list[Manifest], goal: PolicyGoal, target: int | None = None
) -> tuple[PolicyAdvice, kschedx.Snapshot, Setup]:
    snapshot = kschedx.Snapshot.from_objects(objects)
    setup = Setup.of_cluster(snapshot, kube_version="1.36")
    return advise(snapshot, setup, goal, target=target, now=NOW), snapshot, setup


@pytest.mark.parametrize("target", [None, 40, 60])
def test_the_advised_policy_has_the_reported_evictions(target: int | None) -> None:
    result, snapshot, setup = advice_for([*NODES, *UNBALANCED], PolicyGoal.BALANCE, target)
    chosen = result.chosen
    assert chosen is not None
    assert result.is_reached
    assert chosen.measure < result.before == 90
    assert result.to_dict()["chance"] == "which"  # the pods have equal requests
    candidates = [
        item
        for item in result.tried
        if item.evictions and item.is_harmless and item.measure <= (target or chosen.measure)
    ]
    assert chosen.evictions == min(item.evictions for item in candidates)
    result_of_policy = deschedule(snapshot, chosen.policy, now=NOW, setup=setup, rounds=3)
    assert sum(map(len, result_of_policy.landings)) == chosen.evictions
    assert not result_of_policy.repeats
    check_document(result.to_dict())


def test_a_larger_target_needs_fewer_evictions() -> None:
    numbers = []
    for target in (None, 60):
        chosen = advice_for([*NODES, *UNBALANCED], PolicyGoal.BALANCE, target)[0].chosen
        assert chosen is not None
        numbers.append(chosen.evictions)
    assert numbers[1] < numbers[0]


def test_budgets_are_respected() -> None:
    with_budgets = [*NODES, *UNBALANCED, *(budget(f"app-{number}", 0) for number in range(6))]
    result, _, _ = advice_for(with_budgets, PolicyGoal.BALANCE)
    assert result.chosen is None
    assert not result.to_dict().get("policy")


def test_a_cluster_that_meets_the_target_needs_no_policy() -> None:
    result, _, _ = advice_for([*NODES, *SPARSE], PolicyGoal.BALANCE, 50)
    assert result.is_reached
    assert result.chosen is None


def test_a_policy_that_default_scoring_undoes_is_not_advised() -> None:
    """LeastAllocated schedules the evicted pods on the nodes that compaction empties."""
    result, _, _ = advice_for([*NODES, *SPARSE], PolicyGoal.COMPACTION)
    assert all(item.is_harmless for item in [result.chosen] if item is not None)
    survey = {item.plugin: item for item in result.plugins}
    assert survey["HighNodeUtilization"].evictions
