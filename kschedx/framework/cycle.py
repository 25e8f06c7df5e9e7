"""A finished scheduling cycle with the result of every step, and what was not evaluated in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import Literal

from msgspec import Struct, field

from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.extenders import Trace, call_order, is_interested
from kschedx.framework.interface import PostFilterResult
from kschedx.framework.status import SUCCESS, FilterOutcome, Status
from kschedx.kube.documents import Document, part_of
from kschedx.kube.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.columns import ClusterRow, IntArray, TableRows, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot

MAY_REJECT = frozenset({"multiPoint", "preEnqueue", "preFilter", "filter", "reserve", "permit"})
"""Where a plugin can keep a pod from a node that all others let it have."""

MAY_PREFER = frozenset({"preScore", "score"})
"""Where it can make another of these nodes the best one."""


class Stake(IntEnum):
    """What an absent participant could change, the weightiest last."""

    NOTHING = 0
    """Of what kschedx answers."""
    NODE = 1
    """Which of the nodes that fit it is."""
    FIT = 2
    """Whether the pod fits at all, where everything else lets it through."""


class UnevaluatedKind(StrEnum):
    PLUGIN = "plugin"
    EXTENDER = "extender"
    OBJECTS = "kind"
    """Of a kind that a dump lacks."""
    SCHEDULER = "scheduler"
    """The pod is another scheduler's."""


class UnevaluatedDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    plugin: str = ""
    extender: str = ""
    kind: str = ""
    scheduler: str = ""
    where: tuple[str, ...]
    leaves_open: Literal["node", "fit"] | None
    waived: bool = False
    objects: tuple[str, ...] = ()
    completed_by: str = ""


class Unevaluated(Struct, frozen=True, kw_only=True):
    """A plugin, extender, or predicate that was not run."""

    kind: UnevaluatedKind
    name: str
    """The plugin's name, the extender's URL, the kind's key, the pod's schedulerName."""
    where: tuple[str, ...]
    """The extension points or verbs at which it has a say, as the configuration spells them; the plugins that read
    a kind."""
    stake: Stake
    is_waived: bool = False
    """The caller warrants that the decision stands without it."""
    objects: tuple[str, ...] = ()
    """The objects of a kind that the pod points to."""
    lacking: str = ""
    """What a dump lacks of the kind; empty where it holds none."""
    completed_by: str = ""
    """A command for a file with what a dump lacks."""

    @property
    def document(self) -> UnevaluatedDocument:
        names = {str(one): self.name if one is self.kind else "" for one in UnevaluatedKind}
        return part_of(UnevaluatedDocument, self, leaves_open=LEAVES_OPEN[self.stake], waived=self.is_waived, **names)


LEAVES_OPEN = {Stake.NOTHING: None, Stake.NODE: "node", Stake.FIT: "fit"}
"""As the document words it."""


def unknown_plugins(profile: Profile, config: SchedulerConfig) -> Iterator[Unevaluated]:
    """The plugins that a profile enables and kschedx does not have."""
    for name, where in profile.unknown.items():
        stake = Stake.FIT if MAY_REJECT & set(where) else Stake.NODE if MAY_PREFER & set(where) else Stake.NOTHING
        yield Unevaluated(
            kind=UnevaluatedKind.PLUGIN, name=name, where=where, stake=stake, is_waived=config.without_unknown_plugins
        )


def unasked_extenders(config: SchedulerConfig, pod: Pod) -> Iterator[Unevaluated]:
    """The extenders of a configuration that would be sent a pod; one that only binds decides nothing."""
    for index in call_order(config.extenders):
        extender = config.extenders[index]
        verbs = {
            "filterVerb": extender.filter_verb,
            "prioritizeVerb": extender.prioritize_verb,
            "preemptVerb": extender.preempt_verb,
        }
        where = tuple(field for field, verb in verbs.items() if verb)
        if where and is_interested(extender, pod):
            stake = Stake.FIT if extender.filter_verb else Stake.NODE if extender.prioritize_verb else Stake.NOTHING
            yield Unevaluated(kind=UnevaluatedKind.EXTENDER, name=str(extender.url), where=where, stake=stake)


def open_stake(unheard: Iterable[Unevaluated]) -> Stake:
    """What is left open by all of them together."""
    return max((one.stake for one in unheard if not one.is_waived), default=Stake.NOTHING)


