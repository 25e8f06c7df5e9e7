"""About the pod as a whole."""

from __future__ import annotations

from typing import ClassVar

from kschedx.findings.facts import Facts


class SchedulingGated(Facts, frozen=True, kw_only=True):
    reason: ClassVar[str] = "scheduling-gated"
    gates: tuple[str, ...]


class NodesExcluded(Facts, frozen=True, kw_only=True):
    """PreFilter narrowed the nodes to some names (a DaemonSet's pod, say); `existing` of them are in the cluster."""

    reason: ClassVar[str] = "nodes-excluded"
    names: tuple[str, ...]
    existing: tuple[str, ...]


class PodGroupIncomplete(Facts, frozen=True, kw_only=True):
    """The pod's group does not exist, or has fewer pods than its gang needs (`pods` counts those in the snapshot)."""

    reason: ClassVar[str] = "pod-group-incomplete"
    group: str
    exists: bool
    pods: int
    min_count: int


PodFinding = SchedulingGated | NodesExcluded | PodGroupIncomplete
