"""NodeResourceTopologyMatch of scheduler-plugins (pkg/noderesourcetopology), as of August 2026 with Kubernetes 1.35.4.

`numa` reads what a node says of its NUMA nodes, `plugin` rejects and scores with it, by the strategies in `zone_scores`
and `least_numa`.

What a node's NodeResourceTopology says is taken as it stands, as without a cache. With one
(`cacheResyncPeriodSeconds`, `discardReservedNodes`) the scheduler also remembers what it gave away since a node
reported last, which no snapshot has.
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
from kschedx.framework.args import ResourceSpec, args_of_another_project
from kschedx.framework.interface import CycleState, FilterPlugin, Handle, ReservePlugin, ScorePlugin, Texts, Touch
from kschedx.framework.status import MAX_NODE_SCORE, MIN_NODE_SCORE, SUCCESS, Code, Status, Verdicts
from kschedx.kube.names import is_hugepages, is_native_resource, is_scalar_resource
from kschedx.kube.other_schedulers import (
    MAX_NUMA_NODES_ATTRIBUTE,
    NUMA_PREFIX,
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
from kschedx.kube.resources import nano_units
from kschedx.kube.scalars import MIN_INT64, Int64
from kschedx.kube.types import Container, Pod
from kschedx.plugins.qos_sort import QOS, qos_of
from kschedx.snapshot.columns import ClusterRow, IntArray
from kschedx.snapshot.nodes import NodeTable

# What a NodeResourceTopology says of a node's NUMA nodes, and what pods ask of them (pluginhelpers.go,
# numaresources.go, nodeconfig).

LARGEST_ID = 64
MAX_NUMA_NODES = 8
MOST_NUMA_NODES = 1024

Amounts = Mapping[str, int]
"""Resource to amount, in nano-units."""


class Numa(Struct, frozen=True, kw_only=True):
    """A NUMA node."""

    id: int
    available: dict[str, int]
    distances: Mapping[int, int]
    """To NUMA nodes, by id."""


class TopologyManager(Struct, frozen=True, kw_only=True):
    """How the node's kubelet aligns."""

    policy: str = "none"
    scope: str = "container"
    max_numa_nodes: int = MAX_NUMA_NODES


def topology_manager(topology: NodeResourceTopology) -> TopologyManager:
    """Attributes count more than the deprecated field, of which the first entry counts."""
    first = topology.topology_policies[0] if topology.topology_policies else ""
    policy, scope = TOPOLOGY_POLICIES.get(first, ("none", "container"))
    largest = MAX_NUMA_NODES
    for one in topology.attributes:
        if one.setting == SCOPE_ATTRIBUTE and one.choice in SCOPES:
            scope = one.choice
        elif one.setting == POLICY_ATTRIBUTE and one.choice in POLICIES:
            policy = one.choice
        elif one.setting == MAX_NUMA_NODES_ATTRIBUTE and re.fullmatch(r"[+-]?[0-9]{1,18}", one.choice):
            largest = min(int(one.choice), MOST_NUMA_NODES) if int(one.choice) > 1 else largest
    return TopologyManager(policy=policy, scope=scope, max_numa_nodes=largest)


def numas_of(topology: NodeResourceTopology) -> list[Numa]:
    """A new copy at each call, since containers subtract from them."""
    zones = {_id(zone.numa): zone for zone in topology.zones if zone.zone_type == NUMA_ZONE}
    return [
        Numa(
            id=number,
            available={one.name: nano_units(one.available) for one in zone.resources},
            # of zones with the same id the last one's distances count
            distances={_id(cost.numa): cost.distance for cost in zones[number].costs if _id(cost.numa) >= 0},
        )
        for zone in topology.zones
        if zone.zone_type == NUMA_ZONE and (number := _id(zone.numa)) >= 0
    ]


def _id(name: str) -> int:
    """-1 where the name is none of a NUMA node."""
    digits = name.removeprefix(NUMA_PREFIX)
    if digits == name or not re.fullmatch(r"\+?[0-9]{1,18}", digits):
        return -1
    return int(digits) if int(digits) <= LARGEST_ID else -1