# A finished scheduling cycle: every step's result, kept.


class Outcome(StrEnum):
    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    ERROR = "Error"
    UNDECIDED = "Undecided"
    """All that ran let the pod through, and what did not run could still reject it (`Cycle.unheard`)."""


class PreFilterStep(Struct, frozen=True, kw_only=True):
    """One plugin's answer in the PreFilter phase."""

    status: Status
    nodes: frozenset[str] | None = None


class PreFilterOutcome(Struct, frozen=True, kw_only=True):
    """What the PreFilter phase arrives at."""

    steps: tuple[PreFilterStep, ...] = ()
    """The plugins that ran, in order."""
    status: Status = SUCCESS
    """Of the phase as a whole."""
    nodes: frozenset[str] | None = None
    """The names of the nodes that can be considered; None for all."""
    naming: tuple[str, ...] = ()
    """The plugins that named nodes."""


class Scores(Struct, frozen=True, kw_only=True):
    """The score matrices of the feasible nodes; arrays are (node,), in the order of `nodes`."""

    nodes: NodeTable
    skipped: tuple[str, ...]
    weights: Mapping[str, int]
    """Plugins that scored, in order, with their weights."""
    raw: Mapping[str, IntArray]
    normalized: Mapping[str, IntArray]
    totals: IntArray
    """What the plugins give, weighted, and what extenders add."""
    added: Mapping[str, IntArray] = field(default_factory=dict)
    """`extender URL` to what it adds."""

    def weighted(self, plugin: str) -> IntArray:
        return self.normalized[plugin] * self.weights[plugin]


class Cycle(Struct, frozen=True, kw_only=True):
    """What happened to one pod, phase by phase, as far as kube-scheduler would have come."""

    pod: Pod
    snapshot: Snapshot
    profile: Profile
    release: Release
    all_nodes: NodeTable
    outcome: Outcome
    message: str = ""
    """The FailedScheduling event's text, or the internal error."""
    pre_enqueue: tuple[Status, ...] = ()
    pre_filter: tuple[PreFilterStep, ...] = ()
    pre_filter_status: Status = field(default_factory=Status)
    """What the PreFilter phase as a whole returned."""
    nodes: NodeTable | None = None
    """The nodes that PreFilter left in; None where it rejected the pod."""
    filter_skipped: tuple[str, ...] = ()
    filter: FilterOutcome | None = None
    """The verdicts on `nodes`; what extenders refused is that of a last plugin, `Extender`."""
    filter_plugins: FilterOutcome | None = None
    """The same of the plugins alone, where extenders have refused nodes."""
    nominated: ClusterRow | None = None
    """The pod's nominated node, where it fits: kube-scheduler tries it first and then looks at no other."""
    scores: Scores | None = None
    best: tuple[ClusterRow, ...] = ()
    """The nodes that share the highest total."""
    post_filter: PostFilterResult | None = None
    extenders: Trace | None = None
    """What HTTP extenders said, or would have to be asked; None where the configuration has none."""
    dry_steps: tuple[tuple[str, Status], ...] = ()
    """Extension point and status of the steps after the choice of a node, where it is not a matter of chance."""
    unheard: tuple[Unevaluated, ...] = ()
    """Participants that did not run. Rejections stand without them, since none can lift another's."""

    @property
    def is_extended(self) -> bool:
        """Extenders were asked about nodes: about any other, their word is missing."""
        return self.extenders is not None and bool(self.extenders.filter)

    @property
    def refused(self) -> frozenset[str]:
        """The nodes that passed the plugins and that extenders did not leave."""
        if self.filter is None or self.filter_plugins is None or self.nodes is None:
            return frozenset()
        rows = rows_where(self.filter_plugins.passed & ~self.filter.passed)
        return frozenset(self.nodes.name(row) for row in each_row(rows))

    @property
    def choice(self) -> tuple[ClusterRow, ...]:
        """The nodes among which kube-scheduler picks: the nominated one, or those with the highest total."""
        return self.best if self.nominated is None else (self.nominated,)

    @property
    def has_no_choice(self) -> bool:
        """The pod can go to one node alone, whatever the scores."""
        feasible = self.feasible
        return self.nominated is not None or (feasible is not None and len(feasible) == 1)

    @property
    def feasible(self) -> TableRows | None:
        """Rows of `nodes` that passed."""
        return None if self.filter is None else rows_where(self.filter.passed)
