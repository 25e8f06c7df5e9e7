"""The form in which bulk objects are decoded: compound fields stay raw JSON until a distinct one is found.

A cluster has a hundred thousand pods but a few thousand pod templates. `SlimPodSpec` has the fields of
`kube.types.PodSpec`, generated from it so that the two stay equal, with every compound field as raw bytes. Its JSON
encoding has exactly what scheduling reads, and is the key under which a `PodSpec` is decoded once and shared.
"""

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Generic, NoReturn, Protocol, TypeVar, get_args, get_type_hints

import msgspec
import numpy as np
from msgspec import UNSET, Raw, Struct, UnsetType, field

from kschedx.apiserver.defaulting import default_pod_spec, default_pod_status, merge_label_keys, uses_label_keys
from kschedx.apiserver.pod_classes import global_default, names_no_priority, stored_priority
from kschedx.errors import InputError, Place
from kschedx.kube import storage, types
from kschedx.kube import types as pod_volumes
from kschedx.kube.autoscalers import ANNOTATION_MARKS, is_read
from kschedx.kube.decoding import decode
from kschedx.kube.quantity import ResourceList
from kschedx.kube.types import FINISHED, PriorityClass
from kschedx.snapshot.columns import Column, IntArray, T
from kschedx.snapshot.pods import PodTable

MaybeRaw = Raw | UnsetType


def _slim(kind: type[Struct], nested: dict[str, type[Struct]]) -> type[Any]:
    """Return `kind` with raw compound fields; those in `nested` are lists of the given slim struct."""
    hints = get_type_hints(kind)
    fields: list[tuple[str, Any, Any]] = []
    for info in msgspec.structs.fields(kind):
        hint: Any
        if info.name in nested:
            item: Any = nested[info.name]
            hint = list[item] | None | UnsetType
        elif _is_scalar(hints[info.name]):
            hint = hints[info.name] | None | UnsetType
        else:
            hint = MaybeRaw
        fields.append((info.name, hint, field(default=UNSET, name=info.encode_name)))
    return msgspec.defstruct(f"Slim{kind.__name__}", fields, kw_only=True, gc=False)


def _is_scalar(hint: object) -> bool:
    return all(part in (str, int, bool, type(None)) for part in (get_args(hint) or (hint,)))


# mypy does not follow generated structs: their fields are typed where they are used, in build.py
_SlimContainer: Any = _slim(types.Container, {})
SlimVolume: Any = _slim(pod_volumes.Volume, {})
SlimPodSpec: Any = _slim(
    types.PodSpec, {"containers": _SlimContainer, "init_containers": _SlimContainer, "volumes": SlimVolume}
)
_SlimContainerStatus: Any = _slim(types.ContainerStatus, {})
"""Decoded only where a container status is read: those of most pods are not."""


class SlimObjectMeta(Struct, kw_only=True, rename="camel", gc=False):
    name: str | None = ""
    generate_name: str | None = ""
    namespace: str | None = ""
    uid: str | None = ""
    labels: MaybeRaw = UNSET
    annotations: MaybeRaw = UNSET
    owner_references: MaybeRaw = UNSET
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    deletion_grace_period_seconds: int | None = None
    finalizers: MaybeRaw = UNSET


class SlimPodStatus(Struct, kw_only=True, rename="camel", gc=False):
    phase: str | None = ""
    reason: str | None = ""
    message: str | None = ""
    start_time: str | None = None
    nominated_node_name: str | None = ""
    conditions: MaybeRaw = UNSET
    container_statuses: MaybeRaw = UNSET
    init_container_statuses: MaybeRaw = UNSET
    allocated_resources: MaybeRaw = UNSET
    resources: MaybeRaw = UNSET
    resource_claim_statuses: MaybeRaw = UNSET
    node_allocatable_resource_claim_statuses: MaybeRaw = UNSET


class PodItem(Struct, kw_only=True, rename="camel", tag_field="kind", tag="Pod", gc=False):
    api_version: str = ""
    metadata: SlimObjectMeta = field(default_factory=SlimObjectMeta)
    spec: SlimPodSpec = field(default_factory=SlimPodSpec)
    status: SlimPodStatus | None = field(default_factory=SlimPodStatus)


