"""Priorities by what pods and nodes say that they prefer (node_affinity.go, taint_toleration.go, node_label.go,
node_prefer_avoid_pods.go)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from msgspec import Struct, field

from kschedx.api.selectors import compile_preferred_terms
from kschedx.api.tolerations import PREFER_NO_SCHEDULE, tolerates
from kschedx.api.types import AVOID_PODS, Pod, Taint, Toleration
from kschedx.legacy.predicates.base import Context
from kschedx.legacy.predicates.taints import tolerates_by_key
from kschedx.legacy.priorities.base import MAX_PRIORITY, Priority, scaled
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.selection import preferred_weights


class EqualPriority(Priority):
    """The same for every node."""

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
        return scaled(scores)


class EarlyNodeAffinityPriority(NodeAffinityPriority):
    """The same, rounded as in 1.5."""

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        highest = int(scores.max(initial=0))
        return (10 * (scores / float(highest))).astype(np.int64) if highest > 0 else np.zeros_like(scores)


class TaintTolerationPriority(Priority):
    """The fewer PreferNoSchedule taints the pod does not tolerate, the better."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        tolerations = [one for one in pod.spec.tolerations if one.effect in ("", PREFER_NO_SCHEDULE)]

        def intolerable(taints: Sequence[Taint]) -> int:
            soft = (taint for taint in taints if taint.effect == PREFER_NO_SCHEDULE)
            return sum(not any(self.tolerates(one, taint) for one in tolerations) for taint in soft)

        return nodes.taints.map(intolerable)

    def tolerates(self, toleration: Toleration, taint: Taint) -> bool:
        return tolerates(toleration, taint, comparison=False)

    def reduce(self, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return scaled(scores, reverse=True)


class EarlyTaintTolerationPriority(TaintTolerationPriority):
    """With the tolerations of 1.5, which must name the key, and rounded as there."""

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
    """All or nothing by a label; its argument is a `LabelPreference`."""

    def __init__(self, context: Context, argument: object = None) -> None:
        super().__init__(context, argument)
        assert isinstance(argument, LabelPreference)
        self._wanted = argument

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        wanted = nodes.label(self._wanted.label).where(lambda value: (value is not None) == self._wanted.presence)
        return MAX_PRIORITY * wanted.astype(np.int64)


# --- pods that a node would rather not have


class _Controller(Struct, frozen=True, kw_only=True):
    kind: str = ""
    uid: str = ""


class _Signature(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_controller: _Controller = _Controller()


class _Avoided(Struct, frozen=True, kw_only=True, rename="camel"):
    pod_signature: _Signature = _Signature()


class _AvoidPods(Struct, frozen=True, kw_only=True, rename="camel"):
    prefer_avoid_pods: tuple[_Avoided, ...] = field(default=())


class NodePreferAvoidPodsPriority(Priority):
    """Nothing for a node whose annotation names the pod's ReplicationController or ReplicaSet."""

    def map(self, pod: Pod, nodes: NodeTable) -> IntArray:
        scores = np.full(len(nodes), MAX_PRIORITY, dtype=np.int64)
        controller = pod.metadata.controller
        if controller is None or controller.kind not in ("ReplicationController", "ReplicaSet"):
            return scores
        mine = _Controller(kind=controller.kind, uid=controller.uid)
        for row in nodes.each():
            annotation = nodes.node(row).metadata.annotations.get(AVOID_PODS, "")
            if annotation and mine in _avoided(annotation):
                scores[row] = 0
        return scores


def _avoided(annotation: str) -> tuple[_Controller, ...]:
    """None where the annotation cannot be read."""
    try:
        found = msgspec.json.decode(annotation, type=_AvoidPods)
    except (msgspec.DecodeError, UnicodeError):
        return ()
    return tuple(one.pod_signature.pod_controller for one in found.prefer_avoid_pods)
