"""Pods that the controller of a new workload adopts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from kschedx.controllers.workloads import Workload, ordinal_of
from kschedx.kube.controllers import Controller, convert
from kschedx.kube.decoding import Manifest
from kschedx.kube.selectors import compile_selector
from kschedx.kube.types import FINISHED, OwnerReference, controller_of
from kschedx.snapshot.snapshot import Snapshot


def _with_controller(snapshot: Snapshot, rows: Iterable[int], controller: OwnerReference) -> Snapshot:
    """The cluster in which a controller has adopted pods."""
    owners = snapshot.pods.owners.copy()
    for row in rows:
        owners.put(row, (*owners[row], controller))
    return replace(snapshot, pods=replace(snapshot.pods, owners=owners, derived={}), _tables={})


def with_adopted_pods(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> Snapshot:
    """Return the cluster in which a new workload has adopted the pods that it does not have to create."""
    orphans = [*_orphans(snapshot, workload, manifest)]
    if not orphans:
        return snapshot
    owner = OwnerReference(api_version="apps/v1", kind=workload.kind, name=workload.name, controller=True)
    return _with_controller(snapshot, orphans, owner)


def _orphans(snapshot: Snapshot, workload: Workload, manifest: Manifest) -> Iterator[int]:
    """Yield the pods without a controller that the controller of a new ReplicaSet or StatefulSet adopts: those that its
    selector matches; for a StatefulSet, only those with the names of its pods (PodControllerRefManager in
    pkg/controller/controller_ref_manager.go)."""
    if workload.kind not in ("ReplicaSet", "StatefulSet"):
        return
    pods, selector = snapshot.pods, compile_selector(convert(manifest, Controller).spec.selector)
    rows = pods.rows_in_namespaces(workload.namespace.__eq__)
    for row in rows[pods.labels.take(rows).where(selector.matches)].tolist():
        is_member = workload.kind == "ReplicaSet" or pods.names[row] == f"{workload.name}-{ordinal_of(pods.names[row])}"
        is_active = not pods.deletion_timestamps[row] and pods.phases[row] not in FINISHED
        if is_member and is_active and controller_of(pods.owners[row]) is None:
            yield row
