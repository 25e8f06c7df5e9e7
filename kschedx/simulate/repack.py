"""How a profile fills the nodes after it has placed all running pods again: they are taken off their nodes and decided
one after another, in queue order.

The cluster reaches this state as its pods are replaced. The sum of what happens to each pod alone is not the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.workloads import evict
from kschedx.explain.difference import Filling, Repacking
from kschedx.explain.setup import Setup
from kschedx.kube.names import PODS
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

RESOURCES = ("cpu", "memory", PODS)


MOST_KINDS = 200
"""Equivalence classes of pods that fragmentation considers, the most frequent first."""


class Repacked(Struct, frozen=True, kw_only=True):
    filling: Filling
    nodes: tuple[str, ...]
    """The node of each pod; empty if it is unschedulable."""
    fragmentation: float
    """Percent of the free capacity on nodes on which a pod identical to one of these does not fit, for the resources
    that it requests; constraints do not count."""
    spread: float
    """Standard deviation of the nodes' requested cpu or memory, in percentage points."""

    @classmethod
    def of_now(cls, snapshot: Snapshot, setup: Setup, rows: Sequence[int]) -> Repacked:
        """Return the current nodes and the current node of each pod."""
        return cls.of(setup.scheduler_on(snapshot).nodes, rows, tuple(snapshot.pods.node_names[row] for row in rows))

    @classmethod
    def of(cls, table: NodeTable, rows: Sequence[int], nodes: tuple[str, ...], pending: tuple[str, ...] = ()) -> Self:
        # numbers and names alone: a worker sends it to the process that requests it
        return cls(
            filling=filling(table, pending),
            nodes=nodes,
            fragmentation=_fragmentation(table, rows),
            spread=_spread(table),
        )


def _fragmentation(nodes: NodeTable, rows: Sequence[int]) -> float:
    kinds, counts = np.unique(nodes.requests.matrix[np.array(rows, dtype=np.int64)], axis=0, return_counts=True)
    free = np.maximum(nodes.allocatable - nodes.requested, 0)
    total = np.maximum(free.sum(axis=0), 1)
    has_slot = nodes.allowed_pods > nodes.pod_count
    shares, weights = [0.0], [0]
    for index in np.argsort(-counts, kind="stable")[:MOST_KINDS].tolist():
        requested = kinds[index] > 0
        if requested.any():
            lacks = ~((free[:, requested] >= kinds[index][requested]).all(axis=1) & has_slot)
            shares.append(float((free[lacks][:, requested].sum(axis=0) / total[requested]).mean()))
            weights.append(int(counts[index]))
    return 100 * float(np.average(shares, weights=weights)) if any(weights) else 0.0


def _spread(nodes: NodeTable) -> float:
    at = [nodes.resources.index[name] for name in RESOURCES if name != PODS]
    percent = 100 * nodes.requested[:, at] / np.maximum(nodes.allocatable[:, at], 1)
    return float(percent.std(axis=0).max(initial=0.0)) if len(nodes) else 0.0


def movable(snapshot: Snapshot) -> list[int]:
    """Return the running pods that a controller or a person could create on any node: no pods of DaemonSets, and no
    static pods."""
    pods = snapshot.pods
    moves = (pods.node >= 0) & ~_stay(pods)
    return [row for row in np.flatnonzero(moves).tolist() if not pods.deletion_timestamps[row]]


def _stay(pods: PodTable) -> BoolArray:
    """Return a mask of the pods of DaemonSets and of static pods."""
    return pods.owners.where(lambda owners: any(owner.kind in ("DaemonSet", "Node") for owner in owners))


def repack(snapshot: Snapshot, setup: Setup, rows: Sequence[int]) -> Repacked:
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
    return Repacked.of(simulator.run.scheduler.nodes, rows, nodes, pending)


def repacking(now: Filling, before: Repacked, after: Repacked) -> Repacking:
    return Repacking(
        pods=len(before.nodes),
        now=now,
        before=before.filling,
        after=after.filling,
        moves=Counter(zip(before.nodes, after.nodes, strict=True)),
    )


def filling(nodes: NodeTable, pending: tuple[str, ...] = ()) -> Filling:
    used = nodes.count_where(~_stay(nodes.pods)) > 0
    at = [nodes.resources.index[name] for name in RESOURCES if name != PODS]
    requested = np.column_stack([nodes.requested[:, at], nodes.pod_count])[used]
    allocatable = np.column_stack([nodes.allocatable[:, at], nodes.allowed_pods])[used]
    percent = 100 * requested // np.maximum(allocatable, 1)
    return Filling(
        nodes=len(nodes),
        in_use=int(used.sum()),
        unused=tuple(nodes.names[row] for row in np.flatnonzero(~used).tolist()),
        requested=dict(zip(RESOURCES, requested.sum(axis=0).tolist(), strict=True)),
        allocatable=dict(zip(RESOURCES, allocatable.sum(axis=0).tolist(), strict=True)),
        fullest=dict(zip(RESOURCES, percent.max(axis=0, initial=0).tolist(), strict=True)),
        pending=pending,
    )
