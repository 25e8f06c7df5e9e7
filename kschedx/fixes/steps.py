"""What a change costs."""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from msgspec import Struct

from kschedx.findings import RequirementMatch
from kschedx.kube.devices import ResourceClaim, ResourceSlice
from kschedx.kube.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from kschedx.kube.types import Node, PodAffinityTerm, PodResourceClaimStatus, Taint
from kschedx.kube.typos import UnlikelyQuantity
from kschedx.snapshot.columns import ClusterRow


class Cost(IntEnum):
    """Cheaper is told first: what somebody who knows the cluster would do first."""

    WAITING = 0
    """It comes by itself."""
    TYPO = 1
    """The pod says almost what a node says."""
    REPAIR = 2
    """What is broken is mended, and nobody gives up anything."""
    POD = 3
    """A change of the pod that gives up nothing."""
    LABEL = 4
    """A label that the pod asks for and that nobody has put on any node."""
    LESS = 5
    """The pod asks for less, or no longer requires what it prefers."""
    AROUND = 6
    """Claims, volumes and classes are made, or made anew."""
    NODE = 7
    NEW_NODE = 8
    STOPGAP = 9
    """Where no node can come: far less than the pod asks for, by hand what a driver should make."""
    OTHER_PODS = 10
    """Pods that run go."""
    DATA = 11
    """What is stored is given up."""


# Steps that change the pod.


