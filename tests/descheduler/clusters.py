"""Manifests of small clusters as an API server returns them, and policies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import kschedx
from tests.builders import Manifest

NOW = "2026-06-01T12:00:00Z"
OLD = "2026-05-31T12:00:00Z"


def node(
    name: str,
    cpu: str = "4",
    *,
    labels: Mapping[str, str] = {},
    taints: Sequence[Manifest] = (),
    cordoned: bool = False,
    ready: bool = True,
) -> Manifest:
    allocatable = {"cpu": cpu, "memory": "16Gi", "pods": "20"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": list(taints), "unschedulable": cordoned},
        "status": {
            "allocatable": allocatable,
            "capacity": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def pod(
    name: str,
    on: str,
    *,
    owner: str = "web",
    kind: str = "ReplicaSet",
    cpu: str = "500m",
    spec: Mapping[str, object] = {},
    status: Mapping[str, object] = {},
    **metadata: object,
) -> Manifest:
    """Return a pod of the namespace default that is a day old, running, and ready."""
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "labels": {"app": owner},
            "creationTimestamp": OLD,
            "ownerReferences": [reference] if owner else [],
            **metadata,
        },
        "spec": {
            "nodeName": on,
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}],
            **spec,
        },
        "status": {
            "phase": "Running",
            "startTime": OLD,
            "conditions": [{"type": "Ready", "status": "True"}],
            **status,
        },
    }


def restarted_status(count: int) -> Mapping[str, object]:
    return {"containerStatuses": [{"name": "c", "restartCount": count, "state": {"running": {}}}]}


def budget(app: str, allowed: int, **status: object) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": f"budget-{app}", "namespace": "default", "generation": 1},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": app}}},
        "status": {
            "disruptionsAllowed": allowed,
            "currentHealthy": 2,
            "desiredHealthy": 2 - allowed,
            "expectedPods": 2,
            "observedGeneration": 1,
            **status,
        },
    }


BALANCE = {
    "RemoveDuplicates",
    "LowNodeUtilization",
    "HighNodeUtilization",
    "RemovePodsViolatingTopologySpreadConstraint",
}


def policy(
    plugin: str,
    args: Mapping[str, object] | None = None,
    evictor: Mapping[str, object] | None = None,
    **fields: object,
) -> Manifest:
    """Return a policy with the profile `main` and one plugin."""
    configs: list[Manifest] = [] if evictor is None else [{"name": "DefaultEvictor", "args": dict(evictor)}]
    configs.append({"name": plugin, **({} if args is None else {"args": dict(args)})})
    point = "balance" if plugin in BALANCE else "deschedule"
    profile = {"name": "main", "pluginConfig": configs, "plugins": {point: {"enabled": [plugin]}}}
    return {"apiVersion": "descheduler/v1alpha2", "kind": "DeschedulerPolicy", "profiles": [profile], **fields}


def deschedule(
    objects: Sequence[Mapping[str, object]], policy_manifest: Mapping[str, object], evictions: str = "api"
) -> dict[str, object]:
    """Return the document of one loop."""
    snapshot = kschedx.Snapshot.from_objects(objects)
    return kschedx.deschedule(snapshot, policy_manifest, now=NOW, evictions=evictions).to_dict()


def evicted_names(document: Mapping[str, object]) -> list[str]:
    """Return the names of the evicted pods in order."""
    rows = document.get("evicted", [])
    assert isinstance(rows, list)
    return [row["pod"].partition("/")[2] for row in rows]
