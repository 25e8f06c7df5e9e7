"""What a plugin of another package is written with: `from kschedx.plugin import ...`. All of it is public.

A plugin is a class whose bases are its extension points and whose `name` is the one that a KubeSchedulerConfiguration
uses. Its package registers it by entry point:

    [project.entry-points."kschedx.plugins"]
    LicenseSeats = "acme_plugins:LicenseSeats"

From then on it takes part wherever a configuration enables it. There are two ways to write it. Node by node, as in Go:
`NodeByNodeFilter` and `NodeByNodeScore` ask about one `NodeInfo` at a time. By columns, as Kubernetes' own are here:
`FilterPlugin` and `ScorePlugin` get a `NodeTable` and answer for all of its rows at once, which is what a cluster of
thousands of nodes wants.

A plugin never changes what it is given, and answers the same when it is asked again: trials of fixes, preemption and
comparisons ask about clusters that do not exist, in several processes at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from kschedx.findings import Explained, Finding, PluginFinding
from kschedx.findings.extensions import Value
from kschedx.framework.interface import (
    PRE_FILTER_SKIP,
    CycleState,
    FilterPlugin,
    Following,
    Handle,
    PermitPlugin,
    Plugin,
    PostFilterPlugin,
    PostFilterResult,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    StateKey,
    Touch,
)
from kschedx.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, SKIP, SUCCESS, Code, Status, Verdicts, error
from kschedx.kube.types import Node, Pod
from kschedx.snapshot.columns import ClusterRow, Column, IntArray, TableRow
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.snapshot import Snapshot

__all__ = [
    "MAX_NODE_SCORE",
    "MIN_NODE_SCORE",
    "PRE_FILTER_SKIP",
    "SKIP",
    "SUCCESS",
    "ClusterRow",
    "Code",
    "Column",
    "CycleState",
    "Explained",
    "FilterPlugin",
    "Following",
    "Handle",
    "Node",
    "NodeByNodeFilter",
    "NodeByNodeScore",
    "NodeInfo",
    "NodeTable",
    "PermitPlugin",
    "Plugin",
    "Pod",
    "PodRows",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "ReservePlugin",
    "ScorePlugin",
    "Snapshot",
    "StateKey",
    "Status",
    "TableRow",
    "Touch",
    "Verdicts",
    "error",
    "finding",
    "rejected",
]


class NodeInfo:
    """One node with the pods that run on it, those included that a trial adds, without those that it takes away."""

    def __init__(self, nodes: NodeTable, row: TableRow) -> None:
        self._nodes = nodes
        self._row = row

    @property
    def name(self) -> str:
        return self._nodes.name(self._row)

    @property
    def node(self) -> Node:
        """The object."""
        return self._nodes.node(self._row)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @cached_property
    def pods(self) -> Sequence[Pod]:
        return tuple(self._nodes.pods[int(row)] for row in self._nodes.pods_on(self._row))

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """Resource to amount, cpu in thousandths and everything else in units."""
        return self._amounts(self._nodes.allocatable)

    @cached_property
    def requested(self) -> Mapping[str, int]:
        """What its pods request, in the same units."""
        return self._amounts(self._nodes.requested)

    def _amounts(self, matrix: IntArray) -> Mapping[str, int]:
        return dict(zip(self._nodes.resources.names, matrix[self._row].tolist(), strict=True))


class NodeByNodeFilter(FilterPlugin):
    """A Filter that looks at one node at a time."""

    @abstractmethod
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """SUCCESS, or what `rejected` makes."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return Verdicts.of_rows([self.filter_node(state, pod, NodeInfo(nodes, row)) for row in nodes.each()])


class NodeByNodeScore(ScorePlugin):
    """A Score that looks at one node at a time; `normalize_score` still sees all of them."""

    @abstractmethod
    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """0 to 100 after `normalize_score`, which by default leaves scores as they are."""

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        scores = (self.score_node(state, pod, NodeInfo(nodes, row)) for row in nodes.each())
        return np.fromiter(scores, dtype=np.int64, count=len(nodes))


def rejected(reason: str, *findings: Finding, unresolvable: bool = False) -> Status:
    """The pod, or the node, is rejected. `reason` is what the scheduler's event says; `unresolvable` where no eviction
    can help."""
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Status(code=code, reasons=(reason,), findings=findings)


def finding(
    reason_id: str, headline: str, *, lines: Mapping[str, str] | None = None, shortfall: float = 1.0, **facts: Value
) -> PluginFinding:
    """A reason with facts and words of its own.

    `headline` stands alone in a log: lower case, with the number in it, no advice. `lines` are label and text of what
    is shown below it. `facts` go to the document under these names, so write them in camelCase. Of two nodes that are
    rejected for it, the one with the smaller `shortfall` is nearer to passing.
    """
    return PluginFinding(
        id=reason_id,
        headline=headline,
        lines=tuple((lines or {}).items()),
        facts=tuple(facts.items()),
        shortfall=shortfall,
    )
