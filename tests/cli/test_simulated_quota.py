"""Replicas that a ResourceQuota refuses, in `simulate` and `fit`: the API server's message, and exit code 1."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.builders import Manifest, at, pod
from tests.command import CommandResult, kschedx
from tests.simulate.clusters import deployment, nodes


def quota(pods: int, used: int | None = None) -> Manifest:
    """A ResourceQuota; without `used`, its controller has not counted yet."""
    hard = {"pods": str(pods)}
    status = {} if used is None else {"status": {"hard": hard, "used": {"pods": str(used)}}}
    metadata = {"name": "q", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}, **status}


def simulated(tmp_path: Path, quotas: Sequence[Manifest], *options: str) -> CommandResult:
    file = tmp_path / "cluster.json"
    objects = [*nodes(), *deployment("web", "1", ["node-1", "node-2"]), *deployment("api", "1", ["node-3"]), *quotas]
    file.write_text(json.dumps({"kind": "List", "items": objects}))
    return kschedx("simulate", "--snapshot", str(file), "-n", "shop", *options)


def web(result: CommandResult) -> dict[str, object]:
    workloads: list[dict[str, object]] = json.loads(result.out)["workloads"]
    return next(workload for workload in workloads if workload["name"] == "web")


@pytest.mark.parametrize("used", [None, 3], ids=["counted here", "counted by its controller"])
def test_the_quota_admits_the_first_new_replicas(tmp_path: Path, used: int | None) -> None:
    result = simulated(tmp_path, [quota(5, used)], "--scale", "deploy/web=6", "-o", "json")
    message = web(result)
    assert result.code == 1
    assert (message["pods"], message["refused"]) == (4, 2)
    refusal = "is forbidden: exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5"
    assert str(message["refusal"]).startswith("Error creating: pods ")
    assert refusal in str(message["refusal"])


@pytest.mark.parametrize("used", [None, 3], ids=["counted here", "counted by its controller"])
def test_why_raises_the_quota_for_all_missing_replicas(tmp_path: Path, used: int | None) -> None:
    simulated(tmp_path, [quota(5, used)])
    file = str(tmp_path / "cluster.json")
    result = kschedx("why", "deploy/web", "--scale", "deploy/web=6", "--snapshot", file, "-n", "shop")
    assert "fix       raise pods from 5 to 7 in ResourceQuota q" in result.out


def test_the_screen_shows_refused_replicas(tmp_path: Path) -> None:
    result = simulated(tmp_path, [quota(5)], "--scale", "deploy/web=6")
    assert "2 replicas refused by the API server" in result.out.splitlines()[0]
    assert "4 of 6 assigned" in result.out
    assert "2 refused: Error creating: pods" in result.out
    assert "fix       raise pods from 5 to 7 in ResourceQuota q" in result.out
    assert "$ kubectl patch resourcequota q" in result.out


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--scale", "deploy/web=4"), 0),
        (("--scale", "deploy/web=5"), 1),
        (("--scale", "deploy/api=0", "--scale", "deploy/web=5"), 0),
        (("--scale", "deploy/web=5", "--scale", "deploy/api=0"), 0),
        (("--scale", "deploy/web=5", "--scale", "deploy/web=3"), 0),
        (("--scale", "deploy/web=4", "--scale", "deploy/api=2"), 1),
        (("--set", "deploy/web:spec.replicas=5"), 1),
        (("--scale", "deploy/web=5", "--delete", "deploy/web"), 0),
    ],
    ids=["fits", "one too many", "room first", "room later", "fewer again", "the next", "set", "deleted"],
)
def test_changes_count_in_their_order(tmp_path: Path, options: Sequence[str], code: int) -> None:
    assert simulated(tmp_path, [quota(5)], *options).code == code


def test_a_rollout_stalls_if_the_quota_is_used_up(tmp_path: Path) -> None:
    new_template = "deploy/web:spec.template.metadata.labels.version=two"
    result = simulated(tmp_path, [quota(3)], "--set", new_template, "-o", "json")
    (rolled,) = json.loads(result.out)["rollouts"]
    assert result.code == 1
    assert not rolled["done"]
    assert "exceeded quota: q, requested: pods=1, used: pods=3, limited: pods=3" in rolled["refusal"]
    assert simulated(tmp_path, [quota(4)], "--set", new_template).code == 0


def test_a_quota_of_another_namespace_refuses_nothing(tmp_path: Path) -> None:
    elsewhere = {**quota(0), "metadata": {"name": "q", "namespace": "other"}}
    assert simulated(tmp_path, [elsewhere], "--scale", "deploy/web=6").code == 0


def test_a_quota_limits_pods_and_claims_of_a_new_stateful_set(tmp_path: Path) -> None:
    hard = {"persistentvolumeclaims": "1"}
    claims = {**quota(0), "spec": {"hard": hard}}
    container = {"name": "main", "image": "db:1"}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}}
    storage = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    spec: Manifest = {
        "replicas": 3,
        "serviceName": "db",
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": {"app": "db"}},
        "template": template,
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": storage}],
    }
    file, after = tmp_path / "db.json", tmp_path / "after.json"
    file.write_text(
        json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec})
    )
    result = simulated(tmp_path, [claims], "-f", str(file), "-o", "json", "--out", str(after))
    (message,) = json.loads(result.out)["workloads"]
    assert (result.code, message["pods"], message["refused"]) == (1, 1, 2)
    assert "create Claim data-db-1 for Pod db-1 in StatefulSet db failed error: " in message["refusal"]
    kinds = [(item["kind"], item["metadata"]["name"]) for item in json.loads(after.read_text())["items"]]
    assert [name for kind, name in kinds if kind == "PersistentVolumeClaim"] == ["data-db-0"]


def test_an_applied_quota_counts(tmp_path: Path) -> None:
    file = tmp_path / "quota.json"
    file.write_text(json.dumps(quota(3)))
    assert simulated(tmp_path, [], "-f", str(file), "--scale", "deploy/web=3").code == 1
    assert simulated(tmp_path, [quota(3)], "--scale", "deploy/web=2").code == 0


def test_the_page_shows_refused_replicas(tmp_path: Path) -> None:
    page = simulated(tmp_path, [quota(5)], "--scale", "deploy/web=6", "-o", "markdown").out
    assert "refused by the API server" in page
    assert "exceeded quota: q" in page


@pytest.mark.parametrize(
    ("options", "code", "texts"),
    [
        (("--replicas", "6"), 1, "2 of 6 more fit"),
        (("--replicas", "2"), 0, "2 more fit"),
        ((), 0, "2 more fit"),
    ],
    ids=["too many", "enough", "as many as fit"],
)
def test_fit_counts_the_quota(tmp_path: Path, options: Sequence[str], code: int, texts: str) -> None:
    simulated(tmp_path, [quota(5)])  # writes the cluster
    result = kschedx("fit", "deploy/web", "--snapshot", str(tmp_path / "cluster.json"), "-n", "shop", *options)
    assert result.code == code
    assert texts in result.out
    assert ("exceeded quota: q" in result.out) is (options != ("--replicas", "2"))


@pytest.mark.parametrize(
    ("resource", "hard", "options", "refusal"),
    [
        ("count/deployments.apps", 2, (), 'deployments.apps "more" is forbidden: exceeded quota: q'),
        ("count/deployments.apps", 3, (), ""),
        ("count/deployments.apps", 2, ("--delete", "deploy/api"), ""),
        ("count/replicasets.apps", 2, (), 'Failed to create new replica set "more-'),
        ("count/replicasets.apps", 3, (), ""),
    ],
    ids=["full", "room", "room made", "no ReplicaSet", "a ReplicaSet"],
)
def test_quotas_count_workloads(resource: str, hard: int, options: Sequence[str], refusal: str, tmp_path: Path) -> None:
    limits = {resource: str(hard)}
    quotas = {**quota(9), "spec": {"hard": limits}}
    new = tmp_path / "new.json"
    new.write_text(json.dumps(deployment("more", "1", [None, None])[0]))
    result = simulated(tmp_path, [quotas], *options, "-f", str(new), "-o", "json")
    message = next(item for item in json.loads(result.out)["workloads"] if item["name"] == "more")
    assert result.code == (1 if refusal else 0)
    assert str(message.get("refusal", "")).startswith(refusal)
    assert (message["pods"], message.get("refused", 0)) == ((0, 2) if refusal else (2, 0))


def test_commands_agree_about_a_refused_replica(tmp_path: Path) -> None:
    """No condition reports the refusal yet: the controller has not tried."""
    objects = [*nodes(), *deployment("web", "1", ["node-1", "node-2"]), quota(2)]
    for each in objects:
        if each["kind"] in ("Deployment", "ReplicaSet"):
            at(each, "spec")["replicas"] = 3
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    for answer in (["why", "deploy/web", "-n", "shop"], ["why", "--all-pending"], ["simulate"]):
        result = kschedx(*answer, "-s", "cluster.json", cwd=tmp_path, columns=200)
        assert (result.code, "exceeded quota: q, requested: pods=1" in result.out) == (1, True), result.out
        assert "raise pods from 2 to 3 in ResourceQuota q" in result.out


def test_the_pods_of_a_stateful_set_replace_each_other_in_a_quota(tmp_path: Path) -> None:
    """The rollout ends with the quota that the fix sets."""
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": True}
    containers = [{"name": "main", "image": "db:1", "resources": {"requests": {"cpu": "1"}}}]
    metadata = {"ownerReferences": [owner], "labels": {"app": "db"}, "namespace": "shop"}
    pods = [pod(f"db-{n}", on=f"node-{n + 1}", metadata=metadata, containers=containers) for n in range(3)]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": containers}}
    spec = {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    db = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db", "namespace": "shop", "uid": "db"}}
    limit = {"spec": {"hard": {"requests.cpu": "3"}}, "status": {}}
    objects = {"kind": "List", "items": [*nodes(), {**db, "spec": spec}, *pods, {**quota(1), **limit}]}
    (tmp_path / "cluster.json").write_text(json.dumps(objects))
    larger = "--set=sts/db:spec.template.spec.containers[main].resources.requests.cpu=1200m"
    where = ("-n", "shop", "-s", tmp_path / "cluster.json")
    assert "fix       raise requests.cpu from 3 to 3600m in ResourceQuota q" in kschedx("simulate", larger, *where).out
    assert kschedx("simulate", '--set=quota/q:spec.hard={"requests.cpu":"3600m"}', larger, *where).code == 0
