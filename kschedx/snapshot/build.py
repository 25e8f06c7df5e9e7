"""Build a snapshot from batches of JSON objects from any source."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import NoReturn, Protocol, TypeVar

import msgspec
from msgspec import Raw, Struct

from kschedx.apiserver import defaulting as device_defaults
from kschedx.apiserver.admission import default_limit_range
from kschedx.apiserver.defaulting import default_node
from kschedx.apiserver.pod_classes import check_runtime_class
from kschedx.errors import InputError, Place
from kschedx.kube import devices, storage, types
from kschedx.kube.custom_resources import custom_kind
from kschedx.kube.decoding import decode, encode
from kschedx.kube.kinds import KINDS, ResourceKind, key_of, kind_of, metadata_of, name_of, refuse_unknown
from kschedx.kube.selectors import LabelSelector
from kschedx.kube.snapshot_header import SnapshotHeader, merge_headers
from kschedx.snapshot import events
from kschedx.snapshot import snapshot as manifests
from kschedx.snapshot.columns import ClusterRow
from kschedx.snapshot.nodes import ClusterNodes, NodeImages
from kschedx.snapshot.snapshot import Contents, Source, fields_from_objects, priority_classes
from kschedx.snapshot.wire import (
    DuplicateNameError,
    NodeItem,
    OtherItem,
    PersistentVolumeClaimItem,
    PersistentVolumeItem,
    PodColumns,
    PodItem,
    SlimObjectMeta,
    SlimPodSpec,
)

_B = TypeVar("_B")
_STATUS_NAME = types.AUTOSCALER_STATUS.rpartition("/")[2]


class _ObjectOrigin(Protocol):
    """The origin of a batch's objects."""

    def place(self, index: int) -> Place: ...


class ObjectBatch(Protocol):
    """Objects as a JSON array (sources.batch.Batch)."""

    @property
    def origin(self) -> _ObjectOrigin: ...

    @property
    def header(self) -> SnapshotHeader | None:
        """The header of the file, once per file."""

    def decode(self, decoder: msgspec.json.Decoder[_B]) -> _B:
        """Raises msgspec.ValidationError if an object does not match the decoder's type, and `InputError` for invalid
        JSON."""
        ...


class ObjectPage(Protocol):
    """A page of an API server's list (sources.live.lists.ListPage)."""

    @property
    def kind(self) -> str: ...

    @property
    def origin(self) -> _ObjectOrigin: ...

    def decode(self, decoder: msgspec.json.Decoder[_B]) -> _B:
        """As `Batch.decode`."""

    def with_kinds(self) -> ObjectBatch:
        """Return the same objects, each with its kind."""
        ...


class Dicts(Struct, frozen=True):
    """Manifests as dicts: a batch with itself as origin."""

    items: bytes
    header: SnapshotHeader | None = None

    @property
    def origin(self) -> _ObjectOrigin:
        return self

    def place(self, index: int) -> Place:
        return Place(document=index + 1)

    def decode(self, decoder: msgspec.json.Decoder[_B]) -> _B:
        return decoder.decode(self.items)


# Batches of JSON objects to a Snapshot's contents: the only way in, for files of any size and for dicts.


class _PodsRefusedError(Exception):
    """Some pods are invalid; `indexes` are their positions in the batch."""

    def __init__(self, indexes: Sequence[int]) -> None:
        super().__init__()
        self.indexes = indexes


