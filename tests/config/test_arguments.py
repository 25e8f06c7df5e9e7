"""Arguments of in-tree plugins: decoding, defaults, and validation."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kschedx.errors import ConfigError
from kschedx.framework.args import (
    ARGS_TYPES,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    InTreeArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kschedx.framework.config import Profile, load_profiles
from kschedx.kube.scalars import Duration
from kschedx.kube.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement
from kschedx.kube.types import NodeAffinity, TopologySpreadConstraint
from kschedx.releases import resolve

VERSION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
CPU, MEMORY = ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1)
ARGS = "profiles[0].pluginConfig[0].args"
RAMP = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]

IN_ZONE_A = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]}
BY_ZONE = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}


def profile(plugin: str, args: object, gates: dict[str, bool] | None = None, **fields: object) -> Profile:
    config = {**VERSION, "profiles": [{"pluginConfig": [{"name": plugin, "args": args}], **fields}]}
    return load_profiles(config, resolve(feature_gates=gates)).profiles[0]


@pytest.mark.parametrize(
    "expected",
    [
        DefaultPreemptionArgs(min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100),
        DynamicResourcesArgs(filter_timeout=Duration.seconds(10), binding_timeout=Duration.seconds(600)),
        InterPodAffinityArgs(hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False),
        NodeAffinityArgs(added_affinity=None),
        NodeResourcesBalancedAllocationArgs(resources=(CPU, MEMORY)),
        NodeResourcesFitArgs(scoring_strategy=ScoringStrategy(type="LeastAllocated", resources=(CPU, MEMORY))),
        PodTopologySpreadArgs(default_constraints=(), defaulting_type="System"),
        VolumeBindingArgs(bind_timeout_seconds=600, shape=None),
    ],
    ids=lambda args: type(args).__name__,
)
def test_defaults_of_each_plugin(expected: InTreeArgs) -> None:
    kind = type(expected)
    plugin = kind.__name__.removesuffix("Args")
    default_profile = load_profiles(None, resolve()).profiles[0]
    assert default_profile.args_of(kind) == expected
    for empty in (None, {}, {"kind": kind.__name__, "apiVersion": VERSION["apiVersion"]}):
        assert profile(plugin, empty).args == default_profile.args


@pytest.mark.parametrize(
    ("gates", "plugin", "expected"),
    [
        (
            {"StorageCapacityScoring": True},
            "VolumeBinding",
            VolumeBindingArgs(
                shape=(
                    UtilizationShapePoint(utilization=0, score=10),
                    UtilizationShapePoint(utilization=100, score=0),
                )
            ),
        ),
        (
            {"DRASchedulerFilterTimeout": False},
            "DynamicResources",
            DynamicResourcesArgs(binding_timeout=Duration.seconds(600)),
        ),
        (
            {"DRADeviceBindingConditions": False},
            "DynamicResources",
            DynamicResourcesArgs(filter_timeout=Duration.seconds(10)),
        ),
    ],
)
def test_defaults_that_depend_on_gates(gates: dict[str, bool], plugin: str, expected: InTreeArgs) -> None:
    assert load_profiles(None, resolve(feature_gates=gates)).profiles[0].args[plugin] == expected


@pytest.mark.parametrize(
    ("plugin", "args", "expected"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=100),
        ),
        (
            "DynamicResources",
            {"filterTimeout": "0s", "bindingTimeout": "1m30s"},
            DynamicResourcesArgs(filter_timeout=Duration(0), binding_timeout=Duration.seconds(90)),
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
            InterPodAffinityArgs(hard_pod_affinity_weight=0, ignore_preferred_terms_of_existing_pods=True),
        ),
        (
            "NodeAffinity",
            {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": IN_ZONE_A}},
            NodeAffinityArgs(
                added_affinity=NodeAffinity(
                    required_during_scheduling_ignored_during_execution=NodeSelector(
                        node_selector_terms=(
                            NodeSelectorTerm(
                                match_expressions=(SelectorRequirement(key="zone", operator="In", values=("a",)),)
                            ),
                        )
                    )
                )
            ),
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "example.com/gpu", "weight": 0}]},
            NodeResourcesBalancedAllocationArgs(resources=(CPU, ResourceSpec(name="example.com/gpu", weight=1))),
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["example.com/gpu"], "scoringStrategy": {"type": "MostAllocated"}},
            NodeResourcesFitArgs(
                ignored_resources=("example.com/gpu",),
                scoring_strategy=ScoringStrategy(type="MostAllocated", resources=(CPU, MEMORY)),
            ),
        ),
        (
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "resources": [{"name": "memory", "weight": 5.0}],
                    "requestedToCapacityRatio": {"shape": RAMP},
                }
            },
            NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    type="RequestedToCapacityRatio",
                    resources=(ResourceSpec(name="memory", weight=5),),
                    requested_to_capacity_ratio=RequestedToCapacityRatioParam(
                        shape=(
                            UtilizationShapePoint(utilization=0, score=0),
                            UtilizationShapePoint(utilization=100, score=10),
                        )
                    ),
                )
            ),
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": [BY_ZONE]},
            PodTopologySpreadArgs(
                defaulting_type="List",
                default_constraints=(
                    TopologySpreadConstraint(max_skew=1, topology_key="zone", when_unsatisfiable="ScheduleAnyway"),
                ),
            ),
        ),
        ("VolumeBinding", {"bindTimeoutSeconds": 0}, VolumeBindingArgs(bind_timeout_seconds=0)),
    ],
)
def test_arguments_of_a_configuration(plugin: str, args: object, expected: InTreeArgs) -> None:
    assert profile(plugin, args).args[plugin] == expected


def added_affinity(affinity: Mapping[str, object]) -> dict[str, object]:
    return {"addedAffinity": affinity}


def spread(**fields: object) -> dict[str, object]:
    return {"defaultingType": "List", "defaultConstraints": [{**BY_ZONE, **fields}]}


def strategy(**fields: object) -> dict[str, object]:
    return {"scoringStrategy": fields}


def ratio(*points: tuple[int, int]) -> dict[str, object]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return strategy(type="RequestedToCapacityRatio", requestedToCapacityRatio={"shape": shape})


@pytest.mark.parametrize(
    ("plugin", "args", "message"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 101},
            ".minCandidateNodesPercentage: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesAbsolute": -1},
            ".minCandidateNodesAbsolute: Invalid value: -1: not in valid range [0, inf)",
        ),
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
            (
                ".minCandidateNodesPercentage: Invalid value: 0: "
                "cannot be zero at the same time as minCandidateNodesAbsolute"
            ),
        ),
        (
            "DynamicResources",
            {"filterTimeout": "-5s"},
            '.filterTimeout: Invalid value: "-5s": must be zero or positive',
        ),
        (
            "DynamicResources",
            {"bindingTimeout": "999ms"},
            '.bindingTimeout: Invalid value: "999ms": must be at least 1 second',
        ),
        (
            "DynamicResources",
            {"filterTimeout": 10},
            '.filterTimeout: expected a duration such as "10s" or "1m30s", found 10',
        ),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 101},
            ".hardPodAffinityWeight: Invalid value: 101: not in valid range [0, 100]",
        ),
        (
            "NodeAffinity",
            added_affinity({"requiredDuringScheduling": IN_ZONE_A}),
            (
                '.addedAffinity.requiredDuringScheduling: unknown field "requiredDuringScheduling" '
                '(did you mean "requiredDuringSchedulingIgnoredDuringExecution"?)'
            ),
        ),
        (
            "NodeAffinity",
            added_affinity(
                {
                    "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{}, {"matchExpressions": [{"key": "zone", "operator": "in"}]}]
                    }
                }
            ),
            (
                ".addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[1].matchExpressions[0]"
                '.operator: Unsupported value: "in": supported values: '
                '"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"'
            ),
        ),
        (
            "NodeAffinity",
            added_affinity(
                {
                    "preferredDuringSchedulingIgnoredDuringExecution": [
                        {"weight": 1, "preference": {"matchFields": [{"key": "metadata.name", "operator": "In"}]}}
                    ]
                }
            ),
            (
                ".addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].matchFields[0].values: "
                "Invalid value: null: must have one element"
            ),
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu", "weight": 2}]},
            ".resources[0].weight: Invalid value: 2: must be 1",
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
            '.resources[1].name: Duplicate value: "cpu"',
        ),
        (
            "NodeResourcesFit",
            strategy(type="MostAlocated"),
            (
                '.scoringStrategy.type: Unsupported value: "MostAlocated": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio" (did you mean "MostAllocated"?)'
            ),
        ),
        (
            "NodeResourcesFit",
            strategy(resources=[{"name": "cpu"}]),
            (
                '.scoringStrategy.type: Unsupported value: "": supported values: '
                '"LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"'
            ),
        ),
        (
            "NodeResourcesFit",
            strategy(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
            (
                ".scoringStrategy.resources[0].weight: Invalid value: 101: "
                "resource weight of cpu not in valid range (0, 100]"
            ),
        ),
        (
            "NodeResourcesFit",
            strategy(type="RequestedToCapacityRatio"),
            (
                ".scoringStrategy.requestedToCapacityRatio: Required value: "
                "must be specified when type is RequestedToCapacityRatio"
            ),
        ),
        (
            "NodeResourcesFit",
            strategy(type="MostAllocated", requestedToCapacityRatio={"shape": RAMP}),
            (
                ".scoringStrategy.requestedToCapacityRatio: Forbidden: "
                "must be nil when type is not RequestedToCapacityRatio"
            ),
        ),
        (
            "NodeResourcesFit",
            ratio(),
            ".scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point must be specified",
        ),
        (
            "NodeResourcesFit",
            ratio((50, 1), (50, 2)),
            (
                ".scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 50: "
                "values must be sorted in increasing order"
            ),
        ),
        (
            "NodeResourcesFit",
            ratio((0, 1), (101, 2)),
            (
                ".scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 101: "
                "not in valid range [0, 100]"
            ),
        ),
        (
            "NodeResourcesFit",
            ratio((0, 11)),
            ".scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: not in valid range [0, 10]",
        ),
        (
            "NodeResourcesFit",
            {
                "scoringStrategy": {
                    "type": "RequestedToCapacityRatio",
                    "requestedToCapacityRatio": {"shape": [{"Score": 1}]},
                }
            },
            '.scoringStrategy.requestedToCapacityRatio.shape[0].Score: unknown field "Score" (did you mean "score"?)',
        ),
        (
            "NodeResourcesFit",
            {"ignoredResourceGroups": ["example.com/gpu"]},
            ".ignoredResourceGroups[0]: Invalid value: \"example.com/gpu\": resource group name can't contain '/'",
        ),
        (
            "PodTopologySpread",
            {"defaultConstraints": [BY_ZONE]},
            '.defaultingType: Invalid value: "System": when .defaultConstraints are not empty',
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "list"},
            '.defaultingType: Unsupported value: "list": supported values: "List", "System" (did you mean "List"?)',
        ),
        (
            "PodTopologySpread",
            spread(maxSkew=0),
            ".defaultConstraints[0].maxSkew: Invalid value: 0: not in valid range (0, inf)",
        ),
        (
            "PodTopologySpread",
            spread(topologyKey=None),
            ".defaultConstraints[0].topologyKey: Required value: can not be empty",
        ),
        (
            "PodTopologySpread",
            spread(whenUnsatisfiable="Never"),
            (
                '.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: '
                '"DoNotSchedule", "ScheduleAnyway"'
            ),
        ),
        (
            "PodTopologySpread",
            spread(labelSelector={}),
            (
                ".defaultConstraints[0].labelSelector: Forbidden: "
                "constraint must not define a selector, as they deduced for each pod"
            ),
        ),
        (
            "PodTopologySpread",
            {"defaultingType": "List", "defaultConstraints": [BY_ZONE, BY_ZONE]},
            '.defaultConstraints[1]: Duplicate value: "{zone, ScheduleAnyway}"',
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": -1},
            (".bindTimeoutSeconds: Invalid value: -1: invalid BindTimeoutSeconds, should not be a negative value"),
        ),
        (
            "VolumeBinding",
            {"shape": []},
            (
                ".shape: Invalid value: []: "
                "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
            ),
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSecond": 1},
            '.bindTimeoutSecond: unknown field "bindTimeoutSecond" (did you mean "bindTimeoutSeconds"?)',
        ),
        (
            "VolumeBinding",
            {"kind": "NodeAffinityArgs"},
            '.kind: args for plugin VolumeBinding were not of type VolumeBindingArgs, got "NodeAffinityArgs"',
        ),
        (
            "VolumeBinding",
            {"apiVersion": "kubescheduler.config.k8s.io/v1beta3"},
            '.apiVersion: found "kubescheduler.config.k8s.io/v1beta3", allowed: kubescheduler.config.k8s.io/v1',
        ),
        ("VolumeBinding", 600, ": expected a mapping, found 600"),
        ("Coscheduling", [1], ": expected a mapping, found [1]"),
    ],
)
def test_invalid_arguments(plugin: str, args: object, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        profile(plugin, args)
    assert str(error.value) == ARGS + message


@pytest.mark.parametrize(
    ("gates", "args", "message"),
    [
        (
            {"DRASchedulerFilterTimeout": False},
            {"filterTimeout": "1s"},
            ".filterTimeout: Forbidden: DRASchedulingFilterTimeout feature gate is disabled",
        ),
        (
            {"DRADeviceBindingConditions": False},
            {"bindingTimeout": "1s"},
            (
                ".bindingTimeout: Forbidden: "
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            ),
        ),
    ],
)
def test_a_disabled_gate_forbids_its_field(gates: dict[str, bool], args: object, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        profile("DynamicResources", args, gates)
    assert str(error.value) == ARGS + message


def test_arguments_of_fit_are_validated_only_if_it_is_enabled() -> None:
    without_fit = {"multiPoint": {"disabled": [{"name": "NodeResourcesFit"}]}}
    result = profile("NodeResourcesFit", strategy(type="Never"), plugins=without_fit)
    assert result.args_of(NodeResourcesFitArgs).scoring_strategy.type == "Never"
    without_affinity = {"multiPoint": {"disabled": [{"name": "InterPodAffinity"}]}}
    with pytest.raises(ConfigError, match="not in valid range"):
        profile("InterPodAffinity", {"hardPodAffinityWeight": 101}, plugins=without_affinity)


def test_a_plugin_that_is_disabled_everywhere_has_no_arguments() -> None:
    enabled = [{"name": name} for name in ("PrioritySort", "DefaultBinder", "NodeAffinity")]
    plugins = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    config = {**VERSION, "profiles": [{"plugins": plugins}]}
    assert load_profiles(config, resolve()).profiles[0].args.keys() == {"NodeAffinity"}


def test_arguments_of_other_plugins_are_unchanged() -> None:
    args = {"permitWaitingTimeSeconds": 10, "nested": {"nothing": None}}
    assert profile("Coscheduling", args).args["Coscheduling"] == args


def test_every_type_of_arguments_has_its_plugin() -> None:
    assert {f"{plugin}Args" for plugin in ARGS_TYPES} == {kind.__name__ for kind in ARGS_TYPES.values()}
    assert ARGS_TYPES.keys() <= resolve().plugin_points.keys()
