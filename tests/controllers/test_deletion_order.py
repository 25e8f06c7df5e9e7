"""Which pods of a workload its controller deletes first."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

import kschedx
from kschedx.controllers.workloads import Workload, deletion_order
from kschedx.errors import InputError
from tests.builders import Manifest, node, pod

COST: dict[str, Any] = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-1"}}
READ = "2026-06-20T00:00:00Z"


def made(name: str, day: int = 0, uid: str = "", on: str | None = "n", **metadata: object) -> Manifest:
    created = {"creationTimestamp": f"2026-06-{day:02}T00:00:00Z"} if day else {}
    return pod(name, on=on, metadata={"uid": uid, **created, **metadata})


@pytest.mark.parametrize(
    ("taken", "pods", "deleted_first"),
    [
        ("", [made("a", 10), made("b", 11)], "b"),
        (READ, [made("a", 10, "2"), made("b", 11, "1")], "b"),
        (READ, [made("a", 10, "1"), made("b", 11, "2")], "a"),
        (READ, [made("a", 10, "1"), made("b", 19, "2")], "b"),
        (READ, [made("a", 10, "1"), made("b", uid="2")], "b"),
        (READ, [made("a", 10, "1", **COST), made("b", 19, "2")], "a"),
        (READ, [made("a", 10, "1"), made("b", 11, "2", on=None)], "b"),
        (READ, [made("a", 19, "1", on="other"), made("b", 10, "2"), made("c", 10, "3")], "b"),
    ],
    ids=[
        "the younger, if it is unknown when the cluster was read",
        "the lower UID of two that are about as old",
        "the lower UID, also if it is the older pod",
        "the younger of two whose ages differ",
        "a pod without a time",
        "the lower cost",
        "a pod without a node",
        "a pod that shares its node",
    ],
)
def test_pods_are_deleted_in_the_order_of_the_replica_set_controller(
    taken: str, pods: list[Manifest], deleted_first: str
) -> None:
    snapshot = kschedx.Snapshot.from_objects([node("n"), node("other"), *pods])
    snapshot = replace(snapshot, source=replace(snapshot.source, taken=taken))
    order = deletion_order(snapshot, Workload("ReplicaSet", "default", "web"), range(len(pods)))
    assert snapshot.pods.names[order[0]] == deleted_first


def test_a_pod_that_does_not_run_yet_is_deleted_before_one_that_is_not_ready() -> None:
    unready = [{"type": "Ready", "status": "False"}]
    starting = pod("starting", on="n", status={"phase": "Pending", "conditions": unready})
    running = pod("running", on="n", status={"phase": "Running", "conditions": unready}, metadata=COST)
    snapshot = kschedx.Snapshot.from_objects([node("n"), starting, running])
    assert deletion_order(snapshot, Workload("ReplicaSet", "default", "web"), range(2)) == [0, 1]


def test_pods_of_all_replica_sets_of_a_deployment_count_on_their_nodes() -> None:
    snapshot = kschedx.Snapshot.from_objects(
        [node("n"), node("other"), made("a", 10, on="other"), made("b", 10), made("new", 10)]
    )
    workload = Workload("Deployment", "default", "web")
    assert deletion_order(snapshot, workload, [1, 0], related=[0, 1, 2])[0] == 1
    assert deletion_order(snapshot, workload, [0, 1], related=[0, 1, 2])[0] == 1


def test_the_job_controller_ignores_costs_and_shared_nodes() -> None:
    pods = [made("a", 10, **COST), made("b", 10), made("young", 11, on="other")]
    snapshot = kschedx.Snapshot.from_objects([node("n"), node("other"), *pods])
    assert deletion_order(snapshot, Workload("Job", "default", "etl"), range(3))[0] == 2


def test_the_error_about_an_invalid_time_names_the_pod() -> None:
    odd = made("odd", creationTimestamp="yesterday")
    snapshot = kschedx.Snapshot.from_objects([node("n"), made("a", 10), odd])
    with pytest.raises(InputError, match=r'^Pod default/odd: metadata\.creationTimestamp: "yesterday" is not a time'):
        deletion_order(snapshot, Workload("ReplicaSet", "default", "web"), range(2))
