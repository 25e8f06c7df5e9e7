"""Tables of what one sync of a Deployment's controller changes."""

from __future__ import annotations

import pytest

from kschedx.controllers.deployment import DeploymentStrategy, ReplicaSetSize, scale, sync


def size(name: str, replicas: int, available: int | None = None, created: str = "") -> ReplicaSetSize:
    return ReplicaSetSize(
        name=name, replicas=replicas, available=replicas if available is None else available, created=created
    )


def spec(replicas: int, surge: int = 1, unavailable: int = 0, **more: bool) -> DeploymentStrategy:
    return DeploymentStrategy(replicas=replicas, surge=surge, unavailable=unavailable, **more)


@pytest.mark.parametrize(
    ("deployment", "new", "old", "changes"),
    [
        (spec(3), size("new", 0), [size("old", 3)], {"new": 1}),
        (spec(3), size("new", 1, 0), [size("old", 3)], {}),
        (spec(3), size("new", 1), [size("old", 3)], {"old": 2}),
        (spec(3), size("new", 2), [size("old", 2)], {"old": 1}),
        (spec(3), size("new", 3), [], {}),
        (spec(4, 2, 2), size("new", 0), [size("old", 4)], {"new": 2}),
        (spec(4, 2, 2), size("new", 2, 0), [size("old", 4)], {"old": 2}),
        (spec(3, 0, 1), size("new", 0), [size("old", 3)], {"old": 2}),
        (spec(3, 0, 1), size("new", 0), [size("old", 3, 2)], {"old": 2}),
        (spec(3, 0, 1), size("new", 1, 0), [size("old", 2, 1)], {}),
        (spec(3, 1, 1), size("new", 2), [size("a", 1, 0, "1"), size("b", 1, 1, "2")], {"a": 0, "b": 0}),
        (spec(2), size("new", 3), [], {"new": 2}),
        (spec(3, 0, 3, is_recreate=True), size("new", 1, 0), [size("old", 3)], {"old": 0}),
        (spec(3, 0, 3, is_recreate=True), size("new", 0), [], {"new": 3}),
        (spec(3, is_paused=True), None, [size("old", 3)], {}),
        (spec(3, is_paused=True), size("new", 1), [size("old", 3)], {}),
        (spec(3, is_paused=True), size("new", 1), [size("old", 2)], {"old": 3}),
        (spec(3, 0, 1, is_paused=True), size("new", 1), [size("old", 3)], {"old": 2}),
    ],
    ids=[
        "surge",
        "the new pod is pending",
        "the new pod is available",
        "one more",
        "complete",
        "both bounds",
        "scales down within maxUnavailable",
        "an old pod goes first",
        "the unavailable old pod goes first",
        "unavailable pods use up the bound",
        "unavailable pods of the oldest, then available ones",
        "too many new pods",
        "Recreate takes all old pods",
        "Recreate then creates all",
        "paused without a new ReplicaSet",
        "paused in a rollout",
        "paused below the surge: the largest grows",
        "paused above the surge: the largest shrinks",
    ],
)
def test_one_sync(
    deployment: DeploymentStrategy, new: ReplicaSetSize | None, old: list[ReplicaSetSize], changes: dict[str, int]
) -> None:
    assert sync(deployment, new, old) == changes


@pytest.mark.parametrize(
    ("after", "before", "new", "old", "changes"),
    [
        (spec(5), spec(3), size("new", 0), [size("old", 3)], {"old": 5}),
        (spec(20, 2), spec(10, 2), size("new", 4, 0), [size("old", 8)], {"new": 7, "old": 15}),
        (spec(5, 2), spec(10, 2), size("new", 4, 0), [size("old", 8)], {"new": 2, "old": 5}),
        (spec(0), spec(3), size("new", 1), [size("old", 3)], {"new": 0, "old": 0}),
        (spec(3), spec(3), size("new", 3), [size("old", 1)], {"old": 0}),
    ],
    ids=["one active ReplicaSet", "up in proportion", "down in proportion", "to zero", "the new one is saturated"],
)
def test_proportional_scaling(
    after: DeploymentStrategy,
    before: DeploymentStrategy,
    new: ReplicaSetSize,
    old: list[ReplicaSetSize],
    changes: dict[str, int],
) -> None:
    assert scale(after, new, old, before) == changes
