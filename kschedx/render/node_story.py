"""One node's whole story: every plugin's verdict on it, and its scores against the winner's."""

from __future__ import annotations

from rich.text import Text

from kschedx.explain.diagnosis import Diagnosis
from kschedx.explain.ranking import Ranking, ScoredNode, scored
from kschedx.framework.cycle import Cycle
from kschedx.framework.status import Code
from kschedx.render.blocks import eviction_facts, told
from kschedx.render.layout import BLANK, BOLD, DIM, columns, fact_lines, line, paragraph, text
from kschedx.render.scores import signed
from kschedx.render.tables import skipped_line
from kschedx.render.units import count
from kschedx.render.words import describe
from kschedx.snapshot.rows import ClusterRow, TableRow


def node_story(diagnosis: Diagnosis, ranking: Ranking | None, name: str, width: int) -> list[Text]:
    """`name` is a node of the cluster."""
    cycle = diagnosis.cycle
    node = cycle.all_nodes.cluster.index[name]
    row = _row_of(cycle, node)
    scores = _scored(cycle, name)
    lines = _title(diagnosis, ranking, name, row, scores, width)
    if row is None:
        return [*lines, *paragraph(_not_evaluated(diagnosis), width, indent=2)]
    lines += _verdicts(diagnosis, row, width)
    if scores is not None and ranking is not None:
        lines += [BLANK, *_scores(scores, ranking)]
    return lines


def _row_of(cycle: Cycle, node: ClusterRow) -> TableRow | None:
    """The node's row in the nodes that PreFilter left in."""
    return None if cycle.nodes is None else cycle.nodes.row_of(node)


def _scored(cycle: Cycle, name: str) -> ScoredNode | None:
    row = None if cycle.scores is None else cycle.scores.nodes.row_named(name)
    return None if cycle.scores is None or row is None else scored(cycle.scores, row)


def _title(
    diagnosis: Diagnosis,
    ranking: Ranking | None,
    name: str,
    row: TableRow | None,
    scores: ScoredNode | None,
    width: int,
) -> list[Text]:
    key = diagnosis.cycle.pod.key
    if row is None:
        said = f"{key} was not tried here"
    elif diagnosis.cycle.filter is not None and diagnosis.cycle.filter.codes[row] != Code.SUCCESS:
        blockers = diagnosis.detail(row).account.blockers
        said = f"{key} does not fit: {count(len(blockers), 'plugin rejects', 'plugins reject')} it"
    elif scores is None or ranking is None:
        said = f"{key} fits"
    else:
        behind = ranking.nodes[0].total - scores.total
        place = f"{behind:,} behind {ranking.nodes[0].name}" if behind else "the highest"
        said = f"{key} fits, total {scores.total:,}, {place}"
    return paragraph(f"{name}: {said}", width, indent=2, style=BOLD)


def _not_evaluated(diagnosis: Diagnosis) -> str:
    if diagnosis.excluded is not None:
        return f"PreFilter left it out: {', '.join(diagnosis.excluded.plugins)} names other nodes"
    if not diagnosis.cycle.pre_filter:
        return "kube-scheduler never sees this pod: no node was evaluated"
    return "PreFilter rejected the pod: no node was evaluated"


def _verdicts(diagnosis: Diagnosis, row: TableRow, width: int) -> list[Text]:
    cycle = diagnosis.cycle
    assert cycle.filter is not None
    detail = diagnosis.detail(row)
    blockers = {blocker.plugin: blocker for blocker in detail.account.blockers}
    lines: list[Text] = []
    passed = [plugin for plugin in cycle.filter.plugins if plugin not in blockers]
    if passed:
        lines += paragraph(f"✓ {', '.join(passed)}", width, first="  ", indent=4)
    for blocker in detail.account.blockers:
        aside = " (the verdict)" if blocker.is_verdict and len(blockers) > 1 else ""
        for finding in told(blocker):
            words = describe(finding, detail)
            lines += paragraph(f"✗ {blocker.plugin}{aside} · {words.headline}", width, first="  ", indent=4)
            for fact in words.facts:
                lines += [line("  ", one) for one in fact_lines(fact, width - 2)]
    if blockers:
        for fact in eviction_facts(detail):
            lines += [line("  ", one) for one in fact_lines(fact, width - 2)]
    return [*lines, *(line("  ", one) for one in skipped_line(cycle, width - 2))]


def _scores(node: ScoredNode, ranking: Ranking) -> list[Text]:
    """Raw, normalized and weighted of this node, and the winner's weighted score."""
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
                signed(mine.weighted - best.weighted),
            ]
        )
    rows.append(["total", "", "", "", f"{node.total:,}", f"{winner.total:,}", signed(node.total - winner.total)])
    return [
        *([text(f"  the winner is {winner.name}", DIM)] if winner.name != node.name else []),
        *columns(rows, right=frozenset(range(1, 7)), indent=2, header=True),
    ]
