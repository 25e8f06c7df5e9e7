"""What an answer is worth where a configuration names plugins that kschedx does not have."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import kschedx
from kschedx.framework.cycle import Outcome, Stake, open_stake
from tests.builders import Manifest, node, pod

SMALL, ROOMY = node("small", allocatable={"cpu": "1", "pods": "10"}), node("roomy")
WANTS = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}


def naming(**points: str) -> Manifest:
    plugins = {point: {"enabled": [{"name": name}]} for point, name in points.items()}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins}],
    }


@pytest.mark.parametrize(
    ("points", "fits", "does_not"),
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
def test_a_rejection_stands_and_a_fit_is_open(
    points: Mapping[str, str], fits: tuple[Outcome, Stake], does_not: Outcome
) -> None:
    config = naming(**points)
    for nodes, expected in (([SMALL, ROOMY], fits[0]), ([SMALL], does_not)):
        snapshot = kschedx.Snapshot.from_objects([*nodes, pod("web", spec=WANTS)])
        explanation = kschedx.explain(snapshot, "default/web", config=config)
        assert (explanation.outcome, open_stake(explanation.cycle.unevaluated)) == (expected, fits[1])
        assert [note.id for note in explanation.notes if note.id == "unknown-plugin"] == ["unknown-plugin"]
        waived = kschedx.explain(snapshot, "default/web", config=config, without_unknown_plugins=True)
        decided = {Outcome.UNDECIDED: Outcome.SCHEDULED}.get(expected, expected)
        assert (waived.outcome, open_stake(waived.cycle.unevaluated)) == (decided, Stake.NOTHING)


def test_a_fix_is_verified_only_where_everybody_was_asked() -> None:
    snapshot = kschedx.Snapshot.from_objects([SMALL, pod("web", spec=WANTS)])
    certainties = [
        {fix.certainty.value for fix in kschedx.explain(snapshot, "default/web", config=config).fixes}
        for config in (None, naming(score="Mine"), naming(filter="Mine"))
    ]
    assert certainties == [{"verified"}, {"verified"}, {"partial"}]
