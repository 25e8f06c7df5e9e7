"""The interface of a scheduler, and the scheduler of the scheduling framework.

The other implementation is `legacy.scheduler`. `kschedx.schedulers` picks the one for a version; no other module does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Protocol, Self

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from kschedx.framework.config import Profile, SchedulerConfig, load_profiles
from kschedx.framework.cycle import Cycle
from kschedx.framework.interface import CycleState, QueueSortPlugin
from kschedx.framework.runtime import Framework
from kschedx.framework.schedule import schedule
from kschedx.framework.status import FilterOutcome, Status
from kschedx.kube.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.columns import cluster_rows
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.extenders import Ask


class FilteredNodes(Struct, frozen=True, kw_only=True):
    """The nodes that a pod fits, without the later phases."""

    status: Status  # of the whole PreFilter phase
    nodes: NodeTable  # those that PreFilter returned; none if it rejected the pod
    outcome: FilterOutcome


class Scheduler(Protocol):
    """A configured kube-scheduler of one version, on one cluster. Only `schedule` calls extenders, if it may."""

    @property
    def release(self) -> Release: ...

    @property
    def config(self) -> SchedulerConfig:
        """Its profiles, and the settings that they share."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as in this scheduler's cache, which may be less than what was loaded."""
        ...

    @property
    def nodes(self) -> NodeTable:
        """All nodes, with the requests of their pods as this scheduler counts them."""
        ...

    def on_cluster(self, snapshot: Snapshot) -> Self:
        """Return the same scheduler on a cluster as it was loaded."""
        ...

    def on(self, snapshot: Snapshot) -> Self:
        """Return the same scheduler on a changed copy of its own `snapshot`."""
        ...

    def without_unknown_plugins(self) -> Self:
        """Return the same scheduler, as if plugins that kschedx lacks decided nothing; the caller asserts that."""
        ...

    def framework(self, profile: Profile) -> Framework | None:
        """Return the profile's plugins on the snapshot; None for a scheduler from before the scheduling framework."""
        ...

    def filter(self, pod: Pod, profile: Profile | None = None) -> FilteredNodes:
        """Run PreFilter and Filter. `profile` defaults to the one that the pod names. Raises `ConfigError` if there is
        none of that name."""
        ...

    def schedule(self, pod: Pod, profile: Profile | None = None) -> Cycle:
        """Run the pod through every phase. `profile` as above."""
        ...


@cache
def _default_config(release: Release) -> SchedulerConfig:
    return load_profiles(None, release)


class FrameworkScheduler:
    """The scheduler of the scheduling framework: a `Framework` for each profile, created when a pod first needs it."""

    def __init__(self, config: SchedulerConfig, release: Release, snapshot: Snapshot, ask: Ask | None = None) -> None:
        self.config = config
        self._ask = ask
        self.release = release
        self._frameworks: dict[str, Framework] = {}
        # every profile sees the same cluster, so any framework has the columns for all
        first = self._frameworks[config.profiles[0].scheduler_name] = Framework(
            config.profiles[0], config, snapshot, release, ask
        )
        self.snapshot = first.snapshot
        self.nodes = first.nodes

    @classmethod
    def of(
        cls, config: Mapping[str, object] | None, release: Release, snapshot: Snapshot, ask: Ask | None = None
    ) -> Self:
        """Return a scheduler with a KubeSchedulerConfiguration, as parsed from YAML or JSON; None is the default.
        Raises `ConfigError`."""
        loaded = _default_config(release) if config is None else load_profiles(config, release)
        return cls(loaded, release, snapshot, ask)

    def without_unknown_plugins(self) -> Self:
        config = replace(self.config, without_unknown_plugins=True)
        return type(self)(config, self.release, self.snapshot, self._ask)

    def on_cluster(self, snapshot: Snapshot) -> Self:
        return type(self)(self.config, self.release, snapshot, self._ask)

    def on(self, snapshot: Snapshot) -> Self:
        return self.on_cluster(snapshot)

    def framework(self, profile: Profile) -> Framework:
        known_framework = self._frameworks.get(profile.scheduler_name)
        if known_framework is None:
            known_framework = Framework(profile, self.config, self.snapshot, self.release, self._ask)
            self._frameworks[profile.scheduler_name] = known_framework
        return known_framework

    def filter(self, pod: Pod, profile: Profile | None = None) -> FilteredNodes:
        return filter_nodes(self.framework(profile or self.config.profile_for(pod.spec.scheduler_name)), pod)

    def schedule(self, pod: Pod, profile: Profile | None = None) -> Cycle:
        return schedule(self.framework(profile or self.config.profile_for(pod.spec.scheduler_name)), pod)


def queue_order(scheduler: Scheduler) -> Callable[[Pod, str], tuple[object, ...]] | None:
    """Return the `sort_key` of the QueueSort plugin, which all profiles share. None if the order is by priority and
    time alone: for PrioritySort, for a plugin that kschedx does not have, and for schedulers from before the
    framework."""
    framework = scheduler.framework(scheduler.config.profiles[0])
    plugins = () if framework is None else framework.plugins("queueSort", QueueSortPlugin)
    return plugins[0].sort_key if plugins and not plugins[0].is_by_priority else None


def filter_nodes(framework: Framework, pod: Pod) -> FilteredNodes:
    """Run PreFilter and Filter on all nodes."""
    state = CycleState()
    outcome = framework.run_pre_filter(state, pod)
    if not outcome.status.is_success:
        nodes = framework.nodes.at(cluster_rows([]))
        return FilteredNodes(status=outcome.status, nodes=nodes, outcome=_NOTHING_FILTERED)
    nodes = framework.nodes if outcome.nodes is None else framework.nodes.only(outcome.nodes)
    return FilteredNodes(status=outcome.status, nodes=nodes, outcome=framework.passes_filters(state, pod, nodes))


_NOTHING_FILTERED = FilterOutcome(
    plugins=(), verdicts=(), codes=np.zeros(0, dtype=np.int64), plugin=np.zeros(0, dtype=np.int64)
)
