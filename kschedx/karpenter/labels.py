"""The labels that Karpenter knows: those that a pool need not define, those that nobody may use, and their other names.

Upstream: pkg/apis/v1/labels.go of karpenter, karpenter-provider-aws and karpenter-provider-azure.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.api.karpenter import AWS, AZURE, CAPACITY_TYPE, GROUP, NODE_POOL, NodeClassReference

HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
WINDOWS_BUILD = "node.kubernetes.io/windows-build"

RESERVED = "reserved"
CAPACITY_TYPES = ("on-demand", RESERVED, "spot")

RESTRICTED = frozenset({HOSTNAME})
"""No text names them, and no requirement may."""

NORMALIZED: Mapping[str, str] = {
    "failure-domain.beta.kubernetes.io/zone": ZONE,
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "topology.ebs.csi.aws.com/zone": ZONE,
    "topology.disk.csi.azure.com/zone": ZONE,
}
"""Those of CSI drivers are their clouds' additions."""

_EVERYWHERE = frozenset({NODE_POOL, ZONE, REGION, INSTANCE_TYPE, ARCH, OS, CAPACITY_TYPE, WINDOWS_BUILD})

RESERVATION_ID = f"{AWS}/capacity-reservation-id"
RESERVATION_TYPE = f"{AWS}/capacity-reservation-type"
RESERVATION_INTERRUPTIBLE = f"{AWS}/capacity-reservation-interruptible"
FLEX = f"{AWS}/instance-capability-flex"

AWS_LABELS = frozenset(
    f"{AWS}/{name}"
    for name in (
        "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
        "instance-hypervisor", "instance-capability-flex", "instance-tenancy", "placement-group-id",
        "placement-group-partition",
        "instance-encryption-in-transit-supported", "instance-category", "instance-family", "instance-generation",
        "instance-size", "instance-local-nvme", "instance-cpu", "instance-cpu-manufacturer",
        "instance-cpu-sustained-clock-speed-mhz", "instance-memory", "instance-ebs-bandwidth",
        "instance-network-bandwidth", "instance-gpu-name", "instance-gpu-manufacturer", "instance-gpu-count",
        "instance-gpu-memory", "instance-accelerator-name", "instance-accelerator-manufacturer",
        "instance-accelerator-count",
    )
) | {"topology.k8s.aws/zone-id"}  # fmt: skip

OF_THE_NODE = frozenset({"topology.k8s.aws/zone-id", *(
    f"{AWS}/{name}"
    for name in (
        "capacity-reservation-id", "capacity-reservation-type", "capacity-reservation-interruptible",
        "instance-tenancy", "placement-group-id", "placement-group-partition",
    )
)})  # fmt: skip
"""What a node says of where and how it was bought, and another of its type may have otherwise."""

AZURE_LABELS = frozenset(
    f"{AZURE}/{name}"
    for name in (
        "sku-name", "sku-family", "sku-version", "sku-cpu", "sku-memory", "sku-gpu-name", "sku-gpu-manufacturer",
        "sku-gpu-count", "sku-networking-accelerated", "sku-storage-premium-capable",
        "sku-storage-ephemeralos-maxsize",
    )
)  # fmt: skip

_OF_CLOUD: Mapping[str, frozenset[str]] = {AWS: AWS_LABELS, AZURE: AZURE_LABELS}


def well_known(group: str) -> frozenset[str]:
    """What a new node may have without anybody saying so, by the group of its node class."""
    return _EVERYWHERE | _OF_CLOUD.get(group, frozenset())


def is_reserved(key: str, group: str) -> bool:
    """Of Karpenter's or the cloud's own names, and no well-known one: a pod may not ask for it."""
    if key in well_known(group):
        return False
    domain, slash, _ = key.partition("/")
    owners = {GROUP, group} if group in _OF_CLOUD else {GROUP}
    is_owned = bool(slash) and any(domain == owner or domain.endswith(f".{owner}") for owner in owners)
    return is_owned or key in RESTRICTED


def reserved_domains(group: str) -> tuple[str, ...]:
    return tuple(sorted({GROUP, group} if group in _OF_CLOUD else {GROUP}))


def class_label(reference: NodeClassReference) -> str:
    """The label of a node that names its node class."""
    return f"{reference.api_group}/{reference.kind.lower()}"
