"""The flags of cluster-autoscaler that decide about removing nodes.

Upstream: config/flags/flags.go, config/const.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kschedx.autoscaler.flags import boolean, last, limits_of, parsed_flag
from kschedx.framework.duration import Duration

MINUTE = 60


class ScaleDownFlags(Struct, frozen=True, kw_only=True):
    """With their defaults."""

    is_enabled: bool = True
    unready_nodes_too: bool = True
    unneeded_time: Duration = Duration.seconds(10 * MINUTE)
    unready_time: Duration = Duration.seconds(20 * MINUTE)
    threshold: float = 0.5
    """Of what is requested in what the node offers; a node above it stays."""
    gpu_threshold: float = 0.5
    ignores_daemon_sets: bool = False
    """Their pods count neither as requested nor as offered."""
    ignores_mirror_pods: bool = False
    skips_local_storage: bool = True
    skips_system_pods: bool = True
    skips_custom_controllers: bool = True
    counts_devices: bool = False
    """`--enable-dynamic-resource-allocation`, where it can be chosen."""
    min_replica_count: int = 0
    system_pod_timeout: Duration = Duration.seconds(60 * MINUTE)
    minimums: Mapping[str, int] = {}
    """Resource to what of it the whole cluster keeps at least: cores, bytes of memory, GPUs by type."""

    @classmethod
    def read(cls, written: Mapping[str, Sequence[str]]) -> ScaleDownFlags:
        """Flags by their names without dashes. Raises `ConfigError` for a value that cannot be read."""
        read: dict[str, Any] = {
            field: parsed_flag(name, written[name], last(parse))
            for name, (field, parse) in _FLAGS.items()
            if name in written
        }
        minimums = {limit.resource: limit.minimum for limit in limits_of(written) if limit.minimum > 0}
        return cls(**read, minimums=minimums)


_FLAGS: Mapping[str, tuple[str, Callable[[str], object]]] = {
    "scale-down-enabled": ("is_enabled", boolean),
    "scale-down-unready-enabled": ("unready_nodes_too", boolean),
    "scale-down-unneeded-time": ("unneeded_time", Duration.parse),
    "scale-down-unready-time": ("unready_time", Duration.parse),
    "scale-down-utilization-threshold": ("threshold", float),
    "scale-down-gpu-utilization-threshold": ("gpu_threshold", float),
    "ignore-daemonsets-utilization": ("ignores_daemon_sets", boolean),
    "ignore-mirror-pods-utilization": ("ignores_mirror_pods", boolean),
    "skip-nodes-with-local-storage": ("skips_local_storage", boolean),
    "skip-nodes-with-system-pods": ("skips_system_pods", boolean),
    "skip-nodes-with-custom-controller-pods": ("skips_custom_controllers", boolean),
    "enable-dynamic-resource-allocation": ("counts_devices", boolean),
    "min-replica-count": ("min_replica_count", int),
    "blocking-system-pod-distruption-timeout": ("system_pod_timeout", Duration.parse),
}
"""Flag to the field that it sets and how its last value is read."""
