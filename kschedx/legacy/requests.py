"""What a pod asks for, as it was counted then: the incoming pod with its init containers, a pod that runs without."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.api.quantity import ResourceList, milli_value, value
from kschedx.api.resource_names import CPU, MEMORY
from kschedx.api.resources import DEFAULT_MEMORY, DEFAULT_MILLI_CPU
from kschedx.api.types import Container, PodSpec


def whole_units(resources: ResourceList) -> dict[str, int]:
    """Each amount rounded up on its own: cpu in milli, everything else in units."""
    return {name: milli_value(amount) if name == CPU else value(amount) for name, amount in resources.items()}


def incoming_request(spec: PodSpec) -> dict[str, int]:
    """The sum over the containers, or an init container where it asks for more, resource by resource."""
    return _at_most_one_starting(
        [whole_units(container.resources.requests) for container in spec.containers],
        [whole_units(container.resources.requests) for container in spec.init_containers],
    )


def incoming_limits(spec: PodSpec) -> dict[str, int]:
    """The same of the limits."""
    return _at_most_one_starting(
        [whole_units(container.resources.limits) for container in spec.containers],
        [whole_units(container.resources.limits) for container in spec.init_containers],
    )


def _at_most_one_starting(running: list[dict[str, int]], starting: list[dict[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for amounts in running:
        for name, amount in amounts.items():
            total[name] = total.get(name, 0) + amount
    for amounts in starting:
        for name, amount in amounts.items():
            if amount > total.get(name, 0):
                total[name] = amount
    return total


def scored_request(spec: PodSpec) -> Mapping[str, int]:
    """cpu and memory of the containers for scores, with defaults for those that name no request."""
    return {
        CPU: sum(_scored(container, CPU, DEFAULT_MILLI_CPU) for container in spec.containers),
        MEMORY: sum(_scored(container, MEMORY, DEFAULT_MEMORY) for container in spec.containers),
    }


def _scored(container: Container, resource: str, default: int) -> int:
    return whole_units(container.resources.requests).get(resource, default)


def is_best_effort(spec: PodSpec) -> bool:
    """No container names more than nothing of cpu or memory, be it requested or a limit."""
    named = (
        amounts.get(resource, 0)
        for container in spec.containers
        for amounts in (whole_units(container.resources.requests), whole_units(container.resources.limits))
        for resource in (CPU, MEMORY)
    )
    return not any(named)
