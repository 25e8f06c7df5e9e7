"""Changes after which an autoscaler adds a node: the common part of cluster-autoscaler's and Karpenter's."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from msgspec import Struct

from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.types import Node, Pod, Taint


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


class RemedyStep(Struct, frozen=True, kw_only=True):
    title: str
    """`raise the maximum of node group workers from 3 to 4`."""
    kind: StepKind = StepKind.OTHER


def tolerate(taints: Iterable[Taint]) -> RemedyStep:
    return RemedyStep(title=f"tolerate {' and '.join(map(str, taints))}", kind=StepKind.OF_POD)


def request_at_most(amounts: Iterable[tuple[str, int]]) -> RemedyStep:
    """Build the step for resources with amounts in plugins' integers."""
    told = (f"{format_quantity(amount, Unit.of(name))} {name}" for name, amount in amounts)
    return RemedyStep(title=f"lower the request to {' and '.join(told)}", kind=StepKind.OF_POD)


class AutoscalerRemedy(Struct, frozen=True, kw_only=True):
    """A change and the autoscaler's reaction to it."""

    step: RemedyStep
    group: str
    nodes: int
    """The number of nodes added to the group; 0 if the pod fits the group, but nodes for other pods come first."""
    pod: Pod
    node: Node | None
    """The template of the group's new nodes."""
    helps: frozenset[str] = frozenset()
    """The pending pods, `namespace/name`, for which the nodes are added."""
