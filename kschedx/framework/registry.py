"""Plugin names to classes: the in-tree plugins, and those that other packages register by entry point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module

from kschedx.errors import ConfigError, nearest
from kschedx.framework import interface
from kschedx.framework.interface import Plugin

IN_TREE: Mapping[str, str] = {
    "SchedulingGates": "kschedx.plugins.scheduling_gates",
    "PrioritySort": "kschedx.plugins.priority_sort",
    "NodeUnschedulable": "kschedx.plugins.node_unschedulable",
    "NodeName": "kschedx.plugins.node_name",
    "TaintToleration": "kschedx.plugins.taint_toleration",
    "NodeAffinity": "kschedx.plugins.node_affinity",
    "NodePorts": "kschedx.plugins.node_ports",
    "NodeResourcesFit": "kschedx.plugins.node_resources_fit",
    "NodeResourcesBalancedAllocation": "kschedx.plugins.node_resources_balanced_allocation",
    "PodTopologySpread": "kschedx.plugins.pod_topology_spread",
    "InterPodAffinity": "kschedx.plugins.inter_pod_affinity",
    "ImageLocality": "kschedx.plugins.image_locality",
    "NodeDeclaredFeatures": "kschedx.plugins.node_declared_features",
    "DefaultPreemption": "kschedx.plugins.default_preemption",
    "DefaultBinder": "kschedx.plugins.default_binder",
    "VolumeRestrictions": "kschedx.plugins.volume_restrictions",
    "NodeVolumeLimits": "kschedx.plugins.node_volume_limits",
    "EBSLimits": "kschedx.plugins.node_volume_limits",
    "GCEPDLimits": "kschedx.plugins.node_volume_limits",
    "AzureDiskLimits": "kschedx.plugins.node_volume_limits",
    "CinderLimits": "kschedx.plugins.node_volume_limits",
    "SelectorSpread": "kschedx.plugins.selector_spread",
    "VolumeBinding": "kschedx.plugins.volume_binding",
    "VolumeZone": "kschedx.plugins.volume_zone",
    "DynamicResources": "kschedx.plugins.dynamic_resources",
    "GangScheduling": "kschedx.plugins.gang_scheduling",
}
"""Upstream's name to the module that holds the class of the same name."""

ENTRY_POINTS = "kschedx.plugins"
"""The entry point group in which another package registers `Name = module:Class`."""

POINTS: Mapping[str, type[Plugin]] = {
    "preEnqueue": interface.PreEnqueuePlugin,
    "queueSort": interface.QueueSortPlugin,
    "preFilter": interface.PreFilterPlugin,
    "filter": interface.FilterPlugin,
    "postFilter": interface.PostFilterPlugin,
    "preScore": interface.PreScorePlugin,
    "score": interface.ScorePlugin,
    "reserve": interface.ReservePlugin,
    "permit": interface.PermitPlugin,
    "preBind": interface.PreBindPlugin,
    "bind": interface.BindPlugin,
    "postBind": interface.PostBindPlugin,
}
"""Extension point, as a configuration spells it, to the class that a plugin of it extends."""


@cache
def plugin_class(name: str) -> type[Plugin]:
    """The class of a plugin. Raises `ConfigError` for a name that nobody registered."""
    module = IN_TREE.get(name)
    found: object = getattr(import_module(module), name) if module else _third_party().get(name)
    if found is None:
        raise ConfigError(f'plugin "{name}" is not known', hint=nearest(name, [*IN_TREE, *_third_party()]))
    if not (isinstance(found, type) and issubclass(found, Plugin)):
        raise ConfigError(f'plugin "{name}" is registered as {found!r}, which is no kschedx Plugin')
    return found


@cache
def _third_party() -> Mapping[str, object]:
    from importlib.metadata import entry_points  # slow to load, and seldom needed

    return {point.name: point.load() for point in entry_points(group=ENTRY_POINTS)}


def third_party_points() -> Mapping[str, frozenset[str]]:
    """Plugins of other packages to the extension points that they implement."""
    return {
        name: frozenset(point for point, base in POINTS.items() if isinstance(cls, type) and issubclass(cls, base))
        for name, cls in _third_party().items()
    }
