"""The StatefulSet controller: which ordinals it creates and deletes next, and which ordinal blocks the others.

One call is one sync of the controller. Upstream: pkg/controller/statefulset/stateful_set_control.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.apiserver.resource_quota import claim_not_created, create_error_text
from kschedx.controllers.deployment import NoRollout, StatefulSetUpdate, strategy_of
from kschedx.controllers.states import NotRead
from kschedx.controllers.workloads import Workload, first_ordinal, wanted_replicas
from kschedx.explain.admission import QuotaLedger, quotas_of
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.storage import PersistentVolumeClaim, own_claims
from kschedx.kube.types import Pod
from kschedx.kube.workloads import LONGEST_STATEFUL_SET_NAME, RETENTION_POLICY, REVISION_HASH, claims_for
from kschedx.releases.release import Release
from kschedx.snapshot.pods import PodCopies
from kschedx.snapshot.snapshot import Snapshot


class StatefulSetSpec(Struct, frozen=True, kw_only=True):
    """The fields of a StatefulSet that the controller reads."""

    replicas: int
    start: int = 0
    is_ordered: bool = True  # podManagementPolicy OrderedReady
    is_on_delete: bool = False
    partition: int = 0  # replicas below it, counted from 0, keep their template
    max_unavailable: int | None = None
    """None without the feature gate MaxUnavailableStatefulSet, with which the update continues past pods that are not
    available."""

    @property
    def ordinals(self) -> range:
        return range(self.start, self.start + self.replicas)


def spec_of(manifest: Manifest, before: Manifest | None) -> StatefulSetSpec:
    """Return the fields of a manifest that the controller reads. `before` is the manifest as the API server stored it,
    if `manifest` is as the user wrote it."""
    wanted = wanted_replicas(manifest)
    strategy = strategy_of(manifest, wanted, before or manifest)
    rolling = strategy if isinstance(strategy, StatefulSetUpdate) else None
    update = map_at(before or manifest, "spec", "updateStrategy", "rollingUpdate")
    return StatefulSetSpec(
        replicas=wanted,
        start=first_ordinal(manifest),
        is_ordered=map_at(manifest, "spec").get("podManagementPolicy") != "Parallel",
        is_on_delete=strategy is NoRollout.ON_DELETE,
        partition=0 if rolling is None else rolling.partition,
        max_unavailable=rolling.unavailable if rolling is not None and "maxUnavailable" in update else None,
    )


class OrdinalPod(Struct, frozen=True, kw_only=True):
    """A pod of a StatefulSet, as its controller reads it."""

    is_available: bool  # whether the pod has been running and ready for minReadySeconds
    is_updated: bool = True  # whether the pod has the template of the update revision
    is_terminating: bool = False


class StatefulSetSync(Struct, frozen=True, kw_only=True):
    """The ordinals that one sync creates and deletes."""

    create: tuple[int, ...] = ()
    delete: tuple[int, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


def sync(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod]) -> StatefulSetSync:
    """Return what one sync changes; `pods` are the existing pods by ordinal."""
    missing = tuple(ordinal for ordinal in spec.ordinals if ordinal not in pods)
    condemned = sorted((ordinal for ordinal in pods if ordinal not in spec.ordinals), reverse=True)
    if not spec.is_ordered:
        gone = (ordinal for ordinal in condemned if not pods[ordinal].is_terminating)
        created = dict.fromkeys(missing, OrdinalPod(is_available=False))
        return StatefulSetSync(create=missing, delete=(*gone, *_outdated_ordinals(spec, {**pods, **created})))
    for ordinal in spec.ordinals:
        if ordinal not in pods:
            return StatefulSetSync(create=(ordinal,))
        if _blocks(pods[ordinal]):
            return StatefulSetSync()
    return _scale_down(pods, condemned) if condemned else StatefulSetSync(delete=(*_outdated_ordinals(spec, pods),))


def blocking_ordinal(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod], ordinal: int) -> int | None:
    """Return the lowest earlier ordinal that OrderedReady waits for; None if nothing prevents the pod's creation."""
    if not spec.is_ordered:
        return None
    before = (earlier for earlier in spec.ordinals if earlier < ordinal)
    return next((earlier for earlier in before if earlier not in pods or _blocks(pods[earlier])), None)


def first_unready(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod]) -> int | None:
    """Return the lowest ordinal whose pod is not available; None if all existing ones are."""
    return next((ordinal for ordinal in spec.ordinals if ordinal in pods and _blocks(pods[ordinal])), None)


def _blocks(pod: OrdinalPod) -> bool:
    return pod.is_terminating or not pod.is_available


def _scale_down(pods: Mapping[int, OrdinalPod], condemned: list[int]) -> StatefulSetSync:
    """Delete one pod at a time from the highest; only the lowest pod that is not available may be deleted before it
    is."""
    highest = condemned[0]
    unavailable = min((number for number in condemned if _blocks(pods[number])), default=None)
    if pods[highest].is_terminating or (not pods[highest].is_available and highest != unavailable):
        return StatefulSetSync()
    return StatefulSetSync(delete=(highest,))


