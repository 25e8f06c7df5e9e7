"""Moves of pods: the fewest evictions that make room for a pod and for which every evicted pod fits another node.

Free capacity that is scattered over many nodes does not help a large pod. Each set of evictions is tried on the moving
cluster. With the node cordoned, the replacements are scheduled one after the other, and nothing is preempted for them.
If a replacement fits nowhere, room for it may be made in the same way on another node, whose pods move first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations_with_replacement, islice
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from kschedx.apiserver.pod_classes import SYSTEM_CRITICAL
from kschedx.controllers.disruption_budgets import MovingBudget, MovingBudgets
from kschedx.controllers.workloads import evict
from kschedx.errors import InputError, UndecidableError
from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.node_groups import NodeGroup, account
from kschedx.explain.ranking import RECREATING
from kschedx.findings import Finding, HostPortConflict, InsufficientResource, TooManyPods
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.moving import Run
from kschedx.framework.replicas import Pick
from kschedx.kube.documents import Document
from kschedx.kube.types import controller_of
from kschedx.simulate.changes import ChangeVerb, Read, SimulatedChange, parse_change, set_cordon
from kschedx.snapshot.columns import ClusterRow, clamp_int64
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.simulate.simulator import Simulator

_MOST_MOVES = 6  # pods that are moved together
_MOST_SETS = 4  # sets of pods that are tried for a node
_MOST_COMBINATIONS = 1_000
_MOST_NEXT_PLACES = 5  # nodes on which room is tried for an evicted pod


class MoveTarget(Struct, frozen=True, kw_only=True):
    """A node on which the pod only lacks room, or ports that other pods use."""

    node: ClusterRow
    findings: tuple[Finding, ...]


class _MovedPod(Struct, frozen=True, kw_only=True):
    row: int
    to: ClusterRow


class _Clearing(Struct, frozen=True, kw_only=True):
    """Pods that leave one node, in the order in which their replacements are scheduled."""

    node: ClusterRow
    pods: tuple[_MovedPod, ...]


class _Moves(Struct, frozen=True, kw_only=True):
    """Clearings one after the other. All their nodes are cordoned before the first. Each node is restored after its
    own clearing, so that pods of later clearings fit there. The last clearing makes the requested room."""

    clearings: tuple[_Clearing, ...]

    @property
    def node(self) -> ClusterRow:
        return self.clearings[-1].node

    @property
    def rows(self) -> list[int]:
        return [pod.row for clearing in self.clearings for pod in clearing.pods]


def groups_with_room(groups: Iterable[NodeGroup]) -> list[NodeGroup]:
    """Return the groups of nodes that lack nothing but room and host ports, the nearest first; those with ports in use
    come last, as their users have to move."""

    def kinds(group: NodeGroup) -> set[type[Finding]]:
        return {type(finding) for finding in group.exemplar.findings}

    with_room = [group for group in groups if kinds(group) <= {InsufficientResource, TooManyPods, HostPortConflict}]
    return sorted(with_room, key=lambda group: HostPortConflict in kinds(group))


def _nearest_places(cycle: Cycle, most: int) -> list[MoveTarget]:
    """Return the nodes on which an unscheduled pod only lacks room, the nearest to fitting first."""
    if cycle.nodes is None or cycle.filter is None:
        return []
    rows = islice((row for group in groups_with_room(Diagnosis(cycle).groups) for row in group.rows), most)
    return [MoveTarget(node=cycle.nodes.cluster_row(row), findings=account(cycle, row).findings) for row in rows]


class MoveSearch:
    """A search for moves on a moving cluster, which it leaves unchanged."""

    def __init__(self, run: Run, base: Snapshot, priority: int, *, trials: int, pick: Pick | None = None) -> None:
        """`base` is the cluster from which the status of its budgets was computed. `priority` is that of the pod that
        needs room: no pod with a higher one is moved. `trials` is the largest number of sets of pods that are tried."""
        self._run = run
        self._priority = priority
        self._trials = trials
        self._pick = pick or (lambda rows: ClusterRow(int(rows[0])))
        self._budgets = MovingBudgets(run.snapshot, base)
        self._allowed: dict[MovingBudget, int] = {}
        self._evicted: list[int] = []  # rows of pods, in the current trial

    def find(self, places: Sequence[MoveTarget], goal: Sequence[int] = ()) -> Iterator[_Moves]:
        """Yield moves after which every moved pod has a node, the fewest evictions first, at most one for each place.
        After them, the pods in the rows `goal` are scheduled in this order, and the last one has to fit."""
        done: set[ClusterRow] = set()
        for number in range(1, _MOST_MOVES + 1):
            if number == 2:
                for budget in self._budgets:
                    self._allows(budget)  # before pods of other nodes are evicted in the middle of a trial
            for place in places:
                if place.node not in done and (moves := self._room(place, number, goal)) is not None:
                    done.add(place.node)
                    yield moves

    def _room(self, place: MoveTarget, number: int, goal: Sequence[int]) -> _Moves | None:
        """Return moves with so many evictions, as many as possible on the node itself; None if there are none."""
        cluster = self._run.cluster
        for size in range(number, 0, -1):
            for rows in islice(self._enough(place, size), _MOST_SETS):
                mark = cluster.mark()
                try:
                    cleared = self._clearings(place.node, rows, number - size)
                except UndecidableError:
                    cleared = None
                finally:
                    cluster.revert(mark)
                    self._evicted.clear()
                if cleared and (moves := self._carried_out(cleared, goal)) is not None:
                    return moves
        return None

    # --- one trial, which changes the cluster

    def _clearings(self, node: ClusterRow, rows: Sequence[int], more: int) -> list[tuple[ClusterRow, Sequence[int]]]:
        """Return the clearings after which the replacements of these pods run on other nodes, this clearing last, with
        at most `more` further evictions. Empty if a replacement is unschedulable."""
        if self._trials <= 0:
            return []
        self._trials -= 1
        cluster = self._run.cluster
        before = cluster.snapshot.cluster.nodes[node]
        cluster.replace_node(node, set_cordon(before, unschedulable=True))
        self._evict(rows)
        first: list[tuple[ClusterRow, Sequence[int]]] = []
        for row in self._sort_rows(rows):
            if not self._is_placed(row):
                moves = self._room_for(row, more) if more else []
                if not moves or not self._is_placed(row):
                    return []
                first += moves
                more -= sum(len(its) for _, its in moves)
        cluster.replace_node(node, before)
        return [*first, (node, rows)]

    def _room_for(self, row: int, most: int) -> list[tuple[ClusterRow, Sequence[int]]]:
        """Return the clearings that make room for a replacement; if there are none, the cluster is left unchanged."""
        run, cluster = self._run, self._run.cluster
        places = _nearest_places(run.cycle(row), _MOST_NEXT_PLACES)
        for size in range(1, most + 1):
            for place in places:
                for rows in islice(self._enough(place, size), _MOST_SETS):
                    mark, evicted = cluster.mark(), len(self._evicted)
                    if moves := self._clearings(place.node, rows, most - size):
                        return moves
                    cluster.revert(mark)
                    del self._evicted[evicted:]
        return []

    def _carried_out(self, clearings: Sequence[tuple[ClusterRow, Sequence[int]]], goal: Sequence[int]) -> _Moves | None:
        """Return the moves with the nodes of the replacements if a person carries out the clearings in this order; None
        if a pod does not fit."""
        cluster = self._run.cluster
        mark = cluster.mark()
        try:
            before = {node: cluster.snapshot.cluster.nodes[node] for node, _ in clearings}
            for node, old_node in before.items():
                cluster.replace_node(node, set_cordon(old_node, unschedulable=True))
            done: list[_Clearing] = []
            for node, rows in clearings:
                self._evict(rows)
                order = self._sort_rows(rows)
                if not all(map(self._is_placed, order)):
                    return None
                pods = tuple(_MovedPod(row=row, to=ClusterRow(int(cluster.pods.node[row]))) for row in order)
                done.append(_Clearing(node=node, pods=pods))
                cluster.replace_node(node, before[node])
            is_reached = [self._is_placed(row) for row in goal]
            return _Moves(clearings=tuple(done)) if all(is_reached[-1:]) else None
        except UndecidableError:
            return None
        finally:
            cluster.revert(mark)
            self._evicted.clear()

    def _evict(self, rows: Iterable[int]) -> None:
        for row in rows:
            evict(self._run, row, waits=True)
            self._evicted.append(row)

    def _sort_rows(self, rows: Iterable[int]) -> list[int]:
        return sorted(rows, key=lambda row: (-int(self._run.cluster.pods.priorities[row]), row))

    def _is_placed(self, row: int) -> bool:
        """Whether the replacement fits a node; if so, it is bound to it."""
        decision = self._run.decide(row)
        if decision.outcome is not Outcome.SCHEDULED:
            return False
        self._run.bind(row, self._pick(decision.choice))
        return True

    # --- selection of pods

    def _enough(self, place: MoveTarget, number: int) -> Iterator[tuple[int, ...]]:
        """Yield sets of so many pods on the node whose eviction makes room, the smallest requests first. All pods that
        use a requested host port belong to every set. Of identical pods of one controller, only one choice is tried."""
        nodes, pods = self._run.scheduler.nodes, self._run.cluster.pods
        short = [finding for finding in place.findings if isinstance(finding, InsufficientResource)]
        if any(finding.never_fits or finding.resource not in nodes.resources.index for finding in short):
            return
        keys = {finding.holder for finding in place.findings if isinstance(finding, HostPortConflict)}
        there = pods.on_node(place.node).tolist()
        holders = tuple(row for row in there if pods.key(row) in keys)  # a deleted pod may have the same name
        number -= len(holders)
        if number < 0 or len(holders) < len(keys) or not all(map(self._is_movable, holders)):
            return
        columns = [nodes.resources.index[finding.resource] for finding in short]
        missing = clamp_int64(finding.short_by for finding in short)
        if holders:
            missing -= nodes.requests.matrix[np.array(holders)][:, columns].sum(axis=0)
            if not number:
                if (missing <= 0).all() and self._is_allowed(holders):
                    yield holders
                return
        rows = [row for row in there if row not in holders and self._is_movable(row)]
        if len(rows) < number:
            return
        freed = nodes.requests.matrix[np.array(rows)][:, columns]
        if columns and (np.sort(freed, axis=0)[-number:].sum(axis=0) < missing).any():
            return
        share = (freed / np.maximum(missing, 1)).sum(axis=1)
        by_class: dict[tuple[str, bytes], list[int]] = {}
        for index in np.argsort(-share, kind="stable").tolist():
            if not columns or freed[index].any():
                owner = next((owner.uid or owner.name for owner in pods.owners[rows[index]] if owner.controller), "")
                by_class.setdefault((owner, freed[index].tobytes()), []).append(index)
        classes = list(by_class.values())
        some = islice(combinations_with_replacement(range(len(classes)), number), _MOST_COMBINATIONS)
        sets = np.array([*some], dtype=np.int64).reshape(-1, number)
        first = np.array([its[0] for its in classes], dtype=np.int64)[sets]
        first, sets = (its[(freed[first].sum(axis=1) >= missing).all(axis=1)] for its in (first, sets))
        for chosen in sets[np.argsort(share[first].sum(axis=1), kind="stable")].tolist():
            counts = Counter[int](chosen)
            if all(count <= len(classes[number]) for number, count in counts.items()):
                its = tuple(rows[index] for number, count in counts.items() for index in classes[number][:count])
                if self._is_allowed((*holders, *its)):
                    yield (*holders, *its)

    def _is_movable(self, row: int) -> bool:
        """Whether an eviction loses nothing: a controller recreates the pod, its priority is not higher, and the same
        scheduler finds the new pod's node."""
        pods = self._run.cluster.pods
        controller = controller_of(pods.owners[row])
        if controller is None or controller.kind not in RECREATING or pods.deletion_timestamps[row]:
            return False
        priority = int(pods.priorities[row])
        is_free = priority <= self._priority and priority < SYSTEM_CRITICAL and row not in self._evicted
        return is_free and not pods.specs[row].resource_claims and self._run.has_profile(row)

    def _is_allowed(self, rows: Iterable[int]) -> bool:
        """Whether every budget allows all of these evictions in addition to those of the trial."""
        needed = Counter[MovingBudget]()
        for row in (*self._evicted, *rows):
            its = self._budgets.of(self._run.cluster.pods, row)
            if len(its) > 1:
                return False  # the API server evicts no such pod
            needed.update(its)
        return all(number <= self._allows(budget) for budget, number in needed.items())

    def _allows(self, budget: MovingBudget) -> int:
        if budget not in self._allowed:
            self._allowed[budget] = budget.current_status(self._run.snapshot, self._run.cluster.pods, ()).allowed
        return self._allowed[budget]