class SnapshotBuilder:
    """Collects batches; `finish` checks what depends on the whole snapshot."""

    def __init__(self, *, whole: bool = False, refuse: Callable[[InputError], None] | None = None) -> None:
        """`whole` keeps the complete manifests of pods and nodes. With `refuse`, an invalid object is left out and
        `refuse` is called with the error; a second object with the same name is left out silently."""
        self._refuse = refuse
        self.kinds: Counter[str] = Counter()
        self._texts: list[bytes] | None = [] if whole else None
        self.headers: list[SnapshotHeader] = []
        self._pods = PodColumns()
        self._nodes: list[types.Node] = []
        self._images = NodeImages()
        self._others: dict[str, list[Struct]] = {key: [] for key in KINDS}
        self._workloads: dict[tuple[str, str, str], bytes] = {}
        self._custom: dict[tuple[str, str, str], bytes] = {}
        self._pod_places: list[tuple[int, _ObjectOrigin, Sequence[int]]] = []
        """First row, origin, and positions in the batch of the pods that were added together."""
        self._schedulers: list[int] = []  # positions in the batch of the pods that run kube-scheduler
        self._config_file = ""  # the file that it gets with --config
        self._events = events.RecordedEvents()
        self._seen: dict[tuple[str, str, str], tuple[_ObjectOrigin, int]] = {}
        """The origin and position of every other object."""

    def add_objects(self, objects: Sequence[Mapping[str, object]]) -> None:
        """Add manifests as dicts. A `List` or `PodList` counts as its items, which need no kind in the latter."""
        flat: list[object] = []
        for item in objects:
            kind, items = item.get("kind"), item.get("items")
            if not isinstance(kind, str) or not kind.endswith("List") or not isinstance(items, list):
                flat.append(item)
                continue
            head = {"kind": kind.removesuffix("List"), "apiVersion": item.get("apiVersion")} if kind != "List" else {}
            flat.extend({**head, **item} if isinstance(item, Mapping) else item for item in items)
        self.add(Dicts(encode(flat, "objects")))

    def add_page(self, page: ObjectPage) -> None:
        """Add a page of an API server's list, whose items have no kind. Raises `InputError` as `add`."""
        items = _decoder(page.kind)
        if items is not None:
            try:
                self._add_items(page.decode(items), page.origin)
                self._read_flags(page)
                if self._texts is not None and page.kind in manifests.MANIFEST_KINDS:
                    self._keep(page.with_kinds())
                return
            except msgspec.ValidationError:
                pass  # reported below, at the invalid object
        self.add(page.with_kinds())

    def forget(self, kind: str) -> None:
        """Remove every object of a kind, before its list is read again."""
        del self.kinds[kind]
        self._seen = {key: place for key, place in self._seen.items() if key[0] != kind}
        self._workloads = {key: raw for key, raw in self._workloads.items() if key[0] != kind}
        if kind == "Pod":
            self._pods, self._pod_places = PodColumns(), []
        elif kind == "Node":
            self._nodes, self._images = [], NodeImages()
        elif kind in self._others:
            self._others[kind] = []
        elif kind == events.KIND:
            self._events = events.RecordedEvents()
        self._custom = {key: raw for key, raw in self._custom.items() if key[0] != kind}

    def add(self, batch: ObjectBatch) -> None:
        """Raises `InputError` with an object's place and field path."""
        origin = batch.origin
        if batch.header is not None and batch.header not in self.headers:
            self.headers.append(batch.header)
        try:
            parsed = batch.decode(_BULK)
        except msgspec.ValidationError:
            raws = batch.decode(_RAWS)
            self._add_each(raws, range(len(raws)), origin)
        else:
            try:
                self._add_items(parsed, origin)
            except _PodsRefusedError as error:
                raws = batch.decode(_RAWS)
                self._add_each(raws, error.indexes, origin)
        self._read_flags(batch)
        self._keep(batch)

    def _read_flags(self, batch: ObjectBatch | ObjectPage) -> None:
        """Read which configuration the kube-scheduler of the batch gets; pods are kept without their commands."""
        if self._schedulers and not self._config_file:
            from kschedx.sources.configurations import config_flag

            raws = batch.decode(_RAWS)
            for container in (it for at in self._schedulers for it in decode(raws[at], _SchedulerPod).spec.containers):
                self._config_file = self._config_file or config_flag([*container.command, *container.args])
        self._schedulers = []

    def _add_each(self, raws: Sequence[Raw], indexes: Iterable[int], origin: _ObjectOrigin) -> None:
        """Add objects one by one, to find the error of each."""
        for index in indexes:
            pods = len(self._pods)
            try:
                self._add_object(raws[index], index, origin)
            except InputError as error:
                if self._refuse is None:
                    raise
                self._take_back(pods)
                self._refuse(error)

    def _take_back(self, pods: int) -> None:
        """Remove all but the first `pods` pods."""
        self._pods.cut(pods)
        self._pod_places = [place for place in self._pod_places if place[0] < pods]

    def _keep(self, batch: ObjectBatch) -> None:
        if self._texts is not None:
            self._texts.append(msgspec.json.encode(batch.decode(_RAWS)))

    def _add_items(self, items: Sequence[_BulkItem], origin: _ObjectOrigin) -> None:
        pods: list[PodItem] = []
        indexes: list[int] = []
        for index, item in enumerate(items):
            if isinstance(item, events.EventItem):
                self._add_event(item)
            elif self._refuse is not None and self._is_copy(str(item.__struct_config__.tag), item.metadata):
                continue
            elif item.api_version not in ("v1", ""):
                self.kinds[key_of(str(item.__struct_config__.tag), item.api_version.rpartition("/")[0])] += 1
            elif isinstance(item, PodItem):
                pods.append(item)
                indexes.append(index)
            else:
                try:
                    if isinstance(item, NodeItem):
                        self._add_node(item, index, origin)
                    else:
                        self._add_volume(item, index, origin)
                except InputError as error:
                    if self._refuse is None:
                        raise
                    self._refuse(error)
        if pods:
            first = len(self._pods)
            try:
                self._add_pods(pods, indexes, origin)
            except InputError as error:
                if self._refuse is None:
                    raise
                self._take_back(first)
                raise _PodsRefusedError(indexes) from error

    def _is_copy(self, kind: str, meta: SlimObjectMeta | types.ObjectMeta | None) -> bool:
        """Return whether an object with this name exists and duplicates are allowed."""
        if meta is None:
            return False
        namespace, name = meta.namespace or "default", meta.name or ""
        if kind == "Pod":
            return f"{namespace}/{name}" in self._pods.rows
        return (kind, namespace if KINDS[kind].is_namespaced else "", name) in self._seen

    def _add_event(self, item: events.EventItem) -> None:
        self.kinds[events.KIND] += 1
        self._events.add(item)

    def _add_volume(
        self, item: PersistentVolumeItem | PersistentVolumeClaimItem, index: int, origin: _ObjectOrigin
    ) -> None:
        kind = "PersistentVolume" if isinstance(item, PersistentVolumeItem) else "PersistentVolumeClaim"
        namespace = item.metadata.namespace or "default" if KINDS[kind].is_namespaced else ""
        try:
            typed = _typed(item, namespace)
            if self._is_first(kind, namespace, item.metadata.name, index, origin, lambda: typed in self._others[kind]):
                self._others[kind].append(typed)
        except InputError as error:
            title = f"{kind} {namespace}/{item.metadata.name}" if namespace else f"{kind} {item.metadata.name}"
            raise error.at(Place(object=title)).at(origin.place(index)) from None

    def _add_object(self, raw: Raw, index: int, origin: _ObjectOrigin) -> None:
        """Add an object of any kind, or report its error."""
        try:
            head = decode(raw, OtherItem)
            name = head.kind or ""
            if name == events.KIND and head.group in events.GROUPS:
                self._add_event(decode(raw, events.EventItem))
                return
            kind = kind_of(name, head.group)
            if kind is None:
                refuse_unknown(name, head.group, head.report)
                key = key_of(name, head.group)
                self.kinds[key or "?"] += 1
                if head.metadata is not None and custom_kind(name, head.group) is not None:
                    self._custom[key, head.metadata.namespace or "default", head.metadata.name or ""] = bytes(raw)
                return
            meta = head.metadata
            if self._refuse is not None and self._is_copy(kind.key, meta):
                return
            own = (meta.name if meta else None) or ""
            title = f"{name} {meta.namespace}/{own}" if meta and meta.namespace else f"{name} {own}"
        except InputError as error:
            raise error.at(origin.place(index)) from None
        try:
            if kind.key == "Pod":
                self._add_pods([decode(raw, PodItem)], [index], origin)
            elif kind.key == "Node":
                self._add_node(decode(raw, NodeItem), index, origin)
            else:
                self._add_other(kind, raw, index, origin)
        except InputError as error:
            raise error.at(Place(object=title.strip())).at(origin.place(index)) from None

    def _add_pods(self, items: Sequence[PodItem], indexes: Sequence[int], origin: _ObjectOrigin) -> None:
        """`indexes` are the items' positions in their batch."""

        def fail(item: int, error: InputError) -> NoReturn:
            meta = items[item].metadata
            place = Place(object=f"Pod {meta.namespace or 'default'}/{meta.name}")
            if isinstance(error, DuplicateNameError):
                error = _second(self._place_of_row(error.row))
            raise error.at(place).at(origin.place(indexes[item])) from None

        first = len(self._pods)
        names = (item.metadata.name or "" for item in items)
        self._schedulers += [at for at, name in zip(indexes, names, strict=True) if name.startswith(_SCHEDULERS)]
        self._pod_places.append((first, origin, indexes))
        if again := self._pods.add(items, fail):
            kept = [index for item, index in enumerate(indexes) if item not in again]
            self._pod_places[-1] = (first, origin, kept)

    def _place_of_row(self, row: int) -> Place:
        """Return where the pod of a row was read."""
        first, origin, indexes = self._pod_places[bisect_right(self._pod_places, row, key=lambda place: place[0]) - 1]
        return origin.place(indexes[row - first])

    def _add_node(self, item: NodeItem, index: int, origin: _ObjectOrigin) -> None:
        status = item.status
        node = types.Node(metadata=item.metadata, spec=item.spec or types.NodeSpec())
        images = b""
        if status is not None:
            node = msgspec.structs.replace(
                node,
                status=types.NodeStatus(
                    capacity=status.capacity or {},
                    allocatable=status.allocatable or {},
                    conditions=status.conditions or (),
                    declared_features=status.declared_features or (),
                    node_info=status.node_info or types.NodeSystemInfo(),
                ),
            )
            if isinstance(status.images, Raw):
                images = bytes(status.images)
        try:
            if not node.name:
                raise InputError("Required value", place=Place(field="metadata.name"))
            node = default_node(node)
            if self._is_first("Node", "", node.name, index, origin, lambda: node in self._nodes):
                self._images.add(b"" if images == b"null" else images)
                self._nodes.append(node)
        except InputError as error:
            raise error.at(Place(object=f"Node {node.name}")).at(origin.place(index)) from None

    def _add_other(self, kind: ResourceKind, raw: Raw, index: int, origin: _ObjectOrigin) -> None:
        metadata = decode(raw, OtherItem).metadata
        name = (metadata.name if metadata else None) or ""
        namespace = (metadata.namespace if metadata else None) or ("default" if kind.is_namespaced else "")
        key, is_template = (kind.key, namespace, name), bool(kind.template) and kind.kept is not None
        is_read = kind.record is not None and kind.is_read(namespace, name, raw)
        typed = _typed(decode(raw, kind.record), namespace) if is_read and kind.record is not None else None
        if isinstance(typed, types.ConfigMap):
            typed = msgspec.structs.replace(typed, data=kind.read_values(namespace, name, typed.data))

        def is_equal() -> bool:
            is_known = typed is None or typed in self._others[kind.key]
            return is_known and not (is_template and not _is_same_object(self._workloads[key], raw))

        if is_template and kind.kept is not None:
            decode(raw, kind.kept)  # its readers need no check
        if not self._is_first(*key, index, origin, is_equal):
            return
        if is_template:
            self._workloads[key] = bytes(raw)
        if typed is not None:
            self._others[kind.key].append(typed)

    def _is_dump_of_events(self) -> bool:
        """Return whether the dump of an API server may lack the pods of its events, or whether it has nothing else."""
        is_stored = any(node.metadata.is_stored for node in self._nodes)
        is_complete = any("Pod" in header.complete for header in self.headers)
        return (is_stored or self.kinds.keys() == {events.KIND}) and not is_complete

    def _add_pods_of_events(self) -> None:
        """Add the pending pods of which a dump without pods has events, with all that is known of them."""

        def fail(item: int, error: InputError) -> NoReturn:
            raise error.at(Place(object=f"Event about {items[item].metadata.name}"))

        items = []
        for pod, (scheduler, event) in self._events.of_unread_pods().items():
            namespace, _, name = pod.partition("/")
            metadata = SlimObjectMeta(name=name, namespace=namespace, uid=event.uid, creation_timestamp=event.last_seen)
            items.append(PodItem(metadata=metadata, spec=SlimPodSpec(scheduler_name=scheduler)))
        self._pods.add(items, fail)

    def _is_first(
        self, kind: str, namespace: str, name: str, index: int, origin: _ObjectOrigin, is_equal: Callable[[], bool]
    ) -> bool:
        """Register an object, and return whether it is the first of its name. An equal one may follow, for example in
        another dump; one that differs is an error, because it is unknown which one counts."""
        key = (kind, namespace, name)
        if key not in self._seen:
            self.kinds[kind] += 1
            self._seen[key] = (origin, index)
            return True
        if not is_equal():
            first, at = self._seen[key]
            title = f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"
            raise _second(first.place(at)).at(Place(object=title)).at(origin.place(index))
        return False

    def place_of_pod(self, namespace: str, name: str) -> Place:
        """Return where a pod was read."""
        return self._place_of_row(self._pods.rows[f"{namespace}/{name}"])

    def place_of_node(self, name: str) -> Place:
        origin, index = self._seen["Node", "", name]
        return origin.place(index)

    def finish(self, source: str = "", *, keeps_order: bool = False) -> Contents:
        """Return everything that was added, in an API server's order (by namespace and name), unless the order is
        kept. Raises `InputError` for a preemptionPolicy that the pod's PriorityClass refuses."""
        objects: dict[type[Struct], list[Struct]] = {
            kind.record: self._others[key] for key, kind in KINDS.items() if kind.record is not None
        }
        order = list(range(len(self._nodes)))
        if not keeps_order:
            objects = {record: sorted(some, key=_list_key) for record, some in objects.items()}
            order.sort(key=lambda row: self._nodes[row].metadata.name)
        nodes = [self._nodes[row] for row in order]
        classes = priority_classes(objects)
        index = {node.metadata.name: row for row, node in enumerate(nodes)}
        if len(self._pods):
            self.kinds["Pod"] = len(self._pods)
        elif self._is_dump_of_events():
            self._add_pods_of_events()
        pods = self._pods.table(index, classes, keeps_order=keeps_order)
        has_status = any(name_of(it)[1] == _STATUS_NAME for it in objects.get(types.ConfigMap, ()))
        contents = Contents(
            namespaces={},
            source=Source(
                text=source,
                kinds=dict(sorted(self.kinds.items())),
                is_slim=bool(self.headers),
                scheduler_config=self._config_file,
                populated=frozenset(namespace for _, namespace, _ in self._workloads),
            ).with_header(merge_headers(self.headers)),
            cluster=ClusterNodes(nodes, self._images.of([ClusterRow(row) for row in order])),
            pods=pods,
            workloads=self._workloads if keeps_order else dict(sorted(self._workloads.items())),
            custom_resources=self._custom,
            failed_scheduling=self._events.of_pending(pods),
            assigned=self._events.of_assigned(pods),
            pod_warnings=self._events.of_kubelets(pods),
            evictions=self._events.of_evictions(pods),
            preemptions=self._events.of_preemptions(),
            failed_creates=self._events.of_controllers(),
            manifests=None if self._texts is None else manifests.StoredManifests(self._texts),
            autoscaler_events=self._events.of_autoscaler(pods, has_status=has_status),
            node_group_errors=self._events.of_node_groups(),
            karpenter_events=self._events.of_karpenter(pods),
        )
        return msgspec.structs.replace(contents, **fields_from_objects(objects))


