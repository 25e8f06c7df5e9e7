"""The scheduler of a release: the framework's, or one of those before it. No other module asks which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, Self, cast

from kschedx import satellites
from kschedx.framework.scheduler import FrameworkScheduler, Scheduler
from kschedx.releases import Release
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.config.advice import Advice
    from kschedx.framework.config.origins import Expanded
    from kschedx.framework.extenders import Ask

Configuration = Mapping[str, object]
"""A KubeSchedulerConfiguration, or for the releases before the framework a Policy, as parsed from YAML or JSON."""


class EarlierScheduler(Scheduler, Protocol):
    """A scheduler before the framework, which a satellite provides."""

    @classmethod
    def of(cls, config: Configuration | None, release: Release, snapshot: Snapshot) -> Self:
        """Raises `ConfigError`."""
        ...


def scheduler_of(
    config: Configuration | None, release: Release, snapshot: Snapshot | None = None, ask: Ask | None = None
) -> Scheduler:
    """A release with its configuration; None is the default one. `ConfigError` for what kube-scheduler would refuse.

    Without a snapshot it stands on an empty cluster, until `on_cluster` gives it another. Without `ask` no extender of
    the configuration is asked; those of a Policy never are.
    """
    cluster = Snapshot.from_objects(()) if snapshot is None else snapshot
    if release.has_framework:
        return FrameworkScheduler.of(config, release, cluster, ask)
    earlier = cast("type[EarlierScheduler]", satellites.provided(satellites.EARLIER_SCHEDULER))
    return earlier.of(config, release, cluster)


def expanded_configuration(config: Configuration | None, release: Release) -> Expanded | None:
    """A configuration with everything filled in, and where it came from; None for a Policy, whose lists say it all.

    Raises `ConfigError`.
    """
    from kschedx.framework.config.origins import expanded

    return expanded(config, release) if release.has_framework else None


def advice_on(config: Configuration | None, release: Release) -> tuple[Advice, ...]:
    """What is accepted in a configuration and regretted; nothing is known of Policies. Raises `ConfigError`."""
    from kschedx.framework.config.advice import advice

    if release.has_framework:
        return advice(config, release)
    scheduler_of(config, release)
    return ()
