"""LowNodeUtilization and HighNodeUtilization: the usage of nodes, their categories, and the evicted pods.

Amounts are exact, in nano-units. Upstream: pkg/framework/plugins/nodeutilization.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.descheduler.arguments import HighNodeUtilizationArgs, LowNodeUtilizationArgs, NameFilter, Thresholds
from kschedx.descheduler.cluster import NANO, Cluster, Metrics, PodFacts, round_up, unit_of
from kschedx.descheduler.evictor import EvictionOutcome, EvictorHandle
from kschedx.descheduler.policy import KUBERNETES_METRICS, METRIC_RESOURCE, ONLY_THRESHOLDING, PROMETHEUS, Policy
from kschedx.descheduler.violations import sort_by_priority
from kschedx.kube.field_errors import quote_go
from kschedx.kube.go_sort import sort_slice
from kschedx.kube.names import CPU, MEMORY, PODS
from kschedx.kube.quantity import ResourceList
from kschedx.kube.resources import Exact, nano_units
from kschedx.kube.types import Node

_BASIC = (CPU, MEMORY, PODS)


class Category(StrEnum):
    UNDERUTILIZED = "underutilized"
    OVERUTILIZED = "overutilized"  # with HighNodeUtilization, a node that can accept pods
    APPROPRIATE = "appropriate"


class _ClassifiedNode(Struct, frozen=True, kw_only=True):
    """A node as one run of a plugin classifies it."""

    node: Node
    category: Category
    usage: Exact
    percent: Mapping[str, float]  # of allocatable, for the compared resources


class Classification(Struct, frozen=True, kw_only=True):
    """One run of LowNodeUtilization or HighNodeUtilization."""

    profile: str
    plugin: str
    nodes: tuple[_ClassifiedNode, ...] = ()
    thresholds: Mapping[Category, Thresholds] | None = None  # computed for `useDeviationThresholds`
    verdict: str = ""  # why nothing is evicted; empty if the run continued with evictions


_NONE_UNDERUTILIZED = "No node is underutilized, nothing to do here, you might tune your thresholds further"
_TOO_FEW = "Number of nodes underutilized is less or equal than NumberOfNodes, nothing to do here"
_ALL_UNDERUTILIZED = "All nodes are underutilized, nothing to do here"
_NONE_OVERUTILIZED = "All nodes are under target utilization, nothing to do here"
_NONE_TAKES = "No node is available to schedule the pods, nothing to do here"


class UsageError(Exception):
    """An error with whose text the plugin ends."""


# --- usage


class _Usage:
    """The usage of nodes, and what a pod's eviction frees: requests of unfinished pods, or metrics."""

    def __init__(self, handle: EvictorHandle, resources: Sequence[str], metrics: Metrics | None) -> None:
        """Compute the usage of the nodes. Raises `UsageError` if a node has no metrics."""
        self._handle = handle
        self._resources = resources
        self._metrics = metrics
        self.pods: dict[str, list[PodFacts]] = {}
        self.nodes: dict[str, Exact] = {}
        for node in handle.nodes:
            pods = self.pods[node.name] = handle.cluster.unfinished_on(node.name)
            requested = self._requests(pods) if metrics is None else self._measurements(node.name, metrics)
            requested[PODS] = len(pods) * NANO
            for name in resources:
                if name not in requested:
                    missing = (
                        f"unable to find {quote_go(name)} resource for collected {quote_go(node.name)} node metric"
                    )
                    raise UsageError(f"error getting node usage: {missing}")
            self.nodes[node.name] = {name: requested[name] for name in resources}

    def _requests(self, pods: Sequence[PodFacts]) -> Exact:
        total: Exact = dict.fromkeys(self._resources, 0)
        for pod in pods:
            for name, nano in self._handle.cluster.request(pod).items():
                if name in total:
                    total[name] += nano
        return total

    def _measurements(self, node: str, metrics: Metrics) -> Exact:
        if node not in metrics.nodes:
            raise UsageError(f"error getting node usage: unable to find node {quote_go(node)} in the collected metrics")
        usage = metrics.nodes[node].usage
        return {name: nano_units(usage.get(name, 0)) for name in (CPU, MEMORY)}

    def pod_usage(self, pod: PodFacts) -> Exact | None:
        """Return a pod's usage; None if it has no metrics, and then it is ignored."""
        if self._metrics is None:
            request = self._handle.cluster.request(pod)
            return {name: request.get(name, 0) for name in self._resources}
        measured = self._metrics.pods.get(pod.key)
        if measured is None:
            return None
        total: Exact = dict.fromkeys(self._resources, 0)
        for container in measured.containers:
            for name in self._resources:
                if name == PODS:
                    continue
                if name not in container.usage:
                    return None
                total[name] += nano_units(container.usage[name])
        return total


