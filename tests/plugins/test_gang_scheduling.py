"""Pods of Kubernetes 1.35 that reference a pod group of a Workload."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.builders import Manifest, node, pod
from tests.command import kschedx

GATES_ON = {"GenericWorkload": True, "GangScheduling": True}


def workload(group: str, min_count: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha1",
        "kind": "Workload",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {"podGroups": [{"name": group, "policy": {"gang": {"minCount": min_count}}}]},
    }


@pytest.mark.parametrize("command", [("why", "me"), ("simulate",)], ids=["why", "simulate"])
@pytest.mark.parametrize(
    ("objects", "version", "gates", "text"),
    [
        ([], "1.35", GATES_ON, 'waiting for pods\'s workload "train" to appear in scheduling queue'),
        ([workload("other", 1)], "1.35", GATES_ON, 'pod group "workers" doesn\'t exist for a workload "train"'),
        (
            [workload("workers", 2)],
            "1.35",
            GATES_ON,
            "waiting for minCount pods from a gang to appear in scheduling queue",
        ),
        ([workload("workers", 1)], "1.35", GATES_ON, ""),
        ([], "1.35", {}, ""),
        ([], "1.36", GATES_ON, ""),
    ],
    ids=["no workload", "another group", "too few pods", "complete", "gates off", "since 1.36"],
)
def test_a_pod_waits_for_the_gang_of_its_workload(
    tmp_path: Path,
    command: tuple[str, ...],
    objects: list[Manifest],
    version: str,
    gates: Mapping[str, bool],
    text: str,
) -> None:
    file = tmp_path / "cluster.json"
    target = pod("me", workloadRef={"name": "train", "podGroup": "workers"})
    file.write_text(json.dumps({"kind": "List", "items": [node("n"), target, *objects]}))
    options = [f"--feature-gate={gate}={str(on).lower()}" for gate, on in gates.items()]
    answer = kschedx(*command, "-o", "json", "--snapshot", str(file), f"--kube-version={version}", *options)
    assert answer.code == (1 if text else 0)
    if command[0] == "why":
        assert (json.dumps(text)[1:-1] in answer.out) is bool(text) or not text
