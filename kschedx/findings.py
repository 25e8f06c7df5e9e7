"""Every reason a plugin can have, as facts.

A finding holds numbers, names and tuples, no sentence: kube-scheduler's text, our words, colour and JSON are separate
readers of it. `reason` is the stable id that `kschedx reason ID` explains and that JSON carries. `render/words.py`
forks over the union and ends in `assert_never`, so a finding without words does not pass the type checker.

Structs rather than dataclasses, which take a hundred times longer to define: every start-up would feel it.
"""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class _Facts(Struct, frozen=True, kw_only=True):
    reason: ClassVar[str]

    def to_dict(self) -> dict[str, object]:
        """`{"reason": ..., fact: value, ...}` with camelCase keys, for JSON."""
        return {"reason": self.reason} | _named(self)


def _named(facts: Struct) -> dict[str, object]:
    return {_camel(name): _plain(getattr(facts, name)) for name in facts.__struct_fields__}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return _named(value) if isinstance(value, Struct) else value


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(word.capitalize() for word in rest)


# --- the pod as a whole


class SchedulingGated(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "scheduling-gated"
    gates: tuple[str, ...]


class NodesExcluded(_Facts, frozen=True, kw_only=True):
    """PreFilter narrowed the nodes to some names (a DaemonSet's pod, say); `existing` of them are in the cluster."""

    reason: ClassVar[str] = "nodes-excluded"
    names: tuple[str, ...]
    existing: tuple[str, ...]


class PodGroupIncomplete(_Facts, frozen=True, kw_only=True):
    """The pod's group does not exist, or has fewer pods than its gang needs (`pods` counts those in the snapshot)."""

    reason: ClassVar[str] = "pod-group-incomplete"
    group: str
    exists: bool
    pods: int
    min_count: int


# --- a node's own properties


class NodeUnschedulable(_Facts, frozen=True, kw_only=True):
    """The node is cordoned, and the pod does not tolerate node.kubernetes.io/unschedulable:NoSchedule."""

    reason: ClassVar[str] = "node-unschedulable"


class NodeNameMismatch(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "node-name-mismatch"
    wanted: str


class UntoleratedTaint(_Facts, frozen=True, kw_only=True):
    """The first taint that no toleration matches, and the toleration that comes closest, if any shares its key."""

    reason: ClassVar[str] = "untolerated-taint"
    key: str
    value: str
    effect: str
    nearest_toleration: int | None = None
    """Index into spec.tolerations."""
    nearest_text: str = ""
    """That toleration as kubectl would write it: `dedicated=cpu:NoSchedule`, `dedicated op=Exists`."""
    nearest_differs: str = ""
    """What is different about it: `key`, `value`, `effect` or `operator`."""


class RequirementMatch(Struct, frozen=True, kw_only=True):
    """One requirement of a node selector term against a node."""

    key: str
    operator: str
    values: tuple[str, ...]
    actual: str | None
    """The node's value; None where it has no such label."""
    matched: bool


class TermMatch(Struct, frozen=True, kw_only=True):
    index: int
    requirements: tuple[RequirementMatch, ...]

    @property
    def missing(self) -> int:
        """How many requirements keep the term from matching."""
        return sum(not requirement.matched for requirement in self.requirements)


class NodeAffinityMismatch(_Facts, frozen=True, kw_only=True):
    """`source` is `nodeSelector`, `nodeAffinity` or `addedAffinity`; none of the terms matches (nodeSelector is one
    term)."""

    reason: ClassVar[str] = "node-affinity-mismatch"
    source: str
    terms: tuple[TermMatch, ...]


class MissingNodeFeatures(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "missing-node-features"
    required: tuple[str, ...]
    missing: tuple[str, ...]


# --- what other pods hold


class HostPortConflict(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "host-port-conflict"
    port: int
    protocol: str
    host_ip: str
    holder: str
    """`namespace/name` of the pod that has it."""
    holder_host_ip: str


class InsufficientResource(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "insufficient-resource"
    resource: str
    requested: int
    used: int
    allocatable: int
    unit: str
    """`m` for cpu, empty for everything else."""

    @property
    def free(self) -> int:
        return self.allocatable - self.used

    @property
    def short_by(self) -> int:
        return self.requested - self.free

    @property
    def never_fits(self) -> bool:
        """Not even on the empty node."""
        return self.requested > self.allocatable


class TooManyPods(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "too-many-pods"
    pods: int
    allowed: int


# --- topology


class DomainCount(Struct, frozen=True, kw_only=True):
    domain: str
    matching: int


class TopologySpreadSkew(_Facts, frozen=True, kw_only=True):
    """`matching` + `itself` - `minimum` > `max_skew` in the node's domain."""

    reason: ClassVar[str] = "topology-spread-skew"
    constraint: int
    """Index into spec.topologySpreadConstraints, or among the default constraints."""
    topology_key: str
    domain: str
    matching: int
    itself: int
    minimum: int
    max_skew: int
    domains: tuple[DomainCount, ...]
    """Every domain with its count, largest first; at most ten."""
    domain_count: int
    min_domains: int | None = None
    """Set where fewer domains than this exist, which makes the minimum 0."""

    @property
    def skew(self) -> int:
        return self.matching + self.itself - self.minimum


class TopologyLabelMissing(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "topology-label-missing"
    constraint: int
    topology_key: str


class PodAffinityUnsatisfied(_Facts, frozen=True, kw_only=True):
    """A required podAffinity term that no pod in the node's domain satisfies."""

    reason: ClassVar[str] = "pod-affinity-unsatisfied"
    term: int
    topology_key: str
    domain: str | None
    """The node's value of the topology key; None where it lacks the label."""
    selector: str
    """The label selector as kubectl writes it: `app=web,tier in (a,b)`; empty where it selects every pod, `<none>`
    where it selects none."""
    namespaces: tuple[str, ...]
    """Names of the namespaces in which it looks."""
    every_namespace: bool
    """It looks in all namespaces, whatever their names."""
    matches_itself: bool
    """This pod satisfies all of its own terms: it could be the first of its group if no such pod existed."""
    pods: tuple[str, ...]
    """Up to five of the pods anywhere in the cluster that satisfy all terms, `namespace/name`."""
    matching_pods: int
    """How many there are."""
    matching_domains: tuple[str, ...]
    """Up to five domains that do have such a pod."""


class PodAntiAffinityConflict(_Facts, frozen=True, kw_only=True):
    """This pod's required podAntiAffinity term meets a pod in the node's domain."""

    reason: ClassVar[str] = "pod-anti-affinity-conflict"
    term: int
    topology_key: str
    domain: str
    selector: str
    pods: tuple[str, ...]
    """Up to five of the pods, `namespace/name`."""
    pod_count: int


class ExistingAntiAffinityConflict(_Facts, frozen=True, kw_only=True):
    """A running pod's required podAntiAffinity term matches this pod."""

    reason: ClassVar[str] = "existing-anti-affinity-conflict"
    pods: tuple[str, ...]
    """Up to five of the pods whose rule it is, `namespace/name`."""
    pod_count: int
    term: int
    """Index of the term in the first pod's podAntiAffinity."""
    topology_key: str
    domain: str
    selector: str
    matched_labels: tuple[str, ...]
    """Labels of the incoming pod that the selector reads, `key=value`."""


# --- storage: the claims of a pod


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


class ClaimNotFound(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "claim-not-found"
    claim: str
    volume: str
    """The pod's volume that needs it."""
    ephemeral: bool
    """kube-controller-manager is to create it, from the pod's own template."""


class ClaimLost(_Facts, frozen=True, kw_only=True):
    """The claim was bound to a volume that is gone."""

    reason: ClassVar[str] = "claim-lost"
    claim: str
    persistent_volume: str


class ClaimBeingDeleted(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "claim-being-deleted"
    claim: str
    since: str
    """The deletion timestamp."""


class ClaimNotOwned(_Facts, frozen=True, kw_only=True):
    """A claim that has the name of an ephemeral volume's claim was made for somebody else."""

    reason: ClassVar[str] = "claim-not-owned"
    claim: str
    owner: str
    """`Kind/name` of its controller; empty where it has none."""


class ClaimUnbound(_Facts, frozen=True, kw_only=True):
    """The claim must be bound before its pod is scheduled, and is not.

    `cause` is `no-class`, `class-missing`, `immediate` (the class binds at once) or `prebound` (the claim names a
    volume that the volume controller has not finished binding).
    """

    reason: ClassVar[str] = "claim-unbound"
    claim: ClaimFacts
    cause: str
    provisioner: str
    persistent_volume: str


class VolumeNotFound(_Facts, frozen=True, kw_only=True):
    """A claim is bound to a PersistentVolume that does not exist."""

    reason: ClassVar[str] = "volume-not-found"
    claim: str
    persistent_volume: str


# --- storage: volumes against nodes


class VolumeNodeAffinityMismatch(_Facts, frozen=True, kw_only=True):
    """A bound claim's volume cannot be reached from the node: none of its terms matches."""

    reason: ClassVar[str] = "volume-node-affinity-mismatch"
    claim: str
    persistent_volume: str
    terms: tuple[TermMatch, ...]
    driver: str = ""
    """The CSI driver under whose topology key an in-tree volume is read on this node; empty for all others."""


class VolumeZoneMismatch(_Facts, frozen=True, kw_only=True):
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


class SelectedNodeMismatch(_Facts, frozen=True, kw_only=True):
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


class NoMatchingVolume(_Facts, frozen=True, kw_only=True):
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


class ProvisioningTopologyMismatch(_Facts, frozen=True, kw_only=True):
    """The class makes volumes in some topology only (allowedTopologies), and the node is outside of it; without terms
    it makes none anywhere."""

    reason: ClassVar[str] = "provisioning-topology-mismatch"
    claim: ClaimFacts
    provisioner: str
    terms: tuple[TermMatch, ...]


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


class InsufficientStorageCapacity(_Facts, frozen=True, kw_only=True):
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


# --- storage: what other pods hold


class DiskConflict(_Facts, frozen=True, kw_only=True):
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


class ClaimInUse(_Facts, frozen=True, kw_only=True):
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


class VolumeLimitExceeded(_Facts, frozen=True, kw_only=True):
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


class DriverNotInstalled(_Facts, frozen=True, kw_only=True):
    """The node's CSINode does not list a driver that must be there for its volumes to be scheduled."""

    reason: ClassVar[str] = "driver-not-installed"
    driver: str
    installed: tuple[str, ...]


# --- storage: what would be done for the chosen node


class VolumeToBind(_Facts, frozen=True, kw_only=True):
    """An existing volume that would be bound to a claim."""

    reason: ClassVar[str] = "volume-to-bind"
    claim: ClaimFacts
    persistent_volume: str
    capacity: int


class VolumeToProvision(_Facts, frozen=True, kw_only=True):
    """A volume that would be made for a claim, where the chosen node can reach it."""

    reason: ClassVar[str] = "volume-to-provision"
    claim: ClaimFacts
    provisioner: str
    node: str


# --- devices


class DeviceClaimNotFound(_Facts, frozen=True, kw_only=True):
    """A ResourceClaim `namespace/name` that the pod names does not exist."""

    reason: ClassVar[str] = "device-claim-not-found"
    claim: str
    pod_claim: str
    """The name that the pod has for it."""


class DeviceClaimNotCreated(_Facts, frozen=True, kw_only=True):
    """The ResourceClaim for one of the pod's templates has not been made yet."""

    reason: ClassVar[str] = "device-claim-not-created"
    pod_claim: str
    template: str
    template_exists: bool | None
    """None where it is not in a snapshot that need not hold all of them."""


class DeviceClaimBeingDeleted(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "device-claim-being-deleted"
    claim: str
    since: str


class DeviceClaimNotOwned(_Facts, frozen=True, kw_only=True):
    """A ResourceClaim that was made from a template belongs to another object (`owner` is empty for none)."""

    reason: ClassVar[str] = "device-claim-not-owned"
    claim: str
    owner: str


class DeviceClassNotFound(_Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "device-class-not-found"
    claim: str
    request: str
    device_class: str
    classes: tuple[str, ...]
    """Those that exist."""


class DeviceSelectorFailed(_Facts, frozen=True, kw_only=True):
    """A CEL expression cannot be evaluated on a device, which ends the attempt to schedule the pod."""

    reason: ClassVar[str] = "device-selector-failed"
    owner: str
    """`class NAME` or `claim NAMESPACE/NAME`."""
    expression: str
    device: str
    """`driver/pool/device`."""
    error: str


class DeviceClaimOutOfReach(_Facts, frozen=True, kw_only=True):
    """The claim is allocated, and the node cannot use its devices.

    `cause` is `elsewhere` (the allocation is for other nodes), `binding-failed` or `binding-late` (the driver did not
    get the devices ready).
    """

    reason: ClassVar[str] = "device-claim-out-of-reach"
    claim: str
    cause: str
    devices: tuple[str, ...]
    """`driver/pool/device`."""
    where: str
    """The node selector of the allocation."""
    consumers: tuple[str, ...]
    """For whom it is reserved, such as `pods/name`."""


class DeviceHolder(Struct, frozen=True, kw_only=True):
    device: str
    """`pool/device`."""
    claim: str
    consumers: tuple[str, ...]


class CounterShortage(Struct, frozen=True, kw_only=True):
    """What partitions of one piece of hardware share does not suffice. Amounts are quantities."""

    pool: str
    counter: str
    """`set/counter`."""
    needed: str
    left: str


class DeviceShortage(Struct, frozen=True, kw_only=True):
    """A request that gets too few devices of a node: of those in reach some match, and of these some are free."""

    claim: str
    request: str
    device_class: str
    wanted: int | None
    """None for all that match."""
    in_reach: int
    of_class: int
    matching: int
    """Of the class, and what the request's own selectors pick."""
    free: int
    selectors: tuple[str, ...]
    """The expressions that some device fails: of the class where none is of it, otherwise of the request."""
    values: tuple[str, ...]
    """What the devices have of the attributes and capacities that these name: `model=a100 on 2`."""
    holders: tuple[DeviceHolder, ...]
    taints: tuple[str, ...]
    """Untolerated ones, with the number of devices that have them."""
    counters: tuple[CounterShortage, ...]
    capacity: tuple[str, ...]
    """Devices that have too little left of what is asked for."""
    updating: tuple[str, ...]
    """Pools whose slices are not complete."""

    @property
    def stage(self) -> str:
        """How far the node's devices come: `none`, `other-class`, `no-match` or `taken`."""
        if not self.in_reach:
            return "none"
        if not self.of_class:
            return "other-class"
        return "taken" if self.matching else "no-match"

    @property
    def missing(self) -> float:
        """How far the node is from what is asked for: 0..1 for devices that are taken, more where there are none."""
        stages = {"none": 4.0, "other-class": 3.0, "no-match": 2.0}
        if self.stage != "taken":
            return stages[self.stage]
        wanted = self.matching if self.wanted is None else self.wanted
        lacking = max(wanted - self.matching, 0) / max(wanted, 1)
        return lacking + max(wanted - self.free, 0) / max(wanted, 1)


class InsufficientDevices(_Facts, frozen=True, kw_only=True):
    """The node cannot give the claims their devices. No shortage: each request alone could be met, all together not."""

    reason: ClassVar[str] = "insufficient-devices"
    shortages: tuple[DeviceShortage, ...]
    claims: tuple[str, ...]
    constraints: tuple[str, ...]
    """What devices must have in common, or must differ in."""


class DevicesToAllocate(_Facts, frozen=True, kw_only=True):
    """What a claim would get on the chosen node."""

    reason: ClassVar[str] = "devices-to-allocate"
    claim: str
    devices: tuple[str, ...]
    """`driver/pool/device`."""
    requests: tuple[str, ...]
    """By device, what it is for: `request`, or `request/alternative`."""


# --- anything else


class PluginMessage(_Facts, frozen=True, kw_only=True):
    """What a plugin says in its own words: an internal error, or a plugin from another package."""

    reason: ClassVar[str] = "plugin-message"
    text: str


Finding = (
    SchedulingGated
    | NodesExcluded
    | PodGroupIncomplete
    | NodeUnschedulable
    | NodeNameMismatch
    | UntoleratedTaint
    | NodeAffinityMismatch
    | MissingNodeFeatures
    | HostPortConflict
    | InsufficientResource
    | TooManyPods
    | TopologySpreadSkew
    | TopologyLabelMissing
    | PodAffinityUnsatisfied
    | PodAntiAffinityConflict
    | ExistingAntiAffinityConflict
    | ClaimNotFound
    | ClaimLost
    | ClaimBeingDeleted
    | ClaimNotOwned
    | ClaimUnbound
    | VolumeNotFound
    | VolumeNodeAffinityMismatch
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
    | DeviceClaimNotFound
    | DeviceClaimNotCreated
    | DeviceClaimBeingDeleted
    | DeviceClaimNotOwned
    | DeviceClassNotFound
    | DeviceSelectorFailed
    | DeviceClaimOutOfReach
    | InsufficientDevices
    | DevicesToAllocate
    | PluginMessage
)
