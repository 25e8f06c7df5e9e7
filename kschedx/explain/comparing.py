"""Two ways to run a scheduler, tried on the same pods of the same snapshot."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from kschedx.api.types import Pod
from kschedx.explain.comparison import Difference, compare
from kschedx.explain.run import as_if_new
from kschedx.explain.story import Story
from kschedx.framework.config import Profile, SchedulerConfig, load_profiles
from kschedx.framework.registry import third_party_points
from kschedx.framework.runtime import Framework, request_options
from kschedx.framework.schedule import schedule
from kschedx.releases import Release, resolve
from kschedx.snapshot.snapshot import Snapshot


class Setup(Struct, frozen=True, kw_only=True):
    """One side of a comparison: a release, and the profiles of a configuration."""

    name: str
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
        extra = third_party_points() if config else None
        return cls(name=name, release=release, scheduler=load_profiles(config, release, extra_plugins=extra))

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


class Pair(Struct, frozen=True, kw_only=True):
    """A snapshot and the two setups that are tried on it."""

    snapshot: Snapshot
    before: Setup
    after: Setup

    def prepare(self) -> None:
        """Work out what all pods share, before processes are forked."""
        for setup in (self.before, self.after):
            self.snapshot.nodes(request_options(setup.release))
        pods = self.snapshot.pods
        if len(pods):
            pods.on_node(0)
        _ = pods.rows, pods.nominated, pods.priorities

    def knows(self, scheduler_name: str) -> bool:
        """Whether the pods of this scheduler are scheduled on either side."""
        names = self.before.scheduler_names | self.after.scheduler_names
        return scheduler_name in names and None not in (
            self.before.profile(scheduler_name),
            self.after.profile(scheduler_name),
        )

    def stories(self, pod: Pod, later: Pod | None = None) -> tuple[Story, Story]:
        """The pod as if it were scheduled now, on both sides. Raises `UndecidableError`.

        `later` is the pod for the second side, where that is not the same.
        """
        snapshot, target = as_if_new(self.snapshot, pod)
        first = _story(snapshot, target, self.before)
        if later is not None and later is not pod:
            snapshot, target = as_if_new(self.snapshot, later)
        return first, _story(snapshot, target, self.after)

    def difference(self, pod: Pod) -> Difference | None:
        return compare(*self.stories(pod))


def _story(snapshot: Snapshot, pod: Pod, setup: Setup) -> Story:
    profile = setup.profile(pod.spec.scheduler_name)
    assert profile is not None, "asked for a pod of another scheduler"
    return Story.of(schedule(Framework(profile, setup.scheduler, snapshot, setup.release), pod))
