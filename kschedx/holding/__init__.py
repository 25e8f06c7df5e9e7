"""Everything that holds a pod before kube-scheduler sees it, or schedules it in kube-scheduler's place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from kschedx.errors import UndecidableError
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Scheduler
from kschedx.holding.model import Attempt, Gate, Holding, Kueue, ReportedPool
from kschedx.holding.pod_groups import pod_group_of
from kschedx.holding.schedulers import other_scheduler
from kschedx.kube.devices import ResourcePoolStatusRequest
from kschedx.kube.kueue import ADMISSION_GATE, TOPOLOGY_GATE, Workload
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot

OWNERS: Mapping[str, tuple[str, str]] = {
    "kueue.x-k8s.io/": ("Kueue", "kubectl describe workloads.kueue.x-k8s.io"),
    "scheduling.volcano.sh/": ("Volcano", "kubectl describe podgroups.scheduling.volcano.sh"),
    "karpenter.sh/": ("Karpenter", "kubectl describe nodeclaims.karpenter.sh"),
    "jobset.x-k8s.io/": ("JobSet", "kubectl describe jobsets.jobset.x-k8s.io"),
    "gke.io/": ("Google Kubernetes Engine", "the events of the pod"),
    "cloud.google.com/": ("Google Kubernetes Engine", "the events of the pod"),
    "multiarch.openshift.io/": ("the Multiarch Tuning Operator", "kubectl describe clusterpodplacementconfigs"),
}
"""Prefix to the owner of such gates, and the command or place that shows the cause."""


def _gates_of_others(pod: Pod) -> Iterator[Gate]:
    """Yield the pod's gates, without Kueue's own two: these are reported with its Workload."""
    for gate in pod.spec.scheduling_gates:
        if gate.name in (ADMISSION_GATE, TOPOLOGY_GATE):
            continue
        owner, look_at = next((known for prefix, known in OWNERS.items() if gate.name.startswith(prefix)), ("", ""))
        yield Gate(name=gate.name, owner=owner, look_at=look_at)


def find_holding(scheduler: Scheduler, cycle: Cycle) -> Holding:
    """Return what holds the pod of a finished cycle. Extenders are not called."""

    def attempt(pod: Pod, names: frozenset[str] | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
        try:
            filtered = scheduler.filter(pod, cycle.profile)
        except UndecidableError as unknown:
            return (), (str(unknown),)
        nodes, outcome = filtered.nodes, filtered.outcome
        if not filtered.status.is_success:
            return (), filtered.status.reasons
        among = np.array([names is None or name in names for name in nodes.names], dtype=np.bool_)
        feasible = nodes.names_where(outcome.passed & among)
        reasons = outcome.count_reasons(among)
        return feasible, () if feasible else tuple(sorted(f"{count} {reason}" for reason, count in reasons.items()))

    pod, snapshot = cycle.pod, cycle.snapshot
    names = {profile.scheduler_name for profile in scheduler.config.profiles}
    return Holding(
        kueue=_held_by_kueue(snapshot, pod, attempt),
        gates=tuple(_gates_of_others(pod)),
        scheduler=None if pod.spec.scheduler_name in names else other_scheduler(snapshot, pod),
        group=pod_group_of(scheduler, cycle, attempt),
        pools=tuple(_device_pools(snapshot, pod)),
    )


def _device_pools(snapshot: Snapshot, pod: Pod) -> Iterator[ReportedPool]:
    """Yield each pool of the newest ResourcePoolStatusRequest with it, for a pod with claims and without a node."""
    if not pod.spec.resource_claims or pod.spec.node_name:
        return
    seen: set[tuple[str, str]] = set()
    reports = sorted(snapshot.of(ResourcePoolStatusRequest), key=lambda request: request.metadata.name)
    for report in sorted(reports, key=lambda request: request.metadata.creation_timestamp or "", reverse=True):
        for pool in report.status.pools:
            if (pool.driver, pool.pool_name) in seen:
                continue
            seen.add((pool.driver, pool.pool_name))
            yield ReportedPool(
                request=report.metadata.name,
                driver=pool.driver,
                pool=pool.pool_name,
                node=pool.node_name or "",
                total=pool.total_devices,
                allocated=pool.allocated_devices,
                available=pool.available_devices,
                unavailable=pool.unavailable_devices,
                error=pool.validation_error or "",
            )


def _held_by_kueue(snapshot: Snapshot, pod: Pod, attempt: Attempt) -> Kueue | None:
    """Load Kueue's rules only for a cluster that has Workloads, or a pod with a gate of Kueue."""
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    if not snapshot.of(Workload) and not gates & {ADMISSION_GATE, TOPOLOGY_GATE}:
        return None
    from kschedx.holding.kueue import held_by_kueue

    return held_by_kueue(snapshot, pod, attempt)


__all__ = ["Holding", "find_holding"]
