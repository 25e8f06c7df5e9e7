"""What the ResourceQuotas and the LimitRanges of a snapshot let in, and what is left of quotas afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.kinds import KINDS
from kschedx.api.limit_range import limit_range_refusal_of_claim
from kschedx.api.resource_quota import (
    Counted,
    New,
    ResourceQuota,
    charged,
    claim_not_created,
    discharged,
    forbidden,
    maker_not_created,
    not_created,
    quota_refusal,
    with_status,
)
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import ObjectMeta, OwnerReference, Pod
from kschedx.errors import NotAdmittedError
from kschedx.explain.pod_security import refused_by_template
from kschedx.releases.release import Release
from kschedx.snapshot.snapshot import Snapshot

_POD_LEVEL = "PodLevelResources"
_Change = Callable[..., ResourceQuota]


class _Owned(Struct):
    metadata: ObjectMeta = ObjectMeta()


def counted(kind: str, namespace: str, name: str) -> Counted:
    """An object of a kind that is in the table."""
    return Counted(metadata=ObjectMeta(name=name, namespace=namespace), resource=KINDS[kind].resource)


def refused_by_quota(snapshot: Snapshot, new: New, release: Release) -> str | None:
    """Why a quota refuses a new object, in the API server's words; None where none does. Of a claim, LimitRanges are
    asked first."""
    if isinstance(new, PersistentVolumeClaim):
        for limit_range in snapshot.limit_ranges.get(new.metadata.namespace, ()):
            refusal = limit_range_refusal_of_claim(new, limit_range)
            if refusal is not None:
                return forbidden(new, refusal)
    on = release.gates.get(_POD_LEVEL, False)
    quotas = _quotas(snapshot, new.metadata.namespace, on)
    return quota_refusal(new, quotas, pod_level_resources=on) if quotas else None


class Ledger:
    """The quotas of a cluster while objects come and go."""

    def __init__(self, snapshot: Snapshot, release: Release) -> None:
        """What the snapshot holds is counted."""
        self._release = release
        self._pod_level = release.gates.get(_POD_LEVEL, False)
        namespaces = {quota.metadata.namespace for quota in snapshot.of(ResourceQuota)}
        quotas = tuple(quota for name in sorted(namespaces) for quota in _quotas(snapshot, name, self._pod_level))
        self._snapshot = snapshot.with_records(ResourceQuota, quotas) if quotas else snapshot

    def on(self, snapshot: Snapshot) -> Snapshot:
        """Another snapshot of the cluster, whose quotas count what these do."""
        quotas = self._snapshot.of(ResourceQuota)
        return snapshot.with_records(ResourceQuota, quotas) if quotas else snapshot

    def take(self, new: New) -> str | None:
        """Why an object is refused, in the API server's words; None where it is counted from now on.

        Of a pod whose controller is there, Pod Security is asked before the quotas.
        """
        violation = refused_by_template(self._snapshot, new, self._release) if isinstance(new, Pod) else None
        refusal = (
            refused_by_quota(self._snapshot, new, self._release) if violation is None else forbidden(new, violation)
        )
        if refusal is None:
            self._change(new, charged)
        return refusal

    def give(self, gone: New) -> None:
        """Count an object no more."""
        self._change(gone, discharged)

    def _change(self, one: New, by: _Change) -> None:
        quotas = self._snapshot.of(ResourceQuota)
        if quotas:
            changed = (
                by(quota, one, pod_level_resources=self._pod_level)
                if quota.metadata.namespace == one.metadata.namespace
                else quota
                for quota in quotas
            )
            self._snapshot = self._snapshot.with_records(ResourceQuota, changed)


def require_quota(snapshot: Snapshot, pod: Pod, release: Release) -> None:
    """Raise `NotAdmittedError` where a quota refuses the pod, in the API server's words or its controller's.

    A pod that is there already, or whose controller has pods already, takes nobody's place: it is in what is used. So
    does one of a Deployment whose pods it replaces.
    """
    refusal = None if pod.key in snapshot.pods.rows else refused_by_quota(snapshot, pod, release)
    if refusal is not None and not has_siblings(snapshot, pod.metadata):
        raise NotAdmittedError(not_created(pod, refusal))


def require_quota_of_maker(snapshot: Snapshot, maker: Counted, release: Release) -> None:
    """The same for what a controller makes that makes the pod: a Deployment's new ReplicaSet, a CronJob's Job."""
    refusal = refused_by_quota(snapshot, maker, release)
    if refusal is not None:
        raise NotAdmittedError(maker_not_created(maker, refusal))


def require_quota_of_claims(
    snapshot: Snapshot, claims: Sequence[PersistentVolumeClaim], pod: Pod, release: Release
) -> None:
    """The same for claims that the pod's StatefulSet makes before the pod, one after the other."""
    ledger = Ledger(snapshot, release)
    for claim in claims:
        refusal = ledger.take(claim)
        if refusal is not None:
            raise NotAdmittedError(claim_not_created(claim, pod, refusal))


