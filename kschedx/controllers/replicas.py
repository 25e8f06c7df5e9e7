"""New pods of a controller that ResourceQuotas and LimitRanges admit, one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.resource_quota import claim_not_created, not_created
from kschedx.controllers.workloads import Workload
from kschedx.explain.admission import QuotaLedger
from kschedx.kube.resources import ResourceQuota
from kschedx.kube.storage import PersistentVolumeClaim, own_claims
from kschedx.kube.types import Pod
from kschedx.snapshot.pods import PodCopies
from kschedx.snapshot.snapshot import Snapshot


class AdmittedPods(Struct, frozen=True, kw_only=True):
    """The outcome of identical new pods."""

    snapshot: Snapshot
    """The cluster without claims that are refused, and without claims of refused pods."""
    created: Sequence[Pod]
    refused: Sequence[Pod] = ()
    refusal: str = ""
    """Why the first refused pod is refused, in its controller's message."""
    claims: Mapping[str, tuple[str, str]] = {}
    """Pods that are pending for an ephemeral volume's claim; the value is the claim and why it is refused."""


class RefusedReplicas(Struct, frozen=True, kw_only=True):
    """Replicas of a workload that never become pods."""

    workload: Workload
    number: int
    refusal: str
    """Why the first of them is refused, in its controller's message."""
    pods: tuple[str, ...] = ()
    """The pods with names, `namespace/name`."""


def admit_pods(
    snapshot: Snapshot, quotas: QuotaLedger, pods: Sequence[Pod], known: Mapping[str, PersistentVolumeClaim]
) -> AdmittedPods:
    """Return the admitted pods, which the quotas count from now on. `snapshot` has the claims of the pods, `known` are
    the claims from before."""
    if isinstance(pods, PodCopies) and pods and not snapshot.of(ResourceQuota):
        words = quotas.take(pods[0])  # the result for one pod without claims holds for all
        refusal = "" if words is None else not_created(pods[0], words)
        return AdmittedPods(
            snapshot=snapshot, created=pods[:0] if refusal else pods, refused=pods if refusal else (), refusal=refusal
        )
    waits: dict[str, tuple[str, str]] = {}
    for number, pod in enumerate(pods):
        refusal = ""
        for key, is_ephemeral in own_claims(pod).items():
            claim = None if key in known else snapshot.storage.claims.get(key)
            words = None if claim is None else quotas.take(claim)
            if claim is None or words is None:
                continue
            if not is_ephemeral:
                refusal = claim_not_created(claim, pod, words)
                break
            snapshot = without_claims(snapshot, [key])  # the pod exists, and is pending for the claim
            waits[pod.key] = key, words
        if not refusal:
            words = quotas.take(pod)
            refusal = "" if words is None else not_created(pod, words)
        if refusal:
            others = pods[number:]
            left = without_claims(snapshot, (key for pod in others for key in own_claims(pod) if key not in known))
            return AdmittedPods(snapshot=left, created=pods[:number], refused=others, refusal=refusal, claims=waits)
    return AdmittedPods(snapshot=snapshot, created=pods, claims=waits)


def without_claims(snapshot: Snapshot, claims: Iterable[str]) -> Snapshot:
    """Return the cluster without these claims, `namespace/name`."""
    storage, gone = snapshot.storage, frozenset(claims)
    if not gone:
        return snapshot
    left = {key: claim for key, claim in storage.claims.items() if key not in gone}
    return snapshot.with_storage(replace(storage, claims=left))
