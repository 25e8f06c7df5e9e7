"""Priorities: scores from 0 to 10 for feasible nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import ClassVar

import msgspec
import numpy as np
from msgspec import Struct

from kschedx.errors import InputError
from kschedx.kube.names import CPU, MEMORY
from kschedx.kube.scalars import truncated_quotient
from kschedx.kube.selectors import LabelSelector, Selector, compile_preferred_terms, compile_selector, selector_from_set
from kschedx.kube.storage import BETA_REGION, BETA_ZONE
from kschedx.kube.tolerations import PREFER_NO_SCHEDULE, tolerates
from kschedx.kube.types import AVOID_PODS, AvoidPods, Pod, ReplicaSet, StatefulSet, Taint, Toleration
from kschedx.legacy.api_schema import incoming_limits, scored_request
from kschedx.legacy.interface import MAX_PRIORITY, PredicateContext, Priority
from kschedx.legacy.node_predicates import tolerates_by_key
from kschedx.plugins.image_locality import MAX_CONTAINER_THRESHOLD, MIN_THRESHOLD, normalized_image_name
from kschedx.plugins.inter_pod_affinity.plugin import raw_scores
from kschedx.plugins.inter_pod_affinity.terms import PodTerms
from kschedx.plugins.resource_allocation import amounts, default_normalize, truncating_divide
from kschedx.plugins.selector_spread import ZONE_WEIGHTING, share_left
from kschedx.snapshot.columns import FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable, preferred_weights
from kschedx.snapshot.snapshot import Snapshot

# ImageLocalityPriority (image_locality.go of both versions).


class ImageLocalityPriority(Priority):
    """Images that the node has, by size and by the number of nodes that have them."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        held = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        for name, times in Counter(normalized_image_name(container.image) for container in pod.spec.containers).items():
            image = nodes.cluster.images.state(name)
            if image is not None:
                spread = len(image.nodes) / len(nodes.cluster.nodes)
                held[image.nodes] += times * int(float(image.size_bytes) * spread)
        sums = held[nodes.rows].clip(MIN_THRESHOLD, MAX_CONTAINER_THRESHOLD)
        return MAX_PRIORITY * (sums - MIN_THRESHOLD) // (MAX_CONTAINER_THRESHOLD - MIN_THRESHOLD)


class EarlyImageLocalityPriority(Priority):
    """ImageLocalityPriority of 1.5: images by the name in the pod and the size that the node reports, in ten steps."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        held = np.zeros(len(nodes.cluster.nodes), dtype=np.int64)
        for name, times in Counter(container.image for container in pod.spec.containers).items():
            image = nodes.cluster.images.state(name)
            if image is not None:
                held[image.nodes] += times * image.sizes
        sums = held[nodes.rows]
        steps = 10 * (sums - MIN_THRESHOLD) // (MAX_CONTAINER_THRESHOLD - MIN_THRESHOLD) + 1
        return np.where(sums < MIN_THRESHOLD, 0, np.where(sums >= MAX_CONTAINER_THRESHOLD, MAX_PRIORITY, steps))


# InterPodAffinityPriority (interpod_affinity.go).


class InterPodAffinityPriority(Priority):
    """Preferred terms of the pod and of running pods, and required terms of running pods.

    It is one function over all nodes, so there is nothing to reduce. Unlike in the current plugin, the range starts at
    zero: if all nodes have the same positive sum, all get 10.
    """

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        terms = PodTerms.of_incoming(pod, {})
        weight = self.context.hard_pod_affinity_weight
        sums = raw_scores(pod, terms, self.context.existing_terms, {}, nodes, weight)
        if sums is None:
            return np.zeros(len(nodes), dtype=np.int64)
        mine = sums[nodes.rows]
        lowest, highest = min(int(mine.min()), 0), max(int(mine.max()), 0)
        if highest == lowest:
            return np.zeros(len(nodes), dtype=np.int64)
        share: FloatArray = (mine - lowest).astype(np.float64) / float(highest - lowest)
        return (float(MAX_PRIORITY) * share).astype(np.int64)


# Priorities by preferences of pods and nodes (node_affinity.go, taint_toleration.go, node_label.go,
# node_prefer_avoid_pods.go).


class EqualPriority(Priority):
    """The same score for every node."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return np.ones(len(nodes), dtype=np.int64)


