"""The DaemonSet controller: its rolling update, and the pods that it creates for the nodes that the template allows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct

from kschedx.apiserver.defaulting import default_pod
from kschedx.controllers.deployment import DaemonSetUpdate
from kschedx.controllers.workloads import copy_pod, is_of_daemon_set, title
from kschedx.errors import NotAdmittedError, NotReadError
from kschedx.explain.setup import Setup, admit
from kschedx.grouping import group_pairs
from kschedx.kube.conditions import reports_ready
from kschedx.kube.decoding import Manifest, decode, encode
from kschedx.kube.documents import with_spec
from kschedx.kube.types import Node, Pod, PodSpec
from kschedx.kube.workloads import continues_on, created_pod, pin_to_node, pinned_to, runs_on
from kschedx.snapshot.columns import Memo
from kschedx.snapshot.daemon_sets import daemon_pods
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

# The DaemonSet controller's rolling update: which old pods it deletes and where it creates new ones next. One call is
# one sync of the controller. Upstream: pkg/controller/daemon/update.go. The controller goes through nodes in random
# order; here it is the order of `nodes`.


class NodePods(Struct, frozen=True, kw_only=True):
    """Whether the pods that are on a node or pending for it are available; None without such a pod."""

    old: bool | None = None
    new: bool | None = None
    is_terminating: bool = False  # whether another pod stays terminating, for which no pod is created until it is gone

    @property
    def is_missing(self) -> bool:
        return self.old is None and self.new is None and not self.is_terminating

    @property
    def is_stuck(self) -> bool:
        return self.old is None and self.new is None and self.is_terminating


class DaemonSetSync(Struct, frozen=True, kw_only=True):
    """The nodes whose old pod one sync deletes, and the nodes on which it creates a new one."""

    delete: tuple[str, ...] = ()
    create: tuple[str, ...] = ()


def sync(update: DaemonSetUpdate | None, nodes: Mapping[str, NodePods]) -> DaemonSetSync:
    """Return what one sync changes; `nodes` are all that should have a pod. Without an `update`, old pods stay until
    they are deleted (OnDelete)."""
    surge = 0 if update is None else update.surge
    missing = tuple(name for name, pods in nodes.items() if pods.is_missing)
    replaced = tuple(name for name, pods in nodes.items() if surge and _is_replaced(pods))
    if missing or replaced or update is None:  # updates wait until these pods are created and deleted
        return DaemonSetSync(create=missing, delete=replaced)
    outdated = {name: pods.old for name, pods in nodes.items() if pods.old is not None and pods.new is None}
    broken = [name for name, is_available in outdated.items() if not is_available]
    candidates = [name for name, is_available in outdated.items() if is_available]
    starting = sum(pods.new is False for pods in nodes.values() if not surge or pods.old is not None)
    starting += 0 if surge else sum(pods.is_stuck for pods in nodes.values())
    if surge:  # new pods beside old ones
        return DaemonSetSync(create=(*broken, *candidates[: max(surge - starting, 0)]))
    return DaemonSetSync(delete=(*broken, *candidates[: max(update.unavailable - len(broken) - starting, 0)]))


def _is_replaced(pods: NodePods) -> bool:
    """Whether the old pod of a node with a new one is deleted: it stays only while it is ready and the new one is not
    available."""
    return pods.old is not None and (pods.new is True or (pods.new is not None and not pods.old))


def pods_for(
    snapshot: Snapshot, setup: Setup, manifest: Manifest, is_wanted: Callable[[str], bool]
) -> tuple[Snapshot, list[Pod]]:
    """Return the cluster with the objects that are created for the pods, and the pending pods for the wanted nodes that
    the template allows. `is_wanted` takes a node's name. Raises `InputError` with the DaemonSet."""
    applied = created_pod(manifest)
    subject = admit(snapshot, applied.pod, setup, title=title(manifest), dependents=applied.others, maker=manifest)
    wanted = [node for node in snapshot.cluster.nodes if is_wanted(node.name)]
    runs = _allowed_nodes(subject.pod.spec, wanted, setup.release.compares_taints)
    return _pinned_copies(subject.snapshot, subject.pod, runs) if runs else (snapshot, [])


def _allowed_nodes(spec: PodSpec, nodes: Iterable[Node], comparison: bool) -> list[str]:
    """Return the nodes for which the controller creates a pod with this spec."""
    return [node.name for node in nodes if runs_on(spec, node, comparison=comparison)]


def _pinned_copies(snapshot: Snapshot, pod: Pod, names: Sequence[str]) -> tuple[Snapshot, list[Pod]]:
    """Return the cluster with the pods' own claims, and a pending copy of the pod for each of these nodes."""
    snapshot, pods = copy_pod(snapshot, pod, len(names))
    return snapshot, [pin_to_node(copy, name) for copy, name in zip(pods, names, strict=True)]


def nodes_of_daemon_set(snapshot: Snapshot, setup: Setup, manifest: Manifest) -> tuple[list[str], frozenset[str]]:
    """Return the nodes for which the controller creates a pod, in their order, and the nodes on which an existing pod
    may stay. If the API server refuses the pods, or that is unknown, the template decides. Raises `InputError`."""
    template = created_pod(manifest).pod
    try:
        spec = admit(snapshot, template, setup, title=title(manifest), maker=manifest).pod.spec
    except (NotAdmittedError, NotReadError):
        spec = default_pod(decode(encode(template, "pod"), Pod)).spec
    comparison = setup.release.compares_taints
    nodes = snapshot.cluster.nodes
    runs = _allowed_nodes(spec, nodes, comparison)
    return runs, frozenset(node.name for node in nodes if continues_on(spec, node, comparison=comparison))


