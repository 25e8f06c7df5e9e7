"""Decisions on a cluster that moves: replicas one after the other, with claims, beside nominated pods; preemption, a
queue of many kinds, a drain.

python benchmarks/moving.py CLUSTER.json [NUMBER]

Figures are of the processor's time, so that what else a machine does is not in them; loading is not counted.
"""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

import kschedx
from kschedx.explain.setup import Setup
from kschedx.inquiry.what_if import drain_nodes
from kschedx.kube.kinds import KINDS
from kschedx.kube.types import Node, PersistentVolumeClaimVolumeSource, Pod, PodResourceClaim, Volume
from kschedx.simulate.simulator import SimulationOptions, Simulator
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.edits import with_pods
from kschedx.snapshot.snapshot import Snapshot

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
SELECTOR = {"labelSelector": {"matchLabels": {"app": "new"}}}


def pods(number: int, *, cpu: str = "100m", memory: str = "128Mi", kinds: int = 1, **spec: object) -> list[Pod]:
    """Pods of some kinds, as a snapshot has them."""
    made = []
    for kind in range(kinds):
        requests = {"cpu": cpu if kinds == 1 else f"{100 + kind}m", "memory": memory}
        container = {"name": "main", "image": "new:1", "resources": {"requests": requests}}
        for index in range(number // kinds):
            metadata = {"name": f"new-{kind}-{index}", "namespace": "team-1", "labels": {"app": "new"}}
            manifest = {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": metadata,
                "spec": {"containers": [container], **spec},
            }
            made.append(manifest)
    table = Snapshot.from_objects(made).pods
    return [table[row] for row in range(len(table))]


def with_claims(new: Sequence[Pod], zones: Sequence[str] = (), hosts: Sequence[str] = ()) -> tuple[Snapshot, list[Pod]]:
    """The pods as a StatefulSet makes them, each with a claim of its own, and a cluster of their storage: volumes that
    are theirs, each within reach of one of `zones`; or a free one of each of `hosts`; or none, so that they are to be
    made."""
    provisioner = "kubernetes.io/no-provisioner" if hosts else "csi.example.com"
    storage_class = {"apiVersion": "storage.k8s.io/v1", "metadata": {"name": "zonal"}, "provisioner": provisioner}
    objects: list[dict[str, object]] = [
        {**storage_class, "kind": "StorageClass", "volumeBindingMode": "WaitForFirstConsumer"},
        *(local_volume(host) for host in hosts),
    ]
    made = []
    for index, pod in enumerate(new):
        name = f"data-{pod.metadata.name}"
        labels = {**pod.metadata.labels, "apps.kubernetes.io/pod-index": str(index)}
        source = Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=name))
        made.append(
            replace(pod, metadata=replace(pod.metadata, labels=labels), spec=replace(pod.spec, volumes=(source,)))
        )
        spec: dict[str, object] = {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "zonal",
            "resources": {"requests": {"storage": "10Gi"}},
        }
        metadata: dict[str, object] = {"name": name, "namespace": "team-1", "uid": name}
        if zones:
            spec |= {"volumeName": name}
            metadata |= {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
            zone = {"key": ZONE, "operator": "In", "values": [zones[index % len(zones)]]}
            reach = {"required": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]}}
            source_of = {"csi": {"driver": "csi.example.com", "volumeHandle": name}}
            of = {"capacity": {"storage": "10Gi"}, "storageClassName": "zonal", "nodeAffinity": reach, **source_of}
            claimed = {"claimRef": {"namespace": "team-1", "name": name, "uid": name}}
            objects.append(
                {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {**of, **claimed}}
            )
        objects.append({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec})
    return Snapshot.from_objects(objects), made


def local_volume(host: str) -> dict[str, object]:
    reach = {
        "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [host]}]}]}
    }
    of = {"capacity": {"storage": "10Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "zonal"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": f"local-{host}"},
        "spec": {**of, "nodeAffinity": reach, "local": {"path": "/mnt"}},
        "status": {"phase": "Available"},
    }


