"""The workload controllers on a moving cluster: they create and delete pods until every workload matches its manifest,
or until something prevents it.

One `Manager` is what `why FILE`, `simulate`, and `drain` assume about controllers. It carries out the decisions of
`deployment`, `stateful_set`, and `daemon_set`. It syncs only workloads that a change or an eviction concerns; all
others stay as they were read.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Protocol

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.apiserver.resource_quota import New, owner_create_error_text
from kschedx.controllers import daemon_set, deployment, stateful_set, workloads
from kschedx.controllers.daemon_set import home_node, nodes_of_daemon_set, pods_for
from kschedx.controllers.deployment import (
    DaemonSetUpdate,
    DeploymentStrategy,
    NoRollout,
    StatefulSetUpdate,
    UpdateStrategy,
    strategy_of,
)
from kschedx.controllers.rollouts import Rollout
from kschedx.controllers.stateful_set import AdmittedPods, RefusedReplicas, admit_pods
from kschedx.controllers.workloads import Owners, Workload
from kschedx.errors import InputError, NotAdmittedError, NotReadError, Place
from kschedx.explain.admission import QuotaLedger, charged_object, enforcing_namespaces, quotas_of
from kschedx.explain.setup import Setup
from kschedx.grouping import group_pairs
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import with_spec
from kschedx.kube.types import Pod
from kschedx.kube.workloads import (
    GENERATION_OF_TEMPLATE,
    REVISION_HASH,
    TEMPLATE_GENERATION,
    contains,
    created_pod,
    has_same_template,
)
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

_FEW_PODS = 10_000  # the number of pods that may be created even if the nodes do not allow them
OF_CONTROLLERS = ("StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController")
"""The kinds of workloads whose evicted pods `Manager.recreate` may take over."""


class _ControlledCluster(Protocol):
    """A moving cluster as controllers read and change it."""

    @property
    def snapshot(self) -> Snapshot:
        """The current cluster, as a value."""
        ...

    @property
    def pods(self) -> PodTable: ...

    @property
    def workloads(self) -> Mapping[tuple[str, str, str], bytes]:
        """The manifests of `snapshot`, available without computing it."""
        ...

    @property
    def deleted(self) -> AbstractSet[int]:
        """Rows of permanently deleted pods."""
        ...

    def is_available(self, row: int) -> bool:
        """Whether the pod runs and is ready."""
        ...

    def create(self, cluster: Snapshot, pods: Sequence[Pod]) -> list[int]:
        """Create pods and return their rows. They are pending unless they name their node. `cluster` is `snapshot` with
        the objects that are created for them."""
        ...

    def delete(self, row: int) -> None: ...

    def put(self, snapshot: Snapshot) -> None:
        """Replace objects other than pods, nodes, and storage with those of `snapshot`."""
        ...


class _ManagedWorkload(Struct, kw_only=True):
    """A workload whose controller may have something to do."""

    workload: Workload
    outdated: set[int] = field(default_factory=set)  # rows of pods
    before: Manifest | None = None  # the manifest with the older template
    scaled_from: DeploymentStrategy | None = None
    """A Deployment before its number of replicas changed; kept until its controller has scaled it."""
    count: int | None = None  # replicas of a workload whose manifest is unknown
    template: Pod | None = None  # the pod of the template, if it was admitted before
    base: Pod | None = None  # the pod of the template, once it is admitted here
    rollout: Rollout | None = None
    replaced_rows: set[int] = field(default_factory=set)
    terminating: set[int] = field(default_factory=set)
    """Rows of pods that its controller has deleted, and whose deletion no kubelet confirms."""
    created: list[int] = field(default_factory=list)
    refused: int = 0  # pods of a Deployment's new ReplicaSet that the API server refuses; the Deployment counts them


class State(Struct, kw_only=True):
    managed: dict[Workload, _ManagedWorkload]
    ended: list[Rollout]
    refused: dict[Workload, RefusedReplicas]


class Manager:
    """The controllers of the workloads that changes or evictions concern."""

    def __init__(
        self,
        cluster: _ControlledCluster,
        setup: Setup,
        *,
        known: Mapping[Workload, Manifest] = {},
        held: Collection[Workload] = (),
    ) -> None:
        """`known` are earlier manifests of workloads whose newer manifests the cluster has already. The controllers of
        workloads that are `held` do nothing."""
        self._held = held
        self._cluster = cluster
        self._setup = setup
        self._known = known
        self._managed: dict[Workload, _ManagedWorkload] = {}
        self._owners: tuple[object, Owners] | None = None
        self._ended: list[Rollout] = []
        self._ended_rows: list[set[int]] = []
        self.refused: dict[Workload, RefusedReplicas] = {}
        self.open_counts: dict[Workload, str] = {}
        """Custom resources that may have more pods than are here, or pods that need more, and why."""
        self.unread: dict[Workload, NotReadError] = {}
        """Workloads whose pods cannot be created without a kind that was not read."""
        self.refused_claims: dict[str, tuple[str, str]] = {}
        """Pods that are pending because the API server refuses a claim; the value is the claim and the reason."""
        self.choices: dict[str, None] = {}  # choices that controllers make at random, or by times that are unknown here
        self.left_nodes: list[int] = []  # rows of pods on nodes that their DaemonSets no longer allow

    # --- state

    @property
    def rollouts(self) -> list[Rollout]:
        """The current state of all rollouts, in the order in which they began, except undecided ones."""
        current = (managed.rollout for managed in self._managed.values() if managed.workload not in self.unread)
        return [*self._ended, *(rollout for rollout in current if rollout is not None)]

    @property
    def is_rolling_out(self) -> bool:
        return any(managed.rollout is not None for managed in self._managed.values())

    def rollout_rows(self) -> list[set[int]]:
        """Return the rows of the pods that each rollout created."""
        return [{*state.created} for state in self._managed.values() if state.rollout is not None] + self._ended_rows

    def rollout_of(self, workload: Workload) -> Rollout | None:
        managed = self._managed.get(workload)
        return None if managed is None else managed.rollout

    def outdated_rows(self, workload: Workload) -> list[int]:
        """Return the rows of the workload's pods that still have an older template."""
        managed = self._managed.get(workload)
        return [] if managed is None else sorted(managed.outdated - self._cluster.deleted)

    def members(self, workload: Workload) -> list[int]:
        """Return the rows of the workload's pods that have not finished."""
        return self.owners.members(self._cluster.pods, workload)

    def counted(self, workload: Workload) -> list[int]:
        """Return the members without terminating pods that their controller has already replaced."""
        return self.members(workload) if workload.kind in workloads.KEEPING_NAMES else self._active(workload)

    def workload_of(self, row: int) -> Workload:
        return self.owners.of(self._cluster.pods, row)

    @property
    def owners(self) -> Owners:
        """The workloads of pods, according to the stored manifests."""
        stored = self._cluster.workloads
        if self._owners is None or self._owners[0] is not stored:
            self._owners = stored, Owners(self._cluster.snapshot)
        return self._owners[1]

    def save(self) -> State:
        return copy.deepcopy(State(managed=self._managed, ended=self._ended, refused=self.refused))

    def restore(self, state: State) -> None:
        state = copy.deepcopy(state)
        self._managed, self._ended, self.refused = state.managed, state.ended, state.refused

    def end_rollouts(self) -> None:
        """End the rollouts that are complete before another change begins. The others continue with it."""
        for managed in self._managed.values():
            if managed.rollout is None or managed.rollout.is_done:
                self._end(managed)

    def _end(self, managed: _ManagedWorkload) -> None:
        """Keep a rollout that is complete, and the pods of one that another replaces."""
        if managed.rollout is not None:
            self._ended += [managed.rollout] if managed.rollout.is_done else []
            self._ended_rows.append({*managed.created})
        managed.rollout, managed.created = None, []

    # --- changes

    def apply(self, manifest: Manifest, *, template_pod: Pod | None = None) -> None:
        """Store a workload's manifest; its controller acts on it from the next sync on. `template_pod` is its
        template's pod, if that was admitted before. Raises `InputError`."""
        workload = workloads.workload_of(manifest)
        known = self._known.get(workload) or workloads.stored_manifest(self._cluster.snapshot, workload)
        rows = [] if workload.kind == "CronJob" else self._active(workload)
        is_new = known is not None and (not has_same_template(known, manifest) or self._is_resumed(known, manifest))
        manifest = workloads.complete_manifest(manifest, known, len(rows))
        wanted = workloads.wanted_replicas(manifest)
        if known is None and not rows and not self._are_objects_admitted(workload, manifest, wanted):
            return
        if workload in self._held or deployment.owner_of(manifest):
            self.keep_manifest(workload, manifest)
            return
        if known is not None and not is_new and contains(known.get("spec"), manifest.get("spec")):
            self.keep_manifest(workload, manifest)
            if self._has_every_pod(workload, manifest, rows):
                return
        managed = self._manage(workload, known)
        managed.base = None
        managed.template = None if workload.kind == "StatefulSet" else template_pod
        self.keep_manifest(workload, manifest)
        if is_new:
            managed.before = known
            rows = self._with_awaited(workload, manifest)
            managed.outdated = {*self.counted(workload), *rows} - self._with_template(workload, manifest)
        if workload.kind == "Deployment" and known is not None:
            managed.scaled_from = DeploymentStrategy.of(known, workloads.wanted_replicas(known))
        if bool(rows) if is_new else managed.rollout is not None:
            self._begin(managed, strategy_of(manifest, max(wanted, 0), known), continues=not is_new)

    def scale(self, workload: Workload, replicas: int) -> None:
        """Set the number of replicas. Raises `InputError`."""
        manifest = self._cluster.snapshot.manifest_of(workload)
        if manifest is not None and (owner := deployment.owner_of(manifest)):
            raise InputError(f"{workload.title} belongs to {owner}, which sets its replicas", hint=f"scale {owner}")
        if manifest is not None:
            self.apply(workloads.with_replicas(manifest, replicas))
        else:
            self._manage(workload, None).count = replicas

    def forget(self, workload: Workload) -> None:
        """Stop managing a deleted workload."""
        self._managed.pop(workload, None)
        self.refused.pop(workload, None)

    def release(self, row: int) -> None:
        """Continue the rollout of a Deployment with strategy Recreate that may have waited for a terminating pod."""
        workload = self.workload_of(row)
        manifest = self._cluster.snapshot.manifest_of(workload) if workload.kind == "Deployment" else None
        if manifest is not None and DeploymentStrategy.of(manifest, 1).is_recreate and workload not in self._held:
            self._manage(workload, manifest)

    def recreate(self, row: int) -> bool:
        """Take over an evicted pod if its controller does not recreate it at once or with the same template. Returns
        False for a pod that is recreated unchanged."""
        workload = self.workload_of(row)
        if workload.kind not in OF_CONTROLLERS:
            return False
        manifest = self._cluster.snapshot.manifest_of(workload)
        if manifest is None:
            return False
        is_known = workload in self._managed
        managed = self._manage(workload, manifest)
        is_outdated = row in managed.outdated
        if self._cluster.pods.deletion_timestamps[row]:
            return True
        if workload.kind == "StatefulSet":
            spec = stateful_set.spec_of(manifest, None)
            ordinal = workloads.ordinal_of(self._cluster.pods.names[row])
            waits = stateful_set.blocking_ordinal(spec, self._ordinals(managed), ordinal) is not None
            is_outdated = (is_outdated and ordinal - spec.start >= spec.partition) or waits
        if not is_outdated and not is_known:
            del self._managed[workload]
        return is_outdated

    def create_rest(self, workload: Workload, count: int) -> None:
        """Create pods that the workload's controller creates only once others are ready."""
        manifest = (snapshot := self._cluster.snapshot).manifest_of(workload)
        if manifest is None:
            return
        new_pods: Sequence[Pod]
        managed = self._manage(workload, None)  # a ReplicaSet of a Deployment was left to that
        if workload.kind == "StatefulSet":
            pods = self._ordinals(managed)
            spec = stateful_set.spec_of(manifest, managed.before)
            lacks = [ordinal for ordinal in spec.ordinals if ordinal not in pods or not pods[ordinal].is_updated]
            cluster, new_pods = workloads.pods_of_ordinals(snapshot, self._setup, manifest, lacks[-count:])
        else:
            cluster, new_pods = self._more_of(managed, manifest, ())(snapshot, count)
        self._store(managed, cluster, new_pods)

    def resume(self, assigned: Iterable[int]) -> None:
        """Continue rollouts, and StatefulSets in order, of newly assigned pods."""
        for workload in dict.fromkeys(self.owners.workloads_of(self._cluster.pods, [*assigned])):
            if workload in self._managed or workload in self._held:
                continue
            manifest = self._cluster.snapshot.manifest_of(workload)
            if manifest is None or workload.kind not in ("Deployment", "StatefulSet", "DaemonSet"):
                continue
            is_short = len(self.members(workload)) < workloads.wanted_replicas(manifest)
            if not self._manage(workload, manifest).outdated and not (workload.kind == "StatefulSet" and is_short):
                del self._managed[workload]

    # --- syncs

    def sync(self, only: Workload | None = None) -> bool:
        """Sync every controller once, or that of one workload. Returns False if nothing changes."""
        moved = [self._sync(managed) for managed in [*self._managed.values()] if only in (None, managed.workload)]
        return any(moved)

    def _sync(self, managed: _ManagedWorkload) -> bool:
        workload = managed.workload
        self.refused.pop(workload, None)
        if managed.rollout is not None:
            managed.rollout.refusal = ""
        manifest = self._cluster.snapshot.manifest_of(workload)
        if manifest is None:
            has_moved = self._sync_count(managed, None, managed.count)
        elif workload.kind == "Deployment":
            has_moved = self._sync_deployment(managed, manifest)
        elif workload.kind == "StatefulSet":
            has_moved = self._sync_stateful_set(managed, manifest)
        elif workload.kind == "DaemonSet":
            has_moved = self._sync_daemon_set(managed, manifest)
        else:
            has_moved = self._sync_count(managed, manifest, workloads.parallel_replicas(manifest))
        self._measure(managed)
        return has_moved

    def _sync_count(self, managed: _ManagedWorkload, manifest: Manifest | None, wanted: int | None) -> bool:
        """Sync a ReplicaSet, ReplicationController, Job, or workload without a manifest here."""
        rows = self._active(managed.workload)
        return wanted is not None and self._resize(managed, rows, wanted, self._more_of(managed, manifest, rows))

    def _sync_deployment(self, managed: _ManagedWorkload, manifest: Manifest) -> bool:
        spec = DeploymentStrategy.of(manifest, workloads.wanted_replicas(manifest))
        rows = self._active(managed.workload)
        if spec.is_recreate and (kept := self._unconfirmed(managed)):
            leaving = [row for row in rows if row in managed.outdated and row not in kept]
            for row in leaving:
                self.delete_pod(row)
            return bool(leaving)  # oldPodsRunning in recreate.go: the new pods are created once these are gone
        new_rows = [row for row in rows if row not in managed.outdated]
        groups = group_pairs((self._owner(row), row) for row in rows if row in managed.outdated)
        old = [self._size(f"old/{name}", its) for name, its in groups.items()]
        exists = bool(new_rows) or not spec.is_paused or self._replica_set(manifest) is not None
        new = self._size("new", new_rows, refused=managed.refused) if exists else None
        sizes: deployment.Sizes = {}
        if managed.scaled_from is not None:
            before, managed.scaled_from = managed.scaled_from, None
            if before.replicas != spec.replicas:
                sizes = deployment.scale(spec, new, old, before)
        sizes = sizes or deployment.sync(spec, new, old)
        has_moved = False
        for name, size in sizes.items():
            if name != "new":
                its = groups[name.removeprefix("old/")]
                more = self._more_of(managed, None, its)
                has_moved |= self._resize(managed, its, size, more, is_outdated=True)
        if new is not None:
            size = sizes.get("new", new.replicas)
            has_moved |= self._resize(managed, new_rows, size, self._more_of(managed, manifest, new_rows))
            has_moved |= size != new.replicas
            managed.refused = 0
            if size > len(new_rows):
                now = sum(row not in managed.outdated for row in self._active(managed.workload))
                managed.refused = size - now
        return has_moved

    def _unconfirmed(self, managed: _ManagedWorkload) -> set[int]:
        """Return the rows of a Deployment's older pods whose deletion no kubelet confirms."""
        kept = {*filter(self._stays_terminating, managed.outdated - self._cluster.deleted)}
        self._keep(managed, kept)
        return kept

    def _keep(self, managed: _ManagedWorkload, rows: Iterable[int]) -> None:
        """Report the older pods for which a rollout waits."""
        if managed.rollout is not None:
            managed.rollout.kept = tuple(sorted(map(self._cluster.pods.key, rows)))

    def _report_unready(self, managed: _ManagedWorkload, ordinal: int | None, rows: Mapping[int, int]) -> None:
        """Report the pod for which the rollout of a StatefulSet waits, if there is one."""
        if managed.rollout is None:
            return
        managed.rollout.unready = managed.rollout.lost_node = ""
        if ordinal is not None:
            row, cluster = rows[ordinal], self._cluster.snapshot.cluster
            node = int(self._cluster.pods.node[row])
            managed.rollout.unready = self._cluster.pods.key(row)
            managed.rollout.lost_node = cluster.names[node] if node >= 0 and cluster.nodes[node].is_lost else ""

    def _delete_old(self, managed: _ManagedWorkload, row: int) -> None:
        """Delete a pod with a name or node of its own, which stays terminating if no kubelet confirms that."""
        if self._stays_terminating(row):
            managed.terminating.add(row)
        else:
            self.delete_pod(row)

    def _is_kept(self, managed: _ManagedWorkload, row: int) -> bool:
        """Return whether a pod is terminating and its deletion is not confirmed, so that it is not replaced."""
        is_terminating = row in managed.terminating or bool(self._cluster.pods.deletion_timestamps[row])
        return is_terminating and row not in self._cluster.deleted and self._stays_terminating(row)

    def _stays_terminating(self, row: int) -> bool:
        return workloads.stays_terminating(self._cluster.snapshot, self._cluster.pods, row)

    def _sync_stateful_set(self, managed: _ManagedWorkload, manifest: Manifest) -> bool:
        spec = stateful_set.spec_of(manifest, managed.before)
        rows = {workloads.ordinal_of(self._cluster.pods.names[row]): row for row in self.members(managed.workload)}
        step = stateful_set.sync(spec, self._ordinals(managed))
        for ordinal in step.delete:
            self._delete_old(managed, rows[ordinal])
        self._keep(managed, filter(partial(self._is_kept, managed), managed.outdated))
        self._report_unready(managed, None if step else stateful_set.first_unready(spec, self._ordinals(managed)), rows)
        has_moved = bool(step.delete)
        for ordinal in step.create:
            keeps = managed.before is not None and ordinal - spec.start < spec.partition
            template = managed.before if keeps and managed.before is not None else manifest

            def make(
                snapshot: Snapshot, manifest_template: Manifest = template, number: int = ordinal
            ) -> tuple[Snapshot, Sequence[Pod]]:
                return workloads.pods_of_ordinals(snapshot, self._setup, manifest_template, [number])

            if not self._create(managed, make, len(step.create), is_outdated=keeps):
                self._refuse_rest(managed, [later for later in spec.ordinals if later >= ordinal and later not in rows])
                break
            has_moved = True
        return has_moved

    def _sync_daemon_set(self, managed: _ManagedWorkload, manifest: Manifest) -> bool:
        pods, deleted = self._cluster.pods, self._cluster.deleted
        runs, continues_on = nodes_of_daemon_set(self._cluster.snapshot, self._setup, manifest)
        rows: dict[str, list[int]] = {name: [] for name in runs}
        stuck = dict[str, int]()  # nodes whose pod stays terminating
        has_moved = False
        for row in self.members(managed.workload):
            home = home_node(pods, row)
            if home not in continues_on and home in self._cluster.snapshot.cluster.index:
                self.left_nodes.append(row)
                self.delete_pod(row)
                has_moved = True
            elif self._is_kept(managed, row):
                stuck[home] = row
                rows.setdefault(home, [])
            elif row not in deleted:
                rows.setdefault(home, []).append(row)
        self._keep(managed, stuck.values())
        strategy = strategy_of(manifest, len(runs), managed.before or manifest)
        update = strategy if isinstance(strategy, DaemonSetUpdate) else None
        nodes: dict[str, dict[bool, int]] = {}  # the row of each node's old pod under True, of its new one under False
        for name, there in rows.items():
            kept = nodes[name] = {}
            for row in sorted(
                there, key=lambda row: (pods.node[row] < 0, pods.creation_timestamps[row] or "9999", row)
            ):
                if kept and (update is None or not update.surge or (row in managed.outdated) in kept):
                    self.delete_pod(row)
                    has_moved = True
                else:
                    kept[row in managed.outdated] = row
        states: dict[str, daemon_set.NodePods] = {}
        for name, its in nodes.items():
            old, new = (self._cluster.is_available(its[key]) if key in its else None for key in (True, False))
            states[name] = daemon_set.NodePods(old=old, new=new, is_terminating=name in stuck)
        step = daemon_set.sync(update, states)
        if update is not None and len(step.delete) + len(step.create) < sum(True in its for its in nodes.values()):
            self.choices[f"on which nodes {managed.workload.reference} is updated first"] = None
        for name in step.delete:
            self._delete_old(managed, nodes[name][True])
        create = {name for name in step.create if name in runs}
        lacks = {name for name in create if name not in nodes or not nodes[name]}

        def make(snapshot: Snapshot) -> tuple[Snapshot, Sequence[Pod]]:
            return pods_for(snapshot, self._setup, manifest, create.__contains__)

        created = bool(create) and self._create(managed, make, len(lacks) or len(create))
        return has_moved or bool(step.delete) or created

    # --- parts of a sync

    def _manage(self, workload: Workload, known: Manifest | None) -> _ManagedWorkload:
        managed = self._managed.get(workload)
        if managed is None:
            managed = self._managed[workload] = _ManagedWorkload(workload=workload)
            if known is not None:
                managed.outdated = self._behind(workload, known)
                if managed.outdated:
                    self._begin(managed, strategy_of(known, workloads.wanted_replicas(known), known))
        return managed

    def _begin(self, managed: _ManagedWorkload, strategy: UpdateStrategy, *, continues: bool = False) -> None:
        """Begin a rollout that replaces the outdated pods, or continue the present one with another strategy."""
        names, deleted = self._cluster.pods.names, self._cluster.deleted
        replaced = set() if isinstance(strategy, NoRollout) else managed.outdated - deleted
        if isinstance(strategy, StatefulSetUpdate):
            manifest = self._cluster.snapshot.manifest_of(managed.workload)
            least = strategy.partition + (0 if manifest is None else workloads.first_ordinal(manifest))
            replaced = {row for row in replaced if workloads.ordinal_of(names[row]) >= least}
        if continues:
            replaced |= managed.replaced_rows & deleted
        else:
            self._end(managed)
        managed.replaced_rows = replaced
        managed.rollout = Rollout(workload=managed.workload, strategy=strategy, old=len(replaced))

    def _measure(self, managed: _ManagedWorkload) -> None:
        rollout = managed.rollout
        if rollout is not None:
            node, deleted = self._cluster.pods.node, self._cluster.deleted
            rollout.replaced = len(managed.replaced_rows & deleted)
            new = {*managed.created, *self._active(managed.workload)} - managed.outdated
            rollout.waiting = sum(bool(node[row] < 0) and row not in deleted for row in new)

    def measure(self) -> None:
        """Update `rollouts` with the decisions of the queue."""
        for managed in self._managed.values():
            self._measure(managed)

    def _behind(self, workload: Workload, manifest: Manifest) -> set[int]:
        """Return the rows of pods that a rollout in progress still has to replace."""
        rows = self.counted(workload)
        if workload.kind == "Deployment":
            rows, current = self._with_awaited(workload, manifest), self._replica_set(manifest)
            is_new = current is None and any(workloads.replica_sets_of(self._cluster.snapshot, workload))
            awaited = {row for row in rows if is_new and self._cluster.pods.deletion_timestamps[row]}
            others = [row for row in rows if row not in awaited]
            newest = current or (self._newest(others) if others else "")
            return awaited | {row for row in others if self._owner(row) != newest}
        if workload.kind == "StatefulSet":
            key, updated = REVISION_HASH, map_at(manifest, "status").get("updateRevision")
        elif workload.kind == "DaemonSet":
            key, updated = (
                TEMPLATE_GENERATION,
                map_at(manifest, "metadata", "annotations").get(GENERATION_OF_TEMPLATE),
            )
        else:
            return set()
        labels = {row: self._cluster.pods.labels[row].get(key, "") for row in rows}
        return {row for row, label in labels.items() if updated and label and label != updated}

    def _with_awaited(self, workload: Workload, manifest: Manifest) -> list[int]:
        """Return the rows of pods that are not terminating, and of those for whose end strategy Recreate waits."""
        if not DeploymentStrategy.of(manifest, 1).is_recreate:
            return self._active(workload)
        stamps = self._cluster.pods.deletion_timestamps
        return [row for row in self.members(workload) if not stamps[row] or self._stays_terminating(row)]

    def _newest(self, rows: Sequence[int]) -> str:
        """Return the ReplicaSet of the youngest pod."""
        created = self._cluster.pods.creation_timestamps
        return self._owner(max(rows, key=lambda row: (created[row] or "9999", row)))

    def _with_template(self, workload: Workload, manifest: Manifest) -> set[int]:
        """Return the rows of pods that have the template already, as after a rollback."""
        if workload.kind != "Deployment":
            return set()
        current = self._replica_set(manifest)
        return {row for row in self.members(workload) if current is not None and self._owner(row) == current}

    def _is_resumed(self, known: Manifest, manifest: Manifest) -> bool:
        """Return whether a paused Deployment with a template that has not been rolled out resumes."""
        was_paused, is_paused = (map_at(each, "spec").get("paused") is True for each in (known, manifest))
        has_old = any(workloads.replica_sets_of(self._cluster.snapshot, workloads.workload_of(known)))
        return was_paused and not is_paused and has_old and self._replica_set(manifest) is None

    def _replica_set(self, manifest: Manifest) -> str | None:
        replica_set = workloads.current_replica_set_of(self._cluster.snapshot, manifest)
        return None if replica_set is None else workloads.name_of(replica_set)

    def _owner(self, row: int) -> str:
        return next((owner.name for owner in self._cluster.pods.owners[row] if owner.controller), "")

    def _size(self, name: str, rows: Sequence[int], *, refused: int = 0) -> deployment.ReplicaSetSize:
        created = [self._cluster.pods.creation_timestamps[row] or "" for row in rows]
        available = sum(map(self._cluster.is_available, rows))
        return deployment.ReplicaSetSize(
            name=name, replicas=len(rows) + refused, available=available, created=min(created, default="")
        )

    def _has_every_pod(self, workload: Workload, manifest: Manifest, rows: Sequence[int]) -> bool:
        if workload.kind != "DaemonSet":
            return len(rows) >= workloads.wanted_replicas(manifest)
        runs, continues_on = nodes_of_daemon_set(self._cluster.snapshot, self._setup, manifest)
        homes = {home_node(self._cluster.pods, row) for row in rows}
        return {*runs} <= homes and homes <= {*continues_on}

    def _active(self, workload: Workload) -> list[int]:
        """Return the rows of the workload's pods that are not terminating."""
        stamps = self._cluster.pods.deletion_timestamps
        return [row for row in self.members(workload) if not stamps[row]]

    def _ordinals(self, managed: _ManagedWorkload) -> dict[int, stateful_set.OrdinalPod]:
        pods = self._cluster.pods
        return {
            workloads.ordinal_of(pods.names[row]): stateful_set.OrdinalPod(
                is_available=self._cluster.is_available(row),
                is_updated=row not in managed.outdated,
                is_terminating=bool(pods.deletion_timestamps[row]) or row in managed.terminating,
            )
            for row in self.members(managed.workload)
        }

    def _more_of(
        self, managed: _ManagedWorkload, manifest: Manifest | None, rows: Sequence[int]
    ) -> Callable[[Snapshot, int], tuple[Snapshot, Sequence[Pod]]]:
        """Return a function that creates more pods of a manifest; without one, more copies of existing pods."""

        def make(snapshot: Snapshot, count: int) -> tuple[Snapshot, Sequence[Pod]]:
            if manifest is not None and managed.template is not None:
                make = workloads.copy_pod if managed.created or managed.rollout else workloads.one_or_copies
                return make(snapshot, managed.template, count)
            if manifest is not None:
                if managed.base is None:
                    snapshot, managed.base = workloads.template_pod(snapshot, self._setup, manifest)
                snapshot, pods = workloads.copy_pod(snapshot, managed.base, count)
                if node := managed.base.spec.node_name:  # of the template, which no kube-scheduler sees
                    pods = [with_spec(pod, node_name=node) for pod in pods]
                return snapshot, pods
            return workloads.copy_pod(snapshot, snapshot.pods[rows[-1]], count) if rows else (snapshot, [])

        return make

    def _resize(
        self,
        managed: _ManagedWorkload,
        rows: Sequence[int],
        size: int,
        make: Callable[[Snapshot, int], tuple[Snapshot, Sequence[Pod]]],
        *,
        is_outdated: bool = False,
    ) -> bool:
        """Scale a set of identical pods to its size. Returns False if nothing changes."""
        fewer = len(rows) - size
        if 0 < fewer < len(rows) and managed.workload.kind != "StatefulSet":
            self.choices[f"which pods of {managed.workload.reference} are deleted first"] = None
        if fewer > 0:
            related = self._active(managed.workload)
            for row in workloads.deletion_order(self._cluster.snapshot, managed.workload, rows, related)[:fewer]:
                self.delete_pod(row)
        if fewer >= 0:
            return fewer > 0
        return self._create(managed, lambda snapshot: make(snapshot, -fewer), -fewer, is_outdated=is_outdated)

    def _create(
        self,
        managed: _ManagedWorkload,
        make: Callable[[Snapshot], tuple[Snapshot, Sequence[Pod]]],
        count: int,
        *,
        is_outdated: bool = False,
    ) -> bool:
        """Create the pods that the API server admits. Returns False if it admits none. Raises `InputError` for more
        pods than all nodes together allow."""
        snapshot = self._cluster.snapshot
        allowed = int(snapshot.cluster.allowed_pods.sum())
        if count > max(allowed, _FEW_PODS):
            hint = "the others stay pending; scale to fewer replicas, or count with kschedx fit how many more fit"
            phrase = f"{count:,} more pods, but the {len(snapshot.cluster.nodes):,} nodes allow {allowed:,} pods in all"
            raise InputError(phrase, place=Place(object=managed.workload.title), hint=hint)
        try:
            cluster, new_pods = make(snapshot)
        except NotAdmittedError as error:
            self._refuse(managed, count, error.message)
            return False
        except NotReadError as error:
            self.unread[managed.workload] = error
            return False
        self.unread.pop(managed.workload, None)  # a later change may add what the dump lacks
        rows = self._store(managed, cluster, new_pods)
        if is_outdated:
            managed.outdated |= {*rows}
        return bool(rows) and self.workload_of(rows[0]) == managed.workload  # else each sync would create more

    def _store(self, managed: _ManagedWorkload, cluster: Snapshot, new_pods: Sequence[Pod]) -> Sequence[int]:
        """Create those of the pods that the API server admits, and return their rows."""
        pods = self._admit(cluster, new_pods, self._cluster.snapshot)
        if pods.refused:
            self._refuse(managed, len(pods.refused), pods.refusal, tuple(pod.key for pod in pods.refused))
        self.refused_claims |= pods.claims
        rows = self._cluster.create(pods.snapshot, pods.created) if pods.created else []
        managed.created += rows
        return rows

    def _refuse(self, managed: _ManagedWorkload, count: int, refusal: str, pods: tuple[str, ...] = ()) -> None:
        if managed.rollout is not None and managed.replaced_rows - self._cluster.deleted:
            managed.rollout.refusal = refusal
        else:
            workload = managed.workload
            refused = RefusedReplicas(workload=workload, number=count, refusal=refusal, pods=pods)
            self.refused[workload] = refused

    def _refuse_rest(self, managed: _ManagedWorkload, ordinals: Sequence[int]) -> None:
        """Count the remaining pods as refused: a StatefulSet's controller creates no pod after a refused one."""
        refused = self.refused.get(managed.workload)
        if refused is not None:
            pods = tuple(f"{managed.workload.key}-{ordinal}" for ordinal in ordinals)
            self.refused[managed.workload] = replace(refused, number=len(pods), pods=pods)

    def _admit(self, cluster: Snapshot, new_pods: Sequence[Pod], before: Snapshot) -> AdmittedPods:
        """The pods that ResourceQuotas, LimitRanges, and Pod Security admit, in a cluster whose quotas count them."""
        if not self._is_ruled(new_pods):
            return AdmittedPods(snapshot=cluster, created=new_pods)
        quotas = QuotaLedger(cluster, self._setup.release)
        pods = admit_pods(cluster, quotas, new_pods, before.storage.claims)
        return replace(pods, snapshot=quotas.apply_to(pods.snapshot))

    def add(self, workload: Workload, cluster: Snapshot, created: Sequence[Pod]) -> None:
        """Create the pods of a workload that the API server admits, outside of its syncs. `cluster` has the objects
        that are created for them."""
        pods = self._admit(cluster, created, self._cluster.snapshot)
        self._cluster.create(pods.snapshot, pods.created)
        if pods.refused:
            refused = RefusedReplicas(workload=workload, number=len(pods.refused), refusal=pods.refusal)
            self.refused[workload] = refused

    def _is_ruled(self, pods: Iterable[Pod]) -> bool:
        snapshot, quotas = self._cluster.snapshot, quotas_of(self._cluster.snapshot)
        ruled = {*snapshot.limit_ranges, *enforcing_namespaces(snapshot, self._setup.release)}
        spaces = {pod.metadata.namespace for pod in pods} if ruled or quotas else set()
        return not spaces.isdisjoint(ruled) or any(quota.covers(space) for quota in quotas for space in spaces)

    def delete_pod(self, row: int) -> None:
        """Delete a pod; quotas stop counting it."""
        self.update_quotas(gone=[self._cluster.pods[row]])
        self._cluster.delete(row)

    def update_quotas(self, *, came: Iterable[New] = (), gone: Iterable[New] = ()) -> None:
        """Let quotas count admitted objects, and stop counting deleted ones; quotas without a status get one."""
        snapshot = self._cluster.snapshot
        if quotas_of(snapshot):
            quotas = QuotaLedger(snapshot, self._setup.release)
            for item in came:
                quotas.take(item)
            for item in gone:
                quotas.give(item)
            self._cluster.put(quotas.apply_to(snapshot))

    def keep_manifest(self, workload: Workload, manifest: Manifest) -> None:
        """Store a workload's manifest without changing its pods."""
        snapshot = self._cluster.snapshot
        stored = {**snapshot.workloads, workload: msgspec.json.encode(manifest)}
        self._cluster.put(replace(snapshot, workloads=stored))

    def _are_objects_admitted(self, workload: Workload, manifest: Manifest, wanted: int) -> bool:
        """Whether quotas admit a new workload and the ReplicaSet of a Deployment; they count what they admit."""
        snapshot = self._cluster.snapshot
        if not any(quota.covers(workload.namespace) for quota in quotas_of(snapshot)):
            return True
        quotas = QuotaLedger(snapshot, self._setup.release)
        refusal = quotas.take(charged_object(*workload))
        if refusal is None:
            for other in created_pod(manifest).others:
                if other.get("kind") == "ReplicaSet" and refusal is None:
                    maker = charged_object("ReplicaSet", workload.namespace, workloads.name_of(other))
                    words = quotas.take(maker)
                    refusal = None if words is None else owner_create_error_text(maker, words)
            self.keep_manifest(workload, manifest)
        self._cluster.put(quotas.apply_to(self._cluster.snapshot))
        if refusal is None:
            return True
        if workload.kind == "DaemonSet":
            wanted = len(nodes_of_daemon_set(self._cluster.snapshot, self._setup, manifest)[0])
        self.refused[workload] = RefusedReplicas(workload=workload, number=wanted, refusal=refusal)
        return False
