"""The pods of a cluster that moves, and the account of what has moved."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.snapshot.columns import Column, IntArray, rows_by_group
from kschedx.snapshot.pods import PodTable, Tally
from kschedx.snapshot.rows import ClusterRow


class Kind(IntEnum):
    """What a move does to a pod; the number is what it adds to its node."""

    PLACE = 1
    REMOVE = -1


NOBODY = -1
"""In place of a pod, where it is the node itself that has changed, or the volumes of its pods."""


class Steps(Struct):
    """Every pod that came or left, and every node that changed, in order: what columns have to catch up with. It only
    grows."""

    pods: list[int] = field(default_factory=list)
    nodes: list[ClusterRow] = field(default_factory=list)
    signs: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.pods)

    def since(self, seen: int) -> tuple[IntArray, IntArray, IntArray]:
        """(move,) pods, nodes and signs of what happened after the first `seen` of them."""
        return (
            np.array(self.pods[seen:], dtype=np.int64),
            np.array(self.nodes[seen:], dtype=np.int64),
            np.array(self.signs[seen:], dtype=np.int64),
        )


class _OnNodes(Struct):
    """The pods on each node: those of the beginning by group, and the lists of nodes that a move has touched."""

    order: IntArray
    start: IntArray
    touched: dict[ClusterRow, IntArray] = field(default_factory=dict)

    def on(self, node: ClusterRow) -> IntArray:
        rows = self.touched.get(node)
        return self.order[self.start[node] : self.start[node + 1]] if rows is None else rows

    def add(self, pod: int, node: ClusterRow) -> None:
        rows = self.on(node)
        place = int(np.searchsorted(rows, pod))
        self.touched[node] = np.concatenate((rows[:place], [pod], rows[place:]))  # np.insert takes ten times as long

    def remove(self, pod: int, node: ClusterRow) -> None:
        rows = self.on(node)
        self.touched[node] = rows[rows != pod]


class _Tallied(Struct):
    """A tally's sums, as they were after the first `seen` steps."""

    sums: IntArray
    seen: int


class MovingPods(PodTable, frozen=True, kw_only=True, dict=True):
    """The pods of a cluster that moves. `node`, `node_names.codes` and `nominated_node_names` change in place."""

    on_nodes: _OnNodes
    steps: Steps
    nominations: dict[int, str]
    """Rows of pods without a node to the node that they are nominated for."""
    tallied: dict[Tally, _Tallied] = field(default_factory=dict)

    @classmethod
    def moving(cls, pods: PodTable, node_names: Column[str]) -> MovingPods:
        """The same pods with columns of their own; `node_names` has every node among its values."""
        order, start = rows_by_group(pods.node, pods.node_count)
        shared = {name: getattr(pods, name) for name in PodTable.__struct_fields__}
        nominated = list(pods.nominated_node_names)
        own = {
            "node": pods.node.copy(),
            "node_names": node_names,
            "nominated_node_names": nominated,
            "grouped": None,
            "start_times": list(pods.start_times),
            "derived": dict(pods.derived),
        }
        return cls(
            **(shared | own),
            on_nodes=_OnNodes(order=order, start=start),
            steps=Steps(),
            nominations={row: nominated[row] for row in pods.nominated},
        )

    def own_starts(self) -> None:
        """`started` becomes an array of this table's own."""
        shared = self.started
        self.derived.update({key: value.copy() for key, value in self.derived.items() if value is shared})

    def on_node(self, node: ClusterRow) -> IntArray:
        return self.on_nodes.on(node)

    @property
    def nominated(self) -> tuple[int, ...]:
        return tuple(sorted(self.nominations))

    @property
    def pending(self) -> tuple[int, ...]:
        unfinished = ~self.phases.where(lambda phase: phase in ("Succeeded", "Failed"))
        return tuple(int(row) for row in np.flatnonzero(~self.node_names.where(bool) & unfinished))

    @property
    def gone(self) -> list[int]:
        """Rows of pods that have left their node and wait for no other."""
        left = {row for row, sign in zip(self.steps.pods, self.steps.signs, strict=True) if sign == Kind.REMOVE}
        return sorted(row for row in left if self.node[row] < 0 and self.node_names[row])

    def tally(self, tally: Tally) -> IntArray:
        """As of a table that stands still, for the price of what has moved since it was asked for last."""
        known = self.tallied.get(tally)
        if known is None:
            weights = tally.weights(self, np.arange(len(self)))
            rows = np.flatnonzero(weights)  # few pods, for most tallies
            rows = rows[self.node[rows] >= 0]
            sums = np.bincount(self.node[rows], weights=weights[rows], minlength=self.node_count)
            known = self.tallied[tally] = _Tallied(sums=sums.astype(np.int64), seen=len(self.steps))
        elif known.seen < len(self.steps):
            pods, nodes, signs = self.steps.since(known.seen)
            if (signs == 0).any():
                pods, nodes, signs = pods[signs != 0], nodes[signs != 0], signs[signs != 0]
            weights = tally.weights(self, pods) * signs
            weights[nodes >= self.node_count] = 0  # what ran on nodes that are no more has left them again
            if weights.any():
                known.sums = known.sums.copy()  # who holds the old sums keeps them
                moved = np.flatnonzero(weights)
                np.add.at(known.sums, nodes[moved], weights[moved])
            known.seen = len(self.steps)
        return known.sums

    def with_nodes(self, count: int) -> MovingPods:
        """The same columns over more nodes, on which nothing runs yet."""
        more = count - self.node_count
        on = self.on_nodes
        start = np.concatenate([on.start, np.full(more, on.start[-1])])
        # every tally is brought up to date first: the old nodes and the new ones share what happens from now on
        tallied = {
            tally: _Tallied(np.concatenate([self.tally(tally), np.zeros(more, dtype=np.int64)]), len(self.steps))
            for tally in self.tallied
        }
        on_nodes = _OnNodes(order=on.order, start=start, touched=on.touched)
        return replace(self, node_count=count, on_nodes=on_nodes, tallied=tallied)

    def without_node(self, node: ClusterRow) -> MovingPods:
        """The same columns over the other nodes: those behind `node`, on which nothing runs, move up by a row.

        Moves of this table leave the places in the old one as they are; the names of nodes are shared.
        """
        place = self.node - (self.node > node)
        order, start = rows_by_group(place, self.node_count - 1)
        on_nodes = _OnNodes(order=order, start=start)
        return replace(self, node=place, node_count=self.node_count - 1, on_nodes=on_nodes, tallied={})
