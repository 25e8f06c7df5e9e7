"""Causes that objects of the cluster show are named on the first lines, with the expert's fix first."""

from __future__ import annotations

from typing import Any

import pytest

import kschedx
from kschedx.errors import InputError
from kschedx.explain.diagnosis import Diagnosis
from kschedx.fixes import FixCertainty
from kschedx.render.outcome import causes, roots
from tests.builders import Manifest, at, autoscaler_status, node, only, pod
from tests.device_builders import DRIVER, claim, claiming, device, device_class, request, resource_slice
from tests.storage_builders import DRIVER as DISK
from tests.storage_builders import HOSTNAME, attachment, capacity, csi_driver, csi_node, in_term, storage_class, volume
from tests.storage_builders import claim as bound_claim

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"

GPU = "nvidia.com/gpu"
UNHEALTHY = {"capacity": {GPU: "2"}, "allocatable": {GPU: "0", "pods": "9"}}
PARTITIONING = {
    "nvidia.com/gpu.present": "true",
    "nvidia.com/mig.config": "all-1g.10gb",
    "nvidia.com/mig.config.state": "failed",
}
PARTITIONED = {"nvidia.com/mig.config": "all-1g.10gb", "nvidia.com/mig.config.state": "success"}
HARDWARE = {"gpu.example.com/model": "a100"}
EXCLUSIVE, POOL = "alpha.jobset.sigs.k8s.io/exclusive-topology", "cloud.google.com/gke-nodepool"
JOB_KEY, OF_JOB_SET = "jobset.sigs.k8s.io/job-key", "jobset.sigs.k8s.io/jobset-name"


def asking(name: str, on: str | None = None, **requests: str) -> Manifest:
    return pod(name, on=on, containers=[{"name": "main", "resources": {"requests": requests}}])


FULL = node("a", allocatable={"cpu": "2", "pods": "9"})


def piled_up(nodes: list[str | None], mine: str, **spec: object) -> list[Manifest]:
    """Return a CronJob with an active Job on each node; the pod of the last one has the name `mine`."""
    names = [f"report-{number}" for number in range(len(nodes))]
    by = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": "report", "controller": True}
    cron_job: Manifest = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report", "namespace": "default", "uid": "report"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": {}}}, **spec},
        "status": {"active": [{"name": name} for name in names]},
    }
    items = [cron_job]
    for name, on in zip(names, nodes, strict=True):
        metadata = {"name": name, "namespace": "default", "uid": name, "ownerReferences": [by]}
        owner = {**by, "kind": "Job", "name": name, "uid": name}
        items.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": {}}})
        its_pod = asking(mine if name == names[-1] else f"{name}-x", on, cpu="1")
        items.append({**its_pod, "metadata": {**at(its_pod, "metadata"), "ownerReferences": [owner]}})
    return items


def spark(application: str, role: str, on: str | None = None, name: str = "") -> Manifest:
    labels = {"spark-app-selector": application, "spark-role": role}
    return {**asking("", on, cpu="1"), "metadata": {"name": name or f"{application}-{role}", "labels": labels}}


def ray(cluster: str, role: str, on: str | None = None, name: str = "") -> Manifest:
    labels = {"ray.io/cluster": cluster, "ray.io/node-type": role}
    return {**asking("", on, cpu="1"), "metadata": {"name": name or f"{cluster}-{role}", "labels": labels}}


def trained(job: str, replica: str, on: str | None = None, name: str = "") -> Manifest:
    labels = {"training.kubeflow.org/job-name": job, "training.kubeflow.org/replica-index": replica}
    return {**asking("", on, cpu="1"), "metadata": {"name": name or f"{job}-{replica}", "labels": labels}}


def served(group: str, worker: str, on: str | None = None, name: str = "") -> Manifest:
    labels = {"leaderworkerset.sigs.k8s.io/name": "vllm", "leaderworkerset.sigs.k8s.io/group-index": group}
    return {**asking(name, on, cpu="1"), "metadata": {"name": name or f"vllm-{group}-{worker}", "labels": labels}}


def resized(name: str, on: str, requested: str, allocated: str) -> Manifest:
    item = asking(name, on, cpu=requested)
    condition = {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "no room"}
    given = {"name": "main", "allocatedResources": {"cpu": allocated}, "resources": {"requests": {"cpu": allocated}}}
    return {**item, "status": {"phase": "Running", "conditions": [condition], "containerStatuses": [given]}}


def follower(domain: str) -> Manifest:
    metadata = {"name": "me", "labels": {OF_JOB_SET: "tpu"}, "annotations": {EXCLUSIVE: POOL}}
    return {**pod("me", nodeSelector={POOL: domain}), "metadata": metadata}


def leader(job: str, on: str | None = None, name: str = "") -> Manifest:
    others = [{"key": JOB_KEY, "operator": "Exists"}, {"key": JOB_KEY, "operator": "NotIn", "values": [job]}]
    term = {"topologyKey": POOL, "labelSelector": {"matchExpressions": others}}
    metadata = {
        "name": name or f"leader-{job}",
        "labels": {OF_JOB_SET: "tpu", JOB_KEY: job},
        "annotations": {EXCLUSIVE: POOL},
        "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": job, "controller": True}],
    }
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {**pod("", on=on, affinity=rules), "metadata": metadata}


def kept_by(annotation: str, value: str) -> Manifest:
    return {**node("a", unschedulable=True), "metadata": {"name": "a", "annotations": {annotation: value}}}


SINCE = "2026-01-01T00:00:00Z"


def own_daemon_set(name: str) -> list[Manifest]:
    return [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": "u", "controller": True}]


def daemon_set(name: str, **pod_spec: object) -> Manifest:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": name}], **pod_spec}}
    spec = {"selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


OF_PLAN = "the upgrade by Plan default/agents on a"
UPGRADED = f"wait for {OF_PLAN}, which uncordons it"
PLAN: Manifest = {
    "apiVersion": "upgrade.cattle.io/v1",
    "kind": "Plan",
    "metadata": {"name": "agents", "namespace": "default"},
    "spec": {"cordon": True},
    "status": {"applying": ["a"]},
}
DRAINED = "medik8s.io/drain:NoSchedule"


def upgrading(phase: str, name: str = "u1") -> Manifest:
    """Return the pod with which system-upgrade-controller upgrades node a."""
    labels = {"upgrade.cattle.io/node": "a", "upgrade.cattle.io/plan": "agents"}
    its = pod(name, on="a", labels=labels, initContainers=[{"name": "drain"}], containers=[{"name": "upgrade"}])
    return {**its, "status": {"phase": phase}}


def maintained(name: str, **metadata: str) -> Manifest:
    return {
        "apiVersion": "nodemaintenance.medik8s.io/v1beta1",
        "kind": "NodeMaintenance",
        "metadata": {"name": "fan", **metadata},
        "spec": {"nodeName": name, "reason": "new fan"},
    }


def stored(kind: str, name: str, **fields: Any) -> Manifest:
    of_storage = dict.fromkeys(("StorageClass", "VolumeAttributesClass"), "storage.k8s.io/v1")
    version = {**of_storage, "PriorityClass": "scheduling.k8s.io/v1"}.get(kind, "v1")
    metadata = {"name": name, "uid": f"u-{name}"} | ({} if kind in of_storage else {"namespace": "default"})
    return {"apiVersion": version, "kind": kind, "metadata": metadata | fields.pop("metadata", {}), **fields}


def storage(class_name: str, attributes: str = "", **fields: Any) -> Manifest:
    wants = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    wants |= {"volumeAttributesClassName": attributes} if attributes else {}
    return stored("PersistentVolumeClaim", "data", spec={**wants, "storageClassName": class_name}, **fields)


def made(name: str, mode: str = "WaitForFirstConsumer") -> Manifest:
    return stored("StorageClass", name, provisioner="csi.example.com", volumeBindingMode=mode)


def attributes_class(name: str, driver: str = "csi.example.com") -> Manifest:
    return stored("VolumeAttributesClass", name, driverName=driver)


RECREATE = "delete and recreate claim default/data with"
DATA = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
FAILED: Manifest = {
    "apiVersion": "v1",
    "kind": "Event",
    "metadata": {"name": "data.1", "namespace": "default"},
    "involvedObject": {"kind": "PersistentVolumeClaim", "namespace": "default", "name": "data", "uid": "u-data"},
    "reason": "ProvisioningFailed",
    "message": "quota of disks exceeded",
    "type": "Warning",
}
A100 = {f"{GPU}.product": "A100"}
IS_A100 = f"device.attributes['{DRIVER}'].model == 'A100'"
ZONE = "topology.kubernetes.io/zone"
TO_LOADER = {"labelSelector": {"matchLabels": {"app": "loader"}}, "topologyKey": "kubernetes.io/hostname"}
TO_ME = {"labelSelector": {"matchLabels": {"app": "me"}}, "topologyKey": "kubernetes.io/hostname"}
NEXT_TO_LOADER = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TO_LOADER]}}
NEXT_TO_ME = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TO_ME]}}
GVISOR = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "gvisor"},
    "handler": "runsc",
    "scheduling": {"nodeSelector": {"runtime": "gvisor"}},
}
MIG = "nvidia.com/mig-"
UNREADY = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
TWO_DEVICES = {"x.com/a": "2", "x.com/b": "2"}
OF_ETCD = "node-role.kubernetes.io/etcd:NoExecute"
UNINITIALIZED = "node.cloudprovider.kubernetes.io/uninitialized"
KATA = {"runtimeClassName": "kata", "overhead": {"memory": "2Gi"}}
GENERATION = {"matchExpressions": [{"key": "generation", "operator": "Gt", "values": ["3"]}]}
NEWER_THAN_3 = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [GENERATION]}}}
DELETED: dict[str, Any] = {
    "metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["kubernetes.io/pvc-protection"]}
}


NEAR_CACHE = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
        ]
    }
}