class NodeAffinityPriority(Priority):
    """The sum of the weights of the preferred terms that match."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        if affinity is None:
            return np.zeros(len(nodes), dtype=np.int64)
        terms = affinity.preferred_during_scheduling_ignored_during_execution
        return preferred_weights(compile_preferred_terms(terms), nodes)

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return default_normalize(scores, most=MAX_PRIORITY)


class EarlyNodeAffinityPriority(NodeAffinityPriority):
    """NodeAffinityPriority, rounded as in 1.5."""

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        highest = int(scores.max(initial=0))
        return (10 * (scores / float(highest))).astype(np.int64) if highest > 0 else np.zeros_like(scores)


class TaintTolerationPriority(Priority):
    """A higher score for fewer PreferNoSchedule taints that the pod does not tolerate."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        tolerations = [it for it in pod.spec.tolerations if it.effect in ("", PREFER_NO_SCHEDULE)]

        def intolerable(taints: Sequence[Taint]) -> int:
            soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not any(self.tolerates(toleration, taint) for toleration in tolerations) for taint in soft)

        return nodes.taints.map(intolerable)

    def tolerates(self, toleration: Toleration, taint: Taint) -> bool:
        return tolerates(toleration, taint, comparison=False)

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return default_normalize(scores, reverse=True, most=MAX_PRIORITY)


class EarlyTaintTolerationPriority(TaintTolerationPriority):
    """TaintTolerationPriority of 1.5: tolerations must name the key, and scores are rounded as in that version."""

    def tolerates(self, toleration: Toleration, taint: Taint) -> bool:
        return tolerates_by_key(toleration, taint)

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        highest = int(scores.max(initial=0))
        if highest == 0:
            return np.full_like(scores, MAX_PRIORITY)
        return ((1.0 - scores / float(highest)) * 10).astype(np.int64)


class LabelPreference(Struct, frozen=True, kw_only=True):
    """A label that nodes should have, or should not."""

    label: str = ""
    presence: bool = False


class NodeLabelPriority(Priority):
    """The highest score or 0, depending on a label; its argument is a `LabelPreference`."""

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, LabelPreference)
        self._wanted = argument

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        wanted = nodes.label(self._wanted.label).where(lambda value: (value is not None) == self._wanted.presence)
        return MAX_PRIORITY * wanted.astype(np.int64)


# --- pods that a node prefers to avoid


class NodePreferAvoidPodsPriority(Priority):
    """0 for a node whose annotation names the pod's ReplicationController or ReplicaSet."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        scores = np.full(len(nodes), MAX_PRIORITY, dtype=np.int64)
        controller = pod.metadata.controller
        if controller is None or controller.kind not in ("ReplicationController", "ReplicaSet"):
            return scores
        mine = (controller.kind, controller.uid)
        for row in nodes.each():
            annotation = nodes.node(row).metadata.annotations.get(AVOID_PODS, "")
            if annotation and mine in _avoided_controllers(annotation):
                scores[row] = 0
        return scores


def _avoided_controllers(annotation: str) -> tuple[tuple[str, str], ...]:
    """Return the kind and UID of each controller that an annotation names; empty if it is invalid."""
    try:
        pods = msgspec.json.decode(annotation, type=AvoidPods).prefer_avoid_pods
    except (msgspec.DecodeError, UnicodeError):
        return ()
    return tuple((pod.pod_signature.pod_controller.kind, pod.pod_signature.pod_controller.uid) for pod in pods)


# Priorities by how full a node would be (least_requested.go, most_requested.go, balanced_resource_allocation.go,
# requested_to_capacity_ratio.go, resource_limits.go).


_Use = tuple[IntArray, IntArray]
"""(node,) what is requested of a resource with the pod on the node, and what is allocatable."""


class _Allocation(Priority):
    """CPU and memory requests with the pod on the node, against the node's allocatable."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        request = scored_request(pod.spec)
        cpu, memory = (
            (nodes.nonzero_requested[:, column] + request[name], amounts(nodes, nodes.allocatable, name))
            for column, name in enumerate((CPU, MEMORY))
        )
        return self.score(cpu, memory)

    def score(self, cpu: _Use, memory: _Use) -> IntArray:
        """Return (node,) scores."""
        raise NotImplementedError


