"""Admission plugins that an API server runs only if they are enabled."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kschedx.apiserver.admission import (
    DEFAULT_TOLERATIONS,
    NODE_SELECTOR,
    PROJECT_NODE_SELECTOR,
    TOLERATIONS_WHITELIST,
    apply_default_tolerations,
    apply_node_selector,
    project_selector,
    tolerate_extended_resources,
)
from kschedx.errors import InputError
from kschedx.kube.types import PodSpec

Json = dict[str, Any]

FIELD = f"metadata.annotations[{NODE_SELECTOR}]"
GPU = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
PRESSURE = {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"}


def spec_of(**fields: object) -> PodSpec:
    return msgspec.convert(fields, PodSpec)


def container(**requests: str) -> Json:
    return {"name": "main", "resources": {"requests": requests}}


@pytest.mark.parametrize(
    ("selector", "node_selector", "merged"),
    [
        ("", {"zone": "a"}, {"zone": "a"}),
        ("team=shop, disk = ssd", {"zone": "a"}, {"team": "shop", "disk": "ssd", "zone": "a"}),
        ("team=shop", {"team": "shop"}, {"team": "shop"}),
        ("team=", {}, {"team": ""}),
    ],
)
def test_the_node_selector_of_a_namespace(selector: str, node_selector: Json, merged: Json) -> None:
    assert apply_node_selector(spec_of(nodeSelector=node_selector), selector, FIELD) == spec_of(nodeSelector=merged)


@pytest.mark.parametrize(
    ("annotations", "selector"),
    [
        ({}, "type=user"),
        ({PROJECT_NODE_SELECTOR: "type=infra"}, "type=infra"),
        ({PROJECT_NODE_SELECTOR: ""}, ""),
        ({NODE_SELECTOR: "type=gpu"}, ""),
    ],
)
def test_the_node_selector_of_an_openshift_project_replaces_the_default(
    annotations: dict[str, str], selector: str
) -> None:
    assert project_selector(annotations, "type=user") == selector


def test_a_conflict_with_the_node_selector_of_the_namespace() -> None:
    with pytest.raises(InputError) as error:
        apply_node_selector(spec_of(nodeSelector={"team": "blog"}), "team=shop", FIELD)
    assert str(error.value) == (
        "spec.nodeSelector[team]: pod node label selector conflicts with its namespace node label selector "
        "(the namespace says team=shop)"
    )


@pytest.mark.parametrize("selector", ["team", "team=a=b", "=a", "team=a b", "a=b,"])
def test_an_invalid_node_selector_of_a_namespace(selector: str) -> None:
    with pytest.raises(InputError, match=r"^metadata\.annotations\[.*node-selector\]: .* not of the form key=value"):
        apply_node_selector(spec_of(), selector, FIELD)


@pytest.mark.parametrize(
    ("spec", "defaults", "tolerations"),
    [
        pytest.param({"containers": [container()]}, [GPU], [GPU], id="best effort"),
        pytest.param({"containers": [container(cpu="0")]}, [], [], id="a request of 0 is best effort"),
        pytest.param({"containers": [container(cpu="1")]}, [], [PRESSURE], id="burstable tolerates memory pressure"),
        pytest.param(
            {"containers": [container()], "resources": {"limits": {"memory": "1Gi"}}}, [GPU], [GPU, PRESSURE],
            id="burstable by pod-level resources",
        ),
        pytest.param(
            {"containers": [container()], "tolerations": [{"operator": "Exists"}]}, [GPU], [{"operator": "Exists"}],
            id="already tolerated",
        ),
    ],
)  # fmt: skip
def test_default_tolerations_of_a_namespace(spec: Json, defaults: list[Json], tolerations: list[Json]) -> None:
    defaulted = apply_default_tolerations(spec_of(**spec), {DEFAULT_TOLERATIONS: json.dumps(defaults)})
    assert defaulted == spec_of(**spec | {"tolerations": tolerations})


def test_the_tolerations_whitelist_of_a_namespace() -> None:
    annotations = {TOLERATIONS_WHITELIST: json.dumps([GPU])}
    allowed = spec_of(tolerations=[GPU | {"operator": "Equal", "value": "a100"}])
    assert apply_default_tolerations(allowed, annotations) == allowed
    with pytest.raises(
        InputError, match=r"^spec\.tolerations\[1\]: pod tolerations .* conflict with its namespace whit"
    ):
        apply_default_tolerations(spec_of(tolerations=[GPU, {"key": "x", "operator": "Exists"}]), annotations)


def test_invalid_default_tolerations() -> None:
    with pytest.raises(InputError, match=r"^metadata\.annotations\[.*defaultTolerations\]: not valid JSON"):
        apply_default_tolerations(spec_of(), {DEFAULT_TOLERATIONS: "[{"})


def test_taints_of_extended_resources_are_tolerated() -> None:
    spec = spec_of(
        containers=[container(**{"example.com/gpu": "1", "cpu": "1"})],
        initContainers=[container(**{"example.com/fpga": "1"})],
        tolerations=[{"key": "example.com/gpu", "operator": "Exists", "effect": "NoExecute"}],
    )
    assert tolerate_extended_resources(spec).tolerations == (
        *spec.tolerations,
        *spec_of(
            tolerations=[
                {"key": "example.com/fpga", "operator": "Exists", "effect": "NoSchedule"},
                {"key": "example.com/gpu", "operator": "Exists", "effect": "NoSchedule"},
            ]
        ).tolerations,
    )
    assert tolerate_extended_resources(tolerate_extended_resources(spec)) == tolerate_extended_resources(spec)
