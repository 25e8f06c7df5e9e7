"""`simulate` names the same first fix as `why`, also where an autoscaler or Kueue decides, and what is in no queue."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import Manifest, node, pod
from tests.command import kschedx

FIXTURES = Path("fixtures")


def first_fix(command: str, story: str, *options: str) -> str:
    folder = FIXTURES / story
    ran = kschedx(command, "-f", str(folder / "pod.yaml"), "-s", str(folder / "cluster.yaml"), *options, "-o", "json")
    document = json.loads(ran.out)
    return str(document["fixes"][0]["title"])


@pytest.mark.parametrize(
    "story",
    [
        "autoscaler-at-maximum",
        "autoscaler-backoff",
        "autoscaler-grows",
        "karpenter-grows",
        "karpenter-limit-reached",
        "karpenter-taint-not-tolerated",
    ],
)
def test_a_simulation_names_the_fix_that_why_names_first(story: str) -> None:
    assert first_fix("simulate", story) == first_fix("why", story)


def test_a_fix_after_an_autoscaler_has_added_nodes_counts_them(tmp_path: Path) -> None:
    story = FIXTURES / "autoscaler-grows"
    written = story.joinpath("pod.yaml").read_text()
    path = tmp_path / "pods.yaml"
    path.write_text("\n---\n".join(written.replace("name: search-0", f"name: search-{n}") for n in range(10, 32)))
    ran = kschedx("simulate", "--autoscale", "-f", str(path), "-s", str(story / "cluster.yaml"), "-o", "json")
    document = json.loads(ran.out)
    [group] = document["autoscaler"]["groups"]
    assert document["autoscaler"]["groups"][group] == {"from": 2, "to": 10, "max": 10}
    assert document["fixes"][0]["title"].startswith(f"raise the maximum of node group {group} from 10 to ")


def test_a_simulation_shows_the_quota_that_a_workload_of_kueue_lacks() -> None:
    screen = kschedx("simulate", "-s", str(FIXTURES / "kueue-too-large" / "cluster.yaml")).out
    assert "✗ ml/job/train is suspended: it waits for quota in Kueue (queue research)" in screen
    assert "quota     cpu in on-demand: requests 12, 6 free = 6 nominal - 0 used" in screen
    assert "fix       raise borrowingLimit of flavor on-demand in ClusterQueue research: cpu from 2 to 6" in screen


def waiting_job(name: str, cpu: str) -> tuple[Manifest, Manifest]:
    """Return a suspended Job and its Workload of Kueue."""
    requests = {"requests": {"cpu": cpu}}
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x", "resources": requests}]}}
    metadata = {"name": name, "namespace": "ml", "uid": name}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": name, "controller": True}
    job: Manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata | {"labels": {QUEUE: "research"}}}
    return (
        job | {"spec": {"suspend": True, "template": template}},
        {
            "apiVersion": "kueue.x-k8s.io/v1beta1",
            "kind": "Workload",
            "metadata": metadata | {"name": f"job-{name}", "ownerReferences": [owner]},
            "spec": {"queueName": "research", "podSets": [{"name": "main", "count": 1, "template": template}]},
        },
    )


QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.mark.parametrize(("sizes", "explained"), [([20] * 15, 2), (range(20, 35), 10)], ids=["equal", "different"])
def test_a_simulation_explains_few_of_many_workloads_that_wait_for_kueue(
    sizes: Sequence[int], explained: int, tmp_path: Path
) -> None:
    items = [item for at, size in enumerate(sizes) for item in waiting_job(f"job{at}", str(size))]
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    ran = kschedx("simulate", "-s", str(FIXTURES / "kueue-too-large" / "cluster.yaml"), "-s", str(path), "-o", "json")
    document = json.loads(ran.out)
    assert len(document["kueue"]["pending"]) == 16
    assert len(document["states"]) == explained  # one is the story's own


DELETED = pod("old") | {
    "metadata": {
        "name": "old",
        "namespace": "default",
        "deletionTimestamp": "2026-05-01T10:00:00Z",
        "finalizers": ["example.com/hold"],
    }
}
CONTAINERS: list[Manifest] = [{"name": "c", "image": "x"}]
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": CONTAINERS}}
PAUSED: Manifest = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {"paused": True, "replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE},
}
SUSPENDED: Manifest = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "train", "namespace": "default"},
    "spec": {"suspend": True, "template": {"spec": {"restartPolicy": "Never", "containers": CONTAINERS}}},
}


@pytest.mark.parametrize("command", [("simulate",), ("why", "--all-pending")], ids=" ".join)
@pytest.mark.parametrize(
    ("manifest", "code", "expected"),
    [
        (DELETED, 1, "being deleted (since 2026-05-01T10:00:00Z)"),
        (PAUSED, 0, "default/deploy/web is paused: it has no ReplicaSet yet"),
        (SUSPENDED, 0, "default/job/train is suspended: spec.suspend is true"),
    ],
    ids=["being deleted", "paused", "suspended"],
)
def test_what_is_in_no_queue_is_named(
    command: tuple[str, ...], manifest: Manifest, code: int, expected: str, tmp_path: Path
) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), manifest]}))
    ran = kschedx(*command, "-s", str(path))
    assert ran.code == code
    assert expected in ran.out


def test_a_pending_pod_comes_before_pods_that_are_being_deleted(tmp_path: Path) -> None:
    held = {"deletionTimestamp": "2026-05-01T10:00:00Z", "finalizers": ["example.com/hold"]}
    deleted = [pod(f"a{at}", metadata={"name": f"a{at}", "namespace": "default", **held}) for at in range(20)]
    path = tmp_path / "cluster.json"
    items = [node("a"), *deleted, pod("big", nodeSelector={"disk": "ssd"})]
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    out = kschedx("simulate", "-s", str(path)).out
    assert 0 < out.find("default/po/big  pending") < out.find("20 pods are being deleted, such as default/a0")


CONTAINERS = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
QUOTA: Manifest = {"spec": {"hard": {"pods": "1"}}, "status": {"hard": {"pods": "1"}, "used": {"pods": "1"}}}
STORAGE: Manifest = {"requests": {"storage": "1Gi"}}
ASKED: Manifest = {"accessModes": ["ReadWriteOnce"], "storageClassName": "none", "resources": STORAGE}
CLAIMS = [{"metadata": {"name": "data"}, "spec": ASKED}]
WAYS: dict[str, tuple[str, Manifest, Manifest]] = {
    "a quota for each node": ("DaemonSet", {}, {}),
    "a claim of its own": ("StatefulSet", {"volumeClaimTemplates": CLAIMS}, {"priorityClassName": "gone"}),
    "a gate": ("Deployment", {"replicas": 3}, {"schedulingGates": [{"name": "a.b/c"}]}),
    "a missing class": ("ReplicaSet", {"replicas": 3}, {"runtimeClassName": "gone"}),
    "a selector": ("DaemonSet", {}, {"nodeSelector": {"disk": "ssd"}}),
    "no room": ("Deployment", {"replicas": 3}, {"nodeSelector": {"kubernetes.io/hostname": "a"}}),
    "a Job": ("Job", {"parallelism": 2, "completions": 4}, {"nodeSelector": {"disk": "ssd"}}),
}
"""A situation to the kind of a new workload, and fields of its spec and of its pods."""


@pytest.mark.parametrize("way", WAYS)
def test_a_new_workload_has_the_same_first_fix_in_both(way: str, tmp_path: Path) -> None:
    kind, spec, of_pod = WAYS[way]
    spec = {**spec, "selector": {"matchLabels": {"app": "web"}}} if kind != "Job" else spec
    of_pod = {"containers": CONTAINERS, **of_pod, **({"restartPolicy": "Never"} if kind == "Job" else {})}
    written = {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {**spec, "template": {"metadata": {"labels": {"app": "web"}}, "spec": of_pod}},
    }
    sizes = {"cpu": "2", "memory": "8Gi", "pods": "9"}
    cluster = [node(name, labels={"kubernetes.io/hostname": name}, allocatable=sizes) for name in "abc"]
    if "quota" in way:
        named = {"name": "q", "namespace": "default"}
        cluster += [{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": named, **QUOTA}, pod("other", on="a")]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": cluster}))
    (tmp_path / "app.json").write_text(json.dumps(written))
    where = ("-s", tmp_path / "cluster.json")
    screens = [
        kschedx(*question, tmp_path / "app.json", *where, columns=200)
        for question in (("why",), ("simulate", "--apply"))
    ]
    firsts = [re.search(r"^  fix(?: 1)? +(.*?)(?: · .*)?$", screen.out, re.MULTILINE) for screen in screens]
    assert [screen.code for screen in screens] == [1, 1]
    assert [first and first[1] for first in firsts] == [firsts[0] and firsts[0][1]] * 2 != [None] * 2
