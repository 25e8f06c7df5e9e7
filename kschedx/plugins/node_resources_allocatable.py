"""NodeResourcesAllocatable of scheduler-plugins (pkg/noderesources), as of August 2026 with Kubernetes 1.35.4."""

from __future__ import annotations

import numpy as np

from kschedx.errors import ConfigError
from kschedx.framework.args import NodeResourcesAllocatableArgs, ResourceSpec, args_of_another_project
from kschedx.framework.interface import CycleState, Handle, ScorePlugin
from kschedx.framework.status import MAX_NODE_SCORE
from kschedx.kube.scalars import Int64
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable

_LEAST, _MOST = "Least", "Most"

_MEBI: Int64 = 1 << 20
_BY_DEFAULT = (ResourceSpec(name="cpu", weight=_MEBI), ResourceSpec(name="memory", weight=1))
"""One milli-cpu weighs as much as 1Mi of memory."""


class NodeResourcesAllocatable(ScorePlugin):
    """Prefers nodes with the least or the most allocatable, whatever is in use."""

    name = "NodeResourcesAllocatable"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        decoded = args_of_another_project(args, NodeResourcesAllocatableArgs, self.name)
        if decoded.mode not in (_LEAST, _MOST):
            raise ConfigError(f'{self.name}: mode "{decoded.mode}" is none', hint=f"allowed: {_LEAST}, {_MOST}")
        wrong = next((resource.name for resource in decoded.resources if resource.weight <= 0), None)
        if wrong is not None:
            raise ConfigError(f"{self.name}: the weight of {wrong} should be a positive value")
        self._sign = 1 if decoded.mode == _MOST else -1
        # if a resource is named twice, the last weight counts
        self._weights = {resource.name: resource.weight for resource in decoded.resources or _BY_DEFAULT}

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        total = np.zeros(len(nodes), dtype=np.int64)
        for name, weight in self._weights.items():
            column = nodes.resources.index.get(name)
            if column is not None:
                total += nodes.allocatable[:, column] * weight
        return self._sign * (total // sum(self._weights.values()))

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        lowest = scores.min(initial=np.iinfo(np.int64).max)
        span = int(scores.max(initial=np.iinfo(np.int64).min)) - int(lowest)
        return (scores - lowest) * MAX_NODE_SCORE // span if span > 0 else np.zeros_like(scores)
