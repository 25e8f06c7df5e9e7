"""NodeResourceTopologyMatch of scheduler-plugins (pkg/noderesourcetopology), as of August 2026 with Kubernetes 1.35.4.

Filter as it is without a cache of its own: what a node's NodeResourceTopology says is taken as it stands. Where the
scheduler keeps one (cacheResyncPeriodSeconds), it also holds back what it has just given away. Score is not here: the
table of plugins says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from kschedx.api.resources import is_hugepages, is_native_resource, nano_units
from kschedx.api.scheduler_plugins import (
    CONTAINER_LEVEL,
    NUMA_PREFIX,
    NUMA_ZONE,
    POD_LEVEL,
    POLICIES,
    POLICY_ATTRIBUTE,
    SCOPE_ATTRIBUTE,
    SCOPES,
    SINGLE_NUMA_NODE,
    NodeResourceTopology,
)
from kschedx.api.types import Container, Pod, ResourceList
from kschedx.findings import NumaMisfit
from kschedx.framework.interface import FilterPlugin, Handle, Touch
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.plugins.qos import QOS, qos_of
from kschedx.snapshot.nodes import NodeTable

LEGACY = {POD_LEVEL: (SINGLE_NUMA_NODE, "pod"), CONTAINER_LEVEL: (SINGLE_NUMA_NODE, "container")}
LARGEST_ID = 64

Amounts = Mapping[str, int]
"""Resource to amount, in nano-units."""


class Numa(Struct, frozen=True, kw_only=True):
    """A NUMA node."""

    id: int
    available: dict[str, int]


class NodeResourceTopologyMatch(FilterPlugin):
    """Rejects nodes whose kubelet would: it wants everything from one NUMA node, and none has it."""

    name = "NodeResourceTopologyMatch"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        self._topologies = {one.metadata.name: one for one in handle.snapshot.of(NodeResourceTopology)}

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        qos = qos_of(pod)
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        is_native = all(is_native_resource(name) for one in containers for name in one.resources.requests)
        if qos is QOS.BEST_EFFORT and is_native:
            return Verdicts.success(len(nodes))
        return Verdicts.of_rows(
            [
                self._status(pod, qos, name, nodes.cluster.nodes[int(row)].status.allocatable)
                for name, row in zip(nodes.names, nodes.rows, strict=True)
            ]
        )

    def _status(self, pod: Pod, qos: QOS, node: str, allocatable: ResourceList) -> Status:
        topology = self._topologies.get(node)
        if topology is None:
            return SUCCESS
        policy, scope = _configuration(topology)
        if policy != SINGLE_NUMA_NODE:
            return SUCCESS
        numas = list(_numas(topology))
        if scope == "pod":
            found = _fitting(numas, _effective(pod), qos, allocatable)
            return _rejected("cannot align pod", "", found, numas) if isinstance(found, str) else SUCCESS
        for init in pod.spec.init_containers:
            found = _fitting(numas, _requests(init), qos, allocatable)
            if isinstance(found, str):
                kind = "sidecar" if init.is_restartable_init else "init"
                return _rejected(f"cannot align {kind} container", init.name, found, numas)
        for container in pod.spec.containers:
            found = _fitting(numas, _requests(container), qos, allocatable)
            if isinstance(found, str):
                return _rejected("cannot align container", container.name, found, numas)
            _take(numas, found, _requests(container), qos)
        return SUCCESS


def _configuration(topology: NodeResourceTopology) -> tuple[str, str]:
    """Policy and scope of the node's topology manager; attributes count more than the deprecated field."""
    policy, scope = LEGACY.get(
        topology.topology_policies[0] if topology.topology_policies else "", ("none", "container")
    )
    for one in topology.attributes:
        if one.setting == SCOPE_ATTRIBUTE and one.choice in SCOPES:
            scope = one.choice
        elif one.setting == POLICY_ATTRIBUTE and one.choice in POLICIES:
            policy = one.choice
    return policy, scope


def _numas(topology: NodeResourceTopology) -> Iterable[Numa]:
    for zone in topology.zones:
        digits = zone.numa.removeprefix(NUMA_PREFIX)
        if zone.zone_type == NUMA_ZONE and digits != zone.numa and digits.isdecimal() and int(digits) <= LARGEST_ID:
            yield Numa(id=int(digits), available={one.name: nano_units(one.available) for one in zone.resources})


def _requests(container: Container) -> Amounts:
    return {name: nano_units(written) for name, written in container.resources.requests.items()}


def _effective(pod: Pod) -> Amounts:
    """All containers together, or an init container that asks for more, and overhead (GetPodEffectiveRequest)."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in _requests(container).items():
            total[name] = total.get(name, 0) + amount
    for container in pod.spec.init_containers:
        for name, amount in _requests(container).items():
            total[name] = max(total.get(name, 0), amount)
    for name, written in pod.spec.overhead.items():
        total[name] = total.get(name, 0) + nano_units(written)
    return total


def _fitting(numas: Iterable[Numa], requests: Amounts, qos: QOS, allocatable: ResourceList) -> int | str:
    """The lowest id of the NUMA nodes that have all of it, or the resource for which there is none."""
    fitting: set[int] | None = None
    for name, amount in sorted(requests.items()):
        if not amount:
            continue
        if name not in allocatable:
            return name
        having = [numa for numa in numas if name in numa.available]
        if not having and _may_be_anywhere(name):
            continue
        enough = {numa.id for numa in having if _is_shared(name, qos) or numa.available[name] >= amount}
        fitting = enough if fitting is None else fitting & enough
        if not fitting:
            return name
    return min(fitting) if fitting else 0


def _is_shared(name: str, qos: QOS) -> bool:
    """Only Guaranteed pods get cpus, memory and huge pages of their own."""
    return qos is not QOS.GUARANTEED and (name in ("cpu", "memory") or is_hugepages(name))


def _may_be_anywhere(name: str) -> bool:
    return name in ("ephemeral-storage", "storage") or not is_native_resource(name)


def _take(numas: Iterable[Numa], chosen: int, requests: Amounts, qos: QOS) -> None:
    """What a container gets is not there for the next one."""
    for numa in numas:
        if numa.id == chosen:
            for name, amount in requests.items():
                if name in numa.available and not _is_shared(name, qos):
                    numa.available[name] -= amount


def _rejected(text: str, container: str, resource: str, numas: list[Numa]) -> Status:
    finding = NumaMisfit(container=container, resource=resource, numa_nodes=len(numas))
    return Status(code=Code.UNSCHEDULABLE, reasons=(text,), findings=(finding,))
