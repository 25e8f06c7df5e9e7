"""A file of instance types, since no cluster holds them.

    apiVersion: kschedx/v1
    kind: InstanceTypes
    instanceTypes:
    - name: m6i.large
      labels: {kubernetes.io/arch: amd64, kubernetes.io/os: linux, karpenter.k8s.aws/instance-family: m6i}
      capacity: {cpu: "2", memory: 7577Mi, pods: "29", ephemeral-storage: 20Gi}
      overhead: {cpu: 70m, memory: 574Mi}
      offerings:
      - {zone: eu-west-1a, capacityType: on-demand, price: 0.107}
      - {zone: eu-west-1a, capacityType: spot, available: false}

    - name: p4d.24xlarge
      capacity: {cpu: "96", memory: 1152Gi, pods: "250"}
      resourceSlices:
      - {driver: gpu.nvidia.com, pool: {name: gpus}, devices: [{name: gpu-0, attributes: {model: {string: A100}}}]}

A type without offerings is taken to be offered wherever its pool's node class has subnets. A label may have several
values. `resourceSlices` are the devices that a DRA driver publishes on a node of the type, which Karpenter allocates
with --ignore-dra-requests=false: once one type has some, those without have none. `kschedx instance-types` makes such a
file of what the clouds publish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from kschedx.errors import InputError, Place, join_fields, nearest
from kschedx.karpenter.devices import template_slices
from kschedx.karpenter.instance_types import InstanceType, Offering, effective_overlays, overlaid
from kschedx.karpenter.node_claims import pool_requirements
from kschedx.karpenter.requirements import (
    ARCH,
    AWS_LABELS,
    AZURE_LABELS,
    CAPACITY_TYPES,
    EKS_LABELS,
    FLEX,
    OS,
    RESERVATION_ID,
    RESERVATION_INTERRUPTIBLE,
    RESERVATION_TYPE,
    RESERVED,
    LabelRequirement,
    Requirements,
    amounts_of,
    subtract,
    well_known,
)
from kschedx.karpenter.scheduler import KnownTypes
from kschedx.kube.autoscalers import (
    AWS,
    CAPACITY_TYPE,
    EKS_AUTO_MODE,
    NODE_CLASSES,
    NODE_POOL,
    NodeClaim,
    NodeClass,
    NodeOverlay,
    NodePool,
)
from kschedx.kube.conditions import TimedCondition, condition_text
from kschedx.kube.devices import ResourceSliceSpec
from kschedx.kube.documents import API_VERSION
from kschedx.kube.names import INSTANCE_TYPE, REGION, ZONE
from kschedx.kube.quantity import ResourceList
from kschedx.kube.types import Labels
from kschedx.patterns import lazy_pattern
from kschedx.snapshot.snapshot import Snapshot
from kschedx.wording import list_names

_KIND = "InstanceTypes"
_T = TypeVar("_T")


class _StrictStruct(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, forbid_unknown_fields=True):
    pass


class WrittenOffering(_StrictStruct, frozen=True, kw_only=True):
    """The zone and capacity type in which an instance type is available, and its price per hour."""

    zone: str
    capacity_type: Literal["on-demand", "spot", "reserved"] = "on-demand"
    price: Annotated[float, Meta(ge=0)] | None = None
    available: bool = True


class WrittenType(_StrictStruct, frozen=True, kw_only=True):
    """An instance type: the capacity of its nodes, and the `overhead` that is not allocatable."""

    name: str
    capacity: ResourceList
    labels: dict[str, str | tuple[str, ...]] = {}
    overhead: ResourceList = {}
    offerings: tuple[WrittenOffering, ...] = ()
    node_pools: tuple[str, ...] = ()  # the only pools that can use it; empty for all
    resource_slices: tuple[ResourceSliceSpec, ...] = ()
    """The devices that a DRA driver publishes on its nodes, as `spec` of ResourceSlices."""


class InstanceTypes(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """All instance types of the cloud that its pools may use."""

    api_version: str = API_VERSION
    kind: str = _KIND
    instance_types: tuple[WrittenType, ...]


def read_catalogue(document: object) -> InstanceTypes:
    """Raises `InputError` with the invalid field."""
    types = _convert(document, InstanceTypes)
    if types.api_version != API_VERSION or types.kind != _KIND:
        type_text = f"{types.api_version} {types.kind}"
        raise InputError(f"found {type_text}, expected {API_VERSION} {_KIND}", place=Place(field="kind"))
    names: set[str] = set()
    for index, written_type in enumerate(types.instance_types):
        place = Place(field=f"instanceTypes[{index}]")
        if written_type.name in names:
            raise InputError(f'there are two instance types "{written_type.name}"', place=place)
        names.add(written_type.name)
        for field, resources in (("capacity", written_type.capacity), ("overhead", written_type.overhead)):
            with place, Place(field=field):
                amounts_of(resources)
        lacking = [name for name in ("cpu", "memory") if name not in written_type.capacity]
        if lacking:
            field = join_fields(place.field, "capacity")
            raise InputError(f"an instance type needs {' and '.join(lacking)}", place=Place(field=field))
    return types


_FIELDS: Mapping[str, type[Struct]] = {
    "": InstanceTypes,
    "instanceTypes[]": WrittenType,
    "instanceTypes[].offerings[]": WrittenOffering,
}
_UNKNOWN = lazy_pattern(r"Object contains unknown field `(?P<field>[^`]*)`")
_NO_CAPACITY_TYPE = lazy_pattern(r"Invalid enum value '(?P<value>.*)'")


def _convert(document: object, record: type[_T]) -> _T:
    """Raises `InputError` with the invalid field."""
    try:
        return msgspec.convert(document, record)
    except msgspec.ValidationError as error:
        raise _convert_error(str(error)) from None


def _convert_error(message: str) -> InputError:
    """Convert msgspec's message: the place becomes a field path with the nearest field."""
    text, _, where = message.partition(" - at `$")
    field = where.rstrip("`").lstrip(".")
    if (wrong := _NO_CAPACITY_TYPE.fullmatch(text)) is not None:
        hint = nearest(wrong["value"], CAPACITY_TYPES) or f"one of {', '.join(CAPACITY_TYPES)}"
        return InputError(f'"{wrong["value"]}" is not a capacity type', place=Place(field=field), hint=hint)
    unknown = _UNKNOWN.fullmatch(text)
    if unknown is None:
        return InputError(text[:1].lower() + text[1:], place=Place(field=field))
    record = _FIELDS.get(re.sub(r"\[\d+\]", "[]", field), InstanceTypes)
    known = [field.encode_name for field in msgspec.structs.fields(record)]
    name = unknown["field"]
    hint = nearest(name, known) or f"known: {', '.join(known)}"
    return InputError(f'"{name}" is not a field', place=Place(field=join_fields(field, name)), hint=hint)


