"""What does not fit together about the storage and the devices that a pod uses."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct

from kschedx.explain.notes.facts import NoteFacts

StorageKind: TypeAlias = Literal["PersistentVolumeClaim", "CSINode"]


class EmptyKind(NoteFacts, frozen=True, kw_only=True):
    """The cluster has no object of it."""

    id: ClassVar[str] = "empty-kind"
    kind: StorageKind


class MissingKind(NoteFacts, frozen=True, kw_only=True):
    """The snapshot holds no object of it, and does not say that it is complete."""

    id: ClassVar[str] = "missing-kind"
    kind: StorageKind


class ClaimVolumeMissing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claim-volume-missing"
    claim: str
    volume: str


class VolumeBoundElsewhere(NoteFacts, frozen=True, kw_only=True):
    """A claim names a volume that names another claim."""

    id: ClassVar[str] = "volume-bound-elsewhere"
    claim: str
    volume: str
    other: str
    """The same name for an earlier claim, which had another uid."""


class ClaimClassMissing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "claim-class-missing"
    claim: str
    storage_class: str
    known: tuple[str, ...]
    """The classes that there are."""


class SelectedNodeMissing(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "selected-node-missing"
    claim: str
    node: str


class EqualVolumes(NoteFacts, frozen=True, kw_only=True):
    """kube-scheduler takes any of them."""

    id: ClassVar[str] = "equal-volumes"
    claim: str
    volumes: tuple[str, ...]


class CSINodesWithoutNode(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "csi-node-without-node"
    csi_nodes: tuple[str, ...]


class NodesWithoutCSINode(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "node-without-csi-node"
    nodes: tuple[str, ...]


class CapacitySelectorInvalid(NoteFacts, frozen=True, kw_only=True):
    id: ClassVar[str] = "capacity-selector-invalid"
    capacity: str
    error: str


class SelectorRefusal(Struct, frozen=True, kw_only=True):
    object: str
    """`DeviceClass gpu`."""
    field: str
    error: str
    """As the API server words it."""


class SelectorsRefused(NoteFacts, frozen=True, kw_only=True):
    """Device selectors that the API server would not store, in objects that it has not stored yet."""

    id: ClassVar[str] = "selector-refused"
    refusals: tuple[SelectorRefusal, ...]


StorageNote: TypeAlias = (
    EmptyKind
    | MissingKind
    | ClaimVolumeMissing
    | VolumeBoundElsewhere
    | ClaimClassMissing
    | SelectedNodeMissing
    | EqualVolumes
    | CSINodesWithoutNode
    | NodesWithoutCSINode
    | CapacitySelectorInvalid
    | SelectorsRefused
)
