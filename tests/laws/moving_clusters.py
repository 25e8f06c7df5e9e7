"""Random clusters for the laws of runs: pods of a few templates, many of them with storage or devices."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

from kschedx.framework.schedule import Decision
from tests import device_builders as devices
from tests.builders import Manifest, node, pod
from tests.storage_builders import DRIVER, HOSTNAME, ZONE, claim, in_term, volume

CLASSES = ("zonal", "limited", "local", "at-once")
SINGLE = "ReadWriteOncePod"
NUMBER = "apps.kubernetes.io/pod-index"
DEVICES = "deviceclass.resource.kubernetes.io/gpu"
"""The extended resource of the device class."""
MODELS = ("small", "large")


def facts_of(decision: Decision) -> tuple[object, ...]:
    """Return all facts in which two decisions about one pod must agree."""
    result = decision.post_filter
    preemption = None if result is None else (result.status.code, result.status.reasons, result.candidates, result.best)
    return decision.outcome, decision.message, tuple(decision.best.tolist()), decision.nominated, preemption


class Dealer:
    """Builds the objects of one random cluster."""

    def __init__(self, dice: random.Random) -> None:
        self.dice = dice
        self.objects: list[Manifest] = []
        self.names = [f"node-{number}" for number in range(dice.randint(2, 5))]
        self._has_shares, self._has_network = self.chance(2), self.chance(8)

    def deal(self) -> list[Manifest]:
        dice = self.dice
        for name in self.names:
            self.objects += self.node(name)
        self.objects += self._classes()
        self.objects += [devices.device_class(), *map(self._devices, self.names)]
        self.objects += [self._free_volume(number) for number in range(dice.randint(1, 4))]
        for number in range(dice.randint(2, 5)):
            self._workload(number)
        return self.objects

    def chance(self, one_in: int) -> bool:
        return self.dice.randrange(one_in) == 0

    def node(self, name: str) -> Iterator[Manifest]:
        dice = self.dice
        labels = {HOSTNAME: name, ZONE: dice.choice("abc")}
        if self.chance(2):
            labels["disk"] = dice.choice(["ssd", "tape"])
        allocatable = {"cpu": dice.choice("234"), "memory": "8Gi", "pods": dice.choice(["3", "110"])}
        taints = ["spot:PreferNoSchedule"] if self.chance(4) else ["old:NoSchedule"] if self.chance(6) else []
        yield node(name, labels=labels, taints=taints, allocatable=allocatable, unschedulable=self.chance(8))
        if not self.chance(5):
            driver: Manifest = {"name": DRIVER, "nodeID": name, "topologyKeys": [ZONE]}
            if self.chance(2):
                driver["allocatable"] = {"count": dice.choice([1, 1, 2, 3])}
            metadata = {"name": name}
            yield {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": metadata,
                "spec": {"drivers": [driver]},
            }

    def _classes(self) -> Iterator[Manifest]:
        topology = [{"matchLabelExpressions": [{"key": ZONE, "values": ["a", "b"]}]}]
        for name in CLASSES:
            yield {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "StorageClass",
                "metadata": {"name": name},
                "provisioner": "kubernetes.io/no-provisioner" if name == "local" else DRIVER,
                "volumeBindingMode": "Immediate" if name == "at-once" else "WaitForFirstConsumer",
                "allowedTopologies": topology if name == "limited" else [],
            }
        if self.chance(2):
            spec = {"attachRequired": True, "storageCapacity": self.chance(2)}
            yield {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": DRIVER}, "spec": spec}

    def _devices(self, name: str) -> Manifest:
        models = [self.dice.choice(MODELS) for _ in range(self.dice.choice([0, 1, 1, 2]))]
        # half of the clusters have shareable devices, one in eight a pool of all nodes
        sharing = {"AllowMultipleAllocations": True} if self._has_shares else {}
        items = [devices.device(f"d{at}", model=item, memory="3Gi", **sharing) for at, item in enumerate(models)]
        if self._has_network and name == self.names[0]:
            return devices.resource_slice(name, *items, nodeName=None, allNodes=True)
        return devices.resource_slice(name, *items)

    def _device_claim(self, name: str) -> Manifest:
        model = f'device.attributes["{devices.DRIVER}"].model == "{self.dice.choice(MODELS)}"'
        capacity = {"requests": {"memory": "1Gi"}} if self._has_shares and self.chance(2) else None
        return devices.claim(name, devices.request(select=[model], capacity=capacity))

    def _free_volume(self, number: int) -> Manifest:
        reach = in_term(HOSTNAME, self.dice.choice(self.names)) if self.chance(2) else in_term(ZONE, "a", "b")
        size = self.dice.choice(["5Gi", "10Gi", "10Gi"])
        holder = f"data-{self.dice.randrange(3)}-{self.dice.randrange(3)}" if self.chance(3) else ""
        return volume(f"free-{number}", storage_class="local", size=size, node_affinity=reach, claim_ref=holder, uid="")

    def _workload(self, number: int) -> None:
        """Add pods of one template, some of which run."""
        dice = self.dice
        app = dice.choice(["web", "db"])
        labels = {"app": app}
        spec = self.spec()
        storage = dice.choice(["", "", "own", "own", "shared", "some shared", "ephemeral"])
        modes = (SINGLE,) if self.chance(4) else ("ReadWriteOnce",)
        storage_class = dice.choice([*CLASSES[:3], "local"])
        bound = self.chance(2)
        numbered = self.chance(2)
        claims_devices, has_own_device = self.chance(4), self.chance(2)
        if self.chance(8):
            spec["schedulingGroup"] = {"podGroupName": f"group-{number}"}
            self.objects.append(_group(f"group-{number}", dice.randint(1, 3)))
        owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": f"set-{number}", "uid": f"s{number}"}
        for index in range(dice.randint(1, 5)):
            name, volumes = f"pod-{number}-{index}", []
            pod_labels = {**labels, NUMBER: str(index)} if numbered else labels
            runs = self.chance(2)
            is_own = storage == "own" or (storage == "some shared" and index % 2 == 1)
            claim_name = f"{name}-scratch" if storage == "ephemeral" else f"data-{number}-{index if is_own else 'all'}"
            if storage == "ephemeral":
                volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]
            elif storage:
                volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
            if storage and (is_own or storage == "ephemeral" or index == 0):
                self._claim(claim_name, storage_class, modes, bound=bound or runs, pod_name=name)
            metadata: dict[str, object] = {"ownerReferences": [{**owner, "controller": True}]}
            status: Manifest = {}
            if claims_devices:
                device_claim_name = f"gpu-{number}-{index if has_own_device else 'all'}"
                spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": device_claim_name}]
                if has_own_device or index == 0:
                    self.objects.append(self._device_claim(device_claim_name))
            if runs:
                status["startTime"] = f"2026-01-0{dice.randint(1, 9)}T00:00:00Z"
            elif self.chance(5):
                status["nominatedNodeName"] = dice.choice(self.names)
            node_name = dice.choice(self.names) if runs else None
            result = pod(
                name,
                labels=pod_labels,
                on=node_name,
                metadata=metadata,
                status=status,
                spec={**spec, "volumes": volumes},
            )
            self.objects.append(result)

    def _claim(self, name: str, storage_class: str, modes: tuple[str, ...], *, bound: bool, pod_name: str) -> None:
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": f"default/{pod_name}", "controller": True}
        metadata: Mapping[str, object] = {"ownerReferences": [owner]} if name.endswith("-scratch") else {}
        volume_name = f"volume-of-{name}" if bound else ""
        size = self.dice.choice(["5Gi", "10Gi"])
        self.objects.append(
            claim(name, size=size, storage_class=storage_class, modes=modes, volume=volume_name, metadata=metadata)
        )
        if bound and not self.chance(12):
            reach = in_term(ZONE, self.dice.choice("abc")) if self.chance(2) else None
            labels = {ZONE: "a__b"} if self.chance(5) else {}
            result = volume(
                volume_name, storage_class=storage_class, claim_ref=name, node_affinity=reach, labels=labels, csi=True
            )
            self.objects.append(result)

    def spec(self) -> dict[str, Any]:
        dice = self.dice
        requests = {"cpu": dice.choice(["0", "500m", "1"]), "memory": dice.choice(["0", "1Gi"])}
        if self.chance(6):
            requests[DEVICES] = "1"
        container: Manifest = {"name": "main", "image": "app:v1", "resources": {"requests": requests}}
        if self.chance(6):
            container["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
        spec: dict[str, Any] = {"containers": [container], "priority": dice.choice([0, 0, 10])}
        selector = {"matchLabels": {NUMBER: "0"} if self.chance(12) else {"app": dice.choice(["web", "db"])}}
        term = {"labelSelector": selector, "topologyKey": dice.choice([ZONE, HOSTNAME])}
        preferred = [{"weight": dice.randint(1, 100), "podAffinityTerm": term}]
        if self.chance(6):
            spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        elif self.chance(6):
            spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
        if self.chance(5):
            when = dice.choice(["DoNotSchedule", "ScheduleAnyway"])
            constraint = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": selector}
            spec["topologySpreadConstraints"] = [constraint]
        if self.chance(6):
            spec["nodeSelector"] = {"disk": "ssd"}
        if self.chance(6):
            spec["tolerations"] = [{"key": "old", "operator": "Exists"}]
        return spec


def _group(name: str, least: int) -> Manifest:
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": least}}},
    }
