"""The table of plugins: one row each, with its module, its extension points, and its Kubernetes versions.

The rows are in the order of the default profile, which decides which reason a node gets. Upstream:
pkg/scheduler/apis/config/*/default_plugins.go, pkg/scheduler/framework/plugins/registry.go, and the interfaces that
each plugin asserts.

Ranges of versions are written `1.28..` (from this version on), `..1.31` (up to it), and `1.26..1.28`. An empty string
is every version.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto

from msgspec import Struct
from msgspec.structs import replace

from kschedx.releases.dates import Minor, is_in_range


class _Default(Struct, frozen=True, kw_only=True):
    """How a default profile enables a plugin."""

    weight: int = 0  # 0 if upstream sets none; a score plugin then has weight 1
    gate: str | None = None  # the feature gate without which the entry is absent
    releases: str = ""
    at_end: bool = False  # the entry follows all others, whatever the position of the row


class DefaultPlugin(_Default, frozen=True, kw_only=True):
    """An entry with the plugin's name, for lists outside a row."""

    name: str

    def is_in(self, release: Minor) -> bool:
        return is_in_range(release, self.releases)


KUBERNETES = "Kubernetes"
SCHEDULER_PLUGINS = "scheduler-plugins"  # the project kubernetes-sigs/scheduler-plugins


class Trait(Flag):
    """A property of a plugin that decides what else can be concluded from its rejections."""

    ABOUT_THE_NODE = auto()
    """It rejects a node because of the node's properties or free resources: another node may pass."""
    ABOUT_OTHER_NODES = auto()  # whether it rejects a node depends on other nodes
    ABOUT_LABELS_AND_TAINTS = auto()  # the labels and taints of a new node can satisfy the plugin
    SAME_ON_NEW_NODES = auto()
    """It gives every new node of a group the same result, or a result that can be counted, for a pod without volumes,
    claims, and host ports."""
    DAEMON_SET_CONTROLLER = auto()
    """The DaemonSet controller also applies the rule: it creates no pod for a node that the plugin rejects."""
    KUBELET = auto()  # the kubelet also applies the rule, when the pod arrives (pkg/kubelet/lifecycle/predicate.go)
    FILTERS_ALONE = auto()  # Filter computes what PreFilter would have prepared; without this trait, it fails
    SCORES_ALONE = auto()  # Score computes what PreScore would have prepared
    SCORES_REQUESTS = auto()  # Score compares what the pods on a node request


class PluginRow(Struct, frozen=True, kw_only=True):
    """A plugin. A plugin of a project other than Kubernetes runs only if a configuration names it."""

    name: str
    project: str = KUBERNETES
    follows: str = ""  # the version of another project that the module follows
    lacks: str = ""  # the extension points that kschedx does not implement
    points: str  # its extension points, each with the versions in which it runs there: `preFilter 1.28.., filter`
    module: str = ""  # the module in `kschedx.plugins`, if it is not the name in snake_case; `none` if kschedx has none
    releases: str = ""
    default: tuple[_Default, ...] = ()  # its entries in the default MultiPoint list of v1 and v1beta3
    filter_can_skip: str = ""
    """The versions in which its PreFilter may return Skip. In others, Filter runs for every pod and returns Success."""
    score_can_skip: str = ""
    """The versions in which its PreScore may return Skip. In others, the plugin scores every pod."""
    refused_in_v1: str | None = None  # the versions in which a v1 configuration may not name the plugin
    traits: Trait = Trait(0)


_OF_THE_NODE = Trait.ABOUT_THE_NODE | Trait.SAME_ON_NEW_NODES
_CHECKED_AGAIN = Trait.DAEMON_SET_CONTROLLER | Trait.KUBELET


def _in_tree_limits(name: str) -> PluginRow:
    return PluginRow(
        name=name,
        points="preFilter 1.28.., filter",
        module="node_volume_limits",
        releases="..1.31",
        default=(_Default(releases="..1.30"),),
        refused_in_v1="1.31..",
        traits=Trait.SAME_ON_NEW_NODES,
    )


