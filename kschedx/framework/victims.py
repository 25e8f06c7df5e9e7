"""The potential victims of preemption on each node, in the order in which they are reprieved.

Upstream: SelectVictimsOnNode and filterPodsWithPDBViolation in pkg/scheduler/framework/plugins/defaultpreemption/
default_preemption.go, MoreImportantPod in pkg/scheduler/util/utils.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from kschedx.errors import InputError
from kschedx.grouping import group_pairs
from kschedx.kube.go_sort import LONGEST_INSERTION, sort_slice
from kschedx.kube.scalars import LATEST
from kschedx.kube.selectors import Selector, compile_selector
from kschedx.kube.types import PodDisruptionBudget
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRows,
    IntArray,
    Memo,
    TableRows,
    distinct,
    each_cluster_row,
    pair_codes,
    rows_by_group,
)
from kschedx.snapshot.moving_cluster import MovingPods, Steps
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

_FEW = 64
"""For at most this number of nodes, the pods are looked up node by node; otherwise they are filtered from all pods."""


class PotentialVictims(Struct, frozen=True, kw_only=True):
    """All pods of lower priority on some nodes, node by node: those of node i are `start[i]` to `start[i + 1]`.

    On each node, the pods whose eviction violates a disruption budget come first, then the others; the most important
    pod is the first of its part.
    """

    pods: IntArray  # (victim,) rows of the PodTable
    index: IntArray  # (victim,) the node, as a row of the table
    violating: BoolArray
    """(victim,) whether evicting the pod, and every more important one on its node, exceeds a disruption budget."""
    start: IntArray  # (node + 1,)

    @property
    def count(self) -> IntArray:
        """(node,) the number of potential victims on a node."""
        return np.diff(self.start)

    def positions_in_turn(self, nodes: TableRows, turn: int) -> IntArray:
        """Return (node,) positions of the pod that each of these nodes tries to reprieve in a turn."""
        return self.start[nodes] + turn

    def pod_rows(self, positions: IntArray, nodes: NodeTable) -> PodRows:
        """Return these potential victims with their nodes. `nodes` is the table whose rows are in `index`."""
        return PodRows(pods=self.pods[positions], nodes=ClusterRows(nodes.rows[self.index[positions]]))


_Violating: TypeAlias = Callable[[IntArray, IntArray], BoolArray]
"""Returns (victim,) whether disruption budgets forbid the eviction, for rows of the PodTable and the node of each.
Nodes are ascending; on each, the most important pod is first."""


Exempt: TypeAlias = Callable[[PodTable, IntArray], BoolArray]
"""Returns (victim,) whether pods of lower priority, given as rows of the PodTable, are exempt from preemption."""


def potential_victims(
    nodes: NodeTable,
    priority: int,
    violating: _Violating,
    *,
    ranked_by_start: bool = True,
    exempt: Exempt | None = None,
    rankings: Rankings | None = None,
) -> PotentialVictims:
    """Return the pods on `nodes` that have a lower priority. Of pods with equal priority, the one that started earlier
    is more important if they are `ranked_by_start`, otherwise the one that was loaded first."""
    pods = nodes.pods
    table_row = np.full(len(nodes.cluster.nodes), -1, dtype=np.int64)
    table_row[nodes.rows] = np.arange(len(nodes))
    if len(nodes) <= _FEW:
        running = np.concatenate(
            [pods.on_node(row) for row in each_cluster_row(nodes.rows)] or [np.zeros(0, dtype=np.int64)]
        )
        lower = running[pods.priorities[running] < priority]
    elif rankings is not None and exempt is None and nodes.is_removed is None and (np.diff(nodes.rows) > 0).all():
        lower, node = rankings.below(nodes, priority)
        index = table_row[node]
        return _with_budgets(nodes, lower[index >= 0], index[index >= 0], violating)
    else:
        lower = np.flatnonzero((pods.node >= 0) & (pods.priorities < priority))
        lower = lower[table_row[pods.node[lower]] >= 0]
    if nodes.is_removed is not None:
        lower = lower[~nodes.is_removed[lower]]
    if exempt is not None:
        lower = lower[~exempt(pods, lower)]
    # the load order replaces the order in kube-scheduler's cache
    return order_victims(nodes, lower, table_row[pods.node[lower]], violating, ranked_by_start=ranked_by_start)


def order_victims(
    nodes: NodeTable, lower: IntArray, index: IntArray, violating: _Violating, *, ranked_by_start: bool = True
) -> PotentialVictims:
    """Return pods on the nodes `index` (rows of the table) in the order in which they are reprieved; equal ones keep
    their order."""
    order = _importance_order(nodes.pods, lower, index, ranked_by_start=ranked_by_start)
    return _with_budgets(nodes, lower[order], index[order], violating)


def _importance_order(pods: PodTable, lower: IntArray, index: IntArray, *, ranked_by_start: bool = True) -> IntArray:
    """Return the order of pods on the nodes `index`: by node, and on each the most important first."""
    started = pods.started[lower] if ranked_by_start else np.zeros(len(lower), dtype=np.int64)
    turn = np.arange(len(lower))
    # kube-scheduler uses the current time as the start of a pod that has not started, which reverses the order of such
    # pods
    turn = np.where(started == LATEST, -turn, turn)
    order = np.lexsort((turn, started, -pods.priorities[lower], index))
    if ranked_by_start:
        _leave_equals_as_sorted(order, index, pods.priorities[lower], started)
    return order


def _with_budgets(nodes: NodeTable, lower: IntArray, index: IntArray, violating: _Violating) -> PotentialVictims:
    """Move the pods of each node that disruption budgets protect before the others."""
    protected = violating(lower, index)
    if protected.any():
        order = np.lexsort((~protected, index))
        lower, protected = lower[order], protected[order]
    start = np.searchsorted(index, np.arange(len(nodes) + 1)).astype(np.int64)
    return PotentialVictims(pods=lower, index=index, violating=protected, start=start)


class _Ranking(Struct):
    """Pods of a lower priority on all nodes, by node, and on each the most important first."""

    table: PodTable
    seen: int  # the number of moves that are included
    pods: IntArray
    nodes: IntArray


class Rankings:
    """The pods of the cluster by importance. An update costs only what has moved since the last call."""

    def __init__(self) -> None:
        self._known: dict[int, _Ranking] = {}

    def below(self, nodes: NodeTable, priority: int) -> tuple[IntArray, IntArray]:
        """The pods of a lower priority and their nodes, as rows of the cluster: by node, the most important first."""
        pods = nodes.pods
        steps = pods.steps if isinstance(pods, MovingPods) else ()
        known = self._known.get(priority)
        if known is None or known.table is not pods:
            lower = np.flatnonzero((pods.node >= 0) & (pods.priorities < priority))
            order = lower[_importance_order(pods, lower, pods.node[lower])]
            known = self._known[priority] = _Ranking(pods, len(steps), order, pods.node[order])
        elif known.seen < len(steps) and isinstance(steps, Steps):
            touched = distinct(steps.since(known.seen)[1])
            moved = np.zeros(len(nodes.cluster.nodes), dtype=np.bool_)
            moved[touched[touched < len(moved)]] = True
            there = [pods.on_node(row) for row in each_cluster_row(ClusterRows(np.flatnonzero(moved)))]
            lower = np.concatenate([*there, np.zeros(0, dtype=np.int64)])
            lower = lower[pods.priorities[lower] < priority]
            lower = lower[_importance_order(pods, lower, pods.node[lower])]
            stays = ~moved[known.nodes]
            rows = np.concatenate([known.pods[stays], lower])
            rows = rows[np.argsort(np.concatenate([known.nodes[stays], pods.node[lower]]), kind="stable")]
            known.pods, known.nodes, known.seen = rows, pods.node[rows], len(steps)
        return known.pods, known.nodes


def sort_victims(pods: PodTable, victims: Sequence[int]) -> list[int]:
    """Sort victims by higher priority, then by earlier start."""
    started = pods.started
    keys = [(-int(pods.priorities[row]), int(started[row])) for row in victims]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    ranks = np.array([2 * places[key] + (key[1] == LATEST) for key in keys], dtype=np.int64)
    return [victims[position] for position in _unstable_order(ranks.tobytes()).tolist()]


def _more_important(item: tuple[int, bool, int], other: tuple[int, bool, int]) -> bool:
    """Return whether the first pod is more important. Of two equal pods that have not started, the one evaluated first
    is: kube-scheduler uses the time of the evaluation as each start."""
    return item[0] < other[0] or (item[0] == other[0] and item[1])


@lru_cache(maxsize=1 << 14)
def _unstable_order(importance: bytes) -> IntArray:
    """Return positions in the order in which kube-scheduler's sort leaves the pods. That sort is not stable, but
    deterministic. `importance` has an int64 for each pod: twice its rank, 0 for the most important and the same for
    equals, and 1 more if it has not started."""
    ranks = np.frombuffer(importance, dtype=np.int64).tolist()
    items = [(rank >> 1, bool(rank & 1), position) for position, rank in enumerate(ranks)]
    sort_slice(items, _more_important)
    return np.array([position for *_, position in items], dtype=np.int64)


def _leave_equals_as_sorted(order: IntArray, index: IntArray, priorities: IntArray, started: IntArray) -> None:
    """Put equally important pods of a node into kube-scheduler's order, in place, if the node has so many that its sort
    is no insertion sort. `order` sorts the other three arrays; a lower number was loaded earlier."""
    node = index[order]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    count = np.diff(first, append=len(order))
    if count.max(initial=0) <= LONGEST_INSERTION:
        return
    priority, start = priorities[order], started[order]
    changes = (np.diff(node) != 0) | (np.diff(priority) != 0) | (np.diff(start) != 0)
    place = np.concatenate([[0], np.cumsum(changes)])
    group = np.repeat(np.arange(len(first)), count)
    as_loaded = np.lexsort((order, group))
    loaded = order[as_loaded]
    importance = 2 * (place - place[first][group])[as_loaded] + (start[as_loaded] == LATEST)
    distinct_ranks = place[first + count - 1] - place[first] + 1
    many = (count > LONGEST_INSERTION) & (distinct_ranks < count)
    for low, high in zip(first[many].tolist(), (first + count)[many].tolist(), strict=True):
        order[low:high] = loaded[low:high][_unstable_order(importance[low:high].tobytes())]


class _BudgetCoverage(Struct, frozen=True, kw_only=True):
    """The disruption budgets that cover each pod, without those whose status has counted the pod's disruption."""

    allowed: IntArray  # (budget,) the disruptions that are allowed now
    budgets: IntArray  # the budgets of one pod after the other: those of pod i are `start[i]` to `start[i + 1]`
    start: IntArray  # (pod + 1,)

    def of(self, row: int) -> list[int]:
        """Return the budgets of a pod, in their order."""
        budgets: list[int] = self.budgets[self.start[row] : self.start[row + 1]].tolist()
        return budgets

    def is_exceeded(self, rows: IntArray, index: IntArray) -> BoolArray:
        """Return, as `_Violating`, whether a budget is exhausted when its pods on one node are evicted in this order.

        Each node is counted separately, since the pod needs only one.
        """
        first = self.start[rows]
        count = self.start[rows + 1] - first
        victims = np.repeat(np.arange(len(rows)), count)
        turn = np.arange(len(victims)) - np.repeat(np.cumsum(count) - count, count)
        budgets = self.budgets[first[victims] + turn]
        order = np.argsort(budgets, kind="stable")
        victims, budgets = victims[order], budgets[order]
        groups = pair_codes(budgets, index[victims])  # ascending, since the nodes are
        before = np.arange(len(groups)) - np.searchsorted(groups, groups)
        violating = np.zeros(len(rows), dtype=np.bool_)
        violating[victims[before >= self.allowed[budgets]]] = True
        return violating