def read_instance_types(
    catalogue: InstanceTypes,
    pool: str,
    zones: Iterable[str],
    known_labels: frozenset[str],
    reserved: Mapping[str, tuple[Offering, ...]],
) -> tuple[InstanceType, ...]:
    """Return the types that a pool can use. A missing well-known label means that the type's nodes lack it. `reserved`:
    type to its reservations for the pool."""
    places = tuple(zones)
    knows_devices = any(written_type.resource_slices for written_type in catalogue.instance_types)
    instance_types: list[InstanceType] = []
    for written_type in catalogue.instance_types:
        if not written_type.node_pools or pool in written_type.node_pools:
            bought = _offerings(written_type, places)
            kept = _kept(reserved.get(written_type.name, ()), bought)
            known_type = _instance_type(written_type, (*bought, *kept), known_labels)
            slices = template_slices(written_type.resource_slices) if knows_devices else None
            instance_types.append(msgspec.structs.replace(known_type, resource_slices=slices))
    return tuple(instance_types)


def _kept(reserved: Iterable[Offering], bought: Sequence[Offering]) -> Iterator[Offering]:
    """Yield reserved capacity in the type's zones. Its price is a ten-millionth of the normal one, so that types keep
    their order."""
    zones = {offering.zone for offering in bought}
    prices = (offering.price for offering in bought if offering.capacity_type == "on-demand")
    price = next((price for price in prices if price is not None), None)
    for offering in reserved:
        if offering.zone in zones:
            yield msgspec.structs.replace(offering, price=None if price is None else price / _FREE)


_FREE = 10_000_000


def _offerings(written_type: WrittenType, zones: Iterable[str]) -> tuple[Offering, ...]:
    if not written_type.offerings:
        return _everywhere(zones)
    return tuple(
        Offering(
            zone=offering.zone,
            capacity_type=offering.capacity_type,
            price=offering.price,
            is_available=offering.available,
        )
        for offering in written_type.offerings
    )


