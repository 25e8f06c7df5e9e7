"""Something that could be done about one finding on one node."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import Node, Pod
from kschedx.fixes.model import Proposal
from kschedx.framework.cycle import Cycle
from kschedx.snapshot.nodes import NodeTable


class Cost(IntEnum):
    """The steps of what a change costs; cheaper is told first."""

    TYPO = 0
    """The pod says almost what a node says."""
    POD = 1
    """A change of the pod that gives up nothing."""
    LESS = 2
    """The pod asks for less, or no longer requires what it prefers."""
    OTHER_PODS = 3
    NODE = 4
    NEW_NODE = 5


class Remedy(Struct, frozen=True, kw_only=True):
    """A step from one proposal to another; several blockers on a node take several steps."""

    title: str
    cost: Cost
    step: Callable[[Proposal], Proposal]

    def on(self, proposal: Proposal) -> Proposal:
        """The proposal with this done as well; a step that is among its steps already is the same step."""
        if self.title in proposal.steps:
            return proposal
        after = self.step(proposal)
        return replace(after, steps=(*proposal.steps, self.title), cost=max(proposal.cost, self.cost))


class Place(Struct, frozen=True):
    """A node on which remedies are looked for."""

    cycle: Cycle
    nodes: NodeTable
    row: int
    """Row of `nodes`, the nodes that PreFilter left in."""

    @property
    def node(self) -> Node:
        return self.nodes.node(self.row)

    @property
    def node_row(self) -> int:
        """Row of the whole cluster's nodes."""
        return int(self.nodes.rows[self.row])

    @property
    def pod(self) -> Pod:
        return self.cycle.pod

    def change_node(self, change: Callable[[Node], Node]) -> Callable[[Proposal], Proposal]:
        """A step that changes this node's object, on top of what was changed before."""
        row, original = self.node_row, self.node
        return lambda p: replace(p, nodes={**p.nodes, row: change(p.nodes.get(row, original))})


def change_pod(change: Callable[[Pod], Pod]) -> Callable[[Proposal], Proposal]:
    """A step that changes the pod, on top of what was changed before."""
    return lambda p: replace(p, pod=change(p.pod))


def delete_pods(rows: tuple[int, ...]) -> Callable[[Proposal], Proposal]:
    return lambda p: replace(p, deleted=tuple(sorted({*p.deleted, *rows})))
