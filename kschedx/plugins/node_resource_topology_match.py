"""NodeResourceTopologyMatch of scheduler-plugins (pkg/noderesourcetopology), as of August 2026 with Kubernetes 1.35.4.

A NodeResourceTopology is used as it stands, as without a cache. With a cache (`cacheResyncPeriodSeconds`,
`discardReservedNodes`), the scheduler also subtracts what it assigned since a node's last report. A snapshot does not
show that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import ClassVar

import numpy as np
from msgspec import Struct

from kschedx.errors import ConfigError, UndecidableError
from kschedx.findings import NumaMisfit
from kschedx.framework.args import LEAST_ALLOCATED, NodeResourceTopologyMatchArgs, args_of_another_project
from kschedx.framework.interface import CycleState, FilterPlugin, Handle, ReservePlugin, ScorePlugin, Texts, Touch
from kschedx.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, SUCCESS, Status, Verdicts, unschedulable
from kschedx.kube.names import is_hugepages, is_native_resource, is_scalar_resource
from kschedx.kube.other_schedulers import (
    MAX_NUMA_NODES_ATTRIBUTE,
    NUMA_ZONE,
    POLICIES,
    POLICY_ATTRIBUTE,
    SCOPE_ATTRIBUTE,
    SCOPES,
    SINGLE_NUMA_NODE,
    TOPOLOGY_POLICIES,
    NodeResourceTopology,
)
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import QOS, nano_units
from kschedx.kube.scalars import MIN_INT64
from kschedx.kube.types import Container, Pod
from kschedx.plugins.queue_sort import pod_qos
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable

# The NUMA nodes in a NodeResourceTopology, and what pods request of them (pluginhelpers.go, numaresources.go,
# nodeconfig).

_LARGEST_ID = 64
_MAX_NUMA_NODES = 8
_MOST_NUMA_NODES = 1024

_Amounts = Mapping[str, int]  # resource to amount, in nano-units
_NUMA_PREFIX = "node-"


class _Numa(Struct, frozen=True, kw_only=True):
    id: int
    available: dict[str, int]
    distances: Mapping[int, int]  # by the id of the other NUMA node


class _TopologyManager(Struct, frozen=True, kw_only=True):
    """The policy and scope of the node's Topology Manager."""

    policy: str = "none"
    scope: str = "container"
    max_numa_nodes: int = _MAX_NUMA_NODES


def _topology_manager(topology: NodeResourceTopology) -> _TopologyManager:
    """Attributes override the deprecated field, whose first entry counts."""
    first = topology.topology_policies[0] if topology.topology_policies else ""
    policy, scope = TOPOLOGY_POLICIES.get(first, ("none", "container"))
    largest = _MAX_NUMA_NODES
    for attribute in topology.attributes:
        if attribute.setting == SCOPE_ATTRIBUTE and attribute.choice in SCOPES:
            scope = attribute.choice
        elif attribute.setting == POLICY_ATTRIBUTE and attribute.choice in POLICIES:
            policy = attribute.choice
        elif attribute.setting == MAX_NUMA_NODES_ATTRIBUTE and re.fullmatch(r"[+-]?[0-9]{1,18}", attribute.choice):
            largest = min(int(attribute.choice), _MOST_NUMA_NODES) if int(attribute.choice) > 1 else largest
    return _TopologyManager(policy=policy, scope=scope, max_numa_nodes=largest)


def _numas_of(topology: NodeResourceTopology) -> list[_Numa]:
    """Return new copies at each call, because containers subtract from them."""
    zones = {_id(zone.numa): zone for zone in topology.zones if zone.zone_type == NUMA_ZONE}
    return [
        _Numa(
            id=number,
            available={resource.name: nano_units(resource.available) for resource in zone.resources},
            # of zones with the same id, the last one's distances count
            distances={_id(cost.numa): cost.distance for cost in zones[number].costs if _id(cost.numa) >= 0},
        )
        for zone in topology.zones
        if zone.zone_type == NUMA_ZONE and (number := _id(zone.numa)) >= 0
    ]


