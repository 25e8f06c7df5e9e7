"""A cluster that moves: a snapshot's columns, changed in place.

`MovingCluster.snapshot` reads as the cluster stands and changes with every move, so that a framework that holds it
always sees the present. `frozen()` hands out the same as a value. To place a pod or take it away costs what that
changes, whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.resources import RequestOptions
from kschedx.api.timestamps import LATEST
from kschedx.api.types import Node
from kschedx.snapshot.cluster_nodes import ClusterNodes
from kschedx.snapshot.columns import Column
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.moving_pods import NOBODY, Kind, MovingPods
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.storage import MovingStorage, StorageChange


class Move(Struct, frozen=True):
    """One pod that came to a node or left it, with what it takes to undo that."""

    kind: Kind
    pod: int
    """Row of the PodTable."""
    node: ClusterRow
    node_name_code: int
    """The code of the pod's node name before."""
    nominated: str
    """The node that the pod was nominated for before."""
    start_time: str | None
    started: int


class _Nodes(Struct, frozen=True):
    """The nodes as they were before one of them came or went."""

    snapshot: Snapshot
    pods: MovingPods


class _Replaced(Struct, frozen=True):
    """A node as it was before it changed."""

    row: ClusterRow
    node: Node


class _Stored(Struct, frozen=True):
    """Claims and volumes as they were before they changed."""

    before: StorageChange


class _Nominated(Struct, frozen=True):
    """What a pod was nominated for before."""

    pod: int
    node: str


