"""The plugins of each extension point, in kube-scheduler's order, from the plugin lists of a profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kschedx.errors import ConfigError
from kschedx.framework.config import Profile, load_profiles
from kschedx.releases import POINTS, resolve

RELEASE = resolve()
VERSION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}

DEFAULT_SCORE = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)
DEFAULT_POST_FILTER = ("DynamicResources", "DefaultPreemption")


def names(*plugins: str | tuple[str, int]) -> list[dict[str, object]]:
    """Return the entries of an `enabled` or `disabled` list; a tuple has a weight."""
    return [{"name": p} if isinstance(p, str) else {"name": p[0], "weight": p[1]} for p in plugins]


def profile(plugins: Mapping[str, object], extra: Mapping[str, frozenset[str]] | None = None) -> Profile:
    config = {**VERSION, "profiles": [{"plugins": plugins}]}
    return load_profiles(config, RELEASE, others=extra).profile_for("default-scheduler")


def test_the_default_profile() -> None:
    default_profile = load_profiles(None, RELEASE).profile_for("default-scheduler")
    assert default_profile.points["preEnqueue"] == ("SchedulingGates", "DynamicResources", "DefaultPreemption")
    assert default_profile.points["queueSort"] == ("PrioritySort",)
    assert default_profile.points["filter"][:3] == ("NodeUnschedulable", "NodeName", "TaintToleration")
    assert default_profile.points["filter"][-2:] == ("DynamicResources", "NodeDeclaredFeatures")
    assert default_profile.points["postFilter"] == DEFAULT_POST_FILTER
    assert default_profile.points["score"] == DEFAULT_SCORE
    assert default_profile.points["bind"] == ("DefaultBinder",)
    assert default_profile.points["permit"] == default_profile.points["postBind"] == ()
    assert tuple(default_profile.weights.items()) == tuple(zip(DEFAULT_SCORE, (3, 2, 1, 1, 2, 2, 2, 1, 1), strict=True))


@pytest.mark.parametrize(
    "config",
    [
        VERSION,
        {**VERSION, "profiles": []},
        {**VERSION, "profiles": None},
        {**VERSION, "profiles": [{}]},
        {**VERSION, "profiles": [{"plugins": None, "pluginConfig": None}]},
        {**VERSION, "profiles": [{"plugins": {"score": {"enabled": None}, "filter": {}}}]},
    ],
)
def test_an_empty_configuration_is_the_default(config: Mapping[str, object]) -> None:
    assert load_profiles(config, RELEASE) == load_profiles(None, RELEASE)


@pytest.mark.parametrize(
    ("gates", "point", "plugins"),
    [
        ({"NodeDeclaredFeatures": False}, "filter", ("InterPodAffinity", "DynamicResources")),
        ({"GangScheduling": True, "GenericWorkload": True}, "permit", ("GangScheduling",)),
        ({"TopologyAwareWorkloadScheduling": True, "GenericWorkload": True}, "score", DEFAULT_SCORE[-2:]),
    ],
)
def test_gates_that_change_the_default_profile(gates: dict[str, bool], point: str, plugins: tuple[str, ...]) -> None:
    if "NodeDeclaredFeatures" in gates:
        dependents = (
            "ExtendWebSocketsToKubelet",
            "InPlacePodLevelResourcesVerticalScaling",
            "InPlacePodVerticalScalingInitContainers",
            "RestartAllContainersOnContainerExits",
        )
        gates = gates | dict.fromkeys(dependents, False)
    default_profile = load_profiles(None, resolve(feature_gates=gates)).profiles[0]
    assert default_profile.points[point][-len(plugins) :] == plugins


@pytest.mark.parametrize(
    ("plugins", "point", "expected"),
    [
        pytest.param(
            {"score": {"enabled": names(("ImageLocality", 9))}},
            "score",
            ("ImageLocality", *DEFAULT_SCORE[:-1]),
            id="enabled at the point and by default: first",
        ),
        pytest.param(
            {"score": {"enabled": names("ImageLocality", "NodeAffinity")}},
            "score",
            ("ImageLocality", "NodeAffinity", *(p for p in DEFAULT_SCORE[:-1] if p != "NodeAffinity")),
            id="several: in the order of the point",
        ),
        pytest.param(
            {"score": {"enabled": names("NodeAffinity"), "disabled": names("NodeAffinity")}},
            "score",
            (*(p for p in DEFAULT_SCORE if p != "NodeAffinity"), "NodeAffinity"),
            id="disabled and enabled at the point: after the defaults",
        ),
        pytest.param(
            {"score": {"enabled": names("ImageLocality"), "disabled": names("*")}},
            "score",
            ("ImageLocality",),
            id="all disabled: only the plugins that the point enables",
        ),
        pytest.param(
            {"score": {"disabled": names("*")}, "filter": {"disabled": names("NodeName")}},
            "score",
            (),
            id="all disabled",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names(("ImageLocality", 5))}},
            "score",
            DEFAULT_SCORE,
            id="a default plugin in MultiPoint keeps its position",
        ),
        pytest.param(
            {"multiPoint": {"enabled": names("NodeAffinity"), "disabled": names("NodeAffinity")}},
            "score",
            (*(p for p in DEFAULT_SCORE if p != "NodeAffinity"), "NodeAffinity"),
            id="disabled and enabled in MultiPoint: after the other defaults",
        ),
        pytest.param(
            {"multiPoint": {"disabled": names("DynamicResources")}},
            "postFilter",
            ("DefaultPreemption",),
            id="disabled in MultiPoint: removed everywhere",
        ),
        pytest.param(
            {"postFilter": {"disabled": names("DefaultPreemption")}},
            "preEnqueue",
            ("SchedulingGates", "DynamicResources", "DefaultPreemption"),
            id="disabled at one point: enabled at the others",
        ),
        pytest.param(
            {
                "multiPoint": {"disabled": names("*"), "enabled": names("DefaultBinder", "PrioritySort", "NodeName")},
                "filter": {"enabled": names("NodePorts")},
            },
            "filter",
            ("NodeName", "NodePorts"),
            id="a point's own plugin follows MultiPoint's",
        ),
        pytest.param(
            {"filter": {"disabled": names("NoSuchPlugin")}},
            "postFilter",
            DEFAULT_POST_FILTER,
            id="a disabled plugin may be missing",
        ),
    ],
)
def test_the_order_of_plugins(plugins: Mapping[str, object], point: str, expected: Sequence[str]) -> None:
    assert profile(plugins).points[point] == expected


@pytest.mark.parametrize(
    ("plugins", "weight"),
    [
        ({}, 2),
        ({"score": {"enabled": names(("NodeAffinity", 7))}}, 7),
        ({"score": {"enabled": names("NodeAffinity")}}, 1),
        ({"multiPoint": {"enabled": names(("NodeAffinity", 5))}}, 5),
        ({"multiPoint": {"enabled": names("NodeAffinity")}}, 1),
        ({"multiPoint": {"enabled": names(("NodeAffinity", 0))}}, 1),
        ({"multiPoint": {"enabled": names(("NodeAffinity", 5))}, "score": {"enabled": names(("NodeAffinity", 7))}}, 7),
        ({"filter": {"enabled": names(("NodeAffinity", 7))}}, 2),
    ],
)
def test_the_weight_at_score_precedes_that_of_multi_point(plugins: Mapping[str, object], weight: int) -> None:
    assert profile(plugins).weights["NodeAffinity"] == weight


def test_other_plugins_expand_as_in_tree_plugins() -> None:
    extra = {"Coscheduling": frozenset({"preFilter", "permit", "score"})}
    result = profile({"multiPoint": {"enabled": names(("Coscheduling", 4))}}, extra)
    assert [point for point in POINTS if "Coscheduling" in result.points[point]] == ["preFilter", "score", "permit"]
    assert result.points["score"] == (*DEFAULT_SCORE, "Coscheduling")
    assert result.weights["Coscheduling"] == 4


@pytest.mark.parametrize(
    ("plugins", "unknown"),
    [
        ({"filter": {"enabled": names("Mine")}}, {"Mine": ("filter",)}),
        (
            {"score": {"enabled": names(("Mine", 5))}, "filter": {"enabled": names("Mine")}},
            {"Mine": ("filter", "score")},
        ),
        (
            {"multiPoint": {"enabled": names("Trimaran", "Mine")}},
            {"Trimaran": ("multiPoint",), "Mine": ("multiPoint",)},
        ),
        ({"queueSort": {"disabled": names("*"), "enabled": names("Mine")}}, {"Mine": ("queueSort",)}),
        ({"bind": {"disabled": names("*"), "enabled": names("Mine")}}, {"Mine": ("bind",)}),
        # an unknown plugin may implement queueSort and bind
        ({"multiPoint": {"disabled": names("*"), "enabled": names("Mine")}}, {"Mine": ("multiPoint",)}),
    ],
)
def test_unknown_plugins_are_removed_from_the_points(plugins: Mapping[str, object], unknown: object) -> None:
    result = profile(plugins)
    assert result.unknown == unknown
    assert not {name for plugins in result.points.values() for name in plugins} & result.unknown.keys()


@pytest.mark.parametrize(
    ("plugins", "message"),
    [
        (
            {"filter": {"enabled": names("NodePorts", "NodeNames")}},
            (
                'profiles[0].plugins.filter.enabled[1].name: FilterPlugin "NodeNames" does not exist '
                '(did you mean "NodeName"?)'
            ),
        ),
        (
            {"multiPoint": {"enabled": names("InterPodAfinity")}},
            (
                'profiles[0].plugins.multiPoint.enabled[0].name: plugin "InterPodAfinity" does not exist '
                '(did you mean "InterPodAffinity"?)'
            ),
        ),
        (
            {"score": {"enabled": names("NodeName")}},
            (
                'profiles[0].plugins.score.enabled[0].name: plugin "NodeName" does not extend ScorePlugin plugin '
                "(it has filter)"
            ),
        ),
        (
            {"filter": {"enabled": names("NodeName", "NodePorts", "NodeName")}},
            'profiles[0].plugins.filter.enabled[2].name: plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            {"multiPoint": {"disabled": names("NodeName"), "enabled": names("NodeName", "NodeName")}},
            'profiles[0].plugins.multiPoint.enabled[1].name: plugin "NodeName" already registered as "FilterPlugin"',
        ),
        (
            {"queueSort": {"disabled": names("*")}},
            (
                "profiles[0].plugins.queueSort: only one queue sort plugin required for profile with scheduler name "
                '"default-scheduler", but got 0'
            ),
        ),
        (
            {"bind": {"disabled": names("DefaultBinder")}},
            (
                "profiles[0].plugins.bind: at least one bind plugin is needed for profile with scheduler name "
                '"default-scheduler"'
            ),
        ),
        (
            {"filter": {"enabled": names("EBSLimits")}},
            (
                'profiles[0].plugins.filter.enabled[0]: Invalid value: "EBSLimits": was invalid in version '
                '"kubescheduler.config.k8s.io/v1" (KubeSchedulerConfiguration is version '
                '"kubescheduler.config.k8s.io/v1")'
            ),
        ),
    ],
)
def test_invalid_lists(plugins: Mapping[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        profile(plugins)
    assert str(error.value) == message


def test_a_second_queue_sort_plugin_is_an_error() -> None:
    extra = {"OldestFirst": frozenset({"queueSort"})}
    with pytest.raises(ConfigError, match=r"only one queue sort plugin required .* but got 2"):
        profile({"multiPoint": {"enabled": names("OldestFirst")}}, extra)
    with pytest.raises(ConfigError, match="Invalid value: 2: only one queue sort plugin can be enabled"):
        profile({"queueSort": {"enabled": names("OldestFirst", "PrioritySort")}}, extra)


@pytest.mark.parametrize(
    ("second_profile", "message"),
    [
        ({"queueSort": {"enabled": names("OldestFirst")}}, "must be the same for all profiles"),
        ({"queueSort": {"enabled": names("PrioritySort")}}, "must be the same for all profiles"),
        (
            {"multiPoint": {"disabled": names("PrioritySort"), "enabled": names("OldestFirst")}},
            (
                'profiles[1].plugins.queueSort: different queue sort plugins for profile "b": "OldestFirst", '
                'first: "PrioritySort"'
            ),
        ),
    ],
)
def test_profiles_share_the_queue_sort_plugin(second_profile: Mapping[str, object], message: str) -> None:
    config = {**VERSION, "profiles": [{"schedulerName": "a"}, {"schedulerName": "b", "plugins": second_profile}]}
    with pytest.raises(ConfigError) as error:
        load_profiles(config, RELEASE, others={"OldestFirst": frozenset({"queueSort"})})
    assert str(error.value).endswith(message)


def plugin_sets(enabled: Sequence[str]) -> st.SearchStrategy[dict[str, list[dict[str, object]]]]:
    disabled_lists = st.lists(st.sampled_from(sorted(RELEASE.plugin_points)), unique=True, max_size=4)
    return st.fixed_dictionaries(
        {
            "enabled": st.lists(st.sampled_from(enabled), unique=True, max_size=4).map(lambda drawn: names(*drawn)),
            "disabled": st.one_of(disabled_lists, st.just(["*"])).map(lambda drawn: names(*drawn)),
        }
    )


def plugins_of_point(point: str) -> list[str]:
    return sorted(plugin for plugin, points in RELEASE.plugin_points.items() if point in points)


@given(
    st.fixed_dictionaries(
        {
            "queueSort": st.just({"enabled": names("PrioritySort")}),
            "bind": st.just({"enabled": names("DefaultBinder")}),
        },
        optional={
            "multiPoint": plugin_sets(sorted(RELEASE.plugin_points)),
            **{point: plugin_sets(plugins_of_point(point)) for point in ("preEnqueue", "preFilter", "filter", "score")},
        },
    )
)
def test_every_point_has_its_plugins_once(plugins: dict[str, dict[str, list[dict[str, str]]]]) -> None:
    result = profile(plugins)
    for point, enabled_plugins in result.points.items():
        entry_of_point = plugins.get(point, {})
        enabled = [entry["name"] for entry in entry_of_point.get("enabled", [])]
        disabled = {entry["name"] for entry in entry_of_point.get("disabled", [])}
        assert len(set(enabled_plugins)) == len(enabled_plugins)
        assert all(point in RELEASE.plugin_points[plugin] for plugin in enabled_plugins)
        assert set(enabled) <= set(enabled_plugins)
        assert "*" not in disabled or list(enabled_plugins) == enabled
        assert not (disabled - set(enabled)) & set(enabled_plugins)
    assert set(result.points["score"]) <= result.weights.keys()
    assert 0 not in result.weights.values()
