"""A cluster of one group with one node, for rules about pods and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import yaml

import kschedx
from tests.device_builders import claim, device, device_class, request, resource_slice

Json = Mapping[str, Any]

NOW = "2026-06-01T12:00:00Z"
_CREATED = "2026-06-01T08:00:00Z"


def group(name: str = "workers", *, target: int = 1, maximum: int = 5, scale_up: str = "NoActivity") -> Json:
    """Return an entry of the status ConfigMap."""
    return {
        "name": name,
        "health": {"status": "Healthy", "cloudProviderTarget": target, "minSize": 0, "maxSize": maximum},
        "scaleUp": {"status": scale_up},
    }


def status(*groups: Json) -> Json:
    return {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"namespace": "kube-system", "name": "cluster-autoscaler-status"},
        "data": {"status": yaml.safe_dump({"autoscalerStatus": "Running", "nodeGroups": list(groups)})},
    }


def node(name: str = "workers-0", *, group: str = "workers", cpu: str = "2") -> Json:
    resources = {"cpu": cpu, "memory": "8Gi", "pods": "20"}
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "creationTimestamp": _CREATED, "labels": {"group": group}},
        "status": {
            "allocatable": resources,
            "capacity": resources,
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _CREATED}],
        },
    }


def pod(name: str, *, cpu: str = "1", reason: str = "Unschedulable", **spec: object) -> dict[str, Any]:
    """Return a pending pod; without `reason`, no scheduler has set its condition."""
    conditions = [{"type": "PodScheduled", "status": "False", "reason": reason}] if reason else []
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"namespace": "shop", "name": name, "creationTimestamp": _CREATED},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}}], **spec},
        "status": {"phase": "Pending", "conditions": conditions},
    }


def device_cluster() -> list[Json]:
    """Return a node with two devices, and five pods that request one each."""
    objects = [status(group()), node(), device_class(), resource_slice("workers-0", device("d0"), device("d1"))]
    for name in (f"web-{number}" for number in range(5)):
        uses = [{"name": "gpu", "resourceClaimName": name}]
        objects += [claim(name, request(), namespace="shop"), pod(name, cpu="100m", resourceClaims=uses)]
    return objects


def autoscale(objects: Sequence[Json], *, flags: Mapping[str, Any] | None = None, release: str = "1.36") -> Json:
    """Return the document of one loop."""
    scaling = kschedx.autoscale(
        kschedx.Snapshot.from_objects([dict(item) for item in objects]),
        group_label="group",
        flags={"cloud-provider": "aws", **(flags or {})},
        kube_version=release,
        now=NOW,
    )
    return scaling.to_dict()


def outcome(document: Json, name: str) -> str:
    """Return the outcome of a pod in the namespace `shop`."""
    (row,) = document["pods"][f"shop/{name}"]["outcomes"]
    return str(row["outcome"])
