"""A DeschedulerPolicy `descheduler/v1alpha2`: reading, validation, defaults, and the texts of refusals.

The descheduler ignores unknown fields outside of the plugins' args, and refuses unknown fields within them. Upstream:
pkg/descheduler/policyconfig.go, pkg/api/v1alpha2, pkg/framework/plugins/*/types.go and validation.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeAlias, TypeVar

from msgspec import Struct

from kschedx.apiserver.pod_classes import SYSTEM_CRITICAL
from kschedx.descheduler import arguments
from kschedx.descheduler.arguments import (
    BALANCE,
    DEFAULT_EVICTOR,
    Args,
    DefaultEvictorArgs,
    InterPodAntiAffinityArgs,
    NodeTaintsArgs,
    PodLifeTimeArgs,
    Protection,
    RemoveFailedPodsArgs,
    RemovePodsViolatingNodeAffinityArgs,
    TooManyRestartsArgs,
)
from kschedx.errors import ConfigError, InputError, Place, nearest
from kschedx.framework.config.decoding import decode
from kschedx.kube.escaping import MASK, Url, url_error
from kschedx.kube.field_errors import aggregate_texts, quote_go
from kschedx.kube.scalars import Int64
from kschedx.kube.selectors import EVERYTHING, LabelSelector, Selector, compile_selector, parse_label_query
from kschedx.kube.types import PriorityClass

API_VERSION = "descheduler/v1alpha2"
KIND = "DeschedulerPolicy"
METRIC_RESOURCE = "MetricResource"  # the only resource of thresholds if Prometheus is the source
KUBERNETES_METRICS, PROMETHEUS = "KubernetesMetrics", "Prometheus"
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)

_T = TypeVar("_T")
_EXTRA_PROTECTIONS = (Protection.PVC, Protection.WITHOUT_PDB, Protection.RESOURCE_CLAIMS)
_DESCHEDULE: Mapping[str, type[Args]] = {
    "PodLifeTime": PodLifeTimeArgs,
    "RemoveFailedPods": RemoveFailedPodsArgs,
    "RemovePodsHavingTooManyRestarts": TooManyRestartsArgs,
    "RemovePodsViolatingInterPodAntiAffinity": InterPodAntiAffinityArgs,
    "RemovePodsViolatingNodeAffinity": RemovePodsViolatingNodeAffinityArgs,
    "RemovePodsViolatingNodeTaints": NodeTaintsArgs,
}
_REGISTRY: Mapping[str, type[Args]] = {DEFAULT_EVICTOR: DefaultEvictorArgs, **_DESCHEDULE, **BALANCE}
"""Every plugin of descheduler 0.36."""


class PolicyError(ConfigError):
    """A policy that the descheduler refuses, in its words; nothing runs."""


# --- the policy as written


class _PluginSet(Struct, frozen=True, kw_only=True):
    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()


class _Plugins(Struct, frozen=True, kw_only=True):
    presort: _PluginSet = _PluginSet()
    sort: _PluginSet = _PluginSet()
    deschedule: _PluginSet = _PluginSet()
    balance: _PluginSet = _PluginSet()
    filter: _PluginSet = _PluginSet()
    preevictionfilter: _PluginSet = _PluginSet()


class _PluginConfig(Struct, frozen=True, kw_only=True):
    name: str = ""
    args: object = None


class _Profile(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    plugin_config: tuple[_PluginConfig, ...] = ()
    plugins: _Plugins = _Plugins()


class _Reference(Struct, frozen=True, kw_only=True):
    namespace: str = ""
    name: str = ""


class _AuthToken(Struct, frozen=True, kw_only=True, rename="camel"):
    secret_reference: _Reference | None = None


class _Prometheus(Struct, frozen=True, kw_only=True, rename="camel"):
    url: str = ""
    auth_token: _AuthToken | None = None


class _MetricsProvider(Struct, frozen=True, kw_only=True):
    source: str = ""
    prometheus: _Prometheus | None = None


class _MetricsCollector(Struct, frozen=True, kw_only=True):
    enabled: bool = False


class _Policy(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    kind: str = ""
    profiles: tuple[_Profile, ...] = ()
    node_selector: str | None = None
    max_no_of_pods_to_evict_per_node: arguments.Uint | None = None
    max_no_of_pods_to_evict_per_namespace: arguments.Uint | None = None
    max_no_of_pods_to_evict_total: arguments.Uint | None = None
    eviction_failure_event_notification: bool | None = None
    metrics_collector: _MetricsCollector | None = None
    metrics_providers: tuple[_MetricsProvider, ...] = ()
    grace_period_seconds: Int64 | None = None


# --- the policy in effect


class PolicyPlugin(Struct, frozen=True, kw_only=True):
    name: str
    args: arguments.Args


class PolicyProfile(Struct, frozen=True, kw_only=True):
    name: str
    deschedule: tuple[PolicyPlugin, ...]
    balance: tuple[PolicyPlugin, ...]
    evictor: arguments.DefaultEvictorArgs
    priority_threshold: int


class Policy(Struct, frozen=True, kw_only=True):
    profiles: tuple[PolicyProfile, ...] = ()
    node_selector: Selector = EVERYTHING
    most_per_node: int | None = None
    most_per_namespace: int | None = None
    most: int | None = None  # maxNoOfPodsToEvictTotal
    grace_period_seconds: int | None = None
    has_metrics: bool = False  # of `metrics.k8s.io`
    ignored: tuple[str, ...] = ()  # fields that the descheduler does not know, with a hint


def read_policy(written: Mapping[str, object], classes: Mapping[str, PriorityClass], *, source: str = "") -> Policy:
    """Return the policy as the descheduler runs it. Raises `PolicyError` with the descheduler's text.

    `classes` are the cluster's PriorityClasses; `source` is the origin of the policy.
    """
    ignored: list[str] = []
    read, configs = _decode(written, source, ignored)
    faults = [*_faults(read, configs), *(("metricsProviders", fault) for fault in _metrics_faults(read))]
    if faults:
        unknown = next((name for config in configs for name, args in config if args is None), "")
        hint = nearest(unknown, _REGISTRY) if unknown else ""
        raise PolicyError(aggregate_texts(fault for _, fault in faults), place=Place(field=faults[0][0]), hint=hint)
    thresholds = [_priority_threshold(config, classes, f"profiles[{at}]") for at, config in enumerate(configs)]
    selector = _node_selector(read.node_selector)
    return Policy(
        profiles=tuple(
            _profile(profile, configs[at], thresholds[at], f"profiles[{at}]")
            for at, profile in enumerate(read.profiles)
        ),
        node_selector=selector,
        most_per_node=read.max_no_of_pods_to_evict_per_node,
        most_per_namespace=read.max_no_of_pods_to_evict_per_namespace,
        most=read.max_no_of_pods_to_evict_total,
        grace_period_seconds=read.grace_period_seconds,
        has_metrics=(read.metrics_collector is not None and read.metrics_collector.enabled)
        or any(provider.source == KUBERNETES_METRICS for provider in read.metrics_providers),
        ignored=tuple(ignored),
    )


def _refusal(text: str, field: str) -> PolicyError:
    """Return an error with the descheduler's text and its field, or the first of several fields."""
    return PolicyError(text, place=Place(field=field))


