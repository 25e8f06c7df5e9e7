"""The pod groups of scheduling.k8s.io, behind the gate GenericWorkload, and their pods.

From 1.36 on, a group is a PodGroup. In 1.35 it is an entry of a Workload; here it is a PodGroup named `train/workers`,
or `train/workers/0` for pods with a replica key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kschedx.kube.types import GroupedWorkload, ObjectMeta, Pod, PodGroup, PodGroupSpec, PodSpec, PriorityClass
from kschedx.snapshot.columns import BoolArray
from kschedx.snapshot.pods import PodTable

PodGroups = Mapping[str, PodGroup]
"""`namespace/name` to pod group."""


def groups_by_key(groups: Iterable[PodGroup], workloads: Iterable[GroupedWorkload]) -> dict[str, PodGroup]:
    group_of = {f"{group.metadata.namespace}/{group.metadata.name}": group for group in groups}
    for workload in workloads:
        namespace = workload.metadata.namespace
        for entry in workload.spec.pod_groups:
            name = f"{workload.metadata.name}/{entry.name}"
            metadata = ObjectMeta(name=name, namespace=namespace)
            spec = PodGroupSpec(scheduling_policy=entry.policy)
            group_of[f"{namespace}/{name}"] = PodGroup(metadata=metadata, spec=spec)
    return group_of


def group_name(spec: PodSpec, *, of_workloads: bool) -> str | None:
    """Return the group that a pod names, in a PodGroup or Workload, or None."""
    if not of_workloads:
        return spec.scheduling_group.pod_group_name if spec.scheduling_group is not None else None
    named = spec.workload_ref
    if named is None:
        return None
    replica = f"/{named.pod_group_replica_key}" if named.pod_group_replica_key else ""
    return f"{named.name}/{named.pod_group}{replica}"


def find_group(groups: PodGroups, namespace: str, name: str) -> PodGroup | None:
    """Find the group with this name; all replicas of a Workload's group share it."""
    return groups.get(f"{namespace}/{'/'.join(name.split('/')[:2])}")


def members_of(pods: PodTable, namespace: str, name: str) -> BoolArray:
    """(row,) whether the pod names the group."""
    of_workloads = "/" in name
    mask = pods.specs.where(lambda spec: group_name(spec, of_workloads=of_workloads) == name)
    return mask & pods.namespaces.where(lambda space: space == namespace)


def group_of_pod(groups: PodGroups, pod: Pod) -> PodGroup | None:
    """Return the PodGroup that a pod names, if it exists."""
    name = group_name(pod.spec, of_workloads=False)
    return None if name is None else find_group(groups, pod.metadata.namespace, name)


def whole_group_of(groups: PodGroups, pods: PodTable, row: int) -> PodGroup | None:
    """Return the PodGroup of a pod if preempting the pod means preempting the whole group."""
    named = pods.specs[row].scheduling_group
    if named is None or named.pod_group_name is None:
        return None
    group = find_group(groups, pods.namespaces[row], named.pod_group_name)
    return group if group is not None and group.is_preempted_whole else None


def group_priority(group: PodGroup, classes: Mapping[str, PriorityClass]) -> int:
    """Return the group's priority: that of its class, or the cluster's default. Upstream: PodGroupPriority in
    pkg/scheduler/util/utils.go."""
    if group.spec.priority is not None:
        return group.spec.priority
    name = group.spec.priority_class_name
    of_class = (
        classes.get(name)
        if name
        else next((priority_class for priority_class in classes.values() if priority_class.global_default), None)
    )
    return 0 if of_class is None else of_class.value
