"""Explaining pods with claims in a large cluster: `python benchmarks/volumes.py [NODES PODS CLAIMS]`.

Makes a cluster in memory: nodes in three zones, each with a CSINode; pods, the first CLAIMS of which hold a bound claim
each; a class that makes zonal volumes, and a class of local volumes made by hand, of which every fourth node has one
free. Then explains pods with one bound claim and two that wait for their first consumer.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeVar

from kschedx.framework.config import load_profiles
from kschedx.framework.cycle import Cycle
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import schedule
from kschedx.releases import resolve
from kschedx.snapshot.columns import TableRow
from kschedx.snapshot.snapshot import Snapshot

T = TypeVar("T")
Manifest = dict[str, object]

ZONE = "topology.kubernetes.io/zone"
DRIVER = "csi.example.com"


def nodes(count: int) -> Iterator[Manifest]:
    for i in range(count):
        name = f"node-{i}"
        labels = {"kubernetes.io/hostname": name, ZONE: f"zone-{'abc'[i % 3]}"}
        allocatable = {"cpu": "64", "memory": "256Gi", "pods": "250"}
        yield {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": labels},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        }
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": name},
            "spec": {
                "drivers": [{"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE], "allocatable": {"count": 25}}]
            },
        }


def pod(name: str, node: str, claims: list[str]) -> Manifest:
    volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": claim}} for i, claim in enumerate(claims)]
    container = {"name": "c", "image": "app", "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}}}
    spec: Manifest = {"containers": [container], "volumes": volumes}
    if node:
        spec["nodeName"] = node
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def claim(name: str, storage_class: str, volume: str = "") -> Manifest:
    spec: Manifest = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "10Gi"}},
        "storageClassName": storage_class,
    }
    if volume:
        spec["volumeName"] = volume
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"} if volume else {},
        },
        "spec": spec,
        "status": {"phase": "Bound" if volume else "Pending"},
    }


def volume(name: str, storage_class: str, key: str, value: str, holder: str = "") -> Manifest:
    expression = {"key": key, "operator": "In", "values": [value]}
    spec: Manifest = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
    }
    if holder:
        spec["claimRef"] = {"namespace": "default", "name": holder, "uid": f"uid-{holder}"}
        spec["csi"] = {"driver": DRIVER, "volumeHandle": name}
    else:
        spec["local"] = {"path": "/mnt"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": spec,
        "status": {"phase": "Bound" if holder else "Available"},
    }


def classes() -> Iterator[Manifest]:
    topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["zone-a", "zone-b"]}]}]
    for name, provisioner in (("zonal", DRIVER), ("local", "kubernetes.io/no-provisioner")):
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name},
            "provisioner": provisioner,
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": topology if name == "zonal" else [],
        }


def cluster(node_count: int, pod_count: int, claim_count: int) -> Iterator[Manifest]:
    yield from nodes(node_count)
    yield from classes()
    local = node_count // 4
    for i in range(claim_count):
        zone = f"zone-{'abc'[i % node_count % 3]}"
        yield claim(f"claim-{i}", "zonal", f"volume-{i}")
        if i < claim_count - local:
            yield volume(f"volume-{i}", "zonal", ZONE, zone, f"claim-{i}")
    for i in range(local):
        yield volume(f"local-{i}", "local", "kubernetes.io/hostname", f"node-{4 * i}")
    for name, storage_class in (("new-1", "zonal"), ("new-2", "zonal"), ("new-3", "local"), ("new-4", "local")):
        yield claim(name, storage_class)
    for i in range(pod_count):
        yield pod(f"pod-{i}", f"node-{i % node_count}", [f"claim-{i}"] if i < claim_count else [])
    yield pod("makes", "", ["claim-0", "new-1", "new-2"])
    yield pod("binds", "", ["claim-0", "new-3", "new-1"])
    yield pod("cannot", "", ["claim-0", "new-3", "new-4"])


def timed(title: str, work: Callable[[], T]) -> T:
    start = time.perf_counter()
    result = work()
    print(f"{title:<44} {1000 * (time.perf_counter() - start):9.0f} ms")
    return result


def explain(snapshot: Snapshot, key: str) -> Cycle:
    release = resolve()
    config = load_profiles(None, release)
    target = snapshot.pods[snapshot.pods.rows[key]]
    return schedule(Framework(config.profile_for(target.spec.scheduler_name), config, snapshot, release), target)


def count_findings(cycle: Cycle) -> int:
    """Every finding of every node."""
    if cycle.filter is None:
        return 0
    return sum(len(v.explain(TableRow(row))) for v in cycle.filter.verdicts for row in range(len(v)) if v.codes[row])


def main() -> None:
    sizes = [int(text) for text in sys.argv[1:4]] or [5000, 150_000, 20_000]
    objects = json.loads(json.dumps(list(cluster(*sizes))))
    snapshot = timed("load", partial(Snapshot.from_objects, objects))
    for name in ("makes", "binds", "cannot"):
        timed(f"explain {name}, first", partial(explain, snapshot, f"default/{name}"))
        cycle = timed(f"explain {name}, again", partial(explain, snapshot, f"default/{name}"))
        count = timed(f"findings of {name}", partial(count_findings, cycle))
        print(f"{'':4}{cycle.outcome}, {count:,} findings. {cycle.message}")


if __name__ == "__main__":
    main()
