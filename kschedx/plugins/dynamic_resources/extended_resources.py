"""Extended resources that devices stand for: what a pod's containers request becomes a claim of its own on each node.

Upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kschedx.api.devices import (
    EXTENDED_RESOURCE_CLAIM,
    AllocationMode,
    DeviceClaim,
    DeviceRequest,
    ExactDeviceRequest,
    ResourceClaim,
    ResourceClaimSpec,
)
from kschedx.api.quantity import value
from kschedx.api.resource_names import is_extended_resource
from kschedx.api.resources import RequestOptions, pod_request
from kschedx.api.types import Container, ObjectMeta, OwnerReference, Pod
from kschedx.snapshot.devices import IMPLICIT_PREFIX

IN_MEMORY = "<extended-resources>"
"""The name of the claim until it is written."""

_SPEC_ALONE = RequestOptions(use_status_resources=False, pod_level_resources=True, pod_level_in_place=False)


def requested(pod: Pod) -> Mapping[str, int]:
    """The extended resources that the pod asks for, which may be devices."""
    return {
        name: amount
        for name, amount in pod_request(pod.spec, pod.status, _SPEC_ALONE).amounts.items()
        if amount and (is_extended_resource(name) or name.startswith(IMPLICIT_PREFIX))
    }


def empty_claim(pod: Pod) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name=IN_MEMORY, namespace=pod.metadata.namespace))


def claim_for(claim: ResourceClaim, pod: Pod, class_of: Mapping[str, str]) -> ResourceClaim:
    """The claim with a request for each container that needs devices of its own. `class_of` has the resources that the
    node does not offer itself, each with its device class."""
    requests = [request for name in sorted(class_of) for request in _of_resource(pod, name, class_of[name])]
    devices = DeviceClaim(requests=tuple(sorted(requests, key=lambda request: request.name)))
    return ResourceClaim(metadata=claim.metadata, spec=ResourceClaimSpec(devices=devices), status=claim.status)


def written(claim: ResourceClaim, pod: Pod, class_of: Mapping[str, str]) -> ResourceClaim:
    """The claim as kube-scheduler writes it, when the pod is bound to a node with these device classes."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    metadata = ObjectMeta(
        name=f"{pod.metadata.name}-extended-resources",
        namespace=pod.metadata.namespace,
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )
    return replace(claim_for(claim, pod, class_of), metadata=metadata)


def _of_resource(pod: Pod, resource: str, device_class: str) -> Iterator[DeviceRequest]:
    """One for each container that stays, and the largest of the init containers that run before them: those use the
    devices of the containers that come later."""
    count = len(pod.spec.init_containers)
    containers = (*pod.spec.init_containers, *pod.spec.containers)
    staying: list[int] = [0] * len(containers)
    largest: DeviceRequest | None = None
    for index, container in enumerate(containers):
        if index >= count or container.is_restartable_init:
            staying[index] = _amount(container, resource)
    for index, container in enumerate(containers[:count]):
        if not container.is_restartable_init:
            more = _amount(container, resource) - sum(staying[index:])
            if more > 0 and (largest is None or largest.exactly is None or more > largest.exactly.count):
                largest = _request(index, container, resource, device_class, more)
    if largest is not None:
        yield largest
    for index, amount in enumerate(staying):
        if amount:
            yield _request(index, containers[index], resource, device_class, amount)


def _amount(container: Container, resource: str) -> int:
    written = container.resources.requests.get(resource)
    return 0 if written is None else value(written)


def _request(index: int, container: Container, resource: str, device_class: str, count: int) -> DeviceRequest:
    names: Sequence[str] = sorted(container.resources.requests)
    exactly = ExactDeviceRequest(
        device_class_name=device_class, allocation_mode=AllocationMode.EXACT_COUNT, count=count
    )
    return DeviceRequest(name=f"container-{index}-request-{names.index(resource)}", exactly=exactly)
