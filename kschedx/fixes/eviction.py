"""Pods whose deletion makes room for the pod, and pods that no fix may evict."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice

from msgspec.structs import replace

from kschedx.apiserver.pod_classes import BUILT_IN_CLASSES, PREEMPT_NEVER, SYSTEM_CRITICAL
from kschedx.controllers.pod_lifecycle import is_long_past
from kschedx.controllers.workloads import SCALED, current_replica_set_of, is_of_daemon_set, name_of, stays_with_node
from kschedx.errors import UndecidableError
from kschedx.explain.node_groups import account_of
from kschedx.findings import HostPortConflict
from kschedx.fixes import steps as s
from kschedx.fixes.node_requirements import faults_of, taint_remover
from kschedx.fixes.owners import Owner, template_owner, workload_above
from kschedx.fixes.proposal import Proposal, apply_step
from kschedx.fixes.trial import RemedyCandidate, Situation
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.moving import Run
from kschedx.kube.conditions import reports_ready
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Target, with_spec
from kschedx.kube.names import ARCH_LABELS
from kschedx.kube.types import UNREACHABLE, Node, OwnerReference, Pod, PriorityClass, controller_of
from kschedx.kube.workloads import pinned_to
from kschedx.simulate.moves import MoveSearch, MoveTarget, groups_with_room
from kschedx.snapshot.snapshot import Snapshot

_SYSTEM_NAMESPACE = "kube-system"


def can_evict(row: int, situation: Situation) -> bool:
    """Whether a pod may be proposed for eviction. It may not if it has a higher priority or is critical for the
    cluster. Pods of a DaemonSet and of the pod's own workload may not either: they would be recreated at once. With the
    pod's owner, such as the driver of a Spark executor, the pod itself would go."""
    pods, metadata = situation.snapshot.pods, situation.pod.metadata
    owners = {(metadata.namespace, owner.name) for owner in metadata.owner_references if owner.kind == "Pod"}
    priority = int(pods.priorities[row])
    if priority > situation.pod.priority or priority >= SYSTEM_CRITICAL or pods.namespaces[row] == _SYSTEM_NAMESPACE:
        return False
    if (pods.namespaces[row], pods.names[row]) in owners:
        return False
    return not stays_with_node(pods, row) and not is_twin(row, situation)


def is_twin(row: int, situation: Situation) -> bool:
    """Whether the pod in the row belongs to the pod's own workload."""
    pods, metadata = situation.snapshot.pods, situation.pod.metadata
    if pods.namespaces[row] != metadata.namespace:
        return False
    own = workload_above(metadata.controller, metadata.labels)
    return own is not None and own == workload_above(_controlling_owner(row, situation.snapshot), pods.labels[row])


def is_terminating(row: int, situation: Situation) -> bool:
    """Whether the pod is being deleted already."""
    return bool(situation.snapshot.pods.deletion_timestamps[row])


def stay_deleted(rows: Iterable[int], situation: Situation) -> bool:
    """Whether no controller recreates one of these pods on its node at once: a replacement is behind this pod in the
    queue, has room elsewhere, or is not created."""
    pods = situation.snapshot.pods
    for row in rows:
        owned = any(owner.controller and owner.kind != "Job" for owner in pods.owners[row])
        if not owned or int(pods.priorities[row]) < situation.pod.priority:
            continue
        twin = pods[row]
        here = pods.node_names[row]
        twin = with_spec(twin, node_name="")
        try:
            filtered = situation.scheduler.on(situation.snapshot.without_pods([row])).filter(twin, situation.profile)
        except UndecidableError:
            return False
        fits = set(filtered.nodes.names_where(filtered.outcome.passed))
        if fits <= {here}:
            return False
    return True


def deletion(rows: Iterable[int], snapshot: Snapshot, *, node: str = "") -> s.DeletePods:
    return s.DeletePods(victims=_victims_of(rows, snapshot), node=node)


def await_termination(rows: Sequence[int], snapshot: Snapshot, *, node: str = "") -> s.AwaitTermination:
    """The wait for pods that are being deleted. If their node is unreachable, no kubelet finishes the deletion."""
    pods, cluster = snapshot.pods, snapshot.cluster
    lost = {name for row in rows if _is_lost(cluster.nodes[cluster.index[name := pods.node_names[row]]])}
    lost_node = lost.pop() if len(lost) == 1 else ""
    finalizers = tuple(dict.fromkeys(finalizer for row in rows for finalizer in pods.finalizers_of_others(row)))
    return s.AwaitTermination(
        victims=_victims_of(rows, snapshot),
        node=node,
        lost_node=lost_node,
        finalizers=finalizers,
        overdue=tuple(pods.key(row) for row in rows if is_long_past(snapshot, pods.deletion_timestamps[row] or "")),
    )


