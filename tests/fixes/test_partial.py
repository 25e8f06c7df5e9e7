"""A partial fix takes a blocker away, and names all that remain. It is told where nothing helps whole."""

from __future__ import annotations

import kschedx
from tests.builders import Manifest, node, pod
from tests.storage_builders import claim, volume

DATA = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
HELD: list[Manifest] = [
    claim("data", modes=["ReadWriteOncePod"], volume="pv-data"),
    volume("pv-data", modes=["ReadWriteOncePod"], holder="data"),
    node("elsewhere", labels={"disk": "nvme"}),
    pod("holder", on="elsewhere", priority=2_000_000_000, spec=DATA),
]
"""A claim that one pod in the cluster may have, in the hands of a pod of higher priority: nobody can mend that."""
ASKS = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
TOLERATION = {"key": "team", "operator": "Exists"}
ROOM = {"cpu": "2", "memory": "1Gi", "pods": "110"}


def titles(*objects: Manifest) -> list[str]:
    snapshot = kschedx.Snapshot.from_objects([*HELD, *objects])
    return [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]


def test_all_that_remains_is_named() -> None:
    full = node("full", allocatable={"cpu": "1", "memory": "1Gi", "pods": "1"}, unschedulable=True)
    me = pod("me", spec=DATA, containers=ASKS, nodeSelector={"disk": "ssd"})
    left = "NodeUnschedulable on 1 node, NodeResourcesFit on 1 node, VolumeRestrictions on 2 nodes"
    assert f"stop requiring disk=ssd (then still {left})" in titles(full, me)


def test_what_only_nominated_pods_reject_remains_too() -> None:
    comes = pod("comes", status={"nominatedNodeName": "a"}, priority=9, containers=ASKS, tolerations=[TOLERATION])
    me = pod("me", spec=DATA, containers=ASKS)
    result = titles(node("a", taints=["team=a:NoSchedule"], allocatable=ROOM), comes, me)
    assert "tolerate team=a:NoSchedule (then still NodeResourcesFit on 1 node, VolumeRestrictions on 2 nodes)" in result


def test_what_changes_nothing_is_not_told() -> None:
    spread = {"maxSkew": 1, "topologyKey": "disk", "whenUnsatisfiable": "DoNotSchedule"}
    spread |= {"labelSelector": {"matchLabels": {"app": "web"}}}
    me = pod("me", spec=DATA, labels={"app": "web"}, topologySpreadConstraints=[spread])
    assert not [title for title in titles(node("bare"), me) if "Honor" in title]
