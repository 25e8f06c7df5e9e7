"""`kschedx profiles tune`: the profile that reaches a goal, found by placing the pods of a cluster again with many
profiles.

The search is successive halving. All candidates place the pods of a small part of the nodes, the best of them those of
a larger part, and the best of these all of them. Profiles are judged only by their effect on this cluster.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from enum import StrEnum
from typing import TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from kschedx.errors import ConfigError
from kschedx.explain.setup import Setup
from kschedx.framework.args import PodTopologySpreadArgs
from kschedx.framework.config.decoding import Profile
from kschedx.framework.config.origins import expand_config
from kschedx.framework.interface import ScorePlugin
from kschedx.framework.registry import plugin_class
from kschedx.kube.decoding import maps_at
from kschedx.kube.documents import Document, document, part_of
from kschedx.kube.names import CPU, DEFAULT_SCHEDULER, MEMORY
from kschedx.kube.types import controller_of
from kschedx.progress import Phase, count_items
from kschedx.results import Shown
from kschedx.simulate.repack import RepackedNodes, movable, repack
from kschedx.snapshot.edits import without_nodes
from kschedx.snapshot.snapshot import Snapshot

_Json: TypeAlias = Mapping[str, object]
Work: TypeAlias = "Callable[[int], ProfileTrial]"
_Map: TypeAlias = "Callable[[Work, int], Iterator[ProfileTrial]]"
"""Takes a work and how often to do it, and yields its results in order: in one process, or in several."""

_WEIGHTS = (0, 1, 2, 5, 10)
_RESOURCE_WEIGHTS = (None, (1, 1), (3, 1), (1, 3))
"""Weights of cpu and memory in the scoring strategy; None keeps the current ones."""
_FILLS_TO = 90  # the percentage up to which the third strategy fills a node
_RUNGS = ((10, 5, 0.5), (3, 4, 0.75), (1, 1, 0.95))
"""For each round, the divisor of the nodes, the divisor of the candidates that continue, and the part of the time by
which it ends."""
_SMALLEST = 10  # the smallest number of nodes of a part
_FIT, _SPREAD = "NodeResourcesFit", "PodTopologySpread"


class TuningGoal(StrEnum):
    FEWEST_NODES = "fewest-nodes"
    LEAST_FRAGMENTATION = "least-fragmentation"
    SPREAD = "spread"
    COST = "cost"


class FitStrategy(StrEnum):
    LEAST = "LeastAllocated"
    MOST = "MostAllocated"
    UP_TO = "RequestedToCapacityRatio"


class ProfileCandidate(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Changes of the current profile; without any, it is the current profile."""

    strategy: FitStrategy | None = None
    resources: tuple[int, int] | None = None  # weights of cpu and memory in the strategy
    weights: tuple[tuple[str, int], ...] = ()  # weights of score plugins; 0 disables one
    spreads_by_default: bool = True
    """Whether pods without constraints of their own are spread over zones and nodes, if the current profile does."""

    def apply_to(self, base: _Json, scheduler_name: str) -> _Json:
        """Return the KubeSchedulerConfiguration with the change in the profile of that name."""
        document = deepcopy(dict(base))
        profile = _profile_in(document, scheduler_name)
        args = _args_in(profile, _FIT) if self.strategy or self.resources else {}
        strategy = args.get("scoringStrategy")
        written: dict[str, object] = (
            dict(strategy) if isinstance(strategy, Mapping) else {"type": FitStrategy.LEAST.value}
        )
        if self.strategy is not None:
            written["type"] = self.strategy.value
            written.pop("requestedToCapacityRatio", None)
        if self.strategy is FitStrategy.UP_TO:
            shape = [{"utilization": 0, "score": 0}, {"utilization": _FILLS_TO, "score": 10}]
            written["requestedToCapacityRatio"] = {"shape": [*shape, {"utilization": 100, "score": 0}]}
        if self.resources is not None:
            others = [item for item in maps_at(written.get("resources")) if item.get("name") not in (CPU, MEMORY)]
            own = [{"name": name, "weight": weight} for name, weight in zip((CPU, MEMORY), self.resources, strict=True)]
            written["resources"] = [*own, *others]
        if self.strategy or self.resources:
            args["scoringStrategy"] = written
        if not self.spreads_by_default:
            _args_in(profile, _SPREAD).update(defaultingType="List")
        if self.weights:
            score, changed = _map_in(_map_in(profile, "plugins"), "score"), dict(self.weights)
            enabled = [{"name": name, "weight": to} for name, to in self.weights if to]
            disabled = [{"name": name} for name, to in self.weights if not to]
            for key, more in (("enabled", enabled), ("disabled", disabled)):
                entries = [item for item in maps_at(score.pop(key, None)) if item.get("name") not in changed]
                if entries or more:
                    score[key] = [*entries, *more]
        return document

    @property
    def parts(self) -> dict[str, ProfileCandidate]:
        """The description of each change, to the candidate without it."""
        candidates: dict[str, ProfileCandidate] = {}
        if self.strategy is not None:
            up_to = f" up to {_FILLS_TO}%" if self.strategy is FitStrategy.UP_TO else ""
            candidates[f"{self.strategy.value}{up_to}"] = replace(self, strategy=None)
        if self.resources is not None:
            candidates["cpu {} memory {}".format(*self.resources)] = replace(self, resources=None)
        for weight in self.weights:
            others = tuple(other for other in self.weights if other != weight)
            candidates[f"{weight[0]} {weight[1] or 'off'}"] = replace(self, weights=others)
        if not self.spreads_by_default:
            candidates["no default spread"] = replace(self, spreads_by_default=True)
        return candidates

    @property
    def title(self) -> str:
        """`MostAllocated, PodTopologySpread off`, or `today's profile`."""
        return ", ".join(self.parts) or "today's profile"


