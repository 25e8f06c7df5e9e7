"""Answers for a configuration with plugins that kschedx does not have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import kschedx
from kschedx.framework.cycle import Outcome, Stake, open_stake
from tests.builders import Manifest, node, pod

SMALL, LARGE = node("small", allocatable={"cpu": "1", "pods": "10"}), node("roomy")
TWO_CPU = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}


def config_with(**points: str) -> Manifest:
    plugins = {point: {"enabled": [{"name": name}]} for point, name in points.items()}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }


@pytest.mark.parametrize(
    ("points", "fit", "unfit"),
    [
        ({"filter": "Mine"}, (Outcome.UNDECIDED, Stake.FIT), Outcome.UNSCHEDULABLE),
        ({"preFilter": "Mine"}, (Outcome.UNDECIDED, Stake.FIT), Outcome.UNSCHEDULABLE),
        ({"preEnqueue": "Mine"}, (Outcome.UNDECIDED, Stake.FIT), Outcome.UNSCHEDULABLE),
        ({"permit": "Mine"}, (Outcome.UNDECIDED, Stake.FIT), Outcome.UNSCHEDULABLE),
        ({"multiPoint": "Mine"}, (Outcome.UNDECIDED, Stake.FIT), Outcome.UNSCHEDULABLE),
        ({"score": "Mine", "filter": "Other"}, (Outcome.UNDECIDED, Stake.FIT), Outcome.UNSCHEDULABLE),
        ({"score": "Mine"}, (Outcome.SCHEDULED, Stake.NODE), Outcome.UNSCHEDULABLE),
        ({"postFilter": "Mine"}, (Outcome.SCHEDULED, Stake.NOTHING), Outcome.UNSCHEDULABLE),
        ({"postBind": "Mine"}, (Outcome.SCHEDULED, Stake.NOTHING), Outcome.UNSCHEDULABLE),
    ],
)
def test_an_unknown_plugin_leaves_only_a_fit_undecided(
    points: Mapping[str, str], fit: tuple[Outcome, Stake], unfit: Outcome
) -> None:
    config = config_with(**points)
    for nodes, expected in (([SMALL, LARGE], fit[0]), ([SMALL], unfit)):
        snapshot = kschedx.Snapshot.from_objects([*nodes, pod("web", spec=TWO_CPU)])
        explanation = kschedx.explain(snapshot, "default/web", config=config)
        assert (explanation.outcome, open_stake(explanation.cycle.unevaluated)) == (expected, fit[1])
        assert [note.id for note in explanation.notes if note.id == "unknown-plugin"] == ["unknown-plugin"]
        without_plugins = kschedx.explain(snapshot, "default/web", config=config, without_unknown_plugins=True)
        outcome = {Outcome.UNDECIDED: Outcome.SCHEDULED}.get(expected, expected)
        assert (without_plugins.outcome, open_stake(without_plugins.cycle.unevaluated)) == (outcome, Stake.NOTHING)


def test_a_fix_is_verified_if_no_unknown_plugin_can_reject() -> None:
    snapshot = kschedx.Snapshot.from_objects([SMALL, pod("web", spec=TWO_CPU)])
    certainties = [
        {fix.certainty.value for fix in kschedx.explain(snapshot, "default/web", config=config).fixes}
        for config in (None, config_with(score="Mine"), config_with(filter="Mine"))
    ]
    assert certainties == [{"verified"}, {"verified"}, {"partial"}]
