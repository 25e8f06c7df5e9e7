"""The `Scheduler` of the releases before the framework, configured by a Policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from kschedx.api.types import Pod
from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.config.document import DEFAULT_SCHEDULER_NAME
from kschedx.framework.cycle import Cycle
from kschedx.framework.scheduler import Filtered, filtered
from kschedx.legacy import v1_5, v1_13
from kschedx.legacy.era import Era
from kschedx.legacy.policy import Policy, load_policy
from kschedx.legacy.runner import PredicateRunner
from kschedx.legacy.schedule import schedule_with_predicates
from kschedx.legacy.stored import stored_pod, stored_snapshot
from kschedx.releases import Release
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot

PROVIDERS = {"1.13": v1_13.provider, "1.5": v1_5.provider}


class PredicateScheduler:
    """Predicates and priorities, on the cluster as an API server of the time stored it."""

    def __init__(self, policy: Policy, era: Era, release: Release, snapshot: Snapshot) -> None:
        """The snapshot is the cluster as it was stored."""
        self.policy = policy
        self.era = era
        self.release = release
        self.config = SchedulerConfig(
            profiles=(_profile(policy, era),),
            percentage_of_nodes_to_score=era.percentage_of_nodes_to_score,
            parallelism=16,
            extenders=(),
        )
        self._runner = PredicateRunner(policy, era, self.config, snapshot, release)
        self.snapshot = self._runner.snapshot
        self.nodes: NodeTable = self._runner.nodes

    @classmethod
    def of(cls, config: Mapping[str, object] | None, release: Release, snapshot: Snapshot) -> Self:
        """With a Policy as parsed from YAML or JSON; None is the default provider. Raises `ConfigError`."""
        provider = PROVIDERS[release.version](release)
        policy = load_policy(config, provider)
        return cls(policy, provider, release, stored_snapshot(snapshot, provider.schema))

    def on_cluster(self, snapshot: Snapshot) -> Self:
        return self.on(stored_snapshot(snapshot, self.era.schema))

    def on(self, snapshot: Snapshot) -> Self:
        return type(self)(self.policy, self.era, self.release, snapshot)

    def without_unknown_plugins(self) -> Self:
        """Itself: a Policy names nothing that is unknown."""
        return self

    def framework(self, profile: Profile) -> None:
        return None

    def filter(self, pod: Pod, profile: Profile | None = None) -> Filtered:
        self._check(pod, profile)
        return filtered(self._runner, stored_pod(pod, self.era.schema))

    def schedule(self, pod: Pod, profile: Profile | None = None) -> Cycle:
        self._check(pod, profile)
        return schedule_with_predicates(self._runner, pod)

    def _check(self, pod: Pod, profile: Profile | None) -> None:
        """There is one profile, for the pods that name it."""
        if profile is None:
            self.config.profile_for(pod.spec.scheduler_name)


def _profile(policy: Policy, era: Era) -> Profile:
    """The configuration as the document shows it."""
    points = {
        "predicates": tuple(policy.predicates),
        "predicatesNeverRun": policy.never_run,
        "priorities": tuple(policy.priorities),
    }
    return Profile(
        scheduler_name=DEFAULT_SCHEDULER_NAME,
        percentage_of_nodes_to_score=era.percentage_of_nodes_to_score,
        points=points,
        enabled=points,
        weights=policy.weights,
        args={},
    )
