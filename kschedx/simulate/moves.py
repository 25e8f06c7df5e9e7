"""Moving pods: the fewest evictions from a node that make room for a pod and leave every evicted pod a node.

Free capacity that is scattered over many nodes helps no large pod. Each set of evictions is tried on the cluster that
moves: with the node cordoned, the replacements are scheduled one after the other, and nothing is preempted for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations, islice

import numpy as np
from msgspec import Struct

from kschedx.controllers.disruption_budgets import DisruptionBudget, budgets_of
from kschedx.controllers.workloads import evict
from kschedx.errors import UndecidableError
from kschedx.findings import Finding, InsufficientResource, TooManyPods
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.simulate.node_changes import cordoned
from kschedx.snapshot.columns import ClusterRow, ClusterRows
from kschedx.snapshot.snapshot import Snapshot

SYSTEM_CRITICAL = 2_000_000_000
"""The priority of system-cluster-critical, from which on the cluster itself depends on a pod."""
MOST_MOVES = 3
"""Pods that are moved at once."""
MOST_SETS = 4
"""Sets of pods that are tried for a node."""
MOST_COMBINATIONS = 200
RECREATING = ("ReplicaSet", "StatefulSet", "ReplicationController")
"""Controllers that create another pod for one that is evicted, and lose no work by it."""

Pick = Callable[[ClusterRows], ClusterRow]


class Place(Struct, frozen=True, kw_only=True):
    """A node that lacks nothing but room for the pod."""

    node: ClusterRow
    findings: tuple[Finding, ...]


class MovedPod(Struct, frozen=True, kw_only=True):
    row: int
    to: ClusterRow


class Moves(Struct, frozen=True, kw_only=True):
    """Pods that leave one node, in the order in which their replacements are scheduled."""

    node: ClusterRow
    pods: tuple[MovedPod, ...]


def lacks_only_room(findings: Iterable[Finding]) -> bool:
    return all(isinstance(one, InsufficientResource | TooManyPods) for one in findings)


class MoveSearch:
    """Looks for moves on a cluster that moves, which it leaves as it is."""

    def __init__(self, run: Run, base: Snapshot, priority: int, pick: Pick | None = None) -> None:
        """`base` is the cluster of which the status of its budgets was made; `priority` that of the pod that needs
        room: no pod of a higher one is moved."""
        self._run = run
        self._priority = priority
        self._pick = pick or (lambda rows: ClusterRow(int(rows[0])))
        self._budgets = list(budgets_of(run.snapshot, base))
        self._allowed: dict[DisruptionBudget, int] = {}

    def find(self, places: Sequence[Place], goal: int | None = None) -> Iterator[Moves]:
        """Moves that leave every moved pod a node, the fewest evictions first, at most one for each place. With them
        the pod in the row `goal` has to fit."""
        done: set[ClusterRow] = set()
        for number in range(1, MOST_MOVES + 1):
            for place in places:
                if place.node in done:
                    continue
                for rows in islice(self._enough(place, number), MOST_SETS):
                    found = self._tried(place.node, rows, goal)
                    if found is not None:
                        done.add(place.node)
                        yield found
                        break

    def _enough(self, place: Place, number: int) -> Iterator[tuple[int, ...]]:
        """Sets of so many pods on the node whose eviction makes room, what requests least first."""
        nodes = self._run.scheduler.nodes
        short = [one for one in place.findings if isinstance(one, InsufficientResource)]
        if any(one.never_fits or one.resource not in nodes.resources.index for one in short):
            return
        rows = [row for row in self._run.cluster.pods.on_node(place.node).tolist() if self._is_movable(row)]
        if not rows:
            return
        columns = [nodes.resources.index[one.resource] for one in short]
        missing = np.array([one.short_by for one in short], dtype=np.int64)
        freed = nodes.requests.matrix[np.array(rows)][:, columns]
        useful = [index for index in range(len(rows)) if not columns or (freed[index] > 0).any()]
        useful.sort(key=lambda index: -int(freed[index].sum()))
        found = [
            some
            for some in islice(combinations(useful, number), MOST_COMBINATIONS)
            if (freed[list(some)].sum(axis=0) >= missing).all()
        ]
        found.sort(key=lambda some: int(freed[list(some)].sum()))
        sets = (tuple(rows[index] for index in some) for some in found)
        yield from (some for some in sets if self._is_allowed(some))

    def _is_movable(self, row: int) -> bool:
        """Whether an eviction loses nothing: a controller recreates the pod, which is no more important."""
        pods = self._run.cluster.pods
        controller = next((one for one in pods.owners[row] if one.controller), None)
        if controller is None or controller.kind not in RECREATING or pods.deletion_timestamps[row]:
            return False
        priority = int(pods.priorities[row])
        return priority <= self._priority and priority < SYSTEM_CRITICAL and not pods.specs[row].resource_claims

    def _is_allowed(self, rows: Iterable[int]) -> bool:
        """Whether every budget allows all of these evictions together."""
        needed = Counter[DisruptionBudget]()
        for row in rows:
            its = [one for one in self._budgets if one.covers(self._run.cluster.pods, row)]
            if len(its) > 1:
                return False  # the API server evicts no such pod
            needed.update(its)
        return all(number <= self._allows(budget) for budget, number in needed.items())

    def _allows(self, budget: DisruptionBudget) -> int:
        if budget not in self._allowed:
            self._allowed[budget] = budget.standing(self._run.snapshot, self._run.cluster.pods, ()).allowed
        return self._allowed[budget]

    def _tried(self, node: ClusterRow, rows: Sequence[int], goal: int | None) -> Moves | None:
        """Where the replacements of these pods go while their node is cordoned; None where one is unschedulable."""
        run, cluster = self._run, self._run.cluster
        mark = cluster.mark()
        try:
            before = cluster.snapshot.cluster.nodes[node]
            cluster.replace_node(node, cordoned(before, unschedulable=True))
            for row in rows:
                evict(run, row, waits=True)
            found: list[MovedPod] = []
            for row in sorted(rows, key=lambda row: (-int(cluster.pods.priorities[row]), row)):
                decision = run.decide(row)
                to = self._pick(decision.choice) if decision.outcome is Outcome.SCHEDULED else node
                if to == node:
                    return None
                run.bind(row, to)
                found.append(MovedPod(row=row, to=to))
            cluster.replace_node(node, before)
            if goal is not None and run.decide(goal).outcome is not Outcome.SCHEDULED:
                return None
            return Moves(node=node, pods=tuple(found))
        except UndecidableError:
            return None
        finally:
            cluster.revert(mark)
