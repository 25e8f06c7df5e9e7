"""What becomes of a pod that goes: its controller makes another one, or nobody does."""

from __future__ import annotations

from collections.abc import Iterable

from kschedx.api.types import OwnerReference


def is_controlled(owners: Iterable[OwnerReference]) -> bool:
    """A controller makes another one when it goes; a kubelet's own pod is nobody's."""
    return any(owner.controller and owner.kind != "Node" for owner in owners)


def is_of_daemon_set(owners: Iterable[OwnerReference]) -> bool:
    return any(owner.controller and owner.kind == "DaemonSet" for owner in owners)


def is_of_kubelet(owners: Iterable[OwnerReference]) -> bool:
    """A static pod, which the API server only mirrors."""
    return any(owner.kind == "Node" for owner in owners)


def stays_with_node(owners: Iterable[OwnerReference]) -> bool:
    """With another node there would be another one."""
    return is_of_daemon_set(owners) or is_of_kubelet(owners)
