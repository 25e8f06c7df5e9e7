"""The claims behind a pod's volumes: their names, and whose they are.

Upstream: component-helpers/storage/ephemeral.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.api.pod_volumes import Volume
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import ObjectMeta, Pod


def ephemeral_claim_name(pod_name: str, volume: Volume) -> str:
    """The name of the claim that is made for a generic ephemeral volume."""
    return f"{pod_name}-{volume.name}"


def claim_name(pod_name: str, volume: Volume) -> str | None:
    """The claim behind a pod's volume; None where there is none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return ephemeral_claim_name(pod_name, volume) if volume.ephemeral is not None else None


def own_claims(pod: Pod) -> Mapping[str, bool]:
    """The claims that a pod names, `namespace/name`, and whether each is of a generic ephemeral volume."""
    named = ((claim_name(pod.metadata.name, volume), volume.ephemeral is not None) for volume in pod.spec.volumes)
    return {f"{pod.metadata.namespace}/{name}": is_ephemeral for name, is_ephemeral in named if name is not None}


def not_owned_by(claim: PersistentVolumeClaim, pod: ObjectMeta) -> str | None:
    """VolumeIsForPod: why the claim is not the one that was made for the pod's ephemeral volume, or None if it is.

    A pod without a uid is yet to be created, so nothing was made for it.
    """
    owner = claim.metadata.controller
    is_owner = owner is not None and owner.uid != "" and owner.uid == pod.uid
    if is_owner and claim.metadata.namespace == pod.namespace:
        return None
    return f"PVC {claim.key} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
