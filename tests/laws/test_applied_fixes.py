"""The changes that a fix prints, given to `kschedx simulate`, give the outcome that the fix promised."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import kschedx
from kschedx.fixes import Change
from tests.builders import Manifest, at, node, pod
from tests.laws.json_patch import changed

NAMESPACE = "default"


def cluster(seed: int) -> list[Manifest]:
    """A few nodes with pods on them, and a Deployment of one replica whose pod is pending."""
    lots = random.Random(seed)
    nodes = [
        node(
            f"n{number}",
            allocatable={"cpu": str(lots.choice((1, 2, 4))), "memory": "4Gi", "pods": "10"},
            labels={"kubernetes.io/hostname": f"n{number}", "pool": lots.choice(("a", "b"))},
            taints=lots.choice(([], [], ["team=x:NoSchedule"])),
            unschedulable=lots.random() < 0.2,
        )
        for number in range(lots.randint(1, 4))
    ]
    running = [
        pod(
            f"busy-{number}",
            on=f"n{number}",
            containers=[{"name": "c", "resources": {"requests": {"cpu": lots.choice(("500m", "1"))}}}],
        )
        for number in range(len(nodes))
    ]
    spec: Manifest = {
        "containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": lots.choice(("1", "2", "3"))}}}],
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": lots.choice(({}, {"pool": "a"}, {"pool": "aa"}, {"team": "x"})),
    }
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selected = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE, "uid": "d"},
        "spec": selected,
    }
    labels = {"app": "web", "pod-template-hash": "1"}
    replica_set: Manifest = {
        **deployment,
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": NAMESPACE, "uid": "r", "labels": labels, "ownerReferences": [owner]},
    }
    of_set = {**owner, "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    mine = pod("web-1-x", labels=labels, metadata={"uid": "p", "ownerReferences": [of_set]}, spec=spec)
    return [*nodes, *running, deployment, replica_set, mine]


def given_back(objects: list[Manifest], changes: tuple[Change, ...], path: Path) -> list[dict[str, object]]:
    """What a user would give to `simulate`: the manifests as they are then, and the pods that are deleted."""
    told = [change.to_dict() for change in changes]
    after = changed(objects, told)
    touched = {(one.target.kind, one.target.name) for one in changes if not one.delete}
    applied = [one for one in after if (one["kind"], at(one, "metadata")["name"]) in touched]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": applied}))
    deleted: list[dict[str, object]] = [{"delete": f"pod/{one.target.name}"} for one in changes if one.delete]
    if applied:
        deleted.append({"apply": str(path)})
    return deleted


@pytest.mark.parametrize("seed", range(40))
def test_a_printed_fix_gives_the_pod_a_node(seed: int, tmp_path: Path) -> None:
    objects = cluster(seed)
    snapshot = kschedx.Snapshot.from_objects(objects)
    for fix in kschedx.explain(snapshot, f"{NAMESPACE}/web-1-x").fixes:
        if fix.certainty != "verified":
            continue
        simulation = kschedx.simulate(snapshot, changes=given_back(objects, fix.apply, tmp_path / "fix.json"))
        pending = simulation.to_dict()["pending"]
        assert isinstance(pending, list)
        assert not [key for key in pending if key.startswith(f"{NAMESPACE}/web-")], fix.title
