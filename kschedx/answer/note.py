"""A note as it is told: with its text."""

from __future__ import annotations

from msgspec import Struct

from kschedx.explain import notes
from kschedx.render.words.notes import note_facts, note_text


class Note(Struct, frozen=True, kw_only=True):
    """What a reader has to know to trust an answer."""

    id: str
    """Stable."""
    text: str
    facts: dict[str, object] = {}
    """What the text says, for programs."""

    @classmethod
    def of(cls, found: notes.Note) -> Note:
        return cls(id=found.id, text=note_text(found), facts=note_facts(found))

    def to_dict(self) -> dict[str, object]:
        return {"id": self.id, "text": self.text} | self.facts
