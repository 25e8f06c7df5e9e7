"""Advice on configurations that kube-scheduler accepts but that have unwanted effects."""

from __future__ import annotations

from typing import Any

import pytest

from kschedx.framework.config.advice import Advice, advice
from kschedx.releases import resolve


def advice_on(plugins: dict[str, Any] | None = None, args: dict[str, Any] | None = None) -> tuple[Advice, ...]:
    profile: dict[str, Any] = {"schedulerName": "s", "plugins": plugins or {}}
    profile["pluginConfig"] = [{"name": name, "args": value} for name, value in (args or {}).items()]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    return advice(config, resolve("1.36"))


def advice_lines(plugins: dict[str, Any] | None = None, args: dict[str, Any] | None = None) -> list[tuple[str, str]]:
    return [(item.id, item.path.removeprefix("profiles[0].")) for item in advice_on(plugins, args)]


def enabled(*entries: tuple[str, int]) -> dict[str, Any]:
    return {"enabled": [{"name": name, "weight": weight} if weight else {"name": name} for name, weight in entries]}


def disabled(*names: str) -> dict[str, Any]:
    return {"disabled": [{"name": name} for name in names]}


def scored_resources(*resources: str) -> dict[str, Any]:
    return {"resources": [{"name": name, "weight": 1} for name in resources]}


CONSTANT_SHAPE = {
    "scoringStrategy": {
        "type": "RequestedToCapacityRatio",
        "requestedToCapacityRatio": {"shape": [{"utilization": 0, "score": 5}, {"utilization": 100, "score": 5}]},
    }
}
ONLY_FIT = {
    "multiPoint": disabled("*") | enabled(("PrioritySort", 0), ("DefaultBinder", 0)),
    "score": enabled(("NodeResourcesFit", 4)),
    "preScore": enabled(("NodeResourcesFit", 0)),
}


@pytest.mark.parametrize(
    ("plugins", "expected"),
    [
        ({"score": disabled("NodeResourceFit")}, ("unknown-plugin", "plugins.score.disabled[0].name")),
        ({"score": disabled("NodeName")}, ("nothing-to-disable", "plugins.score.disabled[0].name")),
        (
            {"score": enabled(("ImageLocality", 4)), "multiPoint": enabled(("ImageLocality", 2))},
            ("scored-twice", "plugins.score.enabled[0]"),
        ),
        ({"score": enabled(("TaintToleration", 0))}, ("lost-weight", "plugins.score.enabled[0]")),
        ({"multiPoint": enabled(("TaintToleration", 0))}, ("lost-weight", "plugins.multiPoint.enabled[0]")),
        ({"filter": enabled(("NodeName", 7))}, ("idle-weight", "plugins.filter.enabled[0].weight")),
        ({"multiPoint": enabled(("NodeName", 7))}, ("idle-weight", "plugins.multiPoint.enabled[0].weight")),
        (
            {"multiPoint": enabled(("ImageLocality", 7)), "score": disabled("ImageLocality")},
            ("idle-weight", "plugins.multiPoint.enabled[0].weight"),
        ),
        (ONLY_FIT, ("idle-weight", "plugins.score.enabled[0].weight")),
        (
            {"score": disabled("*") | enabled(("NodeAffinity", 4), ("ImageLocality", 6))},
            ("idle-weight", "plugins.score"),
        ),
        ({"filter": disabled("VolumeBinding")}, ("half-disabled", "plugins.filter")),
        ({"preFilter": disabled("NodePorts")}, ("half-disabled", "plugins.preFilter")),
        ({"score": disabled("TaintToleration")}, ("half-disabled", "plugins.score")),
        ({"preScore": disabled("TaintToleration")}, ("half-disabled", "plugins.preScore")),
        ({"multiPoint": disabled("NodeResourcesFit")}, ("kubelet-refuses", "plugins.filter")),
    ],
)
def test_advice_on_plugins(plugins: dict[str, Any], expected: tuple[str, str]) -> None:
    assert expected in advice_lines(plugins)


def test_the_weight_of_an_unknown_plugin_has_no_advice() -> None:
    text = advice_lines({"multiPoint": enabled(("Network", 5))})
    assert ("unknown-plugin", "plugins.multiPoint.enabled[0].name") in text
    assert "idle-weight" not in {item for item, _ in text}


def test_a_plugin_that_kubernetes_removed_has_a_successor() -> None:
    (unknown,) = advice_on({"score": enabled(("NodeResourcesMostAllocated", 1))})
    assert unknown.text.endswith("use NodeResourcesFit with scoringStrategy MostAllocated")


def test_equal_advice_on_several_plugins_appears_once() -> None:
    texts = [
        item
        for item in advice_lines({"score": disabled("TaintToleration", "NodeAffinity")})
        if item[0] == "half-disabled"
    ]
    assert texts == [("half-disabled", "plugins.score")]


@pytest.mark.parametrize(
    ("plugins", "args", "expected"),
    [
        ({}, {"NodeResourceFit": {}}, ("unknown-plugin", "pluginConfig[0].name")),
        (
            {"multiPoint": disabled("DefaultPreemption")},
            {"DefaultPreemption": {"minCandidateNodesPercentage": 50}},
            ("unused-arguments", "pluginConfig[0]"),
        ),
        ({}, {"NodeResourcesFit": CONSTANT_SHAPE}, ("idle-weight", "pluginConfig")),
        (
            {},
            {"NodeResourcesFit": {"scoringStrategy": {"type": "MostAllocated"}}},
            ("packs-and-spreads", "pluginConfig"),
        ),
        (
            {},
            {"NodeResourcesBalancedAllocation": scored_resources("cpu", "example.com/gpu")},
            ("panics", "pluginConfig"),
        ),
    ],
)
def test_advice_on_arguments(plugins: dict[str, Any], args: dict[str, Any], expected: tuple[str, str]) -> None:
    assert advice_lines(plugins, args) == [expected]


def test_the_default_configuration_has_no_advice() -> None:
    assert advice(None, resolve("1.36")) == ()
    assert advice_lines({"multiPoint": enabled(("ImageLocality", 3)) | disabled("DefaultPreemption")}) == []
    assert advice_lines({"score": enabled(("ImageLocality", 3))}) == []
