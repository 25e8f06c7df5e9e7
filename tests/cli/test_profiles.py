"""`kschedx profiles` and `kschedx diff-profiles`: bad input and its errors."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command import CommandResult, kschedx

WEB = ("-s", "fixtures/web-rollout/cluster")
HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "scheduler.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(result: CommandResult, *parts: str) -> None:
    """Check that the command prints a line for each error, all of these among them, and exits with 2."""
    assert (result.code, result.out) == (2, "")
    assert all(line.startswith("error: ") for line in result.err.splitlines())
    assert not [part for part in parts if part not in result.err], result.err


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (HEAD.replace("/v1", "/v9"), ("apiVersion", "v9", "expects kubescheduler.config.k8s.io/v1")),
        (
            HEAD + "profiles: [{plugins: {filter: {enabled: [{name: NodeResourceFit}]}}}]",
            ("profiles[0].plugins.filter.enabled[0].name", "NodeResourceFit", 'did you mean "NodeResourcesFit"?'),
        ),
        (
            HEAD + "profiles: [{pluginConfig: [{name: InterPodAffinity, args: {hardPodAffinityWeight: much}}]}]",
            ("profiles[0].pluginConfig[0].args.hardPodAffinityWeight", "a whole number", '"much"'),
        ),
        (HEAD + "profiles: [{plugin: {}}]", ("profiles[0].plugin", "unknown field", 'did you mean "plugins"?')),
        ("kind: Pod\napiVersion: v1\nmetadata: {name: a}", ("expected one KubeSchedulerConfiguration", "Pod")),
    ],
)
@pytest.mark.parametrize("command", [("profiles", "check"), ("profiles", "show"), ("diff-profiles", "default")])
def test_a_configuration_that_kube_scheduler_refuses_has_its_place(
    tmp_path: Path, text: str, parts: tuple[str, ...], command: tuple[str, ...]
) -> None:
    path = write(tmp_path, text)
    refused(kschedx(*command, path), str(path), *parts)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("profiles", "show", "binpak"), ("binpak", 'did you mean "binpack"?')),
        (("profiles", "show", "default-1.30", "--kube-version", "1.36"), ("EBSLimits",)),
        (("profiles", "show", "default", "--kube-version", "1.99"), ("1.99", "1.36, 1.35")),
        (("profiles", "show", "binpack", "--kube-version", "1.13"), ("Policy",)),
        (("diff-profiles", "default", "binpack", "--kube-version", "1.99"), ("1.99", "1.36, 1.35")),
        (("diff-profiles", "--kube-version", "1.30..1.99"), ("1.99", 'did you mean "1.38"?')),
        (("profiles", "show", "default", "--kube-version", "1.25"), ('did you mean "1.26"?',)),
        (("profiles", "show", "default", "--kube-version", f"1.{'9' * 5_000}"), ("unknown Kubernetes version",)),
        (("diff-profiles", "--kube-version", "1.30.."), ("1.30..", "OLD..NEW")),
        (("diff-profiles", "default"), ("two profiles", "found default")),
        (("diff-profiles", "default", "binpack", "--all"), ("no cluster", "--snapshot")),
        (("diff-profiles", "default", "binpack", *WEB, "pod/nope"), ("nope",)),
        (("diff-profiles", "default", "binpack", *WEB, "-l", "app in"), ("label selector", "app in")),
        (("diff-profiles", "default", "binpack", *WEB, "-l", "app=wep"), ("no pod has the labels",)),
        (("diff-profiles", "default", "binpack", "--feature-gate", "Nope=true", *WEB, "--all"), ("Nope",)),
    ],
)
def test_bad_arguments_are_named(arguments: tuple[str, ...], parts: tuple[str, ...]) -> None:
    refused(kschedx(*arguments), *parts)


def test_a_policy_is_shown_as_predicates_and_priorities() -> None:
    result = kschedx("profiles", "show", "policy-1.13")

    assert result.code == 0
    assert result.out.startswith("✓ policy-1.13 · Kubernetes 1.13\n")
    assert "predicates  CheckNodeUnschedulable" in result.out
    assert [line.split() for line in result.out.splitlines() if "NodePreferAvoidPods" in line] == [
        ["NodePreferAvoidPodsPriority", "10000"]
    ]


def test_only_check_advises_on_a_weight_of_zero(tmp_path: Path) -> None:
    path = write(tmp_path, HEAD + "profiles: [{plugins: {score: {enabled: [{name: ImageLocality, weight: 0}]}}}]")
    result = kschedx("profiles", "check", path)
    assert (result.code, "counts as 1" in result.out) == (0, True)
    refused(kschedx("diff-profiles", "default", path), "profiles[0].plugins.score.enabled[0].weight")


def test_show_has_the_origin_of_settings(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        HEAD
        + """
profiles:
- plugins:
    multiPoint: {enabled: [{name: ImageLocality, weight: 4}]}
    score: {enabled: [{name: NodeAffinity, weight: 9}]}
  pluginConfig:
  - name: NodeResourcesFit
    args: {scoringStrategy: {type: MostAllocated}}
""",
    )
    shown = json.loads(kschedx("profiles", "show", path, "-o", "json").out)
    (profile,) = shown["configuration"]["profiles"]
    at = [entry["name"] for entry in profile["plugins"]["score"]["enabled"]]
    origins = shown["origins"]

    def origin(plugin: str, what: str) -> str:
        result: str = origins[f"profiles[0].plugins.score.enabled[{at.index(plugin)}].{what}"]
        return result

    assert origin("ImageLocality", "weight") == "profiles[0].plugins.multiPoint.enabled[0].weight"
    assert origin("NodeAffinity", "weight") == "profiles[0].plugins.score.enabled[0].weight"
    assert origin("TaintToleration", "weight") == "default of 1.36"
    fit = [entry["name"] for entry in profile["pluginConfig"]].index("NodeResourcesFit")
    args = f"profiles[0].pluginConfig[{fit}].args"
    assert origins[f"{args}.scoringStrategy.type"] == "profiles[0].pluginConfig[0].args.scoringStrategy.type"
    assert origins[f"{args}.scoringStrategy.resources[cpu].weight"] == "default of 1.36"


@pytest.mark.parametrize("cluster", [(), WEB])
def test_a_single_profile_is_compared_under_two_versions(tmp_path: Path, cluster: tuple[str, ...]) -> None:
    """A cluster that the command line names does not make a profile a target."""
    for profile in (write(tmp_path, HEAD), "binpack"):
        result = kschedx("diff-profiles", profile, "--kube-version", "1.29..1.33", *cluster, columns=300)
        assert (result.code, result.err) == (1, "")
        assert f"{profile} 1.33" in " ".join(result.out.split())
