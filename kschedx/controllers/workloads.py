"""The workload of each pod, the pods that a workload would create next, and what follows a pod's deletion."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, cast

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.errors import InputError, Place
from kschedx.explain.setup import Setup, admit, unbound_claim, with_created_claims, with_own_claims, without_own_claims
from kschedx.framework.moving import Run
from kschedx.grouping import group_pairs
from kschedx.kube.autoscalers import DELETION_COST, MIRROR
from kschedx.kube.conditions import condition_of, reports_ready
from kschedx.kube.controllers import ControllerStatus, convert, stored_controller, stored_metadata
from kschedx.kube.decoding import Manifest, decode, map_at
from kschedx.kube.kinds import KINDS, has_namespace
from kschedx.kube.quantity import value
from kschedx.kube.scalars import LATEST, nanoseconds
from kschedx.kube.storage import PersistentVolumeClaim, ephemeral_claim_name
from kschedx.kube.types import (
    FINISHED,
    OUT_OF_SERVICE,
    UNREACHABLE,
    Node,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodSpec,
    controller_of,
)
from kschedx.kube.workloads import (
    MAKING_PODS,
    MOST_PODS,
    TEMPLATE_HASH,
    claims_for,
    created_pod,
    current_replica_set,
    deployment_of,
    foreign_pods,
    has_template,
    kind_and_group,
    newest_first,
    pod_from_workload,
    qualified_kind,
)
from kschedx.snapshot.columns import BoolArray, IntArray, Memo, pair_codes, rows_by_group
from kschedx.snapshot.pods import PodCopies, PodTable
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import StorageChange


def has_ephemeral_claims(spec: PodSpec) -> bool:
    return any(volume.ephemeral for volume in spec.volumes)


def create(run: Run, pods: Sequence[Pod]) -> list[int]:
    """Add pods and return their rows; pods that name their node are assigned to it."""
    cluster = run.cluster
    rows = cluster.add_pods(pods)
    if isinstance(pods, PodCopies):
        return rows
    for row, pod in zip(rows, pods, strict=True):
        if (node := cluster.snapshot.cluster.index.get(pod.spec.node_name)) is not None:
            cluster.place(row, node)
        elif pod.spec.node_name:
            cluster.name_missing_node(row, pod.spec.node_name)
    return rows


def evict(run: Run, row: int, *, waits: bool) -> None:
    """Evict a pod and its own claims. If it `waits`, its controller recreates it, with new claims of the same names."""
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
        run.cluster.set_storage(StorageChange(claims={it.key: unbound_claim(it, pod, it.name) for it in its}))


def is_controlled(owners: Iterable[OwnerReference]) -> bool:
    """Whether a controller recreates the pod when it is deleted; a static pod has none."""
    return any(owner.controller and owner.kind != "Node" for owner in owners)


def is_recreated(pods: PodTable, row: int) -> bool:
    """Whether a controller creates another pod once this one is gone. Except for pods with names or nodes of their own,
    it does so as soon as the pod is terminating."""
    owners = pods.owners[row]
    return is_controlled(owners) and not (pods.deletion_timestamps[row] and _replaces_terminating(owners))


KEEPING_NAMES = ("StatefulSet", "DaemonSet")
"""The kinds whose pods have names or nodes of their own, so that a pod is replaced only once it is gone."""


def waits_until_gone(snapshot: Snapshot, namespace: str, owner: OwnerReference) -> bool:
    """Return whether a controller replaces a terminating pod only once it is gone: one of `KEEPING_NAMES`, or a Job
    with the pod replacement policy Failed, which is the default with a pod failure policy."""
    job = snapshot.manifest_of(("Job", namespace, owner.name)) if owner.kind == "Job" else None
    spec = map_at(job or {}, "spec")
    return owner.kind in KEEPING_NAMES or spec.get("podReplacementPolicy") == "Failed" or "podFailurePolicy" in spec


def confirms_deletions(node: Node) -> bool:
    """Return whether pods of the node are gone once they are deleted: its kubelet responds, or it is out of service."""
    taints = {taint.key for taint in node.spec.taints}
    is_unknown = condition_of(node.status.conditions, "Ready", "Unknown") is not None
    return OUT_OF_SERVICE in taints or not (UNREACHABLE in taints or is_unknown)


def stays_terminating(snapshot: Snapshot, pods: PodTable, row: int) -> bool:
    """Return whether a deleted pod stays terminating, because no kubelet confirms the deletion."""
    node = int(pods.node[row])
    return node >= 0 and not confirms_deletions(snapshot.cluster.nodes[node])


def are_replaced(pods: PodTable) -> BoolArray:
    """Return whether each pod is terminating and its controller has already replaced it, `(pod,)`."""
    return pods.terminating & pods.owners.where(_replaces_terminating)


def _replaces_terminating(owners: Sequence[OwnerReference]) -> bool:
    return is_controlled(owners) and not any(owner.kind in KEEPING_NAMES for owner in owners)


def ends_job(snapshot: Snapshot, pods: PodTable, row: int) -> bool:
    """Whether the Job of a pod fails if the pod is deleted: it counts against backoffLimit
    (pkg/controller/job/job_controller.go)."""
    owner = controller_of(pods.owners[row])
    if owner is None or owner.kind != "Job":
        return False
    job = snapshot.manifest_of(("Job", pods.namespaces[row], owner.name)) or {}
    spec, failed = map_at(job, "spec"), map_at(job, "status").get("failed")
    limit = spec.get("backoffLimit")
    is_spared = "podFailurePolicy" in spec or "backoffLimitPerIndex" in spec
    return isinstance(limit, int) and not is_spared and (failed if isinstance(failed, int) else 0) >= limit


def may_be_lost(owners: Iterable[OwnerReference]) -> bool:
    """Whether `loss_reason` may find a reason for a pod with these owners."""
    return not is_controlled(owners) or any(owner.kind == "Job" for owner in owners)


def loss_reason(snapshot: Snapshot, pods: PodTable, row: int) -> str:
    """Return why no controller recreates a pod that loses its node; empty if one does."""
    if not is_controlled(pods.owners[row]):
        return "no controller recreates it"
    return "its Job exceeds its backoffLimit, and fails" if ends_job(snapshot, pods, row) else ""


def is_of_daemon_set(owners: Iterable[OwnerReference]) -> bool:
    """Whether the controller is a DaemonSet, of Kubernetes or of another API group such as OpenKruise's."""
    return any(owner.controller and owner.kind == "DaemonSet" for owner in owners)


