"""Tables with a row for each node: who rejects it, plugin by plugin."""

from __future__ import annotations

from rich.text import Text

from kschedx.explain.diagnosis import Diagnosis
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code
from kschedx.render.layout import BOLD, SEPARATOR, columns, cut, text
from kschedx.render.scores import initials, legend
from kschedx.render.units import count
from kschedx.render.words import describe

PASSES, REJECTS, SKIPPED = "✓", "✗", "·"
LONGEST_NAME = 48


def verdict_table(cycle: Cycle, width: int) -> list[Text]:
    """Nodes by plugins. The verdict is the first ✗: kube-scheduler looks no further. `·` is a plugin with nothing to
    check for this pod."""
    if cycle.filter is None or cycle.nodes is None:
        return []
    plugins = cycle.profile.points["filter"]
    titles = initials(plugins)
    marks = {}
    for plugin, verdicts in zip(cycle.filter.plugins, cycle.filter.verdicts, strict=True):
        marks[plugin] = [PASSES if code == Code.SUCCESS else REJECTS for code in verdicts.codes.tolist()]
    for row, status in cycle.filter.with_nominated.items():
        marks[status.plugin][row] = REJECTS
    rows = []
    for row, name in enumerate(cycle.nodes.names):
        first = int(cycle.filter.plugin[row])
        verdict = "fits" if first < 0 else cycle.filter.plugins[first]
        cells = [marks[plugin][row] if plugin in marks else SKIPPED for plugin in plugins]
        rows.append([name, *cells, verdict])
    table = columns([["node", *titles.values(), "verdict"], *rows], indent=2, header=True)
    return [*legend(titles, width), *table]


def node_rows(diagnosis: Diagnosis, width: int) -> list[Text]:
    """A row per node of the cluster: its total and rank, or all that rejects it."""
    cycle = diagnosis.cycle
    totals: dict[str, str] = {}
    if cycle.scores is not None:
        scored = zip(cycle.scores.nodes.names, cycle.scores.totals.tolist(), strict=True)
        totals = {name: f"{total:,}" for name, total in scored}
    position = {} if cycle.nodes is None else {name: row for row, name in enumerate(cycle.nodes.names)}
    names = cycle.all_nodes.names
    size = min(max((len(name) for name in names), default=4), LONGEST_NAME)
    room = max(width - size - 4, 30)
    rows = []
    for name in names:
        row = position.get(name)
        if row is None:
            mark, said = REJECTS, "PreFilter: not evaluated"
        elif cycle.filter is not None and cycle.filter.codes[row] == Code.SUCCESS:
            mark, said = PASSES, f"fits, total {totals[name]}" if name in totals else "fits"
        else:
            mark, said = REJECTS, _blockers(diagnosis, row)
        rows.append([mark, cut(name, LONGEST_NAME), cut(said, room)])
    return columns(rows)


def _blockers(diagnosis: Diagnosis, row: int) -> str:
    blockers = diagnosis.detail(row).account.blockers
    first = blockers[0]
    headlines = [describe(finding).headline for finding in first.findings]
    also = f" (also {', '.join(one.plugin for one in blockers[1:])})" if len(blockers) > 1 else ""
    return f"{first.plugin}{SEPARATOR}{', '.join(headlines)}{also}"


def tables(diagnosis: Diagnosis, width: int) -> list[Text]:
    """The verdict table under its title."""
    table = verdict_table(diagnosis.cycle, width)
    return [text(f"verdicts on {count(diagnosis.total, 'node')}", BOLD), *table] if table else []


