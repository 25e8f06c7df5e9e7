"""Whose pods they are, and the pods that a workload would make next."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kschedx.answer.subject import admitted
from kschedx.api.kinds import KINDS
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import OwnerReference, Pod
from kschedx.api.workloads import MAKING_PODS, current_replica_set, pod_from_workload
from kschedx.errors import InputError
from kschedx.explain.setup import Setup
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

Manifest = Mapping[str, object]

TEMPLATE_HASH = "pod-template-hash"
SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
"""The kinds with a number of replicas."""


class Workload(Struct, frozen=True):
    """What makes pods: by its kind, namespace and name; a pod that nothing made stands for itself."""

    kind: str
    namespace: str
    name: str

    @property
    def reference(self) -> str:
        """`shop/deploy/web`."""
        short = KINDS[self.kind].short_names if self.kind in KINDS else ()
        return f"{self.namespace}/{(short or (self.kind.lower(),))[0]}/{self.name}"


class Owners:
    """The workload of each pod of a table; a Deployment's where its ReplicaSet says so, by owner or by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._deployment_of = dict(_deployments(snapshot))
        self._known: dict[tuple[int, int, int], Workload | None] = {}

    def of(self, pods: PodTable, row: int) -> Workload:
        key = tuple(int(column.codes[row]) for column in (pods.namespaces, pods.owners, pods.labels))
        found = self._known.get(cast("tuple[int, int, int]", key), self)
        if found is self:
            found = self._known[cast("tuple[int, int, int]", key)] = self._made_by(
                pods.namespaces[row], pods.owners[row], pods.labels[row]
            )
        return cast("Workload | None", found) or Workload("Pod", pods.namespaces[row], pods.names[row])

    def _made_by(self, namespace: str, owners: Iterable[OwnerReference], labels: Mapping[str, str]) -> Workload | None:
        owner = next((one for one in owners if one.controller), None)
        if owner is None:
            return None
        template = labels.get(TEMPLATE_HASH)
        if owner.kind == "ReplicaSet":
            deployment = self._deployment_of.get((namespace, owner.name))
            if deployment is None and template and owner.name.endswith(f"-{template}"):
                deployment = owner.name.removesuffix(f"-{template}")
            if deployment:
                return Workload("Deployment", namespace, deployment)
        return Workload(owner.kind, namespace, owner.name)

    def members(self, pods: PodTable, workload: Workload) -> list[int]:
        """Rows of its pods that have not finished."""
        unfinished = ~pods.phases.where(lambda phase: phase in ("Succeeded", "Failed"))
        inside = unfinished & pods.namespaces.where(lambda name: name == workload.namespace)
        return [row for row in inside.nonzero()[0].tolist() if self.of(pods, row) == workload]


def _deployments(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str], str]]:
    """ReplicaSets, by namespace and name, to the Deployments that own them."""
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind == "ReplicaSet":
            owners = _map(msgspec.json.decode(raw), "metadata").get("ownerReferences")
            for owner in owners if isinstance(owners, list) else ():
                if isinstance(owner, dict) and owner.get("kind") == "Deployment":
                    yield (namespace, name), str(owner.get("name"))


def wanted_replicas(manifest: Manifest) -> int:
    """How many pods the workload asks for at a time; 1 where it does not say."""
    spec = _map(manifest, "spec")
    if manifest.get("kind") == "Job":
        parallelism, completions = spec.get("parallelism", 1), spec.get("completions")
        numbers = [number for number in (parallelism, completions) if isinstance(number, int)]
        return min(numbers, default=1)
    replicas = spec.get("replicas", 1)
    return replicas if isinstance(replicas, int) else 1