def _is_lost(node: Node) -> bool:
    return any(taint.key == UNREACHABLE for taint in node.spec.taints)


def _victims_of(rows: Iterable[int], snapshot: Snapshot) -> tuple[s.Victim, ...]:
    pods = snapshot.pods
    return tuple(
        s.Victim(pod=pods.key(row), priority=int(pods.priorities[row]), controller=_controller_name(row, snapshot))
        for row in rows
    )


def _controller_name(row: int, snapshot: Snapshot) -> str:
    controller = _controlling_owner(row, snapshot)
    return "" if controller is None else f"{controller.kind} {controller.name}"


def delete_all(names: Sequence[str], count: int, place: RemedyCandidate) -> Iterator[s.FixStep]:
    """Yield the deletion of the `count` pods in the way, if `names` lists all of them and all may be evicted; or the
    wait for them if all are being deleted."""
    rows = tuple(row for name in names if (row := place.snapshot.pods.rows.get(name)) is not None)
    if not rows or len(rows) != count:
        return
    if all(is_terminating(row, place.situation) for row in rows):
        yield await_termination(rows, place.snapshot)
        return
    if all(can_evict(row, place.situation) for row in rows) and stay_deleted(rows, place.situation):
        priorities = place.snapshot.pods.priorities
        are_lesser = all(int(priorities[row]) < place.pod.priority for row in rows)
        yield replace(deletion(rows, place.snapshot), are_lesser=are_lesser)


def stop_holder(key: str, place: RemedyCandidate) -> tuple[s.FixStep, ...]:
    """Return the step that frees what only one pod at a time may use, if its holder may be evicted. If possible, it
    stops the workload, since a recreated pod would use the same again."""
    row = place.snapshot.pods.rows.get(key)
    if row is None:
        return ()
    if is_terminating(row, place.situation):
        return (await_termination([row], place.snapshot),)
    return _removal_steps(row, place) if can_evict(row, place.situation) else ()


def take_from_holder(key: str, place: RemedyCandidate) -> tuple[s.FixStep, ...]:
    """Return the same step for a holder of any priority, unless it is critical for the cluster, or belongs to a
    DaemonSet or the pod's own workload."""
    pods = place.snapshot.pods
    row = pods.rows.get(key)
    if row is None or int(pods.priorities[row]) >= SYSTEM_CRITICAL:
        return ()
    if stays_with_node(pods, row) or is_twin(row, place.situation):
        return ()
    return _removal_steps(row, place)


def _removal_steps(row: int, place: RemedyCandidate) -> tuple[s.FixStep, ...]:
    return (stop_workload(row, place.snapshot) or deletion([row], place.snapshot),)


def stop_workload(row: int, snapshot: Snapshot, among: Collection[int] = ()) -> s.StopWorkload | None:
    """Return the step that stops the pod's workload, if the snapshot has the workload and this is its only assigned
    pod, but for those in the rows of `among`."""
    pods = snapshot.pods
    controller = _controlling_owner(row, snapshot)
    above = workload_above(controller, pods.labels[row])
    if controller is None or above is None or above[0] not in SCALED:
        return None
    kind, name = above
    namespace = pods.namespaces[row]
    rows = [
        other
        for other in pods.rows_in_namespaces(namespace.__eq__).tolist()
        if pods.node[other] >= 0 and above == workload_above(_controlling_owner(other, snapshot), pods.labels[other])
    ]
    if not {row, *among}.issuperset(rows) or (kind, namespace, name) not in snapshot.workloads:
        return None
    workload, owner = Target(controller.api_version, kind, name, namespace), template_owner(snapshot, pods[row])
    costs = () if owner is None else owner.cost_of_scaling
    return s.StopWorkload(workload=workload, victims=_victims_of(rows, snapshot), costs=costs)


def _controlling_owner(row: int, snapshot: Snapshot) -> OwnerReference | None:
    return controller_of(snapshot.pods.owners[row])


# Moving pods, as `simulate.moves` finds moves.

_MOST_NODES = 3
_MOST_TRIALS = 60  # the limit counts sets of pods


