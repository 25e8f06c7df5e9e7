"""The members of a pod group: scheduling.k8s.io, behind the gate GenericWorkload."""

from __future__ import annotations

from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.pods import PodTable


def members_of(pods: PodTable, namespace: str, name: str) -> BoolArray:
    """(row,) which pods name the group."""
    found = pods.specs.where(lambda s: s.scheduling_group is not None and s.scheduling_group.pod_group_name == name)
    found &= pods.namespaces.where(lambda space: space == namespace)
    return found