class _SlimNodeStatus(Struct, kw_only=True, rename="camel", gc=False):
    """As `kube.types.NodeStatus`, with raw images: they are most of a node, and few plugins read them."""

    capacity: ResourceList | None = None
    allocatable: ResourceList | None = None
    conditions: tuple[types.NodeCondition, ...] | None = ()
    images: MaybeRaw = UNSET
    declared_features: tuple[str, ...] | None = ()
    node_info: types.NodeSystemInfo | None = None


class NodeItem(Struct, kw_only=True, rename="camel", tag_field="kind", tag="Node", gc=False):
    api_version: str = ""
    metadata: types.ObjectMeta = types.ObjectMeta()
    spec: types.NodeSpec | None = None
    status: _SlimNodeStatus | None = None


class PersistentVolumeItem(
    storage.PersistentVolume, kw_only=True, frozen=True, tag_field="kind", tag="PersistentVolume"
):
    """A cluster has tens of thousands, so they are decoded in bulk too."""

    api_version: str = field(default="", name="apiVersion")


class PersistentVolumeClaimItem(
    storage.PersistentVolumeClaim, kw_only=True, frozen=True, tag_field="kind", tag="PersistentVolumeClaim"
):
    """As PersistentVolumeItem."""

    api_version: str = field(default="", name="apiVersion")


class OtherItem(Struct, kw_only=True, rename="camel"):
    """The fields that route an object of any kind."""

    api_version: str | None = ""
    kind: str | None = ""
    metadata: SlimObjectMeta | None = None
    message: Raw = Raw(b"null")

    @property
    def group(self) -> str:
        return (self.api_version or "").rpartition("/")[0]

    @property
    def report(self) -> str:
        """The message of a Status, with which the API server answers a request that fails."""
        message = decode(self.message, object)
        return message if isinstance(message, str) else ""


# The pods of a snapshot during decoding: shared parts are decoded once.

_UNREAD = SlimVolume()
_ENCODER = msgspec.json.Encoder()


class DuplicateNameError(InputError):
    """Two different pods with the same name; `row` is the first one's."""

    def __init__(self, row: int) -> None:
        super().__init__("an object of this name already exists")
        self.row = row


class _Fail(Protocol):
    """Raises the error of an added item."""

    def __call__(self, item: int, error: InputError) -> NoReturn: ...


_K = TypeVar("_K", str, bytes)


class _Interner(Generic[_K]):
    """Maps raw JSON or a string to a code; each distinct text is decoded once."""

    __slots__ = ("codes", "index", "values")

    def __init__(self, key: _K, empty: object) -> None:
        """`empty` is the value of `key`, the empty text."""
        self.codes: list[int] = []
        self.index: dict[_K, int] = {key: 0}
        self.values: list[Any] = [empty]

    def code(self, key: _K, make: Callable[[_K], object]) -> int:
        """Raises the errors of `make`."""
        code = self.index.get(key)
        if code is None:
            value = make(key)
            code = self.index[key] = len(self.values)
            self.values.append(value)
        return code

    def codes_of(self, keys: Sequence[_K], make: Callable[[_K], object], fail: _Fail) -> list[int]:
        """Return the codes of many keys, nearly all of which are known."""
        with contextlib.suppress(KeyError):
            return list(map(self.index.__getitem__, keys))
        for key in dict.fromkeys(keys):
            try:
                self.code(key, make)
            except InputError as error:
                fail(keys.index(key), error)
        return list(map(self.index.__getitem__, keys))

    def column(self, order: IntArray) -> Column[Any]:
        """Return the rows in this order, and the values in the order of their first rows."""
        codes = np.array(self.codes, dtype=np.int64)[order]
        first = np.full(len(self.values), len(codes), dtype=np.int64)
        first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
        ranked = np.argsort(first, kind="stable")[: np.count_nonzero(first < len(codes))]
        first[ranked] = np.arange(len(ranked))
        return Column(first[codes], [self.values[code] for code in ranked.tolist()])


