"""What clouds publish about their instance types, as a catalogue.

- `aws ec2 describe-instance-types`: {"InstanceTypes": [...]}; what a node has for pods as karpenter-provider-aws works
  it out with its defaults (pkg/providers/instancetype/types.go), for AL2023 and Bottlerocket without prefix delegation.
- The instance types of Karpenter's kwok provider (kwok/cloudprovider/instance_types.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from math import ceil

import msgspec
from msgspec import Struct

from kschedx.api.karpenter import AWS
from kschedx.api.quantity import ResourceList
from kschedx.errors import InputError, Place
from kschedx.karpenter.catalogue import (
    InstanceTypes,
    WrittenOffering,
    WrittenType,
    is_catalogue,
    read_catalogue,
)
from kschedx.karpenter.labels import ARCH, OS, ZONE

VM_OVERHEAD = 0.075
"""The share of the memory that the hypervisor keeps (--vm-memory-overhead-percent)."""
EVICTION_MEMORY = 100
"""Mi below which the kubelet evicts."""
DISK = "20Gi"
_ARM_RESERVE = 64
"""Mi of a Graviton's memory that nobody can use."""
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_NAME = re.compile(r"(?P<category>[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+).*\.")
_CPU_SHARES = ((0, 1000, 0.06), (1000, 2000, 0.01), (2000, 4000, 0.005), (4000, 1 << 31, 0.0025))
"""Of each range of milli-cpus the share that the kubelet keeps."""


def any_catalogue(document: object) -> InstanceTypes:
    """A catalogue, or what is published in a form of its own. Raises `InputError`."""
    if is_catalogue(document):
        return read_catalogue(document)
    if isinstance(document, Mapping) and isinstance(document.get("InstanceTypes"), list):
        return _of_ec2(document)
    first = document[0] if isinstance(document, list) and document else None
    if isinstance(first, Mapping) and "operatingSystems" in first:
        return _of_kwok(document)
    raise InputError(
        "these are no instance types",
        hint="a catalogue (kschedx schema InstanceTypes), or the output of aws ec2 describe-instance-types",
    )


# --- EC2


class _Cpu(Struct, frozen=True, rename="pascal"):
    default_v_cpus: int = msgspec.field(name="DefaultVCpus")


class _Size(Struct, frozen=True):
    size: int = msgspec.field(name="SizeInMiB")


class _Processor(Struct, frozen=True, rename="pascal"):
    supported_architectures: tuple[str, ...] = ()
    manufacturer: str = ""
    sustained_clock_speed_in_ghz: float = 0.0


class _Card(Struct, frozen=True, rename="pascal"):
    maximum_network_interfaces: int = 0


class _Network(Struct, frozen=True, rename="pascal"):
    network_cards: tuple[_Card, ...] = ()
    default_network_card_index: int = 0
    ipv4_addresses_per_interface: int = 0
    encryption_in_transit_supported: bool = False
    maximum_network_interfaces: int = 0


class _Gpu(Struct, frozen=True, rename="pascal"):
    name: str = ""
    manufacturer: str = ""
    count: int = 0
    memory_info: _Size | None = None


class _Gpus(Struct, frozen=True, rename="pascal"):
    gpus: tuple[_Gpu, ...] = ()


class _Storage(Struct, frozen=True):
    size: int | None = msgspec.field(name="TotalSizeInGB", default=None)
    nvme_support: str = msgspec.field(name="NvmeSupport", default="unsupported")


class _EbsSpeed(Struct, frozen=True):
    bandwidth: int = msgspec.field(name="MaximumBandwidthInMbps", default=0)


class _Ebs(Struct, frozen=True, rename="pascal"):
    ebs_optimized_support: str = ""
    ebs_optimized_info: _EbsSpeed | None = None


class _Ec2Type(Struct, frozen=True, rename="pascal", kw_only=True):
    instance_type: str
    v_cpu_info: _Cpu = msgspec.field(name="VCpuInfo")
    memory_info: _Size
    processor_info: _Processor = _Processor()
    network_info: _Network = _Network()
    gpu_info: _Gpus = _Gpus()
    instance_storage_info: _Storage | None = None
    ebs_info: _Ebs = _Ebs()
    hypervisor: str = ""
    supported_virtualization_types: tuple[str, ...] = ("hvm",)


class _Ec2(Struct, frozen=True, rename="pascal"):
    instance_types: tuple[_Ec2Type, ...] = ()


def _of_ec2(document: object) -> InstanceTypes:
    try:
        found = msgspec.convert(document, _Ec2)
    except msgspec.ValidationError as error:
        raise _fault(error) from None
    usable = (one for one in found.instance_types if "hvm" in one.supported_virtualization_types)
    return InstanceTypes(instance_types=tuple(_ec2_type(one) for one in usable if _architecture(one)))


def _fault(error: msgspec.ValidationError) -> InputError:
    text, _, where = str(error).partition(" - at `$")
    return InputError(text[:1].lower() + text[1:], place=Place(field=where.rstrip("`").lstrip(".")))


def _architecture(one: _Ec2Type) -> str:
    known = (_ARCHITECTURES.get(name) for name in one.processor_info.supported_architectures)
    return next(filter(None, known), "")


