"""PrioritySort (pkg/scheduler/framework/plugins/queuesort)."""

from __future__ import annotations

from kschedx.framework.interface import QueueSortPlugin
from kschedx.kube.types import Pod


class PrioritySort(QueueSortPlugin):
    """Sorts by priority, then by waiting time, longest first."""

    name = "PrioritySort"
    is_by_priority = True

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, since)
