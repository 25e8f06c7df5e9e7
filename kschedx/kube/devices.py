"""Typed records of resource.k8s.io: devices, claims, and allocations.

The API versions are v1, v1beta2, and v1beta1 (DeviceTaintRule: v1beta2 and v1alpha3). `device_defaults` converts an
object of any of them to v1, as the API server does. Upstream: staging/src/k8s.io/api/resource.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum, unique
from typing import Protocol, cast

from msgspec import Struct, field

from kschedx import satellites
from kschedx.kube.conditions import Condition, condition_of
from kschedx.kube.quantity import Written
from kschedx.kube.scalars import Int64
from kschedx.kube.selectors import NodeSelector
from kschedx.kube.types import KubernetesObject, Taint, Toleration

MAX_DEVICES_OF_CLAIM = 32  # AllocationResultsMaxSize
MAX_ALTERNATIVES = 8  # FirstAvailableDeviceRequestMaxSize
ADMIN_ACCESS_LABEL = "resource.kubernetes.io/admin-access"
"""The label of namespaces whose claims may request admin access."""
EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that kube-scheduler creates for a pod's extended resources."""
IN_MEMORY = "<extended-resources>"  # the name of that claim before it is created


@unique
class AllocationMode(StrEnum):
    EXACT_COUNT = "ExactCount"
    ALL = "All"


# --- published by drivers


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


class _Counter(Struct, frozen=True, kw_only=True):
    value: Written = "0"


class CounterSet(Struct, frozen=True, kw_only=True):
    name: str = ""
    counters: dict[str, _Counter] = {}


class _DeviceCounterConsumption(Struct, frozen=True, kw_only=True, rename="camel"):
    counter_set: str = ""
    counters: dict[str, _Counter] = {}


class _NodeAllocatableResourceMapping(Struct, frozen=True, kw_only=True, rename="camel"):
    capacity_key: str | None = None
    allocation_multiplier: Written | None = None


class BasicDevice(Struct, frozen=True, kw_only=True, rename="camel"):
    attributes: dict[str, DeviceAttribute] = {}  # by qualified name; a name without a domain belongs to the driver
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: tuple[_DeviceCounterConsumption, ...] = ()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: tuple[Taint, ...] = ()
    binds_to_node: bool = False
    binding_conditions: tuple[str, ...] = ()
    binding_failure_conditions: tuple[str, ...] = ()
    allow_multiple_allocations: bool = False
    node_allocatable_resource_mappings: dict[str, _NodeAllocatableResourceMapping] = {}


