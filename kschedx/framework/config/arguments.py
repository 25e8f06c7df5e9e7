"""Arguments of the in-tree plugins: decoding, defaults, and validation.

Upstream: pkg/scheduler/apis/config/v1/defaults.go and pkg/scheduler/apis/config/validation/validation_pluginargs.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from msgspec.structs import replace

from kschedx.errors import ConfigError, InputError
from kschedx.framework.args import (
    ARGS_TYPES,
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    InTreeArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kschedx.framework.config.decoding import (
    Faults,
    config_error,
    decode,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    refuse,
    required,
    shown,
)
from kschedx.kube.duration import Duration
from kschedx.kube.names import label_key_errors
from kschedx.kube.selectors import compile_node_selector, compile_preferred_terms
from kschedx.kube.types import TopologySpreadConstraint
from kschedx.releases import Release

_CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))
_SCORING_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_LARGEST_SCORE = 10


def decode_args(plugin: str, value: object, path: str, release: Release, faults: Faults) -> PluginArgs:
    """Return the arguments of `plugin` with defaults. `value` is from the profile's pluginConfig, or None if it has
    none."""
    kind = ARGS_TYPES.get(plugin)
    if kind is DynamicResourcesArgs and not release.arguments.dynamic_resources_take_arguments:
        kind = None
    if kind is None:
        if value is not None and not isinstance(value, Mapping):
            faults.add(refuse(path, f"expected a mapping, found {shown(value)}"))
            return {}
        return value or {}
    if isinstance(value, Mapping):
        faults.extend(_type_errors(plugin, value, path, release))
        value = {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}
    return with_defaults(decode({} if value is None else value, kind, path, faults), release)


def _type_errors(plugin: str, value: Mapping[str, object], path: str, release: Release) -> Iterator[ConfigError]:
    """Yield errors in the apiVersion and kind of arguments. Both are optional, but must match if set."""
    kind = f"{plugin}Args"
    version = value.get("apiVersion")
    if version and version not in release.config_versions:
        yield refuse(f"{path}.apiVersion", f"found {shown(version)}, allowed: {', '.join(release.config_versions)}")
    if value.get("kind") and value["kind"] != kind:
        yield refuse(f"{path}.kind", f"args for plugin {plugin} were not of type {kind}, got {shown(value['kind'])}")


def with_defaults(args: InTreeArgs, release: Release) -> InTreeArgs:
    match args:
        case DefaultPreemptionArgs() | InterPodAffinityArgs() | NodeAffinityArgs():
            return args
        case DynamicResourcesArgs():
            if args.filter_timeout is None and release.enabled("DRASchedulerFilterTimeout"):
                args = replace(args, filter_timeout=Duration.seconds(10))
            if args.binding_timeout is None and _knows_binding_timeout(release):
                args = replace(args, binding_timeout=Duration.seconds(600))
            return args
        case NodeResourcesBalancedAllocationArgs():
            return replace(args, resources=_weighted(args.resources))
        case NodeResourcesFitArgs():
            strategy = replace(args.scoring_strategy, resources=_weighted(args.scoring_strategy.resources))
            return replace(args, scoring_strategy=strategy)
        case PodTopologySpreadArgs():
            return replace(args, defaulting_type=args.defaulting_type or SYSTEM_DEFAULTING)
        case VolumeBindingArgs():
            if not args.shape and release.enabled(release.arguments.storage_scoring_gate):
                shape = release.arguments.storage_scoring_shape
                points = (UtilizationShapePoint(utilization=utilization, score=score) for utilization, score in shape)
                args = replace(args, shape=tuple(points))
            return args
        case _:
            assert_never(args)


def _weighted(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(replace(r, weight=r.weight or 1) for r in resources) or _CPU_AND_MEMORY


def _knows_binding_timeout(release: Release) -> bool:
    return release.enabled("DRADeviceBindingConditions") and release.enabled("DRAResourceClaimDeviceStatus")


def argument_errors(args: InTreeArgs, path: str, release: Release) -> Iterator[ConfigError]:
    """Yield what kube-scheduler refuses in defaulted arguments, in its order."""
    match args:
        case DefaultPreemptionArgs():
            return _default_preemption(args, path)
        case DynamicResourcesArgs():
            return _dynamic_resources(args, path, release)
        case InterPodAffinityArgs():
            return _in_range(f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, 0, 100)
        case NodeAffinityArgs():
            return _node_affinity(args, path)
        case NodeResourcesBalancedAllocationArgs():
            return _balanced_allocation(args, f"{path}.resources")
        case NodeResourcesFitArgs():
            return _node_resources_fit(args, path, release)
        case PodTopologySpreadArgs():
            return _pod_topology_spread(args, path)
        case VolumeBindingArgs():
            return _volume_binding(args, path, release)
        case _:
            assert_never(args)


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> Iterator[ConfigError]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    yield from _in_range(f"{path}.minCandidateNodesPercentage", percentage, 0, 100)
    if absolute < 0:
        yield invalid(f"{path}.minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        detail = "cannot be zero at the same time as minCandidateNodesAbsolute"
        yield invalid(f"{path}.minCandidateNodesPercentage", percentage, detail)


def _dynamic_resources(args: DynamicResourcesArgs, path: str, release: Release) -> Iterator[ConfigError]:
    """Yield errors in the arguments. Unlike in the API, a field of a disabled feature is an error."""
    if args.filter_timeout is not None:
        where = f"{path}.filterTimeout"
        if not release.enabled("DRASchedulerFilterTimeout"):
            yield forbidden(where, "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout < Duration(0):
            yield invalid(where, str(args.filter_timeout), "must be zero or positive")
    if args.binding_timeout is not None:
        where = f"{path}.bindingTimeout"
        if not _knows_binding_timeout(release):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden(where, detail)
        elif args.binding_timeout < Duration.seconds(1):
            yield invalid(where, str(args.binding_timeout), "must be at least 1 second")


def _node_affinity(args: NodeAffinityArgs, path: str) -> Iterator[ConfigError]:
    affinity, where = args.added_affinity, f"{path}.addedAffinity"
    if affinity is None:
        return
    if (selector := affinity.required_during_scheduling_ignored_during_execution) is not None:
        field = f"{where}.requiredDuringSchedulingIgnoredDuringExecution"
        yield from map(config_error, compile_node_selector(selector, field=field).errors)
    field = f"{where}.preferredDuringSchedulingIgnoredDuringExecution"
    try:
        compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution, field=field)
    except InputError as error:
        yield config_error(error)


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> Iterator[ConfigError]:
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        if resource.name in seen:
            yield duplicate(f"{path}[{i}].name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            yield invalid(f"{path}[{i}].weight", resource.weight, "must be 1")


def _node_resources_fit(args: NodeResourcesFitArgs, path: str, release: Release) -> Iterator[ConfigError]:
    for i, name in enumerate(args.ignored_resources):
        yield from _label_name(f"{path}.ignoredResources[{i}]", name)
    for i, group in enumerate(args.ignored_resource_groups):
        where = f"{path}.ignoredResourceGroups[{i}]"
        if "/" in group:
            yield invalid(where, group, "resource group name can't contain '/'")
        yield from _label_name(where, group)
    yield from _scoring_strategy(args.scoring_strategy, f"{path}.scoringStrategy", release)


def _scoring_strategy(strategy: ScoringStrategy, path: str, release: Release) -> Iterator[ConfigError]:
    if strategy.type not in _SCORING_STRATEGIES:
        yield not_supported(f"{path}.type", strategy.type, _SCORING_STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield invalid(f"{path}.resources[{i}].weight", resource.weight, detail)
    ratio, where = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    must_fit = release.arguments.ratio_must_fit_strategy
    if ratio is None:
        if strategy.type == REQUESTED_TO_CAPACITY_RATIO:  # without this check, kube-scheduler crashes
            yield required(where, "must be specified when type is RequestedToCapacityRatio")
    elif must_fit and strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        yield forbidden(where, "must be nil when type is not RequestedToCapacityRatio")
    else:
        yield from _function_shape(ratio.shape, f"{where}.shape" if must_fit else f"{path}.shape", release)


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str) -> Iterator[ConfigError]:
    constraints, where = args.default_constraints, f"{path}.defaultingType"
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        yield not_supported(where, args.defaulting_type, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif args.defaulting_type == SYSTEM_DEFAULTING and constraints:
        yield invalid(where, args.defaulting_type, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}.defaultConstraints[{i}]"
        yield from _default_constraint(constraint, where)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            yield duplicate(where, f"{{{key[0]}, {key[1]}}}")
        seen.add(key)


def _default_constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[ConfigError]:
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.max_skew <= 0:
        yield invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if constraint.topology_key:
        yield from _label_name(f"{path}.topologyKey", constraint.topology_key)
    else:
        yield required(f"{path}.topologyKey", "can not be empty")
    if not constraint.when_unsatisfiable:
        yield required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        yield not_supported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        yield forbidden(f"{path}.labelSelector", "constraint must not define a selector, as they deduced for each pod")


def _volume_binding(args: VolumeBindingArgs, path: str, release: Release) -> Iterator[ConfigError]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    gate = release.arguments.storage_scoring_gate
    if release.enabled(gate):
        yield from _function_shape(args.shape or (), f"{path}.shape", release)
    elif args.shape is not None:
        points = [{"utilization": point.utilization, "score": point.score} for point in args.shape]
        detail = f"unexpected field `shape`, remove it or turn on the feature gate {gate}"
        yield invalid(f"{path}.shape", points, detail)


def _function_shape(shape: tuple[UtilizationShapePoint, ...], path: str, release: Release) -> Iterator[ConfigError]:
    if not shape:
        yield required(path, "at least one point must be specified")
        return
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            where = f"{path}[{i}].utilization"
            yield invalid(where, shape[i].utilization, release.arguments.unsorted_shape)
            break
    for i, point in enumerate(shape):
        yield from _in_range(f"{path}[{i}].utilization", point.utilization, 0, 100)
        yield from _in_range(f"{path}[{i}].score", point.score, 0, _LARGEST_SCORE)


def _in_range(path: str, value: int, lowest: int, highest: int) -> Iterator[ConfigError]:
    if not lowest <= value <= highest:
        yield invalid(path, value, f"not in valid range [{lowest}, {highest}]")


def _label_name(path: str, name: str) -> Iterable[ConfigError]:
    return (invalid(path, name, message) for message in label_key_errors(name))
