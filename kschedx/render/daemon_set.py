"""The screen of `kschedx why ds/NAME`: its nodes by what becomes of a pod there."""

from __future__ import annotations

from rich.text import Text

from kschedx.answer.daemon_set import DaemonSetAnswer
from kschedx.explain.grouping import NodeGroup
from kschedx.explain.notes.admission import ROUTINE
from kschedx.framework.cycle import Outcome
from kschedx.render import terminal
from kschedx.render.fixes import fixes_block
from kschedx.render.layout import BAD, BLANK, BOLD, DIM, GOOD, fact_lines, line, paragraph
from kschedx.render.units import count, listed
from kschedx.render.words import describe, headline

SHOWN_NODES = 3
MOST_GROUPS = 6
_FIX_LINES = 6


def print_daemon_set(answer: DaemonSetAnswer, *, wide: bool = False) -> None:
    out = terminal.console()
    terminal.write(daemon_set(answer, width=out.width, wide=wide), out)


def daemon_set(answer: DaemonSetAnswer, *, width: int, wide: bool = False) -> list[Text]:
    waiting = sum(group.count for group in answer.waits)
    aside = sum(group.count for group in answer.left_out)
    total = len(answer.explanation.cycle.all_nodes)
    aside += total - waiting - aside - len(answer.runs)
    good = answer.outcome is Outcome.SCHEDULED
    meant = total - aside
    share = "" if len(answer.runs) == meant else f"{len(answer.runs):,} of "
    if meant:
        parts = [f"fits on {share}the {count(meant, 'node')} that it is for"]
        parts += [f"waits on {waiting:,}"] if waiting else []
        parts += [f"leaves out {aside:,}"] if aside else []
    else:
        parts = [f"is for none of the {total:,} nodes" if total > 1 else "is not for the only node"]
    mark, style = ("✓ ", GOOD) if good else ("✗ ", BAD)
    lines = paragraph(f"DaemonSet {answer.name} {', '.join(parts)}", width, first=mark, style=style or BOLD)
    if answer.diagnosis.stops:
        return [*lines, *_stopped(answer, width)]
    if not meant:
        lines += fixes_block(answer.explanation, width, _FIX_LINES)
    if answer.refused:
        whichever = "whichever it is" if answer.refused == 1 else "whichever they are"
        told = f"{count(answer.refused, 'node')}, {whichever}: the API server refuses the pod"
        lines += [BLANK, *paragraph(told, width, first="✗ ", style=BAD)]
        lines += paragraph(answer.refusal, width, first="  refused   ")
    for group in answer.waits if wide else answer.waits[:MOST_GROUPS]:
        lines += [BLANK, *_group(answer, group, "✗ ", BAD, width, wide=wide), *_fix(answer, group, width)]
    if answer.runs:
        shown = len(answer.runs) if wide else SHOWN_NODES
        lines += [BLANK, *paragraph(f"{count(len(answer.runs), 'node')}: fits", width, first="✓ ", style=GOOD)]
        lines += paragraph(listed(answer.runs, shown), width, first="  ", style=DIM)
    for group in answer.left_out if wide else answer.left_out[:MOST_GROUPS]:
        lines += [BLANK, *_group(answer, group, "· ", "", width, wide=wide)]
        if wide or not meant:
            facts = (fact for finding in group.exemplar.findings for fact in describe(finding).facts)
            lines += [made for fact in facts for made in fact_lines(fact, width)]
    hidden = max(len(answer.waits) - MOST_GROUPS, 0) + max(len(answer.left_out) - MOST_GROUPS, 0)
    if hidden and not wide:
        lines += [BLANK, line((f"{count(hidden, 'more group')} of nodes: -o wide shows all", DIM))]
    notes = [note.text for note in answer.explanation.notes if note.id != ROUTINE and note.id in _TOLD]
    for text in notes:
        lines += [BLANK, *paragraph(text, width, first="  note      ")]
    about = "its pods that run already are not counted; one node's whole story: --node NAME"
    return [*lines, BLANK, *paragraph(about, width, style=DIM)]


_TOLD = frozenset({
    "applied-together", "claim-not-made", "foreign-workload", "missing-kind", "not-applied", "old-api-version",
    "pod-security", "unlikely-amount",
})  # fmt: skip
"""Notes about the manifest and the snapshot; others are about the choice among nodes, which nobody makes here."""


def _group(answer: DaemonSetAnswer, group: NodeGroup, mark: str, style: str, width: int, *, wide: bool) -> list[Text]:
    told = " · ".join(dict.fromkeys(headline(finding) for finding in group.exemplar.findings))
    what = "no pod is made" if mark == "· " else "its pod waits"
    names = answer.names(group)
    lines = paragraph(f"{count(group.count, 'node')}: {what}, {told}", width, first=mark, style=style)
    return lines + paragraph(listed(names, len(names) if wide else SHOWN_NODES), width, first="  ", style=DIM)


def _fix(answer: DaemonSetAnswer, group: NodeGroup, width: int) -> list[Text]:
    """The first that was tried for the pod of the nearest of these nodes."""
    node = answer.names(group)[0]
    found = answer.on(node)
    fixes = found.fixes
    lines = []
    after = found.cycle.post_filter
    if after is not None and after.candidates:
        lines += paragraph(f"preemption would make room on {node}", width, first="  ", style=DIM)
    if fixes:
        text = f"{fixes[0].title} ({fixes[0].certainty.value}, on {node})"
        lines += paragraph(text, width, first="  fix       ")
    return lines


def _stopped(answer: DaemonSetAnswer, width: int) -> list[Text]:
    lines: list[Text] = []
    for stop in answer.diagnosis.stops:
        for finding in stop.status.findings:
            lines += [BLANK, *paragraph(headline(finding), width, first="✗ ", style=BAD)]
    return [*lines, BLANK, *paragraph(answer.explanation.message, width, style=DIM)]
