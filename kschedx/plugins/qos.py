"""A pod's quality of service (ComputePodQOS in pkg/apis/core/v1/helper/qos)."""

from __future__ import annotations

from enum import IntEnum

from kschedx.api.quantity import milli_value
from kschedx.api.types import Pod

COUNTED = ("cpu", "memory")


class QOS(IntEnum):
    """The best first."""

    GUARANTEED = 0
    BURSTABLE = 1
    BEST_EFFORT = 2


def qos_of(pod: Pod) -> QOS:
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
        return QOS.BEST_EFFORT
    return QOS.GUARANTEED if limited_everywhere and requests == limits else QOS.BURSTABLE