def is_mirror_pod(pods: PodTable, row: int) -> bool:
    """Whether the pod is the mirror of a static pod: it has the annotation, or the node owns it."""
    return MIRROR in pods.annotations[row] or any(owner.kind == "Node" for owner in pods.owners[row])


def stays_with_node(pods: PodTable, row: int) -> bool:
    """Whether the pod belongs to its node and cannot run on another."""
    return is_of_daemon_set(pods.owners[row]) or is_mirror_pod(pods, row)


def staying_with_nodes(pods: PodTable) -> BoolArray:
    """Return `stays_with_node` of each pod, `(pod,)`."""
    is_mirror = pods.annotations.where(lambda annotations: MIRROR in annotations)
    return is_mirror | pods.owners.where(lambda it: is_of_daemon_set(it) or any(owner.kind == "Node" for owner in it))


JOB_FAILURES = ("FailureTarget", "Failed")
JOB_ENDS = ("SuccessCriteriaMet", "Complete", *JOB_FAILURES)
"""The condition types of an ended Job. A Job has the first condition of each outcome until its last pods are gone."""
SCALED = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController", "Job")
"""The kinds with a number of replicas."""


class Workload(NamedTuple):
    """What creates pods, by kind, namespace, and name, as in `Snapshot.workloads`; a pod without a controller is its
    own workload."""

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
        """`shop/deploy/web`; `pc/high` for an object without a namespace."""
        short = KINDS[self.kind].short_names if self.kind in KINDS else ()
        within = f"{self.namespace}/" if has_namespace(self.kind) else ""
        return f"{within}{(short or (self.kind.lower(),))[0]}/{self.name}"


