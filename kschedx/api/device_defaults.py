"""Objects of resource.k8s.io as the API server returns them as v1, with defaults; a quantity that is none is refused.

Upstream: pkg/apis/resource (defaults, conversion).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeVar

from msgspec.structs import replace

from kschedx.api.devices import (
    AllocationMode,
    BasicDevice,
    CapacityRequestPolicy,
    Device,
    DeviceRequest,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceClaimTemplateSpec,
    ResourceSlice,
    ResourceSliceSpec,
)
from kschedx.api.quantity import Written, parse_quantity
from kschedx.api.timestamps import nanoseconds
from kschedx.errors import InputError, Place

_FLAT = "resource.k8s.io/v1beta1"
"""The version whose devices and requests have a shape of their own."""

_Request = TypeVar("_Request", ExactDeviceRequest, DeviceSubRequest)


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


def _with_count(request: _Request) -> _Request:
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
