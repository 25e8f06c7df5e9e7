"""What the pods on the nodes of a cluster request, of what is allocatable there."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kschedx.kube.documents import Document
from kschedx.kube.names import PODS
from kschedx.snapshot.nodes import NodeTable


class NodeUse(Document, frozen=True):
    """What the pods on one node request, of what is allocatable: resource to amount, cpu in milli-units."""

    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    @property
    def pods(self) -> int:
        return self.requested[PODS]

    def percent(self, resource: str) -> int:
        """Return the requested percentage; 0 if nothing of the resource is allocatable."""
        offered = self.allocatable.get(resource, 0)
        return 100 * self.requested.get(resource, 0) // offered if offered > 0 else 0


class NodeChange(Document, frozen=True):
    """A node before and after a simulation; None where it is not there."""

    before: NodeUse | None
    after: NodeUse | None


class NodeUsage:
    """The nodes of a cluster at one moment, by name."""

    def __init__(self, nodes: NodeTable) -> None:
        self.names = nodes.names
        self.resources: tuple[str, ...] = (*nodes.resources.names, PODS)
        self._row = {name: row for row, name in enumerate(self.names)}
        self._requested = np.column_stack([nodes.requested, nodes.pod_count])
        self._allocatable = np.column_stack([nodes.allocatable, nodes.allowed_pods])

    def __contains__(self, name: str) -> bool:
        return name in self._row

    def __getitem__(self, name: str) -> NodeUse:
        row = self._row[name]
        offered = {
            key: int(amount) for key, amount in zip(self.resources, self._allocatable[row], strict=True) if amount
        }
        requested = {key: int(amount) for key, amount in zip(self.resources, self._requested[row], strict=True)}
        return NodeUse(
            requested={key: amount for key, amount in requested.items() if amount or key in offered or key == PODS},
            allocatable=offered,
        )

    def get(self, name: str) -> NodeUse | None:
        """Return the usage of a node; None for a node that does not exist."""
        if name not in self:
            return None
        return self[name]

    def total(self) -> NodeUse:
        requested, offered = self._requested.sum(axis=0).tolist(), self._allocatable.sum(axis=0).tolist()
        return NodeUse(
            requested=dict(zip(self.resources, requested, strict=True)),
            allocatable={key: amount for key, amount in zip(self.resources, offered, strict=True) if amount},
        )