class OfWorkload:
    """Base of classes about one workload, which gives them its kind, namespace, and name."""

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
    """Each pod's workload; the Deployment if the pod's ReplicaSet belongs to one, by owner or by name."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._stored = snapshot.workloads
        self._deployment_of = dict(_deployments(snapshot))
        self._known: dict[tuple[int, ...], Workload | None] = {}

    def of(self, pods: PodTable, row: int) -> Workload:
        return self.workloads_of(pods, (row,))[0]

    def workloads_of(self, pods: PodTable, rows: Sequence[int]) -> list[Workload]:
        workloads: list[Workload] = []
        columns = (pods.namespaces, pods.owners, pods.labels)
        codes = zip(*(column.codes[np.array(rows, dtype=np.int64)].tolist() for column in columns), strict=True)
        for row, key in zip(rows, codes, strict=True):
            if key not in self._known:
                self._known[key] = self._controller_of(pods.namespaces[row], pods.owners[row], pods.labels[row])
            workloads.append(self._known[key] or Workload("Pod", pods.namespaces[row], pods.names[row]))
        return workloads

    def _controller_of(
        self, namespace: str, owners: Iterable[OwnerReference], labels: Mapping[str, str]
    ) -> Workload | None:
        owner = controller_of(owners)
        if owner is None:
            return None
        template = labels.get(TEMPLATE_HASH)
        if owner.kind == "ReplicaSet":
            deployment = self._deployment_of.get((namespace, owner.name))
            if deployment is None and template and owner.name.endswith(f"-{template}"):
                guess = owner.name.removesuffix(f"-{template}")
                is_stored = ("ReplicaSet", namespace, owner.name) in self._stored
                if not is_stored or ("Deployment", namespace, guess) in self._stored:  # the Deployment adopts it
                    deployment = guess
            if deployment:
                return Workload("Deployment", namespace, deployment)
        return Workload(qualified_kind({"kind": owner.kind, "apiVersion": owner.api_version}), namespace, owner.name)

    @cached_property
    def _replica_sets(self) -> Mapping[tuple[str, str], Sequence[str]]:
        stored = self._deployment_of.items()
        return group_pairs(((namespace, deployment), name) for (namespace, name), deployment in stored if deployment)

    def members(self, pods: PodTable, workload: Workload) -> list[int]:
        """Return the rows of the workload's pods that have not finished."""
        kind, namespace, name = workload
        if kind == "Pod":
            rows = pods.rows_in_namespaces(namespace.__eq__)
        elif kind == "Deployment":  # by the names of its ReplicaSets, if they are not stored
            rows = pods.rows_of_controllers("ReplicaSet", self._replica_sets.get((namespace, name), ()), f"{name}-")
        else:
            rows = pods.rows_of_controllers(kind, (name,))
        rows = rows[pods.namespaces.take(rows).where(namespace.__eq__)]
        rows = rows[~pods.phases.take(rows).where(FINISHED.__contains__)]
        if kind != "ReplicaSet":  # the pods of a Deployment's ReplicaSet belong to both
            rows = self.rows_by_workload(pods, rows).get(workload, _NO_ROWS)
        members: list[int] = rows.tolist()
        return members

    def rows_by_workload(self, pods: PodTable, rows: IntArray) -> dict[Workload, IntArray]:
        """Return the rows of these pods by workload, in the order of each workload's first pod."""
        key = pair_codes(pair_codes(pods.namespaces.codes[rows], pods.owners.codes[rows]), pods.labels.codes[rows])
        order, start = rows_by_group(key, int(key.max(initial=-1)) + 1)
        groups = [order[first:last] for first, last in itertools.pairwise(start.tolist()) if first < last]
        rows_of: dict[Workload, list[IntArray]] = {}
        for places in sorted(groups, key=lambda places: int(places[0])):
            first = self.of(pods, int(rows[places[0]]))
            if first.kind == "Pod":
                for place in places:
                    rows_of.setdefault(self.of(pods, int(rows[place])), []).append(place)
            else:
                rows_of.setdefault(first, []).append(places)
        its = {workload: np.sort(np.hstack(places)) for workload, places in rows_of.items()}
        return {workload: rows[places] for workload, places in sorted(its.items(), key=lambda item: int(item[1][0]))}


_NO_ROWS: IntArray = np.zeros(0, dtype=np.int64)


