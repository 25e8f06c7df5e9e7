"""Whether cluster-autoscaler removes a node, and everything that keeps it.

The autoscaler stops at the first reason; every one is told here, in its order. Upstream: core/scaledown/planner,
core/scaledown/eligibility, core/scaledown/unneeded, simulator/cluster.go, processors/nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cached_property

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.api.annotations import SCALE_DOWN_DISABLED
from kschedx.api.types import AUTOSCALER_STATUS, Node, Taint
from kschedx.autoscaler.clouds import gpu_label
from kschedx.autoscaler.cluster import Autoscaler, Options
from kschedx.autoscaler.groups import NodeState, cluster_is_healthy
from kschedx.autoscaler.scale_down.flags import ScaleDownFlags
from kschedx.autoscaler.scale_down.pods import MENDED_BY_ANNOTATION, SECOND, Fate, Fates, PodFate
from kschedx.autoscaler.scale_down.utilization import Utilization, UtilizationRule
from kschedx.autoscaler.status import GroupStatus
from kschedx.autoscaler.world import World
from kschedx.errors import UndecidableError
from kschedx.framework.duration import Duration
from kschedx.framework.runtime import request_options
from kschedx.framework.scheduler import Scheduler
from kschedx.releases.autoscaler import autoscaler_behaviour
from kschedx.snapshot.rows import ClusterRow
from kschedx.snapshot.snapshot import Snapshot

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
CANDIDATE = "DeletionCandidateOfClusterAutoscaler"
"""The taint of a node that is not needed; its value says since when, in seconds since 1970."""
DELETION_TAKES = 10 * 60 * SECOND
"""After that, a node that is marked to be deleted is looked at again."""


class Unremovable(StrEnum):
    """Why a node stays, under the autoscaler's names, in the order in which it asks."""

    SCALE_DOWN_DISABLED = "ScaleDownDisabled"
    """By the flag, for all nodes."""
    CLUSTER_UNHEALTHY = "ClusterUnhealthy"
    """So many nodes are unready that it does nothing at all."""
    NOT_AUTOSCALED = "NotAutoscaled"
    NODE_GROUP_MIN_SIZE_REACHED = "NodeGroupMinSizeReached"
    STARTING = "Starting"
    """It counts as a node that is about to come, and nobody asks about those."""
    CURRENTLY_BEING_DELETED = "CurrentlyBeingDeleted"
    SCALE_DOWN_DISABLED_ANNOTATION = "ScaleDownDisabledAnnotation"
    SCALE_DOWN_UNREADY_DISABLED = "ScaleDownUnreadyDisabled"
    UNEXPECTED_ERROR = "UnexpectedError"
    """It offers no cpu or no memory, or its devices cannot be counted."""
    NOT_UNDERUTILIZED = "NotUnderutilized"
    BLOCKED_BY_POD = "BlockedByPod"
    NO_PLACE_TO_MOVE_PODS = "NoPlaceToMovePods"
    NOT_UNNEEDED_LONG_ENOUGH = "NotUnneededLongEnough"
    NOT_UNREADY_LONG_ENOUGH = "NotUnreadyLongEnough"
    MINIMAL_RESOURCE_LIMIT_EXCEEDED = "MinimalResourceLimitExceeded"
    BLOCKED_BY_ON_COMPLETION_POD = "BlockedByOnCompletionPod"


class Stranded(Struct, frozen=True, kw_only=True):
    """A pod that finds no other node once those before it have found theirs."""

    pod: str
    refusals: Mapping[str, int]
    """What other nodes say: reason to their number."""


class Removal(Struct, frozen=True, kw_only=True):
    """One node, as scale-down sees it."""

    node: str
    group: GroupStatus | None
    reasons: tuple[Unremovable, ...]
    """Empty where the autoscaler removes the node; the first is its own word."""
    utilization: Utilization | None
    pods: tuple[PodFate, ...]
    places: Mapping[str, str]
    """Pods that move to the nodes that take them."""
    stranded: Stranded | None
    is_ready: bool
    unneeded_for: Duration | None
    """Since when it carries the autoscaler's mark; None where it does not."""
    needed: Duration
    """How long it has to be unneeded, or unready."""
    minimum: tuple[str, int, int] | None
    """A resource of which too little would be left, what would be left, and what has to be."""

    @property
    def is_removable(self) -> bool:
        return not self.reasons

    def of(self, fate: Fate) -> tuple[PodFate, ...]:
        return tuple(one for one in self.pods if one.fate is fate)


