"""A table of what one sync of a DaemonSet's rolling update changes."""

from __future__ import annotations

import pytest

from kschedx.controllers.daemon_set import DaemonSetSpec, DaemonSetSync, NodePods, PodState, sync

OLD, NEW = NodePods(old=PodState.AVAILABLE), NodePods(new=PodState.AVAILABLE)
BROKEN, WAITS = NodePods(old=PodState.UNAVAILABLE), NodePods(new=PodState.UNAVAILABLE)
BOTH = NodePods(old=PodState.AVAILABLE, new=PodState.AVAILABLE)
REPLACED = NodePods(old=PodState.UNAVAILABLE, new=PodState.UNAVAILABLE)
BESIDE = NodePods(old=PodState.AVAILABLE, new=PodState.UNAVAILABLE)


@pytest.mark.parametrize(
    ("spec", "nodes", "step"),
    [
        (DaemonSetSpec(max_unavailable=1), {"a": OLD, "b": NodePods()}, DaemonSetSync(create=("b",))),
        (DaemonSetSpec(max_unavailable=1), {"a": OLD, "b": OLD}, DaemonSetSync(delete=("a",))),
        (DaemonSetSpec(max_unavailable=1), {"a": WAITS, "b": OLD}, DaemonSetSync()),
        (DaemonSetSpec(max_unavailable=1), {"a": WAITS, "b": BROKEN}, DaemonSetSync(delete=("b",))),
        (DaemonSetSpec(max_unavailable=2), {"a": OLD, "b": OLD, "c": OLD}, DaemonSetSync(delete=("a", "b"))),
        (DaemonSetSpec(max_unavailable=1), {"a": NEW, "b": NEW}, DaemonSetSync()),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": OLD, "b": OLD}, DaemonSetSync(create=("a",))),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": BESIDE, "b": OLD}, DaemonSetSync()),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": BOTH, "b": OLD}, DaemonSetSync(delete=("a",))),
        (
            DaemonSetSpec(max_unavailable=0, max_surge=1),
            {"a": BOTH, "b": NodePods(), "c": REPLACED},
            DaemonSetSync(delete=("a", "c"), create=("b",)),
        ),
        (DaemonSetSpec(max_unavailable=0, max_surge=1), {"a": BESIDE, "b": BROKEN}, DaemonSetSync(create=("b",))),
        (DaemonSetSpec(max_unavailable=0, is_on_delete=True), {"a": OLD, "b": OLD}, DaemonSetSync()),
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
    ],
)
def test_one_sync(spec: DaemonSetSpec, nodes: dict[str, NodePods], step: DaemonSetSync) -> None:
    assert sync(spec, nodes) == step
