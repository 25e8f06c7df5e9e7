"""Device allocation of Karpenter 1.14 with --ignore-dra-requests=false, as derived from its source."""

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
    device_requests = requests or [{"name": "one", "exactly": {"deviceClassName": "gpu"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": device_requests, **spec}},
    }


def pod_with_claim(name: str, claim_name: str, **spec: Any) -> Json:
    result = pod("1", resourceClaims=[{"name": "gpu", "resourceClaimName": claim_name}], **spec)
    result["metadata"] |= {"name": name, "uid": name}
    return result


def network_slice(count: int, zone: str) -> Json:
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
        resource_slice = {"driver": DRIVER, "pool": {"name": "gpus"}, "devices": devices(count)}
        slices = (msgspec.convert(resource_slice, ResourceSliceSpec),) if count else ()
        capacity: ResourceList = {"cpu": "8", "memory": "16Gi", "pods": "50"}
        items.append(WrittenType(name=name, capacity=capacity, offerings=offerings, resource_slices=slices))
    return InstanceTypes(instance_types=tuple(items))


def karpenter(*objects: Json, catalogue: InstanceTypes) -> Karpenter:
    settings = KarpenterSettings(version="1.14", ignores_devices=False)
    options = KarpenterOptions(catalogue=catalogue, settings=settings)
    provisioner = Karpenter.of(Snapshot.from_objects([pool(), *objects]), options)
    assert provisioner is not None
    return provisioner


def test_new_nodes_have_the_devices_of_their_instance_types() -> None:
    """Two of three pods share a node of the only type with devices."""
    objects = [
        device_class(),
        *(claim(f"c{n}") for n in range(3)),
        *(pod_with_claim(f"p{n}", f"c{n}") for n in range(3)),
    ]
    provisioner = karpenter(*objects, catalogue=types(plain=0, gpus=2))
    assert [([item.name for item in new.types], len(new.pods)) for new in provisioner.own.new] == [
        (["gpus"], 2),
        (["gpus"], 1),
    ]
    grown_snapshot = provisioner.grow().snapshot
    assert [len(item.spec.devices) for item in grown_snapshot.devices.slices] == [2, 2]


def test_a_node_has_the_devices_of_its_slices() -> None:
    """The first pod gets the free device of the node; the second pod gets a new node."""
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "one", "labels": {"kubernetes.io/hostname": "one"}},
        "status": {"allocatable": {"cpu": "8", "memory": "16Gi", "pods": "50"}},
    }
    node_slice = network_slice(2, "eu-1a")
    del node_slice["spec"]["nodeSelector"]
    node_slice["spec"]["nodeName"] = "one"
    node_slice["metadata"]["ownerReferences"] = [{"apiVersion": "v1", "kind": "Node", "name": "one", "uid": "1"}]
    allocated_claim = claim("taken")
    result = {"request": "one", "driver": DRIVER, "pool": "shared-eu-1a", "device": "gpu-0"}
    allocated_claim["status"] = {"allocation": {"devices": {"results": [result]}}}
    objects = [
        device_class(),
        node,
        node_slice,
        allocated_claim,
        claim("c0"),
        claim("c1"),
        pod_with_claim("p0", "c0"),
        pod_with_claim("p1", "c1"),
    ]
    provisioner = karpenter(*objects, catalogue=types(gpus=1)).own
    assert provisioner.existing == {"one": ("default/p0",)}
    assert [item.pods for item in provisioner.new] == [["default/p1"]]


def test_pods_that_share_a_claim_share_its_node() -> None:
    objects = [device_class(), claim("c"), pod_with_claim("p0", "c"), pod_with_claim("p1", "c")]
    new = karpenter(*objects, catalogue=types(gpus=1)).own.new
    assert [sorted(item.pods) for item in new] == [["default/p0", "default/p1"]]


def test_a_claim_is_bound_to_one_new_node() -> None:
    anti_affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {}}
    ]}}  # fmt: skip
    objects = [
        device_class(),
        claim("c"),
        pod_with_claim("p0", "c", affinity=anti_affinity),
        pod_with_claim("p1", "c", affinity=anti_affinity),
    ]
    result = karpenter(*objects, catalogue=types(gpus=1)).own
    assert [failure.text for failure in result.failures.values()] == [
        "allocating dynamic resources, claim is bound to a different in-flight NodeClaim (ResourceClaim=default/c)"
    ]


def test_network_attached_devices_choose_the_zone() -> None:
    """Each zone has one device, so the second pod gets a node in the other zone."""
    objects = [device_class(), claim("c0"), claim("c1"), pod_with_claim("p0", "c0"), pod_with_claim("p1", "c1")]
    new = karpenter(*objects, network_slice(1, "eu-1a"), network_slice(1, "eu-1b"), catalogue=types(plain=0)).own.new
    assert sorted(tuple(item.requirements.requirement(ZONE).values) for item in new) == [("eu-1a",), ("eu-1b",)]


def test_a_pool_without_known_devices_stays_open() -> None:
    """No instance type lists devices, so a new node may have them."""
    provisioner = karpenter(device_class(), claim("c"), pod_with_claim("p", "c"), catalogue=types(plain=0))
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
def test_events_of_failed_allocations(objects: list[Json], text: str) -> None:
    claims = [] if any(item["kind"] == "ResourceClaim" for item in objects) else [claim("c")]
    provisioner = karpenter(*objects, *claims, pod_with_claim("p", "c"), catalogue=types(gpus=2))
    answer = provisioner.explain(provisioner.snapshot.pods[0])
    assert answer is not None
    assert answer.event == f"Failed to schedule pod, allocating dynamic resources, {text}"


def test_a_request_for_all_devices() -> None:
    """A request for all matching devices succeeds where no device matches, and takes every device elsewhere."""
    request = {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    objects = [
        device_class(),
        claim("c0", [request]),
        claim("c1"),
        pod_with_claim("p0", "c0"),
        pod_with_claim("p1", "c1"),
    ]
    new = karpenter(*objects, catalogue=types(gpus=2)).own.new
    assert [item.pods for item in new] == [["default/p0"], ["default/p1"]]
    assert len(karpenter(*objects[:2], objects[3], catalogue=types(plain=0, gpus=1)).own.new[0].types) == 2


def test_a_type_with_more_devices_than_a_claim_allows() -> None:
    """A claim for all devices rejects such a type, unless other types remain for it."""
    request = {"name": "one", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}
    objects = [device_class(), claim("c", [request]), pod_with_claim("p", "c")]
    assert len(karpenter(*objects, catalogue=types(gpus=2, many=33)).own.new[0].types) == 2
    provisioner = karpenter(*objects, catalogue=types(many=33, more=40))
    answer = provisioner.explain(provisioner.snapshot.pods[0])
    assert answer is not None
    text = (
        "all instance types pruned, no instance type can satisfy this claim without exceeding the maximum of 32 devices"
    )
    name = 'claim "c"'
    assert answer.event == f"Failed to schedule pod, allocating dynamic resources, validating {name}: {name}: {text}"
