"""A cluster at one moment, and the same cluster with something changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import TypeVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.api.resources import RequestOptions
from kschedx.api.snapshot_header import SnapshotHeader
from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import (
    ConfigMap,
    Labels,
    LimitRange,
    Node,
    PodDisruptionBudget,
    PodGroup,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)
from kschedx.snapshot.columns import distinct
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.events import FailedScheduling, ScaleUpEvent
from kschedx.snapshot.manifests import Manifests
from kschedx.snapshot.nodes import ClusterNodes, NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.storage import Storage

R = TypeVar("R", bound=Struct)


class Missing(StrEnum):
    """Why a cluster's objects of a kind are not in a snapshot."""

    FORBIDDEN = "forbidden"
    ABSENT = "absent"
    """The API server does not serve the kind, so there are none."""


class Source(Struct, frozen=True, kw_only=True):
    """Where a snapshot came from."""

    text: str = ""
    """File names, or what else a person would recognize it by."""
    kinds: Mapping[str, int] = field(default_factory=dict)
    """Kind to number of objects that were read."""
    missing: Mapping[str, Missing] = field(default_factory=dict)
    """Kinds whose objects could not be read, though the cluster may have some."""
    formats: tuple[str, ...] = ()
    """The dumps of other tools that were recognized, by the names that people know them by."""
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Kinds of which those dumps do not hold all objects, with those that they lack."""
    server_version: str = ""
    """The API server's release (`v1.36.2`), where one was asked."""
    taken: str = ""
    """When the cluster was read, in RFC 3339, where that is known."""
    complete: frozenset[str] = frozenset()
    """Kinds of which every object is known to be here."""
    namespaces: tuple[str, ...] = ()
    """The only namespaces whose objects are here; empty for all."""
    anonymized: bool = False
    """Names stand for others."""
    left_out: tuple[str, ...] = ()
    """Files among others that hold no Kubernetes objects."""
    is_dump: bool = False
    """An API server has stored its nodes: a kind of which nothing is here may have been left out."""

    def is_complete(self, kind: str, namespace: str = "") -> bool:
        """Whether what is not here does not exist; of a kind that is in namespaces, in this one. A dump never tells."""
        if namespace and self.namespaces and namespace not in self.namespaces:
            return False
        return kind in self.complete or self.missing.get(kind) is Missing.ABSENT

    def may_lack(self, kind: str, namespace: str = "") -> bool:
        """Whether what is not here may be in the cluster all the same: a dump lacks it, or holds nothing of the kind.

        What may not be listed is told otherwise (`missing`).
        """
        if kind in self.missing or self.is_complete(kind, namespace):
            return False
        return kind in self.lacks or (self.is_dump and not self.kinds.get(kind))

    @property
    def header(self) -> SnapshotHeader:
        """What a file of this snapshot says of itself."""
        return SnapshotHeader(
            taken=self.taken,
            source=self.text,
            server_version=self.server_version,
            complete={kind: self.kinds.get(kind, 0) for kind in sorted(self.complete)},
            missing={kind: cause.value for kind, cause in self.missing.items()},
            namespaces=self.namespaces,
            formats=self.formats,
            lacks=self.lacks,
            anonymized=self.anonymized,
        )

    def with_header(self, header: SnapshotHeader) -> Source:
        """This source as the header of its files tells it; the text stays."""
        causes = {cause.value: cause for cause in Missing}
        return replace(
            self,
            taken=header.taken,
            server_version=header.server_version,
            complete=frozenset(header.complete),
            missing={kind: causes[cause] for kind, cause in header.missing.items() if cause in causes},
            namespaces=header.namespaces,
            formats=header.formats,
            lacks=header.lacks,
            anonymized=header.anonymized,
        )


class Snapshot(Struct, frozen=True, kw_only=True, dict=True):
    """Everything that scheduling reads of a cluster. A change makes another snapshot that shares the rest."""

    source: Source
    cluster: ClusterNodes
    pods: PodTable
    namespaces: Mapping[str, Labels]
    services: Sequence[Service] = ()
    replication_controllers: Sequence[ReplicationController] = ()
    replica_sets: Sequence[ReplicaSet] = ()
    stateful_sets: Sequence[StatefulSet] = ()
    disruption_budgets: Sequence[PodDisruptionBudget] = ()
    priority_classes: Mapping[str, PriorityClass] = field(default_factory=dict)
    pod_groups: Mapping[str, PodGroup] = field(default_factory=dict)
    """`namespace/name` to pod group."""
    workloads: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)
    """(kind, namespace, name) to the manifest of an object that makes pods from a template."""
    devices: Devices = field(default_factory=Devices)
    storage: Storage = field(default_factory=Storage)
    namespace_annotations: Mapping[str, Labels] = field(default_factory=dict)
    """Namespace to those of its annotations that admission reads."""
    limit_ranges: Mapping[str, Sequence[LimitRange]] = field(default_factory=dict)
    """Namespace to its LimitRanges, defaulted."""
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    failed_scheduling: Mapping[str, FailedScheduling] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what kube-scheduler's newest event says of it, where events were read."""
    objects: Mapping[type[Struct], tuple[Struct, ...]] = field(default_factory=dict)
    """Record of a kind to its objects, for kinds that no other field holds."""
    manifests: Manifests | None = None
    """Pods and nodes as they were read, where somebody asked for them to be kept."""
    autoscaler_events: Mapping[str, ScaleUpEvent] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what cluster-autoscaler said of it last."""
    _tables: dict[RequestOptions, NodeTable] = field(default_factory=dict)

    @cached_property
    def config_maps(self) -> Mapping[str, ConfigMap]:
        """`namespace/name` to those that tell of the cluster-autoscaler."""
        return {f"{one.metadata.namespace}/{one.metadata.name}": one for one in self.of(ConfigMap)}

    def of(self, record: type[R]) -> tuple[R, ...]:
        """The objects of the kind that has this record, as they were read."""
        return tuple(one for one in self.objects.get(record, ()) if isinstance(one, record))

    @classmethod
    def from_objects(cls, objects: Iterable[Mapping[str, object]]) -> Snapshot:
        """A snapshot of Kubernetes manifests as dicts. Raises `InputError` where one cannot be read."""
        from kschedx.api.given import mappings
        from kschedx.snapshot.build import SnapshotBuilder  # it builds this class

        builder = SnapshotBuilder(whole=True)
        builder.add_objects(mappings(objects, "objects"))
        return builder.finish()

    def nodes(self, options: RequestOptions) -> NodeTable:
        """All nodes with the pods that run on them; requests are counted as `options` says."""
        table = self._tables.get(options)
        if table is None:
            table = self._tables[options] = NodeTable.of(self.cluster, self.pods, options)
        return table

    @cached_property
    def orphans(self) -> tuple[int, ...]:
        """Rows of unfinished pods that name a node which the snapshot does not hold."""
        named = self.pods.node_names.where(bool)
        unfinished = ~self.pods.phases.where(lambda phase: phase in ("Succeeded", "Failed"))
        return tuple(int(row) for row in np.flatnonzero(named & unfinished & (self.pods.node < 0)))

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
        return replace(self, cluster=self.cluster.with_nodes(changed), _tables={})

    def with_added_node(self, node: Node) -> Snapshot:
        """The cluster with one more node, in the last row."""
        pods = replace(self.pods, node_count=self.pods.node_count + 1, grouped=None)
        return replace(self, cluster=self.cluster.with_added(node), pods=pods, _tables={})

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
