"""The Workload of a pod, the queue in which it is pending, and the nodes on which the pod would fit.

`kschedx.kueue` decides; this module reports the pod's state. Upstream: pkg/controller/jobs/pod and pkg/podset of
kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from kschedx.holding.model import Attempt, FlavorFit, FlavorPool, FlavorQuota, Kueue, QuotaUser, WorkloadState
from kschedx.kube import kueue as api
from kschedx.kube.conditions import Condition, condition_of
from kschedx.kube.kueue import (
    RESOURCE_FLAVOR,
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    LocalQueue,
    PodSetAssignment,
    PodSetUpdate,
    ResourceFlavor,
    Workload,
)
from kschedx.kube.names import PODS
from kschedx.kube.scalars import parse_int64
from kschedx.kube.types import Pod
from kschedx.kueue.flavors import flavor_mismatch
from kschedx.kueue.multikueue import is_dispatched, unusable_workers, workers_of
from kschedx.kueue.quota import QueueNode, Requests, add_requests
from kschedx.kueue.run import AdmissionRun
from kschedx.kueue.settings import settings_of
from kschedx.kueue.verdict import decision_of, judge
from kschedx.kueue.workloads import Job, timestamp
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.snapshot import Snapshot

# A pod as if Kueue had admitted it with a flavor, on the nodes of that flavor. Upstream: checkFlavorForPodSets in
# pkg/scheduler/flavorassigner, pkg/podset and pkg/controller/tas of kubernetes-sigs/kueue.


def _flavor_fits(
    snapshot: Snapshot, pod: Pod, workload: Workload, queue: ClusterQueue | None, attempt: Attempt
) -> Iterator[FlavorFit]:
    """Yield a result for each flavor that the pod can get: its assigned flavors, else all of its queue."""
    known = {flavor.metadata.name: flavor for flavor in snapshot.of(ResourceFlavor)}
    assigned = _assignments(pod, workload)
    given = [name for assignment in assigned for name in assignment.flavors.values()]
    offered = queue.flavors if queue is not None and not assigned else ()
    domains = {
        assignment.topology_assignment.levels: assignment.topology_assignment.values()
        for assignment in assigned
        if assignment.topology_assignment is not None and assignment.topology_assignment.levels
    }
    updates = _updates(pod, workload)
    for name in dict.fromkeys((*given, *offered)):
        flavor = known.get(name)
        if flavor is None:
            if not snapshot.source.may_lack(RESOURCE_FLAVOR):
                yield FlavorFit(flavor=name, exists=False, nodes=0, feasible=())
            continue
        labels = flavor.spec.node_labels
        nodes = frozenset(
            node.name
            for node in snapshot.cluster.nodes
            if labels.items() <= node.metadata.labels.items() and _is_within(node.metadata.labels, domains)
        )
        refused = "" if given else flavor_mismatch(pod.spec, flavor)
        feasible, reasons = ((), ()) if refused else attempt(admit_pod(pod, flavor, updates), nodes)
        yield FlavorFit(
            flavor=name,
            exists=True,
            nodes=len(nodes),
            feasible=feasible,
            reasons=reasons,
            refused=refused,
            topology=flavor.spec.topology_name or "",
        )


def _assignments(pod: Pod, workload: Workload) -> Sequence[PodSetAssignment]:
    """Return the assignments of the pod's set, or all if the pod does not name its set."""
    every = workload.status.admission.pod_set_assignments if workload.status.admission is not None else ()
    wanted = pod.metadata.labels.get(api.PODSET_LABEL)
    return [assignment for assignment in every if wanted in (None, assignment.name)] or every


def _updates(pod: Pod, workload: Workload) -> Sequence[PodSetUpdate]:
    """Return what ready admission checks add to the pod's set."""
    wanted = pod.metadata.labels.get(api.PODSET_LABEL)
    ready = (check for check in workload.status.admission_checks if check.state == "Ready")
    every = [pod_set_update for check in ready for pod_set_update in check.pod_set_updates]
    is_only_set = wanted is None and len(workload.spec.pod_sets) <= 1
    return every if is_only_set else [update for update in every if update.name == wanted]


_FlavorDomains = Mapping[tuple[str, ...], Collection[tuple[str, ...]]]
"""Keys of labels to the values that they can have together."""


