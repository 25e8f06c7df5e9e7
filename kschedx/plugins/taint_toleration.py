"""TaintToleration (pkg/scheduler/framework/plugins/tainttoleration)."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import ClassVar

import numpy as np

from kschedx.findings import UntoleratedTaint
from kschedx.findings.constraints import CONDITION_OF_TAINT, CORDON_TAINT
from kschedx.framework.interface import CycleState, FilterPlugin, PreScorePlugin, ScorePlugin, StateKey, Texts, Touch
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.kube.conditions import condition_of
from kschedx.kube.names import NEW_NAMES
from kschedx.kube.scalars import elapsed
from kschedx.kube.tolerations import (
    DO_NOT_SCHEDULE,
    PREFER_NO_SCHEDULE,
    TO_BE_DELETED,
    Tolerations,
    left_over_since,
    toleration_text,
)
from kschedx.kube.types import Node, Pod, Taint, Toleration
from kschedx.plugins.resource_allocation import default_normalize
from kschedx.releases.release import texts_of_all_releases
from kschedx.snapshot.columns import Column, IntArray, TableRow
from kschedx.snapshot.nodes import NodeTable

_TOLERATIONS: StateKey[tuple[Toleration, ...]] = StateKey(
    "PreScoreTaintToleration", 'failed to read "{}" from cycleState: not found'
)


class TaintToleration(FilterPlugin, PreScorePlugin, ScorePlugin):
    """Rejects nodes with untolerated NoSchedule and NoExecute taints. Untolerated PreferNoSchedule taints lower the
    score."""

    name = "TaintToleration"
    touch = Touch.NOTHING
    texts: ClassVar[Texts] = {"untolerated-taint": texts_of_all_releases("untolerated_taint")}
    normalizes_by_extremes = True
    scores_preferences = True

    def reads(self, pod: Pod) -> Hashable:
        return pod.spec.tolerations

    def filter(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Verdicts:
        tolerations = pod.spec.tolerations
        known = Tolerations(tolerations, comparison=self.handle.release.compares_taints)

        def first(taints: Sequence[Taint]) -> Taint | None:
            return known.uncovered_taint(taints, DO_NOT_SCHEDULE)

        def explain(row: TableRow) -> tuple[UntoleratedTaint, ...]:
            taint = first(nodes.taints[row])
            if taint is None:
                return ()
            may_be_left_over = taint.key == TO_BE_DELETED or taint.key in CONDITION_OF_TAINT
            taken = self.handle.snapshot.taken if may_be_left_over else ""
            return (untolerated_taint(taint, tolerations, nodes.node(row), taken),)

        text = self.handle.release.messages.untolerated_taint
        untolerated_ones = [first(taints) for taints in nodes.taints.values]
        codes = [Code.SUCCESS if taint is None else Code.UNSCHEDULABLE_AND_UNRESOLVABLE for taint in untolerated_ones]
        reasons = [() if it is None else (text.format(key=it.key, value=it.value),) for it in untolerated_ones]
        return Verdicts(
            codes=np.array(codes, dtype=np.int64)[nodes.taints.codes],
            reasons=Column(nodes.taints.codes, reasons),
            explain=explain,
        )

    def pre_score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Status:
        state[_TOLERATIONS] = tuple(t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: NodeTable) -> IntArray:
        tolerations = state[_TOLERATIONS]
        known = Tolerations(tolerations, comparison=self.handle.release.compares_taints)

        def intolerable(taints: Sequence[Taint]) -> int:
            return sum(taint.effect == PREFER_NO_SCHEDULE and not known.cover(taint) for taint in taints)

        return nodes.taints.map(intolerable)

    def normalize_score(self, state: CycleState, pod: Pod, nodes: NodeTable, scores: IntArray) -> IntArray:
        return default_normalize(scores, reverse=True)


def untolerated_taint(
    taint: Taint, tolerations: Sequence[Toleration], node: Node | None = None, taken: str = ""
) -> UntoleratedTaint:
    """Return the taint, with the toleration of the same key that differs in the fewest fields. `taken` is the time of
    the cluster."""
    condition = CONDITION_OF_TAINT.get(taint.key)
    conditions = node.status.conditions if node is not None else ()
    said = (it for it in conditions if it.type == condition and (it.status == "True") is (condition != "Ready"))
    nearest: tuple[int, list[str]] | None = None
    for index, toleration in enumerate(tolerations):
        is_former = NEW_NAMES.get(toleration.key) == taint.key
        if toleration.key != taint.key and not is_former:
            continue
        differs = ["key"] if is_former else []
        if toleration.operator not in ("", "Equal", "Exists"):
            differs.append("operator")
        elif toleration.operator != "Exists" and toleration.value != taint.value:
            differs.append("value")
        if toleration.effect and toleration.effect != taint.effect:
            differs.append("effect")
        if nearest is None or len(differs) < len(nearest[1]):
            nearest = (index, differs)
    return UntoleratedTaint(
        key=taint.key,
        value=taint.value,
        effect=taint.effect,
        nearest_toleration=nearest[0] if nearest else None,
        nearest_text=toleration_text(tolerations[nearest[0]]) if nearest else "",
        nearest_differs=tuple(nearest[1]) if nearest else (),
        condition=next((condition.message or condition.reason for condition in said), ""),
        left_over_since=left_over_since(taint, taken),
        contradicted_by="" if node is None else refutation(taint, node, taken),
    )


def refutation(taint: Taint, node: Node, taken: str) -> str:
    """Return `Ready is True` for the taint node.kubernetes.io/not-ready of a node that is ready, from which
    kube-controller-manager has not removed it. Empty if the node does not contradict the taint, or only since a moment
    before `taken`, the time of the cluster."""
    if taint.key == CORDON_TAINT:
        return "" if node.spec.unschedulable else "spec.unschedulable is false"
    name = CONDITION_OF_TAINT.get(taint.key, "")
    condition = condition_of(node.status.conditions, name, "True" if name == "Ready" else "False")
    if condition is None:
        return ""
    age = elapsed(condition.last_transition_time, taken)
    return "" if age is not None and age < _LONGEST_DELAY else f"{name} is {condition.status}"


_LONGEST_DELAY = 60 * 10**9  # nanoseconds. kube-controller-manager looks every 5 seconds (--node-monitor-period)