PLUGINS = (
    PluginRow(
        name="SchedulingGates",
        points="preEnqueue",
        default=(
            _Default(releases="1.30.."),
            _Default(gate="PodSchedulingReadiness", releases="..1.29", at_end=True),
        ),
    ),
    PluginRow(name="PrioritySort", points="queueSort", module="queue_sort", default=(_Default(),)),
    PluginRow(name="NodeUnschedulable", points="filter", default=(_Default(),), traits=_OF_THE_NODE),
    PluginRow(name="NodeName", points="filter", default=(_Default(),), traits=_OF_THE_NODE | _CHECKED_AGAIN),
    PluginRow(
        name="TaintToleration",
        points="filter, preScore, score",
        default=(_Default(weight=3),),
        traits=_OF_THE_NODE | _CHECKED_AGAIN | Trait.ABOUT_LABELS_AND_TAINTS,
    ),
    PluginRow(
        name="NodeAffinity",
        points="preFilter, filter, preScore, score",
        default=(_Default(weight=2),),
        filter_can_skip="1.27..",
        score_can_skip="1.30..",
        traits=_OF_THE_NODE | _CHECKED_AGAIN | Trait.ABOUT_LABELS_AND_TAINTS | Trait.FILTERS_ALONE | Trait.SCORES_ALONE,
    ),
    PluginRow(
        name="NodePorts",
        points="preFilter, filter",
        default=(_Default(),),
        filter_can_skip="1.28..",
        traits=_OF_THE_NODE | Trait.KUBELET,
    ),
    PluginRow(
        name="NodeResourcesFit",
        points="preFilter, filter, preScore 1.27.., score, placementScore 1.36..",
        default=(_Default(weight=1),),
        traits=_OF_THE_NODE | Trait.KUBELET | Trait.SCORES_ALONE | Trait.SCORES_REQUESTS,
    ),
    PluginRow(
        name="VolumeRestrictions",
        points="preFilter, filter",
        default=(_Default(),),
        filter_can_skip="1.28..",
        traits=Trait.SAME_ON_NEW_NODES,
    ),
    _in_tree_limits("EBSLimits"),
    _in_tree_limits("GCEPDLimits"),
    PluginRow(
        name="NodeVolumeLimits",
        points="preFilter 1.28.., filter",
        default=(_Default(),),
        traits=_OF_THE_NODE | Trait.FILTERS_ALONE,
    ),
    _in_tree_limits("AzureDiskLimits"),
    PluginRow(
        name="VolumeBinding",
        points="preFilter, filter, preScore 1.30.., score, reserve, preBind",
        default=(_Default(),),
        filter_can_skip="1.27..",
        traits=Trait.ABOUT_LABELS_AND_TAINTS | Trait.SAME_ON_NEW_NODES | Trait.SCORES_ALONE,
    ),
    PluginRow(
        name="VolumeZone",
        points="preFilter 1.27.., filter",
        default=(_Default(),),
        traits=_OF_THE_NODE | Trait.ABOUT_LABELS_AND_TAINTS | Trait.FILTERS_ALONE,
    ),
    PluginRow(
        name="PodTopologySpread",
        points="preFilter, filter, preScore, score",
        default=(_Default(weight=2),),
        filter_can_skip="1.28..",
        score_can_skip="1.28..",
        traits=Trait.ABOUT_OTHER_NODES | Trait.SAME_ON_NEW_NODES,
    ),
    PluginRow(
        name="InterPodAffinity",
        points="preFilter, filter, preScore, score",
        default=(_Default(weight=2),),
        filter_can_skip="1.27..",
        score_can_skip="1.28..",
        traits=Trait.ABOUT_OTHER_NODES | Trait.SAME_ON_NEW_NODES,
    ),
    PluginRow(
        name="DynamicResources",
        points="preEnqueue 1.28.., preFilter, filter, postFilter, preScore ..1.31, score 1.35.., reserve, "
        "preBind 1.30.., postBind ..1.31",
        default=(
            _Default(gate="DynamicResourceAllocation", releases="..1.34"),
            _Default(weight=2, gate="DynamicResourceAllocation", releases="1.35.."),
        ),
        filter_can_skip="1.27..",
        traits=Trait.SAME_ON_NEW_NODES,
    ),
    PluginRow(name="DefaultPreemption", points="preEnqueue 1.32.., postFilter", default=(_Default(),)),
    PluginRow(
        name="NodeResourcesBalancedAllocation",
        points="preScore 1.27.., score",
        default=(_Default(weight=1),),
        score_can_skip="1.33..",
        traits=Trait.SCORES_ALONE | Trait.SCORES_REQUESTS,
    ),
    PluginRow(name="ImageLocality", points="score", default=(_Default(weight=1),)),
    PluginRow(name="DefaultBinder", points="bind", default=(_Default(),)),
    PluginRow(
        name="NodeDeclaredFeatures",
        points="preFilter, filter",
        releases="1.35..",
        default=(_Default(gate="NodeDeclaredFeatures"),),
        traits=_OF_THE_NODE,
    ),
    PluginRow(
        name="GangScheduling",
        points="preEnqueue, permit, reserve ..1.35",
        releases="1.35..",
        default=(_Default(gate="GangScheduling"),),
    ),
    PluginRow(
        name="TopologyPlacementGenerator",
        points="placementGenerate",
        module="none",
        releases="1.36..",
        default=(_Default(gate="TopologyAwareWorkloadScheduling"),),
    ),
    PluginRow(
        name="PodGroupPodsCount",
        points="placementScore",
        module="none",
        releases="1.36..",
        default=(_Default(weight=1, gate="TopologyAwareWorkloadScheduling"),),
    ),
    replace(_in_tree_limits("CinderLimits"), default=(), traits=Trait(0)),
    PluginRow(name="SelectorSpread", points="preScore, score", releases="..1.28", refused_in_v1="1.26..1.28"),
    PluginRow(
        name="Coscheduling",
        project=SCHEDULER_PLUGINS,
        follows="0.35",
        points="queueSort, preFilter, postFilter, permit, reserve",
    ),
    PluginRow(
        name="CapacityScheduling", project=SCHEDULER_PLUGINS, follows="0.35", points="preFilter, postFilter, reserve"
    ),
    PluginRow(name="NodeResourcesAllocatable", project=SCHEDULER_PLUGINS, follows="0.35", points="score"),
    PluginRow(
        name="NodeResourceTopologyMatch",
        project=SCHEDULER_PLUGINS,
        follows="0.35",
        points="filter, score, reserve, postBind",
    ),
    PluginRow(name="PreemptionToleration", project=SCHEDULER_PLUGINS, follows="0.35", points="postFilter"),
    PluginRow(name="QOSSort", project=SCHEDULER_PLUGINS, follows="0.35", points="queueSort", module="queue_sort"),
)

