"""NodeVolumeLimits (pkg/scheduler/framework/plugins/nodevolumelimits)."""

from kschedx.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
