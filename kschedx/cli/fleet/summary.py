"""All answers on one page: a row for each cluster, those that need somebody first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kschedx.cli.exit_codes import ExitCode
from kschedx.cli.fleet.asking import Row
from kschedx.render.safe import visible
from kschedx.render.units import count

if TYPE_CHECKING:
    from rich.text import Text

    from kschedx.render.page.model import Page

MARKS = {ExitCode.SCHEDULABLE: "✓", ExitCode.UNSCHEDULABLE: "✗"}
"""Anything else could not be decided, or not be asked."""


def exit_code(rows: Sequence[Row]) -> ExitCode:
    """3 where a cluster could not be asked or decided, 1 where one has something amiss, else 0."""
    codes = {row.exit_code for row in rows}
    if codes - set(MARKS):
        return ExitCode.UNDECIDED
    return ExitCode.UNSCHEDULABLE if ExitCode.UNSCHEDULABLE in codes else ExitCode.SCHEDULABLE


def headline(rows: Sequence[Row]) -> str:
    amiss = sum(row.exit_code == ExitCode.UNSCHEDULABLE for row in rows)
    open_ones = sum(row.exit_code not in MARKS for row in rows)
    parts = [f"{amiss:,} with something amiss"] if amiss else []
    parts += [f"{open_ones:,} without an answer"] if open_ones else []
    return f"{count(len(rows), 'cluster')}: {', '.join(parts) or 'nothing amiss'}"


def by_need(rows: Sequence[Row]) -> list[Row]:
    """Without an answer first, then amiss, then the others; each in the order of the clusters."""
    order = {ExitCode.UNSCHEDULABLE: 1, ExitCode.SCHEDULABLE: 2}
    return sorted(rows, key=lambda row: order.get(ExitCode(row.exit_code), 0))


def screen(rows: Sequence[Row], width: int) -> list[Text]:
    from kschedx.render.layout import BLANK, BOLD, line, paragraph

    lines = [line((headline(rows), BOLD)), BLANK]
    for row in by_need(rows):
        lines += paragraph(f"{MARKS.get(ExitCode(row.exit_code), '?')} {row.cluster}", width, style=BOLD)
        lines += paragraph(row.summary, width, indent=4, first="    ")
    return lines


def document(rows: Sequence[Row]) -> dict[str, object]:
    import msgspec

    return {"apiVersion": "kschedx/v1", "kind": "FleetAnswer", "clusters": msgspec.to_builtins(list(rows))}


def page(rows: Sequence[Row]) -> Page:
    from kschedx.render.page.model import SCREEN_WIDTH, Column, Page, Table, Tone

    question = " ".join(rows[0].question) if rows else ""
    tones = {ExitCode.SCHEDULABLE: Tone.GOOD, ExitCode.UNSCHEDULABLE: Tone.BAD}
    columns = (
        Column(label="cluster"),
        Column(label="exit code", is_number=True),
        Column(label="answer"),
        Column(label="said beside"),
        Column(label="seconds", is_number=True),
    )
    cells = tuple(
        (visible(row.cluster), row.exit_code, visible(row.summary), visible(row.errors), round(row.seconds))
        for row in by_need(rows)
    )
    return Page(
        title="kschedx fleet",
        headline=headline(rows),
        tone=tones.get(exit_code(rows), Tone.HELD),
        facts=(("question", visible(question)),),
        screen="\n".join(line.plain.rstrip() for line in screen(rows, SCREEN_WIDTH)),
        sections=(Table(title="Clusters", columns=columns, rows=cells),),
    )


def write_parquet(rows: Sequence[Row], path: str) -> None:
    """The rows as a table; a document is its JSON. Needs the extra parquet. Raises `InputError`."""
    from kschedx.cli.extras import needs
    from kschedx.errors import InputError, Place

    with needs("parquet"):
        import pyarrow
        import pyarrow.parquet
    import msgspec

    columns = {
        "cluster": [row.cluster for row in rows],
        "question": [" ".join(row.question) for row in rows],
        "exitCode": [row.exit_code for row in rows],
        "seconds": [row.seconds for row in rows],
        "summary": [row.summary for row in rows],
        "errors": [row.errors for row in rows],
        "document": [None if row.document is None else msgspec.json.encode(row.document).decode() for row in rows],
    }
    try:
        pyarrow.parquet.write_table(pyarrow.table(columns), Path(path))
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", place=Place(source=path)) from None
