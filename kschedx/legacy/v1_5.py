"""kube-scheduler 1.5, the original design (plugin/pkg/scheduler/algorithmprovider/defaults/defaults.go)."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.kube.scalars import MAX_INT64
from kschedx.legacy.affinity_predicates import MatchInterPodAffinityByTerm
from kschedx.legacy.interface import Predicate, Priority, Provider, Texts
from kschedx.legacy.node_predicates import (
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    GeneralPredicatesUpToError,
    HostName,
    MatchNodeSelectorUpToError,
    PodFitsHostPorts,
    PodFitsResources,
    PodToleratesNodeTaintsByKey,
)
from kschedx.legacy.priorities import (
    EarlyBalancedResourceAllocation,
    EarlyImageLocalityPriority,
    EarlyNodeAffinityPriority,
    EarlySelectorSpreadPriority,
    EarlyServiceAntiAffinity,
    EarlyServiceSpreadingPriority,
    EarlyTaintTolerationPriority,
    EqualPriority,
    InterPodAffinityPriority,
    LeastRequestedPriority,
    MostRequestedPriority,
    NodePreferAvoidPodsPriority,
)
from kschedx.legacy.stored import Schema
from kschedx.legacy.volume_predicates import (
    NoDiskConflict,
    StrictMaxEBSVolumeCount,
    StrictMaxGCEPDVolumeCount,
    StrictNoVolumeZoneConflict,
)
from kschedx.releases import Release

TEXTS = Texts(
    host_name="HostName",
    host_ports="PodFitsHostPorts",
    node_selector="MatchNodeSelector",
    node_label="CheckNodeLabelPresence",
    taints="PodToleratesNodeTaints",
    disk_conflict="NoDiskConflict",
    volume_count="MaxVolumeCount",
    volume_zone="NoVolumeZoneConflict",
    volume_binding="",
    volume_node_affinity="",
    service_affinity="CheckServiceAffinity",
    pod_affinity="MatchInterPodAffinity",
    own_affinity="",
    own_anti_affinity="",
    existing_anti_affinity="",
    memory_pressure="NodeUnderMemoryPressure",
    disk_pressure="NodeUnderDiskPressure",
    pid_pressure="",
    unschedulable="",
    not_ready="",
    out_of_disk="",
    network_unavailable="",
)

PREDICATES: Mapping[str, type[Predicate]] = {
    "CheckNodeDiskPressure": CheckNodeDiskPressure,
    "CheckNodeMemoryPressure": CheckNodeMemoryPressure,
    "GeneralPredicates": GeneralPredicatesUpToError,
    "HostName": HostName,
    "MatchInterPodAffinity": MatchInterPodAffinityByTerm,
    "MatchNodeSelector": MatchNodeSelectorUpToError,
    "MaxEBSVolumeCount": StrictMaxEBSVolumeCount,
    "MaxGCEPDVolumeCount": StrictMaxGCEPDVolumeCount,
    "NoDiskConflict": NoDiskConflict,
    "NoVolumeZoneConflict": StrictNoVolumeZoneConflict,
    "PodFitsHostPorts": PodFitsHostPorts,
    "PodFitsPorts": PodFitsHostPorts,
    "PodFitsResources": PodFitsResources,
    "PodToleratesNodeTaints": PodToleratesNodeTaintsByKey,
}

NOT_BY_DEFAULT = frozenset({"HostName", "PodFitsHostPorts", "PodFitsPorts", "MatchNodeSelector", "PodFitsResources"})

PRIORITIES: Mapping[str, type[Priority]] = {
    "BalancedResourceAllocation": EarlyBalancedResourceAllocation,
    "EqualPriority": EqualPriority,
    "ImageLocalityPriority": EarlyImageLocalityPriority,
    "InterPodAffinityPriority": InterPodAffinityPriority,
    "LeastRequestedPriority": LeastRequestedPriority,
    "MostRequestedPriority": MostRequestedPriority,
    "NodeAffinityPriority": EarlyNodeAffinityPriority,
    "NodePreferAvoidPodsPriority": NodePreferAvoidPodsPriority,
    "SelectorSpreadPriority": EarlySelectorSpreadPriority,
    "ServiceSpreadingPriority": EarlyServiceSpreadingPriority,
    "TaintTolerationPriority": EarlyTaintTolerationPriority,
}

DEFAULT_PRIORITIES: Mapping[str, int] = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}


def provider(release: Release) -> Provider:
    """The scheduler; it has no gate that decides anything."""
    return Provider(
        predicates=PREDICATES,
        priorities=PRIORITIES,
        default_predicates=tuple(sorted(PREDICATES.keys() - NOT_BY_DEFAULT)),
        default_priorities=DEFAULT_PRIORITIES,
        mandatory_predicates=(),
        order=None,
        schema=Schema(
            counts_every_resource=False,
            reads_init_containers=False,
            reads_node_fields=False,
            reads_port_details=False,
            knows_shared_iscsi=False,
        ),
        texts=TEXTS,
        fills_in_lists=False,
        reads_policy_settings=False,
        service_anti_affinity=EarlyServiceAntiAffinity,
        has_ratio_argument=False,
        checks_claims_first=False,
        lists_usable_nodes=True,
        preempts=False,
        percentage_of_nodes_to_score=100,
        maximum_weight=MAX_INT64,
    )
