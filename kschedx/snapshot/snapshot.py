"""A cluster at one moment, and the same cluster with something changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Self, TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.resources import RequestOptions
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import (
    ConfigMap,
    Node,
)
from kschedx.snapshot.cluster_nodes import ClusterNodes
from kschedx.snapshot.columns import distinct
from kschedx.snapshot.contents import Contents
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.storage import Storage

R = TypeVar("R", bound=Struct)


class Snapshot(Contents, frozen=True, kw_only=True, dict=True):
    """A cluster at one moment. A change makes another snapshot that shares the rest."""

    _tables: dict[RequestOptions, NodeTable] = field(default_factory=dict)

    @cached_property
    def config_maps(self) -> Mapping[str, ConfigMap]:
        """`namespace/name` to those that tell of the cluster-autoscaler."""
        return {f"{one.metadata.namespace}/{one.metadata.name}": one for one in self.of(ConfigMap)}

    def of(self, record: type[R]) -> tuple[R, ...]:
        """The objects of the kind that has this record, as they were read."""
        return tuple(one for one in self.objects.get(record, ()) if isinstance(one, record))

    def with_records(self, record: type[R], objects: Iterable[R]) -> Snapshot:
        """The cluster with other objects of the kind that has this record, which are kept nowhere else."""
        return replace(self, objects={**self.objects, record: tuple(objects)}, _tables=dict(self._tables))

    @classmethod
    def of_contents(cls, contents: Contents) -> Self:
        return cls(**{name: getattr(contents, name) for name in Contents.__struct_fields__})

    @classmethod
    def from_objects(cls, objects: Iterable[Mapping[str, object]]) -> Self:
        """A snapshot of Kubernetes manifests as dicts. Raises `InputError` where one cannot be read."""
        from kschedx.api.given import mappings
        from kschedx.snapshot.build import SnapshotBuilder  # whoever has a snapshot has no need of it

        builder = SnapshotBuilder(whole=True)
        builder.add_objects(mappings(objects, "objects"))
        return cls.of_contents(builder.finish())

    def nodes(self, options: RequestOptions) -> NodeTable:
        """All nodes with the pods that run on them; requests are counted as `options` says."""
        table = self._tables.get(options)
        if table is None:
            table = self._tables[options] = NodeTable.of(self.cluster, self.pods, options)
        return table

    @cached_property
    def orphans(self) -> tuple[int, ...]:
        """Rows of unfinished pods that name a node which the snapshot does not hold."""
        there = self.cluster.index
        lost = self.pods.node_names.where(lambda name: bool(name) and name not in there)
        unfinished = ~self.pods.phases.where(lambda phase: phase in ("Succeeded", "Failed"))
        return tuple(int(row) for row in np.flatnonzero(lost & unfinished & (self.pods.node < 0)))

    @cached_property
    def with_finished_pods(self) -> Snapshot:
        """The cluster in which finished pods that no API server has stored count on their nodes."""
        if self.pods.counts_finished or not self.pods.finished_unstored.any():
            return self
        return replace(self, pods=self.pods.with_finished(self.cluster.index), _tables={})

    # --- what if

    def without_pods(self, rows: Iterable[int]) -> Snapshot:
        """The cluster without these pods; their rows stay, but they run nowhere and wait for nothing."""
        gone = distinct(np.fromiter(rows, dtype=np.int64))
        pods = self.pods.without(gone)
        tables = {options: table.without(pods, gone) for options, table in self._tables.items()}
        return replace(self, pods=pods, _tables=tables)

    def with_nodes(self, changed: Mapping[ClusterRow, Node]) -> Snapshot:
        """The cluster with some nodes' objects replaced, by row; names stay."""
        return self._over(self.cluster.with_nodes(changed), self.pods)

    def with_added_node(self, node: Node) -> Snapshot:
        """The cluster with one more node, in the last row."""
        pods = replace(self.pods, node_count=self.pods.node_count + 1, grouped=None)
        return self._over(self.cluster.with_added(node), pods)

    def _over(self, cluster: ClusterNodes, pods: PodTable) -> Snapshot:
        """The cluster with other nodes, in which all pods run where they did."""
        tables = {options: table.over(cluster, pods) for options, table in self._tables.items()}
        return replace(self, cluster=cluster, pods=pods, _tables=tables)

    def with_answered_nodes(self, answered: Sequence[Node]) -> Snapshot:
        """The cluster, and in rows behind its own nodes others that stand for some of them, without pods or images."""
        pods = replace(self.pods, node_count=self.pods.node_count + len(answered), grouped=None)
        return replace(self, cluster=self.cluster.with_answered(answered), pods=pods, _tables={})

    def with_devices(self, devices: Devices) -> Snapshot:
        return replace(self, devices=devices, _tables=dict(self._tables))

    def with_claims(self, changed: Mapping[str, PersistentVolumeClaim]) -> Snapshot:
        """The cluster with some claims replaced or added, by `namespace/name`."""
        return self.with_storage(replace(self.storage, claims={**self.storage.claims, **changed}))

    def with_storage(self, storage: Storage) -> Snapshot:
        return replace(self, storage=storage, _tables=dict(self._tables))
