"""Goals: the fewest moves that make room for a pod."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.errors import InputError, Place
from kschedx.explain.setup import Setup
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.what_if import simulate
from kschedx.simulate.changes import ChangeVerb, SimulatedChange
from kschedx.simulate.moves import Goal, GoalResult, parse_goal
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, pod
from tests.simulate.clusters import HIGH, budget, deployment, nodes
from tests.simulate.test_survive import shops


def reach_goal(objects: Sequence[Manifest], cpu: str, **more: object) -> tuple[GoalResult, Simulation]:
    snapshot = Snapshot.from_objects(objects)
    manifest = pod(
        "big",
        namespace="shop",
        containers=[{"name": "a", "image": "a", "resources": {"requests": {"cpu": cpu}}}],
        spec=more,
    )
    change = SimulatedChange(verb=ChangeVerb.APPLY, text="big.yaml", objects=((manifest, Place()),))
    simulation = simulate(snapshot, Setup.of_cluster(snapshot), goal=Goal(text="fits big.yaml", change=change))
    assert simulation.goal is not None
    return simulation.goal, simulation


def moved(goal: GoalResult) -> dict[str, tuple[str, str]]:
    return {move.pod: (move.source, move.to) for move in goal.moves}


def test_one_eviction_comes_before_two() -> None:
    objects = [
        *nodes(["8", "8", "4"]),
        *deployment("small", "2", ["node-1", "node-1"]),
        *deployment("large", "4", ["node-2"]),
    ]
    goal, result = reach_goal(objects, "8")
    assert moved(goal) == {"shop/large-0": ("node-2", "node-1")}
    assert (goal.is_reached, result.is_done, result.placed["shop/big"]) == (True, True, "node-2")


def test_room_for_an_evicted_pod_is_made_on_another_node_first() -> None:
    objects = [
        *nodes(["8", "4", "2"]),
        *deployment("large", "4", ["node-1"]),
        *deployment("small", "2", ["node-2"]),
    ]
    goal, result = reach_goal(objects, "8")
    steps = [(move.pod, move.source, move.to) for move in goal.moves]
    assert steps == [("shop/small-0", "node-2", "node-3"), ("shop/large-0", "node-1", "node-2")]
    assert (result.is_done, result.placed["shop/big"]) == (True, "node-1")


def test_no_eviction_if_none_is_needed() -> None:
    goal, result = reach_goal([*nodes(["8", "4"]), *deployment("small", "2", ["node-1"])], "4")
    assert (goal.moves, goal.is_reached, result.placed["shop/big"]) == ((), True, "node-1")


def test_a_budget_forbids_a_move() -> None:
    objects = [*nodes(["8", "4"]), *deployment("small", "2", ["node-1"]), budget("small", 0)]
    goal, result = reach_goal(objects, "8")
    assert (goal.moves, goal.pending, result.is_done) == ((), ("shop/big",), False)


def test_a_more_important_pod_is_not_moved() -> None:
    small = deployment("small", "2", ["node-1"], priority_class="high")
    for item in small:
        if item["kind"] == "Pod":
            at(item, "spec")["priority"] = 1000
    objects = [*nodes(["8", "4"]), HIGH, *small]
    assert reach_goal(objects, "8")[0].pending == ("shop/big",)
    assert reach_goal(objects, "8", priorityClassName="high")[0].is_reached


def test_no_pod_is_moved_if_it_would_stay_pending() -> None:
    objects = [*nodes(["8", "4"]), *deployment("small", "5", ["node-1"])]
    objects.append(HIGH)
    goal, result = reach_goal(objects, "8", priorityClassName="high")
    assert (goal.moves, goal.pending, [*result.pending]) == ((), ("shop/big",), ["shop/big"])
    assert result.messages["shop/big"].startswith("0/2 nodes are available: 2 Insufficient cpu.")
    assert result.after.pods.node_names[result.after.pods.rows["shop/small-0"]] == "node-1"


@pytest.mark.parametrize(
    ("waiting", "placed", "pending"),
    [
        ({"cpu": "6"}, {"shop/waiting": "node-1"}, ("shop/big",)),  # it takes the room at once
        ({"cpu": "8"}, {}, ("shop/big",)),  # and this one the room that moves would make
        ({"cpu": "9"}, {"shop/small-0": "node-2", "shop/big": "node-1"}, ()),
        ({"cpu": "6", "gate": True}, {"shop/small-0": "node-2", "shop/big": "node-1"}, ()),
    ],
)
def test_pending_pods_that_come_first_take_their_room_first(
    waiting: dict[str, object], placed: dict[str, str], pending: tuple[str, ...]
) -> None:
    requests = {"resources": {"requests": {"cpu": waiting["cpu"]}}}
    spec = {"schedulingGates": [{"name": "example.com/wait"}]} if waiting.get("gate") else {}
    earlier = pod("waiting", namespace="shop", containers=[{"name": "a", "image": "a", **requests}], spec=spec)
    at(earlier, "metadata")["creationTimestamp"] = "2026-01-01T00:00:00Z"
    objects = [*nodes(["8", "4"]), *deployment("small", "2", ["node-1"]), earlier]
    goal, result = reach_goal(objects, "8")
    assert ({**result.placed}, goal.pending, result.is_done) == (placed, pending, not pending)


@pytest.mark.parametrize("text", ["fit pod.yaml", "fits", "fits  ", ""])
def test_invalid_goals(text: str) -> None:
    with pytest.raises(InputError, match='allowed is "fits FILE"'):
        parse_goal(text, lambda _: [])


def fewest_evictions(free: list[int], pods: list[tuple[int, int]], asked_cpu: int, most: int = 2) -> int | None:
    """Return the result of trying every set of pods (node, CPU), and every node for each of them."""

    def fits(free: list[int], requests: list[int]) -> bool:
        if not requests:
            return True
        first, *others = requests
        return any(
            fits([room - first * (node == at) for node, room in enumerate(free)], others)
            for at in range(len(free))
            if free[at] >= first
        )

    for number in range(most + 1):
        for some in combinations(pods, number):
            freed = [room + sum(cpu for at, cpu in some if at == node) for node, room in enumerate(free)]
            if fits(freed, [asked_cpu, *sorted((cpu for _, cpu in some), reverse=True)]):
                return number
    return None


@settings(max_examples=settings().max_examples, deadline=None)
@given(st.integers(0, 10**6))
def test_no_smaller_set_of_evictions_suffices(seed: int) -> None:
    dice = random.Random(seed)
    sizes = [dice.choice([4, 6, 8, 10]) for _ in range(dice.randint(2, 5))]
    free, pods, objects = sizes[:], list[tuple[int, int]](), nodes([str(size) for size in sizes])
    for number in range(dice.randint(2, 5)):
        cpu, places = dice.choice([1, 2, 3, 4]), list[int]()
        for _ in range(dice.randint(1, 3)):
            at = dice.randrange(len(sizes))
            if free[at] >= cpu:
                free[at] -= cpu
                places.append(at)
        pods += [(at, cpu) for at in places]
        objects += deployment(f"app-{number}", str(cpu), [f"node-{at + 1}" for at in places]) if places else []
    wanted = dice.randint(3, 8)
    goal, _ = reach_goal(objects, str(wanted))
    fewest = fewest_evictions(free, pods, wanted)
    if fewest is not None and fewest < 2:
        assert (goal.is_reached, len(goal.moves)) == (True, fewest)
    elif goal.is_reached:
        assert len(goal.moves) >= 2


@settings(max_examples=settings().max_examples, deadline=None)
@given(st.integers(0, 10**6))
def test_budgets_hold_and_everyone_is_placed(seed: int) -> None:
    dice = random.Random(seed)
    objects = shops(dice, with_budgets=True)
    goal, result = reach_goal(objects, dice.choice(["2", "3", "4", "8"]))
    assert not result.evictions  # nothing is preempted
    before, after = result.before, result.after
    assert {*before.pods.rows} <= {*after.pods.rows}
    lost = [key for key, row in after.pods.rows.items() if after.pods.node[row] < 0 and key not in goal.pending]
    assert not lost
    moved_pods = {move.pod for move in goal.moves}
    for move in budgets_of(before, before):
        covered = sum(move.covers(before.pods, before.pods.rows[key]) for key in moved_pods)
        assert covered <= max(move.current_status(before, before.pods, ()).allowed, 0)
    if not goal.is_reached:
        assert not goal.moves
