"""How much of a node is asked for, as cluster-autoscaler counts it.

Upstream: simulator/utilization/info.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from msgspec import Struct

from kschedx.api.annotations import MIRROR
from kschedx.api.quantity import milli_value, value
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.api.types import Node
from kschedx.autoscaler.scale_down.devices import device_use, has_devices
from kschedx.autoscaler.scale_down.flags import ScaleDownFlags
from kschedx.autoscaler.scale_down.pods import Fates
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.pods import PodTable

CPU, MEMORY = "cpu", "memory"


class Utilization(Struct, frozen=True, kw_only=True):
    """Of the resource that is used most; of the GPUs alone where the node has some, or of devices of its own."""

    resource: str
    requested: int
    """cpu in milli, everything else in units; pods that do not count left out."""
    offered: int
    """What is allocatable, without what pods that do not count ask for."""
    threshold: float
    is_gpu: bool
    counted: float | None = None
    """The share of devices, which need not be one of numbers."""

    @property
    def share(self) -> float:
        if self.counted is not None:
            return self.counted
        return self.requested / self.offered if self.offered else 0.0


class UtilizationRule(Struct, frozen=True, kw_only=True):
    """What counts in one cluster."""

    pods: PodTable
    fates: Fates
    flags: ScaleDownFlags
    options: RequestOptions
    gpu_label: str | None
    """Of the cloud."""
    gpu_resources: tuple[str, ...]
    devices: Devices | None
    """Of the cluster, where the autoscaler looks at them."""

    def of(self, node: Node, rows: Collection[int]) -> Utilization | None:
        """`rows` are the pods on the node. None where the node offers no cpu or no memory, or a pool of its devices is
        not whole: the autoscaler cannot count it, and leaves it alone."""
        requests = tuple(self._requests(rows))
        gpu = next((name for name in self.gpu_resources if _offered(node, name)), None)
        if gpu is not None or self.gpu_label in node.metadata.labels:
            resource = gpu or self.gpu_resources[0]
            threshold = self.flags.gpu_threshold
            found = _used(node, resource, requests, threshold, is_gpu=True)
            idle = Utilization(resource=resource, requested=0, offered=0, threshold=threshold, is_gpu=True)
            return found or idle  # GPUs that are not there yet do not keep the node
        if self.devices is not None and has_devices(node.name, self.devices):
            use = device_use(node.name, {self.pods.key(row) for row in rows}, self.devices)
            if use is None:
                return None
            return Utilization(
                resource=use.pool,
                requested=use.allocated,
                offered=use.devices,
                threshold=self.flags.threshold,
                is_gpu=False,
                counted=use.share,
            )
        cpu, memory = (_used(node, resource, requests, self.flags.threshold) for resource in (CPU, MEMORY))
        if cpu is None or memory is None:
            return None
        return cpu if cpu.share > memory.share else memory

    def _requests(self, rows: Iterable[int]) -> Iterator[_Request]:
        for row in rows:
            is_ignored = (self.flags.ignores_daemon_sets and self.fates.is_of_daemon_set(row)) or (
                self.flags.ignores_mirror_pods and MIRROR in self.pods.annotations[row]
            )
            if is_ignored or not self.fates.is_long_terminating(row):
                amounts = pod_request(self.pods.specs[row], self.pods.statuses[row], self.options).amounts
                yield _Request(amounts=amounts, is_ignored=is_ignored)


class _Request(Struct, frozen=True, kw_only=True):
    """What one pod asks for."""

    amounts: Mapping[str, int]
    is_ignored: bool
    """It is taken off what the node offers, in place of counting as used."""


def _used(
    node: Node, resource: str, requests: Iterable[_Request], threshold: float, *, is_gpu: bool = False
) -> Utilization | None:
    """None where the node offers nothing of it."""
    allocatable = _offered(node, resource)
    if not allocatable:
        return None
    ignored, counted = 0, 0
    for one in requests:
        amount = one.amounts.get(resource, 0)
        if one.is_ignored:
            ignored += amount
        else:
            counted += amount
    return Utilization(
        resource=resource, requested=counted, offered=allocatable - ignored, threshold=threshold, is_gpu=is_gpu
    )


def _offered(node: Node, resource: str) -> int:
    written = node.status.allocatable.get(resource)
    if written is None:
        return 0
    return milli_value(written) if resource == CPU else value(written)
