"""Cached columns of a decision are dropped as soon as they are no longer true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

from kschedx.explain.profile_changes import Pair
from kschedx.explain.setup import Setup
from kschedx.framework.interface import Touch
from kschedx.framework.moving import Run
from kschedx.framework.moving.leave_one_out import LeaveOneOut, Profiles
from kschedx.framework.scheduler import FrameworkScheduler
from kschedx.kube.types import Taint
from kschedx.plugins.image_locality import ImageLocality
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.columns import ClusterRow, IntArray
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, node, pod


def test_a_changed_node_invalidates_normalized_scores() -> None:
    objects = [node("a"), node("b"), pod("web")]
    run = Run(scheduler_of(None, resolve(), Snapshot.from_objects(objects)))
    row = run.cluster.pods.rows["default/web"]
    assert run.decide(row).best.tolist() == [0, 1]
    before = run.snapshot.cluster.nodes[0]
    taints = replace(before.spec, taints=(Taint(key="worn", effect="PreferNoSchedule"),))
    run.cluster.replace_node(ClusterRow(0), replace(before, spec=taints))
    assert run.decide(row).best.tolist() == [1]


def test_other_feasible_nodes_invalidate_normalized_scores() -> None:
    """Node b is preferred; its normalized score follows it when the feasible nodes change from a and b to b and c."""
    small = {"cpu": "1", "memory": "4Gi", "pods": "110"}
    requests = [{"name": "main", "resources": {"requests": {"cpu": "1"}}}]
    preferred = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    affinity = {
        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": preferred}]}
    }
    disks = {"a": "hdd", "b": "ssd", "c": "hdd"}
    nodes = [node(name, labels={"disk": disk}, allocatable=small) for name, disk in disks.items()]
    pods = [pod("web", affinity=affinity, containers=requests), pod("old", on="c", containers=requests)]
    run = Run(scheduler_of(None, resolve(), Snapshot.from_objects([*nodes, *pods])))
    web, old = run.cluster.pods.rows["default/web"], run.cluster.pods.rows["default/old"]
    assert run.decide(web).best.tolist() == [1]
    run.cluster.remove(old, waits=True)
    run.cluster.place(old, ClusterRow(0))
    assert run.decide(web).best.tolist() == [1]


def identity(scores: IntArray) -> IntArray:
    return scores


def plus_one(scores: IntArray) -> IntArray:
    return scores + 1


@pytest.mark.parametrize(("total", "normalize"), [(101, identity), (100, plus_one)], ids=["sum", "normalized"])
def test_leave_one_out_skips_scores_out_of_bounds(
    total: int, normalize: Callable[[IntArray], IntArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every node has a pod, so each score is 100; on the node that a pod leaves, it is 101."""

    def score(self: object, state: object, pod: object, nodes: NodeTable) -> IntArray:
        return np.int64(total) - nodes.pod_count

    def normalize_score(self: object, state: object, pod: object, nodes: NodeTable, scores: IntArray) -> IntArray:
        return normalize(scores)

    monkeypatch.setattr(ImageLocality, "score", score)
    monkeypatch.setattr(ImageLocality, "touches", lambda self, pod: Touch.NODE)
    if normalize is not identity:
        monkeypatch.setattr(ImageLocality, "normalize_score", normalize_score)
    objects = [
        *(node(name, allocatable={"cpu": "1", "memory": "1Gi", "pods": "2"}) for name in "abc"),
        *(pod(f"web-{name}", on=name) for name in "abc"),
    ]
    cluster = MovingCluster(Snapshot.from_objects(objects))
    scheduler = FrameworkScheduler.of(None, resolve(), cluster.snapshot)
    framework = scheduler.framework(scheduler.config.profiles[0])
    profiles = Profiles(cluster, [framework])
    assert [outlooks for _, outlooks in LeaveOneOut(profiles, range(3))] == [None, None, None]


def test_leave_one_out_normalizes_again_with_another_extreme() -> None:
    """Without its pod, the full node c joins nodes a and b, and has more taints than both."""
    objects: list[Manifest] = [pod("web", on="c")]
    for name, count in (("a", 1), ("b", 2), ("c", 3)):
        taints = [f"t{number}:PreferNoSchedule" for number in range(count)]
        room = {"cpu": "1", "memory": "1Gi", "pods": "1"}
        objects.append(node(name, taints=taints, allocatable=room))
    config = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    heavy = {"plugins": {"multiPoint": {"enabled": [{"name": "TaintToleration", "weight": 9}]}}}
    before, after = (
        Setup.of(name, {**config, "profiles": profiles}, resolve())
        for name, profiles in (("before", []), ("after", [heavy]))
    )
    pair = Pair(Snapshot.from_objects(objects), before, after)
    entries = dict(difference for part in pair.parts([0]) for difference in pair.differences(part))
    assert entries[0] == pair.difference(pair.snapshot.pods[0])
