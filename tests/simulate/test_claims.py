"""Decisions count claims that earlier decisions bound, and devices that they allocated."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import kschedx
from kschedx.framework.cycle import Outcome
from kschedx.framework.moving import Run
from kschedx.releases import resolve
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from tests.builders import Manifest, at, node, pod
from tests.command import kschedx as command
from tests.device_builders import allocated, device, device_class, request, resource_slice
from tests.device_builders import claim as device_claim

SMALL = [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]


def storage_class(provisioner: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": provisioner,
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def claim(name: str) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": spec,
    }


def volume(name: str, on: str) -> Manifest:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [on]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "local",
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
        "status": {"phase": "Available"},
    }


def using(name: str, claim_name: str) -> Manifest:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": claim_name}}]
    return pod(name, containers=SMALL, volumes=volumes)


def hosts(*names: str) -> list[Manifest]:
    return [node(name, labels={"kubernetes.io/hostname": name, "zone": name}) for name in names]


def in_zones(*zones: str) -> Manifest:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": [*zones]}]}]}


def test_two_claims_do_not_bind_one_volume() -> None:
    objects = [
        *hosts("a", "b", "c"),
        storage_class("kubernetes.io/no-provisioner"),
        *(volume("on-a", "a"), volume("on-b", "b")),
        *(claim(name) for name in ("x", "y", "z")),
        *(using(f"uses-{name}", name) for name in ("x", "y", "z")),
    ]
    simulation = kschedx.simulate(Snapshot.from_objects(objects))
    assert sorted(simulation.placed.values()) == ["a", "b"]
    assert simulation.pending == ("default/uses-z",)
    bound = {key: result.spec.volume_name for key, result in simulation.after.storage.claims.items()}
    assert sorted(bound.values()) == ["", "on-a", "on-b"]


def test_pods_that_share_a_claim_follow_its_volume() -> None:
    csi_node: Manifest = {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": "a"},
        "spec": {"drivers": [{"name": "disk.example.com", "nodeID": "a", "topologyKeys": ["zone"]}]},
    }
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "x"}}]
    first = pod("first", containers=SMALL, volumes=volumes, nodeSelector={"zone": "a"})
    objects = [*hosts("a", "b"), storage_class("disk.example.com"), csi_node, claim("x"), first, using("second", "x")]
    simulation = kschedx.simulate(Snapshot.from_objects(objects))
    assert simulation.placed == {"default/first": "a", "default/second": "a"}


def test_added_nodes_publish_the_devices_of_their_model(tmp_path: Path) -> None:
    items = [*hosts("a"), resource_slice("a", device("gpu-0")), device_class(), device_claim("gpu", request())]
    user = pod("uses", containers=SMALL, resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}])
    cluster, file, after = (str(tmp_path / name) for name in ("cluster.json", "pod.json", "after.json"))
    Path(cluster).write_text(json.dumps({"kind": "List", "items": items}))
    Path(file).write_text(json.dumps(user))
    changes = ("--add-nodes", "1=a", "--remove-node", "a")
    assert "would be assigned to a-new1" in command("why", file, "-s", cluster, *changes).out
    command("simulate", "-s", cluster, *changes, "--out", after)
    assert "would be assigned to a-new1" in command("why", file, "-s", after).out


def test_a_device_is_allocated_to_one_claim() -> None:
    objects = [
        *hosts("a", "b"),
        device_class(),
        resource_slice("a", device("gpu-0")),
        *(device_claim(f"gpu-{name}", request()) for name in ("x", "y")),
        *(
            pod(f"uses-{name}", containers=SMALL, resourceClaims=[{"name": "gpu", "resourceClaimName": f"gpu-{name}"}])
            for name in ("x", "y")
        ),
    ]
    snapshot = Snapshot.from_objects(objects)
    simulation = kschedx.simulate(snapshot)
    assert simulation.placed == {"default/uses-x": "a"}
    assert simulation.pending == ("default/uses-y",)
    run = Run(scheduler_of(None, resolve(), snapshot))
    row = run.cluster.pods.rows["default/uses-x"]
    before = run.snapshot.devices.claims
    run.bind(row, ClusterRow(0))
    assert is_allocated(run)
    run.evict(row, waits=True)
    assert not is_allocated(run)
    run.cluster.revert(0)
    assert run.snapshot.devices.claims == before


@pytest.mark.parametrize(
    ("devices", "spec", "expected"),
    [
        ([device("gpu-0")], {"nodeName": "a"}, ["a"]),
        ([device("gpu-0", NodeName="a")], {"nodeName": None, "perDeviceNodeSelection": True}, ["a"]),
        ([device("gpu-0", BindsToNode=True)], {"nodeName": None, "allNodes": True}, ["a"]),
        ([device("gpu-0")], {"nodeName": None, "nodeSelector": in_zones("a", "b")}, ["a", "b"]),
        (
            [device("gpu-0", NodeSelector=in_zones("a", "c"))],
            {"nodeName": None, "perDeviceNodeSelection": True},
            ["a", "c"],
        ),
        ([device("gpu-0")], {"nodeName": None, "allNodes": True}, ["a", "b", "c"]),
    ],
    ids=["node", "node of the device", "binds to its node", "selected nodes", "nodes of the device", "all nodes"],
)
def test_an_allocated_claim_is_usable_on_nodes_of_its_devices(
    devices: list[Manifest], spec: Manifest, expected: list[str]
) -> None:
    """Return pods that share the claim of a pod on node `a` and select one node each."""
    shared = [{"name": "gpu", "resourceClaimName": "gpu"}]
    pods = [
        pod(f"in-{zone}", containers=SMALL, resourceClaims=shared, nodeSelector={"zone": zone}, priority=priority)
        for zone, priority in (("a", 1), ("b", 0), ("c", 0))
    ]
    objects = [*hosts("a", "b", "c"), device_class(), resource_slice("a", *devices, name="devices", **spec)]
    simulation = kschedx.simulate(Snapshot.from_objects([*objects, device_claim("gpu", request()), *pods]))
    assert sorted(simulation.placed.values()) == expected


def made_for(pod_name: str, *devices: str) -> Manifest:
    """Return the claim that an earlier attempt created for the extended resources of a pod."""
    name = f"{pod_name}-extended-resources"
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod_name, "uid": f"default/{pod_name}", "controller": True}
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    metadata = {"name": name, "namespace": "default", "annotations": annotations, "ownerReferences": [owner]}
    return allocated(name, "a", *devices, reserved_for=()) | {"metadata": metadata}


def test_a_claim_of_an_earlier_attempt_is_deleted_before_the_next_one() -> None:
    wants = [{"name": "main", "resources": {"requests": {"deviceclass.resource.kubernetes.io/gpu": "1"}}}]
    objects = [
        *hosts("a"),
        *(device_class(), resource_slice("a", device("gpu-0"), device("gpu-1"))),
        *(made_for("first", "gpu-0"), pod("first", containers=wants, metadata={"uid": "default/first"})),
        pod("second", containers=wants, metadata={"uid": "default/second"}),
    ]
    simulation = kschedx.simulate(Snapshot.from_objects(objects))
    message = [(step.key, step.message.partition(". ")[2].partition(",")[0]) for step in simulation.steps]
    gone = "deletion of ResourceClaim completed"
    assert message == [("default/first", gone), ("default/second", ""), ("default/first", "")]
    assert simulation.pending == ()
    assert simulation.explain(2).outcome is Outcome.SCHEDULED


def test_unreachable_devices_are_deallocated_and_others_allocated() -> None:
    objects = [
        *hosts("a", "b"),
        *(device_class(), resource_slice("a", device("gpu-0")), resource_slice("b", device("gpu-0"))),
        allocated("gpu", "a", "gpu-0", reserved_for=()),
        pod(
            "me",
            containers=SMALL,
            resourceClaims=[{"name": "gpu", "resourceClaimName": "gpu"}],
            nodeSelector={"zone": "b"},
        ),
    ]
    simulation = kschedx.simulate(Snapshot.from_objects(objects))
    assert len(simulation.steps) == 2
    assert simulation.placed == {"default/me": "b"}


def test_requests_of_a_resource_with_a_device_class_are_distinct() -> None:
    """The node has one device: an eviction makes room for a pod with one device, not for one with two."""
    gpus = {"cpu": "8", "memory": "16Gi", "pods": "10", "example.com/gpu": "1"}
    wanting = [
        pod(name, containers=[{"name": "main", "resources": {"requests": {"example.com/gpu": amount}}}])
        for name, amount in (("a", "1"), ("b", "1"), ("c", "2"))
    ]
    objects = [node("n", allocatable=gpus), device_class(resource="example.com/gpu"), *wanting]
    simulation = kschedx.simulate(Snapshot.from_objects(objects), feature_gates={"DRAExtendedResource": False})
    assert [step.message.rpartition(": ")[2] for step in simulation.steps[:3]] == [
        "",
        "1 No preemption victims found for incoming pod.",
        "1 Preemption is not helpful for scheduling.",
    ]


def is_allocated(run: Run) -> bool:
    return run.snapshot.devices.claims["default/gpu-x"].status.allocation is not None


def attributes_class(name: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "VolumeAttributesClass",
        "metadata": {"name": name},
        "driverName": "disks.example.com",
    }


DISKS: list[Manifest] = [
    {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "fast"},
        "provisioner": "disks.example.com",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    attributes_class("silver"),
]
GOLD = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "volumeAttributesClassName": "gold",
    "resources": {"requests": {"storage": "1Gi"}},
}


@pytest.mark.parametrize("has_class", [False, True], ids=["without the class", "with the class"])
def test_a_stateful_set_whose_templated_claims_get_no_volume_waits(has_class: bool, tmp_path: Path) -> None:
    """Its controller creates the next pod once the first one is ready, which is never bound to its node."""
    stateful_set: Manifest = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": GOLD}],
        },
    }
    known = [node("a"), *DISKS, *([attributes_class("gold")] if has_class else ())]
    for name, items in (("cluster.json", known), ("app.json", [stateful_set])):
        (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = command("simulate", "--apply", "app.json", "-s", "cluster.json", cwd=tmp_path)
    assert (result.code, "both pods are scheduled" in result.out) == ((0, True) if has_class else (1, False))
    assert ("default/db-0 is not bound: claim default/data-db-0 waits for its volume" in result.out) is not has_class
    assert ("1 not created before the others are ready" in result.out) is not has_class
    rooms = command("why", "-f", "app.json", "-s", "cluster.json", cwd=tmp_path).out
    assert "default/sts/db: all 2 replicas" in rooms or "default/sts/db: both replicas" in rooms, rooms


def test_a_new_claim_that_gets_no_volume_is_reported(tmp_path: Path) -> None:
    data = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": GOLD}
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]
    user = pod("web", spec={"containers": [{"name": "c", "image": "web:1"}], "volumes": volumes})
    for name, items in (("cluster.json", [node("a"), *DISKS]), ("app.json", [data, user])):
        (tmp_path / name).write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    result = command("simulate", "-f", "app.json", "-s", "cluster.json", cwd=tmp_path)
    assert result.code == 1
    assert "✗ default/web is not bound: claim default/data waits for its volume" in result.out
    assert "create VolumeAttributesClass gold of disks.example.com" in " ".join(result.out.split())


@pytest.mark.parametrize(
    ("change", "when", "deleted"),
    [
        ("--scale=sts/db=1", "whenScaled", ["default/data-db-1"]),
        ("--scale=sts/db=2", "whenScaled", []),
        ("--scale=sts/db=0", "whenDeleted", []),
        ("--delete=sts/db", "whenDeleted", ["default/data-db-0", "default/data-db-1"]),
        ("--delete=sts/db", "whenScaled", []),
    ],
)
def test_a_stateful_set_deletes_claims_with_its_pods(
    change: str, when: str, deleted: list[str], tmp_path: Path
) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    pods = [using(f"db-{n}", f"data-db-{n}") for n in range(2)]
    for each in pods:
        at(each, "metadata")["ownerReferences"] = [owner]
        at(each, "spec")["nodeName"] = "n"
    spec = {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "db"}},
        "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": SMALL}},
        "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim("x")["spec"]}],
        "persistentVolumeClaimRetentionPolicy": {when: "Delete"},
    }
    metadata = {"name": "db", "namespace": "default", "uid": "u"}
    database = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": metadata, "spec": spec}
    claims = [claim(f"data-db-{n}") for n in range(2)]
    items = [node("n"), storage_class("x.csi"), *claims, database, *pods]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    result = command("simulate", "-s", str(tmp_path / "cluster.json"), change, "-o", "json")
    (effect,) = json.loads(result.out)["effects"]
    assert effect.get("deletedClaims", []) == deleted


def test_a_pod_that_waits_for_its_device_claim_has_the_cause(tmp_path: Path) -> None:
    me = pod("me", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])
    items = [node("n"), resource_slice("n", device("d")), device_class(), claim_template("gpu"), me]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    result = command("simulate", "-s", str(tmp_path / "cluster.json"))
    assert "pending: no resource claim has been created for gpu\n" in result.out
    assert "wait until kube-controller-manager creates a claim from template default/gpu\n" in result.out


@pytest.mark.parametrize("kind", ["Deployment", "DaemonSet", "StatefulSet"])
def test_device_claims_of_a_template_are_those_of_the_pods(tmp_path: Path, kind: str) -> None:
    claims = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    spec = {"containers": [{"name": "main", "image": "x"}], "resourceClaims": claims}
    template = {"metadata": {"labels": {"app": "w"}}, "spec": spec}
    replicas = {} if kind == "DaemonSet" else {"replicas": 2}
    app = {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": template, **replicas},
    }  # fmt: skip
    items = [node("n"), resource_slice("n", device("a"), device("b")), device_class(), claim_template("gpu")]
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    (tmp_path / "app.json").write_text(json.dumps(app))
    cluster = tmp_path / "cluster.json"
    for change in (["--apply", str(tmp_path / "app.json")], ["--restart", f"{kind}/w"], ["--delete", f"{kind}/w"]):
        result = command("simulate", "-s", str(cluster), *change, "--out", str(tmp_path / "after.json"))
        stalls = kind == "Deployment" and change[0] == "--restart"  # a device is lacking for one pod more
        assert result.code == int(stalls), result.out
        cluster = tmp_path / "after.json"
        left = json.loads(cluster.read_text())["items"]
        of_pods = sorted(item["metadata"]["name"] for item in left if item["kind"] == "Pod")
        created = [item["metadata"] for item in left if item["kind"] == "ResourceClaim"]
        assert sorted(metadata["ownerReferences"][0]["name"] for metadata in created) == of_pods
        assert bool(of_pods) == (change[0] != "--delete")


@pytest.mark.parametrize("volumes", [1, 2])
@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_new_claims_of_an_immediate_class_are_bound_to_existing_volumes(
    tmp_path: Path, kind: str, volumes: int
) -> None:
    immediate = {**storage_class("kubernetes.io/no-provisioner"), "volumeBindingMode": "Immediate"}
    wanted = at(claim("x"), "spec")
    spec: Manifest = {"containers": [{"name": "main", "image": "x"}]}
    of_claims: Manifest = {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": wanted}]}
    if kind == "Deployment":
        spec["volumes"] = [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": wanted}}}]
        of_claims = {}
    template = {"metadata": {"labels": {"app": "w"}}, "spec": spec}
    app = {
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w", "namespace": "default"},
        "spec": {"selector": {"matchLabels": {"app": "w"}}, "template": template, "replicas": 2, **of_claims},
    }  # fmt: skip
    pvs = [
        {
            "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{number}"},
            "spec": {
                "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "storageClassName": "local",
                "hostPath": {"path": "/x"},
            },
            "status": {"phase": "Available"},
        }
        for number in range(volumes)
    ]  # fmt: skip
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List", "items": [node("n"), immediate, *pvs]}))
    (tmp_path / "app.json").write_text(json.dumps(app))
    cluster, file, after = (tmp_path / name for name in ("cluster.json", "app.json", "after.json"))
    code = 0 if volumes == 2 else 1
    assert command("simulate", "-s", cluster, "-f", file, "--out", after).code == code
    assert command("why", file, "-s", cluster).code == code
    left = json.loads(after.read_text())["items"]
    bound = [at(item, "spec").get("volumeName") for item in left if item["kind"] == "PersistentVolumeClaim"]
    assert sorted(filter(None, bound)) == [f"pv-{number}" for number in range(volumes)]


def claim_template(name: str) -> Manifest:
    spec = {"spec": {"devices": {"requests": [request()]}}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": spec
    }  # fmt: skip
