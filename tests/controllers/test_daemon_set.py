"""What one sync of a DaemonSet's rolling update changes, and its pods that are down on a node."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.controllers.daemon_set import DaemonSetSync, NodePods, agents_down, sync
from kschedx.controllers.deployment import DaemonSetUpdate
from tests.builders import node, pod

OLD, NEW = NodePods(old=True), NodePods(new=True)
BROKEN, WAITS = NodePods(old=False), NodePods(new=False)
BOTH = NodePods(old=True, new=True)
REPLACED = NodePods(old=False, new=False)
BESIDE = NodePods(old=True, new=False)
STUCK = NodePods(is_terminating=True)
SURGE = DaemonSetUpdate(surge=1, unavailable=0)


@pytest.mark.parametrize(
    ("update", "nodes", "step"),
    [
        (DaemonSetUpdate(surge=0, unavailable=1), {"a": OLD, "b": NodePods()}, DaemonSetSync(create=("b",))),
        (DaemonSetUpdate(surge=0, unavailable=1), {"a": OLD, "b": OLD}, DaemonSetSync(delete=("a",))),
        (DaemonSetUpdate(surge=0, unavailable=1), {"a": WAITS, "b": OLD}, DaemonSetSync()),
        (DaemonSetUpdate(surge=0, unavailable=1), {"a": WAITS, "b": BROKEN}, DaemonSetSync(delete=("b",))),
        (DaemonSetUpdate(surge=0, unavailable=2), {"a": OLD, "b": OLD, "c": OLD}, DaemonSetSync(delete=("a", "b"))),
        (DaemonSetUpdate(surge=0, unavailable=1), {"a": NEW, "b": NEW}, DaemonSetSync()),
        (SURGE, {"a": OLD, "b": OLD}, DaemonSetSync(create=("a",))),
        (SURGE, {"a": BESIDE, "b": OLD}, DaemonSetSync()),
        (SURGE, {"a": BOTH, "b": OLD}, DaemonSetSync(delete=("a",))),
        (
            SURGE,
            {"a": BOTH, "b": NodePods(), "c": REPLACED},
            DaemonSetSync(delete=("a", "c"), create=("b",)),
        ),
        (SURGE, {"a": BESIDE, "b": BROKEN}, DaemonSetSync(create=("b",))),
        (None, {"a": OLD, "b": OLD}, DaemonSetSync()),
        (DaemonSetUpdate(surge=0, unavailable=1), {"a": STUCK, "b": OLD}, DaemonSetSync()),
        (DaemonSetUpdate(surge=0, unavailable=2), {"a": STUCK, "b": OLD, "c": OLD}, DaemonSetSync(delete=("b",))),
        (SURGE, {"a": STUCK, "b": OLD}, DaemonSetSync(create=("b",))),
    ],
    ids=[
        "a missing pod first",
        "one at a time",
        "the new pod is pending",
        "a broken pod goes at once",
        "two at a time",
        "complete",
        "surge",
        "the surge pod is pending",
        "the old pod goes after the new one, and no other in the same sync",
        "a missing pod and old pods at once",
        "a broken pod gets its successor at once",
        "OnDelete",
        "a pod that stays terminating is unavailable",
        "a pod that stays terminating, and two at a time",
        "surge beside a pod that stays terminating",
    ],
)
def test_one_sync(update: DaemonSetUpdate | None, nodes: dict[str, NodePods], step: DaemonSetSync) -> None:
    assert sync(update, nodes) == step


@pytest.mark.parametrize(
    ("pods", "down"),
    [
        ([("a", "Running", True)], ()),
        ([("a", "Running", False)], ("default/a",)),
        ([("a", "Failed", False)], ("default/a",)),
        ([("a", "Failed", False), ("b", "Running", True)], ()),
    ],
)
def test_agents_of_a_node_that_are_down(pods: list[tuple[str, str, bool]], down: tuple[str, ...]) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "u", "controller": True}
    agents = [
        pod(
            name,
            on="n",
            metadata={"ownerReferences": [owner]},
            status={"phase": phase, "conditions": [{"type": "Ready", "status": str(ready)}]},
        )
        for name, phase, ready in pods
    ]
    assert agents_down(kschedx.Snapshot.from_objects([node("n"), *agents]), "n") == down
