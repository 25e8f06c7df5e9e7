"""From a snapshot and changes to what becomes of its pods."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
from msgspec import Struct

from kschedx.answer.explanation import Explanation
from kschedx.explain.missing import require_for_decision, require_nodes_and_pods
from kschedx.explain.setup import Setup
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.framework.scheduler import Scheduler
from kschedx.simulate.applying import Changed, applied
from kschedx.simulate.changes import Change, Read, changes
from kschedx.simulate.drain import Drained, Evictor
from kschedx.simulate.queue import Pick, Queue, Step
from kschedx.simulate.usage import Usage
from kschedx.simulate.workloads import Owners, Workload
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.moving import MovingCluster
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, object]


class Options(Struct, frozen=True, kw_only=True):
    """How a queue is run."""

    recreate: bool = True
    """Controllers make anew what is evicted."""
    seed: int | None = None
    """Ties are settled by lot, from this number; by name where it is None."""
    force: bool = False
    """A drain deletes pods that no controller makes anew."""
    delete_emptydir_data: bool = False
    """A drain evicts pods that keep data in an emptyDir."""


class WorkloadResult(Struct, frozen=True, kw_only=True):
    """What became of one workload's pods."""

    workload: Workload
    pods: int
    """All that it has in the end, wherever they are."""
    placed: tuple[str, ...]
    """Its pods that the queue placed, and that have their node in the end."""
    nodes: Mapping[str, int]
    """Those nodes, with how many of them each got."""
    pending: tuple[str, ...]
    evicted: tuple[str, ...]
    message: str = ""
    """Why the first that is pending is."""


