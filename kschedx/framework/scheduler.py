"""What a scheduler is to everything above it, and the scheduler of the scheduling framework.

The other implementation is `legacy.scheduler`. `kschedx.schedulers` picks the one that a version has; no other module
asks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


class Filtered(Struct, frozen=True, kw_only=True):
    """Which nodes a pod fits on, and nothing that comes after."""

    status: Status
    """What the PreFilter phase as a whole returned."""
    nodes: NodeTable
    """The nodes that PreFilter left in: none where it rejected the pod."""
    outcome: FilterOutcome
    """Filter's, on `nodes`."""


class Scheduler(Protocol):
    """A release of kube-scheduler, configured, on one cluster. Only `schedule` asks extenders, where it may."""

    @property
    def release(self) -> Release: ...

    @property
    def config(self) -> SchedulerConfig:
        """Its profiles, and what they share."""
        ...

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as this scheduler has it in its cache, which may be less than what was loaded."""
        ...

    @property
    def nodes(self) -> NodeTable:
        """All nodes, with what the pods on them request as this scheduler counts it."""
        ...

    def on_cluster(self, snapshot: Snapshot) -> Self:
        """The same scheduler on a cluster as it was loaded."""
        ...

    def on(self, snapshot: Snapshot) -> Self:
        """The same scheduler on a change of its own `snapshot`."""
        ...

    def without_unknown_plugins(self) -> Self:
        """The same scheduler, as if plugins that kschedx lacks decided nothing; the caller warrants that."""
        ...

    def framework(self, profile: Profile) -> Framework | None:
        """The profile's plugins on the snapshot; None for a scheduler that was before there were plugins."""
        ...

    def filter(self, pod: Pod, profile: Profile | None = None) -> Filtered:
        """PreFilter and Filter. `profile` is by default the one that the pod names; ConfigError where none has it."""
        ...

    def schedule(self, pod: Pod, profile: Profile | None = None) -> Cycle:
        """The pod through every phase. `profile` as above."""
        ...


class FrameworkScheduler:
    """The scheduling framework: a `Framework` for each profile, made when a pod asks for it."""

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
        """With a KubeSchedulerConfiguration as parsed from YAML or JSON; None is the default. Raises `ConfigError`."""
        return cls(load_profiles(config, release), release, snapshot, ask)

    def without_unknown_plugins(self) -> Self:
        config = replace(self.config, without_unknown_plugins=True)
        return type(self)(config, self.release, self.snapshot, self._ask)

    def on_cluster(self, snapshot: Snapshot) -> Self:
        return type(self)(self.config, self.release, snapshot, self._ask)

    def on(self, snapshot: Snapshot) -> Self:
        return self.on_cluster(snapshot)

    def framework(self, profile: Profile) -> Framework:
        found = self._frameworks.get(profile.scheduler_name)
        if found is None:
            found = Framework(profile, self.config, self.snapshot, self.release, self._ask)
            self._frameworks[profile.scheduler_name] = found
        return found

    def filter(self, pod: Pod, profile: Profile | None = None) -> Filtered:
        return filtered(self.framework(profile or self.config.profile_for(pod.spec.scheduler_name)), pod)

    def schedule(self, pod: Pod, profile: Profile | None = None) -> Cycle:
        return schedule(self.framework(profile or self.config.profile_for(pod.spec.scheduler_name)), pod)


def queue_order(scheduler: Scheduler) -> Callable[[Pod, str], tuple[object, ...]] | None:
    """The `sort_key` of the QueueSort plugin, which all profiles share; None where it is by priority and time alone: of
    PrioritySort, where kschedx does not have the plugin, and in the schedulers before there were plugins."""
    framework = scheduler.framework(scheduler.config.profiles[0])
    found = () if framework is None else framework.plugins("queueSort", QueueSortPlugin)
    return found[0].sort_key if found and not found[0].is_by_priority else None


def filtered(framework: Framework, pod: Pod) -> Filtered:
    """PreFilter and Filter on all nodes."""
    state = CycleState()
    found = framework.run_pre_filter(state, pod)
    if not found.status.is_success:
        nodes = framework.nodes.at(cluster_rows([]))
        return Filtered(status=found.status, nodes=nodes, outcome=NOTHING_FILTERED)
    nodes = framework.nodes if found.nodes is None else framework.nodes.only(found.nodes)
    return Filtered(status=found.status, nodes=nodes, outcome=framework.passes_filters(state, pod, nodes))


NOTHING_FILTERED = FilterOutcome(
    plugins=(), verdicts=(), codes=np.zeros(0, dtype=np.int64), plugin=np.zeros(0, dtype=np.int64)
)
