"""What a pod means for the removal of its node: it moves, it goes with the node, or it keeps the node.

Upstream: simulator/drainability/rules, utils/drain/drain.go, core/scaledown/pdb.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import cached_property

from msgspec import Struct

from kschedx.api.annotations import DAEMON_SET_POD, MIRROR, SAFE_TO_EVICT, SAFE_TO_EVICT_LOCAL_VOLUMES
from kschedx.api.defaulting import GRACE_PERIOD
from kschedx.api.selectors import Selector, compile_selector
from kschedx.api.timestamps import nanoseconds
from kschedx.api.types import OwnerReference, PodSpec
from kschedx.autoscaler.scale_down.flags import ScaleDownFlags
from kschedx.errors import InputError
from kschedx.releases.autoscaler import AutoscalerBehaviour
from kschedx.snapshot.pods import PodTable
from kschedx.snapshot.snapshot import Snapshot

SECOND = 1_000_000_000
LONG_TERMINATING_AFTER = 30
"""Seconds. A pod still counts so long after its deletion time and its grace period."""
KUBE_SYSTEM = "kube-system"
MEMORY = "Memory"
_REPLICATED = frozenset({"ReplicationController", "Job", "ReplicaSet", "StatefulSet"})
_LISTED = {"ReplicationController": None, "Job": None, "ReplicaSet": None, "StatefulSet": "apps", "DaemonSet": "apps"}
"""Kinds of controllers that the autoscaler looks up, and the group where only one is meant."""
_WITH_REPLICAS = ("ReplicationController", "ReplicaSet")


class Fate(StrEnum):
    MOVES = "moves"
    DAEMON_SET = "daemonset"
    """It goes with the node."""
    SKIPPED = "skipped"
    """A mirror pod, or one that should have ended long ago."""
    COMPLETES = "completes"
    """The node waits for its end."""
    BLOCKS = "blocks"


class Blocker(StrEnum):
    """Why a pod keeps its node, under the autoscaler's names."""

    CONTROLLER_NOT_FOUND = "ControllerNotFound"
    MIN_REPLICAS_REACHED = "MinReplicasReached"
    NOT_REPLICATED = "NotReplicated"
    LOCAL_STORAGE_REQUESTED = "LocalStorageRequested"
    NOT_SAFE_TO_EVICT_ANNOTATION = "NotSafeToEvictAnnotation"
    UNMOVABLE_KUBE_SYSTEM_POD = "UnmovableKubeSystemPod"
    NOT_ENOUGH_PDB = "NotEnoughPdb"


MENDED_BY_ANNOTATION = frozenset(Blocker) - {
    Blocker.CONTROLLER_NOT_FOUND,
    Blocker.MIN_REPLICAS_REACHED,
    Blocker.NOT_ENOUGH_PDB,  # the autoscaler would try, and the API server refuse the eviction
}
"""What `safe-to-evict: true` on the pod overrides."""


class PodFate(Struct, frozen=True, kw_only=True):
    row: int
    pod: str
    """`namespace/name`."""
    fate: Fate
    blocker: Blocker | None = None
    controller: str = ""
    """`Kind name`; empty where it has none."""
    volumes: tuple[str, ...] = ()
    """Local volumes that would be lost."""
    budgets: tuple[str, ...] = ()
    """PodDisruptionBudgets that allow no disruption."""
    replicas: int | None = None
    """What its controller is to keep, where that is too few."""


class _Budget(Struct, frozen=True):
    name: str
    namespace: str
    selector: Selector
    allowed: int


