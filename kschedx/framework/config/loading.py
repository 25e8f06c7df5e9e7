"""From a parsed KubeSchedulerConfiguration to profiles, with the errors that kube-scheduler reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import assert_never

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import ConfigError, InputError, join_fields, nearest
from kschedx.framework.args import (
    ARGS_TYPES,
    LEAST_ALLOCATED,
    LIST_DEFAULTING,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    SYSTEM_DEFAULTING,
    CoschedulingArgs,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    InTreeArgs,
    NodeAffinityArgs,
    NodeResourcesAllocatableArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    NodeResourceTopologyMatchArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from kschedx.framework.config.decoding import (
    KIND,
    ConfigurationDocument,
    Extender,
    Faults,
    LeaderElection,
    PluginConfig,
    Profile,
    ProfileDocument,
    SchedulerConfig,
    decode,
    refuse,
    shown,
    unknown_field_error,
)
from kschedx.framework.config.expansion import Expansion, MergedSet, PluginPoints, expand, merge_plugins
from kschedx.framework.registry import points_of_others, third_party
from kschedx.kube.field_errors import duplicate, forbidden_error, invalid, not_supported_error, required_error
from kschedx.kube.names import DEFAULT_SCHEDULER, is_extended_resource, label_key_errors
from kschedx.kube.scalars import Duration
from kschedx.kube.selectors import compile_node_selector, compile_preferred_terms
from kschedx.kube.types import TopologySpreadConstraint
from kschedx.releases import POINTS, V1, VERSIONS, Release
from kschedx.releases.release import last_to_read

# Arguments of the in-tree plugins: decoding, defaults, and validation.
# Upstream: pkg/scheduler/apis/config/v1/defaults.go and pkg/scheduler/apis/config/validation/validation_pluginargs.go.

_CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))
_SCORING_STRATEGIES = (LEAST_ALLOCATED, MOST_ALLOCATED, REQUESTED_TO_CAPACITY_RATIO)
_LARGEST_SCORE = 10
_ARGS_OF_OTHERS: Mapping[str, type[Struct]] = {
    "Coscheduling": CoschedulingArgs,
    "NodeResourcesAllocatable": NodeResourcesAllocatableArgs,
    "NodeResourceTopologyMatch": NodeResourceTopologyMatchArgs,
    "PreemptionToleration": DefaultPreemptionArgs,
}
_POLICY = "Policy"  # the configuration kind of schedulers before the framework


def _decode_args(plugin: str, value: object, path: str, release: Release, faults: Faults) -> PluginArgs:
    """The arguments of `plugin` with defaults. `value` is from the profile's pluginConfig, or None if it has none."""
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
    return _with_defaults(decode({} if value is None else value, kind, path, faults), release)


def _type_errors(plugin: str, value: Mapping[str, object], path: str, release: Release) -> Iterator[InputError]:
    """Yield errors in the apiVersion and kind of arguments. Both are optional, but must match if set."""
    kind = f"{plugin}Args"
    version = value.get("apiVersion")
    if version and version not in release.config_versions:
        yield refuse(f"{path}.apiVersion", f"found {shown(version)}, allowed: {', '.join(release.config_versions)}")
    if value.get("kind") and value["kind"] != kind:
        yield refuse(f"{path}.kind", f"args for plugin {plugin} were not of type {kind}, got {shown(value['kind'])}")


def _with_defaults(args: InTreeArgs, release: Release) -> InTreeArgs:
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
            return replace(args, resources=_default_weights(args.resources))
        case NodeResourcesFitArgs():
            strategy = replace(args.scoring_strategy, resources=_default_weights(args.scoring_strategy.resources))
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


