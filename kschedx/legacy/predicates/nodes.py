"""Predicates about a node itself: its name, labels, cordon, and what it reports of its state."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.selectors import CompiledNodeSelector, RequiredNodeAffinity, compile_node_selector, selector_from_set
from kschedx.api.types import Node, Pod
from kschedx.findings import NodeUnschedulable as CordonedNode
from kschedx.findings import PluginMessage
from kschedx.framework.state import CycleState
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Context, PluginPredicate, Predicate, joined
from kschedx.legacy.requests import is_best_effort
from kschedx.plugins.node_affinity import mismatch
from kschedx.plugins.node_name import NodeName
from kschedx.plugins.node_unschedulable import NodeUnschedulable
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow
from kschedx.snapshot.selection import where_required


class HostName(PluginPredicate):
    """spec.nodeName, where a pod that is not bound names one."""

    plugin_class = NodeName
    text = "host_name"


class CheckNodeUnschedulable(PluginPredicate):
    """Cordoned nodes, unless the pod tolerates the taint that cordoning sets."""

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
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
        return RequiredNodeAffinity(
            label_selector=selector_from_set(pod.spec.node_selector) if pod.spec.node_selector else None,
            node_selector=None if required is None else self.readable(compile_node_selector(required)),
        )

    def readable(self, selector: CompiledNodeSelector) -> CompiledNodeSelector:
        """The terms that count: one that is wrong matches nothing."""
        return selector


class MatchNodeSelectorUpToError(MatchNodeSelector):
    """The same, where a term that is wrong also hides those after it."""

    def readable(self, selector: CompiledNodeSelector) -> CompiledNodeSelector:
        wrong = [number for number, term in enumerate(selector.terms) if term.errors]
        return replace(selector, terms=selector.terms[: wrong[0]]) if wrong else selector


class LabelsPresence(Struct, frozen=True, kw_only=True):
    """Labels that every node must have, or that none may have, whatever their values."""

    labels: tuple[str, ...] = ()
    presence: bool = False


class CheckNodeLabelPresence(Predicate):
    """Labels that a Policy asks for or forbids; its argument is a `LabelsPresence`."""

    def __init__(self, context: Context, argument: object = None) -> None:
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


# --- what a node reports


class _Pressure(Predicate):
    """A condition that keeps pods away while it is True."""

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
        return any(one.type == self.condition and one.status == "True" for one in node.status.conditions)


class CheckNodeMemoryPressure(_Pressure):
    """Keeps away pods that name neither requests nor limits."""

    condition = "MemoryPressure"
    text = "memory_pressure"

    def concerns(self, pod: Pod) -> bool:
        return is_best_effort(pod.spec)


class CheckNodeDiskPressure(_Pressure):
    condition = "DiskPressure"
    text = "disk_pressure"


class CheckNodePIDPressure(_Pressure):
    condition = "PIDPressure"
    text = "pid_pressure"


USABLE = {"Ready": "True", "OutOfDisk": "False", "NetworkUnavailable": "False"}
"""Condition to the status that it must have where a node reports it."""


def unusable(node: Node) -> Iterator[str]:
    """The conditions that keep a node from being used."""
    for condition in node.status.conditions:
        if USABLE.get(condition.type, condition.status) != condition.status:
            yield condition.type


class CheckNodeCondition(Predicate):
    """Nodes that are cordoned, not ready, out of disk or without a network."""

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        texts, code = self.context.era.texts, self.context.era.unresolvable
        reported = [tuple(unusable(nodes.node(row))) for row in nodes.each()]

        def about(condition: str, reason: str) -> Verdicts:
            mask = np.array([condition in found for found in reported], dtype=np.bool_)
            account = PluginMessage(text=f"the node's condition {condition} is not {USABLE[condition]}")
            return Verdicts.first_of((mask, code, reason), explain=lambda row: (account,))

        return joined(
            [
                about("Ready", texts.not_ready),
                about("OutOfDisk", texts.out_of_disk),
                about("NetworkUnavailable", texts.network_unavailable),
                Verdicts.first_of(
                    (nodes.unschedulable, Code(code), texts.unschedulable), explain=lambda row: (CordonedNode(),)
                ),
            ]
        )
