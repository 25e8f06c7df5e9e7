"""The pods of a snapshot while they are read: what pods share is decoded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw

from kschedx.api import types
from kschedx.api.decode import decode
from kschedx.api.defaulting import default_pod_spec, default_pod_status, merge_label_keys, uses_label_keys
from kschedx.api.priority import resolve_priority
from kschedx.errors import InputError, Place
from kschedx.snapshot.columns import Column
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.wire import PodItem, SlimVolume

_ENCODER = msgspec.json.Encoder()


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


class PodColumns:
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
        # two conditions that scheduling reads, and what kube-scheduler said of a pending pod; all others carry
        # timestamps of their own
        if b"DisruptionTarget" in text or b"PodResizePending" in text or b"Unschedulable" in text:
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
