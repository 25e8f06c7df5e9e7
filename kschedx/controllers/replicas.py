"""New pods of a controller that ResourceQuotas and LimitRanges let in, one after the other."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers import workloads
from kschedx.controllers.daemon_sets import daemons_on, home_node, no_longer, pods_for
from kschedx.controllers.update_strategy import (
    NEXT,
    NoRollout,
    NoRolloutReason,
    RollingUpdate,
    Rollout,
    StatefulSetUpdate,
    UpdateStrategy,
    strategy_of,
)
from kschedx.controllers.workloads import Owners, Workload, copy_pod, deletion_order, rename_pod
from kschedx.errors import InputError, NotAdmittedError
from kschedx.explain.admission import Ledger, counted, enforcing
from kschedx.explain.setup import Setup
from kschedx.explain.subject import admitted
from kschedx.kube.resource_quota import ResourceQuota, claim_not_created, maker_not_created, not_created
from kschedx.kube.storage import PersistentVolumeClaim, own_claims
from kschedx.kube.types import Node, Pod
from kschedx.kube.workloads import made_of
from kschedx.simulate.changes import Manifest
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.moving import MovingCluster
from kschedx.snapshot.snapshot import Snapshot


class AdmittedPods(Struct, frozen=True, kw_only=True):
    """What becomes of new pods that are alike."""

    snapshot: Snapshot
    """Without the claims that are refused, or whose pods are."""
    made: tuple[Pod, ...]
    refused: tuple[Pod, ...] = ()
    refusal: str = ""
    """Why the first of them is, in its controller's words."""
    claims: Mapping[str, tuple[str, str]] = {}
    """Pods that wait for an ephemeral volume's claim, to the claim and why it is refused."""


class RefusedReplicas(Struct, frozen=True, kw_only=True):
    """Replicas of a workload that never become pods."""

    workload: Workload
    number: int
    refusal: str
    """Why the first of them is refused, in its controller's words."""


def admit_pods(
    snapshot: Snapshot, quotas: Ledger, pods: Sequence[Pod], known: Mapping[str, PersistentVolumeClaim]
) -> AdmittedPods:
    """The quotas count what they let in. `snapshot` has the claims of the pods, `known` are those of before."""
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
            snapshot = _without(snapshot, [key])  # the pod is there, and waits for it
            waits[pod.key] = key, words
        if not refusal:
            words = quotas.take(pod)
            refusal = "" if words is None else not_created(pod, words)
        if refusal:
            others = pods[number:]
            left = _without(snapshot, (key for one in others for key in own_claims(one) if key not in known))
            made = tuple(pods[:number])
            return AdmittedPods(snapshot=left, made=made, refused=tuple(others), refusal=refusal, claims=waits)
    return AdmittedPods(snapshot=snapshot, made=tuple(pods), claims=waits)


def _without(snapshot: Snapshot, claims: Iterable[str]) -> Snapshot:
    storage, gone = snapshot.storage, frozenset(claims)
    if not gone:
        return snapshot
    left = {key: claim for key, claim in storage.claims.items() if key not in gone}
    return snapshot.with_storage(replace(storage, claims=left))


# A cluster whose pods are changed by hand: they are made, go, and give way to others as controllers see to it.