def _deployments(snapshot: Snapshot) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the ReplicaSets that have a controller, by namespace and name, with the Deployment that controls them; ""
    if another kind does."""
    for (kind, namespace, name), raw in snapshot.workloads.items():
        for owner in stored_metadata(raw).owner_references if kind == "ReplicaSet" else ():
            if owner.kind == "Deployment":
                yield (namespace, name), owner.name
            elif owner.controller:
                yield (namespace, name), ""


def wanted_replicas(manifest: Manifest, before: Manifest | None = None) -> int:
    """Return how many pods the workload wants at a time, for a Job at most the completions that are missing. A field
    that the manifest lacks keeps its value from `before`; the default is 1."""
    spec, old = map_at(manifest, "spec"), {} if before is None else map_at(before, "spec")
    if manifest.get("kind") == "CronJob":
        spec, old = map_at(spec, "jobTemplate", "spec"), map_at(old, "jobTemplate", "spec")
    is_job = manifest.get("kind") in ("Job", "CronJob")
    number = spec.get(name := "parallelism" if is_job else "replicas", old.get(name))
    wanted = number if isinstance(number, int) else 1
    if wanted > MOST_PODS:
        hint = f"kschedx places at most {MOST_PODS:,}"
        raise InputError(f"{wanted:,} pods", place=Place(object=title(manifest)), hint=hint)
    completions = spec.get("completions", old.get("completions")) if is_job else None
    return _without_completed(manifest, wanted, completions if isinstance(completions, int) else None)


def _without_completed(manifest: Manifest, wanted: int, completions: int | None) -> int:
    """Return how many pods at a time are left of a Job. One without completions creates no more pods once one has
    succeeded."""
    status = convert(map_at(manifest, "status"), ControllerStatus) if manifest.get("kind") == "Job" else None
    succeeded = 0 if status is None else status.succeeded
    if status is not None and has_ended(manifest):
        return 0
    if status is not None and succeeded and completions is None:
        return min(wanted, status.active)
    return wanted if completions is None else max(min(wanted, completions - succeeded), 0)


def has_ended(job: Manifest) -> bool:
    """Return whether a Job has finished or failed."""
    conditions = convert(map_at(job, "status"), ControllerStatus).conditions
    return any(it.type in JOB_ENDS and it.status == "True" for it in conditions)


def parallel_replicas(manifest: Manifest) -> int:
    """Return how many pods a workload should have now: the wanted ones, or none for a suspended Job."""
    is_suspended = manifest.get("kind") == "Job" and map_at(manifest, "spec").get("suspend") is True
    return 0 if is_suspended else wanted_replicas(manifest)


def has_replicas(manifest: Manifest) -> bool:
    """Whether the workload creates a number of identical pods."""
    kind = KINDS.get(str(manifest.get("kind")))
    group = str(manifest.get("apiVersion") or "").rpartition("/")[0]
    return kind is not None and kind.name in (*SCALED, "CronJob") and group in ("", kind.group, *kind.former_groups)


def has_replica_count(manifest: Manifest) -> bool:
    """Whether the manifest has the number of replicas; a manifest of a reduced snapshot may lack it."""
    return manifest.get("kind") in ("Job", "CronJob") or isinstance(map_at(manifest, "spec").get("replicas"), int)


def with_replicas(manifest: Manifest, replicas: int) -> Manifest:
    name = "parallelism" if manifest.get("kind") == "Job" else "replicas"
    return {**manifest, "spec": {**map_at(manifest, "spec"), name: replicas}}


def has_new_spec(snapshot: Snapshot, manifest: Manifest) -> bool:
    """Whether the cluster has the workload with another spec."""
    before = stored_manifest(snapshot, workload_of(manifest))
    return before is not None and map_at(before, "spec") != map_at(manifest, "spec")


def new_pods(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, count: int, taken: Iterable[str] = ()
) -> tuple[Snapshot, Sequence[Pod]]:
    """Return the cluster with the objects that are created for the pods, and the next pods of a workload as the API
    server would store them. `taken` are the names of existing pods of the workload. Raises `InputError` with the
    workload."""
    if not count:
        return snapshot, []
    if manifest.get("kind") == "StatefulSet":
        name, known = name_of(manifest), frozenset(taken)
        free = (number for number in itertools.count(first_ordinal(manifest)) if f"{name}-{number}" not in known)
        return pods_of_ordinals(snapshot, setup, manifest, itertools.islice(free, count))
    return copy_pod(*template_pod(snapshot, setup, manifest), count)


def template_pod(snapshot: Snapshot, setup: Setup, manifest: Manifest) -> tuple[Snapshot, Pod]:
    """Return the cluster with the objects that are created for the pod, and the pod of a workload's template as the API
    server would store it. Raises `InputError` with the workload."""
    applied = created_pod(manifest, replica_set=current_replica_set_of(snapshot, manifest))
    subject = admit(snapshot, applied.pod, setup, title=title(manifest), dependents=applied.others, maker=manifest)
    return subject.snapshot, subject.pod


def copy_pod(snapshot: Snapshot, pod: Pod, count: int) -> tuple[Snapshot, Sequence[Pod]]:
    """Return the cluster with the pods' own claims, and more pending pods of the same template, under unused names."""
    prefix = f"{pod.metadata.name.removesuffix('-new')}-new"
    taken, numbers = snapshot.pods.rows, itertools.count(1)
    free = (number for number in numbers if f"{pod.metadata.namespace}/{prefix}{number}" not in taken)
    template = Pod(
        metadata=replace(pod.metadata, creation_timestamp=None, deletion_timestamp=None),
        spec=replace(pod.spec, node_name=""),
        status=type(pod.status)(),
    )
    copies = PodCopies(template, prefix, np.fromiter(itertools.islice(free, count), dtype=np.int64, count=count))
    if not (pod.spec.resource_claims or any(volume.ephemeral for volume in pod.spec.volumes)):
        return snapshot, copies
    if pod.key not in taken:  # its claims were created to admit it; only its copies exist
        snapshot = without_own_claims(snapshot, pod)
    pods: list[Pod] = []
    for another in copies:
        snapshot, its_own = with_own_claims(snapshot, pod, another)
        pods.append(its_own)
    return snapshot, pods


