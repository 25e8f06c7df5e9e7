"""What a pod on a node was assumed to ask for until 1.31 (calculateResource in pkg/scheduler/framework/types.go)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def assumed_by_kind(
    containers: Iterable[Mapping[str, int]],
    init_containers: Iterable[tuple[bool, Mapping[str, int]]],
    resource: str,
    default: int,
) -> int:
    """The sum over the containers or the largest init container, whichever is larger; overhead is not in it.

    `init_containers` are in order, each with whether it is restartable. A sidecar counts with those before it and with
    the init containers after it, and is missing from the containers' sum. `default` stands for an absent request.
    """
    running = sum(requests.get(resource, default) for requests in containers)
    largest = 0
    beside: int | None = None
    for restartable, requests in init_containers:
        own = requests.get(resource)
        together = None if own is None and beside is None else (own or 0) + (beside or 0)
        if restartable:
            beside = together
        largest = max(largest, default if together is None else together)
    return max(running, largest)