@pytest.mark.parametrize(
    ("objects", "cause", "fix"),
    [
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}),
                resized("greedy", "a", "3500m", "1"),
                asking("me", cpu="1"),
            ],
            "the resize of default/greedy on a is Deferred",
            "withdraw the resize of default/greedy: set main to 1 CPU again",
            id="a pending resize",
        ),
        pytest.param(
            [
                node("a", labels={"nvidia.com/gpu-driver-upgrade-state": "upgrade-failed"}, unschedulable=True),
                asking("me"),
            ],
            "1 node is cordoned: the driver upgrade of the NVIDIA GPU operator has failed",
            "repair the driver upgrade of the NVIDIA GPU operator on a, which keeps it cordoned",
            id="a failed driver upgrade",
        ),
        pytest.param(
            [kept_by("weave.works/kured-reboot-in-progress", "2026-01-01T00:00:00Z"), asking("me")],
            "1 node is cordoned: the reboot by kured is in progress",
            "wait for the reboot by kured on a, which uncordons it",
            id="a reboot",
        ),
        *(
            pytest.param(
                [node("a", unschedulable=True), *upgrade, asking("me")],
                f"1 node is cordoned: the upgrade by Plan default/agents {progress}",
                fix,
                id=f"an upgrade of the node, {name}",
            )
            for name, upgrade, progress, fix in (
                ("with its Plan", [PLAN], "is in progress", UPGRADED),
                ("with its pod", [upgrading("Running")], "is in progress", UPGRADED),
                ("with a failed pod", [PLAN, upgrading("Failed")], "has failed", f"repair {OF_PLAN}"),
                ("retried", [upgrading("Failed"), upgrading("Running", "u2")], "is in progress", UPGRADED),
            )
        ),
        *(
            pytest.param(
                [node("a", unschedulable=True), *upgrade, asking("me")],
                "1 node is cordoned",
                "uncordon a",
                id=f"a cordon by hand, {name}",
            )
            for name, upgrade in (
                ("with a complete upgrade", [upgrading("Succeeded")]),
                ("with an upgrade that does not cordon", [{**PLAN, "spec": {"drain": None}}]),
                ("with an upgrade of another node", [{**PLAN, "status": {"applying": ["b"]}}]),
            )
        ),
        pytest.param(
            [node("a", unschedulable=True, taints=[DRAINED]), maintained("a"), asking("me")],
            "1 node is cordoned: the maintenance by the Node Maintenance Operator is in progress: new fan",
            "delete NodeMaintenance fan when a needs no more maintenance",
            id="a node under maintenance",
        ),
        pytest.param(
            [
                node("a", unschedulable=True, taints=[DRAINED]),
                maintained("a", deletionTimestamp=SINCE),
                asking("me"),
            ],
            "1 node is cordoned: the maintenance by the Node Maintenance Operator is in progress: new fan",
            "wait for the maintenance by the Node Maintenance Operator on a, which uncordons it",
            id="a maintenance that ends",
        ),
        pytest.param(
            [node("a", unschedulable=True, taints=[DRAINED]), asking("me")],
            "1 node is cordoned: the maintenance by the Node Maintenance Operator is in progress",
            "delete its NodeMaintenance when a needs no more maintenance",
            id="the taint of a maintenance",
        ),
        pytest.param(
            [kept_by("machineconfiguration.openshift.io/state", "Done"), asking("me")],
            "1 node is cordoned",
            "uncordon a",
            id="a cordon by hand",
        ),
        pytest.param(
            [node("a", allocatable={"nvidia.com/mig-1g.10gb": "7", "pods": "9"}), asking("me", **{GPU: "1"})],
            "the nodes have 7 nvidia.com/mig-1g.10gb on 1 node instead of nvidia.com/gpu",
            "request nvidia.com/mig-1g.10gb instead of nvidia.com/gpu",
            id="partitions",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}),
                asking("low", "a", cpu="3"),
                pod(
                    "me",
                    priority=9,
                    preemptionPolicy="Never",
                    containers=at(asking("me", cpu="2"), "spec")["containers"],
                ),
            ],
            "the pod has preemptionPolicy Never, so that no pod of a lower priority is evicted",
            "add a node like a",
            id="a pod that may not preempt",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}),
                pod("cache", on="a", labels={"app": "cache"}, containers=at(asking("", cpu="3"), "spec")["containers"]),
                pod("me", priority=9, affinity=NEAR_CACHE, containers=at(asking("me", cpu="2"), "spec")["containers"]),
            ],
            "preemption cannot help on a: the pod's podAffinity requires default/cache there",
            "lower requests.cpu of container",
            id="a victim that the pod needs",
        ),
        pytest.param(
            [{**node("a"), "status": UNHEALTHY}, asking("me", **{GPU: "1"})],
            "a: capacity 2 nvidia.com/gpu, allocatable 0; its device plugin reports unhealthy devices",
            "repair the device plugin for nvidia.com/gpu on a",
            id="unhealthy devices",
        ),
        pytest.param(
            [node("a", labels={"kubernetes.io/arch": "amd64"}), asking("me", **{"kubernetes.io/batch-cpu": "1"})],
            "no node lists kubernetes.io/batch-cpu: Koordinator's koord-manager adds it to nodes",
            "add a node with at least 1 kubernetes.io/batch-cpu free",
            id="a resource that is no vendor's",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "9", "pods": "9", "gpu.intel.com/xe": "1"}),
                asking("me", **{"gpu.intel.com/i915": "1"}),
            ],
            "the nodes have 1 gpu.intel.com/xe on 1 node instead of gpu.intel.com/i915",
            "request gpu.intel.com/xe instead of gpu.intel.com/i915",
            id="a device of another kernel driver",
        ),
        pytest.param(
            [node("a", labels=PARTITIONING), asking("me", **{"nvidia.com/mig-1g.10gb": "1"})],
            "the MIG manager has not applied nvidia.com/mig.config=all-1g.10gb on a: state failed",
            "repair the MIG manager on a, which applies nvidia.com/mig.config=all-1g.10gb",
            id="a layout that is not applied",
        ),
        pytest.param(
            [
                {**node("a"), "status": {"capacity": TWO_DEVICES, "allocatable": {"pods": "9"}}},
                pod("x-plugin-1", on="a", status=UNREADY, metadata={"ownerReferences": own_daemon_set("x-plugin")}),
                asking("me", **dict.fromkeys(TWO_DEVICES, "1")),
            ],
            "its device plugin default/x-plugin-1 on a does not run",
            "repair device plugin default/x-plugin-1 on a",
            id="a plugin of two resources that does not run",
        ),
        pytest.param(
            [
                node("a", labels=HARDWARE),
                device_class("gpu", f'device.driver == "{DRIVER}"'),
                claim("mine", request()),
                claiming("mine"),
            ],
            f"no ResourceSlice of driver {DRIVER} exists",
            f"run the DRA driver {DRIVER} on a ({DRIVER}/model=a100), so that it publishes devices",
            id="a driver that does not run",
        ),
        pytest.param(
            [
                *(node(name) for name in ("a", "b", "z")),
                node("gpu", labels=HARDWARE),
                device_class("gpu", f'device.driver == "{DRIVER}"'),
                claim("mine", request()),
                claiming("mine"),
            ],
            f"no ResourceSlice of driver {DRIVER} exists",
            f"run the DRA driver {DRIVER} on gpu ({DRIVER}/model=a100), so that it publishes devices",
            id="a driver that does not run, beside nodes without its hardware",
        ),
        pytest.param(
            [
                node("a"),
                device_class("gpu", f'device.driver == "{DRIVER}"'),
                *(
                    claim("mine", request()),
                    claiming("mine"),
                    resource_slice("a", device("nic"), driver="nic.other.com"),
                ),
                pod(
                    "example-plugin",
                    on="a",
                    metadata={"ownerReferences": [{"kind": "DaemonSet", "name": "example-plugin", "controller": True}]},
                    status=UNREADY,
                ),
            ],
            f"no ResourceSlice of driver {DRIVER} exists",
            f"repair the DRA driver {DRIVER} on a (default/example-plugin), so that it publishes devices",
            id="a driver that crashes beside another that runs",
        ),
        pytest.param(
            [node("a"), storage("", **DELETED), pod("old", on="a", volumes=DATA), pod("me", volumes=DATA), made("x")],
            "claim default/data is being deleted",
            "delete default/old, which still uses claim default/data, and recreate the claim",
            id="a claim that is being deleted and used",
        ),
        pytest.param(
            [node("a"), storage("fats"), made("fast"), made("slow"), pod("me", volumes=DATA)],
            "claim default/data names storage class fats, which does not exist",
            "delete and recreate claim default/data with class fast instead of fats",
            id="a class that is nearly called so",
        ),
        pytest.param(
            [node("a"), storage("premium"), made("slow"), pod("me", volumes=DATA)],
            "claim default/data names storage class premium, which does not exist",
            "delete and recreate claim default/data with class slow instead of premium",
            id="a class that does not exist",
        ),
        pytest.param(
            [node("a"), storage("fast"), made("fast", "Immediate"), FAILED, pod("me", volumes=DATA)],
            "the last event of claim default/data: ProvisioningFailed: quota of disks exceeded",
            "raise the storage quota of csi.example.com, or free capacity there, so that csi.example.com provisions",
            id="a volume that is not provisioned",
        ),
        *(
            pytest.param(
                [
                    node("a"),
                    storage("fast", attributes=name),
                    made("fast", "Immediate"),
                    *others,
                    attributes_class("premium"),
                    pod("me", volumes=DATA),
                ],
                f"VolumeAttributesClass {name} {why}, so that csi.example.com provisions no volume for claim",
                f"{fix}, so that csi.example.com provisions its volume: 1Gi",
                id=f"a VolumeAttributesClass that {why}, {len(name)}",
            )
            for name, others, why, fix in (
                ("premum", [], "does not exist", f"{RECREATE} VolumeAttributesClass premium"),
                ("gold", [FAILED], "does not exist", "create VolumeAttributesClass gold of csi.example.com"),
                (
                    "gold",
                    [attributes_class("gold", "other.example.com")],
                    "is of driver other.example.com",
                    f"{RECREATE} a VolumeAttributesClass of csi.example.com",
                ),
            )
        ),
        pytest.param(
            [
                *(node("a"), csi_driver(storageCapacity=True), capacity("c", "3Gi")),
                *(storage_class("waits", provisioner=DISK), bound_claim("data", storage_class="waits", size="5Gi")),
                pod("me", volumes=DATA),
            ],
            "1 node: not enough storage for claim default/data, which requests 5Gi",
            "free or add storage of class waits, until 5Gi are free",
            id="storage that is used up",
        ),
        pytest.param(
            [
                *(node("a"), csi_driver(storageCapacity=True), capacity("c", "9Gi", maximumVolumeSize="3Gi")),
                *(storage_class("waits", provisioner=DISK), bound_claim("data", storage_class="waits", size="5Gi")),
                pod("me", volumes=DATA),
            ],
            "1 node: not enough storage for claim default/data, which requests 5Gi",
            "make room for one volume of 5Gi in class waits: its maximumVolumeSize is 3Gi",
            id="storage in several parts",
        ),
        pytest.param(
            [
                node("a"),
                *(device_class("gpu"), claim("mine", request()), claiming("mine")),
                resource_slice("a", device("x"), pool={"name": "a", "generation": 2, "resourceSliceCount": 2}),
            ],
            f"driver {DRIVER} has not published all ResourceSlices of pool a: 1 of 2 exist",
            f"repair DRA driver {DRIVER}, so that it publishes all ResourceSlices of pool a",
            id="an incomplete pool",
        ),
        pytest.param(
            [
                node("a"),
                *(device_class("gpu"), claim("mine", request()), claiming("mine")),
                resource_slice("a", device("x", Taints=[{"key": "xid", "value": "79", "effect": "NoSchedule"}])),
            ],
            "1 node has too few free devices for claim default/mine (1 of class gpu), with tainted devices: xid=79",
            f"repair the devices of a that driver {DRIVER} taints xid=79:NoSchedule",
            id="a tainted device",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "4Gi", "hugepages-1Gi": "2Gi", "pods": "9"}),
                asking("me", **{"hugepages-2Mi": "64Mi"}),
            ],
            "the nodes have 2Gi hugepages-1Gi on 1 node instead of hugepages-2Mi",
            "reserve 64Mi of the memory of a as hugepages-2Mi",
            id="huge pages of another size",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "4Gi", "pods": "9"}),
                {**asking("high", cpu="3"), "status": {"phase": "Pending", "nominatedNodeName": "a"}},
                asking("me", cpu="2"),
            ],
            "default/high (priority 0) is nominated to a: it counts there as if it ran",
            "add a node like a",
            id="a nominated pod",
        ),
        pytest.param(
            [node("a", allocatable={"cpu": "4", "memory": "4Gi", "amd.com/gpu": "8"}), asking("me", **{GPU: "1"})],
            f"the nodes have 8 amd.com/gpu on 1 node instead of {GPU}",
            f"add a node with at least 1 {GPU} free",
            id="devices of another vendor",
        ),
        pytest.param(
            [node("a", labels={f"{GPU}.product": "NVIDIA-A100-SXM4-40GB"}), pod("me", nodeSelector=A100)],
            f"1 node does not match {GPU}.product=A100",
            f"select {GPU}.product=NVIDIA-A100-SXM4-40GB instead of {GPU}.product=A100",
            id="a part of a product's name",
        ),
        pytest.param(
            [
                node("a"),
                *(device_class("gpu"), claim("mine", request(select=[IS_A100])), claiming("mine")),
                resource_slice("a", device("x", model="NVIDIA A100 40GB")),
            ],
            "no device of 1 node matches request r of claim default/mine",
            "select NVIDIA A100 40GB instead of A100 in request r of claim default/mine",
            id="a part of a device's name",
        ),
        pytest.param(
            [
                node("a"),
                *(device_class("gpu"), claim("mine", request(device_class="accelerator")), claiming("mine")),
                resource_slice("a", device("x")),
            ],
            "device class accelerator does not exist",
            "delete and recreate resource claim default/mine with class gpu",
            id="a device class that does not exist",
        ),
        pytest.param(
            [
                node("a"),
                *(device_class("tpu.example.org"), claim("mine", request(device_class=DRIVER)), claiming("mine")),
                resource_slice("a", device("x")),
            ],
            f"device class {DRIVER} does not exist",
            f"create device class {DRIVER} for devices of driver {DRIVER}",
            id="a missing device class of a driver that publishes devices",
        ),
        pytest.param(
            [
                node("a", labels={"kubernetes.io/hostname": "a"}),
                {**pod("loader", on="a", labels={"app": "loader"}), "status": {"phase": "Succeeded"}},
                pod("me", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TO_LOADER]}}),
            ],
            "podAffinity term 1 selects default/loader, which has ended and does not count",
            "make podAffinity term 1 (app=loader) preferred instead of required",
            id="affinity to a pod that has ended",
        ),
        pytest.param(
            [
                node("a", labels={ZONE: "a", "pool": "db"}),
                node("b", labels={ZONE: "b", "pool": "web"}),
                *(volume("v", claim_ref="data", node_affinity=in_term(ZONE, "b")), bound_claim("data", volume="v")),
                pod("me", volumes=DATA, nodeSelector={"pool": "db"}),
            ],
            "volume v (zone b) is not accessible from 1 node",
            "add a node in zone b with label pool=db",
            id="no node of the pod's pool in the zone of its volume",
        ),
        pytest.param(
            [node("a"), GVISOR, pod("me", runtimeClassName="gvisor", nodeSelector={"runtime": "gvisor"})],
            "RuntimeClass gvisor selects nodes with its runtime: runtime=gvisor",
            "add a node with label runtime=gvisor",
            id="a runtime that no node has",
        ),
        pytest.param(
            [
                *(node(name, taints=["node-role.kubernetes.io/control-plane:NoSchedule"]) for name in "abc"),
                node("w", allocatable={"cpu": "2", "memory": "4Gi", "pods": "9"}),
                *(asking("other", "w", cpu="1500m"), asking("me", cpu="1")),
            ],
            "1 node lacks 500m CPU",
            "add a node like w",
            id="a full worker beside the control plane",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "pods": "9", f"{MIG}3g.20gb": "2", f"{MIG}1g.5gb": "1"}),
                asking("me", **{f"{MIG}2g.10gb": "1"}),
            ],
            f"the nodes have 2 {MIG}3g.20gb on 1 node, 1 {MIG}1g.5gb on 1 node instead of {MIG}2g.10gb",
            f"request {MIG}3g.20gb instead of {MIG}2g.10gb",
            id="a larger MIG device",
        ),
        pytest.param(
            [
                node("a"),
                pod("loader", labels={"app": "loader"}, affinity=NEXT_TO_ME),
                pod("me", labels={"app": "me"}, affinity=NEXT_TO_LOADER),
            ],
            "podAffinity term 1 selects default/loader, which has no node itself, and requires this pod in turn",
            "make podAffinity term 1 (app=loader) preferred instead of required",
            id="two pods that require each other",
        ),
        pytest.param(
            [
                *(node("a", unschedulable=True), node("b")),
                pod("loader", labels={"app": "loader"}, on="a"),
                pod("me", labels={"app": "me"}, affinity=NEXT_TO_LOADER),
            ],
            "podAffinity term 1 selects only default/loader, on cordoned node a",
            "make podAffinity term 1 (app=loader) preferred instead of required",
            id="a pod to follow on a cordoned node",
        ),
        pytest.param(
            [
                *(node("a"), storage_class("fast", provisioner=DISK, waits=False), volume("other")),
                bound_claim("data", storage_class="fast", volumeName="gone"),
                pod("me", volumes=DATA),
            ],
            "it names volume gone, which does not exist",
            "delete and recreate claim default/data without volumeName gone",
            id="a claim that names a volume that is gone",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "4Gi", "pods": "9"}),
                {**asking("me", memory="3Gi"), "spec": {**at(asking("me", memory="3Gi"), "spec"), **KATA}},
            ],
            "RuntimeClass kata adds 2Gi memory to the requests",
            "add a node with at least 5Gi memory free",
            id="overhead of a RuntimeClass",
        ),
        pytest.param(
            [node("a", labels={"generation": "v3"}), pod("me", affinity=NEWER_THAN_3)],
            "Gt compares integers, and generation is v3: no node can match",
            "stop requiring generation > 3",
            id="a label that is no integer",
        ),
        pytest.param(
            [
                node("a", taints=[f"{UNINITIALIZED}=true:NoSchedule"]),
                pod("me", containers=[{"name": "main", "image": "registry.k8s.io/x-cloud-controller-manager:v1"}]),
            ],
            "a is not initialized by the cloud-controller-manager yet",
            f"tolerate {UNINITIALIZED}=true:NoSchedule",
            id="the component that initializes nodes",
        ),
        pytest.param(
            [
                node("a", labels={CONTROL_PLANE: ""}, taints=["CriticalAddonsOnly=true:NoExecute"]),
                pod("me", nodeSelector={CONTROL_PLANE: ""}),
            ],
            "1 node has the taint CriticalAddonsOnly=true:NoExecute",
            "tolerate CriticalAddonsOnly=true:NoExecute",
            id="a pod for the control plane",
        ),
        pytest.param(
            [
                node("a", taints=[f"{UNINITIALIZED}=true:NoSchedule"]),
                pod("x-cloud-controller-manager-0", namespace="kube-system", on="a", status=UNREADY),
                pod("me"),
            ],
            "a is not initialized by the cloud-controller-manager yet",
            "repair cloud-controller-manager (kube-system/x-cloud-controller-manager-0), so that it initializes a",
            id="nodes without their cloud-controller-manager",
        ),
        pytest.param(
            [
                node("a", taints=[f"{UNINITIALIZED}=true:NoSchedule"]),
                *(pod("x-cloud-controller-manager-0", namespace="kube-system"), pod("me")),
            ],
            "a is not initialized by the cloud-controller-manager yet",
            "find a node for kube-system/x-cloud-controller-manager-0 first, which initializes a",
            id="a cloud-controller-manager that is pending itself",
        ),
        pytest.param(
            [node("a", taints=["node.cluster.x-k8s.io/uninitialized:NoSchedule"]), pod("me")],
            "1 node is not initialized by Cluster API yet",
            "repair Cluster API, so that it initializes a",
            id="nodes that Cluster API has not initialized",
        ),
        pytest.param(
            [node("a", taints=["cni.istio.io/not-ready:NoSchedule"]), pod("me")],
            "1 node has the taint cni.istio.io/not-ready:NoSchedule",
            "repair the agent of cni.istio.io on a, which then removes its taint",
            id="an agent's taint under another name",
        ),
        pytest.param(
            [
                node("a", taints=["ebs.csi.aws.com/agent-not-ready:NoExecute"]),
                pod("ebs-csi-node-me", metadata={"name": "me", "generateName": "ebs-csi-node-"}),
            ],
            "1 node has the taint ebs.csi.aws.com/agent-not-ready:NoExecute",
            "repair the agent of ebs.csi.aws.com on a, which then removes its taint",
            id="an agent's taint",
        ),
        pytest.param(
            [node("a", taints=["node.cilium.io/agent-not-ready:NoSchedule"]), daemon_set("cilium"), pod("me")],
            "1 node has the taint node.cilium.io/agent-not-ready:NoSchedule",
            "tolerate node.cilium.io/agent-not-ready:NoSchedule in DaemonSet default/cilium, which then removes it",
            id="an agent that does not tolerate its own taint",
        ),
        pytest.param(
            [
                node("a", taints=["node.cilium.io/agent-not-ready:NoSchedule"]),
                daemon_set("cilium", nodeSelector={"cni": "cilium"}),
                pod("me"),
            ],
            "1 node has the taint node.cilium.io/agent-not-ready:NoSchedule",
            "repair the agent of node.cilium.io on a, which then removes its taint",
            id="an agent that does not select the node",
        ),
        pytest.param(
            [
                node("a", taints=["node.cilium.io/agent-not-ready:NoSchedule"]),
                daemon_set("cilium"),
                pod("cilium-x", on="a", status=UNREADY, metadata={"ownerReferences": own_daemon_set("cilium")}),
                pod("me"),
            ],
            "1 node has the taint node.cilium.io/agent-not-ready:NoSchedule",
            "repair the agent of node.cilium.io on a (default/cilium-x), which then removes its taint",
            id="an agent that ran before its taint",
        ),
        pytest.param(
            [
                node("a", taints=["node.cilium.io/agent-not-ready:NoSchedule"]),
                pod("cilium-x", on="a", status=RUNNING, metadata={"ownerReferences": own_daemon_set("cilium")}),
                pod("me"),
            ],
            "1 node has the taint node.cilium.io/agent-not-ready:NoSchedule",
            "restart default/cilium-x, which is ready on a and has not removed its taint",
            id="an agent that is ready beside its taint",
        ),
        pytest.param(
            [
                node("a", taints=["node.cilium.io/agent-not-ready:NoSchedule"]),
                pod("dns", on="a", metadata={"namespace": "kube-system"}),
                pod("me"),
            ],
            "1 node has the taint node.cilium.io/agent-not-ready:NoSchedule",
            "install the agent of node.cilium.io, or remove taint node.cilium.io/agent-not-ready from a",
            id="the taint of an agent that is uninstalled",
        ),
        pytest.param(
            [
                node("a", taints=["node.kubernetes.io/network-unavailable:NoSchedule"]),
                pod("calico-x", on="a", status=UNREADY, metadata={"ownerReferences": own_daemon_set("calico")}),
                pod("me"),
            ],
            "a has no network",
            "repair the network of a (default/calico-x)",
            id="an agent of the network that is not ready",
        ),
        pytest.param(
            [
                node("a", taints=[OF_ETCD, "node-role.kubernetes.io/control-plane:NoSchedule"]),
                pod("me", tolerations=[{"key": "node-role.kubernetes.io/control-plane", "operator": "Exists"}]),
            ],
            f"1 node has the taint {OF_ETCD}",
            f"tolerate {OF_ETCD}",
            id="another role of the control plane",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "pods": "1"}, providerID="aws:///a/i-0"),
                *(asking("other", "a"), asking("me")),
            ],
            "1 node runs its maximum number of pods",
            "add a node like a",
            id="as many pods as the node may have",
        ),
    ],
)
def test_cause_and_first_fix(objects: list[Manifest], cause: str, fix: str) -> None:
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    diagnosis = Diagnosis(result.cycle)
    assert any(item.startswith(cause) for item in (*causes(diagnosis), *roots(diagnosis)))
    assert result.fixes[0].title.startswith(fix)
    assert result.fixes[0].certainty == "verified"


