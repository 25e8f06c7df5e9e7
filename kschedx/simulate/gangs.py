"""Pods that are placed together or not at all: the pod groups of scheduling.k8s.io with a gang policy, and those of
Coscheduling.

kube-scheduler takes all members that wait from its queue when one's turn comes, tries them one after the other, and
binds them where as many as minCount have a node then. Otherwise all go back; victims of preemption are gone by then
(pkg/scheduler/schedule_one_podgroup.go). Before 1.36, and with Coscheduling, members wait on their nodes for each
other, and give up at last; Coscheduling sends them away as soon as one finds no node.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kschedx.api import scheduler_plugins
from kschedx.framework.moving import Run
from kschedx.framework.preemption.groups import may_evict_for
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.pod_groups import members_of
from kschedx.snapshot.pods import PodTable

PLUGIN = "GangScheduling"
COSCHEDULING = "Coscheduling"
SENT_AWAY = "0/1 nodes are available: 1 optimistic rejection in PostFilter."


class Gang(Struct, frozen=True):
    """By namespace and name; equal for all members."""

    namespace: str
    name: str
    min_count: int
    is_of_label: bool = False
    """Coscheduling's, whose members name it in a label."""

    def is_complete(self, run: Run) -> bool:
        """Whether as many as minCount have a node."""
        pods = run.cluster.pods
        placed = self._members(pods) & (pods.node >= 0)
        return int(np.count_nonzero(placed)) >= self.min_count

    def _members(self, pods: PodTable) -> BoolArray:
        if not self.is_of_label:
            return members_of(pods, self.namespace, self.name)
        label = scheduler_plugins.POD_GROUP_LABEL
        mine = pods.labels.where(lambda labels: labels.get(label) == self.name)
        return mine & pods.namespaces.where(lambda namespace: namespace == self.namespace)

    def may_evict(self, run: Run, waiting: Sequence[int]) -> bool:
        """Whether pods could be evicted for all of it at once, which is not worked out."""
        group = None if self.is_of_label else run.snapshot.pod_groups.get(f"{self.namespace}/{self.name}")
        return group is not None and may_evict_for(group, waiting, run.cluster.pods, run.scheduler.release)

    def message(self, run: Run) -> str:
        """What a member is told that found a node, where too few others do."""
        return SENT_AWAY if self.is_of_label else run.scheduler.release.messages.gang_lacks_members


def gang_of(run: Run, row: int) -> Gang | None:
    """The gang of a pod; None where it is in none, or where nothing heeds gangs."""
    pods, namespace = run.cluster.pods, run.cluster.pods.namespaces[row]
    if run.snapshot.pod_groups:
        named = pods.specs[row].scheduling_group
        name = None if named is None else named.pod_group_name
        group = None if name is None else run.snapshot.pod_groups.get(f"{namespace}/{name}")
        gang = group.spec.scheduling_policy.gang if group is not None else None
        if name is not None and gang is not None and run.asks_to_permit(row, PLUGIN):
            return Gang(namespace, name, gang.min_count)
    label = pods.labels[row].get(scheduler_plugins.POD_GROUP_LABEL)
    if label and run.asks_to_permit(row, COSCHEDULING):
        for one in run.snapshot.of(scheduler_plugins.Gang):
            if (one.metadata.namespace, one.metadata.name) == (namespace, label):
                return Gang(namespace, label, one.spec.min_member, is_of_label=True)
    return None
