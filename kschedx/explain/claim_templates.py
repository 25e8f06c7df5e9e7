"""What kube-controller-manager makes for a new pod: claims of devices and of volumes, from templates.

A manifest that is not in the cluster yet has none; kube-scheduler would see it once they are there.
Upstream: pkg/controller/resourceclaim, pkg/controller/volume/ephemeral, pkg/controller/statefulset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
from msgspec.structs import replace

from kschedx.api.decode import decode
from kschedx.api.devices import ResourceClaim
from kschedx.api.storage import PersistentVolumeClaim, check_quantities, default_class, with_default_class
from kschedx.api.types import ObjectMeta, OwnerReference, Pod, PodResourceClaimStatus
from kschedx.explain.notes.claims import (
    ClaimNote,
    ClaimNotMade,
    ClaimsOfController,
    ClaimsOfTemplates,
    ClaimsOfVolumes,
    DeviceClaimNotMade,
)
from kschedx.explain.quotas import Ledger
from kschedx.releases.release import Release
from kschedx.snapshot.applied import with_applied
from kschedx.snapshot.snapshot import Snapshot

NEW_UID = "new"
"""Of a pod that has claims of its own, which name it."""


def with_made(snapshot: Snapshot, manifests: Sequence[Mapping[str, object]]) -> tuple[Snapshot, tuple[ClaimNote, ...]]:
    """The cluster with what a pod's controller makes before the pod, and its claims as a note.

    Of a StatefulSet that is there already, nothing is known of claims that were not listed.
    """
    claims = [one for one in manifests if one.get("kind") == "PersistentVolumeClaim"]
    others = [one for one in manifests if one.get("kind") != "PersistentVolumeClaim"]
    named = {f"{_of(one, 'namespace')}/{_of(one, 'name')}": one for one in claims}
    new = {key: one for key, one in named.items() if key not in snapshot.storage.claims}
    if others or new:
        snapshot = with_applied(snapshot, [*others, *new.values()])
    if not new:
        return snapshot, ()
    return snapshot, (ClaimsOfController(claims=tuple(new)),)


def _of(manifest: Mapping[str, object], field: str) -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get(field) or "") if isinstance(metadata, dict) else ""


def with_ephemeral_claims(
    snapshot: Snapshot, pod: Pod, manifest: Mapping[str, object], release: Release
) -> tuple[Snapshot, Pod, tuple[ClaimNote, ...]]:
    """The cluster with the claims of the pod's generic ephemeral volumes, the pod that owns them, and notes, also about
    those that are refused."""
    spec = manifest.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    made: dict[str, PersistentVolumeClaim] = {}
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=NEW_UID, controller=True)
    classes = default_class(snapshot.storage.classes.values())
    quotas = Ledger(snapshot, release)
    refused: list[ClaimNote] = []
    for volume in volumes if isinstance(volumes, list) else ():
        ephemeral = volume.get("ephemeral")
        template = ephemeral.get("volumeClaimTemplate") if isinstance(ephemeral, dict) else None
        if not isinstance(template, dict):
            continue
        name = f"{pod.metadata.name}-{volume.get('name')}"
        claim = decode(msgspec.json.encode({"spec": template.get("spec") or {}}), PersistentVolumeClaim)
        metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,))
        claim = replace(claim, metadata=metadata)
        check_quantities(claim)
        if claim.key in snapshot.storage.claims:
            continue
        claim = with_default_class(claim, classes)
        refusal = quotas.take(claim)
        if refusal is None:
            made[claim.key] = claim
        else:
            refused.append(ClaimNotMade(claim=claim.key, refusal=refusal))
    if not made:
        return snapshot, pod, tuple(refused)
    owning = replace(pod, metadata=replace(pod.metadata, uid=NEW_UID))
    return snapshot.with_claims(made), owning, (ClaimsOfVolumes(claims=tuple(made)), *refused)


def with_claims_of_templates(
    snapshot: Snapshot, pod: Pod, quotas: Ledger | None = None
) -> tuple[Snapshot, Pod, tuple[ClaimNote, ...]]:
    """The cluster with the claims, the pod whose status names them, and what was made, as a note; without those that
    `quotas` refuse."""
    refused: list[ClaimNote] = []
    known = {status.name for status in pod.status.resource_claim_statuses}
    made: dict[str, ResourceClaim] = {}
    templates: list[str] = []
    statuses: list[PodResourceClaimStatus] = []
    for reference in pod.spec.resource_claims:
        template = f"{pod.metadata.namespace}/{reference.resource_claim_template_name}"
        spec = snapshot.devices.templates.get(template)
        if reference.resource_claim_name is not None or spec is None or reference.name in known:
            continue
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True
        )
        name = f"{pod.metadata.name}-{reference.name}"
        metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,))
        claim = ResourceClaim(metadata=metadata, spec=spec)
        refusal = None if quotas is None else quotas.take(claim)
        if refusal is not None:
            refused.append(DeviceClaimNotMade(claim=claim.key, refusal=refusal))
            continue
        made[claim.key] = claim
        templates.append(template)
        statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=name))
    if not made:
        return snapshot, pod, tuple(refused)
    devices = replace(snapshot.devices, claims={**snapshot.devices.claims, **made})
    status = replace(pod.status, resource_claim_statuses=(*pod.status.resource_claim_statuses, *statuses))
    note = ClaimsOfTemplates(claims=tuple(made), templates=tuple(templates))
    return snapshot.with_devices(devices), replace(pod, status=status), (note, *refused)
