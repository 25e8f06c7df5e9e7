"""A finished scheduling cycle with the result of every step, and what was not evaluated in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum, StrEnum
from typing import Literal

from msgspec import Struct, field

from kschedx.framework.config import Profile, SchedulerConfig
from kschedx.framework.extenders import Trace
from kschedx.framework.interface import PostFilterResult
from kschedx.framework.status import SUCCESS, FilterOutcome, Status
from kschedx.kube.documents import Document, part_of
from kschedx.kube.types import Pod
from kschedx.releases import Release
from kschedx.snapshot.columns import ClusterRow, IntArray, TableRows, each_row, rows_where
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.snapshot import Snapshot

_MAY_REJECT = frozenset({"multiPoint", "preEnqueue", "preFilter", "filter", "reserve", "permit"})
"""Extension points at which a plugin can reject a node that all other plugins pass."""

_MAY_PREFER = frozenset({"preScore", "score"})
"""Extension points at which a plugin can change which of the feasible nodes is best."""


class Stake(IntEnum):
    """What a participant that did not run could change, the least important first."""

    NOTHING = 0  # it changes nothing that kschedx reports
    NODE = 1  # it may change which of the feasible nodes is chosen
    FIT = 2  # it may change whether the pod fits at all, if everything else passes it


class UnevaluatedKind(StrEnum):
    PLUGIN = "plugin"
    EXTENDER = "extender"
    OBJECTS = "kind"  # objects of a kind that a dump lacks
    SCHEDULER = "scheduler"  # the pod belongs to another scheduler
    VOLUME = "volume"  # the volume of a new claim, which a driver provisions before the pod is scheduled


class UnevaluatedDocument(Document, frozen=True, kw_only=True, omit_defaults=True):
    plugin: str = ""
    extender: str = ""
    kind: str = ""
    scheduler: str = ""
    volume: str = ""
    where: tuple[str, ...]
    leaves_open: Literal["node", "fit"] | None
    waived: bool = False
    objects: tuple[str, ...] = ()
    completed_by: str = ""


class Unevaluated(Struct, frozen=True, kw_only=True):
    """What was not evaluated: a plugin or extender that did not run, or what a dump does not show."""

    kind: UnevaluatedKind
    name: str
    """The plugin's name, the extender's URL, the kind's key, the pod's schedulerName, or the claim of a volume."""
    where: tuple[str, ...]
    """Its extension points or verbs, as the configuration spells them; for a kind, the plugins that read it; for a
    volume, its driver."""
    stake: Stake
    is_waived: bool = False  # whether the caller asserts that the decision is the same without it
    objects: tuple[str, ...] = ()
    """The objects of a kind to which the pod refers; for a volume, the places that decide, as `zone eu-west-1a`."""
    lacking: str | None = ""
    """What a dump lacks of the kind, None if that is unknown; empty if it has no object of it. For a volume, the kind
    that does not list its driver."""
    completed_by: str = ""  # a command that writes what the dump lacks to a file

    @property
    def document(self) -> UnevaluatedDocument:
        names = {str(it): self.name if it is self.kind else "" for it in UnevaluatedKind}
        return part_of(UnevaluatedDocument, self, leaves_open=_LEAVES_OPEN[self.stake], waived=self.is_waived, **names)


_LEAVES_OPEN = {Stake.NOTHING: None, Stake.NODE: "node", Stake.FIT: "fit"}  # the stakes as the document spells them


def unknown_plugins(profile: Profile, config: SchedulerConfig) -> Iterator[Unevaluated]:
    """Yield the plugins that a profile enables and kschedx does not have."""
    for name, where in profile.unknown.items():
        stake = Stake.FIT if _MAY_REJECT & set(where) else Stake.NODE if _MAY_PREFER & set(where) else Stake.NOTHING
        yield Unevaluated(
            kind=UnevaluatedKind.PLUGIN, name=name, where=where, stake=stake, is_waived=config.without_unknown_plugins
        )


def open_stake(plugins: Iterable[Unevaluated]) -> Stake:
    """Return the highest stake of all of them, waived ones excluded."""
    return max((unevaluated.stake for unevaluated in plugins if not unevaluated.is_waived), default=Stake.NOTHING)


class Outcome(StrEnum):
    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    ERROR = "Error"
    UNDECIDED = "Undecided"
    """Everything that ran passes the pod, but what did not run could still reject it (`Cycle.unevaluated`)."""


class PreFilterStep(Struct, frozen=True, kw_only=True):
    """One plugin's result in the PreFilter phase."""

    status: Status
    nodes: frozenset[str] | None = None


