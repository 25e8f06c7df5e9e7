"""Which kinds a snapshot reads, which it knows and leaves out, and which do not exist."""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.errors import InputError, Place, nearest

GROUPS: Mapping[str, str] = {
    "Pod": "", "Node": "", "Namespace": "", "Service": "", "ReplicationController": "",
    "ReplicaSet": "apps", "StatefulSet": "apps", "Deployment": "apps", "DaemonSet": "apps", "Job": "batch",
    "CronJob": "batch", "PodDisruptionBudget": "policy", "PriorityClass": "scheduling.k8s.io",
    "PodGroup": "scheduling.k8s.io",
    "DeviceClass": "resource.k8s.io", "ResourceClaim": "resource.k8s.io", "ResourceSlice": "resource.k8s.io",
    "DeviceTaintRule": "resource.k8s.io", "ResourceClaimTemplate": "resource.k8s.io",
    "PersistentVolume": "", "PersistentVolumeClaim": "", "StorageClass": "storage.k8s.io", "CSINode": "storage.k8s.io",
    "CSIDriver": "storage.k8s.io", "CSIStorageCapacity": "storage.k8s.io", "VolumeAttachment": "storage.k8s.io",
    "LimitRange": "", "RuntimeClass": "node.k8s.io",
}  # fmt: skip
"""The kinds that are read, with their API group; the same kind of another group is somebody else's."""

WORKLOADS = frozenset(
    {"ReplicationController", "ReplicaSet", "StatefulSet", "Deployment", "DaemonSet", "Job", "CronJob"}
)

CLUSTER_SCOPED = frozenset({
    "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver", "VolumeAttachment",
    "DeviceClass", "ResourceSlice", "DeviceTaintRule", "RuntimeClass",
})  # fmt: skip

_NOT_READ: Mapping[str, frozenset[str]] = {
    "": frozenset({
        "Binding", "ComponentStatus", "ConfigMap", "Endpoints", "Event", "PodTemplate", "ResourceQuota", "Secret",
        "ServiceAccount",
    }),
    "apps": frozenset({"ControllerRevision"}),
    "batch": frozenset(),
    "policy": frozenset({"Eviction", "PodSecurityPolicy"}),
}  # fmt: skip
"""The other kinds of the groups that are Kubernetes' own and change hardly ever; scheduling reads none of them."""


def refuse_unknown(kind: str, group: str) -> None:
    """Raise `InputError` for a kind that a group of Kubernetes' own does not have; other groups may have any."""
    if group not in _NOT_READ or GROUPS.get(kind) == group or kind in _NOT_READ[group]:
        return
    named = f"apiVersion {group}/v1" if group else "apiVersion v1"
    if kind in GROUPS:
        hint = f"{kind} is of the group {GROUPS[kind]}" if GROUPS[kind] else f"{kind} is of apiVersion v1"
    else:
        hint = nearest(kind, [known for known, own in GROUPS.items() if own == group])
    raise InputError(f'there is no "{kind}" in {named}', place=Place(field="kind"), hint=hint)
