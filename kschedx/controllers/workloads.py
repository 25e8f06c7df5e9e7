"""Whose pods they are, the pods that a workload would make next, and what follows a pod's deletion."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.explain.setup import Setup
from kschedx.explain.subject import admitted, with_claims_of_templates
from kschedx.framework.moving import Run
from kschedx.kube.autoscalers import DELETION_COST, MIRROR
from kschedx.kube.decoding import map_at
from kschedx.kube.kinds import KINDS
from kschedx.kube.storage import PersistentVolumeClaim, PersistentVolumeClaimStatus, ephemeral_claim_name
from kschedx.kube.types import ObjectMeta, OwnerReference, Pod, PodSpec
from kschedx.kube.workloads import (
    MAKING_PODS,
    claims_for,
    current_replica_set,
    deployment_of,
    has_same_template,
    made_of,
    owned_replica_sets,
    pod_from_workload,
)
from kschedx.snapshot.columns import BoolArray, IntArray, paired, rows_by_group
from kschedx.snapshot.pods import PodCopies, PodTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import StorageChange

# Claims that a pod has for itself: of generic ephemeral volumes, and of devices by a template.


def with_own_claims(snapshot: Snapshot, like: Pod, pod: Pod) -> tuple[Snapshot, Pod]:
    """The cluster with the claims of a new pod that is like another one, and the pod, whose status names them."""
    made: dict[str, PersistentVolumeClaim] = {}
    for volume in pod.spec.volumes:
        if volume.ephemeral is not None:
            template = snapshot.storage.claim(like.metadata.namespace, ephemeral_claim_name(like.metadata.name, volume))
            if template is not None:
                claim = _unbound(template, pod, ephemeral_claim_name(pod.metadata.name, volume))
                made[claim.key] = claim
    if made:
        snapshot = snapshot.with_new_claims(made)
    snapshot, pod, _ = with_claims_of_templates(snapshot, pod)
    return snapshot, pod


def _unbound(template: PersistentVolumeClaim, pod: Pod, name: str) -> PersistentVolumeClaim:
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.metadata.name, uid=pod.metadata.uid, controller=True)
    metadata = ObjectMeta(name=name, namespace=pod.metadata.namespace, owner_references=(owner,), uid=f"new/{name}")
    spec = replace(template.spec, volume_name="")
    return replace(template, metadata=metadata, spec=spec, status=PersistentVolumeClaimStatus())


def has_ephemeral_claims(spec: PodSpec) -> bool:
    return any(volume.ephemeral for volume in spec.volumes)


def create(run: Run, pods: Sequence[Pod]) -> list[int]:
    """Add pods; those that name their node are there."""
    cluster = run.cluster
    rows = cluster.add_pods(pods)
    if isinstance(pods, PodCopies):
        return rows
    for row, pod in zip(rows, pods, strict=True):
        if pod.spec.node_name in cluster.snapshot.cluster.index:
            cluster.place(row, cluster.snapshot.cluster.index[pod.spec.node_name])
    return rows


def evict(run: Run, row: int, *, waits: bool) -> None:
    """Take a pod away, with what claims it has for itself. `waits`: its controller makes another one, which has others
    of the same names."""
    if not waits:
        run.delete(row)
        return
    run.evict(row, waits=True)
    if not has_ephemeral_claims(run.cluster.pods.specs[row]):
        return
    pod = run.cluster.pods[row]
    claims = run.snapshot.storage.claims
    names = [ephemeral_claim_name(pod.metadata.name, volume) for volume in pod.spec.volumes if volume.ephemeral]
    its = [claim for name in names if (claim := claims.get(f"{pod.metadata.namespace}/{name}")) is not None]
    if its:
        run.cluster.set_storage(StorageChange(claims={claim.key: _unbound(claim, pod, claim.name) for claim in its}))


# What happens after a pod is deleted: its controller recreates it, or it stays away.


def is_controlled(owners: Iterable[OwnerReference]) -> bool:
    """Whether a controller recreates the pod when it is deleted; a static pod has none."""
    return any(owner.controller and owner.kind != "Node" for owner in owners)


def is_of_daemon_set(owners: Iterable[OwnerReference]) -> bool:
    """Whether the controller is a DaemonSet of Kubernetes' own, not one of that name in another API group."""
    return any(
        owner.controller and owner.kind == "DaemonSet" and owner.api_version in ("", "apps/v1") for owner in owners
    )