def _capacity(node: Node) -> ResourceList:
    """Return allocatable, and 100 for what Prometheus measures as a percentage."""
    return {**(node.status.allocatable or node.status.capacity), METRIC_RESOURCE: 100}


def _percentages(usage: Mapping[str, Exact], nodes: Sequence[Node]) -> dict[str, dict[str, float]]:
    """Return node to resource to percentage of allocatable, for the resources that the node has."""
    percentages = {}
    for node in nodes:
        capacity = _capacity(node)
        percents = {}
        for name, nano in usage[node.name].items():
            if name in capacity:
                unit = unit_of(name)
                whole = round_up(nano_units(capacity[name]), unit)
                percents[name] = float(round_up(nano, unit)) / float(whole) * 100 if whole > 0 else 0.0
        percentages[node.name] = percents
    return percentages


def _is_below(percents: Mapping[str, float], thresholds: Thresholds) -> bool:
    """Return whether no resource is above its threshold."""
    return all(percents.get(name, 0.0) <= threshold for name, threshold in thresholds.items())


def _maximum_usage(node: Node, thresholds: Thresholds, resources: Sequence[str]) -> Exact:
    """Return a node's maximum usage: its capacity, or the threshold of a resource that has one."""
    capacity = _capacity(node)
    capped: Exact = {}
    for name in resources:
        if name not in capacity:
            capped[name] = 0
        elif name not in thresholds:
            capped[name] = nano_units(capacity[name])
        else:
            unit = unit_of(name)
            capped[name] = int(thresholds[name] * 0.01 * float(round_up(nano_units(capacity[name]), unit))) * unit
    return capped


def _weight(usage: Exact) -> int:
    """Return the sort key of nodes: the sum of CPU in thousandths, bytes, pods, and everything else."""
    return sum(round_up(nano, unit_of(name)) for name, nano in usage.items())


def round_percent(percent: float) -> int:
    """Round to the nearest whole number, halves away from zero."""
    return math.floor(percent + 0.5) if percent >= 0 else -math.floor(-percent + 0.5)


Shares = Mapping[str, Mapping[str, float]]  # node to CPU, memory, and pods to percentage of allocatable


def shares(cluster: Cluster) -> Shares:
    """Return the requests of unfinished pods as shares of every node."""
    amounts: dict[str, Exact] = {}
    for node in cluster.nodes:
        pods = cluster.unfinished_on(node.name)
        total = amounts[node.name] = {CPU: 0, MEMORY: 0, PODS: len(pods) * NANO}
        for pod in pods:
            request = cluster.request(pod)
            for name in (CPU, MEMORY):
                total[name] += request.get(name, 0)
    return _percentages(amounts, cluster.nodes)