# --- reading

_FROM_V1ALPHA1 = f"descheduler 0.31 and later read only {API_VERSION}: write each strategy as a plugin of a profile"
_TYPE_FIELDS: Mapping[str, str] = {"apiversion": "apiVersion", "kind": "kind"}
"""The descheduler reads these two in any case: `ApiVersion`."""
_Configs: TypeAlias = "list[tuple[str, arguments.Args | None]]"
"""The plugins of a profile's pluginConfig with their args; None for an unregistered plugin."""


def _decode(written: Mapping[str, object], source: str, ignored: list[str]) -> tuple[_Policy, list[_Configs]]:
    written = {_TYPE_FIELDS.get(str(key).lower(), key): value for key, value in written.items()}
    version, kind = written.get("apiVersion") or "", written.get("kind") or KIND
    if (version != API_VERSION and version) or kind != KIND:
        named = f'no kind "{kind}" is registered for version "{version or API_VERSION}"'
        reads = f"kschedx reads kind {KIND} of apiVersion {API_VERSION}"
        error = _unreadable(named, source, _FROM_V1ALPHA1 if version == "descheduler/v1alpha1" else reads)
        raise error.at(Place(field="kind" if kind != KIND else "apiVersion"))
    if not version:
        # without a version the file is read as the internal type, whose fields have other names
        ignored.append(f'apiVersion is missing, so the policy has no effect (write "{API_VERSION}")')
        return _Policy(), []

    def ignore(path: str, key: object, known: Iterable[str]) -> None:
        names = list(known)
        hint = nearest(str(key), names) or nearest(str(key).lower(), names)
        ignored.append(f"{path}: unknown field, ignored by the descheduler" + (f" ({hint})" if hint else ""))

    try:
        policy = decode(written, _Policy, "", unknown=ignore)
        configs = [
            [
                (config.name, _args(config, f"profiles[{at}].pluginConfig[{number}].args"))
                for number, config in enumerate(profile.plugin_config)
            ]
            for at, profile in enumerate(policy.profiles)
        ]
    except ConfigError as error:
        raise _unreadable(error.message, source, error.hint, error.place.field) from None
    return policy, configs