class _MeanAllocation(_Allocation):
    """The mean of the scores for CPU and memory."""

    def score(self, cpu: _Use, memory: _Use) -> IntArray:
        return (self.score_resource(*cpu) + self.score_resource(*memory)) // 2

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        """Return (node,) scores for one resource."""
        raise NotImplementedError


class LeastRequestedPriority(_MeanAllocation):
    """The mean share of CPU and memory that stays free."""

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        return _share(capacity - requested, requested, capacity)


class MostRequestedPriority(_MeanAllocation):
    """The mean share of CPU and memory that is requested."""

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        return _share(requested, requested, capacity)


def _share(part: IntArray, requested: IntArray, capacity: IntArray) -> IntArray:
    """Return tenths of the capacity; 0 if the capacity is zero or exceeded."""
    tenths = truncating_divide(part * MAX_PRIORITY, np.maximum(capacity, 1))
    return np.where((capacity == 0) | (requested > capacity), 0, tenths)


def _fraction(requested: IntArray, capacity: IntArray) -> FloatArray:
    return np.where(capacity == 0, 1.0, requested / np.where(capacity == 0, 1, capacity))


class BalancedResourceAllocation(_Allocation):
    """The similarity of the requested shares of CPU and memory; 0 if either is used up."""

    def score(self, cpu: _Use, memory: _Use) -> IntArray:
        cpu_share, memory_share = _fraction(*cpu), _fraction(*memory)
        scores = self.score_difference(np.abs(cpu_share - memory_share)).astype(np.int64)
        return np.where((cpu_share >= 1) | (memory_share >= 1), 0, scores)

    def score_difference(self, difference: FloatArray) -> FloatArray:
        return (1 - difference) * float(MAX_PRIORITY)


class EarlyBalancedResourceAllocation(BalancedResourceAllocation):
    """BalancedResourceAllocation, rounded as in 1.5."""

    def score_difference(self, difference: FloatArray) -> FloatArray:
        return 10 - difference * 10


class _PolicyShapePoint(Struct, frozen=True, kw_only=True):
    utilization: int = 0
    score: int = 0


class Shape(Struct, frozen=True, kw_only=True):
    """Scores by the percentage that is requested, with straight lines in between."""

    shape: tuple[_PolicyShapePoint, ...] = ()


_DEFAULT_SHAPE = Shape(shape=(_PolicyShapePoint(utilization=0, score=10), _PolicyShapePoint(utilization=100, score=0)))


class RequestedToCapacityRatio(_MeanAllocation):
    """The mean of the scores that a shape gives to the requested shares; its argument is a `Shape`."""

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        points = argument.shape if isinstance(argument, Shape) else _DEFAULT_SHAPE.shape
        self._on_shape = np.array([_shape_score(points, percent) for percent in range(101)], dtype=np.int64)

    def score_resource(self, requested: IntArray, capacity: IntArray) -> IntArray:
        free = truncating_divide((capacity - requested) * 100, np.maximum(capacity, 1))
        full = (capacity == 0) | (requested > capacity)
        scores: IntArray = self._on_shape[np.where(full, 100, 100 - free).clip(0, 100)]
        return scores


def _shape_score(points: Sequence[_PolicyShapePoint], percent: int) -> int:
    for before, point in zip((None, *points), points, strict=False):
        if percent <= point.utilization:
            if before is None:
                return point.score
            rise, run = point.score - before.score, point.utilization - before.utilization
            return before.score + truncated_quotient(rise * (percent - before.utilization), run)
    return points[-1].score


