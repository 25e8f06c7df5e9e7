"""The effects of manual changes on pods, at once and through the controllers that react to them."""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from itertools import groupby
from typing import assert_never

import msgspec
import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.apiserver.workload_validation import require_same_workload
from kschedx.controllers import workloads
from kschedx.controllers.adoption import only_lends_template, with_adopted_pods, with_referenced_template
from kschedx.controllers.daemon_set import daemons_on, react_to_nodes
from kschedx.controllers.pod_autoscaling import autoscaled, autoscaled_workloads, rescaled
from kschedx.controllers.stateful_set import deleted_claims
from kschedx.controllers.suspended_work import suspended_by_kueue, without_workloads
from kschedx.controllers.workload_lifecycle import creates_no_pods
from kschedx.controllers.workloads import Workload, is_controlled, loss_reason, replica_sets_of, stays_with_node
from kschedx.errors import InputError, NotAdmittedError, NotReadError, Place, nearest
from kschedx.explain.admission import charged_object, quotas_of, require_served
from kschedx.explain.setup import admit
from kschedx.kube.controllers import stored_metadata
from kschedx.kube.custom_resources import custom_kind
from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.documents import Document, with_spec
from kschedx.kube.tolerations import NO_EXECUTE, stay_seconds
from kschedx.kube.types import Node, Pod, controller_of
from kschedx.kube.workloads import (
    SHORT_NAMES,
    SIMULATED_RESTART,
    changes_what_is_cut,
    foreign_pods,
    is_foreign,
    kind_and_group,
)
from kschedx.simulate import object_changes as other_objects
from kschedx.simulate.changes import (
    MOST_COUNT,
    ChangeVerb,
    SimulatedChange,
    node_of_file,
    nodes_like,
    set_cordon,
    split_at_sign,
    with_label,
    with_taint,
)
from kschedx.simulate.object_changes import (
    Fields,
    merge_objects,
    require_node,
    require_pod,
    require_updatable,
    require_workload,
    scalar,
    with_fields,
    with_values,
)
from kschedx.simulate.simulator import Simulator
from kschedx.snapshot.edits import with_changed_nodes, without_namespace, without_object
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.snapshot import Snapshot


class ChangeEffectDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """What one change did. Pods are named `namespace/name`."""

    text: str = field(name="change")
    made: tuple[str, ...]  # pending pods that the change created
    evicted: tuple[str, ...]  # pods that lost their nodes, and are recreated under their names
    gone: tuple[str, ...]  # pods that are permanently deleted
    undone: str = ""  # the autoscaler that undoes the change, and how
    terminating: tuple[str, ...] = ()
    """Deleted pods that stay terminating: no kubelet confirms the deletion, for which their controllers wait."""
    deleted_claims: tuple[str, ...] = ()
    """Claims that a StatefulSet deletes with its pods (persistentVolumeClaimRetentionPolicy)."""


class ChangeEffect(Struct, frozen=True, kw_only=True):
    change: SimulatedChange
    made: tuple[str, ...] = ()
    evicted: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    undone: str = ""
    terminating: tuple[str, ...] = ()
    deleted_claims: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return str(self.change)


class DisplacedPods(Struct, frozen=True, kw_only=True):
    """Pods that lost their nodes to changes: directly, or preempted by pods that the changes created."""

    moved: tuple[str, ...] = ()  # `namespace/name`
    waiting: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()  # pods that no controller recreates


def _evicted_by_taints(snapshot: Snapshot, changed: Iterable[tuple[Node, Node]], *, comparison: bool) -> Iterator[int]:
    """Yield the rows of pods that changed taints evict; each pair is a node before and after. Pods of DaemonSets and of
    the kubelet are left out. A pod with tolerationSeconds is evicted once they are over, so it is included.

    Upstream: processPodOnNode in pkg/controller/tainteviction/taint_eviction.go.
    """
    pods = snapshot.pods
    for before, now in changed:
        old = {taint for taint in before.spec.taints if taint.effect == NO_EXECUTE}
        taints = [taint for taint in now.spec.taints if taint.effect == NO_EXECUTE]
        if old.issuperset(taints):
            continue
        for row in pods.on_node(snapshot.cluster.index[now.name]).tolist():
            tolerations = pods.specs[row].tolerations
            stays = stays_with_node(pods, row) or stay_seconds(taints, tolerations, comparison=comparison) is None
            if not stays:
                yield row


