"""`kschedx descheduler-policy advise`: plugins that would evict pods, how often pods would bounce, and the best policy.

The best policy reaches a goal with the fewest evictions. Every policy is tried: its loops run on the moving cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import partial

from msgspec import Struct, field

from kschedx.descheduler.arguments import BALANCE, DEFAULT_EVICTOR
from kschedx.descheduler.cluster import Cluster, PodFacts, PodIndex, pods_of
from kschedx.descheduler.descheduling import API, Descheduling, deschedule
from kschedx.descheduler.policy import API_VERSION, KIND, PREFERRED, REQUIRED
from kschedx.descheduler.rounds import Fate
from kschedx.descheduler.run import DescheduleLoop
from kschedx.descheduler.utilization import round_percent, shares
from kschedx.explain.setup import Setup
from kschedx.kube.autoscalers import MIRROR
from kschedx.kube.conditions import reports_ready
from kschedx.kube.documents import Document, document
from kschedx.kube.names import CPU, MEMORY
from kschedx.kube.tolerations import DO_NOT_SCHEDULE
from kschedx.kube.types import Node
from kschedx.progress import Phase, count_items
from kschedx.snapshot.snapshot import Snapshot

_Written = Mapping[str, object]


class PolicyGoal(StrEnum):
    BALANCE = "balance"  # the fullest and the emptiest node are as close as possible
    COMPACTION = "compaction"  # as many nodes as possible run nothing but DaemonSets


_ROUNDS = 3
_MANY_PODS = 20_000  # above it, only few thresholds, and no limits, are tried
_MOST_PLACED = 5_000
"""The maximum number of pods, or of a plugin's own evictions, up to which a survey also places the evicted pods."""
_SURVEYED: tuple[tuple[str, Mapping[str, object]], ...] = (
    ("RemoveFailedPods", {}),
    ("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 100}),
    ("PodLifeTime", {"maxPodLifeTimeSeconds": 7 * 86400}),
    ("RemovePodsViolatingNodeTaints", {}),
    ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [REQUIRED]}),
    ("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [PREFERRED]}),
    ("RemovePodsViolatingInterPodAntiAffinity", {}),
    ("RemoveDuplicates", {}),
    ("RemovePodsViolatingTopologySpreadConstraint", {}),
    ("LowNodeUtilization", {"thresholds": {CPU: 20, MEMORY: 20}, "targetThresholds": {CPU: 50, MEMORY: 50}}),
    ("HighNodeUtilization", {"thresholds": {CPU: 20, MEMORY: 20}}),
)
"""Every plugin with the args in the descheduler's documentation, or without args."""