class PreFilterOutcome(Struct, frozen=True, kw_only=True):
    """The result of the PreFilter phase."""

    steps: tuple[PreFilterStep, ...] = ()  # in the order in which they ran
    status: Status = SUCCESS
    nodes: frozenset[str] | None = None  # None for all
    naming: tuple[str, ...] = ()  # the plugins that returned node names


class Scores(Struct, frozen=True, kw_only=True):
    """The scores of the feasible nodes; arrays are (node,), in the order of `nodes`."""

    nodes: NodeTable
    skipped: tuple[str, ...]
    weights: Mapping[str, int]  # the plugins that scored, in order
    raw: Mapping[str, IntArray]
    normalized: Mapping[str, IntArray]
    totals: IntArray  # the sum of the plugins' weighted scores and the extenders' scores
    added: Mapping[str, IntArray] = field(default_factory=dict)  # `extender URL` to the scores that it adds

    def weighted_scores(self, plugin: str) -> IntArray:
        return self.normalized[plugin] * self.weights[plugin]


class Cycle(Struct, frozen=True, kw_only=True):
    """The results for one pod, phase by phase, as far as kube-scheduler would get."""

    pod: Pod
    snapshot: Snapshot
    profile: Profile
    release: Release
    all_nodes: NodeTable
    outcome: Outcome
    message: str = ""  # the text of the FailedScheduling event, or the internal error
    pre_enqueue: tuple[Status, ...] = ()
    pre_filter: tuple[PreFilterStep, ...] = ()
    pre_filter_status: Status = field(default_factory=Status)
    nodes: NodeTable | None = None  # those that PreFilter returned; None if it rejected the pod
    filter_skipped: tuple[str, ...] = ()
    filter: FilterOutcome | None = None
    """The verdicts on `nodes`. Nodes that extenders refused have the verdict of a last plugin, `Extender`."""
    filter_plugins: FilterOutcome | None = None  # the verdicts of the plugins alone, if extenders refused nodes
    nominated: ClusterRow | None = None
    """The pod's nominated node, if the pod fits it: kube-scheduler tries it first and then evaluates no other node."""
    scores: Scores | None = None
    best: tuple[ClusterRow, ...] = ()  # the nodes that share the highest total
    post_filter: PostFilterResult | None = None
    extenders: Trace | None = None
    """What HTTP extenders answered, or which ones would be called; None if none is configured."""
    dry_steps: tuple[tuple[str, Status], ...] = ()
    """Extension point and status of the steps after the choice of a node, if that choice is not random."""
    unevaluated: tuple[Unevaluated, ...] = ()
    """Participants that did not run. Rejections are valid without them, since no participant can revoke another's."""

    @property
    def is_extended(self) -> bool:
        """Whether extenders were called about nodes. Their answer for any other node is unknown."""
        return self.extenders is not None and bool(self.extenders.filter)

    @property
    def refused(self) -> frozenset[str]:
        """The nodes that passed the plugins and that extenders refused."""
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
        """Whether only one node is possible for the pod, whatever the scores."""
        feasible = self.feasible
        return self.nominated is not None or (feasible is not None and len(feasible) == 1)

    @property
    def feasible(self) -> TableRows | None:
        """The rows of `nodes` that passed."""
        return None if self.filter is None else rows_where(self.filter.passed)
