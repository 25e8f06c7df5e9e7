"""A manifest with spec.nodeName bypasses kube-scheduler; the answer says whether the kubelet admits it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, node
from tests.command import kschedx

NO_EXECUTE = "dedicated=db:NoExecute"
NO_SCHEDULE = "dedicated=db:NoSchedule"
BINDING = "default/x: spec.nodeName binds it to a, without kube-scheduler; "


def asking(cpu: str, **spec: object) -> Manifest:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "x"},
        "spec": {"nodeName": "a", "containers": [container], **spec},
    }


@pytest.mark.parametrize(
    ("pod", "taints", "expected"),
    [
        (asking("9"), [], "its kubelet rejects the pod (OutOfcpu)"),
        (asking("9", nodeSelector={"disk": "ssd"}), [], "its kubelet rejects the pod (OutOfcpu, NodeAffinity)"),
        (asking("1"), [NO_EXECUTE], "its kubelet rejects the pod (TaintToleration)"),
        (
            asking("1"),
            [NO_SCHEDULE],
            "resources, ports, node affinity, and NoExecute taints permit it",
        ),
        (asking("1", nodeName="b"), [], ""),
    ],
)
def test_the_kubelet_decides(tmp_path: Path, pod: Manifest, taints: list[str], expected: str) -> None:
    machine = node("a", allocatable={"cpu": "4", "pods": "9"}, taints=taints)
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [machine]}))
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    result = kschedx("why", "pod.json", "--snapshot", "cluster.json", cwd=tmp_path, columns=200)
    headline, *below = result.out.splitlines()
    absent = "default/x: spec.nodeName binds it to b, without kube-scheduler; the node does not exist"
    assert headline[2:] == (BINDING + expected if expected else absent)
    assert (headline[0], result.code) == (("✓", 0) if expected.startswith("resources, ") else ("✗", 1))
    assert not any("kube-scheduler:" in line or "nodes are available" in line for line in below), "nobody writes that"


def test_filters_of_the_scheduler_do_not_count(tmp_path: Path) -> None:
    """On a cordoned node: a pod that fits, one that does not, and a Deployment whose template names the node."""
    machines = [node("a", allocatable={"cpu": "4", "pods": "9"}, unschedulable=True), node("b")]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": machines}))
    fits, large = asking("1"), {**asking("9"), "metadata": {"name": "large"}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": asking("1")["spec"]}
    selector = {"matchLabels": {"app": "web"}}
    manifest = {"metadata": {"name": "web"}, "spec": {"replicas": 2, "selector": selector, "template": template}}
    (tmp_path / "web.json").write_text(json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", **manifest}))
    (tmp_path / "fits.json").write_text(json.dumps(fits))
    (tmp_path / "large.json").write_text(json.dumps(large))
    for name, code in (("fits", 0), ("large", 1), ("web", 0)):
        result = kschedx("why", f"{name}.json", "--snapshot", "cluster.json", cwd=tmp_path, columns=200)
        assert (result.code, result.out[0]) == (code, "✗" if code else "✓")
        assert "spec.nodeName binds it to a" in result.out
    for more, text in (
        ([], "✗ 4 pods: 3 can be scheduled, 1 unschedulable\n"),
        (["--alone"], "✗ 3 pods: 2 can be scheduled, 1 unschedulable\n"),
    ):
        files = ["-f", "fits.json", "-f", "large.json", "-f", "web.json"]
        result = kschedx("why", *files, "--snapshot", "cluster.json", *more, cwd=tmp_path, columns=200)
        assert result.code == 1
        assert result.out.startswith(text)
        assert "its kubelet rejects the pod (OutOfcpu)" in result.out
        assert "default/x → a" in result.out


def bound(name: str, cpu: str, replicas: int, **spec: object) -> Manifest:
    template = {"metadata": {"labels": {"app": name}}, "spec": asking(cpu, **spec)["spec"]}
    selector = {"matchLabels": {"app": name}}
    manifest = {"replicas": replicas, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": manifest}


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (
            bound("web", "1500m", 2),
            0,
            "✓ default/deploy/web: the kubelet of a can run all 2",
        ),
        (bound("web", "1500m", 5), 1, "✗ default/deploy/web: the kubelet of a runs 2 of 5 replicas and rejects 3"),
        (bound("web", "9", 3), 1, "✗ default/deploy/web: the kubelet of a rejects all 3 replicas"),
        (
            bound("web", "1", 3, nodeName="b"),
            1,
            "✗ default/web-new: spec.nodeName binds it to b, without kube-scheduler",
        ),
    ],
)
def test_the_kubelet_admits_replicas_while_it_has_room(
    tmp_path: Path, manifest: Manifest, code: int, message: str
) -> None:
    machine = node("a", allocatable={"cpu": "4", "pods": "9"})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [machine]}))
    (tmp_path / "web.json").write_text(json.dumps(manifest))
    result = kschedx("why", "web.json", "--snapshot", "cluster.json", cwd=tmp_path, columns=200)
    assert (result.code, result.err) == (code, "")
    assert result.out.startswith(message)
    is_made_again = "stays as a Failed pod, and another is made in its place, repeatedly" in result.out
    assert is_made_again is ("refuses" in message)
    document = json.loads(kschedx("why", "web.json", "--snapshot", "cluster.json", "-o", "json", cwd=tmp_path).out)
    assert document["kubelet"]["node"] == ("b" if "binds it to b" in message else "a")
    assert document["kubelet"]["takes"] is (code == 0)


def test_two_workloads_share_the_room_of_a_kubelet(tmp_path: Path) -> None:
    machine = node("a", allocatable={"cpu": "4", "pods": "9"})
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [machine]}))
    items = [bound("web", "1500m", 2), bound("other", "1", 2)]
    (tmp_path / "new.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = kschedx("why", "new.json", "--snapshot", "cluster.json", cwd=tmp_path, columns=200)
    assert result.code == 1
    assert result.out.startswith("✗ 4 pods: 3 can be scheduled, 1 unschedulable\n")
    assert "default/other (Deployment)\n" in result.out
