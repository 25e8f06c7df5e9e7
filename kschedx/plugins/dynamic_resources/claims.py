"""The claims of a pod: which they are, whether they can be used, and whom they are reserved for.

Upstream: staging/src/k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go, foreachPodResourceClaim.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.devices import ResourceClaim
from kschedx.api.field_errors import quoted
from kschedx.api.scheduling import PodGroup, PodGroupResourceClaim
from kschedx.api.types import ObjectMeta, Pod, PodResourceClaim
from kschedx.errors import UndecidableError
from kschedx.findings import (
    DeviceClaimBeingDeleted,
    DeviceClaimNotCreated,
    DeviceClaimNotFound,
    DeviceClaimNotOwned,
    Finding,
    PluginMessage,
)
from kschedx.framework.status import Code, Status
from kschedx.snapshot.snapshot import Snapshot

_GROUP = "scheduling.k8s.io"
_UNSUPPORTED = "none of the supported fields are set"
_NOT_CREATED = "ResourceClaim not created yet"


class RefusalError(Exception):
    """A claim keeps the pod from being scheduled at all."""

    def __init__(self, text: str, finding: Finding | None = None) -> None:
        super().__init__(text)
        self.status = unschedulable(text, finding or PluginMessage(text=text))


def unschedulable(text: str, *findings: Finding) -> Status:
    return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(text,), findings=findings)


class PodClaim(Struct, frozen=True, kw_only=True):
    """A claim under the name that the pod's containers have for it."""

    name: str
    claim: ResourceClaim


def pod_claims(pod: Pod, snapshot: Snapshot, *, of_groups: bool) -> tuple[PodClaim, ...]:
    """The claims of spec.resourceClaims. Raises `RefusalError`. `of_groups`: a claim may be its pod group's."""
    return tuple(_pod_claims(pod, snapshot, of_groups=of_groups))


def _pod_claims(pod: Pod, snapshot: Snapshot, *, of_groups: bool) -> Iterator[PodClaim]:
    for reference in pod.spec.resource_claims:
        name, is_generated = _name(pod, reference, snapshot)
        if name is None:
            continue
        key = f"{pod.metadata.namespace}/{name}"
        claim = snapshot.devices.claims.get(key)
        if claim is None:
            text = f"could not find ResourceClaim {quoted(key)}"
            raise RefusalError(text, DeviceClaimNotFound(claim=key, pod_claim=reference.name))
        if claim.metadata.deletion_timestamp is not None:
            deleted = DeviceClaimBeingDeleted(claim=key, since=claim.metadata.deletion_timestamp)
            raise RefusalError(f"resourceclaim {quoted(name)} is being deleted", deleted)
        if is_generated:
            _check_owner(pod, claim, of_groups=of_groups)
        yield PodClaim(name=reference.name, claim=claim)


def _name(pod: Pod, reference: PodResourceClaim, snapshot: Snapshot) -> tuple[str | None, bool]:
    """The claim's name, None where none is needed, and whether it was made from a template."""
    whose = f'pod "{pod.key}"'
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name, False
    template = reference.resource_claim_template_name
    if template is None:
        raise RefusalError(f"{whose}, spec.resourceClaim {quoted(reference.name)}: {_UNSUPPORTED}")
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name, True
    key = f"{pod.metadata.namespace}/{template}"
    is_known = snapshot.source.is_complete("ResourceClaimTemplate", pod.metadata.namespace)
    exists = True if key in snapshot.devices.templates else False if is_known else None
    missing = DeviceClaimNotCreated(pod_claim=reference.name, template=key, template_exists=exists)
    raise RefusalError(f"{whose}: {_NOT_CREATED}", missing)


def _check_owner(pod: Pod, claim: ResourceClaim, *, of_groups: bool) -> None:
    if _is_controlled_by(claim, pod.metadata):
        return
    text = f"ResourceClaim {claim.key} was not created for Pod {pod.key}"
    owner = claim.metadata.controller
    finding = DeviceClaimNotOwned(claim=claim.key, owner=f"{owner.kind}/{owner.name}" if owner else "")
    if not of_groups:
        raise RefusalError(f"{text} (Pod is not owner)", finding)
    group = group_name(pod)
    if group is None:
        raise UndecidableError(f"{text}, and the pod is in no group: kube-scheduler panics over that")
    is_groups = owner is not None and owner.name == group and owner.kind == "PodGroup"
    if owner is None or not is_groups or not owner.api_version.startswith(f"{_GROUP}/"):
        raise RefusalError(f"{text} (neither Pod nor PodGroup {group} is the owner)", finding)