def _id(name: str) -> int:
    """Return the id of a NUMA node, or -1 if the name is not one."""
    digits = name.removeprefix(_NUMA_PREFIX)
    if digits == name or not re.fullmatch(r"\+?[0-9]{1,18}", digits):
        return -1
    return int(digits) if int(digits) <= _LARGEST_ID else -1


def _requests_of(container: Container) -> _Amounts:
    return {name: nano_units(written) for name, written in container.resources.requests.items()}


def _effective_request(pod: Pod) -> _Amounts:
    """Return the sum of all containers, or a larger init container, plus overhead (GetPodEffectiveRequest)."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in _requests_of(container).items():
            total[name] = total.get(name, 0) + amount
    for container in pod.spec.init_containers:
        for name, amount in _requests_of(container).items():
            total[name] = max(total.get(name, amount), amount)
    for name, written in pod.spec.overhead.items():
        total[name] = total.get(name, 0) + nano_units(written)
    return total


def _is_shared(name: str, qos: QOS) -> bool:
    """Return whether containers share the resource: only Guaranteed pods get exclusive cpus, memory, and huge pages."""
    return qos is not QOS.GUARANTEED and (name in ("cpu", "memory") or is_hugepages(name))


# The strategy LeastNUMANodes: fewer NUMA nodes with shorter distances score higher (_least_numa.go).

_LARGEST = 16  # the largest number of NUMA nodes whose combinations are all tried
_FARTHEST = 255  # if none is reported

_Chosen = tuple[int, ...]  # positions in the list of NUMA nodes


def _least_numa(requests: Sequence[_Amounts], numas: Sequence[_Numa], max_numa_nodes: int) -> int:
    """Score the requests one after the other. The one that needs the most NUMA nodes counts."""
    if len(numas) > _LARGEST:
        raise UndecidableError(f"a node has {len(numas)} NUMA nodes: LeastNUMANodes tries each set of them")
    most, are_close = 0, True
    for request in requests:
        if not any(name in numa.available for name in request for numa in numas):
            continue
        chosen, is_close = _fewest_numas(numas, request)
        if chosen is None:
            return MIN_NODE_SCORE
        most, are_close = max(most, len({numas[place].id for place in chosen})), are_close and is_close
        if len(requests) > 1:
            _take_numa(numas, chosen, request)
    if not most:
        return MAX_NODE_SCORE
    step = MAX_NODE_SCORE // max_numa_nodes
    return MAX_NODE_SCORE - most * step + (step // 2 if are_close else 0)


def _fewest_numas(numas: Sequence[_Numa], request: _Amounts) -> tuple[_Chosen | None, bool]:
    """The fewest NUMA nodes that hold the request together, and whether no combination of that size is closer."""
    for count in range(1, len(numas) + 1):
        every = list(combinations(range(len(numas)), count))
        distances = [_distance(numas, chosen) for chosen in every]
        closest = min([np.float32(_FARTHEST), *distances])
        fitting = [
            (far, chosen) for far, chosen in zip(distances, every, strict=True) if _holds(numas, chosen, request)
        ]
        if fitting:
            far, chosen = min(fitting, key=lambda pair: pair[0])
            return chosen, bool(far == closest)
    return None, False


def _distance(numas: Sequence[_Numa], chosen: _Chosen) -> np.float32:
    """Return the mean distance of all pairs, each node with itself included."""
    total = sum(numas[numa].distances.get(numas[other].id, _FARTHEST) for numa in chosen for other in chosen)
    return np.float32(total) / np.float32(len(chosen) * len(chosen))


def _holds(numas: Sequence[_Numa], chosen: _Chosen, request: _Amounts) -> bool:
    return all(
        all(name in numas[place].available for place in chosen)
        and (not amount or sum(numas[place].available[name] for place in chosen) >= amount)
        for name, amount in request.items()
    )


def _take_numa(numas: Sequence[_Numa], chosen: _Chosen, request: _Amounts) -> None:
    """Subtract what a container uses, so that the next one cannot. The NUMA node with id n is assumed to be the n-th in
    the list."""
    for name, amount in request.items():
        missing = amount
        for place in sorted({numas[place].id for place in chosen}):
            if place >= len(numas):
                raise UndecidableError(
                    f"kube-scheduler panics in NodeResourceTopologyMatch, which looks for NUMA node {place} among "
                    f"{len(numas)}"
                )
            available = numas[place].available
            if name in available and missing:
                taken = min(missing, available[name])
                missing -= taken
                available[name] -= taken


# Scores of a NUMA node for the request of a pod or container (least_allocated.go, most_allocated.go,
# balanced_allocation.go, scoreForEachNUMANode).

_NANO = 10**9

_Weights = Mapping[str, int]  # weight by resource; 1 if it is not named


def _lowest_score(strategy: str, requests: _Amounts, numas: Sequence[_Numa], weights: _Weights, node: str) -> int:
    """Return the lowest score of the NUMA nodes that score more than 0."""
    if not requests and numas:
        raise _panics(node, "divides by the number of resources that a container requests, which is 0")
    wrong = next((numa.id for numa in numas if numa.id >= len(numas)), None)
    if wrong is not None:
        raise _panics(node, f"keeps {len(numas)} scores and looks for the one of NUMA node {wrong}")
    scores = [_STRATEGIES[strategy](requests, numa.available, weights) for numa in numas]
    return min((score for score in scores if score), default=0)


def _panics(node: str, why: str) -> UndecidableError:
    return UndecidableError(f"node {node}: kube-scheduler panics in NodeResourceTopologyMatch, which {why}")


def _mean(scores: Sequence[int]) -> int:
    return int(float(sum(scores)) / len(scores))


def _weighted_scorer(share: Callable[[int, int], int]) -> Callable[[_Amounts, _Amounts, _Weights], int]:
    def score(requested: _Amounts, available: _Amounts, weights: _Weights) -> int:
        total = 0
        for name, amount in requested.items():
            there = available.get(name, 0)
            fits = there != 0 and amount <= there
            total += weights.get(name, 1) * (share(_units(amount), _units(there)) if fits else 0)
        return total // sum(weights.get(name, 1) for name in requested)

    return score


def _balance_score(requested: _Amounts, available: _Amounts, weights: _Weights) -> int:
    """Score higher the closer the fractions of all resources are."""
    there = {name: _units(available.get(name, 0)) for name in requested}
    shares = [_units(requested[name]) / there[name] if there[name] else 1.0 for name in sorted(requested)]
    if max(shares) > 1:
        return 0
    if len(shares) == 1:
        return MIN_INT64  # Go computes this from the variance of a single number, which is NaN
    middle = sum(shares) / len(shares)
    apart = [share - middle for share in shares]
    variance = (sum(share * share for share in apart) - sum(apart) * sum(apart) / len(shares)) / (len(shares) - 1)
    return int((1 - variance) * MAX_NODE_SCORE)


def _units(nano: int) -> int:
    """Round up, as Quantity.Value does."""
    return -(-nano // _NANO)


_STRATEGIES: Mapping[str, Callable[[_Amounts, _Amounts, _Weights], int]] = {
    LEAST_ALLOCATED: _weighted_scorer(lambda requested, there: (there - requested) * MAX_NODE_SCORE // there),
    "MostAllocated": _weighted_scorer(lambda requested, there: requested * MAX_NODE_SCORE // there),
    "BalancedAllocation": _balance_score,
}


# The plugin (filter.go, score.go).

_LEAST_NUMA_NODES = "LeastNUMANodes"
_TYPES = (*_STRATEGIES, _LEAST_NUMA_NODES)
_ALWAYS_THERE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""Resources that kube-scheduler counts on every node, even if the node reports none."""


