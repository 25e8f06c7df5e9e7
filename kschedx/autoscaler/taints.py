"""Taints that a template loses, and those that make a node count as not yet started.

Upstream: utils/taints/taints.go.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from kschedx.api.types import Taint
from kschedx.autoscaler.flags import Flags
from kschedx.releases.autoscaler import AutoscalerBehaviour

TO_BE_DELETED = "ToBeDeletedByClusterAutoscaler"
DELETION_CANDIDATE = "DeletionCandidateOfClusterAutoscaler"

IGNORE_PREFIX = "ignore-taint.cluster-autoscaler.kubernetes.io/"
STARTUP_PREFIX = "startup-taint.cluster-autoscaler.kubernetes.io/"
STATUS_PREFIX = "status-taint.cluster-autoscaler.kubernetes.io/"

_DROPPED = frozenset({
    TO_BE_DELETED, DELETION_CANDIDATE,
    "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable",
    "node.kubernetes.io/memory-pressure", "node.kubernetes.io/disk-pressure",
    "node.kubernetes.io/network-unavailable", "node.kubernetes.io/pid-pressure",
    "node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
    "cloud.google.com/impending-node-termination", "NodeWithImpairedVolumes",
})  # fmt: skip
"""The autoscaler's own, and those that stand for a passing condition."""


class TaintRules(Struct, frozen=True, kw_only=True):
    """Which taints are passing, by the flags."""

    startup: frozenset[str]
    startup_prefixes: tuple[str, ...]
    status: frozenset[str]
    status_prefixes: tuple[str, ...]

    @classmethod
    def of(cls, flags: Flags, behaviour: AutoscalerBehaviour) -> TaintRules:
        named = behaviour.startup_taints_are_named
        return cls(
            startup=frozenset(flags.startup_taints),
            startup_prefixes=(IGNORE_PREFIX, *((STARTUP_PREFIX,) if named else ()), *flags.startup_taint_prefixes),
            status=frozenset(flags.status_taints),
            status_prefixes=(STATUS_PREFIX,) if named else (),
        )

    def is_startup(self, key: str) -> bool:
        """A node with this taint has not started yet."""
        return key in self.startup or key.startswith(self.startup_prefixes)

    def lasting(self, taints: Iterable[Taint]) -> tuple[Taint, ...]:
        """Those that a new node of the group will have."""
        return tuple(taint for taint in taints if not self._is_passing(taint.key))

    def _is_passing(self, key: str) -> bool:
        return key in _DROPPED or self.is_startup(key) or key in self.status or key.startswith(self.status_prefixes)
