"""The blocks of a screen about rejected nodes and preemption."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import assert_never

from kschedx.explain.diagnosis import (
    Diagnosis,
    EvictionVerdict,
    ExcludedNodes,
    NodeDetail,
    PreemptionOutcome,
    Stop,
    victims,
)
from kschedx.explain.node_groups import Blocker, NodeGroup, only_repeats_cordon
from kschedx.explain.ranking import deciding_rule
from kschedx.findings import Finding, InsufficientResource, PluginMessage, TopologySpreadSkew
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Candidate
from kschedx.grouping import group_pairs
from kschedx.kube.names import HOSTNAME
from kschedx.render.terminal import (
    BOLD,
    DIM,
    INDENT,
    LABEL,
    StyledLine,
    fact_block,
    fact_lines,
    fits,
    line,
    paragraph,
    text,
)
from kschedx.wording import Brief, Fact, balance, count, list_names
from kschedx.words import describe
from kschedx.words.reasons import reason_page

# Preemption: the nodes where evicting pods makes room, and which of them kube-scheduler selects.

_SHOWN = 3
_LINES_OF_BEST = 3


def candidates_block(cycle: Cycle, width: int, *, everything: bool = False) -> list[StyledLine]:
    """Return the block, which is empty if preemption has no candidate."""
    result = cycle.post_filter
    if result is None or not result.candidates:
        return []
    best = set(result.best)
    ordered = sorted(result.candidates, key=lambda candidate: candidate.node not in best)
    shown = ordered if everything else ordered[:_SHOWN]
    lines = paragraph(_title(cycle), width, indent=2, style=BOLD)
    for candidate in shown:
        lines += _row(cycle, candidate, width, is_best=candidate.node in best, everything=everything)
    if len(ordered) > len(shown):
        lines.append(text(f"    {count(len(ordered) - len(shown), 'more candidate')}: -o wide shows all", DIM))
    return lines


def _title(cycle: Cycle) -> str:
    result = cycle.post_filter
    assert result is not None
    names = cycle.all_nodes.cluster.names
    best = [names[row] for row in result.best]
    title = f"preemption makes room on {count(len(result.candidates), 'node')}"
    if len(best) > 1:
        return f"{title}: {list_names(best, 3)} are equal, kube-scheduler selects any of them"
    rule = deciding_rule(result.candidates, result.best, cycle.snapshot.pods)
    return f"{title}: {best[0]} is best" + (f" by {rule}" if rule else "")


def _row(cycle: Cycle, candidate: Candidate, width: int, *, is_best: bool, everything: bool) -> list[StyledLine]:
    gone = victims(cycle, candidate)
    broken = count(candidate.pdb_violations, "PodDisruptionBudget violation")
    name = cycle.all_nodes.cluster.names[candidate.node]
    budget = broken if candidate.pdb_violations else "no PodDisruptionBudget violated"
    first = line(("  ✓ " if is_best else "    "), (name, BOLD if is_best else ""), (f"  {budget}", DIM))
    pods = tuple(f"{victim.pod} (priority {victim.priority})" for victim in gone)
    limit = None if everything else _LINES_OF_BEST if is_best else 1
    evicts = Fact.of("evicts", *pods)
    return [first, *(line("  ", fact_line) for fact_line in fact_lines(evicts, width - 2, limit))]


# What rejects the pod: a block for each group of nodes, and one for what rejects the pod as a whole.

_NEIGHBOURS = 3  # the number of a group's other nodes that are named in one line, besides the exemplar
_SHOWN_PODS = 3


class Level(IntEnum):
    """How much of a block is shown."""

    LINE = 0  # the verdict's headline, with the number of further blockers
    BRIEF = 1  # one line for each fact with numbers
    FACTS = 2  # every fact
    FULL = 3
    ALL = 4


_MOST_LINES = {Level.LINE: 0, Level.BRIEF: 1, Level.FACTS: 2, Level.FULL: 4, Level.ALL: None}
"""The maximum number of lines of each fact; None if there is no limit."""


def group_block(
    diagnosis: Diagnosis, group: NodeGroup, width: int, level: Level, *, eviction: bool = True
) -> list[StyledLine]:
    """Return the block of a group: its exemplar's blockers with numbers, whether eviction helps, and the group's other
    nodes."""
    detail = diagnosis.detail(group.rows[0])
    nodes = f"({count(group.count, 'node')})" if group.count > 1 else ""
    helped = _helped_count(diagnosis, group)
    lines = _detail_block(detail, width, level, where=_place_name(group), aside=nodes, eviction=eviction, helped=helped)
    if group.count > 1 and level >= Level.BRIEF:
        lines += fact_block(_total_free(diagnosis, group), width)
        others = _others(diagnosis, group, level)
        lines += fact_lines(others, width, None if level is Level.ALL else 1) if others else []
    return lines


def _detail_block(
    detail: NodeDetail,
    width: int,
    level: Level,
    *,
    where: str = "",
    aside: str = "",
    eviction: bool = True,
    helped: int = 0,
) -> list[StyledLine]:
    """Return one node's blockers, the verdict first. `helped` is the number of the group's other nodes on which
    eviction helps."""
    lines: list[StyledLine] = []
    limit = _MOST_LINES[level]
    pairs = [(blocker, finding) for blocker in detail.account.blockers for finding in shown_findings(blocker)]
    if level is not Level.ALL and len(pairs) > 1:
        pairs = [pair for pair in pairs if not only_repeats_cordon(pair[1])] or pairs
    if level is Level.LINE:
        further = sum(not only_repeats_cordon(finding) for _, finding in pairs[1:])
        aside = " ".join(filter(None, (aside, f"+ {count(further, 'more blocker')}" if further else "")))
        pairs = pairs[:1]
    for number, (blocker, finding) in enumerate(pairs):
        words = describe(finding, detail)
        nominated = " (counting the pods nominated for it)" if blocker.with_nominated else ""
        headline = f"✗ {blocker.plugin}: {words.headline}{nominated}"
        if number == 0:
            lines += _heading_lines(where or detail.account.name, headline, aside, width)
        else:
            lines += _also(headline, width)
        if level is not Level.LINE and not only_repeats_cordon(finding):
            lines += fact_block((*words.facts, *_docs(finding, level)), width, limit)
    if eviction and level is not Level.LINE:
        facts = eviction_facts(detail, helped) if level is Level.ALL else _worth_saying(detail, helped)
        lines += fact_block(facts, width, limit)
    return lines


def _docs(finding: Finding, level: Level) -> tuple[Fact, ...]:
    """Return the page about the reason, if everything is shown."""
    return (Fact.of("docs", reason_page(finding.reason), whole=True),) if level is Level.ALL else ()


def _helped_count(diagnosis: Diagnosis, group: NodeGroup) -> int:
    """Return the number of the group's other nodes on which preemption makes room."""
    nodes, result = diagnosis.cycle.nodes, diagnosis.cycle.post_filter
    if nodes is None or result is None or not result.candidates:
        return 0
    candidates = {candidate.node for candidate in result.candidates}
    return sum(nodes.cluster_row(row) in candidates for row in group.rows[1:])