def test_room_for_a_project_comes_before_its_node_selector() -> None:
    nodes = [node(name, labels={"env": name}, allocatable={"cpu": "2", "pods": "9"}) for name in ("prod", "dev")]
    me = asking("me", cpu="1")
    me["spec"] = {**at(me, "spec"), "nodeSelector": {"env": "prod"}}
    result = kschedx.explain(
        kschedx.Snapshot.from_objects([*nodes, PROJECT, asking("other", "prod", cpu="2"), me]), "default/me"
    )
    titles = [fix.title for fix in result.fixes]
    assert titles[0] == "add a node like prod"
    assert titles[-1] == "empty annotation openshift.io/node-selector of namespace default, and recreate the pod"


def test_an_emptied_node_selector_of_a_project_is_no_fix_if_another_label_is_missing() -> None:
    me = pod("me", nodeSelector={"env": "prod", "disk": "ssd"})
    result = kschedx.explain(
        kschedx.Snapshot.from_objects([node("a", labels={"env": "dev"}), PROJECT, me]), "default/me"
    )
    assert "node selector env=prod comes from annotation" in " ".join(roots(Diagnosis(result.cycle)))
    assert not any("annotation" in fix.title for fix in result.fixes)


def test_an_event_of_an_earlier_claim_is_not_quoted() -> None:
    other = {**FAILED, "involvedObject": {**at(FAILED, "involvedObject"), "uid": "u-earlier"}}
    objects = [node("a"), storage("fast"), made("fast", "Immediate"), other, pod("me", volumes=DATA)]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert roots(Diagnosis(result.cycle)) == ()


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        (("disk", "pool"), "stop requiring disk=x or pool=x"),
        (("disk", "disk"), "stop requiring disk=x"),
        (("disk", "pool", "rack"), "stop requiring disk=x or another term of the node affinity"),
    ],
)
def test_the_last_of_several_terms_is_dropped_with_the_others(keys: tuple[str, ...], title: str) -> None:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": ["x"]}]} for key in keys]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    snapshot = kschedx.Snapshot.from_objects([node("a"), pod("me", affinity=affinity)])
    assert title in [fix.title for fix in kschedx.explain(snapshot, "default/me").fixes]


