"""A view as lines: the head in the order of every screen, and its rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kschedx.render.fixes import fix_lines
from kschedx.render.terminal import (
    DIM,
    StyledLine,
    because_lines,
    columns,
    fact_block,
    labelled_lines,
    more,
    paragraph,
    text,
    title_lines,
)
from kschedx.render.view import ItemList, Tone, View
from kschedx.wording import list_facts

MOST_LINES = 30  # lines of a screen without `-o wide`
COMMAND = "$ "  # the start of a detail that is a command to paste


def head_lines(
    view: View, width: int, limit: int | None = None, *, about: str = "", rows: int | None = None
) -> list[StyledLine]:
    """Return headline, causes, fixes in at most `limit` lines, facts in at most `rows` lines each, and event. Without
    causes, the facts precede the fixes."""
    facts = fact_block(view.facts, width, rows)
    fixes = fix_lines(view.fixes, view.no_fix, width, limit, about)
    label = "event" if view.tone is Tone.GOOD else "because"
    return [
        *headline_lines(view, width),
        *because_lines(view.because, width),
        *(
            row
            for number, root in enumerate(view.roots)
            for row in labelled_lines("" if view.because or number else label, root, width, further=2)
        ),
        *((*fixes, *facts) if view.because or view.roots else (*facts, *fixes)),
        *(labelled_lines("event", view.event, width, style=DIM, exact=True) if view.event else ()),
    ]


def note_lines(view: View, width: int, limit: int | None = None) -> list[StyledLine]:
    return fact_block(list_facts("note", view.notes[:limit]), width)


def headline_lines(view: View, width: int) -> list[StyledLine]:
    """Return the headline with its mark in color, then its details."""
    lines = title_lines(view.headline, view.tone, width)
    for detail in view.details:
        if detail.startswith(COMMAND):
            lines.append(text(f"    {detail.removeprefix(COMMAND)}", exact=True))
        else:
            lines += paragraph(detail, width, first="  ")
    return lines


def table_lines(item_list: ItemList, width: int, most: int | None = None) -> list[StyledLine]:
    """Return the first `most` rows as a table, and the number of the others. In a narrow window, columns of zeros are
    left out."""
    items = item_list.items[:most]
    labels = [(item_list.noun, False), *item_list.columns]
    rows = [(item.title, *item.values) for item in items]
    table = column_lines(labels, rows, width)
    if rows and any(line.cell_len > width for line in table):
        kept = [at for at in range(len(labels)) if any(row[at] != 0 for row in rows)]
        table = column_lines([labels[at] for at in kept], [[row[at] for at in kept] for row in rows], width)
    return table + more(len(item_list.items) - len(items), item_list.noun)


def column_lines(
    labels: Sequence[tuple[str, bool]], rows: Iterable[Sequence[str | int]], width: int
) -> list[StyledLine]:
    """Return rows below the label of each column, which also has whether it is a number."""
    right = frozenset(at for at, (_, is_number) in enumerate(labels) if is_number)
    cells = [[label for label, _ in labels], *([_cell(value) for value in row] for row in rows)]
    return columns(cells, right=right, indent=2, header=True, width=width)


def _cell(value: str | int) -> str:
    return f"{value:,}" if isinstance(value, int) else value
