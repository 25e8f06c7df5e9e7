"""Nodes that carry the labels of a hardware and do not offer the resource that its driver's plugin would offer."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.types import Node
from kschedx.findings import Finding, InsufficientResource
from kschedx.snapshot.cluster_nodes import ClusterNodes

VENDOR_LABELS: Mapping[str, tuple[str, ...]] = {
    "nvidia.com": ("nvidia.com/", "feature.node.kubernetes.io/pci-10de", "feature.node.kubernetes.io/pci-0302_10de"),
    "amd.com": ("amd.com/", "feature.node.kubernetes.io/pci-1002"),
    "gpu.intel.com": ("gpu.intel.com/", "intel.feature.node.kubernetes.io/gpu", "feature.node.kubernetes.io/pci-8086"),
    "habana.ai": ("habana.ai/", "feature.node.kubernetes.io/pci-1da3"),
    "aws.amazon.com": ("aws.amazon.com/neuron", "feature.node.kubernetes.io/pci-1d0f"),
}
"""Domain of an extended resource to how labels of its hardware begin: the vendor's, and node-feature-discovery's."""
ANY_GPU = ("cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator", "accelerator")
"""Labels that providers give to nodes with accelerators, whoever made them."""


class HardwareHint(Struct, frozen=True, kw_only=True):
    resource: str
    nodes: tuple[tuple[str, str], ...]
    """Node and the label that tells of the hardware, `key=value`."""


def hardware_hint(finding: Finding, cluster: ClusterNodes) -> HardwareHint | None:
    """None where no node has such labels, or where some node offers the resource. A node that offers another one of the
    same vendor runs its plugin, which knows no more than it offers."""
    if not isinstance(finding, InsufficientResource) or not finding.offered_nowhere or "/" not in finding.resource:
        return None
    domain = finding.resource.partition("/")[0]
    of_vendor = VENDOR_LABELS.get(domain, (f"{domain}/",))
    wanted = (finding.resource, *of_vendor, *(ANY_GPU if "gpu" in finding.resource else ()))
    keys = [key for prefix in wanted for key in sorted(cluster.label_keys) if key.startswith(prefix)]
    found: dict[str, str] = {}
    for key in keys:
        for node in cluster.nodes:
            value = node.metadata.labels.get(key)
            if value is not None and value != "false" and not _offers_of(node, domain):
                found.setdefault(node.name, f"{key}={value}")
    return HardwareHint(resource=finding.resource, nodes=tuple(found.items())) if found else None


def _offers_of(node: Node, domain: str) -> bool:
    amounts = node.status.allocatable
    return any(name.startswith(f"{domain}/") and str(amount) != "0" for name, amount in amounts.items())
