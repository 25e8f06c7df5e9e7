"""When the node lifecycle controller evicts the pods of nodes that stop reporting, and when it stops evicting.

It taints nodes NoExecute one after the other, at a rate for each zone. The taint eviction controller then deletes each
pod when its toleration expires. Upstream: ComputeZoneState, handleDisruption, setLimiterInZone, and ReducedQPSFunc in
pkg/controller/nodelifecycle/node_lifecycle_controller.go, the defaults in its config/v1alpha1/defaults.go, and
getMinTolerationTime in pkg/controller/tainteviction/taint_eviction.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from msgspec import Struct, field

from kschedx.kube.conditions import reports_ready
from kschedx.kube.documents import Document
from kschedx.kube.names import REGION_LABELS, ZONE_LABELS, first_label
from kschedx.kube.tolerations import NO_EXECUTE, tolerates
from kschedx.kube.types import Node, Taint, Toleration

_EVICTION_RATE = 0.1
"""--node-eviction-rate: nodes per second."""
_SECONDARY_RATE = 0.01
"""--secondary-node-eviction-rate."""
LARGE_ZONE = 50
"""--large-cluster-size-threshold: a partly disrupted zone with up to this many nodes has no evictions."""
_UNHEALTHY_SHARE = 0.55
"""--unhealthy-zone-threshold."""
_FEWEST_UNHEALTHY = 3
"""A zone with fewer nodes that are not ready is in no partial disruption."""
GRACE, GRACE_BEFORE = 50, 40
"""--node-monitor-grace-period, in seconds: from Kubernetes 1.32 on, and before."""
_EXCLUDED = "node.kubernetes.io/exclude-disruption"
_UNREACHABLE = Taint(key="node.kubernetes.io/unreachable", effect=NO_EXECUTE)


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
    zone: str
    """Empty for nodes without a zone."""
    nodes: int
    lost: tuple[str, ...]
    """Nodes that stop reporting, by name; the controller taints them in random order."""
    state: ZoneState
    rate: float
    """Nodes tainted per second; 0 if the controller stops."""
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
        """Nodes by name, without those that the controller does not count."""
        self._sizes = Counter[tuple[str, str]]()
        self._unready: set[str] = set()
        for node in nodes:
            if _EXCLUDED in node.metadata.labels:
                continue
            zone = self._zones[node.name] = _zone_of(node)
            self._sizes[zone] += 1
            if not _is_ready(node):
                self._unready.add(node.name)

    def evictions(self, lost: Iterable[str], grace: int = GRACE) -> tuple[ZoneEvictions, ...]:
        """Return the zones with nodes that stop reporting. Nodes that were not ready before count as well."""
        gone: dict[tuple[str, str], list[str]] = {}
        names = set(lost)
        for name in sorted(names & self._zones.keys()):
            gone.setdefault(self._zones[name], []).append(name)
        unready = Counter(self._zones[name] for name in self._unready | (names & self._zones.keys()))
        states = {zone: zone_state(size - unready[zone], unready[zone]) for zone, size in self._sizes.items()}
        is_all = all(state is ZoneState.FULL for state in states.values())
        return tuple(
            ZoneEvictions(
                zone=zone[1],
                nodes=size,
                lost=tuple(gone[zone]),
                state=states[zone],
                rate=0.0 if is_all else eviction_rate(states[zone], size),
                grace=grace,
            )
            for zone, size in self._sizes.items()
            if zone in gone
        )


def _zone_of(node: Node) -> tuple[str, str]:
    """Return region and zone; the controller counts nodes by both."""
    return first_label(node.metadata.labels, REGION_LABELS), first_label(node.metadata.labels, ZONE_LABELS)


def _is_ready(node: Node) -> bool:
    """Whether a node is ready by its condition and its taints, since a snapshot may be reduced to what scheduling
    reads."""
    return reports_ready(node.status.conditions) and not any(
        taint.key in (_UNREACHABLE.key, "node.kubernetes.io/not-ready") and taint.effect == NO_EXECUTE
        for taint in node.spec.taints
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


def toleration_seconds(tolerations: Sequence[Toleration], *, comparison: bool) -> int | None:
    """Return how many seconds a pod stays on an unreachable node; None if it tolerates the taint forever."""
    used = [toleration for toleration in tolerations if tolerates(toleration, _UNREACHABLE, comparison=comparison)]
    if not used:
        return 0
    seconds = [
        max(toleration.toleration_seconds, 0) for toleration in used if toleration.toleration_seconds is not None
    ]
    return min(seconds, default=None)