class ScaleDown:
    """Asks about nodes of one cluster."""

    def __init__(self, autoscaler: Autoscaler) -> None:
        self._autoscaler = autoscaler
        self._snapshot = autoscaler.snapshot
        self._behaviour = autoscaler_behaviour(autoscaler.release.version)
        self._loop = autoscaler.loop()
        self.flags = ScaleDownFlags.read(autoscaler.scale_down_flags)
        self._now = self._loop.state.now
        self._fates = Fates(self._snapshot, self.flags, self._behaviour, self._now)

    @classmethod
    def of(cls, snapshot: Snapshot, options: Options, scheduler: Scheduler) -> ScaleDown:
        """Raises `UndecidableError` for a cluster that has no autoscaler, or does not say so."""
        autoscaler = Autoscaler.of(snapshot, options, scheduler)
        if autoscaler is None:
            raise UndecidableError(f"no cluster-autoscaler is known here: there is no ConfigMap {AUTOSCALER_STATUS}")
        return cls(autoscaler)

    @property
    def autoscaler(self) -> Autoscaler:
        return self._autoscaler

    @cached_property
    def _utilization(self) -> UtilizationRule:
        counts = self._behaviour.devices_count or self.flags.counts_devices
        return UtilizationRule(
            pods=self._snapshot.pods,
            fates=self._fates,
            flags=self.flags,
            options=request_options(self._autoscaler.release),
            gpu_label=gpu_label(self._autoscaler.flags.cloud_provider),
            gpu_resources=self._behaviour.gpu_resources,
            devices=self._snapshot.devices if counts else None,
        )

    @cached_property
    def _settled(self) -> tuple[World, Mapping[ClusterRow, ClusterRow]]:
        return self._loop.settled()

    def about(self, name: str, *, safe: frozenset[int] = frozenset()) -> Removal:
        """`name` is a node of the cluster; the pods in the rows `safe` are annotated as safe to evict."""
        row = self._snapshot.cluster.index[name]
        state = self._loop.state.states[row]
        node = self._snapshot.cluster.nodes[row]
        rows = self._loop.state.rows_on(row)
        pods = tuple(self._fates.of(pod, is_safe=pod in safe) for pod in rows)
        places, stranded = self._moved(row, [one for one in pods if one.fate is Fate.MOVES])
        found = Removal(
            node=name,
            group=None if state.group is None else self._autoscaler.status.group(state.group),
            reasons=(),
            utilization=self._utilization.of(node, rows),
            pods=pods,
            places=places,
            stranded=stranded,
            is_ready=state.is_ready,
            unneeded_for=self._unneeded_for(node),
            needed=self.flags.unneeded_time if state.is_ready else self.flags.unready_time,
            minimum=self._minimum(node),
        )
        return replace(found, reasons=tuple(self._reasons(found, node, state)))

    def safe_to_evict(self, found: Removal) -> Removal | None:
        """The same node with every pod that an annotation makes safe to evict; None where that changes nothing."""
        rows = frozenset(one.row for one in found.of(Fate.BLOCKS) if one.blocker in MENDED_BY_ANNOTATION)
        return self.about(found.node, safe=rows) if rows else None

    def _reasons(self, found: Removal, node: Node, state: NodeState) -> Iterator[Unremovable]:
        if not self.flags.is_enabled:
            yield Unremovable.SCALE_DOWN_DISABLED
        if not cluster_is_healthy(self._loop.state.states, self._loop.state.flags):
            yield Unremovable.CLUSTER_UNHEALTHY
        if found.group is None:
            yield Unremovable.NOT_AUTOSCALED
        elif found.group.target <= found.group.min_size:
            yield Unremovable.NODE_GROUP_MIN_SIZE_REACHED
        if self._is_upcoming(state):
            yield Unremovable.STARTING
        if self._is_being_deleted(node):
            yield Unremovable.CURRENTLY_BEING_DELETED
        if node.metadata.annotations.get(SCALE_DOWN_DISABLED) == "true":
            yield Unremovable.SCALE_DOWN_DISABLED_ANNOTATION
        if not state.is_ready and not self.flags.unready_nodes_too:
            yield Unremovable.SCALE_DOWN_UNREADY_DISABLED
        if found.utilization is None:
            yield Unremovable.UNEXPECTED_ERROR
        elif self._is_used(found.utilization):
            yield Unremovable.NOT_UNDERUTILIZED
        if found.of(Fate.BLOCKS):
            yield Unremovable.BLOCKED_BY_POD
        if found.stranded is not None:
            yield Unremovable.NO_PLACE_TO_MOVE_PODS
        if found.unneeded_for is not None and found.needed > 0 and found.unneeded_for <= found.needed:
            is_ready = found.is_ready
            yield Unremovable.NOT_UNNEEDED_LONG_ENOUGH if is_ready else Unremovable.NOT_UNREADY_LONG_ENOUGH
        if found.minimum is not None:
            yield Unremovable.MINIMAL_RESOURCE_LIMIT_EXCEEDED
        if found.of(Fate.COMPLETES):
            yield Unremovable.BLOCKED_BY_ON_COMPLETION_POD

    def _is_used(self, found: Utilization) -> bool:
        if self._behaviour.nodes_at_threshold_go:
            return found.share > found.threshold
        return found.share >= found.threshold

    def _is_upcoming(self, state: NodeState) -> bool:
        group = self._loop.state.by_name.get(state.group or "")
        return group is not None and group.upcoming > 0 and state in group.not_started

    def _is_being_deleted(self, node: Node) -> bool:
        since = _marked(node, TO_BE_DELETED)
        return since is not None and self._now - since < DELETION_TAKES

    def _unneeded_for(self, node: Node) -> Duration | None:
        since = _marked(node, CANDIDATE)
        return None if since is None else Duration(max(self._now - since, 0))

    def _minimum(self, node: Node) -> tuple[str, int, int] | None:
        """The first resource of the whole cluster that would fall below its minimum."""
        cluster = self._snapshot.cluster
        for resource, least in self.flags.minimums.items():
            if resource not in cluster.resources.names:
                continue
            column = cluster.resources.names.index(resource)
            scale = 1000 if resource == "cpu" else 1
            total = int(cluster.allocatable[: cluster.count, column].sum()) // scale
            left = total - int(cluster.allocatable[cluster.index[node.name], column]) // scale
            if left < least:
                return resource, left, least
        return None

    # --- places

    def _moved(self, row: ClusterRow, moving: list[PodFate]) -> tuple[Mapping[str, str], Stranded | None]:
        """Each pod, one after the other, on the first other node that takes it; the first that finds none."""
        if not moving:
            return {}, None
        world, rows = self._settled
        places: dict[str, str] = {}
        with world.fork():
            world.last = ClusterRow(0)
            here = rows.get(row)
            if here is not None:
                self._empty(world, here)
            others = np.zeros(world.node_count, dtype=np.bool_)
            others[[int(one) for one in rows.values() if one != here]] = True
            for one in moving:
                place = world.find(one.row, others)
                if place is None:
                    return places, Stranded(pod=one.pod, refusals=world.refusals(one.row, others))
                world.place(one.row, place)
                places[one.pod] = world.node(place).name
        return places, None

    def _empty(self, world: World, row: ClusterRow) -> None:
        """The node as it is while it is drained: without pods, and closed; a domain only where it still counts."""
        world.leave(world.snapshot.pods.on_node(row))
        node = world.node(row)
        closed = Taint(key=TO_BE_DELETED, value=str(self._now // SECOND), effect="NoSchedule")
        labels = node.metadata.labels if self._behaviour.removed_nodes_stay_domains else {}
        world.replace_node(
            row,
            replace(
                node,
                metadata=replace(node.metadata, labels=labels),
                spec=replace(node.spec, taints=(*node.spec.taints, closed)),
            ),
        )


def _marked(node: Node, key: str) -> int | None:
    """Since when a node has the autoscaler's taint, in nanoseconds since 1970."""
    written = next((taint.value for taint in node.spec.taints if taint.key == key), None)
    return int(written) * SECOND if written is not None and written.isdecimal() else None
