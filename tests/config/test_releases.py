"""Releases as data: gates resolve as kube-scheduler's --feature-gates, and the tables of a release fit each other."""

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
def test_a_release_is_known_by_its_minor_version(version: str | None) -> None:
    assert resolve(version).version == "1.36"


@pytest.mark.parametrize("version", ["", "1", "1.360", "1.3", "136", "1.36x", "latest", "x1.36", "\u0661.36"])
def test_an_unknown_release_is_refused_with_those_that_are_known(version: str) -> None:
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
def test_gates_that_are_refused(gates: dict[str, bool], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve(feature_gates=gates)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "gates",
    [{"DynamicResourceAllocation": True}, {"GangScheduling": True, "GenericWorkload": True}, {"AllAlpha": False}],
)
def test_gates_that_are_accepted(gates: dict[str, bool]) -> None:
    release = resolve(feature_gates=gates)
    assert all(release.enabled(gate) is value for gate, value in gates.items() if gate in SPECS)


@pytest.mark.parametrize(("group", "stage"), [("AllAlpha", "alpha"), ("AllBeta", "beta")])
@pytest.mark.parametrize("value", [True, False])
def test_a_group_sets_its_stage_and_nothing_else(group: str, stage: str, value: bool) -> None:
    gates = resolve(feature_gates={group: value}).gates
    assert {gate for gate, spec in SPECS.items() if spec.stage == stage and gates[gate] is not value} == set()
    assert all(gates[gate] is spec.default for gate, spec in SPECS.items() if spec.stage in ("GA", "deprecated"))


def test_a_gate_by_name_counts_before_its_group() -> None:
    release = resolve(feature_gates={"AllBeta": False, "NodeDeclaredFeatures": True})
    assert release.enabled("NodeDeclaredFeatures")
    assert not release.enabled("PodLevelResources")


@given(st.dictionaries(st.sampled_from([gate for gate, spec in SPECS.items() if not spec.locked]), st.booleans()))
def test_gates_resolve_to_what_was_asked_or_are_refused_for_a_dependency(wanted: dict[str, bool]) -> None:
    expected = {gate: wanted.get(gate, spec.default) for gate, spec in SPECS.items()}
    if all(expected[need] for gate, needs in DEPENDENCIES.items() if expected[gate] for need in needs):
        gates = resolve(feature_gates=wanted).gates
        assert {gate: gates[gate] for gate in SPECS} == expected
    else:
        with pytest.raises(ConfigError, match="depends on features that are disabled"):
            resolve(feature_gates=wanted)


@pytest.mark.parametrize("version", EMULATED)
def test_the_tables_of_a_release_fit_each_other(version: str) -> None:
    release = resolve(version)
    assert {plugin.name for plugin in release.default_plugins} <= release.plugin_points.keys()
    assert set(POINTS + PLACEMENT_POINTS) >= set().union(*release.plugin_points.values())
    assert all("score" in release.plugin_points[p.name] for p in release.default_plugins if p.weight)


def test_histories_are_written_as_they_are_read() -> None:
    stage = re.compile(r"1\.\d+ ((alpha|beta|GA|deprecated) (on|off)( locked)?|removed)")
    for gate, history in HISTORY.items():
        entries = history.split(", ")
        assert all(map(stage.fullmatch, entries)), gate
        versions = [tuple(map(int, entry.split()[0].split("."))) for entry in entries]
        assert versions == sorted(set(versions)), gate


@pytest.mark.parametrize(
    ("version", "gate", "expected"),
    [
        ("1.26", "SidecarContainers", False),  # it came with 1.28
        ("1.28", "SidecarContainers", False),
        ("1.29", "SidecarContainers", True),
        ("1.26", "MinDomainsInPodTopologySpread", False),
        ("1.27", "MinDomainsInPodTopologySpread", True),
        ("1.36", "MinDomainsInPodTopologySpread", True),  # it was removed when it was on for good
        ("1.36", "VolumeCapacityPriority", False),  # it was removed when it was off
    ],
)
def test_a_gate_of_another_release_is_what_it_was_there(version: str, gate: str, expected: bool) -> None:
    assert resolve(version).enabled(gate) is expected


@pytest.mark.parametrize(("version", "gate"), [("1.27", "SidecarContainers"), ("1.36", "ReadWriteOncePod")])
def test_a_gate_of_another_release_cannot_be_set(version: str, gate: str) -> None:
    with pytest.raises(ConfigError, match=f'unrecognized feature gate: "{gate}"'):
        resolve(version, {gate: True})


def test_older_releases_do_not_check_dependencies() -> None:
    assert resolve("1.34", {"DynamicResourceAllocation": False}).enabled("DRAPrioritizedList")


def test_dependencies_are_gates() -> None:
    assert {name for gate, needs in DEPENDENCIES.items() for name in (gate, *needs)} <= HISTORY.keys()


def test_a_release_that_was_only_published_is_no_default_and_says_so() -> None:
    assert (resolve().version, resolve().is_measured) == (VERSIONS[0], True)
    assert [resolve(version).is_measured for version in EMULATED] == [version in VERSIONS for version in EMULATED]


def test_gates_that_were_merged_are_what_the_whole_is() -> None:
    merged = resolve("1.37", {"GenericWorkload": True})
    assert all(merged.enabled(gate) for gate in ("GangScheduling", "WorkloadAwarePreemption"))
    assert "GangScheduling" in {plugin.name for plugin in merged.default_plugins}
    assert not resolve("1.37").enabled("GangScheduling")
    with pytest.raises(ConfigError, match="unrecognized feature gate"):
        resolve("1.37", {"GangScheduling": True})
