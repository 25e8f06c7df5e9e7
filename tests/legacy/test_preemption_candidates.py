"""Preemption on all nodes at once equals preemption on one node and one pod at a time."""

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
"""Only the first pod of a node has the host port, because two pods cannot share it."""


def spec(cpu: int, port: int, priority: int) -> Manifest:
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    container = {"name": "main", "resources": {"requests": {"cpu": str(cpu)}}, "ports": ports}
    return {"containers": [container], "priority": priority}


@given(st.lists(RUNNING, max_size=9), st.integers(1, 6), st.booleans())
@settings(max_examples=settings().max_examples * 3 // 5)
def test_candidates_equal_those_of_one_pod_at_a_time(
    running: list[dict[str, object]], cpu: int, has_port: bool
) -> None:
    first_rows = {item["node"]: i for i, item in reversed(list(enumerate(running)))}
    pods = [
        pod(
            f"p{i}",
            on=str(item["node"]),
            labels={"kept": "yes"} if item["kept"] else {"app": "x"},
            spec=spec(int(str(item["cpu"])), 80 if first_rows[item["node"]] == i else 0, int(str(item["priority"]))),
        )
        for i, item in enumerate(running)
    ]
    web = pod("web", spec=spec(cpu, 80 if has_port else 0, PREEMPTOR))
    nodes = [node(name, allocatable={"cpu": "6", "memory": "8Gi", "pods": "9"}) for name in "abc"]
    snapshot = Snapshot.from_objects([*nodes, *pods, web, BUDGET])
    scheduler = PredicateScheduler.of(None, resolve("1.13"), snapshot)
    target = snapshot.pods[snapshot.pods.rows["default/web"]]
    result = scheduler.schedule(target).post_filter
    if result is None:
        return  # the pod fits a node

    def fits(on: int, removed: Iterable[int]) -> bool:
        scheduler_without = scheduler.on(scheduler.snapshot.without_pods(removed))
        return bool(scheduler_without.filter(target).outcome.passed[on])

    expected: dict[int, tuple[list[int], int]] = {}
    for row in range(3):
        pods_on_node = [p for p in range(len(pods)) if running[p]["node"] == "abc"[row]]
        lower = [p for p in pods_on_node if int(str(running[p]["priority"])) < PREEMPTOR]
        lower.sort(key=lambda p: (not running[p]["kept"], -int(str(running[p]["priority"]))))
        if not fits(row, lower):
            continue
        victims = list(lower)
        for victim in lower:
            remaining = [p for p in victims if p != victim]
            victims = remaining if fits(row, remaining) else victims
        expected[row] = victims, sum(bool(running[p]["kept"]) for p in victims)
    entries = {item.node: ([*item.victims], item.pdb_violations) for item in result.candidates}
    assert entries == expected
