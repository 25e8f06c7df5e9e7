"""What kube-scheduler refuses in a configuration apart from plugin arguments, in its order.

Upstream: pkg/scheduler/apis/config/validation/validation.go and component-base/config/validation/validation.go.
Fields are checked with their defaults, so an absent one is never wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kschedx.api.names import label_key_errors
from kschedx.errors import ConfigError
from kschedx.framework.config.document import (
    ClientConnection,
    ConfigurationDocument,
    Extender,
    LeaderElection,
    PluginConfig,
)
from kschedx.framework.config.expansion import MergedSet
from kschedx.framework.config.refusals import duplicate, invalid, refuse, required, shown
from kschedx.framework.duration import Duration
from kschedx.releases import POINTS, V1, Release

_LOCK = "leases"


def component_errors(document: ConfigurationDocument) -> Iterator[ConfigError]:
    """The fields before the profiles."""
    yield from _client_connection(document.client_connection)
    yield from _leader_election(document.leader_election)
    if document.parallelism <= 0:
        yield invalid("parallelism", document.parallelism, "should be an integer value greater than zero")


def scheduling_errors(document: ConfigurationDocument) -> Iterator[ConfigError]:
    """The fields after the profiles."""
    yield from percentage_errors("percentageOfNodesToScore", document.percentage_of_nodes_to_score)
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


def percentage_errors(path: str, percentage: int | None) -> Iterator[ConfigError]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield invalid(path, percentage, "not in valid range [0-100]")


def removed_plugin_errors(merged: Mapping[str, MergedSet], removed: Sequence[str]) -> Iterator[ConfigError]:
    for point in POINTS:
        for entry in merged[point].enabled:
            if entry.name in removed:
                yield _removed(entry.path, entry.name)


def plugin_config_errors(configs: Sequence[PluginConfig], path: str, removed: Sequence[str]) -> Iterator[ConfigError]:
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


def scheduler_name_errors(names: Sequence[str]) -> Iterator[ConfigError]:
    first: dict[str, int] = {}
    for i, name in enumerate(names):
        path = f"profiles[{i}].schedulerName"
        if not name:
            yield required(path)
        if name in first:
            other = f"profiles[{first[name]}].schedulerName"
            yield refuse(path, f"Duplicate value: {shown(name)}", f"it is also that of {other}")
        first.setdefault(name, i)


def queue_sort_errors(queue_sorts: Sequence[MergedSet], release: Release) -> Iterator[ConfigError]:
    """All pods wait in one queue, so every profile has to sort it alike."""
    if len(queue_sorts[0].enabled) > 1:
        path = "profiles[0].plugins.queueSort.enabled"
        yield invalid(path, len(queue_sorts[0].enabled), "only one queue sort plugin can be enabled")
    for i, queue_sort in enumerate(queue_sorts):
        if queue_sort.asks_for() != queue_sorts[0].asks_for():
            found = [entry.name for entry in queue_sort.enabled]
            yield invalid(f"profiles[{i}].plugins.queueSort", found, release.arguments.different_queue_sort)


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
        found = f"found {binders} extenders implementing bind"
        yield invalid("extenders", found, "only one extender can implement bind")


def _extended_resource_name(path: str, name: str) -> Iterator[ConfigError]:
    wrong = list(label_key_errors(name))
    yield from (invalid(path, name, message) for message in wrong)
    if not wrong and not _is_extended_resource(name):
        yield invalid(path, name, "is an invalid extended resource name")


def _is_extended_resource(name: str) -> bool:
    """Of a domain other than kubernetes.io, and short enough to be prefixed for quotas."""
    native = "/" not in name or "kubernetes.io/" in name
    return not native and not name.startswith("requests.") and not any(label_key_errors(f"requests.{name}"))
