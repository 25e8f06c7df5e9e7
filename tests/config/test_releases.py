"""Versions as data: feature gates as kube-scheduler resolves them, and consistent tables of each version."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.errors import ConfigError
from kschedx.releases import EMULATED, PLACEMENT_POINTS, POINTS, VERSIONS, resolve
from kschedx.releases.gates import DEPENDENCIES, HISTORY, specs

SPECS = specs("1.36")


@pytest.mark.parametrize("version", [None, "1.36", "v1.36", "1.36.2", "v1.36.2-gke.100", "1.36+"])
def test_a_version_is_identified_by_its_minor_version(version: str | None) -> None:
    assert resolve(version).version == "1.36"


@pytest.mark.parametrize("version", ["", "1", "1.360", "1.3", "136", "1.36x", "latest", "x1.36", "\u0661.36"])
def test_an_unknown_version_lists_the_known_ones(version: str) -> None:
    with pytest.raises(ConfigError, match=r"unknown Kubernetes version .*known versions: 1\.36"):
        resolve(version)


@pytest.mark.parametrize(
    ("gate", "default"),
    [
        ("NodeDeclaredFeatures", True),
        ("DRAExtendedResource", True),
        ("DynamicResourceAllocation", True),
        ("PodLevelResources", True),
        ("SchedulerAsyncPreemption", True),
        ("TaintTolerationComparisonOperators", False),
        ("GangScheduling", False),
        ("StorageCapacityScoring", False),
        ("VolumeLimitScaling", False),
        ("SeparateCacheWatchRPC", False),
    ],
)
def test_defaults_of_1_36(gate: str, default: bool) -> None:
    assert resolve().enabled(gate) is default


@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ({"NodeDeclaredFeature": True}, 'unrecognized feature gate: "NodeDeclaredFeature" (did you mean "NodeDeclared'),
        ({"Zzz": True}, 'unrecognized feature gate: "Zzz" (240 gates exist in Kubernetes 1.36)'),
        (
            {"DynamicResourceAllocation": False},
            "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true",
        ),
        (
            {"SeparateCacheWatchRPC": True},
            "cannot set feature gate SeparateCacheWatchRPC to true, feature is locked to",
        ),
        (
            {"GangScheduling": True},
            (
                "GangScheduling is enabled, but depends on features that are disabled: [GenericWorkload] "
                "(turn GangScheduling off as well, or GenericWorkload on)"
            ),
        ),
    ],
)
def test_invalid_gates(gates: dict[str, bool], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve(feature_gates=gates)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    "gates",
    [{"DynamicResourceAllocation": True}, {"GangScheduling": True, "GenericWorkload": True}, {"AllAlpha": False}],
)
def test_valid_gates(gates: dict[str, bool]) -> None:
    release = resolve(feature_gates=gates)
    assert all(release.enabled(gate) is is_enabled for gate, is_enabled in gates.items() if gate in SPECS)


@pytest.mark.parametrize(("group", "stage"), [("AllAlpha", "alpha"), ("AllBeta", "beta")])
@pytest.mark.parametrize("is_enabled", [True, False])
def test_a_group_of_gates_sets_only_its_stage(group: str, stage: str, is_enabled: bool) -> None:
    gates = resolve(feature_gates={group: is_enabled}).gates
    assert {gate for gate, spec in SPECS.items() if spec.stage == stage and gates[gate] is not is_enabled} == set()
    assert all(gates[gate] is spec.default for gate, spec in SPECS.items() if spec.stage in ("GA", "deprecated"))


def test_a_gate_precedes_its_group() -> None:
    release = resolve(feature_gates={"AllBeta": False, "NodeDeclaredFeatures": True})
    assert release.enabled("NodeDeclaredFeatures")
    assert not release.enabled("PodLevelResources")


@given(st.dictionaries(st.sampled_from([gate for gate, spec in SPECS.items() if not spec.locked]), st.booleans()))
def test_gates_resolve_or_miss_a_dependency(selected_gates: dict[str, bool]) -> None:
    expected = {gate: selected_gates.get(gate, spec.default) for gate, spec in SPECS.items()}
    if all(
        expected[dependency]
        for gate, dependencies in DEPENDENCIES.items()
        if expected[gate]
        for dependency in dependencies
    ):
        gates = resolve(feature_gates=selected_gates).gates
        assert {gate: gates[gate] for gate in SPECS} == expected
    else:
        with pytest.raises(ConfigError, match="depends on features that are disabled"):
            resolve(feature_gates=selected_gates)


@pytest.mark.parametrize("version", EMULATED)
def test_the_tables_of_a_version_are_consistent(version: str) -> None:
    release = resolve(version)
    assert {plugin.name for plugin in release.default_plugins} <= release.plugin_points.keys()
    assert set(POINTS + PLACEMENT_POINTS) >= set().union(*release.plugin_points.values())
    assert all("score" in release.plugin_points[p.name] for p in release.default_plugins if p.weight)


def test_histories_of_gates_are_well_formed() -> None:
    stage = re.compile(r"1\.\d+ ((alpha|beta|GA|deprecated) (on|off)( locked)?|removed)")
    for gate, history in HISTORY.items():
        entries = history.split(", ")
        assert all(map(stage.fullmatch, entries)), gate
        versions = [tuple(map(int, entry.split()[0].split("."))) for entry in entries]
        assert versions == sorted(set(versions)), gate


@pytest.mark.parametrize(
    ("version", "gate", "expected"),
    [
        ("1.26", "SidecarContainers", False),  # added in 1.28
        ("1.28", "SidecarContainers", False),
        ("1.29", "SidecarContainers", True),
        ("1.26", "MinDomainsInPodTopologySpread", False),
        ("1.27", "MinDomainsInPodTopologySpread", True),
        ("1.36", "MinDomainsInPodTopologySpread", True),  # removed while locked to true
        ("1.36", "VolumeCapacityPriority", False),  # removed while false
    ],
)
def test_defaults_of_gates_in_other_versions(version: str, gate: str, expected: bool) -> None:
    assert resolve(version).enabled(gate) is expected


@pytest.mark.parametrize(("version", "gate"), [("1.27", "SidecarContainers"), ("1.36", "ReadWriteOncePod")])
def test_a_gate_of_another_version_is_unknown(version: str, gate: str) -> None:
    with pytest.raises(ConfigError, match=f'unrecognized feature gate: "{gate}"'):
        resolve(version, {gate: True})


def test_older_versions_do_not_check_dependencies() -> None:
    assert resolve("1.34", {"DynamicResourceAllocation": False}).enabled("DRAPrioritizedList")


def test_dependencies_are_known_gates() -> None:
    assert {name for gate, dependencies in DEPENDENCIES.items() for name in (gate, *dependencies)} <= HISTORY.keys()


def test_only_measured_versions_are_the_default() -> None:
    assert (resolve().version, resolve().is_measured) == (VERSIONS[0], True)
    assert [resolve(version).is_measured for version in EMULATED] == [version in VERSIONS for version in EMULATED]


def test_merged_gates_follow_their_successor() -> None:
    release = resolve("1.37", {"GenericWorkload": True})
    assert all(release.enabled(gate) for gate in ("GangScheduling", "WorkloadAwarePreemption"))
    assert "GangScheduling" in {plugin.name for plugin in release.default_plugins}
    assert not resolve("1.37").enabled("GangScheduling")
    with pytest.raises(ConfigError, match="unrecognized feature gate"):
        resolve("1.37", {"GangScheduling": True})
