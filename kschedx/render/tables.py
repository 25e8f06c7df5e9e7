"""Tables with a row for each node: who rejects it, plugin by plugin."""

from __future__ import annotations

from rich.text import Text

from kschedx.explain.diagnosis import Diagnosis
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code
from kschedx.render.layout import BOLD, DIM, columns, cut, ended, paragraph, text
from kschedx.render.scores import initials, legend
from kschedx.render.units import count
from kschedx.render.words import describe
from kschedx.snapshot.rows import TableRow

PASSES, REJECTS, SKIPPED = "✓", "✗", "·"
LONGEST_NAME = 48


def verdict_table(cycle: Cycle, width: int) -> list[Text]:
    """Nodes by plugins. The verdict is the first ✗: kube-scheduler looks no further."""
    if cycle.filter is None or cycle.nodes is None:
        return []
    plugins = cycle.filter.plugins
    titles = initials(plugins)
    marks = [
        [PASSES if code == Code.SUCCESS else REJECTS for code in verdicts.codes.tolist()]
        for verdicts in cycle.filter.verdicts
    ]
    for row in cycle.filter.with_nominated:
        marks[int(cycle.filter.plugin[row])][row] = REJECTS
    firsts = cycle.filter.plugin.tolist()
    rows = [
        [name, *(marks[index][row] for index in range(len(plugins))), plugins[first] if first >= 0 else "fits"]
        for row, (name, first) in enumerate(zip(cycle.nodes.names, firsts, strict=True))
    ]
    table = columns([["node", *titles.values(), "verdict"], *rows], indent=2, header=True)
    return [*legend(titles, width), *skipped_line(cycle, width), *table]


def skipped_line(cycle: Cycle, width: int) -> list[Text]:
    """The plugins that PreFilter found to have nothing to check for this pod."""
    assert cycle.filter is not None
    skipped = [plugin for plugin in cycle.profile.points.get("filter", ()) if plugin not in cycle.filter.plugins]
    told = f"nothing to check for this pod: {', '.join(skipped)}"
    return paragraph(told, width, indent=2, first=f"{SKIPPED} ", style=DIM) if skipped else []


def node_rows(diagnosis: Diagnosis, width: int) -> list[Text]:
    """A row per node of the cluster: its total and rank, or all that rejects it."""
    cycle = diagnosis.cycle
    totals: dict[str, str] = {}
    if cycle.scores is not None:
        scored = zip(cycle.scores.nodes.names, cycle.scores.totals.tolist(), strict=True)
        totals = {name: f"{total:,}" for name, total in scored}
    position = {} if cycle.nodes is None else dict(zip(cycle.nodes.names, cycle.nodes.each(), strict=True))
    names = cycle.all_nodes.names
    size = min(max((len(name) for name in names), default=4), LONGEST_NAME)
    room = max(width - size - 5, 30)
    rows = []
    for name in names:
        row = position.get(name)
        if row is None:
            mark, said = REJECTS, "PreFilter: not evaluated" if cycle.pre_filter else "not evaluated"
        elif cycle.filter is not None and cycle.filter.codes[row] == Code.SUCCESS:
            mark, said = PASSES, f"fits, total {totals[name]}" if name in totals else "fits"
        else:
            mark, said = REJECTS, _blockers(diagnosis, row)
        rows.append([mark, cut(name, LONGEST_NAME), ended(said, room)])
    return columns(rows)


def _blockers(diagnosis: Diagnosis, row: TableRow) -> str:
    blockers = diagnosis.detail(row).account.blockers
    first = blockers[0]
    headlines = [describe(finding).headline for finding in first.findings]
    also = f" (also {', '.join(one.plugin for one in blockers[1:])})" if len(blockers) > 1 else ""
    return (", ".join(headlines) or f"{first.plugin} rejects it") + also


def tables(diagnosis: Diagnosis, width: int) -> list[Text]:
    """The verdict table under its title."""
    table = verdict_table(diagnosis.cycle, width)
    return [text(f"verdicts on {count(diagnosis.total, 'node')}", BOLD), *table] if table else []
