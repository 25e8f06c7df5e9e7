"""The scores: the ranking, which shows the winning node and why it wins, and the score matrices."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from itertools import chain

from rich.cells import cell_len

from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.kubelet import start_obstacle
from kschedx.explain.ranking import Contribution, Ranking, ScoredNode, joined_later, scored_node
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code
from kschedx.render.blocks import eviction_facts, shown_findings
from kschedx.render.terminal import (
    BLANK,
    BOLD,
    DIM,
    StyledLine,
    columns,
    fact_block,
    join_items,
    line,
    paragraph,
    shown,
    text,
    title_lines,
    wrap,
)
from kschedx.render.view import Tone
from kschedx.snapshot.columns import TableRow
from kschedx.wording import count, visible
from kschedx.words import describe

SHOWN = 4  # nodes in the first screen's ranking


def _format_signed(number: int) -> str:
    """Return `+12`, `-3`, or `·` for no difference."""
    return f"{number:+,}" if number else "·"


def ranking_block(ranking: Ranking, width: int, shown: int = SHOWN, *, by_plugin: bool = True) -> list[StyledLine]:
    """Return the best nodes with their totals, and what each plugin contributes."""
    nodes = ranking.nodes[:shown]
    rows = [["rank", "node", "score", "behind"]]
    for number, node in enumerate(nodes, start=1):
        behind = nodes[0].total - node.total
        rank = str(number) if behind or number == 1 else "="
        rows.append([rank, node.name, f"{node.total:,}", f"{behind:,}" if behind else "best"])
    lines = columns(rows, right=frozenset({0, 2, 3}), header=True, width=width, name=1)
    lines[1 : ranking.winners + 1] = [winner.add_style(BOLD) for winner in lines[1 : ranking.winners + 1]]
    left = ranking.count - len(nodes)
    if left:
        best = ranking.nodes[len(nodes)].total if len(ranking.nodes) > len(nodes) else nodes[-1].total
        lines.append(text(f"      {count(left, 'more node')}, score at most {best:,}", DIM))
    return [*lines, BLANK, *_plugin_table(nodes, ranking, width)] if by_plugin else lines


def _plugin_table(nodes: tuple[ScoredNode, ...], ranking: Ranking, width: int) -> list[StyledLine]:
    """Return a row for each plugin and a column for each node, with what the plugin adds to the total. It has as many
    nodes as fit the width."""
    zero = [
        mine.plugin
        for index, mine in enumerate(nodes[0].contributions)
        if not any(node.contributions[index].weighted for node in nodes)
    ]
    table: list[StyledLine] = []
    for number in range(len(nodes), 0, -1):
        rows = _contributions(nodes[:number], ranking, frozenset(zero))
        table = columns(rows, right=frozenset(range(1, len(rows[0]))), indent=2, header=True)
        if all(row.cell_len <= width for row in table):
            break
    phrase = f"0 for all of these nodes: {', '.join(zero)}"
    return [*table, *(paragraph(phrase, width, first="  ", indent=4, style=DIM) if zero else [])]


def _contributions(nodes: tuple[ScoredNode, ...], ranking: Ranking, without: frozenset[str]) -> list[list[str]]:
    """Return header, plugins, and totals. The last column is the winner's lead, if the node behind it is also shown."""
    leads = {lead.plugin: lead.difference for lead in ranking.leads} if ranking.winners < len(nodes) else None
    last = [] if leads is None else [f"#1 - #{ranking.winners + 1}"]
    rows = [["score × weight", "weight", *(f"#{number}" for number in range(1, len(nodes) + 1)), *last]]
    for index, mine in enumerate(nodes[0].contributions):
        if mine.plugin not in without:
            values = [f"{node.contributions[index].weighted:,}" for node in nodes]
            lead = [] if leads is None else [_format_signed(leads.get(mine.plugin, 0))]
            rows.append([mine.plugin, str(mine.weight), *values, *lead])
    lead = [] if leads is None else [_format_signed(ranking.margin or 0)]
    return [*rows, ["total", "", *(f"{node.total:,}" for node in nodes), *lead]]


