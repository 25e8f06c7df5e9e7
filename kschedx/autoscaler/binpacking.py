"""How many new nodes of a group fit which pods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property

from kschedx.autoscaler.estimate import (
    NOTHING,
    CountingBins,
    Estimate,
    Estimator,
    WorldBins,
    is_countable,
    node_limit,
    ordered_kinds,
)
from kschedx.autoscaler.expanders import Option
from kschedx.autoscaler.sandbox import AddedNode, Sandbox, Seen
from kschedx.autoscaler.sizes import Similarity, similar_groups
from kschedx.autoscaler.state import LoopState
from kschedx.kube.names import HOSTNAME
from kschedx.kube.quantity import ResourceList, parse_quantity
from kschedx.kube.selectors import compile_selector
from kschedx.kube.types import Node, Pod

# `--fastpath-binpacking-enabled`: which equivalence class of pods is packed by arithmetic. Upstream:
# determineBestPEGToFastpath in estimator/binpacking_estimator.go.


def best_for_fast_path(kinds: Sequence[tuple[Pod, int]], node: Node) -> int:
    """Return the index of the class, given as a pod and a count, that saves the most; the last of equal ones, or -1."""
    best, saved_by_best = -1, 0
    for index, (pod, count) in enumerate(kinds):
        nodes = max(
            count if _keeps_away_from_itself(pod) else 0,
            _nodes_for(pod, count, node, "cpu"),
            _nodes_for(pod, count, node, "memory"),
        )
        saved = count - count // nodes if nodes > 0 else 0
        if saved >= saved_by_best and _is_simple(pod):
            best, saved_by_best = index, saved
    return best


def _nodes_for(pod: Pod, count: int, node: Node, resource: str) -> int:
    """Compute from the first container's request and the node's capacity."""
    requests: ResourceList = pod.spec.containers[0].resources.requests if pod.spec.containers else {}
    amount = _amount(requests, resource)
    there = _amount(node.status.capacity, resource)
    if there == 0:
        return 0
    return math.ceil(float(count) * amount / there)


def _amount(resources: ResourceList, name: str) -> float:
    if name not in resources:
        return 0.0
    quantity = parse_quantity(resources[name])
    return float(quantity.mantissa) * 10.0**quantity.exponent


def _keeps_away_from_itself(pod: Pod) -> bool:
    return any(
        term.topology_key == HOSTNAME
        and term.label_selector is not None
        and compile_selector(term.label_selector).matches(pod.metadata.labels)
        for term in pod.spec.required_anti_affinity
    )


def _is_simple(pod: Pod) -> bool:
    """Return whether the result for one new node holds for all others."""
    if pod.spec.topology_spread_constraints:
        return False
    return all(term.topology_key == HOSTNAME for term in pod.spec.required_anti_affinity)


# How many new nodes of a group fit which pods. Upstream: ComputeExpansionOption in
# core/scaleup/orchestrator/orchestrator.go, estimator/.


class Packing:
    """Packs pending pods on new nodes of one group; its changes of the world are undone."""

    def __init__(
        self,
        state: LoopState,
        world: Sandbox,
        new_nodes: Mapping[str, AddedNode],
        seen: Mapping[int, Mapping[str, Seen]],
    ) -> None:
        """`seen` are the results for each pod on the template of each group."""
        self._state = state
        self._world = world
        self._new_nodes = new_nodes
        self._seen = seen

    @cached_property
    def _similarity(self) -> Similarity:
        return Similarity(self._state.templates, self._state.flags, self._state.options, self._state.behaviour)

    def _similar(self, name: str, fitting: Mapping[str, Sequence[int]]) -> tuple[str, ...]:
        if not self._state.flags.balance_similar_node_groups:
            return ()
        return similar_groups(name, self._state.groups, self._similarity, fitting)

    def option(
        self,
        name: str,
        kinds: Sequence[tuple[int, ...]],
        fitting: Mapping[str, Sequence[int]],
        current: int,
    ) -> Option | None:
        """Return the new nodes of a group for the classes of pods that fit it; `fitting` is group to indices of
        `kinds`, `current` the number of nodes that count. None if no new node helps."""
        mine = [kinds[i] for i in fitting[name]]
        if not mine:
            return None
        similar = self._similar(name, fitting)
        estimate = self._estimate(name, mine, similar, current)
        if not estimate.pods or not estimate.nodes:
            return None
        requests = self._state.pods.requests(self._state.options)
        amounts = [requests[row].amounts for row in estimate.pods]
        return Option(
            group=name,
            nodes=estimate.nodes,
            pods=estimate.pods,
            similar=similar,
            milli_cpu=sum(amount.get("cpu", 0) for amount in amounts),
            memory=sum(amount.get("memory", 0) for amount in amounts),
        )

    def _estimate(self, name: str, kinds: Sequence[tuple[int, ...]], similar: Sequence[str], current: int) -> Estimate:
        headroom = None
        if self._state.behaviour.similar_groups_limit_the_estimate:
            headroom = sum(self._state.by_name[group].headroom for group in (name, *similar))
        limit = node_limit(
            self._state.flags.max_nodes_per_scale_up, headroom, self._state.flags.max_nodes_total, current
        )
        if limit < 0:
            return NOTHING
        requests = self._state.pods.requests(self._state.options)
        sort_keys = {
            kind[0]: (requests[kind[0]].amounts.get("cpu", 0), requests[kind[0]].amounts.get("memory", 0))
            for kind in kinds
        }
        new = self._new_nodes[name]
        ordered = ordered_kinds(kinds, sort_keys, new.node)
        fast = -1
        if self._state.flags.fast_path:
            fast = best_for_fast_path([(self._world.pod(kind.pods[0]), len(kind.pods)) for kind in ordered], new.node)
            if fast >= 0:
                ordered.append(ordered.pop(fast))
                fast = ordered[-1].number
        if self._counts(name, kinds):
            seen = [self._seen[kind[0]][name] for kind in kinds]
            bins = CountingBins(self._world, [kind[0] for kind in kinds], seen)
            return Estimator(bins, limit).estimate(ordered, fast)
        with self._world.fork():
            return Estimator(WorldBins(self._world, new, self._state.behaviour), limit).estimate(ordered, fast)

    def _counts(self, group: str, kinds: Sequence[tuple[int, ...]]) -> bool:
        return self._state.setup.counts and all(
            self._seen[kind[0]][group].room is not None
            and is_countable(self._world.pod(kind[0]), self._seen[kind[0]][group])
            for kind in kinds
        )
