"""Objects reduced to what scheduling reads, as JSON: the content of `kschedx snapshot`.

The records of `kube` define what is read. A field in none of them is never written, whatever it holds. A cluster has
many pods of few templates, so a template is reduced once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import replace

from kschedx.apiserver import admission
from kschedx.findings.constraints import CONDITION_OF_TAINT, MAINTENANCE_ANNOTATIONS
from kschedx.kube import autoscalers, descheduling, devices, other_schedulers, storage, types
from kschedx.kube.autoscalers import (
    COMPUTE_TYPE,
    DELETION_COST,
    DO_NOT_DISRUPT,
    EXCLUSIVE_TOPOLOGY,
    GROUP_SIZE,
    LIMIT_RANGER,
    MIRROR,
    NODE_POOL_ID,
    OTHER_SCHEDULERS,
    PAUSED,
    PAUSED_REPLICAS,
    SCALE_DOWN_DISABLED,
    VERTICAL_UPDATES,
)
from kschedx.kube.custom_resources import custom_kind
from kschedx.kube.decoding import decode, map_at, maps_at
from kschedx.kube.descheduling import ContainerFacts, PodStatusFacts
from kschedx.kube.devices import ResourceClaim
from kschedx.kube.kinds import KINDS, ResourceKind, key_of, kind_of
from kschedx.kube.storage import PersistentVolume, PersistentVolumeClaim
from kschedx.kube.types import Pod
from kschedx.kube.workloads import REVISION, SYNC_MARKS
from kschedx.snapshot import events
from kschedx.snapshot.build import ObjectBatch, ObjectPage
from kschedx.snapshot.snapshot import Snapshot
from kschedx.snapshot.wire import MaybeRaw, OtherItem, PodItem, SlimPodStatus, SlimVolume, read_annotations, slim_status

ANNOTATIONS = frozenset({
    types.AVOID_PODS,
    NODE_POOL_ID,
    SCALE_DOWN_DISABLED,
    DO_NOT_DISRUPT,
    REVISION,
    devices.EXTENDED_RESOURCE_CLAIM,
    storage.BETA_STORAGE_CLASS,
    storage.BIND_COMPLETED,
    storage.PROVISIONED_BY,
    storage.SELECTED_NODE,
    storage.MIGRATED_PLUGINS,
    *storage.DEFAULT_CLASS,
    *OTHER_SCHEDULERS,
    *other_schedulers.KOORDINATOR_ANNOTATIONS,
    *autoscalers.ANNOTATIONS,
    *MAINTENANCE_ANNOTATIONS,
    *admission.READ_ANNOTATIONS,
    other_schedulers.MINIMUM_PREEMPTABLE_PRIORITY,
    other_schedulers.TOLERATION_SECONDS,
    *(MIRROR, DELETION_COST, GROUP_SIZE, LIMIT_RANGER, VERTICAL_UPDATES, COMPUTE_TYPE, PAUSED, PAUSED_REPLICAS),
    *EXCLUSIVE_TOPOLOGY,
    *autoscalers.CONSUMED_REQUESTS,
    *(autoscalers.SAFE_TO_EVICT, autoscalers.SAFE_TO_EVICT_LOCAL_VOLUMES),
    *(autoscalers.DAEMON_SET_POD, autoscalers.SCALE_UP_DELAY),
    *descheduling.ANNOTATIONS,
    *SYNC_MARKS,
})  # fmt: skip
"""The annotations that are kept; any other may hold anything."""


# --- shapes


class _Leaf(Struct, frozen=True):
    """A value that is kept unchanged."""


class _Annotations(Struct, frozen=True):
    """A map whose keys in `ANNOTATIONS` are kept."""


class _SlimList(Struct, frozen=True):
    item: _Shape


class _Fields(Struct, frozen=True):
    """A map of which only these fields are kept."""

    of: Mapping[str, _Shape]


class _NodeConditions(Struct, frozen=True):
    """A node's condition. Its message and reason are kept only if they report a problem with the node."""

    of: Mapping[str, _Shape]


_Shape = _Leaf | _Annotations | _SlimList | _Fields | _NodeConditions


def _shape(hint: object) -> _Shape:
    """Return the shape of what the decoder of a type reads."""
    args = [arg for arg in get_args(hint) if arg is not type(None)]
    if get_origin(hint) is tuple:
        return _SlimList(_shape(args[0]))
    if isinstance(hint, type) and issubclass(hint, Struct):
        hints = get_type_hints(hint)
        fields: dict[str, _Shape] = {it.encode_name: _shape(hints[it.name]) for it in msgspec.structs.fields(hint)}
        if hint is types.ObjectMeta:
            fields["annotations"] = _Annotations()
        if hint is types.NodeCondition:
            return _NodeConditions(fields)
        return _Fields(fields)
    records = [arg for arg in args if isinstance(arg, type) and issubclass(arg, Struct)]
    return _shape(records[0]) if records and get_origin(hint) is not dict else _Leaf()


