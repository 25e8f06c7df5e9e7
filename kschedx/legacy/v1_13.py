"""kube-scheduler 1.13 (pkg/scheduler/algorithmprovider/defaults/defaults.go, algorithm/predicates/error.go)."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.kube.scalars import MAX_INT64
from kschedx.legacy.affinity_predicates import MatchInterPodAffinity
from kschedx.legacy.interface import MAX_PRIORITY, Predicate, Priority, Provider, Texts
from kschedx.legacy.node_predicates import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    GeneralPredicates,
    HostName,
    MatchNodeSelector,
    PodFitsHostPorts,
    PodFitsResources,
    PodToleratesNodeTaints,
)
from kschedx.legacy.priorities import (
    BalancedResourceAllocation,
    EqualPriority,
    ImageLocalityPriority,
    InterPodAffinityPriority,
    LeastRequestedPriority,
    MostRequestedPriority,
    NodeAffinityPriority,
    NodePreferAvoidPodsPriority,
    RequestedToCapacityRatio,
    ResourceLimitsPriority,
    SelectorSpreadPriority,
    ServiceAntiAffinity,
    ServiceSpreadingPriority,
    TaintTolerationPriority,
)
from kschedx.legacy.stored import Schema
from kschedx.legacy.volume_predicates import (
    CheckVolumeBinding,
    MaxAzureDiskVolumeCount,
    MaxCSIVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
    NoDiskConflict,
    NoVolumeZoneConflict,
)
from kschedx.releases import Release

ORDER = (
    "CheckNodeCondition",
    "CheckNodeUnschedulable",
    "GeneralPredicates",
    "HostName",
    "PodFitsHostPorts",
    "MatchNodeSelector",
    "PodFitsResources",
    "NoDiskConflict",
    "PodToleratesNodeTaints",
    "PodToleratesNodeNoExecuteTaints",
    "CheckNodeLabelPresence",
    "CheckServiceAffinity",
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxCSIVolumeCountPred",
    "MaxAzureDiskVolumeCount",
    "CheckVolumeBinding",
    "NoVolumeZoneConflict",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
    "MatchInterPodAffinity",
)

TEXTS = Texts(
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

PREDICATES: Mapping[str, type[Predicate]] = {
    "GeneralPredicates": GeneralPredicates,
    "HostName": HostName,
    "PodFitsHostPorts": PodFitsHostPorts,
    "PodFitsPorts": PodFitsHostPorts,
    "MatchNodeSelector": MatchNodeSelector,
    "PodFitsResources": PodFitsResources,
    "NoDiskConflict": NoDiskConflict,
    "PodToleratesNodeTaints": PodToleratesNodeTaints,
    "MaxEBSVolumeCount": MaxEBSVolumeCount,
    "MaxGCEPDVolumeCount": MaxGCEPDVolumeCount,
    "MaxCSIVolumeCountPred": MaxCSIVolumeCount,
    "MaxAzureDiskVolumeCount": MaxAzureDiskVolumeCount,
    "CheckVolumeBinding": CheckVolumeBinding,
    "NoVolumeZoneConflict": NoVolumeZoneConflict,
    "MatchInterPodAffinity": MatchInterPodAffinity,
}

BY_TAINTS: Mapping[str, type[Predicate]] = {"CheckNodeUnschedulable": CheckNodeUnschedulable}
"""With TaintNodesByCondition, taints replace conditions."""

BY_CONDITIONS: Mapping[str, type[Predicate]] = {
    "CheckNodeCondition": CheckNodeCondition,
    "CheckNodeMemoryPressure": CheckNodeMemoryPressure,
    "CheckNodePIDPressure": CheckNodePIDPressure,
    "CheckNodeDiskPressure": CheckNodeDiskPressure,
}
"""Without it."""

NOT_BY_DEFAULT = frozenset({"HostName", "PodFitsHostPorts", "PodFitsPorts", "MatchNodeSelector", "PodFitsResources"})

PRIORITIES: Mapping[str, type[Priority]] = {
    "BalancedResourceAllocation": BalancedResourceAllocation,
    "EqualPriority": EqualPriority,
    "ImageLocalityPriority": ImageLocalityPriority,
    "InterPodAffinityPriority": InterPodAffinityPriority,
    "LeastRequestedPriority": LeastRequestedPriority,
    "MostRequestedPriority": MostRequestedPriority,
    "NodeAffinityPriority": NodeAffinityPriority,
    "NodePreferAvoidPodsPriority": NodePreferAvoidPodsPriority,
    "RequestedToCapacityRatioPriority": RequestedToCapacityRatio,
    "SelectorSpreadPriority": SelectorSpreadPriority,
    "ServiceSpreadingPriority": ServiceSpreadingPriority,
    "TaintTolerationPriority": TaintTolerationPriority,
}

DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
}


def provider(release: Release) -> Provider:
    """The scheduler with the gates of a release."""
    by_taints = release.enabled("TaintNodesByCondition")
    predicates = {**PREDICATES, **(BY_TAINTS if by_taints else BY_CONDITIONS)}
    limits: Mapping[str, type[Priority]] = {"ResourceLimitsPriority": ResourceLimitsPriority}
    extra = limits if release.enabled("ResourceLimitsPriorityFunction") else {}
    return Provider(
        predicates=predicates,
        priorities={**PRIORITIES, **extra},
        default_predicates=tuple(name for name in ORDER if name in predicates and name not in NOT_BY_DEFAULT),
        default_priorities={**DEFAULT_PRIORITIES, **dict.fromkeys(extra, 1)},
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
        texts=TEXTS,
        fills_in_lists=True,
        reads_policy_settings=True,
        service_anti_affinity=ServiceAntiAffinity,
        has_ratio_argument=True,
        checks_claims_first=True,
        lists_usable_nodes=False,
        preempts=release.enabled("PodPriority"),
        percentage_of_nodes_to_score=50,
        maximum_weight=MAX_INT64 // MAX_PRIORITY,
    )