_PAST = "1970-01-01T00:00:00Z"  # when a pod is deleted in a cluster that was read at an unknown time


def _delays_successor(snapshot: Snapshot, row: int) -> bool:
    """Return whether a deleted pod stays terminating and its controller waits until it is gone."""
    pods, owner = snapshot.pods, controller_of(snapshot.pods.owners[row])
    if owner is None or not workloads.stays_terminating(snapshot, pods, row):
        return False
    return workloads.waits_until_gone(snapshot, pods.namespaces[row], owner)


# Changes applied to a cluster, one after the other. A drain is not one of them: it takes decisions, and `what_if` runs
# it between two changes.


def _is_recreated_workload(snapshot: Snapshot, workload: Workload) -> bool:
    """Whether a controller creates the workload again when it is deleted, such as the ReplicaSet of a Deployment. A
    CronJob does not repeat a Job."""
    raw = snapshot.workloads.get(workload)
    owner = None if raw is None else stored_metadata(raw).controller
    return owner is not None and owner.kind != "CronJob"


_ROLLED_OUT = ("Deployment", "StatefulSet", "DaemonSet")
_RESTART = ("spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]", SIMULATED_RESTART)
"""The annotation of a template that `kubectl rollout restart` sets to the time."""


_MOST_NODES = 10_000  # the largest number of nodes or replicas in one change


def _names_node(target: str) -> bool:
    """Whether KIND/NAME names a node."""
    return target.partition("/")[0].lower() in ("node", "nodes", "no") and "/" in target


def _bare_name(target: str) -> str:
    """Return `node-1` for `node/node-1`."""
    return target.rpartition("/")[2] if _names_node(target) else target