@pytest.mark.parametrize(
    ("kind", "spec", "metadata", "is_moved"),
    [
        ("StatefulSet", {}, {}, True),
        ("StatefulSet", {"nodeSelector": {"disk": "local"}}, {}, False),  # it fits nowhere else
        ("StatefulSet", {}, {"deletionTimestamp": "2026-01-01T00:00:00Z"}, False),
        ("TaskRun", {}, {}, False),  # its work would be lost
        ("DaemonSet", {}, {}, False),
    ],
)
def test_a_pod_to_follow_is_recreated_off_a_cordoned_node(
    kind: str, spec: Manifest, metadata: Manifest, *, is_moved: bool
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "loader", "uid": "u", "controller": True}
    owned = {"ownerReferences": [owner], **metadata}
    loader = pod("loader-0", labels={"app": "loader"}, on="a", metadata=owned, spec=spec)
    cordoned = node("a", labels={HOSTNAME: "a", "disk": "local"}, unschedulable=True)
    objects = [cordoned, node("b", labels={HOSTNAME: "b"}), loader, pod("me", affinity=NEXT_TO_LOADER)]
    answer = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    title = "delete default/loader-0: StatefulSet loader recreates it off a, and this pod follows"
    moves = [fix for fix in answer.fixes if fix.title == title]
    assert [(fix.certainty, answer.after_fix(fix).chosen_nodes) for fix in moves] == (
        [(FixCertainty.VERIFIED, ("b",))] if is_moved else []
    )


def test_an_annotation_of_another_use_does_not_keep_a_pod_off_virtual_nodes() -> None:
    virtual = node("v", labels={"type": "virtual-kubelet"})
    me = pod("me", metadata={"annotations": {"type": "web"}}, nodeSelector={"disk": "ssd"})
    for nodes in ([], [virtual]):
        answer = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, me]), "default/me")
        assert not [cause for cause in roots(answer.diagnosis) if "keeps it off" in cause]


# What lies outside the pod and its nodes: the fix comes first, and no trial can show it.

IMAGE = [{"name": "main", "image": "app:1"}]


def loads(**spec: object) -> Manifest:
    """Return the Deployment whose pods `TO_LOADER` selects."""
    template = {"metadata": {"labels": {"app": "loader"}}, "spec": {"containers": IMAGE}}
    metadata = {"name": "loader", "namespace": "default"}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": {"template": template, **spec}}


NEWER = {"creationTimestamp": "2026-01-02T00:00:00Z"}
SELECTOR = {"openshift.io/node-selector": "env=prod"}
PROJECT: Manifest = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "annotations": SELECTOR},
}
PORT = [{"name": "main", "ports": [{"containerPort": 80, "hostPort": 80}]}]


SPARK: Manifest = {
    "apiVersion": "sparkoperator.k8s.io/v1beta2",
    "kind": "SparkApplication",
    "metadata": {"namespace": "default", "name": "etl"},
    "spec": {"driver": {"tolerations": [{"key": "team", "operator": "Exists"}]}, "executor": {"instances": 2}},
}
OF_SPARK = {
    "labels": {"spark-role": "driver"},
    "ownerReferences": [
        {
            "apiVersion": "sparkoperator.k8s.io/v1beta2",
            "kind": "SparkApplication",
            "name": "etl",
            "uid": "s",
            "controller": True,
        }
    ],
}
FARGATE = "eks.amazonaws.com/compute-type"
ITS_NODE = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["a"]}]}
PINNED = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [ITS_NODE]}}}


COMPUTE_CLASS = "cloud.google.com/compute-class"


def compute_class(name: str, **health: str) -> Manifest:
    status = {"conditions": [{"type": "Health", "status": "True", **health}]}
    return {"apiVersion": "cloud.google.com/v1", "kind": "ComputeClass", "metadata": {"name": name}, "status": status}


def registered(name: str, *topology_keys: str) -> Manifest:
    """Return the CSINode of a node, with the driver if it has topology keys."""
    driver = {"name": DISK, "nodeID": name, "topologyKeys": list(topology_keys)}
    return {**csi_node(name), "spec": {"drivers": [driver] if topology_keys else []}}


def in_system(name: str) -> Manifest:
    running = pod(name, on="a")
    at(running, "metadata")["namespace"] = "kube-system"
    return running


def balanced(name: str, service: str, on: str | None = None) -> Manifest:
    """Return a pod of the load balancer of k3s."""
    label = "svccontroller.k3s.cattle.io/svc"
    return pod(name, on=on, labels={f"{label}namespace": "web", f"{label}name": service}, containers=PORT)


