"""A drain as `kubectl drain` does it: which pods are evicted, which stay, and which a PodDisruptionBudget blocks.

Pods are evicted as long as their budgets, from `budgets`, allow it. Upstream:
staging/src/k8s.io/kubectl/pkg/drain/filters.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field

from kschedx.controllers.disruption_budgets import BudgetStatus, MovingBudget, MovingBudgets, is_healthy
from kschedx.controllers.workloads import (
    confirms_deletions,
    ends_job,
    is_controlled,
    is_mirror_pod,
    is_of_daemon_set,
    loss_reason,
    waits_until_gone,
)
from kschedx.kube.documents import Document
from kschedx.kube.types import OwnerReference, controller_of
from kschedx.simulate.changes import set_cordon
from kschedx.simulate.simulator import Simulator


class DrainOutcome(StrEnum):
    """What a drain does with a pod."""

    EVICTED = "evicted"
    DELETED = "deleted"  # evicted and not recreated
    OF_DAEMON_SET = "daemonset"
    OF_KUBELET = "mirror"
    NEEDS_FORCE = "needs-force"
    """No controller recreates the pod: kubectl requires --force, and evicts nothing without it."""
    NEEDS_EMPTYDIR_FLAG = "needs-delete-emptydir-data"
    BUDGET = "budget"  # a PodDisruptionBudget does not allow the eviction
    BUDGETS = "budgets"  # the pod has more than one budget, and the API server evicts no such pod
    TERMINATING = "terminating"


MOST_SCENES = 4
_OF_APPS = ("", "apps/v1")  # the API versions of Kubernetes' own DaemonSets

REFUSES = {
    DrainOutcome.NEEDS_FORCE: "cannot delete Pods that declare no controller (use --force to override)",
    DrainOutcome.NEEDS_EMPTYDIR_FLAG: "cannot delete Pods with local storage (use --delete-emptydir-data to override)",
}
"""kubectl's message about a pod for which a flag is missing."""
STAYS = frozenset({DrainOutcome.BUDGET, DrainOutcome.BUDGETS})
EVICTIONS = frozenset({DrainOutcome.EVICTED, DrainOutcome.DELETED, *STAYS})  # what the API server allows, or refuses
_LEAVES = frozenset({DrainOutcome.EVICTED, DrainOutcome.DELETED, DrainOutcome.TERMINATING})


class DrainedPod(Document, frozen=True, omit_defaults=True):
    pod: str
    fate: DrainOutcome
    budget: str  # `namespace/name` of the budget that blocks the eviction, or of all budgets if there are several
    node: str  # the node of its replacement; empty if there is none, or if it is pending
    message: str
    """Why its replacement is pending, or was until a later change, or kubectl's message about a pod that it refuses to
    evict."""
    is_undecided: bool = field(name="undecided", default=False)
    """Whether it is not known that its replacement is unschedulable; then `message` says what is missing."""

    @property
    def is_stranded(self) -> bool:
        """Whether its replacement has no node."""
        return self.fate is DrainOutcome.EVICTED and not self.node


class DrainDocument(Document, frozen=True, omit_defaults=True):
    """What a drain came to."""

    node: str
    is_done: bool = field(name="done")
    """Whether the node is empty except for pods that belong to it, and every evicted pod has another node."""
    waves: int
    """The number of waves of evictions, including the first; before each further wave, budgets have to allow it."""
    budgets: Mapping[str, int]  # the budgets of its pods, with how many evictions each allows at a time
    pods: tuple[DrainedPod, ...]
    is_unconfirmed: bool = field(name="unconfirmed", default=False)
    """Whether the drain does not end, because deleted pods stay Terminating."""


_LONG_GRACE = 600  # seconds; the default grace period is 30


