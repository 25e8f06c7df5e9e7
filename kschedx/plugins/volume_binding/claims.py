"""PreFilter: a pod's claims, and what keeps the pod from being scheduled anywhere (binder.go, GetPodVolumeClaims)."""

from __future__ import annotations

from msgspec import Struct

from kschedx.api.pod_claims import claim_name, not_owned_by
from kschedx.api.pod_volumes import Volume
from kschedx.api.storage import PersistentVolumeClaim, not_found
from kschedx.api.types import Pod
from kschedx.findings import ClaimBeingDeleted, ClaimLost, ClaimNotFound, ClaimNotOwned, Finding
from kschedx.framework.status import Code, Status
from kschedx.plugins.claim_facts import claim_unbound
from kschedx.snapshot.storage import Storage

REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class PodClaims(Struct, frozen=True, kw_only=True):
    """A pod's claims in the order of its volumes; a claim that two volumes name is there twice."""

    bound: tuple[PersistentVolumeClaim, ...] = ()
    delayed: tuple[PersistentVolumeClaim, ...] = ()
    """Unbound ones that wait for their first consumer, which is this pod."""


def pod_claims(pod: Pod, storage: Storage) -> PodClaims | Status | None:
    """The claims to be settled on a node; the status that rejects the pod on all nodes; None without any claim."""
    claims: list[PersistentVolumeClaim] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod.metadata.name, volume)
        if name is None:
            continue
        claim = storage.claim(pod.metadata.namespace, name)
        wrong = _wrong(pod, volume, name, claim)
        if wrong is not None:
            return Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons=(wrong[0],), findings=(wrong[1],))
        assert claim is not None
        claims.append(claim)
    if not claims:
        return None
    unbound = [claim for claim in claims if not claim.is_fully_bound]
    immediate = [claim for claim in unbound if not _waits(claim, storage)]
    if immediate:
        findings = tuple(claim_unbound(claim, storage) for claim in immediate)
        code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        return Status(code=code, reasons=(REASON_UNBOUND_IMMEDIATE,), findings=findings)
    return PodClaims(bound=tuple(claim for claim in claims if claim.is_fully_bound), delayed=tuple(unbound))


def _waits(claim: PersistentVolumeClaim, storage: Storage) -> bool:
    """The claim is bound when a node has been chosen; one that names its volume already is not."""
    storage_class = storage.classes.get(claim.storage_class) if claim.storage_class else None
    return storage_class is not None and storage_class.waits_for_first_consumer and not claim.spec.volume_name


def _wrong(pod: Pod, volume: Volume, name: str, claim: PersistentVolumeClaim | None) -> tuple[str, Finding] | None:
    """What is wrong with a claim itself, in upstream's words and as facts."""
    ephemeral = volume.persistent_volume_claim is None
    if claim is None:
        finding = ClaimNotFound(claim=f"{pod.metadata.namespace}/{name}", volume=volume.name, ephemeral=ephemeral)
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"', finding
        return not_found("persistentvolumeclaim", name), finding
    if claim.status.phase == "Lost":
        gone = claim.spec.volume_name
        text = f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'
        return text, ClaimLost(claim=claim.key, persistent_volume=gone)
    if claim.metadata.deletion_timestamp is not None:
        since = claim.metadata.deletion_timestamp
        return f'persistentvolumeclaim "{name}" is being deleted', ClaimBeingDeleted(claim=claim.key, since=since)
    not_owned = not_owned_by(claim, pod.metadata) if ephemeral else None
    if not_owned is not None:
        owner = claim.metadata.controller
        return not_owned, ClaimNotOwned(claim=claim.key, owner=f"{owner.kind}/{owner.name}" if owner else "")
    return None