@pytest.mark.parametrize(
    ("objects", "cause", "fixes"),
    [
        pytest.param(
            [node("a", labels={"env": "dev"}), PROJECT, pod("me", nodeSelector={"env": "prod"})],
            "node selector env=prod comes from annotation openshift.io/node-selector of namespace default",
            "empty annotation openshift.io/node-selector of namespace default, and recreate the pod",
            id="an OpenShift project",
        ),
        pytest.param(
            [node("a"), balanced("lb", "traefik", "a"), pod("me", containers=PORT)],
            "k3s' load balancer (ServiceLB) uses host port 80 for Service web/traefik",
            "remove port 80 from Service web/traefik, or route through it instead of a host port",
            id="a port of another Service",
        ),
        pytest.param(
            [
                node("a"),
                pod("lb", on="a", labels={"svccontroller.k3s.cattle.io/svcname": "traefik"}, containers=PORT),
                pod("me", containers=PORT),
            ],
            "k3s' load balancer (ServiceLB) uses host port 80 for Service default/traefik",
            "remove port 80 from Service default/traefik, or route through it instead of a host port",
            id="a port of another Service, in early versions",
        ),
        pytest.param(
            [node("a"), balanced("lb", "traefik", "a"), balanced("me", "nginx")],
            "k3s' load balancer (ServiceLB) uses host port 80 for Service web/traefik",
            "change port 80 of Service web/nginx: Service web/traefik has it",
            id="a port of two Services",
        ),
        pytest.param(
            [
                node("a"),
                device_class("gpu", f'device.driver == "{DRIVER}"'),
                claim("mine", request()),
                claiming("mine"),
                in_system("kube-proxy"),
            ],
            f"no ResourceSlice of driver {DRIVER} exists: no driver publishes devices for class gpu",
            f"install or repair DRA driver {DRIVER}, which publishes no devices",
            id="a DRA driver that is not installed",
        ),
        pytest.param(
            [node("a"), pod("other", on="a", containers=PORT), balanced("me", "nginx")],
            "pod default/other uses host port 80, which k3s' load balancer (ServiceLB) needs for Service web/nginx",
            "change port 80 of Service web/nginx: pod default/other has it",
            id="a port that a Service lacks",
        ),
        pytest.param(
            [
                node("a", labels={FARGATE: "fargate"}, allocatable={"cpu": "2", "pods": "1"}),
                asking("app", "a"),
                pod("me", metadata={"ownerReferences": own_daemon_set("agent")}, affinity=PINNED),
            ],
            "a is a node of EKS Fargate, which runs no pods of DaemonSets",
            f"keep DaemonSet agent off nodes of EKS Fargate: require {FARGATE} NotIn [fargate] in its nodeAffinity",
            id="a DaemonSet on Fargate",
        ),
        pytest.param(
            [SPARK, node("a", taints=["team=ml:NoSchedule"]), pod("me", metadata=OF_SPARK)],
            "SparkApplication etl tolerates taint team, but its operator has not passed that on to the pod",
            "enable the webhook of the Spark operator for namespace default, which adds tolerations, and recreate "
            "SparkApplication etl",
            id="a toleration that the Spark operator does not add",
        ),
        pytest.param(
            [FULL, *piled_up(["a", "a", None], mine="me")],
            "CronJob report has 3 active Jobs, with 1 pending pod: it allows concurrent Jobs",
            "set concurrencyPolicy Forbid in CronJob report, and delete the Jobs that are not needed",
            id="Jobs of a CronJob that pile up",
        ),
        pytest.param(
            [pod("me", metadata={"annotations": {FARGATE: "ec2"}})],
            f"its annotation {FARGATE}=ec2 keeps it off EKS Fargate",
            f"remove annotation {FARGATE} from the pod's template, "
            "if a Fargate profile selects namespace default and its labels",
            id="a pod that is kept off EKS Fargate before it has created a node",
        ),
        pytest.param(
            [node("a", labels={FARGATE: "fargate"}, taints=[f"{FARGATE}=fargate:NoSchedule"]), asking("me")],
            "EKS Fargate creates each node for a pod that it selects, and it has not selected this pod",
            "create a Fargate profile that selects namespace default and the pod's labels, and recreate the pod",
            id="no Fargate profile",
        ),
        pytest.param(
            [node("a"), compute_class("perf"), pod("me", nodeSelector={COMPUTE_CLASS: "pref"})],
            "there is no ComputeClass pref (did you mean perf?)",
            f"require {COMPUTE_CLASS}=perf instead of pref",
            id="a ComputeClass that does not exist",
        ),
        pytest.param(
            [
                node("a"),
                compute_class("perf", status="False", reason="NodePoolMissing", message="no pool x"),
                pod("me", nodeSelector={COMPUTE_CLASS: "perf"}),
            ],
            "ComputeClass perf: Health=False (NodePoolMissing): no pool x",
            "correct ComputeClass perf",
            id="a ComputeClass with a problem",
        ),
        pytest.param(
            [
                node("a", labels={FARGATE: "fargate"}, taints=[f"{FARGATE}=fargate:NoSchedule"]),
                pod("me", metadata={"annotations": {FARGATE: "ec2"}}),
            ],
            f"its annotation {FARGATE}=ec2 keeps it off EKS Fargate, which has all nodes",
            f"remove annotation {FARGATE} from the pod's template, "
            "if a Fargate profile selects namespace default and its labels",
            id="kept off Fargate",
        ),
        pytest.param(
            [
                node("a", labels={"csi.example.com/zone": "1"}, allocatable={"pods": "0"}),
                node("b"),
                registered("a", "csi.example.com/zone"),
                registered("b"),
                node("tainted", taints=["other:NoSchedule"]),
                bound_claim("data", volume="v"),
                volume("v", csi=True, node_affinity=in_term("csi.example.com/zone", "1")),
                pod("me", volumes=DATA),
            ],
            f"{DISK} is not registered on b, so that the node has no label csi.example.com/zone",
            f"repair the node plugin of {DISK} on b, which then registers it",
            id="a driver that is not registered",
        ),
        pytest.param(
            [
                node("b"),
                registered("b"),
                {
                    **storage_class("zonal", provisioner=DISK),
                    "allowedTopologies": [
                        {"matchLabelExpressions": [{"key": f"topology.{DISK}/zone", "values": ["1"]}]}
                    ],
                },
                bound_claim("data", storage_class="zonal"),
                pod("me", volumes=DATA),
            ],
            f"{DISK} is not registered on b, so that the node has no label topology.{DISK}/zone",
            f"repair the node plugin of {DISK} on b, which then registers it",
            id="a driver that is not registered, for a new volume",
        ),
        pytest.param(
            [
                node("a"),
                csi_driver(DISK, storageCapacity=True),
                storage_class("new", provisioner=DISK),
                capacity("c", "9Gi", storage_class="old", topology={}),
                bound_claim("data", storage_class="new", size="1Gi"),
                pod("me", volumes=DATA),
            ],
            f"{DISK} publishes no CSIStorageCapacity for class new, which counts as no storage; "
            "it is published for class old",
            f"repair {DISK}, so that it publishes capacity for class new: check the parameters of class new, and the "
            "driver's controller",
            id="capacity that is not published",
        ),
        pytest.param(
            [
                node("a", labels={"node.kubernetes.io/instance-type": "p3.2xlarge"}),
                pod("me", nodeSelector={"nvidia.com/gpu.present": "true"}),
            ],
            "a has the hardware, by instance type, and no node has label nvidia.com/gpu.present: "
            "node-feature-discovery and the vendor's operator set it",
            "install or repair node-feature-discovery and the vendor's operator, which label a",
            id="hardware that no agent labels",
        ),
        pytest.param(
            [
                node("a"),
                pod("me", containers=[{"name": "m", "resources": {"limits": {"topolvm.cybozu.com/capacity": "1"}}}]),
            ],
            "no node ever has topolvm.cybozu.com/capacity: the scheduler extender of TopoLVM counts it",
            "configure the extender of TopoLVM in kube-scheduler, with ignoredByScheduler: true for "
            "topolvm.cybozu.com/capacity",
            id="a resource of a scheduler extender",
        ),
        pytest.param(
            [node("a"), bound_claim("data", storage_class=None), pod("me", volumes=DATA)],
            "no StorageClass is the default, so that nothing provisions a volume for the claim",
            "install a storage driver, with a default StorageClass that the claim then gets",
            id="a cluster without storage",
        ),
        pytest.param(
            [
                {**node("a"), "metadata": {"name": "a", "annotations": {"hami.io/node-nvidia-register": "GPU-1"}}},
                asking("me", **{"nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}),
            ],
            "HAMi counts parts of a device, and no node publishes them: hami-scheduler has to schedule the pod",
            "recreate the pod with schedulerName hami-scheduler: HAMi's webhook, which sets it, was ignored or did not "
            "run",
            id="a part of a device on the default scheduler",
        ),
        pytest.param(
            [
                node("a", labels={"kubernetes.io/hostname": "a.example.com"}),
                bound_claim("data", volume="disk"),
                volume("disk", node_affinity=in_term("kubernetes.io/hostname", "a"), claim_ref="data"),
                pod("me", volumes=DATA),
            ],
            "label kubernetes.io/hostname of node a is a.example.com, not a",
            "recreate volume disk with kubernetes.io/hostname a.example.com in its nodeAffinity",
            id="a local volume with another form of the host name",
        ),
        pytest.param(
            [
                node("ip-10-0-0-7", labels={"kubernetes.io/hostname": "worker-7"}),
                bound_claim("data", volume="disk"),
                volume("disk", node_affinity=in_term("kubernetes.io/hostname", "ip-10-0-0-7"), claim_ref="data"),
                pod("me", volumes=DATA),
            ],
            "label kubernetes.io/hostname of node ip-10-0-0-7 is worker-7, not ip-10-0-0-7",
            "recreate volume disk with kubernetes.io/hostname worker-7 in its nodeAffinity",
            id="a local volume with the node's name instead of its host name",
        ),
        pytest.param(
            [
                node("minikube"),
                bound_claim("data", volume="disk"),
                volume("disk", node_affinity=in_term("kubernetes.io/hostname", "worker-node01"), claim_ref="data"),
                pod("me", volumes=DATA),
            ],
            "node worker-node01 does not exist, and the volume is on its disks",
            "recreate volume disk with the kubernetes.io/hostname of an existing node in its nodeAffinity, if "
            "worker-node01 never was a node",
            id="a volume on a node that does not exist",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"}),
                stored("PriorityClass", "gold", value=900),
                pod("low", on="a", priority=500, containers=at(asking("low", cpu="3"), "spec")["containers"]),
                pod(
                    "me",
                    priority=9,
                    priorityClassName="gold",
                    containers=at(asking("me", cpu="2"), "spec")["containers"],
                    metadata={"ownerReferences": own_daemon_set("agent")},
                ),
            ],
            "the pod keeps priority 9 from its creation: PriorityClass gold has 900 now",
            "delete the pod, which DaemonSet agent creates again with priority 900",
            id="a PriorityClass with a higher value since",
        ),
        pytest.param(
            [
                node("a"),
                *(device_class("tpu.example.org"), claim("mine", request(device_class=DRIVER)), claiming("mine")),
                resource_slice("a", device("x"), driver="tpu.example.org"),
            ],
            f"no driver publishes devices for device class {DRIVER}; drivers with ResourceSlices: tpu.example.org",
            f"install the driver whose devices device class {DRIVER} is for",
            id="a missing device class of a driver that is not installed",
        ),
        pytest.param(
            [node("a"), loads(replicas=0), pod("me", affinity=NEXT_TO_LOADER)],
            "podAffinity term 1 selects the pods of Deployment loader, which is scaled to zero",
            "scale Deployment loader up first: this pod follows its pods",
            id="affinity to a workload that is scaled to zero",
        ),
        pytest.param(
            [node("a"), loads(replicas=2), pod("me", affinity=NEXT_TO_LOADER)],
            "podAffinity term 1 selects the pods of Deployment loader, which has no pods",
            "find out first why Deployment loader has no pods, which this pod follows",
            id="affinity to a workload without pods",
        ),
        pytest.param(
            [
                FULL,
                spark("x", "driver", "a"),
                spark("y", "driver", "a"),
                spark("x", "executor"),
                spark("y", "executor", name="me"),
            ],
            "2 Spark applications wait for each other: their drivers run, and no executor fits",
            "run fewer Spark applications at once: delete some drivers, and let Kueue, Volcano, or YuniKorn start each "
            "as a gang",
            id="Spark drivers without executors",
        ),
        pytest.param(
            [FULL, ray("x", "head", "a"), ray("y", "head", "a"), ray("x", "worker"), ray("y", "worker", name="me")],
            "2 Ray clusters wait for each other: their heads run, and no worker fits",
            "run fewer Ray clusters at once: delete some, and let Kueue, Volcano, or YuniKorn start each as a gang",
            id="Ray heads without workers",
        ),
        pytest.param(
            [FULL, ray("x", "worker", "a"), ray("x", "worker", "a", name="x-2"), ray("x", "head", name="me")],
            "2 workers of Ray cluster x hold room and cannot start without this head",
            "give the head of Ray cluster x a higher priorityClassName than its workers",
            id="a Ray head without room beside its workers",
        ),
        pytest.param(
            [FULL, trained("x", "0", "a"), trained("y", "0", "a"), trained("x", "1"), trained("y", "1", name="me")],
            "2 training jobs wait for each other: none has all its pods",
            "run fewer training jobs at once: delete some, and let Kueue, Volcano, or YuniKorn start each as a gang",
            id="training jobs that hold a part each",
        ),
        pytest.param(
            [
                *(node("a", allocatable={"cpu": "3", "pods": "9"}), trained("z", "0", "a")),
                *(trained("x", "0", "a"), trained("y", "0", "a"), trained("x", "1"), trained("y", "1", name="me")),
            ],
            "2 training jobs hold room and lack pods: training job z has its own, and frees room when it ends",
            "wait until training job z ends, and let Kueue, Volcano, or YuniKorn start each as a gang",
            id="training jobs beside one with all its pods",
        ),
        pytest.param(
            [
                *(FULL, node("b", labels={"other": "pods"}, allocatable={"cpu": "500m", "pods": "9"})),
                *(trained("x", "0", "a"), trained("y", "0", "a"), trained("x", "1"), trained("y", "1", name="me")),
                {**asking("", "b", cpu="500m"), "metadata": trained("z", "0")["metadata"]},
            ],
            "2 training jobs wait for each other: none has all its pods",
            "run fewer training jobs at once: delete some, and let Kueue, Volcano, or YuniKorn start each as a gang",
            id="training jobs beside one whose room is too small",
        ),
        pytest.param(
            [FULL, served("0", "0", "a"), served("1", "0", "a"), served("1", "1"), served("0", "1", name="me")],
            "2 groups of LeaderWorkerSet vllm wait for each other: none has all its pods",
            "scale LeaderWorkerSet vllm to 1: the room of all its groups suffices for that",
            id="groups of a LeaderWorkerSet",
        ),
        pytest.param(
            [node("a", labels={POOL: "p"}), follower("")],
            f'JobSet tpu (exclusive topology) set {POOL}="": the node of the pod\'s leader did not exist',
            f"delete the pod, which is recreated with the {POOL} of its leader's node",
            id="a follower of a leader whose node was gone",
        ),
        pytest.param(
            [
                node("a", labels=PARTITIONED, allocatable={"pods": "9", "nvidia.com/mig-1g.10gb": "7"}),
                asking("me", **{"nvidia.com/mig-3g.40gb": "1"}),
            ],
            "the nodes have 7 nvidia.com/mig-1g.10gb on 1 node instead of nvidia.com/mig-3g.40gb",
            "choose a MIG layout with mig-3g.40gb for a: label nvidia.com/mig.config (now all-1g.10gb)",
            id="a MIG profile that the layout lacks",
        ),
        pytest.param(
            [node("b"), pod("me", affinity=PINNED, metadata={"ownerReferences": own_daemon_set("agent")})],
            "node a does not exist, and DaemonSet agent created the pod for it",
            "restore node a; if it is gone for good, DaemonSet agent deletes the pod",
            id="a DaemonSet's pod for a node that is gone",
        ),
    ],
)
def test_cause_of_another_object_and_first_fix(objects: list[Manifest], cause: str, fixes: str) -> None:
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert roots(Diagnosis(result.cycle)) == (cause,)
    assert (result.fixes[0].title, result.fixes[0].certainty) == (fixes, "untried")


@pytest.mark.parametrize(
    ("allocatable", "pages", "cause"),
    [
        ("1Gi", "0", "a: its kubelet reserves 15Gi of 16Gi memory"),
        ("3Gi", "12Gi", "a: huge pages take 12Gi of 16Gi memory"),
        ("9Gi", "0", ""),
    ],
)
def test_a_node_that_reserves_most_of_its_memory(allocatable: str, pages: str, cause: str) -> None:
    machine = node("a", allocatable={"cpu": "4", "memory": allocatable, "pods": "9"})
    capacity = {"cpu": "4", "memory": "16Gi", "hugepages-2Mi": pages}
    machine = {**machine, "status": {**at(machine, "status"), "capacity": capacity}}
    wants = [{"name": "m", "resources": {"requests": {"memory": "10Gi"}}}]
    result = kschedx.explain(kschedx.Snapshot.from_objects([machine, pod("me", containers=wants)]), "default/me")
    assert roots(Diagnosis(result.cycle)) == ((cause,) if cause else ())


@pytest.mark.parametrize("limit", [2, 1])
def test_attachments_that_no_pod_uses_are_removed_if_that_is_enough(limit: int) -> None:
    used, running = (bound_claim(name, volume=f"pv-{name}") for name in ("data", "other"))
    volumes = [volume(f"pv-{name}", claim_ref=name, csi=True) for name in ("data", "other", "old")]
    theirs = pod("theirs", on="a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "other"}}])
    objects = [node("a"), csi_node("a", limit=limit), attachment("x", "pv-old", "a"), used, running, *volumes, theirs]
    result = kschedx.explain(kschedx.Snapshot.from_objects([*objects, pod("me", volumes=DATA)]), "default/me")
    assert roots(Diagnosis(result.cycle)) == ("1 of 2 volumes attached to a has no pod there: pv-old",)
    repair = f"repair the attacher of {DISK}, which leaves pv-old attached without a pod"
    assert (result.fixes[0].title == repair) is (limit == 2)


def test_an_instance_type_does_not_show_the_model_of_its_hardware() -> None:
    machine = node("a", labels={"node.kubernetes.io/instance-type": "p3.2xlarge"})
    me = pod("me", nodeSelector={"nvidia.com/gpu.product": "NVIDIA-A100"})
    result = kschedx.explain(kschedx.Snapshot.from_objects([machine, me]), "default/me")
    assert not roots(Diagnosis(result.cycle))


@pytest.mark.parametrize("has_volume", [False, True])
def test_a_class_without_a_provisioner_and_without_volumes_is_a_cause(*, has_volume: bool) -> None:
    static = storage_class("local", provisioner="kubernetes.io/no-provisioner")
    small = [volume("v", size="1Mi", storage_class="local")] if has_volume else []
    objects = [node("a"), static, *small, bound_claim("data", storage_class="local"), pod("me", volumes=DATA)]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    cause = "class local has no provisioner, and no volume has this class"
    assert (cause in roots(Diagnosis(result.cycle))) is not has_volume


@pytest.mark.parametrize(
    ("names", "first"),
    [(["tpu-dra-plugin"], []), ([], [f"install or repair DRA driver {DRIVER}, which publishes no devices"])],
)
def test_a_dra_driver_that_may_be_installed_gets_a_node(names: list[str], first: list[str]) -> None:
    """Its pods may have another name than its vendor's, or be in a namespace that was not read."""
    wanted = [device_class("gpu", f'device.driver == "{DRIVER}"'), claim("mine", request()), claiming("mine")]
    objects = [node("a"), *wanted, *map(in_system, names)]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert [fix.title for fix in result.fixes] == [*first, f"add a node with 1 device of {DRIVER}"]


MEMBER: Manifest = {OF_JOB_SET: "js"}
LEADER = {**asking("", cpu="1"), "metadata": {"name": "me", "labels": MEMBER}}


def refused_workers(parallelism: int, labels: Manifest = MEMBER) -> list[Manifest]:
    """Return a Job whose pods have these labels, and the event that its controller cannot create them."""
    spec = {"parallelism": parallelism, "template": {"metadata": {"labels": labels}, "spec": {"containers": IMAGE}}}
    named: Manifest = {"kind": "Job", "name": "workers", "namespace": "default"}
    return [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "workers", "namespace": "default"},
            "spec": spec,
        },
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": "default"},
            "involvedObject": named,
            "reason": "FailedCreate",
            "message": 'Error creating: pods "workers-x" is forbidden: exceeded quota: q',
        },
    ]


