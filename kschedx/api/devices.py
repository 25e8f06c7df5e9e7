"""Typed slim records of resource.k8s.io: devices, who claims them, and what was allocated.

Served as v1, v1beta2 and v1beta1 (DeviceTaintRule: v1beta2 and v1alpha3). `defaulted_*` turn an object of any of them
into what the API server would return as v1. Upstream: staging/src/k8s.io/api/resource, pkg/apis/resource (defaults,
conversion).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum, unique
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.integers import Int64
from kschedx.api.quantity import Written, parse_quantity
from kschedx.api.selectors import NodeSelector
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import ObjectMeta
from kschedx.errors import InputError, Place

_FLAT = "resource.k8s.io/v1beta1"
"""The version whose devices and requests have a shape of their own."""

MAX_DEVICES_OF_CLAIM = 32
"""AllocationResultsMaxSize."""
MAX_ALTERNATIVES = 8
"""FirstAvailableDeviceRequestMaxSize."""
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that kube-scheduler made for a pod's extended resources."""


@unique
class AllocationMode(StrEnum):
    EXACT_COUNT = "ExactCount"
    ALL = "All"


# --- what drivers publish


class DeviceAttribute(Struct, frozen=True, kw_only=True):
    """One of the fields is set; lists need the gate DRAListTypeAttributes."""

    int_value: Int64 | None = field(default=None, name="int")
    bool_value: bool | None = field(default=None, name="bool")
    string: str | None = None
    version: str | None = None
    ints: tuple[Int64, ...] | None = None
    bools: tuple[bool, ...] | None = None
    strings: tuple[str, ...] | None = None
    versions: tuple[str, ...] | None = None


class CapacityRequestPolicyRange(Struct, frozen=True, kw_only=True):
    min: Written | None = None
    max: Written | None = None
    step: Written | None = None


class CapacityRequestPolicy(Struct, frozen=True, kw_only=True, rename="camel"):
    default: Written | None = None
    valid_values: tuple[Written, ...] = ()
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct, frozen=True, kw_only=True, rename="camel"):
    value: Written = "0"
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True, kw_only=True):
    value: Written = "0"


class CounterSet(Struct, frozen=True, kw_only=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Struct, frozen=True, kw_only=True, rename="camel"):
    counter_set: str = ""
    counters: dict[str, Counter] = {}


