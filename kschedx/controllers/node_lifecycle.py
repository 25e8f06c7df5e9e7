"""When the node lifecycle controller evicts the pods of nodes that stop reporting, and when it stops evicting.

It taints nodes NoExecute one after the other, at a rate for each zone. The taint eviction controller then deletes each
pod when its toleration expires. Upstream: ComputeZoneState, handleDisruption, setLimiterInZone, and ReducedQPSFunc in
pkg/controller/nodelifecycle/node_lifecycle_controller.go, the defaults in its config/v1alpha1/defaults.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct, field

from kschedx.grouping import group_pairs
from kschedx.kube.conditions import condition_of, reports_ready
from kschedx.kube.documents import Document
from kschedx.kube.names import REGION_LABELS, ZONE_LABELS, first_label
from kschedx.kube.tolerations import NO_EXECUTE
from kschedx.kube.types import LOST_TAINTS, UNREACHABLE, Node

_EVICTION_RATE = 0.1  # --node-eviction-rate: nodes per second
_SECONDARY_RATE = 0.01  # --secondary-node-eviction-rate
LARGE_ZONE = 50  # --large-cluster-size-threshold: a partly disrupted zone with up to this many nodes has no evictions
_UNHEALTHY_SHARE = 0.55  # --unhealthy-zone-threshold
_FEWEST_UNHEALTHY = 3  # a zone with fewer nodes that are not ready is in no partial disruption
GRACE, GRACE_BEFORE = 50, 40  # --node-monitor-grace-period, in seconds: from Kubernetes 1.32 on, and before
_EXCLUDED = "node.kubernetes.io/exclude-disruption"


class ZoneState(StrEnum):
    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


class ZoneEvictionsDocument(Document, frozen=True):
    zone: str
    nodes: int
    number_lost: int = field(name="lost")
    state: ZoneState
    seconds_per_node: int | None
    first_taint_after: int | None = field(name="firstTaintAfterSeconds")
    last_taint_after: int | None = field(name="lastTaintAfterSeconds")


class ZoneEvictions(Struct, frozen=True, kw_only=True):
    zone: str  # empty for nodes without a zone
    nodes: int
    lost: tuple[str, ...]  # nodes that stop reporting, by name; the controller taints them in random order
    state: ZoneState
    rate: float  # nodes tainted per second; 0 if the controller stops
    grace: int = GRACE

    def tainted_after(self, place: int) -> int | None:
        """Return the seconds until the node at this position is tainted; None if it never is."""
        return None if not self.rate else self.grace + round(place / self.rate)

    @property
    def number_lost(self) -> int:
        return len(self.lost)

    @property
    def seconds_per_node(self) -> int | None:
        return round(1 / self.rate) if self.rate else None

    @property
    def first_taint_after(self) -> int | None:
        return self.tainted_after(0)

    @property
    def last_taint_after(self) -> int | None:
        return self.tainted_after(max(self.number_lost - 1, 0))


class NodeZones:
    """The zones of a cluster's nodes before any of them is lost."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._zones: dict[str, tuple[str, str]] = {}
        self._counted: set[str] = set()
        """Nodes that count for the state of their zone; the others are tainted at the zone's rate too."""
        self._unready: set[str] = set()
        for node in nodes:
            self._zones[node.name] = _zone_of(node)
            if _EXCLUDED not in node.metadata.labels:
                self._counted.add(node.name)
                if not _is_ready(node):
                    self._unready.add(node.name)
        self._all = Counter(self._zones.values())
        self._sizes = Counter(self._zones[name] for name in self._counted)

    def evictions(self, lost: Iterable[str], grace: int = GRACE) -> tuple[ZoneEvictions, ...]:
        """Return the zones with nodes that stop reporting. Nodes that were not ready before count as well."""
        names = set(lost)
        gone = group_pairs((self._zones[name], name) for name in sorted(names & self._zones.keys()))
        unready = Counter(self._zones[name] for name in self._unready | (names & self._counted))
        states = {zone: zone_state(size - unready[zone], unready[zone]) for zone, size in self._sizes.items()}
        is_all = bool(states) and all(state is ZoneState.FULL for state in states.values())
        return tuple(
            ZoneEvictions(
                zone=zone[1],
                nodes=number,
                lost=tuple(gone[zone]),
                state=states.get(zone, ZoneState.NORMAL),
                rate=0.0 if is_all else eviction_rate(states.get(zone, ZoneState.NORMAL), self._sizes[zone]),
                grace=grace,
            )
            for zone, number in self._all.items()
            if zone in gone
        )


def _zone_of(node: Node) -> tuple[str, str]:
    """Return region and zone; the controller counts nodes by both."""
    return first_label(node.metadata.labels, REGION_LABELS), first_label(node.metadata.labels, ZONE_LABELS)


def is_unreachable(node: Node) -> bool:
    """Whether the node's kubelet does not respond, according to its condition or its taints."""
    ready = condition_of(node.status.conditions, "Ready")
    return (ready is not None and ready.status == "Unknown") or any(it.key == UNREACHABLE for it in node.spec.taints)


def _is_ready(node: Node) -> bool:
    """Whether a node is ready by its condition and its taints, since a snapshot may hold only what scheduling reads."""
    return reports_ready(node.status.conditions) and not any(
        taint.key in LOST_TAINTS and taint.effect == NO_EXECUTE for taint in node.spec.taints
    )


def zone_state(ready: int, unready: int) -> ZoneState:
    if not ready and unready:
        return ZoneState.FULL
    if unready >= _FEWEST_UNHEALTHY and unready / (unready + ready) >= _UNHEALTHY_SHARE:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


def eviction_rate(state: ZoneState, nodes: int) -> float:
    """Return the evicted nodes per second, if at least one zone of the cluster is in no full disruption."""
    if state is ZoneState.PARTIAL:
        return _SECONDARY_RATE if nodes > LARGE_ZONE else 0.0
    return _EVICTION_RATE
