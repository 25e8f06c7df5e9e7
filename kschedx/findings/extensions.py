"""What a plugin says in words of its own."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar, TypeAlias

from msgspec import Struct

from kschedx.findings.facts import Facts

Value: TypeAlias = str | int | bool | tuple[str, ...]


class PluginMessage(Facts, frozen=True, kw_only=True):
    """A text and nothing else: an internal error, or what is known of a status that has no finding."""

    reason: ClassVar[str] = "plugin-message"
    text: str


class PluginFinding(Facts, frozen=True, kw_only=True):
    """A reason of a plugin from another package: facts of its choice, and the words for them."""

    reason: ClassVar[str] = "plugin-finding"
    id: str
    """What the document carries as the reason."""
    headline: str
    lines: tuple[tuple[str, str], ...] = ()
    """Label and text of what is shown below the headline."""
    facts: tuple[tuple[str, Value], ...] = ()
    """For the document: name, in camelCase, and value."""
    shortfall: float = 1.0
    """How far the node is from passing, compared with others that are rejected for this reason."""

    @property
    def same_as(self) -> Hashable:
        return self.id, self.headline

    @property
    def distance(self) -> float:
        return self.shortfall

    def to_dict(self) -> dict[str, object]:
        told: dict[str, object] = {"reason": self.id}
        told |= {name: list(value) if isinstance(value, tuple) else value for name, value in self.facts}
        return told


class Explained(Struct, frozen=True, kw_only=True):
    """What `kschedx reason ID` says of a plugin's own reason."""

    means: str
    arises: str
    fixes: tuple[str, ...] = ()
    """The usual ones, cheapest first."""


# About pod groups and quotas of kubernetes-sigs/scheduler-plugins.


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


# What HTTP extenders said.


class RefusedByExtender(Facts, frozen=True, kw_only=True):
    """An extender answered with the node among those that failed."""

    reason: ClassVar[str] = "extender-refused"
    url: str
    message: str
    """The extender's own words; they may be empty."""
    is_resolvable: bool
    """Evicting pods might help, as far as the extender says."""


class DroppedByExtender(Facts, frozen=True, kw_only=True):
    """An extender was asked about the node, left it out of its answer, and said nothing about it."""

    reason: ClassVar[str] = "extender-dropped"
    url: str


ExtenderFinding = RefusedByExtender | DroppedByExtender
