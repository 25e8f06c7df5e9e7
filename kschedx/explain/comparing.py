"""Two ways to run a scheduler, tried on the same pods of the same snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from kschedx.api.selectors import Selector
from kschedx.api.types import Pod
from kschedx.explain.as_if_new import as_if_new
from kschedx.explain.comparison import Difference, compare
from kschedx.explain.missing import require_for_decision
from kschedx.explain.story import Story
from kschedx.framework.config import Profile, SchedulerConfig, load_profiles
from kschedx.framework.cycle import Cycle
from kschedx.framework.registry import third_party_points
from kschedx.framework.runtime import Framework, request_options
from kschedx.framework.schedule import schedule
from kschedx.releases import Release, resolve
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.legacy.scheduler import PredicateScheduler

OF_KUBELET = "static pods, which a kubelet starts itself"
OF_OTHERS = "pods of other schedulers"


class Setup(Struct, frozen=True, kw_only=True):
    """One side of a comparison: a release, and the profiles of a configuration."""

    name: str
    config: Mapping[str, object] | None
    release: Release
    scheduler: SchedulerConfig

    @classmethod
    def of(
        cls,
        name: str,
        config: Mapping[str, object] | None,
        kube_version: str | None = None,
        feature_gates: Mapping[str, bool] | None = None,
    ) -> Setup:
        """Raises `ConfigError` for what kube-scheduler would refuse."""
        release = resolve(kube_version, feature_gates)
        if release.has_framework:
            scheduler = load_profiles(config, release, extra_plugins=third_party_points() if config else None)
        else:
            scheduler = _before_framework(config, release, Snapshot.from_objects(())).config
        return cls(name=name, config=config, release=release, scheduler=scheduler)

    def profile(self, scheduler_name: str) -> Profile | None:
        """The profile for a pod's `spec.schedulerName`.

        A configuration with a single profile stands for whatever the other side calls it: who compares two files wants
        to know what the pods of one would do under the other.
        """
        named = (profile for profile in self.scheduler.profiles if profile.scheduler_name == scheduler_name)
        only = self.scheduler.profiles[0] if len(self.scheduler.profiles) == 1 else None
        return next(named, only)

    @property
    def scheduler_names(self) -> frozenset[str]:
        return frozenset(profile.scheduler_name for profile in self.scheduler.profiles)


class Pair:
    """A snapshot and the two setups that are tried on it."""

    def __init__(self, snapshot: Snapshot, before: Setup, after: Setup) -> None:
        self.snapshot = snapshot
        self.before = before
        self.after = after

    def prepare(self) -> None:
        """Work out what all pods share, before processes are forked."""
        for runner in self._runners:
            runner.prepare()

    def knows(self, scheduler_name: str) -> bool:
        """Whether the pods of this scheduler are scheduled on either side."""
        names = self.before.scheduler_names | self.after.scheduler_names
        sides = (self.before.profile(scheduler_name), self.after.profile(scheduler_name))
        return scheduler_name in names and None not in sides

    def stories(self, pod: Pod, later: Pod | None = None) -> tuple[Story, Story]:
        """The pod as if it were scheduled now, on both sides. Raises `UndecidableError`.

        `later` is the pod for the second side, where that is not the same.
        """
        first, second = self._runners
        alone = as_if_new(self.snapshot, pod)
        later_alone = alone if later is None else as_if_new(self.snapshot, later)
        return first.story(pod, *alone), second.story(later or pod, *later_alone)

    def difference(self, pod: Pod) -> Difference | None:
        return compare(*self.stories(pod))

    @cached_property
    def _runners(self) -> tuple[_Runner, _Runner]:
        first, second = (
            (_Runner if setup.release.has_framework else _OldRunner)(setup, self.snapshot)
            for setup in (self.before, self.after)
        )
        return first, second

    # --- which pods

    def choose(
        self, *, namespace: str | None = None, labels: Selector | None = None, pending: bool, running: bool
    ) -> tuple[list[int], dict[str, int]]:
        """Rows of the pods that are asked for, and why others of them cannot be compared, with their number.

        With neither `pending` nor `running` it is both.
        """
        pods = self.snapshot.pods
        waits = np.zeros(len(pods), dtype=np.bool_)
        waits[list(pods.pending)] = True
        either = pending or running
        wanted = (waits & (pending or not either)) | ((pods.node >= 0) & (running or not either))
        if namespace is not None:
            wanted &= pods.namespaces.where(lambda name: name == namespace)
        if labels is not None:
            wanted &= pods.labels.where(labels.matches)
        of_kubelet = pods.owners.where(lambda owners: any(owner.kind == "Node" for owner in owners))
        of_others = ~pods.specs.where(lambda spec: self.knows(spec.scheduler_name)) & ~of_kubelet
        left_out = {
            why: count
            for why, mask in ((OF_KUBELET, of_kubelet), (OF_OTHERS, of_others))
            if (count := int(np.count_nonzero(wanted & mask)))
        }
        return np.flatnonzero(wanted & ~of_kubelet & ~of_others).tolist(), left_out


class _Runner:
    """One side on the snapshot."""

    def __init__(self, setup: Setup, snapshot: Snapshot) -> None:
        self._setup = setup
        self._snapshot = snapshot

    def prepare(self) -> None:
        self._snapshot.nodes(request_options(self._setup.release))
        pods = self._snapshot.pods
        if len(self._snapshot.cluster.nodes):
            pods.on_node(0)
        _ = pods.rows, pods.nominated, pods.priorities

    def story(self, pod: Pod, alone: Snapshot, target: Pod) -> Story:
        """`alone` is the snapshot without the pod, `target` the pod bound to no node."""
        profile = self._setup.profile(pod.spec.scheduler_name)
        assert profile is not None, "asked for a pod of another scheduler"
        framework = Framework(profile, self._setup.scheduler, alone, self._setup.release)
        return _story(schedule(framework, target))


class _OldRunner(_Runner):
    """A scheduler of predicates and priorities: it reads the cluster as it was stored in its time."""

    @cached_property
    def _base(self) -> PredicateScheduler:
        return _before_framework(self._setup.config, self._setup.release, self._snapshot)

    def prepare(self) -> None:
        super().prepare()
        self._base.snapshot.nodes(request_options(self._setup.release))

    def story(self, pod: Pod, alone: Snapshot, target: Pod) -> Story:
        from kschedx.legacy.schedule import schedule_with_predicates

        stored, _ = as_if_new(self._base.snapshot, pod)
        return _story(schedule_with_predicates(self._base.on(stored), target))


def _story(cycle: Cycle) -> Story:
    """Raises `UndecidableError` where it could have ended otherwise with a kind that may not be listed."""
    require_for_decision(cycle)
    return Story.of(cycle)


def _before_framework(config: Mapping[str, object] | None, release: Release, snapshot: Snapshot) -> PredicateScheduler:
    from kschedx.legacy.scheduler import PredicateScheduler  # few need it, and it is a scheduler of its own

    return PredicateScheduler.of(config, release, snapshot)