_COVERAGE = Memo[_BudgetCoverage]()


def budget_coverage(snapshot: Snapshot, *, empty_counts: bool = False) -> _BudgetCoverage:
    """Return the coverage of the snapshot's budgets, computed once. With `empty_counts`, an empty selector covers every
    pod of the namespace."""
    return _COVERAGE.of(snapshot.derived, lambda: _budget_coverage(snapshot, empty_counts), empty_counts)


def _budget_coverage(snapshot: Snapshot, empty_counts: bool) -> _BudgetCoverage:
    pods, budgets = snapshot.pods, snapshot.disruption_budgets
    covered = [np.zeros(0, dtype=np.int64)]
    by_label = _PodsByLabel(pods)
    for budget in budgets:
        selector = budget_selector(budget, empty_counts=empty_counts)
        own = covered[0] if selector is None else by_label.covered(selector, budget.metadata.namespace)
        if counted := budget.status.disrupted_pods:  # the API server has already counted these
            own = own[np.array([pods.names[row] not in counted for row in own.tolist()], dtype=np.bool_)]
        covered.append(own)
    rows = np.concatenate(covered)
    numbers = np.repeat(np.arange(len(budgets)), [len(own) for own in covered[1:]])
    order, start = rows_by_group(rows, len(pods))
    allowed = np.array([budget.status.disruptions_allowed or 0 for budget in budgets], dtype=np.int64)
    return _BudgetCoverage(allowed=allowed, budgets=numbers[order], start=start)