class DrainResult(Struct, frozen=True, kw_only=True):
    node: str
    pods: tuple[DrainedPod, ...]
    waves: int = 0
    budgets: Mapping[str, int] = {}
    held: Mapping[str, BudgetStatus] = {}  # the final status of the budgets that block evictions
    lagging: Mapping[str, str] = {}
    """The budgets of its pods whose status is that of an earlier generation: `generation 1 of 2`."""
    bypassed: Mapping[str, BudgetStatus] = {}
    """The first status of the budgets that would block evictions, of a drain that deletes the pods instead."""
    is_silent: bool = False  # whether the kubelet of the node does not answer
    finalizers: Mapping[str, tuple[str, ...]] = {}
    """Pods that were being deleted before the drain, and the finalizers that keep them."""
    awaited: tuple[str, ...] = ()
    """Pods of a node that does not confirm their deletion, which their controllers recreate only once they are gone."""
    slow: Mapping[str, int] = {}  # pods that may take long to terminate, and their grace periods in seconds

    @property
    def unconfirmed_pods(self) -> tuple[DrainedPod, ...]:
        """Deleted pods that stay Terminating: kubectl waits until they are gone."""
        if self.is_refused:
            return ()
        return tuple(pod for pod in self.of(*_LEAVES) if self.is_silent or pod.pod in self.finalizers)

    @property
    def is_unconfirmed(self) -> bool:
        return bool(self.unconfirmed_pods)

    @property
    def is_refused(self) -> bool:
        """Whether kubectl evicts nothing because a flag is missing."""
        return any(pod.fate in REFUSES for pod in self.pods)

    def of(self, *fates: DrainOutcome) -> tuple[DrainedPod, ...]:
        return tuple(pod for pod in self.pods if pod.fate in fates)

    @property
    def pending(self) -> tuple[DrainedPod, ...]:
        """Pods whose replacements are unschedulable."""
        return tuple(pod for pod in self.pods if pod.is_stranded and not pod.is_undecided)

    @property
    def late(self) -> tuple[DrainedPod, ...]:
        """Pods whose replacements fit a node only after a later change."""
        return tuple(pod for pod in self.of(DrainOutcome.EVICTED) if pod.node and pod.message)

    @property
    def returning(self) -> tuple[DrainedPod, ...]:
        """Pods whose replacements are on the node again, because they tolerate its cordon."""
        return tuple(pod for pod in self.pods if pod.node == self.node)

    @property
    def undecided(self) -> tuple[DrainedPod, ...]:
        """Pods whose replacements depend on what is not known."""
        return tuple(pod for pod in self.pods if pod.is_stranded and pod.is_undecided)

    @property
    def is_open(self) -> bool:
        """Whether nothing stops the drain as far as is known."""
        return not (self.is_refused or self.is_unconfirmed or self.of(*STAYS) or self.pending or self.returning)

    @property
    def is_done(self) -> bool:
        return self.is_open and not self.undecided


def drain(simulator: Simulator, nodes: Iterable[str], *, uncordons: bool) -> list[DrainResult]:
    """Drain nodes one after another. With `uncordons`, each is schedulable again before the next one; otherwise all are
    cordoned first."""
    evictor, names = _Evictor(simulator), [*nodes]
    for name in () if uncordons else names:
        evictor.cordon(name)
    results: list[DrainResult] = []
    for name in names:
        if uncordons and results and results[-1].pending:
            simulator.settle_created()  # the node is back
        results.append(evictor.drain(name, uncordons=uncordons))
    return results


