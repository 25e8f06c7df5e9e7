"""The goal of a simulation: pods fit, with the fewest evictions for which every evicted pod fits another node."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from kschedx.errors import InputError, UndecidableError
from kschedx.framework.cycle import Outcome
from kschedx.kube.documents import Document
from kschedx.simulate.changes import ChangeVerb, Read, SimulatedChange, parse_change
from kschedx.simulate.moves import MoveSearch, nearest_places
from kschedx.simulate.simulator import Simulator

MOST_PLACES = 50
"""Nodes that are tried for a pod, the nearest to fitting first."""
MOST_TRIALS = 2_000
"""Sets of evictions that are tried for a pod."""
FITS = "fits"


class Goal(Struct, frozen=True, kw_only=True):
    text: str
    change: SimulatedChange
    """The manifests of the pods that should fit, as a change that applies them."""


def parse_goal(text: str, read: Read) -> Goal:
    """Return the goal `fits pod.yaml`. Raises `InputError`."""
    verb, _, path = text.strip().partition(" ")
    if verb != FITS or not path.strip():
        raise InputError(f'--goal: found "{text}", allowed is "fits FILE"')
    return Goal(text=text.strip(), change=parse_change(ChangeVerb.APPLY.value, path.strip(), read))


class GoalMove(Document, frozen=True):
    """A pod that is evicted, and recreated on another node."""

    pod: str
    """`namespace/name`."""
    source: str = field(name="from")
    to: str
    room_for: str = field(name="for")


class GoalResult(Document, frozen=True):
    """How far a goal is reached."""

    text: str
    is_reached: bool = field(name="reached")
    moves: tuple[GoalMove, ...]
    placed: tuple[str, ...]
    pending: tuple[str, ...]
    """Pods of the goal for which no moves make room."""


def reach(simulator: Simulator, text: str, rows: Sequence[int]) -> GoalResult:
    """Schedule these pending pods one after the other, and move other pods if necessary. A pod for which no moves make
    room stays pending; nothing is preempted for it."""
    moves: list[GoalMove] = []
    placed, pending = list[str](), list[str]()
    for row in simulator.queue.order(rows):
        key = simulator.pods.key(row)
        if simulator.run.decide(row).outcome is not Outcome.SCHEDULED:
            goal_moves = _carried_out(simulator, row)
            if goal_moves is None:
                pending.append(key)
                continue
            moves += goal_moves
        simulator.queue.run([row])
        (placed if simulator.pods.node[row] >= 0 else pending).append(key)
    return GoalResult(
        text=text, is_reached=not pending, moves=tuple(moves), placed=tuple(placed), pending=tuple(pending)
    )


def _carried_out(simulator: Simulator, row: int) -> list[GoalMove] | None:
    """Make room for a pod and return the moves; None if no moves do."""
    run = simulator.run
    try:
        places = nearest_places(run.cycle(row), MOST_PLACES)
    except UndecidableError:
        return None
    priority = int(run.cluster.pods.priorities[row])
    search = MoveSearch(run, simulator.base, priority, trials=MOST_TRIALS, pick=simulator.pick)
    moves = next(search.find(places, goal=row), None)
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