class ResourceLimitsPriority(Priority):
    """1 for a node whose allocatable covers the pod's limit of CPU or memory (gate ResourceLimitsPriorityFunction)."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        limits = incoming_limits(pod.spec)
        holds = np.zeros(len(nodes), dtype=np.bool_)
        for name in (CPU, MEMORY):
            allocatable = amounts(nodes, nodes.allocatable, name)
            if limit := limits.get(name, 0):
                holds |= (allocatable != 0) & (limit <= allocatable)
        return holds.astype(np.int64)


# Priorities that spread the pods of a service or controller (selector_spreading.go of both versions).

_NO_ZONE = -1


class SelectorSpreadPriority(Priority):
    """A higher score for fewer pods of the same service or controller on the node and in its zone. The zone counts
    twice."""

    counts_controllers: ClassVar[bool] = True
    counts_stateful_sets: ClassVar[bool] = True

    def selectors(self, pod: Pod) -> Sequence[Selector]:
        """Return the selectors of the pod's services and controllers."""
        snapshot = self.context.snapshot
        services = [selector_from_set(service.spec.selector) for service in snapshot.services_of(pod)]
        if not self.counts_controllers:
            return services
        return (*services, *_controller_selectors(pod, snapshot, stateful_sets=self.counts_stateful_sets))

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return _count(pod, nodes, self.selectors(pod))

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        result = share_left(scores, int(scores.max(initial=0)), MAX_PRIORITY)
        zone, counts = _zone_sums(scores, nodes)
        in_zone = zone != _NO_ZONE
        if in_zone.any():
            of_zone = share_left(counts[zone], int(counts.max()), MAX_PRIORITY)
            weighted = (result * (1.0 - ZONE_WEIGHTING)) + (ZONE_WEIGHTING * of_zone)
            result = np.where(in_zone, weighted, result)
        return result.astype(np.int64)


def _controller_selectors(pod: Pod, snapshot: Snapshot, *, stateful_sets: bool) -> Iterator[Selector]:
    """Yield the selectors of the ReplicationControllers, ReplicaSets, and with `stateful_sets` StatefulSets of the
    pod."""
    labels, namespace = pod.metadata.labels, pod.metadata.namespace
    if not labels:
        return
    for controller in snapshot.replication_controllers:
        if controller.metadata.namespace == namespace and controller.spec.selector:
            selector = selector_from_set(controller.spec.selector)
            if selector.matches(labels):
                yield selector
    workloads: list[ReplicaSet | StatefulSet] = [*snapshot.replica_sets]
    if stateful_sets:
        workloads += snapshot.stateful_sets
    for workload in workloads:
        compiled = _compile(workload.spec.selector)
        if workload.metadata.namespace == namespace and compiled is not None and compiled.matches(labels):
            yield compiled


def _compile(selector: LabelSelector | None) -> Selector | None:
    """Return None for a selector that selects nothing: absent, empty, or invalid."""
    try:
        compiled = compile_selector(selector)
    except InputError:
        return None
    return compiled if compiled.requirements else None


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """SelectorSpreadPriority for services alone."""

    counts_controllers = False


class EarlySelectorSpreadPriority(SelectorSpreadPriority):
    """SelectorSpreadPriority of 1.5: in single precision, in one step, and without StatefulSets.

    If no zone has such a pod, upstream divides zero by zero, and the score becomes the smallest integer.
    """

    counts_stateful_sets = False

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        selectors, ten = self.selectors(pod), np.float32(MAX_PRIORITY)
        result = np.full(len(nodes), ten, dtype=np.float32)
        if selectors:
            counts = _count(pod, nodes, selectors)
            most = np.float32(counts.max(initial=0))
            if most > 0:
                result = ten * ((most - counts.astype(np.float32)) / most)
            zone, in_zones = _zone_sums(counts, nodes)
            in_zone = zone != _NO_ZONE
            if in_zone.any():
                busiest = np.float32(in_zones.max())
                with np.errstate(invalid="ignore"):
                    of_zone = ten * ((busiest - in_zones[zone].astype(np.float32)) / busiest)
                    weighted = result * np.float32(1.0 - ZONE_WEIGHTING) + np.float32(ZONE_WEIGHTING) * of_zone
                result = np.where(in_zone, weighted, result)
        smallest = np.iinfo(np.int64).min
        return np.where(np.isnan(result), smallest, np.nan_to_num(result).astype(np.int64))

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return scores


