"""The shape in which bulk objects are read: leaves stay raw JSON until a distinct one is met.

A cluster has a hundred thousand pods but a few thousand pod templates. `SlimPodSpec` has the fields of
`api.types.PodSpec`, generated from it so that the two cannot drift apart, with every compound leaf as raw bytes. Its
JSON encoding holds exactly what scheduling reads, and is the key under which a `PodSpec` is decoded once and shared.
"""

from __future__ import annotations

from typing import Any, get_args, get_type_hints

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from kschedx.api import pod_volumes, storage, types
from kschedx.api.quantity import ResourceList

MaybeRaw = Raw | UnsetType


def _slim(kind: type[Struct], nested: dict[str, type[Struct]]) -> type[Any]:
    """`kind` with its compound fields raw; those in `nested` are lists of the given slim struct."""
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


def _is_scalar(hint: Any) -> bool:
    return all(part in (str, int, bool, type(None)) for part in (get_args(hint) or (hint,)))


# mypy does not follow generated structs: these are typed where their fields are used, in build.py
SlimContainer: Any = _slim(types.Container, {})
SlimVolume: Any = _slim(pod_volumes.Volume, {})
SlimPodSpec: Any = _slim(
    types.PodSpec, {"containers": SlimContainer, "init_containers": SlimContainer, "volumes": SlimVolume}
)
SlimContainerStatus: Any = _slim(types.ContainerStatus, {})


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


class SlimPodStatus(Struct, kw_only=True, rename="camel", gc=False):
    phase: str | None = ""
    start_time: str | None = None
    nominated_node_name: str | None = ""
    conditions: MaybeRaw = UNSET
    container_statuses: list[SlimContainerStatus] | UnsetType | None = UNSET
    init_container_statuses: list[SlimContainerStatus] | UnsetType | None = UNSET
    allocated_resources: MaybeRaw = UNSET
    resources: MaybeRaw = UNSET
    resource_claim_statuses: MaybeRaw = UNSET
    node_allocatable_resource_claim_statuses: MaybeRaw = UNSET


class PodItem(Struct, kw_only=True, rename="camel", tag_field="kind", tag="Pod", gc=False):
    api_version: str = ""
    metadata: SlimObjectMeta = field(default_factory=SlimObjectMeta)
    spec: SlimPodSpec = field(default_factory=SlimPodSpec)
    status: SlimPodStatus | None = field(default_factory=SlimPodStatus)


class SlimNodeStatus(Struct, kw_only=True, rename="camel", gc=False):
    """As `api.types.NodeStatus`, but the images, the bulk of a node, stay raw until a plugin asks for one."""

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
    status: SlimNodeStatus | None = None


class PersistentVolumeItem(
    storage.PersistentVolume, kw_only=True, frozen=True, tag_field="kind", tag="PersistentVolume"
):
    """A cluster has tens of thousands of these, so they are read in bulk too."""

    api_version: str = field(default="", name="apiVersion")


class PersistentVolumeClaimItem(
    storage.PersistentVolumeClaim, kw_only=True, frozen=True, tag_field="kind", tag="PersistentVolumeClaim"
):
    """As PersistentVolumeItem."""

    api_version: str = field(default="", name="apiVersion")


class OtherItem(Struct, kw_only=True, rename="camel"):
    """What is needed to route an object of any kind."""

    api_version: str | None = ""
    kind: str | None = ""
    metadata: SlimObjectMeta | None = None

    @property
    def group(self) -> str:
        return (self.api_version or "").rpartition("/")[0]