def moves(situation: Situation) -> Iterator[s.MovePods]:
    """Yield moves that make room on the nearest nodes that lack nothing but room and host ports."""
    nodes, outcome = situation.nodes, situation.outcome
    places = (
        MoveTarget(node=nodes.cluster_row(row), findings=account_of(nodes, outcome, row).findings)
        for group in groups_with_room(situation.groups)
        for row in group.rows
    )
    nearest = tuple(islice(places, _MOST_NODES))
    if not nearest:
        return
    run = Run(situation.scheduler, preempts=False)
    names = run.cluster.node_names
    for found_moves in MoveSearch(run, situation.snapshot, situation.pod.priority, trials=_MOST_TRIALS).find(nearest):
        victims = iter(_victims_of(found_moves.rows, situation.snapshot))
        yield s.MovePods(
            moves=tuple(
                _move(next(victims), names[clearing.node], names[pod.to], situation.snapshot)
                for clearing in found_moves.clearings
                for pod in clearing.pods
            )
        )


def _move(victim: s.Victim, source: str, to: str, snapshot: Snapshot) -> s.VictimMove:
    cluster = snapshot.cluster
    was, becomes = (cluster.nodes[cluster.index[name]].metadata.labels.get(ARCH_LABELS[0]) for name in (source, to))
    return s.VictimMove(victim=victim, source=source, to=to, architecture=becomes if becomes and becomes != was else "")


# Preemption: for the pod as it is, and with a higher priority class for a pod that cannot go elsewhere. A DaemonSet's
# pod has one node. If that node is full of pods with no lower priority, another node does not help. A pod whose
# predecessors were preempted loses any node to pods of a higher priority.

_NODE_CRITICAL = BUILT_IN_CLASSES["system-node-critical"]
_MOST_CLASSES = 3  # priority classes, the lowest first


def preemption(cycle: Cycle, start: Situation) -> Iterator[Proposal]:
    """Yield the preemption that kube-scheduler is about to do; on one of the best nodes, if it picks by chance."""
    result = cycle.post_filter
    if result is None or not result.candidates:
        return
    nodes = result.best if result.nominated_node is None else (result.nominated_node,)
    for candidate in result.candidates:
        if candidate.node in nodes[:1] and not all(cycle.snapshot.pods.terminating[row] for row in candidate.victims):
            step = deletion(candidate.victims, cycle.snapshot, node=cycle.all_nodes.cluster.names[candidate.node])
            step = replace(step, by_preemption=True, or_elsewhere=len(nodes) - 1, protected=candidate.pdb_violations)
            yield apply_step(step, start.proposal, start.snapshot)


def preemption_after_raise(cycle: Cycle, start: Situation) -> Iterator[Proposal]:
    """Yield preemption with the lowest priority class that gives a pod enough of a node: one of a DaemonSet, one whose
    predecessors were preempted, or one that may not preempt others. A host port is no matter of priority: its present
    user needs it as well."""
    has_candidates = cycle.post_filter is not None and cycle.post_filter.candidates
    metadata = start.pod.metadata
    is_meant = is_of_daemon_set(metadata.owner_references) or bool(start.snapshot.preemptions_of(metadata))
    is_meant |= start.pod.spec.preemption_policy == PREEMPT_NEVER
    if not is_meant or has_candidates or not start.status.is_success:
        return
    if any(isinstance(finding, HostPortConflict) for finding in start.findings):
        return
    for chosen in _classes(start):
        step = s.RaisePriority(name=chosen.metadata.name, value=chosen.value)
        raised = apply_step(step, start.proposal, start.snapshot)
        situation = replace(start, proposal=raised)
        then = situation.decide()
        if then is None or then.outcome is not Outcome.UNSCHEDULABLE:
            return
        proposals = tuple(preemption(then, situation))
        if any(
            _is_sibling(row, start.pod, start.snapshot)
            for proposal in proposals
            for row in map(start.snapshot.pods.rows.__getitem__, proposal.deleted)
        ):
            return  # the rollout replaces that pod
        if proposals:
            yield from proposals
            return


def _classes(start: Situation) -> tuple[PriorityClass, ...]:
    """Return the preempting classes above the pod's own, or at its priority if it may not preempt others: the lowest
    ones and, for a DaemonSet, system-node-critical. A pod in kube-system gets only system-node-critical, which is meant
    for what every node needs."""
    is_of_every_node = is_of_daemon_set(start.pod.metadata.owner_references)
    if start.pod.metadata.namespace == _SYSTEM_NAMESPACE:
        return (_NODE_CRITICAL,) if is_of_every_node and start.pod.priority < _NODE_CRITICAL.value else ()
    least = start.pod.priority + (start.pod.spec.preemption_policy != PREEMPT_NEVER)
    above = [
        priority_class
        for priority_class in start.snapshot.priority_classes.values()
        if least <= priority_class.value < _NODE_CRITICAL.value
        and priority_class.metadata.name not in BUILT_IN_CLASSES
        and priority_class.preemption_policy != PREEMPT_NEVER
    ]
    lowest = sorted(above, key=lambda priority_class: priority_class.value)[:_MOST_CLASSES]
    return (*lowest, _NODE_CRITICAL) if is_of_every_node else tuple(lowest)