def _everywhere(zones: Iterable[str]) -> tuple[Offering, ...]:
    return tuple(Offering(zone=zone, capacity_type=kind) for zone in zones for kind in ("on-demand", "spot"))


def _instance_type(
    written: WrittenType, offerings: tuple[Offering, ...], known_labels: frozenset[str], seen_on: str = ""
) -> InstanceType:
    """`known_labels` have a meaning even if they are missing."""
    values = {key: (text,) if isinstance(text, str) else text for key, text in written.labels.items()}
    values |= {key.replace(AWS, EKS_AUTO_MODE): those for key, those in values.items() if key in AWS_LABELS}
    available = [offering for offering in offerings if offering.is_available]
    values[INSTANCE_TYPE] = (written.name,)
    values[ZONE] = tuple(offering.zone for offering in available)
    values[CAPACITY_TYPE] = tuple(offering.capacity_type for offering in available)
    for key in sorted({key for offering in available for key in offering.labels}):
        values[key] = tuple(offering.labels[key] for offering in available if key in offering.labels)
    if FLEX in known_labels:
        values.setdefault(FLEX, (str("-flex" in written.name.partition(".")[0]).lower(),))
    missing = (LabelRequirement.of(key, "DoesNotExist") for key in known_labels if key not in values)
    return InstanceType(
        name=written.name,
        requirements=Requirements((*(LabelRequirement.of(key, "In", some) for key, some in values.items()), *missing)),
        capacity=amounts_of(written.capacity),
        overhead=amounts_of(written.overhead),
        offerings=offerings,
        seen_on=seen_on,
    )


# Instance types in the clouds' own formats:
# - `aws ec2 describe-instance-types`: {"InstanceTypes": [...]}; allocatable as karpenter-provider-aws computes it with
#   its defaults (pkg/providers/instancetype/types.go), for AL2023 and Bottlerocket without prefix delegation.
# - The instance types of Karpenter's kwok provider (kwok/cloudprovider/instance_types.json).

_VM_OVERHEAD = 0.075  # the fraction of memory that the hypervisor uses (--vm-memory-overhead-percent)
_EVICTION_MEMORY = 100  # the kubelet's eviction threshold in Mi
_DISK = "20Gi"
_ARM_RESERVE = 64  # Mi of unusable memory on Graviton
_ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
_NAME = lazy_pattern(r"(?P<category>[a-z]+)(?:-[0-9]+tb)?(?P<generation>[0-9]+).*\.")
_CPU_SHARES = ((0, 1000, 0.06), (1000, 2000, 0.01), (2000, 4000, 0.005), (4000, 1 << 31, 0.0025))
"""The fraction of each range of milli-cpus that is reserved for the kubelet."""


