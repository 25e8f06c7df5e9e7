"""What a reader has to know to trust an answer, as facts; a module per subject.

A note holds names and numbers, no sentence: `render/words/notes` forks over the union and ends in `assert_never`, so a
note without words does not pass the type checker. Who finds them is beside this package (`explain/cycle_notes.py`,
`explain/storage_notes.py`, ...), or asks the question (`cli`).
"""

from __future__ import annotations

from typing import TypeAlias

from kschedx.explain.notes.admission import AdmissionNote
from kschedx.explain.notes.claims import ClaimNote
from kschedx.explain.notes.cluster import ClusterNote
from kschedx.explain.notes.cycle import CycleNote
from kschedx.explain.notes.extenders import ExtenderNote
from kschedx.explain.notes.missing import MissingNote
from kschedx.explain.notes.question import QuestionNote
from kschedx.explain.notes.recorded import RecordedEvent
from kschedx.explain.notes.storage import StorageNote

Note: TypeAlias = (
    CycleNote
    | RecordedEvent
    | ExtenderNote
    | MissingNote
    | ClusterNote
    | StorageNote
    | AdmissionNote
    | ClaimNote
    | QuestionNote
)
