"""What a fix does, as data: a union of small steps. `making` does them, `render/words/fixes.py` says them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.api.devices import ResourceClaim, ResourceSlice
from kschedx.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim
from kschedx.api.types import Node, PodAffinityTerm, PodResourceClaimStatus, Taint
from kschedx.findings import RequirementMatch
from kschedx.fixes.cost import Cost
from kschedx.snapshot.rows import ClusterRow


class _Step(Struct, frozen=True, kw_only=True):
    cost: ClassVar[Cost]


# --- the pod


class RemoveGates(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    gates: tuple[str, ...]


class Tolerate(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    taints: tuple[Taint, ...]


class SelectInstead(_Step, frozen=True, kw_only=True):
    """Of a required term, one expression as it was probably meant."""

    cost: ClassVar[Cost] = Cost.TYPO
    source: str
    term: int
    wrong: RequirementMatch
    meant: RequirementMatch


class DropRequirements(_Step, frozen=True, kw_only=True):
    """Of a required term, the expressions that a node does not satisfy."""

    cost: ClassVar[Cost] = Cost.LESS
    source: str
    term: int
    requirements: tuple[RequirementMatch, ...]


class DropNodeNames(_Step, frozen=True, kw_only=True):
    """The required terms of the node affinity no longer name nodes."""

    cost: ClassVar[Cost] = Cost.LESS


class DropNodeName(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.POD
    wanted: str


class UseHostPort(_Step, frozen=True, kw_only=True):
    """Another host port; 0 gives it up."""

    cost: ClassVar[Cost] = Cost.LESS
    port: int
    protocol: str
    instead: int


class HonorInSpread(_Step, frozen=True, kw_only=True):
    """A spread constraint that no longer counts nodes that the pod cannot use."""

    cost: ClassVar[Cost] = Cost.POD
    constraint: int
    topology_key: str
    taints: bool
    """The nodes with taints that the pod does not tolerate; otherwise those that its node affinity excludes."""


class RaiseMaxSkew(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    constraint: int
    topology_key: str
    before: int
    after: int


class SpreadAnyway(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    constraint: int
    topology_key: str


class PreferTerm(_Step, frozen=True, kw_only=True):
    """A required pod (anti-)affinity term becomes a preference."""

    cost: ClassVar[Cost] = Cost.LESS
    number: int
    """Of the terms that the pod has now, from 1."""
    selector: str
    rule: PodAffinityTerm
    anti: bool


class ResourceAmount(Struct, frozen=True, kw_only=True):
    resource: str
    amount: int
    """Milli-units of cpu, units of everything else."""


class RequestAtMost(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.LESS
    amounts: tuple[ResourceAmount, ...]


class RequestInstead(_Step, frozen=True, kw_only=True):
    """A resource that no node offers, under the name of one that some node does."""

    cost: ClassVar[Cost] = Cost.TYPO
    resource: str
    meant: str


# --- what is around the pod


class CreateClaim(_Step, frozen=True, kw_only=True):
    """A claim that the pod names and that is not there."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    template_of: str = ""
    """The StatefulSet whose template says what the claim asks for."""
    is_ephemeral: bool = False
    """As kube-controller-manager makes it for the pod's ephemeral volume."""


class ShrinkClaim(_Step, frozen=True, kw_only=True):
    """A claim goes and comes again, asking for less: an unbound claim's spec cannot be changed."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: PersistentVolumeClaim
    size: str


class RecreateClaim(_Step, frozen=True, kw_only=True):
    """A claim goes and comes again, bound to nothing."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    storage_class: str = ""
    """The class that it names now, where that is different."""


class GiveUpVolume(_Step, frozen=True, kw_only=True):
    """A claim that is bound goes and comes again, bound to nothing."""

    cost: ClassVar[Cost] = Cost.DATA
    claim: PersistentVolumeClaim
    volume: str