@pytest.mark.parametrize(
    "workers",
    [refused_workers(0), refused_workers(2, {OF_JOB_SET: "other"})],
    ids=["none is missing", "of another JobSet"],
)
def test_refused_pods_of_others_are_no_cause(workers: list[Manifest]) -> None:
    full = [FULL, trained("other", "0", "a"), trained("other", "1", "a")]
    result = kschedx.explain(kschedx.Snapshot.from_objects([*full, *workers, LEADER]), "default/me")
    assert not roots(Diagnosis(result.cycle))


def test_a_label_that_a_pod_avoids_is_not_missed() -> None:
    rules = [
        {"key": "kubernetes.io/os", "operator": "NotIn", "values": ["linux"]},
        {"key": "zone", "operator": "In", "values": ["x"]},
    ]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": rules}]}}
    avoiding = pod("me", affinity={"nodeAffinity": required})
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), avoiding]), "default/me")
    assert not roots(Diagnosis(result.cycle))


ROLE = "node-role.kubernetes.io/control-plane"


@pytest.mark.parametrize(
    ("objects", "cause"),
    [
        pytest.param(
            [
                node("a", taints=[f"{ROLE}:NoSchedule"], labels={ROLE: ""}),
                pod("me", nodeSelector={ROLE: ""}, tolerations=[{"key": "node-role.kubernetes.io/master"}]),
            ],
            f"the pod tolerates node-role.kubernetes.io/master, a former name of taint {ROLE}",
            id="a toleration of a taint that has another name now",
        ),
        pytest.param(
            [node("a"), pod("me", nodeSelector={"kubernetes.io/os": "linux"})],
            "a lacks label kubernetes.io/os, which the kubelet sets when it starts",
            id="a label that the kubelet sets",
        ),
        pytest.param(
            [
                node("a", labels={"kubevirt.io/schedulable": "false"}),
                pod("me", nodeSelector={"kubevirt.io/schedulable": "true"}),
            ],
            "a lacks label kubevirt.io/schedulable=true, which virt-handler sets while it runs on a node",
            id="a label that KubeVirt's agent sets to another value",
        ),
        pytest.param(
            [node("a"), pod("me", nodeSelector={"feature.node.kubernetes.io/pci-10de.present": "true"})],
            "node-feature-discovery sets label feature.node.kubernetes.io/pci-10de.present, and no node has any of its "
            "labels",
            id="a label of an agent that has labeled no node",
        ),
        pytest.param(
            [node("a"), asking("me", **{"smarter-devices/video0": "1"})],
            "no node lists smarter-devices/video0: smarter-device-manager registers it on nodes with a device that its "
            "ConfigMap names",
            id="a resource that no node lists",
        ),
        pytest.param(
            [node("a"), asking("me", **{"nvidia.com/gpumem": "3000"})],
            "no node lists nvidia.com/gpumem: only HAMi's scheduler counts it, on nodes with HAMi's device plugin",
            id="a part of a device that only a scheduler of its own counts",
        ),
        pytest.param(
            [
                node("a", allocatable={"cpu": "4", "pods": "9", "vpc.amazonaws.com/pod-eni": "0"}),
                asking("me", **{"vpc.amazonaws.com/pod-eni": "1"}),
            ],
            "a: 0 vpc.amazonaws.com/pod-eni in capacity and allocatable; EKS adds it to Nitro instances if aws-node "
            "has ENABLE_POD_ENI=true",
            id="a resource that a node lists without any",
        ),
        pytest.param(
            [FULL, trained("other", "0", "a"), trained("other", "1", "a"), *refused_workers(2), LEADER],
            "Job workers cannot create 2 pods of the same JobSet: exceeded quota: q",
            id="followers that the quota refuses",
        ),
    ],
)
def test_cause_without_another_object(objects: list[Manifest], cause: str) -> None:
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert roots(Diagnosis(result.cycle)) == (cause,)


SPARK, RAY, TRAINED = spark("y", "executor", name="me"), ray("y", "worker", name="me"), trained("y", "1", name="me")


@pytest.mark.parametrize(
    ("others", "me"),
    [
        ([spark("y", "driver", "a")], SPARK),
        (
            [
                spark("y", "driver", "a"),
                spark("z", "driver", "a"),
                spark("z", "executor", "a"),
                spark("z", "executor", name="w"),
            ],
            SPARK,
        ),
        ([ray("y", "head", "a"), ray("z", "head", "a"), ray("z", "worker", "a"), ray("z", "worker", name="w")], RAY),
        ([trained("y", "0", "a"), trained("z", "0", "a"), trained("z", "1", "a")], TRAINED),
        ([trained("y", "0", "a"), trained("z", "0"), trained("z", "1")], TRAINED),
        ([ray("z", "worker", "a"), ray("y", "worker", name="w")], ray("y", "head", name="me")),
    ],
    ids=[
        "one application",
        "an application with an executor",
        "a Ray cluster with a worker",
        "a whole training job",
        "a training job without a pod",
        "workers of another Ray cluster",
    ],
)
def test_one_waiting_group_is_no_deadlock(others: list[Manifest], me: Manifest) -> None:
    full = node("a", allocatable={"cpu": str(sum("nodeName" in at(item, "spec") for item in others)), "pods": "9"})
    snapshot = kschedx.Snapshot.from_objects([full, *others, me])
    assert not roots(Diagnosis(kschedx.explain(snapshot, "default/me").cycle))


def test_the_selector_of_a_project_is_added_to_new_pods_and_not_dropped() -> None:
    cluster = kschedx.Snapshot.from_objects(
        [node("a", labels={"env": "dev"}), node("b", labels={"env": "prod"}), PROJECT]
    )
    assert kschedx.explain(cluster, pod("me", containers=IMAGE)).best_nodes == ("b",)
    with pytest.raises(InputError, match="conflicts with its project node label selector"):
        kschedx.explain(cluster, pod("me", containers=IMAGE, nodeSelector={"env": "dev"}))
    without = kschedx.Snapshot.from_objects([node("a", labels={"env": "dev"}), PROJECT])
    assert not any(
        item.title.startswith("stop requiring") for item in kschedx.explain(without, pod("me", containers=IMAGE)).fixes
    )