class _Evictor:
    """Drains nodes of a run."""

    def __init__(self, simulator: Simulator) -> None:
        self._simulator = simulator
        self._run = simulator.run
        self._queue = simulator.queue
        self._options = simulator.options
        self._budgets = MovingBudgets(simulator.run.snapshot, simulator.base)

    def cordon(self, name: str) -> None:
        cluster = self._run.cluster
        node = cluster.snapshot.cluster.index[name]
        cluster.replace_node(node, set_cordon(cluster.snapshot.cluster.nodes[node], unschedulable=True))

    def drain(self, name: str, *, uncordons: bool) -> DrainResult:
        """Cordon a node and evict the pods that kubectl would. With `uncordons`, it is schedulable again in the end."""
        cluster = self._run.cluster
        node = cluster.snapshot.cluster.index[name]
        before = cluster.snapshot.cluster.nodes[node]
        is_silent = not confirms_deletions(before)
        self.cordon(name)
        rows = [row for row in cluster.pods.on_node(node).tolist() if self._is_selected(row)]
        fates = {row: self._fate(row) for row in rows}
        of_pod = {row: self._budgets.of(cluster.pods, row) for row in rows}
        standing = {budget: self._current_status(budget) for budgets in of_pod.values() for budget in budgets}
        waves = 0
        awaited: list[int] = []
        stopped: dict[int, tuple[MovingBudget, ...]] = {}
        bypassed: dict[str, BudgetStatus] = {}
        if not any(fate in REFUSES for fate in fates.values()):
            awaited = [row for row, fate in fates.items() if is_silent and self._is_awaited(row, fate)]
            fates.update(dict.fromkeys(awaited, DrainOutcome.TERMINATING))
            remains = {DrainOutcome.TERMINATING} if is_silent else set()
            going = [row for row, fate in fates.items() if fate in _LEAVES - remains]
            if self._options.disable_eviction:
                number = Counter(budget for row in going for budget in of_pod[row])
                bypassed = {
                    budget.name: standing[budget] for budget in number if number[budget] > standing[budget].allowed
                }
                of_pod = {row: [] for row in of_pod}
            waves, stopped = self._evict({row: of_pod[row] for row in going})
        leaves = tuple(self._leaves(row, fate, stopped.get(row, ())) for row, fate in fates.items())
        if len(self._simulator.scenes) < MOST_SCENES and any(leave.is_stranded for leave in leaves):
            self._simulator.scenes[name] = cluster.frozen()
        if uncordons:
            cluster.replace_node(node, before)
        held = {budget for budgets in stopped.values() for budget in budgets}
        return DrainResult(
            node=name,
            pods=leaves,
            waves=waves,
            budgets={budget.name: max(budget_status.allowed, 0) for budget, budget_status in standing.items()},
            held={budget.name: self._current_status(budget) for budget in standing if budget in held},
            lagging={budget.name: budget.lag for budget in standing if budget.lag},
            bypassed=bypassed,
            is_silent=is_silent,
            awaited=tuple(map(cluster.pods.key, awaited)),
            slow={
                cluster.pods.key(row): seconds
                for row, fate in fates.items()
                if fate in _LEAVES
                and (seconds := cluster.pods.specs[row].termination_grace_period_seconds or 0) >= _LONG_GRACE
            },
            finalizers={
                cluster.pods.key(row): finalizers
                for row, fate in fates.items()
                if fate is DrainOutcome.TERMINATING and (finalizers := cluster.pods.finalizers_of_others(row))
            },
        )

    def _is_awaited(self, row: int, fate: DrainOutcome) -> bool:
        """Whether the controller of an evicted pod recreates it only once its deletion is confirmed."""
        pods = self._run.cluster.pods
        owner = controller_of(pods.owners[row]) if fate in (DrainOutcome.EVICTED, DrainOutcome.TERMINATING) else None
        return owner is not None and waits_until_gone(self._run.cluster.snapshot, pods.namespaces[row], owner)

    def _current_status(self, budget: MovingBudget) -> BudgetStatus:
        return budget.current_status(self._run.snapshot, self._run.cluster.pods, self._queue.created)

    def _is_selected(self, row: int) -> bool:
        selector = self._options.pod_selector
        return selector is None or selector.matches(self._run.cluster.pods.labels[row])

    def _fate(self, row: int) -> DrainOutcome:
        """Return what a drain does with a pod, in the order of kubectl's filters."""
        pods = self._run.cluster.pods
        owners = pods.owners[row]
        is_orphan = False
        if is_of_daemon_set(owners) and (owner := controller_of(owners)) is not None:
            is_missing = self._is_daemon_set_missing(row, owner)
            if not is_missing or not self._options.force:
                return DrainOutcome.NEEDS_FORCE if is_missing else DrainOutcome.OF_DAEMON_SET
            is_orphan = owner.api_version in _OF_APPS
        if is_mirror_pod(pods, row):
            return DrainOutcome.OF_KUBELET
        keeps_data = any(volume.empty_dir is not None for volume in pods.specs[row].volumes)
        if keeps_data and not self._options.delete_emptydir_data:
            return DrainOutcome.NEEDS_EMPTYDIR_FLAG
        if not is_controlled(owners) and not self._options.force:
            return DrainOutcome.NEEDS_FORCE
        if pods.deletion_timestamps[row]:
            return DrainOutcome.TERMINATING
        is_lost = is_orphan or bool(loss_reason(self._run.snapshot, pods, row))
        return DrainOutcome.DELETED if is_lost or not self._options.recreate else DrainOutcome.EVICTED

    def _is_daemon_set_missing(self, row: int, owner: OwnerReference) -> bool:
        """Whether kubectl finds no DaemonSet of the group `apps` for the pod: it does not read the controller's group.
        It is known only for a controller of another group, or if all DaemonSets or others of the namespace are
        known."""
        namespace, snapshot = self._run.cluster.pods.namespaces[row], self._run.snapshot
        known = {name for kind, space, name in snapshot.workloads if (kind, space) == ("DaemonSet", namespace)}
        is_known = bool(known) or snapshot.source.is_complete("DaemonSet", namespace)
        return (is_known or owner.api_version not in _OF_APPS) and owner.name not in known

    def _evict(self, left: dict[int, list[MovingBudget]]) -> tuple[int, dict[int, tuple[MovingBudget, ...]]]:
        """Evict pods in waves, each followed by the queue. `left` are rows of pods with their budgets. Returns the
        number of waves, and the remaining pods with the budgets that block them."""
        cluster = self._run.cluster
        waves = 0
        while left:
            wave = self._wave(left)
            if not wave:
                break
            waves += 1
            back = [row for row in wave if self._fate(row) is DrainOutcome.EVICTED]
            for row in wave.difference(back):
                self._queue.delete(row)
            self._simulator.react(self._simulator.evict(back))
            left = {row: budgets for row, budgets in left.items() if row not in wave and cluster.pods.node[row] >= 0}
        return waves, {row: tuple(budgets) for row, budgets in left.items()}

    def _wave(self, left: dict[int, list[MovingBudget]]) -> set[int]:
        """Return the rows of the pods that the API server evicts now (EvictionREST.Create)."""
        pods = self._run.cluster.pods
        standing = {budget: self._current_status(budget) for budgets in left.values() for budget in budgets}
        allowed = {budget: status.allowed for budget, status in standing.items()}
        wave: set[int] = set()
        for row, budgets in left.items():
            is_pending = pods.phases[row] == "Pending" and row not in self._queue.created
            if not budgets or pods.deletion_timestamps[row] or is_pending:
                wave.add(row)
                continue
            budget = budgets[0]
            budget_status = standing[budget]
            if len(budgets) > 1:
                continue
            is_enough = budget_status.healthy >= budget_status.needed > 0
            if not is_healthy(pods, row, self._queue.created) and (budget.frees_unhealthy or is_enough):
                wave.add(row)
            elif allowed[budget] > 0:
                allowed[budget] -= 1
                wave.add(row)
        return wave

    def _leaves(self, row: int, fate: DrainOutcome, stopped: Sequence[MovingBudget]) -> DrainedPod:
        pods = self._run.cluster.pods
        if stopped:
            fate = DrainOutcome.BUDGET if len(stopped) == 1 else DrainOutcome.BUDGETS
        node, message, key, is_undecided = "", REFUSES.get(fate, ""), pods.key(row), False
        if fate is DrainOutcome.NEEDS_FORCE and (owner := controller_of(pods.owners[row])) is not None:
            message = f'cannot delete daemonsets.apps "{owner.name}" not found'
        if fate is DrainOutcome.DELETED and ends_job(self._run.snapshot, pods, row):
            message = "the eviction exceeds the backoffLimit of its Job, which then fails: raise it or wait for the Job"
        now = pods.rows[key]
        if fate is DrainOutcome.EVICTED and pods.node[now] >= 0:
            node = pods.node_names[now]
        elif fate is DrainOutcome.EVICTED:
            last = next((step for step in reversed(self._queue.steps) if step.pod == now), None)
            message, is_undecided = ("", False) if last is None else (last.message, last.decision is None)
        return DrainedPod(
            pod=key,
            fate=fate,
            budget=", ".join(budget.name for budget in stopped),
            node=node,
            message=message,
            is_undecided=is_undecided,
        )
