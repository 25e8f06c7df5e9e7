"""Predicates about a node: whether it fits the pod, and if not, why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.findings import Finding, InsufficientResource, PluginMessage, TooManyPods
from kschedx.findings import NodeUnschedulable as CordonedNode
from kschedx.framework.interface import CycleState
from kschedx.framework.status import Code, Verdicts
from kschedx.kube.conditions import condition_of
from kschedx.kube.names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended_resource
from kschedx.kube.resources import QOS, qos_of
from kschedx.kube.selectors import CompiledNodeSelector, RequiredNodeAffinity, compile_node_selector, selector_from_set
from kschedx.kube.tolerations import PREFER_NO_SCHEDULE
from kschedx.kube.types import Node, Pod, Taint, Toleration
from kschedx.legacy.api_schema import incoming_request
from kschedx.legacy.interface import PluginPredicate, Predicate, PredicateContext, join_verdicts
from kschedx.plugins.node_affinity import mismatch
from kschedx.plugins.node_name import NodeName
from kschedx.plugins.node_ports import NodePorts
from kschedx.plugins.node_unschedulable import NodeUnschedulable
from kschedx.plugins.resource_allocation import amounts
from kschedx.plugins.taint_toleration import TaintToleration, untolerated_taint
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.nodes import NodeTable, PodRows, where_required


class HostName(PluginPredicate):
    """The node in spec.nodeName, if an unbound pod has one."""

    plugin_class = NodeName
    text = "host_name"


class CheckNodeUnschedulable(PluginPredicate):
    """Rejection of cordoned nodes, unless the pod tolerates the taint that cordoning sets."""

    plugin_class = NodeUnschedulable
    text = "unschedulable"


class MatchNodeSelector(Predicate):
    """nodeSelector and required node affinity."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        rules = self._rules(pod)
        return Verdicts.first_of(
            (~where_required(rules, nodes), self.context.era.unresolvable, self.context.era.texts.node_selector),
            explain=lambda row: (mismatch(rules, nodes.node(row)),),
        )

    def _rules(self, pod: Pod) -> RequiredNodeAffinity:
        required = pod.spec.required_node_affinity
        return RequiredNodeAffinity(
            label_selector=selector_from_set(pod.spec.node_selector) if pod.spec.node_selector else None,
            node_selector=None if required is None else self.readable(compile_node_selector(required)),
        )

    def readable(self, selector: CompiledNodeSelector) -> CompiledNodeSelector:
        """Return the terms that count; an invalid term matches nothing."""
        return selector


class MatchNodeSelectorUpToError(MatchNodeSelector):
    """MatchNodeSelector of 1.5, in which an invalid term also hides the terms after it."""

    def readable(self, selector: CompiledNodeSelector) -> CompiledNodeSelector:
        wrong = [number for number, term in enumerate(selector.terms) if term.errors]
        return replace(selector, terms=selector.terms[: wrong[0]]) if wrong else selector


class LabelsPresence(Struct, frozen=True, kw_only=True):
    """Labels that every node must have, or that none may have, whatever their values."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class CheckNodeLabelPresence(Predicate):
    """Labels that a Policy requires or forbids; its argument is a `LabelsPresence`."""

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, LabelsPresence)
        self._wanted = argument

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        rejected = np.zeros(len(nodes), dtype=np.bool_)
        for key in self._wanted.labels:
            rejected |= nodes.label(key).where(lambda value: (value is None) == self._wanted.presence)

        def explain(row: TableRow) -> tuple[PluginMessage, ...]:
            has = nodes.node(row).metadata.labels
            wrong = [key for key in self._wanted.labels if (key in has) != self._wanted.presence]
            verb = "lacks" if self._wanted.presence else "has"
            return (PluginMessage(text=f"the node {verb} {', '.join(wrong)}"),)

        return Verdicts.first_of(
            (rejected, self.context.era.unresolvable, self.context.era.texts.node_label), explain=explain
        )


# --- reported conditions


class _Pressure(Predicate):
    """A condition that keeps pods off the node while it is True."""

    condition: str
    text: str

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        under = np.array(
            [self.concerns(pod) and self._is_true(nodes.node(row)) for row in nodes.each()], dtype=np.bool_
        )
        reason: str = getattr(self.context.era.texts, self.text)
        return Verdicts.first_of(
            (under, self.context.era.unresolvable, reason),
            explain=lambda row: (PluginMessage(text=f"the node reports {self.condition}"),),
        )

    def concerns(self, pod: Pod) -> bool:
        return True

    def _is_true(self, node: Node) -> bool:
        return condition_of(node.status.conditions, self.condition, "True") is not None


class CheckNodeMemoryPressure(_Pressure):
    """MemoryPressure, which rejects only BestEffort pods."""

    condition = "MemoryPressure"
    text = "memory_pressure"

    def concerns(self, pod: Pod) -> bool:
        return qos_of(container.resources for container in pod.spec.containers) is QOS.BEST_EFFORT


class CheckNodeDiskPressure(_Pressure):
    condition = "DiskPressure"
    text = "disk_pressure"


class CheckNodePIDPressure(_Pressure):
    condition = "PIDPressure"
    text = "pid_pressure"


_USABLE = {"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}
"""Condition to the status that it must have if a node reports it."""


def unusable(node: Node) -> Iterator[str]:
    """Yield the conditions that make a node unusable."""
    for condition in node.status.conditions:
        if _USABLE.get(condition.type, condition.status) != condition.status:
            yield condition.type


class CheckNodeCondition(Predicate):
    """Rejection of nodes that are cordoned, not ready, out of disk, or without a network."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        texts, code = self.context.era.texts, self.context.era.unresolvable
        reported = [tuple(unusable(nodes.node(row))) for row in nodes.each()]

        def about(condition: str, reason: str) -> Verdicts:
            mask = np.array([condition in conditions for conditions in reported], dtype=np.bool_)
            account = PluginMessage(text=f"the node's condition {condition} is not {_USABLE[condition]}")
            return Verdicts.first_of((mask, code, reason), explain=lambda row: (account,))

        return join_verdicts(
            [
                about("Ready", texts.not_ready),
                about("OutOfDisk", texts.out_of_disk),
                about("NetworkUnavailable", texts.network_unavailable),
                Verdicts.first_of(
                    (nodes.unschedulable, Code(code), texts.unschedulable), explain=lambda row: (CordonedNode(),)
                ),
            ]
        )


