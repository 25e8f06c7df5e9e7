"""CheckServiceAffinity (pkg/scheduler/algorithm/predicates/predicates.go)."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import selector_from_set
from kschedx.api.types import Labels, Pod
from kschedx.findings import PluginMessage
from kschedx.framework.state import CycleState, StateKey
from kschedx.framework.status import Code, Verdicts
from kschedx.legacy.predicates.base import Context, Predicate
from kschedx.legacy.services import services_of
from kschedx.snapshot.columns import BoolArray, IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow


class ServiceAffinityArgument(Struct, frozen=True, kw_only=True):
    """Node labels whose values all pods of a service are to share."""

    labels: tuple[str, ...] = ()


class CheckServiceAffinity(Predicate):
    """Pods of a service stay where its first pod is, as far as some labels of nodes go; its argument is a
    `ServiceAffinityArgument`.

    What the pod's own nodeSelector says of these labels comes first; the rest is read off the node of the first pod
    with all labels of this one. Which pod is first is a matter of chance in kube-scheduler; here it is load order.
    """

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, ServiceAffinityArgument)
        self._labels = argument.labels
        self._peers: StateKey[IntArray | None] = StateKey(type(self).__name__)
        """Rows of the pods with all labels of this one; None where no service selects it."""

    def prepare(self, state: CycleState, pod: Pod, nodes: NodeTable) -> None:
        if not services_of(pod, self.context.snapshot):
            state[self._peers] = None
            return
        mine = selector_from_set(pod.metadata.labels)
        pods = nodes.pods
        peers: BoolArray = (pods.node >= 0) & pods.namespaces.where(lambda name: name == pod.metadata.namespace)
        peers &= pods.labels.where(mine.matches)
        state[self._peers] = np.flatnonzero(peers)

    def check(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        given = {key: pod.spec.node_selector[key] for key in self._labels if key in pod.spec.node_selector}
        peers = state[self._peers]
        wanted = [given] * len(nodes)
        if peers is not None and len(given) < len(self._labels):
            gone = nodes.gone
            if gone is None or not gone[peers].any():
                wanted = [self._completed(given, peers[:1], nodes)] * len(nodes)
            else:
                there = nodes.pods.node[peers]
                wanted = [self._completed(given, peers[~gone[peers] | (there != row)][:1], nodes) for row in nodes.rows]
        rejected = np.array(
            [
                not selector_from_set(want).matches(nodes.node(row).metadata.labels)
                for row, want in zip(nodes.each(), wanted, strict=True)
            ],
            dtype=np.bool_,
        )

        def explain(row: TableRow) -> tuple[PluginMessage, ...]:
            told = ", ".join(f"{key}={value}" for key, value in sorted(wanted[row].items()))
            return (PluginMessage(text=f"the service's pods are where {told}"),)

        return Verdicts.first_of(
            (rejected, Code.UNSCHEDULABLE, self.context.era.texts.service_affinity), explain=explain
        )

    def _completed(self, given: Labels, first: IntArray, nodes: NodeTable) -> Labels:
        """With the labels that the first peer's node has."""
        if not len(first):
            return given
        labels = nodes.cluster.nodes[int(nodes.pods.node[int(first[0])])].metadata.labels
        return {key: labels[key] for key in self._labels if key in labels} | given
