"""`kschedx.deschedule`: what the descheduler does with a policy on a snapshot, and what follows from it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kschedx.descheduler.cluster import Cluster, Metrics, PodFacts, PodIndex, pods_of
from kschedx.descheduler.document import (
    DeschedulingDocument,
    NodeShares,
    landed,
    repeated,
    round_of,
    whole_percents,
)
from kschedx.descheduler.policy import API_VERSION, KIND, KUBERNETES_METRICS, Policy, PolicyError, read_policy
from kschedx.descheduler.rounds import Chance, ClusterInMotion, Landing, Likelihood, Repeat, likelihood, repeats
from kschedx.descheduler.run import DescheduleLoop, run_loop
from kschedx.descheduler.utilization import Shares, shares
from kschedx.errors import InputError, Place
from kschedx.explain.setup import Setup
from kschedx.kube.documents import document
from kschedx.kube.scalars import nanoseconds
from kschedx.loading import without_collection
from kschedx.results import Shown
from kschedx.snapshot.snapshot import Snapshot
from kschedx.sources import yaml

API, DRY_RUN = "api", "dry-run"
MOST_ROUNDS = 50

T = TypeVar("T")


class Descheduling(Shown, Struct, frozen=True, kw_only=True, dict=True):
    """What a policy does to a cluster."""

    snapshot: Snapshot
    policy: Policy | None = None
    """None if the descheduler refuses the policy."""
    error: str = ""
    error_field: str = ""
    """In the policy; the first of several."""
    loops: tuple[DescheduleLoop, ...] = ()
    """If pods were placed, the last loop is only evaluated: its evictions were not carried out."""
    landings: tuple[tuple[Landing, ...], ...] = ()
    """The outcomes of the pods that each loop evicted."""
    likelihood: Likelihood | None = None
    newly_placed: tuple[str, ...] = ()
    """Pending before."""
    preempted: tuple[str, ...] = ()
    is_undecided: bool = False
    shares: tuple[Shares, Shares] | None = None
    """The requested share of the nodes' allocatable, before and after."""
    pods: tuple[PodFacts, ...] = ()
    """After the last loop that was carried out."""

    def __repr__(self) -> str:
        return f"<Descheduling: {self.error or f'{len(self.loop.evicted):,} evictions'}>"

    def records(self) -> list[dict[str, object]]:
        """Return a row for each pod that the first loop evicts."""
        landings = {landing.eviction.pod.key: landing for landing in (self.landings[0] if self.landings else ())}
        return [
            {
                "pod": eviction.pod.key,
                "profile": eviction.profile,
                "plugin": eviction.plugin,
                "because": eviction.because,
                "outcome": landings[eviction.pod.key].fate.value if eviction.pod.key in landings else "",
                "node": landings[eviction.pod.key].node or "" if eviction.pod.key in landings else "",
                "message": landings[eviction.pod.key].message if eviction.pod.key in landings else "",
            }
            for eviction in self.loop.evicted
        ]

    @property
    def loop(self) -> DescheduleLoop:
        return self.loops[0] if self.loops else DescheduleLoop()

    @cached_property
    def repeats(self) -> tuple[Repeat, ...]:
        """Pods that a loop evicts and a later one evicts again."""
        return repeats(self.loops, self.landings)

    @property
    def is_settled(self) -> bool:
        """Whether the last loop evicts nothing."""
        return bool(self.loops) and not self.loops[-1].evicted

    def to_dict(self) -> dict[str, object]:
        if self.policy is None:
            return document("Descheduling", DeschedulingDocument, error=self.error, error_field=self.error_field)
        grace = self.policy.grace_period_seconds
        first, *others = (round_of(loop, grace) for loop in self.loops)
        for number, landings in enumerate(self.landings):
            rows = tuple(map(landed, landings))
            if number == 0:
                first = replace(first, evicted=rows)
            else:
                others[number - 1] = replace(others[number - 1], evicted=rows)
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
            chance=likelihood.chance.value if likelihood is not None else "",
            rounds=tuple(others),
            settled=self.is_settled,
            again=tuple(map(repeated, self.repeats)),
            newly_placed=self.newly_placed,
            preempted=self.preempted,
            undecided=self.is_undecided,
            nodes={
                node: NodeShares(before=whole_percents(before[node]), after=whole_percents(after[node]))
                for node in before
                if before[node] != after[node]
            },
        )


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
    if evictions not in (API, DRY_RUN):
        raise InputError(f'evictions: expected "{API}" or "{DRY_RUN}", found "{evictions}"')
    try:
        read = read_policy(policy, snapshot.priority_classes, source=source)
    except PolicyError as error:
        return Descheduling(snapshot=snapshot, error=error.message, error_field=error.place.field)
    try:
        moment = nanoseconds(now or snapshot.source.taken or datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    except InputError as error:
        raise error.at(Place(object="now")) from None
    with without_collection():
        return _run(
            snapshot,
            read,
            moment,
            counts_budgets=evictions == API,
            setup=setup,
            rounds=rounds,
            trial_of=trial_of,
            first=first,
        )


def _run(
    snapshot: Snapshot,
    read: Policy,
    moment: int,
    *,
    counts_budgets: bool,
    setup: Setup | None,
    rounds: int,
    trial_of: PodIndex | None,
    first: DescheduleLoop | None,
) -> Descheduling:
    is_trial = trial_of is not None
    pods, metrics = PodIndex(pods_of(snapshot)) if trial_of is None else trial_of, Metrics.of(snapshot)
    if setup is None:
        cluster = Cluster(snapshot, pods, counts_budgets=counts_budgets)
        loop = run_loop(cluster, read, metrics, moment, judges=not is_trial)
        return Descheduling(snapshot=snapshot, policy=read, loops=(loop,))

    def in_other_order(seed: int) -> DescheduleLoop:
        nodes = _shuffled(snapshot.cluster.nodes, seed)
        cluster = Cluster(snapshot, PodIndex(_shuffled(pods.pods, seed)), counts_budgets=counts_budgets, nodes=nodes)
        return run_loop(cluster, read, metrics, moment, judges=False)

    world = ClusterInMotion(snapshot, setup, pods, moment)
    loops, landings = [], []
    for number in range(rounds + 1):
        title = f"loop {number + 1} of {rounds + 1}"
        if number or first is None:
            cluster = world.cluster(counts_budgets=counts_budgets)
            first = run_loop(cluster, read, metrics, moment, judges=not (number or is_trial), title=title)
        loops.append(first)
        if number == rounds or not loops[-1].evicted:
            break
        landings.append(world.move(loops[-1].evicted))
    return Descheduling(
        snapshot=snapshot,
        policy=read,
        loops=tuple(loops),
        landings=tuple(landings),
        likelihood=None if is_trial else likelihood(loops[0], in_other_order, len(pods.pods)),
        newly_placed=world.newly_placed,
        preempted=world.preempted,
        is_undecided=world.is_undecided,
        shares=None if is_trial else (_shares(snapshot, pods), _shares(snapshot, world.index)),
        pods=world.pods,
    )


def _shares(snapshot: Snapshot, pods: PodIndex) -> Shares:
    return shares(Cluster(snapshot, pods, counts_budgets=False))


def _shuffled(items: Sequence[T], seed: int) -> list[T]:
    shuffled = [*items]
    random.Random(seed).shuffle(shuffled)
    return shuffled


# Sources of a policy: a separate file, a ConfigMap, or values of the descheduler's Helm chart.


class WrittenPolicy(Struct, frozen=True, kw_only=True):
    value: Mapping[str, object]
    document: int
    """Its position in the file, counted from 1."""
    below: str
    """The field that holds the policy; empty if the policy is the document."""


def policy_in(text: bytes, source: str) -> WrittenPolicy:
    """Return the policy of a file: a DeschedulerPolicy, a ConfigMap with one, or values of the descheduler's Helm
    chart.

    Raises `InputError` if there is none, or more than one.
    """
    policies = [
        WrittenPolicy(value=policy, document=number, below=below)
        for number, document in _documents(text, source)
        for below, policy in _policies_in(document, source)
    ]
    if len(policies) == 1:
        return policies[0]
    hint = f"expected kind {KIND}, a ConfigMap that holds one, or Helm values with deschedulerPolicy"
    number = f"{len(policies)} policies" if policies else "no DeschedulerPolicy"
    raise InputError(f"holds {number}", place=Place(source=source), hint=hint)


def measures_usage(written: Mapping[str, object]) -> bool:
    """Return whether a policy may need the objects of `metrics.k8s.io`, as far as that is known before it is
    validated."""
    collector, providers = written.get("metricsCollector"), written.get("metricsProviders")
    if isinstance(collector, Mapping) and collector.get("enabled") is True:
        return True
    named = (
        (provider.get("source") for provider in providers if isinstance(provider, Mapping))
        if isinstance(providers, list)
        else ()
    )
    return KUBERNETES_METRICS in named


def _documents(text: bytes, source: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for part in yaml.split(text, source=source):
        read = yaml.load(part, source=source)
        if read is not None and isinstance(read.value, Mapping):
            yield part.number, read.value


def _policies_in(document: Mapping[str, object], source: str) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield policies with the field that holds each. Values of the chart can also be below its name, or in a
    HelmRelease."""
    data = document.get("data")
    if document.get("kind") == "ConfigMap" and isinstance(data, Mapping):
        for key, text in data.items():
            held = (item for _, item in _documents(str(text).encode(), f"{source}: data[{key}]"))
            yield from ((f"data[{key}]", item) for item in held if item.get("kind") == KIND)
        return
    spec = document.get("spec")
    in_release = spec.get("values") if isinstance(spec, Mapping) else None
    for below, values in (("", document), ("descheduler.", document.get("descheduler")), ("spec.values.", in_release)):
        policy = values.get("deschedulerPolicy") if isinstance(values, Mapping) else None
        if isinstance(values, Mapping) and isinstance(policy, Mapping):
            version = values.get("deschedulerPolicyAPIVersion") or API_VERSION
            yield f"{below}deschedulerPolicy", {"apiVersion": version, "kind": KIND, **policy}
            return
    if "profiles" in document or str(document.get("apiVersion")).startswith("descheduler/"):
        yield "", document
