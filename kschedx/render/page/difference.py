"""The answer of `kschedx diff-profiles` as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx.explain.difference import Difference, Summary
from kschedx.explain.placed_anew import PlacedAnew
from kschedx.explain.profile_changes import Change
from kschedx.explain.setup import Setup
from kschedx.render.comparison import comparison
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
from kschedx.render.page.model import SCREEN_WIDTH, Column, Notes, Page, Section, Table, Tone
from kschedx.render.safe import visible


def page_of(before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None) -> Page:
    """First how the two differ as configuration, then what that does to pods."""
    lines = comparison(before, after, changes, summary, width=SCREEN_WIDTH)
    facts = [] if summary is None else [("compared", compared(summary))]
    return Page(
        title="kschedx diff-profiles",
        headline=visible(headline(before, after)),
        tone=Tone.PLAIN,
        facts=tuple((label, visible(text)) for label, text in facts),
        screen="\n".join(line.plain.rstrip() for line in lines),
        sections=tuple(_sections(before, after, changes, summary)),
    )


def _sections(before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None) -> Iterator[Section]:
    if changes:
        rows = tuple(tuple(map(visible, row)) for row in change_rows(changes, before, after))
        columns = tuple(Column(label=label) for label in ("where", "what", "change"))
        yield Table(title="Configuration", columns=columns, rows=rows)
    else:
        yield Notes(notes=("The configurations are the same.",))
    if summary is None:
        return
    told = (*effect_counts(summary), *left_out(summary))
    if summary.not_placed_anew:
        told = (*told, not_placed_anew(summary))
    if told:
        yield Notes(notes=tuple(map(visible, told)))
    if summary.placed_anew is not None:
        yield from _nodes(summary.placed_anew, titles(before, after))
    columns = tuple(Column(label=label) for label in ("pod", "what becomes of it", "why"))
    for group in summary.groups:
        yield Table(
            title=visible(group_title(group)),
            columns=columns,
            rows=tuple(map(_row, group.differences)),
        )


def _nodes(found: PlacedAnew, names: tuple[str, str]) -> Iterator[Section]:
    title = placed_anew_title(found)
    if found.before == found.after:
        yield Notes(notes=(title,))
        return
    heading, *rows = node_rows(found, names)
    yield Table(
        title=title[0].upper() + title[1:],
        columns=tuple(Column(label=visible(label)) for label in heading),
        rows=tuple(tuple(map(visible, row)) for row in rows),
    )
    notes = node_notes(found, names)
    if notes:
        yield Notes(notes=tuple(map(visible, notes)))


def _row(difference: Difference) -> tuple[str, str, str]:
    told, facts = pod_lines(difference)
    return visible(difference.pod), visible(told), visible("; ".join(facts))