def one_or_copies(snapshot: Snapshot, pod: Pod, count: int) -> tuple[Snapshot, Sequence[Pod]]:
    """Return the pod itself if `count` is 1 and its name is unused, else copies of it. The cluster has their claims."""
    if count == 1 and pod.key not in snapshot.pods.rows:
        return snapshot, [pod]
    return copy_pod(snapshot, pod, count)


def name_of(manifest: Manifest) -> str:
    return str(map_at(manifest, "metadata").get("name") or "")


def first_ordinal(manifest: Manifest) -> int:
    start = map_at(manifest, "spec", "ordinals").get("start")
    return start if isinstance(start, int) else 0


def unfulfilled_seconds(manifest: Manifest) -> int:
    """The minReadySeconds of a StatefulSet with a ready pod that is not available by its status; otherwise, 0."""
    seconds, status = map_at(manifest, "spec").get("minReadySeconds"), map_at(manifest, "status")
    available, ready = status.get("availableReplicas"), status.get("readyReplicas")
    is_waiting = isinstance(available, int) and isinstance(ready, int) and available < ready
    return seconds if isinstance(seconds, int) and is_waiting else 0


def pods_of_ordinals(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, ordinals: Iterable[int]
) -> tuple[Snapshot, list[Pod]]:
    """Return the cluster with the claims of the volume claim templates, and a StatefulSet's pods of these ordinals."""
    pods: list[Pod] = []
    for ordinal in ordinals:
        spec = {**map_at(manifest, "spec"), "ordinals": {"start": ordinal}}
        next_pod = pod_from_workload({**manifest, "spec": spec})
        metadata = map_at(next_pod, "metadata")
        uid = f"new/{metadata.get('namespace')}/{metadata.get('name')}"  # its claims refer to it
        next_pod = {**next_pod, "metadata": {**metadata, "uid": uid}}
        subject = admit(snapshot, next_pod, setup, title=title(manifest), maker=manifest, is_recreated=True)
        snapshot = with_template_claims(subject.snapshot, manifest, subject.pod)
        pods.append(subject.pod)
    return snapshot, pods


def with_template_claims(snapshot: Snapshot, manifest: Manifest, pod: Pod) -> Snapshot:
    """The cluster with the claims that the StatefulSet's controller creates for a pod, if they do not exist yet."""
    claims: dict[str, PersistentVolumeClaim] = {}
    for written in claims_for(manifest, pod.metadata.name):
        claim = msgspec.convert(written, PersistentVolumeClaim)
        if snapshot.storage.claim(claim.metadata.namespace, claim.name) is None:
            claims[claim.key] = claim
    return with_created_claims(snapshot, claims)


