"""Errors of plugins that a profile disables at PreFilter or PreScore, in kube-scheduler's words."""

from __future__ import annotations

from typing import Any

import pytest

from tests.builders import Manifest, evaluate, node, only, pod

OBJECTS = [node("a"), node("b"), pod("new")]


def config_without(point: str, plugin: str) -> Manifest:
    """Return a configuration with `plugin` alone, disabled at one extension point."""
    config: dict[str, Any] = only(plugin)
    config["profiles"][0]["plugins"][point] = {"disabled": [{"name": plugin}]}
    return config


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        ("NodePorts", 'reading "PreFilterNodePorts" from cycleState: not found'),
        ("NodeResourcesFit", 'error reading "PreFilterNodeResourcesFit" from cycleState: not found'),
        ("PodTopologySpread", 'reading "PreFilterPodTopologySpread" from cycleState: not found'),
        ("InterPodAffinity", 'error reading "PreFilterInterPodAffinity" from cycleState: not found'),
        ("VolumeRestrictions", 'cannot read "PreFilterVolumeRestrictions" from cycleState'),
        ("VolumeBinding", "not found"),
    ],
)
def test_a_filter_without_pre_filter_fails(plugin: str, text: str) -> None:
    cycle = evaluate(OBJECTS, "default/new", config_without("preFilter", plugin))
    assert (cycle.outcome, cycle.message) == ("Error", f'running "{plugin}" filter plugin: {text}')


def test_preemption_has_no_candidates_after_an_unresolvable_rejection() -> None:
    """An earlier plugin rejects the only node as unresolvable, so preemption tries no node."""
    config: dict[str, Any] = config_without("preFilter", "PodTopologySpread")
    names = ("PrioritySort", "NodeUnschedulable", "PodTopologySpread", "DefaultPreemption", "DefaultBinder")
    config["profiles"][0]["plugins"]["multiPoint"]["enabled"] = [{"name": name} for name in names]
    objects = [node("a", unschedulable=True), pod("new", priority=1)]
    cycle = evaluate(objects, "default/new", config)
    assert cycle.message.endswith("preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling.")


def test_pre_bind_without_pre_filter_fails() -> None:
    config: dict[str, Any] = only("NodeName")
    config["profiles"][0]["plugins"]["preBind"] = {"enabled": [{"name": "VolumeBinding"}]}
    steps = evaluate(OBJECTS[1:], "default/new", config).dry_steps
    assert [(point, status.code.text, status.message) for point, status in steps] == [("preBind", "Error", "not found")]


@pytest.mark.parametrize(
    ("plugin", "text"),
    [
        ("TaintToleration", 'failed to read "PreScoreTaintToleration" from cycleState: not found'),
        ("PodTopologySpread", 'error reading "PreScorePodTopologySpread" from cycleState: not found'),
        ("InterPodAffinity", 'failed to read "PreScoreInterPodAffinity" from cycleState: not found'),
    ],
)
def test_a_score_without_pre_score_fails(plugin: str, text: str) -> None:
    cycle = evaluate(OBJECTS, "default/new", config_without("preScore", plugin))
    result = f'running Score plugins: plugin "{plugin}" failed with: {text}'
    assert (cycle.outcome, cycle.message) == ("Error", result)


def test_pre_score_does_not_run_without_a_score_plugin() -> None:
    """No PreScore plugin is called then, not even one that would fail."""
    config: dict[str, Any] = only("NodeName")
    config["profiles"][0]["plugins"]["preScore"] = {"enabled": [{"name": "VolumeBinding"}]}
    cycle = evaluate(OBJECTS, "default/new", config, gates={"StorageCapacityScoring": True})
    assert cycle.outcome == "Scheduled"


@pytest.mark.parametrize("plugin", ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"])
def test_plugins_that_score_without_pre_score(plugin: str) -> None:
    assert evaluate(OBJECTS, "default/new", config_without("preScore", plugin)).outcome == "Scheduled"
