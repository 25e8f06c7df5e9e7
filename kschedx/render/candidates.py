"""Preemption: the nodes where evicting pods makes room, and which of them kube-scheduler takes."""

from __future__ import annotations

from rich.text import Text

from kschedx.explain.holders import victims
from kschedx.explain.ranking import deciding_rule
from kschedx.framework.cycle import Cycle
from kschedx.framework.outcome import Candidate
from kschedx.render.layout import BOLD, DIM, fact_lines, line, paragraph, text
from kschedx.render.units import count, listed
from kschedx.render.wording import Fact
from kschedx.render.words.preemption import rule_text

SHOWN = 3
LINES_OF_BEST = 3


def candidates_block(cycle: Cycle, width: int, *, everything: bool = False) -> list[Text]:
    """Empty where preemption finds no node."""
    result = cycle.post_filter
    if result is None or not result.candidates:
        return []
    best = set(result.best)
    ordered = sorted(result.candidates, key=lambda candidate: candidate.node not in best)
    shown = ordered if everything else ordered[:SHOWN]
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
        return f"{title}: {listed(best, 3)} are equal, kube-scheduler takes any of them"
    rule = deciding_rule(result.candidates, result.best, cycle.snapshot.pods)
    return f"{title}: {best[0]} is best" + (f" by {rule_text(rule)}" if rule else "")


def _row(cycle: Cycle, candidate: Candidate, width: int, *, is_best: bool, everything: bool) -> list[Text]:
    gone = victims(cycle, candidate)
    broken = count(candidate.pdb_violations, "PodDisruptionBudget violation")
    name = cycle.all_nodes.cluster.names[candidate.node]
    budget = broken if candidate.pdb_violations else "no PodDisruptionBudget violated"
    first = line(("  ✓ " if is_best else "    "), (name, BOLD if is_best else ""), (f"  {budget}", DIM))
    pods = tuple(f"{victim.pod} (priority {victim.priority})" for victim in gone)
    rest = tuple(f"{len(pods) - shown:,} more" for shown in range(len(pods)))
    limit = None if everything else LINES_OF_BEST if is_best else 1
    evicts = Fact(label="evicts", items=pods, rest=rest)
    return [first, *(line("  ", one) for one in fact_lines(evicts, width - 2, limit))]