# The goal of a simulation: pods fit, with the fewest evictions for which every evicted pod fits another node.

_MOST_PLACES = 50  # nodes that are tried for a pod, the nearest to fitting first
_MOST_TRIALS = 2_000  # sets of evictions that are tried for a pod
_FITS = "fits"


class Goal(Struct, frozen=True, kw_only=True):
    text: str
    change: SimulatedChange  # the manifests of the pods that should fit, as a change that applies them


def parse_goal(text: str, read: Read) -> Goal:
    """Return the goal `fits pod.yaml`. Raises `InputError`."""
    verb, _, path = text.strip().partition(" ")
    if verb != _FITS or not path.strip():
        raise InputError(f'--goal: found "{text}", allowed is "fits FILE"')
    return Goal(text=text.strip(), change=parse_change(ChangeVerb.APPLY.value, path.strip(), read))


class PodMove(Document, frozen=True):
    pod: str  # `namespace/name`
    source: str = field(name="from")
    to: str


class GoalMove(PodMove, frozen=True):
    """A pod that is evicted, and recreated on another node."""

    room_for: str = field(name="for")


class GoalResult(Document, frozen=True):
    """How far a goal is reached."""

    text: str
    is_reached: bool = field(name="reached")
    moves: tuple[GoalMove, ...]
    placed: tuple[str, ...]
    pending: tuple[str, ...]  # pods of the goal for which no moves make room


