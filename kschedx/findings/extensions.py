"""Findings with a plugin's own text."""

from __future__ import annotations

from typing import ClassVar, TypeAlias

from msgspec import Struct

from kschedx.findings.facts import Facts

Value: TypeAlias = str | int | bool | tuple[str, ...]


class PluginMessage(Facts, frozen=True, kw_only=True):
    """Only a text: an internal error, or a status without a finding."""

    reason: ClassVar[str] = "plugin-message"
    text: str


class PluginFinding(Facts, frozen=True, kw_only=True):
    """A reason of a plugin from another package, with its facts and their text."""

    reason: ClassVar[str] = "plugin-finding"
    shared: ClassVar[tuple[str, ...]] = ("id", "headline")
    id: str
    """The reason in the document."""
    headline: str
    lines: tuple[tuple[str, str], ...] = ()
    """Label and text of each line below the headline."""
    facts: tuple[tuple[str, Value], ...] = ()
    """Names, in camelCase, and values for the document."""
    shortfall: float = 1.0
    """How far the node is from passing, compared with other nodes rejected for this reason."""

    @property
    def distance(self) -> float:
        return self.shortfall

    def to_dict(self) -> dict[str, object]:
        document: dict[str, object] = {"reason": self.id}
        document |= {name: list(value) if isinstance(value, tuple) else value for name, value in self.facts}
        return document


class Explained(Struct, frozen=True, kw_only=True):
    """The explanation that `kschedx reason ID` prints for a plugin's own reason."""

    means: str
    arises: str
    fixes: tuple[str, ...] = ()
    """Cheapest first."""


# Pod groups and quotas of kubernetes-sigs/scheduler-plugins.


class GangTooSmall(Facts, frozen=True, kw_only=True):
    """A PodGroup has fewer pods, or fewer pods with a node, than its minMember; `gated` of them have scheduling
    gates."""

    reason: ClassVar[str] = "gang-too-small"
    group: str
    pods: int
    min_member: int
    gated: int


class ResourceGap(Struct, frozen=True, kw_only=True):
    resource: str
    short_by: int
    """In milli-units for cpu, in units for everything else."""


class GangResourcesShort(Facts, frozen=True, kw_only=True):
    """The free resources of all nodes together are less than the PodGroup's minResources."""

    reason: ClassVar[str] = "gang-resources-short"
    group: str
    gaps: tuple[ResourceGap, ...]


class ElasticQuotaExceeded(Facts, frozen=True, kw_only=True):
    """With the pod, a namespace would exceed its `max`, or `of_all` quotas together would exceed the sum of `min`."""

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
    """No single NUMA node has everything that a container requests, or the whole pod if `container` is empty."""

    reason: ClassVar[str] = "numa-misfit"
    container: str
    resource: str
    """The first resource of which no NUMA node has enough, among those with enough of the resources before it."""
    numa_nodes: int


SchedulerPluginsFinding = NumaMisfit | GangTooSmall | GangResourcesShort | ElasticQuotaExceeded


# Rejections by HTTP extenders.


class RefusedByExtender(Facts, frozen=True, kw_only=True):
    """An extender lists the node among the failed ones."""

    reason: ClassVar[str] = "extender-refused"
    url: str
    message: str
    """May be empty."""
    is_resolvable: bool
    """Whether evicting pods might help, according to the extender."""


class DroppedByExtender(Facts, frozen=True, kw_only=True):
    """An extender got the node and left it out of its response without a message."""

    reason: ClassVar[str] = "extender-dropped"
    url: str


ExtenderFinding = RefusedByExtender | DroppedByExtender
