"""PodToleratesNodeTaints, in 1.13 and before (predicates.go of both, pkg/api/helpers.go of 1.5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kschedx.api.tolerations import PREFER_NO_SCHEDULE
from kschedx.api.types import Pod, Taint, Toleration
from kschedx.findings import Finding
from kschedx.framework.state import CycleState
from kschedx.framework.status import Verdicts
from kschedx.legacy.predicates.base import PluginPredicate, Predicate
from kschedx.plugins.taint_toleration import TaintToleration, untolerated_taint
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import TableRow


class PodToleratesNodeTaints(PluginPredicate):
    plugin_class = TaintToleration
    text = "taints"


class PodToleratesNodeTaintsByKey(Predicate):
    """Tolerations that must name the key. Who has none at all is kept away by any taint, be it PreferNoSchedule."""

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
    """The first taint that keeps the pod away."""
    for taint in taints:
        if not tolerations:
            return taint
        if taint.effect != PREFER_NO_SCHEDULE and not any(tolerates_by_key(one, taint) for one in tolerations):
            return taint
    return None
