"""OpenShift's ClusterResourceQuotas refuse the pods of all namespaces that they select together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.builders import Manifest, node, pod
from tests.cli.manifests import write
from tests.command import kschedx

REQUESTER = {"openshift.io/requester": "ann"}


def namespace(name: str, **labels: str) -> Manifest:
    metadata = {"name": name, "labels": labels, "annotations": REQUESTER if name == "shop" else {}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def quota(selector: Manifest, used: str = "2", *, is_synced: bool = True) -> Manifest:
    hard = {"requests.cpu": "3"}
    total = {"total": {"hard": hard, "used": {"requests.cpu": used}}} if is_synced else {}
    status = {**total, "namespaces": [{"namespace": "unread"}]}
    metadata = {"name": "team"}
    spec = {"selector": selector, "quota": {"hard": hard}}
    api = "quota.openshift.io/v1"
    return {
        "apiVersion": api,
        "kind": "ClusterResourceQuota",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def deployment(space: str = "shop", replicas: int = 2) -> Manifest:
    template = {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    metadata = {"name": "web", "namespace": space}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


BY_LABEL: Manifest = {"labels": {"matchLabels": {"team": "a"}}}
BY_ANNOTATION: Manifest = {"annotations": REQUESTER}


@pytest.mark.parametrize(
    ("selector", "space", "is_refused"),
    [
        (BY_LABEL, "shop", True),
        (BY_ANNOTATION, "shop", True),
        ({**BY_LABEL, **BY_ANNOTATION}, "shop", True),
        ({**BY_LABEL, "annotations": {"openshift.io/requester": "bob"}}, "shop", False),
        (BY_LABEL, "other", False),
        (BY_LABEL, "unread", True),
    ],
)
def test_a_cluster_quota_covers_the_namespaces_that_it_selects(
    selector: Manifest, space: str, is_refused: bool, tmp_path: Path
) -> None:
    named = [namespace("shop", team="a"), namespace("other", team="b")]
    cluster = write(tmp_path, node("n", allocatable={"cpu": "9", "pods": "9"}), *named, quota(selector))
    result = kschedx("why", write(tmp_path, deployment(space), name="web.yaml"), "-s", cluster)
    text = "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=3"
    assert (result.code == 1, text in " ".join(result.out.split())) == (is_refused, is_refused)
    assert ("raise requests.cpu from 3 to 4 in ClusterResourceQuota team" in result.out) is is_refused


def test_a_cluster_quota_without_a_status_counts_all_its_namespaces(tmp_path: Path) -> None:
    named = [namespace("shop", team="a"), namespace("other", team="a")]
    held: list[Manifest] = [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "p", "namespace": "other"},
            "spec": {"nodeName": "n", "containers": [{"name": "c", "resources": {"requests": {"cpu": "2"}}}]},
            "status": {"phase": "Running"},
        }
    ]
    unsynced = quota(BY_LABEL, is_synced=False)
    cluster = write(tmp_path, node("n", allocatable={"cpu": "9", "pods": "9"}), *named, *held, unsynced)
    result = kschedx("why", write(tmp_path, deployment(), name="web.yaml"), "-s", cluster)
    assert "used: requests.cpu=3, limited: requests.cpu=3" in " ".join(result.out.split())


def test_pods_of_one_namespace_use_up_the_quota_of_another(tmp_path: Path) -> None:
    named = [namespace("shop", team="a"), namespace("other", team="a")]
    cluster = write(tmp_path, node("n", allocatable={"cpu": "9", "pods": "9"}), *named, quota(BY_LABEL, "1"))
    first = write(tmp_path, deployment("other"), name="first.yaml")
    second = write(tmp_path, deployment("shop", 1), name="second.yaml")
    assert kschedx("why", second, "-s", cluster).code == 0
    result = kschedx("why", second, "-s", cluster, "--apply", first)
    assert "exceeded quota: team" in result.out


def test_a_cluster_quota_covers_a_namespace_that_is_applied_after_pods(tmp_path: Path) -> None:
    cluster = write(
        tmp_path, node("n", allocatable={"cpu": "9", "pods": "9"}), namespace("shop", team="a"), quota(BY_LABEL)
    )
    applied = write(tmp_path, deployment(replicas=1), namespace("new", team="a"), deployment("new"), name="web.yaml")
    for command in (("why", applied), ("simulate", "--apply", applied)):
        out = " ".join(kschedx(*command, "-s", cluster).out.split())
        assert "exceeded quota: team, requested: requests.cpu=1, used: requests.cpu=3, limited: requests.cpu=3" in out


def test_pods_of_a_namespace_that_is_labeled_later_count(tmp_path: Path) -> None:
    held = pod("held", on="n", namespace="late", containers=[{"name": "c", "resources": {"requests": {"cpu": "1"}}}])
    cluster = write(
        tmp_path, node("n", allocatable={"cpu": "9", "pods": "9"}), namespace("late"), held, quota(BY_LABEL)
    )
    applied = write(tmp_path, namespace("late", team="a"), deployment("late", 1), name="web.yaml")
    for command in (("why", applied), ("simulate", "--apply", applied)):
        assert "used: requests.cpu=3, limited: requests.cpu=3" in " ".join(kschedx(*command, "-s", cluster).out.split())


def test_another_limit_of_a_cluster_quota_counts_at_once(tmp_path: Path) -> None:
    named = namespace("shop", team="a")
    cluster = write(tmp_path, node("n", allocatable={"cpu": "9", "pods": "9"}), named, quota(BY_LABEL))
    change = ("--set", "clusterresourcequota/team:spec.quota.hard[requests.cpu]=4")
    applied = write(tmp_path, deployment(), name="web.yaml")
    assert kschedx("simulate", *change, "--apply", applied, "-s", cluster).code == 0
