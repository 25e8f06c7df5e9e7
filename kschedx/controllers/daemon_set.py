"""The DaemonSet controller's rolling update: which old pods it deletes and where it creates new ones next.

One call is one sync of the controller. Upstream: pkg/controller/daemon/update.go. The controller goes through nodes in
random order; here it is the order of `nodes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from msgspec import Struct


class PodState(Enum):
    """A pod on a node, or waiting for it."""

    AVAILABLE = "available"
    UNAVAILABLE = "unavailable"


class NodePods(Struct, frozen=True, kw_only=True):
    """The pods of a DaemonSet on one node."""

    old: PodState | None = None
    new: PodState | None = None


class DaemonSetSpec(Struct, frozen=True, kw_only=True):
    """What the controller reads of a DaemonSet's update strategy, as numbers of nodes."""

    max_unavailable: int
    max_surge: int = 0
    is_on_delete: bool = False


class Step(Struct, frozen=True, kw_only=True):
    """Nodes whose old pod one sync deletes, and nodes on which it creates a new one."""

    delete: tuple[str, ...] = ()
    create: tuple[str, ...] = ()


def sync(spec: DaemonSetSpec, nodes: Mapping[str, NodePods]) -> Step:
    """What one sync changes; `nodes` are all that should have a pod."""
    missing = tuple(name for name, pods in nodes.items() if pods.old is None and pods.new is None)
    if missing or spec.is_on_delete:
        return Step(create=missing)
    return _with_surge(spec, nodes) if spec.max_surge else _in_place(spec, nodes)


def _in_place(spec: DaemonSetSpec, nodes: Mapping[str, NodePods]) -> Step:
    """Old pods that are not available go at once, others as long as few enough pods are away."""
    broken = [name for name, pods in nodes.items() if pods.old is PodState.UNAVAILABLE and pods.new is None]
    away = len(broken) + sum(pods.new is PodState.UNAVAILABLE for pods in nodes.values())
    candidates = [name for name, pods in nodes.items() if pods.old is PodState.AVAILABLE and pods.new is None]
    return Step(delete=(*broken, *candidates[: max(spec.max_unavailable - away, 0)]))


def _with_surge(spec: DaemonSetSpec, nodes: Mapping[str, NodePods]) -> Step:
    """An old pod that is ready stays until the new one beside it is available."""
    waiting = sum(pods.old is not None and pods.new is PodState.UNAVAILABLE for pods in nodes.values())
    replaced = [
        name
        for name, pods in nodes.items()
        if pods.new is not None and (pods.old is PodState.UNAVAILABLE or (pods.old and pods.new is PodState.AVAILABLE))
    ]
    broken = [name for name, pods in nodes.items() if pods.old is PodState.UNAVAILABLE and pods.new is None]
    candidates = [name for name, pods in nodes.items() if pods.old is PodState.AVAILABLE and pods.new is None]
    return Step(delete=tuple(replaced), create=(*broken, *candidates[: max(spec.max_surge - waiting, 0)]))
