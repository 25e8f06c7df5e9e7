"""Records as JSON, and the operations that turn one into another."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

import msgspec
from msgspec import Struct

from kschedx.api.types import Container, Node, Pod, PodSpec
from kschedx.fixes.changes import Json


def manifest(api_version: str, kind: str, record: Struct) -> Json:
    """The object as it would be created."""
    fields = plain(record)
    head: Json = {"apiVersion": api_version, "kind": kind}
    return head | fields | head if isinstance(fields, dict) else head


def plain(value: object) -> object:
    """A record as JSON would hold it, without the fields that have their default."""
    if isinstance(value, Struct):
        fields = msgspec.structs.fields(value)
        told = {info.encode_name: (getattr(value, info.name), _default(info)) for info in fields}
        return {name: plain(item) for name, (item, default) in told.items() if item != default}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def _default(info: msgspec.structs.FieldInfo) -> object:
    return info.default_factory() if callable(info.default_factory) else info.default


def pod_patch(before: Pod, after: Pod) -> Iterator[Json]:
    """Operations that turn one pod into the other. Whole lists and maps are added, which replaces those that exist, so
    that the patch applies to a manifest with and without the API server's defaults."""
    for info in msgspec.structs.fields(PodSpec):
        old, new = getattr(before.spec, info.name), getattr(after.spec, info.name)
        if old == new:
            continue
        if info.name in ("containers", "init_containers"):
            for index, (was, now) in enumerate(zip(old, new, strict=True)):
                yield from _container_patch(was, now, f"/spec/{info.encode_name}/{index}")
        elif info.name == "volumes":
            for index, (volume, other) in enumerate(zip(old, new, strict=True)):
                if volume != other:
                    # of a volume no more is known than what is read
                    name = other.persistent_volume_claim.claim_name
                    yield add(f"/spec/volumes/{index}/persistentVolumeClaim/claimName", name)
        elif new in (None, "", (), {}):
            yield {"op": "remove", "path": f"/spec/{info.encode_name}"}
        else:
            yield add(f"/spec/{info.encode_name}", new)
    statuses = after.status.resource_claim_statuses
    if statuses != before.status.resource_claim_statuses:
        if before.status == type(before.status)():
            yield add("/status", {"resourceClaimStatuses": plain(statuses)})
        else:
            yield add("/status/resourceClaimStatuses", statuses)


def _container_patch(before: Container, after: Container, path: str) -> Iterator[Json]:
    if before.resources != after.resources:
        yield add(f"{path}/resources", after.resources)
    if before.ports != after.ports:
        yield add(f"{path}/ports", after.ports)


def node_patch(before: Node, after: Node) -> Iterator[Json]:
    """Operations that turn one node into the other: cordon, taints, labels, amounts."""
    if before.spec.unschedulable != after.spec.unschedulable:
        yield {"op": "add", "path": "/spec/unschedulable", "value": after.spec.unschedulable}
    if before.spec.taints != after.spec.taints:
        yield add("/spec/taints", after.spec.taints)
    for resource, amount in after.status.allocatable.items():
        if before.status.allocatable.get(resource) != amount:
            yield add(f"/status/allocatable/{pointer(resource)}", amount)
    labels = after.metadata.labels
    if not before.metadata.labels and labels:
        yield {"op": "add", "path": "/metadata/labels", "value": dict(labels)}
    else:
        for key, value in labels.items():
            if before.metadata.labels.get(key) != value:
                yield {"op": "add", "path": f"/metadata/labels/{pointer(key)}", "value": value}
        for key in before.metadata.labels:
            if key not in labels:
                yield {"op": "remove", "path": f"/metadata/labels/{pointer(key)}"}


def add(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": plain(value)}


def pointer(key: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")
