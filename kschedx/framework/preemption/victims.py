"""The pods that each node could give up, in the order in which they are asked whether they may stay.

Upstream: SelectVictimsOnNode and filterPodsWithPDBViolation in pkg/scheduler/framework/plugins/defaultpreemption/
default_preemption.go, MoreImportantPod in pkg/scheduler/util/utils.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import TypeAlias

import numpy as np
from msgspec import Struct

from kschedx.api.go_sort import LONGEST_INSERTION, sort_slice
from kschedx.api.policy import PodDisruptionBudget
from kschedx.api.selectors import Selector, compile_selector
from kschedx.api.timestamps import LATEST
from kschedx.errors import InputError
from kschedx.snapshot.columns import BoolArray, IntArray, rows_by_group
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRows, TableRows, each_cluster_row

FEW = 16
"""Of up to so many nodes the pods are looked up, rather than those of all nodes sorted out."""


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

    def at(self, nodes: TableRows, turn: int) -> IntArray:
        """(node,) positions of the pods that these nodes are asked about in a turn."""
        return self.start[nodes] + turn

    def placed(self, positions: IntArray, nodes: NodeTable) -> PodRows:
        """These potential victims on their nodes. `nodes` is the table that `index` counts in."""
        return PodRows(pods=self.pods[positions], nodes=ClusterRows(nodes.rows[self.index[positions]]))


Violating: TypeAlias = Callable[[PodTable, IntArray, IntArray], BoolArray]
"""(victim,) whether disruption budgets forbid the eviction, of rows of the PodTable and the node of each, ascending;
on a node the most important is first."""


Exempt: TypeAlias = Callable[[PodTable, IntArray], BoolArray]
"""(victim,) whether pods of lower priority, rows of the PodTable, are left alone all the same."""


def potential_victims(
    nodes: NodeTable,
    priority: int,
    violating: Violating,
    *,
    ranked_by_start: bool = True,
    exempt: Exempt | None = None,
) -> PotentialVictims:
    """The pods that run on `nodes` and have a lower priority. Of equal priorities the one that started earlier is more
    important where they are `ranked_by_start`, otherwise the one that was loaded first."""
    pods = nodes.pods
    table_row = np.full(len(nodes.cluster.nodes), -1, dtype=np.int64)
    table_row[nodes.rows] = np.arange(len(nodes))
    if len(nodes) <= FEW:
        running = np.concatenate(
            [pods.on_node(row) for row in each_cluster_row(nodes.rows)] or [np.zeros(0, dtype=np.int64)]
        )
        lower = running[pods.priorities[running] < priority]
    else:
        lower = np.flatnonzero((pods.node >= 0) & (pods.priorities < priority))
        lower = lower[table_row[pods.node[lower]] >= 0]
    if exempt is not None:
        lower = lower[~exempt(pods, lower)]
    # load order stands in for that of kube-scheduler's cache
    return in_turn(nodes, lower, table_row[pods.node[lower]], violating, ranked_by_start=ranked_by_start)


def in_turn(
    nodes: NodeTable, lower: IntArray, index: IntArray, violating: Violating, *, ranked_by_start: bool = True
) -> PotentialVictims:
    """Pods on the nodes `index` (rows of the table) in the order in which they are asked; equals as they are given."""
    pods = nodes.pods
    started = pods.started[lower] if ranked_by_start else np.zeros(len(lower), dtype=np.int64)
    turn = np.arange(len(lower))
    # for a pod that has not started kube-scheduler takes the time at which it looks, and so turns their order around
    turn = np.where(started == LATEST, -turn, turn)
    order = np.lexsort((turn, started, -pods.priorities[lower], index))
    if ranked_by_start:
        _leave_equals_as_sorted(order, index, pods.priorities[lower], started)
    lower, index = lower[order], index[order]
    protected = violating(pods, lower, index)
    order = np.lexsort((~protected, index))
    return PotentialVictims(
        pods=lower[order],
        index=index,
        violating=protected[order],
        start=np.searchsorted(index, np.arange(len(nodes) + 1)).astype(np.int64),
    )


def by_importance(pods: PodTable, victims: Sequence[int]) -> list[int]:
    """Higher priority first, then earlier start."""
    started = pods.started
    keys = [(-int(pods.priorities[row]), int(started[row])) for row in victims]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    order = _as_sorted(tuple((places[key], key[1] == LATEST) for key in keys))
    return [victims[position] for position in order]


_Importance: TypeAlias = tuple[int, bool]
"""A pod's place, 0 for the most important and the same for equals, and whether it has not started."""


