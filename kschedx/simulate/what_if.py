"""From a snapshot and changes to what becomes of its pods."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Sequence
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct

from kschedx.controllers.replicas import RefusedReplicas
from kschedx.controllers.update_strategy import Rollout
from kschedx.controllers.workloads import Workload
from kschedx.errors import InputError, nearest
from kschedx.explain.admission import Ledger
from kschedx.explain.setup import Setup
from kschedx.simulate.apply import ChangeEffect, ClusterChanges
from kschedx.simulate.changes import Change, ChangeVerb
from kschedx.simulate.rollout import RolloutResult, roll_out
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.snapshot import Snapshot

AskedPods: TypeAlias = Callable[[Snapshot], Iterable[str]]
"""The pods of a cluster, `namespace/name`, that a question is about."""


class ChangedCluster(Struct, frozen=True, kw_only=True):
    """A cluster after some changes, drains among them."""

    snapshot: Snapshot
    new: tuple[str, ...] = ()
    """`namespace/name` of pods that a change made, or evicted and that wait."""
    added_nodes: tuple[str, ...] = ()
    stages: tuple[Simulator, ...] = ()
    """Where drains and rollouts took decisions, between the other changes."""
    rollouts: tuple[Rollout, ...] = ()
    """Those of the last change, which are about to begin."""
    rolled_out: tuple[RolloutResult, ...] = ()
    """Those of the changes before."""
    effects: tuple[ChangeEffect, ...] = ()
    """Of every change but drains, in their order."""
    refused: tuple[RefusedReplicas, ...] = ()
    """Replicas that the API server does not take."""

    @property
    def unmade(self) -> frozenset[str]:
        """The pods that rollouts have still to make."""
        return _unmade(self.rollouts)


class Settled(Struct, frozen=True, kw_only=True):
    """A cluster after changes, in which everything has its place that they made or evicted."""

    stages: tuple[Simulator, ...]
    effects: tuple[ChangeEffect, ...] = ()
    rolled_out: tuple[RolloutResult, ...] = ()
    refused: tuple[RefusedReplicas, ...] = ()

    @property
    def last(self) -> Simulator:
        return self.stages[-1]

    def simulation(self, setup: Setup, before: Snapshot, changes: Sequence[Change]) -> Simulation:
        return Simulation(
            stages=self.stages,
            setup=setup,
            before=before,
            changes=changes,
            effects=self.effects,
            rolled_out=self.rolled_out,
            refused=self.refused,
        )


def change_cluster(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Iterable[Change],
    options: SimulationOptions,
    namespace: str,
    *,
    asked: AskedPods | None = None,
    theirs: Collection[Workload] = (),
) -> ChangedCluster:
    """The cluster with all changes, in their order. Before a drain, what the changes made is scheduled, but for what is
    `asked` about; after it, what it evicts. A rollout is over before the next change, unless it is of `theirs`: whoever
    asks about those workloads rolls them out.

    Raises `InputError` for the first change that cannot be made.
    """

    workbench = ClusterChanges(snapshot, setup, namespace, recreate=options.recreate, asked=theirs)
    stages: list[Simulator] = []
    rolled_out: list[RolloutResult] = []

    def decide(drained: Sequence[str] = ()) -> None:
        unmade = _unmade(workbench.rollouts)
        new = workbench.changed.new
        stage = Simulator(workbench.snapshot, setup, options, new, base=snapshot, unmade=unmade)
        stage.place(_others(workbench.snapshot, new, asked, unmade))
        quotas = Ledger(workbench.snapshot, setup.release)
        rolled_out.extend(roll_out(stage, rollout, quotas) for rollout in workbench.rollouts)
        stage.drain(dict.fromkeys(drained), comes_back=False)
        stages.append(stage)
        workbench.rollouts.clear()
        workbench.snapshot = quotas.on(stage.after)
        workbench.new |= dict.fromkeys(map(stage.run.cluster.pods.key, stage.queue.queued))

    for is_drain, some in groupby(wanted, key=lambda change: change.verb is ChangeVerb.DRAIN):
        if is_drain:
            decide([workbench.node(change).name for change in some])
            continue
        for change in some:
            if workbench.rollouts:
                decide()
            workbench.apply(change)
    changed = workbench.changed
    waiting = changed.snapshot.pods
    return ChangedCluster(
        snapshot=changed.snapshot,
        new=tuple(key for key in changed.new if not waiting.node_names[waiting.rows[key]]),
        added_nodes=changed.added_nodes,
        stages=tuple(stages),
        rollouts=tuple(workbench.rollouts),
        rolled_out=tuple(rolled_out),
        effects=tuple(workbench.effects),
        refused=tuple(workbench.refused.values()),
    )


def _unmade(rollouts: Iterable[Rollout]) -> frozenset[str]:
    return frozenset(key for rollout in rollouts for key in rollout.new)


def _others(snapshot: Snapshot, pods: Iterable[str], asked: AskedPods | None, unmade: Container[str]) -> list[str]:
    its = {*asked(snapshot)} if asked is not None else set()
    return [key for key in pods if key not in its and key not in unmade]


def settled(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[Change],
    options: SimulationOptions,
    namespace: str,
    *,
    asked: AskedPods | None = None,
    theirs: Collection[Workload] = (),
) -> Settled:
    """The cluster after changes, with what they made and evicted scheduled, but for what is `asked` about, and with
    rollouts but those of `theirs`; the last of these stages ends there.

    Raises `InputError` for the first change that cannot be made.
    """
    world = change_cluster(snapshot, setup, wanted, options, namespace, asked=asked, theirs=theirs)
    last = Simulator(world.snapshot, setup, options, world.new, base=snapshot, unmade=world.unmade)
    last.place(_others(world.snapshot, world.new, asked, world.unmade))
    quotas = Ledger(world.snapshot, setup.release)
    rolled_out = tuple(roll_out(last, rollout, quotas) for rollout in world.rollouts)
    return Settled(
        stages=(*world.stages, last),
        effects=world.effects,
        rolled_out=world.rolled_out + rolled_out,
        refused=world.refused,
    )


def simulate(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[Change] = (),
    *,
    options: SimulationOptions | None = None,
    namespace: str = "default",
    only: Iterable[str] | None = None,
) -> Simulation:
    """Apply changes, and let the pods that wait be scheduled one after the other.

    `only` are the pods to schedule, by `namespace/name`, by default all that wait. Raises `InputError` for a change
    that cannot be applied.
    """
    options = options or SimulationOptions()
    world = change_cluster(snapshot, setup, wanted, options, namespace)
    last = Simulator(world.snapshot, setup, options, world.new, base=snapshot, unmade=world.unmade)
    if only is None:
        last.queue.run(last.waiting())
    else:
        last.place(only)
    quotas = Ledger(world.snapshot, setup.release)
    rolled_out = tuple(roll_out(last, rollout, quotas) for rollout in world.rollouts)
    if rolled_out and only is None:
        last.queue.run(last.waiting())  # there may be room now that there was not before
    return Simulation(
        stages=(*world.stages, last),
        setup=setup,
        before=snapshot,
        changes=wanted,
        effects=world.effects,
        rolled_out=world.rolled_out + rolled_out,
        refused=world.refused,
    )


def drain_in_turn(
    snapshot: Snapshot,
    setup: Setup,
    nodes: Sequence[str],
    wanted: Sequence[Change] = (),
    *,
    options: SimulationOptions,
    namespace: str = "default",
    comes_back: bool,
) -> Simulation:
    """Drain nodes one after another; each is back before the next one where `comes_back`. Only what they evict is
    scheduled. Raises `InputError`."""
    done = settled(snapshot, setup, wanted, options, namespace)
    done.last.drain(_there(done.last, nodes, snapshot), comes_back=comes_back)
    return done.simulation(setup, snapshot, wanted)


def drain_each(
    snapshot: Snapshot,
    setup: Setup,
    nodes: Sequence[str] | None,
    wanted: Sequence[Change] = (),
    *,
    options: SimulationOptions,
    namespace: str = "default",
) -> Simulation:
    """Drain every node by itself, in the cluster as it is after the changes, or those that are named. Raises
    `InputError`."""
    done = settled(snapshot, setup, wanted, options, namespace)
    last = done.last
    mark, made = last.run.cluster.mark(), frozenset(last.queue.made)
    for name in last.run.cluster.node_names if nodes is None else _there(last, nodes, snapshot):
        last.drain([name], comes_back=True)
        last.run.cluster.revert(mark)
        last.queue.forget(made)
    return done.simulation(setup, snapshot, wanted)


def _there(last: Simulator, nodes: Sequence[str], before: Snapshot) -> Sequence[str]:
    """Raises `InputError` for a node that is not there, or not any more."""
    known = last.run.snapshot.cluster.index
    for name in nodes:
        if name not in known:
            hint = "a change removes it" if name in before.cluster.index else nearest(name, known)
            raise InputError(f'no node "{name}" after the changes', hint=hint)
    return nodes
