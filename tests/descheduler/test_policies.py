"""Policies that the descheduler refuses, its messages, and the files that contain policies."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from tests.command import kschedx
from tests.descheduler.clusters import deschedule, node, pod, policy

LIFETIME = {"maxPodLifeTimeSeconds": 3600}
INCLUDE_AND_EXCLUDE = {"include": ["a"], "exclude": ["b"]}
ONLY_ONE = "only one of Include/Exclude namespaces can be set"
NO_CRITERION = (
    "at least one filtering criterion must be specified (maxPodLifeTimeSeconds, states, conditions, or exitCodes)"
)
NO_VALUES = "values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
NO_OPERATOR = "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"
UNREADABLE = 'failed decoding descheduler\'s policy config "policy.yaml": '
BUILD_ERROR = 'failed to create new descheduler: unable to create "main" profile: '


@pytest.mark.parametrize(
    ("plugin", "args", "error"),
    [
        ("PodLifeTime", {**LIFETIME, "namespaces": INCLUDE_AND_EXCLUDE}, f"in profile main: {ONLY_ONE}"),
        (
            "PodLifeTime",
            {"namespaces": INCLUDE_AND_EXCLUDE},
            f"in profile main: [{ONLY_ONE}, {NO_CRITERION}]",
        ),
        ("RemovePodsViolatingNodeAffinity", {}, "in profile main: nodeAffinityType needs to be set"),
        ("RemovePodsHavingTooManyRestarts", {}, "in profile main: invalid PodsHavingTooManyRestarts threshold"),
        (
            "LowNodeUtilization",
            {"thresholds": {"cpu": 20}, "targetThresholds": {"memory": 50}},
            "in profile main: thresholds and targetThresholds configured different resources",
        ),
        (
            "LowNodeUtilization",
            {"thresholds": {"cpu": 60}, "targetThresholds": {"cpu": 50}},
            "in profile main: thresholds' cpu percentage is greater than targetThresholds'",
        ),
        (
            "HighNodeUtilization",
            {"thresholds": {"cpu": 120}},
            "in profile main: cpu threshold not in [0, 100] range",
        ),
        (
            "PodLifeTime",
            {**LIFETIME, "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
            f"in profile main: failed to get label selectors from strategy's params: {NO_VALUES}",
        ),
        ("NoSuchPlugin", {}, "in profile main: plugin NoSuchPlugin in pluginConfig not registered"),
        (
            "HighNodeUtilization",
            {"thresholds": {"pods": 5, "cpu": "20"}},
            f'{UNREADABLE}profiles[0].pluginConfig[0].args.thresholds.cpu: expected a number, found "20"',
        ),
        (
            "PodLifeTime",
            {**LIFETIME, "labelSelector": {"matchLabels": {"app": 1}}},
            f"{UNREADABLE}profiles[0].pluginConfig[0].args.labelSelector.matchLabels.app: expected a string, found 1",
        ),
    ],
)
def test_an_invalid_policy_has_the_deschedulers_error(plugin: str, args: Mapping[str, object], error: str) -> None:
    assert deschedule([], policy(plugin, args))["error"] == error


@pytest.mark.parametrize(
    ("document", "hint"),
    [
        (policy("RemoveDuplicate", {}), 'did you mean "RemoveDuplicates"?'),
        (
            {"apiVersion": "descheduler/v1alpha1", "kind": "DeschedulerPolicy"},
            "descheduler 0.31 and later read only descheduler/v1alpha2: write each strategy as a plugin of a profile",
        ),
        (
            {"apiVersion": "descheduler/v1", "kind": "DeschedulerPolicy"},
            "kschedx reads kind DeschedulerPolicy of apiVersion descheduler/v1alpha2",
        ),
    ],
)
def test_a_refused_policy_has_a_hint(tmp_path: Path, document: Mapping[str, object], hint: str) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump(node("w0")))
    answer = kschedx("deschedule", "--policy", "policy.yaml", "-s", "cluster.yaml", cwd=tmp_path)
    assert answer.code == 2
    assert f"({hint})" in answer.err


def test_a_null_threshold_is_zero() -> None:
    result = deschedule([], policy("HighNodeUtilization", {"thresholds": {"cpu": None}}))
    assert "error" not in result


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("http://a b", 'invalid character " " in host name'),
        ("http://[::1", "missing ']' in host"),
        ("http://us er@a", "net/url: invalid userinfo"),
        ("1http://a", "first path segment in URL cannot contain colon"),
        ("://a", "missing protocol scheme"),
        ("http://a:b/", 'invalid port ":b" after host'),
        ("http://a/%zz", 'invalid URL escape "%zz"'),
        ("http://a%20b", 'invalid URL escape "%20"'),
    ],
)
def test_an_invalid_prometheus_url_is_an_error(url: str, fault: str) -> None:
    prometheus = {"source": "Prometheus", "prometheus": {"url": url}}
    result = deschedule([], {**policy("PodLifeTime", LIFETIME), "metricsProviders": [prometheus]})
    shown = url.replace("us er@", "***@")  # no output has the user part of a URL
    assert result["error"] == f'error parsing prometheus URL: parse "{shown}": {fault}'


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"nodeSelector": "a b"}, f"failed to create new descheduler: {NO_OPERATOR}"),
        (
            {"maxNoOfPodsToEvictTotal": -1},
            f"{UNREADABLE}maxNoOfPodsToEvictTotal: expected a whole number >= 0, found -1",
        ),
        (
            {"profiles": [{"name": "main", "plugins": {"deschedule": {"enabled": ["X"]}}}]},
            f'{BUILD_ERROR}profile "main" configures deschedule extension point of non-existing plugins: map[X:{{}}]',
        ),
        (
            {"profiles": [{"name": "main", "plugins": {"balance": {"enabled": ["RemoveDuplicates"]}}}]},
            f'{BUILD_ERROR}unable to build RemoveDuplicates plugin: unable to find "RemoveDuplicates" plugin config',
        ),
        ({"kind": "Policy"}, f'{UNREADABLE}no kind "Policy" is registered for version "descheduler/v1alpha2"'),
    ],
)
def test_errors_of_reading_and_building_a_policy(fields: Mapping[str, object], error: str) -> None:
    assert deschedule([], policy("PodLifeTime", LIFETIME) | dict(fields))["error"] == error


@pytest.mark.parametrize(
    ("field", "hint"),
    [("maxPodsToEvict", ""), ("MaxNoOfPodsToEvictTotal", 'did you mean "maxNoOfPodsToEvictTotal"?')],
)
def test_an_unknown_field_outside_args_is_reported_as_ignored(field: str, hint: str) -> None:
    document = deschedule([node("a"), node("b"), pod("one", "a")], policy("PodLifeTime", LIFETIME, **{field: 0}))  # type: ignore[arg-type] # of any field
    text = document["ignored"]
    assert isinstance(text, list)
    assert document["total"] == len(text) == 1
    assert text[0].startswith(f"{field}: unknown field, ignored by the descheduler")
    assert hint in text[0]


POLICY = policy("PodLifeTime", LIFETIME)
VALUES = {"deschedulerPolicy": {key: value for key, value in POLICY.items() if key not in ("apiVersion", "kind")}}


@pytest.mark.parametrize(
    "document",
    [
        POLICY,
        {"apiVersion": "v1", "kind": "ConfigMap", "data": {"policy.yaml": yaml.safe_dump(POLICY)}},
        {"deschedulerPolicyAPIVersion": "descheduler/v1alpha2", **VALUES},
        {**VALUES["deschedulerPolicy"], "apiversion": "descheduler/v1alpha2", "Kind": "DeschedulerPolicy"},
    ],
    ids=["policy", "ConfigMap", "Helm values", "other case"],
)  # fmt: skip
def test_files_that_contain_a_policy(document: Mapping[str, object], tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("a"), node("b"), pod("one", "a")]))
    answer = kschedx(
        "deschedule", "--policy", str(tmp_path / "policy.yaml"), "-s", str(tmp_path / "cluster.yaml"), "-o", "name"
    )
    assert (answer.code, answer.out, answer.err) == (0, "pod/default/one\n", "")


def test_the_error_of_a_refused_policy_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy("PodLifeTime", {})))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("a"), node("b")]))
    answer = kschedx("deschedule", "--policy", str(tmp_path / "policy.yaml"), "-s", str(tmp_path / "cluster.yaml"))
    assert (answer.code, answer.out, answer.err.count("\n")) == (2, "", 1)
    assert "in profile main: at least one filtering criterion must be specified" in answer.err


WITH_LINES = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
{more}profiles:
- name: main
  pluginConfig:
  - name: HighNodeUtilization
    args:
      thresholds: {{cpu: {cpu}}}
"""


