"""The cluster that the cluster-autoscaler plays with: nodes are added, pods are put on them, and all of it is undone.

Upstream: simulator/clustersnapshot (PredicateSnapshot, SchedulerPluginRunner).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.types import Node, Pod
from kschedx.framework.runtime import Framework
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Status
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.snapshot import Snapshot

PRE_FILTER_FAILED = "PreFilter failed"
PRE_FILTER_LEFT_OUT = "PreFilter filtered the Node out"


class Verdict(Struct, frozen=True, kw_only=True):
    """Whether a pod can run on a node, and if not, what the first plugin that rejects it says."""

    fits: bool
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    error: str = ""
    """Where it was not a Filter plugin's rejection."""


FITS = Verdict(fits=True)


class NewNode(Struct, frozen=True, kw_only=True):
    """A node to be added, with the pods that come with it."""

    node: Node
    pods: tuple[int, ...] = ()
    """Rows of pods that run nowhere; copies of them run on the node."""
    group: str = field(default="")


class World:
    """A snapshot that changes. A pod is named by its row, a node by its row; rows of nodes that are gone are not used
    again before the change is undone."""

    def __init__(self, framework: Framework, *, names_count: bool = True) -> None:
        """`names_count`: a node that PreFilter does not name is rejected where it alone is asked for."""
        self._framework = framework
        self._names_count = names_count
        self._pods: dict[int, Pod] = {}
        self._last = 0
        """Row of the node that was found last: the next search begins after it."""

    @property
    def snapshot(self) -> Snapshot:
        return self._framework.snapshot

    @property
    def node_count(self) -> int:
        return len(self.snapshot.cluster.nodes)

    def node(self, row: int) -> Node:
        return self.snapshot.cluster.nodes[row]

    def pod(self, row: int) -> Pod:
        if row not in self._pods:
            self._pods[row] = self.snapshot.pods[row]
        return self._pods[row]

    @contextmanager
    def fork(self) -> Iterator[None]:
        """What is done inside is undone at the end."""
        before = self._framework
        try:
            yield
        finally:
            self._framework = before

    # --- changes

    def _become(self, snapshot: Snapshot) -> None:
        self._framework = self._framework.on(snapshot)

    def place(self, pod: int, node: int) -> None:
        pods = self.snapshot.pods.placed(np.array([pod]), node)
        self._become(replace(self.snapshot, pods=pods, _tables={}))

    def add(self, new: NewNode) -> int:
        """The row of the node."""
        row = self.node_count
        pods = np.array(new.pods, dtype=np.int64)
        cluster = self.snapshot.cluster.with_added(new.node)
        grown = self.snapshot.pods.with_copies(pods, np.full(len(pods), row, dtype=np.int64), row + 1)
        self._become(replace(self.snapshot, cluster=cluster, pods=grown, _tables={}))
        return row

    # --- questions

    def check(self, row: int, node: int) -> Verdict:
        """PreFilter over the whole cluster, then Filter on the node; nothing changes."""
        framework = self._framework
        pod = self.pod(row)
        state = CycleState()
        _, status, names, naming = framework.run_pre_filter(state, pod)
        if not status.is_success:
            return Verdict(fits=False, plugin=status.plugin, reasons=status.reasons, error=PRE_FILTER_FAILED)
        if self._names_count and names is not None and self.node(node).name not in names:
            return Verdict(fits=False, plugin=", ".join(naming), error=PRE_FILTER_LEFT_OUT)
        outcome = framework.run_filters(state, pod, framework.nodes.take(np.array([node], dtype=np.int64)))
        if outcome.passed[0]:
            return FITS
        found = outcome.status(0)
        error = "" if found.is_rejection else f'unexpected filter status "{Code(found.code).text}"'
        return Verdict(fits=False, plugin=found.plugin, reasons=found.reasons, error=error)

    def rejections(self, row: int, node: int) -> tuple[Status, ...]:
        """Every plugin that rejects the pod on the node, with its findings; where PreFilter does, that alone."""
        framework = self._framework
        pod = self.pod(row)
        state = CycleState()
        _, status, names, naming = framework.run_pre_filter(state, pod)
        if not status.is_success:
            return (status,)
        if self._names_count and names is not None and self.node(node).name not in names:
            return (Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, plugin=", ".join(naming)),)
        outcome = framework.run_filters(state, pod, framework.nodes.take(np.array([node], dtype=np.int64)))
        return tuple(
            verdicts.status(0, plugin)
            for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True)
            if verdicts.rejected[0]
        )

    def find(self, row: int, among: BoolArray | None = None) -> int | None:
        """The first node (of those where the mask holds) that takes the pod, after the one that was found last;
        cordoned ones are left out."""
        framework = self._framework
        pod = self.pod(row)
        state = CycleState()
        _, status, names, _ = framework.run_pre_filter(state, pod)
        if not status.is_success:
            return None
        open_ = ~framework.nodes.unschedulable
        if among is not None:
            open_ &= among
        if names is not None:
            named = np.zeros(len(open_), dtype=np.bool_)
            named[[place for name in names if (place := self.snapshot.cluster.index.get(name)) is not None]] = True
            open_ = open_ & named
        rows = np.flatnonzero(open_)
        if not len(rows):
            return None
        passed = rows[framework.run_filters(state, pod, framework.nodes.take(rows)).passed]
        if not len(passed):
            return None
        after = passed[passed > self._last]
        self._last = int(after[0] if len(after) else passed[0])
        return self._last


def world_of(
    framework: Framework,
    nodes: Sequence[int],
    upcoming: Sequence[NewNode],
    more: Sequence[Pod],
    places: Mapping[int, int],
    gone: IntArray,
    *,
    names_count: bool,
) -> tuple[World, dict[int, int]]:
    """A world with some of the snapshot's nodes and new ones after them.

    `more` are pods that get rows of their own at the end, before anything else; `places` are pods that are put on a
    node (rows of the snapshot), `gone` those that are taken off it. Returns the world, and for rows of the snapshot's
    nodes those of the world's.
    """
    snapshot = framework.snapshot
    kept = {row: index for index, row in enumerate(nodes)}
    position = np.full(len(snapshot.cluster.nodes) + 1, -1, dtype=np.int64)
    position[list(kept)] = list(kept.values())
    pods = snapshot.pods
    node = position[pods.node]
    node[gone] = -1
    for pod, place in places.items():
        node[pod] = position[place]
    cluster_nodes = [snapshot.cluster.nodes[row] for row in nodes]
    scalars = frozenset(snapshot.cluster.resources.names)
    cluster = ClusterNodes([*cluster_nodes, *(new.node for new in upcoming)], snapshot.cluster.images, scalars)
    table = pods.moved(node, len(cluster.nodes)).with_pods(more)
    for index, new in enumerate(upcoming, start=len(nodes)):
        rows = np.array(new.pods, dtype=np.int64)
        table = table.with_copies(rows, np.full(len(rows), index, dtype=np.int64), len(cluster.nodes))
    changed = replace(snapshot, cluster=cluster, pods=table, _tables={})
    return World(framework.on(changed), names_count=names_count), kept
