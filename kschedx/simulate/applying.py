"""Changes applied to a cluster, one after the other: another cluster, and what has to be drained in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar, assert_never, cast

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.types import Node, Pod, Taint
from kschedx.api.workloads import SHORT_NAMES
from kschedx.errors import InputError, Place, nearest
from kschedx.explain.setup import Setup
from kschedx.simulate import workloads
from kschedx.simulate.changes import Change, Verb
from kschedx.simulate.controllers import is_controlled, stays_with_node
from kschedx.simulate.nodes import another_like, cordoned
from kschedx.simulate.paths import with_value
from kschedx.simulate.workloads import Owners, Workload
from kschedx.snapshot.edits import with_changed_nodes, with_only_pods, with_pods, without_nodes
from kschedx.snapshot.moving import MovingCluster
from kschedx.snapshot.snapshot import Snapshot

T = TypeVar("T")
Manifest = Mapping[str, object]

MOST_NODES = 10_000
"""Nodes, and replicas, that one change may add."""
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


class Changed(Struct, frozen=True, kw_only=True):
    """A cluster after some changes."""

    snapshot: Snapshot
    drains: tuple[str, ...] = ()
    """Nodes to be drained, in order."""
    new: tuple[str, ...] = ()
    """`namespace/name` of pods that a change made or made wait."""
    added_nodes: tuple[str, ...] = ()


def applied(snapshot: Snapshot, setup: Setup, changes: Iterable[Change], namespace: str = "default") -> Changed:
    """The cluster with all changes, in their order; `namespace` is that of what names none.

    Raises `InputError` for the first that cannot be applied, which it names; nothing is half done then.
    """
    workbench = _Workbench(snapshot, setup, namespace)
    for change in changes:
        try:
            workbench.apply(change)
        except InputError as error:
            raise error.at(Place(object=str(change))) from None
    return Changed(
        snapshot=workbench.snapshot,
        drains=tuple(dict.fromkeys(workbench.drains)),
        new=tuple(key for key in dict.fromkeys(workbench.new) if key in workbench.snapshot.pods.rows),
        added_nodes=tuple(workbench.added_nodes),
    )


class _Workbench:
    def __init__(self, snapshot: Snapshot, setup: Setup, namespace: str) -> None:
        self.snapshot = snapshot
        self._setup = setup
        self._namespace = namespace
        self.drains: list[str] = []
        self.new: list[str] = []
        self.added_nodes: list[str] = []

    def apply(self, change: Change) -> None:
        text = change.text
        match change.verb:
            case Verb.APPLY:
                self._apply_objects(change.objects)
            case Verb.SCALE:
                target, number = _divided(text, "=", "KIND/NAME=REPLICAS")
                self._scale(self._workload(target), _count(number))
            case Verb.DRAIN:
                self.drains.append(self._node(text).name)
            case Verb.CORDON | Verb.UNCORDON:
                self._cordon(self._node(text), unschedulable=change.verb is Verb.CORDON)
            case Verb.DELETE:
                self._delete(text)
            case Verb.ADD_NODES:
                self._add_nodes(change)
            case Verb.REMOVE_NODE:
                self._remove_node(text)
            case Verb.TAINT:
                node, taint = _divided(text, ":", "NODE:KEY=VALUE:EFFECT, or NODE:KEY- to remove")
                self._taint(self._node(node), taint)
            case Verb.LABEL:
                node, label = _divided(text, ":", "NODE:KEY=VALUE, or NODE:KEY- to remove")
                self._label(self._node(node), label)
            case Verb.SET:
                target, rest = _divided(text, ":", "KIND/NAME:PATH=VALUE")
                path, value = _divided(rest, "=", "KIND/NAME:PATH=VALUE")
                self._set(target, path, value)
            case _:
                assert_never(change.verb)

    # --- nodes

    def _node(self, name: str) -> Node:
        name = name.removeprefix("node/")
        row = self.snapshot.cluster.index.get(name)
        if row is None:
            raise InputError(f'no node "{name}" in the snapshot', hint=nearest(name, self.snapshot.cluster.index))
        return self.snapshot.cluster.nodes[row]

    def _put(self, node: Node) -> None:
        self.snapshot = with_changed_nodes(self.snapshot, [node])

    def _cordon(self, node: Node, *, unschedulable: bool) -> None:
        self._put(cordoned(node, unschedulable=unschedulable))

    def _taint(self, node: Node, text: str) -> None:
        if text.endswith("-"):
            key, _, effect = text[:-1].partition(":")
            left = tuple(t for t in node.spec.taints if t.key != key or (effect and t.effect != effect))
            if left == node.spec.taints:
                raise InputError(f'"{key}" is no taint of {node.name}', hint=nearest(key, (t.key for t in left)))
        else:
            rest, colon, effect = text.rpartition(":")
            if not colon or effect not in EFFECTS:
                raise InputError(
                    f'"{effect}" is no effect', hint=nearest(effect, EFFECTS) or f"one of {', '.join(EFFECTS)}"
                )
            key, _, value = rest.partition("=")
            others = tuple(t for t in node.spec.taints if (t.key, t.effect) != (key, effect))
            left = (*others, Taint(key=key, value=value, effect=effect))
        self._put(replace(node, spec=replace(node.spec, taints=left)))

    def _label(self, node: Node, text: str) -> None:
        labels = dict(node.metadata.labels)
        if text.endswith("-"):
            if labels.pop(text[:-1], None) is None:
                raise InputError(f'"{text[:-1]}" is no label of {node.name}', hint=nearest(text[:-1], labels))
        else:
            key, value = _divided(text, "=", "KEY=VALUE")
            labels[key] = value
        self._put(replace(node, metadata=replace(node.metadata, labels=labels)))

    def _add_nodes(self, change: Change) -> None:
        number, like = _divided(change.text, "=", "NUMBER=NODE, or NUMBER=FILE with a Node")
        count = _count(number)
        template = self._node_of_file(change.objects, like) if change.objects else self._node(like)
        taken = set(self.snapshot.cluster.index)
        for _ in range(count):
            name = next(name for i in range(1, MOST_NODES * 2) if (name := f"{template.name}-new{i}") not in taken)
            taken.add(name)
            self.added_nodes.append(name)
            self._put(another_like(template, name))

    def _node_of_file(self, objects: Sequence[tuple[Manifest, Place]], path: str) -> Node:
        nodes = [manifest for manifest, _ in objects if manifest.get("kind") == "Node"]
        if len(nodes) != 1:
            raise InputError(f"{path} holds {len(nodes)} nodes, one is needed")
        return Snapshot.from_objects(nodes).cluster.nodes[0]

    def _remove_node(self, name: str) -> None:
        """Its pods go with it; those with a controller are made anew."""
        node = self._node(name)
        self._evict_all(self.snapshot.cluster.index[node.name])
        self.snapshot = without_nodes(self.snapshot, {self.snapshot.cluster.index[node.name]})

    def _evict_all(self, node: int) -> None:
        rows = [
            row
            for row in self.snapshot.pods.on_node(node).tolist()
            if not stays_with_node(self.snapshot.pods.owners[row])
        ]
        self._recreate([row for row in rows if is_controlled(self.snapshot.pods.owners[row])])

    def _recreate(self, rows: Sequence[int]) -> None:
        """Pods that their controllers make anew: they wait, under their old names."""
        moving = MovingCluster(self.snapshot)
        for row in rows:
            if moving.pods.node[row] >= 0:
                moving.remove(row, waits=True)
                self.new.append(moving.pods.key(row))
        self.snapshot = moving.frozen()

    # --- pods and what makes them

    def _workload(self, target: str) -> Workload:
        """`deploy/web`, in the namespace of the question, or `shop/deploy/web`."""
        parts = target.split("/")
        namespace = parts.pop(0) if len(parts) == 3 else self._namespace
        kind = SHORT_NAMES.get(parts[0].lower().partition(".")[0]) if len(parts) == 2 else None
        if kind is None:
            raise InputError(f'"{target}" is no KIND/NAME', hint="such as deploy/web or sts/db")
        workload = Workload(kind, namespace, parts[1])
        self._require(workload)
        return workload

    def _require(self, workload: Workload) -> None:
        snapshot, (kind, namespace, name) = self.snapshot, (workload.kind, workload.namespace, workload.name)
        if kind == "Pod":
            if f"{namespace}/{name}" not in snapshot.pods.rows:
                here = (
                    other for row, other in enumerate(snapshot.pods.names) if snapshot.pods.namespaces[row] == namespace
                )
                raise InputError(f'no pod "{name}" in namespace "{namespace}"', hint=nearest(name, here))
            return
        if (kind, namespace, name) in snapshot.workloads or Owners(snapshot).members(snapshot.pods, workload):
            return
        elsewhere = sorted(ns for k, ns, n in snapshot.workloads if (k, n) == (kind, name))
        known = [n for k, ns, n in snapshot.workloads if (k, ns) == (kind, namespace)]
        hint = f"there is one in namespace {elsewhere[0]}: {elsewhere[0]}/{kind.lower()}/{name}" if elsewhere else ""
        raise InputError(f'no {kind} "{name}" in namespace "{namespace}"', hint=hint or nearest(name, known))

    def _scale(self, workload: Workload, replicas: int) -> None:
        workloads.require_scalable(workload.kind)
        pods = self.snapshot.pods
        rows = Owners(self.snapshot).members(pods, workload)
        if len(rows) > replicas:
            self._drop(_first_to_go(self.snapshot, workload, rows)[: len(rows) - replicas])
            return
        self._add_replicas(workload, rows, replicas - len(rows))

    def _add_replicas(self, workload: Workload, rows: Sequence[int], count: int) -> None:
        snapshot, pods = self.snapshot, self.snapshot.pods
        manifest = workloads.manifest_of(snapshot, workload)
        if manifest is not None:
            self.snapshot, made = workloads.new_pods(
                snapshot, self._setup, manifest, count, [pods.names[row] for row in rows]
            )
        elif rows:
            made = like_pod(snapshot, pods[rows[-1]], count)
        else:
            made = []
        self._add(made)

    def _add(self, pods: Sequence[Pod]) -> None:
        self.snapshot = with_pods(self.snapshot, pods)
        self.new += [pod.key for pod in pods]

    def _drop(self, rows: Iterable[int]) -> None:
        kept = np.ones(len(self.snapshot.pods), dtype=np.bool_)
        kept[list(rows)] = False
        self.snapshot = with_only_pods(self.snapshot, np.flatnonzero(kept))

    def _delete(self, target: str) -> None:
        """A pod with a controller comes back; a workload goes with its pods; a node as with --remove-node."""
        if target.startswith("node/"):
            self._remove_node(target)
            return
        workload = self._workload(target)
        if workload.kind == "Pod":
            row = self.snapshot.pods.rows[f"{workload.namespace}/{workload.name}"]
            if is_controlled(self.snapshot.pods.owners[row]) and self.snapshot.pods.node[row] >= 0:
                self._recreate([row])
            else:
                self._drop([row])
            return
        self._drop(Owners(self.snapshot).members(self.snapshot.pods, workload))
        left = dict(self.snapshot.workloads)
        left.pop((workload.kind, workload.namespace, workload.name), None)
        self.snapshot = replace(self.snapshot, workloads=left)

    # --- manifests

    def _apply_objects(self, objects: Sequence[tuple[Manifest, Place]]) -> None:
        """What pods depend on first, whatever the order of the documents."""
        makers = [
            one for one in objects if one[0].get("kind") == "Pod" or workloads.makes_pods(str(one[0].get("kind")))
        ]
        others = [manifest for manifest, _ in objects if all(manifest is not maker for maker, _ in makers)]
        if others:
            self.snapshot = merged(self.snapshot, Snapshot.from_objects(others))
        for manifest, place in makers:
            try:
                self._apply_maker(dict(manifest))
            except InputError as error:
                raise error.at(place) from None

    def _apply_maker(self, manifest: dict[str, object]) -> None:
        metadata = manifest.get("metadata")
        own = cast("dict[str, object]", metadata) if isinstance(metadata, dict) else {}
        metadata = {**own, "namespace": own.get("namespace") or self._namespace}
        manifest = {**manifest, "metadata": metadata}
        kind, namespace, name = str(manifest["kind"]), str(metadata["namespace"]), str(metadata.get("name") or "")
        if kind == "Pod":
            self._apply_pod(manifest, f"{namespace}/{name}")
            return
        workload = Workload(kind, namespace, name)
        rows = Owners(self.snapshot).members(self.snapshot.pods, workload)
        before = workloads.manifest_of(self.snapshot, workload)
        raw = msgspec.json.encode(manifest)
        self.snapshot = replace(self.snapshot, workloads={**self.snapshot.workloads, (kind, namespace, name): raw})
        wanted = workloads.wanted_replicas(manifest)
        if kind == "DaemonSet":
            raise InputError(
                "a DaemonSet's pods follow the nodes, which is not simulated", hint="why FILE tells of one pod"
            )
        if before is not None and _template(before) != _template(manifest):
            self._drop(rows)
            rows = []
        if len(rows) > wanted:
            self._drop(_first_to_go(self.snapshot, workload, rows)[: len(rows) - wanted])
        else:
            self._add_replicas(workload, rows, wanted - len(rows))

    def _apply_pod(self, manifest: Manifest, key: str) -> None:
        from kschedx.answer.subject import admitted

        if key in self.snapshot.pods.rows:
            self._drop([self.snapshot.pods.rows[key]])
        subject = admitted(self.snapshot, manifest, self._setup)
        self.snapshot = subject.snapshot
        self._add([subject.pod])

    # --- single fields

    def _set(self, target: str, path: str, text: str) -> None:
        value = _scalar(text)
        if target.startswith("node/"):
            self._put(_with_field(self._node(target), path, value))
            return
        workload = self._workload(target)
        if workload.kind == "Pod":
            row = self.snapshot.pods.rows[f"{workload.namespace}/{workload.name}"]
            pod = _with_field(self.snapshot.pods[row], path, value)
            self._drop([row])
            unbound = replace(pod, spec=replace(pod.spec, node_name=""))
            self._add([unbound])
            return
        manifest = workloads.manifest_of(self.snapshot, workload)
        if manifest is None:
            raise InputError(f"the snapshot has pods of {workload.reference}, and not its manifest")
        self._apply_maker(with_value(manifest, path, value))


def like_pod(snapshot: Snapshot, pod: Pod, count: int) -> list[Pod]:
    """More pods of the same template, which wait."""
    spec, status = replace(pod.spec, node_name=""), type(pod.status)()
    used = snapshot.pods.rows
    made: list[Pod] = []
    number = 0
    while len(made) < count:
        number += 1
        name = f"{pod.metadata.name}-new{number}"
        if f"{pod.metadata.namespace}/{name}" in used:
            continue
        metadata = replace(
            pod.metadata,
            name=name,
            uid=f"new/{pod.metadata.namespace}/{name}",
            creation_timestamp=None,
            deletion_timestamp=None,
        )
        made.append(Pod(metadata=metadata, spec=spec, status=status))
    return made


def merged(snapshot: Snapshot, more: Snapshot) -> Snapshot:
    """The cluster with other objects than pods and what makes them; of one name the later one counts."""
    storage, devices = snapshot.storage, snapshot.devices
    added_claims = {key: storage.with_default(claim) for key, claim in more.storage.claims.items()}
    nodes = more.cluster.nodes
    changed = replace(
        snapshot,
        namespaces={**snapshot.namespaces, **more.namespaces},
        namespace_annotations={**snapshot.namespace_annotations, **more.namespace_annotations},
        limit_ranges={**snapshot.limit_ranges, **more.limit_ranges},
        runtime_classes={**snapshot.runtime_classes, **more.runtime_classes},
        services=_replaced(snapshot.services, more.services),
        disruption_budgets=_replaced(snapshot.disruption_budgets, more.disruption_budgets),
        priority_classes={**snapshot.priority_classes, **more.priority_classes},
        pod_groups={**snapshot.pod_groups, **more.pod_groups},
        storage=replace(
            storage,
            volumes={**storage.volumes, **more.storage.volumes},
            claims={**storage.claims, **added_claims},
            classes={**storage.classes, **more.storage.classes},
            csi_nodes={**storage.csi_nodes, **more.storage.csi_nodes},
            csi_drivers={**storage.csi_drivers, **more.storage.csi_drivers},
            capacities=(*storage.capacities, *more.storage.capacities),
        ),
        devices=replace(
            devices,
            claims={**devices.claims, **more.devices.claims},
            classes={**devices.classes, **more.devices.classes},
            templates={**devices.templates, **more.devices.templates},
            slices=(*devices.slices, *more.devices.slices),
            derived_from_slices={},
        ),
        _tables={},
    )
    return with_changed_nodes(changed, nodes) if nodes else changed


def _replaced(before: Sequence[T], more: Sequence[T]) -> tuple[T, ...]:
    def key(one: T) -> tuple[str, str]:
        metadata = one.metadata  # type: ignore[attr-defined] # every record of a kind has it
        return metadata.namespace, metadata.name

    return tuple({**{key(one): one for one in before}, **{key(one): one for one in more}}.values())


def _first_to_go(snapshot: Snapshot, workload: Workload, rows: Sequence[int]) -> list[int]:
    """Rows in the order in which a controller deletes pods: of a StatefulSet the highest ordinal first; else those
    without a node, then where most of its pods share a node, then the youngest (pkg/controller/controller_utils.go)."""
    pods = snapshot.pods
    if workload.kind == "StatefulSet":
        return sorted(rows, key=lambda row: -_ordinal(pods.names[row]))
    here = [int(pods.node[row]) for row in rows]
    ordered = sorted(rows, key=lambda row: (pods.creation_timestamps[row] or "9999", row), reverse=True)
    ordered.sort(key=lambda row: -here.count(int(pods.node[row])) if pods.node[row] >= 0 else 0)
    ordered.sort(key=lambda row: pods.node[row] >= 0)
    return ordered


def _ordinal(name: str) -> int:
    digits = name.rpartition("-")[2]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 0


def _template(manifest: Manifest) -> object:
    spec = manifest.get("spec")
    return spec.get("template") if isinstance(spec, dict) else None


def _divided(text: str, sign: str, allowed: str) -> tuple[str, str]:
    before, found, after = text.partition(sign)
    if not found or not before or not after:
        raise InputError(f'found "{text}", allowed is {allowed}')
    return before, after


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", text):
        raise InputError(f'found "{text}", expected a number')
    number = int(text)
    if number > MOST_NODES:
        raise InputError(f"found {number:,}, at most {MOST_NODES:,} are simulated")
    return number


def _scalar(text: str) -> object:
    """As YAML reads it: a number, true, false, null, or JSON; anything else is a text."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _with_field(record: T, path: str, value: object) -> T:
    """A node or a pod with one field set. Raises `InputError` for a field that scheduling does not read."""
    written = cast("dict[str, object]", msgspec.to_builtins(record))
    wanted = with_value(written, path, value)
    try:
        changed = msgspec.convert(wanted, type(record))
    except msgspec.ValidationError as error:
        raise InputError(str(error)) from None
    if changed == record and wanted != written:
        raise InputError(f'"{path}" is no field that scheduling reads')
    return changed
