"""Which extenders of a configuration have to do with a pod, and in which order they are called.

Upstream: IsInterested and hasManagedResources in pkg/scheduler/extender.go.
"""

from __future__ import annotations

from kschedx.api.types import Pod
from kschedx.framework.config.document import Extender


def is_interested(extender: Extender, pod: Pod) -> bool:
    """It manages everything, or a resource that a container names; how much of it does not matter."""
    managed = {resource.name for resource in extender.managed_resources}
    return not managed or any(
        not managed.isdisjoint(amounts)
        for container in (*pod.spec.containers, *pod.spec.init_containers)
        for amounts in (container.resources.requests, container.resources.limits)
    )


def call_order(extenders: tuple[Extender, ...]) -> tuple[int, ...]:
    """Indexes in the configuration: those that may fail (`ignorable`) come last."""
    return tuple(sorted(range(len(extenders)), key=lambda index: extenders[index].ignorable))
