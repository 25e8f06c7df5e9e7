"""What a new workload takes from the cluster: pods that its controller adopts, and the template of another workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from kschedx.controllers.workloads import Workload, ordinal_of, workload_of
from kschedx.kube.controllers import Controller, convert
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import Json
from kschedx.kube.selectors import compile_selector
from kschedx.kube.types import FINISHED, OwnerReference, controller_of
from kschedx.kube.workloads import is_foreign
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


def _lender_of(manifest: Manifest) -> Workload:
    """Return the workload in spec.workloadRef of a custom resource, whose pod template it uses."""
    reference, namespace = map_at(manifest, "spec", "workloadRef"), map_at(manifest, "metadata").get("namespace")
    return Workload(str(reference.get("kind")), str(namespace or "default"), str(reference.get("name")))


def with_referenced_template(snapshot: Snapshot, manifest: Json) -> Json:
    """Return a custom resource with the pod template of the workload in its spec.workloadRef, if the cluster has it, as
    an Argo Rollout uses it."""
    lender = snapshot.manifest_of(_lender_of(manifest)) if is_foreign(manifest) else None
    if lender is None:
        return manifest
    spec = {name: value for name, value in map_at(manifest, "spec").items() if name != "workloadRef"}
    return {**manifest, "spec": {**spec, "template": map_at(lender, "spec", "template")}}


def only_lends_template(manifest: Manifest, others: Iterable[Manifest]) -> bool:
    """Return whether a workload at zero only has the template of one of the other objects, which creates its pods."""
    is_at_zero = map_at(manifest, "spec").get("replicas") == 0
    return is_at_zero and workload_of(manifest) in {_lender_of(it) for it in others if is_foreign(it)}


def template_user(snapshot: Snapshot, workload: Workload) -> str:
    """Return the custom resource that creates pods of the workload's template, such as `Rollout web`; empty if none
    does."""
    for (kind, _, name), raw in snapshot.custom_resources.items():
        if b'"workloadRef"' in raw and _lender_of(msgspec.json.decode(raw)) == workload:
            return f"{kind.partition('.')[0]} {name}"
    return ""