def low_node_utilization(
    handle: EvictorHandle, args: LowNodeUtilizationArgs, policy: Policy, metrics: Metrics
) -> Classification:
    """Evict from overutilized nodes until they reach their target, or the underutilized nodes are full. Raises
    `UsageError`."""
    measured = _source(args, policy, metrics)
    resources = list(dict.fromkeys((*_BASIC, *args.thresholds)))
    usage = _Usage(handle, resources, measured)
    low, high = args.thresholds, args.target_thresholds
    thresholds = None
    if args.use_deviation_thresholds:
        compared = {name: {key: used[key] for key in args.thresholds} for name, used in usage.nodes.items()}
        percents = _percentages(compared, handle.nodes)
        average = _averages(percents.values())
        low = {name: _clamp(mean - low.get(name, 0.0)) for name, mean in average.items()}
        high = {name: _clamp(mean + high.get(name, 0.0)) for name, mean in average.items()}
        thresholds = {Category.UNDERUTILIZED: low, Category.OVERUTILIZED: high}
    else:
        percents = _percentages(usage.nodes, handle.nodes)

    def category(node: Node) -> Category:
        if not node.spec.unschedulable and _is_below(percents[node.name], low):
            return Category.UNDERUTILIZED
        return Category.OVERUTILIZED if not _is_below(percents[node.name], high) else Category.APPROPRIATE

    nodes = tuple(
        _ClassifiedNode(
            node=node, category=category(node), usage=dict(usage.nodes[node.name]), percent=percents[node.name]
        )
        for node in handle.nodes
    )
    takers = [node.node for node in nodes if node.category is Category.UNDERUTILIZED]
    sources = [node.node for node in nodes if node.category is Category.OVERUTILIZED]
    verdict = _verdict(takers, args.number_of_nodes, len(nodes)) or ("" if sources else _NONE_OVERUTILIZED)
    if not verdict:
        sort_slice(sources, lambda node, other: _weight(usage.nodes[node.name]) > _weight(usage.nodes[other.name]))
        limit = args.eviction_limits.node if args.eviction_limits is not None else None
        targets = {node.name: _maximum_usage(node, high, resources) for node in (*sources, *takers)}

        def goes_on(node: Node, available: Exact) -> bool:
            used = usage.nodes[node.name]
            return any(targets[node.name][name] < nano for name, nano in used.items()) and min(available.values()) > 0

        def because(node: Node) -> str:
            above = [
                f"{name} {round_percent(percents[node.name][name])}%, target {round_percent(most)}%"
                for name, most in high.items()
                if percents[node.name].get(name, 0.0) > most
            ]
            return f"{node.name} is overutilized: {', '.join(above)}"

        eviction = _Eviction(
            handle, usage, takers, targets, goes_on=goes_on, is_removable=handle.evictor.filter,
            namespaces=args.evictable_namespaces, limit=limit,
        )  # fmt: skip
        eviction.run(sources, because)
    return Classification(
        profile=handle.profile, plugin=handle.plugin, nodes=nodes, thresholds=thresholds, verdict=verdict
    )


def _source(args: LowNodeUtilizationArgs, policy: Policy, metrics: Metrics) -> Metrics | None:
    """Return the metrics for the usage; None for requests. Raises `UsageError`."""
    wanted = args.metrics_utilization
    if wanted is None:
        return None
    failed = "error initializing usage client: "
    if wanted.metrics_server or wanted.source == KUBERNETES_METRICS:
        if not policy.has_metrics:
            raise UsageError(f"{failed}metrics client not initialized")
        return metrics
    if wanted.source == PROMETHEUS:
        raise UsageError(f"{failed}prometheus client not initialized")
    raise UsageError(failed + ("unrecognized metrics source" if wanted.source else "metrics source is empty"))


def _averages(percents: Iterable[Mapping[str, float]]) -> dict[str, float]:
    """Return the average of each resource, over the nodes that have it."""
    total: dict[str, float] = {}
    count: dict[str, int] = {}
    for percentage in percents:
        for name, percent in percentage.items():
            total[name] = total.get(name, 0.0) + percent
            count[name] = count.get(name, 0) + 1
    return {name: total[name] / count[name] for name in total}


def _clamp(percent: float) -> float:
    return min(max(percent, 0.0), 100.0)


def _verdict(underutilized: Sequence[Node], number_of_nodes: int, count: int) -> str:
    if not underutilized:
        return _NONE_UNDERUTILIZED
    if len(underutilized) <= number_of_nodes:
        return _TOO_FEW
    return _ALL_UNDERUTILIZED if len(underutilized) == count else ""


def high_node_utilization(handle: EvictorHandle, args: HighNodeUtilizationArgs) -> Classification:
    """Evict all pods from underutilized nodes, as long as the other nodes have room."""
    resources = list(dict.fromkeys((*_BASIC, *args.thresholds)))
    usage = _Usage(handle, resources, None)
    percents = _percentages(usage.nodes, handle.nodes)
    classes = []
    for node in handle.nodes:
        if _is_below(percents[node.name], args.thresholds):
            category = Category.UNDERUTILIZED
        elif not node.spec.unschedulable:
            category = Category.OVERUTILIZED
        else:
            continue
        used = dict(usage.nodes[node.name])
        classes.append(_ClassifiedNode(node=node, category=category, usage=used, percent=percents[node.name]))
    sources = [classified.node for classified in classes if classified.category is Category.UNDERUTILIZED]
    takers = [classified.node for classified in classes if classified.category is Category.OVERUTILIZED]
    verdict = _verdict(sources, args.number_of_nodes, len(handle.nodes)) or ("" if takers else _NONE_TAKES)
    if not verdict:
        sort_slice(sources, lambda node, other: _weight(usage.nodes[node.name]) < _weight(usage.nodes[other.name]))
        full: Thresholds = dict.fromkeys(args.thresholds, 100.0)
        targets = {node.name: _maximum_usage(node, full, resources) for node in takers}
        only = ONLY_THRESHOLDING in args.eviction_modes

        def is_removable(pod: PodFacts) -> bool:
            return handle.evictor.filter(pod) and (not only or _requests_any(pod, args.thresholds))

        def because(node: Node) -> str:
            used = [f"{name} {round_percent(percents[node.name].get(name, 0.0))}%" for name in args.thresholds]
            return f"{node.name} is underutilized: {', '.join(used)}"

        def goes_on(_: Node, available: Exact) -> bool:
            return min(available.values()) > 0

        eviction = _Eviction(
            handle, usage, takers, targets, goes_on=goes_on, is_removable=is_removable,
            namespaces=args.evictable_namespaces,
        )  # fmt: skip
        eviction.run(sources, because)
    return Classification(profile=handle.profile, plugin=handle.plugin, nodes=tuple(classes), verdict=verdict)