@pytest.mark.parametrize(
    ("cpu", "more", "line", "message"),
    [
        ("120", "", 7, "in profile main: cpu threshold not in [0, 100] range"),
        ('"20"', "", 8, "failed decoding descheduler's policy config"),
        ("20", "nodeSelector: a b\n", 3, "failed to create new descheduler"),
        ("20", "maxPods: 3\n", 3, "maxPods: unknown field, ignored by the descheduler"),
    ],
)
def test_an_error_has_its_line(cpu: str, more: str, line: int, message: str, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(WITH_LINES.format(cpu=cpu, more=more))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("a"), node("b")]))
    answer = kschedx("deschedule", "--policy", str(file), "-s", str(tmp_path / "cluster.yaml"))
    assert f": {file}:{line}: {message}" in answer.err


EVICTOR_SECOND = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: main
  pluginConfig:
  - name: RemoveDuplicates
  - name: DefaultEvictor
    args: {args}
  plugins:
    balance:
      enabled: [{enabled}]
"""


@pytest.mark.parametrize(
    ("args", "enabled", "line"),
    [
        ("{priorityThreshold: {name: unknown}}", "RemoveDuplicates", 8),
        ("{labelSelector: {matchExpressions: [{key: app, operator: Is}]}}", "RemoveDuplicates", 8),
        ("{}", "HighNodeUtilization", 11),
        ("{}", "PodLifeTime", 11),
    ],
)
def test_an_error_of_building_a_profile_has_its_line(args: str, enabled: str, line: int, tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(EVICTOR_SECOND.format(args=args, enabled=enabled))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("a"), node("b")]))
    answer = kschedx("deschedule", "--policy", str(file), "-s", str(tmp_path / "cluster.yaml"))
    assert f": {file}:{line}: " in answer.err


WRAPPERS = {
    "a ConfigMap": ("apiVersion: v1\nkind: ConfigMap\ndata:\n  policy.yaml: |\n", 4),
    "a HelmRelease": ("kind: HelmRelease\nspec:\n  values:\n    deschedulerPolicy:\n", 6),
    "the second document": ("kind: Service\n---\n", 0),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_an_error_in_a_wrapped_policy_has_its_line(wrapper: str, tmp_path: Path) -> None:
    before, indent = WRAPPERS[wrapper]
    file = tmp_path / "held.yaml"
    policy = WITH_LINES.format(cpu="120", more="")
    file.write_text(before + textwrap.indent(policy, " " * indent))
    (tmp_path / "cluster.yaml").write_text(yaml.safe_dump_all([node("a"), node("b")]))
    answer = kschedx("deschedule", "--policy", str(file), "-s", str(tmp_path / "cluster.yaml"))
    line = before.count("\n") + 7
    assert f": {file}:{line}: in profile main: cpu threshold not in [0, 100] range" in answer.err