class DeviceTaint(Struct, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""

    def __str__(self) -> str:
        return f"{self.key}={self.value}:{self.effect}" if self.value else f"{self.key}:{self.effect}"


class NodeAllocatableResourceMapping(Struct, frozen=True, kw_only=True, rename="camel"):
    capacity_key: str | None = None
    allocation_multiplier: Written | None = None


class BasicDevice(Struct, frozen=True, kw_only=True, rename="camel"):
    attributes: dict[str, DeviceAttribute] = {}
    """By qualified name; one without a domain is the driver's own."""
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[DeviceTaint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
    node_allocatable_resource_mappings: dict[str, NodeAllocatableResourceMapping] = {}


class Device(BasicDevice, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    basic: BasicDevice | None = None
    """v1beta1: everything but the name is in here."""


class ResourcePool(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    devices: tuple[Device, ...] = ()
    per_device_node_selection: bool | None = None
    shared_counters: tuple[CounterSet, ...] = ()


class ResourceSlice(Struct, frozen=True, kw_only=True):
    api_version: str = field(default="", name="apiVersion")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()

    @property
    def name(self) -> str:
        return self.metadata.name


class DeviceTaintSelector(Struct, frozen=True, kw_only=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()


# --- what is asked for


class CELDeviceSelector(Struct, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Struct, frozen=True, kw_only=True):
    cel: CELDeviceSelector | None = None


class DeviceClassSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: DeviceClassSpec = DeviceClassSpec()

    @property
    def name(self) -> str:
        return self.metadata.name


class DeviceToleration(Struct, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: DeviceTaint) -> bool:
        """resourceclaim.ToleratesTaint; what is empty matches all, and no operator is Equal."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


class CapacityRequirements(Struct, frozen=True, kw_only=True):
    requests: dict[str, Written] = {}


class ExactDeviceRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceSubRequest(Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[DeviceToleration, ...] = ()
    capacity: CapacityRequirements | None = None


class DeviceRequest(ExactDeviceRequest, frozen=True, kw_only=True, rename="camel"):
    """`exactly` or `first_available`; v1beta1 has the fields of the former in the request itself."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Struct, frozen=True, kw_only=True, rename="camel"):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Struct, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Struct, frozen=True, kw_only=True):
    """Only kube-controller-manager reads it, to make claims for new pods."""

    api_version: str = field(default="", name="apiVersion")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()

    @property
    def key(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"


# --- what was allocated


class DeviceRequestAllocationResult(Struct, frozen=True, kw_only=True, rename="camel"):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    share_id: str | None = field(default=None, name="shareID")
    consumed_capacity: dict[str, Written] | None = None


class DeviceAllocationResult(Struct, frozen=True, kw_only=True):
    results: tuple[DeviceRequestAllocationResult, ...] = ()


class AllocationResult(Struct, frozen=True, kw_only=True, rename="camel"):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Struct, frozen=True, kw_only=True, rename="camel"):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class Condition(Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""


class AllocatedDeviceStatus(Struct, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()

    def is_true(self, condition: str) -> bool:
        """Whether the first condition of that type is True (meta.IsStatusConditionTrue)."""
        found = next((own for own in self.conditions if own.type == condition), None)
        return found is not None and found.status == "True"


class ResourceClaimStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[AllocatedDeviceStatus, ...] = ()


class ResourceClaim(Struct, frozen=True, kw_only=True):
    api_version: str = field(default="", name="apiVersion")
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


Request = TypeVar("Request", ExactDeviceRequest, DeviceSubRequest)


# --- as the API server returns them


def defaulted_claim(claim: ResourceClaim) -> ResourceClaim:
    """The claim as v1 with its defaults. Raises `InputError` where a quantity is none."""
    spec = _defaulted_spec(claim.spec, "spec", flat=claim.api_version == _FLAT)
    if claim.status.allocation is not None:
        if claim.status.allocation.allocation_timestamp is not None:
            _check_time("status.allocation.allocationTimestamp", claim.status.allocation.allocation_timestamp)
        for index, result in enumerate(claim.status.allocation.devices.results):
            path = f"status.allocation.devices.results[{index}].consumedCapacity"
            _check_all(path, result.consumed_capacity or {})
    return replace(claim, spec=spec)


def defaulted_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    """As `defaulted_claim`."""
    spec = _defaulted_spec(template.spec.spec, "spec.spec", flat=template.api_version == _FLAT)
    return replace(template, spec=ResourceClaimTemplateSpec(spec=spec))


def _defaulted_spec(spec: ResourceClaimSpec, field: str, *, flat: bool) -> ResourceClaimSpec:
    requests = tuple(_defaulted_request(request, flat=flat) for request in spec.devices.requests)
    _check_requested(requests, field)
    return ResourceClaimSpec(devices=replace(spec.devices, requests=requests))


def defaulted_slice(published: ResourceSlice) -> ResourceSlice:
    """The slice as v1. Raises `InputError` where a quantity is none."""
    spec = published.spec
    if published.api_version == _FLAT:
        devices = tuple(_flattened(device) for device in spec.devices)
        published = replace(published, spec=replace(spec, devices=devices))
    for field_, written in _published(published.spec):
        _check(field_, written)
    return published


def _flattened(device: Device) -> Device:
    basic = device.basic or BasicDevice()
    return Device(name=device.name, **{name: getattr(basic, name) for name in BasicDevice.__struct_fields__})


def _defaulted_request(request: DeviceRequest, *, flat: bool) -> DeviceRequest:
    exactly = request.exactly
    if flat:
        exactly = None if request.first_available else _main_fields(request)
    return DeviceRequest(
        name=request.name,
        exactly=None if exactly is None else _with_count(exactly),
        first_available=tuple(_with_count(one) for one in request.first_available),
    )


def _main_fields(request: DeviceRequest) -> ExactDeviceRequest:
    return ExactDeviceRequest(**{name: getattr(request, name) for name in ExactDeviceRequest.__struct_fields__})


def _with_count(request: Request) -> Request:
    mode = request.allocation_mode or AllocationMode.EXACT_COUNT
    count = request.count or (1 if mode == AllocationMode.EXACT_COUNT else 0)
    return replace(request, allocation_mode=mode, count=count)


def _check_requested(requests: tuple[DeviceRequest, ...], field: str) -> None:
    for index, request in enumerate(requests):
        path = f"{field}.devices.requests[{index}]"
        alternatives = {f"firstAvailable[{at}]": one for at, one in enumerate(request.first_available)}
        for name, one in ({"exactly": request.exactly} | alternatives).items():
            if one is not None and one.capacity is not None:
                _check_all(f"{path}.{name}.capacity.requests", one.capacity.requests)


def _published(spec: ResourceSliceSpec) -> Iterator[tuple[str, Written]]:
    """Every quantity of a slice with its path."""
    for at, counters in enumerate(spec.shared_counters):
        for name, counter in counters.counters.items():
            yield f"spec.sharedCounters[{at}].counters[{name}]", counter.value
    for at, device in enumerate(spec.devices):
        path = f"spec.devices[{at}]"
        for name, capacity in device.capacity.items():
            yield f"{path}.capacity[{name}].value", capacity.value
            if capacity.request_policy is not None:
                yield from _of_policy(f"{path}.capacity[{name}].requestPolicy", capacity.request_policy)
        for place, consumed in enumerate(device.consumes_counters):
            for name, counter in consumed.counters.items():
                yield f"{path}.consumesCounters[{place}].counters[{name}]", counter.value
        for name, mapping in device.node_allocatable_resource_mappings.items():
            if mapping.allocation_multiplier is not None:
                yield f"{path}.nodeAllocatableResourceMappings[{name}]", mapping.allocation_multiplier


def _of_policy(path: str, policy: CapacityRequestPolicy) -> Iterator[tuple[str, Written]]:
    if policy.default is not None:
        yield f"{path}.default", policy.default
    for at, written in enumerate(policy.valid_values):
        yield f"{path}.validValues[{at}]", written
    if policy.valid_range is not None:
        for name in policy.valid_range.__struct_fields__:
            written = getattr(policy.valid_range, name)
            if written is not None:
                yield f"{path}.validRange.{name}", written


def _check_time(path: str, written: str) -> None:
    try:
        nanoseconds(written)
    except InputError as error:
        raise error.at(Place(field=path)) from None


def _check_all(path: str, quantities: Mapping[str, Written]) -> None:
    for name, written in quantities.items():
        _check(f"{path}[{name}]", written)


def _check(path: str, written: Written) -> None:
    try:
        parse_quantity(written)
    except InputError as error:
        raise error.at(Place(field=path)) from None
