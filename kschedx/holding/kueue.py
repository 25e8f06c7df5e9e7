"""What Kueue has left for a ClusterQueue in the tree of cohorts above it.

A cohort pools what its queues and the cohorts below it have, but for what each keeps to itself (`lendingLimit`), and
adds quota of its own; who is below takes from the pool up to its `borrowingLimit`, at each level.

Upstream: pkg/cache/scheduler/resource_node.go of kubernetes-sigs/kueue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TypedDict

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_pod_spec
from kschedx.holding.model import (
    Attempt,
    FlavorFit,
    FlavorPool,
    FlavorQuota,
    Kueue,
    QuotaUser,
    Said,
    WorkloadState,
    quota_amount,
)
from kschedx.kube import kueue as api
from kschedx.kube.kueue import (
    ClusterQueue,
    Cohort,
    FlavorQuotas,
    LocalQueue,
    PodSetAssignment,
    PodSetUpdate,
    QueueResourceQuota,
    ResourceFlavor,
    ResourceGroup,
    Workload,
)
from kschedx.kube.resources import RequestOptions, pod_request
from kschedx.kube.selectors import (
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    compile_node_selector,
    compile_selector,
)
from kschedx.kube.tolerations import DO_NOT_SCHEDULE, Tolerations
from kschedx.kube.types import Pod, PodSpec, PodStatus
from kschedx.snapshot.snapshot import Snapshot

Used = Mapping[tuple[str, str, str], int]
"""By ClusterQueue, flavor and resource."""


class _Node(Struct, frozen=True, kw_only=True):
    """A queue or a cohort, with one resource of one flavor."""

    subtree: int
    """All that is below it and comes up to it, and its own."""
    usage: int
    """What counts against that."""
    local: int
    """What of it never leaves upwards."""
    borrowing_limit: int | None

    @property
    def given_up(self) -> int:
        return self.subtree - self.local

    @property
    def taken_up(self) -> int:
        return max(self.usage - self.local, 0)

    @property
    def left_here(self) -> int:
        return max(self.local - self.usage, 0)


class Cohorts:
    """The tree, from the queues that name cohorts and the Cohort objects; a cohort needs no object."""

    def __init__(self, queues: Iterable[ClusterQueue], cohorts: Iterable[Cohort]) -> None:
        self._objects = {one.metadata.name: one for one in cohorts}
        self._queues: dict[str, list[ClusterQueue]] = {}
        for queue in queues:
            if queue.cohort:
                self._queues.setdefault(queue.cohort, []).append(queue)
        self._below: dict[str, list[str]] = {}
        for name, one in self._objects.items():
            if one.parent:
                self._below.setdefault(one.parent, []).append(name)

    def above(self, queue: ClusterQueue) -> tuple[str, ...]:
        """The cohorts over a queue, the nearest first; up to where a circle of them closes."""
        path: list[str] = []
        name = queue.cohort
        while name and name not in path:
            path.append(name)
            found = self._objects.get(name)
            name = found.parent if found is not None else ""
        return tuple(path)

    def circle(self, queue: ClusterQueue) -> tuple[str, ...]:
        """Those cohorts, where one is above itself: Kueue admits nothing there."""
        path = self.above(queue)
        last = self._objects.get(path[-1]) if path else None
        return path if last is not None and last.parent else ()

    def available(
        self, queue: ClusterQueue, flavor: str, resource: str, used: Used
    ) -> tuple[int, tuple[FlavorPool, ...]]:
        """What Kueue would give the queue now, and how the cohorts above it stand, the nearest first.

        Negative where more is used than there is.
        """
        own = _of_queue(queue, flavor, resource, used)
        path = self.above(queue)
        nodes = [self._of_cohort(name, flavor, resource, used, frozenset()) for name in path]
        left = own.subtree - own.usage
        if nodes:
            left = nodes[-1].subtree - nodes[-1].usage
            for node in (*reversed(nodes[:-1]), own):
                if node.borrowing_limit is not None:
                    left = min(left, node.given_up - node.taken_up + node.borrowing_limit)
                left += node.left_here
        pools = tuple(
            FlavorPool(cohort=name, quota=node.subtree, used=node.usage) for name, node in zip(path, nodes, strict=True)
        )
        return left, pools

    def _of_cohort(self, name: str, flavor: str, resource: str, used: Used, over: frozenset[str]) -> _Node:
        found = self._objects.get(name)
        quota = quota_in(found.spec.resource_groups if found is not None else (), flavor, resource)
        over |= {name}
        below = [
            self._of_cohort(one, flavor, resource, used, over) for one in self._below.get(name, ()) if one not in over
        ]
        below += [_of_queue(one, flavor, resource, used) for one in self._queues.get(name, ())]
        subtree = _nominal(quota, resource) + sum(one.given_up for one in below)
        return _node(quota, resource, subtree, sum(one.taken_up for one in below))


def _of_queue(queue: ClusterQueue, flavor: str, resource: str, used: Used) -> _Node:
    quota = quota_in(queue.spec.resource_groups, flavor, resource)
    return _node(quota, resource, _nominal(quota, resource), used.get((queue.metadata.name, flavor, resource), 0))


def _node(quota: QueueResourceQuota | None, resource: str, subtree: int, usage: int) -> _Node:
    lending = None if quota is None or quota.lending_limit is None else quota_amount(resource, quota.lending_limit)
    borrowing = (
        None if quota is None or quota.borrowing_limit is None else quota_amount(resource, quota.borrowing_limit)
    )
    local = 0 if lending is None else max(subtree - lending, 0)
    return _Node(subtree=subtree, usage=usage, local=local, borrowing_limit=borrowing)


def _nominal(quota: QueueResourceQuota | None, resource: str) -> int:
    return 0 if quota is None else quota_amount(resource, quota.nominal_quota)


def quota_in(groups: Sequence[ResourceGroup], flavor: str, resource: str) -> QueueResourceQuota | None:
    every = (one for group in groups for one in group.flavors if one.name == flavor)
    return next((quota for one in every for quota in one.resources if quota.name == resource), None)


# The quota that a Workload asks for, flavor by flavor, and who holds it.
#
# Amounts are those of `api.resources`: thousandths of cpu, whole units of everything else.

PODS = "pods"


def asked(workload: Workload, options: RequestOptions) -> Mapping[str, int]:
    """What all pods of a Workload ask for, as Kueue counted it where it says so."""
    total: Counter[str] = Counter()
    if workload.status.resource_requests:
        for request in workload.status.resource_requests:
            for resource, written in request.resources.items():
                total[resource] += quota_amount(resource, written)
        return total
    for pod_set in workload.spec.pod_sets:
        total[PODS] += pod_set.count
        for resource, each in _requests(pod_set.template.spec, options).items():
            total[resource] += each * pod_set.count
    return total


def _requests(spec: PodSpec, options: RequestOptions) -> Mapping[str, int]:
    amounts = pod_request(default_pod_spec(spec), PodStatus(), options).amounts
    return {name: number for name, number in amounts.items() if number}


def quotas(
    workload: Workload, queue: ClusterQueue, cohorts: Cohorts, workloads: Iterable[Workload], options: RequestOptions
) -> Iterator[FlavorQuota]:
    """For each resource of the Workload and each flavor that has it."""
    wanted = asked(workload, options)
    holding = [one for one in workloads if one.reserves and one.key != workload.key]
    used: Counter[tuple[str, str, str]] = Counter()
    users: dict[tuple[str, str, str], list[QuotaUser]] = {}
    for one in holding:
        assert one.status.admission is not None
        at = one.status.admission.cluster_queue
        for (flavor, resource), number in _usage(one.status.admission.pod_set_assignments).items():
            used[at, flavor, resource] += number
            user = QuotaUser(workload=one.key, priority=one.priority, amount=number)
            users.setdefault((at, flavor, resource), []).append(user)
    name = queue.metadata.name
    for flavor, quota in _flavors(queue):
        number = wanted.get(quota.name, 0)
        if not number:
            continue
        key = (name, flavor, quota.name)
        available, pools = cohorts.available(queue, flavor, quota.name, used)
        yield FlavorQuota(
            resource=quota.name,
            flavor=flavor,
            asked=number,
            nominal=quota_amount(quota.name, quota.nominal_quota),
            used=used[key],
            borrowing_limit=_limit(quota.name, quota.borrowing_limit),
            lending_limit=_limit(quota.name, quota.lending_limit),
            cohort_nominal=pools[0].quota if pools else None,
            cohort_used=pools[0].used if pools else None,
            available=available,
            pools=pools,
            users=tuple(sorted(users.get(key, ()), key=lambda user: (-user.amount, user.workload))),
        )


def _usage(assignments: Iterable[PodSetAssignment]) -> Mapping[tuple[str, str], int]:
    """What a Workload holds, by flavor and resource."""
    found: Counter[tuple[str, str]] = Counter()
    for assignment in assignments:
        for resource, flavor in assignment.flavors.items():
            written = assignment.resource_usage.get(resource, assignment.count or 0 if resource == PODS else 0)
            found[flavor, resource] += quota_amount(resource, written)
    return found


def _flavors(queue: ClusterQueue) -> Iterator[tuple[str, QueueResourceQuota]]:
    for flavor in flavors_of(queue):
        for quota in flavor.resources:
            yield flavor.name, quota


def flavors_of(queue: ClusterQueue) -> Iterator[FlavorQuotas]:
    """In the order in which Kueue tries them."""
    for group in queue.spec.resource_groups:
        yield from group.flavors


def _limit(resource: str, written: str | int | float | None) -> int | None:
    return None if written is None else quota_amount(resource, written)


# A pod as if Kueue had admitted it with a flavor, on the nodes of that flavor.
#
# Upstream: checkFlavorForPodSets in pkg/scheduler/flavorassigner, pkg/podset and pkg/controller/tas of
# kubernetes-sigs/kueue.


def flavor_fits(
    snapshot: Snapshot, pod: Pod, workload: Workload, queue: ClusterQueue | None, attempt: Attempt
) -> Iterator[FlavorFit]:
    """One for each flavor that the pod may come to: those that it was given, else all of its queue."""
    known = {one.metadata.name: one for one in snapshot.of(ResourceFlavor)}
    assigned = _assignments(pod, workload)
    given = [name for one in assigned for name in one.flavors.values()]
    offered = [flavor.name for flavor in flavors_of(queue)] if queue is not None and not assigned else []
    domains = _domains(assigned)
    updates = _updates(pod, workload)
    for name in dict.fromkeys((*given, *offered)):
        flavor = known.get(name)
        if flavor is None:
            yield FlavorFit(flavor=name, exists=False, nodes=0, feasible=())
            continue
        labels = flavor.spec.node_labels
        nodes = frozenset(
            node.name
            for node in snapshot.cluster.nodes
            if labels.items() <= node.metadata.labels.items() and _is_within(node.metadata.labels, domains)
        )
        refused = "" if given else why_not(pod, flavor)
        feasible, reasons = ((), ()) if refused else attempt(as_if_admitted(pod, flavor, updates), nodes)
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
    """Of the pod's set, where it says which that is."""
    every = workload.status.admission.pod_set_assignments if workload.status.admission is not None else ()
    wanted = pod.metadata.labels.get(api.PODSET_LABEL)
    return [one for one in every if wanted in (None, one.name)] or every


