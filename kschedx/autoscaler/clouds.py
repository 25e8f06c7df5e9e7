"""What depends on the cloud: the label that announces a GPU, and the labels that do not count when groups are compared.

Upstream: GPULabel of each cloud provider, processors/nodegroupset/*_nodegroups.go.
"""

from __future__ import annotations

from collections.abc import Mapping

GPU_LABELS: Mapping[str, str] = {
    "aws": "k8s.amazonaws.com/accelerator",
    "gce": "cloud.google.com/gke-accelerator",
    "azure": "kubernetes.azure.com/accelerator",
    "clusterapi": "cluster-api/accelerator",
}

IGNORED_LABELS = frozenset({
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone", "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
})  # fmt: skip
"""Of every cloud."""

IGNORED_LABELS_OF: Mapping[str, frozenset[str]] = {
    "aws": frozenset({
        "alpha.eksctl.io/instance-id", "alpha.eksctl.io/nodegroup-name", "eks.amazonaws.com/nodegroup",
        "k8s.amazonaws.com/eniConfig", "lifecycle", "topology.ebs.csi.aws.com/zone", "topology.k8s.aws/zone-id",
    }),
    "azure": frozenset({
        "agentpool", "kubernetes.azure.com/agentpool", "topology.disk.csi.azure.com/zone", "aksEngineVersion",
        "creationSource", "poolName", "resourceNameSuffix", "kubernetes.azure.com/node-image-version",
        "kubernetes.azure.com/consolidated-additional-properties",
    }),
    "gce": frozenset({"topology.gke.io/zone"}),
}  # fmt: skip

SAME_POOL_LABELS: Mapping[str, tuple[str, ...]] = {"azure": ("kubernetes.azure.com/agentpool", "agentpool")}
"""Nodes with the same value of one of these are similar whatever else they are."""


def gpu_label(cloud_provider: str) -> str | None:
    return GPU_LABELS.get(cloud_provider)