# --- matrices


def _initials(names: Iterable[str]) -> dict[str, str]:
    """Return each plugin's capitals as a column title, longer if two would be the same: `NRF`, `TT`."""
    titles: dict[str, str] = {}
    for name in names:
        capitals = "".join(character for character in name if character.isupper()) or name[:3]
        longer = (name[:length] for length in range(2, len(name) + 1))
        numbered = (f"{name}{number}" for number in itertools.count(2))
        known = titles.values()
        titles[name] = next(title for title in chain((capitals,), longer, numbered) if title not in known)
    return titles


def _legend(titles: dict[str, str], width: int, weights: dict[str, int] | None = None) -> list[StyledLine]:
    """Return the plugins that the columns' titles stand for."""
    items = (f"{title} {name}" + (f" ×{weights[name]}" if weights else "") for name, title in titles.items())
    return [text(row, DIM) for row in join_items(map(visible, items), width)]


def matrices(ranking: Ranking, width: int) -> list[StyledLine]:
    """Return the scores of all feasible nodes: raw, normalized to 0..100, and weighted with totals."""
    first = ranking.nodes[0]
    titles = _initials(contribution.plugin for contribution in first.contributions)
    lines = _legend(titles, width, {contribution.plugin: contribution.weight for contribution in first.contributions})
    for title, value in _MATRICES:
        lines += [BLANK, text(title, BOLD)]
        header = ["node", *titles.values()]
        rows = [[it.name, *(f"{value(contribution):,}" for contribution in it.contributions)] for it in ranking.nodes]
        if title == "weighted":
            header += ["total", "behind"]
            rows = [
                [*row, f"{node.total:,}", f"{first.total - node.total:,}"]
                for row, node in zip(rows, ranking.nodes, strict=True)
            ]
        lines += columns([header, *rows], right=frozenset(range(1, len(header))), indent=2, header=True)
    return lines


_MATRICES: tuple[tuple[str, Callable[[Contribution], int]], ...] = (
    ("raw", lambda contribution: contribution.raw),
    ("normalized", lambda contribution: contribution.normalized),
    ("weighted", lambda contribution: contribution.weighted),
)


# Tables with a row for each node and the plugins that reject it.

_PASSES, _REJECTS, _SKIPPED = "✓", "✗", "·"


def _verdict_table(cycle: Cycle, width: int) -> list[StyledLine]:
    """Return nodes by plugins. The verdict is the first ✗, where kube-scheduler stops."""
    if cycle.filter is None or cycle.nodes is None:
        return []
    plugins = cycle.filter.plugins
    titles = _initials(plugins)
    marks = [
        [_PASSES if code == Code.SUCCESS else _REJECTS for code in verdicts.codes.tolist()]
        for verdicts in cycle.filter.verdicts
    ]
    for row in cycle.filter.with_nominated:
        marks[int(cycle.filter.plugin[row])][row] = _REJECTS
    firsts = cycle.filter.plugin.tolist()
    rows = [
        [name, *(marks[index][row] for index in range(len(plugins))), plugins[first] if first >= 0 else "fits"]
        for row, (name, first) in enumerate(zip(cycle.nodes.names, firsts, strict=True))
    ]
    table = columns([["node", *titles.values(), "verdict"], *rows], indent=2, header=True)
    return [*_legend(titles, width), *_skipped_line(cycle, width), *table]


def _skipped_line(cycle: Cycle, width: int) -> list[StyledLine]:
    """Return the plugins that PreFilter skips because they have nothing to check for this pod."""
    assert cycle.filter is not None
    skipped = [plugin for plugin in cycle.profile.points.get("filter", ()) if plugin not in cycle.filter.plugins]
    phrase = f"skipped for this pod: {', '.join(skipped)}"
    return paragraph(phrase, width, indent=2, first=f"{_SKIPPED} ", style=DIM) if skipped else []