def any_catalogue(document: object) -> InstanceTypes:
    """Read a catalogue or a cloud's own format. Raises `InputError`."""
    if isinstance(document, Mapping) and document.get("kind") == _KIND:
        return read_catalogue(document)
    if isinstance(document, Mapping) and isinstance(document.get("InstanceTypes"), list):
        return _ec2_types(document)
    first = document[0] if isinstance(document, list) and document else None
    if isinstance(first, Mapping) and "operatingSystems" in first:
        return _kwok_types(document)
    raise InputError(
        "holds no instance types",
        hint="allowed are a catalog, see `kschedx schema InstanceTypes`, and what "
        "`aws ec2 describe-instance-types` prints",
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


def _ec2_types(document: object) -> InstanceTypes:
    ec2 = _convert(document, _Ec2)
    usable = (ec2_type for ec2_type in ec2.instance_types if "hvm" in ec2_type.supported_virtualization_types)
    return InstanceTypes(instance_types=tuple(_ec2_type(ec2_type) for ec2_type in usable if _architecture(ec2_type)))


def _architecture(ec2_type: _Ec2Type) -> str:
    known = (_ARCHITECTURES.get(name) for name in ec2_type.processor_info.supported_architectures)
    return next(filter(None, known), "")


def _ec2_type(ec2_type: _Ec2Type) -> WrittenType:
    memory = ec2_type.memory_info.size - (_ARM_RESERVE if _architecture(ec2_type) == "arm64" else 0)
    memory -= ceil(memory * _VM_OVERHEAD)
    pods = _pods(ec2_type.network_info)
    milli = ec2_type.v_cpu_info.default_v_cpus * 1000
    capacity: ResourceList = {
        "cpu": str(ec2_type.v_cpu_info.default_v_cpus),
        "memory": f"{memory}Mi",
        "ephemeral-storage": _DISK,
        "pods": str(pods),
    }
    for maker, resource in (("NVIDIA", "nvidia.com/gpu"), ("AMD", "amd.com/gpu"), ("Habana", "habana.ai/gaudi")):
        count = sum(gpu.count for gpu in ec2_type.gpu_info.gpus if gpu.manufacturer == maker)
        if count:
            capacity[resource] = str(count)
    kept = sum(int((min(milli, end) - start) * share) for start, end, share in _CPU_SHARES if milli >= start)
    return WrittenType(
        name=ec2_type.instance_type,
        labels=dict(_ec2_labels(ec2_type)),
        capacity=capacity,
        overhead={
            "cpu": f"{kept}m",
            "memory": f"{11 * pods + 255 + _EVICTION_MEMORY}Mi",
            "ephemeral-storage": "3Gi",
        },
    )


def _pods(network: _Network) -> int:
    """One pod for each IP address of the network interfaces, except their primary ones."""
    cards = network.network_cards
    interfaces = network.maximum_network_interfaces
    if network.default_network_card_index < len(cards):
        interfaces = cards[network.default_network_card_index].maximum_network_interfaces
    return interfaces * (network.ipv4_addresses_per_interface - 1) + 2 if interfaces else 110


def _ec2_labels(ec2_type: _Ec2Type) -> Iterator[tuple[str, str]]:
    yield ARCH, _architecture(ec2_type)
    yield OS, "linux"
    yield from _name_labels(ec2_type.instance_type)
    yield f"{AWS}/instance-cpu", str(ec2_type.v_cpu_info.default_v_cpus)
    yield f"{AWS}/instance-memory", str(ec2_type.memory_info.size)
    yield f"{AWS}/instance-hypervisor", ec2_type.hypervisor
    encrypts = str(ec2_type.network_info.encryption_in_transit_supported).lower()
    yield f"{AWS}/instance-encryption-in-transit-supported", encrypts
    if ec2_type.processor_info.manufacturer:
        yield f"{AWS}/instance-cpu-manufacturer", _lower(ec2_type.processor_info.manufacturer)
    if ec2_type.processor_info.sustained_clock_speed_in_ghz:
        speed = round(ec2_type.processor_info.sustained_clock_speed_in_ghz * 1000)
        yield f"{AWS}/instance-cpu-sustained-clock-speed-mhz", str(speed)
    storage, ebs = ec2_type.instance_storage_info, ec2_type.ebs_info
    if storage is not None and storage.size is not None and storage.nvme_support != "unsupported":
        yield f"{AWS}/instance-local-nvme", str(storage.size)
    if ebs.ebs_optimized_info is not None and ebs.ebs_optimized_support == "default":
        yield f"{AWS}/instance-ebs-bandwidth", str(ebs.ebs_optimized_info.bandwidth)
    if len(ec2_type.gpu_info.gpus) == 1:
        gpu = ec2_type.gpu_info.gpus[0]
        yield f"{AWS}/instance-gpu-name", _lower(gpu.name)
        yield f"{AWS}/instance-gpu-manufacturer", _lower(gpu.manufacturer)
        yield f"{AWS}/instance-gpu-count", str(gpu.count)
        if gpu.memory_info is not None:
            yield f"{AWS}/instance-gpu-memory", str(gpu.memory_info.size)


def _name_labels(name: str) -> Iterator[tuple[str, str]]:
    """Yield the labels that follow from the name of an EC2 instance type: `m6i.large`."""
    family, dot, size = name.partition(".")
    match = _NAME.match(name)
    if match is not None:
        yield f"{AWS}/instance-category", match["category"]
        yield f"{AWS}/instance-generation", match["generation"]
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
        named = (requirement.values for requirement in self.requirements if requirement.key.endswith(key))
        return next((values[0] for values in named if values), "")


class _KwokType(Struct, frozen=True, kw_only=True):
    name: str
    architecture: str = ""
    operating_systems: tuple[str, ...] = msgspec.field(name="operatingSystems", default=())
    resources: ResourceList = {}
    offerings: tuple[_KwokOffering, ...] = ()


def _kwok_types(document: object) -> InstanceTypes:
    kwok_types = _convert(document, tuple[_KwokType, ...])
    return InstanceTypes(
        instance_types=tuple(
            WrittenType(
                name=kwok_type.name,
                labels={ARCH: kwok_type.architecture, OS: kwok_type.operating_systems},
                capacity=kwok_type.resources,
                overhead={"cpu": "100m", "memory": "10Mi"},
                offerings=tuple(
                    _convert(
                        {
                            "zone": offering.value(ZONE),
                            "capacityType": offering.value("capacity-type"),
                            "price": offering.price,
                            "available": offering.available,
                        },
                        WrittenOffering,
                    )
                    for offering in kwok_type.offerings
                ),
            )
            for kwok_type in kwok_types
        )
    )


# The instance types that a cluster shows: those of its nodes and NodeClaims.

_OF_THE_NODE = frozenset({"topology.k8s.aws/zone-id", *(
    f"{domain}/{name}"
    for domain in (AWS, EKS_AUTO_MODE)
    for name in (
        "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
        "instance-tenancy", "placement-group-id", "placement-group-partition",
    )
)})  # fmt: skip
"""Labels of a node that may differ between nodes of its type."""
_OF_THE_TYPE = (AWS_LABELS | AZURE_LABELS | EKS_LABELS | {ARCH, OS, REGION}) - _OF_THE_NODE
_OF_RESERVATIONS = frozenset({RESERVATION_ID, RESERVATION_TYPE, RESERVATION_INTERRUPTIBLE})
"""Labels that vary between nodes of a type because of reservations."""


def known_types(snapshot: Snapshot, pool: NodePool, catalogue: InstanceTypes | None) -> KnownTypes:
    """Return the types of the catalogue, or the types of existing nodes. The latter are complete only if the pool
    requires no others."""
    node_class = node_class_of(snapshot, pool)
    zones = node_class.zones if node_class is not None else ()
    wanted, seen = pool_requirements(pool), {zone for zone in snapshot.cluster.label(ZONE).values if zone}
    allowed = wanted.requirement(ZONE)
    places = zones or tuple(sorted(seen | ({*allowed.values} if allowed.operator == "In" else set())))
    group = pool.spec.template.spec.node_class_ref.api_group
    labels = (well_known(group) & (AWS_LABELS | AZURE_LABELS | EKS_LABELS)) - (_OF_THE_NODE - _OF_RESERVATIONS)
    reserved = _reservations(node_class, places)
    if catalogue is not None:
        types, are_all = read_instance_types(catalogue, pool.name, places, labels, reserved), True
    else:
        types = tuple(_observed_types(snapshot, places, labels, reserved))
        requirement = wanted.requirement(INSTANCE_TYPE)
        has_others = requirement.operator != "In" or requirement.values - {known_type.name for known_type in types}
        are_all = (bool(zones) and not has_others) or bool(unmet_requirements(snapshot, pool))
    types = overlaid(types, pool, effective_overlays(snapshot.of(NodeOverlay)), well_known(group))
    return KnownTypes(
        zones=places,
        zones_are_all=bool(zones),
        types=types,
        are_all=are_all,
        has_no_reservations=bool(zones) and not reserved,
    )


_OF_EVERY_TYPE = (ARCH, OS, INSTANCE_TYPE, ZONE, CAPACITY_TYPE)


def unmet_requirements(snapshot: Snapshot, pool: NodePool) -> dict[str, str]:
    """Return the keys of a pool's own requirements that no instance type can meet, and why: they exclude each other, or
    the node class has no subnet in a required zone."""
    requirements, node_class = pool_requirements(pool), node_class_of(snapshot, pool)
    zones = () if node_class is None else node_class.zones
    reference = pool.spec.template.spec.node_class_ref
    unmet: dict[str, str] = {}
    for key in _OF_EVERY_TYPE:
        requirement = requirements.requirement(key)
        if requirement.operator == "DoesNotExist":
            unmet[key] = f"its requirements of {key} exclude each other"
        elif key == ZONE and zones and not any(map(requirement.has, zones)):
            wanted = list_names(sorted(requirement.values), 3, conjunction="or")
            subnets = f"{reference.kind} {reference.name} has subnets in {list_names(zones, 3, conjunction='and')} only"
            negation = "not " if requirement.is_complement else ""
            unmet[key] = f"it requires {key} {negation}{wanted}, and {subnets}"
    return unmet


def node_class_of(snapshot: Snapshot, pool: NodePool) -> NodeClass | None:
    reference = pool.spec.template.spec.node_class_ref
    record = NODE_CLASSES.get((reference.api_group, reference.kind))
    if record is None:
        return None
    return next((node_class for node_class in snapshot.of(record) if node_class.metadata.name == reference.name), None)


_UNHEALTHY_DEPENDENTS = "UnhealthyDependents"


def node_class_faults(snapshot: Snapshot, pool: NodePool) -> tuple[TimedCondition, ...]:
    """Return the conditions of a pool's node class that are not true; `Ready` only if no other gives the reason."""
    node_class = node_class_of(snapshot, pool)
    conditions = node_class.status.conditions if node_class is not None else ()
    faults = tuple(condition for condition in conditions if condition.status != "True")
    return tuple(fault for fault in faults if fault.type != "Ready") or faults


def unready_text(snapshot: Snapshot, pool: NodePool) -> str:
    """Return why a NodePool is not ready, with the faults of its node class: `NodeClassNotReady: ...; EC2NodeClass
    SubnetsReady=False (SubnetsNotFound): no subnet matches`. Without them, its own other conditions tell them."""
    said, kind = pool.unready_condition, pool.spec.template.spec.node_class_ref.kind
    text = ": ".join(filter(None, (said.reason, said.message))) if said is not None else ""
    faults = [f"{kind} {condition_text(fault)}" for fault in node_class_faults(snapshot, pool)]
    faults = faults or [*map(condition_text, pool.unready_details)]
    if faults and said is not None and said.reason == _UNHEALTHY_DEPENDENTS:
        text = ""  # the message only names these conditions
    return "; ".join(filter(None, (text, *faults)))


def _reservations(node_class: NodeClass | None, zones: Sequence[str]) -> dict[str, tuple[Offering, ...]]:
    """Type to its reservations for the class's nodes; their free capacity is unknown."""
    offerings: dict[str, tuple[Offering, ...]] = {}
    for reservation in node_class.status.capacity_reservations if node_class is not None else ():
        zone, name = reservation.availability_zone, reservation.instance_type
        if zone in zones and reservation.state != "expiring":
            labels = {
                RESERVATION_ID: reservation.id,
                RESERVATION_TYPE: reservation.reservation_type,
                RESERVATION_INTERRUPTIBLE: str(reservation.interruptible).lower(),
            }
            offering = Offering(zone=zone, capacity_type=RESERVED, labels=labels)
            offerings[name] = (*offerings.get(name, ()), offering)
    return offerings


def _observed_types(
    snapshot: Snapshot,
    zones: Sequence[str],
    known_labels: frozenset[str],
    reserved: Mapping[str, tuple[Offering, ...]],
) -> Iterator[InstanceType]:
    """Yield the first node or claim of each type; Karpenter's own come first, because they have more labels."""
    done: set[str] = set()
    offerings = _everywhere(zones)
    for where, labels, capacity, allocatable in _examples(snapshot):
        name = labels[INSTANCE_TYPE]
        if name in done:
            continue
        done.add(name)
        own = {key: value for key, value in labels.items() if key in _OF_THE_TYPE}
        is_karpenters = NODE_POOL in labels
        if not is_karpenters and (AWS_LABELS | EKS_LABELS) & known_labels:
            own |= dict(_name_labels(name))
        kept = subtract(amounts_of(capacity), amounts_of(allocatable))
        yield _instance_type(
            WrittenType(
                name=name,
                labels=dict(own),
                capacity=capacity,
                overhead={key: str(amount) for key, amount in kept.items()},
            ),
            (*offerings, *reserved.get(name, ())),
            known_labels if is_karpenters else frozenset(),
            where,
        )


def _examples(snapshot: Snapshot) -> Iterator[tuple[str, Labels, ResourceList, ResourceList]]:
    nodes = [node for node in snapshot.cluster.nodes if INSTANCE_TYPE in node.metadata.labels]
    for node in nodes:
        if NODE_POOL in node.metadata.labels:
            yield f"node/{node.name}", node.metadata.labels, node.status.capacity, node.status.allocatable
    for claim in snapshot.of(NodeClaim):
        if INSTANCE_TYPE in claim.metadata.labels and claim.status.capacity:
            labels = {NODE_POOL: "", **claim.metadata.labels}
            yield f"nodeclaim/{claim.name}", labels, claim.status.capacity, claim.status.allocatable
    for node in nodes:
        if NODE_POOL not in node.metadata.labels:
            yield f"node/{node.name}", node.metadata.labels, node.status.capacity, node.status.allocatable
