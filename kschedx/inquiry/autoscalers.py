"""The autoscalers of a cluster that add nodes: cluster-autoscaler and Karpenter. Most clusters have none, so each is
loaded only if needed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.controllers.daemon_set import is_running
from kschedx.controllers.pod_lifecycle import add_on_rows
from kschedx.errors import InputError
from kschedx.explain.notes import Note, note
from kschedx.framework.scheduler import Scheduler
from kschedx.kube.autoscalers import KARPENTER_GROUP, NodePool
from kschedx.kube.devices import ResourceSlice
from kschedx.kube.documents import Document, Json, to_json
from kschedx.kube.types import AUTOSCALER_STATUS, UNSCHEDULABLE_STATUS, Node, Pod
from kschedx.simulate.changes import set_cordon
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.edits import with_changed_nodes, with_changed_pods
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.autoscaler.cluster import Autoscaler, AutoscalerGrowth, AutoscalerOptions
    from kschedx.inquiry.group_scaling import GroupScaling
    from kschedx.inquiry.pool_scaling import PoolScaling
    from kschedx.karpenter.cluster import Karpenter, KarpenterGrowth, KarpenterOptions

    Growth: TypeAlias = AutoscalerGrowth | KarpenterGrowth
    NodeAutoscaler: TypeAlias = Autoscaler | Karpenter
    NodeScaling: TypeAlias = GroupScaling | PoolScaling


class AutoscalingOptions(Struct, frozen=True, kw_only=True):
    """The user's options about each autoscaler; None for its defaults."""

    groups: AutoscalerOptions | None = None
    pools: KarpenterOptions | None = None


def options_after(options: AutoscalingOptions | None, growths: Iterable[Growth]) -> AutoscalingOptions | None:
    """Return the options about the autoscalers of a cluster to which they have added nodes."""
    for growth in growths:
        if growth.autoscaler == "cluster-autoscaler" and growth.groups:
            from kschedx.autoscaler.cluster import AutoscalerOptions

            options = options or AutoscalingOptions()
            sizes = {resize.group: resize.after for resize in growth.groups}
            options = replace(options, groups=replace(options.groups or AutoscalerOptions(), sizes=sizes))
    return options


def autoscalers_of(
    snapshot: Snapshot, autoscaling: AutoscalingOptions | tuple[NodeAutoscaler, ...] | None, scheduler: Scheduler
) -> tuple[tuple[NodeAutoscaler, ...], tuple[Note, ...]]:
    """Return the cluster's autoscalers, and a note for each whose objects cannot be read or do not exist. `autoscaling`
    has the user's options, or the autoscalers that are known already."""
    known = {autoscaler.name: autoscaler for autoscaler in autoscaling} if isinstance(autoscaling, tuple) else {}
    options = autoscaling if isinstance(autoscaling, AutoscalingOptions) else None
    autoscalers: list[NodeAutoscaler | None] = []
    notes: list[Note] = []
    for key, name, load in _AUTOSCALERS:
        try:
            autoscalers.append(known[name] if name in known else load(snapshot, options, scheduler))
        except InputError as error:
            notes.append(note(f"{key}-unreadable", f"{name} is not evaluated: {error}"))
    notes += (note("unknown-node-groups", text) for text in _unknown_groups(filter(None, autoscalers)))
    return tuple(filter(None, autoscalers)), (*notes, *_without_node_pools(snapshot))


_NODE_POOL = f"NodePool.{KARPENTER_GROUP}"


def _unknown_groups(autoscalers: Iterable[NodeAutoscaler]) -> Iterator[str]:
    """Yield which node groups the user names and the cluster lacks."""
    for autoscaler in autoscalers:
        if autoscaler.name == "cluster-autoscaler" and (text := autoscaler.unknown_groups_text):
            yield text


_PROVISIONER = "Provisioner.karpenter.sh"  # Karpenter before 0.32 adds nodes by them; they are not evaluated


def _without_node_pools(snapshot: Snapshot) -> Iterator[Note]:
    """Yield that Karpenter runs without a NodePool."""
    if snapshot.of(NodePool) or not any(is_running(snapshot.pods, row) for row in add_on_rows(snapshot, "Karpenter")):
        return
    source, kinds = snapshot.source, snapshot.source.kinds
    is_read = source.is_complete(_NODE_POOL) or any(number and "karpenter" in kind for kind, number in kinds.items())
    if is_read and not kinds.get(_PROVISIONER):
        yield note("no-node-pool", "Karpenter runs, and there is no NodePool: it adds no node until you create one")
    else:
        yield note("no-node-pool", "Karpenter runs, and the dump holds no NodePool: whether it helps is not known")


def _autoscaler(snapshot: Snapshot, options: AutoscalingOptions | None, scheduler: Scheduler) -> Autoscaler | None:
    if AUTOSCALER_STATUS not in snapshot.config_maps:
        return None
    from kschedx.autoscaler.cluster import Autoscaler, AutoscalerOptions

    return Autoscaler.of(_mark_unseen(snapshot), (options and options.groups) or AutoscalerOptions(), scheduler)


def _karpenter(snapshot: Snapshot, options: AutoscalingOptions | None, _: Scheduler) -> Karpenter | None:
    if not snapshot.of(NodePool):
        return None
    from kschedx.karpenter.cluster import Karpenter, KarpenterOptions

    return Karpenter.of(_mark_unseen(snapshot), (options and options.pools) or KarpenterOptions())


