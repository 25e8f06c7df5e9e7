"""Pods with a node, or a chosen one: what keeps them from being bound, and that they run where no node was read."""

from __future__ import annotations

from kschedx.controllers import states
from kschedx.controllers.state_facts import Running
from kschedx.controllers.workload_lifecycle import unready_reason
from kschedx.controllers.workloads import member_rows, wanted_replicas, workload_of
from kschedx.errors import InputError, NotReadError, UndecidableError
from kschedx.explain.claim_causes import wrong_attributes_class
from kschedx.explain.events import AFTER_THE_CHOICE
from kschedx.explain.root_causes import provisioning_reports
from kschedx.kube.conditions import reports_ready
from kschedx.kube.controllers import Controller, convert
from kschedx.kube.decoding import Manifest
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.types import Pod
from kschedx.snapshot.events import RecordedEvent
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names


def not_bound_state(snapshot: Snapshot, pod: Pod, event: RecordedEvent | None) -> states.NotBound | None:
    """Return the state of a pod whose claim cannot be provisioned, whose devices are not ready, or, according to its
    event, that cannot be bound to the chosen node."""
    message = event.message if event is not None and AFTER_THE_CHOICE.match(event.message) else ""
    if pod.spec.resource_claims and (awaited := _awaited_condition(snapshot, pod)) is not None:
        driver, condition = awaited
        because = f"driver {driver} has not reported {condition} for its devices yet"
        return states.NotBound(subject=pod.key, message=message, provisioner=driver, because=because)
    for claim, report in provisioning_reports(snapshot, pod):
        storage_class = snapshot.storage.classes.get(claim.storage_class)
        provisioner = storage_class.provisioner if storage_class and storage_class.can_provision else ""
        wrong_class = wrong_attributes_class(snapshot, claim)
        if not message and not (report and provisioner) and wrong_class is None:
            continue
        return states.NotBound(
            subject=pod.key,
            message=message,
            claim=claim.key,
            provisioner=provisioner,
            report="" if report is None else report.message,
            because="" if wrong_class is None else wrong_class.text,
        )
    return states.NotBound(subject=pod.key, message=message) if message else None


_BINDING_TIMEOUT = 600 * 10**9  # nanoseconds, the default bindingTimeout of DynamicResources


def _awaited_condition(snapshot: Snapshot, pod: Pod) -> tuple[str, str] | None:
    """Return the first binding condition for which the pod waits, after its driver, unless kube-scheduler waits no
    longer and deallocates the claim."""
    from kschedx.plugins.dynamic_resources.claims import is_late  # most pods have no device claims

    for claim in snapshot.devices.claims_of(pod):
        if not any(consumer.uid == pod.metadata.uid for consumer in claim.status.reserved_for):
            continue
        awaited = next(claim.status.awaited_conditions, None)
        try:
            if awaited and not is_late(claim, _BINDING_TIMEOUT, nanoseconds(snapshot.taken.removesuffix(" or later"))):
                return awaited
        except InputError:  # the time of the cluster is not known
            return awaited
    return None


# Pods and workloads that run in a cluster whose nodes were not read.

_MOST_RUNNING = 3


def running_pod(snapshot: Snapshot, pod: Pod, error: UndecidableError) -> states.NotRead | None:
    """Return the state of a pod of the cluster that runs; None for any other. `error` is why no decision is known."""
    if not isinstance(error, NotReadError) or pod.status.phase != "Running" or not pod.spec.node_name:
        return None
    runs = f"runs on {pod.spec.node_name}"
    if not reports_ready(pod.status.conditions):
        runs = f"{runs} and is not ready: {unready_reason(snapshot, pod) or 'Ready=False'}"
    unknown = "where it would be assigned now"
    return states.NotRead(subject=pod.key, does=runs, unknown=unknown, because=error.because, command=error.command)


def running_workload(snapshot: Snapshot, manifest: Manifest, member: states.NotRead) -> Running | None:
    """Return the state of a workload of the cluster all of whose pods run and are ready; None for any other. `member`
    is the state of one of them."""
    workload, pods = workload_of(manifest), snapshot.pods
    rows = member_rows(snapshot, workload)
    desired = convert(manifest, Controller).wanted_pods if workload.kind == "DaemonSet" else wanted_replicas(manifest)
    is_whole = bool(rows) and len(rows) >= desired and not snapshot.cluster.nodes
    if not is_whole or not all(_runs_well(pods[row]) for row in rows):
        return None
    on = list_names([f"{pods.names[row]} on {pods.node_names[row]}" for row in rows], _MOST_RUNNING)
    runs = {1: "runs its only pod", 2: "runs both of its pods"}.get(len(rows), f"runs all {len(rows):,} of its pods")
    return Running(subject=workload.reference, does=f"{runs}: {on}", because=member.because, command=member.command)


def _runs_well(pod: Pod) -> bool:
    return pod.status.phase == "Running" and bool(pod.spec.node_name) and reports_ready(pod.status.conditions)
