"""The Deployment controller: how many pods each ReplicaSet of a Deployment gets next.

Everything here is arithmetic on the sizes of ReplicaSets. One call is one sync of the controller; the caller creates,
deletes, and schedules pods in between. Upstream: pkg/controller/deployment (rolling.go, recreate.go, sync.go) and
pkg/controller/deployment/util.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from kschedx.kube.decoding import Manifest, map_at
from kschedx.kube.scalars import scale_percent

Sizes = Mapping[str, int]  # new number of pods by the name of the ReplicaSet; only ReplicaSets that change


class ReplicaSetSize(Struct, frozen=True, kw_only=True):
    name: str
    replicas: int
    available: int
    created: str = ""  # creationTimestamp; empty for a ReplicaSet that is created now, which is the newest

    @property
    def age_key(self) -> tuple[bool, str, str]:
        """The key that sorts the oldest first (ReplicaSetsByCreationTimestamp)."""
        return (not self.created, self.created, self.name)


_QUARTER = "25%"


class DeploymentStrategy(Struct, frozen=True, kw_only=True):
    """The fields of a Deployment that the controller reads: its replicas, how many pods may exist above them, and how
    many may be unavailable. Upstream: pkg/apis/apps/v1/defaults.go; MaxUnavailable and MaxSurge in
    pkg/controller/deployment/util."""

    replicas: int
    surge: int
    unavailable: int
    is_recreate: bool = False
    is_paused: bool = False

    @classmethod
    def of(cls, manifest: Manifest, wanted: int) -> DeploymentStrategy:
        """Return the strategy of a manifest. `Recreate` is a rollout with all pods unavailable and no surge."""
        written, is_paused = map_at(manifest, "spec", "strategy"), map_at(manifest, "spec").get("paused") is True
        if written.get("type") == "Recreate":
            return cls(replicas=wanted, surge=0, unavailable=wanted, is_recreate=True, is_paused=is_paused)
        given = map_at(written, "rollingUpdate")
        surge = _share(given.get("maxSurge"), wanted, _QUARTER, is_up=True)
        unavailable = min(_share(given.get("maxUnavailable"), wanted, _QUARTER, is_up=False), wanted) or int(not surge)
        return cls(replicas=wanted, surge=surge, unavailable=unavailable, is_paused=is_paused)

    @property
    def min_available(self) -> int:
        return self.replicas - min(self.unavailable, self.replicas)

    def __str__(self) -> str:
        return (
            "strategy Recreate" if self.is_recreate else f"maxSurge {self.surge:,}, maxUnavailable {self.unavailable:,}"
        )


def sync(deployment: DeploymentStrategy, new: ReplicaSetSize | None, old: Sequence[ReplicaSetSize]) -> Sizes:
    """Return what one sync of a rollout changes; empty if the rollout is complete or stalls.

    `new` is the ReplicaSet of the current template; a paused Deployment may have none.
    """
    if deployment.is_paused or new is None:
        return scale(deployment, new, old, deployment)
    if deployment.is_recreate:
        return _changes({set_size.name: 0 for set_size in old}, old) or _changes({new.name: deployment.replicas}, [new])
    return _scale_up_new(deployment, new, old) or _scale_down_old(deployment, new, old)


def scale(
    deployment: DeploymentStrategy,
    new: ReplicaSetSize | None,
    old: Sequence[ReplicaSetSize],
    before: DeploymentStrategy,
) -> Sizes:
    """Return what the controller changes when `replicas` changes: proportional scaling of all active ReplicaSets during
    a rollout. `before` is the Deployment when its ReplicaSets were last scaled."""
    every = [*old, *([new] if new is not None else [])]
    active = [set_size for set_size in every if set_size.replicas]
    if not every:
        return {}
    if len(active) <= 1:
        latest = active[0] if active else new or max(old, key=lambda set_size: set_size.age_key)
        return _changes({latest.name: deployment.replicas}, every)
    wanted = deployment.replicas
    if new is not None and before.replicas == wanted == new.replicas == new.available:
        return _changes({set_size.name: 0 for set_size in old}, old)
    if deployment.is_recreate:
        return {}
    most = wanted + deployment.surge if wanted else 0
    return _changes(_proportions(deployment, active, most, before.replicas + before.surge), active)


def _scale_up_new(deployment: DeploymentStrategy, new: ReplicaSetSize, old: Sequence[ReplicaSetSize]) -> Sizes:
    """reconcileNewReplicaSet, with NewRSNewReplicas."""
    if new.replicas >= deployment.replicas:
        return _changes({new.name: deployment.replicas}, [new])
    room = deployment.replicas + deployment.surge - _total([new, *old])
    more = min(max(room, 0), deployment.replicas - new.replicas)
    return _changes({new.name: new.replicas + more}, [new])


def _scale_down_old(deployment: DeploymentStrategy, new: ReplicaSetSize, old: Sequence[ReplicaSetSize]) -> Sizes:
    """reconcileOldReplicaSets: scale down pods that are not available first, then as many as availability allows."""
    most = _total([new, *old]) - deployment.min_available - (new.replicas - new.available)
    if most <= 0:
        return {}
    sizes = {size.name: size.replicas for size in old}
    oldest_first = sorted(old, key=lambda replica_set: replica_set.age_key)
    for set_size in oldest_first:
        unavailable = min(max(set_size.replicas - set_size.available, 0), most)
        sizes[set_size.name] -= unavailable
        most -= unavailable
    spare = sum(replica_set.available for replica_set in (new, *old)) - deployment.min_available
    for set_size in oldest_first:
        fewer = min(max(spare, 0), sizes[set_size.name])
        sizes[set_size.name] -= fewer
        spare -= fewer
    return _changes(sizes, old)


def _proportions(
    deployment: DeploymentStrategy, active: Sequence[ReplicaSetSize], most: int, most_before: int
) -> dict[str, int]:
    """Each ReplicaSet's share of the pods that are added or removed; the largest gets the remainder of rounding."""
    to_add = most - _total(active)
    newest_first = sorted(active, key=lambda replica_set: replica_set.age_key, reverse=to_add > 0)
    ordered = sorted(newest_first, key=lambda replica_set: -replica_set.replicas)
    sizes: dict[str, int] = {}
    added = 0
    for set_size in ordered:
        share = 0
        if to_add != added:
            fraction = _fraction(deployment, set_size, most_before)
            share = min(fraction, to_add - added) if to_add > 0 else max(fraction, to_add - added)
        sizes[set_size.name] = set_size.replicas + share
        added += share
    if to_add:
        sizes[ordered[0].name] = max(sizes[ordered[0].name] + to_add - added, 0)
    return sizes


