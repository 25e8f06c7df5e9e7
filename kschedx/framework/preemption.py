"""Preemption: a dry run on every node where evicting pods could help, and the choice of the node.

`dry_run` finds the smallest set of victims on each node, and `best_candidates` picks the node. `victims` lists the pods
that each node could give up. Upstream: pkg/scheduler/framework/preemption, and the parts of
pkg/scheduler/framework/plugins/defaultpreemption that it calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Protocol

import numpy as np
from msgspec import Struct

from kschedx.findings import Finding
from kschedx.framework.interface import CycleState, Handle, NotPreparedError, Room, StateKey
from kschedx.framework.status import (
    SUCCESS,
    Candidate,
    Code,
    FilterOutcome,
    FirstRejection,
    Status,
    Verdicts,
    unresolvable,
)
from kschedx.framework.victims import (
    Exempt,
    PotentialVictims,
    Rankings,
    budget_coverage,
    potential_victims,
    sort_victims,
)
from kschedx.kube.scalars import LATEST
from kschedx.kube.types import Pod
from kschedx.snapshot.columns import (
    BoolArray,
    ClusterRow,
    ClusterRows,
    Column,
    IntArray,
    TableRows,
    as_cluster_row,
    cluster_rows,
    each_cluster_row,
    each_row,
    first_rows,
    rows_where,
)
from kschedx.snapshot.nodes import NodeTable, PodRows
from kschedx.snapshot.pods import PodTable

# The choice of the best candidate.
#
# Upstream: pickOneNodeForPreemption in pkg/scheduler/framework/preemption/preemption.go.

_NO_NEGATIVE = 2**31  # added to each priority, an int32, before the sum: more victims never have a smaller sum


_RULES = 5  # the number of rules of selection


def ranks(candidates: Sequence[Candidate], pods: PodTable, *, by_start: bool = True) -> IntArray:
    """Return (rule, candidate) violated budgets, the highest priority, the sum of the priorities, the number of
    victims, and the latest start. The lowest number wins; a rule only distinguishes candidates that are equal by all
    rules before it. The scheduler before the framework has no rule about the start.

    Each candidate has victims.
    """
    if not candidates:
        return np.zeros((_RULES, 0), dtype=np.int64)
    count = np.array([len(candidate.victims) for candidate in candidates], dtype=np.int64)
    victims = np.array([victim for candidate in candidates for victim in candidate.victims], dtype=np.int64)
    first, priorities = np.cumsum(count) - count, pods.priorities[victims]
    numbers = [
        np.array([candidate.pdb_violations for candidate in candidates], dtype=np.int64),
        priorities[first],
        np.add.reduceat(priorities + _NO_NEGATIVE, first),
        count,
    ]
    if by_start:
        is_highest = priorities == np.repeat(np.maximum.reduceat(priorities, first), count)
        # the earliest start among the victims of the highest priority, negated: the latest one is best
        numbers.append(-np.minimum.reduceat(np.where(is_highest, pods.started[victims], LATEST), first))
    return np.array(numbers, dtype=np.int64)


def best_candidates(candidates: Sequence[Candidate], ranked: IntArray) -> tuple[Candidate, ...]:
    """The candidates that no rule distinguishes; kube-scheduler picks any of them. `ranked` are their `ranks`."""
    rows = np.arange(len(candidates))
    for numbers in ranked if candidates else ():
        rows = rows[numbers[rows] == numbers[rows].min()]
    return tuple(candidates[row] for row in rows.tolist())


# Results of dry runs for one equivalence class of pods, node by node, kept as long as the nodes do not change.


_MOST_AHEAD = 512  # nodes that are tried ahead at a time


class KeptDryRuns:
    """Kept dry runs; arrays are (node,) over the whole cluster. Unlike other values of a CycleState, this one changes
    in place: the caller passes what changed to `follow` and `forget`.

    A plugin that reads the pods of other nodes has no part in them, since its verdicts change with every move. Its
    current verdicts come on top (`on`), which is right as long as it reads no potential victim.

    While identical pods preempt others one after the other, the nodes that come next are tried ahead, many at once.
    """

    def __init__(self, count: int, plugins: Iterable[str]) -> None:
        """`plugins` are the Filter plugins in order."""
        self._place_of = {name: place for place, name in enumerate(plugins)}
        self.holds = True  # whether no plugin that reads the pods of other nodes has read a potential victim so far
        self._ahead: dict[ClusterRow, tuple[Candidate | None, Status]] = {}
        """Node to its dry run with a pod identical to `_preemptor` in place of its victims."""
        self._width = 16  # the number of nodes to try ahead; 0 after that was of no use
        self._tried = self._used = 0
        """How many nodes were last tried ahead, and how many of these results have been used."""
        self._preemptor = -1  # the row of the pod that replaces the victims there
        self._goes_on = False  # whether the only move since a dry run is that a pod replaced its victims
        self._is_known = np.zeros(count, dtype=np.bool_)
        self._codes: IntArray = np.zeros(count, dtype=np.int64)
        self._place: IntArray = np.zeros(count, dtype=np.int64)
        """The place of the plugin that rejects the node without its victims: -1 if there are none, and behind all
        others if no plugin rejects it."""
        self._reason: IntArray = np.zeros(count, dtype=np.int64)
        self._reasons: dict[tuple[str, ...], int] = {}
        self._candidates = np.full(count, None, dtype=np.object_)  # a `Candidate` if the code is Success
        self._ranks: IntArray = np.zeros((_RULES, count), dtype=np.int64)

    def copy(self) -> KeptDryRuns:
        """Return the results for a class of pods that differ only in what plugins without a part in them read."""
        other = copy(self)
        other._ahead, other._reasons = self._ahead.copy(), self._reasons.copy()
        for name in ("_is_known", "_codes", "_place", "_reason", "_candidates", "_ranks"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def forget(self, nodes: ClusterRows) -> None:
        self._is_known[nodes], self._goes_on = False, False
        for node in each_cluster_row(nodes) if self._ahead else ():
            self._ahead.pop(node, None)

    def follow(self, pods: PodTable, moved: IntArray, its: ClusterRows, signs: IntArray) -> None:
        """Update the results after (move,) pods were added to one node or removed from it; `its` is the node's row."""
        node, last = ClusterRow(int(its[0])), int(moved[-1])
        candidate: Candidate | None = self._candidates[node] if self._is_known[node] else None
        ahead = self._ahead.get(node)
        self.forget(its)
        if candidate is None or signs[-1] < 1 or set(moved[:-1].tolist()) != set(candidate.victims):
            return
        if len(moved) > len(candidate.victims) + 1:
            return
        self._goes_on = True
        if self._preemptor < 0 or not pods.is_like(last, self._preemptor):
            self._preemptor = last
            self._ahead.clear()
        elif ahead is not None:
            self._used += 1
            self.put({} if ahead[0] is None else {node: ahead[0]}, {node: ahead[1]}, pods)

    def next_ahead(self, nodes: NodeTable, priority: int) -> tuple[PodRows, PodRows]:
        """The pods to remove from the nodes that are tried ahead for a pod of this priority, and the pods to add."""
        likely: list[ClusterRow] = []
        if self._goes_on and nodes.pods.priorities[self._preemptor] >= priority:
            self._width = min(2 * self._width, _MOST_AHEAD) if 2 * self._used >= self._tried else self._width // 4
            able = nodes.rows[self._is_known[nodes.rows] & (self._codes[nodes.rows] == 0)]
            order = np.lexsort(self._ranks[::-1, able])[: self._width]
            likely = [node for node in each_cluster_row(ClusterRows(able[order])) if node not in self._ahead]
            self._tried, self._used = len(likely), 0
        leaving = [(victim, node) for node in likely for victim in self._candidates[node].victims]
        victims, places = np.array(leaving, dtype=np.int64).reshape(-1, 2).T
        coming = np.full(len(likely), self._preemptor, dtype=np.int64)
        return PodRows(pods=victims, nodes=ClusterRows(places)), PodRows(pods=coming, nodes=cluster_rows(likely))

    def unknown(self, nodes: NodeTable) -> TableRows:
        """Return the rows of the table that have to be tried."""
        return rows_where(~self._is_known[nodes.rows])

    def put(
        self,
        candidates: Mapping[ClusterRow, Candidate],
        statuses: Mapping[ClusterRow, Status],
        pods: PodTable,
        ahead: ClusterRows | None = None,
    ) -> None:
        """Keep the results of some nodes, of which those in `ahead` were tried ahead."""
        later = frozenset(() if ahead is None else each_cluster_row(ahead))
        for row in later & statuses.keys():
            self._ahead[row] = candidates.get(row), statuses[row]
        now = {row: status for row, status in statuses.items() if row not in later} if later else statuses
        if not now:
            return
        rows, numbers, distinct_statuses = _by_status(now)
        self._is_known[rows], self._candidates[rows] = True, None
        facts = np.array([self._facts(status) for status in distinct_statuses], dtype=np.int64)
        self._codes[rows], self._place[rows], self._reason[rows] = facts[numbers].T
        able = [candidate for row, candidate in candidates.items() if row not in later]
        nodes = [candidate.node for candidate in able]
        self._candidates[nodes] = able
        self._ranks[:, nodes] = ranks(able, pods)

    def _facts(self, status: Status) -> tuple[int, int, int]:
        """Return the code, the place of the plugin, and the number of the reasons."""
        place = self._place_of.get(status.plugin, -1 if status.code.is_rejection else len(self._place_of))
        return status.code, place, self._reasons.setdefault(status.reasons, len(self._reasons))

    def on(
        self, nodes: NodeTable, untried: Status, beside: FilterOutcome
    ) -> tuple[tuple[Candidate, ...], IntArray, Verdicts]:
        """Return the results for nodes that are all known: the candidates in node order, (rule, candidate) results of
        the rules of selection, and the verdicts of the whole cluster, with `untried` for all other nodes. `beside` are
        the current verdicts of the plugins that read other nodes."""
        if nodes.is_whole:
            codes, reason = self._codes.copy(), self._reason.copy()
        else:
            codes = np.full(len(self._codes), int(untried.code), dtype=np.int64)
            reason = np.full(len(self._codes), len(self._reasons), dtype=np.int64)
            codes[nodes.rows], reason[nodes.rows] = self._codes[nodes.rows], self._reason[nodes.rows]
        reasons = [*self._reasons, untried.reasons]
        numbers, rejections = beside.rejections
        for number, rejected in enumerate(rejections):
            first = self._place_of[rejected.plugin] < self._place[nodes.rows]
            rows, verdict = nodes.rows[(numbers == number) & first], _verdict(rejected)
            codes[rows], reason[rows] = verdict.code, len(reasons)
            reasons.append(verdict.reasons)
        able = np.flatnonzero(codes == 0)
        candidates: tuple[Candidate, ...] = tuple(self._candidates.take(able).tolist())
        verdicts = Verdicts(codes=codes, reasons=Column(reason, reasons))
        return candidates, self._ranks.take(able, axis=1), verdicts


