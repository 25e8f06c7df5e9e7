"""NodeResourceTopologyMatch itself (filter.go, score.go)."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from kschedx.api.integers import Int64
from kschedx.api.quantity import ResourceList
from kschedx.api.resource_names import is_native_resource, is_scalar_resource
from kschedx.api.scheduler_plugins import SINGLE_NUMA_NODE, NodeResourceTopology
from kschedx.api.types import Pod
from kschedx.errors import ConfigError
from kschedx.findings import NumaMisfit
from kschedx.framework.args import ResourceSpec, args_of_another_project
from kschedx.framework.interface import FilterPlugin, Handle, ReservePlugin, ScorePlugin, Touch
from kschedx.framework.outcome import MAX_NODE_SCORE
from kschedx.framework.state import CycleState
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.plugins.node_resource_topology_match.least_numa import least_numa
from kschedx.plugins.node_resource_topology_match.numa import (
    Amounts,
    Numa,
    effective_request,
    is_shared,
    numas_of,
    requests_of,
    topology_manager,
)
from kschedx.plugins.node_resource_topology_match.zone_scores import LEAST_ALLOCATED, STRATEGIES, mean, over_zones
from kschedx.plugins.qos import QOS, qos_of
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow

LEAST_NUMA_NODES = "LeastNUMANodes"
TYPES = (*STRATEGIES, LEAST_NUMA_NODES)
ALWAYS_THERE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""kube-scheduler's account of a node has these, however much of them the node has."""


class ScoringStrategy(Struct, frozen=True, kw_only=True):
    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = ()


class NodeResourceTopologyMatchArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    scoring_strategy: ScoringStrategy = ScoringStrategy()
    cache_resync_period_seconds: Int64 = 0
    discard_reserved_nodes: bool = False


class NodeResourceTopologyMatch(FilterPlugin, ScorePlugin, ReservePlugin):
    """Rejects nodes whose kubelet would: it wants everything from one NUMA node, and none has it. Scores how
    well what a Guaranteed pod asks for fits the NUMA nodes.

    The fingerprint of a node's pods in its NodeResourceTopology is not read: by it the cache decides whether news of a
    node fit what it has given away since it started, and a decision on the objects alone has given away nothing.
    """

    name = "NodeResourceTopologyMatch"

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        strategy = args_of_another_project(args, NodeResourceTopologyMatchArgs, self.name).scoring_strategy
        if strategy.type not in TYPES:
            raise ConfigError(
                f'{self.name}: scoringStrategy.type "{strategy.type}" is none', hint=f"allowed: {', '.join(TYPES)}"
            )
        self._strategy = strategy.type
        self._weights = {one.name: max(one.weight, 1) for one in strategy.resources}
        self._topologies = {one.metadata.name: one for one in handle.snapshot.of(NodeResourceTopology)}

    def touches(self, pod: Pod) -> Touch:
        return Touch.NOTHING

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        qos = qos_of(pod, self.handle.release)
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
        manager = topology_manager(topology)
        if manager.policy != SINGLE_NUMA_NODE:
            return SUCCESS
        numas = numas_of(topology)
        if manager.scope == "pod":
            found = _fitting(numas, effective_request(pod), qos, allocatable)
            return _rejected("cannot align pod", "", found, numas) if isinstance(found, str) else SUCCESS
        for init in pod.spec.init_containers:
            found = _fitting(numas, requests_of(init), qos, allocatable)
            if isinstance(found, str):
                kind = "sidecar" if init.is_restartable_init else "init"
                return _rejected(f"cannot align {kind} container", init.name, found, numas)
        for container in pod.spec.containers:
            found = _fitting(numas, requests_of(container), qos, allocatable)
            if isinstance(found, str):
                return _rejected("cannot align container", container.name, found, numas)
            _take(numas, found, requests_of(container), qos)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        if qos_of(pod, self.handle.release) is not QOS.GUARANTEED:
            return np.full(len(nodes), MAX_NODE_SCORE, dtype=np.int64)
        topologies = (self._topologies.get(name) for name in nodes.names)
        return np.array([0 if one is None else self._score(pod, one) for one in topologies], dtype=np.int64)

    def _score(self, pod: Pod, topology: NodeResourceTopology) -> int:
        manager, numas = topology_manager(topology), numas_of(topology)
        is_whole = manager.scope == "pod"
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        asked = [effective_request(pod)] if is_whole else [requests_of(one) for one in containers]
        if self._strategy == LEAST_NUMA_NODES:
            return least_numa(asked, numas, manager.max_numa_nodes)
        if manager.policy != SINGLE_NUMA_NODE:
            return 0
        return mean([over_zones(self._strategy, one, numas, self._weights, topology.metadata.name) for one in asked])

    def reserve(self, state: CycleState, pod: Pod, node: ClusterRow) -> Status:
        return SUCCESS


def _fitting(numas: Iterable[Numa], requests: Amounts, qos: QOS, allocatable: ResourceList) -> int | str:
    """The lowest id of the NUMA nodes that have all of it, or the resource for which there is none."""
    fitting: set[int] | None = None
    for name, amount in sorted(requests.items()):
        if not amount:
            continue
        if name not in ALWAYS_THERE and not (name in allocatable and is_scalar_resource(name)):
            return name
        having = [numa for numa in numas if name in numa.available]
        if not having and _may_be_anywhere(name):
            continue
        enough = {numa.id for numa in having if is_shared(name, qos) or numa.available[name] >= amount}
        fitting = enough if fitting is None else fitting & enough
        if not fitting:
            return name
    return min(fitting) if fitting else 0


def _may_be_anywhere(name: str) -> bool:
    return name in ("ephemeral-storage", "storage") or not is_native_resource(name)


def _take(numas: Iterable[Numa], chosen: int, requests: Amounts, qos: QOS) -> None:
    """What a container gets is not there for the next one."""
    for numa in numas:
        if numa.id == chosen:
            for name, amount in requests.items():
                if name in numa.available and not is_shared(name, qos):
                    numa.available[name] -= amount


def _rejected(text: str, container: str, resource: str, numas: list[Numa]) -> Status:
    finding = NumaMisfit(container=container, resource=resource, numa_nodes=len(numas))
    return Status(code=Code.UNSCHEDULABLE, reasons=(text,), findings=(finding,))
