"""The queues, cohorts and flavors of Kueue on the screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from kschedx.kueue.amounts import displayed
from kschedx.kueue.flavors import Shortage
from kschedx.kueue.overview import FlavorRow, Overview, QueueOverview, Waiting
from kschedx.render.terminal import BAD, BLANK, BOLD, DIM, GOOD, columns, line, paragraph
from kschedx.render.wording import count, listed

SHOWN = 5
"""Waiting Workloads of a queue, unless everything is shown."""


def overview_lines(found: Overview, width: int, *, wide: bool = False) -> list[Text]:
    queues = count(len(found.queues), "ClusterQueue")
    cohorts = f" in {count(len(found.cohorts), 'cohort')}" if found.cohorts else ""
    waiting = count(found.waiting, "Workload")
    mark, style = ("‖ ", BAD) if found.waiting else ("✓ ", GOOD)
    lines = [line((f"{mark}{queues}{cohorts}, {waiting} pending", f"{BOLD} {style.split()[-1]}"))]
    for queue in found.queues:
        lines += [BLANK, *_queue(queue, width, wide=wide)]
    for cohort in found.cohorts:
        above = f" below {cohort.parent}" if cohort.parent else ""
        lines += [BLANK, line((f"cohort {cohort.name}{above}", BOLD)), *_table(cohort.rows)]
    if found.unqueued:
        lines += [BLANK, line(("in no queue", BOLD)), *_waiting(found.unqueued, width, wide=wide)]
    if not found.admissions.is_settled:
        lines += [BLANK, *paragraph("the run was stopped before it settled", width, first="  note      ", indent=12)]
    version = f"Kueue {found.admissions.kueue_version}; -o wide shows all, -o json every cycle"
    return [*lines, BLANK, *paragraph(version, width, style=DIM)]


def _queue(queue: QueueOverview, width: int, *, wide: bool) -> Iterator[Text]:
    below = f" · cohort {' below '.join(queue.cohorts)}" if queue.cohorts else ""
    state = f"{count(queue.holding, 'Workload')} with quota, {len(queue.waiting):,} pending"
    yield line((f"ClusterQueue {queue.name}", BOLD), f"{below} · {state}")
    if queue.inactive:
        yield from paragraph(queue.inactive, width, first="  inactive  ", indent=12)
    yield from _table(queue.rows)
    yield from _waiting(queue.waiting, width, wide=wide)


def _table(rows: Sequence[FlavorRow]) -> list[Text]:
    if not rows:
        return []
    told: list[tuple[str, ...]] = [("flavor", "resource", "used", "nominal", "borrowed", "available")]
    for row in rows:
        amounts = (row.used, row.nominal, row.borrowed, max(row.available, 0))
        told.append((row.flavor, row.resource, *(displayed(row.resource, amount) for amount in amounts)))
    return columns(told, right=frozenset({2, 3, 4, 5}), indent=2, header=True)


def _waiting(waiting: Sequence[Waiting], width: int, *, wide: bool) -> Iterator[Text]:
    shown = waiting if wide else waiting[:SHOWN]
    for number, one in enumerate(shown, start=1):
        cause = _cause(one)
        yield from paragraph(
            f"{number}. {one.workload} (priority {one.priority:,}): {cause}", width, first="    ", indent=7
        )
        if wide and one.message != cause:
            yield from paragraph(one.message, width, first="       ", indent=7)
    if len(waiting) > len(shown):
        yield line(f"       {len(waiting) - len(shown):,} more")


def _cause(one: Waiting) -> str:
    if one.outcome in ("Admitted", "QuotaReserved"):
        return "Kueue admits it" if one.outcome == "Admitted" else "gets quota, then admission checks"
    if one.victims:
        return f"preempts {listed(list(one.victims), 3)}"
    if one.shortages:
        return "lacks " + listed([_shortage(each) for each in one.shortages], 2)
    return one.message or "not evaluated yet"


def _shortage(one: Shortage) -> str:
    most = f", more than the queue's maximum of {displayed(one.resource, one.maximum)}"
    told = f"{displayed(one.resource, one.missing)} {one.resource} in {one.flavor}"
    return told + (most if one.exceeds_maximum else "")
