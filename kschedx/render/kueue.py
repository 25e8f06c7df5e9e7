"""The screen of Kueue's queues, cohorts, and flavors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx.kueue.flavors import Shortage
from kschedx.kueue.overview import FlavorRow, Overview, QueueOverview, Waiting
from kschedx.kueue.quota import displayed
from kschedx.render.layout import head_lines, note_lines
from kschedx.render.page.model import SCREEN_WIDTH, Page, Table, TableColumn, page_of
from kschedx.render.terminal import BLANK, BOLD, DIM, StyledLine, columns, line, paragraph
from kschedx.render.view import ItemList, Tone, View, ViewItem
from kschedx.render.wording import Fact, count, listed

SHOWN = 5
"""Pending Workloads of a queue without `-o wide`."""


def _overview_view(overview: Overview) -> View:
    """Return a view with a row for each pending Workload."""
    cohorts = f" in {count(len(overview.cohorts), 'cohort')}" if overview.cohorts else ""
    pending = f"{count(overview.waiting, 'Workload')} pending"
    if overview.checking:
        pending += f", {overview.checking:,} with quota and open admission checks"
    queues = [*((queue.name, (*queue.waiting, *queue.checking)) for queue in overview.queues), ("", overview.unqueued)]
    return View(
        command="kschedx kueue",
        headline=f"{count(len(overview.queues), 'ClusterQueue')}{cohorts}, {pending}",
        tone=Tone.HELD if overview.waiting or overview.checking else Tone.GOOD,
        facts=tuple(
            Fact(label="inactive", items=(f"ClusterQueue {queue.name}: {queue.inactive}",))
            for queue in overview.queues
            if queue.inactive
        ),
        notes=() if overview.is_settled else ("the run was stopped before it settled",),
        lists=(
            ItemList(
                title="Pending Workloads",
                noun="Workload",
                columns=(("ClusterQueue", False), ("place", True), ("priority", True)),
                items=tuple(
                    ViewItem(
                        title=waiting_job.workload,
                        tone=Tone.HELD,
                        values=(name, place, waiting_job.priority),
                        facts=(Fact(label="because", items=(_cause(waiting_job),)),),
                        event=waiting_job.message,
                    )
                    for name, waiting in queues
                    for place, waiting_job in enumerate(waiting, start=1)
                ),
            ),
        ),
    )


def overview_page(overview: Overview) -> Page:
    rows = [(queue.name, *_cells(row)) for queue in overview.queues for row in queue.rows]
    rows += [(f"cohort {cohort.name}", *_cells(row)) for cohort in overview.cohorts for row in cohort.rows]
    columns = tuple(TableColumn(label=label, is_number=at > 2) for at, label in enumerate(("queue", *_HEADS)))
    quota = Table(title="Quota", columns=columns, rows=tuple(rows))
    return page_of(_overview_view(overview), overview_lines(overview, SCREEN_WIDTH), (quota,), overview.snapshot)


def overview_lines(overview: Overview, width: int, *, wide: bool = False) -> list[StyledLine]:
    view = _overview_view(overview)
    lines = head_lines(view, width)
    for queue in overview.queues:
        lines += [BLANK, *_queue(queue, width, wide=wide)]
    for cohort in overview.cohorts:
        above = f" below {cohort.parent}" if cohort.parent else ""
        lines += [BLANK, line((f"cohort {cohort.name}{above}", BOLD)), *_table(cohort.rows)]
    if overview.unqueued:
        lines += [BLANK, line(("in no queue", BOLD)), *_waiting(overview.unqueued, width, wide=wide)]
    if view.notes:
        lines += [BLANK, *note_lines(view, width)]
    version = f"Kueue {overview.kueue_version}; -o wide shows all, -o json every cycle"
    return [*lines, BLANK, *paragraph(version, width, style=DIM)]


def _queue(queue: QueueOverview, width: int, *, wide: bool) -> Iterator[StyledLine]:
    below = f" · cohort {' below '.join(queue.cohorts)}" if queue.cohorts else ""
    state = f"{count(queue.holding, 'Workload')} with quota, {len(queue.waiting):,} pending"
    yield line((f"ClusterQueue {queue.name}", BOLD), f"{below} · {state}")
    yield from _table(queue.rows)
    yield from _waiting((*queue.waiting, *queue.checking), width, wide=wide)


def _table(rows: Sequence[FlavorRow]) -> list[StyledLine]:
    if not rows:
        return []
    return columns([_HEADS, *map(_cells, rows)], right=frozenset({2, 3, 4, 5}), indent=2, header=True)


_HEADS = ("flavor", "resource", "used", "nominal", "borrowed", "available")


def _cells(row: FlavorRow) -> tuple[str, ...]:
    amounts = (row.used, row.nominal, row.borrowed, max(row.available, 0))
    return (row.flavor, row.resource, *(displayed(row.resource, amount) for amount in amounts))


def _waiting(waiting: Sequence[Waiting], width: int, *, wide: bool) -> Iterator[StyledLine]:
    shown = waiting if wide else waiting[:SHOWN]
    for number, waiting_job in enumerate(shown, start=1):
        cause = _cause(waiting_job)
        yield from paragraph(
            f"{number}. {waiting_job.workload} (priority {waiting_job.priority:,}): {cause}",
            width,
            first="    ",
            indent=7,
        )
        if wide and waiting_job.message != cause:
            yield from paragraph(waiting_job.message, width, first="       ", indent=7)
    if len(waiting) > len(shown):
        yield line(f"       {len(waiting) - len(shown):,} more")


def _cause(waiting: Waiting) -> str:
    if waiting.outcome in ("Admitted", "QuotaReserved"):
        return "Kueue admits it" if waiting.outcome == "Admitted" else "gets quota, then admission checks"
    if waiting.victims:
        return f"preempts {listed(list(waiting.victims), 3)}"
    if waiting.shortages:
        return "lacks " + listed([_shortage(each) for each in waiting.shortages], 2)
    return waiting.message or "not evaluated yet"


def _shortage(shortage: Shortage) -> str:
    most = f", more than the queue's maximum of {displayed(shortage.resource, shortage.maximum)}"
    text = f"{displayed(shortage.resource, shortage.missing)} {shortage.resource} in {shortage.flavor}"
    return text + (most if shortage.exceeds_maximum else "")
