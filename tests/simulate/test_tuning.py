"""`kschedx profiles tune`: the best profile reaches its figures, and the rest of the configuration is unchanged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from kschedx.errors import ConfigError
from kschedx.explain.setup import Setup
from kschedx.simulate.repack import movable, repack
from kschedx.simulate.tuning import FitStrategy, ProfileCandidate, Tuning, TuningGoal, tune
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest
from tests.command import check_document, kschedx
from tests.simulate.clusters import deployment, nodes

HEAD = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
PLACES = [f"node-{number}" for number in range(1, 6)]
SHOP: list[Manifest] = [
    *nodes(),
    *(each for number in range(4) for each in deployment(f"app-{number}", "1", [PLACES[number], PLACES[number + 1]])),
]


def tuned(
    goal: TuningGoal, base: Mapping[str, object] = HEAD, *, most: int = 30, seed: int = 0
) -> tuple[Tuning, Snapshot]:
    snapshot = Snapshot.from_objects(SHOP)
    setup = Setup.of_cluster(snapshot, config=base, kube_version="1.36")
    return tune(snapshot, setup, base, goal, most=most, seed=seed, seconds=600), snapshot


@pytest.mark.sample(2)
@pytest.mark.parametrize("goal", [TuningGoal.FEWEST_NODES, TuningGoal.LEAST_FRAGMENTATION, TuningGoal.SPREAD])
def test_the_best_profile_reaches_its_figures(goal: TuningGoal) -> None:
    result, snapshot = tuned(goal)
    rows = movable(snapshot)
    again = repack(snapshot, Setup.of_cluster(snapshot, config=result.configuration, kube_version="1.36"), rows)
    assert (result.best.nodes, result.best.spread) == (again.filling.in_use, again.spread)
    assert result.best.fragmentation == again.fragmentation
    assert result.best.measure(goal) <= result.today.measure(goal)
    check_document(result.to_dict())


def test_fewer_nodes_need_another_strategy() -> None:
    result, _ = tuned(TuningGoal.FEWEST_NODES)
    assert (result.today.nodes, result.best.nodes, result.is_better) == (5, 1, True)
    assert result.best.candidate.strategy in (FitStrategy.MOST, FitStrategy.UP_TO)
    assert not any(
        item.rank(TuningGoal.FEWEST_NODES) < result.best.rank(TuningGoal.FEWEST_NODES) for item in result.front
    )


def test_unneeded_changes_are_removed() -> None:
    result, snapshot = tuned(TuningGoal.FEWEST_NODES)
    for simpler in result.best.candidate.parts.values():
        config = simpler.apply_to(HEAD, "default-scheduler")
        setup = Setup.of_cluster(snapshot, config=config, kube_version="1.36")
        assert repack(snapshot, setup, movable(snapshot)).filling.in_use > result.best.nodes


def test_a_seed_is_reproducible() -> None:
    assert tuned(TuningGoal.SPREAD, seed=7)[0].to_dict() == tuned(TuningGoal.SPREAD, seed=7)[0].to_dict()


def test_nothing_else_of_the_configuration_changes() -> None:
    fit = {
        "name": "NodeResourcesFit",
        "args": {"ignoredResources": ["a.b/c"], "scoringStrategy": {"type": "LeastAllocated"}},
    }
    score = {"enabled": [{"name": "ImageLocality", "weight": 3}, {"name": "NodeAffinity", "weight": 4}]}
    other = {"schedulerName": "other", "plugins": {"score": {"disabled": [{"name": "*"}]}}}
    own = {"schedulerName": "own", "plugins": {"score": score}, "pluginConfig": [fit]}
    base = {**HEAD, "profiles": [other, own], "parallelism": 8}
    before = json.dumps(base)
    candidate = ProfileCandidate(
        strategy=FitStrategy.MOST,
        resources=(3, 1),
        weights=(("ImageLocality", 0), ("PodTopologySpread", 5)),
        spreads_by_default=False,
    )
    after = candidate.apply_to(base, "own")
    assert json.dumps(base) == before
    assert after == {
        **base,
        "profiles": [
            other,
            {
                "schedulerName": "own",
                "plugins": {
                    "score": {
                        "enabled": [{"name": "NodeAffinity", "weight": 4}, {"name": "PodTopologySpread", "weight": 5}],
                        "disabled": [{"name": "ImageLocality"}],
                    }
                },
                "pluginConfig": [
                    {
                        "name": "NodeResourcesFit",
                        "args": {
                            "ignoredResources": ["a.b/c"],
                            "scoringStrategy": {
                                "type": "MostAllocated",
                                "resources": [{"name": "cpu", "weight": 3}, {"name": "memory", "weight": 1}],
                            },
                        },
                    },
                    {"name": "PodTopologySpread", "args": {"defaultingType": "List"}},
                ],
            },
        ],
    }


def test_every_candidate_is_a_valid_configuration() -> None:
    snapshot = Snapshot.from_objects(SHOP)
    for strategy in (None, *FitStrategy):
        for weights in ((), (("PodTopologySpread", 0), ("NodeResourcesFit", 10))):
            item = ProfileCandidate(strategy=strategy, resources=(1, 3), weights=weights, spreads_by_default=False)
            setup = Setup.of_cluster(snapshot, config=item.apply_to(HEAD, "default-scheduler"))
            assert setup.profiles[0].points["score"].count("PodTopologySpread") == (0 if weights else 1)


def test_a_cost_needs_prices() -> None:
    with pytest.raises(ConfigError, match="no price is known of node node-1"):
        tuned(TuningGoal.COST)


@pytest.mark.parametrize("columns", [80, 100])
def test_the_screen(columns: int, tmp_path: Path) -> None:
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump_all(SHOP))
    question = ("profiles", "tune", "-s", cluster, "--candidates", 12, "--jobs", 1, "--kube-version", "1.36")
    result = kschedx(*map(str, question), columns=columns)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("✓ ")
    words = " ".join(result.out.split())
    assert ": 1 of 5 nodes in use, with today's profile 5 " in words
    assert "args NodeResourcesFit scoringStrategy.type LeastAllocated → " in words
    assert all(len(line) <= columns for line in result.out.splitlines())
    printed = kschedx(*map(str, question), "-o", "yaml").out
    assert yaml.safe_load(printed)["profiles"][0]["pluginConfig"][0]["name"] == "NodeResourcesFit"


def test_an_unknown_goal_is_an_error() -> None:
    result = kschedx("profiles", "tune", "--goal", "fewest-node")
    assert (result.code, result.out) == (2, "")
    assert 'did you mean "fewest-nodes"?' in result.err
