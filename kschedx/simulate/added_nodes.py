"""How many nodes of which shapes make some pods schedulable: nodes are added on trial, and the pods scheduled one by
one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import count, zip_longest

import numpy as np
from msgspec.structs import replace

from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.kube.documents import Document
from kschedx.kube.names import ZONE_LABELS, first_label
from kschedx.kube.types import Node
from kschedx.simulate.changes import SHAPES, another_like, shapes
from kschedx.simulate.simulator import Simulator
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.daemon_sets import DaemonPod, daemon_pods, overhead, with_less_allocatable
from kschedx.snapshot.pods import PodTable

_MOST_ADDED = 500  # pods that fit none of these nodes are reported as not helped
_MOST_KINDS = 60  # equivalence classes of pods for which node shapes are tried


class NodesLike(Document, frozen=True):
    like: str  # an existing node with this shape
    zone: str  # empty if nodes have no zones
    count: int


class AddedNodes(Document, frozen=True):
    nodes: tuple[NodesLike, ...]
    pods: int  # the number of pods that have a node then
    not_helped: tuple[str, ...]  # `namespace/name`


def nodes_for(
    simulator: Simulator,
    rows: Sequence[int],
    gone: Collection[str],
    *,
    keeps_labels: bool = True,
    keeps_zones: bool = False,
) -> AddedNodes:
    """Return the nodes on which these pending pods fit, besides the nodes that are `gone`; the cluster is left
    unchanged. Without `keeps_labels`, no topology counts the lost nodes. With `keeps_zones`, nodes can be added in a
    zone that has lost all of its nodes."""
    cluster = simulator.run.cluster
    mark = cluster.mark()
    if not keeps_labels:
        for name in gone:
            place = cluster.snapshot.cluster.index[name]
            node = cluster.snapshot.cluster.nodes[place]
            cluster.replace_node(place, replace(node, metadata=replace(node.metadata, labels={})))
    nodes = _Addition(simulator, gone, keeps_zones=keeps_zones).place(rows)
    cluster.revert(mark)
    return nodes


def _kind_of(pods: PodTable, row: int) -> tuple[int, ...]:
    return tuple(int(column.codes[row]) for column in (pods.namespaces, pods.labels, pods.specs))


def left_over(run: Run, rows: Sequence[int]) -> Iterator[int]:
    """Yield the unschedulable pods. They are scheduled one after the other; after one pod of a class is unschedulable,
    the others of the class are not tried."""
    pods, waiting = run.cluster.pods, np.asarray(rows, dtype=np.int64)
    full: set[tuple[int, ...]] = set()
    ends = np.append(np.flatnonzero(np.diff(pods.class_numbers(waiting))) + 1, len(waiting))
    at = 0
    while at < len(waiting):
        row, at = int(waiting[at]), at + 1
        kind = _kind_of(pods, row)
        decision = None if kind in full else run.decide(row)
        if decision is None or decision.outcome is not Outcome.SCHEDULED:
            full.add(kind)
            yield row
            continue
        run.bind(row, decision.choice[0], int(waiting[at]) if at < len(waiting) else None)
        end = ends[ends.searchsorted(at)]
        at += len(run.bind_identical(waiting[at:end], lambda best: ClusterRow(int(best[0]))))


class _Addition:
    def __init__(self, simulator: Simulator, gone: Collection[str], *, keeps_zones: bool) -> None:
        self._simulator = simulator
        self._cluster = simulator.run.cluster
        nodes = self._cluster.snapshot.cluster.nodes
        start = {node.name: node for node in simulator.start.cluster.nodes}
        self._alive = [node for node in nodes if node.name not in gone]
        lost = [node for name in gone if (node := start.get(name)) is not None]
        self._templates = [*self._alive, *(lost if keeps_zones else _nodes_in_live_zones(lost, self._alive))]
        self._daemons: tuple[DaemonPod, ...] = daemon_pods(
            self._cluster.snapshot, simulator.run.scheduler.nodes.options
        )
        self._comparison = simulator.setup.release.compares_taints
        self._added: Counter[tuple[str, str]] = Counter()

    def place(self, rows: Sequence[int]) -> AddedNodes:
        run, not_helped = self._simulator.run, list[int]()
        left = list(left_over(run, rows))
        for _ in range(_MOST_KINDS):
            if not left:
                break
            kind = _kind_of(self._cluster.pods, left[0])
            its = [row for row in left if _kind_of(self._cluster.pods, row) == kind]
            others = [row for row in left if row not in {*its}]
            is_helped = self._add_for(its)
            not_helped += [row for row in its if self._cluster.pods.node[row] < 0]
            left = list(left_over(run, others)) if is_helped else others
        pods, not_helped = self._cluster.pods, [*not_helped, *left]
        return AddedNodes(
            nodes=tuple(NodesLike(like=model, zone=zone, count=n) for (model, zone), n in self._added.most_common()),
            pods=len(rows) - len(not_helped),
            not_helped=tuple(map(pods.key, not_helped)),
        )

    def _add_for(self, rows: Sequence[int]) -> bool:
        """Add nodes on which these identical pods fit, until all of them do. Returns False if there is no such node."""
        left, is_helped = list(rows), False
        while left and self._add_shape(left):
            is_helped = True
            left = [row for row in left if self._cluster.pods.node[row] < 0]
        return is_helped

    def _kinds_of_nodes(self, row: int) -> list[Node]:
        """Return a node of each shape and zone, the best for the pod first."""
        by_zone: dict[str, list[Node]] = {}
        for node in self._templates:
            by_zone.setdefault(first_label(node.metadata.labels, ZONE_LABELS), []).append(node)
        shapes_by_zone = [shapes(nodes, self._cluster.pods[row])[:SHAPES] for nodes in by_zone.values()]
        return [node for some in zip_longest(*shapes_by_zone) for node in some if node is not None]

    def _add_shape(self, rows: Sequence[int]) -> bool:
        """Add nodes of the first shape on which these identical pods fit, as long as they help. Returns False if there
        is none."""
        run, cluster = self._simulator.run, self._cluster
        if sum(self._added.values()) >= _MOST_ADDED:
            return False
        for template in self._kinds_of_nodes(rows[0]):
            mark = cluster.mark()
            self._add(template)
            if run.decide(rows[0]).outcome is not Outcome.SCHEDULED:
                cluster.revert(mark)
                continue
            added, left = 1, list(left_over(run, rows))
            each = len(rows) - len(left)
            while left and each and added + sum(self._added.values()) < _MOST_ADDED:
                more = min(-(-len(left) // each), _MOST_ADDED - added)
                for _ in range(more):
                    self._add(template)
                before = len(left)
                left = list(left_over(run, left))
                if len(left) == before:
                    break
                added += more
            self._added[template.name, first_label(template.metadata.labels, ZONE_LABELS)] += added
            return True
        return False

    def _add(self, template: Node) -> None:
        known = self._cluster.snapshot.cluster.index
        name = next(name for number in count(1) if (name := f"{template.name}-added{number}") not in known)
        node = another_like(template, name)
        self._cluster.add_node(with_less_allocatable(node, overhead(self._daemons, node, comparison=self._comparison)))


def _nodes_in_live_zones(gone: Iterable[Node], alive: Sequence[Node]) -> list[Node]:
    """Return nodes like the lost ones, in a zone that still has nodes."""
    zones = sorted({first_label(node.metadata.labels, ZONE_LABELS) for node in alive})
    nodes = []
    for node in gone:
        labels = dict(node.metadata.labels)
        zone = first_label(labels, ZONE_LABELS)
        if zones and zone not in zones:
            labels |= {key: zones[0] for key in ZONE_LABELS if key in labels}
        nodes.append(replace(node, metadata=replace(node.metadata, labels=labels)))
    return nodes