def _updates(pod: Pod, workload: Workload) -> Sequence[PodSetUpdate]:
    """What admission checks that are ready add to the pod, of whose set they speak."""
    wanted = pod.metadata.labels.get(api.PODSET_LABEL)
    ready = (check for check in workload.status.admission_checks if check.state == "Ready")
    every = [one for check in ready for one in check.pod_set_updates]
    is_only_set = wanted is None and len(workload.spec.pod_sets) <= 1
    return every if is_only_set else [one for one in every if one.name == wanted]


NO_MATCH = "its labels do not match the pod's node affinity"
FlavorDomains = Mapping[tuple[str, ...], Collection[tuple[str, ...]]]
"""Keys of labels to the values that they may have together."""


def _domains(assigned: Sequence[PodSetAssignment]) -> FlavorDomains:
    return {
        one.topology_assignment.levels: one.topology_assignment.values()
        for one in assigned
        if one.topology_assignment is not None and one.topology_assignment.levels
    }


def _is_within(labels: Mapping[str, str], domains: FlavorDomains) -> bool:
    return not domains or any(tuple(labels.get(level, "") for level in levels) in domains[levels] for levels in domains)


def why_not(pod: Pod, flavor: ResourceFlavor) -> str:
    """Why Kueue gives the pod's Workload no quota of a flavor; empty where it may."""
    labels = flavor.spec.node_labels
    tolerations = (*pod.spec.tolerations, *flavor.spec.tolerations)
    taint = Tolerations(tolerations, comparison=True).uncovered(flavor.spec.node_taints, DO_NOT_SCHEDULE)
    if taint is not None:
        value = f"={taint.value}" if taint.value else ""
        return f"untolerated taint {taint.key}{value}:{taint.effect}"
    selector = {key: value for key, value in pod.spec.node_selector.items() if key in labels}
    if not compile_selector(LabelSelector(match_labels=selector)).matches(labels) and selector:
        return NO_MATCH
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    terms = [
        NodeSelectorTerm(match_expressions=tuple(one for one in term.match_expressions if one.key in labels))
        for term in (required.node_selector_terms if required is not None else ())
    ]
    if not terms or any(term.is_empty for term in terms):  # a term about other labels can hold with any flavor
        return ""
    matches = compile_node_selector(NodeSelector(node_selector_terms=tuple(terms))).matches(labels, "")
    return "" if matches else NO_MATCH


