"""The default providers of kube-scheduler 1.13 and of 1.5, the original design.

Upstream: pkg/scheduler/algorithmprovider/defaults/defaults.go and algorithm/predicates/error.go, in 1.5 below plugin/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from kschedx.kube.scalars import MAX_INT64
from kschedx.legacy import affinity_predicates as pods
from kschedx.legacy import node_predicates as nodes
from kschedx.legacy import priorities as p
from kschedx.legacy import volume_predicates as volumes
from kschedx.legacy.interface import MAX_PRIORITY, Predicate, Priority, Provider, Texts
from kschedx.legacy.stored import Schema
from kschedx.releases import Release

T = TypeVar("T")


def _named(*classes: type[T]) -> dict[str, type[T]]:
    return {cls.__name__: cls for cls in classes}


# Common to both versions.

NOT_BY_DEFAULT = frozenset({"HostName", "PodFitsHostPorts", "PodFitsPorts", "MatchNodeSelector", "PodFitsResources"})
_PREDICATES: Mapping[str, type[Predicate]] = {
    **_named(nodes.HostName, nodes.PodFitsHostPorts, nodes.PodFitsResources, volumes.NoDiskConflict),
    "PodFitsPorts": nodes.PodFitsHostPorts,
}
_PRIORITIES: Mapping[str, type[Priority]] = _named(
    p.EqualPriority, p.InterPodAffinityPriority, p.LeastRequestedPriority, p.MostRequestedPriority,
    p.NodePreferAvoidPodsPriority,
)  # fmt: skip
_WEIGHTS: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}

# 1.13

ORDER = (
    "CheckNodeCondition", "CheckNodeUnschedulable", "GeneralPredicates", "HostName", "PodFitsHostPorts",
    "MatchNodeSelector", "PodFitsResources", "NoDiskConflict", "PodToleratesNodeTaints",
    "PodToleratesNodeNoExecuteTaints", "CheckNodeLabelPresence", "CheckServiceAffinity", "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "CheckVolumeBinding",
    "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure", "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
)  # fmt: skip
_BY_TAINTS = _named(nodes.CheckNodeUnschedulable)
"""With TaintNodesByCondition, taints replace conditions."""
_BY_CONDITIONS = _named(
    nodes.CheckNodeCondition, nodes.CheckNodeMemoryPressure, nodes.CheckNodePIDPressure, nodes.CheckNodeDiskPressure
)
"""Conditions without TaintNodesByCondition."""


_SENTENCES = Texts(
    host_name="node(s) didn't match the requested hostname",
    host_ports="node(s) didn't have free ports for the requested pod ports",
    node_selector="node(s) didn't match node selector",
    node_label="node(s) didn't have the requested labels",
    taints="node(s) had taints that the pod didn't tolerate",
    disk_conflict="node(s) had no available disk",
    volume_count="node(s) exceed max volume count",
    volume_zone="node(s) had no available volume zone",
    volume_binding="node(s) didn't find available persistent volumes to bind",
    volume_node_affinity="node(s) had volume node affinity conflict",
    service_affinity="node(s) didn't match service affinity",
    pod_affinity="node(s) didn't match pod affinity/anti-affinity",
    own_affinity="node(s) didn't match pod affinity rules",
    own_anti_affinity="node(s) didn't match pod anti-affinity rules",
    existing_anti_affinity="node(s) didn't satisfy existing pods anti-affinity rules",
    memory_pressure="node(s) had memory pressure",
    disk_pressure="node(s) had disk pressure",
    pid_pressure="node(s) had pid pressure",
    unschedulable="node(s) were unschedulable",
    not_ready="node(s) were not ready",
    out_of_disk="node(s) were out of disk space",
    network_unavailable="node(s) had unavailable network",
)


def _v1_13(release: Release) -> Provider:
    """Return the scheduler of 1.13 with the gates of a release."""
    by_taints = release.enabled("TaintNodesByCondition")
    predicates: dict[str, type[Predicate]] = {
        **_PREDICATES,
        **_named(
            nodes.GeneralPredicates, nodes.MatchNodeSelector, nodes.PodToleratesNodeTaints, volumes.MaxEBSVolumeCount,
            volumes.MaxGCEPDVolumeCount, volumes.MaxAzureDiskVolumeCount, volumes.CheckVolumeBinding,
            volumes.NoVolumeZoneConflict, pods.MatchInterPodAffinity,
        ),
        "MaxCSIVolumeCountPred": volumes.MaxCSIVolumeCount,
        **(_BY_TAINTS if by_taints else _BY_CONDITIONS),
    }  # fmt: skip
    limits = _named(p.ResourceLimitsPriority) if release.enabled("ResourceLimitsPriorityFunction") else {}
    return Provider(
        predicates=predicates,
        priorities={
            **_PRIORITIES,
            **_named(
                p.BalancedResourceAllocation, p.ImageLocalityPriority, p.NodeAffinityPriority, p.SelectorSpreadPriority,
                p.ServiceSpreadingPriority, p.TaintTolerationPriority,
            ),
            "RequestedToCapacityRatioPriority": p.RequestedToCapacityRatio,
            **limits,
        },
        default_predicates=tuple(name for name in ORDER if name in predicates and name not in NOT_BY_DEFAULT),
        default_priorities={**_WEIGHTS, "ImageLocalityPriority": 1, **dict.fromkeys(limits, 1)},
        mandatory_predicates=("CheckNodeUnschedulable", "PodToleratesNodeTaints")
        if by_taints
        else ("CheckNodeCondition",),
        order=ORDER,
        schema=Schema(
            counts_every_resource=True,
            reads_init_containers=True,
            reads_node_fields=True,
            reads_port_details=True,
            knows_shared_iscsi=True,
        ),
        texts=_SENTENCES,
        fills_in_lists=True,
        reads_policy_settings=True,
        service_anti_affinity=p.ServiceAntiAffinity,
        has_ratio_argument=True,
        checks_claims_first=True,
        preempts=release.enabled("PodPriority"),
        percentage_of_nodes_to_score=50,
        maximum_weight=MAX_INT64 // MAX_PRIORITY,
    )  # fmt: skip


# 1.5


_NAMES = Texts(
    host_name="HostName",
    host_ports="PodFitsHostPorts",
    node_selector="MatchNodeSelector",
    node_label="CheckNodeLabelPresence",
    taints="PodToleratesNodeTaints",
    disk_conflict="NoDiskConflict",
    volume_count="MaxVolumeCount",
    volume_zone="NoVolumeZoneConflict",
    service_affinity="CheckServiceAffinity",
    pod_affinity="MatchInterPodAffinity",
    memory_pressure="NodeUnderMemoryPressure",
    disk_pressure="NodeUnderDiskPressure",
)


def _v1_5(release: Release) -> Provider:
    """Return the scheduler of 1.5, in which no gate affects decisions."""
    predicates: dict[str, type[Predicate]] = {
        **_PREDICATES,
        **_named(nodes.CheckNodeDiskPressure, nodes.CheckNodeMemoryPressure),
        "GeneralPredicates": nodes.GeneralPredicatesUpToError,
        "MatchInterPodAffinity": pods.MatchInterPodAffinityByTerm,
        "MatchNodeSelector": nodes.MatchNodeSelectorUpToError,
        "MaxEBSVolumeCount": volumes.StrictMaxEBSVolumeCount,
        "MaxGCEPDVolumeCount": volumes.StrictMaxGCEPDVolumeCount,
        "NoVolumeZoneConflict": volumes.StrictNoVolumeZoneConflict,
        "PodToleratesNodeTaints": nodes.PodToleratesNodeTaintsByKey,
    }
    return Provider(
        predicates=predicates,
        priorities={
            **_PRIORITIES,
            "BalancedResourceAllocation": p.EarlyBalancedResourceAllocation,
            "ImageLocalityPriority": p.EarlyImageLocalityPriority,
            "NodeAffinityPriority": p.EarlyNodeAffinityPriority,
            "SelectorSpreadPriority": p.EarlySelectorSpreadPriority,
            "ServiceSpreadingPriority": p.EarlyServiceSpreadingPriority,
            "TaintTolerationPriority": p.EarlyTaintTolerationPriority,
        },
        default_predicates=tuple(sorted(predicates.keys() - NOT_BY_DEFAULT)),
        default_priorities=_WEIGHTS,
        mandatory_predicates=(),
        order=None,
        schema=Schema(),
        texts=_NAMES,
        service_anti_affinity=p.EarlyServiceAntiAffinity,
        lists_usable_nodes=True,
        percentage_of_nodes_to_score=100,
        maximum_weight=MAX_INT64,
    )


PROVIDERS: Mapping[str, Callable[[Release], Provider]] = {"1.13": _v1_13, "1.5": _v1_5}
"""Providers by the version that each is modeled on."""
