"""Findings about a pod's claims and volumes."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

from kschedx.findings.constraints import TermMatch
from kschedx.findings.facts import Facts
from kschedx.kube.documents import Document


class ClaimFacts(Document, frozen=True, kw_only=True):
    claim: str  # `namespace/name`
    storage_class: str  # empty if the claim names none
    requested: int  # in bytes; 0 if the claim requests no size
    access_modes: tuple[str, ...]
    volume_mode: str
    selector: str = ""  # the claim's label selector, `tier=hot, zone In [a, b]`; empty if there is none


class ClaimNotFound(Facts, frozen=True, kw_only=True):
    claim: str
    volume: str  # the pod's volume that uses the claim
    ephemeral: bool  # whether kube-controller-manager creates the claim, from a template in the pod


class ClaimLost(Facts, frozen=True, kw_only=True):
    """The claim was bound to a volume that no longer exists."""

    claim: str
    persistent_volume: str


class ClaimBeingDeleted(Facts, frozen=True, kw_only=True):
    claim: str
    since: str  # the deletion timestamp


class ClaimNotOwned(Facts, frozen=True, kw_only=True):
    """A claim with the name of an ephemeral volume's claim was created for another pod."""

    claim: str
    owner: str  # `Kind/name` of its controller; empty if there is none


class ClaimUnbound(Facts, frozen=True, kw_only=True):
    """The claim is not bound, but must be before its pod is scheduled.

    `cause` is `no-class`, `class-missing`, `static` (only existing volumes have the class), `immediate` (the class
    binds at once), `new` (it does, and the claim is yet to be created), or `prebound` (the claim names a volume that
    the volume controller has not finished binding).
    """

    claim: ClaimFacts
    cause: str
    provisioner: str
    persistent_volume: str


class VolumeNotFound(Facts, frozen=True, kw_only=True):
    """A claim is bound to a PersistentVolume that does not exist."""

    claim: str
    persistent_volume: str


ClaimFinding = ClaimNotFound | ClaimLost | ClaimBeingDeleted | ClaimNotOwned | ClaimUnbound | VolumeNotFound


# Volumes that a node or other pods rule out, and what would be done for the chosen node.

_NEVER_MOVES = 2.0  # the distance if neither evicting pods nor a smaller request would help


class VolumeNodeAffinityMismatch(Facts, frozen=True, kw_only=True):
    """The node cannot reach a bound claim's volume: no term of its node affinity matches."""

    shared: ClassVar[tuple[str, ...]] = ("claim", "persistent_volume", "driver")
    constant_distance: ClassVar[float] = _NEVER_MOVES
    claim: str
    persistent_volume: str
    terms: tuple[TermMatch, ...]
    driver: str = ""
    """The CSI driver whose topology key applies to an in-tree volume on this node; empty for all other volumes."""


class VolumeZoneMismatch(Facts, frozen=True, kw_only=True):
    shared: ClassVar[tuple[str, ...]] = ("claim", "persistent_volume", "key")
    constant_distance: ClassVar[float] = _NEVER_MOVES
    claim: str
    persistent_volume: str
    key: str
    zones: tuple[str, ...]  # the zones in the label's value
    node_key: str  # the node's label that is compared: `key`, or its newer name
    actual: str | None  # None if the node lacks the label


class SelectedNodeMismatch(Facts, frozen=True, kw_only=True):
    """The claim's volume is being provisioned for another node."""

    claim: str
    selected_node: str


class VolumeCandidate(Document, frozen=True, kw_only=True):
    """A volume that cannot be bound to a claim, and the first reason against it.

    `lost` is `bound-to-another-claim`, `released` (by a deleted claim), `too-small`, `volume-mode`,
    `volume-attributes-class`, `being-deleted`, `not-available`, `selector`, `access-modes`, `wrong-node`, `taken` (by
    another claim of the same pod), or `not-prebound` (another volume names the claim, so only that one counts).
    """

    name: str
    capacity: int  # in bytes
    lost: str
    detail: str = ""
    """The other claim, the volume's mode, phase, or access modes, or the requirements of its node affinity."""


class LostCount(Document, frozen=True, kw_only=True):
    lost: str
    volumes: int


class NoMatchingVolume(Facts, frozen=True, kw_only=True):
    """No existing volume of the claim's class can be bound to it on this node."""

    shared: ClassVar[tuple[str, ...]] = ("claim",)
    claim: ClaimFacts
    provisioner: str  # empty or `kubernetes.io/no-provisioner` if no volume can be provisioned either
    volumes: int
    lost: tuple[LostCount, ...]  # most frequent first
    nearest: tuple[VolumeCandidate, ...]  # up to ten, those that passed the most checks first