def _outdated_ordinals(spec: StatefulSetSpec, pods: Mapping[int, OrdinalPod]) -> Iterator[int]:
    """Yield the pods that one sync deletes because of their template, from the highest ordinal down to the partition;
    `pods` has all ordinals."""
    if spec.is_on_delete:
        return
    left = None if spec.max_unavailable is None else spec.max_unavailable - sum(_blocks(pods[n]) for n in spec.ordinals)
    for number in reversed(spec.ordinals[spec.partition :]):
        if left is not None and left <= 0:
            return
        pod = pods[number]
        if not pod.is_updated and not pod.is_terminating:
            yield number
            if left is None:
                return
            left -= 1
        elif left is None and _blocks(pod):
            return


def unsure_of_name(snapshot: Snapshot, workload: Workload) -> NotRead | None:
    """Return the state of a StatefulSet without pods whose name may be too long for a label of its pods: the label has
    the name and a hash of up to 10 digits (newRevision in pkg/controller/history/controller_history.go)."""
    if len(workload.name) <= LONGEST_STATEFUL_SET_NAME or workload in snapshot.failed_creates:
        return None
    if any(name.startswith(f"{workload.name}-") for name in snapshot.pods.names):
        return None
    return NotRead(
        subject=workload.reference,
        unknown="whether the API server accepts its pods",
        because=f"label {REVISION_HASH} has the StatefulSet's name and a hash, at most 63 characters; "
        f"a name of at most {LONGEST_STATEFUL_SET_NAME} characters is safe",
    )


# New pods of a controller that ResourceQuotas and LimitRanges admit, one after the other.


class AdmittedPods(Struct, frozen=True, kw_only=True):
    """The outcome of identical new pods."""

    snapshot: Snapshot  # the cluster without claims that are refused, and without claims of refused pods
    created: Sequence[Pod]
    refused: Sequence[Pod] = ()
    refusal: str = ""  # why the first refused pod is refused, in its controller's message
    claims: Mapping[str, tuple[str, str]] = {}
    """Pods that are pending for an ephemeral volume's claim; the value is the claim and why it is refused."""


class RefusedReplicas(Struct, frozen=True, kw_only=True):
    """Replicas of a workload that never become pods."""

    workload: Workload
    number: int
    refusal: str  # why the first of them is refused, in its controller's message
    pods: tuple[str, ...] = ()  # the pods with names, `namespace/name`


def admit_pods(
    snapshot: Snapshot, quotas: QuotaLedger, pods: Sequence[Pod], known: Mapping[str, PersistentVolumeClaim]
) -> AdmittedPods:
    """Return the admitted pods, which the quotas count from now on. `snapshot` has the claims of the pods, `known` are
    the claims from before."""
    if isinstance(pods, PodCopies) and pods and not quotas_of(snapshot):
        words = quotas.take(pods[0])  # the result for one pod without claims holds for all
        refusal = "" if words is None else create_error_text(pods[0], words)
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
            refusal = "" if words is None else create_error_text(pod, words)
        if refusal:
            others = pods[number:]
            left = without_claims(snapshot, (key for pod in others for key in own_claims(pod) if key not in known))
            return AdmittedPods(snapshot=left, created=pods[:number], refused=others, refusal=refusal, claims=waits)
    return AdmittedPods(snapshot=snapshot, created=pods, claims=waits)


def over_quota(before: Snapshot, admitted: Snapshot, pod: Pod, release: Release, count: int = 1) -> str:
    """Return why a ResourceQuota refuses one of the next `count` pods like this one, beside those that exist; empty if
    it admits them. `before` is the cluster without the objects that are created for the pod."""
    ledger = QuotaLedger(before, release)
    pods = admit_pods(admitted, ledger, [pod], before.storage.claims)
    if pods.refused:
        return pods.refusal
    words = next(filter(None, (ledger.take(pod) for _ in range(count - 1))), None)
    return "" if words is None else create_error_text(pod, words)


def deleted_claims(before: Snapshot, after: Snapshot) -> Iterator[PersistentVolumeClaim]:
    """Yield the claims of StatefulSets that were scaled down or deleted since, and delete them with their pods."""
    for key, raw in before.workloads.items() if before.workloads is not after.workloads else ():
        left = after.workloads.get(key)
        if key[0] != "StatefulSet" or left == raw:
            continue
        manifest, last = (msgspec.json.decode(each, type=dict[str, object]) for each in (raw, left or raw))
        if map_at(last, "spec", RETENTION_POLICY).get("whenDeleted" if left is None else "whenScaled") != "Delete":
            continue
        kept = range(0) if left is None else spec_of(last, None).ordinals
        for ordinal in {*spec_of(manifest, None).ordinals}.difference(kept):
            for written in claims_for(manifest, f"{key[2]}-{ordinal}"):
                claim = before.storage.claims.get(f"{key[1]}/{map_at(written, 'metadata')['name']}")
                yield from () if claim is None else (claim,)


def without_claims(snapshot: Snapshot, claims: Iterable[str]) -> Snapshot:
    """Return the cluster without these claims, `namespace/name`."""
    storage, gone = snapshot.storage, frozenset(claims)
    if not gone:
        return snapshot
    left = {key: claim for key, claim in storage.claims.items() if key not in gone}
    return snapshot.with_storage(replace(storage, claims=left))
