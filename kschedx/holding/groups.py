"""A pod group of Kubernetes' own as a whole: who has a node, and what each of the others lacks.

Upstream: scheduling.k8s.io, behind the gate GenericWorkload since 1.35.
"""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.holding.kueue import Try
from kschedx.holding.model import Group, Member
from kschedx.snapshot.snapshot import Snapshot

MOST_MEMBERS = 50
"""Pods of a group that are each tried."""


def group_of(snapshot: Snapshot, pod: Pod, attempt: Try) -> Group | None:
    """None for a pod without a group, or whose group is not in the snapshot."""
    named = pod.spec.scheduling_group
    if named is None:
        return None
    namespace = pod.metadata.namespace
    group = snapshot.pod_groups.get(f"{namespace}/{named.pod_group_name}")
    gang = group.spec.scheduling_policy.gang if group is not None else None
    if group is None or gang is None:
        return None
    pods = snapshot.pods
    mine = [
        row
        for row in range(len(pods))
        if pods.namespaces[row] == namespace
        and (its := pods.specs[row].scheduling_group) is not None
        and its.pod_group_name == named.pod_group_name
        and pods.phases[row] not in ("Succeeded", "Failed")
    ]
    waiting = [row for row in mine if not pods.node_names[row]]
    members = []
    for row in waiting[:MOST_MEMBERS]:
        feasible, reasons = attempt(pods[row], None)
        members.append(Member(pod=pods.key(row), feasible=len(feasible), reasons=reasons))
    return Group(
        name=f"{namespace}/{named.pod_group_name}",
        min_count=gang.min_count,
        pods=len(mine),
        placed=len(mine) - len(waiting),
        waiting=tuple(members),
    )
