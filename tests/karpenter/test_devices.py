"""Devices that Karpenter 1.14 allocates with --ignore-dra-requests=false; worked out from its code."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from kschedx.karpenter.catalogue import InstanceTypes, WrittenOffering, WrittenType
from kschedx.karpenter.cluster import Karpenter, KarpenterOptions
from kschedx.karpenter.scheduler import KarpenterSettings
from kschedx.kube.devices import ResourceSliceSpec
from kschedx.kube.names import ZONE
from kschedx.kube.quantity import ResourceList
from kschedx.snapshot.snapshot import Snapshot
from tests.karpenter.test_cluster import pod, pool

Json = dict[str, Any]
DRIVER = "gpu.example.com"


def devices(count: int, model: str = "a") -> list[Json]:
    return [{"name": f"gpu-{number}", "attributes": {"model": {"string": model}}} for number in range(count)]


def device_class(expression: str = "") -> Json:
    selectors = [{"cel": {"expression": expression}}] if expression else []
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": selectors},
    }


def claim(name: str, requests: list[Json] | None = None, **spec: Any) -> Json:
    wanted = requests or [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": wanted, **spec}},
    }


def user(name: str, claimed: str, **spec: Any) -> Json:
    result = pod("1", resourceClaims=[{"name": "gpu", "resourceClaimName": claimed}], **spec)
    result["metadata"] |= {"name": name, "uid": name}
    return result


def network(count: int, zone: str) -> Json:
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"shared-{zone}"},
        "spec": {
            "driver": DRIVER,
            "pool": {"name": f"shared-{zone}", "generation": 1, "resourceSliceCount": 1},
            "nodeSelector": {"nodeSelectorTerms": terms},
            "devices": devices(count),
        },
    }


def types(**devices_of_type: int) -> InstanceTypes:
    offerings = tuple(WrittenOffering(zone=zone) for zone in ("eu-1a", "eu-1b"))
    items = []
    for name, count in devices_of_type.items():
        written = {"driver": DRIVER, "pool": {"name": "gpus"}, "devices": devices(count)}
        slices = (msgspec.convert(written, ResourceSliceSpec),) if count else ()
        capacity: ResourceList = {"cpu": "8", "memory": "16Gi", "pods": "50"}
        items.append(WrittenType(name=name, capacity=capacity, offerings=offerings, resource_slices=slices))
    return InstanceTypes(instance_types=tuple(items))


def karpenter(*objects: Json, catalogue: InstanceTypes) -> Karpenter:
    settings = KarpenterSettings(version="1.14", ignores_devices=False)
    options = KarpenterOptions(catalogue=catalogue, settings=settings)
    built = Karpenter.of(Snapshot.from_objects([pool(), *objects]), options)
    assert built is not None
    return built


def test_new_nodes_have_the_devices_of_their_instance_types() -> None:
    """Three pods with a device each: two share a node of the type with two devices, which alone has any."""
    objects = [device_class(), *(claim(f"c{n}") for n in range(3)), *(user(f"p{n}", f"c{n}") for n in range(3))]
    provisioner = karpenter(*objects, catalogue=types(plain=0, gpus=2))
    assert [([item.name for item in new.types], len(new.pods)) for new in provisioner.own.new] == [
        (["gpus"], 2),
        (["gpus"], 1),
    ]
    grown = provisioner.grow().snapshot
    assert [len(item.spec.devices) for item in grown.devices.slices] == [2, 2]


def test_a_node_has_what_it_publishes() -> None:
    """One of its two devices is allocated, the other is for the first pod; the second pod gets a new node."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one", "labels": {"kubernetes.io/hostname": "one"}},
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "50"}},
    }
    own = network(2, "eu-1a")
    del own["spec"]["nodeSelector"]
    own["spec"]["nodeName"] = "one"
    own["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "1"}]
    taken = claim("taken")
    result = {"request": "one", "driver": DRIVER, "pool": "shared-eu-1a", "device": "gpu-0"}
    taken["status"] = {"allocation": {"devices": {"results": [result]}}}
    objects = [device_class(), node, own, taken, claim("c0"), claim("c1"), user("p0", "c0"), user("p1", "c1")]
    provisioner = karpenter(*objects, catalogue=types(gpus=1)).own
    assert provisioner.existing == {"one": ("default/p0",)}
    assert [item.pods for item in provisioner.new] == [["default/p1"]]


def test_pods_that_share_a_claim_share_its_node() -> None:
    objects = [device_class(), claim("c"), user("p0", "c"), user("p1", "c")]
    new = karpenter(*objects, catalogue=types(gpus=1)).own.new
    assert [sorted(item.pods) for item in new] == [["default/p0", "default/p1"]]


def test_a_claim_of_another_new_node_is_out_of_reach() -> None:
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    ]}}  # fmt: skip
    objects = [device_class(), claim("c"), user("p0", "c", affinity=apart), user("p1", "c", affinity=apart)]
    result = karpenter(*objects, catalogue=types(gpus=1)).own
    assert [failure.text for failure in result.failures.values()] == [
        "allocating dynamic resources, claim is bound to a different in-flight NodeClaim (ResourceClaim=default/c)"
    ]


