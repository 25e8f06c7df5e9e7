"""The profiles of a configuration on a cluster that moves."""

from __future__ import annotations

from msgspec import Struct

from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.cycle import Cycle, Outcome
from kschedx.framework.interface import PostFilterResult
from kschedx.framework.runtime import Framework, request_options, seen_by
from kschedx.framework.schedule import schedule
from kschedx.releases import Release
from kschedx.snapshot.moving import MovingCluster
from kschedx.snapshot.snapshot import Snapshot


class Decision(Struct, frozen=True, kw_only=True):
    """What becomes of one pod: a Cycle without its trace."""

    outcome: Outcome
    message: str = ""
    best: tuple[int, ...] = ()
    """Rows of the nodes that share the highest total."""
    nominated: int | None = None
    """Row of the pod's nominated node, where it fits: kube-scheduler then looks at no other."""
    post_filter: PostFilterResult | None = None

    @classmethod
    def of(cls, cycle: Cycle) -> Decision:
        return cls(
            outcome=cycle.outcome,
            message=cycle.message,
            best=cycle.best,
            nominated=cycle.nominated,
            post_filter=cycle.post_filter,
        )

    @property
    def choice(self) -> tuple[int, ...]:
        """Rows of the nodes among which kube-scheduler picks."""
        return self.best if self.nominated is None else (self.nominated,)


class Run:
    """Where pods come and go. Whatever moves, moves through `cluster`."""

    def __init__(self, snapshot: Snapshot, config: SchedulerConfig, release: Release) -> None:
        self.config = config
        self.release = release
        self.cluster = MovingCluster(seen_by(release, snapshot))
        self.cluster.snapshot.nodes(request_options(release))
        self._frameworks: dict[str, Framework] = {}

    @property
    def snapshot(self) -> Snapshot:
        """The cluster as it stands; it changes with every move."""
        return self.cluster.snapshot

    def framework(self, profile: Profile) -> Framework:
        """A profile's plugins, which see the cluster as it stands."""
        known = self._frameworks.get(profile.scheduler_name)
        if known is None:
            known = Framework(profile, self.config, self.cluster.snapshot, self.release)
            self._frameworks[profile.scheduler_name] = known
        return known

    def cycle(self, row: int) -> Cycle:
        """Everything about a pod that waits, as `schedule` tells it of the cluster as it stands. Raises `ConfigError`
        where no profile has its schedulerName."""
        pod = self.cluster.pods[row]
        return schedule(self.framework(self.config.profile_for(pod.spec.scheduler_name)), pod)

    def decide(self, row: int) -> Decision:
        """The same in short."""
        return Decision.of(self.cycle(row))
