"""The in-tree plugins of each release: the default profile in order, and what a plugin takes part in.

The order of the default plugins decides which reason a node gets. Upstream: pkg/scheduler/apis/config/*/
default_plugins.go, pkg/scheduler/framework/plugins/registry.go and the interfaces that each plugin asserts.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.releases.dates import Minor, holds


class DefaultPlugin(Struct, frozen=True, kw_only=True):
    """An entry of the default profile."""

    name: str
    weight: int = 0
    """0 where upstream sets none; a score plugin then counts once."""
    gate: str | None = None
    """The feature gate without which the entry is absent."""
    first: str = ""
    last: str = ""
    """The releases that have the entry; empty is no bound."""

    def is_in(self, release: Minor) -> bool:
        return holds(release, first=self.first, last=self.last)


DEFAULT_PLUGINS = (
    DefaultPlugin(name="SchedulingGates", first="1.30"),
    DefaultPlugin(name="PrioritySort"),
    DefaultPlugin(name="NodeUnschedulable"),
    DefaultPlugin(name="NodeName"),
    DefaultPlugin(name="TaintToleration", weight=3),
    DefaultPlugin(name="NodeAffinity", weight=2),
    DefaultPlugin(name="NodePorts"),
    DefaultPlugin(name="NodeResourcesFit", weight=1),
    DefaultPlugin(name="VolumeRestrictions"),
    DefaultPlugin(name="EBSLimits", last="1.30"),
    DefaultPlugin(name="GCEPDLimits", last="1.30"),
    DefaultPlugin(name="NodeVolumeLimits"),
    DefaultPlugin(name="AzureDiskLimits", last="1.30"),
    DefaultPlugin(name="VolumeBinding"),
    DefaultPlugin(name="VolumeZone"),
    DefaultPlugin(name="PodTopologySpread", weight=2),
    DefaultPlugin(name="InterPodAffinity", weight=2),
    DefaultPlugin(name="DynamicResources", gate="DynamicResourceAllocation", last="1.34"),
    DefaultPlugin(name="DynamicResources", weight=2, gate="DynamicResourceAllocation", first="1.35"),
    DefaultPlugin(name="DefaultPreemption"),
    DefaultPlugin(name="NodeResourcesBalancedAllocation", weight=1),
    DefaultPlugin(name="ImageLocality", weight=1),
    DefaultPlugin(name="DefaultBinder"),
    DefaultPlugin(name="SchedulingGates", gate="PodSchedulingReadiness", last="1.29"),
    DefaultPlugin(name="NodeDeclaredFeatures", gate="NodeDeclaredFeatures", first="1.35"),
    DefaultPlugin(name="GangScheduling", gate="GangScheduling", first="1.35"),
    DefaultPlugin(name="TopologyPlacementGenerator", gate="TopologyAwareWorkloadScheduling", first="1.36"),
    DefaultPlugin(name="PodGroupPodsCount", weight=1, gate="TopologyAwareWorkloadScheduling", first="1.36"),
)
"""The MultiPoint list of v1 and v1beta3."""

V1BETA2_DEFAULT_PLUGINS: Mapping[str, tuple[DefaultPlugin, ...]] = {
    "preEnqueue": (DefaultPlugin(name="SchedulingGates", gate="PodSchedulingReadiness"),),
    "queueSort": (DefaultPlugin(name="PrioritySort"),),
    "preFilter": (
        DefaultPlugin(name="NodeResourcesFit"),
        DefaultPlugin(name="NodePorts"),
        DefaultPlugin(name="VolumeRestrictions"),
        DefaultPlugin(name="PodTopologySpread"),
        DefaultPlugin(name="InterPodAffinity"),
        DefaultPlugin(name="VolumeBinding"),
        DefaultPlugin(name="VolumeZone", first="1.27"),
        DefaultPlugin(name="NodeAffinity"),
    ),
    "filter": (
        DefaultPlugin(name="NodeUnschedulable"),
        DefaultPlugin(name="NodeName"),
        DefaultPlugin(name="TaintToleration"),
        DefaultPlugin(name="NodeAffinity"),
        DefaultPlugin(name="NodePorts"),
        DefaultPlugin(name="NodeResourcesFit"),
        DefaultPlugin(name="VolumeRestrictions"),
        DefaultPlugin(name="EBSLimits"),
        DefaultPlugin(name="GCEPDLimits"),
        DefaultPlugin(name="NodeVolumeLimits"),
        DefaultPlugin(name="AzureDiskLimits"),
        DefaultPlugin(name="VolumeBinding"),
        DefaultPlugin(name="VolumeZone"),
        DefaultPlugin(name="PodTopologySpread"),
        DefaultPlugin(name="InterPodAffinity"),
    ),
    "postFilter": (DefaultPlugin(name="DefaultPreemption"),),
    "preScore": (
        DefaultPlugin(name="InterPodAffinity"),
        DefaultPlugin(name="PodTopologySpread"),
        DefaultPlugin(name="TaintToleration"),
        DefaultPlugin(name="NodeAffinity"),
        DefaultPlugin(name="NodeResourcesFit", first="1.27"),
        DefaultPlugin(name="NodeResourcesBalancedAllocation", first="1.27"),
    ),
    "score": (
        DefaultPlugin(name="NodeResourcesBalancedAllocation", weight=1),
        DefaultPlugin(name="ImageLocality", weight=1),
        DefaultPlugin(name="InterPodAffinity", weight=1),
        DefaultPlugin(name="NodeResourcesFit", weight=1),
        DefaultPlugin(name="NodeAffinity", weight=1),
        DefaultPlugin(name="PodTopologySpread", weight=2),
        DefaultPlugin(name="TaintToleration", weight=1),
        DefaultPlugin(name="VolumeBinding", weight=1, gate="VolumeCapacityPriority"),
    ),
    "reserve": (DefaultPlugin(name="VolumeBinding"),),
    "preBind": (DefaultPlugin(name="VolumeBinding"),),
    "bind": (DefaultPlugin(name="DefaultBinder"),),
}
"""v1beta2 has no MultiPoint: a list for each extension point."""

IN_TREE: Mapping[str, str] = {
    "AzureDiskLimits ..1.31": "preFilter 1.28.., filter",
    "CinderLimits ..1.31": "preFilter 1.28.., filter",
    "DefaultBinder": "bind",
    "DefaultPreemption": "preEnqueue 1.32.., postFilter",
    "DynamicResources": "preEnqueue 1.28.., preFilter, filter, postFilter, preScore ..1.31, score 1.35.., reserve, "
    "preBind 1.30.., postBind ..1.31",
    "EBSLimits ..1.31": "preFilter 1.28.., filter",
    "GCEPDLimits ..1.31": "preFilter 1.28.., filter",
    "GangScheduling 1.35..": "preEnqueue, permit, reserve ..1.35",
    "ImageLocality": "score",
    "InterPodAffinity": "preFilter, filter, preScore, score",
    "NodeAffinity": "preFilter, filter, preScore, score",
    "NodeDeclaredFeatures 1.35..": "preFilter, filter",
    "NodeName": "filter",
    "NodePorts": "preFilter, filter",
    "NodeResourcesBalancedAllocation": "preScore 1.27.., score",
    "NodeResourcesFit": "preFilter, filter, preScore 1.27.., score, placementScore 1.36..",
    "NodeUnschedulable": "filter",
    "NodeVolumeLimits": "preFilter 1.28.., filter",
    "PodGroupPodsCount 1.36..": "placementScore",
    "PodTopologySpread": "preFilter, filter, preScore, score",
    "PrioritySort": "queueSort",
    "SchedulingGates": "preEnqueue",
    "SelectorSpread ..1.28": "preScore, score",
    "TaintToleration": "filter, preScore, score",
    "TopologyPlacementGenerator 1.36..": "placementGenerate",
    "VolumeBinding": "preFilter, filter, preScore 1.30.., score, reserve, preBind",
    "VolumeRestrictions": "preFilter, filter",
    "VolumeZone": "preFilter 1.27.., filter",
}
"""Plugin to its extension points. `1.28..` is from that release on, `..1.31` up to it."""

FIRST_FILTER_SKIP: Mapping[str, str] = {
    "DynamicResources": "1.27",
    "InterPodAffinity": "1.27",
    "NodeAffinity": "1.27",
    "NodePorts": "1.28",
    "PodTopologySpread": "1.28",
    "VolumeBinding": "1.27",
    "VolumeRestrictions": "1.28",
}
"""Plugins whose PreFilter once had no Skip, to the first release in which it has one. Before, Filter says Success."""

FIRST_SCORE_SKIP: Mapping[str, str] = {
    "InterPodAffinity": "1.28",
    "NodeAffinity": "1.30",
    "NodeResourcesBalancedAllocation": "1.33",
    "PodTopologySpread": "1.28",
}
"""The same for PreScore. Before, a plugin with nothing to say scores all the same."""

NO_LONGER_IN_V1 = (
    ("SelectorSpread", "1.26", "1.28"),
    ("AzureDiskLimits", "1.31", ""),
    ("CinderLimits", "1.31", ""),
    ("EBSLimits", "1.31", ""),
    ("GCEPDLimits", "1.31", ""),
)
"""Plugins that a v1 configuration is told it may not name, in these releases (first, last)."""


def points_of(release: Minor) -> dict[str, frozenset[str]]:
    """The plugins that a release has, each with its extension points."""
    found: dict[str, frozenset[str]] = {}
    for plugin, points in IN_TREE.items():
        name, exists = _dated_word(plugin, release)
        if exists:
            words = (_dated_word(word, release) for word in points.split(", "))
            found[name] = frozenset(point for point, taken in words if taken)
    return found


def _dated_word(text: str, release: Minor) -> tuple[str, bool]:
    """`preFilter 1.28..` is `preFilter`, and whether it is there in the release."""
    word, _, dates = text.partition(" ")
    first, _, last = dates.partition("..")
    return word, holds(release, first=first, last=last)
