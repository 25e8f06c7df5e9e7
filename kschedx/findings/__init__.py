"""Every reason of a plugin, as facts; one module per family.

A finding holds numbers, names, and tuples, but no sentences: kube-scheduler's text, kschedx's text, colors, and JSON
are rendered from it separately. `reason` is the stable id that `kschedx reason ID` explains and that JSON contains.
`words` registers its text; tests/render/test_words.py fails for a finding without one.

Findings are Structs because dataclasses take a hundred times longer to define, which would slow every start-up.
"""

from kschedx.findings.constraints import DomainCount as DomainCount
from kschedx.findings.constraints import ElasticQuotaExceeded as ElasticQuotaExceeded
from kschedx.findings.constraints import ExistingAntiAffinityConflict as ExistingAntiAffinityConflict
from kschedx.findings.constraints import Explained as Explained
from kschedx.findings.constraints import ExtenderDropped as ExtenderDropped
from kschedx.findings.constraints import ExtenderFinding as ExtenderFinding
from kschedx.findings.constraints import ExtenderRefused as ExtenderRefused
from kschedx.findings.constraints import GangResourcesShort as GangResourcesShort
from kschedx.findings.constraints import GangTooSmall as GangTooSmall
from kschedx.findings.constraints import HostPortConflict as HostPortConflict
from kschedx.findings.constraints import InsufficientResource as InsufficientResource
from kschedx.findings.constraints import Maintenance as Maintenance
from kschedx.findings.constraints import MissingNodeFeatures as MissingNodeFeatures
from kschedx.findings.constraints import NodeAffinityMismatch as NodeAffinityMismatch
from kschedx.findings.constraints import NodeFinding as NodeFinding
from kschedx.findings.constraints import NodeNameMismatch as NodeNameMismatch
from kschedx.findings.constraints import NodesExcluded as NodesExcluded
from kschedx.findings.constraints import NodeUnschedulable as NodeUnschedulable
from kschedx.findings.constraints import NumaMisfit as NumaMisfit
from kschedx.findings.constraints import PluginFinding as PluginFinding
from kschedx.findings.constraints import PluginMessage as PluginMessage
from kschedx.findings.constraints import PodAffinityUnsatisfied as PodAffinityUnsatisfied
from kschedx.findings.constraints import PodAntiAffinityConflict as PodAntiAffinityConflict
from kschedx.findings.constraints import PodFinding as PodFinding
from kschedx.findings.constraints import PodGroupIncomplete as PodGroupIncomplete
from kschedx.findings.constraints import RequirementMatch as RequirementMatch
from kschedx.findings.constraints import ResourceFinding as ResourceFinding
from kschedx.findings.constraints import ResourceGap as ResourceGap
from kschedx.findings.constraints import SchedulerPluginsFinding as SchedulerPluginsFinding
from kschedx.findings.constraints import SchedulingGated as SchedulingGated
from kschedx.findings.constraints import TermMatch as TermMatch
from kschedx.findings.constraints import TooManyPods as TooManyPods
from kschedx.findings.constraints import TopologyFinding as TopologyFinding
from kschedx.findings.constraints import TopologyLabelMissing as TopologyLabelMissing
from kschedx.findings.constraints import TopologySpreadSkew as TopologySpreadSkew
from kschedx.findings.constraints import UntoleratedTaint as UntoleratedTaint
from kschedx.findings.volumes import AttachedVolume as AttachedVolume
from kschedx.findings.volumes import CapacityShortage as CapacityShortage
from kschedx.findings.volumes import ClaimBeingDeleted as ClaimBeingDeleted
from kschedx.findings.volumes import ClaimFacts as ClaimFacts
from kschedx.findings.volumes import ClaimFinding as ClaimFinding
from kschedx.findings.volumes import ClaimInUse as ClaimInUse
from kschedx.findings.volumes import ClaimLost as ClaimLost
from kschedx.findings.volumes import ClaimNotFound as ClaimNotFound
from kschedx.findings.volumes import ClaimNotOwned as ClaimNotOwned
from kschedx.findings.volumes import ClaimUnbound as ClaimUnbound
from kschedx.findings.volumes import CounterShortage as CounterShortage
from kschedx.findings.volumes import DeviceClaimBeingDeleted as DeviceClaimBeingDeleted
from kschedx.findings.volumes import DeviceClaimNotCreated as DeviceClaimNotCreated
from kschedx.findings.volumes import DeviceClaimNotFound as DeviceClaimNotFound
from kschedx.findings.volumes import DeviceClaimNotOwned as DeviceClaimNotOwned
from kschedx.findings.volumes import DeviceClaimOutOfReach as DeviceClaimOutOfReach
from kschedx.findings.volumes import DeviceClassNotFound as DeviceClassNotFound
from kschedx.findings.volumes import DeviceFinding as DeviceFinding
from kschedx.findings.volumes import DeviceHolder as DeviceHolder
from kschedx.findings.volumes import DeviceSelectorFailed as DeviceSelectorFailed
from kschedx.findings.volumes import DeviceShortage as DeviceShortage
from kschedx.findings.volumes import DevicesToAllocate as DevicesToAllocate
from kschedx.findings.volumes import DiskConflict as DiskConflict
from kschedx.findings.volumes import DriverNotInstalled as DriverNotInstalled
from kschedx.findings.volumes import InsufficientDevices as InsufficientDevices
from kschedx.findings.volumes import InsufficientStorageCapacity as InsufficientStorageCapacity
from kschedx.findings.volumes import LostCount as LostCount
from kschedx.findings.volumes import NoMatchingVolume as NoMatchingVolume
from kschedx.findings.volumes import ProvisioningTopologyMismatch as ProvisioningTopologyMismatch
from kschedx.findings.volumes import SelectedNodeMismatch as SelectedNodeMismatch
from kschedx.findings.volumes import StorageCapacity as StorageCapacity
from kschedx.findings.volumes import VolumeCandidate as VolumeCandidate
from kschedx.findings.volumes import VolumeFinding as VolumeFinding
from kschedx.findings.volumes import VolumeLimitExceeded as VolumeLimitExceeded
from kschedx.findings.volumes import VolumeNodeAffinityMismatch as VolumeNodeAffinityMismatch
from kschedx.findings.volumes import VolumeNotFound as VolumeNotFound
from kschedx.findings.volumes import VolumeToBind as VolumeToBind
from kschedx.findings.volumes import VolumeToProvision as VolumeToProvision
from kschedx.findings.volumes import VolumeZoneMismatch as VolumeZoneMismatch

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
