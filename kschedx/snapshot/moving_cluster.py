"""A moving cluster: a snapshot whose columns change in place, with undo."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from functools import partial

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.kube.devices import ResourceClaim
from kschedx.kube.resources import PodRequest, RequestOptions, pod_request
from kschedx.kube.scalars import LATEST
from kschedx.kube.types import Node, Pod
from kschedx.snapshot.columns import (
    ClusterRow,
    ClusterRows,
    Column,
    IntArray,
    distinct,
    each_cluster_row,
    rows_by_group,
)
from kschedx.snapshot.devices import MovingDevices
from kschedx.snapshot.edits import with_only_pods, with_pods
from kschedx.snapshot.nodes import ClusterNodes, NodeTable
from kschedx.snapshot.pods import NodeRule, PodCopies, PodTable, Tally
from kschedx.snapshot.snapshot import Contents, Snapshot
from kschedx.snapshot.storage import MovingStorage, StorageChange

# The pods of a moving cluster, and the log of its moves.


class _MoveKind(IntEnum):
    """What a move does to a pod; the number is the change of its node's pod count."""

    PLACE = 1
    REMOVE = -1


_PLACE, _REMOVE = _MoveKind  # looking up an enum member would take longer than the rest of a move
_NOBODY = -1  # the pod of a move if the node itself or the volumes of its pods change


class Steps:
    """The log of moves: every pod that was placed or removed, and every node that changed, in order. Columns apply it
    later. It is append-only."""

    __slots__ = ("_count", "_moves")

    def __init__(self) -> None:
        self._count = 0
        self._moves: IntArray = np.empty((3, 64), dtype=np.int64)
        """(pod, node, or sign; move), with spare capacity. Readers get a view and copy nothing."""

    def __len__(self) -> int:
        return self._count

    def add(self, pod: int, node: ClusterRow, sign: int) -> None:
        self._moves_for(1)[:, 0] = pod, node, sign

    def add_many(self, pods: IntArray, nodes: IntArray, signs: IntArray | int) -> None:
        """Append many moves, in order."""
        added = self._moves_for(len(pods))
        added[0], added[1], added[2] = pods, nodes, signs

    def _moves_for(self, more: int) -> IntArray:
        """Return the columns of this many new moves, to be written."""
        first, self._count = self._count, self._count + more
        if self._count > self._moves.shape[1]:
            room = np.empty((3, max(more, self._moves.shape[1])), dtype=np.int64)
            self._moves = np.concatenate((self._moves, room), axis=1)
        return self._moves[:, first : self._count]

    def copy(self) -> Steps:
        steps = Steps()
        steps._count, steps._moves = self._count, self._moves.copy()
        return steps

    def since(self, seen: int) -> tuple[IntArray, IntArray, IntArray]:
        """(move,) pods, nodes, and signs of the moves after the first `seen`. Read-only."""
        pods, nodes, signs = self._moves[:, seen : self._count]
        return pods, nodes, signs


class _OnNodes(Struct):
    """The pods on each node: initial pods by group, and lists for nodes that a move has changed."""

    order: IntArray
    start: IntArray
    touched: dict[ClusterRow, IntArray] = field(default_factory=dict)
    moved: dict[ClusterRow, list[int]] = field(default_factory=dict)
    """Moves since a node's list was last used: rows of pods that were placed, and `~row` of those removed."""

    def on(self, node: ClusterRow) -> IntArray:
        moved = self.moved.pop(node, None)
        rows = self.touched.get(node)
        if rows is None:
            rows = self.order[self.start[node] : self.start[node + 1]]
        if moved:
            there = {*rows.tolist()}
            for pod in moved:
                if pod >= 0:
                    there.add(pod)
                else:
                    there.discard(~pod)
            rows = self.touched[node] = np.array(sorted(there), dtype=np.int64)
        return rows

    def add(self, pod: int, node: ClusterRow) -> None:
        self.moved.setdefault(node, []).append(pod)

    def remove(self, pod: int, node: ClusterRow) -> None:
        self.moved.setdefault(node, []).append(~pod)

    def copy(self) -> _OnNodes:
        moved = {node: [*rows] for node, rows in self.moved.items()}
        return _OnNodes(order=self.order, start=self.start, touched=dict(self.touched), moved=moved)


