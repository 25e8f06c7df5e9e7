"""The pod template that a custom resource takes from another workload."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from kschedx.controllers.workloads import Workload
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import Json
from kschedx.kube.workloads import is_foreign
from kschedx.snapshot.snapshot import Snapshot


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
