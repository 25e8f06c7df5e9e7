"""QOSSort of scheduler-plugins (pkg/qos), as of August 2026 with Kubernetes 1.35.4."""

from __future__ import annotations

from kschedx.api.quantity import milli_value
from kschedx.api.types import Pod
from kschedx.framework.interface import QueueSortPlugin, Touch

COUNTED = ("cpu", "memory")


class QOSSort(QueueSortPlugin):
    """Higher priority first, then Guaranteed before Burstable before BestEffort, then who has waited longer."""

    name = "QOSSort"

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def sort_key(self, pod: Pod) -> tuple[object, ...]:
        return (-pod.priority, _rank(pod), pod.metadata.creation_timestamp or "", pod.key)


def _rank(pod: Pod) -> int:
    """0 for Guaranteed, 1 for Burstable, 2 for BestEffort (pkg/apis/core/v1/helper/qos)."""
    requests: dict[str, int] = {}
    limits: dict[str, int] = {}
    limited_everywhere = True
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        limited = set()
        for name in COUNTED:
            asked = milli_value(container.resources.requests.get(name, "0"))
            most = milli_value(container.resources.limits.get(name, "0"))
            if asked > 0:
                requests[name] = requests.get(name, 0) + asked
            if most > 0:
                limits[name] = limits.get(name, 0) + most
                limited.add(name)
        limited_everywhere &= len(limited) == len(COUNTED)
    if not requests and not limits:
        return 2
    return 0 if limited_everywhere and requests == limits else 1