def _by_status(statuses: Mapping[ClusterRow, Status]) -> tuple[ClusterRows, IntArray, list[Status]]:
    """Return (node,) the nodes, and the place of each one's status among the distinct statuses, in the order of the
    nodes. Thousands of nodes share a few."""
    rows = cluster_rows(list(statuses))
    ids = np.fromiter(map(id, statuses.values()), dtype=np.int64, count=len(rows))
    first, numbers = first_rows(ids)
    order, values = first.argsort(), list(statuses.values())
    return rows, order.argsort()[numbers], [values[row] for row in first[order].tolist()]


KEPT: StateKey[KeptDryRuns] = StateKey("KeptDryRuns")


# The smallest set of pods to evict, on all nodes at once.
#
# Each node is evaluated independently, so a wave over all nodes costs as much as a single filter run. The first wave
# evicts every pod of lower priority; then the n-th wave checks on each node whether the n-th pod may stay.
#
# Upstream: DryRunPreemption in pkg/scheduler/framework/preemption/preemption.go, SelectVictimsOnNode in
# pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go.

_FEW_NODES = 4

NO_VICTIMS = unresolvable("No preemption victims found for incoming pod")
NOT_HELPFUL = unresolvable("Preemption is not helpful for scheduling")


class DryRun(Struct, frozen=True, kw_only=True):
    """The result of the dry run on each node."""

    candidates: tuple[Candidate, ...]  # in node order
    verdicts: Verdicts  # (node,) for the whole cluster: Success for a candidate, otherwise why the node is none
    ranks: IntArray | None = None  # (rule, candidate) results of the rules of selection, if known already


