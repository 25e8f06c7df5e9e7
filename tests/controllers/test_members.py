"""The pods of a workload, by the names of their controllers."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.controllers.workloads import Workload, member_rows
from tests.builders import Manifest, pod


def owned(
    name: str, kind: str, owner: str, *, namespace: str = "default", template: str = "", phase: str = "Running"
) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": owner, "controller": True}
    labels = {"pod-template-hash": template} if template else {}
    metadata = {"namespace": namespace, "ownerReferences": [reference], "labels": labels}
    return pod(name, metadata=metadata, status={"phase": phase})


def replica_set(name: str, deployment: str) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment, "uid": deployment, "controller": True}
    metadata = {"name": name, "namespace": "default", "ownerReferences": [owner]}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": {"template": {"spec": {}}}}


OBJECTS = (
    replica_set("legacy", "web"),
    owned("a", "ReplicaSet", "web-1", template="1"),
    owned("b", "ReplicaSet", "web-x-2", template="2"),
    owned("c", "ReplicaSet", "web-x-3", template="x-3"),
    owned("d", "ReplicaSet", "legacy"),
    owned("e", "ReplicaSet", "web-1", template="1", phase="Succeeded"),
    owned("f", "ReplicaSet", "web-1", template="1", namespace="other"),
    owned("g", "StatefulSet", "web"),
    owned("h", "StatefulSet", "web-0"),
    pod("i"),
)


@pytest.mark.parametrize(
    ("workload", "names"),
    [
        (Workload("Deployment", "default", "web"), "acd"),
        (Workload("Deployment", "default", "web-x"), "b"),
        (Workload("Deployment", "other", "web"), "f"),
        (Workload("ReplicaSet", "default", "web-1"), "a"),
        (Workload("ReplicaSet", "default", "legacy"), "d"),
        (Workload("StatefulSet", "default", "web"), "g"),
        (Workload("Pod", "default", "i"), "i"),
        (Workload("Pod", "default", "a"), ""),
        (Workload("DaemonSet", "default", "web"), ""),
    ],
    ids=str,
)
@pytest.mark.parametrize("is_reversed", [False, True])
def test_the_pods_of_a_workload(workload: Workload, names: str, *, is_reversed: bool) -> None:
    snapshot = kschedx.Snapshot.from_objects(OBJECTS[::-1] if is_reversed else OBJECTS)
    rows = member_rows(snapshot, workload)
    assert rows == sorted(rows)
    assert sorted(snapshot.pods.names[row] for row in rows) == list(names)
