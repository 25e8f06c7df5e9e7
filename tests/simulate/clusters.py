"""A small shop: two workloads on five nodes, and their budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.builders import Manifest, node, pod

HASH = "7d4b9"
HIGH: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


def nodes(cpus: Sequence[str] = ("8", "8", "8", "4", "8")) -> list[Manifest]:
    zones = ("a", "a", "b", "b", "c")
    return [
        node(
            f"node-{number}",
            labels={"kubernetes.io/hostname": f"node-{number}", "topology.kubernetes.io/zone": zone},
            allocatable={"cpu": cpu, "memory": "16Gi", "pods": "20"},
        )
        for number, (zone, cpu) in enumerate(zip(zones, cpus, strict=False), start=1)
    ]


def deployment(
    name: str,
    cpu: str,
    places: Sequence[str | None],
    *,
    priority_class: str = "",
    node_selector: Mapping[str, str] | None = None,
    limits: Mapping[str, str] | None = None,
) -> list[Manifest]:
    """Return a Deployment, its ReplicaSet, and a pod on each of `places`; None is a pending pod."""
    labels = {"app": name, "pod-template-hash": HASH}
    resources = {"requests": {"cpu": cpu, "memory": "1Gi", **(limits or {})}, "limits": dict(limits or {})}
    containers = [{"name": "main", "image": f"{name}:1", "resources": resources}]
    spec: dict[str, object] = {"priorityClassName": priority_class, "nodeSelector": dict(node_selector or {})}
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers, **spec}}
    owned_by = {"apiVersion": "apps/v1", "controller": True}
    metadata = {"name": name, "namespace": "shop", "uid": name}
    built: list[Manifest] = [
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": metadata,
            "spec": {
                "replicas": len(places),
                "selector": {"matchLabels": {"app": name}},
                "template": template,
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": f"{name}-{HASH}",
                "namespace": "shop",
                "uid": f"{name}-{HASH}",
                "ownerReferences": [{**owned_by, "kind": "Deployment", "name": name, "uid": name}],
            },
            "spec": {"template": {**template, "metadata": {"labels": labels}}},
        },
    ]
    for number, place in enumerate(places):
        owner = {**owned_by, "kind": "ReplicaSet", "name": f"{name}-{HASH}", "uid": f"{name}-{HASH}"}
        created = f"2026-11-20T08:00:{number:02d}Z"
        built.append(
            pod(
                f"{name}-{number}",
                namespace="shop",
                labels=labels,
                on=place,
                metadata={"creationTimestamp": created, "ownerReferences": [owner]},
                status={"phase": "Running", "startTime": created} if place else {"phase": "Pending"},
                containers=containers,
                spec=spec,
            )
        )
    return built


def budget(app: str, allowed: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}},
        "status": {"disruptionsAllowed": allowed},
    }


def shop() -> list[Manifest]:
    """Return five nodes: node-4 has room for one more web pod, each other node for several."""
    web = deployment("web", "1", ["node-1", "node-2", "node-3", "node-4", "node-5", None], priority_class="high")
    batch = deployment("batch", "2", ["node-1", "node-1", "node-2", "node-2", "node-3", "node-3", "node-5", None])
    return [*nodes(), HIGH, *web, *batch, budget("web", 1)]