def home_node(pods: PodTable, row: int) -> str:
    """Return the node of a DaemonSet's pod; for a pending pod, the node to which it is pinned."""
    return pods.node_names[row] or pinned_to(pods.specs[row])


class _DaemonSetReaction(Struct, frozen=True, kw_only=True):
    """The reaction of DaemonSets to changed nodes."""

    snapshot: Snapshot  # the cluster with the objects that are created for the new pods, but without these pods
    created: tuple[Pod, ...]  # pending pods for nodes that the template allows only now
    gone: tuple[int, ...]  # rows of pods on nodes that the template no longer allows


def react_to_nodes(snapshot: Snapshot, setup: Setup, changed: Iterable[tuple[Node, Node]]) -> _DaemonSetReaction:
    """Return the controllers' reaction to nodes with other labels and taints; each pair is a node before and after."""
    comparison = setup.release.compares_taints
    changed = list(changed)
    new_pods: list[Pod] = []
    gone: list[int] = []
    for daemon_pod in daemon_pods(snapshot, setup.scheduler.nodes.options):
        rows_by_node = _rows_by_node(snapshot, daemon_pod.pod, {now.name for _, now in changed})
        names = []
        for before, now in changed:
            rows = rows_by_node.get(now.name, [])
            runs = runs_on(daemon_pod.spec, now, comparison=comparison)
            if runs and not rows and not runs_on(daemon_pod.spec, before, comparison=comparison):
                names.append(now.name)
            elif rows and not continues_on(daemon_pod.spec, now, comparison=comparison):
                gone += rows if continues_on(daemon_pod.spec, before, comparison=comparison) else []
        snapshot, pods = _pinned_copies(snapshot, daemon_pod.pod, names)
        new_pods += pods
    return _DaemonSetReaction(snapshot=snapshot, created=tuple(new_pods), gone=tuple(gone))


def _rows_by_node(snapshot: Snapshot, pod: Pod, names: Collection[str]) -> Mapping[str, list[int]]:
    """Return the rows of a DaemonSet's pods, by their `home_node`."""
    pods = snapshot.pods
    owner = next((reference.name for reference in pod.metadata.owner_references if reference.controller), "")
    rows_by_node: dict[str, list[int]] = {}
    for code, owners in enumerate(pods.owners.values):
        if not any(it.controller and it.kind == "DaemonSet" and it.name == owner for it in owners):
            continue
        for row in (pods.owners.codes == code).nonzero()[0].tolist():
            node = home_node(pods, row)
            if node in names and pods.namespaces[row] == pod.metadata.namespace:
                rows_by_node.setdefault(node, []).append(row)
    return rows_by_node


def daemons_on(snapshot: Snapshot, setup: Setup, nodes: Collection[Node]) -> tuple[Snapshot, list[Pod]]:
    """Return the cluster with the objects that are created for the pods, and the pods of DaemonSets on added nodes."""
    new_pods: list[Pod] = []
    for daemon in daemon_pods(snapshot, setup.scheduler.nodes.options):
        names = _allowed_nodes(daemon.spec, nodes, setup.release.compares_taints)
        snapshot, pods = _pinned_copies(snapshot, daemon.pod, names)
        new_pods += (with_spec(pod, node_name=name) for pod, name in zip(pods, names, strict=True))
    return snapshot, new_pods


_AGENTS_DOWN = Memo[Mapping[str, Sequence[int]]]()


def agents_down(snapshot: Snapshot, node: str) -> tuple[str, ...]:
    """Return the pods of DaemonSets, `namespace/name`, that are pending for the node, not ready on it, or failed there
    and not recreated. What they set up there, such as a network or a storage driver, may be missing."""
    rows = _AGENTS_DOWN.of(snapshot.derived, lambda: _agents_down(snapshot)).get(node, ())
    return tuple(map(snapshot.pods.key, rows))


def _agents_down(snapshot: Snapshot) -> dict[str, list[int]]:
    """Return the rows of these pods by node, pending ones first."""
    pods, is_of_daemon = snapshot.pods, snapshot.pods.owners.where(is_of_daemon_set)
    waiting = [(pinned_to(pods.specs[row]), row) for row in pods.pending if is_of_daemon[row]]
    there = [(pods.node_names[row], row) for row in np.flatnonzero(is_of_daemon & (pods.node >= 0)).tolist()]
    ended = [(pods.node_names[row], row) for row in np.flatnonzero(is_of_daemon & pods.finished).tolist()]
    current = {(node, pods.owners.codes[row]) for node, row in (*waiting, *there)}
    unready = (pair for pair in there if not is_running(pods, pair[1]))
    failed = ((node, row) for node, row in ended if node and (node, pods.owners.codes[row]) not in current)
    return group_pairs((*waiting, *unready, *failed))


def is_running(pods: PodTable, row: int) -> bool:
    """Whether the pod is on a node, ready according to its conditions, and without a waiting container."""
    status = pods.statuses[row]
    return (
        bool(pods.node_names[row])
        and reports_ready(status.conditions)
        and not any(
            container_status.state is not None and container_status.state.waiting is not None
            for container_status in status.container_statuses
        )
    )
