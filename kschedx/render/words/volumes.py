"""The claims of a pod in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.findings import (
    AttachedVolume,
    ClaimBeingDeleted,
    ClaimFacts,
    ClaimFinding,
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
    VolumeFinding,
    VolumeLimitExceeded,
    VolumeNodeAffinityMismatch,
    VolumeNotFound,
    VolumeToBind,
    VolumeToProvision,
    VolumeZoneMismatch,
)
from kschedx.render.wording import Brief, Fact, Reason, Words, amount, count, listed
from kschedx.render.words import constraints as terms

CLAIM_REASONS: dict[str, Reason] = {}


def describe_claim(finding: ClaimFinding) -> Words:
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


CLAIM_REASONS[ClaimNotFound.reason] = Reason(
    plugins=("VolumeRestrictions", "VolumeBinding", "NodeVolumeLimits", "VolumeZone"),
    means="A volume names a PersistentVolumeClaim that does not exist in the pod's namespace.",
    causes=(
        "the claim was never created",
        "the name in claimName is wrong",
        "the claim is in another namespace",
        "the claim was deleted",
        "for an ephemeral volume, kube-controller-manager has not created it yet",
    ),
    fixes=(
        "create the claim",
        "correct claimName",
        "for a StatefulSet, delete the pod: the controller creates both again",
    ),
)


def _claim_not_found(finding: ClaimNotFound) -> Words:
    made = "kube-controller-manager creates it from the pod's template" if finding.ephemeral else ""
    needs = f"volume {finding.volume}"
    return Words(
        headline=f"claim {finding.claim} does not exist",
        facts=(Fact(label="needed by", items=(needs, made) if made else (needs,)),),
    )


CLAIM_REASONS[ClaimLost.reason] = Reason(
    plugins=("VolumeBinding",),
    means="The claim's phase is Lost: the PersistentVolume that it was bound to is gone.",
    causes=(
        "a person deleted the PersistentVolume",
        "the storage system deleted the volume",
    ),
    fixes=("restore the PersistentVolume", "delete and recreate the claim; its data is gone"),
)


def _claim_lost(finding: ClaimLost) -> Words:
    return Words(headline=f"claim {finding.claim} is lost: its volume {finding.persistent_volume} is gone")


CLAIM_REASONS[ClaimBeingDeleted.reason] = Reason(
    plugins=("VolumeBinding",),
    means="The claim has a deletion timestamp. No new pod can use it.",
    causes=(
        "the claim was deleted while a pod still used it; it is removed with the last of these pods",
        "a finalizer of another controller holds it",
    ),
    fixes=("wait, then create it again",),
)


def _claim_being_deleted(finding: ClaimBeingDeleted) -> Words:
    return Words(headline=f"claim {finding.claim} is being deleted (since {finding.since})")


CLAIM_REASONS[ClaimNotOwned.reason] = Reason(
    plugins=("VolumeBinding",),
    means="An ephemeral volume's claim has the right name but belongs to another owner.",
    causes=(
        "a claim of the name POD-VOLUME existed before",
        "the pod was recreated under its old name before its claim was deleted",
    ),
    fixes=("rename the volume or the pod", "delete the other claim if it is not needed"),
)


def _claim_not_owned(finding: ClaimNotOwned) -> Words:
    owner = f"{finding.owner} owns it" if finding.owner else "it has no owner"
    return Words(headline=f"claim {finding.claim} was not created for this pod: {owner}")


CLAIM_REASONS[ClaimUnbound.reason] = Reason(
    plugins=("VolumeBinding",),
    means=(
        "A claim that must be bound before its pod is scheduled is not bound. Only classes with "
        "volumeBindingMode: WaitForFirstConsumer wait for the pod."
    ),
    causes=(
        "the provisioner is slow, missing, or failing",
        "the storage class does not exist",
        "the claim names no class, and there is no default class",
        "no existing volume matches the claim",
    ),
    fixes=(
        "repair what the claim's events name (kubectl describe pvc)",
        "name an existing class",
        "repair the provisioner",
    ),
)


def _claim_unbound(finding: ClaimUnbound) -> Words:
    claim = finding.claim
    match finding.cause:
        case "no-class":
            cause = "only an existing volume can be bound to it"
        case "class-missing":
            cause = ""
        case "prebound":
            cause = f"it names volume {finding.persistent_volume}, whose binding is not complete"
        case _:
            cause = f"class {claim.storage_class} binds before the pod is scheduled (Immediate)"
    by = (Fact(label="driver", items=(finding.provisioner,)),) if finding.provisioner else ()
    what = {
        "no-class": "is not bound, and names no storage class",
        "class-missing": f"names storage class {claim.storage_class}, which does not exist",
    }.get(finding.cause, "is not bound")
    return Words(
        headline=f"claim {claim.claim} {what}",
        facts=(*((Fact(label="because", items=(cause,)),) if cause else ()), claim_request(claim), *by),
    )


def claim_request(claim: ClaimFacts) -> Fact:
    """What a claim wants of a volume."""
    text = size_text(claim.requested) if claim.requested else "no size"
    items = [f"{text} {'+'.join(claim.access_modes)}".strip(), f"class {claim.storage_class or 'none'}"]
    if claim.volume_mode not in ("", "Filesystem"):
        items.append(f"volumeMode {claim.volume_mode}")
    if claim.selector:
        items.append(f"selector {claim.selector}")
    return Fact(label="requests", items=tuple(items))


def size_text(number: int) -> str:
    return amount("storage", number)


CLAIM_REASONS[VolumeNotFound.reason] = Reason(
    plugins=("VolumeBinding", "VolumeZone"),
    means="A claim is bound to a PersistentVolume that does not exist.",
    causes=(
        "the volume was deleted by force",
        "the cluster was restored from a backup without it",
    ),
    fixes=("restore the PersistentVolume", "delete and recreate the claim"),
)


def _volume_not_found(finding: VolumeNotFound) -> Words:
    return Words(headline=f"claim {finding.claim} is bound to volume {finding.persistent_volume}, which does not exist")


# Volumes in words.

NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
SHOWN = 4
_LOST = {
    "bound-to-another-claim": "bound to another claim",
    "too-small": "too small",
    "volume-mode": "of another volume mode",
    "volume-attributes-class": "of another attributes class",
    "being-deleted": "being deleted",
    "not-available": "not available",
    "selector": "not selected by the claim",
    "wrong-node": "not accessible from this node",
    "access-modes": "without the access modes",
    "taken": "used by another claim of this pod",
    "not-prebound": "not the volume that names the claim",
}


VOLUME_REASONS: dict[str, Reason] = {}


def describe_volume(finding: VolumeFinding) -> Words:
    match finding:
        case VolumeNodeAffinityMismatch():
            return _volume_node_affinity_mismatch(finding)
        case VolumeZoneMismatch():
            return _volume_zone_mismatch(finding)
        case SelectedNodeMismatch():
            return _selected_node_mismatch(finding)
        case NoMatchingVolume():
            return _no_matching_volume(finding)
        case ProvisioningTopologyMismatch():
            return _provisioning_topology_mismatch(finding)
        case InsufficientStorageCapacity():
            return _insufficient_storage_capacity(finding)
        case DiskConflict():
            return _disk_conflict(finding)
        case ClaimInUse():
            return _claim_in_use(finding)
        case VolumeLimitExceeded():
            return _volume_limit_exceeded(finding)
        case DriverNotInstalled():
            return _driver_not_installed(finding)
        case VolumeToBind():
            return _volume_to_bind(finding)
        case VolumeToProvision():
            return _volume_to_provision(finding)
        case _:
            assert_never(finding)


VOLUME_REASONS[VolumeNodeAffinityMismatch.reason] = Reason(
    plugins=("VolumeBinding",),
    means=("The claim's volume can be used only from nodes that match its node affinity. This node does not."),
    causes=(
        "a zonal disk, and the nodes of its zone are full or gone",
        "a local volume, and its node is full, cordoned, or gone",
        "the pod's own constraints exclude the volume's zone",
    ),
    fixes=("free room in the volume's zone or on its node", "move the data to a new volume elsewhere"),
)


def _volume_node_affinity_mismatch(finding: VolumeNodeAffinityMismatch) -> Words:
    driver = (Fact(label="driver", items=(f"read by the topology key of {finding.driver}",)),) if finding.driver else ()
    return Words(
        headline=f"volume {finding.persistent_volume} is not accessible from this node",
        facts=(Fact(label="claim", items=(finding.claim,)), *terms.term_facts(finding.terms), *driver),
        brief=terms.term_brief(finding.terms),
    )


VOLUME_REASONS[VolumeZoneMismatch.reason] = Reason(
    plugins=("VolumeZone",),
    means="The volume's zone or region label names other zones than the node's.",
    causes=(
        "the nodes of the volume's zone are full or gone",
        "the pod's own constraints exclude the volume's zone",
        "the volume's labels name a wrong zone",
    ),
    fixes=("free room in the volume's zone", "move the data to a new volume elsewhere"),
)


def _volume_zone_mismatch(finding: VolumeZoneMismatch) -> Words:
    zones = listed(finding.zones, SHOWN, conjunction="or")
    node = f"the node has no label {finding.node_key}" if finding.actual is None else f"the node is in {finding.actual}"
    return Words(
        headline=f"volume {finding.persistent_volume} is in {zones}",
        facts=(Fact(label="claim", items=(finding.claim,)), Fact(label="rule", items=(f"{finding.key}: {node}",))),
    )


VOLUME_REASONS[SelectedNodeMismatch.reason] = Reason(
    plugins=("VolumeBinding",),
    means="The claim's volume is being provisioned for another node (annotation volume.kubernetes.io/selected-node).",
    causes=(
        "provisioning on the node of an earlier attempt has not finished",
        "the provisioner fails and does not give up",
        "the node was removed during provisioning",
    ),
    fixes=("wait for the provisioner", "remove the annotation from the claim"),
)


def _selected_node_mismatch(finding: SelectedNodeMismatch) -> Words:
    return Words(headline=f"claim {finding.claim} is being provisioned for node {finding.selected_node}")


VOLUME_REASONS[NoMatchingVolume.reason] = Reason(
    plugins=("VolumeBinding",),
    means="No existing volume can be bound to the claim on this node, and none can be provisioned.",
    causes=(
        "the class has no provisioner, and all its volumes are bound",
        "the free volumes are too small",
        "the free volumes are on other nodes",
        "access modes, volume mode, or labels do not match",
    ),
    fixes=("create a PersistentVolume that fits", "release one that is no longer used", "request a smaller volume"),
)


def _no_matching_volume(finding: NoMatchingVolume) -> Words:
    claim = finding.claim
    static = finding.provisioner in NO_PROVISIONER
    volumes = f"{count(finding.volumes, 'volume')} of class {claim.storage_class or 'none'}"
    items = (volumes, *(f"{one.volumes:,} {_lost(one.lost)}" for one in finding.lost))
    facts = [claim_request(claim), Fact(label="volumes", items=items)]
    if finding.nearest:
        facts.append(Fact(label="nearest", items=tuple(_candidate(one) for one in finding.nearest[:SHOWN])))
    if static:
        facts.append(Fact(label="class", items=(f"{claim.storage_class} has no provisioner: it provisions no volume",)))
    return Words(headline=f"no volume matches claim {claim.claim}", facts=tuple(facts))


def _lost(lost: str) -> str:
    return _LOST.get(lost, lost)


def _candidate(one: VolumeCandidate) -> str:
    detail = f" ({one.detail})" if one.detail else ""
    return f"{one.name} {size_text(one.capacity)} is {_lost(one.lost)}{detail}"


VOLUME_REASONS[ProvisioningTopologyMismatch.reason] = Reason(
    plugins=("VolumeBinding",),
    means=("The claim's class provisions volumes only in its allowedTopologies. The node is outside."),
    causes=(
        "a class for one zone, and pods that may run in others",
        "a zone in allowedTopologies that has no nodes",
        "a typo in allowedTopologies",
    ),
    fixes=("free room on nodes inside", "use a class for this zone"),
)


def _provisioning_topology_mismatch(finding: ProvisioningTopologyMismatch) -> Words:
    claim = finding.claim
    return Words(
        headline=f"class {claim.storage_class} provisions no volume for this node",
        facts=(
            Fact(label="claim", items=(claim.claim, f"provisioned by {finding.provisioner}")),
            *terms.term_facts(finding.terms, "allowed"),
        ),
    )


VOLUME_REASONS[InsufficientStorageCapacity.reason] = Reason(
    plugins=("VolumeBinding",),
    means=(
        "The driver reports its capacity (CSIStorageCapacity), and no storage that the node can access has "
        "room for the claim. The maximum volume size counts before the capacity."
    ),
    causes=(
        "the storage pool is full",
        "the pool cannot provision a volume of this size",
        "the driver has not reported the capacity of a new node yet",
    ),
    fixes=("request a smaller volume", "free room in the pool", "use another class"),
)


def _insufficient_storage_capacity(finding: InsufficientStorageCapacity) -> Words:
    claim = finding.claim
    reachable = [one for one in finding.capacities if one.reachable]
    others = [one for one in finding.capacities if not one.reachable]
    facts = [
        claim_request(claim),
        Fact(label="free", items=tuple(map(_capacity, reachable)) or ("no storage is accessible",)),
    ]
    if others:
        items = (*(f"{_capacity(one)}, not accessible" for one in others[:2]),)
        facts.append(Fact(label="others", items=items))
    return Words(
        shared=f"not enough storage for claim {claim.claim}, which requests {size_text(claim.requested)}",
        headline=f"not enough storage for claim {claim.claim}, which requests {size_text(claim.requested)}: "
        f"the largest volume is {size_text(finding.largest)}",
        facts=(*facts, Fact(label="driver", items=(finding.driver,))),
        brief=Brief(detail=f"largest volume {size_text(finding.largest)}"),
    )


def _capacity(one: StorageCapacity) -> str:
    limit = "does not report its size" if one.limit is None else f"at most {size_text(one.limit)}"
    where = f" ({one.topology})" if one.topology else ""
    return f"{one.name.partition('/')[2] or one.name} {limit}{where}"


VOLUME_REASONS[DiskConflict.reason] = Reason(
    plugins=("VolumeRestrictions",),
    means="A pod on the node uses the same disk, and one of the two writes to it.",
    causes=(
        "two pods name the same disk directly (gcePersistentDisk, awsElasticBlockStore, iscsi, rbd)",
        "a rolling update that starts the new pod before the old one stops",
    ),
    fixes=("mount it read-only in both", "use a claim instead", "wait until the other pod finishes"),
)


def _disk_conflict(finding: DiskConflict) -> Words:
    mine = "reads" if finding.read_only else "writes"
    theirs = "reads" if finding.holder_read_only else "writes"
    return Words(
        headline=f"disk {finding.disk} is in use by {finding.holder}",
        shared=f"disk {finding.disk} is in use",
        facts=(
            Fact(
                label="rule",
                items=(f"this pod {mine}, {finding.holder} {theirs}: {finding.kind} cannot be shared this way",),
            ),
        ),
        brief=Brief(lead="by ", detail=finding.holder),
    )


VOLUME_REASONS[ClaimInUse.reason] = Reason(
    plugins=("VolumeRestrictions",),
    means="The claim's access mode is ReadWriteOncePod, and a running pod uses it.",
    causes=(
        "a rolling update that starts the new pod before the old one stops",
        "a second replica of a workload with one claim",
        "a finished Job's pod that still runs a container",
    ),
    fixes=("strategy: Recreate, or maxSurge: 0", "delete the pod that uses it"),
)


def _claim_in_use(finding: ClaimInUse) -> Words:
    return Words(
        headline=f"claim {finding.claim} is in use by {finding.holder}",
        facts=(
            Fact(label="used by", items=(f"{finding.holder} on {finding.holder_node}",)),
            Fact(label="rule", items=("ReadWriteOncePod: one pod in the cluster may use the claim",)),
        ),
    )


VOLUME_REASONS[VolumeLimitExceeded.reason] = Reason(
    plugins=("NodeVolumeLimits",),
    means="The node cannot attach more volumes of this driver: its CSINode sets the limit.",
    causes=(
        "many small volumes on few nodes",
        "volumes that stay attached without a pod",
        "a machine type with a low limit",
    ),
    fixes=("detach volumes that no pod uses", "move pods with volumes", "add a node"),
)


def _volume_limit_exceeded(finding: VolumeLimitExceeded) -> Words:
    items = tuple(map(_attached, finding.holders))
    return Words(
        headline=f"too many volumes, {finding.attached + finding.wanted:,} > limit {finding.limit:,}",
        shared="too many volumes",
        facts=(
            Fact(
                label="rule",
                items=(
                    f"{finding.attached:,} attached + {finding.wanted:,} of this pod > {finding.limit:,}",
                    finding.driver,
                ),
            ),
            Fact(label="requests", items=finding.volumes),
            Fact(
                label="used by",
                items=items,
                rest=tuple(f"{count(len(items) - shown, 'other volume')}" for shown in range(len(items))),
            ),
        ),
        brief=Brief(detail=f"{finding.attached:,} of {finding.limit:,} attached"),
    )


def _attached(one: AttachedVolume) -> str:
    return f"{one.volume} by {listed(one.pods, 2)}" if one.pods else f"{one.volume} is attached, no pod uses it"


VOLUME_REASONS[DriverNotInstalled.reason] = Reason(
    plugins=("NodeVolumeLimits",),
    means="The node's CSINode does not list the CSI driver that the volume needs.",
    causes=(
        "the driver's DaemonSet does not run on the node, because of a taint or a selector",
        "the driver's pod on the node is failing",
        "the node is new, and its driver has not registered yet",
    ),
    fixes=("run the driver on the node", "use nodes that have it"),
)


def _driver_not_installed(finding: DriverNotInstalled) -> Words:
    installed = listed(finding.installed, SHOWN) or "none"
    return Words(
        headline=f"CSI driver {finding.driver} is not installed on the node",
        facts=(Fact(label="installed", items=(installed,)),),
    )


VOLUME_REASONS[VolumeToBind.reason] = Reason(
    plugins=("VolumeBinding",),
    means="On the selected node an existing volume would be bound to the claim. Nothing is wrong.",
    causes=("a class with volumeBindingMode: WaitForFirstConsumer, whose claims wait for their pod",),
    fixes=("nothing has to be fixed: the claim is bound when the pod is scheduled",),
)


def _volume_to_bind(finding: VolumeToBind) -> Words:
    return Words(
        headline=f"claim {finding.claim.claim} would be bound to volume {finding.persistent_volume} "
        f"({size_text(finding.capacity)})"
    )


VOLUME_REASONS[VolumeToProvision.reason] = Reason(
    plugins=("VolumeBinding",),
    means="On the selected node a volume would be provisioned for the claim. Nothing is wrong.",
    causes=("a class with volumeBindingMode: WaitForFirstConsumer and a provisioner",),
    fixes=("nothing has to be fixed: the volume is provisioned when the pod is scheduled",),
)


def _volume_to_provision(finding: VolumeToProvision) -> Words:
    return Words(
        headline=f"a volume of {size_text(finding.claim.requested)} would be provisioned "
        f"for claim {finding.claim.claim} by {finding.provisioner} on {finding.node}"
    )
