"""Write a cluster of any size as `kubectl get nodes,namespaces,priorityclasses,pods -A -o json` would print it.

    python benchmarks/big_cluster.py NODES PODS FILE [--seed SEED]

Everything that real objects carry and scheduling does not read is there as well (managed fields, conditions, images,
environment, probes), since skipping it is a part of loading. The last object is a pending pod, team-3/pending, that
most plugins have something to say about.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

Manifest = dict[str, object]

NAMESPACES = 60
ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
MAX_PODS_OF_AN_APP = 2000
IMAGES = 400
IMAGES_ON_A_NODE = 40
SECOND = "2026-11-01T10:00:{:02}Z"


@dataclass(frozen=True)
class Machine:
    name: str
    share: int
    cpu: str
    memory: str
    pods: str
    gpus: int = 0


MACHINES = (
    Machine("m6i.4xlarge", 6, "15890m", "61847320Ki", "110"),
    Machine("c6i.8xlarge", 3, "31850m", "62847320Ki", "234"),
    Machine("r6i.2xlarge", 3, "7910m", "62014000Ki", "58"),
    Machine("g5.12xlarge", 1, "47810m", "187847320Ki", "234", gpus=4),
)
PRIORITIES = {"low": (-10, 6), "normal": (0, 80), "high": (1000, 12), "critical": (100000, 2)}
"""Name to value, and to the share of apps in percent."""


@dataclass
class Cluster:
    """Writes objects one by one; all chance comes from `random`."""

    nodes: int
    pods: int
    random: random.Random
    node_names: list[str] = field(default_factory=list)

    def objects(self) -> Iterator[Manifest]:
        for index in range(self.nodes):
            yield self._node(index)
        for index in range(NAMESPACES):
            name = f"team-{index}"
            labels = {"kubernetes.io/metadata.name": name, "tier": "silver" if index % 7 else "gold"}
            yield _object("v1", "Namespace", {"name": name, "labels": labels}, status={"phase": "Active"})
        for name, (value, _) in PRIORITIES.items():
            yield _object("scheduling.k8s.io/v1", "PriorityClass", {"name": name}) | {"value": value}
        yield from self._apps()
        yield pending_pod()

    def _node(self, index: int) -> Manifest:
        name = f"ip-10-{index >> 16 & 255}-{index >> 8 & 255}-{index & 255}.eu-west-1.compute.internal"
        self.node_names.append(name)
        (machine,) = self.random.choices(MACHINES, [machine.share for machine in MACHINES])
        is_spot, is_cordoned = index % 5 == 0, self.random.random() < 0.01
        labels = {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "node.kubernetes.io/instance-type": machine.name,
            "topology.kubernetes.io/region": "eu-west-1",
            "topology.kubernetes.io/zone": ZONES[index % 3],
            "eks.amazonaws.com/nodegroup": f"group-{index % 17}",
            "eks.amazonaws.com/capacityType": "SPOT" if is_spot else "ON_DEMAND",
            "pool": "gpu" if machine.gpus else "batch" if index % 4 == 3 else "general",
        }
        taints: list[Manifest] = []
        if machine.gpus:
            taints.append({"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"})
        if is_spot and self.random.random() < 0.5:
            taints.append({"key": "spot", "effect": "PreferNoSchedule"})
        if is_cordoned:
            taints.append(
                {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": _time(index)}
            )
        offers = {
            "cpu": machine.cpu,
            "memory": machine.memory,
            "pods": machine.pods,
            "ephemeral-storage": "95551679124",
            "hugepages-2Mi": "0",
        } | ({"nvidia.com/gpu": str(machine.gpus)} if machine.gpus else {})
        metadata = _metadata(name, f"node-{index:032x}", labels) | {
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
        }
        spec: Manifest = {"providerID": f"aws:///{ZONES[index % 3]}/i-{index:017x}"}
        spec |= {"taints": taints} if taints else {}
        spec |= {"unschedulable": True} if is_cordoned else {}
        conditions = ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
        return _object("v1", "Node", metadata, spec) | {
            "status": {
                "allocatable": offers,
                "capacity": offers,
                "conditions": [_condition(kind, str(kind == "Ready"), index) for kind in conditions],
                "images": [self._image(number) for number in self.random.sample(range(IMAGES), IMAGES_ON_A_NODE)],
                "nodeInfo": {"kubeletVersion": "v1.36.2", "osImage": "Linux", "architecture": "amd64"},
            }
        }

    def _image(self, number: int) -> Manifest:
        name = f"registry.example/team{number % 40}/svc{number}"
        names = [f"{name}@sha256:{number:064x}", f"{name}:v{number % 7}"]
        return {"names": names, "sizeBytes": self.random.randint(20, 900) << 20}

    def _apps(self) -> Iterator[Manifest]:
        made = app = 0
        while made < self.pods:
            # few apps are large, most are small
            size = min(int(self.random.paretovariate(0.9) * 3), MAX_PODS_OF_AN_APP, self.pods - made)
            pods = list(self._app(app, made, size))
            yield from pods
            made, app = made + len(pods), app + 1

    def _app(self, app: int, first: int, size: int) -> Iterator[Manifest]:
        """The pods of one app, which have everything but names and places in common."""
        name, namespace = f"svc{app}", f"team-{app % NAMESPACES}"
        labels = {
            "app.kubernetes.io/name": name,
            "app.kubernetes.io/component": self.random.choice(("api", "worker", "cache", "db")),
            "team": namespace,
            "pod-template-hash": f"{app:010x}",
        }
        (priority,) = self.random.choices(list(PRIORITIES), [share for _, share in PRIORITIES.values()])
        requests: Manifest = {
            "cpu": self.random.choice(("50m", "100m", "250m", "500m", "1")),
            "memory": self.random.choice(("128Mi", "256Mi", "512Mi", "1Gi", "2Gi")),
        }
        spec = _pod_spec(name, namespace, app, requests) | {
            "priorityClassName": priority,
            "priority": PRIORITIES[priority][0],
        }
        itself: Manifest = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": name}}}
        rule = self.random.random()
        if rule < 0.06:
            size = min(size, max(self.nodes // 4, 1))
            term = itself | {"topologyKey": "kubernetes.io/hostname"}
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif rule < 0.2:
            weighted = {"weight": 100, "podAffinityTerm": itself | {"topologyKey": "topology.kubernetes.io/zone"}}
            spec["affinity"] = {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}
        elif rule < 0.3:
            spread = {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}
            spec["topologySpreadConstraints"] = [itself | spread]
        owner = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": f"{name}-{app:010x}",
            "uid": f"rs-{app:032x}",
            "controller": True,
        }
        for number in range(first, first + size):
            metadata = _metadata(f"{name}-{app:010x}-{number:05x}", f"pod-{number:032x}", labels) | {
                "namespace": namespace,
                "generateName": f"{name}-{app:010x}-",
                "annotations": {"checksum/config": f"{app:064x}"},
                "ownerReferences": [owner],
            }
            placed = {"nodeName": self.random.choice(self.node_names)} | spec
            yield _object("v1", "Pod", metadata, placed) | {"status": _pod_status(name, app, number)}


def pending_pod() -> Manifest:
    """Asks for much, for two pools, to stay away from its kind, and to be spread over zones."""
    itself: Manifest = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": "svc3"}}}
    pools = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["general", "batch"]}]}
    apart = {"weight": 100, "podAffinityTerm": itself | {"topologyKey": "kubernetes.io/hostname"}}
    spread = {"maxSkew": 5, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "DoNotSchedule"}
    labels = {"app.kubernetes.io/name": "svc3", "team": "team-3"}
    spec = {
        "containers": [
            {
                "name": "app",
                "image": "registry.example/team-3/svc3:v3",
                "resources": {"requests": {"cpu": "2", "memory": "4Gi"}},
            }
        ],
        "priority": 1000,
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pools]}},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [apart]},
        },
        "topologySpreadConstraints": [itself | spread],
    }
    metadata: Manifest = {"name": "pending", "namespace": "team-3", "uid": "pending", "labels": labels}
    return _object("v1", "Pod", metadata, spec, {"phase": "Pending"})


def _pod_spec(name: str, namespace: str, app: int, requests: Manifest) -> Manifest:
    token = {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}}
    away = [
        {"key": f"node.kubernetes.io/{state}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
        for state in ("not-ready", "unreachable")
    ]
    probe = {
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "periodSeconds": 10,
        "failureThreshold": 3,
    }
    container = {
        "name": "app",
        "image": f"registry.example/{namespace}/{name}:v{app % 7}",
        "imagePullPolicy": "IfNotPresent",
        "resources": {"requests": requests, "limits": {"memory": requests["memory"]}},
        "ports": [{"containerPort": 8080, "protocol": "TCP", "name": "http"}],
        "env": [{"name": f"VARIABLE_{number}", "value": f"value-{number}-{app}"} for number in range(8)],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "volumeMounts": [{"name": "api-access", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    return {
        "schedulerName": "default-scheduler",
        "serviceAccountName": "default",
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "securityContext": {},
        "preemptionPolicy": "PreemptLowerPriority",
        "tolerations": away,
        "volumes": [{"name": "api-access", "projected": {"defaultMode": 420, "sources": [token]}}],
        "containers": [container],
    }


def _pod_status(name: str, app: int, number: int) -> Manifest:
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    container = {
        "name": "app",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "image": f"registry.example/{name}:v{app % 7}",
        "imageID": f"registry.example/{name}@sha256:{app:064x}",
        "containerID": f"containerd://{number:064x}",
        "state": {"running": {"startedAt": _time(number)}},
        "lastState": {},
    }
    return {
        "phase": "Running",
        "qosClass": "Burstable",
        "podIP": "10.1.2.3",
        "hostIP": "10.0.0.1",
        "startTime": _time(number),
        "conditions": [_condition(kind, "True", number) for kind in conditions],
        "containerStatuses": [container],
    }


def _object(
    version: str, kind: str, metadata: Manifest, spec: Manifest | None = None, status: Manifest | None = None
) -> Manifest:
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec or {}, "status": status or {}}


def _metadata(name: str, uid: str, labels: dict[str, str]) -> Manifest:
    owned: Manifest = {
        f"f:{part}": {"f:lastTransitionTime": {}, "f:message": {}, "f:reason": {}} for part in ("a", "b", "c", "d")
    }
    managed = {
        "manager": "kubelet",
        "operation": "Update",
        "apiVersion": "v1",
        "time": _time(0),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:conditions": {'k:{"type":"Ready"}': owned}, "f:phase": {}, "f:podIP": {}}},
    }
    return {
        "name": name,
        "uid": uid,
        "resourceVersion": uid[-8:],
        "creationTimestamp": _time(0),
        "labels": labels,
        "managedFields": [managed],
    }


def _condition(kind: str, status: str, second: int) -> Manifest:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": _time(second)}


def _time(second: int) -> str:
    return SECOND.format(second % 60)


def write(path: Path, nodes: int, pods: int, seed: str = "big") -> None:
    """A `kind: List` with an object on each line."""
    cluster = Cluster(nodes, pods, random.Random(seed))
    with path.open("w", encoding="utf-8") as file:
        file.write('{"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[\n')
        for number, manifest in enumerate(cluster.objects()):
            file.write((",\n" if number else "") + json.dumps(manifest))
        file.write("\n]}\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("nodes", type=int)
    parser.add_argument("pods", type=int)
    parser.add_argument("file", type=Path)
    parser.add_argument("--seed", default="big")
    asked = parser.parse_args()
    write(asked.file, asked.nodes, asked.pods, asked.seed)
    print(f"{asked.nodes} nodes, {asked.pods} pods, {asked.file.stat().st_size / 1e6:.0f} MB in {asked.file}")


if __name__ == "__main__":
    main()
