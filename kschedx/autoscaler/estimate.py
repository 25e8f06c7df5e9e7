"""How many nodes of a group the pods that fit there would need.

Upstream: estimator/binpacking_estimator.go and the thresholds beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.go_sort import sort_slice
from kschedx.api.quantity import milli_value, value
from kschedx.api.types import Node, Pod
from kschedx.autoscaler.counted import CountedBins
from kschedx.autoscaler.world import NewNode, Seen, World
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.rows import ClusterRow

HOSTNAME = "kubernetes.io/hostname"
SPREAD_REASON = "node(s) didn't match pod topology spread constraints"


class Estimate(Struct, frozen=True, kw_only=True):
    """What the packing came to."""

    nodes: int
    pods: tuple[int, ...]
    """Those that found a place, in the order of packing."""


NOTHING = Estimate(nodes=0, pods=())


def node_limit(max_nodes_per_scale_up: int, headroom: int | None, max_nodes_total: int, current_nodes: int) -> int:
    """How many nodes an estimate may add: -1 for none, 0 for as many as it likes.

    `headroom` is what the group and its similar ones have left; None where that is not looked at.
    """
    limits = [max_nodes_per_scale_up]
    if headroom is not None:
        limits.append(headroom if headroom > 0 else -1)
    if max_nodes_total != 0:
        rest = max_nodes_total - current_nodes
        limits.append(rest if rest > 0 and max_nodes_total > 0 else -1)
    least = 0
    for limit in limits:
        if least < 0 or limit < 0:
            return -1
        if limit > 0 and (least == 0 or least > limit):
            least = limit
    return least


class Bins(Protocol):
    """New nodes of a group, numbered from 0, on which pods are placed. A pod is given with the number of its kind."""

    def add(self) -> int: ...

    def fits(self, kind: int, pod: int, node: int) -> bool: ...

    def place(self, kind: int, pod: int, node: int) -> None: ...

    def find(self, kind: int, pod: int) -> int | None:
        """One of the new nodes that takes the pod."""
        ...

    def place_elsewhere(self, kind: int, pod: int, last: int) -> int | None:
        """Where the last new node refuses the pod for its spread constraints, and they are about hosts: put it on any
        other node of the cluster. A node that is not new has a negative number."""
        ...


class WorldBins:
    """New nodes as nodes of a fork of the world: the general way."""

    def __init__(self, world: World, template: NewNode, behaviour: AutoscalerBehaviour) -> None:
        self._world = world
        self._template = template
        self._behaviour = behaviour
        self._first = world.node_count
        self._count = 0

    def add(self) -> int:
        self._world.add(renamed(self._template, f"{self._template.node.name}-e-{self._count}"))
        self._count += 1
        return self._count - 1

    def _row(self, node: int) -> ClusterRow:
        """The row in the world of one of the new nodes."""
        return ClusterRow(self._first + node)

    def fits(self, kind: int, pod: int, node: int) -> bool:
        return self._world.check(pod, self._row(node)).fits

    def place(self, kind: int, pod: int, node: int) -> None:
        self._world.place(pod, self._row(node))

    def find(self, kind: int, pod: int) -> int | None:
        if not self._count:
            return None
        mask = np.zeros(self._world.node_count, dtype=np.bool_)
        mask[self._first :] = True
        node = self._world.find(pod, mask)
        return None if node is None else node - self._first

    def place_elsewhere(self, kind: int, pod: int, last: int) -> int | None:
        if not self._behaviour.spread_pods_go_anywhere or not spreads_over_hosts(self._world.pod(pod)):
            return None
        if SPREAD_REASON not in self._world.check(pod, self._row(last)).reasons:
            return None
        mask = np.ones(self._world.node_count, dtype=np.bool_)
        mask[self._first + last] = False
        node = self._world.find(pod, mask)
        if node is not None:
            self._world.place(pod, node)
        return None if node is None else node - self._first


class CountingBins:
    """New nodes as counts, for kinds that nothing else decides about."""

    def __init__(self, world: World, kinds: Sequence[int], seen: Sequence[Seen]) -> None:
        self._world = world
        self._bins = CountedBins(kinds, seen)

    def add(self) -> int:
        return self._bins.add()

    def fits(self, kind: int, pod: int, node: int) -> bool:
        return self._bins.fits(kind, node)

    def place(self, kind: int, pod: int, node: int) -> None:
        self._bins.place(kind, node)

    def find(self, kind: int, pod: int) -> int | None:
        first = self._world.node_count
        node = self._bins.first_that_fits(kind, self._world.last - first)
        if node is not None:
            self._world.last = ClusterRow(first + node)
        return node

    def place_elsewhere(self, kind: int, pod: int, last: int) -> int | None:
        return None


class Estimator:
    """One estimate."""

    def __init__(self, bins: Bins, limit: int) -> None:
        """`limit` as `node_limit` has it."""
        self._bins = bins
        self._limit = limit
        self._added = 0
        self._last: int | None = None
        """The newest node."""
        self._used: set[int] = set()
        """The nodes that took a pod; with some luck old ones are among them."""
        self._pods: list[int] = []

    def estimate(self, kinds: Sequence[Ordered], fast: int = -1) -> Estimate:
        """`kinds` in the order of packing; `fast` is the number of the one that is packed by arithmetic, which is the
        last one then."""
        fakes = 0
        more = True
        for kind in kinds:
            left = self._on_nodes_added_before(kind)
            if not more:
                continue
            if kind.number == fast:
                fakes = self._fast(kind.number, left)
            else:
                more = self._on_new_nodes(kind.number, left)
        return Estimate(nodes=len(self._used) + fakes, pods=tuple(self._pods))

    def _took(self, pod: int, node: int) -> None:
        self._used.add(node)
        self._pods.append(pod)

    def _on_nodes_added_before(self, kind: Ordered) -> Sequence[int]:
        """Place pods on any node of this estimate until one does not fit; returns it and those after it."""
        for index, pod in enumerate(kind.pods):
            node = self._bins.find(kind.number, pod)
            if node is None:
                return kind.pods[index:]
            self._bins.place(kind.number, pod, node)
            self._took(pod, node)
        return ()

    def _may_add(self) -> bool:
        if self._limit < 0 or (self._limit > 0 and self._added >= self._limit):
            return False
        self._added += 1
        return True

    def _on_new_nodes(self, kind: int, pods: Sequence[int]) -> bool:
        """Place pods on the last new node or a further one; False where no more may be added."""
        bins = self._bins
        for pod in pods:
            if self._last is not None:
                if bins.fits(kind, pod, self._last):
                    bins.place(kind, pod, self._last)
                    self._took(pod, self._last)
                    continue
                node = bins.place_elsewhere(kind, pod, self._last)
                if node is not None:
                    self._took(pod, node)
                    continue
                if self._last not in self._used:
                    return True  # the last node is empty and refuses the pod: so would any other
            if not self._may_add():
                return False
            self._last = bins.add()
            if not bins.fits(kind, pod, self._last):
                return True
            bins.place(kind, pod, self._last)
            self._took(pod, self._last)
        return True

    def _fast(self, kind: int, pods: Sequence[int]) -> int:
        """Pack one node, and count on from there; returns the nodes that were only counted."""
        if not pods or not self._may_add():
            return 0
        node = self._last = self._bins.add()
        count = 0
        for pod in pods:
            if not self._bins.fits(kind, pod, node):
                break
            self._bins.place(kind, pod, node)
            self._took(pod, node)
            count += 1
        if count == 0:
            return 0
        needed = -(-len(pods) // count)
        placed = count
        fakes = 0
        for _ in range(1, needed):
            if not self._may_add():
                break
            more = pods[placed : placed + count]
            self._pods.extend(more)
            placed += len(more)
            fakes += bool(more)
        return fakes


class Ordered(Struct, frozen=True, kw_only=True):
    """Pods that are judged together, in the order of packing."""

    number: int
    pods: tuple[int, ...]


def renamed(template: NewNode, name: str) -> NewNode:
    """A copy of a template under a name of its own."""
    node = template.node
    labels = {**node.metadata.labels, HOSTNAME: name}
    return replace(template, node=replace(node, metadata=replace(node.metadata, name=name, labels=labels)))


def ordered_kinds(
    kinds: Sequence[tuple[int, ...]], requests: Mapping[int, tuple[int, int]], node: Node
) -> list[Ordered]:
    """By falling share of the node's cpu plus share of its memory, of the first pod of each kind; `requests` has
    milli-cpu and memory of those. A kind's number is its place in `kinds`."""
    cpu = milli_value(node.status.allocatable.get("cpu", 0))
    memory = value(node.status.allocatable.get("memory", 0))

    def score(kind: tuple[int, ...]) -> float:
        asked_cpu, asked_memory = requests[kind[0]]
        total = 0.0
        if cpu > 0:
            total += float(asked_cpu) / float(cpu)
        if memory > 0:
            total += float(asked_memory) / float(memory)
        return total

    scored = [(score(kind), Ordered(number=number, pods=kind)) for number, kind in enumerate(kinds)]
    sort_slice(scored, lambda a, b: a[0] > b[0])
    return [kind for _, kind in scored]


def spreads_over_hosts(pod: Pod) -> bool:
    """Whether a spread constraint, hard or soft, is about hostnames."""
    return any(one.topology_key == HOSTNAME for one in pod.spec.topology_spread_constraints)
