"""Which resources of a ResourceQuota are used up, and whose pods it refuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import Manifest, node
from tests.command import kschedx
from tests.inquiry.objects import answer_of

AMOUNTS = "requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=4"
REFUSED = 'pods "web-x" is forbidden: exceeded quota: {}, ' + AMOUNTS


def quota(used: Mapping[str, object]) -> Manifest:
    metadata, hard = {"name": "team", "namespace": "default"}, {"requests.cpu": "4", "pods": "9"}
    spec, status = {"hard": hard}, {"hard": hard, "used": used}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}


def replica_set(by: str, refused: str = REFUSED, **requests: str) -> Manifest:
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": refused.format(by)}
    container = {"name": "c", "image": "c", "resources": {"requests": requests}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "default", "uid": "u"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
        "status": {"conditions": [failed]},
    }


@pytest.mark.parametrize(
    ("used", "does", "first"),
    [
        ({"requests.cpu": "4000m", "pods": "2"}, "is used up: requests.cpu 4000m of 4", "pods 2 of 9"),
        ({"requests.cpu": "3", "pods": "2"}, "has room for each of its resources", "requests.cpu 3 of 4"),
        ({"requests.cpu": "3500m", "pods": "2"}, "has room for each of its resources", "requests.cpu 3500m of 4"),
        ({}, "has no usage in its status", ""),
        ({"services": "1"}, "has no usage in its status", ""),
    ],
)
def test_a_quota_is_answered_by_what_is_used(used: Manifest, does: str, first: str) -> None:
    answer = answer_of("quota/team", node("n"), quota(used))
    assert (answer.code, answer.headline, [*answer.causes, ""][0]) == (0, f"default/quota/team {does}", first)
    assert not answer.fixes


@pytest.mark.parametrize("by", ["team", "other"])
def test_a_quota_names_the_workloads_whose_pods_it_refuses(by: str) -> None:
    answer = answer_of("quota/team", node("n"), quota({"requests.cpu": "4", "pods": "2"}), replica_set(by, cpu="2"))
    is_own = by == "team"
    assert ("it refused pods of default/rs/web" in answer.causes) is is_own
    assert any(fix.startswith("raise requests.cpu from 4 to 6 in ResourceQuota team") for fix in answer.fixes) is is_own


UNSET, DEMAND = "failed quota: {}: must specify requests.cpu for: c", "refuses pods that do not set requests.cpu"


@pytest.mark.parametrize("by", ["team", "other"])
def test_a_quota_names_the_requests_without_which_it_refuses_pods(by: str) -> None:
    used: Manifest = {"requests.cpu": "1", "pods": "2"}
    refused = 'pods "web-x" is forbidden: ' + UNSET
    defaults: Manifest = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "1"}}]}
    metadata = {"name": "defaults", "namespace": "default"}
    limits: Manifest = {"apiVersion": "v1", "kind": "LimitRange", "metadata": metadata, "spec": defaults}
    answer = answer_of("quota/team", node("n"), quota(used), replica_set(by, refused))
    is_own = by == "team"
    assert (answer.headline == f"default/quota/team {DEMAND}") is is_own
    assert (f"it {DEMAND}, unless a LimitRange does" in answer.causes) is not is_own
    assert any("set requests.cpu of container c" in fix for fix in answer.fixes) is is_own
    since = answer_of("quota/team", node("n"), quota(used), replica_set(by, refused), limits)
    assert since.headline == "default/quota/team has room for each of its resources"


@pytest.mark.parametrize(("pods", "of_all"), [("9", 3), ("2", 2)])
def test_a_fix_for_all_replicas_leaves_out_ordinals_that_a_quota_refuses(
    tmp_path: Path, pods: str, of_all: int
) -> None:
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "2"}}}
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [container]}}
    spec = {"replicas": 3, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": template}
    sts = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}, "spec": spec}
    limit = quota({"requests.cpu": "0", "pods": "0"})
    limit["spec"] = {"hard": {"pods": pods}}
    (tmp_path / "db.json").write_text(json.dumps(sts))
    items = [node("n", allocatable={"cpu": "1", "pods": "9"}), {**limit, "status": {"hard": {}, "used": {"pods": "0"}}}]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    screens = [
        kschedx(*question, "-s", "cluster.json", cwd=tmp_path, columns=400).out
        for question in (("why", "db.json"), ("simulate", "-f", "db.json"))
    ]
    assert all(f"add {of_all} nodes each with at least 2 CPU free · for all {of_all}" in out for out in screens)
    assert ("the API server refuses 1" in screens[0]) is (of_all < 3)