class Device(BasicDevice, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    basic: BasicDevice | None = None  # in v1beta1, this has all fields but the name


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


class _PoolStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    """The device counts of kube-controller-manager for a pool; absent if the pool is invalid."""

    driver: str = ""
    pool_name: str = ""
    node_name: str | None = None
    total_devices: Int64 | None = None
    allocated_devices: Int64 | None = None
    available_devices: Int64 | None = None
    unavailable_devices: Int64 | None = None
    validation_error: str | None = None


class _ResourcePoolStatus(Struct, frozen=True, kw_only=True):
    pools: tuple[_PoolStatus, ...] = ()


class ResourcePoolStatusRequest(KubernetesObject, frozen=True, kw_only=True):
    """A request for a one-time count of devices."""

    status: _ResourcePoolStatus = _ResourcePoolStatus()


class ResourceSlice(KubernetesObject, frozen=True, kw_only=True):
    api_version: str = field(default="", name="apiVersion")
    spec: ResourceSliceSpec = ResourceSliceSpec()


class _DeviceTaintSelector(Struct, frozen=True, kw_only=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class _DeviceTaintRuleSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    device_selector: _DeviceTaintSelector | None = None
    taint: Taint = Taint()


class DeviceTaintRule(KubernetesObject, frozen=True, kw_only=True):
    spec: _DeviceTaintRuleSpec = _DeviceTaintRuleSpec()


# --- requests


class CELDeviceSelector(Struct, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Struct, frozen=True, kw_only=True):
    cel: CELDeviceSelector | None = None


class DeviceClassSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(KubernetesObject, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Struct, frozen=True, kw_only=True):
    requests: dict[str, Written] = {}


class _RequestedDevices(Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields that requests and their alternatives share."""

    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: tuple[Toleration, ...] = ()
    capacity: CapacityRequirements | None = None


class ExactDeviceRequest(_RequestedDevices, frozen=True, kw_only=True, rename="camel"):
    admin_access: bool | None = None


class DeviceSubRequest(_RequestedDevices, frozen=True, kw_only=True, rename="camel"):
    name: str = ""


class DeviceRequest(ExactDeviceRequest, frozen=True, kw_only=True, rename="camel"):
    """`exactly` or `first_available`; in v1beta1, the request itself has the fields of `exactly`."""

    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class _DeviceConstraint(Struct, frozen=True, kw_only=True, rename="camel"):
    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Struct, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[_DeviceConstraint, ...] = ()


class ResourceClaimSpec(Struct, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class ResourceClaimTemplateSpec(Struct, frozen=True, kw_only=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(KubernetesObject, frozen=True, kw_only=True):
    """Only kube-controller-manager reads it, to create claims for new pods."""

    api_version: str = field(default="", name="apiVersion")
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


# --- allocations


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


class _AllocatedDeviceStatus(Struct, frozen=True, kw_only=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()

    def is_true(self, condition: str) -> bool:
        """Return whether the first condition of the type is True (meta.IsStatusConditionTrue)."""
        first = condition_of(self.conditions, condition)
        return first is not None and first.status == "True"


class ResourceClaimStatus(Struct, frozen=True, kw_only=True, rename="camel"):
    allocation: AllocationResult | None = None
    reserved_for: tuple[ResourceClaimConsumerReference, ...] = ()
    devices: tuple[_AllocatedDeviceStatus, ...] = ()

    @property
    def awaited_conditions(self) -> Iterator[tuple[str, str]]:
        """Yield the binding conditions of allocated devices that are not true yet, each after the driver."""
        for result in self.allocation.devices.results if self.allocation is not None else ():
            id_ = (result.driver, result.pool, result.device)
            known = next((it for it in self.devices if (it.driver, it.pool, it.device) == id_), None)
            for condition in result.binding_conditions:
                if known is None or not known.is_true(condition):
                    yield result.driver, condition


class ResourceClaim(KubernetesObject, frozen=True, kw_only=True):
    api_version: str = field(default="", name="apiVersion")
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


# The interface of expressions that select devices. The language itself is in the satellite `cel`.


class Features(Struct, frozen=True, kw_only=True):
    """What expressions may use. kube-scheduler compiles them like stored ones: it knows every field and function of its
    version, whether or not the feature gate is enabled."""

    multiple_allocations: bool  # whether a device has the field `allowMultipleAllocations`
    reads_multiple_allocations: bool  # whether the field has the device's value; otherwise it is false
    includes: bool  # whether the function `includes` exists
    list_attributes: bool


EVERY_FEATURE = Features(
    multiple_allocations=True, reads_multiple_allocations=True, includes=True, list_attributes=True
)


class CompileError(Exception):
    """The expression is invalid; `str()` is kube-scheduler's message."""


class EvaluationError(Exception):
    """The expression cannot be evaluated on a device; `str()` is kube-scheduler's message."""


class _DeviceExpression(Protocol):
    def matches(self, device: Device, driver: str) -> bool:
        """Raises `EvaluationError`."""
        ...


class ExpressionLanguage(Protocol):
    def compile(self, expression: str, features: Features) -> _DeviceExpression:
        """Raises `CompileError`."""
        ...

    def names_in(self, expression: str) -> frozenset[str]:
        """Return the attributes and capacities, without domains, that an expression refers to."""
        ...

    def refusal(self, expression: str, features: Features) -> str | None:
        """Return the API server's error for an expression in a new object, or None. Raises `UndecidableError`."""
        ...


def language() -> ExpressionLanguage:
    return cast(ExpressionLanguage, satellites.provider(satellites.DEVICE_EXPRESSIONS))
