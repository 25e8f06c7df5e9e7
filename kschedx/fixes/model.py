"""A fix: what to change, and what was seen when it was tried."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct, field

from kschedx.api.storage import PersistentVolumeClaim
from kschedx.api.types import Container, Node, Pod, PodSpec
from kschedx.snapshot.snapshot import Snapshot

Json = dict[str, object]


class Certainty(StrEnum):
    VERIFIED = "verified"
    """With all changes applied the pod passes every filter on the nodes named."""
    PARTIAL = "partial"
    """This blocker goes; the title names those that remain."""


class Target(Struct, frozen=True, kw_only=True):
    """The object that a change is made to."""

    api_version: str
    kind: str
    namespace: str
    name: str


class Change(Struct, frozen=True, kw_only=True):
    """A JSON patch (RFC 6902) of an object, its deletion, or a new object."""

    target: Target
    patch: tuple[Json, ...] = ()
    delete: bool = False
    create: Json | None = None

    def to_dict(self) -> Json:
        target: Json = {"apiVersion": self.target.api_version, "kind": self.target.kind, "name": self.target.name}
        if self.target.namespace:
            target["namespace"] = self.target.namespace
        if self.delete:
            return {"target": target, "delete": True}
        if self.create is not None:
            return {"target": target, "create": self.create}
        return {"target": target, "patch": list(self.patch)}


class Fix(Struct, frozen=True, kw_only=True):
    """What would help. Only what was tried is told."""

    title: str
    certainty: Certainty
    changes: tuple[Change, ...]
    feasible_nodes: tuple[str, ...]

    def to_dict(self) -> Json:
        return {
            "title": self.title,
            "certainty": self.certainty.value,
            "changes": [change.to_dict() for change in self.changes],
            "feasibleNodes": list(self.feasible_nodes),
        }


class Proposal(Struct, frozen=True, kw_only=True):
    """A cluster and a pod that differ from what is; what differs becomes the changes of a fix."""

    steps: tuple[str, ...] = ()
    """What is done, in words, each once."""
    cost: int = 0
    """Cheaper is told first: the dearest of its steps (`remedy.Cost`)."""
    pod: Pod
    nodes: Mapping[int, Node] = field(default_factory=dict)
    """Node row to the node as it would be."""
    deleted: tuple[int, ...] = ()
    """Rows of pods that would go."""
    added: Node | None = None
    """A node that would come."""
    claims: Mapping[str, PersistentVolumeClaim] = field(default_factory=dict)
    """`namespace/name` to the claim as it would be."""

    @property
    def title(self) -> str:
        return ", ".join(self.steps)

    def changes(self, pod: Pod, snapshot: Snapshot) -> Iterator[Change]:
        """What is different from `pod` and `snapshot`."""
        patch = tuple(pod_patch(pod, self.pod))
        if patch:
            yield Change(target=_target("Pod", self.pod.metadata.namespace, self.pod.metadata.name), patch=patch)
        for row in self.deleted:
            pods = snapshot.pods
            yield Change(target=_target("Pod", pods.namespaces[row], pods.names[row]), delete=True)
        for row, node in self.nodes.items():
            before = snapshot.cluster.nodes[row]
            yield Change(target=_target("Node", "", node.name), patch=tuple(node_patch(before, node)))
        if self.added is not None:
            yield Change(target=_target("Node", "", self.added.name), create=_manifest("Node", self.added))
        for key, claim in self.claims.items():
            target = _target("PersistentVolumeClaim", claim.metadata.namespace, claim.name)
            if key in snapshot.storage.claims:
                yield Change(target=target, patch=(_add("/spec/resources", claim.spec.resources),))
            else:
                yield Change(target=target, create=_manifest("PersistentVolumeClaim", claim))


def _target(kind: str, namespace: str, name: str) -> Target:
    return Target(api_version="v1", kind=kind, namespace=namespace, name=name)


def plain(value: object) -> object:
    """A record as JSON would hold it, without the fields that have their default."""
    if isinstance(value, Struct):
        fields = msgspec.structs.fields(value)
        told = {info.encode_name: (getattr(value, info.name), _default(info)) for info in fields}
        return {name: plain(item) for name, (item, default) in told.items() if item != default}
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
        elif new in (None, "", (), {}):
            yield {"op": "remove", "path": f"/spec/{info.encode_name}"}
        else:
            yield _add(f"/spec/{info.encode_name}", new)


def _container_patch(before: Container, after: Container, path: str) -> Iterator[Json]:
    if before.resources != after.resources:
        yield _add(f"{path}/resources", after.resources)
    if before.ports != after.ports:
        yield _add(f"{path}/ports", after.ports)


def node_patch(before: Node, after: Node) -> Iterator[Json]:
    """Operations that turn one node into the other: cordon, taints, labels."""
    if before.spec.unschedulable != after.spec.unschedulable:
        yield {"op": "add", "path": "/spec/unschedulable", "value": after.spec.unschedulable}
    if before.spec.taints != after.spec.taints:
        yield _add("/spec/taints", after.spec.taints)
    labels = after.metadata.labels
    if not before.metadata.labels and labels:
        yield {"op": "add", "path": "/metadata/labels", "value": dict(labels)}
    else:
        for key, value in labels.items():
            if before.metadata.labels.get(key) != value:
                yield {"op": "add", "path": f"/metadata/labels/{_pointer(key)}", "value": value}


def _add(path: str, value: object) -> Json:
    return {"op": "add", "path": path, "value": plain(value)}


def _pointer(key: str) -> str:
    """A key as a part of a JSON pointer (RFC 6901)."""
    return key.replace("~", "~0").replace("/", "~1")


def _manifest(kind: str, record: Struct) -> Json:
    fields = plain(record)
    manifest: Json = {"apiVersion": "v1", "kind": kind}
    return manifest | fields if isinstance(fields, dict) else manifest
