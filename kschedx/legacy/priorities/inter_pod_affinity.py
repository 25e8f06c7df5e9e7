"""InterPodAffinityPriority (interpod_affinity.go)."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kschedx.api.types import Pod
from kschedx.legacy.priorities.base import MAX_PRIORITY, Priority
from kschedx.plugins.inter_pod_affinity.scoring import raw_scores
from kschedx.plugins.inter_pod_affinity.terms import ExistingTerms, PodTerms
from kschedx.snapshot.columns import FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable


class InterPodAffinityPriority(Priority):
    """Preferred terms of the pod and of those that run, and the required ones of those that run.

    It is one function over all nodes, so that there is nothing to reduce. Unlike today, the range starts at zero: where
    all nodes have the same positive sum, all get 10.
    """

    @cached_property
    def _existing(self) -> ExistingTerms:
        return ExistingTerms(self.context.snapshot.pods)

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        terms = PodTerms.of_incoming(pod, {})
        weight = self.context.hard_pod_affinity_weight
        sums = raw_scores(pod, terms, self._existing, {}, nodes, weight)
        if sums is None:
            return np.zeros(len(nodes), dtype=np.int64)
        mine = sums[nodes.rows]
        lowest, highest = min(int(mine.min()), 0), max(int(mine.max()), 0)
        if highest == lowest:
            return np.zeros(len(nodes), dtype=np.int64)
        share: FloatArray = (mine - lowest).astype(np.float64) / float(highest - lowest)
        return (float(MAX_PRIORITY) * share).astype(np.int64)