class EarlyServiceSpreadingPriority(EarlySelectorSpreadPriority):
    """SelectorSpreadPriority of 1.5 for services alone."""

    counts_controllers = False


def _count(pod: Pod, nodes: NodeTable, selectors: Sequence[Selector]) -> IntArray:
    """Return (node,) the number of the namespace's pods that any selector matches, without terminating pods."""
    if not selectors:
        return np.zeros(len(nodes), dtype=np.int64)
    pods = nodes.pods
    peers = pods.in_namespace(pod.metadata.namespace) & ~pods.terminating
    peers &= pods.labels.where(lambda labels: any(selector.matches(labels) for selector in selectors))
    return nodes.count_where(peers)


def _zone_sums(counts: IntArray, nodes: NodeTable) -> tuple[IntArray, IntArray]:
    """Return (node,) the node's zone as a number, and (zone,) the sum of the counts in it."""
    names: dict[tuple[str, str], int] = {}
    zone = np.full(len(nodes), _NO_ZONE, dtype=np.int64)
    for row in nodes.each():
        labels = nodes.node(row).metadata.labels
        key = labels.get(BETA_REGION, ""), labels.get(BETA_ZONE, "")
        if any(key):
            zone[row] = names.setdefault(key, len(names))
    sums = np.zeros(len(names), dtype=np.int64)
    np.add.at(sums, zone[zone != _NO_ZONE], counts[zone != _NO_ZONE])
    return zone, sums


# --- by a label that the Policy chooses


class ServiceAntiAffinityArgument(Struct, frozen=True, kw_only=True):
    """The node label over whose values the pods of a service are to be spread."""

    label: str = ""


class ServiceAntiAffinity(Priority):
    """Spreading of the pods of the first service that selects the pod; its argument is a `ServiceAntiAffinityArgument`.

    Which service is first is arbitrary in kube-scheduler; here it is the first in load order.
    """

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, ServiceAntiAffinityArgument)
        self._label = argument.label

    def first_service(self, pod: Pod) -> Sequence[Selector]:
        services = self.context.snapshot.services_of(pod)
        return tuple(selector_from_set(service.spec.selector) for service in services[:1])

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return _count(pod, nodes, self.first_service(pod))

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return self.shares(nodes, scores, int(scores.sum()), np.float64)

    def shares(self, nodes: NodeTable, counts: IntArray, total: int, precision: type[np.floating]) -> IntArray:
        """Return (node,) scores, higher for fewer pods on nodes with the same label value; 0 without the label."""
        column = nodes.label(self._label)
        labelled = column.present
        per_value = np.zeros(len(column.values), dtype=np.int64)
        np.add.at(per_value, column.codes, counts)
        ten = precision(MAX_PRIORITY)
        shares = np.full(len(nodes), ten, dtype=precision)
        if total > 0:
            shares = ten * ((total - per_value[column.codes]).astype(precision) / precision(total))
        return np.where(labelled, shares, 0).astype(np.int64)


class EarlyServiceAntiAffinity(ServiceAntiAffinity):
    """ServiceAntiAffinity of 1.5: in single precision, over the service's pods on all nodes, with terminating pods."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        selectors = self.first_service(pod)
        if not selectors:
            return self.shares(nodes, np.zeros(len(nodes), dtype=np.int64), 0, np.float32)
        pods = nodes.pods
        peers = pods.in_namespace(pod.metadata.namespace) & (pods.node >= 0)
        peers &= pods.labels.where(lambda labels: selectors[0].matches(labels))
        return self.shares(nodes, nodes.count_where(peers), int(np.count_nonzero(peers)), np.float32)

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return scores
