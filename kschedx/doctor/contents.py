"""Collects what doctor keeps of a dump: a few facts of each object, and what could not be read."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, assert_never, cast

import msgspec
from msgspec import Raw, Struct, field

from kschedx.doctor.findings import ObjectDifference
from kschedx.errors import InputError, Place
from kschedx.kube.kinds import KINDS, ResourceKind, kind_of
from kschedx.kube.snapshot_header import SnapshotHeader, merge_headers
from kschedx.kube.types import FINISHED
from kschedx.loading import batches, without_collection, written_errors
from kschedx.patterns import lazy_pattern
from kschedx.progress import Phase, report_progress
from kschedx.snapshot.build import SnapshotBuilder
from kschedx.snapshot.events import GROUPS as EVENT_GROUPS
from kschedx.snapshot.events import KIND as EVENT
from kschedx.snapshot.snapshot import MissingCause, Snapshot
from kschedx.sources.dumps import Dump, Lack, LeftOut
from kschedx.sources.files import STDIN
from kschedx.sources.lists import RAWS, Batch, Origin

if TYPE_CHECKING:
    from kschedx.sources.live.client import ApiServer
    from kschedx.sources.live.cluster import Event

# Kubernetes versions as kubelets and API servers report them.

_VERSION = lazy_pattern(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,6}))?", re.ASCII)


def minor_of(version: str) -> tuple[int, int]:
    """Return (1, 36) for `v1.36.2-gke.7`; (0, 0) for an invalid version."""
    return key_of(version)[:2]


def key_of(version: str) -> tuple[int, int, int]:
    """Return the sort key of a version; (0, 0, 0) for an invalid one."""
    match = _VERSION.match(version)
    return (int(match[1]), int(match[2]), int(match[3] or 0)) if match else (0, 0, 0)


# The shape in which doctor reads objects of every kind: references and times. One shape serves all kinds, so that a
# mixed list is decoded at once. If an object has fields of other types, only its head is read.


class _RawOwner(Struct, rename="camel", gc=False):
    api_version: str | None = ""
    kind: str | None = ""
    name: str | None = ""
    uid: str | None = ""
    controller: bool | None = False

    @property
    def group(self) -> str:
        return (self.api_version or "").rpartition("/")[0]


class _RawMetadata(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    generate_name: str | None = ""
    namespace: str | None = ""
    uid: str | None = ""
    resource_version: str | None = ""
    creation_timestamp: str | None = ""
    owner_references: list[_RawOwner] | None = None


class _RawHead(Struct, kw_only=True, rename="camel", gc=False):
    """The fields that every object has."""

    kind: str | None = ""
    api_version: str | None = ""
    metadata: _RawMetadata | None = None


class _ClaimVolume(Struct, rename="camel", gc=False):
    claim_name: str | None = ""


class _RawVolume(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    persistent_volume_claim: _ClaimVolume | None = None
    ephemeral: Raw | None = None


class _RawSpec(Struct, kw_only=True, rename="camel", gc=False):
    """The spec of pods, nodes, volumes, and claims in one."""

    node_name: str | None = ""
    volumes: list[_RawVolume] | None = None
    priority_class_name: str | None = ""
    runtime_class_name: str | None = ""
    resource_claims: list[Raw] | None = None
    scheduling_group: dict[str, object] | None = None
    scheduling_gates: list[dict[str, object]] | None = None
    scheduler_name: str | None = ""
    storage_class_name: str | None = ""
    volume_name: str | None = ""
    provider_id: str | None = field(default="", name="providerID")


class _RawCondition(Struct, kw_only=True, rename="camel", gc=False):
    type: str | None = ""
    status: str | None = ""
    last_heartbeat_time: str | None = ""
    last_transition_time: str | None = ""


class _RawNodeInfo(Struct, rename="camel", gc=False):
    kubelet_version: str | None = ""


class _RawStatus(Struct, kw_only=True, rename="camel", gc=False):
    """The status of pods, nodes, and workloads in one."""

    phase: str | None = ""
    start_time: str | None = ""
    conditions: list[_RawCondition] | None = None
    node_info: _RawNodeInfo | None = None
    replicas: int | None = 0
    current_number_scheduled: int | None = 0
    active: int | list[Raw] | None = 0  # the number of a Job's active pods; for a CronJob, the list of its Jobs


class _RawItem(_RawHead, kw_only=True, rename="camel", gc=False):
    spec: _RawSpec | None = None
    status: _RawStatus | None = None


_COUNTED_BY = {
    "ReplicaSet": "replicas",
    "StatefulSet": "replicas",
    "ReplicationController": "replicas",
    "DaemonSet": "current_number_scheduled",
    "Job": "active",
}
"""Kinds that create pods themselves, and the status field that counts these."""

_NOBODY = _RawOwner()
_NO_SPEC, _NO_STATUS, _NO_CONDITION = _RawSpec(), _RawStatus(), _RawCondition()


class DumpObject(Struct, gc=False):
    """An object that scheduling reads."""

    kind: str
    namespace: str  # empty for cluster-scoped objects
    metadata: _RawMetadata
    origin: Origin
    index: int

    @property
    def name(self) -> str:
        return self.metadata.name or ""

    @property
    def uid(self) -> str:
        return self.metadata.uid or ""

    @property
    def version(self) -> str:
        return self.metadata.resource_version or ""

    @property
    def creation_time(self) -> str:
        return self.metadata.creation_timestamp or ""

    @property
    def owner(self) -> _RawOwner:
        """The controller, else the first owner; an owner without a kind if there is none."""
        owners = self.metadata.owner_references
        if not owners:
            return _NOBODY
        return owners[0] if len(owners) == 1 else next((owner for owner in owners if owner.controller), owners[0])

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def title(self) -> str:
        return f"{self.kind} {self.key}"

    @property
    def place(self) -> Place:
        return self.origin.place(self.index)


class DumpPod(DumpObject, gc=False):
    node: str
    phase: str
    started: str
    seen: str  # the newest time in the pod
    claims: tuple[str, ...]  # PersistentVolumeClaims
    priority_class: str
    runtime_class: str
    has_device_claims: bool
    is_in_group: bool
    addon: str
    """The project that gates or schedules it instead of kube-scheduler, as named in `kube.kinds`: `Kueue`, `Volcano`.
    Empty if there is none, or if the project's objects are not read."""

    @property
    def is_finished(self) -> bool:
        return self.phase in FINISHED

    @property
    def is_static(self) -> bool:
        """Whether a kubelet runs it from a file and creates a mirror pod for it."""
        return self.owner.kind == "Node"


