"""The answers about many pods as a page: a table for each cause."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kschedx.explain.many import Answer, Group, groups
from kschedx.framework.cycle import Outcome
from kschedx.render.many import group_title, many, sentence
from kschedx.render.page.model import SCREEN_WIDTH, Column, Notes, Page, Section, Table, Tone
from kschedx.render.safe import visible


def page_of(answers: Sequence[Answer], fix_of: Callable[[Group], str], notes: Sequence[str]) -> Page:
    """As on the screen, the largest group first, with every pod."""
    lines = many(answers, fix_of, width=SCREEN_WIDTH, wide=True, notes=notes)
    fits = all(answer.outcome is Outcome.SCHEDULED for answer in answers)
    return Page(
        title="kschedx why",
        headline=visible(sentence(answers)),
        tone=Tone.GOOD if fits else Tone.BAD,
        facts=(),
        screen="\n".join(line.plain.rstrip() for line in lines),
        sections=tuple(_sections(answers, fix_of, notes)),
    )


def _sections(answers: Sequence[Answer], fix_of: Callable[[Group], str], notes: Sequence[str]) -> Iterator[Section]:
    if notes:
        yield Notes(notes=tuple(map(visible, notes)))
    columns = (
        Column(label="pod"),
        Column(label="made by"),
        Column(label="priority", is_number=True),
        Column(label="node"),
        Column(label="whole story"),
    )
    for group in groups(answers):
        fix = fix_of(group)
        rows = tuple(map(_row, group.answers))
        title = group_title(group)
        yield Table(title=visible(f"{title}; fix: {fix}" if fix else title), columns=columns, rows=rows)


def _row(answer: Answer) -> tuple[str, str, int, str, str]:
    nodes = ", ".join(answer.nodes[:4])
    return visible(answer.pod), visible(answer.owner), answer.priority, visible(nodes), visible(answer.command)
