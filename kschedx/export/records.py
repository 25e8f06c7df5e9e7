"""A snapshot as objects again: the same cluster to whoever loads them.

What is written is what was read of each object and counts, no more than `kschedx snapshot` writes; a cluster that moved
is written as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from kschedx.api.devices import ResourceClaim
from kschedx.api.kinds import KINDS, Kind
from kschedx.api.storage import PersistentVolume, PersistentVolumeClaim
from kschedx.api.types import Pod, PodSpec
from kschedx.export.slim import ANNOTATIONS, slim_object
from kschedx.snapshot.snapshot import Snapshot

_LAST = ("Node", "Pod")
"""What is general comes first."""
_ENCODER = msgspec.json.Encoder()


def object_lines(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    """Each object's kind, as the table of kinds has it, and its JSON without line ends."""
    for key, kind in KINDS.items():
        if kind.template:
            for (of, _, _), raw in snapshot.workloads.items():
                if of == key:
                    yield key, _ENCODER.encode(slim_object(key, msgspec.json.decode(raw)))
        elif key not in _LAST and kind.record is not None:
            for record in _records(snapshot, kind.record):
                yield key, _ENCODER.encode(slim_object(key, _head(kind) | _known(record)))
    yield from _nodes(snapshot)
    yield from _pods(snapshot)


def _records(snapshot: Snapshot, record: type[Struct]) -> Iterable[Struct]:
    """Claims and volumes as they stand, which may not be as they were read."""
    if record is PersistentVolumeClaim:
        return snapshot.storage.claims.values()
    if record is PersistentVolume:
        return snapshot.storage.volumes.values()
    if record is ResourceClaim:
        return snapshot.devices.claims.values()
    return snapshot.objects.get(record, ())


def _nodes(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    images = snapshot.cluster.images.by_node()
    for row, node in enumerate(snapshot.cluster.nodes):
        written = _head(KINDS["Node"]) | _known(node)
        held = [{"names": [name], "sizeBytes": size} for name, size in images.get(row, ())]
        written["status"] = _map(written.get("status")) | ({"images": held} if held else {})
        yield "Node", _ENCODER.encode(slim_object("Node", written))


def _pods(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    specs: dict[int, dict[str, object]] = {}
    for row in range(len(snapshot.pods)):
        pod = snapshot.pods[row]
        shared = snapshot.pods.specs[row]
        if id(shared) not in specs:
            specs[id(shared)] = _raw_fields(shared)
        spec = specs[id(shared)] | ({"nodeName": pod.spec.node_name} if pod.spec.node_name else {})
        kept = {key: value for key, value in pod.metadata.annotations.items() if key in ANNOTATIONS}
        whole = _known(Pod(metadata=replace(pod.metadata, annotations=kept), status=pod.status))
        yield "Pod", _ENCODER.encode(_head(KINDS["Pod"]) | whole | {"spec": spec})


def _raw_fields(spec: PodSpec) -> dict[str, object]:
    """Encoded once for all pods that share it."""
    return {name: Raw(_ENCODER.encode(value)) for name, value in _known(spec).items()}


def _head(kind: Kind) -> dict[str, object]:
    return {"apiVersion": kind.api_version, "kind": kind.name}


def _known(record: Struct) -> dict[str, object]:
    return _map(_without_null(msgspec.to_builtins(record)))


def _without_null(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return list(map(_without_null, value)) if isinstance(value, list | tuple) else value


def _map(value: object) -> dict[str, object]:
    return dict(value) if isinstance(value, Mapping) else {}
