"""NodeUnschedulable (pkg/scheduler/framework/plugins/nodeunschedulable)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from kschedx import findings
from kschedx.framework.interface import CycleState, FilterPlugin, Texts, Touch
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.tolerations import NO_SCHEDULE, tolerates
from kschedx.kube.types import Pod, Taint
from kschedx.snapshot.maintenance import maintenance_of
from kschedx.snapshot.nodes import NodeTable

_REASON = "node(s) were unschedulable"
_UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)


class NodeUnschedulable(FilterPlugin):
    """Rejects cordoned nodes, unless the pod tolerates the taint of a cordoned node."""

    name = "NodeUnschedulable"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {"node-unschedulable": (_REASON,)}

    def reads(self, pod: Pod) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        comparison = self.handle.release.compares_taints
        if any(tolerates(t, _UNSCHEDULABLE_TAINT, comparison=comparison) for t in pod.spec.tolerations):
            rejected = np.zeros(len(nodes), dtype=np.bool_)
        else:
            rejected = nodes.unschedulable
        return Verdicts.first_of(
            (rejected, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, _REASON),
            explain=lambda row: (
                findings.NodeUnschedulable(maintenance=maintenance_of(self.handle.snapshot, nodes.cluster.nodes[row])),
            ),
        )
