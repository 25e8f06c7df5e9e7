"""Snapshots with changed pods, nodes, and objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.kube.devices import ResourceClaim
from kschedx.kube.kinds import R, name_of
from kschedx.kube.resources import pod_request
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim, PersistentVolumeStatus
from kschedx.kube.types import FINISHED, Labels, Node, Pod, PodSpec, PodStatus
from kschedx.snapshot.columns import ClusterRow, Column, IntArray
from kschedx.snapshot.nodes import ClusterNodes
from kschedx.snapshot.pods import PodCopies, PodTable, longer
from kschedx.snapshot.snapshot import Snapshot, fields_from_objects


def with_pods(snapshot: Snapshot, pods: Sequence[Pod]) -> Snapshot:
    """Add pods in the last rows. Their names must be new."""
    old, index = snapshot.pods, snapshot.cluster.index
    if isinstance(pods, PodCopies):
        return replace(snapshot, pods=old.with_pod_copies(pods), _tables={})
    node_names = [pod.spec.node_name for pod in pods]
    finished = [pod.status.phase in FINISHED for pod in pods]
    node = [-1 if over else index.get(name, -1) for name, over in zip(node_names, finished, strict=True)]
    specs = _unbound(pods)
    table = replace(
        old,
        rows=_longer_rows(old.rows, {pod.key: row for row, pod in enumerate(pods, start=len(old))}),
        names=longer(old.names, [pod.metadata.name for pod in pods]),
        namespaces=_join_columns(old.namespaces, [pod.metadata.namespace for pod in pods]),
        uids=longer(old.uids, [pod.metadata.uid for pod in pods]),
        labels=old.labels.with_rows([dict(pod.metadata.labels) for pod in pods], _sorted_labels),
        annotations=old.annotations.with_rows([dict(pod.metadata.annotations) for pod in pods], _sorted_labels),
        owners=old.owners.with_rows(pod.metadata.owner_references for pod in pods),
        specs=old.specs.with_rows(specs, _SpecKeys()),
        statuses=old.statuses.with_rows(map(_without_column_fields, pods), msgspec.json.encode),
        phases=_join_columns(old.phases, [pod.status.phase for pod in pods]),
        start_times=[*old.start_times, *(pod.status.start_time for pod in pods)],
        creation_timestamps=[*old.creation_timestamps, *(pod.metadata.creation_timestamp for pod in pods)],
        deletion_timestamps=[*old.deletion_timestamps, *(pod.metadata.deletion_timestamp for pod in pods)],
        nominated_node_names=[*old.nominated_node_names, *(pod.status.nominated_node_name for pod in pods)],
        node_names=_join_columns(old.node_names, node_names),
        node=np.concatenate([old.node, np.array(node, dtype=np.int64)]),
        grouped=None,
        derived={},
        _requests={},
    )
    return replace(snapshot, pods=table, _tables={})


class _MoreRows(Mapping[str, int]):
    """Rows by key of pods, and of others, of which one may have the name of one before."""

    def __init__(self, rows: Mapping[str, int], more: dict[str, int]) -> None:
        self.rows, self.more = rows, more

    def __len__(self) -> int:
        return len(self.rows) + sum(key not in self.rows for key in self.more)

    def __iter__(self) -> Iterator[str]:
        yield from self.rows
        yield from (key for key in self.more if key not in self.rows)

    def __getitem__(self, key: str) -> int:
        return self.more[key] if key in self.more else self.rows[key]


def _longer_rows(rows: Mapping[str, int], more: dict[str, int]) -> Mapping[str, int]:
    """`longer` of rows by key; the last of a name counts."""
    if isinstance(rows, _MoreRows):
        return _MoreRows(rows.rows, {**rows.more, **more})
    return {**rows, **more} if isinstance(rows, dict) else _MoreRows(rows, more)


def with_changed_pods(snapshot: Snapshot, changed: Iterable[tuple[IntArray, Pod]]) -> Snapshot:
    """The cluster in which pods have the specs and statuses of others: rows, and what these are like but for names. A
    row by itself has the uid as well."""
    old, written = snapshot.pods, _SpecKeys()
    columns, uids = (old.specs.copy(), old.statuses.copy()), old.uids
    requests = {options: column.copy() for options, column in old._requests.items()}
    known: dict[tuple[int, bytes], int] = {}
    for rows, pod in changed:
        spec, status = _unbound([pod])[0], _without_column_fields(pod)
        values: tuple[object, ...] = spec, status
        for at, key in enumerate((written(spec), msgspec.json.encode(status))):
            column = columns[at]
            assert isinstance(column.values, list), "a copy is written to"
            code = known.setdefault((at, key), len(column.values))
            if code == len(column.values):
                column.values.append(values[at])
            column.codes[rows] = code
        for options, request_column in requests.items():
            request_column.put_new(rows, pod_request(spec, status, options))
        if len(rows) == 1 and uids[row := int(rows[0])] != pod.metadata.uid:
            uids = [*uids[:row], pod.metadata.uid, *uids[row + 1 :]]
    specs, statuses = columns
    started = {PodTable.started: old.started}  # the only derived column that is slow to compute
    pods = replace(old, uids=uids, specs=specs, statuses=statuses, derived=started, _requests=requests)
    return replace(snapshot, pods=pods, _tables={})


def with_only_pods(snapshot: Snapshot, rows: IntArray) -> Snapshot:
    """Keep only these pods, in this order."""
    return replace(snapshot, pods=snapshot.pods.only(rows), _tables={})


def without_nodes(snapshot: Snapshot, gone: Collection[int]) -> Snapshot:
    """Remove nodes with the pods that run on them."""
    cluster, pods = snapshot.cluster, snapshot.pods
    kept = [row for row in map(ClusterRow, range(len(cluster.nodes))) if row not in gone]
    names = {cluster.names[row] for row in gone}
    new_row = np.full(len(cluster.nodes) + 1, -1, dtype=np.int64)  # the last entry is for pods without a node
    new_row[kept] = np.arange(len(kept))
    left = pods.only(np.flatnonzero(~pods.node_names.where(lambda name: name in names)))
    table = replace(left, node=new_row[left.node], node_count=len(kept))
    return replace(snapshot, cluster=cluster.without(gone), pods=table, _tables={})


def with_changed_nodes(snapshot: Snapshot, nodes: Iterable[Node]) -> Snapshot:
    """Replace nodes by name, and add new ones."""
    index = snapshot.cluster.index
    changed = list(nodes)
    replaced = {index[node.name]: node for node in changed if node.name in index}
    if replaced:
        snapshot = snapshot.with_nodes(replaced)
    for node in changed:
        if node.name not in index:
            snapshot = snapshot.with_added_node(node)
            snapshot = replace(snapshot, pods=_assign_named_nodes(snapshot.pods, snapshot.cluster), _tables={})
    return snapshot


def _assign_named_nodes(pods: PodTable, cluster: ClusterNodes) -> PodTable:
    """Find the nodes that the pods name, some of which may be new."""
    finished = pods.finished
    node = np.where(finished, -1, pods.node_names.map(lambda name: cluster.index.get(name, -1)))
    return replace(pods, node=np.where(pods.node >= 0, pods.node, node), grouped=None)


def _join_columns(column: Column[str], more: Sequence[str]) -> Column[str]:
    """Append rows; equal values share a code."""
    code_of = {value: code for code, value in enumerate(column.values)}
    values = list(column.values)
    codes = []
    for value in more:
        code = code_of.setdefault(value, len(values))
        if code == len(values):
            values.append(value)
        codes.append(code)
    return Column(np.concatenate([column.codes, np.array(codes, dtype=np.int64)]), values)


def _unbound(pods: Sequence[Pod]) -> list[PodSpec]:
    """Return specs without the node name, which the table holds per pod. Pods with the same spec keep sharing it."""
    known: dict[int, PodSpec] = {}
    for pod in pods:
        if id(pod.spec) not in known:
            known[id(pod.spec)] = replace(pod.spec, node_name="") if pod.spec.node_name else pod.spec
    return [known[id(pod.spec)] for pod in pods]


def _without_column_fields(pod: Pod) -> PodStatus:
    """Return the status without the parts that have their own columns."""
    return replace(pod.status, phase="", start_time=None, nominated_node_name="")


class _SpecKeys:
    """The content of a spec as a key; a shared spec object is encoded once."""

    def __init__(self) -> None:
        self._known: dict[int, bytes] = {}

    def __call__(self, spec: PodSpec) -> bytes:
        encoded = self._known.get(id(spec))
        if encoded is None:
            encoded = self._known[id(spec)] = msgspec.json.encode(spec)
        return encoded


def _sorted_labels(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


# The cluster after `kubectl apply`.

_Name = tuple[str, str]  # namespace and name
_IsObject = Callable[[type[Struct], _Name], bool]  # whether it is about an object, by its kind and name
_KEPT = frozenset({PersistentVolume, PersistentVolumeClaim, ResourceClaim})
"""Existing objects of these kinds do not change, but for the fields that they lack: their relevant fields are
immutable, and a manifest lacks their binding."""


def with_applied(snapshot: Snapshot, manifests: Sequence[Mapping[str, object]]) -> Snapshot:
    """Return the snapshot with these objects, which replace those with the same name. Pods and nodes are ignored. Each
    object has its namespace. Raises `InputError` for an invalid object."""
    given = Snapshot.from_objects([manifest for manifest in manifests if manifest.get("kind") not in ("Pod", "Node")])
    objects = {
        record: _merge_records(record, snapshot.objects.get(record, ()), map(_ready, given.objects.get(record, ())))
        for record in {**snapshot.objects, **given.objects}
    }
    workloads = {**snapshot.workloads, **given.workloads}
    applied = replace(snapshot, workloads=workloads, **fields_from_objects(objects), _tables=dict(snapshot._tables))
    bound = _with_bound(applied, snapshot, written=given.storage.claims)
    claims = {key: claim for key, claim in bound.storage.claims.items() if snapshot.storage.claims.get(key) != claim}
    return bound.with_new_claims(claims) if claims else bound


def with_object(snapshot: Snapshot, changed: Struct) -> Snapshot:
    """Replace one existing object."""
    record, name = _kind_of(snapshot, changed), name_of(changed)
    objects = [changed if name_of(old) == name else old for old in snapshot.objects[record]]
    return _with_objects(snapshot, {**snapshot.objects, record: objects}, lambda *of: of == (record, name))


def without_object(snapshot: Snapshot, gone: Struct) -> Snapshot:
    record, name = _kind_of(snapshot, gone), name_of(gone)
    return _without(snapshot, lambda *of: of == (record, name))


def without_namespace(snapshot: Snapshot, namespace: str) -> Snapshot:
    """Remove the claims, budgets, quotas, and other objects of a namespace; its pods and workloads stay."""
    custom = {key: raw for key, raw in snapshot.custom_resources.items() if key[1] != namespace}
    return _without(replace(snapshot, custom_resources=custom), lambda _, name: name[0] == namespace)


def _kind_of(snapshot: Snapshot, item: Struct) -> type[Struct]:
    return next(record for record in snapshot.objects if isinstance(item, record))


def _without(snapshot: Snapshot, is_gone: _IsObject) -> Snapshot:
    """Remove objects, and the volumes of removed claims whose reclaim policy is Delete; others are released."""
    known = snapshot.storage
    claims = {key for key, claim in known.claims.items() if is_gone(PersistentVolumeClaim, name_of(claim))}
    bound = [it for it in known.volumes.values() if it.spec.claim_ref and it.spec.claim_ref.key in claims]
    deleted = {volume.name for volume in bound if volume.spec.persistent_volume_reclaim_policy == "Delete"}

    def goes(record: type[Struct], name: _Name) -> bool:
        return is_gone(record, name) or (record is PersistentVolume and name[1] in deleted)

    objects = {record: [it for it in old if not goes(record, name_of(it))] for record, old in snapshot.objects.items()}
    left = _with_objects(snapshot, objects, goes)
    status = PersistentVolumeStatus(phase="Released")
    released = {volume.name: replace(volume, status=status) for volume in bound if volume.name in left.storage.volumes}
    return left.with_storage(replace(left.storage, volumes={**left.storage.volumes, **released})) if released else left


def _with_objects(snapshot: Snapshot, objects: Mapping[type[Struct], Sequence[Struct]], changes: _IsObject) -> Snapshot:
    applied = replace(snapshot, **fields_from_objects(objects), _tables=dict(snapshot._tables))
    return _with_bound(applied, snapshot, changes)


def _with_bound(
    applied: Snapshot,
    before: Snapshot,
    changes: _IsObject = lambda *_: False,
    written: Mapping[str, PersistentVolumeClaim] = {},
) -> Snapshot:
    """Keep the current claims and volumes, except changed ones: a run may have bound or allocated them. Fields that
    claims lack are set from `written`."""

    def stand(record: type[R], known: Mapping[str, R]) -> dict[str, R]:
        return {key: kept_record for key, kept_record in known.items() if not changes(record, name_of(kept_record))}

    storage, devices = applied.storage, applied.devices
    claims = stand(PersistentVolumeClaim, before.storage.claims)
    claims = {key: storage.with_default(_complete_claim(claim, written.get(key))) for key, claim in claims.items()}
    return replace(
        applied,
        storage=replace(
            storage,
            claims={**claims, **{key: claim for key, claim in storage.claims.items() if key not in claims}},
            volumes={**storage.volumes, **stand(PersistentVolume, before.storage.volumes)},
        ),
        devices=replace(
            devices, claims={**devices.claims, **stand(ResourceClaim, before.devices.claims)}, derived_from_slices={}
        ),
    )


def _complete_claim(claim: PersistentVolumeClaim, written: PersistentVolumeClaim | None) -> PersistentVolumeClaim:
    """Return the claim with the class and volume of a manifest, which the API server lets a user set once."""
    if written is None:
        return claim
    spec, new = claim.spec, written.spec
    named = new.storage_class_name if spec.storage_class_name is None else spec.storage_class_name
    return replace(claim, spec=replace(spec, storage_class_name=named, volume_name=spec.volume_name or new.volume_name))


def _ready(item: Struct) -> Struct:
    """Return a new volume in the state that its controller sets immediately."""
    if isinstance(item, PersistentVolume) and item.status.phase == "Pending":
        return replace(item, status=PersistentVolumeStatus(phase="Available"))
    return item


def _merge_records(record: type[Struct], old: Iterable[Struct], new: Iterable[Struct]) -> Sequence[Struct]:
    old, new = tuple(old), tuple(new)
    first, second = (new, old) if record in _KEPT else (old, new)
    records = {name_of(record): record for record in (*old, *new)}
    winners = {name_of(record): record for record in (*first, *second)}
    return [winners[name] for name in records]