_AUTOSCALERS = (("autoscaler", "cluster-autoscaler", _autoscaler), ("karpenter", "Karpenter", _karpenter))
"""The key, the name, and the function that loads it, in the order of documents and screens."""


def scalings_of(autoscalers: Iterable[NodeAutoscaler], pod: Pod, *, is_changed: bool) -> Iterator[NodeScaling]:
    """Yield the decision of each autoscaler about a pod that fits no node; none about other pods. `is_changed`: whether
    the question changes the cluster, so that no event is about it."""
    for autoscaler in autoscalers:
        if autoscaler.name == "Karpenter":
            from kschedx.inquiry.pool_scaling import PoolScaling

            if (provisioning := autoscaler.explain(pod)) is not None:
                yield PoolScaling(autoscaler=autoscaler, decision=provisioning, pod=pod, is_changed=is_changed)
        elif (scaling := autoscaler.explain(pod)) is not None:
            from kschedx.inquiry.group_scaling import GroupScaling

            yield GroupScaling(autoscaler=autoscaler, decision=scaling, pod=pod, is_changed=is_changed)


def _growths_of(snapshot: Snapshot, options: AutoscalingOptions | None, scheduler: Scheduler) -> Iterator[Growth]:
    """Yield all nodes that each autoscaler adds, in the cluster with the nodes of the one before. Raises `InputError`
    for objects that cannot be read."""
    for _, _, load in _AUTOSCALERS:
        autoscaler = load(snapshot, options, scheduler)
        if autoscaler is not None:
            yield (growth := autoscaler.grow())
            snapshot = growth.snapshot


class NewNodes(Struct, frozen=True, kw_only=True):
    """The nodes that autoscalers add, with the pods of DaemonSets and the devices on them."""

    nodes: Sequence[Node] = ()
    pods: Sequence[Pod] = ()
    slices: Sequence[ResourceSlice] = ()

    def add_to(self, snapshot: Snapshot) -> Snapshot:
        """Return a cluster with these nodes and devices, and without the pods."""
        return with_changed_nodes(snapshot.with_devices(snapshot.devices.with_slices(self.slices)), self.nodes)


def growths_after(
    before: Snapshot,
    after: Snapshot,
    pending: Iterable[str],
    options: AutoscalingOptions | None,
    scheduler: Scheduler,
) -> tuple[NewNodes, tuple[Growth, ...]]:
    """Return the nodes that the autoscalers add for the pods which are pending after changes, and how they add those.
    `pending` are the pods for which kube-scheduler has found no node then. Raises `InputError` for objects that cannot
    be read."""
    known_after = _restore_cordoned(before, _mark_unschedulable(after, pending))
    growths = tuple(_growths_of(known_after, options, scheduler))
    if not growths:
        return NewNodes(), ()
    grown, known = growths[-1].snapshot, len(after.cluster.nodes)
    rows = range(known, len(grown.cluster.nodes))
    pods = [grown.pods[row] for node in rows for row in grown.pods.on_node(ClusterRow(node)).tolist()]
    slices = grown.devices.slices[len(after.devices.slices) :]
    return NewNodes(nodes=grown.cluster.nodes[known:], pods=pods, slices=slices), growths


def _mark_unschedulable(snapshot: Snapshot, pending: Iterable[str]) -> Snapshot:
    """Mark pods as kube-scheduler does if it finds no node for them."""
    pods, identical = snapshot.pods, defaultdict[tuple[int, int], list[int]](list)
    for row in (pods.rows[key] for key in pending if key in pods.rows):
        identical[int(pods.specs.codes[row]), int(pods.statuses.codes[row])].append(row)
    marked = ((np.array(rows), _as_rejected(pods[rows[0]])) for rows in identical.values())
    return with_changed_pods(snapshot, marked) if identical else snapshot


def _mark_unseen(snapshot: Snapshot) -> Snapshot:
    """Mark the pending pods without a condition: kube-scheduler is about to try them, or the dump leaves it out."""
    pods = snapshot.pods
    unseen = (row for row in pods.pending if not (pods.statuses[row].conditions or pods.specs[row].scheduling_gates))
    return _mark_unschedulable(snapshot, map(pods.key, unseen))


def _as_rejected(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, conditions=UNSCHEDULABLE_STATUS.conditions))


def _restore_cordoned(before: Snapshot, after: Snapshot) -> Snapshot:
    """Let nodes that the changes cordoned keep pods away by their taint alone: cluster-autoscaler remembers how a node
    was before it was cordoned, and a template without the taint of a cordon is as before."""
    was = {node.name for node in before.cluster.nodes if not node.spec.unschedulable}
    nodes = [
        replace(node, spec=replace(set_cordon(node, unschedulable=True).spec, unschedulable=False))
        for node in after.cluster.nodes
        if node.spec.unschedulable and node.name in was
    ]
    return with_changed_nodes(after, nodes) if nodes else after


def autoscaler_document(documents: Iterable[Document]) -> Json:
    """Return the value of the key `autoscaler`: in a cluster that has both, Karpenter's part stands in
    cluster-autoscaler's."""
    parts: list[Json] = [to_json(document) for document in documents]
    return {**parts[0], "karpenter": parts[1]} if len(parts) > 1 else {} if not parts else parts[0]