GPU = "gpu.example.com"
DEVICE_REQUESTS: Mapping[str, tuple[dict[str, object], list[dict[str, object]]]] = {
    "one device": ({"selectors": [{"cel": {"expression": f'device.attributes["{GPU}"].model == "T4"'}}]}, []),
    "two devices of one NUMA node": ({"count": 2}, [{"matchAttribute": f"{GPU}/numa"}]),
    "a share of a device": ({"capacity": {"requests": {"milli": "300"}}}, []),
    "a partition, which draws on counters": ({}, []),
}


def with_devices(new: Sequence[Pod], hosts: Sequence[str], sort: str) -> tuple[Snapshot, list[Pod]]:
    """The pods with a ResourceClaim each, of one sort of `DEVICE_REQUESTS`, and eight devices on every node."""
    request, constraints = DEVICE_REQUESTS[sort]
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1, **request}
    devices = {"requests": [{"name": "gpu", "exactly": exactly}], "constraints": constraints}
    api: dict[str, object] = {"apiVersion": "resource.k8s.io/v1"}
    selector = {"cel": {"expression": f'device.driver == "{GPU}"'}}
    objects = [api | {"kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}]
    counters = [{"name": "slices", "counters": {"slices": {"value": "7"}}}]
    for number, host in enumerate(hosts):
        its = []
        for at in range(8):
            attributes = {"model": {"string": "T4" if number % 3 else "V100"}, "numa": {"int": at // 4}}
            serial = {"uuid": {"string": f"{host}-{at}"}}
            policy = {"default": "1000", "validRange": {"min": "1", "step": "1", "max": "1000"}}
            device: dict[str, object] = {"name": f"gpu-{at}", "attributes": attributes | serial}
            if "share" in sort:
                device |= {"allowMultipleAllocations": True}
                device |= {"capacity": {"milli": {"value": "1000", "requestPolicy": policy}}}
            if "partition" in sort:
                drawn = {"slices": {"value": "2" if at < 4 else "1"}}
                device |= {"consumesCounters": [{"counterSet": "slices", "counters": drawn}]}
            its.append(device)
        pool = {"name": host, "generation": 1, "resourceSliceCount": 2 if "partition" in sort else 1}
        for name, part in (("devices", {"devices": its}), ("counters", {"sharedCounters": counters})):
            if name == "devices" or "partition" in sort:
                spec = {"driver": GPU, "nodeName": host, "pool": pool, **part}
                objects.append(api | {"kind": "ResourceSlice", "metadata": {"name": f"{name}-{host}"}, "spec": spec})
    made = []
    for pod in new:
        name = pod.metadata.name
        metadata = {"name": name, "namespace": pod.metadata.namespace, "uid": name}
        objects.append(api | {"kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}})
        claims = (PodResourceClaim(name="gpu", resource_claim_name=name),)
        made.append(replace(pod, spec=replace(pod.spec, resource_claims=claims)))
    return Snapshot.from_objects(objects), made


def beside_nominated(snapshot: Snapshot, number: int) -> Snapshot:
    """A pod of high priority is nominated for each of some nodes, and no scheduler has placed it yet."""
    waiting = pods(number, priority=1_000_000)
    names = snapshot.cluster.names
    nominated = [
        replace(
            pod,
            metadata=replace(pod.metadata, name=f"nominated-{row}"),
            status=replace(pod.status, nominated_node_name=names[row * 7]),
        )
        for row, pod in enumerate(waiting)
    ]
    return with_pods(snapshot, nominated)


def queue(snapshot: Snapshot, setup: Setup, new: Sequence[Pod]) -> tuple[float, Simulator]:
    """Seconds of the processor for the queue of these pods, what is worked out once left out."""
    world = with_pods(snapshot, new)
    gc.collect()  # the runs before this one are gone
    simulator = Simulator(world, setup, SimulationOptions(recreate=False))
    first = len(snapshot.pods)
    simulator.queue.run([first])
    start = time.process_time()
    simulator.queue.run(range(first + 1, len(world.pods)))
    return time.process_time() - start, simulator


def main(path: str, number: int) -> None:
    gc.disable()  # as the commands do
    snapshot = kschedx.load(path)
    # a dump that may lack storage or devices leaves pods with claims undecided
    snapshot = replace(snapshot, source=replace(snapshot.source, complete=frozenset(KINDS)))
    setup = Setup.of_cluster(snapshot)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    anti = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{**SELECTOR, "topologyKey": HOST}]}}
    term = {"weight": 100, "podAffinityTerm": {**SELECTOR, "topologyKey": ZONE}}
    near = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}
    spread = [{**SELECTOR, "maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}]
    specs: Mapping[str, list[Pod]] = {
        "plain": pods(number),
        "hard zone spread": pods(number, topologySpreadConstraints=spread),
        "required anti-affinity per host": pods(number, affinity=anti),
        "preferred affinity": pods(number, affinity=near),
        "preemption": pods(number, cpu="2", memory="128Mi", priority=1_000_000, nodeSelector={"full": "yes"}),
    }
    zones = sorted({zone for zone in snapshot.cluster.label(ZONE).values if zone is not None})
    hosts = sorted({host for host in snapshot.cluster.label(HOST).values if host is not None})
    for name, (storage, new) in {
        "a claim each, volumes to be made": with_claims(pods(number)),
        "a claim each, bound to zonal volumes": with_claims(pods(number), zones),
        "a claim each, each takes a local volume": with_claims(pods(number), hosts=hosts),
    }.items():
        took, simulator = queue(snapshot.with_storage(storage.storage), setup, new)
        placed = sum(step.node is not None for step in simulator.queue.steps)
        print(f"{name}: {placed / took:,.0f} a second")
    for sort in DEVICE_REQUESTS:
        of_devices, new = with_devices(pods(number), snapshot.cluster.names, sort)
        took, simulator = queue(snapshot.with_devices(of_devices.devices), setup, new)
        placed = sum(step.node is not None for step in simulator.queue.steps)
        print(f"a claim each for {sort}: {placed / took:,.0f} a second")
    took, _ = queue(beside_nominated(snapshot, 50), setup, pods(number))
    print(f"plain, beside 50 nominated pods: {(number - 1) / took:,.0f} a second")
    for what, new in specs.items():
        cluster = filled(snapshot) if what == "preemption" else snapshot
        took, simulator = queue(cluster, setup, new)
        evicted = sum(bool(step.victims) for step in simulator.queue.steps)
        done = evicted if what == "preemption" else len(new) - 1
        print(f"{what}: {done / took:,.0f} a second ({done:,} in {took:.2f} s)")
    took, simulator = queue(snapshot, setup, pods(5_000, kinds=500))
    print(f"5,000 pods of 500 kinds: {took:.1f} s, {len(simulator.queue.steps):,} decisions")
    start = time.process_time()
    drain_nodes(snapshot, setup, [snapshot.cluster.names[7]], options=SimulationOptions(force=True), uncordons=True)
    print(f"drain of one node: {time.process_time() - start:.2f} s")
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"memory beyond the snapshot: {grown:,.0f} MB")


def filled(snapshot: Snapshot) -> Snapshot:
    """Every node offers what its pods ask for and nothing more, so that nobody comes without somebody going."""
    nodes = Setup.of_cluster(snapshot).scheduler.nodes
    changed: dict[ClusterRow, Node] = {}
    for row, node in enumerate(snapshot.cluster.nodes):
        full = {**node.status.allocatable, "cpu": f"{int(nodes.requested[row, 0])}m"}
        labels = {**node.metadata.labels, "full": "yes"}
        changed[ClusterRow(row)] = replace(
            node, status=replace(node.status, allocatable=full), metadata=replace(node.metadata, labels=labels)
        )
    return snapshot.with_nodes(changed)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1_000)
