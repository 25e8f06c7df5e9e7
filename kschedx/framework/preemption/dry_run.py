"""The smallest set of pods to evict, on all nodes at once.

Every node stands in a world of its own, so a wave over all of them costs as much as a single filter run: one wave
evicts every pod of lower priority, then the n-th wave asks each node whether its n-th pod may stay.

Upstream: DryRunPreemption in pkg/scheduler/framework/preemption/preemption.go, SelectVictimsOnNode in
pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import Struct

from kschedx.api.types import Pod, PodDisruptionBudget
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
) -> DryRun:
    """Evict as few pods as possible from each of `nodes`, which stand as in the cluster, so that `pod` fits there.

    Pods that are `exempt` stay whatever their priority is; `nobody` is the status of a node, by name, without any that
    could go.

    Where `state` has `KEPT`, only nodes are tried that have changed since; then the verdicts have no findings.
    """
    attempt = partial(_try, handle, state, pod, budgets=budgets, exempt=exempt, nobody=nobody)
    if KEPT not in state:
        tried = attempt(nodes)
        verdicts = _verdicts(nodes, tried.statuses, tried.explain)
        return DryRun(candidates=tuple(tried.candidates.values()), verdicts=verdicts)
    kept = state[KEPT]
    unknown = kept.unknown(nodes)
    if len(unknown):
        tried = attempt(nodes.take(unknown))
        kept.put(tried.candidates, tried.statuses, nodes.pods)
    candidates, ranks, verdicts = kept.on(nodes, NOT_HELPFUL)
    return DryRun(candidates=candidates, verdicts=verdicts, ranks=ranks)


def _try(
    handle: Handle,
    state: CycleState,
    pod: Pod,
    nodes: NodeTable,
    *,
    budgets: Sequence[PodDisruptionBudget],
    exempt: Exempt | None,
    nobody: Callable[[str], Status],
) -> _Tried:
    state = state.clone()
    potential = potential_victims(nodes, pod.priority, partial(exceeding, budgets), exempt=exempt)
    names = nodes.cluster.names
    unable = nodes.take(rows_where(potential.count == 0))
    statuses = {node: nobody(names[node]) for node in each_cluster_row(unable.rows)}
    able = rows_where(potential.count > 0)
    world = nodes.take(able)
    everyone = potential.placed(np.arange(len(potential.pods)), nodes)
    try:
        world = handle.remove_pods(state, pod, world, everyone)
    except NotPreparedError as missing:
        # PreFilter rejected the pod before a plugin that would have to know who is gone
        failed = Status(code=Code.ERROR, reasons=(str(missing),))
        statuses |= dict.fromkeys(each_cluster_row(world.rows), failed)
        return _Tried(candidates={}, statuses=statuses)
    outcome = handle.passes_filters(state, pod, world)
    stuck = {world.cluster_row(row): row for row in each_row(rows_where(~outcome.passed))}
    statuses |= {node: _verdict(outcome, row) for node, row in stuck.items()}

    fits = TableRows(able[outcome.passed])
    left = world.take(rows_where(outcome.passed))
    room = handle.room(state, pod, left)
    if room is not None:
        evicted = _reprieve_by_room(room, fits, potential)
    else:
        evicted = reprieve(handle, state, pod, nodes, left, fits, potential)
    by_rank = handle.release.behaviour.victims_are_ordered_by_importance
    candidates: dict[ClusterRow, Candidate] = {}
    for row in each_row(fits):
        node = nodes.cluster_row(row)
        found = candidate(nodes, row, potential, evicted, by_rank=by_rank)
        if found.victims:
            candidates[node] = found
            statuses[node] = SUCCESS
        else:
            text = f'expected at least one victim pod on node "{names[node]}"'
            statuses[node] = Status(code=Code.ERROR, reasons=(text,))

    def explain(node: ClusterRow) -> tuple[Finding, ...]:
        return outcome.status(stuck[node]).findings if node in stuck else ()

    return _Tried(candidates=candidates, statuses=statuses, explain=explain)


def reprieve(
    handle: Handle,
    state: CycleState,
    pod: Pod,
    nodes: NodeTable,
    world: NodeTable,
    fits: TableRows,
    potential: PotentialVictims,
) -> BoolArray:
    """(victim,) which pods must go from the nodes `fits`, rows of `nodes`, that `world` holds without any of theirs."""
    evicted = np.zeros(len(potential.pods), dtype=np.bool_)
    turn = 0
    while len(fits):
        more = potential.count[fits] > turn
        fits, world = TableRows(fits[more]), world.take(rows_where(more))
        asked = potential.at(fits, turn)
        world = handle.add_pods(state, pod, world, potential.placed(asked, nodes))
        evicted[asked] = ~handle.passes_filters(state, pod, world).passed
        world = handle.remove_pods(state, pod, world, potential.placed(asked[evicted[asked]], nodes))
        turn += 1
    return evicted


def _reprieve_by_room(room: Room, fits: TableRows, potential: PotentialVictims) -> BoolArray:
    """As `reprieve`, where a pod fits as long as some sums over the pods of its node stay within bounds. `room` is that
    of the nodes `fits`."""
    evicted = np.zeros(len(potential.pods), dtype=np.bool_)
    free, count = room.limit - room.used, potential.count[fits]
    for turn in range(int(count.max(initial=0))):
        rows = np.flatnonzero(count > turn)
        asked = potential.at(TableRows(fits[rows]), turn)
        weights = room.weights(potential.pods[asked])
        stays = (weights <= free[rows]).all(axis=1)
        evicted[asked[~stays]] = True
        free[rows[stays]] -= weights[stays]
    return evicted


def candidate(
    nodes: NodeTable, row: TableRow, potential: PotentialVictims, evicted: BoolArray, *, by_rank: bool
) -> Candidate:
    """The node in a row of the table. `by_rank`: the most important victim is first even where others violate a
    disruption budget."""
    own = slice(int(potential.start[row]), int(potential.start[row + 1]))
    gone, violating = evicted[own], potential.violating[own]
    victims = [int(victim) for victim in potential.pods[own][gone]]
    if by_rank and violating.any() and not violating.all():
        victims = by_importance(nodes.pods, victims)
    violations = int(np.count_nonzero(violating & gone))
    return Candidate(node=nodes.cluster_row(row), victims=tuple(victims), pdb_violations=violations)


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
