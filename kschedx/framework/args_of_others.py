"""Arguments of the plugins of scheduler-plugins (apis/config/v1/types.go, as of August 2026), with all their fields.

kschedx does not read all of them; they are here so that a misspelled one is known.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.integers import Int32, Int64
from kschedx.framework.args import DefaultPreemptionArgs, ResourceSpec


class CoschedulingArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    permit_waiting_time_seconds: Int64 = 60
    pod_group_backoff_seconds: Int64 = 0
    pod_group_reject_percentage: Int32 = 10


class NodeResourcesAllocatableArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    mode: str = "Least"
    resources: tuple[ResourceSpec, ...] = ()


class TopologyScoringStrategy(Struct, frozen=True, kw_only=True, rename="camel"):
    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()


class TopologyCache(Struct, frozen=True, kw_only=True, rename="camel"):
    foreign_pods_detect: str = ""
    resync_method: str = ""
    informer_mode: str = ""
    resync_scope: str = ""


class NodeResourceTopologyMatchArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    scoring_strategy: TopologyScoringStrategy = TopologyScoringStrategy()
    cache_resync_period_seconds: Int64 = 0
    discard_reserved_nodes: bool = False
    cache: TopologyCache = TopologyCache()
    preemption_mode: str = ""


ARGS_OF_OTHERS: Mapping[str, type[Struct]] = {
    "Coscheduling": CoschedulingArgs,
    "NodeResourcesAllocatable": NodeResourcesAllocatableArgs,
    "NodeResourceTopologyMatch": NodeResourceTopologyMatchArgs,
    "PreemptionToleration": DefaultPreemptionArgs,
}
