"""How the question was understood, in words."""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.notes.question import (
    AfterChanges,
    AppliedTogether,
    DryRun,
    FieldDifference,
    ForeignWorkload,
    ManifestLeftOut,
    NotApplied,
    OldVersion,
    QuestionNote,
    RunsAlready,
    Tried,
    UnlikelyAmount,
)
from kschedx.render.units import count, listed

_SHOWN = 4


def text(note: QuestionNote) -> str:
    match note:
        case ForeignWorkload():
            kind = f"{note.kind} ({note.group})"
            return f"{kind} is no kind of Kubernetes' own: judged by its template at {note.path}, as it is"
        case RunsAlready(node=node):
            return f"it runs on {node}; this is as if it were scheduled now"
        case ManifestLeftOut(source=source, why=why):
            return f"left out: {source}, {why}"
        case OldVersion():
            served = f"is not served as {note.api_version} since Kubernetes {note.since}"
            return f"{note.kind} {served}: read as it is served today"
        case AppliedTogether(objects=objects):
            return f"judged as if applied together with {listed(objects, _SHOWN)}"
        case NotApplied():
            return f"{note.what} counts for nothing, since the API server refuses it: {note.refusal}"
        case UnlikelyAmount():
            written = f"{note.amount} of {note.resource} is {_really(note)}"
            return f"container {note.container}: {written}: did you mean {note.meant}?"
        case DryRun(error=error) if error:
            return f"the API server's dry run took the pod, which kschedx could not admit by itself: {error}"
        case DryRun(differences=()):
            return "the API server's dry run made the same pod as kschedx"
        case DryRun(differences=differences):
            return f"the API server's dry run made another pod than kschedx: {'; '.join(map(_told, differences))}"
        case AfterChanges():
            return f"after {'; '.join(note.changes)}{_displaced(note)}"
        case Tried():
            return f"tried with {', '.join(note.changes)}; without it: {note.before.value}"
        case _:
            assert_never(note)


def dry_run_facts(note: DryRun) -> dict[str, object]:
    return {"changes": list(map(_told, note.differences))}


def _told(one: FieldDifference) -> str:
    return f"{one.path} is {one.theirs}, not {one.ours}"


def _really(note: UnlikelyAmount) -> str:
    if note.resource == "cpu":
        return f"{note.is_really:,} processors"
    return f"{note.is_really:,} bytes" if note.is_really else "less than a byte"


def _displaced(note: AfterChanges) -> str:
    """`: 3 pods move, shop/web-0 loses its node and finds no other`."""
    parts = [f"{count(len(note.moved), 'pod')} {'moves' if len(note.moved) == 1 else 'move'}"] if note.moved else []
    if note.waiting:
        lost = "loses its node and finds" if len(note.waiting) == 1 else "lose their nodes and find"
        parts.append(f"{listed(note.waiting, 2)} {lost} no other")
    if note.gone:
        parts.append(f"{listed(note.gone, 2)} {'is' if len(note.gone) == 1 else 'are'} gone for good")
    return f": {', '.join(parts)}" if parts else ""
