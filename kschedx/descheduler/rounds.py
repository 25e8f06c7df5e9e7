"""What follows a loop of the descheduler: controllers recreate the evicted pods, and kube-scheduler places them.

The next loop runs on the result. All pods that a loop evicts are recreated after its last eviction. They are scheduled
in the order of the queue, together with the pods that were pending before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.disruption_budgets import budgets_of
from kschedx.controllers.workloads import is_controlled
from kschedx.descheduler.cluster import Cluster, PodFacts, PodIndex
from kschedx.descheduler.evictor import RequestedEviction
from kschedx.descheduler.run import DescheduleLoop
from kschedx.explain.setup import Setup
from kschedx.kube.descheduling import ConditionFacts, PodStatusFacts
from kschedx.kube.types import PodDisruptionBudget
from kschedx.progress import Phase, count_items
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.snapshot import Snapshot


class Fate(StrEnum):
    """The outcome of an evicted pod."""

    MOVED = "moved"
    RETURNED = "returned"  # on the same node
    PENDING = "pending"
    UNDECIDED = "undecided"
    GONE = "gone"  # no controller recreates it, or it had finished


class Landing(Struct, frozen=True, kw_only=True):
    """An evicted pod after kube-scheduler ran."""

    eviction: RequestedEviction
    fate: Fate
    node: str = ""  # of its successor
    message: str = ""  # kube-scheduler's, for a successor that stays pending

    @property
    def is_pending(self) -> bool:
        return self.fate in (Fate.PENDING, Fate.UNDECIDED)


class ClusterInMotion:
    """The cluster from one loop to the next."""

    def __init__(self, snapshot: Snapshot, setup: Setup, pods: PodIndex, now: int) -> None:
        """`pods` are the pods of the snapshot, in its order."""
        self._snapshot = snapshot
        self._now = now
        self._setup = setup
        self.index = pods
        self._row = {pod.key: row for row, pod in enumerate(pods.pods)}
        self._began_pending = {pod.key for pod in pods.pods if not pod.node and not pod.is_finished}
        self._loops = 0

    @cached_property
    def _simulator(self) -> Simulator:
        return Simulator(self._snapshot, self._setup, SimulationOptions())

    def cluster(self, *, counts_budgets: bool) -> Cluster:
        """Return the cluster as the next loop sees it."""
        return Cluster(self._snapshot, self.index, budgets=self._budgets(), counts_budgets=counts_budgets)

    def _budgets(self) -> Sequence[PodDisruptionBudget]:
        """Return the budgets with the status that their controller would write now; before the first loop, with their
        own status."""
        written = self._snapshot.disruption_budgets
        if not self._loops:
            return written
        run = self._simulator.run
        now = {
            budget.name: budget.current_status(run.snapshot, run.cluster.pods, self._simulator.queue.created)
            for budget in budgets_of(run.snapshot, self._snapshot)
        }
        budgets = []
        for budget in written:
            standing = now.get(budget.key)
            if standing is not None:
                status = replace(
                    budget.status,
                    disruptions_allowed=max(standing.allowed, 0),
                    current_healthy=standing.healthy,
                    desired_healthy=standing.needed,
                    observed_generation=budget.metadata.generation,
                )
                budget = replace(budget, status=status)
            budgets.append(budget)
        return budgets

    def move(self, evictions: Sequence[RequestedEviction]) -> tuple[Landing, ...]:
        """Remove the evicted pods, and let kube-scheduler place the recreated ones."""
        simulator, self._loops = self._simulator, self._loops + 1
        recreated = []
        for evicted in evictions:
            row = self._row[evicted.pod.key]
            is_placed = simulator.run.cluster.pods.node[row] >= 0
            if is_controlled(evicted.pod.owners) and not evicted.pod.is_finished and is_placed:
                recreated.append(row)
            else:
                simulator.delete(row)
        simulator.queue.evict_many(recreated)
        simulator.queue.is_last(recreated)
        first = len(simulator.queue.steps)
        simulator.queue.run(simulator.queue.order(simulator.pending_rows()))
        last = {step.pod: step for step in simulator.queue.steps[first:]}
        pods, names = simulator.run.cluster.pods, simulator.run.cluster.node_names
        came_back = frozenset(recreated)

        def landing(eviction: RequestedEviction) -> Landing:
            row = self._row[eviction.pod.key]
            node, step = int(pods.node[row]), last.get(row)
            if row not in came_back:
                return Landing(eviction=eviction, fate=Fate.GONE)
            if node >= 0:
                fate = Fate.RETURNED if names[node] == eviction.pod.node else Fate.MOVED
                return Landing(eviction=eviction, fate=fate, node=names[node])
            if step is None:
                return Landing(eviction=eviction, fate=Fate.PENDING)
            fate = Fate.UNDECIDED if step.decision is None else Fate.PENDING
            return Landing(eviction=eviction, fate=fate, message=step.message)

        landings = tuple(map(landing, evictions))
        self.index = PodIndex(self._current_pods())
        return landings

    @property
    def pods(self) -> tuple[PodFacts, ...]:
        return tuple(self.index.pods)

    def _current_pods(self) -> tuple[PodFacts, ...]:
        """Return the current pods: recreated pods are new, ready, and without restarts."""
        simulator = self._simulator
        cluster, left, created = simulator.run.cluster, simulator.deleted, simulator.queue.created
        pods, names = cluster.pods, cluster.node_names
        facts = []
        for pod in self.pods:
            row = self._row[pod.key]
            if row in left:
                continue
            node = int(pods.node[row])
            name = names[node] if node >= 0 else ""
            if row in created:
                facts.append(_recreate(pod, name, self._now, self._loops))
            elif not pod.node and name:
                facts.append(replace(pod, node=name, phase="Running", started=self._now, status=_ready(pod)))
            else:
                facts.append(pod)
        return tuple(facts)

    @property
    def newly_placed(self) -> tuple[str, ...]:
        """Pods that were pending at the start and have a node now."""
        return tuple(pod.key for pod in self.pods if pod.node and pod.key in self._began_pending)

    @property
    def is_undecided(self) -> bool:
        return any(step.decision is None for step in self._simulator.queue.steps)

    @property
    def preempted(self) -> tuple[str, ...]:
        """Pods that kube-scheduler preempted for recreated pods."""
        queue, pods = self._simulator.queue, self._simulator.run.cluster.pods
        return tuple(pods.key(row) for row in (*queue.evicted, *queue.recreated))


def _recreate(pod: PodFacts, node: str, now: int, loop: int) -> PodFacts:
    return replace(
        pod,
        uid=f"{pod.uid.partition('~')[0]}~{loop}",
        node=node,
        phase="Running" if node else "Pending",
        created=now,
        started=now if node else None,
        is_terminating=False,
        status=_ready(pod) if node else PodStatusFacts(qos_class=pod.status.qos_class),
    )


def _ready(pod: PodFacts) -> PodStatusFacts:
    ready = ConditionFacts(type="Ready", status="True")
    return PodStatusFacts(qos_class=pod.status.qos_class, conditions=(ready,))


# --- random order


class Chance(StrEnum):
    """How far the outcome of a loop depends on the random order in which the descheduler lists nodes and pods."""

    NONE = "none"
    WHICH = "which"  # the number of pods that each plugin evicts is certain; which pods it evicts depends on the order
    COUNT = "count"  # even the number depends on the order
    UNKNOWN = "unknown"  # not tried, because the cluster is large


_ORDERS = 8
_MOST_PODS = 20_000  # for more, no other orders are tried


class Likelihood(Struct, frozen=True, kw_only=True):
    chance: Chance
    certain: frozenset[str] = frozenset()  # pods that are evicted in every order that was tried


def likelihood(loop: DescheduleLoop, run: Callable[[int], DescheduleLoop], pods: int) -> Likelihood:
    """Compare a loop with loops over the same cluster in other orders. `run` takes the number of an order."""
    evicted = frozenset(eviction.pod.key for eviction in loop.evicted)
    if pods > _MOST_PODS:
        return Likelihood(chance=Chance.UNKNOWN)
    orders = count_items(range(_ORDERS), Phase.DESCHEDULING, _ORDERS, "other orders")
    others = [run(seed) for seed in orders]
    certain = evicted.intersection(*(frozenset(eviction.pod.key for eviction in other.evicted) for other in others))
    if any(_counts(other) != _counts(loop) for other in others):
        return Likelihood(chance=Chance.COUNT, certain=certain)
    if any(_eviction_counts(other) != _eviction_counts(loop) for other in others):
        return Likelihood(chance=Chance.WHICH, certain=certain)
    return Likelihood(chance=Chance.NONE, certain=certain)


def _counts(loop: DescheduleLoop) -> Mapping[tuple[str, str], int]:
    return Counter((eviction.profile, eviction.plugin) for eviction in loop.evicted)


def _eviction_counts(loop: DescheduleLoop) -> Mapping[tuple[str, str, str, bool], int]:
    return Counter((it.profile, it.plugin, it.pod.key, bool(it.error)) for it in loop.evictions)
