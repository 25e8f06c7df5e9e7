"""DynamicResources: silent about pods without devices, and never about pods with some."""

from __future__ import annotations

import pytest

from kschedx.errors import UndecidableError
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, evaluate, node, pod


def device_class(name: str, resource: str | None = None, created: str | None = None) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name} | ({"creationTimestamp": created} if created else {}),
        "spec": {"extendedResourceName": resource} if resource else {},
    }


def requesting(resource: str, amount: str = "1") -> Manifest:
    return pod("me", spec={"containers": [{"name": "main", "resources": {"limits": {resource: amount}}}]})


def test_a_pod_without_devices() -> None:
    cycle = evaluate([node("a"), node("b"), pod("me")], "default/me")
    assert "DynamicResources" in cycle.filter_skipped
    assert cycle.scores is not None
    assert cycle.scores.normalized["DynamicResources"].tolist() == [0, 0]


def test_a_pod_without_devices_that_fits_nowhere() -> None:
    cycle = evaluate([node("a", unschedulable=True), pod("me")], "default/me")
    assert " no new claims to deallocate, preemption: " in cycle.message


def test_where_another_plugin_ended_pre_filter_the_state_is_missing() -> None:
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    cycle = evaluate([node("a"), node("b"), pod("me", spec={"affinity": {"nodeAffinity": required}})], "default/me")
    assert [step.status.plugin for step in cycle.pre_filter][-1] == "NodeAffinity"
    assert cycle.message.endswith(". not found")


def test_a_profile_with_its_score_alone_cannot_score() -> None:
    plugins = {
        "multiPoint": {"disabled": [{"name": "DynamicResources"}]},
        "score": {"enabled": [{"name": "DynamicResources"}]},
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }
    cycle = evaluate([node("a"), node("b"), pod("me")], "default/me", config=config)
    assert cycle.message == 'running Score plugins: plugin "DynamicResources" failed with: not found'


@pytest.mark.parametrize("claim", [{"resourceClaimName": "gpu"}, {"resourceClaimTemplateName": "gpu"}])
def test_a_claim_cannot_be_decided(claim: dict[str, str]) -> None:
    me = pod("me", spec={"resourceClaims": [{"name": "accelerator", **claim}]})
    with pytest.raises(UndecidableError, match=r"Pod default/me asks for devices .*\(accelerator\)"):
        evaluate([node("a"), me], "default/me")


@pytest.mark.parametrize(
    ("resource", "amount", "classes", "decided"),
    [
        ("example.com/gpu", "1", [device_class("gpu", "example.com/gpu")], False),
        ("deviceclass.resource.kubernetes.io/gpu", "1", [device_class("gpu")], False),
        ("example.com/gpu", "0", [device_class("gpu", "example.com/gpu")], True),
        ("example.com/gpu", "1", [device_class("gpu", "example.com/other")], True),
        ("example.com/gpu", "1", [], True),
        ("deviceclass.resource.kubernetes.io/other", "1", [device_class("gpu")], True),
    ],
)
def test_extended_resources(resource: str, amount: str, classes: list[Manifest], decided: bool) -> None:
    objects = [node("a"), requesting(resource, amount), *classes]
    if decided:
        assert evaluate(objects, "default/me").message.startswith("0/1 nodes") == (amount != "0")
    else:
        with pytest.raises(UndecidableError, match=f"{resource}, for which DeviceClass gpu"):
            evaluate(objects, "default/me")


def test_the_gate_leaves_extended_resources_to_the_nodes() -> None:
    objects = [node("a"), requesting("example.com/gpu"), device_class("gpu", "example.com/gpu")]
    cycle = evaluate(objects, "default/me", gates={"DRAExtendedResource": False})
    assert "1 Insufficient example.com/gpu" in cycle.message


def test_of_several_classes_the_newest_counts_then_the_first_by_name() -> None:
    classes = [
        device_class("old", "example.com/gpu", "2025-01-01T00:00:00Z"),
        device_class("z-new", "example.com/gpu", "2026-01-01T00:00:00Z"),
        device_class("new", "example.com/gpu", "2026-01-01T00:00:00Z"),
    ]
    assert Snapshot.from_objects(classes).device_class_of_resource["example.com/gpu"] == "new"