class _NodeNumbers(Struct):
    """A number for each node, as of the first `seen` steps."""

    sums: IntArray
    seen: int


class _TallySums(Struct):
    """A tally, with its sums as of the first `seen` steps."""

    pods: IntArray  # rows of the pods with a weight, running or not
    weights: IntArray
    sums: IntArray | None = None
    seen: int = 0


_MOST_SUMS = 400  # the tallies that keep their sums: a tally has few pods, but a number for each node


class _GroupCycle(Struct):
    began: IntArray | None = None  # (pod,) the nodes of the pods at its start; None outside a cycle


class MovingPods(PodTable, frozen=True, kw_only=True, dict=True):
    """The pods of a moving cluster. `node`, `node_names.codes`, and `nominated_node_names` change in place."""

    on_nodes: _OnNodes
    steps: Steps
    nominations: dict[int, str]  # rows of pods without a node to their nominated nodes
    group_cycle: _GroupCycle = field(default_factory=_GroupCycle)
    tallied: dict[Tally, _TallySums] = field(default_factory=dict)
    with_sums: list[_TallySums] = field(default_factory=list)
    numbered: dict[NodeRule, _NodeNumbers] = field(default_factory=dict)

    @classmethod
    def moving(cls, pods: PodTable, node_names: Column[str]) -> MovingPods:
        """Copy the pods with their own columns; `node_names` has every node among its values."""
        order, start = rows_by_group(pods.node, pods.node_count)
        shared = {name: getattr(pods, name) for name in PodTable.__struct_fields__}
        nominated = list(pods.nominated_node_names)
        own = {
            "node": pods.node.copy(),
            "node_names": node_names,
            "nominated_node_names": nominated,
            "phases": pods.phases.copy(),
            "grouped": None,
            "start_times": list(pods.start_times),
            "derived": dict(pods.derived),
            # pods that are deleted later have a phase of finished ones
            "counts_finished": pods.counts_finished or not pods.finished_unstored.any(),
        }
        return cls(
            **(shared | own),
            on_nodes=_OnNodes(order=order, start=start),
            steps=Steps(),
            nominations={row: nominated[row] for row in pods.nominated},
        )

    def own_starts(self) -> None:
        """Make `started` an array of this table."""
        shared = self.started
        self.derived.update({key: value.copy() for key, value in self.derived.items() if value is shared})

    @property
    def listed(self) -> IntArray | None:
        return self.group_cycle.began

    def on_node(self, node: ClusterRow) -> IntArray:
        return self.on_nodes.on(node)

    @property
    def nominated(self) -> tuple[int, ...]:
        return tuple(sorted(self.nominations))

    @property
    def pending(self) -> tuple[int, ...]:
        unfinished = ~self.finished
        return tuple(int(row) for row in np.flatnonzero(~self.node_names.where(bool) & unfinished))

    def tally(self, tally: Tally) -> IntArray:
        """As in `PodTable`, at the cost of the moves since the last call."""
        known = self.tallied.get(tally)
        if known is None:
            rows = tally.candidates(self)
            weights = tally.weights(self, rows)
            some = np.flatnonzero(weights)  # most tallies have few pods
            known = self.tallied[tally] = _TallySums(rows[some], weights[some])
        if known.sums is None:
            if len(self.with_sums) == _MOST_SUMS:
                for other in self.with_sums:
                    other.sums = None
                self.with_sums.clear()
            self.with_sums.append(known)
        if known.sums is None or len(known.pods) <= len(self.steps) - known.seen:
            known.sums, known.seen = self._sum_by_node(known.pods, known.weights), len(self.steps)
        elif known.seen < len(self.steps):
            pods, nodes, signs = self.steps.since(known.seen)
            if (signs == 0).any():
                pods, nodes, signs = pods[signs != 0], nodes[signs != 0], signs[signs != 0]
            weights = tally.weights(self, pods) * signs
            weights[nodes >= self.node_count] = 0  # pods of removed nodes were removed from them before
            if weights.any():
                known.sums = known.sums.copy()  # earlier results stay unchanged
                moved = np.flatnonzero(weights)
                np.add.at(known.sums, nodes[moved], weights[moved])
            known.seen = len(self.steps)
        return known.sums

    def _sum_by_node(self, rows: IntArray, weights: IntArray) -> IntArray:
        places = self.node[rows]
        running = places >= 0
        return np.bincount(places[running], weights=weights[running], minlength=self.node_count).astype(np.int64)

    def numbers(self, rule: NodeRule, number: Callable[[ClusterRow], int], rows: ClusterRows) -> IntArray:
        """As in `PodTable`, at the cost of the nodes changed since the last call."""
        known = self.numbered.get(rule)
        if known is None:
            every = super().numbers(rule, number, ClusterRows(np.arange(self.node_count)))
            known = self.numbered[rule] = _NodeNumbers(sums=every, seen=len(self.steps))
        _, changed, _ = self.steps.since(known.seen)
        for row in each_cluster_row(ClusterRows(distinct(changed))):
            if row < self.node_count:
                known.sums[row] = number(row)
        known.seen = len(self.steps)
        return known.sums[rows]

    def with_nodes(self, count: int) -> MovingPods:
        """Return the same columns with more nodes, which have no pods yet."""
        more = count - self.node_count
        on = self.on_nodes
        start = np.concatenate([on.start, np.full(more, on.start[-1])])
        tallied = {tally: replace(known, sums=None) for tally, known in self.tallied.items()}
        on_nodes = _OnNodes(order=on.order, start=start, touched=on.touched, moved=on.moved)
        return replace(self, node_count=count, on_nodes=on_nodes, tallied=tallied, numbered={})

    def without_node(self, node: ClusterRow) -> MovingPods:
        """Return the same columns without `node`, which has no pods; the rows after it move up by one. Moves of this
        table do not change the nodes in the old one. The node names are shared."""
        place = self.node - (self.node > node)
        order, start = rows_by_group(place, self.node_count - 1)
        on_nodes = _OnNodes(order=order, start=start)
        return replace(self, node=place, node_count=self.node_count - 1, on_nodes=on_nodes, tallied={}, numbered={})