def _fraction(deployment: DeploymentStrategy, replica_set_size: ReplicaSetSize, most_before: int) -> int:
    """getReplicaSetFraction: return how many pods the ReplicaSet gains if it keeps its share."""
    if not deployment.replicas:
        return -replica_set_size.replicas
    if not most_before:
        return 0
    size = replica_set_size.replicas * (deployment.replicas + deployment.surge) / most_before
    return int(size + 0.5) - replica_set_size.replicas


def _total(sets: Sequence[ReplicaSetSize]) -> int:
    return sum(set_size.replicas for set_size in sets)


def _changes(sizes: Sizes, known: Sequence[ReplicaSetSize]) -> Sizes:
    before = {set_size.name: set_size.replicas for set_size in known}
    return {name: size for name, size in sizes.items() if before[name] != size}


# How a workload's pods of one template are replaced by pods of another, according to its manifest.
# Upstream: UnavailableCount and SurgeCount in pkg/controller/daemon/util.


class StatefulSetUpdate(Struct, frozen=True, kw_only=True):
    """The strategy of a StatefulSet: from the highest ordinal down, each pod under its old name once the one before has
    a node."""

    partition: int  # pods with a lower ordinal keep their template
    unavailable: int

    def __str__(self) -> str:
        kept = f", partition {self.partition:,}" if self.partition else ""
        return f"from the highest ordinal, {self.unavailable:,} at a time{kept}"


