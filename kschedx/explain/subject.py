"""The subject of a question: a pod as kube-scheduler would see it, in its cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place, nearest
from kschedx.explain.admission import (
    QuotaLedger,
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

# What kube-controller-manager creates for a new pod: claims for devices and volumes, from templates. A new manifest has
# none; kube-scheduler sees it after they are created. Upstream: pkg/controller/resourceclaim,
# pkg/controller/volume/ephemeral, pkg/controller/statefulset.

NEW_UID = "new"
"""The uid of a new pod, to which its own claims refer."""


def _with_made(snapshot: Snapshot, manifests: Sequence[Mapping[str, object]]) -> tuple[Snapshot, tuple[Note, ...]]:
    """Add what a pod's controller creates before the pod, with a note about claims. For an existing StatefulSet, claims
    that were not listed are unknown."""
    claims = [manifest for manifest in manifests if manifest.get("kind") == "PersistentVolumeClaim"]
    others = [manifest for manifest in manifests if manifest.get("kind") != "PersistentVolumeClaim"]
    named = {f"{_of(claim, 'namespace')}/{_of(claim, 'name')}": claim for claim in claims}
    new = {key: item for key, item in named.items() if key not in snapshot.storage.claims}
    if others or new:
        snapshot = with_applied(snapshot, [*others, *new.values()])
    if not new:
        return snapshot, ()
    return snapshot, (_claims_note(new, "its controller creates"),)


def _claims_note(claims: Iterable[str], by: str) -> Note:
    names = tuple(claims)
    return note(CLAIMS_MADE, f"evaluated with the claims that {by}: {', '.join(names)}", claims=names)


def claim_not_made(claim: str, refusal: str) -> Note:
    """Note a refused claim of a generic ephemeral volume: the pod exists and stays pending. `refusal`: the API server's
    words."""
    text = f"claim {claim} is not created for the pod's ephemeral volume: {refusal}"
    return note("claim-not-made", text, claim=claim, refusal=refusal)


def _of(manifest: Mapping[str, object], field: str) -> str:
    return str(map_at(manifest, "metadata").get(field) or "")


def _with_ephemeral_claims(
    snapshot: Snapshot, pod: Pod, manifest: Mapping[str, object], release: Release, *, is_recreated: bool
) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """Return the cluster with the claims of the pod's generic ephemeral volumes, the pod that owns them, and notes,
    also about refused claims."""
    spec = manifest.get("spec")
    volumes = spec.get("volumes") if isinstance(spec, dict) else None
    claims: dict[str, PersistentVolumeClaim] = {}
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=NEW_UID, controller=True)
    classes = default_class(snapshot.storage.classes.values())
    quotas = QuotaLedger(snapshot, release)
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
        if claim.key in snapshot.storage.claims and not is_recreated:
            continue  # the claim of a deleted pod is deleted with it
        claim = with_default_class(claim, classes)
        refusal = quotas.take(claim)
        if refusal is None:
            claims[claim.key] = claim
        else:
            refused.append(claim_not_made(claim.key, refusal))
    if not claims:
        return snapshot, pod, tuple(refused)
    owning = replace(pod, metadata=replace(pod.metadata, uid=NEW_UID))
    by = "kube-controller-manager creates for its ephemeral volumes"
    return snapshot.with_new_claims(claims), owning, (_claims_note(claims, by), *refused)


def with_claims_of_templates(
    snapshot: Snapshot, pod: Pod, quotas: QuotaLedger | None = None
) -> tuple[Snapshot, Pod, tuple[Note, ...]]:
    """Return the cluster with the claims, the pod with their names in its status, and a note about them, without the
    claims that `quotas` refuse."""
    refused: list[Note] = []
    known = {status.name for status in pod.status.resource_claim_statuses}
    created: dict[str, ResourceClaim] = {}
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
        created[claim.key] = claim
        templates.append(template)
        statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=name))
    if not created:
        return snapshot, pod, tuple(refused)
    devices = replace(snapshot.devices, claims={**snapshot.devices.claims, **created})
    status = replace(pod.status, resource_claim_statuses=(*pod.status.resource_claim_statuses, *statuses))
    sources = ", ".join(templates)
    text = f"evaluated with the claims that kube-controller-manager creates: {', '.join(created)} from {sources}"
    claims_note = note(CLAIMS_MADE, text, claims=tuple(created), templates=tuple(templates))
    return snapshot.with_devices(devices), replace(pod, status=status), (claims_note, *refused)


class Subject(Struct, frozen=True, kw_only=True):
    """A pod of the cluster, or of a manifest that was admitted once for all questions."""

    snapshot: Snapshot
    """With what controllers create for the pod."""
    pod: Pod
    notes: tuple[Note, ...] = ()
    """What the API server and controllers do before kube-scheduler sees the pod."""
    is_new: bool = False
    """Whether it comes from a manifest."""
    first: Subject | None = None
    """The pod before controllers create its claims, if they create any."""


def stored(snapshot: Snapshot, pod: str | Pod) -> Subject:
    """Return the subject for a pod in the cluster, given as an object or as `namespace/name`. Raises `InputError`."""
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
    dependents: Sequence[Mapping[str, object]] = (),
    maker: Mapping[str, object] | None = None,
    is_recreated: bool = False,
) -> Subject:
    """Admit a pod's manifest; `title` names it in errors.

    `dependents` is what the pod's controller creates before the pod, unless it exists; `maker` is the workload with its
    template; `is_recreated`: the pod of this name in the snapshot is deleted. Raises `InputError` if the API server
    would refuse it, and `UndecidableError` if that depends on what the snapshot lacks.
    """
    plugins = setup.admission_plugins
    try:
        admission = admitted_pod(snapshot, manifest, setup.release, plugins, maker)
    except InputError as error:
        raise error.at(Place(object=title or _title(manifest))) from None
    pod, notes = admission.pod, admission_notes(snapshot, manifest, admission, setup.release, plugins, maker)
    if snapshot.manifests is not None:
        snapshot = replace(snapshot, manifests=snapshot.manifests.with_pod(pod.key, manifest))
    if pod.key in snapshot.pods.rows and not is_recreated:
        return Subject(snapshot=snapshot, pod=pod, notes=notes, is_new=True)
    before = snapshot
    snapshot, of_controller = _with_made(snapshot, dependents)
    try:
        require_quota_of_claims(before, new_claims(before, snapshot), pod, setup.release)
        require_quota(snapshot, pod, setup.release)
    except InputError as error:
        raise error.at(Place(object=title or _title(manifest))) from None
    sent = Subject(snapshot=snapshot, pod=pod)
    snapshot, pod, of_volumes = _with_ephemeral_claims(
        snapshot, pod, manifest, setup.release, is_recreated=is_recreated
    )
    snapshot, pod, of_devices = with_claims_of_templates(snapshot, pod, QuotaLedger(snapshot, setup.release))
    later = (*of_volumes, *of_devices)
    first: Subject | None = None
    if any(later_note.id == CLAIMS_MADE for later_note in later):
        first = sent
    elif of_controller:  # kube-scheduler may see the pod before its claims: it watches each kind separately
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


def unassigned(snapshot: Snapshot, pod: Pod) -> tuple[Snapshot, Pod]:
    """Return a cluster without the running pod, and the pod without a node."""
    row = snapshot.pods.rows.get(pod.key)
    if row is None or snapshot.pods.node_names[row] not in snapshot.cluster.index:
        return snapshot, pod
    unbound = msgspec.structs.replace(pod.spec, node_name="")
    without = snapshot.without_pods([row])
    if snapshot.devices.claims:
        without = without.with_devices(snapshot.devices.without_consumers({pod.key}))
    return without, msgspec.structs.replace(pod, spec=unbound)
