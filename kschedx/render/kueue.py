"""The screen of Kueue's queues, cohorts, and flavors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kschedx.fixes.phrases import resource_name
from kschedx.grouping import group_pairs
from kschedx.kueue.flavors import Shortage
from kschedx.kueue.overview import CohortOverview, FlavorRow, Overview, PendingWorkload, QueueOverview
from kschedx.kueue.quota import display_amount
from kschedx.render.layout import column_lines, head_lines, note_lines
from kschedx.render.terminal import BLANK, BOLD, DIM, StyledLine, line, paragraph
from kschedx.render.view import ItemList, TableView, Tone, View, ViewItem
from kschedx.wording import Fact, count, list_names

_SHOWN = 5  # pending Workloads of a queue without `-o wide`


def overview_view(overview: Overview) -> View:
    """Return a view with a row for each pending Workload."""
    cohorts = f" in {count(len(overview.cohorts), 'cohort')}" if overview.cohorts else ""
    pending = f"{count(overview.waiting, 'Workload')} pending"
    if overview.checking:
        pending += f", {overview.checking:,} with quota and open admission checks"
    queues = [*((queue.name, (*queue.waiting, *queue.checking)) for queue in overview.queues), ("", overview.unqueued)]
    return View(
        command="kschedx kueue",
        headline=f"{count(len(overview.queues), 'ClusterQueue')}{cohorts}, {pending}"
        if overview.queues or overview.unqueued
        else "no ClusterQueue and no Workload of Kueue",
        tone=Tone.HELD if overview.waiting or overview.checking else Tone.GOOD,
        facts=tuple(
            Fact.of("inactive", f"ClusterQueue {queue.name}: {queue.inactive}")
            for queue in overview.queues
            if queue.inactive
        ),
        notes=() if overview.is_settled else ("the run was stopped before it settled",),
        lists=(
            ItemList(
                title="Queues",
                noun="queue",
                columns=(("cohort", False), ("with quota", True), ("pending", True)),
                items=(*map(_queue, overview.queues), *map(_cohort, overview.cohorts)),
            ),
            ItemList(
                title="Pending Workloads",
                noun="Workload",
                columns=(("ClusterQueue", False), ("place", True), ("priority", True)),
                items=tuple(
                    ViewItem(
                        title=waiting_job.workload,
                        tone=Tone.HELD,
                        values=(name, place, waiting_job.priority),
                        facts=(Fact.of("because", _cause(waiting_job)),),
                        event=waiting_job.message,
                    )
                    for name, waiting in queues
                    for place, waiting_job in enumerate(waiting, start=1)
                ),
            ),
        ),
        tables=(
            TableView(
                title="Quota",
                columns=(("queue", False), *((label, at > 1) for at, label in enumerate(_HEADS))),
                rows=(
                    *((queue.name, *_cells(row)) for queue in overview.queues for row in queue.rows),
                    *((_cohort(cohort).title, *_cells(row)) for cohort in overview.cohorts for row in cohort.rows),
                ),
            ),
        ),
    )


def _queue(queue: QueueOverview) -> ViewItem:
    return ViewItem(
        title=queue.name,
        kind="ClusterQueue",
        values=(" below ".join(queue.cohorts), queue.holding, len(queue.waiting)),
        members=tuple(waiting.workload for waiting in (*queue.waiting, *queue.checking)),
    )


def _cohort(cohort: CohortOverview) -> ViewItem:
    return ViewItem(title=f"cohort {cohort.name}", kind="cohort", values=(cohort.parent, "", ""))


def overview_lines(overview: Overview, width: int, *, wide: bool = False) -> list[StyledLine]:
    view = overview_view(overview)
    (queues, workloads), (quota,) = view.lists, view.tables
    waiting = group_pairs((item.values[0], item) for item in workloads.items)
    lines = head_lines(view, width)
    for queue in queues.items:
        above, holding, pending = queue.values
        if queue.kind == "cohort":
            lines += [BLANK, line((queue.title, BOLD), f" below {above}" if above else "")]
        else:
            cohort = f" · cohort {above}" if above else ""
            state = f"{count(int(holding), 'Workload')} with quota, {pending:,} pending"
            lines += [BLANK, line((f"{queue.kind} {queue.title}", BOLD), f"{cohort} · {state}")]
        rows = [row[1:] for row in quota.rows if row[0] == queue.title]
        lines += column_lines(quota.columns[1:], rows, width) if rows else []
        lines += _pending_lines(waiting.get(queue.title, ()), width, wide=wide)
    if alone := waiting.get(""):
        lines += [BLANK, line(("in no queue", BOLD)), *_pending_lines(alone, width, wide=wide)]
    if view.notes:
        lines += [BLANK, *note_lines(view, width)]
    version = f"Kueue {overview.kueue_version}; -o wide shows all, -o json every cycle"
    return [*lines, BLANK, *paragraph(version, width, style=DIM)]


_HEADS = ("flavor", "resource", "used", "nominal", "borrowed", "available")


def _cells(row: FlavorRow) -> tuple[str, ...]:
    amounts = (row.used, row.nominal, row.borrowed, max(row.available, 0))
    return (row.flavor, row.resource, *(display_amount(row.resource, amount) for amount in amounts))


def _pending_lines(items: Sequence[ViewItem], width: int, *, wide: bool) -> Iterator[StyledLine]:
    shown = items if wide else items[:_SHOWN]
    for item in shown:
        _, place, priority = item.values
        [cause] = item.facts[0].items
        text = f"{place}. {item.title} (priority {priority:,}): {cause}"
        yield from paragraph(text, width, first="    ", indent=7)
        if wide and item.event != cause:
            yield from paragraph(item.event, width, first="       ", indent=7)
    if len(items) > len(shown):
        yield line(f"       {len(items) - len(shown):,} more")


def _cause(waiting: PendingWorkload) -> str:
    if waiting.outcome in ("Admitted", "QuotaReserved"):
        return "Kueue admits it" if waiting.outcome == "Admitted" else "gets quota, then admission checks"
    if waiting.victims:
        return f"preempts {list_names(list(waiting.victims), 3)}"
    if waiting.shortages:
        return "lacks " + list_names([_shortage(each) for each in waiting.shortages], 2)
    return waiting.message or "not evaluated yet"


def _shortage(shortage: Shortage) -> str:
    most = f", more than the queue's maximum of {display_amount(shortage.resource, shortage.maximum)}"
    amount, name = display_amount(shortage.resource, shortage.missing_amount), resource_name(shortage.resource)
    text = f"{amount} {name} in {shortage.flavor}"
    return text + (most if shortage.exceeds_maximum else "")
