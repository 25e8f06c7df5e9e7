"""Findings about claims and volumes in words."""

from __future__ import annotations

from kschedx.findings import (
    AttachedVolume,
    ClaimBeingDeleted,
    ClaimFacts,
    ClaimInUse,
    ClaimLost,
    ClaimNotFound,
    ClaimNotOwned,
    ClaimUnbound,
    DiskConflict,
    DriverNotInstalled,
    InsufficientStorageCapacity,
    NoMatchingVolume,
    ProvisioningTopologyMismatch,
    SelectedNodeMismatch,
    StorageCapacity,
    VolumeCandidate,
    VolumeLimitExceeded,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
    VolumeZoneMismatch,
)
from kschedx.render import terms
from kschedx.render.units import amount, count, listed
from kschedx.render.wording import Brief, Fact, Words

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
SHOWN = 4


def _size(number: int) -> str:
    return amount("storage", number)


def _asks(claim: ClaimFacts) -> Fact:
    size = _size(claim.requested) if claim.requested else "no size"
    items = [f"{size} {'+'.join(claim.access_modes)}".strip(), f"class {claim.storage_class or 'none'}"]
    if claim.volume_mode not in ("", "Filesystem"):
        items.append(f"volumeMode {claim.volume_mode}")
    if claim.selector:
        items.append(f"selector {claim.selector}")
    return Fact(label="asks", items=tuple(items))


# --- the claims of a pod


def claim_not_found(finding: ClaimNotFound) -> Words:
    made = "kube-controller-manager makes it from the pod's own template" if finding.ephemeral else ""
    needs = f"volume {finding.volume}"
    return Words(
        headline=f"claim {finding.claim} does not exist",
        facts=(Fact(label="needed by", items=(needs, made) if made else (needs,)),),
    )


def claim_lost(finding: ClaimLost) -> Words:
    return Words(headline=f"claim {finding.claim} is lost: its volume {finding.persistent_volume} is gone")


def claim_being_deleted(finding: ClaimBeingDeleted) -> Words:
    return Words(headline=f"claim {finding.claim} is being deleted since {finding.since}")


def claim_not_owned(finding: ClaimNotOwned) -> Words:
    owner = f"{finding.owner} owns it" if finding.owner else "nobody owns it"
    return Words(headline=f"claim {finding.claim} was not made for this pod: {owner}")


def claim_unbound(finding: ClaimUnbound) -> Words:
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
        headline=f"claim {claim.claim} is not bound", facts=(Fact(label="because", items=(cause,)), _asks(claim), *by)
    )


def volume_not_found(finding: VolumeNotFound) -> Words:
    return Words(headline=f"claim {finding.claim} is bound to volume {finding.persistent_volume}, which does not exist")


# --- volumes against nodes


def volume_node_affinity_mismatch(finding: VolumeNodeAffinityMismatch) -> Words:
    driver = (Fact(label="driver", items=(f"read by the topology key of {finding.driver}",)),) if finding.driver else ()
    return Words(
        headline=f"volume {finding.persistent_volume} cannot be reached from here",
        facts=(Fact(label="claim", items=(finding.claim,)), *terms.facts(finding.terms), *driver),
        brief=terms.brief(finding.terms),
    )


def volume_zone_mismatch(finding: VolumeZoneMismatch) -> Words:
    zones = listed(finding.zones, SHOWN, conjunction="or")
    node = f"the node has no label {finding.node_key}" if finding.actual is None else f"the node is in {finding.actual}"
    return Words(
        headline=f"volume {finding.persistent_volume} is in {zones}",
        facts=(Fact(label="claim", items=(finding.claim,)), Fact(label="rule", items=(f"{finding.key}: {node}",))),
    )


def selected_node_mismatch(finding: SelectedNodeMismatch) -> Words:
    return Words(headline=f"claim {finding.claim} is being provisioned for node {finding.selected_node}")


def no_matching_volume(finding: NoMatchingVolume) -> Words:
    claim = finding.claim
    static = finding.provisioner in NO_PROVISIONER
    made = "the class has no provisioner, so none can be made" if static else ""
    volumes = f"{count(finding.volumes, 'volume')} of class {claim.storage_class or 'none'}"
    items = (volumes, *(f"{one.volumes:,} {_lost(one.lost)}" for one in finding.lost))
    facts = [_asks(claim), Fact(label="offers", items=items)]
    if finding.nearest:
        facts.append(Fact(label="nearest", items=tuple(_candidate(one) for one in finding.nearest[:SHOWN])))
    if made:
        facts.append(Fact(label="made by", items=(made,)))
    return Words(headline=f"no volume for claim {claim.claim}", facts=tuple(facts))


