"""QOSSort of scheduler-plugins, and the quality-of-service class of a pod."""

from __future__ import annotations

from enum import IntEnum

from kschedx.framework.interface import QueueSortPlugin, Touch
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import nano_units
from kschedx.kube.types import Pod
from kschedx.releases import Release

# The quality-of-service class of a pod (ComputePodQOS in pkg/apis/core/v1/helper/qos).

COUNTED = ("cpu", "memory")


class QOS(IntEnum):
    """Quality-of-service classes, best first."""

    GUARANTEED = 0
    BURSTABLE = 1
    BEST_EFFORT = 2


def qos_of(pod: Pod, release: Release) -> QOS:
    """Return the class of a pod. If it has pod-level resources, only these count."""
    level = pod.spec.resources if release.enabled("PodLevelResources") else None
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    counted = [container.resources for container in containers] if level is None else [level]
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    limited_everywhere = True
    for resources in counted:
        _add(requests, resources.requests)
        limited_everywhere &= len(_add(limits, resources.limits)) == len(COUNTED)
    if not requests and not limits:
        return QOS.BEST_EFFORT
    return QOS.GUARANTEED if limited_everywhere and requests == limits else QOS.BURSTABLE


def _add(total: dict[str, int], more: ResourceList) -> set[str]:
    """Add the resources that count, and return the names of those that are not zero."""
    amounts = {name: amount for name in COUNTED if (amount := nano_units(more.get(name, "0"))) > 0}
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount
    return set(amounts)


# QOSSort of scheduler-plugins (pkg/qos), as of August 2026 with Kubernetes 1.35.4.


class QOSSort(QueueSortPlugin):
    """Sorts by priority, then Guaranteed before Burstable before BestEffort, then by waiting time, longest first."""

    name = "QOSSort"
    touch = Touch.NOTHING

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, qos_of(pod, self.handle.release), since)