def node_rows(diagnosis: Diagnosis, width: int) -> list[StyledLine]:
    """Return a row for each node of the cluster: its total and rank, or all that rejects it."""
    cycle = diagnosis.cycle
    totals: dict[str, str] = {}
    if cycle.scores is not None:
        scored = zip(cycle.scores.nodes.names, cycle.scores.totals.tolist(), strict=True)
        totals = {name: f"{total:,}" for name, total in scored}
    position = {} if cycle.nodes is None else dict(zip(cycle.nodes.names, cycle.nodes.each(), strict=True))
    names = cycle.all_nodes.names
    room = max(width - max((cell_len(shown(name)) for name in names), default=4) - 5, 30)
    rows = []
    for name in names:
        row = position.get(name)
        if row is None:
            mark, verdict = _REJECTS, "PreFilter: not evaluated" if cycle.pre_filter else "not evaluated"
        elif cycle.filter is not None and cycle.filter.codes[row] == Code.SUCCESS:
            mark, verdict = _PASSES, f"fits, score {totals[name]}" if name in totals else "fits"
        else:
            mark, verdict = _REJECTS, _blockers(diagnosis, row)
        first, *others = wrap(shown(verdict), room)
        rows += [[mark, name, first], *(["", "", other] for other in others)]
    return columns(rows, width=width, name=1)


def _blockers(diagnosis: Diagnosis, row: TableRow) -> str:
    blockers = diagnosis.detail(row).account.blockers
    first = blockers[0]
    headlines = [describe(finding).headline for finding in first.findings]
    also = f" (also {', '.join(blocker.plugin for blocker in blockers[1:])})" if len(blockers) > 1 else ""
    return (", ".join(headlines) or f"{first.plugin} rejects it") + also


def tables(diagnosis: Diagnosis, width: int) -> list[StyledLine]:
    """Return the verdict table below its title."""
    table = _verdict_table(diagnosis.cycle, width)
    return [text(f"verdicts on {count(diagnosis.total, 'node')}", BOLD), *table] if table else []


# One node in detail: every plugin's verdict on it, and its scores next to the winner's.


def node_verdict_lines(
    diagnosis: Diagnosis, ranking: Ranking | None, name: str, width: int, reason: str = ""
) -> list[StyledLine]:
    """Return the verdicts and scores of a node of the cluster; `reason` is why the best one scores higher."""
    row, scores = _row_of(diagnosis, name), _scored_node(diagnosis.cycle, name)
    lines = title_lines(*node_headline(diagnosis, ranking, name), width)
    if row is None:
        return [*lines, *paragraph(_unevaluated_text(diagnosis), width, indent=2)]
    cluster, assigned = diagnosis.cycle.all_nodes.cluster, diagnosis.cycle.pod.status.start_time
    if assigned and joined_later([cluster.nodes[cluster.index[name]]], assigned):
        moves = "kube-scheduler does not move pods that have a node"
        lines += paragraph(f"{name} joined after the pod was assigned; {moves}", width, first="  ", indent=2)
    if reason:
        lines += paragraph(reason, width, first="  ", indent=2)
    lines += _verdicts(diagnosis, row, width)
    if scores is not None and ranking is not None:
        lines += [BLANK, *_scores(scores, ranking, width)]
    return lines


def _scored_node(cycle: Cycle, name: str) -> ScoredNode | None:
    row = None if cycle.scores is None else cycle.scores.nodes.row_named(name)
    return None if cycle.scores is None or row is None else scored_node(cycle.scores, row)