def shown_findings(blocker: Blocker) -> tuple[Finding, ...]:
    """Return the blocker's findings, or a general one: a plugin of another package may reject without any."""
    return blocker.findings or (PluginMessage(text="rejects the node"),)


def _heading_lines(where: str, headline: str, aside: str, width: int) -> list[StyledLine]:
    whole = f"{where} {headline}   {aside}".rstrip()
    if fits(whole, width):
        return [line((where, BOLD), f" {headline}", (f"   {aside}" if aside else "", DIM))]
    beside = f"   {aside}" if aside else ""
    lines = [line((where, BOLD), (beside, DIM))]
    if not fits(f"{where}{beside}", width):
        lines = [
            *paragraph(where, width, style=BOLD),
            *(paragraph(aside, width, indent=INDENT, style=DIM) if aside else []),
        ]
    return [*lines, *paragraph(headline, width, first=" " * INDENT, indent=INDENT + 2)]


def _also(headline: str, width: int) -> list[StyledLine]:
    return paragraph(headline, width, first=" " * INDENT + "also".ljust(LABEL), indent=INDENT + LABEL + 2)


def _place_name(group: NodeGroup) -> str:
    """Return the name of a node, or the domain of its first finding."""
    finding = next(iter(group.exemplar.findings), None)
    if isinstance(finding, TopologySpreadSkew) and finding.topology_key != HOSTNAME and group.count > 1:
        return f"{finding.topology_key.rpartition('/')[2]} {finding.domain}"
    return group.exemplar.name


def _others(diagnosis: Diagnosis, group: NodeGroup, level: Level) -> Fact | None:
    """Return the other nodes of a group with what differs, nearest first; None if there would be only names."""
    by_domain = _place_name(group) != group.exemplar.name
    rows = group.rows[0 if by_domain else 1 :]
    shown = rows if level is Level.ALL else rows[:_NEIGHBOURS]
    briefs = [_brief(diagnosis.detail(row)) for row in shown]
    differ = len(set(briefs)) > 1 or briefs[0] != _brief(diagnosis.detail(group.rows[0]))
    if not differ and level is not Level.ALL:
        return None
    names = [diagnosis.detail(row).account.name for row in shown]
    items = [
        f"{name} {brief}" if differ and brief and name not in brief else name
        for name, brief in zip(names, briefs, strict=True)
    ]
    left = len(rows) - len(items)
    if left:
        items.append(f"{left:,} more")
    return Fact.of(
        "nodes" if by_domain else "others",
        *items,
        rest=tuple(f"{len(rows) - number:,} more" for number in range(len(items))),
    )


def _total_free(diagnosis: Diagnosis, group: NodeGroup) -> list[Fact]:
    """Return the free amount of all nodes of the group together, if that would be enough."""
    finding = next(iter(group.exemplar.findings), None)
    if not isinstance(finding, InsufficientResource) or len(group.exemplar.findings) > 1:
        return []
    free = diagnosis.free(group.rows, finding.resource)
    if free < finding.requested:
        return []
    sums = balance(finding.resource, requested=finding.requested, allocatable=finding.allocatable, used=finding.used)
    amount = sums.in_same_unit(finding.resource, (free,))[0]
    free_text = f"{amount} free on these {count(group.count, 'node')}, not enough on any one node"
    return [Fact.of("in total", free_text)]


