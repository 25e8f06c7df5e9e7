"""API versions of KubeSchedulerConfiguration: the Kubernetes versions that read them, their fields and defaults."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kschedx.errors import ConfigError
from kschedx.framework.config import Profile, load_profiles
from kschedx.releases import resolve

GROUP = "kubescheduler.config.k8s.io"


def profile(release: str, version: str, fields: Mapping[str, object] | None = None, *, gate: str = "") -> Profile:
    """Return the profile with these fields, and one feature gate turned on."""
    document = {"apiVersion": f"{GROUP}/{version}", "kind": "KubeSchedulerConfiguration", "profiles": [fields or {}]}
    return load_profiles(document, resolve(release, {gate: True} if gate else None)).profiles[0]


@pytest.mark.parametrize(
    ("release", "versions"),
    [
        ("1.26", ["v1", "v1beta3", "v1beta2"]),
        ("1.27", ["v1", "v1beta3", "v1beta2"]),
        ("1.28", ["v1", "v1beta3"]),
        ("1.29", ["v1"]),
        ("1.36", ["v1"]),
    ],
)
def test_kubernetes_versions_read_their_api_versions(release: str, versions: list[str]) -> None:
    for version in ("v1", "v1beta3", "v1beta2"):
        if version in versions:
            assert profile(release, version).points["queueSort"] == ("PrioritySort",)
        else:
            with pytest.raises(ConfigError, match=rf"apiVersion: Kubernetes {release} expects .*found"):
                profile(release, version)


def test_v1beta3_has_the_defaults_of_v1() -> None:
    assert profile("1.28", "v1beta3") == profile("1.28", "v1")


def test_v1beta2_has_its_own_order_and_weights() -> None:
    result = profile("1.26", "v1beta2")
    assert result.points["preScore"] == ("InterPodAffinity", "PodTopologySpread", "TaintToleration", "NodeAffinity")
    assert [(name, result.weights[name]) for name in result.points["score"]] == [
        ("NodeResourcesBalancedAllocation", 1),
        ("ImageLocality", 1),
        ("InterPodAffinity", 1),
        ("NodeResourcesFit", 1),
        ("NodeAffinity", 1),
        ("PodTopologySpread", 2),
        ("TaintToleration", 1),
    ]


def test_v1beta2_merges_each_extension_point() -> None:
    result = profile(
        "1.27",
        "v1beta2",
        {
            "plugins": {
                "score": {"disabled": [{"name": "ImageLocality"}], "enabled": [{"name": "NodeAffinity", "weight": 7}]},
                "postFilter": {"disabled": [{"name": "*"}]},
                "preEnqueue": {"disabled": [{"name": "*"}]},
            }
        },
    )
    assert "ImageLocality" not in result.points["score"]
    assert result.points["score"][3] == "NodeAffinity"  # a default plugin keeps its position
    assert result.weights["NodeAffinity"] == 7
    assert result.points["postFilter"] == ()
    assert result.points["preEnqueue"] == ("SchedulingGates",)  # read, and never merged


@pytest.mark.parametrize(
    ("release", "version", "fields", "message"),
    [
        (
            "1.26",
            "v1beta2",
            {"plugins": {"multiPoint": {"enabled": []}}},
            'profiles[0].plugins.multiPoint: unknown field "multiPoint" (Kubernetes 1.26 does not have it in',
        ),
        (
            "1.35",
            "v1",
            {"plugins": {"placementScore": {"enabled": []}}},
            'profiles[0].plugins.placementScore: unknown field "placementScore"',
        ),
        (
            "1.26",
            "v1",
            {"pluginConfig": [{"name": "InterPodAffinity", "args": {"ignorePreferredTermsOfExistingPods": True}}]},
            "profiles[0].pluginConfig[0].args.ignorePreferredTermsOfExistingPods: unknown field",
        ),
        ("1.27", "v1beta3", {"percentageOfNodesToScore": 5}, "profiles[0].percentageOfNodesToScore: unknown field"),
        (
            "1.31",
            "v1",
            {"plugins": {"filter": {"enabled": [{"name": "EBSLimits"}]}}},
            'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version',
        ),
        (
            "1.28",
            "v1",
            {"plugins": {"score": {"enabled": [{"name": "SelectorSpread"}]}}},
            'profiles[0].plugins.score.enabled[0]: Invalid value: "SelectorSpread": was invalid in version',
        ),
        (
            "1.29",
            "v1",
            {"plugins": {"score": {"enabled": [{"name": "SelectorSpread"}]}}},
            'profiles[0].plugins.score.enabled[0].name: ScorePlugin "SelectorSpread" does not exist',
        ),
    ],
)
def test_a_version_rejects_fields_and_plugins_of_others(
    release: str, version: str, fields: Mapping[str, object], message: str
) -> None:
    with pytest.raises(ConfigError) as error:
        profile(release, version, fields)
    assert str(error.value).startswith(message)


def test_v1beta3_accepts_a_plugin_that_v1_rejects() -> None:
    enabled = [{"name": "SelectorSpread", "weight": 4}]
    result = profile("1.28", "v1beta3", {"plugins": {"multiPoint": {"enabled": enabled}}})
    assert result.weights["SelectorSpread"] == 4


@pytest.mark.parametrize(
    ("release", "gate", "shape"),
    [
        ("1.32", "VolumeCapacityPriority", [(0, 0), (100, 10)]),
        ("1.33", "StorageCapacityScoring", [(0, 10), (100, 0)]),
    ],
)
def test_the_default_shape_of_storage_scoring(release: str, gate: str, shape: list[tuple[int, int]]) -> None:
    from kschedx.framework.args import VolumeBindingArgs

    points = profile(release, "v1", gate=gate).args_of(VolumeBindingArgs).shape
    assert [(point.utilization, point.score) for point in points or ()] == shape
