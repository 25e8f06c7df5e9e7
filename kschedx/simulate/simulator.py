"""A moving cluster: its scheduler, its queue, and its controllers, from the first change to the last."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property, partial

import numpy as np
from msgspec import Struct

from kschedx.controllers.disruption_budgets import becomes_ready, is_healthy
from kschedx.controllers.due_deletions import rows_to_be_deleted
from kschedx.controllers.manager import OF_CONTROLLERS, Manager, State
from kschedx.controllers.workloads import Workload, is_recreated, ordinal_of
from kschedx.explain.claim_causes import wrong_attributes_class
from kschedx.explain.kubelet import claims_for_one_node
from kschedx.explain.setup import Setup
from kschedx.framework.moving import Run
from kschedx.framework.replicas import Pick
from kschedx.kube.conditions import reports_ready
from kschedx.kube.decoding import Manifest
from kschedx.kube.documents import Document, with_spec
from kschedx.kube.selectors import Selector
from kschedx.kube.types import Pod
from kschedx.simulate.changes import set_cordon
from kschedx.simulate.queue import Queue, QueueMark
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

_MOST_SYNCS = 100_000
"""The largest number of syncs of controllers, each followed by the queue; rollouts end long before this."""


class SimulationOptions(Struct, frozen=True, kw_only=True):
    recreate: bool = True  # whether controllers recreate evicted pods
    seed: int | None = None  # the seed with which ties are broken at random; if it is None, ties are broken by name
    pick: Pick | None = None  # breaks ties instead
    force: bool = False  # whether a drain deletes pods that no controller recreates
    delete_emptydir_data: bool = False
    disable_eviction: bool = False  # whether a drain deletes pods instead of evicting them, so that no budget counts
    pod_selector: Selector | None = None  # the pods that a drain evicts; None for all
    joins: bool = False  # whether identical pods that are assigned in a row are one step of the queue, however few
    needs_volumes: bool = True
    """Whether a pod without the volume of a claim is not available. A question about room leaves that out."""


class KueueResult(Document, frozen=True):
    """What Kueue does with its Workloads, each `namespace/name`."""

    admitted: tuple[str, ...]  # in Kueue's order
    evicted: Mapping[str, str]  # Workloads to Kueue's message
    pending: Mapping[str, str]  # Workloads to Kueue's message; empty if Kueue writes none
    refused: Mapping[str, str]  # admitted Workloads to why the API server refuses their pods


class _Mark(Struct, frozen=True, kw_only=True):
    """A moment to which a simulator can revert."""

    start: Snapshot
    run: Run
    before_start: AbstractSet[int]
    first_step: int
    moves: int
    record: QueueMark
    created: frozenset[int]
    controllers: State
    vacated: frozenset[str]


class Simulator:
    """A moving cluster. Rows of pods never change, whatever is created and deleted."""

    def __init__(
        self,
        snapshot: Snapshot,
        setup: Setup,
        options: SimulationOptions,
        *,
        known: Mapping[Workload, Manifest] = {},
        held: Collection[Workload] = (),
    ) -> None:
        """`known` are earlier manifests of workloads whose newer manifests the snapshot has. The controllers of
        workloads that are `held` do nothing."""
        self.base = snapshot  # the cluster as it was read
        self.start = snapshot  # the cluster after the last manual change
        self.setup = setup
        self.options = options
        self._before_start: AbstractSet[int] = set()
        self._value: tuple[tuple[int, int], Snapshot] | None = None
        self._run: Run | None = self.begun()
        known_names, is_forced = setup.scheduler_names, setup.forced_profile is not None
        self.queue = Queue(
            self._run,
            self.pick,
            recreate=options.recreate,
            joins=options.joins,
            known=lambda name: is_forced or name in known_names,
        )
        self._by_name: tuple[Run, Pick] | None = None
        self._lots = None if options.seed is None else _pick_by_lot(options.seed)
        self.manager = Manager(self, setup, known=known, held=held)
        self.queue.delays = self.manager.recreate
        self.scenes: dict[str, Snapshot] = {}
        """The first nodes whose drain left pods without another node, to the cluster at that moment."""
        self._vacated: set[str] = set()  # nodes that changes and controllers took pods from
        self.first_row = 0  # the first row of pods that a question created
        self.first_step = 0  # the number of steps before the last manual change

    def begun(self) -> Run:
        """Return the cluster after the last manual change, as a run that can move."""
        return run_on(self.start, self.setup)

    @property
    def run(self) -> Run:
        if self._run is None:
            self._run = self.begun()
            self.queue.move_to(self._run)
        return self._run

    def pick(self, rows: ClusterRows) -> ClusterRow:
        if self.options.pick is not None:
            return self.options.pick(rows)
        if self._lots is not None:
            return self._lots(rows)
        if self._by_name is None or self._by_name[0] is not self.run:
            self._by_name = self.run, _pick_by_name(self.run)
        return self._by_name[1](rows)

    # --- the current cluster

    @property
    def snapshot(self) -> Snapshot:
        """The current cluster, as a value; permanently deleted pods keep their rows and count for nothing."""
        if self._run is None:
            return self.start
        now = id(self._run), self._run.cluster.version
        if self._value is None or self._value[0] != now:
            self._value = now, self._run.cluster.frozen()
        return self._value[1]

    @property
    def _current(self) -> Snapshot:
        """The current cluster, in which the pods of a run are those of `pods`."""
        return self.start if self._run is None else self._run.snapshot

    @property
    def pods(self) -> PodTable:
        return self.start.pods if self._run is None else self._run.cluster.pods

    @property
    def workloads(self) -> Mapping[tuple[str, str, str], bytes]:
        """Stored manifests, by kind, namespace, and name."""
        return self._current.workloads

    @property
    def deleted(self) -> AbstractSet[int]:
        """Rows of permanently deleted pods."""
        return self._before_start if self._run is None else self._before_start | self._run.cluster.deleted

    @property
    def after(self) -> Snapshot:
        """The current cluster, as a value, without permanently deleted pods."""
        return self.after_without(())

    def after_without(self, rows: Iterable[int]) -> Snapshot:
        """Return the current cluster without permanently deleted pods and without these."""
        value, gone = self.snapshot, {*self.deleted, *rows}
        if not gone:
            return value
        return with_only_pods(value, np.setdiff1d(np.arange(len(value.pods)), sorted(gone)))

    def row(self, key: str) -> int | None:
        """Return the row of an existing pod, `namespace/name`; None if there is none."""
        row = self.pods.rows.get(key)
        return None if row is None or row in self.deleted else row

    def available(self) -> BoolArray:
        """Return `is_available` of each pod, `(pod,)`."""
        pods, cluster = self.pods, self._current.cluster
        ready = pods.statuses.where(lambda status: reports_ready(status.conditions))
        recreated = [*self.queue.queued, *self.queue.created]
        becomes = [pods.statuses.where(partial(becomes_ready, phase=phase)) for phase in ("Pending", "")]
        is_started = ~pods.phases.where(lambda phase: phase == "Pending")
        ready[recreated] |= np.where(is_started, becomes[1], becomes[0])[recreated]
        ready[[row for row in recreated if self.lacks_volume(row)]] = False
        is_lost = np.array([*(node.is_lost for node in cluster.nodes), True])
        runs: BoolArray = ready & ~is_lost[pods.node] & ~pods.terminating
        return runs

    def is_available(self, row: int) -> bool:
        """Whether a pod is running and ready, on an existing node; pods that the simulation assigned are. Time passes,
        so every ready pod has been ready for its minReadySeconds."""
        pods = self.pods
        if pods.node[row] < 0 or pods.deletion_timestamps[row]:
            return False
        cluster = self._current.cluster
        if cluster.nodes[pods.node[row]].is_lost:
            return False
        if row not in self.queue.queued and row not in self.queue.created:
            return is_healthy(pods, row, ())
        return is_healthy(pods, row, (row,)) and not self.lacks_volume(row) and not self._awaits_detachment(row)

    def _awaits_detachment(self, row: int) -> bool:
        """Whether a pod on another node uses a volume of the pod that is attached to one node at a time."""
        pods, node = self.pods, self.pods.node
        if not any(volume.persistent_volume_claim for volume in pods.specs[row].volumes):
            return False
        return any(
            node[other] not in (-1, node[row]) and other not in self.deleted and not pods.finished[other]
            for claim in claims_for_one_node(self._current, pods[row])
            for other in pods.rows_with_claim(claim.key)
        )

    def lacks_volume(self, row: int) -> bool:
        """Whether a pod's claim names a VolumeAttributesClass with which no volume is provisioned, so that the pod is
        not bound to its node."""
        has_claims = any(volume.persistent_volume_claim or volume.ephemeral for volume in self.pods.specs[row].volumes)
        if not self.options.needs_volumes or not has_claims:
            return False
        snapshot, known = self._current, self.base.storage.volumes
        claims = [claim for claim in snapshot.storage.claims_of(self.pods[row]) if claim.spec.volume_name not in known]
        return any(wrong_attributes_class(snapshot, with_spec(claim, volume_name="")) is not None for claim in claims)

    # --- changes

    def edit(self, snapshot: Snapshot) -> None:
        """Apply a manual change of nodes or objects: `snapshot` has the new ones, and the same rows of pods."""
        if self._run is None and snapshot is self.start:
            return
        self._before_start = {*self.deleted}
        self.start, self._run = snapshot, None
        self.queue.between.clear()
        self.first_step = len(self.queue.steps)

    def put(self, snapshot: Snapshot) -> None:
        if self._run is None:
            self.start = snapshot
        else:
            self.queue.create(snapshot, ())

    def create(self, cluster: Snapshot, pods: Sequence[Pod]) -> list[int]:
        if self._run is None:
            first = len(self.start.pods)
            self.start = with_pods(cluster, pods)
            rows = [*range(first, first + len(pods))]
            self.queue.is_last(rows)
            return rows
        return self.queue.create(cluster, pods)

    def delete(self, row: int) -> None:
        self._vacate(row)
        _ = self.run
        self.queue.delete(row)

    def free_name(self, pod: Pod) -> Snapshot:
        """Delete the pod with the name of a new one, if there is one. Returns the current cluster with the device
        claims of the new pod, which may have the names of the deleted ones."""
        devices = self.snapshot.devices.without_consumers({pod.key})
        claims = {claim.key: claim for claim in devices.claims_of(pod)}
        if (row := self.row(pod.key)) is not None:
            self.delete(row)
        return self.snapshot.with_devices(self.snapshot.devices.with_claims(claims))

    def _vacate(self, row: int) -> None:
        if (node := self.pods.node[row]) >= 0:
            self._vacated.add(self._current.cluster.names[node])

    def evict(self, rows: Iterable[int]) -> list[int]:
        """Delete pods that their controllers recreate. Returns the rows of those that are pending at once."""
        pods = self.pods
        waiting: list[int] = []
        names = pods.names
        in_order = sorted(sorted(rows), key=lambda row: ordinal_of(names[row]))
        leaving: list[int] = []
        if in_order:
            _ = self.run
        by_workload = self.manager.owners.rows_by_workload(pods, np.array(in_order, dtype=np.int64))
        controlled = {
            row for workload, its in by_workload.items() if workload.kind in OF_CONTROLLERS for row in its.tolist()
        }
        for row in in_order:
            self._vacate(row)
            if row in controlled:
                self.queue.evict_many(leaving)
                leaving = []
                if self.manager.recreate(row):
                    self.queue.delete(row)
                    continue
            if pods.deletion_timestamps[row] and not is_recreated(pods, row):
                self.manager.release(row)
                self.queue.delete(row)  # its controller has already replaced it, or waits for its end
                continue
            if pods.node[row] >= 0:
                leaving.append(row)
            waiting.append(row)
        self.queue.evict_many(leaving)
        self.queue.is_last(waiting)
        return waiting

    # --- scheduling and syncs

    def pending_rows(self, excluded: Collection[int] = ()) -> list[int]:
        """Return the rows of pending pods, except deleted and excluded ones."""
        pods = self.run.cluster.pods
        without = {*excluded, *self._rows_to_be_deleted}
        return [row for row in pods.pending if row not in without and not pods.deletion_timestamps[row]]

    @cached_property
    def _rows_to_be_deleted(self) -> frozenset[int]:
        """Pods that were pending at first and that are deleted before they can run."""
        return rows_to_be_deleted(self.base, self.base.pods.pending)

    def settle(
        self, only: Collection[str] | None = None, *, excluded: Collection[int] = (), joins: bool = False
    ) -> None:
        """Schedule pods and sync controllers until nothing changes. `only` are the pods of a question,
        `namespace/name`; by default all pending ones. `joins`: many identical pods in a row are one step."""
        self.manager.sync()
        rows = None if only is None else {row for key in only if (row := self.row(key)) is not None}
        self._settle(rows, excluded, joins=joins)

    def settle_created(self, excluded: Collection[int] = (), *, also: Iterable[int] = ()) -> None:
        """Settle like `settle`, for pods that were created or evicted here and those in `also`, and for no other
        pending pod."""
        self.manager.sync()
        self._settle({*also}, excluded)

    def unassign(self, rows: Iterable[int]) -> None:
        """Make assigned pods pending again."""
        if assigned := [row for row in rows if self.pods.node[row] >= 0]:
            self.queue.evict_many(assigned)

    def _settle(self, rows: set[int] | None, excluded: Collection[int], *, joins: bool = False) -> None:
        for _ in range(_MOST_SYNCS):
            created = self.queue.created
            waiting = [row for row in self.pending_rows(excluded) if rows is None or row in rows or row in created]
            self.queue.run(self.queue.order(waiting), joins=joins)
            self.manager.resume(row for row in waiting if self.pods.node[row] >= 0 and self._has_new_room(row))
            if not self.manager.sync():
                break
        self.manager.measure()

    def _has_new_room(self, row: int) -> bool:
        """Whether a pod's node was added or changed, or lost another pod: a change that changes nothing continues
        nothing."""
        node, base = self.snapshot.cluster.nodes[self.pods.node[row]], self.base
        before, was_pending = base.cluster.index.get(node.name), row >= len(base.pods) or base.pods.node[row] < 0
        is_changed = before is None or base.cluster.nodes[before] != node
        return is_changed or (was_pending and node.name in self._vacated)

    def react(self, rows: Iterable[int]) -> None:
        """Schedule pods that are pending since an eviction, and those that controllers create because of it."""
        waiting = [*rows]
        while True:
            known = {*self.queue.created}
            self.queue.run(self.queue.order(row for row in waiting if self.pods.node[row] < 0))
            if not self.manager.sync():
                return
            waiting += [row for row in self.queue.created if row not in known]

    def move(self, clearings: Iterable[tuple[ClusterRow, Collection[int]]]) -> None:
        """Evict pods of one node after another, and schedule their replacements. All these nodes are cordoned first;
        each is restored after its own pods are evicted."""
        cluster = self.run.cluster
        steps = list(clearings)
        before = {node: cluster.snapshot.cluster.nodes[node] for node, _ in steps}
        for node, old_node in before.items():
            cluster.replace_node(node, set_cordon(old_node, unschedulable=True))
        for node, rows in steps:
            self.react(self.evict(rows))
            cluster.replace_node(node, before[node])

    def mark(self) -> _Mark:
        run = self.run
        return _Mark(
            start=self.start,
            run=run,
            before_start=self._before_start,
            first_step=self.first_step,
            moves=run.cluster.mark(),
            record=self.queue.mark(),
            created=frozenset(self.queue.created),
            controllers=self.manager.save(),
            vacated=frozenset(self._vacated),
        )

    def revert(self, mark: _Mark, *, keeps_steps: bool = False) -> None:
        """Revert to a moment; the steps since then may be kept as a record."""
        if self._run is not mark.run:  # an object was changed by hand since then
            self.start, self._run, self._before_start = mark.start, mark.run, mark.before_start
            self.first_step = mark.first_step
            self.queue.move_to(mark.run)
        mark.run.cluster.revert(mark.moves)
        self.queue.forget(mark.created)
        self.manager.restore(mark.controllers)
        self._vacated = {*mark.vacated}
        if not keeps_steps:
            self.queue.rewind(mark.record)


def run_on(snapshot: Snapshot, setup: Setup) -> Run:
    """Return the cluster as a run that can move. Unlike a `Simulator`, it is freed as soon as nothing refers to it."""
    profile = None if setup.forced_profile is None else setup.scheduler.config.profile_for(setup.forced_profile)
    return Run(setup.scheduler_on(snapshot), profile)


def _pick_by_name(run: Run) -> Pick:
    """Return a function that picks the first name in alphabetical order."""
    names: tuple[str, ...] = ()
    ranks: IntArray = np.zeros(0, dtype=np.int64)

    def pick(rows: ClusterRows) -> ClusterRow:
        nonlocal names, ranks
        if names is not run.cluster.node_names:
            names = run.cluster.node_names
            ranks = np.argsort(np.argsort(np.array(names, dtype=np.str_)))
        return ClusterRow(int(rows[ranks[rows].argmin() if len(rows) > 1 else 0]))

    return pick


def _pick_by_lot(seed: int) -> Pick:
    """Return a function that picks at random as kube-scheduler does, but with the same result every time."""
    from random import Random

    dice = Random(seed)
    return lambda rows: ClusterRow(int(rows[dice.randrange(len(rows))]))
