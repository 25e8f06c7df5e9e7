"""The changes that a fix prints have the promised outcome when they are passed to `kschedx simulate`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import kschedx
from kschedx.kube.documents import Change, to_json
from tests.builders import Manifest, at, node, pod
from tests.device_builders import device, device_class, request, resource_slice
from tests.laws.json_patch import apply_changes
from tests.storage_builders import DRIVER, claim, in_term, storage_class, volume

NAMESPACE, ZONE = "default", "topology.kubernetes.io/zone"


def cluster(seed: int) -> list[Manifest]:
    """Return a few nodes with running pods, and a workload with one pending pod and at most four running ones."""
    chance = random.Random(seed)
    nodes = [
        node(
            f"n{number}",
            allocatable={"cpu": str(chance.choice((1, 2, 4))), "memory": "4Gi", "pods": "10"},
            labels={"kubernetes.io/hostname": f"n{number}", "pool": chance.choice(("a", "b"))},
            taints=chance.choice(([], [], ["team=x:NoSchedule"])),
            unschedulable=chance.random() < 0.2,
        )
        for number in range(chance.randint(1, 4))
    ]
    running = [
        pod(
            f"busy-{number}",
            on=f"n{number}",
            containers=[{"name": "c", "resources": {"requests": {"cpu": chance.choice(("500m", "1"))}}}],
        )
        for number in range(len(nodes))
    ]
    container: Manifest = {
        "name": "web",
        "image": "i",
        "resources": {"requests": {"cpu": chance.choice(("1", "2", "3"))}},
    }
    spec: Manifest = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": chance.choice(({}, {"pool": "a"}, {"pool": "aa"}, {"team": "x"})),
    }
    if chance.random() < 0.3:
        container["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    kind = chance.choice(("Deployment", "Deployment", "StatefulSet", "ReplicaSet"))
    hosts = chance.sample(range(len(nodes)), chance.choice((0, 0, 1, len(nodes))))
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selected = {"replicas": len(hosts) + 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    if kind == "StatefulSet":
        selected |= {"podManagementPolicy": chance.choice(("OrderedReady", "Parallel"))}
    labels = {"app": "web", "pod-template-hash": "1"}
    owner: Manifest = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "d", "controller": True}
    metadata: Manifest = {"name": "web", "namespace": NAMESPACE, "uid": "d"}
    workloads: list[Manifest] = [{"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": selected}]
    if kind == "Deployment":
        replica_set_metadata: Manifest = {
            "name": "web-1",
            "namespace": NAMESPACE,
            "uid": "r",
            "labels": labels,
            "ownerReferences": [owner],
        }
        workloads.append({**workloads[0], "kind": "ReplicaSet", "metadata": replica_set_metadata})
        owner = {**owner, "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    nodes_of_pods = [*(f"n{host}" for host in hosts), None]
    pods = [
        pod(
            f"web-{number}",
            on=host,
            labels=labels,
            metadata={"uid": f"p{number}", "ownerReferences": [owner]},
            spec=spec,
        )
        for number, host in enumerate(nodes_of_pods)
    ]
    return [*nodes, *running, *workloads, *pods]


def cluster_with_claims(seed: int) -> list[Manifest]:
    """Return a pending pod of a StatefulSet or Deployment, blocked by its claim, class, or a full or cordoned zone."""
    chance = random.Random(seed)
    zones = [{ZONE: zone} for zone in ("a", "b")]
    nodes = [
        node(
            f"n{number}",
            allocatable={"cpu": "2", "pods": "9"},
            labels=labels,
            unschedulable=number == chance.choice((0, 1)),
        )
        for number, labels in enumerate(zones)
    ]
    containers = [{"name": "c", "resources": {"requests": {"cpu": chance.choice(("500m", "1500m"))}}}]
    running = [pod("busy", on=f"n{chance.choice((0, 1))}", containers=containers)]
    kind, storage_class_name = (
        chance.choice((("StatefulSet", "data-web-0"), ("Deployment", "data"))),
        chance.choice(("fast", "fats")),
    )
    bound = chance.choice((True, False))
    claim_result = claim(kind[1], storage_class=storage_class_name, volume="disk" if bound else "")
    disk = volume(
        "disk", claim_ref=kind[1], storage_class=storage_class_name, node_affinity=in_term(ZONE, chance.choice("ab"))
    )
    storage = [storage_class("fast", provisioner=DRIVER), claim_result, *([disk] if bound else []), claim("other")]
    spec: Manifest = {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": kind[1]}}]
    is_stateful = kind[0] == "StatefulSet"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec if is_stateful else {**spec, "volumes": mounts}}
    workload_spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    if is_stateful:
        workload_spec["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim_result["spec"]}]
    metadata = {"name": "web", "namespace": NAMESPACE, "uid": "d"}
    workloads: list[Manifest] = [
        {"apiVersion": "apps/v1", "kind": kind[0], "metadata": metadata, "spec": workload_spec}
    ]
    owner = {"apiVersion": "apps/v1", "kind": kind[0], "name": "web", "uid": "d", "controller": True}
    labels = {"app": "web"}
    if not is_stateful:
        labels["pod-template-hash"] = "1"
        replica_set_metadata = {
            "name": "web-1",
            "namespace": NAMESPACE,
            "uid": "r",
            "labels": labels,
            "ownerReferences": [owner],
        }
        workloads.append({**workloads[0], "kind": "ReplicaSet", "metadata": replica_set_metadata})
        owner = {**owner, "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    result = pod(
        "web-0", labels=labels, metadata={"uid": "p", "ownerReferences": [owner]}, spec={**spec, "volumes": mounts}
    )
    return [*nodes, *running, *storage, *workloads, result]


def cluster_with_created_claims(seed: int) -> list[Manifest]:
    """Return a pending pod whose claims a controller creates or binds.

    They are of an ephemeral volume, from a ResourceClaimTemplate, of an Immediate class, or without a class."""
    chance = random.Random(seed)
    nodes = [node(f"n{number}", labels={"pool": "a"}, allocatable={"cpu": "2", "pods": "9"}) for number in (0, 1)]
    spec: Manifest = {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    others: list[Manifest] = []
    match chance.choice(("ephemeral", "template", "static", "classless")):
        case "ephemeral":
            claim_spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            ephemeral = {"volumeClaimTemplate": {"spec": {**claim_spec, "storageClassName": "fast"}}}
            spec |= {"volumes": [{"name": "data", "ephemeral": ephemeral}], "nodeSelector": {"pool": "aa"}}
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "p", "controller": True}
            others += [
                storage_class("fast", provisioner=DRIVER),
                claim("web-0-data", storage_class="fast", metadata={"ownerReferences": [owner]}),
            ]
        case "template":
            others += [device_class(), resource_slice("n0", device("d0"), device("d1"))]
            if chance.random() < 0.5:
                metadata = {"name": "gpu", "namespace": NAMESPACE}
                devices = {"devices": {"requests": [request()]}}
                others.append(
                    {
                        "apiVersion": "resource.k8s.io/v1",
                        "kind": "ResourceClaimTemplate",
                        "metadata": metadata,
                        "spec": {"spec": devices},
                    }
                )
            spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
        case "static":
            others += [
                storage_class("manual", waits=False),
                volume("disk", storage_class="manual", modes=("ReadWriteMany",), node_affinity=None),
                claim("data", storage_class="manual"),
            ]
        case _:
            others += [
                storage_class("gp2", provisioner=DRIVER, waits=False),
                storage_class("gp3", provisioner=DRIVER),
                claim("data", storage_class=None),
            ]
    if not {"volumes", "resourceClaims"} & spec.keys():
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    kind = chance.choice(("StatefulSet", "ReplicaSet", "Pod"))
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "d", "controller": True}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    workload: Manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": NAMESPACE, "uid": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    owned = {} if kind == "Pod" else {"ownerReferences": [owner]}
    target = pod("web-0", labels={"app": "web"}, metadata={"uid": "p", **owned}, spec=spec)
    return [*nodes, *others, *([] if kind == "Pod" else [workload]), target]


def simulate_options(objects: list[Manifest], changes: tuple[Change, ...], path: Path) -> list[dict[str, object]]:
    """Return the options of `simulate` for the changes: the manifests after each change, and the deleted objects."""
    options: list[dict[str, object]] = []
    for number, item in enumerate(changes):
        before, objects = objects, apply_changes(objects, [to_json(item)])
        if item.orphan:
            continue  # `without_orphans` has deleted it
        named = f"{item.target.kind.lower()}/{item.target.name}"
        file = path.with_name(f"{number}.json")
        file.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [it for it in objects if it not in before]})
        )
        if item.target.kind == "Pod" and item.patch:
            options.append({"delete": named})  # the spec of a pod is immutable: the pod is replaced
        options.append({"delete": named} if item.delete else {"apply": str(file)})
    return options


def without_orphans(objects: list[Manifest], changes: tuple[Change, ...]) -> kschedx.Snapshot:
    """Return the cluster after `kubectl delete --cascade=orphan`, for which `simulate` has no option."""
    deleted = [(change.target.kind, change.target.name) for change in changes if change.orphan]
    remaining = (change for change in objects if (change["kind"], at(change, "metadata")["name"]) not in deleted)
    return kschedx.Snapshot.from_objects(list(remaining))


CLUSTERS = (
    *map(cluster, range(40)),
    *map(cluster_with_claims, range(30)),
    *map(cluster_with_created_claims, range(24)),
)


@pytest.mark.sample(6)
@pytest.mark.parametrize("objects", CLUSTERS, ids=map(str, range(len(CLUSTERS))))
def test_a_printed_fix_schedules_the_pod_and_leaves_no_other_pending(objects: list[Manifest], tmp_path: Path) -> None:
    snapshot = kschedx.Snapshot.from_objects(objects)
    target = next(f"{NAMESPACE}/{at(item, 'metadata')['name']}" for item in objects if is_pending(item))
    for fix in kschedx.explain(snapshot, target).fixes:
        if fix.certainty != "verified":
            continue
        start = without_orphans(objects, fix.apply)
        simulation = kschedx.simulate(start, changes=simulate_options(objects, fix.apply, tmp_path / "fix.json"))
        pending = simulation.to_dict()["pending"]
        assert isinstance(pending, list)
        deleted_pods = {f"{NAMESPACE}/{item.target.name}" for item in fix.apply if item.delete}
        assert not [key for key in pending if key not in deleted_pods - {target}], fix.title


def is_pending(manifest: Manifest) -> bool:
    return manifest["kind"] == "Pod" and not at(manifest, "spec").get("nodeName")