def _is_within(labels: Mapping[str, str], domains: _FlavorDomains) -> bool:
    return not domains or any(tuple(labels.get(level, "") for level in levels) in domains[levels] for levels in domains)


def admit_pod(pod: Pod, flavor: ResourceFlavor, updates: Sequence[PodSetUpdate] = ()) -> Pod:
    """Return the pod without Kueue's gates and with what Kueue and its checks add to it. Other gates filter nothing."""
    gates = tuple(gate for gate in pod.spec.scheduling_gates if not gate.name.startswith(f"{api.KUEUE_GROUP}/"))
    selector = {**pod.spec.node_selector, **flavor.spec.node_labels}
    tolerations = (*pod.spec.tolerations, *flavor.spec.tolerations)
    for update in updates:
        selector |= update.node_selector
        tolerations += update.tolerations
    spec = replace(pod.spec, scheduling_gates=gates, node_selector=selector, tolerations=tolerations)
    return replace(pod, spec=spec)


# Upstream: pkg/controller/jobs/pod and pkg/queue of kubernetes-sigs/kueue.


def held_by_kueue(snapshot: Snapshot, pod: Pod, attempt: Attempt) -> Kueue | None:
    """Return the pod's state in Kueue; None for a pod that Kueue does not manage."""
    workload = _workload_of(snapshot, pod)
    is_gated = any(gate.name in (api.ADMISSION_GATE, api.TOPOLOGY_GATE) for gate in pod.spec.scheduling_gates)
    if workload is None:
        return _without_workload(snapshot, pod) if is_gated else None  # whatever its label is, it is not held
    run = _kueue_state(snapshot)
    local = run.local_queue(run.jobs[workload.key])
    admission = workload.status.admission
    named = admission.cluster_queue if admission else local.spec.cluster_queue if local else ""
    node = run.cache.tree.queues.get(named)
    cluster_queue = node.queue if node is not None else None
    cohorts = _cohorts(snapshot, cluster_queue) if cluster_queue is not None else ()
    state = _state(workload, local, cluster_queue, run)
    requeue_state = workload.status.requeue_state
    awaited = _awaited_checks(snapshot, workload)
    kueue = Kueue(
        state=state,
        queue=workload.spec.queue_name or pod.metadata.labels.get(api.QUEUE_LABEL, ""),
        workload=workload.key,
        cluster_queue=named,
        cohort=cluster_queue.cohort if cluster_queue else "",
        cohorts=cohorts,
        circle=cohorts if node is not None and node.has_cycle else (),
        cluster=workload.status.cluster_name or "",
        is_dispatched=is_dispatched(snapshot, workload),
        workers=tuple(_unusable_workers(snapshot, workload)),
        priority=workload.priority,
        said=tuple(_workload_conditions(workload, (local, cluster_queue, *awaited), state)),
        checks=tuple(
            Condition(type=check.name, status=check.state, message=check.message)
            for check in workload.status.admission_checks
            if check.state != "Ready"
        ),
        is_gated=is_gated,
        requeue_at=(requeue_state and requeue_state.requeue_at) or "",
    )
    if cluster_queue is not None:
        kueue = _with_sharing(kueue, cluster_queue)
    if state is WorkloadState.WAITING and node is not None:
        order = [job.key for job in run.queues[named].everyone]
        kueue = replace(kueue, waiting=len(order), quotas=tuple(_quotas(run, node, run.jobs[workload.key])))
        if workload.key in order and not kueue.is_by_usage:
            position = order.index(workload.key)
            kueue = replace(kueue, position=position + 1, ahead=tuple(order[:position]))
    is_judged = state in (WorkloadState.WAITING, WorkloadState.STOPPED, WorkloadState.CHECKING)
    if is_judged or kueue.workers or (state is WorkloadState.NO_QUEUE and local is not None):
        now = timestamp(snapshot.source.taken)
        kueue = replace(
            kueue,
            decide=partial(decision_of, snapshot, workload.key),
            judge=partial(judge, snapshot, workload.key, now=now),
        )
    if state is WorkloadState.NO_QUEUE and local is None:
        return _without_queue(snapshot, pod.metadata.namespace, kueue)
    if state in (WorkloadState.FINISHED, WorkloadState.NO_QUEUE) or kueue.is_dispatched:
        return kueue
    return replace(kueue, fits=tuple(_flavor_fits(snapshot, pod, workload, cluster_queue, attempt)))