def _is_controlled_by(claim: ResourceClaim, owner: ObjectMeta) -> bool:
    controller = claim.metadata.controller
    return controller is not None and controller.uid == owner.uid


def is_reserved(claim: ResourceClaim, pod: Pod, *, of_groups: bool) -> bool:
    """Whether the claim is reserved for the pod, or for its group where that counts."""
    group = group_name(pod) if of_groups else None
    for consumer in claim.status.reserved_for:
        if consumer.uid == pod.metadata.uid:
            return True
        if (group, _GROUP, "podgroups") == (consumer.name, consumer.api_group, consumer.resource):
            return True
    return False


def consumers(claim: ResourceClaim) -> tuple[str, ...]:
    """For whom the claim is reserved, in its namespace: `pods/name`."""
    return tuple(f"{one.resource}/{one.name}" for one in claim.status.reserved_for)


def extended_resource_claim(pod: Pod, snapshot: Snapshot) -> ResourceClaim | None:
    """The claim that kube-scheduler made for the pod's extended resources when it tried last."""
    return snapshot.devices.extended_resource_claims.get((pod.metadata.name, pod.metadata.uid))


# --- pod groups


def group_name(pod: Pod) -> str | None:
    return pod.spec.scheduling_group.pod_group_name if pod.spec.scheduling_group is not None else None


def check_bindings(pod: Pod, snapshot: Snapshot) -> None:
    """podResourceClaimBindings: raises `RefusalError` where it cannot be told for whom claims are reserved."""
    group = _group(pod, snapshot)
    if group is None:
        return
    for reference in pod.spec.resource_claims:
        if reference.resource_claim_name is None and reference.resource_claim_template_name is None:
            raise RefusalError(f"Pod {pod.key} claim {reference.name}: {_UNSUPPORTED}")
        for shared in group.spec.resource_claims:
            if shared.resource_claim_name is None and shared.resource_claim_template_name is None:
                key = f"{group.metadata.namespace}/{group.metadata.name}"
                raise RefusalError(f"PodGroup {key} claim {shared.name}: {_UNSUPPORTED}")
            if _is_same(shared, reference):
                break


def _is_same(shared: PodGroupResourceClaim, reference: PodResourceClaim) -> bool:
    return (shared.name, shared.resource_claim_name, shared.resource_claim_template_name) == (
        reference.name,
        reference.resource_claim_name,
        reference.resource_claim_template_name,
    )


def _group(pod: Pod, snapshot: Snapshot) -> PodGroup | None:
    name = group_name(pod)
    if name is None:
        return None
    group = snapshot.pod_groups.get(f"{pod.metadata.namespace}/{name}")
    if group is None:
        raise RefusalError(f"podgroup.{_GROUP} {quoted(name)} not found")
    return group


def unreserved_by_group(pod: Pod, snapshot: Snapshot) -> ResourceClaim | None:
    """The first allocated claim of the pod's group, none of whose pods has a node, that is reserved for the group or
    the pod, without the group's reservation: kube-scheduler takes that back when a pod of the group fits nowhere."""
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
            raise GroupError(f"could not find ResourceClaim {quoted(key)}")
        if is_generated and not _is_controlled_by(claim, group.metadata):
            continue
        if claim.status.allocation is not None and is_reserved(claim, pod, of_groups=True):
            left = tuple(one for one in claim.status.reserved_for if one.uid != group.metadata.uid)
            return replace(claim, status=replace(claim.status, reserved_for=left))
    return None


class GroupError(Exception):
    """A claim of the pod's group cannot be looked up; `str()` is what kube-scheduler says."""


def _group_claim_name(group: PodGroup, shared: PodGroupResourceClaim) -> tuple[str | None, bool]:
    whose = f"PodGroup {group.metadata.namespace}/{group.metadata.name}"
    if shared.resource_claim_name is not None:
        return shared.resource_claim_name, False
    if shared.resource_claim_template_name is None:
        raise GroupError(f"{whose}, spec.resourceClaim {shared.name}: {_UNSUPPORTED}")
    for status in group.status.resource_claim_statuses:
        if status.name == shared.name:
            return status.resource_claim_name, True
    raise GroupError(f"{whose}: {_NOT_CREATED}")


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
