"""Differences between two configurations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kschedx.explain.profile_changes import changes
from kschedx.explain.setup import Setup
from kschedx.releases import resolve

Listed = tuple[str, str, str, object, object]


def setup(
    plugins: Mapping[str, object] | None = None,
    *,
    version: str | None = None,
    gates: Mapping[str, bool] | None = None,
    **profile: object,
) -> Setup:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": plugins or {}, **profile}],
    }
    return Setup.of("one", config, resolve(version, gates))


def list_changes(before: Setup, after: Setup) -> list[Listed]:
    return [
        (change.place, change.subject, change.setting, change.before, change.after) for change in changes(before, after)
    ]


def enabled(point: str, *plugins: Mapping[str, object]) -> Mapping[str, object]:
    return {point: {"disabled": [{"name": "*"}], "enabled": list(plugins)}}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (setup(), setup(), []),
        (
            setup(),
            setup({"score": {"disabled": [{"name": "ImageLocality"}]}}),
            [("score", "ImageLocality", "", "weight 1", "")],
        ),
        (
            setup(enabled("score", {"name": "ImageLocality", "weight": 2})),
            setup(enabled("score", {"name": "ImageLocality", "weight": 5})),
            [("score", "ImageLocality", "weight", "2", "5")],
        ),
        # the order of a sum is nobody's business
        (
            setup(enabled("score", {"name": "ImageLocality"}, {"name": "NodeAffinity"})),
            setup(enabled("score", {"name": "NodeAffinity"}, {"name": "ImageLocality"})),
            [],
        ),
        (
            setup(enabled("filter", {"name": "NodeName"}, {"name": "NodePorts"}, {"name": "NodeAffinity"})),
            setup(enabled("filter", {"name": "NodePorts"}, {"name": "NodeAffinity"}, {"name": "NodeName"})),
            [("filter", "NodeName", "position", "1 of 3", "3 of 3")],
        ),
        (
            setup(percentageOfNodesToScore=30),
            setup(),
            [("scheduler", "percentageOfNodesToScore", "", "30%", "by cluster size")],
        ),
        (
            setup(),
            setup(pluginConfig=[{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 7}}]),
            [("args", "InterPodAffinity", "hardPodAffinityWeight", "1", "7")],
        ),
        (
            setup(gates={"NodeInclusionPolicyInPodTopologySpread": True}, version="1.26"),
            setup(gates={"NodeInclusionPolicyInPodTopologySpread": False}, version="1.26"),
            [("gate", "NodeInclusionPolicyInPodTopologySpread", "", "true", "false")],
        ),
    ],
    ids=["nothing", "less", "weight", "order of a sum", "order", "percentage", "argument", "gate"],
)
def test_a_difference_is_listed_once(before: Setup, after: Setup, expected: list[Listed]) -> None:
    assert list_changes(before, after) == expected


def test_another_version_comes_first() -> None:
    texts = list_changes(setup(version="1.35"), setup(version="1.36"))
    assert texts[0] == ("release", "Kubernetes", "", resolve("1.35").version, resolve("1.36").version)


def test_swapped_configurations_have_reversed_differences() -> None:
    item, other = setup(), setup({"score": {"disabled": [{"name": "ImageLocality"}]}}, percentageOfNodesToScore=30)
    assert [
        (place, subject, setting, after, before) for place, subject, setting, before, after in list_changes(item, other)
    ] == list_changes(other, item)
