"""Fixes if no existing node helps: a larger node, a new claim without the data, and later steps."""

from __future__ import annotations

import pytest

import kschedx
from kschedx.kube.documents import Change
from tests.builders import Manifest, at, node, pod
from tests.device_builders import DRIVER, allocated, claim, claiming, device, device_class, request, resource_slice
from tests.storage_builders import ZONE, in_term, storage_class, using, volume
from tests.storage_builders import claim as volume_claim

SMALL = {"cpu": "1", "memory": "1Gi", "pods": "1"}
LARGE = {"cpu": "64", "memory": "64Gi", "pods": "10"}
H100 = f"device.attributes['{DRIVER}'].model == 'h100'"
LOW_NUMA = f"device.attributes['{DRIVER}'].numa == 0"


def titles_of(*objects: Manifest) -> list[str]:
    return [fix.title for fix in kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes]


def followers(*objects: Manifest) -> list[Change]:
    """Return the parts of the fixes that other controllers do."""
    fixes = kschedx.explain(kschedx.Snapshot.from_objects(objects), "default/me").fixes
    return [change for fix in fixes for change in fix.changes if change.by]


def test_a_larger_node_in_the_zone_of_the_volume() -> None:
    here = in_term("kubernetes.io/hostname", "a")
    machine = node("a", labels={"kubernetes.io/hostname": "a"}, allocatable=SMALL)
    objects = [machine, volume_claim("data", volume="pv"), volume("pv", claim_ref="data", node_affinity=here)]
    busy = pod("busy", on="a", priority=9)
    wanted = using("me", "data", containers=[{"name": "main", "resources": {"requests": {"cpu": "2"}}}])
    assert titles_of(*objects, busy, wanted) == ["enlarge a to 2 pods instead of 1 and 2 CPU instead of 1"]
    (change,) = followers(*objects, busy, wanted)
    assert change.by == "kubelet"
    assert {item["path"]: item["value"] for item in change.patch} == {
        "/status/allocatable/cpu": "2",
        "/status/allocatable/pods": "2",
    }


def test_a_volume_where_the_anti_affinity_keeps_its_pod_off() -> None:
    """Both may be given up: the rule of the pod, or the volume that is where another replica runs."""
    apart = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    nodes = [node(name, labels={"kubernetes.io/hostname": name}, allocatable=LARGE) for name in ("a", "b")]
    here = volume("pv", claim_ref="data", node_affinity=in_term("kubernetes.io/hostname", "a"))
    claims = [storage_class(provisioner="csi.example.com"), volume_claim("data", volume="pv"), here]
    other, wanted = pod("other", on="a"), using("me", "data", affinity=rules)
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u", "controller": True}
    for each in (other, wanted):
        at(each, "metadata").update(labels={"app": "db"}, ownerReferences=[owner])
    assert titles_of(*nodes, *claims, other, wanted) == [
        "make podAntiAffinity term 1 (app=db) preferred instead of required",
        "delete and recreate claim default/data; the data on volume pv is lost unless the reclaim policy is Retain",
    ]


def test_volumes_in_different_zones() -> None:
    waits = storage_class(provisioner="csi.example.com")
    volumes = [
        volume(
            f"pv-{item}",
            claim_ref=item,
            node_affinity=in_term(ZONE, item),
            persistentVolumeReclaimPolicy="Delete",
        )
        for item in ("a", "b")
    ]
    claims = [volume_claim(item, volume=f"pv-{item}") for item in ("a", "b")]
    objects = [node("n", labels={ZONE: "a"}, allocatable=LARGE), waits, *volumes, *claims, using("me", "a", "b")]
    assert titles_of(*objects) == ["delete and recreate claim default/b; the data on volume pv-b is lost"]
    assert not titles_of(*objects, using("other", "b", on="n")), "nobody takes another pod's data"


@pytest.mark.parametrize(
    ("wanted", "devices", "selected"),
    [
        ([request(select=[H100])], 1, " (model=h100)"),
        ([request("one", select=[H100]), request("two", select=[LOW_NUMA], count=3)], 4, ""),
        # a device that is not among all those of the other request
        ([request("one", select=[LOW_NUMA]), request("all", select=[H100], allocationMode="All")], 2, ""),
    ],
)
def test_a_new_node_with_devices(wanted: list[Manifest], devices: int, selected: str) -> None:
    objects = [node("a", allocatable=LARGE), device_class(), claim("mine", *wanted), claiming("mine")]
    (title,) = titles_of(*objects)
    assert title == f"add a node with {devices} device{'s' * (devices > 1)} of {DRIVER}{selected}"


def test_a_claim_that_the_driver_deallocates() -> None:
    gpus = resource_slice("a", device("gpu-0"))
    uses = [{"name": "gpu", "resourceClaimName": "theirs"}]
    theirs = [pod("holder", on="a", resourceClaims=uses), allocated("theirs", "a", "gpu-0", reserved_for=["holder"])]
    objects = [node("a", allocatable=LARGE), device_class(), gpus, *theirs, claim("mine"), claiming("mine")]
    (change,) = followers(*objects)
    assert (change.by, change.target.name) == ("kube-controller-manager", "theirs")
    assert [item["path"] for item in change.patch] == ["/status/allocation", "/status/devices", "/status/reservedFor"]


def test_a_value_that_no_label_can_have() -> None:
    terms = [{"matchExpressions": [{"key": "disk", "operator": "NotIn", "values": ["not a label"]}]}]
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    assert titles_of(node("a", allocatable=LARGE), pod("me", affinity=affinity)) == [
        "stop requiring disk not in (not a label)"
    ]


def test_the_nominated_node_is_explained() -> None:
    objects = [node(name, allocatable=SMALL) for name in "ab"]
    large = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    wanted = pod("me", spec={"containers": large}, status={"nominatedNodeName": "b"})
    fixes = kschedx.explain(kschedx.Snapshot.from_objects([*objects, wanted]), "default/me").fixes
    lower = next(fix for fix in fixes if fix.title.startswith("lower"))
    assert lower.feasible_nodes == ("b",)


@pytest.mark.parametrize("key", ["kubernetes.io/hostname", "topology.topolvm.io/node"])
def test_a_deleted_node_with_a_local_disk(key: str) -> None:
    there = in_term(key, "gone")
    machine = node("a", labels={"kubernetes.io/hostname": "a", key: "a"}, allocatable=LARGE)
    local = storage_class(provisioner="topolvm.io")
    kept = volume("pv", claim_ref="data", node_affinity=there, persistentVolumeReclaimPolicy="Delete")
    objects = [machine, local, volume_claim("data", volume="pv"), kept]
    assert titles_of(*objects, using("me", "data")) == [
        "restore node gone, or add a node with that host name with room for one pod",
        "delete and recreate claim default/data; the data on volume pv is lost",
    ]
