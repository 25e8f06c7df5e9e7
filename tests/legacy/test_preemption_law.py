"""Preemption in waves over all nodes is what one node after another, and one pod after another, comes to."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given, settings
from hypothesis import strategies as st

from kschedx.legacy.scheduler import PredicateScheduler
from kschedx.releases import resolve
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod

PREEMPTOR = 5
BUDGET: Manifest = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "kept", "namespace": "default"},
    "spec": {"selector": {"matchLabels": {"kept": "yes"}}},
    "status": {"disruptionsAllowed": 0},
}

RUNNING = st.fixed_dictionaries(
    {
        "node": st.sampled_from("abc"),
        "cpu": st.integers(1, 4),
        "priority": st.integers(0, PREEMPTOR + 1),
        "kept": st.booleans(),
    }
)
"""The first of a node has the host port; two that share one could not both run there."""


def spec(cpu: int, port: int, priority: int) -> Manifest:
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}, "ports": ports}
    return {"containers": [container], "priority": priority}


@given(st.lists(RUNNING, max_size=9), st.integers(1, 6), st.booleans())
@settings(max_examples=settings().max_examples * 3 // 5)
def test_waves_are_one_pod_after_another(running: list[dict[str, object]], cpu: int, wants_port: bool) -> None:
    first = {item["node"]: i for i, item in reversed(list(enumerate(running)))}
    pods = [
        pod(
            f"p{i}",
            on=str(item["node"]),
            labels={"kept": "yes"} if item["kept"] else {"app": "x"},
            spec=spec(int(str(item["cpu"])), 80 if first[item["node"]] == i else 0, int(str(item["priority"]))),
        )
        for i, item in enumerate(running)
    ]
    web = pod("web", spec=spec(cpu, 80 if wants_port else 0, PREEMPTOR))
    nodes = [node(name, allocatable={"cpu": "6", "memory": "8Gi", "pods": "9"}) for name in "abc"]
    snapshot = Snapshot.from_objects([*nodes, *pods, web, BUDGET])
    scheduler = PredicateScheduler.of(None, resolve("1.13"), snapshot)
    target = snapshot.pods[snapshot.pods.rows["default/web"]]
    result = scheduler.schedule(target).post_filter
    if result is None:
        return  # it fits somewhere

    def fits(on: int, without: Iterable[int]) -> bool:
        world = scheduler.on(scheduler.snapshot.without_pods(without))
        return bool(world.filter(target).outcome.passed[on])

    expected: dict[int, tuple[list[int], int]] = {}
    for row in range(3):
        here = [p for p in range(len(pods)) if running[p]["node"] == "abc"[row]]
        lower = [p for p in here if int(str(running[p]["priority"])) < PREEMPTOR]
        lower.sort(key=lambda p: (not running[p]["kept"], -int(str(running[p]["priority"]))))
        if not fits(row, lower):
            continue
        gone = list(lower)
        for victim in lower:
            spared = [p for p in gone if p != victim]
            gone = spared if fits(row, spared) else gone
        expected[row] = gone, sum(bool(running[p]["kept"]) for p in gone)
    entries = {item.node: ([*item.victims], item.pdb_violations) for item in result.candidates}
    assert entries == expected
