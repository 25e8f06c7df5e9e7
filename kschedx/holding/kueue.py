"""From a pod to its Workload, the queue in which that waits, and the nodes that it would come to.

Upstream: pkg/controller/jobs/pod and pkg/queue of kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypedDict

from msgspec.structs import replace

from kschedx.api import kueue as api
from kschedx.api.kueue import ClusterQueue, Cohort, LocalQueue, Workload
from kschedx.api.resources import RequestOptions
from kschedx.api.types import Pod
from kschedx.holding.attempt import Try
from kschedx.holding.cohorts import Cohorts
from kschedx.holding.flavors import fits
from kschedx.holding.model import Kueue, Said, State
from kschedx.holding.quota import quotas
from kschedx.snapshot.snapshot import Snapshot


def held_by_kueue(snapshot: Snapshot, pod: Pod, options: RequestOptions, attempt: Try) -> Kueue | None:
    """None for a pod that Kueue has nothing to do with."""
    workload = _workload_of(snapshot, pod)
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    gated = bool(gates & {api.ADMISSION_GATE, api.TOPOLOGY_GATE})
    queue_name = pod.metadata.labels.get(api.QUEUE_LABEL, "") or (workload.spec.queue_name if workload else "")
    if workload is None and not gated:
        return None  # whatever the label says: nobody holds it
    if workload is None:
        return Kueue(state=State.NO_WORKLOAD, queue=queue_name, is_gated=True)
    local = _local_queue(snapshot, pod.metadata.namespace, workload.spec.queue_name)
    admission = workload.status.admission
    named = admission.cluster_queue if admission else local.spec.cluster_queue if local else ""
    cluster_queue = next((one for one in snapshot.of(ClusterQueue) if one.metadata.name == named), None)
    cohorts = Cohorts(snapshot.of(ClusterQueue), snapshot.of(Cohort))
    state = _state(workload, local, cluster_queue)
    found = Kueue(
        state=state,
        queue=workload.spec.queue_name or queue_name,
        workload=workload.key,
        cluster_queue=named,
        cohort=cluster_queue.cohort if cluster_queue else "",
        cohorts=cohorts.above(cluster_queue) if cluster_queue else (),
        circle=cohorts.circle(cluster_queue) if cluster_queue else (),
        cluster=workload.status.cluster_name or "",
        priority=workload.priority,
        said=tuple(_said(workload, local, cluster_queue, state)),
        checks=tuple(
            Said(type=check.name, status=check.state, message=check.message)
            for check in workload.status.admission_checks
            if check.state != "Ready"
        ),
        is_gated=gated,
        requeue_at=(workload.status.requeue_state.requeue_at or "") if workload.status.requeue_state else "",
    )
    if cluster_queue is not None:
        found = replace(found, **_sharing(cluster_queue))
    if state is State.WAITING and cluster_queue is not None:
        waiting = _queued(snapshot, named)
        order = [one.key for one in waiting]
        position = order.index(workload.key) if workload.key in order else None
        found = replace(
            found,
            position=None if position is None or found.is_by_usage else position + 1,
            waiting=len(order),
            ahead=tuple(order[:position]) if position is not None and not found.is_by_usage else (),
            quotas=tuple(quotas(workload, cluster_queue, cohorts, snapshot.of(Workload), options)),
        )
    if state in (State.FINISHED, State.NO_QUEUE):
        return found
    return replace(found, fits=tuple(fits(snapshot, pod, workload, cluster_queue, attempt)))


# --- who belongs to whom


def _workload_of(snapshot: Snapshot, pod: Pod) -> Workload | None:
    """The Workload that owns the pod's quota: it names the pod, or what made the pod, as its owner."""
    mine = [one for one in snapshot.of(Workload) if one.metadata.namespace == pod.metadata.namespace]
    if not mine:
        return None
    owners = {("Pod", pod.metadata.name), *((owner.kind, owner.name) for owner in pod.metadata.owner_references)}
    group = pod.metadata.labels.get(api.GROUP_LABEL)
    found = [
        one
        for one in mine
        if any((owner.kind, owner.name) in owners for owner in one.metadata.owner_references)
        or (group is not None and one.metadata.name == group)
    ]
    return min(found, key=lambda one: (one.has("Finished"), one.metadata.name), default=None)


