"""The state of the groups: which nodes are theirs, which of them are ready, and how many are about to come.

Upstream: clusterstate/clusterstate.go, utils/kubernetes/ready.go, obtainNodeLists in core/static_autoscaler.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from kschedx.api.quantity import value
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import Node
from kschedx.autoscaler.clouds import gpu_label
from kschedx.autoscaler.flags import Flags
from kschedx.autoscaler.status import GroupStatus, Health, ScaleUp
from kschedx.autoscaler.taints import TO_BE_DELETED, TaintRules
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.rows import ClusterRow

GroupOfNode = Callable[[Node], str | None]

_UNREADY_TAINTS = frozenset({
    "node.kubernetes.io/not-ready", "node.kubernetes.io/disk-pressure", "node.kubernetes.io/network-unavailable",
})  # fmt: skip
_BAD: Mapping[str, tuple[str, ...]] = {
    "Ready": ("False", "Unknown"),
    "DiskPressure": ("True",),
    "NetworkUnavailable": ("True",),
}
"""The conditions that are read, and the statuses that make a node unready."""

_SUSPENDED = "Suspended"


class Readiness(StrEnum):
    READY = "ready"
    NOT_STARTED = "not started"
    UNREADY = "unready"
    DELETED = "being deleted"
    SUSPENDED = "suspended"


class NodeState(Struct, frozen=True, kw_only=True):
    """How the autoscaler sees a node."""

    row: ClusterRow
    group: str | None
    readiness: Readiness
    is_ready: bool
    """Its conditions, taints, startup taints and GPUs all say so."""
    lacks: str = ""
    """The startup taint it has, or the GPUs that its label announces; empty where it is ready in these regards."""
    is_cordoned: bool = False
    stable_since: int = 0
    """Nanoseconds since 1970 of the last change of a condition that is read."""

    @property
    def is_usable(self) -> bool:
        """Ready and not cordoned: one of CA's ready nodes."""
        return self.is_ready and not self.is_cordoned


class Group(Struct, frozen=True, kw_only=True):
    """A group with what is known about it before any pod is looked at."""

    status: GroupStatus
    nodes: tuple[NodeState, ...]
    upcoming: int
    """Nodes that are counted as about to come."""

    @property
    def name(self) -> str:
        return self.status.name

    @property
    def headroom(self) -> int:
        """Nodes that can be added up to the maximum."""
        return max(self.status.max_size - self.status.target, 0)

    @property
    def is_healthy(self) -> bool:
        return self.status.health is not Health.UNHEALTHY

    @property
    def is_backed_off(self) -> bool:
        return self.status.scale_up is ScaleUp.BACKOFF

    @property
    def not_started(self) -> tuple[NodeState, ...]:
        return tuple(node for node in self.nodes if node.readiness is Readiness.NOT_STARTED)


def node_states(
    nodes: Sequence[Node], group_of: GroupOfNode, flags: Flags, behaviour: AutoscalerBehaviour, now: int
) -> tuple[NodeState, ...]:
    """Every node in list order; `now` in nanoseconds since 1970."""
    judge = _Judge(
        rules=TaintRules.of(flags, behaviour),
        gpu_label=gpu_label(flags.cloud_provider),
        flags=flags,
        behaviour=behaviour,
        now=now,
    )
    return tuple(judge.state(ClusterRow(row), node, group_of(node)) for row, node in enumerate(nodes))


class _Judge(Struct, frozen=True, kw_only=True):
    """Tells the state of a node."""

    rules: TaintRules
    gpu_label: str | None
    flags: Flags
    behaviour: AutoscalerBehaviour
    now: int

    def state(self, row: ClusterRow, node: Node, group: str | None) -> NodeState:
        is_ready, stable_since = _conditions(node)
        lacks = ""
        if is_ready and not node.spec.unschedulable:
            startup = (taint.key for taint in node.spec.taints if self.rules.is_startup(taint.key))
            lacks = _missing_gpu(node, self.gpu_label, self.behaviour.gpus_that_show) or next(startup, "")
            is_ready = not lacks
        return NodeState(
            row=row,
            group=group,
            readiness=self._readiness(node, is_ready),
            is_ready=is_ready,
            lacks=lacks,
            is_cordoned=node.spec.unschedulable,
            stable_since=stable_since,
        )

    def _readiness(self, node: Node, is_ready: bool) -> Readiness:
        if any(taint.key == TO_BE_DELETED for taint in node.spec.taints):
            return Readiness.DELETED
        suspended = any(one.type == _SUSPENDED and one.status == "True" for one in node.status.conditions)
        if self.behaviour.suspended_nodes_count and suspended:
            return Readiness.SUSPENDED
        if is_ready:
            return Readiness.READY
        started_by = _time(node.metadata.creation_timestamp) + self.flags.max_node_startup_time
        return Readiness.NOT_STARTED if started_by > self.now else Readiness.UNREADY


def _conditions(node: Node) -> tuple[bool, int]:
    """Whether the node's own conditions and taints call it ready, and when one of them last changed."""
    found = False
    is_ready = True
    since = 0
    for condition in node.status.conditions:
        bad = _BAD.get(condition.type)
        if bad is None:
            continue
        found = found or condition.type == "Ready"
        is_ready = is_ready and condition.status not in bad
        since = max(since, _time(condition.last_transition_time))
    if any(taint.key in _UNREADY_TAINTS for taint in node.spec.taints):
        is_ready = False
    return (is_ready, since) if found else (False, 0)


def _missing_gpu(node: Node, label: str | None, resources: Sequence[str]) -> str:
    """The GPU label of a node that has no GPU to offer."""
    if label is None or label not in node.metadata.labels:
        return ""
    return "" if gpus_of(node, resources) is not None else label


def gpus_of(node: Node, resources: Sequence[str]) -> int | None:
    """The first kind of GPU that the node offers, of these, or None where it offers none."""
    for resource in resources:
        written = node.status.allocatable.get(resource)
        if written is not None and value(written) != 0:
            return value(written)
    return None


def _time(text: str | None) -> int:
    return nanoseconds(text) if text else 0


def cluster_is_healthy(nodes: Sequence[NodeState], flags: Flags) -> bool:
    """Few enough nodes are unready, those outside of the groups included."""
    unready = sum(node.readiness is Readiness.UNREADY for node in nodes)
    share = flags.max_total_unready_percentage / 100.0 * float(len(nodes))
    return not (unready > flags.ok_total_unready_count and float(unready) > share)


def groups_of(
    statuses: Sequence[GroupStatus],
    nodes: Sequence[NodeState],
    behaviour: AutoscalerBehaviour,
) -> tuple[Group, ...]:
    """In the cloud's order."""
    members: dict[str, list[NodeState]] = {status.name: [] for status in statuses}
    for node in nodes:
        if node.group is not None and node.group in members:
            members[node.group].append(node)
    return tuple(
        Group(status=status, nodes=tuple(mine), upcoming=_upcoming(status, mine, behaviour))
        for status in statuses
        for mine in (members[status.name],)
    )


def _upcoming(status: GroupStatus, nodes: Sequence[NodeState], behaviour: AutoscalerBehaviour) -> int:
    there = (Readiness.READY, Readiness.UNREADY, Readiness.SUSPENDED)
    missing = status.target - sum(node.readiness in there for node in nodes) - status.long_unregistered
    if missing <= 0:
        return 0
    if behaviour.upcoming_needs_scale_up and status.scale_up is not ScaleUp.IN_PROGRESS:
        return 0
    return missing
