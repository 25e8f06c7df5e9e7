"""`why resourceclaim/NAME` answers with a pod that uses the claim, or that none does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.builders import Manifest, node
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


@pytest.mark.parametrize(
    ("user", "since", "is_true", "code"),
    [
        ("me", "2026-01-02T00:00:00Z", False, 1),
        ("me", None, False, 1),
        ("me", "2026-01-02T00:00:00Z", True, 0),
        ("somebody", "2026-01-02T00:00:00Z", False, 0),
    ],
    ids=["awaited", "without a time", "ready", "of another pod"],
)
def test_a_pod_waits_for_the_conditions_of_its_devices(
    tmp_path: Path, user: str, since: str | None, code: int, *, is_true: bool
) -> None:
    conditions: list[Manifest] = [{"type": "attached", "status": "True"}] if is_true else []
    gpu = allocated(
        "gpu", "a", "d", reserved_for=[user], since=since, conditions=conditions, bindingConditions=["attached"]
    )
    here = {**node("a"), "metadata": {"name": "a", "creationTimestamp": "2026-01-02T00:05:00Z"}}
    objects = [here, resource_slice("a", device("d")), device_class("gpu"), gpu, claiming("gpu")]
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}))
    results = [kschedx(*command, "-s", path, columns=200) for command in (("why", "pod/me"), ("simulate",))]
    assert [result.code for result in results] == [code, code]
    says = "default/me is not bound: driver gpu.example.com has not reported attached for its devices yet"
    assert [says in result.out for result in results] == [code == 1] * 2