class ProvisioningTopologyMismatch(Facts, frozen=True, kw_only=True):
    """The class provisions volumes only in some topology (allowedTopologies), and the node is outside of it. Without
    terms, it provisions none anywhere."""

    shared: ClassVar[tuple[str, ...]] = ("claim",)
    claim: ClaimFacts
    provisioner: str
    terms: tuple[TermMatch, ...]


class StorageCapacity(Document, frozen=True, kw_only=True):
    """A CSIStorageCapacity of the claim's class."""

    name: str  # `namespace/name`
    limit: int | None  # the size of the largest volume that can be provisioned, in bytes; None if it is not published
    reachable: bool  # whether its topology includes the node
    topology: str  # its node selector, `zone=a`


class InsufficientStorageCapacity(Facts, frozen=True, kw_only=True):
    """No storage that the node can reach has enough capacity for the claim."""

    shared: ClassVar[tuple[str, ...]] = ("claim",)
    claim: ClaimFacts
    driver: str
    capacities: tuple[StorageCapacity, ...]  # up to ten of the class: reachable ones first, then large ones
    capacity_count: int

    @property
    def largest(self) -> int:
        """The size of the largest volume that can be provisioned for this node, in bytes; 0 if there is none."""
        return max((capacity.limit or 0 for capacity in self.capacities if capacity.reachable), default=0)

    @property
    def distance(self) -> float:
        return 1 - self.largest / max(self.claim.requested, 1)


class DiskConflict(Facts, frozen=True, kw_only=True):
    """A pod on the node uses the same disk, and at least one of the two pods writes to it."""

    shared: ClassVar[tuple[str, ...]] = ("kind", "disk")
    volume: str
    kind: str  # `gcePersistentDisk`, `awsElasticBlockStore`, `iscsi`, or `rbd`
    disk: str
    read_only: bool
    holder: str  # `namespace/name` of the other pod
    holder_read_only: bool


class ClaimInUse(Facts, frozen=True, kw_only=True):
    """A claim with ReadWriteOncePod belongs to a single pod, and a running pod uses it."""

    claim: str
    holder: str  # `namespace/name` of the pod that uses it
    holder_node: str


class AttachedVolume(Document, frozen=True, kw_only=True):
    """A volume that counts against a limit."""

    volume: str  # the claim `namespace/name`, the disk in a pod's spec, or the PersistentVolume of an attachment
    pods: tuple[str, ...]
    """The pods on the node that use it; empty if only a VolumeAttachment shows that it is attached."""


class VolumeLimitExceeded(Facts, frozen=True, kw_only=True):
    """`attached` + `wanted` > `limit` for the driver's volumes on the node."""

    shared: ClassVar[tuple[str, ...]] = ("driver",)
    driver: str
    attached: int
    limit: int
    volumes: tuple[str, ...]  # the pod's volumes that are not on the node yet
    holders: tuple[AttachedVolume, ...]

    @property
    def wanted_count(self) -> int:
        return len(self.volumes)

    @property
    def distance(self) -> float:
        return 0.5 if any(not holder.pods for holder in self.holders) else 1.0


class DriverNotInstalled(Facts, frozen=True, kw_only=True):
    """The node's CSINode lacks a driver that must be installed before pods with its volumes are scheduled."""

    shared: ClassVar[tuple[str, ...]] = ("driver",)
    driver: str
    installed: tuple[str, ...]


class VolumeToBind(Facts, frozen=True, kw_only=True):
    """An existing volume that would be bound to a claim."""

    claim: ClaimFacts
    persistent_volume: str
    capacity: int


class VolumeToProvision(Facts, frozen=True, kw_only=True):
    """A volume that would be provisioned for a claim, in reach of the chosen node."""

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


# Findings about devices and their claims.


class DeviceClaimNotFound(Facts, frozen=True, kw_only=True):
    """A ResourceClaim `namespace/name` that the pod names does not exist."""

    claim: str
    pod_claim: str  # the claim's name in the pod


class DeviceClaimNotCreated(Facts, frozen=True, kw_only=True):
    """The ResourceClaim for one of the pod's templates does not exist yet."""

    pod_claim: str
    template: str
    template_exists: bool | None  # None if it is unknown: the snapshot lacks the template, but may not list all of them


class DeviceClaimBeingDeleted(Facts, frozen=True, kw_only=True):
    claim: str
    since: str


class DeviceClaimNotOwned(Facts, frozen=True, kw_only=True):
    """A ResourceClaim created from a template belongs to another object (`owner` is empty if there is none)."""

    claim: str
    owner: str


class DeviceClassNotFound(Facts, frozen=True, kw_only=True):
    claim: str
    request: str
    device_class: str
    classes: tuple[str, ...]


