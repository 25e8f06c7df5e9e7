"""What Karpenter does in some versions and not in others. Upstream: kubernetes-sigs/karpenter.

1.13 was run on random clusters (tests/karpenter/README.md); 1.14 is read from its code.
"""

from __future__ import annotations

from functools import lru_cache

from kschedx.releases.dates import DatedFacts, dated, minor, since

VERSIONS = ("1.13", "1.14")
MEASURED = ("1.13",)
FIRST_WITH_BALANCED = "1.14"


class KarpenterBehaviour(DatedFacts):
    """The claims that hold in one version."""

    # --- provisioning (pkg/controllers/provisioning/scheduling, pkg/utils/pod)

    claims_of_pods_count: bool = since("1.14")
    """A pod that names a ResourceClaim requests devices, even if none of its containers does."""
    allocates_devices: bool = since("1.14")
    """With --ignore-dra-requests=false; before, the claims of such pods are passed over."""
    daemons_depend_on_type: bool = since("1.14")
    """Which DaemonSets run on a new node depends on its instance type. A host port that one of them takes excludes the
    types on which it runs; before, it excludes the pool."""
    new_nodes_are_initialized: bool = since("1.14")
    """New nodes count as registered and initialized, by their labels."""

    knows_buffers: bool = since("1.14")
    """CapacityBuffers, with the feature gate of the same name."""

    # --- disruption (pkg/controllers/disruption)

    not_empty: str = dated(
        {
            "1.0": 'NodePool "{pool}" has non-empty consolidation disabled',
            "1.14": 'NodePool "{pool}" has consolidation policy WhenEmpty, but node is not empty',
        }
    )
    cheap_pods_leave_nodes_empty: bool = since("1.14")
    """A node is empty if evicting its pods costs nothing: their deletion cost or priority is very low."""
    moves_are_balanced: bool = since("1.14")
    """consolidationPolicy: Balanced."""


@lru_cache
def karpenter_behaviour(version: str) -> KarpenterBehaviour:
    return KarpenterBehaviour(minor(version))


def karpenter_title(version: str) -> str:
    """`1.14, as published and not measured`."""
    return version if version in MEASURED else f"{version}, as published and not measured"