OF_KOORDINATOR = frozenset({
    "DefaultPreBind", "DeviceShare", "ElasticQuota", "LoadAwareScheduling", "NodeNUMAResource", "NodeResourcesFitPlus",
    "Reservation", "ScarceResourceAvoidance",
})  # fmt: skip
"""Plugins of Koordinator. Its Coscheduling differs from that of scheduler-plugins."""
NOT_SIMULATED = {
    **dict.fromkeys(OF_KOORDINATOR, "Koordinator"),
    **dict.fromkeys((
        "LoadVariationRiskBalancing", "LowRiskOverCommitment", "NetworkOverhead", "NodeResourcesFitPlus", "Peaks",
        "PodState", "ScarceResourceAvoidance", "SySched", "TargetLoadPacking", "TopologicalSort",
    ), SCHEDULER_PLUGINS),
}  # fmt: skip
"""Known plugins without a `PluginRow` to their project."""


def _entries(names: str) -> tuple[DefaultPlugin, ...]:
    """The plugins in a text, each with its weight if upstream sets one: `ImageLocality 1, PodTopologySpread 2`."""
    pairs = (named.partition(" ") for named in names.split(", "))
    return tuple(DefaultPlugin(name=name, weight=int(weight or 0)) for name, _, weight in pairs)


V1BETA2_DEFAULT_PLUGINS: Mapping[str, tuple[DefaultPlugin, ...]] = {
    "preEnqueue": (DefaultPlugin(name="SchedulingGates", gate="PodSchedulingReadiness"),),
    "queueSort": _entries("PrioritySort"),
    "preFilter": (
        *_entries("NodeResourcesFit, NodePorts, VolumeRestrictions, PodTopologySpread, InterPodAffinity"),
        *_entries("VolumeBinding"),
        DefaultPlugin(name="VolumeZone", releases="1.27.."),
        *_entries("NodeAffinity"),
    ),
    "filter": _entries(
        "NodeUnschedulable, NodeName, TaintToleration, NodeAffinity, NodePorts, NodeResourcesFit, VolumeRestrictions, "
        "EBSLimits, GCEPDLimits, NodeVolumeLimits, AzureDiskLimits, VolumeBinding, VolumeZone, PodTopologySpread, "
        "InterPodAffinity"
    ),
    "postFilter": _entries("DefaultPreemption"),
    "preScore": (
        *_entries("InterPodAffinity, PodTopologySpread, TaintToleration, NodeAffinity"),
        DefaultPlugin(name="NodeResourcesFit", releases="1.27.."),
        DefaultPlugin(name="NodeResourcesBalancedAllocation", releases="1.27.."),
    ),
    "score": (
        *_entries("NodeResourcesBalancedAllocation 1, ImageLocality 1, InterPodAffinity 1, NodeResourcesFit 1"),
        *_entries("NodeAffinity 1, PodTopologySpread 2, TaintToleration 1"),
        DefaultPlugin(name="VolumeBinding", weight=1, gate="VolumeCapacityPriority"),
    ),
    "reserve": _entries("VolumeBinding"),
    "preBind": _entries("VolumeBinding"),
    "bind": _entries("DefaultBinder"),
}
"""The default plugins of v1beta2, which has no MultiPoint: one list for each extension point."""


def plugins_with(trait: Trait) -> frozenset[str]:
    """Return the names of the plugins with this trait, in any version."""
    return frozenset(row.name for row in PLUGINS if trait in row.traits)


def default_plugins(release: Minor) -> tuple[DefaultPlugin, ...]:
    """Return the MultiPoint list of v1 and v1beta3 in order, including entries behind gates."""
    entries = [(row.name, entry) for row in PLUGINS for entry in row.default if is_in_range(release, row.releases)]
    entries.sort(key=lambda named: named[1].at_end)
    return tuple(
        DefaultPlugin(name=name, weight=entry.weight, gate=entry.gate)
        for name, entry in entries
        if is_in_range(release, entry.releases)
    )


def points_of(release: Minor) -> dict[str, frozenset[str]]:
    """Return the plugins of a version, each with its extension points."""
    return {
        row.name: points_in(row, release)
        for row in PLUGINS
        if row.project == KUBERNETES and is_in_range(release, row.releases)
    }


def points_in(row: PluginRow, release: Minor) -> frozenset[str]:
    """Return the extension points of a plugin in a version that has it."""
    dated = (point.partition(" ") for point in row.points.split(", "))
    return frozenset(point for point, _, releases in dated if is_in_range(release, releases))
