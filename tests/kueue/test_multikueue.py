"""Workloads that MultiKueue dispatches: their pods run in worker clusters, which may be missing or not connected."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.cli.manifests import write
from tests.command import kschedx
from tests.kueue.objects import KUEUE, Json, check, flavor, local, queue, workload

DOWN: Json = {"type": "Active", "status": "False", "reason": "ClientConnectionFailed", "message": "no route to host"}
UP: Json = {"type": "Active", "status": "True", "reason": "Active", "message": "Connected"}
PENDING: Json = {"name": "mk", "state": "Pending", "message": ""}
READY: Json = {**PENDING, "state": "Ready"}
SEEN: Json = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}
ADMITTED: Json = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""}
ADMISSION: Json = {"clusterQueue": "q", "podSetAssignments": [{"name": "main", "flavors": {"cpu": "f"}, "count": 1}]}
CONNECT = "repair the connection to MultiKueueCluster {}: no route to host"


def worker(name: str, active: Json) -> Json:
    return {
        "apiVersion": KUEUE,
        "kind": "MultiKueueCluster",
        "metadata": {"name": name},
        "status": {"conditions": [active]},
    }


def of_multikueue(*names: str, is_active: bool = True) -> list[Json]:
    made = check("mk", is_active=is_active)
    parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "workers"}
    config = {
        "apiVersion": KUEUE,
        "kind": "MultiKueueConfig",
        "metadata": {"name": "workers"},
        "spec": {"clusters": names},
    }
    spec = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
    strategy = {"admissionChecks": [{"name": "mk"}]}
    return [{**made, "spec": spec}, config, flavor(), queue("q", admissionChecksStrategy=strategy), local("q")]


INACTIVE: Json = {
    **of_multikueue()[0],
    "status": {
        "conditions": [
            {
                "type": "Active",
                "status": "False",
                "reason": "NoUsableClusters",
                "message": "Inactive clusters: [w1]",
            }
        ]
    },
}
"""The check of worker clusters that the dump lacks."""


def dispatched(*conditions: Json, check: Json = PENDING, **status: Any) -> Json:
    return workload("train", conditions=list(conditions), admissionChecks=[check], admission=ADMISSION, **status)


@pytest.mark.parametrize(
    ("objects", "headline", "facts", "fixes"),
    [
        (
            [*of_multikueue("w1", "w2"), worker("w1", DOWN), worker("w2", UP), dispatched(SEEN)],
            "waits for the admission check mk",
            ["w1 is not active (ClientConnectionFailed): no route to host"],
            [CONNECT.format("w1"), "see in worker cluster w2 why Kueue does not admit Workload ml/train there"],
        ),
        (
            [*of_multikueue("w1"), worker("w1", {"type": "Active", "status": "Unknown"}), dispatched(SEEN)],
            "waits for the admission check mk",
            ["w1 is not active: Active is Unknown"],
            ["repair the connection to MultiKueueCluster w1: Active is Unknown"],
        ),
        (
            [*of_multikueue("w1", "w3"), worker("w1", UP), dispatched(SEEN)],
            "waits for the admission check mk",
            ["w3 does not exist"],
            ["create MultiKueueCluster w3, or name another one in the MultiKueueConfig"],
        ),
        (
            [*of_multikueue("w1", is_active=False), worker("w1", DOWN), workload("train")],
            "waits in Kueue because ClusterQueue q has the inactive AdmissionCheck mk",
            [],
            [CONNECT.format("w1")],
        ),
        (
            [*of_multikueue("w1"), worker("w1", DOWN), dispatched(SEEN, ADMITTED, check=READY, clusterName="w1")],
            "runs in worker cluster w1, to which MultiKueue dispatched its Workload",
            ["w1 is not active (ClientConnectionFailed): no route to host"],
            [CONNECT.format("w1")],
        ),
        (
            [*of_multikueue("w1"), dispatched(SEEN)],
            "waits for the admission check mk",
            [],
            ["see in worker cluster w1"],
        ),
        (
            [INACTIVE, *of_multikueue()[2:], dispatched(SEEN)],
            "waits for the admission check mk",
            ["Active (NoUsableClusters): Inactive clusters: [w1]"],
            ["repair AdmissionCheck mk: Inactive clusters: [w1]"],
        ),
    ],
)
def test_a_dispatched_workload_names_the_worker_clusters_that_cannot_run_it(
    objects: list[Json], headline: str, facts: list[str], fixes: list[str], tmp_path: Path
) -> None:
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n"},
        "status": {"allocatable": {"cpu": "8"}},
    }
    result = kschedx("why", "workload/train", "-n", "ml", "-s", write(tmp_path, *objects, node), "-o", "wide")
    shown = " ".join(result.out.split())
    assert headline in shown
    assert all(text in shown for text in (*facts, *fixes))
    assert "fits n" not in shown
