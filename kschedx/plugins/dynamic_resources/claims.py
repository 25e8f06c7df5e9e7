"""The claims of a pod: which they are, whether they can be used, and for whom they are reserved.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go, foreachPodResourceClaim.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import UndecidableError
from kschedx.findings import (
    DeviceClaimBeingDeleted,
    DeviceClaimNotCreated,
    DeviceClaimNotFound,
    DeviceClaimNotOwned,
    DeviceClaimOutOfReach,
    Finding,
    PluginMessage,
)
from kschedx.framework.status import unresolvable
from kschedx.kube.devices import (
    EXTENDED_RESOURCE_CLAIM,
    IN_MEMORY,
    AllocationMode,
    AllocationResult,
    DeviceClaim,
    DeviceClass,
    DeviceRequest,
    DeviceSelector,
    ExactDeviceRequest,
    Features,
    ResourceClaim,
    ResourceClaimSpec,
    language,
)
from kschedx.kube.field_errors import quote_go
from kschedx.kube.quantity import value
from kschedx.kube.scalars import nanoseconds
from kschedx.kube.selectors import CompiledNodeSelector
from kschedx.kube.types import Container, Node, ObjectMeta, OwnerReference, Pod, PodGroup, PodResourceClaim
from kschedx.snapshot.snapshot import Snapshot

_GROUP = "scheduling.k8s.io"
UNSUPPORTED = "none of the supported fields are set"
NOT_CREATED = "ResourceClaim not created yet"

REASON_ALL_CLAIMS = "cannot allocate all claims"
REASON_UNAVAILABLE = "resourceclaim not available on the node"
REASON_STALE = "cannot schedule extended resource claim"
REASON_NO_RESOURCE = "cannot fit resource"
REASON_DEALLOCATED = "deallocation of ResourceClaim completed"
REASON_DELETED = "deletion of ResourceClaim completed"
REASON_UNRESERVED = "ResourceClaim unreserved for PodGroup"
REASON_STILL = "still not schedulable"


class RefusalError(Exception):
    """A claim because of which the pod cannot be scheduled on any node."""

    def __init__(self, text: str, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.status = unresolvable(text, finding or PluginMessage(text=text))


class PodClaim(Struct, frozen=True, kw_only=True):
    """A claim with the name that the pod's containers use."""

    name: str
    claim: ResourceClaim


def pod_claims(pod: Pod, snapshot: Snapshot, *, of_groups: bool) -> tuple[PodClaim, ...]:
    """Return the claims of spec.resourceClaims. Raises `RefusalError`. With `of_groups`, a claim may belong to the pod
    group."""
    claims = []
    for reference in pod.spec.resource_claims:
        name, is_generated = _name(pod, reference, snapshot)
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = snapshot.devices.claims.get(key)
        if claim is None:
            text = f"could not find ResourceClaim {quote_go(key)}"
            raise RefusalError(text, DeviceClaimNotFound(claim=key, pod_claim=reference.name))
        if claim.metadata.deletion_timestamp is not None:
            deleted = DeviceClaimBeingDeleted(claim=key, since=claim.metadata.deletion_timestamp)
            raise RefusalError(f"resourceclaim {quote_go(name)} is being deleted", deleted)
        if is_generated:
            _check_owner(pod, claim, of_groups=of_groups)
        claims.append(PodClaim(name=reference.name, claim=claim))
    return tuple(claims)


def _name(pod: Pod, reference: PodResourceClaim, snapshot: Snapshot) -> tuple[str | None, bool]:
    """Return the claim's name, or None if no claim is needed, and whether it is generated from a template."""
    whose = f'pod "{pod.key}"'
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name, False
    template = reference.resource_claim_template_name
    if template is None:
        raise RefusalError(f"{whose}, spec.resourceClaim {quote_go(reference.name)}: {UNSUPPORTED}")
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name, True
    key = f"{pod.metadata.namespace}/{template}"
    is_known = snapshot.source.is_complete("ResourceClaimTemplate", pod.metadata.namespace)
    exists = True if key in snapshot.devices.templates else False if is_known else None
    missing = DeviceClaimNotCreated(pod_claim=reference.name, template=key, template_exists=exists)
    raise RefusalError(f"{whose}: {NOT_CREATED}", missing)


def _check_owner(pod: Pod, claim: ResourceClaim, *, of_groups: bool) -> None:
    if _is_controlled_by(claim, pod.metadata):
        return
    text = f"ResourceClaim {claim.key} was not created for Pod {pod.key}"
    owner = claim.metadata.controller
    finding = DeviceClaimNotOwned(claim=claim.key, owner=f"{owner.kind}/{owner.name}" if owner else "")
    if not of_groups:
        raise RefusalError(f"{text} (Pod is not owner)", finding)
    group = _group_name(pod)
    if group is None:
        raise UndecidableError(f"{text}, and the pod is in no group: kube-scheduler panics over that")
    is_groups = owner is not None and owner.name == group and owner.kind == "PodGroup"
    if owner is None or not is_groups or not owner.api_version.startswith(f"{_GROUP}/"):
        raise RefusalError(f"{text} (neither Pod nor PodGroup {group} is the owner)", finding)


