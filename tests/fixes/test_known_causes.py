"""Causes that the cluster's objects state: each is named on the first lines, and the expert's fix comes first."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from kschedx.explain.diagnosis import Diagnosis
from kschedx.render.outcome import causes, roots
from tests.builders import Manifest, at, node, pod
from tests.device_builders import DRIVER, claim, claiming, device_class, request

GPU = "nvidia.com/gpu"
UNHEALTHY = {"capacity": {GPU: "2"}, "allocatable": {GPU: "0", "pods": "9"}}
HARDWARE = {"gpu.example.com/model": "a100"}


def asking(name: str, on: str | None = None, **requests: str) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": requests}}])


def resized(name: str, on: str, requested: str, allocated: str) -> Manifest:
    one = asking(name, on, cpu=requested)
    condition = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}
    given = {"name": "main", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": allocated}}}
    return {**one, "status": {"phase": "Running", "conditions": [condition], "containerStatuses": [given]}}


def stored(kind: str, name: str, **fields: Any) -> Manifest:
    version = {"StorageClass": "storage.k8s.io/v1"}.get(kind, "v1")
    metadata = {"name": name, "uid": f"u-{name}"} | ({} if kind == "StorageClass" else {"namespace": "default"})
    return {"apiVersion": version, "kind": kind, "metadata": metadata | fields.pop("metadata", {}), **fields}


def storage(class_name: str, **fields: Any) -> Manifest:
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return stored("PersistentVolumeClaim", "data", spec={**wants, "storageClassName": class_name}, **fields)


def made(name: str, mode: str = "WaitForFirstConsumer") -> Manifest:
    return stored("StorageClass", name, provisioner="csi.example.com", volumeBindingMode=mode)


DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
FAILED: Manifest = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "data.1", "namespace": "default"},
    "involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u-data"},
    "reason": "ProvisioningFailed",
    "message": "quota of disks exceeded",
    "type": "Warning",
}
DELETED = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}}


@pytest.mark.parametrize(
    ("objects", "cause", "fix"),
    [
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}),
                resized("greedy", "a", "3500m", "1"),
                asking("me", cpu="1"),
            ],
            "the resize of default/greedy on a is Deferred",
            "withdraw the resize of default/greedy: set main to 1 CPU again",
            id="a pending resize",
        ),
        pytest.param(
            [node("a", allocatable={"nvidia.com/mig-1g.10gb": "7", "pods": "9"}), asking("me", **{GPU: "1"})],
            "the nodes have 7 nvidia.com/mig-1g.10gb on 1 node instead of nvidia.com/gpu",
            "request nvidia.com/mig-1g.10gb instead of nvidia.com/gpu",
            id="partitions",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}),
                asking("low", "a", cpu="3"),
                pod(
                    "me",
                    priority=9,
                    preemptionPolicy="Never",
                    containers=at(asking("me", cpu="2"), "spec")["containers"],
                ),
            ],
            "the pod has preemptionPolicy Never, so that no pod of a lower priority is evicted",
            "add a node like a",
            id="a pod that may not preempt",
        ),
        pytest.param(
            [{**node("a"), "status": UNHEALTHY}, asking("me", **{GPU: "1"})],
            "a: capacity 2 nvidia.com/gpu, allocatable 0; its device plugin reports unhealthy devices",
            "repair the device plugin for nvidia.com/gpu on a",
            id="unhealthy devices",
        ),
        pytest.param(
            [
                node("a", labels=HARDWARE),
                device_class("gpu", f'device.driver == "{DRIVER}"'),
                claim("mine", request()),
                claiming("mine"),
            ],
            f"no ResourceSlice of driver {DRIVER} exists",
            f"run the DRA driver {DRIVER} on a ({DRIVER}/model=a100), so that it publishes devices",
            id="a driver that does not run",
        ),
        pytest.param(
            [node("a"), storage("", **DELETED), pod("old", on="a", volumes=DATA), pod("me", volumes=DATA), made("x")],
            "claim default/data is being deleted",
            "delete default/old, which still uses claim default/data, and recreate the claim",
            id="a claim that is being deleted and used",
        ),
        pytest.param(
            [node("a"), storage("fats"), made("fast"), made("slow"), pod("me", volumes=DATA)],
            "claim default/data names storage class fats, which does not exist",
            "delete and recreate claim default/data with class fast instead of fats",
            id="a class that is nearly called so",
        ),
        pytest.param(
            [node("a"), storage("premium"), made("slow"), pod("me", volumes=DATA)],
            "claim default/data names storage class premium, which does not exist",
            "delete and recreate claim default/data with class slow instead of premium",
            id="a class that does not exist",
        ),
        pytest.param(
            [node("a"), storage("fast"), made("fast", "Immediate"), FAILED, pod("me", volumes=DATA)],
            "the last event of claim default/data: ProvisioningFailed: quota of disks exceeded",
            "raise the storage quota of csi.example.com, or free capacity there, so that csi.example.com provisions",
            id="a volume that is not provisioned",
        ),
    ],
)
def test_cause_and_first_fix(objects: list[Manifest], cause: str, fix: str) -> None:
    found = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    diagnosis = Diagnosis(found.cycle)
    assert any(one.startswith(cause) for one in (*causes(diagnosis), *roots(diagnosis)))
    assert found.fixes[0].title.startswith(fix)
    assert found.fixes[0].certainty == "verified"


def test_an_event_of_an_earlier_claim_is_not_quoted() -> None:
    other = {**FAILED, "involvedObject": {**at(FAILED, "involvedObject"), "uid": "u-earlier"}}
    objects = [node("a"), storage("fast"), made("fast", "Immediate"), other, pod("me", volumes=DATA)]
    found = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert roots(Diagnosis(found.cycle)) == ()
