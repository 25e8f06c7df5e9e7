"""A cluster that is moved: a run, its queue, and drains."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
from msgspec import Struct

from kschedx.explain.setup import Setup
from kschedx.framework.moving import Run
from kschedx.simulate.drain import DrainResult, Evictor
from kschedx.simulate.queue import Pick, Queue
from kschedx.snapshot.columns import ClusterRow, ClusterRows, IntArray
from kschedx.snapshot.edits import with_only_pods
from kschedx.snapshot.snapshot import Snapshot


class SimulationOptions(Struct, frozen=True, kw_only=True):
    """How a queue is run."""

    recreate: bool = True
    """Controllers make anew what is evicted."""
    seed: int | None = None
    """Ties are settled by lot, from this number; by name where it is None."""
    pick: Pick | None = None
    """Settles them in place of either."""
    force: bool = False
    """A drain deletes pods that no controller makes anew."""
    delete_emptydir_data: bool = False
    """A drain evicts pods that keep data in an emptyDir."""


class Simulator:
    """One stretch of time in which pods come and go, and nobody changes the cluster by hand."""

    def __init__(
        self,
        start: Snapshot,
        setup: Setup,
        options: SimulationOptions,
        new: Iterable[str] = (),
        *,
        base: Snapshot | None = None,
        unmade: Iterable[str] = (),
    ) -> None:
        """`new` are pods that were made only now, by `namespace/name`; `base` is the cluster as it was read, which is
        the start where nobody changed it; `unmade` are pods that a rollout has still to make."""
        self.start = start
        self._base = base or start
        self.setup = setup
        self.options = options
        self.run = self.begun()
        known, is_forced = setup.scheduler_names, setup.forced_profile is not None
        self.pick = options.pick or (pick_by_name(self.run) if options.seed is None else pick_by_lot(options.seed))
        self.queue = Queue(
            self.run,
            self.pick,
            recreate=options.recreate,
            known=lambda name: is_forced or name in known,
        )
        self.queue.is_last(start.pods.rows[key] for key in new)
        self.drained: list[DrainResult] = []
        self.scenes: dict[str, Snapshot] = {}
        """The first nodes whose drain left pods without another, to the cluster as it was then."""
        self.unmade = frozenset(start.pods.rows[key] for key in unmade)
        """Rows of pods that nobody has made, or that went while they waited."""

    def begun(self) -> Run:
        """The cluster as it was in the beginning, to be moved."""
        setup = self.setup
        profile = None if setup.forced_profile is None else setup.scheduler.config.profile_for(setup.forced_profile)
        return Run(setup.scheduler_on(self.start), profile)

    def waiting(self) -> list[int]:
        """Rows of the pods that wait, in the order of the queue."""
        pods = self.run.cluster.pods
        return self.queue.order(
            row for row in pods.pending if row not in self.unmade and not pods.deletion_timestamps[row]
        )

    def make(self, rows: Iterable[int]) -> None:
        """A controller makes pods, which wait from now on."""
        self.unmade -= {*rows}

    def take(self, row: int) -> None:
        """A controller deletes a pod for good, whether it runs or waits."""
        if self.run.cluster.pods.node[row] >= 0:
            self.queue.depart(row, waits=False)
        else:
            self.unmade |= {row}

    def place(self, pods: Iterable[str]) -> None:
        """Let these pods be scheduled, in the order of the queue."""
        rows = self.run.cluster.pods.rows
        self.queue.run(self.queue.order(rows[key] for key in pods))

    def drain(self, nodes: Iterable[str], *, comes_back: bool) -> None:
        """Drain nodes one after another, each followed by the queue of what it left without a node."""
        evictor = Evictor(
            self.run,
            self.queue,
            self._base,
            force=self.options.force,
            delete_emptydir_data=self.options.delete_emptydir_data,
            recreate=self.options.recreate,
            scenes=self.scenes,
        )
        self.drained += evictor.drain(nodes, comes_back=comes_back)

    @property
    def left(self) -> frozenset[int]:
        """Rows of pods that are gone for good, or that nobody has made."""
        return self.unmade.union(self.run.cluster.pods.gone)

    @property
    def after(self) -> Snapshot:
        """The cluster as it stands, without the pods that are gone for good."""
        frozen = self.run.cluster.frozen()
        left = self.left
        if not left:
            return frozen
        return with_only_pods(frozen, np.setdiff1d(np.arange(len(frozen.pods)), sorted(left)))


def pick_by_name(run: Run) -> Pick:
    """The first name in alphabetical order."""
    names: tuple[str, ...] = ()
    ranks: IntArray = np.zeros(0, dtype=np.int64)

    def pick(rows: ClusterRows) -> ClusterRow:
        nonlocal names, ranks
        if names is not run.cluster.node_names:
            names = run.cluster.node_names
            ranks = np.argsort(np.argsort(np.array(names, dtype=np.str_)))
        return ClusterRow(int(rows[ranks[rows].argmin()]))

    return pick


def pick_by_lot(seed: int) -> Pick:
    """As kube-scheduler does, but the same every time."""
    dice = random.Random(seed)
    return lambda rows: ClusterRow(int(rows[dice.randrange(len(rows))]))