_NO_STATUS = SlimPodStatus()


class PodColumns:
    """The growing columns of a PodTable. Pods are added by the thousand, so each step is one loop over all of them: a
    call per pod would take longer than its decoding."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.names: list[str] = []
        self.namespaces = _Interner("", "")
        self.uids: list[str] = []
        self.labels = _Interner(b"", {})
        self.annotations = _Interner(b"", {})
        self.owners = _Interner(b"", ())
        self.specs = _Interner(b"", types.PodSpec())
        self.statuses = _Interner(b"", types.PodStatus())
        self.phases = _Interner("", "")
        self.start_times: list[str | None] = []
        self.creation_timestamps: list[str | None] = []
        self.deletion_timestamps: list[str | None] = []
        self.finalizers: dict[str, tuple[str, ...]] = {}
        self.grace_periods: dict[str, int] = {}
        self.nominated: list[str] = []
        self.node_names = _Interner("", "")
        self._with_label_keys: set[int] = set()  # codes of specs that depend on the pod's own labels
        self._seen_specs = 0

    def __len__(self) -> int:
        return len(self.names)

    def add(self, items: Sequence[PodItem], fail: _Fail) -> Collection[int]:
        """Append pods, and return which of them exist already, equal in all that is read. If the i-th is invalid, or
        differs from a pod of its name, `fail(i, error)` raises."""
        metas = [item.metadata for item in items]
        specs = [item.spec for item in items]
        statuses = [item.status or _NO_STATUS for item in items]
        names = [meta.name or "" for meta in metas]
        namespaces = [meta.namespace or "default" for meta in metas]
        keys, first = [f"{space}/{name}" for space, name in zip(namespaces, names, strict=True)], len(self)
        rows = [self.rows.setdefault(key, row) for row, key in enumerate(keys, first)]
        again = {item: row for item, row in enumerate(rows) if row != first + item}

        label_keys = _texts([meta.labels for meta in metas])
        self.labels.codes += self.labels.codes_of(label_keys, _labels, fail)
        self.owners.codes += self.owners.codes_of(_texts([meta.owner_references for meta in metas]), _owners, fail)
        texts = _texts([meta.annotations for meta in metas])
        distinct = set(texts)
        marks = _occurring_words(ANNOTATION_MARKS, distinct)
        read = {text: read_annotations(text, marks) for text in distinct}
        self.annotations.codes += self.annotations.codes_of([read[text] for text in texts], _annotations, fail)
        self.node_names.codes += self.node_names.codes_of([spec.node_name or "" for spec in specs], str, fail)
        self.specs.codes += self._spec_codes(_spec_keys(specs), label_keys, fail)
        self.statuses.codes += self.statuses.codes_of(_slim_statuses(statuses, fail), _pod_status, fail)

        self.names += names
        self.namespaces.codes += self.namespaces.codes_of(namespaces, str, fail)
        self.uids += [meta.uid or "" for meta in metas]
        same: dict[str | None, str | None] = {}  # equal timestamps share one string
        self.creation_timestamps += [same.setdefault(at, at) for at in [meta.creation_timestamp for meta in metas]]
        self.deletion_timestamps += [meta.deletion_timestamp for meta in metas]
        for item, meta in enumerate(metas):
            if meta.deletion_timestamp:
                key = f"{namespaces[item]}/{names[item]}"
                self.grace_periods[key] = meta.deletion_grace_period_seconds or 0
                if isinstance(meta.finalizers, Raw):
                    self.finalizers[key] = _finalizers(bytes(meta.finalizers))
        self.phases.codes += self.phases.codes_of([status.phase or "" for status in statuses], str, fail)
        self.start_times += [same.setdefault(at, at) for at in [status.start_time for status in statuses]]
        self.nominated += [status.nominated_node_name or "" for status in statuses]
        if again:
            for item, row in again.items():
                if not self._is_equal(row, first + item):
                    fail(item, DuplicateNameError(row))
            for column in self._columns():
                column[first:] = [value for item, value in enumerate(column[first:]) if item not in again]
            kept = (key for item, key in enumerate(keys) if item not in again)
            self.rows.update({key: row for row, key in enumerate(kept, first)})
        return again

    def cut(self, size: int) -> None:
        """Keep only the first rows, also after `add` has raised."""
        for column in self._columns():
            del column[size:]
        while len(self.rows) > size:
            self.rows.popitem()

    def _is_equal(self, row: int, other: int) -> bool:
        """Whether two pods are equal in all that is read. The texts of equal values differ if their files have another
        indentation or order of keys."""
        for column in vars(self).values():
            if isinstance(column, _Interner):
                codes = column.codes
                if codes[row] != codes[other] and column.values[codes[row]] != column.values[codes[other]]:
                    return False
            elif isinstance(column, list) and column[row] != column[other]:
                return False
        return True

    def _columns(self) -> Iterator[list[Any]]:
        columns = (column.codes if isinstance(column, _Interner) else column for column in vars(self).values())
        yield from (column for column in columns if isinstance(column, list))

    def _spec_codes(self, keys: Sequence[bytes], label_keys: Sequence[bytes], fail: _Fail) -> list[int]:
        codes = self.specs.codes_of(keys, _pod_spec, fail)
        values = self.specs.values
        self._with_label_keys.update(
            code for code in range(self._seen_specs, len(values)) if uses_label_keys(values[code])
        )
        if self._with_label_keys:
            for item, code in enumerate(codes):
                if code in self._with_label_keys:
                    # the keys stand for the pod's own labels
                    labels = self.labels.values[self.labels.index[label_keys[item]]]
                    merge = partial(_merge_template, values[code], labels)
                    codes[item] = self.specs.code(keys[item] + label_keys[item], merge)
        self._seen_specs = len(values)
        return codes

    def table(
        self, nodes: Mapping[str, int], classes: Mapping[str, PriorityClass], *, keeps_order: bool = False
    ) -> PodTable:
        """Return the pods sorted by namespace and name, unless they keep their order."""
        keys = list(self.rows) if keeps_order else sorted(self.rows)
        order = np.fromiter(map(self.rows.__getitem__, keys), np.int64, len(keys))
        is_sorted = bool((order[1:] > order[:-1]).all())
        rows = order.tolist()

        def sorted_rows(column: list[T]) -> list[T]:
            return column if is_sorted else [column[row] for row in rows]

        specs = self.specs.column(order)
        without_priority = (
            frozenset(code for code, spec in enumerate(specs.values) if names_no_priority(spec))
            if global_default(classes) is None
            else frozenset[int]()
        )
        specs.values = [stored_priority(spec, classes) for spec in specs.values]
        phases, node_names = self.phases.column(order), self.node_names.column(order)
        finished = phases.where(lambda phase: phase in FINISHED)
        return PodTable(
            rows=self.rows if is_sorted else {key: row for row, key in enumerate(keys)},
            names=sorted_rows(self.names),
            namespaces=self.namespaces.column(order),
            uids=sorted_rows(self.uids),
            labels=self.labels.column(order),
            annotations=self.annotations.column(order),
            owners=self.owners.column(order),
            specs=specs,
            without_priority=without_priority,
            statuses=self.statuses.column(order),
            phases=phases,
            start_times=sorted_rows(self.start_times),
            creation_timestamps=sorted_rows(self.creation_timestamps),
            deletion_timestamps=sorted_rows(self.deletion_timestamps),
            finalizers=self.finalizers,
            grace_periods=self.grace_periods,
            nominated_node_names=sorted_rows(self.nominated),
            node_names=node_names,
            node=np.where(finished, -1, node_names.map(lambda name: nodes.get(name, -1))),
            node_count=len(nodes),
        )


def _merge_template(template: types.PodSpec, labels: types.Labels, _: bytes) -> types.PodSpec:
    return merge_label_keys(template, labels)


def _texts(raws: Iterable[MaybeRaw]) -> list[bytes]:
    return [b"" if raw is UNSET else bytes(raw) for raw in raws]


def _spec_keys(specs: Sequence[Any]) -> list[bytes]:
    """Return the relevant part of the specs, without their nodes: pods of one owner are mostly adjacent."""
    keys: list[bytes] = []
    unread = SlimVolume()
    last = None
    for spec in specs:
        spec.node_name = UNSET
        if spec.volumes:
            # volumes that no plugin reads differ only in generated names; others keep their position
            known = []
            for volume in spec.volumes:
                unread.name = volume.name
                known.append(_UNREAD if volume == unread else volume)
            while known and known[-1] is _UNREAD:
                known.pop()
            spec.volumes = known or UNSET
        keys.append(keys[-1] if spec == last else _ENCODER.encode(spec))
        last = spec
    return keys


def _occurring_words(words: Iterable[bytes], texts: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return the words that occur in any of these texts: one search over all texts is faster than one per text."""
    joined = b"\n".join(texts)
    return tuple(word for word in words if word in joined)