def test_network_attached_devices_choose_the_zone() -> None:
    """One device in each zone: the second pod gets a node in the other one."""
    objects = [device_class(), claim("c0"), claim("c1"), user("p0", "c0"), user("p1", "c1")]
    new = karpenter(*objects, network(1, "eu-1a"), network(1, "eu-1b"), catalogue=types(plain=0)).own.new
    assert sorted(tuple(item.requirements.requirement(ZONE).values) for item in new) == [("eu-1a",), ("eu-1b",)]


def test_devices_that_nothing_is_known_about() -> None:
    """No instance type says which devices it has, so that a new node may help."""
    provisioner = karpenter(device_class(), claim("c"), user("p", "c"), catalogue=types(plain=0))
    answer = provisioner.explain(provisioner.snapshot.pods[0])
    assert answer is not None
    assert answer.open_pools == ("general",)
    assert answer.event == ""


NO_CLASS = (
    'validating claim "c": claim "c" request "one": DeviceClass "gpu" not found: '
    'DeviceClass.resource.k8s.io "gpu" not found'
)


@pytest.mark.parametrize(
    ("objects", "text"),
    [
        ([], NO_CLASS),
        ([device_class('device.driver == "other"')], "no instance type can satisfy the allocation"),
        ([device_class("device.attributes['x'].y == 1")], "no instance type can satisfy the allocation"),
        ([device_class(), claim("c", [{"name": "one", "firstAvailable": [{"name": "a", "deviceClassName": "gpu"}]}])],
         'validating claim "c": claim "c" request "one": only Exactly requests are supported'),
        ([device_class(), claim("c", constraints=[{"distinctAttribute": "x.example.com/y"}])],
         'validating claim "c": claim "c": DistinctAttribute constraints not done yet'),
        ([device_class(), claim("c", [{"name": "one", "exactly": {"deviceClassName": "gpu", "count": 33}}])],
         'validating claim "c": claim "c" requests 33 total devices, exceeding maximum of 32'),
    ],
    ids=["no class", "no device", "selector fails", "alternatives", "distinct", "too many"],
)  # fmt: skip
def test_texts(objects: list[Json], text: str) -> None:
    claims = [] if any(item["kind"] == "ResourceClaim" for item in objects) else [claim("c")]
    provisioner = karpenter(*objects, *claims, user("p", "c"), catalogue=types(gpus=2))
    answer = provisioner.explain(provisioner.snapshot.pods[0])
    assert answer is not None
    assert answer.event == f"Failed to schedule pod, allocating dynamic resources, {text}"


def test_all_devices_of_a_node() -> None:
    """A request for all that match is met where none does, and takes every device otherwise."""
    every = {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    objects = [device_class(), claim("c0", [every]), claim("c1"), user("p0", "c0"), user("p1", "c1")]
    new = karpenter(*objects, catalogue=types(gpus=2)).own.new
    assert [item.pods for item in new] == [["default/p0"], ["default/p1"]]
    assert len(karpenter(*objects[:2], objects[3], catalogue=types(plain=0, gpus=1)).own.new[0].types) == 2


def test_a_type_with_too_many_devices_for_a_claim() -> None:
    """Its devices do not count for a claim of all of them; where every type has too many, no type is left."""
    every = {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    objects = [device_class(), claim("c", [every]), user("p", "c")]
    assert len(karpenter(*objects, catalogue=types(gpus=2, many=33)).own.new[0].types) == 2
    provisioner = karpenter(*objects, catalogue=types(many=33, more=40))
    answer = provisioner.explain(provisioner.snapshot.pods[0])
    assert answer is not None
    text = (
        "all instance types pruned, no instance type can satisfy this claim without exceeding the maximum of 32 devices"
    )
    name = 'claim "c"'
    assert answer.event == f"Failed to schedule pod, allocating dynamic resources, validating {name}: {name}: {text}"
