"""Claims that a pod has for itself: of generic ephemeral volumes, and of devices by a template."""

from __future__ import annotations

from msgspec.structs import replace

from kschedx.api.pod_claims import ephemeral_claim_name
from kschedx.api.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus
from kschedx.api.types import ObjectMeta, OwnerReference, Pod
from kschedx.explain.claim_templates import with_claims_of_templates
from kschedx.framework.moving import Run
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import StorageChange


def with_own_claims(snapshot: Snapshot, like: Pod, pod: Pod) -> tuple[Snapshot, Pod]:
    """The cluster with the claims of a new pod that is like another one, and the pod, whose status names them."""
    made: dict[str, PersistentVolumeClaim] = {}
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            template = snapshot.storage.claim(like.metadata.namespace, ephemeral_claim_name(like.metadata.name, volume))
            if template is not None:
                claim = _unbound(template, pod, ephemeral_claim_name(pod.metadata.name, volume))
                made[claim.key] = claim
    if made:
        snapshot = snapshot.with_claims(made)
    snapshot, pod, _ = with_claims_of_templates(snapshot, pod)
    return snapshot, pod


def _unbound(template: PersistentVolumeClaim, pod: Pod, name: str) -> PersistentVolumeClaim:
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,), uid=f"new/{name}")
    spec = replace(template.spec, volume_name="")
    return replace(template, metadata=metadata, spec=spec, status=PersistentVolumeClaimStatus())


def evict(run: Run, row: int, *, waits: bool) -> None:
    """Take a pod away, with what claims it has for itself. `waits`: its controller makes another one, which has others
    of the same names."""
    run.evict(row, waits=waits)
    if not any(volume.ephemeral for volume in run.cluster.pods.specs[row].volumes):
        return
    pod = run.cluster.pods[row]
    claims = run.snapshot.storage.claims
    names = [ephemeral_claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes if volume.ephemeral]
    its = [claim for name in names if (claim := claims.get(f"{pod.metadata.namespace}/{name}")) is not None]
    if waits and its:
        run.cluster.set_storage(StorageChange(claims={claim.key: _unbound(claim, pod, claim.name) for claim in its}))