class ProfileTrial(Struct, frozen=True, kw_only=True):
    """The nodes after one candidate has placed the pods."""

    candidate: ProfileCandidate
    nodes: int  # nodes in use: they run more than pods of DaemonSets
    fragmentation: float
    """Percent of the free capacity on nodes on which a pod identical to one of the cluster does not fit."""
    spread: float  # standard deviation of the nodes' requested cpu or memory, in percentage points
    moves: int  # pods that run on another node than now; replicas that only swap nodes count as well
    unplaced: int
    cost: float | None = None  # the price of the nodes in use, per hour

    def measure(self, goal: TuningGoal) -> float:
        if goal is TuningGoal.FEWEST_NODES:
            return self.nodes
        if goal is TuningGoal.LEAST_FRAGMENTATION:
            return self.fragmentation
        return self.spread if goal is TuningGoal.SPREAD else self.cost or 0.0

    def rank(self, goal: TuningGoal) -> tuple[float, ...]:
        """Return a sort key; lower is better."""
        return (
            self.unplaced,
            round(self.measure(goal), 1 + 3 * (goal is TuningGoal.COST)),
            len(self.candidate.parts),
            self.moves,
        )


class Tuning(Shown, Struct, frozen=True, kw_only=True):
    """The profiles that were tried, and the best of them."""

    snapshot: Snapshot
    before: Setup
    after: Setup  # the setup with the best profile
    goal: TuningGoal
    seed: int
    candidates: int
    left_out: int  # the number of candidates for which there was no time
    pods: int  # the number of pods that are placed again
    all_nodes: int
    now: ProfileTrial  # the current nodes
    today: ProfileTrial  # the result of the current profile
    front: tuple[ProfileTrial, ...]
    """Results of the last round to which no other is superior in everything, the best for the goal first."""
    configuration: _Json  # the configuration of the best profile; the current one if none is better

    @property
    def best(self) -> ProfileTrial:
        return self.front[0]

    @property
    def is_better(self) -> bool:
        """Whether the best profile is better for the goal than the current one."""
        return self.best.rank(self.goal)[:2] < self.today.rank(self.goal)[:2]

    def __repr__(self) -> str:
        return (
            f"<Tuning: {self.goal.value}, {self.candidates:,} profiles tried, the best is {self.best.candidate.title}>"
        )

    def records(self) -> list[dict[str, object]]:
        """Return a row per profile of the front, after the current one."""
        trials = (self.today, *(trial for trial in self.front if trial is not self.today))
        return [
            {
                "profile": trial.candidate.title,
                "nodes": trial.nodes,
                "fragmentation": trial.fragmentation,
                "spread": trial.spread,
                "moves": trial.moves,
                "unplaced": trial.unplaced,
                "cost": trial.cost,
            }
            for trial in trials
        ]

    @property
    def assumptions(self) -> tuple[str, ...]:
        return (
            f"{self.pods:,} running pods are placed again one after another, in queue order; those of DaemonSets stay",
            "ties go to the first node by name; disruption, budgets and rollouts are not counted",
            "a pod moves if it leaves its node and no equal replica takes its place",
        )

    def to_dict(self) -> dict[str, object]:
        return document(
            _TUNING,
            TuningDocument,
            self,
            nodes=self.all_nodes,
            now=_trial(self.now),
            today=_trial(self.today),
            front=tuple(map(_trial, self.front)),
        )