def is_mirror_pod(pods: PodTable, row: int) -> bool:
    """A static pod, which the API server only mirrors: the annotation says so, or the node owns it."""
    return MIRROR in pods.annotations[row] or any(owner.kind == "Node" for owner in pods.owners[row])


def stays_with_node(pods: PodTable, row: int) -> bool:
    """Whether the pod belongs to its node and cannot run on another."""
    return is_of_daemon_set(pods.owners[row]) or is_mirror_pod(pods, row)


def staying_with_nodes(pods: PodTable) -> BoolArray:
    """(pod,) `stays_with_node` of each."""
    is_mirror = pods.annotations.where(lambda annotations: MIRROR in annotations)
    return is_mirror | pods.owners.where(
        lambda owners: is_of_daemon_set(owners) or any(owner.kind == "Node" for owner in owners)
    )


# Whose pods they are, and the pods that a workload would make next.

Manifest = Mapping[str, object]

TEMPLATE_HASH = "pod-template-hash"
SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
"""The kinds with a number of replicas."""
MOST_PODS = 1_000_000
"""That are placed for one workload."""


class Workload(Struct, frozen=True):
    """What makes pods: by its kind, namespace and name; a pod that nothing made stands for itself."""

    kind: str
    namespace: str
    name: str

    @property
    def key(self) -> str:
        """`shop/web`."""
        return f"{self.namespace}/{self.name}"

    @property
    def title(self) -> str:
        """`Deployment shop/web`."""
        return f"{self.kind} {self.key}"

    @property
    def reference(self) -> str:
        """`shop/deploy/web`."""
        short = KINDS[self.kind].short_names if self.kind in KINDS else ()
        return f"{self.namespace}/{(short or (self.kind.lower(),))[0]}/{self.name}"


class OfWorkload:
    """What is about one workload, and named by it."""

    __slots__ = ()
    workload: Workload

    @property
    def kind(self) -> str:
        return self.workload.kind

    @property
    def namespace(self) -> str:
        return self.workload.namespace

    @property
    def name(self) -> str:
        return self.workload.name


class Owners:
    """The workload of each pod of a table; a Deployment's where its ReplicaSet says so, by owner or by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._stored = snapshot.workloads
        self._deployment_of = dict(_deployments(snapshot))
        self._known: dict[tuple[int, ...], Workload | None] = {}

    def of(self, pods: PodTable, row: int) -> Workload:
        return self.of_each(pods, (row,))[0]

    def of_each(self, pods: PodTable, rows: Sequence[int]) -> list[Workload]:
        found: list[Workload] = []
        columns = (pods.namespaces, pods.owners, pods.labels)
        codes = zip(*(column.codes[np.array(rows, dtype=np.int64)].tolist() for column in columns), strict=True)
        for row, key in zip(rows, codes, strict=True):
            if key not in self._known:
                self._known[key] = self._made_by(pods.namespaces[row], pods.owners[row], pods.labels[row])
            found.append(self._known[key] or Workload("Pod", pods.namespaces[row], pods.names[row]))
        return found

    def _made_by(self, namespace: str, owners: Iterable[OwnerReference], labels: Mapping[str, str]) -> Workload | None:
        owner = next((one for one in owners if one.controller), None)
        if owner is None:
            return None
        template = labels.get(TEMPLATE_HASH)
        if owner.kind == "ReplicaSet":
            deployment = self._deployment_of.get((namespace, owner.name))
            if deployment is None and template and owner.name.endswith(f"-{template}"):
                guess = owner.name.removesuffix(f"-{template}")
                is_stored = ("ReplicaSet", namespace, owner.name) in self._stored
                if not is_stored or ("Deployment", namespace, guess) in self._stored:  # which adopts it
                    deployment = guess
            if deployment:
                return Workload("Deployment", namespace, deployment)
        return Workload(owner.kind, namespace, owner.name)

    def _may_belong_to(self, owner: OwnerReference, workload: Workload) -> bool:
        """Whether pods of this owner may be the workload's: those of a Deployment belong to its ReplicaSets."""
        if not owner.controller:
            return False
        if workload.kind != "Deployment":
            return (owner.kind, owner.name) == (workload.kind, workload.name)
        deployment = self._deployment_of.get((workload.namespace, owner.name))
        if deployment is None:
            return owner.kind == "ReplicaSet" and owner.name.startswith(f"{workload.name}-")
        return owner.kind == "ReplicaSet" and deployment == workload.name

    def members(self, pods: PodTable, workload: Workload) -> list[int]:
        """Rows of its pods that have not finished."""
        unfinished = ~pods.phases.where(lambda phase: phase in ("Succeeded", "Failed"))
        inside = unfinished & pods.namespaces.where(lambda name: name == workload.namespace)
        if workload.kind != "Pod":
            inside &= pods.owners.where(lambda owners: any(self._may_belong_to(owner, workload) for owner in owners))
        rows: list[int] = self.rows_by_workload(pods, inside.nonzero()[0]).get(workload, _NO_ROWS).tolist()
        return rows

    def rows_by_workload(self, pods: PodTable, rows: IntArray) -> dict[Workload, IntArray]:
        """The workloads of these pods, in the order in which they come, to the rows of each."""
        key = paired(paired(pods.namespaces.codes[rows], pods.owners.codes[rows]), pods.labels.codes[rows])
        order, start = rows_by_group(key, int(key.max(initial=-1)) + 1)
        groups = [order[first:last] for first, last in itertools.pairwise(start.tolist()) if first < last]
        found: dict[Workload, list[IntArray]] = {}
        for places in sorted(groups, key=lambda places: int(places[0])):
            first = self.of(pods, int(rows[places[0]]))
            if first.kind == "Pod":
                for place in places:
                    found.setdefault(self.of(pods, int(rows[place])), []).append(place)
            else:
                found.setdefault(first, []).append(places)
        its = {workload: np.sort(np.hstack(places)) for workload, places in found.items()}
        return {workload: rows[places] for workload, places in sorted(its.items(), key=lambda one: int(one[1][0]))}


