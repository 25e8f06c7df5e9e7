"""PrioritySort (pkg/scheduler/framework/plugins/queuesort)."""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.framework.interface import QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has waited longer; a snapshot knows its creation, not its queueing."""

    name = "PrioritySort"

    def sort_key(self, pod: Pod) -> tuple[object, ...]:
        return (-pod.priority, pod.metadata.creation_timestamp or "", pod.key)