def _is_controlled_by(claim: ResourceClaim, owner: ObjectMeta) -> bool:
    controller = claim.metadata.controller
    return controller is not None and controller.uid == owner.uid


def _is_reserved(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether the claim is reserved for the pod, or for its group."""
    group = (_group_name(pod), _GROUP, "podgroups")
    return any(
        consumer.uid == pod.metadata.uid or group == (consumer.name, consumer.api_group, consumer.resource)
        for consumer in claim.status.reserved_for
    )


def consumers(claim: ResourceClaim) -> tuple[str, ...]:
    """Return the consumers in the claim's namespace, as `pods/name`."""
    return tuple(f"{it.resource}/{it.name}" for it in claim.status.reserved_for)


def extended_resource_claim(pod: Pod, snapshot: Snapshot) -> ResourceClaim | None:
    """Return the claim that kube-scheduler created for the pod's extended resources in its last attempt."""
    return snapshot.devices.extended_resource_claims.get((pod.metadata.name, pod.metadata.uid))


# --- pod groups


def _group_name(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None


def check_bindings(pod: Pod, snapshot: Snapshot) -> None:
    """Raise `RefusalError` if podResourceClaimBindings do not say for which pods claims are reserved."""
    group = _group(pod, snapshot)
    if group is None:
        return
    for reference in pod.spec.resource_claims:
        if reference.resource_claim_name is None and reference.resource_claim_template_name is None:
            raise RefusalError(f"Pod {pod.key} claim {reference.name}: {UNSUPPORTED}")
        for shared in group.spec.resource_claims:
            if shared.resource_claim_name is None and shared.resource_claim_template_name is None:
                raise RefusalError(f"PodGroup {group.key} claim {shared.name}: {UNSUPPORTED}")
            if _is_same(shared, reference):
                break


def _is_same(shared: PodResourceClaim, reference: PodResourceClaim) -> bool:
    return (shared.name, shared.resource_claim_name, shared.resource_claim_template_name) == (
        reference.name,
        reference.resource_claim_name,
        reference.resource_claim_template_name,
    )


def _group(pod: Pod, snapshot: Snapshot) -> PodGroup | None:
    name = _group_name(pod)
    if name is None:
        return None
    group = snapshot.pod_groups.get(f"{pod.metadata.namespace}/{name}")
    if group is None:
        raise RefusalError(f"podgroup.{_GROUP} {quote_go(name)} not found")
    return group


def unreserved_by_group(pod: Pod, snapshot: Snapshot) -> ResourceClaim | None:
    """Return the first allocated claim that is reserved for the pod's group or the pod, while no pod of the group has a
    node. The returned claim lacks the group's reservation: kube-scheduler removes it if a pod of the group is
    unschedulable."""
    group = _group(pod, snapshot)
    if group is None or _has_scheduled_pods(group, snapshot):
        return None
    for shared in group.spec.resource_claims:
        name, is_generated = _group_claim_name(group, shared)
        if name is None:
            continue
        key = f"{group.metadata.namespace}/{name}"
        claim = snapshot.devices.claims.get(key)
        if claim is None:
            raise GroupError(f"could not find ResourceClaim {quote_go(key)}")
        if is_generated and not _is_controlled_by(claim, group.metadata):
            continue
        if claim.status.allocation is not None and _is_reserved(claim, pod):
            left = tuple(it for it in claim.status.reserved_for if it.uid != group.metadata.uid)
            return replace(claim, status=replace(claim.status, reserved_for=left))
    return None


class GroupError(Exception):
    """A claim of the pod's group cannot be looked up; `str()` is kube-scheduler's message."""


def _group_claim_name(group: PodGroup, shared: PodResourceClaim) -> tuple[str | None, bool]:
    whose = f"PodGroup {group.key}"
    if shared.resource_claim_name is not None:
        return shared.resource_claim_name, False
    if shared.resource_claim_template_name is None:
        raise GroupError(f"{whose}, spec.resourceClaim {shared.name}: {UNSUPPORTED}")
    for status in group.status.resource_claim_statuses:
        if status.name == shared.name:
            return status.resource_claim_name, True
    raise GroupError(f"{whose}: {NOT_CREATED}")


def _has_scheduled_pods(group: PodGroup, snapshot: Snapshot) -> bool:
    for row in range(len(snapshot.pods)):
        spec = snapshot.pods.specs[row]
        if (
            spec.scheduling_group is not None
            and spec.scheduling_group.pod_group_name == group.metadata.name
            and snapshot.pods.namespaces[row] == group.metadata.namespace
            and snapshot.pods.node_names[row]
        ):
            return True
    return False


def is_ready(claim: ResourceClaim) -> bool | None:
    """Return whether all binding conditions of the claim's devices are true; None if one has failed."""
    allocation = claim.status.allocation
    for result in allocation.devices.results if allocation is not None else ():
        if not result.binding_conditions:
            continue
        id_ = (result.driver, result.pool, result.device)
        status = next((it for it in claim.status.devices if (it.driver, it.pool, it.device) == id_), None)
        if status is None:
            return False
        if any(status.is_true(condition) for condition in result.binding_failure_conditions):
            return None
        if not all(status.is_true(condition) for condition in result.binding_conditions):
            return False
    return True


def is_late(claim: ResourceClaim, timeout: int, now: int) -> bool:
    """Return whether the time for the devices to become ready is over; `timeout` and `now` in nanoseconds."""
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    waits = any(result.binding_conditions for result in allocation.devices.results)
    return waits and nanoseconds(allocation.allocation_timestamp) + timeout < now


def out_of_reach(claim: ResourceClaim, node: Node, reachable: CompiledNodeSelector | None) -> DeviceClaimOutOfReach:
    """Explain why a node cannot use an allocated claim. `reachable` selects the nodes of its allocation; None selects
    all."""
    allocation = claim.status.allocation or AllocationResult()
    if reachable is not None and not reachable.matches(node.metadata.labels, node.name):
        cause = "elsewhere"
    else:
        cause = "binding-failed" if is_ready(claim) is None else "binding-late"
    terms = reachable.terms if reachable is not None else ()
    return DeviceClaimOutOfReach(
        claim=claim.key,
        cause=cause,
        devices=tuple(f"{result.driver}/{result.pool}/{result.device}" for result in allocation.devices.results),
        where=" or ".join(", ".join(map(str, (*term.expressions, *term.fields))) for term in terms),
        consumers=consumers(claim),
    )


# Extended resources that devices provide: the requests of a pod's containers become an additional claim on each node.
# Upstream: pkg/scheduler/framework/plugins/dynamicresources/extendeddynamicresources.go.


def empty_claim(pod: Pod) -> ResourceClaim:
    return ResourceClaim(metadata=ObjectMeta(name=IN_MEMORY, namespace=pod.metadata.namespace))


def claim_for(claim: ResourceClaim, pod: Pod, class_of: Mapping[str, str]) -> ResourceClaim:
    """Return the claim with one request for each container that needs devices. `class_of` maps the resources that the
    node does not offer itself to their device classes."""
    requests = [request for name in sorted(class_of) for request in _resource_requests(pod, name, class_of[name])]
    devices = DeviceClaim(requests=tuple(sorted(requests, key=lambda request: request.name)))
    return ResourceClaim(metadata=claim.metadata, spec=ResourceClaimSpec(devices=devices), status=claim.status)


def written_claim(claim: ResourceClaim, pod: Pod, class_of: Mapping[str, str]) -> ResourceClaim:
    """Return the claim as kube-scheduler writes it when it binds the pod to a node with these device classes."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    metadata = ObjectMeta(
        name=f"{pod.metadata.name}-extended-resources",
        namespace=pod.metadata.namespace,
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=(owner,),
    )
    return replace(claim_for(claim, pod, class_of), metadata=metadata)


def _resource_requests(pod: Pod, resource: str, device_class: str) -> Iterator[DeviceRequest]:
    """Yield a request for each app and sidecar container, and for the largest init container before them. Init
    containers use the devices of the containers that start later."""
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


# --- the API server's validation of selectors in a new DeviceClass or ResourceClaim: validateSelectorSlice in
# pkg/apis/resource/validation/validation.go

_Refusal = tuple[str, str]  # a field and the error of its value


def class_refusals(device_class: DeviceClass, features: Features) -> Iterator[_Refusal]:
    yield from _selector_refusals(device_class.spec.selectors, "spec.selectors", features)


def claim_refusals(resource_claim: ResourceClaim, features: Features) -> Iterator[_Refusal]:
    for index, request in enumerate(resource_claim.spec.devices.requests):
        yield from _request_refusals(request, f"spec.devices.requests[{index}]", features)


def _request_refusals(request: DeviceRequest, field: str, features: Features) -> Iterator[_Refusal]:
    if request.exactly is not None:
        yield from _selector_refusals(request.exactly.selectors, f"{field}.exactly.selectors", features)
    for index, subrequest in enumerate(request.first_available):
        yield from _selector_refusals(subrequest.selectors, f"{field}.firstAvailable[{index}].selectors", features)


def _selector_refusals(selectors: Sequence[DeviceSelector], field: str, features: Features) -> Iterator[_Refusal]:
    for index, selector in enumerate(selectors):
        if selector.cel is None:
            continue
        try:
            refusal = language().refusal(selector.cel.expression, features)
        except UndecidableError:
            continue
        if refusal is not None:
            yield f"{field}[{index}].cel.expression", refusal
