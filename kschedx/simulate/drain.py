"""A drain as `kubectl drain` does it: who goes, who stays, what a PodDisruptionBudget stops.

Pods are evicted as long as their budgets allow it. A pod that its controller has made anew and that has found a node
counts as ready again, which gives its budget back; one that finds none keeps it used up.

Sources of the rules: staging/src/k8s.io/kubectl/pkg/drain/filters.go, and pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.api.selectors import Selector, compile_selector
from kschedx.api.types import PodDisruptionBudget
from kschedx.errors import InputError
from kschedx.framework.moving import Run
from kschedx.simulate.controllers import is_controlled, is_of_daemon_set, is_of_kubelet
from kschedx.simulate.nodes import cordoned
from kschedx.simulate.queue import Queue


class Fate(StrEnum):
    """What a drain does with a pod."""

    EVICTED = "evicted"
    DELETED = "deleted"
    """Evicted, and nobody makes it anew."""
    OF_DAEMON_SET = "daemonset"
    OF_KUBELET = "mirror"
    NEEDS_FORCE = "needs-force"
    """No controller makes it anew: kubectl wants --force, and evicts nothing without it."""
    NEEDS_EMPTYDIR_FLAG = "needs-delete-emptydir-data"
    BUDGET = "budget"
    """A PodDisruptionBudget does not let it go."""


REFUSES = frozenset({Fate.NEEDS_FORCE, Fate.NEEDS_EMPTYDIR_FLAG})


class Leaves(Struct, frozen=True, kw_only=True):
    """One pod of a drained node."""

    pod: str
    fate: Fate
    budget: str = ""
    """`namespace/name` of the one that stops it."""
    node: str = ""
    """Where its successor went; empty where it has none, or waits."""
    message: str = ""
    """Why its successor waits."""


class Drained(Struct, frozen=True, kw_only=True):
    """What a drain came to."""

    node: str
    pods: tuple[Leaves, ...]
    waves: int = 0
    """How many times the budgets had to be waited for, the first eviction included."""
    budgets: tuple[tuple[str, int], ...] = ()
    """The budgets of its pods, with how many at a time each lets go."""

    @property
    def is_refused(self) -> bool:
        """kubectl evicts nothing, since a flag is missing."""
        return any(pod.fate in REFUSES for pod in self.pods)

    def of(self, *fates: Fate) -> tuple[Leaves, ...]:
        return tuple(pod for pod in self.pods if pod.fate in fates)

    @property
    def pending(self) -> tuple[Leaves, ...]:
        """Pods whose successors find no node."""
        return tuple(pod for pod in self.pods if pod.fate is Fate.EVICTED and not pod.node)

    @property
    def is_done(self) -> bool:
        """The node is empty but for what belongs to it, and everything has found another."""
        return not self.is_refused and not self.of(Fate.BUDGET) and not self.pending

    def to_dict(self) -> dict[str, object]:
        return {
            "node": self.node,
            "done": self.is_done,
            "waves": self.waves,
            "budgets": dict(self.budgets),
            "pods": [
                {"pod": one.pod, "fate": one.fate.value, "budget": one.budget, "node": one.node, "message": one.message}
                for one in self.pods
            ],
        }


class _Budget(Struct):
    """A budget while pods go and come back."""

    name: str
    namespace: str
    selector: Selector
    allowed: int


class Evictor:
    """Drains nodes of a run."""

    def __init__(self, run: Run, queue: Queue, *, force: bool, delete_emptydir_data: bool, recreate: bool) -> None:
        self._run = run
        self._queue = queue
        self._force = force
        self._delete_emptydir_data = delete_emptydir_data
        self._recreate = recreate
        self._budgets = list(filter(None, map(_budget, run.snapshot.disruption_budgets)))

    def drain(self, name: str, *, comes_back: bool) -> Drained:
        """Cordon a node and evict what kubectl would. `comes_back`: it is schedulable again in the end."""
        cluster = self._run.cluster
        node = cluster.snapshot.cluster.index[name]
        before = cluster.snapshot.cluster.nodes[node]
        cluster.replace_node(node, cordoned(before, unschedulable=True))
        rows = cluster.pods.on_node(node).tolist()
        fates = {row: self._fate(row) for row in rows}
        its_budgets = [budget for budget in self._budgets if any(self._covers(budget, row) for row in rows)]
        at_a_time = tuple((budget.name, budget.allowed) for budget in its_budgets)
        waves = 0
        stopped: dict[int, str] = {}
        if not any(fate in REFUSES for fate in fates.values()):
            going = [row for row, fate in fates.items() if fate in (Fate.EVICTED, Fate.DELETED)]
            waves, stopped = self._evict(going)
        if comes_back:
            cluster.replace_node(node, before)
        return Drained(
            node=name,
            pods=tuple(self._leaves(row, fate, stopped.get(row, "")) for row, fate in fates.items()),
            waves=waves,
            budgets=at_a_time,
        )

    def _fate(self, row: int) -> Fate:
        """In the order of kubectl's filters."""
        pods = self._run.cluster.pods
        owners = pods.owners[row]
        if is_of_daemon_set(owners):
            return Fate.OF_DAEMON_SET
        if is_of_kubelet(owners):
            return Fate.OF_KUBELET
        keeps_data = any(volume.empty_dir is not None for volume in pods.specs[row].volumes)
        if keeps_data and not self._delete_emptydir_data:
            return Fate.NEEDS_EMPTYDIR_FLAG
        if not is_controlled(owners):
            return Fate.DELETED if self._force else Fate.NEEDS_FORCE
        return Fate.EVICTED if self._recreate else Fate.DELETED

    def _evict(self, rows: Sequence[int]) -> tuple[int, dict[int, str]]:
        """Waves of evictions, each followed by the queue. Returns their number, and the pods left to the budgets that
        stop them."""
        cluster = self._run.cluster
        left = list(rows)
        waves = 0
        while left:
            wave: list[int] = []
            for row in left:
                budgets = [budget for budget in self._budgets if self._covers(budget, row)]
                # the API server does not evict a pod that has more than one
                if len(budgets) > 1 or any(budget.allowed < 1 for budget in budgets):
                    continue
                for budget in budgets:
                    budget.allowed -= 1
                wave.append(row)
            if not wave:
                break
            waves += 1
            again = []
            for row in wave:
                comes_back = self._recreate and is_controlled(cluster.pods.owners[row])
                self._queue.depart(row, waits=comes_back)
                if comes_back:
                    again.append(row)
            self._queue.is_last(again)
            self._queue.run(again)
            for row in again:
                if cluster.pods.node[row] >= 0:
                    for budget in self._budgets:
                        budget.allowed += self._covers(budget, row)
            left = [row for row in left if row not in set(wave)]
        return waves, {row: self._stopping(row) for row in left}

    def _stopping(self, row: int) -> str:
        budgets = [budget for budget in self._budgets if self._covers(budget, row)]
        return ", ".join(budget.name for budget in budgets if len(budgets) > 1 or budget.allowed < 1)

    def _covers(self, budget: _Budget, row: int) -> bool:
        pods = self._run.cluster.pods
        labels = pods.labels[row]
        return pods.namespaces[row] == budget.namespace and bool(labels) and budget.selector.matches(labels)

    def _leaves(self, row: int, fate: Fate, budget: str) -> Leaves:
        pods = self._run.cluster.pods
        if budget:
            fate = Fate.BUDGET
        node, message = "", ""
        if fate is Fate.EVICTED and pods.node[row] >= 0:
            node = pods.node_names[row]
        elif fate is Fate.EVICTED:
            last = next((step for step in reversed(self._queue.steps) if step.pod == row), None)
            if last is not None:
                message = last.undecided if last.decision is None else last.decision.message
        return Leaves(pod=pods.key(row), fate=fate, budget=budget, node=node, message=message)


def _budget(budget: PodDisruptionBudget) -> _Budget | None:
    """None for one that no pod belongs to."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InputError:
        return None
    metadata = budget.metadata
    return _Budget(
        name=f"{metadata.namespace}/{metadata.name}",
        namespace=metadata.namespace,
        selector=selector,
        allowed=budget.status.disruptions_allowed,
    )
