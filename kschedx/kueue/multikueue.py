"""The worker clusters of MultiKueue that cannot run a Workload: those that do not exist or are not connected.

Upstream: pkg/controller/admissionchecks/multikueue (admissioncheck.go, multikueuecluster.go) of kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from kschedx.kube.conditions import condition_of
from kschedx.kube.kueue import (
    MULTIKUEUE,
    AdmissionCheck,
    ClusterQueue,
    LocalQueue,
    MultiKueueCluster,
    MultiKueueConfig,
    Workload,
)
from kschedx.kube.typos import nearest_name
from kschedx.kueue.workloads import checks_of
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_MOST = 3


class _UnusableWorker(Struct, frozen=True, kw_only=True):
    """A worker cluster to which MultiKueue dispatches nothing."""

    name: str
    why: str  # `is not active (ClientConnectionFailed): no route to host`
    repair: str


def is_dispatched(snapshot: Snapshot, workload: Workload) -> bool:
    """Return whether the pods of a Workload run in a worker cluster, and never in this one."""
    if workload.status.cluster_name:
        return True
    names = {check.name for check in workload.status.admission_checks} or set(_checks_of_queue(snapshot, workload))
    checks = (check for check in snapshot.of(AdmissionCheck) if check.metadata.name in names)
    return any(check.spec.controller_name == MULTIKUEUE for check in checks)


def _checks_of_queue(snapshot: Snapshot, workload: Workload) -> Iterator[str]:
    """Yield the AdmissionChecks of the ClusterQueue of a Workload that has no quota yet."""
    local = workload.metadata.namespace, workload.spec.queue_name
    locals_ = (it for it in snapshot.of(LocalQueue) if (it.metadata.namespace, it.metadata.name) == local)
    names = {queue.spec.cluster_queue for queue in locals_}
    for queue in snapshot.of(ClusterQueue):
        if queue.metadata.name in names:
            yield from checks_of(queue)


def workers_of(snapshot: Snapshot, check: AdmissionCheck) -> tuple[str, ...]:
    """Return the worker clusters in the MultiKueueConfig of a check, in order; none if that is not known."""
    if check.spec.controller_name != MULTIKUEUE or check.spec.parameters is None:
        return ()
    named = check.spec.parameters.name
    configs = snapshot.of(MultiKueueConfig)
    return next((config.spec.clusters for config in configs if config.metadata.name == named), ())


def unusable_workers(snapshot: Snapshot, names: Iterable[str]) -> Iterator[_UnusableWorker]:
    """Yield the worker clusters of these names that are missing or not active. Nothing is known about them if the dump
    has no MultiKueueCluster."""
    known = {cluster.metadata.name: cluster for cluster in snapshot.of(MultiKueueCluster)}
    for name in names if known else ():
        cluster = known.get(name)
        if cluster is None:
            near = nearest_name(name, sorted(known))
            why = f"does not exist{f' (did you mean {near}?)' if near else ''}"
            repair = f"create MultiKueueCluster {name}, or name another one in the MultiKueueConfig"
            yield _UnusableWorker(name=name, why=why, repair=repair)
            continue
        active = condition_of(cluster.status.conditions, "Active")
        if active is None or active.status != "True":
            reason = f" ({active.reason})" if active is not None and active.reason else ""
            message = "" if active is None else active.message
            shown = message or (f"{active.type} is {active.status}" if active else "Kueue has not connected to it")
            repair = f"repair the connection to MultiKueueCluster {name}: {shown}"
            yield _UnusableWorker(name=name, why=f"is not active{reason}: {shown}", repair=repair)


def repairs_of_workers(snapshot: Snapshot, check: AdmissionCheck, workload: str = "") -> Iterator[str]:
    """Yield what makes the worker clusters of a check usable; for a Workload that is dispatched to usable ones, where
    to look."""
    names = workers_of(snapshot, check)
    unusable = [*unusable_workers(snapshot, names)]
    yield from (worker.repair for worker in unusable[:_MOST])
    usable = [name for name in names if name not in {worker.name for worker in unusable}]
    if workload and usable:
        where = list_names(usable, _MOST, conjunction="and")
        yield f"see in worker cluster {where} why Kueue does not admit Workload {workload} there"
