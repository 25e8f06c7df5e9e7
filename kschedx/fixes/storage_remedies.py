"""Remedies for volumes: the claim that is missing, a smaller one, or fewer volumes on the node."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec
from msgspec.structs import replace

from kschedx.api.decode import decode
from kschedx.api.quantity import Unit, format_quantity
from kschedx.api.storage import (
    BETA_STORAGE_CLASS,
    PersistentVolumeClaim,
    VolumeResourceRequirements,
    default_class,
    with_default_class,
)
from kschedx.errors import InputError
from kschedx.findings import ClaimNotFound, InsufficientStorageCapacity, NoMatchingVolume, VolumeLimitExceeded
from kschedx.fixes.model import Proposal
from kschedx.fixes.remedy import Cost, Place, Remedy, delete_pods
from kschedx.fixes.resource_remedies import LEAST_SHARE, one_more_node, pod_list


def claim_from_template(finding: ClaimNotFound, place: Place) -> Iterator[Remedy]:
    """The claim that a StatefulSet's controller would make for the pod."""
    owner = place.pod.metadata.controller
    namespace, _, name = finding.claim.partition("/")
    if owner is None or owner.kind != "StatefulSet" or finding.ephemeral:
        return
    raw = place.cycle.snapshot.workloads.get(("StatefulSet", namespace, owner.name))
    default = default_class(place.cycle.snapshot.storage.classes.values())
    for template in _templates(raw) if raw else ():
        if f"{template.metadata.name}-{place.pod.metadata.name}" == name:
            annotations = {
                key: text for key, text in template.metadata.annotations.items() if key == BETA_STORAGE_CLASS
            }
            metadata = replace(template.metadata, name=name, namespace=namespace, annotations=annotations)
            claim = with_default_class(replace(template, metadata=metadata), default)
            yield Remedy(
                title=f"create claim {finding.claim} from the template of StatefulSet {owner.name}",
                cost=Cost.OTHER_PODS,
                step=_claiming(claim),
            )


def _claiming(claim: PersistentVolumeClaim) -> Callable[[Proposal], Proposal]:
    """A step that adds or replaces a claim, on top of what was changed before."""
    return lambda proposal: replace(proposal, claims={**proposal.claims, claim.key: claim})


def _templates(stateful_set: bytes) -> tuple[PersistentVolumeClaim, ...]:
    """Those of a StatefulSet; none where they cannot be read."""
    try:
        return decode(stateful_set, _StatefulSet).spec.volume_claim_templates
    except InputError:
        return ()


class _StatefulSetSpec(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    volume_claim_templates: tuple[PersistentVolumeClaim, ...] = ()


class _StatefulSet(msgspec.Struct, frozen=True, kw_only=True):
    spec: _StatefulSetSpec = _StatefulSetSpec()


def smaller_claim(finding: NoMatchingVolume | InsufficientStorageCapacity, place: Place) -> Iterator[Remedy]:
    """As much as the largest volume in reach has."""
    if isinstance(finding, InsufficientStorageCapacity):
        largest = finding.largest
    else:
        largest = max((one.capacity for one in finding.nearest if one.lost == "too-small"), default=0)
    claim = place.cycle.snapshot.storage.claims.get(finding.claim.claim)
    if claim is None or largest * LEAST_SHARE < finding.claim.requested or largest >= finding.claim.requested:
        return
    size = format_quantity(largest, Unit.BYTE)
    requests = {**claim.spec.resources.requests, "storage": size}
    resources: VolumeResourceRequirements = replace(claim.spec.resources, requests=requests)
    smaller = replace(claim, spec=replace(claim.spec, resources=resources))
    yield Remedy(
        title=f"claim at most {size} with {finding.claim.claim}",
        cost=Cost.LESS,
        step=_claiming(smaller),
    )


def fewer_volumes(finding: VolumeLimitExceeded, place: Place) -> Iterator[Remedy]:
    """Delete pods that hold volumes alone, the least important first; or let a new node take them."""
    pods = place.cycle.snapshot.pods
    alone = (holder.pods[0] for holder in finding.holders if len(holder.pods) == 1)
    rows = {row for key in alone if (row := pods.rows.get(key)) is not None}
    least = sorted(
        (row for row in rows if pods.priorities[row] <= place.pod.priority), key=lambda r: pods.priorities[r]
    )
    surplus = finding.attached + finding.wanted - finding.limit
    if len(least) >= surplus:
        victims = tuple(least[:surplus])
        yield Remedy(title=f"delete {pod_list(victims, place)}", cost=Cost.OTHER_PODS, step=delete_pods(victims))
    yield one_more_node(place)
