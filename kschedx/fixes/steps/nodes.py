"""Steps that change nodes, or bring one."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct

from kschedx.api.devices import ResourceSlice
from kschedx.api.storage import CSINode
from kschedx.api.types import Node, Taint
from kschedx.fixes.cost import Cost
from kschedx.fixes.steps.pod import ResourceAmount
from kschedx.snapshot.rows import ClusterRow


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
