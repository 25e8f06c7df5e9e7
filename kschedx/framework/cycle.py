"""A finished scheduling cycle: every step's result, kept."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct, field

from kschedx.api.types import Pod
from kschedx.framework.config import Profile
from kschedx.framework.interface import PostFilterResult
from kschedx.framework.outcome import FilterOutcome
from kschedx.framework.status import Status
from kschedx.framework.unheard import Unheard
from kschedx.releases import Release
from kschedx.snapshot.columns import IntArray
from kschedx.snapshot.nodes import NodeTable
from kschedx.snapshot.rows import ClusterRow, TableRows, each_row, rows_where
from kschedx.snapshot.snapshot import Snapshot

if TYPE_CHECKING:
    from kschedx.framework.extenders import Trace


class Outcome(StrEnum):
    SCHEDULED = "Scheduled"
    UNSCHEDULABLE = "Unschedulable"
    GATED = "Gated"
    ERROR = "Error"
    UNDECIDED = "Undecided"
    """All who were asked let the pod through, and somebody else could still reject it (`Cycle.unheard`)."""


class PreFilterStep(Struct, frozen=True, kw_only=True):
    """One plugin's answer in the PreFilter phase."""

    status: Status
    nodes: frozenset[str] | None = None


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
    unheard: tuple[Unheard, ...] = ()
    """Who takes part and was not asked. Rejections stand without them, since nobody can lift another's."""

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
        """The pod can go to one node alone, whatever anybody scores."""
        feasible = self.feasible
        return self.nominated is not None or (feasible is not None and len(feasible) == 1)

    @property
    def feasible(self) -> TableRows | None:
        """Rows of `nodes` that passed."""
        return None if self.filter is None else rows_where(self.filter.passed)
