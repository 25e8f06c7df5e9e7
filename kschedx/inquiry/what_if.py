"""From a snapshot and changes to the results of its pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from math import prod
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.controllers.states import Refused
from kschedx.controllers.workloads import Workload
from kschedx.errors import InputError, nearest
from kschedx.explain.missing_kinds import require_pods
from kschedx.explain.setup import Setup
from kschedx.inquiry.pod import left_without_pods
from kschedx.inquiry.simulation import Simulation
from kschedx.kube.kueue import Workload as KueueWorkload
from kschedx.progress import Phase, count_items
from kschedx.simulate.apply import ClusterChanges
from kschedx.simulate.changes import ChangeVerb, SimulatedChange
from kschedx.simulate.drain import DrainResult, drain
from kschedx.simulate.moves import Goal, GoalResult, reach
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import ClusterRow, ClusterRows
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import NewNodes
    from kschedx.simulate.simulator import KueueResult

_AskedPods: TypeAlias = Callable[[Snapshot], Iterable[str]]
"""Returns the pods of a cluster, `namespace/name`, that a question is about."""


class ChangedCluster(Struct, frozen=True, kw_only=True):
    """A cluster after changes, which can move on."""

    simulator: Simulator
    by_hand: ClusterChanges
    changes: tuple[SimulatedChange, ...]
    drained: list[DrainResult] = field(default_factory=list)

    @property
    def snapshot(self) -> Snapshot:
        return self.simulator.after

    def simulation(self, *, goal: GoalResult | None = None, kueue: KueueResult | None = None) -> Simulation:
        return Simulation(
            self.simulator,
            changes=self.changes,
            effects=self.by_hand.effects,
            workloads=self.by_hand.workloads,
            refused_pods=self.by_hand.refused,
            drained=self.drained,
            goal=goal,
            kueue=kueue,
        )

    def rows_in_question(self, pods: _AskedPods | None) -> frozenset[int]:
        simulator = self.simulator
        keys = () if pods is None else pods(simulator.after)
        return frozenset(row for key in keys if (row := simulator.row(key)) is not None)


def _updates(changes: Iterable[SimulatedChange]) -> Iterator[Sequence[SimulatedChange]]:
    """Yield changes with those that the API server gets as one update: settings of different fields of one object that
    no other change separates. They may be valid only together."""
    for is_set, some in groupby(changes, key=lambda change: change.verb is ChangeVerb.SET):
        if not is_set:
            yield from ([change] for change in some)
            continue
        by_path: dict[str, list[dict[str, SimulatedChange]]] = {}
        for change in some:
            target, path = change.target_and_path
            of_target = by_path.setdefault(target, [{}])
            if path in of_target[-1]:
                of_target.append({})
            of_target[-1][path] = change
        yield from ([*update.values()] for of_target in by_path.values() for update in of_target)


def change_cluster(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Iterable[SimulatedChange],
    options: SimulationOptions,
    namespace: str,
    *,
    in_question: _AskedPods | None = None,
    held: Collection[Workload] = (),
) -> ChangedCluster:
    """Return the cluster after all changes, in their order. Before a drain, all pending pods are scheduled if other
    changes precede it, otherwise only pods that were created here and those `in_question`, whose turn comes before that
    of the evicted pods. After a drain, the pods that it evicts are scheduled.

    A rollout is over before the next change. The controllers of workloads that are `held` do nothing. Raises
    `InputError` for the first change that cannot be applied.
    """
    simulator = Simulator(snapshot, setup, options, held=held)
    by_hand = ClusterChanges(simulator, namespace)
    changed = ChangedCluster(simulator=simulator, by_hand=by_hand, changes=tuple(wanted))
    is_first = True
    for is_drain, some in groupby(changed.changes, key=lambda change: change.verb is ChangeVerb.DRAIN):
        if is_drain:
            of_question, waited = changed.rows_in_question(in_question), frozenset(snapshot.pods.pending)
            if is_first:
                simulator.settle_created(of_question - waited, also=of_question & waited)
            else:
                simulator.settle(excluded=of_question - waited)
            nodes = dict.fromkeys(by_hand.node(change).name for change in some)
            changed.drained.extend(drain(simulator, nodes, uncordons=False))
            simulator.edit(simulator.snapshot)
            is_first = False
            continue
        is_first = False
        for *fields, change in _updates(some):
            if simulator.manager.is_rolling_out:
                simulator.settle_created(changed.rows_in_question(in_question))
            simulator.manager.end_rollouts()
            by_hand.apply(change, fields)
    return changed


def settle(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[SimulatedChange],
    options: SimulationOptions,
    namespace: str,
    *,
    in_question: _AskedPods | None = None,
    held: Collection[Workload] = (),
) -> ChangedCluster:
    """Return the cluster after changes, with all pods scheduled that they created and evicted, except those
    `in_question`. Of these, the pods that were pending are pending again, with their places free.

    Raises `InputError` for the first change that cannot be applied.
    """
    changed = change_cluster(snapshot, setup, wanted, options, namespace, in_question=in_question, held=held)
    for refusal in (*(error for _, error in changed.by_hand.refused), *changed.simulator.manager.unread.values()):
        raise refusal
    simulator, of_question = changed.simulator, changed.rows_in_question(in_question)
    simulator.settle_created(of_question)
    simulator.unassign(row for row in snapshot.pods.pending if row in of_question and row not in simulator.deleted)
    return changed


def simulate(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[SimulatedChange] = (),
    *,
    options: SimulationOptions | None = None,
    namespace: str = "default",
    goal: Goal | None = None,
    recreated: Iterable[str] = (),
    grow: Callable[[Snapshot, Iterable[str]], NewNodes] | None = None,
) -> Simulation:
    """Apply changes, schedule the pending pods one after the other, and then those of the Workloads that Kueue admits.
    `grow` returns the nodes that autoscalers add in the end for the pods that are pending then.

    With a `goal`, its pods are placed and others are moved for them; of the other pending pods, only those that fit and
    come first are scheduled. Pending pods that are `recreated` are the newest. Raises `InputError` for a change that
    cannot be applied.
    """
    if goal is not None:
        changed = settle(snapshot, setup, wanted, options or SimulationOptions(), namespace)
        simulator = changed.simulator
        first_row = len(simulator.pods)
        changed.by_hand.apply(goal.change)
        changed = replace(changed, changes=(*changed.changes, goal.change))
        goal_result = reach(simulator, goal.text, [row for row in simulator.pending_rows() if row >= first_row])
        return changed.simulation(goal=goal_result)
    changed = change_cluster(snapshot, setup, wanted, options or SimulationOptions(), namespace)
    simulator = changed.simulator
    if changed.changes:
        _create_allowed_pods(simulator, snapshot)
    simulator.queue.is_last(row for key in recreated if (row := simulator.row(key)) is not None)
    simulator.settle(joins=True)
    kueue = None
    if simulator.snapshot.of(KueueWorkload):
        from kschedx.simulate.admission import admit_workloads

        kueue = admit_workloads(simulator)
        simulator.settle(joins=True)
    if grow is not None:
        added = grow(simulator.after, changed.simulation().pending)
        simulator.edit(added.add_to(simulator.snapshot))
        simulator.create(simulator.snapshot, added.pods)
        simulator.settle(joins=True)
    changed.drained[:] = [_after_later_changes(result, changed.snapshot) for result in changed.drained]
    return changed.simulation(kueue=kueue)


def _after_later_changes(drained: DrainResult, snapshot: Snapshot) -> DrainResult:
    """Return a drain with the nodes of evicted pods that fit none at first; their messages stay."""
    table = snapshot.pods
    rows = {pod.pod: row for pod in drained.pending if (row := table.rows.get(pod.pod)) is not None}
    nodes = {pod: table.node_names[row] for pod, row in rows.items() if table.node_names[row] != drained.node}
    return replace(drained, pods=tuple(replace(pod, node=nodes.get(pod.pod, pod.node)) for pod in drained.pods))


def _create_allowed_pods(simulator: Simulator, before: Snapshot) -> None:
    """Let controllers create the pods that the API server refused before the changes and no longer does."""
    for written_pod, explanation in left_without_pods(before, simulator.after, simulator.setup):
        facts, manifest = explanation.lifecycle, written_pod.workload
        if isinstance(facts, Refused) and facts.past and manifest is not None:
            simulator.manager.apply(manifest)
    simulator.manager.sync()


def drain_nodes(
    snapshot: Snapshot,
    setup: Setup,
    nodes: Sequence[str] | None,
    wanted: Sequence[SimulatedChange] = (),
    *,
    options: SimulationOptions,
    namespace: str = "default",
    each: bool = False,
    uncordons: bool = True,
) -> Simulation:
    """Drain nodes one after another, or `each` by itself; without `nodes`, every node by itself. With `uncordons`, each
    is restored before the next one; otherwise all are cordoned first. Only evicted pods are scheduled. Raises
    `InputError`, and `NotReadError` for a dump without pods."""
    require_pods(snapshot)
    changed = settle(snapshot, setup, wanted, options, namespace)
    simulator = changed.simulator
    names = simulator.run.cluster.node_names if nodes is None else _require_nodes(simulator, nodes, snapshot)
    if nodes is not None and not each:
        changed.drained.extend(drain(simulator, names, uncordons=uncordons))
        return changed.simulation()
    mark = simulator.mark()
    for name in count_items(names, Phase.DRAINING, len(names), "nodes"):
        changed.drained.extend(drain(simulator, [name], uncordons=True))
        simulator.revert(mark, keeps_steps=True)
    return changed.simulation()


def _require_nodes(simulator: Simulator, nodes: Sequence[str], before: Snapshot) -> Sequence[str]:
    """Return the nodes. Raises `InputError` for a node that does not exist, or not any more."""
    known = simulator.run.snapshot.cluster.index
    nodes = [before.cluster.full_name(name) for name in nodes]
    for name in nodes:
        if name not in known:
            if name in before.cluster.index:
                raise InputError(f'no node "{name}" after the changes', hint="a change removes it")
            raise InputError(f'no node "{name}" in the snapshot', hint=nearest(name, known))
    return nodes


# Whether the result depends on how ties are broken: all other ways are tried if they are few, otherwise a random
# sample.

_MOST_WAYS = 64  # the maximum number of outcomes that are all tried; of more, a random sample is tried
_LOTS = 8


class OtherOutcomes(Struct, frozen=True, kw_only=True):
    """The results of the same queue with ties broken in other ways."""

    ties: int  # decisions in which several nodes are equally good, for the pod or for preemption
    outcomes: int
    """The number of different assignments of pods to nodes among the tried ways, including the one by name."""
    placed: Mapping[int, int]  # numbers of placed pods to how many of those outcomes have it
    tried: int
    is_all: bool  # whether there is no other way

    @property
    def text(self) -> str:
        """Whether random choices among tied nodes change the result."""
        if not self.ties:
            return "no decision is random"
        text = f"{count(self.ties, 'decision')} {'is' if self.ties == 1 else 'are'} random"
        if self.is_all:
            text += f", {count(self.outcomes - 1, 'other outcome')} possible"
        else:
            text += f"; of {self.tried} random runs and the one by name {self.outcomes:,} differ"
        if len(self.placed) == 1:
            [number] = self.placed
            return f"{text}: {count(number, 'pod')} {'is' if number == 1 else 'are'} scheduled in each"
        placed = ", ".join(f"{number:,} in {of:,}" for number, of in sorted(self.placed.items(), reverse=True))
        return f"{text}: the number of scheduled pods differs, {placed} of them"


class _TieScript(Struct):
    """Breaks ties by given choices, and by the first node after them; records how many nodes each tie is among."""

    choices: tuple[int, ...] = ()
    sizes: list[int] = field(default_factory=list)

    def __call__(self, rows: ClusterRows) -> ClusterRow:
        at = len(self.sizes)
        self.sizes.append(len(rows))
        return ClusterRow(int(rows[self.choices[at] if at < len(self.choices) else 0]))

    def next_script(self) -> _TieScript | None:
        """Return the next way, which changes the last choice that has an alternative; None if this was the last way."""
        chosen = [*self.choices, *[0] * (len(self.sizes) - len(self.choices))]
        while chosen:
            if chosen[-1] + 1 < self.sizes[len(chosen) - 1]:
                return _TieScript((*chosen[:-1], chosen[-1] + 1))
            chosen.pop()
        return None


def other_outcomes(
    simulation: Simulation, options: SimulationOptions, run: Callable[[SimulationOptions], Simulation]
) -> OtherOutcomes:
    """Try all ways to break the ties, or some of them; the result has the number."""
    script: _TieScript | None = _TieScript()
    seen_outcomes, sizes = [_outcome(simulation)], list[int]()
    tried = 0
    while script is not None and tried < _MOST_WAYS and prod(sizes) <= _MOST_WAYS:
        seen_outcomes.append(_outcome(run(replace(options, pick=script))))
        sizes = sizes or script.sizes
        script, tried = script.next_script(), tried + 1
    is_all = script is None
    if not is_all:
        seen_outcomes[1:] = [_outcome(run(replace(options, seed=seed))) for seed in range(1, _LOTS + 1)]
        tried = _LOTS
    outcomes = set(seen_outcomes)
    return OtherOutcomes(
        ties=sum(size > 1 for size in sizes),
        outcomes=len(outcomes),
        placed=Counter(map(len, outcomes)),
        tried=tried,
        is_all=is_all,
    )


def _outcome(simulation: Simulation) -> frozenset[tuple[str, str]]:
    """Return the node of each placed pod."""
    return frozenset(simulation.placed.items())