def _args(config: _PluginConfig, path: str) -> arguments.Args | None:
    kind = _REGISTRY.get(config.name)
    return None if kind is None else decode({} if config.args is None else config.args, kind, path)


def _unreadable(message: str, source: str, hint: str, path: str = "") -> PolicyError:
    failed = f"failed decoding descheduler's policy config {quote_go(source or 'policy.yaml')}"
    text = f"{failed}: {path}: {message}" if path else f"{failed}: {message}"
    return PolicyError(text, place=Place(field=path), hint=hint)


def _args_of(name: str, configs: _Configs, kind: type[_T]) -> _T | None:
    """Return the args of the plugin's first entry."""
    for plugin, args in configs:
        if plugin == name:
            assert isinstance(args, kind)
            return args
    return None


def _config_path(name: str, configs: _Configs, profile: str) -> str:
    """Return the field of the plugin's first entry, or of all entries if it has none."""
    numbers = (number for number, (plugin, _) in enumerate(configs) if plugin == name)
    return f"{profile}.pluginConfig" + "".join(f"[{number}]" for number in islice(numbers, 1))


# --- validation


def _faults(policy: _Policy, configs: Sequence[_Configs]) -> Iterator[tuple[str, str]]:
    for at, (profile, entries) in enumerate(zip(policy.profiles, configs, strict=True)):
        for number, (name, args) in enumerate(entries):
            path = f"profiles[{at}].pluginConfig[{number}]"
            if args is None:
                yield f"{path}.name", f"in profile {profile.name}: plugin {name} in pluginConfig not registered"
            elif faults := list(_args_faults(args)):
                yield f"{path}.args", f"in profile {profile.name}: {aggregate_texts(faults)}"


def _metrics_faults(policy: _Policy) -> Iterator[str]:
    providers: dict[str, _MetricsProvider] = {}
    for provider in policy.metrics_providers:
        if provider.source in providers:
            source = quote_go(provider.source)
            yield f"metric provider {source} is already configured, each source can be configured only once"
        else:
            providers[provider.source] = provider
    if KUBERNETES_METRICS in providers and policy.metrics_collector is not None and policy.metrics_collector.enabled:
        yield "it is not allowed to combine metrics provider when metrics collector is enabled"
    if PROMETHEUS not in providers:
        return
    prometheus = providers[PROMETHEUS].prometheus
    if prometheus is None:
        yield "prometheus configuration is required when prometheus source is enabled"
        return
    if not prometheus.url:
        yield "prometheus URL is required when prometheus is enabled"
    elif fault := url_error(prometheus.url.partition("#")[0]):
        url = Url(prometheus.url.partition("#")[0])
        field = fault.partition('"')[2].rpartition('"')[0].strip(":")
        if field and field in url.credentials:
            fault = fault.replace(f'{field}"', f'{MASK}"')
        yield f"error parsing prometheus URL: parse {quote_go(str(url))}: {fault}"
    if prometheus.auth_token is not None:
        secret = prometheus.auth_token.secret_reference
        if secret is None:
            yield "prometheus authToken secret is expected to be set when authToken field is"
        elif not secret.name or not secret.namespace:
            yield "prometheus authToken secret reference does not set both namespace and name"


