"""Where an API server keeps the kinds that scheduling reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A kind, and how its list is asked for."""

    kind: str
    plural: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)
    """In which an API server of any release may serve it, the one to ask for first at the front."""

    @property
    def name(self) -> str:
        """As RBAC and `kubectl get` name it: `poddisruptionbudgets.policy`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(self, version: str, namespace: str = "") -> str:
        """Of the list in the whole cluster, or in a namespace, where the kind is in namespaces."""
        api = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        inside = f"/namespaces/{namespace}" if namespace and self.kind not in CLUSTER_SCOPED else ""
        return f"{api}{inside}/{self.plural}"

    def query(self, namespace: str) -> dict[str, str]:
        """What the list is asked for with: of all namespaces, only the one that is meant."""
        return {"fieldSelector": f"metadata.name={namespace}"} if namespace and self.kind == "Namespace" else {}


_STORAGE = "storage.k8s.io"
_SCHEDULING = "scheduling.k8s.io"
_DEVICES = "resource.k8s.io"
_OF_DEVICES = ("v1", "v1beta2", "v1beta1")

CLUSTER_SCOPED = frozenset({
    "Node", "Namespace", "PriorityClass", "PersistentVolume", "StorageClass", "CSINode", "CSIDriver",
    "VolumeAttachment", "RuntimeClass", "DeviceClass", "ResourceSlice", "DeviceTaintRule",
})  # fmt: skip
"""The kinds that are in no namespace."""

RESOURCES = (
    Resource(kind="Pod", plural="pods"),
    Resource(kind="Node", plural="nodes"),
    Resource(kind="ReplicaSet", plural="replicasets", group="apps"),
    Resource(kind="Job", plural="jobs", group="batch"),
    Resource(kind="PersistentVolumeClaim", plural="persistentvolumeclaims"),
    Resource(kind="PersistentVolume", plural="persistentvolumes"),
    Resource(kind="VolumeAttachment", plural="volumeattachments", group=_STORAGE, versions=("v1", "v1beta1")),
    Resource(kind="CSINode", plural="csinodes", group=_STORAGE, versions=("v1", "v1beta1")),
    Resource(kind="Service", plural="services"),
    Resource(kind="Deployment", plural="deployments", group="apps"),
    Resource(kind="StatefulSet", plural="statefulsets", group="apps"),
    Resource(kind="DaemonSet", plural="daemonsets", group="apps"),
    Resource(kind="ReplicationController", plural="replicationcontrollers"),
    Resource(kind="CronJob", plural="cronjobs", group="batch", versions=("v1", "v1beta1")),
    Resource(kind="Namespace", plural="namespaces"),
    Resource(kind="LimitRange", plural="limitranges"),
    Resource(kind="PodDisruptionBudget", plural="poddisruptionbudgets", group="policy", versions=("v1", "v1beta1")),
    Resource(kind="PriorityClass", plural="priorityclasses", group=_SCHEDULING, versions=("v1", "v1beta1")),
    Resource(kind="PodGroup", plural="podgroups", group=_SCHEDULING, versions=("v1", "v1beta1", "v1alpha2")),
    Resource(kind="StorageClass", plural="storageclasses", group=_STORAGE, versions=("v1", "v1beta1")),
    Resource(kind="CSIDriver", plural="csidrivers", group=_STORAGE, versions=("v1", "v1beta1")),
    Resource(kind="CSIStorageCapacity", plural="csistoragecapacities", group=_STORAGE, versions=("v1", "v1beta1")),
    Resource(kind="RuntimeClass", plural="runtimeclasses", group="node.k8s.io", versions=("v1", "v1beta1")),
    Resource(kind="ResourceClaim", plural="resourceclaims", group=_DEVICES, versions=_OF_DEVICES),
    Resource(kind="ResourceSlice", plural="resourceslices", group=_DEVICES, versions=_OF_DEVICES),
    Resource(kind="DeviceClass", plural="deviceclasses", group=_DEVICES, versions=_OF_DEVICES),
    Resource(kind="ResourceClaimTemplate", plural="resourceclaimtemplates", group=_DEVICES, versions=_OF_DEVICES),
    Resource(kind="DeviceTaintRule", plural="devicetaintrules", group=_DEVICES, versions=("v1beta2", "v1alpha3")),
)
"""The longest lists first, so that they are not what everything waits for in the end."""

RESOURCE_OF = {resource.kind: resource for resource in RESOURCES}
