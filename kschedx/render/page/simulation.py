"""The pages of simulations and drains: pods by outcome, nodes before and after, and every decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from kschedx.inquiry.node_usage import NodeUse
from kschedx.inquiry.simulation import Simulation
from kschedx.inquiry.simulation_answer import SimulationAnswer
from kschedx.inquiry.stalled_drain import DrainPreview
from kschedx.render.page.model import SCREEN_WIDTH, Histogram, Page, Plot, Section, Usage, page_of
from kschedx.render.simulation import drains_lines, drains_view, simulation_lines, simulation_view
from kschedx.render.view import UsageRow, View
from kschedx.wording import amount, visible

_TENTHS = (*(f"{low} to {low + 9}%" for low in range(0, 90, 10)), "90% and more")


def simulation_page(answer: SimulationAnswer) -> Page:
    """Return a page with the number of pods by outcome, the nodes before and after, and every decision."""
    view = simulation_view(answer)
    lines = simulation_lines(replace(answer, has_steps=False), width=SCREEN_WIDTH, view=view)
    return page_of(view, lines, _sections(view), answer.simulation.before)


def result_simulation_page(simulation: Simulation) -> Page:
    """Return the page of a run of changes or of drains."""
    if simulation.changes or not simulation.drained:
        return simulation_page(SimulationAnswer(simulation=simulation))
    each = len(simulation.drained) == simulation.before.cluster.count > 1
    return drains_page(DrainPreview(simulation=simulation, each=each))


def drains_page(preview: DrainPreview) -> Page:
    view = drains_view(preview)
    lines = drains_lines(preview, width=SCREEN_WIDTH, view=view)
    return page_of(view, lines, _sections(view), preview.simulation.before)


def _sections(view: View) -> Iterator[Section]:
    if view.usage is not None:
        resources = view.usage.resources
        ordered = sorted(view.usage.nodes, key=lambda row: -_change(row, resources))
        usage = Usage(
            resources=resources,
            nodes=tuple(visible(row.name) for row in ordered),
            before=tuple(_percents(row.before, resources) for row in ordered),
            after=tuple(_percents(row.after, resources) for row in ordered),
            told=tuple(tuple(_use_text(row, resource) for resource in resources) for row in ordered),
        )
        if len(usage.nodes) > 1:
            yield _utilization(usage)
        yield usage
    if view.timeline is not None:
        texts = tuple((visible(before), visible(after)) for before, after in view.timeline.texts)
        yield replace(view.timeline, pods=tuple(map(visible, view.timeline.pods)), texts=texts)


def _utilization(usage: Usage) -> Histogram:
    """Return how many nodes have which utilization, before and after."""
    plots = []
    for at, resource in enumerate(usage.resources):
        counts = [[0] * len(_TENTHS) for _ in (usage.before, usage.after)]
        for tally, rows in zip(counts, (usage.before, usage.after), strict=True):
            for percent in (row[at] for row in rows):
                if percent is not None:
                    tally[min(max(percent, 0) // 10, len(_TENTHS) - 1)] += 1
        plots.append(Plot(label=visible(resource), buckets=_TENTHS, counts=tuple(map(tuple, counts))))
    return Histogram(title="Utilization", series=("before", "after"), plots=tuple(plots))


def _change(row: UsageRow, resources: Sequence[str]) -> int:
    pairs = zip(_percents(row.before, resources), _percents(row.after, resources), strict=True)
    return sum(abs((new or 0) - (old or 0)) for old, new in pairs)


def _percents(use: NodeUse | None, resources: Sequence[str]) -> tuple[int | None, ...]:
    """Return percentages; None if the node does not exist or has none of the resource."""
    return tuple(use.percent(it) if use is not None and use.allocatable.get(it) else None for it in resources)


def _use_text(row: UsageRow, resource: str) -> str:
    sides = []
    for use in (row.before, row.after):
        if use is None:
            sides.append("not there")
        else:
            requested = amount(resource, use.requested.get(resource, 0))
            sides.append(f"{requested} of {amount(resource, use.allocatable.get(resource, 0))}")
    return " → ".join(dict.fromkeys(sides))
