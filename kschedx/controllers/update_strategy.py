"""How a workload's pods of one template are replaced by pods of another, according to its manifest.

Upstream: the defaults in pkg/apis/apps/v1/defaults.go; MaxUnavailable and MaxSurge in pkg/controller/deployment/util,
UnavailableCount and SurgeCount in pkg/controller/daemon/util.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct

from kschedx.controllers.workloads import Manifest
from kschedx.kube.decoding import map_at
from kschedx.kube.scalars import scaled

_QUARTER = "25%"


class DeploymentStrategy(Struct, frozen=True, kw_only=True):
    """The strategy of a Deployment: how many pods may exist above the replicas, and how many may be unavailable."""

    surge: int
    unavailable: int
    is_recreate: bool = False

    @classmethod
    def of(cls, manifest: Manifest, wanted: int) -> DeploymentStrategy:
        """Return the strategy of a manifest. `Recreate` is a rollout with all pods unavailable and no surge."""
        written = map_at(manifest, "spec", "strategy")
        if written.get("type") == "Recreate":
            return cls(surge=0, unavailable=wanted, is_recreate=True)
        given = map_at(written, "rollingUpdate")
        surge = _share(given.get("maxSurge"), wanted, _QUARTER, is_up=True)
        unavailable = _share(given.get("maxUnavailable"), wanted, _QUARTER, is_up=False)
        return cls(surge=surge, unavailable=min(unavailable, wanted) or int(not surge))


class StatefulSetUpdate(Struct, frozen=True, kw_only=True):
    """The strategy of a StatefulSet: from the highest ordinal down, each pod under its old name once the one before has
    a node."""

    partition: int
    """Pods with a lower ordinal keep their template."""
    unavailable: int
    is_ordered: bool
    """Whether nothing is replaced while a pod has no node (OrderedReady)."""


class DaemonSetUpdate(Struct, frozen=True, kw_only=True):
    """The strategy of a DaemonSet: on how many nodes at a time a pod is missing, or there is one more."""

    surge: int
    unavailable: int


class NoRolloutReason(StrEnum):
    """The reason why pods are not replaced."""

    ON_DELETE = "OnDelete"
    PAUSED = "paused"
    NO_CONTROLLER = "none"
    """No controller replaces the pods of this kind."""


class NoRollout(Struct, frozen=True, kw_only=True):
    """A strategy that replaces no pods: they keep their template, and only pods created later have the new one."""

    why: NoRolloutReason


UpdateStrategy: TypeAlias = "DeploymentStrategy | StatefulSetUpdate | DaemonSetUpdate | NoRollout"


def strategy_of(manifest: Manifest, wanted: int, before: Manifest | None) -> UpdateStrategy:
    """Return the strategy of a manifest whose template differs from the one `before`. `wanted` is the number of its
    pods, or of a DaemonSet's nodes."""
    spec = map_at(manifest, "spec")
    update = map_at(spec, "updateStrategy")
    rolling = map_at(update, "rollingUpdate")
    match manifest.get("kind"):
        case "Deployment":
            return (
                NoRollout(why=NoRolloutReason.PAUSED)
                if spec.get("paused") is True
                else DeploymentStrategy.of(manifest, wanted)
            )
        case "StatefulSet" | "DaemonSet" if update.get("type") == "OnDelete":
            return NoRollout(why=NoRolloutReason.ON_DELETE)
        case "StatefulSet":
            partition = rolling.get("partition")
            # API servers store maxUnavailable if the gate MaxUnavailableStatefulSet is on, and drop it otherwise
            stored = map_at(before or {}, "spec", "updateStrategy", "rollingUpdate").get("maxUnavailable")
            several = _share(rolling.get("maxUnavailable"), wanted, "1", is_up=True) if stored is not None else 1
            return StatefulSetUpdate(
                partition=partition if isinstance(partition, int) else 0,
                unavailable=max(several, 1),
                is_ordered=spec.get("podManagementPolicy") != "Parallel",
            )
        case "DaemonSet":
            surge = _share(rolling.get("maxSurge"), wanted, "0%", is_up=True)
            unavailable = _share(rolling.get("maxUnavailable", 0 if surge else 1), wanted, "0%", is_up=True)
            return DaemonSetUpdate(surge=surge, unavailable=unavailable or int(not surge))
        case _:
            return NoRollout(why=NoRolloutReason.NO_CONTROLLER)


def _share(value: object, whole: int, default: str, *, is_up: bool) -> int:
    """Return a number, or a percentage of the whole, rounded up if `is_up`; the default if the value is neither."""
    share = scaled(value, whole, is_up=is_up) if isinstance(value, int | str) else None
    if share is None:
        share = scaled(default, whole, is_up=is_up) or 0
    return max(share, 0)
