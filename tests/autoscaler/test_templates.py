"""Templates of groups without nodes: from Cluster API's annotations, and from the autoscaler's /snapshotz."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import kschedx
from kschedx.autoscaler.templates import cloud_templates, machine_templates
from kschedx.errors import InputError
from tests.builders import Manifest
from tests.command import ROOT
from tests.command import kschedx as command

CAPACITY = "capacity.cluster-autoscaler.kubernetes.io/"


def machine_set(
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


CPU_AND_MEMORY = {f"{CAPACITY}cpu": "8", f"{CAPACITY}memory": "32Gi"}


@pytest.mark.parametrize(
    ("kind", "group", "name"),
    [
        ("MachineDeployment", "cluster.x-k8s.io", "MachineDeployment/capi/gpu"),
        ("MachineSet", "cluster.x-k8s.io", "MachineSet/capi/gpu"),
        ("MachinePool", "cluster.x-k8s.io", "MachinePool/capi/gpu"),
        ("MachineSet", "machine.openshift.io", "MachineSet/capi/gpu"),
    ],
)
def test_a_group_has_the_autoscalers_name(kind: str, group: str, name: str) -> None:
    assert list(templates(machine_set(CPU_AND_MEMORY, kind=kind, group=group))) == [name]


def test_a_group_without_cpu_and_memory_has_no_template() -> None:
    assert templates(machine_set({f"{CAPACITY}cpu": "8"})) == {}


def test_a_template_has_capacity_labels_and_taints() -> None:
    annotations = {
        f"{CAPACITY}gpu-type": "nvidia.com/gpu",
        f"{CAPACITY}gpu-count": "2",
        f"{CAPACITY}maxPods": "58",
        f"{CAPACITY}ephemeral-disk": "100Gi",
        f"{CAPACITY}labels": "zone=a,node.cluster.x-k8s.io/pool=other,broken",
        f"{CAPACITY}taints": "gpu=yes:NoSchedule,more:NoSchedule",
    }
    node: Any = templates(machine_set(CPU_AND_MEMORY | annotations))["MachineDeployment/capi/gpu"]["Node"]
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


def test_the_output_of_snapshotz_supplements_a_cluster(tmp_path: Path) -> None:
    cluster = ROOT / "fixtures" / "autoscaler-at-maximum"
    snapshotz = tmp_path / "snapshotz.json"
    snapshotz.write_text(
        json.dumps({"NodeList": [], "TemplateNodes": {"other": {"Node": {"metadata": {"name": "n"}}, "Pods": []}}})
    )
    expected = command("why", cluster / "pod.yaml", "-s", cluster / "cluster.yaml")
    answer = command("why", cluster / "pod.yaml", "-s", cluster / "cluster.yaml", "-s", snapshotz)
    assert (answer.out, answer.code) == (expected.out, expected.code)
    invalid = tmp_path / "wrong.json"
    invalid.write_text('{"NodeList": []}')
    answer = command("why", cluster / "pod.yaml", "-s", cluster / "cluster.yaml", "-s", invalid)
    assert answer.code == 2
    assert "neither a map with `groups` nor the output of /snapshotz" in answer.err


@pytest.mark.parametrize("pods", ["web", {"web": {}}, [1]], ids=str)
def test_the_pods_of_a_template_are_manifests(pods: object) -> None:
    with pytest.raises(InputError, match="Pods is a list of manifests"):
        cloud_templates({"a": {"Node": {}, "Pods": pods}})


def test_a_template_is_a_node_whatever_its_kind() -> None:
    template = cloud_templates({"a": {"Node": {"apiVersion": "v2", "kind": "Pod"}, "Pods": [{"kind": "Node"}]}})["a"]
    assert (template.node.name, len(template.pods)) == ("template", 1)
