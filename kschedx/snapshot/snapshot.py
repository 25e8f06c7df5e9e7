"""A snapshot: everything that scheduling reads of a cluster at one moment, and its source."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import Self, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from kschedx.apiserver.admission import READ_ANNOTATIONS
from kschedx.apiserver.defaulting import default_namespace, default_priority_class
from kschedx.grouping import group_pairs
from kschedx.kube.controllers import Controller, stored_controller, stored_metadata
from kschedx.kube.decoding import decode, mappings
from kschedx.kube.devices import ResourceSlice
from kschedx.kube.documents import Document, part_of
from kschedx.kube.kinds import Objects, objects_of
from kschedx.kube.maintenance import UPGRADED_NODE
from kschedx.kube.names import SYSTEM_NAMESPACES
from kschedx.kube.other_schedulers import OpenShiftScheduler
from kschedx.kube.resources import RequestOptions, Service
from kschedx.kube.scalars import nanoseconds, newest
from kschedx.kube.selectors import NodeSelector, NodeSelectorTerm, SelectorRequirement, selector_from_set
from kschedx.kube.snapshot_header import SnapshotHeader
from kschedx.kube.storage import (
    PersistentVolumeClaim,
    Segment,
    StorageClass,
    VolumeNodeAffinity,
    bound_claim,
    new_claim,
    volume_for,
)
from kschedx.kube.types import (
    AUTOSCALER_PRIORITIES,
    AUTOSCALER_STATUS,
    ConfigMap,
    GroupedWorkload,
    Labels,
    LimitRange,
    Namespace,
    Node,
    ObjectMeta,
    Pod,
    PodDisruptionBudget,
    PodGroup,
    PodGroupSpec,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    StatefulSet,
)
from kschedx.snapshot.columns import ClusterRow, Derived, distinct
from kschedx.snapshot.devices import Devices
from kschedx.snapshot.events import RecordedEvent, RecordedPreemption
from kschedx.snapshot.nodes import ClusterNodes, NodeTable
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.storage import Storage


class MissingCause(StrEnum):
    """Why a snapshot lacks the cluster's objects of a kind."""

    FORBIDDEN = "forbidden"
    ABSENT = "absent"  # the API server does not serve the kind, so there are none


class SourceDocument(Document, frozen=True, omit_defaults=True):
    text: str
    kinds: Mapping[str, int]
    server_version: str = ""
    missing: Mapping[str, MissingCause] = {}
    namespaces: tuple[str, ...] = ()
    anonymized: bool = False


