"""Pods that nobody could make, as the events of their controllers say it."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from kschedx.api.types import ObjectMeta, OwnerReference, Pod
from kschedx.explain.quotas import has_siblings
from kschedx.snapshot.events import FailedCreate
from kschedx.snapshot.snapshot import Snapshot


class _MakerSpec(Struct, frozen=True):
    replicas: int | None = None


class _MakerStatus(Struct, frozen=True, rename="camel"):
    completion_time: str | None = None


class _Maker(Struct, frozen=True):
    """What somebody who makes pods says of their number."""

    spec: _MakerSpec | None = None
    status: _MakerStatus | None = None

    @property
    def wants_pods(self) -> bool:
        is_done = self.status is not None and self.status.completion_time is not None
        return not is_done and (self.spec is None or self.spec.replicas != 0)


class Unmade(Struct, frozen=True, kw_only=True):
    """What has no pods."""

    kind: str
    namespace: str
    name: str
    event: FailedCreate


def recorded_refusal(snapshot: Snapshot, pod: Pod) -> FailedCreate | None:
    """What the pod's controller said last of one like it; None where such pods are there, or nothing was said."""
    owner = pod.metadata.controller
    event = None if owner is None else snapshot.failed_creates.get((owner.kind, pod.metadata.namespace, owner.name))
    if event is None or owner is None or has_siblings(snapshot, pod.metadata):
        return None
    is_of_another = bool(event.uid and owner.uid) and event.uid != owner.uid
    return None if is_of_another else event


def without_pods(snapshot: Snapshot, within: str | None) -> Iterator[Unmade]:
    """What is in a namespace of the snapshot, or in any, has no pods, and whose controller says why."""
    for (kind, namespace, name), event in snapshot.failed_creates.items():
        raw = snapshot.workloads.get((kind, namespace, name)) if within in (None, namespace) else None
        if raw is not None and msgspec.json.decode(raw, type=_Maker).wants_pods:
            owner = OwnerReference(kind=kind, name=name, controller=True)
            if not has_siblings(snapshot, ObjectMeta(namespace=namespace, owner_references=(owner,))):
                yield Unmade(kind=kind, namespace=namespace, name=name, event=event)
