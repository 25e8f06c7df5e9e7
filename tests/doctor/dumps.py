"""A small cluster with everything that scheduling reads, saved whole, in part, or mixed with another."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kschedx.kube.snapshot_header import SnapshotHeader
from tests.builders import Manifest

TAKEN = "2026-11-20T08:00:00Z"
BEGAN = "2026-05-01T06:00:00Z"


class Cluster(dict[str, Manifest]):
    """`Kind namespace/name` to manifest."""

    def put(self, api_version: str, kind: str, key: str, **fields: object) -> None:
        namespace, _, name = key.rpartition("/")
        metadata = {"name": name, "uid": f"{kind}-{key}-uid", "resourceVersion": "100", "creationTimestamp": BEGAN}
        if namespace:
            metadata["namespace"] = namespace
        self[f"{kind} {key}"] = {"apiVersion": api_version, "kind": kind, "metadata": metadata, **fields}

    def of(self, *kinds: str) -> list[Manifest]:
        return [item for title, item in self.items() if title.split(" ")[0] in kinds]

    def change(self, title: str, path: str, value: object) -> None:
        at: Any = self[title]
        *parents, last = path.split(".")
        for name in parents:
            at = at[int(name)] if isinstance(at, list) else at.setdefault(name, {})
        at[int(last) if isinstance(at, list) else last] = value

    def copied(self) -> Cluster:
        return Cluster(copy.deepcopy(dict(self)))


def add_pod(cluster: Cluster, key: str, owner: str, node: str = "", *, claim: str = "", phase: str = "Running") -> None:
    kind, name = owner.split(" ")
    version = "apps/v1" if kind in ("DaemonSet", "ReplicaSet", "StatefulSet") else "v1"
    container = {"name": "main", "image": "registry.example/app:v1", "resources": {"requests": {"cpu": "100m"}}}
    spec: dict[str, object] = {"containers": [container], "priority": 0}
    if node:
        spec["nodeName"] = node
    if claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-19T10:00:00Z"}
    status = {"phase": phase if node else "Pending", "startTime": "2026-11-19T10:00:00Z", "conditions": [condition]}
    cluster.put("v1", "Pod", key, spec=spec, status=status)
    namespace = key.partition("/")[0]
    title = f"{kind} {namespace}/{name}"
    uid = f"{kind}-{namespace}/{name}-uid" if title in cluster else f"{kind}-{name}-uid"
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
    cluster.change(f"Pod {key}", "metadata.ownerReferences", [reference])


def add_node(cluster: Cluster, name: str, *, cloud: str = "aws", kubelet: str = "v1.36.2") -> None:
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": TAKEN, "lastTransitionTime": BEGAN}
    status = {
        "allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"},
        "conditions": [ready],
        "nodeInfo": {"kubeletVersion": kubelet},
    }
    cluster.put("v1", "Node", name, spec={"providerID": f"{cloud}:///zone/{name}"}, status=status)
    cluster.put("storage.k8s.io/v1", "CSINode", name, spec={"drivers": []})


def whole(*, prefix: str = "node", cloud: str = "aws") -> Cluster:
    """Return a cluster: three nodes, system pods, the ReplicaSet of a Deployment, and a StatefulSet with a volume."""
    built = Cluster()
    nodes = [f"{prefix}-{number}" for number in (1, 2, 3)]
    for name in nodes:
        add_node(built, name, cloud=cloud)
    for name in ("default", "kube-system", "shop"):
        built.put("v1", "Namespace", name)
    built.put("v1", "Service", "default/kubernetes", spec={})
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)):
        built.put("scheduling.k8s.io/v1", "PriorityClass", name, value=value)
    built.put("apps/v1", "DaemonSet", "kube-system/kube-proxy", status={"currentNumberScheduled": 3})
    built.put("apps/v1", "ReplicaSet", "shop/web-5d7b9", spec={"replicas": 2}, status={"replicas": 2})
    built.put("apps/v1", "StatefulSet", "shop/db", spec={"replicas": 1}, status={"replicas": 1})
    built.put("storage.k8s.io/v1", "StorageClass", "fast", provisioner="ebs.csi.aws.com")
    claim_reference = {"namespace": "shop", "name": "data-db-0"}
    size = {"requests": {"storage": "1Gi"}}
    built.put("v1", "PersistentVolume", "pv-1", spec={"capacity": {"storage": "1Gi"}, "claimRef": claim_reference})
    bound = {"volumeName": "pv-1", "storageClassName": "fast", "resources": size}
    built.put("v1", "PersistentVolumeClaim", "shop/data-db-0", spec=bound, status={"phase": "Bound"})
    for number, name in enumerate(nodes):
        add_pod(built, f"kube-system/kube-proxy-{number}", "DaemonSet kube-proxy", name)
    for number, name in enumerate(nodes[:2]):
        add_pod(built, f"shop/web-5d7b9-{number}", "ReplicaSet web-5d7b9", name)
    add_pod(built, "shop/db-0", "StatefulSet db", nodes[2], claim="data-db-0")
    return built


def save(path: Path, objects: Iterable[Manifest], header: SnapshotHeader | None = None) -> Path:
    """Write a list as `kubectl get -o json` does; with a header, as `kschedx snapshot` does."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metadata = {"annotations": header.annotations()} if header else {}
    listed = {"apiVersion": "v1", "kind": "List", "metadata": metadata, "items": list(objects)}
    path.write_text(json.dumps(listed, indent=4), encoding="utf-8")
    return path
