"""A change that makes the autoscaler help, as facts. `render/words/autoscaler.py` has its title."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from kschedx.kube.types import Taint


class RaisePriority(Struct, frozen=True, kw_only=True):
    """Of the pod."""

    at_least: int


class TolerateTaints(Struct, frozen=True, kw_only=True):
    taints: tuple[Taint, ...]


class ResourceAmount(Struct, frozen=True, kw_only=True):
    resource: str
    amount: int
    """In the integers of plugins."""


class RequestAtMost(Struct, frozen=True, kw_only=True):
    amounts: tuple[ResourceAmount, ...]


class UncordonNode(Struct, frozen=True, kw_only=True):
    """One that the group's new nodes are modelled on."""

    node: str


class RaiseMaximum(Struct, frozen=True, kw_only=True):
    group: str
    before: int
    after: int


class SetFlag(Struct, frozen=True, kw_only=True):
    """A switch of the autoscaler's own command line."""

    name: str


class AddGroup(Struct, frozen=True, kw_only=True):
    """A group of its own, whose nodes are like those of another one but for these."""

    like: str
    labels: tuple[tuple[str, str], ...] = ()
    """Key and value."""
    without_labels: tuple[str, ...] = ()
    without_taints: tuple[Taint, ...] = ()


RemedyStep: TypeAlias = (
    RaisePriority | TolerateTaints | RequestAtMost | UncordonNode | RaiseMaximum | SetFlag | AddGroup
)


class AutoscalerRemedy(Struct, frozen=True, kw_only=True):
    """A change, and what the autoscaler does then."""

    step: RemedyStep
    group: str
    nodes: int
    """That are added to the group; 0 where it fits the group then, and nodes for other pods come first."""
