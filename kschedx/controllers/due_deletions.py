"""Pending pods that controllers delete before they can run: with their namespace or workload, or after their Job; and
pods for whose end controllers wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import numpy as np

from kschedx.controllers import states
from kschedx.controllers.workloads import JOB_ENDS, stays_terminating, waits_until_gone
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.decoding import list_at
from kschedx.kube.types import OwnerReference, Pod, controller_of
from kschedx.snapshot.snapshot import Snapshot

_ORPHAN = "orphan"  # the finalizer of a workload that is deleted without its pods


def ended_job(snapshot: Snapshot, pod: Pod) -> states.OfEndedJob | None:
    """Return the state of a pod whose Job has ended and creates no more pods."""
    if (job := snapshot.controller_of(pod, "Job")) is None:
        return None
    for condition in job.status.conditions:
        if condition.type in JOB_ENDS and condition.status == "True":
            reason, name = condition.reason or condition.type, job.metadata.name
            return states.OfEndedJob(subject=pod.key, job=name, reason=reason, message=condition.message)
    return None


def deleted_with_owner(snapshot: Snapshot, pod: Pod) -> states.BeingDeleted | None:
    """Return the state of a pending pod that the garbage collector deletes, since its workload is being deleted."""
    owner, since = _deleted_owner(snapshot, pod.metadata.namespace, pod.metadata.owner_references)
    why = f"{owner} is being deleted, and the garbage collector deletes its pods"
    return states.BeingDeleted(subject=pod.key, since=since, why=why) if since else None


def _deleted_owner(snapshot: Snapshot, namespace: str, owners: Iterable[OwnerReference]) -> tuple[str, str]:
    """Return the workload that is being deleted with the pods that it or its ReplicaSet or Job controls, and since
    when; empty if none is."""
    for _ in range(2):
        owner = controller_of(owners)
        raw = None if owner is None else snapshot.workloads.get((owner.kind, namespace, owner.name))
        if owner is None or raw is None:
            break
        metadata = stored_metadata(raw)
        if metadata.deletion_timestamp and _ORPHAN not in list_at(msgspec.json.decode(raw), "metadata", "finalizers"):
            return f"{owner.kind} {owner.name}", metadata.deletion_timestamp
        owners = metadata.owner_references
    return "", ""


def rows_to_be_deleted(snapshot: Snapshot, rows: Iterable[int]) -> frozenset[int]:
    """Return which of these rows of pending pods are deleted before they can run: alone, with their namespace or
    workload, or by the controller of an ended Job."""
    pods = snapshot.pods
    of_job = pods.owners.where(lambda owners: any(owner.controller and owner.kind == "Job" for owner in owners))
    return frozenset(
        row
        for row in rows
        if pods.deletion_timestamps[row]
        or pods.namespaces[row] in snapshot.terminating_namespaces
        or any(_deleted_owner(snapshot, pods.namespaces[row], pods.owners[row]))
        or (of_job[row] and ended_job(snapshot, pods[row]) is not None)
    )


def rows_awaited(snapshot: Snapshot) -> Iterator[int]:
    """Yield the rows of pods that stay terminating on their nodes while their controller waits until they are gone."""
    pods = snapshot.pods
    for row in np.flatnonzero(pods.terminating & ~pods.finished & (pods.node >= 0)).tolist():
        owner = controller_of(pods.owners[row])
        is_kept = bool(pods.finalizers_of_others(row)) or stays_terminating(snapshot, pods, row)
        if is_kept and owner is not None and waits_until_gone(snapshot, pods.namespaces[row], owner):
            yield row