class _Bounds(Protocol):
    """A plugin's bounds on a node besides Filter, while pods are removed and added back. The plugin counts these pods
    itself. All potential victims are removed before the first call."""

    def refusal(self, node: ClusterRow) -> Status | None:
        """Return why the node is no candidate although the pod fits now."""
        ...

    def stays(self, node: ClusterRow, pod: int, *, fits: bool) -> bool | Status:
        """Return whether a pod that was added back may stay; `fits`: whether Filter allows it. A status ends the node's
        dry run."""
        ...


class _DryRunResults(Struct, frozen=True, kw_only=True):
    """The results of trying some nodes."""

    candidates: Mapping[ClusterRow, Candidate]
    statuses: Mapping[ClusterRow, Status]
    explain: Callable[[ClusterRow], tuple[Finding, ...]] = lambda _: ()


def dry_run(
    handle: Handle,
    state: CycleState,
    pod: Pod,
    nodes: NodeTable,
    *,
    exempt: Exempt | None = None,
    no_victims: Callable[[str], Status] = lambda _: NO_VICTIMS,
    potential: PotentialVictims | None = None,
    bounds: _Bounds | None = None,
    rankings: Rankings | None = None,
) -> DryRun:
    """Evict as few pods as possible from each of `nodes`, in their current state, so that `pod` fits there.

    `exempt` pods stay, whatever their priority. `no_victims` returns the status of a node, by name, that has no
    potential victims. `potential` replaces the pods of lower priority. `rankings` are kept from one dry run to the
    next.

    If `state` has `KEPT`, only nodes that have changed since are tried; then the verdicts have no findings.
    """

    def possible(nodes: NodeTable) -> PotentialVictims:
        empty_counts = handle.release.behavior.empty_budget_selector_covers_every_pod
        coverage = budget_coverage(handle.snapshot, empty_counts=empty_counts)
        return potential_victims(nodes, pod.priority, coverage.is_exceeded, exempt=exempt, rankings=rankings)

    def run(nodes: NodeTable, potential: PotentialVictims, state: CycleState) -> _DryRunResults:
        trial = PreemptionTrial(handle=handle, state=state, pod=pod, nodes=nodes, potential=potential, bounds=bounds)
        return _dry_run_results(trial, no_victims)

    if potential is None and KEPT in state and state[KEPT].holds:
        kept, far = state[KEPT], handle.far_filters(state, pod)
        kept.holds = not far or not handle.nominated
        unknown = kept.unknown(nodes)
        if len(unknown) and kept.holds:
            own, (leaving, coming) = state.clone(), kept.next_ahead(nodes, pod.priority)
            own.skip_filter |= {plugin.name for plugin in far}
            part = nodes.take(rows_where(np.isin(nodes.rows, np.concatenate([nodes.rows[unknown], coming.nodes]))))
            if len(coming):
                part = handle.remove_pods(own, pod, part, leaving)
                part = handle.add_pods(own, pod, part, coming)
            victims = possible(part)
            everyone = victims.pod_rows(np.arange(len(victims.pods)), part)
            kept.holds = not any(plugin.reads_any(state, pod, part, everyone) for plugin in far)
            if kept.holds:
                tried = run(part, victims, own)
                kept.put(tried.candidates, tried.statuses, nodes.pods, ahead=coming.nodes)
        if kept.holds:
            beside = FilterOutcome.of({plugin.name: plugin.filter(state, pod, nodes) for plugin in far}, len(nodes))
            candidates, ranks, verdicts = kept.on(nodes, NOT_HELPFUL, beside)
            return DryRun(candidates=candidates, verdicts=verdicts, ranks=ranks)
    tried = run(nodes, possible(nodes) if potential is None else potential, state.clone())
    verdicts = _verdicts(nodes, tried.statuses, tried.explain)
    return DryRun(candidates=tuple(tried.candidates.values()), verdicts=verdicts)


