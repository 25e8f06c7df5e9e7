"""What a new workload takes from the cluster: pods that its controller adopts, and the template of another workload."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from msgspec.structs import replace

from kschedx.controllers.workloads import Workload, ordinal_of
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


def with_referenced_template(snapshot: Snapshot, manifest: Json) -> Json:
    """Return a custom resource with the pod template of the workload in its spec.workloadRef, if the cluster has it, as
    an Argo Rollout uses it."""
    reference, namespace = map_at(manifest, "spec", "workloadRef"), map_at(manifest, "metadata").get("namespace")
    key = str(reference.get("kind")), str(namespace or "default"), str(reference.get("name"))
    if not is_foreign(manifest) or key not in snapshot.workloads:
        return manifest
    template = map_at(msgspec.json.decode(snapshot.workloads[key]), "spec", "template")
    spec = {name: value for name, value in map_at(manifest, "spec").items() if name != "workloadRef"}
    return {**manifest, "spec": {**spec, "template": template}}


def only_lends_template(manifest: Manifest, others: Iterable[Manifest]) -> bool:
    """Return whether a workload at zero only has the template of one of the other objects, which creates its pods."""
    if map_at(manifest, "spec").get("replicas") != 0:
        return False
    own = str(manifest.get("kind")), *_names(manifest)
    users = ((map_at(it, "spec", "workloadRef"), _names(it)[0]) for it in others if is_foreign(it))
    return any((used.get("kind"), namespace, used.get("name")) == own for used, namespace in users)


def _names(manifest: Manifest) -> tuple[str, str]:
    metadata = map_at(manifest, "metadata")
    return str(metadata.get("namespace") or "default"), str(metadata.get("name"))


def template_user(snapshot: Snapshot, workload: Workload) -> str:
    """Return the custom resource that creates pods of the workload's template, such as `Rollout web`; empty if none
    does."""
    for (kind, namespace, name), raw in snapshot.custom_resources.items():
        if namespace == workload.namespace and b'"workloadRef"' in raw:
            reference = map_at(msgspec.json.decode(raw), "spec", "workloadRef")
            if (reference.get("kind"), reference.get("name")) == (workload.kind, workload.name):
                return f"{kind.partition('.')[0]} {name}"
    return ""
