"""A change that makes an autoscaler help: what those of cluster-autoscaler and of Karpenter have in common."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from msgspec import Struct

from kschedx.kube.quantity import Unit, format_quantity
from kschedx.kube.types import Node, Pod, Taint


class StepKind(Enum):
    OF_POD = auto()
    """The pod tolerates taints, or requests less."""
    ROOM = auto()
    """A larger group or pool, or a pod that the autoscaler looks at: it comes before other changes of the pod."""
    NEW_GROUP = auto()
    OTHER = auto()


class RemedyStep(Struct, frozen=True, kw_only=True):
    title: str
    """`raise the maximum of node group workers from 3 to 4`."""
    kind: StepKind = StepKind.OTHER


def tolerate(taints: Iterable[Taint]) -> RemedyStep:
    return RemedyStep(title=f"tolerate {' and '.join(map(str, taints))}", kind=StepKind.OF_POD)


def request_at_most(amounts: Iterable[tuple[str, int]]) -> RemedyStep:
    """Of resources and amounts, which are in the integers of plugins."""
    told = (f"{format_quantity(amount, Unit.of(name))} {name}" for name, amount in amounts)
    return RemedyStep(title=f"lower the request to {' and '.join(told)}", kind=StepKind.OF_POD)


class AutoscalerRemedy(Struct, frozen=True, kw_only=True):
    """A change, and what the autoscaler does then."""

    step: RemedyStep
    group: str
    nodes: int
    """That are added to the group; 0 where it fits the group then, and nodes for other pods come first."""
    pod: Pod
    """As it is then."""
    node: Node | None
    """Of which the autoscaler makes the group's new nodes."""
