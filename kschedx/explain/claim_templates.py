"""The ResourceClaims that kube-controller-manager makes for a new pod from its templates.

A manifest that is not in the cluster yet has none; kube-scheduler would see it once they are there.
Upstream: pkg/controller/resourceclaim.
"""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.devices import ResourceClaim
from kschedx.api.types import ObjectMeta, OwnerReference, Pod, PodResourceClaimStatus
from kschedx.explain.notes import Note
from kschedx.snapshot.snapshot import Snapshot

NOTE = "claims-from-templates"


def with_claims_of_templates(snapshot: Snapshot, pod: Pod) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """The cluster with the claims, the pod whose status names them, and what was made, as a note."""
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
        made[claim.key] = claim
        templates.append(template)
        statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=name))
    if not made:
        return snapshot, pod, ()
    devices = replace(snapshot.devices, claims={**snapshot.devices.claims, **made})
    status = replace(pod.status, resource_claim_statuses=(*pod.status.resource_claim_statuses, *statuses))
    text = f"claims as kube-controller-manager makes them for the pod: {', '.join(made)} from {', '.join(templates)}"
    note = Note(id=NOTE, text=text, facts={"claims": list(made), "templates": templates})
    return snapshot.with_devices(devices), replace(pod, status=status), (note,)
