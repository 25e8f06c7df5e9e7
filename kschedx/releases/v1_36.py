"""Kubernetes 1.36: the default profile, what each in-tree plugin implements, texts that other releases word otherwise.

The order of the default plugins decides which reason a node gets. Upstream: pkg/scheduler/apis/config/v1/
default_plugins.go, pkg/scheduler/framework/plugins.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.releases.release import DefaultPlugin, Messages

VERSION = "1.36"

CONFIG_VERSIONS = ("kubescheduler.config.k8s.io/v1",)

DEFAULT_PLUGINS = (
    DefaultPlugin(name="SchedulingGates"),
    DefaultPlugin(name="PrioritySort"),
    DefaultPlugin(name="NodeUnschedulable"),
    DefaultPlugin(name="NodeName"),
    DefaultPlugin(name="TaintToleration", weight=3),
    DefaultPlugin(name="NodeAffinity", weight=2),
    DefaultPlugin(name="NodePorts"),
    DefaultPlugin(name="NodeResourcesFit", weight=1),
    DefaultPlugin(name="VolumeRestrictions"),
    DefaultPlugin(name="NodeVolumeLimits"),
    DefaultPlugin(name="VolumeBinding"),
    DefaultPlugin(name="VolumeZone"),
    DefaultPlugin(name="PodTopologySpread", weight=2),
    DefaultPlugin(name="InterPodAffinity", weight=2),
    DefaultPlugin(name="DynamicResources", weight=2, gate="DynamicResourceAllocation"),
    DefaultPlugin(name="DefaultPreemption"),
    DefaultPlugin(name="NodeResourcesBalancedAllocation", weight=1),
    DefaultPlugin(name="ImageLocality", weight=1),
    DefaultPlugin(name="DefaultBinder"),
    DefaultPlugin(name="NodeDeclaredFeatures", gate="NodeDeclaredFeatures"),
    DefaultPlugin(name="GangScheduling", gate="GangScheduling"),
    DefaultPlugin(name="TopologyPlacementGenerator", gate="TopologyAwareWorkloadScheduling"),
    DefaultPlugin(name="PodGroupPodsCount", weight=1, gate="TopologyAwareWorkloadScheduling"),
)

PLUGIN_POINTS: Mapping[str, frozenset[str]] = {
    "DefaultBinder": frozenset({"bind"}),
    "DefaultPreemption": frozenset({"preEnqueue", "postFilter"}),
    "DynamicResources": frozenset({"preEnqueue", "preFilter", "filter", "postFilter", "score", "reserve", "preBind"}),
    "GangScheduling": frozenset({"preEnqueue", "permit"}),
    "ImageLocality": frozenset({"score"}),
    "InterPodAffinity": frozenset({"preFilter", "filter", "preScore", "score"}),
    "NodeAffinity": frozenset({"preFilter", "filter", "preScore", "score"}),
    "NodeDeclaredFeatures": frozenset({"preFilter", "filter"}),
    "NodeName": frozenset({"filter"}),
    "NodePorts": frozenset({"preFilter", "filter"}),
    "NodeResourcesBalancedAllocation": frozenset({"preScore", "score"}),
    "NodeResourcesFit": frozenset({"preFilter", "filter", "preScore", "score", "placementScore"}),
    "NodeUnschedulable": frozenset({"filter"}),
    "NodeVolumeLimits": frozenset({"preFilter", "filter"}),
    "PodGroupPodsCount": frozenset({"placementScore"}),
    "PodTopologySpread": frozenset({"preFilter", "filter", "preScore", "score"}),
    "PrioritySort": frozenset({"queueSort"}),
    "SchedulingGates": frozenset({"preEnqueue"}),
    "TaintToleration": frozenset({"filter", "preScore", "score"}),
    "TopologyPlacementGenerator": frozenset({"placementGenerate"}),
    "VolumeBinding": frozenset({"preFilter", "filter", "preScore", "score", "reserve", "preBind"}),
    "VolumeRestrictions": frozenset({"preFilter", "filter"}),
    "VolumeZone": frozenset({"preFilter", "filter"}),
}

REMOVED_PLUGINS = ("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits")

MESSAGES = Messages(
    untolerated_taint="node(s) had untolerated taint(s)",
    volume_node_affinity_conflict="node(s) didn't match PersistentVolume's node affinity",
    read_write_once_pod_in_use=(
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    ),
    unmatched_declared_features="node(s) didn't match Pod's required features",
)
