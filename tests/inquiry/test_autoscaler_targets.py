"""Autoscalers of workloads whose target is missing, of a custom kind, or not in the dump."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Manifest, at, node, pod
from tests.command import kschedx
from tests.inquiry.objects import answer_of

CUSTOM = ("example.com/v1", "MyApp")


def condition(kind: str, status: str, reason: str, message: str = "") -> Manifest:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def autoscaler(target: tuple[str, str], *conditions: Manifest, kind: str = "HorizontalPodAutoscaler") -> Manifest:
    versions = {"ScaledObject": "keda.sh/v1alpha1", "VerticalPodAutoscaler": "autoscaling.k8s.io/v1"}
    api, field = versions.get(kind, "autoscaling/v2"), "targetRef" if kind.startswith("V") else "scaleTargetRef"
    spec: dict[str, Any] = {field: {"apiVersion": target[0], "kind": target[1], "name": "web"}}
    spec |= {"maxReplicas": 5} if kind == "HorizontalPodAutoscaler" else {}
    metadata = {"name": "web", "namespace": "default"}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec, "status": {"conditions": conditions}}


def of_version_1(target: tuple[str, str], written: str) -> Manifest:
    """Return an autoscaler of v1, which has its conditions in an annotation."""
    item = autoscaler(target)
    annotations = {"autoscaling.alpha.kubernetes.io/conditions": written}
    metadata = {"name": "web", "namespace": "default", "annotations": annotations}
    return {**item, "apiVersion": "autoscaling/v1", "metadata": metadata}


def deployment(name: str, namespace: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"replicas": 1}}


APPS = ("apps/v1", "Deployment")
NO_METRICS = condition("ScalingActive", "False", "FailedGetResourceMetric", "no metrics")
AT_MOST = condition("ScalingLimited", "True", "TooManyReplicas", "more than the maximum")
WELL = condition("AbleToScale", "True", "SucceededGetScale")
NOT_FOUND = condition("AbleToScale", "False", "FailedGetScale", 'myapps.example.com "web" not found')
KEDA = condition("Ready", "False", "ScaledObjectCheckFailed", "no scale subresource")


@pytest.mark.parametrize(
    ("target", "objects", "code", "does", "cause"),
    [
        (
            "hpa/web",
            [autoscaler(CUSTOM, NO_METRICS)],
            0,
            "does not scale (FailedGetResourceMetric): MyApp web keeps",
            "no metrics",
        ),
        (
            "hpa/web",
            [of_version_1(CUSTOM, json.dumps([NO_METRICS]))],
            0,
            "does not scale (FailedGetResourceMetric): MyApp web keeps",
            "no metrics",
        ),
        (
            "hpa/web",
            [of_version_1(CUSTOM, "[{")],
            3,
            "is undecided: its target MyApp web is not known",
            "the dump holds no MyApp",
        ),
        ("hpa/web", [autoscaler(CUSTOM, AT_MOST)], 0, "is at maxReplicas 5: MyApp web keeps", "more than the maximum"),
        ("hpa/web", [autoscaler(CUSTOM, WELL)], 0, "scales MyApp web, of which no pod is known", ""),
        ("hpa/web", [autoscaler(CUSTOM, NOT_FOUND)], 0, "scales nothing: there is no MyApp web", NOT_FOUND["message"]),
        (
            "hpa/web",
            [autoscaler(CUSTOM)],
            3,
            "is undecided: its target MyApp web is not known",
            "the dump holds no MyApp",
        ),
        (
            "hpa/web",
            [autoscaler(APPS), deployment("api", "shop")],
            3,
            "is undecided",
            "the dump holds no Deployment of",
        ),
        (
            "hpa/web",
            [autoscaler(APPS), deployment("api", "default")],
            0,
            "scales nothing: there is no Deployment web",
            "",
        ),
        (
            "vpa/web",
            [autoscaler(APPS, kind="VerticalPodAutoscaler"), deployment("api", "default")],
            0,
            "scales nothing: there is no Deployment web",
            "",
        ),
        (
            "so/web",
            [autoscaler(CUSTOM, KEDA, kind="ScaledObject")],
            0,
            "is not ready (ScaledObjectCheckFailed)",
            KEDA["message"],
        ),
    ],
)
def test_an_autoscaler_without_a_known_target_is_answered_by_its_conditions(
    target: str, objects: list[Manifest], code: int, does: str, cause: str
) -> None:
    answer = answer_of(target, *objects)
    assert (answer.code, answer.headline.partition(" ")[2].startswith(does)) == (code, True)
    assert any(text.startswith(cause) for text in answer.causes) if cause else not answer.causes


@pytest.mark.parametrize(
    ("most", "says"),
    [
        (3, "may add 2 pods (maxReplicas 3): all of them fit"),
        (9, "may add 8 pods (maxReplicas 9): 3 of them fit"),
        (1, ""),
    ],
)
def test_an_autoscaler_shows_how_much_of_its_maximum_fits(most: int, says: str, tmp_path: Path) -> None:
    containers = [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]
    labels, selector = {"app": "web"}, {"matchLabels": {"app": "web"}}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": True}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"replicas": 1, "selector": selector, "template": template}
    of_deployment = {**owner, "kind": "Deployment", "name": "web", "uid": "d"}
    metadata = {"name": "web-1", "uid": "r", "labels": labels, "ownerReferences": [of_deployment]}
    hpa = autoscaler(APPS)
    objects = [
        node("n", allocatable={"cpu": "4", "memory": "8Gi", "pods": "20"}),
        pod("web-1-a", on="n", labels=labels, metadata={"ownerReferences": [owner]}, containers=containers),
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": spec},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "uid": "d"}, "spec": spec},
        {**hpa, "spec": {**at(hpa, "spec"), "maxReplicas": most}},
    ]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": objects}))
    result = kschedx("why", "hpa/web", "-s", "cluster.json", cwd=tmp_path, columns=200)
    assert result.code == 0
    assert ("HorizontalPodAutoscaler web may add" in result.out) is bool(says)
    assert says in result.out