def reach(simulator: Simulator, text: str, wanted: Sequence[int]) -> GoalResult:
    """Schedule these pending pods one after the other, and move other pods if necessary. A pod for which no moves make
    room stays pending; nothing is preempted for it. Other pending pods that fit and come before it in the queue take
    their room first, before and after the moves."""
    queue, moves = simulator.queue, list[GoalMove]()
    placed, pending, ahead = list[str](), list[str](), list[int]()
    mark = queue.mark()
    in_order = queue.order(simulator.pending_rows())
    queue.rewind(mark)  # the answer is not about other pods that are gated
    is_wanted = {*queue.order(wanted)}
    for row in in_order:
        if row not in is_wanted:
            ahead.append(row)
            continue
        _schedule_fitting(simulator, ahead)
        key = simulator.pods.key(row)
        if simulator.run.decide(row).outcome is not Outcome.SCHEDULED:
            goal_moves = _carried_out(simulator, row, ahead)
            if goal_moves is None:
                queue.decide_without_preemption(row)
                pending.append(key)
                continue
            moves += goal_moves
            _schedule_fitting(simulator, ahead)
        queue.run([row])
        (placed if simulator.pods.node[row] >= 0 else pending).append(key)
    return GoalResult(
        text=text, is_reached=not pending, moves=tuple(moves), placed=tuple(placed), pending=tuple(pending)
    )


