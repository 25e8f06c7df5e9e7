"""Every reason a plugin can have, as facts; a module per family.

A finding holds numbers, names and tuples, no sentence: kube-scheduler's text, our words, colour and JSON are separate
readers of it. `reason` is the stable id that `kschedx reason ID` explains and that JSON carries. `render/words` forks
over the union and ends in `assert_never`, so a finding without words does not pass the type checker.

Structs rather than dataclasses, which take a hundred times longer to define: every start-up would feel it.
"""

from kschedx.findings.devices import (
    CounterShortage,
    DeviceClaimBeingDeleted,
    DeviceClaimNotCreated,
    DeviceClaimNotFound,
    DeviceClaimNotOwned,
    DeviceClaimOutOfReach,
    DeviceClassNotFound,
    DeviceFinding,
    DeviceHolder,
    DeviceSelectorFailed,
    DeviceShortage,
    DevicesToAllocate,
    InsufficientDevices,
)
from kschedx.findings.extensions import (
    DroppedByExtender,
    ElasticQuotaExceeded,
    Explained,
    ExtenderFinding,
    GangResourcesShort,
    GangTooSmall,
    NumaMisfit,
    PluginFinding,
    PluginMessage,
    RefusedByExtender,
    ResourceGap,
    SchedulerPluginsFinding,
)
from kschedx.findings.nodes import (
    HostPortConflict,
    InsufficientResource,
    MissingNodeFeatures,
    NodeAffinityMismatch,
    NodeFinding,
    NodeNameMismatch,
    NodesExcluded,
    NodeUnschedulable,
    PodFinding,
    PodGroupIncomplete,
    RequirementMatch,
    ResourceFinding,
    SchedulingGated,
    TermMatch,
    TooManyPods,
    UntoleratedTaint,
)
from kschedx.findings.topology import (
    DomainCount,
    ExistingAntiAffinityConflict,
    PodAffinityUnsatisfied,
    PodAntiAffinityConflict,
    TopologyFinding,
    TopologyLabelMissing,
    TopologySpreadSkew,
)
from kschedx.findings.volumes import (
    AttachedVolume,
    ClaimBeingDeleted,
    ClaimFacts,
    ClaimFinding,
    ClaimInUse,
    ClaimLost,
    ClaimNotFound,
    ClaimNotOwned,
    ClaimUnbound,
    DiskConflict,
    DriverNotInstalled,
    InsufficientStorageCapacity,
    LostCount,
    NoMatchingVolume,
    ProvisioningTopologyMismatch,
    SelectedNodeMismatch,
    StorageCapacity,
    VolumeCandidate,
    VolumeFinding,
    VolumeLimitExceeded,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
    VolumeZoneMismatch,
)

Finding = (
    PodFinding
    | NodeFinding
    | ResourceFinding
    | TopologyFinding
    | ClaimFinding
    | VolumeFinding
    | DeviceFinding
    | ExtenderFinding
    | SchedulerPluginsFinding
    | PluginFinding
    | PluginMessage
)

__all__ = [
    "AttachedVolume",
    "ClaimBeingDeleted",
    "ClaimFacts",
    "ClaimFinding",
    "ClaimInUse",
    "ClaimLost",
    "ClaimNotFound",
    "ClaimNotOwned",
    "ClaimUnbound",
    "CounterShortage",
    "DeviceClaimBeingDeleted",
    "DeviceClaimNotCreated",
    "DeviceClaimNotFound",
    "DeviceClaimNotOwned",
    "DeviceClaimOutOfReach",
    "DeviceClassNotFound",
    "DeviceFinding",
    "DeviceHolder",
    "DeviceSelectorFailed",
    "DeviceShortage",
    "DevicesToAllocate",
    "DiskConflict",
    "DomainCount",
    "DriverNotInstalled",
    "DroppedByExtender",
    "ElasticQuotaExceeded",
    "ExistingAntiAffinityConflict",
    "Explained",
    "ExtenderFinding",
    "Finding",
    "GangResourcesShort",
    "GangTooSmall",
    "HostPortConflict",
    "InsufficientDevices",
    "InsufficientResource",
    "InsufficientStorageCapacity",
    "LostCount",
    "MissingNodeFeatures",
    "NoMatchingVolume",
    "NodeAffinityMismatch",
    "NodeFinding",
    "NodeNameMismatch",
    "NodeUnschedulable",
    "NodesExcluded",
    "NumaMisfit",
    "PluginFinding",
    "PluginMessage",
    "PodAffinityUnsatisfied",
    "PodAntiAffinityConflict",
    "PodFinding",
    "PodGroupIncomplete",
    "ProvisioningTopologyMismatch",
    "RefusedByExtender",
    "RequirementMatch",
    "ResourceFinding",
    "ResourceGap",
    "SchedulerPluginsFinding",
    "SchedulingGated",
    "SelectedNodeMismatch",
    "StorageCapacity",
    "TermMatch",
    "TooManyPods",
    "TopologyFinding",
    "TopologyLabelMissing",
    "TopologySpreadSkew",
    "UntoleratedTaint",
    "VolumeCandidate",
    "VolumeFinding",
    "VolumeLimitExceeded",
    "VolumeNodeAffinityMismatch",
    "VolumeNotFound",
    "VolumeToBind",
    "VolumeToProvision",
    "VolumeZoneMismatch",
]