class PolicyTrial(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What one policy does, its rounds carried out; also as it stands in the document."""

    plugin: str
    args: Mapping[str, object] = {}
    max_evictions: int | None = None  # maxNoOfPodsToEvictTotal of each round, where one was tried
    evictions: int = 0  # of all rounds
    refused: int = 0  # by a limit or a PodDisruptionBudget
    placed: bool = True
    """Where the pods land was tried; if false, only the first round ran and what is below is unknown."""
    bounces: int = 0  # evictions of a pod that an earlier round had evicted
    returned: int = 0  # evicted pods that went back to the same node
    pending: int = 0
    settled: bool = False  # the last round evicts nothing
    undecided: bool = False
    measure: int = 0  # the goal's measure, afterwards
    error: str = ""

    @property
    def policy(self) -> _Written:
        return _policy_of(self.plugin, self.args, self.max_evictions)

    @property
    def is_harmless(self) -> bool:
        """Whether every evicted pod has a node, and no later round evicts it again."""
        return self.placed and not (self.pending or self.bounces or self.undecided or self.error)


class PolicyAdvice(Struct, frozen=True, kw_only=True):
    goal: PolicyGoal
    target: int | None  # None for the best that a policy reaches
    before: int
    plugins: tuple[PolicyTrial, ...]  # each plugin by itself
    tried: tuple[PolicyTrial, ...]
    chosen: PolicyTrial | None  # None if no policy improves anything
    first: Descheduling | None = None
    """The first round of the chosen policy, also in other orders; None in a large cluster."""

    @property
    def is_reached(self) -> bool:
        if self.chosen is None:
            return self.target is not None and _meets(self.goal, self.before, self.target)
        return self.target is None or _meets(self.goal, self.chosen.measure, self.target)

    def to_dict(self) -> dict[str, object]:
        return _document(self)


def advise(
    snapshot: Snapshot,
    setup: Setup,
    goal: PolicyGoal,
    *,
    target: int | None = None,
    rounds: int = _ROUNDS,
    evictions: str = API,
    now: str | None = None,
) -> PolicyAdvice:
    """Return advice for a goal. Raises `InputError`."""
    trials = _Trials(snapshot, setup, goal, rounds=rounds, evictions=evictions, now=now)
    before = trials.before
    is_large = len(snapshot.pods) > _MANY_PODS
    candidates = [*_candidates(goal, few=is_large)]
    works = [partial(trials.survey, *item) for item in _SURVEYED] + [partial(trials.of, *it) for it in candidates]
    done = [work() for work in count_items(works, Phase.TUNING, len(works), "policies")]
    surveyed, tried = tuple(done[: len(_SURVEYED)]), done[len(_SURVEYED) :]
    if target is not None and _meets(goal, before, target):
        return PolicyAdvice(goal=goal, target=target, before=before, plugins=surveyed, tried=tuple(tried), chosen=None)
    best = _best(goal, tried, before, target)
    if best is not None and not is_large:
        wanted = best.measure if target is None or not _meets(goal, best.measure, target) else target
        steps = best.evictions.bit_length()  # of a bisection
        tried += count_items(trials.limit_evictions(best, wanted), Phase.TUNING, steps, "limits")
        best = _best(goal, tried, before, target)
    first = None
    if best is not None and not is_large:
        first = deschedule(snapshot, best.policy, evictions=evictions, now=now, setup=setup)
    return PolicyAdvice(
        goal=goal, target=target, before=before, plugins=surveyed, tried=tuple(tried), chosen=best, first=first
    )


class _Trials:
    def __init__(
        self, snapshot: Snapshot, setup: Setup, goal: PolicyGoal, *, rounds: int, evictions: str, now: str | None
    ) -> None:
        self._snapshot, self._setup, self._goal = snapshot, setup, goal
        self._rounds, self._evictions, self._now = rounds, evictions, now
        self._pods = PodIndex(pods_of(snapshot))
        self._nodes = [node for node in snapshot.cluster.nodes if _is_open(node)]
        self.before = self._measure(self._pods.pods)

    def survey(self, plugin: str, args: Mapping[str, object]) -> PolicyTrial:
        """Try a plugin by itself; if it evicts very many pods, only count them."""
        loop = self._run(_policy_of(plugin, args), None).loop
        if len(loop.evicted) <= _MOST_PLACED or len(self._snapshot.pods) <= _MOST_PLACED:
            return self.of(plugin, args, first=loop)
        return PolicyTrial(
            plugin=plugin,
            args=args,
            evictions=len(loop.evicted),
            refused=len(loop.refused),
            placed=False,
            error="; ".join(error.error for error in loop.errors),
        )

    def _run(self, written: _Written, setup: Setup | None, first: DescheduleLoop | None = None) -> Descheduling:
        descheduling = deschedule(
            self._snapshot,
            written,
            evictions=self._evictions,
            now=self._now,
            setup=setup,
            rounds=self._rounds,
            trial_of=self._pods,
            first=first,
        )
        assert descheduling.policy is not None, descheduling.error
        return descheduling

    def of(
        self, plugin: str, args: Mapping[str, object], limit: int | None = None, *, first: DescheduleLoop | None = None
    ) -> PolicyTrial:
        """Try a policy with this plugin and carry out its rounds; `first` is the first loop if it is known."""
        descheduling = self._run(_policy_of(plugin, args, limit), self._setup, first)
        landed = [landing for landings in descheduling.landings for landing in landings]
        fates = Counter(landing.fate for landing in landed)
        return PolicyTrial(
            plugin=plugin,
            args=args,
            max_evictions=limit,
            evictions=len(landed),
            bounces=len(descheduling.repeats),
            returned=fates[Fate.RETURNED],
            pending=fates[Fate.PENDING] + fates[Fate.UNDECIDED],
            refused=sum(len(loop.refused) for loop in descheduling.loops[: len(descheduling.landings)]),
            settled=descheduling.is_settled,
            undecided=descheduling.is_undecided,
            measure=self._measure(descheduling.pods) if landed else self.before,
            error="; ".join(error.error for error in descheduling.loop.errors),
        )

    def limit_evictions(self, best: PolicyTrial, wanted: int) -> Iterator[PolicyTrial]:
        """Yield trials of the same policy with other limits of its evictions: a bisection for the lowest limit that
        meets the goal."""
        low, high = 0, best.evictions
        while high - low > 1:
            middle = (low + high) // 2
            trial = self.of(best.plugin, best.args, middle)
            yield trial
            if trial.evictions and trial.is_harmless and _meets(self._goal, trial.measure, wanted):
                high = min(middle, trial.evictions)
            else:
                low = middle

    def _measure(self, pods: Sequence[PodFacts]) -> int:
        if self._goal is PolicyGoal.COMPACTION:
            busy = {pod.node for pod in pods if not (pod.is_finished or pod.is_daemon or MIRROR in pod.annotations)}
            return sum(node.name not in busy for node in self._nodes)
        return self._spread(pods)

    def _spread(self, pods: Sequence[PodFacts]) -> int:
        """Return the points between the fullest and the emptiest node, of CPU or memory, whichever is larger."""
        usage = shares(Cluster(self._snapshot, PodIndex(pods), counts_budgets=False, nodes=self._nodes))
        spreads = [0]
        for name in (CPU, MEMORY):
            percents = [round_percent(item[name]) for item in usage.values() if name in item]
            spreads.append(max(percents) - min(percents) if percents else 0)
        return max(spreads)


def _is_open(node: Node) -> bool:
    """Return whether a node is ready, not cordoned, and without a taint that rejects pods."""
    keeps = any(taint.effect in DO_NOT_SCHEDULE for taint in node.spec.taints)
    return reports_ready(node.status.conditions) and not node.spec.unschedulable and not keeps


def _policy_of(plugin: str, args: Mapping[str, object], limit: int | None = None) -> _Written:
    """Return a policy with one plugin that evicts only pods that fit another node."""
    point = "balance" if plugin in BALANCE else "deschedule"
    limits = {} if limit is None else {"maxNoOfPodsToEvictTotal": limit}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        **limits,
        "profiles": [
            {
                "name": "default",
                "pluginConfig": [
                    {"name": DEFAULT_EVICTOR, "args": {"nodeFit": True}},
                    {"name": plugin, "args": args},
                ],
                "plugins": {point: {"enabled": [plugin]}},
            }
        ],
    }


def _candidates(goal: PolicyGoal, *, few: bool) -> Iterator[tuple[str, Mapping[str, object]]]:
    if goal is PolicyGoal.COMPACTION:
        for percent in (30, 60) if few else (20, 30, 40, 50, 60, 70):
            yield "HighNodeUtilization", {"thresholds": {CPU: percent, MEMORY: percent}}
        return
    for points in (10, 20) if few else (5, 10, 15, 20):
        for resources in ((CPU, MEMORY),) if few else ((CPU, MEMORY), (CPU,), (MEMORY,)):
            span = dict.fromkeys(resources, points)
            yield (
                "LowNodeUtilization",
                {"useDeviationThresholds": True, "thresholds": span, "targetThresholds": {**span}},
            )
    if not few:
        yield "RemoveDuplicates", {}
        yield "RemovePodsViolatingTopologySpreadConstraint", {}


def _meets(goal: PolicyGoal, measure: int, target: int) -> bool:
    return measure <= target if goal is PolicyGoal.BALANCE else measure >= target


def _best(goal: PolicyGoal, tried: Sequence[PolicyTrial], before: int, target: int | None) -> PolicyTrial | None:
    """Return the policy that meets the target with the fewest evictions, else the one that comes closest."""
    sign = 1 if goal is PolicyGoal.BALANCE else -1
    better = [it for it in tried if it.evictions and it.is_harmless and sign * it.measure < sign * before]
    meeting = [trial for trial in better if target is not None and _meets(goal, trial.measure, target)]
    if meeting:
        return min(meeting, key=lambda trial: (trial.evictions, sign * trial.measure))
    return min(better, key=lambda trial: (sign * trial.measure, trial.evictions), default=None)


class DeschedulerAdviceDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    """Which plugins of the descheduler would evict anything, and a policy that reaches a goal."""

    goal: PolicyGoal
    before: int
    """The measure as it is: for balance the points between the fullest and the emptiest node; for compaction the nodes
    that run nothing but DaemonSets."""
    target: int | None = None
    after: int | None = None
    reached: bool = False
    evictions: int = 0
    chance: str = ""
    """How far the first round of the policy depends on the order of nodes and pods, as in a Descheduling."""
    policy: dict[str, object] = field(default_factory=dict)  # absent where none improves anything
    plugins: tuple[PolicyTrial, ...] = ()
    tried: tuple[PolicyTrial, ...] = ()


_ADVICE = "DeschedulerAdvice"


def _document(advice: PolicyAdvice) -> dict[str, object]:
    chosen = advice.chosen
    return document(
        _ADVICE,
        DeschedulerAdviceDocument,
        advice,
        after=None if chosen is None else chosen.measure,
        reached=advice.is_reached,
        evictions=0 if chosen is None else chosen.evictions,
        chance="" if advice.first is None else advice.first.chance,
        policy={} if chosen is None else dict(chosen.policy),
    )
