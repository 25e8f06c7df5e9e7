"""NodeVolumeLimits and the in-tree limits (pkg/scheduler/framework/plugins/nodevolumelimits)."""

from kschedx.plugins.node_volume_limits.plugin import (
    AzureDiskLimits,
    CinderLimits,
    EBSLimits,
    GCEPDLimits,
    NodeVolumeLimits,
)

__all__ = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits"]