def as_if_admitted(pod: Pod, flavor: ResourceFlavor, updates: Sequence[PodSetUpdate] = ()) -> Pod:
    """Without Kueue's gates, and with what Kueue and its checks add to a pod; others' gates filter nothing."""
    gates = tuple(one for one in pod.spec.scheduling_gates if not one.name.startswith(f"{api.KUEUE_GROUP}/"))
    selector = {**pod.spec.node_selector, **flavor.spec.node_labels}
    tolerations = (*pod.spec.tolerations, *flavor.spec.tolerations)
    for update in updates:
        selector |= update.node_selector
        tolerations += update.tolerations
    spec = replace(pod.spec, scheduling_gates=gates, node_selector=selector, tolerations=tolerations)
    return replace(pod, spec=spec)


# From a pod to its Workload, the queue in which that waits, and the nodes that it would come to.
#
# Upstream: pkg/controller/jobs/pod and pkg/queue of kubernetes-sigs/kueue.


def held_by_kueue(snapshot: Snapshot, pod: Pod, options: RequestOptions, attempt: Attempt) -> Kueue | None:
    """None for a pod that Kueue has nothing to do with."""
    workload = _workload_of(snapshot, pod)
    gates = {gate.name for gate in pod.spec.scheduling_gates}
    gated = bool(gates & {api.ADMISSION_GATE, api.TOPOLOGY_GATE})
    queue_name = pod.metadata.labels.get(api.QUEUE_LABEL, "") or (workload.spec.queue_name if workload else "")
    if workload is None and not gated:
        return None  # whatever the label says: nobody holds it
    if workload is None:
        return Kueue(state=WorkloadState.NO_WORKLOAD, queue=queue_name, is_gated=True)
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
    if state is WorkloadState.WAITING and cluster_queue is not None:
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
    if state in (WorkloadState.FINISHED, WorkloadState.NO_QUEUE):
        return found
    return replace(found, fits=tuple(flavor_fits(snapshot, pod, workload, cluster_queue, attempt)))


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