class NodeResourceTopologyMatch(FilterPlugin, ScorePlugin, ReservePlugin):
    """Rejects nodes whose kubelet would refuse the pod because no single NUMA node has what it requests, and scores the
    NUMA nodes for Guaranteed pods.

    The fingerprint of a node's pods in its NodeResourceTopology is not read. The cache uses it to compare a report with
    the pods assigned since; a decision from a snapshot has no such pods.
    """

    name = "NodeResourceTopologyMatch"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {
        "numa-misfit": ("cannot align pod", "cannot align container", "cannot align {kind} container")
    }

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        strategy = args_of_another_project(args, NodeResourceTopologyMatchArgs, self.name).scoring_strategy
        if strategy.type not in _TYPES:
            raise ConfigError(
                f'{self.name}: scoringStrategy.type "{strategy.type}" is none', hint=f"allowed: {', '.join(_TYPES)}"
            )
        self._strategy = strategy.type
        self._weights = {resource.name: max(resource.weight, 1) for resource in strategy.resources}
        self._topologies = {topology.metadata.name: topology for topology in handle.snapshot.of(NodeResourceTopology)}

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        qos = pod_qos(pod, self.handle.release)
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        is_native = all(is_native_resource(name) for container in containers for name in container.resources.requests)
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
        manager = _topology_manager(topology)
        if manager.policy != SINGLE_NUMA_NODE:
            return SUCCESS
        numas = _numas_of(topology)
        if manager.scope == "pod":
            fitting = _fitting_numa(numas, _effective_request(pod), qos, allocatable)
            return _rejection("cannot align pod", "", fitting, numas) if isinstance(fitting, str) else SUCCESS
        for init in pod.spec.init_containers:
            fitting = _fitting_numa(numas, _requests_of(init), qos, allocatable)
            if isinstance(fitting, str):
                kind = "sidecar" if init.is_restartable_init else "init"
                return _rejection(f"cannot align {kind} container", init.name, fitting, numas)
        for container in pod.spec.containers:
            fitting = _fitting_numa(numas, _requests_of(container), qos, allocatable)
            if isinstance(fitting, str):
                return _rejection("cannot align container", container.name, fitting, numas)
            _take(numas, fitting, _requests_of(container), qos)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        if pod_qos(pod, self.handle.release) is not QOS.GUARANTEED:
            return np.full(len(nodes), MAX_NODE_SCORE, dtype=np.int64)
        topologies = (self._topologies.get(name) for name in nodes.names)
        return np.array([0 if it is None else self._score(pod, it) for it in topologies], dtype=np.int64)

    def _score(self, pod: Pod, topology: NodeResourceTopology) -> int:
        manager, numas = _topology_manager(topology), _numas_of(topology)
        is_whole = manager.scope == "pod"
        containers = (*pod.spec.init_containers, *pod.spec.containers)
        requests = [_effective_request(pod)] if is_whole else [_requests_of(container) for container in containers]
        if self._strategy == _LEAST_NUMA_NODES:
            return _least_numa(requests, numas, manager.max_numa_nodes)
        if manager.policy != SINGLE_NUMA_NODE:
            return 0
        return _mean(
            [_lowest_score(self._strategy, item, numas, self._weights, topology.metadata.name) for item in requests]
        )


