"""Pods that a kubelet failed before they started, and the workloads whose pods these are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kschedx.controllers import states
from kschedx.controllers.workloads import (
    Workload,
    is_controlled_by,
    member_rows,
    replica_sets_of,
)
from kschedx.errors import InputError
from kschedx.kube.controllers import stored_controller
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.types import Pod
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot

_REJECTED = lazy_pattern(
    r"Pod was rejected|The node had condition|(?:TopologyAffinity|SMTAlignment|UnexpectedAdmission)Error|OutOf"
)
"""The first words in the status of a pod that its kubelet fails before it starts (pkg/kubelet: lifecycle, eviction)."""


def rejected_pods(snapshot: Snapshot) -> Mapping[tuple[str, str, str], Sequence[int]]:
    """Return the rows of pods that a kubelet failed before they started, by the kind, namespace, and name of their
    controllers. They are computed once for a snapshot."""
    rejected: dict[tuple[str, str, str], list[int]] | None = vars(snapshot).get("_rejected_pods")
    if rejected is not None:
        return rejected
    pods, rejected = snapshot.pods, {}
    for row in pods.phases.where(lambda phase: phase == "Failed").nonzero()[0].tolist():
        status, owner = pods[row].status, pods[row].metadata.controller
        if owner is not None and any(map(_REJECTED.match, (status.reason, status.message))):
            rejected.setdefault((owner.kind, pods.namespaces[row], owner.name), []).append(row)
    vars(snapshot)["_rejected_pods"] = rejected
    return rejected


def kubelet_rejection(snapshot: Snapshot, workload: Workload) -> states.RejectedByKubelet | None:
    """Return the state of a Job without an active pod, of a DaemonSet without one on some node, or of a workload with a
    ReplicaSet that lacks pods, if kubelets failed some of its pods."""
    by_owner, own = rejected_pods(snapshot), (workload.kind, workload.namespace, workload.name)
    makers = {own: snapshot.workloads.get(own, b"{}")}
    if workload.kind == "Deployment" and by_owner:
        replica_sets = replica_sets_of(snapshot, workload)
        makers = {("ReplicaSet", workload.namespace, meta.name): raw for meta, raw in replica_sets}
    for key, raw in ((key, raw) for key, raw in makers.items() if key in by_owner):
        rows, wanted = by_owner[key], stored_controller(raw).spec.replicas
        members = member_rows(snapshot, workload)
        active = [row for row in members if is_controlled_by(snapshot, row, key[2])]
        if workload.kind == "DaemonSet":
            names, active = snapshot.pods.node_names, []
            rows = [row for row in rows if names[row] not in {names[other] for other in members}]
        if rows and len(active) < (1 if wanted is None else wanted):
            return _rejection(snapshot, rows, workload.reference)
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


_RECENT = 3600 * 10**9
"""Nanoseconds within which a controller has replaced a pod that failed, whatever its back-off."""


def _is_longer(since: str, until: str) -> bool:
    try:
        return bool(since and until) and nanoseconds(until) - nanoseconds(since) > _RECENT
    except InputError:  # a time in a format that no API server writes
        return False


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
    siblings = pods.owners.where(lambda owners: owner in owners) & pods.phases.where(lambda phase: phase != "Failed")
    siblings &= pods.node_names.where(on.__contains__)
    if any((pods.creation_timestamps[row] or "") > last for row in siblings.nonzero()[0].tolist()):
        return None
    if _is_longer(last, pod.metadata.creation_timestamp or ""):
        return None
    return _rejection(snapshot, rows, pod.key, f"{owner.kind} {owner.name}")