_SCHEDULERS = ("kube-scheduler-", "openshift-kube-scheduler-")
"""How the names of kube-scheduler's static pods begin."""


class _Command(Struct):
    command: list[str] = []
    args: list[str] = []


class _SchedulerSpec(Struct):
    containers: list[_Command] = []


class _SchedulerPod(Struct):
    spec: _SchedulerSpec = msgspec.field(default_factory=_SchedulerSpec)


def _typed(typed: Struct, namespace: str) -> Struct:
    """Return the object as the API server stores it, in its namespace. Raises `InputError` for an invalid quantity."""
    metadata = metadata_of(typed)
    if namespace and not metadata.namespace:
        typed = msgspec.structs.replace(typed, metadata=msgspec.structs.replace(metadata, namespace=namespace))
    return _set_defaults(typed)


def _set_defaults(struct: Struct) -> Struct:
    """Return the object as the API server stores it. Raises `InputError` for an invalid quantity."""
    match struct:
        case storage.PersistentVolume() | storage.PersistentVolumeClaim() | storage.CSIStorageCapacity():
            storage.check_quantities(struct)
            return struct
        case types.LimitRange():
            return default_limit_range(struct)
        case types.PodDisruptionBudget(api_version="policy/v1beta1", spec=spec) if spec.selector == LabelSelector():
            # an empty selector selects no pods in this version (pkg/apis/policy/v1beta1/conversion.go)
            return msgspec.structs.replace(struct, spec=msgspec.structs.replace(spec, selector=None))
        case types.RuntimeClass():
            return check_runtime_class(struct)
        case devices.ResourceClaim():
            return device_defaults.defaulted_claim(struct)
        case devices.ResourceClaimTemplate():
            return device_defaults.defaulted_template(struct)
        case devices.ResourceSlice():
            return device_defaults.defaulted_slice(struct)
        case _:
            return struct


