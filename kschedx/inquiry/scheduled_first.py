"""Pending pods of a higher priority, which kube-scheduler assigns before the pods in question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from msgspec import Struct

from kschedx.errors import InputError, UndecidableError
from kschedx.explain.notes import Note, note
from kschedx.explain.setup import Setup
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_MOST_AHEAD = 200  # pods that are scheduled; with more of them, none is


class AssignedFirst(Struct, frozen=True, kw_only=True):
    """The pods that are assigned first, `namespace/name`, with their nodes, and the cluster after that."""

    snapshot: Snapshot
    nodes: Mapping[str, str] = {}

    def note(self, pods: Collection[str]) -> Note:
        """Return the note that these of the pods come first."""
        takes = "takes" if len(pods) == 1 else "take"
        names = list_names(pods, 3, conjunction="and")
        return note("scheduled-first", f"{names}, with a higher priority, {takes} the room first", pods=[*pods])


_Objection: TypeAlias = Callable[[Snapshot, Pod, Setup, str], str]
_ASSIGNED = Memo[AssignedFirst]()


def assigned_first(snapshot: Snapshot, setup: Setup, priority: int, objection: _Objection) -> AssignedFirst:
    """Return the pending pods above a priority that get a node, without those about which the cluster reports
    otherwise: an `objection`. They are computed once for a snapshot."""
    pods = snapshot.pods
    rows = [row for row in pods.pending if int(pods.priorities[row]) > priority]
    if not 0 < len(rows) <= _MOST_AHEAD:
        return AssignedFirst(snapshot=snapshot)
    keys = [*map(pods.key, rows)]
    by: tuple[object, ...] = (setup.scheduler, setup.forced_profile, *keys)
    return _ASSIGNED.of(snapshot.derived, lambda: _assign(snapshot, setup, keys, objection), *by)


def _assign(snapshot: Snapshot, setup: Setup, keys: Collection[str], objection: _Objection) -> AssignedFirst:
    from kschedx.simulate.simulator import SimulationOptions, Simulator

    simulator = Simulator(snapshot, setup, SimulationOptions())
    try:
        simulator.settle(keys)
    except (InputError, UndecidableError):
        return AssignedFirst(snapshot=snapshot)
    known, table = snapshot.pods, simulator.pods
    rows = {key: row for key in keys if (row := simulator.row(key)) is not None and table.node[row] >= 0}
    nodes = {key: table.node_names[row] for key, row in rows.items()}
    undisputed = [key for key in nodes if not objection(snapshot, known[known.rows[key]], setup, nodes[key])]
    if len(undisputed) < len(nodes):
        return _assign(snapshot, setup, undisputed, objection)
    return AssignedFirst(snapshot=simulator.after if nodes else snapshot, nodes=nodes)