# A moving cluster: a snapshot whose columns change in place. `MovingCluster.snapshot` changes with every move, so that
# a framework always reads the current state. `frozen()` returns it as a value. The cost of a move does not depend on
# the size of the cluster.


class _Move(Struct, frozen=True):
    """A pod that was placed on a node or removed from it, with the data to undo it."""

    kind: _MoveKind
    pod: int  # row of the PodTable
    node: ClusterRow
    node_name_code: int  # the code of the pod's previous node name
    nominated: str  # the pod's previous nominated node
    start_time: str | None
    started: int


class _Moves(Struct, frozen=True):
    """Moves of many pods, each of which moved once."""

    kind: _MoveKind
    pods: IntArray
    nodes: IntArray
    node_name_codes: IntArray
    nominated: Sequence[str]
    start_times: Sequence[str | None]
    started: IntArray


class _Tables(Struct, frozen=True):
    """The tables before a change of nodes, contents, or the number of pods."""

    snapshot: Snapshot
    pods: MovingPods
    change: int | Callable[[], object] | None = None
    """What suffices to undo the change without these tables; None for a change of nodes."""


_MOST_TABLES, _KEPT_TABLES = 12, 4
"""When more changes keep their tables, only the last ones still do, and the others are rebuilt when they are undone."""


_Undo = _Move | _Moves | _Tables | int | Callable[[], object]
"""A number is that of the pods before others were added; a function restores what it was made with."""


