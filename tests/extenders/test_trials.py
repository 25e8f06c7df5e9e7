"""Fixes are tried without extenders."""

from __future__ import annotations

import kschedx
from kschedx.framework.extenders import ExtenderAnswer, ExtenderRequest
from tests.builders import explain_pod, node, pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "extenders": [{"urlPrefix": "http://127.0.0.1:1", "preemptVerb": "preempt", "nodeCacheCapable": True}],
}


def test_a_trial_of_a_fix_asks_no_extender() -> None:
    """Without the node selector, the pod would preempt another one, about which kube-scheduler asks the extender."""
    asked: list[ExtenderRequest] = []

    def ask(requests: tuple[ExtenderRequest, ...]) -> tuple[ExtenderAnswer, ...]:
        asked.extend(requests)
        return tuple(ExtenderAnswer(status=200, body=b"{}") for _ in requests)

    small = {"cpu": "1", "pods": "5"}
    one = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    low = pod("low", on="a", priority=0, containers=one)
    me = pod("me", priority=5, containers=one, nodeSelector={"disk": "ssd"})
    snapshot = kschedx.Snapshot.from_objects([node("a", allocatable=small), low, me])
    fixes = explain_pod(snapshot, "default/me", config=CONFIG, ask=ask).fixes
    assert (bool(fixes), asked) == (True, [])
