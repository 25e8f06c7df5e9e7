"""From a snapshot and changes to what becomes of its pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import TypeAlias

from msgspec import Struct

from kschedx.explain.missing import require_nodes_and_pods
from kschedx.explain.setup import Setup
from kschedx.simulate.applying import Workbench
from kschedx.simulate.changes import Change, Read, Verb, changes
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.simulator import Options, Simulator
from kschedx.snapshot.snapshot import Snapshot

Asked: TypeAlias = Callable[[Snapshot], Iterable[str]]
"""The pods of a cluster, `namespace/name`, that a question is about."""


class World(Struct, frozen=True, kw_only=True):
    """A cluster after some changes, drains among them."""

    snapshot: Snapshot
    new: tuple[str, ...] = ()
    """`namespace/name` of pods that a change made, or evicted and that wait."""
    added_nodes: tuple[str, ...] = ()
    stages: tuple[Simulator, ...] = ()
    """Where drains took decisions, between the other changes."""


def changed_world(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Iterable[Change],
    options: Options,
    namespace: str,
    *,
    asked: Asked | None = None,
) -> World:
    """The cluster with all changes, in their order. Before a drain, what the changes made is scheduled, but for what is
    `asked` about; after it, what it evicts.

    Raises `InputError` for the first change that cannot be made.
    """
    workbench = Workbench(snapshot, setup, namespace)
    stages: list[Simulator] = []
    for is_drain, some in groupby(wanted, key=lambda change: change.verb is Verb.DRAIN):
        if not is_drain:
            for change in some:
                workbench.apply(change)
            continue
        nodes = [workbench.node(change).name for change in some]
        stage = Simulator(workbench.snapshot, setup, options, workbench.changed.new, base=snapshot)
        stage.place(_others(workbench.snapshot, workbench.changed.new, asked))
        stage.drain(dict.fromkeys(nodes), comes_back=False)
        stages.append(stage)
        workbench.snapshot = stage.after
        workbench.new |= dict.fromkeys(map(stage.run.cluster.pods.key, stage.queue.queued))
    changed = workbench.changed
    waiting = changed.snapshot.pods
    return World(
        snapshot=changed.snapshot,
        new=tuple(key for key in changed.new if not waiting.node_names[waiting.rows[key]]),
        added_nodes=changed.added_nodes,
        stages=tuple(stages),
    )


def _others(snapshot: Snapshot, pods: Iterable[str], asked: Asked | None) -> list[str]:
    its = {*asked(snapshot)} if asked is not None else set()
    return [key for key in pods if key not in its]


def settled(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[Change],
    options: Options,
    namespace: str,
    *,
    asked: Asked | None = None,
) -> tuple[Simulator, ...]:
    """The cluster after changes, with what they made and evicted scheduled, but for what is `asked` about; the last of
    these stages ends there.

    Raises `InputError` for the first change that cannot be made.
    """
    world = changed_world(snapshot, setup, wanted, options, namespace, asked=asked)
    last = Simulator(world.snapshot, setup, options, world.new, base=snapshot)
    last.place(_others(world.snapshot, world.new, asked))
    return *world.stages, last


def simulate(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[Change] = (),
    *,
    options: Options | None = None,
    namespace: str = "default",
    only: Iterable[str] | None = None,
) -> Simulation:
    """Apply changes, and let the pods that wait be scheduled one after the other.

    `only` are the pods to schedule, by `namespace/name`, by default all that wait. Raises `InputError` for a change
    that cannot be applied.
    """
    options = options or Options()
    world = changed_world(snapshot, setup, wanted, options, namespace)
    last = Simulator(world.snapshot, setup, options, world.new, base=snapshot)
    if only is None:
        last.queue.run(last.waiting())
    else:
        last.place(only)
    return Simulation(stages=(*world.stages, last), setup=setup, before=snapshot, changes=wanted)


def drain_in_turn(
    snapshot: Snapshot,
    setup: Setup,
    nodes: Sequence[str],
    wanted: Sequence[Change] = (),
    *,
    options: Options,
    namespace: str = "default",
    comes_back: bool,
) -> Simulation:
    """Drain nodes one after another; each is back before the next one where `comes_back`. Only what they evict is
    scheduled. Raises `InputError`."""
    stages = settled(snapshot, setup, wanted, options, namespace)
    stages[-1].drain(nodes, comes_back=comes_back)
    return Simulation(stages=stages, setup=setup, before=snapshot, changes=wanted)


def drain_each(
    snapshot: Snapshot,
    setup: Setup,
    nodes: Sequence[str],
    wanted: Sequence[Change] = (),
    *,
    options: Options,
    namespace: str = "default",
) -> Simulation:
    """Drain every node by itself, in the cluster as it is. Raises `InputError`."""
    stages = settled(snapshot, setup, wanted, options, namespace)
    last = stages[-1]
    mark, made = last.run.cluster.mark(), frozenset(last.queue.made)
    for name in nodes:
        last.drain([name], comes_back=True)
        last.run.cluster.revert(mark)
        last.queue.forget(made)
    return Simulation(stages=stages, setup=setup, before=snapshot, changes=wanted)


def simulate_queue(
    snapshot: Snapshot,
    *,
    changes_written: Iterable[object] = (),
    read: Read,
    namespace: str = "default",
    options: Options | None = None,
    config: Mapping[str, object] | None = None,
    profile: str | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
) -> Simulation:
    """The same from settings as `kschedx.explain` takes them."""
    require_nodes_and_pods(snapshot)
    setup = Setup.for_cluster(
        snapshot, config=config, profile=profile, kube_version=kube_version, feature_gates=feature_gates
    )
    return simulate(snapshot, setup, changes(changes_written, read), options=options, namespace=namespace)
