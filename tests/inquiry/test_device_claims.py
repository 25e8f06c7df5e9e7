"""`why resourceclaim/NAME` answers with a pod that uses the claim, or that none does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import node
from tests.command import kschedx
from tests.device_builders import allocated, claim, claiming, device, device_class, request, resource_slice


@pytest.mark.parametrize(
    ("name", "code", "says"),
    [
        ("used", 0, "✓ default/me would be assigned to a"),
        ("free", 0, "default/resourceclaim/free is not allocated: no pod uses it"),
        ("kept", 0, "$ kubectl delete resourceclaim kept -n default"),
        ("absent", 2, 'there is no ResourceClaim "absent"'),
    ],
)
def test_the_pod_of_a_claim(tmp_path: Path, name: str, code: int, says: str) -> None:
    objects = [
        *(node("a"), resource_slice("a", device("d")), device_class("gpu")),
        *(claim("used", request()), claim("free", request()), claiming("used"), allocated("kept", "a", "d2")),
    ]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    result = kschedx("why", f"resourceclaim/{name}", "-s", path)
    assert result.code == code
    assert says in result.out + result.err


def test_a_queue_is_left_to_the_command_about_kueue(tmp_path: Path) -> None:
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "team"}, "spec": {}}
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [node("a"), queue]}))
    result = kschedx("why", "clusterqueue/team", "-s", path)
    assert (result.code, "`kschedx kueue` shows it" in result.err) == (2, True)