def _requests_any(pod: PodFacts, resources: Thresholds) -> bool:
    containers = (*pod.spec.containers, *pod.spec.init_containers)
    return any(name in container.resources.requests for name in resources for container in containers)


# --- evictions


class _Eviction:
    """The evictions of one run, from nodes to nodes that can accept pods."""

    def __init__(
        self,
        handle: EvictorHandle,
        usage: _Usage,
        takers: Sequence[Node],
        targets: Mapping[str, Exact],
        *,
        goes_on: Callable[[Node, Exact], bool],
        is_removable: Callable[[PodFacts], bool],
        namespaces: NameFilter | None,
        limit: int | None = None,
    ) -> None:
        """`targets` are the maximum usages of nodes; `goes_on` is called before each pod with what all takers together
        have free. `limit` is the maximum for each node."""
        self._handle = handle
        self._usage = usage
        self._goes_on = goes_on
        self._is_removable = is_removable
        self._excluded = namespaces.exclude if namespaces is not None else ()
        self._limit = limit
        self._taints = list(dict.fromkeys(node.spec.taints for node in takers))
        self._tolerated: dict[int, bool] = {}
        self._available: Exact = {}
        for node in takers:
            for name, nano in usage.nodes[node.name].items():
                self._available[name] = self._available.get(name, 0) + targets[node.name][name] - nano

    def run(self, sources: Sequence[Node], because: Callable[[Node], str]) -> None:
        """Evict pods node by node, until the limit of all evictions is reached."""
        for node in self._handle.each(sources):
            pods = [pod for pod in self._usage.pods[node.name] if self._is_removable(pod)]
            sort_by_priority(pods)
            if pods and self._goes_on(node, self._available) and not self._evict_from(node, pods, because(node)):
                return

    def _evict_from(self, node: Node, pods: Sequence[PodFacts], because: str) -> bool:
        """Return False if the limit of all evictions is reached."""
        evicted = 0
        for pod in pods:
            if self._limit is not None and evicted >= self._limit:
                break
            used = self._usage.pod_usage(pod) if self._may_leave(pod) else None
            if used is None:
                continue
            outcome = self._handle.evict(pod, because)
            if outcome in (EvictionOutcome.TOTAL_LIMIT, EvictionOutcome.NODE_LIMIT):
                return outcome is EvictionOutcome.NODE_LIMIT
            if outcome is not EvictionOutcome.EVICTED:
                continue
            evicted += 1
            for name in self._available:
                freed = NANO if name == PODS else used[name]
                self._usage.nodes[node.name][name] -= freed
                self._available[name] -= freed
            if not self._goes_on(node, self._available):
                break
        return True

    def _may_leave(self, pod: PodFacts) -> bool:
        is_included = pod.namespace not in self._excluded
        return self._tolerates_any(pod) and is_included and self._handle.evictor.pre_eviction(pod)

    def _tolerates_any(self, pod: PodFacts) -> bool:
        """Return whether the pod tolerates all taints of a taker, even PreferNoSchedule, with as many tolerations."""
        if pod.template not in self._tolerated:
            cover, most = self._handle.cluster.static_fit.tolerations(pod).cover, len(pod.spec.tolerations)
            fits = (most >= len(taints) and all(map(cover, taints)) for taints in self._taints)
            self._tolerated[pod.template] = any(fits)
        return self._tolerated[pod.template]
