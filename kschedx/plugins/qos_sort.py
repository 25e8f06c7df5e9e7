"""QOSSort of scheduler-plugins (pkg/qos), as of August 2026 with Kubernetes 1.35.4."""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.framework.interface import QueueSortPlugin, Touch
from kschedx.plugins.qos import qos_of


class QOSSort(QueueSortPlugin):
    """Higher priority first, then Guaranteed before Burstable before BestEffort, then who has waited longer."""

    name = "QOSSort"

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, qos_of(pod, self.handle.release), since)
