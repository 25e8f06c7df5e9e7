"""PrioritySort (pkg/scheduler/framework/plugins/queuesort), QOSSort of scheduler-plugins (pkg/qos), and the
quality-of-service class of a pod."""

from __future__ import annotations

from kschedx.framework.interface import QueueSortPlugin, Touch
from kschedx.kube.resources import QOS, qos_of
from kschedx.kube.types import Pod
from kschedx.releases import Release


class PrioritySort(QueueSortPlugin):
    """Sorts by priority, then by waiting time, longest first."""

    name = "PrioritySort"
    is_by_priority = True

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, since)


def pod_qos(pod: Pod, release: Release) -> QOS:
    """Return the class of a pod. If it has pod-level resources, only these count."""
    level = pod.spec.resources if release.enabled("PodLevelResources") else None
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    return qos_of([container.resources for container in containers] if level is None else [level])


# QOSSort of scheduler-plugins (pkg/qos), as of August 2026 with Kubernetes 1.35.4.


class QOSSort(QueueSortPlugin):
    """Sorts by priority, then Guaranteed before Burstable before BestEffort, then by waiting time, longest first."""

    name = "QOSSort"
    touch = Touch.NOTHING

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, pod_qos(pod, self.handle.release), since)
