"""Soft constraints: the fewer matching pods there are in a node's domains, the better.

Upstream: pkg/scheduler/framework/plugins/podtopologyspread/scoring.go.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.framework.outcome import MAX_NODE_SCORE
from kschedx.plugins.pod_topology_spread.constraints import (
    HOSTNAME,
    Constraint,
    ConstraintRules,
    where_labelled,
    where_present,
)
from kschedx.snapshot.columns import BoolArray, FloatArray, IntArray, distinct
from kschedx.snapshot.nodes import NodeTable

_INVALID = -1
"""How upstream marks an ignored node's score: without pods, a constraint that has no maxSkew comes to it too."""


class SoftSpread(Struct, frozen=True, kw_only=True):
    """One constraint's part of the score; arrays are (node,) over the whole cluster."""

    constraint: Constraint
    weight: float
    """ln(domains + 2), which keeps a topology of few domains from drowning in one of many."""
    labelled: BoolArray
    matching: IntArray
    """Matching pods in the node's domain; meaningful for the nodes that are scored."""

    def cost(self, rows: IntArray) -> FloatArray:
        """(node,) matching x weight + (maxSkew - 1) on the nodes that have the label, 0 elsewhere."""
        cost = self.matching[rows] * self.weight + float(self.constraint.max_skew - 1)
        return np.where(self.labelled[rows], cost, 0.0)


class SoftSpreads(Struct, frozen=True, kw_only=True):
    """All soft constraints of a pod."""

    spreads: tuple[SoftSpread, ...]
    ignored: BoolArray
    """(node,) over the whole cluster: feasible nodes that lack a label that they need to be scored."""

    @classmethod
    def none(cls, everything: NodeTable) -> Self:
        """For a pod without soft constraints, where it is scored all the same."""
        return cls(spreads=(), ignored=np.zeros(len(everything), dtype=np.bool_))

    @classmethod
    def of(
        cls,
        constraints: tuple[Constraint, ...],
        rules: ConstraintRules,
        pod: Pod,
        feasible: NodeTable,
        everything: NodeTable,
    ) -> Self:
        """`feasible` are the nodes to score, `everything` all nodes of the cluster."""
        pods = rules.matching_pods(pod, everything)
        complete = np.ones(len(everything), dtype=np.bool_)
        if rules.requires_all_topologies(pod):
            complete = where_labelled(constraints, everything)
        candidate = np.zeros(len(everything), dtype=np.bool_)
        candidate[feasible.rows] = True
        scored = candidate & complete

        def spread(constraint: Constraint) -> SoftSpread:
            matching = pods.per_node(constraint.selector)
            if constraint.topology_key == HOSTNAME:
                # a node's own pods count whatever the policies say, and every node is a domain, whatever its label
                size = int(np.count_nonzero(scored[feasible.rows]))  # an extender can name a node twice
            else:
                counted = complete & rules.counted(constraint, pod, everything)
                domain = _domains(constraint.topology_key, everything)
                size = len(distinct(domain[scored]))
                matching = np.bincount(domain, weights=matching * counted)[domain]
            return SoftSpread(
                constraint=constraint,
                weight=math.log(float(size + 2)),
                labelled=where_present(everything.label(constraint.topology_key)),
                matching=matching.astype(np.int64),
            )

        return cls(spreads=tuple(map(spread, constraints)), ignored=candidate & ~complete)

    def score(self, nodes: NodeTable) -> IntArray:
        """(node,) the rounded sum of the costs; 0 for ignored nodes."""
        total = np.zeros(len(nodes), dtype=np.float64)
        for spread in self.spreads:
            total = total + spread.cost(nodes.rows)
        whole = np.floor(total)
        rounded = np.where(total - whole >= 0.5, whole + 1.0, whole).astype(np.int64)
        return np.where(self.ignored[nodes.rows], 0, rounded)

    def normalize(self, nodes: NodeTable, scores: IntArray) -> IntArray:
        """(node,) 100 for the smallest cost, less for larger ones, 0 for ignored nodes."""
        scored = ~self.ignored[nodes.rows]
        if not scored.any():
            return np.zeros(len(nodes), dtype=np.int64)
        low, high = int(scores[scored].min()), int(scores[scored].max(initial=0))
        scored &= scores != _INVALID
        if high == 0:
            return np.where(scored, MAX_NODE_SCORE, 0)
        return np.where(scored, MAX_NODE_SCORE * (high + low - scores) // high, 0)


def _domains(key: str, nodes: NodeTable) -> IntArray:
    """(node,) a number for the value of a label; a missing label counts as the empty value, as it does upstream."""
    column = nodes.label(key)
    first: dict[str, int] = {}
    numbers = [first.setdefault(value or "", code) for code, value in enumerate(column.values)]
    return np.array(numbers, dtype=np.int64)[column.codes]