def with_allowed(
    before: Snapshot, applied: Snapshot, new: Sequence[New], release: Release
) -> tuple[Snapshot, tuple[str | None, ...]]:
    """The cluster with manifests that was `applied`, whose quotas count the claims and the workloads among them that
    are `new`, and why each of those is refused. What is refused is not there."""
    namespaces = {one.metadata.namespace for one in new}
    ruled = {quota.metadata.namespace for quota in applied.of(ResourceQuota)} | {*applied.limit_ranges}
    if namespaces.isdisjoint(ruled):
        return applied, (None,) * len(new)
    without = replace(applied.storage, claims=before.storage.claims)
    ledger = Ledger(replace(applied, workloads=before.workloads, storage=without), release)
    refusals = tuple(map(ledger.take, new))
    gone = {
        f"{one.metadata.namespace}/{one.metadata.name}"
        for one, refusal in zip(new, refusals, strict=True)
        if refusal is not None and isinstance(one, PersistentVolumeClaim)
    }
    held = ledger.on(applied)
    if gone:
        claims = {key: claim for key, claim in applied.storage.claims.items() if key not in gone}
        held = held.with_storage(replace(held.storage, claims=claims))
    return held, refusals


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
    yield from (claim for claim in snapshot.devices.claims.values() if claim.metadata.namespace == namespace)
    for kind, space, name in snapshot.workloads:
        if space == namespace and kind in KINDS:
            yield counted(kind, space, name)


def has_siblings(snapshot: Snapshot, pod: ObjectMeta) -> bool:
    """Whether the controller of a pod, or for another template the same Deployment, has pods."""
    owner = pod.controller
    if owner is None:
        return False
    pods, makers = snapshot.pods, {(owner.kind, owner.name), *_replica_sets_beside(snapshot, pod.namespace, owner)}
    inside = pods.namespaces.where(lambda name: name == pod.namespace)
    is_theirs = pods.owners.where(
        lambda owners: any(one.controller and (one.kind, one.name) in makers for one in owners)
    )
    return bool((inside & is_theirs).any())


def _replica_sets_beside(snapshot: Snapshot, namespace: str, owner: OwnerReference) -> Iterator[tuple[str, str]]:
    """Those of the Deployment that a ReplicaSet is of."""
    owners = {
        name: tuple(msgspec.json.decode(raw, type=_Owned).metadata.owner_references)
        for (kind, space, name), raw in snapshot.workloads.items()
        if owner.kind == "ReplicaSet" and kind == "ReplicaSet" and space == namespace
    }
    deployments = {one.name for one in owners.get(owner.name, ()) if one.kind == "Deployment"}
    for name, found in owners.items():
        if any(one.kind == "Deployment" and one.name in deployments for one in found):
            yield "ReplicaSet", name
