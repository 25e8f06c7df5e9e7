"""From a snapshot and a pod to an Explanation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kschedx.answer.explanation import Explanation
from kschedx.api.admission import Admitted
from kschedx.api.types import Pod
from kschedx.errors import ConfigError, InputError, Place, nearest
from kschedx.explain.admission import admission_notes, admitted_pod
from kschedx.explain.as_if_new import as_if_new
from kschedx.explain.claim_templates import with_claims_of_templates
from kschedx.explain.missing import require_for_decision, require_nodes_and_pods
from kschedx.explain.notes import Note
from kschedx.explain.which_release import NOTE as RELEASE
from kschedx.explain.which_release import release_note, release_to_emulate
from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.releases import Release, resolve
from kschedx.schedulers import scheduler_of
from kschedx.snapshot.snapshot import Snapshot


def explain_pod(
    snapshot: Snapshot,
    pod: str | Mapping[str, object] | Pod,
    *,
    config: Mapping[str, object] | None = None,
    profile: str | None = None,
    kube_version: str | None = None,
    feature_gates: Mapping[str, bool] | None = None,
    admission_plugins: Sequence[str] = (),
) -> Explanation:
    """Run one pod through the profile that its spec.schedulerName, or `profile`, names.

    A manifest is admitted first, as by an API server that runs `admission_plugins` beyond its default ones.
    """
    require_nodes_and_pods(snapshot)
    release = resolve(release_to_emulate(snapshot, kube_version), feature_gates)
    admitted = _admitted(snapshot, pod, release, admission_plugins)
    target = admitted.pod
    said: tuple[Note, ...] = ()
    if isinstance(pod, Mapping):
        said = admission_notes(snapshot, admitted, admission_plugins)
        if target.key not in snapshot.pods.rows:
            snapshot, target, made = with_claims_of_templates(snapshot, target)
            said += made
    said = (*_release_notes(snapshot, kube_version), *said)
    scheduler = scheduler_of(config, release, snapshot)
    chosen = _profile(scheduler.config, target, profile)
    snapshot, target = as_if_new(scheduler.snapshot, target)
    scheduler = scheduler.on(snapshot)
    cycle = scheduler.schedule(target, chosen)
    require_for_decision(cycle)
    return Explanation(cycle, scheduler, said)


def _release_notes(snapshot: Snapshot, asked: str | None) -> tuple[Note, ...]:
    found = release_note(snapshot, asked)
    return () if found is None else (Note(id=RELEASE, text=found[0], facts=found[1]),)


def _profile(scheduler: SchedulerConfig, pod: Pod, name: str | None) -> Profile:
    if name is not None:
        return scheduler.profile_for(name)
    try:
        return scheduler.profile_for(pod.spec.scheduler_name)
    except ConfigError as error:
        raise error.at(Place(object=f"Pod {pod.key}", field="spec.schedulerName")) from None


def _admitted(
    snapshot: Snapshot, pod: str | Mapping[str, object] | Pod, release: Release, plugins: Sequence[str]
) -> Admitted:
    """The typed pod, with what the API server would have filled in."""
    if isinstance(pod, Pod):
        return Admitted(pod=pod)
    if isinstance(pod, str):
        key = pod if "/" in pod else f"default/{pod}"
        row = snapshot.pods.rows.get(key)
        if row is None:
            raise InputError(f'no pod "{key}" in the snapshot', hint=nearest(key, snapshot.pods.rows))
        return Admitted(pod=snapshot.pods[row])
    try:
        return admitted_pod(snapshot, pod, release, plugins)
    except InputError as error:
        raise error.at(Place(object=_title(pod))) from None


def _title(manifest: Mapping[str, object]) -> str:
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, Mapping) else {}
    return f"Pod {named.get('namespace') or 'default'}/{named.get('name') or named.get('generateName') or ''}"
