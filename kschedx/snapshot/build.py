"""Batches of JSON objects to a Snapshot: the one way in, for files of any size and for dicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Raw, Struct

from kschedx.api import storage, types
from kschedx.api.admission import resolve_priority
from kschedx.api.decode import decode
from kschedx.api.defaulting import (
    default_namespace,
    default_node,
    default_pod_spec,
    default_pod_status,
    default_priority_class,
    merge_label_keys,
    uses_label_keys,
)
from kschedx.errors import InputError, Place
from kschedx.snapshot.columns import Column
from kschedx.snapshot.devices import device_class_of_resource
from kschedx.snapshot.images import NodeImages
from kschedx.snapshot.kinds import CLUSTER_SCOPED, GROUPS, WORKLOADS, refuse_unknown
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot, Source
from kschedx.snapshot.storage import Storage
from kschedx.snapshot.wire import (
    NodeItem,
    OtherItem,
    PersistentVolumeClaimItem,
    PersistentVolumeItem,
    PodItem,
    SlimVolume,
)

TYPED: Mapping[str, type[Any]] = {
    "Namespace": types.Namespace,
    "Service": types.Service,
    "ReplicationController": types.ReplicationController,
    "ReplicaSet": types.ReplicaSet,
    "StatefulSet": types.StatefulSet,
    "PodDisruptionBudget": types.PodDisruptionBudget,
    "PriorityClass": types.PriorityClass,
    "PodGroup": types.PodGroup,
    "DeviceClass": types.DeviceClass,
    "PersistentVolume": storage.PersistentVolume,
    "PersistentVolumeClaim": storage.PersistentVolumeClaim,
    "StorageClass": storage.StorageClass,
    "CSINode": storage.CSINode,
    "CSIDriver": storage.CSIDriver,
    "CSIStorageCapacity": storage.CSIStorageCapacity,
    "VolumeAttachment": storage.VolumeAttachment,
}


T = TypeVar("T")


class Origin(Protocol):
    """Where the objects of a batch come from."""

    def place(self, index: int) -> Place: ...


class Batch(Protocol):
    """Some objects as a JSON array (sources.batch.Batch)."""

    @property
    def origin(self) -> Origin: ...

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        """Raises msgspec.ValidationError where an object does not have the decoder's shape, `InputError` for no JSON."""
        ...


class _Dicts(Struct, frozen=True):
    """Manifests as dicts, as a batch that is its own origin."""

    items: bytes

    @property
    def origin(self) -> Origin:
        return self

    def place(self, index: int) -> Place:
        return Place(document=index + 1)

    def decode(self, decoder: msgspec.json.Decoder[T]) -> T:
        return decoder.decode(self.items)


