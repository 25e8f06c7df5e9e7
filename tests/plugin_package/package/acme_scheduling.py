"""Plugins of a company's scheduler: license seats by node, and clean power by columns."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from kschedx.findings import Explained
from kschedx.framework.interface import PRE_FILTER_SKIP, CycleState, PreFilterPlugin, PreFilterResult, ScorePlugin
from kschedx.framework.status import SUCCESS, Status
from kschedx.kube.types import Pod
from kschedx.plugin import NodeByNodeFilter, NodeInfo, finding, rejected
from kschedx.snapshot.nodes import NodeTable

LICENCE, SEATS, POWER = "acme.io/licence", "acme.io/seats", "acme.io/clean-power"
THING = "no plugin at all"


class LicenseSeats(PreFilterPlugin, NodeByNodeFilter):
    """A pod with a license label needs a free seat on its node; a label of the node has their number."""

    name = "LicenseSeats"
    reasons: ClassVar = {
        "no-free-seat": Explained(
            means="Every licence seat of the node is taken by another pod with the same licence.",
            arises="More pods of licensed software than seats.",
            fixes=("wait for a pod to finish", "buy a seat"),
        )
    }

    def pre_filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> PreFilterResult:
        return PreFilterResult() if LICENCE in pod.metadata.labels else PRE_FILTER_SKIP

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        licence = pod.metadata.labels[LICENCE]
        seats = int(node.labels.get(SEATS, "0"))
        taken = [item.key for item in node.pods if item.metadata.labels.get(LICENCE) == licence]
        if len(taken) < seats:
            return SUCCESS
        why = finding(
            "no-free-seat",
            f"no free seat of {licence}: {len(taken)} of {seats} taken",
            lines={"taken by": ", ".join(taken) or "nobody: the node has none"},
            shortfall=len(taken) + 1 - seats,
            licence=licence,
            seats=seats,
            takenBy=tuple(taken),
        )
        return rejected(f"node(s) had no free seat of {licence}", why, unresolvable=not seats)


class CarbonAware(ScorePlugin):
    """Prefers nodes with clean power, whose percentage is their label."""

    name = "CarbonAware"

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return nodes.label(POWER).map(lambda share: int(share or "0"))


class Faulty(NodeByNodeFilter):
    """Raises an error."""

    name = "Faulty"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        raise LookupError("no such licence server")
