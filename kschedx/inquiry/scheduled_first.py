"""Pending pods that come earlier in the queue, which kube-scheduler assigns before the pods in question."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, UndecidableError
from kschedx.explain.notes import Note, note, recreated_pods
from kschedx.explain.setup import Setup
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_MOST_AHEAD = 500  # pods that are scheduled; with more of them, none is


class AssignedFirst(Struct, frozen=True, kw_only=True):
    """The pods that are assigned first, `namespace/name`, with their nodes, and the cluster after that."""

    snapshot: Snapshot
    nodes: Mapping[str, str] = {}
    equals: Collection[str] = ()  # those without a higher priority, which are in the queue for longer

    def note(self, pods: Collection[str], *, leave_room: bool = False) -> Note:
        """Return the note that these of the pods come first."""
        one, several = ("is assigned", "are assigned") if leave_room else ("takes the room", "take the room")
        names = list_names(pods, 3, conjunction="and")
        why = "earlier in the queue" if any(pod in self.equals for pod in pods) else "with a higher priority"
        text = f"{names}, {why}, {one if len(pods) == 1 else several} first"
        return note("scheduled-first", text, pods=[*pods])


_Objection: TypeAlias = Callable[[Snapshot, Pod, Setup, str], str]
_ASSIGNED = Memo[AssignedFirst]()


def assigned_first(snapshot: Snapshot, setup: Setup, pod: Pod, objection: _Objection) -> AssignedFirst:
    """Return the pending pods before this one that get a node, without those about which the cluster reports otherwise:
    an `objection`. They are computed once for a snapshot. A new pod, or one that a change recreates, is the last of its
    priority; of others, those are before it that are known to have been created earlier."""
    pods, own, recreated = snapshot.pods, snapshot.pods.rows.get(pod.key), {*recreated_pods(setup.notes)}
    is_last = own is None or pod.key in recreated
    since = "" if own is None else pods.creation_timestamps[own] or ""
    keys, equals = list[str](), list[str]()
    for row in pods.pending:
        key, priority = pods.key(row), int(pods.priorities[row])
        if row != own and priority > pod.priority:
            keys.append(key)
        elif row != own and priority == pod.priority:
            is_earlier = "" < (pods.creation_timestamps[row] or "") < since and key not in recreated
            equals += [key] if is_last or is_earlier else []
    keys += equals
    if not 0 < len(keys) <= _MOST_AHEAD:
        return AssignedFirst(snapshot=snapshot)
    by: tuple[object, ...] = (setup.scheduler, setup.forced_profile, *keys)
    first = _ASSIGNED.of(snapshot.derived, lambda: _assign(snapshot, setup, keys, objection), *by)
    return replace(first, equals=equals)


def _assign(snapshot: Snapshot, setup: Setup, keys: Collection[str], objection: _Objection) -> AssignedFirst:
    from kschedx.simulate.simulator import SimulationOptions, Simulator

    simulator, rows = Simulator(snapshot, setup, SimulationOptions()), snapshot.pods.rows
    simulator.queue.is_last(rows[key] for key in recreated_pods(setup.notes) if key in rows)
    try:
        simulator.settle(keys)
    except (InputError, UndecidableError):
        return AssignedFirst(snapshot=snapshot)
    known, table = snapshot.pods, simulator.pods
    placed = {key: row for key in keys if (row := simulator.row(key)) is not None and table.node[row] >= 0}
    nodes = {key: table.node_names[row] for key, row in placed.items()}
    undisputed = [key for key in nodes if not objection(snapshot, known[known.rows[key]], setup, nodes[key])]
    if len(undisputed) < len(nodes):
        return _assign(snapshot, setup, undisputed, objection)
    return AssignedFirst(snapshot=simulator.after if nodes else snapshot, nodes=nodes)