def _nest_shape(path: Sequence[str], shape: _Shape) -> _Shape:
    for part in reversed(path):
        shape = _Fields({part: shape})
    return shape


def _merged(item: _Shape, other: _Shape) -> _Shape:
    if not (isinstance(item, _Fields) and isinstance(other, _Fields)):
        return item
    fields = dict(item.of)
    for name, shape in other.of.items():
        fields[name] = _merged(fields[name], shape) if name in fields else shape
    return _Fields(fields)


def _shapes() -> dict[str, _Shape]:
    head = _Fields({"apiVersion": _Leaf(), "kind": _Leaf(), "metadata": _shape(types.ObjectMeta)})
    shapes = {events.KIND: _merged(head, _shape(events.EventItem))}
    for key, kind in KINDS.items():
        shape: _Shape = head
        for record in filter(None, (kind.record, kind.kept)):
            shape = _merged(shape, _shape(record))
        shapes[key] = (
            _merged(shape, _nest_shape(kind.template, _shape(types.PodTemplateSpec))) if kind.template else shape
        )
    del shapes["Pod"]
    return shapes


SHAPES: Mapping[str, _Shape] = _shapes()  # the shape of each kind except Pod, which `PodItem` reduces
_POD_SPEC, _POD_STATUS = _shape(types.PodSpec), _shape(types.PodStatus)
_METADATA = _shape(types.ObjectMeta)
_LABELS, _OWNERS = _shape(types.Labels), _shape(tuple[types.OwnerReference, ...])


_WORDS = ("message", "reason")


def _is_trouble(condition: Mapping[str, object]) -> bool:
    """Return whether the condition adds a taint to the node: only then its message and reason are read."""
    kind, status = condition.get("type"), condition.get("status")
    return kind in CONDITION_OF_TAINT.values() and status in (("False", "Unknown") if kind == "Ready" else ("True",))


def _cut(value: object, shape: _Shape) -> object:
    """The part of a JSON value that has the shape. A value of another type stays, so that its reader refuses it."""
    match shape:
        case _Fields(of=of) if isinstance(value, dict):
            return {key: _cut(item, of[key]) for key, item in value.items() if key in of and item is not None}
        case _NodeConditions(of=of) if isinstance(value, dict):
            kept = {key: item for key, item in value.items() if key in of and item is not None}
            return kept if _is_trouble(value) else {key: item for key, item in kept.items() if key not in _WORDS}
        case _SlimList(item=item) if isinstance(value, list):
            return [_cut(element, item) for element in value]
        case _Annotations() if isinstance(value, dict):
            return {key: item for key, item in value.items() if key in ANNOTATIONS}
        case _:
            return value


_TEXTS = frozenset({
    "apiVersion", "kind", "name", "type", "status", "reason", "message", "phase", "state", "mode", "template",
    "entrypoint", "dependencies", "cpu", "memory", "cores", "coreRequest", "coreLimit", "memoryOverhead", "size",
    "memoryOverheadFactor", "restartPolicy", "schedulerName", "priorityClassName", "submissionMode", "jobStatus",
    "podAntiAffinityType", "topologyKey", "taskmanager.numberOfTaskSlots", "kubernetes.operator.job.parallelism",
})  # fmt: skip
"""Fields of custom resources whose text says which pods they create, or their state; any other may hold anything."""
_WHOLE_MAPS = frozenset({"requests", "limits", "labels", "matchLabels", "nodeSelector"})


def _slim_custom(value: object, key: str = "") -> object:
    """Return the part of a custom resource from which its pods and its state are read."""
    shape = _POD_SPEC.of.get(key) if isinstance(_POD_SPEC, _Fields) else None
    if isinstance(value, dict if isinstance(shape, _Fields) else list) and isinstance(shape, _Fields | _SlimList):
        return _cut(value, shape)  # a field of pods, wherever it stands
    if isinstance(value, dict) and key != "metadata" and not ("containers" in value or key in _WHOLE_MAPS):
        parts = {name: _slim_custom(item, name) for name, item in value.items() if name != "env"}
        return {name: part for name, part in parts.items() if part is not None}
    if isinstance(value, dict):
        return value if key in _WHOLE_MAPS else _cut(value, _METADATA if key == "metadata" else _POD_SPEC)
    if isinstance(value, list):
        return [part for part in (_slim_custom(item, key) for item in value) if part is not None]
    return None if isinstance(value, str) and key not in _TEXTS else value


