"""Pods and workloads that run in a cluster whose nodes were not read."""

from __future__ import annotations

from kschedx.controllers.state_facts import Running
from kschedx.controllers.states import NotRead
from kschedx.controllers.workload_lifecycle import unready_reason
from kschedx.controllers.workloads import member_rows, wanted_replicas, workload_of
from kschedx.errors import NotReadError, UndecidableError
from kschedx.explain.setup import Subject
from kschedx.kube.conditions import reports_ready
from kschedx.kube.controllers import Controller, convert
from kschedx.kube.decoding import Manifest
from kschedx.kube.types import Pod
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_MOST_PODS = 3


def running_pod(subject: Subject, error: UndecidableError) -> NotRead | None:
    """Return the state of a pod of the cluster that runs; None for any other. `error` is why no decision is known."""
    pod = subject.pod
    if subject.is_new or not isinstance(error, NotReadError) or pod.status.phase != "Running" or not pod.spec.node_name:
        return None
    runs = f"runs on {pod.spec.node_name}"
    if not reports_ready(pod.status.conditions):
        runs = f"{runs} and is not ready: {unready_reason(subject.snapshot, pod) or 'Ready=False'}"
    unknown = "where it would be assigned now"
    return NotRead(subject=pod.key, does=runs, unknown=unknown, because=error.because, command=error.command)


def running_workload(snapshot: Snapshot, manifest: Manifest, member: NotRead) -> Running | None:
    """Return the state of a workload of the cluster all of whose pods run and are ready; None for any other. `member`
    is the state of one of them."""
    workload, pods = workload_of(manifest), snapshot.pods
    rows = member_rows(snapshot, workload)
    desired = convert(manifest, Controller).wanted_pods if workload.kind == "DaemonSet" else wanted_replicas(manifest)
    is_whole = bool(rows) and len(rows) >= desired and not snapshot.cluster.nodes
    if not is_whole or not all(_runs_well(pods[row]) for row in rows):
        return None
    on = list_names([f"{pods.names[row]} on {pods.node_names[row]}" for row in rows], _MOST_PODS)
    runs = {1: "runs its only pod", 2: "runs both of its pods"}.get(len(rows), f"runs all {len(rows):,} of its pods")
    return Running(subject=workload.reference, does=f"{runs}: {on}", because=member.because, command=member.command)


def _runs_well(pod: Pod) -> bool:
    return pod.status.phase == "Running" and bool(pod.spec.node_name) and reports_ready(pod.status.conditions)