def deletion_order(
    snapshot: Snapshot, workload: Workload, rows: Sequence[int], related: Sequence[int] = ()
) -> list[int]:
    """Return the rows in the order in which a controller deletes pods. A StatefulSet's pods are deleted from the
    highest ordinal down. `related` are pods of the other ReplicaSets of the same Deployment.

    Other pods are deleted in this order: pods without a node, pods that do not run yet, pods that are not ready, those
    with the lowest pod-deletion-cost, those that share a node with the most others, and the youngest. Pods whose ages
    have the same logarithm to base 2 are in the order of their UIDs (ActivePodsWithRanks in
    pkg/controller/controller_utils.go). The Job controller ignores the cost and the shared nodes (ActivePods). The age
    is that since creation, since a snapshot lacks the time at which a pod became ready.
    """
    pods, is_job = snapshot.pods, workload.kind == "Job"
    if workload.kind == "StatefulSet":
        return sorted(rows, key=lambda row: -ordinal_of(pods.names[row]))
    here = Counter(int(pods.node[row]) for row in {*rows, *related} if not is_job)
    now = nanoseconds(snapshot.source.taken) if snapshot.source.taken else None

    def key(row: int) -> tuple[bool, bool, bool, int, int, int, str, int]:
        has_node, known = bool(pods.node[row] >= 0), pods.creation_time(row)
        created = LATEST if known is None else known
        is_ready = reports_ready(pods.statuses[row].conditions)
        return (
            has_node,
            is_ready or pods.phases[row] != "Pending",
            is_ready,
            0 if is_job else _deletion_cost(pods, row),
            -here[int(pods.node[row])] if has_node else 0,
            -created if now is None else math.floor(math.log2(max(now - created, 0.5))),
            "" if now is None or known is None else pods.uids[row],
            -row,
        )

    return sorted(rows, key=key)


def _deletion_cost(pods: PodTable, row: int) -> int:
    text = pods.annotations[row].get(DELETION_COST, "0")
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,10}", text) else 0


def ordinal_of(name: str) -> int:
    """Return the ordinal of a StatefulSet's pod, from its name."""
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def why_surplus(snapshot: Snapshot, pod: Pod) -> str:
    """Return why the pod's controller creates no other pod, such as `is scaled to 0`; empty if it creates one, or if
    the snapshot does not show it."""
    owner = pod.metadata.controller
    raw = None if owner is None else snapshot.workloads.get((owner.kind, pod.metadata.namespace, owner.name))
    if owner is None or raw is None:
        return ""
    controller = stored_controller(raw)
    first, replicas = controller.spec.first_ordinal, controller.spec.replicas
    if controller.metadata.deletion_timestamp:
        return "is being deleted"
    if owner.kind == "Job" and controller.spec.suspend:
        return "is suspended"
    number = 1 if replicas is None else replicas
    ordinal = ordinal_of(pod.metadata.name) if owner.kind == "StatefulSet" else first
    if number and ordinal < first:
        return f"starts with ordinal {first}"
    return f"is scaled to {number}" if not number or ordinal >= first + number else ""


def other_replicas(snapshot: Snapshot, pod: Pod) -> list[int] | None:
    """Return the rows of the active pods of the pod's ReplicaSet if these are all that it wants; otherwise, None."""
    owner, pods = pod.metadata.controller, snapshot.pods
    stored = snapshot.controller_of(pod, "ReplicaSet", "ReplicationController")
    if stored is None or owner is None:
        return None
    members = member_rows(snapshot, Workload(owner.kind, pod.metadata.namespace, owner.name))
    rows, wanted = [row for row in members if not pods.deletion_timestamps[row]], stored.spec.replicas
    return rows if len(rows) >= (1 if wanted is None else wanted) else None


_OWNERS = Memo[Owners]()


def owners_in(snapshot: Snapshot) -> Owners:
    """Return the owners, which are computed once for a snapshot."""
    return _OWNERS.of(snapshot.derived, lambda: Owners(snapshot))


def member_rows(snapshot: Snapshot, workload: Workload) -> list[int]:
    """Return the rows of the workload's pods that have not finished."""
    return owners_in(snapshot).members(snapshot.pods, workload)