class Source(Struct, frozen=True, kw_only=True):
    text: str = ""  # file names, or another name of the source
    kinds: Mapping[str, int] = field(default_factory=dict)  # kind to the number of objects
    missing: Mapping[str, MissingCause] = field(default_factory=dict)
    """Kinds that could not be read, although the cluster may have objects of them."""
    formats: tuple[str, ...] = ()  # the recognized formats of other tools' dumps
    lacks: Mapping[str, str] = field(default_factory=dict)
    """Kinds of which these dumps lack objects, with the missing ones."""
    server_version: str = ""  # `v1.36.2`; empty if unknown
    taken: str = ""  # when the cluster was read, as RFC 3339, if known
    complete: frozenset[str] = frozenset()  # kinds of which every object is known to be in the snapshot
    namespaces: tuple[str, ...] = ()  # empty for all
    scheduler_config: str = ""  # the file that the cluster's kube-scheduler gets with --config; empty if unknown
    anonymized: bool = False
    is_slim: bool = False  # whether kschedx wrote it, with only the fields that scheduling reads
    left_out: tuple[str, ...] = ()  # files without Kubernetes objects
    is_dump: bool = False  # whether an API server has stored its objects: a kind without objects may have been left out
    populated: frozenset[str] = frozenset()
    """Namespaces with workloads, which therefore exist. Workloads of a question do not count."""

    @property
    def is_stored(self) -> bool:
        """Whether its objects are those of an API server."""
        return self.is_dump or bool(self.server_version)

    @property
    def document(self) -> SourceDocument:
        """The source without its time, so that the same cluster gives the same document."""
        return part_of(SourceDocument, self, kinds=dict(sorted(self.kinds.items())))

    def is_complete(self, kind: str, namespace: str = "") -> bool:
        """Return whether an absent object does not exist, for a namespaced kind in this namespace. A dump never proves
        that."""
        if namespace and self.namespaces and namespace not in self.namespaces:
            return False
        return kind in self.complete or self.missing.get(kind) is MissingCause.ABSENT

    def may_lack(self, kind: str, namespace: str = "") -> bool:
        """Return whether the cluster may have objects of the kind that the dump lacks. Kinds that may not be listed are
        in `missing`."""
        if kind in self.missing or self.is_complete(kind, namespace):
            return False
        return kind in self.lacks or (self.is_dump and not self.kinds.get(kind))

    @property
    def header(self) -> SnapshotHeader:
        return SnapshotHeader(
            taken=self.taken,
            source=self.text,
            server_version=self.server_version,
            complete={kind: self.kinds.get(kind, 0) for kind in sorted(self.complete)},
            missing={kind: cause.value for kind, cause in self.missing.items()},
            namespaces=self.namespaces,
            formats=self.formats,
            lacks=self.lacks,
            scheduler_config=self.scheduler_config,
            anonymized=self.anonymized,
        )

    def with_header(self, header: SnapshotHeader) -> Source:
        """Apply the header of the files; the text stays."""
        causes = {cause.value: cause for cause in MissingCause}
        return replace(
            self,
            taken=header.taken,
            server_version=header.server_version,
            complete=frozenset(header.complete),
            missing={kind: causes[cause] for kind, cause in header.missing.items() if cause in causes},
            namespaces=header.namespaces,
            formats=header.formats,
            lacks=header.lacks,
            scheduler_config=header.scheduler_config or self.scheduler_config,
            anonymized=header.anonymized,
        )


# Complete manifests, for the few features that need more than scheduling reads.

MANIFEST_KINDS = frozenset({"Pod", "Node"})


class ManifestName(Struct, frozen=True, kw_only=True):
    name: str | None = ""
    namespace: str | None = ""


class ManifestHead(Struct, frozen=True, kw_only=True, rename="camel"):
    """The name of an object; subclasses add other fields."""

    api_version: str | None = ""
    kind: str | None = ""
    metadata: ManifestName | None = None

    def key_of(self, kind: str) -> str:
        """Return `namespace/name`, or the name of a cluster-scoped object; empty for an object of another kind."""
        version = self.api_version or ""
        if self.kind != kind or version not in ("v1", "") or self.metadata is None:
            return ""
        name = self.metadata.name or ""
        return f"{self.metadata.namespace or 'default'}/{name}" if kind == "Pod" else name


_HEADS: msgspec.json.Decoder[list[ManifestHead]] = msgspec.json.Decoder(list[ManifestHead])
_RAWS: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
_R = TypeVar("_R", bound=Struct)
_M = TypeVar("_M", bound=ManifestHead)


