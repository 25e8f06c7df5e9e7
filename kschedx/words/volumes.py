"""PersistentVolumeClaims of a pod, and volumes, in words."""

from __future__ import annotations

from kschedx import findings
from kschedx.wording import Brief, Fact, Words, amount, count, in_words, list_names, register_templates
from kschedx.words import constraints as terms

register_templates(
    {
        findings.ClaimLost: ("claim {f.claim} is lost: its volume {f.persistent_volume} is gone",),
        findings.ClaimBeingDeleted: ("claim {f.claim} is being deleted (since {f.since})",),
        findings.VolumeNotFound: ("claim {f.claim} is bound to volume {f.persistent_volume}, which does not exist",),
        findings.SelectedNodeMismatch: ("claim {f.claim} is being provisioned for node {f.selected_node}",),
        findings.ClaimInUse: (
            "claim {f.claim} is in use by {f.holder}",
            ("used by", "{f.holder} on {f.holder_node}"),
            ("rule", "ReadWriteOncePod: one pod in the cluster may use the claim"),
        ),
    }
)


@in_words.register
def _claim_not_found(finding: findings.ClaimNotFound) -> Words:
    text = "kube-controller-manager creates it from the pod's template" if finding.ephemeral else ""
    needs = f"volume {finding.volume}"
    return Words(
        headline=f"claim {finding.claim} does not exist",
        facts=(Fact.of("needed by", *((needs, text) if text else (needs,))),),
    )


@in_words.register
def _claim_not_owned(finding: findings.ClaimNotOwned) -> Words:
    owner = f"{finding.owner} owns it" if finding.owner else "it has no owner"
    return Words(headline=f"claim {finding.claim} was not created for this pod: {owner}")


@in_words.register
def _claim_unbound(finding: findings.ClaimUnbound) -> Words:
    claim = finding.claim
    match finding.cause:
        case "no-class":
            cause = "only an existing volume can be bound to it"
        case "class-missing":
            cause = ""
        case "static":
            cause = f"without a StorageClass {claim.storage_class}, only an existing volume of that class can be bound"
        case "prebound":
            cause = f"it names volume {finding.persistent_volume}, whose binding is not complete"
        case _:
            cause = f"class {claim.storage_class} binds before the pod is scheduled (Immediate)"
    by = (Fact.of("driver", finding.provisioner),) if finding.provisioner else ()
    what = {
        "no-class": "is not bound, and names no storage class",
        "class-missing": f"names storage class {claim.storage_class}, which does not exist",
        "new": f"is new, and another claim of class {claim.storage_class} waits for its volume",
    }.get(finding.cause, "is not bound")
    return Words(
        headline=f"claim {claim.claim} {what}",
        facts=(*((Fact.of("because", cause),) if cause else ()), _claim_request(claim), *by),
    )


def _claim_request(claim: findings.ClaimFacts) -> Fact:
    text = _size_text(claim.requested) if claim.requested else "no size"
    items = [f"{text} {'+'.join(claim.access_modes)}".strip(), f"class {claim.storage_class or 'none'}"]
    if claim.volume_mode not in ("", "Filesystem"):
        items.append(f"volumeMode {claim.volume_mode}")
    if claim.selector:
        items.append(f"selector {claim.selector}")
    return Fact.of("requests", *items)


def _size_text(number: int) -> str:
    return amount("storage", number)