def _is_same_object(text: bytes, other: Raw) -> bool:
    """Whether two JSON texts are equal, whatever their indentation and order of keys."""
    return text == bytes(other) or msgspec.json.decode(text) == msgspec.json.decode(other)


def _list_key(struct: Struct) -> str:
    """Return the key by which etcd, and so an API server's list, sorts an object."""
    return "/".join(name_of(struct))


def _second(first: Place) -> InputError:
    """Return the error for an object that differs from the first one of its name."""
    where = f" in {first}" if str(first) else ""
    return InputError(f"an object of this name already exists{where}, with other content")


_BulkItem = PodItem | NodeItem | PersistentVolumeItem | PersistentVolumeClaimItem | events.EventItem
_BULK: msgspec.json.Decoder[list[_BulkItem]] = msgspec.json.Decoder(list[_BulkItem])


@cache
def _decoder(kind: str) -> msgspec.json.Decoder[Sequence[_BulkItem]] | None:
    """Return the decoder for items of this kind; None for kinds with few objects."""
    item = {
        "Pod": PodItem,
        "Node": NodeItem,
        "PersistentVolume": PersistentVolumeItem,
        "PersistentVolumeClaim": PersistentVolumeClaimItem,
        events.KIND: events.EventItem,
    }.get(kind)
    return None if item is None else msgspec.json.Decoder(list[item])  # type: ignore[valid-type] # a type at run time


_RAWS: msgspec.json.Decoder[list[Raw]] = msgspec.json.Decoder(list[Raw])
