"""Which node wins and why: the ranking, and the score matrices."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.cells import cell_len
from rich.text import Text

from kschedx.explain.ranking import Contribution, Ranking, ScoredNode
from kschedx.render.layout import BLANK, BOLD, DIM, columns, cut, joined, line, text
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
    size = max(min(max(cell_len(node.name) for node in nodes), width - 24), 20)
    lines = [text(f"{'rank':>4}  {'node'.ljust(size)}  {'total':>6}  behind", DIM)]
    for number, node in enumerate(nodes, start=1):
        behind = nodes[0].total - node.total
        row = f"{number if behind or number == 1 else '=':>4}  {cut(node.name, size).ljust(size)}  {node.total:>6,}  "
        lines.append(line((row + (f"{behind:>6,}" if behind else "best".rjust(6)), BOLD if not behind else "")))
    if ranking.count > len(nodes):
        best = ranking.nodes[len(nodes)].total if len(ranking.nodes) > len(nodes) else nodes[-1].total
        lines.append(text(f"      {count(ranking.count - len(nodes), 'more node')}, {best:,} at best", DIM))
    return [*lines, BLANK, *_by_plugin(nodes, ranking)]


def _by_plugin(nodes: tuple[ScoredNode, ...], ranking: Ranking) -> list[Text]:
    """A row per plugin, a column per node: what the plugin adds to the total."""
    compared = min(ranking.winners + 1, len(nodes))
    last = f"1 over {compared}" if len(nodes) > 1 and compared > ranking.winners else ""
    leads = {lead.plugin: lead.difference for lead in ranking.leads}
    rows = [["score × weight", "weight", *(f"#{number}" for number in range(1, len(nodes) + 1)), last]]
    nothing = []
    for index, mine in enumerate(nodes[0].contributions):
        if not any(node.contributions[index].weighted for node in nodes):
            nothing.append(mine.plugin)
            continue
        values = [f"{node.contributions[index].weighted:,}" for node in nodes]
        lead = signed(leads.get(mine.plugin, 0)) if last else ""
        rows.append([mine.plugin, str(mine.weight), *values, lead])
    rows.append(["total", "", *(f"{node.total:,}" for node in nodes), signed(ranking.margin or 0) if last else ""])
    table = columns(rows, right=frozenset(range(1, len(rows[0]))), indent=2, header=True)
    return [*table, *([text(f"  0 for all of these: {', '.join(nothing)}", DIM)] if nothing else [])]


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
