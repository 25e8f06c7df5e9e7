"""The differences between versions of Karpenter.

Upstream: kubernetes-sigs/karpenter. 1.13 was tested on random clusters (tests/karpenter/README.md); 1.14 is read from
its code.
"""

from __future__ import annotations

from functools import lru_cache

from kschedx.releases.dates import DatedFacts, dated, minor, since

MEASURED = ("1.13",)


class KarpenterBehavior(DatedFacts):
    """The behavior of one version."""

    # --- provisioning (pkg/controllers/provisioning/scheduling, pkg/utils/pod)

    claims_of_pods_count: bool = since("1.14")
    """A pod with a ResourceClaim requests devices, even if none of its containers uses the claim."""
    allocates_devices: bool = since("1.14")
    """With --ignore-dra-requests=false, devices are allocated; before, claims are ignored."""
    daemons_depend_on_type: bool = since("1.14")
    """The DaemonSets on a new node depend on its instance type. A host port of a DaemonSet excludes the instance types
    on which the DaemonSet runs; before, it excludes the whole NodePool."""
    new_nodes_are_initialized: bool = since("1.14")  # the labels of new nodes mark them as registered and initialized

    knows_buffers: bool = since("1.14")  # CapacityBuffers, behind the feature gate of the same name

    # --- disruption (pkg/controllers/disruption)

    not_empty: str = dated(
        {
            "1.0": 'NodePool "{pool}" has non-empty consolidation disabled',
            "1.14": 'NodePool "{pool}" has consolidation policy WhenEmpty, but node is not empty',
        }
    )
    cheap_pods_leave_nodes_empty: bool = since("1.14")
    """A node is empty if evicting its pods costs nothing, because their deletion cost or priority is very low."""
    moves_are_balanced: bool = since("1.14")  # `consolidationPolicy: Balanced`


@lru_cache
def karpenter_behavior(version: str) -> KarpenterBehavior:
    return KarpenterBehavior(minor(version))
