"""Causes in pods of other priorities: nominated pods that count on a node, lost nominations, earlier preemptions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from kschedx.explain.advice import RootCause
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.pod_selectors import more_pods_text
from kschedx.findings import Finding, InsufficientResource, TooManyPods
from kschedx.framework.cycle import Cycle
from kschedx.wording import count, list_names


def lost_nomination(cycle: Cycle) -> Iterator[RootCause]:
    """Yield the newer pod that runs on the pod's nominated node."""
    node, pods = cycle.pod.status.nominated_node_name, cycle.snapshot.pods
    if not node or node not in cycle.snapshot.cluster.index or not cycle.pod.metadata.creation_timestamp:
        return
    is_kept = (pods.node == cycle.snapshot.cluster.index[node]) & (pods.priorities >= cycle.pod.priority)
    since = cycle.pod.metadata.creation_timestamp
    rows = [row for row in np.flatnonzero(is_kept).tolist() if (pods.creation_timestamps[row] or "") > since]
    if rows:
        first = max(rows, key=lambda row: (int(pods.priorities[row]), pods.creation_timestamps[row] or ""))
        by = f"{pods.key(first)} (priority {pods.priorities[first]}){more_pods_text(len(rows) - 1)}"
        yield RootCause(text=f"nominated node {node} was taken: {by} runs there and is newer")


def counted_nominees(diagnosis: Diagnosis) -> Iterator[RootCause]:
    """Yield the nominated pods without which a node would have room."""
    cycle = diagnosis.cycle
    pods = cycle.snapshot.pods
    counting = [it for it in diagnosis.groups if any(blocker.with_nominated for blocker in it.exemplar.blockers)]
    names = {cycle.nodes.node(row).name for it in counting for row in it.rows} if cycle.nodes is not None else set()
    rows = [
        row
        for row in pods.pending
        if pods.nominated_node_names[row] in names
        and pods.priorities[row] >= cycle.pod.priority
        and pods.key(row) != cycle.pod.key
    ]
    if rows:
        first = max(rows, key=lambda row: int(pods.priorities[row]))
        node, others = pods.nominated_node_names[first], len(rows) - 1
        phrase = f"{pods.key(first)} (priority {pods.priorities[first]}) is nominated to {node}"
        counts = (
            f", as {'is' if others == 1 else 'are'} {count(others, 'more pod')}: they count"
            if others
            else ": it counts"
        )
        yield RootCause(text=f"{phrase}{counts} there as if {'they' if others else 'it'} ran")


def preempted_before(cycle: Cycle, findings: Iterable[Finding]) -> Iterator[RootCause]:
    """Yield how often kube-scheduler preempted earlier pods of the same controller, and for which pods."""
    snapshot, pod, pods = cycle.snapshot, cycle.pod, cycle.snapshot.pods
    earlier = snapshot.preemptions_of(pod.metadata)
    if not earlier or not any(isinstance(finding, InsufficientResource | TooManyPods) for finding in findings):
        return
    preemptors = dict.fromkeys(filter(None, (preemption.by for preemption in earlier)))
    named = []
    for key in preemptors:
        row = pods.rows.get(key)
        named.append(key if row is None else f"{key} (priority {pods.priorities[row]})")
    owner = pod.metadata.controller
    whose = f"earlier pods of {owner.kind} {owner.name} were" if owner else "an earlier pod of this name was"
    by = f" by {list_names(named, 2, conjunction='and')}" if named else ""
    often = "once" if len(earlier) == 1 else count(len(earlier), "time")
    yield RootCause(text=f"{whose} preempted {often}{by}")