def tune(
    snapshot: Snapshot,
    setup: Setup,
    base: _Json,
    goal: TuningGoal,
    *,
    most: int = 200,
    seed: int = 0,
    seconds: float = 60.0,
    price_of: Callable[[str], float | None] | None = None,
    run: _Map | None = None,
) -> Tuning:
    """Search for the best profile. `base` is the written configuration of the setup. Raises `ConfigError` for a profile
    that cannot be tuned, and for the goal `cost` if the price of a node is unknown."""
    profiles = setup.scheduler.config
    profile = profiles.profiles[0] if setup.forced_profile is None else profiles.profile_for(setup.forced_profile)
    if unknown := setup.unknown_plugins:
        raise ConfigError(f'plugin "{unknown[0].name}" is not known, and its scores would be guessed')
    if profiles.extenders:
        raise ConfigError("a configuration with extenders cannot be tuned: every candidate would call them")
    search = _Search(snapshot, setup, base, profile, goal, price_of)
    ends, run = time.monotonic() + seconds, run or _run_in_sequence
    candidates = _candidates(profile, random.Random(seed), most)
    trials: list[ProfileTrial] = []
    tried, count = 0, len(snapshot.cluster.nodes)
    for part, kept, share in _RUNGS:
        if part > 1 and count // part < _SMALLEST:
            continue
        place = search.trial_on_part(part, random.Random(seed))
        noun = f"candidates on {count // part:,} nodes"
        trials = _try(place, candidates, run, ends - (1 - share) * seconds, noun)
        tried = max(tried, len(trials))
        today, *others = trials
        trials = [today, *sorted(others, key=lambda trial: trial.rank(goal))]
        candidates = [trial.candidate for trial in trials[: max(len(trials) // kept, 2)]]
    trials = _simplify(search.trial_on_part(1, random.Random(seed)), trials, goal, run, ends)
    front = _front(sorted(trials, key=lambda trial: trial.rank(goal)), goal)
    configuration = front[0].candidate.apply_to(base, profile.scheduler_name)
    return Tuning(
        snapshot=snapshot,
        before=setup,
        after=setup.with_config(configuration, snapshot),
        goal=goal,
        seed=seed,
        candidates=tried,
        left_out=most - tried,
        pods=len(movable(snapshot)),
        all_nodes=count,
        now=search.now,
        today=trials[0],
        front=tuple(front),
        configuration=configuration,
    )


def _simplify(
    place: Callable[[ProfileCandidate], ProfileTrial],
    trials: Sequence[ProfileTrial],
    goal: TuningGoal,
    run: _Map,
    until: float,
) -> list[ProfileTrial]:
    """Return the trials with those of simpler candidates: changes that the best one does not need are dropped."""
    trials = [*trials]
    while True:
        best = min(trials, key=lambda trial: trial.rank(goal))
        simpler = [part for part in best.candidate.parts.values() if all(part != known.candidate for known in trials)]
        if not simpler or time.monotonic() > until:
            return trials
        fewer = _try(place, simpler, run, until, "simpler candidates")
        trials += fewer
        if min(trial.rank(goal)[:2] for trial in fewer) > best.rank(goal)[:2]:
            return trials


def base_of(config: _Json | None, setup: Setup) -> _Json:
    """Return the configuration that is tuned: the given one, or an empty one with the API version of the Kubernetes
    version."""
    if config is not None:
        return config
    full = expand_config(None, setup.release).configuration
    return {key: full[key] for key in ("apiVersion", "kind")}


def _try(
    place: Callable[[ProfileCandidate], ProfileTrial],
    candidates: Sequence[ProfileCandidate],
    run: _Map,
    until: float,
    noun: str,
) -> list[ProfileTrial]:
    """Return the results of the candidates in their order, as many as there is time for, but at least two."""
    trials: list[ProfileTrial] = []
    results = run(lambda index: place(candidates[index]), len(candidates))
    for trial in count_items(results, Phase.TUNING, len(candidates), noun):
        trials.append(trial)
        if time.monotonic() > until and len(trials) > 1:
            break
    return trials


def _run_in_sequence(work: Work, number: int) -> Iterator[ProfileTrial]:
    return map(work, range(number))


class _Search:
    def __init__(
        self,
        snapshot: Snapshot,
        setup: Setup,
        base: _Json,
        profile: Profile,
        goal: TuningGoal,
        price_of: Callable[[str], float | None] | None,
    ) -> None:
        self._snapshot, self._setup, self._base = snapshot, setup, base
        self._name = profile.scheduler_name
        names = snapshot.cluster.names
        self._prices = {name: None if price_of is None else price_of(name) for name in names}
        unknown = [name for name in names if self._prices[name] is None]
        if goal is TuningGoal.COST and unknown:
            hint = f"{len(unknown):,} of {len(names):,} nodes have none: name a catalog with prices, --instance-types"
            raise ConfigError(f"no price is known of node {unknown[0]}", hint=hint)

    @property
    def now(self) -> ProfileTrial:
        rows = movable(self._snapshot)
        return self._measure(
            self._snapshot, rows, ProfileCandidate(), RepackedNodes.of_now(self._snapshot, self._setup, rows)
        )

    def trial_on_part(self, part: int, dice: random.Random) -> Callable[[ProfileCandidate], ProfileTrial]:
        """Return a function that tries a candidate on a random part of the nodes, one of `part` equal parts, with the
        pods that run there."""
        snapshot = self._snapshot
        if part > 1:
            count = len(snapshot.cluster.nodes)
            kept = frozenset(dice.sample(range(count), count // part))
            snapshot = without_nodes(snapshot, [row for row in range(count) if row not in kept])
        rows = movable(snapshot)

        def tried(candidate: ProfileCandidate) -> ProfileTrial:
            config = candidate.apply_to(self._base, self._name)
            setup = self._setup.with_config(config, snapshot)
            return self._measure(snapshot, rows, candidate, repack(snapshot, setup, rows))

        return tried

    def _measure(
        self, snapshot: Snapshot, rows: Sequence[int], candidate: ProfileCandidate, repacked: RepackedNodes
    ) -> ProfileTrial:
        names = snapshot.pods.node_names
        makers = [_owner_key(snapshot, row) for row in rows]
        before = Counter(zip(makers, (names[row] for row in rows), strict=True))
        after = Counter(zip(makers, repacked.nodes, strict=True))
        unused = set(repacked.filling.unused)
        prices = [self._prices[name] for name in snapshot.cluster.names if name not in unused]
        return ProfileTrial(
            candidate=candidate,
            nodes=repacked.filling.in_use,
            fragmentation=repacked.fragmentation,
            spread=repacked.spread,
            moves=(before - after).total(),
            unplaced=len(repacked.filling.pending),
            cost=None if None in prices else sum(price for price in prices if price is not None),
        )


def _owner_key(snapshot: Snapshot, row: int) -> str:
    owner = controller_of(snapshot.pods.owners[row])
    return snapshot.pods.key(row) if owner is None else f"{snapshot.pods.namespaces[row]}/{owner.kind}/{owner.name}"


def _candidates(profile: Profile, dice: random.Random, most: int) -> list[ProfileCandidate]:
    """Return the current profile, each strategy by itself, and random candidates."""
    tunable = [name for name in profile.points["score"] if name in profile.weights and _is_tunable(name)]
    strategies: tuple[FitStrategy | None, ...] = (None, *FitStrategy) if _FIT in tunable else (None,)
    is_spread = _SPREAD in profile.args and profile.args_of(PodTopologySpreadArgs).defaulting_type == "System"
    candidates = dict.fromkeys([ProfileCandidate(), *(ProfileCandidate(strategy=strategy) for strategy in strategies)])
    if is_spread:
        candidates |= dict.fromkeys(ProfileCandidate(strategy=it, spreads_by_default=False) for it in strategies)
    for _ in range(20 * most):
        if len(candidates) >= most:
            break
        weights = ((name, dice.choice(_WEIGHTS[1:] if name == _FIT else _WEIGHTS)) for name in tunable)
        candidate = ProfileCandidate(
            strategy=dice.choice(strategies),
            resources=dice.choice(_RESOURCE_WEIGHTS) if _FIT in tunable else None,
            weights=tuple((name, to) for name, to in weights if dice.random() < 0.5 and to != profile.weights[name]),
            spreads_by_default=not is_spread or dice.random() < 0.5,
        )
        candidates[candidate] = None
    return list(candidates)[:most]


def _front(trials: Sequence[ProfileTrial], goal: TuningGoal) -> list[ProfileTrial]:
    """Return the trials for which no other is at least as good in everything and better in something; of equal ones the
    first."""
    values = np.array([[it.measure(goal), it.nodes, it.fragmentation, it.moves, it.unplaced] for it in trials])
    values = values.round(1)
    front: list[ProfileTrial] = []
    for row, trial in enumerate(trials):
        no_worse = (values <= values[row]).all(axis=1)
        better = no_worse & (values < values[row]).any(axis=1)
        is_repeated = (values[:row] == values[row]).all(axis=1).any()
        if not better.any() and not is_repeated:
            front.append(trial)
    return front


def _is_tunable(name: str) -> bool:
    """Whether the plugin's score is the owner's policy, and not a preference of pods."""
    cls = plugin_class(name)
    return issubclass(cls, ScorePlugin) and not cls.scores_preferences


# --- in the configuration


def _profile_in(document: dict[str, object], scheduler_name: str) -> dict[str, object]:
    """Return the profile of that name, which may be modified. A configuration without profiles gets the default one."""
    profiles = document.setdefault("profiles", [{"schedulerName": scheduler_name}])
    its = (item for item in maps_at(profiles) if item.get("schedulerName", DEFAULT_SCHEDULER) == scheduler_name)
    return next(its)


def _args_in(profile: dict[str, object], plugin: str) -> dict[str, object]:
    """Return the arguments of a plugin in `pluginConfig`, which may be modified."""
    entries = profile.setdefault("pluginConfig", [])
    assert isinstance(entries, list)
    entry = next((item for item in maps_at(entries) if item.get("name") == plugin), None)
    if entry is None:
        entry = {"name": plugin}
        entries.append(entry)
    return _map_in(entry, "args")


def _map_in(parent: dict[str, object], key: str) -> dict[str, object]:
    item = parent.setdefault(key, {})
    assert isinstance(item, dict)
    return item


# --- the document


class TrialDocument(Document, frozen=True, omit_defaults=True):
    profile: str  # a description of the changes
    nodes: int  # nodes in use
    fragmentation: str  # percent, as in `ProfileTrial`
    spread: str  # in percentage points, as in `ProfileTrial`
    moves: int
    unplaced: int
    cost: str = ""  # per hour; absent if a price is unknown


class TuningDocument(Document, frozen=True):
    """Profiles that were tried on a cluster, and the best of them."""

    goal: TuningGoal
    is_better: bool = field(name="better")  # whether a profile reaches the goal better than the current one
    seed: int
    candidates: int
    left_out: int  # the number of candidates for which there was no time
    pods: int  # running pods that were placed again
    nodes: int
    now: TrialDocument  # the current nodes
    today: TrialDocument  # the result of the current profile
    front: tuple[TrialDocument, ...]  # trials to which no other is superior in everything, the best for the goal first
    configuration: dict[str, object]  # the KubeSchedulerConfiguration of the best profile
    assumptions: tuple[str, ...]


_TUNING = "ProfileTuning"


def _trial(trial: ProfileTrial) -> TrialDocument:
    return part_of(
        TrialDocument,
        trial,
        profile=trial.candidate.title,
        fragmentation=f"{trial.fragmentation:.1f}",
        spread=f"{trial.spread:.1f}",
        cost="" if trial.cost is None else f"{trial.cost:.4f}",
    )
