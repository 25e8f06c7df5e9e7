"""Pending pods of a higher priority that take the room of a pod which would fit without them."""

from __future__ import annotations

from collections.abc import Iterator

from kschedx.errors import InputError, UndecidableError
from kschedx.explain.notes import Note, note
from kschedx.explain.setup import Setup
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_MOST_AHEAD = 50  # pods that are scheduled for the note


def scheduled_first(snapshot: Snapshot, setup: Setup, pod: Pod) -> Iterator[Note]:
    """Yield a note that a pending pod of the cluster finds no node once those of a higher priority have theirs."""
    pods = snapshot.pods
    if pod.key not in pods.rows or pods.node_names[pods.rows[pod.key]]:
        return
    rows = [row for row in pods.pending if int(pods.priorities[row]) > pod.priority]
    if not 0 < len(rows) <= _MOST_AHEAD:
        return
    from kschedx.simulate.simulator import SimulationOptions, Simulator

    ahead = [pods.key(row) for row in rows]
    try:
        simulator = Simulator(snapshot, setup, SimulationOptions())
        simulator.settle([*ahead, pod.key])
    except (InputError, UndecidableError):
        return
    nodes = simulator.pods.node
    if (own := simulator.row(pod.key)) is None or nodes[own] >= 0:
        return
    first = [key for key in ahead if (row := simulator.row(key)) is not None and nodes[row] >= 0]
    if first:
        takes = "takes" if len(first) == 1 else "take"
        text = f"{list_names(first, 3, conjunction='and')}, with a higher priority, {takes} the room first"
        yield note("scheduled-first", f"{text}: then {pod.key} stays pending", pods=first)