@pytest.mark.parametrize(
    ("runtime", "affinity"),
    [
        pytest.param("kata", {}, id="a label with a near value"),
        pytest.param("kata", {"key": "sandbox", "operator": "NotIn", "values": ["kata-qemu"]}, id="a contradiction"),
        pytest.param("gone", {}, id="a RuntimeClass that the dump lacks"),
    ],
)
def test_fields_of_a_runtime_class_are_not_changed(runtime: str, affinity: Manifest) -> None:
    scheduling = {"nodeSelector": {"sandbox": "kata-qemu"}}
    kata = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}, "handler": "kata"}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [affinity]}]}
    rules = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    selector = {"sandbox": "kata-qemu"}
    own = {"affinity": rules} if affinity else {}
    me = pod("me", spec={"containers": IMAGE, "nodeSelector": selector, "runtimeClassName": runtime, **own})
    near = node("a", labels={"sandbox": "kata-qemv"})
    result = kschedx.explain(
        kschedx.Snapshot.from_objects([near, {**kata, "scheduling": scheduling}, me]), "default/me"
    )
    assert not any("kata-qemv" in item.title or "stop requiring sandbox=" in item.title for item in result.fixes)
    assert result.fixes[0].certainty == "verified"


def test_the_default_node_selector_of_openshift_is_named_and_not_dropped() -> None:
    config = {"apiVersion": "config.openshift.io/v1", "kind": "Scheduler", "metadata": {"name": "cluster"}}
    default = {**config, "spec": {"defaultNodeSelector": "type=user"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}
    cluster = kschedx.Snapshot.from_objects([node("a"), default, namespace])
    result = kschedx.explain(cluster, pod("me", containers=IMAGE))
    assert roots(Diagnosis(result.cycle)) == (
        "node selector type=user is spec.defaultNodeSelector of OpenShift's Scheduler cluster",
    )
    first, *others = result.fixes
    assert first.commands == ("kubectl annotate namespace default openshift.io/node-selector= --overwrite",)
    assert not any(item.title.startswith("stop requiring") for item in others)


@pytest.mark.parametrize(("priority", "is_taken"), [(8, False), (9, True)])
def test_a_nominated_node_that_another_pod_uses(priority: int, is_taken: bool) -> None:
    """A newer pod of the same or a higher priority uses the room; one of a lower priority can be evicted."""
    taker = asking("taker", "a", cpu="3")
    taker = {**taker, "metadata": at(taker, "metadata") | NEWER, "spec": at(taker, "spec") | {"priority": priority}}
    me = asking("me", cpu="2")
    created = at(me, "metadata") | {"creationTimestamp": "2026-01-01T00:00:00Z"}
    me = {**me, "metadata": created, "spec": at(me, "spec") | {"priority": 9}, "status": {"nominatedNodeName": "a"}}
    small = node("a", allocatable={"cpu": "4", "memory": "1Gi", "pods": "9"})
    result = roots(Diagnosis(kschedx.explain(kschedx.Snapshot.from_objects([small, taker, me]), "default/me").cycle))
    assert result == (("nominated node a was taken: default/taker (priority 9) runs there and is newer",) * is_taken)


@pytest.mark.parametrize(("user", "is_offered"), [("", True), ("a", False)])
def test_an_unused_bound_claim_is_proposed(user: str, is_offered: bool) -> None:
    kept = volume("kept", size="20Gi", storage_class="static", claim_ref="old")
    others = [bound_claim("old", storage_class="static", volume="kept"), storage("static")]
    static = stored("StorageClass", "static", provisioner="kubernetes.io/no-provisioner")
    static["volumeBindingMode"] = "WaitForFirstConsumer"
    using = [{"name": "data", "persistentVolumeClaim": {"claimName": "old"}}]
    users = [pod("user", on=user, volumes=using)] if user else []
    objects = [node("a"), static, kept, *others, *users, pod("me", volumes=DATA)]
    titles = [item.title for item in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]
    texts = "use claim old instead of data, which is bound to kept and used by no pod"
    assert (titles[0] == texts) is is_offered
    assert (texts in titles) is is_offered


def csi_of(name: str, *topology_keys: str) -> Manifest:
    driver = {"name": "csi.example.com", "nodeID": name, "topologyKeys": [*topology_keys]}
    metadata = {"name": name}
    return {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": metadata, "spec": {"drivers": [driver]}}


EXISTING: Manifest = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "old"},
    "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "fast"},
}
_PROVISIONS = "csi.example.com provisions the volume of claim default/me-data"
IN_ZONE: Manifest = {
    "required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["z"]}]}]}
}


@pytest.mark.parametrize(
    ("objects", "outcome", "text"),
    [
        pytest.param([csi_of("a")], "Scheduled", "", id="no topology"),
        pytest.param([csi_of("a", ZONE)], "Scheduled", "", id="one zone"),
        pytest.param([csi_of("a", "unlabeled")], "Undecided", f"where {_PROVISIONS} is not known", id="no label"),
        pytest.param(
            [csi_of("a", ZONE), node("b", labels={ZONE: "y"}), csi_of("b", ZONE)],
            "Scheduled",
            f"{_PROVISIONS} first, in zone z or zone y, and so decides the node",
            id="two zones",
        ),
        pytest.param(
            [csi_of("a", ZONE), node("b", labels={ZONE: "y"}, unschedulable=True), csi_of("b", ZONE)],
            "Undecided",
            "csi.example.com may provision the volume of claim default/me-data in zone y, where no node fits",
            id="a full zone",
        ),
        pytest.param([], "Undecided", f"where {_PROVISIONS} is not known", id="unknown"),
        pytest.param([EXISTING], "Scheduled", "", id="volumes show it"),
        pytest.param(
            [{**EXISTING, "spec": {**at(EXISTING, "spec"), "nodeAffinity": IN_ZONE}}],
            "Undecided",
            f"where {_PROVISIONS} is not known",
            id="volumes of a zone",
        ),
        pytest.param(
            [csi_of("a"), {**storage("fast"), "metadata": {"name": "waiting", "namespace": "default"}}],
            "Unschedulable",
            "claim default/me-data is new, and another claim of class fast waits for its volume",
            id="another claim waits",
        ),
    ],
)
def test_a_pod_with_a_new_claim_is_decided_for_each_place_of_its_volume(
    objects: list[Manifest], outcome: str, text: str
) -> None:
    cluster = kschedx.Snapshot.from_objects([node("a", labels={ZONE: "z"}), made("fast", "Immediate"), *objects])
    template = {"metadata": {"name": "data"}, "spec": at(storage("fast"), "spec")}
    volumes = [{"name": "data", "ephemeral": {"volumeClaimTemplate": template}}]
    result = kschedx.explain(cluster, pod("me", containers=IMAGE, volumes=volumes))
    assert (result.outcome, text in " ".join(str(result).split())) == (outcome, True)
    assert ("WaitForFirstConsumer, the volume follows the pod" in str(result)) is ("where no node fits" in text)
    assert not any("repair" in item.title for item in result.fixes)


def test_an_exclusive_topology_is_named_and_no_leader_of_the_same_job_set_is_deleted() -> None:
    nodes = [node(name, labels={POOL: name}, providerID=f"gce://p/z/{name}") for name in ("a", "b")]
    objects = [*nodes, leader("0", "a"), leader("1", "b"), leader("2", name="me")]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    named = f"JobSet tpu has an exclusive topology: each Job needs a {POOL} of its own"
    assert roots(Diagnosis(result.cycle)) == (named,)
    assert result.fixes[0].title.startswith(f"add a node with a new value of label {POOL}")
    assert not any(change.delete for fix in result.fixes for change in fix.changes)


@pytest.mark.parametrize(
    ("offered", "is_named"), [("nvidia.com/gpu.shared", False), ("nvidia.com/mig-1g.5gb", False), ("x.com/y", True)]
)
def test_a_plugin_that_offers_shares_of_its_devices_is_not_called_down(offered: str, is_named: bool) -> None:
    objects = [node("a", allocatable={"pods": "9", GPU: "0", offered: "4"}), asking("me", **{GPU: "1"})]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    text = "a: 0 nvidia.com/gpu in capacity and allocatable; its device plugin finds no device, or does not run"
    assert (text in roots(Diagnosis(result.cycle))) is is_named
    check = f"check why the device plugin finds no {GPU} on a: its log, its configuration"
    assert (check in [fix.title for fix in result.fixes]) is is_named


def test_a_node_name_written_by_hand_is_removed_before_other_pods_move() -> None:
    size = {"cpu": "4", "memory": "8Gi", "pods": "9"}
    large = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "3"}}}]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
    running = pod("web-1", on="a", containers=large, metadata={"ownerReferences": [owner]})
    objects = [*(node(name, allocatable=size) for name in "ab"), running]
    pinned = pod("me", containers=large, nodeName="a")
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), pinned)
    assert [fix.title for fix in result.fixes][:2] == ["remove spec.nodeName a", "move default/web-1 from a to b"]


@pytest.mark.parametrize("more", ["", ': resourceclaimtemplate.resource.k8s.io "one-gpus"'])
@pytest.mark.parametrize(
    ("known", "fix"),
    [
        ("one-gpu", "use ResourceClaimTemplate one-gpu instead of one-gpus, and recreate the pod"),
        ("other", "create ResourceClaimTemplate one-gpus in namespace default"),
    ],
)
def test_a_claim_template_that_does_not_exist(known: str, fix: str, more: str) -> None:
    event = {
        **FAILED,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "me"},
        "reason": "FailedResourceClaimCreation",
        "message": f'PodResourceClaim gpu: resource claim template "one-gpus"{more} not found',
    }
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": known},
        "spec": {"spec": {"devices": {"requests": [request()]}}},
    }
    waiting = pod("me", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpus"}])
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), template, event, waiting]), "default/me")
    assert (result.fixes[0].title, result.fixes[0].certainty) == (fix, "untried")


def test_a_quota_may_refuse_a_claim_of_a_template() -> None:
    used = "requested: count/resourceclaims.resource.k8s.io=1, used: 4, limited: 4"
    event = {
        **FAILED,
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "me"},
        "reason": "FailedResourceClaimCreation",
        "message": f"PodResourceClaim gpu: failed to create ResourceClaim: exceeded quota: gpus, {used}",
    }
    waiting = pod("me", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}])
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), event, waiting]), "default/me")
    assert result.fixes[0].title == "raise ResourceQuota gpus, or delete claims that it counts"


def test_a_misspelled_device_class_needs_no_other_driver() -> None:
    objects = [
        *(node("a"), device_class("gpu.nvidia.com"), resource_slice("a", device("x"), driver="gpu.nvidia.com")),
        *(claim("mine", request(device_class="gpu.nvidia.io")), claiming("mine")),
    ]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert "with class gpu.nvidia.com" in result.fixes[0].title


# Earlier pods of the same controller that kube-scheduler preempted.


