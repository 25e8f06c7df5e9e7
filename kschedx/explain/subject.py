"""What a question is about: a pod as kube-scheduler would get it, in the cluster that it would see."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.explain.admission import (
    Ledger,
    admission_notes,
    admitted_pod,
    new_claims,
    require_quota,
    require_quota_of_claims,
)
from kschedx.explain.notes import CLAIMS_MADE, Note, note
from kschedx.explain.setup import Setup
from kschedx.kube.decoding import decode, map_at
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.storage import PersistentVolumeClaim, check_quantities, default_class, with_default_class
from kschedx.kube.types import ObjectMeta, OwnerReference, Pod, PodResourceClaimStatus
from kschedx.releases.release import Release
from kschedx.snapshot.edits import with_applied
from kschedx.snapshot.snapshot import Snapshot

# What kube-controller-manager makes for a new pod: claims of devices and of volumes, from templates.
#
# A manifest that is not in the cluster yet has none; kube-scheduler would see it once they are there.
# Upstream: pkg/controller/resourceclaim, pkg/controller/volume/ephemeral, pkg/controller/statefulset.

NEW_UID = "new"
"""Of a pod that has claims of its own, which name it."""


def with_made(snapshot: Snapshot, manifests: Sequence[Mapping[str, object]]) -> tuple[Snapshot, tuple[Note, ...]]:
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
    return snapshot, (_claims_note(new, "its controller creates"),)


def _claims_note(claims: Iterable[str], by: str) -> Note:
    names = tuple(claims)
    return note(CLAIMS_MADE, f"evaluated with the claims that {by}: {', '.join(names)}", claims=names)


def claim_not_made(claim: str, refusal: str) -> Note:
    """Of a generic ephemeral volume: the pod is there, and stays pending. `refusal`: the API server's words."""
    text = f"claim {claim} is not created for the pod's ephemeral volume: {refusal}"
    return note("claim-not-made", text, claim=claim, refusal=refusal)


def _of(manifest: Mapping[str, object], field: str) -> str:
    return str(map_at(manifest, "metadata").get(field) or "")


def with_ephemeral_claims(
    snapshot: Snapshot, pod: Pod, manifest: Mapping[str, object], release: Release
) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """The cluster with the claims of the pod's generic ephemeral volumes, the pod that owns them, and notes, also about
    those that are refused."""
    spec = manifest.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    made: dict[str, PersistentVolumeClaim] = {}
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=NEW_UID, controller=True)
    classes = default_class(snapshot.storage.classes.values())
    quotas = Ledger(snapshot, release)
    refused: list[Note] = []
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
            refused.append(claim_not_made(claim.key, refusal))
    if not made:
        return snapshot, pod, tuple(refused)
    owning = replace(pod, metadata=replace(pod.metadata, uid=NEW_UID))
    by = "kube-controller-manager creates for its ephemeral volumes"
    return snapshot.with_new_claims(made), owning, (_claims_note(made, by), *refused)


def with_claims_of_templates(
    snapshot: Snapshot, pod: Pod, quotas: Ledger | None = None
) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """The cluster with the claims, the pod whose status names them, and what was made, as a note; without those that
    `quotas` refuse."""
    refused: list[Note] = []
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
            text = f"claim {claim.key} is not created from its template: {refusal}"
            refused.append(note("claim-not-made", text, claim=claim.key, refusal=refusal))
            continue
        made[claim.key] = claim
        templates.append(template)
        statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=name))
    if not made:
        return snapshot, pod, tuple(refused)
    devices = replace(snapshot.devices, claims={**snapshot.devices.claims, **made})
    status = replace(pod.status, resource_claim_statuses=(*pod.status.resource_claim_statuses, *statuses))
    text = (
        f"evaluated with the claims that kube-controller-manager creates: {', '.join(made)} from {', '.join(templates)}"
    )
    told = note(CLAIMS_MADE, text, claims=tuple(made), templates=tuple(templates))
    return snapshot.with_devices(devices), replace(pod, status=status), (told, *refused)


