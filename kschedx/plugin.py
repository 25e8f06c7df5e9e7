"""The interface for plugins of other packages: `from kschedx.plugin import ...`. All of it is public.

A plugin is a class whose bases are its extension points and whose `name` is the one that a KubeSchedulerConfiguration
uses. Its package registers it by entry point:

[project.entry-points."kschedx.plugins"] LicenseSeats = "acme_plugins:LicenseSeats"

It then runs if a configuration enables it. There are two ways to write it. Node by node, as in Go: `NodeByNodeFilter`
and `NodeByNodeScore` evaluate one `NodeInfo` at a time. By columns, as Kubernetes' own plugins do here: `FilterPlugin`
and `ScorePlugin` get a `NodeTable` and evaluate all of its rows at once, which suits clusters of thousands of nodes.

A plugin never changes its arguments, and returns the same for the same arguments: trials of fixes, preemption, and
comparisons evaluate clusters that do not exist, in several processes at once.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from kschedx.findings import Explained, Finding, PluginFinding
from kschedx.findings.constraints import Value
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
    """One node with its pods, in the cluster that is being evaluated: with the pods that a trial adds, without those
    that it removes."""

    def __init__(self, nodes: NodeTable, row: TableRow) -> None:
        self._nodes = nodes
        self._row = row

    @property
    def name(self) -> str:
        return self._nodes.name(self._row)

    @property
    def node(self) -> Node:
        """The Node object."""
        return self._nodes.node(self._row)

    @property
    def labels(self) -> Mapping[str, str]:
        return self.node.metadata.labels

    @cached_property
    def pods(self) -> Sequence[Pod]:
        return tuple(self._nodes.pods[int(row)] for row in self._nodes.pods_on(self._row))

    @cached_property
    def allocatable(self) -> Mapping[str, int]:
        """Resource to amount: CPU in millicores, everything else in units."""
        return self._amounts(self._nodes.allocatable)

    @cached_property
    def requested(self) -> Mapping[str, int]:
        """The requests of its pods, in the same units."""
        return self._amounts(self._nodes.requested)

    def _amounts(self, matrix: IntArray) -> Mapping[str, int]:
        return dict(zip(self._nodes.resources.names, matrix[self._row].tolist(), strict=True))


class NodeByNodeFilter(FilterPlugin):
    """A Filter plugin that evaluates one node at a time."""

    @abstractmethod
    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Return SUCCESS, or a status from `rejected`."""

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return Verdicts.of_rows([self.filter_node(state, pod, NodeInfo(nodes, row)) for row in nodes.each()])


class NodeByNodeScore(ScorePlugin):
    """A Score plugin that evaluates one node at a time; `normalize_score` still gets all of them."""

    @abstractmethod
    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """Return a score that is 0 to 100 after `normalize_score`, which by default changes no score."""

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        scores = (self.score_node(state, pod, NodeInfo(nodes, row)) for row in nodes.each())
        return np.fromiter(scores, dtype=np.int64, count=len(nodes))


def rejected(reason: str, *findings: Finding, unresolvable: bool = False) -> Status:
    """Return the status of a rejected pod or node. `reason` is the text of the scheduler's event; `unresolvable` means
    that no eviction can help."""
    code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if unresolvable else Code.UNSCHEDULABLE
    return Status(code=code, reasons=(reason,), findings=findings)


def finding(
    reason_id: str, headline: str, *, lines: Mapping[str, str] | None = None, shortfall: float = 1.0, **facts: Value
) -> PluginFinding:
    """Return a reason with its own facts and texts. `headline` is complete in a log: lower case, with the number,
    without advice. `lines` are label and text of the lines below it. `facts` are keys of the document, so write them in
    camelCase. Of two nodes rejected for this reason, the one with the smaller `shortfall` is nearer to passing."""
    return PluginFinding(
        id=reason_id,
        headline=headline,
        lines=tuple((lines or {}).items()),
        facts=tuple(facts.items()),
        shortfall=shortfall,
    )