class SnapshotBuilder:
    """Collects batches; `finish` checks what only the whole can tell and makes the snapshot."""

    def __init__(self) -> None:
        self.kinds: Counter[str] = Counter()
        self._pods = _Pods()
        self._nodes: list[types.Node] = []
        self._images = NodeImages()
        self._others: dict[str, list[Any]] = {kind: [] for kind in TYPED}
        self._workloads: dict[tuple[str, str, str], bytes] = {}
        self._seen: dict[tuple[str, str, str], tuple[Origin, int]] = {}

    def add_objects(self, objects: Sequence[Mapping[str, object]]) -> None:
        """Manifests as dicts; a `List` counts as its items."""
        flat: list[object] = []
        for item in objects:
            items = item.get("items")
            flat.extend(items if item.get("kind") == "List" and isinstance(items, list) else [item])
        self.add(_Dicts(msgspec.json.encode(flat)))

    def add(self, batch: Batch) -> None:
        """Raises `InputError` with an object's place and field path."""
        origin = batch.origin
        try:
            parsed = batch.decode(_BULK)
        except msgspec.ValidationError:
            raws = batch.decode(_RAWS)
            for index, raw in enumerate(raws):
                self._add_one(raw, index, origin)
            return
        for index, item in enumerate(parsed):
            if isinstance(item, PodItem):
                self._add_pod(item, index, origin)
            elif isinstance(item, NodeItem):
                self._add_node(item, index, origin)
            else:
                self._add_volume(item, index, origin)

    def _add_volume(self, item: PersistentVolumeItem | PersistentVolumeClaimItem, index: int, origin: Origin) -> None:
        kind = "PersistentVolume" if isinstance(item, PersistentVolumeItem) else "PersistentVolumeClaim"
        namespace = "" if kind in CLUSTER_SCOPED else item.metadata.namespace or "default"
        self._once(kind, namespace, item.metadata.name, index, origin)
        try:
            self._add_typed(kind, item, namespace)
        except InputError as error:
            title = f"{kind} {namespace}/{item.metadata.name}" if namespace else f"{kind} {item.metadata.name}"
            raise error.at(Place(object=title)).at(origin.place(index)) from None

    def _add_one(self, raw: Raw, index: int, origin: Origin) -> None:
        """Any object, with the error of its own where it is broken."""
        try:
            head = decode(raw, OtherItem)
            kind = head.kind or ""
            if GROUPS.get(kind) != head.group:
                refuse_unknown(kind, head.group)
                self.kinds[kind or "?"] += 1
                return
            meta = head.metadata
            name = (
                f"{kind} {meta.namespace}/{meta.name}"
                if meta and meta.namespace
                else f"{kind} {meta.name if meta else ''}"
            )
        except InputError as error:
            raise error.at(origin.place(index)) from None
        try:
            if kind == "Pod":
                self._add_pod(_decode_item(raw, PodItem), index, origin)
            elif kind == "Node":
                self._add_node(_decode_item(raw, NodeItem), index, origin)
            else:
                self._add_other(kind, raw, index, origin)
        except InputError as error:
            raise error.at(Place(object=name.strip())).at(origin.place(index)) from None

    def _add_pod(self, item: PodItem, index: int, origin: Origin) -> None:
        meta = item.metadata
        namespace = meta.namespace or "default"
        self._once("Pod", namespace, meta.name or "", index, origin)
        try:
            self._pods.add(item, namespace)
        except InputError as error:
            raise error.at(Place(object=f"Pod {namespace}/{meta.name}")).at(origin.place(index)) from None

    def _add_node(self, item: NodeItem, index: int, origin: Origin) -> None:
        self._once("Node", "", item.metadata.name, index, origin)
        status = item.status
        node = types.Node(metadata=item.metadata, spec=item.spec or types.NodeSpec())
        images = b""
        if status is not None:
            node = msgspec.structs.replace(
                node,
                status=types.NodeStatus(
                    capacity=status.capacity or {},
                    allocatable=status.allocatable or {},
                    declared_features=status.declared_features or (),
                    node_info=status.node_info or types.NodeSystemInfo(),
                ),
            )
            if isinstance(status.images, Raw):
                images = bytes(status.images)
        try:
            self._nodes.append(default_node(node))
            self._images.add(b"" if images == b"null" else images)
        except InputError as error:
            raise error.at(Place(object=f"Node {node.name}")).at(origin.place(index)) from None

    def _add_other(self, kind: str, raw: Raw, index: int, origin: Origin) -> None:
        metadata = decode(raw, OtherItem).metadata
        name = (metadata.name if metadata else None) or ""
        namespace = (metadata.namespace if metadata else None) or ("" if kind in CLUSTER_SCOPED else "default")
        self._once(kind, namespace, name, index, origin)
        if kind in WORKLOADS:
            self._workloads[kind, namespace, name] = bytes(raw)
        if kind in TYPED:
            self._add_typed(kind, decode(raw, TYPED[kind]), namespace)

    def _add_typed(self, kind: str, typed: Any, namespace: str) -> None:
        if namespace and not typed.metadata.namespace:
            typed = msgspec.structs.replace(
                typed, metadata=msgspec.structs.replace(typed.metadata, namespace=namespace)
            )
        if kind in _WITH_SIZES:
            storage.check_quantities(typed)
        self._others[kind].append(typed)

    def _once(self, kind: str, namespace: str, name: str, index: int, origin: Origin) -> None:
        """Count an object; a second one of the same name is an error."""
        self.kinds[kind] += 1
        key = (kind, namespace, name)
        first = self._seen.setdefault(key, (origin, index))
        if first[0] is not origin or first[1] != index:
            title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
            where = str(first[0].place(first[1]))
            raise InputError(
                f"there is already one of this name{f' in {where}' if where else ''}", place=Place(object=title)
            ).at(origin.place(index))

    def place_of_pod(self, namespace: str, name: str) -> Place:
        """Where a pod was read."""
        origin, index = self._seen["Pod", namespace, name]
        return origin.place(index)

    def finish(self, source: str = "") -> Snapshot:
        """The snapshot of everything that was added. Raises `InputError` for an unknown PriorityClass."""
        classes = {c.metadata.name: default_priority_class(c) for c in self._others["PriorityClass"]}
        index = {node.metadata.name: row for row, node in enumerate(self._nodes)}
        pods = self._pods.table(index, classes)
        return Snapshot(
            source=Source(text=source, kinds=dict(self.kinds)),
            cluster=ClusterNodes(self._nodes, self._images),
            pods=pods,
            namespaces={n.metadata.name: default_namespace(n).metadata.labels for n in self._others["Namespace"]},
            services=self._others["Service"],
            replication_controllers=self._others["ReplicationController"],
            replica_sets=self._others["ReplicaSet"],
            stateful_sets=self._others["StatefulSet"],
            disruption_budgets=self._others["PodDisruptionBudget"],
            priority_classes=classes,
            pod_groups={f"{g.metadata.namespace}/{g.metadata.name}": g for g in self._others["PodGroup"]},
            workloads=self._workloads,
            device_class_of_resource=device_class_of_resource(self._others["DeviceClass"]),
            storage=Storage.of(self._others),
        )


