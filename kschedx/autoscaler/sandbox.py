"""The copy of the cluster in which cluster-autoscaler adds nodes and places pods, with undo.

Upstream: simulator/clustersnapshot (PredicateSnapshot, SchedulerPluginRunner).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.cycle import PreFilterOutcome
from kschedx.framework.interface import CycleState, FilterPlugin, Room
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import binding_effects
from kschedx.framework.status import Code, Status, Verdicts
from kschedx.kube.devices import ResourceClaim, ResourceSlice
from kschedx.kube.types import Node, Pod
from kschedx.plugins.node_resources_fit import NodeResourcesFit
from kschedx.releases.plugins import Trait, plugins_with
from kschedx.snapshot.columns import BoolArray, ClusterRow, ClusterRows, IntArray, TableRow, cluster_rows
from kschedx.snapshot.devices import slices_on
from kschedx.snapshot.moving_cluster import MovingCluster
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

OF_OTHERS = plugins_with(Trait.ABOUT_OTHER_NODES)  # Filter plugins that read other nodes

_PRE_FILTER_FAILED = "PreFilter failed"
_PRE_FILTER_LEFT_OUT = "PreFilter filtered the Node out"


class TemplateVerdict(Struct, frozen=True, kw_only=True):
    """Whether a pod fits a node, and if not, the first plugin's rejection."""

    fits: bool
    plugin: str = ""
    reasons: tuple[str, ...] = ()
    error: str = ""  # the error, if it is not a Filter plugin's rejection


FITS = TemplateVerdict(fits=True)


class AddedNode(Struct, frozen=True, kw_only=True):
    node: Node
    pods: tuple[int, ...] = ()  # rows of pods without a node; copies of them run on the new node
    slices: tuple[ResourceSlice, ...] = ()  # of another node; copies of them describe the new node's devices

    def own_slices(self) -> tuple[ResourceSlice, ...]:
        return slices_on(self.node.name, self.slices)


class _Brought(Struct, frozen=True, kw_only=True):
    """A new node of the sandbox, with its pods."""

    node: ClusterRow
    pods: IntArray


class NewNodeResult(Struct, frozen=True, kw_only=True):
    """The PreFilter and Filter results for a pod on one new node, among other new nodes that must not count."""

    stopped: TemplateVerdict | None  # PreFilter's rejection, if any
    rejections: tuple[TemplateVerdict, ...]  # the rejections of plugins that read only the node, in order
    statuses: Callable[[], tuple[Status, ...]]  # return them with their findings
    index: int  # the node's index among the new ones
    new: tuple[_Brought, ...]
    labels_of_new: tuple[Mapping[str, str], ...]
    state: CycleState
    filters: tuple[str, ...]  # the profile's Filter plugins, in order
    room: Room | None  # NodeResourcesFit's inequality on the new nodes, if it consists of sums only
    pods: PodTable
    empty_selector_counts: bool

    @property
    def node(self) -> ClusterRow:
        return self.new[self.index].node

    @property
    def labels(self) -> Mapping[str, str]:
        return self.labels_of_new[self.index]


