"""The pages of simulations and drains: pods by outcome, nodes before and after, and every decision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kschedx.inquiry.simulation import NodeUse, Simulation
from kschedx.inquiry.stalled_drain import DrainFix
from kschedx.render.page.model import (
    SCREEN_WIDTH,
    Histogram,
    Page,
    Plot,
    Section,
    Timeline,
    Usage,
    page_of,
)
from kschedx.render.simulation import (
    decision_text,
    drains_lines,
    drains_view,
    shown_resources,
    simulation_lines,
    simulation_view,
)
from kschedx.render.wording import amount, visible
from kschedx.simulate.drain import DrainResult

if TYPE_CHECKING:
    from kschedx.inquiry.autoscalers import Growth

TENTHS = (*(f"{low} to {low + 9}%" for low in range(0, 90, 10)), "90% and more")


def simulation_page(simulation: Simulation, *, ties: str | None = None, growths: Sequence[Growth] = ()) -> Page:
    """Return a page with the number of pods by outcome, the nodes before and after, and every decision."""
    view = simulation_view(simulation, ties=ties, growths=growths)
    lines = simulation_lines(simulation, width=SCREEN_WIDTH, view=view)
    return page_of(view, lines, _simulation_sections(simulation), simulation.before)


def result_simulation_page(simulation: Simulation) -> Page:
    """Return the page of a run of changes or of drains."""
    if simulation.changes or not simulation.drained:
        return simulation_page(simulation)
    return drains_page(simulation, each=len(simulation.drained) == simulation.before.cluster.count > 1)


def drains_page(
    simulation: Simulation, *, each: bool, lets_go: Sequence[DrainFix] = (), forced: Sequence[DrainResult] = ()
) -> Page:
    view = drains_view(simulation, each=each, lets_go=lets_go, forced=forced)
    lines = drains_lines(simulation, width=SCREEN_WIDTH, each=each, view=view)
    sections = () if each else _simulation_sections(simulation)
    return page_of(view, lines, sections, simulation.before)


def _simulation_sections(simulation: Simulation) -> Iterator[Section]:
    usage = _usage(simulation)
    if len(usage.nodes) > 1:
        yield _utilization(usage)
    yield usage
    if simulation.steps:
        yield _timeline(simulation)


def _timeline(simulation: Simulation) -> Timeline:
    pending, placed, evicted = len(simulation.queue), 0, 0
    counts: list[tuple[int, int, int]] = []
    pods: dict[str, int] = {}
    texts: dict[tuple[str, str], int] = {}
    indices: list[tuple[int, int]] = []
    for step in simulation.steps:
        if step.node is not None:
            placed, pending = placed + 1, max(pending - 1, 0)
        else:
            evicted += len(step.victim_keys)
        counts.append((pending, placed, evicted))
        before, pod, after = map(visible, decision_text(step).partition(step.key))
        indices.append((pods.setdefault(pod, len(pods)), texts.setdefault((before, after), len(texts))))
    return Timeline(
        pending=tuple(counted[0] for counted in counts),
        placed=tuple(counted[1] for counted in counts),
        evicted=tuple(counted[2] for counted in counts),
        pods=tuple(pods),
        texts=tuple(texts),
        pod_of=tuple(pod for pod, _ in indices),
        text_of=tuple(text for _, text in indices),
    )


def _usage(simulation: Simulation) -> Usage:
    """Return the utilization of all nodes before and after; those that change most come first."""
    before, after = simulation.usage_before, simulation.usage_after
    resources = shown_resources(simulation)
    names = dict.fromkeys((*before.names, *after.names))
    sides = {name: (before.get(name), after.get(name)) for name in names}
    ordered = sorted(names, key=lambda name: -_change(*sides[name], resources))
    return Usage(
        resources=resources,
        nodes=tuple(map(visible, ordered)),
        before=tuple(_percents(sides[name][0], resources) for name in ordered),
        after=tuple(_percents(sides[name][1], resources) for name in ordered),
        told=tuple(tuple(_told(*sides[name], resource) for resource in resources) for name in ordered),
    )


def _utilization(usage: Usage) -> Histogram:
    """Return how many nodes have which utilization, before and after."""
    plots = []
    for at, resource in enumerate(usage.resources):
        counts = [[0] * len(TENTHS) for _ in (usage.before, usage.after)]
        for tally, rows in zip(counts, (usage.before, usage.after), strict=True):
            for percent in (row[at] for row in rows):
                if percent is not None:
                    tally[min(max(percent, 0) // 10, len(TENTHS) - 1)] += 1
        plots.append(Plot(label=visible(resource), buckets=TENTHS, counts=tuple(map(tuple, counts))))
    return Histogram(title="Utilization", series=("before", "after"), plots=tuple(plots))


def _change(before: NodeUse | None, after: NodeUse | None, resources: Sequence[str]) -> int:
    pairs = zip(_percents(before, resources), _percents(after, resources), strict=True)
    return sum(abs((new or 0) - (old or 0)) for old, new in pairs)


def _percents(use: NodeUse | None, resources: Sequence[str]) -> tuple[int | None, ...]:
    """Return percentages; None if the node does not exist or has none of the resource."""
    return tuple(
        use.percent(resource) if use is not None and use.allocatable.get(resource) else None for resource in resources
    )


def _told(before: NodeUse | None, after: NodeUse | None, resource: str) -> str:
    sides = []
    for use in (before, after):
        if use is None:
            sides.append("not there")
        else:
            requested = amount(resource, use.requested.get(resource, 0))
            sides.append(f"{requested} of {amount(resource, use.allocatable.get(resource, 0))}")
    return " → ".join(dict.fromkeys(sides))
