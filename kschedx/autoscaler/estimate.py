"""How many nodes of a group the pods that fit there would need.

Upstream: estimator/binpacking_estimator.go and the thresholds beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.quantity import milli_value, value
from kschedx.api.types import Node, Pod
from kschedx.autoscaler.fast_path import best_for_fast_path
from kschedx.autoscaler.go_sort import sort_slice
from kschedx.autoscaler.world import NewNode, World
from kschedx.releases.autoscaler import AutoscalerBehaviour

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


class Estimator:
    """One estimate, on a fork of the world."""

    def __init__(
        self,
        world: World,
        template: NewNode,
        limit: int,
        requests: Mapping[int, tuple[int, int]],
        behaviour: AutoscalerBehaviour,
    ) -> None:
        """`limit` as `node_limit` has it; `requests` is milli-cpu and memory of the first pod of each kind."""
        self._world = world
        self._template = template
        self._limit = limit
        self._requests = requests
        self._behaviour = behaviour
        self._added = 0
        self._new: list[int] = []
        """Rows of the nodes that were added."""
        self._used: set[int] = set()
        """Rows of the nodes that took a pod; with some luck old ones are among them."""
        self._pods: list[int] = []

    def estimate(self, kinds: Sequence[tuple[int, ...]], *, fast_path: bool) -> Estimate:
        """`kinds` are the pods that fit, those that are judged together side by side."""
        ordered = ordered_kinds(kinds, self._requests, self._template.node)
        fast = -1
        if fast_path:
            fast = best_for_fast_path([(self._world.pod(kind[0]), len(kind)) for kind in ordered], self._template.node)
            if fast >= 0:
                ordered.append(ordered.pop(fast))
        fakes = 0
        with self._world.fork():
            more = True
            for index, kind in enumerate(ordered):
                left = self._on_nodes_added_before(kind)
                if not more:
                    continue
                if fast >= 0 and index == len(ordered) - 1:
                    fakes = self._fast(left)
                else:
                    more = self._on_new_nodes(left)
        return Estimate(nodes=len(self._used) + fakes, pods=tuple(self._pods))

    def _took(self, pod: int, node: int) -> None:
        self._world.place(pod, node)
        self._took_already(pod, node)

    def _took_already(self, pod: int, node: int) -> None:
        self._used.add(node)
        self._pods.append(pod)

    def _on_nodes_added_before(self, pods: Sequence[int]) -> Sequence[int]:
        """Place pods on any node of this estimate until one does not fit; returns it and those after it."""
        for index, pod in enumerate(pods):
            node = self._world.find(pod, self._mask(self._new, True)) if self._new else None
            if node is None:
                return pods[index:]
            self._took(pod, node)
        return ()

    def _mask(self, rows: Sequence[int], value: bool) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        mask = np.full(self._world.node_count, not value, dtype=np.bool_)
        mask[list(rows)] = value
        return mask

    def _may_add(self) -> bool:
        if self._limit < 0 or (self._limit > 0 and self._added >= self._limit):
            return False
        self._added += 1
        return True

    def _add(self) -> int:
        name = f"{self._template.node.name}-e-{len(self._new)}"
        row = self._world.add(renamed(self._template, name))
        self._new.append(row)
        return row

    def _on_new_nodes(self, pods: Sequence[int]) -> bool:
        """Place pods on the last new node or a further one; False where no more may be added."""
        for pod in pods:
            found = False
            last = self._new[-1] if self._new else None
            if last is not None:
                verdict = self._world.check(pod, last)
                if verdict.fits:
                    self._took(pod, last)
                    continue
                if (
                    self._behaviour.spread_pods_go_anywhere
                    and SPREAD_REASON in verdict.reasons
                    and spreads_over_hosts(self._world.pod(pod))
                ):
                    node = self._world.find(pod, self._mask([last], False))
                    if node is not None:
                        self._took(pod, node)
                        found = True
            if found:
                continue
            if last is not None and last not in self._used:
                return True  # the last node is empty and refuses the pod: so would any other
            if not self._may_add():
                return False
            row = self._add()
            if not self._world.check(pod, row).fits:
                return True
            self._took(pod, row)
        return True

    def _fast(self, pods: Sequence[int]) -> int:
        """Pack one node, and count on from there; returns the nodes that were only counted."""
        if not pods or not self._may_add():
            return 0
        row = self._add()
        count = 0
        for pod in pods:
            if not self._world.check(pod, row).fits:
                break
            self._took(pod, row)
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


def renamed(template: NewNode, name: str) -> NewNode:
    """A copy of a template under a name of its own."""
    node = template.node
    labels = {**node.metadata.labels, HOSTNAME: name}
    return replace(template, node=replace(node, metadata=replace(node.metadata, name=name, labels=labels)))


def ordered_kinds(
    kinds: Sequence[tuple[int, ...]], requests: Mapping[int, tuple[int, int]], node: Node
) -> list[tuple[int, ...]]:
    """By falling share of the node's cpu plus share of its memory, of the first pod of each kind."""
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

    scored = [(score(kind), kind) for kind in kinds]
    sort_slice(scored, lambda a, b: a[0] > b[0])
    return [kind for _, kind in scored]


def spreads_over_hosts(pod: Pod) -> bool:
    """Whether a spread constraint, hard or soft, is about hostnames."""
    return any(one.topology_key == HOSTNAME for one in pod.spec.topology_spread_constraints)