class BindClaim(_Step, frozen=True, kw_only=True):
    """An existing volume that nobody has is bound to the claim."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: PersistentVolumeClaim
    volume: str


class CreateVolume(_Step, frozen=True, kw_only=True):
    """A volume for a claim; `claim` is set where the two are bound to each other beforehand."""

    cost: ClassVar[Cost] = Cost.AROUND
    volume: PersistentVolume
    claim_key: str
    claim: PersistentVolumeClaim | None
    provisioner: str = ""
    """Who should have made it."""
    is_restored: bool = False
    """The claim names it already."""


class CreateDeviceClaim(_Step, frozen=True, kw_only=True):
    """A ResourceClaim that the pod needs and that is not there."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: ResourceClaim
    template: str = ""
    status: PodResourceClaimStatus | None = None
    """What the controller writes to the pod's status."""


class AskForFewerDevices(_Step, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again with a request for less: its spec cannot be changed."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: ResourceClaim
    request: str
    count: int


class WidenDeviceClaim(_Step, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again without selectors, without the share that it wants of a device, or without
    what its devices must have in common."""

    cost: ClassVar[Cost] = Cost.LESS
    claim: ResourceClaim
    request: str = ""
    """Whose selectors go; empty where the constraints go."""
    capacity: bool = False
    """It is the request's capacity that goes."""


class RecreateDeviceClaim(_Step, frozen=True, kw_only=True):
    """A ResourceClaim goes and comes again: it is allocated anew."""

    cost: ClassVar[Cost] = Cost.AROUND
    claim: ResourceClaim
    device_class: str = ""
    """The class that the request names now, where that is different."""


class CreateDeviceClass(_Step, frozen=True, kw_only=True):
    """A DeviceClass that every device is of."""

    cost: ClassVar[Cost] = Cost.AROUND
    name: str


class Victim(Struct, frozen=True, kw_only=True):
    row: int
    pod: str
    """`namespace/name`."""
    priority: int


class DeletePods(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.OTHER_PODS
    victims: tuple[Victim, ...]
    node: str = ""
    """The node on which room is made; empty where it does not matter where they run."""
    by_preemption: bool = False
    """kube-scheduler is about to do it by itself."""


# --- nodes


class Uncordon(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str


class RemoveTaints(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str
    taints: tuple[Taint, ...]


class LabelNode(_Step, frozen=True, kw_only=True):
    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str
    labels: tuple[tuple[str, str], ...]


class NodeAmount(Struct, frozen=True, kw_only=True):
    """In the resource's own unit; `pods` is how many pods the node takes."""

    resource: str
    before: int
    after: int


class EnlargeNode(_Step, frozen=True, kw_only=True):
    """The same node with more of what it has too little of."""

    cost: ClassVar[Cost] = Cost.NODE
    row: ClusterRow
    node: str
    amounts: tuple[NodeAmount, ...]


class AddNode(_Step, frozen=True, kw_only=True):
    """A new node; `like` is the one that it copies, empty for the smallest one that would do."""

    cost: ClassVar[Cost] = Cost.NEW_NODE
    node: Node
    like: str = ""
    slices: tuple[ResourceSlice, ...] = ()
    """The devices that come with it."""
    csi_node: CSINode | None = None
    taken: tuple[ResourceAmount, ...] = ()
    """What DaemonSets take of it before the pod is there; `pods` is how many they are."""


Step = (
    RemoveGates
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
    | RequestAtMost
    | RequestInstead
    | CreateClaim
    | ShrinkClaim
    | RecreateClaim
    | GiveUpVolume
    | BindClaim
    | CreateVolume
    | CreateDeviceClaim
    | AskForFewerDevices
    | WidenDeviceClaim
    | RecreateDeviceClaim
    | CreateDeviceClass
    | DeletePods
    | Uncordon
    | RemoveTaints
    | LabelNode
    | EnlargeNode
    | AddNode
)
