"""A new pod that a ResourceQuota refuses: the words that somebody would read, and exit code 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, node, pod
from tests.command import kschedx

HARD = {"cpu": "10", "requests.storage": "10Gi"}
QUOTA: Manifest = {
    "apiVersion": "v1",
    "kind": "ResourceQuota",
    "metadata": {"name": "q", "namespace": "default"},
    "spec": {"hard": HARD},
    "status": {"hard": HARD, "used": {"cpu": "9500m", "requests.storage": "5Gi"}},
}
ASKED: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]}
SMALL: Manifest = {"containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "100m"}}}]}
DATA: Manifest = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "8Gi"}}}}
SAID = "exceeded quota: q, requested: cpu=1, used: cpu=9500m, limited: cpu=10"


def workload(kind: str, spec: Manifest, **more: object) -> Manifest:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selector = {"matchLabels": {"app": "web"}}
    own: Manifest = {"template": template} if kind == "Job" else {"template": template, "selector": selector}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": "web"}, "spec": {**own, **more}}


def bare(spec: Manifest) -> Manifest:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": spec}


def asked(tmp_path: Path, manifest: Manifest, *more: Manifest) -> tuple[int, str]:
    cluster, file = tmp_path / "cluster.json", tmp_path / "new.json"
    cluster.write_text(
        json.dumps({"kind": "List", "items": [node("n", allocatable={"cpu": "64", "pods": "9"}), *more]})
    )
    file.write_text(json.dumps(manifest))
    ran = kschedx("why", str(file), "--snapshot", str(cluster))
    return ran.code, ran.err


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        (bare(ASKED), f'pods "x" is forbidden: {SAID}'),
        (workload("Deployment", ASKED), "Error creating: pods "),
        (workload("Job", {**ASKED, "restartPolicy": "Never"}), "Error creating: pods "),
        (
            workload("StatefulSet", ASKED, serviceName="web"),
            f'create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: {SAID}',
        ),
        (
            workload("StatefulSet", SMALL, serviceName="web", volumeClaimTemplates=[DATA]),
            "create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: persistentvolumeclaims ",
        ),
    ],
    ids=["pod", "deployment", "job", "stateful-set", "claim"],
)
def test_the_refusal(tmp_path: Path, manifest: Manifest, words: str) -> None:
    code, said = asked(tmp_path, manifest, QUOTA)
    assert code == 1
    assert words in said
    assert "exceeded quota: q" in said


def test_what_the_quota_leaves_room_for(tmp_path: Path) -> None:
    assert asked(tmp_path, bare(SMALL), QUOTA)[0] == 0
    elsewhere = {**QUOTA, "metadata": {"name": "q", "namespace": "other"}}
    assert asked(tmp_path, bare(ASKED), elsewhere)[0] == 0


def test_a_workload_that_has_its_pods_is_counted_already(tmp_path: Path) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web", "uid": "u", "controller": True}
    there = pod("web-0", on="n", metadata={"ownerReferences": [owner]}, spec=ASKED)
    assert asked(tmp_path, workload("StatefulSet", ASKED, serviceName="web"), QUOTA, there)[0] == 0


def test_a_refusal_is_a_group_and_the_others_are_told(tmp_path: Path) -> None:
    """Three replicas that a quota refuses, a pod that a LimitRange refuses, and one that fits."""
    limits: Manifest = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "l", "namespace": "tight"},
        "spec": {"limits": [{"type": "Container", "min": {"cpu": "1"}}]},
    }
    (tmp_path / "cluster.json").write_text(
        json.dumps({"kind": "List", "items": [node("n", allocatable={"cpu": "64", "pods": "9"}), limits, QUOTA]})
    )
    big = {**bare(SMALL), "metadata": {"name": "big", "namespace": "tight"}}
    items = [workload("Deployment", ASKED, replicas=3), big, bare(SMALL)]
    (tmp_path / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    asking = ("why", "-f", "new.json", "--snapshot", "cluster.json")

    ran = kschedx(*asking, cwd=tmp_path, columns=200)
    headline, *blocks = ran.out.split("\n\n")
    assert (ran.code, ran.err) == (1, "")
    assert headline == "5 pods: 4 cannot, 1 can be scheduled"
    refused, limited, fits = blocks
    assert refused.startswith("✗ 3 pods: Error creating: pods ")
    assert SAID in refused
    assert "default/web (Deployment) × 3" in refused
    assert limited.startswith('✗ pods "big" is forbidden: ')
    assert "default/x → n" in fits

    document = json.loads(kschedx(*asking, "-o", "json", cwd=tmp_path).out)
    assert [one["pod"]["name"] for one in document["items"]] == ["x"]
    assert [one["pod"] for one in document["refused"]] == ["default/web-new", "tight/big"]
    assert document["undecided"] == []

    alone = kschedx(*asking, "--alone", cwd=tmp_path, columns=200)
    assert alone.code == 1
    assert alone.out.startswith("3 pods: 2 cannot, 1 can be scheduled\n")
