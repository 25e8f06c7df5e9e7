"""Why a machine of Cluster API or OpenShift has no node, and why what creates machines lacks nodes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kschedx.inquiry.objects import ANSWERS
from kschedx.kube.autoscalers import Machine
from kschedx.kube.kinds import KINDS
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node
from tests.command import kschedx
from tests.inquiry.objects import answer_of

API, OPENSHIFT = "cluster.x-k8s.io/v1beta2", "machine.openshift.io/v1beta1"
WAITS = "DockerMachine status.initialization.provisioned is false"
QUOTA = "failed to run instance: VcpuLimitExceeded"


def condition(kind: str, status: str, reason: str, message: str, **fields: str) -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message, **fields}


def machine(*conditions: Manifest, name: str = "md-b", api: str = API, **status: Any) -> Manifest:
    labels = {"cluster.x-k8s.io/deployment-name": "md"}
    deleted = {"deletionTimestamp": "2026-01-01T00:00:00Z"} if status.get("phase") == "Deleting" else {}
    metadata = {"name": name, "namespace": "capi", "labels": labels, **deleted}
    return {"apiVersion": api, "kind": "Machine", "metadata": metadata, "status": {"conditions": conditions, **status}}


def scalable(ready: int | None = 1, kind: str = "MachineDeployment", api: str = API, **spec: Any) -> Manifest:
    status = {"conditions": spec.pop("conditions", [])} | ({} if ready is None else {"readyReplicas": ready})
    metadata = {"name": "md", "namespace": "capi"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": {"replicas": 2, **spec}, "status": status}


BY_ANNOTATION = scalable()
BY_ANNOTATION["metadata"] = {**at(BY_ANNOTATION, "metadata"), "annotations": {"cluster.x-k8s.io/paused": "true"}}
READY = machine(name="md-a", nodeRef={"name": "a"}, phase="Running")
FAILED = machine(condition("InfrastructureReady", "False", "InstanceProvisionFailed", QUOTA), phase="Provisioning")
BEGUN = machine(condition("InfrastructureReady", "False", "NotReady", WAITS), phase="Provisioning")
LEAVES = machine(condition("Deleting", "True", "DrainingNode", "Drain not completed yet:\n* Pod x"), phase="Deleting")


OF_SET = machine(api=OPENSHIFT, errorMessage=QUOTA, phase="Failed")
OF_SET["metadata"] = {
    **at(OF_SET, "metadata"),
    "ownerReferences": [{"apiVersion": OPENSHIFT, "kind": "MachineSet", "name": "md", "uid": "u", "controller": True}],
}


@pytest.mark.parametrize(
    ("target", "objects", "code", "does", "cause", "fix"),
    [
        ("machine/md-a", [READY, node("a")], 0, "has node a", "", ""),
        ("ma/md-b", [FAILED], 1, "has no node (phase Provisioning)", QUOTA, f"repair machine md-b: {QUOTA}"),
        ("machine/md-b", [BEGUN], 1, "has no node (phase Provisioning)", WAITS, "wait until md-b has a node"),
        ("machine/md-b", [LEAVES], 1, "is being deleted (since 2026-01-01T00:00:00Z)", "* Pod x", ""),
        ("machine/md-a", [READY], 1, "has no node: a does not exist", "", "delete machine md-a"),
        (
            "machine/md-b",
            [machine(api=OPENSHIFT, errorMessage=QUOTA, phase="Failed")],
            1,
            "has no node (phase Failed)",
            QUOTA,
            f"repair machine md-b: {QUOTA}",
        ),
        (
            "machine/md-b",
            [OF_SET],
            1,
            "has no node (phase Failed)",
            QUOTA,
            f"delete machine md-b, which is then created again: {QUOTA}",
        ),
        (
            "machinedeployment/md",
            [scalable(), READY, FAILED, node("a")],
            1,
            "lacks 1 of 2 ready nodes",
            f"machine md-b has no node (phase Provisioning): {QUOTA}",
            f"repair machine md-b: {QUOTA}",
        ),
        (
            "machineset/md",
            [scalable(kind="MachineSet", api=OPENSHIFT), machine(api=OPENSHIFT, errorMessage=QUOTA)],
            1,
            "lacks 1 of 2 ready nodes",
            f"machine md-b has no node: {QUOTA}",
            f"repair machine md-b: {QUOTA}",
        ),
        *(
            (
                "md/md",
                [paused],
                1,
                "lacks 1 of 2 ready nodes",
                "it is paused: its controller creates and deletes no machine",
                "resume the MachineDeployment",
            )
            for paused in (scalable(paused=True), BY_ANNOTATION)
        ),
        (
            "machinepool/md",
            [scalable(kind="MachinePool", conditions=[condition("InfrastructureReady", "False", "X", QUOTA)])],
            1,
            "lacks 1 of 2 ready nodes",
            QUOTA,
            f"repair MachinePool md: {QUOTA}",
        ),
        ("md/md", [scalable(2)], 0, "has all of its 2 nodes", "", ""),
        ("md/md", [scalable(None)], 3, "is undecided: how many nodes it has is not known", "its status is empty", ""),
    ],
)
def test_machines_and_what_creates_them(
    target: str, objects: list[Manifest], code: int, does: str, cause: str, fix: str
) -> None:
    answer = answer_of(target, *objects, namespace="capi")
    assert (answer.code, answer.headline.partition(" ")[2]) == (code, does)
    assert cause in answer.causes if cause else not answer.causes
    assert any(title.startswith(fix) for title in answer.fixes) if fix else not answer.fixes


@pytest.mark.parametrize(
    ("reason", "message", "severity", "is_failure"),
    [
        ("InstanceProvisionFailed", QUOTA, "", True),
        ("InstanceProvisionFailed", QUOTA, "Error", True),
        ("WaitingForBootstrapData", "", "Info", False),
        ("WaitingForBootstrapData", "Bootstrap provider initialization", "", False),
        ("NotProvisioned", "creating the instance", "", False),
        ("NotReady", WAITS, "", False),
        ("NotReady", f"* InfrastructureReady: {WAITS}\n* NodeHealthy: Waiting for a Node to exist", "", False),
        ("NotReady", f"* InfrastructureReady: {WAITS}\n* InstanceReady: {QUOTA}", "", True),
    ],
)
def test_a_condition_without_severity_is_a_failure_unless_it_only_waits(
    reason: str, message: str, severity: str, *, is_failure: bool
) -> None:
    stored = machine(condition("InfrastructureReady", "False", reason, message, severity=severity))
    [read] = Snapshot.from_objects([stored]).of(Machine)
    assert (read.failure, read.progress) == ((message, "") if is_failure else ("", message))


def test_every_kind_that_is_a_subject_has_an_answer() -> None:
    assert {kind.key for kind in KINDS.values() if kind.is_subject} == ANSWERS.keys()


def test_the_command_that_scales_machines_has_the_number_of_its_fix(tmp_path: Path) -> None:
    idle = {**scalable(replicas=0), "status": {"replicas": 0}}
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "8"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    (tmp_path / "web.json").write_text(json.dumps(web))
    small = node("n", allocatable={"cpu": "1", "pods": "9"})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [small, idle]}))
    out = kschedx("why", "web.json", "-s", "cluster.json", cwd=tmp_path, columns=400).out
    name, namespace = (at(idle, "metadata")[field] for field in ("name", "namespace"))
    assert f"scale MachineDeployment {namespace}/{name} from 0 to 3" in out
    assert f"kubectl scale machinedeployment {name} -n {namespace} --replicas=3" in out