class Subject(Struct, frozen=True, kw_only=True):
    """A pod of the cluster, or of a manifest that was admitted: once, whatever is asked about it afterwards."""

    snapshot: Snapshot
    """With what controllers make for the pod."""
    pod: Pod
    notes: tuple[Note, ...] = ()
    """What the API server and the controllers do before kube-scheduler sees the pod."""
    is_new: bool = False
    """It comes from a manifest."""
    first: Subject | None = None
    """As kube-scheduler sees it before the claims that controllers make for the pod, where they do."""


def stored(snapshot: Snapshot, pod: str | Pod) -> Subject:
    """A pod that is in the cluster, by itself or as `namespace/name`. Raises `InputError`."""
    if isinstance(pod, Pod):
        return Subject(snapshot=snapshot, pod=pod)
    key = pod if "/" in pod else f"default/{pod}"
    row = snapshot.pods.rows.get(key)
    if row is None:
        raise InputError(f'no pod "{key}" in the snapshot', hint=nearest(key, snapshot.pods.rows))
    return Subject(snapshot=snapshot, pod=snapshot.pods[row])


def admitted(
    snapshot: Snapshot,
    manifest: Mapping[str, object],
    setup: Setup,
    *,
    title: str = "",
    made: Sequence[Mapping[str, object]] = (),
    maker: Mapping[str, object] | None = None,
) -> Subject:
    """A pod's manifest as the API server would store it; `title` is what errors call it.

    `made` is what the pod's controller makes before the pod, unless it is there already, `maker` the workload whose
    template it has.

    Raises `InputError` where it would refuse the pod, and `UndecidableError` where it reads what the snapshot lacks.
    """
    plugins = setup.admission_plugins
    try:
        found = admitted_pod(snapshot, manifest, setup.release, plugins, maker)
    except InputError as error:
        raise error.at(Place(object=title or _title(manifest))) from None
    pod, notes = found.pod, admission_notes(snapshot, manifest, found, setup.release, plugins, maker)
    if snapshot.manifests is not None:
        snapshot = replace(snapshot, manifests=snapshot.manifests.with_pod(pod.key, manifest))
    if pod.key in snapshot.pods.rows:
        return Subject(snapshot=snapshot, pod=pod, notes=notes, is_new=True)
    before = snapshot
    snapshot, of_controller = with_made(snapshot, made)
    try:
        require_quota_of_claims(before, new_claims(before, snapshot), pod, setup.release)
        require_quota(snapshot, pod, setup.release)
    except InputError as error:
        raise error.at(Place(object=title or _title(manifest))) from None
    sent = Subject(snapshot=snapshot, pod=pod)
    snapshot, pod, of_volumes = with_ephemeral_claims(snapshot, pod, manifest, setup.release)
    snapshot, pod, of_devices = with_claims_of_templates(snapshot, pod, Ledger(snapshot, setup.release))
    later = (*of_volumes, *of_devices)
    first: Subject | None = None
    if any(one.id == CLAIMS_MADE for one in later):
        first = sent
    elif of_controller:  # made before the pod, which kube-scheduler may see first: it watches each by itself
        first = Subject(snapshot=before, pod=pod)
    return Subject(
        snapshot=snapshot,
        pod=pod,
        notes=(*notes, *of_controller, *later),
        is_new=True,
        first=first,
    )


def _title(manifest: Mapping[str, object]) -> str:
    named = map_at(manifest, "metadata")
    return f"Pod {named.get('namespace') or 'default'}/{named.get('name') or named.get('generateName') or ''}"


# A pod that runs already, evaluated as if it were new.


def unassigned(snapshot: Snapshot, pod: Pod) -> tuple[Snapshot, Pod]:
    """A pod that runs already as if it were scheduled now: a cluster without it, and the pod bound to no node."""
    row = snapshot.pods.rows.get(pod.key)
    if row is None or snapshot.pods.node_names[row] not in snapshot.cluster.index:
        return snapshot, pod
    unbound = msgspec.structs.replace(pod.spec, node_name="")
    without = snapshot.without_pods([row])
    if snapshot.devices.claims:
        without = without.with_devices(snapshot.devices.without_consumers({pod.key}))
    return without, msgspec.structs.replace(pod, spec=unbound)