class StoredManifests:
    """Keeps JSON arrays of objects and decodes them on first use."""

    def __init__(
        self, texts: Sequence[bytes], added: Mapping[tuple[str, str], Mapping[str, object]] | None = None
    ) -> None:
        """`texts` were validated before; `added` replaces objects, by kind and name."""
        self._texts = texts
        self._added = added or {}

    def get(self, kind: str, name: str) -> Mapping[str, object] | None:
        """Return an object's manifest; for a pod, `name` is `namespace/name`."""
        if (kind, name) in self._added:
            return self._added[kind, name]
        raw = self._index.get((kind, name))
        manifest: dict[str, object] | None = None if raw is None else msgspec.json.decode(raw)
        return manifest

    def with_pod(self, key: str, manifest: Mapping[str, object]) -> StoredManifests:
        """Add or replace the manifest of a pod."""
        return StoredManifests(self._texts, {**self._added, ("Pod", key): manifest})

    def records(self, kind: str, record: type[_M]) -> dict[str, _M]:
        """Return the objects of a kind by `namespace/name`, or by name for nodes. Raises `InputError`. A list is
        decoded at once if `record` fits all its objects, of any kind."""
        decoder = msgspec.json.Decoder(list[record])  # type: ignore[valid-type] # a type at run time
        records_by_key: dict[str, _M] = {}
        for text in self._texts:
            try:
                read: Sequence[_M] = decoder.decode(text)
            except msgspec.ValidationError:
                heads = zip(_HEADS.decode(text), _RAWS.decode(text), strict=True)
                read = [decode(raw, record) for head, raw in heads if head.key_of(kind)]
            records_by_key.update((key, record) for record in read if (key := record.key_of(kind)))
        for (known, name), manifest in self._added.items():
            if known == kind:
                records_by_key[name] = decode(msgspec.json.encode(manifest), record)
        return records_by_key

    @cached_property
    def _index(self) -> Mapping[tuple[str, str], Raw]:
        texts: dict[tuple[str, str], Raw] = {}
        for text in self._texts:
            for head, raw in zip(_HEADS.decode(text), _RAWS.decode(text), strict=True):
                if head.kind in MANIFEST_KINDS and (key := head.key_of(head.kind)):
                    texts[head.kind, key] = raw  # a list that was read again replaces the earlier one
        return texts


class Contents(Struct, frozen=True, kw_only=True):
    """The contents of a cluster that scheduling reads."""

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
    pod_groups: Mapping[str, PodGroup] = field(default_factory=dict)  # `namespace/name` to pod group
    workloads: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)
    """(kind, namespace, name) to the manifest of an object with a pod template."""
    custom_resources: Mapping[tuple[str, str, str], bytes] = field(default_factory=dict)
    """(kind with its group, namespace, name) to the manifest of a known custom resource that creates pods."""
    devices: Devices = field(default_factory=Devices)
    storage: Storage = field(default_factory=Storage)
    namespace_annotations: Mapping[str, Labels] = field(default_factory=dict)
    """Namespace to its annotations that admission reads."""
    limit_ranges: Mapping[str, Sequence[LimitRange]] = field(default_factory=dict)  # by namespace, with defaults
    runtime_classes: Mapping[str, RuntimeClass] = field(default_factory=dict)
    failed_scheduling: Mapping[str, RecordedEvent] = field(default_factory=dict)
    """`namespace/name` of a pending pod to kube-scheduler's newest event, if events were read."""
    assigned: Mapping[str, RecordedEvent] = field(default_factory=dict)
    """`namespace/name` of a pod that was read without a node to the event that it has one since."""
    pod_warnings: Mapping[str, RecordedEvent] = field(default_factory=dict)
    """`namespace/name` of a pod with a node to the newest warning of its kubelet: volumes, sandbox, network."""
    evictions: Mapping[str, RecordedEvent] = field(default_factory=dict)
    """`namespace/name` of a pod with a node to the newest event of what ended it: `karpenter: Evicted pod: Drifted`."""
    preemptions: Sequence[RecordedPreemption] = ()
    """Pods that kube-scheduler preempted, whether they still exist or not; the newest first."""
    failed_creates: Mapping[tuple[str, str, str], RecordedEvent] = field(default_factory=dict)
    """(kind, namespace, name) of an owner to its controller's newest event about a pod that it could not create."""
    objects: Mapping[type[Struct], tuple[Struct, ...]] = field(default_factory=dict)
    """Record of a kind to its objects, for kinds without their own field."""
    manifests: StoredManifests | None = None  # complete pods and nodes, if they are kept
    autoscaler_events: Mapping[str, RecordedEvent] = field(default_factory=dict)
    """`namespace/name` of a pending pod to cluster-autoscaler's newest event."""
    node_group_errors: Mapping[str, str] = field(default_factory=dict)
    """Node group to the error of its last failed scale-up, according to cluster-autoscaler's events."""
    karpenter_events: Mapping[str, RecordedEvent] = field(default_factory=dict)
    """`namespace/name` of a pending pod to Karpenter's refusal."""