def _default_weights(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return tuple(replace(r, weight=r.weight or 1) for r in resources) or _CPU_AND_MEMORY


def _knows_binding_timeout(release: Release) -> bool:
    return release.enabled("DRADeviceBindingConditions") and release.enabled("DRAResourceClaimDeviceStatus")


def _argument_errors(args: InTreeArgs, path: str, release: Release) -> Iterator[InputError]:
    """Yield what kube-scheduler refuses in defaulted arguments, in its order."""
    match args:
        case DefaultPreemptionArgs():
            return _default_preemption(args, path)
        case DynamicResourcesArgs():
            return _dynamic_resources(args, path, release)
        case InterPodAffinityArgs():
            return _range_errors(f"{path}.hardPodAffinityWeight", args.hard_pod_affinity_weight, 100)
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


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> Iterator[InputError]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    yield from _range_errors(f"{path}.minCandidateNodesPercentage", percentage, 100)
    if absolute < 0:
        yield _invalid(f"{path}.minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        detail = "cannot be zero at the same time as minCandidateNodesAbsolute"
        yield _invalid(f"{path}.minCandidateNodesPercentage", percentage, detail)


def _invalid(path: str, value: object, detail: str) -> InputError:
    return invalid(path, shown(value), detail)


def _dynamic_resources(args: DynamicResourcesArgs, path: str, release: Release) -> Iterator[InputError]:
    """Yield errors in the arguments. Unlike in the API, a field of a disabled feature is an error."""
    if args.filter_timeout is not None:
        where = f"{path}.filterTimeout"
        if not release.enabled("DRASchedulerFilterTimeout"):
            yield forbidden_error(where, "DRASchedulingFilterTimeout feature gate is disabled")
        elif args.filter_timeout < Duration(0):
            yield _invalid(where, str(args.filter_timeout), "must be zero or positive")
    if args.binding_timeout is not None:
        where = f"{path}.bindingTimeout"
        if not _knows_binding_timeout(release):
            detail = "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled"
            yield forbidden_error(where, detail)
        elif args.binding_timeout < Duration.seconds(1):
            yield _invalid(where, str(args.binding_timeout), "must be at least 1 second")


def _node_affinity(args: NodeAffinityArgs, path: str) -> Iterator[InputError]:
    affinity, where = args.added_affinity, f"{path}.addedAffinity"
    if affinity is None:
        return
    if (selector := affinity.required_during_scheduling_ignored_during_execution) is not None:
        field = f"{where}.requiredDuringSchedulingIgnoredDuringExecution"
        yield from compile_node_selector(selector, field=field).errors
    field = f"{where}.preferredDuringSchedulingIgnoredDuringExecution"
    try:
        compile_preferred_terms(affinity.preferred_during_scheduling_ignored_during_execution, field=field)
    except InputError as error:
        yield error


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> Iterator[InputError]:
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        if resource.name in seen:
            yield duplicate(f"{path}[{i}].name", shown(resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            yield _invalid(f"{path}[{i}].weight", resource.weight, "must be 1")


def _node_resources_fit(args: NodeResourcesFitArgs, path: str, release: Release) -> Iterator[InputError]:
    for i, name in enumerate(args.ignored_resources):
        yield from _label_name(f"{path}.ignoredResources[{i}]", name)
    for i, group in enumerate(args.ignored_resource_groups):
        where = f"{path}.ignoredResourceGroups[{i}]"
        if "/" in group:
            yield _invalid(where, group, "resource group name can't contain '/'")
        yield from _label_name(where, group)
    yield from _scoring_strategy(args.scoring_strategy, f"{path}.scoringStrategy", release)


def _scoring_strategy(strategy: ScoringStrategy, path: str, release: Release) -> Iterator[InputError]:
    if strategy.type not in _SCORING_STRATEGIES:
        yield _not_supported_error(f"{path}.type", strategy.type, _SCORING_STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield _invalid(f"{path}.resources[{i}].weight", resource.weight, detail)
    ratio, where = strategy.requested_to_capacity_ratio, f"{path}.requestedToCapacityRatio"
    must_fit = release.arguments.ratio_must_fit_strategy
    if ratio is None:
        if strategy.type == REQUESTED_TO_CAPACITY_RATIO:  # without this check, kube-scheduler crashes
            yield required_error(where, "must be specified when type is RequestedToCapacityRatio")
    elif must_fit and strategy.type != REQUESTED_TO_CAPACITY_RATIO:
        yield forbidden_error(where, "must be nil when type is not RequestedToCapacityRatio")
    else:
        yield from _function_shape(ratio.shape, f"{where}.shape" if must_fit else f"{path}.shape", release)


def _not_supported_error(path: str, value: str, supported: Iterable[str]) -> InputError:
    values = sorted(supported)
    error = not_supported_error(path, shown(value), values)
    error.hint = nearest(value, values)
    return error


def _pod_topology_spread(args: PodTopologySpreadArgs, path: str) -> Iterator[InputError]:
    constraints, where = args.default_constraints, f"{path}.defaultingType"
    if args.defaulting_type not in (SYSTEM_DEFAULTING, LIST_DEFAULTING):
        yield _not_supported_error(where, args.defaulting_type, (SYSTEM_DEFAULTING, LIST_DEFAULTING))
    elif args.defaulting_type == SYSTEM_DEFAULTING and constraints:
        yield _invalid(where, args.defaulting_type, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(constraints):
        where = f"{path}.defaultConstraints[{i}]"
        yield from _default_constraint(constraint, where)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            yield duplicate(where, shown(f"{{{key[0]}, {key[1]}}}"))
        seen.add(key)


def _default_constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[InputError]:
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.max_skew <= 0:
        yield _invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if constraint.topology_key:
        yield from _label_name(f"{path}.topologyKey", constraint.topology_key)
    else:
        yield required_error(f"{path}.topologyKey", "can not be empty")
    if not constraint.when_unsatisfiable:
        yield required_error(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        yield _not_supported_error(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        yield forbidden_error(
            f"{path}.labelSelector", "constraint must not define a selector, as they deduced for each pod"
        )


def _volume_binding(args: VolumeBindingArgs, path: str, release: Release) -> Iterator[InputError]:
    if args.bind_timeout_seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        yield _invalid(f"{path}.bindTimeoutSeconds", args.bind_timeout_seconds, detail)
    gate = release.arguments.storage_scoring_gate
    if release.enabled(gate):
        yield from _function_shape(args.shape or (), f"{path}.shape", release)
    elif args.shape is not None:
        points = [{"utilization": point.utilization, "score": point.score} for point in args.shape]
        detail = f"unexpected field `shape`, remove it or turn on the feature gate {gate}"
        yield _invalid(f"{path}.shape", points, detail)


def _function_shape(shape: tuple[UtilizationShapePoint, ...], path: str, release: Release) -> Iterator[InputError]:
    if not shape:
        yield required_error(path, "at least one point must be specified")
        return
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            where = f"{path}[{i}].utilization"
            yield _invalid(where, shape[i].utilization, release.arguments.unsorted_shape)
            break
    for i, point in enumerate(shape):
        yield from _range_errors(f"{path}[{i}].utilization", point.utilization, 100)
        yield from _range_errors(f"{path}[{i}].score", point.score, _LARGEST_SCORE)


def _range_errors(path: str, value: int, highest: int) -> Iterator[InputError]:
    if not 0 <= value <= highest:
        yield _invalid(path, value, f"not in valid range [0, {highest}]")


def _label_name(path: str, name: str) -> Iterable[InputError]:
    return (_invalid(path, name, message) for message in label_key_errors(name))


# Errors that kube-scheduler reports in a configuration, except in plugin arguments, in its order.
#
# Upstream: pkg/scheduler/apis/config/validation/validation.go and component-base/config/validation/validation.go.
# Fields are checked with their defaults, so an absent field is never wrong.

_LOCK = "leases"


def _component_errors(document: ConfigurationDocument) -> Iterator[InputError]:
    """Yield errors in the fields before the profiles."""
    if document.client_connection.burst < 0:
        yield _invalid("clientConnection.burst", document.client_connection.burst, "must be non-negative")
    yield from _leader_election(document.leader_election)
    if document.parallelism <= 0:
        yield _invalid("parallelism", document.parallelism, "should be an integer value greater than zero")


def _scheduling_errors(document: ConfigurationDocument) -> Iterator[InputError]:
    """Yield errors in the fields after the profiles."""
    yield from _percentage_errors("percentageOfNodesToScore", document.percentage_of_nodes_to_score)
    if document.pod_initial_backoff_seconds <= 0:
        yield _invalid("podInitialBackoffSeconds", document.pod_initial_backoff_seconds, "must be greater than 0")
    if document.pod_max_backoff_seconds < document.pod_initial_backoff_seconds:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield _invalid("podMaxBackoffSeconds", document.pod_max_backoff_seconds, detail)
    yield from _extenders(document.extenders)


def _leader_election(election: LeaderElection) -> Iterator[InputError]:
    if not election.leader_elect:
        return
    zero = Duration(0)
    lease = election.lease_duration if election.lease_duration != zero else Duration.seconds(15)
    renew = election.renew_deadline if election.renew_deadline != zero else Duration.seconds(10)
    retry = election.retry_period if election.retry_period != zero else Duration.seconds(2)
    for name, duration in (("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry)):
        if duration <= zero:
            yield _invalid(f"leaderElection.{name}", str(duration), "must be greater than zero")
    if lease <= renew:
        yield _invalid("leaderElection.leaseDuration", str(renew), "must be greater than `RenewDeadline`")
    if election.resource_lock not in ("", _LOCK):
        yield _invalid("leaderElection.resourceLock", election.resource_lock, f'resourceLock value must be "{_LOCK}"')


def _percentage_errors(path: str, percentage: int | None) -> Iterator[InputError]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield _invalid(path, percentage, "not in valid range [0-100]")


def _removed_plugin_errors(merged: Mapping[str, MergedSet], removed: Sequence[str]) -> Iterator[InputError]:
    for point in POINTS:
        for entry in merged[point].enabled:
            if entry.name in removed:
                yield _removed_plugin_error(entry.path, entry.name)


def _plugin_config_errors(configs: Sequence[PluginConfig], path: str, removed: Sequence[str]) -> Iterator[InputError]:
    seen: set[str] = set()
    for i, config in enumerate(configs):
        if config.name in seen:
            yield duplicate(f"{path}[{i}]", shown(config.name))
        seen.add(config.name)
        if config.name in removed:
            yield _removed_plugin_error(f"{path}[{i}]", config.name)


def _removed_plugin_error(path: str, plugin: str) -> InputError:
    version = shown(V1)
    return _invalid(path, plugin, f"was invalid in version {version} (KubeSchedulerConfiguration is version {version})")


def _scheduler_name_errors(names: Sequence[str]) -> Iterator[InputError]:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        path = f"profiles[{i}].schedulerName"
        if not name:
            yield required_error(path, "")
        if name in first:
            other = f"profiles[{first[name]}].schedulerName"
            yield refuse(path, f"Duplicate value: {shown(name)}", f"it is also that of {other}")
        first.setdefault(name, i)


def _queue_sort_errors(queue_sorts: Sequence[MergedSet], release: Release) -> Iterator[InputError]:
    """Yield errors for profiles that differ: all pending pods are in one queue, so every profile must sort it the same
    way."""
    if len(queue_sorts[0].enabled) > 1:
        path = "profiles[0].plugins.queueSort.enabled"
        yield _invalid(path, len(queue_sorts[0].enabled), "only one queue sort plugin can be enabled")
    for i, queue_sort in enumerate(queue_sorts):
        if queue_sort.requested_plugins() != queue_sorts[0].requested_plugins():
            names = [entry.name for entry in queue_sort.enabled]
            yield _invalid(f"profiles[{i}].plugins.queueSort", names, release.arguments.different_queue_sort)


def _extenders(extenders: Iterable[Extender]) -> Iterator[InputError]:
    managed: set[str] = set()
    binders = 0
    for i, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            yield _invalid(f"extenders[{i}].weight", extender.weight, "must have a positive weight applied to it")
        binders += bool(extender.bind_verb)
        for j, resource in enumerate(extender.managed_resources):
            path = f"extenders[{i}].managedResources[{j}].name"
            yield from _extended_resource_name(path, resource.name)
            if resource.name in managed:
                yield _invalid(path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    if binders > 1:
        message = f"found {binders} extenders implementing bind"
        yield _invalid("extenders", message, "only one extender can implement bind")


def _extended_resource_name(path: str, name: str) -> Iterator[InputError]:
    wrong = list(label_key_errors(name))
    yield from (_invalid(path, name, message) for message in wrong)
    if not wrong and not is_extended_resource(name):
        yield _invalid(path, name, "is an invalid extended resource name")


# The steps from a parsed KubeSchedulerConfiguration to profiles.
#
# Upstream: cmd/kube-scheduler/app/options/configfile.go, pkg/scheduler/apis/config/v1/defaults.go, and New in
# pkg/scheduler/scheduler.go. As in kube-scheduler, all errors are reported at once.


def load_profiles(
    config: Mapping[str, object] | None, release: Release, others: PluginPoints | None = None
) -> SchedulerConfig:
    """Return the profiles of `config`, a KubeSchedulerConfiguration as parsed from YAML or JSON; None is the default
    one.

    `others` are plugins outside Kubernetes with the extension points that each implements; the default are the
    registered ones. Raises `ConfigError`, which names the field's path in `config`.
    """
    faults = Faults()
    document = decode_document(config, release, faults)
    drafts = [_draft(i, profile, document, release, faults) for i, profile in enumerate(document.profiles)]
    faults.next_step()
    faults.extend(_errors(document, drafts, release))
    faults.next_step()
    implements = plugin_points(document, release, others)
    for draft in drafts:
        _check_args_of_others(draft, implements.keys() - release.plugin_points.keys(), faults)
    expansions = [expand(draft.merged, implements, draft.scheduler_name, draft.path, faults) for draft in drafts]
    faults.settle()
    profiles = tuple(map(partial(_finish, document), drafts, expansions))
    faults.extend(_different_queues(profiles, expansions))
    faults.settle()
    return SchedulerConfig(profiles=profiles, extenders=document.extenders)


def plugin_points(
    document: ConfigurationDocument, release: Release, others: PluginPoints | None = None
) -> PluginPoints:
    """Return the version's plugins, and other plugins that the configuration names, with their extension points."""
    if others is None:
        named = _enabled_at(document)
        others = points_of_others({name: named[name] for name in named.keys() - release.plugin_points.keys()})
    return {**release.plugin_points, **others}


def _enabled_at(document: ConfigurationDocument) -> dict[str, set[str]]:
    """Return every plugin that a configuration names, for whatever purpose, with the points at which it is enabled."""
    names: dict[str, set[str]] = {}
    for profile in document.profiles:
        for point, plugins in profile.plugins.sets_by_point().items():
            for entry in plugins.enabled:
                names.setdefault(entry.name, set()).add(point)
            for entry in plugins.disabled:
                names.setdefault(entry.name, set())
        for config in profile.plugin_config:
            names.setdefault(config.name, set())
    return names


def _missing_field_errors(config: Mapping[str, object], paths: Iterable[str], hint: str) -> Iterator[ConfigError]:
    """Yield errors for set fields that a version of the configuration lacks; `paths` as in `Release.missing_fields`."""
    for pattern in paths:
        for path, key in _set_fields(config, pattern.split("."), ""):
            yield refuse(path, f"unknown field {shown(key)}", hint)


def _set_fields(value: object, steps: Sequence[str], path: str) -> Iterator[tuple[str, str]]:
    """Yield the places in which the field at `steps` is set, with its name."""
    if not isinstance(value, Mapping):
        return
    step, rest = steps[0], steps[1:]
    key, is_list, of_plugin = step.partition("[]")
    place = join_fields(path, key)
    if not rest:
        if value.get(key) is not None:
            yield place, key
    elif not is_list:
        yield from _set_fields(value.get(key), rest, place)
    elif isinstance(items := value.get(key), Sequence):
        for i, item in enumerate(items):
            name = item.get("name") if isinstance(item, Mapping) else None
            if not of_plugin or of_plugin == f"{{{name}}}":
                yield from _set_fields(item, rest, f"{place}[{i}]")


def decode_document(
    config: Mapping[str, object] | None, release: Release, faults: Faults | None = None
) -> ConfigurationDocument:
    """Return the configuration as it is written. Raises `ConfigError` for another kind or version, and without `faults`
    for any error."""
    if config is None:
        return ConfigurationDocument(api_version=release.config_versions[0], profiles=(ProfileDocument(),))
    if not isinstance(config, Mapping):
        raise refuse("", f"expected a {KIND}, found {shown(config)}")
    kind, version = config.get("kind"), config.get("apiVersion")
    if kind != KIND:
        hint = "schedulers before the framework read it: --kube-version 1.13" if kind == _POLICY else ""
        raise refuse("kind", f"expected {KIND}, found {shown(kind)}", hint)
    if version not in release.config_versions:
        allowed = " or ".join(release.config_versions)
        phrase = f"Kubernetes {release.version} expects {allowed}, found {shown(version)}"
        raise refuse("apiVersion", phrase, _reader_hint(version))
    hint = f"Kubernetes {release.version} does not have it in {version}"
    all_faults = faults or Faults()
    all_faults.extend(_missing_field_errors(config, release.missing_fields[str(version)], hint))
    document = decode(config, ConfigurationDocument, "", all_faults)
    if faults is None:
        all_faults.settle()
    return document if document.profiles else replace(document, profiles=(ProfileDocument(),))


def _reader_hint(version: object) -> str:
    last = last_to_read(version)
    if last:
        return f"--kube-version {last} is the last version that reads it"
    if version == V1:
        return f"--kube-version {VERSIONS[0]} reads it"
    is_older = str(version).startswith((f"{V1}alpha", f"{V1}beta"))
    return f"only versions before {VERSIONS[-1]} read it, which kschedx does not support" if is_older else ""


class _Draft(Struct, frozen=True, kw_only=True):
    """A profile with defaults, before expansion."""

    path: str
    document: ProfileDocument
    scheduler_name: str
    merged: Mapping[str, MergedSet]
    args: Mapping[str, PluginArgs]
    args_paths: Mapping[str, str]  # by plugin; arguments without a path are defaults
    enabled: frozenset[str]  # at some point or through MultiPoint


def _draft(
    index: int, profile: ProfileDocument, document: ConfigurationDocument, release: Release, faults: Faults
) -> _Draft:
    path = f"profiles[{index}]"
    default_name = DEFAULT_SCHEDULER if len(document.profiles) == 1 else ""
    merged = merge_plugins(profile.plugins, document.api_version, release, f"{path}.plugins")
    enabled = frozenset(entry.name for plugins in merged.values() for entry in plugins.enabled)
    args: dict[str, PluginArgs] = {}
    args_paths: dict[str, str] = {}
    for i, config in enumerate(profile.plugin_config):
        args_path = args_paths.setdefault(config.name, f"{path}.pluginConfig[{i}].args")
        args[config.name] = _decode_args(config.name, config.args, args_path, release, faults)
    for plugin in sorted(enabled & ARGS_TYPES.keys() - args.keys()):
        args[plugin] = _decode_args(plugin, None, "", release, faults)
    return _Draft(
        path=path,
        document=profile,
        scheduler_name=default_name if profile.scheduler_name is None else profile.scheduler_name,
        merged=merged,
        args=args,
        args_paths=args_paths,
        enabled=enabled,
    )


def _misspelt(place: str, key: object, known: Iterable[str]) -> ConfigError | None:
    return unknown_field_error(place, key, known) if nearest(str(key), known) else None


def _check_args_of_others(draft: _Draft, others: Set[str], faults: Faults) -> None:
    """Check fields of plugins of another project that kschedx has. It follows one version of each; other versions may
    have more fields, so an unknown field is an error only if it is near to a known one."""
    for plugin in others & _ARGS_OF_OTHERS.keys() - third_party().keys():
        args = draft.args.get(plugin)
        if isinstance(args, Mapping):
            own = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
            decode(own, _ARGS_OF_OTHERS[plugin], draft.args_paths[plugin], faults, _misspelt)


def _errors(document: ConfigurationDocument, drafts: list[_Draft], release: Release) -> Iterator[InputError]:
    removed = release.removed_plugins if document.api_version == V1 else ()
    yield from _component_errors(document)
    yield from _scheduler_name_errors([draft.scheduler_name for draft in drafts])
    for draft in drafts:
        percentage = draft.document.percentage_of_nodes_to_score
        yield from _percentage_errors(f"{draft.path}.percentageOfNodesToScore", percentage)
        yield from _removed_plugin_errors(draft.merged, removed)
        yield from _plugin_config_errors(draft.document.plugin_config, f"{draft.path}.pluginConfig", removed)
        for plugin, args in draft.args.items():
            # kube-scheduler leaves these checks to the plugin, so they apply only if it is enabled
            lazily = isinstance(args, NodeResourcesFitArgs) and plugin not in draft.enabled
            if not isinstance(args, Mapping) and not lazily:
                yield from _argument_errors(args, draft.args_paths.get(plugin, draft.path), release)
    yield from _queue_sort_errors([draft.merged["queueSort"] for draft in drafts], release)
    yield from _scheduling_errors(document)


def _finish(document: ConfigurationDocument, draft: _Draft, expansion: Expansion) -> Profile:
    percentage = draft.document.percentage_of_nodes_to_score
    unseen = tuple(name for name, where in expansion.unknown.items() if "multiPoint" in where)
    return Profile(
        scheduler_name=draft.scheduler_name,
        percentage_of_nodes_to_score=document.percentage_of_nodes_to_score if percentage is None else percentage,
        points={
            point: tuple(name for name in names if point not in expansion.unknown.get(name, ()))
            for point, names in expansion.points.items()
        },
        placement=expansion.placement,
        weights=expansion.weights,
        args=_with_resources_of_extenders(draft, document.extenders),
        unknown=expansion.unknown,
        enabled={**expansion.points, **({"multiPoint": unseen} if unseen else {})},
    )


def _with_resources_of_extenders(draft: _Draft, extenders: Iterable[Extender]) -> Mapping[str, PluginArgs]:
    """Return the arguments with the resources that extenders manage and kube-scheduler ignores, instead of the
    profile's ignored resources."""
    ignored = tuple(r.name for extender in extenders for r in extender.managed_resources if r.ignored_by_scheduler)
    if not ignored:
        return draft.args
    args = draft.args.get("NodeResourcesFit")
    if not isinstance(args, NodeResourcesFitArgs):
        raise refuse(
            f"{draft.path}.pluginConfig",
            "can't find NodeResourcesFitArgs in plugin config",
            "an extender's managedResources with ignoredByScheduler need the NodeResourcesFit plugin",
        )
    return {**draft.args, "NodeResourcesFit": replace(args, ignored_resources=ignored)}


def _different_queues(profiles: Sequence[Profile], expansions: Sequence[Expansion]) -> Iterator[InputError]:
    """Yield errors for profiles with another queue sort plugin than the first. This is checked after expansion, since
    MultiPoint may enable that plugin."""
    first, expected = profiles[0], expansions[0].queue_sort
    for i, (profile, sorts) in enumerate(zip(profiles, (it.queue_sort for it in expansions), strict=True)):
        of_profile = f"for profile {shown(profile.scheduler_name)}"
        if not (sorts and expected):
            continue
        if sorts != expected:
            message = f"different queue sort plugins {of_profile}: {shown(sorts)}, first: {shown(expected)}"
            yield refuse(f"profiles[{i}].plugins.queueSort", message)
        elif profile.args.get(sorts) != first.args.get(sorts):
            yield refuse(f"profiles[{i}].pluginConfig", f"different queue sort plugin args {of_profile}")