def new_pods(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, count: int, taken: Iterable[str] = ()
) -> tuple[Snapshot, list[Pod]]:
    """The next pods of a workload as the API server would store them, and the cluster with the claims made for them.

    `taken` are the names of pods that the workload has. Raises `InputError` with the workload.
    """
    if manifest.get("kind") == "StatefulSet":
        return _with_ordinals(snapshot, setup, manifest, count, frozenset(taken))
    first = pod_from_workload(manifest, replica_set=_replica_set(snapshot, manifest))
    subject = admitted(snapshot, first, setup, title=title(manifest))
    base = subject.pod.metadata.name.removesuffix("-new")
    used = {*taken, *(name.partition("/")[2] for name in snapshot.pods.rows)} if count else set()
    made: list[Pod] = []
    number = 0
    while len(made) < count:
        number += 1
        if (name := f"{base}-new{number}") not in used:
            metadata = replace(subject.pod.metadata, name=name, uid=f"new/{subject.pod.metadata.namespace}/{name}")
            made.append(replace(subject.pod, metadata=metadata))
    return subject.snapshot if count else snapshot, made


def _with_ordinals(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, count: int, taken: frozenset[str]
) -> tuple[Snapshot, list[Pod]]:
    """The lowest ordinals that are free, with the claims of their templates."""
    start = _map(manifest, "spec", "ordinals").get("start")
    ordinal = start if isinstance(start, int) else 0
    name = str(_map(manifest, "metadata").get("name") or "")
    made: list[Pod] = []
    while len(made) < count:
        if f"{name}-{ordinal}" not in taken:
            spec = {**_map(manifest, "spec"), "ordinals": {"start": ordinal}}
            subject = admitted(snapshot, pod_from_workload({**manifest, "spec": spec}), setup, title=title(manifest))
            pod = subject.pod
            snapshot = _with_claims(subject.snapshot, manifest, pod)
            made.append(replace(pod, metadata=replace(pod.metadata, uid=f"new/{pod.key}")))
        ordinal += 1
    return snapshot, made


def _with_claims(snapshot: Snapshot, manifest: Manifest, pod: Pod) -> Snapshot:
    """The claims that the StatefulSet's controller makes for a pod, where it has none of that name yet."""
    templates = _map(manifest, "spec").get("volumeClaimTemplates")
    made: dict[str, PersistentVolumeClaim] = {}
    for template in templates if isinstance(templates, list) else ():
        name = f"{_map(template, 'metadata').get('name')}-{pod.metadata.name}"
        if snapshot.storage.claim(pod.metadata.namespace, name) is None:
            metadata = {"name": name, "namespace": pod.metadata.namespace}
            written = {"metadata": metadata, "spec": _map(template, "spec")}
            claim = msgspec.convert(written, PersistentVolumeClaim)
            made[claim.key] = snapshot.storage.with_default(claim)
    return snapshot.with_claims(made) if made else snapshot


def _replica_set(snapshot: Snapshot, manifest: Manifest) -> dict[str, object] | None:
    if manifest.get("kind") != "Deployment":
        return None
    namespace = _map(manifest, "metadata").get("namespace") or "default"
    every: list[dict[str, object]] = [
        msgspec.json.decode(raw)
        for (kind, space, _), raw in snapshot.workloads.items()
        if kind == "ReplicaSet" and space == namespace
    ]
    return current_replica_set(manifest, every)


def manifest_of(snapshot: Snapshot, workload: Workload) -> dict[str, object] | None:
    """What is known of it, None where the snapshot has pods of it at most."""
    raw = snapshot.workloads.get((workload.kind, workload.namespace, workload.name))
    return None if raw is None else cast("dict[str, object]", msgspec.json.decode(raw))


def title(manifest: Manifest) -> str:
    metadata = _map(manifest, "metadata")
    return f"{manifest.get('kind')} {metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}"


def makes_pods(kind: str) -> bool:
    return kind in MAKING_PODS


def require_scalable(kind: str) -> None:
    """Raises `InputError` for a kind without a number of replicas."""
    if kind not in SCALED:
        raise InputError(f'"{kind}" does not scale', hint=f"what does: {', '.join(SCALED)}")


def _map(value: object, *path: str) -> dict[str, object]:
    """What is under a path, or nothing, where it is no map."""
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
