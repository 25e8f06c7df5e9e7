"""NodeVolumeLimits and the in-tree limits (pkg/scheduler/framework/plugins/nodevolumelimits)."""

from kschedx.plugins.node_volume_limits.in_tree import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from kschedx.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits"]
