"""What all notes share."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class NoteFacts(Struct, frozen=True, kw_only=True):
    id: ClassVar[str]
    """Stable; two notes about the same matter share it."""

    @property
    def facts(self) -> dict[str, object]:
        """What the document carries beside the id and the text: JSON's types, keys in camelCase."""
        return {}
