"""The scheduler configuration that the cluster-autoscaler judges pods with.

Upstream: utils/scheduler/scheduler.go, simulator/framework/handle.go.
"""

from __future__ import annotations

from collections.abc import Mapping

from kschedx.errors import ConfigError
from kschedx.framework.config import SchedulerConfig, load_profiles
from kschedx.releases import Release


def scheduling(config: Mapping[str, object] | None, release: Release) -> SchedulerConfig:
    """Its one profile is for every pod, whatever its schedulerName. Raises `ConfigError` where there are others."""
    made = load_profiles(config, release)
    if len(made.profiles) != 1:
        raise ConfigError(f"the cluster-autoscaler takes one profile, and the configuration has {len(made.profiles)}")
    return made
