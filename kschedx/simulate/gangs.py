"""Pods that are placed together or not at all: the pod groups of scheduling.k8s.io with a gang policy.

kube-scheduler takes all members that wait from its queue when one's turn comes, tries them one after the other, and
binds them where as many as minCount have a node then. Otherwise all go back; victims of preemption are gone by then
(pkg/scheduler/schedule_one_podgroup.go). Before 1.36 members wait on their nodes for each other, and give up at last.
"""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kschedx.framework.moving import Run
from kschedx.snapshot.pod_groups import members_of

PLUGIN = "GangScheduling"


class Gang(Struct, frozen=True):
    """By namespace and name; equal for all members."""

    namespace: str
    name: str
    min_count: int

    def is_complete(self, run: Run) -> bool:
        """Whether as many as minCount have a node."""
        pods = run.cluster.pods
        placed = members_of(pods, self.namespace, self.name) & (pods.node >= 0)
        return int(np.count_nonzero(placed)) >= self.min_count


def gang_of(run: Run, row: int) -> Gang | None:
    """The gang of a pod; None where it is in none, or where nothing heeds gangs."""
    pods = run.cluster.pods
    if not run.snapshot.pod_groups:
        return None
    named = pods.specs[row].scheduling_group
    if named is None or named.pod_group_name is None:
        return None
    namespace = pods.namespaces[row]
    group = run.snapshot.pod_groups.get(f"{namespace}/{named.pod_group_name}")
    gang = group.spec.scheduling_policy.gang if group is not None else None
    if gang is None or not run.asks_to_permit(row, PLUGIN):
        return None
    return Gang(namespace, named.pod_group_name, gang.min_count)