class _EvictedPods(Struct, frozen=True, kw_only=True):
    """The victims; arrays are (victim,)."""

    mask: BoolArray
    unfit: BoolArray
    """Whether Filter rejects the preempting pod beside this one. Only then a violated disruption budget counts."""
    failed: Mapping[ClusterRow, Status] = {}

    @classmethod
    def where(cls, evicted: BoolArray) -> _EvictedPods:
        return cls(mask=evicted, unfit=evicted)


class PreemptionTrial(Struct, frozen=True, kw_only=True):
    """A trial in which pods are removed from the nodes of a table, and added back as long as `pod` fits beside them."""

    handle: Handle
    state: CycleState  # its own, which changes with the pods
    pod: Pod
    nodes: NodeTable
    potential: PotentialVictims
    bounds: _Bounds | None = None

    @property
    def everyone(self) -> PodRows:
        """The potential victims."""
        return self.potential.pod_rows(np.arange(len(self.potential.pods)), self.nodes)

    def without_victims(self, table: NodeTable) -> NodeTable:
        """Return `table`, a part of the nodes, without any potential victims. Raises `NotPreparedError`."""
        return self.handle.remove_pods(self.state, self.pod, table, self.everyone)

    def reprieve(self, table: NodeTable, fits: TableRows) -> _EvictedPods:
        """The victims on the nodes `fits`, rows of `nodes`; `table` has these nodes without any potential victims."""
        potential = self.potential
        evicted = np.zeros(len(potential.pods), dtype=np.bool_)
        unfit = evicted.copy()
        failed: dict[ClusterRow, Status] = {}
        turn = 0
        while len(fits):
            more = potential.count[fits] > turn
            fits, table = TableRows(fits[more]), table.take(rows_where(more))
            positions = potential.positions_in_turn(fits, turn)
            table = self.handle.add_pods(self.state, self.pod, table, potential.pod_rows(positions, self.nodes))
            evicted[positions] = unfit[positions] = ~self.handle.passes_filters(self.state, self.pod, table).passed
            if self.bounds is not None:
                for node, victim in zip(each_cluster_row(table.rows), positions.tolist(), strict=True):
                    answer = self.bounds.stays(node, int(potential.pods[victim]), fits=not unfit[victim])
                    evicted[victim] = answer is not True
                    if isinstance(answer, Status):
                        failed.setdefault(node, answer)
            leaving = potential.pod_rows(positions[evicted[positions]], self.nodes)
            table = self.handle.remove_pods(self.state, self.pod, table, leaving)
            turn += 1
        return _EvictedPods(mask=evicted, unfit=unfit, failed=failed)

    def candidates(self, rows: TableRows, evicted: _EvictedPods, *, by_rank: bool) -> Iterator[Candidate]:
        """Yield the candidate for each of these rows of `nodes`. If `by_rank`, the most important victim comes first
        even if others violate a disruption budget."""
        potential, nodes = self.potential, each_cluster_row(ClusterRows(self.nodes.rows[rows]))
        ends = np.stack([potential.start[rows], potential.start[rows + 1]])
        victims, ends_of_evicted = potential.pods[evicted.mask].tolist(), _counts_before(evicted.mask)[ends].T.tolist()
        violations = np.diff(_counts_before(potential.violating & evicted.unfit)[ends], axis=0)[0].tolist()
        protected = np.diff(_counts_before(potential.violating)[ends], axis=0)[0]
        is_mixed = (by_rank & (protected > 0) & (protected < potential.count[rows])).tolist()
        for node, (low, high), number, mixed in zip(nodes, ends_of_evicted, violations, is_mixed, strict=True):
            own = sort_victims(self.nodes.pods, victims[low:high]) if mixed else victims[low:high]
            yield Candidate(node=node, victims=tuple(own), pdb_violations=number)