_NO_PROVISIONER = ("", "kubernetes.io/no-provisioner")
_SHOWN = 4
_LOST = {
    "bound-to-another-claim": "bound to another claim",
    "released": "released by a deleted claim",
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


@in_words.register
def _volume_node_affinity_mismatch(finding: findings.VolumeNodeAffinityMismatch) -> Words:
    driver = (Fact.of("driver", f"read by the topology key of {finding.driver}"),) if finding.driver else ()
    return Words(
        headline=f"volume {finding.persistent_volume} is not accessible from this node",
        general=f"{placed_volume(finding)} is not accessible",
        facts=(Fact.of("claim", finding.claim), *terms.term_facts(finding.terms), *driver),
        brief=terms.term_brief(finding.terms),
    )


def placed_volume(finding: findings.VolumeNodeAffinityMismatch) -> str:
    """Return the volume and where it is: `volume pv-1 (zone eu-1c)`."""
    unmet = [requirement for term in finding.terms for requirement in term.requirements if not requirement.matched]
    of_key = (value for requirement in unmet if requirement.key == unmet[0].key for value in requirement.values)
    places = list_names([*dict.fromkeys(filter(None, of_key))], _SHOWN)
    place = f" ({unmet[0].key.rpartition('/')[2]} {places})" if places else ""
    return f"volume {finding.persistent_volume}{place}"


@in_words.register
def _volume_zone_mismatch(finding: findings.VolumeZoneMismatch) -> Words:
    zones = list_names(finding.zones, _SHOWN, conjunction="or")
    node = f"the node has no label {finding.node_key}" if finding.actual is None else f"the node is in {finding.actual}"
    return Words(
        headline=f"volume {finding.persistent_volume} is in {zones}",
        facts=(Fact.of("claim", finding.claim), Fact.of("rule", f"{finding.key}: {node}")),
    )


@in_words.register
def _no_matching_volume(finding: findings.NoMatchingVolume) -> Words:
    claim = finding.claim
    static = finding.provisioner in _NO_PROVISIONER
    volumes = f"{count(finding.volumes, 'volume')} of class {claim.storage_class or 'none'}"
    items = (volumes, *(f"{lost.volumes:,} {_lost(lost.lost)}" for lost in finding.lost))
    facts = [_claim_request(claim), Fact.of("volumes", *items)]
    if finding.nearest:
        facts.append(Fact.of("nearest", *(_candidate(candidate) for candidate in finding.nearest[:_SHOWN])))
    if static:
        facts.append(Fact.of("class", f"{claim.storage_class} has no provisioner: it provisions no volume"))
    return Words(headline=f"no volume matches claim {claim.claim}", facts=tuple(facts))


def nearest_text(finding: findings.NoMatchingVolume) -> str:
    """Return what the only volume of the class lacks: `nfs-1 5Gi is too small`; empty if there are several, or none."""
    return _candidate(finding.nearest[0]) if finding.volumes == len(finding.nearest) == 1 else ""


def _lost(lost: str) -> str:
    return _LOST.get(lost, lost)


def _candidate(candidate: findings.VolumeCandidate) -> str:
    detail = f" ({candidate.detail})" if candidate.detail else ""
    return f"{candidate.name} {_size_text(candidate.capacity)} is {_lost(candidate.lost)}{detail}"


@in_words.register
def _provisioning_topology_mismatch(finding: findings.ProvisioningTopologyMismatch) -> Words:
    claim = finding.claim
    return Words(
        headline=f"class {claim.storage_class} provisions no volume for this node",
        facts=(
            Fact.of("claim", claim.claim, f"provisioned by {finding.provisioner}"),
            *terms.term_facts(finding.terms, "allowed"),
        ),
    )


@in_words.register
def _insufficient_storage_capacity(finding: findings.InsufficientStorageCapacity) -> Words:
    claim = finding.claim
    reachable = [capacity for capacity in finding.capacities if capacity.reachable]
    others = [capacity for capacity in finding.capacities if not capacity.reachable]
    facts = [
        _claim_request(claim),
        Fact.of("free", *(tuple(map(_capacity, reachable)) or ("no storage is accessible",))),
    ]
    if others:
        items = (*(f"{_capacity(finding)}, not accessible" for finding in others[:2]),)
        facts.append(Fact.of("others", *items))
    return Words(
        shared=f"not enough storage for claim {claim.claim}, which requests {_size_text(claim.requested)}",
        headline=f"not enough storage for claim {claim.claim}, which requests {_size_text(claim.requested)}: "
        f"the largest volume is {_size_text(finding.largest)}",
        facts=(*facts, Fact.of("driver", finding.driver)),
        brief=Brief(detail=f"largest volume {_size_text(finding.largest)}"),
    )


def _capacity(capacity: findings.StorageCapacity) -> str:
    limit = "does not report its size" if capacity.limit is None else f"at most {_size_text(capacity.limit)}"
    where = f" ({capacity.topology})" if capacity.topology else ""
    return f"{capacity.name.partition('/')[2] or capacity.name} {limit}{where}"


@in_words.register
def _disk_conflict(finding: findings.DiskConflict) -> Words:
    own_use = "reads" if finding.read_only else "writes"
    holder_use = "reads" if finding.holder_read_only else "writes"
    return Words(
        headline=f"disk {finding.disk} is in use by {finding.holder}",
        shared=f"disk {finding.disk} is in use",
        facts=(
            Fact.of(
                "rule", f"this pod {own_use}, {finding.holder} {holder_use}: {finding.kind} cannot be shared this way"
            ),
        ),
        brief=Brief(lead="by ", detail=finding.holder),
    )


@in_words.register
def _volume_limit_exceeded(finding: findings.VolumeLimitExceeded) -> Words:
    items = tuple(map(_attached_text, finding.holders))
    others = tuple(f"{count(len(items) - shown, 'other volume')}" for shown in range(len(items)))
    used = Fact.of("used by", *items, rest=others)
    excess = f"{finding.attached + finding.wanted_count:,} > limit {finding.limit:,}"
    return Words(
        headline=f"too many volumes, {excess}",
        shared="too many volumes",
        general=f"too many volumes of {finding.driver}, {excess}",
        facts=(
            Fact.of(
                "rule",
                f"{finding.attached:,} attached + {finding.wanted_count:,} of this pod > {finding.limit:,}",
                finding.driver,
            ),
            Fact.of("requests", *finding.volumes),
            *([used] if items else []),
        ),
        brief=Brief(detail=f"{finding.attached:,} of {finding.limit:,} attached"),
    )


def _attached_text(finding: findings.AttachedVolume) -> str:
    if finding.pods:
        return f"{finding.volume} by {list_names(finding.pods, 2)}"
    return f"{finding.volume} is attached, no pod uses it"


@in_words.register
def _driver_not_installed(finding: findings.DriverNotInstalled) -> Words:
    installed = list_names(finding.installed, _SHOWN) or "none"
    return Words(
        headline=f"CSI driver {finding.driver} is not installed on the node", facts=(Fact.of("installed", installed),)
    )


@in_words.register
def _volume_to_bind(finding: findings.VolumeToBind) -> Words:
    return Words(
        headline=f"claim {finding.claim.claim} would be bound to volume {finding.persistent_volume} "
        f"({_size_text(finding.capacity)})"
    )


@in_words.register
def _volume_to_provision(finding: findings.VolumeToProvision) -> Words:
    return Words(
        headline=f"a volume of {_size_text(finding.claim.requested)} would be provisioned "
        f"for claim {finding.claim.claim} by {finding.provisioner} on {finding.node}"
    )
