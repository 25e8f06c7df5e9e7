"""The evictions that PodDisruptionBudgets allow while pods are created and deleted.

A budget's status is what its controller computed from the cluster as it was read. Later changes adjust it, as the
controller does on its next sync: healthy pods that are lost, pods that are scheduled and assumed ready, and changed
replicas. A budget without a status is computed here. Upstream: pkg/controller/disruption/disruption.go and
pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers import workloads
from kschedx.errors import InputError
from kschedx.grouping import group_pairs
from kschedx.kube.conditions import condition_of, reports_ready
from kschedx.kube.scalars import scale_percent
from kschedx.kube.selectors import Selector, compile_selector
from kschedx.kube.types import FINISHED, PodDisruptionBudget, PodStatus
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

ALWAYS = "AlwaysAllow"  # the spec.unhealthyPodEvictionPolicy that always allows the eviction of a pod that is not ready
_STARTING = frozenset({"", "ContainerCreating", "PodInitializing"})
"""The reasons of a waiting container that the kubelet starts next."""
_SYNC_FAILED = "SyncFailed"
"""The reason of the condition DisruptionAllowed=False if the pods' controllers have no scale subresource."""

_WITHOUT_SCALE = {"DaemonSet": "daemonsets.apps", "Job": "jobs.batch"}
"""Kinds of controllers whose number of pods the disruption controller cannot read."""


class BudgetStatus(Struct, frozen=True, kw_only=True):
    """A budget at one moment, in pods."""

    healthy: int
    needed: int
    allowed: int  # the number of further evictions that are allowed; negative if that many healthy pods are missing
    unready: tuple[str, ...] = ()  # pods, `namespace/name`, that do not count as healthy
    pending: tuple[str, ...] = ()  # the unready pods without a node
    failure: str = ""  # why the controller cannot count the expected pods, so that it allows no disruption
    rule: str = ""  # `maxUnavailable 0` or `minAvailable 90%`; empty if the budget states the number of needed pods

    @property
    def text(self) -> str:
        """`needs 2 healthy pods and has 1: shop/web-0 is not ready`, if the budget allows no disruption."""
        if self.failure:
            return f"allows no disruption (SyncFailed): {self.failure}"
        if self.needed < self.healthy:
            return "allows no disruption"
        state = f"{'is' if len(self.unready) == 1 else 'are'} "
        state += "pending" if self.pending == self.unready else "not ready"
        not_ready = f": {list_names(self.unready, 2)} {state}" if self.unready else ""
        rule = f" ({self.rule})" if self.rule else ""
        return f"needs {count(self.needed, 'healthy pod')}{rule} and has {self.healthy:,}{not_ready}"


class MovingBudget:
    """A PodDisruptionBudget of a moving cluster."""

    def __init__(self, budget: PodDisruptionBudget, selector: Selector, base: Snapshot) -> None:
        """`base` is the cluster from which the status was computed."""
        self.name, self.namespace = budget.key, budget.metadata.namespace
        self._selector = selector
        self._budget = budget
        self._base = base

    @cached_property
    def _first_status(self) -> BudgetStatus:
        return self._count_status(self._base, self._base.pods, frozenset())

    @property
    def lag(self) -> str:
        """`generation 1 of 2`, if its status is that of an earlier generation: the API server then refuses every
        eviction (checkAndDecrement)."""
        newest, observed = self._budget.metadata.generation, self._budget.status.observed_generation
        is_behind = self._budget.status.disruptions_allowed is not None and 0 < observed < newest
        return f"generation {observed} of {newest}" if is_behind else ""

    @property
    def frees_unhealthy(self) -> bool:
        """Whether a pod that is not ready may be evicted whatever the budget allows."""
        return self._budget.spec.unhealthy_pod_eviction_policy == ALWAYS

    def covers(self, pods: PodTable, row: int) -> bool:
        return pods.namespaces[row] == self.namespace and self._selector.matches(pods.labels[row])

    def current_status(self, snapshot: Snapshot, pods: PodTable, fresh: Collection[int]) -> BudgetStatus:
        """The current status in a cluster with these `pods`; the pods in the rows `fresh` have been recreated."""
        now, first, status = self._count_status(snapshot, pods, fresh), self._first_status, self._budget.status
        failure = next((condition.message for condition in status.conditions if condition.reason == _SYNC_FAILED), "")
        is_number = isinstance(self._budget.spec.min_available, int) and self._budget.spec.max_unavailable is None
        is_behind = status.observed_generation < self._budget.metadata.generation
        if status.disruptions_allowed is None or is_behind or (failure and is_number):
            return now
        if failure:
            return replace(now, needed=now.healthy, allowed=0, failure=failure)
        needed = now.needed if status.desired_healthy is None else status.desired_healthy + now.needed - first.needed
        healthy = (
            now.healthy if status.current_healthy is None else status.current_healthy + now.healthy - first.healthy
        )
        allowed = status.disruptions_allowed + now.allowed - first.allowed
        return replace(now, healthy=healthy, needed=needed, allowed=allowed, failure="")

    def _count_status(self, snapshot: Snapshot, pods: PodTable, fresh: Collection[int]) -> BudgetStatus:
        """Return the status that the controller would compute: running and ready pods are healthy."""
        inside = pods.rows_in_namespaces(self.namespace.__eq__)
        covered = inside[pods.labels.take(inside).where(self._selector.matches)].tolist()
        rows = [row for row in covered if pods.phases[row] not in FINISHED]
        unready = tuple(
            pods.key(row) for row in rows if pods.deletion_timestamps[row] or not is_healthy(pods, row, fresh)
        )
        pending = tuple(key for key in unready if not pods.node_names[pods.rows[key]])
        healthy, needed = len(rows) - len(unready), 0
        spec, rule, failure, allowed = self._budget.spec, "", "", 0
        if spec.max_unavailable is None and not isinstance(spec.min_available, str):
            needed = spec.min_available or 0
            allowed = healthy - needed
        else:
            expected, failure = _expected_count(snapshot, pods, covered)
            if spec.max_unavailable is not None:
                rule = f"maxUnavailable {spec.max_unavailable}"
                needed = max(expected - (scale_percent(spec.max_unavailable, expected, is_up=True) or 0), 0)
            else:
                rule = f"minAvailable {spec.min_available}"
                needed = scale_percent(spec.min_available or 0, expected, is_up=True) or 0
            if expected:
                allowed = healthy - needed
        return BudgetStatus(
            healthy=healthy,
            needed=needed,
            allowed=allowed,
            unready=unready,
            pending=pending,
            failure=failure,
            rule=rule,
        )


