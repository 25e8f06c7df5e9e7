"""The changes that a fix prints, given to `kschedx simulate`, give the outcome that the fix promised."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import kschedx
from kschedx.kube.documents import Change, to_json
from tests.builders import Manifest, at, node, pod
from tests.device_builders import device, device_class, request, resource_slice
from tests.laws.json_patch import changed
from tests.storage_builders import DRIVER, claim, in_term, storage_class, volume

NAMESPACE, ZONE = "default", "topology.kubernetes.io/zone"


def cluster(seed: int) -> list[Manifest]:
    """A few nodes with pods on them, and a workload one of whose pods is pending, at most three others run."""
    lots = random.Random(seed)
    nodes = [
        node(
            f"n{number}",
            allocatable={"cpu": str(lots.choice((1, 2, 4))), "memory": "4Gi", "pods": "10"},
            labels={"kubernetes.io/hostname": f"n{number}", "pool": lots.choice(("a", "b"))},
            taints=lots.choice(([], [], ["team=x:NoSchedule"])),
            unschedulable=lots.random() < 0.2,
        )
        for number in range(lots.randint(1, 4))
    ]
    running = [
        pod(
            f"busy-{number}",
            on=f"n{number}",
            containers=[{"name": "c", "resources": {"requests": {"cpu": lots.choice(("500m", "1"))}}}],
        )
        for number in range(len(nodes))
    ]
    container: Manifest = {
        "name": "web",
        "image": "i",
        "resources": {"requests": {"cpu": lots.choice(("1", "2", "3"))}},
    }
    spec: Manifest = {
        "containers": [container],
        "dnsPolicy": "ClusterFirst",
        "nodeSelector": lots.choice(({}, {"pool": "a"}, {"pool": "aa"}, {"team": "x"})),
    }
    if lots.random() < 0.3:
        container["ports"] = [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]
    kind = lots.choice(("Deployment", "Deployment", "StatefulSet", "ReplicaSet"))
    hosts = lots.sample(range(len(nodes)), lots.choice((0, 0, 1, len(nodes))))
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selected = {"replicas": len(hosts) + 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    if kind == "StatefulSet":
        selected |= {"podManagementPolicy": lots.choice(("OrderedReady", "Parallel"))}
    labels = {"app": "web", "pod-template-hash": "1"}
    owner: Manifest = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "d", "controller": True}
    metadata: Manifest = {"name": "web", "namespace": NAMESPACE, "uid": "d"}
    workloads: list[Manifest] = [{"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": selected}]
    if kind == "Deployment":
        own: Manifest = {
            "name": "web-1",
            "namespace": NAMESPACE,
            "uid": "r",
            "labels": labels,
            "ownerReferences": [owner],
        }
        workloads.append({**workloads[0], "kind": "ReplicaSet", "metadata": own})
        owner = {**owner, "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    places = [*(f"n{host}" for host in hosts), None]
    pods = [
        pod(
            f"web-{number}",
            on=host,
            labels=labels,
            metadata={"uid": f"p{number}", "ownerReferences": [owner]},
            spec=spec,
        )
        for number, host in enumerate(places)
    ]
    return [*nodes, *running, *workloads, *pods]


def cluster_with_claims(seed: int) -> list[Manifest]:
    """A pod of a StatefulSet or Deployment that is pending for its claim, its class, or a full or cordoned zone."""
    lots = random.Random(seed)
    zones = [{ZONE: zone} for zone in ("a", "b")]
    nodes = [
        node(
            f"n{number}",
            allocatable={"cpu": "2", "pods": "9"},
            labels=labels,
            unschedulable=number == lots.choice((0, 1)),
        )
        for number, labels in enumerate(zones)
    ]
    busy = [{"name": "c", "resources": {"requests": {"cpu": lots.choice(("500m", "1500m"))}}}]
    running = [pod("busy", on=f"n{lots.choice((0, 1))}", containers=busy)]
    kind, named = lots.choice((("StatefulSet", "data-web-0"), ("Deployment", "data"))), lots.choice(("fast", "fats"))
    bound = lots.choice((True, False))
    claim_result = claim(kind[1], storage_class=named, volume="disk" if bound else "")
    disk = volume("disk", holder=kind[1], storage_class=named, reach=in_term(ZONE, lots.choice("ab")))
    storage = [storage_class("fast", provisioner=DRIVER), claim_result, *([disk] if bound else []), claim("other")]
    spec: Manifest = {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": kind[1]}}]
    is_stateful = kind[0] == "StatefulSet"
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec if is_stateful else {**spec, "volumes": mounts}}
    wanted = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    if is_stateful:
        wanted["volumeClaimTemplates"] = [{"metadata": {"name": "data"}, "spec": claim_result["spec"]}]
    metadata = {"name": "web", "namespace": NAMESPACE, "uid": "d"}
    workloads: list[Manifest] = [{"apiVersion": "apps/v1", "kind": kind[0], "metadata": metadata, "spec": wanted}]
    owner = {"apiVersion": "apps/v1", "kind": kind[0], "name": "web", "uid": "d", "controller": True}
    labels = {"app": "web"}
    if not is_stateful:
        labels["pod-template-hash"] = "1"
        own = {"name": "web-1", "namespace": NAMESPACE, "uid": "r", "labels": labels, "ownerReferences": [owner]}
        workloads.append({**workloads[0], "kind": "ReplicaSet", "metadata": own})
        owner = {**owner, "kind": "ReplicaSet", "name": "web-1", "uid": "r"}
    result = pod(
        "web-0", labels=labels, metadata={"uid": "p", "ownerReferences": [owner]}, spec={**spec, "volumes": mounts}
    )
    return [*nodes, *running, *storage, *workloads, result]


def cluster_with_what_controllers_create(seed: int) -> list[Manifest]:
    """A pending pod whose claims a controller creates or binds: for an ephemeral volume, from a ResourceClaimTemplate,
    of a class that does not wait for pods, or without a class."""
    lots = random.Random(seed)
    nodes = [node(f"n{number}", labels={"pool": "a"}, allocatable={"cpu": "2", "pods": "9"}) for number in (0, 1)]
    spec: Manifest = {"containers": [{"name": "web", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}
    others: list[Manifest] = []
    match lots.choice(("ephemeral", "template", "static", "classless")):
        case "ephemeral":
            wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
            ephemeral = {"volumeClaimTemplate": {"spec": {**wanted, "storageClassName": "fast"}}}
            spec |= {"volumes": [{"name": "data", "ephemeral": ephemeral}], "nodeSelector": {"pool": "aa"}}
            owner = {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "p", "controller": True}
            others += [
                storage_class("fast", provisioner=DRIVER),
                claim("web-0-data", storage_class="fast", metadata={"ownerReferences": [owner]}),
            ]
        case "template":
            others += [device_class(), resource_slice("n0", device("d0"), device("d1"))]
            if lots.random() < 0.5:
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
                volume("disk", storage_class="manual", modes=("ReadWriteMany",), reach=None),
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
    kind = lots.choice(("StatefulSet", "ReplicaSet", "Pod"))
    owner = {"apiVersion": "apps/v1", "kind": kind, "name": "web", "uid": "d", "controller": True}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    workload: Manifest = {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": NAMESPACE, "uid": "d"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    owned = {} if kind == "Pod" else {"ownerReferences": [owner]}
    asked = pod("web-0", labels={"app": "web"}, metadata={"uid": "p", **owned}, spec=spec)
    return [*nodes, *others, *([] if kind == "Pod" else [workload]), asked]


def given_back(objects: list[Manifest], changes: tuple[Change, ...], path: Path) -> list[dict[str, object]]:
    """What a user would give to `simulate`, change by change: manifests as they are then, and what is deleted."""
    given: list[dict[str, object]] = []
    for number, item in enumerate(changes):
        before, objects = objects, changed(objects, [to_json(item)])
        if item.orphan:
            continue  # `without_orphans` has deleted it
        named = f"{item.target.kind.lower()}/{item.target.name}"
        file = path.with_name(f"{number}.json")
        file.write_text(
            json.dumps({"apiVersion": "v1", "kind": "List", "items": [it for it in objects if it not in before]})
        )
        if item.target.kind == "Pod" and item.patch:
            given.append({"delete": named})  # its spec cannot be changed: it is replaced
        given.append({"delete": named} if item.delete else {"apply": str(file)})
    return given


def without_orphans(objects: list[Manifest], changes: tuple[Change, ...]) -> kschedx.Snapshot:
    """The cluster after `kubectl delete --cascade=orphan`, which no change of `simulate` stands for."""
    gone = [(change.target.kind, change.target.name) for change in changes if change.orphan]
    left = (change for change in objects if (change["kind"], at(change, "metadata")["name"]) not in gone)
    return kschedx.Snapshot.from_objects(list(left))


CLUSTERS = (
    *map(cluster, range(40)),
    *map(cluster_with_claims, range(30)),
    *map(cluster_with_what_controllers_create, range(24)),
)


@pytest.mark.sample(3)
@pytest.mark.parametrize("objects", CLUSTERS, ids=map(str, range(len(CLUSTERS))))
def test_a_printed_fix_gives_the_pod_a_node_and_takes_none_away(objects: list[Manifest], tmp_path: Path) -> None:
    snapshot = kschedx.Snapshot.from_objects(objects)
    first = next(f"{NAMESPACE}/{at(item, 'metadata')['name']}" for item in objects if is_pending(item))
    for fix in kschedx.explain(snapshot, first).fixes:
        if fix.certainty != "verified":
            continue
        start = without_orphans(objects, fix.apply)
        simulation = kschedx.simulate(start, changes=given_back(objects, fix.apply, tmp_path / "fix.json"))
        pending = simulation.to_dict()["pending"]
        assert isinstance(pending, list)
        named = {f"{NAMESPACE}/{item.target.name}" for item in fix.apply if item.delete}
        assert not [key for key in pending if key not in named - {first}], fix.title


def is_pending(manifest: Manifest) -> bool:
    return manifest["kind"] == "Pod" and not at(manifest, "spec").get("nodeName")