class Sandbox:
    """A changing snapshot. Pods and nodes are given by row. Rows of removed nodes are not reused before the change is
    undone."""

    def __init__(self, framework: Framework, *, names_count: bool = True) -> None:
        """`names_count`: whether a node that PreFilter does not name is rejected in a check of that node alone."""
        self._framework = framework
        self._names_count = names_count
        self._pods: dict[int, Pod] = {}
        self.last = ClusterRow(0)  # the result of the last search; the next one starts after it

    @property
    def snapshot(self) -> Snapshot:
        return self._framework.snapshot

    @property
    def node_count(self) -> int:
        return len(self.snapshot.cluster.nodes)

    def node(self, row: ClusterRow) -> Node:
        return self.snapshot.cluster.nodes[row]

    def pod(self, row: int) -> Pod:
        if row not in self._pods:
            self._pods[row] = self.snapshot.pods[row]
        return self._pods[row]

    @contextmanager
    def fork(self) -> Iterator[None]:
        """Undo all changes in the block at its end."""
        before = self._framework
        try:
            yield
        finally:
            self._framework = before

    # --- changes

    def _become(self, snapshot: Snapshot) -> None:
        self._framework = self._framework.on(snapshot)

    def place(self, pod: int, node: ClusterRow) -> None:
        self.place_each({pod: node})

    def place_each(self, places: Mapping[int, ClusterRow]) -> None:
        for row, node in places.items():
            self._allocate(row, node)
        pods = self.snapshot.pods.placed(np.array([*places]), np.array([*places.values()]))
        self._become(replace(self.snapshot, pods=pods, _tables={}))

    def _allocate(self, row: int, node: ClusterRow) -> None:
        """Allocate devices to the claims of a pod on a node; the autoscaler does not for extended resources."""
        pod = self.pod(row)
        if pod.spec.resource_claims:
            for effect in binding_effects(self._framework, pod, node):
                self._change_claims(effect.devices)

    def _change_claims(self, changed: Mapping[str, ResourceClaim | None]) -> None:
        self._become(self.snapshot.with_devices(self.snapshot.devices.with_claims(changed)))

    def add(self, new: AddedNode) -> ClusterRow:
        return self.bring((new,))[0].node

    def bring(self, news: Sequence[AddedNode]) -> tuple[_Brought, ...]:
        brought: list[_Brought] = []
        cluster, first = self.snapshot.cluster, len(self.snapshot.pods)
        pods: list[int] = []
        nodes: list[ClusterRow] = []
        for new in news:
            row = ClusterRow(len(cluster.nodes))
            cluster = cluster.with_added(new.node)
            start = first + len(pods)
            pods += new.pods
            nodes += [row] * len(new.pods)
            brought.append(_Brought(node=row, pods=np.arange(start, first + len(pods), dtype=np.int64)))
        copied = np.array(pods, dtype=np.int64)
        grown = self.snapshot.pods.with_copies(copied, cluster_rows(nodes), len(cluster.nodes))
        devices = self.snapshot.devices.with_slices([each for new in news for each in new.own_slices()])
        self._become(replace(self.snapshot, cluster=cluster, pods=grown, devices=devices, _tables={}))
        return tuple(brought)

    def _unbind(self, row: int) -> None:
        pod = self.pod(row)
        self._pods[row] = replace(pod, spec=replace(pod.spec, node_name=""))

    # --- queries

    def _pre_filter(self, row: int) -> tuple[Pod, CycleState, PreFilterOutcome]:
        pod, state = self.pod(row), CycleState()
        return pod, state, self._framework.run_pre_filter(state, pod)

    def check(self, row: int, node: ClusterRow) -> TemplateVerdict:
        """Run PreFilter over the whole cluster, then Filter on the node, without a change."""
        pod, state, pre_filter = self._pre_filter(row)
        stopped = self._pre_filter_rejection(pre_filter, node)
        if stopped is not None:
            return stopped
        outcome = self._framework.run_filters(state, pod, self._framework.nodes.at(cluster_rows([node])))
        first = int(outcome.plugin[0])
        return FITS if first < 0 else _verdict(outcome.verdicts[first], 0, outcome.plugins[first])

    def check_new_nodes(self, row: int, new: Sequence[_Brought]) -> tuple[NewNodeResult, ...]:
        """Run PreFilter once, then Filter on each of these nodes."""
        framework = self._framework
        pod, state, pre_filter = self._pre_filter(row)
        table = framework.nodes.at(cluster_rows([brought.node for brought in new]))
        rejections: list[list[tuple[str, Verdicts]]] = [[] for _ in new]
        room: Room | None = None
        if pre_filter.status.is_success:
            outcome = framework.run_filters(state, pod, table)
            for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True):
                for index in np.flatnonzero(verdicts.rejected).tolist() if plugin not in OF_OTHERS else ():
                    rejections[index].append((plugin, verdicts))
            room = self._room(state, pod, table)
        labels = tuple(self.node(brought.node).metadata.labels for brought in new)
        return tuple(
            NewNodeResult(
                stopped=self._pre_filter_rejection(pre_filter, brought.node),
                rejections=tuple(_verdict(verdicts, index, plugin) for plugin, verdicts in rejections[index]),
                statuses=partial(_statuses, rejections[index], index),
                index=index,
                new=tuple(new),
                labels_of_new=labels,
                state=state,
                filters=framework.profile.points["filter"],
                room=room,
                pods=self.snapshot.pods,
                empty_selector_counts=framework.release.behavior.empty_selector_counts_every_pod,
            )
            for index, brought in enumerate(new)
        )

    def _leaves_out(self, outcome: PreFilterOutcome, node: ClusterRow) -> bool:
        return self._names_count and outcome.nodes is not None and self.node(node).name not in outcome.nodes

    def _pre_filter_rejection(self, outcome: PreFilterOutcome, node: ClusterRow) -> TemplateVerdict | None:
        """Return PreFilter's rejection of the node, or None if Filter decides."""
        status = outcome.status
        if not status.is_success:
            return TemplateVerdict(fits=False, plugin=status.plugin, reasons=status.reasons, error=_PRE_FILTER_FAILED)
        if self._leaves_out(outcome, node):
            return TemplateVerdict(fits=False, plugin=", ".join(outcome.naming), error=_PRE_FILTER_LEFT_OUT)
        return None

    def _room(self, state: CycleState, pod: Pod, nodes: NodeTable) -> Room | None:
        fit = (it for it in self._framework.plugins("filter", FilterPlugin) if isinstance(it, NodeResourcesFit))
        return next((plugin.room(state, pod, nodes) for plugin in fit), None)

    def rejections(self, row: int, node: ClusterRow) -> tuple[Status, ...]:
        """Return every plugin that rejects the pod on the node, with its findings; only PreFilter's if it rejects."""
        pod, state, pre_filter = self._pre_filter(row)
        if not pre_filter.status.is_success:
            return (pre_filter.status,)
        if self._leaves_out(pre_filter, node):
            return (Status(code=Code.UNSCHEDULABLE_AND_UNRESOLVABLE, plugin=", ".join(pre_filter.naming)),)
        outcome = self._framework.run_filters(state, pod, self._framework.nodes.at(cluster_rows([node])))
        return tuple(
            verdicts.status(TableRow(0), plugin)
            for plugin, verdicts in zip(outcome.plugins, outcome.verdicts, strict=True)
            if verdicts.rejected[0]
        )

    def find(self, row: int, among: BoolArray | None = None) -> ClusterRow | None:
        """Return the first node (within the mask) that fits the pod, starting after the last result; cordoned nodes are
        left out."""
        pod, state, outcome = self._pre_filter(row)
        passed = self._feasible_nodes(pod, state, outcome, among)
        return self.next_of(passed) if len(passed) else None

    def next_of(self, nodes: ClusterRows) -> ClusterRow:
        """Return the first of some ascending nodes after the last result."""
        at = int(np.searchsorted(nodes, self.last, side="right"))
        self.last = ClusterRow(int(nodes[at % len(nodes)]))
        return self.last

    def _feasible_nodes(
        self, pod: Pod, state: CycleState, outcome: PreFilterOutcome, among: BoolArray | None = None
    ) -> ClusterRows:
        framework = self._framework
        open_ = ~framework.nodes.unschedulable
        if among is not None:
            open_ &= among
        if outcome.nodes is not None:
            named = np.zeros(len(open_), dtype=np.bool_)
            named[framework.nodes.only(outcome.nodes).rows] = True
            open_ &= named
        rows = ClusterRows(np.flatnonzero(open_))
        if not outcome.status.is_success or not len(rows):
            return ClusterRows(rows[:0])
        return ClusterRows(rows[framework.run_filters(state, pod, framework.nodes.at(rows)).passed])

    def takers(self, row: int) -> ClusterRows | None:
        """Return the nodes, ascending, that fit a pod which leaves its own, if other pods only affect free resources.
        None if they affect more, or if the pod's volumes or devices count."""
        self._unbind(row)
        pod, state, outcome = self._pre_filter(row)
        framework, spec = self._framework, pod.spec
        has_claims = spec.resource_claims or any(it.persistent_volume_claim or it.ephemeral for it in spec.volumes)
        if has_claims or not outcome.status.is_success or framework.room(state, pod, framework.nodes) is None:
            return None
        return self._feasible_nodes(pod, state, outcome)

    def has_room(self, row: int, node: ClusterRow, more: Sequence[int]) -> bool:
        """Return whether one of a pod's `takers` fits it together with these pods."""
        pod, state, _ = self._pre_filter(row)
        room = self._framework.room(state, pod, self._framework.nodes.at(cluster_rows([node])))
        assert room is not None
        used = room.used[0] + room.weights(np.array(more, dtype=np.int64)).sum(axis=0)
        return bool((used <= room.limit[0]).all())

    def refusals(self, row: int, among: BoolArray) -> Mapping[str, int]:
        """Return the reasons of nodes (within the mask) that reject the pod, with their numbers."""
        framework = self._framework
        pod, state, pre_filter = self._pre_filter(row)
        rows = ClusterRows(np.flatnonzero(among & ~framework.nodes.unschedulable))
        if not pre_filter.status.is_success:
            return dict.fromkeys(pre_filter.status.reasons, len(rows))
        outcome = framework.run_filters(state, pod, framework.nodes.at(rows))
        counts: Counter[str] = Counter()
        for index, first in enumerate(outcome.plugin.tolist()):
            if first >= 0:
                counts.update(outcome.verdicts[first].reasons[index])
            elif pre_filter.nodes is not None and self.node(ClusterRow(int(rows[index]))).name not in pre_filter.nodes:
                counts.update(pre_filter.naming)
        return counts


