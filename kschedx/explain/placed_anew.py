"""How full nodes are, now and after pods were placed anew: facts that are worked out elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct


class Filling(Struct, frozen=True, kw_only=True):
    """The nodes of a cluster at one moment. A node is in use where another pod runs than those of DaemonSets and those
    that its kubelet starts itself."""

    nodes: int
    in_use: int
    unused: tuple[str, ...]
    """Names."""
    requested: Mapping[str, int]
    """What all pods ask for on the nodes in use: resource to amount, cpu in milli-units."""
    allocatable: Mapping[str, int]
    """What these nodes offer."""
    fullest: Mapping[str, int]
    """Resource to the percentage on the node where it is highest."""
    pending: tuple[str, ...] = ()
    """Pods that found no place, by `namespace/name`."""

    def percent(self, resource: str) -> int:
        """Of what the nodes in use offer, how much is asked for."""
        offered = self.allocatable[resource]
        return 100 * self.requested[resource] // offered if offered else 0


class PlacedAnew(Struct, frozen=True, kw_only=True):
    """Running pods were taken off their nodes and placed anew one after another, in queue order, by two profiles."""

    pods: int
    now: Filling
    before: Filling
    """As the first profile places them."""
    after: Filling
    """As the second one does."""

    @property
    def emptied(self) -> tuple[str, ...]:
        """Nodes that only the second profile leaves unused."""
        kept = set(self.before.unused)
        return tuple(name for name in self.after.unused if name not in kept)

    @property
    def filled(self) -> tuple[str, ...]:
        """Nodes that only the first profile leaves unused."""
        kept = set(self.after.unused)
        return tuple(name for name in self.before.unused if name not in kept)
