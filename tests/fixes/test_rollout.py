"""A new pod that conflicts with old pods of its Deployment or DaemonSet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kschedx
from kschedx.kube.documents import Change
from kschedx.render.manifests import kubectl_commands
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx as command

NODES = [node("a"), node("b")]
PORTS = [{"name": "main", "image": "web:1", "ports": [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]}]
SURGING: Manifest = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 0}}


def owned(kind: str, name: str) -> list[Manifest]:
    return [{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}]


def rollout(strategy: Manifest) -> list[Manifest]:
    """Return a Deployment whose old pods use the port on both nodes, and a pending new pod."""
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": PORTS}}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"replicas": 2, "selector": selector, "template": template}
    sets: list[Manifest] = [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name, "namespace": "default", "ownerReferences": owned("Deployment", "web")},
            "spec": {**spec, "template": its_template},
        }
        for name, its_template in (("web-old", {"spec": {"containers": PORTS}}), ("web-new", template))
    ]
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {**spec, "strategy": strategy},
    }
    old = [
        pod(f"old-{name}", on=name, metadata={"ownerReferences": owned("ReplicaSet", "web-old")}, containers=PORTS)
        for name in "ab"
    ]
    return [
        deployment,
        *sets,
        *old,
        pod("me", metadata={"ownerReferences": owned("ReplicaSet", "web-new")}, containers=PORTS),
    ]


def fixes(strategy: Manifest) -> list[tuple[str, tuple[Change, ...]]]:
    snapshot = kschedx.Snapshot.from_objects([*NODES, *rollout(strategy)])
    return [(fix.title, fix.apply) for fix in kschedx.explain(snapshot, "default/me").fixes]


def test_an_old_pod_is_deleted_before_a_new_one_is_created() -> None:
    result = fixes(SURGING)
    title = "set maxSurge: 0, maxUnavailable: 1 on Deployment web: an old pod such as default/old-a goes first"
    assert result[0][0] == title
    assert not [other for other, _ in result[1:] if other.startswith("set ")]
    assert kubectl_commands(result[0][1]).startswith("kubectl patch deployment.apps web -n default --type=json")


@pytest.mark.parametrize(
    ("taint", "more"),
    [(None, ""), ("node.kubernetes.io/not-ready", ", repair b: it is NotReady")],
    ids=["the pod fails", "its node fails"],
)
def test_an_unavailable_old_pod_is_deleted_first(taint: str | None, more: str) -> None:
    broken = NODES[1]
    if taint is not None:
        failed = {
            "conditions": [{"type": "Ready", "status": "False"}],
            "allocatable": at(broken, "status")["allocatable"],
        }
        broken = {**broken, "spec": {"taints": [{"key": taint, "effect": "NoSchedule"}]}, "status": failed}
    objects = rollout(SURGING)
    for old in objects[3:5]:
        ready = taint is not None or at(old, "metadata")["name"] == "old-a"
        at(old, "status")["conditions"] = [{"type": "Ready", "status": "True" if ready else "False"}]
    titles = [
        fix.title
        for fix in kschedx.explain(kschedx.Snapshot.from_objects([NODES[0], broken, *objects]), "default/me").fixes
    ]
    title = "set maxSurge: 0, maxUnavailable: 1 on Deployment web: an old pod such as default/old-b goes first"
    assert titles[0] == f"{title}{more}"


def test_an_operator_may_revert_the_strategy() -> None:
    deployment, *others = rollout(SURGING)
    owner = {"apiVersion": "example.com/v1", "kind": "RedisFailover", "name": "r", "uid": "r", "controller": True}
    at(deployment, "metadata")["ownerReferences"] = [owner]
    snapshot = kschedx.Snapshot.from_objects([*NODES, deployment, *others])
    costs = kschedx.explain(snapshot, "default/me").fixes[0].costs
    assert "change it in RedisFailover r, which may revert Deployment web" in costs


@pytest.mark.parametrize(
    "strategy",
    [{"type": "Recreate"}, {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}],
    ids=["recreate", "no-surge"],
)
def test_a_deployment_that_already_deletes_first(strategy: Manifest) -> None:
    assert not [title for title, _ in fixes(strategy) if title.startswith("set ")]


def test_the_patch_of_the_strategy() -> None:
    snapshot = kschedx.Snapshot.from_objects([*NODES, *rollout(SURGING)])
    first, *_ = kschedx.explain(snapshot, "default/me").fixes
    deployment, old = first.changes
    assert (deployment.target.kind, deployment.patch[0]["path"]) == ("Deployment", "/spec/strategy")
    assert (old.target.name, old.delete, old.by) == ("old-a", True, "kube-controller-manager")
    assert first.feasible_nodes == ("a",)


@pytest.mark.parametrize("pending", [0, 2], ids=["written", "stored"])
def test_the_strategy_helps_every_replica(tmp_path: Path, pending: int) -> None:
    """The rollout goes on from node to node, though only one old pod is deleted at first."""
    deployment, old_set, new_set, *old, new = rollout({**SURGING, "rollingUpdate": {"maxSurge": 2}})
    news = [{**new, "metadata": {**at(new, "metadata"), "name": f"new-{number}"}} for number in range(pending)]
    before = deployment if pending else {**deployment, "spec": {**at(deployment, "spec"), **at(old_set, "spec")}}
    items = [*NODES, before, old_set, *([new_set] if pending else ()), *old, *news]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "web.json").write_text(json.dumps(deployment))
    target = "deploy/web" if pending else "web.json"
    result = command("why", target, "-s", "cluster.json", cwd=tmp_path, columns=400)
    assert "default/old-a goes first · for all 2" in result.out


def test_a_correction_that_is_a_rollback_leaves_no_pod_pending() -> None:
    deployment, old_set, new_set, *old, new = rollout(SURGING)
    plain = {"containers": [{"name": "main", "image": "web:1"}]}
    correct, wrong = ({**plain, "nodeSelector": {"disk": text}} for text in ("ssd", "sdd"))
    for it, spec in ((old_set, correct), (new_set, wrong), (deployment, wrong)):
        at(it, "spec")["template"] = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    pods = [{**each, "spec": {**at(each, "spec"), **plain}} for each in (*old, new)]
    at(pods[-1], "spec")["nodeSelector"] = {"disk": "sdd"}
    nodes = [node(name, labels={"disk": "ssd"}) for name in "ab"]
    snapshot = kschedx.Snapshot.from_objects([*nodes, deployment, old_set, new_set, *pods])
    first = kschedx.explain(snapshot, "default/me").fixes[0]
    assert (first.title, first.costs) == ("select disk=ssd instead of disk=sdd", ())


def daemon(name: str, on: str | None) -> Manifest:
    """Return a pod of a DaemonSet for node a."""
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    return pod(
        name, on=on, metadata={"ownerReferences": owned("DaemonSet", "web")}, containers=PORTS, affinity=affinity
    )


@pytest.mark.parametrize(("surge", "is_first"), [(1, True), (0, False)])
def test_a_daemon_set_replaces_the_pod_that_has_the_port(surge: int, is_first: bool) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": 1 - surge}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": PORTS}}
    daemon_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": template, "updateStrategy": strategy},
    }
    snapshot = kschedx.Snapshot.from_objects([*NODES, daemon_set, daemon("old", "a"), daemon("me", None)])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert titles[0].startswith("set maxSurge: 0, maxUnavailable: 1 on DaemonSet web") == is_first
    assert not any("priorityClassName" in title for title in titles)


@pytest.mark.parametrize(
    ("strategy", "is_offered"),
    [({"type": "Recreate"}, True), ({"type": "RollingUpdate"}, False)],
    ids=["all replicas have the new rule", "the old replicas stay and exclude the new ones"],
)
def test_a_rule_of_the_template_is_changed_for_all_replicas(strategy: Manifest, is_offered: bool) -> None:
    labels = {"app": "web"}
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels}}
    affinity: Manifest = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    template: Manifest = {
        "metadata": {"labels": labels},
        "spec": {"affinity": affinity, "containers": [{"name": "main", "image": "web"}]},
    }
    spec = {"replicas": 3, "selector": {"matchLabels": labels}, "template": template}
    replica_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web-1", "namespace": "default", "ownerReferences": owned("Deployment", "web")},
        "spec": spec,
    }
    deployment: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {**spec, "strategy": strategy},
    }
    replicas = [
        pod(name, on=on, metadata={"ownerReferences": owned("ReplicaSet", "web-1")}, labels=labels, affinity=affinity)
        for name, on in (("one", "a"), ("two", "b"), ("me", None))
    ]
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in "ab"]
    snapshot = kschedx.Snapshot.from_objects([*nodes, deployment, replica_set, *replicas])
    titles = [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]
    assert titles[0] == "add a node like a"
    assert ("make podAntiAffinity term 1 (app=web) preferred instead of required" in titles) == is_offered


@pytest.mark.parametrize(
    ("holder", "replicas", "fit"),
    [("web-1", 3, "2 replicas"), ("other", 3, "1 replica"), ("web-1", 2, "")],
    ids=["its own pods", "pods of another workload", "a rollout"],
)
def test_more_replicas_with_a_host_port_than_nodes(holder: str, replicas: int, fit: str) -> None:
    spec = {"replicas": replicas, "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": PORTS}}}
    makers: list[Manifest] = [
        {
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": name, "namespace": "default", "ownerReferences": owners},
            "spec": {**spec, "selector": {"matchLabels": {"app": "web"}}},
        }
        for kind, name, owners in (("Deployment", "web", []), ("ReplicaSet", "web-1", owned("Deployment", "web")))
    ]
    pods = [
        pod(name, on=on, metadata={"ownerReferences": owned("ReplicaSet", owner)}, containers=PORTS)
        for name, on, owner in (("one", "a", "web-1"), ("two", "b", holder), ("me", None, "web-1"))
    ]
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([*NODES, *makers, *pods]), "default/me").fixes
    scaled = [fix.title for fix in fixes if fix.title.startswith("scale to")]
    assert scaled == ([f"scale to {fit}: its host port 80 has no node for more"] if fit else [])
