"""In versions up to 1.30, a node that an extender drops silently has no status, and preemption tries it."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.framework.extenders import ExtenderAnswer, ExtenderRequest
from tests.builders import explain_pod, node, pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "extenders": [{"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter", "nodeCacheCapable": True}],
}


def answer_without_nodes(requests: tuple[ExtenderRequest, ...]) -> tuple[ExtenderAnswer, ...]:
    """Answer without nodes and without failed nodes."""
    return tuple(ExtenderAnswer(status=200, body=b'{"NodeNames": []}') for _ in requests)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.29", 'preemption: expected at least one victim pod on node "a"'),
        ("1.36", "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."),
    ],
)
def test_preemption_after_a_silent_rejection(version: str, expected: str) -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a"), pod("low", on="a", priority=0), pod("me", priority=5)])
    explanation = explain_pod(snapshot, "default/me", config=CONFIG, kube_version=version, ask=answer_without_nodes)
    assert explanation.message.endswith(expected)
