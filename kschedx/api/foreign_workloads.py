"""Workloads of others: a Rollout, a Knative Service, a Volcano or Kubeflow job. Their pods, as far as templates tell.

A custom resource that makes pods has, nearly always, Kubernetes' own pod template somewhere below its `spec`. What its
controller adds to a pod is not known, but for the few fields that are named here.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import cast

from msgspec import Struct

from kschedx.api.kinds import kind_of

Manifest = dict[str, object]

MAX_DEPTH = 8
"""Steps below `spec` at which a template may be."""

_KNATIVE = "serving.knative.dev"
"""Its controller names containers that have no name."""
_PARTIAL = frozenset({"sparkoperator.k8s.io"})
"""API groups whose templates do not tell what their pods request."""
_OF_THE_POD = ("podTemplate", "jobTemplate")
"""Keys of templates that say nothing of what the pod is for, as `workerTemplate` does."""
_NO_IMAGE = "image-of-its-controller"
_SCHEDULERS: Mapping[str, str] = {"batch.volcano.sh": "volcano"}
"""API groups whose controllers name another scheduler for a pod that names none."""


_KUBERNETES = frozenset({
    "admissionregistration", "apiextensions", "apiregistration", "authentication", "authorization", "certificates",
    "coordination", "discovery", "events", "flowcontrol.apiserver", "internal.apiserver", "metrics", "networking",
    "node", "rbac.authorization", "resource", "scheduling", "storage", "storagemigration",
})  # fmt: skip
"""What stands before `.k8s.io` in Kubernetes' own groups."""


class ForeignPod(Struct, frozen=True, kw_only=True):
    """The pod of one template."""

    manifest: Manifest
    path: str
    """Where in the object the template is: `spec.template`."""
    part: str
    """What this template is for, where there are several: `worker`."""


def kind_and_group(manifest: Mapping[str, object]) -> tuple[str, str]:
    group, slash, _ = str(manifest.get("apiVersion") or "").rpartition("/")
    return str(manifest.get("kind") or ""), group if slash else ""


def is_foreign(manifest: Mapping[str, object]) -> bool:
    """The kind is none of Kubernetes' own."""
    kind, group = kind_and_group(manifest)
    return kind_of(kind, group) is None and "." in group and group.removesuffix(".k8s.io") not in _KUBERNETES


def foreign_pods(manifest: Mapping[str, object]) -> list[ForeignPod]:
    """A pod for each template of a custom resource; none where it has no standard template."""
    kind, group = kind_and_group(manifest)
    metadata = manifest.get("metadata")
    own = metadata if isinstance(metadata, dict) else {}
    spec = manifest.get("spec")
    is_whole = isinstance(spec, dict) and group not in _PARTIAL
    found = list(_templates(spec, "spec", "", MAX_DEPTH)) if is_whole else []
    scheduler = (spec.get("schedulerName") if isinstance(spec, dict) else None) or _SCHEDULERS.get(group)
    pods = []
    for template, path, part in found:
        pod = _pod(template, own, kind, str(manifest.get("apiVersion")), part if len(found) > 1 else "")
        pod_spec = cast("Manifest", pod["spec"])
        containers = cast("list[Manifest]", pod_spec["containers"])
        for index, container in enumerate(containers):
            if group == _KNATIVE:
                container.setdefault("name", f"user-container-{index}" if len(containers) > 1 else "user-container")
            container.setdefault("image", _NO_IMAGE)
        _drop_mounts(pod_spec)
        if isinstance(scheduler, str):
            pod_spec.setdefault("schedulerName", scheduler)
        pods.append(ForeignPod(manifest=pod, path=path, part=part))
    return pods


def _drop_mounts(spec: Manifest) -> None:
    """Those of volumes that the controller adds: no rule of scheduling reads a mount."""
    volumes = spec.get("volumes")
    names = {one.get("name") for one in volumes if isinstance(one, dict)} if isinstance(volumes, list) else set()
    for key in ("containers", "initContainers"):
        containers = spec.get(key)
        for container in containers if isinstance(containers, list) else ():
            mounts = container.get("volumeMounts") if isinstance(container, dict) else None
            if isinstance(mounts, list):
                container["volumeMounts"] = [
                    one for one in mounts if not isinstance(one, dict) or one.get("name") in names
                ]


def _templates(value: object, path: str, part: str, depth: int) -> Iterator[tuple[Mapping[str, object], str, str]]:
    """Everything that looks like a pod template: `metadata` and a `spec` with containers."""
    if isinstance(value, list) and depth:
        for index, item in enumerate(value):
            name = item.get("name") or item.get("groupName") if isinstance(item, dict) else None
            yield from _templates(item, f"{path}[{index}]", str(name or part), depth - 1)
    if not isinstance(value, dict) or not depth:
        return
    spec = value.get("spec")
    if isinstance(spec, dict) and _has_containers(spec):
        yield value, path, part
        return
    for key, item in value.items():
        if key.endswith("Template") and key not in _OF_THE_POD:
            yield from _templates(item, f"{path}.{key}", key.removesuffix("Template").lower(), depth - 1)
            continue
        is_named = isinstance(item, dict) and key not in ("template", "spec") and "emplate" not in key
        named = key.lower().removesuffix("groupspec") if is_named and not key.lower().endswith("specs") else part
        yield from _templates(item, f"{path}.{key}", named or part, depth - 1)


def _has_containers(spec: Mapping[str, object]) -> bool:
    containers = spec.get("containers")
    return isinstance(containers, list) and bool(containers) and all(isinstance(one, dict) for one in containers)


def _pod(
    template: Mapping[str, object], metadata: Mapping[str, object], kind: str, api_version: str, part: str
) -> Manifest:
    name = str(metadata.get("name") or metadata.get("generateName") or "")
    own = template.get("metadata")
    labels = own.get("labels") if isinstance(own, dict) else None
    annotations = own.get("annotations") if isinstance(own, dict) else None
    owner = {"apiVersion": api_version, "kind": kind, "name": name, "uid": str(metadata.get("uid") or "")}
    made: Manifest = {
        "name": "-".join(filter(None, (name.rstrip("-"), part.lower(), "new"))),
        "namespace": metadata.get("namespace") or "default",
        "ownerReferences": [{**owner, "controller": True}],
    }
    made |= {"labels": labels} if labels else {}
    made |= {"annotations": annotations} if annotations else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": copy.deepcopy(template["spec"])}
