"""The API server's defaults that affect scheduling. A defaulted object, or one from an API server, is unchanged.

Upstream: pkg/apis/core/v1/defaults.go and, for label keys, pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TypeVar

from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.kube import types
from kschedx.kube.devices import (
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
from kschedx.kube.names import DEFAULT_SCHEDULER, is_hugepages, is_overcommit_allowed, is_pod_level_resource
from kschedx.kube.quantity import MILLI, ResourceList, Written, parse_quantity
from kschedx.kube.resources import container_limits, container_requests, nano_units
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import LabelSelector, SelectorRequirement

DEFAULT_NAMESPACE = "default"
GRACE_PERIOD = 30  # seconds
_METADATA_NAME_LABEL = "kubernetes.io/metadata.name"


def default_pod(pod: types.Pod) -> types.Pod:
    """Return a pod with its defaults and with label keys merged into its selectors. Raises InputError with the field's
    path for an invalid quantity."""
    spec = merge_label_keys(default_pod_spec(pod.spec), pod.metadata.labels)
    status = default_pod_status(pod.status)
    metadata = pod.metadata if pod.metadata.namespace else replace(pod.metadata, namespace=DEFAULT_NAMESPACE)
    if spec is pod.spec and status is pod.status and metadata is pod.metadata:
        return pod
    return types.Pod(metadata=metadata, spec=spec, status=status)


def default_pod_spec(spec: types.PodSpec) -> types.PodSpec:
    """Return a pod's spec with its defaults. A template's spec gets them only when a pod is created from it."""
    containers = tuple(_with_requests(container) for container in spec.containers)
    init_containers = tuple(_with_requests(container) for container in spec.init_containers)
    defaulted: dict[str, object] = {
        "containers": _default_containers(containers, spec.host_network, "spec.containers"),
        "init_containers": _default_containers(init_containers, spec.host_network, "spec.initContainers"),
        "overhead": rounded_resources(spec.overhead, "spec.overhead"),
        "restart_policy": spec.restart_policy or "Always",
        "termination_grace_period_seconds": _grace_period(spec.termination_grace_period_seconds),
        "scheduler_name": spec.scheduler_name or DEFAULT_SCHEDULER,
    }
    if spec.resources is not None:
        # from the quantities as text: the sum over containers is rounded once
        as_written = replace(spec, containers=containers, init_containers=init_containers)
        resources = _default_pod_level(spec.resources, as_written)
        defaulted["resources"] = _rounded_requirements(resources, "spec.resources")
    changed = {name: value for name, value in defaulted.items() if value != getattr(spec, name)}
    return replace(spec, **changed) if changed else spec


def _grace_period(seconds: int | None) -> int:
    """A negative value becomes 1."""
    return GRACE_PERIOD if seconds is None else seconds if seconds >= 0 else 1


def default_node(node: types.Node) -> types.Node:
    """Return a node; without allocatable, its capacity counts, and the other way round in a partial dump."""
    capacity = rounded_resources(node.status.capacity, "status.capacity")
    allocatable = rounded_resources(node.status.allocatable, "status.allocatable") or capacity
    capacity = capacity or allocatable
    if capacity is node.status.capacity and allocatable is node.status.allocatable:
        return node
    return replace(node, status=replace(node.status, capacity=capacity, allocatable=allocatable))


def default_namespace(namespace: types.Namespace) -> types.Namespace:
    """Return a namespace with its name as a label, which namespace selectors use."""
    metadata = namespace.metadata
    if not metadata.name or metadata.labels.get(_METADATA_NAME_LABEL) == metadata.name:
        return namespace
    return replace(
        namespace, metadata=replace(metadata, labels=metadata.labels | {_METADATA_NAME_LABEL: metadata.name})
    )


def default_priority_class(priority_class: types.PriorityClass) -> types.PriorityClass:
    """Return a priority class with its defaults (pkg/apis/scheduling/v1/defaults.go)."""
    if priority_class.preemption_policy is not None:
        return priority_class
    return replace(priority_class, preemption_policy="PreemptLowerPriority")


# --- containers


def _with_requests(container: types.Container) -> types.Container:
    resources = container.resources
    missing = {name: limit for name, limit in resources.limits.items() if name not in resources.requests}
    if not missing:
        return container
    return replace(container, resources=replace(resources, requests=resources.requests | missing))


def _default_containers(
    containers: tuple[types.Container, ...], host_network: bool, field: str
) -> tuple[types.Container, ...]:
    return tuple(
        _default_container(container, host_network, f"{field}[{index}]") for index, container in enumerate(containers)
    )


def _default_container(container: types.Container, host_network: bool, field: str) -> types.Container:
    resources = _rounded_requirements(container.resources, f"{field}.resources")
    ports = tuple(_default_port(port, host_network) for port in container.ports)
    if resources is container.resources and ports == container.ports:
        return container
    return replace(container, resources=resources, ports=ports)


def _default_port(port: types.ContainerPort, host_network: bool) -> types.ContainerPort:
    host_port = port.host_port or (port.container_port if host_network else 0)
    if port.protocol and host_port == port.host_port:
        return port
    return replace(port, protocol=port.protocol or "TCP", host_port=host_port)


# --- pod-level resources


def _default_pod_level(resources: types.ResourceRequirements, spec: types.PodSpec) -> types.ResourceRequirements:
    """Return spec.resources with the containers' hugepages limits and, if there are limits, requests for them. The
    request is the sum over the containers, or else the limit."""
    requests, limits = dict(resources.requests), dict(resources.limits)
    if requests or limits:
        for name, together in container_limits(spec).items():
            if is_hugepages(name) and name not in requests and name not in limits:
                limits[name] = str(together)
    if limits:
        for name, together in container_requests(spec).items():
            if name not in requests and is_pod_level_resource(name) and is_overcommit_allowed(name):
                requests[name] = str(together)
        for name, limit in limits.items():
            if name not in requests and is_pod_level_resource(name):
                requests[name] = limit
    if requests == resources.requests and limits == resources.limits:
        return resources
    return replace(resources, requests=requests, limits=limits)


# --- quantities


def _rounded_requirements(resources: types.ResourceRequirements, field: str) -> types.ResourceRequirements:
    # Limits first: a request that comes from an invalid limit is not the user's.
    limits = rounded_resources(resources.limits, f"{field}.limits")
    requests = rounded_resources(resources.requests, f"{field}.requests")
    if requests is resources.requests and limits is resources.limits:
        return resources
    return replace(resources, requests=requests, limits=limits)


def rounded_resources(resources: ResourceList, field: str) -> ResourceList:
    """Return the amounts as the API server stores them, rounded up to thousandths; the same list if nothing changes.
    Raises InputError at `field[resource]` for an invalid quantity."""
    changed: ResourceList = {}
    for name, written in resources.items():
        try:
            rounded = _rounded_quantity(written)
        except InputError as error:
            raise error.at(Place(field=f"{field}[{name}]")) from None
        if rounded is not None:
            changed[name] = rounded
    return resources | changed if changed else resources


@lru_cache(maxsize=16384)
def _rounded_quantity(written: Written) -> str | None:
    """Return the quantity rounded away from zero to a thousandth, or None if it needs no rounding."""
    if parse_quantity(written).exponent >= MILLI:
        return None
    nano = nano_units(written)
    milli = -(-nano // 10**6) if nano >= 0 else nano // 10**6
    return str(parse_quantity(f"{milli}m"))


def default_pod_status(status: types.PodStatus) -> types.PodStatus:
    resources = status.resources
    if resources is not None:
        resources = _rounded_requirements(resources, "status.resources")
    defaulted: dict[str, object] = {
        "allocated_resources": rounded_resources(status.allocated_resources, "status.allocatedResources"),
        "resources": resources,
        "container_statuses": _default_statuses(status.container_statuses, "status.containerStatuses"),
        "init_container_statuses": _default_statuses(status.init_container_statuses, "status.initContainerStatuses"),
    }
    changed = {name: value for name, value in defaulted.items() if value != getattr(status, name)}
    return replace(status, **changed) if changed else status


def _default_statuses(statuses: tuple[types.ContainerStatus, ...], field: str) -> tuple[types.ContainerStatus, ...]:
    return tuple(_default_container_status(status, f"{field}[{index}]") for index, status in enumerate(statuses))


def _default_container_status(status: types.ContainerStatus, field: str) -> types.ContainerStatus:
    allocated = rounded_resources(status.allocated_resources, f"{field}.allocatedResources")
    resources = status.resources
    if resources is not None:
        resources = _rounded_requirements(resources, f"{field}.resources")
    if allocated is status.allocated_resources and resources is status.resources:
        return status
    return replace(status, allocated_resources=allocated, resources=resources)


# --- label keys


def merge_label_keys(spec: types.PodSpec, labels: types.Labels) -> types.PodSpec:
    """Return the spec with pod affinity's matchLabelKeys and mismatchLabelKeys merged into their selectors as
    expressions.

    `labels` are the pod's own. Keys that the pod lacks, and terms without a selector, add nothing. Keys that are
    already in the selector, because the spec comes from a cluster, are not added again. PodTopologySpread merges those
    of spread constraints, depending on feature gates; `merge_spread_label_keys` is for new pods.
    """
    affinity = _merge_affinity(spec.affinity, labels) if spec.affinity is not None else None
    return spec if affinity is spec.affinity else replace(spec, affinity=affinity)


def merge_spread_label_keys(spec: types.PodSpec, labels: types.Labels) -> types.PodSpec:
    """Merge the label keys of spread constraints, behind the gate MatchLabelKeysInPodTopologySpreadSelectorMerge."""
    constraints = tuple(
        replace(
            constraint,
            label_selector=_add_match_label_keys(constraint.label_selector, constraint.match_label_keys, "In", labels),
        )
        for constraint in spec.topology_spread_constraints
    )
    if constraints == spec.topology_spread_constraints:
        return spec
    return replace(spec, topology_spread_constraints=constraints)


def uses_label_keys(spec: types.PodSpec) -> bool:
    """Return whether `merge_label_keys` may change the spec, so that it differs between pods of one template with
    different labels."""
    terms = () if spec.affinity is None else spec.affinity.pod_terms
    return any(term.match_label_keys or term.mismatch_label_keys for term in terms)


def _merge_affinity(affinity: types.Affinity, labels: types.Labels) -> types.Affinity:
    pod_affinity = _merge_pod_affinity(affinity.pod_affinity, labels)
    pod_anti_affinity = _merge_pod_affinity(affinity.pod_anti_affinity, labels)
    if pod_affinity is affinity.pod_affinity and pod_anti_affinity is affinity.pod_anti_affinity:
        return affinity
    return replace(affinity, pod_affinity=pod_affinity, pod_anti_affinity=pod_anti_affinity)


def _merge_pod_affinity(affinity: types.PodAffinity | None, labels: types.Labels) -> types.PodAffinity | None:
    if affinity is None:
        return None
    required = affinity.required_during_scheduling_ignored_during_execution
    preferred = affinity.preferred_during_scheduling_ignored_during_execution
    merged = types.PodAffinity(
        required_during_scheduling_ignored_during_execution=tuple(_merge_term(term, labels) for term in required),
        preferred_during_scheduling_ignored_during_execution=tuple(
            types.WeightedPodAffinityTerm(
                weight=term.weight, pod_affinity_term=_merge_term(term.pod_affinity_term, labels)
            )
            for term in preferred
        ),
    )
    return affinity if merged == affinity else merged


def _merge_term(term: types.PodAffinityTerm, labels: types.Labels) -> types.PodAffinityTerm:
    selector = _add_match_label_keys(term.label_selector, term.match_label_keys, "In", labels)
    selector = _add_match_label_keys(selector, term.mismatch_label_keys, "NotIn", labels)
    return term if selector is term.label_selector else replace(term, label_selector=selector)


def _add_match_label_keys(
    selector: LabelSelector | None, keys: tuple[str, ...], operator: str, labels: Mapping[str, str]
) -> LabelSelector | None:
    if selector is None or not keys:
        return selector
    wanted = [SelectorRequirement(key=key, operator=operator, values=(labels[key],)) for key in keys if key in labels]
    added = tuple(requirement for requirement in wanted if requirement not in selector.match_expressions)
    return replace(selector, match_expressions=selector.match_expressions + added) if added else selector


# Objects of resource.k8s.io as the API server returns them in v1, with defaults; an invalid quantity is an error.
# Upstream: pkg/apis/resource (defaults, conversion).

_FLAT = "resource.k8s.io/v1beta1"  # the version with a different structure of devices and requests

_Request = TypeVar("_Request", ExactDeviceRequest, DeviceSubRequest)


def defaulted_claim(claim: ResourceClaim) -> ResourceClaim:
    """Return the claim as v1 with its defaults. Raises `InputError` for an invalid quantity."""
    spec = _defaulted_spec(claim.spec, "spec", flat=claim.api_version == _FLAT)
    if claim.status.allocation is not None:
        if claim.status.allocation.allocation_timestamp is not None:
            with Place(field="status.allocation.allocationTimestamp"):
                nanoseconds(claim.status.allocation.allocation_timestamp)
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
    """Return the slice as v1. Raises `InputError` for an invalid quantity."""
    spec = published.spec
    if published.api_version == _FLAT:
        devices = tuple(_flatten_basic(device) for device in spec.devices)
        published = replace(published, spec=replace(spec, devices=devices))
    for field_, written in _slice_quantities(published.spec):
        _check(field_, written)
    return published


def _flatten_basic(device: Device) -> Device:
    basic = device.basic or BasicDevice()
    return Device(name=device.name, **{name: getattr(basic, name) for name in BasicDevice.__struct_fields__})


def _defaulted_request(request: DeviceRequest, *, flat: bool) -> DeviceRequest:
    exactly = request.exactly
    if flat:
        exactly = None if request.first_available else _main_fields(request)
    return DeviceRequest(
        name=request.name,
        exactly=None if exactly is None else _with_count(exactly),
        first_available=tuple(_with_count(subrequest) for subrequest in request.first_available),
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
        alternatives = {f"firstAvailable[{at}]": subrequest for at, subrequest in enumerate(request.first_available)}
        for name, exact in ({"exactly": request.exactly} | alternatives).items():
            if exact is not None and exact.capacity is not None:
                _check_all(f"{path}.{name}.capacity.requests", exact.capacity.requests)


def _slice_quantities(spec: ResourceSliceSpec) -> Iterator[tuple[str, Written]]:
    """Yield every quantity of a slice with its path."""
    for at, counters in enumerate(spec.shared_counters):
        for name, counter in counters.counters.items():
            yield f"spec.sharedCounters[{at}].counters[{name}]", counter.value
    for at, device in enumerate(spec.devices):
        path = f"spec.devices[{at}]"
        for name, capacity in device.capacity.items():
            yield f"{path}.capacity[{name}].value", capacity.value
            if capacity.request_policy is not None:
                yield from _policy_quantities(f"{path}.capacity[{name}].requestPolicy", capacity.request_policy)
        for place, consumed in enumerate(device.consumes_counters):
            for name, counter in consumed.counters.items():
                yield f"{path}.consumesCounters[{place}].counters[{name}]", counter.value
        for name, mapping in device.node_allocatable_resource_mappings.items():
            if mapping.allocation_multiplier is not None:
                yield f"{path}.nodeAllocatableResourceMappings[{name}]", mapping.allocation_multiplier


def _policy_quantities(path: str, policy: CapacityRequestPolicy) -> Iterator[tuple[str, Written]]:
    if policy.default is not None:
        yield f"{path}.default", policy.default
    for at, written in enumerate(policy.valid_values):
        yield f"{path}.validValues[{at}]", written
    if policy.valid_range is not None:
        for name in policy.valid_range.__struct_fields__:
            written = getattr(policy.valid_range, name)
            if written is not None:
                yield f"{path}.validRange.{name}", written


def _check_all(path: str, quantities: Mapping[str, Written]) -> None:
    for name, written in quantities.items():
        _check(f"{path}[{name}]", written)


def _check(path: str, written: Written) -> None:
    with Place(field=path):
        parse_quantity(written)
