"""How much of a node is asked for, as cluster-autoscaler counts it.

Upstream: simulator/utilization/info.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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


class Hardware(Struct, frozen=True, kw_only=True):
    """What counts beside cpu and memory."""

    gpu_label: str | None
    """Of the cloud."""
    gpu_resources: tuple[str, ...]
    devices: Devices | None
    """Of the cluster, where the autoscaler looks at them."""


def utilization(
    node: Node,
    rows: Iterable[int],
    pods: PodTable,
    fates: Fates,
    flags: ScaleDownFlags,
    options: RequestOptions,
    hardware: Hardware,
) -> Utilization | None:
    """None where the node offers no cpu or no memory, or a pool of its devices is not whole: the autoscaler cannot
    count it, and leaves it alone."""
    rows = tuple(rows)
    requests: list[tuple[bool, Mapping[str, int]]] = []
    for row in rows:
        is_ignored = (flags.ignores_daemon_sets and fates.is_of_daemon_set(row)) or (
            flags.ignores_mirror_pods and MIRROR in pods.annotations[row]
        )
        if is_ignored or not fates.is_long_terminating(row):
            requests.append((is_ignored, pod_request(pods.specs[row], pods.statuses[row], options).amounts))

    def used(resource: str, threshold: float, *, is_gpu: bool = False) -> Utilization | None:
        allocatable = _offered(node, resource)
        if not allocatable:
            return None
        ignored = sum(amounts.get(resource, 0) for is_ignored, amounts in requests if is_ignored)
        requested = sum(amounts.get(resource, 0) for is_ignored, amounts in requests if not is_ignored)
        return Utilization(
            resource=resource, requested=requested, offered=allocatable - ignored, threshold=threshold, is_gpu=is_gpu
        )

    gpu = next((name for name in hardware.gpu_resources if _offered(node, name)), None)
    if gpu is not None or hardware.gpu_label in node.metadata.labels:
        resource = gpu or hardware.gpu_resources[0]
        found = used(resource, flags.gpu_threshold, is_gpu=True)
        idle = Utilization(resource=resource, requested=0, offered=0, threshold=flags.gpu_threshold, is_gpu=True)
        return found or idle  # GPUs that are not there yet do not keep the node
    if hardware.devices is not None and has_devices(node.name, hardware.devices):
        use = device_use(node.name, {pods.key(row) for row in rows}, hardware.devices)
        if use is None:
            return None
        return Utilization(
            resource=use.pool,
            requested=use.allocated,
            offered=use.devices,
            threshold=flags.threshold,
            is_gpu=False,
            counted=use.share,
        )
    cpu, memory = used(CPU, flags.threshold), used(MEMORY, flags.threshold)
    if cpu is None or memory is None:
        return None
    return cpu if cpu.share > memory.share else memory


def _offered(node: Node, resource: str) -> int:
    written = node.status.allocatable.get(resource)
    if written is None:
        return 0
    return milli_value(written) if resource == CPU else value(written)
