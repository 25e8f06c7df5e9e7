"""What is kept of a decision is given up as soon as it is no longer true."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from msgspec.structs import replace

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
from tests.builders import node, pod


def test_a_changed_node_has_another_normalized_score() -> None:
    objects = [node("a"), node("b"), pod("web")]
    run = Run(scheduler_of(None, resolve(), Snapshot.from_objects(objects)))
    row = run.cluster.pods.rows["default/web"]
    assert run.decide(row).best.tolist() == [0, 1]
    before = run.snapshot.cluster.nodes[0]
    worn = replace(before.spec, taints=(Taint(key="worn", effect="PreferNoSchedule"),))
    run.cluster.replace_node(ClusterRow(0), replace(before, spec=worn))
    assert run.decide(row).best.tolist() == [1]


def test_as_many_other_feasible_nodes_have_other_normalized_scores() -> None:
    """The preferred node is b. Its normalized score does not stay at the place that it had among a and b."""
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


def same(scores: IntArray) -> IntArray:
    return scores


def one_more(scores: IntArray) -> IntArray:
    return scores + 1


@pytest.mark.parametrize(("most", "normalize"), [(101, same), (100, one_more)], ids=["a sum", "normalized"])
def test_a_score_out_of_bounds_without_the_pod_is_left_to_schedule(
    most: int, normalize: Callable[[IntArray], IntArray], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every node has a pod, so that each score is 100; on the node that a pod leaves it is 101."""

    def score(self: object, state: object, pod: object, nodes: NodeTable) -> IntArray:
        return np.int64(most) - nodes.pod_count

    def normalized(self: object, state: object, pod: object, nodes: NodeTable, scores: IntArray) -> IntArray:
        return normalize(scores)

    monkeypatch.setattr(ImageLocality, "score", score)
    monkeypatch.setattr(ImageLocality, "touches", lambda self, pod: Touch.NODE)
    if normalize is not same:
        monkeypatch.setattr(ImageLocality, "normalize_score", normalized)
    objects = [
        *(node(name, allocatable={"cpu": "1", "memory": "1Gi", "pods": "2"}) for name in "abc"),
        *(pod(f"web-{name}", on=name) for name in "abc"),
    ]
    cluster = MovingCluster(Snapshot.from_objects(objects))
    scheduler = FrameworkScheduler.of(None, resolve(), cluster.snapshot)
    framework = scheduler.framework(scheduler.config.profiles[0])
    profiles = Profiles(cluster, [framework])
    assert [outlooks for _, outlooks in LeaveOneOut(profiles, range(3))] == [None, None, None]