def _brief(detail: NodeDetail) -> str:
    briefs = (describe(finding).brief for finding in detail.account.findings)
    return _brief_text(brief for brief in briefs if brief)


def _brief_text(briefs: Iterable[Brief]) -> str:
    together = group_pairs(((brief.lead, brief.tail), brief.detail) for brief in briefs)
    return "; ".join(lead + ", ".join(details) + tail for (lead, tail), details in together.items())


# --- eviction


def eviction_facts(detail: NodeDetail, helped: int = 0) -> list[Fact]:
    """Return whether evicting pods could help, and which pods would make room."""
    eviction = detail.eviction
    items = [_eviction(eviction, detail)]
    if helped and eviction.answer is not EvictionVerdict.HELPS:
        items.append(f"helps on {count(helped, 'other node')}")
    facts = [Fact.of("eviction", *items, whole=True)]
    if eviction.enough:
        short = next(finding for finding in detail.account.findings if isinstance(finding, InsufficientResource))
        sums = balance(short.resource, requested=short.requested, allocatable=short.allocatable, used=short.used)
        texts = sums.in_same_unit(short.resource, tuple(holder.amount for holder in eviction.enough))
        pods = [f"{holder.pod} ({text})" for holder, text in zip(eviction.enough, texts, strict=True)]
        lead = "enough after evicting any one of " if len(pods) > 1 else "enough after evicting "
        facts.append(Fact.of("room", lead + pods[0], *pods[1:]))
    return facts


def _worth_saying(detail: NodeDetail, helped: int) -> list[Fact]:
    """Return the facts about eviction that neither kube-scheduler's own text nor the fixes show."""
    verdict = detail.eviction.answer
    if verdict in (EvictionVerdict.UNRESOLVABLE, EvictionVerdict.NO_LOWER_PRIORITY) and not helped:
        return []
    return eviction_facts(detail, helped)[:1]


def _eviction(eviction: PreemptionOutcome, detail: NodeDetail) -> str:
    match eviction.answer:
        case EvictionVerdict.HELPS:
            broken = (
                f", violating {count(eviction.pdb_violations, 'PodDisruptionBudget')}"
                if eviction.pdb_violations
                else ""
            )
            victims = list_names([f"{pod.pod} ({pod.priority_text})" for pod in eviction.victims], _SHOWN_PODS)
            return f"helps: evicts {victims}{broken}"
        case EvictionVerdict.UNRESOLVABLE:
            only = sum(not all(map(only_repeats_cordon, blocker.findings)) for blocker in detail.account.blockers) == 1
            return "cannot help" if only else f"cannot help: {eviction.plugin} rejects the node even without pods"
        case EvictionVerdict.NOT_ALLOWED:
            lower = count(eviction.lower, "pod here has", "pods here have")
            return f"not allowed: preemptionPolicy is Never ({lower} a lower priority)"
        case EvictionVerdict.NO_LOWER_PRIORITY:
            return "cannot help: no pod here has a lower priority"
        case EvictionVerdict.NOT_ENOUGH:
            lower = "the only pod" if eviction.lower == 1 else f"all {eviction.lower:,} pods"
            return f"cannot help: the pod does not fit even without {lower} of lower priority"
        case EvictionVerdict.NOT_TRIED:
            return f"not tried: {count(eviction.lower, 'pod here has', 'pods here have')} a lower priority"
        case _:
            assert_never(eviction.answer)


# --- the pod as a whole


def stop_block(stop: Stop, where: str, width: int, level: Level) -> list[StyledLine]:
    """Return what rejects the pod before any node is evaluated."""
    lines: list[StyledLine] = []
    aside = "PreFilter: no node is evaluated" if stop.point == "PreFilter" else "PreEnqueue: not in the queue"
    findings = stop.status.findings or (PluginMessage(text=stop.status.message or "rejects the pod"),)
    for number, finding in enumerate(findings):
        words = describe(finding)
        plugin = f"{stop.status.plugin}: " if stop.status.plugin else ""
        headline = f"✗ {plugin}{words.headline}"
        lines += _heading_lines(where, headline, aside, width) if number == 0 else _also(headline, width)
        facts = (*words.facts, *_docs(finding, level)) if level is not Level.LINE else ()
        lines += fact_block(facts, width, _MOST_LINES[level])
    return lines


def excluded_block(excluded: ExcludedNodes, width: int) -> list[StyledLine]:
    """Return one line about the nodes that PreFilter excludes."""
    plugins = ", ".join(excluded.plugins)
    only = f"the pod names only {list_names(excluded.names, 3)}" if excluded.names else "the pod names no existing node"
    return _heading_lines(
        count(excluded.count, "other node"), f"✗ {plugins}: {only}", "PreFilter: not evaluated", width
    )
