"""What preemption does: for the pod as it is, and for a DaemonSet's pod that is given a priority.

A DaemonSet's pod has one node. Where that is full of pods that are no less important, another node is no help.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kschedx.api.priority import BUILT_IN_CLASSES, PREEMPT_NEVER
from kschedx.api.scheduling import PriorityClass
from kschedx.api.types import Pod
from kschedx.errors import UndecidableError
from kschedx.fixes import steps as s
from kschedx.fixes.making import made
from kschedx.fixes.proposal import Proposal
from kschedx.fixes.situation import Situation
from kschedx.fixes.victims import SYSTEM_NAMESPACE, deletion
from kschedx.framework.cycle import Cycle, Outcome

NODE_CRITICAL = BUILT_IN_CLASSES["system-node-critical"]
MOST_CLASSES = 3
"""Priority classes that are tried, the lowest first."""


def preemption(cycle: Cycle, start: Situation) -> Iterator[Proposal]:
    """What kube-scheduler is about to do by itself; on one of the best nodes, where it picks by chance."""
    result = cycle.post_filter
    if result is None or not result.candidates:
        return
    nodes = result.best if result.nominated_node is None else (result.nominated_node,)
    for candidate in result.candidates:
        if candidate.node in nodes[:1]:
            step = deletion(candidate.victims, cycle.snapshot, node=cycle.all_nodes.cluster.names[candidate.node])
            step = replace(step, by_preemption=True, or_elsewhere=len(nodes) - 1, protected=candidate.pdb_violations)
            yield made(step, start.proposal, start.ground)


def preemption_of_daemon_pod(cycle: Cycle, start: Situation) -> Iterator[Proposal]:
    """With the lowest priority class that lets it take what it needs of its node."""
    has_candidates = cycle.post_filter is not None and cycle.post_filter.candidates
    if not is_of_a_daemon_set(start.pod) or has_candidates or not start.status.is_success:
        return
    for chosen in _classes(start):
        step = s.RaisePriority(name=chosen.metadata.name, value=chosen.value)
        raised = made(step, start.proposal, start.ground)
        try:
            then = start.scheduler.schedule(raised.pod, start.profile)
        except UndecidableError:
            return
        if then.outcome is not Outcome.UNSCHEDULABLE:
            return
        found = tuple(preemption(then, replace(start, proposal=raised)))
        if found:
            yield from found
            return


def is_of_a_daemon_set(pod: Pod) -> bool:
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def _classes(start: Situation) -> tuple[PriorityClass, ...]:
    """Those above the pod's own; of the cluster's own pods the one that is there for what every node needs."""
    if start.pod.metadata.namespace == SYSTEM_NAMESPACE:
        return (NODE_CRITICAL,) if start.pod.priority < NODE_CRITICAL.value else ()
    above = [
        one
        for one in start.snapshot.priority_classes.values()
        if start.pod.priority < one.value < NODE_CRITICAL.value and one.preemption_policy != PREEMPT_NEVER
    ]
    lowest = sorted(above, key=lambda one: one.value)[:MOST_CLASSES]
    return (*lowest, NODE_CRITICAL)
