"""Priorities that spread the pods of a service or controller (selector_spreading.go of both releases)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import Selector, selector_from_set
from kschedx.api.storage import BETA_REGION, BETA_ZONE
from kschedx.api.types import Pod
from kschedx.legacy.predicates.base import Context
from kschedx.legacy.priorities.base import MAX_PRIORITY, Priority
from kschedx.legacy.services import controller_selectors, service_selectors, services_of
from kschedx.snapshot.columns import BoolArray, FloatArray, IntArray
from kschedx.snapshot.nodes import NodeTable

ZONE_WEIGHTING = 2.0 / 3.0
_NO_ZONE = -1


class SelectorSpreadPriority(Priority):
    """The fewer pods of the same service or controller a node and its zone have, the better. The zone weighs twice."""

    def selectors(self, pod: Pod) -> Sequence[Selector]:
        snapshot = self.context.snapshot
        return (*service_selectors(pod, snapshot), *controller_selectors(pod, snapshot, stateful_sets=True))

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return _count(pod, nodes, self.selectors(pod))

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        most = int(scores.max(initial=0))
        result: FloatArray = np.full(len(nodes), float(MAX_PRIORITY))
        if most > 0:
            result = float(MAX_PRIORITY) * ((most - scores) / float(most))
        zone, counts = _by_zone(scores, nodes)
        in_zone = zone != _NO_ZONE
        if in_zone.any():
            of_zone: FloatArray = np.full(len(nodes), float(MAX_PRIORITY))
            busiest = int(counts.max())
            if busiest > 0:
                of_zone = float(MAX_PRIORITY) * ((busiest - counts[zone]) / float(busiest))
            weighted = (result * (1.0 - ZONE_WEIGHTING)) + (ZONE_WEIGHTING * of_zone)
            result = np.where(in_zone, weighted, result)
        return result.astype(np.int64)


class ServiceSpreadingPriority(SelectorSpreadPriority):
    """The same for services alone."""

    def selectors(self, pod: Pod) -> Sequence[Selector]:
        return tuple(service_selectors(pod, self.context.snapshot))


class EarlySelectorSpreadPriority(SelectorSpreadPriority):
    """As 1.5 has it: in single precision, all at once, and without StatefulSets.

    Where no zone has any such pod, upstream divides zero by zero, and the score becomes the smallest integer.
    """

    def selectors(self, pod: Pod) -> Sequence[Selector]:
        snapshot = self.context.snapshot
        return (*service_selectors(pod, snapshot), *controller_selectors(pod, snapshot, stateful_sets=False))

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        selectors, ten = self.selectors(pod), np.float32(MAX_PRIORITY)
        result = np.full(len(nodes), ten, dtype=np.float32)
        if selectors:
            counts = _count(pod, nodes, selectors)
            most = np.float32(counts.max(initial=0))
            if most > 0:
                result = ten * ((most - counts.astype(np.float32)) / most)
            zone, in_zones = _by_zone(counts, nodes)
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
    """The same for services alone."""

    def selectors(self, pod: Pod) -> Sequence[Selector]:
        return tuple(service_selectors(pod, self.context.snapshot))


def _count(pod: Pod, nodes: NodeTable, selectors: Sequence[Selector]) -> IntArray:
    """(node,) pods of the namespace that any selector picks; those that are being deleted do not count."""
    if not selectors:
        return np.zeros(len(nodes), dtype=np.int64)
    return nodes.count_where(_peers(pod, nodes, selectors))


def _peers(pod: Pod, nodes: NodeTable, selectors: Sequence[Selector]) -> BoolArray:
    pods = nodes.pods
    peers = pods.namespaces.where(lambda name: name == pod.metadata.namespace) & ~pods.terminating
    return peers & pods.labels.where(lambda labels: any(one.matches(labels) for one in selectors))


def _by_zone(counts: IntArray, nodes: NodeTable) -> tuple[IntArray, IntArray]:
    """(node,) the node's zone as a number, and (zone,) the sum of the counts in it."""
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


# --- by a label of the Policy's choice


class ServiceAntiAffinityArgument(Struct, frozen=True, kw_only=True):
    """The node label over whose values the pods of a service are to be spread."""

    label: str = ""


class ServiceAntiAffinity(Priority):
    """Spreads the pods of the first service that selects the pod; its argument is a `ServiceAntiAffinityArgument`.
    Which service is first is a matter of chance in kube-scheduler; here it is load order."""

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, ServiceAntiAffinityArgument)
        self._label = argument.label

    def first_service(self, pod: Pod) -> Sequence[Selector]:
        services = services_of(pod, self.context.snapshot)
        return tuple(selector_from_set(service.spec.selector) for service in services[:1])

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        return _count(pod, nodes, self.first_service(pod))

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return self._shares(nodes, scores, int(scores.sum())).astype(np.int64)

    def _shares(self, nodes: NodeTable, scores: IntArray, total: int) -> FloatArray:
        """(node,) how few of all pods are under the node's value of the label; 0 without it."""
        column = nodes.label(self._label)
        labelled = column.where(lambda value: value is not None)
        per_value = np.zeros(len(column.values), dtype=np.int64)
        np.add.at(per_value, column.codes, scores)
        shares: FloatArray = np.full(len(nodes), float(MAX_PRIORITY))
        if total > 0:
            shares = float(MAX_PRIORITY) * ((total - per_value[column.codes]) / float(total))
        return np.where(labelled, shares, 0.0)


class EarlyServiceAntiAffinity(ServiceAntiAffinity):
    """As 1.5 has it: in single precision, over the service's pods on all nodes, those that are being deleted too."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        selectors = self.first_service(pod)
        if not selectors:
            return self._single_precision(nodes, np.zeros(len(nodes), dtype=np.int64), 0)
        pods = nodes.pods
        peers = pods.namespaces.where(lambda name: name == pod.metadata.namespace) & (pods.node >= 0)
        peers &= pods.labels.where(lambda labels: selectors[0].matches(labels))
        return self._single_precision(nodes, nodes.count_where(peers), int(np.count_nonzero(peers)))

    def _single_precision(self, nodes: NodeTable, scores: IntArray, total: int) -> IntArray:
        column = nodes.label(self._label)
        labelled = column.where(lambda value: value is not None)
        per_value = np.zeros(len(column.values), dtype=np.int64)
        np.add.at(per_value, column.codes, scores)
        ten = np.float32(MAX_PRIORITY)
        shares = np.full(len(nodes), ten, dtype=np.float32)
        if total > 0:
            shares = ten * ((total - per_value[column.codes]).astype(np.float32) / np.float32(total))
        return np.where(labelled, shares, 0).astype(np.int64)

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return scores
