"""The Descheduling document, which `kschedx.deschedule(...).to_dict()` and `-o json` return."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.descheduler.cluster import MILLI, NANO, up
from kschedx.descheduler.evictor import EvictionOutcome, EvictorVerdict, PassedOver, RequestedEviction
from kschedx.descheduler.rounds import Landing, Repeat
from kschedx.descheduler.run import DescheduleLoop, FailedPlugin
from kschedx.descheduler.utilization import Classification, rounded
from kschedx.kube.documents import Document, part_of
from kschedx.kube.names import CPU
from kschedx.kube.quantity import Unit, format_quantity


class EvictedPod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pod: str
    """`namespace/name`."""
    node: str
    profile: str
    plugin: str
    because: str
    outcome: str = ""
    """`moved`, `returned` to its node, `pending`, `undecided`, `gone`; absent where the eviction was not carried
    out."""
    to: str = ""
    """The node of its successor."""
    message: str = ""
    """kube-scheduler's, for a successor that stays pending."""
    is_certain: bool | None = field(default=None, name="certain")
    """Whether it is evicted in whatever order nodes and pods are listed, as far as that was tried."""


class RefusedEviction(Struct, frozen=True, kw_only=True):
    """An eviction that a plugin requested and that was refused."""

    pod: str
    node: str
    profile: str
    plugin: str
    error: str
    """The limit that is reached, or what the API server says."""


class PodVerdict(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether the evictor of a profile may evict a pod, before anything is evicted."""

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
    """Computed for `useDeviationThresholds`."""
    verdict: str = ""
    """Why it evicts nothing; absent where it went on to evict."""


class Round(Document, frozen=True, kw_only=True, omit_defaults=True):
    """One loop of the descheduler."""

    evicted: tuple[EvictedPod, ...] = ()
    """In the order of the evictions."""
    refused: tuple[RefusedEviction, ...] = ()
    total: int = 0
    per_node: dict[str, int] = field(default_factory=dict)
    grace_period_seconds: int | None = None
    pods: dict[str, dict[str, PodVerdict]] = field(default_factory=dict)
    """Pod to profile to verdict; a pod that may be evicted is absent."""
    utilization: tuple[Utilization, ...] = ()
    said: tuple[PassedOver, ...] = ()
    errors: tuple[FailedPlugin, ...] = ()
    skipped: str = ""
    """Why the loop ended before any plugin ran."""


class RepeatedEviction(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that one round evicts and a later round evicts again."""

    pod: str
    round: int
    """Of the first eviction, counted from 1."""
    then_round: int
    plugins: tuple[str, str]
    """The plugins that fight over it, or one that is never content."""
    profiles: tuple[str, str]
    because: tuple[str, str]
    node: str
    """Where kube-scheduler had put it in between; empty where it was pending."""


class NodeShares(Struct, frozen=True, kw_only=True):
    """The requests on a node, in percent of its allocatable resources."""

    before: dict[str, int]
    after: dict[str, int]


class DeschedulingDocument(Round, frozen=True, kw_only=True, omit_defaults=True):
    """What a DeschedulerPolicy does: the first round, and what follows from it."""

    error: str = ""
    """Why the descheduler refuses the policy; then nothing runs."""
    error_field: str = ""
    """In the policy; the first of several."""
    ignored: tuple[str, ...] = ()
    """Fields of the policy that the descheduler does not know."""
    chance: str = ""
    """How far the first round depends on the random order in which the descheduler lists nodes and pods: `none`,
    `which` (the number for each plugin is certain), `count` (even that is not), `unknown` (not tried)."""
    rounds: tuple[Round, ...] = ()
    """The rounds after the first. The evictions of the last one are not carried out."""
    settled: bool = False
    """The last round evicts nothing."""
    again: tuple[RepeatedEviction, ...] = ()
    newly_placed: tuple[str, ...] = ()
    """Pending before."""
    preempted: tuple[str, ...] = ()
    """Pods that kube-scheduler preempted for what was recreated."""
    undecided: bool = False
    nodes: dict[str, NodeShares] = field(default_factory=dict)


def whole_percents(percents: Mapping[str, float]) -> dict[str, int]:
    return {name: rounded(percent) for name, percent in percents.items()}


def repeated(repeat: Repeat) -> RepeatedEviction:
    return RepeatedEviction(
        pod=repeat.first.pod.key,
        round=repeat.round,
        then_round=repeat.then_round,
        plugins=(repeat.first.plugin, repeat.then.plugin),
        profiles=(repeat.first.profile, repeat.then.profile),
        because=(repeat.first.because, repeat.then.because),
        node=repeat.landing.node,
    )


def landed(landing: Landing) -> EvictedPod:
    return replace(_evicted(landing.eviction), outcome=landing.fate.value, to=landing.node, message=landing.message)


def round_of(loop: DescheduleLoop, grace_period_seconds: int | None) -> Round:
    return part_of(
        Round,
        loop,
        evicted=tuple(_evicted(eviction) for eviction in loop.evicted),
        refused=tuple(
            RefusedEviction(
                pod=eviction.pod.key,
                node=eviction.pod.node,
                profile=eviction.profile,
                plugin=eviction.plugin,
                error=eviction.error,
            )
            for eviction in loop.refused
        ),
        per_node={node: count for node, count in loop.per_node.items() if count},
        grace_period_seconds=grace_period_seconds if loop.evicted or _reached_api(loop) else None,
        pods=_verdicts(loop.verdicts),
        utilization=tuple(map(_utilization, loop.classifications)),
    )


def _reached_api(loop: DescheduleLoop) -> bool:
    return any(eviction.outcome is EvictionOutcome.REFUSED and eviction.pod.uid for eviction in loop.refused)


def _evicted(eviction: RequestedEviction) -> EvictedPod:
    return EvictedPod(
        pod=eviction.pod.key,
        node=eviction.pod.node,
        profile=eviction.profile,
        plugin=eviction.plugin,
        because=eviction.because,
    )


_EVICTABLE = PodVerdict()


def _verdicts(verdicts: Mapping[str, Mapping[str, EvictorVerdict]]) -> dict[str, dict[str, PodVerdict]]:
    verdicts_by_pod: dict[str, dict[str, PodVerdict]] = {}
    for pod, by_profile in verdicts.items():
        for profile, pod_verdict in by_profile.items():
            verdict = part_of(PodVerdict, pod_verdict)
            if verdict != _EVICTABLE:
                verdicts_by_pod.setdefault(pod, {})[profile] = verdict
    return verdicts_by_pod


def _utilization(classification: Classification) -> Utilization:
    return Utilization(
        profile=classification.profile,
        plugin=classification.plugin,
        nodes={
            node.node.name: NodeUtilization(
                category=node.category.value,
                usage={name: amount_text(name, nano) for name, nano in sorted(node.usage.items())},
                percent={name: rounded(percent) for name, percent in sorted(node.percent.items())},
            )
            for node in classification.nodes
        },
        thresholds={
            category.value: {name: f"{percent:.2f}%" for name, percent in thresholds.items()}
            for category, thresholds in (classification.thresholds or {}).items()
        },
        verdict=classification.verdict,
    )


def amount_text(resource: str, nano: int) -> str:
    """Return an amount as kubectl prints it."""
    if nano % (MILLI if resource == CPU else NANO):
        return f"{nano}n"
    return format_quantity(up(nano, MILLI if resource == CPU else NANO), Unit.of(resource))