class _PodsByLabel:
    """Finds the pods that a budget covers. Most selectors name a label that few pods have, so that the others are not
    compared: there may be thousands of budgets."""

    def __init__(self, pods: PodTable) -> None:
        self._labels = pods.labels.values
        labels = ((label, code) for code, labels in enumerate(self._labels) for label in labels.items())
        self._codes = group_pairs(labels)
        self._order, self._start = rows_by_group(pods.labels.codes, len(self._labels))
        self._namespaces = pods.namespaces.codes
        self._codes_of_namespace = group_pairs((name, code) for code, name in enumerate(pods.namespaces.values))

    def covered(self, selector: Selector, namespace: str) -> IntArray:
        """Return the rows of the pods, ascending."""
        named = selector.one_of_labels
        some = [code for label in named for code in self._codes.get(label, ())] if named else range(len(self._labels))
        codes = [code for code in some if covers(selector, self._labels[code])]
        parts = [self._order[self._start[code] : self._start[code + 1]] for code in codes]
        rows = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *parts]))
        return rows[np.isin(self._namespaces[rows], self._codes_of_namespace.get(namespace, []))]


def covers(selector: Selector, labels: dict[str, str]) -> bool:
    """Return whether a budget covers a pod with these labels. A pod without labels belongs to no budget, whatever the
    selector."""
    return bool(labels) and selector.matches(labels)


def budget_selector(budget: PodDisruptionBudget, *, empty_counts: bool = False) -> Selector | None:
    """Return the selector of the pods that a budget covers; None if it covers none because the selector is missing,
    empty, or invalid. With `empty_counts`, an empty one covers every pod."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InputError:
        return None
    return selector if selector.requirements or (empty_counts and budget.spec.selector is not None) else None
