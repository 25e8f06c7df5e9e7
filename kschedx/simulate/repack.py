"""Running pods in other places: a whole cluster packed anew, and nodes emptied together.

The first part is how a profile fills the nodes after it has placed all running pods again: they are taken off their
nodes and decided one after another, in queue order.

The cluster reaches this state as its pods are replaced. The sum of what happens to each pod alone is not the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.workloads import evict, staying_with_nodes
from kschedx.explain.difference import Filling, Repacking
from kschedx.explain.setup import Setup
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import PODS
from kschedx.simulate.drain import STAYS, DrainOutcome, drain
from kschedx.simulate.moves import PodMove
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot

_RESOURCES = ("cpu", "memory", PODS)


_MOST_REQUESTS = 200  # equivalence classes of pods that fragmentation considers, the most frequent first


class RepackedNodes(Struct, frozen=True, kw_only=True):
    filling: Filling
    nodes: tuple[str, ...]  # the node of each pod; empty if it is unschedulable
    fragmentation: float
    """Percent of the free capacity on nodes on which a pod identical to one of these does not fit, for the resources
    that it requests; constraints do not count."""
    spread: float  # standard deviation of the nodes' requested cpu or memory, in percentage points

    @classmethod
    def of_now(cls, snapshot: Snapshot, setup: Setup, rows: Sequence[int]) -> RepackedNodes:
        """Return the current nodes and the current node of each pod."""
        return cls.of(setup.scheduler_on(snapshot).nodes, rows, tuple(snapshot.pods.node_names[row] for row in rows))

    @classmethod
    def of(cls, table: NodeTable, rows: Sequence[int], nodes: tuple[str, ...], pending: tuple[str, ...] = ()) -> Self:
        # numbers and names alone: a worker sends it to the process that requests it
        return cls(
            filling=measure_filling(table, pending),
            nodes=nodes,
            fragmentation=_fragmentation(table, rows),
            spread=_spread(table),
        )


def _fragmentation(nodes: NodeTable, rows: Sequence[int]) -> float:
    requests, counts = np.unique(nodes.requests.matrix[np.array(rows, dtype=np.int64)], axis=0, return_counts=True)
    free = np.maximum(nodes.allocatable - nodes.requested, 0)
    total = np.maximum(free.sum(axis=0), 1)
    has_slot = nodes.allowed_pods > nodes.pod_count
    shares, weights = [0.0], [0]
    for index in np.argsort(-counts, kind="stable")[:_MOST_REQUESTS].tolist():
        requested = requests[index] > 0
        if requested.any():
            lacks = ~((free[:, requested] >= requests[index][requested]).all(axis=1) & has_slot)
            shares.append(float((free[lacks][:, requested].sum(axis=0) / total[requested]).mean()))
            weights.append(int(counts[index]))
    return 100 * float(np.average(shares, weights=weights)) if any(weights) else 0.0


def _spread(nodes: NodeTable) -> float:
    at = [nodes.resources.index[name] for name in _RESOURCES if name != PODS]
    percent = 100 * nodes.requested[:, at] / np.maximum(nodes.allocatable[:, at], 1)
    return float(percent.std(axis=0).max(initial=0.0)) if len(nodes) else 0.0


def movable(snapshot: Snapshot) -> list[int]:
    """Return the running pods that a controller or a person could create on any node: no pods of DaemonSets, and no
    static pods."""
    pods = snapshot.pods
    moves = (pods.node >= 0) & ~staying_with_nodes(pods)
    return [row for row in np.flatnonzero(moves).tolist() if not pods.deletion_timestamps[row]]


def repack(snapshot: Snapshot, setup: Setup, rows: Sequence[int]) -> RepackedNodes:
    """Return the nodes after these running pods are rescheduled. All other pods stay on their nodes."""
    if len(setup.profiles) == 1:
        # as in comparisons of pods, a single profile stands for whatever name the other side has for it
        setup = replace(setup, forced_profile=setup.profiles[0].scheduler_name)
    simulator = Simulator(snapshot, setup, SimulationOptions())
    for row in rows:
        evict(simulator.run, row, waits=True)
    pods = simulator.run.cluster.pods
    simulator.queue.run(simulator.queue.order(rows))
    pending = tuple(pods.key(row) for row in rows if pods.node[row] < 0)
    names = snapshot.cluster.names
    nodes = tuple(names[row] if row >= 0 else "" for row in pods.node[rows].tolist())
    return RepackedNodes.of(simulator.run.scheduler.nodes, rows, nodes, pending)


def compare_repacking(now: Filling, before: RepackedNodes, after: RepackedNodes) -> Repacking:
    return Repacking(
        pods=len(before.nodes),
        now=now,
        before=before.filling,
        after=after.filling,
        moves=Counter(zip(before.nodes, after.nodes, strict=True)),
    )


def measure_filling(nodes: NodeTable, pending: tuple[str, ...] = ()) -> Filling:
    used = nodes.count_where(~staying_with_nodes(nodes.pods)) > 0
    at = [nodes.resources.index[name] for name in _RESOURCES if name != PODS]
    requested = np.column_stack([nodes.requested[:, at], nodes.pod_count])[used]
    allocatable = np.column_stack([nodes.allocatable[:, at], nodes.allowed_pods])[used]
    percent = 100 * requested // np.maximum(allocatable, 1)
    return Filling(
        nodes=len(nodes),
        in_use=int(used.sum()),
        unused=tuple(nodes.names[row] for row in np.flatnonzero(~used).tolist()),
        requested=dict(zip(_RESOURCES, requested.sum(axis=0).tolist(), strict=True)),
        allocatable=dict(zip(_RESOURCES, allocatable.sum(axis=0).tolist(), strict=True)),
        fullest=dict(zip(_RESOURCES, percent.max(axis=0, initial=0).tolist(), strict=True)),
        pending=pending,
    )


# Nodes that can be emptied together: they are drained one after the other, as long as every pod fits another node.

_MOST_TRIED = 100  # nodes, those with the fewest pods first


class EmptiedDocument(Document, frozen=True):
    nodes: tuple[str, ...]
    moves: tuple[PodMove, ...]
    blocked: Mapping[str, str]
    not_tried: int
    price: str | None


class EmptiedNodes(Struct, frozen=True, kw_only=True):
    """Nodes that are drained one after the other, and stay cordoned."""

    nodes: tuple[str, ...]
    moves: Mapping[str, tuple[str, str]]  # pods, `namespace/name`, to their old and new nodes
    blocked: Mapping[str, str]  # other nodes that were tried, to why they are not emptied
    not_tried: int
    prices: Mapping[str, float | None]  # per hour; None if unknown

    @property
    def price(self) -> float | None:
        """The price of all nodes per hour; None if the price of one is unknown."""
        known = [price for price in self.prices.values() if price is not None]
        return sum(known) if known and len(known) == len(self.prices) else None

    @property
    def document(self) -> EmptiedDocument:
        moves = tuple(PodMove(pod, source, to) for pod, (source, to) in self.moves.items())
        return part_of(EmptiedDocument, self, moves=moves, price=None if self.price is None else f"{self.price:.4f}")


def empty_nodes(
    snapshot: Snapshot, setup: Setup, names: Sequence[str], price_of: Callable[[str], float | None]
) -> EmptiedNodes:
    """Drain these nodes within budgets, those with the fewest pods first. The drain of a node is undone if a pod would
    stay on it or stay pending. Nothing is preempted for a pod that moves."""
    simulator = Simulator(snapshot, setup, SimulationOptions(force=True, delete_emptydir_data=True))
    cluster = simulator.run.cluster
    index = cluster.snapshot.cluster.index
    order = sorted(names, key=lambda name: (len(cluster.pods.on_node(index[name])), name))[:_MOST_TRIED]
    emptied: list[str] = []
    moves: dict[str, tuple[str, str]] = {}
    blocked: dict[str, str] = {}
    for name in order:
        mark = simulator.mark()
        [drained] = drain(simulator, [name], uncordons=False)
        stays = drained.of(*STAYS)
        lost = drained.of(DrainOutcome.DELETED)
        preempts = any(step.victims for step in simulator.queue.steps[mark.record.steps :])
        why = ""
        if stays:
            why = f"PDB {stays[0].budget} blocks the eviction of {stays[0].pod}"
        elif lost:
            message = lost[0].message
            why = f"{lost[0].pod}: {message}" if message else f"no controller recreates {lost[0].pod}"
        elif drained.pending:
            why = f"{drained.pending[0].pod} fits no other node"
        elif preempts:
            why = "its pods would preempt others"
        if why:
            blocked[name] = why
            simulator.revert(mark)
            continue
        emptied.append(name)
        for pod in drained.of(DrainOutcome.EVICTED):
            source = moves.get(pod.pod, (name, ""))[0]
            moves[pod.pod] = source, pod.node
    prices = {name: price_of(name) for name in emptied}
    not_tried = len(names) - len(order)
    return EmptiedNodes(nodes=tuple(emptied), moves=moves, blocked=blocked, not_tried=not_tried, prices=prices)
