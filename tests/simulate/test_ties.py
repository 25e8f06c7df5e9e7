"""Outcomes of ties: all of a few, a sample of many, and their differences."""

from __future__ import annotations

import pytest

from kschedx.explain.setup import Setup
from kschedx.inquiry.what_if import OtherOutcomes, other_outcomes, simulate
from kschedx.simulate.simulator import SimulationOptions
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod


def machine(name: str, cpu: str = "4") -> Manifest:
    return node(name, labels={"kubernetes.io/hostname": name}, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "20"})


def asking(name: str, cpu: str, *, on: str | None = None, only: str = "", priority: int = 0) -> Manifest:
    containers = [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}]
    selector = {"kubernetes.io/hostname": only} if only else {}
    return pod(name, on=on, containers=containers, nodeSelector=selector, priority=priority)


def tried(objects: list[Manifest]) -> OtherOutcomes:
    snapshot = Snapshot.from_objects(objects)
    setup = Setup.of_cluster(snapshot)
    return other_outcomes(
        simulate(snapshot, setup), SimulationOptions(), lambda options: simulate(snapshot, setup, options=options)
    )


TWO = [machine("a"), machine("b")]
FULL = [*TWO, asking("old-a", "4", on="a"), asking("old-b", "4", on="b")]
MANY = [*(machine(f"node-{number}") for number in range(9)), *(asking(f"pod-{number}", "1") for number in range(9))]


@pytest.mark.parametrize(
    ("objects", "ties", "outcomes", "placed", "is_all"),
    [
        ([machine("a"), asking("web", "1")], 0, 1, {1: 1}, True),
        ([*TWO, asking("web", "1")], 1, 2, {1: 2}, True),
        ([*TWO, asking("one", "3"), asking("two", "3")], 1, 2, {2: 2}, True),
        ([*TWO, machine("c"), asking("one", "3"), asking("two", "3"), asking("more", "3")], 2, 6, {3: 6}, True),
        ([*TWO, asking("first", "1", priority=9), asking("big", "4", only="a")], 1, 2, {1: 1, 2: 1}, True),
        ([*FULL, asking("urgent", "3", priority=9)], 1, 2, {1: 2}, True),
    ],
    ids=["no choice", "two nodes", "two pods", "three pods on three nodes", "it matters", "preemption"],
)
def test_all_outcomes_are_counted(
    objects: list[Manifest], ties: int, outcomes: int, placed: dict[int, int], is_all: bool
) -> None:
    outcome = tried(objects)
    assert (outcome.ties, outcome.outcomes, outcome.placed, outcome.is_all) == (ties, outcomes, placed, is_all)


def test_many_outcomes_are_sampled() -> None:
    outcome = tried(MANY)
    assert (outcome.tried, outcome.is_all, outcome.placed) == (8, False, {9: 9}), "eight lots, and the one by name"


TOO_MANY = "of 8 random runs and the one by name"
BY_CHANCE = "1 decision is random, 1 other outcome possible: "


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([machine("a"), asking("web", "1")], "no decision is random"),
        ([*TWO, asking("web", "1")], f"{BY_CHANCE}1 pod is scheduled in each"),
        (
            [*TWO, asking("first", "1", priority=9), asking("big", "4", only="a")],
            f"{BY_CHANCE}the number of scheduled pods differs, 2 in 1, 1 in 1 of them",
        ),
        (
            MANY,
            f"8 decisions are random; {TOO_MANY} 9 differ: 9 pods are scheduled in each",
        ),
    ],
    ids=["none", "it does not matter", "it matters", "many"],
)
def test_the_report_of_ties(objects: list[Manifest], expected: str) -> None:
    assert tried(objects).text == expected
