"""Notes in words; a module per subject, as in `explain/notes`.

Text is data still: whatever prints it makes it harmless first (`safe.visible`).
"""

from __future__ import annotations

from typing import assert_never

from kschedx.explain.notes import Note
from kschedx.explain.notes.admission import AdmissionNote
from kschedx.explain.notes.claims import ClaimNote
from kschedx.explain.notes.cluster import ClusterNote
from kschedx.explain.notes.cycle import CycleNote
from kschedx.explain.notes.extenders import ExtenderNote
from kschedx.explain.notes.missing import MissingNote
from kschedx.explain.notes.question import DryRun, QuestionNote
from kschedx.explain.notes.recorded import RecordedEvent
from kschedx.explain.notes.storage import StorageNote
from kschedx.render.words.notes import (
    admission,
    claims,
    cluster,
    cycle,
    extenders,
    missing,
    question,
    recorded,
    storage,
)


def note_text(note: Note) -> str:
    """A line: lower case, no full stop."""
    if isinstance(note, CycleNote):
        return cycle.text(note)
    if isinstance(note, RecordedEvent):
        return recorded.text(note)
    if isinstance(note, ExtenderNote):
        return extenders.text(note)
    if isinstance(note, MissingNote):
        return missing.text(note)
    if isinstance(note, ClusterNote):
        return cluster.text(note)
    if isinstance(note, StorageNote):
        return storage.text(note)
    if isinstance(note, AdmissionNote):
        return admission.text(note)
    if isinstance(note, ClaimNote):
        return claims.text(note)
    if isinstance(note, QuestionNote):
        return question.text(note)
    assert_never(note)


def note_facts(note: Note) -> dict[str, object]:
    """What the document carries beside id and text; in some notes that is words too."""
    if isinstance(note, RecordedEvent):
        return recorded.facts(note)
    if isinstance(note, DryRun):
        return question.dry_run_facts(note)
    return note.facts
