"""Autoscalers of workloads whose target is missing, of a custom kind, or not in the dump."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.builders import Manifest
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