def fields_from_objects(objects: Objects) -> dict[str, object]:
    """Return a snapshot's fields for objects other than nodes and pods."""
    namespaces = objects_of(objects, Namespace)
    return {
        "namespaces": {it.metadata.name: default_namespace(it).metadata.labels for it in namespaces},
        "namespace_annotations": {namespace.metadata.name: _read_by_admission(namespace) for namespace in namespaces},
        "limit_ranges": _limit_ranges_by_namespace(objects_of(objects, LimitRange)),
        "runtime_classes": {it.metadata.name: it for it in objects_of(objects, RuntimeClass)},
        "services": objects_of(objects, Service),
        "replication_controllers": objects_of(objects, ReplicationController),
        "replica_sets": objects_of(objects, ReplicaSet),
        "stateful_sets": objects_of(objects, StatefulSet),
        "disruption_budgets": objects_of(objects, PodDisruptionBudget),
        "priority_classes": priority_classes(objects),
        "pod_groups": _groups_by_key(objects_of(objects, PodGroup), objects_of(objects, GroupedWorkload)),
        "devices": Devices.of(objects),
        "storage": Storage.of(objects),
        "objects": {record: tuple(some) for record, some in objects.items()},
    }


def _groups_by_key(groups: Iterable[PodGroup], workloads: Iterable[GroupedWorkload]) -> dict[str, PodGroup]:
    group_of = {group.key: group for group in groups}
    for workload in workloads:
        namespace = workload.metadata.namespace
        for entry in workload.spec.pod_groups:
            name = f"{workload.metadata.name}/{entry.name}"
            metadata = ObjectMeta(name=name, namespace=namespace)
            spec = PodGroupSpec(scheduling_policy=entry.policy)
            group_of[f"{namespace}/{name}"] = PodGroup(metadata=metadata, spec=spec)
    return group_of


def priority_classes(objects: Objects) -> dict[str, PriorityClass]:
    return {it.metadata.name: default_priority_class(it) for it in objects_of(objects, PriorityClass)}


def _read_by_admission(namespace: Namespace) -> Labels:
    """Return the annotations of a namespace that affect pods."""
    return {key: text for key, text in namespace.metadata.annotations.items() if key in READ_ANNOTATIONS}


def _limit_ranges_by_namespace(limit_ranges: Sequence[LimitRange]) -> dict[str, list[LimitRange]]:
    """Sort by name; the API server uses any order."""
    ranges: dict[str, list[LimitRange]] = {}
    for limit_range in sorted(limit_ranges, key=lambda limit_range: limit_range.metadata.name):
        ranges.setdefault(limit_range.metadata.namespace, []).append(limit_range)
    return ranges


def _is_predecessor(name: str, pod: ObjectMeta) -> bool:
    """Return whether a controller gives this name to pods like this one: with another random suffix or ordinal."""
    owner = pod.controller
    if owner is None or name == pod.name:
        return name == pod.name
    base, _, suffix = name.rpartition("-")
    if owner.kind == "StatefulSet":
        return base == owner.name and suffix.isdecimal()
    of_index, _, index = base.rpartition("-")
    return base == owner.name or (owner.kind == "Job" and of_index == owner.name and index.isdecimal())


def _affinity_of(segments: Collection[Segment]) -> VolumeNodeAffinity:
    """Return the node affinity of a volume that is in one of these segments."""
    values: dict[str, list[str]] = {}
    for segment in segments:
        for key, value in segment if len(segment) == 1 else ():
            values.setdefault(key, []).append(value)
    alternatives = [{key: tuple(of_key)} for key, of_key in values.items()]
    alternatives += [{key: (value,) for key, value in segment} for segment in segments if len(segment) > 1]
    terms = tuple(
        NodeSelectorTerm(
            match_expressions=tuple(
                SelectorRequirement(key=key, operator="In", values=of_key) for key, of_key in alternative.items()
            )
        )
        for alternative in alternatives
    )
    return VolumeNodeAffinity(required=None if () in segments else NodeSelector(node_selector_terms=terms))