_LOST = {
    "bound-to-another-claim": "bound to another claim",
    "too-small": "too small",
    "volume-mode": "of another volume mode",
    "volume-attributes-class": "of another attributes class",
    "being-deleted": "being deleted",
    "not-available": "not available",
    "selector": "not selected by the claim",
    "wrong-node": "out of this node's reach",
    "access-modes": "without the access modes",
    "taken": "taken by another claim of this pod",
    "not-prebound": "not the volume that names the claim",
}


def _lost(lost: str) -> str:
    return _LOST.get(lost, lost)


def _candidate(one: VolumeCandidate) -> str:
    detail = f" ({one.detail})" if one.detail else ""
    return f"{one.name} {_size(one.capacity)} is {_lost(one.lost)}{detail}"


def provisioning_topology_mismatch(finding: ProvisioningTopologyMismatch) -> Words:
    claim = finding.claim
    return Words(
        headline=f"class {claim.storage_class} makes no volume for this node",
        facts=(
            Fact(label="claim", items=(claim.claim, f"made by {finding.provisioner}")),
            *terms.facts(finding.terms, "allowed"),
        ),
    )


def insufficient_storage_capacity(finding: InsufficientStorageCapacity) -> Words:
    claim = finding.claim
    reachable = [one for one in finding.capacities if one.reachable]
    others = [one for one in finding.capacities if not one.reachable]
    facts = [_asks(claim), Fact(label="offers", items=tuple(map(_capacity, reachable)) or ("nothing within reach",))]
    if others:
        items = (*(f"{_capacity(one)}, out of reach" for one in others[:2]),)
        facts.append(Fact(label="others", items=items))
    return Words(
        headline=f"storage for claim {claim.claim}: {_size(claim.requested)} asked, "
        f"{_size(finding.largest)} is the largest volume",
        facts=(*facts, Fact(label="driver", items=(finding.driver,))),
        brief=Brief(detail=f"largest volume {_size(finding.largest)}"),
    )


def _capacity(one: StorageCapacity) -> str:
    limit = "says nothing of its size" if one.limit is None else f"{_size(one.limit)} at most"
    where = f" ({one.topology})" if one.topology else ""
    return f"{one.name.partition('/')[2] or one.name} {limit}{where}"


# --- what other pods hold


def disk_conflict(finding: DiskConflict) -> Words:
    mine = "reads" if finding.read_only else "writes"
    theirs = "reads" if finding.holder_read_only else "writes"
    return Words(
        headline=f"disk {finding.disk} is in use by {finding.holder}",
        facts=(
            Fact(label="rule", items=(f"this pod {mine}, {finding.holder} {theirs}: {finding.kind} is not shared so",)),
        ),
        brief=Brief(lead="by ", detail=finding.holder),
    )


def claim_in_use(finding: ClaimInUse) -> Words:
    return Words(
        headline=f"claim {finding.claim} is in use by {finding.holder}",
        facts=(
            Fact(label="held by", items=(f"{finding.holder} on {finding.holder_node}",)),
            Fact(label="rule", items=("ReadWriteOncePod: a single pod in the cluster may use the claim",)),
        ),
    )


def volume_limit_exceeded(finding: VolumeLimitExceeded) -> Words:
    items = tuple(map(_attached, finding.holders))
    return Words(
        headline=f"too many volumes, {finding.attached + finding.wanted:,} > limit {finding.limit:,}",
        facts=(
            Fact(
                label="rule",
                items=(
                    f"{finding.attached:,} attached + {finding.wanted:,} of this pod > {finding.limit:,}",
                    finding.driver,
                ),
            ),
            Fact(label="asks", items=finding.volumes),
            Fact(
                label="held by",
                items=items,
                rest=tuple(f"{count(len(items) - shown, 'other volume')}" for shown in range(len(items))),
            ),
        ),
        brief=Brief(detail=f"{finding.attached:,} of {finding.limit:,} attached"),
    )


def _attached(one: AttachedVolume) -> str:
    return f"{one.volume} by {listed(one.pods, 2)}" if one.pods else f"{one.volume} attached, no pod uses it"


def driver_not_installed(finding: DriverNotInstalled) -> Words:
    installed = listed(finding.installed, SHOWN) or "none"
    return Words(
        headline=f"CSI driver {finding.driver} is not installed on the node",
        facts=(Fact(label="installed", items=(installed,)),),
    )


# --- what would be done for the chosen node


def volume_to_bind(finding: VolumeToBind) -> Words:
    return Words(
        headline=f"claim {finding.claim.claim} would be bound to volume {finding.persistent_volume} "
        f"({_size(finding.capacity)})"
    )


def volume_to_provision(finding: VolumeToProvision) -> Words:
    return Words(
        headline=f"a volume of {_size(finding.claim.requested)} would be made for claim {finding.claim.claim} "
        f"by {finding.provisioner} on {finding.node}"
    )
