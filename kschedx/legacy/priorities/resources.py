"""Priorities by how full a node would be (least_requested.go, most_requested.go, balanced_resource_allocation.go,
requested_to_capacity_ratio.go, resource_limits.go)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kschedx.api.integers import truncated_quotient
from kschedx.api.resource_names import CPU, MEMORY
from kschedx.api.types import Pod
from kschedx.legacy.predicates.base import Context
from kschedx.legacy.priorities.base import MAX_PRIORITY, Priority
from kschedx.legacy.requests import incoming_limits, scored_request
from kschedx.plugins.resource_allocation import amounts, truncated
from kschedx.snapshot.columns import FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable


class _Allocation(Priority):
    """cpu and memory with the pod on the node, against what the node offers."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        asked = scored_request(pod.spec)
        columns = {CPU: 0, MEMORY: 1}
        requested = {name: nodes.nonzero_requested[:, column] + asked[name] for name, column in columns.items()}
        capacity = {name: amounts(nodes, nodes.allocatable, name) for name in columns}
        return self.score(requested[CPU], capacity[CPU], requested[MEMORY], capacity[MEMORY])

    @abstractmethod
    def score(self, cpu: IntArray, cpu_capacity: IntArray, memory: IntArray, memory_capacity: IntArray) -> IntArray:
        """(node,) from what is requested and offered."""


class LeastRequestedPriority(_Allocation):
    """The mean share that stays free."""

    def score(self, cpu: IntArray, cpu_capacity: IntArray, memory: IntArray, memory_capacity: IntArray) -> IntArray:
        return (
            _share(cpu_capacity - cpu, cpu, cpu_capacity) + _share(memory_capacity - memory, memory, memory_capacity)
        ) // 2


class MostRequestedPriority(_Allocation):
    """The mean share that is taken."""

    def score(self, cpu: IntArray, cpu_capacity: IntArray, memory: IntArray, memory_capacity: IntArray) -> IntArray:
        return (_share(cpu, cpu, cpu_capacity) + _share(memory, memory, memory_capacity)) // 2


def _share(part: IntArray, requested: IntArray, capacity: IntArray) -> IntArray:
    """Tenths of the capacity; 0 where there is none or not enough of it."""
    tenths = truncated(part * MAX_PRIORITY, np.maximum(capacity, 1))
    return np.where((capacity == 0) | (requested > capacity), 0, tenths)


def _fraction(requested: IntArray, capacity: IntArray) -> FloatArray:
    return np.where(capacity == 0, 1.0, requested / np.where(capacity == 0, 1, capacity))


class BalancedResourceAllocation(_Allocation):
    """How alike the shares of cpu and memory are; nothing where either is used up."""

    def score(self, cpu: IntArray, cpu_capacity: IntArray, memory: IntArray, memory_capacity: IntArray) -> IntArray:
        cpu_share, memory_share = _fraction(cpu, cpu_capacity), _fraction(memory, memory_capacity)
        scores = self.of_difference(np.abs(cpu_share - memory_share)).astype(np.int64)
        return np.where((cpu_share >= 1) | (memory_share >= 1), 0, scores)

    def of_difference(self, difference: FloatArray) -> FloatArray:
        return (1 - difference) * float(MAX_PRIORITY)


class EarlyBalancedResourceAllocation(BalancedResourceAllocation):
    """The same, rounded as in 1.5."""

    def of_difference(self, difference: FloatArray) -> FloatArray:
        return 10 - difference * 10


class UtilizationShapePoint(Struct, frozen=True, kw_only=True):
    utilization: int = 0
    score: int = 0


class Shape(Struct, frozen=True, kw_only=True):
    """Scores by the percentage that is requested, with straight lines in between."""

    shape: tuple[UtilizationShapePoint, ...] = ()


DEFAULT_SHAPE = Shape(
    shape=(UtilizationShapePoint(utilization=0, score=10), UtilizationShapePoint(utilization=100, score=0))
)


class RequestedToCapacityRatio(_Allocation):
    """The mean of the scores that a shape gives to the requested shares; its argument is a `Shape`."""

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        points = argument.shape if isinstance(argument, Shape) else DEFAULT_SHAPE.shape
        self._on_shape = np.array([_on_shape(points, percent) for percent in range(101)], dtype=np.int64)

    def score(self, cpu: IntArray, cpu_capacity: IntArray, memory: IntArray, memory_capacity: IntArray) -> IntArray:
        return (self._ratio(cpu, cpu_capacity) + self._ratio(memory, memory_capacity)) // 2

    def _ratio(self, requested: IntArray, capacity: IntArray) -> IntArray:
        free = truncated((capacity - requested) * 100, np.maximum(capacity, 1))
        full = (capacity == 0) | (requested > capacity)
        scores: IntArray = self._on_shape[np.where(full, 100, 100 - free).clip(0, 100)]
        return scores


def _on_shape(points: Sequence[UtilizationShapePoint], percent: int) -> int:
    for before, point in zip((None, *points), points, strict=False):
        if percent <= point.utilization:
            if before is None:
                return point.score
            rise, run = point.score - before.score, point.utilization - before.utilization
            return before.score + truncated_quotient(rise * (percent - before.utilization), run)
    return points[-1].score


class ResourceLimitsPriority(Priority):
    """1 for a node that could hold the pod's limit of cpu or of memory (gate ResourceLimitsPriorityFunction)."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        limits = incoming_limits(pod.spec)
        holds = np.zeros(len(nodes), dtype=np.bool_)
        for name in (CPU, MEMORY):
            allocatable = amounts(nodes, nodes.allocatable, name)
            if limit := limits.get(name, 0):
                holds |= (allocatable != 0) & (limit <= allocatable)
        return holds.astype(np.int64)
