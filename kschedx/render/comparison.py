"""The screen of `kschedx diff-profiles`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from kschedx.explain.difference import Group, Summary
from kschedx.explain.placed_anew import PlacedAnew
from kschedx.explain.profile_changes import Change
from kschedx.explain.setup import Setup
from kschedx.render import terminal
from kschedx.render.comparison_words import (
    change_rows,
    compared,
    effect_counts,
    group_title,
    headline,
    left_out,
    node_notes,
    node_rows,
    not_placed_anew,
    placed_anew_title,
    pod_lines,
    titles,
)
from kschedx.render.layout import BLANK, BOLD, DIM, columns, ended, fits, joined, paragraph, text
from kschedx.render.units import count

MOST_CHANGES = 14
MOST_SCREEN_LINES = 40
SHOWN = 3
"""Pods of a group."""
MOST_LINES = 2
"""About one pod, below its first."""


def print_comparison(
    before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None, *, everything: bool = False
) -> None:
    """On standard output."""
    out = terminal.console()
    terminal.write(comparison(before, after, changes, summary, width=out.width, everything=everything), out)


def comparison(
    before: Setup,
    after: Setup,
    changes: Sequence[Change],
    summary: Summary | None,
    *,
    width: int,
    everything: bool = False,
) -> list[Text]:
    """First how the two differ as configuration, then what that does to pods: the largest effect first."""
    lines = [
        *paragraph(headline(before, after), width, style=BOLD),
        BLANK,
        *_changes(change_rows(changes, before, after), width, everything),
    ]
    if summary is None:
        return lines
    lines += [BLANK, text(compared(summary), BOLD)]
    lines += [text(f"  {told}") for told in joined(effect_counts(summary), width - 2)]
    for told in left_out(summary):
        lines += paragraph(told, width, first="  ", style=DIM)
    if summary.not_placed_anew:
        lines += paragraph(not_placed_anew(summary), width, first="  ", style=DIM)
    if summary.placed_anew is not None:
        lines += _nodes(summary.placed_anew, titles(before, after), width)
    groups = summary.groups
    left = len(groups)
    for group in groups:
        block = [BLANK, *_group(group, width, everything)]
        if not everything and len(lines) + len(block) > MOST_SCREEN_LINES - 4 and left < len(groups):
            break
        lines += block
        left -= 1
    if left:
        lines += [BLANK, text(f"{count(left, 'more group')} of pods: -o wide shows all", DIM)]
    if summary.differences:
        lines += [BLANK, text("more: --pod NAMESPACE/NAME tells one pod's two stories, -o wide, -o json", DIM)]
    return lines


def _changes(rows: Sequence[tuple[str, str, str]], width: int, everything: bool) -> list[Text]:
    if not rows:
        return [text("the configurations are the same")]
    shown = rows if everything or len(rows) <= MOST_CHANGES + 1 else rows[:MOST_CHANGES]
    size = [max(len(row[column]) for row in shown) for column in (0, 1)]
    room = max(width - sum(size) - 6, 24)
    lines = [text("configuration", BOLD)]
    lines += columns(
        [(place, subject, told if everything else ended(told, room)) for place, subject, told in shown], indent=2
    )
    if len(rows) > len(shown):
        lines.append(text(f"  {count(len(rows) - len(shown), 'more change')}: -o wide shows all", DIM))
    return lines


def _nodes(found: PlacedAnew, names: tuple[str, str], width: int) -> list[Text]:
    if found.before == found.after:
        return paragraph(placed_anew_title(found), width, first="  ", style=DIM)
    lines = [BLANK, *paragraph(placed_anew_title(found), width, indent=2, style=BOLD)]
    lines += columns(node_rows(found, names), indent=2)
    for told in node_notes(found, names):
        lines += paragraph(told, width, first="  ", indent=4)
    return lines


def _group(group: Group, width: int, everything: bool) -> list[Text]:
    shown = group.differences if everything else group.differences[:SHOWN]
    lines = paragraph(group_title(group), width, indent=2, style=BOLD)
    for difference in shown:
        told, facts = pod_lines(difference)
        whole = f"{difference.pod}  {told}".rstrip()
        if fits(whole, width - 2):
            lines.append(text(f"  {whole}"))
        else:
            lines += [text(f"  {difference.pod}"), *paragraph(told, width, first="    ", indent=6)]
        for fact in facts if everything else facts[:MOST_LINES]:
            lines += paragraph(fact, width, first="    ", indent=6, style=DIM)
    if len(group.differences) > len(shown):
        lines.append(text(f"  {count(len(group.differences) - len(shown), 'more pod')}", DIM))
    return lines
