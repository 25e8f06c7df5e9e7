"""Preemption for a pod group as a whole, behind the gate WorkloadAwarePreemption. Its victims are not worked out.

Upstream: runWorkloadAwarePreemption in pkg/scheduler/schedule_one_podgroup.go, PodGroupEvaluator in
pkg/scheduler/framework/preemption/podgrouppreemption.go.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kschedx.api.scheduling import PodGroup
from kschedx.releases.release import Release
from kschedx.snapshot.pods import PodTable


def may_evict_for(group: PodGroup, waiting: Sequence[int], pods: PodTable, release: Release) -> bool:
    """Whether kube-scheduler looks for pods to evict for a group as a whole, once its pods find no room.

    `waiting`: rows of its pods without a node. A group without a priority is taken for one that the API server has
    not seen, which would give it its class's.
    """
    constraints = group.spec.scheduling_constraints
    if not release.enabled("WorkloadAwarePreemption") or (constraints is not None and constraints.topology):
        return False
    if any(pods.specs[row].preemption_policy == "Never" for row in waiting):
        return False
    priority = group.spec.priority
    if priority is None:
        priority = max((int(pods.priorities[row]) for row in waiting), default=0)
    return bool(np.any((pods.node >= 0) & (pods.priorities < priority)))