def _args_faults(args: arguments.Args) -> Iterator[str]:
    match args:
        case arguments.DefaultEvictorArgs():
            yield from _evictor_faults(args)
        case arguments.LowNodeUtilizationArgs():
            yield from islice(_low_utilization_faults(args), 1)
        case arguments.HighNodeUtilizationArgs():
            yield from islice(_high_utilization_faults(args), 1)
        case arguments.RemovePodsViolatingNodeAffinityArgs():
            if not args.node_affinity_type:
                yield "nodeAffinityType needs to be set"
            yield from _pod_faults(args)
        case arguments.PodLifeTimeArgs():
            yield from _life_time_faults(args)
        case arguments.TooManyRestartsArgs():
            yield from _pod_faults(args)
            if args.pod_restart_threshold < 1:
                yield "invalid PodsHavingTooManyRestarts threshold"
            if not _RESTART_STATES.issuperset(args.states):
                yield f"states must be one of [{' '.join(sorted(_RESTART_STATES))}]"
        case arguments.NodeTaintsArgs():
            yield from _pod_faults(args)
            if args.excluded_taints and args.included_taints:
                yield "either includedTaints or excludedTaints can be set, but not both"
        case arguments.TopologySpreadArgs():
            yield from _pod_faults(args)
            for constraint in args.constraints:
                if constraint not in ("DoNotSchedule", "ScheduleAnyway"):
                    yield f"constraint {constraint} is not one of map[DoNotSchedule:{{}} ScheduleAnyway:{{}}]"
        case arguments.RemoveDuplicatesArgs():
            yield from _namespace_faults(args.namespaces)
        case arguments.RemoveFailedPodsArgs() | arguments.InterPodAntiAffinityArgs():
            yield from _pod_faults(args)


def _namespace_faults(namespaces: arguments.NameFilter | None) -> Iterator[str]:
    if namespaces is not None and namespaces.include and namespaces.exclude:
        yield "only one of Include/Exclude namespaces can be set"


def _selector_faults(selector: LabelSelector | None) -> Iterator[str]:
    if selector is not None:
        try:
            compile_selector(selector)
        except InputError as error:
            yield f"failed to get label selectors from strategy's params: {error}"


def _pod_faults(args: arguments.PodArgs) -> Iterator[str]:
    yield from _namespace_faults(args.namespaces)
    yield from _selector_faults(args.label_selector)


