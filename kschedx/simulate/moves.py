"""Moving pods: the fewest evictions that make room for a pod and leave every evicted pod a node.

Free capacity that is scattered over many nodes helps no large pod. Each set of evictions is tried on the cluster that
moves: with the node cordoned, the replacements are scheduled one after the other, and nothing is preempted for them.
A replacement that fits nowhere may get room in the same way, on another node, whose pods move first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, islice

import numpy as np
from msgspec import Struct

from kschedx.controllers.disruption_budgets import DisruptionBudget, budgets_of
from kschedx.controllers.workloads import evict
from kschedx.errors import UndecidableError
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.node_groups import account
from kschedx.findings import Finding, InsufficientResource, TooManyPods
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.moving import Run
from kschedx.simulate.node_changes import cordoned
from kschedx.snapshot.columns import ClusterRow, ClusterRows
from kschedx.snapshot.snapshot import Snapshot

SYSTEM_CRITICAL = 2_000_000_000
"""The priority of system-cluster-critical, from which on the cluster itself depends on a pod."""
MOST_MOVES = 6
"""Pods that are moved at once."""
MOST_SETS = 4
"""Sets of pods that are tried for a node."""
MOST_COMBINATIONS = 1_000
MOST_NEXT_PLACES = 5
"""Nodes on which room is made for a pod that has to leave another."""
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


class Clearing(Struct, frozen=True, kw_only=True):
    """Pods that leave one node, in the order in which their replacements are scheduled."""

    node: ClusterRow
    pods: tuple[MovedPod, ...]


class Moves(Struct, frozen=True, kw_only=True):
    """Clearings one after the other. All their nodes are cordoned before the first; each is open again after its own,
    so that pods of a later one may come. The last makes the room that was asked for."""

    clearings: tuple[Clearing, ...]

    @property
    def node(self) -> ClusterRow:
        return self.clearings[-1].node

    @property
    def rows(self) -> list[int]:
        return [one.row for clearing in self.clearings for one in clearing.pods]


def lacks_only_room(findings: Iterable[Finding]) -> bool:
    return all(isinstance(one, InsufficientResource | TooManyPods) for one in findings)


def nearest_places(cycle: Cycle, most: int) -> list[Place]:
    """The nodes that lack nothing but room for the pod of an unsuccessful cycle, the nearest to fitting first."""
    if cycle.nodes is None or cycle.filter is None:
        return []
    groups = (group for group in Diagnosis(cycle).groups if lacks_only_room(group.exemplar.findings))
    rows = islice((row for group in groups for row in group.rows), most)
    return [Place(node=cycle.nodes.cluster_row(row), findings=account(cycle, row).findings) for row in rows]


class MoveSearch:
    """Looks for moves on a cluster that moves, which it leaves as it is."""

    def __init__(self, run: Run, base: Snapshot, priority: int, *, trials: int, pick: Pick | None = None) -> None:
        """`base` is the cluster of which the status of its budgets was made; `priority` that of the pod that needs
        room: no pod of a higher one is moved. At most so many sets of pods are tried."""
        self._run = run
        self._priority = priority
        self._trials = trials
        self._pick = pick or (lambda rows: ClusterRow(int(rows[0])))
        self._budgets = list(budgets_of(run.snapshot, base))
        self._allowed: dict[DisruptionBudget, int] = {}
        self._evicted: list[int] = []
        """Rows that have left their node in the trial that is under way."""

    def find(self, places: Sequence[Place], goal: int | None = None) -> Iterator[Moves]:
        """Moves that leave every moved pod a node, the fewest evictions first, at most one for each place. With them
        the pod in the row `goal` has to fit."""
        done: set[ClusterRow] = set()
        for number in range(1, MOST_MOVES + 1):
            if number == 2:
                for budget in self._budgets:
                    self._allows(budget)  # before pods of other nodes are evicted in the middle of a trial
            for place in places:
                if place.node not in done and (found := self._room(place, number, goal)) is not None:
                    done.add(place.node)
                    yield found

    def _room(self, place: Place, number: int, goal: int | None) -> Moves | None:
        """With so many evictions, as many of them as possible on the node itself."""
        cluster = self._run.cluster
        for size in range(number, 0, -1):
            for rows in islice(self._enough(place, size), MOST_SETS):
                mark = cluster.mark()
                try:
                    found = self._cleared(place.node, rows, number - size)
                except UndecidableError:
                    found = None
                finally:
                    cluster.revert(mark)
                    self._evicted.clear()
                if found and (moves := self._carried_out(found, goal)) is not None:
                    return moves
        return None

    # --- one trial, which leaves the cluster changed

    def _cleared(self, node: ClusterRow, rows: Sequence[int], more: int) -> list[tuple[ClusterRow, Sequence[int]]]:
        """The clearings after which the replacements of these pods run elsewhere, this one last, with at most so many
        evictions more; empty where one is unschedulable."""
        if self._trials <= 0:
            return []
        self._trials -= 1
        cluster = self._run.cluster
        before = cluster.snapshot.cluster.nodes[node]
        cluster.replace_node(node, cordoned(before, unschedulable=True))
        self._evict(rows)
        first: list[tuple[ClusterRow, Sequence[int]]] = []
        for row in self._in_order(rows):
            if not self._is_placed(row):
                found = self._room_for(row, more) if more else []
                if not found or not self._is_placed(row):
                    return []
                first += found
                more -= sum(len(its) for _, its in found)
        cluster.replace_node(node, before)
        return [*first, (node, rows)]

    def _room_for(self, row: int, most: int) -> list[tuple[ClusterRow, Sequence[int]]]:
        """The clearings that make room for a replacement; nothing is left changed where there are none."""
        run, cluster = self._run, self._run.cluster
        places = nearest_places(run.cycle(row), MOST_NEXT_PLACES)
        for size in range(1, most + 1):
            for place in places:
                for rows in islice(self._enough(place, size), MOST_SETS):
                    mark, evicted = cluster.mark(), len(self._evicted)
                    if found := self._cleared(place.node, rows, most - size):
                        return found
                    cluster.revert(mark)
                    del self._evicted[evicted:]
        return []

    def _carried_out(self, clearings: Sequence[tuple[ClusterRow, Sequence[int]]], goal: int | None) -> Moves | None:
        """Where the replacements go once it is done in the order in which a person does it."""
        run, cluster = self._run, self._run.cluster
        mark = cluster.mark()
        try:
            before = {node: cluster.snapshot.cluster.nodes[node] for node, _ in clearings}
            for node, one in before.items():
                cluster.replace_node(node, cordoned(one, unschedulable=True))
            done: list[Clearing] = []
            for node, rows in clearings:
                self._evict(rows)
                order = self._in_order(rows)
                if not all(map(self._is_placed, order)):
                    return None
                pods = tuple(MovedPod(row=row, to=ClusterRow(int(cluster.pods.node[row]))) for row in order)
                done.append(Clearing(node=node, pods=pods))
                cluster.replace_node(node, before[node])
            is_reached = goal is None or run.decide(goal).outcome is Outcome.SCHEDULED
            return Moves(clearings=tuple(done)) if is_reached else None
        except UndecidableError:
            return None
        finally:
            cluster.revert(mark)
            self._evicted.clear()

    def _evict(self, rows: Iterable[int]) -> None:
        for row in rows:
            evict(self._run, row, waits=True)
            self._evicted.append(row)

    def _in_order(self, rows: Iterable[int]) -> list[int]:
        return sorted(rows, key=lambda row: (-int(self._run.cluster.pods.priorities[row]), row))

    def _is_placed(self, row: int) -> bool:
        """Whether the replacement gets a node, which it is bound to then."""
        decision = self._run.decide(row)
        if decision.outcome is not Outcome.SCHEDULED:
            return False
        self._run.bind(row, self._pick(decision.choice))
        return True

    # --- which pods

    def _enough(self, place: Place, number: int) -> Iterator[tuple[int, ...]]:
        """Sets of so many pods on the node whose eviction makes room, what requests least first; of the equal pods of
        one controller any serve."""
        nodes, pods = self._run.scheduler.nodes, self._run.cluster.pods
        short = [one for one in place.findings if isinstance(one, InsufficientResource)]
        if any(one.never_fits or one.resource not in nodes.resources.index for one in short):
            return
        rows = [row for row in pods.on_node(place.node).tolist() if self._is_movable(row)]
        if len(rows) < number:
            return
        columns = [nodes.resources.index[one.resource] for one in short]
        missing = np.array([one.short_by for one in short], dtype=np.int64)
        freed = nodes.requests.matrix[np.array(rows)][:, columns]
        if columns and (np.sort(freed, axis=0)[-number:].sum(axis=0) < missing).any():
            return
        share = (freed / np.maximum(missing, 1)).sum(axis=1)
        alike: dict[tuple[str, bytes], list[int]] = {}
        for index in np.argsort(-share, kind="stable").tolist():
            if not columns or freed[index].any():
                owner = next((one.uid or one.name for one in pods.owners[rows[index]] if one.controller), "")
                alike.setdefault((owner, freed[index].tobytes()), []).append(index)
        kinds = list(alike.values())
        found: list[list[int]] = []
        for some in islice(combinations_with_replacement(range(len(kinds)), number), MOST_COMBINATIONS):
            counts = Counter(some)
            if any(count > len(kinds[kind]) for kind, count in counts.items()):
                continue
            its = [index for kind, count in counts.items() for index in kinds[kind][:count]]
            if (freed[its].sum(axis=0) >= missing).all():
                found.append(its)
        found.sort(key=lambda its: float(share[its].sum()))
        sets = (tuple(rows[index] for index in its) for its in found)
        yield from (some for some in sets if self._is_allowed(some))

    def _is_movable(self, row: int) -> bool:
        """Whether an eviction loses nothing: a controller recreates the pod, which is no more important."""
        pods = self._run.cluster.pods
        controller = next((one for one in pods.owners[row] if one.controller), None)
        if controller is None or controller.kind not in RECREATING or pods.deletion_timestamps[row]:
            return False
        priority = int(pods.priorities[row])
        is_free = priority <= self._priority and priority < SYSTEM_CRITICAL and row not in self._evicted
        return is_free and not pods.specs[row].resource_claims

    def _is_allowed(self, rows: Iterable[int]) -> bool:
        """Whether every budget allows all of these evictions together with those of the trial."""
        needed = Counter[DisruptionBudget]()
        for row in (*self._evicted, *rows):
            its = [one for one in self._budgets if one.covers(self._run.cluster.pods, row)]
            if len(its) > 1:
                return False  # the API server evicts no such pod
            needed.update(its)
        return all(number <= self._allows(budget) for budget, number in needed.items())

    def _allows(self, budget: DisruptionBudget) -> int:
        if budget not in self._allowed:
            self._allowed[budget] = budget.standing(self._run.snapshot, self._run.cluster.pods, ()).allowed
        return self._allowed[budget]
