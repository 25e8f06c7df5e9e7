"""A node that an extender drops without a word has no status in releases up to 1.30, which try to preempt there."""

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


def nobody(questions: tuple[ExtenderRequest, ...]) -> tuple[ExtenderAnswer, ...]:
    """No node is left, and none is said to have failed."""
    return tuple(ExtenderAnswer(status=200, body=b'{"NodeNames": []}') for _ in questions)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("1.29", 'preemption: expected at least one victim pod on node "a"'),
        ("1.36", "preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."),
    ],
)
def test_preemption_where_nothing_was_said(version: str, expected: str) -> None:
    snapshot = kschedx.Snapshot.from_objects([node("a"), pod("low", on="a", priority=0), pod("me", priority=5)])
    explanation = explain_pod(snapshot, "default/me", config=CONFIG, kube_version=version, ask=nobody)
    assert explanation.message.endswith(expected)