def _slim_object(key: str, whole: Mapping[str, object]) -> object:
    """Return the part of an object that scheduling reads; not for pods."""
    if key not in SHAPES:
        return _slim_custom(whole)
    kept = _cut(whole, SHAPES[key])
    if key == "Deployment":
        _keep_flags(whole, kept)
    return kept


def _keep_flags(deployment: object, kept: Any) -> None:
    """Add to cluster-autoscaler's reduced Deployment the flags that affect decisions, and nothing else of its command
    line."""
    for position, flags in autoscalers.flags_of_containers(deployment):
        kept["spec"]["template"]["spec"]["containers"][position] |= autoscalers.command(flags)


# --- objects


class Slim:
    """Collects objects as `SnapshotBuilder` does, reduces them, and returns them as lines of JSON.

    If `namespaces` are given, only the objects of these and cluster-scoped ones are kept.
    """

    def __init__(self, namespaces: Collection[str] = ()) -> None:
        self._namespaces = frozenset(namespaces)
        self._lines: dict[str, list[bytes]] = {}
        self._shared_parts: dict[bytes, Raw] = {}
        self._specs: dict[bytes, bytes] = {}

    def add(self, batch: ObjectBatch) -> None:
        """Add objects that `SnapshotBuilder.add` has accepted."""
        try:
            pods: list[PodItem] = batch.decode(_PODS)
            details: list[_Details] = batch.decode(_DETAILS)
        except msgspec.ValidationError:
            raws: list[Raw] = batch.decode(_RAWS)
            for raw in raws:
                self._add_object(raw)
        else:
            self._add_pods(pods, details)

    def add_page(self, page: ObjectPage) -> None:
        """Add a page, as `SnapshotBuilder.add_page` does."""
        self.add(page.with_kinds())

    def forget(self, kind: str) -> None:
        """Remove a kind's objects, as `SnapshotBuilder.forget` does."""
        self._lines.pop(kind, None)

    def count(self, kind: str | None = None) -> int:
        """Return the number of objects, of one kind or in total."""
        return sum(map(len, self._lines.values())) if kind is None else len(self._lines.get(kind, ()))

    def lines(self) -> Iterator[bytes]:
        """Yield one JSON object per line, without line ends: nodes and pods last, and each kind in the order of its
        input."""
        for kind in sorted(self._lines, key=lambda kind: (_ORDER.get(kind, 0), kind)):
            yield from self._lines[kind]

    def _add_object(self, raw: Raw) -> None:
        head = decode(raw, OtherItem)
        kind = kind_of(head.kind or "", head.group)
        namespace = (head.metadata.namespace if head.metadata else None) or "default"
        name = (head.metadata.name if head.metadata else None) or ""
        if kind is None:
            if head.kind == events.KIND and head.group in events.GROUPS and self._is_in_namespaces(namespace):
                self._add_event(raw)
            elif custom_kind(head.kind or "", head.group) is not None and self._is_in_namespaces(namespace):
                self._put(key_of(head.kind or "", head.group), raw)
        elif kind.key == "Pod":
            self._add_pods([decode(raw, PodItem)], [decode(raw, _Details)])
        elif kind.key == "Namespace":
            if self._is_in_namespaces(name):
                self._put(kind.key, raw)
        elif (not kind.is_namespaced or self._is_in_namespaces(namespace)) and kind.is_read(namespace, name, raw):
            if kind.key == "ConfigMap":
                item = msgspec.json.decode(raw, type=dict[str, object])
                values = kind.read_values(namespace, name, map_at(item, "data"))
                raw = Raw(msgspec.json.encode({**item, "data": values}))
            self._put(kind.key, raw)

    def _is_in_namespaces(self, namespace: str) -> bool:
        return not self._namespaces or namespace in self._namespaces

    def _add_event(self, raw: Raw) -> None:
        if decode(raw, events.EventItem).reason in events.REASONS:
            self._put(events.KIND, raw)

    def _put(self, kind: str, raw: Raw) -> None:
        self._lines.setdefault(kind, []).append(msgspec.json.encode(_slim_object(kind, msgspec.json.decode(raw))))

    # --- pods

    def _add_pods(self, items: Iterable[PodItem], details: Iterable[_Details]) -> None:
        lines = self._lines.setdefault("Pod", [])
        for item, more in zip(items, details, strict=True):
            meta, status = item.metadata, item.status
            if item.api_version not in ("v1", "") or not self._is_in_namespaces(meta.namespace or "default"):
                continue
            metadata: dict[str, object] = {
                "name": meta.name,
                "generateName": meta.generate_name,
                "namespace": meta.namespace,
                "uid": meta.uid,
                "labels": self._share(meta.labels, _LABELS),
                "annotations": _annotations(meta.annotations),
                "ownerReferences": self._share(meta.owner_references, _OWNERS),
                "creationTimestamp": meta.creation_timestamp,
                "deletionTimestamp": meta.deletion_timestamp,
                "deletionGracePeriodSeconds": meta.deletion_grace_period_seconds,
                "finalizers": self._share(meta.finalizers, _Leaf()) if meta.deletion_timestamp else None,
            }
            pod: dict[str, object] = {"apiVersion": "v1", "kind": "Pod", "metadata": _without_empty(metadata)}
            pod["spec"] = self._spec(item.spec)
            if status is not None:
                pod["status"] = _with_details(_status(status), more.status or PodStatusFacts())
            lines.append(_ENCODER.encode(pod))

    def _share(self, raw: MaybeRaw, shape: _Shape) -> Raw | None:
        """Return labels or owners, which many pods share."""
        if raw is UNSET:
            return None
        text = bytes(raw)
        shared = self._shared_parts.get(text)
        if shared is None:
            value = msgspec.json.decode(text)
            shared = Raw(b"" if value is None else _ENCODER.encode(_cut(value, shape)))
            self._shared_parts[text] = shared
        return shared if bytes(shared) else None

    def _spec(self, spec: Any) -> Raw:
        """Return the JSON of a spec; all of it except the node's name is reduced once per template."""
        node_name, spec.node_name = spec.node_name, UNSET
        if spec.volumes:
            # of volumes that no plugin reads, only the names would remain
            spec.volumes = [volume for volume in spec.volumes if volume != SlimVolume(name=volume.name)] or UNSET
        key = _ENCODER.encode(spec)
        text = self._specs.get(key)
        if text is None:
            text = self._specs[key] = _ENCODER.encode(_cut(msgspec.json.decode(key), _POD_SPEC))
        if not node_name:
            return Raw(text)
        head = b'{"nodeName":' + _ENCODER.encode(node_name)
        return Raw(head + (b"}" if text == b"{}" else b"," + text[1:]))