class ClusterChanges:
    """Manual changes, and how controllers react to changed nodes."""

    def __init__(self, simulator: Simulator, namespace: str) -> None:
        """`namespace` is the namespace of objects without one."""
        self._simulator = simulator
        self._manager = simulator.manager
        self._setup = simulator.setup
        self._namespace = namespace
        self.added_nodes: list[str] = []
        self._removed: dict[str, Node] = {}  # nodes that a change removed, in their last state
        self._applied: list[tuple[int, ChangeEffect]] = []
        """The first row of the pods that were created since a change, and its effect without these pods."""
        self._evicted: list[str] = []  # pods that lost their nodes and are pending
        self._terminating: list[str] = []
        self._gone: list[str] = []
        self._undone = ""
        """How an autoscaler undoes the current change, or empty. `_gone` are deleted pods that no change names."""
        self.workloads: dict[Workload, Manifest | None] = {}
        """Workloads that changes applied or scaled; the value is the manifest of a custom resource."""
        self.refused: list[tuple[Manifest, NotAdmittedError]] = []  # pods and updates that the API server refuses
        self._manager.update_quotas()

    @property
    def snapshot(self) -> Snapshot:
        return self._simulator.snapshot

    @snapshot.setter
    def snapshot(self, value: Snapshot) -> None:
        self._simulator.edit(value)

    @property
    def effects(self) -> tuple[ChangeEffect, ...]:
        """The effect of every applied change, with the pods that controllers created for it until the next change."""
        ends = [*(first for first, _ in self._applied), len(self._simulator.pods)][1:]
        return tuple(
            replace(effect, made=tuple(self._unrelated_pods(first, end, effect.evicted)))
            for (first, effect), end in zip(self._applied, ends, strict=True)
        )

    def _unrelated_pods(self, first: int, end: int, evicted: Container[str]) -> Iterator[str]:
        """Yield the existing pods of these rows, without those of rollouts and recreated ones."""
        pods, deleted = self._simulator.pods, self._simulator.deleted
        replacing = {row for rollout in self._manager.rollout_rows() for row in rollout}
        rows = (row for row in range(first, end) if row not in deleted and row not in replacing)
        yield from (key for key in map(pods.key, rows) if key not in evicted)

    def apply(self, change: SimulatedChange, fields: Sequence[SimulatedChange] = ()) -> None:
        """Apply a change. `fields` are earlier settings of its object, in the same update. Raises `InputError` with the
        change."""
        first_row, before = len(self._simulator.pods), self.snapshot
        self._evicted, self._gone, self._terminating, self._undone = [], [], [], ""
        self._manager.left_nodes.clear()
        source = change.objects[0][1].source if change.objects else ""
        with Place(source=source, object=str(change)):
            self._apply(change, fields)
            self._manager.sync()
        self._gone += map(self._simulator.pods.key, self._manager.left_nodes)
        claims = [*deleted_claims(before, self.snapshot)]
        for claim in claims:
            self.snapshot = without_object(self.snapshot, claim)
        effect = ChangeEffect(
            change=change,
            evicted=tuple(self._evicted),
            gone=tuple(self._gone),
            undone=self._undone,
            terminating=tuple(self._terminating),
            deleted_claims=tuple(claim.key for claim in claims),
        )
        self._applied += [*((first_row, ChangeEffect(change=earlier)) for earlier in fields), (first_row, effect)]

    def node(self, change: SimulatedChange) -> Node:
        """Return the only node that a change names. Raises `InputError` with the change."""
        with Place(object=str(change)):
            return self._node(change.text)

    def _node(self, name: str) -> Node:
        """Return a node by its name. Raises `InputError` with the nearest name, or because an earlier change removed
        the node."""
        gone = self._removed_node(name)
        if gone is not None:
            raise InputError(f'node "{gone.name}" is gone', hint="an earlier change removes it")
        return _node_of(self.snapshot, name)

    def _removed_node(self, name: str) -> Node | None:
        """Return the node that a change removed, in its last state; None for a node that exists or never did."""
        bare = _bare_name(name)
        return None if bare in self.snapshot.cluster.index else self._removed.get(bare)

    def _apply(self, change: SimulatedChange, fields: Sequence[SimulatedChange]) -> None:
        text = change.text
        match change.verb:
            case ChangeVerb.APPLY:
                self._apply_objects(change.objects)
            case ChangeVerb.SCALE:
                target, number = split_at_sign(text, "=", "KIND/NAME=REPLICAS")
                if (resource := self._custom_resource(target)) is not None:
                    self._apply_custom(_with_replicas(resource, _parse_count(number)))
                else:
                    self._scale(self._workload(target), _parse_count(number))
            case ChangeVerb.RESTART:
                self._restart(text)
            case ChangeVerb.CORDON | ChangeVerb.UNCORDON:
                node = self._node(text)
                self._put(set_cordon(node, unschedulable=change.verb is ChangeVerb.CORDON))
            case ChangeVerb.DELETE:
                self._delete(text)
            case ChangeVerb.ADD_NODES:
                self._add_nodes(change)
            case ChangeVerb.REMOVE_NODE:
                self._remove_node(text)
            case ChangeVerb.TAINT:
                name, taint = split_at_sign(text, ":", "NODE:KEY=VALUE:EFFECT, or NODE:KEY- to remove")
                self._put(with_taint(self._node(name), taint))
            case ChangeVerb.LABEL:
                name, label = split_at_sign(text, ":", "NODE:KEY=VALUE, or NODE:KEY- to remove")
                self._put(with_label(self._node(name), label))
            case ChangeVerb.SET:
                self._set(change.target_and_path[0], [_field(each) for each in (*fields, change)])
            case ChangeVerb.DRAIN:
                raise AssertionError("a drain makes decisions")
            case _:
                assert_never(change.verb)

    # --- nodes

    def _put(self, node: Node) -> None:
        before = self.snapshot.cluster.nodes[self.snapshot.cluster.index[node.name]]
        require_node(before, node)
        self.snapshot = with_changed_nodes(self.snapshot, [node])
        self.follow([(before, node)])

    def follow(self, changed: Sequence[tuple[Node, Node]]) -> None:
        """Let controllers react to changed nodes; each pair is a node before and after."""
        if not changed:
            return
        comparison = self._setup.release.compares_taints
        leaving = [*_evicted_by_taints(self.snapshot, changed, comparison=comparison)]
        self._recreate(leaving)
        reaction = react_to_nodes(self.snapshot, self._setup, changed)
        self._add_daemons(reaction.snapshot, reaction.created)
        self._lose(reaction.gone)

    def _add_nodes(self, change: SimulatedChange) -> None:
        number, model = split_at_sign(change.text, "=", "NUMBER=NODE, or NUMBER=FILE with a Node")
        count = _parse_count(number, _MOST_NODES, least=1)
        # an existing node, or a removed one that the new nodes replace
        template = (
            node_of_file(change.objects, model) if change.objects else self._removed_node(model) or self._node(model)
        )
        added = list(nodes_like(self.snapshot, template, count))
        devices = self.snapshot.devices.with_nodes_like(template.name, [node.name for node in added])
        self.snapshot = with_changed_nodes(self.snapshot, added).with_devices(devices)
        self.added_nodes += [node.name for node in added]
        self._add_daemons_on(added)

    def _remove_node(self, name: str) -> None:
        """Remove a node with its pods; controllers recreate theirs elsewhere, except pods that belong to the node."""
        node = self._node(name)
        self._removed[node.name] = node
        row = self.snapshot.cluster.index[node.name]
        pods = self.snapshot.pods
        its = pods.on_node(row).tolist()
        self._recreate([pod for pod in its if not stays_with_node(pods, pod)], is_forced=True)
        self._lose(self.snapshot.pods.on_node(row).tolist())
        orphaned = self.snapshot.pods.node_names.where(lambda name: name == node.name)
        self._drop(np.flatnonzero(orphaned).tolist())  # finished pods
        moving = MovingCluster(self.snapshot)
        moving.remove_node(row)
        self.snapshot = moving.frozen()

    # --- pods and workloads

    def _workload(self, target: str) -> Workload:
        """The workload `deploy/web`, in the namespace of the question, or `shop/deploy/web`. Raises `InputError`."""
        parts = target.split("/")
        namespace = parts.pop(0) if len(parts) == 3 else self._namespace
        kind = SHORT_NAMES.get(parts[0].lower().partition(".")[0]) if len(parts) == 2 else None
        if kind is None:
            raise InputError(f'"{target}" is not KIND/NAME', hint=self._target_hint(parts, namespace))
        workload = Workload(kind, namespace, parts[1])
        self._require(workload)
        return workload

    def _target_hint(self, parts: Sequence[str], namespace: str) -> str:
        """Return what a target without a known kind may mean."""
        if len(parts) == 2:
            return nearest("/".join(parts), (f"{kind}/{parts[1]}" for kind in SHORT_NAMES))
        named = [Workload(*key) for key in self.snapshot.workloads if key[1:] == (namespace, parts[-1])]
        return f'did you mean "{named[0].reference}"?' if named else "such as deploy/web or sts/db"

    def _require(self, workload: Workload) -> None:
        snapshot, (kind, namespace, name) = self.snapshot, workload
        if kind == "Pod":
            if self._simulator.row(workload.key) is None:
                here = snapshot.pods.namespaces
                known = [other for row, other in enumerate(snapshot.pods.names) if here[row] == namespace]
                was_deleted = name in known
                hint = "an earlier change has deleted it" if was_deleted else nearest(name, known)
                raise InputError(f'no pod "{name}" in namespace "{namespace}"', hint=hint)
            return
        if (kind, namespace, name) in snapshot.workloads or self._manager.members(workload):
            return
        if self._manifest_of_replica_set(workload) is not None:
            return
        elsewhere = sorted(ns for k, ns, n in snapshot.workloads if (k, n) == (kind, name))
        known = [n for k, ns, n in snapshot.workloads if (k, ns) == (kind, namespace)]
        hint = f"there is one in namespace {elsewhere[0]}: {elsewhere[0]}/{kind.lower()}/{name}" if elsewhere else ""
        raise InputError(f'no {kind} "{name}" in namespace "{namespace}"', hint=hint or nearest(name, known))

    def _scale(self, workload: Workload, replicas: int) -> None:
        workloads.require_scalable(workload.kind)
        self.workloads[workload] = None
        rescaling = rescaled(self.snapshot, workload, replicas)
        self._undone = "" if rescaling is None else rescaling.text(again=True)
        known: Manifest | None = self.snapshot.manifest_of(workload)
        if known is not None and workload.kind == "Job":
            self._apply_workload(workloads.with_replicas(known, replicas))
            return
        has_pods = known is not None or self._manager.members(workload)
        known = None if has_pods else self._manifest_of_replica_set(workload)
        if known is None:
            self._manager.scale(workload, replicas)
        else:
            self._manager.apply(workloads.with_replicas(known, replicas))

    def _restart(self, target: str) -> None:
        """Change an annotation of the template, as `kubectl rollout restart` does."""
        kind = (workload := self._workload(target)).kind
        if kind not in _ROLLED_OUT:
            raise InputError(
                f"kubectl restarts no {kind}", hint="it restarts Deployments, StatefulSets, and DaemonSets"
            )
        if map_at(self.snapshot.manifest_of(workload), "spec").get("paused") is True:
            raise InputError(f"{workload.reference} is paused", hint="kubectl restarts it only once it is resumed")
        self._set(target, [_RESTART])

    def _custom_resource(self, target: str) -> Manifest | None:
        """Return the custom resource `cloneset/web` or `rollouts.argoproj.io/web`, with a namespace or without."""
        *space, word, name = target.split("/") if target.count("/") in (1, 2) else ("", "")
        word, _, group = word.lower().partition(".")
        for (key, namespace, called), raw in self.snapshot.custom_resources.items():
            kind, _, its_group = key.partition(".")
            is_meant = word in (kind.lower(), f"{kind.lower()}s") and its_group.startswith(group)
            if is_meant and (namespace, called) == (space[0] if space else self._namespace, name):
                manifest: Manifest = msgspec.json.decode(raw)
                return manifest
        return None

    def _manifest_of_replica_set(self, workload: Workload) -> Manifest | None:
        """Return the manifest of a Deployment without pods, from its newest ReplicaSet."""
        replica_sets = [*replica_sets_of(self.snapshot, workload)]
        if not replica_sets:
            return None
        _, raw = max(replica_sets, key=lambda item: (item[0].creation_timestamp or "", item[0].name))
        manifest: dict[str, object] = msgspec.json.decode(raw)
        metadata = {"name": workload.name, "namespace": workload.namespace}
        return {**manifest, "kind": workload.kind, "metadata": metadata, "status": {}}

    def _delete(self, target: str) -> None:
        """Delete a pod or workload, which its controller recreates; another workload with all that it owns; or a node
        as with --remove-node."""
        if _names_node(target):
            self._remove_node(target)
            return
        other = other_objects.object_reference(target, self._namespace)
        if other is not None:
            self.snapshot = other_objects.delete_object(self.snapshot, other)
            if other.kind.name == "Namespace":
                self._delete_contents(other.name)
            if other.kind.name == "PersistentVolumeClaim":
                self._create_claims(f"{other.namespace}/{other.name}")
            return
        workload = self._workload(target)
        if workload.kind == "Pod":
            row = self._row(workload)
            is_recreated = is_controlled(self.snapshot.pods.owners[row])
            (self._recreate if is_recreated else self._drop)([row])
            return
        if _is_recreated_workload(self.snapshot, workload):
            self._recreate(self._manager.members(workload))
        else:
            self.discard(workload)

    def discard(self, workload: Workload) -> None:
        """Delete a workload with all that it owns, which no controller recreates."""
        for its in workloads.with_dependents(self.snapshot, workload):
            self._forget(its)
            self._drop(self._manager.members(its))
            left = dict(self.snapshot.workloads)
            if left.pop(its, None) is not None:
                self._manager.update_quotas(gone=[charged_object(*its)])
            self._simulator.put(without_workloads(replace(self.snapshot, workloads=left), its))

    def _forget(self, workload: Workload) -> None:
        self._manager.forget(workload)
        self.workloads.pop(workload, None)

    def _delete_contents(self, namespace: str) -> None:
        """Delete the objects of a namespace, as its controller does."""
        pods, kept = self.snapshot.pods, dict(self.snapshot.workloads)
        for key in [key for key in kept if key[1] == namespace]:
            del kept[key]
            self._forget(Workload(*key))
        rows = pods.in_namespace(namespace).nonzero()[0].tolist()
        self._drop(row for row in rows if row not in self._simulator.deleted)
        self.snapshot = without_namespace(replace(self.snapshot, workloads=kept), namespace)

    def _apply_workload(self, manifest: Manifest, place: Place | None = None) -> None:
        if manifest.get("kind") == "Pod":
            self._apply_pods([(manifest, place or Place())])
            return
        workload = workloads.workload_of(manifest)
        known = workloads.stored_manifest(self.snapshot, workload)
        try:
            if place is not None:
                require_served(manifest, self._setup.release)
            if known is not None:
                require_same_workload(known, manifest)
        except NotAdmittedError as error:
            self.refused.append((manifest, error.at(place or Place()).at(Place(object=workload.title))))
            return
        self.workloads[workload] = None
        if (of_kueue := suspended_by_kueue(self.snapshot, manifest)) is not None:
            self._simulator.put(without_workloads(self.snapshot, workload))
            self._merge([of_kueue[1]])
            manifest = of_kueue[0]
            if map_at(known or {}, "spec").get("suspend") is False:
                self._undone = f"Kueue suspends {workload.reference} until it admits the new number of pods"
        if creates_no_pods(self.snapshot, manifest):
            self._manager.keep_manifest(workload, manifest)
        else:
            if known is None:
                self.snapshot = with_adopted_pods(self.snapshot, workload, manifest)
            self._manager.apply(manifest)

    def _row(self, workload: Workload) -> int:
        row = self._simulator.row(workload.key)
        assert row is not None, "`_workload` has looked for it"
        return row

    # --- creation and deletion of pods

    def _add_daemons_on(self, nodes: Sequence[Node]) -> None:
        """Create the pods of DaemonSets on added nodes."""
        self._add_daemons(*daemons_on(self.snapshot, self._setup, nodes))

    def _add_daemons(self, cluster: Snapshot, new_pods: Iterable[Pod]) -> None:
        """Create pods of several DaemonSets; a refused pod of one does not concern the others. `cluster` has the
        objects that are created for them."""
        of_owner: dict[tuple[str, str], list[Pod]] = {}
        for pod in new_pods:
            owner = pod.metadata.controller
            name = pod.metadata.name if owner is None else owner.name
            of_owner.setdefault((pod.metadata.namespace, name), []).append(pod)
        for of, pods in of_owner.items():
            self._manager.add(Workload("DaemonSet", *of), cluster, pods)
            cluster = self.snapshot

    def _apply_pods(self, manifests: Iterable[tuple[Manifest, Place]]) -> None:
        """Create pods, as many together as quotas and names allow. Raises `InputError` with the place."""
        cluster, new = self.snapshot, dict[str, Pod]()

        def create() -> None:
            nonlocal cluster
            if new:
                self._simulator.create(cluster, [*new.values()])
                self._manager.update_quotas(came=new.values())
                new.clear()
            cluster = self.snapshot

        has_quotas = bool(quotas_of(cluster))
        for manifest, place in manifests:
            workload = workloads.workload_of(manifest)
            if has_quotas or workload.key in new:
                create()
            row = self._simulator.row(workload.key)
            if row is not None:
                create()
                self._drop([row])
                cluster = self.snapshot
            try:
                subject = admit(cluster, manifest, self._setup, is_recreated=True)
            except NotAdmittedError as error:
                self.refused.append((manifest, error))
                continue
            except NotReadError as error:
                self._manager.unread[workload] = error
                self.workloads[workload] = manifest
                continue
            except InputError as error:
                raise error.at(place) from None
            cluster, new[workload.key] = subject.snapshot, subject.pod
        create()

    def _drop(self, rows: Iterable[int]) -> None:
        """Delete pods permanently."""
        rows = [*rows]
        if rows:
            self._manager.update_quotas(gone=map(self.snapshot.pods.__getitem__, rows))
        for row in rows:
            self._simulator.delete(row)

    def _lose(self, rows: Sequence[int]) -> None:
        """Delete pods permanently and record them as gone."""
        self._gone += map(self.snapshot.pods.key, rows)
        self._drop(rows)

    def _recreate(self, rows: Sequence[int], *, is_forced: bool = False) -> None:
        """Delete pods. Those that their controllers recreate are pending, under their old names. `is_forced`: no
        kubelet has to confirm it, as for pods of a removed node."""
        snapshot, pods = self.snapshot, self.snapshot.pods
        stay = {row for row in rows if not is_forced and _delays_successor(snapshot, row)}
        self._terminating += [pods.key(row) for row in sorted(stay)]
        rows = [row for row in rows if row not in stay]
        gone = {row for row in rows if pods.deletion_timestamps[row] and workloads.is_recreated(pods, row)}
        if stay or gone:
            pods = pods.with_deletions(stay, snapshot.source.taken or _PAST).with_deletions(gone, None)
            self.snapshot = snapshot = replace(snapshot, pods=pods, _tables={})
        recreates = self._simulator.options.recreate
        again = {row: None for row in rows if recreates and not loss_reason(snapshot, pods, row)}
        replaced = workloads.are_replaced(pods)
        self._evicted += [pods.key(row) for row in again if pods.node[row] >= 0 and not replaced[row]]
        self._simulator.evict([*again])
        self._lose([row for row in rows if row not in again])

    # --- manifests

    def _apply_objects(self, objects: Sequence[tuple[Manifest, Place]]) -> None:
        """Apply the objects that pods depend on first, whatever the order of the documents."""
        placed: list[tuple[Manifest, Place]] = [(self._with_namespace(manifest), place) for manifest, place in objects]
        if placed and all(map(_is_unknown, (manifest for manifest, _ in placed))):
            kind, group = kind_and_group(placed[0][0])
            hint = "apply the pods that its controller creates"
            raise InputError(f"no pods or workloads in this file: {kind} ({group})", place=placed[0][1], hint=hint)
        every = [manifest for manifest, _ in placed]
        makers = [item for item in placed if _makes_pods(item[0]) and not only_lends_template(item[0], every)]
        made = {id(manifest) for manifest, _ in makers}
        merged = [it for it, place in placed if id(it) not in made and self._is_updatable(it, place)]
        self._merge(merged)
        for is_pod, together in groupby(makers, lambda item: item[0].get("kind") == "Pod" and not is_foreign(item[0])):
            if is_pod:
                self._apply_pods(together)
                continue
            for manifest, place in together:
                with place:
                    if is_foreign(manifest):
                        self._apply_custom(self._autoscaled(manifest))
                    else:
                        self._apply_workload(self._autoscaled(manifest), place)
        self._rescale(merged, {workloads.workload_of(manifest) for manifest, _ in makers})

    def _rescale(self, changed: Iterable[Manifest], applied: Collection[Workload] = ()) -> None:
        """Scale the workloads of HorizontalPodAutoscalers that are changed; those that are applied as well are."""
        for workload in autoscaled_workloads(self.snapshot, changed):
            stored = self.snapshot.manifest_of(workload)
            if stored is not None and workload not in applied:
                self._apply_workload(self._autoscaled(stored))

    def _autoscaled(self, manifest: Manifest) -> Manifest:
        before = workloads.stored_manifest(self.snapshot, workloads.workload_of(manifest))
        manifest, text = autoscaled(self.snapshot, manifest, before)
        self._undone = "; ".join(filter(None, (self._undone, text)))
        return manifest

    def _is_updatable(self, manifest: Manifest, place: Place) -> bool:
        try:
            require_served(manifest, self._setup.release)
            require_updatable(self.snapshot, manifest)
        except NotAdmittedError as error:
            named = Place(object=workloads.workload_of(manifest).title)
            self.refused.append((manifest, error.at(place).at(named)))
            return False
        return True

    def _apply_custom(self, manifest: Manifest) -> None:
        """Apply a custom resource: create as many pods of each of its templates as are known."""
        workload = workloads.workload_of(manifest)
        self.workloads[workload] = manifest = with_referenced_template(self.snapshot, dict(manifest))
        if creates_no_pods(self.snapshot, manifest):
            return
        pods = foreign_pods(manifest)
        if not pods and custom_kind(*kind_and_group(manifest)) is not None:
            self._manager.open_counts[workload] = "its manifest does not say which pods it creates"
        standing = workloads.standing_pods(self.snapshot, self._simulator.pods, manifest)
        for row in standing.surplus:
            self._manager.delete_pod(row)
        for pod in pods:
            try:
                subject = admit(self.snapshot, pod.manifest, self._setup, title=workloads.title(manifest))
            except NotAdmittedError as error:
                self.refused.append((pod.manifest, error))
                continue
            except NotReadError as error:
                self._manager.unread[workload] = error
                return
            count = 1 if pod.count.number is None else pod.count.number
            lacks = count - len(standing.stay.get(pod.path, ()))
            if lacks > 0:
                self._manager.add(workload, *workloads.one_or_copies(subject.snapshot, subject.pod, lacks))
            if undecided := pod.count.undecided or standing.undecided_reason:
                self._manager.open_counts[workload] = undecided

    def _merge(self, others: Sequence[Manifest]) -> None:
        if not others:
            return
        before = self.snapshot.cluster
        self.snapshot = merge_objects(self.snapshot, others)
        self._manager.update_quotas()
        cluster = self.snapshot.cluster
        written = {workloads.name_of(item) for item in others if item.get("kind") == "Node"}
        nodes = [cluster.nodes[cluster.index[name]] for name in sorted(written)]
        added = [node for node in nodes if node.name not in before.index]
        if added:
            self.added_nodes += [node.name for node in added]
            self._add_daemons_on(added)
        self.follow([(before.nodes[before.index[node.name]], node) for node in nodes if node.name in before.index])

    def _create_claims(self, key: str) -> None:
        """Recreate a deleted claim of a pending pod, as a StatefulSet's controller does."""
        pods = self.snapshot.pods
        for row in pods.rows_with_claim(key):
            owner = controller_of(pods.owners[row])
            if owner is None or owner.kind != "StatefulSet" or pods.node[row] >= 0:
                continue
            workload = Workload(owner.kind, pods.namespaces[row], owner.name)
            manifest = self.workloads.get(workload) or self.snapshot.manifest_of(workload)
            if manifest is not None:
                self.snapshot = workloads.with_template_claims(self.snapshot, manifest, pods[row])

    def _with_namespace(self, manifest: Manifest) -> dict[str, object]:
        own = map_at(manifest, "metadata")
        if not workloads.is_namespaced(manifest):
            return {**manifest, "metadata": own}
        return {**manifest, "metadata": {**own, "namespace": own.get("namespace") or self._namespace}}

    # --- fields

    def _set(self, target: str, fields: Fields) -> None:
        if _names_node(target):
            node = self._node(target)
            changed_node = with_fields(node, fields)
            if changed_node.name != node.name:
                raise InputError("metadata.name cannot be changed")
            self._put(changed_node)
            return
        other = other_objects.object_reference(target, self._namespace)
        if other is not None:
            self.snapshot = other_objects.set_object_fields(self.snapshot, other, fields)
            self._manager.update_quotas()
            metadata = {"namespace": other.namespace, "name": other.name}
            self._rescale([{"kind": other.kind.name, "metadata": metadata}])
            return
        workload = self._workload(target)
        if workload.kind == "Pod":
            row = self._row(workload)
            before = self.snapshot.pods[row]
            pod = with_fields(before, fields)
            require_pod(before, pod)
            if pod.spec != before.spec:  # a new pod; labels, annotations, and the status change in place
                pod = with_spec(pod, node_name="")
                self._undone = f"{pod.key} is deleted and created again"
            self._drop([row])
            self._simulator.create(self.snapshot, [pod])
            return
        manifest = self.snapshot.manifest_of(workload)
        if manifest is None:
            raise InputError(f"the snapshot has pods of {workload.reference}, and not its manifest")
        changed = with_values(manifest, fields)
        require_workload(manifest, changed)
        if workload.kind in _ROLLED_OUT and changes_what_is_cut(manifest, changed):
            changed = with_values(changed, [_RESTART])
        self._apply_workload(changed)