class Fates:
    """Judges the pods of a snapshot."""

    def __init__(self, snapshot: Snapshot, flags: ScaleDownFlags, behaviour: AutoscalerBehaviour, now: int) -> None:
        self._snapshot = snapshot
        self._pods: PodTable = snapshot.pods
        self._flags = flags
        self._behaviour = behaviour
        self._now = now

    def of(self, row: int, *, is_safe: bool = False) -> PodFate:
        """In the order of the autoscaler's rules; the first that knows the pod decides. `is_safe`: as if annotated."""
        pods, spec = self._pods, self._pods.specs[row]
        written = pods.annotations[row]
        owner = controller_of(pods.owners[row])
        safe = "true" if is_safe else written.get(SAFE_TO_EVICT, "")
        if MIRROR in written or self.is_long_terminating(row):
            return self._fate(row, Fate.SKIPPED)
        if self._flags.skips_custom_controllers and owner is not None:
            lost = self._lost_controller(row, owner)
            if lost is not None:
                return lost
        if self.is_of_daemon_set(row):
            return self._fate(row, Fate.DAEMON_SET)
        if safe == "true" or _is_terminal(spec, pods.phases[row]):
            return self._fate(row, Fate.MOVES)
        if safe == "on-completion" and self._behaviour.pods_may_complete:
            return self._fate(row, Fate.COMPLETES)
        return next(self._blocked(row, owner, safe), None) or self._fate(row, Fate.MOVES)

    def _blocked(self, row: int, owner: OwnerReference | None, safe: str) -> Iterator[PodFate]:
        spec = self._pods.specs[row]
        is_known = owner is not None and (not self._flags.skips_custom_controllers or owner.kind in _REPLICATED)
        if not is_known:
            yield self._fate(row, Fate.BLOCKS, blocker=Blocker.NOT_REPLICATED)
        budgets = [one for one in self._budgets if self._covers(one, row)]
        if self._is_blocking_system_pod(row, budgets):
            if self._behaviour.system_pods_block_for_a_time and self._is_past_timeout(row):
                yield self._fate(row, Fate.MOVES)
            yield self._fate(row, Fate.BLOCKS, blocker=Blocker.UNMOVABLE_KUBE_SYSTEM_POD)
        if safe == "false":
            yield self._fate(row, Fate.BLOCKS, blocker=Blocker.NOT_SAFE_TO_EVICT_ANNOTATION)
        volumes = _local_volumes(spec, self._pods.annotations[row].get(SAFE_TO_EVICT_LOCAL_VOLUMES, ""))
        if volumes and self._flags.skips_local_storage:
            yield self._fate(row, Fate.BLOCKS, blocker=Blocker.LOCAL_STORAGE_REQUESTED, volumes=volumes)
        spent = tuple(f"{one.namespace}/{one.name}" for one in budgets if one.allowed < 1)
        if spent:
            yield self._fate(row, Fate.BLOCKS, blocker=Blocker.NOT_ENOUGH_PDB, budgets=spent)

    def _fate(
        self,
        row: int,
        fate: Fate,
        *,
        blocker: Blocker | None = None,
        volumes: tuple[str, ...] = (),
        budgets: tuple[str, ...] = (),
        replicas: int | None = None,
    ) -> PodFate:
        owner = controller_of(self._pods.owners[row])
        return PodFate(
            row=row,
            pod=self._pods.key(row),
            fate=fate,
            blocker=blocker,
            controller="" if owner is None else f"{owner.kind} {owner.name}",
            volumes=volumes,
            budgets=budgets,
            replicas=replicas,
        )

    # --- what the rules ask

    def is_of_daemon_set(self, row: int) -> bool:
        owner = controller_of(self._pods.owners[row])
        is_owned = owner is not None and owner.kind == "DaemonSet"
        return is_owned or self._pods.annotations[row].get(DAEMON_SET_POD) == "true"

    def is_long_terminating(self, row: int) -> bool:
        stamp = self._pods.deletion_timestamps[row]
        if not stamp:
            return False
        written = self._pods.specs[row].termination_grace_period_seconds
        grace_period = GRACE_PERIOD if written is None else written
        return nanoseconds(stamp) + (grace_period + LONG_TERMINATING_AFTER) * SECOND < self._now

    def _lost_controller(self, row: int, owner: OwnerReference) -> PodFate | None:
        """Its controller is gone, or has too few replicas. Of kinds that a snapshot has nothing of, nothing is said."""
        kind = "DaemonSet" if self.is_of_daemon_set(row) else owner.kind
        group = owner.api_version.rpartition("/")[0]
        if kind != owner.kind or kind not in _LISTED or _LISTED[kind] not in (None, group):
            return None
        if kind not in self._kinds:
            return None
        raw = self._snapshot.workloads.get((kind, self._pods.namespaces[row], owner.name))
        if raw is None:
            return self._fate(row, Fate.BLOCKS, blocker=Blocker.CONTROLLER_NOT_FOUND)
        if kind in _WITH_REPLICAS and self._flags.min_replica_count > 0:
            replicas = (json.loads(raw).get("spec") or {}).get("replicas")
            if isinstance(replicas, int) and replicas < self._flags.min_replica_count:
                return self._fate(row, Fate.BLOCKS, blocker=Blocker.MIN_REPLICAS_REACHED, replicas=replicas)
        return None

    @cached_property
    def _kinds(self) -> frozenset[str]:
        return frozenset(kind for kind, _, _ in self._snapshot.workloads)

    @cached_property
    def _budgets(self) -> tuple[_Budget, ...]:
        found = []
        for one in self._snapshot.disruption_budgets:
            with suppress(InputError):  # a selector that cannot be read covers nothing
                selector = compile_selector(one.spec.selector)
                found.append(
                    _Budget(one.metadata.name, one.metadata.namespace, selector, one.status.disruptions_allowed or 0)
                )
        return tuple(found)

    def _covers(self, budget: _Budget, row: int) -> bool:
        return budget.namespace == self._pods.namespaces[row] and budget.selector.matches(self._pods.labels[row])

    def _is_blocking_system_pod(self, row: int, budgets: Sequence[_Budget]) -> bool:
        return self._flags.skips_system_pods and self._pods.namespaces[row] == KUBE_SYSTEM and not budgets

    def _is_past_timeout(self, row: int) -> bool:
        created = self._pods.creation_timestamps[row]
        return bool(created) and nanoseconds(created or "") + int(self._flags.system_pod_timeout) < self._now


def controller_of(owners: Sequence[OwnerReference]) -> OwnerReference | None:
    return next((owner for owner in owners if owner.controller), None)


def _is_terminal(spec: PodSpec, phase: str) -> bool:
    """It has ended, or nothing starts it again."""
    if spec.restart_policy == "Never" and phase in ("Succeeded", "Failed"):
        return True
    return phase == "Failed" or (spec.restart_policy == "OnFailure" and phase == "Succeeded")


def _local_volumes(spec: PodSpec, safe: str) -> tuple[str, ...]:
    """Volumes on the node's disk that no annotation gives up."""
    given_up = frozenset(safe.split(","))
    return tuple(
        volume.name
        for volume in spec.volumes
        if (volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != MEMORY))
        and volume.name not in given_up
    )
