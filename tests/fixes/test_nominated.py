"""Pods that are nominated for a node count in what a fix leaves behind."""

from __future__ import annotations

import kschedx
from tests.builders import node, pod


def test_a_partial_fix_names_what_only_nominated_pods_reject() -> None:
    asks = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    comes = pod("comes", status={"nominatedNodeName": "a"}, priority=9, containers=asks, tolerations=[TOLERATION])
    me = pod("me", containers=asks)
    room = {"cpu": "2", "memory": "1Gi", "pods": "110"}
    snapshot = kschedx.Snapshot.from_objects([node("a", taints=["team=a:NoSchedule"], allocatable=room), comes, me])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert titles[0] == "tolerate team=a:NoSchedule (then still NodeResourcesFit on 1 node)"


TOLERATION = {"key": "team", "operator": "Exists"}
