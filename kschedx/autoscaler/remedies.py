"""Changes after which an autoscaler adds a node: the common part of cluster-autoscaler's and Karpenter's."""

from __future__ import annotations

from enum import Enum, auto

from msgspec import Struct

from kschedx.kube.autoscalers import NodePool
from kschedx.kube.types import Node, Pod


class StepKind(Enum):
    OF_POD = auto()
    """The pod tolerates taints or requests less."""
    ROOM = auto()
    """A larger group or pool, or a pod that the autoscaler considers: ranked before other changes of the pod."""
    CORRECTION = auto()
    """The pod says what it probably means: it comes first too."""
    RESHAPED = auto()
    """A NodePool for other nodes than now, ranked after more nodes of a pool that needs no such change."""
    NEW_GROUP = auto()
    OTHER = auto()


class RemedyStep(Struct, frozen=True):
    title: str
    """`raise the maximum of node group workers from 3 to 4`."""
    kind: StepKind = StepKind.OTHER


class NodeRemedy(Struct, frozen=True, kw_only=True):
    """A change and the autoscaler's reaction to it."""

    step: RemedyStep
    place: str
    """The node group or NodePool that gets nodes."""
    pod: Pod
    node: Node | None
    """The template of a group's new nodes, or what a NodePool gives a new node for the pod; its size is open."""
    nodes: int = 1
    """The number of nodes added to the group; 0 if the pod fits the group, but nodes for other pods come first."""
    types: tuple[str, ...] = ()
    """Possible instance types of a NodePool's node; empty if unknown."""
    changed: NodePool | None = None
    helps: frozenset[str] = frozenset()
    """The pending pods, `namespace/name`, for which the nodes are added."""

    @property
    def is_of_pod(self) -> bool:
        return self.step.kind in (StepKind.OF_POD, StepKind.CORRECTION)

    @property
    def makes_room(self) -> bool:
        """Whether it comes before other changes of the pod: a larger or reshaped group or NodePool, or a correction of
        the pod."""
        return self.step.kind in (StepKind.ROOM, StepKind.RESHAPED, StepKind.CORRECTION)
