"""Host ports, and GeneralPredicates, which stands for four predicates."""

from __future__ import annotations

from typing import ClassVar

from kschedx.api.types import Pod
from kschedx.framework.state import CycleState
from kschedx.framework.status import Verdicts
from kschedx.legacy.predicates.base import Context, PluginPredicate, Predicate, joined
from kschedx.legacy.predicates.nodes import HostName, MatchNodeSelector, MatchNodeSelectorUpToError
from kschedx.legacy.predicates.resources import PodFitsResources
from kschedx.plugins.node_ports import NodePorts
from kschedx.snapshot.nodes import NodeTable, PodRows


class PodFitsHostPorts(PluginPredicate):
    plugin_class = NodePorts
    text = "host_ports"
    resolvable = True


class GeneralPredicates(Predicate):
    """What every component of Kubernetes that places pods checks, with all reasons."""

    parts: ClassVar[tuple[type[Predicate], ...]] = (PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelector)

    def __init__(self, context: Context, argument: object = None) -> None:
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
        return joined([part.check(state, pod, nodes) for part in self._parts])


class GeneralPredicatesUpToError(GeneralPredicates):
    parts = (PodFitsResources, HostName, PodFitsHostPorts, MatchNodeSelectorUpToError)