def _field(change: SimulatedChange) -> tuple[str, object]:
    return change.target_and_path[1], scalar(change.text.partition("=")[2])


def _node_of(snapshot: Snapshot, name: str) -> Node:
    """Return the node `node-1`, `node/node-1`, or `no/node-1`. Raises `InputError` with the nearest name."""
    cluster = snapshot.cluster
    return cluster.nodes[cluster.index[cluster.known_name(_bare_name(name))]]


def _parse_count(text: str, most: int = MOST_COUNT, *, least: int = 0) -> int:
    """Return a number of nodes or replicas. Raises `InputError` for fewer than `least`, and for more than `most`."""
    if not re.fullmatch(r"[0-9]+", text) or int(text[:99]) < least:
        raise InputError(f'found "{text}", expected a number of at least {least}')
    if len(text) > 9 or int(text) > most:
        raise InputError(f"found {int(text[:99]):,}, at most {most:,} are simulated")
    return int(text)


def _is_unknown(manifest: Manifest) -> bool:
    """Return whether only its own controller knows what a custom resource creates."""
    return is_foreign(manifest) and custom_kind(*kind_and_group(manifest)) is None and not foreign_pods(manifest)


def _with_replicas(manifest: Manifest, replicas: int) -> Manifest:
    """Return a custom resource with another number of pods. Raises `InputError` if no field of its spec has it."""
    spec = map_at(manifest, "spec")
    field = next((name for name in ("replicas", "instances") if isinstance(spec.get(name), int)), None)
    if field is None:
        named = workloads.title(manifest)
        raise InputError(f"{named} has no spec.replicas", hint="apply the changed manifest with -f")
    return {**manifest, "spec": {**spec, field: replicas}}


def _makes_pods(manifest: Manifest) -> bool:
    return is_foreign(manifest) or workloads.makes_pods(str(manifest.get("kind")))
