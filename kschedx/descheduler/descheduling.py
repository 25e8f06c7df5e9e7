"""`kschedx.deschedule`: what the descheduler does with a policy on a snapshot, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import zip_longest

from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.descheduler.cluster import Cluster, Metrics, PodFacts, PodIndex, pods_of, round_up, shuffle, unit_of
from kschedx.descheduler.evictor import EvictionOutcome, EvictorVerdict, PassedOver, RequestedEviction
from kschedx.descheduler.policy import API_VERSION, KIND, KUBERNETES_METRICS, Policy, PolicyError, read_policy
from kschedx.descheduler.rounds import Chance, ClusterInMotion, Landing, Likelihood, likelihood
from kschedx.descheduler.run import DescheduleLoop, FailedPlugin, run_loop
from kschedx.descheduler.utilization import Classification, Shares, round_percent, shares
from kschedx.errors import InputError, Place
from kschedx.explain.setup import Setup
from kschedx.kube.decoding import map_at
from kschedx.kube.documents import Document, Part, document, part_of
from kschedx.kube.quantity import Unit, format_quantity
from kschedx.loading import without_collection
from kschedx.results import Shown
from kschedx.snapshot.snapshot import Snapshot
from kschedx.sources import yaml

# The Descheduling document, which `kschedx.deschedule(...).to_dict()` and `-o json` return.


class EvictedPod(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pod: str  # `namespace/name`
    node: str
    profile: str
    plugin: str
    because: str
    outcome: str = ""
    """`moved`, `returned` to its node, `pending`, `undecided`, `gone`; absent if the eviction was not carried out."""
    to: str = ""  # the node of its successor
    message: str = ""  # kube-scheduler's, for a successor that stays pending
    is_certain: bool | None = field(default=None, name="certain")
    """Whether it is evicted in whatever order nodes and pods are listed, as far as that was tried."""


class RefusedEviction(Struct, frozen=True, kw_only=True):
    """An eviction that a plugin requested and that was refused."""

    pod: str
    node: str
    profile: str
    plugin: str
    error: str  # the limit that is reached, or what the API server says


class PodVerdict(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whether the evictor of a profile may evict a pod, before anything is evicted."""

    filter: bool = True
    checks: str = ""  # why it may not be evicted, in the descheduler's words; several in brackets
    pre_eviction: bool = True
    message: str = ""


class NodeUtilization(Struct, frozen=True, kw_only=True):
    category: str
    """`underutilized`, `overutilized`, `appropriate`; for HighNodeUtilization `overutilized` nodes can take pods."""
    usage: dict[str, str]
    percent: dict[str, int]  # of allocatable, of the resources that are compared


