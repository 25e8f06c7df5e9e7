"""VolumeBinding (pkg/scheduler/framework/plugins/volumebinding)."""

from kschedx.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