def _more_important(one: _Importance, other: _Importance) -> bool:
    """Of two equals that have not started the one that is looked at first: each start is the time of the look."""
    return one[0] < other[0] or (one[0] == other[0] and one[1])


@lru_cache(maxsize=4096)
def _as_sorted(pods: tuple[_Importance, ...]) -> tuple[int, ...]:
    """Positions in the order in which kube-scheduler's sort leaves the pods. It is not stable, but always the same."""
    positions = list(range(len(pods)))
    sort_slice(positions, lambda one, other: _more_important(pods[one], pods[other]))
    return tuple(positions)


def _leave_equals_as_sorted(order: IntArray, index: IntArray, priorities: IntArray, started: IntArray) -> None:
    """Put equally important pods of a node into kube-scheduler's order, in place, where the node has so many that its
    sort is no longer an insertion sort. `order` sorts the other three; a lower number was loaded earlier."""
    node, priority, start = index[order], priorities[order], started[order]
    changes = (np.diff(node) != 0) | (np.diff(priority) != 0) | (np.diff(start) != 0)
    first = np.flatnonzero(np.diff(node, prepend=-1))
    count = np.diff(first, append=len(order))
    many = count > LONGEST_INSERTION
    for low, length in zip(first[many].tolist(), count[many].tolist(), strict=True):
        inside = slice(low, low + length)
        change = changes[low : low + length - 1]
        if change.all():
            continue
        loaded = np.sort(order[inside])
        place = np.concatenate([[0], np.cumsum(change)])[np.argsort(order[inside])]
        pods = tuple(zip(place.tolist(), (started[loaded] == LATEST).tolist(), strict=True))
        order[inside] = loaded[list(_as_sorted(pods))]


def exceeding(budgets: Sequence[PodDisruptionBudget], pods: PodTable, rows: IntArray, index: IntArray) -> BoolArray:
    """`Violating`: whether a budget is exhausted when its pods on one node are evicted in this order.

    Every node counts for itself, since the pod needs only one.
    """
    violating = np.zeros(len(rows), dtype=np.bool_)
    labels, namespaces = pods.labels.take(rows), pods.namespaces.take(rows)
    code_of = {name: code for code, name in enumerate(namespaces.values)}
    order, start = rows_by_group(namespaces.codes, len(code_of))
    for budget in budgets:
        namespace = code_of.get(budget.metadata.namespace)
        selector = None if namespace is None else budget_selector(budget)
        if selector is None or namespace is None:
            continue
        inside = order[start[namespace] : start[namespace + 1]]
        matching = inside[labels.take(inside).where(partial(covers, selector))]
        disrupted = budget.status.disrupted_pods
        if disrupted:
            # the API server has counted these already
            fresh = [pods.names[rows[victim]] not in disrupted for victim in matching]
            matching = matching[np.array(fresh, dtype=np.bool_)]
        nodes = index[matching]
        nth = np.arange(1, len(nodes) + 1) - np.searchsorted(nodes, nodes)
        violating[matching[nth > (budget.status.disruptions_allowed or 0)]] = True
    return violating


def covers(selector: Selector, labels: dict[str, str]) -> bool:
    """A pod without labels belongs to no budget, whatever the selector."""
    return bool(labels) and selector.matches(labels)


def budget_selector(budget: PodDisruptionBudget) -> Selector | None:
    """Whom a budget covers; None where that is nobody: its selector is missing, empty or broken."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InputError:
        return None
    return selector if selector.requirements else None