def preempted(victim: str, by: str = "batch", message: str = "Preempted by pod u-batch on node a") -> Manifest:
    """Return kube-scheduler's event about a victim."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{victim}.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": victim, "uid": f"u-{victim}"},
        "related": {"kind": "Pod", "namespace": "default", "name": by} if by else None,
        "reason": "Preempted",
        "message": message,
    }


def controlled(kind: str, name: str) -> Manifest:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "u", "controller": True}
    return {**asking("me", cpu="1"), "metadata": {"name": "me", "uid": "u-me", "ownerReferences": [reference]}}


@pytest.mark.parametrize(
    ("owner", "victims", "cause"),
    [
        (("ReplicaSet", "web-1"), ["web-1-x", "web-1-y"], "earlier pods of ReplicaSet web-1 were preempted 2 times"),
        (("ReplicaSet", "web-1"), ["web-2-x", "web-1", "web-1-x-y"], ""),
        (("StatefulSet", "db"), ["db-0", "db-x"], "earlier pods of StatefulSet db were preempted once"),
        (("Job", "load"), ["load-x", "load-3-x", "load-a-x"], "earlier pods of Job load were preempted 2 times"),
        (("Job", "load"), ["me"], ""),
    ],
)
def test_earlier_pods_that_were_preempted(owner: tuple[str, str], victims: list[str], cause: str) -> None:
    batch = pod("batch", on="a", priority=1000, containers=at(asking("", cpu="2"), "spec")["containers"])
    events = [preempted(name) for name in victims]
    objects = [FULL, batch, *events, controlled(*owner)]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    expected = (f"{cause} by default/batch (priority 1000)",) if cause else ()
    assert roots(Diagnosis(result.cycle)) == expected


@pytest.mark.parametrize("is_named", [True, False])
def test_a_profile_that_does_not_preempt(*, is_named: bool) -> None:
    me = pod("me", priority=9, containers=at(asking("me", cpu="2"), "spec")["containers"])
    cluster = kschedx.Snapshot.from_objects([FULL, asking("low", "a", cpu="1"), me])
    off = [{"name": "DefaultPreemption"}] if is_named else []
    config = only("NodeResourcesFit") | {"profiles": [{"plugins": {"postFilter": {"disabled": off}}}]}
    explanation = kschedx.explain(cluster, "default/me", config=config)
    named = "profile default-scheduler disables DefaultPreemption, so that no pod of a lower priority is evicted"
    assert (named in roots(explanation.diagnosis)) is is_named


def test_the_message_of_an_old_event_names_the_preemptor() -> None:
    batch = pod("batch", on="a", priority=1000, containers=at(asking("", cpu="2"), "spec")["containers"])
    event = preempted("web-1-x", by="", message="Preempted by default/batch on node a")
    objects = [FULL, batch, event, controlled("ReplicaSet", "web-1")]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert roots(Diagnosis(result.cycle))[0].endswith("were preempted once by default/batch (priority 1000)")


@pytest.mark.parametrize(("is_preempted", "is_offered"), [(True, True), (False, False)])
def test_a_priority_class_ends_repeated_preemption(is_preempted: bool, is_offered: bool) -> None:
    batch = pod("batch", on="a", priority=1000, containers=at(asking("", cpu="2"), "spec")["containers"])
    classes = [stored("PriorityClass", f"at-{value}", value=value) for value in (1000, 2000)]
    events = [preempted("web-1-x")] if is_preempted else []
    objects = [FULL, batch, *classes, *events, controlled("ReplicaSet", "web-1")]
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    titles = [fix.title for fix in result.fixes if fix.title.startswith("set priorityClassName: at-2000")]
    assert bool(titles) is is_offered
    assert not any("at-1000" in fix.title for fix in result.fixes)


@pytest.mark.parametrize("policy", ["Never", "PreemptLowerPriority"])
@pytest.mark.parametrize("least", [1000, 2000])
def test_a_pod_that_may_not_preempt_gets_a_class_that_may(policy: str, least: int) -> None:
    batch = pod("batch", on="a", containers=at(asking("", cpu="2"), "spec")["containers"])
    classes = [stored("PriorityClass", f"at-{value}", value=value) for value in (500, least)]
    wants = asking("me", cpu="2")
    at(wants, "spec").update({"priority": 1000, "preemptionPolicy": policy})
    result = kschedx.explain(kschedx.Snapshot.from_objects([FULL, batch, *classes, wants]), "default/me")
    offered = [fix.title.partition(",")[0] for fix in result.fixes if "priorityClassName" in fix.title]
    assert offered == ([f"set priorityClassName: at-{least}"] if policy == "Never" else [])


@pytest.mark.parametrize(
    ("label", "value", "kind", "is_offered"),
    [
        ("nvidia.com/gpu.present", "true", "DaemonSet", False),
        ("nvidia.com/gpu.present", "false", "DaemonSet", True),
        ("nvidia.com/gpu.present", "true", "ReplicaSet", True),
        ("team", "true", "DaemonSet", True),
    ],
)
def test_an_agent_for_hardware_keeps_to_its_nodes(label: str, value: str, kind: str, is_offered: bool) -> None:
    """Other nodes have the label, and reject the pod for another reason."""
    agent = controlled(kind, "agent")
    agent["spec"] = {**at(agent, "spec"), "nodeSelector": {label: "true"}}
    nodes = [FULL, node("b", labels={label: value}, taints=["dedicated=x:NoSchedule"], allocatable={"pods": "9"})]
    result = kschedx.explain(kschedx.Snapshot.from_objects([*nodes, agent]), "default/me")
    assert any(fix.title.startswith(f"stop requiring {label}=true") for fix in result.fixes) is is_offered


def plugin_of(name: str, on: str | None = None, **spec: Any) -> Manifest:
    """Return a pod of NVIDIA's device plugin, which crashes."""
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "nvidia-device-plugin", "uid": "u"}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "no NVML"}}
    status = {"phase": "Running", "containerStatuses": [{"name": "main", "state": waiting}]}
    metadata = {"ownerReferences": [{**owner, "controller": True}], "namespace": "kube-system"}
    return pod(name, on=on, metadata=metadata, status=status, **spec)


def test_a_device_plugin_that_runs_nowhere_is_named_without_known_hardware() -> None:
    room = {"cpu": "8", "pods": "9"}
    plugin, me = plugin_of("nvidia-device-plugin-x", "a"), asking("me", **{GPU: "1"})
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a", allocatable=room), plugin, me]), "default/me")
    why = "device plugin kube-system/nvidia-device-plugin-x on a does not run: CrashLoopBackOff: no NVML"
    assert roots(Diagnosis(result.cycle)) == (why,)
    assert result.fixes[0].title == "repair kube-system/nvidia-device-plugin-x, if a has the device"
    other = node("b", allocatable={**room, GPU: "0"})
    result = kschedx.explain(kschedx.Snapshot.from_objects([node("a"), other, plugin, me]), "default/me")
    assert why not in roots(Diagnosis(result.cycle))


@pytest.mark.parametrize("groups", [[], [autoscaler_status("autoscalerStatus: Running")]])
def test_a_pod_kept_off_fargate_needs_a_node_first_if_there_are_node_groups(groups: list[Manifest]) -> None:
    fargate = node("a", labels={FARGATE: "fargate"}, taints=[f"{FARGATE}=fargate:NoSchedule"])
    me = pod("me", metadata={"annotations": {FARGATE: "ec2"}})
    result = kschedx.explain(kschedx.Snapshot.from_objects([fargate, me, *groups]), "default/me")
    positions = [fix.title.startswith(f"remove annotation {FARGATE}") for fix in result.fixes]
    assert positions == [not groups, bool(groups)]


@pytest.mark.parametrize(
    ("ended", "why"),
    [
        ({}, "CrashLoopBackOff: no NVML"),
        ({"exitCode": 137, "reason": "OOMKilled"}, "CrashLoopBackOff: OOMKilled, exit code 137"),
        ({"exitCode": 2}, "CrashLoopBackOff: exit code 2"),
        ({"exitCode": 1, "reason": "Error", "message": "no such file"}, "CrashLoopBackOff: no such file"),
    ],
)
@pytest.mark.parametrize("name", ["example-csi-node-x", "other-csi-node-x", "example-cni-x"])
def test_a_node_plugin_that_does_not_run_is_named_with_its_own_cause(ended: Manifest, why: str, name: str) -> None:
    key, agent = "csi.example.com/zone", plugin_of(name, "b")
    containers: Any = at(agent, "status.containerStatuses")
    containers[0]["lastState"] = {"terminated": ended}
    disk = volume("v", csi=True, node_affinity=in_term(key, "1"))
    stored = [node("a", labels={key: "1"}, allocatable={"pods": "0"}), node("b"), registered("a", key), registered("b")]
    stored += [agent, bound_claim("data", volume="v"), disk, pod("me", volumes=DATA)]
    expected = f"its node plugin kube-system/{name} does not run: {why}"
    result = kschedx.explain(kschedx.Snapshot.from_objects(stored), "default/me")
    assert (expected in roots(Diagnosis(result.cycle))) is (name == "example-csi-node-x")


def test_the_node_selector_of_a_device_plugin_that_selects_no_node_is_named() -> None:
    selector = {"nvidia.com/gpu.present": "true"}
    template = {"metadata": {"labels": {"app": "p"}}, "spec": {"containers": IMAGE, "nodeSelector": selector}}
    metadata = {"name": "nvidia-device-plugin", "namespace": "kube-system", "uid": "u"}
    spec = {"selector": {"matchLabels": {"app": "p"}}, "template": template}
    plugin = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}
    machine = node("a", labels={"node.kubernetes.io/instance-type": "g5.xlarge"}, allocatable={"cpu": "8", "pods": "9"})
    result = kschedx.explain(kschedx.Snapshot.from_objects([machine, plugin, asking("me", **{GPU: "1"})]), "default/me")
    selects = "it does not select the node (nodeSelector nvidia.com/gpu.present=true)"
    assert selects in roots(Diagnosis(result.cycle))[0]


@pytest.mark.parametrize(("nodes", "policy"), [(["a", "a", None], "Replace"), (["a", None], "Allow")])
def test_jobs_that_do_not_pile_up(nodes: list[str | None], policy: str) -> None:
    objects = [FULL, asking("other", "a", cpu="2"), *piled_up(nodes, "me", concurrencyPolicy=policy)]
    assert not roots(Diagnosis(kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").cycle))


def test_a_new_node_comes_first_if_the_jobs_that_pile_up_use_no_room() -> None:
    objects = [FULL, asking("other", "a", cpu="2"), *piled_up([None, None, None], "me")]
    titles = [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]
    assert titles[0] == "add a node like a"


def test_a_job_that_cannot_start_is_the_first_cause_of_jobs_that_pile_up() -> None:
    objects = [FULL, *piled_up(["a", "a", None], "me")]
    waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
    status = {"name": "main", "image": "a", "imageID": "", "ready": False, "restartCount": 0}
    for item in objects:
        if item["kind"] == "Pod" and at(item, "metadata")["name"] == "report-0-x":
            item["status"] = {"phase": "Pending", "containerStatuses": [{**status, "state": {"waiting": waiting}}]}
    result = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me")
    assert roots(Diagnosis(result.cycle))[0] == (
        "default/report-0-x does not start (ImagePullBackOff), so that its Job does not end"
    )
    assert result.fixes[0].title == "repair default/report-0-x: ImagePullBackOff"


def test_a_layout_with_the_profile_is_applied_before_another_is_chosen() -> None:
    whole = node("a", labels=PARTITIONING, allocatable={"pods": "9", "nvidia.com/gpu": "8"})
    objects = [whole, asking("me", **{"nvidia.com/mig-1g.10gb": "1"})]
    titles = [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]
    assert titles[0] == "repair the MIG manager on a, which applies nvidia.com/mig.config=all-1g.10gb"
    assert not any(title.startswith("choose a MIG layout") for title in titles)
