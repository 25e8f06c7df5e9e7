"""What of the cluster's objects counts otherwise than one would think, or not at all."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar, TypeAlias

from kschedx.explain.notes.facts import NoteFacts


class OrphanedPods(NoteFacts, frozen=True, kw_only=True):
    """They are on nodes that are not there."""

    id: ClassVar[str] = "orphans"
    pods: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"pods": list(self.pods), "nodes": list(self.nodes)}


class FilesLeftOut(NoteFacts, frozen=True, kw_only=True):
    """No Kubernetes objects are in them."""

    id: ClassVar[str] = "left-out"
    files: tuple[str, ...]

    @property
    def facts(self) -> dict[str, object]:
        return {"files": list(self.files)}


class FinishedPods(NoteFacts, frozen=True, kw_only=True):
    """They count on their nodes, since the input holds what no API server would."""

    id: ClassVar[str] = "finished-pods"
    pods: int

    @property
    def facts(self) -> dict[str, object]:
        return {"pods": self.pods}


class Teller(Enum):
    """Who tells the cluster's release."""

    SERVER = auto()
    KUBELETS = auto()
    MOST_KUBELETS = auto()


class ReleaseEmulated(NoteFacts, frozen=True, kw_only=True):
    """A release that the cluster, and nobody else, named."""

    id: ClassVar[str] = "release"
    teller: Teller
    version: str
    """`v1.33.4-gke.100`."""
    is_known: bool
    """Otherwise the nearest is emulated."""
    emulated: str
    """As the release calls itself."""
    is_measured: bool

    @property
    def facts(self) -> dict[str, object]:
        return {"serverVersion" if self.teller is Teller.SERVER else "kubeletVersion": self.version}


ClusterNote: TypeAlias = OrphanedPods | FilesLeftOut | FinishedPods | ReleaseEmulated
