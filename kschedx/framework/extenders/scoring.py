"""The nodes that extenders left, as score plugins see them, and the scores with what extenders add.

A node that came back whole is taken as it was answered: it has the labels, taints and allocatable of the answer, and no
pods and no images. What PreScore collects from the whole cluster is not affected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from kschedx.framework.cycle import Scores
from kschedx.framework.extenders.calls import ScoreCall
from kschedx.framework.extenders.run import Feasible
from kschedx.framework.runtime import Framework
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow, cluster_rows


def as_scored(framework: Framework, left: Sequence[Feasible]) -> tuple[Framework, NodeTable]:
    """The framework that scores what is left, and the table of it, in the same order."""
    answered = [node.answered.node for node in left if node.answered is not None]
    if not answered:
        return framework, framework.nodes.at(cluster_rows([node.row for node in left]))
    scoring = framework.on(framework.snapshot.with_answered_nodes(answered))
    following = map(ClusterRow, range(len(framework.nodes), len(framework.nodes) + len(answered)))
    rows = [node.row if node.answered is None else next(following) for node in left]
    return scoring, scoring.nodes.at(cluster_rows(rows))


def with_extenders(scores: Scores, calls: Sequence[ScoreCall], urls: Sequence[str]) -> Scores:
    """The totals with what each extender adds to them. `urls` are the extenders', as they may be shown."""
    names = scores.nodes.names
    added: dict[str, IntArray] = {}
    for call in calls:
        if not call.error:
            name = f"extender {urls[call.extender]}"
            column = np.array([call.added.get(node, 0) for node in names], dtype=np.int64)
            added[name] = column + added[name] if name in added else column
    return replace(scores, totals=_sum(scores.totals, added), added=added)


def _sum(totals: IntArray, added: Mapping[str, IntArray]) -> IntArray:
    for column in added.values():
        totals = totals + column  # beyond int64 as Go adds: around
    return totals