class DumpNode(DumpObject, gc=False):
    cloud: str  # the prefix of its providerID: `aws`, `gce`
    kubelet: str  # `v1.36.2`
    is_ready: bool
    heartbeat: str  # the last heartbeat of the condition Ready


class _DumpClaim(DumpObject, gc=False):
    """A PersistentVolumeClaim or a PersistentVolume."""

    storage_class: str
    volume: str


class DumpWorkload(DumpObject, gc=False):
    pods: int  # the number of pods in its status


def _remember(item: _RawItem, kind: str, origin: Origin, index: int) -> DumpObject:
    metadata, spec, status = item.metadata or _RawMetadata(), item.spec or _NO_SPEC, item.status or _NO_STATUS
    namespace = sys.intern(metadata.namespace or "default") if KINDS[kind].is_namespaced else ""
    common = kind, namespace, metadata, origin, index
    match kind:
        case "Pod":
            return _pod(common, metadata, spec, status)
        case "Node":
            ready = next((it for it in status.conditions or () if it.type == "Ready"), _NO_CONDITION)
            return DumpNode(
                *common,
                cloud=_cloud(spec.provider_id or ""),
                kubelet=(status.node_info.kubelet_version if status.node_info else "") or "",
                is_ready=ready.status == "True",
                heartbeat=ready.last_heartbeat_time or "",
            )
        case "PersistentVolumeClaim" | "PersistentVolume":
            return _DumpClaim(*common, storage_class=spec.storage_class_name or "", volume=spec.volume_name or "")
        case _ if kind in _COUNTED_BY:
            pods = getattr(status, _COUNTED_BY[kind])
            return DumpWorkload(*common, pods=pods if isinstance(pods, int) else 0)
    return DumpObject(*common)