def _status(status: SlimPodStatus) -> dict[str, object]:
    part = _without_empty(
        {"phase": status.phase, "startTime": status.start_time, "nominatedNodeName": status.nominated_node_name}
    )
    rest = slim_status(status)
    more = _cut(msgspec.json.decode(rest), _POD_STATUS) if rest else None
    if not isinstance(more, dict):
        return part
    if "conditions" in more:
        more["conditions"] = [item for item in maps_at(more["conditions"]) if item.get("type") in _CONDITIONS]
    return {**part, **more}


class _Details(Struct, tag_field="kind", tag="Pod"):
    status: PodStatusFacts | None = None


def _with_details(status: dict[str, object], more: PodStatusFacts) -> dict[str, object]:
    """Add what the descheduler reads: restarts and states of containers, and conditions with their times."""
    status |= _without_empty({"reason": more.reason, "qosClass": more.qos_class})
    if more.conditions:
        messages = {item.get("type"): item.get("message", "") for item in maps_at(status, "conditions")}
        status["conditions"] = [
            _without_empty(
                {
                    "type": condition.type,
                    "status": condition.status,
                    "reason": condition.reason,
                    "message": messages.get(condition.type, ""),
                    "lastTransitionTime": condition.last_transition_time,
                }
            )
            for condition in more.conditions
        ]
    containers = {
        "containerStatuses": more.container_statuses,
        "initContainerStatuses": more.init_container_statuses,
        "ephemeralContainerStatuses": more.ephemeral_container_statuses,
    }
    for key, facts_of_list in containers.items():
        known = {item.get("name"): item for item in maps_at(status, key)}
        kept = [own | known.get(it.name, {}) for it in facts_of_list if (own := _container(it)) or it.name in known]
        if kept:
            status[key] = kept
    return status


def _container(facts: ContainerFacts) -> dict[str, object]:
    """Return the details of a container; empty if it runs and has never restarted."""
    state: dict[str, object] = {}
    if facts.state.waiting is not None:
        state["waiting"] = _without_empty({"reason": facts.state.waiting.reason})
    if facts.state.terminated is not None:
        ended = facts.state.terminated
        state["terminated"] = {"exitCode": ended.exit_code, **_without_empty({"reason": ended.reason})}
    more = _without_empty({"restartCount": facts.restart_count, "state": state})
    return {"name": facts.name, **more} if more else {}