class MovingSandbox(Sandbox):
    """A sandbox whose changes cost the same in any cluster; nodes are not added."""

    def __init__(self, sandbox: Sandbox) -> None:
        """`sandbox` is not changed."""
        self._moving = MovingCluster(sandbox.snapshot)
        self._seen = self._moving.snapshot
        super().__init__(sandbox._framework.on(self._seen), names_count=sandbox._names_count)
        self._pods = dict(sandbox._pods)

    @contextmanager
    def fork(self) -> Iterator[None]:
        mark = self._moving.mark()
        try:
            yield
        finally:
            self._moving.revert(mark)
            self._catch_up()

    def _change_claims(self, changed: Mapping[str, ResourceClaim | None]) -> None:
        self._moving.set_device_claims(changed)

    def place_each(self, places: Mapping[int, ClusterRow]) -> None:
        for row, node in places.items():
            self._allocate(row, node)
        self._moving.place_many(np.array([*places]), np.array([*places.values()]))

    def release(self, pods: IntArray) -> None:
        self._change_claims(self.snapshot.devices.released_by({self.snapshot.pods.key(row) for row in pods.tolist()}))

    def leave(self, pods: IntArray) -> None:
        """Remove pods from their nodes, so that they may go anywhere."""
        for row in pods.tolist():
            self._unbind(row)
            self._moving.remove(row)

    def replace_node(self, row: ClusterRow, node: Node) -> None:
        self._moving.replace_node(row, node)
        self._catch_up()

    def _catch_up(self) -> None:
        if self._moving.snapshot is not self._seen:
            self._seen = self._moving.snapshot
            self._framework = self._framework.on(self._seen)