def _cloud(provider_id: str) -> str:
    """Return `aws` and the like; Oracle's nodes have bare identifiers. Empty for a value that no cloud writes."""
    scheme, separator, _ = provider_id.partition("://")
    return scheme if separator else "oci" if provider_id.startswith("ocid1.") else ""


def _pod(
    common: tuple[str, str, _RawMetadata, Origin, int], metadata: _RawMetadata, spec: _RawSpec, status: _RawStatus
) -> DumpPod:
    times = [condition.last_transition_time or "" for condition in status.conditions or ()]
    claims = []
    for volume in spec.volumes or ():
        if volume.persistent_volume_claim is not None:
            claims.append(volume.persistent_volume_claim.claim_name or "")
        elif volume.ephemeral is not None:
            claims.append(f"{metadata.name}-{volume.name}")
    return DumpPod(
        *common,
        node=sys.intern(spec.node_name or ""),
        phase=sys.intern(status.phase or ""),
        started=status.start_time or "",
        seen=max(*times, status.start_time or "", metadata.creation_timestamp or ""),
        claims=tuple(filter(None, claims)),
        priority_class=sys.intern(spec.priority_class_name or ""),
        runtime_class=sys.intern(spec.runtime_class_name or ""),
        has_device_claims=bool(spec.resource_claims),
        is_in_group=spec.scheduling_group is not None,
        addon=_addon(spec),
    )


def _difference(first: DumpObject, second: DumpObject) -> ObjectDifference:
    """Return the difference between two objects of one name."""
    if first.uid and second.uid and first.uid != second.uid:
        return ObjectDifference.OBJECT
    if not (first.uid and second.uid and first.version and second.version):
        return ObjectDifference.UNKNOWN
    return ObjectDifference.NONE if first.version == second.version else ObjectDifference.STATE


_SCHEDULERS = {
    "volcano": "Volcano",
    "kai-scheduler": "KAI",
    "runai-scheduler": "KAI",
    "koord-scheduler": "Koordinator",
}


def _addon(spec: _RawSpec) -> str:
    gates = [str(gate.get("name") or "") for gate in spec.scheduling_gates or ()]
    if any(gate.startswith("kueue.x-k8s.io/") for gate in gates):
        return "Kueue"
    return _SCHEDULERS.get(spec.scheduler_name or "", "")


_MOST_PROBLEMS = 20  # further ones are only counted
_CLUSTER_IDENTITY = "Namespace kube-system"


class Copy(Struct, kw_only=True):
    """Objects that occur a second time."""

    difference: ObjectDifference
    first: DumpObject
    second: DumpObject  # `first` and `second` are the first such object in both places
    kinds: Counter[str]


def _is_read(kind: ResourceKind, item: _RawItem) -> bool:
    """Whether the object is read: of some kinds, only a few objects are."""
    metadata = item.metadata
    return metadata is not None and kind.is_read(metadata.namespace or "default", metadata.name or "")