def _annotations(raw: MaybeRaw) -> Raw | None:
    """Return the annotations that autoscalers read; most pods have none."""
    text = b"" if raw is UNSET else read_annotations(bytes(raw))
    return Raw(text) if text and text != b"{}" else None


def _without_empty(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value}


_ENCODER = msgspec.json.Encoder()
_PODS = msgspec.json.Decoder(list[PodItem])
_DETAILS = msgspec.json.Decoder(list[_Details])
_RAWS = msgspec.json.Decoder(list[Raw])
_CONDITIONS = frozenset(
    {
        *("PodScheduled", "DisruptionTarget", "PodResizePending", "PodResizeInProgress"),
        *("Ready", "Initialized", "PodReadyToStartContainers"),
    }
)
_ORDER = {"Node": 1, "Pod": 2}  # the kinds that are written after all others


# A snapshot as objects, which load as the same cluster. Only what was read of each object is written, no more than by
# `kschedx snapshot`. A moving cluster is written in its current state.


def object_lines(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    """Yield each object's kind, as in the table of kinds, and its JSON without line ends."""
    for key, kind in KINDS.items():
        if kind.template:
            for (of, _, _), raw in snapshot.workloads.items():
                if of == key:
                    yield key, _ENCODER.encode(_slim_object(key, msgspec.json.decode(raw)))
        elif key not in _ORDER and kind.record is not None:
            for record in _records(snapshot, kind.record):
                head = _head(kind)  # the record is converted to this version, whatever it was read as
                yield key, _ENCODER.encode(_slim_object(key, head | _known_fields(record) | head))
    for (key, _, _), raw in snapshot.custom_resources.items():
        yield key, _ENCODER.encode(_slim_custom(msgspec.json.decode(raw)))
    yield from _nodes(snapshot)
    yield from _pods(snapshot)


def _records(snapshot: Snapshot, record: type[Struct]) -> Iterable[Struct]:
    """Return the records of a type; claims and volumes in their current state, which may differ from the input."""
    if record is PersistentVolumeClaim:
        return snapshot.storage.claims.values()
    if record is PersistentVolume:
        return snapshot.storage.volumes.values()
    if record is ResourceClaim:
        return snapshot.devices.claims.values()
    return snapshot.objects.get(record, ())


def _nodes(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    images = snapshot.cluster.images.images_by_node()
    for row, node in enumerate(snapshot.cluster.nodes):
        written = _head(KINDS["Node"]) | _known_fields(node)
        held = [{"names": [name], "sizeBytes": size} for name, size in images.get(row, ())]
        written["status"] = dict(map_at(written, "status")) | ({"images": held} if held else {})
        yield "Node", _ENCODER.encode(_slim_object("Node", written))


def _pods(snapshot: Snapshot) -> Iterator[tuple[str, bytes]]:
    specs: dict[int, dict[str, object]] = {}
    for row in range(len(snapshot.pods)):
        pod = snapshot.pods[row]
        shared = snapshot.pods.specs[row]
        if id(shared) not in specs:
            specs[id(shared)] = {name: Raw(_ENCODER.encode(value)) for name, value in _known_fields(shared).items()}
        spec = specs[id(shared)] | ({"nodeName": pod.spec.node_name} if pod.spec.node_name else {})
        kept = {key: value for key, value in pod.metadata.annotations.items() if key in ANNOTATIONS}
        whole = _known_fields(Pod(metadata=replace(pod.metadata, annotations=kept), status=pod.status))
        if pod.metadata.deletion_timestamp:
            whole["metadata"] = dict(map_at(whole, "metadata")) | _without_empty({
                "deletionGracePeriodSeconds": snapshot.pods.grace_periods.get(pod.key),
                "finalizers": snapshot.pods.finalizers.get(pod.key),
            })  # fmt: skip
        yield "Pod", _ENCODER.encode(_head(KINDS["Pod"]) | whole | {"spec": spec})


def _head(kind: ResourceKind) -> dict[str, object]:
    return {"apiVersion": kind.api_version, "kind": kind.name}


def _known_fields(record: Struct) -> dict[str, object]:
    return dict(map_at(_without_null(msgspec.to_builtins(record))))


def _without_null(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_null(item) for key, item in value.items() if item is not None}
    return list(map(_without_null, value)) if isinstance(value, list | tuple) else value
