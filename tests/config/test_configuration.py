"""The configuration as a whole: strict decoding, fields outside the profiles, and several profiles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.errors import ConfigError
from kschedx.framework.args import NodeResourcesFitArgs
from kschedx.framework.config import load_profiles
from kschedx.framework.extenders import call_order
from kschedx.releases import resolve

RELEASE = resolve()
VERSION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
EXTENDER = {"urlPrefix": "https://example.com"}


def refusal(config: Mapping[str, object]) -> str:
    with pytest.raises(ConfigError) as error:
        load_profiles(config, RELEASE)
    return str(error.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"profile": []}, 'profile: unknown field "profile" (did you mean "profiles"?)'),
        ({"Parallelism": 1}, 'Parallelism: unknown field "Parallelism" (did you mean "parallelism"?)'),
        ({"profiles": {}}, "profiles: expected a list, found {}"),
        ({"profiles": [7]}, "profiles[0]: expected a mapping, found 7"),
        (
            {"profiles": [{"plugins": {"scores": {}}}]},
            'profiles[0].plugins.scores: unknown field "scores" (did you mean "score"?)',
        ),
        (
            {
                "profiles": [
                    {"schedulerName": "a"},
                    {
                        "schedulerName": "b",
                        "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": "5"}]}},
                    },
                ]
            },
            'profiles[1].plugins.score.enabled[0].weight: expected a whole number, found "5"',
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 2**31}]}}}]},
            "profiles[0].plugins.score.enabled[0].weight: expected a whole number <= 2147483647, found 2147483648",
        ),
        (
            {"profiles": [{"plugins": {"score": {"enabled": "NodeAffinity"}}}]},
            'profiles[0].plugins.score.enabled: expected a list, found "NodeAffinity"',
        ),
        ({"delayCacheUntilActive": "yes"}, 'delayCacheUntilActive: expected true or false, found "yes"'),
        ({"parallelism": 1.5}, "parallelism: expected a whole number, found 1.5"),
        ({"parallelism": True}, "parallelism: expected a whole number, found true"),
        (
            {"profiles": [{"schedulerName": 1}]},
            "profiles[0].schedulerName: expected a string, found 1",
        ),
        (
            {"profiles": [{"\x1b[2J": 1}]},
            (
                'profiles[0]["\\x1b[2J"]: unknown field "\\x1b[2J" '
                "(known: percentageOfNodesToScore, pluginConfig, plugins, schedulerName)"
            ),
        ),
    ],
)
def test_decoding_errors(fields: Mapping[str, object], message: str) -> None:
    assert refusal({**VERSION, **fields}) == message


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({}, "kind: expected KubeSchedulerConfiguration, found null"),
        (
            {"kind": "Policy", "apiVersion": "v1"},
            (
                'kind: expected KubeSchedulerConfiguration, found "Policy" (schedulers before the '
                "framework read it: --kube-version 1.13)"
            ),
        ),
        (
            {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            (
                "apiVersion: Kubernetes 1.36 expects kubescheduler.config.k8s.io/v1, "
                'found "kubescheduler.config.k8s.io/v1beta3" '
                "(--kube-version 1.28 is the last version that reads it)"
            ),
        ),
    ],
)
def test_other_kinds_and_api_versions_are_errors(config: Mapping[str, object], message: str) -> None:
    assert refusal(config) == message


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"parallelism": 0}, "parallelism: Invalid value: 0: should be an integer value greater than zero"),
        (
            {"percentageOfNodesToScore": 101},
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            {"profiles": [{"percentageOfNodesToScore": -1}]},
            "profiles[0].percentageOfNodesToScore: Invalid value: -1: not in valid range [0-100]",
        ),
        ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (
            {"podInitialBackoffSeconds": 11},
            "podMaxBackoffSeconds: Invalid value: 10: must be greater than or equal to PodInitialBackoffSeconds",
        ),
        ({"clientConnection": {"burst": -1}}, "clientConnection.burst: Invalid value: -1: must be non-negative"),
        (
            {"leaderElection": {"leaseDuration": "10s"}},
            'leaderElection.leaseDuration: Invalid value: "10s": must be greater than `RenewDeadline`',
        ),
        (
            {"leaderElection": {"retryPeriod": "-1s"}},
            'leaderElection.retryPeriod: Invalid value: "-1s": must be greater than zero',
        ),
        (
            {"leaderElection": {"resourceLock": "endpoints"}},
            'leaderElection.resourceLock: Invalid value: "endpoints": resourceLock value must be "leases"',
        ),
        (
            {"extenders": [{**EXTENDER, "prioritizeVerb": "prioritize"}]},
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            {"extenders": [{"bindVerb": "bind"}, {"bindVerb": "bind"}]},
            'extenders: Invalid value: "found 2 extenders implementing bind": only one extender can implement bind',
        ),
        (
            {"extenders": [{"managedResources": [{"name": "cpu"}]}]},
            'extenders[0].managedResources[0].name: Invalid value: "cpu": is an invalid extended resource name',
        ),
        (
            {"extenders": [{"managedResources": [{"name": "a.io/x"}]}, {"managedResources": [{"name": "a.io/x"}]}]},
            'extenders[1].managedResources[0].name: Invalid value: "a.io/x": duplicate extender managed resource name',
        ),
        (
            {"profiles": [{"pluginConfig": [{"name": "NodeName"}, {"name": "NodeName"}]}]},
            'profiles[0].pluginConfig[1]: Duplicate value: "NodeName"',
        ),
        (
            {"profiles": [{"schedulerName": ""}]},
            "profiles[0].schedulerName: Required value",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {}]},
            "profiles[1].schedulerName: Required value",
        ),
        (
            {"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}, {"schedulerName": "a"}]},
            'profiles[2].schedulerName: Duplicate value: "a" (it is also that of profiles[0].schedulerName)',
        ),
    ],
)
def test_validation_errors(fields: Mapping[str, object], message: str) -> None:
    assert refusal({**VERSION, **fields}) == message


@pytest.mark.parametrize(
    "fields",
    [
        {"leaderElection": {"leaderElect": False, "resourceLock": "endpoints", "leaseDuration": "-1s"}},
        {"leaderElection": {"leaseDuration": "0s"}},
        {"enableProfiling": False, "enableContentionProfiling": None, "clientConnection": {"qps": 10}},
        {"podInitialBackoffSeconds": 10, "podMaxBackoffSeconds": 10.0},
        {"extenders": [{**EXTENDER, "httpTimeout": "5s", "enableHTTPS": True, "tlsConfig": {"caData": "Y2E="}}]},
    ],
)
def test_other_fields_do_not_change_profiles(fields: Mapping[str, object]) -> None:
    assert load_profiles({**VERSION, **fields}, RELEASE).profiles == load_profiles(None, RELEASE).profiles


def test_fields_of_the_configuration() -> None:
    extenders = [{"urlPrefix": "a", "ignorable": True}, {"urlPrefix": "b"}]
    config = load_profiles(
        {
            **VERSION,
            "parallelism": 4,
            "percentageOfNodesToScore": 30,
            "extenders": extenders,
            "profiles": [{"schedulerName": "all", "percentageOfNodesToScore": 100}, {"schedulerName": "some"}],
        },
        RELEASE,
    )
    assert [config.extenders[index].url_prefix for index in call_order(config.extenders)] == ["b", "a"]
    assert config.profile_for("all").percentage_of_nodes_to_score == 100
    assert config.profile_for("some").percentage_of_nodes_to_score == 30


def test_a_pod_of_another_scheduler_has_no_profile() -> None:
    with pytest.raises(ConfigError) as error:
        load_profiles(None, RELEASE).profile_for("defalt-scheduler")
    text = 'profile not found for scheduler name "defalt-scheduler" (did you mean "default-scheduler"?)'
    assert str(error.value) == text


def test_resources_of_an_extender_replace_ignored_resources() -> None:
    managed_resources = [{"name": "a.io/x", "ignoredByScheduler": True}, {"name": "a.io/y"}]
    plugin_config = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["b.io/z"]}}]
    config = {
        **VERSION,
        "extenders": [{"managedResources": managed_resources}],
        "profiles": [{"pluginConfig": plugin_config}],
    }
    fit = load_profiles(config, RELEASE).profiles[0].args_of(NodeResourcesFitArgs)
    assert fit.ignored_resources == ("a.io/x",)
    without_fit = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    assert "can't find NodeResourcesFitArgs" in refusal({**config, "profiles": [{"plugins": without_fit}]})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
FULL_CONFIGURATION: dict[str, object] = {
    **VERSION,
    "leaderElection": {"leaseDuration": "20s"},
    "extenders": [{**EXTENDER, "managedResources": [{"name": "a.io/x"}]}],
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 2}], "disabled": [{"name": "*"}]}},
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}},
                {
                    "name": "NodeAffinity",
                    "args": {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1}]}},
                },
            ],
        }
    ],
}


def paths(value: object) -> Iterator[tuple[str | int, ...]]:
    """Yield the path of every value inside `value`."""
    items: Iterable[tuple[str | int, object]] = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for step, inner in items:
        yield (step,)
        yield from ((step, *rest) for rest in paths(inner))


def with_value(document: object, path: Sequence[str | int], value: object) -> object:
    if not path:
        return value
    step, *rest = path
    if isinstance(document, dict):
        return {**document, step: with_value(document[step], rest, value)}
    assert isinstance(document, list)
    return [with_value(inner, rest, value) if i == step else inner for i, inner in enumerate(document)]


@given(st.sampled_from(list(paths(FULL_CONFIGURATION))), JSON)
def test_any_value_is_valid_or_an_error_of_one_line(path: tuple[str | int, ...], value: object) -> None:
    config = with_value(FULL_CONFIGURATION, path, value)
    assert isinstance(config, dict)
    line = ""
    try:
        load_profiles(config, RELEASE)
    except ConfigError as error:
        line = str(error)
    assert line.isprintable()