class DaemonSetUpdate(Struct, frozen=True, kw_only=True):
    """The strategy of a DaemonSet: on how many nodes at a time a pod is missing, or there is one more."""

    surge: int
    unavailable: int

    def __str__(self) -> str:
        return f"maxSurge {self.surge:,}" if self.surge else f"maxUnavailable {self.unavailable:,}"


class NoRollout(Enum):
    """A strategy that replaces no pods: they keep their template, and only pods created later have the new one."""

    ON_DELETE = "OnDelete"
    PAUSED = "paused"
    NO_CONTROLLER = "none"  # no controller replaces the pods of this kind

    def __str__(self) -> str:
        if self is NoRollout.PAUSED:
            return "its rollout is paused: its pods keep the previous template"
        kept = "its pods keep the previous template until you delete them"
        return f"updateStrategy OnDelete: {kept}" if self is NoRollout.ON_DELETE else kept


UpdateStrategy: TypeAlias = "DeploymentStrategy | StatefulSetUpdate | DaemonSetUpdate | NoRollout"


def strategy_of(manifest: Manifest, wanted: int, before: Manifest | None) -> UpdateStrategy:
    """Return the strategy of a manifest whose template differs from the one `before`. `wanted` is the number of its
    pods, or of a DaemonSet's nodes."""
    spec = map_at(manifest, "spec")
    update = map_at(spec, "updateStrategy")
    rolling = map_at(update, "rollingUpdate")
    match manifest.get("kind"):
        case "Deployment":
            strategy = DeploymentStrategy.of(manifest, wanted)
            return NoRollout.PAUSED if strategy.is_paused else strategy
        case "StatefulSet" | "DaemonSet" if update.get("type") == "OnDelete":
            return NoRollout.ON_DELETE
        case "StatefulSet":
            partition = rolling.get("partition")
            # API servers store maxUnavailable if the gate MaxUnavailableStatefulSet is on, and drop it otherwise
            stored = map_at(before or {}, "spec", "updateStrategy", "rollingUpdate").get("maxUnavailable")
            several = _share(rolling.get("maxUnavailable"), wanted, "1", is_up=True) if stored is not None else 1
            return StatefulSetUpdate(
                partition=partition if isinstance(partition, int) else 0,
                unavailable=max(several, 1),
            )
        case "DaemonSet":
            surge = _share(rolling.get("maxSurge"), wanted, "0%", is_up=True)
            unavailable = _share(rolling.get("maxUnavailable", 0 if surge else 1), wanted, "0%", is_up=True)
            return DaemonSetUpdate(surge=surge, unavailable=unavailable or int(not surge))
        case _:
            return NoRollout.NO_CONTROLLER


def _share(value: object, whole: int, default: str, *, is_up: bool) -> int:
    """Return a number, or a percentage of the whole, rounded up if `is_up`; the default if the value is neither."""
    share = scale_percent(value, whole, is_up=is_up) if isinstance(value, int | str) else None
    if share is None:
        share = scale_percent(default, whole, is_up=is_up) or 0
    return max(share, 0)


def owner_of(manifest: Manifest) -> str:
    """Return the Deployment that controls a ReplicaSet, such as `deploy/web`; empty if no Deployment owns it."""
    owners = map_at(manifest, "metadata").get("ownerReferences")
    for item in owners if isinstance(owners, Sequence) else ():
        if isinstance(item, Mapping) and item.get("controller") is True and item.get("kind") == "Deployment":
            return f"deploy/{item.get('name')}"
    return ""
