"""What a question is about: a pod as kube-scheduler would get it, in the cluster that it would see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import Pod
from kschedx.errors import InputError, Place, nearest
from kschedx.explain.admission import admission_notes, admitted_pod
from kschedx.explain.claim_templates import with_claims_of_templates, with_ephemeral_claims, with_made
from kschedx.explain.notes import Note
from kschedx.explain.notes.claims import ClaimsMade
from kschedx.explain.quotas import Ledger, new_claims, require_quota, require_quota_of_claims
from kschedx.explain.setup import Setup
from kschedx.snapshot.snapshot import Snapshot


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
    if any(isinstance(one, ClaimsMade) for one in later):
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
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return f"Pod {named.get('namespace') or 'default'}/{named.get('name') or named.get('generateName') or ''}"
