"""The smallest set of pods to evict, on all nodes at once.

Every node stands in a world of its own, so a wave over all of them costs as much as a single filter run: one wave
evicts every pod of lower priority, then the n-th wave asks each node whether its n-th pod may stay.

Upstream: DryRunPreemption in pkg/scheduler/framework/preemption/preemption.go, SelectVictimsOnNode in
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np
from msgspec import Struct

from kschedx.api.policy import PodDisruptionBudget
from kschedx.api.types import Pod
from kschedx.findings import Finding
from kschedx.framework.interface import Handle, Room
from kschedx.framework.outcome import Candidate, FilterOutcome
from kschedx.framework.preemption.kept import KEPT
from kschedx.framework.preemption.victims import Exempt, PotentialVictims, by_importance, exceeding, potential_victims
from kschedx.framework.state import CycleState, NotPreparedError
from kschedx.framework.status import SUCCESS, Code, Status, Verdicts
from kschedx.snapshot.columns import BoolArray, Column, IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow, TableRow, TableRows, each_cluster_row, each_row, of_whole, rows_where

_FEW_NODES = 4

NO_VICTIMS = Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=("No preemption victims found for incoming pod",))
NOT_HELPFUL = Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=("Preemption is not helpful for scheduling",))


class DryRun(Struct, frozen=True, kw_only=True):
    """What preemption could do on each node."""

    candidates: tuple[Candidate, ...]
    """In node order."""
    verdicts: Verdicts
    """(node,) of the whole cluster: Success for a candidate, otherwise why the node is none."""
    ranks: IntArray | None = None
    """(candidate, rule) what the rules of selection say of each, where that is known already."""


class Bounds(Protocol):
    """What a plugin holds a node to beside Filter, while pods leave it and come back; it keeps count of them itself.
    All potential victims have left when it is asked first."""

    def refusal(self, node: ClusterRow) -> Status | None:
        """Why the node is no candidate though the pod fits now."""
        ...

    def stays(self, node: ClusterRow, pod: int, *, fits: bool) -> bool | Status:
        """Whether a pod that has come back may stay; `fits`: Filter lets it. A status ends the node's dry run."""
        ...


class _Tried(Struct, frozen=True, kw_only=True):
    """What came of it, node by node."""

    candidates: Mapping[ClusterRow, Candidate]
    statuses: Mapping[ClusterRow, Status]
    explain: Callable[[ClusterRow], tuple[Finding, ...]] = lambda _: ()


def dry_run(
    handle: Handle,
    state: CycleState,
    pod: Pod,
    nodes: NodeTable,
    budgets: Sequence[PodDisruptionBudget],
    *,
    exempt: Exempt | None = None,
    nobody: Callable[[str], Status] = lambda _: NO_VICTIMS,
    potential: PotentialVictims | None = None,
    bounds: Bounds | None = None,
) -> DryRun:
    """Evict as few pods as possible from each of `nodes`, which stand as in the cluster, so that `pod` fits there.

    Pods that are `exempt` stay whatever their priority is; `nobody` is the status of a node, by name, without any that
    could go. With `potential` these are the ones that could go, in place of those of lower priority.

    Where `state` has `KEPT`, only nodes are tried that have changed since; then the verdicts have no findings.
    """

    def run(nodes: NodeTable, potential: PotentialVictims | None) -> _Tried:
        if potential is None:
            potential = potential_victims(nodes, pod.priority, partial(exceeding, budgets), exempt=exempt)
        trial = Trial(handle=handle, state=state.clone(), pod=pod, nodes=nodes, potential=potential, bounds=bounds)
        return _tried(trial, nobody)

    if potential is not None or KEPT not in state:
        found = run(nodes, potential)
        verdicts = _verdicts(nodes, found.statuses, found.explain)
        return DryRun(candidates=tuple(found.candidates.values()), verdicts=verdicts)
    kept = state[KEPT]
    unknown = kept.unknown(nodes)
    if len(unknown):
        found = run(nodes.take(unknown), None)
        kept.put(found.candidates, found.statuses, nodes.pods)
    candidates, ranks, verdicts = kept.on(nodes, NOT_HELPFUL)
    return DryRun(candidates=candidates, verdicts=verdicts, ranks=ranks)