def budgets_of(snapshot: Snapshot, base: Snapshot) -> Iterator[MovingBudget]:
    """Yield the budgets with a valid selector, in their order; an empty selector covers the whole namespace. `base` is
    the cluster from which their status was computed."""
    for budget in snapshot.disruption_budgets:
        try:
            yield MovingBudget(budget, compile_selector(budget.spec.selector), base)
        except InputError:
            continue


class MovingBudgets:
    """The budgets of a moving cluster, by namespace."""

    def __init__(self, snapshot: Snapshot, base: Snapshot) -> None:
        self._of_namespace = group_pairs((budget.namespace, budget) for budget in budgets_of(snapshot, base))

    def __iter__(self) -> Iterator[MovingBudget]:
        return itertools.chain.from_iterable(self._of_namespace.values())

    def of(self, pods: PodTable, row: int) -> list[MovingBudget]:
        """Return the budgets that cover a pod."""
        return [budget for budget in self._of_namespace.get(pods.namespaces[row], ()) if budget.covers(pods, row)]


def is_healthy(pods: PodTable, row: int, fresh: Collection[int]) -> bool:
    """Whether a pod counts as healthy: it has a node and no report of being unready, or it is reported as ready. The
    report about a recreated pod (`fresh`) is that of the pod that it replaces."""
    status = pods.statuses[row]
    if pods.node[row] < 0:
        return condition_of(status.conditions, "Ready", "True") is not None
    return reports_ready(status.conditions) or (row in fresh and becomes_ready(status, pods.phases[row]))


def becomes_ready(status: PodStatus, phase: str) -> bool:
    """Whether the replacement of a pod is expected to become ready. That of a pod that has started and is not ready
    crashes, or fails its readiness probe, in the same way on another node."""
    if waiting := {*status.waiting_reasons}:
        return waiting.issubset(_STARTING)
    return phase == "Pending" or reports_ready(status.conditions)


def _expected_count(snapshot: Snapshot, pods: PodTable, rows: list[int]) -> tuple[int, str]:
    """Return how many pods their controllers want, and why that is unknown to the disruption controller. It leaves out
    pods without a controller (getExpectedScale)."""
    owners = workloads.owners_in(snapshot)
    members: dict[workloads.Workload, int] = {}
    for row in rows:
        workload = owners.of(pods, row)
        if workload.kind != "Pod":
            members[workload] = members.get(workload, 0) + 1
    expected = 0
    for workload, number in members.items():
        if workload.kind in _WITHOUT_SCALE:
            return 0, f"{_WITHOUT_SCALE[workload.kind]} does not implement the scale subresource"
        manifest = snapshot.manifest_of(workload)
        is_known = manifest is not None and workloads.has_replica_count(manifest)
        expected += workloads.wanted_replicas(manifest) if manifest is not None and is_known else number
    return expected, ""
