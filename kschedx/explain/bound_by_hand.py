"""A pod that names its node itself: kube-scheduler never sees it, and the kubelet of that node decides.

Upstream: AdmissionCheck in pkg/scheduler/eventhandlers.go, which pkg/kubelet/lifecycle/predicate.go asks, and whose
reasons a refused pod gets in its status.
"""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.api.tolerations import NO_EXECUTE, untolerated
from kschedx.api.types import Node
from kschedx.explain.blockers import account
from kschedx.explain.notes.cycle import BoundByHand
from kschedx.findings import HostPortConflict, InsufficientResource, NodeAffinityMismatch, TooManyPods
from kschedx.framework.cycle import Cycle
from kschedx.snapshot.rows import TableRow


def bound_by_hand(cycle: Cycle) -> BoundByHand | None:
    """What is sure about a pod with spec.nodeName; None for all others."""
    name = cycle.pod.spec.node_name
    if not name:
        return None
    row = cycle.snapshot.cluster.index.get(name)
    if row is None:
        return BoundByHand(node=name, exists=False)
    refusals = dict.fromkeys(_refusals(cycle, cycle.snapshot.cluster.nodes[row]))
    return BoundByHand(node=name, exists=True, refusals=tuple(refusals))


def _refusals(cycle: Cycle, node: Node) -> Iterator[str]:
    """The reasons that the kubelet would write, in its order."""
    names = [cycle.nodes.name(TableRow(at)) for at in range(len(cycle.nodes))] if cycle.nodes is not None else []
    if cycle.filter is not None and node.name in names:
        findings = account(cycle, TableRow(names.index(node.name))).findings
        for one in findings:
            if isinstance(one, TooManyPods):
                yield "OutOfpods"
            elif isinstance(one, InsufficientResource):
                yield f"OutOf{one.resource}"
        if any(isinstance(one, NodeAffinityMismatch) and one.source != "addedAffinity" for one in findings):
            yield "NodeAffinity"
        if any(isinstance(one, HostPortConflict) for one in findings):
            yield "NodePorts"
    comparison = cycle.release.enabled("TaintTolerationComparisonOperators")
    tolerations = cycle.pod.spec.tolerations
    if untolerated(node.spec.taints, tolerations, effects=(NO_EXECUTE,), comparison=comparison) is not None:
        yield "TaintToleration"
