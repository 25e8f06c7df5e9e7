"""Which API versions an API server of a Kubernetes version serves for the kinds of Kubernetes (the deprecation guide).

Beta versions that a server has but does not enable by default count as served.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.releases.dates import Minor, is_in_range

_OF_APPS = {"apps/v1": "", "apps/v1beta2": "..1.15"}
_DEPLOYMENT = {**_OF_APPS, "apps/v1beta1": "..1.15", "extensions/v1beta1": "..1.15"}
_V1_BETA_UNTIL_1_21 = "..1.21"
_DEVICES = {
    "resource.k8s.io/v1": "1.34..",
    "resource.k8s.io/v1beta2": "1.33..",
    "resource.k8s.io/v1beta1": "1.32..",
    "resource.k8s.io/v1alpha3": "1.31..1.33",
    "resource.k8s.io/v1alpha2": "1.27..1.30",
    "resource.k8s.io/v1alpha1": "1.26..1.26",
}
_DEVICE_KINDS = ("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass")
_CORE = (
    *("ConfigMap", "Endpoints", "LimitRange", "Namespace", "Node", "PersistentVolume", "PersistentVolumeClaim"),
    *("Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "Service", "ServiceAccount"),
)


def _since_1_22(group: str, *kinds: str, also: str = "") -> Mapping[str, Mapping[str, str]]:
    """Return the versions of kinds whose beta version 1.22 removed, and whose alpha version, `also`, 1.23 removed."""
    spans = {f"{group}/v1": "", f"{group}/v1beta1": _V1_BETA_UNTIL_1_21}
    return {kind: {**spans, **({f"{group}/{also}": "..1.22"} if also else {})} for kind in kinds}


_SERVED: Mapping[str, Mapping[str, str]] = {
    **{kind: {"v1": ""} for kind in _CORE},
    "Deployment": _DEPLOYMENT,
    "DaemonSet": {**_OF_APPS, "extensions/v1beta1": "..1.15"},
    "ReplicaSet": {**_OF_APPS, "extensions/v1beta1": "..1.15"},
    "StatefulSet": {**_OF_APPS, "apps/v1beta1": "..1.15"},
    "ControllerRevision": {**_OF_APPS, "apps/v1beta1": "..1.15"},
    "Job": {"batch/v1": ""},
    "CronJob": {"batch/v1": "1.21..", "batch/v1beta1": "..1.24", "batch/v2alpha1": "..1.20"},
    "HorizontalPodAutoscaler": {
        "autoscaling/v2": "1.23..",
        "autoscaling/v1": "",
        "autoscaling/v2beta2": "..1.25",
        "autoscaling/v2beta1": "..1.24",
    },
    "PodDisruptionBudget": {"policy/v1": "1.21..", "policy/v1beta1": "..1.24"},
    "PodSecurityPolicy": {"policy/v1beta1": "..1.24", "extensions/v1beta1": "..1.15"},
    "RuntimeClass": {"node.k8s.io/v1": "1.20..", "node.k8s.io/v1beta1": "..1.24", "node.k8s.io/v1alpha1": "..1.23"},
    "CSIStorageCapacity": {
        "storage.k8s.io/v1": "1.24..",
        "storage.k8s.io/v1beta1": "1.21..1.26",
        "storage.k8s.io/v1alpha1": "1.19..1.23",
    },
    "VolumeAttributesClass": {
        "storage.k8s.io/v1": "1.34..",
        "storage.k8s.io/v1beta1": "1.31..",
        "storage.k8s.io/v1alpha1": "1.29..1.34",
    },
    "EndpointSlice": {"discovery.k8s.io/v1": "1.21..", "discovery.k8s.io/v1beta1": "..1.24"},
    "Ingress": {
        "networking.k8s.io/v1": "1.19..",
        "networking.k8s.io/v1beta1": _V1_BETA_UNTIL_1_21,
        "extensions/v1beta1": _V1_BETA_UNTIL_1_21,
    },
    "NetworkPolicy": {"networking.k8s.io/v1": "", "extensions/v1beta1": "..1.15"},
    **dict.fromkeys(_DEVICE_KINDS, _DEVICES),
    **_since_1_22("scheduling.k8s.io", "PriorityClass", also="v1alpha1"),
    **_since_1_22("storage.k8s.io", "StorageClass", "CSIDriver", "CSINode"),
    **_since_1_22("storage.k8s.io", "VolumeAttachment", also="v1alpha1"),
    **_since_1_22("networking.k8s.io", "IngressClass"),
    **_since_1_22("coordination.k8s.io", "Lease"),
    **_since_1_22("apiextensions.k8s.io", "CustomResourceDefinition"),
    **_since_1_22("apiregistration.k8s.io", "APIService"),
    **_since_1_22("certificates.k8s.io", "CertificateSigningRequest"),
    **_since_1_22(
        "admissionregistration.k8s.io", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"
    ),
    **_since_1_22(
        "rbac.authorization.k8s.io", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding", also="v1alpha1"
    ),
}  # fmt: skip
"""Kinds to their API versions, the newest stable one first, with the range of Kubernetes versions that serve each."""


_OTHER_FIELDS: Mapping[str, tuple[str, ...]] = {
    "CertificateSigningRequest": ("/v1beta1",),
    "CustomResourceDefinition": ("/v1beta1",),
    "HorizontalPodAutoscaler": ("/v2beta1",),
    "Ingress": ("/v1beta1",),
    "MutatingWebhookConfiguration": ("/v1beta1",),
    "ValidatingWebhookConfiguration": ("/v1beta1",),
    **dict.fromkeys(_DEVICE_KINDS, ("/v1alpha1", "/v1alpha2", "/v1alpha3", "/v1beta1")),
}
"""Kinds to the versions whose objects the newer version does not accept as they are."""


def is_served(release: Minor, api_version: str, kind: str) -> bool:
    """Return whether an API server serves a kind in this API version. Kinds of other projects count as served."""
    known = _SERVED.get(kind, {})
    group = _group(api_version)
    if group not in map(_group, known):
        return True
    return api_version in known and is_in_range(release, known[api_version])


def served_version(release: Minor, kind: str) -> str:
    """Return the API version to use for a kind of Kubernetes; empty if none is known."""
    return next((version for version, served in _SERVED.get(kind, {}).items() if is_in_range(release, served)), "")


def has_other_fields(api_version: str, kind: str) -> bool:
    """Return whether an object of this API version has fields that its newer versions name or require otherwise."""
    return api_version.endswith(_OTHER_FIELDS.get(kind, ()))


def _group(api_version: str) -> str:
    return api_version.rpartition("/")[0]