class Evicted(Struct, frozen=True, kw_only=True):
    """Who has to go; arrays are (victim,)."""

    gone: BoolArray
    unfit: BoolArray
    """Filter does not let the pod in beside these; a disruption budget that this violates counts."""
    failed: Mapping[ClusterRow, Status] = {}

    @classmethod
    def where(cls, gone: BoolArray) -> Evicted:
        return cls(gone=gone, unfit=gone)


class Trial(Struct, frozen=True, kw_only=True):
    """Pods leave the nodes of a table, and come back as long as `pod` fits there beside them."""

    handle: Handle
    state: CycleState
    """The trial's own: it moves with the pods."""
    pod: Pod
    nodes: NodeTable
    potential: PotentialVictims
    """Those of `nodes`."""
    bounds: Bounds | None = None

    def without_anybody(self, world: NodeTable) -> NodeTable:
        """`world`, a part of the nodes, when all potential victims have left. Raises `NotPreparedError`."""
        everyone = self.potential.placed(np.arange(len(self.potential.pods)), self.nodes)
        return self.handle.remove_pods(self.state, self.pod, world, everyone)

    def reprieve(self, world: NodeTable, fits: TableRows) -> Evicted:
        """Which pods must go from the nodes `fits`, rows of `nodes`, that `world` holds without any of theirs."""
        potential = self.potential
        gone = np.zeros(len(potential.pods), dtype=np.bool_)
        unfit = gone.copy()
        failed: dict[ClusterRow, Status] = {}
        turn = 0
        while len(fits):
            more = potential.count[fits] > turn
            fits, world = TableRows(fits[more]), world.take(rows_where(more))
            asked = potential.at(fits, turn)
            world = self.handle.add_pods(self.state, self.pod, world, potential.placed(asked, self.nodes))
            gone[asked] = unfit[asked] = ~self.handle.passes_filters(self.state, self.pod, world).passed
            if self.bounds is not None:
                for node, victim in zip(each_cluster_row(world.rows), asked.tolist(), strict=True):
                    answer = self.bounds.stays(node, int(potential.pods[victim]), fits=not unfit[victim])
                    gone[victim] = answer is not True
                    if isinstance(answer, Status):
                        failed.setdefault(node, answer)
            leaving = potential.placed(asked[gone[asked]], self.nodes)
            world = self.handle.remove_pods(self.state, self.pod, world, leaving)
            turn += 1
        return Evicted(gone=gone, unfit=unfit, failed=failed)

    def candidate(self, row: TableRow, evicted: Evicted, *, by_rank: bool) -> Candidate:
        """The node in a row of `nodes`. `by_rank`: the most important victim is first even where others violate a
        disruption budget."""
        own = slice(int(self.potential.start[row]), int(self.potential.start[row + 1]))
        gone, violating = evicted.gone[own], self.potential.violating[own]
        victims = [int(victim) for victim in self.potential.pods[own][gone]]
        if by_rank and violating.any() and not violating.all():
            victims = by_importance(self.nodes.pods, victims)
        violations = int(np.count_nonzero(violating & evicted.unfit[own]))
        return Candidate(node=self.nodes.cluster_row(row), victims=tuple(victims), pdb_violations=violations)