# Remedies for a pending pod of a rollout that needs what the old pods use: room on their node, a port, or a volume.

_MOST_OLD = 4  # old pods, each on a different node


def taking_old_first(situation: Situation) -> Iterator[tuple[s.FixStep, ...]]:
    """Yield steps with which a workload deletes an old pod first, if it now creates a new pod first. A Deployment
    deletes unavailable old pods before others, so their nodes have to be repaired as well."""
    snapshot, pod = situation.snapshot, situation.pod
    owner = template_owner(snapshot, pod)
    if owner is not None and owner.kind == "DaemonSet" and _surges(owner, "updateStrategy", default="0"):
        at = snapshot.cluster.index.get(pinned_to(pod.spec))
        rows = () if at is None else snapshot.pods.on_node(at).tolist()
        yield from ((_take_old_first((row,), owner, snapshot),) for row in rows if _is_sibling(row, pod, snapshot))
    if owner is None or owner.kind != "Deployment" or not _surges(owner, "strategy"):
        return
    own = pod.metadata.controller
    current = current_replica_set_of(snapshot, owner.manifest)
    if current is not None and own is not None and name_of(current) != own.name:
        return  # the pod itself is an old one
    old = list(_old_pods(snapshot, owner, pod.metadata.namespace, own.name if own else ""))
    if unavailable := [row for row in old if not _is_available(row, snapshot)]:
        yield (_take_old_first((unavailable[0],), owner, snapshot), *_repairs(unavailable[0], snapshot))
        return
    by_node = {snapshot.pods.node_names[row]: row for row in reversed(old)}
    for row in sorted(by_node.values())[:_MOST_OLD]:
        yield (_take_old_first((row,), owner, snapshot),)


def _take_old_first(rows: tuple[int, ...], owner: Owner, snapshot: Snapshot) -> s.TakeOldFirst:
    victims = _victims_of(rows, snapshot)
    is_single = owner.kind == "Deployment" and map_at(owner.manifest, "spec").get("replicas", 1) == 1
    return s.TakeOldFirst(owner=owner.name, kind=owner.kind, victims=victims, is_single=is_single)


def _is_sibling(row: int, pod: Pod, snapshot: Snapshot) -> bool:
    owner = pod.metadata.controller
    return owner is not None and any(
        (reference.controller, reference.kind, reference.name) == (True, owner.kind, owner.name)
        for reference in snapshot.pods.owners[row]
    )


def _is_available(row: int, snapshot: Snapshot) -> bool:
    """Whether the pod is available, as far as its condition and its node show."""
    pods = snapshot.pods
    ready = reports_ready(pods.statuses[row].conditions)
    return ready and not any(map(taint_remover, _node_of(row, snapshot).spec.taints))


def _repairs(row: int, snapshot: Snapshot) -> Iterator[s.RepairNode]:
    node = _node_of(row, snapshot)
    if faults := faults_of(node, filter(taint_remover, node.spec.taints), snapshot):
        yield s.RepairNode(row=snapshot.cluster.index[node.name], node=node.name, faults=faults)


def _node_of(row: int, snapshot: Snapshot) -> Node:
    return snapshot.cluster.nodes[snapshot.cluster.index[snapshot.pods.node_names[row]]]


def _surges(owner: Owner, field: str, *, default: str = "25%") -> bool:
    """Whether the workload is in the snapshot and creates a new pod before it deletes an old one."""
    spec = owner.manifest.get("spec")
    if not isinstance(spec, dict):
        return False
    strategy = map_at(spec, field)
    surge = map_at(strategy, "rollingUpdate").get("maxSurge", default)
    return strategy.get("type", "RollingUpdate") == "RollingUpdate" and str(surge) not in ("0", "0%")


def _old_pods(snapshot: Snapshot, owner: Owner, namespace: str, own: str) -> Iterator[int]:
    """Yield the rows of assigned pods that belong to the Deployment's other ReplicaSets."""
    pods = snapshot.pods
    for row in pods.rows_in_namespaces(namespace.__eq__).tolist():
        if pods.node[row] < 0:
            continue
        of_set = next((owner for owner in pods.owners[row] if owner.controller and owner.kind == "ReplicaSet"), None)
        if of_set is None or of_set.name == own or not of_set.name.startswith(f"{owner.name}-"):
            continue
        above = template_owner(snapshot, pods[row])
        if above is not None and (above.kind, above.name) == (owner.kind, owner.name):
            yield row
