"""Pods that an unknown webhook or plugin refuses: the answer quotes the controller's FailedCreate event."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Manifest
from tests.cli.manifests import NODE, POD, changed, write
from tests.command import CommandResult, kschedx

WEBHOOK = 'admission webhook "policy.example.com" denied the request: images need a digest'
REFUSAL = f'Error creating: pods "web-6d9f-x2b7k" is forbidden: {WEBHOOK}'
TIME = "2026-03-03T09:12:00Z"
TEMPLATE: Manifest = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "registry.example/app:v1"}], "dnsPolicy": "ClusterFirst"},
}
SPEC: Manifest = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}


def workload(kind: str, name: str, uid: str, *owners: Manifest) -> Manifest:
    metadata: Manifest = {"name": name, "namespace": "shop", "uid": uid, "creationTimestamp": TIME}
    owned = {**metadata, "ownerReferences": [*owners]}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": owned, "spec": SPEC}


def owner(kind: str, name: str, uid: str) -> Manifest:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": True}


RUNNING = changed(POD, "spec.nodeName", "node-01")
DEPLOYMENT = workload("Deployment", "web", "d")
REPLICA_SET = workload("ReplicaSet", "web-6d9f", "r", owner("Deployment", "web", "d"))


def event(message: str = REFUSAL, *, uid: str = "r", seen: str = "2026-03-03T09:40:00Z") -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"web.{seen[11:19].replace(':', '')}", "namespace": "shop"},
        "reason": "FailedCreate",
        "type": "Warning",
        "message": message,
        "count": 14,
        "lastTimestamp": seen,
        "involvedObject": {"kind": "ReplicaSet", "namespace": "shop", "name": "web-6d9f", "uid": uid},
    }


def why(folder: Path, *cluster: Manifest, target: str = "deploy/web") -> CommandResult:
    write(folder, NODE, DEPLOYMENT, REPLICA_SET, *cluster)
    return kschedx("why", target, "-n", "shop", "-s", "cluster.yaml", cwd=folder, columns=400)


@pytest.mark.parametrize("target", ["deploy/web", "rs/web-6d9f"])
def test_the_newest_event_is_the_answer(target: str, tmp_path: Path) -> None:
    result = why(tmp_path, event(), event("Error creating: old", seen="2026-03-03T09:12:01Z"), target=target)
    seen = "the cluster's own event, 14 times, last at 2026-03-03T09:40:00Z, and that pod does not exist"
    assert (result.code, result.out.splitlines()[1:3]) == (
        1,
        [f"  because   {REFUSAL}", f"            ReplicaSet web-6d9f, {seen}"],
    )


def test_an_event_does_not_count_if_the_pods_exist_or_it_is_about_another_workload(tmp_path: Path) -> None:
    owned = changed(POD, "metadata.ownerReferences", [owner("ReplicaSet", "web-6d9f", "r")])
    assert why(tmp_path, event(), changed(owned, "spec.nodeName", "node-01")).code == 0
    assert why(tmp_path, event(uid="before")).code == 0


def test_an_event_does_not_count_for_a_manifest(tmp_path: Path) -> None:
    write(tmp_path, NODE, DEPLOYMENT, REPLICA_SET, event())
    write(tmp_path, {**DEPLOYMENT, "metadata": {"name": "web", "namespace": "shop"}}, name="web.yaml")
    assert kschedx("why", "-f", "web.yaml", "-s", "cluster.yaml", cwd=tmp_path).code == 0


def test_a_list_without_pending_pods_names_refused_ones(tmp_path: Path) -> None:
    write(tmp_path, NODE, DEPLOYMENT, REPLICA_SET, event())
    result = kschedx("why", "--all-pending", "-A", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert result.code == 1
    assert result.out.startswith("✗ 2 pods are not created")
    assert REFUSAL in result.out
    assert "kschedx why deploy/web -n shop" in result.out
    gone = {**REPLICA_SET, "spec": {**SPEC, "replicas": 0}}
    write(tmp_path, NODE, DEPLOYMENT, gone, event(), RUNNING, name="later.yaml")
    later = kschedx("why", "--all-pending", "-A", "-s", "later.yaml", cwd=tmp_path, columns=400)
    assert later.out.startswith("✓ no pod is pending")
    elsewhere = kschedx("why", "--all-pending", "-n", "other", "-s", "cluster.yaml", cwd=tmp_path, columns=400)
    assert elsewhere.out.startswith("✓ no pod is pending")


def test_a_snapshot_keeps_the_event(tmp_path: Path) -> None:
    write(tmp_path, NODE, DEPLOYMENT, REPLICA_SET, event())
    assert kschedx("snapshot", "-s", "cluster.yaml", "-o", "kept.json", cwd=tmp_path).code == 0
    result = kschedx("why", "deploy/web", "-n", "shop", "-s", "kept.json", cwd=tmp_path, columns=400)
    assert (result.code, REFUSAL in result.out) == (1, True)
