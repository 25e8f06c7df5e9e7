"""The answer of `kschedx simulate` and `kschedx drain` as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from kschedx.render.drain import drain_lines
from kschedx.render.page.model import SCREEN_WIDTH, Column, Notes, Page, Section, Table, Tone, Usage
from kschedx.render.safe import visible
from kschedx.render.simulation import drains_lines, headline, shown_resources, simulation_lines, told_step
from kschedx.render.units import amount, count
from kschedx.simulate.drain import Drained
from kschedx.simulate.letting_go import LetsGo
from kschedx.simulate.simulation import Simulation
from kschedx.simulate.usage import NodeUse


def page_of(simulation: Simulation) -> Page:
    """What becomes of how many pods, the nodes before and after, and every decision."""
    return _page(simulation, headline(simulation), "simulate", simulation_lines(simulation, width=SCREEN_WIDTH))


def page_of_drains(
    simulation: Simulation, *, each: bool, lets_go: Sequence[LetsGo] = (), forced: Sequence[Drained] = ()
) -> Page:
    done = sum(drained.is_done for drained in simulation.drained)
    told = f"{done:,} of {count(len(simulation.drained), 'node')} can be drained"
    lines = drains_lines(simulation, width=SCREEN_WIDTH, each=each, lets_go=lets_go, forced=forced)
    return _page(simulation, told, "drain", lines)


def _page(simulation: Simulation, told: str, command: str, screen: Sequence[Text]) -> Page:
    changes = "; ".join(map(str, simulation.changes))
    return Page(
        title=f"kschedx {command}",
        headline=visible(told),
        tone=Tone.GOOD if simulation.is_done else Tone.BAD,
        facts=(("after", visible(changes)),) if changes else (),
        screen="\n".join(line.plain.rstrip() for line in screen),
        sections=tuple(_sections(simulation)),
    )


def _sections(simulation: Simulation) -> Iterator[Section]:
    for drained in simulation.drained:
        lines = [line.plain.strip() for line in drain_lines(drained, SCREEN_WIDTH, None)]
        yield Notes(notes=tuple(filter(None, lines)))
    if simulation.messages:
        columns = (Column(label="pod"), Column(label="why"))
        rows = tuple((visible(pod), visible(text)) for pod, text in simulation.messages.items())
        yield Table(title="Pending", columns=columns, rows=rows)
    if simulation.refused:
        refused = simulation.refused.values()
        yield Table(
            title="Refused by the API server",
            columns=(Column(label="workload"), Column(label="replicas", is_number=True), Column(label="why")),
            rows=tuple((visible(one.workload.reference), one.number, visible(one.refusal)) for one in refused),
        )
    workloads = tuple(
        (
            visible(result.workload.reference),
            len(result.placed),
            len(result.pending),
            len(result.evicted),
            visible(", ".join(f"{node} × {number}" for node, number in result.nodes.items())),
        )
        for result in simulation.workloads
    )
    if workloads:
        yield Table(
            title="Workloads",
            columns=(
                Column(label="workload"),
                Column(label="placed", is_number=True),
                Column(label="pending", is_number=True),
                Column(label="evicted", is_number=True),
                Column(label="nodes"),
            ),
            rows=workloads,
        )
    yield _usage(simulation)
    if simulation.steps:
        columns = (Column(label="step", is_number=True), Column(label="decision"))
        decisions = tuple((number, visible(told_step(step))) for number, step in enumerate(simulation.steps, start=1))
        yield Table(title="Decisions", columns=columns, rows=decisions)


def _usage(simulation: Simulation) -> Usage:
    """Every node that was there or is, those that change most first."""
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


def _change(before: NodeUse | None, after: NodeUse | None, resources: Sequence[str]) -> int:
    pairs = zip(_percents(before, resources), _percents(after, resources), strict=True)
    return sum(abs((new or 0) - (old or 0)) for old, new in pairs)


def _percents(use: NodeUse | None, resources: Sequence[str]) -> tuple[int | None, ...]:
    """None where the node is not there or offers none of it."""
    return tuple(
        use.percent(resource) if use is not None and use.allocatable.get(resource) else None for resource in resources
    )


def _told(before: NodeUse | None, after: NodeUse | None, resource: str) -> str:
    sides = []
    for use in (before, after):
        if use is None:
            sides.append("not there")
        else:
            asked = amount(resource, use.requested.get(resource, 0))
            sides.append(f"{asked} of {amount(resource, use.allocatable.get(resource, 0))}")
    return " → ".join(dict.fromkeys(sides))
