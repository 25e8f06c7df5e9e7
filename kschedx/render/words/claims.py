"""The claims of a pod in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.findings import (
    ClaimBeingDeleted,
    ClaimFacts,
    ClaimFinding,
    ClaimLost,
    ClaimNotFound,
    ClaimNotOwned,
    ClaimUnbound,
    VolumeNotFound,
)
from kschedx.render.units import amount
from kschedx.render.wording import Fact, Reason, Words

REASONS: dict[str, Reason] = {}


def describe(finding: ClaimFinding) -> Words:
    match finding:
        case ClaimNotFound():
            return _claim_not_found(finding)
        case ClaimLost():
            return _claim_lost(finding)
        case ClaimBeingDeleted():
            return _claim_being_deleted(finding)
        case ClaimNotOwned():
            return _claim_not_owned(finding)
        case ClaimUnbound():
            return _claim_unbound(finding)
        case VolumeNotFound():
            return _volume_not_found(finding)
        case _:
            assert_never(finding)


REASONS[ClaimNotFound.reason] = Reason(
    plugins=("VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits", "VolumeZone"),
    means="A volume names a PersistentVolumeClaim that does not exist in the pod's namespace.",
    arises=(
        "The claim was deleted, was never created, or has another name; for an ephemeral volume, kube- "
        "controller-manager has not made it yet."
    ),
    fixes=(
        "create the claim",
        "correct claimName",
        "for a StatefulSet: delete the pod, so that both are made again",
    ),
)


def _claim_not_found(finding: ClaimNotFound) -> Words:
    made = "kube-controller-manager makes it from the pod's own template" if finding.ephemeral else ""
    needs = f"volume {finding.volume}"
    return Words(
        headline=f"claim {finding.claim} does not exist",
        facts=(Fact(label="needed by", items=(needs, made) if made else (needs,)),),
    )


REASONS[ClaimLost.reason] = Reason(
    plugins=("VolumeBinding",),
    means="The claim's phase is Lost: the PersistentVolume that it was bound to is gone.",
    arises="Somebody deleted the volume, or the storage system did.",
    fixes=("restore the PersistentVolume", "delete the claim and make a new one; its data is gone"),
)


def _claim_lost(finding: ClaimLost) -> Words:
    return Words(headline=f"claim {finding.claim} is lost: its volume {finding.persistent_volume} is gone")


REASONS[ClaimBeingDeleted.reason] = Reason(
    plugins=("VolumeBinding",),
    means="The claim has a deletion timestamp; no new pod may use it.",
    arises="It was deleted while a pod still used it, and goes when the last one has gone.",
    fixes=("wait, then create it again",),
)


def _claim_being_deleted(finding: ClaimBeingDeleted) -> Words:
    return Words(headline=f"claim {finding.claim} is being deleted since {finding.since}")


REASONS[ClaimNotOwned.reason] = Reason(
    plugins=("VolumeBinding",),
    means="An ephemeral volume's claim has the right name but belongs to another owner.",
    arises="A claim of the name POD-VOLUME existed before.",
    fixes=("rename the volume or the pod", "delete the other claim, if nobody needs it"),
)


def _claim_not_owned(finding: ClaimNotOwned) -> Words:
    owner = f"{finding.owner} owns it" if finding.owner else "nobody owns it"
    return Words(headline=f"claim {finding.claim} was not made for this pod: {owner}")


REASONS[ClaimUnbound.reason] = Reason(
    plugins=("VolumeBinding",),
    means=(
        "A claim that must be bound before its pod is scheduled is not bound. Only classes with "
        "volumeBindingMode: WaitForFirstConsumer wait for the pod."
    ),
    arises="The provisioner is slow, missing or failing; the claim names no class or one that does not exist.",
    fixes=("kubectl describe pvc: its events say why", "name an existing class", "repair the provisioner"),
)


def _claim_unbound(finding: ClaimUnbound) -> Words:
    claim = finding.claim
    match finding.cause:
        case "no-class":
            cause = "it names no storage class, so only an existing volume will do"
        case "class-missing":
            cause = f"storage class {claim.storage_class} does not exist"
        case "prebound":
            cause = f"it names volume {finding.persistent_volume}, whose binding is not complete"
        case _:
            cause = f"class {claim.storage_class} binds at once (Immediate), before its pod is scheduled"
    by = (Fact(label="made by", items=(finding.provisioner,)),) if finding.provisioner else ()
    return Words(
        headline=f"claim {claim.claim} is not bound", facts=(Fact(label="because", items=(cause,)), asks(claim), *by)
    )


def asks(claim: ClaimFacts) -> Fact:
    """What a claim wants of a volume."""
    text = size(claim.requested) if claim.requested else "no size"
    items = [f"{text} {'+'.join(claim.access_modes)}".strip(), f"class {claim.storage_class or 'none'}"]
    if claim.volume_mode not in ("", "Filesystem"):
        items.append(f"volumeMode {claim.volume_mode}")
    if claim.selector:
        items.append(f"selector {claim.selector}")
    return Fact(label="asks", items=tuple(items))


def size(number: int) -> str:
    return amount("storage", number)


REASONS[VolumeNotFound.reason] = Reason(
    plugins=("VolumeBinding", "VolumeZone"),
    means="A claim is bound to a PersistentVolume that does not exist.",
    arises="The volume was deleted by force, or the cluster was restored without it.",
    fixes=("restore the PersistentVolume", "delete the claim and make a new one"),
)


def _volume_not_found(finding: VolumeNotFound) -> Words:
    return Words(headline=f"claim {finding.claim} is bound to volume {finding.persistent_volume}, which does not exist")
