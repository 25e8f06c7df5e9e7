"""The answer of `kschedx simulate` and `kschedx drain` as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from kschedx.doctor.diagnosis import Diagnosis
from kschedx.doctor.findings import Finding, MissingKind
from kschedx.explain.difference import Difference, PlacedAnew, Summary
from kschedx.explain.profile_changes import Change
from kschedx.explain.setup import Setup
from kschedx.fixes.stalled_drain import DrainFix
from kschedx.render.comparison import comparison_lines
from kschedx.render.doctor import certainty_text, diagnosis_lines, finding_words, missing_kind_effect, missing_kind_text
from kschedx.render.drain import drain_lines
from kschedx.render.page.model import SCREEN_WIDTH, Column, Notes, Page, Section, Table, Tone, Usage
from kschedx.render.simulation import (
    decision_text,
    drains_lines,
    shown_resources,
    simulation_headline,
    simulation_lines,
)
from kschedx.render.terminal import SEPARATOR
from kschedx.render.wording import amount, count, visible
from kschedx.render.words.comparison import (
    change_rows,
    compared,
    comparison_headline,
    difference_title,
    effect_counts,
    left_out,
    node_notes,
    node_rows,
    not_placed_anew,
    placed_anew_title,
    pod_lines,
    side_titles,
)
from kschedx.simulate.drain import DrainResult
from kschedx.simulate.simulation import NodeUse, Simulation


def simulation_page(simulation: Simulation) -> Page:
    """What becomes of how many pods, the nodes before and after, and every decision."""
    return _page(
        simulation, simulation_headline(simulation), "simulate", simulation_lines(simulation, width=SCREEN_WIDTH)
    )


def drains_page(
    simulation: Simulation, *, each: bool, lets_go: Sequence[DrainFix] = (), forced: Sequence[DrainResult] = ()
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
        sections=tuple(_simulation_sections(simulation)),
    )


def _simulation_sections(simulation: Simulation) -> Iterator[Section]:
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
        decisions = tuple(
            (number, visible(decision_text(step))) for number, step in enumerate(simulation.steps, start=1)
        )
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


# The answer of `kschedx diff-profiles` as a page.


def comparison_page(before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None) -> Page:
    """First how the two differ as configuration, then what that does to pods."""
    lines = comparison_lines(before, after, changes, summary, width=SCREEN_WIDTH)
    facts = [] if summary is None else [("compared", compared(summary))]
    return Page(
        title="kschedx diff-profiles",
        headline=visible(comparison_headline(before, after)),
        tone=Tone.PLAIN,
        facts=tuple((label, visible(text)) for label, text in facts),
        screen="\n".join(line.plain.rstrip() for line in lines),
        sections=tuple(_comparison_sections(before, after, changes, summary)),
    )


def _comparison_sections(
    before: Setup, after: Setup, changes: Sequence[Change], summary: Summary | None
) -> Iterator[Section]:
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
        yield from _nodes(summary.placed_anew, side_titles(before, after))
    columns = tuple(Column(label=label) for label in ("pod", "what happens to it", "why"))
    for group in summary.groups:
        yield Table(
            title=visible(difference_title(group)),
            columns=columns,
            rows=tuple(map(_pod_row, group.differences)),
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


def _pod_row(difference: Difference) -> tuple[str, str, str]:
    told, facts = pod_lines(difference)
    return visible(difference.pod), visible(told), visible("; ".join(facts))


# The answer of `kschedx doctor` as a page.


def doctor_page(diagnosis: Diagnosis) -> Page:
    """What is there, what is amiss, and how to complete it."""
    weakening = len(diagnosis.weakening)
    told = count(weakening, "thing weakens", "things weaken") if weakening else "nothing found that weakens"
    source = visible(diagnosis.inventory.source)
    found = [one for one in diagnosis.findings if not isinstance(one, MissingKind)]
    missing = [one for one in diagnosis.findings if isinstance(one, MissingKind)]
    sections: list[Section] = []
    if found:
        columns = tuple(Column(label=label) for label in ("finding", "facts"))
        sections.append(Table(title="Findings", columns=columns, rows=tuple(map(_finding_row, found))))
    if missing:
        columns = tuple(Column(label=label) for label in ("kind", "what is missing", "what that weakens"))
        rows = tuple(
            (
                one.kind,
                visible(missing_kind_text(one) + certainty_text(one.certainty)),
                visible(missing_kind_effect(one)),
            )
            for one in missing
        )
        sections.append(Table(title="Missing kinds", columns=columns, rows=rows))
    kinds = tuple((visible(kind), number) for kind, number in diagnosis.inventory.kinds.items())
    columns = (Column(label="kind"), Column(label="objects", is_number=True))
    sections.append(Table(title="Objects", columns=columns, rows=kinds))
    completion = diagnosis.completion
    return Page(
        title=f"{source} · kschedx doctor",
        headline=f"{source}: {told} an answer",
        tone=Tone.BAD if weakening else Tone.GOOD,
        facts=(("complete it", visible(completion.command)),) if completion else (),
        screen="\n".join(line.plain.rstrip() for line in diagnosis_lines(diagnosis, width=SCREEN_WIDTH, wide=True)),
        sections=tuple(sections),
    )


def _finding_row(finding: Finding) -> tuple[str, str]:
    told = finding_words(finding, whole=True)
    facts = (f"{fact.label} {SEPARATOR.join(fact.items)}".strip() for fact in told.facts)
    return visible(told.headline), visible("; ".join(facts))