_TELLING = (
    b"DisruptionTarget",
    b"PodResizePending",
    b"PodResizeInProgress",
    b"Unschedulable",
    b"SchedulingGated",
    b"SchedulerError",
    b"NotReadyForScheduling",
)
"""Types and reasons of the relevant conditions."""

_CONDITIONS = msgspec.json.Decoder(tuple[types.PodCondition, ...])


def _unready(text: bytes) -> tuple[dict[str, str], ...]:
    """Return the condition Ready if it is False, with why, and without its time, which differs for each pod."""
    try:
        conditions = _CONDITIONS.decode(text)
    except msgspec.ValidationError:
        return ()  # invalid conditions are refused later
    ready = next((each for each in conditions if (each.type, each.status) == ("Ready", "False")), None)
    if ready is None:
        return ()
    fields = {"type": ready.type, "status": ready.status, "reason": ready.reason, "message": ready.message}
    return ({name: text for name, text in fields.items() if text},)


_MANY_RESTARTS = 5
_WAITING, _ENDED = b'"waiting"', b'"terminated"'
_OF_CONTAINERS = (_WAITING, _ENDED, b'"resources"')
"""Fields of container statuses; if none has them, only those of failed pods are read."""


def _has_state(statuses: Sequence[Any], state: bytes) -> bool:
    """Return whether a container waits, or has ended in a running pod; the pod's statuses and conditions say why."""
    return any(isinstance(status.state, Raw) and state in bytes(status.state) for status in statuses)


