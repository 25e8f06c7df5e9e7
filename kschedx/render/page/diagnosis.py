"""The answer of `kschedx doctor` as a page."""

from __future__ import annotations

from kschedx.doctor.diagnosis import Diagnosis
from kschedx.doctor.findings import Finding, MissingKind
from kschedx.render.doctor_screen import diagnosis_lines
from kschedx.render.doctor_words import missing_effect, missing_kind, sureness, words
from kschedx.render.layout import SEPARATOR
from kschedx.render.page.model import SCREEN_WIDTH, Column, Page, Section, Table, Tone
from kschedx.render.safe import visible
from kschedx.render.units import count


def page_of(diagnosis: Diagnosis) -> Page:
    """What is there, what is amiss, and how to complete it."""
    weakening = len(diagnosis.weakening)
    told = count(weakening, "thing weakens", "things weaken") if weakening else "nothing found that weakens"
    source = visible(diagnosis.inventory.source)
    found = [one for one in diagnosis.findings if not isinstance(one, MissingKind)]
    missing = [one for one in diagnosis.findings if isinstance(one, MissingKind)]
    sections: list[Section] = []
    if found:
        columns = tuple(Column(label=label) for label in ("finding", "facts"))
        sections.append(Table(title="Findings", columns=columns, rows=tuple(map(_row, found))))
    if missing:
        columns = tuple(Column(label=label) for label in ("kind", "what is missing", "what that weakens"))
        rows = tuple(
            (one.kind, visible(missing_kind(one) + sureness(one.certainty)), visible(missing_effect(one)))
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


def _row(finding: Finding) -> tuple[str, str]:
    told = words(finding, whole=True)
    facts = (f"{fact.label} {SEPARATOR.join(fact.items)}".strip() for fact in told.facts)
    return visible(told.headline), visible("; ".join(facts))
