"""A snapshot: everything that scheduling reads of a cluster at one moment, and where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from typing import Self, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from kschedx.apiserver.defaulting import default_namespace, default_priority_class
from kschedx.apiserver.optional_admission import READ_ANNOTATIONS
from kschedx.kube.decoding import decode
from kschedx.kube.documents import Document, part_of
from kschedx.kube.kinds import Objects, of_record
from kschedx.kube.other_schedulers import SchedulerConfig
from kschedx.kube.resources import RequestOptions
from kschedx.kube.snapshot_header import SnapshotHeader
from kschedx.kube.storage import PersistentVolumeClaim, bound_claim, provisioned_at_once
from kschedx.kube.types import (
    ConfigMap,
    GroupedWorkload,
    Labels,
    LimitRange,
    Namespace,
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
from kschedx.snapshot.columns import ClusterRow, distinct
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.events import FailedCreate, FailedScheduling, ScaleUpEvent
from kschedx.snapshot.nodes import ClusterNodes, NodeTable
from kschedx.snapshot.pod_groups import groups_by_key
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.storage import Storage

# Where a snapshot came from, and what may be missing in it.


class Missing(StrEnum):
    """Why a cluster's objects of a kind are not in a snapshot."""

    FORBIDDEN = "forbidden"
    ABSENT = "absent"
    """The API server does not serve the kind, so there are none."""


class SourceDocument(Document, frozen=True, omit_defaults=True):
    text: str
    kinds: Mapping[str, int]
    server_version: str = ""
    missing: Mapping[str, Missing] = {}
    namespaces: tuple[str, ...] = ()
    anonymized: bool = False


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
    is_slim: bool = False
    """kschedx wrote it: of its objects there is what scheduling reads."""
    left_out: tuple[str, ...] = ()
    """Files among others that hold no Kubernetes objects."""
    is_dump: bool = False
    """An API server has stored its nodes: a kind of which nothing is here may have been left out."""

    @property
    def document(self) -> SourceDocument:
        """Without when it was read, so that the same cluster gives the same document."""
        return part_of(SourceDocument, self, kinds=dict(sorted(self.kinds.items())))

    def is_complete(self, kind: str, namespace: str = "") -> bool:
        """Whether what is not here does not exist; of a kind that is in namespaces, in this one. A dump never shows
        that."""
        if namespace and self.namespaces and namespace not in self.namespaces:
            return False
        return kind in self.complete or self.missing.get(kind) is Missing.ABSENT

    def may_lack(self, kind: str, namespace: str = "") -> bool:
        """Whether what is not here may be in the cluster all the same: a dump lacks it, or holds nothing of the kind.

        What may not be listed is in `missing`.
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
        """This source as the header of its files describes it; the text stays."""
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


# Objects as they were read, for the few who need more of them than scheduling does.

MANIFEST_KINDS = frozenset({"Pod", "Node"})


class ManifestName(Struct, frozen=True, kw_only=True):
    name: str | None = ""
    namespace: str | None = ""


class ManifestHead(Struct, frozen=True, kw_only=True, rename="camel"):
    """What an object is called; what is read of a kind beside it has fields of its own."""

    api_version: str | None = ""
    kind: str | None = ""
    metadata: ManifestName | None = None

    def key_of(self, kind: str) -> str:
        """`namespace/name`, or the name of what has no namespace; empty for an object that is not of this kind."""
        version = self.api_version or ""
        if self.kind != kind or version not in ("v1", "") or self.metadata is None:
            return ""
        name = self.metadata.name or ""
        return f"{self.metadata.namespace or 'default'}/{name}" if kind == "Pod" else name


_HEADS: msgspec.json.Decoder[list[ManifestHead]] = msgspec.json.Decoder(list[ManifestHead])
_RAWS: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
R = TypeVar("R", bound=Struct)
M = TypeVar("M", bound=ManifestHead)


class Manifests:
    """Keeps JSON arrays of objects, and decodes them on first use."""

    def __init__(
        self, texts: Sequence[bytes], added: Mapping[tuple[str, str], Mapping[str, object]] | None = None
    ) -> None:
        """`texts` have been read as objects before; `added` is what takes the place of some, by kind and name."""
        self._texts = texts
        self._added = added or {}

    def get(self, kind: str, name: str) -> Mapping[str, object] | None:
        """An object's manifest; `name` is `namespace/name` of a pod."""
        if (kind, name) in self._added:
            return self._added[kind, name]
        raw = self._index.get((kind, name))
        found: dict[str, object] | None = None if raw is None else msgspec.json.decode(raw)
        return found

    def with_pod(self, key: str, manifest: Mapping[str, object]) -> Manifests:
        """The same manifests, and one of a pod that is new, or takes another's place."""
        return Manifests(self._texts, {**self._added, ("Pod", key): manifest})

    def records(self, kind: str, record: type[M]) -> dict[str, M]:
        """The objects of a kind by `namespace/name`, or by name for nodes. Raises `InputError`.

        A list is read at once where all its objects can be read as `record`, whatever their kind.
        """
        decoder = msgspec.json.Decoder(list[record])  # type: ignore[valid-type] # a type at run time
        found: dict[str, M] = {}
        for text in self._texts:
            try:
                read: Sequence[M] = decoder.decode(text)
            except msgspec.ValidationError:
                heads = zip(_HEADS.decode(text), _RAWS.decode(text), strict=True)
                read = [decode(raw, record) for head, raw in heads if head.key_of(kind)]
            found.update((key, one) for one in read if (key := one.key_of(kind)))
        for (known, name), manifest in self._added.items():
            if known == kind:
                found[name] = decode(msgspec.json.encode(manifest), record)
        return found

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], Raw]:
        found: dict[tuple[str, str], Raw] = {}
        for text in self._texts:
            for head, raw in zip(_HEADS.decode(text), _RAWS.decode(text), strict=True):
                if head.kind in MANIFEST_KINDS and (key := head.key_of(head.kind)):
                    found[head.kind, key] = raw  # a list that was read again has the last word
        return found


