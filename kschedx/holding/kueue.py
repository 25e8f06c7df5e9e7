"""From a pod to its Workload, the queue in which that waits, and the nodes that it would come to.

Upstream: pkg/controller/jobs/pod and pkg/queue of kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from kschedx.api import kueue as api
from kschedx.api.kueue import ClusterQueue, Cohort, LocalQueue, ResourceFlavor, Workload
from kschedx.api.resources import RequestOptions
from kschedx.api.types import Pod
from kschedx.holding.cohorts import Cohorts
from kschedx.holding.model import FlavorFit, Kueue, Said, State
from kschedx.holding.quota import flavors_of, quotas
from kschedx.snapshot.snapshot import Snapshot

Try = Callable[[Pod, frozenset[str] | None], tuple[tuple[str, ...], tuple[str, ...]]]
"""A pod, and the nodes to look at (None for all), to those on which it would pass every filter and, where there is
none, the reasons with their counts."""


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
    )
    if state is State.WAITING and cluster_queue is not None:
        waiting = _queued(snapshot, named)
        order = [one.key for one in waiting]
        position = order.index(workload.key) if workload.key in order else None
        found = replace(
            found,
            position=None if position is None else position + 1,
            waiting=len(order),
            ahead=tuple(order[:position]) if position is not None else (),
            quotas=tuple(quotas(workload, cluster_queue, cohorts, snapshot.of(Workload), options)),
        )
    if state in (State.FINISHED, State.NO_QUEUE):
        return found
    return replace(found, fits=tuple(_fits(snapshot, pod, workload, cluster_queue, attempt)))


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
    """Those that wait in a ClusterQueue: the highest priority first, then the oldest."""
    queues = {
        (one.metadata.namespace, one.metadata.name)
        for one in snapshot.of(LocalQueue)
        if one.spec.cluster_queue == cluster_queue
    }
    waiting = [
        one for one in snapshot.of(Workload) if one.waits and (one.metadata.namespace, one.spec.queue_name) in queues
    ]
    return sorted(waiting, key=lambda one: (-one.priority, one.metadata.creation_timestamp or "", one.key))


# --- the pod as if it were admitted


def _fits(
    snapshot: Snapshot, pod: Pod, workload: Workload, queue: ClusterQueue | None, attempt: Try
) -> Iterator[FlavorFit]:
    """One for each flavor that the pod may come to: those that it was given, else all of its queue."""
    known = {one.metadata.name: one for one in snapshot.of(ResourceFlavor)}
    for name in dict.fromkeys(_flavors(pod, workload, queue)):
        flavor = known.get(name)
        if flavor is None:
            yield FlavorFit(flavor=name, exists=False, nodes=0, feasible=())
            continue
        labels = flavor.spec.node_labels
        nodes = frozenset(
            node.name for node in snapshot.cluster.nodes if labels.items() <= node.metadata.labels.items()
        )
        feasible, reasons = attempt(as_if_admitted(pod, flavor), nodes)
        yield FlavorFit(
            flavor=name,
            exists=True,
            nodes=len(nodes),
            feasible=feasible,
            reasons=reasons,
            topology=flavor.spec.topology_name or "",
        )


def _flavors(pod: Pod, workload: Workload, queue: ClusterQueue | None) -> Iterator[str]:
    admission = workload.status.admission
    if admission is not None:
        wanted = pod.metadata.labels.get(api.PODSET_LABEL)
        assignments = [one for one in admission.pod_set_assignments if wanted in (None, one.name)]
        for assignment in assignments or admission.pod_set_assignments:
            yield from assignment.flavors.values()
    elif queue is not None:
        for flavor in flavors_of(queue):
            yield flavor.name


def as_if_admitted(pod: Pod, flavor: ResourceFlavor) -> Pod:
    """Without Kueue's gates, and with what Kueue adds to a pod that gets the flavor; others' gates filter nothing."""
    gates = tuple(one for one in pod.spec.scheduling_gates if not one.name.startswith(f"{api.GROUP}/"))
    spec = replace(
        pod.spec,
        scheduling_gates=gates,
        node_selector={**pod.spec.node_selector, **flavor.spec.node_labels},
        tolerations=(*pod.spec.tolerations, *flavor.spec.tolerations),
    )
    return replace(pod, spec=spec)