def current_replica_set_of(snapshot: Snapshot, manifest: Manifest) -> dict[str, object] | None:
    """Return the cluster's ReplicaSet with a Deployment's template; None for other kinds and for a new template."""
    if manifest.get("kind") != "Deployment":
        return None
    return current_replica_set(manifest, replica_sets(snapshot, workload_of(manifest)))


def replica_sets(snapshot: Snapshot, deployment: Workload) -> list[dict[str, object]]:
    """Return the stored ReplicaSets of a Deployment, newest first; the placeholder of a new Deployment has no pod spec
    and is left out."""
    owned = snapshot.replica_sets_of(deployment.namespace, deployment.name)
    manifests = (msgspec.json.decode(raw, type=dict[str, object]) for raw in owned)
    return newest_first(item for item in manifests if map_at(item, "spec", "template", "spec"))


def is_controlled_by(snapshot: Snapshot, row: int, name: str) -> bool:
    """Return whether the controller of a pod, given by its row, has this name."""
    return any(owner.controller and owner.name == name for owner in snapshot.pods.owners[row])


def replica_sets_of(snapshot: Snapshot, workload: Workload) -> Iterator[tuple[ObjectMeta, bytes]]:
    """Yield the stored ReplicaSets of a Deployment."""
    is_deployment = workload.kind == "Deployment"
    for raw in snapshot.replica_sets_of(workload.namespace, workload.name) if is_deployment else ():
        metadata = stored_metadata(raw)
        owner = metadata.controller
        if owner is not None and (owner.kind, owner.name) == (workload.kind, workload.name):
            yield metadata, raw


def with_dependents(snapshot: Snapshot, workload: Workload) -> list[Workload]:
    """Return a workload and the stored workloads that it owns, such as the Jobs of a CronJob: the garbage collector
    deletes them with it."""
    owned = group_pairs(
        ((owner.kind, owner.name), Workload(kind, namespace, name))
        for (kind, namespace, name), raw in snapshot.workloads.items()
        if namespace == workload.namespace
        for owner in stored_metadata(raw).owner_references
    )
    found = {workload: None}
    left = [workload]
    while left:
        above = left.pop()
        new = [its for its in owned.get((above.kind, above.name), ()) if its not in found]
        found.update(dict.fromkeys(new))
        left += new
    return [*found]


def controlling_custom_resource(snapshot: Snapshot, manifest: Manifest) -> dict[str, object] | None:
    """Return the custom resource whose controller created an object, such as the JobSet of a Job."""
    owners = stored_metadata(msgspec.json.encode(manifest)).owner_references
    owner = controller_of(owners)
    if owner is None:
        return None
    key = f"{owner.kind}.{owner.api_version.partition('/')[0]}"
    raw = snapshot.custom_resources.get((key, workload_of(manifest).namespace, owner.name))
    return None if raw is None else cast("dict[str, object]", msgspec.json.decode(raw))


def stored_manifest(snapshot: Snapshot, workload: Workload) -> dict[str, object] | None:
    """The same as `Snapshot.manifest_of`; a Deployment that the snapshot lacks has the template of its newest
    ReplicaSet."""
    manifest = snapshot.manifest_of(workload)
    if manifest is not None or workload.kind != "Deployment":
        return manifest
    owned = replica_sets(snapshot, workload)
    return deployment_of(workload.name, owned) if owned else None


def workload_of(manifest: Manifest) -> Workload:
    """Return the workload of a manifest with a namespace."""
    metadata = map_at(manifest, "metadata")
    namespace = str(metadata.get("namespace") or "default")
    name = metadata.get("name") or metadata.get("generateName") or ""
    return Workload(qualified_kind(manifest), namespace, str(name))


def title(manifest: Manifest) -> str:
    metadata = map_at(manifest, "metadata")
    return f"{manifest.get('kind')} {metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}"


def makes_pods(kind: str) -> bool:
    """Whether the kind creates pods; a pod counts as its own workload."""
    return kind == "Pod" or kind in MAKING_PODS


def is_namespaced(manifest: Manifest) -> bool:
    """Whether the kind has namespaces, as far as known; for kinds that are not read, the result does not matter."""
    kind = KINDS.get(str(manifest.get("kind")))
    return kind is None or kind.is_namespaced