def _local_queue(snapshot: Snapshot, namespace: str, name: str) -> LocalQueue | None:
    return next(
        (one for one in snapshot.of(LocalQueue) if (one.metadata.namespace, one.metadata.name) == (namespace, name)),
        None,
    )


# --- how it stands


def _state(workload: Workload, local: LocalQueue | None, queue: ClusterQueue | None) -> State:
    if workload.has("Finished"):
        return State.FINISHED
    if workload.has("Admitted"):
        return State.ADMITTED
    if workload.has("QuotaReserved"):
        return State.CHECKING
    if local is None or queue is None:
        return State.NO_QUEUE
    stops = {local.spec.stop_policy, queue.spec.stop_policy} - {None, "", "None"}
    inactive = any(
        one.type == "Active" and one.status == "False" for one in (*local.status.conditions, *queue.status.conditions)
    )
    return State.STOPPED if workload.spec.active is False or stops or inactive else State.WAITING


_TELLING = ("QuotaReserved", "Evicted", "Requeued", "DeactivationTarget", "PodsReady", "Finished")
"""A Workload's conditions that say why it is where it is."""


def _said(workload: Workload, local: LocalQueue | None, queue: ClusterQueue | None, state: State) -> Iterator[Said]:
    for kind in _TELLING:
        one = workload.condition(kind)
        if one is None or not (one.message or one.reason):
            continue
        is_old = kind == "QuotaReserved" and one.status == "True" and state is State.ADMITTED
        is_well = kind in ("Requeued", "PodsReady") and one.status == "True"
        if not is_old and not is_well and not (kind in ("Evicted", "DeactivationTarget") and one.status != "True"):
            yield Said(type=kind, status=one.status, reason=one.reason, message=one.message)
    for owner in (local, queue):
        for one in owner.status.conditions if owner is not None else ():
            if one.type == "Active" and one.status == "False":
                yield Said(type=one.type, status=one.status, reason=one.reason, message=one.message)


def _queued(snapshot: Snapshot, cluster_queue: str) -> list[Workload]:
    """Those that wait in a ClusterQueue: the highest priority first, then who waits the longest."""
    queues = {
        (one.metadata.namespace, one.metadata.name)
        for one in snapshot.of(LocalQueue)
        if one.spec.cluster_queue == cluster_queue
    }
    waiting = [
        one for one in snapshot.of(Workload) if one.waits and (one.metadata.namespace, one.spec.queue_name) in queues
    ]
    return sorted(waiting, key=lambda one: (-one.priority, one.queued_since, one.key))


class _Sharing(TypedDict, total=False):
    weighted_share: int
    fair_weight: str
    is_by_usage: bool
    within_queue: str
    within_cohort: str


def _sharing(queue: ClusterQueue) -> _Sharing:
    """Who comes first among queues, and whose quota is taken."""
    found: _Sharing = {}
    spec = queue.spec
    if queue.cohort and queue.status.fair_sharing is not None:
        found["weighted_share"] = queue.status.fair_sharing.weighted_share
        weight = spec.fair_sharing.weight if spec.fair_sharing is not None else None
        found["fair_weight"] = "1" if weight is None else str(weight)
    found["is_by_usage"] = spec.admission_scope is not None and spec.admission_scope.admission_mode == api.BY_USAGE
    if spec.preemption is not None:
        found["within_queue"] = spec.preemption.within_cluster_queue
        found["within_cohort"] = spec.preemption.reclaim_within_cohort if queue.cohort else ""
    return found