def _restarts_often(status: Any) -> bool:
    has_ended = isinstance(status.last_state, Raw) and _ENDED in bytes(status.last_state)
    return has_ended and isinstance(status.restart_count, int) and status.restart_count >= _MANY_RESTARTS


def _container_statuses(text: bytes, name: str) -> list[Any]:
    """Return the container statuses of a field. Raises `InputError` for invalid ones."""
    try:
        return [] if text in (b"", b"null") else decode(text, list[_SlimContainerStatus])
    except InputError as error:
        raise error.at(Place(field=f"status.{name}")) from None


_SELDOM = attrgetter(
    "allocated_resources", "resources", "resource_claim_statuses", "node_allocatable_resource_claim_statuses"
)
_NONE_OF_THEM = (UNSET,) * 4


def _slim_statuses(statuses: Sequence[SlimPodStatus], fail: _Fail) -> list[bytes]:
    """`slim_status` of many pods. Most are empty, so all texts are searched at once first."""
    texts = _texts([status.conditions for status in statuses])
    distinct = set(texts)
    telling = _occurring_words(_TELLING, distinct)
    kept = {text for text in distinct if b'"False"' in text or any(word in text for word in telling)}
    containers = _texts([status.container_statuses for status in statuses])
    init_containers = _texts([status.init_container_statuses for status in statuses])
    words = _occurring_words(_OF_CONTAINERS, (*containers, *init_containers))
    slim = [b""] * len(statuses)
    for number, (status, text) in enumerate(zip(statuses, texts, strict=True)):
        if (
            text in kept
            or status.phase in ("Failed", "Pending")
            or _SELDOM(status) != _NONE_OF_THEM
            or any(word in containers[number] or word in init_containers[number] for word in words)
        ):
            try:
                slim[number] = slim_status(status, telling)
            except InputError as error:
                fail(number, error)
    return slim