class Utilization(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One run of LowNodeUtilization or HighNodeUtilization."""

    profile: str
    plugin: str
    nodes: dict[str, NodeUtilization] = {}
    thresholds: dict[str, dict[str, str]] = {}  # computed for `useDeviationThresholds`
    verdict: str = ""  # why it evicts nothing; absent where it went on to evict


class Round(Document, frozen=True, kw_only=True, omit_defaults=True):
    """One loop of the descheduler."""

    evicted: tuple[EvictedPod, ...] = ()  # in the order of the evictions
    refused: tuple[RefusedEviction, ...] = ()
    total: int = 0
    per_node: dict[str, int] = field(default_factory=dict)
    grace_period_seconds: int | None = None
    pods: dict[str, dict[str, PodVerdict]] = field(default_factory=dict)
    """Pod to profile to verdict; a pod that may be evicted is absent."""
    utilization: tuple[Utilization, ...] = ()
    said: tuple[PassedOver, ...] = ()
    errors: tuple[FailedPlugin, ...] = ()
    skipped: str = ""  # why the loop ended before any plugin ran


class RepeatedEviction(Struct, frozen=True, kw_only=True, rename="camel"):
    """A pod that one round evicts and a later round evicts again."""

    pod: str
    round: int  # of the first eviction, counted from 1
    then_round: int
    plugins: tuple[str, str]  # the plugins that fight over it, or one that is never content
    profiles: tuple[str, str]
    because: tuple[str, str]
    node: str  # where kube-scheduler had put it in between; empty where it was pending


class NodeShares(Struct, frozen=True, kw_only=True):
    """The requests on a node, in percent of its allocatable resources."""

    before: dict[str, int]
    after: dict[str, int]


class DeschedulingDocument(Round, frozen=True, kw_only=True, omit_defaults=True):
    """What a DeschedulerPolicy does: the first round, and what follows from it."""

    error: str = ""  # why the descheduler refuses the policy; then nothing runs
    error_field: str = ""  # in the policy; the first of several
    ignored: tuple[str, ...] = ()  # fields of the policy that the descheduler does not know
    chance: str = ""
    """How far the first round depends on the random order in which the descheduler lists nodes and pods: `none`,
    `which` (the number for each plugin is certain), `count` (even that is not), `unknown` (not tried)."""
    rounds: tuple[Round, ...] = ()  # the rounds after the first. The evictions of the last one are not carried out
    settled: bool = False  # the last round evicts nothing
    again: tuple[RepeatedEviction, ...] = ()
    newly_placed: tuple[str, ...] = ()  # pending before
    preempted: tuple[str, ...] = ()  # pods that kube-scheduler preempted for what was recreated
    undecided: bool = False
    nodes: dict[str, NodeShares] = field(default_factory=dict)


def _whole_percents(percents: Mapping[str, float]) -> dict[str, int]:
    return {name: round_percent(percent) for name, percent in percents.items()}


class _Repeat(Struct, frozen=True, kw_only=True):
    """A pod that a loop evicts and a later loop evicts again."""

    round: int  # of the first eviction, counted from 1
    first: RequestedEviction
    landing: Landing
    then_round: int
    then: RequestedEviction


def _repeated_eviction(repeat: _Repeat) -> RepeatedEviction:
    return RepeatedEviction(
        pod=repeat.first.pod.key,
        round=repeat.round,
        then_round=repeat.then_round,
        plugins=(repeat.first.plugin, repeat.then.plugin),
        profiles=(repeat.first.profile, repeat.then.profile),
        because=(repeat.first.because, repeat.then.because),
        node=repeat.landing.node,
    )


def _round_of(loop: DescheduleLoop, landings: Sequence[Landing], grace_period_seconds: int | None) -> Round:
    reached_api = any(eviction.outcome is EvictionOutcome.REFUSED and eviction.pod.uid for eviction in loop.refused)
    return part_of(
        Round,
        loop,
        evicted=_evicted(loop, landings),
        refused=tuple(_eviction(RefusedEviction, eviction) for eviction in loop.refused),
        per_node={node: count for node, count in loop.per_node.items() if count},
        grace_period_seconds=grace_period_seconds if loop.evicted or reached_api else None,
        pods=_verdicts(loop.verdicts),
        utilization=tuple(map(_utilization, loop.classifications)),
    )


def _evicted(loop: DescheduleLoop, landings: Sequence[Landing]) -> tuple[EvictedPod, ...]:
    """Return the evictions of a loop, with their landings if the loop was carried out."""
    return tuple(_eviction(EvictedPod, eviction, landing) for eviction, landing in zip_longest(loop.evicted, landings))


def _eviction(record: type[Part], eviction: RequestedEviction, landing: Landing | None = None) -> Part:
    """Build the record of an eviction; with its landing, if it was carried out."""
    landed = {"outcome": landing.fate.value, "to": landing.node, "message": landing.message} if landing else {}
    return part_of(record, eviction, pod=eviction.pod.key, node=eviction.pod.node, **{"outcome": "", **landed})


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
                usage={name: _amount_text(name, nano) for name, nano in sorted(node.usage.items())},
                percent={name: round_percent(percent) for name, percent in sorted(node.percent.items())},
            )
            for node in classification.nodes
        },
        thresholds={
            category.value: {name: f"{percent:.2f}%" for name, percent in thresholds.items()}
            for category, thresholds in (classification.thresholds or {}).items()
        },
        verdict=classification.verdict,
    )


def _amount_text(resource: str, nano: int) -> str:
    """Return an amount as kubectl prints it."""
    unit = unit_of(resource)
    return f"{nano}n" if nano % unit else format_quantity(round_up(nano, unit), Unit.of(resource))


API, _DRY_RUN = "api", "dry-run"


def _repeats(loops: Sequence[DescheduleLoop], landings: Sequence[Sequence[Landing]]) -> tuple[_Repeat, ...]:
    """Return the pods that a loop evicts and a later loop evicts again, each pair of evictions once."""
    last: dict[str, tuple[int, Landing]] = {}
    repeated = []
    for number, loop in enumerate(loops, start=1):
        for eviction in loop.evicted:
            if eviction.pod.key in last:
                before, landing = last[eviction.pod.key]
                repeated.append(
                    _Repeat(round=before, first=landing.eviction, landing=landing, then_round=number, then=eviction)
                )
        if number <= len(landings):
            last.update((landing.eviction.pod.key, (number, landing)) for landing in landings[number - 1])
    return tuple(repeated)


class Descheduling(Shown, Struct, frozen=True, kw_only=True, dict=True):
    """What a policy does to a cluster."""

    snapshot: Snapshot
    policy: Policy | None = None  # None if the descheduler refuses the policy
    error: str = ""
    error_field: str = ""  # in the policy; the first of several
    hint: str = ""  # how to correct the policy
    loops: tuple[DescheduleLoop, ...] = ()
    """If pods were placed, the last loop is only evaluated: its evictions were not carried out."""
    landings: tuple[tuple[Landing, ...], ...] = ()  # the outcomes of the pods that each loop evicted
    likelihood: Likelihood | None = None
    newly_placed: tuple[str, ...] = ()  # pending before
    preempted: tuple[str, ...] = ()
    is_undecided: bool = False
    shares: tuple[Shares, Shares] | None = None  # the requested share of the nodes' allocatable, before and after
    pods: tuple[PodFacts, ...] = ()  # after the last loop that was carried out

    def __repr__(self) -> str:
        return f"<Descheduling: {self.error or f'{len(self.loop.evicted):,} evictions'}>"

    def records(self) -> list[dict[str, object]]:
        """Return a row for each pod that the first loop evicts."""
        return [
            {
                "pod": row.pod,
                "profile": row.profile,
                "plugin": row.plugin,
                "because": row.because,
                "outcome": row.outcome,
                "node": row.to,
                "message": row.message,
            }
            for row in _evicted(self.loop, self.landings[0] if self.landings else ())
        ]

    @property
    def loop(self) -> DescheduleLoop:
        return self.loops[0] if self.loops else DescheduleLoop()

    @cached_property
    def repeats(self) -> tuple[_Repeat, ...]:
        """Pods that a loop evicts and a later one evicts again."""
        return _repeats(self.loops, self.landings)

    @property
    def chance(self) -> str:
        return self.likelihood.chance.value if self.likelihood is not None else ""

    @property
    def is_settled(self) -> bool:
        """Whether the last loop evicts nothing."""
        return bool(self.loops) and not self.loops[-1].evicted

    def to_dict(self) -> dict[str, object]:
        if self.policy is None:
            return document("Descheduling", DeschedulingDocument, error=self.error, error_field=self.error_field)
        grace = self.policy.grace_period_seconds
        rounds = zip(self.loops, (*self.landings, ()), strict=True)  # the last loop is only evaluated
        first, *others = (_round_of(loop, landings, grace) for loop, landings in rounds)
        likelihood = self.likelihood
        if likelihood is not None and likelihood.chance is not Chance.UNKNOWN:
            certain = likelihood.certain
            first = replace(first, evicted=tuple(replace(pod, is_certain=pod.pod in certain) for pod in first.evicted))
        before, after = self.shares or ({}, {})
        return document(
            "Descheduling",
            DeschedulingDocument,
            first,
            ignored=self.policy.ignored,
            chance=self.chance,
            rounds=tuple(others),
            settled=self.is_settled,
            again=tuple(map(_repeated_eviction, self.repeats)),
            newly_placed=self.newly_placed,
            preempted=self.preempted,
            undecided=self.is_undecided,
            nodes={
                node: NodeShares(before=_whole_percents(before[node]), after=_whole_percents(after[node]))
                for node in before
                if before[node] != after[node]
            },
        )


@without_collection()
def deschedule(
    snapshot: Snapshot,
    policy: Mapping[str, object],
    *,
    evictions: str = API,
    now: str | None = None,
    source: str = "",
    setup: Setup | None = None,
    rounds: int = 1,
    trial_of: PodIndex | None = None,
    first: DescheduleLoop | None = None,
) -> Descheduling:
    """Run a policy.

    With a `setup` of the scheduler, evicted pods are recreated and placed, up to `rounds` loops run, and one more is
    evaluated. `trial_of` are the pods of the snapshot, for one of many trials: pods get no verdicts, other orders are
    not tried, and `first` may be the first loop if it is known. Raises `InputError`, and `UndecidableError` if kschedx
    would have to guess.
    """
    if evictions not in (API, _DRY_RUN):
        raise InputError(f'evictions: expected "{API}" or "{_DRY_RUN}", found "{evictions}"')
    try:
        read = read_policy(policy, snapshot.priority_classes, source=source)
    except PolicyError as error:
        return Descheduling(snapshot=snapshot, error=error.message, error_field=error.place.field, hint=error.hint)
    with Place(object="now"):
        moment = snapshot.moment(now)
    is_trial, counts_budgets, metrics = trial_of is not None, evictions == API, Metrics.of(snapshot)
    pods = PodIndex(pods_of(snapshot)) if trial_of is None else trial_of
    if setup is None:
        cluster = Cluster(snapshot, pods, counts_budgets=counts_budgets)
        loop = run_loop(cluster, read, metrics, moment, judges=not is_trial)
        return Descheduling(snapshot=snapshot, policy=read, loops=(loop,))

    def in_other_order(seed: int) -> DescheduleLoop:
        cluster = Cluster(snapshot, PodIndex(shuffle(pods.pods, seed)), counts_budgets=counts_budgets, seed=seed)
        return run_loop(cluster, read, metrics, moment, judges=False)

    moving = ClusterInMotion(snapshot, setup, pods, moment)
    loops, landings = [], []
    for number in range(rounds + 1):
        title = f"loop {number + 1} of {rounds + 1}"
        if number or first is None:
            cluster = moving.cluster(counts_budgets=counts_budgets)
            first = run_loop(cluster, read, metrics, moment, judges=not (number or is_trial), title=title)
        loops.append(first)
        if number == rounds or not loops[-1].evicted:
            break
        landings.append(moving.move(loops[-1].evicted))
    return Descheduling(
        snapshot=snapshot,
        policy=read,
        loops=tuple(loops),
        landings=tuple(landings),
        likelihood=None if is_trial else likelihood(loops[0], in_other_order, len(pods.pods)),
        newly_placed=moving.newly_placed,
        preempted=moving.preempted,
        is_undecided=moving.is_undecided,
        shares=None if is_trial else (_shares(snapshot, pods), _shares(snapshot, moving.index)),
        pods=moving.pods,
    )


def _shares(snapshot: Snapshot, pods: PodIndex) -> Shares:
    return shares(Cluster(snapshot, pods, counts_budgets=False))


# Sources of a policy: a separate file, a ConfigMap, or values of the descheduler's Helm chart.


class WrittenPolicy(Struct, frozen=True, kw_only=True):
    value: Mapping[str, object]
    document: int  # its position in the file, counted from 1
    below: str  # the field that holds the policy; empty if the policy is the document


def policy_in(text: bytes, source: str) -> WrittenPolicy:
    """Return the policy of a file: a DeschedulerPolicy, a ConfigMap with one, or values of the descheduler's Helm
    chart.

    Raises `InputError` if there is none, or more than one.
    """
    policies = [
        WrittenPolicy(value=policy, document=document.number, below=below)
        for document in yaml.load_all(text, source=source)
        for below, policy in _policies_in(document.value, source)
    ]
    if len(policies) == 1:
        return policies[0]
    hint = f"expected kind {KIND}, a ConfigMap that holds one, or Helm values with deschedulerPolicy"
    number = f"{len(policies)} policies" if policies else "no DeschedulerPolicy"
    raise InputError(f"holds {number}", source=source, hint=hint)


def measures_usage(written: Mapping[str, object]) -> bool:
    """Whether a policy may need the objects of `metrics.k8s.io`, as far as that is known before it is validated."""
    collector, providers = written.get("metricsCollector"), written.get("metricsProviders")
    if isinstance(collector, Mapping) and collector.get("enabled") is True:
        return True
    named = (it.get("source") for it in providers if isinstance(it, Mapping)) if isinstance(providers, list) else ()
    return KUBERNETES_METRICS in named


def _policies_in(document: object, source: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield policies with the field that holds each. Chart values can also be below its name, or in a HelmRelease."""
    if not isinstance(document, Mapping):
        return
    data = document.get("data")
    if document.get("kind") == "ConfigMap" and isinstance(data, Mapping):
        for key, text in data.items():
            held = yaml.load_all(str(text).encode(), source=f"{source}: data[{key}]")
            written = (item.value for item in held if isinstance(item.value, Mapping))
            yield from ((f"data[{key}]", policy) for policy in written if policy.get("kind") == KIND)
        return
    for path in ((), ("descheduler",), ("spec", "values")):
        values = map_at(document, *path)
        if isinstance(policy := values.get("deschedulerPolicy"), Mapping):
            version = values.get("deschedulerPolicyAPIVersion") or API_VERSION
            yield ".".join((*path, "deschedulerPolicy")), {"apiVersion": version, "kind": KIND, **policy}
            return
    if "profiles" in document or str(document.get("apiVersion")).startswith("descheduler/"):
        yield "", document
