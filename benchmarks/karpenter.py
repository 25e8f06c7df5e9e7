"""Karpenter's round on 5,000 nodes in five pools, with 500 pending pods of 60 kinds and 800 instance types.

python -m benchmarks.karpenter [NODES]
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import kschedx
from benchmarks.autoscaler import CORES, KINDS, PENDING, PODS_PER_NODE, ZONES, Manifest, owned, pending, spec_of
from kschedx.karpenter.catalogue import read_catalogue
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions

POOLS, TYPES = 5, 800
AWS = "karpenter.k8s.aws"


def main(size: int) -> None:
    snapshot = kschedx.Snapshot.from_objects(list(cluster(size)))
    catalogue = read_catalogue(types())
    karpenter = Karpenter.of(snapshot, KarpenterOptions(catalogue=catalogue))
    assert karpenter is not None
    start = time.process_time()
    result = karpenter.explain(snapshot.pods[snapshot.pods.rows["default/wait-3-3"]])
    took = time.process_time() - start
    print(f"{took:.2f} s of the processor, a node of {result.pool if result else ''}, {len(snapshot.pods):,} pods")


def types() -> Manifest:
    made: list[dict[str, object]] = []
    for number in range(TYPES):
        cores = 2 * CORES[number // 8 % len(CORES)]
        offerings = [{"zone": zone, "capacityType": kind} for zone in ZONES for kind in ("spot", "on-demand")]
        labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": ("amd64", "arm64")[number % 2]}
        made.append(
            {
                "name": f"m{number}.large",
                "labels": {**labels, f"{AWS}/instance-cpu": str(cores)},
                "capacity": {"cpu": str(cores), "memory": f"{4 * cores}Gi", "pods": "110"},
                "offerings": offerings,
            }
        )
    return {"apiVersion": "kschedx/v1", "kind": "InstanceTypes", "instanceTypes": made}


def cluster(size: int) -> Iterator[Manifest]:
    for name in ("default", "kube-system"):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    ready = [{"type": "Ready", "status": "True"}]
    subnets = [{"zone": zone} for zone in ZONES]
    head = {"apiVersion": f"{AWS}/v1", "kind": "EC2NodeClass", "metadata": {"name": "default"}}
    yield {**head, "status": {"conditions": ready, "subnets": subnets}}
    for number in range(POOLS):
        yield pool(number)
    for index in range(size):
        yield from node(index)
        for pod in range(PODS_PER_NODE):
            made = owned(f"app-{pod}", f"app-{pod}-{index}", cpu="260m", memory="900Mi")
            made["spec"] = {**spec_of(made), "nodeName": f"node-{index}"}
            yield {**made, "status": {"phase": "Running"}}
    for number in range(PENDING):
        yield pending(number % KINDS, number)


def pool(number: int) -> Manifest:
    template = {
        "metadata": {"labels": {"role": ("web", "batch")[number % 2]}},
        "spec": {
            "nodeClassRef": {"group": AWS, "kind": "EC2NodeClass", "name": "default"},
            "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]}],
        },
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": f"pool-{number}"},
        "spec": {"weight": number + 1, "template": template, "disruption": {"consolidateAfter": "1m"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    }


def node(index: int) -> Iterator[Manifest]:
    """With its NodeClaim."""
    name = f"node-{index}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": ZONES[index % len(ZONES)],
        "karpenter.sh/nodepool": f"pool-{index % POOLS}",
        "karpenter.sh/registered": "true",
        "karpenter.sh/initialized": "true",
        "node.kubernetes.io/instance-type": f"m{index % TYPES}.large",
    }
    status = {
        "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
        "allocatable": {"cpu": "7900m", "memory": "30Gi", "pods": "110"},
    }
    spec = {"providerID": f"aws:///{name}"}
    ready = [{"type": "Ready", "status": "True"}]
    metadata = {"name": name, "labels": labels}
    yield {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": metadata,
        "spec": spec,
        "status": {**status, "conditions": ready},
    }
    steps = [{"type": step, "status": "True"} for step in ("Launched", "Registered", "Initialized")]
    yield {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": metadata,
        "spec": {"nodeClassRef": {"group": AWS, "kind": "EC2NodeClass", "name": "default"}},
        "status": {**status, **spec, "nodeName": name, "conditions": steps},
    }


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