def _state(workload: Workload, local: LocalQueue | None, queue: ClusterQueue | None) -> WorkloadState:
    if workload.has("Finished"):
        return WorkloadState.FINISHED
    if workload.has("Admitted"):
        return WorkloadState.ADMITTED
    if workload.has("QuotaReserved"):
        return WorkloadState.CHECKING
    if local is None or queue is None:
        return WorkloadState.NO_QUEUE
    stops = {local.spec.stop_policy, queue.spec.stop_policy} - {None, "", "None"}
    inactive = any(
        one.type == "Active" and one.status == "False" for one in (*local.status.conditions, *queue.status.conditions)
    )
    return WorkloadState.STOPPED if workload.spec.active is False or stops or inactive else WorkloadState.WAITING


_TELLING = ("QuotaReserved", "Evicted", "Requeued", "DeactivationTarget", "PodsReady", "Finished")
"""A Workload's conditions that say why it is where it is."""


def _said(
    workload: Workload, local: LocalQueue | None, queue: ClusterQueue | None, state: WorkloadState
) -> Iterator[Said]:
    for kind in _TELLING:
        one = workload.condition(kind)
        if one is None or not (one.message or one.reason):
            continue
        is_old = kind == "QuotaReserved" and one.status == "True" and state is WorkloadState.ADMITTED
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