# What a cluster holds, as far as scheduling reads it.


class Contents(Struct, frozen=True, kw_only=True):
    """Everything that scheduling reads of a cluster."""

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
    pod_warnings: Mapping[str, FailedScheduling] = field(default_factory=dict)
    """`namespace/name` of a pod with a node to the newest warning of its kubelet: volumes, sandbox, network."""
    failed_creates: Mapping[tuple[str, str, str], FailedCreate] = field(default_factory=dict)
    """(kind, namespace, name) of a pods' owner to what its controller's newest event says of a pod that it could not
    make."""
    objects: Mapping[type[Struct], tuple[Struct, ...]] = field(default_factory=dict)
    """Record of a kind to its objects, for kinds that no other field holds."""
    manifests: Manifests | None = None
    """Pods and nodes as they were read, if they were to be kept."""
    autoscaler_events: Mapping[str, ScaleUpEvent] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what cluster-autoscaler said of it last."""
    karpenter_events: Mapping[str, FailedScheduling] = field(default_factory=dict)
    """`namespace/name` of a pending pod to what Karpenter said of it last."""


def of_objects(objects: Objects) -> dict[str, object]:
    """The fields of a snapshot that are made of objects other than nodes and pods."""
    namespaces = of_record(objects, Namespace)
    return {
        "namespaces": {one.metadata.name: default_namespace(one).metadata.labels for one in namespaces},
        "namespace_annotations": {one.metadata.name: _read_by_admission(one) for one in namespaces},
        "limit_ranges": _by_namespace(of_record(objects, LimitRange)),
        "runtime_classes": {one.metadata.name: one for one in of_record(objects, RuntimeClass)},
        "services": of_record(objects, Service),
        "replication_controllers": of_record(objects, ReplicationController),
        "replica_sets": of_record(objects, ReplicaSet),
        "stateful_sets": of_record(objects, StatefulSet),
        "disruption_budgets": of_record(objects, PodDisruptionBudget),
        "priority_classes": priority_classes(objects),
        "pod_groups": groups_by_key(of_record(objects, PodGroup), of_record(objects, GroupedWorkload)),
        "devices": Devices.of(objects),
        "storage": Storage.of(objects),
        "objects": {record: tuple(some) for record, some in objects.items()},
    }


def priority_classes(objects: Objects) -> dict[str, PriorityClass]:
    return {one.metadata.name: default_priority_class(one) for one in of_record(objects, PriorityClass)}


def _read_by_admission(namespace: Namespace) -> Labels:
    """Its annotations, without those that say nothing about pods."""
    return {key: text for key, text in namespace.metadata.annotations.items() if key in READ_ANNOTATIONS}


def _by_namespace(limit_ranges: Sequence[LimitRange]) -> dict[str, list[LimitRange]]:
    """In order of their names; the API server takes them in any order."""
    found: dict[str, list[LimitRange]] = {}
    for one in sorted(limit_ranges, key=lambda one: one.metadata.name):
        found.setdefault(one.metadata.namespace, []).append(one)
    return found


# A cluster at one moment, and the same cluster with something changed.


class Snapshot(Contents, frozen=True, kw_only=True, dict=True):
    """A cluster at one moment. A change makes another snapshot that shares the rest."""

    _tables: dict[RequestOptions, NodeTable] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Snapshot: {self.cluster.count} nodes, {len(self.pods)} pods>"

    @cached_property
    def config_maps(self) -> Mapping[str, ConfigMap]:
        """`namespace/name` to those that describe the cluster-autoscaler."""
        return {f"{one.metadata.namespace}/{one.metadata.name}": one for one in self.of(ConfigMap)}

    @cached_property
    def terminating_namespaces(self) -> frozenset[str]:
        """Those that are being deleted."""
        found = self.of(Namespace)
        terminating = (one for one in found if one.metadata.deletion_timestamp or one.status.phase == "Terminating")
        return frozenset(one.metadata.name for one in terminating)

    def of(self, record: type[R]) -> tuple[R, ...]:
        """The objects of the kind that has this record, as they were read."""
        return of_record(self.objects, record)

    @property
    def default_node_selector(self) -> str:
        """What OpenShift adds to the pods of projects without a node selector of their own."""
        return next((one.spec.default_node_selector for one in self.of(SchedulerConfig)), "")

    def with_records(self, record: type[R], objects: Iterable[R]) -> Snapshot:
        """The cluster with other objects of the kind that has this record, which are kept nowhere else."""
        return replace(self, objects={**self.objects, record: tuple(objects)}, _tables=dict(self._tables))

    @classmethod
    def of_contents(cls, contents: Contents) -> Self:
        return cls(**{name: getattr(contents, name) for name in Contents.__struct_fields__})

    @classmethod
    def from_objects(cls, objects: Iterable[Mapping[str, object]]) -> Self:
        """A snapshot of Kubernetes manifests as dicts, listed in this order; files are listed by namespace and name.

        Raises `InputError` where one cannot be read.
        """
        from kschedx.kube.decoding import mappings
        from kschedx.snapshot.build import SnapshotBuilder  # not needed once there is a snapshot

        builder = SnapshotBuilder(whole=True)
        builder.add_objects(mappings(objects, "objects"))
        return cls.of_contents(builder.finish(keeps_order=True))

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

    def with_new_claims(self, made: Mapping[str, PersistentVolumeClaim]) -> Snapshot:
        """The cluster with claims that it did not have, bound where a driver provisions at once for every node."""
        claims, volumes = {**self.storage.claims}, {**self.storage.volumes}
        for key, claim in made.items():
            named = self.storage.with_default(claim)
            storage_class = self.storage.classes.get(named.storage_class)
            volume = provisioned_at_once(named, storage_class, self.storage.csi_nodes.values())
            claims[key] = named if volume is None else bound_claim(named, volume.name)
            volumes |= {} if volume is None else {volume.name: volume}
        return self.with_storage(replace(self.storage, claims=claims, volumes=volumes))

    def with_storage(self, storage: Storage) -> Snapshot:
        return replace(self, storage=storage, _tables=dict(self._tables))
