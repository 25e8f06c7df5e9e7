"""The loop of cluster-autoscaler on a cluster of 5,000 nodes in 40 groups, with 500 pending pods of 60 kinds.

python benchmarks/autoscaler.py [NODES_PER_GROUP]
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import kschedx

GROUPS, PODS_PER_NODE, KINDS, PENDING = 40, 30, 60, 500
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
CORES = (4, 8, 16, 32)
LABEL = "eks.amazonaws.com/nodegroup"
NOW = "2026-06-01T12:00:00Z"

Manifest = dict[str, object]


def main(size: int) -> None:
    manifests = list(cluster(size))
    snapshot = kschedx.Snapshot.from_objects(manifests)
    for turn in ("first", "again"):
        start = time.perf_counter()
        answer = kschedx.autoscale(snapshot, group_label=LABEL, flags={"cloud-provider": "aws"}, now=NOW).to_dict()
        took = time.perf_counter() - start
        print(f"{turn}: {took:.2f} s, {answer['result']}, {len(manifests):,} objects")


def cluster(size: int) -> Iterator[Manifest]:
    yield status(size)
    for name in ("default", "kube-system"):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    for number in range(GROUPS):
        for index in range(size):
            yield node(number, index)
            for pod in range(PODS_PER_NODE):
                yield running(number, index, pod)
    for number in range(PENDING):
        yield pending(number % KINDS, number)


def status(size: int) -> Manifest:
    groups = [
        {
            "name": f"group-{number:02}",
            "health": {"status": "Healthy", "cloudProviderTarget": size, "minSize": 0, "maxSize": 3 * size},
            "scaleUp": {"status": "NoActivity"},
        }
        for number in range(GROUPS)
    ]
    text = json.dumps({"autoscalerStatus": "Running", "nodeGroups": groups})
    metadata = {"name": "cluster-autoscaler-status", "namespace": "kube-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"status": text}}


def node(number: int, index: int) -> Manifest:
    name, cores = f"group-{number:02}-{index}", CORES[number % len(CORES)]
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
        LABEL: f"group-{number:02}",
        "role": ("web", "batch")[number % 2],
    }
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-20T08:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels, "creationTimestamp": "2026-05-20T08:00:00Z"},
        "status": {
            "capacity": {"cpu": str(cores), "memory": f"{4 * cores}Gi", "pods": "110"},
            "allocatable": {"cpu": f"{1000 * cores - 80}m", "memory": f"{4 * cores - 1}Gi", "pods": "110"},
            "conditions": [ready],
        },
    }


def running(number: int, index: int, pod: int) -> Manifest:
    share = (1000 * CORES[number % len(CORES)] - 80) // PODS_PER_NODE
    made = owned(f"app-{pod}", f"app-{pod}-{number}-{index}", cpu=f"{share}m", memory="64Mi")
    made["spec"] = {**spec_of(made), "nodeName": f"group-{number:02}-{index}"}
    return {**made, "status": {"phase": "Running"}}


def pending(kind: int, number: int) -> Manifest:
    made = owned(f"wait-{kind}", f"wait-{kind}-{number}", cpu=f"{500 + 50 * kind}m", memory=f"{256 + 32 * kind}Mi")
    mine = {"matchLabels": {"app": f"wait-{kind}"}}
    spec = spec_of(made)
    match kind % 10:
        case 1 | 6:
            constraint = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "labelSelector": mine}
            spec["topologySpreadConstraints"] = [{**constraint, "whenUnsatisfiable": "DoNotSchedule"}]
        case 2 | 7:
            spec["nodeSelector"] = {"role": "batch"}
        case 3:
            term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": mine}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {**made, "spec": spec, "status": {"phase": "Pending", "conditions": [said]}}


def owned(app: str, name: str, *, cpu: str, memory: str) -> Manifest:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": f"uid-{app}", "controller": True}
    metadata = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "labels": {"app": app},
        "creationTimestamp": "2026-06-01T11:50:00Z",
        "ownerReferences": [owner],
    }
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu, "memory": memory}}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def spec_of(manifest: Manifest) -> Manifest:
    spec = manifest["spec"]
    assert isinstance(spec, dict)
    return dict(spec)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 125)
