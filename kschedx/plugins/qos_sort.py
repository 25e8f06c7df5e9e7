"""QOSSort of scheduler-plugins, and the quality of service that it sorts pods by."""

from __future__ import annotations

from enum import IntEnum

from kschedx.framework.interface import QueueSortPlugin, Touch
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import nano_units
from kschedx.kube.types import Pod
from kschedx.releases import Release

# A pod's quality of service (ComputePodQOS in pkg/apis/core/v1/helper/qos).

COUNTED = ("cpu", "memory")


class QOS(IntEnum):
    """The best first."""

    GUARANTEED = 0
    BURSTABLE = 1
    BEST_EFFORT = 2


def qos_of(pod: Pod, release: Release) -> QOS:
    """With pod-level resources these alone count."""
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
    """What is counted of it, and is not nothing."""
    found = {name: amount for name in COUNTED if (amount := nano_units(more.get(name, "0"))) > 0}
    for name, amount in found.items():
        total[name] = total.get(name, 0) + amount
    return set(found)


# QOSSort of scheduler-plugins (pkg/qos), as of August 2026 with Kubernetes 1.35.4.


class QOSSort(QueueSortPlugin):
    """Higher priority first, then Guaranteed before Burstable before BestEffort, then who has waited longer."""

    name = "QOSSort"

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def sort_key(self, pod: Pod, since: str) -> tuple[object, ...]:
        return (-pod.priority, qos_of(pod, self.handle.release), since)
