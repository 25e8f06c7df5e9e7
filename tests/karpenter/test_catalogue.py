"""Instance types in files, and as cloud providers publish them."""

from __future__ import annotations

from typing import Any

import pytest

from kschedx.errors import InputError
from kschedx.karpenter.catalogue import any_catalogue, read_catalogue, read_instance_types
from kschedx.karpenter.requirements import FLEX

HEAD = {"apiVersion": "kschedx/v1", "kind": "InstanceTypes"}
M6I = {"name": "m6i.large", "capacity": {"cpu": "2", "memory": "7577Mi"}}
EC2: dict[str, Any] = {
    "InstanceType": "g5.xlarge",
    "VCpuInfo": {"DefaultVCpus": 4},
    "MemoryInfo": {"SizeInMiB": 16384},
    "Hypervisor": "nitro",
    "ProcessorInfo": {"SupportedArchitectures": ["x86_64"], "Manufacturer": "AMD"},
    "NetworkInfo": {
        "NetworkCards": [{"MaximumNetworkInterfaces": 4}],
        "DefaultNetworkCardIndex": 0,
        "Ipv4AddressesPerInterface": 15,
        "EncryptionInTransitSupported": True,
    },
    "GpuInfo": {"Gpus": [{"Name": "A10G", "Manufacturer": "NVIDIA", "Count": 1, "MemoryInfo": {"SizeInMiB": 22888}}]},
    "InstanceStorageInfo": {"TotalSizeInGB": 250, "NvmeSupport": "required"},
}


def test_ec2_types_become_capacity_overhead_and_labels() -> None:
    (item,) = any_catalogue({"InstanceTypes": [EC2]}).instance_types
    assert item.capacity == {
        "cpu": "4",
        "memory": "15155Mi",
        "ephemeral-storage": "20Gi",
        "pods": "58",
        "nvidia.com/gpu": "1",
    }
    assert item.overhead == {"cpu": "80m", "memory": "993Mi", "ephemeral-storage": "3Gi"}
    assert item.labels["karpenter.k8s.aws/instance-family"] == "g5"
    assert item.labels["karpenter.k8s.aws/instance-gpu-name"] == "a10g"
    assert item.labels["karpenter.k8s.aws/instance-local-nvme"] == "250"


def test_kwok_types_keep_their_offerings() -> None:
    offering = {
        "Price": 0.02,
        "Available": True,
        "Requirements": [
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
            {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["test-zone-a"]},
        ],
    }
    kwok = {
        "name": "c-1x-amd64-linux",
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {"cpu": "1", "memory": "2Gi", "pods": "16"},
        "offerings": [offering],
    }
    (item,) = any_catalogue([kwok]).instance_types
    assert [(offering.zone, offering.capacity_type, offering.price) for offering in item.offerings] == [
        ("test-zone-a", "spot", 0.02)
    ]


def test_a_type_without_offerings_is_offered_in_every_zone_of_the_pool() -> None:
    (item,) = read_instance_types(
        read_catalogue({**HEAD, "instanceTypes": [M6I]}), "any", ("a", "b"), frozenset({"x/gpu"}), {}
    )
    assert {(offering.zone, offering.capacity_type) for offering in item.offerings} == {
        (zone, kind) for zone in "ab" for kind in ("spot", "on-demand")
    }
    assert item.requirements["x/gpu"].operator == "DoesNotExist"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"kind": "Pod"}, "holds no instance types"),
        ([], "holds no instance types"),
        ({**HEAD, "instanceTypes": [{**M6I, "offering": []}]}, '"offering" is not a field (did you mean "offerings"?)'),
        ({**HEAD, "types": []}, '"types" is not a field'),
        ({**HEAD, "instanceTypes": [{"name": "x"}]}, "instanceTypes[0]: object missing required field `capacity`"),
        ({**HEAD, "instanceTypes": [{**M6I, "name": 5}]}, "instanceTypes[0].name: expected `str`, got `int`"),
        ({**HEAD, "instanceTypes": [M6I, M6I]}, 'there are two instance types "m6i.large"'),
        (
            {**HEAD, "instanceTypes": [{**M6I, "capacity": {"cpu": "2"}}]},
            "instanceTypes[0].capacity: an instance type needs memory",
        ),
        (
            {**HEAD, "instanceTypes": [{**M6I, "capacity": {"cpu": "2", "memory": "7 gib"}}]},
            "instanceTypes[0].capacity[memory]",
        ),
        ({**HEAD, "apiVersion": "v2", "instanceTypes": []}, "found v2 InstanceTypes, expected kschedx/v1"),
        ({"InstanceTypes": [{"InstanceType": "x"}]}, "InstanceTypes[0]: object missing required field `VCpuInfo`"),
    ],
)
def test_an_error_names_the_invalid_field(document: object, expected: str) -> None:
    with pytest.raises(InputError) as error:
        any_catalogue(document)
    assert expected in str(error.value)


@pytest.mark.parametrize(("name", "flex"), [("m7i-flex.large", "true"), ("m7i.large", "false")])
def test_flex_follows_the_name_of_the_type(name: str, flex: str) -> None:
    catalogue = read_catalogue({**HEAD, "instanceTypes": [{**M6I, "name": name}]})
    (item,) = read_instance_types(catalogue, "general", ("eu-1a",), frozenset({FLEX}), {})
    assert item.requirements.requirement(FLEX).values == {flex}


@pytest.mark.parametrize(
    ("offering", "error"),
    [
        ({"capacityType": "ondemand"}, 'capacityType: "ondemand" is not a capacity type .did you mean "on-demand"'),
        ({"price": -0.1}, "price: expected `float` >= 0.0"),
    ],
)
def test_an_invalid_offering_is_named(offering: dict[str, object], error: str) -> None:
    with pytest.raises(InputError, match=rf"instanceTypes\[0\]\.offerings\[0\]\.{error}"):
        read_catalogue({**HEAD, "instanceTypes": [{**M6I, "offerings": [{"zone": "a", **offering}]}]})