def _more_requests(pods: PodTable, more: Sequence[Pod], options: RequestOptions) -> Column[PodRequest]:
    """Append the requests of more pods, computed once for each spec object."""
    known = pods.requests(options)
    if isinstance(more, PodCopies):
        return known.with_copies(pod_request(more.model.spec, more.model.status, options), len(more))
    codes: list[int] = []
    values = list(known.values)
    code_of: dict[int, int] = {}
    for pod in more:
        code = code_of.setdefault(id(pod.spec), len(values))
        if code == len(values):
            values.append(pod_request(pod.spec, pod.status, options))
        codes.append(code)
    return Column(np.concatenate([known.codes, np.array(codes, dtype=np.int64)]), values)


class MovingCluster:
    """A moving cluster. Rows of pods and nodes are those of `snapshot`, which is always current."""

    def __init__(self, snapshot: Snapshot) -> None:
        names = snapshot.pods.node_names
        code_of = {name: code for code, name in enumerate(names.values)}
        values = list(names.values)
        self._node_name_values = values
        self._code_of_name = code_of
        for name in ("", *snapshot.cluster.names):
            self._learn_name(name)
        self.pods = MovingPods.moving(snapshot.pods, Column(names.codes.copy(), values))
        self.pods.own_starts()
        storage = MovingStorage.moving(snapshot.storage)
        self.snapshot: Snapshot = replace(
            snapshot,
            pods=self.pods,
            cluster=snapshot.cluster.moving(),
            storage=storage,
            devices=MovingDevices.moving(snapshot.devices),
            _tables={},
        )
        self._undo: list[_Undo] = []
        self._undone = 0
        self._with_tables: list[int] = []  # positions in `_undo` of changes whose tables are kept
        self.deleted: set[int] = set()  # rows of deleted pods

    @property
    def version(self) -> int:
        """A number that changes with every move and every revert."""
        return len(self._undo) + 2 * self._undone

    @property
    def node_names(self) -> tuple[str, ...]:
        return self.snapshot.cluster.names

    # --- moves

    def place(self, pod: int, node: ClusterRow) -> None:
        """Assign a pod without a node to a node, and clear its nomination."""
        self._remember(_PLACE, pod, node)
        self.pods.node_names.codes[pod] = self._code_of_name[self.node_names[node]]
        self._set_nominated(pod, "")
        self._record_move(pod, node, _PLACE)

    def name_missing_node(self, pod: int, name: str) -> None:
        """Let a new pod name a node that does not exist, so that it is not pending."""
        self._learn_name(name)
        self.pods.node_names.codes[pod] = self._code_of_name[name]

    def remove(self, pod: int, *, waits: bool = False) -> None:
        """Remove a pod from its node. With `waits`, its controller creates an identical pod, which keeps the name here,
        has not started, and is pending."""
        node = ClusterRow(int(self.pods.node[pod]))
        self._remember(_REMOVE, pod, node)
        if waits:
            self.pods.node_names.codes[pod] = self._code_of_name[""]
            self._set_started([pod], [None], LATEST)
        self._record_move(pod, node, _REMOVE)

    def place_many(self, pods: IntArray, nodes: IntArray) -> None:
        """`place` each of these pods on its node, in order."""
        self._remember_many(_PLACE, pods, nodes)
        names, codes = self.node_names, self._code_of_name
        self.pods.node_names.codes[pods] = [codes[names[node]] for node in nodes.tolist()]
        for pod in self.pods.nominations.keys() & pods.tolist() if self.pods.nominations else ():
            self._set_nominated(pod, "")
        self._moved_many(pods, nodes, 1)

    def remove_many(self, pods: Sequence[int]) -> None:
        """`remove` each of these pods with `waits`, in order."""
        rows = np.array(pods, dtype=np.int64)
        places = self.pods.node[rows]
        self._remember_many(_REMOVE, rows, places)
        self.pods.node_names.codes[rows] = self._code_of_name[""]
        self._set_started(pods, [None] * len(pods), LATEST)
        self._moved_many(rows, places, -1)

    def nominate(self, pod: int, node: ClusterRow | None) -> None:
        """Set or clear the nominated node of a pod without a node."""
        name = "" if node is None else self.node_names[node]
        if name != self.pods.nominated_node_names[pod]:
            self._set_nominated_with_undo(pod, name)

    def _set_nominated_with_undo(self, pod: int, name: str) -> None:
        self._undo.append(partial(self._set_nominated, pod, self.pods.nominated_node_names[pod]))
        self._set_nominated(pod, name)

    def add_pods(self, pods: Sequence[Pod]) -> list[int]:
        """Add pending pods, whatever node they name. Returns their rows, the last ones. A pod with the name of a
        deleted one replaces it in `rows`. `snapshot` becomes a new object."""
        before, first = self.pods, len(self.pods)
        waiting = pods if isinstance(pods, PodCopies) else [*map(_without_node, pods)]
        grown = with_pods(self.snapshot, waiting).pods
        assert isinstance(grown, MovingPods), "pods that are added to moving pods move"
        codes = np.concatenate([before.node_names.codes, np.full(len(pods), self._code_of_name[""], dtype=np.int64)])
        table = replace(
            grown,
            node_names=Column(codes, self._node_name_values),
            phases=grown.phases.copy(),
            on_nodes=before.on_nodes.copy(),
            steps=before.steps.copy(),
            nominations=dict(before.nominations),
            tallied={},
            numbered={},
            _requests={options: _more_requests(before, waiting, options) for options in before._requests},
        )
        if not any(table.start_times[first:]):
            table.derived[PodTable.started] = np.append(before.started, np.full(len(pods), LATEST, dtype=np.int64))
        else:
            table.own_starts()
        self._keep_tables(first)
        tables = self.snapshot._tables.items()
        self._swap(self.snapshot.cluster, table, {options: known.with_pods(table) for options, known in tables})
        return [*range(first, len(table))]

    def delete(self, pod: int) -> None:
        """Delete a running or pending pod. Its row stays without effect."""
        if self.pods.node[pod] >= 0:
            self.remove(pod)
        self._set_nominated_with_undo(pod, "")
        codes = self.pods.node_names.codes
        self._undo.append(partial(self._restore, pod, self.pods.phases[pod], int(codes[pod])))
        self.pods.phases.put(pod, "Succeeded")
        codes[pod] = self._code_of_name[""]
        self.deleted.add(pod)

    def _restore(self, pod: int, phase: str, node_name_code: int) -> None:
        self.pods.phases.put(pod, phase)
        self.pods.node_names.codes[pod] = node_name_code
        self.deleted.discard(pod)

    def other_contents(self, snapshot: Snapshot) -> dict[str, object]:
        """Return the fields of a snapshot, apart from nodes, pods, and storage, that differ from the current ones."""
        fixed = ("cluster", "pods", "storage", "source")
        fields = (name for name in Contents.__struct_fields__ if name not in fixed)
        contents = {
            name: value for name in fields if (value := getattr(snapshot, name)) is not getattr(self.snapshot, name)
        }
        if "devices" in contents and snapshot.devices == self.devices.frozen():
            del contents["devices"]
        return contents

    def set_contents(self, fields: Mapping[str, object]) -> None:
        """Apply `other_contents`. `snapshot` becomes a new object."""
        if fields:
            self._keep_tables(partial(self._put_contents, {name: getattr(self.snapshot, name) for name in fields}))
            self.snapshot = replace(self.snapshot, **fields)
            if "devices" in fields:
                self.snapshot = replace(self.snapshot, devices=MovingDevices.moving(self.snapshot.devices))

    def _put_contents(self, fields: Mapping[str, object]) -> None:
        self.snapshot = replace(self.snapshot, **fields)

    def add_node(self, node: Node) -> ClusterRow:
        """Add a node without pods. Returns its row, the last one. `snapshot` becomes a new object."""
        cluster = self.snapshot.cluster.with_added(node).moving()
        self._learn_name(node.metadata.name)
        self._keep_tables()
        self._swap_nodes(cluster, self.pods.with_nodes(len(cluster.nodes)))
        return ClusterRow(len(cluster.nodes) - 1)

    def remove_node(self, row: ClusterRow) -> None:
        """Remove a node without pods. The rows after it move up by one. `snapshot` becomes a new object."""
        pods = self.pods
        assert not len(pods.on_node(row)), "pods leave a node before it is removed"
        self._keep_tables()
        cluster, left = self.snapshot.cluster.without({row}).moving(), pods.without_node(row)
        self._swap(cluster, left, {options: NodeTable.of(cluster, left, options) for options in self.snapshot._tables})

    def replace_node(self, row: ClusterRow, node: Node) -> None:
        """Replace a node that is cordoned, labelled, or resized. Its name stays."""
        self._undo.append(partial(self._put, row, self.snapshot.cluster.nodes[row]))
        self._put(row, node)

    def _put(self, row: ClusterRow, node: Node) -> None:
        cluster = self.snapshot.cluster
        if cluster.put(row, node):
            self._note(_NOBODY, row, 0)
        else:
            self._swap_nodes(cluster.with_nodes({row: node}).moving(), self.pods)

    def set_storage(self, change: StorageChange) -> None:
        """Add, change, or remove claims and volumes."""
        if change:
            self._undo.append(partial(self._put_storage, self._put_storage(change)))

    def _put_storage(self, change: StorageChange) -> StorageChange:
        storage, pods = self.snapshot.storage, self.pods
        assert isinstance(storage, MovingStorage), "the snapshot of a cluster that moves has storage of its own"
        for key in change.claims:
            # the volumes that pods attach to their nodes may change
            for node in {int(pods.node[row]) for row in pods.rows_with_claim(key)} - {-1}:
                self._note(_NOBODY, ClusterRow(node), 0)
        return storage.put(change)

    @property
    def devices(self) -> MovingDevices:
        devices = self.snapshot.devices
        assert isinstance(devices, MovingDevices), "the snapshot of a cluster that moves has devices of its own"
        return devices

    def set_device_claims(self, change: Mapping[str, ResourceClaim | None], place: ClusterRow | None = None) -> None:
        """Add, change, or remove device claims by `namespace/name`. `place`: the node on which a pod with these claims
        is placed or evicted."""
        if change:
            self._undo.append(partial(self._put_device_claims, self._put_device_claims(change, place)))

    def _put_device_claims(
        self, change: Mapping[str, ResourceClaim | None], place: ClusterRow | None = None
    ) -> dict[str, ResourceClaim | None]:
        index = self.snapshot.cluster.index
        nodes = {index[name] for name in self.devices.nodes_of(change) if name in index} - {place}
        if place is None and not nodes:
            nodes = {ClusterRow(len(index))}  # no node: everything that reads claims has to be updated
        for node in nodes:
            if node is not None:
                self._note(_NOBODY, node, 0)
        return self.devices.put(change)

    def _swap_nodes(self, cluster: ClusterNodes, pods: MovingPods) -> None:
        """Replace the nodes and keep their rows. Data shared with earlier tables is valid again after a revert."""
        tables = {options: table.over(cluster, pods) for options, table in self.snapshot._tables.items()}
        self._swap(cluster, pods, tables)

    def _swap(self, cluster: ClusterNodes, pods: MovingPods, tables: dict[RequestOptions, NodeTable]) -> None:
        self.pods = pods
        self.snapshot = replace(self.snapshot, cluster=cluster, pods=pods, _tables=tables)

    def _keep_tables(self, change: int | Callable[[], object] | None = None) -> None:
        """Remember the tables before a change. Of many changes in a row only the last ones keep theirs."""
        self._with_tables.append(len(self._undo))
        self._undo.append(_Tables(self.snapshot, self.pods, change))
        if len(self._with_tables) <= _MOST_TABLES:
            return
        while len(self._with_tables) > _KEPT_TABLES:
            oldest = self._undo[self._with_tables[0]]
            assert isinstance(oldest, _Tables), "positions of tables"
            if oldest.change is None:
                return
            self._undo[self._with_tables.pop(0)] = oldest.change
        if len(self.pods) > 5_000:
            gc.collect()  # frameworks of earlier tables and their plugins refer to each other

    def _learn_name(self, name: str) -> None:
        if name not in self._code_of_name:
            self._code_of_name[name] = len(self._node_name_values)
            self._node_name_values.append(name)

    def mark(self) -> int:
        """Return the current position, for `revert`."""
        return len(self._undo)

    @contextmanager
    def group_cycle(self) -> Iterator[None]:
        """The cycle of a pod group, or a part of it: kube-scheduler lists the nodes with affinity pods once for all
        members (pkg/scheduler/backend/cache/snapshot.go)."""
        cycle = self.pods.group_cycle
        if cycle.began is not None:
            yield
            return
        began = cycle.began = self.pods.node.copy()
        try:
            yield
        finally:
            cycle.began = None
            came = distinct(self.pods.node[self.pods.node != began])
            for node in each_cluster_row(ClusterRows(came[came >= 0])):
                self._note(_NOBODY, node, 0)  # from now on their terms are read

    def revert(self, mark: int) -> None:
        """Undo every move since `mark`, last one first."""
        count = len(self.pods)
        while len(self._undo) > mark:
            first = len(self._undo)
            while first > mark and isinstance(self._undo[first - 1], _Move | _Moves):
                first -= 1
            if first < len(self._undo):
                self._undo_moves([move for move in reversed(self._undo[first:]) if isinstance(move, _Move | _Moves)])
                del self._undo[first:]
                continue
            move = self._undo.pop()
            self._undone += 1
            assert not isinstance(move, _Move | _Moves), "moves of pods are undone together"
            if isinstance(move, _Tables):
                self._with_tables.pop()
                self.snapshot, self.pods = move.snapshot, move.pods
                count = len(self.pods)
            elif isinstance(move, int):
                count = move
            else:
                move()
        if count < len(self.pods):
            self._forget_pods_from(count)

    def _forget_pods_from(self, count: int) -> None:
        """Rebuild the tables with the first `count` pods; the others have no node."""
        codes = self.pods.node_names.codes[:count].copy()
        first = with_only_pods(self.frozen(), np.arange(count)).pods
        pods = MovingPods.moving(first, Column(codes, self._node_name_values))
        pods.own_starts()
        cluster = self.snapshot.cluster
        self._swap(cluster, pods, {options: NodeTable.of(cluster, pods, options) for options in self.snapshot._tables})

    def _undo_moves(self, moves: Sequence[_Move | _Moves]) -> None:
        """Undo moves together, last one first."""
        pods, nodes, signs = list[int](), list[int](), list[int]()
        for move in moves:
            self._undone += 1
            codes: IntArray | int
            nominated: Sequence[str]
            times: Sequence[str | None]
            if isinstance(move, _Move):
                rows, places, codes = [move.pod], [int(move.node)], move.node_name_code
                nominated, times = [move.nominated], [move.start_time]
            else:
                rows, places, codes = move.pods.tolist(), move.nodes.tolist(), move.node_name_codes
                nominated, times = move.nominated, move.start_times
            self.pods.node_names.codes[rows] = codes
            if move.kind is _REMOVE:
                self._set_started(rows, times, move.started)
            for pod, name in zip(rows, nominated, strict=True):
                self._set_nominated(pod, name)
            pods += rows
            nodes += places
            signs += [-int(move.kind)] * len(rows)
        self._moved_many(np.array(pods, dtype=np.int64), np.array(nodes, dtype=np.int64), np.array(signs))

    def _remember_many(self, kind: _MoveKind, rows: IntArray, places: IntArray) -> None:
        pods = self.pods
        nominated, start_times = (
            [column[row] for row in rows.tolist()] for column in (pods.nominated_node_names, pods.start_times)
        )
        codes, started = pods.node_names.codes[rows], pods.started[rows]
        # copies: each may be a small part of an array that is not needed any more
        self._undo.append(_Moves(kind, rows.copy(), places.copy(), codes, nominated, start_times, started))

    def _remember(self, kind: _MoveKind, pod: int, node: ClusterRow) -> None:
        pods = self.pods
        code, nominated = int(pods.node_names.codes[pod]), pods.nominated_node_names[pod]
        self._undo.append(_Move(kind, pod, node, code, nominated, pods.start_times[pod], int(pods.started[pod])))

    def _set_started(self, pods: Sequence[int], start_times: Sequence[str | None], started: IntArray | int) -> None:
        table = self.pods
        assert isinstance(table.start_times, list)
        for pod, start_time in zip(pods, start_times, strict=True):
            table.start_times[pod] = start_time
        table.started[pods] = started

    def _set_nominated(self, pod: int, name: str) -> None:
        names = self.pods.nominated_node_names
        if names[pod] == name:
            return
        assert isinstance(names, list)
        names[pod] = name
        if name:
            self.pods.nominations[pod] = name
        else:
            self.pods.nominations.pop(pod, None)

    def _record_move(self, pod: int, node: ClusterRow, kind: _MoveKind) -> None:
        pods, sign = self.pods, int(kind)  # numpy is slow with members of an enum
        if sign > 0:
            pods.node[pod] = node
            pods.on_nodes.add(pod, node)
        else:
            pods.node[pod] = -1
            pods.on_nodes.remove(pod, node)
        self._note(pod, node, sign)
        change = np.add if sign > 0 else np.subtract
        for table in self._tables():
            for sums, each in (
                (table.requested[node], table.requests.matrix[pod]),
                (table.nonzero_requested[node], table.requests.nonzero[pod]),
            ):
                change(sums, each, out=sums)
            table.pod_count[node] += sign

    def _moved_many(self, rows: IntArray, places: IntArray, signs: IntArray | int) -> None:
        """`_record_move` for many pods, in order; the last move of a pod counts."""
        pods = self.pods
        signs = np.full(len(rows), signs, dtype=np.int64) if isinstance(signs, int) else signs
        pods.node[rows] = np.where(signs > 0, places, -1)
        for pod, node, sign in zip(rows.tolist(), places.tolist(), signs.tolist(), strict=True):
            pods.on_nodes.moved.setdefault(node, []).append(pod if sign > 0 else ~pod)
        pods.steps.add_many(rows, places, signs)
        is_once = len(places) < 2 or len({*places.tolist()}) == len(places)
        for table in self._tables():
            for sums, each in (
                (table.requested, signs[:, None] * table.requests.matrix[rows]),
                (table.nonzero_requested, signs[:, None] * table.requests.nonzero[rows]),
                (table.pod_count, signs),
            ):
                if is_once:  # a fraction of the time for distinct nodes
                    sums[places] += each
                for column, its in () if is_once else zip(np.atleast_2d(sums.T), np.atleast_2d(each.T), strict=True):
                    np.add.at(column, places, its)  # five times faster than all columns at once

    def _note(self, pod: int, node: ClusterRow, sign: int) -> None:
        self.pods.steps.add(pod, node, sign)

    def _tables(self) -> Iterator[NodeTable]:
        return iter(self.snapshot._tables.values())

    # --- the current state as a value

    def frozen(self) -> Snapshot:
        """Return the current state as a value. Deleted pods keep their rows and have no node."""
        moving = self.pods
        kept = {name: getattr(moving, name) for name in PodTable.__struct_fields__}
        own = {
            "node": moving.node.copy(),
            "node_names": Column(moving.node_names.codes.copy(), moving.node_names.values),
            "nominated_node_names": list(moving.nominated_node_names),
            "start_times": list(moving.start_times),
            "phases": moving.phases.copy(),
            "derived": {PodTable.started: moving.started.copy()},
        }
        cluster = self.snapshot.cluster.moving()
        storage = self.snapshot.storage
        assert isinstance(storage, MovingStorage), "the snapshot of a cluster that moves has storage of its own"
        pods = PodTable(**(kept | own))
        storage, devices = storage.frozen(), self.devices.frozen()
        return replace(self.snapshot, cluster=cluster, pods=pods, storage=storage, devices=devices, _tables={})


def _without_node(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name="")) if pod.spec.node_name else pod