class Simulation:
    """A queue that has ended."""

    def __init__(
        self,
        *,
        run: Run,
        setup: Setup,
        before: Snapshot,
        start: Snapshot,
        changes: Sequence[Change],
        changed: Changed,
        queue: Queue,
        drained: Sequence[Drained],
    ) -> None:
        self.run = run
        self.setup = setup
        self.before = before
        """The cluster as it was loaded."""
        self._start = start
        """With the changes, before the first decision."""
        self.changes = tuple(changes)
        self.changed = changed
        self.steps: tuple[Step, ...] = tuple(queue.steps)
        self.drained = tuple(drained)
        self._queue = queue

    # --- pods, by `namespace/name`

    @property
    def queue(self) -> tuple[int, ...]:
        """Rows of the pods that were ever in the queue, in its order."""
        return tuple(self._queue.queued)

    @property
    def evicted(self) -> frozenset[int]:
        """Rows of the pods that had to go for others and that nobody made anew."""
        return frozenset(self._queue.evicted)

    def key(self, row: int) -> str:
        return self.run.cluster.pods.key(row)

    @cached_property
    def placed(self) -> Mapping[str, str]:
        """Pods of the queue that have a node in the end, to its name."""
        pods, names = self.run.cluster.pods, self.run.cluster.node_names
        return {pods.key(row): names[node] for row in self.queue if (node := int(pods.node[row])) >= 0}

    @cached_property
    def pending_rows(self) -> tuple[int, ...]:
        pods = self.run.cluster.pods
        return tuple(row for row in self.queue if pods.node[row] < 0 and row not in self.evicted)

    @property
    def pending(self) -> tuple[str, ...]:
        """Pods of the queue that have none and were not evicted for good, in the order of the queue."""
        return tuple(map(self.key, self.pending_rows))

    @property
    def gated(self) -> tuple[str, ...]:
        """Pods that a scheduling gate holds back."""
        return tuple(map(self.key, self._queue.gated))

    @property
    def of_others(self) -> tuple[str, ...]:
        """Pods that wait for a scheduler which the configuration does not have."""
        return tuple(map(self.key, self._queue.of_others))

    @property
    def undecided(self) -> Mapping[str, str]:
        """Pods that kschedx cannot decide about, to what it would need."""
        last = self._last_steps
        return {self.key(row): step.undecided for row in self.pending_rows if (step := last[row]).decision is None}

    @cached_property
    def _last_steps(self) -> Mapping[int, Step]:
        return {step.pod: step for step in self.steps}

    @cached_property
    def messages(self) -> Mapping[str, str]:
        """Pending pods to kube-scheduler's text about the last try."""
        told: dict[str, str] = {}
        for row in self.pending_rows:
            step = self._last_steps[row]
            told[self.key(row)] = step.undecided if step.decision is None else step.decision.message
        return told

    @cached_property
    def evictions(self) -> Mapping[str, str]:
        """Every pod that preemption took from its node to the pod that it was for; the last time counts."""
        return {self.key(victim): self.key(step.pod) for step in self.steps for victim in step.victims}

    def is_recreated(self, key: str) -> bool:
        """Whether a pod that was evicted came back to the queue under its old name."""
        return self.run.cluster.pods.rows[key] in self._queue.recreated

    # --- workloads and nodes

    @cached_property
    def workloads(self) -> tuple[WorkloadResult, ...]:
        """Those with a pod in the queue, in its order, and those that lost one."""
        pods, owners = self.run.cluster.pods, Owners(self.run.snapshot)
        rows: dict[Workload, list[int]] = {}
        for row in (*self.queue, *self.evicted):
            rows.setdefault(owners.of(pods, row), []).append(row)
        running: dict[Workload, int] = {}
        for row in np.flatnonzero(pods.node >= 0).tolist():
            workload = owners.of(pods, row)
            if workload in rows:
                running[workload] = running.get(workload, 0) + 1
        return tuple(self._result(workload, its, running.get(workload, 0)) for workload, its in rows.items())

    def _result(self, workload: Workload, rows: Sequence[int], running: int) -> WorkloadResult:
        placed = [key for key in map(self.key, rows) if key in self.placed]
        pending = [key for key in map(self.key, rows) if key in self.messages]
        nodes: dict[str, int] = {}
        for key in placed:
            nodes[self.placed[key]] = nodes.get(self.placed[key], 0) + 1
        return WorkloadResult(
            workload=workload,
            pods=running + len(pending),
            placed=tuple(placed),
            nodes=nodes,
            pending=tuple(pending),
            evicted=tuple(key for key in map(self.key, rows) if key in self.evictions),
            message=self.messages[pending[0]] if pending else "",
        )

    @cached_property
    def usage_before(self) -> Usage:
        return Usage(self.setup.scheduler_on(self.before).nodes)

    @cached_property
    def usage_after(self) -> Usage:
        return Usage(self.run.scheduler.nodes)

    @property
    def after(self) -> Snapshot:
        """The cluster in the end."""
        return self.run.cluster.frozen()

    # --- the story of one decision

    def explain(self, step: int) -> Explanation:
        """What `why` says of a step's pod in the cluster as it stood then. Steps are counted from 0.

        Only for a simulation without drains, whose steps are all that moves the cluster.
        """
        past_cluster, done = self._replay
        if done > step:
            past_cluster, done = MovingCluster(self.setup.scheduler_on(self._start).snapshot), 0
        self._replay = past_cluster, step
        moving = past_cluster
        for past in self.steps[done:step]:
            for victim in past.victims:
                moving.remove(victim, waits=victim in self._queue.recreated)
            if past.nominated is not None:
                moving.nominate(past.pod, past.nominated)
            elif past.node is not None:
                moving.place(past.pod, past.node)
            else:
                moving.nominate(past.pod, None)
        then = moving.frozen()
        scheduler = self.setup.scheduler_on(self._start).on(then)
        pod = then.pods[self.steps[step].pod]
        return Explanation(scheduler.schedule(pod, self.setup.profile_of(pod)), scheduler, self.setup.notes)

    def explain_now(self, pod: str) -> Explanation | None:
        """What `why` says of a pod that waits, in the cluster as it stands in the end; None where it says nothing."""
        explanation = self.explain_then(pod)
        return explanation if explanation.outcome is Outcome.UNSCHEDULABLE else None

    def explain_then(self, pod: str) -> Explanation:
        """What `why` says of a pod that waits, in the cluster as it stands in the end. Raises `UndecidableError`."""
        scheduler = self._then
        target = scheduler.snapshot.pods[self.run.cluster.pods.rows[pod]]
        cycle = scheduler.schedule(target, self.setup.profile_of(target))
        require_for_decision(cycle)
        return Explanation(cycle, scheduler, self.setup.notes)

    @cached_property
    def _then(self) -> Scheduler:
        return self.run.scheduler.on(self.run.cluster.frozen())

    @cached_property
    def _replay(self) -> tuple[MovingCluster, int]:
        """A cluster that moves along with `explain`, and how many steps it has seen."""
        return MovingCluster(self.setup.scheduler_on(self._start).snapshot), 0

    def to_dict(self) -> Json:
        """The Simulation document."""
        from kschedx.simulate.document import document

        return document(self)


