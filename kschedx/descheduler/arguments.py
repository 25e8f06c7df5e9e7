"""The plugins of descheduler 0.36 with their args.

Upstream: pkg/descheduler/setupplugins.go, pkg/framework/plugins/*/types.go and defaults.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, TypeAlias

from msgspec import Meta, Struct, field

from kschedx.kube.scalars import Duration, Int32, Int64
from kschedx.kube.selectors import LabelSelector

Uint = Annotated[int, Meta(ge=0)]
Thresholds = dict[str, float]  # resource to percentage


class NameFilter(Struct, frozen=True, kw_only=True):
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class _Args(Struct, frozen=True, kw_only=True, rename="camel"):
    api_version: str = ""
    kind: str = ""


class PodArgs(_Args, frozen=True, kw_only=True, rename="camel"):
    """Args of a plugin that select the pods to consider."""

    namespaces: NameFilter | None = None
    label_selector: LabelSelector | None = None


class _PriorityThreshold(Struct, frozen=True, kw_only=True):
    value: Int32 | None = None
    name: str = ""


class _ProtectedStorageClass(Struct, frozen=True, kw_only=True):
    name: str = ""


class _PodsWithPVCConfig(Struct, frozen=True, kw_only=True, rename="camel"):
    protected_storage_classes: tuple[_ProtectedStorageClass, ...] = ()


class _PodProtectionsConfig(Struct, frozen=True, kw_only=True):
    pods_with_pvc: _PodsWithPVCConfig | None = field(default=None, name="PodsWithPVC")


class _PodProtections(Struct, frozen=True, kw_only=True, rename="camel"):
    extra_enabled: tuple[str, ...] = ()
    default_disabled: tuple[str, ...] = ()
    config: _PodProtectionsConfig | None = None

    @property
    def protected_storage_classes(self) -> tuple[_ProtectedStorageClass, ...]:
        """The storage classes whose claims alone are protected; empty for all of them."""
        claims = self.config.pods_with_pvc if self.config is not None else None
        return claims.protected_storage_classes if claims is not None else ()


class Protection(StrEnum):
    """Pods that the DefaultEvictor can protect from eviction."""

    LOCAL_STORAGE = "PodsWithLocalStorage"
    SYSTEM_CRITICAL = "SystemCriticalPods"
    FAILED_BARE = "FailedBarePods"
    DAEMON_SET = "DaemonSetPods"
    PVC = "PodsWithPVC"
    WITHOUT_PDB = "PodsWithoutPDB"
    RESOURCE_CLAIMS = "PodsWithResourceClaims"


DEFAULT_PROTECTIONS = (
    Protection.LOCAL_STORAGE,
    Protection.SYSTEM_CRITICAL,
    Protection.FAILED_BARE,
    Protection.DAEMON_SET,
)


class DefaultEvictorArgs(_Args, frozen=True, kw_only=True, rename="camel"):
    node_selector: str = ""
    label_selector: LabelSelector | None = None
    namespace_label_selector: LabelSelector | None = None
    priority_threshold: _PriorityThreshold | None = None
    node_fit: bool = False
    min_replicas: Uint = 0
    min_pod_age: Duration | None = None
    no_eviction_policy: str = ""
    pod_protections: _PodProtections = _PodProtections()
    evict_local_storage_pods: bool = False
    evict_daemon_set_pods: bool = False
    evict_system_critical_pods: bool = False
    ignore_pvc_pods: bool = False
    ignore_pods_without_pdb: bool = field(default=False, name="ignorePodsWithoutPDB")
    evict_failed_bare_pods: bool = False

    @property
    def uses_deprecated(self) -> bool:
        """Whether any of the flags that `podProtections` replaces is set."""
        return self._flags != DefaultEvictorArgs()._flags

    @property
    def _flags(self) -> dict[Protection, bool]:
        """The protections by the deprecated flags."""
        return {
            Protection.LOCAL_STORAGE: not self.evict_local_storage_pods,
            Protection.DAEMON_SET: not self.evict_daemon_set_pods,
            Protection.SYSTEM_CRITICAL: not self.evict_system_critical_pods,
            Protection.FAILED_BARE: not self.evict_failed_bare_pods,
            Protection.PVC: self.ignore_pvc_pods,
            Protection.WITHOUT_PDB: self.ignore_pods_without_pdb,
        }

    @property
    def protections(self) -> frozenset[Protection]:
        """The protections in effect; deprecated flags count only if `podProtections` names nothing."""
        given = self.pod_protections
        if given.default_disabled or given.extra_enabled:
            kept = [protection for protection in DEFAULT_PROTECTIONS if protection not in given.default_disabled]
            return frozenset((*kept, *map(Protection, given.extra_enabled)))
        return frozenset(protection for protection, is_on in self._flags.items() if is_on)


class RemoveDuplicatesArgs(_Args, frozen=True, kw_only=True, rename="camel"):
    namespaces: NameFilter | None = None
    exclude_owner_kinds: tuple[str, ...] = ()


class _PrometheusQuery(Struct, frozen=True, kw_only=True):
    query: str = ""


class _MetricsUtilization(Struct, frozen=True, kw_only=True, rename="camel"):
    metrics_server: bool = False
    source: str = ""
    prometheus: _PrometheusQuery | None = None


class _EvictionLimits(Struct, frozen=True, kw_only=True):
    node: Uint | None = None


class LowNodeUtilizationArgs(_Args, frozen=True, kw_only=True, rename="camel"):
    use_deviation_thresholds: bool = False
    thresholds: Thresholds = {}
    target_thresholds: Thresholds = {}
    number_of_nodes: Int64 = 0
    metrics_utilization: _MetricsUtilization | None = None
    evictable_namespaces: NameFilter | None = None
    eviction_limits: _EvictionLimits | None = None

    @property
    def metrics_source(self) -> str:
        return self.metrics_utilization.source if self.metrics_utilization is not None else ""


class HighNodeUtilizationArgs(_Args, frozen=True, kw_only=True, rename="camel"):
    thresholds: Thresholds = {}
    number_of_nodes: Int64 = 0
    eviction_modes: tuple[str, ...] = ()
    evictable_namespaces: NameFilter | None = None


class PodConditionFilter(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    status: str = ""
    reason: str = ""
    min_time_since_last_transition_seconds: Uint | None = None


class PodLifeTimeArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    owner_kinds: NameFilter | None = None
    max_pod_life_time_seconds: Uint | None = None
    states: tuple[str, ...] = ()
    conditions: tuple[PodConditionFilter, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False
    including_ephemeral_containers: bool = False


class RemoveFailedPodsArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    exclude_owner_kinds: tuple[str, ...] = ()
    min_pod_lifetime_seconds: Uint = 3600
    reasons: tuple[str, ...] = ()
    exit_codes: tuple[Int32, ...] = ()
    including_init_containers: bool = False


class TooManyRestartsArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    pod_restart_threshold: Int32 = 0
    including_init_containers: bool = False
    states: tuple[str, ...] = ()


class InterPodAntiAffinityArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    pass


class RemovePodsViolatingNodeAffinityArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    node_affinity_type: tuple[str, ...] = ()


class NodeTaintsArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    include_prefer_no_schedule: bool = False
    excluded_taints: tuple[str, ...] = ()
    included_taints: tuple[str, ...] | None = None  # None includes every taint; an empty list includes none


class TopologySpreadArgs(PodArgs, frozen=True, kw_only=True, rename="camel"):
    constraints: tuple[str, ...] = ()
    topology_balance_node_fit: bool = True


Args: TypeAlias = (
    DefaultEvictorArgs
    | RemoveDuplicatesArgs
    | LowNodeUtilizationArgs
    | HighNodeUtilizationArgs
    | PodLifeTimeArgs
    | RemoveFailedPodsArgs
    | TooManyRestartsArgs
    | InterPodAntiAffinityArgs
    | RemovePodsViolatingNodeAffinityArgs
    | NodeTaintsArgs
    | TopologySpreadArgs
)

DEFAULT_EVICTOR = "DefaultEvictor"
BALANCE: Mapping[str, type[Args]] = {
    "RemoveDuplicates": RemoveDuplicatesArgs,
    "LowNodeUtilization": LowNodeUtilizationArgs,
    "HighNodeUtilization": HighNodeUtilizationArgs,
    "RemovePodsViolatingTopologySpreadConstraint": TopologySpreadArgs,
}