class DeviceSelectorFailed(Facts, frozen=True, kw_only=True):
    """A CEL expression cannot be evaluated on a device, which ends the attempt to schedule the pod."""

    shared: ClassVar[tuple[str, ...]] = ("owner", "expression", "error")
    owner: str  # `class NAME` or `claim NAMESPACE/NAME`
    expression: str
    device: str  # `driver/pool/device`
    error: str


class DeviceClaimOutOfReach(Facts, frozen=True, kw_only=True):
    """The claim is allocated, but the node cannot use its devices.

    `cause` is `elsewhere` (the allocation is for other nodes), `binding-failed`, or `binding-late` (the driver did not
    get the devices ready).
    """

    constant_distance: ClassVar[float] = _NEVER_MOVES
    claim: str
    cause: str
    devices: tuple[str, ...]  # `driver/pool/device`
    where: str  # the node selector of the allocation
    consumers: tuple[str, ...]  # the consumers for which the claim is reserved, such as `pods/name`


class DeviceHolder(Document, frozen=True, kw_only=True):
    device: str  # `pool/device`
    claim: str
    consumers: tuple[str, ...]


class CounterShortage(Document, frozen=True, kw_only=True):
    """A counter shared by partitions of one device has too little left. Amounts are quantities."""

    pool: str
    counter: str  # `set/counter`
    needed: str
    left: str


class CapacityShortage(Document, frozen=True, kw_only=True):
    """A capacity of a shared device of which too little is left."""

    device: str  # `pool/device`
    capacity: str
    needed: str
    left: str


class DeviceShortage(Document, frozen=True, kw_only=True):
    """A request for which a node has too few devices: of those in reach, some match, and of these, some are free."""

    claim: str
    request: str
    device_class: str
    wanted: int | None  # None for all matching devices
    in_reach: int
    of_class: int
    matching: int  # the devices of the class that the request's own selectors match
    free: int
    selectors: tuple[str, ...]
    """The expressions that are false for some device: those of the class if no device matches it, otherwise those of
    the request."""
    values: tuple[str, ...]
    """The devices' values of the attributes and capacities in these expressions: `model=a100 on 2`."""
    holders: tuple[DeviceHolder, ...]
    taints: tuple[str, ...]  # untolerated ones, with the number of devices that have them
    counters: tuple[CounterShortage, ...]
    capacity: tuple[str, ...]  # devices with too little free capacity for the request
    updating: tuple[str, ...]  # pools with incomplete slices
    capacities: tuple[CapacityShortage, ...] = ()  # of which capacity the nearest of these devices have too little

    @property
    def stage(self) -> str:
        """The first check that too few of the node's devices pass: `none`, `other-class`, `no-match`, or `taken`."""
        if not self.in_reach:
            return "none"
        if not self.of_class:
            return "other-class"
        return "taken" if self.matching else "no-match"

    @property
    def missing(self) -> float:
        """How far the node is from satisfying the request: below 2 if some device matches, 2 or more otherwise."""
        stages = {"none": 4.0, "other-class": 3.0, "no-match": 2.0}
        if self.stage != "taken":
            return stages[self.stage]
        wanted = self.matching if self.wanted is None else self.wanted
        lacking = max(wanted - self.matching, 0) / max(wanted, 1)
        return lacking + max(wanted - self.free, 0) / max(wanted, 1)


class InsufficientDevices(Facts, frozen=True, kw_only=True):
    """The node cannot allocate devices for the claims. Without shortages, each request could be allocated on its own,
    but not all of them together."""

    shortages: tuple[DeviceShortage, ...]
    claims: tuple[str, ...]
    constraints: tuple[str, ...]  # without which the claims could be allocated

    @property
    def same_as(self) -> Hashable:
        return self.claims, tuple((shortage.claim, shortage.request, shortage.stage) for shortage in self.shortages)

    @property
    def distance(self) -> float:
        return sum((shortage.missing for shortage in self.shortages), 0.0) or 0.25


class DevicesToAllocate(Facts, frozen=True, kw_only=True):
    """The devices that a claim would get on the chosen node."""

    claim: str
    devices: tuple[str, ...]  # `driver/pool/device`
    requests: tuple[str, ...]  # the request that each device satisfies: `request`, or `request/alternative`
    binding_conditions: tuple[str, ...] = ()  # the conditions that their drivers have to report before the pod is bound
    binding_timeout: int = 0  # how long the pod waits for them, in seconds


DeviceFinding = (
    DeviceClaimNotFound
    | DeviceClaimNotCreated
    | DeviceClaimBeingDeleted
    | DeviceClaimNotOwned
    | DeviceClassNotFound
    | DeviceSelectorFailed
    | DeviceClaimOutOfReach
    | InsufficientDevices
    | DevicesToAllocate
)