def _without_workload(snapshot: Snapshot, pod: Pod) -> Kueue:
    """Return the state of a pod that has Kueue's gate, and no Workload."""
    queue = pod.metadata.labels.get(api.QUEUE_LABEL, "")
    kueue = Kueue(state=WorkloadState.NO_WORKLOAD, queue=queue, is_gated=True)
    without = _without_queue(snapshot, pod.metadata.namespace, kueue)
    if queue and queue not in without.known_queues and (without.known_queues or without.namespaces_of_queue):
        return replace(without, state=WorkloadState.NO_QUEUE)
    return _incomplete_group(snapshot, pod, kueue)


def _without_queue(snapshot: Snapshot, namespace: str, kueue: Kueue) -> Kueue:
    """Add which LocalQueues the namespace has, and which namespaces have one of that name."""
    every = [local.metadata for local in snapshot.of(LocalQueue)]
    return replace(
        kueue,
        known_queues=tuple(sorted(local.name for local in every if local.namespace == namespace)),
        namespaces_of_queue=tuple(sorted(local.namespace for local in every if local.name == kueue.queue)),
    )


def _incomplete_group(snapshot: Snapshot, pod: Pod, kueue: Kueue) -> Kueue:
    """Add how many pods of its group exist, if Kueue has to see more before it creates the Workload."""
    name = pod.metadata.labels.get(api.GROUP_LABEL, "")
    total = parse_int64(pod.metadata.annotations.get(api.GROUP_TOTAL, ""))
    if not name or total is None:
        return kueue
    pods = snapshot.pods
    inside = pods.labels.where(lambda labels: labels.get(api.GROUP_LABEL) == name)
    inside &= pods.in_namespace(pod.metadata.namespace)
    number = int(inside.sum()) + (pod.key not in pods.rows)
    return replace(kueue, group=name, group_pods=number, group_total=total) if number < total else kueue


_RUNS = Memo[AdmissionRun]()


def _kueue_state(snapshot: Snapshot) -> AdmissionRun:
    """Return Kueue's state before its next cycle, computed once per snapshot."""
    now = timestamp(snapshot.source.taken)
    return _RUNS.of(snapshot.derived, lambda: AdmissionRun(snapshot, settings_of(snapshot), now))


def _cohorts(snapshot: Snapshot, queue: ClusterQueue) -> tuple[str, ...]:
    """Return the cohorts above a queue, the nearest first, up to the point at which they form a cycle."""
    parents = {cohort.metadata.name: cohort.parent for cohort in snapshot.of(Cohort)}
    path: list[str] = []
    name = queue.cohort
    while name and name not in path:
        path.append(name)
        name = parents.get(name, "")
    return tuple(path)


def _quotas(run: AdmissionRun, node: QueueNode, job: Job) -> Iterator[FlavorQuota]:
    """Yield the quota of each resource that the Workload requests, for each flavor that has the resource."""
    total: Requests = {}
    for requests in job.counted_pod_sets:
        total = add_requests(total, {**requests.requests, PODS: requests.count})
    holders = run.cache.jobs[node.name].values()
    queues = () if node.parent is None else tuple(node.parent.root.all_queues())
    for fr, quota in node.quotas.items():
        requested = total.get(fr.resource, 0)
        if not requested:
            continue
        pools = tuple(
            FlavorPool(cohort=ancestor.name, quota=ancestor.subtree_quota(fr), used=ancestor.used_amount(fr))
            for ancestor in node.ancestors()
        )
        users = (
            QuotaUser(workload=holder.key, priority=holder.priority, amount=holder.usage[fr])
            for holder in holders
            if holder.usage.get(fr)
        )
        borrowers = (it.name for it in queues if fr in it.quotas and it.used_amount(fr) > it.quotas[fr].nominal)
        yield FlavorQuota(
            resource=fr.resource,
            flavor=fr.flavor,
            asked=requested,
            nominal=quota.nominal,
            used=node.used_amount(fr),
            borrowing_limit=quota.borrowing_limit,
            lending_limit=quota.lending_limit,
            cohort_nominal=pools[0].quota if pools else None,
            cohort_used=pools[0].used if pools else None,
            available=node.unbounded_available(fr),
            pools=pools,
            users=tuple(sorted(users, key=lambda user: (-user.amount, user.workload))),
            borrowers=tuple(sorted(borrowers)),
        )