def _fitting_numa(numas: Iterable[_Numa], requests: _Amounts, qos: QOS, allocatable: ResourceList) -> int | str:
    """Return the lowest id of the NUMA nodes that fit the whole request, or the resource that none of them has."""
    fitting: set[int] | None = None
    for name, amount in sorted(requests.items()):
        if not amount:
            continue
        if name not in _ALWAYS_THERE and not (name in allocatable and is_scalar_resource(name)):
            return name
        having = [numa for numa in numas if name in numa.available]
        if not having and (name in ("ephemeral-storage", "storage") or not is_native_resource(name)):
            continue
        enough = {numa.id for numa in having if _is_shared(name, qos) or numa.available[name] >= amount}
        fitting = enough if fitting is None else fitting & enough
        if not fitting:
            return name
    return min(fitting) if fitting else 0


def _take(numas: Iterable[_Numa], chosen: int, requests: _Amounts, qos: QOS) -> None:
    """Subtract what a container uses, so that the next one cannot."""
    for numa in numas:
        if numa.id == chosen:
            for name, amount in requests.items():
                if name in numa.available and not _is_shared(name, qos):
                    numa.available[name] -= amount


def _rejection(text: str, container: str, resource: str, numas: list[_Numa]) -> Status:
    finding = NumaMisfit(container=container, resource=resource, numa_nodes=len(numas))
    return unschedulable(text, finding)