# PodToleratesNodeTaints, in 1.13 and before (predicates.go of both, pkg/api/helpers.go of 1.5).


class PodToleratesNodeTaints(PluginPredicate):
    plugin_class = TaintToleration
    text = "taints"


class PodToleratesNodeTaintsByKey(Predicate):
    """PodToleratesNodeTaints of 1.5: a toleration must name the key. Any taint, even PreferNoSchedule, rejects a pod
    without tolerations."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        tolerations = pod.spec.tolerations

        def explain(row: TableRow) -> tuple[Finding, ...]:
            taint = _first(nodes.taints[row], tolerations)
            return () if taint is None else (untolerated_taint(taint, tolerations),)

        return Verdicts.first_of(
            (
                nodes.taints.where(lambda taints: _first(taints, tolerations) is not None),
                self.context.era.unresolvable,
                self.context.era.texts.taints,
            ),
            explain=explain,
        )


def tolerates_by_key(toleration: Toleration, taint: Taint) -> bool:
    if (toleration.effect and toleration.effect != taint.effect) or toleration.key != taint.key:
        return False
    return toleration.operator == "Exists" or (toleration.operator in ("", "Equal") and toleration.value == taint.value)


def _first(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    if tolerations:
        taints = (taint for taint in taints if taint.effect != PREFER_NO_SCHEDULE)
    return next((taint for taint in taints if not any(tolerates_by_key(each, taint) for each in tolerations)), None)


# PodFitsResources (pkg/scheduler/algorithm/predicates/predicates.go).

_REASON_PODS = "Insufficient pods"
_NATIVE = (CPU, MEMORY, EPHEMERAL_STORAGE)


class PodFitsResources(Predicate):
    """The pod's requests against the node's free resources.

    If a pod requests anything, its CPU, memory, and ephemeral storage are checked even if it requests none of them. A
    node that is already overcommitted rejects it.
    """

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        crowded = nodes.pod_count + 1 > nodes.allowed_pods

        def too_many(row: TableRow) -> tuple[Finding, ...]:
            return (TooManyPods(pods=int(nodes.pod_count[row]), allowed=int(nodes.allowed_pods[row])),)

        parts = [Verdicts.first_of((crowded, Code.UNSCHEDULABLE, _REASON_PODS), explain=too_many)]
        checked = self._checked_resources(incoming_request(pod.spec))
        return join_verdicts([*parts, *(_room(nodes, resource, request) for resource, request in checked)])

    def _checked_resources(self, request: Mapping[str, int]) -> Iterator[tuple[str, int]]:
        scalars = request.keys() - set(_NATIVE)
        if not scalars and not any(request.values()):
            return
        for resource in _NATIVE:
            yield resource, request.get(resource, 0)
        for resource in sorted(scalars):
            if not (is_extended_resource(resource) and resource in self.context.ignored_resources):
                yield resource, request[resource]


def _room(nodes: NodeTable, resource: str, request: int) -> Verdicts:
    used, allocatable = amounts(nodes, nodes.requested, resource), amounts(nodes, nodes.allocatable, resource)

    def shortage(row: TableRow) -> tuple[Finding, ...]:
        unit = "m" if resource == CPU else ""
        return (
            InsufficientResource(
                resource=resource, requested=request, used=int(used[row]), allocatable=int(allocatable[row]), unit=unit
            ),
        )

    short = allocatable < request + used
    return Verdicts.first_of((short, Code.UNSCHEDULABLE, f"Insufficient {resource}"), explain=shortage)


class PodFitsHostPorts(PluginPredicate):
    plugin_class = NodePorts
    text = "host_ports"
    resolvable = True


class GeneralPredicates(Predicate):
    """The predicates that every component of Kubernetes that places pods checks, with all reasons."""

    parts: ClassVar[tuple[type[Predicate], ...]] = (PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector)

    def __init__(self, context: PredicateContext, argument: object = None) -> None:
        super().__init__(context, argument)
        self._parts = tuple(part(context) for part in self.parts)

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        for part in self._parts:
            part.prepare(state, pod, nodes)

    def add_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        for part in self._parts:
            part.add_pods(state, pod, nodes, change)

    def remove_pods(self, state: CycleState, pod: Pod, nodes: NodeTable, change: PodRows) -> None:
        for part in self._parts:
            part.remove_pods(state, pod, nodes, change)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        return join_verdicts([part.check(state, pod, nodes) for part in self._parts])


class GeneralPredicatesUpToError(GeneralPredicates):
    parts = (PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelectorUpToError)