def _counts_before(mask: BoolArray) -> IntArray:
    """Return (row + 1,) the number of rows in the mask before each place."""
    return np.concatenate([[0], np.cumsum(mask)])


def _dry_run_results(trial: PreemptionTrial, no_victims: Callable[[str], Status]) -> _DryRunResults:
    handle, state, pod, nodes, potential = trial.handle, trial.state, trial.pod, trial.nodes, trial.potential
    names, unable = nodes.cluster.names, ClusterRows(nodes.rows[potential.count == 0])
    statuses = {node: no_victims(names[node]) for node in each_cluster_row(unable)}
    able = rows_where(potential.count > 0)
    table = nodes.take(able)
    try:
        table = trial.without_victims(table)
    except NotPreparedError as missing:
        # PreFilter rejected the pod before it called a plugin that needs to know the removed pods
        failed = Status(code=Code.ERROR, reasons=(str(missing),))
        statuses |= dict.fromkeys(each_cluster_row(table.rows), failed)
        return _DryRunResults(candidates={}, statuses=statuses)
    outcome = handle.passes_filters(state, pod, table)
    stuck = {table.cluster_row(row): row for row in each_row(rows_where(~outcome.passed))}
    numbers, rejections = outcome.rejections
    verdicts = [_verdict(rejected) for rejected in rejections]
    statuses |= {node: verdicts[numbers[row]] for node, row in stuck.items()}

    passed = outcome.passed
    if trial.bounds is not None:
        refused = {node: trial.bounds.refusal(node) for node in each_cluster_row(table.rows) if node not in stuck}
        statuses |= {node: status for node, status in refused.items() if status is not None}
        passed = passed & np.array([refused.get(node) is None for node in each_cluster_row(table.rows)], dtype=np.bool_)
    fits = TableRows(able[passed])
    left = table.take(rows_where(passed))
    # a plugin that PreFilter has not prepared rejects every node, and has no bounds
    room = handle.room(state, pod, left, trial.everyone) if len(left) and trial.bounds is None else None
    if room is not None:
        evicted = _EvictedPods.where(_reprieve_by_room(room, fits, potential))
    else:
        evicted = trial.reprieve(left, fits)
    by_rank = handle.release.behavior.victims_are_ordered_by_importance
    candidates: dict[ClusterRow, Candidate] = {}
    for candidate in trial.candidates(fits, evicted, by_rank=by_rank):
        node = candidate.node
        if node in evicted.failed:
            statuses[node] = evicted.failed[node]
        elif candidate.victims:
            candidates[node] = candidate
            statuses[node] = SUCCESS
        else:
            text = f'expected at least one victim pod on node "{names[node]}"'
            statuses[node] = Status(code=Code.ERROR, reasons=(text,))

    def explain(node: ClusterRow) -> tuple[Finding, ...]:
        return outcome.status(stuck[node]).findings if node in stuck else ()

    return _DryRunResults(candidates=candidates, statuses=statuses, explain=explain)


