"""How full nodes are."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from msgspec import Struct

from kschedx.snapshot.nodes import NodeTable

PODS = "pods"


class NodeUse(Struct, frozen=True, kw_only=True):
    """What the pods on one node ask for, of what it offers: resource to amount, cpu in milli-units."""

    requested: Mapping[str, int]
    allocatable: Mapping[str, int]

    @property
    def pods(self) -> int:
        return self.requested[PODS]

    def percent(self, resource: str) -> int:
        """0 where the node offers none of it."""
        offered = self.allocatable.get(resource, 0)
        return 100 * self.requested.get(resource, 0) // offered if offered > 0 else 0

    def to_dict(self) -> dict[str, object]:
        return {"requested": dict(self.requested), "allocatable": dict(self.allocatable)}


class Usage:
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
        asked = {key: int(amount) for key, amount in zip(self.resources, self._requested[row], strict=True)}
        return NodeUse(
            requested={key: amount for key, amount in asked.items() if amount or key in offered or key == PODS},
            allocatable=offered,
        )

    def get(self, name: str) -> NodeUse | None:
        """None for a node that is not there."""
        if name not in self:
            return None
        return self[name]

    def total(self) -> NodeUse:
        """Of all nodes together."""
        asked, offered = self._requested.sum(axis=0).tolist(), self._allocatable.sum(axis=0).tolist()
        return NodeUse(
            requested=dict(zip(self.resources, asked, strict=True)),
            allocatable={key: amount for key, amount in zip(self.resources, offered, strict=True) if amount},
        )

    def empty(self) -> frozenset[str]:
        """The nodes without a pod."""
        return frozenset(self.names[row] for row in np.flatnonzero(self._requested[:, -1] == 0))
