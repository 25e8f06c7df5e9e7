"""Arguments of the in-tree plugins: the values of `pluginConfig[].args`, under Kubernetes' own names.

The field defaults here are those of the wire format. A profile holds the arguments after kube-scheduler's defaulting
and validation (`framework/config/loading.py`). A plugin therefore finds `NodeResourcesFitArgs.scoring_strategy` set,
resource weights from 1 to 100, sorted shapes, and so on.
"""

from collections.abc import Mapping
from typing import TypeAlias, TypeVar, get_args

from msgspec import Struct, ValidationError, convert

from kschedx.errors import ConfigError
from kschedx.kube.scalars import Duration, Int32, Int64
from kschedx.kube.types import NodeAffinity, TopologySpreadConstraint

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"


class ResourceSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    weight: Int64 = 0


class UtilizationShapePoint(Struct, frozen=True, kw_only=True, rename="camel"):
    """A `score` (0 to 10) at a `utilization` (0 to 100)."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(Struct, frozen=True, kw_only=True, rename="camel"):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None
    """Set if and only if `type` is RequestedToCapacityRatio."""


class DefaultPreemptionArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    filter_timeout: Duration | None = None
    binding_timeout: Duration | None = None


class InterPodAffinityArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    resources: tuple[ResourceSpec, ...] = ()


class NodeResourcesFitArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    ignored_resources: tuple[str, ...] = ()
    """If an extender manages resources that kube-scheduler ignores, these replace the configured ones."""
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type=LEAST_ALLOCATED)


class PodTopologySpreadArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    """Empty for the defaulting type `System`: the plugin has those constraints itself."""
    defaulting_type: str = ""


class VolumeBindingArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None
    """None unless the feature gate StorageCapacityScoring is enabled."""


InTreeArgs: TypeAlias = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesBalancedAllocationArgs
    | NodeResourcesFitArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

PluginArgs: TypeAlias = InTreeArgs | Mapping[str, object]
"""One that is not in-tree gets the configured value, undecoded."""

ARGS_TYPES: Mapping[str, type[InTreeArgs]] = {kind.__name__.removesuffix("Args"): kind for kind in get_args(InTreeArgs)}
"""Plugins that take no arguments are absent."""

_S = TypeVar("_S", bound=Struct)


def args_of_another_project(args: object, kind: type[_S], plugin: str) -> _S:
    """Return the arguments that a plugin of another project reads, without all others. Raises `ConfigError`."""
    if isinstance(args, kind):
        return args
    known = kind.__struct_encode_fields__
    written = args if isinstance(args, Mapping) else {}
    try:
        return convert({key: value for key, value in written.items() if key in known and value is not None}, kind)
    except ValidationError as error:
        raise ConfigError(f"arguments of {plugin}: {error}") from None


# Arguments of the plugins of scheduler-plugins (apis/config/v1/types.go, as of August 2026), with all their fields.
# kschedx does not read all of them; they are listed so that a misspelled field is found.


class CoschedulingArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    permit_waiting_time_seconds: Int64 = 60
    pod_group_backoff_seconds: Int64 = 0
    pod_group_reject_percentage: Int32 = 10


class NodeResourcesAllocatableArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    mode: str = "Least"
    resources: tuple[ResourceSpec, ...] = ()


class _TopologyScoringStrategy(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = ()


class _TopologyCache(Struct, frozen=True, kw_only=True, rename="camel"):
    foreign_pods_detect: str = ""
    resync_method: str = ""
    informer_mode: str = ""
    resync_scope: str = ""


class NodeResourceTopologyMatchArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    scoring_strategy: _TopologyScoringStrategy = _TopologyScoringStrategy()
    cache_resync_period_seconds: Int64 = 0
    discard_reserved_nodes: bool = False
    cache: _TopologyCache = _TopologyCache()
    preemption_mode: str = ""
