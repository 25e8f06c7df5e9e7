"""NodeResourcesBalancedAllocation (pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go)."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial

import numpy as np

from kschedx.framework.args import NodeResourcesBalancedAllocationArgs
from kschedx.framework.interface import CycleState, Handle, PreScorePlugin, ScorePlugin, StateKey, Touch
from kschedx.framework.status import MAX_NODE_SCORE, SKIP, SUCCESS, Status
from kschedx.kube.resources import pod_request
from kschedx.kube.types import Pod
from kschedx.plugins.resource_allocation import (
    Allocation,
    Offer,
    read_requests,
    scored_devices,
    scored_options,
    scored_request,
    touches_through_requests,
    truncating_divide,
)
from kschedx.snapshot.columns import BoolArray, FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable

_REQUEST: StateKey[tuple[int, ...]] = StateKey("NodeResourcesBalancedAllocation")  # of each scored resource


class NodeResourcesBalancedAllocation(PreScorePlugin, ScorePlugin):
    """Prefers nodes where the pod makes the fractions of requested resources more equal."""

    name = "NodeResourcesBalancedAllocation"
    reads_sums = True

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        assert isinstance(args, NodeResourcesBalancedAllocationArgs)
        self._resources = args.resources

    def reads(self, pod: Pod) -> Hashable:
        return read_requests(self.handle, pod)

    def touches(self, pod: Pod) -> Touch:
        return touches_through_requests(self.handle, pod)

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        request = state[_REQUEST] = self._request(pod, nodes)
        return SUCCESS if any(request) else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        request = state[_REQUEST] if _REQUEST in state else self._request(pod, nodes)
        release = self.handle.release
        if not any(request) and self.name not in release.never_skips_score:
            # PreScore skips these pods, but a profile may leave PreScore out
            return np.zeros(len(nodes), dtype=np.int64)
        return self._score(self._offer(request, nodes).allocation(nodes))

    def allocation(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Allocation:
        return self._offer(self._request(pod, nodes), nodes).allocation(nodes)

    def scorer(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Callable[[NodeTable], IntArray]:
        request = state[_REQUEST] if _REQUEST in state else self._request(pod, nodes)
        if not any(request):
            return partial(self.score, state, pod)
        offered = self._offer(request, nodes)
        return lambda part: self._score(offered.at(part.rows).allocation(part))

    def _offer(self, request: tuple[int, ...], nodes: NodeTable) -> Offer:
        devices = partial(scored_devices, self.handle)
        return Offer.of(nodes, self._resources, request, with_defaults=False, devices=devices)

    def _score(self, allocation: Allocation) -> IntArray:
        after = _balance(allocation.requested, allocation)
        if not self.handle.release.behavior.balance_is_compared_with_before:
            return after
        before = _balance(allocation.allocated, allocation)
        # both are in 50..100, so their difference becomes 50 (worse) to 100 (better)
        half = MAX_NODE_SCORE // 2
        return half + truncating_divide(half + after - before, 2)

    def _request(self, pod: Pod, nodes: NodeTable) -> tuple[int, ...]:
        request = pod_request(pod.spec, pod.status, scored_options(nodes.options, self.handle.release))
        return scored_request(request, self._resources, with_defaults=False)


def _balance(used: IntArray, allocation: Allocation) -> IntArray:
    """(node,) 100 minus the standard deviation of the requested fractions, in percent."""
    fractions = np.minimum(used / allocation.capacity, 1.0)
    if allocation.counts_everywhere and fractions.shape[1] == 2:
        deviation = _deviation_of_two(fractions[:, 0], fractions[:, 1])
    else:
        deviation = _standard_deviation(np.where(allocation.counts, fractions, 0.0), allocation.counts)
    return ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)


def _standard_deviation(fractions: FloatArray, counts: BoolArray) -> FloatArray:
    """(node,) the standard deviation of the (node, resource) fractions that count; the others are 0. Sums run from left
    to right, and two fractions have their own formula, so that every bit equals kube-scheduler's."""
    width = counts.sum(axis=1)
    if counts.shape[1] == 2:
        return np.where(width == 2, _deviation_of_two(fractions[:, 0], fractions[:, 1]), 0.0)
    total = _sum(fractions)
    mean = total / np.maximum(width, 1)
    squares = np.where(counts, (fractions - mean[:, None]) * (fractions - mean[:, None]), 0.0)
    of_many = np.sqrt(_sum(squares) / np.maximum(width, 1))
    rows = np.arange(len(fractions))
    first = fractions[rows, counts.argmax(axis=1)]
    last = fractions[rows, counts.shape[1] - 1 - counts[:, ::-1].argmax(axis=1)]
    return np.select([width > 2, width == 2], [of_many, _deviation_of_two(first, last)], 0.0)


def _deviation_of_two(first: FloatArray, second: FloatArray) -> FloatArray:
    deviation: FloatArray = np.abs((first - second) / 2)
    return deviation


def _sum(columns: FloatArray) -> FloatArray:
    total = np.zeros(len(columns), dtype=np.float64)
    for column in columns.T:
        total = total + column
    return total
