"""NodeName (pkg/scheduler/framework/plugins/nodename)."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from kschedx.findings import NodeNameMismatch
from kschedx.framework.interface import CycleState, FilterPlugin, Texts, Touch
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.types import Pod
from kschedx.snapshot.nodes import NodeTable

_REASON = "node(s) didn't match the requested node name"


class NodeName(FilterPlugin):
    """Rejects all nodes but the one in spec.nodeName."""

    name = "NodeName"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {"node-name-mismatch": (_REASON,)}

    def reads(self, pod: Pod) -> Hashable:
        return pod.spec.node_name

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        wanted = pod.spec.node_name
        mismatch = np.zeros(len(nodes), dtype=np.bool_)
        if wanted:
            mismatch = nodes.rows != nodes.cluster.index.get(wanted, -1)
        return Verdicts.first_of(
            (mismatch, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, _REASON),
            explain=lambda row: (NodeNameMismatch(wanted=wanted),),
        )