def _reprieve_by_room(room: Room, fits: TableRows, potential: PotentialVictims) -> BoolArray:
    """Reprieve as `Trial.reprieve` does, if a pod fits as long as sums over the pods of its node stay within bounds.
    Return which potential victims are evicted.

    `room` belongs to the nodes `fits`.
    """
    free, count = room.limit - room.used, potential.count[fits]
    if len(fits) <= _FEW_NODES:
        return _reprieve_singly(room, fits, potential, free)
    evicted = np.zeros(len(potential.pods), dtype=np.bool_)
    every = room.weights(potential.pods)
    for turn in range(int(count.max(initial=0))):
        rows = np.flatnonzero(count > turn)
        positions = potential.positions_in_turn(TableRows(fits[rows]), turn)
        weights = every[positions]
        stays = (weights <= free[rows]).all(axis=1)
        evicted[positions[~stays]] = True
        free[rows[stays]] -= weights[stays]
    return evicted


def _reprieve_singly(room: Room, fits: TableRows, potential: PotentialVictims, free: IntArray) -> BoolArray:
    """Return the same for few nodes, without arrays: those of one element cost more than the numbers in them."""
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


def _verdict(rejected: FirstRejection) -> Status:
    """Return why the pod still does not fit; `explain` adds findings."""
    reasons = rejected.reasons
    if not rejected.code.is_rejection:
        reasons = (f'running "{rejected.plugin}" filter plugin: {", ".join(reasons)}',)
    return Status(code=rejected.code, reasons=reasons, plugin=rejected.plugin)


def _verdicts(
    nodes: NodeTable, statuses: Mapping[ClusterRow, Status], explain: Callable[[ClusterRow], tuple[Finding, ...]]
) -> Verdicts:
    """Return (node,) verdicts for the whole cluster; nodes without a status were not tried."""
    codes = np.full(len(nodes.cluster.nodes), NOT_HELPFUL.code, dtype=np.int64)
    reason = np.zeros(len(codes), dtype=np.int64)
    number_of = {NOT_HELPFUL.reasons: 0}
    rows, numbers, distinct_statuses = _by_status(statuses)
    facts = [(status.code, number_of.setdefault(status.reasons, len(number_of))) for status in distinct_statuses]
    codes[rows], reason[rows] = np.array(facts, dtype=np.int64).reshape(-1, 2)[numbers].T
    return Verdicts(codes=codes, reasons=Column(reason, [*number_of]), explain=lambda row: explain(as_cluster_row(row)))