def require_scalable(kind: str) -> None:
    """Raise `InputError` for a kind without a number of replicas."""
    if kind not in SCALED:
        raise InputError(f'"{kind}" does not scale', hint=f"kinds that do: {', '.join(SCALED)}")


def complete_manifest(manifest: Manifest, known: Manifest | None, running: int) -> Manifest:
    """Return the manifest with the fields that the API server keeps when it is applied: status, identity, and replicas
    that it does not mention; null removes them, which means 1."""
    stored = dict(manifest)
    if known is not None:
        stored["metadata"] = {**map_at(known, "metadata"), **map_at(manifest, "metadata")}
        if "status" in known:
            stored.setdefault("status", known["status"])
    if manifest.get("kind") in ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController"):
        if has_replica_count(manifest):
            return stored
        if "replicas" in map_at(manifest, "spec"):
            return with_replicas(stored, 1)
        if known is not None and has_replica_count(known):
            return with_replicas(stored, wanted_replicas(known))
        return with_replicas(stored, running or 1)
    return stored


# The existing pods of a custom resource, when a manifest of it is applied.

_REPLACED_BY_ITS_CONTROLLER = "only its controller knows how it replaces the pods of the previous template"


class StandingPods(Struct, frozen=True, kw_only=True):
    """The existing pods of a custom resource of which a manifest is applied; numbers are rows."""

    stay: Mapping[str, Sequence[int]] = {}  # the pods that stay, by the path of their template
    surplus: Sequence[int] = ()
    is_replaced: bool = False  # whether they are all surplus, because the applied template differs from theirs

    @property
    def undecided_reason(self) -> str:
        return _REPLACED_BY_ITS_CONTROLLER if self.is_replaced else ""


def standing_pods(snapshot: Snapshot, pods: PodTable, manifest: Manifest) -> StandingPods:
    """Return the unfinished pods of a custom resource. `snapshot` has the resource as it was before. Of several
    templates, a pod's is the first that lacks pods and has its containers with their requests, else any that lacks
    pods."""
    workload = workload_of(manifest)
    kind, group = kind_and_group(manifest)
    inside = pods.in_namespace(workload.namespace)
    inside &= ~pods.finished
    inside &= pods.owners.where(lambda owners: _is_below(snapshot, owners, workload))
    left = deletion_order(snapshot, workload, inside.nonzero()[0].tolist())[::-1]
    if not left:
        return StandingPods()
    raw = snapshot.custom_resources.get((f"{kind}.{group}", workload.namespace, workload.name))
    before = {} if raw is None else {pod.path: pod.manifest for pod in foreign_pods(msgspec.json.decode(raw))}
    templates = foreign_pods(manifest)
    if any(pod.path in before and not has_template(before[pod.path], pod.manifest) for pod in templates):
        return StandingPods(surplus=left, is_replaced=True)
    stay: dict[str, list[int]] = {pod.path: [] for pod in templates}
    for is_strict in (True, False):
        for pod in templates:
            own = _container_requests(decode(msgspec.json.encode(pod.manifest["spec"]), PodSpec))
            alike = [row for row in left if own.items() <= _container_requests(pods.specs[row]).items()]
            lacks = (1 if pod.count.number is None else pod.count.number) - len(stay[pod.path])
            stay[pod.path] += (alike if is_strict else left)[: max(lacks, 0)]
            left = [row for row in left if row not in stay[pod.path]]
    return StandingPods(stay=stay, surplus=left)


def _is_below(snapshot: Snapshot, owners: Iterable[OwnerReference], workload: Workload) -> bool:
    """Whether one of the owners is the custom resource, or a workload that it controls."""
    for owner in owners:
        kind = qualified_kind({"kind": owner.kind, "apiVersion": owner.api_version})
        if owner.controller and (kind, owner.name) == (workload.kind, workload.name):
            return True
        raw = snapshot.workloads.get((owner.kind, workload.namespace, owner.name)) if owner.controller else None
        if raw is not None and _is_below(snapshot, stored_metadata(raw).owner_references, workload):
            return True
    return False


def _container_requests(spec: PodSpec) -> dict[str, dict[str, int]]:
    return {
        container.name: {name: value(quantity) for name, quantity in (container.resources.requests or {}).items()}
        for container in spec.containers
    }
