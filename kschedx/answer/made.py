"""What the controllers of a cluster make of a workload's manifest, and what a program asks about with one."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from kschedx.answer.subject import Subject, admitted, stored
from kschedx.api.foreign_workloads import foreign_pods, is_foreign, kind_and_group
from kschedx.api.given import no_name_of_a_pod, no_pod
from kschedx.api.kinds import kind_of
from kschedx.api.workloads import MAKING_PODS, Made, current_replica_set, made_of
from kschedx.explain.missing import refuse
from kschedx.explain.setup import Setup
from kschedx.snapshot.applied import with_applied
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.source import Missing

Manifest = dict[str, object]


class Given(Struct, frozen=True, kw_only=True):
    """What a program asks about."""

    subject: Subject
    workload: Manifest | None = None
    """What makes the pod, where that was given."""


def given(snapshot: Snapshot, pod: str | Mapping[str, object], setup: Setup) -> Given:
    """A pod of the snapshot by `namespace/name`, the pod of a manifest, or the next one of a workload's template.

    Raises `InputError` for what makes no pods, or several kinds of them, and as `admitted`.
    """
    if isinstance(pod, str):
        is_there = pod in snapshot.pods.rows or f"default/{pod}" in snapshot.pods.rows
        wrong = None if is_there else no_name_of_a_pod(pod)
        if wrong is not None:
            raise wrong
        return Given(subject=stored(snapshot, pod))
    manifest = dict(pod)
    kind, group = read_as(manifest)
    known = kind_of(kind, group)
    if not kind or (known is not None and known.name == "Pod"):
        return Given(subject=admitted(snapshot, manifest, setup))
    if known is not None and known.key in MAKING_PODS:
        manifest = _in_namespace(manifest)
        has_claims_unknown = (
            kind == "StatefulSet" and key_of(manifest) in snapshot.workloads and not knows_claims(snapshot)
        )
        snapshot = with_applied(snapshot, [manifest])
        made = made_in(snapshot, manifest)
        others = () if has_claims_unknown else made.others
        subject = admitted(snapshot, made.pod, setup, title=title(manifest), made=others, maker=manifest)
        return Given(subject=subject, workload=manifest)
    pods = foreign_pods(manifest) if is_foreign(manifest) else []
    if len(pods) != 1:
        raise no_pod(manifest, tuple(one.path for one in pods))
    return Given(subject=admitted(snapshot, pods[0].manifest, setup, title=title(manifest)), workload=manifest)


def read_as(manifest: Mapping[str, object]) -> tuple[str, str]:
    """Kind and group, the group that a kind has today."""
    kind, group = kind_and_group(manifest)
    row = kind_of(kind, group)
    return kind, group if row is None else row.group


def made_in(snapshot: Snapshot, workload: Manifest) -> Made:
    """The next pod of a workload with what is made for it, of a Deployment by the ReplicaSet that has its template.

    Raises `UndecidableError` where it hangs on ReplicaSets that may not be listed, and as `made_of`.
    """
    kind, group = read_as(workload)
    workload = {**workload, "apiVersion": f"{group}/v1"} if group == "apps" else workload
    if kind != "Deployment":
        return made_of(workload)
    if snapshot.source.missing.get("ReplicaSet") is Missing.FORBIDDEN:
        refuse(snapshot, "ReplicaSet", f"which ReplicaSet makes the pods of {title(workload)}")
    _, namespace, _ = key_of(workload)
    replica_sets: list[Manifest] = [
        msgspec.json.decode(raw)
        for (kind, space, _), raw in snapshot.workloads.items()
        if kind == "ReplicaSet" and space == namespace
    ]
    return made_of(workload, replica_set=current_replica_set(workload, replica_sets))


def knows_claims(snapshot: Snapshot) -> bool:
    """A cluster of which no claim was listed may have any."""
    source = snapshot.source
    return source.is_complete("PersistentVolumeClaim") or bool(source.kinds.get("PersistentVolumeClaim"))


def key_of(manifest: Mapping[str, object]) -> tuple[str, str, str]:
    """Kind, namespace and name."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return str(manifest.get("kind")), str(named.get("namespace") or "default"), str(named.get("name") or "")


def title(manifest: Mapping[str, object]) -> str:
    """`Deployment web`."""
    metadata = manifest.get("metadata")
    named = metadata if isinstance(metadata, dict) else {}
    return f"{manifest.get('kind')} {named.get('name') or named.get('generateName') or ''}"


def _in_namespace(manifest: Manifest) -> Manifest:
    metadata = manifest.get("metadata")
    own = metadata if isinstance(metadata, dict) else {}
    return {**manifest, "metadata": {**own, "namespace": own.get("namespace") or "default"}}
