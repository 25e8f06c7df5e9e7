"""From a parsed KubeSchedulerConfiguration to profiles, with the errors that kube-scheduler reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import ConfigError, nearest
from kschedx.framework.args import ARGS_OF_OTHERS, ARGS_TYPES, NodeResourcesFitArgs, PluginArgs
from kschedx.framework.config.arguments import argument_errors, decode_args
from kschedx.framework.config.decoding import (
    Faults,
    decode,
    duplicate,
    invalid,
    missing_field_errors,
    refuse,
    refused,
    required,
    shown,
)
from kschedx.framework.config.document import (
    DEFAULT_SCHEDULER_NAME,
    KIND,
    POLICY,
    ClientConnection,
    ConfigurationDocument,
    Extender,
    LeaderElection,
    PluginConfig,
    Profile,
    ProfileDocument,
    SchedulerConfig,
)
from kschedx.framework.config.expansion import Expansion, MergedSet, PluginPoints, expand, merge_plugins
from kschedx.framework.registry import points_of_others, third_party
from kschedx.kube.duration import Duration
from kschedx.kube.names import label_key_errors
from kschedx.releases import POINTS, V1, VERSIONS, Release
from kschedx.releases.configuration import last_to_read

# Errors that kube-scheduler reports in a configuration, except in plugin arguments, in its order.
#
# Upstream: pkg/scheduler/apis/config/validation/validation.go and component-base/config/validation/validation.go.
# Fields are checked with their defaults, so an absent field is never wrong.

_LOCK = "leases"


def _component_errors(document: ConfigurationDocument) -> Iterator[ConfigError]:
    """Yield errors in the fields before the profiles."""
    yield from _client_connection(document.client_connection)
    yield from _leader_election(document.leader_election)
    if document.parallelism <= 0:
        yield invalid("parallelism", document.parallelism, "should be an integer value greater than zero")


def _scheduling_errors(document: ConfigurationDocument) -> Iterator[ConfigError]:
    """Yield errors in the fields after the profiles."""
    yield from _percentage_errors("percentageOfNodesToScore", document.percentage_of_nodes_to_score)
    if document.pod_initial_backoff_seconds <= 0:
        yield invalid("podInitialBackoffSeconds", document.pod_initial_backoff_seconds, "must be greater than 0")
    if document.pod_max_backoff_seconds < document.pod_initial_backoff_seconds:
        detail = "must be greater than or equal to PodInitialBackoffSeconds"
        yield invalid("podMaxBackoffSeconds", document.pod_max_backoff_seconds, detail)
    yield from _extenders(document.extenders)


def _client_connection(connection: ClientConnection) -> Iterator[ConfigError]:
    if connection.burst < 0:
        yield invalid("clientConnection.burst", connection.burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[ConfigError]:
    if not election.leader_elect:
        return
    zero = Duration(0)
    lease = election.lease_duration if election.lease_duration != zero else Duration.seconds(15)
    renew = election.renew_deadline if election.renew_deadline != zero else Duration.seconds(10)
    retry = election.retry_period if election.retry_period != zero else Duration.seconds(2)
    for name, duration in (("leaseDuration", lease), ("renewDeadline", renew), ("retryPeriod", retry)):
        if duration <= zero:
            yield invalid(f"leaderElection.{name}", str(duration), "must be greater than zero")
    if lease <= renew:
        yield invalid("leaderElection.leaseDuration", str(renew), "must be greater than `RenewDeadline`")
    if election.resource_lock not in ("", _LOCK):
        yield invalid("leaderElection.resourceLock", election.resource_lock, f'resourceLock value must be "{_LOCK}"')


def _percentage_errors(path: str, percentage: int | None) -> Iterator[ConfigError]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def _removed_plugin_errors(merged: Mapping[str, MergedSet], removed: Sequence[str]) -> Iterator[ConfigError]:
    for point in POINTS:
        for entry in merged[point].enabled:
            if entry.name in removed:
                yield _removed(entry.path, entry.name)


def _plugin_config_errors(configs: Sequence[PluginConfig], path: str, removed: Sequence[str]) -> Iterator[ConfigError]:
    seen: set[str] = set()
    for i, config in enumerate(configs):
        if config.name in seen:
            yield duplicate(f"{path}[{i}]", config.name)
        seen.add(config.name)
        if config.name in removed:
            yield _removed(f"{path}[{i}]", config.name)


def _removed(path: str, plugin: str) -> ConfigError:
    version = shown(V1)
    return invalid(path, plugin, f"was invalid in version {version} (KubeSchedulerConfiguration is version {version})")


def _scheduler_name_errors(names: Sequence[str]) -> Iterator[ConfigError]:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        path = f"profiles[{i}].schedulerName"
        if not name:
            yield required(path)
        if name in first:
            other = f"profiles[{first[name]}].schedulerName"
            yield refuse(path, f"Duplicate value: {shown(name)}", f"it is also that of {other}")
        first.setdefault(name, i)


def _queue_sort_errors(queue_sorts: Sequence[MergedSet], release: Release) -> Iterator[ConfigError]:
    """Yield errors for profiles that differ: all pending pods are in one queue, so every profile must sort it the same
    way."""
    if len(queue_sorts[0].enabled) > 1:
        path = "profiles[0].plugins.queueSort.enabled"
        yield invalid(path, len(queue_sorts[0].enabled), "only one queue sort plugin can be enabled")
    for i, queue_sort in enumerate(queue_sorts):
        if queue_sort.asks_for() != queue_sorts[0].asks_for():
            names = [entry.name for entry in queue_sort.enabled]
            yield invalid(f"profiles[{i}].plugins.queueSort", names, release.arguments.different_queue_sort)


def _extenders(extenders: Iterable[Extender]) -> Iterator[ConfigError]:
    managed: set[str] = set()
    binders = 0
    for i, extender in enumerate(extenders):
        if extender.prioritize_verb and extender.weight <= 0:
            yield invalid(f"extenders[{i}].weight", extender.weight, "must have a positive weight applied to it")
        binders += bool(extender.bind_verb)
        for j, resource in enumerate(extender.managed_resources):
            path = f"extenders[{i}].managedResources[{j}].name"
            yield from _extended_resource_name(path, resource.name)
            if resource.name in managed:
                yield invalid(path, resource.name, "duplicate extender managed resource name")
            managed.add(resource.name)
    if binders > 1:
        message = f"found {binders} extenders implementing bind"
        yield invalid("extenders", message, "only one extender can implement bind")


def _extended_resource_name(path: str, name: str) -> Iterator[ConfigError]:
    wrong = list(label_key_errors(name))
    yield from (invalid(path, name, message) for message in wrong)
    if not wrong and not _is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _is_extended_resource(name: str) -> bool:
    """Return whether the resource has a domain other than kubernetes.io, and a name short enough for the prefix of
    quotas."""
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith("requests.") and not any(label_key_errors(f"requests.{name}"))


# The steps from a parsed KubeSchedulerConfiguration to profiles.
#
# Upstream: cmd/kube-scheduler/app/options/configfile.go, pkg/scheduler/apis/config/v1/defaults.go, and New in
# pkg/scheduler/scheduler.go. As in kube-scheduler, all errors are reported at once.


def load_profiles(
    config: Mapping[str, object] | None,
    release: Release,
    others: PluginPoints | None = None,
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
    return SchedulerConfig(
        profiles=profiles,
        percentage_of_nodes_to_score=document.percentage_of_nodes_to_score,
        parallelism=document.parallelism,
        extenders=document.extenders,
    )


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
        for point, plugins in profile.plugins.by_point().items():
            for entry in plugins.enabled:
                names.setdefault(entry.name, set()).add(point)
            for entry in plugins.disabled:
                names.setdefault(entry.name, set())
        for config in profile.plugin_config:
            names.setdefault(config.name, set())
    return names


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
        hint = "schedulers before the framework read it: --kube-version 1.13" if kind == POLICY else ""
        raise refuse("kind", f"expected {KIND}, found {shown(kind)}", hint)
    if version not in release.config_versions:
        allowed = " or ".join(release.config_versions)
        phrase = f"Kubernetes {release.version} expects {allowed}, found {shown(version)}"
        raise refuse("apiVersion", phrase, _who_reads(version))
    hint = f"Kubernetes {release.version} does not have it in {version}"
    all_faults = faults or Faults()
    all_faults.extend(missing_field_errors(config, release.missing_fields[str(version)], hint))
    document = decode(config, ConfigurationDocument, "", all_faults)
    if faults is None:
        all_faults.settle()
    return document if document.profiles else replace(document, profiles=(ProfileDocument(),))


def _who_reads(version: object) -> str:
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
    args_paths: Mapping[str, str]
    """By plugin; arguments without a path are defaults."""
    enabled: frozenset[str]
    """At some point or through MultiPoint."""


def _draft(
    index: int, profile: ProfileDocument, document: ConfigurationDocument, release: Release, faults: Faults
) -> _Draft:
    path = f"profiles[{index}]"
    default_name = DEFAULT_SCHEDULER_NAME if len(document.profiles) == 1 else ""
    merged = merge_plugins(profile.plugins, document.api_version, release, f"{path}.plugins")
    enabled = frozenset(entry.name for plugins in merged.values() for entry in plugins.enabled)
    args: dict[str, PluginArgs] = {}
    args_paths: dict[str, str] = {}
    for i, config in enumerate(profile.plugin_config):
        args_path = args_paths.setdefault(config.name, f"{path}.pluginConfig[{i}].args")
        args[config.name] = decode_args(config.name, config.args, args_path, release, faults)
    for plugin in sorted(enabled & ARGS_TYPES.keys() - args.keys()):
        args[plugin] = decode_args(plugin, None, "", release, faults)
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
    return refused(place, key, known) if nearest(str(key), known) else None


def _check_args_of_others(draft: _Draft, others: Set[str], faults: Faults) -> None:
    """Check fields of plugins of another project that kschedx has. It follows one version of each; other versions may
    have more fields, so an unknown field is an error only if it is near to a known one."""
    for plugin in others & ARGS_OF_OTHERS.keys() - third_party().keys():
        args = draft.args.get(plugin)
        if isinstance(args, Mapping):
            own = {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}
            decode(own, ARGS_OF_OTHERS[plugin], draft.args_paths[plugin], faults, _misspelt)


def _errors(document: ConfigurationDocument, drafts: list[_Draft], release: Release) -> Iterator[ConfigError]:
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
                yield from argument_errors(args, draft.args_paths.get(plugin, draft.path), release)
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


def _different_queues(profiles: Sequence[Profile], expansions: Sequence[Expansion]) -> Iterator[ConfigError]:
    """Yield errors for profiles with another queue sort plugin than the first. This is checked after expansion, since
    MultiPoint may enable that plugin."""
    first, expected = profiles[0], expansions[0].queue_sort
    for i, (profile, sorts) in enumerate(
        zip(profiles, (expansion.queue_sort for expansion in expansions), strict=True)
    ):
        of_profile = f"for profile {shown(profile.scheduler_name)}"
        if not (sorts and expected):
            continue
        if sorts != expected:
            message = f"different queue sort plugins {of_profile}: {shown(sorts)}, first: {shown(expected)}"
            yield refuse(f"profiles[{i}].plugins.queueSort", message)
        elif profile.args.get(sorts) != first.args.get(sorts):
            yield refuse(f"profiles[{i}].pluginConfig", f"different queue sort plugin args {of_profile}")