def requests_of(container: Container) -> Amounts:
    return {name: nano_units(written) for name, written in container.resources.requests.items()}


def effective_request(pod: Pod) -> Amounts:
    """All containers together, or an init container that asks for more, and overhead (GetPodEffectiveRequest)."""
    total: dict[str, int] = {}
    for container in pod.spec.containers:
        for name, amount in requests_of(container).items():
            total[name] = total.get(name, 0) + amount
    for container in pod.spec.init_containers:
        for name, amount in requests_of(container).items():
            total[name] = max(total.get(name, amount), amount)
    for name, written in pod.spec.overhead.items():
        total[name] = total.get(name, 0) + nano_units(written)
    return total


def is_shared(name: str, qos: QOS) -> bool:
    """Only Guaranteed pods get cpus, memory and huge pages of their own."""
    return qos is not QOS.GUARANTEED and (name in ("cpu", "memory") or is_hugepages(name))


# The strategy LeastNUMANodes: the fewer NUMA nodes a pod is spread over, and the closer they are, the better
# (least_numa.go).

LARGEST = 16
"""Of so many NUMA nodes all sets can be tried."""
FARTHEST = 255
"""Unknown distances count as this."""

Chosen = tuple[int, ...]
"""Places in the list of NUMA nodes."""


def least_numa(asked: Sequence[Amounts], numas: Sequence[Numa], max_numa_nodes: int) -> int:
    """Requests are served one after the other; the one that is spread most counts."""
    if len(numas) > LARGEST:
        raise UndecidableError(f"a node has {len(numas)} NUMA nodes: LeastNUMANodes tries each set of them")
    most, are_close = 0, True
    for request in asked:
        if not any(name in numa.available for name in request for numa in numas):
            continue
        chosen, is_close = _required(numas, request)
        if chosen is None:
            return MIN_NODE_SCORE
        most, are_close = max(most, len({numas[place].id for place in chosen})), are_close and is_close
        if len(asked) > 1:
            _take_numa(numas, chosen, request)
    if not most:
        return MAX_NODE_SCORE
    step = MAX_NODE_SCORE // max_numa_nodes
    return MAX_NODE_SCORE - most * step + (step // 2 if are_close else 0)


def _required(numas: Sequence[Numa], request: Amounts) -> tuple[Chosen | None, bool]:
    """The fewest NUMA nodes that hold a request together, and whether none of so many are closer to each other."""
    for count in range(1, len(numas) + 1):
        every = list(combinations(range(len(numas)), count))
        distances = [_distance(numas, chosen) for chosen in every]
        closest = min([np.float32(FARTHEST), *distances])
        fitting = [
            (far, chosen) for far, chosen in zip(distances, every, strict=True) if _holds(numas, chosen, request)
        ]
        if fitting:
            far, chosen = min(fitting, key=lambda found: found[0])
            return chosen, bool(far == closest)
    return None, False


def _distance(numas: Sequence[Numa], chosen: Chosen) -> np.float32:
    """On average, to each other and themselves."""
    total = sum(numas[one].distances.get(numas[other].id, FARTHEST) for one in chosen for other in chosen)
    return np.float32(total) / np.float32(len(chosen) * len(chosen))


def _holds(numas: Sequence[Numa], chosen: Chosen, request: Amounts) -> bool:
    return all(
        all(name in numas[place].available for place in chosen)
        and (not amount or sum(numas[place].available[name] for place in chosen) >= amount)
        for name, amount in request.items()
    )


def _take_numa(numas: Sequence[Numa], chosen: Chosen, request: Amounts) -> None:
    """What one container gets is not there for the next. The NUMA node of id n is taken to be the n-th in the list."""
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


# Scores of a NUMA node for what a pod or a container asks for (least_allocated.go, most_allocated.go,
# balanced_allocation.go, scoreForEachNUMANode).

LEAST_ALLOCATED = "LeastAllocated"
NANO = 10**9

Weights = Mapping[str, int]
"""A resource that is not named weighs 1."""


def over_zones(strategy: str, asked: Amounts, numas: Sequence[Numa], weights: Weights, node: str) -> int:
    """The lowest score of a NUMA node that it fits at all (that has more than 0)."""
    if not asked and numas:
        raise _panics(node, "divides by the number of resources that a container requests, which is 0")
    wrong = next((numa.id for numa in numas if numa.id >= len(numas)), None)
    if wrong is not None:
        raise _panics(node, f"keeps {len(numas)} scores and looks for the one of NUMA node {wrong}")
    scores = [STRATEGIES[strategy](asked, numa.available, weights) for numa in numas]
    return min((score for score in scores if score), default=0)


def _panics(node: str, why: str) -> UndecidableError:
    return UndecidableError(f"node {node}: kube-scheduler panics in NodeResourceTopologyMatch, which {why}")


def mean(scores: Sequence[int]) -> int:
    return int(float(sum(scores)) / len(scores))


def _by_weight(share: Callable[[int, int], int]) -> Callable[[Amounts, Amounts, Weights], int]:
    def score(asked: Amounts, available: Amounts, weights: Weights) -> int:
        total = 0
        for name, amount in asked.items():
            there = available.get(name, 0)
            fits = there != 0 and amount <= there
            total += weights.get(name, 1) * (share(_units(amount), _units(there)) if fits else 0)
        return total // sum(weights.get(name, 1) for name in asked)

    return score


def _balanced(asked: Amounts, available: Amounts, weights: Weights) -> int:
    """The closer to each other the shares of all resources are, the better."""
    there = {name: _units(available.get(name, 0)) for name in asked}
    shares = [_units(asked[name]) / there[name] if there[name] else 1.0 for name in sorted(asked)]
    if max(shares) > 1:
        return 0
    if len(shares) == 1:
        return MIN_INT64  # the variance of one number is none, which Go makes this of
    middle = sum(shares) / len(shares)
    apart = [share - middle for share in shares]
    variance = (sum(one * one for one in apart) - sum(apart) * sum(apart) / len(shares)) / (len(shares) - 1)
    return int((1 - variance) * MAX_NODE_SCORE)


def _units(nano: int) -> int:
    """Rounded up, as Quantity.Value."""
    return -(-nano // NANO)


STRATEGIES: Mapping[str, Callable[[Amounts, Amounts, Weights], int]] = {
    LEAST_ALLOCATED: _by_weight(lambda asked, there: (there - asked) * MAX_NODE_SCORE // there),
    "MostAllocated": _by_weight(lambda asked, there: asked * MAX_NODE_SCORE // there),
    "BalancedAllocation": _balanced,
}


# NodeResourceTopologyMatch itself (filter.go, score.go).

LEAST_NUMA_NODES = "LeastNUMANodes"
TYPES = (*STRATEGIES, LEAST_NUMA_NODES)
ALWAYS_THERE = frozenset({"cpu", "memory", "ephemeral-storage", "pods"})
"""kube-scheduler's account of a node has these, however much of them the node has."""


class TopologyStrategy(Struct, frozen=True, kw_only=True):
    type: str = LEAST_ALLOCATED
    resources: tuple[ResourceSpec, ...] = ()


class TopologyMatchArgs(Struct, frozen=True, kw_only=True, rename="camel"):
    scoring_strategy: TopologyStrategy = TopologyStrategy()
    cache_resync_period_seconds: Int64 = 0
    discard_reserved_nodes: bool = False


class NodeResourceTopologyMatch(FilterPlugin, ScorePlugin, ReservePlugin):
    """Rejects nodes whose kubelet would: it wants everything from one NUMA node, and none has it. Scores how
    well what a Guaranteed pod asks for fits the NUMA nodes.

    The fingerprint of a node's pods in its NodeResourceTopology is not read: by it the cache decides whether news of a
    node fit what it has given away since it started, and a decision on the objects alone has given away nothing.
    """

    name = "NodeResourceTopologyMatch"
    texts: ClassVar[Texts] = {
        "numa-misfit": ("cannot align pod", "cannot align container", "cannot align {kind} container"),
    }

    def __init__(self, args: object, handle: Handle) -> None:
        super().__init__(args, handle)
        strategy = args_of_another_project(args, TopologyMatchArgs, self.name).scoring_strategy
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