class RemoveGates(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    gates: tuple[str, ...]


class AwaitController(Struct, frozen=True, kw_only=True):
    """The pod's turn comes, and a controller lifts its gates: what is changed besides must be done before."""

    cost: ClassVar[Cost] = Cost.WAITING
    gates: tuple[str, ...]
    controller: str


class Tolerate(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    taints: tuple[Taint, ...]


class SelectInstead(Struct, frozen=True, kw_only=True):
    """Of a required term, one expression as it was probably meant."""

    cost: ClassVar[Cost] = Cost.TYPO
    source: str
    term: int
    wrong: RequirementMatch
    meant: RequirementMatch


class DropRequirements(Struct, frozen=True, kw_only=True):
    """Of a required term, the expressions that a node does not satisfy."""

    cost: ClassVar[Cost] = Cost.LESS
    source: str
    term: int
    requirements: tuple[RequirementMatch, ...]


class DropNodeNames(Struct, frozen=True, kw_only=True):
    """The required terms of the node affinity no longer name nodes."""

    cost: ClassVar[Cost] = Cost.LESS


class DropNodeName(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    wanted: str


class UseHostPort(Struct, frozen=True, kw_only=True):
    """Another host port; 0 gives it up."""

    cost: ClassVar[Cost] = Cost.LESS
    port: int
    protocol: str
    instead: int


class HonorInSpread(Struct, frozen=True, kw_only=True):
    """A spread constraint that no longer counts nodes that the pod cannot use."""

    cost: ClassVar[Cost] = Cost.POD
    constraint: int
    topology_key: str
    taints: bool
    """The nodes with taints that the pod does not tolerate; otherwise those that its node affinity excludes."""


class RaiseMaxSkew(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    constraint: int
    topology_key: str
    before: int
    after: int


class SpreadAnyway(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    constraint: int
    topology_key: str


class PreferTerm(Struct, frozen=True, kw_only=True):
    """A required pod (anti-)affinity term becomes a preference."""

    cost: ClassVar[Cost] = Cost.LESS
    number: int
    """Of the terms that the pod has now, from 1."""
    selector: str
    rule: PodAffinityTerm
    anti: bool


class RaisePriority(Struct, frozen=True, kw_only=True):
    """Another priority class, of those whose pods preempt others."""

    cost: ClassVar[Cost] = Cost.POD
    name: str
    value: int


class SelectPodsInstead(Struct, frozen=True, kw_only=True):
    """A required podAffinity term as it was probably meant: with the label that pods have, or where such pods are."""

    number: int
    """Of the terms that the pod has now, from 1."""
    selector: str
    rule: PodAffinityTerm
    meant: PodAffinityTerm
    label: str = ""
    """`key=value` that is selected now; empty where only the namespace is another."""

    @property
    def cost(self) -> Cost:
        return Cost.TYPO if self.label else Cost.POD


class UseClaim(Struct, frozen=True, kw_only=True):
    """A claim that is there in place of one that is not, and that is nearly called the same."""

    cost: ClassVar[Cost] = Cost.TYPO
    claim: str
    meant: str


class ResourceAmount(Struct, frozen=True, kw_only=True):
    resource: str
    amount: int
    """Milli-units of cpu, units of everything else."""


class RequestAtMost(Struct, frozen=True, kw_only=True):
    amounts: tuple[ResourceAmount, ...]
    is_most: bool = True
    """It is half of what the pod asks for, or more."""

    @property
    def cost(self) -> Cost:
        return Cost.LESS if self.is_most else Cost.STOPGAP


class RequestAsMeant(Struct, frozen=True, kw_only=True):
    """Amounts whose suffix is hardly meant, `500M` of cpu, as they were probably meant."""

    cost: ClassVar[Cost] = Cost.TYPO
    amounts: tuple[UnlikelyQuantity, ...]


class RequestInstead(Struct, frozen=True, kw_only=True):
    """A resource that no node offers, under the name of one that some node does."""

    cost: ClassVar[Cost] = Cost.TYPO
    resource: str
    meant: str


# Steps that change what is around the pod: claims, volumes, devices, other pods.


class CreateClaim(Struct, frozen=True, kw_only=True):
    """A claim that the pod names and that is not there."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    template_of: str = ""
    """The StatefulSet whose template says what the claim asks for."""
    is_ephemeral: bool = False
    """As kube-controller-manager makes it for the pod's ephemeral volume."""


class ShrinkClaim(Struct, frozen=True, kw_only=True):
    """A claim goes and comes again, asking for less: an unbound claim's spec cannot be changed."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: PersistentVolumeClaim
    size: str


class RecreateClaim(Struct, frozen=True, kw_only=True):
    """A claim goes and comes again, bound to nothing."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    storage_class: str = ""
    """The class that it names now, where that is different."""


class GiveUpVolume(Struct, frozen=True, kw_only=True):
    """A claim that is bound goes and comes again, bound to nothing."""

    cost: ClassVar[Cost] = Cost.DATA
    claim: PersistentVolumeClaim
    volume: str


class CreateStorageClass(Struct, frozen=True, kw_only=True):
    """The class that a claim names, as one whose volumes are made once a pod that wants them is scheduled."""

    cost: ClassVar[Cost] = Cost.AROUND
    storage_class: StorageClass


class BindClaim(Struct, frozen=True, kw_only=True):
    """An existing volume that nobody has is bound to the claim."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    volume: str


class ReleaseVolume(Struct, frozen=True, kw_only=True):
    """A volume that is kept for a claim that is gone may be bound again; what is on it stays."""

    volume: PersistentVolume
    """As it is then."""
    holder: str
    """The claim that it was bound to."""
    is_its_own: bool
    """It was bound to a claim of the same name: the claim was made anew."""

    @property
    def cost(self) -> Cost:
        return Cost.REPAIR if self.is_its_own else Cost.AROUND


class CreateVolume(Struct, frozen=True, kw_only=True):
    """A volume for a claim; `claim` is set where the two are bound to each other beforehand."""

    volume: PersistentVolume
    claim_key: str
    claim: PersistentVolumeClaim | None
    provisioner: str = ""
    """Who should have made it."""
    is_restored: bool = False
    """The claim names it already."""

    @property
    def cost(self) -> Cost:
        by_hand = self.provisioner and self.claim is None
        return Cost.STOPGAP if by_hand else Cost.AROUND


class CreateDeviceClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim that the pod needs and that is not there."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: ResourceClaim
    template: str = ""
    status: PodResourceClaimStatus | None = None
    """What the controller writes to the pod's status."""


class AskForFewerDevices(Struct, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again with a request for less: its spec cannot be changed."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: ResourceClaim
    request: str
    count: int


class WidenDeviceClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again without selectors, without the share that it wants of a device, or without
    what its devices must have in common."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: ResourceClaim
    request: str = ""
    """Whose selectors go; empty where the constraints go."""
    capacity: bool = False
    """It is the request's capacity that goes."""


class NextAttempt(Struct, frozen=True, kw_only=True):
    """kube-scheduler takes device claims back when the pod fits nowhere, and tries again."""

    cost: ClassVar[Cost] = Cost.WAITING
    released: tuple[tuple[str, ResourceClaim | None], ...]
    """`namespace/name`, and the claim as it is left; None where it is deleted."""


class RecreateDeviceClaim(Struct, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again: it is allocated anew."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: ResourceClaim
    device_class: str = ""
    """The class that the request names now, where that is different."""


class CreateDeviceClass(Struct, frozen=True, kw_only=True):
    """A DeviceClass that every device is of."""

    cost: ClassVar[Cost] = Cost.AROUND
    name: str


class Victim(Struct, frozen=True, kw_only=True):
    row: int
    pod: str
    """`namespace/name`."""
    priority: int


class TakeOldFirst(Struct, frozen=True, kw_only=True):
    """A Deployment takes an old pod away before it makes a new one: `maxSurge: 0`, or `Recreate` where it wants one."""

    cost: ClassVar[Cost] = Cost.POD
    deployment: str
    old: Victim
    is_single: bool = False
    """The Deployment wants a single pod."""


class DeletePods(Struct, frozen=True, kw_only=True):
    victims: tuple[Victim, ...]
    node: str = ""
    """The node on which room is made; empty where it does not matter where they run."""
    by_preemption: bool = False
    """kube-scheduler is about to do it by itself."""
    or_elsewhere: int = 0
    """Further nodes among which preemption picks by chance."""
    protected: int = 0
    """Of them, pods that preemption evicts against a PodDisruptionBudget."""

    @property
    def cost(self) -> Cost:
        return Cost.WAITING if self.by_preemption else Cost.OTHER_PODS


class AwaitTermination(Struct, frozen=True, kw_only=True):
    """Pods that are being deleted already are gone."""

    cost: ClassVar[Cost] = Cost.WAITING
    victims: tuple[Victim, ...]
    node: str = ""
    """The node on which that makes room; empty where it does not matter where they run."""


class StopWorkload(Struct, frozen=True, kw_only=True):
    """A Job goes, or what makes pods makes none any more: a pod alone would come again, and want the same."""

    cost: ClassVar[Cost] = Cost.OTHER_PODS
    api_version: str
    kind: str
    namespace: str
    name: str
    victims: tuple[Victim, ...]
    """All the pods that it has."""

    @property
    def is_deleted(self) -> bool:
        return self.kind == "Job"


# Steps that change nodes, or bring one.


class NodeFault(Struct, frozen=True, kw_only=True):
    """A taint that stands for something that is wrong with a node, or not done yet."""

    taint: Taint
    by: str
    """Who takes it away."""


class Uncordon(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str


class RemoveTaints(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str
    taints: tuple[Taint, ...]


class LabelNode(Struct, frozen=True, kw_only=True):
    row: ClusterRow
    node: str
    labels: tuple[tuple[str, str], ...]
    is_first: bool = False
    """No node has a label of these keys."""

    @property
    def cost(self) -> Cost:
        return Cost.LABEL if self.is_first else Cost.NODE


class RepairNode(Struct, frozen=True, kw_only=True):
    """Somebody mends the node; whoever has set the taints takes them away then."""

    cost: ClassVar[Cost] = Cost.REPAIR
    row: ClusterRow
    node: str
    faults: tuple[NodeFault, ...]


class NodeAmount(Struct, frozen=True, kw_only=True):
    """In the resource's own unit; `pods` is how many pods the node takes."""

    resource: str
    before: int
    after: int


class EnlargeNode(Struct, frozen=True, kw_only=True):
    """The same node with more of what it has too little of."""

    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str
    amounts: tuple[NodeAmount, ...]


class OfferResource(Struct, frozen=True, kw_only=True):
    """A node that comes to offer what it has: hardware whose labels it carries, or memory set aside as huge pages."""

    row: ClusterRow
    node: str
    resource: str
    amounts: tuple[NodeAmount, ...]
    label: str = ""
    """`key=value`, which tells of the hardware; empty for huge pages."""

    @property
    def cost(self) -> Cost:
        return Cost.REPAIR if self.label else Cost.NODE


DOMAIN_OF_ITS_OWN = "new"
"""The value of a label for a node that stands where none does."""


class AddNode(Struct, frozen=True, kw_only=True):
    """A new node; `like` is the one that it copies, empty for the smallest one that would do."""

    cost: ClassVar[Cost] = Cost.NEW_NODE
    node: Node
    like: str = ""
    slices: tuple[ResourceSlice, ...] = ()
    """The devices that come with it."""
    csi_node: CSINode | None = None
    taken: tuple[ResourceAmount, ...] = ()
    """What DaemonSets take of it before the pod is there; `pods` is how many they are."""


# What a fix does, as data: a union of steps, each with its cost. `making` does them, `words/fixes.py` says them.

Step = (
    RemoveGates
    | AwaitController
    | Tolerate
    | SelectInstead
    | DropRequirements
    | DropNodeNames
    | DropNodeName
    | UseHostPort
    | HonorInSpread
    | RaiseMaxSkew
    | SpreadAnyway
    | PreferTerm
    | SelectPodsInstead
    | UseClaim
    | RaisePriority
    | RequestAtMost
    | RequestAsMeant
    | RequestInstead
    | CreateClaim
    | ShrinkClaim
    | RecreateClaim
    | GiveUpVolume
    | CreateStorageClass
    | BindClaim
    | ReleaseVolume
    | CreateVolume
    | CreateDeviceClaim
    | AskForFewerDevices
    | WidenDeviceClaim
    | NextAttempt
    | RecreateDeviceClaim
    | CreateDeviceClass
    | TakeOldFirst
    | AwaitTermination
    | StopWorkload
    | DeletePods
    | Uncordon
    | RemoveTaints
    | LabelNode
    | RepairNode
    | OfferResource
    | EnlargeNode
    | AddNode
)