_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


def _deployments(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str], str]]:
    """ReplicaSets that have a controller, by namespace and name, to the Deployment that it is; "" for another kind."""
    for (kind, namespace, name), raw in snapshot.workloads.items():
        if kind == "ReplicaSet":
            owners = map_at(msgspec.json.decode(raw), "metadata").get("ownerReferences")
            for owner in owners if isinstance(owners, list) else ():
                if isinstance(owner, dict) and owner.get("kind") == "Deployment":
                    yield (namespace, name), str(owner.get("name"))
                elif isinstance(owner, dict) and owner.get("controller"):
                    yield (namespace, name), ""


def wanted_replicas(manifest: Manifest, before: Manifest | None = None) -> int:
    """How many pods the workload asks for at a time; what it does not say stays as it was `before`, else it is 1."""
    spec, old = map_at(manifest, "spec"), {} if before is None else map_at(before, "spec")
    if manifest.get("kind") == "CronJob":
        spec, old = map_at(spec, "jobTemplate", "spec"), map_at(old, "jobTemplate", "spec")
    names = ("parallelism", "completions") if manifest.get("kind") in ("Job", "CronJob") else ("replicas",)
    numbers = [number for name in names if isinstance(number := spec.get(name, old.get(name)), int)]
    wanted = min(numbers, default=1)
    if wanted > MOST_PODS:
        hint = f"kschedx places at most {MOST_PODS:,}"
        raise InputError(f"{wanted:,} pods", place=Place(object=title(manifest)), hint=hint)
    return wanted


def has_replicas(manifest: Manifest) -> bool:
    """Whether it creates a number of identical pods."""
    kind = KINDS.get(str(manifest.get("kind")))
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    return kind is not None and kind.name in (*SCALED, "CronJob") and group in ("", kind.group, *kind.former_groups)


def says_replicas(manifest: Manifest) -> bool:
    """Whether the manifest has the number; one of a snapshot that was cut down may not."""
    return manifest.get("kind") in ("Job", "CronJob") or isinstance(map_at(manifest, "spec").get("replicas"), int)


def with_replicas(manifest: Manifest, replicas: int) -> Manifest:
    name = "parallelism" if manifest.get("kind") == "Job" else "replicas"
    return {**manifest, "spec": {**map_at(manifest, "spec"), name: replicas}}


