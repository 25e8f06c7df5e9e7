"""What a round knows about a pod that waits."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.karpenter.amounts import Amounts, pod_requests
from kschedx.karpenter.preferences import requirements_of
from kschedx.karpenter.requirements import Requirements


class PodData(Struct, frozen=True, kw_only=True):
    """A pod as it is now, after what it has given up."""

    pod: Pod
    key: str
    requests: Amounts
    requirements: Requirements
    """With the heaviest preference."""
    strict: Requirements
    """Without: preferences do not narrow where other pods are counted."""
    volumes: tuple[Requirements | None, ...]
    """One of them has to hold."""
    asks_for_devices: bool

    @classmethod
    def of(cls, pod: Pod, volumes: tuple[Requirements | None, ...], *, prefers: bool) -> PodData:
        return cls(
            pod=pod,
            key=pod.key,
            requests=pod_requests((pod,)),
            requirements=requirements_of(pod, prefers=prefers),
            strict=requirements_of(pod, prefers=False),
            volumes=volumes,
            asks_for_devices=asks_for_devices(pod),
        )


def asks_for_devices(pod: Pod) -> bool:
    """Karpenter leaves such pods alone unless it runs with --ignore-dra-requests=false."""
    return any(one.resources.claims for one in (*pod.spec.init_containers, *pod.spec.containers))