class Snapshot(Contents, frozen=True, kw_only=True, dict=True):
    """A cluster at one moment. A change returns another snapshot that shares the rest."""

    _tables: dict[RequestOptions, NodeTable] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Snapshot: {self.cluster.count} nodes, {len(self.pods)} pods>"

    @cached_property
    def derived(self) -> Derived:
        """Values that others compute from this snapshot and keep with it."""
        return {}

    @cached_property
    def taken(self) -> str:
        """When the cluster was read: as its source says, or `TIME or later` by the newest time in it. Empty if it has
        no time."""
        if self.source.taken:
            return self.source.taken
        nodes, pods = self.cluster.nodes, self.pods
        conditions = (condition for node in nodes for condition in node.status.conditions)
        times = chain(
            *((condition.last_heartbeat_time, condition.last_transition_time) for condition in conditions),
            (node.metadata.creation_timestamp for node in nodes),
            pods.creation_timestamps,
            pods.start_times,
            (event.last_seen for events in (self.failed_scheduling, self.pod_warnings) for event in events.values()),
        )
        last = newest(times)
        return f"{last} or later" if last else ""

    def warning_about(self, pod: str) -> str:
        """Return the kubelet's newest warning about a pod, `namespace/name`; empty if there is none."""
        event = self.pod_warnings.get(pod)
        return "" if event is None else event.message

    def moment(self, now: str | None = None) -> int:
        """Return `now` in nanoseconds; without it, the time at which the cluster was read, or the present time. Raises
        `InputError` for a text that is no time."""
        return nanoseconds(now or self.source.taken or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))

    @cached_property
    def config_maps(self) -> Mapping[str, ConfigMap]:
        """ConfigMaps about cluster-autoscaler, by `namespace/name`. Those of an autoscaler in another namespace also
        count as those of kube-system."""
        by_key = {config_map.key: config_map for config_map in self.of(ConfigMap)}
        for key in (AUTOSCALER_STATUS, AUTOSCALER_PRIORITIES):
            name = key.rpartition("/")[2]
            for config_map in self.of(ConfigMap):
                if config_map.metadata.name == name:
                    by_key.setdefault(key, config_map)
        return by_key

    @property
    def only_namespaces(self) -> tuple[str, ...]:
        """The namespaces with pods; empty if the snapshot seems to have those of all, as it has pods of the system."""
        spaces = tuple(sorted({*self.pods.namespaces.values}))
        is_whole = self.source.is_complete("Pod") or any(space.startswith(SYSTEM_NAMESPACES) for space in spaces)
        return () if is_whole else spaces

    def may_run(self, *words: str) -> bool:
        """Return whether something is named after one of the words, or the snapshot may lack pods."""
        is_whole = len(self.pods) > 0 and not self.only_namespaces
        return not is_whole or self.is_named(*words)

    def is_named(self, *words: str) -> bool:
        """Return whether a pod, a workload, or a namespace has one of the words in its name, `/namespace/name`."""
        return any(word in self._names for word in words)

    @cached_property
    def _names(self) -> str:
        workloads = (f"{namespace}/{name}" for _, namespace, name in self.workloads)
        return "".join(f"/{name}\n" for name in (*self.namespaces, *self.pods.rows, *workloads))

    @cached_property
    def known_namespaces(self) -> frozenset[str]:
        """The namespaces of Namespace objects and of pods."""
        return frozenset((*self.namespaces, *self.pods.namespaces.values))

    @cached_property
    def terminating_namespaces(self) -> frozenset[str]:
        """Namespaces that are being deleted."""
        namespaces = self.of(Namespace)
        terminating = (it for it in namespaces if it.metadata.deletion_timestamp or it.status.phase == "Terminating")
        return frozenset(namespace.metadata.name for namespace in terminating)

    def failed_create(self, kind: str, owner: ObjectMeta) -> RecordedEvent | None:
        """Return its controller's newest event about what it could not create for an object; None for an event about an
        earlier object of that name."""
        event = self.failed_creates.get((kind, owner.namespace, owner.name))
        return event if event is not None and event.uid in ("", owner.uid) else None

    def manifest_of(self, workload: tuple[str, str, str]) -> dict[str, object] | None:
        """Return the manifest of an object with a pod template; None if the snapshot has at most its pods."""
        raw = self.workloads.get(workload)
        return None if raw is None else msgspec.json.decode(raw, type=dict[str, object])

    def replica_sets_of(self, namespace: str, deployment: str) -> Sequence[bytes]:
        """Return the manifests of a Deployment's ReplicaSets."""
        return self._replica_sets.get((namespace, deployment), ())

    @cached_property
    def _replica_sets(self) -> Mapping[tuple[str, str], Sequence[bytes]]:
        return group_pairs(
            ((namespace, owner.name), raw)
            for (kind, namespace, _), raw in self.workloads.items()
            for owner in (stored_metadata(raw).owner_references if kind == "ReplicaSet" else ())
            if owner.kind == "Deployment"
        )

    def controller_of(self, pod: Pod, *kinds: str) -> Controller | None:
        """Return the pod's controller; None if it is of no such kind, or if the snapshot lacks it."""
        owner = pod.metadata.controller
        if owner is None or owner.kind not in kinds:
            return None
        raw = self.workloads.get((owner.kind, pod.metadata.namespace, owner.name))
        return None if raw is None else stored_controller(raw)

    def preemptions_of(self, pod: ObjectMeta) -> tuple[RecordedPreemption, ...]:
        """Return the preemptions of earlier pods of a pod's controller, the newest first."""
        in_namespace = (each for each in self.preemptions if each.namespace == pod.namespace and each.uid != pod.uid)
        return tuple(each for each in in_namespace if _is_predecessor(each.name, pod))

    def of(self, record: type[_R]) -> tuple[_R, ...]:
        """Return the objects of the kind with this record."""
        return objects_of(self.objects, record)

    @cached_property
    def upgrading_rows(self) -> Mapping[str, Sequence[int]]:
        """The pods with which system-upgrade-controller upgrades nodes, by node."""
        pods = self.pods
        rows = pods.labels.where(lambda labels: UPGRADED_NODE in labels).nonzero()[0].tolist()
        return group_pairs((pods.labels[row][UPGRADED_NODE], row) for row in rows)

    @property
    def default_node_selector(self) -> str:
        """The node selector that OpenShift adds to pods in projects without their own."""
        return next((config.spec.default_node_selector for config in self.of(OpenShiftScheduler)), "")

    def with_records(self, record: type[_R], objects: Iterable[_R]) -> Snapshot:
        """Replace the objects of the kind with this record, which has no field of its own."""
        return replace(self, objects={**self.objects, record: tuple(objects)}, _tables=dict(self._tables))

    @classmethod
    def of_contents(cls, contents: Contents) -> Self:
        return cls(**{name: getattr(contents, name) for name in Contents.__struct_fields__})

    @classmethod
    def from_objects(cls, objects: Iterable[Mapping[str, object]]) -> Self:
        """Build a snapshot from manifests as dicts, in this order; files are sorted by namespace and name. Raises
        `InputError` for an invalid one."""
        from kschedx.snapshot.build import SnapshotBuilder  # imported late, because a loaded snapshot does not need it

        builder = SnapshotBuilder(whole=True)
        builder.add_objects(mappings(objects, "objects"))
        return cls.of_contents(builder.finish(keeps_order=True))

    def nodes(self, options: RequestOptions) -> NodeTable:
        """Return all nodes with their running pods; `options` decide how requests are counted."""
        table = self._tables.get(options)
        if table is None:
            table = self._tables[options] = NodeTable.of(self.cluster, self.pods, options)
        return table

    @cached_property
    def orphans(self) -> tuple[int, ...]:
        """Rows of unfinished pods whose node is not in the snapshot."""
        there = self.cluster.index
        lost = self.pods.node_names.where(lambda name: bool(name) and name not in there)
        unfinished = ~self.pods.finished
        return tuple(int(row) for row in np.flatnonzero(lost & unfinished & (self.pods.node < 0)))

    @property
    def lacks_all_pods(self) -> bool:
        """Whether a dump holds no pod: all that it shows of pods are the events about pending ones."""
        return not self.source.kinds.get("Pod") and self.source.may_lack("Pod")

    def has_only_event_of(self, pod: Pod) -> bool:
        """Return whether a dump without pods shows this one by an event alone, without its spec."""
        return not self.source.kinds.get("Pod") and not pod.spec.containers and pod.key in self.pods.rows

    def left_out_node(self, pod: Pod) -> bool:
        """Return whether a pod shows that a dump left out its node: it runs there, or its kubelet has accepted it."""
        is_there = pod.status.phase == "Running" or pod.status.start_time is not None
        return self.source.is_dump and is_there and pod.spec.node_name not in self.cluster.index

    @cached_property
    def with_finished_pods(self) -> Snapshot:
        """The cluster with finished pods that no API server has stored counted on their nodes."""
        if self.pods.counts_finished or not self.pods.finished_unstored.any():
            return self
        return replace(self, pods=self.pods.with_finished(self.cluster.index), _tables={})

    def terminating_victims(self, pod: Pod) -> tuple[str, ...]:
        """Return the pods with a lower priority that are terminating on the pod's nominated node."""
        node = self.cluster.index.get(pod.status.nominated_node_name)
        if node is None:
            return ()
        pods = self.pods
        rows = map(int, pods.on_node(node))
        return tuple(pods.key(row) for row in rows if pods.terminating[row] and pods.priorities[row] < pod.priority)

    def services_of(self, pod: Pod) -> tuple[Service, ...]:
        """Return the services that select the pod, in load order; kube-scheduler uses the order of a map."""
        return tuple(
            service
            for service in self.services
            if service.metadata.namespace == pod.metadata.namespace
            and service.spec.selector is not None
            and selector_from_set(service.spec.selector).matches(pod.metadata.labels)
        )

    # --- what-ifs

    def without_pods(self, rows: Iterable[int], *, keep_devices: bool = False) -> Snapshot:
        """Delete these pods: their rows stay, without a node and not pending. Devices that only they use become free,
        unless `keep_devices`; their claims stay."""
        gone = distinct(np.fromiter(rows, dtype=np.int64))
        pods, devices = self.pods.without(gone), self.devices
        tables = {options: table.without(pods, gone) for options, table in self._tables.items()}
        if devices.claims and not keep_devices:
            devices = devices.without_consumers({self.pods.key(row) for row in gone.tolist()})
        return replace(self, pods=pods, devices=devices, _tables=tables)

    def with_nodes(self, changed: Mapping[ClusterRow, Node]) -> Snapshot:
        """Replace nodes by row; names stay."""
        return self._over(self.cluster.with_nodes(changed), self.pods)

    def with_added_node(self, node: Node) -> Snapshot:
        pods = replace(self.pods, node_count=self.pods.node_count + 1, grouped=None)
        return self._over(self.cluster.with_added(node), pods)

    def _over(self, cluster: ClusterNodes, pods: PodTable) -> Snapshot:
        """Return the cluster with other nodes and all pods where they are."""
        tables = {options: table.over(cluster, pods) for options, table in self._tables.items()}
        return replace(self, cluster=cluster, pods=pods, _tables=tables)

    def with_answered_nodes(self, answered: Sequence[Node]) -> Snapshot:
        """Append modified copies of some nodes, without pods or images."""
        pods = replace(self.pods, node_count=self.pods.node_count + len(answered), grouped=None)
        return replace(self, cluster=self.cluster.with_answered(answered), pods=pods, _tables={})

    def with_devices(self, devices: Devices) -> Snapshot:
        is_kept = devices.slices is self.devices.slices
        same = self if is_kept else self.with_records(ResourceSlice, devices.slices)
        return replace(same, devices=devices, _tables=dict(self._tables))

    def with_claims(self, changed: Mapping[str, PersistentVolumeClaim]) -> Snapshot:
        """Replace or add claims by `namespace/name`."""
        return self.with_storage(replace(self.storage, claims={**self.storage.claims, **changed}))

    def with_new_claims(self, created: Mapping[str, PersistentVolumeClaim]) -> Snapshot:
        """Add new claims, bound if a driver provisions their volumes immediately in places that are known."""
        claims, volumes = {**self.storage.claims}, {**self.storage.volumes}
        places: dict[str, tuple[Segment, ...]] = {}
        for key, claim in created.items():
            named = new_claim(self.storage.with_default(claim))
            of_class = named.storage_class
            if of_class not in places:
                places[of_class] = self._places_of_new_volumes(of_class, created)
            claims[key] = named
            if places[of_class] and not claim.spec.volume_name:
                name = f"{named.metadata.namespace}-{named.name}"
                volume = volume_for(named, name, self.storage.classes[of_class], bound=True)
                claims[key] = bound_claim(named, name)
                metadata = replace(volume.metadata, uid=named.metadata.uid)
                spec = replace(volume.spec, node_affinity=_affinity_of(places[of_class]))
                volumes[name] = replace(volume, metadata=metadata, spec=spec)
        return self.with_storage(replace(self.storage, claims=claims, volumes=volumes))

    def provisions_first(self, claim: PersistentVolumeClaim) -> bool:
        """Return whether a driver provisions the volume of a new, unbound claim before its pod is scheduled. If another
        claim of the class has been waiting for its volume, the driver may not work."""
        of_class = self.storage.classes.get(claim.storage_class)
        return (
            claim.is_new
            and not claim.spec.volume_name
            and of_class is not None
            and self._provisions_immediately(of_class)
            and not of_class.refuses_modes(claim)
        )

    def _provisions_immediately(self, of_class: StorageClass, new: Collection[str] = ()) -> bool:
        # most claims are bound, and this is asked for each new claim of a cluster
        unbound = (claim for claim in self.storage.claims.values() if not claim.spec.volume_name)
        waiting = (it for it in unbound if it.storage_class == of_class.name and not (it.is_new or it.key in new))
        return of_class.provisions_first and not any(waiting)

    def _places_of_new_volumes(self, name: str, new: Collection[str]) -> tuple[Segment, ...]:
        """Return the topology segments among which a driver chooses for a volume that a class provisions before its pod
        is scheduled; empty if they are unknown, since no object shows the driver or a node lacks its labels. Upstream:
        GenerateAccessibilityRequirements in external-provisioner/pkg/controller/topology.go."""
        storage, of_class = self.storage, self.storage.classes.get(name)
        if of_class is None or not self._provisions_immediately(of_class, new):
            return ()
        segments: dict[Segment, None] = {}
        for node, csi_node in storage.csi_nodes.items():
            row = self.cluster.index.get(node)
            labels = {} if row is None else self.cluster.nodes[row].metadata.labels
            for driver in csi_node.spec.drivers:
                if driver.name == of_class.driver:
                    segments[tuple((key, labels.get(key, "")) for key in driver.topology_keys)] = None
        if not segments:  # a provisioner without CSI: volumes of the class show that it works, and for which nodes
            specs = [volume.spec for volume in storage.volumes.values() if volume.spec.storage_class_name == name]
            is_everywhere = specs and not any(spec.node_affinity for spec in specs)
            return ((),) if is_everywhere and not of_class.allowed_topologies else ()
        if of_class.allowed_topologies and () not in segments:
            return of_class.allowed_segments
        return () if any(not value for segment in segments for _, value in segment) else tuple(segments)

    def with_storage(self, storage: Storage) -> Snapshot:
        return replace(self, storage=storage, _tables=dict(self._tables))
