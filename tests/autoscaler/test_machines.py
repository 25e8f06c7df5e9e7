"""What is known of groups without nodes: Cluster API's annotations, and what the autoscaler itself prints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kschedx
from kschedx.autoscaler.templates import machine_templates
from tests.builders import Manifest
from tests.command import ROOT
from tests.command import kschedx as command

CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"


def machines(
    annotations: dict[str, str], *, kind: str = "MachineDeployment", group: str = "cluster.x-k8s.io"
) -> Manifest:
    labels = {"node.cluster.x-k8s.io/pool": "gpu", "team": "not passed on"}
    taints = [{"key": "gpu", "value": "old", "effect": "NoSchedule"}, {"key": "kept", "effect": "NoExecute"}]
    return {
        "apiVersion": f"{group}/v1beta1",
        "kind": kind,
        "metadata": {"name": "gpu", "namespace": "capi", "annotations": annotations},
        "spec": {"template": {"spec": {"metadata": {"labels": labels}, "taints": taints}}},
    }


def templates(*manifests: Manifest) -> dict[str, dict[str, object]]:
    return machine_templates(kschedx.Snapshot.from_objects(list(manifests)))


ENOUGH = {f"{CAPACITY}cpu": "8", f"{CAPACITY}memory": "32Gi"}


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        ("MachineDeployment", "cluster.x-k8s.io", "MachineDeployment/capi/gpu"),
        ("MachineSet", "cluster.x-k8s.io", "MachineSet/capi/gpu"),
        ("MachinePool", "cluster.x-k8s.io", "MachinePool/capi/gpu"),
        ("MachineSet", "machine.openshift.io", "MachineSet/capi/gpu"),
    ],
)
def test_a_group_is_named_as_the_autoscaler_names_it(kind: str, group: str, name: str) -> None:
    assert list(templates(machines(ENOUGH, kind=kind, group=group))) == [name]


def test_a_group_that_does_not_tell_cpu_and_memory_has_no_template() -> None:
    assert templates(machines({f"{CAPACITY}cpu": "8"})) == {}


def test_what_a_machine_offers_is_wears_and_repels() -> None:
    more = {
        f"{CAPACITY}gpu-type": "nvidia.com/gpu",
        f"{CAPACITY}gpu-count": "2",
        f"{CAPACITY}maxPods": "58",
        f"{CAPACITY}ephemeral-disk": "100Gi",
        f"{CAPACITY}labels": "zone=a,node.cluster.x-k8s.io/pool=other,broken",
        f"{CAPACITY}taints": "gpu=yes:NoSchedule,more:NoSchedule",
    }
    node: Any = templates(machines(ENOUGH | more))["MachineDeployment/capi/gpu"]["Node"]
    assert node["status"]["capacity"] == {
        "cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "nvidia.com/gpu": "2", "pods": "58",
    }  # fmt: skip
    labels = node["metadata"]["labels"]
    assert (labels["zone"], labels["node.cluster.x-k8s.io/pool"], labels["kubernetes.io/arch"]) == (
        "a",
        "other",
        "amd64",
    )
    assert "team" not in labels
    assert [(taint["key"], taint["value"], taint["effect"]) for taint in node["spec"]["taints"]] == [
        ("gpu", "yes", "NoSchedule"),
        ("kept", "", "NoExecute"),
        ("more", "", "NoSchedule"),
    ]


def test_what_the_autoscaler_prints_is_given_beside_the_cluster(tmp_path: Path) -> None:
    cluster = ROOT / "fixtures" / "autoscaler-at-maximum"
    printed = tmp_path / "snapshotz.json"
    printed.write_text(json.dumps({"NodeList": [], "TemplateNodes": {"other": {"Node": {"metadata": {}}, "Pods": []}}}))
    alone = command("why", cluster / "pod.yaml", "-s", cluster / "cluster.yaml")
    beside = command("why", cluster / "pod.yaml", "-s", cluster / "cluster.yaml", "-s", printed)
    assert (beside.out, beside.code) == (alone.out, alone.code)
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"NodeList": []}')
    refused = command("why", cluster / "pod.yaml", "-s", cluster / "cluster.yaml", "-s", wrong)
    assert refused.code == 2
    assert "neither a map with `groups` nor the output of /snapshotz" in refused.err
