"""The pods that each node could give up, in the order in which they are asked whether they may stay.

Upstream: SelectVictimsOnNode and filterPodsWithPDBViolation in pkg/scheduler/framework/plugins/defaultpreemption/
default_preemption.go, MoreImportantPod in pkg/scheduler/util/utils.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import Selector, compile_selector
from kschedx.api.types import PodDisruptionBudget
from kschedx.errors import InputError
from kschedx.snapshot.columns import BoolArray, IntArray, rows_by_group
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable


class PotentialVictims(Struct, frozen=True, kw_only=True):
    """Every pod of lower priority on some nodes, node by node: those of `index` i are `start[i]` to `start[i + 1]`.

    On a node, the pods whose eviction a disruption budget forbids come first, then the others, each with the most
    important first.
    """

    pods: IntArray
    """(victim,) rows of the PodTable."""
    index: IntArray
    """(victim,) the node, as a row of the table."""
    violating: BoolArray
    """(victim,) whether evicting it, and everything more important on its node, exceeds a disruption budget."""
    start: IntArray
    """(node + 1,)"""

    @property
    def count(self) -> IntArray:
        """(node,) how many pods a node could give up."""
        return np.diff(self.start)

    def at(self, nodes: IntArray, turn: int) -> IntArray:
        """(node,) positions of the pods that these nodes, rows of the table, are asked about in a turn."""
        return self.start[nodes] + turn

    def placed(self, positions: IntArray, nodes: NodeTable) -> PodRows:
        """These potential victims on their nodes. `nodes` is the table that `index` counts in."""
        return PodRows(pods=self.pods[positions], nodes=nodes.rows[self.index[positions]])


def potential_victims(nodes: NodeTable, priority: int, budgets: Sequence[PodDisruptionBudget]) -> PotentialVictims:
    """The pods that run on `nodes` and have a lower priority."""
    pods = nodes.pods
    table_row = np.full(len(nodes.cluster.nodes), -1, dtype=np.int64)
    table_row[nodes.rows] = np.arange(len(nodes))
    lower = np.flatnonzero((pods.node >= 0) & (pods.priorities < priority))
    lower = lower[table_row[pods.node[lower]] >= 0]
    index = table_row[pods.node[lower]]
    # higher priority first, then earlier start; load order where kube-scheduler's is that of its cache
    order = np.lexsort((pods.started[lower], -pods.priorities[lower], index))
    lower, index = lower[order], index[order]
    violating = _violating(pods, lower, index, budgets)
    order = np.lexsort((~violating, index))
    return PotentialVictims(
        pods=lower[order],
        index=index,
        violating=violating[order],
        start=np.searchsorted(index, np.arange(len(nodes) + 1)).astype(np.int64),
    )


def by_importance(pods: PodTable, victims: Sequence[int]) -> list[int]:
    """Higher priority first, then earlier start."""
    return sorted(victims, key=lambda row: (-int(pods.priorities[row]), int(pods.started[row])))


def _violating(pods: PodTable, rows: IntArray, index: IntArray, budgets: Sequence[PodDisruptionBudget]) -> BoolArray:
    """(victim,) whether a budget is exhausted when its pods on one node are evicted in this order.

    Every node counts for itself, since the pod needs only one. `index`, the node, is ascending.
    """
    violating = np.zeros(len(rows), dtype=np.bool_)
    labels, namespaces = pods.labels.take(rows), pods.namespaces.take(rows)
    code_of = {name: code for code, name in enumerate(namespaces.values)}
    order, start = rows_by_group(namespaces.codes, len(code_of))
    for budget in budgets:
        selector = _selector(budget)
        namespace = code_of.get(budget.metadata.namespace)
        if selector is None or namespace is None:
            continue
        inside = order[start[namespace] : start[namespace + 1]]
        matching = inside[labels.take(inside).where(partial(_selects, selector))]
        disrupted = budget.status.disrupted_pods
        if disrupted:
            # the API server has counted these already
            fresh = [pods.names[rows[victim]] not in disrupted for victim in matching]
            matching = matching[np.array(fresh, dtype=np.bool_)]
        nodes = index[matching]
        nth = np.arange(1, len(nodes) + 1) - np.searchsorted(nodes, nodes)
        violating[matching[nth > budget.status.disruptions_allowed]] = True
    return violating


def _selects(selector: Selector, labels: dict[str, str]) -> bool:
    """A pod without labels belongs to no budget, whatever the selector."""
    return bool(labels) and selector.matches(labels)


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """None for a budget that no pod belongs to: without a selector, with an empty one or with a broken one."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InputError:
        return None
    return selector if selector.requirements else None
