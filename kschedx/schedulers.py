"""The scheduler of a version: the framework's, or one of those before it. No other module distinguishes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self, cast

from kschedx import satellites
from kschedx.framework.scheduler import FrameworkScheduler, Scheduler
from kschedx.releases import Release
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.config.advice import Advice
    from kschedx.framework.config.origins import ExpandedConfig
    from kschedx.framework.extenders import Ask

_Configuration = Mapping[str, object]
"""A KubeSchedulerConfiguration, or a Policy for the versions before the framework, as parsed from YAML or JSON."""


class _EarlierScheduler(Scheduler, Protocol):
    """A scheduler before the framework, which a satellite provides."""

    @classmethod
    def of(cls, config: _Configuration | None, release: Release, snapshot: Snapshot) -> Self:
        """Return the scheduler of a version for a cluster. Raises `ConfigError`."""
        ...


def scheduler_of(
    config: _Configuration | None, release: Release, snapshot: Snapshot | None = None, ask: Ask | None = None
) -> Scheduler:
    """Return the scheduler of a version with its configuration; None is the default one. Raises `ConfigError` if
    kube-scheduler would refuse it.

    Without a snapshot, the cluster is empty, until `on_cluster` sets another. Without `ask`, no extender of the
    configuration is called; those of a Policy never are.
    """
    cluster = Snapshot.from_objects(()) if snapshot is None else snapshot
    if release.has_framework:
        return FrameworkScheduler.of(config, release, cluster, ask)
    earlier = cast("type[_EarlierScheduler]", satellites.provider(satellites.EARLIER_SCHEDULER))
    return earlier.of(config, release, cluster)


def expanded_configuration(config: _Configuration | None, release: Release) -> ExpandedConfig | None:
    """Return a configuration with all fields set, and their origins; None for a Policy, which lists everything itself.

    Raises `ConfigError`.
    """
    from kschedx.framework.config.origins import expand_config

    return expand_config(config, release) if release.has_framework else None


def advice_on(config: _Configuration | None, release: Release) -> tuple[Advice, ...]:
    """Advice on accepted but unfavorable settings of a configuration; Policies have none. Raises `ConfigError`."""
    from kschedx.framework.config.advice import advice

    if release.has_framework:
        return advice(config, release)
    scheduler_of(config, release)
    return ()
