"""The pod that a workload's template makes, as its controller would create it.

What scheduling can see of the controllers: names, labels, owner, the claims of a StatefulSet, the tolerations of a
DaemonSet (pkg/controller/{deployment,statefulset,daemon,job} and pkg/controller/daemon/util/daemonset_util.go).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import cast

from kschedx.api.kinds import KINDS
from kschedx.errors import InputError, Place

Manifest = dict[str, object]

MAKING_PODS = tuple(kind.key for kind in KINDS.values() if kind.template)
"""Kinds that make pods from a template."""

REVISION = "deployment.kubernetes.io/revision"
"""A ReplicaSet's annotation: the number of its template among those that its Deployment had."""

SHORT_NAMES: Mapping[str, str] = {
    name: kind.key
    for kind in KINDS.values()
    if kind.template or kind.key == "Pod"
    for name in (*kind.short_names, kind.name.lower(), kind.plural)
}
"""What kubectl calls a kind that a question can be about, in lower case and without its group; the shortest first."""

_DAEMON_TOLERATIONS = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)


def pod_from_workload(workload: Mapping[str, object], *, replica_set: Mapping[str, object] | None = None) -> Manifest:
    """The manifest of the next pod of a workload.

    `replica_set` is the newest ReplicaSet of a Deployment, where it is known: its pods carry its hash and it owns them.
    Raises `InputError` where there is no template.
    """
    kind = str(workload.get("kind", ""))
    metadata = _map(workload, "metadata")
    name = str(metadata.get("name") or "")
    template: Mapping[str, object] = workload
    if kind not in MAKING_PODS:
        raise InputError(f'"{kind}" makes no pods', hint=f"those that do: {', '.join(MAKING_PODS)}")
    path = KINDS[kind].template
    for part in path:
        template = _map(template, part)
    if not template:
        raise InputError("there is no pod template", place=Place(object=f"{kind} {name}", field=".".join(path)))

    pod_metadata: Manifest = copy.deepcopy(dict(_map(template, "metadata")))
    labels = dict(_map(template, "metadata", "labels"))
    spec: Manifest = copy.deepcopy(dict(_map(template, "spec")))
    owner: Mapping[str, object] = workload
    match kind:
        case "StatefulSet":
            pod_name = f"{name}-{_map(workload, 'spec', 'ordinals').get('start') or 0}"
            labels |= {
                "statefulset.kubernetes.io/pod-name": pod_name,
                "apps.kubernetes.io/pod-index": pod_name.rpartition("-")[2],
            }
            _add_claims(spec, workload, pod_name)
            pod_metadata["name"] = pod_name
        case "Deployment":
            if replica_set is not None:
                owner = replica_set
                labels = dict(_map(replica_set, "spec", "template", "metadata", "labels")) | labels
            pod_metadata["name"] = f"{_map(owner, 'metadata').get('name') or name}-new"
        case "DaemonSet":
            _add_daemon_tolerations(spec)
            pod_metadata["name"] = f"{name}-new"
        case _:
            pod_metadata["name"] = f"{name}-new"
    pod_metadata["namespace"] = metadata.get("namespace") or "default"
    if labels:
        pod_metadata["labels"] = labels
    pod_metadata["ownerReferences"] = [
        {
            "apiVersion": owner.get("apiVersion", ""),
            "kind": owner.get("kind", ""),
            "name": _map(owner, "metadata").get("name", ""),
            "uid": _map(owner, "metadata").get("uid") or "",
            "controller": True,
        }
    ]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": pod_metadata, "spec": spec}


def newest_replica_set(deployment: Mapping[str, object], replica_sets: list[Manifest]) -> Manifest | None:
    """Of the ReplicaSets that a Deployment owns, the one of the highest revision."""
    name = _map(deployment, "metadata").get("name")

    def revision(replica_set: Manifest) -> int:
        text = str(_map(replica_set, "metadata", "annotations").get(REVISION) or "0")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0

    def is_owned(replica_set: Manifest) -> bool:
        owners = _map(replica_set, "metadata").get("ownerReferences")
        return isinstance(owners, list) and any(
            isinstance(owner, dict) and owner.get("kind") == "Deployment" and owner.get("name") == name
            for owner in owners
        )

    return max(filter(is_owned, replica_sets), key=revision, default=None)


def _map(value: Mapping[str, object], *path: str) -> Mapping[str, object]:
    """What is under a path, or nothing, where it is no map."""
    for part in path:
        inner = value.get(part)
        value = cast("Mapping[str, object]", inner) if isinstance(inner, dict) else {}
    return value


def _add_claims(spec: Manifest, workload: Mapping[str, object], pod_name: str) -> None:
    """A volume for each volumeClaimTemplate, in place of the template's own of that name."""
    templates = _map(workload, "spec").get("volumeClaimTemplates")
    claims = (
        [str(_map(t, "metadata").get("name", "")) for t in templates or () if isinstance(t, dict)]
        if isinstance(templates, list)
        else []
    )
    existing = spec.get("volumes")
    volumes = (
        [v for v in existing if not (isinstance(v, dict) and v.get("name") in claims)]
        if isinstance(existing, list)
        else []
    )
    volumes += [{"name": c, "persistentVolumeClaim": {"claimName": f"{c}-{pod_name}"}} for c in claims]
    if volumes:
        spec["volumes"] = volumes


def _add_daemon_tolerations(spec: Manifest) -> None:
    keys = list(_DAEMON_TOLERATIONS)
    if spec.get("hostNetwork"):
        keys.append(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    existing = spec.get("tolerations")
    tolerations = list(existing) if isinstance(existing, list) else []
    spec["tolerations"] = tolerations + [{"key": k, "operator": "Exists", "effect": e} for k, e in keys]
