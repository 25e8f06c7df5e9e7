"""One loop of the descheduler over a cluster.

Upstream: pkg/descheduler/descheduler.go, pkg/framework/profile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import assert_never

from msgspec import Struct

from kschedx.descheduler import arguments, spreading, utilization, violations
from kschedx.descheduler.cluster import Cluster, Metrics, PodFacts, nodes_for
from kschedx.descheduler.evictor import (
    DefaultEvictor,
    Evictions,
    EvictorHandle,
    EvictorVerdict,
    PassedOver,
    RequestedEviction,
)
from kschedx.descheduler.policy import Policy, PolicyPlugin
from kschedx.descheduler.utilization import Classification, UsageError
from kschedx.kube.types import Node
from kschedx.progress import Phase, report_progress

_SKIPPED = "Skipping descheduling cycle: requires >=2 nodes"


class FailedPlugin(Struct, frozen=True, kw_only=True):
    profile: str
    plugin: str
    error: str


class DescheduleLoop(Struct, frozen=True, kw_only=True):
    evictions: tuple[RequestedEviction, ...] = ()  # in the order of the requests, including refused ones
    per_node: Mapping[str, int] = {}
    total: int = 0
    verdicts: Mapping[str, Mapping[str, EvictorVerdict]] = {}
    """Pod to profile to the evictor's verdict before anything is evicted."""
    classifications: tuple[Classification, ...] = ()
    said: tuple[PassedOver, ...] = ()
    errors: tuple[FailedPlugin, ...] = ()
    skipped: str = ""

    @property
    def evicted(self) -> tuple[RequestedEviction, ...]:
        return tuple(eviction for eviction in self.evictions if not eviction.error)

    @property
    def refused(self) -> tuple[RequestedEviction, ...]:
        return tuple(eviction for eviction in self.evictions if eviction.error)


_SHARES = 1000  # units of progress for each part of a loop


def run_loop(
    cluster: Cluster, policy: Policy, metrics: Metrics, now: int, *, judges: bool = True, title: str = ""
) -> DescheduleLoop:
    """Run every plugin of every profile once, and change `cluster` accordingly.

    `now` is in nanoseconds since 1970. `judges`: every pod gets its verdicts, whether or not a plugin considers it.
    `title` names the loop in the progress.
    """
    loop = _Run(cluster, policy, metrics, now, title)
    verdicts: dict[str, dict[str, EvictorVerdict]] = {}
    for number, pod in enumerate(cluster.pods if judges else ()):
        loop.see(number / len(cluster.pods))
        verdicts[pod.key] = {name: evictor.verdict(pod) for name, evictor in loop.evictors}
    nodes = nodes_for(cluster, policy.node_selector)
    if len(nodes) < 2:
        return DescheduleLoop(verdicts=verdicts, skipped=_SKIPPED)
    loop.run(nodes)
    return DescheduleLoop(
        evictions=tuple(loop.evictions.requested),
        per_node=dict(loop.evictions.per_node),
        total=loop.evictions.total,
        verdicts=verdicts,
        classifications=tuple(loop.classifications),
        said=tuple(dict.fromkeys(loop.said)),
        errors=tuple(loop.errors),
    )


class _Run:
    def __init__(self, cluster: Cluster, policy: Policy, metrics: Metrics, now: int, title: str) -> None:
        self._cluster = cluster
        self._policy = policy
        self._metrics = metrics
        self._now = now
        self.evictions = Evictions(policy, cluster)
        self.evictors = [
            (profile.name, DefaultEvictor(profile, cluster, now, self._record_passed_over))
            for profile in policy.profiles
        ]
        self.classifications: list[Classification] = []
        self.said: list[PassedOver] = []
        self.errors: list[FailedPlugin] = []
        self._running = ("", "")
        self._title = title
        self._steps = list(self._sequence())
        self._done = 0

    def see(self, share: float) -> None:
        """Report the completed share of the current part: the verdicts before the plugins, or one of the plugins."""
        parts = 1 + len(self._steps)
        report_progress(Phase.DESCHEDULING, int(_SHARES * (self._done + share)), _SHARES * parts, of=self._title)

    def _record_passed_over(self, pod: PodFacts, message: str) -> None:
        profile, plugin = self._running
        self.said.append(PassedOver(profile=profile, plugin=plugin, pod=pod.key, message=message))

    def _sequence(self) -> Iterator[tuple[str, DefaultEvictor, PolicyPlugin]]:
        """Yield the deschedule plugins of all profiles first, then the balance plugins of all."""
        profiles = list(zip(self._policy.profiles, self.evictors, strict=True))
        for profile, (_, evictor) in profiles:
            for plugin in profile.deschedule:
                yield profile.name, evictor, plugin
        for profile, (_, evictor) in profiles:
            for plugin in profile.balance:
                yield profile.name, evictor, plugin

    def run(self, nodes: Sequence[Node]) -> None:
        for profile, evictor, plugin in self._steps:
            self._done += 1
            self.see(0)
            self._running = (profile, plugin.name)
            handle = EvictorHandle(
                profile=profile,
                plugin=plugin.name,
                cluster=self._cluster,
                evictor=evictor,
                evictions=self.evictions,
                nodes=nodes,
                now=self._now,
                say=self._record_passed_over,
                see=self.see,
            )
            try:
                self._run_plugin(handle, plugin)
            except UsageError as error:
                self.classifications.append(Classification(profile=profile, plugin=plugin.name))
                self.errors.append(FailedPlugin(profile=profile, plugin=plugin.name, error=str(error)))

    def _run_plugin(self, handle: EvictorHandle, plugin: PolicyPlugin) -> None:
        args = plugin.args
        match args:
            case arguments.PodLifeTimeArgs():
                violations.pod_life_time(handle, args)
            case arguments.RemoveFailedPodsArgs():
                violations.remove_failed_pods(handle, args)
            case arguments.TooManyRestartsArgs():
                violations.too_many_restarts(handle, args)
            case arguments.InterPodAntiAffinityArgs():
                violations.inter_pod_anti_affinity(handle, args)
            case arguments.RemovePodsViolatingNodeAffinityArgs():
                violations.node_affinity(handle, args)
            case arguments.NodeTaintsArgs():
                violations.node_taints(handle, args)
            case arguments.RemoveDuplicatesArgs():
                spreading.remove_duplicates(handle, args)
            case arguments.TopologySpreadArgs():
                spreading.topology_spread(handle, args)
            case arguments.LowNodeUtilizationArgs():
                self.classifications.append(utilization.low_node_utilization(handle, args, self._policy, self._metrics))
            case arguments.HighNodeUtilizationArgs():
                self.classifications.append(utilization.high_node_utilization(handle, args))
            case arguments.DefaultEvictorArgs():
                raise AssertionError("the DefaultEvictor is not a plugin that evicts")
            case _:
                assert_never(args)