def _schedule_fitting(simulator: Simulator, rows: list[int]) -> None:
    """Schedule the pods that fit, in this order, and leave only the others in the list."""
    for row in [*rows]:
        try:
            fits = simulator.run.decide(row).outcome is Outcome.SCHEDULED
        except UndecidableError:
            fits = False
        if fits:
            mark = simulator.queue.mark()
            simulator.queue.run([row])
            if simulator.pods.node[row] >= 0:
                rows.remove(row)
            else:  # its gang has no room
                simulator.queue.rewind(mark)


def _carried_out(simulator: Simulator, row: int, ahead: Sequence[int]) -> list[GoalMove] | None:
    """Make room for a pod, and for those `ahead` of it that then fit, and return the moves; None if no moves do."""
    run = simulator.run
    try:
        places = _nearest_places(run.cycle(row), _MOST_PLACES)
    except UndecidableError:
        return None
    priority = int(run.cluster.pods.priorities[row])
    search = MoveSearch(run, simulator.base, priority, trials=_MOST_TRIALS, pick=simulator.pick)
    moves = next(search.find(places, goal=(*ahead, row)), None)
    if moves is None:
        return None
    cluster, names = run.cluster, run.cluster.node_names
    pods, room_for = cluster.pods, cluster.pods.key(row)
    keys = {row: pods.key(row) for row in moves.rows}
    simulator.move([(clearing.node, [pod.row for pod in clearing.pods]) for clearing in moves.clearings])
    return [
        GoalMove(
            pod=keys[pod.row],
            source=names[clearing.node],
            to=pods.node_names[pods.rows[keys[pod.row]]] or names[pod.to],
            room_for=room_for,
        )
        for clearing in moves.clearings
        for pod in clearing.pods
    ]
