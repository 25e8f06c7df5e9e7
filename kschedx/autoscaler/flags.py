"""The autoscaler's flags from its Deployment and from the user."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import fields, replace

from kschedx.errors import ConfigError, InputError, nearest
from kschedx.kube.autoscalers import FLAGS, PROGRAM, Written, flags_of_containers
from kschedx.kube.scalars import Duration, parse_bool
from kschedx.releases.autoscaler import AutoscalerBehavior


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


class Flags(Struct, frozen=True, kw_only=True, rename="kebab"):
    """The flags that are read, with their defaults."""

    cloud_provider: str = ""
    expanders: tuple[str, ...] = field(name="expander", default=("least-waste",))
    balance_similar_node_groups: bool = False
    balancing_labels: tuple[str, ...] = field(name="balancing-label", default=())
    balancing_ignore_labels: tuple[str, ...] = field(name="balancing-ignore-label", default=())
    memory_difference_ratio: float = 0.015
    max_free_difference_ratio: float = 0.05
    max_allocatable_difference_ratio: float = 0.05
    max_nodes_total: int = 0
    max_nodes_per_scale_up: int = field(name="max-nodes-per-scaleup", default=1000)
    limits: tuple[_ResourceLimit, ...] = ()
    ok_total_unready_count: int = 3
    max_total_unready_percentage: float = 45.0
    max_node_startup_time: Duration = Duration.seconds(15 * 60)
    expendable_pods_priority_cutoff: int = -10
    new_pod_scale_up_delay: Duration = Duration(0)
    startup_taints: tuple[str, ...] = ()
    startup_taint_prefixes: tuple[str, ...] = field(name="startup-taint-prefix", default=())
    status_taints: tuple[str, ...] = field(name="status-taint", default=())
    force_daemon_sets: bool = field(name="force-ds", default=False)
    scale_from_unschedulable: bool = False
    scale_up_from_zero: bool = True
    fast_path: bool = field(name="fastpath-binpacking-enabled", default=False)
    check_skipped_groups: bool = field(name="scaleup-simulation-for-skipped-node-groups-enabled", default=False)
    bypassed_schedulers: tuple[str, ...] = field(name="bypassed-scheduler-names", default=())
    allowed_schedulers: tuple[str, ...] = field(name="allowed-scheduler-names", default=())
    provisioning_requests: bool = field(name="enable-provisioning-requests", default=False)
    """Whether pods that consume a ProvisioningRequest are left to it."""

    @classmethod
    def read(cls, written: Mapping[str, FlagValue], behavior: AutoscalerBehavior) -> Flags:
        """Parse flags by their names without dashes; a repeated flag has a list. Flags without effect on scale-up are
        ignored. Raises `ConfigError` for an invalid value."""
        read = _fields_of(cls, written)
        is_known = {
            "fast_path": behavior.fast_path,
            "check_skipped_groups": behavior.skipped_groups_can_be_checked,
            "startup_taint_prefixes": behavior.startup_taint_prefixes,
            "scale_from_unschedulable": behavior.cordoned_templates_can_be_opened,
            "status_taints": behavior.startup_taints_are_named,
            "bypassed_schedulers": behavior.schedulers_can_be_bypassed,
            "allowed_schedulers": behavior.schedulers_can_be_allowed,
        }
        read = {name: value for name, value in read.items() if is_known.get(name, True)}
        named = ("startup-taint", "ignore-taint") if behavior.startup_taints_are_named else ("ignore-taint",)
        read["startup_taints"] = tuple(key for name in named for key in _texts(written.get(name, ())))
        return replace(cls(expanders=(behavior.default_expander,)), **read, limits=_limits_of(written))


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


def _commas(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part for text in texts for part in text.split(",") if part)


_PARSERS: Mapping[object, Callable[[tuple[str, ...]], object]] = {
    str: _last(str),
    int: _last(int),
    float: _last(float),
    bool: _last(parse_bool),
    Duration: _last(Duration.parse),
    tuple[str, ...]: lambda texts: texts,
    "expander": _last(lambda text: tuple(text.split(","))),
    "bypassed-scheduler-names": _commas,
    "allowed-scheduler-names": _commas,
}
"""Parsers by a flag's name, or the type of its field."""


def _fields_of(flags: type[Struct], written: Mapping[str, FlagValue]) -> dict[str, object]:
    """Parse the flags that a class has as fields."""
    parsers = ((it, _PARSERS.get(it.encode_name) or _PARSERS.get(it.type)) for it in fields(flags))
    return {
        it.name: _parsed_flag(it.encode_name, written[it.encode_name], parse)
        for it, parse in parsers
        if parse is not None and it.encode_name in written
    }


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


class ScaleDownFlags(Struct, frozen=True, kw_only=True):
    is_enabled: bool = field(name="scale-down-enabled", default=True)
    unready_nodes_too: bool = field(name="scale-down-unready-enabled", default=True)
    unneeded_time: Duration = field(name="scale-down-unneeded-time", default=Duration.seconds(600))
    unready_time: Duration = field(name="scale-down-unready-time", default=Duration.seconds(1200))
    threshold: float = field(name="scale-down-utilization-threshold", default=0.5)
    """The requested fraction of allocatable above which a node stays."""
    gpu_threshold: float = field(name="scale-down-gpu-utilization-threshold", default=0.5)
    ignores_daemon_sets: bool = field(name="ignore-daemonsets-utilization", default=False)
    """Whether pods of DaemonSets count neither as requested nor as allocatable."""
    ignores_mirror_pods: bool = field(name="ignore-mirror-pods-utilization", default=False)
    skips_local_storage: bool = field(name="skip-nodes-with-local-storage", default=True)
    skips_system_pods: bool = field(name="skip-nodes-with-system-pods", default=True)
    skips_custom_controllers: bool = field(name="skip-nodes-with-custom-controller-pods", default=True)
    counts_devices: bool = field(name="enable-dynamic-resource-allocation", default=False)  # in versions that have it
    min_replica_count: int = field(name="min-replica-count", default=0)
    system_pod_timeout: Duration = field(name="blocking-system-pod-distruption-timeout", default=Duration.seconds(3600))
    minimums: Mapping[str, int] = {}
    """Resource to the minimum for the whole cluster: cores, bytes of memory, GPUs by type."""

    @classmethod
    def read(cls, written: Mapping[str, Sequence[str]]) -> ScaleDownFlags:
        """Parse flags by their names without dashes. Raises `ConfigError` for an invalid value."""
        minimums = {limit.resource: limit.minimum for limit in _limits_of(written) if limit.minimum > 0}
        return replace(cls(), **_fields_of(cls, written), minimums=minimums)
