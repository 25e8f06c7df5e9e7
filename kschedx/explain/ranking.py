"""Which node wins, by how much, and which plugin decides it."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np
from msgspec import Struct

from kschedx.framework.cycle import Cycle, Scores
from kschedx.framework.preemption import RULES
from kschedx.framework.status import Candidate
from kschedx.snapshot.columns import TableRow, TableRows, each_row
from kschedx.snapshot.pods import PodTable


class Contribution(Struct, frozen=True, kw_only=True):
    """What one plugin gives to a node's total: `normalized` (0 to 100) times `weight`.

    An extender's score has the same form, with a weight of 1 and any number."""

    plugin: str
    weight: int
    raw: int
    normalized: int

    @property
    def weighted(self) -> int:
        return self.normalized * self.weight


class ScoredNode(Struct, frozen=True, kw_only=True):
    row: TableRow
    """Of `cycle.scores.nodes`."""
    name: str
    total: int
    contributions: tuple[Contribution, ...]


class Lead(Struct, frozen=True, kw_only=True):
    """By how much one plugin puts the winner before the runner-up; negative where it favours the latter."""

    plugin: str
    difference: int


class Ranking(Struct, frozen=True, kw_only=True):
    """The feasible nodes, best first."""

    nodes: tuple[ScoredNode, ...]
    """At most as many as were asked for, the winners among them always."""
    count: int
    """How many were scored."""
    winners: int
    """How many share the highest total."""
    leads: tuple[Lead, ...]
    """The winner against the first node behind, largest first, plugins that do not differ left out."""

    @property
    def runner_up(self) -> ScoredNode | None:
        """The best node that does not win."""
        return self.nodes[self.winners] if len(self.nodes) > self.winners else None

    @property
    def margin(self) -> int | None:
        """The winner's total less the runner-up's; None without one."""
        return self.nodes[0].total - self.runner_up.total if self.runner_up else None


def ranking(cycle: Cycle, limit: int | None = None) -> Ranking | None:
    """The best `limit` nodes, winners and runner-up in any case; None where nothing was scored."""
    scores = cycle.scores
    if scores is None:
        return None
    order = np.argsort(-scores.totals, kind="stable")
    winners = int(np.count_nonzero(scores.totals == scores.totals.max()))
    shown = order if limit is None else order[: max(limit, winners + 1)]
    nodes = tuple(scored(scores, row) for row in each_row(TableRows(shown)))
    leads: tuple[Lead, ...] = ()
    if len(nodes) > winners:
        leads = compared(nodes[0], nodes[winners])
    return Ranking(nodes=nodes, count=len(scores.nodes), winners=winners, leads=leads)


def scored(scores: Scores, row: TableRow) -> ScoredNode:
    """One node's scores. `row` is of `scores.nodes`."""
    return ScoredNode(
        row=row,
        name=scores.nodes.name(row),
        total=int(scores.totals[row]),
        contributions=tuple(
            Contribution(
                plugin=plugin,
                weight=weight,
                raw=int(scores.raw[plugin][row]),
                normalized=int(scores.normalized[plugin][row]),
            )
            for plugin, weight in scores.weights.items()
        )
        + tuple(
            Contribution(plugin=name, weight=1, raw=int(column[row]), normalized=int(column[row]))
            for name, column in scores.added.items()
        ),
    )


def compared(first: ScoredNode, second: ScoredNode) -> tuple[Lead, ...]:
    """Where the first node's total exceeds the second's, largest difference first; equal plugins are left out."""
    leads = (
        Lead(plugin=mine.plugin, difference=mine.weighted - other.weighted)
        for mine, other in zip(first.contributions, second.contributions, strict=True)
    )
    return tuple(sorted((lead for lead in leads if lead.difference), key=lambda lead: -lead.difference))


class Rule(Enum):
    """What each of preemption's rules compares, in their order."""

    PDB_VIOLATIONS = auto()
    HIGHEST_PRIORITY = auto()
    SUM_OF_PRIORITIES = auto()
    VICTIMS = auto()
    START = auto()


def deciding_rule(candidates: tuple[Candidate, ...], best: tuple[int, ...], pods: PodTable) -> Rule | None:
    """The rule that leaves only the `best` candidates (node rows); None where there was nothing to choose."""
    left = candidates
    for rule, measure in zip(Rule, RULES, strict=True):
        numbers = [measure(candidate, pods) for candidate in left]
        least = min(numbers, default=0)
        remaining = tuple(one for one, number in zip(left, numbers, strict=True) if number == least)
        if len(remaining) == len(best) and len(remaining) < len(left):
            return rule
        left = remaining
    return None