def _tried(trial: Trial, nobody: Callable[[str], Status]) -> _Tried:
    handle, state, pod, nodes, potential = trial.handle, trial.state, trial.pod, trial.nodes, trial.potential
    names = nodes.cluster.names
    unable = nodes.take(rows_where(potential.count == 0))
    statuses = {node: nobody(names[node]) for node in each_cluster_row(unable.rows)}
    able = rows_where(potential.count > 0)
    world = nodes.take(able)
    try:
        world = trial.without_anybody(world)
    except NotPreparedError as missing:
        # PreFilter rejected the pod before a plugin that would have to know who is gone
        failed = Status(code=Code.ERROR, reasons=(str(missing),))
        statuses |= dict.fromkeys(each_cluster_row(world.rows), failed)
        return _Tried(candidates={}, statuses=statuses)
    outcome = handle.passes_filters(state, pod, world)
    stuck = {world.cluster_row(row): row for row in each_row(rows_where(~outcome.passed))}
    statuses |= {node: _verdict(outcome, row) for node, row in stuck.items()}

    passed = outcome.passed
    if trial.bounds is not None:
        refused = {node: trial.bounds.refusal(node) for node in each_cluster_row(world.rows) if node not in stuck}
        statuses |= {node: status for node, status in refused.items() if status is not None}
        passed = passed & np.array([refused.get(node) is None for node in each_cluster_row(world.rows)], dtype=np.bool_)
    fits = TableRows(able[passed])
    left = world.take(rows_where(passed))
    room = handle.room(state, pod, left) if trial.bounds is None else None
    if room is not None:
        evicted = Evicted.where(_reprieve_by_room(room, fits, potential))
    else:
        evicted = trial.reprieve(left, fits)
    by_rank = handle.release.behaviour.victims_are_ordered_by_importance
    candidates: dict[ClusterRow, Candidate] = {}
    for row in each_row(fits):
        node = nodes.cluster_row(row)
        if node in evicted.failed:
            statuses[node] = evicted.failed[node]
            continue
        found = trial.candidate(row, evicted, by_rank=by_rank)
        if found.victims:
            candidates[node] = found
            statuses[node] = SUCCESS
        else:
            text = f'expected at least one victim pod on node "{names[node]}"'
            statuses[node] = Status(code=Code.ERROR, reasons=(text,))

    def explain(node: ClusterRow) -> tuple[Finding, ...]:
        return outcome.status(stuck[node]).findings if node in stuck else ()

    return _Tried(candidates=candidates, statuses=statuses, explain=explain)


def _reprieve_by_room(room: Room, fits: TableRows, potential: PotentialVictims) -> BoolArray:
    """As `Trial.reprieve`, where a pod fits as long as some sums over the pods of its node stay within bounds.

    `room` is that of the nodes `fits`.
    """
    free, count = room.limit - room.used, potential.count[fits]
    if len(fits) <= _FEW_NODES:
        return _reprieve_one_by_one(room, fits, potential, free)
    evicted = np.zeros(len(potential.pods), dtype=np.bool_)
    every = room.weights(potential.pods)
    for turn in range(int(count.max(initial=0))):
        rows = np.flatnonzero(count > turn)
        asked = potential.at(TableRows(fits[rows]), turn)
        weights = every[asked]
        stays = (weights <= free[rows]).all(axis=1)
        evicted[asked[~stays]] = True
        free[rows[stays]] -= weights[stays]
    return evicted


def _reprieve_one_by_one(room: Room, fits: TableRows, potential: PotentialVictims, free: IntArray) -> BoolArray:
    """The same; for few nodes arrays of one element cost more than the numbers in them."""
    evicted = np.zeros(len(potential.pods), dtype=np.bool_)
    for row, left in zip(fits.tolist(), free.tolist(), strict=True):
        first, last = int(potential.start[row]), int(potential.start[row + 1])
        for victim, weights in enumerate(room.weights(potential.pods[first:last]).tolist(), start=first):
            after = [room - weight for room, weight in zip(left, weights, strict=True)]
            if min(after, default=0) < 0:
                evicted[victim] = True
            else:
                left = after
    return evicted


def _verdict(outcome: FilterOutcome, index: TableRow) -> Status:
    """Why the pod does not fit even then; findings are left to `explain`."""
    nominated = outcome.with_nominated.get(index)
    code = Code(int(outcome.codes[index]))
    plugin = outcome.plugins[int(outcome.plugin[index])]
    if nominated is not None:
        plugin, reasons = nominated.plugin, nominated.reasons
    else:
        reasons = outcome.verdicts[int(outcome.plugin[index])].reasons[index]
    if not code.is_rejection:
        reasons = (f'running "{plugin}" filter plugin: {", ".join(reasons)}',)
    return Status(code=code, reasons=reasons, plugin=plugin)


def _verdicts(
    nodes: NodeTable, statuses: Mapping[ClusterRow, Status], explain: Callable[[ClusterRow], tuple[Finding, ...]]
) -> Verdicts:
    """(node,) of the whole cluster; nodes without a status were not tried."""
    every = [statuses.get(node, NOT_HELPFUL) for node in map(ClusterRow, range(len(nodes.cluster.nodes)))]
    return Verdicts(
        codes=np.array([status.code for status in every], dtype=np.int64),
        reasons=Column.of(status.reasons for status in every),
        explain=lambda row: explain(of_whole(row)),
    )
