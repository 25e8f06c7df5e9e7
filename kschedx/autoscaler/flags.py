"""The autoscaler's flags from its Deployment and from the user."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import ConfigError, InputError, nearest
from kschedx.kube.autoscalers import FLAGS, PROGRAM, Written, flags_of_containers
from kschedx.kube.scalars import Duration, parse_bool
from kschedx.releases.autoscaler import AutoscalerBehaviour


def parse_flag_options(options: Sequence[str]) -> Written:
    """Parse `NAME=VALUE` of `--autoscaler-flag`. Raises `InputError`."""
    values_by_option: Written = {}
    for option in options:
        name, equals, value = option.lstrip("-").partition("=")
        if not name:
            raise InputError(f"--autoscaler-flag: {json.dumps(option)} is not NAME=VALUE")
        values_by_option.setdefault(name, []).append(value if equals else "true")
    return values_by_option


def deployment_flags(workloads: Mapping[tuple[str, str, str], bytes]) -> Written | None:
    """Return the flags of the only Deployment that runs cluster-autoscaler; None if there is none or several."""
    all_flags = [
        flags
        for (kind, _, _), raw in workloads.items()
        if kind == "Deployment" and PROGRAM.encode() in raw
        for _, flags in flags_of_containers(json.loads(raw))
    ]
    return all_flags[0] if len(all_flags) == 1 else None


# cluster-autoscaler's flags about scale-up. Upstream: config/flags/flags.go.

FlagValue = str | int | float | bool | Sequence[str | int]

_T = TypeVar("_T")

_GIBIBYTE = 1024**3


class _ResourceLimit(Struct, frozen=True, kw_only=True):
    """A limit on the whole cluster: cores, bytes of memory, or GPUs of a type."""

    resource: str
    minimum: int
    maximum: int

    @property
    def written_maximum(self) -> str:
        """The maximum as in the flag."""
        if self.resource in ("cpu", "memory"):
            return str(self.maximum // (_GIBIBYTE if self.resource == "memory" else 1))
        return f"{self.resource}:{self.minimum}:{self.maximum}"


class Flags(Struct, frozen=True, kw_only=True):
    """The flags that are read, with their defaults."""

    cloud_provider: str = ""
    expanders: tuple[str, ...] = ("least-waste",)
    balance_similar_node_groups: bool = False
    balancing_labels: tuple[str, ...] = ()
    balancing_ignore_labels: tuple[str, ...] = ()
    memory_difference_ratio: float = 0.015
    max_free_difference_ratio: float = 0.05
    max_allocatable_difference_ratio: float = 0.05
    max_nodes_total: int = 0
    max_nodes_per_scale_up: int = 1000
    limits: tuple[_ResourceLimit, ...] = ()
    ok_total_unready_count: int = 3
    max_total_unready_percentage: float = 45.0
    max_node_startup_time: Duration = Duration.seconds(15 * 60)
    expendable_pods_priority_cutoff: int = -10
    new_pod_scale_up_delay: Duration = Duration(0)
    startup_taints: tuple[str, ...] = ()
    startup_taint_prefixes: tuple[str, ...] = ()
    status_taints: tuple[str, ...] = ()
    force_daemon_sets: bool = False
    scale_from_unschedulable: bool = False
    scale_up_from_zero: bool = True
    fast_path: bool = False
    check_skipped_groups: bool = False
    bypassed_schedulers: tuple[str, ...] = ()
    allowed_schedulers: tuple[str, ...] = ()
    provisioning_requests: bool = False  # whether pods that consume a ProvisioningRequest are left to it

    @classmethod
    def read(cls, written: Mapping[str, FlagValue], behaviour: AutoscalerBehaviour) -> Flags:
        """Parse flags by their names without dashes; a repeated flag has a list. Flags without effect on scale-up are
        ignored. Raises `ConfigError` for an invalid value."""
        read: dict[str, object] = {}
        for name, (field, parse) in _FLAGS.items():
            if name in written:
                read[field] = _parsed_flag(name, written[name], parse)
        is_known = {
            "fast_path": behaviour.fast_path,
            "check_skipped_groups": behaviour.skipped_groups_can_be_checked,
            "startup_taint_prefixes": behaviour.startup_taint_prefixes,
            "scale_from_unschedulable": behaviour.cordoned_templates_can_be_opened,
            "status_taints": behaviour.startup_taints_are_named,
            "bypassed_schedulers": behaviour.schedulers_can_be_bypassed,
            "allowed_schedulers": behaviour.schedulers_can_be_allowed,
        }
        read = {field: value for field, value in read.items() if is_known.get(field, True)}
        named = ("startup-taint", "ignore-taint") if behaviour.startup_taints_are_named else ("ignore-taint",)
        read["startup_taints"] = tuple(key for name in named for key in _texts(written.get(name, ())))
        return replace(cls(expanders=(behaviour.default_expander,)), **read, limits=_limits_of(written))


def _texts(value: FlagValue) -> tuple[str, ...]:
    if isinstance(value, bool):
        return (str(value).lower(),)
    if isinstance(value, (str, int, float)):
        return (str(value),)
    return tuple(text for item in value for text in _texts(item))


def _parsed_flag(name: str, value: FlagValue, parse: Callable[[tuple[str, ...]], _T]) -> _T:
    texts = _texts(value)
    try:
        return parse(texts)
    except (ValueError, IndexError):
        raise ConfigError(f"--{name} of the cluster-autoscaler cannot be {json.dumps(','.join(texts))}") from None


def _last(parse: Callable[[str], _T]) -> Callable[[tuple[str, ...]], _T]:
    return lambda texts: parse(texts[-1])


def _every(texts: tuple[str, ...]) -> tuple[str, ...]:
    return texts


def _commas(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for text in texts for part in text.split(",") if part)


_FLAGS: Mapping[str, tuple[str, Callable[[tuple[str, ...]], object]]] = {
    "cloud-provider": ("cloud_provider", _last(str)),
    "expander": ("expanders", _last(lambda text: tuple(text.split(",")))),
    "balance-similar-node-groups": ("balance_similar_node_groups", _last(parse_bool)),
    "balancing-label": ("balancing_labels", _every),
    "balancing-ignore-label": ("balancing_ignore_labels", _every),
    "memory-difference-ratio": ("memory_difference_ratio", _last(float)),
    "max-free-difference-ratio": ("max_free_difference_ratio", _last(float)),
    "max-allocatable-difference-ratio": ("max_allocatable_difference_ratio", _last(float)),
    "max-nodes-total": ("max_nodes_total", _last(int)),
    "max-nodes-per-scaleup": ("max_nodes_per_scale_up", _last(int)),
    "ok-total-unready-count": ("ok_total_unready_count", _last(int)),
    "max-total-unready-percentage": ("max_total_unready_percentage", _last(float)),
    "max-node-startup-time": ("max_node_startup_time", _last(Duration.parse)),
    "expendable-pods-priority-cutoff": ("expendable_pods_priority_cutoff", _last(int)),
    "new-pod-scale-up-delay": ("new_pod_scale_up_delay", _last(Duration.parse)),
    "startup-taint-prefix": ("startup_taint_prefixes", _every),
    "status-taint": ("status_taints", _every),
    "force-ds": ("force_daemon_sets", _last(parse_bool)),
    "scale-from-unschedulable": ("scale_from_unschedulable", _last(parse_bool)),
    "scale-up-from-zero": ("scale_up_from_zero", _last(parse_bool)),
    "fastpath-binpacking-enabled": ("fast_path", _last(parse_bool)),
    "scaleup-simulation-for-skipped-node-groups-enabled": ("check_skipped_groups", _last(parse_bool)),
    "bypassed-scheduler-names": ("bypassed_schedulers", _commas),
    "allowed-scheduler-names": ("allowed_schedulers", _commas),
    "enable-provisioning-requests": ("provisioning_requests", _last(parse_bool)),
}
"""Flag to its field and parser."""


def check_known(names: Sequence[str]) -> None:
    """Raises `ConfigError` for the first name that is not a supported flag."""
    for name in names:
        if name not in FLAGS:
            raise ConfigError(f"--{name} is not a flag that kschedx reads", hint=nearest(name, FLAGS))


def _limits_of(written: Mapping[str, FlagValue]) -> tuple[_ResourceLimit, ...]:
    """Parse `MIN:MAX` of cores and GiB, and `TYPE:MIN:MAX` of GPUs."""

    def range_of(texts: tuple[str, ...]) -> tuple[int, int]:
        low, high = texts[-1].split(":")
        return int(low), int(high)

    def gpu_limits(texts: tuple[str, ...]) -> tuple[_ResourceLimit, ...]:
        limits = []
        for text in texts:
            kind, low, high = text.split(":")
            limits.append(_ResourceLimit(resource=kind, minimum=int(low), maximum=int(high)))
        return tuple(limits)

    cores = _parsed_flag("cores-total", written.get("cores-total", "0:320000"), range_of)
    memory = _parsed_flag("memory-total", written.get("memory-total", "0:6400000"), range_of)
    return (
        _ResourceLimit(resource="cpu", minimum=cores[0], maximum=cores[1]),
        _ResourceLimit(resource="memory", minimum=memory[0] * _GIBIBYTE, maximum=memory[1] * _GIBIBYTE),
        *_parsed_flag("gpu-total", written.get("gpu-total", ()), gpu_limits),
    )


# cluster-autoscaler's flags about scale-down. Upstream: config/flags/flags.go, config/const.go.

_MINUTE = 60


class ScaleDownFlags(Struct, frozen=True, kw_only=True):
    is_enabled: bool = True
    unready_nodes_too: bool = True
    unneeded_time: Duration = Duration.seconds(10 * _MINUTE)
    unready_time: Duration = Duration.seconds(20 * _MINUTE)
    threshold: float = 0.5  # the requested fraction of allocatable above which a node stays
    gpu_threshold: float = 0.5
    ignores_daemon_sets: bool = False  # whether pods of DaemonSets count neither as requested nor as allocatable
    ignores_mirror_pods: bool = False
    skips_local_storage: bool = True
    skips_system_pods: bool = True
    skips_custom_controllers: bool = True
    counts_devices: bool = False  # `--enable-dynamic-resource-allocation`, in versions that have it
    min_replica_count: int = 0
    system_pod_timeout: Duration = Duration.seconds(60 * _MINUTE)
    minimums: Mapping[str, int] = {}
    """Resource to the minimum for the whole cluster: cores, bytes of memory, GPUs by type."""

    @classmethod
    def read(cls, written: Mapping[str, Sequence[str]]) -> ScaleDownFlags:
        """Parse flags by their names without dashes. Raises `ConfigError` for an invalid value."""
        read: dict[str, object] = {
            field: _parsed_flag(name, written[name], _last(parse))
            for name, (field, parse) in _SCALE_DOWN_FLAGS.items()
            if name in written
        }
        minimums = {limit.resource: limit.minimum for limit in _limits_of(written) if limit.minimum > 0}
        return replace(cls(), **read, minimums=minimums)


_SCALE_DOWN_FLAGS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "scale-down-enabled": ("is_enabled", parse_bool),
    "scale-down-unready-enabled": ("unready_nodes_too", parse_bool),
    "scale-down-unneeded-time": ("unneeded_time", Duration.parse),
    "scale-down-unready-time": ("unready_time", Duration.parse),
    "scale-down-utilization-threshold": ("threshold", float),
    "scale-down-gpu-utilization-threshold": ("gpu_threshold", float),
    "ignore-daemonsets-utilization": ("ignores_daemon_sets", parse_bool),
    "ignore-mirror-pods-utilization": ("ignores_mirror_pods", parse_bool),
    "skip-nodes-with-local-storage": ("skips_local_storage", parse_bool),
    "skip-nodes-with-system-pods": ("skips_system_pods", parse_bool),
    "skip-nodes-with-custom-controller-pods": ("skips_custom_controllers", parse_bool),
    "enable-dynamic-resource-allocation": ("counts_devices", parse_bool),
    "min-replica-count": ("min_replica_count", int),
    "blocking-system-pod-distruption-timeout": ("system_pod_timeout", Duration.parse),
}
"""Flag to its field and the parser of its last value."""