class MovingCluster:
    """A cluster that moves. Rows of pods and nodes are those of `snapshot`, which always shows the present."""

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
            snapshot, pods=self.pods, cluster=snapshot.cluster.moving(), storage=storage, _tables={}
        )
        self._undo: list[Move | _Nodes | _Replaced | _Nominated | _Stored] = []

    @property
    def node_names(self) -> tuple[str, ...]:
        return self.snapshot.cluster.names

    # --- moves

    def place(self, pod: int, node: ClusterRow) -> None:
        """A pod that runs nowhere runs on a node from now on; a nomination that it had is over."""
        self._remember(Kind.PLACE, pod, node)
        self.pods.node_names.codes[pod] = self._code_of_name[self.node_names[node]]
        self._set_nominated(pod, "")
        self._moved(pod, node, Kind.PLACE)

    def remove(self, pod: int, *, waits: bool = False) -> None:
        """A pod that runs is gone from its node. `waits`: its controller makes another one like it, which goes by the
        same name here, has not started, and waits for a node."""
        node = ClusterRow(int(self.pods.node[pod]))
        self._remember(Kind.REMOVE, pod, node)
        if waits:
            self.pods.node_names.codes[pod] = self._code_of_name[""]
            self._set_started(pod, None, LATEST)
        self._moved(pod, node, Kind.REMOVE)

    def nominate(self, pod: int, node: ClusterRow | None) -> None:
        """A pod without a node is nominated for one, or for none any more."""
        self._undo.append(_Nominated(pod, self.pods.nominated_node_names[pod]))
        self._set_nominated(pod, "" if node is None else self.node_names[node])

    def rename(self, pod: int, name: str) -> None:
        """A pod takes the name of one of its namespace that is gone. `snapshot` is another object then."""
        pods = self.pods
        names = [*pods.names]
        names[pod] = name
        rows = {key: row for key, row in pods.rows.items() if row != pod}
        renamed = replace(pods, names=names, rows=rows | {f"{pods.namespaces[pod]}/{name}": pod})
        self._set_nodes(self.snapshot.cluster, renamed)

    def add_node(self, node: Node) -> ClusterRow:
        """One more node, on which nothing runs. Returns its row, the last one. `snapshot` is another object then."""
        cluster = self.snapshot.cluster.with_added(node).moving()
        self._learn_name(node.metadata.name)
        self._set_nodes(cluster, self.pods.with_nodes(len(cluster.nodes)))
        return ClusterRow(len(cluster.nodes) - 1)

    def remove_node(self, row: ClusterRow) -> None:
        """A node on which nothing runs any more goes, and the rows of those behind it move up by one. `snapshot` is
        another object then."""
        pods = self.pods
        assert not len(pods.on_node(row)), "who runs there leaves first, as pods do in ways of their own"
        self._undo.append(_Nodes(self.snapshot, pods))
        cluster, left = self.snapshot.cluster.without({row}).moving(), pods.without_node(row)
        self._swap(cluster, left, {options: NodeTable.of(cluster, left, options) for options in self.snapshot._tables})

    def replace_node(self, row: ClusterRow, node: Node) -> None:
        """A node is cordoned, labelled, resized; its name stays."""
        self._undo.append(_Replaced(row, self.snapshot.cluster.nodes[row]))
        self._put(row, node)

    def _put(self, row: ClusterRow, node: Node) -> None:
        cluster = self.snapshot.cluster
        if cluster.put(row, node):
            for table in self._tables():
                table.forget()
            self._note(NOBODY, row, 0)
        else:
            self._swap_nodes(cluster.with_nodes({row: node}).moving(), self.pods)

    def set_storage(self, change: StorageChange) -> None:
        """Claims of volumes, and volumes, come, change or go."""
        if change:
            self._undo.append(_Stored(self._put_storage(change)))

    def _put_storage(self, change: StorageChange) -> StorageChange:
        storage, pods = self.snapshot.storage, self.pods
        assert isinstance(storage, MovingStorage), "the snapshot of a cluster that moves has storage of its own"
        for key in change.claims:
            # what a pod has attached to its node may be another volume now
            for node in {int(pods.node[row]) for row in pods.claiming(key)} - {-1}:
                self._note(NOBODY, ClusterRow(node), 0)
        return storage.put(change)

    def set_devices(self, devices: Devices) -> None:
        """Device claims are others. `snapshot` is another object then."""
        self._undo.append(_Nodes(self.snapshot, self.pods))
        self.snapshot = replace(self.snapshot, devices=devices)

    def _set_nodes(self, cluster: ClusterNodes, pods: MovingPods) -> None:
        self._undo.append(_Nodes(self.snapshot, self.pods))
        self._swap_nodes(cluster, pods)

    def _swap_nodes(self, cluster: ClusterNodes, pods: MovingPods) -> None:
        """The rows of the nodes stay. What tables share with those before is right again once moves are undone."""
        tables = {options: table.over(cluster, pods) for options, table in self.snapshot._tables.items()}
        self._swap(cluster, pods, tables)

    def _swap(self, cluster: ClusterNodes, pods: MovingPods, tables: dict[RequestOptions, NodeTable]) -> None:
        self.pods = pods
        self.snapshot = replace(self.snapshot, cluster=cluster, pods=pods, _tables=tables)

    def _learn_name(self, name: str) -> None:
        if name not in self._code_of_name:
            self._code_of_name[name] = len(self._node_name_values)
            self._node_name_values.append(name)

    def mark(self) -> int:
        """The present, for `revert`."""
        return len(self._undo)

    def revert(self, mark: int) -> None:
        """Undo every move since `mark`, the last one first."""
        while len(self._undo) > mark:
            move = self._undo.pop()
            if isinstance(move, _Nodes):
                self.snapshot, self.pods = move.snapshot, move.pods
                continue
            if isinstance(move, _Replaced):
                self._put(move.row, move.node)
                continue
            if isinstance(move, _Stored):
                self._put_storage(move.before)
                continue
            if isinstance(move, _Nominated):
                self._set_nominated(move.pod, move.node)
                continue
            self.pods.node_names.codes[move.pod] = move.node_name_code
            self._set_nominated(move.pod, move.nominated)
            self._set_started(move.pod, move.start_time, move.started)
            self._moved(move.pod, move.node, Kind(-move.kind))

    def _remember(self, kind: Kind, pod: int, node: ClusterRow) -> None:
        pods = self.pods
        code, nominated = int(pods.node_names.codes[pod]), pods.nominated_node_names[pod]
        self._undo.append(Move(kind, pod, node, code, nominated, pods.start_times[pod], int(pods.started[pod])))

    def _set_started(self, pod: int, start_time: str | None, started: int) -> None:
        pods = self.pods
        assert isinstance(pods.start_times, list)
        pods.start_times[pod] = start_time
        pods.started[pod] = started

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

    def _moved(self, pod: int, node: ClusterRow, kind: Kind) -> None:
        pods = self.pods
        if kind is Kind.PLACE:
            pods.node[pod] = node
            pods.on_nodes.add(pod, node)
        else:
            pods.node[pod] = -1
            pods.on_nodes.remove(pod, node)
        self._note(pod, node, int(kind))
        for table in self._tables():
            table.requested[node] += kind * table.requests.matrix[pod]
            table.nonzero_requested[node] += kind * table.requests.nonzero[pod]
            table.pod_count[node] += kind

    def _note(self, pod: int, node: ClusterRow, sign: int) -> None:
        steps = self.pods.steps
        steps.pods.append(pod)
        steps.nodes.append(node)
        steps.signs.append(sign)

    def _tables(self) -> Iterator[NodeTable]:
        return iter(self.snapshot._tables.values())

    # --- the present as a value

    def frozen(self) -> Snapshot:
        """The cluster as it stands, which does not move. Pods that are gone keep their rows and run nowhere."""
        moving = self.pods
        kept = {name: getattr(moving, name) for name in PodTable.__struct_fields__}
        own = {
            "node": moving.node.copy(),
            "node_names": Column(moving.node_names.codes.copy(), moving.node_names.values),
            "nominated_node_names": list(moving.nominated_node_names),
            "start_times": list(moving.start_times),
            "derived": {},
        }
        cluster = self.snapshot.cluster.moving()
        storage = self.snapshot.storage
        assert isinstance(storage, MovingStorage), "the snapshot of a cluster that moves has storage of its own"
        pods = PodTable(**(kept | own))
        return replace(self.snapshot, cluster=cluster, pods=pods, storage=storage.frozen(), _tables={})
