"""The Descheduling document: what `kschedx.deschedule(...).to_dict()` and `-o json` give."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from kschedx.descheduler.cluster import MILLI, NANO, up
from kschedx.descheduler.evictor import Eviction, Outcome, Verdict
from kschedx.descheduler.run import Loop
from kschedx.descheduler.utilization import Classification, rounded
from kschedx.kube.names import CPU
from kschedx.kube.quantity import Unit, format_quantity


class EvictedPod(Struct, frozen=True, kw_only=True):
    pod: str
    """`namespace/name`."""
    node: str
    profile: str
    plugin: str
    because: str
    """Why the plugin evicts it."""


class RefusedEviction(Struct, frozen=True, kw_only=True):
    """An eviction that a plugin asked for in vain."""

    pod: str
    node: str
    profile: str
    plugin: str
    error: str
    """The limit that is reached, or what the API server says."""


class PodVerdict(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the evictor of a profile says of a pod before anything is evicted."""

    filter: bool = True
    checks: str = ""
    """Why it may not be evicted, in the descheduler's words; several in brackets."""
    pre_eviction: bool = True
    message: str = ""


class NodeUtilization(Struct, frozen=True, kw_only=True):
    category: str
    """`underutilized`, `overutilized`, `appropriate`; for HighNodeUtilization `overutilized` nodes can take pods."""
    usage: dict[str, str]
    percent: dict[str, int]
    """Of allocatable, of the resources that are compared."""


class Utilization(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of LowNodeUtilization or HighNodeUtilization."""

    profile: str
    plugin: str
    nodes: dict[str, NodeUtilization] = {}
    thresholds: dict[str, dict[str, str]] = {}
    """Those that `useDeviationThresholds` arrives at."""
    verdict: str = ""
    """Why it evicts nothing; absent where it went on to evict."""


class PassedOver(Struct, frozen=True, kw_only=True):
    """What the descheduler says of a pod that it passes over."""

    profile: str
    plugin: str
    pod: str
    message: str


class FailedPlugin(Struct, frozen=True, kw_only=True):
    profile: str
    plugin: str
    error: str


class Round(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One loop of the descheduler."""

    evicted: tuple[EvictedPod, ...] = ()
    """In the order of the evictions."""
    refused: tuple[RefusedEviction, ...] = ()
    total: int = 0
    per_node: dict[str, int] = {}
    grace_period_seconds: int | None = None
    pods: dict[str, dict[str, PodVerdict]] = {}
    """Pod to profile to verdict; a pod that may be evicted is absent."""
    utilization: tuple[Utilization, ...] = ()
    said: tuple[PassedOver, ...] = ()
    errors: tuple[FailedPlugin, ...] = ()
    skipped: str = ""
    """Why the loop ended before any plugin ran."""


def round_of(loop: Loop, grace_period_seconds: int | None) -> Round:
    return Round(
        evicted=tuple(_evicted(one) for one in loop.evicted),
        refused=tuple(
            RefusedEviction(pod=one.pod.key, node=one.pod.node, profile=one.profile, plugin=one.plugin, error=one.error)
            for one in loop.refused
        ),
        total=loop.total,
        per_node={node: count for node, count in loop.per_node.items() if count},
        grace_period_seconds=grace_period_seconds if loop.evicted or _reached_api(loop) else None,
        pods=_verdicts(loop.verdicts),
        utilization=tuple(map(_utilization, loop.classifications)),
        said=tuple(
            PassedOver(profile=one.profile, plugin=one.plugin, pod=one.pod, message=one.message) for one in loop.said
        ),
        errors=tuple(FailedPlugin(profile=one.profile, plugin=one.plugin, error=one.error) for one in loop.errors),
        skipped=loop.skipped,
    )


def _reached_api(loop: Loop) -> bool:
    return any(one.outcome is Outcome.REFUSED and one.pod.uid for one in loop.refused)


def _evicted(one: Eviction) -> EvictedPod:
    return EvictedPod(pod=one.pod.key, node=one.pod.node, profile=one.profile, plugin=one.plugin, because=one.because)


_EVICTABLE = PodVerdict()


def _verdicts(verdicts: Mapping[str, Mapping[str, Verdict]]) -> dict[str, dict[str, PodVerdict]]:
    found: dict[str, dict[str, PodVerdict]] = {}
    for pod, by_profile in verdicts.items():
        for profile, one in by_profile.items():
            verdict = PodVerdict(
                filter=one.filter, checks=one.checks, pre_eviction=one.pre_eviction, message=one.message
            )
            if verdict != _EVICTABLE:
                found.setdefault(pod, {})[profile] = verdict
    return found


def _utilization(one: Classification) -> Utilization:
    return Utilization(
        profile=one.profile,
        plugin=one.plugin,
        nodes={
            node.node.name: NodeUtilization(
                category=node.category.value,
                usage={name: amount_text(name, nano) for name, nano in sorted(node.usage.items())},
                percent={name: rounded(percent) for name, percent in sorted(node.percent.items())},
            )
            for node in one.nodes
        },
        thresholds={
            category.value: {name: f"{percent:.2f}%" for name, percent in thresholds.items()}
            for category, thresholds in (one.thresholds or {}).items()
        },
        verdict=one.verdict,
    )


def amount_text(resource: str, nano: int) -> str:
    """As kubectl prints it."""
    if nano % (MILLI if resource == CPU else NANO):
        return f"{nano}n"
    return format_quantity(up(nano, MILLI if resource == CPU else NANO), Unit.of(resource))


def to_builtins(document: Struct) -> dict[str, object]:
    found: dict[str, object] = msgspec.to_builtins(document)
    return found