class Simulator:
    """A cluster after changes, to be moved."""

    def __init__(self, changed: Changed, setup: Setup, options: Options) -> None:
        self.changed = changed
        self.setup = setup
        self.options = options
        profile = None if setup.forced_profile is None else setup.scheduler.config.profile_for(setup.forced_profile)
        self.run = Run(setup.scheduler_on(changed.snapshot), profile)
        known = setup.scheduler_names
        self.pick = pick_by_name(self.run) if options.seed is None else pick_by_lot(options.seed)
        self.queue = Queue(
            self.run,
            self.pick,
            recreate=options.recreate,
            known=lambda name: profile is not None or name in known,
        )

    def waiting(self) -> list[int]:
        """Rows of the pods that wait, in the order of the queue."""
        return self.queue.order(self.run.cluster.pods.pending)

    def drain(self, nodes: Iterable[str], *, comes_back: bool) -> list[Drained]:
        """Drain nodes one after another, each followed by the queue of what it left without a node."""
        evictor = Evictor(
            self.run,
            self.queue,
            force=self.options.force,
            delete_emptydir_data=self.options.delete_emptydir_data,
            recreate=self.options.recreate,
        )
        return [evictor.drain(name, comes_back=comes_back) for name in nodes]

    def told(
        self, before: Snapshot, wanted: Sequence[Change], changed: Changed, drained: Sequence[Drained]
    ) -> Simulation:
        """What has come of it; `before` is the cluster as it was loaded."""
        return Simulation(
            run=self.run,
            setup=self.setup,
            before=before,
            start=changed.snapshot,
            changes=wanted,
            changed=changed,
            queue=self.queue,
            drained=drained,
        )


def pick_by_name(run: Run) -> Pick:
    """The first name in alphabetical order."""
    ranks: dict[tuple[str, ...], IntArray] = {}

    def pick(rows: IntArray) -> int:
        names = run.cluster.node_names
        if names not in ranks:
            ranks.clear()
            ranks[names] = np.argsort(np.argsort(np.array(names, dtype=np.str_)))
        return int(rows[ranks[names][rows].argmin()])

    return pick


def pick_by_lot(seed: int) -> Pick:
    """As kube-scheduler does, but the same every time."""
    dice = random.Random(seed)
    return lambda rows: int(rows[dice.randrange(len(rows))])


def simulate(
    snapshot: Snapshot,
    setup: Setup,
    wanted: Sequence[Change] = (),
    *,
    options: Options | None = None,
    namespace: str = "default",
    only: Callable[[Changed], Iterable[int]] | None = None,
) -> Simulation:
    """Apply changes, and let the pods that wait be scheduled one after the other.

    `only` picks the rows of the pods to schedule, by default all that wait. Raises `InputError` for a change that
    cannot be applied.
    """
    changed = applied(snapshot, setup, wanted, namespace)
    simulator = Simulator(changed, setup, options or Options())
    simulator.queue.is_last(simulator.run.cluster.pods.rows[key] for key in changed.new)
    drained = simulator.drain(changed.drains, comes_back=False)
    rows = simulator.waiting() if only is None else simulator.queue.order(only(changed))
    simulator.queue.run(rows)
    return simulator.told(snapshot, wanted, changed, drained)


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
    simulator, changed = _prepared(snapshot, setup, wanted, options, namespace)
    drained = simulator.drain(nodes, comes_back=comes_back)
    return simulator.told(snapshot, wanted, changed, drained)


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
    simulator, changed = _prepared(snapshot, setup, wanted, options, namespace)
    mark = simulator.run.cluster.mark()
    drained: list[Drained] = []
    for name in nodes:
        drained += simulator.drain([name], comes_back=True)
        simulator.run.cluster.revert(mark)
    return simulator.told(snapshot, wanted, changed, drained)


def _prepared(
    snapshot: Snapshot, setup: Setup, wanted: Sequence[Change], options: Options, namespace: str
) -> tuple[Simulator, Changed]:
    changed = applied(snapshot, setup, wanted, namespace)
    simulator = Simulator(changed, setup, options)
    simulator.drain(changed.drains, comes_back=False)
    return simulator, changed


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
