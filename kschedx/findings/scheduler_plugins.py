"""About pod groups and quotas of kubernetes-sigs/scheduler-plugins."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts


class GangTooSmall(Facts, frozen=True, kw_only=True):
    """Fewer pods of a PodGroup than its minMember are there, or have a node; gates hold `gated` of them."""

    reason: ClassVar[str] = "gang-too-small"
    group: str
    pods: int
    min_member: int
    gated: int


class ResourceGap(Struct, frozen=True, kw_only=True):
    resource: str
    short_by: int
    """In milli-units of cpu, units of everything else."""


class GangResourcesShort(Facts, frozen=True, kw_only=True):
    """All nodes together have less left than the PodGroup's minResources."""

    reason: ClassVar[str] = "gang-resources-short"
    group: str
    gaps: tuple[ResourceGap, ...]


class ElasticQuotaExceeded(Facts, frozen=True, kw_only=True):
    """With the pod a namespace would use more than its `max`, or `of_all` quotas together more than all `min`."""

    reason: ClassVar[str] = "elastic-quota-exceeded"
    namespace: str
    of_all: bool
    resource: str
    requested: int
    used: int
    limit: int
    unit: str
    """`m` for cpu, empty for everything else."""


class NumaMisfit(Facts, frozen=True, kw_only=True):
    """No single NUMA node has all that a container, or the whole pod where `container` is empty, asks for."""

    reason: ClassVar[str] = "numa-misfit"
    container: str
    resource: str
    """The one that no NUMA node which suits the resources before it has enough of."""
    numa_nodes: int


SchedulerPluginsFinding = NumaMisfit | GangTooSmall | GangResourcesShort | ElasticQuotaExceeded