def has_new_template(snapshot: Snapshot, manifest: Manifest) -> bool:
    """Whether the cluster's pods of this workload, if any, are of another template than the manifest's."""
    before = stored_manifest(snapshot, workload_of(manifest))
    if before is None:
        return False
    return not has_same_template(before, manifest)


def new_pods(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, count: int, taken: Iterable[str] = ()
) -> tuple[Snapshot, Sequence[Pod]]:
    """The next pods of a workload as the API server would store them, and the cluster with what is made for them.

    `taken` are the names of pods that the workload has. Raises `InputError` with the workload.
    """
    if not count:
        return snapshot, []
    if manifest.get("kind") == "StatefulSet":
        name, known = name_of(manifest), frozenset(taken)
        free = (number for number in itertools.count(first_ordinal(manifest)) if f"{name}-{number}" not in known)
        return pods_of_ordinals(snapshot, setup, manifest, itertools.islice(free, count))
    return copy_pod(*template_pod(snapshot, setup, manifest), count)


def template_pod(snapshot: Snapshot, setup: Setup, manifest: Manifest) -> tuple[Snapshot, Pod]:
    """The pod of a workload's template as the API server would store it, and the cluster with what is made for it.
    Raises `InputError` with the workload."""
    made = made_of(manifest, replica_set=current_replica_set_of(snapshot, manifest))
    subject = admitted(snapshot, made.pod, setup, title=title(manifest), made=made.others, maker=manifest)
    return subject.snapshot, subject.pod


def copy_pod(snapshot: Snapshot, pod: Pod, count: int) -> tuple[Snapshot, Sequence[Pod]]:
    """More pods of the same template, which wait, under names that are not taken, and the cluster with the claims that
    each has for itself."""
    prefix = f"{pod.metadata.name.removesuffix('-new')}-new"
    taken, numbers = snapshot.pods.rows, itertools.count(1)
    free = (number for number in numbers if f"{pod.metadata.namespace}/{prefix}{number}" not in taken)
    like = Pod(
        metadata=replace(pod.metadata, creation_timestamp=None, deletion_timestamp=None),
        spec=replace(pod.spec, node_name=""),
        status=type(pod.status)(),
    )
    copies = PodCopies(like, prefix, np.fromiter(itertools.islice(free, count), dtype=np.int64, count=count))
    if not (pod.spec.resource_claims or any(volume.ephemeral for volume in pod.spec.volumes)):
        return snapshot, copies
    made: list[Pod] = []
    for another in copies:
        snapshot, its_own = with_own_claims(snapshot, pod, another)
        made.append(its_own)
    return snapshot, made


def one_or_copies(snapshot: Snapshot, pod: Pod, count: int) -> tuple[Snapshot, Sequence[Pod]]:
    """The pod itself where one is wanted and its name is not taken, else copies of it. The cluster has its claims."""
    if count == 1 and pod.key not in snapshot.pods.rows:
        return snapshot, [pod]
    return copy_pod(snapshot, pod, count)


def name_of(manifest: Manifest) -> str:
    return str(map_at(manifest, "metadata").get("name") or "")


def first_ordinal(manifest: Manifest) -> int:
    """Of a StatefulSet."""
    start = map_at(manifest, "spec", "ordinals").get("start")
    return start if isinstance(start, int) else 0


def pods_of_ordinals(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, ordinals: Iterable[int]
) -> tuple[Snapshot, list[Pod]]:
    """A StatefulSet's pods of these ordinals, and the cluster with the claims of their templates."""
    made: list[Pod] = []
    for ordinal in ordinals:
        spec = {**map_at(manifest, "spec"), "ordinals": {"start": ordinal}}
        next_pod = pod_from_workload({**manifest, "spec": spec})
        subject = admitted(snapshot, next_pod, setup, title=title(manifest), maker=manifest)
        pod = subject.pod
        snapshot = with_template_claims(subject.snapshot, manifest, pod)
        made.append(replace(pod, metadata=replace(pod.metadata, uid=f"new/{pod.key}")))
    return snapshot, made


def with_template_claims(snapshot: Snapshot, manifest: Manifest, pod: Pod) -> Snapshot:
    """The claims that the StatefulSet's controller makes for a pod, where it has none of that name yet."""
    made: dict[str, PersistentVolumeClaim] = {}
    for written in claims_for(manifest, pod.metadata.name):
        claim = msgspec.convert(written, PersistentVolumeClaim)
        if snapshot.storage.claim(claim.metadata.namespace, claim.name) is None:
            made[claim.key] = claim
    return snapshot.with_new_claims(made) if made else snapshot