def node_headline(diagnosis: Diagnosis, ranking: Ranking | None, name: str) -> tuple[str, Tone]:
    """Return whether the pod fits a node of the cluster: `n2: shop/web does not fit: 1 plugin rejects it`."""
    cycle, row, scores = diagnosis.cycle, _row_of(diagnosis, name), _scored_node(diagnosis.cycle, name)
    tone = Tone.GOOD
    if row is None:
        tone, verdict = Tone.BAD, "was not tried here"
    elif cycle.filter is not None and cycle.filter.codes[row] != Code.SUCCESS:
        blockers = diagnosis.detail(row).account.blockers
        tone, verdict = Tone.BAD, f"does not fit: {count(len(blockers), 'plugin rejects', 'plugins reject')} it"
    elif (obstacle := start_obstacle(cycle.snapshot, cycle.pod, name)) is not None:
        tone, verdict = Tone.BAD, f"fits, but cannot start there: {obstacle.why}"
    elif cycle.nominated not in (None, cycle.all_nodes.cluster.index[name]):
        verdict = f"fits, but kube-scheduler tries its nominated node {cycle.all_nodes.names[cycle.nominated]} first"
    elif scores is None or ranking is None:
        verdict = "fits"
    else:
        behind, tied = ranking.nodes[0].total - scores.total, ranking.winners - 1
        place = "the highest" + (f", as {count(tied, 'other node')}: one is picked at random" if tied else "")
        place = f"{behind:,} behind {ranking.nodes[0].name}" if behind else place
        verdict = f"fits, total {scores.total:,}, {place}"
    return f"{name}: {cycle.pod.key} {verdict}", tone


def _row_of(diagnosis: Diagnosis, name: str) -> TableRow | None:
    cycle = diagnosis.cycle
    return None if cycle.nodes is None else cycle.nodes.row_of(cycle.all_nodes.cluster.index[name])


def _unevaluated_text(diagnosis: Diagnosis) -> str:
    if diagnosis.excluded is not None:
        return f"PreFilter excludes it: {', '.join(diagnosis.excluded.plugins)} names other nodes"
    if not diagnosis.cycle.pre_filter:
        return "kube-scheduler never sees this pod: no node was evaluated"
    return "PreFilter rejected the pod: no node was evaluated"


def _verdicts(diagnosis: Diagnosis, row: TableRow, width: int) -> list[StyledLine]:
    cycle = diagnosis.cycle
    assert cycle.filter is not None
    detail = diagnosis.detail(row)
    blockers = {blocker.plugin: blocker for blocker in detail.account.blockers}
    lines: list[StyledLine] = []
    passed = [plugin for plugin in cycle.filter.plugins if plugin not in blockers]
    if passed:
        lines += paragraph(f"✓ {', '.join(passed)}", width, first="  ", indent=4)
    for blocker in detail.account.blockers:
        aside = " (the verdict)" if blocker.is_verdict and len(blockers) > 1 else ""
        for finding in shown_findings(blocker):
            words = describe(finding, detail)
            lines += paragraph(f"✗ {blocker.plugin}{aside}: {words.headline}", width, first="  ", indent=4)
            lines += [line("  ", row) for row in fact_block(words.facts, width - 2)]
    if blockers:
        lines += [line("  ", row) for row in fact_block(eviction_facts(detail), width - 2)]
    return [*lines, *(line("  ", skipped) for skipped in _skipped_line(cycle, width - 2))]


def _scores(node: ScoredNode, ranking: Ranking, width: int) -> list[StyledLine]:
    """Return the raw, normalized, and weighted scores of this node, and the winner's weighted score."""
    winner = ranking.nodes[0]
    rows = [["plugin", "raw", "normalized", "weight", "weighted", "winner", "difference"]]
    for mine, best in zip(node.contributions, winner.contributions, strict=True):
        rows.append(
            [
                mine.plugin,
                f"{mine.raw:,}",
                f"{mine.normalized:,}",
                f"× {mine.weight}",
                f"{mine.weighted:,}",
                f"{best.weighted:,}",
                _format_signed(mine.weighted - best.weighted),
            ]
        )
    rows.append(
        ["total", "", "", "", f"{node.total:,}", f"{winner.total:,}", _format_signed(node.total - winner.total)]
    )
    return [
        *([text(f"  the winner is {winner.name}", DIM)] if winner.total != node.total else []),
        *columns(rows, right=frozenset(range(1, 7)), indent=2, header=True, width=width),
    ]