# --- a pod's Workload and LocalQueue


def _workload_of(snapshot: Snapshot, pod: Pod) -> Workload | None:
    """Return the Workload with the pod's quota: its owner is the pod, or an owner of the pod."""
    mine = [workload for workload in snapshot.of(Workload) if workload.metadata.namespace == pod.metadata.namespace]
    if not mine:
        return None
    owners = {("Pod", pod.metadata.name), *((owner.kind, owner.name) for owner in pod.metadata.owner_references)}
    group = pod.metadata.labels.get(api.GROUP_LABEL)
    workloads = [
        workload
        for workload in mine
        if any((owner.kind, owner.name) in owners for owner in workload.metadata.owner_references)
        or (group is not None and workload.metadata.name == group)
    ]
    return min(workloads, key=lambda workload: (workload.has("Finished"), workload.metadata.name), default=None)


# --- the state of a Workload


def _state(
    workload: Workload, local: LocalQueue | None, queue: ClusterQueue | None, run: AdmissionRun
) -> WorkloadState:
    if workload.has("Finished"):
        return WorkloadState.FINISHED
    if workload.has("Admitted"):
        return WorkloadState.ADMITTED
    if workload.has("QuotaReserved"):
        return WorkloadState.CHECKING
    if local is None or queue is None:
        return WorkloadState.NO_QUEUE
    if workload.spec.active is False:
        return WorkloadState.DEACTIVATED
    is_inactive = local.spec.is_stopped or not run.readiness[queue.metadata.name].is_active
    return WorkloadState.STOPPED if is_inactive else WorkloadState.WAITING


def _awaited_checks(snapshot: Snapshot, workload: Workload) -> list[AdmissionCheck]:
    names = {check.name for check in workload.status.admission_checks if check.state != "Ready"}
    return [check for check in snapshot.of(AdmissionCheck) if check.metadata.name in names]


def _unusable_workers(snapshot: Snapshot, workload: Workload) -> Iterator[str]:
    """Yield the worker clusters that cannot run a Workload: the one that runs it, or those of its checks."""
    clusters = [name for check in _awaited_checks(snapshot, workload) for name in workers_of(snapshot, check)]
    of_workload = filter(None, (workload.status.cluster_name,))
    for worker in unusable_workers(snapshot, dict.fromkeys((*of_workload, *clusters))):
        yield f"{worker.name} {worker.why}"


_EXPLAINING = ("QuotaReserved", "Evicted", "Requeued", "DeactivationTarget", "PodsReady", "Finished")


def _workload_conditions(
    workload: Workload, owners: Sequence[LocalQueue | ClusterQueue | AdmissionCheck | None], state: WorkloadState
) -> Iterator[Condition]:
    for kind in _EXPLAINING:
        condition = workload.condition(kind)
        if condition is None or not (condition.message or condition.reason):
            continue
        is_true = condition.status == "True"
        is_old = kind == "QuotaReserved" and is_true and state is WorkloadState.ADMITTED
        is_well = kind in ("Requeued", "PodsReady") and is_true
        is_over = kind in ("Evicted", "DeactivationTarget") and not is_true
        if not is_old and not is_well and not is_over:
            yield condition.brief
    for owner in owners:
        inactive = condition_of(owner.status.conditions, "Active", "False") if owner is not None else None
        if inactive is not None:
            yield inactive.brief


def _with_sharing(kueue: Kueue, queue: ClusterQueue) -> Kueue:
    """Add how queues are ordered by fair sharing or usage, and whose quota the queue can preempt."""
    kueue = replace(
        kueue,
        is_by_usage=queue.is_usage_based,
        within_queue=queue.preemption.within_cluster_queue,
        within_cohort=queue.preemption.reclaim_within_cohort if queue.cohort else "",
    )
    share, sharing = queue.status.fair_sharing, queue.spec.fair_sharing
    if share is None or not queue.cohort:
        return kueue
    weight = 1 if sharing is None or sharing.weight is None else sharing.weight
    return replace(kueue, weighted_share=share.weighted_share, fair_weight=str(weight))
