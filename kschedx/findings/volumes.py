"""The claims of a pod."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from msgspec import Struct

from kschedx.findings.facts import Facts
from kschedx.findings.nodes import TermMatch


class ClaimFacts(Struct, frozen=True, kw_only=True):
    """What a claim asks for."""

    claim: str
    """`namespace/name`."""
    storage_class: str
    """Empty where it names none."""
    requested: int
    """Bytes; 0 where it asks for no size."""
    access_modes: tuple[str, ...]
    volume_mode: str
    selector: str = ""
    """Its label selector, `tier=hot, zone In [a, b]`; empty where it has none."""


class ClaimNotFound(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "claim-not-found"
    claim: str
    volume: str
    """The pod's volume that needs it."""
    ephemeral: bool
    """kube-controller-manager is to create it, from the pod's own template."""


class ClaimLost(Facts, frozen=True, kw_only=True):
    """The claim was bound to a volume that is gone."""

    reason: ClassVar[str] = "claim-lost"
    claim: str
    persistent_volume: str


class ClaimBeingDeleted(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "claim-being-deleted"
    claim: str
    since: str
    """The deletion timestamp."""


class ClaimNotOwned(Facts, frozen=True, kw_only=True):
    """A claim that has the name of an ephemeral volume's claim was made for another pod."""

    reason: ClassVar[str] = "claim-not-owned"
    claim: str
    owner: str
    """`Kind/name` of its controller; empty where it has none."""


class ClaimUnbound(Facts, frozen=True, kw_only=True):
    """The claim must be bound before its pod is scheduled, and is not.

    `cause` is `no-class`, `class-missing`, `immediate` (the class binds at once) or `prebound` (the claim names a
    volume that the volume controller has not finished binding).
    """

    reason: ClassVar[str] = "claim-unbound"
    claim: ClaimFacts
    cause: str
    provisioner: str
    persistent_volume: str


class VolumeNotFound(Facts, frozen=True, kw_only=True):
    """A claim is bound to a PersistentVolume that does not exist."""

    reason: ClassVar[str] = "volume-not-found"
    claim: str
    persistent_volume: str


ClaimFinding = ClaimNotFound | ClaimLost | ClaimBeingDeleted | ClaimNotOwned | ClaimUnbound | VolumeNotFound


# Volumes against nodes and against what other pods hold; what would be done for the chosen node.

NEVER_MOVES = 2.0
"""The distance of what no other pod and no smaller request would change."""


class VolumeNodeAffinityMismatch(Facts, frozen=True, kw_only=True):
    """A bound claim's volume cannot be reached from the node: none of its terms matches."""

    reason: ClassVar[str] = "volume-node-affinity-mismatch"
    claim: str
    persistent_volume: str
    terms: tuple[TermMatch, ...]
    driver: str = ""
    """The CSI driver under whose topology key an in-tree volume is read on this node; empty for all others."""

    @property
    def same_as(self) -> Hashable:
        return self.claim, self.persistent_volume, self.driver

    @property
    def distance(self) -> float:
        return NEVER_MOVES


class VolumeZoneMismatch(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "volume-zone-mismatch"
    claim: str
    persistent_volume: str
    key: str
    """The volume's label."""
    zones: tuple[str, ...]
    """What the label names."""
    node_key: str
    """The node's label that counts: `key`, or the newer name of it."""
    actual: str | None
    """The node's value; None where it has no such label."""

    @property
    def same_as(self) -> Hashable:
        return self.claim, self.persistent_volume, self.key

    @property
    def distance(self) -> float:
        return NEVER_MOVES


class SelectedNodeMismatch(Facts, frozen=True, kw_only=True):
    """The claim's volume is being provisioned for another node."""

    reason: ClassVar[str] = "selected-node-mismatch"
    claim: str
    selected_node: str


class VolumeCandidate(Struct, frozen=True, kw_only=True):
    """A volume that a claim could not have, and the first thing against it.

    `lost` is `bound-to-another-claim`, `too-small`, `volume-mode`, `volume-attributes-class`, `being-deleted`,
    `not-available`, `selector`, `access-modes`, `wrong-node`, `taken` (by another claim of the same pod) or
    `not-prebound` (another volume names the claim, so that only that one counts).
    """

    name: str
    capacity: int
    """Bytes."""
    lost: str
    detail: str = ""
    """The other claim, the volume's mode, phase or access modes, what its node affinity asks for."""


class LostCount(Struct, frozen=True, kw_only=True):
    lost: str
    volumes: int


class NoMatchingVolume(Facts, frozen=True, kw_only=True):
    """No existing volume of the claim's class can be bound to it here."""

    reason: ClassVar[str] = "no-matching-volume"
    claim: ClaimFacts
    provisioner: str
    """Empty, or `kubernetes.io/no-provisioner`, where no volume can be made either."""
    volumes: int
    """How many volumes the class has."""
    lost: tuple[LostCount, ...]
    """Why they lost, the most frequent reason first."""
    nearest: tuple[VolumeCandidate, ...]
    """Up to ten of them, those that came furthest first."""

    @property
    def same_as(self) -> Hashable:
        return self.claim


class ProvisioningTopologyMismatch(Facts, frozen=True, kw_only=True):
    """The class makes volumes in some topology only (allowedTopologies), and the node is outside of it; without terms
    it makes none anywhere."""

    reason: ClassVar[str] = "provisioning-topology-mismatch"
    claim: ClaimFacts
    provisioner: str
    terms: tuple[TermMatch, ...]

    @property
    def same_as(self) -> Hashable:
        return self.claim


class StorageCapacity(Struct, frozen=True, kw_only=True):
    """A CSIStorageCapacity of the claim's class."""

    name: str
    """`namespace/name`."""
    limit: int | None
    """The largest volume that can be made, in bytes; None where it says nothing."""
    reachable: bool
    """Its topology covers the node."""
    topology: str
    """Its node selector, `zone=a`."""


class InsufficientStorageCapacity(Facts, frozen=True, kw_only=True):
    """No storage that the node can reach has room for the claim."""

    reason: ClassVar[str] = "insufficient-storage-capacity"
    claim: ClaimFacts
    driver: str
    capacities: tuple[StorageCapacity, ...]
    """Up to ten of the class's, reachable ones first, then large ones."""
    capacity_count: int

    @property
    def largest(self) -> int:
        """The largest volume, in bytes, that can be made for this node; 0 where none can."""
        return max((one.limit or 0 for one in self.capacities if one.reachable), default=0)

    @property
    def same_as(self) -> Hashable:
        return self.claim

    @property
    def distance(self) -> float:
        return 1 - self.largest / max(self.claim.requested, 1)


class DiskConflict(Facts, frozen=True, kw_only=True):
    """A pod on the node has the same disk, and at least one of the two writes."""

    reason: ClassVar[str] = "disk-conflict"
    volume: str
    """The pod's volume."""
    kind: str
    """`gcePersistentDisk`, `awsElasticBlockStore`, `iscsi` or `rbd`."""
    disk: str
    read_only: bool
    holder: str
    """`namespace/name` of the other pod."""
    holder_read_only: bool

    @property
    def same_as(self) -> Hashable:
        return self.kind, self.disk


class ClaimInUse(Facts, frozen=True, kw_only=True):
    """A claim with ReadWriteOncePod belongs to a single pod, and a running one has it."""

    reason: ClassVar[str] = "claim-in-use"
    claim: str
    holder: str
    """`namespace/name` of the pod that has it."""
    holder_node: str


class AttachedVolume(Struct, frozen=True, kw_only=True):
    """A volume that counts against a limit."""

    volume: str
    """The claim `namespace/name`, or the disk that a pod names itself, or the PersistentVolume of an attachment."""
    pods: tuple[str, ...]
    """The pods on the node that hold it; none where only a VolumeAttachment says that it is there."""


class VolumeLimitExceeded(Facts, frozen=True, kw_only=True):
    """`attached` + `wanted` > `limit` for the driver's volumes on the node."""

    reason: ClassVar[str] = "volume-limit-exceeded"
    driver: str
    attached: int
    limit: int
    volumes: tuple[str, ...]
    """The pod's volumes that the node does not have yet."""
    holders: tuple[AttachedVolume, ...]
    """What is attached."""

    @property
    def wanted(self) -> int:
        return len(self.volumes)

    @property
    def same_as(self) -> Hashable:
        return self.driver

    @property
    def distance(self) -> float:
        return 0.5 if any(not holder.pods for holder in self.holders) else 1.0


class DriverNotInstalled(Facts, frozen=True, kw_only=True):
    """The node's CSINode does not list a driver that must be there for its volumes to be scheduled."""

    reason: ClassVar[str] = "driver-not-installed"
    driver: str
    installed: tuple[str, ...]

    @property
    def same_as(self) -> Hashable:
        return self.driver


class VolumeToBind(Facts, frozen=True, kw_only=True):
    """An existing volume that would be bound to a claim."""

    reason: ClassVar[str] = "volume-to-bind"
    claim: ClaimFacts
    persistent_volume: str
    capacity: int


class VolumeToProvision(Facts, frozen=True, kw_only=True):
    """A volume that would be made for a claim, where the chosen node can reach it."""

    reason: ClassVar[str] = "volume-to-provision"
    claim: ClaimFacts
    provisioner: str
    node: str


VolumeFinding = (
    VolumeNodeAffinityMismatch
    | VolumeZoneMismatch
    | SelectedNodeMismatch
    | NoMatchingVolume
    | ProvisioningTopologyMismatch
    | InsufficientStorageCapacity
    | DiskConflict
    | ClaimInUse
    | VolumeLimitExceeded
    | DriverNotInstalled
    | VolumeToBind
    | VolumeToProvision
)