def _ec2_type(one: _Ec2Type) -> WrittenType:
    memory = one.memory_info.size - (_ARM_RESERVE if _architecture(one) == "arm64" else 0)
    memory -= ceil(memory * VM_OVERHEAD)
    pods = _pods(one.network_info)
    milli = one.v_cpu_info.default_v_cpus * 1000
    capacity: ResourceList = {
        "cpu": str(one.v_cpu_info.default_v_cpus),
        "memory": f"{memory}Mi",
        "ephemeral-storage": DISK,
        "pods": str(pods),
    }
    for maker, resource in (("NVIDIA", "nvidia.com/gpu"), ("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi")):
        count = sum(gpu.count for gpu in one.gpu_info.gpus if gpu.manufacturer == maker)
        if count:
            capacity[resource] = str(count)
    kept = sum(int((min(milli, end) - start) * share) for start, end, share in _CPU_SHARES if milli >= start)
    return WrittenType(
        name=one.instance_type,
        labels=dict(_ec2_labels(one)),
        capacity=capacity,
        overhead={
            "cpu": f"{kept}m",
            "memory": f"{11 * pods + 255 + EVICTION_MEMORY}Mi",
            "ephemeral-storage": "3Gi",
        },
    )


def _pods(network: _Network) -> int:
    """Of as many addresses as the network interfaces have, one for each of them less."""
    cards = network.network_cards
    interfaces = network.maximum_network_interfaces
    if network.default_network_card_index < len(cards):
        interfaces = cards[network.default_network_card_index].maximum_network_interfaces
    return interfaces * (network.ipv4_addresses_per_interface - 1) + 2 if interfaces else 110


def _ec2_labels(one: _Ec2Type) -> Iterator[tuple[str, str]]:
    yield ARCH, _architecture(one)
    yield OS, "linux"
    yield from name_labels(one.instance_type)
    yield f"{AWS}/instance-cpu", str(one.v_cpu_info.default_v_cpus)
    yield f"{AWS}/instance-memory", str(one.memory_info.size)
    yield f"{AWS}/instance-hypervisor", one.hypervisor
    encrypts = str(one.network_info.encryption_in_transit_supported).lower()
    yield f"{AWS}/instance-encryption-in-transit-supported", encrypts
    if one.processor_info.manufacturer:
        yield f"{AWS}/instance-cpu-manufacturer", _lower(one.processor_info.manufacturer)
    if one.processor_info.sustained_clock_speed_in_ghz:
        speed = round(one.processor_info.sustained_clock_speed_in_ghz * 1000)
        yield f"{AWS}/instance-cpu-sustained-clock-speed-mhz", str(speed)
    storage, ebs = one.instance_storage_info, one.ebs_info
    if storage is not None and storage.size is not None and storage.nvme_support != "unsupported":
        yield f"{AWS}/instance-local-nvme", str(storage.size)
    if ebs.ebs_optimized_info is not None and ebs.ebs_optimized_support == "default":
        yield f"{AWS}/instance-ebs-bandwidth", str(ebs.ebs_optimized_info.bandwidth)
    if len(one.gpu_info.gpus) == 1:
        gpu = one.gpu_info.gpus[0]
        yield f"{AWS}/instance-gpu-name", _lower(gpu.name)
        yield f"{AWS}/instance-gpu-manufacturer", _lower(gpu.manufacturer)
        yield f"{AWS}/instance-gpu-count", str(gpu.count)
        if gpu.memory_info is not None:
            yield f"{AWS}/instance-gpu-memory", str(gpu.memory_info.size)


def name_labels(name: str) -> Iterator[tuple[str, str]]:
    """What the name of an EC2 instance type says: `m6i.large`."""
    family, dot, size = name.partition(".")
    found = _NAME.match(name)
    if found is not None:
        yield f"{AWS}/instance-category", found["category"]
        yield f"{AWS}/instance-generation", found["generation"]
    if dot and "." not in size:
        yield f"{AWS}/instance-family", family
        yield f"{AWS}/instance-size", size


def _lower(text: str) -> str:
    return text.lower().replace(" ", "-")


# --- kwok


class _KwokRequirement(Struct, frozen=True):
    key: str = ""
    values: tuple[str, ...] = ()


class _KwokOffering(Struct, frozen=True):
    requirements: tuple[_KwokRequirement, ...] = msgspec.field(name="Requirements", default=())
    price: float | None = msgspec.field(name="Price", default=None)
    available: bool = msgspec.field(name="Available", default=True)

    def value(self, key: str) -> str:
        return next((one.values[0] for one in self.requirements if one.key.endswith(key) and one.values), "")


class _KwokType(Struct, frozen=True, kw_only=True):
    name: str
    architecture: str = ""
    operating_systems: tuple[str, ...] = msgspec.field(name="operatingSystems", default=())
    resources: ResourceList = {}
    offerings: tuple[_KwokOffering, ...] = ()


def _of_kwok(document: object) -> InstanceTypes:
    try:
        found = msgspec.convert(document, tuple[_KwokType, ...])
    except msgspec.ValidationError as error:
        raise _fault(error) from None
    return InstanceTypes(
        instance_types=tuple(
            WrittenType(
                name=one.name,
                labels={ARCH: one.architecture, OS: one.operating_systems},
                capacity=one.resources,
                overhead={"cpu": "100m", "memory": "10Mi"},
                offerings=tuple(
                    WrittenOffering(
                        zone=offering.value(ZONE),
                        capacity_type=offering.value("capacity-type"),
                        price=offering.price,
                        available=offering.available,
                    )
                    for offering in one.offerings
                ),
            )
            for one in found
        )
    )
