"""A table of what one sync of a DaemonSet's rolling update changes."""

from __future__ import annotations

import pytest

from kschedx.controllers.daemon_set import DaemonSetSpec, NodePods, PodState, Step, sync

OLD, NEW = NodePods(old=PodState.AVAILABLE), NodePods(new=PodState.AVAILABLE)
BROKEN, WAITS = NodePods(old=PodState.UNAVAILABLE), NodePods(new=PodState.UNAVAILABLE)
BOTH = NodePods(old=PodState.AVAILABLE, new=PodState.AVAILABLE)
BESIDE = NodePods(old=PodState.AVAILABLE, new=PodState.UNAVAILABLE)


@pytest.mark.parametrize(
    ("spec", "nodes", "step"),
    [
        (DaemonSetSpec(max_unavailable=1), {"a": OLD, "b": NodePods()}, Step(create=("b",))),
        (DaemonSetSpec(max_unavailable=1), {"a": OLD, "b": OLD}, Step(delete=("a",))),
        (DaemonSetSpec(max_unavailable=1), {"a": WAITS, "b": OLD}, Step()),
        (DaemonSetSpec(max_unavailable=1), {"a": WAITS, "b": BROKEN}, Step(delete=("b",))),
        (DaemonSetSpec(max_unavailable=2), {"a": OLD, "b": OLD, "c": OLD}, Step(delete=("a", "b"))),
        (DaemonSetSpec(max_unavailable=1), {"a": NEW, "b": NEW}, Step()),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": OLD, "b": OLD}, Step(create=("a",))),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": BESIDE, "b": OLD}, Step()),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": BOTH, "b": OLD}, Step(delete=("a",), create=("b",))),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": BESIDE, "b": BROKEN}, Step(create=("b",))),
        (DaemonSetSpec(max_unavailable=0, is_on_delete=True), {"a": OLD, "b": OLD}, Step()),
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
        "the old pod goes after the new one",
        "a broken pod gets its successor at once",
        "OnDelete",
    ],
)
def test_one_sync(spec: DaemonSetSpec, nodes: dict[str, NodePods], step: Step) -> None:
    assert sync(spec, nodes) == step
