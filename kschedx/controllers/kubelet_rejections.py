"""Pods that a kubelet failed before they started, the workloads whose pods these are, and Jobs that end before their
pods start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from kschedx.controllers import states
from kschedx.controllers.workloads import Workload, is_controlled_by, member_rows, replica_sets_of
from kschedx.explain.kubelet import bound_text
from kschedx.explain.notes import Note, note
from kschedx.kube.controllers import stored_controller
from kschedx.kube.decoding import map_at
from kschedx.kube.scalars import elapsed
from kschedx.kube.types import Pod
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import count, list_names

_REJECTED = lazy_pattern(
    r"Pod was rejected|The node had condition|(?:TopologyAffinity|SMTAlignment|UnexpectedAdmission)Error|OutOf"
)
"""The first words in the status of a pod that its kubelet fails before it starts (pkg/kubelet: lifecycle, eviction)."""


_OVERUSE = lazy_pattern(
    r"Container (?P<name>\S+) was using (?P<used>\S+), request is (?P<request>\S+), has larger consumption of "
    r"(?P<resource>[\w./-]*\w)"
)
"""What the kubelet adds to the message of an eviction (pkg/kubelet/eviction: helpers.go, containerMessageFmt)."""
_MOST_OVERUSES = 2

_Owned: TypeAlias = Mapping[tuple[str, str, str], Sequence[int]]
"""Rows of pods by the kind, namespace, and name of their controllers."""
_FAILED = Memo[tuple[_Owned, _Owned]]()


def rejected_pods(snapshot: Snapshot) -> _Owned:
    """Return the pods that a kubelet failed before they started. They are computed once for a snapshot."""
    return _failed_pods(snapshot)[1]


def _failed_pods(snapshot: Snapshot) -> tuple[_Owned, _Owned]:
    """Return all failed pods, and those that a kubelet failed before they started."""
    return _FAILED.of(snapshot.derived, lambda: _read_failed_pods(snapshot.pods))


def _read_failed_pods(pods: PodTable) -> tuple[_Owned, _Owned]:
    failed: dict[tuple[str, str, str], list[int]] = {}
    rejected: dict[tuple[str, str, str], list[int]] = {}
    for row in pods.phases.where(lambda phase: phase == "Failed").nonzero()[0].tolist():
        status, owner = pods[row].status, pods[row].metadata.controller
        if owner is not None:
            key = owner.kind, pods.namespaces[row], owner.name
            failed.setdefault(key, []).append(row)
            if any(map(_REJECTED.match, (status.reason, status.message))):
                rejected.setdefault(key, []).append(row)
    return failed, rejected


def overuse_text(message: str) -> str:
    """Return which containers used more than they request, according to the message of an eviction."""
    overuses = (
        f"container {it['name']} used {it['used']} {it['resource']} and requests {it['request']}"
        for it in _OVERUSE.finditer(message)
    )
    return list_names(overuses, _MOST_OVERUSES)


def kubelet_rejection(snapshot: Snapshot, workload: Workload) -> states.RejectedByKubelet | None:
    """Return the state of a Job without an active pod, of a DaemonSet without one on some node, or of a workload with a
    ReplicaSet that lacks pods, if kubelets failed some of its pods."""
    by_owner = rejected_pods(snapshot)
    if not by_owner:
        return None
    makers = {workload: snapshot.workloads.get(workload, b"{}")}
    if workload.kind == "Deployment":
        replica_sets = replica_sets_of(snapshot, workload)
        makers = {Workload("ReplicaSet", workload.namespace, meta.name): raw for meta, raw in replica_sets}
    failing = {key: raw for key, raw in makers.items() if key in by_owner}
    members = member_rows(snapshot, workload) if failing else []
    for key, raw in failing.items():
        rows, wanted = by_owner[key], stored_controller(raw).spec.replicas
        active = [row for row in members if is_controlled_by(snapshot, row, key.name)]
        if workload.kind == "DaemonSet":
            names, active = snapshot.pods.node_names, []
            rows = [row for row in rows if names[row] not in {names[other] for other in members}]
        if rows and len(active) < (1 if wanted is None else wanted):
            state = _rejection(snapshot, rows, workload.reference)
            bound = map_at(msgspec.json.decode(raw), "spec", "template", "spec").get("nodeName")
            if not bound:
                return state
            return replace(state, message=f"{state.message}; {bound_text(str(bound))}", is_bound_by_hand=True)
    return None


def _rejection(snapshot: Snapshot, rows: Sequence[int], subject: str, owner: str = "") -> states.RejectedByKubelet:
    """Return the state with the reason of the newest of these rejected pods."""
    last = max((snapshot.pods[row] for row in rows), key=lambda pod: pod.metadata.creation_timestamp or "")
    return states.RejectedByKubelet(
        subject=subject,
        reason=last.status.reason,
        message=last.status.message,
        nodes=tuple(sorted({snapshot.pods.node_names[row] for row in rows})),
        pods=len(rows),
        owner=owner,
    )


_RECENT = 3600 * 10**9  # nanoseconds within which a controller has replaced a pod that failed, whatever its back-off


def next_rejected(snapshot: Snapshot, pod: Pod, nodes: Sequence[str]) -> states.RejectedByKubelet | None:
    """Return the state of a pending pod if it replaces pods that the kubelets of all these nodes failed. A pod of the
    same controller that started there later shows that the cause is gone."""
    owner = pod.metadata.controller
    if owner is None or not nodes:
        return None
    pods, own = snapshot.pods, (owner.kind, pod.metadata.namespace, owner.name)
    on = {node: [row for row in rejected_pods(snapshot).get(own, ()) if pods.node_names[row] == node] for node in nodes}
    if not all(on.values()):
        return None
    rows = [row for each in on.values() for row in each]
    last = max(pods.creation_timestamps[row] or "" for row in rows)
    siblings = pods.owners.where(lambda owners: (owner.kind, owner.name) in ((it.kind, it.name) for it in owners))
    siblings &= pods.in_namespace(own[1]) & pods.phases.where(lambda phase: phase != "Failed")
    siblings &= pods.node_names.where(on.__contains__)
    if any((pods.creation_timestamps[row] or "") > last for row in siblings.nonzero()[0].tolist()):
        return None
    if (elapsed(last, pod.metadata.creation_timestamp) or 0) > _RECENT:
        return None
    return _rejection(snapshot, rows, pod.key, f"{owner.kind} {owner.name}")


REJECTED_THERE = "rejected-there"
"""The id of the note about a node of the choice whose kubelet failed earlier pods of the same controller."""
_KEEPS_FAILED = ("ReplicaSet", "ReplicationController")  # controllers that replace failed pods, whose objects stay


def failed_before(snapshot: Snapshot, pod: Pod, nodes: Sequence[str]) -> Iterator[Note]:
    """Yield a note on the other failed pods of a pod's controller; `nodes` are those to which it would be assigned."""
    owner, pods = pod.metadata.controller, snapshot.pods
    if owner is None or owner.kind not in _KEEPS_FAILED:
        return
    failed, rejected = (it.get((owner.kind, pod.metadata.namespace, owner.name), ()) for it in _failed_pods(snapshot))
    rows = [row for row in failed if pods.names[row] != pod.metadata.name]
    by_node = {node: [row for row in rejected if pods.node_names[row] == node] for node in nodes}
    there = [row for node, each in by_node.items() if each and next_rejected(snapshot, pod, [node]) for row in each]
    if not (shown := there or rows):
        return
    reasons = list_names(dict.fromkeys(pods[row].status.reason or "Failed" for row in shown), 2)
    where = list_names(sorted({pods.node_names[row] for row in shown} - {""}), 3)
    which = f"{count(len(shown), 'pod')} of {owner.kind} {owner.name}"
    keys = [pods.key(row) for row in shown]
    if there:
        text = f"kubelets have rejected {which} on {where} before, such as {keys[0]}: {reasons}"
        yield note(REJECTED_THERE, text, pods=keys)
    else:
        on = f" on {where}" if where else ""
        last = max((pods[row] for row in shown), key=lambda it: it.metadata.creation_timestamp or "")
        why = overuse_text(last.status.message)
        stay = "its object stays until it is" if len(shown) == 1 else "their objects stay until they are"
        text = f"{which} failed{on}: {reasons}{why and f' ({why})'}; {stay} deleted"
        yield note("failed-before", text, pods=keys)


def job_deadline(snapshot: Snapshot, pod: Pod) -> Iterator[Note]:
    """Yield that the deadline of a pending pod's Job counts from the Job's start, not from that of its pods."""
    job = snapshot.controller_of(pod, "Job")
    if job is not None and (seconds := job.spec.active_deadline_seconds) and (since := job.status.start_time):
        counts = f"activeDeadlineSeconds {seconds:,} of Job {job.metadata.name} runs since {since}"
        text = f"{counts}, also while its pod is pending"
        yield note("job-deadline", text, seconds=seconds, since=since)