class WorkloadChanges:
    """What changes of pods come to; nothing is scheduled yet."""

    def __init__(self, snapshot: Snapshot, setup: Setup, *, recreate: bool, asked: Collection[Workload]) -> None:
        """`recreate`: controllers make anew what loses its node. A new template of the workloads that are `asked` about
        is not rolled out: whoever asks does that."""
        self.snapshot = snapshot
        self._setup = setup
        self._does_recreate = recreate
        self._asked = asked
        self.new: dict[str, None] = {}
        """`namespace/name` of pods that were made or wait anew, in their order."""
        self.rollouts: list[Rollout] = []
        """Those that are about to begin."""
        self.refused: dict[Workload, RefusedReplicas] = {}
        """Replicas that the API server does not take, whose controllers try again."""
        self._evicted: list[str] = []
        """Pods that lost their nodes, and wait."""
        self._gone: list[str] = []
        """Pods that went though nobody named them."""
        self._count_what_is_there()

    def _apply_maker(self, manifest: dict[str, object]) -> None:
        workload = workloads.workload_of(manifest)
        if workload.kind == "Pod":
            self._apply_pod(manifest, workload.key)
            return
        rows = Owners(self.snapshot).members(self.snapshot.pods, workload)
        before = workloads.manifest_of(self.snapshot, workload)
        is_new = workloads.has_new_template(self.snapshot, manifest)
        if is_new and workload.kind == "Job":
            hint = f"--delete job/{workload.name} first, and apply it then"
            raise InputError(f"the template of {workload.title} cannot be changed", hint=hint)
        if is_new and workload in self._asked and workload.kind != "DaemonSet":
            self._keep(workload, manifest)
            return
        wanted = workloads.wanted_replicas(manifest, before)
        if before is None and not rows and not self._lets_in(workload, manifest, wanted):
            return
        strategy = strategy_of(manifest, wanted, before) if rows and is_new else None
        if strategy == NoRollout(why=NoRolloutReason.PAUSED):
            self._set_replicas(workload, rows, wanted)  # with the template before
        self._keep(workload, manifest)
        if workload.kind == "DaemonSet":
            self._apply_daemon_set(workload, manifest, rows, before if is_new else None)
        elif strategy is not None:
            self._replace(workload, manifest, strategy, [self.snapshot.pods.key(row) for row in rows], wanted)
        else:
            self._set_replicas(workload, rows, wanted)

    def _lets_in(self, workload: Workload, manifest: dict[str, object], wanted: int) -> bool:
        """Whether quotas take a new workload, and the ReplicaSet that stands for a Deployment; they count what they
        take."""
        if not any(quota.metadata.namespace == workload.namespace for quota in self.snapshot.of(ResourceQuota)):
            return True
        quotas = Ledger(self.snapshot, self._setup.release)
        refusal = quotas.take(counted(workload.kind, workload.namespace, workload.name))
        if refusal is None:
            for other in made_of(manifest).others:
                if other.get("kind") == "ReplicaSet" and refusal is None:
                    maker = counted("ReplicaSet", workload.namespace, workloads.name_of(other))
                    words = quotas.take(maker)
                    refusal = None if words is None else maker_not_created(maker, words)
            self._keep(workload, manifest)
        self.snapshot = quotas.on(self.snapshot)
        if refusal is None:
            return True
        if workload.kind == "DaemonSet":
            wanted = len(pods_for(self.snapshot, self._setup, manifest, lambda _: True)[1])
        self.refused[workload] = RefusedReplicas(workload=workload, number=wanted, refusal=refusal)
        return False

    def _apply_pod(self, manifest: Manifest, key: str) -> None:
        if key in self.snapshot.pods.rows:
            self._drop([self.snapshot.pods.rows[key]])
        subject = admitted(self.snapshot, manifest, self._setup)
        self.snapshot = subject.snapshot
        self._count([subject.pod], came=True)
        self._add([subject.pod])

    def _set_replicas(self, workload: Workload, rows: Sequence[int], replicas: int) -> None:
        self.refused.pop(workload, None)
        if len(rows) > replicas:
            self._drop(deletion_order(self.snapshot, workload, rows)[: len(rows) - replicas])
        else:
            self._add_replicas(workload, rows, replicas - len(rows))

    def _add_replicas(self, workload: Workload, rows: Sequence[int], count: int) -> None:
        snapshot, pods = self.snapshot, self.snapshot.pods
        manifest = workloads.manifest_of(snapshot, workload)
        known = snapshot.storage.claims
        made: list[Pod] = []
        if manifest is not None:
            taken = [pods.names[row] for row in rows]
            try:
                self.snapshot, made = workloads.new_pods(snapshot, self._setup, manifest, count, taken)
            except NotAdmittedError as error:
                self.refused[workload] = RefusedReplicas(workload=workload, number=count, refusal=error.message)
                return
        elif rows:
            self.snapshot, made = copy_pod(snapshot, pods[rows[-1]], count)
        self._add(self._allowed(workload, made, known))

    def _apply_daemon_set(
        self, workload: Workload, manifest: Manifest, rows: Sequence[int], before: Manifest | None
    ) -> None:
        """`before` is the manifest with the other template that pods in these rows have."""
        homes = {home_node(self.snapshot.pods, row): self.snapshot.pods.key(row) for row in rows}
        known = self.snapshot.storage.claims
        self.snapshot, made = pods_for(self.snapshot, self._setup, manifest, lambda name: name not in homes)
        self._add(self._allowed(workload, made, known))
        if before is None or not rows:
            return
        unwanted = [*no_longer(self.snapshot, self._setup, manifest, homes)]
        self._lose([self.snapshot.pods.rows[homes.pop(name)] for name in unwanted])
        strategy = strategy_of(manifest, len(homes) + len(made), before)
        new: list[Pod] = []
        if not isinstance(strategy, NoRollout):
            self.snapshot, new = pods_for(self.snapshot, self._setup, manifest, homes.__contains__)
        self._begin(workload, strategy, homes.values(), new)

    def _replace(
        self, workload: Workload, manifest: Manifest, strategy: UpdateStrategy, old: Sequence[str], wanted: int
    ) -> None:
        """Who has too few or too many pods gets or loses some first; a Deployment's rollout does that by itself."""
        pods = self.snapshot.pods
        if isinstance(strategy, RollingUpdate):
            taken = [pods.names[pods.rows[key]] for key in old]
            self.snapshot, new = workloads.new_pods(self.snapshot, self._setup, manifest, wanted, taken)
            self._begin(workload, strategy, old, new)
            return
        self._set_replicas(workload, [pods.rows[key] for key in old], wanted)
        old = [key for key in old if key in self.snapshot.pods.rows]
        successors: list[Pod] = []
        if isinstance(strategy, StatefulSetUpdate):
            self.snapshot, new = workloads.new_pods(self.snapshot, self._setup, manifest, wanted)
            replaced = {key for key in old if workloads.ordinal_of(key) >= strategy.partition}
            successors = [rename_pod(one, f"{one.metadata.name}{NEXT}") for one in new if one.key in replaced]
        self._begin(workload, strategy, old, successors)

    def _begin(self, workload: Workload, strategy: UpdateStrategy, old: Iterable[str], new: Sequence[Pod]) -> None:
        self._add(new)
        keys = tuple(one.key for one in new)
        self.rollouts.append(Rollout(workload=workload, strategy=strategy, old=tuple(old), new=keys))

    def _keep(self, workload: Workload, manifest: Manifest) -> None:
        raw = msgspec.json.encode(manifest)
        key = (workload.kind, workload.namespace, workload.name)
        self.snapshot = replace(self.snapshot, workloads={**self.snapshot.workloads, key: raw})

    def _add(self, pods: Sequence[Pod]) -> None:
        self.snapshot = with_pods(self.snapshot, pods)
        self.new |= dict.fromkeys(pod.key for pod in pods)

    def _allowed(
        self, workload: Workload, made: Sequence[Pod], known: Mapping[str, PersistentVolumeClaim]
    ) -> Sequence[Pod]:
        """Those of new pods that quotas let in, which count them from now on. `known` are the claims of before."""
        if not self._is_ruled(made):
            return made
        quotas = Ledger(self.snapshot, self._setup.release)
        found = admit_pods(self.snapshot, quotas, made, known)
        self.snapshot = quotas.on(found.snapshot)
        if found.refused:
            number = len(found.refused)
            self.refused[workload] = RefusedReplicas(workload=workload, number=number, refusal=found.refusal)
        return found.made

    def _add_daemons_on(self, nodes: Sequence[Node]) -> None:
        """DaemonSets' pods run on nodes that have been added."""
        known = self.snapshot.storage.claims
        self.snapshot, made = daemons_on(self.snapshot, self._setup, nodes)
        pods = self._allowed_daemons(made, known)
        if pods:
            self.snapshot = with_pods(self.snapshot, pods)

    def _allowed_daemons(self, made: Iterable[Pod], known: Mapping[str, PersistentVolumeClaim]) -> list[Pod]:
        """As `_allowed`, of pods of several DaemonSets."""
        of_workload: dict[Workload, list[Pod]] = {}
        for pod in made:
            owner = pod.metadata.controller
            name = pod.metadata.name if owner is None else owner.name
            of_workload.setdefault(Workload("DaemonSet", pod.metadata.namespace, name), []).append(pod)
        return [pod for workload, its in of_workload.items() for pod in self._allowed(workload, its, known)]

    def _count_what_is_there(self) -> None:
        """In quotas that nobody has looked at yet: before there are pods that nobody has made, and claims that may be
        refused."""
        if self.snapshot.of(ResourceQuota):
            self.snapshot = Ledger(self.snapshot, self._setup.release).on(self.snapshot)

    def _count(self, pods: Sequence[Pod], *, came: bool) -> None:
        """Quotas count pods that nobody refuses, or count them no more."""
        if self._is_ruled(pods):
            quotas = Ledger(self.snapshot, self._setup.release)
            for pod in pods:
                if came:
                    quotas.take(pod)
                else:
                    quotas.give(pod)
            self.snapshot = quotas.on(self.snapshot)

    def _discount(self, workload: Workload) -> None:
        """Quotas count a workload no more."""
        if self.snapshot.of(ResourceQuota):
            quotas = Ledger(self.snapshot, self._setup.release)
            quotas.give(counted(workload.kind, workload.namespace, workload.name))
            self.snapshot = quotas.on(self.snapshot)

    def _is_ruled(self, pods: Iterable[Pod]) -> bool:
        ruled = {quota.metadata.namespace for quota in self.snapshot.of(ResourceQuota)}
        ruled |= {*self.snapshot.limit_ranges, *enforcing(self.snapshot, self._setup.release)}
        return bool(ruled) and any(pod.metadata.namespace in ruled for pod in pods)

    def _try_again(self) -> None:
        """Replicas that were refused, where there may be room now."""
        for workload, refused in tuple(self.refused.items()):
            rows = Owners(self.snapshot).members(self.snapshot.pods, workload)
            if rows and workload.kind != "DaemonSet":
                self._set_replicas(workload, rows, len(rows) + refused.number)

    def _drop(self, rows: Iterable[int]) -> None:
        rows = [*rows]
        if self.snapshot.of(ResourceQuota):
            self._count([self.snapshot.pods[row] for row in rows], came=False)
        kept = np.ones(len(self.snapshot.pods), dtype=np.bool_)
        kept[rows] = False
        self.snapshot = with_only_pods(self.snapshot, np.flatnonzero(kept))

    def _lose(self, rows: Sequence[int]) -> None:
        """Pods go that somebody might have counted on."""
        if rows:
            self._gone += map(self.snapshot.pods.key, rows)
            self._drop(rows)

    def _recreate(self, rows: Sequence[int]) -> None:
        """Pods that their controllers make anew: they wait, under their old names."""
        if not self._does_recreate:
            self._lose(rows)
            return
        moving = MovingCluster(self.snapshot)
        for row in rows:
            if moving.pods.node[row] >= 0:
                moving.remove(row, waits=True)
                self.new[moving.pods.key(row)] = None
                self._evicted.append(moving.pods.key(row))
        self.snapshot = moving.frozen()
