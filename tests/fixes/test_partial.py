"""A partial fix removes a blocker and names those that remain. It is shown if no complete fix exists."""

from __future__ import annotations

import kschedx
from tests.builders import Manifest, node, pod
from tests.storage_builders import claim, volume

DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
HELD: list[Manifest] = [
    claim("data", modes=["ReadWriteOncePod"], volume="pv-data"),
    volume("pv-data", modes=["ReadWriteOncePod"], claim_ref="data"),
    node("elsewhere", labels={"disk": "nvme"}),
    pod("holder", on="elsewhere", priority=2_000_000_000, spec=DATA),
]
"""A claim for a single pod, used by a pod of higher priority: no fix exists."""
ASKS = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
TOLERATION = {"key": "team", "operator": "Exists"}
ROOM = {"cpu": "2", "memory": "1Gi", "pods": "110"}


def titles(*objects: Manifest) -> list[str]:
    snapshot = kschedx.Snapshot.from_objects([*HELD, *objects])
    return [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]


def test_remaining_blockers_are_named() -> None:
    full = node("full", allocatable={"cpu": "1", "memory": "1Gi", "pods": "1"}, unschedulable=True)
    me = pod("me", spec=DATA, containers=ASKS, nodeSelector={"disk": "ssd"})
    left = "NodeUnschedulable on 1 node, NodeResourcesFit on 1 node, VolumeRestrictions on 2 nodes"
    assert f"stop requiring disk=ssd (then still {left})" in titles(full, me)


def test_rejections_by_nominated_pods_remain() -> None:
    comes = pod("comes", status={"nominatedNodeName": "a"}, priority=9, containers=ASKS, tolerations=[TOLERATION])
    me = pod("me", spec=DATA, containers=ASKS)
    result = titles(node("a", taints=["team=a:NoSchedule"], allocatable=ROOM), comes, me)
    assert "tolerate team=a:NoSchedule (then still NodeResourcesFit on 1 node, VolumeRestrictions on 2 nodes)" in result


def test_a_change_without_effect_is_not_shown() -> None:
    spread = {"maxSkew": 1, "topologyKey": "disk", "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    me = pod("me", spec=DATA, labels={"app": "web"}, topologySpreadConstraints=[spread])
    assert not [title for title in titles(node("bare"), me) if "Honor" in title]