def slim_status(status: SlimPodStatus, telling: Sequence[bytes] = _TELLING) -> bytes:
    """Return the status without phase, start time, and nomination; empty for nearly every pod. `telling` are the words
    to look for in its conditions. Raises `InputError`."""
    part: dict[str, object] = {}
    is_told = status.phase == "Failed"
    texts = _texts((status.container_statuses, status.init_container_statuses))
    is_read = is_told or any(word in text for text in texts for word in _OF_CONTAINERS)
    containers = _container_statuses(texts[0], "containerStatuses") if is_read else []
    init_containers = _container_statuses(texts[1], "initContainerStatuses") if is_read else []
    is_told = is_told or _has_state(containers, _WAITING) or _has_state(init_containers, _WAITING)
    is_told = is_told or (status.phase == "Running" and _has_state(containers, _ENDED))
    text = bytes(status.conditions) if isinstance(status.conditions, Raw) else b""
    unready = _unready(text) if b'"False"' in text else ()
    is_told = is_told or (bool(unready) and _ENDED in texts[0])
    if text:
        # two conditions that scheduling reads, and kube-scheduler's message for a pending pod. The others have their
        # own timestamps, and budgets count a pod without them as not ready
        if is_told or status.phase == "Pending" or any(word in text for word in telling):
            part["conditions"] = status.conditions
        elif unready:
            part["conditions"] = unready
    for name, statuses in (("containerStatuses", containers), ("initContainerStatuses", init_containers)):
        kept = [s for s in statuses if is_told or isinstance(s.resources, Raw) or _restarts_often(s)]
        for item in (s for s in kept if not _restarts_often(s)):
            item.restart_count = UNSET
            item.last_state = item.last_state if is_told else UNSET
        if kept:
            part[name] = kept
    if status.phase == "Failed":
        part |= {name: said for name, said in (("reason", status.reason), ("message", status.message)) if said}
    if isinstance(status.allocated_resources, Raw):
        part["allocatedResources"] = status.allocated_resources
    if isinstance(status.resources, Raw):
        part["resources"] = status.resources
    if isinstance(status.resource_claim_statuses, Raw):
        part["resourceClaimStatuses"] = status.resource_claim_statuses
    if isinstance(status.node_allocatable_resource_claim_statuses, Raw):
        part["nodeAllocatableResourceClaimStatuses"] = status.node_allocatable_resource_claim_statuses
    return _ENCODER.encode(part) if part else b""


def _finalizers(text: bytes) -> tuple[str, ...]:
    with Place(field="metadata.finalizers"):
        return decode(text, tuple[str, ...]) if text != b"null" else ()


def _pod_spec(text: bytes) -> types.PodSpec:
    with Place(field="spec"):
        spec = decode(text, types.PodSpec)
    return default_pod_spec(spec)


def _pod_status(text: bytes) -> types.PodStatus:
    with Place(field="status"):
        status = decode(text, types.PodStatus)
    return default_pod_status(status)


def _labels(text: bytes) -> dict[str, str]:
    with Place(field="metadata.labels"):
        return decode(text, dict[str, str]) if text != b"null" else {}


def read_annotations(text: bytes, marks: Iterable[bytes] = ANNOTATION_MARKS) -> bytes:
    """Return the annotations that are read; empty for nearly every pod. Every text with such an annotation contains one
    of `marks`."""
    if not any(mark in text for mark in marks):
        return b""
    every = msgspec.json.decode(text)
    if not isinstance(every, dict):
        return text
    return _ENCODER.encode({key: every[key] for key in sorted(every) if is_read(key)})


def _annotations(text: bytes) -> dict[str, str]:
    with Place(field="metadata.annotations"):
        return decode(text, dict[str, str])


def _owners(text: bytes) -> tuple[types.OwnerReference, ...]:
    with Place(field="metadata.ownerReferences"):
        return decode(text, tuple[types.OwnerReference, ...]) if text != b"null" else ()