_RESTART_STATES = frozenset({"Running", "CrashLoopBackOff"})
_LIFE_TIME_STATES = frozenset({
    *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError"),
    *("ErrImagePull", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError"),
})  # fmt: skip
"""Phases, reasons of pods, and reasons of containers that wait or have terminated."""


def _life_time_faults(args: arguments.PodLifeTimeArgs) -> Iterator[str]:
    yield from _namespace_faults(args.namespaces)
    if args.owner_kinds is not None and args.owner_kinds.include and args.owner_kinds.exclude:
        yield "only one of Include/Exclude ownerKinds can be set"
    yield from _selector_faults(args.label_selector)
    if not _LIFE_TIME_STATES.issuperset(args.states):
        yield f"states must be one of [{' '.join(sorted(_LIFE_TIME_STATES))}]"
    for at, condition in enumerate(args.conditions):
        if condition == arguments.PodConditionFilter():
            fields = "type, status, reason, or minTimeSinceLastTransitionSeconds"
            yield f"conditions[{at}]: at least one of {fields} must be set"
    if args.max_pod_life_time_seconds is None and not (args.states or args.conditions or args.exit_codes):
        fields = "maxPodLifeTimeSeconds, states, conditions, or exitCodes"
        yield f"at least one filtering criterion must be specified ({fields})"


def _evictor_faults(args: arguments.DefaultEvictorArgs) -> Iterator[str]:
    threshold, protections = args.priority_threshold, args.pod_protections
    if threshold is not None and threshold.value is not None and threshold.name:
        yield "priority threshold misconfigured, only one of priorityThreshold fields can be set"
    if args.no_eviction_policy not in ("", "Preferred", "Mandatory"):
        yield 'noEvictionPolicy accepts only ["Preferred" "Mandatory"] values'
    if not (protections.extra_enabled or protections.default_disabled):
        return
    if args.uses_deprecated:
        yield "cannot use Deprecated fields alongside PodProtections.ExtraEnabled or PodProtections.DefaultDisabled"
    for field, names, known in (
        ("ExtraEnabled", protections.extra_enabled, _EXTRA_PROTECTIONS),
        ("DefaultDisabled", protections.default_disabled, arguments.DEFAULT_PROTECTIONS),
    ):
        allowed = f"Valid options are: [{' '.join(known)}]"
        for name in names:
            if name not in known:
                yield f"invalid pod protection policy in {field}: {quote_go(name)}. {allowed}"
    for field, names in (
        ("DefaultDisabled", protections.default_disabled),
        ("ExtraEnabled", protections.extra_enabled),
    ):
        if len(set(names)) < len(names):
            yield f"PodProtections.{field} contains duplicate entries"
    if arguments.Protection.PVC in protections.extra_enabled:
        for at, storage_class in enumerate(protections.protected_storage_classes):
            if not storage_class.name:
                yield f"PodProtections.Config.PodsWithPVC.ProtectedStorageClasses[{at}] name cannot be empty"


def _high_utilization_faults(args: arguments.HighNodeUtilizationArgs) -> Iterator[str]:
    yield from _inclusion_faults(args.evictable_namespaces)
    yield from _threshold_faults(args.thresholds)
    yield from (f"invalid eviction mode {mode}" for mode in args.eviction_modes if mode != ONLY_THRESHOLDING)


def _low_utilization_faults(args: arguments.LowNodeUtilizationArgs) -> Iterator[str]:
    low, high = args.thresholds, args.target_thresholds
    yield from _inclusion_faults(args.evictable_namespaces)
    yield from (f"thresholds config is not valid: {fault}" for fault in _threshold_faults(low))
    yield from (f"targetThresholds config is not valid: {fault}" for fault in _threshold_faults(high))
    if len(low) != len(high):
        yield "thresholds and targetThresholds configured different resources"
    for name, percent in low.items():
        if name not in high:
            yield "thresholds and targetThresholds configured different resources"
        elif percent > high[name] and not args.use_deviation_thresholds:
            yield f"thresholds' {name} percentage is greater than targetThresholds'"
    metrics = args.metrics_utilization
    if metrics is None:
        return
    if metrics.source == KUBERNETES_METRICS and metrics.metrics_server:
        yield f'it is not allowed to set both "{KUBERNETES_METRICS}" source and metricsServer'
    if metrics.source == KUBERNETES_METRICS and metrics.prometheus is not None:
        yield f'prometheus configuration is not allowed to set when source is set to "{KUBERNETES_METRICS}"'
    if metrics.source == PROMETHEUS and (metrics.prometheus is None or not metrics.prometheus.query):
        yield f'prometheus query is required when metrics source is set to "{PROMETHEUS}"'


ONLY_THRESHOLDING = "OnlyThresholdingResources"


def _inclusion_faults(namespaces: arguments.NameFilter | None) -> Iterator[str]:
    if namespaces is not None and namespaces.include:
        yield "only Exclude namespaces can be set, inclusion is not supported"


def _threshold_faults(thresholds: arguments.Thresholds) -> Iterator[str]:
    if not thresholds:
        yield "no resource threshold is configured"
    for name, percent in thresholds.items():
        if not 0 <= percent <= 100:
            yield f"{name} threshold not in [0, 100] range"


# --- defaults, and errors in building the profiles


def _priority_threshold(configs: _Configs, classes: Mapping[str, PriorityClass], profile: str) -> int:
    args = _args_of(arguments.DEFAULT_EVICTOR, configs, arguments.DefaultEvictorArgs)
    threshold = args.priority_threshold if args is not None else None
    path = f"{_config_path(arguments.DEFAULT_EVICTOR, configs, profile)}.args.priorityThreshold"
    if threshold is None:
        return SYSTEM_CRITICAL
    if threshold.value is not None:
        priority = threshold.value
    elif not threshold.name:
        priority = SYSTEM_CRITICAL
    elif threshold.name in classes:
        priority = classes[threshold.name].value
    else:
        missing = f"priorityclasses.scheduling.k8s.io {quote_go(threshold.name)} not found"
        raise _refusal(f"unable to get priority value from the priority class: {missing}", path)
    if priority > SYSTEM_CRITICAL:
        raise _refusal(f"priority threshold can't be greater than {SYSTEM_CRITICAL}", path)
    return priority


_NOT_BUILT = "failed to create new descheduler: "


def _node_selector(text: str | None) -> Selector:
    try:
        return parse_label_query(text or "")
    except InputError as error:
        raise _refusal(_NOT_BUILT + error.message, "nodeSelector") from None


def _profile(profile: _Profile, configs: _Configs, threshold: int, path: str) -> PolicyProfile:
    """Build a profile. Raises `PolicyError` for the first error that prevents this."""
    plugins = profile.plugins
    deschedule, balance = plugins.deschedule.enabled, plugins.balance.enabled
    filters, pre_evictions = _with_default(plugins.filter.enabled), _with_default(plugins.preevictionfilter.enabled)
    failed = f"{_NOT_BUILT}unable to create {quote_go(profile.name)} profile: "
    for point, names, known in (
        ("deschedule", deschedule, _DESCHEDULE),
        ("balance", balance, arguments.BALANCE),
        ("filter", filters, (arguments.DEFAULT_EVICTOR,)),
        ("preEvictionFilter", pre_evictions, (arguments.DEFAULT_EVICTOR,)),
    ):
        if others := sorted({name for name in names if name not in known}):
            shown = " ".join(f"{name}:{{}}" for name in others)
            configures = f"profile {quote_go(profile.name)} configures {point} extension point"
            raise _refusal(
                f"{failed}{configures} of non-existing plugins: map[{shown}]", f"{path}.plugins.{point.lower()}.enabled"
            )
    given: dict[str, arguments.Args] = {arguments.DEFAULT_EVICTOR: arguments.DefaultEvictorArgs()}
    given |= {name: args for name, args in reversed(configs) if args is not None}  # the first entry counts
    for name in dict.fromkeys((*deschedule, *balance, *filters, *pre_evictions)):
        if name not in given:
            missing = f"unable to build {name} plugin: unable to find {quote_go(name)} plugin config"
            point = "deschedule" if name in deschedule else "balance"
            raise _refusal(f"{failed}{missing}", f"{path}.plugins.{point}.enabled")
        if fault := _build_fault(given[name]):
            cause = f"unable to initialize {quote_go(name)} plugin: {fault}"
            place = f"{_config_path(name, configs, path)}.args"
            raise _refusal(f"{failed}unable to build {name} plugin: {cause}", place)
    evictor = given[arguments.DEFAULT_EVICTOR]
    assert isinstance(evictor, arguments.DefaultEvictorArgs)
    return PolicyProfile(
        name=profile.name,
        deschedule=tuple(PolicyPlugin(name=name, args=given[name]) for name in deschedule),
        balance=tuple(PolicyPlugin(name=name, args=given[name]) for name in balance),
        evictor=evictor,
        priority_threshold=threshold,
    )


def _with_default(enabled: Sequence[str]) -> tuple[str, ...]:
    return (*enabled,) if arguments.DEFAULT_EVICTOR in enabled else (arguments.DEFAULT_EVICTOR, *enabled)


def _build_fault(args: arguments.Args) -> str:
    """Return the error of building a plugin with valid args; empty if there is none."""
    if isinstance(args, arguments.DefaultEvictorArgs):
        converting = "unable to convert namespaceLabelSelector to label selector: "
        for selector, failed in ((args.label_selector, ""), (args.namespace_label_selector, converting)):
            try:
                compile_selector(selector)
            except InputError as error:
                return failed + str(error)
    if isinstance(args, arguments.LowNodeUtilizationArgs) and args.metrics_source == PROMETHEUS:
        for name, given in (("thresholds", args.thresholds), ("targetThresholds", args.target_thresholds)):
            if list(given) != [METRIC_RESOURCE]:
                expected = f'are expected to specify a single instance of "{METRIC_RESOURCE}" resource'
                return f"{name} {expected}, got [{' '.join(given)}] instead"
    return ""