_WITH_SIZES = frozenset({"PersistentVolume", "PersistentVolumeClaim", "CSIStorageCapacity"})
_BulkItem = PodItem | NodeItem | PersistentVolumeItem | PersistentVolumeClaimItem
_BULK: msgspec.json.Decoder[list[_BulkItem]] = msgspec.json.Decoder(list[_BulkItem])
_RAWS: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
_ENCODER = msgspec.json.Encoder()


def _decode_item(raw: Raw, kind: type[Any]) -> Any:
    return decode(raw, kind)


class _Interner:
    """Raw JSON to a code; each distinct text is decoded once."""

    __slots__ = ("codes", "index", "values")

    def __init__(self, empty: object) -> None:
        self.codes: list[int] = []
        self.index: dict[bytes, int] = {b"": 0}
        self.values: list[Any] = [empty]

    def add(self, key: bytes, make: Callable[[bytes], object]) -> int:
        """Append the code of `key`; raises what `make` does."""
        code = self.index.get(key)
        if code is None:
            value = make(key)
            code = self.index[key] = len(self.values)
            self.values.append(value)
        self.codes.append(code)
        return code

    def column(self) -> Column[Any]:
        return Column(np.array(self.codes, dtype=np.int64), self.values)


class _Pods:
    """The columns of a PodTable while they grow."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.namespaces: list[str] = []
        self.uids: list[str] = []
        self.labels = _Interner({})
        self.owners = _Interner(())
        self.specs = _Interner(types.PodSpec())
        self.uses_label_keys: dict[int, bool] = {}
        self.statuses = _Interner(types.PodStatus())
        self.phases: list[str] = []
        self.start_times: list[str | None] = []
        self.creation_timestamps: list[str | None] = []
        self.deletion_timestamps: list[str | None] = []
        self.nominated: list[str] = []
        self.node_names: list[str] = []

    def add(self, item: PodItem, namespace: str) -> None:
        meta, spec, status = item.metadata, item.spec, item.status
        labels_key = bytes(meta.labels) if isinstance(meta.labels, Raw) else b""
        labels = self.labels.values[self.labels.add(labels_key, _labels)]
        self.owners.add(bytes(meta.owner_references) if isinstance(meta.owner_references, Raw) else b"", _owners)
        node_name = spec.node_name
        spec.node_name = UNSET
        if spec.volumes:
            # volumes that no plugin reads differ from pod to pod by their generated names
            spec.volumes = [v for v in spec.volumes if v != SlimVolume(name=v.name)] or UNSET
        key = _ENCODER.encode(spec)
        code = self.specs.add(key, _pod_spec)
        template = self.specs.values[code]
        if code not in self.uses_label_keys:
            self.uses_label_keys[code] = uses_label_keys(template)
        if self.uses_label_keys[code]:
            # pods of one template with other labels then differ in their selectors
            self.specs.codes.pop()
            self.specs.add(key + labels_key, lambda _: merge_label_keys(template, labels))
        self.statuses.add(_slim_status(status) if status is not None else b"", _pod_status)
        self.names.append(meta.name or "")
        self.namespaces.append(namespace)
        self.uids.append(meta.uid or "")
        self.creation_timestamps.append(meta.creation_timestamp)
        self.deletion_timestamps.append(meta.deletion_timestamp)
        self.node_names.append(node_name or "")
        self.phases.append((status.phase if status else None) or "")
        self.start_times.append(status.start_time if status else None)
        self.nominated.append((status.nominated_node_name if status else None) or "")

    def table(self, nodes: Mapping[str, int], classes: Mapping[str, types.PriorityClass]) -> PodTable:
        specs = self.specs.column()
        specs.values = [resolve_priority(spec, classes) for spec in specs.values]
        phases, node_names = Column.of(self.phases), Column.of(self.node_names)
        finished = phases.where(lambda phase: phase in ("Succeeded", "Failed"))
        return PodTable(
            names=self.names,
            namespaces=Column.of(self.namespaces),
            uids=self.uids,
            labels=self.labels.column(),
            owners=self.owners.column(),
            specs=specs,
            statuses=self.statuses.column(),
            phases=phases,
            start_times=self.start_times,
            creation_timestamps=self.creation_timestamps,
            deletion_timestamps=self.deletion_timestamps,
            nominated_node_names=self.nominated,
            node_names=node_names,
            node=np.where(finished, -1, node_names.map(lambda name: nodes.get(name, -1))),
            node_count=len(nodes),
        )


def _slim_status(status: Any) -> bytes:
    """The part of a pod's status that is neither phase, start time nor nomination; empty for nearly every pod."""
    part: dict[str, object] = {}
    if isinstance(status.conditions, Raw):
        text = bytes(status.conditions)
        # the two conditions that scheduling reads; all others carry timestamps of their own
        if b"DisruptionTarget" in text or b"PodResizePending" in text:
            part["conditions"] = status.conditions
    for name, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        resized = [s for s in statuses or () if isinstance(s.resources, Raw)] if statuses is not UNSET else []
        if resized:
            part[name] = resized
    if isinstance(status.allocated_resources, Raw):
        part["allocatedResources"] = status.allocated_resources
    if isinstance(status.resources, Raw):
        part["resources"] = status.resources
    return _ENCODER.encode(part) if part else b""


def _pod_spec(text: bytes) -> types.PodSpec:
    try:
        spec = decode(text, types.PodSpec)
    except InputError as error:
        raise error.at(Place(field="spec")) from None
    return default_pod_spec(spec)


def _pod_status(text: bytes) -> types.PodStatus:
    try:
        status = decode(text, types.PodStatus)
    except InputError as error:
        raise error.at(Place(field="status")) from None
    return default_pod_status(status)


def _labels(text: bytes) -> dict[str, str]:
    try:
        return decode(text, dict[str, str]) if text != b"null" else {}
    except InputError as error:
        raise error.at(Place(field="metadata.labels")) from None


def _owners(text: bytes) -> tuple[types.OwnerReference, ...]:
    try:
        return decode(text, tuple[types.OwnerReference, ...]) if text != b"null" else ()
    except InputError as error:
        raise error.at(Place(field="metadata.ownerReferences")) from None
