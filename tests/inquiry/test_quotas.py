"""Which resources of a ResourceQuota are used up, and whose pods it refuses."""

from __future__ import annotations

import pytest

from tests.builders import Manifest, node
from tests.inquiry.objects import answer_of

AMOUNTS = "requested: requests.cpu=2, used: requests.cpu=4, limited: requests.cpu=4"
REFUSED = 'pods "web-x" is forbidden: exceeded quota: {}, ' + AMOUNTS


def quota(used: Manifest) -> Manifest:
    metadata, hard = {"name": "team", "namespace": "default"}, {"requests.cpu": "4", "pods": "9"}
    spec, status = {"hard": hard}, {"hard": hard, "used": used}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": spec, "status": status}


def replica_set(by: str) -> Manifest:
    failed = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": REFUSED.format(by)}
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": "2"}}}
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
    answer = answer_of("quota/team", node("n"), quota({"requests.cpu": "4", "pods": "2"}), replica_set(by))
    is_own = by == "team"
    assert ("it refused pods of default/rs/web" in answer.causes) is is_own
    assert any(fix.startswith("raise requests.cpu from 4 to 6 in ResourceQuota team") for fix in answer.fixes) is is_own
