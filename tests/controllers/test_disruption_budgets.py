"""The status that the disruption controller computes for a PodDisruptionBudget."""

from __future__ import annotations

import pytest

from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod

NO_SCALE = "daemonsets.apps does not implement the scale subresource"


def replica_set(replicas: int) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "uid": "u"}, "spec": spec}


def members(number: int, kind: str = "ReplicaSet", phase: str = "Running") -> list[Manifest]:
    """Pods of a controller `web`; without a kind, pods without a controller."""
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "u", "controller": True}
    ready = {"type": "Ready", "status": "True" if phase == "Running" else "False"}
    made = []
    for index in range(number):
        status = {"phase": phase, "conditions": [ready]}
        name = f"{kind.lower()}-{phase.lower()}-{index}"
        item = pod(name, labels={"app": "web"}, on="n", status=status)
        metadata = {**at(item, "metadata"), **({"ownerReferences": [owner]} if kind else {})}
        made.append({**item, "metadata": metadata})
    return made


@pytest.mark.parametrize(
    ("objects", "spec", "healthy", "needed", "allowed", "failure"),
    [
        ([replica_set(4), *members(4)], {"maxUnavailable": 1}, 4, 3, 1, ""),
        ([replica_set(4), *members(3)], {"maxUnavailable": 1}, 3, 3, 0, ""),
        ([replica_set(4), *members(4)], {"minAvailable": "34%"}, 4, 2, 2, ""),  # 1.36 pods, rounded up
        ([replica_set(4), *members(3, phase="Failed")], {"maxUnavailable": 1}, 0, 3, -3, ""),  # 4 are still expected
        # a pod without a controller is not expected, but may be healthy
        ([*members(4, kind="")], {"minAvailable": 3}, 4, 3, 1, ""),
        ([*members(4, kind="")], {"maxUnavailable": 1}, 4, 0, 0, ""),
        ([*members(4, kind="")], {"minAvailable": "50%"}, 4, 0, 0, ""),
        ([replica_set(2), *members(2), *members(4, kind="")], {"maxUnavailable": 1}, 6, 1, 5, ""),
        ([replica_set(0), *members(1)], {"maxUnavailable": 1}, 1, 0, 0, ""),
        # nobody counts the pods of a DaemonSet, but a number of them needs no count
        ([*members(3, kind="DaemonSet")], {"maxUnavailable": 1}, 3, 0, 0, NO_SCALE),
        ([*members(3, kind="DaemonSet")], {"minAvailable": 1}, 3, 1, 2, ""),
        ([*members(3, kind="CloneSet")], {"maxUnavailable": 1}, 3, 2, 1, ""),  # its replicas are not in the dump
    ],
)
def test_status(objects: list[Manifest], spec: Manifest, healthy: int, needed: int, allowed: int, failure: str) -> None:
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }
    snapshot = Snapshot.from_objects([node("n"), *objects, budget])
    (moving,) = budgets_of(snapshot, snapshot)
    status = moving.current_status(snapshot, snapshot.pods, ())
    counted = (status.healthy, status.needed, status.allowed, status.failure)
    assert counted == (healthy, needed, allowed, failure)
