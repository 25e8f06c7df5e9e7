"""PrioritySort (pkg/scheduler/framework/plugins/queuesort)."""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.framework.interface import QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has waited longer."""

    name = "PrioritySort"

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, since)