def deletion_order(snapshot: Snapshot, workload: Workload, rows: Sequence[int]) -> list[int]:
    """Rows in the order in which a controller deletes pods: of a StatefulSet the highest ordinal first; else those
    without a node, then those that are not ready, those with the lowest pod-deletion-cost, those that share a node
    with most others, and the youngest (ActivePodsWithRanks in pkg/controller/controller_utils.go)."""
    pods = snapshot.pods
    if workload.kind == "StatefulSet":
        return sorted(rows, key=lambda row: -ordinal_of(pods.names[row]))
    here = Counter(int(pods.node[row]) for row in rows)
    ordered = sorted(rows, key=lambda row: (pods.creation_timestamps[row] or "9999", row), reverse=True)

    def key(row: int) -> tuple[bool, bool, int, int]:
        has_node = bool(pods.node[row] >= 0)
        return has_node, _is_ready(pods, row), _deletion_cost(pods, row), -here[int(pods.node[row])] if has_node else 0

    return sorted(ordered, key=key)


def _is_ready(pods: PodTable, row: int) -> bool:
    return all(one.status == "True" for one in pods.statuses[row].conditions if one.type == "Ready")


def _deletion_cost(pods: PodTable, row: int) -> int:
    text = pods.annotations[row].get(DELETION_COST, "0")
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,10}", text) else 0


def ordinal_of(name: str) -> int:
    """Of a StatefulSet's pod, by its name."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def current_replica_set_of(snapshot: Snapshot, manifest: Manifest) -> dict[str, object] | None:
    """The ReplicaSet of the cluster that has a Deployment's template; None for other kinds and for a new template."""
    if manifest.get("kind") != "Deployment":
        return None
    return current_replica_set(manifest, replica_sets(snapshot, workload_of(manifest).namespace))


def replica_sets(snapshot: Snapshot, namespace: str) -> list[dict[str, object]]:
    """The ReplicaSets that the cluster has stored; one that a new Deployment stands for here has no pod spec."""
    every: list[dict[str, object]] = [
        msgspec.json.decode(raw)
        for (kind, space, _), raw in snapshot.workloads.items()
        if kind == "ReplicaSet" and space == namespace
    ]
    return [one for one in every if map_at(one, "spec", "template", "spec")]


def manifest_of(snapshot: Snapshot, workload: Workload) -> dict[str, object] | None:
    """What is known of it, None where the snapshot has pods of it at most."""
    raw = snapshot.workloads.get((workload.kind, workload.namespace, workload.name))
    return None if raw is None else cast("dict[str, object]", msgspec.json.decode(raw))


def stored_manifest(snapshot: Snapshot, workload: Workload) -> dict[str, object] | None:
    """Like `manifest_of`; a Deployment that the snapshot lacks has the template of its newest ReplicaSet."""
    found = manifest_of(snapshot, workload)
    if found is not None or workload.kind != "Deployment":
        return found
    owned = owned_replica_sets(workload.name, replica_sets(snapshot, workload.namespace))
    return deployment_of(workload.name, owned) if owned else None


def workload_of(manifest: Manifest) -> Workload:
    """Who a manifest with a namespace is about."""
    metadata = map_at(manifest, "metadata")
    namespace = str(metadata.get("namespace") or "default")
    return Workload(str(manifest.get("kind")), namespace, str(metadata.get("name") or ""))


def title(manifest: Manifest) -> str:
    metadata = map_at(manifest, "metadata")
    return f"{manifest.get('kind')} {metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}"


def makes_pods(kind: str) -> bool:
    """A pod stands for itself."""
    return kind == "Pod" or kind in MAKING_PODS


def is_namespaced(manifest: Manifest) -> bool:
    """As far as the kind is known; the answer does not matter for kinds that are not read."""
    kind = KINDS.get(str(manifest.get("kind")))
    return kind is None or kind.is_namespaced


def require_scalable(kind: str) -> None:
    """Raises `InputError` for a kind without a number of replicas."""
    if kind not in SCALED:
        raise InputError(f'"{kind}" does not scale', hint=f"kinds that do: {', '.join(SCALED)}")