class DumpContents:
    """Collects batches. Something unreadable is recorded, and collecting goes on."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, DumpObject]] = {kind: {} for kind in KINDS}
        """The objects by kind, then by `namespace/name` (or name)."""
        self.not_read: Counter[str] = Counter()  # the number of objects of each kind that scheduling does not read
        self.copies: dict[tuple[str, str, ObjectDifference], Copy] = {}
        """The copies by the two sources and the difference."""
        self.kube_systems: list[tuple[DumpObject, DumpObject]] = []
        """Namespaces kube-system with two uids: this namespace exists as long as its cluster."""
        self.secrets: Counter[str] = Counter()  # the number of Secrets in each source
        self.problems: list[InputError] = []  # the first MOST_PROBLEMS
        self.problem_count = 0
        self.files: dict[str, None] = {}  # sources with at least one object, in order
        self.headers: list[SnapshotHeader] = []  # the headers of snapshots among the files, or that of the live cluster
        self.dumps: list[Dump] = []
        self.left_out: list[str] = []  # files in folders and archives that hold no Kubernetes objects
        self._snapshots: set[str] = set()
        self._builder = SnapshotBuilder(refuse=self.refuse)

    # --- collecting

    def add(self, batch: Batch) -> None:
        """Add a batch. Raises `InputError` for text that is not JSON."""
        items: list[_RawItem | None]
        try:
            items = batch.decode(_ITEMS)
        except msgspec.ValidationError:
            raws = batch.decode(RAWS)
            items = [_item(raw) for raw in raws]
        origin = batch.origin
        self.files.setdefault(origin.source)
        if batch.header is not None:
            self._snapshots.add(origin.source)
            if batch.header not in self.headers:
                self.headers.append(batch.header)
                self._record_former_dumps(batch.header)
        for index, item in enumerate(items):
            if item is not None:
                self._add(item, origin, index)
        self._builder.add(batch)

    def refuse(self, error: InputError) -> None:
        """Record that a file, or the rest of it, cannot be read."""
        if self.problems and str(self.problems[-1]) == str(error):
            return  # reported twice: where it was noticed, and where the file ends because of it
        self.problem_count += 1
        if len(self.problems) < _MOST_PROBLEMS:
            self.problems.append(error)

    def _record_former_dumps(self, header: SnapshotHeader) -> None:
        """Record the dumps that a snapshot was made from: it lacks what they lacked."""
        if header.formats:
            lacks = tuple(Lack(kind=kind, what=what) for kind, what in header.lacks.items() if kind in KINDS)
            self.record(Dump(format=" and ".join(header.formats), place=header.source, lacks=lacks))

    def record(self, recognized: Dump | LeftOut) -> None:
        """Record a recognized dump of another tool, or a file that holds no Kubernetes objects."""
        if isinstance(recognized, LeftOut):
            self.left_out.append(recognized.source)
        elif recognized not in self.dumps:
            self.dumps.append(recognized)

    def forget(self, kind: str) -> None:
        """Remove every object of a kind, before its list is read again."""
        self.objects[kind] = {}
        self._builder.forget(kind)

    def _add(self, item: _RawItem, origin: Origin, index: int) -> None:
        name, group = item.kind or "", (item.api_version or "").rpartition("/")[0]
        kind = kind_of(name, group)
        if kind is None or (kind.only and not _is_read(kind, item)):
            if name == "Secret" and not group:
                self.secrets[origin.source] += 1
            self.not_read[_kind_name(name, group)] += 1
            return
        dump_object = _remember(item, kind.key, origin, index)
        known = self.objects[kind.key].setdefault(dump_object.key, dump_object)
        if known is not dump_object and dump_object.name:
            self._add_copy(known, dump_object)

    def _add_copy(self, first: DumpObject, second: DumpObject) -> None:
        differs = _difference(first, second)
        if first.title == _CLUSTER_IDENTITY and differs is ObjectDifference.OBJECT:
            self.kube_systems.append((first, second))
            return
        key = (first.origin.source, second.origin.source, differs)
        copy = self.copies.get(key)
        if copy is None:
            copy = self.copies[key] = Copy(difference=differs, first=first, second=second, kinds=Counter())
        copy.kinds[first.kind] += 1

    def finish(self) -> None:
        """Check what needs the whole snapshot: missing PriorityClasses, and values that no API server stores."""
        self.objects = {kind: dict(sorted(by_name.items())) for kind, by_name in self.objects.items()}
        self.not_read = Counter(dict(sorted(self.not_read.items())))
        try:
            snapshot = Snapshot.of_contents(self._builder.finish())
        except InputError as error:
            self.refuse(error)
            return
        for written in itertools.islice(written_errors(self._builder, snapshot), _MOST_PROBLEMS):
            self.refuse(written)

    # --- reading

    @property
    def pods(self) -> dict[str, DumpPod]:
        return cast("dict[str, DumpPod]", self.objects["Pod"])

    @property
    def nodes(self) -> dict[str, DumpNode]:
        return cast("dict[str, DumpNode]", self.objects["Node"])

    @property
    def claims(self) -> dict[str, _DumpClaim]:
        return cast("dict[str, _DumpClaim]", self.objects["PersistentVolumeClaim"])

    @property
    def workloads(self) -> Iterator[DumpWorkload]:
        """The workloads that create pods themselves."""
        for kind in _COUNTED_BY:
            yield from cast("dict[str, DumpWorkload]", self.objects[kind]).values()

    def number(self, kind: str) -> int:
        """Return the number of objects of a kind, also of one that is not read."""
        if kind in KINDS:
            return len(self.objects[kind])
        return sum(number for name, number in self.not_read.items() if name.partition(".")[0] == kind)

    @cached_property
    def header(self) -> SnapshotHeader:
        """What is known of the cluster besides its objects. Read it only after everything is collected."""
        return merge_headers(self.headers)

    def missing_cause(self, kind: str) -> MissingCause | None:
        """Return why the API server did not return the objects of a kind; None if it did or was not asked."""
        cause = self.header.missing.get(kind)
        return next((missing for missing in MissingCause if missing.value == cause), None)

    def is_complete(self, kind: str) -> bool:
        """Return whether every object of the kind in the cluster is present."""
        return kind in self.header.complete and not (self.header.namespaces and KINDS[kind].is_namespaced)

    @property
    def only_namespaces(self) -> tuple[str, ...]:
        """The namespaces to which all input is limited; empty for all namespaces."""
        return self.header.namespaces if self._snapshots >= self.files.keys() else ()

    @property
    def is_of_one_moment(self) -> bool:
        """Whether all input was taken of one cluster at one time."""
        return len(self.headers) == 1 and len(self.files) <= 1

    @property
    def is_empty(self) -> bool:
        return not self.not_read and not any(self.objects.values())


_ITEMS = msgspec.json.Decoder(list[_RawItem | None])
_BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_ITEM = msgspec.json.Decoder(_RawItem)
_HEAD = msgspec.json.Decoder(_RawHead)


def _item(raw: Raw) -> _RawItem | None:
    """Return the parts of an object that have the expected types; None if not even its head has."""
    try:
        return _ITEM.decode(raw)
    except _BROKEN:
        pass
    try:
        head = _HEAD.decode(raw)
    except _BROKEN:
        return None
    return _RawItem(kind=head.kind, api_version=head.api_version, metadata=head.metadata)


def _kind_name(kind: str, group: str) -> str:
    """Return `ConfigMap`, `Certificate.cert-manager.io`, and the like."""
    if kind == EVENT and group in EVENT_GROUPS:
        return kind
    return f"{kind}.{group}" if group else kind


# Reads files, folders, and live clusters into `DumpContents`. Something unreadable is recorded, and reading goes on.


def contents_of(paths: Sequence[str]) -> DumpContents:
    """Return the contents of files and folders; `-` is standard input. Raises `InputError` for a path that does not
    exist, and if nothing at all can be read."""
    contents = DumpContents()
    with without_collection():
        for path in paths:
            try:
                for batch in batches(path, contents.record, contents.refuse):
                    try:
                        contents.add(batch)
                    except InputError as error:
                        contents.refuse(error)
            except InputError as error:
                if path != STDIN and not os.path.lexists(path):
                    raise
                contents.refuse(error)
        report_progress(Phase.CHECKING)
        contents.finish()
    if contents.is_empty and contents.problems:
        raise contents.problems[0]
    return contents


def contents_of_cluster(
    server: ApiServer, source: str, watch: Callable[[Event], None] = lambda _: None
) -> DumpContents:
    """Return the contents of a live cluster. `source` is its name in output, and `watch` is called with every event.
    Raises `InputError` if the cluster cannot be read."""
    from kschedx.sources.live.cluster import Tick, Unread, server_version
    from kschedx.sources.live.cluster import read as read_live
    from kschedx.sources.live.lists import ListPage, ListRestarted

    contents = DumpContents()
    missing: dict[str, str] = {}
    with without_collection():
        version = server_version(server)
        for event in read_live(server):
            watch(event)
            match event:
                case ListPage():
                    contents.add(event.with_kinds())
                case ListRestarted(kind=kind):
                    contents.forget(kind)
                case Unread(kind=kind, forbidden=forbidden):
                    contents.forget(kind)
                    missing[kind] = (MissingCause.FORBIDDEN if forbidden else MissingCause.ABSENT).value
                case Tick():
                    pass
                case _:
                    assert_never(event)
        report_progress(Phase.CHECKING)
        contents.finish()
    complete = {
        kind: len(contents.objects[kind]) for kind, row in KINDS.items() if kind not in missing and not row.is_on_demand
    }
    contents.files = {source: None}
    contents.headers = [SnapshotHeader(source=source, server_version=version, complete=complete, missing=missing)]
    return contents
