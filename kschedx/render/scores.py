"""Which node wins and why: the ranking, and the score matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.text import Text

from kschedx.explain.ranking import Contribution, Ranking, ScoredNode
from kschedx.render.layout import BLANK, BOLD, DIM, columns, cut, joined, paragraph, text
from kschedx.render.safe import visible
from kschedx.render.units import count, listed

SHOWN = 4
"""Nodes in the first screen's ranking."""


def signed(number: int) -> str:
    """`+12`, `-3`, `·` for no difference."""
    return f"{number:+,}" if number else "·"


def decision(ranking: Ranking) -> str:
    """`NodeResourcesFit +9, ImageLocality +3, TaintToleration -2`."""
    return listed([f"{lead.plugin} {lead.difference:+,}" for lead in ranking.leads], 4)


def ranking_block(ranking: Ranking, width: int, shown: int = SHOWN) -> list[Text]:
    """The best nodes with their totals, and what each plugin gives them."""
    nodes = ranking.nodes[:shown]
    rows = [["rank", "node", "total", "behind"]]
    for number, node in enumerate(nodes, start=1):
        behind = nodes[0].total - node.total
        rank = str(number) if behind or number == 1 else "="
        rows.append([rank, cut(node.name, width - 26), f"{node.total:,}", f"{behind:,}" if behind else "best"])
    lines = columns(rows, right=frozenset({0, 2, 3}), header=True)
    for winner in lines[1 : ranking.winners + 1]:
        winner.stylize(BOLD)
    left = ranking.count - len(nodes)
    if left:
        best = ranking.nodes[len(nodes)].total if len(ranking.nodes) > len(nodes) else nodes[-1].total
        lines.append(text(f"      {count(left, 'more node')}, {best:,} at best", DIM))
    return [*lines, BLANK, *_by_plugin(nodes, ranking, width)]


def _by_plugin(nodes: tuple[ScoredNode, ...], ranking: Ranking, width: int) -> list[Text]:
    """A row per plugin, a column per node: what the plugin adds to the total. As many nodes as the width takes."""
    zero = [
        mine.plugin
        for index, mine in enumerate(nodes[0].contributions)
        if not any(node.contributions[index].weighted for node in nodes)
    ]
    table: list[Text] = []
    for shown in range(len(nodes), 0, -1):
        rows = _contributions(nodes[:shown], ranking, frozenset(zero))
        table = columns(rows, right=frozenset(range(1, len(rows[0]))), indent=2, header=True)
        if all(row.cell_len <= width for row in table):
            break
    told = f"0 for all of these: {', '.join(zero)}"
    return [*table, *(paragraph(told, width, first="  ", indent=4, style=DIM) if zero else [])]


def _contributions(nodes: tuple[ScoredNode, ...], ranking: Ranking, without: frozenset[str]) -> list[list[str]]:
    """Header, plugins and totals; the last column is the winner's lead, where the node behind it is shown too."""
    leads = {lead.plugin: lead.difference for lead in ranking.leads} if ranking.winners < len(nodes) else None
    last = [] if leads is None else [f"1 over {ranking.winners + 1}"]
    rows = [["score × weight", "weight", *(f"#{number}" for number in range(1, len(nodes) + 1)), *last]]
    for index, mine in enumerate(nodes[0].contributions):
        if mine.plugin not in without:
            values = [f"{node.contributions[index].weighted:,}" for node in nodes]
            lead = [] if leads is None else [signed(leads.get(mine.plugin, 0))]
            rows.append([mine.plugin, str(mine.weight), *values, *lead])
    lead = [] if leads is None else [signed(ranking.margin or 0)]
    return [*rows, ["total", "", *(f"{node.total:,}" for node in nodes), *lead]]


# --- matrices


def initials(names: Iterable[str]) -> dict[str, str]:
    """Each plugin's capitals as a column title, made longer where two would be the same: `NRF`, `TT`."""
    titles: dict[str, str] = {}
    for name in names:
        capitals = "".join(character for character in name if character.isupper()) or name[:3]
        title, length = capitals, 2
        while title in titles.values():
            title, length = name[:length], length + 1
        titles[name] = title
    return titles


def legend(titles: dict[str, str], width: int, weights: dict[str, int] | None = None) -> list[Text]:
    """What the columns' titles stand for."""
    items = (f"{title} {name}" + (f" ×{weights[name]}" if weights else "") for name, title in titles.items())
    return [text(row, DIM) for row in joined(map(visible, items), width)]


def matrices(ranking: Ranking, width: int) -> list[Text]:
    """All feasible nodes' scores: raw, normalized to 0..100, and weighted with totals."""
    first = ranking.nodes[0]
    titles = initials(one.plugin for one in first.contributions)
    lines = legend(titles, width, {one.plugin: one.weight for one in first.contributions})
    for title, value in _MATRICES:
        lines += [BLANK, text(title, BOLD)]
        header = ["node", *titles.values()]
        rows = [[node.name, *(f"{value(one):,}" for one in node.contributions)] for node in ranking.nodes]
        if title == "weighted":
            header += ["total", "behind"]
            rows = [
                [*row, f"{node.total:,}", f"{first.total - node.total:,}"]
                for row, node in zip(rows, ranking.nodes, strict=True)
            ]
        lines += columns([header, *rows], right=frozenset(range(1, len(header))), indent=2, header=True)
    return lines


_MATRICES: tuple[tuple[str, Callable[[Contribution], int]], ...] = (
    ("raw", lambda one: one.raw),
    ("normalized", lambda one: one.normalized),
    ("weighted", lambda one: one.weighted),
)
