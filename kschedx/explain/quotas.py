"""Whether the ResourceQuotas of a snapshot let a new pod and its claims in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx.api.resource_quota import (
    New,
    ResourceQuota,
    charged,
    claim_not_created,
    not_created,
    quota_refusal,
    with_status,
)
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import ObjectMeta, Pod
from kschedx.errors import NotAdmittedError
from kschedx.releases.release import Release
from kschedx.snapshot.snapshot import Snapshot

_POD_LEVEL = "PodLevelResources"


def require_quota(snapshot: Snapshot, pod: Pod, release: Release) -> None:
    """Raise `NotAdmittedError` where a quota refuses the pod, in the API server's words or its controller's.

    A pod that is there already, or whose controller has pods already, takes nobody's place: it is in what is used.
    """
    if pod.key in snapshot.pods.rows or _has_siblings(snapshot, pod.metadata):
        return
    on = release.gates.get(_POD_LEVEL, False)
    refusal = quota_refusal(pod, _quotas(snapshot, pod.metadata.namespace, on), pod_level_resources=on)
    if refusal is not None:
        raise NotAdmittedError(not_created(pod, refusal))


def require_quota_of_claims(
    snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim], pod: Pod, release: Release
) -> None:
    """The same for claims that the pod's StatefulSet makes before the pod, one after the other."""
    on = release.gates.get(_POD_LEVEL, False)
    quotas = _quotas(snapshot, pod.metadata.namespace, on)
    for claim in claims:
        refusal = quota_refusal(claim, quotas, pod_level_resources=on)
        if refusal is not None:
            raise NotAdmittedError(claim_not_created(claim, pod, refusal))
        quotas = tuple(charged(one, claim, pod_level_resources=on) for one in quotas)


def new_claims(before: Snapshot, after: Snapshot) -> tuple[PersistentVolumeClaim, ...]:
    """What one snapshot has more than the other."""
    if after.storage.claims is before.storage.claims:
        return ()
    return tuple(claim for key, claim in after.storage.claims.items() if key not in before.storage.claims)


def _quotas(snapshot: Snapshot, namespace: str, on: bool) -> tuple[ResourceQuota, ...]:
    """Those of a namespace; what one counts that has no status yet is counted here."""
    found = (one for one in snapshot.of(ResourceQuota) if one.metadata.namespace == namespace)
    return tuple(
        one if one.status.hard else with_status(one, _objects(snapshot, namespace), pod_level_resources=on)
        for one in found
    )


def _objects(snapshot: Snapshot, namespace: str) -> Iterator[New]:
    pods = snapshot.pods
    yield from (pods[row] for row in range(len(pods)) if pods.namespaces[row] == namespace)
    yield from (claim for claim in snapshot.storage.claims.values() if claim.metadata.namespace == namespace)


def _has_siblings(snapshot: Snapshot, pod: ObjectMeta) -> bool:
    owner = pod.controller
    if owner is None:
        return False
    pods = snapshot.pods
    return any(
        (one.kind, one.name) == (owner.kind, owner.name)
        for row in range(len(pods))
        if pods.namespaces[row] == pod.namespace
        for one in pods.owners[row]
        if one.controller
    )