class Evacuation:
    """Empties nodes of a sandbox, each separately: their pods move, one after the other, to the first other node that
    fits. Nodes are evaluated once for pods that filters cannot distinguish, as long as only free resources matter."""

    def __init__(
        self, sandbox: Sandbox, nodes: Collection[ClusterRow], empty: Callable[[MovingSandbox, ClusterRow], None]
    ) -> None:
        """`nodes` are the ones to try; `empty` cordons a node and removes its pods."""
        self._sandbox, self._empty = MovingSandbox(sandbox), empty
        self._open = np.zeros(sandbox.node_count, dtype=np.bool_)
        self._open[list(nodes)] = True
        self._takers: dict[tuple[int, ...], ClusterRows | None] = {}
        """By the codes of a pod's spec, labels, namespace, and owners."""

    def places(self, rows: Sequence[int], here: ClusterRow | None) -> tuple[list[str], Mapping[str, int] | None]:
        """Return the pods' new nodes up to the first pod that fits nowhere, and the reasons for that one."""
        sandbox, places, unplaced = self._sandbox, list[ClusterRow](), dict[int, ClusterRow]()
        others, left = self._open.copy(), here
        if here is not None:
            others[here] = False
        sees_all = here is None or not self._hides_terms(here)
        takers = [self._takers_of(row) if sees_all else None for row in rows]
        refusals: Mapping[str, int] | None = None
        with sandbox.fork():
            sandbox.last = ClusterRow(0)

            def catch_up() -> None:
                nonlocal left
                if left is not None:
                    self._empty(sandbox, left)
                    left = None
                if unplaced:
                    sandbox.place_each(unplaced)
                    unplaced.clear()

            for row, known in zip(rows, takers, strict=True):
                if known is None:
                    catch_up()
                    place = sandbox.find(row, others)
                else:
                    place = self._next(row, ClusterRows(known[others[known]]), {*places}, unplaced)
                if place is None:
                    catch_up()
                    refusals = sandbox.refusals(row, others)
                    break
                places.append(place)
                unplaced[row] = place
        return [sandbox.node(place).name for place in places], refusals

    def _next(
        self, row: int, takers: ClusterRows, used: Collection[ClusterRow], unplaced: Mapping[int, ClusterRow]
    ) -> ClusterRow | None:
        while len(takers):
            node = self._sandbox.next_of(takers)
            if node not in used or self._sandbox.has_room(row, node, [it for it, on in unplaced.items() if on == node]):
                return node
            takers = ClusterRows(takers[takers != node])
        return None

    def _takers_of(self, row: int) -> ClusterRows | None:
        pods = self._sandbox.snapshot.pods
        # owners have selectors, which default spread constraints use
        columns = (pods.specs, pods.labels, pods.namespaces, pods.owners)
        key = tuple(int(column.codes[row]) for column in columns)
        if key not in self._takers:
            self._takers[key] = self._sandbox.takers(row)
        return self._takers[key]

    def _hides_terms(self, here: ClusterRow) -> bool:
        """Return whether a pod there has an anti-affinity term that matters only after the pod has moved."""
        labels, pods = self._sandbox.node(here).metadata.labels, self._sandbox.snapshot.pods
        specs = (pods.specs[row] for row in pods.on_node(here).tolist())
        return any(term.topology_key not in labels for spec in specs for term in spec.required_anti_affinity)


def _statuses(rejections: Iterable[tuple[str, Verdicts]], index: int) -> tuple[Status, ...]:
    return tuple(verdicts.status(TableRow(index), plugin) for plugin, verdicts in rejections)


def _verdict(verdicts: Verdicts, index: int, plugin: str) -> TemplateVerdict:
    code, reasons = Code(int(verdicts.codes[index])), verdicts.reasons[index]
    if code.is_rejection:
        return TemplateVerdict(fits=False, plugin=plugin, reasons=reasons)
    wrapped = tuple(f'running "{plugin}" filter plugin: {reason}' for reason in reasons)
    return TemplateVerdict(fits=False, plugin=plugin, reasons=wrapped, error=f'unexpected filter status "{code.text}"')
